"""Linear algebra: of matrices, the last two axes, and of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import cupola.core as mx
from cupola.core import _linalg

from ._manipulation import matrix_transpose
from ._reductions import sum
from ._types import Array, Axes, Dtype, Real, indices

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class Eigen(NamedTuple):
    """What ``eig`` and ``eigh`` give."""

    eigenvalues: Array
    eigenvectors: Array


class QR(NamedTuple):
    """What ``qr`` gives."""

    Q: Array
    R: Array


class SignLog(NamedTuple):
    """What ``slogdet`` gives."""

    sign: Array
    logabsdet: Array


class SVD(NamedTuple):
    """What ``svd`` gives."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """The triangular factors of positive definite matrices."""
    return _linalg.cholesky(x, upper)


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The cross products of vectors of three elements."""
    return mx.linalg.cross(x1, x2, axis)


def det(x: Array, /) -> Array:
    """The determinants of matrices."""
    return _linalg.det(x)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices, ``offset`` places above the main ones."""
    return mx.diagonal(x, offset, -2, -1)


def eig(x: Array, /) -> Eigen:
    """The eigenvalues and eigenvectors of matrices, as complex numbers."""
    return Eigen(*mx.linalg.eig(x))


def eigh(x: Array, /) -> Eigen:
    """The eigenvalues and eigenvectors of symmetric matrices; complex ones are Hermitian."""
    return Eigen(*mx.linalg.eigh(x))


def eigvals(x: Array, /) -> Array:
    """The eigenvalues of matrices, as complex numbers."""
    return mx.linalg.eigvals(x)


def eigvalsh(x: Array, /) -> Array:
    """The eigenvalues of symmetric matrices; complex ones are Hermitian."""
    return mx.linalg.eigvalsh(x)


def inv(x: Array, /) -> Array:
    """The inverses of matrices."""
    return _linalg.inv(x)


def matmul(x1: Array, x2: Array, /) -> Array:
    """The products of matrices."""
    return mx.matmul(x1, x2)


def matrix_norm(
    x: Array,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
) -> Array:
    """The norms of matrices."""
    if ord in (1, 2, math.inf):
        x = _or_zeros(x, (-2, -1))
    return mx.linalg.norm(x, "fro" if ord is None else ord, (-2, -1), keepdims)


def matrix_power(x: Array, n: int, /) -> Array:
    """The powers of matrices; those below 0 are of their inverses."""
    return mx.linalg.matrix_power(x, n)


def matrix_rank(x: Array, /, *, rtol: Real | None = None) -> Array:
    """How many singular values of each matrix are above ``rtol`` times the largest."""
    values = mx.linalg.svdvals(x)
    return indices(mx.sum(values > _cutoff(x, values, rtol), -1))


def outer(x1: Array, x2: Array, /) -> Array:
    """The products of each element of one vector with each of another."""
    return mx.outer(x1, x2)


def pinv(x: Array, /, *, rtol: Real | None = None) -> Array:
    """The pseudoinverses of matrices; singular values up to ``rtol`` times the largest are 0."""
    u, values, vh = svd(x, full_matrices=False)
    inverse = mx.where(values > _cutoff(x, values, rtol), 1 / values, 0)
    return mx.conj(vh).mT @ (inverse[..., None] * mx.conj(u).mT)


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QR:
    """Matrices as orthogonal ones times upper triangular ones; complete ones are square."""
    if mode == "reduced":
        return QR(*_linalg.qr(x))
    if mode != "complete":
        raise ValueError(f"qr: mode must be 'reduced' or 'complete', not {mode!r}")
    rows, columns = x.shape[-2:]
    # The columns of an identity matrix complete the basis.
    more = mx.broadcast_to(mx.eye(rows, dtype=x.dtype), (*x.shape[:-1], rows))
    q, r = _linalg.qr(mx.concat([x, more], -1))
    return QR(q, r[..., :columns])


def slogdet(x: Array, /) -> SignLog:
    """The signs of determinants, and the logarithms of their absolute values."""
    return SignLog(*_linalg.slogdet(x))


def solve(x1: Array, x2: Array, /) -> Array:
    """The solutions of linear equations: for a vector, or for each column of matrices."""
    return _linalg.solve(x1, x2)


def svd(x: Array, /, *, full_matrices: bool = True) -> SVD:
    """Singular values with their vectors: all, or as many as there are values."""
    u, values, vh = mx.linalg.svd(x)
    count = x.shape[-1] + x.shape[-2] if full_matrices else values.shape[-1]
    return SVD(u[..., :count], values, vh[..., :count, :])


def svdvals(x: Array, /) -> Array:
    """The singular values of matrices."""
    return mx.linalg.svdvals(x)


def tensordot(
    x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Array:
    """The sums of products over pairs of axes, or over the last of one with the first of the other."""
    return mx.tensordot(x1, x2, axes).astype(mx.result_type(x1, x2))


def trace(x: Array, /, *, offset: int = 0, dtype: Dtype | None = None) -> Array:
    """The sums of the diagonals of matrices."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The sums of products along an axis, with the conjugate of the first."""
    return mx.vecdot(x1, x2, axis).astype(mx.result_type(x1, x2))


def vector_norm(
    x: Array, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """The norms of vectors, whose elements may lie along several axes."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = tuple(at % x.ndim for at in axes)
    if ord == math.inf:
        x = _or_zeros(x, axes)
    others = [at for at in range(x.ndim) if at not in axes]
    flat = mx.permute_dims(x, (*others, *axes)).flatten(len(others)) if axes else x[..., None]
    norms = mx.linalg.norm(flat, ord, -1)
    return mx.expand_dims(norms, axes) if keepdims else norms


def _or_zeros(x: Array, axes: tuple[int, ...]) -> Array:
    """An array, or zeros where some axes are empty: their largest element is as large."""
    sizes = list(x.shape)
    if all(sizes[axis] for axis in axes):
        return x
    for axis in axes:
        sizes[axis] = 1
    return mx.zeros(sizes, x.dtype)


def _cutoff(x: Array, values: Array, rtol: Real | None) -> Array:
    """The singular values that count as 0: up to the errors of rounding if ``rtol`` does not say."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * mx.finfo(x.dtype).eps
    rtol = rtol[..., None] if isinstance(rtol, mx.array) else rtol
    return values[..., :1] * rtol
