"""A small Llama: its layers, a cache of keys and values, and generation token by token."""

import contextlib
import inspect
import json
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Dict, Generator, List, Optional, Tuple, Union

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map, tree_reduce

generation_stream = mx.new_stream(mx.default_device())


@dataclass
class ModelArgs:
    model_type: str = "llama"
    hidden_size: int = 64
    num_hidden_layers: int = 3
    intermediate_size: int = 128
    num_attention_heads: int = 4
    num_key_value_heads: Optional[int] = 2
    rms_norm_eps: float = 1e-5
    vocab_size: int = 96
    rope_theta: float = 10000.0
    rope_traditional: bool = False
    rope_scaling: Optional[Dict[str, Union[float, str]]] = None
    tie_word_embeddings: bool = True

    @classmethod
    def from_dict(cls, params):
        known = inspect.signature(cls).parameters
        return cls(**{k: v for k, v in params.items() if k in known})

    def __post_init__(self):
        if self.num_key_value_heads is None:
            self.num_key_value_heads = self.num_attention_heads


class Llama3RoPE(nn.Module):
    """Rotary positions with low frequencies stretched, as an own module with `_freqs`."""

    def __init__(self, dims, base, factor, low=1.0, high=4.0, original=32):
        super().__init__()
        self.dims = dims
        freqs = base ** (mx.arange(0, dims, 2) / dims)
        wavelengths = 2 * mx.pi * freqs
        stretched = mx.where(wavelengths > original / low, freqs * factor, freqs)
        medium = (wavelengths > original / high) & (wavelengths < original / low)
        smooth = (original / wavelengths - low) / (high - low)
        self._freqs = mx.where(medium, stretched / ((1 - smooth) / factor + smooth), stretched)

    def __call__(self, x, offset: int = 0):
        return mx.fast.rope(
            x, self.dims, traditional=False, base=None, scale=1.0, offset=offset, freqs=self._freqs
        )


class Attention(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        dim = args.hidden_size
        self.n_heads = n_heads = args.num_attention_heads
        self.n_kv_heads = n_kv_heads = args.num_key_value_heads
        head_dim = dim // n_heads
        self.scale = head_dim**-0.5
        self.q_proj = nn.Linear(dim, n_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(dim, n_kv_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(dim, n_kv_heads * head_dim, bias=False)
        self.o_proj = nn.Linear(n_heads * head_dim, dim, bias=False)
        if args.rope_scaling is None:
            self.rope = nn.RoPE(head_dim, traditional=args.rope_traditional, base=args.rope_theta)
        else:
            self.rope = Llama3RoPE(head_dim, args.rope_theta, args.rope_scaling["factor"])

    def __call__(self, x, mask=None, cache=None):
        B, L, D = x.shape
        queries, keys, values = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        queries = queries.reshape(B, L, self.n_heads, -1).transpose(0, 2, 1, 3)
        keys = keys.reshape(B, L, self.n_kv_heads, -1).transpose(0, 2, 1, 3)
        values = values.reshape(B, L, self.n_kv_heads, -1).transpose(0, 2, 1, 3)
        if cache is not None:
            queries = self.rope(queries, offset=cache.offset)
            keys = self.rope(keys, offset=cache.offset)
            keys, values = cache.update_and_fetch(keys, values)
        else:
            queries, keys = self.rope(queries), self.rope(keys)
        if hasattr(cache, "bits"):
            output = quantized_attention(queries, keys, values, self.scale, mask, cache)
        else:
            output = mx.fast.scaled_dot_product_attention(
                queries, keys, values, scale=self.scale, mask=mask
            )
        return self.o_proj(output.transpose(0, 2, 1, 3).reshape(B, L, -1))


def quantized_attention(queries, q_keys, q_values, scale, mask, cache):
    B, n_q_heads, L, D = queries.shape
    n_kv_heads = q_keys[0].shape[-3]
    n_repeats = n_q_heads // n_kv_heads
    queries = queries * scale
    if n_repeats > 1:
        queries = mx.reshape(queries, (B, n_kv_heads, n_repeats, L, D))
        q_keys = tree_map(lambda x: mx.expand_dims(x, axis=-3), q_keys)
        q_values = tree_map(lambda x: mx.expand_dims(x, axis=-3), q_values)
    options = dict(group_size=cache.group_size, bits=cache.bits)
    scores = mx.quantized_matmul(queries, *q_keys, transpose=True, **options)
    if mask is not None:
        if isinstance(mask, str):
            qL, kL = scores.shape[-2:]
            mask = mx.arange(kL - qL, kL)[:, None] >= mx.arange(kL)[None]
        if mask.dtype == mx.bool_:
            scores = mx.where(mask, scores, mx.finfo(scores.dtype).min)
        else:
            scores += mask
    scores = mx.softmax(scores, axis=-1, precise=True)
    out = mx.quantized_matmul(scores, *q_values, transpose=False, **options)
    return out.reshape(B, n_q_heads, L, D) if n_repeats > 1 else out


@partial(mx.compile, shapeless=True)
def swiglu(gate, x):
    return nn.silu(gate) * x


class MLP(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden_dim, bias=False)
        self.down_proj = nn.Linear(hidden_dim, dim, bias=False)
        self.up_proj = nn.Linear(dim, hidden_dim, bias=False)

    def __call__(self, x) -> mx.array:
        return self.down_proj(swiglu(self.gate_proj(x), self.up_proj(x)))


class TransformerBlock(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.self_attn = Attention(args)
        self.mlp = MLP(args.hidden_size, args.intermediate_size)
        self.input_layernorm = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)

    def __call__(self, x, mask: Optional[mx.array] = None, cache: Optional[Any] = None) -> mx.array:
        h = x + self.self_attn(self.input_layernorm(x), mask, cache)
        return h + self.mlp(self.post_attention_layernorm(h))


class Model(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.args = args
        self.embed_tokens = nn.Embedding(args.vocab_size, args.hidden_size)
        self.layers = [TransformerBlock(args) for _ in range(args.num_hidden_layers)]
        self.norm = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)
        if not args.tie_word_embeddings:
            self.lm_head = nn.Linear(args.hidden_size, args.vocab_size, bias=False)

    def __call__(self, inputs: mx.array, cache=None):
        h = self.embed_tokens(inputs)
        if cache is None:
            cache = [None] * len(self.layers)
        mask = "causal" if h.shape[1] > 1 else None
        if mask and cache[0] is not None:
            mask = cache[0].make_mask(h.shape[1])
        for layer, c in zip(self.layers, cache):
            h = layer(h, mask, cache=c)
        h = self.norm(h)
        if self.args.tie_word_embeddings:
            return self.embed_tokens.as_linear(h)
        return self.lm_head(h)

    def sanitize(self, weights):
        weights = {k: v for k, v in weights.items() if "rotary_emb.inv_freq" not in k}
        if self.args.tie_word_embeddings:
            weights.pop("lm_head.weight", None)
        return weights

    @property
    def head_dim(self):
        return self.args.hidden_size // self.args.num_attention_heads


class KVCache:
    step = 16

    def __init__(self):
        self.keys, self.values = None, None
        self.offset = 0

    def update_and_fetch(self, keys, values):
        prev = self.offset
        if self.keys is None or (prev + keys.shape[2]) > self.keys.shape[2]:
            B, n_kv_heads, _, k_head_dim = keys.shape
            n_steps = (self.step + keys.shape[2] - 1) // self.step
            shape = (B, n_kv_heads, n_steps * self.step, k_head_dim)
            new_k, new_v = mx.zeros(shape, keys.dtype), mx.zeros(shape, values.dtype)
            if self.keys is not None:
                if prev % self.step != 0:
                    self.keys = self.keys[..., :prev, :]
                    self.values = self.values[..., :prev, :]
                self.keys = mx.concatenate([self.keys, new_k], axis=2)
                self.values = mx.concatenate([self.values, new_v], axis=2)
            else:
                self.keys, self.values = new_k, new_v
        self.offset += keys.shape[2]
        self.keys[..., prev : self.offset, :] = keys
        self.values[..., prev : self.offset, :] = values
        return self.keys[..., : self.offset, :], self.values[..., : self.offset, :]

    def make_mask(self, n):
        return "causal"

    @property
    def state(self):
        return self.keys[..., : self.offset, :], self.values[..., : self.offset, :]

    @state.setter
    def state(self, v):
        self.keys, self.values = v
        self.offset = self.keys.shape[2]

    @property
    def meta_state(self):
        return ""

    @meta_state.setter
    def meta_state(self, v):
        assert not v

    def trim(self, n):
        n = min(self.offset, n)
        self.offset -= n
        return n


@contextlib.contextmanager
def wired_limit(model: nn.Module, streams: Optional[List[mx.Stream]] = None):
    """Keeps the model in memory where there is a Metal device."""
    if not mx.metal.is_available():
        yield
        return
    model_bytes = tree_reduce(
        lambda acc, x: acc + x.nbytes if isinstance(x, mx.array) else acc, model, 0
    )
    old_limit = mx.set_wired_limit(int(mx.device_info()["max_recommended_working_set_size"]))
    try:
        yield model_bytes
    finally:
        for s in streams or ():
            mx.synchronize(s)
        mx.set_wired_limit(old_limit)


def generate_step(
    prompt: mx.array,
    model: nn.Module,
    *,
    max_tokens: int = 32,
    sampler: Optional[Callable[[mx.array], mx.array]] = None,
    logits_processors: Optional[List[Callable]] = None,
    prompt_cache: Optional[Any] = None,
    prefill_step_size: int = 8,
) -> Generator[Tuple[mx.array, mx.array], None, None]:
    y, tokens = prompt, None
    prompt_cache = prompt_cache or [KVCache() for _ in model.layers]
    sampler = sampler or (lambda x: mx.argmax(x, axis=-1))

    def _step(y):
        nonlocal tokens
        with mx.stream(generation_stream):
            logits = model(y[None], cache=prompt_cache)
            logits = logits[:, -1, :]
            if logits_processors:
                tokens = mx.concat([tokens, y]) if tokens is not None else y
                for processor in logits_processors:
                    logits = processor(tokens, logits)
            logprobs = logits - mx.logsumexp(logits, keepdims=True)
            return sampler(logprobs), logprobs.squeeze(0)

    with mx.stream(generation_stream):
        while y.size > prefill_step_size:
            model(y[:prefill_step_size][None], cache=prompt_cache)
            mx.eval([c.state for c in prompt_cache])
            y = y[prefill_step_size:]
            mx.clear_cache()
    y, logprobs = _step(y)
    mx.async_eval(y, logprobs)
    n = 0
    while True:
        if n != max_tokens:
            next_y, next_logprobs = _step(y)
            mx.async_eval(next_y, next_logprobs)
        if n == 0:
            mx.eval(y)
        if n == max_tokens:
            break
        yield y.item(), logprobs
        n += 1
        y, logprobs = next_y, next_logprobs


def generate(model, prompt, **options):
    tokens, total = [], 0.0
    with wired_limit(model, [generation_stream]):
        for token, logprobs in generate_step(prompt, model, **options):
            total += logprobs[token].item()
            tokens.append(token)
    return tokens, total / len(tokens)


def encode(text):
    return mx.array([ord(c) - 32 for c in text])


def decode(tokens):
    return "".join(chr(t + 32) for t in tokens)


def small_model():
    mx.random.seed(7)
    config = json.loads('{"hidden_size": 64, "torch_dtype": "float32", "rope_theta": 1e4}')
    model = Model(ModelArgs.from_dict(config))
    # Larger weights than those of a fresh model, so that attention matters.
    model.update(tree_map(lambda p: p * 3 if p.ndim > 1 else p, model.parameters()))
    mx.eval(model.parameters())
    model.eval()
    return model


def main():
    model = small_model()
    print("parameters", sum(v.size for _, v in tree_flatten(model.parameters())), len(model.layers))
    print("first names", [k for k, _ in tree_flatten(model.parameters())][:4])
    print(model.layers[0].self_attn)

    prompt = encode("The quick brown fox jumps over the lazy dog")
    tokens, mean = generate(model, prompt)
    print("greedy", tokens, f"{mean:.4f}")
    print("text", repr(decode(tokens)))
    # Without a cache the same comes out.
    y = prompt[None]
    for _ in range(8):
        y = mx.concatenate([y, mx.argmax(model(y)[:, -1], axis=-1, keepdims=True)], axis=1)
    print("uncached", y[0, prompt.size :].tolist(), y.shape, y.dtype)

    scaled = Model(ModelArgs(rope_scaling={"factor": 8.0, "rope_type": "llama3"}))
    weights = dict(tree_flatten(model.parameters()))
    weights["layers.0.self_attn.rotary_emb.inv_freq"] = mx.zeros((8,))
    weights["lm_head.weight"] = mx.zeros((1,))
    scaled.load_weights(list(scaled.sanitize(weights).items()))
    print("scaled", generate(scaled, prompt, max_tokens=8)[0])

    targets = prompt[1:]
    losses = nn.losses.cross_entropy(model(prompt[None, :-1])[0], targets)
    print("perplexity", f"{mx.exp(losses.mean()).item():.3f}", f"{losses.max().item():.4f}")
    print("memory", mx.get_peak_memory() > 0, mx.get_active_memory() > 0, mx.get_cache_memory() >= 0)


if __name__ == "__main__":
    main()
