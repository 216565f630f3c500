"""Fine-tuning of a small language model with LoRA: freezing, adapters in files, fusing."""

import argparse
import json
import math
import tempfile
import types
from functools import partial
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.nn.utils import average_gradients
from mlx.utils import tree_flatten, tree_map, tree_map_with_path, tree_unflatten

CONFIG = {"rank": 4, "scale": 10.0, "dropout": 0.05, "num_layers": 2, "keys": ["attention.query_proj", "attention.value_proj"]}


class LoRALinear(nn.Module):
    @staticmethod
    def from_base(linear, r=8, dropout=0.0, scale=20.0):
        output_dims, input_dims = linear.weight.shape
        if isinstance(linear, nn.QuantizedLinear):
            input_dims *= 32 // linear.bits
        lora = LoRALinear(input_dims, output_dims, r, dropout, scale)
        lora.linear = linear
        return lora

    def fuse(self, dequantize: bool = False):
        linear = self.linear
        bias = "bias" in linear
        weight, dtype = linear.weight, linear.weight.dtype
        quantized = isinstance(linear, nn.QuantizedLinear)
        if quantized:
            dtype = linear.scales.dtype
            weight = mx.dequantize(
                weight, linear.scales, linear.biases, linear.group_size, linear.bits
            )
        output_dims, input_dims = weight.shape
        fused = nn.Linear(input_dims, output_dims, bias=bias)
        delta = ((self.scale * self.lora_b.T) @ self.lora_a.T).astype(dtype)
        fused.weight = weight + delta
        if bias:
            fused.bias = linear.bias
        if quantized and not dequantize:
            fused = nn.QuantizedLinear.from_linear(fused, linear.group_size, linear.bits)
        return fused

    def __init__(self, input_dims, output_dims, r=8, dropout=0.0, scale=20.0, bias=False):
        super().__init__()
        self.linear = nn.Linear(input_dims, output_dims, bias=bias)
        self.dropout = nn.Dropout(p=dropout)
        self.scale = scale
        s = 1 / math.sqrt(input_dims)
        self.lora_a = mx.random.uniform(low=-s, high=s, shape=(input_dims, r))
        self.lora_b = mx.zeros(shape=(r, output_dims))

    def __call__(self, x):
        y = self.linear(x)
        z = (self.dropout(x) @ self.lora_a) @ self.lora_b
        return y + (self.scale * z).astype(x.dtype)


class DoRALinear(LoRALinear):
    """The update changes directions; magnitudes are learnt apart."""

    @staticmethod
    def from_base(linear, r=8, dropout=0.0, scale=20.0):
        output_dims, input_dims = linear.weight.shape
        dora = DoRALinear(input_dims, output_dims, r, dropout, scale)
        dora.linear = linear
        dora.m = mx.linalg.norm(linear.weight, axis=1)
        return dora

    def __call__(self, x):
        y = x @ self.linear.weight.T
        out = y + (self.scale * ((self.dropout(x) @ self.lora_a) @ self.lora_b)).astype(x.dtype)
        adapted = self.linear.weight + (self.scale * self.lora_b.T) @ self.lora_a.T
        denom = mx.linalg.norm(mx.stop_gradient(adapted), axis=1)
        out = (self.m / denom).astype(x.dtype) * out
        return out + self.linear.bias if "bias" in self.linear else out


class LanguageModel(nn.Module):
    def __init__(self, vocab_size=64, num_layers=3, dims=32, num_heads=4):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, dims)
        self.pe = nn.SinusoidalPositionalEncoding(dims)
        self.transformer = nn.TransformerEncoder(num_layers, dims, num_heads, norm_first=True)
        self.out_proj = nn.Linear(dims, vocab_size)

    @property
    def layers(self):
        return self.transformer.layers

    def __call__(self, x):
        L = x.shape[1]
        mask = nn.MultiHeadAttention.create_additive_causal_mask(L)
        h = self.embedding(x)
        h = h + self.pe(mx.arange(L))
        return self.out_proj(self.transformer(h, mask))


def linear_to_lora_layers(model, num_layers, config, use_dora=False):
    """Replaces the linear layers that `keys` name in the last blocks."""
    kind = DoRALinear if use_dora else LoRALinear
    for block in model.layers[-max(num_layers, 0) :]:
        lora_layers = [
            (k, kind.from_base(m, r=config["rank"], scale=config["scale"], dropout=config["dropout"]))
            for k, m in block.named_modules()
            if k in config["keys"]
        ]
        if lora_layers:
            block.update_modules(tree_unflatten(lora_layers))


def print_trainable_parameters(model):
    total = sum(v.size for _, v in tree_flatten(model.parameters()))
    trainable = sum(v.size for _, v in tree_flatten(model.trainable_parameters()))
    print(f"Trainable parameters: {100 * trainable / total:.3f}% ({trainable}/{total})")


def grad_checkpoint(layer):
    """Activations of all layers of this type are computed again in the backward pass."""
    fn = type(layer).__call__

    def checkpointed_fn(model, *args, **kwargs):
        def inner_fn(params, *args, **kwargs):
            model.update(params)
            return fn(model, *args, **kwargs)

        return mx.checkpoint(inner_fn)(model.trainable_parameters(), *args, **kwargs)

    type(layer).__call__ = checkpointed_fn
    return fn


def default_loss(model, batch, lengths):
    inputs, targets = batch[:, :-1], batch[:, 1:]
    logits = model(inputs)
    steps = mx.arange(1, targets.shape[1] + 1)
    mask = mx.logical_and(steps >= lengths[:, 0:1], steps <= lengths[:, 1:])
    ce = nn.losses.cross_entropy(logits, targets) * mask
    ntoks = mask.sum()
    return ce.astype(mx.float32).sum() / ntoks, ntoks


def sequences(count, seed):
    """Rows that count up in steps of their own, of different lengths."""
    rng = np.random.RandomState(seed)
    rows = []
    for _ in range(count):
        start, step, length = rng.randint(0, 64), rng.randint(1, 4), rng.randint(6, 16)
        rows.append(([(start + i * step) % 64 for i in range(length)], rng.randint(0, 3)))
    return rows


def iterate_batches(dataset, batch_size, seed=None):
    order = sorted(range(len(dataset)), key=lambda i: len(dataset[i][0]))
    batches = [order[i : i + batch_size] for i in range(0, len(order) - batch_size + 1, batch_size)]
    rng = np.random.RandomState(seed)
    while True:
        for i in rng.permutation(len(batches)):
            rows, offsets = zip(*(dataset[j] for j in batches[i]))
            lengths = [len(r) for r in rows]
            width = 1 + 8 * ((max(lengths) + 7) // 8)
            array = np.zeros((batch_size, width), np.int32)
            for j, row in enumerate(rows):
                array[j, : lengths[j]] = row
            yield mx.array(array), mx.array(list(zip(offsets, lengths)))


def train(model, optimizer, dataset, steps, batch_size=8, accumulate=1, seed=0):
    world = mx.distributed.init()
    if world.size() > 1:
        print(f"Node {world.rank()} of {world.size()}")
    loss_value_and_grad = nn.value_and_grad(model, default_loss)
    state = [model.state, optimizer.state, mx.random.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(batch, prev_grad, do_update):
        (lvalue, toks), grad = loss_value_and_grad(model, *batch)
        if prev_grad is not None:
            grad = tree_map(lambda x, y: x + y, grad, prev_grad)
        if do_update:
            grad = average_gradients(grad)
            if accumulate > 1:
                grad = tree_map(lambda x: x / accumulate, grad)
            optimizer.update(model, grad)
            grad = None
        return lvalue, toks, grad

    model.train()
    losses, trained, grad = 0, 0, None
    report = []
    for it, batch in zip(range(1, steps + 1), iterate_batches(dataset, batch_size, seed)):
        lvalue, toks, grad = step(batch, grad, it % accumulate == 0)
        losses += lvalue
        trained += toks
        mx.eval(state, losses, trained, grad)
        if it % (steps // 2) == 0:
            report.append(round(mx.distributed.all_sum(losses, stream=mx.cpu).item() / (steps // 2), 4))
            losses = 0
    print("train", report, "tokens", trained.item(), "rate", f"{optimizer.learning_rate.item():.6f}")


def evaluate(model, dataset, batches=4):
    model.eval()
    total, ntokens = mx.array(0.0), mx.array(0)
    for _, batch in zip(range(batches), iterate_batches(dataset, 8, seed=1)):
        losses, toks = default_loss(model, *batch)
        total += losses * toks
        ntokens += toks
        mx.eval(total, ntokens)
    return (total / ntokens).item()


def main():
    parser = argparse.ArgumentParser(description="LoRA or QLoRA fine-tuning")
    parser.add_argument("--iters", type=int, default=24)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    np.random.seed(args.seed)
    mx.random.seed(args.seed)

    base, data = LanguageModel(), sequences(96, 0)
    mx.eval(base.parameters())
    schedule = optim.join_schedules(
        [optim.linear_schedule(1e-5, 4e-3, 6), optim.cosine_decay(4e-3, args.iters)], [6]
    )
    train(base, optim.AdamW(schedule, weight_decay=0.01), data, args.iters)
    print("base", f"{evaluate(base, data):.4f}")
    weights = tree_flatten(base.parameters())

    def fresh(quantized=False):
        model = LanguageModel()
        model.load_weights(weights)
        if quantized:
            nn.quantize(model, group_size=32, bits=4, class_predicate=lambda p, m: isinstance(m, nn.Linear))
        model.freeze()
        return model

    other = [(row[::-1], offset) for row, offset in sequences(96, 5)]
    for name in ("lora", "dora", "qlora", "checkpointed"):
        mx.random.seed(args.seed + 1)
        model = fresh(name == "qlora")
        # Dropout draws again where activations are computed again.
        config = {**CONFIG, "dropout": 0.0} if name == "checkpointed" else CONFIG
        linear_to_lora_layers(model, config["num_layers"], config, use_dora=name == "dora")
        print_trainable_parameters(model)
        names = [k for k, _ in tree_flatten(model.trainable_parameters())]
        print(name, len(names), names[0], names[-1])
        before = evaluate(model, other)
        kept = grad_checkpoint(model.layers[0]) if name == "checkpointed" else None
        optimizer = optim.Adam(learning_rate=5e-3, bias_correction=name == "lora")
        train(model, optimizer, other, args.iters, accumulate=2 if name == "lora" else 1)
        if kept:
            type(model.layers[0]).__call__ = kept
        after = evaluate(model, other)
        print(name, f"{before:.4f}", "to", f"{after:.4f}", after < before)

        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            adapters = dict(tree_flatten(model.trainable_parameters()))
            mx.save_safetensors(str(folder / "adapters.safetensors"), adapters)
            (folder / "adapter_config.json").write_text(json.dumps(CONFIG, indent=4))
            again = fresh(name == "qlora")
            config = types.SimpleNamespace(**json.loads((folder / "adapter_config.json").read_text()))
            linear_to_lora_layers(again, config.num_layers, vars(config), name == "dora")
            again.load_weights(str(folder / "adapters.safetensors"), strict=False)
            try:
                again.load_weights(str(folder / "adapters.safetensors"))
            except ValueError as error:
                print("strict", str(error).splitlines()[0][:40])
        print("loaded", f"{evaluate(again, other):.4f}")
        if name == "dora":
            continue
        fused = [(n, m.fuse()) for n, m in again.named_modules() if isinstance(m, LoRALinear)]
        again.update_modules(tree_unflatten(fused))
        print("fused", len(fused), type(fused[0][1]).__name__, f"{evaluate(again, other):.2f}")

    model = fresh()
    print("frozen", len(tree_flatten(model.trainable_parameters())))
    model.layers[-1].unfreeze(keys="bias")
    print("biases", [k for k, _ in tree_flatten(model.trainable_parameters())])
    model.unfreeze()
    model.freeze(recurse=True, keys=["weight"])
    model.apply_to_modules(lambda k, m: m.unfreeze() if k.endswith("ln1") else None)
    print("some", len(tree_flatten(model.trainable_parameters())))
    norms = tree_map_with_path(lambda k, v: (k, round(mx.linalg.norm(v).item(), 2)), model.layers[0].parameters())
    print("norms", norms["ln1"], norms["attention"]["query_proj"])


if __name__ == "__main__":
    main()
