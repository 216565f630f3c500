"""Models of Core ML: every operator against NumPy, and networks of torch against torch."""

import warnings

import numpy as np
import pytest

ct = pytest.importorskip("coremltools", reason="coremltools is not installed: nothing writes models of Core ML")

import coreml_cases as cases  # noqa: E402
from coremltools.converters.mil import Builder as mb  # noqa: E402
from coremltools.converters.mil.mil import types  # noqa: E402

import cupola.core as mx  # noqa: E402
import cupola.coreml  # noqa: E402


def converted(program, path, target, precision=None, **options):
    """What coremltools makes of a program of its own or of torch, in a package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = ct.convert(
            program,
            convert_to="mlprogram",
            minimum_deployment_target=target,
            compute_precision=precision or ct.precision.FLOAT32,
            skip_model_load=True,
            **options,
        )
        made.save(str(path))
    return path


def program_of(build, inputs, target):
    kinds = {np.dtype("f4"): types.fp32, np.dtype("i4"): types.int32, np.dtype("f2"): types.fp16}
    specs = [mb.TensorSpec(shape=x.shape, dtype=kinds[x.dtype]) for x in inputs.values()]
    names = ", ".join(inputs)
    # Its inputs have the names of the function's parameters.
    function = eval(f"lambda {names}: build({names})", {"build": build})  # noqa: S307
    return mb.program(input_specs=specs, opset_version=target)(function)


def close(have, want, tolerance):
    have, want = np.array(have), np.asarray(want)
    assert have.shape == want.shape
    if want.dtype.kind in "iub":
        assert have.dtype == want.dtype
        np.testing.assert_array_equal(have, want)
    else:
        scale = max(1.0, np.abs(want).max()) if want.size else 1.0
        np.testing.assert_allclose(have, want, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize(
    "case", cases.CASES, ids=[f"{i}-{case.op}" for i, case in enumerate(cases.CASES)]
)
def test_operator(case, tmp_path):
    program = program_of(case.build, case.inputs, case.target)
    path = converted(
        program,
        tmp_path / "m.mlpackage",
        case.target,
        source="milinternal",
        pass_pipeline=ct.PassPipeline.EMPTY,
    )
    made = cupola.coreml.load(path)(*(mx.array(x) for x in case.inputs.values()))
    want = case.expect(*case.inputs.values())
    made, want = (x if isinstance(x, tuple) else (x,) for x in (made, want))
    assert len(made) == len(want)
    for have, meant in zip(made, want):
        close(have, meant, case.close)


def test_every_operator_has_a_case():
    # What only other programs than coremltools' own have, and what the tests below look at.
    elsewhere = {
        "classify",
        "const",
        "conv_quantized",
        "random_bernoulli",
        "random_categorical",
        "random_normal",
        "random_uniform",
        "read_state",
        "write_state",
    }
    assert {case.op for case in cases.CASES} == set(cupola.coreml.operators()) - elsewhere


def saved(build, inputs, tmp_path, target=ct.target.iOS18, **options):
    program = program_of(build, inputs, target)
    return converted(program, tmp_path / "m.mlpackage", target, source="milinternal", **options)


def test_random_numbers(tmp_path):
    def draw(x):
        shape = [20000]
        return (
            mb.random_uniform(shape=shape, low=1.0, high=3.0),
            mb.random_normal(shape=shape, mean=2.0, stddev=0.5, seed=3),
            mb.random_bernoulli(shape=shape, prob=0.25),
            mb.random_categorical(x=x, size=20000, seed=5),
        )

    x = mx.log(mx.array([[0.2, 0.8]]))
    model = cupola.coreml.load(saved(draw, {"x": np.zeros((1, 2), "f4")}, tmp_path))
    uniform, normal, chance, choice = (np.array(y) for y in model(x))
    assert uniform.min() >= 1 and uniform.max() < 3 and abs(uniform.mean() - 2) < 0.02
    assert abs(normal.mean() - 2) < 0.02 and abs(normal.std() - 0.5) < 0.02
    assert set(chance) == {0, 1} and abs(chance.mean() - 0.25) < 0.02
    assert choice.shape == (1, 20000) and abs(choice.mean() - 0.8) < 0.02
    again = [np.array(y) for y in model(x)]
    np.testing.assert_array_equal(again[1], normal)
    assert not np.array_equal(again[0], uniform)


def stateful(tmp_path):
    @mb.program(
        input_specs=[mb.TensorSpec((2,), types.fp16), mb.StateTensorSpec((2,), types.fp16)],
        opset_version=ct.target.iOS18,
    )
    def program(x, total):
        sum = mb.add(x=mb.read_state(input=total), y=x)
        return mb.mul(x=mb.coreml_update_state(state=total, value=sum), y=np.float16(2))

    path = tmp_path / "s.mlpackage"
    return converted(program, path, ct.target.iOS18, source="milinternal")


def test_states_go_in_and_come_out(tmp_path):
    model = cupola.coreml.load(stateful(tmp_path))
    assert model.inputs == ["x"] and model.states == ["total"]
    x, state = mx.array([1.0, 2.0], dtype=mx.float16), model.make_state()
    assert [model(x, state=state).tolist() for _ in range(3)] == [[2, 4], [4, 8], [6, 12]]
    assert state["total"].tolist() == [3, 6] and model(x).tolist() == [2, 4]
    y, total = model.to_function()(x, state["total"])
    assert y.tolist() == [8, 16] and total.tolist() == [4, 8]
    # In a graph a state is a variable.
    run = model.to_graph().compile(mx.cpu).function(model.name).run
    assert [run({"x": x})[model.outputs[0]].tolist() for _ in range(2)] == [[2, 4], [4, 8]]


W = np.arange(12, dtype="f4").reshape(3, 4)


def test_a_model_is_differentiated_compiled_and_trained(tmp_path):
    x = np.array([[1.0, -2.0, 3.0, 0.5], [0.0, 1.0, -1.0, 2.0]], "f4")
    path = saved(lambda x: mb.relu(x=mb.linear(x=x, weight=W, name="product"), name="y"), {"x": x}, tmp_path)
    model = cupola.coreml.load(path)
    given = mx.array(x)
    want = np.maximum(x @ W.T, 0)
    close(model(given), want, 1e-6)
    close(mx.compile(model)(given), want, 1e-6)
    close(model.to_function()(given), want, 1e-6)
    close(model.to_graph().compile(mx.cpu).run({"x": given})["y"], want, 1e-6)
    close(mx.grad(lambda x: model(x).sum())(given), (want > 0) @ W, 1e-5)
    (name,) = [name for name, array in model.parameters.items() if array.shape == W.shape]
    slope = mx.grad(lambda w: model(given, parameters={name: w}).sum())(mx.array(W))
    close(slope, (want > 0).T @ x, 1e-5)


def test_several_functions_share_weights(tmp_path):
    x = np.ones((2, 4), "f4")
    for name, bias in [("a", 1.0), ("b", 2.0)]:
        program = program_of(lambda x, b=bias: mb.add(x=mb.linear(x=x, weight=W), y=b, name="y"), {"x": x}, ct.target.iOS18)
        converted(program, tmp_path / f"{name}.mlpackage", ct.target.iOS18, source="milinternal")
    both = ct.utils.MultiFunctionDescriptor()
    for name in "ab":
        both.add_function(str(tmp_path / f"{name}.mlpackage"), "main", name)
    both.default_function_name = "b"
    ct.utils.save_multifunction(both, str(tmp_path / "both.mlpackage"))
    model = cupola.coreml.load(tmp_path / "both.mlpackage")
    assert model.name == "b" and sorted(model.functions) == ["a", "b"]
    close(model(mx.array(x)), x @ W.T + 2, 1e-6)
    close(model.function("a")(mx.array(x)), x @ W.T + 1, 1e-6)
    assert cupola.coreml.load(tmp_path / "both.mlpackage", "a").name == "a"
    with pytest.raises(ValueError, match="no function 'c'"):
        model.function("c")


def test_an_infinite_mask_in_half_precision_is_a_warning(tmp_path):
    mask = np.where(np.tril(np.ones((4, 4))), 0, -np.inf).astype("f4")
    x = np.ones((2, 4), "f4")
    build = lambda x: mb.softmax(x=mb.add(x=mb.reshape(x=x, shape=[2, 1, 4]), y=mask))  # noqa: E731
    path = saved(build, {"x": x}, tmp_path, precision=ct.precision.FLOAT16)
    with pytest.warns(UserWarning, match="infinite in float16"):
        cupola.coreml.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cupola.coreml.load(saved(build, {"x": x}, tmp_path))


def test_a_classifier_gives_labels_and_probabilities(tmp_path):
    x = np.array([[0.1, 0.7, 0.2]], "f4")
    program = program_of(lambda x: mb.softmax(x=x), {"x": x}, ct.target.iOS15)
    labels = ct.ClassifierConfig(["cat", "dog", "bird"])
    path = converted(program, tmp_path / "c.mlpackage", ct.target.iOS15, source="milinternal", classifier_config=labels)
    model = cupola.coreml.load(path)
    label, chances = model(mx.array(x))
    assert model.classes[label.item()] == "dog"
    close(chances, cases.softmax(x)[0], 1e-6)


def test_errors_name_the_file_and_the_place(tmp_path):
    path = saved(lambda x: mb.relu(x=mb.linear(x=x, weight=W), name="y"), {"x": np.ones((2, 4), "f4")}, tmp_path)
    model = cupola.coreml.load(path)
    with pytest.raises(Exception, match=r"model.mlmodel: input 'x': is \[2, 4\], \[3, 4\] is given"):
        model(mx.ones((3, 4)))
    with pytest.raises(Exception, match="input 'x': is not given"):
        model()
    with pytest.raises(Exception, match="input 'z': the model's inputs are 'x'"):
        model(mx.ones((2, 4)), z=mx.ones(2))
    weights = path / "Data/com.apple.CoreML/weights/weight.bin"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:100])
    with pytest.raises(Exception, match="weight.bin' has 100 bytes"):
        cupola.coreml.load(path)
    weights.write_bytes(bytes(len(whole)))
    with pytest.raises(Exception, match=r"\(const\).*begins no record"):
        cupola.coreml.load(path)
    weights.unlink()
    weights.symlink_to("/etc/hostname")
    with pytest.raises(Exception, match="leaves the folder"):
        cupola.coreml.load(path)


def test_other_kinds_of_models_are_refused(tmp_path):
    network = ct.models.neural_network.NeuralNetworkBuilder(
        [("x", ct.models.datatypes.Array(2))], [("y", ct.models.datatypes.Array(2))]
    )
    network.add_activation("relu", "RELU", "x", "y")
    path = tmp_path / "n.mlmodel"
    path.write_bytes(network.spec.SerializeToString())
    with pytest.raises(Exception, match=r'NeuralNetwork.*convert_to="mlprogram"'):
        cupola.coreml.load(path)


# Networks of torch, each small, after some steps of training.


def trained(network, *given):
    torch.manual_seed(0)
    network.train()
    steps = torch.optim.SGD(network.parameters(), lr=1e-3)
    for _ in range(4):
        steps.zero_grad()
        network(*given).square().mean().backward()
        steps.step()
    return network.eval()


def as_torch(network, given, path, precision, **options):
    """The model that coremltools makes of a network, and what the network gives."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = network(*given.values())
        traced = torch.jit.trace(network, tuple(given.values()), check_trace=False)
    types_of = {torch.int32: np.int32, torch.float32: np.float32}
    shapes = options.pop("shapes", {})
    inputs = [
        ct.TensorType(name=name, shape=shapes.get(name, tuple(x.shape)), dtype=types_of[x.dtype])
        for name, x in given.items()
    ]
    target = options.pop("target", ct.target.iOS17)
    converted(traced, path, target, precision, inputs=inputs, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cupola.coreml.load(path), want


def transformers(torch):
    """Small networks of the forms of BERT, GPT-2 and Whisper."""
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self, size, heads):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.out = (nn.Linear(size, size) for _ in range(4))

        def forward(self, x, context, mask):
            def split(y):
                return y.view(y.shape[0], y.shape[1], self.heads, -1).transpose(1, 2)

            q, k, v = split(self.q(x)), split(self.k(context)), split(self.v(context))
            scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask
            y = torch.softmax(scores, -1) @ v
            return self.out(y.transpose(1, 2).flatten(2))

    class Layer(nn.Module):
        """Before its parts or behind them a layer norm, and with a second attention or without."""

        def __init__(self, size, heads, first, act, across=False):
            super().__init__()
            self.first, self.act = first, act
            self.own, self.across = Attention(size, heads), Attention(size, heads) if across else None
            self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
            self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(3))
            self.drop = nn.Dropout(0.1)

        def part(self, x, norm, f):
            if self.first:
                return x + self.drop(f(norm(x)))
            return norm(x + self.drop(f(x)))

        def forward(self, x, mask, context=None):
            x = self.part(x, self.norms[0], lambda x: self.own(x, x, mask))
            if self.across is not None:
                x = self.part(x, self.norms[1], lambda x: self.across(x, context, 0.0))
            return self.part(x, self.norms[2], lambda x: self.down(self.act(self.up(x))))

    def causal(x):
        places = torch.arange(x.shape[1])
        return (places[:, None] < places).float() * -1e4

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(100, 32), nn.Embedding(16, 32)
            self.norm = nn.LayerNorm(32)
            self.layers = nn.ModuleList(Layer(32, 4, False, nn.GELU()) for _ in range(2))
            self.pool = nn.Linear(32, 32)

        def forward(self, words):
            x = self.words(words) + self.places(torch.arange(words.shape[1]))
            # Words of the number 0 are not looked at.
            mask = (words == 0).float()[:, None, None] * -1e4
            x = self.norm(x)
            for layer in self.layers:
                x = layer(x, mask)
            return torch.tanh(self.pool(x))

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(100, 32), nn.Embedding(16, 32)
            self.norm = nn.LayerNorm(32)
            act = nn.GELU(approximate="tanh")
            self.layers = nn.ModuleList(Layer(32, 4, True, act) for _ in range(2))

        def forward(self, words):
            x = self.words(words) + self.places(torch.arange(words.shape[1]))
            mask = causal(x)
            for layer in self.layers:
                x = layer(x, mask)
            return self.norm(x) @ self.words.weight.T

    class Whisper(nn.Module):
        def __init__(self):
            super().__init__()
            self.near, self.wide = nn.Conv1d(8, 32, 3, padding=1), nn.Conv1d(32, 32, 3, stride=2, padding=1)
            self.act = nn.GELU()
            self.encoder = nn.ModuleList(Layer(32, 4, True, self.act) for _ in range(2))
            self.words, self.places = nn.Embedding(100, 32), nn.Embedding(16, 32)
            self.decoder = nn.ModuleList(Layer(32, 4, True, self.act, True) for _ in range(2))
            self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(2))

        def forward(self, sound, words):
            x = self.act(self.wide(self.act(self.near(sound)))).transpose(1, 2)
            waves = torch.arange(x.shape[1])[:, None] * torch.exp(torch.arange(16) * -0.6)
            x = x + torch.cat([waves.sin(), waves.cos()], 1)
            for layer in self.encoder:
                x = layer(x, 0.0)
            x = self.norms[0](x)
            y = self.words(words) + self.places(torch.arange(words.shape[1]))
            for layer in self.decoder:
                y = layer(y, causal(y), x)
            return self.norms[1](y) @ self.words.weight.T

    return Bert(), Gpt2(), Whisper()


def networks():
    """Small networks of well known forms, with what goes in."""
    from torchvision.models import mobilenetv3, resnet

    torch.manual_seed(1)
    image = {"x": torch.rand(2, 3, 64, 64)}
    words = {"words": torch.randint(0, 100, (2, 12), dtype=torch.int32)}
    bert, gpt2, whisper = transformers(torch)
    yield "resnet50", resnet.ResNet(resnet.Bottleneck, [3, 4, 6, 3], num_classes=10, width_per_group=8), image
    yield "mobilenet_v3", mobilenetv3.mobilenet_v3_small(width_mult=0.5, num_classes=10), image
    yield "bert", bert, words
    yield "gpt2", gpt2, words
    yield "whisper", whisper, {"sound": torch.randn(2, 8, 40), **words}


NETWORKS = ["resnet50", "mobilenet_v3", "bert", "gpt2", "whisper"]


@pytest.fixture(scope="module")
def known_networks():
    global torch
    torch = pytest.importorskip("torch", reason="torch is not installed: there are no networks to convert")
    pytest.importorskip("torchvision", reason="torchvision is not installed: there are no networks to convert")
    return {name: (trained(network, *given.values()), given) for name, network, given in networks()}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("half", [False, True])
def test_a_network_of_torch(name, half, known_networks, tmp_path):
    network, given = known_networks[name]
    precision = ct.precision.FLOAT16 if half else ct.precision.FLOAT32
    model, want = as_torch(network, given, tmp_path / "m.mlpackage", precision)
    made = np.array(model(*(mx.array(x.numpy()) for x in given.values()))).astype("f8")
    want = want.numpy()
    # Weights that say nothing would pass every comparison.
    assert want.std() > 1e-3 * np.abs(want).max()
    assert made.shape == want.shape
    assert np.abs(made - want).max() <= (1e-2 if half else 1e-4) * np.abs(want).max()


def test_open_sizes_of_a_network(known_networks, tmp_path):
    network, given = known_networks["bert"]
    ranges = {"words": (ct.RangeDim(1, 4, 2), ct.RangeDim(2, 16, 12))}
    path = tmp_path / "m.mlpackage"
    model, _ = as_torch(network, given, path, ct.precision.FLOAT32, shapes=ranges)
    for shape in [(1, 5), (3, 16)]:
        words = torch.randint(0, 100, shape, dtype=torch.int32)
        with torch.no_grad():
            close(model(mx.array(words.numpy())), network(words).numpy(), 1e-4)
    with pytest.raises(Exception, match=r"input 'words': is \[1..=4, 2..=16\], \[5, 4\] is given"):
        model(mx.zeros((5, 4), dtype=mx.int32))
    listed = {"words": ct.EnumeratedShapes([(1, 4), (2, 12)])}
    model, _ = as_torch(network, given, tmp_path / "e.mlpackage", ct.precision.FLOAT32, shapes=listed)
    words = torch.randint(0, 100, (1, 4), dtype=torch.int32)
    with torch.no_grad():
        close(model(mx.array(words.numpy())), network(words).numpy(), 1e-4)
    with pytest.raises(Exception, match="is one of"):
        model(mx.zeros((1, 12), dtype=mx.int32))


def test_compressed_weights_of_a_network(known_networks, tmp_path):
    import coremltools.optimize as cto

    network, given = known_networks["bert"]
    path = tmp_path / "m.mlpackage"
    whole, _ = as_torch(network, given, path, ct.precision.FLOAT32, target=ct.target.iOS18)
    words = mx.array(given["words"].numpy())
    want = np.array(whole(words))
    read = ct.models.MLModel(str(path), skip_model_load=True)
    options = cto.coreml
    ways = {
        "int8": lambda: options.linear_quantize_weights(read, options.OptimizationConfig(options.OpLinearQuantizerConfig(weight_threshold=64))),
        "int4": lambda: options.linear_quantize_weights(read, options.OptimizationConfig(options.OpLinearQuantizerConfig(dtype="int4", granularity="per_block", block_size=8, weight_threshold=64))),
        "lut": lambda: options.palettize_weights(read, options.OptimizationConfig(options.OpPalettizerConfig(mode="uniform", nbits=6, weight_threshold=64))),
        "sparse": lambda: options.prune_weights(read, options.OptimizationConfig(options.OpMagnitudePrunerConfig(target_sparsity=0.1, weight_threshold=64))),
    }
    for name, way in ways.items():
        small = tmp_path / f"{name}.mlpackage"
        way().save(str(small))
        assert any(f"constexpr_{kind}" in small_text(small) for kind in ["block", "lut", "sparse"]), name
        made = np.array(cupola.coreml.load(small)(words))
        far = np.abs(made - want).max() / np.abs(want).max()
        assert far < {"int8": 0.05, "int4": 0.5, "lut": 0.2, "sparse": 0.3}[name], (name, far)


def small_text(path):
    return (path / "Data/com.apple.CoreML/model.mlmodel").read_bytes().decode("latin1")
