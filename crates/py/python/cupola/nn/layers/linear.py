"""Linear maps."""

from __future__ import annotations

import math
from typing import Any, Optional

import cupola.core as mx
from cupola.nn.layers.base import Module


class Identity(Module):
    """Returns its input.

    Args:
        args: Anything.
        kwargs: Anything.

    Example:
        >>> nn.Identity()(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __call__(self, x: mx.array) -> mx.array:
        """Return ``x``."""
        return x


class Linear(Module):
    """``x · Wᵀ + b``.

    ``weight`` is of shape ``[output_dims, input_dims]``, ``bias`` of shape ``[output_dims]``; both
    begin uniformly distributed within ``±1/√input_dims``.

    Args:
        input_dims: The number of input features.
        output_dims: The number of output features.
        bias: Whether there is a bias.

    Example:
        >>> layer = nn.Linear(4, 2)
        >>> layer(mx.ones((3, 4))).shape
        (3, 2)
        >>> layer
        Linear(input_dims=4, output_dims=2, bias=True)
    """

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True) -> None:
        super().__init__()
        bound = math.sqrt(1.0 / input_dims)
        self.weight = mx.random.uniform(-bound, bound, (output_dims, input_dims))
        if bias:
            self.bias = mx.random.uniform(-bound, bound, (output_dims,))

    def _extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        return f"input_dims={inputs}, output_dims={outputs}, bias={'bias' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        """Map the last axis of ``x``."""
        if "bias" in self:
            return mx.addmm(self.bias, x, self.weight.T)
        return x @ self.weight.T

    def to_quantized(
        self,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> Module:
        """The same layer with a quantised weight.

        Args:
            group_size: How many neighbours share a scale.
            bits: Bits of an element.
            mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.
            quantize_input: Whether it quantises its input, too, in modes ``mxfp8`` and ``nvfp4``.
        """
        from cupola.nn.layers.quantized import QQLinear, QuantizedLinear

        if not quantize_input:
            return QuantizedLinear.from_linear(self, group_size, bits, mode)
        if mode not in ("mxfp8", "nvfp4"):
            raise ValueError(f"inputs are quantised in modes 'nvfp4' and 'mxfp8', not '{mode}'")
        return QQLinear.from_linear(self, group_size, bits, mode)


class Bilinear(Module):
    """``x₂ᵀ · Wᵢ · x₁ + bᵢ`` for each output feature ``i``.

    ``weight`` is of shape ``[output_dims, input2_dims, input1_dims]``, ``bias`` of shape
    ``[output_dims]``; both begin uniformly distributed within ``±1/√input1_dims``.

    Args:
        input1_dims: The number of features of the first input.
        input2_dims: The number of features of the second input.
        output_dims: The number of output features.
        bias: Whether there is a bias.

    Example:
        >>> nn.Bilinear(4, 3, 2)(mx.ones((5, 4)), mx.ones((5, 3))).shape
        (5, 2)
    """

    def __init__(
        self, input1_dims: int, input2_dims: int, output_dims: int, bias: bool = True
    ) -> None:
        super().__init__()
        bound = math.sqrt(1.0 / input1_dims)
        self.weight = mx.random.uniform(-bound, bound, (output_dims, input2_dims, input1_dims))
        if bias:
            self.bias = mx.random.uniform(-bound, bound, (output_dims,))

    def _extra_repr(self) -> str:
        outputs, inputs2, inputs1 = self.weight.shape
        return (
            f"input1_dims={inputs1}, input2_dims={inputs2}, output_dims={outputs}, "
            f"bias={'bias' in self}"
        )

    def __call__(self, x1: mx.array, x2: mx.array) -> mx.array:
        """Map the last axes of ``x1`` and ``x2``, whose other axes agree."""
        outputs, inputs2, inputs1 = self.weight.shape
        batch = x1.shape[:-1]
        x1 = x1.reshape(-1, inputs1)
        x2 = x2.reshape(-1, 1, inputs2)
        weight = self.weight.reshape(outputs * inputs2, inputs1)
        y = (x1 @ weight.T).reshape(-1, outputs, inputs2).swapaxes(-2, -1)
        y = (x2 @ y).reshape(*batch, outputs)
        return y + mx._amp.operand("matmul", self.bias) if "bias" in self else y
