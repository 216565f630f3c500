"""Writes the node cases of the `onnx` package into a folder, as its stored cases are laid out.

python crates/import/examples/onnx_data.py FOLDER
"""

import json
import pathlib
import sys

import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests


def proto(value, info):
    """A value as the message of its type."""
    if isinstance(value, onnx.TensorProto):
        return value
    kind = info.type.WhichOneof("value")
    make = {
        "map_type": numpy_helper.from_dict,
        "sequence_type": numpy_helper.from_list,
        "optional_type": numpy_helper.from_optional,
    }.get(kind, numpy_helper.from_array)
    return make(value, info.name)


def write(case, folder):
    """One case: its model, its data sets, and its tolerances."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    (folder / "data.json").write_text(json.dumps({"rtol": case.rtol, "atol": case.atol}))
    for number, (inputs, outputs) in enumerate(case.data_sets):
        place = folder / f"test_data_set_{number}"
        place.mkdir(exist_ok=True)
        for what, values, infos in [
            ("input", inputs, case.model.graph.input),
            ("output", outputs, case.model.graph.output),
        ]:
            for i, value in enumerate(values):
                message = proto(value, infos[i])
                (place / f"{what}_{i}.pb").write_bytes(message.SerializeToString())


if __name__ == "__main__":
    for case in load_model_tests(kind="node"):
        write(case, pathlib.Path(sys.argv[1]) / "node" / case.name)
