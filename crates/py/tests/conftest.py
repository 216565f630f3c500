"""What the tests share: MLX as an oracle, next to Cupola on the CPU.

CUPOLA_TEST_DEVICE=cuda, wgpu or gpu puts Cupola on another device. With CUPOLA_STAND_IN set,
mlx.core takes the place of cupola.core, so that the layers above it can be compared with MLX's own
bit for bit.
"""

import os
import signal
import sys
import types

import numpy as np
import pytest

# The oracle has the precision of the dtype, which TF32 has not.
os.environ.setdefault("CUPOLA_TF32", "0")

# SciPy reads it when it is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# A process that was started in the background may ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

if os.environ.get("CUPOLA_STAND_IN"):
    import mlx.core
    from mlx import nn as mlx_nn

    stand_in = types.ModuleType("cupola.core")
    stand_in.__dict__.update({k: v for k, v in vars(mlx.core).items() if not k.startswith("__")})

    def _pool(kind):
        def pool(x, window, stride, padding, *ours):
            assert ours in ((), ("channels_last", (1,) * (x.ndim - 2)))
            return getattr(mlx_nn, f"{kind}Pool{x.ndim - 2}d")(window, stride, padding)(x)

        return pool

    stand_in._nn = types.SimpleNamespace(**vars(mlx_nn))
    stand_in._nn.max_pool, stand_in._nn.avg_pool = _pool("Max"), _pool("Avg")
    stand_in._amp = types.SimpleNamespace(operand=lambda op, x: x)
    sys.modules["cupola.core"] = stand_in
    import cupola

    cupola.core = stand_in


import cupola.core as cc  # noqa: E402

mlx = pytest.importorskip("mlx.core", reason="the tests compare with mlx[cpu]")

DEVICE = getattr(cc, os.environ.get("CUPOLA_TEST_DEVICE", "cpu"))


def pytest_collection_modifyitems(items):
    if not cc.is_available(DEVICE):
        missing = pytest.mark.skip(reason=f"there is no {os.environ['CUPOLA_TEST_DEVICE']}")
        for item in items:
            item.add_marker(missing)


@pytest.fixture(autouse=True)
def on_one_device():
    before = cc.default_device()
    cc.set_default_device(DEVICE)
    mlx.set_default_device(mlx.cpu)
    yield
    cc.set_default_device(before)
    assert sys.modules["mlx.core"] is mlx, "a test has put something else in the oracle's place"


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
