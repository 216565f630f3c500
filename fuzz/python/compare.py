"""Whether two results are the same: shapes, and elements within what their dtype can say."""

import numpy as np

import values

RELATIVE = {
    "float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2, "complex64": 3e-5,
}  # fmt: skip
LARGEST = {
    "float64": 1.797e308, "float32": 3.4e38, "float16": 65500.0, "bfloat16": 3.38e38,
        "complex64": 3.4e38,
}  # fmt: skip
SMALLEST = {
    "float64": 2e-323, "float32": 6e-45, "float16": 2.4e-7, "bfloat16": 4e-40, "complex64": 6e-45,
}  # fmt: skip


def is_array(x):
    return isinstance(x, tuple) and len(x) == 4 and x[0] == "array"


def elements_differ(have, want, dtype, relative=None, scale=0.0, signs=False, tiny=None):
    """Where `have`, of `dtype`, is not `want`: a text, or None. `scale` is what an error counts
    against besides the value itself: for sums the sum of the absolute values."""
    have, want = np.asarray(have), np.asarray(want)
    if have.shape != want.shape:
        return f"shape {have.shape}, expected {want.shape}"
    if have.dtype.kind in "iub":
        same = _integers(have, want)
    elif have.dtype.kind == "c":
        same = _complex(have, want, dtype, relative, scale)
    else:
        same = _floats(have, want, dtype, relative, scale, signs, tiny)
    if same.all():
        return None
    return _first(have, want, ~same)


def _first(have, want, wrong):
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    count = f"{int(wrong.sum())} of {wrong.size} elements"
    return f"{count} differ, the first at {at}: {have[at]!r}, expected {want[at]!r}"


def _integers(have, want):
    with np.errstate(all="ignore"):
        if want.dtype.kind in "fc":
            want = want.real
            if have.dtype.kind == "b":
                return have == (want != 0)
            info = np.iinfo(have.dtype)
            # What does not fit has no value that anybody promises.
            inside = np.isfinite(want) & (want > info.min - 1.0) & (want < float(info.max))
            return ~inside | (have == np.where(inside, want, 0).astype(have.dtype))
        return have == want.astype(have.dtype)


def _floats(have, want, dtype, relative, scale, signs, tiny):
    relative = RELATIVE[dtype] if relative is None else relative
    with np.errstate(all="ignore"):
        want = want.real if want.dtype.kind == "c" else want
        h, w = have.astype(np.float64), values.cast(want, dtype).astype(np.float64)
        bound = relative * (np.abs(w) + scale) + (SMALLEST[dtype] if tiny is None else tiny)
        same = (h == w) | (np.isnan(h) & np.isnan(w)) | (np.abs(h - w) <= bound)
        same |= ~np.isfinite(np.broadcast_to(scale, same.shape)) & np.isfinite(w)
        overflow = (np.isinf(h) != np.isinf(w)) & (np.sign(h) == np.sign(w))
        overflow &= np.abs(h) > LARGEST[dtype]
        same |= overflow & (np.abs(w) > LARGEST[dtype] * (1 - 2 * relative))
        same |= np.broadcast_to(scale, same.shape) > LARGEST[dtype]
        if signs:
            same &= (h != 0) | (w != 0) | (np.signbit(h) == np.signbit(w))
    return same


def _complex(have, want, dtype, relative, scale):
    """Which part of an infinite number is NaN is nobody's promise."""
    relative = relative or RELATIVE[dtype]
    with np.errstate(all="ignore"):
        size = np.abs(want) + scale
        plain = np.isfinite(want) & (size < 1e18)
        return ~plain | (np.abs(have - want) <= relative * size + 1e-30)
