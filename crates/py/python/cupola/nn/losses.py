"""Loss functions.

Each takes ``reduction``: ``"none"`` keeps the loss of each element, ``"mean"`` and ``"sum"`` reduce them
to a scalar.
"""

from __future__ import annotations

import math
from functools import wraps
from typing import Any, Callable, Literal, Optional, TypeVar, get_args

import cupola.core as mx

Reduction = Literal["none", "mean", "sum"]

_Loss = TypeVar("_Loss", bound=Callable)


def _float32(loss: _Loss) -> _Loss:
    """``loss`` under mixed precision: of operands as the policy's entry of its name has them."""

    @wraps(loss)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(cast, args))
        return loss(*args, **{name: cast(value) for name, value in kwargs.items()})

    def cast(value: Any) -> Any:
        return mx._amp.operand(loss.__name__, value) if isinstance(value, mx.array) else value

    return wrapped  # type: ignore[return-value]


def _reduce(loss: mx.array, reduction: Reduction = "none") -> mx.array:
    if reduction not in get_args(Reduction):
        raise ValueError(f"Invalid reduction. Must be one of {get_args(Reduction)}.")
    if reduction == "none":
        return loss
    return mx.mean(loss) if reduction == "mean" else mx.sum(loss)


def _weigh(loss: mx.array, weights: Optional[mx.array]) -> mx.array:
    if weights is None:
        return loss
    if weights.shape != loss.shape:
        raise ValueError(
            f"Weights with shape {weights.shape} is not the same as output loss with shape "
            f"{loss.shape}."
        )
    return loss * weights


def _same_shape(name: str, a: mx.array, other: str, b: mx.array) -> None:
    if a.shape != b.shape:
        raise ValueError(f"{name} shape {a.shape} does not match {other} shape {b.shape}.")


@_float32
def cross_entropy(
    logits: mx.array,
    targets: mx.array,
    weights: Optional[mx.array] = None,
    axis: int = -1,
    label_smoothing: float = 0.0,
    reduction: Reduction = "none",
) -> mx.array:
    """The cross entropy of the distributions ``softmax(logits)`` and ``targets``.

    Args:
        logits: The logits.
        targets: Classes, of the shape of ``logits`` without ``axis``, or probabilities, of the
            same shape.
        weights: What the loss of each element is multiplied by.
        axis: The axis of the classes.
        label_smoothing: How much of each target distribution is spread over all classes.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: If shapes do not fit, or ``label_smoothing`` is not in [0, 1).

    Example:
        >>> logits = mx.array([[2.0, -1.0], [-1.0, 2.0]])
        >>> cross_entropy(logits, mx.array([0, 1]))
        array([0.0485873, 0.0485873], dtype=float32)
    """
    if label_smoothing < 0 or label_smoothing >= 1:
        raise ValueError(f"Label smoothing must be in [0, 1), got {label_smoothing}.")
    probabilities = targets.ndim == logits.ndim
    expected = list(logits.shape)
    if not probabilities:
        expected.pop(axis)
    if targets.shape != tuple(expected):
        raise ValueError(
            f"Targets shape {targets.shape} does not match logits shape {logits.shape}."
        )

    if probabilities:
        # Relative to the largest logit: this tells where targets do not add up to 1, as in MLX.
        logits = logits - mx.stop_gradient(mx.max(logits, axis=axis, keepdims=True))
        score = mx.sum(logits * targets, axis=axis)
    else:
        score = mx.take_along_axis(logits, mx.expand_dims(targets, axis), axis).squeeze(axis)
    loss = mx.logsumexp(logits, axis=axis)
    if label_smoothing > 0:
        spread = mx.mean(logits, axis=axis)
        loss = loss - (1 - label_smoothing) * score - label_smoothing * spread
    else:
        loss = loss - score
    return _reduce(_weigh(loss, weights), reduction)


@_float32
def binary_cross_entropy(
    inputs: mx.array,
    targets: mx.array,
    weights: Optional[mx.array] = None,
    with_logits: bool = True,
    reduction: Reduction = "mean",
) -> mx.array:
    """The cross entropy of two classes.

    Args:
        inputs: Logits, or probabilities. The logarithms of probabilities count as at least -100.
        targets: The probabilities of the first class, of the same shape.
        weights: What the loss of each element is multiplied by.
        with_logits: Whether ``inputs`` are logits.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: If shapes do not fit.

    Example:
        >>> nn.losses.binary_cross_entropy(mx.array([0.0]), mx.array([1.0]))
        array(0.693147, dtype=float32)
    """
    _same_shape("Inputs", inputs, "targets", targets)
    if with_logits:
        loss = mx.logaddexp(0.0, inputs) - inputs * targets
    else:
        positive = mx.maximum(mx.log(inputs), -100)
        negative = mx.maximum(mx.log(1 - inputs), -100)
        loss = -(targets * positive + (1 - targets) * negative)
    return _reduce(_weigh(loss, weights), reduction)


@_float32
def l1_loss(
    predictions: mx.array, targets: mx.array, reduction: Reduction = "mean"
) -> mx.array:
    """The absolute differences.

    Args:
        predictions: The predictions.
        targets: The targets, of the same shape.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: If the shapes differ.

    Example:
        >>> nn.losses.l1_loss(mx.array([1.0, 2.0]), mx.array([1.0, 4.0]))
        array(1, dtype=float32)
    """
    _same_shape("Predictions", predictions, "targets", targets)
    return _reduce(mx.abs(predictions - targets), reduction)


@_float32
def mse_loss(
    predictions: mx.array, targets: mx.array, reduction: Reduction = "mean"
) -> mx.array:
    """The squared differences.

    Args:
        predictions: The predictions.
        targets: The targets, of the same shape.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: If the shapes differ.

    Example:
        >>> nn.losses.mse_loss(mx.array([1.0, 2.0]), mx.array([1.0, 4.0]))
        array(2, dtype=float32)
    """
    _same_shape("Predictions", predictions, "targets", targets)
    return _reduce(mx.square(predictions - targets), reduction)


@_float32
def smooth_l1_loss(
    predictions: mx.array, targets: mx.array, beta: float = 1.0, reduction: Reduction = "mean"
) -> mx.array:
    """``d²/(2·beta)`` where the absolute difference ``d`` is below ``beta``, else ``d - beta/2``.

    Args:
        predictions: The predictions.
        targets: The targets, of the same shape.
        beta: Where the loss turns from quadratic to linear.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: If the shapes differ.

    Example:
        >>> nn.losses.smooth_l1_loss(mx.array([1.0, 2.0]), mx.array([1.0, 4.0]))
        array(0.75, dtype=float32)
    """
    _same_shape("Predictions", predictions, "targets", targets)
    difference = mx.abs(predictions - targets)
    quadratic = 0.5 * mx.square(difference) / beta if beta else difference
    loss = mx.where(difference < beta, quadratic, difference - 0.5 * beta)
    return _reduce(loss, reduction)


@_float32
def nll_loss(
    inputs: mx.array, targets: mx.array, axis: int = -1, reduction: Reduction = "none"
) -> mx.array:
    """The negative of the logarithmic probabilities of the target classes.

    Args:
        inputs: Logarithms of probabilities.
        targets: The classes, of the shape of ``inputs`` without ``axis``.
        axis: The axis of the classes.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Example:
        >>> nn.losses.nll_loss(mx.array([[-0.5, -2.0]]), mx.array([1]))
        array([2], dtype=float32)
    """
    picked = mx.take_along_axis(inputs, mx.expand_dims(targets, axis), axis)
    return _reduce(-picked.squeeze(axis), reduction)


@_float32
def gaussian_nll_loss(
    inputs: mx.array,
    targets: mx.array,
    vars: mx.array,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> mx.array:
    """The negative logarithmic density of ``targets`` under normal distributions.

    Args:
        inputs: The means.
        targets: The values, of the same shape.
        vars: The variances, of the same shape.
        full: Whether the constant ``log(2π)/2`` is part of it.
        eps: The smallest variance.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: If the shapes differ.

    Example:
        >>> nn.losses.gaussian_nll_loss(mx.array([1.0]), mx.array([2.0]), mx.array([1.0]))
        array(0.5, dtype=float32)
    """
    _same_shape("Inputs", inputs, "targets", targets)
    _same_shape("Inputs", inputs, "vars", vars)
    vars = mx.maximum(vars, eps)
    loss = 0.5 * (mx.log(vars) + mx.square(targets - inputs) / vars)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce(loss, reduction)


@_float32
def kl_div_loss(
    inputs: mx.array, targets: mx.array, axis: int = -1, reduction: Reduction = "none"
) -> mx.array:
    """The Kullback-Leibler divergence of ``targets`` from ``inputs``.

    Args:
        inputs: Logarithms of the predicted probabilities.
        targets: Logarithms of the target probabilities.
        axis: The axis of the classes.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Example:
        >>> p = mx.log(mx.array([[0.5, 0.5]]))
        >>> nn.losses.kl_div_loss(p, p)
        array([0], dtype=float32)
    """
    return _reduce(mx.sum(mx.exp(targets) * (targets - inputs), axis=axis), reduction)


@_float32
def triplet_loss(
    anchors: mx.array,
    positives: mx.array,
    negatives: mx.array,
    axis: int = -1,
    p: int = 2,
    margin: float = 1.0,
    eps: float = 1e-6,
    reduction: Reduction = "none",
) -> mx.array:
    """By how much an anchor is not ``margin`` closer to its positive than to its negative.

    Args:
        anchors: The anchors.
        positives: Their positives.
        negatives: Their negatives.
        axis: The axis of the features.
        p: The distance is the p-norm of the difference.
        margin: The margin.
        eps: Added to the sum of powers.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Example:
        >>> anchor, other = mx.zeros((1, 2)), mx.full((1, 2), 3.0)
        >>> nn.losses.triplet_loss(anchor, anchor, other).round(3)
        array([0], dtype=float32)
    """

    def distance(x: mx.array) -> mx.array:
        powers = mx.sum(mx.power(mx.abs(anchors - x), p), axis=axis)
        return mx.power(powers + eps, 1 / p)

    loss = mx.maximum(distance(positives) - distance(negatives) + margin, 0)
    return _reduce(loss, reduction)


@_float32
def hinge_loss(
    inputs: mx.array, targets: mx.array, reduction: Reduction = "none"
) -> mx.array:
    """``max(0, 1 - inputs · targets)``.

    Args:
        inputs: The predictions.
        targets: The targets, -1 or 1.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Example:
        >>> nn.losses.hinge_loss(mx.array([0.5]), mx.array([1.0]))
        array([0.5], dtype=float32)
    """
    return _reduce(mx.maximum(1 - inputs * targets, 0), reduction)


@_float32
def huber_loss(
    inputs: mx.array, targets: mx.array, delta: float = 1.0, reduction: Reduction = "none"
) -> mx.array:
    """``d²/2`` where the absolute difference ``d`` is at most ``delta``, else ``delta·(d - delta/2)``.

    Args:
        inputs: The predictions.
        targets: The targets.
        delta: Where the loss turns from quadratic to linear.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Example:
        >>> nn.losses.huber_loss(mx.array([0.0]), mx.array([2.0]))
        array([1.5], dtype=float32)
    """
    difference = mx.abs(inputs - targets)
    quadratic = mx.minimum(difference, delta)
    loss = 0.5 * mx.square(quadratic) + delta * (difference - quadratic)
    return _reduce(loss, reduction)


@_float32
def log_cosh_loss(
    inputs: mx.array, targets: mx.array, reduction: Reduction = "none"
) -> mx.array:
    """``log(cosh(inputs - targets))``, without overflow.

    Args:
        inputs: The predictions.
        targets: The targets.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Example:
        >>> nn.losses.log_cosh_loss(mx.array([1.0]), mx.array([1.0]))
        array([0], dtype=float32)
    """
    difference = inputs - targets
    return _reduce(mx.logaddexp(difference, -difference) - math.log(2), reduction)


@_float32
def cosine_similarity_loss(
    x1: mx.array,
    x2: mx.array,
    axis: int = 1,
    eps: float = 1e-8,
    reduction: Reduction = "none",
) -> mx.array:
    """The cosine of the angle between vectors.

    Args:
        x1: The vectors.
        x2: The other vectors.
        axis: The axis of the features.
        eps: The least product of their lengths.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Example:
        >>> nn.losses.cosine_similarity_loss(mx.array([[1.0, 0.0]]), mx.array([[1.0, 0.0]]))
        array([1], dtype=float32)
    """

    def length(x: mx.array) -> mx.array:
        return mx.sqrt(mx.sum(mx.square(x), axis=axis))

    # Lengths come first: both arrays have to have the axis.
    lengths = length(x1) * length(x2)
    return _reduce(mx.sum(x1 * x2, axis=axis) / mx.maximum(lengths, eps), reduction)


@_float32
def margin_ranking_loss(
    inputs1: mx.array,
    inputs2: mx.array,
    targets: mx.array,
    margin: float = 0.0,
    reduction: Reduction = "none",
) -> mx.array:
    """``max(0, -targets · (inputs1 - inputs2) + margin)``.

    Args:
        inputs1: The scores of the first of each pair.
        inputs2: The scores of the second.
        targets: 1 where the first ranks higher, -1 where the second does.
        margin: The margin.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: If the shapes differ.

    Example:
        >>> nn.losses.margin_ranking_loss(mx.array([1.0]), mx.array([2.0]), mx.array([1.0]))
        array([1], dtype=float32)
    """
    if not (inputs1.shape == inputs2.shape == targets.shape):
        raise ValueError(
            "The shapes of the arguments do not match. The provided shapes are "
            f"inputs1.shape={inputs1.shape}, inputs2.shape={inputs2.shape}, and "
            f"targets.shape={targets.shape}."
        )
    return _reduce(mx.maximum(0, -targets * (inputs1 - inputs2) + margin), reduction)
