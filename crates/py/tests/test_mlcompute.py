"""ML Compute's form: each layer beside NumPy, inference and training graphs."""

import io
import math

import mlx.core as mlx
import mlx.nn as mlx_nn
import numpy as np
import pytest

import cupola.core as mx
import cupola.data as data
import cupola.mlcompute as mlc

from conftest import DEVICE

TARGET = mx.Device(DEVICE, 0)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def apply(layer, *values):
    """What a layer makes of arrays in an inference graph."""
    names = {np.dtype("f4"): "Float32", np.dtype("i4"): "Int32", np.dtype("bool"): "Boolean"}
    tensors = [mlc.tensor(v.shape, names[v.dtype]) for v in values]
    g = mlc.graph()
    results = g.add_layer(layer, tensors)
    i = mlc.inference_graph([g])
    i.add_inputs({f"x{at}": t for at, t in enumerate(tensors)})
    assert i.compile(TARGET)
    i.execute({f"x{at}": v for at, v in enumerate(values)})
    i.wait()
    several = results if isinstance(results, list) else [results]
    for result in several:
        assert result.data.shape == result.shape and result.data.dtype == result.dtype
    arrays = [np.array(result.data) for result in several]
    return arrays if isinstance(results, list) else arrays[0]


def close(ours, theirs, rtol=1e-4, atol=1e-5):
    assert ours.shape == np.shape(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def test_the_program(capsys):
    """As it stands in the text that asked for this."""
    t1, t2, t3 = (mlc.tensor([6, 1], "Float32") for _ in range(3))
    values = (np.arange(1, 7, dtype="f4"), np.full(6, 0.1, "f4"), np.full(6, -0.1, "f4"))
    given = [mlc.tensor_data(v) for v in values]
    g = mlc.graph()
    first = g.add_layer(mlc.arithmetic_layer("add"), [t1, t2])
    result = g.add_layer(mlc.arithmetic_layer("add"), [first, t3])
    i = mlc.inference_graph([g])
    i.add_inputs({"data1": t1, "data2": t2, "data3": t3})
    assert i.compile(mlc.device("gpu"))
    is_there = mx.is_available(mx.gpu)
    assert capsys.readouterr().err.count("\n") == (0 if is_there else 1)
    seen = []
    done = lambda r, e, seconds: seen.append((r, e, seconds))  # noqa: E731
    i.execute({"data1": given[0], "data2": given[1], "data3": given[2]}, 0, on_done=done)
    i.wait()
    close(np.array(result.data), np.arange(1, 7, dtype="f4").reshape(6, 1))
    result.print()
    assert "Tensor(Float32[6, 1])" in capsys.readouterr().out
    ((r, e, seconds),) = seen
    assert r is result and e is None and seconds > 0


ERF = np.vectorize(math.erf)
SELU = 1.0507009873554805, 1.6732632423543772
ACTIVATIONS = {
    "none": ((), lambda x: x),
    "relu": ((0.1,), lambda x: np.where(x >= 0, x, 0.1 * x)),
    "linear": ((2.0, 1.0), lambda x: 2 * x + 1),
    "sigmoid": ((), lambda x: 1 / (1 + np.exp(-x))),
    "hard_sigmoid": ((0.3, 0.4), lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
    "tanh": ((2.0, 0.5), lambda x: 2 * np.tanh(0.5 * x)),
    "absolute": ((), np.abs),
    "soft_plus": ((0.5, 2.0), lambda x: 0.5 * np.log1p(np.exp(2 * x))),
    "soft_sign": ((), lambda x: x / (1 + np.abs(x))),
    "elu": ((0.7,), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
    "relun": ((0.2, 1.0), lambda x: np.minimum(np.where(x >= 0, x, 0.2 * x), 1)),
    "log_sigmoid": ((), lambda x: -np.log1p(np.exp(-x))),
    "selu": ((), lambda x: SELU[0] * np.where(x > 0, x, SELU[1] * np.expm1(x))),
    "celu": ((0.7,), lambda x: np.maximum(x, 0) + np.minimum(0.7 * np.expm1(x / 0.7), 0)),
    "hard_shrink": ((0.3,), lambda x: np.where(np.abs(x) > 0.3, x, 0)),
    "soft_shrink": ((0.3,), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.3, 0)),
    "tanh_shrink": ((), lambda x: x - np.tanh(x)),
    "threshold": ((0.2, -1.0), lambda x: np.where(x > 0.2, x, -1)),
    "gelu": ((), lambda x: 0.5 * x * (1 + ERF(x / math.sqrt(2)))),
    "hard_swish": ((), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "clamp": ((-0.5, 0.5), lambda x: np.clip(x, -0.5, 0.5)),
}


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activations(kind):
    parameters, reference = ACTIVATIONS[kind]
    x = draw(4, 5) * 2
    close(apply(mlc.activation_layer(kind, *parameters), x), reference(x))
    with pytest.raises(ValueError, match="parameters"):
        mlc.activation_layer("sigmoid", 1.0)
    with pytest.raises(ValueError, match="none of"):
        mlc.activation_layer("relu7")


BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "pow": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "multiply_no_nan": lambda x, y: np.where(y == 0, 0, x * y),
    "divide_no_nan": lambda x, y: np.where(y == 0, 0, x / np.where(y == 0, 1, y)),
}
UNARY = "floor ceil sqrt sin cos tan sinh cosh tanh exp exp2 log log2".split()
UNARY = {name: getattr(np, name) for name in UNARY} | {
    "round": np.round,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": lambda x: np.arccosh(x),
    "atanh": np.arctanh,
}


@pytest.mark.parametrize("operation", [*BINARY, *UNARY])
def test_arithmetic(operation):
    x, y = np.abs(draw(3, 4)) + 0.1, np.abs(draw(1, 4, seed=1)) + 0.1
    if operation in BINARY:
        if operation.endswith("no_nan"):
            x[0], y[0, 1] = np.inf, 0
        with np.errstate(all="ignore"):
            close(apply(mlc.arithmetic_layer(operation), x, y), BINARY[operation](x, y))
        return
    x = x + 1 if operation == "acosh" else np.minimum(x, 0.9)
    close(apply(mlc.arithmetic_layer(operation), x), UNARY[operation](x), rtol=1e-3)


def test_comparison_and_selection():
    x, y = np.array([1, 2, 3], "f4"), np.array([2, 2, 2], "f4")
    expected = {"equal": x == y, "not_equal": x != y, "less": x < y, "greater": x > y}
    expected |= {"less_or_equal": x <= y, "greater_or_equal": x >= y}
    for operation, wanted in expected.items():
        np.testing.assert_array_equal(apply(mlc.comparison_layer(operation), x, y), wanted)
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    logical = {"and": a & b, "or": a | b, "nand": ~(a & b), "nor": ~(a | b), "xor": a ^ b}
    for operation, wanted in logical.items():
        np.testing.assert_array_equal(apply(mlc.comparison_layer(f"logical_{operation}"), a, b), wanted)
    np.testing.assert_array_equal(apply(mlc.comparison_layer("logical_not"), a), ~a)
    picked = apply(mlc.selection_layer(), x > 1.5, x, y * 5)
    np.testing.assert_array_equal(picked, [10, 2, 3])


def windows(x, kernel, stride, dilation=1):
    """The windows of images: ``[N, C, H', W', k, k]``."""
    reach = (kernel - 1) * dilation + 1
    rows = range(0, x.shape[2] - reach + 1, stride)
    columns = range(0, x.shape[3] - reach + 1, stride)
    at = lambda i, j: x[:, :, i : i + reach : dilation, j : j + reach : dilation]  # noqa: E731
    return np.stack([np.stack([at(i, j) for j in columns], 2) for i in rows], 2)


def convolved(x, w, stride=1, dilation=1, groups=1):
    parts = zip(np.split(x, groups, 1), np.split(w, groups, 0))
    own = [np.einsum("nchwij,ocij->nohw", windows(a, w.shape[2], stride, dilation), b) for a, b in parts]
    return np.concatenate(own, 1)


def test_convolution():
    x, w, b = draw(2, 4, 9, 8), draw(6, 2, 3, 3, seed=1), draw(6, seed=2)
    layer = mlc.convolution_layer(
        4, 6, 3, stride=2, dilation=2, padding=2, groups=2, weights=w, biases=b
    )
    wide = np.pad(x, [(0, 0), (0, 0), (2, 2), (2, 2)])
    close(apply(layer, x), convolved(wide, w, 2, 2, 2) + b[:, None, None], 1e-3, 1e-4)
    # As many windows as strides fit: one more is added behind than before.
    w = draw(5, 4, 4, 4, seed=3)
    layer = mlc.convolution_layer(4, 5, 4, stride=3, padding="same", weights=w, has_biases=False)
    wide = np.pad(x, [(0, 0), (0, 0), (0, 1), (1, 1)])
    close(apply(layer, x), convolved(wide, w, 3), 1e-3, 1e-4)
    w = draw(8, 1, 3, 3, seed=4)
    layer = mlc.convolution_layer(4, 8, 3, kind="depthwise", weights=w, has_biases=False)
    close(apply(layer, x), convolved(x, w, groups=4), 1e-3, 1e-4)
    with pytest.raises(ValueError, match="3 groups do not divide"):
        mlc.convolution_layer(4, 6, 3, groups=3)
    with pytest.raises(ValueError, match="cannot have data of shape"):
        mlc.convolution_layer(4, 6, 3, weights=w)


@pytest.mark.parametrize("padding, kernel, stride", [("valid", 3, 2), (1, 3, 2), ("same", 4, 3), ("same", 2, 3)])
def test_transposed_convolution(padding, kernel, stride):
    x, w = draw(2, 3, 4, 5), draw(6, 3, kernel, kernel, seed=1)
    layer = mlc.convolution_layer(
        3, 6, kernel, stride, padding=padding, kind="transposed", weights=w, has_biases=False
    )
    rows, columns = ((size - 1) * stride + kernel for size in x.shape[2:])
    full = np.zeros((2, 6, max(rows, 4 * stride), max(columns, 5 * stride)), "f4")
    for i, j in np.ndindex(4, 5):
        at = np.s_[:, :, i * stride : i * stride + kernel, j * stride : j * stride + kernel]
        full[at] += np.einsum("nc,ocij->noij", x[:, :, i, j], w)
    if padding == "same":
        low = max(rows - 4 * stride, 0) // 2
        full = full[:, :, low : low + 4 * stride, low : low + 5 * stride]
    elif padding == 1:
        full = full[:, :, 1 : rows - 1, 1 : columns - 1]
    close(apply(layer, x), full, 1e-3, 1e-4)


def test_pooling():
    x = draw(2, 3, 7, 8)
    three = windows(x, 3, 2)
    close(apply(mlc.pooling_layer("max", 3, 2), x), three.max((-1, -2)))
    close(apply(mlc.pooling_layer("average", 3, 2), x), three.mean((-1, -2)))
    close(apply(mlc.pooling_layer("l2_norm", 3, 2), x), np.sqrt((three**2).sum((-1, -2))))
    border = [(0, 0), (0, 0), (1, 1), (1, 1)]
    low = windows(np.pad(x, border, constant_values=-np.inf), 3, 2)
    close(apply(mlc.pooling_layer("max", 3, 2, 1), x), low.max((-1, -2)))
    zero = windows(np.pad(x, border), 3, 2)
    counted = mlc.pooling_layer("average", 3, 2, 1, count_includes_padding=True)
    close(apply(counted, x), zero.mean((-1, -2)))
    ones = windows(np.pad(np.ones_like(x), border), 3, 2)
    close(apply(mlc.pooling_layer("average", 3, 2, 1), x), zero.sum((-1, -2)) / ones.sum((-1, -2)))
    assert apply(mlc.pooling_layer("max", 3, 2, "same"), x).shape == (2, 3, 4, 4)
    assert apply(mlc.pooling_layer("max", 3, 2, "same", dilation=(2, 1)), x).shape == (2, 3, 4, 4)
    apart = windows(x, 5, 2)[..., ::2, ::2]
    close(apply(mlc.pooling_layer("average", 3, 2, dilation=2), x), apart.mean((-1, -2)))
    close(apply(mlc.pooling_layer("l2_norm", 3, 2, dilation=2), x), np.sqrt((apart**2).sum((-1, -2))))


def test_normalizations():
    x, gamma, beta = draw(3, 4, 5, 6), draw(4, seed=1), draw(4, seed=2)
    each = lambda v: v.reshape(1, -1, 1, 1)  # noqa: E731

    def normed(x, axes):
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)

    mean, variance = draw(4, seed=3), np.abs(draw(4, seed=4)) + 0.5
    batch = mlc.batch_normalization_layer(4, gamma=gamma, beta=beta, mean=mean, variance=variance)
    wanted = (x - each(mean)) / np.sqrt(each(variance) + 1e-5) * each(gamma) + each(beta)
    close(apply(batch, x), wanted)
    instance = mlc.instance_normalization_layer(4, gamma=gamma, beta=beta)
    close(apply(instance, x), normed(x, (2, 3)) * each(gamma) + each(beta))
    group = mlc.group_normalization_layer(4, 2, gamma=gamma, beta=beta)
    rows = normed(x.reshape(3, 2, -1), (2,)).reshape(x.shape)
    close(apply(group, x), rows * each(gamma) + each(beta))
    gamma, beta = draw(5, 6, seed=1), draw(5, 6, seed=2)
    layer = mlc.layer_normalization_layer([5, 6], gamma=gamma, beta=beta)
    close(apply(layer, x), normed(x, (2, 3)) * gamma + beta)


def test_movement():
    x, y = draw(2, 4, 3, 5), draw(2, 2, 3, 5, seed=1)
    close(apply(mlc.concatenation_layer(1), x, y), np.concatenate([x, y], 1))
    index = np.random.default_rng(0).integers(0, 4, (2, 2, 3, 5)).astype("i4")
    close(apply(mlc.gather_layer(1), x, index), np.take_along_axis(x, index, 1))
    added, put = x.copy(), x.copy()
    for at in np.ndindex(*index.shape):
        added[at[0], index[at], at[2], at[3]] += y[at]
    close(apply(mlc.scatter_layer(1, "sum"), x, index, y), added)
    once = np.array(np.broadcast_to(np.array([3, 1]).reshape(1, 2, 1, 1), y.shape), "i4")
    put[:, [3, 1]] = y
    close(apply(mlc.scatter_layer(1), x, once, y), put)
    sides = dict(left=1, right=2, top=2, bottom=1)
    border = [(0, 0), (0, 0), (2, 1), (1, 2)]
    close(apply(mlc.padding_layer("zero", **sides), x), np.pad(x, border))
    close(apply(mlc.padding_layer("reflect", **sides), x), np.pad(x, border, mode="reflect"))
    close(apply(mlc.padding_layer("symmetric", **sides), x), np.pad(x, border, mode="symmetric"))
    seven = np.pad(x, border, constant_values=7)
    close(apply(mlc.padding_layer("constant", **sides, constant=7.0), x), seven)
    close(apply(mlc.reshape_layer([2, -1]), x), x.reshape(2, -1))
    close(apply(mlc.slice_layer([0, 1, 0, 0], [2, 4, 3, 5], [1, 2, 1, 3]), x), x[:, 1:4:2, :, ::3])
    for ours, theirs in zip(apply(mlc.split_layer(2, 1), x), np.split(x, 2, 1)):
        close(ours, theirs)
    parts = apply(mlc.split_layer([1, 3], 1), x)
    close(parts[1], x[:, 1:])
    with pytest.raises(ValueError, match=r"^node 'split_1' \(split\): split layer: the lengths"):
        apply(mlc.split_layer([1, 1], 1), x)
    close(apply(mlc.transpose_layer([0, 2, 3, 1]), x), x.transpose(0, 2, 3, 1))
    close(apply(mlc.upsample_layer([6, 10]), x), x.repeat(2, 2).repeat(2, 3))
    corners = apply(mlc.upsample_layer([5, 9], "linear", True), x)
    close(corners[:, :, ::2, ::2], x)
    close(corners[:, :, 1::2, ::2], (x[:, :, 1:] + x[:, :, :-1]) / 2)


def test_reductions_softmax_and_products():
    x = draw(2, 4, 3, 5)
    for kind in ("sum", "mean", "max", "min"):
        wanted = getattr(np, kind)(x, (1, 3), keepdims=True)
        close(apply(mlc.reduction_layer(kind, [1, 3]), x), wanted)
    close(apply(mlc.reduction_layer("l1_norm", 2), x), np.abs(x).sum(2, keepdims=True))
    for kind in ("argmax", "argmin"):
        ours = apply(mlc.reduction_layer(kind, 1), x)
        np.testing.assert_array_equal(ours, getattr(np, kind)(x, 1, keepdims=True))
    for kind in ("any", "all"):
        ours = apply(mlc.reduction_layer(kind, [2, 3]), x > 0)
        np.testing.assert_array_equal(ours, getattr(np, kind)(x > 0, (2, 3), keepdims=True))
    shares = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    close(apply(mlc.softmax_layer(), x), shares)
    close(apply(mlc.softmax_layer("log_softmax"), x), np.log(shares))
    rows = x.reshape(2, 4, 15)
    gram = np.einsum("nci,ndi->ncd", rows, rows)[:, None] / 15
    close(apply(mlc.gram_matrix_layer(1 / 15), x), gram)
    a, b = draw(2, 3, 4), draw(2, 5, 4, seed=1)
    close(apply(mlc.matmul_layer(0.5, transposes_y=True), a, b), 0.5 * a @ b.transpose(0, 2, 1))
    w, bias = draw(6, 60, seed=1), draw(6, seed=2)
    connected = mlc.fully_connected_layer(60, 6, w, bias)
    close(apply(connected, x), x.reshape(2, 60) @ w.T + bias, 1e-3)


def test_embedding():
    table = draw(5, 3)
    index = np.array([[0, 4], [2, 2]], "i4")
    close(apply(mlc.embedding_layer(5, 3, weights=table), index), table[index])
    norm = np.linalg.norm(table, axis=1, keepdims=True)
    limited = np.where(norm > 1, table / norm, table)[index]
    limited[1] = 0
    close(apply(mlc.embedding_layer(5, 3, 2, 1.0, weights=table), index), limited)


@pytest.mark.parametrize("steps", [5, 20])
def test_lstm(steps):
    x = draw(2, steps, 3)
    own = {f"input_weights_{i}{w}": draw(16, 3 if i == 0 else 8, seed=i) for i in (0, 1) for w in ("", "_reverse")}
    own |= {f"hidden_weights_{i}{w}": draw(16, 4, seed=i + 5) for i in (0, 1) for w in ("", "_reverse")}
    own |= {f"biases_{i}{w}": draw(16, seed=i + 9) for i in (0, 1) for w in ("", "_reverse")}
    layer = mlc.lstm_layer(3, 4, 2, is_bidirectional=True, returns_states=True, parameters=own)
    out, hidden, cell = apply(layer, x)

    def one(x, at):
        ref = mlx_nn.LSTM(x.shape[-1], 4)
        ref.Wx, ref.Wh = mlx.array(own[f"input_weights_{at}"]), mlx.array(own[f"hidden_weights_{at}"])
        ref.bias = mlx.array(own[f"biases_{at}"])
        return [np.array(states) for states in ref(mlx.array(np.ascontiguousarray(x)))]

    given, lasts = x, []
    for index in (0, 1):
        there, back = one(given, f"{index}"), one(given[:, ::-1], f"{index}_reverse")
        lasts += [(states[0][:, -1], states[1][:, -1]) for states in (there, back)]
        given = np.concatenate([there[0], back[0][:, ::-1]], -1)
    close(out, given)
    close(hidden, np.stack([h for h, _ in lasts]))
    close(cell, np.stack([c for _, c in lasts]))
    last = mlc.lstm_layer(3, 4, 2, is_bidirectional=True, returns_sequences=False, parameters=own)
    close(apply(last, x), np.concatenate([lasts[2][0], lasts[3][0]], -1))
    # Two halves, the second from where the first ended.
    single = {name: own[f"{name}_0"] for name in ("input_weights", "hidden_weights", "biases")}
    single = {f"{name}_0": value for name, value in single.items()}
    layer = mlc.lstm_layer(3, 4, returns_states=True, parameters=single)
    half, hidden, cell = apply(layer, x[:, :2])
    close(np.concatenate([half, apply(layer, x[:, 2:], hidden, cell)[0]], 1), apply(layer, x)[0])
    with pytest.raises(ValueError, match="no parameter 'biases_1'"):
        mlc.lstm_layer(3, 4, parameters={"biases_1": own["biases_1"]})


def test_many_steps_of_an_lstm_are_one_loop():
    layer = mlc.lstm_layer(3, 4)
    held = {name: tensor.data for name, tensor in layer.parameters.items()}

    def recorded(steps):
        drawing = io.StringIO()
        mx.export_to_dot(drawing, layer([mx.array(draw(2, steps, 3))], held, False)[0][0])
        return drawing.getvalue()

    assert "scan" not in recorded(15)
    assert recorded(16).count("scan") == 1
    assert len(recorded(100)) < len(recorded(15))


def test_multihead_attention():
    q, k, v = draw(2, 3, 8), draw(2, 5, 6, seed=1), draw(2, 5, 7, seed=2)
    layer = mlc.multihead_attention_layer(8, 2, 6, 7, has_attention_biases=True, adds_zero_attention=True)
    p = {name: np.array(tensor.data) for name, tensor in layer.parameters.items()}
    mask = np.array(np.broadcast_to(np.arange(5) < 4, (2, 1, 3, 5)))
    ours = apply(layer, q, k, v, mask)
    mapped = [x @ p[f"{part}_weights"].T + p[f"{part}_biases"] for x, part in ((q, "query"), (k, "key"), (v, "value"))]
    for at, part in ((1, "key"), (2, "value")):
        rows = np.stack([p[f"{part}_attention_biases"], np.zeros(8, "f4")])
        mapped[at] = np.concatenate([mapped[at], np.broadcast_to(rows, (2, 2, 8))], 1)
    a, b, c = (x.reshape(2, -1, 2, 4).transpose(0, 2, 1, 3) for x in mapped)
    scores = a @ b.transpose(0, 1, 3, 2) / 2
    scores[..., 4] = -np.inf
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    out = (shares @ c).transpose(0, 2, 1, 3).reshape(2, 3, 8)
    close(ours, out @ p["output_weights"].T + p["output_biases"])


def softmax(x):
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


LOSSES = {
    "mean_absolute_error": lambda x, y: np.abs(x - y),
    "mean_squared_error": lambda x, y: (x - y) ** 2,
    "sigmoid_cross_entropy": lambda x, y: np.log1p(np.exp(x)) - x * y,
    "hinge": lambda x, y: np.maximum(1 - x * y, 0),
    "huber": lambda x, y: np.where(np.abs(x - y) <= 0.5, (x - y) ** 2 / 2, 0.5 * np.abs(x - y) - 0.125),
    "log": lambda x, y: -(y * np.log(x) + (1 - y) * np.log(1 - x)),
    "softmax_cross_entropy": lambda x, y: -(y * np.log(softmax(x))).sum(1),
    "categorical_cross_entropy": lambda x, y: -(y * np.log(x)).sum(1),
    "cosine_distance": lambda x, y: 1 - (x * y).sum(1),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_losses(kind):
    x, y = draw(4, 3, 2), softmax(draw(4, 3, 2, seed=1))
    x = softmax(x) if kind in ("log", "categorical_cross_entropy") else x
    losses = LOSSES[kind](x, y)
    options = {"delta": 0.5} if kind == "huber" else {}
    close(apply(mlc.loss_layer(kind, "none", **options), x, y), losses, 1e-3, 1e-4)
    close(apply(mlc.loss_layer(kind, "sum", 3.0, **options), x, y), losses.sum() * 3, 1e-3)
    weights = np.abs(draw(*losses.shape, seed=2))
    close(apply(mlc.loss_layer(kind, **options), x, y, weights), (losses * weights).mean(), 1e-3)
    with pytest.raises(ValueError, match=f"node 'loss_{kind}_1'"):
        apply(mlc.loss_layer(kind), x, y[:3])


def test_labels_as_numbers_and_smoothed():
    x, ids = draw(4, 3), np.array([2, 0, 1, 1], "i4")
    shares = np.eye(3, dtype="f4")[ids]
    loss = mlc.loss_layer("softmax_cross_entropy", "none")
    for labels in (ids, ids.reshape(4, 1), shares):
        close(apply(loss, x, labels), -np.log(softmax(x))[np.arange(4), ids])
    smooth = mlc.loss_layer("softmax_cross_entropy", "none", label_smoothing=0.3)
    wanted = -((shares * 0.7 + 0.1) * np.log(softmax(x))).sum(1)
    close(apply(smooth, x, ids), wanted)


def yolo(x, y, anchors, classes, rescores):
    """The loss of one image, as loops."""

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    def overlap(a, b):
        sides = [min(a[i] + a[i + 2] / 2, b[i] + b[i + 2] / 2) - max(a[i] - a[i + 2] / 2, b[i] - b[i + 2] / 2) for i in (0, 1)]
        both = max(sides[0], 0) * max(sides[1], 0)
        return both / (a[2] * a[3] + b[2] * b[3] - both)

    height, width = x.shape[1:]
    x, y = (v.reshape(len(anchors), 5 + classes, height, width) for v in (x, y))
    places = list(np.ndindex(len(anchors), height, width))
    found, meant = {}, {}
    for a, i, j in places:
        p, t = x[a, :, i, j], y[a, :, i, j]
        found[a, i, j] = (sigmoid(p[0]) + j, sigmoid(p[1]) + i, *(np.exp(p[2:4]) * anchors[a]))
        if t[4] == 1:
            meant[a, i, j] = (t[0] + j, t[1] + i, t[2], t[3])
    loss = 0.0
    for at in places:
        a, i, j = at
        p, t, confidence = x[a, :, i, j], y[a, :, i, j], sigmoid(x[a, 4, i, j])
        best = max(overlap(found[at], box) for box in meant.values())
        if at in meant:
            loss += 10 * ((sigmoid(p[:2]) - t[:2]) ** 2).sum()
            loss += 10 * ((p[2:4] - np.log(t[2:4] / anchors[a])) ** 2).sum()
            loss += 2 * -(t[5:] * np.log(softmax(p[None, 5:])[0])).sum()
            best = overlap(found[at], meant[at])
        if at in meant or best > 0.7:
            loss += 100 * (confidence - (best if rescores else 1)) ** 2
        elif best < 0.3:
            loss += 5 * confidence**2
    return loss


@pytest.mark.parametrize("rescores", [True, False])
def test_yolo_loss(rescores):
    anchors, classes = np.array([[1.0, 1.5], [2.0, 1.0]], "f4"), 3
    x = draw(2, 2 * 8, 3, 4)
    y = np.zeros_like(x).reshape(2, 2, 8, 3, 4)
    for n, a, i, j in ((0, 0, 1, 2), (0, 1, 2, 0), (1, 1, 0, 3)):
        y[n, a, :, i, j] = [0.3, 0.6, 1.2, 1.4, 1, 0, 1, 0]
    # A prediction that lies on a box beside its own cell's.
    x[0, :4, 1, 2] = [-0.85, 0.4, 0.2, -0.07]
    x[0, 8:12, 1, 2] = [-0.85, 0.4, -0.5, 0.34]
    y = y.reshape(x.shape)
    layer = mlc.yolo_loss_layer(anchors.tolist(), classes, rescores=rescores, reduction="none")
    wanted = [yolo(x[n].astype("f8"), y[n], anchors, classes, rescores) for n in range(2)]
    close(apply(layer, x, y), np.array(wanted, "f4"), 1e-3)


def blobs():
    """Points of two kinds with a curved line between them."""
    points = draw(256, 2)
    return points, ((points**2).sum(1) > 1.2).astype("i4")


def small(optimizer, **options):
    x, labels = mlc.tensor(["batch", 2], name="x"), mlc.tensor(["batch"], "Int32")
    g = mlc.graph()
    layers = [mlc.fully_connected_layer(2, 16), mlc.fully_connected_layer(16, 2)]
    hidden = g.add_layer(mlc.activation_layer("tanh"), g.add_layer(layers[0], x))
    out = g.add_layer(layers[1], hidden)
    t = mlc.training_graph([g], mlc.loss_layer("softmax_cross_entropy"), optimizer)
    t.add_inputs({"x": x}, loss_labels={"labels": labels})
    return g, x, out, layers, t


OPTIMIZERS = {
    "sgd": lambda: mlc.sgd_optimizer(0.5, momentum=0.9),
    "adam": lambda: mlc.adam_optimizer(0.02),
    "adamw": lambda: mlc.adamw_optimizer(0.02, clipping="global_norm", maximum_norm=1.0),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_small_network_learns(name):
    mx.random.seed(0)
    points, kinds = blobs()
    g, x, out, layers, t = small(OPTIMIZERS[name]())
    assert t.compile(TARGET)
    losses = []
    for _ in range(150):
        assert t.execute({"x": points}, {"labels": kinds}, on_done=lambda r, e, s: losses.append(r.data))
    t.synchronize_updates()
    assert losses[-1].item() < 0.3 * losses[0].item()
    # What was learnt is in the tensors of the layers: another graph of them predicts with it.
    i = mlc.inference_graph([g])
    i.add_inputs({"x": x})
    i.compile(TARGET)
    i.execute({"x": points[:100]}, 100)
    i.wait()
    assert (np.array(out.data).argmax(1) == kinds[:100]).mean() > 0.9
    # And it follows what is learnt or bound later.
    before = np.array(out.data)
    layers[1].weights.bind(np.zeros((2, 16), "f4"))
    i.execute({"x": points[:100]})
    i.wait()
    assert np.ptp(np.array(out.data), axis=0).max() == 0 and np.ptp(before, axis=0).min() > 0


def test_steps_apart_are_the_step_at_once():
    points, kinds = blobs()
    weights = {}
    for apart in (False, True):
        mx.random.seed(1)
        g, x, out, layers, t = small(mlc.adam_optimizer(0.05, regularization="l2", regularization_scale=0.01))
        t.compile(TARGET)
        for _ in range(5):
            if apart:
                t.execute_forward({"x": points}, {"labels": kinds})
                t.execute_gradient()
                t.execute_optimizer_update()
            else:
                t.execute({"x": points}, {"labels": kinds})
        t.synchronize_updates()
        weights[apart] = [np.array(layer.weights.data) for layer in layers]
        if apart:
            gradient = t.gradient_for(layers[0].weights)
            assert gradient.data.shape == (16, 2) and np.abs(np.array(gradient.data)).max() > 0
    for once, apart in zip(weights[False], weights[True]):
        np.testing.assert_allclose(once, apart, rtol=1e-4, atol=1e-6)


def test_user_gradients_and_stopped_ones():
    x = mlc.tensor([4, 3])
    first = mlc.fully_connected_layer(3, 3, weights=draw(3, 3), has_biases=False)
    second = mlc.fully_connected_layer(3, 2, weights=draw(2, 3, seed=1), has_biases=False)
    for stops in (False, True):
        g = mlc.graph()
        middle = g.add_layer(first, x)
        out = g.add_layer(second, middle)
        t = mlc.training_graph([g], optimizer=mlc.sgd_optimizer(0.0))
        t.add_inputs({"x": x})
        if stops:
            t.stop_gradient_for([middle])
        gradient = t.allocate_user_gradient(out)
        assert gradient.shape == out.shape
        t.compile(TARGET)
        value = draw(4, 3, seed=2)
        t.execute_forward({"x": value})
        t.wait()
        w1, w2 = np.array(first.weights.data), np.array(second.weights.data)
        close(np.array(out.data), value @ w1.T @ w2.T)
        with pytest.raises(ValueError, match="no data"):
            t.execute_gradient()
        given = draw(4, 2, seed=3)
        gradient.bind(given)
        t.execute_gradient()
        t.wait()
        close(np.array(t.gradient_for(second.weights).data), given.T @ (value @ w1.T))
        wanted = np.zeros((3, 3)) if stops else (given @ w2).T @ value
        close(np.array(t.gradient_for(first.weights).data), wanted)


def test_dropout_and_batch_normalization_train():
    x, y = mlc.tensor(["n", 64]), mlc.tensor(["n", 64])
    g = mlc.graph()
    scale = mlc.arithmetic_layer("multiply")
    factor = mlc.tensor([1, 64], data=np.ones((1, 64), "f4"))
    norm = mlc.batch_normalization_layer(64, momentum=0.5)
    dropped = g.add_layer(mlc.dropout_layer(0.5), x)
    out = g.add_layer(norm, g.add_layer(scale, [dropped, factor]))
    t = mlc.training_graph([g], mlc.loss_layer("mean_squared_error"), mlc.sgd_optimizer(0.1))
    t.add_inputs({"x": x}, {"y": y})
    t.add_outputs({"dropped": dropped})
    t.compile(TARGET)
    value = np.ones((8, 64), "f4")
    t.execute_forward({"x": value}, {"y": value})
    t.wait()
    kept = np.array(dropped.data)
    assert set(np.unique(kept)) == {0, 2} and 0.3 < (kept > 0).mean() < 0.7
    np.testing.assert_allclose(np.array(norm.states["mean"].data), 0.5 * kept.mean(0), rtol=1e-4)
    np.testing.assert_allclose(np.array(norm.states["variance"].data), 0.5 + 0.5 * kept.var(0), rtol=1e-3)
    # The gradient is that of what dropped out on the forward way.
    t.execute_gradient()
    t.wait()
    normed = (kept - kept.mean(0)) / np.sqrt(kept.var(0) + 1e-5)
    wanted = (2 * (normed - value) * normed).sum(0) / normed.size
    close(np.array(t.gradient_for(norm.parameters["gamma"]).data), wanted, 1e-3, 1e-4)
    i = mlc.inference_graph([g])
    i.add_inputs({"x": x})
    i.add_outputs({"dropped": dropped})
    i.compile(TARGET)
    i.execute({"x": value})
    i.wait()
    np.testing.assert_array_equal(np.array(dropped.data), value)


def test_what_does_not_fit_says_so():
    g, x = mlc.graph(), mlc.tensor([2, 3])
    with pytest.raises(ValueError, match=r"^node 'matmul_1' \(matmul\): "):
        g.add_layer(mlc.matmul_layer(), [x, mlc.tensor([2, 3])])
    with pytest.raises(ValueError, match="takes 2 tensors, not 1"):
        g.add_layer(mlc.matmul_layer(), [x])
    y = g.add_layer(mlc.softmax_layer(), [x])
    i = mlc.inference_graph([g])
    with pytest.raises(ValueError, match="no input"):
        i.compile(TARGET)
    i = mlc.inference_graph([g])
    i.add_inputs({"x": x})
    with pytest.raises(ValueError, match="not compiled"):
        i.execute({"x": draw(2, 3)})
    i.compile(TARGET)
    with pytest.raises(ValueError, match="no data"):
        y.print()
    with pytest.raises(ValueError, match="shape"):
        i.execute({"x": draw(2, 4)})
    with pytest.raises(ValueError, match="'z' is none of x"):
        i.execute({"z": draw(2, 3)})
    with pytest.raises(ValueError, match="5 rows"):
        i.execute({"x": draw(2, 3)}, 5)
    with pytest.raises(ValueError, match="Float32"):
        i.execute({"x": np.zeros((2, 3), "i4")})
    i.execute({})
    with pytest.raises(ValueError, match="feed 'x' is missing"):
        i.wait()
    seen = []
    i.execute({}, on_done=lambda r, e, seconds: seen.append((r, str(e))))
    i.wait()
    assert seen[0][0] is None and "feed 'x' is missing" in seen[0][1]
    with pytest.raises(ValueError, match="data type 'Float31'"):
        mlc.tensor([1], "Float31")
    with pytest.raises(ValueError, match="none of cpu"):
        mlc.device("tpu")


def test_the_articles_network_learns_digits():
    """Three convolutions and three linear maps, on few drawn digits of half their size."""
    mx.random.seed(0)
    sets = []
    for part in data.digits(train=600, test=200):
        images, labels = (np.array(own) for own in part.arrays())
        sets.append(((images.transpose(0, 3, 1, 2)[:, :, ::2, ::2] - 0.13) / 0.25, labels.astype("i4")))
    x, labels = mlc.tensor(["batch", 1, 14, 14]), mlc.tensor(["batch"], "Int32")
    g, h, channels = mlc.graph(), x, 1
    for wide in (20, 50, 100):
        h = g.add_layer(mlc.convolution_layer(channels, wide, 5, padding=2), h)
        h = g.add_layer(mlc.pooling_layer("max", 2), g.add_layer(mlc.activation_layer("relu"), h))
        channels = wide
    h = g.add_layer(mlc.dropout_layer(0.3), g.add_layer(mlc.fully_connected_layer(100, 50), h))
    h = g.add_layer(mlc.activation_layer("relu"), h)
    h = g.add_layer(mlc.dropout_layer(0.3), g.add_layer(mlc.fully_connected_layer(50, 25), h))
    out = g.add_layer(mlc.dropout_layer(0.3), g.add_layer(mlc.fully_connected_layer(25, 10), h))
    loss = mlc.loss_layer("softmax_cross_entropy")
    t = mlc.training_graph([g], loss, mlc.adam_optimizer(0.003))
    t.add_inputs({"x": x}, loss_labels={"labels": labels})
    t.compile(TARGET)
    images, kinds = sets[0]
    order = np.random.default_rng(0)
    for _ in range(6):
        for rows in np.split(order.permutation(600), 30):
            t.execute({"x": images[rows]}, {"labels": kinds[rows]}, batch_size=20)
    t.synchronize_updates()
    i = mlc.inference_graph([g])
    i.add_inputs({"x": x})
    i.compile(TARGET)
    images, kinds = sets[1]
    i.execute({"x": images})
    i.wait()
    accuracy = (np.array(out.data).argmax(1) == kinds).mean()
    # One in ten without having learnt.
    assert accuracy > 0.45, accuracy
