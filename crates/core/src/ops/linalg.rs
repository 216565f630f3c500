//! Linear algebra: norms, products, factorizations, equations, eigenvalues.
//!
//! Matrices are in the last two axes; the others are batches.

use super::operand::{Axes, Operand, broadcast, cast, common_dtype, inexact};
use super::reduce::reduce;
use super::{
    abs, add, concatenate, conjugate, diagonal, expand_dims, eye, eye_at, greater, log, matmul,
    max, multiply, not_equal, ones_like, pad, permute, power, prod, sign, squeeze_axes, subtract,
    sum, swapaxes, tril, triu, where_,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::record::slice_axis;
use crate::prim::{Linalg, ReduceKind, Vectors};
use crate::shape::{Dims, Shape, normalize_axis};

/// Which norm [`norm`] takes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Order {
    /// The root of the sum of squares, of a vector or a matrix.
    #[default]
    Euclidean,
    /// The same, of a matrix alone.
    Frobenius,
    /// The sum of a matrix' singular values.
    Nuclear,
    /// Of a vector the p-norm, with 0, ∞ and −∞ as the count of what is not 0, the largest and the
    /// smallest size; of a matrix the largest (or smallest, for −1 and −∞) sum of sizes in a column
    /// for ±1, in a row for ±∞.
    Power(f64),
}

impl From<f64> for Order {
    fn from(power: f64) -> Self {
        Order::Power(power)
    }
}

/// The norm of the vectors along one axis, or of the matrices in two; of everything for `()`.
///
/// # Shapes
/// The axes go, or stay with size 1 where `keepdims` is true.
///
/// # Dtypes
/// Integers and bool are taken as `float32`; the norm of complex numbers is real.
///
/// # Errors
/// For more than two axes, and for an order that is not one of a vector's or of a matrix'.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let x = Array::from_slice(&[3.0f32, -4.0, 1.0, 2.0], [2, 2])?;
/// assert_eq!(linalg::norm(&x, linalg::Order::Euclidean, 1, false)?.to_vec::<f32>()?[0], 5.0);
/// assert_eq!(linalg::norm(&x, 1.0, 1, false)?.to_vec::<f32>()?, [7.0, 3.0]);
/// assert_eq!(linalg::norm(&x, f64::INFINITY, (), false)?.item::<f32>()?, 7.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn norm(
    x: &Array,
    order: impl Into<Order>,
    axes: impl Into<Axes>,
    keepdims: bool,
) -> Result<Array> {
    let (order, axes) = (order.into(), axes.into());
    let listed = axes.listed("norm", x.rank())?;
    if order == Order::Euclidean && listed.is_none() {
        return super::norm(x, (), keepdims);
    }
    let axes = listed.unwrap_or_else(|| (0..x.rank()).collect());
    match axes[..] {
        [axis] => vector_norm(x, order, axis, keepdims),
        [row, column] => matrix_norm(x, order, (row, column), keepdims),
        _ => Err(Error::argument(
            "norm",
            format!("is of one axis or two, not of axes {:?} of {}", &axes[..], x.aval()),
        )),
    }
}

fn vector_norm(x: &Array, order: Order, axis: usize, keepdims: bool) -> Result<Array> {
    let power_of = match order {
        Order::Euclidean => 2.0,
        Order::Power(p) => p,
        Order::Frobenius | Order::Nuclear => {
            return Err(Error::argument(
                "norm",
                format!("{order:?} is a norm of matrices, not of axis {axis} of {}", x.aval()),
            ));
        }
    };
    let along = Dims::from_slice(&[axis]);
    if power_of == 2.0 {
        return super::norm(x, axis, keepdims);
    }
    let size = abs(&inexact(x)?)?;
    if power_of.is_infinite() {
        let kind = if power_of > 0.0 { ReduceKind::Max } else { ReduceKind::Min };
        return reduce(kind, &size, along, keepdims);
    }
    let wide = cast(&size, size.dtype().accumulator())?;
    let total = if power_of == 0.0 {
        sum(&cast(&not_equal(&wide, 0)?, wide.dtype())?, axis, keepdims)?
    } else if power_of == 1.0 {
        sum(&wide, axis, keepdims)?
    } else {
        power(&sum(&power(&wide, power_of)?, axis, keepdims)?, 1.0 / power_of)?
    };
    cast(&total, size.dtype())
}

fn matrix_norm(
    x: &Array,
    order: Order,
    (row, column): (usize, usize),
    keepdims: bool,
) -> Result<Array> {
    let invalid = |detail: &str| {
        Error::argument("norm", format!("{order:?} of matrices {detail} (input {})", x.aval()))
    };
    let (folded, kind) = match order {
        Order::Euclidean | Order::Frobenius => return super::norm(x, [row, column], keepdims),
        Order::Power(1.0) => (row, ReduceKind::Max),
        Order::Power(-1.0) => (row, ReduceKind::Min),
        Order::Power(f64::INFINITY) => (column, ReduceKind::Max),
        Order::Power(f64::NEG_INFINITY) => (column, ReduceKind::Min),
        Order::Power(2.0) => return spectral_norm(x, ReduceKind::Max, (row, column), keepdims),
        Order::Power(-2.0) => return spectral_norm(x, ReduceKind::Min, (row, column), keepdims),
        Order::Nuclear => return spectral_norm(x, ReduceKind::Sum, (row, column), keepdims),
        Order::Power(_) => return Err(invalid("is not defined")),
    };
    let size = abs(&inexact(x)?)?;
    let wide = cast(&size, size.dtype().accumulator())?;
    let other = if folded == row { column } else { row };
    let sums = sum(&wide, folded, true)?;
    let out = cast(&reduce(kind, &sums, Dims::from_slice(&[other]), true)?, size.dtype())?;
    let gone = Dims::from_slice(&[row.min(column), row.max(column)]);
    if keepdims { Ok(out) } else { squeeze_axes(&out, gone) }
}

/// A fold of the singular values. Half types, integers and bool are taken as `float32`.
fn spectral_norm(
    x: &Array,
    kind: ReduceKind,
    (row, column): (usize, usize),
    keepdims: bool,
) -> Result<Array> {
    let own = x.dtype().to_inexact();
    let order = (0..x.rank()).filter(|&a| a != row && a != column).chain([row, column]).collect();
    let matrices = permute(&cast(x, own.accumulator())?, order)?;
    let values = svdvals(&matrices)?;
    let last = Dims::from_slice(&[values.rank() - 1]);
    let out = reduce(kind, &values, last, false)?;
    let out = if own.is_float() { cast(&out, own)? } else { out };
    if !keepdims {
        return Ok(out);
    }
    expand_dims(&out, [row.min(column), row.max(column)])
}

/// The cross products of the vectors along an axis.
///
/// # Shapes
/// The axis is of size 3, or 2, to which a 0 is added; the other axes broadcast.
///
/// # Errors
/// Where the axis is of another size.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let (x, y) = (Array::from_slice(&[1, 2, 3], [3])?, Array::from_slice(&[4, 5, 6], [3])?);
/// assert_eq!(linalg::cross(&x, &y, -1)?.to_vec::<i32>()?, [-3, 6, -3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cross(a: &Array, b: &Array, axis: isize) -> Result<Array> {
    let dtype = match common_dtype(&[Operand::Array(a), Operand::Array(b)]) {
        DType::Bool => DType::I32,
        dtype => dtype,
    };
    // The axis goes last, where both have it whatever their ranks.
    let vectors = |x: &Array| -> Result<Array> {
        let axis = normalize_axis("cross", axis, x.rank())?;
        let size = x.shape()[axis];
        if size != 2 && size != 3 {
            return Err(Error::shape(
                "cross",
                format!("axis {axis} of {} is not of size 2 or 3", x.aval()),
            ));
        }
        let order = (0..x.rank()).filter(|&i| i != axis).chain([axis]).collect();
        let x = cast(&permute(x, order)?, dtype)?;
        let mut widths = vec![(0, 0); x.rank()];
        widths[x.rank() - 1] = (0, 3 - size);
        pad(&x, &widths[..], 0)
    };
    let (a, b) = (vectors(a)?, vectors(b)?);
    let shape = a.shape().broadcast(b.shape(), "cross")?;
    let (a, b) = (broadcast(&a, &shape)?, broadcast(&b, &shape)?);
    let last = shape.rank() - 1;
    let part = |x: &Array, i: usize| slice_axis(x, last, i % 3, 1);
    let component = |i: usize| {
        let there = multiply(&part(&a, i + 1)?, &part(&b, i + 2)?)?;
        subtract(&there, &multiply(&part(&a, i + 2)?, &part(&b, i + 1)?)?)
    };
    let out = concatenate(&[&component(0)?, &component(1)?, &component(2)?], last)?;
    super::moveaxis(&out, -1, if axis < 0 { axis } else { axis.min(last as isize) })
}

/// Checks that `a` is of square matrices.
fn square(op: &'static str, a: &Array) -> Result<usize> {
    match a.shape()[..] {
        [.., m, n] if m == n => Ok(n),
        [.., _, _] => Err(Error::shape(op, format!("is of square matrices, not of {}", a.aval()))),
        _ => Err(Error::shape(op, format!("{} is no matrix: it has less than two axes", a.aval()))),
    }
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

fn transposed(a: &Array) -> Result<Array> {
    swapaxes(a, -1, -2)
}

/// Rows as columns, conjugated.
fn adjoint(a: &Array) -> Result<Array> {
    conjugate(&transposed(a)?)
}

/// The identity in the shape of square matrices.
fn identity_like(a: &Array) -> Result<Array> {
    let n = a.shape()[a.rank() - 1];
    broadcast(&eye(n, a.dtype())?, a.shape())
}

/// Two outputs of a primitive.
fn pair(outputs: Vec<Array>) -> Result<(Array, Array)> {
    match <[Array; 2]>::try_from(outputs) {
        Ok([a, b]) => Ok((a, b)),
        Err(outputs) => Err(Error::Device(format!("{} outputs came, not 2", outputs.len()))),
    }
}

/// Three outputs of a primitive.
fn triple(outputs: Vec<Array>) -> Result<(Array, Array, Array)> {
    match <[Array; 3]>::try_from(outputs) {
        Ok([a, b, c]) => Ok((a, b, c)),
        Err(outputs) => Err(Error::Device(format!("{} outputs came, not 3", outputs.len()))),
    }
}

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

/// The same error, of `op`.
fn named(op: &'static str, result: Result<Array>) -> Result<Array> {
    result.map_err(|error| match error {
        Error::DType { detail, .. } => Error::DType { op, detail },
        Error::Shape { detail, .. } => Error::Shape { op, detail },
        error => error,
    })
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

/// A = Q·R: Q with orthonormal columns, as many as A has rows or columns, whichever are fewer, and R
/// upper triangular.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`.
///
/// # Errors
/// Where `a` has less than two axes or another dtype.
///
/// # Derivatives
/// Of real matrices, where the first columns do not depend on each other.
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
/// its diagonal, U upper triangular. Each pivot is the largest of its column.
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
/// its own, as `uint32`.
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
    if lower.dtype() == DType::C64 { super::conjugate(&lower) } else { Ok(lower) }
}

/// W and V with A·V = V·W of square matrices: eigenvalues in no order, and as columns eigenvectors of
/// length 1.
///
/// # Dtypes
/// `float32`, `float64` and `complex64`; the results are `complex64`.
///
/// # Errors
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where an element is not finite. There are no derivatives.
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

/// Square matrices in the dtype that determinants are computed in, their size, and the dtype of the
/// result.
fn for_determinants(op: &'static str, a: &Array) -> Result<(Array, usize, DType)> {
    let n = square(op, a)?;
    let own = a.dtype().to_inexact();
    Ok((cast(a, own.accumulator())?, n, own))
}

/// The product of −1 for each exchange of rows.
fn exchanges(pivots: &Array, dtype: DType) -> Result<Array> {
    let place = super::iota(pivots.shape().clone(), pivots.rank() - 1, DType::U32)?;
    let one = ones_like(&cast(pivots, dtype)?)?;
    let sign = where_(&not_equal(pivots, &place)?, -1, &one)?;
    prod(&sign, -1, false)
}

/// Element (i, j) of each matrix.
fn element(a: &Array, i: usize, j: usize) -> Result<Array> {
    let rank = a.rank();
    let row = slice_axis(a, rank - 2, i, 1)?;
    squeeze_axes(&slice_axis(&row, rank - 1, j, 1)?, Dims::from_slice(&[rank - 2, rank - 1]))
}

/// The determinant of matrices of up to three rows as the sum that it is: of singular ones, too, it has
/// its derivative.
fn small_determinant(a: &Array, n: usize) -> Result<Array> {
    let at = |i: usize, j: usize| element(a, i, j);
    let minor = |i: [usize; 2], j: [usize; 2]| {
        let first = multiply(&at(i[0], j[0])?, &at(i[1], j[1])?)?;
        subtract(&first, &multiply(&at(i[0], j[1])?, &at(i[1], j[0])?)?)
    };
    match n {
        0 => super::ones(Shape::from(&a.shape()[..a.rank() - 2]), a.dtype()),
        1 => at(0, 0),
        2 => minor([0, 1], [0, 1]),
        _ => {
            let first = multiply(&at(0, 0)?, &minor([1, 2], [1, 2])?)?;
            let second = multiply(&at(0, 1)?, &minor([1, 2], [0, 2])?)?;
            let third = multiply(&at(0, 2)?, &minor([1, 2], [0, 1])?)?;
            add(&subtract(&first, &second)?, &third)
        }
    }
}

/// The determinants of square matrices.
///
/// # Dtypes
/// Integers and bool are taken as `float32`; half types are computed in `float32`.
///
/// # Errors
/// Where `a` has less than two axes or is not square. The derivative by a singular matrix of
/// more than three rows is an error when it is computed.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(linalg::det(&a)?.item::<f32>()?, -2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn det(a: &Array) -> Result<Array> {
    let (a, n, own) = for_determinants("det", a)?;
    if n <= 3 {
        return cast(&small_determinant(&a, n)?, own);
    }
    let (lu, pivots) = lu_factor(&a)?;
    let product = prod(&diagonal(&lu, 0, -2, -1)?, -1, false)?;
    cast(&multiply(&product, &exchanges(&pivots, a.dtype())?)?, own)
}

/// The signs of the determinants of square matrices, and the logarithms of their sizes: 0 and −∞ of
/// singular ones.
///
/// # Dtypes
/// As [`det`].
///
/// # Errors
/// As [`det`].
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[1.0f32, 0.0, 0.0, -1.0], [2, 2])?;
/// let (sign, log) = linalg::slogdet(&a)?;
/// assert_eq!((sign.item::<f32>()?, log.item::<f32>()?), (-1.0, 0.0));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn slogdet(a: &Array) -> Result<(Array, Array)> {
    let (a, _, own) = for_determinants("slogdet", a)?;
    let (lu, pivots) = lu_factor(&a)?;
    let pivot = diagonal(&lu, 0, -2, -1)?;
    let signs = prod(&sign(&pivot)?, -1, false)?;
    let signs = multiply(&signs, &exchanges(&pivots, a.dtype())?)?;
    let logs = sum(&log(&abs(&pivot)?)?, -1, false)?;
    Ok((cast(&signs, own)?, cast(&logs, if own == DType::C64 { logs.dtype() } else { own })?))
}

/// The X of least squares: the one of least length of those for which A·X is closest to B.
///
/// # Shapes
/// `a` is `[.., m, n]`, `b` a vector `[m]` or `[.., m, k]`.
///
/// # Dtypes
/// The operands promote, to `float32` or `float64`.
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

/// The product of `n` times a square matrix; of its inverse for a negative `n`, and the identity for 0.
///
/// # Dtypes
/// Those of [`super::matmul`]; for a negative `n` those of [`inv`].
///
/// # Errors
/// Where `a` has less than two axes or is not square; when it is computed for a negative `n` where it is
/// singular.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[1.0f32, 1.0, 0.0, 1.0], [2, 2])?;
/// assert_eq!(linalg::matrix_power(&a, 5)?.to_vec::<f32>()?, [1.0, 5.0, 0.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn matrix_power(a: &Array, n: i64) -> Result<Array> {
    square("matrix_power", a)?;
    let mut square = if n < 0 { named("matrix_power", inv(a))? } else { a.clone() };
    let (mut left, mut power) = (n.unsigned_abs(), None);
    // The squares whose exponents are the digits of n.
    while left > 0 {
        if left & 1 == 1 {
            power = Some(match power {
                Some(power) => matmul(&power, &square)?,
                None => square.clone(),
            });
        }
        left >>= 1;
        if left > 0 {
            square = matmul(&square, &square)?;
        }
    }
    match power {
        Some(power) => Ok(power),
        None => identity_like(a),
    }
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
        return super::zeros(Shape::from(&a.shape()[..a.rank() - 2]), DType::I32);
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
