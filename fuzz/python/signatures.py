"""How each public function is called: one generator for each family, and why a name has none.

A generator takes a `Draw` and the name of the function, and gives the arguments as texts: a list, a
dict of the named ones, and, where the result is not compared as it is, a wrapper around the call.
"""

import values
from values import ALL, FLOATS, HALVES, INTEGERS, REALS, SIGNED

FAMILIES = {}

CATEGORIES = """complexfloating floating generic inexact integer number signedinteger
unsignedinteger"""

# Names that no case calls, each with its reason.
REASONS = {
    **dict.fromkeys(
        """grad vjp jvp value_and_grad vmap compile checkpoint custom_function disable_compile
        enable_compile jacfwd jacrev hessian linearize scan associative_scan while_loop fori_loop cond
        switch""".split(),
        "a transform: graphs.py and gradients.py",
    ),
    **dict.fromkeys(
        """set_cache_limit set_default_device set_default_stream set_memory_limit
        set_printoptions printoptions reset_peak_memory clear_cache clear_streams stream new_stream
        set_plan_cache_limit synchronize async_eval set_hard_memory_limit set_wired_limit
        new_thread_local_stream new_thread_unsafe_stream empty_cache set_memory_fraction""".split(),
        "changes the state of the process, not values",
    ),
    **dict.fromkeys(
        """ArrayAt ArrayIterator Device DeviceType Dtype DtypeCategory PrintOptions Stream
        StreamContext ThreadLocalStream ArrayLike FunctionExporter fast.MetalKernel fast.Kernel Event
        Explanation MemoryHistory""".split(),
        "a type that other calls make",
    ),
    **dict.fromkeys(
        CATEGORIES.split(),
        "a category: an argument of issubdtype",
    ),
    **dict.fromkeys("cpu gpu cuda wgpu".split(), "a device"),
    **dict.fromkeys("fast fft linalg random".split(), "a submodule, whose functions are called"),
    "distributed": "one process has nobody to send to: test_nn_quantized.py",
    "metal": "counters and limits of memory: the state of the process",
    **dict.fromkeys(["asarray", "from_dlpack"],
        "shares memory, which the tests of exchange look at"),
    **dict.fromkeys("explain memory_stats record_memory_history".split(),
        "tells of the process, not of values: test_explain.py, test_memory.py"),
    **dict.fromkeys("export_function export_to_dot exporter import_function".split(),
        "is about files: test_export.py"),
    **dict.fromkeys("fast.cuda_kernel fast.kernel fast.metal_kernel fast.wgsl_kernel".split(),
        "takes the text of a program: test_kernels.py, test_letter.py"),
    "complex32": "a dtype that MLX has not: test_beyond.py, and the op suite",
    "eval": "called for every result",
    "random.seed": "changes the state of the process, not values",
    "random.state": "a list that the state is kept in",
}



def why_not(name):
    """Why nothing calls a name, or one of its submodule; None where something has to."""
    outer = name.partition(".")[0]
    submodule = outer in ("distributed", "metal", "cuda")
    return REASONS.get(name) or (REASONS[outer] if submodule else None)


# Constants are compared as they are, and calls without arguments only have to come back.
CONSTANTS = "e pi inf nan euler_gamma newaxis".split()
ENQUIRIES = """default_device() default_stream(mx.cpu) device_count(mx.cpu) device_info()
get_active_memory() get_cache_memory() get_hard_memory_limit() get_memory_limit() get_peak_memory() get_printoptions()
is_available(mx.cpu) driver_allocated(mx.cpu) recommended_max(mx.cpu)""".split()

JUNK = [
    "2**63 - 1", "2**32", "-2**32", "(2**62, 2**62)", "[2**62, 0]", "(2**63 - 1, 2)",
    "None", "'x'", "-1", "0", "1", "7", "-9", "2**31", "-2**31 - 1", "2**40", "2**62", "2**63",
        "2**64",
    "10**30", "1.5", "float('nan')", "float('inf')", "[]", "()", "{}", "[None]", "['x']",
        "[[1], [1, 2]]",
    "object()", "True", "1j", "(-1, -1)", "(0, 0)", "(2**40, 2**40)", "mx.float32", "b'ab'",
        "print",
    "mx.zeros((0,))", "mx.ones((3, 7, 2))", "mx.array(1.5)", "mx.array([5, -6])",
        "mx.array([True, False])",
    "mx.array(1 + 2j)", "mx.full((2, 3), float('nan'))", "range(3)", "[mx.ones(2)]", "-2**63",
        "slice(0, 1)",
    "(1, 'x')", "(2**31, 2)", "np.ones((2, 2))", "np.float64(2)", "...", "set()", "[2**70]", "-0.0",
]  # fmt: skip


class Draw:
    """The choices of one case, and the operands that it has made."""

    def __init__(self, rng, device="cpu"):
        self.rng, self.operands, self.kinds, self.shapes = rng, {}, {}, {}
        self.parts = {}

    def chance(self, p):
        return self.rng.random() < p

    def choice(self, these):
        return self.rng.choice(these)

    def shape(self, rank=None, largest=values.LARGEST, low=0):
        return values.shape(self.rng, rank, largest, low)

    def flavour(self):
        return self.choice(["plain"] * 5 + ["special"] * 3 + ["wide", "positive", "unit"])

    def array(self, shape=None, dtypes=ALL, flavour=None, size=None, dense=False):
        """A new operand; its name."""
        shape = self.shape() if shape is None else tuple(shape)
        dtype = dtypes if isinstance(dtypes, str) else self.choice(dtypes)
        flavour = flavour or self.flavour()
        base, text = (shape, "{}") if dense else values.view(self.rng, shape)
        name = "abcdefgh"[len(self.operands)]
        seed = self.rng.randrange(10**6)
        more = "" if size is None else f", {size}"
        made = f"array({tuple(base)}, {dtype!r}, {seed}, {flavour!r}{more})"
        self.operands[name], self.kinds[name], self.shapes[name] = text.format(made), dtype, shape
        self.parts[name] = (text, base, dtype, seed, flavour, size)
        return name

    def indices(self, shape, size, dtypes=("int32", "int32", "uint8", "int64", "uint32")):
        """Indices of an axis of `size`; those of signed integers count from the end, too."""
        dtype = self.choice(dtypes)
        return self.array(shape, dtype, "index", min(size, 60))

    def axis(self, rank, none=0.0):
        if rank == 0 or self.chance(none):
            return "None" if none else "0"
        return str(self.rng.randrange(-rank, rank))

    def axes(self, rank):
        """None, one axis, or several."""
        if rank and self.chance(0.4):
            some = self.rng.sample(range(rank),
                self.rng.randint(0 if self.chance(0.1) else 1, rank))
            return str(tuple(k - rank * self.chance(0.3) for k in some))
        return self.axis(rank, 0.3)

    def number(self):
        return self.choice(["2", "-3", "0", "1", "0.5", "-1.25", "True", "False", "3", "7", "255"])

    def broadcastable(self, shape):
        """A shape that broadcasts to this one."""
        kept = [1 if self.chance(0.25) else n for n in shape]
        return tuple(kept[self.rng.randint(0, len(kept)) if self.chance(0.3) else 0 :])


def family(names):
    def note(make):
        for name in names.split():
            FAMILIES[name] = make
        return make

    return note


def named(draw, p=0.5, **kwargs):
    """Each of these named arguments, or not."""
    return {k: v for k, v in kwargs.items() if draw.chance(p)}


@family("""abs sin cos tan sinh cosh tanh exp expm1 log log1p log2 log10 sqrt rsqrt square sign
floor ceil
negative reciprocal arctan arcsin arccos arctanh arcsinh arccosh acos acosh asin asinh atan atanh
isnan
isinf isfinite isposinf isneginf logical_not degrees radians real imag conjugate conj trunc positive
sigmoid erf erfc erfinv signbit frac frexp lgamma digamma i0 sinc logit argwhere corrcoef cov
bitwise_invert stop_gradient to_fp8 contiguous atleast_1d atleast_2d
atleast_3d""")
def unary(g, name):
    return [g.array()], {}


@family("""add subtract multiply divide maximum minimum equal not_equal less less_equal greater
greater_equal logical_and logical_or logical_xor logaddexp arctan2 atan2 floor_divide remainder
power pow
divmod copysign fmax fmin fmod heaviside hypot ldexp nextafter xlogy lerp addcmul addcdiv""")
def binary(g, name):
    shape = g.shape()
    dtypes = ALL if g.chance(0.5) else [g.choice(ALL)]
    left, right = g.array(shape, dtypes), None
    if g.chance(0.25):
        right = g.number()
    else:
        right = g.array(g.broadcastable(shape), dtypes)
    if name in ("addcmul", "addcdiv"):
        third = g.array(g.broadcastable(shape), dtypes)
        return [left, right, third], named(g, value=g.number())
    if name == "lerp":
        return [left, right, g.choice(["0.25", "1.0", g.array(g.broadcastable(shape), FLOATS)])], {}
    return ([left, right] if g.chance(0.7) else [right, left]), {}


@family("""bitwise_and bitwise_or bitwise_xor left_shift right_shift bitwise_left_shift
bitwise_right_shift""")
def bits(g, name):
    shape = g.shape()
    dtypes = [g.choice(INTEGERS + ["bool_"])] if g.chance(0.7) else INTEGERS + ["bool_"]
    left = g.array(shape, dtypes)
    return [left, g.number() if g.chance(0.2) else g.array(g.broadcastable(shape), dtypes)], {}


@family("""sum prod mean max min all any logsumexp argmax argmin median count_nonzero minmax var std
nansum nanmean nanmax nanmin nanmedian""")
def reduction(g, name):
    a = g.array(dtypes=[d for d in ALL if name not in ("mean", "var", "std") or d != "complex64"])
    rank = len(g.shapes[a])
    axis = g.axis(rank, 0.3) if name.startswith("arg") else g.axes(rank)
    more = named(g, 0.4, ddof=g.choice("012")) if name in ("var", "std") else {}
    return [a], {**named(g, 0.8, axis=axis), **named(g, 0.3, keepdims="True"), **more}


@family("quantile nanquantile percentile nanpercentile")
def quantiles(g, name):
    a = g.array(dtypes=REALS)
    unit = 100 if name.endswith("percentile") else 1
    q = g.choice([0.0, 0.25, 0.5, 0.9, 1.0, [0.1, 0.7]])
    q = [unit * one for one in q] if isinstance(q, list) else unit * q
    method = g.choice(["'linear'", "'lower'", "'higher'", "'midpoint'", "'nearest'"])
    more = named(g, 0.3, keepdims="True", method=method)
    return [a, str(q)], {**named(g, 0.8, axis=g.axes(len(g.shapes[a]))), **more}


@family("histogram trapezoid polyval interp cdist")
def curves(g, name):
    if name == "cdist":
        shape = g.shape(rank=g.choice([2, 3]), largest=60)
        other = (*shape[:-2], g.rng.randint(0, 4), shape[-1])
        return [g.array(shape, FLOATS), g.array(other, FLOATS)], named(g, p=g.choice(["1.0", "0.0", "3.0", "float('inf')"]))
    if name == "interp":
        n = g.rng.randint(1, 9)
        points = f"mx.sort({g.array((n,), 'float32', 'plain')})"
        return [g.array(dtypes=FLOATS), points, g.array((n,), "float32")], named(g, 0.2, left="1.0", right="2.0", period="3.0")
    if name == "polyval":
        return [g.array((g.rng.randint(0, 5),), dtypes=REALS), g.array(dtypes=REALS)], {}
    a = g.array(g.shape(low=1), REALS)
    if name == "trapezoid":
        return [a], named(g, dx="0.5", axis=g.axis(len(g.shapes[a])))
    return [a], named(g, bins=g.choice(["1", "7", "mx.array([0.0, 1.0, 3.0])"]), density="True")


@family("nonzero masked_select masked_fill index_fill repeat_interleave bucketize")
def masks(g, name):
    a = g.array(g.shape(rank=g.choice([1, 2, 3]), low=1))
    shape = g.shapes[a]
    if name == "nonzero":
        return [a], {}, "list({})"
    if name in ("masked_select", "masked_fill"):
        mask = g.array(g.broadcastable(shape), "bool_")
        return [a, mask] + (["True"] if name == "masked_fill" else []), {}
    axis = g.rng.randrange(len(shape))
    if name == "index_fill":
        return [a, str(axis), g.indices((3,), shape[axis]), "True"], {}
    if name == "bucketize":
        return [g.array(dtypes=REALS), f"mx.sort({g.array((7,), 'float32', 'plain')})"], named(g, right="True")
    each = f"mx.array({[g.rng.randint(0, 3) for _ in range(shape[axis])]}, dtype=mx.int32)"
    return [a, g.choice(["2", each])], {"axis": str(axis)}


@family("segment_sum segment_mean segment_max segment_min")
def segments(g, name):
    a = g.array(g.shape(rank=g.choice([1, 2]), low=1), REALS)
    return [a, f"mx.abs({g.array(g.shapes[a][:1], 'int32', 'index', 4)})", "9"], {}


@family("logspace geomspace tril_indices triu_indices")
def grids(g, name):
    if name.endswith("space"):
        return [g.choice(["1", "2.5", "10"]), g.choice(["3", "100", "0.5"])], named(g, num=g.choice(["0", "1", "7"]))
    return [g.choice("01235")], named(g, k=str(g.rng.randint(-3, 3)), m=g.choice("0247"))


@family("""pixel_shuffle pixel_unshuffle interpolate grid_sample unfold fold adaptive_avg_pool adaptive_max_pool
max_pool_with_indices max_unpool""")
def images(g, name):
    n = g.choice([1, 2, 2, 3])
    sides = [g.rng.randint(1, 6) for _ in range(n)]
    batch, channels = g.choice([0, 1, 2]), g.choice([1, 3])
    if name in ("pixel_shuffle", "pixel_unshuffle"):
        shape = (batch, 2, 3, 4 * channels) if name == "pixel_shuffle" else (batch, 4, 6, channels)
        return [g.array(shape), "2"], {}
    if name == "fold":
        rows = g.array((batch, 9, 4 * channels), FLOATS)
        return [rows, "(4, 4)", "2"], {}
    a = g.array((batch, *sides, channels), FLOATS)
    sizes = str(tuple(g.rng.randint(1, 7) for _ in range(n)))
    if name == "interpolate":
        return [a, sizes], {"mode": g.choice(["'nearest'", "'linear'", "'cubic'", "'area'", "'nearest-exact'"])}
    if name == "grid_sample":
        grid = g.array((batch, 3, 2, n), "float32", "unit")
        modes = ["'nearest'", "'bilinear'"] + ["'bicubic'"] * (n == 2)
        padding = g.choice(["'zeros'", "'border'", "'reflection'"])
        return [a, grid], {"mode": g.choice(modes), **named(g, padding_mode=padding, align_corners="True")}
    if name == "unfold":
        return [a, "1"], named(g, stride="2", padding="1", dilation="2")
    if name.startswith("adaptive"):
        return [a, sizes], {}
    if name == "max_pool_with_indices":
        return [a, "1"], named(g, stride="2", dilation="2"), "list({})"
    places = f"mx.zeros({(batch, *sides, channels)}, dtype=mx.int32)"
    return [a, places, str(tuple(sides))], {}


@family("cumsum cumprod cummax cummin logcumsumexp cumulative_sum cumulative_prod")
def scan(g, name):
    a = g.array(dtypes=REALS)
    flags = named(g, 0.4, reverse="True", inclusive="False")
    return [a], {**named(g, 0.7, axis=g.axis(len(g.shapes[a]))), **flags}


@family("softmax")
def softmax(g, name):
    a = g.array(dtypes=FLOATS)
    return [a], {**named(g, 0.8, axis=g.axes(len(g.shapes[a]))), **named(g, 0.3, precise="True")}


@family("sort argsort topk partition argpartition")
def sorting(g, name):
    a = g.array(dtypes=REALS)
    shape = g.shapes[a]
    axis = g.axis(len(shape), 0.1)
    if name == "sort":
        return [a], {"axis": axis}
    taken = f"mx.take_along_axis({a}, {{}}, axis={axis})"
    if name == "argsort":
        return [a], {"axis": axis}, taken
    size = 1 if axis == "None" or not shape else shape[int(axis)]
    k = str(g.rng.randint(0, max(0, size - (name != "topk"))))
    sort = f"mx.sort({{}}, axis={axis if axis != 'None' else 0})"
    wrap = sort.format(taken) if name == "argpartition" else sort
    return [a, k], {"axis": axis}, wrap


@family("""reshape flatten unflatten transpose permute_dims swapaxes moveaxis expand_dims squeeze
flip""")
def movement(g, name):
    a = g.array()
    shape = g.shapes[a]
    rank = len(shape)
    if name == "reshape":
        return [a, str(_factors(g, shape))], {}
    if name == "flatten":
        return [a], named(g, start_axis=g.axis(rank), end_axis=g.axis(rank))
    if name == "unflatten":
        axis = g.axis(rank)
        size = shape[int(axis)] if rank else 1
        return [a, axis, g.choice([f"(1, {size})", f"({size}, -1)", "(2, -1)", f"({size},)"])], {}
    if name in ("transpose", "permute_dims"):
        return [a], named(g, 0.8, axes=str(tuple(g.rng.sample(range(rank), rank))))
    if name in ("swapaxes", "moveaxis"):
        return [a, g.axis(rank), g.axis(rank)], {}
    if name == "expand_dims":
        return [a, g.choice([g.axis(rank + 1), f"(0, {rank + 1})", f"({-1}, 0)"])], {}
    if name == "squeeze":
        ones = tuple(k for k, n in enumerate(shape) if n == 1)
        return [a], named(g, 0.7, axis=str(ones if g.chance(0.7) else g.axis(rank)))
    return [a], named(g, 0.7, axis=g.axes(rank))


def _factors(g, shape):
    """Another shape of as many elements."""
    rest, out = 1, []
    for n in shape:
        rest *= n
    while rest > 1 and len(out) < 4 and g.chance(0.8):
        factor = g.choice([d for d in range(1, min(rest, 64) + 1) if rest % d == 0])
        out.append(factor)
        rest //= factor
    out.append(-1 if g.chance(0.4) and rest else rest)
    return tuple(out)


@family("""broadcast_to roll tile repeat pad tril triu diag diagonal trace diff clip round
nan_to_num""")
def shaped(g, name):
    shape = g.shape(rank=g.choice([2, 2, 3, 4]) if name in ("diagonal", "trace") else None,
        largest=600)
    a = g.array(g.broadcastable(shape) if name == "broadcast_to" else shape, flavour=None)
    rank, small = len(shape), g.rng.randint(-3, 3)
    if name == "broadcast_to":
        return [a, str(shape)], {}
    if name == "roll":
        if rank and g.chance(0.4):
            axes = g.rng.sample(range(rank), g.rng.randint(1, rank))
            return [a, str(tuple(g.rng.randint(-9, 9) for _ in axes)), str(tuple(axes))], {}
        return [a, g.choice([str(small), "1000", "-1000"])], named(g, 0.7, axis=g.axis(rank))
    if name == "tile":
        return [a,
            g.choice([str(abs(small)),
                str(tuple(g.rng.randint(0, 3) for _ in range(g.rng.randint(0, 4))))])], {}
    if name == "repeat":
        return [a, str(abs(small))], named(g, 0.7, axis=g.axis(rank))
    if name == "pad":
        widths = [(g.rng.randint(0, 3),
            g.rng.randint(0, 20 if g.chance(0.1) else 3)) for _ in shape]
        width = g.choice([str(abs(small)), str(widths), f"({abs(small)}, 2)"])
        return [a,
            width], g.choice([{}, {"constant_values": g.number()}, {"mode": "'edge'"},
                {"mode": "'constant'"}])
    if name in ("tril", "triu", "diag"):
        far = name != "diag" and g.chance(0.1)
        return [a], named(g,
            k=g.choice(["2**32", "-2**32", "2**31", "-2**31 - 1"]) if far else str(small))
    if name in ("diagonal", "trace"):
        one, two = g.rng.sample(range(rank), 2)
        return [a], named(g, 0.6,
            offset=str(small)) | (dict(axis1=str(one), axis2=str(two)) if g.chance(0.6) else {})
    if name == "diff":
        return [a], named(g, n=str(abs(small)), axis=g.axis(rank))
    if name == "clip":
        low = g.choice(["None", "-1", "0.5", "0", g.array(g.broadcastable(shape), [g.kinds[a]])])
        return [a, low, g.choice(["None", "1", "2.5"])], {}
    if name == "round":
        return [a], named(g, decimals=g.choice(["0", "1", "-1", "2"]))
    return [a], named(g, nan=g.number(), posinf=g.number(), neginf=g.number())


@family("concatenate concat stack broadcast_arrays meshgrid")
def several(g, name):
    shape, n = g.shape(rank=g.choice([1, 2, 3]), largest=800), g.rng.randint(1, 4)
    dtypes = ALL if g.chance(0.4) else [g.choice(ALL)]
    axis = g.rng.randrange(-len(shape), len(shape))
    if name in ("concatenate", "concat"):
        sizes = [tuple(g.rng.randint(0, 5) if k == axis % len(shape) else s for k,
            s in enumerate(shape)) for _ in range(n)]
        return [f"[{', '.join(g.array(s, dtypes) for s in sizes)}]"], named(g, 1.0, axis=str(axis))
    if name == "stack":
        return [f"[{', '.join(g.array(shape, dtypes) for _ in range(n))}]"], named(g, 0.8,
            axis=str(axis))
    if name == "meshgrid":
        return [g.array((g.rng.randint(0, 5),), dtypes) for _ in range(n)], named(g, sparse="True",
            indexing=g.choice(["'ij'", "'xy'"]))
    return [g.array(g.broadcastable(shape), dtypes) for _ in range(n)], {}


@family("broadcast_shapes")
def shapes(g, name):
    shape = g.shape()
    return [str(g.broadcastable(shape)) for _ in range(g.rng.randint(0, 3))], {}


@family("split unstack")
def parts(g, name):
    a = g.array(g.shape(rank=g.choice([1, 2, 3, 4])))
    shape = g.shapes[a]
    axis = g.axis(len(shape))
    size = shape[int(axis)]
    if name == "unstack":
        return [a], {"axis": axis}
    divisors = [d for d in range(1, size + 1) if size % d == 0] or [1]
    places = sorted(g.rng.randint(0, size) for _ in range(g.rng.randint(0, 3)))
    return [a, g.choice([str(g.choice(divisors)), str(places), "2"])], {"axis": axis}


@family("where isclose allclose array_equal")
def compared(g, name):
    shape = g.shape()
    if name == "where":
        dtypes = ALL if g.chance(0.4) else [g.choice(ALL)]
        mask = g.array(g.broadcastable(shape), "bool_") if g.chance(0.9) else "True"
        return [mask, g.array(shape, dtypes),
            g.choice([g.number(), g.array(g.broadcastable(shape), dtypes)])], {}
    a = g.array(shape, REALS)
    b = g.choice([a, g.array(g.broadcastable(shape), [g.kinds[a]], g.parts[a][4])])
    return [a, b], named(g, 0.4, equal_nan="True")


@family("""as_strided take take_along_axis put_along_axis slice slice_update getitem setitem at
searchsorted bincount unique""")
def indexing(g, name):
    a = g.array(g.shape(rank=g.choice([1, 1, 2, 2, 3, 4]), low=int(g.chance(0.9))))
    shape = g.shapes[a]
    axis = g.rng.randrange(len(shape))
    size, signed = shape[axis], str(axis - len(shape) * g.chance(0.4))
    if name == "take":
        if g.chance(0.2):
            return [a, str(g.rng.randint(-size, max(0, size - 1)))], {"axis": signed}
        if g.chance(0.2):
            total = 1
            for n in shape:
                total *= n
            return [a, g.indices(g.shape(rank=g.choice([0, 1, 2]), largest=60), total)], {}
        return [a, g.indices(g.shape(rank=g.choice([0, 1, 2]), largest=60), size)], {"axis": signed}
    if name in ("take_along_axis", "put_along_axis"):
        if name == "take_along_axis" or size == 0:
            index = g.indices(tuple(g.rng.randint(0, 6) if k == axis else n for k,
                n in enumerate(shape)), size)
            return [a, index] + (["3"] if name != "take_along_axis" else []), {"axis": signed}
        index = g.indices(tuple(1 if k == axis else n for k, n in enumerate(shape)), size)
        return [a, index, g.choice(["3", g.array(g.shapes[index], [g.kinds[a]])])], {"axis": signed}
    if name in ("slice", "slice_update"):
        sizes = [g.rng.randint(0, n) if k == axis else n for k, n in enumerate(shape)]
        start = g.indices((1,), max(1, size - sizes[axis] + 1), ("uint32",))
        if name == "slice":
            return [a, start, f"({axis},)", str(tuple(sizes))], {}
        return [a, g.array(sizes, [g.kinds[a]]), start, f"({axis},)"], {}
    if name == "as_strided":
        return [a, *g.choice([["(2,)", "(1,)"], ["(1, 1)", "(0, 0)"], [str(shape), "None"]])], {}
    if name == "searchsorted":
        row = g.array(g.shape(rank=1, largest=70), [d for d in REALS if d != "bool_"], "plain")
        what = g.array(g.shape(largest=80), [g.kinds[row]], "plain")
        return [f"mx.sort({row})", what], named(g, side=g.choice(["'left'", "'right'"]))
    if name == "bincount":
        return [g.array(g.shape(rank=1), ["int32", "uint8", "int64"], "positive")], named(g,
            minlength="9")
    if name == "unique":
        return [g.array(g.shape(largest=60), INTEGERS + ["float32"], "plain"), "20"], named(g, 0.3,
            return_index="True", return_inverse="True", return_counts="True")
    return [a, place(g, shape)], {}


def place(g, shape):
    """What stands in the brackets of an index."""
    parts = []
    gathers = False
    for size in shape[: g.rng.randint(0, len(shape)) if g.chance(0.3) else None]:
        way = g.choice(["slice", "slice", "number", "all", "array"])
        if way == "number" and size:
            parts.append(str(g.rng.randint(-size, size - 1)))
        elif way == "array" and size and not gathers:
            gathers = True
            parts.append(g.indices(g.shape(rank=g.choice([0, 1, 1, 2]), largest=20), size))
        elif way == "slice":
            ends = [g.choice(["", str(g.rng.randint(-size - 2, size + 2))]) for _ in range(2)]
            parts.append(f"{ends[0]}:{ends[1]}:{g.choice(['', '', '2', '-1', '-2', '3', '-1'])}")
        else:
            parts.append(":")
    if g.chance(0.15):
        parts.insert(g.rng.randint(0, len(parts)), "None")
    if g.chance(0.15):
        parts.append("...")
    return ", ".join(parts) or "..."


@family("zeros ones empty full eye identity tri arange linspace hanning hamming blackman bartlett")
def creation(g, name):
    dtype = {"dtype": f"mx.{g.choice(ALL)}"} if g.chance(0.5) else {}
    n = str(g.choice([0, 1, 2, 3, 5, 16, 33]))
    if name in ("zeros", "ones", "empty"):
        wrap = "({}).shape" if name == "empty" else "{}"
        return [g.choice([n, str(g.shape())])], dtype, wrap
    if name == "full":
        shape = g.shape()
        return [str(shape), g.choice([g.number(), g.array(g.broadcastable(shape))])], dtype
    if name in ("eye", "tri"):
        return [n], named(g, m=g.choice("0123456"), k=str(g.rng.randint(-4, 4))) | dtype
    if name == "identity":
        return [n], dtype
    if name == "arange":
        ends = [g.choice(["0", "5", "-3", "0.5", "7", "2.25", "100", "-0.125",
            "33"]) for _ in range(g.rng.randint(1, 2))]
        step = [g.choice(["1", "2", "-1", "0.25", "-0.5",
            "3"])] if len(ends) == 2 and g.chance(0.5) else []
        return ends + step, dtype if g.chance(0.4) else {}
    if name == "linspace":
        ends = ["0", "1", "-2.5", "7", "0.125", "100"]
        return [g.choice(ends), g.choice(ends)], named(g, num=n) | (dtype if g.chance(0.3) else {})
    return [n], {}


@family("zeros_like ones_like empty_like full_like astype view")
def like(g, name):
    a = g.array()
    dtype = f"mx.{g.choice(ALL)}"
    if name in ("astype", "view"):
        return [a, dtype], {}
    wrap = "({}).shape" if name == "empty_like" else "{}"
    return [a] + ([g.number()] if name == "full_like" else []), named(g, dtype=dtype), wrap


@family("""matmul inner outer kron tensordot vecdot addmm linalg.norm matrix_norm
linalg.cross
hadamard_transform matrix_transpose convolve""")
def products(g, name):
    dtypes = [g.choice(FLOATS * 3 + ["complex64"]
        + INTEGERS)] if g.chance(0.8) else FLOATS + INTEGERS + ["complex64"]
    flavour = g.choice(["plain"] * 6 + ["special", "unit"])
    m, k, n = (g.choice(values.SIZES + values.EDGES) for _ in range(3))
    batch = g.shape(rank=g.choice([0, 0, 0, 1, 2]), largest=8)
    if name in ("matmul", "addmm"):
        left = (k,) if g.chance(0.15) else (*g.broadcastable(batch), m, k)
        right = (k,) if g.chance(0.15) else (*batch, k, n)
        a, b = g.array(left, dtypes, flavour), g.array(right, dtypes, flavour)
        if name == "matmul":
            return [a, b], {}
        c = g.array((n,) if g.chance(0.3) else (*batch, m, n), dtypes, flavour)
        return [c, a, b], named(g, alpha="0.5", beta="-2.0")
    if name == "inner":
        return [g.array((*g.shape(rank=g.choice([0, 1])), k), dtypes, flavour),
            g.array((n, k), dtypes, flavour)], {}
    if name in ("outer", "kron"):
        ranks = (1, 1) if name == "outer" else (g.choice([1, 2]),) * 2
        return [g.array(g.shape(rank=r, largest=60), dtypes, flavour) for r in ranks], {}
    if name == "tensordot":
        a = g.array((m, k, 2), dtypes, flavour)
        if g.chance(0.5):
            return [a, g.array((k, 2, 3), dtypes, flavour)], {"axes": "2"}
        return [a, g.array((3, k), dtypes, flavour)], {"axes": "([1], [1])"}
    if name == "vecdot":
        a = g.array(g.shape(rank=g.choice([1, 2, 3])), dtypes, flavour)
        return [a, g.array(g.shapes[a], dtypes, flavour)], named(g, axis=g.axis(len(g.shapes[a])))
    if name in ("linalg.norm", "matrix_norm"):
        a = g.array(g.shape(rank=g.choice([1, 2, 3]), low=1), FLOATS)
        rank = len(g.shapes[a])
        return [a], g.choice([{}, {"axis": g.axis(rank)},
            {"ord": g.choice(["1", "2", "3.0", "float('inf')", "0"]), "axis": g.axis(rank)}])
    if name == "linalg.cross":
        shape = (*g.shape(rank=g.choice([0, 1, 2])), 3)
        return [g.array(shape, dtypes, flavour), g.array(shape, dtypes, flavour)], {}
    if name == "hadamard_transform":
        n = g.choice([1, 2, 4, 8, 12, 16, 20, 24, 28, 40, 64, 128])
        return [g.array((*g.shape(rank=g.choice([0, 1])), n), FLOATS, "plain")], named(g, 0.3,
            scale="0.5")
    if name == "convolve":
        return [g.array((k,), dtypes, flavour), g.array((n,), dtypes, flavour)], named(g,
            mode=g.choice(["'full'", "'same'", "'valid'"]))
    return [g.array(g.shape(rank=g.choice([2, 3, 4])))], {}


@family("einsum einsum_path")
def einsum(g, name):
    text, *ranks = g.choice([
        ("'ij,jk->ik'", "ij", "jk"), ("'ij->ji'", "ij"), ("'ij->'", "ij"), ("'ii->i'", "ii"),
            ("'ii'", "ii"),
        ("'bij,bjk->bik'", "bij", "bjk"), ("'i,j->ij'", "i", "j"), ("'ijk->ki'", "ijk"),
            ("'ij,ij->ij'", "ij", "ij"),
        ("'ij,jk,kl->il'", "ij", "jk", "kl"), ("'...i,...i->...'", "bi", "bi"),
            ("'ij,kj->ki'", "ij", "kj"),
        ("'abc,bd->adc'", "abc", "bd"), ("'iij->j'", "iij"),
    ])  # fmt: skip
    sizes = {c: g.choice([0, 1, 2, 3, 4, 5, 17]) for c in "abcdijkl"}
    dtypes = [g.choice(FLOATS)] if g.chance(0.8) else FLOATS + SIGNED
    wrap = "len({}[0]) > 0" if name == "einsum_path" else "{}"
    return [text, *(g.array([sizes[c] for c in r], dtypes, "plain") for r in ranks)], {}, wrap


@family("""conv1d conv2d conv3d conv_general conv_transpose1d conv_transpose2d conv_transpose3d""")
def convolution(g, name):
    n = g.choice([1, 2, 3]) if name == "conv_general" else int(name[-2])
    groups = g.choice([1, 1, 1, 2, 3])
    channels, outputs = groups * g.choice([1, 2, 4]), groups * g.choice([1, 2, 3, 8])
    kernel = [g.rng.randint(1, 3) for _ in range(n)]
    sides = [g.rng.randint(2, [20, 9, 5][n - 1]) for _ in range(n)]
    dtypes, flavour = [g.choice(FLOATS)], g.choice(["plain", "unit"])
    x = g.array((g.choice([0, 1, 2, 2, 3]), *sides, channels), dtypes, flavour)
    w = g.array((outputs, *kernel, channels // groups), dtypes, flavour)

    def each(low, high):
        one = str(g.rng.randint(low, high))
        return one if g.chance(0.6) else str(tuple(g.rng.randint(low, high) for _ in range(n)))

    kwargs = named(g, 0.4, stride=each(1, 3), padding=each(-1, 2))
    if name == "conv_general":
        kwargs |= named(g, 0.3, kernel_dilation=each(1, 2), input_dilation=each(1, 2), flip="True")
    else:
        kwargs |= named(g, 0.3, dilation=each(1, 2))
        if "transpose" in name:
            kwargs |= named(g, 0.2, output_padding=each(0, 1))
    return [x, w], kwargs | ({"groups": str(groups)} if groups > 1 else {})


@family("block_masked_mm gather_mm segmented_mm")
def masked_products(g, name):
    if name == "block_masked_mm":
        m, k, n = (32 * g.choice([1, 2]) for _ in range(3))
        a, b = g.array((m, k), "float32", "plain"), g.array((k, n), "float32", "plain")
        return [a, b, "32"], named(g, mask_out=g.array((m // 32, n // 32), "bool_"))
    m, k, n = (g.choice([1, 2, 5, 16]) for _ in range(3))
    if name == "segmented_mm":
        return [g.array((m, 8), "float32", "plain"), g.array((8, n), "float32", "plain"),
            "mx.array([[0, 3], [3, 8]], dtype=mx.uint32)"], {}
    a, b = g.array((3, m, k), FLOATS[:5], "plain"), None
    b = g.array((4, k, n), [g.kinds[a]], "plain")
    left, right = g.array((5,), "uint32", "index", 3), g.array((5,), "uint32", "index", 4)
    return [a, b], {"lhs_indices": left, "rhs_indices": right}


@family("""quantize dequantize quantized_matmul gather_qmm qqmm gather_qqmm""")
def quantized(g, name):
    mode = g.choice(["affine", "affine", "affine", "mxfp4", "mxfp8", "nvfp4"])
    group, width = {"mxfp4": (32, 4), "mxfp8": (32, 8), "nvfp4": (16, 4)}.get(mode,
        (g.choice([32, 64, 128]), g.choice([2, 3, 4, 5, 6, 8])))
    n, k, dtype = g.choice([1, 8, 16]), group * g.choice([1, 2, 4]), g.choice(["float32",
        "float16", "bfloat16"])
    how = f"group_size={group}, bits={width}, mode={mode!r}"
    w = g.array((3, n, k) if name.startswith("gather") else (n, k), dtype,
        g.choice(["plain", "unit"]))
    kwargs = dict(group_size=str(group), bits=str(width), mode=repr(mode))
    packed = f"*mx.quantize({w}, {how})"
    if name == "quantize":
        return [w], kwargs, f"mx.dequantize(*{{}}, {how}, dtype=mx.{dtype})"
    if name == "dequantize":
        return [packed], {**kwargs, "dtype": f"mx.{dtype}"}
    if name in ("qqmm", "gather_qqmm"):
        m = g.choice(["'nvfp4'", "'mxfp8'"])
        kwargs = {"mode": m}
        x = g.array((2, 1, 64) if "gather" in name else (3, 64), dtype, "unit")
        w = g.array((3, 8, 64) if "gather" in name else (8, 64), dtype, "unit")
        scales = f"mx.quantize({w}, mode={m})"
        more = {"lhs_indices": "mx.array([0, 1])",
            "rhs_indices": "mx.array([2, 0])"} if "gather" in name else {}
        return [x, f"{scales}[0]", f"{scales}[1]"], {**more, **kwargs}
    if name == "quantized_matmul":
        return [g.array((g.choice([1, 3, 17]), k), dtype, "plain"), packed], kwargs
    x = g.array((2, g.choice([1, 3]), k), dtype, "plain")
    return [x, packed], {**kwargs, "lhs_indices": "mx.array([0, 1, 0])",
        "rhs_indices": "mx.array([2, 0, 1])"}


@family("from_fp8")
def eight_bits(g, name):
    return [g.array(dtypes="uint8", flavour="wide")], named(g,
        dtype=g.choice(["mx.float32", "mx.float16", "mx.bfloat16"]))


@family("""fast.layer_norm fast.rms_norm fast.group_norm fast.rope fast.scaled_dot_product_attention
fast.cross_entropy""")
def fast(g, name):
    dtype, flavour = g.choice(["float32", "float32",
        *HALVES]), g.choice(["plain"] * 5 + ["special"])
    kind = name.partition(".")[2]
    if kind in ("layer_norm", "rms_norm"):
        x = g.array(g.shape(rank=g.choice([1, 2, 3]), low=1), dtype, flavour)
        some = [g.choice(["None", g.array(g.shapes[x][-1:], dtype, "plain")]) for _ in range(2)]
        return [x, *some[: 2 if kind == "layer_norm" else 1], "1e-5"], {}
    if kind == "group_norm":
        groups, inner = g.choice([1, 2, 3]), g.choice([1, 2, 4])
        between = tuple(g.rng.randint(1, 5) for _ in range(g.choice([0, 1, 2])))
        x = g.array((g.choice([0, 1, 2]), *between, groups * inner), dtype, flavour)
        some = {name: g.array((groups * inner,), dtype, "plain") for name in ("weight", "bias")}
        return [x, str(groups)], named(g, 0.6, **some)
    if kind == "rope":
        x = g.array((2, g.choice([1, 2]), g.choice([1, 5]), g.choice([8, 16])), dtype, "plain")
        return [x, g.choice(["8", "4"])], dict(traditional=g.choice(["True", "False"]),
            base="10000.0", scale=g.choice(["1.0", "0.5"]),
                offset=g.choice(["0", "3", "mx.array(2)", "mx.array([1, 4])"]))
    if kind == "cross_entropy":
        rows, classes = g.rng.randint(1, 6), g.rng.randint(1, 40)
        return [g.array((rows, classes), dtype, "plain"),
            g.array((rows,), "int32", "index", classes - 1).join(["mx.abs(", ")"])], {}
    b, h, length, keys, d = g.choice([1, 2]), g.choice([1, 2]), g.choice([1, 3, 17]), g.choice([1,
        5, 32]), g.choice([4, 8, 64])
    q = g.array((b, h * g.choice([1, 2]), length, d), dtype, flavour)
    k, v = g.array((b, h, keys, d), dtype, flavour), g.array((b, h, keys, d), dtype, flavour)
    mask = g.choice(["None", "'causal'", g.array((length, keys), "bool_"),
        g.array((length, keys), dtype, "plain")])
    return [q, k, v], dict(scale="0.25", mask=mask)


@family("""random.bernoulli random.bits random.categorical random.gumbel random.key random.laplace
random.normal random.gamma random.beta random.dirichlet random.exponential random.poisson
random.geometric random.choice random.multivariate_normal
random.permutation random.randint random.split random.truncated_normal random.uniform""")
def random_numbers(g, name):
    kind = name.partition(".")[2]
    key = {"key": f"mx.random.key({g.rng.randrange(2**33)})"}
    shape, dtype = str(g.shape()), g.choice(["mx.float32", "mx.float16", "mx.bfloat16"])
    twice = "twice(lambda: {})"
    if kind == "key":
        return [g.choice(["0", "1", "-1", "2**32", "2**63", "12345"])], {}, twice
    if kind == "split":
        return [key["key"]], named(g, num=g.choice("12345")), twice
    if kind == "bits":
        return [shape], {"width": g.choice("124"), **key}, twice
    if kind == "bernoulli":
        return [g.choice(["0.5", "0.0", "1.0", "0.3"])], {"shape": shape, **key}, twice
    if kind == "categorical":
        shape = g.shape(rank=g.choice([1, 2, 3]), low=1, largest=200)
        a = g.array(shape, g.choice(["float32", "float16", "bfloat16"]), "plain")
        return [a], {**named(g, axis=g.axis(len(g.shapes[a])), num_samples=g.choice("15")),
            **key}, twice
    if kind == "permutation":
        return [g.choice(["6", "0", "33", g.array(g.shape(rank=2))])], key, twice
    if kind == "randint":
        dtype = g.choice(INTEGERS)
        low = g.choice([0, 3] if dtype.startswith("u") else [-5, 0, 3])
        high = low + g.choice([1, 2, 10, 100])
        return [str(low), str(high)], {"shape": shape, "dtype": f"mx.{dtype}", **key}, twice
    if kind == "multivariate_normal":
        lead = g.choice(["", "[None]", "[None, None]"])
        cov = f"mx.array([[2.0, 0.5], [0.5, 1.0]]){lead}"
        return [g.array((*g.shape(rank=1), 2), "float32"), cov], key
    if kind in ("gamma", "poisson"):
        return [g.choice(["0.5", "3.0", "25"])], {"shape": shape, **key}, twice
    if kind == "beta":
        return ["0.5", g.choice(["1.0", "3"])], {"shape": shape, **key}, twice
    if kind == "geometric":
        return [g.choice(["0.1", "1.0"])], {"shape": shape, **key}, twice
    if kind == "dirichlet":
        return ["mx.array([0.5, 1.0, 4.0])"], {"shape": shape, **key}, twice
    if kind == "choice":
        return [g.choice(["7", "mx.arange(9)"])], {"shape": shape, **key}, twice
    if kind == "exponential":
        return [], {"shape": shape, **named(g, dtype=dtype, scale="2.0"), **key}, twice
    if kind == "truncated_normal":
        return ["-1.0", g.choice(["1.0", "0.5", "3.0"])], {"shape": shape, **key}, twice
    kwargs = {"shape": shape, **named(g, dtype=dtype), **key}
    if kind in ("normal", "laplace"):
        kwargs |= named(g, loc="1.5", scale="2.0")
    if kind == "uniform":
        kwargs |= named(g, low="-1.0", high="3.0")
    return [], kwargs, twice


@family("save savez savez_compressed save_safetensors save_gguf load")
def files(g, name):
    how = g.choice(["save", "savez", "save_safetensors", "save_gguf"]) if name == "load" else name
    ending = {"save": ".npy", "save_safetensors": ".safetensors", "save_gguf": ".gguf"}.get(how, ".npz")
    # The dtypes that MLX writes.
    dtypes = "float32 float16 int8 int16 int32".split() if how == "save_gguf" else \
        [d for d in ALL if d != "float64"]
    some = [g.array(dtypes=dtypes) for _ in range(1 if how == "save"
        else g.rng.randint(1, 3))]
    return None, [repr(how), repr(ending), *some], "saved"


@family("can_cast issubdtype isdtype result_type finfo iinfo")
def dtypes_only(g, name):
    kinds = [f"mx.{d}" for d in ALL]
    categories = [f"mx.{c}"
        for c in CATEGORIES.split()]
    if name == "finfo":
        return [g.choice(kinds)], {}, "[getattr({}, k) for k in ('min', 'max', 'eps')]"
    if name == "iinfo":
        return [g.choice(kinds)], {}, "[getattr({}, k) for k in ('min', 'max')]"
    if name == "isdtype":
        return [g.choice(kinds),
            g.choice(["'bool'", "'integral'", "'real floating'", "'numeric'", "'x'", *kinds])], {}
    if name == "issubdtype":
        return [g.choice(kinds + categories), g.choice(kinds + categories)], {}
    if name == "result_type":
        return [g.choice([*kinds, g.array((1,))]) for _ in range(g.rng.randint(1, 3))], {}
    return [g.choice(kinds), g.choice(kinds)], {}


@family("fft.fftfreq fft.rfftfreq fft.fftshift fft.ifftshift")
def frequencies(g, name):
    if name.endswith("freq"):
        return [g.choice(["0", "1", "2", "5", "16"])], named(g, d=g.choice(["0.5", "2.0"]))
    a = g.array()
    return [a], named(g, axes=g.choice([g.axis(len(g.shapes[a])), "(0,)"]))


@family("""fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2
fft.fftn fft.ifftn fft.rfftn fft.irfftn""")
def transforms(g, name):
    several = name[-1] in "2n"
    a = g.array(g.shape(rank=g.choice([2, 3] if several else [1, 2, 3]), low=1, largest=400), flavour="plain")
    shape = g.shapes[a]
    norm = g.choice(["'backward'", "'ortho'", "'forward'", "'other'"])
    if not several:
        return [a], named(g, 0.5, n=g.choice(["1", "2", "5", "8", "0", "-3"]),
            axis=g.axis(len(shape)), norm=norm)
    axes = g.rng.sample(range(len(shape)), 2)
    more = {"axes": str(tuple(axes)), **named(g, s=str(tuple(g.rng.randint(1, 9) for _ in axes)))}
    return [a], {**(more if g.chance(0.6) else {}), **named(g, 0.5, norm=norm)}


@family("fft.stft fft.istft")
def frames(g, name):
    n = g.choice([4, 8, 9])
    how = named(g, 0.4, hop_length=g.choice(["1", "3", "0"]), center="False",
        norm=g.choice(["'ortho'", "'forward'"]), onesided=g.choice(["True", "False"]))
    if name == "fft.stft":
        a = g.array((*g.shape(rank=g.choice([0, 1]), low=1), g.choice([10, 17, 32])), flavour="plain")
        return [a, str(n)], {**how, **named(g, 0.4, pad_mode=g.choice(["'edge'", "'constant'"]))}
    a = g.array((n // 2 + 1, g.choice([1, 4, 7])), flavour="plain")
    return [a, str(n)], {**how, **named(g, 0.3, length=g.choice(["5", "40"]))}


@family("""linalg.cholesky linalg.cholesky_inv linalg.det linalg.eig linalg.eigh linalg.eigvals
linalg.eigvalsh linalg.inv linalg.lu linalg.lu_factor linalg.lstsq linalg.matrix_power
linalg.matrix_rank linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.solve_triangular
linalg.svd linalg.svdvals linalg.tri_inv""")
def decompositions(g, name):
    kind = name.partition(".")[2]
    n, batch = g.choice([1, 2, 3, 5]), g.shape(rank=g.choice([0, 0, 1]), largest=3)
    dtype = g.choice(["float32"] * 6 + ALL)
    rectangular = kind in ("lu", "lu_factor", "pinv", "qr", "svd", "svdvals", "matrix_rank", "lstsq")
    m = g.choice([1, 2, 4]) if rectangular else n
    a = g.array((*batch, m, n), dtype, "plain")
    shape = (*batch, m, n)
    square = f"({a} @ mx.swapaxes({a}, -1, -2) + {n} * mx.eye({n}))"
    if kind == "cholesky":
        return [f"({square} + {n} * 40 * mx.eye({n}))"], {}
    if kind in ("eigvalsh", "inv", "det", "slogdet", "tri_inv", "cholesky_inv"):
        return [square], {}
    # Signs of vectors are nobody's: the product of the factors has none.
    if kind == "eigh":
        return [square], {}, "(lambda r: (r[1] * r[0][..., None, :]) @ mx.swapaxes(mx.conj(r[1]), -1, -2))({})"
    if kind == "qr":
        return [a], {}, "(lambda r: r[0] @ r[1])({})"
    if kind == "svd":
        return [a], {"compute_uv": "False"}
    if kind == "eig":
        return [square], {}, "mx.sort(mx.real({}[0]), axis=-1)"
    if kind == "eigvals":
        return [square], {}, "mx.sort(mx.real({}), axis=-1)"
    if kind in ("solve", "solve_triangular", "lstsq"):
        b = g.array((*shape[:-1], g.choice([1, 3])), dtype, "plain")
        return [a if kind == "lstsq" else square, b], {}
    if kind == "matrix_power":
        return [a, g.choice(["0", "1", "2", "5"])], {}
    return [a], {}


@family("depends")
def depends(g, name):
    return [f"[{g.array()}]", f"[{g.array()}]"], {}


@family("array")
def from_python(g, name):
    data = g.choice(["1", "[1, 2]", "[[1.5], [2]]", "True", "[True, 2]", "[]", "[[]]", "1j",
        "[1, 2.5, 3j]", "(1, (2))", "[mx.array(1), 2]",
                     "np.arange(6).reshape(2, 3)", "[2**40]", "[2**63]", "-2**63", "[[1], [2, 3]]",
                         "np.float64(1.5)", "[np.int8(3)]", "range(3)"])  # fmt: skip
    return [data], named(g, 0.4, dtype=f"mx.{g.choice(ALL)}")


ACTIVATIONS = """celu elu gelu gelu_approx gelu_fast_approx glu hard_shrink hard_tanh hardswish
leaky_relu
log_sigmoid log_softmax mish relu relu2 relu6 selu sigmoid silu softmax softmin softplus softshrink
softsign
step tanh""".split()
LOSSES = """binary_cross_entropy cosine_similarity_loss cross_entropy gaussian_nll_loss hinge_loss
huber_loss
kl_div_loss l1_loss log_cosh_loss margin_ranking_loss mse_loss nll_loss smooth_l1_loss
triplet_loss""".split()


@family(" ".join("nn." + name for name in ACTIVATIONS) + " nn.prelu")
def activation(g, name):
    a = g.array(g.shape(rank=g.choice([1, 2, 3])), FLOATS[:5])
    if name == "nn.prelu":
        return [a, "mx.array([0.25], dtype=mx.%s)" % g.kinds[a]], {}
    rank = len(g.shapes[a])
    if name in ("nn.softmax", "nn.softmin", "nn.log_softmax", "nn.glu"):
        return [a], named(g, 1.0, axis=g.axis(rank))
    return [a], {}


@family(" ".join("nn.losses." + name for name in LOSSES))
def loss(g, name):
    kind = name.rpartition(".")[2]
    dtype = g.choice(["float32", "float32", *HALVES])
    shape = g.shape(rank=2, low=1, largest=400)
    a = g.array(shape, dtype, "unit" if kind == "binary_cross_entropy" else "plain")
    more = named(g, 0.5, reduction=g.choice(["'none'", "'mean'", "'sum'", "'x'"]))
    if kind in ("cross_entropy", "nll_loss"):
        return [a, f"mx.abs({g.array(shape[:1], 'int32', 'index', shape[1] - 1)})"], more
    b = g.array(shape, dtype, "unit" if kind == "binary_cross_entropy" else "plain")
    if kind == "binary_cross_entropy":
        return [f"mx.abs({a})", f"mx.abs({b})"], more | named(g, with_logits="False")
    if kind in ("gaussian_nll_loss", "margin_ranking_loss", "triplet_loss"):
        return [a, b, g.array(shape, dtype, "positive")], more
    if kind == "cosine_similarity_loss":
        more |= named(g, axis=g.choice(["0", "1", "-1"]))
    return [a, b], more


@family("method")
def method(g, name):
    """What arrays have besides the functions: attributes, conversions, Python's protocols."""
    a = g.array(g.choice([(), (1,), (1, 1), g.shape(largest=60)]))
    text = g.choice([
        "@.T", "@.mT", "@.item()", "@.tolist()", "@.shape", "@.size", "@.ndim", "str(@.dtype)",
            "@.itemsize",
        "@.nbytes", "repr(@)", "str(@)", "len(@)", "bool(@)", "int(@)", "float(@)", "complex(@)",
            "list(@)",
        "~@", "-@", "+@", "abs(@)", "round(@)", "__import__('copy').copy(@)",
            "__import__('copy').deepcopy(@)",
        "__import__('pickle').loads(__import__('pickle').dumps(@))", "bytes(@)", "f'{@}'",
            "np.array(@).shape",
        "1 in @", "[1, 2, 3][@]", "list(reversed(@))", "np.asarray(@).dtype.kind",
            "@.astype(mx.int8)", "memoryview(@).nbytes",
        "f'{@:.3f}'", "isinstance(hash(@), int)", "@ == None", "@ != 'x'", "@ is @",
    ])  # fmt: skip
    return None, [a], text.replace("@", a)
