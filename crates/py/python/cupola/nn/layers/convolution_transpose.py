"""Transposed convolutions, channels last."""

from __future__ import annotations

from typing import Union

import cupola.core as mx
from cupola.nn.layers.base import Module
from cupola.nn.layers.convolution import kernels, per_axis


class ConvTranspose1d(Module):
    """Transposed convolution of ``NLC`` input.

    ``weight`` is of shape ``[out_channels, kernel_size, in_channels]`` and begins uniformly
    distributed; ``bias`` is of shape ``[out_channels]`` and begins at 0.

    Args:
        in_channels: The number of input channels.
        out_channels: The number of output channels.
        kernel_size: The length of the kernels.
        stride: Steps between inputs in the output.
        padding: How much is cut from either side of the output.
        dilation: Steps between elements of a kernel.
        output_padding: How much longer the output is on one side.
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
        output_padding: int = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = kernels(out_channels, (kernel_size,), in_channels)
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = padding
        self.stride = stride
        self.dilation = dilation
        self.output_padding = output_padding

    def _extra_repr(self) -> str:
        return (
            f"{self.weight.shape[-1]}, {self.weight.shape[0]}, "
            f"kernel_size={self.weight.shape[1]}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, "
            f"output_padding={self.output_padding}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Convolve ``x``, transposed."""
        y = mx.conv_transpose1d(
            x, self.weight, self.stride, self.padding, self.dilation, self.output_padding
        )
        return y + self.bias if "bias" in self else y


class ConvTranspose2d(Module):
    """Transposed convolution of ``NHWC`` input.

    ``weight`` is of shape ``[out_channels, *kernel_size, in_channels]`` and begins uniformly
    distributed; ``bias`` is of shape ``[out_channels]`` and begins at 0.

    Args:
        in_channels: The number of input channels.
        out_channels: The number of output channels.
        kernel_size: The size of the kernels, a number or one for each axis.
        stride: Steps between inputs in the output, likewise.
        padding: How much is cut from either side of the output, likewise.
        dilation: Steps between elements of a kernel, likewise.
        output_padding: How much longer the output is on one side, likewise.
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
        output_padding: Union[int, tuple] = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = kernels(out_channels, per_axis(kernel_size, 2), in_channels)
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = per_axis(padding, 2)
        self.stride = per_axis(stride, 2)
        self.dilation = dilation
        self.output_padding = per_axis(output_padding, 2)

    def _extra_repr(self) -> str:
        return (
            f"{self.weight.shape[-1]}, {self.weight.shape[0]}, "
            f"kernel_size={self.weight.shape[1:-1]}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, "
            f"output_padding={self.output_padding}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Convolve ``x``, transposed."""
        y = mx.conv_transpose2d(
            x, self.weight, self.stride, self.padding, self.dilation, self.output_padding
        )
        return y + self.bias if "bias" in self else y


class ConvTranspose3d(Module):
    """Transposed convolution of ``NDHWC`` input.

    ``weight`` is of shape ``[out_channels, *kernel_size, in_channels]`` and begins uniformly
    distributed; ``bias`` is of shape ``[out_channels]`` and begins at 0.

    Args:
        in_channels: The number of input channels.
        out_channels: The number of output channels.
        kernel_size: The size of the kernels, a number or one for each axis.
        stride: Steps between inputs in the output, likewise.
        padding: How much is cut from either side of the output, likewise.
        dilation: Steps between elements of a kernel, likewise.
        output_padding: How much longer the output is on one side, likewise.
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
        output_padding: Union[int, tuple] = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = kernels(out_channels, per_axis(kernel_size, 3), in_channels)
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = per_axis(padding, 3)
        self.stride = per_axis(stride, 3)
        self.dilation = dilation
        self.output_padding = per_axis(output_padding, 3)

    def _extra_repr(self) -> str:
        return (
            f"{self.weight.shape[-1]}, {self.weight.shape[0]}, "
            f"kernel_size={self.weight.shape[1:-1]}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, "
            f"output_padding={self.output_padding}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Convolve ``x``, transposed."""
        y = mx.conv_transpose3d(
            x, self.weight, self.stride, self.padding, self.dilation, self.output_padding
        )
        return y + self.bias if "bias" in self else y
