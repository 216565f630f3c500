"""Loops and branches of functions of trees."""

import math
import signal

import numpy as np
import pytest

import cupola.core as mx
import cupola.nn as nn
from cupola.graph import Graph

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)


def close(got, want):
    np.testing.assert_allclose(np.array(got), want, rtol=1e-5, atol=1e-6)


def decay(carry, x):
    h = mx.tanh(carry["h"] * 0.5 + x["a"] @ x["b"])
    return {"h": h, "n": carry["n"] + 1}, (h, [h.sum()])


def test_scan_over_trees():
    xs = {"a": mx.array(X[:, None, :]), "b": mx.array(X.reshape(6, 4, 1))}
    last, (hs, [sums]) = mx.scan(decay, {"n": 0, "h": mx.zeros((1, 1))}, xs)
    h, all = 0.0, []
    for row in X:
        h = math.tanh(h * 0.5 + float(row @ row))
        all.append(h)
    assert last["n"].item() == 6 and last["n"].dtype == mx.int32
    close(hs, np.array(all)[:, None, None])
    close(sums, all)
    back, (hs, _) = mx.scan(decay, {"n": 0, "h": mx.zeros((1, 1))}, xs, reverse=True)
    assert hs.shape == (6, 1, 1) and abs(back["h"].item() - hs[0].item()) < 1e-7


def test_scan_without_sequences_or_outputs():
    last, ys = mx.scan(lambda c, x: (c * 2, None), mx.array(1), length=5)
    assert last.item() == 32 and ys is None
    none, ys = mx.scan(lambda c, x: (None, x * 2), None, mx.array([1, 2]))
    assert none is None and ys.tolist() == [2, 4]
    none, ys = mx.scan(lambda c, x: (c + x, c), 0.0, mx.zeros((0,)))
    assert none.item() == 0 and ys.shape == (0,)


def loss(w):
    def step(h, x):
        h = mx.tanh(h @ w + x)
        return h, h

    _, hs = mx.scan(step, mx.zeros(4), mx.array(X))
    return mx.square(hs).sum()


def unrolled(w):
    h, total = mx.zeros(4), mx.array(0.0)
    for row in X:
        h = mx.tanh(h @ w + mx.array(row))
        total = total + mx.square(h).sum()
    return total


def test_gradients_compile_vmap():
    w = mx.array(np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32))
    close(loss(w), unrolled(w))
    close(mx.grad(loss)(w), mx.grad(unrolled)(w))
    close(mx.compile(mx.grad(loss))(w), mx.grad(unrolled)(w))
    close(mx.hessian(loss)(w), mx.hessian(unrolled)(w))
    ws = mx.stack([w, 2 * w])
    close(mx.vmap(mx.grad(loss))(ws), mx.stack([mx.grad(unrolled)(one) for one in ws]))


def test_third_derivatives():
    """The forward loop is recorded again for each of them, to give more: the planner makes one loop of all."""
    w = mx.array(np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)) / 2
    slope = lambda f: lambda w: mx.grad(f)(w)[0].sum()
    third = lambda f: mx.grad(slope(slope(f)))(w)
    np.testing.assert_allclose(np.array(third(loss)), np.array(third(unrolled)), rtol=1e-3, atol=1e-4)
    close(mx.compile(lambda: third(loss))(), third(loss))


def test_while_and_for():
    collatz = lambda n: mx.while_loop(
        lambda c: c["n"] != 1,
        lambda c: {"steps": c["steps"] + 1, "n": mx.where(c["n"] % 2 == 0, c["n"] // 2, 3 * c["n"] + 1)},
        {"n": n, "steps": 0},
    )["steps"]
    assert [collatz(mx.array(n)).item() for n in (1, 6, 7, 27)] == [0, 8, 16, 111]
    assert mx.vmap(collatz)(mx.array([1, 6, 7, 27])).tolist() == [0, 8, 16, 111]
    assert mx.compile(collatz)(mx.array(27)).item() == 111
    power = lambda x, n: mx.fori_loop(0, n, lambda i, y: y * x, mx.array(1.0))
    assert power(mx.array(2.0), 5).item() == 32
    assert mx.grad(lambda x: power(x, 5))(mx.array(2.0)).item() == 80
    assert power(mx.array(2.0), mx.array(5)).item() == 32
    assert mx.fori_loop(3, 3, lambda i, y: y + i, 7).item() == 7
    with pytest.raises(ValueError, match="while_loop.*reverse mode"):
        mx.grad(lambda x: power(x, mx.array(5)))(mx.array(2.0))
    assert mx.jvp(lambda x: power(x, mx.array(5)), [mx.array(2.0)], [mx.array(1.0)])[1][0].item() == 80


def test_loops_of_a_largest_length():
    root = lambda a: mx.while_loop(
        lambda c: mx.abs(c["x"] * c["x"] - a) > 1e-5 * a,
        lambda c: {"x": (c["x"] + a / c["x"]) / 2, "n": c["n"] + 1},
        {"x": 1.0, "n": 0},
        max_iterations=30,
    )["x"]
    a = mx.array([4.0, 9.0, 0.25])
    slopes = 0.5 / np.sqrt(np.array(a))
    close(mx.stack([mx.grad(root)(one) for one in a]), slopes)
    close(mx.vmap(mx.grad(root))(a), slopes)
    close(mx.compile(mx.grad(root))(a[0]), slopes[0])
    np.testing.assert_allclose(mx.grad(mx.grad(root))(a[1]).item(), -0.25 * 9**-1.5, rtol=1e-3)
    doubled = lambda x, most: mx.while_loop(lambda c: c < 100, lambda c: c * 2, x, max_iterations=most)
    for most, value, slope in [(0, 1.5, 1), (1, 3, 2), (6, 96, 64), (7, 192, 128), (50, 192, 128)]:
        assert doubled(mx.array(1.5), most).item() == value
        assert mx.grad(doubled)(mx.array(1.5), most).item() == slope
    with pytest.raises(ValueError, match="no int32"):
        doubled(mx.array(1.5), 2**31)
    with pytest.raises(ValueError, match="cannot be negative"):
        doubled(mx.array(1.5), -1)
    with pytest.raises(ValueError, match="one bool without axes"):
        mx.while_loop(lambda c: c, lambda c: c, 1, max_iterations=3)


def test_loops_of_a_largest_length_are_kept(tmp_path):
    path = str(tmp_path / "bounded.cupola")
    doubled = lambda x: mx.while_loop(lambda c: c < 100, lambda c: c * 2, x, max_iterations=9)
    mx.export_function(path, doubled, mx.array(1.5))
    again = mx.import_function(path)
    assert again(mx.array(3.0))[0].item() == 192
    assert mx.grad(lambda x: again(x)[0])(mx.array(3.0)).item() == 64


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 33])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n, reverse):
    x = np.random.default_rng(n).uniform(0.5, 1.5, (3, n)).astype(np.float32)
    want = np.cumprod(x[:, ::-1], 1)[:, ::-1] if reverse else np.cumprod(x, 1)
    product = lambda x: mx.associative_scan(mx.multiply, x, reverse, axis=-1)
    close(product(mx.array(x)), want)
    loss = lambda f: lambda x: (f(x) * mx.arange(3.0 * n).reshape(3, n)).sum()
    close(mx.grad(loss(product))(mx.array(x)), mx.grad(loss(lambda x: mx.cumprod(x, 1, reverse=reverse)))(mx.array(x)))
    close(mx.vmap(lambda x: mx.associative_scan(mx.multiply, x, reverse))(mx.array(x)), want)


def test_associative_scan_over_trees():
    # Matrices do not commute, so the order counts.
    m = np.random.default_rng(0).normal(size=(6, 2, 2)).astype(np.float32)
    then = lambda f, g: {"a": f["a"] @ g["a"]}
    found = mx.associative_scan(then, {"a": mx.array(m)})["a"]
    for i in range(6):
        close(found[i], np.linalg.multi_dot([np.eye(2), *m[: i + 1]]))
    behind = mx.associative_scan(lambda f, g: g @ f, mx.array(m), reverse=True)
    for i in range(6):
        close(behind[i], np.linalg.multi_dot([*m[i:], np.eye(2)]))
    with pytest.raises(ValueError, match="another size along the axis"):
        mx.associative_scan(lambda f, g: f, [mx.zeros(3), mx.zeros(4)])
    with pytest.raises(ValueError, match=r"elems is float32\[1\] before .* float32\[\] after"):
        mx.associative_scan(lambda f, g: f.sum(), mx.zeros(3))
    with pytest.raises(ValueError, match=r"takes \[elems\[0\], elems\[1\]\] and gives \[elems\]"):
        mx.associative_scan(lambda f, g: f[0], [mx.zeros(3), mx.zeros(3)])
    with pytest.raises(IndexError):
        mx.associative_scan(mx.add, mx.zeros(3), axis=1)
    with pytest.raises(ValueError, match="there is no array"):
        mx.associative_scan(lambda f, g: f, [])


def test_cond_and_switch():
    f = lambda x: mx.cond(x > 0, lambda x: mx.sqrt(x), lambda x: x * 0, x)
    assert f(mx.array(4.0)).item() == 2 and f(mx.array(-4.0)).item() == 0
    assert mx.grad(f)(mx.array(4.0)).item() == 0.25
    close(mx.vmap(f)(mx.array([4.0, -1.0])), [2, 0])
    close(mx.vmap(mx.grad(f))(mx.array([4.0, -1.0])), [0.25, 0])
    # What the branch that is not taken would give is not finite, and stays out of the gradient.
    total = lambda x: mx.vmap(f)(x).sum()
    close(mx.grad(total)(mx.array([4.0, -1.0, 0.0])), [0.25, 0, 0])
    close(mx.grad(lambda x: mx.grad(total)(x).sum())(mx.array([4.0, 0.0])), [-1 / 32, 0])
    assert mx.cond(True, lambda: {"a": 1}, lambda: {"a": 2})["a"].item() == 1
    g = lambda i, x: mx.switch(i, [mx.negative, mx.square, lambda x: x * 10], x)
    assert [g(mx.array(i), mx.array(3.0)).item() for i in (-1, 0, 1, 2, 3)] == [-3, -3, 9, 30, 30]
    assert g(1, 3.0).item() == 9


def test_errors_name_the_leaf():
    carry = {"h": mx.zeros(3), "n": 0}
    with pytest.raises(ValueError, match=r"carry\['h'\] is float32\[3\] before .* float16\[3\] after"):
        mx.scan(lambda c, x: ({"h": c["h"].astype(mx.float16), "n": c["n"]}, None), carry, length=2)
    with pytest.raises(ValueError, match=r"takes \[carry\['h'\], carry\['n'\]\] and gives \[carry\['h'\]\]"):
        mx.scan(lambda c, x: ({"h": c["h"]}, None), carry, length=2)
    with pytest.raises(ValueError, match="pair"):
        mx.scan(lambda c, x: c, carry, length=2)
    with pytest.raises(ValueError, match="how often"):
        mx.scan(lambda c, x: (c, None), carry)
    with pytest.raises(ValueError, match="others have 3"):
        mx.scan(lambda c, x: (c, None), carry, [mx.zeros((3, 2)), mx.zeros((2, 2))])
    with pytest.raises(TypeError, match="carry should contain only arrays and numbers, not a str"):
        mx.scan(lambda c, x: (c, None), {"a": "b"}, length=1)
    with pytest.raises(ValueError, match="one bool without axes"):
        mx.while_loop(lambda c: c, lambda c: c, mx.zeros(3))
    with pytest.raises(ValueError, match=r"\[result, .* another|a branch gives \[result\]"):
        mx.cond(mx.array(True), lambda x: (x, x), lambda x: x, mx.zeros(3))
    with pytest.raises(ValueError, match=r"branch true gives .*float32\[\]"):
        mx.cond(mx.array(True), lambda x: x.sum(), lambda x: x, mx.zeros(3))
    with pytest.raises(ValueError, match="must be one bool"):
        mx.cond(mx.zeros(3), mx.abs, mx.abs, mx.zeros(3))
    with pytest.raises(ZeroDivisionError):
        mx.scan(lambda c, x: 1 / 0, 0, length=1)
    with pytest.raises(ValueError, match="scan is tracing"):
        mx.scan(lambda c, x: (c if c.item() else c, None), mx.array(1), length=1)


def test_random_numbers_differ():
    mx.random.seed(3)
    _, first = mx.scan(lambda c, x: (c, mx.random.uniform(shape=(4,))), 0, length=3)
    assert len(set(np.array(first).ravel().tolist())) == 12


def test_interrupt():
    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        endless = mx.while_loop(lambda c: c >= 0, lambda c: c * 0.5 + 1, mx.array(1.0))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            mx.eval(endless)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("layer", [nn.RNN, nn.GRU, nn.LSTM])
def test_recurrent_layers_are_loops(layer):
    net = layer(3, 4)
    x = mx.random.normal((2, 40, 3))
    parts = lambda found: found if isinstance(found, tuple) else (found,)
    whole = parts(net(x))
    held, found = (), []
    for start in range(0, 40, 8):
        states = parts(net(x[:, start : start + 8], *held))
        held = tuple(s[:, -1] for s in states)
        found.append(states)
    for got, want in zip(whole, zip(*found)):
        close(got, mx.concatenate(want, axis=1))
    assert any(step["kind"] == "scan" for step in mx.explain(net, x).steps)


def test_in_graphs():
    g = Graph()
    x, w = g.placeholder("x", ("steps", 2)), g.variable("w", mx.ones(2))
    scaled = lambda x, w: mx.scan(lambda c, r: (c + w * r, c.sum()), mx.zeros(2), x)
    last, sums = g.call(scaled, x, w)
    y = g.cond(last.sum() > 0, mx.sqrt, mx.zeros_like, last, name="root")
    (slope,) = g.gradients(y.sum(), [w])
    g.function("run", {"y": y, "sums": sums, "slope": slope})
    run = g.compile(mx.cpu)
    found = run.run({"x": mx.ones((4, 2))})
    assert found["y"].tolist() == [2, 2] and found["sums"].tolist() == [0, 2, 4, 6]
    close(found["slope"], [1, 1])
    assert run.run({"x": mx.ones((9, 2))})["y"].tolist() == [3, 3]
    with pytest.raises(ValueError, match="node 'bad' \\(scan\\)"):
        g.scan(lambda c, r: (c.sum(), None), mx.zeros(2), x, name="bad")


def test_exported(tmp_path):
    path = str(tmp_path / "loop.cupola")
    mx.export_function(path, loss, mx.eye(4))
    again = mx.import_function(path)
    w = mx.array(np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32))
    close(again(w)[0], unrolled(w))
