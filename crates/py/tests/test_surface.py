"""Forms of arguments, dtypes, shapes and errors of functions, methods and operators, against MLX.

A table has a row for each form; a row is called with arrays of many kinds. Where MLX raises, Cupola raises
the same type; what MLX's bindings refuse as "incompatible", Cupola may take.
"""

import inspect
import operator

import numpy as np
import pytest
from conftest import mlx, same

import cupola.core as cc


class A:
    """An array of both packages."""

    def __init__(self, data, dtype=None, view=None):
        self.data, self.dtype, self.view = np.asarray(data), dtype, view

    def of(self, module):
        x = module.array(self.data)
        x = x if self.dtype is None else x.astype(getattr(module, self.dtype))
        return x if self.view is None else self.view(x)

    def __repr__(self):
        return f"{self.dtype or self.data.dtype}{list(self.data.shape)}"


class D(str):
    """A dtype, or a category, of both packages."""

    def of(self, module):
        return getattr(module, self)


def F(*shape):
    return A(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) / 4 - 0.5)


def I(*shape):  # noqa: E743
    return A((np.arange(int(np.prod(shape))) % 5 + 1).astype(np.int32).reshape(shape))


MATRIX, VECTOR, SCALAR, EMPTY, CUBE = F(3, 4), F(4), F(), F(0, 3), F(2, 3, 4)
TRUTH = A(np.arange(12).reshape(3, 4) % 2 == 0)
VIEW = A(np.arange(24, dtype=np.float32).reshape(4, 6), view=lambda x: x.T[::2])
SAMPLES = [MATRIX, VECTOR, SCALAR, EMPTY, CUBE, I(3, 4), TRUTH, A(F(3, 4).data, "bfloat16"), VIEW]


def made(value, module):
    if isinstance(value, (A, D)):
        return value.of(module)
    if isinstance(value, (list, tuple)):
        return type(value)(made(v, module) for v in value)
    return value


def outcome(module, f, args, kwargs):
    """What a call gives, or the exception that it raises."""
    args = [made(a, module) for a in args]
    kwargs = {k: made(v, module) for k, v in kwargs.items()}
    try:
        if callable(f):
            out = f(module, *args, **kwargs)
        else:
            for part in f.split("."):
                module_or_f = getattr(module if part == f.split(".")[0] else module_or_f, part)
            out = module_or_f(*args, **kwargs)
        module.eval(out)
        return out
    except Exception as error:
        return error


def check(f, *args, **kwargs):
    want, got = outcome(mlx, f, args, kwargs), outcome(cc, f, args, kwargs)
    what = (f, args, kwargs, got, want)
    if isinstance(want, Exception):
        if "std::bad_cast" in str(want):
            return
        if isinstance(want, TypeError) and "incompatible function arguments" in str(want):
            assert not isinstance(got, (RuntimeError, OverflowError)), what
            return
        assert type(got) is type(want), what
        return
    assert not isinstance(got, Exception), what
    half = isinstance(want, mlx.array) and want.dtype in (mlx.bfloat16, mlx.float16)
    try:
        same(got, want, *((3e-2, 3e-2) if half else (2e-4, 1e-5)))
    except AssertionError as error:
        raise AssertionError(what) from error


ROWS = {
    "reshape": [((2, 6),), ((-1,),), (-1,), ((5, 2),), ((-1, -1),), ([3, 4],), ((0, -1),), ((),), ((1,),), ((-1, 5),), ((3, -2),)],
    "flatten": [(), (1,), (0, 1), (1, 0), (-2, -1), (0, 5), (5,)],
    "unflatten": [(0, (1, -1)), (-1, (2, -1)), (0, (5, 5)), (7, (1,)), (0, (-1, -1))],
    "transpose": [(), ((1, 0),), ([1, 0],), ((0, 0),), ((0, 5),), ((0,),), ((-1, 0),)],
    "permute_dims": [(), ((1, 0),)],
    "swapaxes": [(0, 1), (0, -1), (0, 5), (-7, 0), (0, 0)],
    "moveaxis": [(0, 1), (-1, 0), (0, 9)],
    "expand_dims": [(0,), (-1,), ((0, 1),), ((0, 0),), (5,), (-5,), ([0, -1],), ((),)],
    "squeeze": [(), (0,), (-1,), (9,), ((),)],
    "broadcast_to": [((2, 3, 4),), ((3, 4),), ((5,),), (4,), ((),), ((2, 0),), ((-1, 4),), ((0, 3, 4),)],
    "roll": [(1,), (1, 0), ((1, -1), (0, 1)), (1, (0, 1)), ((1, 2),), ((1, 2), 0), (100,), (-3, 1), (0,), (1, 9)],
    "tile": [(2,), ((2, 1, 3),), ((2,),), (0,), ((0, 2),), ((),), (-1,), ((1, 1, 1, 2),)],
    "repeat": [(2,), (3, 1), (2, -1), (0,), (0, 0), (-1,), (2, 9), (1, 0)],
    "pad": [(1,), ((1, 2),), ([(0, 1), (2, 0)],), (((1,), (2,)),), ([(1, 2)],), (0,), (((1, 2), (1, 2), (1, 2)),), ((1, 2, 3),)],
    "split": [(3,), (2,), ([1, 2],), ([1, 2], 1), ((1,),), (5,), (2, 1), (2, -1), (2, 9), ([2, 1],), ([0, 9],), ([],), ([-1],), (1,)],
    "diagonal": [(), (1,), (-1,), (9,), (0, 1, 0), (0, 0, 0), (0, -1, -2), (0, 0, 7)],
    "diag": [(), (1,), (-2,), (9,)],
    "trace": [(), (1,), (0, 0, 1), (0, 0, 0), (0, 0, 9)],
    "tril": [(), (1,), (-1,)],
    "triu": [(), (1,), (-1,)],
    "topk": [(2,), (1, 0), (2, None), (9,), (0,), (1, 9)],
    "take": [(A([0, 1]), 1), (A([[0, 1], [1, 0]]), -1), (0, 9), (A([0.5]),), (A([True]),), ([0, 1],), (A([], "int32"), 0)],
    "take_along_axis": [(A([[0], [1], [0]]), 1), (A([[0, 1, 2, 0]]), 0), (A([0]), 0), (A([[0]]), 9)],
    "clip": [(0, 1), (None, 0.5), (0.5, None), (None, None), (A([0.0, 0.0, 0.0, 0.0]), 1), (2, 1)],
    "round": [(), (1,), (-1,)],
    "linalg.norm": [(), (1,), (float("inf"),), (-float("inf"),), (-1,), ("x",), (1, 0), (2, 0), ("fro", 0), (1, (0, 1)), (None, 9)],
    "minmax": [(), (0,), (1, True), (9,)],
    "diff": [(), (2,), (0,), (1, 0), (9,), (1, 9)],
    "atleast_1d": [()],
    "atleast_2d": [()],
    "atleast_3d": [()],
    "matrix_transpose": [()],
    "contiguous": [(), (True,)],
    "view": [(D("int32"),), (D("int16"),), (D("uint8"),), (D("float16"),)],
    "astype": [(D(d),) for d in "bool_ uint8 int8 int16 uint32 int64 float16 bfloat16 float32 complex64".split()],
    "sort": [(), (0,), (None,), (9,)],
    "argsort": [(), (0,), (9,)],
    "median": [(), (0,), ((0, 1), True)],
    "unique": [(5,), (3,), (20,), (-1,)],
    "searchsorted": [(A([0.3, 0.9]),), (A([0.3, 0.9]), "right"), (A([0.3]), "x"), (0.5,)],
    "nan_to_num": [(), (1.0,)],
    "array_equal": [(MATRIX,), (VECTOR,), (1,)],
    "full_like": [(3,), (2.5, D("int32")), (A(2),)],
    "zeros_like": [(), (D("int8"),)],
    "ones_like": [(), (D("int8"),)],
    "tensordot": [(MATRIX, 0), (MATRIX, ([0], [0])), (MATRIX,), (MATRIX, ([0], [1])), (MATRIX, -1)],
    "inner": [(MATRIX,), (VECTOR,)],
    "outer": [(MATRIX,), (VECTOR,)],
    "isnan": [(), (None,)],
    "real": [()],
    "imag": [()],
    "convolve": [(A([1.0, 2.0]),), (A([1.0, 2.0]), "same"), (A([1.0, 2.0]), "valid"), (A([1.0, 2.0]), "x")],
    "cumsum": [(), (0,), (-1,), (9,)],
    "cumprod": [(), (0,)],
    "cummax": [(), (0,)],
    "cummin": [(), (1,)],
}
NAMED = [
    ("reshape", {"shape": (12,)}), ("flatten", {"start_axis": -1}), ("flatten", {"end_axis": 0}),
    ("unflatten", {"axis": -1, "shape": (2, -1)}), ("transpose", {"axes": (0, 1)}), ("swapaxes", {"axis1": 0, "axis2": 1}),
    ("moveaxis", {"source": 0, "destination": -1}), ("expand_dims", {"axis": 1}), ("broadcast_to", {"shape": (3, 4)}),
    ("roll", {"shift": 1, "axis": -1}), ("tile", {"reps": 2}), ("repeat", {"repeats": 2, "axis": 0}),
    ("pad", {"pad_width": 1}), ("pad", {"pad_width": 1, "mode": "wrap"}), ("pad", {"pad_width": 1, "constant_values": 7}),
    ("pad", {"pad_width": 1, "constant_values": A([2.5])}), ("split", {"indices_or_sections": 3, "axis": 0}),
    ("diagonal", {"offset": 1, "axis1": 0, "axis2": 1}), ("trace", {"dtype": D("float16")}), ("topk", {"k": 1}),
    ("clip", {"a_min": 0, "a_max": 1}), ("round", {"decimals": 2}), ("linalg.norm", {"axis": 1}),
    ("linalg.norm", {"axis": 0, "keepdims": True}), ("minmax", {"axis": 1, "keepdims": True}), ("diff", {"n": 1, "axis": -2}),
    ("unstack", {}), ("unstack", {"axis": 1}), ("unstack", {"axis": 9}), ("contiguous", {"allow_col_major": True}),
    ("var", {"ddof": 1}), ("var", {"correction": 1}), ("std", {"axis": 0, "correction": 1}), ("std", {"ddof": 1, "correction": 2}),
    ("count_nonzero", {"axis": 0}), ("count_nonzero", {"axis": (0, 1), "keepdims": True}), ("nan_to_num", {"nan": 1, "posinf": 2, "neginf": 3}),
    ("unique", {"size": 4}), ("unique", {"size": 5, "return_index": True, "return_inverse": True, "return_counts": True}),
    ("searchsorted", {"values": A([0.3]), "side": "right"}), ("isclose", {"b": MATRIX, "rtol": 0.1, "atol": 0.1, "equal_nan": True}),
    ("cumsum", {"axis": 0, "reverse": True, "inclusive": False}), ("cumsum", {"axis": 0, "dtype": D("int64")}),
    ("softmax", {"axis": -1, "precise": True}), ("sum", {"axis": (0, -1), "keepdims": True}), ("sum", {"foo": 1}),
]
# Arrays of which MLX gives what lies behind them, does not come back, or counts otherwise; the manual has the rest.
UNSAFE = {
    "var": [SCALAR, EMPTY], "std": [SCALAR, EMPTY], "take": [SCALAR, EMPTY], "take_along_axis": [SCALAR, EMPTY],
    "squeeze": [EMPTY], "split": [SCALAR], "pad": [EMPTY], "logsumexp": [EMPTY],
    "softmax": [SCALAR, I(3, 4), TRUTH], "linalg.norm": [SCALAR, EMPTY], "diff": [SCALAR], "cumsum": [], "topk": [SCALAR],
}


def samples(name):
    unsafe = [repr(a) for a in UNSAFE.get(name, [])]
    return [a for a in SAMPLES if repr(a) not in unsafe]


@pytest.mark.parametrize("name", ROWS)
def test_functions(name):
    for args in ROWS[name]:
        for x in samples(name):
            check(name, x, *args)
        if hasattr(mlx.array, name) and name not in ("astype", "split"):
            check(lambda m, x, *args: getattr(x, name)(*args), MATRIX, *args)
            check(lambda m, x, *args: getattr(x, name)(*args), CUBE, *args)


@pytest.mark.parametrize("name,kwargs", NAMED, ids=str)
def test_named_arguments(name, kwargs):
    for x in samples(name):
        check(name, x, **kwargs)


REDUCTIONS = "sum prod max min mean all any logsumexp argmax argmin median count_nonzero softmax flip".split()
AXES = [None, 0, 1, -1, -2, 2, 5, -4, (0,), (0, 1), (0, -1), (), [], [0], "a", 1.5]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_axes(name):
    for x in (MATRIX, VECTOR, CUBE, VIEW, I(2, 3), TRUTH):
        if name in ("softmax", "logsumexp") and x is not MATRIX and x is not CUBE:
            continue
        for axis in AXES:
            # Over no axis MLX gives what it was given, whatever its dtype.
            if axis in ((), []) and (name == "median" or x is TRUTH) or name == "flip" and axis == (0, -1):
                continue
            check(name, x, axis=axis)
            if name not in ("softmax", "flip"):
                check(name, x, axis=axis, keepdims=True)


CREATIONS = {
    "zeros": [(3,), ((2, 3),), ([2, 3],), (0,), (-1,), ((2, -1),), ((2,), D("int32")), ((),)],
    "ones": [(3,), ((2, 3), D("complex64")), (-1,)],
    "full": [(3, 1), ((2, 3), 2.5), ((2,), True), ((2,), 1j), ((2, 3), A([1.0, 2.0, 3.0])), ((2,), A([1.0, 2.0, 3.0])), ((2,), 3, D("float16")), (2, 2**40), ((2,), "a"), ((-1,), 3)],
    "eye": [(3,), (3, 4), (3, 4, 1), (0,), (-1,), (3, -1), (3, 3, 9), (3, 3, -1, D("int32"))],
    "identity": [(3,), (3, D("int32")), (0,), (-1,)],
    "tri": [(3,), (3, 4, 1), (0,), (3, 2, 0, D("int32"))],
    "arange": [(5,), (0,), (-3,), (1, 5), (1, 5, 2), (5, 1, -1), (5, 1), (1.5,), (0, 1, 0.1), (0.5, 5), (0, 5, 0), (True,), ("a",), (None,), (1, None, 1), (A(5),), (float("inf"),), (float("nan"),), (0, 2**33, 2**31), (2**31, 2**31 + 3), (0, -5, -2), (1, 5, 2, D("float16"))],
    "linspace": [(0, 1), (0, 1, 5), (0, 1, 1), (0, 1, 0), (0, 1, -1), (1, 0, 3), (0, 1, 5, False), (A(0.0), A(1.0), 3)],
    "hanning": [(0,), (1,), (5,)],
    "bartlett": [(0,), (1,), (2,), (5,)],
    "meshgrid": [(F(2), F(3)), (F(2),), (), (A(1.0), F(3))],
    "concatenate": [([F(2), F(3)],), ([F(2, 2), F(3, 2)],), ([F(2, 2), F(2, 3)], 1), ([F(2, 2), F(2, 3)],), ([],), ([F(2), I(2)],), ([F(2), F(2)], None), ([F(2), F(2, 2)],), ([A(1.0), A(2.0)],), ((F(2), F(2)),)],
    "stack": [([F(2), F(2)],), ([F(2), F(2)], 1), ([F(2), F(2)], -1), ([F(2), F(3)],), ([],), ([F(2)], 9), ([A(1.0), A(2.0)],), ([F(2), I(2)],), ([F(2, 3)] * 3, 2)],
    "einsum": [("ij->i", MATRIX), ("ij,ij->", MATRIX, MATRIX), ("ij,jk", MATRIX, F(4, 2)), ("ii", F(3, 3)), ("ii->i", F(3, 3)), ("i,j->ij", VECTOR, VECTOR), ("...i,i->...", MATRIX, VECTOR), ("ij", MATRIX), ("i->ij", VECTOR), ("ij,j", MATRIX, F(3)), ("ij->k", MATRIX), ("ijk->kji", CUBE), (" i j -> i ", MATRIX), ("ij->ii", MATRIX), ("i1->i", MATRIX)],
    "where": [(A([True, False]), F(2), F(2)), (True, F(2), 0), (I(2), F(2), I(2)), (A([True, False]), 1, 2), (A([True, False]), 1, 2.5), (A([True, False]), F(3), F(2)), (A([[True], [False]]), F(2), 1)],
    "addmm": [(F(3, 2), MATRIX, F(4, 2)), (F(2), MATRIX, F(4, 2)), (F(3, 2), MATRIX, F(4, 2), 2.0, 0.5), (F(3, 3), MATRIX, F(4, 2)), (F(3, 2), MATRIX, F(3, 2)), (F(3), MATRIX, VECTOR)],
    "broadcast_arrays": [(MATRIX, VECTOR), (F(3), F(2)), (F(1), F(3, 1)), (), (MATRIX,)],
    "broadcast_shapes": [((3, 4), (4,)), ((3,), (2,)), (), ((1,), (3, 1), (2, 1, 1)), ((0,), (1,))],
    "atleast_2d": [(MATRIX, VECTOR), ()],
    "can_cast": [(D("int32"), D("float32")), (D("float32"), D("int32")), (D("int8"), D("int16")), (F(2), D("int32")), (1, D("int32"))],
    "issubdtype": [(D("int32"), D("integer")), (D("float32"), D("float32")), (D("floating"), D("inexact")), (D("bool_"), D("number")), (1, 2)],
    "result_type": [(F(2), 1), (1, 2.5)],
    "fast.layer_norm": [(MATRIX, None, None, 1e-5), (MATRIX, VECTOR, VECTOR, 1e-5), (MATRIX, F(3), None, 1e-5), (SCALAR, None, None, 1e-5), (I(3, 4), None, None, 1e-5)],
    "fast.rms_norm": [(MATRIX, None, 1e-5), (MATRIX, VECTOR, 1e-5), (MATRIX, F(3), 1e-5), (SCALAR, None, 1e-5)],
}


@pytest.mark.parametrize("name", CREATIONS)
def test_forms(name):
    for args in CREATIONS[name]:
        check(name, *args)


DRAWS = {
    "uniform": [(), (0, 1, (2,)), (0, 1, (-1,)), (0, 1, 3), (A([0.0, 5.0]), A([1.0, 6.0]), (2,)), (A([0.0, 1.0]), 1.0, (3,))],
    "normal": [((3,),), ([2, 2], D("float16")), ((3,), D("complex64")), ((2,), D("float32"), A([1.0, 2.0]), A([1.0, 2.0])), ((2,), D("int32")), ((-2,),)],
    "randint": [(0, 5, (3,)), (0, 5, (3,), D("uint8")), (0, 5, (3,), D("float32")), (-5, 5, (4,), D("int64"))],
    "bernoulli": [(), (0.5, (3,)), (A([0.0, 1.0, 0.5]),), (A([0.0, 1.0]), (3, 2)), (A([0.0, 1.0]), (3,))],
    "truncated_normal": [(-1, 1, (3,)), (A([-1.0, 0.0]), A([0.0, 1.0])), (-1, 1), (-1, 1, (2,), D("int32"))],
    "gumbel": [((3,),), ()],
    "laplace": [((3,),), ((3,), D("float16"), 1.0, 2.0)],
    "categorical": [(MATRIX,), (MATRIX, 0), (MATRIX, 7), (VECTOR,), (MATRIX, -1, (5, 3)), (MATRIX, -1, (5,)), (MATRIX, -1, None, 5)],
    "permutation": [(6,), (MATRIX,), (MATRIX, 1), (MATRIX, 5), (0,), (-1,)],
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws(name):
    for args in DRAWS[name]:
        check(lambda m, *args: getattr(m.random, name)(*args, key=m.random.key(3)), *args)


@pytest.mark.parametrize("name", "bitwise_and bitwise_or bitwise_xor left_shift right_shift bitwise_invert".split())
def test_bits_of_floats(name):
    operands = (MATRIX,) if name == "bitwise_invert" else (MATRIX, MATRIX)
    check(name, *operands)
    check(name, *(I(2) for _ in operands))


OPERATORS = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift matmul eq ne lt le gt ge".split()
PAIRS = [
    (MATRIX, MATRIX), (MATRIX, 2), (2, MATRIX), (MATRIX, 2.5), (2.5, MATRIX), (I(3, 4), 2), (2, I(3, 4)), (I(3, 4), 2.5),
    (I(3, 4), I(3, 4)), (TRUTH, TRUTH), (TRUTH, 1), (MATRIX, I(3, 4)), (MATRIX, None), (MATRIX, "a"), (MATRIX, [1, 2, 3, 4]),
    (MATRIX, np.ones((3, 4), np.float32)), (VECTOR, VECTOR), (MATRIX, VECTOR), (CUBE, MATRIX), (MATRIX, np.float64(2)),
    (I(3, 4), np.int64(3)), (A([1, 2], "uint8"), 255), (A([1, 2], "uint8"), 256), (A([1, 2], "uint8"), -1),
    (A([1, 2], "int8"), 128), (A([1, 2], "int16"), 2**40), (A([1, 2], "uint32"), -1), (A([1, 2]), 2**31), (F(2), F(3)),
]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    reflected_only_here = name in ("and_", "or_", "xor", "lshift", "rshift", "matmul")
    for left, right in PAIRS:
        if reflected_only_here and not isinstance(left, A):
            continue
        if "shift" in name and isinstance(right, int) and right > 2**30:
            continue
        check(lambda m, a, b: getattr(operator, name)(a, b), left, right)
        in_place = getattr(operator, "i" + name.rstrip("_"), None)
        if in_place and isinstance(left, A):
            check(lambda m, a, b: in_place(a, b), left, right)
    for x in (MATRIX, I(3, 4), TRUTH, SCALAR):
        for one in (operator.neg, operator.pos, abs, operator.inv):
            check(lambda m, x: one(x), x)


PYTHON = {
    "bool": bool, "int": int, "float": float, "len": len, "complex": complex, "index": operator.index, "iter": lambda x: [t for t in x],
    "repr": repr, "str": str, "round": round, "contains": lambda x: 1 in x, "item": lambda x: x.item(), "list": lambda x: x.tolist(),
    "format": lambda x: f"{x:.2f}", "plain": lambda x: f"{x}", "divmod": lambda x: divmod(x, 2), "reversed": lambda x: list(reversed(x)),
    "slice": lambda x: [1, 2, 3, 4, 5][x], "numpy": lambda x: np.array(x).tolist(), "bytes": lambda x: len(bytes(x)),
    "shape": lambda x: [x.shape, x.ndim, x.size, x.itemsize, x.nbytes], "T": lambda x: x.T, "mT": lambda x: x.mT,
}


@pytest.mark.parametrize("name", PYTHON)
def test_python(name):
    for x in (MATRIX, VECTOR, SCALAR, A(3), A(2.5), A(True), A([1.5]), A([[2]]), A([], "float32"), A(1 + 2j, "complex64"), A(2**31 - 1), A(-7)):
        check(lambda m, x: PYTHON[name](x), x)


INDICES = [
    0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(2, 0, -1), slice(10, 20), slice(-2, None), slice(0, 0), ..., None,
    (0, 1), (0, -1), (..., 0), (0, ...), (None, 0), (slice(None), None), (slice(None), 0), (slice(None), slice(1, 3)), (..., ...), 1.5, "a",
    [0, 1], (0, [1, 2]), ([0, 1], [1, 2]), A([0, 1]), A([[0, 1], [1, 0]]), A([0, -1]), A(1), (A([0, 1]), A([1, 2])), (A([0, 1]), slice(None)),
    (slice(None), A([0, 1])), (A([[0], [1]]), A([0, 1])), (A([0, 1]), None, A([1, 2])), (A([0, 1]), 0), (0, A([1, 2])), (..., A([0, 1])),
    A([0.5]), A([], "int32"), (slice(0, 2), A([0, 1]), None), (1, slice(None, None, -1)), (None, A([0, 1])),
]
VALUES = [7, 2.5, A([1.0, 2.0, 3.0, 4.0]), A([[9.0], [8.0], [7.0]]), A([1.0, 2.0]), True]


def put(m, x, index, value):
    x[index] = value
    return x


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indices(index):
    for x in (MATRIX, CUBE, I(3, 4)):
        check(lambda m, x, index: x[index], x, index)
        for value in VALUES:
            # Of a whole array MLX lets the value choose the dtype.
            if x.data.dtype == np.float32 or index not in (..., None):
                check(put, x, index, value)
    for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
        for value in (2.0, A([1.0, 2.0, 3.0, 4.0])):
            check(lambda m, x, index, value: getattr(x.at[index], name)(value), MATRIX, index, value)


@pytest.mark.parametrize("mask", [A([True, False, True]), [True, False, True], TRUTH, True, False], ids=str)
def test_masks(mask):
    for value in (7, A(2.5), True):
        check(put, MATRIX, mask, value)


def test_signatures_show_their_defaults():
    shown = "(input, weight, /, stride=1, padding=0, dilation=1, groups=1, *, data_format='channels_last', stream=None)"
    assert str(inspect.signature(cc.conv2d)) == shown
    for module in (cc, cc.linalg, cc.fft, cc.random):
        for name in (name for name in dir(module) if not name.startswith("_")):
            try:
                signature = inspect.signature(getattr(module, name))
            except (TypeError, ValueError):
                continue
            assert ... not in [p.default for p in signature.parameters.values()], name
    for name in ("std", "var", "cumsum", "cummax"):
        assert list(inspect.signature(getattr(cc.array, name)).parameters)[:2] == ["self", "axis"]
