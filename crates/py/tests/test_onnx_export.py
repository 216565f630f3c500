"""Functions written as ONNX models, against the `onnx` package's checker and reference evaluator."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx.reference import ReferenceEvaluator  # noqa: E402

import cupola.core as mx  # noqa: E402
import cupola.onnx  # noqa: E402
from cupola import nn  # noqa: E402


def drawn(*shape, seed=0, dtype="f4", low=-2.0, high=2.0):
    numbers = np.random.default_rng(seed).uniform(low, high, shape)
    return mx.array(numbers.astype(dtype))


def check(fun, *args, opset=18, tol=2e-6, reference=True):
    """The model of `fun` is valid, and gives what `fun` gives: in the reference, and read again."""
    content = cupola.onnx.export(fun, *args, opset=opset)
    model = onnx.load_model_from_string(content)
    onnx.checker.check_model(model, full_check=True)
    want = fun(*args)
    want = [np.array(y) for y in (want if isinstance(want, (list, tuple)) else [want])]
    again = cupola.onnx.load(content)(*args)
    have = [[np.array(y) for y in (again if isinstance(again, tuple) else (again,))]]
    if reference:
        feeds = {f"input{n}": np.array(x) for n, x in enumerate(args)}
        have.append(ReferenceEvaluator(model).run(None, feeds))
    for found in have:
        for y, z in zip(found, want, strict=True):
            assert y.dtype == z.dtype and y.shape == z.shape, (y.dtype, y.shape, z.dtype, z.shape)
            np.testing.assert_allclose(y, z, rtol=tol, atol=tol)
    return model


X, Y = drawn(3, 4), drawn(3, 4, seed=1)
P = drawn(3, 4, seed=2, low=0.2, high=3.0)
I, J = mx.array([[7, -7, 0], [3, 5, -9]]), mx.array([[2, 2, 5], [-2, 0, 4]])

UNARY = """abs ceil cos cosh erf exp expm1 floor log1p negative round sigmoid sign sin sinh square tan tanh arctan
arcsinh""".split()
POSITIVE = "log log2 log10 rsqrt sqrt reciprocal".split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name):
    check(getattr(mx, name), X / 3 if name == "log1p" else X)


@pytest.mark.parametrize("name", POSITIVE)
def test_functions_of_positive_numbers(name):
    check(getattr(mx, name), P)


@pytest.mark.parametrize("name", "arcsin arccos arctanh".split())
def test_functions_of_small_numbers(name):
    check(getattr(mx, name), X / 3)


@pytest.mark.parametrize("name", "add subtract multiply divide maximum minimum arctan2 logaddexp remainder".split())
def test_functions_of_two_arrays(name):
    check(getattr(mx, name), X, Y)
    check(getattr(mx, name), X, Y[0])


@pytest.mark.parametrize("name", "add subtract multiply floor_divide remainder maximum minimum".split())
def test_integers(name):
    check(getattr(mx, name), I, J)


def test_bits():
    check(lambda a, b: (a & b, a | b, a ^ b), I, J)
    with pytest.raises(ValueError, match="opset 18"):
        cupola.onnx.export(lambda a, b: a & b, I, J, opset=17)


@pytest.mark.parametrize("name", "equal not_equal less less_equal greater greater_equal".split())
def test_comparisons(name):
    check(getattr(mx, name), mx.round(X), mx.round(Y))
    check(getattr(mx, name), X > 0, Y > 0)


def test_choices_and_truth():
    check(lambda a, b: mx.where(a > 0, b, 1.5), X, Y)
    check(lambda a, b: mx.logical_and(a > 0, mx.logical_not(b > 0)), X, Y)


@pytest.mark.parametrize("opset", range(17, 23))
def test_reductions(opset):
    for fun in (mx.sum, mx.mean, mx.max, mx.min, mx.prod, mx.var, mx.logsumexp):
        check(lambda x: (fun(x), fun(x, axis=1), fun(x, axis=0, keepdims=True)), X, opset=opset)
    check(lambda x: (mx.all(x > -1, axis=0), mx.any(x > 1)), X, opset=opset)
    check(lambda x: (mx.argmax(x, axis=1), mx.argmin(x)), X, opset=opset)


MOVED = {
    "reshape": lambda x: x.reshape(2, 6),
    "transpose": lambda x: x.T,
    "flip": lambda x: x[::-1, ::-1],
    "slice": lambda x: x[1:, ::2],
    "pad": lambda x: mx.pad(x, [(1, 2), (0, 1)], constant_values=7),
    "concatenate": lambda x: mx.concatenate([x, x * 2, mx.ones((3, 1))], axis=1),
    "stack": lambda x: mx.stack([x, x + 1], axis=1),
    "broadcast": lambda x: mx.broadcast_to(x[:, None], (3, 2, 4)),
    "split": lambda x: mx.split(x, 2, axis=1),
    "update": lambda x: x.at[1:, ::2].add(10),
    "tile": lambda x: mx.tile(x, (2, 3)),
    "repeat": lambda x: mx.repeat(x, 3, axis=0),
    "triangle": lambda x: mx.tril(x @ x.T),
    "roll": lambda x: mx.roll(x, 1, axis=1),
}


@pytest.mark.parametrize("name", MOVED)
def test_movement(name):
    check(MOVED[name], X)


def test_assignment_to_parts():
    def f(x):
        x[1, 1:3] = -5
        x[:, ::3] = mx.array([[1.0], [2.0], [3.0]])
        return x

    # The function changes what it is given, so each use has its own.
    content = cupola.onnx.export(f, X + 0)
    have = ReferenceEvaluator(onnx.load_model_from_string(content)).run(None, {"input0": np.array(X)})
    np.testing.assert_array_equal(have[0], np.array(f(X + 0)))


def test_places():
    index = mx.array([2, 0, 1, 2])
    check(lambda x, i: mx.take(x, i, axis=0), X, index)
    check(lambda x, i: mx.take(x, i, axis=1), X, index)
    check(lambda x, i: x[i, i], X, mx.array([0, 2]))
    check(lambda x, i: mx.take_along_axis(x, i, axis=1), X, mx.array([[3, 0], [1, 1], [2, 3]]))
    check(lambda x, i: x.at[i].add(1.0), X, mx.array([0, 2]))
    check(lambda x: mx.put_along_axis(x, mx.array([[1], [0], [2]]), mx.array(9.0), axis=1), X)


def test_order():
    check(lambda x: (mx.sort(x, axis=1), mx.argsort(x, axis=0), mx.topk(x, 2, axis=1)), X)
    check(lambda x: (mx.cumsum(x, axis=1), mx.cumsum(x, axis=0, reverse=True, inclusive=False)), X)


def test_products():
    check(lambda a, b: a @ b.T, X, Y, tol=1e-5)
    check(lambda a, b: mx.einsum("bij,bjk->bik", a, b), drawn(2, 3, 4), drawn(2, 4, 5, seed=3), tol=1e-5)
    check(lambda a, b: mx.matmul(a, b), I, mx.array([[1], [2], [3]]))


CONVOLUTIONS = {
    "plain": dict(),
    "strided": dict(stride=2, padding=1),
    "dilated": dict(kernel_dilation=2, padding=(2, 1)),
    "groups": dict(groups=2),
    "spread": dict(input_dilation=2),
    "flipped": dict(flip=True, padding=1),
}


@pytest.mark.parametrize("how", CONVOLUTIONS)
def test_convolutions(how):
    options = CONVOLUTIONS[how]
    x = drawn(2, 7, 8, 4)
    w = drawn(6, 3, 3, 4 // options.get("groups", 1), seed=4)
    check(lambda x, w: mx.conv_general(x, w, **options), x, w, tol=2e-5, reference=how != "groups")
    slope = mx.grad(lambda x, w: mx.square(mx.conv_general(x, w, **options)).sum())
    check(lambda x, w: slope(x, w), x, w, tol=2e-4, reference=False)


def test_the_gradient_of_a_kernel():
    x, w = drawn(2, 7, 8, 3), drawn(5, 3, 3, 3, seed=4)
    for options in (dict(), dict(stride=2, padding=1), dict(dilation=2)):
        slope = mx.grad(lambda w, x: mx.square(mx.conv2d(x, w, **options)).sum())
        check(lambda w, x: slope(w, x), w, x, tol=2e-4, reference=False)


def test_layers():
    mx.random.seed(3)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm(4), nn.GELU(),
        nn.AvgPool2d(2), lambda x: x.reshape(x.shape[0], -1), nn.Linear(4 * 7 * 7, 5), nn.Softmax(),
    )  # fmt: skip
    model.eval()
    made = check(model, drawn(2, 28, 28, 1), tol=2e-5)
    assert len(made.graph.initializer) > 6
    block = nn.TransformerEncoderLayer(8, 2, 16)
    block.eval()
    check(lambda x: block(x, None), drawn(2, 5, 8), tol=2e-5)


def test_attention_and_norms():
    q, k, v = (drawn(1, 2, 5, 4, seed=n) for n in range(3))
    check(lambda q, k, v: mx.fast.scaled_dot_product_attention(q, k, v, scale=0.5, mask="causal"),
          q, k, v, tol=1e-5)  # fmt: skip
    check(lambda x: mx.fast.rms_norm(x, mx.ones((4,)), 1e-5), X)
    check(lambda x: mx.fast.layer_norm(x, mx.ones((4,)), mx.zeros((4,)), 1e-5), X, tol=1e-5)


def test_half_types():
    x, w = X.astype(mx.float16), Y.astype(mx.float16)
    check(lambda x, w: mx.softmax(x @ w.T, axis=-1), x, w, tol=2e-3)
    check(lambda x: mx.exp(x).astype(mx.float32), X.astype(mx.float16))


def test_gradients_compiled_functions_and_names():
    loss = mx.compile(lambda w, x: mx.mean(mx.square(mx.tanh(x @ w))))
    check(lambda w, x: mx.value_and_grad(loss)(w, x), drawn(4, 2), X, tol=1e-5)
    content = cupola.onnx.export(
        lambda x, scale: {"a": x * scale, "b": x}, X, scale=Y, output_names=["scaled", "same"]
    )
    model = cupola.onnx.load(content)
    assert model.inputs == ["input0", "scale"] and model.outputs == ["scaled", "same"]


def test_a_file_is_whole(tmp_path):
    path = tmp_path / "model.onnx"
    cupola.onnx.save(path, mx.tanh, X)
    np.testing.assert_allclose(np.array(cupola.onnx.load(path)(X)), np.tanh(np.array(X)), rtol=1e-6)
    with pytest.raises(RuntimeError, match="nowhere"):
        cupola.onnx.save(tmp_path / "nowhere" / "model.onnx", mx.tanh, X)


REFUSED = {
    "fft": lambda x: mx.abs(mx.fft.fft(x)),
    "random_bits": lambda x: x + mx.random.uniform(shape=x.shape, key=mx.random.key(0) + x[0, 0].astype(mx.uint32)),
    "svd": lambda x: mx.linalg.svd(x, stream=mx.cpu)[1],
    "cumprod": lambda x: mx.cumprod(x),
    "erfinv": lambda x: mx.erfinv(x),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_operator(name):
    with pytest.raises(ValueError, match=f"onnx.export.*'{name}|onnx.export.*complex"):
        cupola.onnx.export(REFUSED[name], X)


def test_bad_arguments():
    with pytest.raises(ValueError, match="opset 16"):
        cupola.onnx.export(mx.tanh, X, opset=16)
    with pytest.raises(ValueError, match="twice"):
        cupola.onnx.export(mx.tanh, X, input_names=["x"], output_names=["x"])
    with pytest.raises(ValueError, match="names"):
        cupola.onnx.export(mx.tanh, X, input_names=["x", "y"])
    with pytest.raises(ValueError, match="names"):
        cupola.onnx.export(mx.tanh, X, output_names=[])
    with pytest.raises(ZeroDivisionError):
        cupola.onnx.export(lambda x: 1 / 0, X)
