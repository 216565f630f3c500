"""Recurrent layers of ONNX beside ONNX Runtime's: directions, lengths, few steps and loops."""

import itertools

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

import cupola.onnx  # noqa: E402

BATCH, WIDTH, HIDDEN = 3, 5, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
OTHER_ACTIVATIONS = {
    "RNN": ["Tanh", "Relu"],
    "GRU": ["Sigmoid", "Tanh", "HardSigmoid", "Relu"],
    "LSTM": ["Sigmoid", "Tanh", "Tanh", "HardSigmoid", "Softsign", "Tanh"],
}


def layer(op, direction, steps, has_lengths, given=None, **attributes):
    """The model of one layer, and its inputs, those of ``given`` as they are; first states and what LSTM has more are
    inputs, too."""
    rng = np.random.default_rng(steps)
    many, gates = DIRECTIONS[direction], GATES[op]

    def real(*shape):
        return rng.standard_normal(shape).astype("f4") / 2

    feeds = {
        "x": real(steps, BATCH, WIDTH),
        "w": real(many, gates * HIDDEN, WIDTH),
        "r": real(many, gates * HIDDEN, HIDDEN),
        "b": real(many, 2 * gates * HIDDEN),
    }
    if has_lengths:
        feeds["lengths"] = np.array([steps, 1, steps - 2], "i4")
    feeds["h"] = real(many, BATCH, HIDDEN)
    if op == "LSTM":
        feeds["c"] = real(many, BATCH, HIDDEN)
        feeds["p"] = real(many, 3 * HIDDEN)
    feeds.update(given or {})
    names = list(feeds) if has_lengths else [*list(feeds)[:4], "", *list(feeds)[4:]]
    outputs = ["y", "last"] + ["cell"] * (op == "LSTM")
    node = helper.make_node(op, names, outputs, hidden_size=HIDDEN, direction=direction, **attributes)
    types = {"lengths": TensorProto.INT32}
    info = [helper.make_tensor_value_info(n, types.get(n, TensorProto.FLOAT), v.shape) for n, v in feeds.items()]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    graph = helper.make_graph([node], "layer", info, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return model, feeds


def assert_as_in_the_runtime(model, feeds, path):
    onnx.save(model, path)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    ours = cupola.onnx.load(path)(*feeds.values())
    for name, got, want in zip(outputs, ours, session.run(None, feeds), strict=True):
        assert got.shape == want.shape and np.abs(np.asarray(got) - want).max() < 1e-5, name


@pytest.mark.parametrize("steps", [4, 40])
@pytest.mark.parametrize("op, direction, has_lengths", itertools.product(GATES, DIRECTIONS, [False, True]))
def test_layers_are_as_in_the_runtime(op, direction, has_lengths, steps, tmp_path):
    for attributes in [{}, {"linear_before_reset": 1}] if op == "GRU" else [{}]:
        model, feeds = layer(op, direction, steps, has_lengths, **attributes)
        assert_as_in_the_runtime(model, feeds, str(tmp_path / "layer.onnx"))


@pytest.mark.parametrize("steps", [15, 16])
@pytest.mark.parametrize("op", GATES)
def test_what_is_optional_may_be_left_out(op, steps, tmp_path):
    model, feeds = layer(op, "bidirectional", steps, False)
    for name in ["b", "h", "c", "p"]:
        if feeds.pop(name, None) is not None:
            inputs = model.graph.node[0].input
            inputs[list(inputs).index(name)] = ""
            model.graph.input.remove(next(i for i in model.graph.input if i.name == name))
    assert_as_in_the_runtime(model, feeds, str(tmp_path / "layer.onnx"))


@pytest.mark.parametrize("steps", [4, 40])
@pytest.mark.parametrize("op, name", [(op, n) for op in GATES for n in "wrbhcp" if op == "LSTM" or n not in "cp"])
def test_inputs_of_other_shapes_are_refused(op, name, steps):
    right = layer(op, "bidirectional", steps, False)[1][name]
    for wrong in (right[:1], right[..., :-1], right[0], np.array(1, "f4")):
        model, feeds = layer(op, "bidirectional", steps, False, given={name: wrong})
        with pytest.raises(RuntimeError, match=f"{op}.* of .*is expected"):
            cupola.onnx.load(model)(*feeds.values())


@pytest.mark.parametrize("steps", [4, 40])
@pytest.mark.parametrize("op", GATES)
def test_directions_may_have_activations_of_their_own(op, steps, tmp_path):
    # Of LSTM's sums the runtime bounds others than the inputs of activations, of which ONNX speaks.
    bounds = {} if op == "LSTM" else {"clip": 0.9}
    model, feeds = layer(op, "bidirectional", steps, True, activations=OTHER_ACTIVATIONS[op], **bounds)
    assert_as_in_the_runtime(model, feeds, str(tmp_path / "layer.onnx"))
