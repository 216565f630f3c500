"""A third package for the cases: NumPy in float64, under MLX's names.

What NumPy has under the same name and arguments is NumPy's; the rest is written here as its
textbook has it. A name that is not here has no truth, and MLX alone is what it is compared with.
"""

import math
import operator
import signal

import numpy as np

import values

SAME = """abs sin cos tan sinh cosh tanh exp expm1 log log1p log2 log10 sqrt square sign floor
ceil negative reciprocal arctan arcsin arccos arctanh arcsinh arccosh isnan isinf isfinite
isposinf isneginf logical_not degrees radians real imag conjugate conj trunc positive logical_xor
add subtract multiply divide maximum minimum equal not_equal less less_equal greater
greater_equal logical_and logical_or logaddexp arctan2 remainder power divmod bitwise_and
bitwise_or bitwise_xor left_shift right_shift bitwise_invert sum prod mean max min all any argmax
argmin median count_nonzero reshape transpose swapaxes moveaxis expand_dims broadcast_to flip
roll tile repeat squeeze concatenate stack atleast_1d atleast_2d atleast_3d where diagonal trace
tril triu tri eye identity linspace hanning hamming blackman bartlett matmul inner outer kron
tensordot isclose allclose array_equal searchsorted diff convolve meshgrid broadcast_arrays
broadcast_shapes cross einsum zeros ones round""".split()

# What floats are computed of, whatever the operands are: integers count as float32.
FLOAT = set("""sin cos tan sinh cosh tanh exp expm1 log log1p log2 log10 sqrt reciprocal arctan
arcsin arccos arctanh arcsinh arccosh sigmoid erf erfc rsqrt degrees radians mean var std
logsumexp softmax logcumsumexp median norm elu celu selu""".split())

# Operands of these become one dtype first, and those of the second list floats.
PROMOTED = set("""add subtract multiply maximum minimum equal not_equal less less_equal greater
greater_equal remainder power floor_divide divmod bitwise_and bitwise_or bitwise_xor left_shift
right_shift logaddexp arctan2 divide matmul inner outer kron tensordot vecdot addmm convolve
isclose concatenate stack einsum""".split())
FLOATED = {"logaddexp", "arctan2", "divide", "matmul", "inner", "tensordot", "convolve"}

# Sums: an error counts against the same sum of absolute values.
SUMS = set("""sum mean cumsum matmul inner tensordot vecdot kron addmm einsum convolve trace
outer diff cumprod prod norm""".split())

# Sums of products: the instructions of CPUs for bfloat16 take its subnormal numbers for zero.
PRODUCTS = set("matmul inner tensordot vecdot addmm einsum convolve".split())

# Functions that only hand elements on, or decide: their results are exact, to the sign of zero.
MOVED = set("""reshape transpose permute_dims swapaxes moveaxis expand_dims broadcast_to flip
roll tile repeat squeeze concatenate concat stack atleast_1d atleast_2d atleast_3d where diagonal
tril triu real imag negative abs take take_along_axis put_along_axis flatten unflatten diag
getitem setitem slice slice_update pad split unstack contiguous positive stop_gradient""".split())
EXACT = MOVED | set("""floor ceil trunc sign isnan isinf isfinite isposinf isneginf equal
not_equal less less_equal greater greater_equal logical_and logical_or logical_not logical_xor
maximum minimum max min all any argmax argmin sort cummax cummin bitwise_and bitwise_or
bitwise_xor left_shift right_shift bitwise_invert count_nonzero searchsorted array_equal eye
identity tri clip zeros ones full topk partition isclose minmax""".split())

ALIASES = dict(
    pair.split("=")
    for pair in """permute_dims=transpose concat=concatenate pow=power acos=arccos asin=arcsin
    acosh=arccosh asinh=arcsinh atan=arctan atan2=arctan2 atanh=arctanh
    bitwise_left_shift=left_shift bitwise_right_shift=right_shift conj=conjugate
    cumulative_sum=cumsum
    cumulative_prod=cumprod""".split()
)


def sigmoid(a):
    a = np.asarray(a, np.float64) if np.asarray(a).dtype.kind in "iubf" else a
    return 1 / (1 + np.exp(-a))


def log1p(a):
    a = np.asarray(a)
    if a.dtype.kind != "c":
        return np.log1p(a)
    # NumPy's loses what is small beside 1.
    x, y = a.real, a.imag
    size = np.hypot(x, y)
    near = 0.5 * np.log1p(np.where(size < 0.5, x * (2 + x) + y * y, 0))
    return np.where(size < 0.5, near, np.log(np.hypot(1 + x, y))) + 1j * np.arctan2(y, 1 + x)


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    y = (x - np.mean(x, -1, keepdims=True)) / np.sqrt(np.var(x, -1, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    num_groups = operator.index(num_groups)
    places, inner = math.prod(x.shape[1:-1]), x.shape[-1] // num_groups
    apart = np.moveaxis(x.reshape(len(x), places, num_groups, inner), 2, 1)
    rows = layer_norm(apart.reshape(len(x), num_groups, places * inner), eps=eps)
    y = np.moveaxis(rows.reshape(apart.shape), 1, 2).reshape(x.shape)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def rsqrt(a):
    return 1 / np.sqrt(a)


def _each(f):
    return lambda a: np.vectorize(f, otypes=[float])(a) if np.size(a) else np.asarray(a, float)


erf, erfc = _each(math.erf), _each(math.erfc)


def floor_divide(a, b):
    if np.result_type(a, b).kind in "iub":
        return np.floor_divide(a, b)
    # In the dtype of the operands: in float64 the quotient of two float32 may be below an integer.
    return np.floor(np.asarray(a, np.float32) / np.asarray(b, np.float32))


def var(a, axis=None, keepdims=False, ddof=0):
    return np.var(a, axis, keepdims=keepdims, ddof=ddof)


def std(a, axis=None, keepdims=False, ddof=0):
    return np.std(a, axis, keepdims=keepdims, ddof=ddof)


def logsumexp(a, axis=None, keepdims=False):
    top = np.max(a, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    out = np.log(np.sum(np.exp(a - top), axis=axis, keepdims=True)) + top
    return out if keepdims else np.squeeze(out, _axes(axis, a))


def _axes(axis, a):
    if axis is None:
        return tuple(range(a.ndim))
    # NumPy's squeeze takes no bool.
    return tuple(map(int, axis)) if isinstance(axis, (tuple, list)) else int(axis)


def softmax(a, axis=None, precise=False):
    e = np.exp(a - np.max(a, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _scan(ufunc):
    def scan(a, axis=None, reverse=False, inclusive=True):
        if axis is None:
            a, axis = a.reshape(-1), 0
        a = np.flip(a, axis) if reverse else a
        if ufunc in (np.add, np.multiply):
            wide = a.dtype if a.dtype.kind in "fc" else np.int64
            out = ufunc.accumulate(a, axis, dtype=wide)
        else:
            out = ufunc.accumulate(a, axis)
        if not inclusive:
            out = np.roll(out, 1, axis)
            if a.shape[axis]:
                out[(slice(None),) * (axis % a.ndim) + (0,)] = _first(ufunc, out.dtype)
        return np.flip(out, axis) if reverse else out

    return scan


def _first(ufunc, dtype):
    if ufunc in (np.add, np.multiply):
        return 0 if ufunc is np.add else 1
    if ufunc is np.logaddexp:
        return -np.inf
    if dtype.kind == "f":
        return -np.inf if ufunc is np.maximum else np.inf
    info = np.iinfo(dtype) if dtype.kind in "iu" else None
    low, high = (info.min, info.max) if info else (False, True)
    return low if ufunc is np.maximum else high


cumsum, cumprod = _scan(np.add), _scan(np.multiply)
cummax, cummin, logcumsumexp = _scan(np.maximum), _scan(np.minimum), _scan(np.logaddexp)


def flatten(a, start_axis=0, end_axis=-1):
    if a.ndim == 0:
        return a.reshape(1)
    start, end = range(a.ndim)[start_axis], range(a.ndim)[end_axis]
    if start > end:
        raise ValueError("flatten: the axes are in no order")
    middle = int(np.prod(a.shape[start : end + 1]))
    return a.reshape(a.shape[:start] + (middle,) + a.shape[end + 1 :])


def unflatten(a, axis, shape):
    axis = range(a.ndim)[axis]
    return a[..., None][..., 0].reshape(a.shape[:axis] + tuple(shape) + a.shape[axis + 1 :])


def pad(a, pad_width, mode="constant", constant_values=0):
    more = {} if mode == "edge" else {"constant_values": constant_values}
    return np.pad(a, pad_width, mode, **more)


def clip(a, a_min=None, a_max=None):
    a = a if a_min is None else np.maximum(a, a_min)
    return a if a_max is None else np.minimum(a, a_max)


def matrix_transpose(a):
    return np.swapaxes(a, -1, -2)


def contiguous(a, allow_col_major=False):
    return a


stop_gradient = contiguous


def vecdot(a, b, axis=-1):
    return np.sum(np.conj(a) * b, axis=axis)


def addmm(c, a, b, alpha=1.0, beta=1.0):
    return alpha * np.matmul(a, b) + beta * c


def take(a, indices, axis=None):
    return np.take(a, indices, axis)


def take_along_axis(a, indices, axis=-1):
    return np.take_along_axis(a, indices, axis)


def put_along_axis(a, indices, values, axis=-1):
    out = np.array(a)
    np.put_along_axis(out, indices, values, axis)
    return out


def sort(a, axis=-1):
    return np.sort(a, axis=axis, kind="stable")


def split(a, indices_or_sections, axis=0):
    return np.split(a, indices_or_sections, axis)


def unstack(x, axis=0):
    return [np.take(x, k, axis) for k in range(x.shape[axis])]


def topk(a, k, axis=-1):
    if axis is None:
        a, axis = a.reshape(-1), 0
    if not 0 <= k <= a.shape[axis]:
        raise ValueError("topk: k")
    return np.take(np.sort(a, axis), range(a.shape[axis] - k, a.shape[axis]), axis)


def nan_to_num(a, nan=0.0, posinf=None, neginf=None):
    return np.nan_to_num(a, nan=nan, posinf=posinf, neginf=neginf)


def full(shape, vals):
    return np.full(shape, vals)


def minmax(a, axis=None, keepdims=False):
    return np.min(a, axis=axis, keepdims=keepdims), np.max(a, axis=axis, keepdims=keepdims)


def diag(a, k=0):
    return np.diag(a, k)


def log_softmax(a, axis=-1):
    top = a - np.max(a, axis=axis, keepdims=True)
    return top - np.log(np.sum(np.exp(top), axis=axis, keepdims=True))


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


def relu(x):
    return np.maximum(x, 0)


def silu(x):
    return x * sigmoid(x)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def celu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


def selu(x):
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def gelu(x):
    return x * (1 + erf(x / math.sqrt(2))) / 2


def softplus(x):
    return np.logaddexp(x, 0)


def _sizes_of_addmm(c, a, b, alpha=1.0, beta=1.0):
    return addmm(c, a, b, abs(alpha), abs(beta))


HERE = {k: v for k, v in globals().items() if callable(v) and not k.startswith("_")}


class Unknown(Exception):
    """NumPy has nothing of that name."""


class Truth:
    """NumPy in the place of a package; with `sizes`, of absolute values alone."""

    def __init__(self, sizes=False):
        self.sizes = sizes

    def __getattr__(self, name):
        name = ALIASES.get(name, name)
        if self.sizes and name == "addmm":
            return _sizes_of_addmm
        if name in HERE:
            return HERE[name]
        if name in SAME:
            return getattr(np, name)
        if name in values.ALL:
            return values.stored(name)
        raise Unknown(name)


def run(text, operands, sizes):
    """What NumPy makes of a call: ("value", …), ("error", why) or ("none",)."""
    names = {"np": np, "mx": Truth(sizes), **operands}
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, 3)
    try:
        with np.errstate(all="ignore"):
            exec(text, names)
        return "value", names["out"]
    except (Unknown, MemoryError, TimeoutError):
        return ("none",)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _late(*_):
    raise TimeoutError("NumPy takes too long")
