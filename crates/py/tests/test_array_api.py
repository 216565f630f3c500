"""The array API standard 2025.12: `cupola.array_api` beside `array-api-strict`.

Calls are texts with `xp` for the namespace and `x`, `y` and so on for arrays; what is in braces takes
each value of OPTIONS. A call counts where the oracle takes it.
"""

import inspect
import itertools
import math
import re
import warnings

import numpy as np
import pytest

import cupola.array_api as xp
import cupola.core as mx
from cupola.array_api._types import DTYPES

strict = pytest.importorskip("array_api_strict", reason="the oracle is array-api-strict")
strict.set_array_api_strict_flags(api_version="2025.12")
pytestmark = pytest.mark.filterwarnings("ignore")

SHAPES = [(), (0,), (1,), (3,), (2, 3), (3, 3), (2, 0), (2, 3, 4), (2, 3, 3)]
NUMBERS = [name for name in DTYPES if name != "bool"]
INTEGERS = [name for name in DTYPES if "int" in name]
REALS = ["float32", "float64"]

OPTIONS = {
    "axis": [None, 0, 1, -1, (0, 1), (-1,), ()],
    "one": [0, 1, -1],
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
    real = np.round(2 * rng.standard_normal(shape), 1)
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
    is_array = hasattr(value, "__array_namespace__")
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
            if str(a).split(".")[-1] != str(b).split(".")[-1]:
                return f"{a}, not {b}"
            continue
        dtype = narrow(b.dtype, inputs) if by_default or b.dtype.kind == "c" else b.dtype
        if (a.dtype, a.shape) != (dtype, b.shape):
            return f"{a.dtype}{a.shape}, not {dtype}{b.shape}"
        if not close(a, b, exact):
            return f"{a}, not {b}"
    return None


def close(a, b, exact):
    """Whether elements are alike, NaN, infinities and with `exact` the signs of zeros, too."""
    if a.dtype.kind == "c":
        return close(a.real, b.real, exact) and close(a.imag, b.imag, exact)
    if a.dtype.kind != "f":
        return bool(np.all(a == b))
    tolerance = 1e-10 if a.dtype == b.dtype == np.float64 else 3e-5
    if not np.allclose(a, b, tolerance, 0 if exact else tolerance, equal_nan=True):
        return False
    return not exact or bool(np.all((np.signbit(a) == np.signbit(b)) | (a != 0)))


def check(text, names, shapes=SHAPES, **how):
    """Compares a call with the oracle's, for arrays of each dtype and shape."""
    found, compared = [], 0
    for call, name, shape in itertools.product(calls(text), names, shapes):
        arrays = {"x": numbers(shape, name), "y": numbers(shape, name, 1)}
        theirs = outcome(strict, call, arrays)
        if isinstance(theirs, Exception):
            continue
        compared += 1
        ours = outcome(xp, call, arrays)
        if isinstance(ours, Exception):
            difference = f"{type(ours).__name__}: {ours}"
        else:
            difference = differs(ours, theirs, {np.dtype(name)}, **how)
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


@pytest.mark.parametrize("name", UNARY)
def test_elements(name):
    check(f"xp.{name}(x)", DTYPES)
