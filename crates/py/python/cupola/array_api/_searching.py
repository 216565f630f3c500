"""Searching, sorting, sets and indexing."""

from __future__ import annotations

from typing import Literal, NamedTuple

import cupola.core as mx

from ._types import Array, Number, Real, indices


class UniqueAll(NamedTuple):
    """What ``unique_all`` gives."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What ``unique_counts`` gives."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What ``unique_inverse`` gives."""

    values: Array
    inverse_indices: Array


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the first largest element."""
    return indices(mx.argmax(x, axis, keepdims))


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the first smallest element."""
    return indices(mx.argmin(x, axis, keepdims))


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The indices that put an axis in order; equal elements keep theirs in any case."""
    if not descending:
        return indices(mx.argsort(x, axis))
    order = indices(mx.argsort(mx.flip(x, axis), axis))
    return mx.flip(x.shape[axis] - 1 - order, axis)


def isin(x1: Real, x2: Real, /, *, invert: bool = False) -> Array:
    """Which elements of ``x1`` are among those of ``x2``; ``invert`` asks for the others."""
    dtype = (mx.zeros((), mx.asarray(x1).dtype) + x2).dtype
    x1, x2 = (mx.asarray(x).astype(dtype) for x in (x1, x2))
    groups = unique_inverse(mx.concat([x1, x2], None)).inverse_indices
    there = mx.zeros(groups.shape, mx.bool_)
    there[groups[x1.size :]] = True
    found = there[groups[: x1.size]].reshape(x1.shape)
    return mx.logical_not(found) if invert else found


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The indices of the elements that are not 0, an array for each axis."""
    return tuple(indices(axis) for axis in mx.nonzero(x))


def searchsorted(
    x1: Array,
    x2: Real,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Array | None = None,
) -> Array:
    """Where in ``x1``, or in ``x1`` as ``sorter`` orders it, each value keeps the order."""
    return indices(mx.searchsorted(x1 if sorter is None else mx.take(x1, sorter), x2, side))


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements of an axis in order."""
    ordered = mx.sort(x, axis)
    return mx.flip(ordered, axis) if descending else ordered


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Elements along an axis, by their indices."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: an array of shape {x.shape} needs an axis")
    return mx.take(x, indices, axis)


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Elements along an axis, by indices of their own at each place of the other axes."""
    return mx.take_along_axis(x, indices, axis)


def unique_all(x: Array, /) -> UniqueAll:
    """The distinct elements in order, where each comes first, which one each is, how often it is.

    Each NaN is a distinct element.
    """
    flat = mx.flatten(x)
    order = _order(flat)
    ordered = flat[order]
    is_first = mx.concat([mx.ones((flat.size > 0,), mx.bool_), ordered[1:] != ordered[:-1]])
    (starts,) = mx.nonzero(is_first)
    groups = mx.cumsum(is_first.astype(mx.int32)) - 1
    counts = mx.diff(mx.concat([starts, mx.array([flat.size])]))
    inverse = mx.put_along_axis(groups, order, groups, 0).reshape(x.shape)
    return UniqueAll(ordered[starts], indices(order[starts]), indices(inverse), indices(counts))


def unique_counts(x: Array, /) -> UniqueCounts:
    """The distinct elements in order, and how often each is there."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Array, /) -> UniqueInverse:
    """The distinct elements in order, and which of them each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Array, /) -> Array:
    """The distinct elements in order."""
    return unique_all(x).values


def where(condition: Array, x1: Number, x2: Number, /) -> Array:
    """The elements of ``x1`` where the condition is true, and of ``x2`` elsewhere."""
    return mx.where(condition, x1, x2)


def _order(x: Array) -> Array:
    """The indices that put a vector in order: complex numbers by their real parts first."""
    if x.dtype != mx.complex64:
        return mx.argsort(x)
    order = mx.argsort(mx.imag(x))
    return order[mx.argsort(mx.real(x)[order])]
