"""Optimisers and schedules against MLX's."""

import pickle

import numpy as np
import pytest
from oracle import (
    assert_same,
    assert_same_tree,
    dtype_name,
    mlx_core,
    mlx_nn,
    mx,
    nn,
    to_cupola,
    to_numpy,
    tree_map,
    uniform,
)

import cupola.optimizers as optim

mlx_optim = pytest.importorskip("mlx.optimizers")

SETTINGS = [
    ("SGD", {}),
    ("SGD", {"weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "dampening": 0.2, "weight_decay": 0.01}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("RMSprop", {}),
    ("RMSprop", {"alpha": 0.5, "eps": 0.1}),
    ("Adagrad", {}),
    ("Adagrad", {"eps": 0.1}),
    ("AdaDelta", {}),
    ("AdaDelta", {"rho": 0.5, "eps": 0.01}),
    ("Adam", {}),
    ("Adam", {"betas": [0.5, 0.9], "eps": 0.01}),
    ("Adam", {"bias_correction": True}),
    ("AdamW", {}),
    ("AdamW", {"weight_decay": 0.3, "bias_correction": True}),
    ("Adamax", {}),
    ("Adamax", {"betas": (0.5, 0.9), "eps": 0.01}),
    ("Lion", {}),
    ("Lion", {"betas": [0.5, 0.7], "weight_decay": 0.1}),
    ("Adafactor", {}),
    ("Adafactor", {"beta_1": 0.9, "weight_decay": 0.1}),
    ("Adafactor", {"warmup_init": True, "decay_rate": -0.5, "clip_threshold": 0.5}),
    ("Adafactor", {"scale_parameter": False, "eps": (1e-10, 0.1)}),
    ("Adafactor", {"learning_rate": 0.1, "relative_step": False}),
    ("Adafactor", {"learning_rate": 0.1, "relative_step": False, "scale_parameter": False}),
    ("Muon", {}),
    ("Muon", {"nesterov": False, "weight_decay": 0.0, "ns_steps": 3, "momentum": 0.5}),
]

SHAPES = {"w": (3,), "deep": [{"m": (4, 3)}, {"t": (2, 5)}], "s": ()}


def make(package_optim, name, kwargs):
    kwargs = dict(kwargs)
    if name != "Adafactor":
        kwargs.setdefault("learning_rate", 0.1)
    return getattr(package_optim, name)(**kwargs)


def trees(seed, shapes=SHAPES, dtype="float32"):
    """A tree of random arrays of both packages."""
    counter = iter(range(seed * 100, seed * 100 + 99))

    def theirs(shape):
        return uniform(*shape, seed=next(counter), dtype=dtype)[1]

    tree = walk(theirs, shapes)
    return tree_map(to_cupola, tree), tree


def walk(fn, shapes):
    if isinstance(shapes, dict):
        return {k: walk(fn, v) for k, v in shapes.items()}
    if isinstance(shapes, list):
        return [walk(fn, v) for v in shapes]
    return fn(shapes)


@pytest.mark.parametrize("case", SETTINGS, ids=str)
def test_steps(case):
    ours, theirs = make(optim, *case), make(mlx_optim, *case)
    p, q = trees(0)
    # Newton-Schulz iterations enlarge rounding errors.
    tolerance = 2e-3 if case[0] == "Muon" else 1e-4
    for seed in range(1, 5):
        g, h = trees(seed)
        p, q = ours.apply_gradients(g, p), theirs.apply_gradients(h, q)
        assert_same_tree(p, q, tolerance)
        assert_same_tree(ours.state, theirs.state, tolerance)
    assert ours.step.item() == 4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", SETTINGS, ids=str)
def test_steps_of_half_precision(case, dtype):
    ours, theirs = make(optim, *case), make(mlx_optim, *case)
    p, q = trees(0, dtype=dtype)
    g, h = trees(1, dtype=dtype)
    tolerance = (0.3 if case[0] == "Muon" else 0.1) if dtype == "bfloat16" else 0.02
    assert_same_tree(ours.apply_gradients(g, p), theirs.apply_gradients(h, q), tolerance)
    assert_same_tree(ours.state, theirs.state, tolerance)


@pytest.mark.parametrize("name", ["Muon", "Adafactor"])
def test_kernels_of_convolutions(name):
    ours, theirs = make(optim, name, {}), make(mlx_optim, name, {})
    p, q = trees(0, {"k": (4, 3, 3, 2)})
    g, h = trees(1, {"k": (4, 3, 3, 2)})
    try:
        expected = theirs.apply_gradients(h, q)
        mlx_core.eval(expected)
    except ValueError:
        assert ours.apply_gradients(g, p)["k"].shape == (4, 3, 3, 2)
    else:
        assert_same_tree(ours.apply_gradients(g, p), expected, 2e-3)


@pytest.mark.parametrize("case", SETTINGS, ids=str)
def test_explicit_init(case):
    ours, theirs = make(optim, *case), make(mlx_optim, *case)
    p, q = trees(0)
    ours.init(p), theirs.init(q)
    assert_same_tree(ours.state, theirs.state)
    g, h = trees(1)
    first = ours.apply_gradients(g, p)
    again = make(optim, *case).apply_gradients(g, p)
    for (a, b) in ((first["w"], again["w"]), (first["s"], again["s"])):
        assert (to_numpy(a) == to_numpy(b)).all()


def test_some_gradients_and_more_later():
    ours, theirs = make(optim, "Adam", {}), make(mlx_optim, "Adam", {})
    p, q = trees(0)
    g, h = trees(1)
    part = ours.apply_gradients({"w": g["w"]}, p)
    assert_same_tree(part, theirs.apply_gradients({"w": h["w"]}, q))
    ours.init(p), theirs.init(q)
    assert_same_tree(ours.apply_gradients(g, p), theirs.apply_gradients(h, q))
    assert_same_tree(ours.state, theirs.state)
    assert ours.apply_gradients({}, p) == {}
    for optimizer, parameters in ((ours, p), (theirs, q)):
        with pytest.raises(KeyError):
            optimizer.apply_gradients({"nope": parameters["w"]}, parameters)


def test_state_can_be_set():
    p, q = trees(0)
    first, second, third = (make(optim, "Adam", {}) for _ in range(3))
    for seed in range(1, 4):
        g, _ = trees(seed)
        p1 = first.apply_gradients(g, p)
    second.state = pickle.loads(pickle.dumps(first.state))
    third = pickle.loads(pickle.dumps(first))
    g, _ = trees(9)
    results = [o.apply_gradients(g, p1) for o in (first, second, third)]
    for other in results[1:]:
        assert (to_numpy(other["w"]) == to_numpy(results[0]["w"])).all()
    assert second.step.item() == third.step.item() == 4
    second.state = {}
    with pytest.raises(KeyError):
        second.step


def test_updates_a_model():
    values = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    models = []
    for nn_, optim_, package in ((nn, optim, mx), (mlx_nn, mlx_optim, mlx_core)):
        model = nn_.Sequential(nn_.Linear(3, 4), nn_.ReLU(), nn_.Linear(4, 1))
        model.apply(lambda w, package=package: package.cos(package.arange(w.size)).reshape(w.shape))
        model.layers[2].freeze(keys="bias")
        optimizer = optim_.AdamW(optim_.linear_schedule(0.0, 0.1, 3))
        step = nn_.value_and_grad(model, lambda x: nn_.losses.mse_loss(model(x), x[:, :1]))
        for _ in range(5):
            loss, gradients = step(package.array(values))
            assert optimizer.update(model, gradients) is None
        models.append([loss, model.parameters(), optimizer.state])
    assert_same_tree(*models, 1e-4)


def test_learning_rate():
    for optim_, package in ((optim, mx), (mlx_optim, mlx_core)):
        optimizer = optim_.SGD(0.25)
        assert optimizer.learning_rate.item() == 0.25 and optimizer.state["learning_rate"].item() == 0.25
        optimizer.learning_rate = 0.5
        assert optimizer.learning_rate.item() == 0.5
        optimizer.learning_rate = package.array(0.75, dtype=package.float16)
        assert dtype_name(optimizer.learning_rate) == "float16"
        assert optim_.SGD(package.array(0.25)).learning_rate.item() == 0.25
        with pytest.raises(KeyError):
            optim_.Adafactor().learning_rate


def test_scheduled_learning_rate():
    seen = []
    for optim_, nn_ in ((optim, nn), (mlx_optim, mlx_nn)):
        optimizer = optim_.SGD(lambda step: 0.5 * (step + 1))
        seen.append([optimizer.learning_rate.item()])
        for _ in range(3):
            optimizer.update(nn_.Linear(1, 1), {})
            seen[-1].append((optimizer.learning_rate.item(), optimizer.step.item()))
        optimizer.learning_rate = 7.0
        seen[-1].append(optimizer.learning_rate.item())
        optimizer.update(nn_.Linear(1, 1), {})
        seen[-1].append(optimizer.learning_rate.item())
    assert seen[0] == seen[1]


def test_multi_optimizer():
    def make_multi(optim_):
        return optim_.MultiOptimizer(
            [optim_.SGD(0.1, momentum=0.9), optim_.Lion(0.3), optim_.Adam(0.2)],
            [lambda path, _: path.startswith("deep"), lambda path, w: w.ndim == 0],
        )

    ours, theirs = make_multi(optim), make_multi(mlx_optim)
    p, q = trees(0)
    ours.init(p), theirs.init(q)
    assert_same_tree(ours.state, theirs.state)
    for seed in range(1, 4):
        g, h = trees(seed)
        p, q = ours.apply_gradients(g, p), theirs.apply_gradients(h, q)
        assert p.keys() == q.keys()
        for key in p:
            assert_same_tree(p[key], q[key])
        assert_same_tree(ours.state, theirs.state)
    assert ours.learning_rate.item() == np.float32(0.1)
    ours.learning_rate = 0.5
    assert [o.learning_rate.item() for o in ours.optimizers] == [0.5] * 3
    fresh = make_multi(optim)
    fresh.state = ours.state
    assert fresh.optimizers[0].step.item() == 3
    for state in ({}, {"states": [{}]}):
        with pytest.raises(ValueError, match="Invalid state provided"):
            ours.state = state
    alone = optim.MultiOptimizer([optim.SGD(0.1)])
    assert list(alone.apply_gradients({"w": p["w"]}, p)) == ["w"]


STEPS = range(12)


@pytest.mark.parametrize(
    "make_schedule",
    [
        lambda o: o.exponential_decay(0.1, 0.9),
        lambda o: o.step_decay(0.1, 0.5, 3),
        lambda o: o.cosine_decay(0.1, 5),
        lambda o: o.cosine_decay(0.1, 7, 0.01),
        lambda o: o.linear_schedule(0, 0.1, 4),
        lambda o: o.linear_schedule(1.0, 0.1, 1),
        lambda o: o.join_schedules([o.linear_schedule(0, 0.1, 3)], []),
        lambda o: o.join_schedules(
            [o.linear_schedule(0, 0.1, 3), o.cosine_decay(0.1, 4), lambda s: 1.0], [3, 6]
        ),
    ],
)
def test_schedules(make_schedule):
    ours, theirs = make_schedule(optim), make_schedule(mlx_optim)
    for step in STEPS:
        a, b = ours(mx.array(step, dtype=mx.uint64)), theirs(mlx_core.array(step, dtype=mlx_core.uint64))
        assert_same(a, b)
        a, b = ours(step), theirs(step)
        if isinstance(b, mlx_core.array):
            assert_same(a, b)
        else:
            assert a == b


@pytest.mark.parametrize(
    "make_bad",
    [
        lambda o: o.SGD(0.1, nesterov=True),
        lambda o: o.SGD(0.1, momentum=0.9, dampening=0.1, nesterov=True),
        lambda o: o.RMSprop(0.1, alpha=-1),
        lambda o: o.RMSprop(0.1, eps=-1),
        lambda o: o.RMSprop(0.1, eps=0.0),
        lambda o: o.Adagrad(0.1, eps=-1),
        lambda o: o.Adagrad(0.1, eps=0.0),
        lambda o: o.AdaDelta(0.1, rho=-1),
        lambda o: o.AdaDelta(0.1, eps=-1),
        lambda o: o.AdaDelta(0.1, eps=0.0),
        lambda o: o.Adam(0.1, betas=[-1, 2]),
        lambda o: o.Adam(0.1, betas=[0.5, 2]),
        lambda o: o.Adamax(0.1, eps=-1),
        lambda o: o.Lion(0.1, betas=[2, 2]),
        lambda o: o.MultiOptimizer([o.SGD(0.1)], [len]),
        lambda o: o.MultiOptimizer([o.SGD(0.1), o.SGD(0.1)], []),
        lambda o: o.linear_schedule(0, 1, 0),
        lambda o: o.linear_schedule(0, 1, -1),
        lambda o: o.cosine_decay(0.1, 0),
        lambda o: o.step_decay(0.1, 0.5, 0),
        lambda o: o.join_schedules([], []),
        lambda o: o.join_schedules([len], [2]),
        lambda o: o.join_schedules([len, len], []),
        lambda o: o.clip_grad_norm({}, -1.0),
    ],
)
def test_bad_arguments(make_bad):
    with pytest.raises(ValueError) as expected:
        make_bad(mlx_optim)
    with pytest.raises(ValueError) as caught:
        make_bad(optim)
    assert str(caught.value) == str(expected.value)


def test_base_class():
    for call in (lambda o: o.init_single(1, {}), lambda o: o.apply_single(1, 2, {})):
        with pytest.raises(NotImplementedError):
            call(optim.Optimizer())

    class Halving(optim.Optimizer):
        def init_single(self, parameter, state):
            state["seen"] = mx.array(0)

        def apply_single(self, gradient, parameter, state):
            state["seen"] = state["seen"] + 1
            return parameter / 2

    optimizer = Halving()
    p, _ = trees(0)
    q = optimizer.apply_gradients(p, optimizer.apply_gradients(p, p))
    np.testing.assert_allclose(to_numpy(q["w"]), to_numpy(p["w"]) / 4)
    assert optimizer.state["deep"][0]["m"]["seen"].item() == 2


@pytest.mark.parametrize("limit", [0.5, 6.5, 1e3])
def test_clip_grad_norm(limit):
    for shapes in (SHAPES, {}, (3, 4), [(2,), ()]):
        g, h = trees(3, shapes)
        ours, theirs = optim.clip_grad_norm(g, limit), mlx_optim.clip_grad_norm(h, limit)
        assert_same_tree(ours, theirs)
    for dtype in ("float16", "bfloat16"):
        g, h = trees(3, dtype=dtype)
        assert_same_tree(optim.clip_grad_norm(g, limit), mlx_optim.clip_grad_norm(h, limit), 1e-2)
    integers = optim.clip_grad_norm({"a": mx.array([3, 4])}, 1.0)
    assert_same_tree(integers, mlx_optim.clip_grad_norm({"a": mlx_core.array([3, 4])}, 1.0))


def test_surface():
    public = {n for n, v in vars(mlx_optim).items() if getattr(v, "__module__", "").startswith("mlx.opt")}
    assert public - set(dir(optim)) == set()
