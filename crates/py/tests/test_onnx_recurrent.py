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


def layer(op, direction, steps, has_lengths, **attributes):
    """The model of one layer, and its inputs; first states and what LSTM has more are inputs, too."""
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


@pytest.mark.parametrize("steps", [4, 40])
@pytest.mark.parametrize("op", GATES)
def test_directions_may_have_activations_of_their_own(op, steps, tmp_path):
    # Of LSTM's sums the runtime bounds others than the inputs of activations, of which ONNX speaks.
    bounds = {} if op == "LSTM" else {"clip": 0.9}
    model, feeds = layer(op, "bidirectional", steps, True, activations=OTHER_ACTIVATIONS[op], **bounds)
    assert_as_in_the_runtime(model, feeds, str(tmp_path / "layer.onnx"))
