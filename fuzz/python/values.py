"""Random arrays: shapes, dtypes, special values, and the views that they are seen through.

An operand is a text, such as `array((3, 4), "float32", 7, "plain").transpose((1, 0))`, which each
package evaluates for itself: so a case is a program to read, and the same one everywhere.
"""

import numpy as np

BOOL = ["bool_"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
SIGNED = ["int8", "int16", "int32", "int64"]
INTEGERS = UNSIGNED + SIGNED
HALVES = ["float16", "bfloat16"]
FLOATS = ["float32", "float32", "float32", *HALVES, "float64"]
REALS = BOOL + INTEGERS + FLOATS
COMPLEX = ["complex64"]
ALL = REALS + COMPLEX

SIZES = [0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8]
EDGES = [15, 16, 17, 31, 32, 33, 63, 64, 65]
LARGEST = 6000

# NumPy's dtype for the elements of each; those of bfloat16 are float32 that bfloat16 holds.
STORED = {"bool_": np.bool_, "bfloat16": np.float32}


def stored(dtype):
    return STORED.get(dtype) or getattr(np, dtype)


def round_bfloat16(x):
    """float32 rounded to the nearest of bfloat16, ties to even."""
    x = np.asarray(x, np.float32)
    bits = x.view(np.uint32)
    even = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded = (even & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isfinite(x), rounded, x).astype(np.float32)


def odd_float32(x):
    """Integers as float32: where they do not fit, the neighbour whose last bit is set, so that what
    is rounded further is rounded once."""
    exact = x.astype(np.float64)
    near = exact.astype(np.float32)
    above = np.abs(near.astype(np.float64)) > np.abs(exact)
    inner = np.where(above, np.nextafter(near, np.float32(0)), near)
    bits = inner.view(np.uint32) | (near != exact).astype(np.uint32)
    return bits.view(np.float32)


def cast(x, dtype):
    """As `astype`, with the rounding of bfloat16."""
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            x = np.asarray(x)
            return round_bfloat16(odd_float32(x) if x.dtype.kind in "iu" else x)
        return np.asarray(x).astype(stored(dtype))


def _special(dtype):
    kind = np.dtype(stored(dtype)).kind
    if kind == "b":
        return [False, True]
    if kind in "iu":
        info = np.iinfo(stored(dtype))
        return [0, 1, 2, 3, info.min, info.max, info.max - 1, info.min + 1, info.bits,
            info.bits - 1]
    info = np.finfo(stored("float16" if dtype == "float16" else dtype))
    tiny = 9.2e-41 if dtype == "bfloat16" else float(info.smallest_subnormal)
    largest = 3.3895e38 if dtype == "bfloat16" else float(info.max)
    ordinary = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -1.5, 3.0]
    return [*ordinary, np.inf, -np.inf, np.nan, largest, -largest, tiny, -tiny, float(info.tiny)]


def _plain(rng, shape, kind, flavour):
    if flavour == "index":
        return rng.integers(0, 120, shape)
    if kind == "b":
        return rng.integers(0, 2, shape)
    if kind == "u" or flavour == "positive" and kind == "i":
        return rng.integers(0, 8, shape)
    if kind == "i":
        return rng.integers(-7, 8, shape)
    x = rng.integers(-32, 33, shape) / 8
    if flavour == "positive":
        return np.abs(x) + 0.25
    return x / 4.125 if flavour == "unit" else x


def values(shape, dtype, seed, flavour="plain"):
    """The elements of an operand: small numbers of few digits ("plain"), of one sign ("positive"),
    in (-1, 1) ("unit"), normal ("normal"), of every size ("wide"), or with what is special of
    their dtype."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(stored(dtype)).kind
    real = "f" if kind == "c" else kind
    if flavour == "wide" and kind in "iu":
        info = np.iinfo(stored(dtype))
        return rng.integers(info.min, info.max, shape, stored(dtype), endpoint=True)
    if flavour == "normal":
        return cast(rng.standard_normal(shape), dtype)
    with np.errstate(all="ignore"):
        x = np.asarray(_plain(rng, shape, real, flavour))
        if flavour == "wide" and real == "f":
            x = x * 10.0 ** rng.integers(-30, 31, shape)
        if kind == "c":
            x = x + 1j * _plain(rng, shape, real, flavour)
        x = np.asarray(cast(x, dtype))
        if flavour == "special":
            which = rng.random(shape) < 0.6
            specials = np.array(_special(dtype),
                object)[rng.integers(0, len(_special(dtype)), shape)]
            x = np.where(which, cast(specials, dtype), x).astype(stored(dtype))
    return x


def wrapped(x, size):
    """Indices of an axis of this size; those that can be negative count from its end, too."""
    if not size:
        return x * 0
    return x % x.dtype.type(size) if x.dtype.kind == "u" else x % (2 * size) - size


def shape(rng, rank=None, largest=LARGEST, low=0):
    """A random shape: mostly small, now and then at the edges of blocks."""
    rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5]) if rank is None else rank
    sizes = [max(low, rng.choice(EDGES if rng.random() < 0.12 else SIZES)) for _ in range(rank)]
    while np.prod(sizes, dtype=float) > largest:
        k = max(range(rank), key=lambda k: sizes[k])
        sizes[k] = max(low, 1, sizes[k] // 3)
    return tuple(sizes)


def _strided(rng, size):
    """The size of a longer axis, and the slice of it that has `size` elements."""
    step, start, more = rng.choice([1, 1, 2, 3, -1, -1, -2]), rng.randrange(3), rng.randrange(3)
    if size == 0:
        return start + more, f"{start}:{start}"
    reach = (size - 1) * abs(step)
    longer = start + reach + 1 + more
    if step > 0:
        return longer, f"{start}:{start + reach + 1}:{step}"
    return longer, f"{start + reach}:{start - 1 if start else ''}:{step}"


def view(rng, shape):
    """The shape of a base, and a text with a hole for it that gives a view of `shape`."""
    way = rng.choice(["dense"] * 5 + ["transposed", "sliced", "sliced", "broadcast", "reshaped",
        "row"])
    rank = len(shape)
    if way == "transposed" and rank > 1:
        axes = rng.sample(range(rank), rank)
        base = [0] * rank
        for place, axis in enumerate(axes):
            base[axis] = shape[place]
        if rng.random() < 0.3:
            base, text = view(rng, tuple(base))
        else:
            text = "{}"
        return tuple(base), f"{text}.transpose({tuple(axes)})"
    if way == "sliced" and rank:
        base, parts = zip(*(_strided(rng, n) for n in shape))
        # Of a view of nothing the base may be anything.
        if np.prod(base, dtype=float) <= 100 * LARGEST:
            return base, f"{{}}[{', '.join(parts)}]"
    if way == "broadcast" and rank:
        base = [1 if rng.random() < 0.5 else n for n in shape][rng.randrange(rank) :]
        return tuple(base), f"mx.broadcast_to({{}}, {shape})"
    if way == "reshaped":
        return (int(np.prod(shape)),), f"{{}}.reshape({shape})"
    if way == "row":
        return (3, *shape), "{}[1]"
    return shape, "{}"


def literal(shape, dtype, seed, flavour="plain", size=None):
    """The elements as a text of NumPy's, where they are few."""
    x = values(shape, dtype, seed, flavour)
    x = x if size is None else wrapped(x, size)
    if x.size > 40:
        return None
    name = f"np.{np.dtype(stored(dtype)).name.replace('bool', 'bool_')}"
    if not x.size:
        return f"np.zeros({x.shape}, {name})"
    digits = repr(x.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    return f"np.array({digits}, {name})"
