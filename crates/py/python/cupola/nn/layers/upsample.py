"""Resampling of the spatial axes, channels last.

Axes are resampled one after another. Along an axis of ``N`` elements and scale ``s`` there are
``M = ⌊s · N⌋`` outputs, each a weighted sum of the inputs around its position.
"""

from __future__ import annotations

import math
from typing import Callable, Iterator, Literal, Tuple, Union

import cupola.core as mx
from cupola.nn.layers.base import Module

# Pairs of the inputs' indices and their weights, for all outputs of an axis.
_Taps = Iterator[Tuple[mx.array, mx.array]]


def _triangle(distance: mx.array) -> mx.array:
    return mx.maximum(1 - distance, 0)


def _cubic(a: float) -> Callable[[mx.array], mx.array]:
    """The kernel of Keys, *Cubic Convolution Interpolation* (1981), with its free parameter."""

    def kernel(d: mx.array) -> mx.array:
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = a * (((d - 5) * d + 8) * d - 4)
        return mx.where(d <= 1, near, mx.where(d < 2, far, 0.0))

    return kernel


def _positions(count: int, scale: float, align_corners: bool) -> mx.array:
    """Where the outputs lie between the inputs: centred, or from the first to the last."""
    outputs = int(scale * count)
    indices = mx.arange(outputs, dtype=mx.float32)
    if align_corners:
        return indices * ((count - 1) / max(outputs - 1, 1))
    step = 1 / scale if scale else 0.0
    return indices * step - ((outputs - 1) * step - (count - 1)) / 2


def _nearest(count: int, scale: float) -> mx.array:
    """The index of the input nearest to each output."""
    outputs = int(scale * count)
    if outputs < count:
        return mx.arange(outputs) * count // max(outputs, 1)
    indices = mx.arange(outputs, dtype=mx.float32)
    return mx.round((indices + 0.5) * (count / max(outputs, 1)) - 0.5).astype(mx.int32)


def _taps(positions: mx.array, count: int, kernel: Callable, radius: int) -> _Taps:
    """Weights by a kernel; beyond the ends the last element goes on."""
    first = mx.floor(positions) - (radius - 1)
    for i in range(2 * radius):
        index = first + i
        yield mx.clip(index, 0, count - 1).astype(mx.int32), kernel(mx.abs(positions - index))


def _smooth_taps(
    positions: mx.array, count: int, scale: float, kernel: Callable, radius: int
) -> _Taps:
    """Weights by a kernel as wide as an output; beyond the ends there is nothing."""
    stretch = max(1.0, 1 / scale) if scale else 1.0
    first = mx.ceil(positions - radius * stretch)
    indices = [first + i for i in range(math.ceil(2 * radius * stretch) + 1)]
    weights = [
        mx.where((index >= 0) & (index < count), kernel(mx.abs(positions - index) / stretch), 0.0)
        for index in indices
    ]
    total = sum(weights[1:], weights[0])
    for index, weight in zip(indices, weights):
        yield mx.clip(index, 0, count - 1).astype(mx.int32), weight / total


def _resample(x: mx.array, axis: int, taps: _Taps) -> mx.array:
    shape = (-1,) + (1,) * (x.ndim - 1 - axis)
    parts = [mx.take(x, index, axis=axis) * weight.reshape(shape) for index, weight in taps]
    return sum(parts[1:], parts[0])


def _check(align_corners: bool, antialias: bool) -> None:
    if align_corners and antialias:
        raise ValueError(
            "[Upsample] antialias=True with align_corners=True is not supported. "
            "Use align_corners=False for antialiased interpolation."
        )


def upsample_nearest(x: mx.array, scale_factor: Tuple[float, ...]) -> mx.array:
    """Resample by repeating or dropping elements."""
    if min(scale_factor, default=0) < 0:
        raise ValueError(f"[Upsample] The scales {scale_factor} must not be negative")
    for axis, scale in enumerate(scale_factor, start=1):
        if scale != 1:
            x = mx.take(x, _nearest(x.shape[axis], scale), axis=axis)
    return x


def _interpolate(
    x: mx.array,
    scale_factor: Tuple[float, ...],
    align_corners: bool,
    antialias: bool,
    kernel: Callable,
    radius: int,
) -> mx.array:
    _check(align_corners, antialias)
    for axis, scale in enumerate(scale_factor, start=1):
        count = x.shape[axis]
        positions = _positions(count, scale, align_corners)
        if antialias:
            taps = _smooth_taps(positions, count, scale, kernel, radius)
        else:
            taps = _taps(positions, count, kernel, radius)
        x = _resample(x, axis, taps)
    return x


def upsample_linear(
    x: mx.array,
    scale_factor: Tuple[float, ...],
    align_corners: bool = False,
    antialias: bool = False,
) -> mx.array:
    """Resample by linear interpolation."""
    return _interpolate(x, scale_factor, align_corners, antialias, _triangle, 1)


def upsample_cubic(
    x: mx.array,
    scale_factor: Tuple[float, ...],
    align_corners: bool = False,
    antialias: bool = False,
) -> mx.array:
    """Resample by cubic interpolation."""
    # -0.75 is OpenCV's parameter; with antialiasing it is Pillow's -0.5, as in PyTorch.
    kernel = _cubic(-0.5 if antialias else -0.75)
    return _interpolate(x, scale_factor, align_corners, antialias, kernel, 2)


class Upsample(Module):
    """Resamples the axes between the first and the last.

    Args:
        scale_factor: What sizes are multiplied by, a number or one for each spatial axis.
        mode: ``"nearest"``, ``"linear"`` or ``"cubic"``.
        align_corners: Whether the first and the last output lie on the first and the last input;
            otherwise outputs are centred.
        antialias: Whether kernels widen where the scale is below 1.

    Raises:
        ValueError: If the mode is unknown, ``antialias`` is combined with ``"nearest"`` or with
            ``align_corners``, or the input does not have as many spatial axes as there are scales.

    Example:
        >>> nn.Upsample(2)(mx.ones((1, 3, 3, 2))).shape
        (1, 6, 6, 2)
    """

    def __init__(
        self,
        scale_factor: Union[float, Tuple],
        mode: Literal["nearest", "linear", "cubic"] = "nearest",
        align_corners: bool = False,
        antialias: bool = False,
    ) -> None:
        super().__init__()
        if mode not in ("nearest", "linear", "cubic"):
            raise ValueError(f"[Upsample] Got unsupported upsampling algorithm: {mode}")
        if antialias and mode == "nearest":
            raise ValueError(
                "[Upsample] Antialiasing is not supported for nearest neighbor upsampling"
            )
        _check(align_corners, antialias)
        if isinstance(scale_factor, (list, tuple)):
            self.scale_factor: Union[float, Tuple] = tuple(float(s) for s in scale_factor)
        else:
            self.scale_factor = float(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.antialias = antialias

    def _extra_repr(self) -> str:
        text = (
            f"scale_factor={self.scale_factor}, mode={self.mode!r}, "
            f"align_corners={self.align_corners}"
        )
        return f"{text}, antialias=True" if self.antialias else text

    def __call__(self, x: mx.array) -> mx.array:
        """Resample ``x`` of shape ``[N, ..., C]``."""
        spatial = x.ndim - 2
        if spatial <= 0:
            raise ValueError(
                "[Upsample] The input should have at least 1 spatial dimension which means it "
                f"should be at least 3D but {x.ndim}D was provided"
            )
        scale = self.scale_factor
        if not isinstance(scale, tuple):
            scale = (scale,) * spatial
        elif len(scale) != spatial:
            raise ValueError(
                "[Upsample] One scale per spatial dimension is required but "
                f"scale_factor={scale} and the number of spatial dimensions were {spatial}"
            )
        if self.mode == "nearest":
            return upsample_nearest(x, scale)
        interpolate = upsample_linear if self.mode == "linear" else upsample_cubic
        return interpolate(x, scale, self.align_corners, self.antialias)
