//! Factorizations, singular values and eigenvalues.

use super::{named, pair, transposed, triple};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::operand::{broadcast, cast};
use crate::ops::{add, conjugate, eye_at, greater, max, multiply, sum, tril, triu, zeros};
use crate::prim::record::slice_axis;
use crate::prim::{Linalg, Vectors};
use crate::shape::Shape;

/// The lower triangular L with a positive diagonal and A = L·Lᴴ, or U = Lᴴ with A = Uᴴ·U where `upper`
/// is true. Of A only that triangle is read.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`.
///
/// # Errors
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where it is not positive definite.
///
/// # Derivatives
/// Those by symmetric matrices: they are symmetric.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[4.0f32, 2.0, 2.0, 5.0], [2, 2])?;
/// let l = linalg::cholesky(&a, false)?;
/// assert_eq!(l.to_vec::<f32>()?, [2.0, 0.0, 1.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cholesky(a: &Array, upper: bool) -> Result<Array> {
    if !upper {
        return Array::apply(Linalg::Cholesky, &[a]);
    }
    expect(Linalg::Cholesky, a)?;
    transposed(&Array::apply(Linalg::Cholesky, &[&transposed(a)?])?)
}

/// Checks that `op` takes `a`, and that it has matrices.
fn expect(op: Linalg, a: &Array) -> Result<()> {
    if !op.takes(a.dtype()) {
        let detail = format!("takes float32, float64 and complex64, not {}", a.aval());
        return Err(Error::dtype(op.name(), detail));
    }
    if a.rank() < 2 {
        let detail = format!("{} is no matrix: it has less than two axes", a.aval());
        return Err(Error::shape(op.name(), detail));
    }
    Ok(())
}

/// A = Q·R: Q with orthonormal columns, as many as A has rows or columns, whichever are fewer, and R
/// upper triangular. Where an element is not finite, both are NaN from its column on.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`.
///
/// # Errors
/// Where `a` has less than two axes or another dtype.
///
/// # Derivatives
/// Where the first columns do not depend on each other. Of complex matrices the diagonal of R stays real.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::linalg};
/// let a = Array::from_slice(&[3.0f32, 1.0, 4.0, 2.0], [2, 2])?;
/// let (q, r) = linalg::qr(&a)?;
/// let back = ops::matmul(&q, &r)?;
/// assert!(ops::allclose(&back, &a, Default::default())?.item::<bool>()?);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn qr(a: &Array) -> Result<(Array, Array)> {
    pair(Array::apply_multi(Linalg::Qr, &[a])?)
}

/// P, L and U with A = (L·U)\[P\]: rows of L·U in the order P, as `uint32`; L lower triangular with ones on
/// its diagonal, U upper triangular. Each pivot is the largest of its column. A NaN may leave none but NaN in
/// its column and in those after it.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`.
///
/// # Errors
/// Where `a` has less than two axes or another dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[1.0f32, 2.0, 4.0, 4.0], [2, 2])?;
/// let (p, l, u) = linalg::lu(&a)?;
/// assert_eq!(p.to_vec::<u32>()?, [1, 0]);
/// assert_eq!(l.to_vec::<f32>()?, [1.0, 0.0, 0.25, 1.0]);
/// assert_eq!(u.to_vec::<f32>()?, [4.0, 4.0, 0.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn lu(a: &Array) -> Result<(Array, Array, Array)> {
    let (lu, _, places) = triple(Array::apply_multi(Linalg::Lu, &[a])?)?;
    let rank = lu.rank();
    let k = lu.shape()[rank - 2].min(lu.shape()[rank - 1]);
    let left = slice_axis(&lu, rank - 1, 0, k)?;
    let upper = triu(&slice_axis(&lu, rank - 2, 0, k)?, 0)?;
    let ones = broadcast(&eye_at(left.shape()[rank - 2], k, 0, lu.dtype())?, left.shape())?;
    Ok((places, add(&tril(&left, -1)?, &ones)?, upper))
}

/// L without its diagonal of ones and U in one matrix, and for each step the row that was exchanged with
/// its own, as `uint32`. A NaN may leave none but NaN in its column and in those after it.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`.
///
/// # Errors
/// Where `a` has less than two axes or another dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[1.0f32, 2.0, 4.0, 4.0], [2, 2])?;
/// let (lu, pivots) = linalg::lu_factor(&a)?;
/// assert_eq!(lu.to_vec::<f32>()?, [4.0, 4.0, 0.25, 1.0]);
/// assert_eq!(pivots.to_vec::<u32>()?, [1, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn lu_factor(a: &Array) -> Result<(Array, Array)> {
    let (lu, pivots, _) = triple(Array::apply_multi(Linalg::Lu, &[a])?)?;
    Ok((lu, pivots))
}

/// U, S and Vᴴ with A = U·S·Vᴴ: orthonormal bases `[.., m, m]` and `[.., n, n]`, and the singular values
/// from the largest on.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`; S is real.
///
/// # Errors
/// Where `a` has less than two axes or another dtype; when it is computed where an element is not
/// finite.
///
/// # Derivatives
/// Where no two singular values are equal, or what is computed of them and of their vectors does not
/// tell them apart. Vectors are determined up to a sign or phase; here their first large element is
/// positive.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::linalg};
/// let a = Array::from_slice(&[0.0f32, 2.0, 3.0, 0.0], [2, 2])?;
/// let (_, s, _) = linalg::svd(&a)?;
/// let want = Array::from_slice(&[3.0f32, 2.0], [2])?;
/// assert!(ops::allclose(&s, &want, Default::default())?.item::<bool>()?);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn svd(a: &Array) -> Result<(Array, Array, Array)> {
    triple(Array::apply_multi(Linalg::Svd(Vectors::Full), &[a])?)
}

/// The singular values, from the largest on.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`; the result is real.
///
/// # Errors
/// As [`svd`].
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[0.0f32, 2.0, 0.0, 0.0], [2, 2])?;
/// assert_eq!(linalg::svdvals(&a)?.to_vec::<f32>()?, [2.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn svdvals(a: &Array) -> Result<Array> {
    Array::apply(Linalg::Svd(Vectors::None), &[a])
}

/// How many singular values are larger than `tolerance`, as `int32`; `None` for max(m, n)·ε of the
/// largest.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`.
///
/// # Errors
/// As [`svd`].
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[1.0f32, 2.0, 2.0, 4.0], [2, 2])?;
/// assert_eq!(linalg::matrix_rank(&a, None)?.item::<i32>()?, 1);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn matrix_rank(a: &Array, tolerance: Option<f64>) -> Result<Array> {
    let values = named("matrix_rank", svdvals(a))?;
    let [.., m, n] = a.shape()[..] else {
        return Err(Error::shape("matrix_rank", format!("{} is no matrix", a.aval())));
    };
    if m.min(n) == 0 {
        return zeros(Shape::from(&a.shape()[..a.rank() - 2]), DType::I32);
    }
    let epsilon = if values.dtype() == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
    let over = match tolerance {
        Some(tolerance) => greater(&values, tolerance)?,
        None => {
            let largest = max(&values, -1, true)?;
            greater(&values, &multiply(&largest, m.max(n) as f64 * epsilon)?)?
        }
    };
    sum(&cast(&over, DType::I32)?, -1, false)
}

/// W and V with A = V·W·Vᴴ of symmetric or Hermitian matrices: the eigenvalues from the least on, and
/// orthonormal eigenvectors as columns. Only the lower triangle is read, or the upper one where `upper`
/// is true.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`; W is real.
///
/// # Errors
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where an element is not finite.
///
/// # Derivatives
/// Those by symmetric matrices. Else as for [`svd`].
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[3.0f32, 0.0, 0.0, 2.0], [2, 2])?;
/// let (w, v) = linalg::eigh(&a, false)?;
/// assert_eq!(w.to_vec::<f32>()?, [2.0, 3.0]);
/// assert_eq!(v.to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn eigh(a: &Array, upper: bool) -> Result<(Array, Array)> {
    let outputs = Array::apply_multi(Linalg::Eigh { vectors: true }, &[&triangle(a, upper)?])?;
    pair(outputs)
}

/// The eigenvalues of symmetric or Hermitian matrices, from the least on: those of [`eigh`].
///
/// # Dtypes
/// `float32`, `float64` and `complex64`; the result is real.
///
/// # Errors
/// As [`eigh`].
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[3.0f32, 0.0, 0.0, 2.0], [2, 2])?;
/// assert_eq!(linalg::eigvalsh(&a, false)?.to_vec::<f32>()?, [2.0, 3.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn eigvalsh(a: &Array, upper: bool) -> Result<Array> {
    Array::apply(Linalg::Eigh { vectors: false }, &[&triangle(a, upper)?])
}

/// A matrix whose lower triangle is the one that is to be read: of Hermitian matrices the conjugate of
/// the upper one.
fn triangle(a: &Array, upper: bool) -> Result<Array> {
    if !upper || a.rank() < 2 {
        return Ok(a.clone());
    }
    let lower = transposed(a)?;
    if lower.dtype().is_complex() { conjugate(&lower) } else { Ok(lower) }
}

/// W and V with A·V = V·W of square matrices: eigenvalues in no order, and as columns eigenvectors of
/// length 1.
///
/// Derivatives are those where no two eigenvalues are equal. They take the phases of the vectors as fixed: functions
/// of these should not depend on them.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`; the results are `complex64`.
///
/// # Errors
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where an element is not finite.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::linalg};
/// let a = Array::from_slice(&[0.0f32, -1.0, 1.0, 0.0], [2, 2])?;
/// let (w, _) = linalg::eig(&a)?;
/// assert_eq!(ops::real(&w)?.to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn eig(a: &Array) -> Result<(Array, Array)> {
    pair(Array::apply_multi(Linalg::Eig { vectors: true }, &[a])?)
}

/// The eigenvalues of square matrices: those of [`eig`].
///
/// # Dtypes
/// `float32`, `float64` and `complex64`; the result is `complex64`.
///
/// # Errors
/// As [`eig`].
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::linalg};
/// let a = Array::from_slice(&[2.0f32, 5.0, 0.0, 2.0], [2, 2])?;
/// assert_eq!(ops::real(&linalg::eigvals(&a)?)?.to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn eigvals(a: &Array) -> Result<Array> {
    Array::apply(Linalg::Eig { vectors: false }, &[a])
}
