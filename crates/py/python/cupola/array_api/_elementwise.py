"""Functions of the elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import cupola.core as mx

from ._types import Array, Number, described


class _Unary(Protocol):
    def __call__(self, x: Array, /) -> Array: ...


class _Binary(Protocol):
    def __call__(self, x1: Number, x2: Number, /) -> Array: ...


def _unary(f: Callable[..., Array]) -> _Unary:
    def function(x: Array, /) -> Array:
        return f(x)

    return described(function, f)


def _binary(f: Callable[..., Array]) -> _Binary:
    def function(x1: Number, x2: Number, /) -> Array:
        return f(x1, x2)

    return described(function, f)


abs = _unary(mx.abs)
acos = _unary(mx.acos)
acosh = _unary(mx.acosh)
asin = _unary(mx.asin)
asinh = _unary(mx.asinh)
atan = _unary(mx.atan)
atanh = _unary(mx.atanh)
bitwise_invert = _unary(mx.bitwise_invert)
ceil = _unary(mx.ceil)
conj = _unary(mx.conj)
cos = _unary(mx.cos)
cosh = _unary(mx.cosh)
exp = _unary(mx.exp)
expm1 = _unary(mx.expm1)
floor = _unary(mx.floor)
imag = _unary(mx.imag)
isfinite = _unary(mx.isfinite)
isinf = _unary(mx.isinf)
isnan = _unary(mx.isnan)
log = _unary(mx.log)
log10 = _unary(mx.log10)
log1p = _unary(mx.log1p)
log2 = _unary(mx.log2)
logical_not = _unary(mx.logical_not)
negative = _unary(mx.negative)
positive = _unary(mx.positive)
real = _unary(mx.real)
reciprocal = _unary(mx.reciprocal)
round = _unary(mx.round)
sign = _unary(mx.sign)
signbit = _unary(mx.signbit)
sin = _unary(mx.sin)
sinh = _unary(mx.sinh)
sqrt = _unary(mx.sqrt)
square = _unary(mx.square)
tan = _unary(mx.tan)
tanh = _unary(mx.tanh)
trunc = _unary(mx.trunc)

add = _binary(mx.add)
atan2 = _binary(mx.atan2)
bitwise_and = _binary(mx.bitwise_and)
bitwise_left_shift = _binary(mx.bitwise_left_shift)
bitwise_or = _binary(mx.bitwise_or)
bitwise_right_shift = _binary(mx.bitwise_right_shift)
bitwise_xor = _binary(mx.bitwise_xor)
copysign = _binary(mx.copysign)
divide = _binary(mx.divide)
equal = _binary(mx.equal)
greater = _binary(mx.greater)
greater_equal = _binary(mx.greater_equal)
hypot = _binary(mx.hypot)
less = _binary(mx.less)
less_equal = _binary(mx.less_equal)
logaddexp = _binary(mx.logaddexp)
logical_and = _binary(mx.logical_and)
logical_or = _binary(mx.logical_or)
logical_xor = _binary(mx.logical_xor)
maximum = _binary(mx.maximum)
minimum = _binary(mx.minimum)
multiply = _binary(mx.multiply)
nextafter = _binary(mx.nextafter)
not_equal = _binary(mx.not_equal)
pow = _binary(mx.pow)
remainder = _binary(mx.remainder)
subtract = _binary(mx.subtract)


def clip(x: Array, /, min: Number | None = None, max: Number | None = None) -> Array:
    """Each element, or the nearer of the limits where it is beyond them; the dtype stays."""
    if min is None and max is None:
        return mx.positive(x)
    return mx.clip(x, min, max).astype(x.dtype)


def floor_divide(x1: Number, x2: Number, /) -> Array:
    """⌊x1 / x2⌋; of what rounds to −0 but is less than that it is −1, as of −1 / ∞."""
    quotient = mx.floor_divide(x1, x2)
    if not mx.issubdtype(quotient.dtype, mx.floating):
        return quotient
    is_less = (quotient == 0) & mx.signbit(quotient) & mx.not_equal(x1, 0)
    return mx.where(is_less, -1, quotient)
