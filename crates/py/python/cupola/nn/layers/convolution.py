"""Convolutions, channels last."""

from __future__ import annotations

import math
from typing import Tuple, Union

import cupola.core as mx
from cupola.nn.layers.base import Module


def per_axis(value: Union[int, Tuple[int, ...]], axes: int) -> Tuple[int, ...]:
    """One number for each spatial axis, from a number or a sequence."""
    return (value,) * axes if isinstance(value, int) else tuple(value)[:axes]


def kernels(out_channels: int, size: Tuple[int, ...], in_channels: int) -> mx.array:
    """Initial kernels, uniformly distributed within ``±1/√(inputs of a kernel)``."""
    bound = math.sqrt(1 / (in_channels * math.prod(size)))
    return mx.random.uniform(low=-bound, high=bound, shape=(out_channels, *size, in_channels))


def _grouped(in_channels: int, groups: int) -> int:
    """The input channels of each group."""
    if in_channels % groups != 0:
        raise ValueError(
            f"The number of input channels ({in_channels}) must be divisible by the number of "
            f"groups ({groups})"
        )
    return in_channels // groups


class Conv1d(Module):
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
    """

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
    ) -> None:
        super().__init__()
        self.weight = kernels(out_channels, (kernel_size,), _grouped(in_channels, groups))
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = padding
        self.dilation = dilation
        self.stride = stride
        self.groups = groups

    def _extra_repr(self) -> str:
        return (
            f"{self.weight.shape[-1] * self.groups}, {self.weight.shape[0]}, "
            f"kernel_size={self.weight.shape[1]}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, "
            f"groups={self.groups}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Convolve ``x``."""
        y = mx.conv1d(x, self.weight, self.stride, self.padding, self.dilation, self.groups)
        return y + self.bias if "bias" in self else y


class Conv2d(Module):
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
    """

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
    ) -> None:
        super().__init__()
        size = per_axis(kernel_size, 2)
        self.weight = kernels(out_channels, size, _grouped(in_channels, groups))
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = per_axis(padding, 2)
        self.stride = per_axis(stride, 2)
        self.dilation = dilation
        self.groups = groups

    def _extra_repr(self) -> str:
        return (
            f"{self.weight.shape[-1] * self.groups}, {self.weight.shape[0]}, "
            f"kernel_size={self.weight.shape[1:-1]}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, "
            f"groups={self.groups}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Convolve ``x``."""
        y = mx.conv2d(x, self.weight, self.stride, self.padding, self.dilation, self.groups)
        return y + self.bias if "bias" in self else y


class Conv3d(Module):
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
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Union[int, tuple],
        stride: Union[int, tuple] = 1,
        padding: Union[int, tuple] = 0,
        dilation: Union[int, tuple] = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = kernels(out_channels, per_axis(kernel_size, 3), in_channels)
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = per_axis(padding, 3)
        self.stride = per_axis(stride, 3)
        self.dilation = dilation

    def _extra_repr(self) -> str:
        return (
            f"{self.weight.shape[-1]}, {self.weight.shape[0]}, "
            f"kernel_size={self.weight.shape[1:-1]}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Convolve ``x``."""
        y = mx.conv3d(x, self.weight, self.stride, self.padding, self.dilation)
        return y + self.bias if "bias" in self else y
