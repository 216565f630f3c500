"""Jacobians, Hessians and linear maps: against closed forms, finite differences and each other."""

import numpy as np
import pytest
from conftest import cc

rng = np.random.default_rng(0)
X = rng.normal(size=(3,)).astype(np.float32)
W = rng.normal(size=(2, 3)).astype(np.float32)


def close(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(np.array(ours), theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("jacobian", [cc.jacfwd, cc.jacrev])
class TestJacobians:
    def test_vectors(self, jacobian):
        out = jacobian(lambda x: cc.array(W) @ cc.sin(x))(cc.array(X))
        close(out, W * np.cos(X))
        assert jacobian(cc.sum)(cc.array(X)).shape == (3,)
        assert jacobian(lambda x: x * cc.array(X))(cc.array(2.0)).shape == (3,)
        assert jacobian(lambda x: x.reshape(1, 3, 1) * 2)(cc.array(X)).shape == (1, 3, 1, 3)

    def test_several_arguments(self, jacobian):
        f = lambda w, x: w @ x  # noqa: E731
        close(jacobian(f)(cc.array(W), cc.array(X)), np.einsum("ij,k->ijk", np.eye(2), X))
        both = jacobian(f, argnums=(0, 1))(cc.array(W), cc.array(X))
        assert isinstance(both, tuple)
        close(both[1], W)
        (one,) = jacobian(f, argnums=[1])(cc.array(W), cc.array(X))
        close(one, W)
        close(jacobian(lambda x, *, by: x * by)(cc.array(X), by=2.0), 2 * np.eye(3))

    def test_trees(self, jacobian):
        f = lambda p: {"y": p["a"] * p["b"][0], "z": [p["a"].sum()]}  # noqa: E731
        out = jacobian(f)({"a": cc.array(X), "b": [cc.array(3.0)]})
        close(out["y"]["a"], 3 * np.eye(3))
        close(out["y"]["b"][0], X)
        close(out["z"][0]["a"], np.ones(3))
        close(out["z"][0]["b"][0], 0)

    def test_independent_and_empty(self, jacobian):
        close(jacobian(lambda x: cc.ones(2))(cc.array(X)), np.zeros((2, 3)))
        assert jacobian(lambda x: x)(cc.zeros((0, 2))).shape == (0, 2, 0, 2)
        assert jacobian(lambda x: x.sum())(cc.zeros((0,))).shape == (0,)
        close(jacobian(cc.stop_gradient)(cc.array(X)), np.zeros((3, 3)))

    def test_nested(self, jacobian):
        f = lambda x: (x**3).sum()  # noqa: E731
        close(jacobian(cc.grad(f))(cc.array(X)), np.diag(6 * X), 1e-4)
        third = jacobian(jacobian(jacobian(f)))(cc.array(X))
        want = np.zeros((3, 3, 3))
        want[range(3), range(3), range(3)] = 6
        close(third, want, 1e-4)
        close(cc.grad(lambda x: jacobian(f)(x).sum())(cc.array(X)), 6 * X, 1e-4)
        close(cc.vmap(jacobian(f))(cc.array(W)), 3 * W**2, 1e-4)
        close(cc.compile(jacobian(cc.sin))(cc.array(X)), np.diag(np.cos(X)))
        close(jacobian(cc.compile(cc.sin))(cc.array(X)), np.diag(np.cos(X)))
        close(jacobian(cc.checkpoint(cc.sin))(cc.array(X)), np.diag(np.cos(X)))

    def test_layers(self, jacobian):
        w = cc.array(rng.normal(size=(4, 2, 2, 3)).astype(np.float32))
        f = lambda x: cc.softmax(cc.conv2d(x, w).flatten(), axis=0)  # noqa: E731
        x = rng.normal(size=(1, 3, 3, 3)).astype(np.float32)
        out = np.array(jacobian(f)(cc.array(x)))
        assert out.shape == (16, 1, 3, 3, 3)
        h = 1e-2
        for at in [(0, 0, 0, 0), (0, 2, 1, 2)]:
            step = np.zeros_like(x)
            step[at] = h
            slope = (np.array(f(cc.array(x + step))) - np.array(f(cc.array(x - step)))) / (2 * h)
            np.testing.assert_allclose(out[(slice(None), *at)], slope, rtol=2e-2, atol=1e-4)

    def test_complex_numbers(self, jacobian):
        z = np.array([1 + 2j, -0.5j], np.complex64)
        close(jacobian(cc.square)(cc.array(z)), np.diag(2 * z))
        with pytest.raises(ValueError, match="jac"):
            if jacobian is cc.jacfwd:
                jacobian(cc.abs)(cc.array(z))
            else:
                jacobian(lambda x: x * cc.array(z))(cc.array([1.0, 2.0]))

    def test_dtypes(self, jacobian):
        for dtype in (cc.float16, cc.bfloat16):
            out = jacobian(cc.square)(cc.array(X).astype(dtype))
            assert out.dtype == dtype

    def test_errors(self, jacobian):
        with pytest.raises(ValueError, match="no derivatives"):
            jacobian(lambda x: x * 1.0)(cc.array([True, False]))
        with pytest.raises(ValueError, match="index 1"):
            jacobian(cc.sin, argnums=1)(cc.array(X))
        with pytest.raises(ValueError, match="negative"):
            jacobian(cc.sin, argnums=-1)
        with pytest.raises(ValueError, match="no argument"):
            jacobian(cc.sin, argnums=())
        with pytest.raises(ValueError):
            jacobian(lambda x: 3.0)(cc.array(X))
        with pytest.raises(ZeroDivisionError):
            jacobian(lambda x: x / (1 // 0))(cc.array(X))

    def test_is_called_once(self, jacobian):
        calls = []
        jacobian(lambda x: calls.append(1) or x * 2)(cc.array(X))
        assert calls == [1]


def test_hessians():
    a = W.T @ W
    f = lambda x: 0.5 * x @ cc.array(a) @ x + cc.sin(x).sum()  # noqa: E731
    close(cc.hessian(f)(cc.array(X)), a - np.diag(np.sin(X)), 1e-4)
    g = lambda x, y: (x * y).sum() ** 2  # noqa: E731
    Y = X[::-1].copy()
    (xx, xy), (yx, yy) = cc.hessian(g, argnums=(0, 1))(cc.array(X), cc.array(Y))
    s = (X * Y).sum()
    close(xx, 2 * np.outer(Y, Y), 1e-4)
    close(xy, 2 * np.outer(Y, X) + 2 * s * np.eye(3), 1e-4)
    close(yx, np.array(xy).T, 1e-4)
    close(yy, 2 * np.outer(X, X), 1e-4)
    tree = cc.hessian(lambda p: (p["a"] ** 2 * p["b"]).sum())({"a": cc.array(X), "b": cc.array(2.0)})
    close(tree["a"]["a"], 4 * np.eye(3))
    close(tree["a"]["b"], 2 * X)
    close(tree["b"]["b"], 0)
    close(cc.hessian(lambda x: cc.square(x) * x)(cc.array(X)).sum(0), np.diag(6 * X), 1e-4)


def test_linear_maps():
    calls = []

    def f(x, p):
        calls.append(1)
        return {"y": cc.sin(x) * p[0]}

    y, slope = cc.linearize(f, cc.array(X), [cc.array(2.0)])
    close(y["y"], 2 * np.sin(X))
    for k in range(3):
        t = rng.normal(size=3).astype(np.float32)
        close(slope(cc.array(t), [cc.array(1.0)])["y"], 2 * np.cos(X) * t + np.sin(X))
    assert calls == [1]
    columns = cc.vmap(lambda t: slope(t, [cc.array(0.0)])["y"], out_axes=1)(cc.eye(3))
    close(columns, np.diag(2 * np.cos(X)))
    close(cc.grad(lambda t: slope(t, [cc.array(0.0)])["y"].sum())(cc.array(X)), 2 * np.cos(X))
    close(cc.grad(lambda x: cc.linearize(cc.sin, x)[1](cc.ones(3)).sum())(cc.array(X)), -np.sin(X))
    with pytest.raises(ValueError, match="linearize"):
        slope(cc.array(X))
    with pytest.raises(ValueError, match="linearize"):
        slope(cc.ones(2), [cc.array(0.0)])
