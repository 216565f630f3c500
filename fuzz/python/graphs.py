"""Random graphs of operations: one result however they are evaluated, compiled, batched or laid
out.

A graph is a function of Python's with a line for each operation. A child runs it lazily, with an
`eval`
after each line, with inputs that may be overwritten, compiled, with inputs that lie otherwise in
memory, and under `vmap`. NumPy runs it with every result rounded to its dtype. Some graphs hold an
index outside its axis: then everything else still has to be readable.
"""

import math
import random
import re

import numpy as np

import compare
import report
import values
from call import Child

FLOATS = ["float32", "float32", "float16", "bfloat16"]
INTEGERS = ["int32", "uint8", "int8", "int64", "uint32", "int16", "uint16"]
KINDS = FLOATS + INTEGERS + ["bool_"]

SMOOTH = "sin cos tanh sigmoid arctan exp erf".split()
BASIC = "negative abs square".split()
STEPS = "floor ceil sign round".split()
PAIRS = "add subtract multiply maximum minimum".split()
COMPARISONS = "less less_equal greater equal not_equal logical_and logical_or".split()
BITS = "bitwise_and bitwise_or bitwise_xor left_shift right_shift floor_divide remainder".split()

# How far rough results may be apart, against the largest of them: that of the coarsest dtype on the
# way to them.
ROUGH = {"float32": 2e-4, "float16": 3e-2, "bfloat16": 2e-1}

# How far one rounding moves a number of size 1.
ROUNDING = {"float32": 6e-8, "float16": 5e-4, "bfloat16": 4e-3}

MODES = """
def waited(t):
    mx.eval(t)
    return t

def moved(x, k):
    if k == 0:
        x = mx.stack([x, x])[1]
    elif x.ndim and k == 1:
        x = mx.contiguous(x.transpose()).transpose()
    elif x.ndim and k == 2:
        x = mx.repeat(x, 2, -1)[..., ::2]
    elif x.ndim:
        x = mx.contiguous(x[::-1])[::-1]
    mx.eval(x)
    return x
"""


class Node:
    """A value of the graph: what is known about it before it is computed."""

    def __init__(self, name, shape, dtype, rough=0.0, fails=False):
        self.name, self.shape, self.dtype = name, tuple(shape), dtype
        self.rough, self.fails = rough, fails

    def floats(self):
        return self.dtype in FLOATS


class Graph:
    """A graph that grows by one operation at a time. `free` graphs name no sizes, so that they can
    be compiled without shapes; those that are not `sums` have the same bits in every order."""

    def __init__(self, rng, promote):
        self.rng, self.promote = rng, promote
        self.free, self.sums = rng.random() < 0.3, rng.random() < 0.5
        # Some graphs are large enough for several threads, and some have NaN and infinity in them.
        self.large = not self.free and rng.random() < 0.06
        self.special = not self.sums and rng.random() < 0.3
        self.inputs, self.nodes, self.lines, self.truths = [], [], [], []

    def chance(self, p):
        return self.rng.random() < p

    def choice(self, these):
        return self.rng.choice(these)

    def input(self):
        if self.free:
            shape = self.rng.choice([(4, 6), (1, 6), (4, 1), (6,)])
        elif self.large:
            shape = self.rng.choice([(257, 130), (33001,), (16, 33, 65), (130, 257), (257, 1)])
        else:
            shape = values.shape(self.rng, self.choice([0, 1, 2, 2, 3]), 400)
        self.inputs.append(Node("abcd"[len(self.inputs)], shape, self.choice(KINDS)))
        self.nodes.append(self.inputs[-1])

    def pick(self, ok=lambda n: True):
        """A node that fits, the latest with preference; None where there is none."""
        fit = [n for n in self.nodes if ok(n)]
        if not fit:
            return None
        return fit[-1] if self.chance(0.4) else self.choice(fit)

    def note(self, ours, numpy, shape, dtype, *uses, rough=False, fails=False):
        """Adds a node: its line for the packages, and the one for NumPy."""
        name = f"t{len(self.lines)}"
        rough = max([ROUGH.get(dtype, 0.0) if rough else 0.0, *(n.rough for n in uses)])
        rough = max(rough, ROUGH.get(dtype, 0.0)) if rough else 0.0
        fails = fails or any(n.fails for n in uses)
        self.lines.append((name, ours))
        self.truths.append((name, numpy, dtype))
        self.nodes.append(Node(name, shape, dtype, rough, fails))

    def grow(self):
        """One more operation; those that do not fit are passed over."""
        while True:
            before = len(self.lines)
            self.choice(OPERATIONS)(self)
            if len(self.lines) > before:
                return

    def common(self, a, b):
        name = str(self.promote(a.dtype, b.dtype)).rpartition(".")[2]
        return "bool_" if name in ("bool", "bool_") else name


def bounded(shape, large=False):
    return np.prod(shape, dtype=float) <= (90_000 if large else 4000)


def broadcast(a, b):
    """The shape of both together; None where they do not fit."""
    try:
        return np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return None


def unary(g):
    x = g.pick()
    if x.floats():
        name = g.choice(SMOOTH + BASIC + ([] if x.rough else STEPS))
        inner = f"clip({x.name}, -4, 4)" if name in ("exp", "square") or (
            x.rough and name in ("sin", "cos")) else x.name
        ours = f"mx.{name}(mx.{inner})" if inner != x.name else f"mx.{name}({x.name})"
        theirs = f"N.{name}(N.{inner})" if inner != x.name else f"N.{name}({x.name})"
        return g.note(ours, theirs, x.shape, x.dtype, x, rough=name in SMOOTH)
    if x.dtype == "bool_":
        return g.note(f"mx.logical_not({x.name})", f"N.logical_not({x.name})", x.shape, "bool_", x)
    name = g.choice(["abs", "square", "negative"])
    return g.note(f"mx.{name}({x.name})", f"N.{name}({x.name})", x.shape, x.dtype, x)


def pair(g):
    x = g.pick()
    y = g.pick(lambda n: broadcast(x, n) is not None and bounded(broadcast(x, n), g.large))
    if not y:
        return
    shape = broadcast(x, y)
    dtype = g.common(x, y)
    if dtype == "bool_":
        name = g.choice(["logical_and", "logical_or", "equal", "not_equal"])
        return g.note(f"mx.{name}({x.name}, {y.name})", f"N.{name}({x.name}, {y.name})", shape,
            dtype, x, y)
    if g.chance(0.2) and not (x.rough or y.rough):
        name = g.choice(COMPARISONS)
        ours, theirs = (f"{m}.{name}({x.name}, {y.name})" for m in ("mx", "N"))
        if not name.startswith("logical"):
            theirs = f"N.{name}(*N.both({x.name}, {y.name}, '{dtype}'))"
        return g.note(ours, theirs, shape, "bool_", x, y)
    if dtype in INTEGERS and g.chance(0.4):
        name = g.choice(BITS)
        theirs = f"N.{name}(*N.both({x.name}, {y.name}, '{dtype}'))"
        return g.note(f"mx.{name}({x.name}, {y.name})", theirs, shape, dtype, x, y)
    name = g.choice(PAIRS)
    ours = f"mx.{name}({x.name}, {y.name})"
    theirs = f"N.{name}(*N.both({x.name}, {y.name}, '{dtype}'))"
    if name == "multiply" and x.floats():
        ours = f"mx.multiply(mx.clip({x.name}, -4, 4), {y.name})"
        theirs = f"N.multiply(*N.both(N.clip({x.name}, -4, 4), {y.name}, '{dtype}'))"
    elif name == "multiply" and y.rough:
        # An integer without bounds makes something else of each rounding.
        return
    return g.note(ours, theirs, shape, dtype, x, y)


def scalar(g):
    x = g.pick(lambda n: n.dtype != "bool_")
    if x:
        number = g.choice(["2", "0.5", "-1.5"]) if x.floats() else g.choice(["2", "3", "1"])
        name = g.choice(["+", "-", "*"])
        g.note(f"{x.name} {name} {number}", f"N.scalar({x.name}, '{name}', {number})", x.shape,
            x.dtype, x)


def choose(g):
    mask = g.pick(lambda n: n.dtype == "bool_")
    x = mask and g.pick(lambda n: broadcast(mask, n) is not None and bounded(broadcast(mask, n),
        g.large))
    if x:
        dtype = g.common(x, x)
        text = f"where({mask.name}, {x.name}, {{}})"
        zero = "0" if dtype != "bool_" else "False"
        g.note("mx." + text.format(zero), "N." + text.format(f"N.like({x.name}, 0)"),
            broadcast(mask, x), dtype, mask, x)


def cast(g):
    x = g.pick()
    kinds = [k for k in KINDS if not (x.floats() and k not in FLOATS)]
    dtype = g.choice(kinds)
    g.note(f"{x.name}.astype(mx.{dtype})", f"{x.name}", x.shape, dtype, x)


def same_shape(g):
    """Movement that names no sizes."""
    x = g.pick(lambda n: len(n.shape) > 0)
    if not x:
        return
    axis = g.rng.randrange(len(x.shape))
    way = g.choice(["flip", "transpose", "roll", "sort", "cummax"])
    if way == "transpose":
        axes = tuple(g.rng.sample(range(len(x.shape)), len(x.shape)))
        text = f"transpose({x.name}, {axes})"
        return g.note("mx." + text, "N." + text, tuple(x.shape[k] for k in axes), x.dtype, x)
    if way == "flip":
        text = f"flip({x.name}, {axis})"
    elif way == "roll":
        text = f"roll({x.name}, {g.rng.randint(-3, 3)}, {axis})"
    elif x.dtype == "bool_" and way == "sort":
        return
    else:
        text = f"{way}({x.name}, axis={axis})"
    g.note("mx." + text, "N." + text, x.shape, x.dtype, x)


def movement(g):
    x = g.pick()
    if g.free:
        return
    way = g.choice(["reshape", "broadcast", "slice", "slice", "pad", "index", "expand", "repeat"])
    shape, rank = x.shape, len(x.shape)
    if way == "reshape":
        new = g.choice([(-1,), (1, -1), shape[::-1], (*shape, 1)])
        new = tuple(int(np.prod(shape)) if n == -1 else n for n in new)
        return g.note(f"{x.name}.reshape({new})", f"{x.name}.reshape({new})", new, x.dtype, x)
    if way == "broadcast":
        new = (g.choice([1, 2, 3]), *shape)
        if bounded(new, g.large):
            g.note(f"mx.broadcast_to({x.name}, {new})", f"N.broadcast_to({x.name}, {new})", new,
                x.dtype, x)
        return
    if way == "expand" and rank < 5:
        axis = g.rng.randint(0, rank)
        text = f"expand_dims({x.name}, {axis})"
        return g.note("mx." + text, "N." + text, (*shape[:axis], 1, *shape[axis:]), x.dtype, x)
    if not rank:
        return
    if way == "slice":
        ends = ["", "1", "-3"], ["", "", "-1", "4"], ["", "2", "-1", "-2"]
        parts = [":".join(g.choice(these) for these in ends) for _ in shape]
        text = f"{x.name}[{', '.join(parts)}]"
        new = eval(f"np.empty({shape})[{', '.join(parts)}].shape")
        return g.note(text, text, new, x.dtype, x)
    if way == "index" and shape[0]:
        text = f"{x.name}[{g.rng.randint(-shape[0], shape[0] - 1)}]"
        return g.note(text, text, shape[1:], x.dtype, x)
    axis = g.rng.randrange(rank)
    new = list(shape)
    if way == "pad":
        widths = [(g.rng.randint(0, 2), g.rng.randint(0, 2)) for _ in shape]
        new = [n + sum(w) for n, w in zip(shape, widths)]
        text = f"pad({x.name}, {widths})"
    else:
        new[axis] *= 2
        text = f"repeat({x.name}, 2, {axis})"
    if bounded(new, g.large):
        g.note("mx." + text, "N." + text, new, x.dtype, x)


def joined(g):
    x = g.pick(lambda n: len(n.shape) > 0)
    if not x:
        return
    axis = g.rng.randrange(len(x.shape))
    others = [n for n in g.nodes if n.dtype == x.dtype and len(n.shape) == len(x.shape)]
    others = [n for n in others if all(k == axis or s == t for k,
        (s, t) in enumerate(zip(n.shape, x.shape)))]
    parts = [x, *(g.choice(others) for _ in range(g.rng.randint(1, 2)))]
    shape = list(x.shape)
    shape[axis] = sum(n.shape[axis] for n in parts)
    if bounded(shape, g.large) and not g.free:
        text = f"concatenate([{', '.join(n.name for n in parts)}], {axis})"
        g.note("mx." + text, "N." + text, shape, x.dtype, *parts)


def update(g):
    """Writes a part of one node into another."""
    x = g.pick(lambda n: len(n.shape) > 0 and n.shape[0] > 1)
    if x and not g.free:
        row = g.rng.randint(-x.shape[0], x.shape[0] - 1)
        other = g.rng.randint(-x.shape[0], x.shape[0] - 1)
        ours = f"{x.name}.at[{row}].add({x.name}[{other}])"
        if x.dtype != "bool_":
            g.note(ours, f"N.added({x.name}, {row}, {other})", x.shape, x.dtype, x)


def gather(g):
    x = g.pick(lambda n: len(n.shape) > 0 and n.shape[0] > 0)
    if x and not g.free:
        rows = [g.rng.randint(-x.shape[0], x.shape[0] - 1) for _ in range(g.rng.randint(1, 4))]
        if bounded((len(rows), *x.shape[1:]), g.large):
            text = f"take({x.name}, mx.array({rows}), axis=0)"
            g.note("mx." + text, f"N.take({x.name}, np.array({rows}), axis=0)",
                (len(rows), *x.shape[1:]), x.dtype, x)


def reduction(g):
    x = g.pick(lambda n: len(n.shape) > 0 and n.dtype != "bool_")
    if not x:
        return
    axis = g.rng.randrange(len(x.shape))
    keep = g.free or g.chance(0.5)
    shape = list(x.shape)
    shape[axis] = 1
    shape = shape if keep else shape[:axis] + shape[axis + 1 :]
    names = ["max", "min"] if x.shape[axis] else []
    if x.dtype in INTEGERS:
        names += ["sum", "any"]
    elif g.sums:
        names += ["sum", "mean", "logsumexp"] if x.shape[axis] else ["sum"]
    if not x.rough and x.shape[axis]:
        names.append("argmax")
    if not names:
        return
    name = g.choice(names)
    dtype = {"any": "bool_", "argmax": "uint32"}.get(name, x.dtype)
    if name == "sum" and dtype in INTEGERS:
        dtype = {"uint8": "uint32", "int8": "int32", "uint16": "uint32",
            "int16": "int32"}.get(dtype, dtype)
    text = f"{name}({x.name}, axis={axis}, keepdims={keep})"
    g.note("mx." + text, "N." + text, shape, dtype, x,
        rough=x.floats() and name in ("sum", "mean", "logsumexp"))


def rows(g):
    """Folds of rows that are used again in them, as in a softmax or a norm."""
    x = g.pick(lambda n: n.floats() and len(n.shape) > 0 and n.shape[-1] > 0)
    if not x or not g.sums:
        return
    text = g.choice(["softmax({0}, axis=-1)", "cumsum(clip({0}, -4, 4), axis=-1)",
        "subtract(clip({0}, -4, 4), mean(clip({0}, -4, 4), axis=-1, keepdims=True))"])
    text = text.format(x.name)
    # Numbers are small, so that little cancels.
    ours, theirs = (text.replace("clip(", f"{m}.clip(").replace("cumsum(", f"{m}.cumsum(").replace(
        "mean(", f"{m}.mean(") for m in ("mx", "N"))
    ours, theirs = (t if t.startswith(m + ".") else f"{m}.{t}" for t,
        m in ((ours, "mx"), (theirs, "N")))
    g.note(ours, theirs, x.shape, x.dtype, x, rough=True)


def product(g):
    x = g.pick(lambda n: n.floats() and len(n.shape) == 2 and 0 < n.shape[1] < 40)
    if x and g.sums:
        text = f"matmul({{0}}.clip({x.name}, -4, 4), {{0}}.transpose({x.name}))"
        if bounded((x.shape[0], x.shape[0]), g.large) and not g.free:
            g.note("mx." + text.format("mx"), "N." + text.format("N"), (x.shape[0],) * 2, x.dtype,
                x, rough=True)


OPERATIONS = [unary, unary, pair, pair, pair, pair, scalar, choose, cast, same_shape, movement,
    movement,
              joined, update, gather, reduction, reduction, rows, product]  # fmt: skip


class Rounded:
    """NumPy on the stored elements, floats in float64 inside of an operation."""

    def __getattr__(self, name):
        import truths

        f = getattr(truths.Truth(), name)

        def call(*args, **kwargs):
            return f(*(wide(x) for x in args), **kwargs)

        return call

    def both(self, x, y, dtype):
        return wide(values.cast(x, dtype)), wide(values.cast(y, dtype))

    def scalar(self, x, sign, number):
        y = np.asarray(number, wide(x).dtype)
        return {"+": np.add, "-": np.subtract, "*": np.multiply}[sign](wide(x), y)

    def like(self, x, number):
        return np.asarray(number, x.dtype)

    def added(self, x, row, other):
        out = np.array(wide(x))
        out[row] += wide(x)[other]
        return out


def wide(x):
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        return x.astype(np.float64)
    return [wide(y) for y in x] if isinstance(x, list) else x


def build(seed, index, promote):
    rng = random.Random(f"{seed}:{index}")
    g = Graph(rng, promote)
    for _ in range(rng.randint(1, 4)):
        g.input()
    size = rng.randint(5, 20 if g.large else 60)
    bad = rng.randrange(size) if g.chance(0.2) and not g.free else None
    for k in range(size):
        if k == bad:
            x = g.pick(lambda n: len(n.shape) > 0 and n.shape[0] > 0)
            if x:
                out = g.choice([x.shape[0], -x.shape[0] - 1, 2**31 - 1])
                # One that is there is refused where it is recorded.
                at = f"mx.array([{out}]) + mx.zeros(1, dtype=mx.int32)"
                g.note(f"mx.take({x.name}, {at}, axis=0)", f"{x.name}[:1]",
                    (1, *x.shape[1:]), x.dtype, x, fails=True)
        g.grow()
    made = g.nodes[len(g.inputs) :]
    g.outputs = sorted({made[-1], *rng.sample(made, min(len(made), rng.randint(0, 3)))},
        key=g.nodes.index)
    g.fails = any(n.fails for n in made)
    return g


def function(g, outputs):
    names = ", ".join(n.name for n in g.inputs)
    lines = [f"def f({names}, see=lambda t: t):"]
    lines += [f"    {name} = see({text})" for name, text in g.lines]
    return "\n".join([*lines, f"    return [{', '.join(outputs)}]"])


def program(g, rng):
    """The text that a child runs: the graph, and each way of evaluating it."""
    def inputs(salt, extra=(), shapes=None):
        out = []
        for k, n in enumerate(g.inputs):
            shape = (*extra, *(shapes[k] if shapes else n.shape))
            out.append(f"array({shape}, {n.dtype!r}, {salt + k}, {g.flavours[k]!r})")
        return out

    salt = rng.randrange(10**6)
    kinds = ["special", "special", "wide"] if g.special else ["plain"] * 6 + ["unit", "positive"]
    g.flavours = [rng.choice(kinds) for _ in g.inputs]
    g.salt = salt
    names = ", ".join(n.name for n in g.inputs) + ","
    lines = [MODES, function(g, [n.name for n in g.outputs])]
    lines.append(f"{names} = {', '.join(inputs(salt))},")
    lines.append(f"other = [{', '.join(inputs(salt + 50))}]")
    if g.fails:
        every = [n.name for n in g.nodes if n not in g.inputs]
        lines += [function(g, every), FAILING.format(names=names)]
        return "\n".join(lines)
    fresh = ", ".join(inputs(salt))
    batch = ", ".join(inputs(salt + 100, (3,)))
    lines.append(WAYS.format(names=names, fresh=fresh, batch=batch, turn=rng.randrange(4)))
    if g.free:
        def sized(salt, sizes):
            shapes = [tuple(sizes.get(n, n) for n in node.shape) for node in g.inputs]
            return ", ".join(inputs(salt, (), shapes))

        other, between = sized(salt + 200, {4: 7, 6: 5}), sized(salt + 250, {4: 9, 6: 8})
        further, rounds = sized(salt + 300, {4: 10, 6: 11}), len(g.nodes)
        lines.append(FREE.format(names=names, other=other, between=between, further=further,
            rounds=rounds))
    return "\n".join(lines)


WAYS = """
out = {{}}
out["lazy"] = f({names})
mx.eval(out["lazy"])
out["one by one"] = f({names} see=waited)
out["donated"] = f({fresh})
out["last only"] = f({names})[-1:]
out["laid out otherwise"] = f(*[moved(x, {turn} ^ k) for k, x in enumerate([{names}])])
compiled = mx.compile(lambda *x: f(*x))
out["compiled"] = compiled({names})
out["compiled, other values"] = compiled(*other)
out["other values"] = f(*other)
batch = [{batch}]
out["vmap"] = mx.vmap(lambda *x: f(*x))(*batch)
rows = [f(*[x[k] for x in batch]) for k in range(3)]
out["loop"] = [mx.stack(parts) for parts in zip(*rows)]
"""

FREE = """
shapeless = mx.compile(lambda *x: f(*x), shapeless=True)
mx.eval(shapeless({names}))
sized = [{other}]
out["shapeless, other sizes"] = shapeless(*sized)
out["other sizes"] = f(*sized)

# Beside work of one size: then plans for further sizes are made from one that is there.
def beside(*x):
    rest = fixed
    for _ in range({rounds}):
        rest = mx.sin(rest) + fixed
    return f(*x), rest

fixed = mx.ones((13, 17))
mx.eval(fixed)
further = [{further}]
mx.eval(beside({names}))
mx.eval(beside(*sized))
mx.eval(beside({between}))
out["further sizes"] = beside(*further)[0]
mx.eval(out["further sizes"])
mx.clear_cache()
out["further sizes, planned anew"] = beside(*further)[0]
"""

FAILING = """
made = f({names})
failed = None
try:
    mx.eval(made)
except IndexError as error:
    failed = str(error)
out = {{"failed": failed, "made": [], "inputs": [{names}]}}
for t in made:
    try:
        mx.eval(t)
        out["made"].append(t)
    except IndexError:
        out["made"].append(None)
"""

SAME = [("lazy", "one by one"), ("lazy", "donated"), ("lazy", "laid out otherwise"),
    ("lazy", "compiled"),
        ("other values", "compiled, other values"), ("vmap", "loop"),
        ("other sizes", "shapeless, other sizes"),
        ("further sizes, planned anew", "further sizes")]  # fmt: skip


class Checker:
    def __init__(self, options, out):
        import mlx.core

        self.out, self.seed, self.device = out, options.seed, options.device
        self.child = Child("cupola", options.device)
        self.promote = lambda a, b: mlx.core.result_type(getattr(mlx.core, a), getattr(mlx.core, b))

    def close(self):
        self.child.stop()

    def case(self, index):
        g = build(self.seed, index, self.promote)
        text = program(g, random.Random(f"{self.seed}:{index}:values"))
        answer = self.child.ask({"operands": {}, "body": text}, 60 if self.device == "cpu" else 300)
        self.out.counts[f"graphs that gave: {answer[0]}"] += 1
        if answer[0] in ("crash", "hang"):
            return self.out.finding(index, answer[0], f"{text}\n{answer[1]}")
        if answer[0] == "error":
            first = answer[2].split("\n")[0]
            return self.out.finding(index, f"{answer[1]}: {first[:60]}",
                f"{text}\n{answer[1]}: {answer[2]}")
        for kind, what in self.judge(g, answer[1]):
            self.out.finding(index, kind, f"{text}\n{kind}: {what}")

    def judge(self, g, out):
        self.size = 1.0
        if g.fails:
            yield from self.judge_failing(g, out)
            return
        for one, other in SAME:
            if one in out:
                self.out.counts[f"compared: {one} and {other}"] += 1
                why = self.differ(g, out[one], out[other])
                if why:
                    yield f"{other} is not {one}", why
        want = self.numpy(g)
        self.out.counts["compared with NumPy"] += 1
        why = self.off(g.outputs, out["lazy"], [want[n.name] for n in g.outputs])
        if why:
            yield "not NumPy's", why

    def judge_failing(self, g, out):
        """Every array is there with its value, or has failed since it needs the one that fails."""
        self.out.counts["graphs with an index outside its axis"] += 1
        made = [n for n in g.nodes if n not in g.inputs]
        if out["failed"] is None:
            yield "an index outside its axis goes unnoticed", ""
        want = self.numpy(g)
        for n, have in zip(made, out["made"]):
            if n.fails:
                continue
            if have is None:
                yield "an array is lost with a failed evaluation", n.name
            elif why := self.off([n], [have], [want[n.name]]):
                yield "another value after a failed evaluation", f"{n.name}: {why}"
        for n, have in zip(g.inputs, out["inputs"]):
            if why := compare.elements_differ(have[3], want[n.name], n.dtype, 0.0, tiny=0.0):
                yield "an input changed", f"{n.name}: {why}"

    def differ(self, g, ones, others):
        """Bits, but for graphs with sums of floats."""
        for n, one, other in zip(g.outputs, ones, others):
            if one[1:3] != other[1:3]:
                return f"{n.name}: {one[1:3]} and {other[1:3]}"
            if n.rough and g.sums:
                why = self.close_to(other[3], one[3], n)
            else:
                why = compare.elements_differ(other[3], one[3], n.dtype, 0.0, signs=True, tiny=0.0)
            if why:
                return f"{n.name}: {why}"
        return None

    def close_to(self, have, want, n):
        scale = max(self.size, _size(want))
        # Infinity times what is 0 but for roundings is infinite or NaN.
        if have.shape == want.shape and have.dtype.kind == "f":
            want = np.where(np.isfinite(have) | np.isfinite(want), want, have)
        return compare.elements_differ(have, want, n.dtype, n.rough, scale, tiny=1e-6)

    def off(self, nodes, haves, wants):
        for n, have, want in zip(nodes, haves, wants):
            if have[1] != n.dtype or have[2] != n.shape:
                return f"{n.name}: {have[1:3]}, expected {(n.dtype, n.shape)}"
            if n.rough:
                why = self.close_to(have[3], want, n)
            else:
                why = compare.elements_differ(have[3], want, n.dtype, 0.0, tiny=0.0)
            if why:
                return f"{n.name}: {why}"
        return None

    def numpy(self, g):
        names = {"np": np, "N": Rounded(), "mx": np}
        for k, n in enumerate(g.inputs):
            names[n.name] = np.asarray(values.values(n.shape, n.dtype, g.salt + k, g.flavours[k]))
        self.size, self.wrong = 1.0, {}
        self.most = 4.0 if any("N.multiply" in text for _, text, _ in g.truths) else 1.0
        with np.errstate(all="ignore"):
            for name, text, dtype in g.truths:
                x = eval(text, names)
                if dtype in INTEGERS + ["bool_"] and x.dtype.kind in "iub":
                    x = x.astype(values.stored(dtype)) if dtype != "bool_" else x != 0
                names[name] = np.asarray(values.cast(x, dtype))
                if g.sums and dtype in FLOATS:
                    self.wrong[name] = self.added(text, dtype, names)
                    by_sums = self.most * self.wrong[name] / ROUGH.get(dtype, np.inf)
                    self.size = max(self.size, _size(names[name]), by_sums, *self.factors(text, names))
        return names

    def added(self, text, dtype, names):
        """How far a value may be off. Where elements were all rounded the same way, as differences from a
        mean are, as many roundings add up as a sum has elements, and sums of sums multiply them; so do
        products with large integers, and an exponential as much as it is large. A product with what is
        clipped, if there is one, has four times as many."""
        before = max((self.wrong.get(name, 0.0) for name in re.findall(r"\w+", text)), default=0.0)
        if text.startswith("N.exp("):
            before *= math.exp(4.0)
        before = max(before, ROUNDING.get(dtype, 0.0) * self.size)
        product = re.match(r"N\.matmul\(N\.clip\((\w+), -4, 4\), N\.transpose\(\1\)\)", text)
        if product and (off := self.wrong.get(product[1], 0.0)):
            # What is clipped may be anything between where it was nothing but roundings.
            x = np.abs(names[product[1]].astype(np.float64))
            turned = np.count_nonzero(x < 4.0 + off, axis=-1).max(initial=0)
            before = max(before, turned * min(8.0, 2.0 * off) * _size(names[product[1]]))
        found = re.match(r"N\.(?:sum\((\w+), axis=(\d+)|cumsum\(N\.clip\((\w+),)", text)
        if not found:
            return before * max(self.factors(text, names), default=1.0)
        summed, axis, running = found.groups()
        count = names[running].shape[-1] if running else names[summed].shape[int(axis)]
        return before * count

    def factors(self, text, names):
        """The sizes of integers that floats are multiplied by, and so what is wrong with these."""
        found = re.match(r"N\.multiply\(\*N\.both\((.*), '\w+'\)\)", text)
        known = [names[name] for name in re.findall(r"\w+", found[1]) if name in names] if found else []
        integers = [x for x in known if isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.size]
        return [float(np.max(np.abs(x.astype(np.float64)))) for x in integers]


def _size(x):
    """The largest number in it."""
    return float(np.max(np.abs(x[np.isfinite(x)]), initial=1.0)) if x.dtype.kind == "f" else 1.0


def prepare(options, out):
    checker = Checker(options, out)
    return checker.case, checker.close


if __name__ == "__main__":
    report.exit_with(report.main("graphs", __doc__, prepare))
