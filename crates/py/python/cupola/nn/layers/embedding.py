"""Vectors looked up by index."""

from __future__ import annotations

import math
from typing import Any, Optional

import cupola.core as mx
from cupola.nn.layers.base import Module


class Embedding(Module):
    """A table of vectors, looked up by integers.

    ``weight`` is of shape ``[num_embeddings, dims]`` and begins normally distributed with variance
    ``1/dims``.

    Args:
        num_embeddings: The number of vectors.
        dims: Their length.

    Example:
        >>> nn.Embedding(10, 4)(mx.array([1, 3])).shape
        (2, 4)
    """

    def __init__(self, num_embeddings: int, dims: int) -> None:
        super().__init__()
        self.weight = mx.random.normal((num_embeddings, dims), scale=math.sqrt(1 / dims))

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"

    def __call__(self, x: Any) -> mx.array:
        """The vectors of the integers in ``x``."""
        return mx._amp.result("embedding", self.weight[x])

    def as_linear(self, x: mx.array) -> mx.array:
        """The products of ``x`` with all vectors, as for an output layer with tied weights."""
        return x @ self.weight.T

    def to_quantized(
        self,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> Module:
        """The same layer with quantised vectors.

        Args:
            group_size: How many neighbours share a scale.
            bits: Bits of an element.
            mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.
            quantize_input: Has to be false: the input is of integers.
        """
        from cupola.nn.layers.quantized import QuantizedEmbedding

        if quantize_input:
            raise ValueError("the input of an embedding is not quantised")
        return QuantizedEmbedding.from_embedding(self, group_size, bits, mode)
