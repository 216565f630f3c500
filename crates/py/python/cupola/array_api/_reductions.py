"""Statistics, and functions of whole axes."""

from __future__ import annotations

import math

import cupola.core as mx

from ._types import Array, Axes, Dtype, accumulated, indices


def all(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether all elements are true."""
    return mx.all(x, axis, keepdims)


def any(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether any element is true."""
    return mx.any(x, axis, keepdims)


def count_nonzero(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """How many elements are not 0."""
    return indices(mx.count_nonzero(x, axis, keepdims))


def cumulative_prod(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: Dtype | None = None,
    include_initial: bool = False,
) -> Array:
    """The products of the elements up to each; ``include_initial`` puts a 1 before them."""
    return _running("cumulative_prod", x, axis, dtype, 1 if include_initial else None)


def cumulative_sum(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: Dtype | None = None,
    include_initial: bool = False,
) -> Array:
    """The sums of the elements up to each; ``include_initial`` puts a 0 before them."""
    return _running("cumulative_sum", x, axis, dtype, 0 if include_initial else None)


def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """The differences of neighbours, ``n`` times; ``prepend`` and ``append`` stand beside first."""
    return mx.diff(x, n, axis, prepend, append)


def max(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The largest element."""
    return mx.max(x, axis, keepdims)


def mean(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The mean."""
    return mx.mean(x, axis, keepdims)


def min(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The smallest element."""
    return mx.min(x, axis, keepdims)


def prod(
    x: Array, /, *, axis: Axes = None, dtype: Dtype | None = None, keepdims: bool = False
) -> Array:
    """The product; small integers become 32 bits wide."""
    return mx.prod(x.astype(dtype or accumulated(x)), axis, keepdims)


def std(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """The standard deviation; ``correction`` is taken off the number of elements."""
    return mx.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def sum(
    x: Array, /, *, axis: Axes = None, dtype: Dtype | None = None, keepdims: bool = False
) -> Array:
    """The sum; small integers become 32 bits wide."""
    return mx.sum(x.astype(dtype or accumulated(x)), axis, keepdims)


def var(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """The variance; ``correction`` is taken off the number of elements."""
    squares = mx.var(x, axis, keepdims)
    if correction == 0:
        return squares
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    count = math.prod(x.shape[at] for at in axes)
    return squares * (count / (count - correction) if count > correction else math.nan)


def _running(
    name: str, x: Array, axis: int | None, dtype: Dtype | None, initial: int | None
) -> Array:
    if axis is None and x.ndim > 1:
        raise ValueError(f"{name}: an array of shape {x.shape} needs an axis")
    axis = axis or 0
    result = getattr(mx, name)(x.astype(dtype or accumulated(x)), axis)
    if initial is None:
        return result
    shape = list(x.shape)
    shape[axis] = 1
    return mx.concat([mx.full(shape, initial, result.dtype), result], axis)
