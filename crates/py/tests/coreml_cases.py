"""Each operator of Core ML as a small program of its own, with what it means in NumPy."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import coremltools as ct
import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import types

rng = np.random.default_rng(7)


@dataclass
class Case:
    """A program of one operator: what it is given, how it is built, and what it gives."""

    op: str
    inputs: dict[str, np.ndarray]
    build: Callable[..., Any]
    expect: Callable[..., Any]
    target: Any = field(default_factory=lambda: ct.target.iOS15)
    close: float = 1e-5


CASES: list[Case] = []


def case(op, build, expect, target=None, close=1e-5, **inputs):
    # What is given in other types is of those that go in and out.
    given = {k: np.asarray(v, "f4" if np.asarray(v).dtype == "f8" else None) for k, v in inputs.items()}
    given = {k: v.astype("i4") if v.dtype == "i8" else v for k, v in given.items()}
    CASES.append(Case(op, given, build, expect, target or ct.target.iOS15, close))


def real(*shape, low=-2.0, high=2.0):
    return rng.uniform(low, high, shape).astype("f4")


def ints(*shape, low=0, high=5):
    return rng.integers(low, high, shape).astype("i4")


def spread(values, rank, axis):
    """Values along one axis of many."""
    return values.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def erf(x):
    return np.vectorize(math.erf)(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


iOS16, iOS17, iOS18 = ct.target.iOS16, ct.target.iOS17, ct.target.iOS18

# Activations.
X = real(2, 3, 4, 5)
for op, meaning in {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
}.items():
    case(op, lambda x, op=op: getattr(mb, op)(x=x), meaning, x=X * 4)
for op, arguments, meaning in [
    ("clamped_relu", {"alpha": 0.3, "beta": 1.1}, lambda x: np.minimum(np.where(x >= 0, x, 0.3 * x), 1.1)),
    ("elu", {"alpha": 0.7}, lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
    ("leaky_relu", {"alpha": 0.1}, lambda x: np.where(x >= 0, x, 0.1 * x)),
    ("linear_activation", {"alpha": 0.5, "beta": 2.0}, lambda x: 0.5 * x + 2),
    ("scaled_tanh", {"alpha": 1.5, "beta": 0.5}, lambda x: 1.5 * np.tanh(0.5 * x)),
    ("sigmoid_hard", {"alpha": 0.3, "beta": 0.4}, lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
    ("thresholded_relu", {"alpha": 0.5}, lambda x: np.where(x >= 0.5, x, 0)),
    ("threshold", {"alpha": 0.5}, lambda x: np.maximum(x, 0.5)),
    ("clip", {"alpha": -0.5, "beta": 0.75}, lambda x: np.clip(x, -0.5, 0.75)),
]:
    case(op, lambda x, op=op, a=arguments: getattr(mb, op)(x=x, **a), meaning, x=X)
case("gelu", lambda x: mb.gelu(x=x), lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))), x=X)
case(
    "gelu",
    lambda x: mb.gelu(x=x, mode="TANH_APPROXIMATION"),
    lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    x=X,
)
case("gelu", lambda x: mb.gelu(x=x, mode="SIGMOID_APPROXIMATION"), lambda x: x * sigmoid(1.702 * x), x=X)
ALPHA, BETA = real(3, low=0.1), real(3, low=0.1)
case(
    "prelu",
    lambda x: mb.prelu(x=x, alpha=ALPHA),
    lambda x: np.where(x > 0, x, spread(ALPHA, 4, 1) * x),
    x=X,
)
case(
    "softplus_parametric",
    lambda x: mb.softplus_parametric(x=x, alpha=ALPHA, beta=BETA),
    lambda x: spread(ALPHA, 4, 1) * np.log1p(np.exp(spread(BETA, 4, 1) * x)),
    x=X,
)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


case("softmax", lambda x: mb.softmax(x=x, axis=1), lambda x: softmax(x, 1), x=X)
case("softmax", lambda x: mb.softmax(x=x), softmax, x=X)

# Functions of one operand.
for op, low, high, meaning in [
    ("abs", -2, 2, np.abs),
    ("acos", -0.9, 0.9, np.arccos),
    ("asin", -0.9, 0.9, np.arcsin),
    ("atan", -3, 3, np.arctan),
    ("atanh", -0.9, 0.9, np.arctanh),
    ("ceil", -3, 3, np.ceil),
    ("cos", -3, 3, np.cos),
    ("cosh", -2, 2, np.cosh),
    ("erf", -2, 2, erf),
    ("exp", -2, 2, np.exp),
    ("exp2", -2, 2, np.exp2),
    ("floor", -3, 3, np.floor),
    ("inverse", 0.5, 2, lambda x: 1 / (x + 1e-4)),
    ("log", 0.5, 2, np.log),
    ("round", -3, 3, np.round),
    ("rsqrt", 0.5, 2, lambda x: 1 / np.sqrt(x)),
    ("sign", -2, 2, np.sign),
    ("sin", -3, 3, np.sin),
    ("sinh", -2, 2, np.sinh),
    ("sqrt", 0.1, 2, np.sqrt),
    ("square", -2, 2, np.square),
    ("tan", -1, 1, np.tan),
    ("tanh", -2, 2, np.tanh),
    ("identity", -2, 2, lambda x: x),
]:
    case(op, lambda x, op=op: getattr(mb, op)(x=x), meaning, x=real(3, 4, low=low, high=high))
case("log", lambda x: mb.log(x=x, epsilon=0.5), lambda x: np.log(x + 0.5), x=real(4, low=0, high=2))
case("rsqrt", lambda x: mb.rsqrt(x=x, epsilon=0.5), lambda x: 1 / np.sqrt(x + 0.5), x=real(4, low=0, high=2))
case(
    "logical_not",
    lambda x: mb.cast(x=mb.logical_not(x=mb.cast(x=x, dtype="bool")), dtype="int32"),
    lambda x: (x == 0).astype("i4"),
    x=ints(3, 4, high=2),
)
case("cast", lambda x: mb.cast(x=x, dtype="int32"), lambda x: np.trunc(x).astype("i4"), x=real(3, 4))
case("cast", lambda x: mb.cast(x=x, dtype="fp32"), lambda x: x.astype("f4"), x=ints(3, 4))

# Arithmetic and comparisons.
for op, meaning in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "real_div": np.divide,
    "floor_div": np.floor_divide,
    "mod": np.mod,
    "maximum": np.maximum,
    "minimum": np.minimum,
}.items():
    case(op, lambda x, y, op=op: getattr(mb, op)(x=x, y=y), meaning, x=real(2, 3, 4), y=real(3, 1, low=0.5))
case("floor_div", lambda x, y: mb.floor_div(x=x, y=y), np.floor_divide, x=ints(6, low=-9, high=9), y=[2, -2, 3, -3, 4, 5])
case("mod", lambda x, y: mb.mod(x=x, y=y), np.mod, x=ints(6, low=-9, high=9), y=[2, -2, 3, -3, 4, 5])
case("pow", lambda x, y: mb.pow(x=x, y=y), np.power, x=real(2, 3, low=0.1), y=real(3))
for op, meaning in {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}.items():
    case(
        op,
        lambda x, y, op=op: mb.cast(x=getattr(mb, op)(x=x, y=y), dtype="int32"),
        lambda x, y, f=meaning: f(x, y).astype("i4"),
        x=ints(4, 5, high=3),
        y=ints(5, high=3),
    )
for op, meaning in {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.items():
    case(
        f"logical_{op}",
        lambda x, y, op=op: mb.cast(
            x=getattr(mb, f"logical_{op}")(x=mb.cast(x=x, dtype="bool"), y=mb.cast(x=y, dtype="bool")),
            dtype="int32",
        ),
        lambda x, y, f=meaning: f(x, y).astype("i4"),
        x=ints(4, 5, high=2),
        y=ints(5, high=2),
    )
case(
    "select",
    lambda c, a, b: mb.select(cond=mb.cast(x=c, dtype="bool"), a=a, b=b),
    lambda c, a, b: np.where(c != 0, a, b),
    c=ints(2, 3, high=2),
    a=real(2, 3),
    b=real(2, 3),
)

# Reductions.
for op, meaning in {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "l1_norm": lambda x, **k: np.abs(x).sum(**k),
    "l2_norm": lambda x, **k: np.sqrt(np.square(x).sum(**k)),
    "log_sum": lambda x, **k: np.log(x.sum(**k)),
    "log_sum_exp": lambda x, **k: np.log(np.exp(x).sum(**k)),
    "sum_square": lambda x, **k: np.square(x).sum(**k),
}.items():
    case(
        f"reduce_{op}",
        lambda x, op=op: getattr(mb, f"reduce_{op}")(x=x, axes=[0, -1], keep_dims=True),
        lambda x, f=meaning: f(x, axis=(0, -1), keepdims=True),
        x=real(2, 3, 4, low=0.1),
    )
case("reduce_sum", lambda x: mb.reduce_sum(x=x), lambda x: np.sum(x), x=real(2, 3))
for op, meaning in {"argmax": np.argmax, "argmin": np.argmin}.items():
    case(
        f"reduce_{op}",
        lambda x, op=op: getattr(mb, f"reduce_{op}")(x=x, axis=1, keep_dims=True),
        lambda x, f=meaning: np.expand_dims(f(x, 1), 1).astype("i4"),
        x=real(2, 5, 3),
    )
case("reduce_argmax", lambda x: mb.reduce_argmax(x=x), lambda x: np.argmax(x, -1).astype("i4"), x=real(2, 5))


# Convolutions.
def windows(x, kernel, stride, dilation=None):
    """[N, C, places.., kernel..]."""
    dilation = dilation or [1] * len(kernel)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    axes = tuple(range(2, x.ndim))
    view = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    steps = tuple(slice(None, None, s) for s in stride)
    inner = tuple(slice(None, None, d) for d in dilation)
    return view[(slice(None), slice(None), *steps, *inner)]


def conv(x, w, stride, pads, dilation, groups, bias=None):
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    view = windows(x, w.shape[2:], stride, dilation)
    n = len(w.shape) - 2
    parts = []
    for x_part, w_part in zip(np.split(view, groups, 1), np.split(w, groups, 0)):
        axes = list(range(2 + n, 2 + 2 * n))
        made = np.tensordot(x_part, w_part, ([1, *axes], [1, *range(2, 2 + n)]))
        parts.append(np.moveaxis(made, -1, 1))
    y = np.concatenate(parts, 1)
    return y if bias is None else y + spread(bias, y.ndim, 1)


def conv_transpose(x, w, stride, dilation, groups, cut):
    n = x.ndim - 2
    outs = w.shape[1] * groups
    full = [(s - 1) * t + (k - 1) * d + 1 for s, t, k, d in zip(x.shape[2:], stride, w.shape[2:], dilation)]
    y = np.zeros((x.shape[0], outs, *full))
    for g in range(groups):
        xg = np.split(x, groups, 1)[g]
        wg = np.split(w, groups, 0)[g]
        own = slice(g * w.shape[1], (g + 1) * w.shape[1])
        for at in itertools.product(*map(range, w.shape[2:])):
            place = tuple(
                slice(k * d, k * d + (s - 1) * t + 1, t)
                for k, d, s, t in zip(at, dilation, x.shape[2:], stride)
            )
            tap = np.tensordot(xg, wg[(slice(None), slice(None), *at)], ([1], [0]))
            y[(slice(None), own, *place)] += np.moveaxis(tap, -1, 1)
    keep = tuple(slice(a, size - b) for (a, b), size in zip(cut, y.shape[2:]))
    return y[(slice(None), slice(None), *keep)]


W = real(6, 3, 3, 2)
BIAS = real(6)
P = real(2, 3, 7, 8)
case("conv", lambda x: mb.conv(x=x, weight=W, bias=BIAS), lambda x: conv(x, W, [1, 1], [(0, 0)] * 2, [1, 1], 1, BIAS), x=P, close=1e-4)
case(
    "conv",
    lambda x: mb.conv(x=x, weight=W, strides=[2, 1], pad_type="custom", pad=[1, 2, 0, 1], dilations=[1, 2]),
    lambda x: conv(x, W, [2, 1], [(1, 2), (0, 1)], [1, 2], 1),
    x=P,
    close=1e-4,
)
case("conv", lambda x: mb.conv(x=x, weight=W, strides=[2, 2], pad_type="same"), lambda x: conv(x, W, [2, 2], [(1, 1), (0, 0)], [1, 1], 1), x=P, close=1e-4)
case("conv", lambda x: mb.conv(x=x, weight=W, pad_type="same_lower"), lambda x: conv(x, W, [1, 1], [(1, 1), (1, 0)], [1, 1], 1), target=iOS16, x=P, close=1e-4)
W_GROUPS = real(6, 1, 3, 3)
case("conv", lambda x: mb.conv(x=x, weight=W_GROUPS, groups=3), lambda x: conv(x, W_GROUPS, [1, 1], [(0, 0)] * 2, [1, 1], 3), x=P, close=1e-4)
W_1D, W_3D = real(4, 3, 3), real(2, 3, 2, 2, 2)
case("conv", lambda x: mb.conv(x=x, weight=W_1D), lambda x: conv(x, W_1D, [1], [(0, 0)], [1], 1), x=real(2, 3, 7), close=1e-4)
case("conv", lambda x: mb.conv(x=x, weight=W_3D), lambda x: conv(x, W_3D, [1] * 3, [(0, 0)] * 3, [1] * 3, 1), x=real(1, 3, 4, 4, 5), close=1e-4)
W_BACK = real(4, 3, 3, 2)
B_BACK = real(3)
Q = real(2, 4, 4, 5)
case("conv_transpose", lambda x: mb.conv_transpose(x=x, weight=W_BACK, bias=B_BACK, strides=[2, 1]), lambda x: conv_transpose(x, W_BACK, [2, 1], [1, 1], 1, [(0, 0)] * 2) + spread(B_BACK, 4, 1), x=Q, close=1e-4)
case("conv_transpose", lambda x: mb.conv_transpose(x=x, weight=W_BACK, strides=[2, 2], pad_type="custom", pad=[1, 1, 0, 1], dilations=[1, 2]), lambda x: conv_transpose(x, W_BACK, [2, 2], [1, 2], 1, [(1, 1), (0, 1)]), x=Q, close=1e-4)
case("conv_transpose", lambda x: mb.conv_transpose(x=x, weight=W_BACK, strides=[2, 2], pad_type="same"), lambda x: conv_transpose(x, W_BACK, [2, 2], [1, 1], 1, [(0, 1), (0, 0)]), x=Q, close=1e-4)
case("conv_transpose", lambda x: mb.conv_transpose(x=x, weight=W_BACK, strides=[2, 2], groups=2, pad_type="custom", pad=[1, 1, 1, 1], output_shape=[2, 6, 8, 9]), lambda x: np.pad(conv_transpose(x, W_BACK, [2, 2], [1, 1], 2, [(1, 0), (1, 0)]), [(0, 0)] * 2 + [(0, 0), (0, 0)])[:, :, :8, :9], x=Q, close=1e-4)


# Pooling.
def pooled(x, f, kernel, stride, pads, fill):
    x = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)
    n = len(kernel)
    return f(windows(x, kernel, stride), axis=tuple(range(2 + n, 2 + 2 * n)))


case("max_pool", lambda x: mb.max_pool(x=x, kernel_sizes=[2, 3], strides=[2, 1], pad_type="custom", pad=[1, 0, 1, 1]), lambda x: pooled(x, np.max, [2, 3], [2, 1], [(1, 0), (1, 1)], -np.inf), x=P)
case("max_pool", lambda x: mb.max_pool(x=x, kernel_sizes=[2, 2], strides=[2, 2], pad_type="valid", ceil_mode=True), lambda x: pooled(x, np.max, [2, 2], [2, 2], [(0, 1), (0, 0)], -np.inf), x=P)
case("max_pool", lambda x: mb.max_pool(x=x, kernel_sizes=[3], pad_type="same"), lambda x: pooled(x, np.max, [3], [1], [(1, 1)], -np.inf), x=real(2, 3, 6))
case("avg_pool", lambda x: mb.avg_pool(x=x, kernel_sizes=[2, 3], pad_type="custom", pad=[1, 0, 1, 1]), lambda x: pooled(x, np.mean, [2, 3], [1, 1], [(1, 0), (1, 1)], 0), x=P)
case("avg_pool", lambda x: mb.avg_pool(x=x, kernel_sizes=[2, 3], pad_type="custom", pad=[1, 0, 1, 1], exclude_padding_from_average=True), lambda x: pooled(x, np.nanmean, [2, 3], [1, 1], [(1, 0), (1, 1)], np.nan), x=P)
case("l2_pool", lambda x: mb.l2_pool(x=x, kernel_sizes=[2, 3], pad_type="valid"), lambda x: np.sqrt(pooled(x * x, np.sum, [2, 3], [1, 1], [(0, 0)] * 2, 0)), x=P)

# Products.
M = real(5, 4)
M_BIAS = real(5)
case("linear", lambda x: mb.linear(x=x, weight=M, bias=M_BIAS), lambda x: x @ M.T + M_BIAS, x=real(2, 3, 4))
case("linear", lambda x: mb.linear(x=x, weight=M), lambda x: x @ M.T, x=real(3, 4))
case("matmul", lambda x, y: mb.matmul(x=x, y=y, transpose_y=True), lambda x, y: x @ y.swapaxes(-1, -2), x=real(2, 3, 4), y=real(2, 5, 4))
case("matmul", lambda x, y: mb.matmul(x=x, y=y, transpose_x=True), lambda x, y: x.swapaxes(-1, -2) @ y, x=real(4, 3), y=real(4, 5))
case("einsum", lambda x, y: mb.einsum(values=(x, y), equation="nchw,nwhu->nchu"), lambda x, y: np.einsum("nchw,nwhu->nchu", x, y), x=real(2, 3, 4, 5), y=real(2, 5, 4, 3))

# Normalizations.
MEAN, VARIANCE = real(3), real(3, low=0.5)
case("batch_norm", lambda x: mb.batch_norm(x=x, mean=MEAN, variance=VARIANCE, gamma=ALPHA, beta=BETA, epsilon=1e-3), lambda x: (x - spread(MEAN, 4, 1)) / np.sqrt(spread(VARIANCE, 4, 1) + 1e-3) * spread(ALPHA, 4, 1) + spread(BETA, 4, 1), x=X)
case("batch_norm", lambda x: mb.batch_norm(x=x, mean=MEAN, variance=VARIANCE), lambda x: (x - spread(MEAN, 4, 1)) / np.sqrt(spread(VARIANCE, 4, 1) + 1e-5), x=X)


def standard(x, axes, eps):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


case("instance_norm", lambda x: mb.instance_norm(x=x, gamma=ALPHA, beta=BETA, epsilon=1e-3), lambda x: standard(x, (2, 3), 1e-3) * spread(ALPHA, 4, 1) + spread(BETA, 4, 1), x=X)
G4, G45 = real(5), real(4, 5)
case("layer_norm", lambda x: mb.layer_norm(x=x, axes=[-1], gamma=G4, beta=G4, epsilon=1e-3), lambda x: standard(x, (3,), 1e-3) * G4 + G4, x=X)
case("layer_norm", lambda x: mb.layer_norm(x=x, axes=[2, 3], gamma=G45, epsilon=1e-3), lambda x: standard(x, (2, 3), 1e-3) * G45, x=X)
case("layer_norm", lambda x: mb.layer_norm(x=x, axes=[1]), lambda x: standard(x, (1,), 1e-5), x=X)
case("l2_norm", lambda x: mb.l2_norm(x=x), lambda x: x / np.sqrt((x * x).sum((1, 2, 3), keepdims=True) + 1e-6), x=X)


def local(x, size, alpha, beta, k):
    before = (size - 1) // 2
    squares = np.pad(x * x, [(0, 0), (before, size - 1 - before), (0, 0), (0, 0)])
    total = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    return x / (k + alpha / size * total) ** beta


case("local_response_norm", lambda x: mb.local_response_norm(x=x, size=3, alpha=0.5, beta=0.75, k=1.5), lambda x: local(x, 3, 0.5, 0.75, 1.5), x=real(2, 7, 3, 3))


# Recurrent layers: input, hidden, steps.
def recur(step, x, states, sequence, backwards=False):
    made = []
    for row in x[::-1] if backwards else x:
        states = step(row, *states)
        made.append(states[0])
    return (np.stack(made) if sequence else made[-1][None], *states)


I, H, S = 3, 4, 5
SEQ, H0, C0 = real(S, 2, I), real(2, H), real(2, H)
W_R, R_R, B_R = real(H, I), real(H, H), real(H)
for direction, sequence in itertools.product(["forward", "reverse"], [True, False]):
    case(
        "rnn",
        lambda x, h, d=direction, s=sequence: mb.rnn(x=x, initial_h=h, weight_ih=W_R, weight_hh=R_R, bias=B_R, direction=d, output_sequence=s),
        lambda x, h, d=direction, s=sequence: recur(lambda x, h: (np.tanh(x @ W_R.T + h @ R_R.T + B_R),), x, (h,), s, d == "reverse"),
        x=SEQ,
        h=H0,
    )
W_G, R_G, B_G, B_S = real(3 * H, I), real(3 * H, H), real(3 * H), real(3 * H)


def gru(after):
    def step(x, h):
        wr, wo, wz = np.split(W_G, 3)
        rr, ro, rz = np.split(R_G, 3)
        br, bo, bz = np.split(B_G, 3)
        sr, so, sz = np.split(B_S if after else 0 * B_S, 3)
        r = sigmoid(x @ wr.T + br + h @ rr.T + sr)
        z = sigmoid(x @ wz.T + bz + h @ rz.T + sz)
        past = r * (h @ ro.T + so) if after else (r * h) @ ro.T
        o = np.tanh(x @ wo.T + bo + past)
        return ((1 - z) * o + z * h,)

    return step


case("gru", lambda x, h: mb.gru(x=x, initial_h=h, weight_ih=W_G, weight_hh=R_G, bias=B_G, output_sequence=True), lambda x, h: recur(gru(False), x, (h,), True), x=SEQ, h=H0)
case("gru", lambda x, h: mb.gru(x=x, initial_h=h, weight_ih=W_G, weight_hh=R_G, bias=B_S, input_bias=B_G, reset_after=True), lambda x, h: recur(gru(True), x, (h,), False), target=iOS18, x=SEQ, h=H0)
W_L, R_L, B_L, PEEK = real(4 * H, I), real(4 * H, H), real(4 * H), real(3 * H)
W_LB, R_LB, B_LB = real(4 * H, I), real(4 * H, H), real(4 * H)


def lstm(w, r, b, peek=None, clip=None):
    def step(x, h, c):
        i, f, o, z = np.split(x @ w.T + h @ r.T + b, 4, -1)
        pi, pf, po = (0, 0, 0) if peek is None else np.split(peek, 3)
        i, f = sigmoid(i + pi * c), sigmoid(f + pf * c)
        c = f * c + i * np.tanh(z)
        c = c if clip is None else np.clip(c, -clip, clip)
        return sigmoid(o + po * c) * np.tanh(c), c

    return step


case("lstm", lambda x, h, c: mb.lstm(x=x, initial_h=h, initial_c=c, weight_ih=W_L, weight_hh=R_L, bias=B_L, output_sequence=True), lambda x, h, c: recur(lstm(W_L, R_L, B_L), x, (h, c), True), x=SEQ, h=H0, c=C0)
case("lstm", lambda x, h, c: mb.lstm(x=x, initial_h=h, initial_c=c, weight_ih=W_L, weight_hh=R_L, bias=B_L, peephole=PEEK, clip=0.5, direction="reverse"), lambda x, h, c: recur(lstm(W_L, R_L, B_L, PEEK, 0.5), x, (h, c), False, True), x=SEQ, h=H0, c=C0)


def both(x, h, c):
    forth = recur(lstm(W_L, R_L, B_L), x, (h[:, :H], c[:, :H]), True)
    back = recur(lstm(W_LB, R_LB, B_LB), x, (h[:, H:], c[:, H:]), True, True)
    whole = np.concatenate([forth[0], back[0][::-1]], -1)
    return whole, *(np.concatenate([a, b], -1) for a, b in zip(forth[1:], back[1:]))


case("lstm", lambda x, h, c: mb.lstm(x=x, initial_h=h, initial_c=c, weight_ih=W_L, weight_hh=R_L, bias=B_L, weight_ih_back=W_LB, weight_hh_back=R_LB, bias_back=B_LB, direction="bidirectional", output_sequence=True), both, x=SEQ, h=real(2, 2 * H), c=real(2, 2 * H))

# Gathers and scatters.
T = real(4, 5, 6)
case("gather", lambda x, i: mb.gather(x=x, indices=i, axis=1), lambda x, i: np.take(x, i, 1), x=T, i=[[0, 3], [-1, 2]])
case("gather", lambda x, i: mb.gather(x=x, indices=i, axis=2, batch_dims=1), lambda x, i: np.stack([np.take(a, b, 1) for a, b in zip(x, i)]), target=iOS16, x=T, i=ints(4, 3, high=6))
case("gather_along_axis", lambda x, i: mb.gather_along_axis(x=x, indices=i, axis=1), lambda x, i: np.take_along_axis(x, i, 1), x=T, i=ints(4, 2, 6))
case("gather_nd", lambda x, i: mb.gather_nd(x=x, indices=i), lambda x, i: x[i[..., 0], i[..., 1]], x=T, i=ints(3, 2, high=4))
case("gather_nd", lambda x, i: mb.gather_nd(x=x, indices=i, batch_dims=1), lambda x, i: np.stack([a[b[:, 0]] for a, b in zip(x, i)]), target=iOS16, x=T, i=ints(4, 3, 1, high=5))


def scattered(mode, x, index, u):
    x = x.copy()
    join = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum}
    if mode == "update":
        x[index] = u
    else:
        join[mode].at(x, index, u)
    return x


for mode in ["update", "add", "sub", "mul", "div", "max", "min"]:
    case("scatter", lambda x, i, u, m=mode: mb.scatter(data=x, indices=i, updates=u, axis=1, mode=m), lambda x, i, u, m=mode: scattered(m, x, (slice(None), i), u), x=T, i=[4, 0, 2], u=real(4, 3, 6, low=0.5))
    case("scatter_nd", lambda x, i, u, m=mode: mb.scatter_nd(data=x, indices=i, updates=u, mode=m), lambda x, i, u, m=mode: scattered(m, x, (i[:, 0], i[:, 1]), u), x=T, i=[[0, 1], [3, 4], [2, 2]], u=real(3, 6, low=0.5))
case("scatter_along_axis", lambda x, i, u: mb.scatter_along_axis(data=x, indices=i, updates=u, axis=1, mode="add"), lambda x, i, u: scattered("add", x, (np.arange(4)[:, None, None], i, np.arange(6)), u), x=T, i=ints(4, 2, 6), u=real(4, 2, 6))
case("non_zero", lambda x: mb.non_zero(x=x), lambda x: np.argwhere(x).astype("i4"), x=ints(3, 4, high=2))

# Shapes and parts.
case("shape", lambda x: mb.add(x=mb.shape(x=x), y=mb.reduce_argmax(x=mb.reshape(x=x, shape=[-1]), axis=0)), lambda x: np.array(x.shape, "i4") + np.argmax(x).astype("i4"), x=real(2, 3, 4))
case("reshape", lambda x: mb.reshape(x=x, shape=[4, -1]), lambda x: x.reshape(4, -1), x=T)
case("reshape", lambda x: mb.reshape(x=x, shape=[0, -1, 2]), lambda x: x.reshape(4, -1, 2), x=T)
case("reshape_like", lambda x, y: mb.reshape_like(x=x, ref_tensors=(x, y), begins=[0, 1], ends=[1, 0], end_masks=[False, True]), lambda x, y: x.reshape(4, 3, 10), target=iOS16, x=T, y=real(7, 3, 10))
case("expand_dims", lambda x: mb.expand_dims(x=x, axes=[0, -1]), lambda x: x[None, ..., None], x=T)
case("squeeze", lambda x: mb.squeeze(x=x, axes=[-2]), lambda x: x.squeeze(-2), x=real(1, 3, 1, 4))
case("squeeze", lambda x: mb.squeeze(x=x), lambda x: x.squeeze(), x=real(1, 3, 1, 4))
case("transpose", lambda x: mb.transpose(x=x, perm=[2, 0, -2]), lambda x: x.transpose(2, 0, 1), x=T)
case("flatten2d", lambda x: mb.flatten2d(x=x, axis=-1), lambda x: x.reshape(20, 6), x=T)
case("concat", lambda x, y: mb.concat(values=(x, y), axis=-2), lambda x, y: np.concatenate([x, y], -2), x=T, y=real(4, 2, 6))
case("concat", lambda x, y: mb.concat(values=(x, y), axis=1, interleave=True), lambda x, y: np.stack([x, y], 2).reshape(4, 10, 6), x=T, y=real(4, 5, 6))
case("stack", lambda x, y: mb.stack(values=(x, y), axis=1), lambda x, y: np.stack([x, y], 1), x=T, y=real(4, 5, 6))
case("split", lambda x: mb.split(x=x, num_splits=3, axis=2), lambda x: tuple(np.split(x, 3, 2)), x=T)
case("split", lambda x: mb.split(x=x, split_sizes=[1, 4], axis=1), lambda x: tuple(np.split(x, [1], 1)), x=T)
case("tile", lambda x: mb.tile(x=x, reps=[2, 1, 3]), lambda x: np.tile(x, [2, 1, 3]), x=T)
case("reverse", lambda x: mb.reverse(x=x, axes=[0, -1]), lambda x: np.flip(x, (0, -1)), x=T)
case("reverse", lambda x: mb.reverse(x=x), np.flip, x=T)
case("reverse_sequence", lambda x: mb.reverse_sequence(x=x, lengths=[1, 3, 0, 5], seq_axis=1, batch_axis=0), lambda x: np.stack([np.concatenate([r[:n][::-1], r[n:]]) for r, n in zip(x, [1, 3, 0, 5])]), x=T)
case("pad", lambda x: mb.pad(x=x, pad=[1, 2, 0, 3], mode="constant", constant_val=1.5), lambda x: np.pad(x, [(0, 0), (1, 2), (0, 3)], constant_values=1.5), x=T)
case("pad", lambda x: mb.pad(x=x, pad=[1, 2, 0, 3], mode="reflect"), lambda x: np.pad(x, [(0, 0), (1, 2), (0, 3)], mode="reflect"), x=T)
case("pad", lambda x: mb.pad(x=x, pad=[1, 2, 0, 3], mode="replicate"), lambda x: np.pad(x, [(0, 0), (1, 2), (0, 3)], mode="edge"), x=T)
case("band_part", lambda x: mb.band_part(x=x, lower=1, upper=2), lambda x: np.tril(np.triu(x, -1), 2), x=T)
case("band_part", lambda x: mb.band_part(x=x, lower=-1, upper=0), np.tril, x=T)
for exclusive, backwards in itertools.product([False, True], repeat=2):

    def cumulated(x, e=exclusive, b=backwards):
        x = np.flip(x, 1) if b else x
        y = np.cumsum(x, 1)
        y = y - x if e else y
        return np.flip(y, 1) if b else y

    case("cumsum", lambda x, e=exclusive, b=backwards: mb.cumsum(x=x, axis=1, exclusive=e, reverse=b), cumulated, x=T)
case("fill", lambda x: mb.add(x=mb.fill(shape=mb.shape(x=x), value=2.5), y=x), lambda x: x + 2.5, x=T)
case("fill_like", lambda x: mb.add(x=mb.fill_like(ref_tensor=x, value=2.5), y=x), lambda x: x + 2.5, target=iOS16, x=T)
case("one_hot", lambda x: mb.one_hot(indices=x, one_hot_vector_size=5, axis=1, on_value=2.0, off_value=-1.0), lambda x: np.moveaxis(np.eye(5)[x] * 3 - 1, -1, 1), x=ints(3, 4))
case("one_hot", lambda x: mb.one_hot(indices=x, one_hot_vector_size=5), lambda x: np.eye(5)[x].astype("i4"), x=ints(3))
case("range_1d", lambda x: mb.range_1d(start=1, end=mb.squeeze(x=x), step=3), lambda x: np.arange(1, x[0], 3, "i4"), x=[11])
case("argsort", lambda x: mb.argsort(x=x, axis=1), lambda x: np.argsort(-x, 1).astype("i4"), x=T)
case("argsort", lambda x: mb.argsort(x=x, axis=-1, ascending=True), lambda x: np.argsort(x, -1).astype("i4"), x=T)
case("topk", lambda x: mb.topk(x=x, k=2, axis=1), lambda x: (-np.sort(-x, 1)[:, :2], np.argsort(-x, 1)[:, :2].astype("i4")), x=T)
case("topk", lambda x: mb.topk(x=x, k=3, axis=-1, ascending=True, return_indices=False), lambda x: np.sort(x, -1)[..., :3], target=iOS16, x=T)
case("sliding_windows", lambda x: mb.sliding_windows(x=x, axis=1, size=3, stride=2), lambda x: np.stack([x[:, 0:3], x[:, 2:5]], 1), x=T)
case("slice_by_index", lambda x: mb.slice_by_index(x=x, begin=[1, 0, -1], end=[3, -1, 0], stride=[1, 2, -2], begin_mask=[False, True, False], end_mask=[False, False, True]), lambda x: x[1:3, :-1:2, -1::-2], x=T)
case("slice_by_index", lambda x: mb.slice_by_index(x=x, begin=[-1, 1, 0], end=[0, 4, 6], squeeze_mask=[True, False, False]), lambda x: x[-1, 1:4], x=T)
case("slice_by_index", lambda x, i: mb.slice_by_index(x=x, begin=i, end=mb.add(x=i, y=[1, 2, 3]), stride=[1, 1, 1]), lambda x, i: x[i[0] : i[0] + 1, i[1] : i[1] + 2, i[2] : i[2] + 3], x=T, i=[1, 2, 3])
case("slice_by_size", lambda x: mb.slice_by_size(x=x, begin=[1, 2, 0], size=[2, -1, 3]), lambda x: x[1:3, 2:, :3], x=T)
case("slice_by_size", lambda x, i: mb.slice_by_size(x=x, begin=i, size=[1, 2, 3]), lambda x, i: x[i[0] : i[0] + 1, i[1] : i[1] + 2, i[2] : i[2] + 3], x=T, i=[1, 2, 3])


def updated(x, u):
    x = x.copy()
    x[1:3, 0:5:2] = u
    return x


case("slice_update", lambda x, u: mb.slice_update(x=x, update=u, begin=[1, 0, 0], end=[3, 5, 6], stride=[1, 2, 1]), updated, target=iOS18, x=T, u=real(2, 3, 6))


def blocks(x, split, order, shape):
    return x.reshape(split).transpose(order).reshape(shape)


D = real(2, 8, 4, 6)
case("depth_to_space", lambda x: mb.depth_to_space(x=x, block_size=2), lambda x: blocks(x, (2, 2, 2, 2, 4, 6), (0, 3, 4, 1, 5, 2), (2, 2, 8, 12)), x=D)
case("space_to_depth", lambda x: mb.space_to_depth(x=x, block_size=2), lambda x: blocks(x, (2, 8, 2, 2, 3, 2), (0, 3, 5, 1, 2, 4), (2, 32, 2, 3)), x=D)
case("pixel_shuffle", lambda x: mb.pixel_shuffle(x=x, upscale_factor=2), lambda x: blocks(x, (2, 2, 2, 2, 4, 6), (0, 1, 4, 2, 5, 3), (2, 2, 8, 12)), x=D)
case("pixel_unshuffle", lambda x: mb.pixel_unshuffle(x=x, downscale_factor=np.uint32(2)), lambda x: blocks(x, (2, 8, 2, 2, 3, 2), (0, 1, 3, 5, 2, 4), (2, 32, 2, 3)), target=iOS16, x=D)
case("space_to_batch", lambda x: mb.space_to_batch(x=x, block_shape=[2, 3], paddings=[[1, 1], [0, 3]]), lambda x: blocks(np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 3)]), (2, 8, 3, 2, 3, 3), (3, 5, 0, 1, 2, 4), (12, 8, 3, 3)), x=D)
case("batch_to_space", lambda x: mb.batch_to_space(x=x, block_shape=[2, 3], crops=[[1, 1], [0, 2]]), lambda x: blocks(x, (2, 3, 1, 2, 4, 5), (2, 3, 4, 0, 5, 1), (1, 2, 8, 15))[:, :, 1:-1, :-2], x=real(6, 2, 4, 5))
case("crop", lambda x: mb.crop(x=x, crop_height=[0, 1], crop_width=[1, 2]), lambda x: x[..., :-1, 1:-2], x=D)


# Pictures.
def grid(mode, n, m):
    i = np.arange(m)
    steps = max(m - 1, 1)
    delta = max(1, n - 1) / m
    made = {
        "STRICT_ALIGN_CORNERS": i * (n - 1) / steps,
        "ALIGN_CORNERS": i * (n - 1) / steps if m > 1 else np.full(1, (n - 1) / 2),
        "DEFAULT": i * (n - n / m) / steps,
        "OFFSET_CORNERS": 0.5 * delta + i * delta,
        "UNALIGN_CORNERS": i * n / m + 0.5 * n / m - 0.5,
    }
    return np.clip(made[mode], 0, n - 1)


def along(x, places, axis):
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, x.shape[axis] - 1)
    part = spread(places - low, x.ndim, axis)
    return np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part


def resized(x, height, width, mode):
    x = along(x, grid(mode, x.shape[-2], height), x.ndim - 2)
    return along(x, grid(mode, x.shape[-1], width), x.ndim - 1)


for mode, size in itertools.product(
    ["STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "DEFAULT", "OFFSET_CORNERS", "UNALIGN_CORNERS"],
    [(7, 11), (3, 1)],
):
    case("resize_bilinear", lambda x, m=mode, s=size: mb.resize_bilinear(x=x, target_size_height=s[0], target_size_width=s[1], sampling_mode=m), lambda x, m=mode, s=size: resized(x, *s, m), x=real(2, 3, 4, 5))
case("resize", lambda x: mb.resize(x=x, shape=[6, 0], resized_dims=np.uint32(2), sampling_mode="UNALIGN_CORNERS"), lambda x: resized(x, 6, 5, "UNALIGN_CORNERS"), target=iOS17, x=real(2, 3, 4, 5))
case("resize", lambda x: mb.resize(x=x, shape=[1, 1, 3, 2], resized_dims=np.uint32(2), interpolation_mode="NEAREST_NEIGHBOR"), lambda x: x[:, :, [0, 1, 1]][..., [0, 0]], target=iOS17, x=real(1, 1, 2, 1))
case("resize_nearest_neighbor", lambda x: mb.resize_nearest_neighbor(x=x, target_size_height=3, target_size_width=7), lambda x: x[:, :, [0, 2, 3]][..., [0, 1, 1, 2, 3, 3, 4]], x=real(2, 3, 4, 5))
case("upsample_nearest_neighbor", lambda x: mb.upsample_nearest_neighbor(x=x, scale_factor_height=2, scale_factor_width=3), lambda x: x.repeat(2, -2).repeat(3, -1), x=real(2, 3, 4, 5))
case("upsample_bilinear", lambda x: mb.upsample_bilinear(x=x, scale_factor_height=2, scale_factor_width=3), lambda x: resized(x, 8, 15, "STRICT_ALIGN_CORNERS"), x=real(2, 3, 4, 5))
case("upsample_bilinear", lambda x: mb.upsample_bilinear(x=x, scale_factor_height=2.0, scale_factor_width=2.6, align_corners=False), lambda x: resized(x, 8, 13, "UNALIGN_CORNERS"), x=real(2, 3, 4, 5))
case("upsample_bilinear", lambda x: mb.upsample_bilinear(x=x, scale_factor_height=2, scale_factor_width=3, align_corners=False, half_pixel_centers=False), lambda x: resized(x, 8, 15, "DEFAULT"), target=iOS16, x=real(2, 3, 4, 5))


def pixel(x, b, row, column, mode, fill):
    """The channels of a pixel, which may lie outside."""
    h, w = x.shape[2:]

    def fold(i, n):
        if mode == "reflection":
            i = abs(i) % (2 * n - 2)
            return min(i, 2 * n - 2 - i)
        if mode == "symmetric":
            i = i % (2 * n)
            return min(i, 2 * n - 1 - i)
        return min(max(i, 0), n - 1)

    if mode == "constant" and not (0 <= row < h and 0 <= column < w):
        return np.full(x.shape[1], fill)
    return x[b, :, fold(row, h), fold(column, w)]


def sampled(x, rows, columns, mode, fill=0.0, nearest=False):
    y = np.zeros((x.shape[0], x.shape[1], *rows.shape[1:]))
    for b, i, j in np.ndindex(*rows.shape):
        r, c = rows[b, i, j], columns[b, i, j]
        if nearest:
            y[b, :, i, j] = pixel(x, b, int(np.round(r)), int(np.round(c)), mode, fill)
            continue
        r0, c0 = int(np.floor(r)), int(np.floor(c))
        for dr, dc in itertools.product([0, 1], repeat=2):
            weight = abs(1 - dr - (r - r0)) * abs(1 - dc - (c - c0))
            y[b, :, i, j] += weight * pixel(x, b, r0 + dr, c0 + dc, mode, fill)
    return y


PICTURE, PLACES = real(2, 3, 4, 5), real(2, 3, 6, 2, low=-1.4, high=1.4)
for mode, corners in itertools.product(["constant", "border", "reflection", "symmetric"], [True, False]):

    def meaning(x, p, mode=mode, corners=corners):
        unit = (p + 1) / 2
        h, w = x.shape[2:]
        rows = unit[..., 1] * (h - 1) if corners else unit[..., 1] * h - 0.5
        columns = unit[..., 0] * (w - 1) if corners else unit[..., 0] * w - 0.5
        return sampled(x, rows, columns, mode, 0.5)

    case("resample", lambda x, p, m=mode, c=corners: mb.resample(x=x, coordinates=p, sampling_mode="bilinear", padding_mode=m, padding_value=0.5, coordinates_mode="normalized_minus_one_to_one", align_corners=c), meaning, target=iOS16, x=PICTURE, p=PLACES, close=1e-4)
case("resample", lambda x, p: mb.resample(x=x, coordinates=p, sampling_mode="nearest", padding_mode="border", padding_value=0.0, coordinates_mode="unnormalized", align_corners=True), lambda x, p: sampled(x, p[..., 1], p[..., 0], "border", nearest=True), target=iOS16, x=PICTURE, p=real(2, 3, 6, 2, low=-1, high=5))
MATRIX = np.array([[0.8, 0.2, 0.1, -0.3, 0.9, -0.2]], "f4")


def affine(x, m):
    across, down = np.meshgrid(np.linspace(-1, 1, 6), np.linspace(-1, 1, 3))
    h, w = x.shape[2:]
    a0, a1, a2, b0, b1, b2 = m[0]
    columns = (a0 * across + a1 * down + a2 + 1) / 2 * (w - 1)
    rows = (b0 * across + b1 * down + b2 + 1) / 2 * (h - 1)
    return sampled(x, np.stack([rows] * 2), np.stack([columns] * 2), "constant")


case("affine", lambda x, m: mb.affine(x=x, transform_matrix=m, output_height=3, output_width=6, sampling_mode="bilinear", padding_mode="constant", padding_value=0.0, coordinates_mode="normalized_minus_one_to_one", align_corners=True), affine, target=iOS16, x=PICTURE, m=MATRIX, close=1e-4)
SQUARE = np.arange(1, 17, dtype="f4").reshape(1, 1, 4, 4)
for boxes, size, unit, made in [
    ([[1, 1, 2, 2]], 2, False, [6, 7, 10, 11]),
    ([[1, 1, 2, 2]], 1, False, [8.5]),
    ([[2, 2, 1, 1]], 2, False, [11, 10, 7, 6]),
    ([[0.1, 0.3, 1.3, 1.0], [0.5, 1.8, 1.0, 0.3], [0.0, 0.4, 0.6, 0.7]], 2, True, [3.1, 5.2, 10, 10, 10, 7.9, 10, 13.9, 2.2, 3.1, 9.4, 10.3]),
]:
    boxes = np.array(boxes, "f4")
    case("crop_resize", lambda x, b=boxes, s=size, u=unit: mb.crop_resize(x=x, boxes=b, box_indices=np.zeros(len(b), "i4"), target_width=s, target_height=s, normalized_coordinates=u, sampling_mode="ALIGN_CORNERS", pad_value=10.0), lambda x, b=boxes, s=size, m=made: np.array(m, "f4").reshape(len(b), 1, s, s), target=iOS17, x=SQUARE)
ROI = np.array([1, 1, 2, 2], "f4").reshape(1, 1, 4, 1, 1)
case("crop_resize", lambda x: mb.crop_resize(x=x, roi=ROI, target_width=2, target_height=2, sampling_mode="ALIGN_CORNERS"), lambda x: x[None, :, :, 1:3, 1:3], x=real(2, 3, 4, 4))
ROI_5 = np.array([0, 1, 1, 2, 2], "f4").reshape(1, 1, 5, 1, 1)
case("crop_resize", lambda x: mb.crop_resize(x=x, roi=ROI_5, target_width=2, target_height=2, sampling_mode="STRICT_ALIGN_CORNERS"), lambda x: x[None, :, :, 1:3, 1:3], x=real(1, 3, 4, 4))


# Boxes.
def suppressed(boxes, scores, limit=0.3, least=0.2, most=3):
    corner = np.concatenate([boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2], -1)[0]
    best = scores[0].max(-1)
    kept = []
    for i in np.argsort(-best):
        if best[i] < least or len(kept) == most:
            continue
        inner = [np.prod(np.maximum(0, np.minimum(corner[i, 2:], corner[j, 2:]) - np.maximum(corner[i, :2], corner[j, :2]))) for j in kept]
        areas = [np.prod(boxes[0, i, 2:]) + np.prod(boxes[0, j, 2:]) for j in kept]
        if all(a / (b - a) <= limit for a, b in zip(inner, areas)):
            kept.append(i)
    gap = most - len(kept)
    pad = lambda x, fill=0: np.concatenate([x, np.full((gap, *x.shape[1:]), fill)])  # noqa: E731
    return pad(boxes[0][kept])[None], pad(scores[0][kept])[None], pad(np.array(kept), -1)[None].astype("i4"), np.array([len(kept)], "i4")


case("non_maximum_suppression", lambda b, s: mb.non_maximum_suppression(boxes=b, scores=s, iou_threshold=0.3, score_threshold=0.2, max_boxes=3), suppressed, b=real(1, 8, 4, low=0.5, high=1.5), s=real(1, 8, 2, low=0, high=1))

# Quantized numbers and compressed weights.
case("quantize", lambda x: mb.cast(x=mb.quantize(input=x, scale=[0.1, 0.2, 0.3], zero_point=np.array([1, -2, 3], "i1"), axis=1, output_dtype="int8"), dtype="int32"), lambda x: np.clip(np.round(x / np.array([[0.1], [0.2], [0.3]], "f4")) + [[1], [-2], [3]], -128, 127).astype("i4"), target=iOS17, x=real(2, 3, 4, low=-40, high=40))
case("dequantize", lambda x: mb.dequantize(input=mb.quantize(input=x, scale=0.1, output_dtype="uint8"), scale=np.float32(0.25)), lambda x: np.clip(np.round(x / np.float32(0.1)), 0, 255) * 0.25, target=iOS17, x=real(2, 3, low=-1, high=30))
case("constexpr_affine_dequantize", lambda x: mb.add(x=x, y=mb.constexpr_affine_dequantize(quantized_data=np.arange(12, dtype="u1").reshape(3, 4), zero_point=np.array([1, 2, 3], "u1"), scale=np.array([0.1, 0.2, 0.3], "f4"), axis=0)), lambda x: x + (np.arange(12).reshape(3, 4) - [[1], [2], [3]]) * [[0.1], [0.2], [0.3]], target=iOS16, x=real(3, 4))
case("constexpr_cast", lambda x: mb.add(x=x, y=mb.constexpr_cast(source_val=np.arange(12, dtype="f2").reshape(3, 4), output_dtype="fp32")), lambda x: x + np.arange(12).reshape(3, 4), target=iOS16, x=real(3, 4))
LUT = real(16)
PLACE = rng.integers(0, 16, (3, 4)).astype("u1")
case("constexpr_lut_to_dense", lambda x: mb.add(x=x, y=mb.constexpr_lut_to_dense(indices=np.array([a | b << 4 for a, b in PLACE.reshape(-1, 2)], "u1"), lut=LUT, shape=np.array([3, 4], "u4"))), lambda x: x + LUT[PLACE], target=iOS16, x=real(3, 4))
NONZERO = real(5)
MASK = np.zeros(12, bool)
MASK[[0, 3, 4, 9, 11]] = True


def filled(mask, values):
    y = np.zeros(mask.shape, "f4")
    y[mask] = values
    return y


case("constexpr_sparse_to_dense", lambda x: mb.add(x=x, y=mb.constexpr_sparse_to_dense(nonzero_data=NONZERO, mask=np.packbits(MASK, bitorder="little"), shape=np.array([3, 4], "u4"))), lambda x: x + filled(MASK, NONZERO).reshape(3, 4), target=iOS16, x=real(3, 4))


def small(values, name):
    return values.astype(types.nptype_from_builtin(types.string_to_builtin(name)))


DATA4 = rng.integers(-8, 8, (4, 6))
SCALE, SHIFT = real(4, 2, low=0.1), rng.integers(-3, 3, (4, 2))
case("constexpr_blockwise_shift_scale", lambda x: mb.add(x=x, y=mb.constexpr_blockwise_shift_scale(data=small(DATA4, "int4"), scale=SCALE, offset=small(SHIFT, "int4"))), lambda x: x + (DATA4 - SHIFT.repeat(3, 1)) * SCALE.repeat(3, 1), target=iOS18, x=real(4, 6))
for bits in [1, 2, 3, 4, 6]:
    table, places = real(2, 1, 2**bits, 1), rng.integers(0, 2**bits, (6, 5))

    def looked(x, t=table, p=places):
        return x + np.stack([t[i // 3, 0, p[i], 0] for i in range(6)])

    case("constexpr_lut_to_dense", lambda x, t=table, p=places, b=bits: mb.add(x=x, y=mb.constexpr_lut_to_dense(indices=small(p, f"uint{b}"), lut=t)), looked, target=iOS18, x=real(6, 5))
VECTORS, V_PLACES = real(1, 1, 4, 3), rng.integers(0, 4, (2, 5))
for axis in [0, 1]:

    def vectors(x, a=axis):
        found = VECTORS[0, 0][V_PLACES]
        return x + (found.transpose(0, 2, 1).reshape(6, 5) if a == 0 else found.reshape(2, 15))

    case("constexpr_lut_to_dense", lambda x, a=axis: mb.add(x=x, y=mb.constexpr_lut_to_dense(indices=small(V_PLACES, "uint2"), lut=VECTORS, vector_axis=a)), vectors, target=iOS18, x=real(*((6, 5) if axis == 0 else (2, 15))))
MASK2 = MASK.reshape(3, 4)
case("constexpr_sparse_to_dense", lambda x: mb.add(x=x, y=mb.constexpr_sparse_to_dense(nonzero_data=NONZERO, mask=small(MASK2, "uint1"))), lambda x: x + filled(MASK2, NONZERO), target=iOS18, x=real(3, 4))
SPARSE = np.array([10, 11, 3, 4, 5], "i1")
ROWS = real(3, 1, low=0.1)


def sparse_scaled(x):
    return x + np.where(MASK2, (filled(MASK2, SPARSE) - 1) * ROWS, 0)


def sparse_scale(x):
    mask, data = mb.constexpr_sparse_blockwise_shift_scale(data_mask=small(MASK2, "uint1"), nonzero_data=SPARSE, scale=ROWS, offset=np.ones((3, 1), "i1"))
    return mb.add(x=x, y=mb.constexpr_sparse_to_dense(nonzero_data=data, mask=mask))


case("constexpr_sparse_blockwise_shift_scale", sparse_scale, sparse_scaled, target=iOS18, x=real(3, 4))
FEW = np.array([0, 1, 3, 2, 1])


def sparse_table(x):
    mask, data = mb.constexpr_lut_to_sparse(indices_mask=small(MASK2, "uint1"), indices_nonzero_data=small(FEW, "uint2"), lut=VECTORS[..., :2], vector_axis=0)
    return mb.add(x=x, y=mb.constexpr_sparse_to_dense(nonzero_data=data, mask=mask))


def sparse_looked(x):
    places = np.zeros((3, 4), int)
    places[MASK2] = FEW
    dense = VECTORS[0, 0, :, :2][places].transpose(0, 2, 1).reshape(6, 4)
    return x + np.where(MASK2.repeat(2, 0), dense, 0)


case("constexpr_lut_to_sparse", sparse_table, sparse_looked, target=iOS18, x=real(6, 4))

# Attention.
K4, V4 = real(2, 3, 7, 4), real(2, 3, 7, 5)


def attended(q, k, v, mask=0.0):
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask) @ v


case("scaled_dot_product_attention", lambda q, k, v: mb.scaled_dot_product_attention(query=q, key=k, value=v), attended, target=iOS18, q=real(2, 3, 6, 4), k=K4, v=V4)
case("scaled_dot_product_attention", lambda q, k, v, m: mb.scaled_dot_product_attention(query=q, key=k, value=v, attn_mask=m), lambda q, k, v, m: attended(q, k, v, m), target=iOS18, q=real(2, 3, 6, 4), k=K4, v=V4, m=real(2, 1, 6, 7))
case("scaled_dot_product_attention", lambda q, k, v, m: mb.scaled_dot_product_attention(query=q, key=k, value=v, attn_mask=mb.cast(x=m, dtype="bool")), lambda q, k, v, m: attended(q, k, v, np.where(m != 0, 0, -np.inf)), target=iOS18, q=real(3, 6, 4), k=real(3, 7, 4), v=real(3, 7, 5), m=np.tril(np.ones((6, 7), "i4"), 1))

# Control flow and lists.
case("cond", lambda x: mb.cond(pred=mb.greater(x=mb.reduce_sum(x=x), y=0.0), _true_fn=lambda: mb.mul(x=x, y=2.0), _false_fn=lambda: mb.sub(x=x, y=1.0)), lambda x: x * 2, x=real(3, low=0.1))
case("cond", lambda x: mb.cond(pred=mb.greater(x=mb.reduce_sum(x=x), y=0.0), _true_fn=lambda: mb.mul(x=x, y=2.0), _false_fn=lambda: mb.sub(x=x, y=1.0)), lambda x: x - 1, x=-real(3, low=0.1))
case("while_loop", lambda x: mb.while_loop(_cond=lambda i, x: mb.less(x=i, y=3), _body=lambda i, x: (mb.add(x=i, y=1), mb.mul(x=x, y=2.0)), loop_vars=(mb.const(val=0), x))[1], lambda x: x * 8, x=real(3))


def listed(x):
    ls = mb.make_list(init_length=2, dtype="fp32", elem_shape=(3,))
    ls = mb.list_write(ls=ls, index=0, value=x)
    ls = mb.list_write(ls=ls, index=1, value=mb.mul(x=x, y=2.0))
    ls = mb.list_scatter(ls=ls, indices=[2, 3], value=mb.stack(values=(x, mb.add(x=x, y=1.0)), axis=0))
    row = mb.list_read(ls=ls, index=1)
    rows = mb.list_gather(ls=ls, indices=[0, 3, 2])
    return mb.add(x=rows, y=row), mb.add(x=mb.list_length(ls=ls), y=mb.cast(x=mb.reduce_argmax(x=x), dtype="int32"))


for op in ["make_list", "list_write", "list_read", "list_gather", "list_scatter", "list_length"]:
    case(op, listed, lambda x: (np.stack([x, x + 1, x]) + 2 * x, np.array(4 + np.argmax(x), "i4")), x=real(3))
