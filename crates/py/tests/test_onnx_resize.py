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


def resized(x, factors, path, **options):
    """What ONNX Runtime gives and what Cupola does."""
    scales = helper.make_tensor("scales", TensorProto.FLOAT, [4], [1, 1, *factors])
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], **options)
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    info = helper.make_tensor_value_info("x", dtype, x.shape)
    result = helper.make_tensor_value_info("y", dtype, None)
    graph = helper.make_graph([node], "resize", [info], [result], [scales])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    want = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    got = np.asarray(cupola.onnx.load(path)(x))
    assert got.shape == want.shape and got.dtype == want.dtype
    return got, want


@pytest.mark.parametrize("options", MODES, ids=["-".join(map(str, m.values())) for m in MODES])
@pytest.mark.parametrize("shape", [(2, 3, 7, 5), (1, 2, 1, 2), (1, 1, 9, 1)])
@pytest.mark.parametrize("factors", [(2, 2), (8, 3), (1, 4), (5, 1)])
def test_pictures_are_as_in_the_runtime(factors, shape, options, tmp_path):
    x = np.random.default_rng(1).standard_normal(shape).astype("f4")
    got, want = resized(x, factors, str(tmp_path / "resize.onnx"), **options)
    assert np.abs(got - want).max() < 1e-5


def test_integers_end_at_their_range(tmp_path):
    # Edges between the least and the largest, beyond which a cubic goes.
    x = np.repeat(np.array([0, 255, 0, 255], "u1"), 4).reshape(1, 1, 4, 4).repeat(4, 3)
    got, want = resized(x, (2, 2), str(tmp_path / "resize.onnx"), mode="cubic", antialias=1)
    assert got.min() == 0 and got.max() == 255
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
