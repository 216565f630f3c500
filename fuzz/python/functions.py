"""Every function of cupola.core, and of cupola.nn what is one, called at random: the same call by
MLX
and by NumPy in float64, with arguments that are right and with such as are wrong."""

import random
import resource
import warnings

import numpy as np

import compare
import differences
import report
import signatures
import truths
import values
from call import LIMIT, Child
from signatures import FAMILIES, Draw

WRONG = 0.15
# MLX hangs on some calls; it is not waited for as long as Cupola.
PATIENCE = 1.5
MOST_MEMORY = 6 << 30

# What goes through numbers that float32 does not hold depends on the order.
OVERFLOW = {"prod", "cumsum", "cumprod", "var", "std", "kron", "vecdot", "norm", "trace", "mean", "cross",
    "convolve", "addmm", "diff", "inner", "layer_norm", "group_norm", "fast.layer_norm",
    "fast.group_norm",
    "fast.scaled_dot_product_attention"}

# What is a difference of numbers of about this size.
CANCELS = dict.fromkeys("hanning hamming blackman bartlett linspace diff nn.gelu".split(), 1.0)
CANCELS["cross"] = 8.0
CANCELS["logaddexp"] = 1.0
# Of a row of equal numbers the deviation is what rounding left, over the root of epsilon.
CANCELS["fast.layer_norm"] = CANCELS["fast.group_norm"] = 8.0

# What is rounded as a subnormal number before it is multiplied by one of about 100, or added up to
# some thousand times.
SUBNORMAL = {"nn.silu": 1.5e-43, **dict.fromkeys(truths.PRODUCTS, 1e-41)}

OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//",
        "remainder": "%",
    "power": "**", "matmul": "@", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "left_shift": "<<", "right_shift": ">>", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
METHODS = set()
OTHERS = ["getitem", "setitem", "at", "method", "constant", "enquiry"]


def public(core):
    """The public names of the package, those of submodules with their path."""
    names = []
    for name in dir(core):
        part = getattr(core, name)
        if name.startswith("_"):
            continue
        names.append(name)
        if name in ("fast", "fft", "linalg", "random", "cuda", "metal", "distributed"):
            names += [f"{name}.{inner}" for inner in dir(part) if not inner.startswith("_")]
    return names


def missing(core, name):
    """Whether a name is there only to say that it is not implemented."""
    part = core
    for step in name.split("."):
        part = getattr(part, step)
    if not callable(part) or getattr(part, "__text_signature__", None):
        return False
    try:
        part()
    except NotImplementedError:
        return True
    except Exception:
        return False
    return False


def covered(core):
    """The names that cases call; a name with neither a generator nor a reason is an error."""
    known = signatures.CONSTANTS + [text.split("(")[0] for text in signatures.ENQUIRIES]
    called, without = [], []
    for name in public(core):
        if name in FAMILIES:
            called.append(name)
        elif name in known or name in values.ALL or signatures.why_not(name):
            continue
        elif missing(core, name):
            continue
        else:
            without.append(name)
    if without:
        raise report.Usage(f"neither a generator nor a reason: {', '.join(without)}")
    return called + OTHERS + [name for name in FAMILIES if name.startswith("nn.")]


def spoil(g, args, kwargs):
    """Makes an argument wrong: another value, none, one too many, a name that does not exist."""
    args, kwargs = list(args), dict(kwargs)
    junk = g.choice(signatures.JUNK)
    if g.chance(0.3):
        junk = f"mx.ones({g.shape(largest=100)}, dtype=mx.{g.choice(values.ALL)})"
    way = g.choice(["value"] * 6 + ["named"] * 2 + ["drop", "more", "unknown"])
    if way == "value" and args:
        args[g.rng.randrange(len(args))] = junk
    elif way == "named" and kwargs:
        kwargs[g.choice(sorted(kwargs))] = junk
    elif way == "drop" and args:
        args.pop(g.rng.randrange(len(args)))
    elif way == "unknown":
        kwargs["nothing"] = junk
    else:
        args.append(junk)
    return args, kwargs


def draw(seed, index, names):
    """Case number `index` of a seed: its operands, and the call as a text."""
    rng = random.Random(f"{seed}:{index}")
    name = rng.choice(names)
    g = Draw(rng)
    case = {"name": name, "wrong": False, "truth": None}
    if name == "constant":
        case["body"] = f"out = mx.{g.choice(signatures.CONSTANTS)}"
    elif name == "enquiry":
        case["body"] = f"out = mx.{g.choice(signatures.ENQUIRIES)} is not None"
    else:
        _call(g, case, name)
    case.update(operands=g.operands, kinds=g.kinds, shapes=g.shapes, parts=g.parts)
    return case


def _call(g, case, name):
    args, kwargs, *wrap = FAMILIES[name](g, name)
    if name in ("getitem", "setitem", "at"):
        return _brackets(g, case, name, *args)
    if args is None:
        inner = f"saved({', '.join(kwargs)})" if wrap == ["saved"] else wrap[0]
        case["body"] = f"out = {inner}"
        return
    if g.chance(WRONG):
        case["wrong"] = True
        args, kwargs = spoil(g, args, kwargs)
    words = [*args, *(f"{k}={v}" for k, v in kwargs.items())]
    wrap = wrap[0] if wrap else "{}"
    plain = f"{name}({', '.join(words)})"
    own = plain if name.startswith("nn.") else f"mx.{plain}"
    if name in OPERATORS and len(args) == 2 and g.operands.keys() & set(args) and g.chance(0.3):
        own = f"(({args[0]}) {OPERATORS[name]} ({args[1]}))"
    elif name in METHODS and args and args[0] in g.operands and g.chance(0.3):
        own = f"{args[0]}.{name}({', '.join(words[1:])})"
    case["body"] = "out = " + wrap.replace("{}", own)
    case["truth"] = "out = " + wrap.replace("{}", "mx." + plain.removeprefix("nn."))


def _brackets(g, case, name, a, where):
    """Reading, writing and adding at an index."""
    if g.chance(WRONG):
        case["wrong"] = True
        junk = g.choice(signatures.JUNK)
        where = f"{where}, {junk}" if g.chance(0.5) else junk
    if name == "getitem":
        case["body"] = case["truth"] = f"out = {a}[{where}]"
        return
    value = g.choice([g.number(), f"({a}[{where}] * 2)", g.array((), [g.kinds[a]])])
    if name == "setitem":
        case["body"] = case["truth"] = f"out = mx.array({a})\nout[{where}] = {value}"
        return
    how = g.choice("add subtract multiply divide maximum minimum".split())
    case["body"] = f"out = {a}.at[{where}].{how}({value})"
    if g.kinds[a] != "bool_" and how not in ("divide",):
        case["truth"] = f"out = np.array({a})\nnp.{how}.at(out, np.s_[{where}], {value})"


class Checker:
    """Asks both packages and NumPy, and judges."""

    def __init__(self, options, out):
        self.out, self.seed = out, options.seed
        self.device = options.device
        # A software GPU compiles its kernels for longer than it runs them.
        self.limit = LIMIT if self.device == "cpu" else 6 * LIMIT
        self.ours, self.theirs = Child("cupola", options.device), Child("mlx")
        self.numpy = Child("numpy")
        import cupola.core as core
        import mlx.core

        self.promote = mlx.core.result_type
        self.mlx = mlx.core
        METHODS.update(name for name in dir(core.array) if not name.startswith("_"))
        self.names = covered(core)

    def close(self):
        self.ours.stop()
        self.theirs.stop()
        self.numpy.stop()

    def case(self, index):
        case = draw(self.seed, index, self.names)
        message = {"operands": case["operands"], "body": case["body"]}
        ours, theirs = self.ours.ask(message, self.limit), self.theirs.ask(message, PATIENCE)
        self.out.counts[f"calls that gave: {ours[0]}"] += 1
        self.out.counts[f"calls of MLX that gave: {theirs[0]}"] += 1
        for kind, what in self.judge(case, ours, theirs):
            self.found(index, case, kind, what, ours, theirs)

    def found(self, index, case, kind, what, ours, theirs):
        reason = differences.reason(case, kind, what, ours, theirs)
        if reason:
            self.out.counts[f"known: {reason}"[:58]] += 1
            return
        text = f"{program(case)}\n{what}\nMLX: {short(theirs)}\nCupola: {short(ours)}"
        name = case["name"]
        group = f"{name}: {kind}"
        if kind == "another type of exception":
            group = f"{ours[1]} instead of {theirs[1]}"
        self.out.finding(index, group, text)

    def judge(self, case, ours, theirs):
        """Pairs of a kind and a text for everything that is not as it has to be."""
        if ours[0] in ("crash", "hang"):
            yield ours[0], ours[1]
            return
        yield from self.operands(case, ours[-1])
        truth = self.truth(case)
        if ours[0] == "error":
            yield from self.judge_error(case, ours, theirs, truth)
            return
        if theirs[0] == "error":
            self.out.counts["values where MLX raises"] += 1
            if truth[0] == "error" and not _by_bindings(theirs) and not _of_bools(case, truth):
                yield "accepts what MLX and NumPy refuse", f"{theirs[1]}: {theirs[2]}; {truth[1]}"
        if theirs[0] == "value":
            yield from self.judge_form(case, ours[1], theirs[1])
        yield from self.judge_values(case, ours[1], theirs, truth)

    def judge_error(self, case, ours, theirs, truth):
        _, kind, text, usual, _ = ours
        if kind == "NotImplementedError":
            self.out.counts["not implemented"] += 1
        elif not usual:
            yield "panic", f"{kind}: {text}"
        elif not text.strip():
            yield "no message", kind
        elif theirs[0] == "value":
            # MLX computes something where there is nothing to compute: an error is as good.
            if truth[0] == "error" or case["wrong"] and truth[0] == "none":
                self.out.counts["errors where only MLX gives a value"] += 1
            else:
                yield "refuses what MLX takes", f"{kind}: {text}"
        elif theirs[0] == "error" and theirs[1] != kind:
            if not _by_bindings(theirs) or kind in ("RuntimeError", "OverflowError"):
                what = f"{kind}: {text}\nexpected {theirs[1]}: {theirs[2][:200]}"
                yield "another type of exception", what

    def operands(self, case, found):
        """The operands have to hold what they held."""
        for name, have in found.items():
            if isinstance(have, str):
                yield "an operand cannot be read", f"{name}: {have}"
                continue
            want = self.given(case)[name]
            if have.shape != want.shape or not np.array_equal(have, want,
                equal_nan=have.dtype.kind in "fc"):
                yield "an operand changed", f"{name}: {have!r}, was {want!r}"

    def given(self, case):
        """The operands in NumPy, with the elements of their dtypes."""
        if "given" not in case:
            def array(shape, dtype, seed, flavour="plain", size=None):
                x = values.values(shape, dtype, seed, flavour)
                return x if size is None else values.wrapped(x, size).astype(x.dtype)

            names = {"mx": np, "array": array}
            case["given"] = {k: np.asarray(eval(text, names)) for k,
                text in case["operands"].items()}
        return case["given"]

    def truth(self, case, sizes=False, flushed=False):
        """What NumPy in float64 makes of the call: ("value", …), ("error", why) or ("none",)."""
        name = truths.ALIASES.get(case["name"], case["name"])
        for module in ("nn.", "linalg.", "fast."):
            name = name.removeprefix(module)
        overflows = name in OVERFLOW and self.overflows(case)
        if case["truth"] is None or overflows or self.of_integers(case, name) or not (name in OTHERS
            or name in truths.SAME or name in truths.HERE):
            return ("none",)
        operands = self.wide(case, name, flushed)
        if sizes:
            operands = {k: np.abs(x) if x.dtype.kind in "fc" else x for k, x in operands.items()}
        text = case["truth"].replace("linalg.", "").replace("fast.", "")
        if not case["wrong"]:
            return truths.run(text, operands, sizes)
        # NumPy does not survive every wrong argument: np.tile(np.zeros(4), 2**62).
        answer = self.numpy.ask({"text": text, "operands": operands, "sizes": sizes})
        if answer[0] in ("crash", "hang"):
            self.out.counts[f"calls of NumPy that gave: {answer[0]}"] += 1
            return ("none",)
        return answer

    def of_integers(self, case, name):
        """Whether integers are multiplied and added up, in integers or in float32 as their dtypes say."""
        return name in ("addmm", "matmul", "inner", "tensordot", "convolve") and all(
            kind not in values.FLOATS + values.COMPLEX for kind in case["kinds"].values())

    def overflows(self, case):
        """Whether there are elements with which intermediate results may leave their dtype."""
        if truths.ALIASES.get(case["name"], case["name"]) == "cumsum":
            return any(np.sum(np.abs(x[np.isfinite(x)], dtype=np.float64)) > compare.LARGEST.get(case["kinds"][k], np.inf)
                for k, x in self.given(case).items() if x.dtype.kind == "f")
        if any(part[4] in ("special", "wide") for part in case["parts"].values()):
            return True
        # Products of many numbers leave it on the way to 0, too.
        given, kinds = self.given(case), case["kinds"]
        return case["name"] in ("prod", "cumprod", "cumulative_prod") and any(
            np.sum(np.log2(np.maximum(np.abs(x.astype(np.complex128)), 1)))
            > np.log2(compare.LARGEST.get(kinds[k], np.inf)) for k, x in given.items())

    def wide(self, case, name, flushed=False):
        given, kinds = self.given(case), case["kinds"]
        if flushed:
            given = {k: np.where(np.abs(x) < 1.17549435e-38, 0, x) if kinds[k] == "bfloat16" else x
                for k, x in given.items()}
        common = None
        if name in truths.PROMOTED and kinds:
            common = self.common(kinds.values(), name in truths.FLOATED)
        return {k: _widened(x, common or kinds[k], name in truths.FLOAT) for k, x in given.items()}

    def common(self, kinds, floated):
        kinds = [getattr(self.mlx, k) for k in kinds]
        common = str(self.promote(*kinds)).rpartition(".")[2].replace("bool",
            "bool_").replace("bool__", "bool_")
        return "float32" if floated and common in values.INTEGERS + ["bool_"] else common

    def judge_form(self, case, ours, theirs):
        """Dtypes and shapes are MLX's."""
        if compare.is_array(ours) and compare.is_array(theirs):
            if ours[1] != theirs[1]:
                yield "dtype", f"{ours[1]}, expected {theirs[1]}"
            if ours[2] != theirs[2]:
                yield "shape", f"{ours[2]}, expected {theirs[2]}"
        elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
            for one, other in zip(ours, theirs):
                yield from self.judge_form(case, one, other)
        elif type(ours) is not type(theirs):
            yield "type", f"{type(ours).__name__}, expected {type(theirs).__name__}"
        elif isinstance(ours, list):
            yield "count", f"{len(ours)}, expected {len(theirs)}"

    def judge_values(self, case, ours, theirs, truth):
        name = truths.ALIASES.get(case["name"], case["name"]).removeprefix("linalg.")
        if truth[0] == "value" and not case["wrong"]:
            scale = 0.0
            if name in truths.SUMS:
                sizes = self.truth(case, sizes=True)
                scale = sizes[1] if sizes[0] == "value" else np.inf
            why = self.differ(name, ours, truth[1], scale)
            if why and name in truths.PRODUCTS and "bfloat16" in case["kinds"].values():
                if not self.differ(name, ours, self.some_flushed(case, ours, truth[1], scale), scale):
                    self.out.counts["subnormal numbers of bfloat16 taken for zero"] += 1
                    return
            if not why:
                return
            by_mlx = theirs[0] == "value" and not self.near(ours, theirs[1], 1e-4)
            yield ("differs from NumPy, as MLX does" if by_mlx else "differs from NumPy"), why
        elif theirs[0] == "value":
            in_floats = self.of_integers(case, name) and ours[1] == "float32"
            if (name in OVERFLOW or in_floats) and self.overflows(case):
                return
            halves = {"float16": 1e-2, "bfloat16": 0.4 if "q" in name else 5e-2}
            relative = max([halves.get(kind, 2e-4) for kind in case["kinds"].values()],
                default=2e-4)
            why = self.near(ours, theirs[1], relative)
            if why and truth[0] == "value" and self.same_form(ours, truth[1]) and not self.differ(
                name, ours, truth[1], 0.0):
                self.out.counts["NumPy's, where MLX gives another value"] += 1
            elif why:
                yield "differs from MLX", why

    def some_flushed(self, case, ours, full, most):
        """The truth nearest to ours if any of the products with subnormal numbers count as zero; `most` is
        what all products' sizes add up to."""
        flushed, sizes = self.truth(case, flushed=True), self.truth(case, sizes=True, flushed=True)
        if not (flushed[0] == sizes[0] == "value" and self.same_form(ours, full)):
            return full
        have = np.asarray(ours[3])
        # So may each product and each sum.
        terms = max((n for shape in case["shapes"].values() for n in shape), default=1)
        with np.errstate(invalid="ignore"):
            dropped = np.nan_to_num(np.asarray(most) - sizes[1], nan=0.0, posinf=0.0) * 1.01
            dropped += 1.2e-38 * max(terms, 1)
            one_of = np.abs(have - flushed[1]) <= dropped
        return np.where(one_of, have, np.where(np.isfinite(have) | np.isnan(have), flushed[1], full))

    def same_form(self, ours, want):
        """Whether there are arrays of the same shapes."""
        if isinstance(ours, list):
            return isinstance(want, (list, tuple)) and len(ours) == len(want) and all(
                map(self.same_form, ours, want))
        if not isinstance(want, (np.ndarray, np.generic, int, float, complex)):
            return False
        shape = np.shape(want) if np.asarray(want).dtype.kind in "biufc" else None
        return compare.is_array(ours) and ours[3] is not None and shape == ours[2]

    def differ(self, name, ours, want, scale):
        """How a result is not the truth."""
        if isinstance(ours, list) and isinstance(want, (list, tuple)):
            scales = scale if isinstance(scale, (list, tuple)) else [scale] * len(want)
            parts = (self.differ(name, *each) for each in zip(ours, want, scales))
            return next((why for why in parts if why), None)
        if not compare.is_array(ours):
            want = want.item() if isinstance(want,
                (np.ndarray, np.generic)) and want.ndim == 0 else want
            if isinstance(want, np.ndarray) or ours == want or ours != ours and want != want:
                return None
            return f"{ours!r}, expected {want!r}"
        if ours[3] is None:
            return None
        if name in ("var", "std", "logsumexp", "logcumsumexp", "nn.log_softmax") and np.size(want):
            big = np.abs(np.asarray(want, float))
            scale = 1.0 + float(np.max(big[np.isfinite(big)], initial=0.0))
        elif name in CANCELS:
            scale = CANCELS[name]
        relative = 0.0 if name in truths.EXACT else None
        # GPUs may take subnormal numbers for zero.
        flushes = self.device != "cpu" and ours[1] in ("bfloat16", "float32")
        smallest = max(SUBNORMAL.get(name, 0.0), compare.SMALLEST.get(ours[1], 0.0))
        tiny = 1.2e-38 if flushes else smallest
        signs = name in truths.MOVED
        return compare.elements_differ(ours[3], want, ours[1], relative, scale, signs, tiny)

    def near(self, ours, theirs, relative):
        """How a result is not MLX's, whose sums are its own."""
        if isinstance(ours, list) and isinstance(theirs, list):
            return next((why for pair in zip(ours, theirs) if (why := self.near(*pair, relative))),
                None)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            if ours.keys() != theirs.keys():
                return f"keys {sorted(ours)}, expected {sorted(theirs)}"
            return self.near([ours[k] for k in ours], [theirs[k] for k in ours], relative)
        if compare.is_array(ours) and isinstance(theirs, (int, float, complex)):
            # That the one is an array is a matter of forms.
            theirs = ("array", ours[1], (), np.asarray(theirs))
        if compare.is_array(ours) and compare.is_array(theirs):
            if ours[3] is None or theirs[3] is None or ours[2] != theirs[2]:
                return None
            half = {"float16": 2e-2, "bfloat16": 5e-2}.get(ours[1], relative)
            finite = np.abs(theirs[3][np.isfinite(theirs[3])])
            scale = float(np.max(finite, initial=0.0)) * 0.1
            return compare.elements_differ(ours[3], theirs[3], ours[1], half, scale, tiny=1e-6)
        if ours == theirs or isinstance(ours, float) and ours != ours and theirs != theirs:
            return None
        if isinstance(ours, complex) and isinstance(theirs, complex):
            return self.near([ours.real, ours.imag], [theirs.real, theirs.imag], relative)
        if isinstance(ours, float) and isinstance(theirs,
            float) and abs(ours - theirs) <= 1e-5 * abs(theirs):
            return None
        return f"{ours!r}, expected {theirs!r}"


def _of_bools(case, truth):
    """Whether NumPy refuses True or False as an integer, as neither MLX nor Cupola does."""
    return "integer is required" in truth[1] and any(x in program(case) for x in ("=True", "=False"))


def _by_bindings(answer):
    """Whether not MLX but its bindings refused the call: those Cupola need not follow."""
    return "incompatible function arguments" in answer[2] or "bad_cast" in answer[2]


def _widened(x, dtype, floats):
    """The elements in the widest dtype of their kind, after a cast to that of the computation."""
    x = values.cast(x, dtype) if dtype else x
    if floats and x.dtype.kind in "iub":
        x = x.astype(np.float32)
    return x.astype({"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype))


def program(case):
    """The case as a program to run, with the elements written out where they are few."""
    lines = ["import numpy as np, cupola.core as mx, cupola.nn as nn"]
    for name, (text, shape, dtype, seed, flavour, size) in case["parts"].items():
        digits = values.literal(shape, dtype, seed, flavour, size)
        if digits is None:
            digits = f"values.values({tuple(shape)}, {dtype!r}, {seed}, {flavour!r})"
            digits = digits if size is None else f"values.wrapped({digits}, {size})"
        more = ", dtype=mx.float64)" if dtype == "float64" else f").astype(mx.{dtype})"
        lines.append(f"{name} = {text.format('mx.array(' + digits + more)}")
    return "\n".join([*lines, case["body"]])


def short(answer):
    """An answer for people."""
    text = f"{answer[1]}: {answer[2]}" if answer[0] == "error" else str(answer[1])
    text = f"{answer[0]} {text}".replace("\n", " ")
    return text if len(text) < 500 else text[:500] + " …"


def prepare(options, out):
    warnings.simplefilter("ignore")
    if options.device == "cpu":
        # Drivers of GPUs take more addresses than memory.
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    checker = Checker(options, out)
    return checker.case, checker.close


if __name__ == "__main__":
    report.exit_with(report.main("functions", __doc__, prepare))
