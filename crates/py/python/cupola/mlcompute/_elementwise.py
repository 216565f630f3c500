"""Layers that treat each element alike, softmax and dropout."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cupola.core as mx
from cupola import nn

from ._layer import Layer, one_of, taking

# What each kind of activation is of x and its parameters, and the defaults of these.
_ACTIVATIONS: dict[str, tuple[Callable[..., mx.array], tuple[float, ...]]] = {
    "none": (lambda x: x, ()),
    "relu": (lambda x, a: mx.where(x >= 0, x, a * x), (0.0,)),
    "linear": (lambda x, a, b: a * x + b, (1.0, 0.0)),
    "sigmoid": (mx.sigmoid, ()),
    "hard_sigmoid": (lambda x, a, b: mx.clip(a * x + b, 0, 1), (0.2, 0.5)),
    "tanh": (lambda x, a, b: a * mx.tanh(b * x), (1.0, 1.0)),
    "absolute": (mx.abs, ()),
    "soft_plus": (lambda x, a, b: a * mx.logaddexp(b * x, mx.zeros_like(x)), (1.0, 1.0)),
    "soft_sign": (lambda x: x / (1 + mx.abs(x)), ()),
    "elu": (lambda x, a: nn.elu(x, a), (1.0,)),
    "relun": (lambda x, a, b: mx.minimum(mx.where(x >= 0, x, a * x), b), (0.0, 6.0)),
    "log_sigmoid": (nn.log_sigmoid, ()),
    "selu": (nn.selu, ()),
    "celu": (lambda x, a: nn.celu(x, a), (1.0,)),
    "hard_shrink": (lambda x, a: mx.where(mx.abs(x) > a, x, 0), (0.5,)),
    "soft_shrink": (lambda x, a: nn.softshrink(x, a), (0.5,)),
    "tanh_shrink": (lambda x: x - mx.tanh(x), ()),
    "threshold": (lambda x, a, b: mx.where(x > a, x, b), (0.0, 0.0)),
    "gelu": (nn.gelu, ()),
    "hard_swish": (nn.hardswish, ()),
    "clamp": (lambda x, a, b: mx.clip(x, a, b), (0.0, 1.0)),
}


def activation_layer(kind: str, a: float | None = None, b: float | None = None) -> Layer:
    """An activation: ``none``, ``relu`` (a·x below 0), ``linear`` (a·x + b), ``sigmoid``, ``hard_sigmoid``
    (a·x + b between 0 and 1), ``tanh`` (a·tanh(b·x)), ``absolute``, ``soft_plus`` (a·ln(1 + e^(b·x))),
    ``soft_sign``, ``elu``, ``relun`` (a·x below 0, at most b), ``log_sigmoid``, ``selu``, ``celu``,
    ``hard_shrink``, ``soft_shrink``, ``tanh_shrink``, ``threshold`` (x above a, else b), ``gelu``,
    ``hard_swish`` or ``clamp`` (between a and b).

    Example:
        >>> activation_layer("relu", 0.1)
        Layer(activation_relu)
    """
    one_of("activation", kind, list(_ACTIVATIONS))
    function, defaults = _ACTIVATIONS[kind]
    given = [own for own in (a, b) if own is not None]
    if len(given) > len(defaults) or (a is None and b is not None and len(defaults) < 2):
        raise ValueError(f"[mlcompute] activation layer: {kind} has {len(defaults)} parameters")
    own = [old if new is None else new for new, old in zip((a, b), defaults)]
    return _unary(f"activation_{kind}", lambda x: function(x, *own))


def _unary(label: str, function: Callable[[mx.array], mx.array]) -> Layer:
    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking(label, inputs, 1)
        return function(inputs[0])

    return Layer(label, forward)


def _no_nan(function: Callable[..., mx.array]) -> Callable[..., mx.array]:
    """0 where the second operand is 0."""

    def apply(x: mx.array, y: mx.array) -> mx.array:
        is_zero = y == 0
        return mx.where(is_zero, 0, function(x, mx.where(is_zero, 1, y)))

    return apply


_UNARY: dict[str, Callable[..., mx.array]] = {
    "floor": mx.floor,
    "round": mx.round,
    "ceil": mx.ceil,
    "sqrt": mx.sqrt,
    "rsqrt": mx.rsqrt,
    "sin": mx.sin,
    "cos": mx.cos,
    "tan": mx.tan,
    "asin": mx.arcsin,
    "acos": mx.arccos,
    "atan": mx.arctan,
    "sinh": mx.sinh,
    "cosh": mx.cosh,
    "tanh": mx.tanh,
    "asinh": mx.arcsinh,
    "acosh": mx.arccosh,
    "atanh": mx.arctanh,
    "exp": mx.exp,
    "exp2": lambda x: mx.exp(x * math.log(2)),
    "log": mx.log,
    "log2": mx.log2,
}
_BINARY: dict[str, Callable[..., mx.array]] = {
    "add": mx.add,
    "subtract": mx.subtract,
    "multiply": mx.multiply,
    "divide": mx.divide,
    "pow": mx.power,
    "min": mx.minimum,
    "max": mx.maximum,
    "multiply_no_nan": _no_nan(mx.multiply),
    "divide_no_nan": _no_nan(mx.divide),
}


def arithmetic_layer(operation: str) -> Layer:
    """An arithmetic operation of two tensors, which broadcast: ``add``, ``subtract``, ``multiply``, ``divide``,
    ``pow``, ``min``, ``max``, ``multiply_no_nan`` and ``divide_no_nan`` (0 where the second is 0); or of one:
    ``floor``, ``round``, ``ceil``, ``sqrt``, ``rsqrt``, ``exp``, ``exp2``, ``log``, ``log2``, and ``sin``,
    ``cos``, ``tan`` with their hyperbolic forms and inverses.

    Example:
        >>> arithmetic_layer("add")
        Layer(arithmetic_add)
    """
    one_of("arithmetic", operation, [*_BINARY, *_UNARY])
    if operation in _UNARY:
        return _unary(f"arithmetic_{operation}", _UNARY[operation])
    return _binary(f"arithmetic_{operation}", _BINARY[operation])


def _binary(label: str, function: Callable[..., mx.array]) -> Layer:
    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking(label, inputs, 2)
        return function(*inputs)

    return Layer(label, forward)


_COMPARISONS: dict[str, Callable[..., mx.array]] = {
    "equal": mx.equal,
    "not_equal": mx.not_equal,
    "less": mx.less,
    "greater": mx.greater,
    "less_or_equal": mx.less_equal,
    "greater_or_equal": mx.greater_equal,
    "logical_and": mx.logical_and,
    "logical_or": mx.logical_or,
    "logical_nand": lambda x, y: mx.logical_not(mx.logical_and(x, y)),
    "logical_nor": lambda x, y: mx.logical_not(mx.logical_or(x, y)),
    "logical_xor": lambda x, y: x.astype(mx.bool_) != y.astype(mx.bool_),
}


def comparison_layer(operation: str) -> Layer:
    """A comparison of two tensors: ``equal``, ``not_equal``, ``less``, ``greater``, ``less_or_equal``,
    ``greater_or_equal``; or a logical operation: ``logical_and``, ``logical_or``, ``logical_nand``,
    ``logical_nor``, ``logical_xor``, and of one tensor ``logical_not``. It gives ``Boolean``.

    Example:
        >>> comparison_layer("less")
        Layer(comparison_less)
    """
    one_of("comparison", operation, [*_COMPARISONS, "logical_not"])
    if operation == "logical_not":
        return _unary("comparison_logical_not", mx.logical_not)
    return _binary(f"comparison_{operation}", _COMPARISONS[operation])


def selection_layer() -> Layer:
    """The elements of the second tensor where the first, the condition, is true, else those of the third."""

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking("selection", inputs, 3)
        return mx.where(*inputs)

    return Layer("selection", forward)


def softmax_layer(operation: str = "softmax", dimension: int = 1) -> Layer:
    """``softmax``, or its logarithm, ``log_softmax``, along a dimension."""
    one_of("softmax", operation, ["softmax", "log_softmax"])
    if operation == "softmax":
        return _unary("softmax", lambda x: mx.softmax(x, axis=dimension))
    return _unary("log_softmax", lambda x: nn.log_softmax(x, axis=dimension))


def dropout_layer(rate: float, seed: int | None = None) -> Layer:
    """Puts a share of the elements to 0 while a graph trains, and divides the others by what is left. With a
    seed these are the same at every execution."""
    if not 0 <= rate < 1:
        raise ValueError(f"[mlcompute] dropout layer: the rate {rate} is not in [0, 1)")

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking("dropout", inputs, 1)
        (x,) = inputs
        if not training or rate == 0:
            return x
        key = None if seed is None else mx.random.key(seed)
        kept = mx.random.bernoulli(1 - rate, x.shape, key=key)
        return mx.where(kept, x / (1 - rate), 0)

    return Layer("dropout", forward)
