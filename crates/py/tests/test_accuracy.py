"""Functions against NumPy's in twice the precision: of real numbers all over float32, and of complex
ones on a grid of magnitudes, signs of zeros, infinities and NaN, whose special cases are those of
C99, Annex G."""

import math
import os

import numpy as np
import pytest

import cupola.core as mx

DEVICE = os.environ.get("CUPOLA_TEST_DEVICE", "cpu")

SIZES = [0.0, 1e-45, 1e-38, 1e-25, 1e-10, 1e-4, 0.3, 0.5, 1.0, 1.0000001, 2.0, 8.5, 30.0, 88.0, 95.0]
SIZES += [100.0, 1e3, 1e10, 1e20, 2e38, 3.4e38]
PARTS = np.array([sign * size for size in SIZES + [np.inf] for sign in (1, -1)] + [np.nan], np.float32)



def expm1(z):
    """NumPy's loses what is finite beside an infinite factor."""
    x, y = z.real, z.imag
    return joined(np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2, np.exp(x) * np.sin(y))


def log1p(z):
    """NumPy's adds 1 first."""
    x, y = z.real, z.imag
    near = np.hypot(x, y) < 0.5
    inside = np.where(near, x * (x + 2) + y * y, 0)
    return joined(np.where(near, np.log1p(inside) / 2, np.log(1 + z).real), np.arctan2(y, 1 + x))


def rsqrt(z):
    """NumPy has none, and its quotient loses signs of zeros."""
    w = np.sqrt(z)
    size = w.real**2 + w.imag**2
    return joined(w.real / size, -w.imag / size)


# What is not in NumPy, or not as accurate, is compared where it is finite.
OWN = {"expm1": expm1, "log1p": log1p, "rsqrt": rsqrt}
NAMES = "sqrt exp log log2 log10 sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh"
NAMES = [*NAMES.split(), "abs", *OWN]


def joined(re, im):
    """re + i·im; NumPy would add 0·i to re and lose signs and infinities."""
    z = np.empty(re.shape, np.complex128)
    z.real, z.imag = re, im
    return z


def grid():
    """Every part with every other."""
    re, im = np.meshgrid(PARTS, PARTS, indexing="ij")
    return joined(re.ravel(), im.ravel())


def parts(w):
    return (w.real, w.imag) if np.iscomplexobj(w) else (w,)


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", NAMES)
def test_complex_numbers_on_a_grid(name):
    z = grid()
    exact = OWN.get(name, getattr(np, name, None))(z)
    got = np.array(getattr(mx, name)(mx.array(z.astype(np.complex64))))
    # GPUs are accurate relative to the whole number, and lose what is subnormal.
    on_cpu = DEVICE == "cpu"
    compared = np.isfinite(exact) if name in OWN else np.full(z.shape, True)
    bad = []
    for which, ours, theirs in zip(("re", "im"), parts(got), parts(exact)):
        rounded = theirs.astype(np.float32)
        size = np.abs(theirs) if on_cpu else np.abs(exact)
        off = np.abs(ours - theirs)
        close = off <= (size * 3e-7 + 1.5e-45 if on_cpu else size * 2e-6 + 2e-38)
        close |= (ours == rounded) | (np.isnan(ours) & np.isnan(rounded))
        # What beside a NaN is infinite has any sign, what is zero where an angle is lost likewise.
        beside_nan = np.isnan(sum(parts(got)))
        close |= beside_nan & np.isinf(ours) & np.isinf(rounded)
        lost = beside_nan | ~np.isfinite(z)
        zero = (ours == 0) & (rounded == 0) & (theirs == 0)
        close &= ~zero | lost | (np.signbit(ours) == np.signbit(rounded))
        bad += [
            f"{name}({z[i]}).{which} is {ours[i]}, not {rounded[i]}"
            for i in np.flatnonzero(~close & compared)
        ]
    assert not bad, "\n".join([f"{len(bad)} of {z.size}:", *bad[:40]])


REAL = {name: getattr(np, name) for name in NAMES if name not in ("abs", "rsqrt")}
REAL |= {"rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x))}
REAL |= {"erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc)}
SMALLEST, LARGEST = np.finfo(np.float32).tiny, np.finfo(np.float32).max


def units(ours, exact):
    """The error in units in the last place of float32, where the result is a normal number."""
    size = np.abs(exact)
    compared = np.isfinite(exact) & (size > SMALLEST * 1.01) & (size < LARGEST)
    last = np.exp2(np.floor(np.log2(np.where(compared, size, 1))) - 23)
    error = np.where(compared, np.abs(ours - exact) / last, 0)
    return np.where(np.isnan(error), np.inf, error)


def assert_close(name, error, *operands):
    worst = error.argmax()
    at = ", ".join(str(x[worst]) for x in operands)
    assert error[worst] <= 4, f"{name}({at}) is off by {error[worst]} units in the last place"


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", REAL)
def test_real_numbers_of_every_size(name):
    x = np.arange(0, 2**32, 40_009, dtype=np.uint32).view(np.float32)
    x = x[~((np.abs(x) < SMALLEST) & (x != 0))]
    ours = np.array(getattr(mx, name)(mx.array(x)))
    assert_close(name, units(ours, REAL[name](x.astype(np.float64))), x)


@np.errstate(all="ignore")
def test_angles_and_powers_of_every_size():
    random = np.random.default_rng(1)
    x = random.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    x = x[np.abs(x) > SMALLEST]
    y = (x * np.exp2(random.uniform(-3, 3, x.size))).astype(np.float32)
    x, y = x[np.abs(y) > SMALLEST], y[np.abs(y) > SMALLEST]
    ours = np.array(mx.arctan2(mx.array(x), mx.array(y)))
    assert_close("arctan2", units(ours, np.arctan2(x.astype(np.float64), y)), x, y)
    base, to = np.abs(x), random.uniform(-4, 4, x.size).astype(np.float32)
    ours = np.array(mx.power(mx.array(base), mx.array(to)))
    assert_close("power", units(ours, base.astype(np.float64) ** to), base, to)
