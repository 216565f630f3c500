"""Convolutions."""

from __future__ import annotations

import math
from typing import Any, Callable, ClassVar, Optional, Tuple, Union

import cupola.core as mx
from cupola.nn.layers.base import Module, checked_format

_Size = Union[int, Tuple[int, ...]]


def _per_axis(value: _Size, axes: int) -> Tuple[int, ...]:
    """One number for each spatial axis, from a number or a sequence."""
    return (value,) * axes if isinstance(value, int) else tuple(value)[:axes]


class Convolution(Module):
    """What convolutions have in common: kernels, a bias, and how kernels are laid.

    ``groups`` and ``output_padding`` are attributes of those that have them.
    """

    _spatial: ClassVar[int]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _Size,
        stride: _Size,
        padding: _Size,
        dilation: _Size,
        bias: bool,
        data_format: str,
        groups: Optional[int] = None,
        output_padding: Optional[_Size] = None,
    ) -> None:
        super().__init__()
        self._data_format = checked_format(self, data_format)
        if groups == 0:
            raise ZeroDivisionError("The number of groups must not be 0")
        if in_channels % (groups or 1) != 0:
            raise ValueError(
                f"The number of input channels ({in_channels}) must be divisible by the number of "
                f"groups ({groups})"
            )
        size = (*_per_axis(kernel_size, self._spatial), in_channels // (groups or 1))
        bound = math.sqrt(1 / math.prod(size))
        self.weight = mx.random.uniform(-bound, bound, (out_channels, *size))
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = self._kept(padding)
        self.stride = self._kept(stride)
        self.dilation = dilation
        if groups is not None:
            self.groups = groups
        if output_padding is not None:
            self.output_padding = self._kept(output_padding)

    def _kept(self, value: _Size) -> Any:
        """One number of one axis, and one for each of several."""
        return value if self._spatial == 1 else _per_axis(value, self._spatial)

    def _extra_repr(self) -> str:
        outputs, *size, inputs = self.weight.shape
        names = ("groups", "output_padding")
        own = {name: getattr(self, name) for name in names if hasattr(self, name)}
        settings = {
            "kernel_size": size[0] if self._spatial == 1 else tuple(size),
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            **own,
            "bias": "bias" in self,
        }
        if self._data_format != "channels_last":
            settings["data_format"] = self._data_format
        listed = ", ".join(f"{name}={value}" for name, value in settings.items())
        return f"{inputs * own.get('groups', 1)}, {outputs}, {listed}"

    def _convolved(self, function: Callable, x: mx.array, *how: Any) -> mx.array:
        """The function of ``x``, the kernels and ``how``, with the bias, in the layer's format."""
        if self._data_format == "channels_first":
            x = mx.moveaxis(x, 1, -1)
        y = function(x, self.weight, *how)
        if "bias" in self:
            y = y + mx._amp.operand("conv_general", self.bias)
        return y if self._data_format == "channels_last" else mx.moveaxis(y, -1, 1)


class Conv1d(Convolution):
    """Convolution of ``NLC`` input.

    ``weight`` is of shape ``[out_channels, kernel_size, in_channels / groups]`` and begins uniformly
    distributed; ``bias`` is of shape ``[out_channels]`` and begins at 0.

    Args:
        in_channels: The number of input channels.
        out_channels: The number of output channels.
        kernel_size: The length of the kernels.
        stride: Steps between outputs.
        padding: Zeros on either side of the input.
        dilation: Steps between elements of a kernel.
        groups: Into how many independent groups the channels are split.
        bias: Whether there is a bias.
        data_format: Where ``x`` and the result have their channels, ``"channels_last"`` or
            ``"channels_first"``. The kernels keep theirs.

    Example:
        >>> nn.Conv1d(3, 8, kernel_size=3)(mx.ones((1, 10, 3))).shape
        (1, 8, 8)
    """

    _spatial = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        data_format: str = "channels_last",
    ) -> None:
        shape = (in_channels, out_channels, kernel_size)
        super().__init__(*shape, stride, padding, dilation, bias, data_format, groups)

    def __call__(self, x: mx.array) -> mx.array:
        """Convolve ``x``."""
        how = (self.stride, self.padding, self.dilation, self.groups)
        return self._convolved(mx.conv1d, x, *how)


class Conv2d(Convolution):
    """Convolution of ``NHWC`` input.

    ``weight`` is of shape ``[out_channels, *kernel_size, in_channels / groups]`` and begins uniformly
    distributed; ``bias`` is of shape ``[out_channels]`` and begins at 0.

    Args:
        in_channels: The number of input channels.
        out_channels: The number of output channels.
        kernel_size: The size of the kernels, a number or one for each axis.
        stride: Steps between outputs, likewise.
        padding: Zeros on either side of the input, likewise.
        dilation: Steps between elements of a kernel, likewise.
        groups: Into how many independent groups the channels are split.
        bias: Whether there is a bias.
        data_format: Where ``x`` and the result have their channels, ``"channels_last"`` or
            ``"channels_first"``. The kernels keep theirs.

    Example:
        >>> nn.Conv2d(3, 8, kernel_size=3, padding=1)(mx.ones((1, 5, 5, 3))).shape
        (1, 5, 5, 8)
    """

    _spatial = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Union[int, tuple],
        stride: Union[int, tuple] = 1,
        padding: Union[int, tuple] = 0,
        dilation: Union[int, tuple] = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        data_format: str = "channels_last",
    ) -> None:
        shape = (in_channels, out_channels, kernel_size)
        super().__init__(*shape, stride, padding, dilation, bias, data_format, groups)

    def __call__(self, x: mx.array) -> mx.array:
        """Convolve ``x``."""
        how = (self.stride, self.padding, self.dilation, self.groups)
        return self._convolved(mx.conv2d, x, *how)


class Conv3d(Convolution):
    """Convolution of ``NDHWC`` input.

    ``weight`` is of shape ``[out_channels, *kernel_size, in_channels]`` and begins uniformly
    distributed; ``bias`` is of shape ``[out_channels]`` and begins at 0.

    Args:
        in_channels: The number of input channels.
        out_channels: The number of output channels.
        kernel_size: The size of the kernels, a number or one for each axis.
        stride: Steps between outputs, likewise.
        padding: Zeros on either side of the input, likewise.
        dilation: Steps between elements of a kernel, likewise.
        bias: Whether there is a bias.
        data_format: Where ``x`` and the result have their channels, ``"channels_last"`` or
            ``"channels_first"``. The kernels keep theirs.

    Example:
        >>> nn.Conv3d(3, 8, kernel_size=2)(mx.ones((1, 4, 4, 4, 3))).shape
        (1, 3, 3, 3, 8)
    """

    _spatial = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Union[int, tuple],
        stride: Union[int, tuple] = 1,
        padding: Union[int, tuple] = 0,
        dilation: Union[int, tuple] = 1,
        bias: bool = True,
        *,
        data_format: str = "channels_last",
    ) -> None:
        shape = (in_channels, out_channels, kernel_size)
        super().__init__(*shape, stride, padding, dilation, bias, data_format)

    def __call__(self, x: mx.array) -> mx.array:
        """Convolve ``x``."""
        return self._convolved(mx.conv3d, x, self.stride, self.padding, self.dilation)
