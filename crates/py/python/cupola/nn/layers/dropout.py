"""Layers that zero a part of their input while a model is trained."""

from __future__ import annotations

from typing import ClassVar, Optional, Tuple

import cupola.core as mx
from cupola.nn.layers.base import Module


class Dropout(Module):
    """Zeroes each element with probability ``p`` in training and divides the others by ``1 - p``.

    Args:
        p: The probability.

    Raises:
        ValueError: If ``p`` is not in [0, 1).

    Example:
        >>> layer = nn.Dropout(0.5)
        >>> layer.eval()(mx.ones(3))
        array([1, 1, 1], dtype=float32)
    """

    # How many spatial axes a channel has; elements are dropped one by one where it is None.
    _spatial: ClassVar[Optional[int]] = None

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if p < 0 or p >= 1:
            raise ValueError(f"The dropout probability {p} is not in [0, 1)")
        self._p_1 = 1 - p

    def _extra_repr(self) -> str:
        return f"p={1 - self._p_1}"

    def _mask_shape(self, x: mx.array) -> Tuple[int, ...]:
        spatial = self._spatial
        if spatial is None:
            return x.shape
        if x.ndim not in (spatial + 1, spatial + 2):
            raise ValueError(
                f"Received input with {x.ndim} dimensions. "
                f"Expected {spatial + 1} or {spatial + 2} dimensions."
            )
        return x.shape[: -spatial - 1] + (1,) * spatial + x.shape[-1:]

    def __call__(self, x: mx.array) -> mx.array:
        """Drop in training, and return ``x`` otherwise."""
        shape = self._mask_shape(x)
        if self._p_1 == 1 or not self.training:
            return x
        return (1 / self._p_1) * (mx.random.bernoulli(self._p_1, shape) * x)


class Dropout2d(Dropout):
    """Zeroes whole channels of ``NHWC`` or ``HWC`` input in training, each with probability ``p``.

    The others are divided by ``1 - p``. From Tompson et al., *Efficient Object Localization Using
    Convolutional Networks* (2015).

    Args:
        p: The probability.

    Raises:
        ValueError: If ``p`` is not in [0, 1), or the input has another number of axes.

    Example:
        >>> nn.Dropout2d(0.5)(mx.ones((1, 4, 4, 3))).shape
        (1, 4, 4, 3)
    """

    _spatial = 2


class Dropout3d(Dropout):
    """Zeroes whole channels of ``NDHWC`` or ``DHWC`` input in training, each with probability ``p``.

    The others are divided by ``1 - p``.

    Args:
        p: The probability.

    Raises:
        ValueError: If ``p`` is not in [0, 1), or the input has another number of axes.

    Example:
        >>> nn.Dropout3d(0.5)(mx.ones((1, 2, 4, 4, 3))).shape
        (1, 2, 4, 4, 3)
    """

    _spatial = 3
