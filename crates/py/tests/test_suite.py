"""The samples of the op suite, on which devices are compared with a reference, against NumPy in
float64, and against MLX where NumPy has no such function."""

import warnings

import numpy as np
import pytest
from oracle import dtype_name, mlx_core, to_numpy

from cupola.core import _suite

FAMILIES = ["unary", "binary", "compare", "select", "cast", "reduce", "arg_reduce", "scan", "sort"]

TOLERANCE = {"float64": 1e-11, "float32": 2e-5, "float16": 4e-3, "bfloat16": 4e-2, "complex32": 4e-3, "complex64": 2e-5}

ACCUMULATED = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "logcumsumexp": np.logaddexp,
}


def wide(x):
    """Floats in float64, complex numbers in complex128, the others as they are."""
    x = to_numpy(x)
    return x.astype({"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype))


def scanned(name, x, axis, reverse, inclusive):
    """NumPy's running fold, in either direction. Exclusive ones begin with what changes nothing, which
    the suite's reference knows: there only the others are compared."""
    x = np.flip(x, axis) if reverse else x
    out = ACCUMULATED[name].accumulate(x, axis)
    if not inclusive:
        out = np.roll(out, 1, axis)
        out[(slice(None),) * axis + (slice(0, 1),)] = 0
    return np.flip(out, axis) if reverse else out


def theirs(name, keywords, inputs, dtype):
    """What NumPy makes of the sample; `None` where it has no such function."""
    x = [wide(x) for x in inputs]
    if name == "astype":
        return x[0]
    if name == "select":
        return np.where(*x)
    if name in ACCUMULATED:
        return scanned(name, x[0], **keywords)
    if name == "argsort":
        return np.argsort(x[0], kind="stable", **keywords)
    if not hasattr(np, name):
        return None
    if name in ("sum", "prod"):
        keywords = {**keywords, "dtype": x[0].dtype if x[0].dtype.kind != "b" else np.int32}
    if name in ("sum", "prod", "max", "min", "all", "any"):
        keywords = {**keywords, "axis": tuple(keywords["axis"])}
    if name == "floor_divide" and x[0].dtype.kind == "f":
        # As MLX, in the dtype of the operands: NumPy's rounds the quotient otherwise.
        own = np.float64 if dtype == "float64" else np.float32
        return np.floor(x[0].astype(own) / x[1].astype(own))
    if name == "power" and x[0].dtype.kind in "iub" and (x[1] < 0).any():
        return None  # An error of NumPy's.
    return getattr(np, name)(*x, **keywords)


def mlx_own(name, keywords, inputs):
    arrays = [mlx_core.array(to_numpy(x).astype(np.float32)) for x in inputs]
    return np.array(getattr(mlx_core, name)(*arrays, **keywords))


@pytest.mark.parametrize("family", FAMILIES)
def test_samples(family):
    compared, nobody, wrong = 0, set(), []
    warnings.simplefilter("ignore")
    for sample, name, keywords, inputs, result in _suite.samples(family):
        dtype = dtype_name(result)
        want = theirs(name, keywords, inputs, dtype)
        if want is None and hasattr(mlx_core, name) and dtype in ("float16", "bfloat16", "float32"):
            want = mlx_own(name, keywords, inputs)
        if want is None:
            nobody.add(f"{name} of {dtype}")
            continue
        have = to_numpy(result)
        if not keywords.get("inclusive", True):
            inner = slice(None, -1) if keywords["reverse"] else slice(1, None)
            inner = (slice(None),) * keywords["axis"] + (inner,)
            have, want = have[inner], want[inner]
        if have.dtype.kind in "iu" and want.dtype.kind in "fc":
            # A number outside the integers is cast as the suite's reference says.
            want = want.real
            inside = np.isfinite(want) & (want > np.iinfo(have.dtype).min) & (want < np.iinfo(have.dtype).max)
            have, want = have[inside], want[inside]
        if want.dtype.kind == "c":
            # Which part of an infinite number is NaN is left to the suite's reference, too.
            finite = np.isfinite(want)
            have, want = have[finite], want[finite]
        if dtype == "complex32":
            # NumPy has no such numbers: their parts are halves.
            parts = np.stack([want.real, want.imag], -1).astype(np.float16)
            want = parts.astype(np.float32).view(np.complex64)[..., 0]
        want = want.astype(have.dtype)
        tolerance = TOLERANCE.get(dtype, 0)
        compared += 1
        try:
            np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance)
        except AssertionError as error:
            dtypes = [dtype_name(x) for x in inputs]
            wrong.append(f"{sample} {name} {keywords} {dtypes}: {error}")
    print(f"{family}: {compared} results compared; nobody has {sorted(nobody)}")
    assert compared > 0
    assert not wrong, f"{len(wrong)} of {compared} differ\n" + "\n".join(wrong[:20])
