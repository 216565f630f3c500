"""Arrays with their elements in other places."""

from __future__ import annotations

import cupola.core as mx

from ._types import Array, Axes


def concat(arrays: tuple[Array, ...] | list[Array], /, *, axis: int | None = 0) -> Array:
    """Arrays one after the other along an axis; for ``None`` they are flattened first."""
    return mx.concat(list(arrays), axis)


def expand_dims(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """An array with new axes of size 1."""
    return mx.expand_dims(x, axis)


def flip(x: Array, /, *, axis: Axes = None) -> Array:
    """An array with axes in reverse."""
    return mx.flip(x, axis)


def matrix_transpose(x: Array, /) -> Array:
    """An array with its last two axes exchanged."""
    return mx.matrix_transpose(x)


def moveaxis(
    x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Array:
    """An array with axes at other places; the others keep their order."""
    sources, places = (
        [at + x.ndim if at < 0 else at for at in ((axes,) if isinstance(axes, int) else axes)]
        for axes in (source, destination)
    )
    for axes in (sources, places):
        if len(set(axes)) < len(axes) or len(sources) != len(places):
            raise ValueError(
                f"moveaxis: source {source} and destination {destination} do not name as many axes"
            )
        if any(not 0 <= axis < x.ndim for axis in axes):
            raise IndexError(
                f"moveaxis: source {source} or destination {destination} is out of range "
                f"for an array of {x.ndim} axes"
            )
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return mx.permute_dims(x, order)


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """An array with its axes in another order."""
    return mx.permute_dims(x, axes)


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Each element of an axis so many times; of the flattened array for ``None``."""
    return mx.repeat_interleave(x, repeats, axis)


def reshape(x: Array, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """An array with other sizes, of which one may be −1; it never shares what is assigned to."""
    return mx.reshape(x, shape)


def roll(x: Array, /, shift: int | tuple[int, ...], *, axis: Axes = None) -> Array:
    """An array with its elements moved on along axes, the last ones to the front."""
    return mx.roll(x, shift, axis)


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """An array without some of its axes of size 1."""
    return mx.squeeze(x, axis)


def stack(arrays: tuple[Array, ...] | list[Array], /, *, axis: int = 0) -> Array:
    """Arrays beside each other along a new axis."""
    return mx.stack(list(arrays), axis)


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """An array so many times along each axis."""
    return mx.tile(x, repetitions)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along an axis."""
    return tuple(mx.unstack(x, axis=axis))
