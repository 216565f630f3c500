"""Derivatives of random compositions: against central differences in float64, against MLX, against
each other (products with both sides of the Jacobian), and through every transform.

A composition is a text of Python's with a line for each function. Where differences with two steps
do not agree there is a kink, and the case is passed over. Two results that differ are a finding
unless they move as far when the inputs move by a few roundings: then no computation could tell.
"""

import random
import re

import numpy as np

import report
from call import Child

def _several(text):
    return [t for t in text.replace("\n", "|").split("|") if t]


UNARY = _several("""
sin({x})|cos({x})|tanh({x})|sigmoid({x})|arctan({x})|erf({x})|erfc({x})|negative({x})|abs({x})
square(mx.tanh({x}))|exp(mx.sin({x}))|log(mx.square({x}) + 1.0)|log1p(mx.square({x}))
log2(mx.abs({x}) + 0.5)|log10(mx.abs({x}) + 0.5)|sqrt(mx.square({x}) + 0.5)
rsqrt(mx.square({x}) + 0.5)|reciprocal(mx.square({x}) + 0.5)|expm1(mx.tanh({x}))
sinh(mx.tanh({x}))|cosh(mx.tanh({x}))|tan(mx.tanh({x}))|arcsinh({x})|arccosh(mx.square({x}) + 1.5)
arcsin(mx.tanh({x}) * 0.9)|arccos(mx.tanh({x}) * 0.9)|arctanh(mx.tanh({x}) * 0.9)
erfinv(mx.tanh({x}) * 0.9)|degrees(mx.tanh({x}) * 0.01)|radians({x})|clip({x}, -0.7, 0.9)
real({x})|power(mx.square({x}) + 0.5, 1.5)|power({x}, 2)|power({x}, 3)|nan_to_num({x})
positive({x})|floor({x}) * 0.1 + {x}|stop_gradient({x}) * 0.0 + {x}
where({x} > 0.1, {x}, mx.square({x}))|round({x}) + {x}|sign({x}) * {x}|logaddexp({x}, 0.0)
divide(1.0, {x} * {x} + 1.0)|remainder({x}, 2.5)|maximum({x}, 0.2)|minimum({x}, 0.3)
lgamma(mx.square({x}) + 0.3)|digamma(mx.square({x}) + 0.3)|lgamma(-0.5 + 0.3 * mx.sin({x}))
i0({x})|sinc({x})|logit(mx.sigmoid(mx.clip({x}, -8, 8)))|hypot({x}, 0.5)|fmod({x}, 2.5)|frac({x})|fmax({x}, 0.2)
fmin({x}, 0.3)|copysign({x}, 2.0)|ldexp({x}, 3)|frexp(mx.square({x}) + 0.5)[0]|xlogy(mx.square({x}) + 0.5, 2.0)
lerp({x}, 2.0, 0.25)|polyval(mx.array([0.5, -1.0, 2.0], dtype={x}.dtype), {x})
square(mx.abs({x} - 0.3))|astype({x}, {x}.dtype)|contiguous({x})|trunc({x}) + {x}
""")

BINARY = _several("""
add({x}, {y})|subtract({x}, {y})|multiply(mx.tanh({x}), {y})|divide({x}, mx.square({y}) + 0.5)
maximum({x}, {y})|minimum({x}, {y})|logaddexp({x}, {y})|arctan2({x}, mx.square({y}) + 0.5)
hypot({x}, {y})|fmax({x}, {y})|fmin({x}, {y})|copysign({x}, {y})|xlogy({x}, mx.square({y}) + 0.5)
lerp({x}, {y}, 0.3)|addcmul({x}, {x}, {y}, value=0.5)|addcdiv({x}, {x}, mx.square({y}) + 0.5)
cdist({x}, {y})|cdist({x}, {y}, 3.0)|trapezoid({x}, {y})|polyval({x}, mx.tanh({y}))
power(mx.square({x}) + 0.5, mx.tanh({y}))|where({x} > {y}, {x}, mx.sin({y}))
multiply({x}, {x}) * mx.tanh({y})|inner({x}, {y})|outer({x}, {y})|kron({x}, {y})|matmul({x}, {y})
matmul({x}, mx.swapaxes({y}, -1, -2))|tensordot({x}, {y}, axes=1)
tensordot({x}, {y}, axes=[[0], [0]])|vecdot({x}, {y})|addmm({x}, {x}, {y}, 0.5, 2.0)
einsum('ij,jk->ik', {x}, {y})|einsum('ij,kj->ki', {x}, {y})|einsum('ij,ij->i', {x}, {y})
einsum('i,j->ji', {x}, {y})|convolve({x}, {y})|convolve({x}, {y}, mode='same')
linalg.cross({x}, {y})|einsum('bij,bjk->bik', {x}, {y})|concatenate([{x}, {y}], axis={axis})
stack([{x}, {y}], axis={axis})|broadcast_arrays({x}, {y})[0] * 2.0|conv1d({x}, {y}, padding=1)
conv1d({x}, {y}, stride=2, padding=2)|conv2d({x}, {y}, padding=(1, 2), dilation=(1, 2))
conv2d({x}, {y}, stride=2, padding=1)|conv_transpose1d({x}, {y}, stride=2)
conv_transpose2d({x}, {y}, padding=1)
conv_general({x}, {y}, padding=2, input_dilation=2, flip=True)|conv3d({x}, {y}, padding=1)
slice_update({x}, {y}, mx.array([0]), ({pos},))
put_along_axis({x}, mx.argmax({x}, {axis}, keepdims=True), {y}, axis={axis})
fast.layer_norm({x}, {y}, {y}, 1e-3)|fast.rms_norm({x}, {y}, 1e-3)
take({x}, mx.argsort({y}) % {x}.shape[-1], axis=-1)
meshgrid({x}, {y})[0]
fast.scaled_dot_product_attention({x}, {y}, mx.sin({y}), scale=0.5)
fast.scaled_dot_product_attention({x}, {y}, {y}, scale=0.5, mask='causal')
""")

ONE = _several("""
transpose({x})|swapaxes({x}, {axis}, {other})|moveaxis({x}, {axis}, {other})|reshape({x}, (-1,))
reshape({x}, (2, -1))|flatten({x})|flip({x}, {axis})|roll({x}, 2, {axis})|expand_dims({x}, {axis})
squeeze({x})|tile({x}, 2)|repeat({x}, 2, {axis})|pad({x}, 1)|pad({x}, [(1, 2)])
pad({x}, 1, mode='edge')|broadcast_to({x}, (2, *{x}.shape))|tril({x})|triu({x}, 1)|diag({x})
diagonal({x})|trace({x})|diff({x}, axis={axis})|atleast_2d({x})|split({x}, 2, {axis})[1]
unstack({x}, axis={axis})[0]|unflatten({x}, {axis}, (1, -1))|as_strided({x}, (2, 2), (1, 1))
concatenate([{x}, mx.cos({x})], {axis})|stack([{x}, {x}], {axis})|sum({x}, axis={axis})
sum({x}, axis={axis}, keepdims=True)|mean({x}, axis={axis}, keepdims=True)|mean({x})
prod(mx.tanh({x}), axis={axis})|prod({x})|max({x}, axis={axis})
min({x}, axis={axis}, keepdims=True)|max({x})|var({x}, axis={axis})
std({x}, axis={axis}, keepdims=True)|var({x}, axis={axis}, ddof=1)|logsumexp({x}, axis={axis})
logsumexp({x})|median({x}, axis={axis})|minmax({x}, {axis})[1]|linalg.norm({x}, axis={axis})
linalg.norm({x}, 1, {axis})|linalg.norm({x}, 3.0, {axis})|linalg.norm({x})|linalg.norm({x}, 'fro')
softmax({x}, axis={axis})|softmax({x})|softmax({x}, axis={axis}, precise=True)
nansum({x}, axis={axis})|nanmean({x}, axis={axis})|nanmax({x}, {axis})|nanmin({x}, {axis})
nanmedian({x}, {axis})|quantile({x}, [0.2, 0.7], {axis})|nanquantile({x}, 0.3, {axis})
trapezoid({x}, axis={axis})|cov({x})|corrcoef({x})|segment_sum({x}, mx.zeros({x}.shape[0], dtype=mx.int32), 2)
histogram(mx.ones({x}.shape), 3, (0.0, 2.0), weights={x})[0]|pixel_unshuffle({x}, 1)
index_fill({x}, {axis}, mx.array([0]), 2.0)|masked_fill({x}, mx.stop_gradient({x}) > 0.3, 2.0)
interpolate({x}, scale_factor=1.5)|interpolate({x}, scale_factor=2, mode='linear')
interpolate({x}, scale_factor=0.7, mode='cubic')|interpolate({x}, 3, mode='area')
adaptive_avg_pool({x}, 2)|adaptive_max_pool({x}, 2)|unfold({x}, 2)|unfold({x}, 2, padding=1)
max_pool_with_indices({x}, 2)[0]|fold(mx.unfold({x}, 1), {x}.shape[1:-1], 1)
repeat_interleave({x}, 2, {axis})
sort({x}, axis={axis})|topk({x}, 2, axis={axis}).sum({axis})|cumsum({x}, axis={axis})
cumsum({x}, axis={axis}, reverse=True, inclusive=False)|cumprod({x}, axis={axis})
cumprod({x}, axis={axis}, reverse=True)|cumprod({x}, axis={axis}, inclusive=False)
cummax({x}, axis={axis})|cummin({x}, axis={axis}, reverse=True)|logcumsumexp({x}, axis={axis})
logcumsumexp({x}, axis={axis}, reverse=True)|take({x}, mx.array([0, 0, -1]), axis={axis})
take({x}, mx.array([[-1, 0], [0, 0]]), axis={axis})|take({x}, 0, axis={axis})
take_along_axis({x}, mx.argmin({x}, {axis}, keepdims=True), axis={axis})
slice({x}, mx.array([0]), ({pos},), {x}.shape)|hadamard_transform({x})
fast.rope({x}, 2, traditional=True, base=100.0, scale=1.0, offset=1)
fast.rope({x}, 2, traditional=False, base=100.0, scale=0.5, offset=0)|einsum('ii->i', {x})
einsum('ij->ji', {x})|fast.layer_norm({x}, None, None, 1e-3)
partition({x}, 1, axis={axis}).sum({axis})|matrix_transpose({x})
fast.cross_entropy({x}, mx.argmax({x}, -1))|random.normal({x}.shape, key=mx.random.key(3)) * {x}
fft.fftshift({x})|addmm({x}, {x}, {x})|matmul({x}, {x})|inner({x}, {x})|convolve({x}, {x})
""")

METHODS = _several("""
{x}[0]|{x}[::-1]|{x}[..., ::2]|{x}[:, 1:]|{x}[mx.array([0, 0, -1])]|{x}[..., None]
{x}[-1:, ..., ::-2]|{x}.at[0].add({x}[-1])|{x}.at[mx.array([0, 0])].add(mx.cos({x}[-1]))
{x}.at[0].multiply({x}[-1])|{x}.at[mx.array([0, -1])].multiply(mx.sin({x}[:2]))
{x}.at[0].maximum({x}[-1])|{x}.at[0].minimum({x}[-1])|{x}.at[0].divide(mx.square({x}[-1]) + 0.5)
{x}.at[::2].subtract({x}[0] * 0.5)|put({x}, 0, mx.sin({x}[-1]))
put({x}, slice(None, None, 2), mx.tanh({x}[0]))|put({x}, mx.array([0, -1]), mx.cos({x}[:1]))|{x}.T
{x} / 3.0|-{x}|{x} ** 2|2.0 - {x}|nn.gelu({x})|nn.gelu_approx({x})|nn.silu({x})|nn.mish({x})
nn.elu({x})|nn.selu({x})|nn.celu({x})|nn.softplus({x})|nn.relu({x})|nn.relu6({x})
nn.leaky_relu({x})|nn.log_softmax({x})|nn.log_sigmoid({x})|nn.hardswish({x})|nn.softsign({x})
nn.hard_tanh({x})|nn.glu({x})|nn.softmin({x})|nn.softshrink({x})|nn.relu2({x})|nn.hard_shrink({x})
nn.gelu_fast_approx({x})|nn.losses.mse_loss({x}, mx.sin({x}))|nn.losses.huber_loss({x}, {x} * 0.5)
nn.losses.log_cosh_loss({x}, mx.sin({x}))|nn.losses.smooth_l1_loss({x}, {x} * 0.5)
nn.MaxPool1d(2)({x})|nn.AvgPool1d(2, stride=1, padding=1)({x})|nn.MaxPool2d(2, stride=1)({x})|nn.MaxPool2d(2, stride=1, padding=1, dilation=2)({x})|nn.AvgPool1d(2, 1, 1, dilation=2)({x})
nn.AvgPool2d(2)({x})|nn.Upsample(2)({x})|nn.losses.cross_entropy({x}, mx.argmax({x}, -1))
nn.losses.kl_div_loss({x}, nn.log_softmax({x} * 2.0))
nn.losses.cosine_similarity_loss({x}, mx.cos({x}))
nn.losses.gaussian_nll_loss({x}, mx.sin({x}), mx.square({x}) + 0.5)
nn.losses.triplet_loss({x}, mx.sin({x}), mx.cos({x}))|nn.InstanceNorm(3)({x})
nn.Upsample(2, mode='linear')({x})
({x} if 0 in {x}.shape else mx.take_along_axis({x}, mx.argsort({y}, axis={axis}) % {x}.shape[{axis}], axis={axis}))
""")

TEMPLATES = ["mx." + t for t in UNARY + BINARY * 2 + ONE * 2] + METHODS * 2

SHAPES = [(), (1,), (2,), (3,), (4,), (8,), (2, 3), (3, 2), (3, 3), (1, 4), (4, 4), (2, 2, 3),
          (3, 1, 2), (2, 4, 3), (2, 5, 2, 3), (1, 2, 3, 4), (1, 3, 3, 2), (2, 3, 3, 1, 2), (17,),
          (33, 2), (2, 0), (16, 16),
          (2, 9, 4), (4, 3, 3), (2, 7, 6, 2), (2, 2, 9, 4), (5, 3, 3, 2), (3, 2, 3)]  # fmt: skip

# By how much inputs move that move by a few roundings.
ROUNDINGS = {"float32": 1e-6, "float64": 1e-12}

CHECKS = """
def h(*x):
    return tuple(mx.array(t) if not isinstance(t, mx.array) else t for t in [f(*x)])

def loss(*x):
    return mx.sum(f(*x) * weight)

def dot(xs, ys):
    return sum(mx.sum(x * y) for x, y in zip(xs, ys))

# The gradient by one argument stands alone, as in MLX.
def each(grads):
    return [grads] if isinstance(grads, mx.array) else list(grads)

def along(g, step):
    up = g(*[x + step * v for x, v in zip(xs, vs)])
    down = g(*[x - step * v for x, v in zip(xs, vs)])
    return (up - down) / (2 * step)

xs, vs = [{xs}], [{vs}]
{moved}weight = array({shape}, D, {salt}, "normal")
numbers = tuple(range(len(xs)))
out = {{}}
value, grads = mx.value_and_grad(loss, numbers)(*xs)
grads = each(grads)
out["value"], out["grads"] = value, grads
"""

MORE = """
out["parts"] = [mx.max(mx.abs(t)) for t in parts(*xs) if t.size]
out["along"] = dot(grads, vs)
out["differences"] = [along(loss, step) for step in (1e-4, 1e-5)]
out["grad"] = each(mx.grad(loss, numbers)(*xs))
_, moved = mx.jvp(lambda *x: f(*x), xs, vs)
_, pulled = mx.vjp(lambda *x: f(*x), xs, [weight])
out["vjp"] = pulled
out["jvp"] = mx.sum(moved[0] * weight)
out["compiled"] = each(mx.compile(mx.grad(loss, numbers))(*xs))
out["checkpoint"] = each(mx.grad(mx.checkpoint(loss), numbers)(*xs))
slope = lambda *x: dot(each(mx.grad(loss, numbers)(*x)), vs)
out["second"] = dot(each(mx.grad(slope, numbers)(*xs)), vs)
out["second differences"] = [along(slope, step) for step in (1e-4, 1e-5)]
_, forward = mx.jvp(lambda *x: each(mx.grad(loss, numbers)(*x)), xs, vs)
out["second forward"] = dot(forward, vs)
"""

BATCH = """
stacks = [mx.stack([x, x + v * 0.3, x * 0.7]) for x, v in zip(xs, vs)]
out["vmap"] = each(mx.vmap(mx.grad(loss, numbers))(*stacks))
loops = [each(mx.grad(loss, numbers)(*[s[k] for s in stacks])) for k in range(3)]
out["loop"] = [mx.stack(parts) for parts in zip(*loops)]
"""

HELPERS = """
def put(x, where, value):
    x = mx.array(x)
    x[where] = value
    return x
"""


class Composition:
    """A composition that grows by one line at a time; its shapes are those that Cupola records."""

    def __init__(self, rng, core, nn):
        self.rng, self.names = rng, {"mx": core, "nn": nn}
        exec(HELPERS, self.names)
        self.inputs, self.lines = {}, []
        for k in range(rng.randint(1, 3)):
            shape = rng.choice(SHAPES)
            self.inputs["abc"[k]] = shape
            self.names["abc"[k]] = core.zeros(shape)
        self.values = list(self.inputs)
        for _ in range(rng.randint(1, 8)):
            self.grow()
        if not self.lines:
            self.note("mx.sin(a)", self.eval("mx.sin(a)"))

    def eval(self, text):
        return eval(text, self.names)

    def note(self, text, x):
        name = f"t{len(self.lines)}"
        self.lines.append((name, text))
        self.names[name] = x
        self.values.append(name)

    def grow(self):
        """One more line, of a function that takes what there is."""
        for _ in range(12):
            x = self.values[-1] if self.rng.random() < 0.6 else self.rng.choice(self.values)
            y = self.rng.choice(self.values)
            rank = max(1, self.names[x].ndim)
            pos, other = self.rng.randrange(rank), self.rng.randrange(rank)
            text = self.rng.choice(TEMPLATES)
            axis = pos - rank * (self.rng.random() < 0.5)
            text = text.format(x=x, y=y, axis=axis, other=other, pos=pos)
            try:
                made = self.eval(text)
            except Exception:
                continue
            # The covariance of one observation is no number, and so are its derivatives.
            if "cov(" in text and bool(self.names["mx"].isnan(made).any()):
                continue
            if made.size <= 600 and made.ndim < 6 and "float" in str(made.dtype):
                return self.note(text, made)

    def function(self):
        lines = [HELPERS, f"def f({', '.join(self.inputs)}):"]
        lines += [f"    {name} = {text}" for name, text in self.lines]
        used = {self.lines[-1][0]}
        for name, text in reversed(self.lines):
            used |= set(re.findall(r"\bt\d+\b", text)) if name in used else set()
        names = ", ".join(sorted(used))
        parts = [line.replace("def f(", "def parts(") for line in lines[1:]]
        ends = [f"    return {self.lines[-1][0]}\n", *parts, f"    return [{names}]"]
        return "\n".join([*lines, *ends])


class Checker:
    def __init__(self, options, out):
        import cupola.core as core
        import cupola.nn as nn

        self.core, self.nn, self.out, self.seed = core, nn, out, options.seed
        self.fine = options.device == "cpu"
        self.ours, self.theirs = Child("cupola", options.device), Child("mlx")
        core.set_default_device(core.cpu)

    def close(self):
        self.ours.stop()
        self.theirs.stop()

    def program(self, index, dtype, more, near=0):
        """The text of a case; the inputs of those ``near`` it differ from its own by a few roundings."""
        rng = random.Random(f"{self.seed}:{index}")
        made = Composition(rng, self.core, self.nn)
        salt = rng.randrange(10**6)
        sizes = list(enumerate(made.inputs.values(), salt))
        xs, vs, moves = (
            ", ".join(f"array({s}, D, {k + beside}, 'normal')" for k, s in sizes)
            for beside in (0, 10, 20 + 10 * near)
        )
        moved = f"xs = [x + {ROUNDINGS[dtype]} * x * m for x, m in zip(xs, [{moves}])]\n"
        shape = tuple(made.names[made.lines[-1][0]].shape)
        moved = moved if near else ""
        checks = CHECKS.format(xs=xs, vs=vs, moved=moved, shape=shape, salt=salt + 20)
        return "\n".join([f'D = "{dtype}"', made.function(), checks, *more])

    def case(self, index):
        ours = Answer(self, self.ours, index, "float32", [] if self.fine else [MORE, BATCH])
        theirs = Answer(self, self.theirs, index, ours.dtype, ours.more)
        self.out.counts[f"in float32: {ours.kind}"] += 1
        self.out.counts[f"MLX in float32: {theirs.kind}"] += 1
        if ours.kind != "value":
            return self.failed(ours, theirs)
        exact = self.numbers(index) if self.fine else None
        if theirs.kind == "value":
            self.compare(ours, theirs, exact)

    def failed(self, ours, theirs=None):
        """Where MLX has a derivative, an error is a finding; crashes always are."""
        if ours.kind == "error" and ours.answer[3] and theirs and theirs.kind != "value":
            self.out.counts["no derivative in either"] += 1
            return
        kind, what = ours.kind, ours.answer[1:3]
        if kind == "error":
            name, text = what
            kind = f"{name}: {text[:60].splitlines()[0] if text else ''}"
        beside = theirs.kind if theirs else "not asked"
        self.out.finding(ours.index, kind, f"{ours.text}\n{what}\nMLX: {beside}")

    def numbers(self, index):
        """The checks in float64; gives the gradients, or None where there is a kink."""
        one = Answer(self, self.ours, index, "float64", [MORE])
        self.out.counts[f"in float64: {one.kind}"] += 1
        if one.kind != "value":
            return self.failed(one)
        smooth = self.judge(one)
        batch = Answer(self, self.ours, index, "float64", [BATCH])
        if batch.kind != "value":
            self.failed(batch)
        else:
            self.equal(batch, "vmap", "loop", 1e-8)
        return one.out["grads"] if smooth else None

    def judge(self, one):
        """Whether the function is smooth where it was asked."""
        for name in ("grad", "vjp", "compiled", "checkpoint"):
            self.equal(one, name, "grads")
        ways, ends = (all(np.isfinite(x).all() for x in one.out[k]) for k in ("parts", "grads"))
        if not ways and not ends:
            self.out.counts["passed over: an infinity or NaN on the way has no slope"] += 1
            return False
        if not ways:
            # The gradient is 0 where nothing depends on what is infinite; a tangent is 0 times that.
            self.out.counts["passed over: an infinity or NaN on the way (jvp)"] += 1
        elif np.isfinite(one.out["value"][0]):
            # Terms as large as powers of what is on the way cancel in one order, and not in the other.
            largest = max([1.0, *(float(size) for size in one.out["parts"] if np.isfinite(size))])
            if largest < 1e150:
                # What is left of them is as large as their last digits, and they hundreds of times what is on the way.
                least = 1e-13 * largest if largest >= 1e5 else 0.0
                self.equal(one, "jvp", "along", 1e-9 if largest < 1e5 else 1e-6, least)
            else:
                self.out.counts["passed over: products leave float64 on the way (jvp)"] += 1
            if largest < 1e5:
                self.equal(one, "second forward", "second", 1e-8 * largest)
            else:
                self.out.counts["passed over: large numbers on the way (second forward)"] += 1
        # Second derivatives go through fifth powers, which float64 does not hold of any number.
        if any(size > 1e40 for size in one.out["parts"]):
            self.out.counts["passed over: powers leave float64 on the way"] += 1
            return False
        smooth = self.agree(one, "along", "differences")
        self.agree(one, "second", "second differences")
        return smooth

    def equal(self, one, name, other, relative=1e-9, least=0.0):
        """Both are the same but for the order of sums, and what is smaller than ``least``."""
        have, want = one.out[name], one.out[other]
        if self.root_of_0(one.text, *have, *want):
            return
        self.out.counts[f"compared: {name}"] += 1
        scale = max([1.0, least / relative, *(_size(w) for w in want)])
        for k, pair in enumerate(zip(have, want)):
            if _close(*pair, relative, scale) or self.undecided([one], (name, other), _gap(*pair), k):
                continue
            self.out.finding(one.index, name, f"{one.text}\n{name}: {pair[0]!r}, expected {pair[1]!r}")
            return

    def undecided(self, answers, names, gap, at=None):
        """Whether results, of several number `at`, move as far as the gap between them when the inputs
        move by roundings."""
        if any(a.moves(name, at, gap / 10) for a in answers for name in names):
            self.out.counts["passed over: roundings decide"] += 1
            return True
        return False

    def root_of_0(self, text, *derivatives):
        """Whether derivatives are no numbers because they may be those of the root of 0; it is counted."""
        if not _roots(text) or all(np.isfinite(x).all() for x in derivatives):
            return False
        self.out.counts["passed over: the root of 0 has no derivative"] += 1
        return True

    def agree(self, one, name, other):
        """The derivative is what differences say, where they agree with each other."""
        have, (coarse, fine) = float(one.out[name][0]), map(float, one.out[other])
        size = max([abs(fine), *(_size(g) for g in one.out["grads"])])
        if self.root_of_0(one.text, have):
            return False
        if not np.isfinite([coarse, fine]).all() or abs(coarse - fine) > 1e-5 * size or size > 1e5:
            self.out.counts[f"passed over: a kink, or no number ({name})"] += 1
            return False
        self.out.counts[f"compared with differences: {name}"] += 1
        gap = abs(have - fine)
        # Differences by 1e-5 lose what is below the last digits of large numbers on the way.
        largest = max([0.0, *(float(part) for part in one.out["parts"] if np.isfinite(part))])
        if largest * 1e-11 > 1e-4 * size:
            self.out.counts[f"passed over: large numbers hide differences ({name})"] += 1
            return False
        if not gap <= 1e-4 * size:
            if self.undecided([one], (name, other), gap):
                return False
            what = f"{one.text}\n{name}: {have}, expected {fine}"
            self.out.finding(one.index, f"{name} is not what differences say", what)
        return True

    def compare(self, ours, theirs, exact):
        """float32 beside MLX; where they differ, float64 decides, if it is known."""
        self.out.counts["compared with MLX"] += 1
        for k, (have, want) in enumerate(zip(ours.out["grads"], theirs.out["grads"])):
            scale = _size(want)
            if _close(have, want, 2e-3, scale):
                continue
            if exact is not None and _close(have, exact[k], 2e-3, scale):
                self.out.counts["MLX is not what float64 says"] += 1
                continue
            if self.fine and exact is None:
                self.out.counts["passed over: not MLX's, but there is a kink"] += 1
                return
            if self.root_of_0(ours.text, have, want):
                return
            # A product goes through numbers that float32 does not hold on its way to 0.
            known = exact is None or np.isfinite(exact[k]).all()
            if "prod(" in ours.text and known and not np.isfinite([*have.flat, *want.flat]).all():
                self.out.counts["passed over: products leave float32 on the way"] += 1
                return
            if self.undecided([ours, theirs], ["grads"], _gap(have, want), k):
                return
            what = f"{ours.text}\n{have!r}, expected {want!r}"
            self.out.finding(ours.index, "gradient in float32: not MLX's", what)
            return


class Answer:
    """What a package made of a case, and what it makes of those beside it."""

    def __init__(self, checker, child, index, dtype, more):
        self.checker, self.child = checker, child
        self.index, self.dtype, self.more = index, dtype, more
        self.text = checker.program(index, dtype, more)
        self.answer = self.ask(self.text)
        self.kind = self.answer[0]
        self.out = self.arrays(self.answer)
        self.near = None

    def ask(self, text):
        slow = 20 if self.child.device == "cpu" else 120
        return self.child.ask({"operands": {}, "body": text}, 3 if self.child.package == "mlx" else slow)

    def arrays(self, answer):
        return {k: _arrays(v) for k, v in answer[1].items()} if answer[0] == "value" else {}

    def moves(self, name, at, far):
        """Whether a result moves so far when the inputs do by a few roundings."""
        if self.near is None:
            texts = (self.checker.program(self.index, self.dtype, self.more, k) for k in (1, 2, 3))
            self.near = [self.arrays(self.ask(text)) for text in texts]
        pairs = (p for out in self.near if name in out for p in enumerate(zip(out[name], self.out[name])))
        return any(not _gap(*pair) < far for k, pair in pairs if at in (None, k))


def _size(x):
    """The largest number in it, at least 1."""
    return float(np.max(np.abs(x[np.isfinite(x)]), initial=1.0))


def _close(have, want, relative, scale):
    same = have.shape == want.shape
    return same and np.allclose(have, want, relative, relative * scale, equal_nan=True)


def _gap(x, y):
    """How far two results are apart; infinitely where one of them is no number."""
    if x.shape != y.shape:
        return np.inf
    apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
    return float(np.max(np.nan_to_num(apart, nan=np.inf), initial=0.0))


def _roots(text):
    """Whether there are lengths and deviations in it, which may be those of equal elements."""
    roots = ("norm(", "std(", "var(", "corrcoef(", "cosine_similarity_loss(")
    return any(root in text for root in roots)


def _arrays(x):
    parts = x if isinstance(x, list) else [x]
    return [np.asarray(p[3] if isinstance(p, tuple) else p, np.float64) for p in parts]


def prepare(options, out):
    checker = Checker(options, out)
    return checker.case, checker.close


if __name__ == "__main__":
    report.exit_with(report.main("gradients", __doc__, prepare))
