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
