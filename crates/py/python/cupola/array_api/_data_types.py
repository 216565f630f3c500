"""Dtypes: conversion, promotion and limits."""

from __future__ import annotations

import cupola.core as mx

from ._types import Array, Device, Dtype, chosen


def astype(
    x: Array, dtype: Dtype, /, *, copy: bool = True, device: Device | None = None
) -> Array:
    """An array in a dtype; ``copy=False`` gives the array itself where it has that already."""
    dtype = chosen(dtype)
    if isdtype(x.dtype, "complex floating") and not isdtype(dtype, "complex floating"):
        raise TypeError(f"astype: {x.dtype} does not become {dtype}: take real(x) or imag(x)")
    if device is not None and device != x.device:
        x = x.to_device(device)
    return x if x.dtype == dtype and not copy else x.astype(dtype, device)


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """The arrays in the shape that they have together."""
    return tuple(mx.broadcast_arrays(*arrays))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of these shapes have together."""
    return tuple(mx.broadcast_shapes(*shapes))


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """An array repeated along its axes of size 1, and along new ones, to a shape."""
    return mx.broadcast_to(x, shape)


def can_cast(from_: Dtype | Array, to: Dtype, /) -> bool:
    """Whether values of one dtype become the other where the two are promoted."""
    return mx.can_cast(from_, to)


def finfo(type: Dtype | Array, /) -> mx.finfo:
    """The limits of a floating-point dtype."""
    return mx.finfo(_dtype(type))


def iinfo(type: Dtype | Array, /) -> mx.iinfo:
    """The limits of an integer dtype."""
    return mx.iinfo(_dtype(type))


def isdtype(dtype: Dtype, kind: Dtype | str | tuple[Dtype | str, ...]) -> bool:
    """Whether a dtype is another one, or of a kind, or any of several."""
    for one in kind if isinstance(kind, tuple) else (kind,):
        if not isinstance(one, (str, mx.Dtype)):
            raise TypeError(f"isdtype: a kind is a dtype or a string, not {one!r}")
    return mx.isdtype(dtype, kind)


def result_type(*arrays_and_dtypes: Array | Dtype | complex) -> Dtype:
    """The dtype that an operation on all of these computes in; numbers take that of arrays."""
    typed = [x for x in arrays_and_dtypes if isinstance(x, (mx.array, mx.Dtype))]
    if not typed:
        raise ValueError("result_type: at least one array or dtype is required")
    one = mx.zeros((), mx.result_type(*typed))
    for x in arrays_and_dtypes:
        if not isinstance(x, (mx.array, mx.Dtype)):
            one = one + type(x)(0)
    return one.dtype


def _dtype(x: Dtype | Array) -> Dtype:
    return x.dtype if isinstance(x, mx.array) else x
