"""Layers that compare predictions with labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cupola.core as mx
from cupola import nn

from ._layer import Layer, one_of, taking


def _classes(x: mx.array) -> int:
    """The dimension of the classes, or of the features."""
    return 1 if x.ndim > 1 else 0


def _huber(x: mx.array, y: mx.array, delta: float) -> mx.array:
    far = mx.abs(x - y)
    return mx.where(far <= delta, 0.5 * mx.square(far), delta * (far - 0.5 * delta))


def _sigmoid_cross_entropy(x: mx.array, y: mx.array) -> mx.array:
    # ln(1 + e^x) − x·y, which does not overflow.
    return mx.logaddexp(x, mx.zeros_like(x)) - x * y


# What compares element by element: of predictions, labels, ε and δ.
_EACH: dict[str, Callable[..., mx.array]] = {
    "mean_absolute_error": lambda x, y, e, d: mx.abs(x - y),
    "mean_squared_error": lambda x, y, e, d: mx.square(x - y),
    "sigmoid_cross_entropy": lambda x, y, e, d: _sigmoid_cross_entropy(x, y),
    "hinge": lambda x, y, e, d: mx.maximum(1 - x * y, 0),
    "huber": lambda x, y, e, d: _huber(x, y, d),
    "log": lambda x, y, e, d: -(y * mx.log(x + e) + (1 - y) * mx.log(1 - x + e)),
}
# What compares one distribution or direction with another: gives the terms of a sum over classes.
_ALONG: dict[str, Callable[..., mx.array]] = {
    "softmax_cross_entropy": lambda x, y, e: -y * nn.log_softmax(x, axis=_classes(x)),
    "categorical_cross_entropy": lambda x, y, e: -y * mx.log(x + e),
    "cosine_distance": lambda x, y, e: -x * y,
}


def loss_layer(
    kind: str,
    reduction: str = "mean",
    weight: float = 1.0,
    label_smoothing: float = 0.0,
    epsilon: float = 1e-7,
    delta: float = 1.0,
) -> Layer:
    """How far predictions are from labels: ``mean_absolute_error``, ``mean_squared_error``, ``sigmoid_cross_entropy``,
    ``hinge`` (labels are ±1), ``huber`` (quadratic within ``delta``), ``log`` (predictions are probabilities), and along
    the dimension of the classes, the second one, ``softmax_cross_entropy``, ``categorical_cross_entropy``
    (predictions are probabilities) and ``cosine_distance`` (of vectors of length 1).

    Labels of a cross entropy along classes are shares of these, or integers without that dimension, or with it of size
    1. They are smoothed towards equal shares, and those of a sigmoid towards a half. A third tensor weighs the
    losses, and ``weight`` all of them. The reduction is ``mean``, ``sum`` or ``none``.

    Example:
        >>> loss_layer("softmax_cross_entropy")
        Layer(loss_softmax_cross_entropy)
    """
    one_of("loss", kind, [*_EACH, *_ALONG])
    one_of("loss", reduction, ["mean", "sum", "none"])

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking(f"loss_{kind}", inputs, 2, 3)
        x, y = inputs[:2]
        if kind in _ALONG:
            axis = _classes(x)
            if kind != "cosine_distance":
                y = _shares(x, y, axis)
                y = y * (1 - label_smoothing) + label_smoothing / x.shape[axis]
            _same_shape(kind, x, y)
            losses = mx.sum(_ALONG[kind](x, y, epsilon), axis=axis)
            losses = 1 + losses if kind == "cosine_distance" else losses
        else:
            _same_shape(kind, x, y)
            y = y.astype(x.dtype)
            if kind == "sigmoid_cross_entropy":
                y = y * (1 - label_smoothing) + 0.5 * label_smoothing
            losses = _EACH[kind](x, y, epsilon, delta)
        if len(inputs) == 3:
            weights = inputs[2]
            losses = losses * (weights.reshape(losses.shape) if weights.size > 1 else weights)
        return reduced(losses * weight, reduction)

    return Layer(f"loss_{kind}", forward)


def reduced(losses: mx.array, reduction: str) -> mx.array:
    """The mean or the sum of losses, or these."""
    if reduction == "none":
        return losses
    return mx.mean(losses) if reduction == "mean" else mx.sum(losses)


def _same_shape(kind: str, x: mx.array, y: mx.array) -> None:
    if x.shape != y.shape:
        raise ValueError(f"loss {kind}: predictions {x.shape} and labels {y.shape} do not match")


def _shares(x: mx.array, labels: mx.array, axis: int) -> mx.array:
    """Labels as a share for each class."""
    if mx.issubdtype(labels.dtype, mx.floating) or labels.shape == x.shape:
        return labels.astype(x.dtype)
    without = [size for at, size in enumerate(x.shape) if at != axis]
    if labels.size == x.size // max(x.shape[axis], 1):
        labels = labels.reshape(without)
    ids = mx.arange(x.shape[axis]).reshape([-1 if at == axis else 1 for at in range(x.ndim)])
    return (mx.expand_dims(labels, axis) == ids).astype(x.dtype)


def yolo_loss_layer(
    anchors: Sequence[Sequence[float]],
    class_count: int,
    rescores: bool = True,
    scale_position: float = 10.0,
    scale_size: float = 10.0,
    scale_no_object: float = 5.0,
    scale_object: float = 100.0,
    scale_class: float = 2.0,
    minimum_iou_for_presence: float = 0.7,
    maximum_iou_for_absence: float = 0.3,
    reduction: str = "mean",
) -> Layer:
    """The loss of YOLO version 2 for boxes on a grid.

    Predictions and labels are ``[N, anchors · (5 + classes), H, W]``: for each anchor x, y, width, height, confidence
    and the classes. Predicted are logits: the middle of a box lies at σ(x), σ(y) in its cell, it is e^width and e^height
    times its anchor, σ of its confidence says whether there is a box, and the softmax of the classes what it is. Labels
    are what is meant by that: the middle in its cell, width and height in cells, as the anchors are, 1 where there is
    a box, and the classes' shares.

    Where a label has a box its position, size and classes count, and the confidence has to be its overlap with what was
    predicted (intersection over union), or 1 if it does not rescore. Elsewhere the confidence has to be 0 where the
    prediction overlaps every box by less than the maximum for absence, and that overlap (or 1) where it is more than
    the minimum for presence. The loss of an image is a sum; the reduction is over images.

    Example:
        >>> yolo_loss_layer([[1.0, 2.0], [3.0, 1.5]], class_count=4)
        Layer(loss_yolo)
    """
    one_of("yolo loss", reduction, ["mean", "sum", "none"])
    shapes = [[float(side) for side in anchor] for anchor in anchors]

    def split(x: mx.array) -> mx.array:
        """``[N, anchors, 5 + classes, H · W]``."""
        return x.reshape(x.shape[0], len(shapes), 5 + class_count, x.shape[2] * x.shape[3])

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking("loss_yolo", inputs, 2)
        x, y = inputs
        if x.shape != y.shape or x.ndim != 4 or x.shape[1] != len(shapes) * (5 + class_count):
            wanted = f"[N, {len(shapes) * (5 + class_count)}, H, W]"
            raise ValueError(f"loss yolo: takes {wanted} twice, not {x.shape} and {y.shape}")
        height, width = x.shape[2:]
        x, y = split(x), split(y)
        anchor = mx.array(shapes).reshape(1, -1, 2, 1)
        cells = mx.stack([mx.arange(height * width) % width, mx.arange(height * width) // width])
        middle, size = mx.sigmoid(x[:, :, :2]), anchor * mx.exp(x[:, :, 2:4])
        has = y[:, :, 4] > 0.5
        found = _boxes(middle + cells, size)
        meant = _boxes(y[:, :, :2] + cells, y[:, :, 2:4])
        own = _overlap(found, meant)
        every = _overlap(
            found.reshape(*found.shape[:2], -1, 1), meant.reshape(*meant.shape[:2], 1, -1)
        )
        flat = has.reshape(has.shape[0], 1, -1)
        best = mx.max(mx.where(flat, every, 0), axis=-1).reshape(has.shape)
        own, best = mx.stop_gradient(own), mx.stop_gradient(best)
        position = mx.square(middle - y[:, :, :2]).sum(axis=2)
        # Where there is no box its sides are nothing to take a logarithm of.
        sides = mx.where(has[:, :, None], y[:, :, 2:4], anchor)
        extent = mx.square(x[:, :, 2:4] - mx.log(sides / anchor)).sum(axis=2)
        kind = -(y[:, :, 5:] * nn.log_softmax(x[:, :, 5:], axis=2)).sum(axis=2)
        confidence = mx.sigmoid(x[:, :, 4])
        is_near = mx.logical_and(mx.logical_not(has), best > minimum_iou_for_presence)
        is_far = mx.logical_and(mx.logical_not(has), best < maximum_iou_for_absence)
        target = mx.where(has, own, best) if rescores else mx.ones_like(confidence)
        present = mx.logical_or(has, is_near)
        losses = mx.where(
            has, scale_position * position + scale_size * extent + scale_class * kind, 0
        )
        losses = losses + mx.where(present, scale_object * mx.square(confidence - target), 0)
        losses = losses + mx.where(is_far, scale_no_object * mx.square(confidence), 0)
        return reduced(losses.sum(axis=(1, 2)), reduction)

    return Layer("loss_yolo", forward)


def _boxes(middle: mx.array, size: mx.array) -> mx.array:
    """Left, top, right and bottom of boxes ``[N, anchors, 2, cells]``: ``[4, N, anchors, cells]``."""
    low, high = middle - size / 2, middle + size / 2
    return mx.stack([low[:, :, 0], low[:, :, 1], high[:, :, 0], high[:, :, 1]])


def _overlap(a: mx.array, b: mx.array) -> mx.array:
    """The intersection of boxes over their union."""
    width = mx.maximum(mx.minimum(a[2], b[2]) - mx.maximum(a[0], b[0]), 0)
    height = mx.maximum(mx.minimum(a[3], b[3]) - mx.maximum(a[1], b[1]), 0)
    both = width * height
    areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return both / mx.maximum(areas - both, 1e-12)
