"""Normalisation."""

from __future__ import annotations

import math
from typing import Any, Callable

import cupola.core as mx
from cupola.nn.layers.base import Module


def _check(layer: Module, eps: float) -> float:
    """``eps``, which has to be positive."""
    if not eps > 0:
        raise ValueError(f"[{type(layer).__name__}] eps must be positive, not {eps}")
    return eps


def _cast_as_one(op: str, norm: Callable[[mx.array], mx.array], x: mx.array) -> mx.array:
    """What ``norm`` makes of ``x``: where a policy casts ``op``, in float32 inside, and the result is cast."""
    policy = mx._amp.policy()
    if policy is None or op in policy.ops("unchanged"):
        return norm(x)
    is_cast = mx.issubdtype(x.dtype, mx.floating) and x.dtype != mx.float64
    with mx._amp.Scope():
        y = norm(x.astype(mx.float32) if is_cast else x)
    return mx._amp.result(op, y)


class InstanceNorm(Module):
    """Normalises each feature of each sample over the spatial axes.

    From Ulyanov et al., *Instance Normalization* (2016). The input is of shape ``[N, ..., C]`` with at
    least one axis in between; ``weight`` and ``bias`` are of shape ``[C]``.

    Args:
        dims: The number of features.
        eps: Added to the variance.
        affine: Whether a scale and an offset are learned.

    Raises:
        ValueError: If ``eps`` is not positive, or the input has fewer than 3 axes.

    Example:
        >>> nn.InstanceNorm(3)(mx.ones((2, 5, 3))).shape
        (2, 5, 3)
    """

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = False) -> None:
        super().__init__()
        if affine:
            self.weight = mx.ones((dims,))
            self.bias = mx.zeros((dims,))
        self.dims = dims
        self.eps = _check(self, eps)

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        """Normalise ``x``."""
        if x.ndim < 3:
            raise ValueError(
                "InstanceNorm expects inputs with at least 3 dimensions (N, ..., C) but the "
                f"input has {x.ndim} dimensions."
            )
        return _cast_as_one("group_norm", self._normalised, x)

    def _normalised(self, x: mx.array) -> mx.array:
        # Each feature of a sample becomes a row, for the fast normalisation of the last axis.
        batch, *spatial, features = x.shape
        rows = x.reshape(batch, -1, features).swapaxes(1, 2)
        rows = mx.fast.layer_norm(rows, None, None, self.eps)
        x = rows.swapaxes(1, 2).reshape(batch, *spatial, features)
        return self.weight * x + self.bias if "weight" in self else x


class LayerNorm(Module):
    """Normalises the last axis.

    From Ba et al., *Layer Normalization* (2016). ``weight`` and ``bias`` are of shape ``[dims]``.

    Args:
        dims: The number of features.
        eps: Added to the variance.
        affine: Whether a scale is learned.
        bias: Whether an offset is learned, too.

    Example:
        >>> nn.LayerNorm(2)(mx.array([[1.0, 3.0]])).round(3)
        array([[-1, 1]], dtype=float32)
    """

    def __init__(
        self, dims: int, eps: float = 1e-5, affine: bool = True, bias: bool = True
    ) -> None:
        super().__init__()
        if affine:
            self.weight = mx.ones((dims,))
            if bias:
                self.bias = mx.zeros((dims,))
        self.eps = _check(self, eps)
        self.dims = dims

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        """Normalise ``x``."""
        return mx.fast.layer_norm(x, self.get("weight"), self.get("bias"), self.eps)


class RMSNorm(Module):
    """Divides by the root of the mean square of the last axis.

    From Zhang and Sennrich, *Root Mean Square Layer Normalization* (2019). ``weight`` is of shape
    ``[dims]``.

    Args:
        dims: The number of features.
        eps: Added to the mean square.

    Example:
        >>> nn.RMSNorm(2)(mx.array([[3.0, 3.0]])).round(3)
        array([[1, 1]], dtype=float32)
    """

    def __init__(self, dims: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = mx.ones((dims,))
        self.eps = _check(self, eps)

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"

    def __call__(self, x: mx.array) -> mx.array:
        """Normalise ``x``."""
        return mx.fast.rms_norm(x, self.weight, self.eps)


class GroupNorm(Module):
    """Normalises groups of features together, over the spatial axes.

    From Wu and He, *Group Normalization* (2018). The input is of shape ``[N, ..., C]``; ``weight``
    and ``bias`` are of shape ``[C]``.

    Args:
        num_groups: The number of groups.
        dims: The number of features.
        eps: Added to the variance.
        affine: Whether a scale and an offset are learned.
        pytorch_compatible: Whether a group is a run of neighbouring features, as in PyTorch;
            otherwise it is every ``num_groups``-th feature.

    Example:
        >>> nn.GroupNorm(2, 6)(mx.ones((2, 5, 6))).shape
        (2, 5, 6)
    """

    def __init__(
        self,
        num_groups: int,
        dims: int,
        eps: float = 1e-5,
        affine: bool = True,
        pytorch_compatible: bool = False,
    ) -> None:
        super().__init__()
        if num_groups < 1:
            raise ValueError(f"[GroupNorm] the number of groups must be positive, not {num_groups}")
        if dims < 1 or dims % num_groups:
            raise ValueError(f"[GroupNorm] {dims} features are not {num_groups} groups of as many")
        if affine:
            self.bias = mx.zeros((dims,))
            self.weight = mx.ones((dims,))
        self.num_groups = num_groups
        self.dims = dims
        self.eps = _check(self, eps)
        self.pytorch_compatible = pytorch_compatible

    def _extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.dims}, eps={self.eps}, affine={'weight' in self}, "
            f"pytorch_compatible={self.pytorch_compatible}"
        )

    def _neighbours(self, x: mx.array) -> mx.array:
        """Normalise groups of neighbouring features."""
        if not mx.issubdtype(x.dtype, mx.floating):
            raise ValueError(f"[GroupNorm] Received unsupported type {x.dtype}.")
        return mx.fast.group_norm(x, self.num_groups, eps=self.eps)

    def _interleaved(self, x: mx.array) -> mx.array:
        """Normalise groups of every ``num_groups``-th feature."""
        shape = x.shape
        x = x.reshape(shape[0], math.prod(shape[1:]) // self.num_groups, self.num_groups)
        mean = mx.mean(x, axis=1, keepdims=True)
        var = mx.var(x, axis=1, keepdims=True)
        return ((x - mean) * mx.rsqrt(var + self.eps)).reshape(shape)

    def _normalised(self, x: mx.array) -> mx.array:
        x = self._neighbours(x) if self.pytorch_compatible else self._interleaved(x)
        return self.weight * x + self.bias if "weight" in self else x

    def __call__(self, x: mx.array) -> mx.array:
        """Normalise ``x``."""
        return _cast_as_one("group_norm", self._normalised, x)


class BatchNorm(Module):
    """Normalises each feature over all other axes.

    From Ioffe and Szegedy, *Batch Normalization* (2015). In training the mean and the variance are
    those of the batch, and running means of them are kept in ``running_mean`` and ``running_var``;
    in evaluation these are used. All four arrays are of shape ``[num_features]``.

    Args:
        num_features: The length of the last axis.
        eps: Added to the variance.
        momentum: The weight of a batch in the running means.
        affine: Whether a scale and an offset are learned.
        track_running_stats: Whether running means are kept.

    Raises:
        ValueError: If the input has fewer than 2 or more than 4 axes, or is one value a feature
            in training.

    Example:
        >>> layer = nn.BatchNorm(3)
        >>> layer(mx.ones((5, 3))).shape
        (5, 3)
        >>> layer.running_mean.round(3)
        array([0.1, 0.1, 0.1], dtype=float32)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = _check(self, eps)
        self.momentum = momentum
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = mx.ones((num_features,))
            self.bias = mx.zeros((num_features,))
        if track_running_stats:
            self.running_mean = mx.zeros((num_features,))
            self.running_var = mx.ones((num_features,))
            self._freeze_statistics()

    def _freeze_statistics(self) -> None:
        self.freeze(keys=["running_mean", "running_var"], recurse=False)

    def unfreeze(self, *args: Any, **kwargs: Any) -> Module:
        """Undo :meth:`freeze`, but for the running means, which are never trained."""
        super().unfreeze(*args, **kwargs)
        self._freeze_statistics()
        return self

    def _extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={'weight' in self}, track_running_stats={self.track_running_stats}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Normalise ``x``."""
        if x.ndim < 2 or x.ndim > 4:
            raise ValueError(
                f"Expected input tensor to have 2, 3 or 4 dimensions, but got {x.ndim}"
            )
        affine = (self.weight, self.bias) if "weight" in self else None
        # Under autocast the result is of x's dtype, whatever the parameters are of.
        keeps = mx.issubdtype(x.dtype, mx.inexact) and mx._amp.policy() is not None
        if not self.training and self.track_running_stats:
            y = (x - self.running_mean) * mx.rsqrt(self.running_var + self.eps)
            y = affine[0] * y + affine[1] if affine else y
            return y.astype(x.dtype) if keeps else y
        count = x.size // x.shape[-1]
        if self.training and count <= 1:
            raise ValueError("BatchNorm training requires more than one value per channel.")
        if not mx.issubdtype(x.dtype, mx.inexact):
            x = x.astype(mx.float32)
        # Where a weight is of another dtype than x, the result is of both's; under autocast it keeps x's.
        inside = affine is not None and (keeps or all(a.dtype == x.dtype for a in affine))
        weight, bias = affine if affine is not None and inside else (None, None)
        y, mean, var = mx._nn.batch_norm(x, weight, bias, self.eps)
        if self.training and self.track_running_stats:
            # The running variance is the unbiased one, as in PyTorch.
            self._track(mean, var, count / (count - 1))
        return y if inside or affine is None else affine[0] * y + affine[1]

    def _track(self, mean: mx.array, var: mx.array, unbiased: float) -> None:
        for name, batch, scale in (("running_mean", mean, 1.0), ("running_var", var, unbiased)):
            self[name] = mx._nn.running_mean(self[name], batch, self.momentum, scale)
