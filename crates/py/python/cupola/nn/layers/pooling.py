"""Pooling over windows of the spatial axes."""

from __future__ import annotations

from typing import Callable, ClassVar, Optional, Tuple, Union

import cupola.core as mx
from cupola.nn.layers.base import Module, checked_format

_Size = Union[int, Tuple[int, ...]]


class _Pool(Module):
    """What the pooling modules have in common."""

    _spatial: ClassVar[int]
    _pool: ClassVar[Callable]

    def __init__(
        self,
        kernel_size: _Size,
        stride: Optional[_Size] = None,
        padding: Optional[_Size] = 0,
        *,
        dilation: _Size = 1,
        data_format: str = "channels_last",
    ) -> None:
        super().__init__()
        self._data_format = checked_format(self, data_format)
        self._kernel_size = self._sizes("kernel_size", kernel_size)
        self._stride = self._kernel_size if stride is None else self._sizes("stride", stride)
        self._padding = self._sizes("padding", padding)
        self._dilation = self._sizes("dilation", dilation)
        at_least_one = {"kernel_size": self._kernel_size, "stride": self._stride, "dilation": self._dilation}
        for name, sizes in at_least_one.items():
            if min(sizes) < 1:
                raise ValueError(f"[{type(self).__name__}] '{name}' must be positive, not {sizes}")
        if min(self._padding) < 0:
            raise ValueError(f"[{type(self).__name__}] 'padding' must not be negative, not {self._padding}")

    def _sizes(self, name: str, value: Optional[_Size]) -> Tuple[int, ...]:
        """The argument as one number for each spatial axis."""
        axes = self._spatial
        if isinstance(value, int):
            return (value,) * axes
        if isinstance(value, (list, tuple)) and len(value) == axes:
            if all(isinstance(v, int) for v in value):
                return tuple(value)
        raise ValueError(
            f"[{type(self).__name__}] '{name}' must be an integer or a tuple containing {axes} "
            f"integer{'s' if axes > 1 else ''}"
        )

    def _extra_repr(self) -> str:
        text = f"kernel_size={self._kernel_size}, stride={self._stride}, padding={self._padding}"
        if max(self._dilation) > 1:
            text += f", dilation={self._dilation}"
        if self._data_format != "channels_last":
            text += f", data_format={self._data_format}"
        return text

    def __call__(self, x: mx.array) -> mx.array:
        """Pool over the spatial axes."""
        if x.ndim != self._spatial + 2:
            raise ValueError(
                f"[{type(self).__name__}] the input must have {self._spatial + 2} dimensions, "
                f"those of batch and channels and the spatial ones, but its shape is {x.shape}"
            )
        return self._pool(x, self._kernel_size, self._stride, self._padding, self._data_format, self._dilation)


class MaxPool1d(_Pool):
    """The largest element of each window of ``NLC`` input.

    Args:
        kernel_size: The size of the windows.
        stride: Steps between windows; ``kernel_size`` by default.
        padding: Padding that is never the largest, on either side of the input.
        dilation: Steps between the elements of a window; 1 by default.
        data_format: Where the channels are, ``"channels_last"`` or ``"channels_first"``.

    Raises:
        ValueError: If one of them, or the input, has another number of axes.

    Example:
        >>> nn.MaxPool1d(2)(mx.array([1, 5, 2, 3]).reshape(1, 4, 1)).flatten()
        array([5, 3], dtype=int32)
    """

    _spatial = 1
    _pool = staticmethod(mx._nn.max_pool)


class MaxPool2d(_Pool):
    """The largest element of each window of ``NHWC`` input.

    Args:
        kernel_size: The size of the windows, a number or one for each axis.
        stride: Steps between windows, likewise; ``kernel_size`` by default.
        padding: Padding that is never the largest, on either side of the input, likewise.
        dilation: Steps between the elements of a window; 1 by default.
        data_format: Where the channels are, ``"channels_last"`` or ``"channels_first"``.

    Raises:
        ValueError: If one of them, or the input, has another number of axes.

    Example:
        >>> nn.MaxPool2d(2)(mx.ones((1, 4, 6, 3))).shape
        (1, 2, 3, 3)
    """

    _spatial = 2
    _pool = staticmethod(mx._nn.max_pool)


class MaxPool3d(_Pool):
    """The largest element of each window of ``NDHWC`` input.

    Args:
        kernel_size: The size of the windows, a number or one for each axis.
        stride: Steps between windows, likewise; ``kernel_size`` by default.
        padding: Padding that is never the largest, on either side of the input, likewise.
        dilation: Steps between the elements of a window; 1 by default.
        data_format: Where the channels are, ``"channels_last"`` or ``"channels_first"``.

    Raises:
        ValueError: If one of them, or the input, has another number of axes.

    Example:
        >>> nn.MaxPool3d(2, stride=1)(mx.ones((1, 3, 3, 3, 2))).shape
        (1, 2, 2, 2, 2)
    """

    _spatial = 3
    _pool = staticmethod(mx._nn.max_pool)


class AvgPool1d(_Pool):
    """The mean of each window of ``NLC`` input.

    Args:
        kernel_size: The size of the windows.
        stride: Steps between windows; ``kernel_size`` by default.
        padding: Zeros, which count, on either side of the input.
        dilation: Steps between the elements of a window; 1 by default.
        data_format: Where the channels are, ``"channels_last"`` or ``"channels_first"``.

    Raises:
        ValueError: If one of them, or the input, has another number of axes.

    Example:
        >>> nn.AvgPool1d(2)(mx.array([1.0, 5.0, 2.0, 3.0]).reshape(1, 4, 1)).flatten()
        array([3, 2.5], dtype=float32)
    """

    _spatial = 1
    _pool = staticmethod(mx._nn.avg_pool)


class AvgPool2d(_Pool):
    """The mean of each window of ``NHWC`` input.

    Args:
        kernel_size: The size of the windows, a number or one for each axis.
        stride: Steps between windows, likewise; ``kernel_size`` by default.
        padding: Zeros, which count, on either side of the input, likewise.
        dilation: Steps between the elements of a window; 1 by default.
        data_format: Where the channels are, ``"channels_last"`` or ``"channels_first"``.

    Raises:
        ValueError: If one of them, or the input, has another number of axes.

    Example:
        >>> nn.AvgPool2d(2)(mx.ones((1, 4, 6, 3))).shape
        (1, 2, 3, 3)
    """

    _spatial = 2
    _pool = staticmethod(mx._nn.avg_pool)


class AvgPool3d(_Pool):
    """The mean of each window of ``NDHWC`` input.

    Args:
        kernel_size: The size of the windows, a number or one for each axis.
        stride: Steps between windows, likewise; ``kernel_size`` by default.
        padding: Zeros, which count, on either side of the input, likewise.
        dilation: Steps between the elements of a window; 1 by default.
        data_format: Where the channels are, ``"channels_last"`` or ``"channels_first"``.

    Raises:
        ValueError: If one of them, or the input, has another number of axes.

    Example:
        >>> nn.AvgPool3d(2, stride=1)(mx.ones((1, 3, 3, 3, 2))).shape
        (1, 2, 2, 2, 2)
    """

    _spatial = 3
    _pool = staticmethod(mx._nn.avg_pool)
