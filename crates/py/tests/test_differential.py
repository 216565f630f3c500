"""Every function over argument forms, dtypes, shapes, views and edge values, against MLX."""

import itertools

import numpy as np
import pytest
from conftest import mlx, same

import cupola.core as cc

DTYPES = "bool_ uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 complex64".split()
FLOATS = ["float16", "bfloat16", "float32"]

UNARY = """abs sin cos tan sinh cosh tanh exp expm1 log log1p log2 log10 sqrt rsqrt square sign floor
ceil negative reciprocal sigmoid erf arctan arcsinh isnan isinf isfinite isposinf isneginf logical_not
degrees radians real imag conj stop_gradient positive""".split()
BOUNDED = "arcsin arccos arctanh erfinv".split()
BINARY = """add subtract multiply divide maximum minimum equal not_equal less less_equal greater
greater_equal logical_and logical_or logaddexp arctan2 floor_divide remainder power""".split()
INTEGER = "bitwise_and bitwise_or bitwise_xor left_shift right_shift".split()
REDUCTIONS = "sum prod max min mean var std all any logsumexp argmax argmin median count_nonzero".split()
SCANS = "cumsum cumprod cummax cummin logcumsumexp".split()


def pair(data, dtype=None):
    """The same array in both packages."""
    ours, theirs = cc.array(data), mlx.array(data)
    if dtype is None:
        return ours, theirs
    return ours.astype(getattr(cc, dtype)), theirs.astype(getattr(mlx, dtype))


def sample(dtype, shape=(2, 3)):
    data = np.arange(int(np.prod(shape))).reshape(shape)
    if dtype in FLOATS + ["float64"]:
        return data.astype(np.float32) / 4 - 0.5
    if dtype == "complex64":
        return (data - 2 + 1j * (3 - data)).astype(np.complex64)
    if dtype == "bool_":
        return data % 2 == 0
    return (data % 5 + 1).astype(np.int32)


def both(name, ours, theirs, *args, **kwargs):
    """Calls a function of both packages; where MLX raises, so must Cupola, and of that type."""
    f, g = cc, mlx
    for part in name.split("."):
        f, g = getattr(f, part), getattr(g, part)
    try:
        want = g(*theirs, *args, **kwargs)
        mlx.eval(want)
    except (ValueError, IndexError) as error:
        with pytest.raises((type(error), ValueError)):
            cc.eval(f(*ours, *args, **kwargs))
        return
    same(f(*ours, *args, **kwargs), want, *tolerance(want))


def tolerance(want):
    if isinstance(want, mlx.array) and want.dtype in (mlx.float16, mlx.bfloat16):
        return (2e-2, 2e-2)
    return (2e-4, 1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    if dtype == "complex64" and name in ("arctan", "sign", "floor", "ceil", "erf", "degrees", "radians", "log1p", "expm1"):
        pytest.skip("MLX has no such function of complex numbers, or another one")
    if dtype.startswith("uint") and name == "negative":
        pytest.skip("wraps in both, and NumPy's cast of it differs")
    ours, theirs = pair(sample(dtype), dtype)
    if dtype == "bool_" and name in ("negative", "sign", "square", "abs"):
        return
    both(name, [ours], [theirs])


@pytest.mark.parametrize("name", UNARY + BOUNDED)
def test_unary_views_and_edges(name):
    if name == "sign":
        return  # that of NaN is NaN here, and 0 in MLX
    edges = np.array([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan], np.float32)
    ours, theirs = pair(edges)
    both(name, [ours], [theirs])
    wide = (np.arange(24, dtype=np.float32) / 25).reshape(2, 3, 4)
    ours, theirs = pair(wide)
    for view in (lambda x: x.T, lambda x: x[:, ::2], lambda x: x[..., ::-1], lambda x: x[1:, None, 1]):
        both(name, [view(ours)], [view(theirs)])
    both(name, [ours[:0]], [theirs[:0]])


@pytest.mark.parametrize("left,right", list(itertools.product(DTYPES, DTYPES)))
def test_binary_promotion(left, right):
    for name in ("add", "multiply", "maximum", "equal", "divide"):
        if "complex64" in (left, right) and name == "maximum":
            continue
        ours, theirs = zip(pair(sample(left), left), pair(sample(right), right))
        if name == "divide" and (left, right) == ("complex64", "complex64"):
            continue
        f, g = getattr(cc, name)(*ours), getattr(mlx, name)(*theirs)
        assert str(f.dtype) == str(g.dtype), (name, left, right)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    left, right = sample("float32", (4, 1)), sample("float32", (1, 3)) + 1.25
    ours, theirs = zip(pair(left), pair(right))
    both(name, ours, theirs)
    for number in (2, 2.5, True):
        both(name, [ours[0], number], [theirs[0], number])
        both(name, [number, ours[1]], [number, theirs[1]])
    both(name, [ours[0], cc.zeros((7,))], [theirs[0], mlx.zeros((7,))])


@pytest.mark.parametrize("dtype", [d for d in DTYPES if "int" in d])
@pytest.mark.parametrize("name", INTEGER)
def test_integers(name, dtype):
    ours, theirs = zip(pair(sample(dtype), dtype), pair(sample(dtype)[::-1].copy(), dtype))
    both(name, ours, theirs)
    both(name, [ours[0], 1], [theirs[0], 1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [3, 1.5, True, 2j])
def test_numbers_are_weak(dtype, number):
    ours, theirs = pair(sample(dtype), dtype)
    for name in ("add", "multiply"):
        assert str(getattr(cc, name)(ours, number).dtype) == str(getattr(mlx, name)(theirs, number).dtype)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), [1], ()])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, axis, keepdims):
    if name in ("argmax", "argmin") and not (axis is None or isinstance(axis, int)):
        pytest.skip("takes one axis")
    if axis == () and name in ("mean", "var", "std", "median", "logsumexp", "count_nonzero"):
        pytest.skip("of no axes")
    ours, theirs = pair(sample("float32", (2, 3, 4)))
    both(name, [ours], [theirs], axis=axis, keepdims=keepdims)
    both(name, [ours.T], [theirs.T], axis=axis, keepdims=keepdims)
    if hasattr(ours, name):
        same(getattr(ours, name)(axis, keepdims), getattr(theirs, name)(axis, keepdims))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "all", "any"])
def test_reduction_dtypes(name, dtype):
    if dtype == "complex64" and name in ("max", "min", "all", "any", "prod"):
        pytest.skip("of complex numbers")
    ours, theirs = pair(sample(dtype), dtype)
    both(name, [ours], [theirs])


@pytest.mark.parametrize("reverse,inclusive", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("name", SCANS)
def test_scans(name, reverse, inclusive):
    ours, theirs = pair(sample("float32", (3, 4)))
    for axis in (0, 1, -1):
        both(name, [ours], [theirs], axis, reverse=reverse, inclusive=inclusive)


CALLS = [
    ("reshape", [(2, 6)], {}), ("reshape", [(-1,)], {}), ("reshape", [(5, 2)], {}),
    ("flatten", [], {}), ("flatten", [], {"start_axis": 1}), ("transpose", [], {}),
    ("transpose", [(1, 0)], {}), ("transpose", [], {"axes": [1, 0]}), ("transpose", [(0, 0)], {}),
    ("swapaxes", [0, 1], {}), ("swapaxes", [0, 5], {}), ("moveaxis", [0, -1], {}),
    ("expand_dims", [0], {}), ("expand_dims", [(0, 3)], {}), ("squeeze", [], {}),
    ("squeeze", [0], {}), ("broadcast_to", [(2, 3, 4)], {}), ("broadcast_to", [(5,)], {}),
    ("flip", [], {}), ("flip", [1], {}), ("roll", [1], {}), ("roll", [1, 0], {}),
    ("roll", [(1, -1), (0, 1)], {}), ("tile", [2], {}), ("tile", [(2, 1, 3)], {}),
    ("repeat", [2], {}), ("repeat", [3, 1], {}), ("pad", [1], {}), ("pad", [(1, 2)], {}),
    ("pad", [[(0, 1), (2, 0)]], {"constant_values": 7.0}), ("pad", [1], {"mode": "edge"}),
    ("split", [3], {}), ("split", [[1, 2]], {}), ("split", [2, 1], {}), ("split", [5], {}),
    ("sort", [], {}), ("sort", [], {"axis": None}), ("argsort", [0], {}), ("topk", [2], {}),
    ("topk", [2], {"axis": 0}), ("partition", [1], {}), ("diagonal", [], {}), ("diagonal", [1], {}),
    ("diag", [], {}), ("diag", [], {"k": 1}), ("trace", [], {}), ("tril", [], {}), ("triu", [1], {}),
    ("softmax", [], {}), ("softmax", [0], {}), ("softmax", [], {"axis": (0, 1)}),
    ("logsumexp", [], {}), ("clip", [0.0, 1.0], {}), ("clip", [None, 0.5], {}), ("clip", [0.5, None], {}),
    ("round", [], {}), ("round", [1], {}), ("nan_to_num", [], {}), ("take", [0], {}),
    ("take", [1], {"axis": 0}), ("atleast_1d", [], {}), ("atleast_3d", [], {}), ("unstack", [], {}),
    ("unflatten", [1, (2, 2)], {}), ("var", [], {"ddof": 1}), ("std", [0], {"ddof": 1}),
    ("linalg.norm", [], {}), ("linalg.norm", [1], {}), ("linalg.norm", ["fro"], {}),
    ("linalg.norm", [], {"axis": 1, "keepdims": True}), ("minmax", [], {}), ("diff", [], {}),
    ("astype", [], {}), ("matrix_transpose", [], {}), ("contiguous", [], {}), ("trunc", [], {}),
    ("sum", [7], {}), ("expand_dims", [9], {}),
]


@pytest.mark.parametrize("name,args,kwargs", CALLS, ids=lambda v: str(v))
def test_calls(name, args, kwargs):
    ours, theirs = pair(sample("float32", (3, 4)))
    if name == "astype":
        same(cc.astype(ours, cc.int32), mlx.astype(theirs, mlx.int32))
        return
    both(name, [ours], [theirs], *args, **kwargs)


PRODUCTS = [
    ("matmul", (3, 4), (4, 5)), ("matmul", (4,), (4,)), ("matmul", (2, 3, 4), (4, 5)),
    ("matmul", (3, 4), (3, 4)), ("inner", (3, 4), (5, 4)), ("outer", (3,), (4,)),
    ("tensordot", (3, 4), (4, 3)), ("kron", (2, 2), (2, 3)), ("vecdot", (3, 4), (3, 4)),
    ("concatenate", None, None), ("logical_and", (3,), (3,)),
]


@pytest.mark.parametrize("name,left,right", PRODUCTS)
def test_products(name, left, right, rng):
    if left is None:
        ours, theirs = pair(sample("float32"))
        for axis in (0, 1, None, 5):
            both("concatenate", [[ours, ours]], [[theirs, theirs]], axis)
            both("stack", [[ours, ours]], [[theirs, theirs]], axis)
        return
    a, b = rng.standard_normal(left, np.float32), rng.standard_normal(right, np.float32)
    ours, theirs = zip(pair(a), pair(b))
    args = [1] if name == "tensordot" else []
    both(name, ours, theirs, *args)


def test_convolutions(rng):
    x, w = rng.standard_normal((2, 8, 7, 4), np.float32), rng.standard_normal((6, 3, 2, 4), np.float32)
    ours, theirs = zip(pair(x), pair(w))
    for kwargs in ({}, {"stride": 2}, {"padding": (1, 2)}, {"dilation": (2, 1)}, {"stride": (1, 2), "padding": 1}):
        both("conv2d", ours, theirs, **kwargs)
    both("conv_general", ours, theirs, padding=([0, 1], [1, 0]), flip=True)
    w = rng.standard_normal((6, 3, 2, 2), np.float32)
    ours, theirs = zip(pair(x), pair(w))
    both("conv2d", ours, theirs, groups=2)
    x, w = rng.standard_normal((2, 9, 4), np.float32), rng.standard_normal((6, 3, 4), np.float32)
    ours, theirs = zip(pair(x), pair(w))
    both("conv1d", ours, theirs, 2, 1)
    both("conv_transpose1d", ours, theirs, stride=2, output_padding=1)


def test_creation():
    for name, args, kwargs in [
        ("zeros", [(2, 3)], {}), ("ones", [4], {}), ("eye", [3], {}), ("eye", [2, 3, 1], {}),
        ("identity", [3], {}), ("tri", [3], {}), ("arange", [5], {}), ("arange", [1, 7, 2], {}),
        ("arange", [1.0], {}), ("arange", [0, 1, 0.25], {}), ("arange", [], {"start": 1, "stop": 4}),
        ("arange", [5, 0, -2], {}), ("linspace", [0, 1], {}), ("linspace", [1, 2, 5], {}),
        ("linspace", [0, 1, 4], {"endpoint": False}), ("full", [(2,), 3], {}), ("full", [2, 1.5], {}),
        ("hanning", [5], {}), ("hamming", [5], {}), ("blackman", [5], {}), ("bartlett", [5], {}),
    ]:
        both(name, [], [], *args, **kwargs)
    for dtype in DTYPES:
        ours, theirs = cc.zeros((2,), getattr(cc, dtype)), mlx.zeros((2,), getattr(mlx, dtype))
        same(ours, theirs)
        same(cc.ones_like(ours), mlx.ones_like(theirs))
        same(cc.full((2,), 1, getattr(cc, dtype)).astype(cc.float32), mlx.full((2,), 1, getattr(mlx, dtype)).astype(mlx.float32))


def test_random_keys_give_the_same_numbers():
    for seed in (0, 7, 2**40):
        ours, theirs = cc.random.key(seed), mlx.random.key(seed)
        same(ours, theirs)
        same(cc.random.split(ours), mlx.random.split(theirs))
        for name, args, kwargs in [
            ("uniform", [], {"shape": (3, 2)}), ("uniform", [-1, 2, (4,)], {}), ("normal", [(5,)], {}),
            ("normal", [(5,)], {"loc": 1.0, "scale": 2.0}), ("bernoulli", [0.3, (6,)], {}),
            ("randint", [0, 10, (8,)], {}), ("gumbel", [(4,)], {}), ("laplace", [(4,)], {}),
            ("truncated_normal", [-1.0, 1.0, (4,)], {}), ("permutation", [6], {}),
        ]:
            same(
                getattr(cc.random, name)(*args, **kwargs, key=ours),
                getattr(mlx.random, name)(*args, **kwargs, key=theirs),
            )
    cc.random.seed(3)
    mlx.random.seed(3)
    for _ in range(3):
        same(cc.random.uniform(shape=(3,)), mlx.random.uniform(shape=(3,)))


def test_einsum_and_more(rng):
    a, b = rng.standard_normal((3, 4), np.float32), rng.standard_normal((4, 5), np.float32)
    ours, theirs = zip(pair(a), pair(b))
    for text in ("ij,jk->ik", "ij,jk->ki", "ij,jk"):
        same(cc.einsum(text, *ours), mlx.einsum(text, *theirs))
    same(cc.einsum("ij->j", ours[0]), mlx.einsum("ij->j", theirs[0]))
    index = np.array([[0, 2], [1, 1], [3, 0]], np.int32)
    oi, ti = pair(index)
    both("take_along_axis", [ours[0], oi], [theirs[0], ti], axis=1)
    both("put_along_axis", [ours[0], oi, cc.array(9.0)], [theirs[0], ti, mlx.array(9.0)], axis=1)
    both("take", [ours[0], oi], [theirs[0], ti], axis=1)
    both("addmm", [cc.ones((3, 5)), *ours], [mlx.ones((3, 5)), *theirs], 2.0, 0.5)
    both("where", [ours[0] > 0, ours[0], 0.0], [theirs[0] > 0, theirs[0], 0.0])
    both("meshgrid", [cc.arange(3), cc.arange(2)], [mlx.arange(3), mlx.arange(2)], indexing="ij")
    both("allclose", [ours[0], ours[0]], [theirs[0], theirs[0]])
    both("array_equal", [ours[0], ours[0]], [theirs[0], theirs[0]])
    same(cc.fast.layer_norm(ours[0], None, None, 1e-5), mlx.fast.layer_norm(theirs[0], None, None, 1e-5))
    same(cc.fast.rms_norm(ours[0], cc.ones(4), 1e-5), mlx.fast.rms_norm(theirs[0], mlx.ones(4), 1e-5))
    q = rng.standard_normal((1, 2, 5, 8), np.float32)
    oq, tq = pair(q)
    same(
        cc.fast.scaled_dot_product_attention(oq, oq, oq, scale=0.3, mask="causal"),
        mlx.fast.scaled_dot_product_attention(tq, tq, tq, scale=0.3, mask="causal"),
    )
    for traditional in (False, True):
        kwargs = dict(traditional=traditional, base=10000.0, scale=1.0, offset=2)
        same(cc.fast.rope(oq, 8, **kwargs), mlx.fast.rope(tq, 8, **kwargs))


def test_quantization(rng):
    w = rng.standard_normal((8, 128), np.float32)
    ours, theirs = pair(w)
    for bits in (2, 4, 8):
        a, b = cc.quantize(ours, 64, bits), mlx.quantize(theirs, 64, bits)
        same(cc.dequantize(*a, 64, bits), mlx.dequantize(*b, 64, bits), 1e-3, 1e-3)
        x = rng.standard_normal((3, 128), np.float32)
        ox, tx = pair(x)
        same(
            cc.quantized_matmul(ox, *a, group_size=64, bits=bits),
            mlx.quantized_matmul(tx, *b, group_size=64, bits=bits), 1e-3, 1e-3,
        )


TRANSFORMS = "fft ifft rfft irfft".split()


def spectra(rng, shape):
    """Complex numbers, and their real parts."""
    values = rng.standard_normal(shape, np.float32) + 1j * rng.standard_normal(shape, np.float32)
    return values.astype(np.complex64), values.real.copy()


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_along_an_axis(name, norm, rng):
    for shape in [(5,), (8,), (1, 2), (3, 7), (6, 4), (2, 0, 3), (2, 12, 3), (97,)]:
        for data in spectra(rng, shape):
            ours, theirs = pair(data)
            for n, axis in itertools.product([None, 1, 2, 3, 8, 11], [0, -1]):
                both(f"fft.{name}", [ours], [theirs], n, axis, norm)
            both(f"fft.{name}", [ours.T], [theirs.T], norm=norm)
            both(f"fft.{name}", [ours[::-1]], [theirs[::-1]], norm=norm)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_along_several(name, norm, rng):
    for data in spectra(rng, (3, 4, 5)):
        ours, theirs = pair(data)
        both(f"fft.{name}n", [ours], [theirs], norm=norm)
        both(f"fft.{name}2", [ours], [theirs], norm=norm)
        for s, axes in [
            (None, (0, 2)), ((2, 7), (0, 1)), ((4,), (1,)), ((3, 3, 3), (2, 0, 1)), ((2,), (0, 1)),
            ((2, 2), None), (None, (0, 0)), (None, ()), ((0, 2), (0, 1)), (None, (0, 5)),
        ]:
            both(f"fft.{name}n", [ours], [theirs], s, axes, norm)
        both(f"fft.{name}2", [ours.transpose(2, 0, 1)], [theirs.transpose(2, 0, 1)], (5, 4), norm=norm)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_dtypes(name, dtype):
    ours, theirs = pair(sample(dtype), dtype)
    both(f"fft.{name}", [ours], [theirs])
    both(f"fft.{name}n", [ours], [theirs])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_that_fail(name):
    for args in [(0,), (-1,), (4, 3), (None, -4), (None, 0, "other")]:
        both(f"fft.{name}", [cc.ones((3, 4))], [mlx.ones((3, 4))], *args)
    for shape in [(), (0,), (3, 0)]:
        both(f"fft.{name}", [cc.ones(shape)], [mlx.ones(shape)])
    both(f"fft.{name}2", [cc.ones(4)], [mlx.ones(4)])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_have_derivatives(name, rng):
    weights = rng.standard_normal((3, 9), np.float32)

    def energy(m, f):
        def loss(x):
            y = f(x)
            return (m.abs(y) ** 2 * m.array(weights[: y.shape[0], : y.shape[1]])).sum()
        return loss

    for shape, n in [((3, 8), None), ((3, 7), None), ((3, 5), 8), ((2, 9), 4)]:
        ours, theirs = pair(rng.standard_normal(shape, np.float32))
        f = lambda m: lambda x: getattr(m.fft, name)(x, n)[:, :9]  # noqa: E731
        same(cc.grad(energy(cc, f(cc)))(ours), mlx.grad(energy(mlx, f(mlx)))(theirs), 2e-5, 2e-5)
        (y,), (dy,) = cc.jvp(f(cc), [ours], [ours * 0.5])
        same(dy, mlx.array(np.array(y) * 0.5), 1e-5, 1e-5)


def test_hermitian_transforms(rng):
    for data in spectra(rng, (3, 6)):
        for n, axis, norm in itertools.product([None, 1, 4, 9], [0, 1], ["backward", "ortho", "forward"]):
            if n is None or n <= data.shape[axis]:
                want = np.fft.hfft(data, n, axis, norm)
                np.testing.assert_allclose(np.array(cc.fft.hfft(cc.array(data), n, axis, norm)), want, 1e-4, 1e-5)
            want = np.fft.ihfft(data.real, n, axis, norm)
            np.testing.assert_allclose(np.array(cc.fft.ihfft(cc.array(data), n, axis, norm)), want, 1e-4, 1e-5)


def test_long_transforms(rng):
    for size in (4096, 5000, 8191, 65536, 100003):
        data = rng.standard_normal(size, np.float32)
        for name in ("fft", "rfft"):
            got = np.array(getattr(cc.fft, name)(cc.array(data)))
            want = getattr(np.fft, name)(data.astype(np.float64))
            assert np.abs(got - want).max() < 2e-6 * np.abs(want).max(), (name, size)
        back = np.array(cc.fft.irfft(cc.fft.rfft(cc.array(data)), size))
        assert np.abs(back - data).max() < 4e-6
