"""Losses and initialisers against MLX's."""

import math

import numpy as np
import pytest
from oracle import assert_same, dtype_name, mlx_core, mlx_nn, mx, nn, same_error, to_numpy, uniform

# Name, arguments by kind (a shape, or a list of integers), keyword arguments.
LOSSES = [
    ("cross_entropy", [(4, 5), [0, 4, 2, 1]], {}),
    ("cross_entropy", [(4, 5), [0, 4, 2, 1]], {"label_smoothing": 0.2}),
    ("cross_entropy", [(4, 5), (4, 5)], {}),
    ("cross_entropy", [(4, 5), (4, 5)], {"label_smoothing": 0.1}),
    ("cross_entropy", [(4, 3), [0, 3, 2]], {"axis": 0}),
    ("cross_entropy", [(4, 5), [0, 4, 2, 1], (4,)], {}),
    ("cross_entropy", [(2, 3, 4), [[0, 1, 3], [2, 2, 0]]], {}),
    ("cross_entropy", [(5,), 2], {}),
    ("binary_cross_entropy", [(3, 4), (3, 4)], {}),
    ("binary_cross_entropy", [(3, 4), (3, 4), (3, 4)], {}),
    ("l1_loss", [(3, 4), (3, 4)], {}),
    ("mse_loss", [(3, 4), (3, 4)], {}),
    ("smooth_l1_loss", [(3, 4), (3, 4)], {}),
    ("smooth_l1_loss", [(3, 4), (3, 4)], {"beta": 0.3}),
    ("nll_loss", [(4, 5), [0, 4, 2, 1]], {}),
    ("nll_loss", [(4, 3), [0, 3, 2]], {"axis": 0}),
    ("gaussian_nll_loss", [(3, 4), (3, 4), (3, 4)], {}),
    ("gaussian_nll_loss", [(3, 4), (3, 4), (3, 4)], {"full": True, "eps": 0.1}),
    ("kl_div_loss", [(3, 4), (3, 4)], {}),
    ("kl_div_loss", [(3, 4), (3, 4)], {"axis": 0}),
    ("triplet_loss", [(3, 4)] * 3, {}),
    ("triplet_loss", [(3, 4)] * 3, {"p": 4, "margin": 0.5, "eps": 0.1, "axis": 0}),
    ("hinge_loss", [(3, 4), (3, 4)], {}),
    ("hinge_loss", [(3, 4), (4,)], {}),
    ("huber_loss", [(3, 4), (3, 4)], {}),
    ("huber_loss", [(3, 4), (3, 4)], {"delta": 0.4}),
    ("log_cosh_loss", [(3, 4), (3, 4)], {}),
    ("cosine_similarity_loss", [(3, 4), (3, 4)], {}),
    ("cosine_similarity_loss", [(3, 4), (3, 4)], {"axis": 0, "eps": 2.0}),
    ("margin_ranking_loss", [(6,), (6,), [1, -1, 1, 1, -1, -1]], {"margin": 0.2}),
]  # fmt: skip


def arguments(kinds, dtype="float32"):
    pairs = []
    for i, kind in enumerate(kinds):
        if isinstance(kind, tuple):
            pairs.append(uniform(*kind, seed=i, dtype=dtype))
        else:
            pairs.append((mx.array(kind), mlx_core.array(kind)))
    return [a for a, _ in pairs], [b for _, b in pairs]


@pytest.mark.parametrize("reduction", [None, "none", "mean", "sum"])
@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_losses(case, reduction):
    name, kinds, kwargs = case
    if reduction is not None:
        kwargs = {**kwargs, "reduction": reduction}
    x, y = arguments(kinds)
    assert_same(getattr(nn.losses, name)(*x, **kwargs), getattr(mlx_nn.losses, name)(*y, **kwargs), 1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_losses_of_half_precision(case, dtype):
    name, kinds, kwargs = case
    x, y = arguments(kinds, dtype)
    ours, theirs = getattr(nn.losses, name)(*x, **kwargs), getattr(mlx_nn.losses, name)(*y, **kwargs)
    assert_same(ours, theirs, 0.15 if dtype == "bfloat16" else 0.02)


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_gradients_of_losses(case):
    name, kinds, kwargs = case
    x, y = arguments(kinds)

    def gradient(package, losses, values):
        loss = getattr(losses, name)
        return package.grad(lambda a: loss(a, *values[1:], **{**kwargs, "reduction": "sum"}))(values[0])

    assert_same(gradient(mx, nn.losses, x), gradient(mlx_core, mlx_nn.losses, y), 2e-4)


def test_probabilities():
    p, q = np.array([0.0, 0.2, 0.9, 1.0], np.float32), np.array([0.0, 1.0, 0.5, 1.0], np.float32)
    for reduction in ("none", "mean"):
        ours, theirs = (
            losses.binary_cross_entropy(a(p), a(q), with_logits=False, reduction=reduction)
            for losses, a in ((nn.losses, mx.array), (mlx_nn.losses, mlx_core.array))
        )
        assert_same(ours, theirs)


def test_large_logits():
    logits = np.array([[1000.0, -1000.0], [-500.0, 500.0]], np.float32)
    for target in ([0, 0], [1, 1]):
        assert_same(
            nn.losses.cross_entropy(mx.array(logits), mx.array(target)),
            mlx_nn.losses.cross_entropy(mlx_core.array(logits), mlx_core.array(target)),
        )


ERRORS = [
    lambda losses, f, i: losses.cross_entropy(f(2, 3), i(0, 1, 2)),
    lambda losses, f, i: losses.cross_entropy(f(2, 3), f(3, 2)),
    lambda losses, f, i: losses.cross_entropy(f(2, 3), i(0, 1), label_smoothing=1.0),
    lambda losses, f, i: losses.cross_entropy(f(2, 3), i(0, 1), label_smoothing=-0.1),
    lambda losses, f, i: losses.cross_entropy(f(2, 3), i(0, 1), weights=f(3)),
    lambda losses, f, i: losses.cross_entropy(f(2, 3), f(2, 3), weights=f(2, 3)),
    lambda losses, f, i: losses.cross_entropy(f(2, 3), i(0, 1), axis=2),
    lambda losses, f, i: losses.cross_entropy(f(2, 3), i(0, 1), reduction="foo"),
    lambda losses, f, i: losses.binary_cross_entropy(f(2, 3), f(2, 3), weights=f(3)),
    lambda losses, f, i: losses.binary_cross_entropy(f(2, 3), f(3)),
    lambda losses, f, i: losses.l1_loss(f(2, 3), f(3)),
    lambda losses, f, i: losses.mse_loss(f(2, 3), f(3)),
    lambda losses, f, i: losses.smooth_l1_loss(f(2, 3), f(3)),
    lambda losses, f, i: losses.gaussian_nll_loss(f(2, 3), f(3), f(2, 3)),
    lambda losses, f, i: losses.gaussian_nll_loss(f(2, 3), f(2, 3), f(2, 1)),
    lambda losses, f, i: losses.margin_ranking_loss(f(2), f(1), i(1, 1)),
    lambda losses, f, i: losses.margin_ranking_loss(f(1, 2), f(1, 2), i(1)),
    lambda losses, f, i: losses.mse_loss(f(2), f(2), reduction="average"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    error = same_error(
        lambda: ERRORS[number](nn.losses, lambda *s: mx.ones(s), lambda *v: mx.array(v)),
        lambda: ERRORS[number](mlx_nn.losses, lambda *s: mlx_core.ones(s), lambda *v: mlx_core.array(v)),
    )
    assert str(error)


SHAPE = (200, 300)


@pytest.mark.parametrize(
    "name, args, call, mean, std, bounds",
    [
        ("normal", (1.0, 2.0), (), 1.0, 2.0, None),
        ("uniform", (1.0, 3.0), (), 2.0, 2 / math.sqrt(12), (1.0, 3.0)),
        ("glorot_normal", (), (), 0.0, math.sqrt(2 / 500), None),
        ("glorot_normal", (), (3.0,), 0.0, 3 * math.sqrt(2 / 500), None),
        ("glorot_uniform", (), (), 0.0, math.sqrt(2 / 500), (-math.sqrt(6 / 500), math.sqrt(6 / 500))),
        ("he_normal", (), (), 0.0, math.sqrt(1 / 300), None),
        ("he_normal", (), ("fan_out", 2.0), 0.0, 2 * math.sqrt(1 / 200), None),
        ("he_uniform", (), (), 0.0, math.sqrt(1 / 300), (-0.1, 0.1)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_distributions(name, args, call, mean, std, bounds, dtype):
    values = getattr(nn.init, name)(*args, dtype=getattr(mx, dtype))(mx.zeros(SHAPE), *call)
    assert dtype_name(values) == dtype and values.shape == SHAPE
    values = to_numpy(values.astype(mx.float32))
    assert abs(values.mean() - mean) < 0.02 * std + 1e-3 * abs(mean)
    assert abs(values.std() - std) < 0.02 * std
    if bounds:
        low, high = bounds
        slack = 1e-3 * max(abs(low), abs(high))
        assert low - slack <= values.min() < low + 0.01 * (high - low)
        assert high - 0.01 * (high - low) < values.max() <= high + slack


def test_fixed_initialisers():
    square = (3, 3)
    for name, args, shape in [
        ("constant", (0.5,), (2, 3)), ("constant", (3,), ()), ("identity", (), square),
    ]:  # fmt: skip
        ours = getattr(nn.init, name)(*args)(mx.zeros(shape))
        assert_same(ours, getattr(mlx_nn.init, name)(*args)(mlx_core.zeros(shape)))
    assert dtype_name(nn.init.identity(mx.float16)(mx.zeros(square))) == "float16"
    assert dtype_name(nn.init.constant(3, mx.int32)(mx.zeros(square))) == "int32"


@pytest.mark.parametrize("sparsity", [0.0, 0.3, 0.5, 1.0])
def test_sparse(sparsity):
    values = to_numpy(nn.init.sparse(sparsity, mean=5.0)(mx.zeros((40, 50))))
    assert ((values == 0).sum(axis=1) == math.ceil(sparsity * 50)).all()
    if 0 < sparsity < 1:
        assert len({tuple(row == 0) for row in values}) > 30
        assert abs(values[values != 0].mean() - 5) < 0.2


@pytest.mark.parametrize("shape", [(6, 6), (8, 5), (3, 7)])
def test_orthogonal(shape):
    values = to_numpy(nn.init.orthogonal(2.0)(mx.zeros(shape)))
    small = values @ values.T if shape[0] <= shape[1] else values.T @ values
    np.testing.assert_allclose(small, 4 * np.eye(min(shape)), atol=1e-4)
    mx.random.seed(3)
    mlx_core.random.seed(3)
    ours, theirs = nn.init.orthogonal(2.0)(mx.zeros(shape)), mlx_nn.init.orthogonal(2.0)(mlx_core.zeros(shape))
    assert_same(ours, theirs, 1e-4)
    assert_same(mx.random.normal((2,)), mlx_core.random.normal((2,)))


def test_fans():
    for shape in [(3, 4), (2, 3, 4), (2, 3, 5, 4)]:
        ours = nn.init._calculate_fan_in_fan_out(mx.zeros(shape))
        assert ours == mlx_nn.init._calculate_fan_in_fan_out(mlx_core.zeros(shape))


@pytest.mark.parametrize(
    "name, args, shape, call",
    [
        ("glorot_normal", (), (3,), ()),
        ("glorot_uniform", (), (3,), ()),
        ("he_normal", (), (3,), ()),
        ("he_normal", (), (3, 3), ("foo",)),
        ("he_uniform", (), (3, 3), ("foo",)),
        ("identity", (), (2, 3), ()),
        ("identity", (), (3,), ()),
        ("sparse", (0.5,), (3,), ()),
        ("orthogonal", (), (3,), ()),
        ("orthogonal", (), (2, 2, 2), ()),
    ],
)
def test_errors_of_initialisers(name, args, shape, call):
    with pytest.raises(ValueError) as expected:
        getattr(mlx_nn.init, name)(*args)(mlx_core.zeros(shape), *call)
    with pytest.raises(ValueError) as caught:
        getattr(nn.init, name)(*args)(mx.zeros(shape), *call)
    assert str(caught.value) == str(expected.value)
