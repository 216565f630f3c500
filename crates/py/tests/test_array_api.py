"""The array API standard 2025.12: `cupola.array_api` beside `array-api-strict`.

Calls are texts with `xp` for the namespace and `x`, `y` and so on for arrays; what is in braces takes
each value of OPTIONS. A call counts where the oracle takes it.
"""

import inspect
import itertools
import math
import re

import numpy as np
import pytest

import cupola.array_api as xp
import cupola.core as mx
from cupola.array_api._types import DTYPES

strict = pytest.importorskip("array_api_strict", reason="the oracle is array-api-strict")
strict.set_array_api_strict_flags(api_version="2025.12")
pytestmark = pytest.mark.filterwarnings("ignore")

FULL = [(1,), (3,), (2, 3), (3, 3), (2, 3, 4), (2, 3, 3)]
SHAPES = [(), (0,), (1,), (3,), (2, 3), (3, 3), (2, 0), (2, 3, 4), (2, 3, 3)]
INTEGERS = [name for name in DTYPES if "int" in name]
REALS = ["float32", "float64"]
INEXACT = [*REALS, "complex64"]

OPTIONS = {
    "axis": [None, 0, 1, -1, (0, 1), (-1,), ()],
    "one": [0, 1, -1],
    "one2": [0, 2, -2],
    "limit": [None, 0, 1],
    "limit2": [None, 2],
    "number": [True, 3, 2.5, 1j],
    "side": ["'left'", "'right'"],
    "correction": [0, 1, 0.5],
    "n": [-2, 0, 1, 3, 4],
    "ord": [0, 1, 2, 3.5, -1, "inf", "-inf"],
    "matrix_ord": ["'fro'", "'nuc'", 1, -1, 2, -2, "inf", "-inf", None],
    "type": [f"xp.{name}" for name in DTYPES],
    "real": ["xp.float32", "xp.float64", "xp.complex64"],
    "integer": [f"xp.{name}" for name in INTEGERS],
    "kind": ["'bool'", "'integral'", "('numeric', 'bool')", "'real floating'", "'complex floating'",
        "'signed integer'", "'unsigned integer'", "xp.int8"],
    "one_axis": ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"],
    "axes": ["fftn", "ifftn", "rfftn", "irfftn"],
    "sizes": [None, 2, 5],
    "flag": [False, True],
    "k": [-1, 0, 2],
    "dtype": [None, "xp.float64", "xp.int64", "xp.complex64"],
    "norm": ["'backward'", "'ortho'", "'forward'"],
}

# What stands for the elements of each kind: each beside each, with what functions treat apart.
EDGES = [0.0, 1, 0.5, 1.5, 2, 2.5, 3, 7.25, 1e-3, 1e3, 1e30, 1e-30, math.inf]
PARTS = [0.0, -0.0, 1, -1, 0.5, -2, 1e3, math.inf, -math.inf, math.nan]


def edges(name):
    """Elements that functions treat apart."""
    if name == "bool":
        return np.array([False, True])
    if name == "complex64":
        return np.array([complex(a, b) for a in PARTS for b in PARTS], name)
    if name in REALS:
        return np.array([*EDGES, *(-v for v in EDGES), math.nan], name)
    info = np.iinfo(name)
    ends = [0, 1, 2, 3, 7, info.max, info.max - 1]
    return np.array(ends + ([-1, -2, -7, info.min + 1] if info.min else []), name)


def numbers(shape, name, seed=0):
    """Elements of which some are alike."""
    rng = np.random.default_rng(seed)
    if name == "bool":
        return rng.random(shape) < 0.6
    if name in INTEGERS:
        return rng.integers(0 if name[0] == "u" else -3, 4, shape).astype(name)
    real = np.round(8 * rng.standard_normal(shape)) / 4
    if name in REALS:
        return real.astype(name)
    return (real + 1j * np.round(rng.standard_normal(shape))).astype(name)


def calls(text):
    """A call with each value of its options."""
    names = [name for name in OPTIONS if f"{{{name}}}" in text]
    for values in itertools.product(*(OPTIONS[name] for name in names)):
        yield text.format_map(dict(zip(names, values)))


def outcome(namespace, call, arrays):
    """What a call gives in a namespace, as NumPy arrays, or the exception that it raises."""
    arrays = {name: namespace.asarray(value) for name, value in arrays.items()}
    try:
        return leaves(eval(call, {"xp": namespace, "inf": math.inf}, arrays))
    except Exception as error:
        return error


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in leaves(one)]
    is_array = isinstance(value, np.generic) or hasattr(value, "__array_namespace__")
    return [np.asarray(value) if is_array else value]


def narrow(dtype, inputs):
    """A dtype of the oracle's as ours is where the defaults decide, which are narrower here."""
    if dtype in inputs:
        return dtype
    defaults = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}
    return np.dtype(defaults.get(dtype.name, dtype))


def differs(ours, theirs, inputs, by_default=False, exact=False):
    """How two results differ; None where they do not."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for a, b in zip(ours, theirs):
        if not isinstance(b, np.ndarray):
            a, b = (str(value).split(".")[-1] for value in (a, b))
            if a != b.replace("complex128", "complex64"):
                return f"{a}, not {b}"
            continue
        dtype = narrow(b.dtype, inputs) if by_default or b.dtype.kind == "c" else b.dtype
        if (a.dtype, a.shape) != (dtype, b.shape):
            return f"{a.dtype}{a.shape}, not {dtype}{b.shape}"
        same = alike(a, b, exact)
        if not np.all(same):
            return f"{a[~same][:3]}, not {b[~same][:3]}"
    return None


def alike(a, b, exact):
    """Which elements are alike: NaN, infinities and with `exact` the signs of zeros, too."""
    if a.dtype.kind == "c":
        near = np.isfinite(b) & (abs(a - b) <= 3e-5 * (abs(b) + (not exact)))
        return near | alike(a.real, b.real, exact) & alike(a.imag, b.imag, exact)
    if a.dtype.kind != "f":
        return a == b
    tolerance = 1e-10 if a.dtype == b.dtype == np.float64 else 3e-5
    same = np.isclose(a, b, tolerance, 0 if exact else tolerance, equal_nan=True)
    return same & (np.signbit(a) == np.signbit(b)) | same & (a != 0) if exact else same


def check(text, names, shapes=SHAPES, by_default=False):
    """Compares a call with the oracle's, for arrays of each dtype and shape."""
    found, compared = [], 0
    for call, name, shape in itertools.product(calls(text), names, shapes):
        if shape == () and re.search(r"axis=(\(|-|\d)|cumulative", call):
            continue  # No axes to name.
        arrays = {"x": numbers(shape, name), "y": numbers(shape, name, 1)}
        theirs = outcome(strict, call, arrays)
        if isinstance(theirs, Exception):
            continue
        compared += 1
        ours = outcome(xp, call, arrays)
        if isinstance(ours, Exception):
            difference = f"{type(ours).__name__}: {ours}"
        else:
            narrows = by_default and "dtype=xp" not in call
            difference = differs(ours, theirs, {np.dtype(name)}, narrows)
        if difference:
            found.append(f"{call} of {name}{shape}: {difference}")
    assert compared, f"the oracle takes nothing of {text}"
    assert not found, f"{len(found)} of {compared}:\n" + "\n".join(found[:12])


def public(namespace):
    return [n for n in namespace.__all__ if callable(getattr(namespace, n)) and n[0] != "_"]


OWN = ["Device", "complex128", *(n for n in strict.__all__ if "flags" in n.lower())]
FUNCTIONS = [
    (prefix, name)
    for prefix, namespace in (("", strict), ("linalg", strict.linalg), ("fft", strict.fft))
    for name in public(namespace)
    if name not in OWN and not isinstance(getattr(namespace, name), np.dtype)
    and name not in DTYPES
]


@pytest.mark.parametrize("prefix, name", FUNCTIONS)
def test_signatures(prefix, name):
    ours, theirs = (getattr(n, prefix) if prefix else n for n in (xp, strict))
    ours, theirs = (
        {p.name: (p.kind, str(p.default)) for p in inspect.signature(f).parameters.values()}
        for f in (getattr(ours, name), getattr(theirs, name))
    )
    assert list(ours) == list(theirs)
    for parameter, (kind, default) in theirs.items():
        assert ours[parameter][0] == kind
        assert "UNDEF" in default or ours[parameter][1] == default


UNARY = """abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag
isfinite isinf isnan log log10 log1p log2 logical_not negative positive real reciprocal round sign
signbit sin sinh sqrt square tan tanh trunc""".split()

BINARY = """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and
logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract""".split()

OPERATORS = {
    "add": "+", "bitwise_and": "&", "bitwise_left_shift": "<<", "bitwise_or": "|",
    "bitwise_right_shift": ">>", "bitwise_xor": "^", "divide": "/", "equal": "==",
    "floor_divide": "//", "greater": ">", "greater_equal": ">=", "less": "<", "less_equal": "<=",
    "multiply": "*", "not_equal": "!=", "pow": "**", "remainder": "%", "subtract": "-",
}  # fmt: skip


ORDERED = ["less", "less_equal", "greater", "greater_equal", "maximum", "minimum"]
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]


@pytest.mark.parametrize("name", UNARY)
def test_elements(name):
    compared = 0
    for dtype in DTYPES:
        x = edges(dtype)
        theirs = outcome(strict, f"xp.{name}(x)", {"x": x})
        if isinstance(theirs, Exception):
            continue
        compared += 1
        (ours,) = outcome(xp, f"xp.{name}(x)", {"x": x})
        # At infinities and zeros NumPy leaves complex functions to the libm; ours are in test_accuracy.py.
        is_complex = dtype == "complex64"
        at = np.isfinite(x) & (x.real != 0) & (x.imag != 0) if is_complex else slice(None)
        difference = differs([ours[at]], [theirs[0][at]], (), exact=not is_complex)
        assert not difference, f"{name} of {dtype}: {difference}"
    assert compared


def pairs(name, first, second):
    """Elements of one dtype, each with those of another that the standard defines the result for."""
    x, y = (grid.ravel() for grid in np.meshgrid(edges(first), edges(second), indexing="ij"))
    if second not in REALS + ["complex64", "bool"]:
        if name in ("floor_divide", "remainder"):
            x, y = x[y != 0], y[y != 0]
        if "shift" in name:
            fits = (y >= 0) & (y < 8 * x.itemsize)
            x, y = x[fits], y[fits]
        if name == "pow":
            x, y = x[y >= 0], y[y >= 0]
    return x, y


def defined(name, x, y, theirs):
    """Where the oracle is right: NumPy gives NaN for ∞ // 1, and its sums of logs are of the libm."""
    if name == "floor_divide" and theirs.dtype.kind == "f":
        # Rounding of the quotient before or after it is taken down.
        return ~(np.isinf(x) & np.isfinite(y)) & ~(np.abs(x / y) > 100)
    if theirs.dtype.kind == "c":
        return np.isfinite(x) & np.isfinite(y) & np.isfinite(theirs) & (y != 0) & (x != 0)
    return np.full(theirs.shape, True)


def nothing(x, y):
    return False


def rounded(x, y):
    """Where a quotient rounds to 0: as in MLX, the operator gives −0 for −1 // ∞."""
    return (x != 0) & (x / y == 0)


def compared_pairs(name, ours_of, theirs_of, exclude=nothing):
    """Compares a function of two arrays for each two dtypes."""
    compared, found = 0, []
    for first, second in itertools.product(DTYPES, DTYPES):
        x, y = pairs(name, first, second)
        try:
            theirs = np.asarray(theirs_of(*map(strict.asarray, (x.copy(), y))))
        except (TypeError, ValueError):
            continue
        if theirs.dtype == np.complex128:
            continue
        compared += 1
        try:
            ours = np.asarray(ours_of(*map(xp.asarray, (x.copy(), y))))
        except (TypeError, ValueError) as error:
            found.append(f"{first}, {second}: {error}")
            continue
        at = defined(name, x, y, theirs) & ~np.asarray(exclude(x, y))
        exact = theirs.dtype.kind != "c"
        if difference := differs([ours[at]], [theirs[at]], (), exact=exact):
            found.append(f"{first}, {second}: {difference}")
    assert compared
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_elements(name):
    compared_pairs(name, getattr(xp, name), getattr(strict, name))


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    run = eval(f"lambda x, y: x {OPERATORS[name]} y")
    compared_pairs(name, run, run, rounded if name == "floor_divide" else nothing)


@pytest.mark.parametrize("name", sorted(set(OPERATORS) - set(COMPARISONS)))
def test_operators_in_place(name):
    def run(x, y):
        names = {"x": x, "y": y}
        exec(f"x {OPERATORS[name]}= y", names)
        assert names["x"] is x
        return x

    compared_pairs(name, run, run, rounded if name == "floor_divide" else nothing)


@pytest.mark.parametrize("number", [True, 3, -2, 2.5, 1 + 2j], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_python_numbers(name, number):
    if "shift" in name and number == -2 or isinstance(number, complex) and name in ORDERED:
        return  # Not defined.
    for dtype in DTYPES:
        x = numbers((2, 3), dtype, 3)
        if name in ("floor_divide", "remainder", "pow") and dtype in INTEGERS:
            x = x + (x == 0)
        for call in (f"xp.{name}(x, {number})", f"xp.{name}({number}, x)"):
            theirs = outcome(strict, call, {"x": x})
            if isinstance(theirs, Exception) or theirs[0].dtype == np.complex128:
                continue
            if dtype in INTEGERS and (name == "pow" or "shift" in name) and not np.all(x >= 0):
                continue
            ours = outcome(xp, call, {"x": x})
            assert not isinstance(ours, Exception), f"{call} of {dtype}: {ours}"
            assert not (found := differs(ours, theirs, ())), f"{call} of {dtype}: {found}"


# Calls of x and y, two arrays of one dtype and shape.
CALLS = """
xp.clip(x, {limit}, {limit2})
xp.clip(x, min=y)
xp.empty_like(x).shape
xp.zeros_like(x, dtype={dtype})
xp.ones_like(x, dtype={dtype})
xp.full_like(x, 2, dtype={dtype})
xp.meshgrid(x, y, indexing='ij')
xp.meshgrid(x, y, x)
xp.tril(x, k={k})
xp.triu(x, k={k})
xp.asarray(x, copy=True)
xp.asarray(x, dtype={dtype})
xp.astype(x, {type})
xp.broadcast_to(x, (2, *x.shape))
xp.broadcast_arrays(x, x[..., None])
xp.can_cast(x, x.dtype)
xp.isdtype(x.dtype, {kind})
xp.result_type(x, y)
xp.result_type(x, {number})
xp.concat([x, y], axis={axis})
xp.expand_dims(x, axis={axis})
xp.flip(x, axis={axis})
xp.matrix_transpose(x)
xp.moveaxis(x, {one}, {one2})
xp.moveaxis(x, (0, 1), (-1, 0))
xp.permute_dims(x, tuple(range(x.ndim))[::-1])
xp.repeat(x, 2, axis={axis})
xp.repeat(x, xp.asarray([2, 0, 1]), axis={axis})
xp.reshape(x, (-1,))
xp.reshape(x, (x.size, 1), copy={flag})
xp.roll(x, 2, axis={axis})
xp.roll(x, (1, -1), axis=(0, 1))
xp.squeeze(xp.expand_dims(x, axis={one}), axis={one})
xp.stack([x, y], axis={one})
xp.tile(x, (2,))
xp.tile(x, (2, 1, 3))
xp.unstack(x, axis={one})
xp.argmax(x, axis={axis}, keepdims={flag})
xp.argmin(x, axis={axis}, keepdims={flag})
xp.count_nonzero(x, axis={axis}, keepdims={flag})
xp.nonzero(x)
xp.where(x == y, x, y)
xp.where(x == y, x, 1)
xp.argsort(x, axis={one}, descending={flag})
xp.sort(x, axis={one}, descending={flag})
xp.isin(x, y)
xp.isin(x, 1)
xp.unique_values(x)
xp.unique_counts(x)
xp.unique_inverse(x)
xp.unique_all(x)
xp.searchsorted(xp.sort(x), y, side={side})
xp.searchsorted(x, y, side={side}, sorter=xp.argsort(x))
xp.take(x, xp.asarray([0, -1, 0]), axis={one})
xp.take_along_axis(x, xp.argsort(y, axis={one}), axis={one})
xp.all(x, axis={axis}, keepdims={flag})
xp.any(x, axis={axis}, keepdims={flag})
xp.diff(x, axis={one}, n=2)
xp.diff(x, axis={one}, prepend=y, append=y)
xp.max(x, axis={axis}, keepdims={flag})
xp.min(x, axis={axis}, keepdims={flag})
xp.mean(x, axis={axis}, keepdims={flag})
xp.std(x, axis={axis}, correction={correction}, keepdims={flag})
xp.var(x, axis={axis}, correction={correction}, keepdims={flag})
xp.matmul(x, y)
xp.matmul(x, xp.matrix_transpose(y))
x @ xp.matrix_transpose(y)
xp.tensordot(x, y, axes=0)
xp.tensordot(x, xp.permute_dims(y, tuple(range(y.ndim))[::-1]), axes=1)
xp.tensordot(x, y, axes=((0,), (0,)))
xp.vecdot(x, y, axis={one})
xp.linalg.cross(x, y, axis={one})
xp.linalg.diagonal(x, offset={k})
xp.linalg.outer(x, y)
xp.linalg.trace(x, dtype=xp.float64)
xp.linalg.vector_norm(x, axis={axis}, keepdims={flag}, ord={ord})
xp.linalg.matrix_norm(x, keepdims={flag}, ord={matrix_ord})
xp.linalg.matrix_power(x, {n})
xp.linalg.matrix_rank(x)
xp.linalg.det(x)
xp.linalg.slogdet(x)
xp.linalg.inv(x)
xp.linalg.pinv(x)
xp.linalg.pinv(x, rtol=0.5)
xp.linalg.solve(x, y)
xp.linalg.solve(x, y[..., 0])
xp.linalg.svdvals(x)
xp.linalg.cholesky(x @ xp.conj(xp.matrix_transpose(x)) + xp.asarray(4, dtype=x.dtype) * xp.eye(x.shape[0], dtype=x.dtype), upper={flag})
xp.linalg.eigvalsh(x + xp.conj(xp.matrix_transpose(x)))
x.T
x.mT
x.shape, x.ndim, x.size
-x, +x
abs(x)
~x
x.__array_namespace__() is xp
""".strip().splitlines()

# The same, where the defaults of dtypes decide.
BY_DEFAULT = """
xp.sum(x, axis={axis}, keepdims={flag})
xp.prod(x, axis={axis}, keepdims={flag})
xp.sum(x, dtype={dtype})
xp.prod(x, dtype={dtype})
xp.cumulative_sum(x, axis={axis}, include_initial={flag})
xp.cumulative_prod(x, axis={axis}, include_initial={flag})
xp.cumulative_sum(x, axis=0, dtype={dtype})
xp.linalg.trace(x, offset={k})
""".strip().splitlines()

# Calls without arrays.
PLAIN = """
xp.arange(5)
xp.arange(2, 7, 2)
xp.arange(7, 2, -2)
xp.arange(3, 3)
xp.arange(0.5, 3, dtype={dtype})
xp.arange(2.5)
xp.linspace(0, 1, 5, dtype={dtype}, endpoint={flag})
xp.linspace(1, 1j, 4, endpoint={flag})
xp.linspace(3, 3, 0)
xp.linspace(3, 4, 1)
xp.eye(3, k={k}, dtype={dtype})
xp.eye(2, 4, k={k})
xp.full((2, 3), {number}, dtype={dtype})
xp.full((), {number})
xp.full(3, {number})
xp.ones((2, 0), dtype={dtype})
xp.zeros(3, dtype={dtype})
xp.empty((2, 3), dtype={dtype}).shape
xp.asarray({number}, dtype={dtype})
xp.asarray([[1, 2], [3, 4]], dtype={dtype})
xp.asarray([True, False])
xp.asarray([1.5, 2])
xp.asarray([1, 2j])
xp.asarray([])
xp.broadcast_shapes((2, 1), (3,), (1, 1))
xp.fft.fftfreq({n}, d=0.5)
xp.fft.rfftfreq({n}, d=0.5)
xp.fft.fftfreq(4, dtype=xp.float64)
xp.finfo({real}).bits, xp.finfo({real}).eps, xp.finfo({real}).max, xp.finfo({real}).min
xp.finfo({real}).smallest_normal, xp.finfo({real}).dtype
xp.finfo(xp.ones(2, dtype={real})).bits
xp.iinfo({integer}).bits, xp.iinfo({integer}).max, xp.iinfo({integer}).min, xp.iinfo({integer}).dtype
xp.pi, xp.e, xp.inf, xp.newaxis
""".strip().splitlines()

FOURIER = """
xp.fft.{one_axis}(x, n={sizes}, axis={one}, norm={norm})
xp.fft.{axes}(x, norm={norm})
xp.fft.{axes}(x, s=(3,), axes=(0,))
xp.fft.fftshift(x, axes={axis})
xp.fft.ifftshift(x, axes={axis})
""".strip().splitlines()


@pytest.mark.parametrize("text", CALLS)
def test_calls(text):
    check(text, INEXACT if "linalg" in text else DTYPES, FULL if "norm" in text else SHAPES)


@pytest.mark.parametrize("text", BY_DEFAULT)
def test_calls_with_default_dtypes(text):
    check(text, DTYPES, by_default=True)


@pytest.mark.parametrize("text", PLAIN)
def test_calls_without_arrays(text):
    check(text, ["bool"], [()], by_default=True)


@pytest.mark.parametrize("text", FOURIER)
def test_fourier_transforms(text):
    check(text, ["float32", "complex64"], [(3,), (4,), (3, 4), (2, 3, 4)])


INDICES = ["...", "()", "None", "0", "-1", "1:", "::-1", "5:1", ":0", "..., 0", "0, ...", "None, ..., None",
    "1:3, None", "::2, ::-1", "-1, :1", "1, 1, 1", "x != 0", "i", "i, i", "i, 0", "0, i", "..., i",
    "i[None], i[:, None]", ":, i"]  # fmt: skip


@pytest.mark.parametrize("index", INDICES)
def test_indexing(index):
    namespace = {"i": np.array([0, -1, 1])}
    compared = 0
    for dtype, shape in itertools.product(["bool", "int16", "float64", "complex64"], SHAPES):
        arrays = {"x": numbers(shape, dtype), "y": numbers(shape, dtype, 1), **namespace}
        theirs = outcome(np, f"x[{index}]", arrays)
        if isinstance(theirs, Exception):
            continue
        compared += 1
        ours = outcome(xp, f"x[{index}]", arrays)
        assert not isinstance(ours, Exception), f"{dtype}{shape}: {ours}"
        assert not (difference := differs(ours, theirs, ())), f"{dtype}{shape}: {difference}"
        changed = []
        for space in (xp, np):
            x = space.asarray(arrays["x"].copy())
            names = {"x": x, "i": space.asarray(namespace["i"])}
            names["value"] = space.asarray(1, dtype=x.dtype)
            try:
                exec(f"x[{index}] = value", names)
            except Exception as error:
                changed.append(error)
                continue
            changed.append([np.asarray(x)])
        ours, theirs = changed
        if not isinstance(theirs, Exception):
            assert not isinstance(ours, Exception), f"{dtype}{shape}: {ours}"
            assert not (difference := differs(ours, theirs, ())), f"{dtype}{shape}: {difference}"
    assert compared


def test_floor_division_of_and_by_infinities():
    """The standard's table, of which NumPy keeps a part."""
    inf, nan = math.inf, math.nan
    table = [(inf, 2, inf), (inf, -2, -inf), (-inf, 2, -inf), (-inf, -2, inf), (inf, inf, nan),
        (2, inf, 0.0), (2, -inf, -1), (-2, inf, -1), (-2, -inf, 0.0), (0.0, inf, 0.0), (-0.0, inf, -0.0),
        (0.0, -2, -0.0), (-0.0, -2, 0.0), (1, 0.0, inf), (1, -0.0, -inf), (0.0, 0.0, nan), (nan, 1, nan)]  # fmt: skip
    x, y, want = (np.array(column, np.float32) for column in zip(*table))
    ours = np.asarray(xp.floor_divide(xp.asarray(x), xp.asarray(y)))
    assert not differs([ours], [want], (), exact=True)


def test_isin():
    for dtype, invert in itertools.product(DTYPES, [False, True]):
        x, y = numbers((3, 4), dtype), numbers(3, dtype, 1)
        ours = xp.isin(xp.asarray(x), xp.asarray(y), invert=invert)
        assert np.array_equal(ours, np.isin(x, y, invert=invert))
    assert xp.isin(3, xp.asarray([1, 3])) and not xp.isin(xp.asarray(math.nan), math.nan)
    assert xp.isin(xp.asarray([1, 2]), xp.asarray([], dtype=xp.int32)).shape == (2,)


def test_each_nan_is_a_distinct_element():
    x = xp.asarray([math.nan, -0.0, math.nan, 0.0])
    values, first, inverse, counts = xp.unique_all(x)
    assert values.shape == (3,) and counts.tolist() == [2, 1, 1]
    assert inverse.tolist() == [1, 0, 2, 0] and first.tolist() == [1, 0, 2]


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 5), (0, 3), (2, 0)])
def test_factorizations(dtype, shape):
    x = xp.asarray(numbers(shape, dtype))

    def same(a, b):
        return not differs([np.asarray(a)], [np.asarray(b)], ())

    rows, columns = shape[-2:]
    for mode, size in (("reduced", min(rows, columns)), ("complete", rows)):
        q, r = xp.linalg.qr(x, mode=mode)
        assert q.shape[-2:] == (rows, size) and r.shape[-2:] == (size, columns)
        eye = xp.broadcast_to(xp.eye(size, dtype=x.dtype), (*shape[:-2], size, size))
        assert same(q @ r, x) and same(xp.conj(q).mT @ q, eye) and same(xp.triu(r), r)
    for full in (False, True):
        u, s, vh = xp.linalg.svd(x, full_matrices=full)
        k = min(rows, columns)
        assert u.shape[-1] == (rows if full else k) and vh.shape[-2] == (columns if full else k)
        assert same((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
    if rows == columns:
        hermitian = x + xp.conj(x).mT
        values, vectors = xp.linalg.eigh(hermitian)
        assert same(hermitian @ vectors, vectors * values[..., None, :])
        values, vectors = xp.linalg.eig(x)
        assert same(xp.astype(x, xp.complex64) @ vectors, vectors * values[..., None, :])
        assert xp.linalg.eigvals(x).dtype == xp.complex64


COMPLEX_FUNCTIONS = {
    "cholesky": lambda la, x: la.cholesky(x), "inv": lambda la, x: la.inv(x), "det": lambda la, x: la.det(x),
    "solve": lambda la, x: la.solve(x, x[:, :2]), "pinv": lambda la, x: la.pinv(x[:, :3]),
    "slogdet": lambda la, x: la.slogdet(x)[1], "power": lambda la, x: la.matrix_power(x, -2),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX_FUNCTIONS)
def test_derivatives_by_complex_matrices(name):
    f = COMPLEX_FUNCTIONS[name]
    x, tangent = numbers((4, 4), "complex64"), numbers((4, 4), "complex64", 1)
    x, tangent = x @ x.conj().T + 5 * np.eye(4, dtype="complex64"), tangent + tangent.conj().T
    (out,), (ours,) = mx.jvp(lambda x: f(xp.linalg, x), [mx.array(x)], [mx.array(tangent)])
    low, high = (f(np.linalg, x.astype(complex) + h * tangent) for h in (-1e-6, 1e-6))
    np.testing.assert_allclose(ours, (high - low) / 2e-6, 1e-3, 1e-5)
    # A cotangent pairs with what a tangent becomes as its pullback does with the tangent.
    ct = mx.array(numbers(out.shape, out.dtype == mx.complex64 and "complex64" or "float32", 2))
    _, (back,) = mx.vjp(lambda x: f(xp.linalg, x), [mx.array(x)], [ct])
    one, other = (mx.sum(mx.real(mx.conj(a) * b)).item() for a, b in ((ct, ours), (back, mx.array(tangent))))
    assert one == pytest.approx(other, 1e-3, 1e-4)


def test_names():
    missing = [n for n in strict.__all__ if n not in OWN + ["__version__"] and not hasattr(xp, n)]
    assert not missing and set(xp.__all__) <= set(dir(xp))
    assert xp.__array_api_version__ == strict.__array_api_version__
    for name in ("linalg", "fft"):
        assert set(getattr(strict, name).__all__) <= set(getattr(xp, name).__all__)


def test_namespace_of_arrays():
    x = mx.array([1.0])
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        assert x.__array_namespace__(api_version=version) is xp
    with pytest.raises(ValueError, match="2025.12, not 2020.12"):
        x.__array_namespace__(api_version="2020.12")


def test_types_of_python_are_dtypes():
    for kind, dtype in [(bool, xp.bool), (int, xp.int64), (float, xp.float64), (complex, xp.complex64)]:
        made = [xp.zeros(2, dtype=kind), xp.ones(2, dtype=kind), xp.full((2,), 1, dtype=kind), xp.asarray([0, 1], dtype=kind),
                xp.astype(xp.asarray([0, 1]), kind), xp.zeros_like(xp.asarray(1), dtype=kind)]  # fmt: skip
        assert all(x.dtype == dtype for x in made)


def test_info():
    info, theirs = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert info.capabilities().keys() == theirs.capabilities().keys()
    assert info.default_device() in info.devices()
    assert info.default_dtypes() == {
        "real floating": xp.float32, "complex floating": xp.complex64,
        "integral": xp.int32, "indexing": xp.int64,
    }  # fmt: skip
    assert info.default_dtypes(device=info.default_device()) == info.default_dtypes()
    for kind in [None, "bool", "signed integer", "unsigned integer", "integral", "real floating",
        "complex floating", "numeric", ("bool", "integral"), ()]:  # fmt: skip
        want = [name for name in theirs.dtypes(kind=kind) if name != "complex128"]
        assert sorted(info.dtypes(kind=kind)) == sorted(want)
    assert xp.asarray(1.0).dtype == info.default_dtypes()["real floating"]
    assert xp.asarray(1).dtype == info.default_dtypes()["integral"]
    assert xp.asarray(1j).dtype == info.default_dtypes()["complex floating"]
    assert xp.argmax(xp.asarray([1])).dtype == info.default_dtypes()["indexing"]


def test_devices():
    x = mx.array([1.0, 2.0])
    assert x.device == mx.default_device()
    for device in xp.__array_namespace_info__().devices():
        y = x.to_device(device)
        assert y.device == device and y.tolist() == [1, 2]
        assert xp.zeros_like(y).device == xp.astype(x, xp.int32, device=device).device == device
        for made in [
            xp.asarray([1.0], device=device), xp.asarray(x, device=device), xp.eye(2, device=device),
            xp.arange(3, device=device), xp.ones(2, device=device), xp.full(2, 1, device=device),
            xp.linspace(0, 1, 3, device=device), xp.from_dlpack(x, device=device),
            xp.from_dlpack(np.ones(2), device=device), xp.fft.fftfreq(3, device=device),
        ]:  # fmt: skip
            assert made.device == device
        if device != x.device:
            with pytest.raises(ValueError, match="without a copy"):
                xp.asarray(x, device=device, copy=False)


def test_arrays_of_other_libraries_keep_their_dtypes():
    for name in DTYPES:
        there = numbers((2, 3), name)
        for make in (xp.asarray, xp.from_dlpack):
            ours = make(there)
            assert ours.dtype == DTYPES[name] and np.array_equal(ours, there)
            assert np.array_equal(np.from_dlpack(ours), there)
    assert xp.asarray(np.float64(1.5)).dtype == xp.float64
    there = np.zeros(3)
    shared, copied = xp.asarray(there, copy=False), xp.asarray(there, copy=True)
    there[0] = 1
    assert shared[0] == 1 and copied[0] == 0


def test_copies():
    x = xp.asarray([1.0, 2.0])
    copies = [xp.asarray(x, copy=True), xp.astype(x, x.dtype), xp.from_dlpack(x, copy=True),
        xp.reshape(x, (2,)), +x]  # fmt: skip
    same = [xp.asarray(x), xp.asarray(x, copy=False), xp.astype(x, x.dtype, copy=False)]
    x[0] = 5
    assert all(y[0] == 1 for y in copies) and all(y is x for y in same)
    with pytest.raises(ValueError):
        xp.asarray(x, dtype=xp.int32, copy=False)
    with pytest.raises(ValueError):
        xp.asarray([1], copy=False)


def test_numbers_of_arrays():
    assert bool(xp.asarray(True)) and int(xp.asarray(-3)) == -3 and float(xp.asarray(0.5)) == 0.5
    assert complex(xp.asarray(1 + 2j)) == 1 + 2j == complex(xp.asarray([1 + 2j])[0])
    assert [1, 2][xp.asarray(1)] == 2 and complex(xp.asarray(3)) == 3 and float(xp.asarray(True)) == 1
    with pytest.raises(TypeError):
        float(xp.asarray(1j))
    with pytest.raises(TypeError):
        [1, 2][xp.asarray(1.0)]


@pytest.mark.parametrize("call, error, words", [
    ("xp.astype(xp.asarray(1j), xp.float32)", TypeError, "astype: .*complex64 does not become"),
    ("xp.cumulative_sum(xp.ones((2, 2)))", ValueError, r"cumulative_sum: .*\(2, 2\)"),
    ("xp.take(xp.ones((2, 2)), xp.asarray([0]))", ValueError, r"take: .*\(2, 2\)"),
    ("xp.moveaxis(xp.ones((2, 2)), (0, 1), 0)", ValueError, "moveaxis: source"),
    ("xp.moveaxis(xp.ones((2, 2)), 2, 0)", IndexError, "moveaxis: source 2"),
    ("xp.linalg.qr(xp.ones((2, 2)), mode='full')", ValueError, "qr: mode"),
    ("xp.result_type(1, 2.0)", ValueError, "result_type"),
    ("xp.nonzero(xp.asarray(1))", ValueError, "nonzero"),
    ("xp.squeeze(xp.ones((2, 1)), 0)", ValueError, "squeeze"),
    ("xp.broadcast_shapes((2,), (3,))", ValueError, "broadcast_shapes"),
])  # fmt: skip
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        eval(call)
