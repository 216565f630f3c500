# Written by `cargo xtask gen`.

"""Linear algebra."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

def cholesky(a: _Scalar | array, upper: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The lower triangular L with a positive diagonal and A = L·Lᴴ, or U = Lᴴ with A = Uᴴ·U where `upper`
    is true. Of A only that triangle is read.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    Where `a` has less than two axes, is not square, or has another dtype;
    when it is computed where it is not positive definite.

    Derivatives:
    Those by symmetric matrices: they are symmetric.

    Example:
        >>> a = mx.array([[4.0, 2.0], [2.0, 5.0]])
        >>> mx.linalg.cholesky(a)
        array([[2, 0],
               [1, 2]], dtype=float32)
    """
def cholesky_inv(a: _Scalar | array, upper: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The inverse of A = L·Lᴴ from its factor L; of A = Uᴴ·U from U where `upper` is true. Only the triangle
    is read.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    Where `a` has less than two axes, is not square, or has another dtype;
    when it is computed where the factor has a 0 on its diagonal.

    Example:
        >>> mx.linalg.cholesky_inv(mx.array([[2.0, 0.0], [0.0, 4.0]]))
        array([[0.25, 0],
               [0, 0.0625]], dtype=float32)
    """
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
def det(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The determinants of square matrices.

    Dtypes:
    Integers and bool are taken as `float32`; half types are computed in `float32`.

    Errors:
    Where `a` has less than two axes or is not square. The derivative by a singular matrix of
    more than three rows is an error when it is computed.

    Example:
        >>> mx.linalg.det(mx.array([[1.0, 2.0], [3.0, 4.0]]))
        array(-2, dtype=float32)
    """
def eig(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> tuple[array, array]:
    """W and V with A·V = V·W of square matrices: eigenvalues in no order, and as columns eigenvectors of
    length 1.

    Derivatives are those where no two eigenvalues are equal. They take the phases of the vectors as fixed: functions
    of these should not depend on them.

    Dtypes:
    `float32`, `float64` and `complex64`; the results are `complex64`.

    Errors:
    Where `a` has less than two axes, is not square, or has another dtype;
    when it is computed where an element is not finite.

    Example:
        >>> w, v = mx.linalg.eig(mx.array([[0.0, -1.0], [1.0, 0.0]]))
        >>> w.shape, v.shape
        ((2,), (2, 2))
    """
def eigh(a: _Scalar | array, UPLO: str = ..., *, stream: _StreamOrDevice | None = ...) -> tuple[array, array]:
    """W and V with A = V·W·Vᴴ of symmetric or Hermitian matrices: the eigenvalues from the least on, and
    orthonormal eigenvectors as columns. Only the lower triangle is read, or the upper one where `upper`
    is true.

    Dtypes:
    `float32`, `float64` and `complex64`; W is real.

    Errors:
    Where `a` has less than two axes, is not square, or has another dtype;
    when it is computed where an element is not finite.

    Derivatives:
    Those by symmetric matrices. Else as for `svd`.

    Example:
        >>> w, v = mx.linalg.eigh(mx.array([[3.0, 0.0], [0.0, 2.0]]))
        >>> w
        array([2, 3], dtype=float32)
        >>> v
        array([[0, 1],
               [1, 0]], dtype=float32)
    """
def eigvals(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The eigenvalues of square matrices: those of `eig`.

    Dtypes:
    `float32`, `float64` and `complex64`; the result is `complex64`.

    Errors:
    As `eig`.

    Example:
        >>> mx.real(mx.linalg.eigvals(mx.array([[2.0, 5.0], [0.0, 2.0]])))
        array([2, 2], dtype=float32)
    """
def eigvalsh(a: _Scalar | array, UPLO: str = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The eigenvalues of symmetric or Hermitian matrices, from the least on: those of `eigh`.

    Dtypes:
    `float32`, `float64` and `complex64`; the result is real.

    Errors:
    As `eigh`.

    Example:
        >>> mx.linalg.eigvalsh(mx.array([[3.0, 0.0], [0.0, 2.0]]))
        array([2, 3], dtype=float32)
    """
def inv(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The inverse of square matrices.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    Where `a` has less than two axes, is not square, or has another dtype;
    when it is computed where it is singular.

    Example:
        >>> mx.linalg.inv(mx.array([[2.0, 1.0], [0.0, 4.0]]))
        array([[0.5, -0.125],
               [0, 0.25]], dtype=float32)
    """
def lstsq(a: _Scalar | array, b: _Scalar | array, *, full: bool = ..., stream: _StreamOrDevice | None = ...) -> Any:
    """The X of least squares: the one of least length of those for which A·X is closest to B. `full=True` gives, as NumPy
    does, a tuple of X, residuals, rank and singular values: the residuals are the sums of the squares of A·X − B, one for
    each column of B, also where NumPy has none.

    Shapes:
    `a` is `[.., m, n]`, `b` a vector `[m]` or `[.., m, k]`. Residuals are `[.., k]`, and `[.., 1]` of a vector; the rank
    is `[..]`, the singular values are `[.., min(m, n)]`.

    Dtypes:
    The operands promote, to `float32`, `float64` or `complex64`. The rank is `int32`; residuals and singular values are
    real.

    Errors:
    Where shapes or dtypes do not fit; when it is computed where an element of A is not finite.

    Example:
        >>> a, b = mx.ones((4, 1)), mx.array([1.0, 2.0, 3.0, 6.0])
        >>> mx.round(mx.linalg.lstsq(a, b), 4)
        array([3], dtype=float32)
        >>> _, residuals, rank, _ = mx.linalg.lstsq(a, b, full=True)
        >>> mx.round(residuals, 3), rank
        (array([14], dtype=float32), array(1, dtype=int32))
    """
def lu(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> tuple[array, array, array]:
    """P, L and U with A = (L·U)\\[P\\]: rows of L·U in the order P, as `uint32`; L lower triangular with ones on
    its diagonal, U upper triangular. Each pivot is the largest of its column. A NaN may leave none but NaN in
    its column and in those after it.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    Where `a` has less than two axes or another dtype.

    Example:
        >>> p, l, u = mx.linalg.lu(mx.array([[1.0, 2.0], [4.0, 4.0]]))
        >>> (l @ u)[p]
        array([[1, 2],
               [4, 4]], dtype=float32)
    """
def lu_factor(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> tuple[array, array]:
    """L without its diagonal of ones and U in one matrix, and for each step the row that was exchanged with
    its own, as `uint32`. A NaN may leave none but NaN in its column and in those after it.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    Where `a` has less than two axes or another dtype.

    Example:
        >>> lu, pivots = mx.linalg.lu_factor(mx.array([[1.0, 2.0], [4.0, 4.0]]))
        >>> pivots
        array([1, 1], dtype=uint32)
    """
def matrix_power(a: _Scalar | array, n: int, *, stream: _StreamOrDevice = ...) -> array:
    """The product of `n` times a square matrix; of its inverse for a negative `n`, and the identity for 0.

    Dtypes:
    Those of `matmul`; for a negative `n` those of `inv`.

    Errors:
    Where `a` has less than two axes or is not square; when it is computed for a negative `n` where it is
    singular.

    Example:
        >>> mx.linalg.matrix_power(mx.array([[1.0, 1.0], [0.0, 1.0]]), 5)
        array([[1, 5],
               [0, 1]], dtype=float32)
    """
def matrix_rank(a: _Scalar | array, tol: float | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """How many singular values are larger than `tolerance`, as `int32`; `None` for max(m, n)·ε of the
    largest.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    As `svd`.

    Example:
        >>> mx.linalg.matrix_rank(mx.array([[1.0, 2.0], [2.0, 4.0]]))
        array(1, dtype=int32)
    """
def norm(a: _Scalar | array, /, ord: Any = ..., axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The norm of the vectors along one axis, or of the matrices in two; of everything for `()`, and along no axes the size of
    each element.

    Shapes:
    The axes go, or stay with size 1 where `keepdims` is true.

    Dtypes:
    Integers and bool are taken as `float32`; the norm of complex numbers is real.

    Errors:
    For more than two axes, and for an order that is not one of a vector's or of a matrix'.

    Example:
        >>> mx.linalg.norm(mx.array([3.0, 4.0]))
        array(5, dtype=float32)
    """
def pinv(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The pseudoinverse by Moore and Penrose. Singular values up to 10·max(m, n)·ε of the largest count as 0.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    Where `a` has less than two axes or another dtype; when it is computed where an element is not
    finite.

    Example:
        >>> mx.linalg.pinv(mx.array([[2.0, 0.0], [0.0, 0.0]]))
        array([[0.5, 0],
               [0, 0]], dtype=float32)
    """
def qr(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> tuple[array, array]:
    """A = Q·R: Q with orthonormal columns, as many as A has rows or columns, whichever are fewer, and R
    upper triangular. Where an element is not finite, both are NaN from its column on.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    Where `a` has less than two axes or another dtype.

    Derivatives:
    Where the first columns do not depend on each other. Of complex matrices the diagonal of R stays real.

    Example:
        >>> a = mx.array([[4.0, 2.0], [2.0, 5.0]])
        >>> q, r = mx.linalg.qr(a)
        >>> mx.allclose(q @ r, a).item()
        True
    """
def slogdet(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> tuple[array, array]:
    """The signs of the determinants of square matrices, and the logarithms of their sizes: 0 and −∞ of
    singular ones.

    Dtypes:
    As `det`.

    Errors:
    As `det`.

    Example:
        >>> sign, log = mx.linalg.slogdet(mx.array([[1.0, 0.0], [0.0, -1.0]]))
        >>> sign, log
        (array(-1, dtype=float32), array(0, dtype=float32))
    """
def solve(a: _Scalar | array, b: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """X with A·X = B.

    Shapes:
    `a` is `[.., n, n]`, `b` a vector `[n]` or `[.., n, k]`; the other axes broadcast.

    Dtypes:
    The operands promote, to `float32` or `float64`.

    Errors:
    Where shapes or dtypes do not fit; when it is computed where A is singular.

    Example:
        >>> mx.linalg.solve(mx.array([[2.0, 1.0], [0.0, 4.0]]), mx.array([4.0, 8.0]))
        array([1, 2], dtype=float32)
    """
def solve_triangular(a: _Scalar | array, b: _Scalar | array, *, upper: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """X with A·X = B for triangular matrices: lower ones, or upper ones where `upper` is true. Only the
    triangle is read.

    Shapes:
    `a` is `[.., n, n]`, `b` a vector `[n]` or `[.., n, k]`; the other axes broadcast.

    Dtypes:
    The operands promote, to `float32` or `float64`.

    Errors:
    Where shapes or dtypes do not fit; when it is computed where A has a 0 on its diagonal.

    Example:
        >>> mx.linalg.solve_triangular(mx.array([[2.0, 0.0], [1.0, 4.0]]), mx.array([4.0, 10.0]))
        array([2, 2], dtype=float32)
    """
def svd(a: _Scalar | array, compute_uv: bool = ..., *, stream: _StreamOrDevice | None = ...) -> Any:
    """U, S and Vᴴ with A = U·S·Vᴴ: orthonormal bases `[.., m, m]` and `[.., n, n]`, and the singular values
    from the largest on.

    Dtypes:
    `float32`, `float64` and `complex64`; S is real.

    Errors:
    Where `a` has less than two axes or another dtype; when it is computed where an element is not
    finite.

    Derivatives:
    Where no two singular values are equal, or what is computed of them and of their vectors does not
    tell them apart. Vectors are determined up to a sign or phase; here their first large element is
    positive.

    Example:
        >>> u, s, vt = mx.linalg.svd(mx.array([[0.0, 2.0], [3.0, 0.0]]))
        >>> mx.round(s, 4)
        array([3, 2], dtype=float32)
    """
def svdvals(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The singular values, from the largest on.

    Dtypes:
    `float32`, `float64` and `complex64`; the result is real.

    Errors:
    As `svd`.

    Example:
        >>> mx.linalg.svdvals(mx.array([[0.0, 2.0], [0.0, 0.0]]))
        array([2, 0], dtype=float32)
    """
def tri_inv(a: _Scalar | array, upper: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The inverse of triangular matrices: of lower ones, or of upper ones where `upper` is true. Only the
    triangle is read.

    Dtypes:
    `float32`, `float64` and `complex64`.

    Errors:
    Where `a` has less than two axes, is not square, or has another dtype;
    when it is computed where there is a 0 on the diagonal.

    Example:
        >>> mx.linalg.tri_inv(mx.array([[2.0, 0.0], [1.0, 4.0]]))
        array([[0.5, 0],
               [-0.125, 0.25]], dtype=float32)
    """

