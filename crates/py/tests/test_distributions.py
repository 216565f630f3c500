"""Random numbers that MLX does not have: moments, and Kolmogorov's and Smirnov's test, of fixed keys."""

import numpy as np
import pytest
from conftest import cc, mlx, values

stats = pytest.importorskip("scipy.stats")

N = 20000
random = cc.random


def key(seed=0):
    return random.key(seed)


def fits(numbers, distribution):
    """The samples are of a continuous distribution: a p-value below 10⁻⁴ would be bad luck once in 10⁴ keys."""
    x = np.array(numbers).astype(np.float64).reshape(-1)
    assert np.isfinite(x).all()
    assert stats.kstest(x, distribution.cdf).pvalue > 1e-4


def counts_fit(numbers, distribution):
    """The samples are of a discrete distribution, by χ² over values that are expected often enough."""
    x = np.array(numbers).reshape(-1)
    low, high = int(distribution.ppf(0.001)), int(distribution.ppf(0.999))
    inner = np.arange(low, high + 1)
    seen = np.array([(x < low).sum(), *[(x == k).sum() for k in inner], (x > high).sum()])
    expected = x.size * np.array([distribution.cdf(low - 1), *distribution.pmf(inner), distribution.sf(high)])
    often = expected > 5
    seen, expected = np.append(seen[often], seen[~often].sum()), np.append(expected[often], expected[~often].sum())
    keep = expected > 1e-9
    assert seen[~keep].sum() == 0
    chi = ((seen[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    assert stats.chi2.sf(chi, keep.sum() - 1) > 1e-4


@pytest.mark.parametrize("a", [0.01, 0.1, 0.5, 0.99, 1.0, 1.5, 3.0, 20.0, 1000.0])
def test_gamma(a):
    x = random.gamma(a, (N,), key=key(1))
    if a >= 0.1:
        fits(x, stats.gamma(a))
    assert abs(np.array(x, np.float64).mean() - a) < 5 * np.sqrt(a / N)
    fits(random.gamma(cc.full((N,), max(a, 0.1)), scale=2.0, key=key(2)), stats.gamma(max(a, 0.1), scale=2))


@pytest.mark.parametrize("a, b", [(0.3, 0.3), (0.5, 2.0), (1.0, 1.0), (5.0, 1.5), (40.0, 60.0)])
def test_beta(a, b):
    fits(random.beta(a, b, (N,), key=key(3)), stats.beta(a, b))


def test_beta_of_tiny_parameters_stays_within_0_and_1():
    x = np.array(random.beta(1e-4, 1e-4, (N,), key=key(4)))
    assert np.isfinite(x).all() and abs(x.mean() - 0.5) < 0.03 and x.min() >= 0 and x.max() <= 1


def test_dirichlet():
    alpha = np.array([0.5, 1.0, 4.0], np.float32)
    x = np.array(random.dirichlet(cc.array(alpha), (N,), key=key(5)))
    assert x.shape == (N, 3)
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-5)
    for k in range(3):
        fits(x[:, k], stats.beta(alpha[k], alpha.sum() - alpha[k]))
    assert random.dirichlet(cc.ones((4, 3))).shape == (4, 3)
    assert random.dirichlet(cc.ones((4, 3)), (2, 4)).shape == (2, 4, 3)
    with pytest.raises(ValueError, match="dirichlet"):
        random.dirichlet(cc.array(1.0))


def quantile_slopes(a, x, order=1):
    """The derivatives by the parameter of quantiles of gamma distributions, by differences, at the numbers x."""
    special = pytest.importorskip("scipy.special")
    upper = x > a
    q = np.where(upper, special.gammaincc(a, x), special.gammainc(a, x))
    at = lambda a: np.where(upper, special.gammainccinv(a, q), special.gammaincinv(a, q))
    step = (1e-5 if order == 1 else 1e-3) * a
    if order == 1:
        return (at(a + step) - at(a - step)) / (2 * step)
    return (at(a + step) - 2 * at(a) + at(a - step)) / step**2


@pytest.mark.parametrize("a", [0.05, 0.3, 1.0, 2.5, 15.0, 40.0, 300.0])
def test_gamma_moves_as_its_quantiles_do(a):
    a = np.full(300, a)
    wide = cc.array(a, cc.float64)
    draw = lambda dtype: lambda p: random.gamma(p, dtype=dtype, key=key(11))
    x = np.array(draw(cc.float64)(wide))
    slope = lambda p: cc.grad(lambda p: draw(cc.float64)(p).sum())(p)
    found = np.array(slope(wide))
    there = x > 1e-200
    want = quantile_slopes(a, x)
    np.testing.assert_allclose(found[there], want[there], rtol=1e-5, atol=1e-9)
    # Second derivatives, where differences are exact enough.
    second = np.array(cc.grad(lambda p: slope(p).sum())(wide))
    want = quantile_slopes(a, x, 2)
    well = there & (np.abs(want) > 1e-4 * found / a) & (x > 1e-3 * a)
    np.testing.assert_allclose(second[well], want[well], rtol=2e-2)
    pushed = cc.jvp(draw(cc.float64), [wide], [cc.ones(a.shape, cc.float64)])[1][0]
    np.testing.assert_allclose(np.array(pushed), found, rtol=1e-12)
    # In float32, whose numbers are drawn of other bits, and in half types.
    narrow = a.astype(np.float32)
    y = np.array(draw(cc.float32)(cc.array(narrow))).astype(np.float64)
    found = np.array(cc.grad(lambda p: draw(cc.float32)(p).sum())(cc.array(narrow)))
    there = y > 1e-30
    np.testing.assert_allclose(found[there], quantile_slopes(a, y)[there], rtol=3e-4)
    half = cc.grad(lambda p: draw(cc.float16)(p).sum())(cc.array(narrow).astype(cc.float16))
    assert half.dtype == cc.float16 and np.isfinite(np.array(half.astype(cc.float32))).all()


def test_gradients_of_gamma_under_transforms_and_at_the_edge():
    loss = lambda p: random.gamma(p, key=key(12)).sum()
    a = cc.array([[0.5, 2.0, 30.0], [1.0, 0.1, 7.0]])
    want = cc.grad(loss)(a)
    np.testing.assert_allclose(np.array(cc.compile(cc.grad(loss))(a)), np.array(want), rtol=1e-5)
    each = cc.vmap(cc.grad(lambda p, k: random.gamma(p, key=k).sum()))(a, random.split(key(13), 2))
    for row, one, k in zip(each, a, random.split(key(13), 2)):
        np.testing.assert_allclose(np.array(row), np.array(cc.grad(lambda p: random.gamma(p, key=k).sum())(one)), rtol=1e-5)
    edge = np.array(cc.grad(loss)(cc.array([0.0, -1.0, float("nan"), 2.0])))
    assert (edge[:3] == 0).all() and np.isfinite(edge[3])
    # Tiny and huge ones: the numbers are 0, or move as the parameter does.
    tiny = np.array(cc.grad(loss)(cc.full((64,), 1e-20)))
    assert (tiny == 0).all()
    for parameter in (1e4, 1e8, 1e12, 1e20):
        slopes = np.array(cc.grad(loss)(cc.full((64,), parameter))).astype(np.float64)
        np.testing.assert_allclose(slopes, 1, atol=10 / np.sqrt(parameter) + 1e-5)
    for draw in (lambda p: random.beta(p, 0.5, key=key(18))[0], lambda p: random.dirichlet(p, key=key(19))[0]):
        assert np.isfinite(np.array(cc.grad(draw)(cc.full((4,), 1e-20)))).all()
    kept = lambda p: cc.where(p > 0, random.gamma(p, key=key(20)), 0).sum()  # noqa: E731
    assert np.array(cc.grad(kept)(cc.array([-1.0, 2.0])))[0] == 0
    # A plain number has no derivative, and a scale has that of a factor.
    x, scale = random.gamma(2.5, (5,), key=key(14)), cc.array(3.0)
    np.testing.assert_allclose(np.array(cc.grad(lambda s: (random.gamma(2.5, (5,), key=key(14)) * s).sum())(scale)), np.array(x.sum()))


@pytest.mark.parametrize("a, b", [(0.2, 0.7), (1.5, 4.0), (30.0, 10.0)])
def test_mean_gradients_of_beta_and_dirichlet_are_those_of_the_mean(a, b):
    # Of 20,000 numbers the mean is within five of its standard errors.
    by_a = np.array(cc.grad(lambda p: random.beta(p, b, key=key(15)).sum())(cc.full((N,), a))).astype(np.float64)
    by_b = np.array(cc.grad(lambda p: random.beta(a, p, key=key(16)).sum())(cc.full((N,), b))).astype(np.float64)
    for found, want in [(by_a, b / (a + b) ** 2), (by_b, -a / (a + b) ** 2)]:
        assert np.isfinite(found).all() and abs(found.mean() - want) < 5 * found.std() / np.sqrt(N)
    alpha = cc.broadcast_to(cc.array([a, b, 1.0]), (N, 3))
    found = np.array(cc.grad(lambda p: random.dirichlet(p, key=key(17))[:, 0].sum())(alpha)).astype(np.float64)
    total = a + b + 1
    for column, want in zip(found.T, [(total - a) / total**2, -a / total**2, -a / total**2]):
        assert abs(column.mean() - want) < 5 * column.std() / np.sqrt(N)

def test_exponential():
    fits(random.exponential((N,), key=key(6)), stats.expon())
    fits(random.exponential((N,), scale=3.0, key=key(6)), stats.expon(scale=3))
    assert not np.signbit(np.array(random.exponential((N,), key=key(6)))).any()
    for bad in (lambda: random.exponential((3,), scale=-1.0), lambda: random.gamma(2.0, (3,), scale=-1.0)):
        with pytest.raises(ValueError, match="scale -1.0 is negative"):
            bad()


@pytest.mark.parametrize("rate", [0.01, 0.7, 3.0, 9.99, 10.0, 25.0, 300.0, 1e5])
def test_poisson(rate):
    x = random.poisson(rate, (N,), key=key(7))
    assert x.dtype == cc.int32
    if rate < 1000:
        counts_fit(x, stats.poisson(rate))
    else:
        fits(np.array(x) + np.random.default_rng(0).uniform(size=N) - 0.5, stats.norm(rate, np.sqrt(rate)))
    assert abs(np.array(x, np.float64).mean() - rate) < 5 * np.sqrt(rate / N)
    counts_fit(random.poisson(cc.full((N,), min(rate, 300.0)), key=key(8)), stats.poisson(min(rate, 300.0)))


def test_poisson_of_several_rates():
    rates = cc.array([0.0, 2.0, 50.0, -1.0, float("nan")])
    x = np.array(random.poisson(rates, (N, 5), key=key(9)))
    assert (x[:, 0] == 0).all() and (x[:, 3:] == -1).all()
    counts_fit(x[:, 1], stats.poisson(2))
    counts_fit(x[:, 2], stats.poisson(50))
    assert np.array(random.poisson(0.0, (5,))).tolist() == [0] * 5


@pytest.mark.parametrize("p", [0.01, 0.3, 0.9, 1.0])
def test_geometric(p):
    x = random.geometric(p, (N,), key=key(10))
    assert np.array(x).min() >= 1
    if p < 1:
        counts_fit(x, stats.geom(p))
    else:
        assert (np.array(x) == 1).all()


def test_choice():
    x = np.array(random.choice(5, (N,), key=key(11)))
    counts_fit(x, stats.randint(0, 5))
    p = np.array([0.1, 0.0, 0.6, 0.3, 0.0], np.float32)
    x = np.array(random.choice(5, (N,), p=cc.array(p), key=key(12)))
    np.testing.assert_allclose(np.bincount(x, minlength=5) / N, p, atol=0.02)
    assert not (np.bincount(x, minlength=5)[[1, 4]]).any()
    x = np.array(random.choice(10, (10,), replace=False, key=key(13)))
    assert sorted(x) == list(range(10))
    firsts = np.array([int(random.choice(3, (2,), False, cc.array([0.2, 0.5, 0.3]), key=key(k))[0].item()) for k in range(600)])
    np.testing.assert_allclose(np.bincount(firsts, minlength=3) / 600, [0.2, 0.5, 0.3], atol=0.08)
    rows = cc.array(np.arange(12).reshape(3, 4))
    assert random.choice(rows, (2, 5), key=key(14)).shape == (2, 5, 4)
    assert random.choice(rows, (2,), axis=1, replace=False, key=key(14)).shape == (3, 2)
    assert random.choice(rows).shape == (4,)
    for bad in (lambda: random.choice(3, (4,), replace=False), lambda: random.choice(0, (1,)), lambda: random.choice(3, p=cc.ones(2)), lambda: random.choice(cc.array(1.0))):
        with pytest.raises(ValueError, match="choice"):
            bad()


def test_multivariate_normal():
    mean, cov = np.array([1.0, 2.0, -1.0], np.float32), np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]], np.float32)

    def both(mean, cov, *shape):
        ours = random.multivariate_normal(cc.array(mean), cc.array(cov), *shape, key=random.key(30))
        theirs = mlx.random.multivariate_normal(mlx.array(mean), mlx.array(cov), *shape, key=mlx.random.key(30))
        assert ours.shape == theirs.shape and ours.dtype == cc.float32
        np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=2e-5, atol=2e-5)
        return np.array(ours)

    x = both(mean, cov, (N,))
    np.testing.assert_allclose(x.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.06)
    both(mean, cov)
    both(np.stack([mean] * 4), cov)
    both(np.stack([mean] * 4), np.stack([cov, 2 * cov, cov, np.eye(3, dtype=np.float32)]), (2, 4))
    both(np.array([0.5], np.float32), np.array([[4.0]], np.float32), (3,))
    both(mean, np.ones((3, 3), np.float32), (5,))
    both(mean, np.zeros((3, 3), np.float32), (5,))
    assert random.multivariate_normal(cc.zeros((0,)), cc.zeros((0, 0))).shape == (0,)
    assert np.isnan(np.array(random.multivariate_normal(cc.zeros(2), cc.full((2, 2), float("nan"))))).all()
    draw = lambda k: random.multivariate_normal(cc.array(mean), cc.array(cov), (2,), key=k)  # noqa: E731
    np.testing.assert_allclose(np.array(cc.vmap(draw)(cc.stack([key(1), key(2)])))[1], np.array(draw(key(2))), rtol=1e-6)
    m, c = cc.array(mean), cc.array(cov)
    for args in ((cc.array(1.0), c), (m, m), (m, cc.eye(2)), (m, c[:2]), (cc.stack([m, m]), c, (3,)), (m, cc.triu(c)), (m, -c)):
        with pytest.raises(ValueError, match="multivariate_normal"):
            random.multivariate_normal(*args)
    with pytest.raises(ValueError, match="float32"):
        random.multivariate_normal(m, c, dtype=cc.float16)


def test_multivariate_normal_moves_with_its_covariances():
    rng = np.random.default_rng(3)
    half = rng.standard_normal((3, 3))
    cov = (half @ half.T + 0.1 * np.eye(3)).astype(np.float32)
    mean, way = cc.zeros(3), cc.array(np.tril(rng.standard_normal((4, 3))).astype(np.float32))
    turn = rng.standard_normal((3, 3)).astype(np.float32)
    turn = turn + turn.T
    loss = lambda c: (random.multivariate_normal(mean, c, (4,), key=key(31)) * way).sum()  # noqa: E731
    along = lambda f, by: (f(cc.array(cov + by * turn)) - f(cc.array(cov - by * turn))) / (2 * by)  # noqa: E731
    slope = cc.grad(loss)(cc.array(cov))
    assert np.allclose(np.array(slope), np.array(slope).T, atol=1e-6)
    want = along(lambda c: np.float64(loss(c).item()), 0.01)
    np.testing.assert_allclose((np.array(slope) * turn).sum(), want, rtol=2e-3)
    pushed = cc.jvp(loss, [cc.array(cov)], [cc.array(turn)])[1][0].item()
    np.testing.assert_allclose(pushed, (np.array(slope) * turn).sum(), rtol=1e-4)
    second = cc.grad(lambda c: (cc.grad(loss)(c) * cc.array(turn)).sum())(cc.array(cov))
    want = along(lambda c: (np.array(cc.grad(loss)(c)).astype(np.float64) * turn).sum(), 0.02)
    np.testing.assert_allclose((np.array(second) * turn).sum(), want, rtol=5e-3)
    # E|x|² is the trace, also where eigenvalues are alike, and the derivatives of batches are those of each.
    square = lambda c: (random.multivariate_normal(cc.zeros(2), c, (N,), key=key(32)) ** 2).sum() / N  # noqa: E731
    np.testing.assert_allclose(np.array(cc.grad(square)(cc.eye(2))), np.eye(2), atol=0.05)
    both = cc.array(np.stack([cov, 2 * cov]))
    each = lambda c: random.multivariate_normal(cc.zeros(3), c, key=key(33))  # noqa: E731
    found = np.array(cc.grad(lambda c: each(c)[1].sum())(both))
    assert (found[0] == 0).all() and (found[1] != 0).any()
    # A covariance of rank one, along what it has.
    flat = cc.ones((2, 2))
    np.testing.assert_allclose(np.array(cc.jvp(square, [flat], [flat])[1][0]), 2.0, rtol=0.05)
    assert np.isfinite(np.array(cc.grad(square)(flat))).all()
    assert (np.array(cc.grad(square)(cc.zeros((2, 2)))) == 0).all()


DRAWS = {
    "gamma": lambda k: random.gamma(cc.array([0.5, 3.0]), (7, 2), key=k),
    "beta": lambda k: random.beta(0.5, 2.0, (7,), key=k),
    "dirichlet": lambda k: random.dirichlet(cc.ones(3), (7,), key=k),
    "exponential": lambda k: random.exponential((7,), key=k),
    "poisson": lambda k: random.poisson(cc.array([3.0, 30.0]), (7, 2), key=k),
    "geometric": lambda k: random.geometric(0.2, (7,), key=k),
    "choice": lambda k: random.choice(100, (7,), key=k),
    "choice with p": lambda k: random.choice(3, (7,), p=cc.array([1.0, 2.0, 3.0]) / 6, key=k),
}


@pytest.mark.parametrize("name", DRAWS)
def test_keys(name):
    draw = DRAWS[name]
    one = values(draw(key(20)))
    np.testing.assert_array_equal(one, values(draw(key(20))))
    assert (one != values(draw(key(21)))).any()
    np.testing.assert_array_equal(one, values(cc.compile(draw)(key(20))))
    keys = cc.stack([key(20), key(21)])
    both = values(cc.vmap(draw)(keys))
    np.testing.assert_array_equal(both, np.stack([one, values(draw(key(21)))]))
    cc.random.seed(3)
    first = values(draw(None))
    cc.random.seed(3)
    np.testing.assert_array_equal(first, values(draw(None)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtypes(dtype):
    own = getattr(cc, dtype)
    for f in (lambda: random.gamma(2.0, (9,), own), lambda: random.beta(1.0, 2.0, (9,), own), lambda: random.exponential((9,), own), lambda: random.dirichlet(cc.ones(3), (2,), own)):
        assert f().dtype == own
    assert random.poisson(2.0, (3,), cc.uint8).dtype == cc.uint8
    with pytest.raises(ValueError, match="gamma"):
        random.gamma(1.0, (2,), cc.int32)
    with pytest.raises(ValueError, match="poisson"):
        random.poisson(1.0, (2,), cc.float32)


def test_parameters_that_are_none():
    for f in (lambda: random.gamma(-1.0), lambda: random.beta(0.0, 1.0), lambda: random.poisson(-1.0), lambda: random.geometric(0.0), lambda: random.geometric(1.5), lambda: random.poisson(float("inf"))):
        with pytest.raises(ValueError, match="no distribution"):
            f()
    assert np.isnan(np.array(random.gamma(cc.array([-1.0, float("nan")])))).all()
    assert random.gamma(2.0, (0, 3)).shape == (0, 3)
    assert random.choice(4, (0,)).shape == (0,) == random.choice(4, (0,), p=cc.ones(4) / 4).shape


@pytest.mark.parametrize("low, high", [(10**9, 10**9 + 7), (2**26, 2**26 + 8), (-(2**40), 3 - 2**40), (2**62, 2**62 + 5)])
def test_of_few_integers_each_comes_up_however_large_they_are(low, high):
    x = np.array(cc.random.randint(low, high, (20_000,), dtype=cc.int64, key=cc.random.key(3)))
    values, counts = np.unique(x, return_counts=True)
    assert values.tolist() == list(range(low, high))
    assert np.abs(counts / 20_000 * (high - low) - 1).max() < 0.1


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
@pytest.mark.parametrize("low, high", [(2**30, 2**30 + 100), (2**26, 2**26 + 8), (0, 7), (3, 3), (5, 2)])
def test_integers_between_arrays_are_between_them(low, high, dtype):
    bounds = [cc.array(bound, dtype=getattr(cc, dtype)) for bound in (low, high)]
    x = np.array(cc.random.randint(*bounds, (5000,), dtype=getattr(cc, dtype), key=cc.random.key(0)))
    assert x.min() >= low and x.max() < max(high, low + 1)


def test_integers_between_fractions_are_those_of_mlx():
    for low, high in [(0.5, 3.7), (-3.5, 3.0), (5, 1)]:
        ours, theirs = (
            m.random.randint(m.array(low), m.array(high), (50,), key=m.random.key(1)).tolist() for m in (cc, mlx)
        )
        assert ours == theirs
