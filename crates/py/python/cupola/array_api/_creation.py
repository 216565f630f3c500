"""New arrays."""

from __future__ import annotations

from typing import Any, Literal

import cupola.core as mx

from ._types import COMPLEX, Array, Device, Dtype, chosen, on, wide


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
) -> Array:
    """Numbers from ``start`` up to but without ``stop``; with ``start`` alone, from 0 up to it."""
    start, stop = (0, start) if stop is None else (start, stop)
    return mx.arange(start, stop, step, dtype=chosen(dtype), stream=device)


def asarray(
    obj: Any,
    /,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
    copy: bool | None = None,
) -> Array:
    """An array of numbers, nested lists of them, or another library's array.

    Another library's array keeps its dtype, and its memory where that is possible. ``copy=False``
    raises ``ValueError`` instead of copying.
    """
    dtype = chosen(dtype)
    if isinstance(obj, mx.array) and dtype in (None, obj.dtype):
        return _moved(obj, device, copy)
    with on(device):
        return mx.asarray(obj, dtype or wide(obj), copy=copy)


def empty(
    shape: int | tuple[int, ...], *, dtype: Dtype | None = None, device: Device | None = None
) -> Array:
    """An array of a shape, of zeros."""
    return zeros(shape, dtype=dtype, device=device)


def empty_like(x: Array, /, *, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """An array of the shape of another one, of zeros."""
    return zeros_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Dtype | None = None,
    device: Device | None = None,
) -> Array:
    """A matrix with ones on its diagonal, or ``k`` places above it."""
    return mx.eye(n_rows, n_cols, k, chosen(dtype), stream=device)


def from_dlpack(x: Any, /, *, device: Device | None = None, copy: bool | None = None) -> Array:
    """An array of another library's, by DLPack; ``copy`` as in ``asarray``."""
    if isinstance(x, mx.array):
        return _moved(x, device, copy)
    dtype = wide(x)
    shared = mx.asarray(x, dtype, copy=copy) if dtype else mx.from_dlpack(x, copy=copy)
    return shared if device is None else shared.to_device(device)


def full(
    shape: int | tuple[int, ...],
    fill_value: complex,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
) -> Array:
    """An array of a shape with one number everywhere."""
    return mx.full(shape, fill_value, chosen(dtype), stream=device)


def full_like(
    x: Array,
    /,
    fill_value: complex,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
) -> Array:
    """An array of the shape of another one with one number everywhere."""
    return mx.full_like(x, fill_value, chosen(dtype), stream=device or x.device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
    endpoint: bool = True,
) -> Array:
    """``num`` numbers at equal distances from ``start`` to ``stop``, or up to but without it."""
    dtype = chosen(dtype)
    start, stop = (x.item() if isinstance(x, mx.array) else x for x in (start, stop))
    with on(device):
        if not (dtype == COMPLEX or isinstance(start, complex) or isinstance(stop, complex)):
            return mx.linspace(start, stop, num, endpoint, dtype)
        real = mx.linspace(start.real, stop.real, num, endpoint)
        imag = mx.linspace(start.imag, stop.imag, num, endpoint)
        return (real + 1j * imag).astype(dtype or COMPLEX)


def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> tuple[Array, ...]:
    """The coordinates of a grid, an array for each axis."""
    return tuple(mx.meshgrid(*arrays, indexing=indexing))


def ones(
    shape: int | tuple[int, ...], *, dtype: Dtype | None = None, device: Device | None = None
) -> Array:
    """An array of ones."""
    return mx.ones(shape, chosen(dtype) or mx.float32, stream=device)


def ones_like(x: Array, /, *, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """An array of the shape of another one, of ones."""
    return mx.ones_like(x, chosen(dtype), stream=device or x.device)


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Matrices with zeros above the diagonal, or above the one ``k`` places higher."""
    return mx.tril(x, k)


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Matrices with zeros below the diagonal, or below the one ``k`` places higher."""
    return mx.triu(x, k)


def zeros(
    shape: int | tuple[int, ...], *, dtype: Dtype | None = None, device: Device | None = None
) -> Array:
    """An array of zeros."""
    return mx.zeros(shape, chosen(dtype) or mx.float32, stream=device)


def zeros_like(x: Array, /, *, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """An array of the shape of another one, of zeros."""
    return mx.zeros_like(x, chosen(dtype), stream=device or x.device)


def _moved(x: Array, device: Device | None, copy: bool | None) -> Array:
    """An array on a device: itself if it is there and ``copy`` does not ask for another."""
    if device is not None and device != x.device:
        if copy is False:
            raise ValueError(f"asarray: an array on {x.device} is to be on {device} without a copy")
        return x.to_device(device)
    return mx.array(x) if copy else x
