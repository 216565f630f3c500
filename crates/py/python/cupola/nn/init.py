"""Initialisers: functions that give a function from an array to a new one of its shape."""

from __future__ import annotations

import math
from typing import Callable, Literal, Tuple

import cupola.core as mx


def constant(value: float, dtype: mx.Dtype = mx.float32) -> Callable[[mx.array], mx.array]:
    """Everywhere ``value``.

    Args:
        value: The value.
        dtype: The dtype of the arrays.

    Example:
        >>> constant(0.5)(mx.zeros((2, 2)))
        array([[0.5, 0.5],
               [0.5, 0.5]], dtype=float32)
    """

    def initializer(a: mx.array) -> mx.array:
        return mx.full(a.shape, value, dtype=dtype)

    return initializer


def normal(
    mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32
) -> Callable[[mx.array], mx.array]:
    """Normally distributed.

    Args:
        mean: The mean.
        std: The standard deviation.
        dtype: The dtype of the arrays.

    Example:
        >>> nn.init.normal(std=0.1)(mx.zeros((2, 3))).shape
        (2, 3)
    """

    def initializer(a: mx.array) -> mx.array:
        return mx.random.normal(shape=a.shape, scale=std, loc=mean, dtype=dtype)

    return initializer


def uniform(
    low: float = 0.0, high: float = 1.0, dtype: mx.Dtype = mx.float32
) -> Callable[[mx.array], mx.array]:
    """Uniformly distributed from ``low`` to ``high``.

    Args:
        low: The lower bound.
        high: The upper bound.
        dtype: The dtype of the arrays.

    Example:
        >>> nn.init.uniform(-1, 1)(mx.zeros((2, 3))).shape
        (2, 3)
    """

    def initializer(a: mx.array) -> mx.array:
        return mx.random.uniform(low, high, a.shape, dtype=dtype)

    return initializer


def identity(dtype: mx.Dtype = mx.float32) -> Callable[[mx.array], mx.array]:
    """Identity matrices; a ``ValueError`` for an array that is no square matrix.

    Args:
        dtype: The dtype of the arrays.

    Example:
        >>> nn.init.identity()(mx.zeros((2, 2)))
        array([[1, 0],
               [0, 1]], dtype=float32)
    """

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2 or a.shape[0] != a.shape[1]:
            raise ValueError(f"The input array must be a square matrix but got shape {a.shape}.")
        return mx.eye(a.shape[0], dtype=dtype)

    return initializer


def _calculate_fan_in_fan_out(x: mx.array) -> Tuple[int, int]:
    """How many inputs an output of the weights depends on, and how many outputs an input has."""
    if x.ndim < 2:
        raise ValueError(
            "Glorot / He initialization requires at least 2 dimensional input but input with "
            f"{x.ndim} dimensions."
        )
    field = math.prod(x.shape[1:-1])
    return x.shape[-1] * field, x.shape[0] * field


def _fan(x: mx.array, mode: str) -> int:
    fan_in, fan_out = _calculate_fan_in_fan_out(x)
    if mode == "fan_in":
        return fan_in
    if mode == "fan_out":
        return fan_out
    raise ValueError(f"Invalid mode: {mode}. Valid modes are: fan_in, fan_out")


def glorot_normal(
    dtype: mx.Dtype = mx.float32,
) -> Callable[[mx.array, float], mx.array]:
    """Normally distributed with standard deviation ``gain · √(2 / (fan_in + fan_out))``.

    From Glorot and Bengio, *Understanding the difficulty of training deep feedforward neural
    networks* (2010). The initialiser takes ``gain``, 1 by default.

    Args:
        dtype: The dtype of the arrays.

    Example:
        >>> nn.init.glorot_normal()(mx.zeros((2, 3))).shape
        (2, 3)
    """

    def initializer(a: mx.array, gain: float = 1.0) -> mx.array:
        fan_in, fan_out = _calculate_fan_in_fan_out(a)
        std = gain * math.sqrt(2.0 / (fan_in + fan_out))
        return mx.random.normal(shape=a.shape, scale=std, dtype=dtype)

    return initializer


def glorot_uniform(
    dtype: mx.Dtype = mx.float32,
) -> Callable[[mx.array, float], mx.array]:
    """Uniformly distributed within ``±gain · √(6 / (fan_in + fan_out))``.

    From Glorot and Bengio, *Understanding the difficulty of training deep feedforward neural
    networks* (2010). The initialiser takes ``gain``, 1 by default.

    Args:
        dtype: The dtype of the arrays.

    Example:
        >>> nn.init.glorot_uniform()(mx.zeros((2, 3))).shape
        (2, 3)
    """

    def initializer(a: mx.array, gain: float = 1.0) -> mx.array:
        fan_in, fan_out = _calculate_fan_in_fan_out(a)
        limit = gain * math.sqrt(6.0 / (fan_in + fan_out))
        return mx.random.uniform(-limit, limit, a.shape, dtype=dtype)

    return initializer


def he_normal(
    dtype: mx.Dtype = mx.float32,
) -> Callable[[mx.array, Literal["fan_in", "fan_out"], float], mx.array]:
    """Normally distributed with standard deviation ``gain / √fan``.

    From He et al., *Delving Deep into Rectifiers* (2015). The initialiser takes ``mode``,
    ``"fan_in"`` by default or ``"fan_out"``, and ``gain``, 1 by default.

    Args:
        dtype: The dtype of the arrays.

    Example:
        >>> nn.init.he_normal()(mx.zeros((2, 3))).shape
        (2, 3)
    """

    def initializer(
        a: mx.array, mode: Literal["fan_in", "fan_out"] = "fan_in", gain: float = 1.0
    ) -> mx.array:
        std = gain / math.sqrt(_fan(a, mode))
        return mx.random.normal(shape=a.shape, scale=std, dtype=dtype)

    return initializer


def he_uniform(
    dtype: mx.Dtype = mx.float32,
) -> Callable[[mx.array, Literal["fan_in", "fan_out"], float], mx.array]:
    """Uniformly distributed within ``±gain · √(3 / fan)``.

    From He et al., *Delving Deep into Rectifiers* (2015). The initialiser takes ``mode``,
    ``"fan_in"`` by default or ``"fan_out"``, and ``gain``, 1 by default.

    Args:
        dtype: The dtype of the arrays.

    Example:
        >>> nn.init.he_uniform()(mx.zeros((2, 3))).shape
        (2, 3)
    """

    def initializer(
        a: mx.array, mode: Literal["fan_in", "fan_out"] = "fan_in", gain: float = 1.0
    ) -> mx.array:
        limit = gain * math.sqrt(3.0 / _fan(a, mode))
        return mx.random.uniform(-limit, limit, a.shape, dtype=dtype)

    return initializer


def sparse(
    sparsity: float, mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32
) -> Callable[[mx.array], mx.array]:
    """Normally distributed with a part of each row of a matrix at 0.

    From Martens, *Deep learning via Hessian-free optimization* (2010). The initialiser raises a
    ``ValueError`` for an array that is no matrix.

    Args:
        sparsity: The part of each row, rounded up, that is 0.
        mean: The mean of the others.
        std: Their standard deviation.
        dtype: The dtype of the arrays.

    Example:
        >>> nn.init.sparse(0.5)(mx.zeros((2, 4))).shape
        (2, 4)
    """

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2:
            raise ValueError("Only tensors with 2 dimensions are supported")
        zeros = math.ceil(sparsity * a.shape[1])
        # Each row's ranks of random numbers are a random permutation.
        order = mx.argsort(mx.random.uniform(shape=a.shape), axis=1)
        values = mx.random.normal(shape=a.shape, scale=std, loc=mean, dtype=dtype)
        blank = mx.zeros((a.shape[0], min(zeros, a.shape[1])), dtype=dtype)
        return mx.put_along_axis(values, order[:, :zeros], blank, axis=1)

    return initializer


def orthogonal(
    gain: float = 1.0, dtype: mx.Dtype = mx.float32
) -> Callable[[mx.array], mx.array]:
    """A random orthogonal matrix, or a part of one, times ``gain``.

    From Saxe et al., *Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks* (2014). The initialiser raises a ``ValueError`` for an array that is no matrix.

    Args:
        gain: The factor.
        dtype: The dtype of the arrays.

    Example:
        >>> nn.init.orthogonal()(mx.zeros((2, 3))).shape
        (2, 3)
    """

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2:
            raise ValueError(
                f"Orthogonal initialization requires a 2D array but got a {a.ndim}D array."
            )
        rows, columns = a.shape
        # As all directions of a normally distributed vector are alike, so are those of the result:
        # signs as in Mezzadri, How to generate random matrices from the classical compact groups.
        # Square, so that a seed gives what it gives in MLX.
        size = max(rows, columns)
        basis, triangle = mx.linalg.qr(mx.random.normal(shape=(size, size)))
        basis = basis * mx.where(mx.diag(triangle) < 0, -1, 1)
        return (gain * basis[:rows, :columns]).astype(dtype)

    return initializer
