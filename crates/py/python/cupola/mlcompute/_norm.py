"""Layers that normalize: over batches, instances, groups of channels, or features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cupola.core as mx

from ._layer import Layer, learnt, taking
from ._tensor import Tensor


def _scales(label: str, shape: Sequence[int], gamma: Any, beta: Any) -> dict[str, Tensor]:
    return {
        "gamma": learnt(label, "gamma", gamma, shape, lambda: mx.ones(list(shape))),
        "beta": learnt(label, "beta", beta, shape, lambda: mx.zeros(list(shape))),
    }


def _channels(values: mx.array, ndim: int) -> mx.array:
    """One number a channel, beside arrays ``[N, C, ..]``."""
    return values.reshape([1, -1, *[1] * (ndim - 2)])


def _moments(x: mx.array, axes: Sequence[int]) -> tuple[mx.array, mx.array]:
    return mx.mean(x, axis=axes, keepdims=True), mx.var(x, axis=axes, keepdims=True)


def batch_normalization_layer(
    channels: int,
    epsilon: float = 1e-5,
    momentum: float = 0.99,
    gamma: Any = None,
    beta: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Layer:
    """Channels, ``[N, C, ..]``, with mean 0 and variance 1 over the batch, times gamma, plus beta.

    An execution of a training graph takes the batch's own statistics and moves ``mean`` and ``variance`` towards them,
    of which the momentum stays; an inference graph takes these.

    Example:
        >>> list(batch_normalization_layer(4).states)
        ['mean', 'variance']
    """
    states = {
        "mean": learnt("batch normalization", "mean", mean, [channels], lambda: mx.zeros(channels)),
        "variance": learnt(
            "batch normalization", "variance", variance, [channels], lambda: mx.ones(channels)
        ),
    }

    def forward(inputs: Any, held: Any, training: bool) -> Any:
        taking("batch normalization", inputs, 1)
        (x,) = inputs
        after = {name: held[name] for name in states}
        if training:
            axes = [axis for axis in range(x.ndim) if axis != 1]
            now = dict(zip(states, _moments(x, axes)))
            for name, own in now.items():
                moved = held[name] * momentum + own.reshape(held[name].shape) * (1 - momentum)
                after[name] = mx.stop_gradient(moved)
        else:
            now = {name: _channels(held[name], x.ndim) for name in states}
        gamma, beta = (_channels(held[name], x.ndim) for name in ("gamma", "beta"))
        return (x - now["mean"]) * mx.rsqrt(now["variance"] + epsilon) * gamma + beta, after

    own = _scales("batch normalization", [channels], gamma, beta)
    return Layer("batch_normalization", forward, own, states)


def instance_normalization_layer(
    channels: int, epsilon: float = 1e-5, gamma: Any = None, beta: Any = None
) -> Layer:
    """Each channel of each image with mean 0 and variance 1, times gamma, plus beta."""
    return group_normalization_layer(
        channels, channels, epsilon, gamma, beta, label="instance_normalization"
    )


def group_normalization_layer(
    channels: int,
    groups: int,
    epsilon: float = 1e-5,
    gamma: Any = None,
    beta: Any = None,
    *,
    label: str = "group_normalization",
) -> Layer:
    """Each group of channels of each image with mean 0 and variance 1, times gamma, plus beta."""
    if channels % groups:
        raise ValueError(f"[mlcompute] {label} layer: {groups} groups do not divide {channels}")

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking(label, inputs, 1)
        (x,) = inputs
        rows = x.reshape(x.shape[0], groups, -1)
        mean, variance = _moments(rows, [2])
        rows = (rows - mean) * mx.rsqrt(variance + epsilon)
        gamma, beta = (_channels(held[name], x.ndim) for name in ("gamma", "beta"))
        return rows.reshape(x.shape) * gamma + beta

    return Layer(label, forward, _scales(label, [channels], gamma, beta))


def layer_normalization_layer(
    normalized_shape: Sequence[int], epsilon: float = 1e-5, gamma: Any = None, beta: Any = None
) -> Layer:
    """The last dimensions, which have this shape, with mean 0 and variance 1, times gamma, plus beta."""
    shape = list(normalized_shape)
    size = math.prod(shape)

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking("layer normalization", inputs, 1)
        (x,) = inputs
        if list(x.shape[x.ndim - len(shape) :]) != shape:
            raise ValueError(f"layer normalization layer: {x.shape} does not end with {shape}")
        rows = x.reshape(*x.shape[: x.ndim - len(shape)], size)
        gamma, beta = (held[name].reshape(-1) for name in ("gamma", "beta"))
        return mx.fast.layer_norm(rows, gamma, beta, epsilon).reshape(x.shape)

    own = _scales("layer normalization", shape, gamma, beta)
    return Layer("layer_normalization", forward, own)
