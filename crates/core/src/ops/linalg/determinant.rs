//! Determinants.

use super::{lu_factor, square};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::operand::cast;
use crate::ops::{
    abs, add, diagonal, iota, log, multiply, not_equal, ones, ones_like, prod, sign, squeeze_axes,
    subtract, sum, where_,
};
use crate::prim::record::slice_axis;
use crate::shape::{Dims, Shape};

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
    Ok((cast(&signs, own)?, cast(&logs, if own.is_complex() { logs.dtype() } else { own })?))
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
    let place = iota(pivots.shape().clone(), pivots.rank() - 1, DType::U32)?;
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
        0 => ones(Shape::from(&a.shape()[..a.rank() - 2]), a.dtype()),
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
