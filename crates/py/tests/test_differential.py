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
    ("var", [], {"ddof": -1}), ("std", [0], {"ddof": -2}), ("std", [0], {"ddof": 9}),
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
        ("arange", [-3, 7, -(2**32)], {}), ("arange", [5, 33, 2**40], {}), ("arange", [-(2**31), 2 - 2**31], {}),
        ("arange", [0, 5, float("inf")], {}), ("arange", [0, -5, float("inf")], {}), ("arange", [0, 0, float("inf")], {}),
        ("arange", [0, -5, -float("inf")], {}), ("arange", [2.5, 33, float("inf")], {}),
        ("arange", [0, 5, 2**31], {}), ("arange", [0, 5, -(2**31)], {}),
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


def test_isclose_of_half_types_is_exact():
    for dtype, pairs in [("bfloat16", [(6.25e-9, -3.75e-9), (1.0, 1.0078125)]), ("float16", [(0.0, 6e-8), (1.0, 1.001)])]:
        for a, b in pairs:
            ours, theirs = ([m.array([v]).astype(getattr(m, dtype)) for v in (a, b)] for m in (cc, mlx))
            a, b = (np.array(v.astype(cc.float32)).astype(float) for v in ours)
            assert cc.isclose(*ours).item() == mlx.isclose(*theirs).item() == np.isclose(a, b).item()


def test_arange_takes_its_dtype_by_position():
    # Of two numbers before it the first is the stop.
    for call in [
        lambda m: m.arange(7, 2, m.int32), lambda m: m.arange(-0.5, 7, m.float32), lambda m: m.arange(1, 7, m.float16),
        lambda m: m.arange(1, 7, 2, m.int32), lambda m: m.arange(1, 7, None, m.int64), lambda m: m.arange(7, None, m.int8),
        lambda m: m.arange(2.5, 33, float("inf"), m.int32),
    ]:
        same(call(cc), call(mlx))


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


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_categorical_draws_of_half_types_have_noise_of_float32(dtype):
    def drawn(m):
        logits = m.random.normal((8, 10), key=m.random.key(1)).astype(getattr(m, dtype))
        return m.random.categorical(logits, axis=-2, num_samples=500, key=m.random.key(2))

    same(drawn(cc), drawn(mlx))


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_weight_widens_what_is_normalized_and_a_bias_does_not(name, dtype):
    def normalized(m):
        x, vector = m.ones((2, 3), dtype=getattr(m, dtype)), m.ones((3,))
        if name == "rms_norm":
            return [m.fast.rms_norm(x, None, 1e-5), m.fast.rms_norm(x, vector, 1e-5)]
        pairs = itertools.product([None, vector], [None, vector])
        return [m.fast.layer_norm(x, weight, bias, 1e-5) for weight, bias in pairs]

    for ours, theirs in zip(normalized(cc), normalized(mlx), strict=True):
        assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]


def test_einsum_promotes_before_its_first_product():
    """A product of narrow numbers that wraps, or is too large, is not what is multiplied with a wide one."""
    narrow, wide = np.array([[100, 27]], np.int8), np.array([[7]], np.int32)
    for text, operands in (
        ("ij,kj,il->kl", (narrow, narrow, wide)),
        ("il,ij,kj->kl", (wide, narrow, narrow)),
        ("ij,kj,il->kl", (narrow.astype(np.float16) * 300, narrow.astype(np.float16), wide.astype(np.float32))),
    ):
        have, want = cc.einsum(text, *map(cc.array, operands)), np.einsum(text, *operands)
        assert np.array(have).dtype == want.dtype
        np.testing.assert_allclose(np.array(have), want, rtol=1e-6)


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


def matrices(rng, shape, kind="general"):
    """Matrices that are far from singular."""
    a = rng.standard_normal(shape, np.float32)
    if kind == "general":
        return a
    n = shape[-1]
    if kind == "triangular":
        return a * 0.3 + 2 * np.eye(n, dtype=np.float32)
    return (a @ np.swapaxes(a, -1, -2) / n + np.eye(n)).astype(np.float32)


SQUARE = [(1, 1), (2, 2), (5, 5), (3, 4, 4), (2, 1, 3, 3), (0, 2, 2), (40, 40)]
RECTANGULAR = [(1, 1), (3, 3), (5, 3), (3, 5), (2, 4, 2), (2, 2, 4), (0, 3, 2), (70, 33)]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_triangles(shape, upper, rng):
    definite, triangle = (pair(matrices(rng, shape, kind)) for kind in ("definite", "triangular"))
    b = pair(rng.standard_normal((*shape[:-1], 3), np.float32))
    both("linalg.cholesky", [definite[0]], [definite[1]], upper=upper)
    both("linalg.cholesky_inv", [triangle[0]], [triangle[1]], upper=upper)
    both("linalg.tri_inv", [triangle[0]], [triangle[1]], upper)
    both("linalg.solve_triangular", *zip(triangle, b), upper=upper)
    both("linalg.solve_triangular", [triangle[0].swapaxes(-1, -2), b[0]], [triangle[1].swapaxes(-1, -2), b[1]], upper=upper)


@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_equations(shape, rng):
    a = pair(matrices(rng, shape) + 3 * np.eye(shape[-1], dtype=np.float32))
    b = pair(rng.standard_normal((*shape[:-1], 3), np.float32))
    both("linalg.solve", *zip(a, b))
    both("linalg.inv", [a[0]], [a[1]])
    both("linalg.det", [a[0]], [a[1]])
    both("linalg.slogdet", [a[0]], [a[1]])
    if len(shape) == 2:
        v = pair(rng.standard_normal(shape[-1:], np.float32))
        both("linalg.solve", *zip(a, v))
        both("linalg.solve_triangular", *zip(a, v))


@pytest.mark.parametrize("shape", RECTANGULAR, ids=str)
def test_factors(shape, rng):
    ours, theirs = pair(matrices(rng, shape))
    for name in ("lu", "lu_factor", "qr", "pinv"):
        both(f"linalg.{name}", [ours], [theirs])
        both(f"linalg.{name}", [ours.swapaxes(-1, -2)], [theirs.swapaxes(-1, -2)])
    both("linalg.svd", [ours], [theirs], compute_uv=False)
    for order in (2, -2, "nuc"):
        if 0 not in shape:
            both("linalg.norm", [ours], [theirs], order, (-2, -1))
            both("linalg.norm", [ours], [theirs], order, (-1, -2), True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", RECTANGULAR, ids=str)
def test_singular_vectors(shape, dtype, rng):
    with cc.stream(cc.cpu):
        a = matrices(rng, shape) + (1j * matrices(rng, shape) if dtype == "complex64" else 0)
        u, s, vt = (np.array(x) for x in cc.linalg.svd(cc.array(a).astype(getattr(cc, dtype))))
        m, n = shape[-2:]
        k = min(m, n)
        tolerance = 1e-5 if dtype == "float64" else 2e-5
        assert u.shape == (*shape[:-2], m, m) and vt.shape == (*shape[:-2], n, n)
        np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], a, tolerance, tolerance * 10)
        for x in (u, vt):
            eye = np.broadcast_to(np.eye(x.shape[-1]), x.shape)
            np.testing.assert_allclose(x @ np.conj(np.swapaxes(x, -1, -2)), eye, 0, tolerance)
        np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), tolerance, tolerance)
        assert (np.diff(s, axis=-1) <= 0).all()


@pytest.mark.parametrize("triangle", ["L", "U"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_symmetric_eigenvalues(shape, dtype, triangle, rng):
    with cc.stream(cc.cpu):
        a = matrices(rng, shape) + (1j * matrices(rng, shape) if dtype == "complex64" else 0)
        ours = cc.array(a).astype(getattr(cc, dtype))
        w, v = (np.array(x) for x in cc.linalg.eigh(ours, triangle))
        theirs = mlx.array(a).astype(getattr(mlx, dtype))
        want = mlx.linalg.eigvalsh(theirs, triangle, stream=mlx.cpu)
        np.testing.assert_allclose(w, np.array(want), 1e-4, 2e-5)
        np.testing.assert_allclose(np.array(cc.linalg.eigvalsh(ours, triangle)), w, 1e-4, 2e-5)
        half = np.tril(a, -1) if triangle == "L" else np.triu(a, 1)
        diagonal = a.real * np.eye(shape[-1])
        whole = half + np.conj(np.swapaxes(half, -1, -2)) + diagonal
        np.testing.assert_allclose(whole @ v, v * w[..., None, :], 1e-4, 1e-4)
        eye = np.broadcast_to(np.eye(shape[-1]), shape)
        np.testing.assert_allclose(np.conj(np.swapaxes(v, -1, -2)) @ v, eye, 0, 2e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_eigenvalues(shape, dtype, rng):
    with cc.stream(cc.cpu):
        a = matrices(rng, shape) + (1j * matrices(rng, shape) if dtype == "complex64" else 0)
        ours = cc.array(a).astype(getattr(cc, dtype))
        w, v = (np.array(x) for x in cc.linalg.eig(ours))
        assert w.dtype == v.dtype == np.complex64
        np.testing.assert_allclose(a @ v, v * w[..., None, :], 1e-4, 3e-4)
        np.testing.assert_allclose(np.linalg.norm(v, axis=-2), np.ones(w.shape), 1e-5)
        by_size = lambda x: np.sort_complex(np.round(x, 2))  # noqa: E731
        np.testing.assert_allclose(by_size(np.array(cc.linalg.eigvals(ours))), by_size(w), 0, 2e-2)
        want = mlx.linalg.eigvals(mlx.array(a.astype(np.complex64)), stream=mlx.cpu)
        np.testing.assert_allclose(by_size(w), by_size(np.array(want)), 0, 2e-2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", """cholesky cholesky_inv det eig eigh eigvals eigvalsh inv lu lu_factor pinv qr
slogdet svd tri_inv""".split())
def test_decompositions_of_dtypes(name, dtype):
    data = np.array([[3, 1], [1, 2]])
    ours, theirs = pair(data, dtype)
    if name in ("eig", "eigh", "svd") and dtype in ("float32", "complex64"):
        assert [str(x.dtype) for x in getattr(cc.linalg, name)(ours)] == [
            str(x.dtype) for x in getattr(mlx.linalg, name)(theirs, stream=mlx.cpu)
        ]
        return
    if name.startswith("eig") and dtype == "float32":
        assert sorted(np.array(getattr(cc.linalg, name)(ours)).real.tolist()) == pytest.approx(
            sorted(np.array(getattr(mlx.linalg, name)(theirs)).real.tolist()), 1e-5
        )
        return
    both(f"linalg.{name}", [ours], [theirs])


def test_equations_of_dtypes():
    for dtype in DTYPES:
        a, b = pair(np.array([[3, 0], [1, 2]]), dtype), pair(np.array([[1, 2], [1, 0]]), dtype)
        both("linalg.solve", *zip(a, b))
        both("linalg.solve_triangular", *zip(a, b))
        # What MLX refuses, though the dtypes promote.
        if dtype != "complex64":
            assert cc.linalg.solve(a[0], b[0].astype(cc.float32)).dtype == cc.float32


def test_equations_that_fail():
    for a, b in [((2, 3), (2,)), ((3, 3), (2, 2)), ((3,), (3,)), ((3, 3), ()), ((2, 3, 3), (2, 3)), ((2, 3, 3), (3, 3, 1))]:
        for name in ("solve", "solve_triangular"):
            both(f"linalg.{name}", [cc.ones(a), cc.ones(b)], [mlx.ones(a), mlx.ones(b)])
    for shape in [(), (2,), (2, 3), (2, 2, 3)]:
        for name in "cholesky cholesky_inv det eig eigh eigvals eigvalsh inv slogdet tri_inv".split():
            both(f"linalg.{name}", [cc.ones(shape)], [mlx.ones(shape)])
    with pytest.raises(ValueError):
        cc.linalg.eigh(cc.eye(2), "X")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cholesky_of_infinite_pivots(dtype):
    inf = np.inf
    for rows in ([[inf]], [[inf, 0], [0, 1]], [[1, 0], [0, inf]], [[4, 2], [2, inf]]):
        a = np.array(rows, dtype)
        for upper in (False, True):
            expected = np.linalg.cholesky(np.array(rows))
            got = cc.linalg.cholesky(cc.array(a, dtype=getattr(cc, dtype)), upper=upper)
            np.testing.assert_array_equal(np.array(got), expected.T if upper else expected)
    for rows in ([[1, inf], [inf, 1]], [[-inf]], [[np.nan]], [[1, np.nan], [np.nan, 1]], [[inf, np.nan], [np.nan, 1]]):
        with pytest.raises(RuntimeError, match="not positive definite"):
            cc.eval(cc.linalg.cholesky(cc.array(np.array(rows, dtype), dtype=getattr(cc, dtype))))


def test_singular_matrices_are_errors():
    singular = cc.array([[1.0, 2.0], [2.0, 4.0]])
    for f in (
        lambda: cc.linalg.inv(singular), lambda: cc.linalg.solve(singular, cc.ones(2)),
        lambda: cc.linalg.tri_inv(cc.array([[1.0, 0.0], [2.0, 0.0]])),
        lambda: cc.linalg.cholesky(cc.array([[1.0, 2.0], [2.0, 1.0]])),
        lambda: cc.linalg.svd(cc.array([[1.0, float("nan")]]))[1],
        lambda: cc.linalg.eigvalsh(cc.array([[float("inf")]])),
        lambda: cc.linalg.inv(cc.stack([cc.eye(2), singular])),
    ):
        x = f()
        for _ in range(2):
            with pytest.raises(RuntimeError):
                cc.eval(x)
    for rows in ([[0.0] * 5] * 5, np.ones((5, 5)), np.outer(np.arange(5.0), np.arange(5.0)), np.zeros((4, 6))):
        ours, theirs = pair(np.asarray(rows, np.float32))
        both("linalg.lu", [ours], [theirs])
        both("linalg.lu_factor", [ours], [theirs])
        if ours.shape[0] == 5:
            assert cc.linalg.det(ours).item() == 0
            assert [x.item() for x in cc.linalg.slogdet(ours)] == [0, -np.inf]
    sign, log = cc.linalg.slogdet(singular)
    assert (sign.item(), log.item()) == (0, -np.inf)
    assert cc.linalg.det(singular).item() == 0


def test_derivatives_of_determinants(rng):
    """The derivative of the determinant is itself times the inverse, transposed."""
    for n in (1, 2, 3, 4, 6):
        a = cc.array(matrices(rng, (n, n), "definite"))
        want = np.linalg.inv(np.array(a)).T
        for f in (
            lambda x: cc.linalg.slogdet(x)[1], lambda x: cc.log(cc.linalg.det(x)),
            lambda x: 2 * cc.log(cc.linalg.cholesky(x).diagonal()).sum(),
            lambda x: cc.log(cc.linalg.eigvalsh(x)).sum(), lambda x: cc.log(cc.linalg.svd(x)[1]).sum(),
            lambda x: cc.log(cc.abs(cc.linalg.qr(x)[1].diagonal())).sum(),
            lambda x: -cc.linalg.slogdet(cc.linalg.inv(x))[1],
        ):
            np.testing.assert_allclose(np.array(cc.grad(f)(a)), want, 2e-4, 2e-4)


@pytest.mark.parametrize("m, n", [(3, 3), (5, 3), (3, 5), (1, 1)])
def test_derivatives_of_qr_of_complex_matrices(rng, m, n):
    """Against differences, in double precision, of factors whose R has the same real diagonal, and PyTorch."""
    draw = lambda *shape: matrices(rng, shape) + 1j * matrices(rng, shape)
    k = min(m, n)
    a, t, u, v = (x.astype(np.complex64) for x in (draw(m, n), draw(m, n), draw(m, k), draw(k, n)))
    q, r = cc._linalg.qr(cc.array(a))
    signs = np.sign(np.array(r).diagonal().real)
    assert (np.array(r).diagonal().imag == 0).all()
    np.testing.assert_allclose(np.array(r), np.linalg.qr(a)[1], 1e-4, 1e-4)
    np.testing.assert_allclose(np.array(q) @ np.array(r), a, atol=1e-5)

    def factors(a):
        q, r = np.linalg.qr(a)
        turns = signs * np.abs(r.diagonal()) / r.diagonal()
        return q / turns, turns[:, None] * r

    step = 1e-6 * t.astype(complex)
    low, high = factors(a - step), factors(a + step)
    _, tangents = cc.jvp(lambda x: list(cc._linalg.qr(x)), [cc.array(a)], [cc.array(t)])
    for got, before, after in zip(tangents, low, high):
        np.testing.assert_allclose(np.array(got), (after - before) / 2e-6, 2e-3, 2e-3)

    def loss(x):
        q, r = cc._linalg.qr(x)
        return (cc.real(cc.conj(cc.array(u)) * q).sum() + cc.real(cc.conj(cc.array(v)) * r).sum())

    grad = np.array(cc.grad(loss)(cc.array(a)))
    along = sum(np.real(np.conj(w) * np.array(d)).sum() for w, d in zip((u, v), tangents))
    np.testing.assert_allclose(np.real(np.conj(grad) * t).sum(), along, 2e-3, 2e-3)
    torch = pytest.importorskip("torch")
    if m < n:
        return
    x = torch.tensor(a, requires_grad=True)
    q, r = torch.linalg.qr(x)
    turns = torch.tensor(signs * np.sign(r.diagonal().real.detach().numpy())).to(torch.complex64)
    q, r = q * turns, turns[:, None] * r
    (torch.real(torch.tensor(u).conj() * q).sum() + torch.real(torch.tensor(v).conj() * r).sum()).backward()
    np.testing.assert_allclose(grad, x.grad.numpy(), 2e-3, 2e-3)


def test_derivatives_of_complex_vectors(rng):
    """What does not depend on the phases of vectors has the derivatives of what it is."""
    def hermitian():
        a = (matrices(rng, (4, 4)) + 1j * matrices(rng, (4, 4))).astype(np.complex64)
        return cc.array(a + np.conj(a.T))

    a, step = hermitian(), hermitian()

    def exponential(x):
        w, v = cc.linalg.eigh(x)
        return (v * cc.exp(0.2 * w)) @ cc.conj(v.T)

    def series(x):
        out, term = cc.eye(4).astype(cc.complex64), cc.eye(4).astype(cc.complex64)
        for k in range(1, 30):
            term = term @ (0.2 * x) / k
            out = out + term
        return out

    def polar(x):
        u, s, vt = cc.linalg.svd(x)
        return u @ vt

    (y,), (dy,) = cc.jvp(exponential, [a], [step])
    (z,), (dz,) = cc.jvp(series, [a], [step])
    np.testing.assert_allclose(np.array(y), np.array(z), 1e-4, 1e-4)
    np.testing.assert_allclose(np.array(dy), np.array(dz), 1e-3, 1e-3)
    ct = cc.array(matrices(rng, (4, 4)) + 1j * matrices(rng, (4, 4)))
    for f in (exponential, polar):
        (_,), (dy,) = cc.jvp(f, [a], [step])
        (_,), (da,) = cc.vjp(f, [a], [ct])
        left, right = (cc.conj(ct) * dy).sum().item(), (cc.conj(da) * step).sum().item()
        assert left.real == pytest.approx(right.real, 1e-3)


@pytest.mark.parametrize("name, f", [
    ("abs", lambda mx, z, w: mx.abs(z)), ("real", lambda mx, z, w: mx.real(z)),
    ("imag", lambda mx, z, w: mx.imag(z)), ("conjugate", lambda mx, z, w: mx.conjugate(z)),
    ("add", lambda mx, z, w: z + 2), ("subtract", lambda mx, z, w: w - z), ("multiply", lambda mx, z, w: z * w),
    ("divide", lambda mx, z, w: z / w), ("divide by", lambda mx, z, w: w / z),
    ("matmul", lambda mx, z, w: z[None] @ w[:, None]), ("sum", lambda mx, z, w: mx.sum(z)),
    ("prod", lambda mx, z, w: mx.prod(z)), ("cumsum", lambda mx, z, w: mx.cumsum(z)),
    ("fft", lambda mx, z, w: mx.fft.fft(z)), ("irfft", lambda mx, z, w: mx.fft.irfft(z, 2)),
    *((name, lambda mx, z, w, name=name: getattr(mx, name)(z)) for name in (
        "exp", "log", "sqrt", "rsqrt", "reciprocal", "square", "sin", "tanh", "arcsin")),
])
def test_cotangents_of_complex_numbers(name, f):
    """By complex numbers, and by the real ones that they are made of."""
    z, w, ct = ([3 + 4j, -1 + 0.5j], [0.5 - 2j, 1 + 1j], [1 + 2j, -0.5 + 1j])

    def pulled(mx, z, f):
        y = f(mx, z, mx.array(w))
        seed = mx.array(ct[:y.size]).reshape(y.shape)
        seed = seed if y.dtype == mx.complex64 else mx.real(seed)
        return np.array(mx.vjp(lambda z: f(mx, z, mx.array(w)), [z], [seed])[1][0])

    np.testing.assert_allclose(pulled(cc, cc.array(z), f), pulled(mlx, mlx.array(z), f), 1e-5, 1e-6)
    turned = lambda mx, x, w: f(mx, x * mx.array(1 + 0.5j), w)
    x = [1.5, -0.75]
    np.testing.assert_allclose(pulled(cc, cc.array(x), turned), pulled(mlx, mlx.array(x), turned), 1e-5, 1e-6)


def test_cotangents_of_complex_numbers_that_users_give():
    """A rule is given, and gives, what `vjp` would."""
    def of(mx):
        @mx.custom_function
        def product(z, w):
            return z * w

        @product.vjp
        def product(primals, cotangent, output):
            z, w = primals
            return cotangent * mx.conjugate(w), cotangent * mx.conjugate(z)

        loss = lambda z, w: mx.abs(product(mx.sin(z), w)).sum()
        return [np.array(g) for g in mx.grad(loss, argnums=(0, 1))(mx.array([3 + 4j]), mx.array([0.5 - 2j]))]

    for got, want in zip(of(cc), of(mlx)):
        np.testing.assert_allclose(got, want, 1e-5)


def test_gradients_of_complex_numbers_ascend():
    """A gradient's parts are the derivatives by the parts, of a second derivative, too."""
    loss = lambda z: (cc.abs(cc.sin(z) * z) ** 2).sum()
    parts = lambda x, y: loss(x + 1j * y)
    x, y = cc.array([0.5, -1.5]), cc.array([0.25, 2.0])
    dx, dy = cc.grad(parts, argnums=(0, 1))(x, y)
    got = cc.grad(loss)(x + 1j * y)
    np.testing.assert_allclose(np.array(got), np.array(dx) + 1j * np.array(dy), 1e-5)
    length = lambda z: (cc.abs(cc.grad(loss)(z)) ** 2).sum()
    of_parts = lambda x, y: sum((g ** 2).sum() for g in cc.grad(parts, argnums=(0, 1))(x, y))
    dx, dy = cc.grad(of_parts, argnums=(0, 1))(x, y)
    got = cc.grad(length)(x + 1j * y)
    np.testing.assert_allclose(np.array(got), np.array(dx) + 1j * np.array(dy), 1e-4)


def test_least_squares_and_powers(rng):
    for m, n, k in [(6, 3, 2), (3, 6, 2), (4, 4, 1)]:
        a, b = matrices(rng, (m, n)), matrices(rng, (m, k))
        want = np.linalg.lstsq(a, b, rcond=None)[0]
        np.testing.assert_allclose(np.array(cc.linalg.lstsq(cc.array(a), cc.array(b))), want, 1e-3, 1e-4)
    a = matrices(rng, (2, 3, 3)) + 2 * np.eye(3, dtype=np.float32)
    for n in (0, 1, 2, 5, -1, -3):
        got = np.array(cc.linalg.matrix_power(cc.array(a), n))
        np.testing.assert_allclose(got, np.linalg.matrix_power(a, n), 1e-3, 1e-3)
    low = matrices(rng, (5, 2)) @ matrices(rng, (2, 4))
    assert cc.linalg.matrix_rank(cc.array(low)).item() == 2
    assert cc.linalg.matrix_rank(cc.zeros((2, 3, 3))).tolist() == [0, 0]
    assert cc.linalg.matrix_rank(cc.eye(4) * cc.arange(4), tol=1.5).item() == 2


FRAMES = [
    {}, {"hop_length": 3}, {"center": False}, {"pad_mode": "edge"}, {"pad_mode": "constant"}, {"win_length": 5},
    {"window": 6}, {"window": 8, "win_length": 4}, {"norm": "ortho"}, {"norm": "forward"}, {"onesided": False},
    {"window": 9}, {"win_length": 9}, {"hop_length": 0}, {"hop_length": -2}, {"norm": "other"}, {"pad_mode": "other"},
    {"hop_length": 8, "window": 8}, {"onesided": True},
]


@pytest.mark.parametrize("kwargs", FRAMES, ids=str)
def test_frames(kwargs, rng):
    def given(m):
        return {k: m.array(np.hanning(v + 2)[1:-1].astype(np.float32)) if k == "window" else v for k, v in kwargs.items()}

    def check(name, ours, theirs, *args, drop=()):
        mine, other = ({k: v for k, v in given(m).items() if k not in drop} for m in (cc, mlx))
        try:
            want = getattr(mlx.fft, name)(theirs, *args, **other)
            mlx.eval(want)
        except ValueError:
            with pytest.raises(ValueError):
                getattr(cc.fft, name)(ours, *args, **mine)
            return
        same(getattr(cc.fft, name)(ours, *args, **mine), want, 1e-5, 1e-5)

    for shape, n_fft in [((32,), 8), ((2, 3, 33), 8), ((40,), 9), ((5,), 8), ((3,), 8), ((1,), 8), ((64,), 3), ((20,), 0)]:
        complex_data, data = spectra(rng, shape)
        check("stft", *pair(data), n_fft)
        check("stft", *pair(complex_data), n_fft)
    for shape, n_fft in [((5, 6), None), ((2, 3, 5, 6), 8), ((5, 7), 9), ((8, 4), None), ((5, 1), None), ((1, 4), None), ((5,), None)]:
        complex_data, data = spectra(rng, shape)
        check("istft", *pair(complex_data), n_fft, drop=["pad_mode"])
        check("istft", *pair(data), n_fft, drop=["pad_mode"])


def test_frames_come_back(rng):
    data = rng.standard_normal((2, 100), np.float32)
    ours, theirs = pair(data)
    for n_fft, hop, length in [(8, 2, None), (16, 4, 100), (9, 3, 60), (8, 4, 130)]:
        window = np.hanning(n_fft + 2)[1:-1].astype(np.float32)
        back = lambda m, x: m.fft.istft(  # noqa: E731
            m.fft.stft(x, n_fft, hop, window=m.array(window)), n_fft, hop, window=m.array(window), length=length
        )
        same(back(cc, ours), back(mlx, theirs), 1e-4, 1e-4)
        got = np.array(back(cc, ours))
        known = min(got.shape[-1], 100 // hop * hop)
        np.testing.assert_allclose(got[:, :known], data[:, :known], 1e-3, 1e-3)
    slope = cc.grad(lambda x: (cc.abs(cc.fft.stft(x, 8)) ** 2).sum())(ours)
    same(slope, mlx.grad(lambda x: (mlx.abs(mlx.fft.stft(x, 8)) ** 2).sum())(theirs), 1e-4, 1e-3)
