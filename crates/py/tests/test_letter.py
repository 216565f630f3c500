"""To the letter of MLX: names that packages import, what is refused, and how."""

import os
import subprocess
import sys
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


@pytest.mark.parametrize(
    "other", [b"ab", bytearray(b"ab"), memoryview(b"ab"), np.array([1, 2], np.int16), np.uint8(3)]
)
def test_only_arrays_of_ours_tell_a_number_its_dtype(other):
    own = cc.array(other).dtype
    assert cc.add(other, 0).dtype == cc.add(0, other).dtype == cc.int32
    assert cc.add(other, True).dtype == cc.add(other, other).dtype == own
    assert cc.add(other, 1.5).dtype == cc.float32
    assert cc.where(cc.array(True), other, 0).dtype == cc.int32
    assert cc.add(cc.array([1], cc.int8), other).dtype == cc.int8


def test_operands_that_say_what_complex_number_they_are():
    class Phase:
        def __complex__(self):
            return 1 + 2j

    assert (cc.array([1.0]) + Phase()).tolist() == [2 + 2j]
    assert (Phase() * cc.array([2.0])).tolist() == [2 + 4j]


@pytest.mark.parametrize("method", ["__float__", "__index__"])
def test_operands_that_say_what_number_they_are(method):
    kind = type("Number", (), {method: lambda self: 2 if method == "__index__" else 2.5})
    for m in (cc, mlx):
        found = m.array([1, 2]) * kind()
        assert str(found.dtype).endswith("complex64")
        assert found.tolist() == [complex(kind()), 2 * complex(kind())]


def test_what_says_it_is_a_number_and_is_none_is_no_operand():
    class Symbol:
        def __float__(self):
            raise TypeError("a symbol")

        def __rmul__(self, other):
            return "mine"

    for other in (Symbol(), float, int):
        assert (cc.array([1.0]) == other) is False
    assert cc.array([1.0]) * Symbol() == "mine"


@pytest.mark.parametrize("key", [5, 1.5, True])
def test_numbers_are_no_keys(key):
    for m in (cc, mlx):
        for call in (m.random.split, lambda key: m.random.normal((2,), key=key)):  # noqa: B023
            with pytest.raises(TypeError):
                call(key)


def test_the_namespace_info_is_there_as_in_mlx():
    ours, theirs = cc.__array_namespace_info__(), mlx.__array_namespace_info__()
    assert {name for name in dir(theirs) if not name.startswith("_")} <= set(dir(ours))


@pytest.mark.skipif(DEVICE != "cpu", reason="about machines without a GPU")
def test_gpu_is_hardware():
    assert cc.is_available(cc.cpu)
    if not cc.is_available(cc.gpu):
        assert cc.default_device() == cc.Device(cc.cpu)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="asks Linux what a process has loaded")
@pytest.mark.skipif(os.path.exists("/dev/dri") or os.path.exists("/dev/nvidiactl"), reason="about machines without a GPU")
def test_asking_for_a_gpu_starts_no_driver():
    script = "import cupola.core as mx; print(mx.is_available(mx.gpu), 'vulkan' in open('/proc/self/maps').read())"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


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
        lambda m, n: n.GroupNorm(3, 4),
        lambda m, n: n.GroupNorm(2, 0),
        lambda m, n: n.SinusoidalPositionalEncoding(5),
        lambda m, n: n.SinusoidalPositionalEncoding(0),
        lambda m, n: n.MaxPool2d(0),
        lambda m, n: n.MaxPool1d(2, stride=0),
        lambda m, n: n.AvgPool1d(2, padding=-1),
    ],
)
def test_what_is_refused(call):
    with pytest.raises(ValueError):
        call(cc, nn)


def test_steps_between_one_tap_or_one_element_do_not_matter():
    x, w = cc.arange(40.0).reshape(1, 5, 8), cc.arange(64.0).reshape(16, 1, 4)
    for call in (cc.conv1d, cc.conv_transpose1d):
        np.testing.assert_array_equal(np.array(call(x, w, dilation=2**63 - 1, groups=2)), np.array(call(x, w, groups=2)))
    one, w = cc.ones((1, 1, 4)), cc.arange(12.0).reshape(1, 3, 4)
    far = np.array(cc.conv_general(one, w, padding=1, input_dilation=2**40))
    np.testing.assert_array_equal(far, np.array(cc.conv_general(one, w, padding=1)))


@pytest.mark.parametrize("padding", [-1, -2, (-1, 2), (0, -2), ((-1, 0), (-2, 1)), ((2, -3), (-4, -1))])
def test_a_negative_padding_takes_rows_away(padding):
    g = np.random.default_rng(0)
    x, w = g.normal(size=(2, 7, 8, 4)).astype(np.float32), g.normal(size=(6, 3, 2, 2)).astype(np.float32)
    calls = [lambda m, x, w: m.conv_general(x, w, 2, padding, 1, 1, 2)]
    if isinstance(padding, int) or isinstance(padding[0], int):
        calls.append(lambda m, x, w: m.conv2d(x, w, padding=padding, groups=2))
    if isinstance(padding, int):
        calls.append(lambda m, x, w: m.conv_transpose2d(x, w, 2, padding, 1, 1, 2))
    for call in calls:
        ours, theirs = call(cc, cc.array(x), cc.array(w)), call(mlx, mlx.array(x), mlx.array(w))
        np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-5, atol=1e-5)
    first = cc.conv_general(cc.array(x).transpose(0, 3, 1, 2), cc.array(w).transpose(0, 3, 1, 2), 1, padding,
                            groups=2, data_format="channels_first")  # fmt: skip
    last = cc.conv_general(cc.array(x), cc.array(w), 1, padding, groups=2)
    np.testing.assert_allclose(np.array(first.transpose(0, 2, 3, 1)), np.array(last), rtol=1e-5, atol=1e-5)
    # Rows of zeros between those of the input count, too.
    dilated = np.zeros((2, 19, 15, 4), np.float32)
    dilated[:, ::3, ::2] = x
    ours = cc.conv_general(cc.array(x), cc.array(w), 2, padding, 1, (3, 2), 2)
    theirs = mlx.conv_general(mlx.array(dilated), mlx.array(w), 2, padding, 1, 1, 2)
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-5, atol=1e-5)
    slope = cc.grad(lambda x: cc.conv_general(x, cc.ones((1, 1, 1, 4)), padding=-1).sum())(cc.array(x))
    assert slope.sum().item() == 2 * 5 * 6 * 4
    with pytest.raises(ValueError, match=r"padding \(-4, -4\) leaves nothing of axis 1"):
        cc.conv2d(cc.array(x), cc.array(w), padding=-4, groups=2)


@pytest.mark.parametrize("arguments", [(0, 1, 0.1), (1, 100, 0.7), (0.3, 5, 0.01), (-3, 3, 0.37), (0, 100, 0.3), (5, 0, -0.3)])
def test_steps_of_halves_are_rounded_first(arguments):
    ours = np.array(cc.arange(*arguments, dtype=cc.float16))
    np.testing.assert_array_equal(ours, np.arange(*arguments, dtype=np.float16)[: len(ours)])


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


def test_bytes_become_uint8():
    for given in (b"abc", bytearray(b"abc"), memoryview(b"abc")):
        for mx in (cc, mlx):
            made = mx.array(given)
            assert made.dtype == mx.uint8 and made.tolist() == [97, 98, 99]
    assert cc.array(b"ab", cc.float32).tolist() == [97.0, 98.0]
    assert cc.array(b"").shape == (0,)


@pytest.mark.parametrize("name", "grad value_and_grad vmap compile checkpoint custom_function".split())
def test_transforms_take_functions(name):
    for mx in (cc, mlx):
        with pytest.raises(TypeError):
            getattr(mx, name)(3)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "a", None])
def test_seeds_are_integers_of_64_bits(seed):
    for mx in (cc, mlx):
        for function in (mx.random.seed, mx.random.key):
            with pytest.raises(TypeError):
                function(seed)


def test_streams_of_a_context_are_the_default():
    for mx in (cc, mlx):
        stream, before = mx.new_stream(mx.cpu), mx.default_stream(mx.cpu)
        with mx.stream(stream):
            assert mx.default_stream(mx.cpu) == stream
            assert mx.default_stream(mx.default_device()) == stream
            assert mx.add(mx.ones(2), 1, stream=mx.cpu).tolist() == [2, 2]
        assert mx.default_stream(mx.cpu) == before
    with cc.stream(cc.new_stream(cc.cpu)):
        cc.set_default_device(cc.cpu)
    assert cc.default_stream(cc.cpu) == cc.default_stream(cc.Device(cc.cpu, 0))


def test_subclasses_of_arrays():
    for mx in (cc, mlx):
        class Named(mx.array):
            pass

        x = Named([1.0, 2.0])
        assert isinstance(x, mx.array) and type(x) is Named
        assert (x + 1).tolist() == [2, 3] and mx.sum(x).item() == 3 and type(x + 1) is mx.array
        assert mx.grad(lambda x: (x * x).sum())(x).tolist() == [2, 4]


def test_parts_and_lists():
    for mx in (cc, mlx):
        assert [p.tolist() for p in mx.split(mx.arange(5), mx.array([1, 3]))] == [[0], [1, 2], [3, 4]]
        for mode in ("affine", "mxfp4"):
            assert isinstance(mx.quantize(mx.ones((1, 64)), mode=mode, group_size=32, bits=4), list)
        pairs = lambda d: d[0] + d[1]
        assert mx.vmap(pairs, in_axes=[0, None])([mx.ones(2), mx.ones(3)]).shape == (2, 3)
        for axes in ({"in_axes": None}, {"out_axes": None}):
            with pytest.raises(TypeError):
                mx.vmap(pairs, **axes)
        named = lambda d: d["a"] + d["b"]
        assert mx.vmap(named, in_axes={"a": 0, "b": None})({"a": mx.ones(2), "b": mx.ones(3)}).shape == (2, 3)


ONE_AXIS = """
    argmax argmin argsort sort cumsum cumprod cummax cummin cumulative_sum cumulative_prod logcumsumexp
""".split()


@pytest.mark.parametrize("axis", [(0, 1), (), [0], 2**31, -(2**40), 2**64])
@pytest.mark.parametrize("name", [name for name in ONE_AXIS if hasattr(mlx, name)])
def test_one_axis_is_an_integer_of_32_bits(name, axis):
    for mx in (cc, mlx):
        with pytest.raises(TypeError):
            getattr(mx, name)(mx.ones((2, 3)), axis=axis)


@pytest.mark.parametrize("axis", [(0, 1), [0], 2**31])
def test_one_axis_of_functions_of_more(axis):
    for mx in (cc, mlx):
        x, at = mx.ones((2, 3)), mx.zeros((2, 3), mx.int32)
        calls = [
            lambda: mx.concatenate([x, x], axis), lambda: mx.stack([x, x], axis),
            lambda: mx.take(x, at, axis), lambda: mx.take_along_axis(x, at, axis),
            lambda: mx.put_along_axis(x, at, x, axis), lambda: mx.repeat(x, 2, axis),
            lambda: mx.topk(x, 1, axis), lambda: mx.partition(x, 1, axis), lambda: mx.argpartition(x, 1, axis),
            lambda: mx.swapaxes(x, axis, 0), lambda: mx.moveaxis(x, 0, axis), lambda: mx.flatten(x, axis),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(TypeError):
                call()


@pytest.mark.parametrize("name", ["sum", "max", "mean", "any", "logsumexp", "softmax", "squeeze", "expand_dims"])
def test_axes_have_32_bits(name):
    for mx in (cc, mlx):
        for axis in (2**33, [0, 2**33], 2**64):
            with pytest.raises(TypeError):
                getattr(mx, name)(mx.ones((2, 3)), axis)


def test_what_is_no_dtype_and_lends_no_memory():
    for mx in (cc, mlx):
        for kind in (float, mx.array(1), 3):
            with pytest.raises(ValueError):
                mx.isdtype(mx.float32, kind)
        for value in ("x", 3, None):
            with pytest.raises(TypeError):
                mx.from_dlpack(value)


def test_axes_that_have_to_be_said_and_parameters_that_are_real():
    for mx in (cc, mlx):
        calls = [
            lambda: mx.expand_dims(mx.ones(2), None), lambda: mx.random.laplace(loc=None),
            lambda: mx.random.laplace(scale=1j), lambda: mx.random.laplace(loc="a"),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(TypeError):
                call()


def test_running_means_of_complex_numbers():
    from mlx import nn as mlx_nn

    g = np.random.default_rng(0)
    x = (g.normal(size=(6, 4)) + 1j * g.normal(size=(6, 4))).astype(np.complex64)
    found = []
    for mx, layers in ((cc, nn), (mlx, mlx_nn)):
        norm = layers.BatchNorm(4)
        norm(mx.array(x))
        mean = np.array(norm.running_mean)
        norm.eval()
        found.append((mean, np.array(norm.running_var), np.array(norm(mx.array(x)))))
    for own, want in zip(*found):
        assert own.dtype == want.dtype
        np.testing.assert_allclose(own, want, rtol=1e-5, atol=1e-6)


def test_unique_without_a_size():
    x = cc.array([3, 1, 3, 2, 1])
    values, index, inverse, counts = cc.unique(x, return_index=True, return_inverse=True, return_counts=True)
    assert (values.tolist(), index.tolist(), counts.tolist()) == ([1, 2, 3], [1, 3, 0], [2, 1, 2])
    assert values[inverse].tolist() == x.tolist()
    assert cc.unique(cc.zeros((0,))).shape == (0,) and cc.unique(cc.array(5.0)).tolist() == [5]
    with pytest.raises(ValueError):
        cc.compile(cc.unique)(x)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_windows_steps_are_one_number_or_one_for_each_axis(axes):
    for mx in (cc, mlx):
        x, w = mx.ones((1, *[5] * axes, 2)), mx.ones((2, *[2] * axes, 2))
        for name in (f"conv{axes}d", f"conv_transpose{axes}d"):
            for wrong in ([1] * (axes + 1), [1], (), "a", 1.5):
                for argument in ("stride", "padding", "dilation"):
                    with pytest.raises(TypeError):
                        getattr(mx, name)(x, w, **{argument: wrong})


def test_axes_that_are_a_sequence():
    for mx in (cc, mlx):
        calls = [lambda: mx.transpose(mx.ones((2, 3)), 1), lambda: mx.permute_dims(mx.ones((2, 3)), 1)]
        calls += [lambda f=f: f(mx.ones((4, 4)), axes=-1) for f in (mx.fft.fft2, mx.fft.irfft2, mx.fft.rfftn)]
        for call in calls:
            with pytest.raises(TypeError):
                call()


@pytest.mark.parametrize("value", ["x", {}, object(), ...])
def test_what_is_neither_an_array_nor_a_number(value):
    for mx in (cc, mlx):
        x, at = mx.ones((2, 3)), mx.zeros((2, 3), mx.int32)
        calls = [
            lambda: mx.isclose(x, value), lambda: mx.allclose(value, x),
            lambda: mx.put_along_axis(x, at, value, 1),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(TypeError):
                call()


def test_numbers_apart_are_not_close_to_themselves_within_less_than_nothing():
    for mx in (cc, mlx):
        x = mx.array([1.0, float("inf"), float("nan")])
        assert mx.isclose(x, x, atol=-1.0).tolist() == [False, True, False]


def test_numbers_before_an_end():
    for n in range(1, 40):
        for start, stop in ((5, -5), (0, 1), (-3, 17), (0.1, 0.7)):
            for endpoint in (False, True):
                ours, theirs = (mx.linspace(start, stop, n, endpoint=endpoint).tolist() for mx in (cc, mlx))
                assert ours == theirs


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("kind", ["bool_", "uint8", "int16", "uint16", "int64", "float16"])
def test_what_folds_no_axes_keeps_its_dtype(name, kind):
    for make, axes in [((1,), []), ((), None), ((1, 1), [0])]:
        ours = getattr(cc, name)(cc.ones(make, dtype=getattr(cc, kind)), axes)
        theirs = getattr(mlx, name)(mlx.ones(make, dtype=getattr(mlx, kind)), axes)
        assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
        assert ours.tolist() == theirs.tolist() and ours.shape == theirs.shape


def test_values_put_along_an_axis_may_have_leading_axes_of_one_element():
    shapes = [((3,), (2,), (1, 2)), ((2, 2), (1, 2), (1, 1, 2)), ((3,), (1,), (2, 1)), ((1,), (1,), (0, 1))]
    for shape, indices, values in shapes:
        found = []
        for m in (cc, mlx):
            x = m.zeros(shape, dtype=m.int32)
            at = m.zeros(indices, dtype=m.uint32)
            try:
                found.append(m.put_along_axis(x, at, m.ones(values, dtype=m.int32), axis=0).tolist())
            except ValueError:
                found.append(ValueError)
        assert found[0] == found[1]


def test_derivatives_by_indices():
    """They are refused as deep as they are calls, and nowhere else."""
    x, i = cc.array([1.0, 2.0, 3.0, 4.0]), cc.array([2, 0])
    for f in (lambda x, i: x[i].sum(), lambda x, i: x[i % 2 + 1].sum(), lambda x, i: cc.compile(lambda i: x[i])(i).sum()):
        with pytest.raises(ValueError, match="no derivative by indices"):
            cc.grad(f, (0, 1))(x, i)
        with pytest.raises(ValueError, match="no derivative by indices"):
            cc.jvp(lambda i: f(x, i), [i], [i])
        assert cc.grad(f)(x, i).sum().item() == 2
    stopped = cc.compile(lambda i: cc.stop_gradient(i))
    for f in (lambda x, i: x[stopped(i)].sum(), lambda x, i: x[cc.stop_gradient(i)].sum()):
        by_x, by_i = cc.grad(f, (0, 1))(x, i)
        assert by_x.tolist() == [1, 0, 1, 0] and by_i.tolist() == [0, 0]
    assert cc.grad(lambda x: x[cc.argmax(x)])(x).tolist() == [0, 0, 0, 1]


def test_bytes_beside_an_array():
    x = cc.array([1, 2], dtype=cc.uint16)
    assert (x * b"ab").tolist() == (bytearray(b"ab") * x).tolist() == [97, 196]
    assert (b"ab" * cc.array(2)).tolist() == [194, 196]
    with pytest.raises(TypeError):
        x @ b"ab"
    with pytest.raises(TypeError, match="bytes"):
        cc.sum(b"ab")
    for mx in (cc, mlx):
        assert mx.broadcast_to(b"ab", (2, 2)).tolist() == [[97, 98]] * 2
        assert mx.abs(b"ab").dtype == mx.uint8 and mx.sqrt(bytearray(b"d")).tolist() == [10]


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.sort("abc"),
        lambda m: m.sum([1, 2]),
        lambda m: m.fft.fft([1.0, 2.0]),
        lambda m: m.linalg.inv([[1.0, 0], [0, 1]]),
        lambda m: m.matmul(m.ones((2, 2)), None),
        lambda m: m.softmax(object()),
    ],
)
def test_what_is_no_array_is_a_type_error(call):
    for m in (cc, mlx):
        with pytest.raises(TypeError):
            call(m)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.conv1d(m.ones((1, 4, 2)), m.ones((2, 2, 2)), groups=-1),
        lambda m: m.conv_transpose2d(m.ones((1, 4, 4, 2)), m.ones((2, 2, 2, 2)), groups=-1),
        lambda m: m.quantize(m.ones((8, 64)), -1),
        lambda m: m.random.split(m.random.key(0), -1),
        lambda m: m.fft.fftn(m.array(1.0)),
        lambda m: m.abs("abc"),
        lambda m: m.isnan([1.0]),
        lambda m: m.bitwise_invert("abc"),
    ],
)
def test_what_is_refused_by_value(call):
    for m in (cc, mlx):
        with pytest.raises(ValueError):
            call(m)


def test_an_axis_that_comes_twice_is_shifted_twice():
    x = np.arange(30.0).reshape(5, 6)
    for axes in ((0, 0), (1, -1), (0, 1, 0), (0, 0, 0, 0, 0)):
        np.testing.assert_array_equal(np.array(cc.fft.fftshift(cc.array(x), axes)), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(np.array(cc.fft.ifftshift(cc.array(x), axes)), np.fft.ifftshift(x, axes))
