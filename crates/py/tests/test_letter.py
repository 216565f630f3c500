"""To the letter of MLX: names that packages import, what is refused, and how."""

import threading
import warnings

import numpy as np
import pytest
from conftest import DEVICE, cc
from oracle import mlx_core as mlx

import cupola.nn as nn


def test_names_that_packages_import():
    for name in ("ArrayLike", "FunctionExporter", "ThreadLocalStream"):
        assert isinstance(getattr(cc, name), type)
    assert cc.__version__.split(".")[0].isdigit()


def test_thread_local_streams():
    stream = cc.new_thread_local_stream(cc.cpu)
    assert stream.device == cc.Device(cc.cpu)
    made = []

    def work():
        with cc.stream(stream):
            made.append((cc.arange(4) * 2).sum().item())
        made.append(cc.add(cc.ones(2), 1, stream=stream).tolist())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made.count(12) == 3 and made.count([2.0, 2.0]) == 3
    assert cc.new_thread_unsafe_stream(cc.cpu) != cc.default_stream(cc.cpu)
    cc.clear_streams()


def test_memory_functions_of_metal_answer_with_a_notice():
    with pytest.warns(DeprecationWarning, match="use mx.get_active_memory"):
        assert cc.metal.get_active_memory() >= 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cc.metal.set_wired_limit(5) == 0 and cc.set_wired_limit(0) == 5
        assert cc.metal.set_cache_limit(cc.metal.set_cache_limit(10)) == 10
        assert cc.metal.clear_cache() is None and isinstance(cc.metal.device_info(), dict)
    with pytest.raises(RuntimeError, match="captures"):
        cc.metal.start_capture("a.gputrace")


def test_metal_kernels_of_more_than_the_common_language_raise_when_they_are_called():
    kernel = cc.fast.metal_kernel(
        name="copy", input_names=["x"], output_names=["y"], source="y[0] = simd_sum(x[0]);"
    )
    with pytest.raises(RuntimeError, match="copy: there is no Metal back-end.*line 1, column 8"):
        kernel(
            inputs=[cc.ones(1)],
            grid=(1, 1, 1),
            threadgroup=(1, 1, 1),
            output_shapes=[(1,)],
            output_dtypes=[cc.float32],
        )


def test_operands_that_say_what_complex_number_they_are():
    class Phase:
        def __complex__(self):
            return 1 + 2j

    assert (cc.array([1.0]) + Phase()).tolist() == [2 + 2j]
    assert (Phase() * cc.array([2.0])).tolist() == [2 + 4j]


@pytest.mark.skipif(DEVICE != "cpu", reason="about machines without a GPU")
def test_gpu_is_hardware():
    assert cc.is_available(cc.cpu)
    if not cc.is_available(cc.gpu):
        assert cc.default_device() == cc.Device(cc.cpu)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, n: m.addmm(m.ones((2, 2), dtype=m.int32), m.ones((2, 2), dtype=m.int32), m.ones((2, 2), dtype=m.int32)),
        lambda m, n: m.fft.rfftfreq(5, 0.0),
        lambda m, n: m.fft.fftfreq(5, 0.0),
        lambda m, n: m.arange(3, dtype=m.bool_),
        lambda m, n: n.LayerNorm(4, -1.0),
        lambda m, n: n.RMSNorm(4, 0.0),
        lambda m, n: n.BatchNorm(4, -1.0),
        lambda m, n: n.InstanceNorm(4, float("nan")),
        lambda m, n: n.GroupNorm(2, 4, -1.0),
        lambda m, n: n.GroupNorm(0, 4),
    ],
)
def test_what_is_refused(call):
    with pytest.raises(ValueError):
        call(cc, nn)


@pytest.mark.parametrize(
    "arguments",
    [(0, 3, 0.5), (0.5, 4, 1.5), (-2.7, 2.7, 0.9), (5, 0, -1.5), (0.9, 10, 2), (3.7,), (0, 1, 0.25), (2, 2, 0.5)],
)
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64"])
def test_steps_of_integers_are_cast_first(arguments, dtype):
    if dtype == "uint32" and min(arguments[0], arguments[-1]) < 0:
        return
    ours = cc.arange(*arguments, dtype=getattr(cc, dtype))
    theirs = mlx.arange(*arguments, dtype=getattr(mlx, dtype))
    np.testing.assert_array_equal(np.array(ours), np.array(theirs))
    assert str(ours.dtype) == str(theirs.dtype)
