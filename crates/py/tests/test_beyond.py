"""Functions that MLX does not have, against NumPy, SciPy and the definitions of PyTorch."""

import math

import numpy as np
import pytest
from conftest import cc, values

special = pytest.importorskip("scipy.special")

FLOATS = ["float16", "bfloat16", "float32"]
HALF = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6}
EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, 1.5e-42, 3.4e38, -3.4e38,
     7.0, -7.0, 1e-10, 1e10],
    np.float32,
)  # fmt: skip
PAIRS = tuple(np.array(np.meshgrid(EDGES, EDGES)).reshape(2, -1))


def bits(x):
    return np.asarray(x).view({2: np.uint16, 4: np.uint32, 8: np.uint64}[np.asarray(x).dtype.itemsize])


def exact(ours, theirs):
    """The same numbers to the sign of zero; any NaN is NaN."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, (ours.dtype, theirs.dtype, ours.shape, theirs.shape)
    if ours.dtype.kind == "f":
        known = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
        ours, theirs = bits(ours[known]), bits(theirs[known])
    np.testing.assert_array_equal(ours, theirs)


def close(ours, theirs, rtol=2e-6, atol=0.0):
    np.testing.assert_allclose(values(ours) if isinstance(ours, cc.array) else ours, theirs, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", "copysign fmax fmin fmod nextafter heaviside".split())
def test_pairs_are_exact(name):
    a, b = PAIRS
    with np.errstate(all="ignore"):
        want = getattr(np, name)(a, b)
    got = np.array(getattr(cc, name)(cc.array(a), cc.array(b)))
    if name in ("fmax", "fmin", "heaviside"):
        # Of zeros either sign is the larger.
        want, got = want + 0.0, got + 0.0
    exact(got, want)


@pytest.mark.parametrize("name", "fmod fmax fmin".split())
@pytest.mark.parametrize("dtype", "int8 uint8 int16 int32 uint32 int64".split())
def test_pairs_of_integers(name, dtype):
    info = np.iinfo(dtype)
    some = np.array([0, 1, 2, 3, 7, 100, info.min, info.max, info.min + 1], dtype)
    a, b = (x.reshape(-1) for x in np.meshgrid(some, some))
    keep = (b != 0) & ~((a == info.min) & (b == np.array(-1).astype(dtype)))
    a, b = a[keep], b[keep]
    exact(np.array(getattr(cc, name)(cc.array(a), cc.array(b))), getattr(np, name)(a, b))
    assert np.all(np.array(cc.fmod(cc.array(a), cc.zeros_like(cc.array(a)))) == 0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_parts_of_floats(dtype):
    with np.errstate(over="ignore"):
        x = np.concatenate([EDGES, np.random.default_rng(0).normal(size=500) * 10.0 ** np.arange(-50, 50).repeat(5)]).astype(dtype)
    with cc.stream(cc.cpu):
        ours = cc.array(x, dtype=getattr(cc, x.dtype.name))
        m, k = cc.frexp(ours)
        want_m, want_k = np.frexp(x)
        finite = np.isfinite(x)
        exact(np.array(m), want_m)
        exact(np.array(k)[finite], want_k[finite])
        with np.errstate(all="ignore"):
            exact(np.array(cc.ldexp(m, k)), np.ldexp(want_m, np.where(finite, want_k, 0)).astype(dtype))
            for k in (-2000, -300, -150, -149, -20, 3, 127, 128, 300, 2000):
                exact(np.array(cc.ldexp(ours, k)), np.ldexp(x, k).astype(dtype))
            exact(np.array(cc.frac(ours)) + 0.0, (x - np.trunc(x)) + dtype(0))
            # Of equal numbers C gives the second, NumPy's half type the first.
            zero = dtype(0)
            exact(np.array(cc.nextafter(ours, cc.array(np.roll(x, 1), dtype=ours.dtype))) + zero, np.nextafter(x, np.roll(x, 1)) + zero)
        exact(np.array(cc.signbit(ours)), np.signbit(x))


def test_signs_of_integers():
    exact(np.array(cc.signbit(cc.array([-1, 0, 3]))), np.array([True, False, False]))
    exact(np.array(cc.signbit(cc.array([1, 0], dtype=cc.uint8))), np.array([False, False]))
    assert cc.copysign(cc.array([2]), cc.array([-1])).dtype == cc.float32
    assert cc.copysign(cc.array([2.0], dtype=cc.bfloat16), -1.0).dtype == cc.bfloat16


def test_hypot():
    a, b = PAIRS
    with np.errstate(all="ignore"):
        want = np.hypot(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    got = np.array(cc.hypot(cc.array(a), cc.array(b)))
    close(got, want, 2e-7, 1e-45)
    grad = cc.grad(lambda x: cc.hypot(x[0], x[1]))
    close(grad(cc.array([3.0, 4.0])), [0.6, 0.8])
    close(grad(cc.array([2.0, 2.0])), [math.sqrt(0.5)] * 2)
    close(grad(cc.array([0.0, 0.0])), [0.0, 0.0])


def test_logarithms_and_their_like():
    x = np.array([0.0, 0.0, 0.0, 0.0, 2.0, 0.5, 0.0, np.nan], np.float32)
    y = np.array([0.0, -1.0, np.inf, np.nan, 3.0, 0.0, 2.0, 1.0], np.float32)
    close(cc.xlogy(cc.array(x), cc.array(y)), special.xlogy(x, y))
    p = np.concatenate([np.linspace(0, 1, 257), [-0.5, 1.5, 1e-30, np.nan]]).astype(np.float32)
    close(cc.logit(cc.array(p)), special.logit(p.astype(np.float64)), 1e-6)
    close(cc.logit(cc.array(p[:9]), eps=0.25), special.logit(np.clip(p[:9], 0.25, 0.75)), 1e-6)
    close(cc.grad(lambda x: cc.logit(x).sum())(cc.array([0.1, 0.5, 0.9])), 1 / (np.array([0.1, 0.5, 0.9]) * [0.9, 0.5, 0.1]), 1e-5)
    x = np.concatenate([np.linspace(-9, 9, 1001), [0.0, 1e-8, 1e30, np.inf, -np.inf, np.nan]])
    with np.errstate(invalid="ignore"):
        want = np.sinc(x.astype(np.float32).astype(np.float64))
    want[x == 1e30] = 0
    close(cc.sinc(cc.array(x.astype(np.float32))), want, 1e-5, 2e-8)
    z = np.array([1j, 0, 1, 2.5 + 0.5j, 0.1 + 0.1j, -3 - 2j, 0.2j], np.complex64)
    close(cc.sinc(cc.array(z)), np.sinc(z.astype(np.complex128)), 1e-5, 1e-6)
    second = cc.grad(lambda x: cc.grad(cc.sinc)(x))
    close(second(cc.array(0.0)), -math.pi**2 / 3, 1e-5)


GAMMA = np.concatenate([
    np.linspace(0.001, 30, 4001), np.linspace(-12.4, -0.01, 1713), [0.0, 1e-30, 1e-10, 1.0, 2.0, 100.0, 1e6, 1e30, np.inf, np.nan],
]).astype(np.float32)  # fmt: skip


def test_slopes_of_i0_where_it_is_infinite():
    for kind, at in ((cc.float32, [100.0, 300.0]), (cc.float16, [80.0, 1000.0]), (cc.float64, [720.0, 1e5])):
        with cc.stream(cc.cpu):
            x = cc.array([at[0], -at[1], float("inf")], kind)
            assert cc.grad(lambda x: cc.i0(x).sum())(x).tolist() == [float("inf"), -float("inf"), float("inf")]
            assert cc.jvp(cc.i0, (x,), (cc.ones(3, kind),))[1][0].tolist() == [float("inf"), -float("inf"), float("inf")]


def test_differences_with_what_stands_beside():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2
    for axis in (0, 1, -1):
        for n in (1, 2, 7):
            for given in ({"prepend": 0}, {"append": 5.0}, {"prepend": x, "append": x[:, :, ::-1].copy()}):
                ours = {name: cc.array(v) if isinstance(v, np.ndarray) else v for name, v in given.items()}
                exact(np.array(cc.diff(cc.array(x), n, axis, **ours)), np.diff(x, n, axis, **given).astype(np.float32))
    flags = np.array([True, False, False])
    exact(np.array(cc.diff(cc.array(flags), prepend=cc.array(False))), np.diff(flags, prepend=False))


def test_gamma_functions():
    x, wide = cc.array(GAMMA), GAMMA.astype(np.float64)
    want = special.gammaln(wide)
    error = np.abs(np.array(cc.lgamma(x)).astype(np.float64) - want)
    known = np.isfinite(want)
    # Near its zeros below 0 the function is a difference of logarithms.
    positive = known & (wide > 0)
    assert np.all(error[positive] <= 3e-7 * np.abs(want[positive]) + 1e-44)
    assert np.all(error[known] <= 4e-6 * np.maximum(np.abs(want[known]), 1))
    exact(np.array(cc.lgamma(x))[~known & ~np.isnan(want)], want[~known & ~np.isnan(want)].astype(np.float32))
    want = special.psi(wide)
    got = np.array(cc.digamma(x)).astype(np.float64)
    near = known & (np.abs(want) < 1e30)
    assert np.all(np.abs(got - want)[near & (wide > 0)] <= 1e-6 * np.maximum(np.abs(want), 1)[near & (wide > 0)])
    slope = special.polygamma(1, wide)
    assert np.all((np.abs(got - want) <= 2e-6 * np.maximum(np.abs(want), 1) + 2e-7 * np.abs(wide * slope))[near])
    poles = np.array(cc.digamma(cc.array([0.0, -0.0, -1.0, -2.0])))
    assert poles[0] == -np.inf and poles[1] == np.inf and np.isnan(poles[2:]).all()
    assert np.array(cc.lgamma(cc.array([0.0, -0.0, -1.0, -2.0, -np.inf, np.inf]))).tolist() == [np.inf] * 6
    slopes = [cc.grad(cc.lgamma)(cc.array(end)).item() for end in (np.inf, -np.inf)]
    assert slopes[0] == np.inf and np.isnan(slopes[1])


def test_gamma_functions_in_double():
    with cc.stream(cc.cpu):
        wide = np.concatenate([np.linspace(0.001, 40, 3001), np.linspace(-8.45, -0.01, 500), [1e10]])
        x = cc.array(wide, dtype=cc.float64)
        want = special.gammaln(wide)
        assert np.all(np.abs(np.array(cc.lgamma(x)) - want) <= 2e-14 * np.maximum(np.abs(want), 1))
        want = special.psi(wide)
        assert np.all(np.abs(np.array(cc.digamma(x)) - want) <= 2e-14 * np.maximum(np.abs(want), 1) * (1 + np.abs(special.polygamma(1, wide))))
        x = np.linspace(-60, 60, 2001)
        close(np.array(cc.i0(cc.array(x, dtype=cc.float64))), special.i0(x), 2e-14)


def test_derivatives_of_special_functions():
    x = np.linspace(0.05, 12, 200).astype(np.float32)
    slopes = [(cc.lgamma, special.psi), (cc.digamma, lambda x: special.polygamma(1, x)), (cc.i0, special.i1)]
    for f, want in slopes:
        want = want(x.astype(np.float64))
        got = np.array(cc.grad(lambda x: f(x).sum())(cc.array(x)))
        assert np.all(np.abs(got - want) <= 4e-6 * np.maximum(np.abs(want), 1)), f
        moved = cc.jvp(f, [cc.array(x)], [cc.ones(200)])[1][0]
        assert np.all(np.abs(np.array(moved) - want) <= 4e-6 * np.maximum(np.abs(want), 1)), f
    twice = cc.grad(lambda x: cc.grad(lambda x: cc.digamma(x).sum())(x).sum())(cc.array(x))
    want = special.polygamma(2, x.astype(np.float64))
    assert np.all(np.abs(np.array(twice) - want) <= 2e-5 * np.maximum(np.abs(want), 1))
    x = np.array([-3.5, -0.25, -12.0, 0.0, 20.0, -90.0, 11.99, 12.01, 91.0, np.inf], np.float32)
    close(cc.i0(cc.array(x))[:-1], special.i0(x.astype(np.float64)).astype(np.float32)[:-1], 4e-6)
    assert cc.i0(cc.array([np.inf, -np.inf])).tolist() == [np.inf] * 2
    close(cc.grad(cc.grad(cc.i0))(cc.array(0.0)), 0.5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", "lgamma digamma i0 sinc logit".split())
def test_half_types_are_rounded_once(name, dtype):
    x = cc.array(np.linspace(0.1, 0.9, 33)).astype(getattr(cc, dtype))
    out = getattr(cc, name)(x)
    assert out.dtype == x.dtype
    exact(values(out), values(getattr(cc, name)(x.astype(cc.float32)).astype(x.dtype)))


def test_blends():
    a, b, w = (np.random.default_rng(k).normal(size=(3, 4)).astype(np.float32) for k in range(3))
    A, B, W = cc.array(a), cc.array(b), cc.array(w)
    close(cc.lerp(A, B, W), a + w * (b - a), 1e-5, 1e-6)
    exact(np.array(cc.lerp(A, B, 1.0)), b)
    exact(np.array(cc.lerp(A, B, 0.0)), a)
    close(cc.addcmul(A, B, W, value=0.5), a + 0.5 * b * w, 1e-5, 1e-6)
    close(cc.addcdiv(A, B, W, value=2), a + 2 * b / w, 1e-5, 1e-6)
    assert cc.addcmul(cc.array([1]), cc.array([2]), cc.array([3])).dtype == cc.int32
    assert cc.addcdiv(cc.array([1]), cc.array([2]), cc.array([4])).tolist() == [1.5]
    assert cc.lerp(cc.array([1]), cc.array([2]), 0.5).tolist() == [1.5]


def test_complex_numbers_are_refused():
    z = cc.array([1 + 2j])
    for name in "signbit frac lgamma digamma i0 logit frexp".split():
        with pytest.raises(ValueError, match=name):
            getattr(cc, name)(z)
    for name in "copysign fmax fmin fmod hypot nextafter xlogy ldexp heaviside".split():
        with pytest.raises(ValueError, match=name):
            getattr(cc, name)(z, 1.0)


MISSING = np.array([[1.0, np.nan, 3.0, -2.0], [np.nan] * 4, [4.0, 0.5, np.inf, 2.0]], np.float32)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", "nansum nanmean nanmax nanmin nanmedian".split())
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_past_nan(name, axis, keepdims):
    want = getattr(np, name)(MISSING, axis=axis, keepdims=keepdims)
    got = getattr(cc, name)(cc.array(MISSING), axis=axis, keepdims=keepdims)
    assert got.shape == want.shape
    close(got, want)
    ints = np.arange(12).reshape(3, 4)
    close(getattr(cc, name)(cc.array(ints), axis=axis, keepdims=keepdims), getattr(np, name)(ints, axis=axis, keepdims=keepdims))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", "linear lower higher midpoint nearest".split())
@pytest.mark.parametrize("nan", [False, True])
def test_quantiles(method, nan):
    rng = np.random.default_rng(1)
    for shape, axis in [((7,), None), ((8,), 0), ((3, 5, 6), None), ((3, 5, 6), 1), ((3, 5, 6), (0, -1)), ((1,), 0), ((), None)]:
        x = rng.normal(size=shape).astype(np.float32)
        if nan and x.size > 1:
            x.reshape(-1)[:: x.size // 3] = np.nan
        name = "nanquantile" if nan else "quantile"
        for q in (0.0, 0.3, 0.5, 0.75, 1.0, [0.25, 0.5, 0.1], [[0.2], [0.9]]):
            if nan and np.ndim(q) > 1:
                continue
            q = q if np.ndim(q) < 2 else np.array(q, np.float32)
            for keepdims in (False, True):
                want = getattr(np, name)(x.astype(np.float64), q, axis=axis, keepdims=keepdims, method=method)
                got = getattr(cc, name)(cc.array(x), q, axis=axis, keepdims=keepdims, method=method)
                assert got.shape == np.shape(want), (shape, axis, q)
                close(got, want, 2e-6, 1e-7)
    name = "nanpercentile" if nan else "percentile"
    close(getattr(cc, name)(cc.array([1.0, 2.0, 4.0]), [10, 90]), np.percentile([1.0, 2.0, 4.0], [10, 90]))
    with pytest.raises(ValueError, match="within"):
        getattr(cc, name)(cc.array([1.0]), 101)
    with pytest.raises(ValueError, match="method"):
        cc.quantile(cc.array([1.0]), 0.5, method="x")
    assert np.isnan(cc.quantile(cc.array([1.0, np.nan]), 0.0).item())
    close(cc.grad(lambda x: cc.quantile(x, 0.3))(cc.array([3.0, 1.0, 2.0])), [0, 0.4, 0.6], 1e-6)


def test_histograms():
    rng = np.random.default_rng(2)
    x = rng.normal(size=500).astype(np.float32)
    w = rng.uniform(size=500).astype(np.float32)
    for kwargs in ({}, {"bins": 7}, {"bins": 5, "range": (-1.0, 2.0)}, {"bins": np.array([-2.0, 0.0, 0.5, 3.0], np.float32)}):
        want, edges = np.histogram(x, **kwargs)
        got, own = cc.histogram(cc.array(x), **kwargs)
        assert got.dtype == cc.int32 and got.tolist() == want.tolist()
        close(own, edges, 1e-6, 1e-6)
        close(cc.histogram(cc.array(x), weights=cc.array(w), **kwargs)[0], np.histogram(x, weights=w, **kwargs)[0], 1e-5)
        close(cc.histogram(cc.array(x), density=True, **kwargs)[0], np.histogram(x, density=True, **kwargs)[0], 1e-5)
    counts, edges = cc.histogram(cc.array([1, 2, 1, 5]), bins=[1, 2, 3, 5])
    assert counts.tolist() == [2, 1, 1]
    for same in ([], [3.0, 3.0]):
        want, edges = np.histogram(np.array(same, np.float32))
        got, own = cc.histogram(cc.array(same, dtype=cc.float32))
        assert got.tolist() == want.tolist()
        close(own, edges, 1e-6)
    assert cc.histogram(cc.array([np.nan, 0.5]), 2, (0.0, 1.0))[0].tolist() == [0, 1]
    assert cc.histogram(cc.array([1, 2]), bins=[1])[0].tolist() == np.histogram([1, 2], bins=[1])[0].tolist() == []
    for bad in ({"bins": 0}, {"range": (1.0, 0.0)}, {"bins": -1}, {"weights": cc.ones(3)}, {"range": (0.0, np.inf)}, {"bins": [3, 2, 1]}):
        with pytest.raises(ValueError):
            cc.histogram(cc.array(x), **bad)
    with pytest.raises(TypeError, match="histogram: bins 2.5"):
        cc.histogram(cc.array(x), bins=2.5)


def test_covariances():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4, 9)).astype(np.float32)
    f, a = rng.integers(1, 4, 9), rng.uniform(0.5, 2, 9).astype(np.float32)
    for kwargs in ({}, {"bias": True}, {"ddof": 2}, {"fweights": f}, {"aweights": a}, {"fweights": f, "aweights": a}):
        ours = {k: cc.array(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
        close(cc.cov(cc.array(x), **ours), np.cov(x.astype(np.float64), **kwargs), 2e-5, 1e-6)
        close(cc.cov(cc.array(x.T), rowvar=False, **ours), np.cov(x.astype(np.float64), **kwargs), 2e-5, 1e-6)
    z = (x + 1j * np.roll(x, 1)).astype(np.complex64)
    close(np.array(cc.cov(cc.array(z))), np.cov(z), 2e-5, 1e-5)
    close(np.array(cc.corrcoef(cc.array(z))), np.corrcoef(z), 2e-5, 1e-5)
    close(cc.corrcoef(cc.array(x)), np.corrcoef(x.astype(np.float64)), 2e-5, 1e-6)
    assert cc.cov(cc.array(x[0])).shape == () == cc.corrcoef(cc.array(x[0])).shape
    close(cc.cov(cc.array(x[0])), np.cov(x[0]), 1e-5)
    for bad in ({"ddof": 1.5}, {"fweights": cc.array([1.5] * 9)}, {"fweights": cc.array([1, 2])}):
        with pytest.raises(ValueError, match="cov"):
            cc.cov(cc.array(x), **bad)


def test_curves():
    rng = np.random.default_rng(4)
    y, x = rng.normal(size=(3, 5)).astype(np.float32), np.sort(rng.normal(size=5)).astype(np.float32)
    trapezoid = getattr(np, "trapezoid", None) or np.trapz
    close(cc.trapezoid(cc.array(y)), trapezoid(y), 1e-5, 1e-6)
    close(cc.trapezoid(cc.array(y), dx=0.5, axis=0), trapezoid(y, dx=0.5, axis=0), 1e-5, 1e-6)
    close(cc.trapezoid(cc.array(y), cc.array(x)), trapezoid(y, x), 1e-5, 1e-6)
    close(cc.trapezoid(cc.array(y), cc.array(y[:, :1].repeat(5, 1) * x), axis=1), trapezoid(y, y[:, :1] * x), 1e-5, 1e-5)
    close(cc.trapezoid(cc.array(y.T), cc.array(x), axis=0), trapezoid(y.T, x, axis=0), 1e-5, 1e-6)
    assert cc.trapezoid(cc.array([1.0])).item() == 0 == cc.trapezoid(cc.zeros((0,))).item()
    close(cc.polyval(cc.array(x), cc.array(y)), np.polyval(x, y), 1e-4, 1e-5)
    assert cc.polyval(cc.array([1, 2]), 5).item() == 7 and cc.polyval(cc.zeros((0,)), 3.0).item() == 0
    points = np.concatenate([np.linspace(-3, 3, 41), x, [np.nan, np.inf, -np.inf]]).astype(np.float32)
    for kwargs in ({}, {"left": -9.0}, {"left": 1.0, "right": 2.0}, {"period": 1.5}, {"period": -0.7}):
        finite = points[np.isfinite(points)] if "period" in kwargs else points
        close(cc.interp(cc.array(finite), cc.array(x), cc.array(y[0]), **kwargs), np.interp(finite, x, y[0], **kwargs), 1e-4, 2e-5)
    close(cc.interp(cc.array(points), cc.array([0.5]), cc.array([2.0])), np.where(np.isnan(points), np.nan, 2.0))
    for bad in ((cc.ones(2), cc.ones(3)), (cc.zeros((0,)), cc.zeros((0,)))):
        with pytest.raises(ValueError):
            cc.interp(cc.ones(2), *bad)
    for args in ((0, 3), (0, 3, 7), (2, -1, 4), (0, 1, 1), (0, 1, 0)):
        close(cc.logspace(*args), np.logspace(*args), 1e-6)
        close(cc.logspace(*args, base=2.0), np.logspace(*args, base=2.0), 1e-6)
    for args in ((1, 1000), (1, 256, 9), (-1, -8, 4), (3, 3, 1), (5, 1, 0)):
        close(cc.geomspace(*args), np.geomspace(*args), 1e-6)
    assert cc.logspace(0, 3, 4, dtype=cc.int32).tolist() == [1, 10, 100, 1000]
    with pytest.raises(ValueError):
        cc.geomspace(-1, 1)


@pytest.mark.filterwarnings("ignore")
def test_curves_of_complex_numbers():
    rng = np.random.default_rng(14)
    x, xp = rng.normal(size=9).astype(np.float32), np.sort(rng.normal(size=5)).astype(np.float32)
    x[3] = np.nan
    fp = (rng.normal(size=5) + 1j * rng.normal(size=5)).astype(np.complex64)
    for kwargs in ({}, {"left": -9.0}, {"left": 1 + 2j, "right": 2j}, {"period": 1.5}):
        finite = x[np.isfinite(x)] if "period" in kwargs else x
        got = cc.interp(cc.array(finite), cc.array(xp), cc.array(fp), **kwargs)
        assert got.dtype == cc.complex64
        close(np.array(got), np.interp(finite, xp, fp, **kwargs), 1e-4, 2e-5)
    endless = np.array([1, 2 + 1j * np.inf, np.inf, 3j, 4], np.complex64)
    close(np.array(cc.interp(cc.array(xp[1:]), cc.array(xp), cc.array(endless))), endless[1:])
    for bad in (lambda: cc.interp(cc.array(fp), cc.array(xp), cc.array(fp)), lambda: cc.interp(cc.array(xp), cc.array(fp), cc.array(xp)),
                lambda: cc.interp(cc.array(x), cc.array(xp), cc.array(xp), left=1j)):  # fmt: skip
        with pytest.raises(ValueError, match="interp: does not take"):
            bad()
    for args in ((0, 1 + 1j, 4), (1j, 2 - 1j, 7), (0.5, 2j, 1), (1j, 2, 0)):
        for base in (10.0, 2.0, -2.0):
            got, want = cc.logspace(*args, base=base), np.logspace(*args, base=base + 0j)
            assert got.dtype == cc.complex64 and got.shape == want.shape
            close(np.array(got), want, 1e-5, 1e-6)
    assert cc.logspace(0, 2, 3, dtype=cc.complex64).tolist() == [1, 10, 100]
    for bad in (lambda: cc.logspace(0, 1j, dtype=cc.float32), lambda: cc.logspace(0, 1, dtype=cc.bool_)):
        with pytest.raises(ValueError, match="logspace"):
            bad()
    for bad in (lambda: cc.linspace(0, 1j), lambda: cc.arange(1j), lambda: cc.arange(0, 3, 1j)):
        with pytest.raises(TypeError, match="a real number is expected"):
            bad()
    z = np.array([complex(a, b) for a in (1.0, np.nan, np.inf, -np.inf) for b in (2.0, np.nan, np.inf, -np.inf)], np.complex64)
    for kwargs in ({}, {"nan": 3.0}, {"nan": -1.0, "posinf": 2.0, "neginf": np.inf}):
        np.testing.assert_array_equal(np.array(cc.nan_to_num(cc.array(z), **kwargs)), np.nan_to_num(z, **kwargs))


def test_distances():
    rng = np.random.default_rng(5)
    distance = pytest.importorskip("scipy.spatial.distance")
    a, b = rng.normal(size=(4, 3)).astype(np.float32), rng.normal(size=(5, 3)).astype(np.float32)
    for p, kwargs in [(2.0, {}), (1.0, {"p": 1}), (3.0, {"p": 3}), (0.5, {"p": 0.5})]:
        close(cc.cdist(cc.array(a), cc.array(b), p), distance.cdist(a, b, "minkowski", p=kwargs.get("p", 2)), 1e-5)
    close(cc.cdist(cc.array(a), cc.array(b), float("inf")), distance.cdist(a, b, "chebyshev"), 1e-5)
    assert cc.cdist(cc.array([[1.0, 2.0]]), cc.array([[1.0, 3.0]]), 0.0).tolist() == [[1]]
    assert cc.cdist(cc.ones((2, 1, 4, 3)), cc.ones((5, 7, 3))).shape == (2, 5, 4, 7)
    grads = cc.grad(lambda x: cc.cdist(x, x).sum())(cc.array(a))
    assert np.isfinite(np.array(grads)).all()
    with pytest.raises(ValueError, match="cdist"):
        cc.cdist(cc.ones((2, 3)), cc.ones((2, 4)))
    z, w = (a + 1j * a[:, ::-1]).astype(np.complex64), (b - 2j * b[:, ::-1]).astype(np.complex64)
    sizes = np.abs(z[:, None] - w[None])
    for p in (0.0, 0.5, 1.0, 2.0, 3.0, np.inf):
        got = cc.cdist(cc.array(z), cc.array(w), p)
        assert got.dtype == cc.float32
        close(got, {0.0: (sizes != 0).sum(-1), np.inf: sizes.max(-1)}.get(p, (sizes**p).sum(-1) ** (1 / (p or 1))), 1e-5)
    assert np.isfinite(np.array(cc.grad(lambda x: cc.cdist(x, x).sum())(cc.array(z)))).all()


def test_masks():
    rng = np.random.default_rng(6)
    x = rng.integers(-2, 3, (4, 5)).astype(np.float32)
    for view in (cc.array(x), cc.array(x.T).T, cc.array(np.stack([x, x], 2))[..., 1]):
        for one, other in zip(cc.nonzero(view), np.nonzero(x)):
            exact(np.array(one), other.astype(np.int32))
        exact(np.array(cc.argwhere(view)), np.argwhere(x).astype(np.int32))
        exact(np.array(cc.masked_select(view, view > 0)), x[x > 0])
        exact(np.array(view[view > 0]), x[x > 0])
    X = cc.array(x)
    rows = np.array([True, False, True, True])
    exact(np.array(X[cc.array(rows)]), x[rows])
    exact(np.array(X[:, cc.array([True, False, False, True, True])]), x[:, [True, False, False, True, True]])
    exact(np.array(X[cc.array(rows), 1]), x[rows, 1])
    exact(np.array(X[cc.array(rows), cc.array([0, 1, 2])]), x[rows, [0, 1, 2]])
    exact(np.array(X[None, cc.array(rows)]), x[None, rows])
    exact(np.array(X[..., cc.array([True] * 5)]), x[..., [True] * 5])
    exact(np.array(X[cc.zeros((4,)) > 1]), x[np.zeros(4) > 1])
    exact(np.array(X[rows]), x[rows])
    exact(np.array(cc.zeros((0, 3))[cc.zeros((0,)) > 1]), np.zeros((0, 3), np.float32))
    with pytest.raises(IndexError):
        X[cc.array([True, False])]
    with pytest.raises(IndexError):
        X[cc.array(True)]
    exact(np.array(cc.grad(lambda x: (x[x > 0] ** 2).sum())(X)), np.where(x > 0, 2 * x, 0))
    assert cc.argwhere(cc.array(3)).shape == (1, 0) and cc.argwhere(cc.array(0)).shape == (0, 0)
    assert [a.shape for a in cc.nonzero(cc.zeros((3, 0)))] == [(0,), (0,)]
    with pytest.raises(ValueError):
        cc.nonzero(cc.array(1))
    for f in (cc.nonzero, cc.argwhere, lambda x: cc.masked_select(x, x > 0), lambda x: x[x > 0]):
        with pytest.raises(ValueError):
            cc.compile(f)(X)
        with pytest.raises(ValueError):
            cc.vmap(f)(X)
    exact(np.array(cc.masked_fill(X, X > 0, 7)), np.where(x > 0, np.float32(7), x))
    for bad in ((cc.array([1, 2]), cc.array([1, 0]), 0), (cc.array([1, 2]), cc.array([True, False]), 0.5), (cc.ones(2), cc.ones((3, 2)) > 0, 1)):
        with pytest.raises(ValueError, match="masked_fill"):
            cc.masked_fill(*bad)
    want = x.copy()
    want[:, [0, -1]] = 9
    exact(np.array(cc.index_fill(X, 1, cc.array([0, -1]), 9)), want)
    exact(np.array(cc.index_fill(X, -2, cc.array(1), 9))[1], np.full(5, 9, np.float32))
    for repeats, axis in ((2, None), (3, 0), ([1, 0, 2, 3], 0), ([1, 2, 0, 1, 1], -1)):
        given = repeats if isinstance(repeats, int) else cc.array(repeats)
        exact(np.array(cc.repeat_interleave(X, given, axis)), np.repeat(x, repeats, axis))
    with pytest.raises(ValueError, match="negative"):
        cc.repeat_interleave(X, cc.array([-1, 0, 0, 0]), 0)
    with pytest.raises(ValueError, match="fit"):
        cc.repeat_interleave(X, cc.array([1, 2]), 0)
    for args in ((3,), (3, 1), (3, -1, 5), (4, 2, 2), (0,), (2, -7)):
        for name in ("tril_indices", "triu_indices"):
            for one, other in zip(getattr(cc, name)(*args), getattr(np, name)(*args)):
                exact(np.array(one), other.astype(np.int32))
    exact(np.array(cc.bucketize(cc.array([1.0, 3.5, np.nan]), cc.array([1.0, 2.0, 4.0]))), np.array([0, 2, 3], np.uint32))


@pytest.mark.parametrize("dtype", "float32 float16 int32 uint8 bool_".split())
def test_segments(dtype):
    rng = np.random.default_rng(7)
    x = cc.array(rng.integers(0, 5, (7, 3))).astype(getattr(cc, dtype))
    ids = np.array([0, 3, 3, 1, 0, 3, 1])
    wide = values(x).astype(np.float64)
    for name, f in (("sum", np.sum), ("max", np.max), ("min", np.min), ("mean", np.mean)):
        out = getattr(cc, f"segment_{name}")(x, cc.array(ids), 5)
        assert out.shape == (5, 3)
        for k in (0, 1, 3):
            np.testing.assert_allclose(values(out)[k].astype(np.float64), f(wide[ids == k], 0), rtol=2e-3)
    if dtype == "float32":
        assert np.array(cc.segment_max(x, cc.array(ids), 5))[2, 0] == -np.inf
        assert np.isnan(np.array(cc.segment_mean(x, cc.array(ids), 5))[2, 0])
    if dtype == "int32":
        assert np.array(cc.segment_min(x, cc.array(ids), 5))[4, 0] == np.iinfo(np.int32).max
    with pytest.raises(ValueError, match="segment_sum"):
        cc.segment_sum(x, cc.array([0, 1]), 2)


def test_segments_of_complex_numbers():
    rng = np.random.default_rng(17)
    z = (rng.integers(0, 2, (9, 3)) + 1j * rng.integers(-3, 4, (9, 3))).astype(np.complex64)
    ids = np.array([0, 3, 3, 1, 0, 3, 1, 1, 0])
    for name, f, edge in (("max", np.max, -np.inf), ("min", np.min, np.inf)):
        segmented = getattr(cc, f"segment_{name}")
        out = np.array(segmented(cc.array(z), cc.array(ids), 5))
        for k in (0, 1, 3):
            np.testing.assert_array_equal(out[k], f(z[ids == k], 0))
        assert (out[[2, 4]] == complex(edge, edge)).all()
        broken = z.copy()
        broken[4, 0], broken[5, 1] = complex(np.nan, 1), complex(0, np.nan)
        known = np.ones((5, 3), bool)
        known[0, 0] = known[3, 1] = False
        found = np.array(segmented(cc.array(broken), cc.array(ids), 5))
        np.testing.assert_array_equal(np.isnan(found), ~known)
        np.testing.assert_array_equal(found[known], out[known])
        assert segmented(cc.array(z), cc.array(ids[:, None][:9, 0]), 5).dtype == cc.complex64
        assert segmented(cc.zeros((0, 2), cc.complex64), cc.zeros((0,), cc.int32), 2).tolist() == [[complex(edge, edge)] * 2] * 2


def test_complex_matrices_are_chosen():
    rng = np.random.default_rng(18)
    draw = lambda *shape: (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)
    a, b = draw(3, 2, 4), draw(5, 4, 3)
    left, right = np.array([2, 0, 1, 1]), np.array([4, 1, 1, 0])
    got = cc.gather_mm(cc.array(a), cc.array(b), cc.array(left), cc.array(right))
    close(np.array(got), a[left] @ b[right], 1e-5, 1e-5)
    close(np.array(cc.gather_mm(cc.array(a.real), cc.array(b), cc.array(left), cc.array(right))), a.real[left] @ b[right], 1e-5, 1e-5)
    segments = np.array([[0, 2], [2, 2], [1, 4]])
    want = np.stack([a[0][:, i:j] @ b[0][i:j] for i, j in segments])
    close(np.array(cc.segmented_mm(cc.array(a[0]), cc.array(b[0]), cc.array(segments))), want, 1e-5, 1e-5)
    with pytest.raises(ValueError, match="gather_mm: takes floats and complex numbers, not int32"):
        cc.gather_mm(cc.array([[1]]), cc.array([[1]]))


def test_least_squares_in_full():
    rng = np.random.default_rng(19)
    for m, n, dtype in [(6, 3, np.float32), (3, 3, np.float32), (2, 4, np.float32), (6, 3, np.complex64)]:
        a, b = rng.normal(size=(m, n)).astype(dtype), rng.normal(size=(m, 2)).astype(dtype)
        if dtype == np.complex64:
            a, b = a + 1j * a[::-1], b - 1j * b[::-1]
        x, residuals, rank, values_ = cc.linalg.lstsq(cc.array(a), cc.array(b), full=True)
        want = np.linalg.lstsq(a, b, rcond=None)
        close(np.array(x), want[0], 1e-3, 1e-4)
        if want[1].size:
            close(residuals, want[1], 1e-3)
        else:
            close(residuals, np.zeros(2), atol=1e-4)
        assert rank.item() == want[2] and rank.dtype == cc.int32 and residuals.shape == (2,)
        close(values_, want[3], 1e-4)
        x, residuals, _, _ = cc.linalg.lstsq(cc.array(a), cc.array(b[:, 0]), full=True)
        assert x.shape == (n,) and residuals.shape == (1,)
        close(residuals, np.linalg.norm(a @ np.array(x) - b[:, 0]) ** 2, 1e-3, 1e-5)
        assert np.array_equal(np.array(cc.linalg.lstsq(cc.array(a), cc.array(b[:, 0]))), np.array(x))
    flat = np.outer([1, 2, 3, 4], [1, 1]).astype(np.float32)
    assert cc.linalg.lstsq(cc.array(flat), cc.ones(4), full=True)[2].item() == 1
    batch = cc.linalg.lstsq(cc.ones((5, 4, 2)), cc.ones((5, 4, 3)), full=True)
    assert [part.shape for part in batch] == [(5, 2, 3), (5, 3), (5,), (5, 2)]
    assert [part.shape for part in cc.linalg.lstsq(cc.ones((0, 2)), cc.ones((0, 3)), full=True)] == [(2, 3), (3,), (), (0,)]


def test_sorted_vectors_of_rows():
    rng = np.random.default_rng(20)
    rows, x = np.sort(rng.integers(0, 9, (2, 3, 6)), -1), rng.integers(-1, 10, (2, 3, 5))
    for side in ("left", "right"):
        want = [[np.searchsorted(rows[i, j], x[i, j], side) for j in range(3)] for i in range(2)]
        assert cc.searchsorted(cc.array(rows), cc.array(x), side).tolist() == np.array(want).tolist()
    loose = rng.permutation(9).astype(np.float32)
    order = np.argsort(loose)
    assert cc.searchsorted(cc.array(loose), cc.array([2.5, 7.0]), sorter=cc.array(order)).tolist() == np.searchsorted(loose, [2.5, 7.0], sorter=order).tolist()
    many = rng.normal(size=(2, 4)).astype(np.float32)
    order = np.argsort(many, -1)
    want = cc.searchsorted(cc.array(np.sort(many, -1)), cc.zeros((2, 1)))
    assert cc.searchsorted(cc.array(many), cc.zeros((2, 1)), sorter=cc.array(order)).tolist() == want.tolist()
    assert cc.searchsorted(cc.zeros((2, 0)), cc.zeros((2, 3))).tolist() == [[0] * 3] * 2
    for bad in (lambda: cc.searchsorted(cc.zeros((2, 3)), cc.zeros((3, 3))), lambda: cc.searchsorted(cc.zeros((2, 3)), cc.array(1.0)),
                lambda: cc.searchsorted(cc.array(1.0), cc.array(1.0)), lambda: cc.searchsorted(cc.ones(3), cc.ones(1), sorter=cc.array([0])),
                lambda: cc.searchsorted(cc.ones(1), cc.ones(1), sorter=cc.array([0.0]))):  # fmt: skip
        with pytest.raises(ValueError, match="searchsorted"):
            bad()


@pytest.mark.filterwarnings("ignore")
def test_medians_of_nothing():
    for shape in ((0,), (0, 3), (3, 0)):
        x = np.zeros(shape, np.float32)
        for axis in (None, 0):
            np.testing.assert_array_equal(np.array(cc.nanmedian(cc.array(x), axis)), np.nanmedian(x, axis))
            both = cc.nanquantile(cc.array(x), [0.2, 0.5], axis)
            np.testing.assert_array_equal(np.array(both), np.stack([np.nanmedian(x, axis)] * 2))


def test_pooling_keeps_sizes():
    x = cc.array(np.arange(60, dtype=np.float32).reshape(1, 5, 6, 2))
    for pool in (cc.adaptive_avg_pool, cc.adaptive_max_pool):
        assert pool(x, (None, 2)).tolist() == pool(x, (5, 2)).tolist()
        assert pool(x, [3, None]).tolist() == pool(x, [3, 6]).tolist()
        assert pool(x, None).tolist() == x.tolist()
        first = pool(cc.moveaxis(x, -1, 1), (None, 2), data_format="channels_first")
        assert first.tolist() == cc.moveaxis(pool(x, (5, 2)), -1, 1).tolist()
        for bad in ((None, 2, 3), (None, -1)):
            with pytest.raises(ValueError):
                pool(x, bad)
        with pytest.raises(TypeError):
            pool(x, (None, "a"))


def test_batches():
    """What has no data in its shapes goes under ``vmap`` and ``compile``."""
    x = np.random.default_rng(8).uniform(0.1, 0.9, (3, 6)).astype(np.float32)
    X = cc.array(x)
    fs = [
        cc.lgamma, cc.digamma, cc.i0, cc.sinc, cc.logit, cc.signbit, cc.frac, lambda x: cc.frexp(x)[0], cc.nansum, cc.nanmedian,
        lambda x: cc.quantile(x, 0.3), lambda x: cc.histogram(x, 3)[0], cc.trapezoid, lambda x: cc.polyval(x, 0.5),
        lambda x: cc.cov(x.reshape(2, 3)), lambda x: cc.interp(x, cc.sort(x), x), lambda x: cc.hypot(x, 2), lambda x: cc.fmod(x, 0.3),
        lambda x: cc.nextafter(x, 1.0), lambda x: cc.ldexp(x, 3), lambda x: cc.segment_sum(x, cc.array([0, 1, 0, 1, 2, 2]), 3),
        lambda x: cc.cdist(x.reshape(2, 3), x.reshape(2, 3)), lambda x: cc.xlogy(x, x), lambda x: cc.lerp(x, 1.0, 0.3),
    ]  # fmt: skip
    for f in fs:
        want = np.stack([np.array(f(row)) for row in X])
        np.testing.assert_allclose(np.array(cc.vmap(f)(X)), want, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(np.array(cc.compile(cc.vmap(f))(X)), want, rtol=1e-6, atol=1e-6)


def test_half_complex_numbers(tmp_path):
    """Two halves, computed in float32 and rounded by each operation; the parts are float16."""
    rng = np.random.default_rng(5)
    parts = rng.normal(size=(2, 500, 2)).astype(np.float16).astype(np.float32)
    a, b = parts[..., 0] + 1j * parts[..., 1]
    x, y = (cc.array(z).astype(cc.complex32) for z in (a, b))
    assert x.dtype == cc.complex32 and x.nbytes == 2000 and str(x.dtype).endswith("complex32")

    def rounded(z):
        half = lambda part: part.astype(np.float16).astype(np.float32)
        return half(z.real) + 1j * half(z.imag)

    for f, g in ((cc.add, np.add), (cc.multiply, np.multiply), (cc.divide, np.divide), (cc.power, np.power)):
        ours = f(x, y)
        assert ours.dtype == cc.complex32
        np.testing.assert_allclose(np.array(ours), rounded(g(a, b)), rtol=2e-3, atol=1e-6)
    for f, g in ((cc.exp, np.exp), (cc.sqrt, np.sqrt), (cc.log, np.log), (cc.sin, np.sin), (cc.tanh, np.tanh)):
        np.testing.assert_allclose(np.array(f(x)), rounded(g(a)), rtol=2e-3, atol=1e-3)
    for f in (cc.abs, cc.real, cc.imag):
        assert f(x).dtype == cc.float16
    np.testing.assert_allclose(np.array(cc.abs(x)), np.abs(a).astype(np.float16), rtol=1e-3)
    # Sums are in float32.
    np.testing.assert_array_equal(np.array(cc.ones(5000, cc.complex32).sum()), np.complex64(5000))
    want = rounded((a[:20, None] * b[None, :30]).astype(np.complex64))
    np.testing.assert_allclose(np.array(x[:20, None] @ y[None, :30]), want, rtol=2e-3, atol=1e-3)
    assert np.array(x).dtype == np.complex64 and cc.fft.fft(x).dtype == cc.complex64

    for other, joint in (
        (cc.bool_, cc.complex32), (cc.int64, cc.complex32), (cc.float16, cc.complex32),
        (cc.bfloat16, cc.complex64), (cc.float32, cc.complex64), (cc.complex64, cc.complex64),
    ):  # fmt: skip
        assert (x + cc.ones(500, other)).dtype == (cc.ones(500, other) + x).dtype == joint
    assert (x + 1j).dtype == (2.5 * x).dtype == cc.complex32

    grad = cc.grad(lambda z: cc.abs(z).astype(cc.float32).sum())(x)
    assert grad.dtype == cc.complex32
    np.testing.assert_allclose(np.array(grad), a / np.abs(a), rtol=5e-3, atol=1e-3)

    cc.save(str(tmp_path / "z.npy"), x)
    back = cc.load(str(tmp_path / "z.npy"))
    fields = np.load(tmp_path / "z.npy")
    np.testing.assert_array_equal(fields["re"] + 1j * fields["im"].astype(np.float32), np.array(x))
    np.save(tmp_path / "raw.npy", np.zeros(3, "V4"))
    with pytest.raises(ValueError, match="V4"):
        cc.load(str(tmp_path / "raw.npy"))
    assert cc.lerp(x, y, 0.5).dtype == cc.complex32
    assert back.dtype == cc.complex32 and cc.array_equal(back, x).item()
    with pytest.raises(RuntimeError, match="complex32"):
        cc.save_safetensors(str(tmp_path / "z.safetensors"), {"z": x})
    assert not (tmp_path / "z.safetensors").exists()
    shared = cc.from_dlpack(x)
    assert shared.dtype == cc.complex32 and cc.array_equal(shared, x).item()
    with pytest.raises(BufferError, match="complex32"):
        memoryview(x)
    with pytest.raises(ValueError, match="copy"):
        x.__array__(copy=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quantiles_without_nan_are_at_the_places_of_all(dtype):
    methods = ("linear", "lower", "higher", "midpoint", "nearest")
    for size in (1, 2, 3, 4, 11, 101, 1000, 4097):
        x = np.arange(size, dtype=dtype)
        for q in (0.0, 1e-12, 0.07, 0.1, 0.14, 0.2, 0.28, 0.3, 1 / 3, 0.5, 0.7, 0.9, 1 - 1e-12, 1.0):
            for method in methods:
                found = cc.nanquantile(cc.array(x, dtype=getattr(cc, dtype)), q, method=method)
                want = np.nanquantile(x, q, method=method)
                np.testing.assert_allclose(np.array(found), want, rtol=1e-6, err_msg=f"{size} {q} {method}")
    # Each row has as many as are no NaN.
    x = np.array([[0, 1, 2, 3], [5, np.nan, 1, 3], [np.nan, np.nan, 4, 2]], dtype)
    found = cc.nanquantile(cc.array(x, dtype=getattr(cc, dtype)), 1 / 3, axis=1, method="lower")
    np.testing.assert_array_equal(np.array(found), np.nanquantile(x, 1 / 3, axis=1, method="lower"))


def test_quantiles_of_many_keep_their_digits():
    x = cc.arange(3_000_001, dtype=cc.float64)
    assert cc.nanquantile(x, 0.7).item() == pytest.approx(2_100_000, abs=1e-8)


def test_functions_where_they_overflow():
    assert cc.i0(cc.array([3e38, -3e38, 100.0, np.inf])).tolist() == [np.inf] * 4
    assert cc.i0(cc.array(89.0)).item() == pytest.approx(np.i0(89.0), rel=1e-5)
    assert cc.grad(cc.lgamma)(cc.array(1e38)).item() == pytest.approx(np.log(1e38), rel=1e-6)
    assert cc.lgamma(cc.array([-3e38, -2e38, 3e38, -np.inf])).tolist() == [np.inf] * 4
    z = cc.array([[1 + 2j, 3j], [4, 5]])
    for extreme in (cc.max, cc.min):
        assert extreme(z, axis=[]).tolist() == z.tolist()


def test_probabilities_are_looked_at():
    choice = cc.random.choice
    for wrong in ([1, 1, 0], [0.5, 0.25, 0.0], [0.0, 0.0, 0.0]):
        with pytest.raises(ValueError, match="choice: the probabilities come to"):
            choice(3, shape=(2,), p=cc.array(wrong))
    assert choice(3, shape=(2,), p=cc.array([0.1, 0.2, 0.7], dtype=cc.bfloat16)).shape == (2,)
    for wrong in ([-1.0, 1, 1], [np.nan, 0.5, 0.5], [np.inf, 0, 0]):
        with pytest.raises(ValueError, match="is no probability"):
            choice(3, shape=(2,), p=cc.array(wrong))
    with pytest.raises(ValueError, match="3 are to be drawn, and 2 have"):
        choice(4, shape=(3,), replace=False, p=cc.array([0.5, 0.5, 0, 0]))
    assert sorted(choice(4, shape=(2,), replace=False, p=cc.array([0.5, 0, 0.5, 0])).tolist()) == [0, 2]
    assert cc.compile(lambda p: choice(3, shape=(5,), p=p))(cc.array([0.0, 1, 0])).tolist() == [1] * 5
