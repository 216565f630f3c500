"""Writes the small models that the fuzz target begins with and tests read, with coremltools 9.

python write.py, in this folder.
"""

import coremltools as ct
import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import types


@mb.program(input_specs=[mb.TensorSpec((1, 2, 4, 4))], opset_version=ct.target.iOS18)
def layers(x):
    y = mb.conv(x=x, weight=np.ones((2, 2, 1, 1), "f4"), pad_type="same")
    y = mb.relu(x=mb.instance_norm(x=y))
    y = mb.avg_pool(x=y, kernel_sizes=[2, 2], strides=[2, 2], pad_type="valid")
    table = np.array([0.5, 2], "f4").reshape(1, 1, 2, 1)
    bits = np.array([[0, 1], [1, 0]]).astype(types.np_uint1_dtype)
    w = mb.constexpr_lut_to_dense(indices=bits, lut=table)
    return mb.softmax(x=mb.matmul(x=mb.reshape(x=y, shape=[4, 2]), y=w), name="y")


@mb.program(
    input_specs=[mb.TensorSpec((3,)), mb.StateTensorSpec((3,), types.fp16)],
    opset_version=ct.target.iOS18,
)
def control(x, total):
    sum = mb.add(x=mb.read_state(input=total), y=mb.cast(x=x, dtype="fp16"))
    sum = mb.cast(x=mb.coreml_update_state(state=total, value=sum), dtype="fp32")
    positive = mb.greater(x=mb.reduce_sum(x=x), y=0.0)
    return mb.cond(pred=positive, _true_fn=lambda: mb.exp(x=sum), _false_fn=lambda: mb.abs(x=sum), name="y")


for name, program in [("layers", layers), ("control", control)]:
    made = ct.convert(
        program,
        source="milinternal",
        convert_to="mlprogram",
        minimum_deployment_target=ct.target.iOS18,
        compute_precision=ct.precision.FLOAT32,
        skip_model_load=True,
    )
    with open(f"{name}.mlmodel", "wb") as file:
        file.write(made.get_spec().SerializeToString())
