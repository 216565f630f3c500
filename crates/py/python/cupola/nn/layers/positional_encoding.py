"""Encodings of positions."""

from __future__ import annotations

import math
from typing import Any, Optional

import cupola.core as mx
from cupola.nn.layers.base import Module


class RoPE(Module):
    """Rotates pairs of features by angles that grow with the position.

    From Su et al., *RoFormer* (2021).

    Args:
        dims: How many features are rotated; what lies behind them stays as it is.
        traditional: Whether a pair is two neighbours; otherwise its members are half of ``dims``
            apart.
        base: The angle of pair ``i`` at a position is ``position · base^(-2i/dims)``.
        scale: What positions are multiplied by.

    Example:
        >>> nn.RoPE(8)(mx.ones((1, 2, 5, 8))).shape
        (1, 2, 5, 8)
    """

    def __init__(
        self, dims: int, traditional: bool = False, base: float = 10000, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.dims = dims
        self.traditional = traditional
        self.base = base
        self.scale = scale

    def _extra_repr(self) -> str:
        return f"{self.dims}, traditional={self.traditional}"

    def __call__(self, x: mx.array, offset: Any = 0) -> mx.array:
        """Rotate ``x``, whose last but one axis is the position, from ``offset`` on."""
        return mx.fast.rope(
            x,
            self.dims,
            traditional=self.traditional,
            base=self.base,
            scale=self.scale,
            offset=offset,
        )


class SinusoidalPositionalEncoding(Module):
    """Sines and cosines of positions at frequencies in geometric progression.

    From Vaswani et al., *Attention Is All You Need* (2017).

    Args:
        dims: The number of features; half of them are sines.
        min_freq: The lowest frequency.
        max_freq: The highest frequency.
        scale: What the result is multiplied by; ``√(2/dims)`` by default.
        cos_first: Whether cosines come before sines.
        full_turns: Whether frequencies are multiplied by 2π.

    Example:
        >>> nn.SinusoidalPositionalEncoding(8)(mx.arange(5)).shape
        (5, 8)
    """

    def __init__(
        self,
        dims: int,
        min_freq: float = 0.0001,
        max_freq: float = 1,
        scale: Optional[float] = None,
        cos_first: bool = False,
        full_turns: bool = False,
    ) -> None:
        super().__init__()
        if dims < 2 or dims % 2:
            raise ValueError(
                f"[SinusoidalPositionalEncoding] the number of features must be even, not {dims}"
            )
        falling = 1 - mx.arange(0, dims // 2) / (dims // 2 - 1)
        low, high = math.log(min_freq), math.log(max_freq)
        self._sigmas = mx.exp(falling * (high - low) + low)
        if full_turns:
            self._sigmas = self._sigmas * (2 * math.pi)
        self.scale = math.sqrt(2 / dims) if scale is None else scale
        self.cos_first = cos_first

    def __call__(self, x: mx.array) -> mx.array:
        """Encode the positions ``x`` along a new last axis."""
        angles = x[..., None] * self._sigmas
        waves = [mx.sin(angles), mx.cos(angles)]
        if self.cos_first:
            waves.reverse()
        y = mx.concatenate(waves, axis=-1)
        return y if self.scale == 1 else y * self.scale


class ALiBi(Module):
    """Lowers attention scores in proportion to the distance of query and key.

    From Press et al., *Train Short, Test Long* (2021).

    Example:
        >>> nn.ALiBi()(mx.zeros((1, 4, 5, 5))).shape
        (1, 4, 5, 5)
    """

    @staticmethod
    def create_alibi_matrix(
        q_sequence_length: int,
        k_sequence_length: int,
        num_heads: int,
        offset: int = 0,
        dtype: mx.Dtype = mx.float32,
    ) -> mx.array:
        """What is added to scores of shape ``[N, num_heads, queries, keys]``.

        Args:
            q_sequence_length: The position behind the last query.
            k_sequence_length: The number of keys.
            num_heads: The number of heads.
            offset: The position of the first query.
            dtype: The dtype of the result.
        """
        queries = mx.arange(offset, q_sequence_length)
        keys = mx.arange(0, k_sequence_length)
        distance = mx.abs(queries[:, None] - keys[None, :])[None, None]
        slope = ALiBi.create_alibi_slope(num_heads)
        return (-distance * slope).astype(dtype)

    @staticmethod
    def create_alibi_slope(num_heads: int, dtype: mx.Dtype = mx.float32) -> mx.array:
        """The slopes of the heads, of shape ``[heads, 1, 1]``.

        For a power of two they are ``2^(-8i/num_heads)``. Otherwise those of the power below come
        first, and then every second one of the power above.

        Args:
            num_heads: The number of heads.
            dtype: The dtype of the result.
        """
        below = 2 ** math.floor(math.log2(num_heads))
        exponents = [-8 * i / below for i in range(1, below + 1)]
        exponents += [-4 * i / below for i in range(1, 2 * (num_heads - below), 2)]
        slopes = mx.array([2.0**exponent for exponent in exponents], dtype=dtype)
        return slopes[:, None, None]

    def __call__(
        self, attention_scores: mx.array, offset: int = 0, mask: Optional[mx.array] = None
    ) -> mx.array:
        """Add the matrix, and ``mask`` if there is one, to the scores."""
        alibi = ALiBi.create_alibi_matrix(
            attention_scores.shape[-2] + offset,
            attention_scores.shape[-1],
            attention_scores.shape[1],
            offset,
            attention_scores.dtype,
        )
        if mask is not None:
            alibi = alibi + mask
        return attention_scores + alibi
