"""Orders, whole and in parts, and those of complex numbers: NumPy is the oracle."""

import numpy as np
import pytest

import cupola.core as mx

RNG = np.random.default_rng(5)
DTYPES = ["bool_", "uint8", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"]


def drawn(shape, dtype):
    """Numbers with repeats; of floats also infinities and NaN."""
    x = RNG.integers(0, 2 if dtype == "bool_" else 60, shape)
    if not dtype.startswith(("u", "b")):
        x = x - 30
    x = x.astype(dtype.rstrip("_"))
    if dtype.startswith("float") and x.size > 8:
        x.flat[1], x.flat[3], x.flat[5], x.flat[7] = np.nan, np.inf, -np.inf, np.nan
    return x


def given(x, dtype):
    return mx.array(x, dtype=getattr(mx, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_an_order_are_those_of_the_whole(dtype):
    for shape, axis in [((7,), 0), ((300,), 0), ((3, 500), 1), ((500, 3), 0), ((2, 9000), 1), ((4, 5, 64), -1)]:
        x = drawn(shape, dtype)
        a, size = given(x, dtype), x.shape[axis]
        whole = np.sort(x, axis=axis)
        for k in {1, 2, size // 20, size // 9, size // 2, size} - {0}:
            kept = np.take(whole, range(size - k, size), axis=axis)
            np.testing.assert_array_equal(np.array(mx.topk(a, k, axis=axis)), kept)
            for place in (k - 1, size - k, -k):
                parted = np.array(mx.partition(a, place, axis=axis))
                np.testing.assert_array_equal(np.sort(parted, axis=axis), whole)
                at = np.take(whole, place, axis=axis)
                np.testing.assert_array_equal(np.take(parted, place, axis=axis), at)
                front = np.sort(np.take(parted, range(place % size + 1), axis=axis), axis=axis)
                np.testing.assert_array_equal(front, np.take(whole, range(place % size + 1), axis=axis))
                places = mx.argpartition(a, place, axis=axis)
                taken = np.take_along_axis(x, np.array(places).astype(np.int64), axis)
                np.testing.assert_array_equal(taken, parted)


def test_a_long_axis_is_selected_in_parts():
    x = RNG.normal(size=400_000).astype(np.float32)
    x[::3] = 0.5
    a, whole = mx.array(x), np.sort(x)
    for k in (1, 50, 2000, 30_000, 100_000):
        np.testing.assert_array_equal(np.array(mx.topk(a, k)), whole[-k:])
        np.testing.assert_array_equal(np.sort(np.array(mx.argpartition(a, k))), np.arange(x.size))
        np.testing.assert_array_equal(np.sort(np.array(mx.partition(a, k))[:k]), whole[:k])
    equal = mx.zeros(300_000)
    assert mx.argpartition(equal, -3)[-3:].tolist() == [299_997, 299_998, 299_999]


def test_gradients_of_parts_go_where_elements_came_from():
    x = mx.array(drawn((3, 200), "int32").astype(np.float32))
    w = mx.array(RNG.normal(size=(3, 4)).astype(np.float32))
    grad = mx.grad(lambda x: (mx.topk(x, 4, axis=1) * w).sum())(x)
    order = np.argsort(np.array(x), axis=1, kind="stable")[:, -4:]
    want = np.zeros((3, 200), np.float32)
    np.put_along_axis(want, order, np.array(w), 1)
    np.testing.assert_array_equal(np.array(grad), want)
    v = mx.array(RNG.normal(size=(3, 200)).astype(np.float32))
    grad = mx.grad(lambda x: (mx.partition(x, 5, axis=1) * v).sum())(x)
    places = np.array(mx.argpartition(x, 5, axis=1)).astype(np.int64)
    want = np.zeros((3, 200), np.float32)
    np.put_along_axis(want, places, np.array(v), 1)
    np.testing.assert_array_equal(np.array(grad), want)
    rows = mx.vmap(lambda row: mx.topk(row, 2))(x)
    np.testing.assert_array_equal(np.array(rows), np.array(mx.topk(x, 2, axis=1)))


def complexes(shape):
    return (RNG.integers(-2, 3, shape) + 1j * RNG.integers(-2, 3, shape)).astype(np.complex64)


def test_complex_numbers_are_ordered_by_their_real_parts_first():
    z, w = complexes((4, 5)), complexes((4, 5))
    a, b = mx.array(z), mx.array(w)
    for name in ("less", "less_equal", "greater", "greater_equal", "maximum", "minimum"):
        np.testing.assert_array_equal(np.array(getattr(mx, name)(a, b)), getattr(np, name)(z, w), name)
    for axis in (None, 0, 1, -1):
        for name in ("max", "min", "argmax", "argmin"):
            got = np.array(getattr(mx, name)(a, axis=axis))
            np.testing.assert_array_equal(got, getattr(np, name)(z, axis=axis), name)
        np.testing.assert_array_equal(np.array(mx.sort(a, axis=axis)), np.sort(z, axis=axis))
        order = np.argsort(z, axis=axis, kind="stable")
        np.testing.assert_array_equal(np.array(mx.argsort(a, axis=axis)), order)
    np.testing.assert_array_equal(np.array(mx.topk(a, 2)), np.sort(z)[:, -2:])
    np.testing.assert_array_equal(np.array(mx.max(a, axis=(0, 1), keepdims=True)), [[z.max()]])
    np.testing.assert_array_equal(np.array(mx.clip(a, -1 + 0j, 1 + 1j)), np.clip(z, -1 + 0j, 1 + 1j))


@pytest.mark.parametrize("reverse", [False, True])
def test_running_extremes_of_complex_numbers(reverse):
    z = complexes((4, 30))
    z[1, 7] = complex(np.nan, 1)
    z[2, [3, 9]] = complex(2, np.nan), complex(np.nan, -1)
    turned = z[:, ::-1] if reverse else z
    for name in ("maximum", "minimum"):
        want = np.array([[getattr(np, name).reduce(row[: i + 1]) for i in range(30)] for row in turned])
        want = want[:, ::-1] if reverse else want
        f = getattr(mx, "cum" + name[:3])
        np.testing.assert_array_equal(np.array(f(mx.array(z), axis=1, reverse=reverse)), want)
        found = np.array(f(mx.array(z[3]), reverse=reverse, inclusive=False))
        end = -1 if reverse else 0
        inf = np.inf if name == "minimum" else -np.inf
        assert found[end] == complex(inf, inf)
        np.testing.assert_array_equal(np.delete(found, end), np.delete(want[3], 29 if not reverse else 0))
    grad = mx.grad(lambda x: mx.real(mx.cummax(x)).sum())(mx.array([1 + 1j, 0, 1 + 1j, 2, 1j]))
    assert grad.tolist() == [3, 0, 0, 2, 0]
    assert mx.cummax(mx.zeros((0,), mx.complex64)).shape == (0,)
    rows = mx.vmap(mx.cummax)(mx.array(z[:1]))
    np.testing.assert_array_equal(np.array(rows), np.array(mx.cummax(mx.array(z[:1]), axis=1)))


def test_complex_numbers_in_a_sorted_vector():
    z = np.sort(np.concatenate([complexes(40), [complex(np.nan, 0), complex(np.nan, 1)]]))
    values = np.concatenate([complexes((60,)), [9, -9j, complex(0, np.nan)]]).astype(np.complex64)
    for side in ("left", "right"):
        want = np.searchsorted(z, values, side)
        if side == "left":
            want[-1] = 40
        else:
            want[-1] = 42
        np.testing.assert_array_equal(np.array(mx.searchsorted(mx.array(z), mx.array(values), side=side)), want)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_derivatives_of_eigenvectors(dtype):
    torch = pytest.importorskip("torch")
    a = RNG.normal(size=(2, 4, 4)).astype(np.float32)
    if dtype == "complex64":
        a = (a + 1j * RNG.normal(size=a.shape)).astype(np.complex64)

    def loss(m, a):
        w, v = m.linalg.eig(a)
        return (m.abs(w) ** 2).sum() + (m.abs(v) ** 4).sum() + (m.abs(m.linalg.eigvals(a) - 1) ** 3).sum()

    theirs = torch.tensor(a, requires_grad=True)
    loss(torch, theirs).backward()
    close = lambda got, want: np.testing.assert_allclose(np.array(got), want, rtol=1e-3, atol=1e-3)
    f, x = lambda x: loss(mx, x), mx.array(a)
    close(mx.grad(f)(x), theirs.grad.numpy())
    close(mx.vmap(mx.grad(f))(x), theirs.grad.numpy())
    t = mx.array(RNG.normal(size=a.shape).astype(np.float32)).astype(x.dtype)
    slope = mx.jvp(f, [x], [t])[1][0]
    close(slope, mx.real(mx.conjugate(mx.grad(f)(x)) * t).sum())
    curve = mx.grad(lambda x: mx.jvp(f, [x], [t])[1][0])(x)
    ends = [np.array(mx.grad(f)(x + h * t)) for h in (1e-2, -1e-2)]
    np.testing.assert_allclose(np.array(curve), (ends[0] - ends[1]) / 2e-2, rtol=0.05, atol=0.1)


def test_complex_nan_is_last_and_largest():
    z = mx.array([1 + 2j, complex("nan"), 0.5 - 1j, complex(1, float("nan")), -2j])
    assert mx.argsort(z).tolist() == [4, 2, 0, 1, 3]
    assert mx.argmax(z).item() == 1 and mx.argmin(z).item() == 1
    assert np.isnan(np.array(mx.max(z))) and np.isnan(np.array(mx.minimum(z, 1j)))[3]
    assert not mx.any(z < complex("nan")).item()


def test_exponentials_over_complex_axes():
    z = complexes((3, 4))
    e = np.exp(z.astype(np.complex128))
    a = mx.array(z)
    np.testing.assert_allclose(np.array(mx.softmax(a, axis=1)), e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(np.exp(np.array(mx.logsumexp(a, axis=1))), e.sum(1), rtol=1e-5, atol=1e-5)
    both = np.exp(np.array(mx.logaddexp(a, mx.array(1j))))
    np.testing.assert_allclose(both, e + np.exp(1j), rtol=1e-5, atol=1e-5)


def test_powers_of_complex_zero():
    got = np.array(mx.power(mx.array([0j] * 4), mx.array([2 + 1j, 0, -1, 1j])))
    assert got[0] == 0 and got[1] == 1
    assert np.isinf(got[2].real) and np.isnan(got[2].imag)
    assert np.isnan(got[3].real) and np.isnan(got[3].imag)


def test_bools_at_places():
    x, at = mx.array([False, True, False]), mx.array([0, 0, 1])
    yes, no = mx.array([True, False, False]), mx.array([False, True, True])
    assert x.at[at].add(yes).tolist() == [True, True, False]
    assert x.at[at].multiply(no).tolist() == [False, True, False]
    assert x.at[1].subtract(1).tolist() == [False, True, False]
    assert x.at[at].subtract(mx.array([1, 0, 0])).tolist() == [True, True, False]


@pytest.mark.parametrize(
    "value, dtype", [(2**40, "int8"), (2**31, "int32"), (2**33, "uint32"), (-(2**31) - 1, "uint16"), (2**63, "int32")]
)
def test_numbers_that_do_not_fit_are_refused(value, dtype):
    with pytest.raises(ValueError, match="not fit"):
        mx.array([1, value], dtype=getattr(mx, dtype))


def test_numbers_of_32_bits_wrap_as_in_mlx():
    assert mx.array([300, -1], dtype=mx.uint8).tolist() == [44, 255]
    assert mx.array([2**32 - 1], dtype=mx.uint32).tolist() == [2**32 - 1]


def test_steps_beyond_an_axis():
    x = mx.arange(15).reshape(3, 5)
    assert x[:: 2**62, :: 2**62].tolist() == [[0]]
    x[:: 2**62] = 7
    assert x.tolist()[0] == [7] * 5 and x.tolist()[1][0] == 5
    grad = mx.grad(lambda x: x[:: 2**62].sum())(mx.ones((3, 5)))
    assert grad.tolist() == [[1.0] * 5, [0.0] * 5, [0.0] * 5]
    assert mx.max_pool_with_indices(mx.ones((1, 5, 3)), 2, 2**63 - 1)[0].shape == (1, 1, 3)


def test_an_axis_without_elements_has_none_to_take():
    with pytest.raises(ValueError, match="no elements to take"):
        mx.take(mx.zeros((3, 0)), mx.array([0]), axis=1)
    assert mx.take(mx.zeros((3, 0)), mx.zeros((0,), dtype=mx.int32), axis=1).shape == (3, 0)


def test_the_norm_of_zeros_has_the_derivative_zero():
    x = mx.array([[0.0, 0.0], [3.0, 4.0]])
    assert mx.grad(lambda x: mx.linalg.norm(x, axis=1).sum())(x).tolist()[0] == [0.0, 0.0]
    np.testing.assert_allclose(np.array(mx.linalg.norm(x, axis=1)), [0, 5])


def test_extremes_of_complex_numbers_leave_nan_out():
    nan = float("nan")
    x = mx.array([complex(nan, 1), 1 + 2j, 1 - 2j, complex(5, nan)])
    assert mx.nanmax(x).item() == 1 + 2j and mx.nanmin(x).item() == 1 - 2j
    assert np.isnan(mx.nanmax(x[:1]).item())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_zeros_of_both_signs_have_an_order(dtype):
    # However elements are laid out and folded, the sign is the same.
    rng = np.random.default_rng(1)
    for shape in [(65,), (1000,), (33001,), (16, 67), (67, 16), (5, 67, 33), (257, 130)]:
        negative = rng.random(shape) < rng.choice([0.002, 0.5, 0.998])
        x = mx.array(np.where(negative, -0.0, 0.0).astype(np.float32)).astype(getattr(mx, dtype))
        for axis in range(len(shape)):
            for y in (x, mx.contiguous(x.T).T, mx.contiguous(x[::-1])[::-1], x + mx.zeros(1, dtype=x.dtype) * -1):
                for f, want in ((mx.min, negative.any(axis)), (mx.max, negative.all(axis))):
                    np.testing.assert_array_equal(np.signbit(np.array(f(y, axis).astype(mx.float32))), want)
                # Of what comes up to an element it is the first.
                up = np.signbit(np.array(mx.cummin(y, axis=axis).astype(mx.float32)))
                np.testing.assert_array_equal(up, np.broadcast_to(negative.take([0], axis), shape))
