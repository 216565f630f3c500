"""Layers that move elements about or fold them: gathers, pads, pooling, reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cupola.core as mx

from ._layer import Layer, one_of, pair, taking

Padding = int | str | Sequence[int]


def _unary(label: str, function: Callable[[mx.array], Any]) -> Layer:
    def forward(inputs: Any, held: Any, training: bool) -> Any:
        taking(label, inputs, 1)
        return function(inputs[0])

    return Layer(label, forward)


def concatenation_layer(dimension: int = 1) -> Layer:
    """Tensors one after the other along a dimension."""

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        return mx.concatenate(list(inputs), axis=dimension)

    return Layer("concatenation", forward)


def gather_layer(dimension: int) -> Layer:
    """The elements of the first tensor at the indices that are the second, along a dimension and at the same
    place along the others."""

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking("gather", inputs, 2)
        x, indices = inputs
        return mx.take_along_axis(x, indices, axis=dimension)

    return Layer("gather", forward)


def scatter_layer(dimension: int, reduction: str = "none") -> Layer:
    """The first tensor with the elements at the indices that are the second, along a dimension and at the same
    place along the others, replaced by those of the third; with the reduction ``sum`` these are added."""
    one_of("scatter", reduction, ["none", "sum"])

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking("scatter", inputs, 3)
        x, indices, updates = inputs
        if reduction == "none":
            return mx.put_along_axis(x, indices, updates, axis=dimension)
        at = []
        for axis, size in enumerate(indices.shape):
            along = mx.arange(size).reshape([-1 if a == axis else 1 for a in range(indices.ndim)])
            at.append(indices if axis == dimension % x.ndim else along)
        return x.at[tuple(at)].add(updates)

    return Layer("scatter", forward)


def padding_layer(
    kind: str = "zero",
    left: int = 0,
    right: int = 0,
    top: int = 0,
    bottom: int = 0,
    constant: float = 0.0,
) -> Layer:
    """A border around images: ``zero``, ``constant``, ``reflect`` (without the edge) or ``symmetric`` (with it)."""
    one_of("padding", kind, ["zero", "constant", "reflect", "symmetric"])
    widths = [(0, 0), (0, 0), (top, bottom), (left, right)]
    if kind in ("zero", "constant"):
        value = constant if kind == "constant" else 0
        return _unary("padding", lambda x: mx.pad(x, widths, constant_values=value))
    return _unary("padding", lambda x: mx.pad(x, widths, mode=kind))


def reshape_layer(shape: Sequence[int]) -> Layer:
    """The same elements in another shape; -1 is what is left."""
    return _unary("reshape", lambda x: mx.reshape(x, tuple(shape)))


def slice_layer(start: Sequence[int], end: Sequence[int], stride: Sequence[int] | None = None) -> Layer:
    """The elements from a start to before an end, along each dimension."""
    steps = stride or [1] * len(start)
    at = tuple(slice(*own) for own in zip(start, end, steps))
    return _unary("slice", lambda x: x[at])


def split_layer(parts: int | Sequence[int], dimension: int = 1) -> Layer:
    """So many equal parts along a dimension, or parts of these lengths: a tensor for each."""
    if isinstance(parts, int):
        return _unary("split", lambda x: mx.split(x, parts, axis=dimension))
    ends = [sum(parts[: count + 1]) for count in range(len(parts))]

    def split(x: mx.array) -> list[mx.array]:
        if ends[-1] != x.shape[dimension]:
            raise ValueError(f"split layer: the lengths {list(parts)} are not {x.shape[dimension]}")
        return mx.split(x, ends[:-1], axis=dimension)

    return _unary("split", split)


def transpose_layer(dimensions: Sequence[int]) -> Layer:
    """The dimensions in another order."""
    return _unary("transpose", lambda x: mx.transpose(x, list(dimensions)))


def upsample_layer(
    shape: Sequence[int], mode: str = "nearest", aligns_corners: bool = False
) -> Layer:
    """Images in another size, ``[height, width]``, by their ``nearest`` pixels or ``linear`` between them."""
    one_of("upsample", mode, ["nearest", "linear"])

    def upsample(x: mx.array) -> mx.array:
        kind = "nearest" if mode == "nearest" else "bilinear"
        corners = aligns_corners and mode == "linear"
        last = x.transpose(0, 2, 3, 1)
        out = mx.interpolate(last, list(shape), mode=kind, align_corners=corners)
        return out.transpose(0, 3, 1, 2)

    return _unary("upsample", upsample)


_REDUCTIONS: dict[str, Callable[..., mx.array]] = {
    "sum": mx.sum,
    "mean": mx.mean,
    "max": mx.max,
    "min": mx.min,
    "argmax": mx.argmax,
    "argmin": mx.argmin,
    "l1_norm": lambda x, axis, keepdims: mx.sum(mx.abs(x), axis=axis, keepdims=keepdims),
    "any": mx.any,
    "all": mx.all,
}


def reduction_layer(kind: str, dimensions: int | Sequence[int]) -> Layer:
    """``sum``, ``mean``, ``max``, ``min``, ``argmax``, ``argmin``, ``l1_norm``, ``any`` or ``all`` over
    dimensions, which stay with size 1. The places of extremes are over one dimension."""
    one_of("reduction", kind, list(_REDUCTIONS))
    axes = [dimensions] if isinstance(dimensions, int) else list(dimensions)
    if kind.startswith("arg") and len(axes) != 1:
        raise ValueError(f"[mlcompute] reduction layer: {kind} is over one dimension")
    axis: Any = axes[0] if kind.startswith("arg") else axes
    return _unary(f"reduction_{kind}", lambda x: _REDUCTIONS[kind](x, axis=axis, keepdims=True))


def gram_matrix_layer(scale: float = 1.0) -> Layer:
    """The products of the channels of images with each other, ``[N, 1, C, C]``, times a scale."""

    def gram(x: mx.array) -> mx.array:
        rows = x.reshape(x.shape[0], 1, x.shape[1], -1)
        return (rows @ rows.swapaxes(-1, -2)) * scale

    return _unary("gram_matrix", gram)


def borders(
    label: str, padding: Padding, size: Sequence[int], window: Sequence[int], stride: Sequence[int]
) -> list[tuple[int, int]]:
    """What is added before and after each spatial axis: ``valid`` adds nothing, ``same`` so much that there are
    as many windows as strides fit into the axis, and numbers are added on both sides."""
    if isinstance(padding, str):
        one_of(label, padding, ["valid", "same"])
        if padding == "valid":
            return [(0, 0)] * len(size)
        sides = []
        for have, wide, step in zip(size, window, stride):
            total = max((-(-have // step) - 1) * step + wide - have, 0)
            sides.append((total // 2, total - total // 2))
        return sides
    return [(side, side) for side in pair(padding)]


def pooling_layer(
    kind: str,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Padding = "valid",
    count_includes_padding: bool = False,
    dilation: int | Sequence[int] = 1,
) -> Layer:
    """The ``max``, the ``average`` or the ``l2_norm`` of each window of images, whose elements are ``dilation`` apart.
    Padding is ``valid``, ``same`` or numbers; an average counts it or not."""
    one_of("pooling", kind, ["max", "average", "l2_norm"])
    window, steps, apart = pair(kernel), pair(kernel if stride is None else stride), pair(dilation)
    reach = [(size - 1) * step + 1 for size, step in zip(window, apart)]

    def mean(x: mx.array) -> mx.array:
        return mx._nn.avg_pool(x, window, steps, (0, 0), dilation=apart)

    def pool(x: mx.array) -> mx.array:
        sides = borders("pooling", padding, x.shape[2:], reach, steps)
        widths = [(0, 0), *sides, (0, 0)]
        x = x.transpose(0, 2, 3, 1)
        if kind == "max":
            wide = mx.pad(x, widths, constant_values=-mx.inf)
            out = mx._nn.max_pool(wide, window, steps, (0, 0), dilation=apart)
        elif kind == "average":
            out = mean(mx.pad(x, widths))
            if not count_includes_padding and any(side != (0, 0) for side in sides):
                out = out / mean(mx.pad(mx.ones_like(x), widths))
        else:
            out = mx.sqrt(mean(mx.pad(x * x, widths)) * (window[0] * window[1]))
        return out.transpose(0, 3, 1, 2)

    return _unary(f"pooling_{kind}", pool)
