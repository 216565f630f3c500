"""Activation functions, and modules that apply them.

An activation records its operations, which become one kernel with their neighbours when they are
evaluated; so there is nothing to be won by compiling each of them.
"""

from __future__ import annotations

from typing import Any, Callable, ClassVar

import cupola.core as mx
from cupola.nn.layers.base import Module


def relu(x: mx.array) -> mx.array:
    """The rectified linear unit, ``max(x, 0)``."""
    return mx._nn.relu(x)


def relu2(x: mx.array) -> mx.array:
    """The square of the rectified linear unit, ``max(x, 0)²``."""
    return mx.square(mx.maximum(x, 0))


def relu6(x: mx.array) -> mx.array:
    """The rectified linear unit, at most 6: ``min(max(x, 0), 6)``."""
    return mx.minimum(mx.maximum(x, 0), 6.0)


def leaky_relu(x: mx.array, negative_slope: float = 0.01) -> mx.array:
    """The leaky rectified linear unit, ``max(negative_slope · x, x)``."""
    return mx.maximum(negative_slope * x, x)


def prelu(x: mx.array, alpha: mx.array) -> mx.array:
    """The parametric rectified linear unit, ``max(0, x) + alpha · min(0, x)``."""
    return mx.maximum(0, x) + alpha * mx.minimum(0, x)


def elu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """The exponential linear unit: ``x`` above 0 and ``alpha · (exp(x) - 1)`` elsewhere."""
    return mx._nn.elu(x, alpha)


def celu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """The continuously differentiable exponential linear unit.

    ``max(0, x) + min(0, alpha · (exp(x / alpha) - 1))``.
    """
    return mx._nn.celu(x, alpha)


def selu(x: mx.array) -> mx.array:
    """The scaled exponential linear unit, ``1.0507 · elu(x, 1.67326)``.

    The constants are those of Klambauer et al., *Self-Normalizing Neural Networks* (2017).
    """
    return mx._nn.selu(x)


def gelu(x: mx.array) -> mx.array:
    """The Gaussian error linear unit, ``x · Φ(x)`` with Φ the normal distribution function."""
    return mx._nn.gelu(x)


def gelu_approx(x: mx.array) -> mx.array:
    """The Gaussian error linear unit by a hyperbolic tangent; off by less than 0.0005.

    ``0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))``, from Hendrycks and Gimpel, *Gaussian
    Error Linear Units* (2016).
    """
    return mx._nn.gelu_approx(x)


def gelu_fast_approx(x: mx.array) -> mx.array:
    """The Gaussian error linear unit by a sigmoid, ``x · σ(1.702 · x)``; off by less than 0.015.

    From Hendrycks and Gimpel, *Gaussian Error Linear Units* (2016).
    """
    return x * mx.sigmoid(1.702 * x)


def sigmoid(x: mx.array) -> mx.array:
    """The logistic function, ``1 / (1 + exp(-x))``."""
    return mx.sigmoid(x)


def silu(x: mx.array) -> mx.array:
    """The sigmoid linear unit or swish, ``x · σ(x)``."""
    return mx._nn.silu(x)


def log_sigmoid(x: mx.array) -> mx.array:
    """The logarithm of the logistic function, ``-log(1 + exp(-x))``."""
    return mx._nn.log_sigmoid(x)


def softplus(x: mx.array) -> mx.array:
    """``log(1 + exp(x))``, without overflow."""
    return mx._nn.softplus(x)


def softsign(x: mx.array) -> mx.array:
    """``x / (1 + |x|)``."""
    return mx._nn.softsign(x)


def mish(x: mx.array) -> mx.array:
    """``x · tanh(softplus(x))``, from Misra, *Mish* (2019)."""
    return mx._nn.mish(x)


def tanh(x: mx.array) -> mx.array:
    """The hyperbolic tangent."""
    return mx.tanh(x)


def hardswish(x: mx.array) -> mx.array:
    """``x · min(max(x + 3, 0), 6) / 6``, from Howard et al., *MobileNetV3* (2019)."""
    return x * mx.minimum(mx.maximum(x + 3, 0), 6) / 6


def hard_tanh(x: mx.array, min_val: float = -1.0, max_val: float = 1.0) -> mx.array:
    """``x`` between ``min_val`` and ``max_val``."""
    return mx.minimum(mx.maximum(x, min_val), max_val)


def hard_shrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """``x`` where ``|x| > lambd``, and 0 elsewhere."""
    return mx._nn.hard_shrink(x, lambd)


def softshrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """``x`` drawn towards 0 by ``lambd``, and 0 within it."""
    return mx._nn.softshrink(x, lambd)


def softmax(x: mx.array, axis: Any = -1) -> mx.array:
    """``exp(x) / Σ exp(x)`` along ``axis``."""
    return mx.softmax(x, axis=axis)


def softmin(x: mx.array, axis: Any = -1) -> mx.array:
    """``exp(-x) / Σ exp(-x)`` along ``axis``."""
    return mx.softmax(-x, axis=axis)


def log_softmax(x: mx.array, axis: Any = -1) -> mx.array:
    """``x - log Σ exp(x)`` along ``axis``."""
    return x - mx.logsumexp(x, axis=axis, keepdims=True)


def step(x: mx.array, threshold: float = 0.0) -> mx.array:
    """1 from ``threshold`` on and 0 below it, as integers."""
    return mx.where(x >= threshold, 1, 0)


def glu(x: mx.array, axis: int = -1) -> mx.array:
    """The gated linear unit: ``a · σ(b)`` for the halves ``a`` and ``b`` of ``x`` along ``axis``.

    Raises:
        ValueError: If the axis has an odd length.
    """
    return mx._nn.glu(x, axis)


class _Activation(Module):
    """A module that applies a function without parameters."""

    _function: ClassVar[Callable[[mx.array], mx.array]]

    def __call__(self, x: mx.array) -> mx.array:
        """Apply the function."""
        return type(self)._function(x)


class ReLU(_Activation):
    """Applies :func:`relu`."""

    _function = staticmethod(relu)


class ReLU2(_Activation):
    """Applies :func:`relu2`."""

    _function = staticmethod(relu2)


class ReLU6(_Activation):
    """Applies :func:`relu6`."""

    _function = staticmethod(relu6)


class SELU(_Activation):
    """Applies :func:`selu`."""

    _function = staticmethod(selu)


class Sigmoid(_Activation):
    """Applies :func:`sigmoid`."""

    _function = staticmethod(sigmoid)


class SiLU(_Activation):
    """Applies :func:`silu`."""

    _function = staticmethod(silu)


class LogSigmoid(_Activation):
    """Applies :func:`log_sigmoid`."""

    _function = staticmethod(log_sigmoid)


class Softplus(_Activation):
    """Applies :func:`softplus`."""

    _function = staticmethod(softplus)


class Softsign(_Activation):
    """Applies :func:`softsign`."""

    _function = staticmethod(softsign)


class Mish(_Activation):
    """Applies :func:`mish`."""

    _function = staticmethod(mish)


class Tanh(_Activation):
    """Applies :func:`tanh`."""

    _function = staticmethod(tanh)


class Hardswish(_Activation):
    """Applies :func:`hardswish`."""

    _function = staticmethod(hardswish)


class HardTanh(_Activation):
    """Applies :func:`hard_tanh`."""

    _function = staticmethod(hard_tanh)


class Softmax(_Activation):
    """Applies :func:`softmax`."""

    _function = staticmethod(softmax)


class Softmin(_Activation):
    """Applies :func:`softmin`."""

    _function = staticmethod(softmin)


class LogSoftmax(_Activation):
    """Applies :func:`log_softmax`."""

    _function = staticmethod(log_softmax)


class LeakyReLU(Module):
    """Applies :func:`leaky_relu`.

    Args:
        negative_slope: The slope below 0.
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self._negative_slope = negative_slope

    def __call__(self, x: mx.array) -> mx.array:
        """Apply :func:`leaky_relu`."""
        return leaky_relu(x, self._negative_slope)


class ELU(Module):
    """Applies :func:`elu`.

    Args:
        alpha: What the function tends to below 0, but for its sign.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: mx.array) -> mx.array:
        """Apply :func:`elu`."""
        return elu(x, self._alpha)


class CELU(Module):
    """Applies :func:`celu`.

    Args:
        alpha: What the function tends to below 0, but for its sign.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: mx.array) -> mx.array:
        """Apply :func:`celu`."""
        return celu(x, self._alpha)


class HardShrink(Module):
    """Applies :func:`hard_shrink`.

    Args:
        lambd: The distance from 0 up to which the result is 0.
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: mx.array) -> mx.array:
        """Apply :func:`hard_shrink`."""
        return hard_shrink(x, self.lambd)


class Softshrink(Module):
    """Applies :func:`softshrink`.

    Args:
        lambd: The distance by which values are drawn towards 0.
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: mx.array) -> mx.array:
        """Apply :func:`softshrink`."""
        return softshrink(x, self.lambd)


class Step(Module):
    """Applies :func:`step`.

    Args:
        threshold: Where the step is.
    """

    def __init__(self, threshold: float = 0.0) -> None:
        super().__init__()
        self.threshold = threshold

    def __call__(self, x: mx.array) -> mx.array:
        """Apply :func:`step`."""
        return step(x, self.threshold)


class GLU(Module):
    """Applies :func:`glu`.

    Args:
        axis: The axis to split.
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: mx.array) -> mx.array:
        """Apply :func:`glu`."""
        return glu(x, self.axis)


class PReLU(Module):
    """Applies :func:`prelu` with a slope that is learned.

    Args:
        num_parameters: How many slopes there are: one, or one for each feature.
        init: Where they begin.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.weight = mx.full([num_parameters], init)

    def __call__(self, x: mx.array) -> mx.array:
        """Apply :func:`prelu`."""
        return prelu(x, self.weight)


_GELUS = {
    "none": gelu,
    "precise": gelu_approx,
    "tanh": gelu_approx,
    "fast": gelu_fast_approx,
}


class GELU(Module):
    """Applies the Gaussian error linear unit.

    Args:
        approx: ``"none"`` for :func:`gelu`, ``"precise"`` or ``"tanh"`` for :func:`gelu_approx`,
            ``"fast"`` for :func:`gelu_fast_approx`.

    Raises:
        ValueError: If ``approx`` is none of these.
    """

    def __init__(self, approx: str = "none") -> None:
        super().__init__()
        if approx not in _GELUS:
            raise ValueError(
                f"The approximation should be in {list(_GELUS)} but {approx!r} was given"
            )
        self._approx = approx

    def __call__(self, x: mx.array) -> mx.array:
        """Apply the function that was chosen."""
        return _GELUS[self._approx](x)
