"""What the tests share: Cupola on the CPU, and MLX and NumPy to compare with."""

import numpy as np
import pytest

import cupola.core as cc

mlx = pytest.importorskip("mlx.core", reason="the tests compare with mlx[cpu]")


@pytest.fixture(autouse=True)
def on_the_cpu():
    before = cc.default_device()
    cc.set_default_device(cc.cpu)
    mlx.set_default_device(mlx.cpu)
    yield
    cc.set_default_device(before)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def same(ours, theirs, rtol=1e-4, atol=1e-5):
    """Asserts that two results are the same: structure, shape, dtype and values."""
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            same(one, other, rtol, atol)
        return
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key in theirs:
            same(ours[key], theirs[key], rtol, atol)
        return
    if not isinstance(theirs, mlx.array):
        assert ours == theirs or ours is theirs
        return
    assert ours.shape == theirs.shape
    assert str(ours.dtype) == str(theirs.dtype)
    assert values(ours).shape == values(theirs).shape
    np.testing.assert_allclose(values(ours), values(theirs), rtol=rtol, atol=atol)


def values(array):
    """The elements as NumPy's, half types as float32."""
    module = cc if isinstance(array, cc.array) else mlx
    if array.dtype in (module.bfloat16, module.float16):
        array = array.astype(module.float32)
    return np.array(array)
