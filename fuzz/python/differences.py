"""What is known to differ from MLX or NumPy, each with its reason: none of it is a finding."""

import re

import numpy as np

from compare import RELATIVE, is_array


class Difference:
    """Names and kinds as regular expressions; `when` looks at the case and the answers."""

    def __init__(self, names, kinds, why, when=None):
        self.names, self.kinds = re.compile(names), re.compile(kinds)
        self.reason, self.when = why, when

    def holds(self, case, kind, what, ours, theirs):
        if not self.names.fullmatch(case["name"]) or not self.kinds.match(kind):
            return False
        return self.when is None or self.when(case, what, ours, theirs)


# Functions of complex numbers that are what NumPy says, on either side of their branch cuts.
EVERYWHERE = set("""add subtract multiply divide sin cos tan sinh cosh tanh exp expm1 log log1p
log2 log10 sqrt rsqrt
square sign negative reciprocal abs arctan arcsin arccos arctanh arcsinh arccosh acos acosh asin
asinh atan
atanh real imag conjugate conj sum mean cumsum prod matmul equal not_equal where
sort argsort less less_equal greater greater_equal argmax argmin""".split())


def _complex(case, what, ours, theirs):
    return "complex64" in case["kinds"].values() or "1j" in case["body"] or "2j" in case["body"]


def _ordered(case, what, ours, theirs):
    refused = ours[0] == "error" and "complex" in ours[2]
    return refused or _complex(case, what, ours, theirs) and case["name"] not in EVERYWHERE


def _softmax_of_integers(case, what, ours, theirs):
    return case["wrong"] and "soft" in case["name"] or "sigmoid" in case["name"]


def _outside(case, what, ours, theirs):
    return "outside" in what


def _whole(case, what, ours, theirs):
    return "[...]" in case["body"] or "[:]" in case["body"] or "[None]" in case["body"]


def _of_halves(case, what, ours, theirs):
    return "float16" in case["body"]


def _of_half_operands(case, what, ours, theirs):
    return any("float16" in kind for kind in case["kinds"].values())


def _to_integers(case, what, ours, theirs):
    return "int" in case["body"] or "int" in str(ours[1])[:20]


def _nan_to_integers(case, *rest):
    holds = "nan" in case["body"] or "inf" in case["body"]
    return holds and _to_integers(case, *rest)


def _no_axes(case, what, ours, theirs):
    none = ("axis=()", "axis=[]", ", [])", ", ())", "ones((), ")
    return any(text in case["body"] for text in none) or () in case["shapes"].values()


def _bindings(case, what, ours, theirs):
    return case["wrong"] and ours[1] in ("TypeError", "ValueError", "IndexError")


def _numpy(case, what, ours, theirs):
    refused = theirs[0] == "error" and "incompatible function arguments" in theirs[2]
    return case["wrong"] and refused and "ndarray" in theirs[2].partition("Invoked with types")[2]


def _infinite(case, what, ours, theirs):
    return any(part[4] in ("special", "wide") for part in case["parts"].values())


def _overflows(case, what, ours, theirs):
    """Whether one side has infinity or NaN wherever they differ, of numbers whose products are too large."""
    if not (is_array(ours[1]) and is_array(theirs[1]) and ours[1][3].shape == theirs[1][3].shape):
        return False
    rounding = max(1e-3, RELATIVE.get(ours[1][1], 0.0))
    ours, theirs = ours[1][3], theirs[1][3]
    given = [np.abs(np.asarray(x)) for x in case["given"].values()]
    with np.errstate(all="ignore"):
        largest = np.prod([np.max(x[np.isfinite(x)], initial=1.0) for x in given], dtype=np.float64)
    apart = ~np.isclose(ours, theirs, rounding, rounding, equal_nan=True)
    return largest > 3e38 and not np.any(np.isfinite(ours[apart]) & np.isfinite(theirs[apart]))


def _nearly(case, what, ours, theirs):
    """Whether they differ in the last place of float32 alone."""
    return np.allclose(ours[1][3], theirs[1][3], 2.4e-7, 0.0, equal_nan=True)


def _cancels(case, what, ours, theirs):
    """Whether they differ by roundings of what was added up alone, most of which took each other away."""
    given = [np.abs(np.asarray(x, np.float64)) for x in case["given"].values()]
    scale = np.prod([np.max(x, initial=1.0) for x in given]) * max(x.size for x in given)
    apart = np.abs(ours[1][3].astype(np.float64) - theirs[1][3])
    return np.isfinite(scale) and np.all(apart <= 2.0**-23 * scale)


def _by_true(case, what, ours, theirs):
    """Whether the axis is a truth value, which NumPy takes for none, and a NaN is among the numbers."""
    return "axis=True" in case["body"] and any(np.isnan(np.asarray(x)).any() for x in case["given"].values())


def _outside_of_integers(case, what, ours, theirs):
    """Whether floats that no integer of the result is are put among integers."""
    kept = ours[1][3]
    if kept.dtype.kind not in "iu":
        return False
    info = np.iinfo(kept.dtype)
    floats = [np.asarray(x) for x in case["given"].values() if np.asarray(x).dtype.kind == "f"]
    return any(((x < info.min) | (x > info.max)).any() for x in floats)


def _halves(case, what, ours, theirs):
    return {"float16", "bfloat16"} & set(case["kinds"].values())


def _numbers(case, what, ours, theirs):
    return "-" in case["body"]


def _floats(case, what, ours, theirs):
    return any("float" in kind for kind in case["kinds"].values())


def _wide(case):
    return re.search(r"2\*\*(3[1-9]|[4-9][0-9])", case["body"]) is not None


def _wrong(case, what, ours, theirs):
    return case["wrong"]


def _left_number(case):
    return re.search(r"\(\(-?[\d.]+\) (<<|>>)", case["body"]) is not None


def _few(what):
    """Whether at most one element in a hundred differs."""
    found = re.match(r"(\d+) of (\d+) elements differ", what)
    return found is not None and int(found[1]) * 100 <= int(found[2])


def _close(a, b):
    return a.shape == b.shape and np.allclose(a, b, 2e-3, 2e-4 * max(1.0, np.max(np.abs(b), initial=0)))


def _roots(case, what, *_):
    given = [np.asarray(x) for x in case["given"].values()]
    is_half = "0.5" in case["body"] or any(x.size == 1 and x.item() == 0.5 for x in given)
    return is_half and "inf" in what


def _as_numpy(case, what, ours, theirs):
    """Whether NumPy, which runs the same lines, gives what Cupola does."""
    names = {k: np.array(v) for k, v in case["given"].items()}
    try:
        exec(case["body"].replace("mx.array(", "np.array("), {"np": np}, names)
    except Exception:
        return False
    return "out" in names and np.array_equal(names["out"], ours[1][3])


def _of_floats(case, what, ours, theirs):
    """Whether NumPy gives the same of the same floats, where the truth is computed in float64."""
    names = {k: np.array(v) for k, v in case["given"].items()}
    exec(case["body"], {"mx": np, "np": np}, names)
    return np.array_equal(names["out"], ours[1][3])


def _wide_sums(case, what, ours, theirs):
    """Whether NumPy gives the same of the same integers where they are wide."""
    given = {k: np.array(v) for k, v in case["given"].items()}
    if not all(x.dtype.kind in "iub" and x.dtype.itemsize < 4 for x in given.values()):
        return False
    names = {k: x.astype(np.int32) for k, x in given.items()}
    exec(case["body"], {"mx": np, "np": np}, names)
    return np.array_equal(names["out"], ours[1][3])


def _lu(case, what, ours, theirs):
    """Whether these are the factors of the matrix, of the largest pivots: no factor is above 1."""
    parts, other = ours[1], theirs[1]
    if not all(isinstance(each, list) and len(each) == 3 for each in (parts, other)):
        return False
    matrix = next(iter(case["given"].values()))
    rows, low, up = (part[3] for part in parts)
    if low.size == 0 or up.size == 0:
        return False
    product = np.take_along_axis(low @ up, rows.astype(np.int64)[..., None], -2)
    permuted = np.take_along_axis(matrix, rows.astype(np.int64)[..., None], -2)
    fits = _close(product, matrix) or _close(low @ up, permuted)
    return fits and np.max(np.abs(low)) < 1 + 1e-5


def _lu_factor(case, what, ours, theirs):
    """The same of factors in one matrix, and of the rows that were exchanged."""
    parts, other = ours[1], theirs[1]
    if not all(isinstance(each, list) and len(each) == 2 for each in (parts, other)):
        return False
    factors, pivots = (part[3] for part in parts)
    matrix = np.array(next(iter(case["given"].values())), np.float64)
    if factors.size == 0:
        return False
    rows, columns = factors.shape[-2:]
    matrices = (x.reshape(-1, rows, columns) for x in (matrix, factors))
    return all(map(_is_lu_factor, *matrices, pivots.reshape(-1, pivots.shape[-1])))


def _is_lu_factor(matrix, factors, pivots):
    for row, pivot in enumerate(pivots):
        matrix[[row, pivot]] = matrix[[pivot, row]]
    count = min(factors.shape)
    low = np.tril(factors[:, :count], -1) + np.eye(factors.shape[0], count)
    return _close(low @ np.triu(factors[:count]), matrix) and np.max(np.abs(low)) < 1 + 1e-5


def _svd(case, what, ours, theirs):
    """Whether these are the factors of the matrix, with MLX's singular values."""
    parts, other = ours[1], theirs[1]
    if not all(isinstance(each, list) and len(each) == 3 for each in (parts, other)):
        return False
    matrix = next(iter(case["given"].values()))
    left, values, right = (part[3] for part in parts)
    count = values.shape[-1]
    product = (left[..., :count] * values[..., None, :]) @ right[..., :count, :]
    spans = all(_close(m @ np.swapaxes(m, -1, -2), np.broadcast_to(np.eye(m.shape[-1]), m.shape))
        for m in (left, right))
    return spans and _close(product, matrix) and _close(values, other[1][3])


TABLE = [
    Difference(
        ".*",
        "refuses|differs|another type",
        "complex numbers have no order, and not all functions",
        _ordered,
    ),
    Difference(
        "nn.*|softmax",
        "dtype|differs",
        "MLX gives the softmax of integers as integers",
        _softmax_of_integers,
    ),
    Difference(
        "conv.*",
        "refuses",
        "MLX gives results of kernels that do not fit, and of output padding above the stride",
        lambda case, what, *_: re.search("larger than the padded|output padding|leaves nothing of", what),
    ),
    Difference(
        "conv_transpose.*",
        "shape",
        "MLX cuts off too much where the padding is wider than the kernel",
    ),
    Difference(
        "as_strided|take|getitem|slice",
        "refuses",
        "MLX reads what lies behind the array",
        _outside,
    ),
    Difference(
        "convolve",
        "differs",
        "the ends are padded with zeros, which NaN and infinity multiply",
    ),
    Difference(
        "at|setitem",
        "dtype|differs",
        "MLX lets the value choose the dtype of a whole array",
        _whole,
    ),
    Difference(
        "method",
        "dtype",
        "MLX pickles float64 as float32",
        lambda case, *_: "pickle" in case["body"],
    ),
    Difference("nn.celu|nn.elu", "differs", "MLX multiplies where it should select", _wrong),
    Difference(
        "remainder|divmod|floor_divide|at|power|.*shift",
        "differs from MLX",
        "integers by zero, and shifts by negative numbers: as NumPy",
        lambda case, *_: case["wrong"] or any(("int" in k for k in case["kinds"].values())),
    ),
    Difference(
        "quantized_matmul|gather_qmm|.*cross_entropy|nn.gelu.*|fast.scaled.*|"
        "(linalg.)?(norm|matrix_norm|vector_norm)|hadamard_transform",
        "differs from MLX",
        "MLX sums half types in half types",
        _halves,
    ),
    Difference(
        "quantized_matmul|gather_qmm",
        "differs from MLX",
        "what is left of large products that take each other away is of their roundings",
        _cancels,
    ),
    Difference("cummax|cummin", "differs from MLX", "MLX forgets a NaN on the way", _by_true),
    Difference(
        "slice_update|put_along_axis|pad",
        "differs from MLX",
        "a float outside the integers has no value there",
        _outside_of_integers,
    ),
    Difference(
        "greater|less|equal|not_equal|.*_equal",
        "differs from NumPy, as MLX",
        "a negative number beside unsigned integers wraps, as in MLX",
        _numbers,
    ),
    Difference(
        "argmax|argmin|logsumexp|max|min|minmax",
        "accepts",
        "nothing is asked of axes of size 0 where the result is empty, too",
    ),
    Difference(
        ".*",
        "refuses",
        "an array is no shape and no axis, and bytes are no array",
        lambda case, what, *_: any(text in what for text in (
            "must be an integer or a sequence", "is no sequence of integers", "type bytes")),
    ),
    Difference(
        "method",
        "refuses",
        "the buffer protocol has no bfloat16",
        lambda case, what, *_: "BufferError" in what,
    ),
    Difference(
        "at",
        "differs from NumPy, as MLX",
        "a number is cast to the array's dtype first, as in MLX",
    ),
    Difference(
        "nn.elu|nn.celu|nn.leaky_relu|nn.hard_shrink|nn.softshrink",
        "dtype|type|refuses|shape",
        "parameters are numbers, not arrays",
        _wrong,
    ),
    Difference("fast.rope", "differs from MLX", "MLX wraps offsets at 32 bits", _wrong),
    Difference(
        "nn.log_softmax",
        "differs from NumPy",
        "of a row with infinity the others are -inf",
        _infinite,
    ),
    Difference(
        "nn.glu",
        "differs from MLX",
        "infinity times what may be rounded to 0 is infinite or NaN",
        lambda case, *rest: _halves(case, *rest) and _infinite(case, *rest),
    ),
    Difference(
        "nn.soft.*",
        "accepts",
        "what MLX compiles takes no ranges",
        lambda case, *_: "range(" in case["body"],
    ),
    Difference("sign", "differs", "that of NaN is NaN"),
    Difference(
        "isclose|allclose", "differs from MLX", "MLX subtracts in the half type", _of_half_operands
    ),
    Difference("arange", "differs", "MLX adds the step up in the dtype, until it is lost", _of_halves),
    Difference(
        ".*norm|random.randint",
        "differs from MLX",
        "wrong orders and bounds give nothing to compare",
        _wrong,
    ),
    Difference(
        "full|full_like",
        "dtype|differs",
        "MLX lets the value choose the dtype over the dtype asked for",
    ),
    Difference(
        "astype|method|full|full_like|view|arange|linspace|array",
        "differs",
        "a float outside the integers has no value there",
        _to_integers,
    ),
    Difference(
        "slice_update|put_along_axis|pad",
        "differs",
        "NaN and infinity have no value among the integers",
        _nan_to_integers,
    ),
    Difference(
        "sum|prod|cumsum|cumprod|mean|var|std|any|all|max|min|logsumexp|median",
        "dtype",
        "over no axis MLX gives what it was given",
        _no_axes,
    ),
    Difference(
        "power|pow",
        "differs from MLX",
        "negative powers of integers: NumPy raises, and MLX does not come to an end",
    ),
    Difference(
        ".*",
        "another type|refuses",
        "MLX has no such function",
        lambda case, what, ours, theirs: "has no attribute" in str(theirs),
    ),
    Difference(
        ".*",
        "another type",
        "a wrong type of argument: MLX's bindings sort by type, Cupola by value",
        _bindings,
    ),
    Difference(
        ".*",
        "another type",
        "a NumPy array is taken where MLX asks for its own, and its values are at fault",
        _numpy,
    ),
    Difference(
        ".*",
        "another type",
        "a number past 64 bits is Python's own OverflowError",
        lambda case, what, *_: "OverflowError" in what,
    ),
    Difference(
        ".*",
        "another type",
        "what an operation does not take is a ValueError, in MLX now and then a RuntimeError",
        lambda case, what, *_: "expected RuntimeError" in what,
    ),
    Difference(
        "hamming|hanning|blackman|bartlett|kaiser",
        "refuses",
        "a window of fewer than no elements is an error",
        lambda case, what, *_: "must not be negative" in what,
    ),
    Difference(
        ".*",
        "refuses",
        "a number beside an array of integers has to fit their dtype, beside one of bools int32",
        lambda case, what, *_: "would result in overflow" in what
        and (case["name"].startswith("logical_") or "bool" in f"{case['kinds']}{case['body']}"),
    ),
    Difference(
        "linspace",
        "refuses",
        "between two numbers there are no steps of bool or complex numbers",
        lambda case, what, *_: "linspace: does not give" in what or "bool not supported" in what,
    ),
    Difference(
        "random.categorical",
        "differs from MLX",
        "one draw along the only long axis: MLX takes one random number, Cupola a row of them",
        lambda case, what, *_: "num_samples" not in case["body"] and "shape=" not in case["body"],
    ),
    Difference("nn.log_softmax", "accepts", "of nothing it is nothing"),
    Difference(
        "prod|all",
        "differs from MLX",
        "of an array of several axes without elements MLX gives what was in memory: the product of nothing is 1",
        lambda case, what, ours, theirs: is_array(ours[1])
        and all(np.asarray(x).size == 0 for x in case["given"].values())
        and bool(np.all(ours[1][3] == 1)),
    ),
    Difference(
        "cumprod|cumulative_prod|cumsum",
        "differs from NumPy, as MLX",
        "a running sum or product in half types may leave their range on the way",
        lambda case, *_: "float16" in str(case),
    ),
    Difference("nn.prelu", "shape", "MLX gives an element of nothing"),
    Difference(
        "to_fp8",
        "differs",
        "MLX reads the bits of float64",
        lambda case, *_: "float64" in str(case),
    ),
    Difference(
        "divmod|floor_divide|remainder",
        "differs from NumPy",
        "the floor of the quotient, which may be infinite",
        _floats,
    ),
    Difference("round", "differs", "integers are rounded to tens through float32", _to_integers),
    Difference(
        "clip|full|full_like|array",
        "differs from NumPy, as MLX",
        "a number that an int32 does not hold wraps, as in MLX",
        _wrong,
    ),
    Difference(
        ".*",
        "differs from MLX",
        "a number that an int32 does not hold wraps in MLX",
        lambda case, *_: case["wrong"] and _wide(case),
    ),
    Difference(
        "broadcast_shapes",
        "accepts",
        "sizes are of 64 bits, and the shape of nothing is no array",
        lambda case, *_: _wide(case),
    ),
    Difference("hadamard_transform", "dtype", "MLX gives a scalar as it is", _wrong),
    Difference(
        "nn..*",
        "type|dtype",
        "of a number of NumPy an activation is an array",
        lambda case, *_: case["wrong"] and "np.float" in case["body"],
    ),
    Difference(
        "clip",
        "dtype",
        "a number beside an array of half types and one of integers is one of these",
        _wrong,
    ),
    Difference(
        "linalg.lu.*",
        "differs from MLX",
        "where a pivot is only what rounding left, another row may be taken",
        lambda case, *_: "broadcast_to" in str(case["operands"]),
    ),
    Difference(
        "linalg.(lu|lu_factor)",
        "differs from MLX",
        "a NaN leaves none but NaN in its column and in those after it, on CUDA",
        lambda case, what, ours, theirs: any(np.isnan(part[3]).any() for part in ours[1]),
    ),
    Difference(
        "linalg.lu",
        "differs from MLX",
        "of two pivots that are equal but for rounding either may be taken",
        _lu,
    ),
    Difference(
        "linalg.solve",
        "another type of exception",
        "a right side of fewer axes broadcasts, as in NumPy; the matrix may be singular",
        lambda case, what, ours, theirs: "singular" in ours[2] and "take_along_axis" in theirs[2],
    ),
    Difference(
        "linalg.(solve|inv|lu.*|tri_inv|pinv)",
        "another type",
        "a matrix of integers is taken, as in NumPy, and may be singular",
        lambda case, what, ours, theirs: "singular" in ours[2] and "must have type" in theirs[2],
    ),
    Difference(
        "matmul|inner|tensordot|vecdot|einsum|addmm",
        "differs from MLX",
        "a sum of products of integers of 64 bits may be too large in one order and not in another",
        lambda case, what, *_: "inf" in what and {"int64", "uint64"} >= set(case["kinds"].values()),
    ),
    Difference(
        "matmul|inner|outer|tensordot|vecdot|einsum|addmm|convolve|conv_general|conv[123]d",
        "differs",
        "a product that is too large alone may fit in the sum that a fused multiply-add takes it to",
        _overflows,
    ),
    Difference(
        "power|pow",
        "differs from NumPy",
        "NumPy takes the root for the power 0.5, and of -inf it is NaN; C's power is infinite",
        _roots,
    ),
    Difference(
        "setitem",
        "differs from MLX",
        "where a slice is between two indices NumPy has the axes of these first",
        _as_numpy,
    ),
    Difference(
        "isclose|allclose",
        "differs from MLX",
        "the absolute value of the least integer is negative in MLX, and so is what may be between",
        lambda case, *_: any(
            x.dtype.kind == "i" and (x == np.iinfo(x.dtype).min).any() for x in case["given"].values()
        ),
    ),
    Difference(
        "isclose|allclose",
        "differs from NumPy, as MLX",
        "what is as far apart as it may be is close or not by the rounding of what it may be",
        _of_floats,
    ),
    Difference(
        "isclose|allclose",
        "differs from MLX",
        "what MLX takes for close among small integers is not what NumPy does once they are wide",
        _wide_sums,
    ),
    Difference(
        "logsumexp",
        "differs from MLX",
        "the exponentials of bools and unsigned integers are added up in float32; MLX's distance to the largest wraps",
        lambda case, *_: any(kind.startswith(("bool", "uint")) for kind in case["kinds"].values()),
    ),
    Difference(
        "linalg.lu_factor",
        "differs from MLX",
        "of two pivots that are equal but for rounding either may be taken",
        _lu_factor,
    ),
    Difference(
        "linalg.svd",
        "differs from MLX",
        "vectors are determined up to their signs, those of no singular value up to a rotation",
        _svd,
    ),
    Difference(
        "linalg.*",
        "another type",
        "MLX multiplies no matrices of integers, of which the argument is made",
        lambda case, what, *_: "Only inexact types are supported" in what,
    ),
    Difference(
        "linalg.*|matrix_norm",
        "another type",
        "halves are factored, in float32, which can fail by their values; MLX refuses their dtype",
        lambda case, what, *_: "not finite" in what and "must have type float32" in what,
    ),
    Difference(
        "remainder|divmod",
        "differs from NumPy",
        "integers beside a float count as float32",
        lambda case, *_: "." in case["body"],
    ),
    Difference(
        "einsum",
        "differs from NumPy, as MLX",
        "a product of three arrays is rounded to the dtype of the first two in between",
        lambda case, *_: len(case["kinds"]) > 2 and _halves(case, *_),
    ),
    Difference(
        "conv_general",
        "differs from MLX|shape|refuses|accepts",
        "a negative padding counts the zeros between the rows of a dilated input",
        lambda case, *_: "input_dilation" in case["body"] and "-" in case["body"].split("padding")[-1],
    ),
    Difference(
        "isclose|allclose",
        "differs from MLX",
        "MLX takes the difference of unsigned numbers, which wraps",
        lambda case, *_: any(kind.startswith("uint") for kind in case["kinds"].values()),
    ),
    Difference(
        "random..*",
        "differs from MLX",
        "numbers of float64 are made of 64 random bits, in MLX of 32",
        lambda case, *_: "float64" in f"{case['body']}{case['kinds']}",
    ),
    Difference(
        "random..*",
        "differs from MLX",
        "without a key the numbers are others in each process",
        lambda case, *_: "key=" not in case["body"] or "key=None" in case["body"],
    ),
    Difference(
        "nn..*",
        "accepts",
        "a complex number is taken as a complex array is",
        lambda case, what, *_: "received type complex" in what,
    ),
    Difference(
        "random.multivariate_normal",
        "dtype",
        "numbers are of the dtype asked for, in MLX of that of their mean where it is wider",
        lambda case, *_: "float64" in case["body"],
    ),
    Difference(
        "nn.log_sigmoid",
        "accepts",
        "activations take bools as the numbers 0 and 1",
        lambda case, *_: "dtype=mx.bool_" in case["body"] or "mx.array([True" in case["body"],
    ),
    Difference(
        "array",
        "differs from MLX",
        "a complex number without a real part is true, as in NumPy",
        lambda case, *_: "3j" in case["body"] and "dtype=mx.bool_" in case["body"],
    ),
    Difference(
        "median",
        "accepts",
        "the median over no axis is the element itself, also where there are none",
        _no_axes,
    ),
    Difference(
        "at",
        "refuses",
        "bools have no negative, wherever they are subtracted",
        lambda case, what, *_: "negative: does not take bool" in what,
    ),
    Difference(
        "tri",
        "refuses",
        "a matrix of fewer than no rows is an error, as that of eye is in MLX",
        lambda case, what, *_: "must not be negative" in what,
    ),
    Difference(
        ".*",
        "accepts",
        "sizes are of 64 bits",
        lambda case, what, *_: "outside the supported range [-2147483648, 2147483647]" in what,
    ),
    Difference(
        "bitwise_.*|.*_shift",
        "accepts",
        "operators of bits take a number on the left, too",
        lambda case, *_: case["wrong"] or _left_number(case),
    ),
    Difference(
        "(linalg.)?(norm|vector_norm|matrix_norm)",
        "dtype",
        "the norm of complex numbers is real, as in NumPy; in MLX with some orders only",
        lambda case, *_: "complex64" in f"{case['kinds']}{case['body']}",
    ),
    Difference(
        "bitwise_.*|.*_shift",
        "another type",
        "MLX's bindings refuse a None by position before anybody looks at dtypes",
        lambda case, *_: case["wrong"] and ", None)" in case["body"],
    ),
    Difference(
        "round",
        "differs from NumPy, as MLX",
        "a number times a power of ten may be a tie in float32",
        lambda case, *_: "decimals" in case["body"] or "," in case["body"],
    ),
    Difference(
        "random.categorical",
        "differs from MLX",
        "of two sums with noise that are nearly equal another rounding of the logarithm takes the other",
        lambda case, what, *_: _few(what) or re.match(r"1 of \d\d+ elements differ", what) is not None,
    ),
    Difference(
        "einsum",
        "differs from NumPy, as MLX",
        "what is only summed is summed as by sum, in int32; NumPy's einsum keeps small integers",
        _wide_sums,
    ),
    Difference(
        "topk|partition|argpartition",
        "differs from MLX",
        "what is taken is in no order, here along another axis than was sorted",
        _wrong,
    ),
    Difference(
        "pad",
        "refuses",
        "the constant is one number; around nothing MLX takes several",
        lambda case, what, *_: "cannot reshape to []" in what,
    ),
    Difference(
        "abs",
        "differs from NumPy, as MLX",
        "the length of a complex number is within a unit in the last place, not the nearest",
        _nearly,
    ),
    Difference(
        "fft.istft",
        "shape",
        "less than nothing is nothing; MLX counts it from the end of what `center` added",
        lambda case, *_: "length=-" in case["body"],
    ),
    Difference("logsumexp", "accepts", "over no axis of nothing it is nothing", _no_axes),
]


def reason(case, kind, what, ours, theirs):
    for row in TABLE:
        if row.holds(case, kind, what, ours, theirs):
            return row.reason
    return None
