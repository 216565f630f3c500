"""Kernels of one's own, next to NumPy: mx.fast.kernel, metal_kernel, wgsl_kernel and cuda_kernel."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import cupola.core as cc
from conftest import values

DEVICE = os.environ.get("CUPOLA_TEST_DEVICE", "cpu")

SOFTSHRINK = """
    uint i = thread_position_in_grid.x;
    T v = x[i];
    y[i] = v > T(0.5f) ? v - T(0.5f) : (v < T(-0.5f) ? v + T(0.5f) : T(0));
"""
GRADIENT = """
    uint i = thread_position_in_grid.x;
    float v = x[i];
    dx[i] = v > 0.5f || v < -0.5f ? dy[i] : 0;
"""


def run(kernel, inputs, shapes, dtypes=None, grid=None, group=(64, 1, 1), **more):
    grid = grid or (int(np.prod(shapes[0])), 1, 1)
    dtypes = dtypes or [cc.float32] * len(shapes)
    return kernel(
        inputs=inputs,
        grid=grid,
        threadgroup=group,
        output_shapes=shapes,
        output_dtypes=dtypes,
        **more,
    )


def softshrink():
    forward = cc.fast.kernel("softshrink", ["x"], ["y"], SOFTSHRINK)
    forward.vjp = cc.fast.kernel("softshrink_vjp", ["x", "dy"], ["dx"], GRADIENT)

    def call(x):
        template = [("T", x.dtype)]
        return run(forward, [x], [x.shape], [x.dtype], (x.size, 1, 1), template=template)[0]

    return call


def wanted(x):
    return np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(7,), (33, 65), (1,)])
def test_softshrink(rng, dtype, shape):
    x = cc.array(rng.standard_normal(shape).astype(np.float32)).astype(getattr(cc, dtype))
    y = softshrink()(x)
    assert y.dtype == x.dtype and y.shape == x.shape
    np.testing.assert_allclose(values(y), wanted(values(x)), rtol=1e-2, atol=4e-3)


def test_the_derivative_is_that_of_differences(rng):
    f = softshrink()
    x = cc.array(rng.standard_normal((5, 9)).astype(np.float32))
    w = cc.array(rng.standard_normal((5, 9)).astype(np.float32))
    loss = lambda x: (f(x * x) * w).sum()
    value, gradient = cc.value_and_grad(loss)(x)
    step = 1e-2
    numeric = np.zeros((5, 9))
    for i in np.ndindex(5, 9):
        move = np.zeros((5, 9), np.float32)
        move[i] = step
        up, down = (values(loss(x + cc.array(s * move))) for s in (1, -1))
        numeric[i] = (up - down) / (2 * step)
    # A difference across the corner is of neither side.
    near = np.abs(values(x) ** 2 - 0.5) < 0.05
    np.testing.assert_allclose(
        np.where(near, 0, values(gradient)), np.where(near, 0, numeric), rtol=2e-2, atol=2e-2
    )
    compiled = cc.compile(cc.value_and_grad(loss))(x)
    np.testing.assert_allclose(values(compiled[0]), values(value), rtol=1e-5)
    np.testing.assert_allclose(values(compiled[1]), values(gradient), rtol=1e-5)


def test_batches_and_views(rng):
    f = softshrink()
    x = rng.standard_normal((4, 6)).astype(np.float32)
    array = cc.array(x)
    np.testing.assert_allclose(values(cc.vmap(f)(array)), wanted(x), rtol=1e-6)
    np.testing.assert_allclose(values(f(array.T)), wanted(x.T), rtol=1e-6)
    np.testing.assert_allclose(values(f(array[1:, ::2])), wanted(x[1:, ::2]), rtol=1e-6)
    broadcast = cc.broadcast_to(array[:1], (3, 6))
    np.testing.assert_allclose(values(f(broadcast)), wanted(np.repeat(x[:1], 3, 0)), rtol=1e-6)
    gradients = cc.vmap(cc.grad(lambda row: f(row).sum()))(array)
    np.testing.assert_allclose(values(gradients), (np.abs(x) > 0.5).astype(np.float32))


def test_a_function_as_derivative():
    kernel = cc.fast.kernel("cube", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] * x[i] * x[i];")
    kernel.vjp = lambda primals, cotangents, outputs: [3 * primals[0] ** 2 * cotangents[0]]
    kernel.jvp = lambda primals, tangents: [3 * primals[0] ** 2 * tangents[0]]
    f = lambda x: run(kernel, [x], [x.shape])[0]
    x = cc.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(values(cc.grad(lambda x: f(x).sum())(x)), [3, 12, 0.75])
    _, (tangent,) = cc.jvp(f, [x], [cc.ones(3)])
    np.testing.assert_allclose(values(tangent), [3, 12, 0.75])
    twice = cc.grad(lambda x: cc.grad(lambda x: f(x).sum())(x).sum())(x)
    np.testing.assert_allclose(values(twice), [6, -12, 3])


def test_a_batch_by_another_kernel_or_a_function():
    one = "uint i = thread_position_in_grid.x; y[i] = x[i] * w[i] + b[0];"
    many = '''
        uint i = thread_position_in_grid.x, row = thread_position_in_grid.z;
        y[row * x_shape[1] + i] = x[row * x_shape[1] + i] * w[row * w_shape[1] + i] + b[row];
        seen[row * x_shape[1] + i] = row;
    '''
    kernel = cc.fast.kernel("one", ["x", "w", "b"], ["y", "seen"], one + " seen[i] = 0;")
    kernel.vmap = cc.fast.kernel("many", ["x", "w", "b"], ["y", "seen"], many)
    x, w, b = np.arange(12.0).reshape(3, 4), np.arange(4.0), np.arange(3.0).reshape(3, 1)
    given = [cc.array(v, dtype=cc.float32) for v in (x, w, b)]
    dtypes = [cc.float32, cc.int32]
    call = lambda x, w, b: run(kernel, [x, w, b], [(4,), (4,)], dtypes, (4, 1, 1), (1, 1, 1))
    y, seen = cc.vmap(call, in_axes=(0, None, 0))(*given)
    np.testing.assert_array_equal(values(y), x * w + b)
    assert values(seen).tolist() == [[0] * 4, [1] * 4, [2] * 4]
    y, _ = cc.vmap(call, in_axes=(1, None, 1))(given[0].T, given[1], given[2].T)
    np.testing.assert_array_equal(values(y), x * w + b)
    assert cc.vmap(call, in_axes=(0, None, 0))(given[0][:0], given[1], given[2][:0])[0].shape == (0, 4)

    def rule(inputs, axes):
        assert axes == [0, None, 0]
        return [inputs[0] * inputs[1] + inputs[2], cc.full((3, 4), 7)], [0, 0]

    kernel.vmap = rule
    y, seen = cc.vmap(call, in_axes=(0, None, 0))(*given)
    np.testing.assert_array_equal(values(y), x * w + b)
    assert values(seen).tolist() == [[7] * 4] * 3
    # Without a rule, one after the other.
    kernel.vmap = None
    np.testing.assert_array_equal(values(cc.vmap(call, in_axes=(0, None, 0))(*given)[0]), x * w + b)
    for name in ("vjp", "jvp", "vmap"):
        with pytest.raises(TypeError, match=f"{name}: a kernel or a function, not a int"):
            setattr(kernel, name, 3)


def test_a_batch_has_the_derivative_of_the_kernel():
    square = cc.fast.kernel("square", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] * x[i];")
    square.vjp = cc.fast.kernel("back", ["x", "d"], ["dx"], "uint i = thread_position_in_grid.x; dx[i] = 2 * x[i] * d[i];")
    square.vmap = cc.fast.kernel(
        "squares", ["x"], ["y"], "uint i = thread_position_in_grid.x + 3 * thread_position_in_grid.z; y[i] = x[i] * x[i];"
    )
    f = lambda x: run(square, [x], [(3,)], [cc.float32], (3, 1, 1), (1, 1, 1))[0]
    x = cc.arange(6.0).reshape(2, 3)
    assert cc.vmap(cc.grad(lambda row: f(row).sum()))(x).tolist() == (2 * x).tolist()
    # The derivative of the batch is that of the kernel that is named for it.
    with pytest.raises(ValueError, match="squares: .*no vjp"):
        cc.grad(lambda x: cc.vmap(f)(x).sum())(x)
    square.vmap.vjp = lambda primals, cotangents, outputs: [2 * primals[0] * cotangents[0]]
    assert cc.grad(lambda x: cc.vmap(f)(x).sum())(x).tolist() == (2 * x).tolist()


def test_no_derivative_is_an_error_that_says_so():
    kernel = cc.fast.kernel("plain", ["x"], ["y"], "y[0] = x[0];")
    with pytest.raises(ValueError, match="plain: .*no vjp"):
        cc.grad(lambda x: run(kernel, [x], [(1,)])[0].sum())(cc.ones(1))


def test_several_outputs_scalars_shapes_and_strides(rng):
    source = """
        uint column = thread_position_in_grid.x, row = thread_position_in_grid.y;
        uint at = elem_to_loc(row * x_shape[1] + column, x_shape, x_strides, x_ndim);
        scaled[row * x_shape[1] + column] = x[at] * scale;
        where[row * x_shape[1] + column] = (int)at;
    """
    kernel = cc.fast.kernel("both", ["x", "scale"], ["scaled", "where"], source, ensure_row_contiguous=False)
    x = rng.standard_normal((5, 3)).astype(np.float32)
    shapes, dtypes = [(3, 5), (3, 5)], [cc.float32, cc.int32]
    scaled, where = run(kernel, [cc.array(x).T, 2.0], shapes, dtypes, (5, 3, 1), (2, 2, 1))
    np.testing.assert_allclose(values(scaled), x.T * 2)
    assert sorted(values(where).ravel().tolist()) == list(range(15))
    # Backwards, what is read lies before what is at 0.
    whole = cc.array(np.pad(x, 2))
    for part in (np.s_[::-1], np.s_[:, ::-1], np.s_[::-1, ::-1], np.s_[-2:1:-1, 2:4], np.s_[::-2, 1::2]):
        of = np.pad(x, 2)[part]
        scaled, where = run(kernel, [whole[part], 2.0], [of.shape] * 2, dtypes, (*of.shape[::-1], 1), (1, 1, 1))
        np.testing.assert_array_equal(values(scaled), of * 2)


def test_what_is_outside_of_a_strided_input_is_an_error():
    source = "y[0] = x[thread_position_in_grid.x + 0 * (int)x_strides[0] - 3];"
    kernel = cc.fast.kernel("outside", ["x"], ["y"], source, ensure_row_contiguous=False)
    x = cc.arange(8.0)
    cc.eval(x)
    # Of x[5:2:-1] the elements from −2 to 0 are there.
    with pytest.raises(IndexError, match="'x', which has 3 elements"):
        cc.eval(run(kernel, [x[5:2:-1]], [(1,)]))


@pytest.mark.parametrize("dtype", ["bool_", "uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "bfloat16", "float32"])
def test_every_dtype_is_read_and_written(rng, dtype):
    dtype = getattr(cc, dtype)
    x = cc.array(rng.integers(0, 100, 37)).astype(dtype)
    kernel = cc.fast.kernel("turn", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[36 - i] = x[i];")
    y = run(kernel, [x], [(37,)], [dtype])[0]
    assert y.dtype == dtype
    np.testing.assert_array_equal(values(y), values(x)[::-1])


def test_threadgroups_share_memory(rng):
    source = """
        threadgroup float sums[N];
        uint i = thread_position_in_threadgroup.x;
        sums[i] = x[thread_position_in_grid.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint step = N / 2; step > 0; step /= 2) {
            if (i < step) sums[i] += sums[i + step];
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        if (i == 0) out[threadgroup_position_in_grid.x] = sums[0];
    """
    kernel = cc.fast.kernel("sums", ["x"], ["out"], source)
    x = rng.standard_normal(640).astype(np.float32)
    y = run(kernel, [cc.array(x)], [(10,)], None, (640, 1, 1), template=[("N", 64)])[0]
    np.testing.assert_allclose(values(y), x.reshape(10, 64).sum(1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32"])
def test_atomics_and_first_values(rng, dtype):
    source = """
        uint i = thread_position_in_grid.x;
        atomic_fetch_add_explicit(&counts[x[i]], T(1), memory_order_relaxed);
        atomic_fetch_max_explicit(&most[0], T(x[i]), memory_order_relaxed);
    """
    kernel = cc.fast.metal_kernel(
        name="histogram",
        input_names=["x"],
        output_names=["counts", "most"],
        source=source,
        atomic_outputs=True,
    )
    x = rng.integers(0, 10, 3000).astype(np.uint32)
    dtype = getattr(cc, dtype)
    template = [("T", dtype)]
    counts, most = run(
        kernel, [cc.array(x)], [(10,), (1,)], [dtype, dtype], (3000, 1, 1), init_value=2, template=template
    )
    np.testing.assert_array_equal(values(counts), np.bincount(x, minlength=10) + 2)
    assert most.item() == 9


def test_first_values_are_cast_as_arrays_are():
    kernel = cc.fast.kernel("first", ["x"], ["y"], "if (thread_position_in_grid.x > 9) y[0] = x[0];")
    numbers = [-1, 3e9, 0.5, float("nan"), 1e12, -2.7, 255.9]
    for name in ("bool_", "uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"):
        dtype = getattr(cc, name)
        for number in numbers:
            if np.isnan(number) and name not in ("bool_", "float16", "float32"):
                continue  # Of NaN no integer is said.
            y = run(kernel, [cc.ones(1)], [(3,)], [dtype], init_value=number)[0]
            want = cc.array(np.full(3, number, np.float64), cc.float64).astype(dtype, stream=cc.cpu)
            np.testing.assert_array_equal(values(y), values(want), err_msg=f"{name} {number}")


@pytest.mark.parametrize("dtype", ["bool_", "int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_a_cast_gives_what_astype_gives(dtype):
    dtype = getattr(cc, dtype)
    x = cc.array([1e20, -1e20, np.nan, -2.7, 2.7, 3e9, 2147483647.0, 300.0, -40000.0, np.inf, -np.inf], cc.float32)
    want = values(x.astype(dtype)).tolist()
    for source in ("y[i] = (T)x[i];", "y[i] = x[i];", "T v = x[i]; y[i] = v;", "y[i] += x[i];", "float v = x[i]; y[i] = T(v);"):
        kernel = cc.fast.kernel("casts", ["x"], ["y"], "uint i = thread_position_in_grid.x; " + source)
        if "+=" in source and dtype == cc.bool_:
            continue
        y = run(kernel, [x], [x.shape], [dtype], template=[("T", dtype)], init_value=0)[0]
        assert values(y).tolist() == want, source


def test_whole_numbers_have_the_types_of_c():
    x = cc.array([-5, -1, 0, 1])

    def found(expression):
        source = f"uint i = thread_position_in_grid.x; int v = x[i]; y[i] = {expression};"
        return run(cc.fast.kernel("whole", ["x"], ["y"], source), [x], [(4,)], [cc.int32])[0].tolist()

    assert found("010 + 0x1F") == [39] * 4
    assert found("v < 0x80000000") == [0, 0, 1, 1]
    if DEVICE != "wgpu":  # which has no integers of 64 bits
        assert found("v < 2147483648") == [1] * 4
        assert found("v < 4294967295") == [1] * 4
        assert found("v > -2147483648") == [1] * 4
    for wrong in ("09", "0x", "0x1g", "99999999999999999999", "18446744073709551615"):
        with pytest.raises(ValueError, match="is not a number|too large"):
            found(wrong)


def test_of_nothing_there_is_nothing_to_compute():
    call = softshrink()
    assert call(cc.zeros((0, 6))).shape == (0, 6)
    assert cc.grad(lambda x: call(x).sum())(cc.zeros((0, 6))).shape == (0, 6)
    kernel = cc.fast.kernel("outside", ["x"], ["y"], "y[thread_position_in_grid.x + 5] = x[0];")
    assert run(kernel, [cc.ones(1)], [(0,)], grid=(3, 1, 1))[0].tolist() == []
    with pytest.raises(ValueError, match="has no threads"):
        run(kernel, [cc.ones(1)], [(2,)], grid=(0, 1, 1))


def test_a_derivative_gives_as_many_as_there_are_inputs():
    kernel = cc.fast.kernel("twice", ["x"], ["y"], "y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];")
    for wrong in (lambda x, dy, y: [dy[0], dy[0]], lambda x, dy, y: []):
        kernel.vjp = wrong
        with pytest.raises(ValueError, match="vjp gave"):
            cc.grad(lambda x: run(kernel, [x], [x.shape])[0].sum())(cc.ones(3))


def test_control_flow_and_functions(rng):
    header = """
        float power(float base, int n) {
            float found = 1;
            for (int i = 0; ; i++) { if (i == n) return found; found *= base; }
        }
    """
    source = """
        uint i = thread_position_in_grid.x;
        float terms[4] = {1};
        float sum = 0;
        for (int n = 0; n < 9; n++) {
            if (n % 2 == 1) continue;
            if (n > 6) break;
            terms[n / 2] = power(x[i], n);
        }
        int n = 0;
        do { sum += terms[n++]; } while (n < 4);
        y[i] = x[i] < 0 ? -sum : metal::exp(x[i]) + sum;
    """
    kernel = cc.fast.kernel("series", ["x"], ["y"], source, header)
    x = rng.uniform(-1, 1, 100).astype(np.float32)
    sums = 1 + x**2 + x**4 + x**6
    y = run(kernel, [cc.array(x)], [(100,)])[0]
    np.testing.assert_allclose(values(y), np.where(x < 0, -sums, np.exp(x) + sums), rtol=1e-5)


def test_a_kernel_takes_part_in_a_plan(rng):
    f = softshrink()
    x = rng.standard_normal((8, 8)).astype(np.float32)
    step = cc.compile(lambda x: (f(x @ x) + 1).sum(axis=0))
    for _ in range(3):
        np.testing.assert_allclose(values(step(cc.array(x))), (wanted(x @ x) + 1).sum(0), rtol=1e-4, atol=1e-4)
        x = x[::-1].copy()


WRONG = [
    ("y[i] = 1;", "kernel: line 1, column 3: there is no 'i' here\n    y\\[i\\] = 1;\n      \\^"),
    ("uint i = thread_position_in_grid.x;\ny[i] = q(x[i]);", "line 2, column 8: there is no function 'q' here"),
    ("x[0] = 1;", "'x' is an input"),
    ("y[0] = x[0]", "there should be ';'"),
    ("int i = 0;\nint i = 1;", "line 2, column 5: 'i' is declared here already"),
]


@pytest.mark.parametrize("source, message", WRONG)
def test_a_wrong_source_is_shown_with_its_line(source, message):
    kernel = cc.fast.kernel("kernel", ["x"], ["y"], source)
    with pytest.raises(ValueError, match=message):
        run(kernel, [cc.ones(2)], [(2,)])


def test_wrong_calls_are_errors():
    kernel = cc.fast.kernel("copy", ["x"], ["y"], "y[0] = x[0];")
    one = cc.ones(1)
    with pytest.raises(ValueError, match="copy: it has 1 inputs, the call gives 2"):
        run(kernel, [one, one], [(1,)])
    with pytest.raises(ValueError, match="copy: it has 1 outputs, the call gives 2"):
        run(kernel, [one], [(1,), (1,)])
    with pytest.raises(ValueError, match="1 output_shapes and 2 output_dtypes"):
        run(kernel, [one], [(1,)], [cc.float32, cc.float32])
    with pytest.raises(ValueError, match=r"copy: a grid of \[1, 0, 1\] has no threads"):
        run(kernel, [one], [(1,)], None, (1, 0, 1))
    with pytest.raises(ValueError, match=r"copy: a threadgroup of \[0, 1, 1\] has no threads"):
        run(kernel, [one], [(1,)], None, (1, 1, 1), (0, 1, 1))
    with pytest.raises(ValueError, match="more than 1024 threads"):
        run(kernel, [one], [(1,)], None, (4096, 1, 1), (2048, 1, 1))
    with pytest.raises(ValueError, match="more than 2³² threads"):
        run(kernel, [one], [(1,)], None, (2**31, 4, 1))
    with pytest.raises(ValueError, match=r"copy: a grid of \(-1, 1, 1\) threads"):
        run(kernel, [one], [(1,)], None, (-1, 1, 1))
    with pytest.raises(ValueError, match=r"copy: a threadgroup of \(1, 4294967296, 1\) threads"):
        run(kernel, [one], [(1,)], None, (1, 1, 1), (1, 2**32, 1))
    with pytest.raises(ValueError, match="copy: x: kernels have no complex numbers"):
        run(kernel, [one.astype(cc.complex64)], [(1,)])
    with pytest.raises(TypeError, match="'T' is a dtype, an int or a bool, not a str"):
        run(kernel, [one], [(1,)], template=[("T", "float")])
    with pytest.raises(ValueError, match="two arrays have the name 'x'"):
        cc.fast.kernel("twice", ["x"], ["x"], "")
    with pytest.raises(ValueError, match="'1x' is no name"):
        cc.fast.kernel("named", ["1x"], ["y"], "")
    for name in ("if", "float", "int", "const", "thread_position_in_grid", "a b", "é", ""):
        with pytest.raises(ValueError, match=f"named: '{name}' is no name of an array"):
            cc.fast.kernel("named", ["x"], [name], "")
    # What only other languages read may be called what they allow.
    cc.fast.wgsl_kernel("own", ["signed"], ["out"], "")
    for template in ([("x", 1)], [("y", cc.float32)], [("N", 1), ("N", 2)]):
        with pytest.raises(ValueError, match=f"copy: the template says what '{template[-1][0]}' is, which is there already"):
            run(kernel, [one], [(1,)], template=template)
    with pytest.raises(ValueError, match="copy: 'while' is no name for what a template says"):
        run(kernel, [one], [(1,)], template=[("while", 1)])
    with pytest.raises(ValueError, match="at least one output"):
        cc.fast.kernel("none", ["x"], [], "")


def test_an_index_outside_is_an_error_and_nothing_is_lost():
    kernel = cc.fast.kernel("off", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i + 1] = x[i];")
    x = cc.arange(8).astype(cc.float32)
    with pytest.raises(Exception, match="off: line 1, column .* outside 'y', which has 8 elements"):
        cc.eval(run(kernel, [x], [(8,)]))
        cc.synchronize()
    # NumPy asks an array in several ways until one gives no error: each has to give it.
    (off,) = run(kernel, [x], [(8,)])
    for read in (np.array, lambda y: y.tolist(), np.array):
        with pytest.raises(Exception, match="off: line 1, column .* outside 'y', which has 8 elements"):
            read(off)
    np.testing.assert_array_equal(values(x), np.arange(8))
    np.testing.assert_array_equal(values(softshrink()(x))[:2], [0, 0.5])


@pytest.mark.skipif(DEVICE != "wgpu", reason="about wgpu")
def test_a_source_of_another_device_says_so_on_a_gpu():
    kernel = cc.fast.cuda_kernel("other", ["x"], ["y"], "y[0] = x[0];")
    with pytest.raises(RuntimeError, match=r"other: its source is in CUDA C\+\+, which the device does not run"):
        cc.eval(run(kernel, [cc.ones(1)], [(1,)]))


@pytest.mark.skipif(DEVICE != "cpu", reason="about the CPU")
def test_a_source_of_another_device_says_so():
    for make, language in ((cc.fast.wgsl_kernel, "WGSL"), (cc.fast.cuda_kernel, "CUDA C")):
        kernel = make("other", ["x"], ["y"], "y[0] = x[0];")
        with pytest.raises(ValueError, match=f"other: its source is in {language}"):
            cc.eval(run(kernel, [cc.ones(1)], [(1,)]))


def test_options_of_metal_and_cuda():
    source = "uint i = thread_position_in_grid.x; y[i] = exp(x[i]);"
    x = cc.array([-np.inf, 0.0])
    for options in (None, {}, {"math_mode": "safe"}, {"math_mode": "relaxed"}, {"math_mode": "fast"}):
        kernel = cc.fast.metal_kernel("exp", ["x"], ["y"], source, compile_options=options)
        assert run(kernel, [x], [(2,)])[0].tolist() == [0, 1]
    for wrong, message in (
        (3, "a dict, not a int"),
        ({"opt": 1}, "no option 'opt'; there is 'math_mode'"),
        ({"math_mode": "slow"}, "math_mode 'slow' is not 'safe', 'relaxed' or 'fast'"),
        ({"math_mode": 1}, "math_mode 1 is not"),
    ):
        with pytest.raises(ValueError, match=f"metal_kernel: compile_options: {message}"):
            cc.fast.metal_kernel("exp", ["x"], ["y"], source, compile_options=wrong)
    assert cc.fast.cuda_kernel("shared", ["x"], ["y"], "", shared_memory=16).name == "shared"
    for wrong in (-1, 2**32):
        with pytest.raises(ValueError, match=f"cuda_kernel: shared_memory {wrong} is not in 0"):
            cc.fast.cuda_kernel("shared", ["x"], ["y"], "", shared_memory=wrong)


def test_functions_of_the_library():
    source = """
        uint i = thread_position_in_grid.x;
        float v = x[i];
        uint bits = (uint)n[i];
        y[i] = mix(v, 2.0f, 0.5f) + 10 * sign(v) + smoothstep(-1.0f, 1.0f, v) + fract(v) + copysign(3.0f, v);
        counts[i] = popcount(bits) + 100 * clz(n[i]) + 10000 * ctz(bits);
        turned[i] = rotate(bits, 4);
        bytes[i] = reverse_bits((uchar)bits);
    """
    kernel = cc.fast.kernel("library", ["x", "n"], ["y", "counts", "turned", "bytes"], source)
    x = np.array([-2.25, -0.5, 0.0, 0.75, 3.0], np.float32)
    n = np.array([1, 6, 255, 2**31 - 1, 2**20], np.int32)
    found = run(kernel, [cc.array(x), cc.array(n)], [(5,)] * 4, [cc.float32, cc.int32, cc.uint32, cc.uint8])
    t = np.clip((x + 1) / 2, 0, 1)
    want = x + (2 - x) / 2 + 10 * np.sign(x) + t * t * (3 - 2 * t) + x - np.floor(x) + np.copysign(3, x)
    np.testing.assert_allclose(values(found[0]), want, rtol=1e-6)
    text = [f"{v:032b}" for v in n.tolist()]
    counts = [b.count("1") + 100 * b.index("1") + 10000 * (31 - b.rindex("1")) for b in text]
    assert values(found[1]).tolist() == counts
    assert values(found[2]).tolist() == [int(b[4:] + b[:4], 2) for b in text]
    assert values(found[3]).tolist() == [int(b[:23:-1], 2) for b in text]


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32"])
def test_an_exchange_that_compares(dtype):
    source = """
        T seen = 0;
        while (!atomic_compare_exchange_weak_explicit(&y[0], &seen, seen + T(1), memory_order_relaxed, memory_order_relaxed)) {}
    """
    kernel = cc.fast.metal_kernel("add", ["x"], ["y"], source, atomic_outputs=True)
    dtype = getattr(cc, dtype)
    y = run(kernel, [cc.ones(1)], [(1,)], [dtype], (3000, 1, 1), init_value=2, template=[("T", dtype)])[0]
    assert y.item() == 3002


def test_first_values_of_rows():
    source = """
        uint i = thread_position_in_grid.x;
        float a[2][3] = {{1, 2, 3}, {4, 5}};
        y[i] = a[i / 3][i % 3];
    """
    y = run(cc.fast.kernel("rows", ["x"], ["y"], source), [cc.ones(1)], [(6,)])[0]
    assert y.tolist() == [1, 2, 3, 4, 5, 0]
    wrong = cc.fast.kernel("rows", ["x"], ["y"], "float a[2][3] = {{1, 2, 3},\n{4, 5, 6, 7}};")
    with pytest.raises(ValueError, match="line 2, column 11: 'a' has only 3 elements in these braces"):
        run(wrong, [cc.ones(1)], [(6,)])


@pytest.mark.skipif(DEVICE != "wgpu", reason="about wgpu")
def test_wgsl(rng):
    source = """
        let i = thread_position_in_grid.x;
        y[i] = x[i] * scale + f32(x_shape[0]);
    """
    kernel = cc.fast.wgsl_kernel("scaled", ["x", "scale"], ["y"], source)
    x = rng.standard_normal((20, 3)).astype(np.float32)
    y = run(kernel, [cc.array(x), 3.0], [(20, 3)])[0]
    np.testing.assert_allclose(values(y), x * 3 + 20, rtol=1e-6)
    part = cc.array(x)[4:]
    cc.eval(part)
    y = run(kernel, [part, 3.0], [(16, 3)])[0]
    np.testing.assert_allclose(values(y), x[4:] * 3 + 16, rtol=1e-6)
    wrong = cc.fast.wgsl_kernel("wrong", ["x"], ["y"], "let i = 0;\n  y[i] = foo;")
    with pytest.raises(Exception, match="line 2, column 10: .*foo"):
        cc.eval(run(wrong, [cc.ones(1)], [(1,)]))
    # A text that can be read and means nothing.
    wrong = cc.fast.wgsl_kernel("wrong", ["x"], ["y"], "let i = 0;\n  y[i] = x[i] + 1u;")
    with pytest.raises(Exception, match="line 2, column 10: Operation Add can't work with .*Float.*\n    *y.*\n *\\^") as told:
        cc.eval(run(wrong, [cc.ones(1)], [(1,)]))
    assert "Expression" not in str(told.value) and "[6" not in str(told.value), told.value
    # Lines of the header are its own.
    header = "fn f(v: f32) -> f32 { return v; }\nfn g(v: f32) -> f32 {\n  return v * 2u;\n}"
    wrong = cc.fast.wgsl_kernel("wrong", ["x"], ["y"], "y[0] = g(x[0]);", header=header)
    told = r"^wrong: header, line 3, column 10: Operation Multiply can't work with .*\n +return v \* 2u;\n +\^"
    with pytest.raises(RuntimeError, match=told):
        cc.eval(run(wrong, [cc.ones(1)], [(1,)], template=[("N", 3)]))
    header = "fn g(v: f32) -> f32 {\n  return foo;\n}"
    wrong = cc.fast.wgsl_kernel("wrong", ["x"], ["y"], "y[0] = g(x[0]);", header=header)
    with pytest.raises(RuntimeError, match=r"^wrong: header, line 2, column 10: .*foo.*\n +return foo;\n +\^"):
        cc.eval(run(wrong, [cc.ones(1)], [(1,)]))


@pytest.mark.skipif(DEVICE != "wgpu", reason="about wgpu")
def test_wgsl_reads_its_inputs_and_says_what_it_lacks():
    index = "y[thread_position_in_grid.x] = f32(thread_index_in_threadgroup);"
    y = run(cc.fast.wgsl_kernel("index", ["x"], ["y"], index), [cc.ones(4)], [(4,)], group=(2, 1, 1))[0]
    assert y.tolist() == [0, 1, 0, 1]
    kept = cc.zeros(4)
    cc.eval(kept)
    writes = cc.fast.wgsl_kernel("writes", ["x"], ["y"], "x[0] = 7.0; y[0] = 1.0;")
    with pytest.raises(RuntimeError, match=r"^writes: "):
        run(writes, [kept], [(4,)])[0].tolist()
    assert kept.tolist() == [0] * 4
    copies = cc.fast.wgsl_kernel("copies", ["x"], ["y"], "y[0] = x[0];")
    with pytest.raises(RuntimeError, match="no arrays of float16"):
        run(copies, [cc.ones(4, cc.float16)], [(4,)], [cc.float16])[0].tolist()


@pytest.mark.skipif(DEVICE != "cuda", reason="about CUDA")
def test_cuda(rng):
    source = """
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        y[i] = x[i] * scale + x_shape[0];
    """
    kernel = cc.fast.cuda_kernel("scaled", ["x", "scale"], ["y"], source)
    x = rng.standard_normal((20, 3)).astype(np.float32)
    y = run(kernel, [cc.array(x), 3.0], [(20, 3)])[0]
    np.testing.assert_allclose(values(y), x * 3 + 20, rtol=1e-6)
    source = """
        extern __shared__ float row[];
        row[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        y[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
    """
    for count in (64, 1024):
        kernel = cc.fast.cuda_kernel("turn", ["x"], ["y"], source, shared_memory=60 * count)
        x = rng.standard_normal(count).astype(np.float32)
        y = run(kernel, [cc.array(x)], [(count,)], group=(count, 1, 1))[0]
        np.testing.assert_array_equal(values(y), x[::-1])
    kernel = cc.fast.cuda_kernel("large", ["x"], ["y"], source, shared_memory=2**30)
    with pytest.raises(RuntimeError, match="1073741824 bytes"):
        cc.eval(run(kernel, [cc.ones(1)], [(1,)]))
    wrong = cc.fast.cuda_kernel("wrong", ["x"], ["y"], "int i = 0;\n  y[i] = foo;")
    with pytest.raises(Exception, match=r"source\(2\).*foo"):
        cc.eval(run(wrong, [cc.ones(1)], [(1,)]))


def test_the_documented_layer(rng):
    folder = pathlib.Path(__file__).resolve().parents[3]
    text = (folder / "docs" / "kernels.md").read_text()
    names = {}
    exec(re.search(r"```python\n(.*?)```", text, re.S)[1], names)
    layer = names["Softshrink"](0.4)
    x = cc.array(rng.standard_normal((6, 5)).astype(np.float32))
    loss, gradients = names["nn"].value_and_grad(layer, lambda x: (layer(x) ** 2).sum())(x)
    v = values(x)
    y = np.sign(v) * np.maximum(np.abs(v) - 0.4, 0)
    np.testing.assert_allclose(values(loss), (y**2).sum(), rtol=1e-5)
    np.testing.assert_allclose(values(gradients["edge"]), -2 * np.abs(y).sum(), rtol=1e-4)
    np.testing.assert_allclose(values(cc.grad(lambda x: (layer(x) ** 2).sum())(x)), 2 * y, rtol=1e-5)


def test_packages_hold_the_text_of_a_kernel(tmp_path):
    """What is exported runs where nothing of the program is left, on other values, batched and compiled."""
    source = """
        uint i = thread_position_in_grid.x;
        y[i] += scaled(T(x[i * x_strides[0]]), N) + (FLAG ? 1 : 0);
    """
    kernel = cc.fast.kernel(
        "scaled", ["x"], ["y"], source, header="float scaled(float v, int n) { return v * n; }",
        ensure_row_contiguous=False,
    )  # fmt: skip
    template = [("T", cc.float32), ("N", 3), ("FLAG", True)]
    f = lambda x: run(kernel, [x], [(5,)], None, (5, 1, 1), template=template, init_value=0.5)[0] * 2
    x = cc.arange(5, dtype=cc.float32)
    path = str(tmp_path / "scaled.mlxfn")
    cc.export_function(path, f, x)
    script = (
        "import sys, cupola.core as mx\n"
        "f = mx.import_function(sys.argv[1])\n"
        "x = mx.array([1.0, 2.0, 3.0, 4.0, 5.0])\n"
        "print(f(x)[0].tolist(), mx.compile(lambda v: f(v)[0])(x).tolist())\n"
    )
    ran = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    want = [2 * (0.5 + 3 * v + 1) for v in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert ran.stdout.strip() == f"{want} {want}", ran.stdout + ran.stderr


def test_packages_hold_no_language_of_a_device(tmp_path):
    kernel = cc.fast.wgsl_kernel("wide", ["x"], ["y"], "y[0] = x[0];")
    with pytest.raises((ValueError, RuntimeError), match="wide.*no package can hold its kernel"):
        cc.export_function(str(tmp_path / "f.mlxfn"), lambda x: run(kernel, [x], [(1,)])[0], cc.ones(1))
    assert not list(tmp_path.iterdir())
