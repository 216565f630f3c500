"""For the Llama of `lm.py`: samplers, caches with a window or quantised, and prompt caches in files."""

import math
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Callable, Dict

import mlx.core as mx
from mlx.utils import tree_flatten, tree_map, tree_reduce, tree_unflatten

from lm import KVCache, Model, ModelArgs, encode, generate, small_model


class RotatingKVCache(KVCache):
    """The first tokens and a window of the last ones."""

    def __init__(self, max_size=24, keep=4):
        super().__init__()
        self.max_size, self.keep = max_size, keep

    def update_and_fetch(self, keys, values):
        if self.keys is None:
            self.keys, self.values = keys, values
        else:
            self.keys = mx.concatenate([self.keys, keys], axis=2)
            self.values = mx.concatenate([self.values, values], axis=2)
        self.offset += keys.shape[2]
        excess = self.keys.shape[2] - self.max_size - keys.shape[2] + 1
        if excess > 0:
            self.keys, self.values = (
                mx.concatenate([x[..., : self.keep, :], x[..., self.keep + excess :, :]], axis=2)
                for x in (self.keys, self.values)
            )
        return self.keys, self.values

    def make_mask(self, n):
        past = 0 if self.keys is None else min(self.keys.shape[2], self.max_size - 1)
        rows, columns = mx.arange(past, past + n), mx.arange(past + n)
        return (rows[:, None] >= columns[None]) & (rows[:, None] < columns[None] + self.max_size)

    @property
    def state(self):
        return self.keys, self.values

    @state.setter
    def state(self, v):
        self.keys, self.values = v

    @property
    def meta_state(self):
        return tuple(map(str, (self.keep, self.max_size, self.offset)))

    @meta_state.setter
    def meta_state(self, v):
        self.keep, self.max_size, self.offset = map(int, v)


class QuantizedKVCache:
    def __init__(self, group_size=32, bits=8):
        self.keys = self.values = None
        self.offset, self.group_size, self.bits = 0, group_size, bits

    def update_and_fetch(self, keys, values):
        self.offset += keys.shape[2]
        keys, values = (mx.quantize(x, group_size=self.group_size, bits=self.bits) for x in (keys, values))
        if self.keys is not None:
            join = partial(tree_map, lambda a, b: mx.concatenate([a, b], axis=2))
            keys, values = join(self.keys, keys), join(self.values, values)
        self.keys, self.values = keys, values
        return keys, values

    def make_mask(self, n):
        return "causal"

    @property
    def state(self):
        return self.keys, self.values

    @property
    def nbytes(self):
        return tree_reduce(lambda acc, x: acc + x.nbytes, (self.keys, self.values), 0)


def save_prompt_cache(file_name, cache, metadata: Dict[str, str] = {}):
    data = dict(tree_flatten([c.state for c in cache]))
    info = [c.meta_state for c in cache]
    classes = [type(c).__name__ for c in cache]
    mx.save_safetensors(file_name, data, dict(tree_flatten([info, metadata, classes])))


def load_prompt_cache(file_name):
    arrays, metadata = mx.load(file_name, return_metadata=True)
    arrays = tree_unflatten(list(arrays.items()))
    info, metadata, classes = tree_unflatten(list(metadata.items()))
    cache = [globals()[c]() for c in classes]
    for c, state, meta in zip(cache, arrays, info):
        c.state = state
        c.meta_state = meta
    return cache, metadata


@partial(mx.compile, inputs=mx.random.state, outputs=mx.random.state)
def categorical_sampling(logits, temp):
    return mx.random.categorical(logits * (1 / temp))


@partial(mx.compile, inputs=mx.random.state, outputs=mx.random.state)
def apply_top_p(logprobs: mx.array, top_p: float) -> mx.array:
    probs = mx.exp(logprobs)
    sorted_indices = mx.argsort(logprobs, axis=-1)
    sorted_probs = mx.take_along_axis(probs, sorted_indices, axis=-1)
    cumulative = mx.cumsum(sorted_probs, axis=-1)
    inverse = mx.put_along_axis(
        mx.zeros_like(sorted_indices),
        sorted_indices,
        mx.arange(sorted_indices.shape[-1], dtype=sorted_indices.dtype),
        axis=-1,
    )
    cumulative = mx.take_along_axis(cumulative, inverse, axis=-1)
    return mx.where(cumulative > 1 - top_p, logprobs, -float("inf"))


@partial(mx.compile, inputs=mx.random.state, outputs=mx.random.state)
def apply_min_p(logprobs, min_p: float, min_tokens_to_keep: int = 1):
    order = mx.argsort(-logprobs, axis=-1)
    sorted_logprobs = mx.take_along_axis(logprobs, order, axis=-1)
    remove = sorted_logprobs < sorted_logprobs[:, 0:1] + math.log(min_p)
    remove[..., :min_tokens_to_keep] = False
    selected = mx.where(remove, -float("inf"), sorted_logprobs)
    inverse = mx.put_along_axis(
        mx.zeros_like(order), order, mx.arange(order.shape[-1], dtype=order.dtype), axis=-1
    )
    return mx.take_along_axis(selected, inverse, axis=-1)


@partial(mx.compile, inputs=mx.random.state, outputs=mx.random.state)
def apply_top_k(logprobs, top_k: int):
    mask_idx = mx.argpartition(-logprobs, kth=top_k - 1, axis=-1)[..., top_k:]
    return mx.put_along_axis(logprobs, mask_idx, mx.array(-float("inf"), logprobs.dtype), axis=-1)


def make_sampler(temp=0.0, top_p=0.0, min_p=0.0, top_k=0) -> Callable[[mx.array], mx.array]:
    if temp == 0:
        return lambda x: mx.argmax(x, axis=-1)
    methods = []
    if 0 < top_p < 1.0:
        methods.append(lambda x: apply_top_p(x, top_p))
    if min_p:
        methods.append(lambda x: apply_min_p(x, min_p))
    if top_k > 0:
        methods.append(lambda x: apply_top_k(x, top_k))

    def sampler(logprobs):
        for method in methods:
            logprobs = method(logprobs)
        return categorical_sampling(logprobs, temp)

    return sampler


def make_repetition_penalty(penalty: float, context_size: int = 20):
    def processor(tokens, logits):
        if len(tokens) > 0:
            tokens = tokens[-context_size:]
            selected = logits[:, tokens]
            selected = mx.where(selected < 0, selected * penalty, selected / penalty)
            logits[:, tokens] = selected
        return logits

    return processor


def main():
    model = small_model()
    prompt = encode("The quick brown fox jumps over the lazy dog")
    for name, options in {
        "categorical": dict(temp=1.0),
        "top_p": dict(temp=0.8, top_p=0.9),
        "min_p": dict(temp=1.0, min_p=0.05),
        "top_k": dict(temp=1.2, top_k=5),
        "all": dict(temp=0.7, top_p=0.95, min_p=0.01, top_k=20),
    }.items():
        mx.random.seed(11)
        tokens, mean = generate(model, prompt, sampler=make_sampler(**options), max_tokens=16)
        print(name, tokens, f"{mean:.4f}")

    tokens, mean = generate(model, prompt, logits_processors=[make_repetition_penalty(1.5)])
    print("penalty", tokens, f"{mean:.4f}")

    for kind in (KVCache, RotatingKVCache):
        cache = [kind() for _ in model.layers]
        generate(model, prompt, prompt_cache=cache, max_tokens=6)
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "prompt.safetensors")
            save_prompt_cache(path, cache, {"model": "small", "tokens": str(prompt.tolist()[:3])})
            print("bytes", os.path.getsize(path) > 1000, len(mx.load(path)))
            loaded, metadata = load_prompt_cache(path)
        print("metadata", metadata, loaded[0].meta_state, [s.shape for s in loaded[0].state])
        same = [mx.array_equal(a, b).item() for a, b in zip(cache[1].state, loaded[1].state)]
        again = encode(" and then")
        print("reloaded", same, generate(model, again, prompt_cache=loaded, max_tokens=12)[0])
        print("kept", generate(model, again, prompt_cache=cache, max_tokens=12)[0])

    cache = [KVCache() for _ in model.layers]
    model(prompt[None], cache=cache)
    print("trimmed", [c.trim(5) for c in cache], cache[0].offset)
    print("after", generate(model, encode("zy cat"), prompt_cache=cache, max_tokens=8)[0])

    narrow = Model(ModelArgs(hidden_size=128, num_hidden_layers=2, tie_word_embeddings=False))
    narrow.set_dtype(mx.bfloat16)
    print("dtypes", {str(v.dtype) for _, v in tree_flatten(narrow.parameters())})
    narrow.set_dtype(mx.float32)
    mx.eval(narrow)
    cache = [QuantizedKVCache() for _ in narrow.layers]
    tokens, _ = generate(narrow, prompt, prompt_cache=cache, max_tokens=12)
    print("quantized cache", tokens, cache[0].nbytes, narrow.head_dim)


if __name__ == "__main__":
    main()
