# Written by `cargo xtask gen`.

"""Linear algebra."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

def cross(a: _Scalar | array, b: _Scalar | array, axis: int = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The cross products of the vectors along an axis.

    Shapes:
    The axis is of size 3, or 2, to which a 0 is added; the other axes broadcast.

    Errors:
    Where the axis is of another size.

    Example:
        >>> mx.linalg.cross(mx.array([1, 0, 0]), mx.array([0, 1, 0]))
        array([0, 0, 1], dtype=int32)
    """
def norm(a: _Scalar | array, /, ord: Any = ..., axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The norm of the vectors along one axis, or of the matrices in two; of everything for `()`.

    Shapes:
    The axes go, or stay with size 1 where `keepdims` is true.

    Dtypes:
    Integers and bool are taken as `float32`; the norm of complex numbers is real.

    Errors:
    For more than two axes, for an order that is not one of a vector's or of a matrix', and for the
    orders that need singular values (±2 and nuclear of a matrix).

    Example:
        >>> mx.linalg.norm(mx.array([3.0, 4.0]))
        array(5, dtype=float32)
    """

def cholesky(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def cholesky_inv(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def det(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def eig(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def eigh(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def eigvals(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def eigvalsh(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def inv(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def lu(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def lu_factor(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def pinv(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def qr(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def slogdet(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def solve(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def solve_triangular(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def svd(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def tri_inv(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
