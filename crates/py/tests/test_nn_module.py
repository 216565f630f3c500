"""The contract of Module against MLX's."""

import copy
import dataclasses
import pickle
import threading

import numpy as np
import pytest
from oracle import assert_same_tree, mlx_core, mlx_nn, mx, nn, same_error, to_numpy, tree_flatten


def make(nn, mx):
    """A module with everything that a module can hold, of either package."""

    class Nest(nn.Module):
        def __init__(self, **members):
            super().__init__()
            for name, value in members.items():
                setattr(self, name, value)

    def array(*values):
        return mx.array(values)

    def linear(inputs, outputs, bias=True):
        layer = nn.Linear(inputs, outputs, bias)
        return layer.apply(lambda p: mx.arange(p.size).reshape(p.shape).astype(mx.float32))

    return Nest(
        a=array(1.0, 2.0),
        layers=[linear(2, 3), nn.ReLU(), array(5.0)],
        named={"x": linear(1, 1), "y": array(3.0), "_z": array(4.0), "in": {"w": array(1.0)}, "t": (1, 2)},
        pair=(linear(2, 2), array(1.0)),
        nested=[[array(1.0)], [nn.Tanh(), linear(2, 1, False)]],
        number=3,
        text="s",
        nothing=None,
        function=len,
        _hidden=array(7.0),
        _layer=linear(1, 2),
        numbers=[1, 2],
        empty=[],
        norm=nn.BatchNorm(3),
        inner=Nest(act=nn.ReLU(), deep=Nest(w=array(9.0))),
    )


@pytest.fixture
def both():
    return make(nn, mx), make(mlx_nn, mlx_core)


def shape_of(tree):
    """A tree with arrays and modules as text, to compare across the packages."""
    if isinstance(tree, (nn.Module, mlx_nn.Module)):
        return repr(tree)
    if isinstance(tree, dict):
        return {k: shape_of(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(shape_of(v) for v in tree)
    return (tree.shape, to_numpy(tree).tolist()) if hasattr(tree, "tolist") else tree


def test_a_frozen_module_has_no_gradients():
    same_error(
        lambda: nn.value_and_grad(nn.Linear(2, 2).freeze(), lambda x: x.sum())(mx.ones(2)),
        lambda: mlx_nn.value_and_grad(mlx_nn.Linear(2, 2).freeze(), lambda x: x.sum())(mlx_core.ones(2)),
    )


def test_contents(both):
    ours, theirs = both
    assert repr(ours) == repr(theirs)
    assert list(ours) == list(theirs) and len(ours) == len(theirs)
    assert sorted(vars(ours)) == sorted(vars(theirs))
    assert ours.state is ours
    assert_same_tree(ours.parameters(), theirs.parameters())
    assert_same_tree(ours.trainable_parameters(), theirs.trainable_parameters())
    assert shape_of(ours.children()) == shape_of(theirs.children())
    assert shape_of(ours.leaf_modules()) == shape_of(theirs.leaf_modules())
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    assert list(map(repr, ours.modules())) == list(map(repr, theirs.modules()))
    visited = []
    assert ours.apply_to_modules(lambda name, module: visited.append(name)) is ours
    assert visited == [n for n, _ in theirs.named_modules()]


FILTERS = {
    "everything": lambda m, k, v: True,
    "public": lambda m, k, v: not k.startswith("_"),
    "lists": lambda m, k, v: isinstance(v, list),
    "weights": lambda m, k, v: isinstance(v, dict) or k == "weight",
    "no lists": lambda m, k, v: not isinstance(v, list),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filter_and_map(both, name):
    ours, theirs = both
    keep = FILTERS[name]
    assert shape_of(ours.filter_and_map(keep)) == shape_of(theirs.filter_and_map(keep))
    kind = ours.filter_and_map(keep, lambda v: type(v).__name__)
    assert kind == theirs.filter_and_map(keep, lambda v: type(v).__name__)


def test_filter_and_map_needs_leaves(both):
    for module in both:
        with pytest.raises(RuntimeError):
            module.filter_and_map(lambda *_: True, is_leaf_fn=lambda *_: False)


def test_attributes(both):
    for module, package in zip(both, (mx, mlx_core)):
        array = package.array([1.0])
        module.number = array
        assert "number" in module and "number" not in vars(module) and module.number is array
        module.a = 5
        assert "a" not in module and vars(module)["a"] == 5
        module.a = [array]
        assert "a" in module and "a" not in vars(module)
        del module.a
        assert not hasattr(module, "a")
        del module.text
        module["new"] = array
        assert module.new is array
        for name in ("nope", "text"):
            with pytest.raises(AttributeError, match=f"'Nest' object has no attribute '{name}'"):
                getattr(module, name)
            with pytest.raises(AttributeError):
                delattr(module, name)
        with pytest.raises(AttributeError):
            module.training = False
        with pytest.raises(AttributeError):
            module.train = array
        with pytest.raises(TypeError):
            hash(module)
        with pytest.raises(TypeError):
            module(1)


@pytest.mark.parametrize("nn", [nn, mlx_nn], ids=["ours", "mlx"])
def test_members_of_one_instance_are_not_those_of_another(nn):
    package = mx if nn.__name__.startswith("cupola") else mlx_core

    class Base(nn.Module):
        def __getattr__(self, key):
            if key.startswith("made_"):
                return key
            return super().__getattr__(key)

    class Below(Base):
        @property
        def size(self):
            return 7

    array, other = package.array([1.0]), package.array([2.0])
    one, two, below = Base(), Base(), Below()
    one.w, one.size = array, other
    assert one.w is array and not hasattr(two, "w")
    with pytest.raises(AttributeError, match="'Base' object has no attribute 'w'"):
        _ = two.w
    # An ordinary attribute, an item, a property of a class below, and what a class makes up.
    two.w = 3
    assert two.w == 3 and "w" not in two and one.w is array
    two.w = other
    assert two.w is other and vars(two).get("w") is None
    assert below.size == 7
    with pytest.raises(AttributeError):
        below.size = array
    assert one.made_up == "made_up"
    # What is put into the dictionary, and taken from it, is there, and gone.
    one["w"] = other
    assert one.w is other
    del one["w"]
    assert not hasattr(one, "w")
    one.w = array
    copied = copy.deepcopy(one)
    copied.w = other
    assert one.w is array and copied.w is other and copied.size is not other
    # The base of all has no members of its own.
    assert not hasattr(nn.Module(), "w")


@pytest.mark.parametrize("nn", [nn, mlx_nn], ids=["ours", "mlx"])
def test_members_of_an_instance_do_not_hide_what_classes_have(nn):
    package = mx if nn.__name__.startswith("cupola") else mlx_core

    class Base(nn.Module):
        def __init__(self, bias=True):
            super().__init__()
            if bias:
                self.bias = self.scale = package.array([1.0])

    class Mix:
        bias = None

        @property
        def scale(self):
            return 5

        @staticmethod
        def name():
            return "mix"

    class Below(Base, Mix):
        pass

    class Doubled(nn.Module):
        def __getattr__(self, key):
            return super().__getattr__(key) * 2

    assert Base().bias.item() == 1
    below, doubled = Below(bias=False), Doubled()
    assert below.bias is None and below.scale == 5 and below.name() == "mix"
    assert Below.bias is None and isinstance(Below.scale, property)
    assert not hasattr(Base, "bias") and not hasattr(Base(bias=False), "bias")
    with pytest.raises(AttributeError):
        below.bias = package.array([1.0])
    doubled.w = package.array([3.0])
    assert doubled.w.item() == 6
    setattr(Base(), "__bool__", [1])
    assert not Base(bias=False)
    Later = dataclasses.make_dataclass("Later", [("bias", object), ("size", int)])
    assert Later(1, 2).size == 2
    assert all(pickle.loads(pickle.dumps(value)) for key, value in vars(Base).items() if key == "bias")


UPDATES = [
    {}, [], {"a": [3.0, 4.0]}, {"layers": [{"bias": [1.0, 2.0, 3.0]}]}, {"layers": [{}, {}, [6.0]]},
    {"named": {"x": {"weight": [[1.0]]}, "in": {"w": [5.0]}}}, {"pair": [{"bias": [1.0, 1.0]}]},
    {"nope": [1.0]}, {"layers": [{"nope": [1.0]}]}, {"layers": [{}, {}, [6.0], {}]}, {"norm": [1.0]},
    {"named": {"nope": {}}}, {"named": {"0": 1}}, {"layers": {"0": 1}}, {"a": 3}, {"a": None},
    {"pair": [{}, [5.0]]}, None, 3, {"layers": {}}, {"inner": {"deep": {"w": [1.5]}}}, {"number": 4},
]  # fmt: skip


def arrays_of(tree, package):
    """A tree with lists of numbers as arrays."""
    if isinstance(tree, dict):
        return {k: arrays_of(v, package) for k, v in tree.items()}
    if isinstance(tree, list):
        numbers = tree and (isinstance(tree[0], float) or isinstance(tree[0], list))
        return package.array(tree) if numbers else [arrays_of(v, package) for v in tree]
    return tree


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("change", UPDATES, ids=str)
def test_update(both, change, strict):
    ours, theirs = both
    try:
        theirs.update(arrays_of(change, mlx_core), strict=strict)
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            ours.update(arrays_of(change, mx), strict=strict)
        if isinstance(error, ValueError):
            assert str(caught.value) == str(error)
    else:
        assert ours.update(arrays_of(change, mx), strict=strict) is ours
        assert_same_tree(ours.parameters(), theirs.parameters())


def test_frozen_members_of_lists_can_be_updated():
    module = make(nn, mx)
    module.freeze()
    assert module.update(module.trainable_parameters()) is module


MODULE_UPDATES = [
    lambda nn: {}, lambda nn: {"norm": nn.ReLU()}, lambda nn: {"nope": nn.ReLU()}, lambda nn: {"norm": 3},
    lambda nn: {"layers": [nn.Tanh()]}, lambda nn: {"layers": [{}, nn.Sigmoid()]},
    lambda nn: {"layers": [{}, {}, {}, nn.Tanh()]}, lambda nn: {"a": nn.ReLU()}, lambda nn: {"a": 3},
    lambda nn: {"named": {"x": nn.Tanh()}}, lambda nn: {"named": {"x": {}}},
    lambda nn: {"nested": [[], [nn.ReLU()]]}, lambda nn: {"layers": [3]},
    lambda nn: {"inner": {"deep": nn.Linear(1, 1)}}, lambda nn: {"norm": {"weight": 3}},
    lambda nn: {"layers": [nn.Linear(1, 1), nn.Linear(1, 1), nn.Linear(1, 1)]},
]  # fmt: skip


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("number", range(len(MODULE_UPDATES)))
def test_update_modules(both, number, strict):
    ours, theirs = both
    change = MODULE_UPDATES[number]
    try:
        theirs.update_modules(change(mlx_nn), strict=strict)
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            ours.update_modules(change(nn), strict=strict)
        assert str(caught.value) == str(error)
    else:
        assert ours.update_modules(change(nn), strict=strict) is ours
        assert repr(ours) == repr(theirs)


def test_apply(both):
    for module in both:
        assert module.apply(lambda x: x + 1) is module
        module.apply(lambda x: x * 0, lambda m, k, v: k[0] not in "lp" and m.valid_parameter_filter(m, k, v))
        with pytest.raises(ValueError):
            module.apply(lambda x: 3)
    assert_same_tree(both[0].parameters(), both[1].parameters())


@pytest.mark.parametrize(
    "steps",
    [
        ["freeze()"],
        ["freeze()", "unfreeze()"],
        ["freeze(recurse=False)"],
        ["freeze(keys='weight')"],
        ["freeze(keys=['bias', 'a'])", "unfreeze(keys='a')"],
        ["freeze()", "unfreeze(keys='bias')"],
        ["freeze()", "unfreeze(recurse=False)"],
        ["freeze(keys='named')"],
        ["freeze(keys='nope')"],
        ["freeze(keys='weight', strict=True)"],
        ["freeze(keys='nope', strict=True)"],
        ["freeze(keys=['weight', 'nope'], strict=True)"],
        ["freeze(keys='weight', recurse=False, strict=True)"],
        ["freeze(keys='a', recurse=False, strict=True)"],
        ["freeze()", "unfreeze(keys='nope', strict=True)"],
        ["freeze(True)"],
        ["norm.unfreeze()"],
        ["freeze()", "norm.unfreeze()"],
    ],
    ids=str,
)
def test_freeze(both, steps):
    ours, theirs = both
    for step in steps:
        try:
            eval(f"module.{step}", {"module": theirs})
        except Exception as error:
            with pytest.raises(type(error)):
                eval(f"module.{step}", {"module": ours})
        else:
            eval(f"module.{step}", {"module": ours})
    assert_same_tree(ours.trainable_parameters(), theirs.trainable_parameters())
    assert [m._no_grad for m in ours.modules()] == [m._no_grad for m in theirs.modules()]


def test_training_mode(both):
    for module in both:
        assert module.training
        assert module.eval() is module
        assert not any(m.training for m in module.modules())
        assert module.train() is module
        assert all(m.training for m in module.modules())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_set_dtype(both, dtype):
    for module, package in zip(both, (mx, mlx_core)):
        module.index = package.array([1, 2])
        assert module.set_dtype(getattr(package, dtype)) is None
    assert_same_tree(both[0].parameters(), both[1].parameters())
    for module, package in zip(both, (mx, mlx_core)):
        module.set_dtype(package.float32, None)
        module.set_dtype(package.float16, lambda d, p=package: d == p.int32)
    assert_same_tree(both[0].parameters(), both[1].parameters())


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_weights_of_either_package(both, kind, tmp_path):
    ours, theirs = both
    for source, target in ((ours, theirs), (theirs, ours)):
        path = str(tmp_path / f"weights.{kind}")
        source.apply(lambda x: x * 2 + 1)
        source.save_weights(path)
        assert target.load_weights(path) is target
        assert_same_tree(ours.parameters(), theirs.parameters())


LOADS = [
    [], [("weight", (1, 1))], [("weight", (1, 1)), ("bias", (1,))],
    [("weight", (1, 1)), ("bias", (1,)), ("foo", (1,)), ("goo", (1,))],
    [("weight", (1, 2)), ("bias", (1,))], [("weight", None), ("bias", (1,))],
]  # fmt: skip


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("weights", LOADS, ids=str)
def test_load_weights(weights, strict):
    def load(nn, package):
        pairs = [(name, 3 if shape is None else package.ones(shape)) for name, shape in weights]
        return nn.Linear(1, 1).load_weights(pairs, strict=strict)

    try:
        expected = load(mlx_nn, mlx_core)
    except ValueError as error:
        with pytest.raises(ValueError) as caught:
            load(nn, mx)
        # The text names a type or a parameter, and both packages have them alike.
        assert str(caught.value) == str(error)
    else:
        ours = load(nn, mx)
        loaded = {name for name, shape in weights if shape is not None}
        for name in loaded & {"weight", "bias"}:
            assert shape_of(ours[name]) == shape_of(expected[name])


def test_files_of_weights(tmp_path):
    layer = nn.Linear(2, 2)
    for name in ("w.txt", "w"):
        with pytest.raises(ValueError, match="Unsupported file extension"):
            layer.save_weights(str(tmp_path / name))
    layer.save_weights(tmp_path / "w.npz")
    other = nn.Linear(2, 2).load_weights(tmp_path / "w.npz")
    assert (to_numpy(other.weight) == to_numpy(layer.weight)).all()
    nn.ReLU().save_weights(str(tmp_path / "none.safetensors"))
    nn.ReLU().load_weights(str(tmp_path / "none.safetensors"))
    with np.load(tmp_path / "w.npz") as file:
        assert sorted(file) == ["bias", "weight"]


def test_copies():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Dropout(0.5))
    model.freeze(keys="bias").eval()
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert repr(other) == repr(model) and not other.training
        assert [m._no_grad for m in other.modules()] == [m._no_grad for m in model.modules()]
        for (name, a), (_, b) in zip(tree_flatten(other.parameters()), tree_flatten(model.parameters())):
            assert a is not b and (to_numpy(a) == to_numpy(b)).all(), name
        other.layers[0].weight = mx.zeros((4, 3))
        assert (to_numpy(model.layers[0].weight) != 0).any()


def test_static_filters():
    module = make(nn, mx)
    assert nn.Module.is_module(module) and not nn.Module.is_module(3)
    assert nn.Module.valid_child_filter(module, "layers", module.layers)
    assert not nn.Module.valid_child_filter(module, "pair", module.pair)
    assert nn.Module.valid_parameter_filter(module, "a", module.a)
    assert not nn.Module.valid_parameter_filter(module, "_hidden", module["_hidden"])
    module.freeze(keys="a")
    assert not nn.Module.trainable_parameter_filter(module, "a", module.a)


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Called(nn.Linear):
    def __call__(self, x):
        return 2 * super().__call__(x)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x, scale=1):
        return self.layer(x) * scale


def test_forward_and_call_are_one():
    x = mx.ones((4, 3))
    for kind in (Doubled, Called):
        layer = kind(3, 2)
        expected = to_numpy(2 * (x @ layer.weight.T + layer.bias))
        np.testing.assert_allclose(to_numpy(layer(x)), expected, rtol=1e-5)
        np.testing.assert_allclose(to_numpy(layer.forward(x)), expected, rtol=1e-5)
    network = Network()
    assert network(x, scale=2).shape == network.forward(x).shape == (4, 2)
    assert nn.Sequential(network, nn.ReLU())(x).shape == (4, 2)
    np.testing.assert_allclose(to_numpy(nn.Linear.forward(network.layer, x)), to_numpy(network(x)))


def test_forward_further_down_and_from_a_mixin():
    class Tripled(Doubled):
        def __call__(self, x):
            return 3 * super().__call__(x)

    class Mixin:
        def forward(self, x):
            return x + 1

    class Mixed(Mixin, nn.Module):
        pass

    x = mx.ones((1, 3))
    layer = Tripled(3, 2)
    plain = to_numpy(x @ layer.weight.T + layer.bias)
    np.testing.assert_allclose(to_numpy(layer.forward(x)), 6 * plain, rtol=1e-5)
    np.testing.assert_allclose(to_numpy(layer(x)), 6 * plain, rtol=1e-5)
    assert to_numpy(Mixed()(x)).tolist() == [[2, 2, 2]]


def test_a_member_may_be_called_forward():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.forward = nn.Linear(3, 2)
            self.backward = nn.Linear(3, 2)

        def __call__(self, x):
            return self.forward(x) + self.backward(x)

    model = Both()
    assert model(mx.ones((1, 3))).shape == (1, 2)
    assert list(model.parameters()) == ["forward", "backward"]


def test_value_and_grad_against_mlx():
    values = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    results = []
    for nn_, package in ((nn, mx), (mlx_nn, mlx_core)):
        model = nn_.Sequential(nn_.Linear(3, 4), nn_.Tanh(), nn_.Linear(4, 2))
        model.apply(lambda p, package=package: package.sin(package.arange(p.size)).reshape(p.shape))
        model.layers[0].freeze(keys="bias")

        def loss(x, scale=1.0):
            y = model(x)
            return scale * nn_.losses.mse_loss(y, y * 0), y, {"n": 3}

        step = nn_.value_and_grad(model, loss)
        (value, y, extra), gradients = step(package.array(values), scale=2.0)
        assert extra == {"n": 3} and step.__name__ == "loss"
        results.append([value, y, gradients])
    assert_same_tree(*results)


def test_value_and_grad_needs_a_scalar():
    for nn_, package in ((nn, mx), (mlx_nn, mlx_core)):
        model = nn_.Linear(1, 1)
        with pytest.raises(ValueError):
            nn_.value_and_grad(model, lambda: model(package.ones((2, 1))))()
        with pytest.raises(ValueError):
            nn_.value_and_grad(model, lambda: 3)()


def test_value_and_grad_leaves_the_module_as_it_was():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm(2))
    before = dict(tree_flatten(model.parameters()))

    def loss(x):
        return mx.sum(model(x))

    nn.value_and_grad(model, loss)(mx.array([[1.0, 2.0], [3.0, 5.0]]))
    after = dict(tree_flatten(model.parameters()))
    for name in before:
        # Running statistics are the only thing that the function has changed.
        assert (after[name] is before[name]) == ("running" not in name), name

    def fails(x):
        raise KeyError("x")

    with pytest.raises(KeyError):
        nn.value_and_grad(model, fails)(mx.ones((2, 2)))
    assert (to_numpy(model.layers[0].weight) == to_numpy(before["layers.0.weight"])).all()


def test_value_and_grad_keeps_what_the_function_sets():
    model = nn.Linear(2, 1)

    def loss(x):
        value = mx.sum(model(x))
        model.weight = model.weight * 0
        return value

    nn.value_and_grad(model, loss)(mx.ones((1, 2)))
    assert (to_numpy(model.weight) == 0).all()


def test_checkpoint():
    model = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 1))
    x = mx.ones((4, 3))
    plain = nn.value_and_grad(model, lambda x: mx.sum(model(x)))(x)
    kept = nn.utils.checkpoint(model)
    checked = nn.value_and_grad(model, lambda x: mx.sum(kept(x)))(x)
    for (_, a), (_, b) in zip(tree_flatten(plain[1]), tree_flatten(checked[1])):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=1e-5)
    assert nn.utils.checkpoint(model, lambda x: model(x) * 2)(x).shape == (4, 1)


def test_modules_in_threads():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    mx.eval(model.parameters())
    x = mx.ones((3, 8))
    expected = to_numpy(model(x))
    failures = []

    def work():
        try:
            for _ in range(20):
                np.testing.assert_allclose(to_numpy(model(x)), expected, rtol=1e-6)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
