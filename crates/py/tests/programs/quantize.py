"""A tool that quantises a language model: mixed bits, perplexity before and after, files, and back."""

import argparse
import copy
import glob
import json
import tempfile
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten, tree_map, tree_reduce, tree_unflatten

MAX_SHARD = 24 << 10


class MLP(nn.Module):
    def __init__(self, dims, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(dims, hidden, bias=False)
        self.up_proj = nn.Linear(dims, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dims, bias=False)

    def __call__(self, x):
        return self.down_proj(nn.silu(self.gate_proj(x)) * self.up_proj(x))


class Mixer(nn.Module):
    """A gated running mean in the place of attention."""

    def __init__(self, dims):
        super().__init__()
        self.in_proj = nn.Linear(dims, 2 * dims)
        self.conv = nn.Conv1d(dims, dims, 4, groups=dims, bias=False)
        self.out_proj = nn.Linear(dims, dims, bias=False)

    def __call__(self, x):
        x, gate = mx.split(self.in_proj(x), 2, axis=-1)
        x = self.conv(mx.pad(x, [(0, 0), (3, 0), (0, 0)]))
        counts = mx.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
        x = x + mx.cumsum(x, axis=1) / counts
        return self.out_proj(x * mx.sigmoid(gate))


class Block(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.mixer, self.mlp = Mixer(dims), MLP(dims, 2 * dims)
        self.norm1, self.norm2 = nn.RMSNorm(dims), nn.RMSNorm(dims)

    def __call__(self, x):
        x = x + self.mixer(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, vocab_size=64, dims=64, num_layers=4):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab_size, dims)
        self.layers = [Block(dims) for _ in range(num_layers)]
        self.norm = nn.RMSNorm(dims)
        self.lm_head = nn.Linear(dims, vocab_size, bias=False)

    def __call__(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))


def corpus(count, length, seed):
    """Sequences of a random walk on a ring that prefers two directions."""
    key = mx.random.key(seed)
    k1, k2, k3 = mx.random.split(key, 3)
    steps = mx.where(mx.random.bernoulli(0.9, (count, length), key=k1), 1, 7)
    start = mx.random.randint(0, 64, (count, 1), key=k2)
    noise = mx.random.bernoulli(0.02, (count, length), key=k3).astype(mx.int32)
    return (start + mx.cumsum(steps + 3 * noise, axis=1)) % 64


def loss_fn(model, tokens):
    return nn.losses.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:], reduction="mean")


def perplexity(model, data):
    model.eval()
    losses = [nn.losses.cross_entropy(model(s[:, :-1]).astype(mx.float32), s[:, 1:]).flatten() for s in data.split(2)]
    losses = mx.concatenate(losses)
    mean = losses.mean().item()
    error = mx.sqrt(mx.var(losses, ddof=1)).item() / losses.size**0.5
    return mx.exp(mx.array(mean)).item(), mx.exp(mx.array(mean)).item() * error


def compute_bits_per_weight(model):
    model_bytes = tree_reduce(
        lambda acc, x: acc + x.nbytes if isinstance(x, mx.array) else acc, model, 0
    )
    model_params = 0
    leaves = tree_flatten(model.leaf_modules(), is_leaf=nn.Module.is_module)
    for _, m in leaves:
        for name, p in m.parameters().items():
            if isinstance(m, (nn.QuantizedLinear, nn.QuantizedEmbedding)) and name == "weight":
                model_params += p.size * 32 // m.bits
            elif name not in ("scales", "biases"):
                model_params += p.size
    return model_bytes * 8 / model_params


def quantize_model(model, config, group_size=32, bits=4, mode="affine", predicate=None):
    quantized_config = copy.deepcopy(config)
    quantized_config["quantization"] = {"group_size": group_size, "bits": bits, "mode": mode}

    def wrapped(path, module):
        if not hasattr(module, "to_quantized") or module.weight.shape[-1] % group_size != 0:
            return False
        chosen = predicate(path, module) if predicate else True
        if isinstance(chosen, dict):
            quantized_config["quantization"][path] = chosen
        return chosen

    nn.quantize(model, group_size, bits, mode=mode, class_predicate=wrapped)
    return model, quantized_config


def mixed_bits(path, module):
    """More bits for the ends of the model and for what goes back to the residual stream."""
    if "lm_head" in path or "embed_tokens" in path:
        return {"bits": 8, "group_size": 64}
    index = int(path.split(".")[1]) if "layers" in path else 0
    if path.endswith(("down_proj", "out_proj")) and (index == 0 or index == 3):
        return {"bits": 6, "group_size": 32}
    return {"bits": 3, "group_size": 32}


def make_shards(weights, limit=MAX_SHARD):
    shards, shard, size = [], {}, 0
    for k, v in weights.items():
        if size + v.nbytes > limit and shard:
            shards.append(shard)
            shard, size = {}, 0
        shard[k] = v
        size += v.nbytes
    return shards + [shard]


def save_model(folder: Path, model, config):
    weights = dict(tree_flatten(model.parameters()))
    shards = make_shards(weights)
    index = {"metadata": {"total_size": sum(v.nbytes for v in weights.values())}, "weight_map": {}}
    for i, shard in enumerate(shards):
        name = f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
        mx.save_safetensors(str(folder / name), shard, metadata={"format": "mlx"})
        index["weight_map"].update({k: name for k in shard})
    index["weight_map"] = {k: index["weight_map"][k] for k in sorted(index["weight_map"])}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=4))
    (folder / "config.json").write_text(json.dumps(config, indent=4, sort_keys=True))
    return len(shards), index["metadata"]["total_size"]


def load_model(folder: Path, lazy=False):
    config = json.loads((folder / "config.json").read_text())
    weights = {}
    for file in sorted(glob.glob(str(folder / "model*.safetensors"))):
        weights.update(mx.load(file))
    model = Model(**config["model"])
    if (quantization := config.get("quantization")) is not None:

        def class_predicate(p, m):
            if p in quantization:
                return quantization[p]
            return hasattr(m, "to_quantized") and f"{p}.scales" in weights

        nn.quantize(
            model,
            group_size=quantization["group_size"],
            bits=quantization["bits"],
            mode=quantization["mode"],
            class_predicate=class_predicate,
        )
    model.eval()
    model.load_weights(list(weights.items()), strict=True)
    if not lazy:
        mx.eval(model.parameters())
    return model, config


def dequantize_model(model):
    layers = []
    for name, module in model.named_modules():
        if not isinstance(module, (nn.QuantizedLinear, nn.QuantizedEmbedding)):
            continue
        weight = mx.dequantize(
            module.weight, module.scales, module.get("biases"), module.group_size, module.bits, module.mode
        )
        if isinstance(module, nn.QuantizedLinear):
            layer = nn.Linear(weight.shape[1], weight.shape[0], bias="bias" in module)
            if "bias" in module:
                layer.bias = module.bias
        else:
            layer = nn.Embedding(*weight.shape)
        layer.weight = weight
        layers.append((name, layer))
    if layers:
        model.update_modules(tree_unflatten(layers))
    return model


def sensitivities(model, data, bits=(3, 6)):
    """How much the loss grows where each layer alone has fewer bits, to first order."""
    _, grads = nn.value_and_grad(model, loss_fn)(model, data)

    def qdq(w, b):
        return mx.dequantize(*mx.quantize(w, 32, b), group_size=32, bits=b)

    found = {}
    grads = dict(tree_flatten(grads))
    for name, w in tree_flatten(model.parameters()):
        if w.ndim == 2 and w.shape[-1] % 32 == 0:
            low, high = (qdq(w, b) for b in bits)
            found[name] = (mx.abs(grads[name] * (low - high)).sum() / w.size * 1e6).item()
    return found


def awq_scale(model, data):
    """Scales channels of the norms into the layers after them, so that large inputs round less."""
    x = model.embed_tokens(data[:, :-1])
    for layer in model.layers:
        h = layer.norm1(x)
        magnitude = mx.abs(h).reshape(-1, h.shape[-1]).mean(axis=0)
        s = mx.clip(mx.sqrt(magnitude), 1e-2, None)
        s = s / mx.sqrt(s.max() * s.min())
        layer.norm1.weight = layer.norm1.weight / s
        layer.mixer.in_proj.weight = layer.mixer.in_proj.weight * s[None]
        x = layer(x)
    mx.eval(model.parameters())


def train(model, steps=24):
    optimizer = optim.AdamW(learning_rate=optim.exponential_decay(5e-3, 0.97), weight_decay=0.01)
    step = nn.value_and_grad(model, loss_fn)
    data = corpus(128, 17, seed=0)
    losses = []
    for i in range(steps):
        batch = mx.take(data, mx.arange(i * 16, i * 16 + 16) % 128, axis=0)
        loss, grads = step(model, batch)
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        losses.append(loss.item())
    print("losses", " ".join(f"{l:.3f}" for l in losses[::6]), optimizer.step.item())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float16", choices=["float16", "bfloat16", "float32"])
    args = parser.parse_args()
    mx.random.seed(0)
    mx.set_cache_limit(64 << 20)
    model, config = Model(), {"model": {"dims": 64, "num_layers": 4}, "model_type": "mixer"}
    train(model)
    data = corpus(16, 17, seed=1)
    print("data", data.shape, data.dtype, data[0].tolist())
    base = tree_flatten(model.parameters())
    print("full", "%.3f ± %.3f" % perplexity(model, data), f"{compute_bits_per_weight(model):.3f}")

    dtype = getattr(mx, args.dtype)
    half = Model(**config["model"])
    half.load_weights([(k, v.astype(dtype)) for k, v in base])
    cast = {p: v.dtype == dtype for p, v in tree_flatten(half.parameters())}
    print("half", "%.2f" % perplexity(half, data)[0], f"{compute_bits_per_weight(half):.2f}", all(cast.values()))

    found = sensitivities(model, data)
    for name, value in sorted(found.items(), key=lambda kv: -kv[1])[:5]:
        print("sensitive", name, f"{value:.2f}")

    recipes = {
        "8": dict(bits=8, group_size=64),
        "4": dict(bits=4),
        "2": dict(bits=2),
        "mixed": dict(predicate=mixed_bits),
        "linear": dict(bits=5, predicate=lambda p, m: isinstance(m, nn.Linear)),
        "mxfp4": dict(mode="mxfp4"),
        "nvfp4": dict(mode="nvfp4", group_size=16),
        "mxfp8": dict(mode="mxfp8", bits=8),
    }
    for name, recipe in recipes.items():
        model = Model(**config["model"])
        model.load_weights(base)
        model, quantized_config = quantize_model(model, config, **recipe)
        ppl, _ = perplexity(model, data)
        kinds = sorted({type(m).__name__ for m in model.modules() if "Quantized" in type(m).__name__})
        print(name, f"{ppl:.3f}", f"{compute_bits_per_weight(model):.4f}", kinds)
        with tempfile.TemporaryDirectory() as folder:
            shards, size = save_model(Path(folder), model, quantized_config)
            loaded, read = load_model(Path(folder), lazy=name == "4")
            print("  files", shards, size, len(read["quantization"]), f"{perplexity(loaded, data)[0]:.3f}")
        same = tree_map(lambda a, b: mx.array_equal(a, b).item(), model.parameters(), loaded.parameters())
        print("  same", all(v for _, v in tree_flatten(same)))
        head = loaded.layers[0].mixer.in_proj
        print("  layer", head, head.scales.dtype, head.weight.dtype, head.get("biases") is None)
        back = dequantize_model(loaded)
        print("  back", f"{perplexity(back, data)[0]:.2f}", type(back.layers[0].mixer.in_proj).__name__)

    model = Model(**config["model"])
    model.load_weights(base)
    awq_scale(model, data)
    print("scaled", f"{perplexity(model, data)[0]:.3f}")
    model, _ = quantize_model(model, config, bits=3)
    print("scaled 3", f"{perplexity(model, data)[0]:.3f}")
    error = None
    try:
        nn.quantize(Model(dims=48), group_size=64)
    except ValueError as e:
        error = type(e).__name__
    print("error", error)


if __name__ == "__main__":
    main()
