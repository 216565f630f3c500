"""Mixed precision: scopes, policies of the process and of modules, the scaler; PyTorch as an oracle."""

import copy
import importlib.util
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

import cupola.amp as amp
import cupola.core as mx
import cupola.nn as nn
import cupola.optimizers as optim
from cupola.utils import tree_flatten, tree_map

torch = pytest.importorskip("torch")

NAMES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


@pytest.fixture(autouse=True)
def no_policy_stays():
    yield
    assert mx._amp.policy() is None


@pytest.mark.parametrize("dtype", NAMES)
def test_dtypes_are_those_of_pytorch(dtype):
    x, half = mx.ones((4, 4)), mx.ones((4, 4), getattr(mx, dtype))
    tx, thalf = torch.ones(4, 4), torch.ones(4, 4, dtype=NAMES[dtype])
    pairs = {
        "matmul": (lambda: x @ half, lambda: tx @ thalf),
        "addmm": (lambda: mx.addmm(x, x, x), lambda: torch.addmm(tx, tx, tx)),
        "einsum": (lambda: mx.einsum("ij,jk", x, x), lambda: torch.einsum("ij,jk", tx, tx)),
        "conv": (
            lambda: mx.conv1d(x[None], mx.ones((2, 3, 4))),
            lambda: torch.conv1d(tx[None], torch.ones(2, 4, 3)),
        ),
        "linear": (lambda: nn.Linear(4, 2)(x), lambda: torch.nn.Linear(4, 2)(tx)),
        "add": (lambda: x + half, lambda: tx + thalf),
        "tanh": (lambda: mx.tanh(half), lambda: torch.tanh(thalf)),
        "gelu": (lambda: nn.gelu(half), lambda: torch.nn.functional.gelu(thalf)),
        "concatenate": (lambda: mx.concatenate([x, half]), lambda: torch.cat([tx, thalf])),
        "mean": (lambda: half.mean(), lambda: thalf.mean()),
        "integers": (lambda: mx.arange(3).sum() * 1.0, lambda: torch.arange(3).sum() * 1.0),
    }
    if torch.cuda.is_available():
        pytest.skip("the lists of GPUs are compared below")
    with amp.autocast(getattr(mx, dtype)), torch.autocast("cpu", NAMES[dtype]):
        for name, (ours, theirs) in pairs.items():
            assert str(ours().dtype).split(".")[-1] == str(theirs().dtype).split(".")[-1], name


def test_float32_operations_keep_their_range():
    half = mx.array([12.0], mx.float16)
    with amp.autocast(mx.float16):
        for fun in (mx.exp, mx.log, mx.sum, mx.softmax, mx.logsumexp, mx.rsqrt, mx.cumsum):
            assert fun(half).dtype == mx.float32, fun.__name__
        assert (half**3).dtype == mx.float32
        assert np.isfinite(mx.exp(half).item())
        assert nn.losses.mse_loss(half, half).dtype == mx.float32
        assert nn.losses.cross_entropy(mx.ones((2, 3), mx.float16), mx.array([0, 1])).dtype == mx.float32
    assert mx.exp(half).dtype == mx.float16


def test_norms_and_embeddings_give_the_lower_dtype():
    ids, vectors = mx.array([3, 0]), nn.Embedding(5, 4)
    layers = [nn.LayerNorm(4), nn.RMSNorm(4), nn.GroupNorm(2, 4), nn.GroupNorm(2, 4, pytorch_compatible=True)]
    with amp.autocast(mx.float16):
        assert vectors(ids).dtype == mx.float16
        for layer in layers:
            # Beyond float16: the norm sees it all.
            y = layer(mx.array([[1e5, 1e5, 1e5 + 2, 1e5 + 2]]))
            assert y.dtype == mx.float16 and mx.all(mx.isfinite(y)).item(), layer
        images = mx.random.normal((2, 3, 3, 4)) * 1e5
        y = nn.InstanceNorm(4, affine=True)(images)
        assert y.dtype == mx.float16 and mx.all(mx.isfinite(y)).item()
    with amp.autocast(amp.Policy(mx.float16, float32=["embedding"])):
        assert vectors(ids).dtype == mx.float32


def test_layers_with_operands_of_their_own_are_lower_throughout():
    x = mx.ones((2, 4))
    with amp.autocast(mx.bfloat16):
        assert nn.PReLU()(nn.Linear(4, 4)(x)).dtype == nn.PReLU()(x).dtype == mx.bfloat16
        assert nn.prelu(x, 0.25).dtype == mx.bfloat16
        assert nn.QuantizedLinear(64, 8)(mx.ones((2, 64))).dtype == mx.bfloat16
    with amp.autocast(amp.Policy(mx.bfloat16, float32=["prelu", "quantized_matmul"])):
        assert nn.PReLU()(x.astype(mx.bfloat16)).dtype == mx.float32
        assert nn.QuantizedLinear(64, 8)(mx.ones((2, 64), mx.bfloat16)).dtype == mx.float32
    assert nn.PReLU()(x).dtype == mx.float32


def test_nesting_decorator_threads_and_failures():
    x = mx.ones((2, 2))
    product = lambda: (x @ x).dtype  # noqa: E731
    seen = []
    with amp.autocast(mx.bfloat16) as outer:
        with outer, amp.autocast(enabled=False):
            assert product() == mx.float32
        assert product() == mx.bfloat16
        thread = threading.Thread(target=lambda: seen.append(product()))
        thread.start()
        thread.join()
        with pytest.raises(KeyError), amp.autocast(mx.float16):
            assert product() == mx.float16
            raise KeyError
        assert product() == mx.bfloat16
    assert seen == [mx.float32] and product() == mx.float32

    @amp.autocast(mx.float16)
    def count(n):
        """Counts."""
        return [product(), *(count(n - 1) if n else [])]

    assert set(count(3)) == {mx.float16} and count.__doc__ == "Counts."
    with pytest.raises(ValueError, match="float16, bfloat16 or float32"):
        amp.autocast(mx.int32)


def test_lists():
    policy = amp.Policy(mx.float16, float32=["tanh", "matmul"], unchanged=["softmax"])
    x = mx.ones((2, 2), mx.float16)
    with amp.autocast(policy):
        assert mx.tanh(x).dtype == (x @ x).dtype == mx.float32
        assert mx.softmax(x).dtype == mx.float16
    assert policy == amp.Policy(mx.float16, float32=["matmul", "tanh"], unchanged=["softmax"])
    assert policy != amp.Policy(mx.float16)
    assert pickle.loads(pickle.dumps(policy)) == policy
    with pytest.raises(ValueError, match="no operation \"matmull\" is cast"):
        amp.Policy(mx.float16, lower=["matmull"])
    with pytest.raises(ValueError, match="no category \"higher\""):
        policy.ops("higher")


def test_transforms():
    x, w = mx.random.normal((3, 4)), mx.random.normal((4, 5))

    def loss(w):
        return mx.square(mx.softmax(x @ w, axis=-1)).sum()

    cast = amp.autocast(mx.bfloat16)(loss)
    expected = mx.grad(cast)(w)
    assert expected.dtype == mx.float32
    with amp.autocast(mx.bfloat16):
        for fun in (mx.grad(loss), mx.compile(mx.grad(loss)), mx.grad(mx.compile(loss))):
            assert mx.allclose(fun(w), expected, 1e-2, 1e-3)
            assert mx.array_equal(fun(w), fun(w))
        assert mx.array_equal(mx.grad(mx.checkpoint(loss))(w), expected)
    rows = mx.vmap(lambda row: mx.softmax(row @ w))
    with amp.autocast(mx.bfloat16):
        assert mx.array_equal(rows(x), mx.softmax(x @ w, axis=-1))
    assert not mx.array_equal(mx.grad(loss)(w), expected), "it was cast"


def test_compiled_functions_see_the_policy():
    traced = []

    @mx.compile
    def product(x):
        traced.append(None)
        return x @ x

    x = mx.ones((2, 2))
    for _ in range(2):
        assert product(x).dtype == mx.float32
        with amp.autocast(mx.bfloat16):
            assert product(x).dtype == mx.bfloat16
        with amp.autocast(mx.float16):
            assert product(x).dtype == mx.float16
    assert len(traced) == 3


def test_global_policy():
    try:
        amp.set_global_policy("mixed_float16")
        assert amp.global_policy() == "mixed_float16"
        layer = nn.Linear(2, 2)
        assert layer.weight.dtype == mx.float32 and layer(mx.ones((1, 2))).dtype == mx.float16
        with amp.autocast(enabled=False):
            assert layer(mx.ones((1, 2))).dtype == mx.float32
        amp.set_global_policy(amp.Policy(mx.float16, lower=["tanh"]))
        assert amp.global_policy() is None
    finally:
        amp.set_global_policy("float32")
    assert amp.global_policy() == "float32"
    with pytest.raises(ValueError, match="No policy 'mixed_float8'"):
        amp.set_global_policy("mixed_float8")


def test_a_module_has_its_policy():
    x = mx.ones((1, 2))
    exact = amp.set_policy(nn.Linear(2, 2), "float32")
    model = nn.Sequential(nn.Linear(2, 2), exact)
    names = [name for name, _ in tree_flatten(model.parameters())]
    assert names == ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
    assert isinstance(exact, nn.Linear) and exact.policy.dtype == mx.float32
    for same in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with amp.autocast(mx.bfloat16):
            assert same(x).dtype == mx.float32
            assert mx.allclose(same(x), model(x))
    half = amp.set_policy(nn.Linear(2, 2), "mixed_bfloat16")
    assert half(x).dtype == half.forward(x).dtype == mx.bfloat16
    amp.set_policy(half, None)
    assert type(half) is nn.Linear and half(x).dtype == mx.float32


def test_a_compiled_function_sees_that_a_module_has_another_policy():
    layer, x = nn.Linear(2, 2), mx.ones((1, 2))
    compiled = mx.compile(lambda x: layer(x))
    assert compiled(x).dtype == mx.float32
    for name, dtype in (("mixed_bfloat16", mx.bfloat16), ("mixed_float16", mx.float16), (None, mx.float32)):
        amp.set_policy(layer, name)
        assert compiled(x).dtype == dtype


def test_a_quantised_module_keeps_its_policy():
    exact = amp.set_policy(nn.Linear(64, 64), "float32")
    model = nn.Sequential(nn.Linear(64, 64), exact, amp.set_policy(nn.Embedding(4, 64), "float32"))
    nn.quantize(model)
    assert [isinstance(layer, nn.QuantizedLinear) for layer in model.layers] == [True, True, False]
    with amp.autocast(mx.bfloat16):
        assert model.layers[0](mx.ones((1, 64))).dtype == mx.bfloat16
        assert model.layers[1](mx.ones((1, 64))).dtype == mx.float32
        assert model.layers[2](mx.array([1])).dtype == mx.float32


def test_what_can_have_no_policy_says_so():
    with pytest.raises(TypeError, match="set_policy: module should be an nn.Module, not a function"):
        amp.set_policy(lambda x: x, "float32")
    layer = nn.Linear(2, 2)
    layer.policy = "mine"
    with pytest.raises(AttributeError, match="set_policy: this Linear has an attribute 'policy' of its own"):
        amp.set_policy(layer, "float32")
    assert amp.set_policy(layer, None).policy == "mine"
    half = amp.set_policy(nn.Linear(2, 2), "mixed_bfloat16")
    with pytest.raises(ValueError, match="No policy 'other'"):
        amp.set_policy(half, "other")
    assert half(mx.ones((1, 2))).dtype == mx.bfloat16


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(32, 4)

    def __call__(self, x):
        pool = nn.MaxPool2d(2, 2)
        x = pool(nn.relu(self.norm(self.first(x))))
        x = pool(nn.relu(self.second(x)))
        return self.head(x.reshape(x.shape[0], -1))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 32), nn.Embedding(16, 32)
        self.blocks = nn.TransformerEncoder(2, 32, 4, 64)
        self.head = nn.Linear(32, 11)

    def __call__(self, x):
        mask = nn.MultiHeadAttention.create_additive_causal_mask(16)
        return self.head(self.blocks(self.tokens(x) + self.places(mx.arange(16)), mask))


def curve(model, batch, dtype, scaled=False, compiled=True):
    """The losses of a few steps from the same weights."""
    model = copy.deepcopy(model)
    optimizer = optim.Adam(5e-4)
    scaler = amp.GradScaler(1024.0, enabled=scaled)

    def loss(x, y):
        with amp.autocast(dtype or mx.bfloat16, enabled=dtype is not None):
            value = nn.losses.cross_entropy(model(x), y, reduction="mean")
        return scaler.scale(value), value

    def step(x, y):
        (_, value), gradients = nn.value_and_grad(model, loss)(x, y)
        assert {g.dtype for _, g in tree_flatten(gradients)} == {mx.float32}
        scaler.step(optimizer, model, gradients)
        scaler.update()
        return value

    if compiled:
        state = [model.state, optimizer.state, scaler.state]
        step = mx.compile(step, inputs=state, outputs=state)
    losses = []
    for _ in range(15):
        losses.append(step(*batch).item())
        mx.eval(model.parameters(), optimizer.state, scaler.state)
    return np.array(losses)


def batches():
    noise = np.random.default_rng(3).random((32, 64))
    pixels = (np.arange(64)[None] // 16 == np.arange(32)[:, None] % 4) + noise / 2
    yield Cnn, (mx.array(pixels.reshape(32, 8, 8, 1), mx.float32), mx.arange(32) % 4)
    ids = mx.array([(i * i % 7 + i % 5) % 11 for i in range(8 * 17)]).reshape(8, 17)
    yield Gpt, (ids[:, :-1], ids[:, 1:])


@pytest.mark.parametrize("compiled", [True, False])
def test_loss_curves(compiled):
    for kind, batch in batches():
        mx.random.seed(1)
        model = kind()
        exact = curve(model, batch, None)
        assert exact[-1] < 0.9 * exact[0]
        for dtype, scaled in ((mx.bfloat16, False), (mx.float16, True)):
            found = curve(model, batch, dtype, scaled, compiled)
            assert (found != exact).any()
            assert (abs(found - exact) <= 0.01 * exact).all(), (kind, dtype, found, exact)


def filled(model, value):
    return tree_map(lambda x: mx.full(x.shape, value), model.parameters())


def everything(model, optimizer):
    return [np.array(x) for _, x in tree_flatten([model.parameters(), optimizer.state])]


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.Muon, lambda rate: optim.MultiOptimizer(
    [optim.Adam(rate), optim.SGD(rate, momentum=0.9)], [lambda name, _: "bias" in name])])
def test_a_scaler_skips_halves_and_grows(make):
    model, optimizer = nn.Linear(2, 2), make(0.1)
    scaler = amp.GradScaler(8.0, growth_interval=2)
    optimizer.init(model.parameters())

    def step(value):
        scaler.step(optimizer, model, filled(model, value))
        scaler.update()
        return scaler.get_scale().item()

    before = everything(model, optimizer)
    assert step(float("inf")) == 4.0 and step(float("nan")) == 2.0
    assert all(map(np.array_equal, everything(model, optimizer), before))
    assert step(1.0) == 2.0
    assert not all(map(np.array_equal, everything(model, optimizer), before))
    assert step(1.0) == 4.0


def test_a_scaler_resumes():
    model, optimizer = nn.Linear(2, 2), optim.SGD(0.0)

    def step(scaler, value):
        scaler.step(optimizer, model, filled(model, value))
        scaler.update()

    scaler = amp.GradScaler(growth_interval=3)
    step(scaler, float("nan"))
    step(scaler, 1.0)
    resumed = amp.GradScaler()
    resumed.load_state_dict(pickle.loads(pickle.dumps(scaler.state_dict())))
    for each in (scaler, resumed):
        step(each, 1.0)
        step(each, 1.0)
        assert each.get_scale().item() == 65536.0
    with pytest.raises(KeyError):
        resumed.load_state_dict({"scale": 1.0})


def test_a_scaler_resumes_from_a_file(tmp_path):
    state = amp.GradScaler(32.0, backoff_factor=0.25, growth_interval=1).state_dict()
    mx.savez(str(tmp_path / "scaler.npz"), **{name: mx.array(value) for name, value in state.items()})
    scaler, model = amp.GradScaler(), nn.Linear(2, 2)
    scaler.load_state_dict(dict(mx.load(str(tmp_path / "scaler.npz"))))
    assert (scaler.growth_interval, scaler.backoff_factor) == (1, 0.25)
    scaler.step(optim.SGD(0.0), model, filled(model, 1.0))
    scaler.update()
    assert scaler.get_scale().item() == 64.0


def test_a_scaler_takes_no_state_that_it_cannot_leave():
    scaler = amp.GradScaler(8.0)
    nan, kept = float("nan"), scaler.state_dict()
    for wrong in (
        {"scale": nan}, {"scale": float("inf")}, {"scale": 0.0}, {"growth_tracker": -1}, {"growth_factor": -1},
        {"growth_factor": nan}, {"backoff_factor": 2.0}, {"growth_interval": 0}, {"growth_interval": 2**31},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"GradScaler: {next(iter(wrong))} should be"):
            scaler.load_state_dict({**kept, **wrong})
    assert scaler.state_dict() == kept and scaler.get_scale().item() == 8.0


def test_a_scaler_in_wrong_hands():
    for wrong in (
        {"init_scale": 0}, {"init_scale": 1e39}, {"init_scale": 1e-40}, {"growth_factor": 0.5},
        {"growth_factor": 1e39}, {"backoff_factor": 1}, {"backoff_factor": 1 - 1e-12}, {"growth_interval": 0},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(wrong))):
            amp.GradScaler(**wrong)
    scaler = amp.GradScaler()
    with pytest.raises(RuntimeError, match="without a step"):
        scaler.update()
    gradients = {"w": mx.ones(2)}
    clipped, _ = optim.clip_grad_norm(scaler.unscale(gradients), 1.0)
    with pytest.raises(RuntimeError, match="already"):
        scaler.unscale(clipped)


def test_tuning_proposes_a_policy():
    rng = np.random.default_rng(0)
    flatten = lambda x: x.flatten(1)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), flatten, nn.Linear(4 * 36, 8), nn.Tanh(), nn.Linear(8, 3))
    x = mx.array(rng.standard_normal((16, 8, 8, 1)).astype(np.float32))
    y = mx.array(rng.integers(0, 3, 16))
    optimizer = optim.Adam(1e-2)
    value_and_grad = nn.value_and_grad(model, lambda: nn.losses.cross_entropy(model(x), y, reduction="mean"))

    def step():
        loss, gradients = value_and_grad()
        optimizer.update(model, gradients)
        return loss

    before = {name: np.array(value) for name, value in tree_flatten(model.parameters())}
    mx.random.seed(3)
    random = mx.random.state[0].tolist()
    tuned = amp.tune(step, model=model, optimizer=optimizer, steps=3)
    found = tuned.to_dict()
    assert [group["group"] for group in found["groups"]] == ["convolutions", "products", "activations", "losses"]
    assert all(0 <= group["deviation"] < 0.5 for group in found["groups"])
    assert found["groups"][0]["ops"] == ["conv2d"] and found["dtype"] == "bfloat16"
    for group in found["groups"]:
        assert group["won_ms"] == pytest.approx(group["float32_ms"] - group["lower_ms"])
        for op in group["ops"]:
            assert (op in tuned.policy.ops("lower")) == group["kept"]
    assert found["deviation"] <= 0.01
    assert str(tuned).splitlines()[0].startswith("group") and "convolutions" in str(tuned)
    # All is as it was.
    for name, value in tree_flatten(model.parameters()):
        assert (np.array(value) == before[name]).all(), name
    assert optimizer.state["step"].item() == 0
    assert mx.random.state[0].tolist() == random
    with amp.autocast(tuned.policy):
        step()
    amp.set_global_policy(tuned.policy)
    amp.set_global_policy(None)
    # Nothing may deviate: nothing is kept.
    strict = amp.tune(step, model=model, optimizer=optimizer, steps=2, tolerance=0.0)
    assert not any(group["kept"] for group in strict.to_dict()["groups"] if group["deviation"] > 0)
    for wrong in (
        lambda: amp.tune(step, steps=0),
        lambda: amp.tune(step, tolerance=-1.0),
        lambda: amp.tune(step, dtype=mx.int32),
        lambda: amp.tune(lambda: mx.ones(2)),
        lambda: amp.tune(lambda: mx.array(float("nan"))),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(ZeroDivisionError):
        amp.tune(lambda: 1 / 0)


@pytest.mark.parametrize("dtype", ["autocast-bf16", "autocast-f16"])
@pytest.mark.parametrize("model", ["gpt", "resnet", "cnn", "mlp"])
def test_networks_train_as_in_float32(model, dtype):
    path = Path(__file__).parents[3] / "benches" / "models.py"
    spec = importlib.util.spec_from_file_location("models", path)
    models = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(models)
    device = mx.default_device()
    try:
        curves = []
        for precision in ("f32", dtype):
            task = {"model": model, "dtype": precision, "device": "cpu", "compile": True}
            step = models.cupola_step(task, models.Sizes.tiny())
            curves.append([step().item() for _ in range(8)])
    finally:
        mx.set_default_device(device)
    assert curves[0] != curves[1]
    assert curves[0][-1] < curves[0][0]
    assert models.difference(model, curves[1], curves[0]) < models.MIXED_TOLERANCE


def test_a_rule_of_ones_own_gives_what_its_input_has():
    @mx.custom_function
    def product(x, w):
        return x @ w

    @product.vjp
    def _(primals, cotangent, _):
        x, w = primals
        return cotangent @ w.T, x.T @ cotangent

    x, w = mx.ones((4, 8)), mx.ones((8, 2))
    with amp.autocast(mx.bfloat16):
        gradient = mx.grad(lambda w: product(x, w).astype(mx.float32).sum())(w)
    assert gradient.dtype == mx.float32 and gradient.tolist() == [[4, 4]] * 8


def test_a_gru_is_half_from_its_first_step():
    with amp.autocast(mx.bfloat16):
        for layer in (nn.LSTM(8, 4), nn.RNN(8, 4), nn.GRU(8, 4)):
            found = layer(mx.ones((1, 3, 8)))
            assert (found[0] if isinstance(found, tuple) else found).dtype == mx.bfloat16


def test_a_scale_never_becomes_zero():
    scaler, model = amp.GradScaler(init_scale=1e-37, backoff_factor=0.01), nn.Linear(1, 1)
    for _ in range(5):
        scaler.step(optim.SGD(0.1), model, tree_map(lambda p: p * float("inf"), model.parameters()))
        scaler.update()
    assert 0 < scaler.get_scale().item() < 1e-37
    with pytest.raises(ValueError, match="whole number"):
        amp.GradScaler(growth_interval=1.5)
