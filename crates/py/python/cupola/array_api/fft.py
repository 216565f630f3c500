"""Fourier transforms. Complex results are ``complex64``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import cupola.core as mx

from ._types import Array, Device, Dtype, Norm, described, on

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


class _Transform(Protocol):
    def __call__(
        self, x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> Array: ...


class _TransformN(Protocol):
    def __call__(
        self,
        x: Array,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> Array: ...


def _one(f: Callable[..., Array]) -> _Transform:
    def function(
        x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> Array:
        return f(x, n=n, axis=axis, norm=norm)

    return described(function, f)


def _many(f: Callable[..., Array]) -> _TransformN:
    def function(
        x: Array,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> Array:
        if s is not None and axes is None:
            axes = range(-len(s), 0)
        return f(x, s=s, axes=axes, norm=norm)

    return described(function, f)


fft = _one(mx.fft.fft)
hfft = _one(mx.fft.hfft)
ifft = _one(mx.fft.ifft)
ihfft = _one(mx.fft.ihfft)
irfft = _one(mx.fft.irfft)
rfft = _one(mx.fft.rfft)

fftn = _many(mx.fft.fftn)
ifftn = _many(mx.fft.ifftn)
irfftn = _many(mx.fft.irfftn)
rfftn = _many(mx.fft.rfftn)


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: Device | None = None
) -> Array:
    """The frequencies of a transform of ``n`` elements that are ``d`` apart."""
    with on(device):
        places = mx.arange(n, dtype=dtype or mx.float32)
        return mx.where(places < (n + 1) // 2, places, places - n) / (n * d)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: Device | None = None
) -> Array:
    """The frequencies of a transform of ``n`` real elements that are ``d`` apart."""
    with on(device):
        return mx.arange(n // 2 + 1, dtype=dtype or mx.float32) / (n * d)


def fftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """An array with the frequency 0 moved to the middle."""
    return mx.fft.fftshift(x, axes)


def ifftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """An array with the frequency 0 moved back to the front."""
    return mx.fft.ifftshift(x, axes)
