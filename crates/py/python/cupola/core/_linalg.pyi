# Written by `cargo xtask gen`.

"""Linear algebra of complex matrices, too, which `linalg` refuses as MLX does."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

def cholesky(a: _Scalar | array, upper: bool) -> array:
    """The lower triangular L with a positive diagonal and A = L·Lᴴ, or U = Lᴴ with A = Uᴴ·U where `upper`
    is true. Of A only that triangle is read.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    Where `a` has less than two axes, is not square, or has another dtype;
    when it is computed where it is not positive definite.

    Derivatives:
    Those by symmetric matrices: they are symmetric.
    """
def det(a: _Scalar | array) -> array:
    """The determinants of square matrices.

    Dtypes:
    Integers and bool are taken as `float32`; half types are computed in `float32`.

    Errors:
    Where `a` has less than two axes or is not square. The derivative by a singular matrix of
    more than three rows is an error when it is computed.
    """
def inv(a: _Scalar | array) -> array:
    """The inverse of square matrices.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    Where `a` has less than two axes, is not square, or has another dtype;
    when it is computed where it is singular.
    """
def qr(a: _Scalar | array) -> tuple[array, array]:
    """A = Q·R: Q with orthonormal columns, as many as A has rows or columns, whichever are fewer, and R
    upper triangular. Where an element is not finite, both are NaN from its column on.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    Where `a` has less than two axes or another dtype.

    Derivatives:
    Where the first columns do not depend on each other. Of complex matrices the diagonal of R stays real.
    """
def slogdet(a: _Scalar | array) -> tuple[array, array]:
    """The signs of the determinants of square matrices, and the logarithms of their sizes: 0 and −∞ of
    singular ones.

    Dtypes:
    As `det`.

    Errors:
    As `det`.
    """
def solve(a: _Scalar | array, b: _Scalar | array) -> array:
    """X with A·X = B.

    Shapes:
    `a` is `[.., n, n]`, `b` a vector `[n]` or `[.., n, k]`; the other axes broadcast.

    Dtypes:
    The operands promote, to `float32` or `float64`.

    Errors:
    Where shapes or dtypes do not fit; when it is computed where A is singular.
    """

