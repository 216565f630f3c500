"""Resize of ONNX beside ONNX Runtime's, by whole factors: what onnx's own cases have few of."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

import cupola.onnx  # noqa: E402

MODES = [
    dict(mode="linear", coordinate_transformation_mode="half_pixel"),
    dict(mode="linear", coordinate_transformation_mode="align_corners"),
    dict(mode="linear", coordinate_transformation_mode="asymmetric"),
    dict(mode="cubic", coordinate_transformation_mode="half_pixel"),
    dict(mode="cubic", coordinate_transformation_mode="asymmetric", exclude_outside=1),
    dict(mode="nearest", coordinate_transformation_mode="half_pixel", nearest_mode="ceil"),
    dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
]


@pytest.mark.parametrize("options", MODES, ids=["-".join(map(str, m.values())) for m in MODES])
@pytest.mark.parametrize("shape", [(2, 3, 7, 5), (1, 2, 1, 2), (1, 1, 9, 1)])
@pytest.mark.parametrize("factors", [(2, 2), (8, 3), (1, 4), (5, 1)])
def test_pictures_are_as_in_the_runtime(factors, shape, options, tmp_path):
    x = np.random.default_rng(1).standard_normal(shape).astype("f4")
    scales = helper.make_tensor("scales", TensorProto.FLOAT, [4], [1, 1, *factors])
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], **options)
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "resize", [info], [result], [scales])
    path = str(tmp_path / "resize.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    want = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    got = np.asarray(cupola.onnx.load(path)(x))
    assert got.shape == want.shape and np.abs(got - want).max() < 1e-5
