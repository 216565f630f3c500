"""Images in other sizes, samples, windows and pools: against plain loops, and ONNX's operators where they are there."""

import itertools

import numpy as np
import pytest
import cupola.nn as nn
from conftest import cc, values

rng = np.random.default_rng(0)


def f32(*shape):
    return rng.normal(size=shape).astype(np.float32)


def close(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(values(ours), theirs, rtol=tolerance, atol=tolerance)


def onnx(op, inputs, opset=20, **attributes):
    """What an operator of ONNX gives."""
    build = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    helper = build.helper
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    kinds = {np.dtype(np.float32): 1, np.dtype(np.int64): 7}
    infos = [helper.make_tensor_value_info(n, kinds[x.dtype], x.shape) for n, x in zip(names, inputs) if x is not None]
    node = helper.make_node(op, names, ["o"], **attributes)
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("o", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {n: x for n, x in zip(names, inputs) if x is not None})[0]


def first(x):
    """Channels first."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def last(x):
    return np.moveaxis(x, 1, -1)


def test_pixels_are_shuffled():
    for r, shape in [(2, (2, 3, 4, 8)), (3, (1, 1, 2, 9)), (1, (2, 2, 2, 3)), (2, (3, 5, 4))]:
        x = f32(*shape)
        out = cc.pixel_shuffle(cc.array(x), r)
        *lead, h, w, c = shape
        want = x.reshape(-1, h, w, c // r**2, r, r).transpose(0, 1, 4, 2, 5, 3).reshape(*lead, h * r, w * r, c // r**2)
        close(out, want, 0)
        close(cc.pixel_unshuffle(out, r), x, 0)
    want = onnx("DepthToSpace", [first(f32(1, 2, 2, 4))], mode="CRD", blocksize=2)
    assert want.shape == (1, 1, 4, 4)
    x = f32(2, 3, 4, 8)
    close(cc.pixel_shuffle(cc.array(x), 2), last(onnx("DepthToSpace", [first(x)], mode="CRD", blocksize=2)), 0)
    assert cc.pixel_shuffle(cc.zeros((0, 2, 2, 4)), 2).shape == (0, 4, 4, 1)
    for bad in (lambda: cc.pixel_shuffle(cc.ones((2, 2, 3)), 2), lambda: cc.pixel_unshuffle(cc.ones((3, 2, 3)), 2), lambda: cc.pixel_shuffle(cc.ones((4, 4)), 2), lambda: cc.pixel_shuffle(cc.ones((2, 2, 4)), 0)):
        with pytest.raises(ValueError, match="pixel_"):
            bad()


MODES = [("nearest", False), ("nearest-exact", False), ("linear", False), ("linear", True), ("cubic", False), ("cubic", True)]


@pytest.mark.parametrize("mode, align", MODES)
@pytest.mark.parametrize("sizes, new", [((5, 7), (8, 3)), ((4, 4), (4, 9)), ((3, 5), (1, 1)), ((2, 3), (10, 7))])
def test_interpolation_as_onnx(mode, align, sizes, new):
    x = f32(2, *sizes, 3)
    coordinates = "align_corners" if align else "asymmetric" if mode == "nearest" else "half_pixel"
    sizes = np.array([2, 3, *new], np.int64)
    more = {
        "nearest": {"nearest_mode": "floor"},
        "nearest-exact": {"nearest_mode": "round_prefer_ceil"},
        "cubic": {"cubic_coeff_a": -0.75},
    }.get(mode, {})
    name = mode.removesuffix("-exact")
    want = last(onnx("Resize", [first(x), None, None, sizes], opset=18, mode=name, coordinate_transformation_mode=coordinates, **more))
    close(cc.interpolate(cc.array(x), new, mode=mode, align_corners=align), want)


def resized(x, new, mode, align, factors=None):
    """An image resized a pixel at a time, as PyTorch describes it."""
    for axis, size in enumerate(new):
        n = x.shape[axis + 1]
        step = n / size if factors is None else 1 / factors[axis]
        out = []
        for i in range(size):
            def pixel(k):
                return np.take(x, min(max(k, 0), n - 1), axis + 1).astype(np.float64)

            place = (i * (n - 1) / max(size - 1, 1)) if align else (i + 0.5) * step - 0.5
            if mode == "nearest":
                out.append(pixel(int(np.floor(i * step + 1e-9))))
            elif mode == "nearest-exact":
                out.append(pixel(int(np.floor((i + 0.5) * step + 1e-9))))
            elif mode == "linear":
                place = max(place, 0)
                low = int(np.floor(place))
                out.append(pixel(low) * (1 - place + low) + pixel(low + 1) * (place - low))
            else:
                low = int(np.floor(place))
                a, total = -0.75, 0
                for k in range(-1, 3):
                    d = abs(place - low - k)
                    near, far = (a + 2) * d**3 - (a + 3) * d**2 + 1, a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
                    total = total + pixel(low + k) * (near if d <= 1 else far)
                out.append(total)
        x = np.stack(out, axis + 1)
    return x


@pytest.mark.parametrize("mode, align", MODES)
def test_interpolation_of_one_to_three_axes(mode, align):
    for sizes, new in [((6,), (9,)), ((6,), (4,)), ((3, 4), (7, 2)), ((2, 3, 4), (3, 5, 2))]:
        x = f32(2, *sizes, 2)
        close(cc.interpolate(cc.array(x), new, mode=mode, align_corners=align), resized(x, new, mode, align))
    x = f32(1, 5, 4, 2)
    for factors in ((1.5, 2.5), (0.5, 0.3), (2, 2)):
        new = [int(n * f) for n, f in zip(x.shape[1:], factors)]
        close(cc.interpolate(cc.array(x), scale_factor=factors, mode=mode, align_corners=align), resized(x, new, mode, align, factors))
    close(cc.interpolate(cc.array(x), scale_factor=2, mode=mode, align_corners=align), resized(x, (10, 8), mode, align))


def test_interpolation():
    x = f32(1, 6, 7, 2)
    close(cc.interpolate(cc.array(x), (3, 5), mode="area"), pooled(x, (3, 5), np.mean))
    assert cc.interpolate(cc.array([[[1], [2]]]), 4).tolist() == [[[1], [1], [2], [2]]]
    assert cc.interpolate(cc.ones((1, 2, 1), dtype=cc.bfloat16), 3, mode="linear").dtype == cc.bfloat16
    grad = cc.grad(lambda x: (cc.interpolate(x, (4, 9), mode="cubic") ** 2).sum())(cc.array(x))
    h = np.zeros_like(x)
    h[0, 2, 3, 1] = 1e-2
    f = lambda x: float((cc.interpolate(cc.array(x), (4, 9), mode="cubic") ** 2).sum().item())  # noqa: E731
    assert abs((f(x + h) - f(x - h)) / 2e-2 - np.array(grad)[0, 2, 3, 1]) < 2e-2
    bad = [{"size": 3, "scale_factor": 2}, {}, {"size": 0}, {"size": (2, 2, 2)}, {"size": 2, "mode": "x"}, {"size": 2, "align_corners": True}, {"scale_factor": -1.0}, {"scale_factor": float("nan")}, {"size": -1}]
    for kwargs in bad:
        with pytest.raises(ValueError):
            cc.interpolate(cc.array(x), **kwargs)
    with pytest.raises(ValueError, match="interpolate"):
        cc.interpolate(cc.ones((2, 3)), 4)


@pytest.mark.parametrize("mode, name", [("bilinear", "linear"), ("nearest", "nearest"), ("bicubic", "cubic")])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("axes", [2, 3])
def test_samples_as_onnx(mode, name, padding, align, axes):
    if axes == 3 and mode == "bicubic":
        with pytest.raises(ValueError, match="grid_sample"):
            cc.grid_sample(cc.ones((1, 2, 2, 2, 1)), cc.ones((1, 1, 3)), mode)
        return
    for sizes in [(5, 4), (1, 3), (6, 6)]:
        sizes = (*sizes, 3)[:axes]
        x, grid = f32(2, *sizes, 3), (f32(2, *(4, 3, 5)[:axes], axes) * 1.5)
        grid[0].reshape(-1, axes)[:3] = [[-1] * axes, [1] * axes, [0] * axes]
        if 1 in sizes and padding == "reflection" and align:
            # Mirrored between two equal ends: everything is the one pixel.
            grid[...] = np.abs(grid)
        want = last(onnx("GridSample", [first(x), grid], mode=name, padding_mode=padding, align_corners=int(align)))
        got = cc.grid_sample(cc.array(x), cc.array(grid), mode, padding, align)
        close(got, want, 2e-5 if mode != "bicubic" else 1e-4)


def test_samples():
    x, grid = cc.array(f32(2, 4, 5, 3)), cc.array(f32(2, 3, 3, 2) / 3)
    f = lambda x, grid: (cc.grid_sample(x, grid) ** 2).sum()  # noqa: E731
    dx, dg = cc.grad(f, argnums=(0, 1))(x, grid)
    for k, (array, slope, at) in enumerate([(x, dx, (1, 2, 2, 0)), (grid, dg, (0, 1, 1, 1)), (grid, dg, (1, 0, 2, 0))]):
        h = np.zeros(array.shape, np.float32)
        h[at] = 1e-3
        args = lambda sign: [a + sign * cc.array(h) if a is array else a for a in (x, grid)]  # noqa: B023, E731
        assert abs((f(*args(1)) - f(*args(-1))).item() / 2e-3 - np.array(slope)[at]) < 2e-2, k
    assert cc.grid_sample(x.astype(cc.float16), grid).dtype == cc.float16
    assert cc.grid_sample(x, cc.zeros((2, 0, 2))).shape == (2, 0, 3)
    assert cc.grid_sample(x, cc.zeros((2, 2))).shape == (2, 3)
    far = cc.array([[[float("inf"), 0.0]], [[float("nan"), 0.0]]])
    assert not np.isfinite(np.array(cc.grid_sample(x, far))[1]).any()
    identity = np.stack(np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 4)), -1)[None].repeat(2, 0).astype(np.float32)
    close(cc.grid_sample(x, cc.array(identity), align_corners=True), np.array(x))
    many = cc.vmap(lambda x, g: cc.grid_sample(x[None], g[None])[0])(x, grid)
    close(many, np.array(cc.grid_sample(x, grid)))
    for bad in ((cc.ones((2, 3)), cc.ones((2, 2))), (x, cc.ones((1, 2, 2))), (x, cc.ones((2, 2, 3))), (cc.ones((2, 0, 5, 3)), grid)):
        with pytest.raises(ValueError, match="grid_sample"):
            cc.grid_sample(*bad)
    for mode in ("area", "nearest-exact"):
        with pytest.raises(ValueError, match="mode"):
            cc.grid_sample(x, grid, mode)
    with pytest.raises(ValueError, match="padding_mode"):
        cc.grid_sample(x, grid, padding_mode="x")


def test_windows():
    w = f32(4, 3, 2, 3)
    for kwargs in ({}, {"stride": 2}, {"padding": (1, 2)}, {"dilation": (1, 2)}, {"stride": (2, 1), "padding": 1, "dilation": (2, 1)}):
        x = f32(2, 6, 7, 3)
        rows = cc.unfold(cc.array(x), (3, 2), **kwargs)
        want = np.array(cc.conv2d(cc.array(x), cc.array(w), **kwargs))
        close((rows @ cc.array(w.reshape(4, -1).T)).reshape(want.shape), want, 1e-4)
        # The transpose of one is the other.
        _, (back,) = cc.vjp(lambda x: cc.unfold(x, (3, 2), **kwargs), [cc.array(x)], [rows])  # noqa: B023
        folded = cc.fold(rows, (6, 7), (3, 2), **kwargs)
        close(folded, np.array(back), 1e-5)
        _, (again,) = cc.vjp(lambda r: cc.fold(r, (6, 7), (3, 2), **kwargs), [rows], [cc.array(x)])  # noqa: B023
        close(again, np.array(cc.unfold(cc.array(x), (3, 2), **kwargs)), 1e-5)
    x = f32(1, 4, 6, 2)
    close(cc.fold(cc.unfold(cc.array(x), 2, stride=2), (4, 6), 2, stride=2), x, 0)
    assert cc.unfold(cc.ones((2, 5, 1)), 3).shape == (2, 3, 3)
    assert cc.unfold(cc.ones((2, 3, 4, 5, 2)), 2).shape == (2, 2 * 3 * 4, 16)
    assert cc.unfold(cc.zeros((0, 4, 4, 1)), 2).shape == (0, 9, 4)
    assert cc.fold(cc.ones((1, 9, 4), dtype=cc.bfloat16), (4, 4), 2).dtype == cc.bfloat16
    for bad in (lambda: cc.unfold(cc.ones((1, 2, 2, 1)), 3), lambda: cc.unfold(cc.ones((2, 2)), 1), lambda: cc.unfold(cc.ones((1, 4, 1)), 0), lambda: cc.fold(cc.ones((1, 2, 2)), (9,), 2), lambda: cc.fold(cc.ones((1, 8, 3)), (9,), 2), lambda: cc.unfold(cc.ones((1, 4, 1)), 2, padding=-1)):
        with pytest.raises(ValueError):
            bad()


def pooled(x, sizes, f):
    """Parts of an image folded one after the other."""
    out = np.empty((x.shape[0], *sizes, x.shape[-1]), np.float64)
    for at in itertools.product(*(range(n) for n in sizes)):
        part = tuple(slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(at, x.shape[1:], sizes))
        out[(slice(None), *at)] = f(x[(slice(None), *part)].astype(np.float64), axis=tuple(range(1, x.ndim - 1)))
    return out


@pytest.mark.parametrize("sizes, new", [((7,), (3,)), ((6,), (3,)), ((5, 7), (3, 4)), ((4, 6), (2, 5)), ((3, 2), (5, 7)), ((5, 4, 3), (2, 3, 2)), ((5, 5), (1, 1)), ((5, 5), (5, 5))])
def test_pools_to_a_size(sizes, new):
    x = f32(2, *sizes, 3)
    close(cc.adaptive_avg_pool(cc.array(x), new), pooled(x, new, np.mean))
    close(cc.adaptive_max_pool(cc.array(x), new), pooled(x, new, np.max), 0)
    whole = np.round(x * 10).astype(np.int32)
    close(cc.adaptive_max_pool(cc.array(whole), new), pooled(whole, new, np.max), 0)
    x[0, 0] = np.nan
    x[1, -1] = -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(np.array(cc.adaptive_avg_pool(cc.array(x), new)), pooled(x, new, np.mean), 1e-5, 1e-5)
        np.testing.assert_allclose(np.array(cc.adaptive_max_pool(cc.array(x), new)), pooled(x, new, np.max))


def test_derivatives_of_pools_to_a_size():
    x = f32(1, 5, 1)
    grad = np.array(cc.grad(lambda x: cc.adaptive_max_pool(x, 3).sum())(cc.array(x))).reshape(-1)
    want = np.zeros(5)
    for part in (slice(0, 2), slice(1, 4), slice(3, 5)):
        want[part.start + x[0, part, 0].argmax()] += 1
    np.testing.assert_allclose(grad, want)
    grad = np.array(cc.grad(lambda x: cc.adaptive_avg_pool(x, 3).sum())(cc.array(x))).reshape(-1)
    np.testing.assert_allclose(grad, [1 / 2, 1 / 2 + 1 / 3, 1 / 3, 1 / 3 + 1 / 2, 1 / 2], rtol=1e-6)
    for bad in (lambda: cc.adaptive_avg_pool(cc.array(x), 0), lambda: cc.adaptive_max_pool(cc.ones((2, 3)), 1), lambda: cc.adaptive_avg_pool(cc.array(x), (1, 2)), lambda: cc.adaptive_avg_pool(cc.zeros((1, 0, 1)), 2)):
        with pytest.raises(ValueError):
            bad()


def test_windows_whose_elements_are_apart():
    x = f32(2, 9, 11, 3)
    full = np.pad(x, [(0, 0), (2, 2), (1, 1), (0, 0)], constant_values=-np.inf)
    # Windows of 3 x 2 elements, 3 and 4 apart, reach over 7 x 5.
    windows = np.lib.stride_tricks.sliding_window_view(full, (7, 5), (1, 2))[:, ::2, ::1, :, ::3, ::4]
    layer = nn.MaxPool2d((3, 2), (2, 1), (2, 1), dilation=(3, 4))
    np.testing.assert_array_equal(np.array(layer(cc.array(x))), windows.max((-1, -2)))
    assert "dilation=(3, 4)" in repr(layer)
    first = nn.MaxPool2d((3, 2), (2, 1), (2, 1), dilation=(3, 4), data_format="channels_first")
    np.testing.assert_array_equal(np.array(first(cc.array(x.transpose(0, 3, 1, 2)))), windows.max((-1, -2)).transpose(0, 3, 1, 2))
    mean = nn.AvgPool2d((3, 2), (2, 1), (2, 1), dilation=(3, 4))(cc.array(x))
    close(mean, np.where(np.isinf(windows), 0, windows).mean((-1, -2)))
    # One element is the same however far apart elements are.
    np.testing.assert_array_equal(np.array(nn.MaxPool2d(1, dilation=2**62)(cc.array(x))), x)
    assert cc.max_pool_with_indices(cc.ones((1, 3, 1)), 1, dilation=2**62)[1].tolist() == [[[0], [1], [2]]]
    for bad in (lambda: nn.MaxPool2d(2, dilation=0), lambda: nn.AvgPool2d(2, dilation=(1, 1, 1)), lambda: nn.MaxPool2d(2, dilation=2**63 - 1)(cc.array(x)), lambda: nn.MaxPool1d(3, dilation=5)(cc.ones((1, 10, 1)))):
        with pytest.raises(ValueError, match="Pool|pool"):
            bad()


def test_pools_with_places():
    cases = [((6, 8), 2, None, 0, 1), ((7, 7), 3, 2, 1, 1), ((5,), 2, 1, 0, 1), ((4, 5, 6), 2, 2, 0, 1), ((5, 6), (2, 3), (1, 2), (1, 1), 1)]
    for sizes, window, stride, padding, dilation in [*cases, ((9, 8), 2, 2, 1, 3), ((9,), 3, 1, 1, 2)]:
        x = f32(2, *sizes, 3)
        if len(sizes) == 2:
            x[0, 1, 1, 0] = np.nan
        largest, places = cc.max_pool_with_indices(cc.array(x), window, stride, padding, dilation)
        want = np.array(cc._nn.max_pool(cc.array(x), *(np.atleast_1d(v).tolist() for v in (window, window if stride is None else stride, padding)), dilation=np.atleast_1d(dilation).tolist()))
        np.testing.assert_array_equal(np.array(largest), want)
        assert places.dtype == cc.int32 and places.shape == largest.shape
        flat = x.reshape(2, -1, 3)
        at = np.array(places).reshape(2, -1, 3)
        np.testing.assert_array_equal(np.take_along_axis(flat, at, 1).reshape(want.shape), want)
        back = np.array(cc.max_unpool(largest, places, sizes))
        want = np.zeros_like(flat)
        np.put_along_axis(want, at, np.array(largest).reshape(2, -1, 3), 1)
        np.testing.assert_array_equal(back, want.reshape(x.shape))
    largest, places = cc.max_pool_with_indices(cc.array([[[1], [1], [0], [2]]]), 2)
    assert places.tolist() == [[[0], [3]]]
    grad = cc.grad(lambda x: cc.max_unpool(x, cc.array([[[3], [0]]]), (5,))[0, 3, 0] * 2)(cc.ones((1, 2, 1)))
    assert grad.tolist() == [[[2], [0]]]
    for bad in (lambda: cc.max_unpool(largest, places[:, :1], (4,)), lambda: cc.max_unpool(largest, places.astype(cc.float32), (4,)), lambda: cc.max_unpool(largest, places, (4, 4)), lambda: cc.max_pool_with_indices(cc.ones((2, 3)), 2)):
        with pytest.raises(ValueError, match="max_"):
            bad()


def test_batches():
    x = cc.array(f32(3, 2, 4, 6, 4))
    for f in (
        lambda x: cc.pixel_shuffle(x, 2), lambda x: cc.interpolate(x, (3, 3), mode="cubic"), lambda x: cc.unfold(x, 2), lambda x: cc.adaptive_max_pool(x, (3, 4)),
        lambda x: cc.max_pool_with_indices(x, 2)[1], lambda x: cc.fold(cc.unfold(x, 2), (4, 6), 2),
    ):  # fmt: skip
        want = np.stack([np.array(f(one)) for one in x])
        np.testing.assert_allclose(np.array(cc.vmap(f)(x)), want, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(np.array(cc.compile(f)(x[0])), want[0], rtol=1e-6, atol=1e-6)


def test_sizes_that_no_memory_holds():
    image = cc.ones((2, 3, 3, 3, 2))
    for call in (
        lambda: cc.unfold(image, 1, stride=2, padding=2**40), lambda: cc.fold(cc.ones((1, 8, 1)), (2**40, 2**40), 1),
        lambda: cc.interpolate(image, 2**40), lambda: cc.interpolate(image, scale_factor=1e30), lambda: cc.adaptive_avg_pool(image, 2**40),
        lambda: cc.max_unpool(image, cc.zeros(image.shape, dtype=cc.int32), (2**40,) * 3),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            call()
