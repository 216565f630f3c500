"""Images with channels first: what the same functions make of channels last, with the axes moved."""

import numpy as np
import pytest

import cupola.core as mx
import cupola.nn as nn

SPATIAL = {1: (9,), 2: (9, 7), 3: (5, 4, 6)}


def draw(*shape, dtype="float32"):
    numbers = np.random.default_rng(0).normal(size=shape)
    return mx.array(numbers.astype(np.float32)).astype(getattr(mx, dtype))


def first(x):
    return mx.moveaxis(x, -1, 1)


def last(x):
    return mx.moveaxis(x, 1, -1)


def same(have, want):
    assert have.shape == want.shape and have.dtype == want.dtype
    np.testing.assert_array_equal(np.array(have.astype(mx.float32)), np.array(want.astype(mx.float32)))


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_convolutions(axes, dtype):
    x = draw(2, *SPATIAL[axes], 4, dtype=dtype)
    w = draw(6, *(3, 2, 3)[:axes], 2, dtype=dtype)
    how = dict(stride=2, padding=1, groups=2)
    function = getattr(mx, f"conv{axes}d")
    same(function(first(x), first(w), data_format="channels_first", **how), first(function(x, w, **how)))
    how = dict(padding=1, kernel_dilation=2, input_dilation=2, groups=2, flip=True)
    first_too = mx.conv_general(first(x), first(w), data_format="channels_first", **how)
    same(first_too, first(mx.conv_general(x, w, **how)))
    w = draw(6, *(3, 2, 3)[:axes], 4, dtype=dtype)
    function = getattr(mx, f"conv_transpose{axes}d")
    how = dict(stride=2, padding=1, output_padding=1)
    same(function(first(x), first(w), data_format="channels_first", **how), first(function(x, w, **how)))


FUNCTIONS = {
    "interpolate": lambda x, **f: mx.interpolate(x, scale_factor=1.5, mode="linear", **f),
    "interpolate to a size": lambda x, **f: mx.interpolate(x, (4, 11), mode="nearest", **f),
    "grid_sample": lambda x, **f: mx.grid_sample(x, mx.sin(draw(2, 3, 5, 2)), mode="bicubic", **f),
    "adaptive_avg_pool": lambda x, **f: mx.adaptive_avg_pool(x, (3, 2), **f),
    "adaptive_max_pool": lambda x, **f: mx.adaptive_max_pool(x, 4, **f),
    "group_norm": lambda x, **f: mx.fast.group_norm(x, 2, draw(4), draw(4), **f),
    "largest": lambda x, **f: mx.max_pool_with_indices(x, 3, 2, 1, **f)[0],
    "places": lambda x, **f: mx.max_pool_with_indices(x, (3, 2), **f)[1],
    "MaxPool2d": lambda x, **f: nn.MaxPool2d((3, 2), padding=1, **f)(x),
    "AvgPool2d": lambda x, **f: nn.AvgPool2d(2, stride=1, **f)(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_images(name):
    f, x = FUNCTIONS[name], draw(2, 9, 7, 4)
    same(f(first(x), data_format="channels_first"), first(f(x)))
    same(mx.compile(lambda x: f(x, data_format="channels_first"))(first(x)), first(f(x)))
    if name != "places":
        together = mx.grad(lambda x: f(x, data_format="channels_first").sum())(first(x))
        assert mx.allclose(together, first(mx.grad(lambda x: f(x).sum())(x)), atol=1e-5)


def test_max_unpool():
    x = draw(2, 8, 6, 3)
    largest, places = mx.max_pool_with_indices(first(x), 2, data_format="channels_first")
    have = mx.max_unpool(largest, places, (8, 6), data_format="channels_first")
    same(have, first(mx.max_unpool(*mx.max_pool_with_indices(x, 2), (8, 6))))


def test_windows_are_those_of_pytorch():
    """A window's elements are the channels of one place after another with channels last, those of a channel with
    channels first."""
    x = mx.arange(2 * 3 * 4).reshape(1, 2, 3, 4)
    windows = mx.unfold(x, (2, 3), data_format="channels_first")
    assert windows.shape == (1, 2 * 6, 2 * 2)
    assert windows[0, :, 0].tolist() == [0, 1, 2, 4, 5, 6, 12, 13, 14, 16, 17, 18]
    assert windows[0, :, 3].tolist() == [5, 6, 7, 9, 10, 11, 17, 18, 19, 21, 22, 23]
    whole = mx.fold(windows, (3, 4), (2, 3), data_format="channels_first")
    same(whole, first(mx.fold(mx.unfold(last(x), (2, 3)), (3, 4), (2, 3))))
    # The product with a flattened kernel is the convolution.
    x, w = draw(2, 3, 5, 6), draw(4, 3, 2, 3)
    have = w.reshape(4, -1) @ mx.unfold(x, (2, 3), data_format="channels_first")
    want = mx.conv2d(x, w, data_format="channels_first")
    assert mx.allclose(have.reshape(want.shape), want, atol=1e-4)
    for empty in (mx.zeros((0, 2, 3, 3)), mx.zeros((2, 0, 3, 3))):
        windows = mx.unfold(empty, 2, data_format="channels_first")
        assert windows.shape == (empty.shape[0], 4 * empty.shape[1], 4)


@pytest.mark.parametrize("name", ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"])
def test_layers(name):
    """Kernels are kept channels last, so that weights of one layer are those of the other."""
    axes = int(name[-2])
    layer = getattr(nn, name)(3, 5, 3, padding=1)
    other = getattr(nn, name)(3, 5, 3, padding=1, data_format="channels_first")
    other.update(layer.parameters())
    x = draw(2, *SPATIAL[axes], 3)
    same(other(first(x)), first(layer(x)))
    assert "channels_first" in repr(other) and "data_format" not in repr(layer)


def test_errors():
    x, w = mx.ones((1, 3, 8, 8)), mx.ones((4, 3, 3, 3))
    with pytest.raises(ValueError, match="'NCHW' is not channels_last or channels_first"):
        mx.conv2d(x, w, data_format="NCHW")
    with pytest.raises(ValueError, match="'data_format' must be channels_last or channels_first"):
        nn.Conv2d(3, 4, 3, data_format="NCHW")
    with pytest.raises(ValueError, match="moved last"):
        mx.conv2d(mx.ones((1, 2, 8, 8)), w, data_format="channels_first")
    with pytest.raises(ValueError, match="no spatial axes"):
        mx.interpolate(mx.ones((2, 3)), 4, data_format="channels_first")
    for rows in (mx.ones((1, 5, 4)), mx.ones((1, 4, 12)), mx.ones((12, 4))):
        with pytest.raises(ValueError, match="is not .N, C·6, windows"):
            mx.fold(rows, (3, 4), (2, 3), data_format="channels_first")
    with pytest.raises(ValueError, match="no spatial axes$"):
        mx.unfold(mx.ones(()), 2, data_format="channels_first")


def test_group_norm():
    """One group is a layer norm of all, a group a channel is an instance norm."""
    x = draw(2, 5, 6)
    whole = mx.fast.layer_norm(x.reshape(2, -1), None, None, 1e-5).reshape(x.shape)
    assert mx.allclose(mx.fast.group_norm(x, 1), whole, atol=1e-5)
    assert mx.allclose(mx.fast.group_norm(x, 6), nn.InstanceNorm(6)(x), atol=1e-5)
    assert mx.fast.group_norm(x.astype(mx.float16), 3).dtype == mx.float16
    with pytest.raises(ValueError, match="are not 4 groups"):
        mx.fast.group_norm(x, 4)
    with pytest.raises(ValueError, match="weight"):
        mx.fast.group_norm(x, 2, mx.ones(5))
    whole = mx.arange(8).reshape(2, 4)
    assert mx.array_equal(mx.fast.group_norm(whole, 2), mx.fast.group_norm(whole.astype(mx.float32), 2))
    assert mx.fast.group_norm(x.astype(mx.float16), 3, mx.ones(6)).dtype == mx.float16
