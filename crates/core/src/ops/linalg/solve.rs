//! Equations and inverses.

use super::{adjoint, identity_like, named, square, svdvals};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::operand::{Operand, broadcast, cast, common_dtype};
use crate::ops::{
    add, expand_dims, greater, imag, matmul, max, multiply, real, squeeze_axes, subtract, sum,
    zeros,
};
use crate::prim::Linalg;
use crate::shape::{Dims, Shape};

/// X with A·X = B.
///
/// # Shapes
/// `a` is `[.., n, n]`, `b` a vector `[n]` or `[.., n, k]`; the other axes broadcast.
///
/// # Dtypes
/// The operands promote, to `float32` or `float64`.
///
/// # Errors
/// Where shapes or dtypes do not fit; when it is computed where A is singular.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[2.0f32, 1.0, 0.0, 4.0], [2, 2])?;
/// let b = Array::from_slice(&[4.0f32, 8.0], [2])?;
/// assert_eq!(linalg::solve(&a, &b)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn solve(a: &Array, b: &Array) -> Result<Array> {
    solution(Linalg::Solve, a, b)
}

/// X with A·X = B for triangular matrices: lower ones, or upper ones where `upper` is true. Only the
/// triangle is read.
///
/// # Shapes
/// `a` is `[.., n, n]`, `b` a vector `[n]` or `[.., n, k]`; the other axes broadcast.
///
/// # Dtypes
/// The operands promote, to `float32` or `float64`.
///
/// # Errors
/// Where shapes or dtypes do not fit; when it is computed where A has a 0 on its diagonal.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[2.0f32, 0.0, 1.0, 4.0], [2, 2])?;
/// let b = Array::from_slice(&[4.0f32, 10.0], [2])?;
/// assert_eq!(linalg::solve_triangular(&a, &b, false)?.to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn solve_triangular(a: &Array, b: &Array, upper: bool) -> Result<Array> {
    solution(Linalg::SolveTriangular { upper, unit: false }, a, b)
}

fn solution(op: Linalg, a: &Array, b: &Array) -> Result<Array> {
    let name = op.name();
    let n = square(name, a)?;
    let invalid =
        || Error::shape(name, format!("{} and {} do not go together", a.aval(), b.aval()));
    let dtype = common_dtype(&[Operand::Array(a), Operand::Array(b)]);
    let is_vector = b.rank() == 1;
    let columns = match b.rank() {
        0 => return Err(invalid()),
        1 => expand_dims(b, 1)?,
        _ => b.clone(),
    };
    if columns.shape()[columns.rank() - 2] != n {
        return Err(invalid());
    }
    if !op.takes(dtype) {
        let detail = format!(
            "{} and {} do not promote to float32, float64 or complex64",
            a.aval(),
            b.aval()
        );
        return Err(Error::dtype(name, detail));
    }
    let (lead, other) = (&a.shape()[..a.rank() - 2], &columns.shape()[..columns.rank() - 2]);
    let lead = Shape::from(lead).broadcast(&Shape::from(other), name).map_err(|_| invalid())?;
    let to = |x: &Array| {
        let shape: Shape = lead.iter().chain(&x.shape()[x.rank() - 2..]).copied().collect();
        broadcast(&cast(x, dtype)?, &shape)
    };
    let x = Array::apply(op, &[&to(a)?, &to(&columns)?])?;
    if is_vector { squeeze_axes(&x, Dims::from_slice(&[x.rank() - 1])) } else { Ok(x) }
}

/// The inverse of square matrices.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`.
///
/// # Errors
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where it is singular.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[2.0f32, 1.0, 0.0, 4.0], [2, 2])?;
/// assert_eq!(linalg::inv(&a)?.to_vec::<f32>()?, [0.5, -0.125, 0.0, 0.25]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn inv(a: &Array) -> Result<Array> {
    square("inv", a)?;
    named("inv", Array::apply(Linalg::Solve, &[a, &identity_like(a)?]))
}

/// The inverse of triangular matrices: of lower ones, or of upper ones where `upper` is true. Only the
/// triangle is read.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`.
///
/// # Errors
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where there is a 0 on the diagonal.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[2.0f32, 0.0, 1.0, 4.0], [2, 2])?;
/// let inverse = linalg::tri_inv(&a, false)?;
/// assert_eq!(inverse.to_vec::<f32>()?, [0.5, 0.0, -0.125, 0.25]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn tri_inv(a: &Array, upper: bool) -> Result<Array> {
    square("tri_inv", a)?;
    let op = Linalg::SolveTriangular { upper, unit: false };
    named("tri_inv", Array::apply(op, &[a, &identity_like(a)?]))
}

/// The inverse of A = L·Lᴴ from its factor L; of A = Uᴴ·U from U where `upper` is true. Only the triangle
/// is read.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`.
///
/// # Errors
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where the factor has a 0 on its diagonal.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let l = Array::from_slice(&[2.0f32, 0.0, 0.0, 4.0], [2, 2])?;
/// let inverse = linalg::cholesky_inv(&l, false)?;
/// assert_eq!(inverse.to_vec::<f32>()?, [0.25, 0.0, 0.0, 0.0625]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cholesky_inv(a: &Array, upper: bool) -> Result<Array> {
    let n = square("cholesky_inv", a)?;
    let inverse = named("cholesky_inv", tri_inv(a, upper))?;
    if n == 0 {
        return Ok(inverse);
    }
    match upper {
        true => matmul(&inverse, &adjoint(&inverse)?),
        false => matmul(&adjoint(&inverse)?, &inverse),
    }
}

/// The pseudoinverse by Moore and Penrose. Singular values up to 10·max(m, n)·ε of the largest count as 0.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`.
///
/// # Errors
/// Where `a` has less than two axes or another dtype; when it is computed where an element is not
/// finite.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[2.0f32, 0.0, 0.0, 0.0], [2, 2])?;
/// assert_eq!(linalg::pinv(&a)?.to_vec::<f32>()?, [0.5, 0.0, 0.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn pinv(a: &Array) -> Result<Array> {
    Array::apply(Linalg::Pinv, &[a])
}

/// The X of least squares: the one of least length of those for which A·X is closest to B.
///
/// # Shapes
/// `a` is `[.., m, n]`, `b` a vector `[m]` or `[.., m, k]`.
///
/// # Dtypes
/// The operands promote, to `float32`, `float64` or `complex64`.
///
/// # Errors
/// Where shapes or dtypes do not fit; when it is computed where an element of A is not finite.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[1.0f32, 1.0, 1.0, 1.0], [4, 1])?;
/// let b = Array::from_slice(&[1.0f32, 2.0, 3.0, 6.0], [4])?;
/// let mean = linalg::lstsq(&a, &b)?;
/// assert!((mean.item::<f32>()? - 3.0).abs() < 1e-5);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn lstsq(a: &Array, b: &Array) -> Result<Array> {
    let dtype = common_dtype(&[Operand::Array(a), Operand::Array(b)]);
    let fits = a.rank() >= 2 && b.rank() >= 1 && {
        let rows = b.shape()[if b.rank() == 1 { 0 } else { b.rank() - 2 }];
        rows == a.shape()[a.rank() - 2]
    };
    if !fits {
        let detail = format!("{} and {} do not go together", a.aval(), b.aval());
        return Err(Error::shape("lstsq", detail));
    }
    named("lstsq", pinv(&cast(a, dtype)?).and_then(|inverse| matmul(&inverse, &cast(b, dtype)?)))
}

/// What [`lstsq_full`] finds.
#[derive(Clone, Debug)]
pub struct LeastSquares {
    /// X, as [`lstsq`] gives it.
    pub solution: Array,
    /// The sums of the squares of A·X − B, one for each column of B.
    pub residuals: Array,
    /// How many singular values count as not 0, as `int32`.
    pub rank: Array,
    /// The singular values of A, the largest first.
    pub singular_values: Array,
}

/// [`lstsq`], with what is left over, the rank of A and its singular values. Those up to 10·max(m, n)·ε of the largest
/// count as 0, for X as for the rank.
///
/// # Shapes
/// As [`lstsq`]. Of `a` `[.., m, n]` and `b` `[.., m, k]` the residuals are `[.., k]`, also where A·X is B or the rank
/// is less than n; of a vector `b` they are `[.., 1]`. The rank is `[..]`, the singular values are `[.., min(m, n)]`.
///
/// # Dtypes
/// As [`lstsq`]; residuals and singular values are real.
///
/// # Errors
/// As [`lstsq`].
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[1.0f32, 1.0, 1.0, 1.0], [4, 1])?;
/// let b = Array::from_slice(&[1.0f32, 2.0, 3.0, 6.0], [4])?;
/// let found = linalg::lstsq_full(&a, &b)?;
/// assert!((found.residuals.item::<f32>()? - 14.0).abs() < 1e-4);
/// assert_eq!(found.rank.item::<i32>()?, 1);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn lstsq_full(a: &Array, b: &Array) -> Result<LeastSquares> {
    let solution = lstsq(a, b)?;
    let dtype = solution.dtype();
    let (a, b) = (cast(a, dtype)?, cast(b, dtype)?);
    let (m, n) = (a.shape()[a.rank() - 2], a.shape()[a.rank() - 1]);
    let is_vector = b.rank() == 1;
    let column = |x: &Array| if is_vector { expand_dims(x, -1) } else { Ok(x.clone()) };
    let left = subtract(&matmul(&a, &column(&solution)?)?, &column(&b)?)?;
    let squares = match dtype.is_complex() {
        true => {
            add(&multiply(&real(&left)?, &real(&left)?)?, &multiply(&imag(&left)?, &imag(&left)?)?)?
        }
        false => multiply(&left, &left)?,
    };
    let residuals = sum(&squares, -2, false)?;
    let singular_values = named("lstsq", svdvals(&a))?;
    let rank = if m.min(n) == 0 {
        zeros(Shape::from(&a.shape()[..a.rank() - 2]), DType::I32)?
    } else {
        let epsilon = if dtype == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
        let largest = max(&singular_values, -1, true)?;
        let least = multiply(&largest, 10.0 * m.max(n) as f64 * epsilon)?;
        sum(&cast(&greater(&singular_values, &least)?, DType::I32)?, -1, false)?
    };
    Ok(LeastSquares { solution, residuals, rank, singular_values })
}
