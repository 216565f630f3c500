"""Activation functions, and modules that apply them.

An activation records its operations, which become one kernel with their neighbours when they are
evaluated; so there is nothing to be won by compiling each of them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import cupola.core as mx
from cupola.nn.layers.base import Module


def _numbers(x: Any) -> Any:
    """``x``; an error where it is bytes, which functions of ``cupola.core`` take for numbers."""
    if isinstance(x, (bytes, bytearray, memoryview)):
        raise ValueError(f"an activation is of an array, not of {type(x).__name__}")
    return x


def relu(x: mx.array) -> mx.array:
    """The rectified linear unit, ``max(x, 0)``.

    Example:
        >>> nn.relu(mx.array([-1.0, 2.0]))
        array([0, 2], dtype=float32)
    """
    return mx._nn.relu(x)


def relu2(x: mx.array) -> mx.array:
    """The square of the rectified linear unit, ``max(x, 0)²``.

    Example:
        >>> nn.relu2(mx.array([-1.0, 2.0]))
        array([0, 4], dtype=float32)
    """
    # NaN is kept, and so is its slope.
    return mx.square(mx.where(mx.less_equal(_numbers(x), 0), 0, x))


def relu6(x: mx.array) -> mx.array:
    """The rectified linear unit, at most 6: ``min(max(x, 0), 6)``.

    Example:
        >>> nn.relu6(mx.array([-1.0, 8.0]))
        array([0, 6], dtype=float32)
    """
    return mx.minimum(mx.maximum(_numbers(x), 0), 6.0)


def leaky_relu(x: mx.array, negative_slope: float = 0.01) -> mx.array:
    """The leaky rectified linear unit, ``max(negative_slope · x, x)``.

    Example:
        >>> nn.leaky_relu(mx.array([-1.0, 2.0]))
        array([-0.01, 2], dtype=float32)
    """
    return mx.maximum(negative_slope * x, x)


def prelu(x: mx.array, alpha: mx.array) -> mx.array:
    """The parametric rectified linear unit, ``max(0, x) + alpha · min(0, x)``.

    Example:
        >>> nn.prelu(mx.array([-1.0, 2.0]), mx.array(0.25))
        array([-0.25, 2], dtype=float32)
    """
    cast = lambda value: mx._amp.operand("prelu", value) if isinstance(value, mx.array) else value
    x, alpha = cast(x), cast(alpha)
    return mx.maximum(0, x) + alpha * mx.minimum(0, x)


def elu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """The exponential linear unit: ``x`` above 0 and ``alpha · (exp(x) - 1)`` elsewhere.

    Example:
        >>> nn.elu(mx.array([-1.0, 2.0]))
        array([-0.632121, 2], dtype=float32)
    """
    return mx._nn.elu(x, alpha)


def celu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """The continuously differentiable exponential linear unit.

    ``max(0, x) + min(0, alpha · (exp(x / alpha) - 1))``.

    Example:
        >>> nn.celu(mx.array([-1.0, 2.0]))
        array([-0.632121, 2], dtype=float32)
    """
    return mx._nn.celu(x, alpha)


def selu(x: mx.array) -> mx.array:
    """The scaled exponential linear unit, ``1.0507 · elu(x, 1.67326)``.

    The constants are those of Klambauer et al., *Self-Normalizing Neural Networks* (2017), rounded as in
    MLX.

    Example:
        >>> nn.selu(mx.array([0.0, 1.0]))
        array([0, 1.0507], dtype=float32)
    """
    return elu(x, 1.67326) * 1.0507


def gelu(x: mx.array) -> mx.array:
    """The Gaussian error linear unit, ``x · Φ(x)`` with Φ the normal distribution function.

    Example:
        >>> nn.gelu(mx.array([0.0, 1.0]))
        array([0, 0.841345], dtype=float32)
    """
    return mx._nn.gelu(x)


def gelu_approx(x: mx.array) -> mx.array:
    """The Gaussian error linear unit by a hyperbolic tangent; off by less than 0.0005.

    ``0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))``, from Hendrycks and Gimpel, *Gaussian
    Error Linear Units* (2016).

    Example:
        >>> nn.gelu_approx(mx.array([0.0, 1.0]))
        array([0, 0.841192], dtype=float32)
    """
    return mx._nn.gelu_approx(x)


def gelu_fast_approx(x: mx.array) -> mx.array:
    """The Gaussian error linear unit by a sigmoid, ``x · σ(1.702 · x)``; off by less than 0.015.

    From Hendrycks and Gimpel, *Gaussian Error Linear Units* (2016).

    Example:
        >>> nn.gelu_fast_approx(mx.array([0.0, 1.0]))
        array([0, 0.845796], dtype=float32)
    """
    return x * mx.sigmoid(1.702 * x)


def sigmoid(x: mx.array) -> mx.array:
    """The logistic function, ``1 / (1 + exp(-x))``.

    Example:
        >>> nn.sigmoid(mx.array([0.0, 1.0]))
        array([0.5, 0.731059], dtype=float32)
    """
    return mx.sigmoid(_numbers(x))


def silu(x: mx.array) -> mx.array:
    """The sigmoid linear unit or swish, ``x · σ(x)``.

    Example:
        >>> nn.silu(mx.array([0.0, 1.0]))
        array([0, 0.731059], dtype=float32)
    """
    return mx._nn.silu(x)


def log_sigmoid(x: mx.array) -> mx.array:
    """The logarithm of the logistic function, ``-log(1 + exp(-x))``.

    Example:
        >>> nn.log_sigmoid(mx.array([0.0, 1.0]))
        array([-0.693147, -0.313262], dtype=float32)
    """
    return mx._nn.log_sigmoid(x)


def softplus(x: mx.array) -> mx.array:
    """``log(1 + exp(x))``, without overflow.

    Example:
        >>> nn.softplus(mx.array([0.0, 100.0]))
        array([0.693147, 100], dtype=float32)
    """
    return mx._nn.softplus(x)


def softsign(x: mx.array) -> mx.array:
    """``x / (1 + |x|)``.

    Example:
        >>> nn.softsign(mx.array([0.0, 1.0]))
        array([0, 0.5], dtype=float32)
    """
    return mx._nn.softsign(x)


def mish(x: mx.array) -> mx.array:
    """``x · tanh(softplus(x))``, from Misra, *Mish* (2019).

    Example:
        >>> nn.mish(mx.array([0.0, 1.0]))
        array([0, 0.865098], dtype=float32)
    """
    return mx._nn.mish(x)


def tanh(x: mx.array) -> mx.array:
    """The hyperbolic tangent.

    Example:
        >>> nn.tanh(mx.array([0.0, 1.0]))
        array([0, 0.761594], dtype=float32)
    """
    return mx.tanh(x)


def hardswish(x: mx.array) -> mx.array:
    """``x · min(max(x + 3, 0), 6) / 6``, from Howard et al., *MobileNetV3* (2019).

    Example:
        >>> nn.hardswish(mx.array([-4.0, 3.0]))
        array([-0, 3], dtype=float32)
    """
    return x * mx.minimum(mx.maximum(x + 3, 0), 6) / 6


def hard_sigmoid(x: mx.array) -> mx.array:
    """``min(max(x + 3, 0), 6) / 6``, from Howard et al., *MobileNetV3* (2019).

    Example:
        >>> nn.hard_sigmoid(mx.array([-4.0, 0.0, 3.0]))
        array([0, 0.5, 1], dtype=float32)
    """
    return mx._nn.hard_sigmoid(x)


def hard_tanh(x: mx.array, min_val: float = -1.0, max_val: float = 1.0) -> mx.array:
    """``x`` between ``min_val`` and ``max_val``.

    Example:
        >>> nn.hard_tanh(mx.array([-4.0, 0.5]))
        array([-1, 0.5], dtype=float32)
    """
    return mx.minimum(mx.maximum(_numbers(x), min_val), max_val)


def hard_shrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """``x`` where ``|x| > lambd``, and 0 elsewhere.

    Example:
        >>> nn.hard_shrink(mx.array([-0.25, 2.0]))
        array([0, 2], dtype=float32)
    """
    return mx._nn.hard_shrink(x, lambd)


def softshrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """``x`` drawn towards 0 by ``lambd``, and 0 within it.

    Example:
        >>> nn.softshrink(mx.array([-0.25, 2.0]))
        array([0, 1.5], dtype=float32)
    """
    return mx._nn.softshrink(x, lambd)


def softmax(x: mx.array, axis: Any = -1) -> mx.array:
    """``exp(x) / Σ exp(x)`` along ``axis``.

    Example:
        >>> nn.softmax(mx.array([0.0, 0.0]))
        array([0.5, 0.5], dtype=float32)
    """
    return mx.softmax(x, axis=axis)


def softmin(x: mx.array, axis: Any = -1) -> mx.array:
    """``exp(-x) / Σ exp(-x)`` along ``axis``.

    Example:
        >>> nn.softmin(mx.array([0.0, 0.0]))
        array([0.5, 0.5], dtype=float32)
    """
    return mx.softmax(-x, axis=axis)


def log_softmax(x: mx.array, axis: Any = -1) -> mx.array:
    """``x - log Σ exp(x)`` along ``axis``, accurate near 0; half types are rounded once.

    Example:
        >>> nn.log_softmax(mx.array([0.0, 0.0]))
        array([-0.693147, -0.693147], dtype=float32)
    """
    return mx._nn.log_softmax(x, axis)


def step(x: mx.array, threshold: float = 0.0) -> mx.array:
    """1 from ``threshold`` on and 0 below it, as integers.

    Example:
        >>> nn.step(mx.array([-1.0, 0.0]))
        array([0, 1], dtype=int32)
    """
    return mx.where(x >= threshold, 1, 0)


def glu(x: mx.array, axis: int = -1) -> mx.array:
    """The gated linear unit: ``a · σ(b)`` for the halves ``a`` and ``b`` of ``x`` along ``axis``.

    Raises:
        ValueError: If the axis has an odd length.

    Example:
        >>> nn.glu(mx.array([1.0, 2.0, 0.0, 0.0]))
        array([0.5, 1], dtype=float32)
    """
    return mx._nn.glu(x, axis)


class _Activation(Module):
    """A module that applies a function without parameters."""

    _function: ClassVar[Any]

    def __call__(self, x: mx.array) -> mx.array:
        """Apply the function."""
        return type(self)._function(x)


class ReLU(_Activation):
    """Applies :func:`relu`.

    Example:
        >>> nn.ReLU()(mx.array([-1.0, 2.0]))
        array([0, 2], dtype=float32)
    """

    _function = staticmethod(relu)


class ReLU2(_Activation):
    """Applies :func:`relu2`.

    Example:
        >>> nn.ReLU2()(mx.array([-1.0, 2.0]))
        array([0, 4], dtype=float32)
    """

    _function = staticmethod(relu2)


class ReLU6(_Activation):
    """Applies :func:`relu6`.

    Example:
        >>> nn.ReLU6()(mx.array([-1.0, 8.0]))
        array([0, 6], dtype=float32)
    """

    _function = staticmethod(relu6)


class SELU(_Activation):
    """Applies :func:`selu`.

    Example:
        >>> nn.SELU()(mx.array([0.0, 1.0]))
        array([0, 1.0507], dtype=float32)
    """

    _function = staticmethod(selu)


class Sigmoid(_Activation):
    """Applies :func:`sigmoid`.

    Example:
        >>> nn.Sigmoid()(mx.array([0.0, 1.0]))
        array([0.5, 0.731059], dtype=float32)
    """

    _function = staticmethod(sigmoid)


class SiLU(_Activation):
    """Applies :func:`silu`.

    Example:
        >>> nn.SiLU()(mx.array([0.0, 1.0]))
        array([0, 0.731059], dtype=float32)
    """

    _function = staticmethod(silu)


class LogSigmoid(_Activation):
    """Applies :func:`log_sigmoid`.

    Example:
        >>> nn.LogSigmoid()(mx.array([0.0, 1.0]))
        array([-0.693147, -0.313262], dtype=float32)
    """

    _function = staticmethod(log_sigmoid)


class Softplus(_Activation):
    """Applies :func:`softplus`.

    Example:
        >>> nn.Softplus()(mx.array([0.0, 100.0]))
        array([0.693147, 100], dtype=float32)
    """

    _function = staticmethod(softplus)


class Softsign(_Activation):
    """Applies :func:`softsign`.

    Example:
        >>> nn.Softsign()(mx.array([0.0, 1.0]))
        array([0, 0.5], dtype=float32)
    """

    _function = staticmethod(softsign)


class Mish(_Activation):
    """Applies :func:`mish`.

    Example:
        >>> nn.Mish()(mx.array([0.0, 1.0]))
        array([0, 0.865098], dtype=float32)
    """

    _function = staticmethod(mish)


class Tanh(_Activation):
    """Applies :func:`tanh`.

    Example:
        >>> nn.Tanh()(mx.array([0.0, 1.0]))
        array([0, 0.761594], dtype=float32)
    """

    _function = staticmethod(tanh)


class Hardswish(_Activation):
    """Applies :func:`hardswish`.

    Example:
        >>> nn.Hardswish()(mx.array([-4.0, 3.0]))
        array([-0, 3], dtype=float32)
    """

    _function = staticmethod(hardswish)


class HardSigmoid(_Activation):
    """Applies :func:`hard_sigmoid`.

    Example:
        >>> nn.HardSigmoid()(mx.array([-4.0, 0.0, 3.0]))
        array([0, 0.5, 1], dtype=float32)
    """

    _function = staticmethod(hard_sigmoid)


class HardTanh(_Activation):
    """Applies :func:`hard_tanh`.

    Example:
        >>> nn.HardTanh()(mx.array([-4.0, 0.5]))
        array([-1, 0.5], dtype=float32)
    """

    _function = staticmethod(hard_tanh)


class Softmax(_Activation):
    """Applies :func:`softmax`.

    Example:
        >>> nn.Softmax()(mx.array([0.0, 0.0]))
        array([0.5, 0.5], dtype=float32)
    """

    _function = staticmethod(softmax)


class Softmin(_Activation):
    """Applies :func:`softmin`.

    Example:
        >>> nn.Softmin()(mx.array([0.0, 0.0]))
        array([0.5, 0.5], dtype=float32)
    """

    _function = staticmethod(softmin)


class LogSoftmax(_Activation):
    """Applies :func:`log_softmax`.

    Example:
        >>> nn.LogSoftmax()(mx.array([0.0, 0.0]))
        array([-0.693147, -0.693147], dtype=float32)
    """

    _function = staticmethod(log_softmax)


class LeakyReLU(Module):
    """Applies :func:`leaky_relu`.

    Args:
        negative_slope: The slope below 0.

    Example:
        >>> nn.LeakyReLU(0.1)(mx.array([-1.0, 2.0]))
        array([-0.1, 2], dtype=float32)
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

    Example:
        >>> nn.ELU()(mx.array([-1.0, 2.0]))
        array([-0.632121, 2], dtype=float32)
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

    Example:
        >>> nn.CELU()(mx.array([-1.0, 2.0]))
        array([-0.632121, 2], dtype=float32)
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

    Example:
        >>> nn.HardShrink()(mx.array([-0.25, 2.0]))
        array([0, 2], dtype=float32)
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

    Example:
        >>> nn.Softshrink()(mx.array([-0.25, 2.0]))
        array([0, 1.5], dtype=float32)
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

    Example:
        >>> nn.Step(0.5)(mx.array([0.0, 1.0]))
        array([0, 1], dtype=int32)
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

    Example:
        >>> nn.GLU()(mx.array([1.0, 2.0, 0.0, 0.0]))
        array([0.5, 1], dtype=float32)
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

    Example:
        >>> nn.PReLU()(mx.array([-1.0, 2.0]))
        array([-0.25, 2], dtype=float32)
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

    Example:
        >>> nn.GELU("tanh")(mx.array([0.0, 1.0]))
        array([0, 0.841192], dtype=float32)
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
