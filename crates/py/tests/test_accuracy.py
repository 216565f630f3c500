"""Functions against NumPy's in twice the precision: of real numbers all over float32, and of complex
ones on a grid of magnitudes, signs of zeros, infinities and NaN, whose special cases are those of
C99, Annex G."""

import decimal
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
        lost = beside_nan | ~np.isfinite({"tan": z.real, "tanh": z.imag}.get(name, z))
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


def exactly(x, decimals):
    """A number rounded to decimals, ties to even, without intermediate rounding."""
    if not np.isfinite(x):
        return x
    step = decimal.Decimal(1).scaleb(-decimals)
    with decimal.localcontext(prec=800):
        number = decimal.Decimal(float(x))
        return float((number / step).to_integral_value(decimal.ROUND_HALF_EVEN) * step)


@np.errstate(all="ignore")
@pytest.mark.parametrize("decimals", [-400, -40, -39, -5, -4, -1, 0, 1, 2, 7, 15, 38, 40, 46, 60, 400])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_rounding_to_decimals(dtype, decimals):
    if dtype == "float64" and DEVICE != "cpu":
        pytest.skip("GPUs have no float64")
    random = np.random.default_rng(3)
    plain = np.round(random.uniform(-99, 99, 300), 3)
    sizes = random.standard_normal(300) * 10.0 ** random.integers(-44, 38, 300)
    x = np.concatenate([plain, sizes, [0.0, -0.0, 3.25, 1234.5678, 60000.0, 3e38, np.inf, -np.inf, np.nan]])
    kind = mx.float32 if dtype == "complex64" else getattr(mx, dtype)
    given = mx.array(x, dtype=mx.float64).astype(kind)
    whole = np.array(given.astype(mx.float64))
    if dtype == "complex64":
        whole = whole[: whole.size // 2 * 2]
        rounded = mx.round(given[: whole.size].view(mx.complex64), decimals)
        ours = np.array(rounded.view(mx.float32)).astype(np.float64)
    else:
        ours = np.array(mx.round(given, decimals).astype(mx.float64))
    exact = np.array([exactly(v, decimals) for v in whole])
    largest = float(np.finfo(np.float32 if dtype in ("bfloat16", "complex64") else dtype).max)
    exact = np.where(np.abs(exact) > largest * 1.001, np.copysign(np.inf, exact), exact)
    # One unit of the dtype, or one step where the number is within rounding of two of them.
    unit = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-51}.get(dtype, 2.0**-22)
    # GPUs may take subnormal numbers for zero.
    least = 1.2e-38 if DEVICE != "cpu" and dtype != "float16" else {"float16": 6e-8, "bfloat16": 1e-40, "float64": 1e-323}.get(
        dtype, 3e-45
    )
    with decimal.localcontext(prec=50):
        step = float(decimal.Decimal(1).scaleb(-decimals))
    scaled = np.abs(whole) / step if step > 0 else np.zeros_like(whole)
    is_tie = np.abs(scaled % 1 - 0.5) < scaled * 1e-6
    same = (ours == exact) | (np.isnan(ours) & np.isnan(exact)) | (np.abs(ours - exact) <= unit * np.abs(exact) + least)
    same |= is_tie & (np.abs(ours - exact) <= step * 1.001)
    worst = np.argmin(same)
    assert same.all(), f"round({whole[worst]}, {decimals}) is {ours[worst]}, expected {exact[worst]}"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_rounding_of_integers_to_tens(dtype):
    info, random = np.iinfo(dtype), np.random.default_rng(4)
    x = random.integers(info.min, info.max, 500, dtype, endpoint=True)
    ties = [t for t in range(-500, 501, 5) if info.min <= t <= info.max]
    x = np.concatenate([x, np.array(ties, dtype)])
    for power in (1, 2, 3, 9, 18, 30):
        step = 10**power
        ours = np.array(mx.round(mx.array(x), -power))
        for have, v in zip(ours.tolist(), x.tolist(), strict=True):
            tens, rest = divmod(v, step)
            exact = (tens + (2 * rest + (tens & 1) > step)) * step
            if info.min <= exact <= info.max:
                assert have == exact, f"round({v}, {-power}) is {have}, expected {exact}"
    assert mx.round(mx.array([True, False]), -1).tolist() == [False, False]


def test_rounding_has_no_slope():
    for decimals in (-1, 0, 2, 40):
        slope = mx.grad(lambda x, d=decimals: mx.round(x, d).sum())(mx.array([1.25, 3e30, 0.0]))
        assert slope.tolist() == [0, 0, 0]


@np.errstate(all="ignore")
def test_quotients_at_the_ends_of_the_range():
    ends = [0.0, 1.0, -3.0, 1e-30, 2e19, 1e30, 2e38, 3.4e38, -3.4e38]
    z = joined(*(part.ravel() for part in np.meshgrid(ends, ends))).astype(np.complex64)
    a, b = (part.ravel() for part in np.meshgrid(z, z[1:]))
    exact = a.astype(np.complex128) / b.astype(np.complex128)
    got = np.array(mx.divide(mx.array(a), mx.array(b)))
    # What is infinite or subnormal in float32 is another test's.
    compared = (np.abs(exact) < 1e38) & (np.abs(exact) > 1e-37)
    assert compared.sum() > 4000
    assert np.max((np.abs(got - exact) / np.abs(exact))[compared]) < 1e-6


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_cast_of_float64_rounds_once(name):
    digits = {"float16": 11, "bfloat16": 8}[name]
    # The middle between two neighbours, and a little beside it: less than float32 tells.
    middle = 1 + 2.0**-digits
    x = np.array([middle, middle + 2.0**-40, middle - 2.0**-40, -middle - 2.0**-40, 1 + 3 * 2.0**-digits - 2.0**-40])
    step = 2.0 ** (1 - digits)
    want = [1, 1 + step, 1, -1 - step, 1 + step]
    got = mx.array(x, dtype=mx.float64).astype(getattr(mx, name)).astype(mx.float32)
    assert got.tolist() == want


SLOPES = {
    "arcsin": lambda z: 1 / (np.sqrt(1 - z) * np.sqrt(1 + z)),
    "arccos": lambda z: -1 / (np.sqrt(1 - z) * np.sqrt(1 + z)),
    "arcsinh": lambda z: 1 / (np.sqrt(1 + 1j * z) * np.sqrt(1 - 1j * z)),
    "arccosh": lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1)),
    "arctan": lambda z: 1 / (1 + z * z),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_where_the_square_is_too_large(name):
    """By complex numbers on both sides of the cuts, and by real ones of any size."""
    points = np.array([0.3 + 0.4j, 2 + 1j, -2 - 1j, 1e20j, -1e20 + 3j, 1e30 + 1e30j, 2 - 1e-3j, 0.5 - 3j, 3j, -1.5 + 0j])
    gradient = mx.grad(lambda x: mx.real(getattr(mx, name)(x)).sum())(mx.array(points, dtype=mx.complex64))
    want = np.conj(SLOPES[name](points.astype(np.complex64).astype(np.complex128)))
    assert np.all(abs(np.array(gradient) - want) <= 3e-6 * abs(want) + 1e-38)
    if name in ("arcsin", "arccos"):
        return
    for dtype, sizes, within in (
        (mx.float32, [0.5, 2, 300, 1e15, 1e20, 1e30, np.inf], 5e-7),
        (mx.float16, [0.5, 2, 10, 200, 300, 60_000, np.inf], 3e-3),
        (mx.float64, [0.5, 3, 1e100, 1e200], 1e-15),
    ):
        x = mx.array([v for v in sizes if name != "arccosh" or v > 1], dtype=dtype)
        slope = np.array(mx.grad(lambda x: getattr(mx, name)(x).astype(mx.float32).sum())(x).astype(mx.float64))
        with np.errstate(all="ignore"):
            want = SLOPES[name](np.array(x.astype(mx.float64)).astype(np.float64) + 0j).real
        want = np.where(np.array(x.astype(mx.float64)) == np.inf, 0, want)
        assert np.all(abs(slope - want) <= within * abs(want) + (6e-8 if dtype == mx.float16 else 1e-38)), (dtype, slope)
