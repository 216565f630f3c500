"""Comparison of cupola.nn and its neighbours with MLX's."""

import numpy as np
import pytest

mlx_core = pytest.importorskip("mlx.core")

import mlx.nn as mlx_nn  # noqa: E402
import mlx.utils as mlx_utils  # noqa: E402

import cupola.core as mx  # noqa: E402
import cupola.nn as nn  # noqa: E402
from cupola.utils import tree_flatten, tree_map  # noqa: E402

TOLERANCE = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 4e-2, "complex64": 2e-5}


def dtype_name(x):
    return str(x.dtype).rpartition(".")[2]


def to_numpy(x):
    """The values of an array of either package; bfloat16 as float32."""
    if dtype_name(x) == "bfloat16":
        x = x.astype(mlx_core.float32 if isinstance(x, mlx_core.array) else mx.float32)
    return np.array(x)


def to_cupola(x):
    """An array of MLX as one of Cupola."""
    if not isinstance(x, mlx_core.array):
        return x
    return mx.array(to_numpy(x)).astype(getattr(mx, dtype_name(x)))


def assert_same(ours, theirs, tolerance=None):
    """Both are arrays of one shape, one dtype and, but for rounding, the same values."""
    assert isinstance(ours, mx.array) and isinstance(theirs, mlx_core.array)
    assert dtype_name(ours) == dtype_name(theirs)
    assert ours.shape == theirs.shape
    tolerance = TOLERANCE.get(dtype_name(ours), 0) if tolerance is None else tolerance
    np.testing.assert_allclose(to_numpy(ours), to_numpy(theirs), rtol=tolerance, atol=tolerance)


def assert_same_tree(ours, theirs, tolerance=None):
    """Both are trees of the same structure with the same arrays or values as leaves."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict) and list(ours) == list(theirs)
        for key in theirs:
            assert_same_tree(ours[key], theirs[key], tolerance)
    elif isinstance(theirs, (list, tuple)):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert_same_tree(a, b, tolerance)
    elif isinstance(theirs, mlx_core.array):
        assert_same(ours, theirs, tolerance)
    else:
        assert ours == theirs


def pair(name, *args, **kwargs):
    """A layer of ours and MLX's of the same name, with MLX's parameters."""
    theirs = getattr(mlx_nn, name)(*args, **kwargs)
    ours = getattr(nn, name)(*args, **kwargs)
    ours.update(tree_map(to_cupola, theirs.parameters()))
    return ours, theirs


def same_error(ours, theirs):
    """Both calls fail, with the same type of exception."""
    with pytest.raises(Exception) as expected:
        theirs()
    with pytest.raises(expected.type):
        ours()
    return expected.value


def uniform(*shape, seed=0, dtype="float32", low=-2.0, high=2.0):
    """The same random numbers for both: MLX's array and ours."""
    values = np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)
    theirs = mlx_core.array(values).astype(getattr(mlx_core, dtype))
    return to_cupola(theirs), theirs


__all__ = [
    "assert_same",
    "assert_same_tree",
    "dtype_name",
    "mlx_core",
    "mlx_nn",
    "mlx_utils",
    "mx",
    "nn",
    "pair",
    "same_error",
    "to_cupola",
    "to_numpy",
    "tree_flatten",
    "tree_map",
    "uniform",
]
