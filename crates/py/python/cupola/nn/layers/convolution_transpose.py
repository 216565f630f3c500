"""Transposed convolutions."""

from __future__ import annotations

from typing import ClassVar, Union

import cupola.core as mx
from cupola.nn.layers.convolution import Convolution


class _Transposed(Convolution):
    """What transposed convolutions have in common: everything but their number of axes."""

    _function: ClassVar[str]

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
        *,
        data_format: str = "channels_last",
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            bias,
            data_format,
            output_padding=output_padding,
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Convolve ``x``, transposed."""
        how = (self.stride, self.padding, self.dilation, self.output_padding)
        return self._convolved(getattr(mx, self._function), x, *how)


class ConvTranspose1d(_Transposed):
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
        data_format: Where ``x`` and the result have their channels, ``"channels_last"`` or
            ``"channels_first"``. The kernels keep theirs.

    Example:
        >>> nn.ConvTranspose1d(3, 8, 3)(mx.ones((1, 10, 3))).shape
        (1, 12, 8)
    """

    _spatial = 1
    _function = "conv_transpose1d"


class ConvTranspose2d(_Transposed):
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
        data_format: Where ``x`` and the result have their channels, ``"channels_last"`` or
            ``"channels_first"``. The kernels keep theirs.

    Example:
        >>> nn.ConvTranspose2d(3, 8, 2, stride=2)(mx.ones((1, 5, 5, 3))).shape
        (1, 10, 10, 8)
    """

    _spatial = 2
    _function = "conv_transpose2d"


class ConvTranspose3d(_Transposed):
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
        data_format: Where ``x`` and the result have their channels, ``"channels_last"`` or
            ``"channels_first"``. The kernels keep theirs.

    Example:
        >>> nn.ConvTranspose3d(3, 8, 2)(mx.ones((1, 4, 4, 4, 3))).shape
        (1, 5, 5, 5, 8)
    """

    _spatial = 3
    _function = "conv_transpose3d"
