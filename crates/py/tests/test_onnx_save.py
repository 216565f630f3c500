"""Models of ONNX that were written: checked by `onnx`, and run by ONNX Runtime."""

import io

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

import cupola.core as mx  # noqa: E402
import cupola.nn as nn  # noqa: E402
import cupola.onnx  # noqa: E402

rng = np.random.default_rng(3)


def floats(*shape):
    return mx.array(rng.uniform(0.2, 0.9, shape).astype("f4"))


def check(fun, *args, opset=18, rtol=2e-5, atol=1e-6):
    file = io.BytesIO()
    cupola.onnx.save(file, fun, *args, opset=opset)
    model = onnx.load_from_string(file.getvalue())
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == opset
    session = ort.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    given = {f"input{n}": np.array(a) for n, a in enumerate(args)}
    want = fun(*args)
    want = want if isinstance(want, (tuple, list)) else [want]
    have = session.run(None, given)
    for a, b in zip(have, want, strict=True):
        b = np.array(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    # What was written is read.
    again = cupola.onnx.load(file.getvalue())(*args)
    again = again if isinstance(again, tuple) else [again]
    for a, b in zip(again, want, strict=True):
        np.testing.assert_allclose(np.array(a), np.array(b), rtol=rtol, atol=atol)


UNARY = """negative abs sign square floor ceil round sqrt rsqrt exp expm1 log log2 log10 log1p sin cos tan
arcsin arccos arctan sinh cosh tanh arcsinh arctanh sigmoid erf logical_not""".split()


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    x = floats(2, 3)
    check(getattr(mx, name), x > 0.5 if name == "logical_not" else x)


BINARY = """add subtract multiply divide floor_divide remainder power maximum minimum logaddexp equal not_equal less
less_equal greater greater_equal""".split()


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_binary(name, dtype):
    if dtype == "int32" and name in ("divide", "logaddexp", "power"):
        pytest.skip("for floats")
    a, b = floats(2, 3) * 9 - 4, floats(3) * 5 + 1
    if name == "power":
        a = mx.abs(a)
    check(getattr(mx, name), a.astype(getattr(mx, dtype)), b.astype(getattr(mx, dtype)))


FUNCTIONS = {
    "softmax": (lambda x: mx.softmax(x, axis=-1), (2, 5)),
    "reductions": (lambda x: (x.sum(), x.max(axis=0), x.min(axis=1), mx.prod(x), mx.var(x)), (3, 4)),
    "truths": (lambda x: (mx.any(x > 0.5, axis=0), mx.all(x > 0.1)), (3, 4)),
    "places": (lambda x: (mx.argmax(x, axis=1), mx.argsort(x, axis=0), mx.sort(x)), (3, 4)),
    "part of an order": (lambda x: mx.topk(x, 2), (3, 5)),
    "running sums": (lambda x: (mx.cumsum(x, axis=0), mx.cumsum(x, reverse=True, inclusive=False)), (3, 4)),
    "movement": (lambda x: mx.transpose(x)[::-1, 1:3].reshape(2, 4)[None], (3, 4)),
    "joins": (lambda x: mx.concatenate([x, x * 2], axis=1), (3, 4)),
    "pads": (lambda x: mx.pad(x, ((1, 2), (0, 3)), constant_values=7), (3, 4)),
    "rows": (lambda x: x[mx.array([2, 0, 2])], (3, 4)),
    "columns": (lambda x: x[:, mx.array([3, 1])], (3, 4)),
    "elements": (lambda x: x[mx.array([2, 0]), mx.array([3, 1])], (3, 4)),
    "along an axis": (lambda x: mx.take_along_axis(x, mx.array([[1], [0], [2]]), axis=1), (3, 4)),
    "scattered rows": (lambda x: x.at[mx.array([2, 0, 2])].add(mx.ones((3, 4))), (3, 4)),
    "a part replaced": (lambda x: _put(x), (3, 4)),
    "counted": (lambda x: x + mx.arange(4), (3, 4)),
    "chosen": (lambda x: mx.where(x > 0.5, x, 0), (3, 4)),
    "casts": (lambda x: ((x * 9).astype(mx.int32), (x > 0.5).astype(mx.float16)), (3, 4)),
    "a gradient": (lambda x: mx.grad(lambda v: (mx.tanh(v) ** 2).sum())(x), (3, 4)),
    "compiled": (mx.compile(lambda x: mx.exp(x) * 2), (3, 4)),
    "checkpointed": (mx.checkpoint(lambda x: mx.sin(x)), (3, 4)),
    "a number": (lambda x: x * 0 + 3, (3, 4)),
    "nothing of the input": (lambda x: mx.ones((2, 2)), (3, 4)),
    "as it is": (lambda x: (x, x), (3, 4)),
}


def _put(x):
    x = mx.array(x)
    x[1:3, ::2] = 0
    return x


@pytest.mark.parametrize("opset", [17, 18, 22])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, opset):
    fun, shape = FUNCTIONS[name]
    check(fun, floats(*shape), opset=opset)


LAYERS = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)), (4, 6)),
    "convolution": (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), (2, 9, 8, 4)),
    "dilated convolution": (lambda: nn.Conv1d(3, 5, 3, dilation=2), (2, 11, 3)),
    "transposed convolution": (lambda: nn.ConvTranspose2d(3, 5, 3, stride=2, padding=1), (2, 5, 6, 3)),
    "dilated pooling": (lambda: nn.Sequential(nn.MaxPool2d(2, 1, dilation=(2, 3)), nn.AvgPool2d(3, 2, padding=1, dilation=2)), (2, 12, 12, 3)),
    "pooling": (lambda: nn.Sequential(nn.MaxPool2d(2, 2), nn.AvgPool2d(3, 2, padding=1)), (2, 12, 12, 3)),
    "batch norm": (lambda: nn.BatchNorm(3).eval(), (2, 5, 3)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 5, 4)),
    "attention": (lambda: _attention(), (2, 5, 8)),
    "recurrent": (lambda: _first(nn.LSTM(4, 6)), (2, 5, 4)),
}


def _attention():
    attention = nn.MultiHeadAttention(8, 2)
    return lambda x: attention(x, x, x)


def _first(layer):
    return lambda x: layer(x)[0]


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    make, shape = LAYERS[name]
    check(make(), floats(*shape), rtol=1e-4, atol=1e-5)


def test_names_and_what_is_refused(tmp_path):
    path = tmp_path / "m.onnx"
    cupola.onnx.save(path, lambda x: x + 1, floats(2), input_names=["x"], output_names=["y"])
    model = onnx.load(path)
    assert [i.name for i in model.graph.input] == ["x"]
    assert [o.name for o in model.graph.output] == ["y"]
    for names in (["a", "b"], []):
        with pytest.raises(ValueError, match="names for 1 inputs"):
            cupola.onnx.save(path, mx.abs, floats(2), input_names=names)
    with pytest.raises(ValueError, match="opset 16"):
        cupola.onnx.save(path, mx.abs, floats(2), opset=16)
    with pytest.raises(ValueError, match="'erfinv'"):
        cupola.onnx.save(path, lambda x: mx.erfinv(x) + 1, floats(2))
    # What was there is as it was.
    assert onnx.load(path) == model


def loops(x, w):
    step = lambda c, r: (mx.tanh(c @ w + r), c.sum())
    last, sums = mx.scan(step, mx.zeros(4), x, reverse=True)
    far = mx.while_loop(lambda c: mx.abs(c).sum() < 50, lambda c: c * 2 + w.sum(), last)
    near = mx.fori_loop(0, 3, lambda i, c: c + i, last)
    which = mx.switch(sums.sum().astype(mx.int32), [mx.sin, mx.cos, lambda x: x * w[0]], near)
    return far, sums, which, mx.cond(last.sum() > 0, lambda: last, lambda: last - 1)


@pytest.mark.parametrize("sign", [1, -1])
def test_loops_and_branches(sign):
    check(loops, sign * floats(6, 4), sign * floats(4, 4), rtol=1e-4)
    powers = lambda x: mx.scan(lambda c, _: (c * x, c), mx.ones(3), length=4)
    check(powers, floats(3))
    check(lambda x: mx.scan(lambda c, r: (c + r, c), mx.ones(3), x[:0]), floats(2, 3))


@pytest.mark.parametrize("layer", [nn.RNN, nn.GRU, nn.LSTM])
def test_long_recurrent_layers(layer):
    check(layer(3, 4), floats(2, 40, 3), rtol=1e-4)


def check_sizes(fun, sizes, *bindings, dtype="f4", opset=18):
    """A model whose sizes have names, in ONNX Runtime and read again, for several bindings of them."""
    shape = lambda own, bound: tuple(bound.get(size, size) for size in own)  # noqa: E731
    draw = lambda bound: {n: rng.uniform(0.2, 0.9, shape(own, bound)).astype(dtype) for n, own in sizes.items()}  # noqa: E731
    first = [mx.array(x) for x in draw(bindings[0]).values()]
    content = cupola.onnx.export(fun, *first, input_names=list(sizes), sizes=sizes, opset=opset)
    model = onnx.load_from_string(content)
    onnx.checker.check_model(model, full_check=True)
    for port, own in zip(model.graph.input, sizes.values(), strict=True):
        dims = port.type.tensor_type.shape.dim
        assert tuple(d.dim_param or d.dim_value for d in dims) == tuple(own)
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    read = cupola.onnx.load(content)
    for bound in bindings:
        given = draw(bound)
        want = fun(*map(mx.array, given.values()))
        want = want if isinstance(want, (tuple, list)) else [want]
        again = read(**{name: mx.array(x) for name, x in given.items()})
        again = again if isinstance(again, tuple) else [again]
        for a, b, c in zip(session.run(None, given), want, again, strict=True):
            assert a.shape == b.shape == c.shape
            np.testing.assert_allclose(a, np.array(b), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(np.array(c), np.array(b), rtol=1e-4, atol=1e-5)
    return model


ROWS = {"x": ("batch", 8)}
SIZED = {
    "layers": (lambda x: nn.softmax(nn.relu(x @ W.T + 1), axis=-1), ROWS),
    "means": (lambda x: (x - x.mean(0)) / mx.sqrt(x.var(0) + 1e-5), ROWS),
    "reshape": (lambda x: x.reshape(-1, 2, 4).transpose(1, 0, 2).reshape(2, -1), ROWS),
    "slices": (lambda x: mx.concatenate([x[1:], x[:-1], x[::-1][:2]]), ROWS),
    "numbers": (lambda x: x[:, 0] * mx.arange(x.shape[0]) + x.shape[0], ROWS),
    "outer": (lambda x, y: (x @ y.T).reshape(-1), {"x": ("rows", 3), "y": ("columns", 3)}),
    "products": (lambda x, y: mx.broadcast_to(x[:, None], (*x.shape, y.shape[0])).sum(0) + y,
                 {"x": ("rows",), "y": ("columns",)}),
    "scan": (lambda x: mx.scan(lambda c, row: (0.5 * c + row, mx.exp(c).sum()), mx.zeros(x.shape[1:]), x),
             {"x": ("steps", "batch", 3)}),
    "repeats": (lambda x: mx.fori_loop(0, x.shape[0], lambda i, c: c * 0.9 + i, x), ROWS),
    "lstm": (lambda x: LSTM(x)[0], {"x": ("batch", "steps", 3)}),
    "attention": (lambda x: ATTENTION(x, x, x), {"x": ("batch", "steps", 8)}),
    "images": (lambda x: mx.mean(CONV(x), axis=(1, 2)), {"x": ("batch", 6, 7, 2)}),
}  # fmt: skip
W = floats(5, 8)
LSTM, ATTENTION, CONV = nn.LSTM(3, 4), nn.MultiHeadAttention(8, 2), nn.Conv2d(2, 3, 3)


@pytest.mark.parametrize("name", SIZED)
def test_sizes_with_names(name):
    fun, sizes = SIZED[name]
    names = sorted({size for own in sizes.values() for size in own if isinstance(size, str)})
    # Steps from 16 on, as those that stand for them.
    bindings = [{n: 18 + 5 * at for at, n in enumerate(names)}, {n: 31 - 6 * at for at, n in enumerate(names)}]
    check_sizes(fun, sizes, *bindings)


def test_sizes_that_have_no_names():
    with pytest.raises(ValueError, match="other operations for other sizes"):
        check_sizes(lambda x: sum(x[at] for at in range(x.shape[0])), ROWS, {"batch": 3})
    with pytest.raises(ValueError, match="no polynomial"):
        check_sizes(lambda x: x[: x.shape[0] // 2], ROWS, {"batch": 4})
    with pytest.raises(ValueError, match="sizes of 'y', inputs are x"):
        cupola.onnx.export(mx.exp, mx.ones(3), input_names=["x"], sizes={"y": ("n",)})
    with pytest.raises(ValueError, match="the sizes of 'x' do not fit"):
        cupola.onnx.export(mx.exp, mx.ones(3), input_names=["x"], sizes={"x": (4,)})
