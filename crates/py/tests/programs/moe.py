"""A mixture of experts: products that gather, functions with their own gradients, compiled steps."""

import math
import os
import tempfile
from functools import partial
from typing import Optional

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten, tree_map, tree_map_with_path, tree_unflatten


def _gather_sort(x, indices):
    """Rows in the order of their experts, so that each expert's lie beside each other."""
    *_, m = indices.shape
    indices = indices.flatten()
    order = mx.argsort(indices)
    inv_order = mx.argsort(order)
    return x.flatten(0, -3)[order // m], indices[order], inv_order


def _scatter_unsort(x, inv_order, shape=None):
    x = x[inv_order]
    return mx.unflatten(x, 0, shape) if shape is not None else x


class SwitchLinear(nn.Module):
    def __init__(self, input_dims: int, output_dims: int, num_experts: int, bias: bool = True):
        super().__init__()
        scale = math.sqrt(1 / input_dims)
        self.weight = mx.random.uniform(-scale, scale, (num_experts, output_dims, input_dims))
        if bias:
            self.bias = mx.zeros((num_experts, output_dims))

    @property
    def num_experts(self):
        return self.weight.shape[0]

    def __call__(self, x, indices, sorted_indices=False):
        x = mx.gather_mm(
            x, self["weight"].swapaxes(-1, -2), rhs_indices=indices, sorted_indices=sorted_indices
        )
        if "bias" in self:
            x = x + mx.expand_dims(self["bias"][indices], -2)
        return x

    def to_quantized(self, group_size: int = 64, bits: int = 4, mode: str = "affine"):
        num_experts, output_dims, input_dims = self.weight.shape
        ql = QuantizedSwitchLinear(input_dims, output_dims, num_experts, False, group_size, bits, mode)
        ql.weight, ql.scales, *biases = mx.quantize(self.weight, group_size, bits, mode=mode)
        ql.biases = biases[0] if biases else None
        if "bias" in self:
            ql.bias = self.bias
        return ql


class QuantizedSwitchLinear(nn.Module):
    def __init__(self, input_dims, output_dims, num_experts, bias=True, group_size=64, bits=4, mode="affine"):
        super().__init__()
        scale = math.sqrt(1 / input_dims)
        self.weight, self.scales, *biases = mx.quantize(
            mx.random.uniform(-scale, scale, (num_experts, output_dims, input_dims)),
            group_size=group_size, bits=bits, mode=mode,
        )  # fmt: skip
        self.biases = biases[0] if biases else None
        if bias:
            self.bias = mx.zeros((num_experts, output_dims))
        self.group_size, self.bits, self.mode = group_size, bits, mode
        self.freeze()

    def __call__(self, x, indices, sorted_indices=False):
        x = mx.gather_qmm(
            x, self["weight"], self["scales"], self.get("biases"), rhs_indices=indices, transpose=True,
            group_size=self.group_size, bits=self.bits, mode=self.mode, sorted_indices=sorted_indices,
        )  # fmt: skip
        if "bias" in self:
            x = x + mx.expand_dims(self["bias"][indices], -2)
        return x


@partial(mx.compile, shapeless=True)
def clipped_swiglu(x_linear, x_glu, alpha: float = 1.702, limit: float = 7.0):
    x_glu = mx.clip(x_glu, a_min=None, a_max=limit)
    x_linear = mx.clip(x_linear, a_min=-limit, a_max=limit)
    return x_glu * mx.sigmoid(alpha * x_glu) * (x_linear + 1)


class SwitchGLU(nn.Module):
    def __init__(self, dims, hidden, num_experts, bias=False):
        super().__init__()
        self.gate_proj = SwitchLinear(dims, hidden, num_experts, bias=bias)
        self.up_proj = SwitchLinear(dims, hidden, num_experts, bias=bias)
        self.down_proj = SwitchLinear(hidden, dims, num_experts, bias=bias)

    def __call__(self, x, indices):
        x = mx.expand_dims(x, (-2, -3))
        do_sort = indices.size >= 64
        idx, inv_order = indices, None
        if do_sort:
            x, idx, inv_order = _gather_sort(x, indices)
        x_up = self.up_proj(x, idx, sorted_indices=do_sort)
        x_gate = self.gate_proj(x, idx, sorted_indices=do_sort)
        x = self.down_proj(clipped_swiglu(x_up, x_gate), idx, sorted_indices=do_sort)
        if do_sort:
            x = _scatter_unsort(x, inv_order, indices.shape)
        return x.squeeze(-2)


@mx.custom_function
def scale_gradient(x, factor):
    return x


@scale_gradient.vjp
def scale_gradient_vjp(primals, cotangent, output):
    _, factor = primals
    return cotangent * factor, mx.zeros_like(factor)


@mx.custom_function
def straight_through(logits):
    """One-hot choices forward, probabilities backward."""
    return (logits == logits.max(axis=-1, keepdims=True)).astype(logits.dtype)


@straight_through.vjp
def straight_through_vjp(primals, cotangent, _):
    _, vjps = mx.vjp(partial(mx.softmax, axis=-1), [primals], [cotangent])
    return vjps[0]


@straight_through.jvp
def straight_through_jvp(primals, tangents):
    _, jvps = mx.jvp(lambda x: mx.softmax(x, axis=-1), [primals], [tangents])
    return jvps[0]


class MoE(nn.Module):
    def __init__(self, dims=32, hidden=32, num_experts=8, top_k=2):
        super().__init__()
        self.top_k, self.num_experts = top_k, num_experts
        self.gate = nn.Linear(dims, num_experts, bias=False)
        self.switch_mlp = SwitchGLU(dims, hidden, num_experts, bias=True)
        self.shared = nn.Linear(dims, dims)
        self.correction = mx.zeros((num_experts,))

    def __call__(self, x):
        gates = self.gate(x)
        scores = mx.softmax(gates, axis=-1, precise=True)
        k = self.top_k
        inds = mx.stop_gradient(mx.argpartition(-(scores + self.correction), kth=k - 1, axis=-1)[..., :k])
        # The order within a partition is nobody's promise.
        inds = mx.sort(inds, axis=-1)
        chosen = mx.take_along_axis(scores, inds, axis=-1)
        chosen = chosen / chosen.sum(axis=-1, keepdims=True)
        y = (self.switch_mlp(x, inds) * chosen[..., None]).sum(axis=-2)
        load = mx.zeros((self.num_experts,)).at[inds.flatten()].add(1.0) / inds.size
        balance = self.num_experts * (load * scores.reshape(-1, self.num_experts).mean(axis=0)).sum()
        return y + scale_gradient(self.shared(x), mx.array(0.5)), balance, load


class Model(nn.Module):
    def __init__(self, vocab=48, dims=32, layers=2, **options):
        super().__init__()
        self.embed = nn.Embedding(vocab, dims)
        self.conv = [nn.Conv1d(dims, dims, 3) for _ in range(layers)]
        self.layers = [MoE(dims, **options) for _ in range(layers)]
        self.norms = [nn.RMSNorm(dims) for _ in range(layers)]
        self.out = nn.Linear(dims, vocab)

    def __call__(self, tokens):
        x, total, loads = self.embed(tokens), 0.0, []
        for conv, norm, layer in zip(self.conv, self.norms, self.layers):
            x = x + nn.silu(conv(mx.pad(x, [(0, 0), (2, 0), (0, 0)])))
            y, balance, load = layer(norm(x))
            x, total = x + y, total + balance
            loads.append(load)
        return self.out(x), total, mx.stack(loads)


def batches(count, key):
    for key in mx.random.split(key, count):
        a, b = mx.random.split(key)
        start = mx.random.randint(0, 48, (8, 1), key=a)
        rule = mx.random.randint(1, 4, (8, 1), key=b)
        yield (start + rule * mx.arange(13)) % 48


def main():
    mx.random.seed(6)
    mx.set_memory_limit(2 << 30)
    model = Model()
    mx.eval(model.parameters())
    shapes = tree_map(lambda p: p.shape, model.layers[0].switch_mlp.parameters())
    print("shapes", dict(tree_flatten(shapes, is_leaf=lambda v: isinstance(v, tuple))))

    x = mx.random.normal((4, 5, 32))
    glu = model.layers[0].switch_mlp
    few = mx.random.randint(0, 8, (4, 5, 2))
    y = glu(x, few)
    one = x[1, 2]
    e = few[1, 2, 0].item()
    hidden = [one @ p.weight[e].T + p.bias[e] for p in (glu.up_proj, glu.gate_proj)]
    alone = clipped_swiglu(*hidden) @ glu.down_proj.weight[e].T + glu.down_proj.bias[e]
    print("one expert", y.shape, mx.allclose(y[1, 2, 0], alone, atol=1e-5).item())
    many = mx.random.randint(0, 8, (4, 5, 4))
    print("sorted", mx.allclose(glu(x, many)[..., :2, :], glu(x, many[..., :2]), atol=1e-5).item())
    order, inverse = _gather_sort(x[:, :, None, None], many)[1:]
    print("order", order[:12].tolist(), inverse[:6].tolist())

    optimizer = optim.Adafactor(learning_rate=1e-2, relative_step=False, scale_parameter=False)
    optimizer.init(model.trainable_parameters())

    def loss_fn(tokens):
        logits, balance, load = model(tokens[:, :-1])
        return nn.losses.cross_entropy(logits, tokens[:, 1:], reduction="mean") + 0.01 * balance, load

    state = [model.state, optimizer.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(tokens):
        (loss, load), grads = nn.value_and_grad(model, loss_fn)(tokens)
        grads = tree_map_with_path(lambda k, g: 0.5 * g if "gate" in k else g, grads)
        optimizer.update(model, grads)
        # Experts that are asked too often are asked less.
        for layer, l in zip(model.layers, load):
            layer.correction = layer.correction + 0.01 * mx.sign(mx.mean(l) - l)
        return loss, load

    losses = []
    for tokens in batches(8, mx.random.key(1)):
        loss, load = step(tokens)
        mx.eval(state, loss)
        losses.append(loss.item())
    print("losses", " ".join(f"{l:.3f}" for l in losses), optimizer.state["step"].item())
    print("load", load.shape, f"{load.sum().item():.3f}")
    print("state", [k for k, _ in tree_flatten(optimizer.state["embed"])])

    z = mx.array([[0.1, 2.0, -1.0], [0.5, 0.4, 0.3]])
    print("hard", straight_through(z).tolist())
    soft = mx.grad(lambda z: (straight_through(z) * mx.array([1.0, 2.0, 3.0])).sum())(z)
    print("soft", [[round(v, 4) for v in row] for row in soft.tolist()])
    _, tangent = mx.jvp(straight_through, [z], [mx.ones_like(z) * mx.arange(3)])
    print("tangent", " ".join(f"{v:.4f}" for v in tangent[0].flatten().tolist()))
    slopes = mx.grad(lambda a: (scale_gradient(a, mx.array(0.25)) ** 2).sum())(mx.array([1.0, 3.0]))
    print("scaled", slopes.tolist())

    def block(params, x):
        return mx.tanh(x @ params["w"]) @ params["w"].T

    def deep(params, x, wrap):
        for _ in range(4):
            x = wrap(block)(params, x)
        return x.square().sum()

    params = {"w": 0.3 * mx.random.normal((32, 16))}
    plain = mx.grad(partial(deep, wrap=lambda f: f))(params, one)["w"]
    kept = mx.grad(partial(deep, wrap=mx.checkpoint))(params, one)["w"]
    print("checkpoint", f"{mx.linalg.norm(plain).item():.4f}", mx.allclose(plain, kept).item())

    model.eval()
    tokens = next(batches(1, mx.random.key(2)))
    full = loss_fn(tokens)[0].item()
    for mode, group_size, bits in (("affine", 32, 8), ("affine", 32, 4), ("mxfp4", 32, 4)):
        small = Model()
        small.load_weights(tree_flatten(model.parameters()))
        nn.quantize(small, group_size, bits, mode=mode, class_predicate=lambda p, m: isinstance(m, SwitchLinear))
        logits, _, _ = small(tokens[:, :-1])
        loss = nn.losses.cross_entropy(logits, tokens[:, 1:], reduction="mean").item()
        layer = small.layers[0].switch_mlp.up_proj
        print(mode, bits, layer.weight.shape, layer.scales.shape, layer.scales.dtype, f"{loss:.3f}", abs(loss - full) < 0.5)
    rows = mx.random.normal((6, 1, 32))
    w, scales, biases = mx.quantize(model.layers[0].switch_mlp.up_proj.weight, 32, 4)
    at = mx.array([3, 3, 0, 1, 7, 7])
    slope = mx.grad(lambda r: mx.gather_qmm(r, w, scales, biases, rhs_indices=at, group_size=32, bits=4).square().sum())(rows)
    print("slope", slope.shape, f"{slope.sum().item():.3f}")
    ragged = mx.segmented_mm(mx.arange(12.0).reshape(2, 6), mx.ones((6, 3)), mx.array([[0, 2], [2, 6]]))
    print("segments", ragged.shape, ragged[:, :, 0].tolist())

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.safetensors")
        mx.save_safetensors(path, dict(tree_flatten(optimizer.state)))
        again = optim.Adafactor(learning_rate=1e-2)
        again.state = tree_unflatten(list(mx.load(path).items()))
        print("saved", again.step.item(), len(tree_flatten(again.state)) == len(tree_flatten(optimizer.state)))

    @mx.compile
    def traced(x, scale: Optional[float] = None, names=("a",)):
        return {"y": [x * (scale or 1.0), x.sum()], "n": len(names)}

    for call in (lambda: traced(one), lambda: traced(one + 1), lambda: traced(one, 2.0), lambda: traced(x)):
        out = call()
    print("compiled", out["n"], out["y"][0].shape)
    mx.disable_compile()
    print("plain", f"{traced(one, scale=3.0)['y'][1].item():.4f}")
    mx.enable_compile()
    mx.synchronize()


if __name__ == "__main__":
    main()
