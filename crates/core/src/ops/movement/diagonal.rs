//! Diagonals: taken, made and summed.

use super::{flatten, pad_constant, permute, reshape};
use crate::array::Array;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::ops::sum;
use crate::prim::Movement;
use crate::shape::{Dims, normalize_axis};

/// The diagonal of two axes, `offset` places above the main one, as the last axis.
///
/// # Errors
/// Where there are no two such axes.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4, 5, 6], [2, 3])?;
/// assert_eq!(ops::diagonal(&x, 1, 0, 1)?.to_vec::<i32>()?, [2, 6]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn diagonal(x: &Array, offset: isize, axis1: isize, axis2: isize) -> Result<Array> {
    if x.rank() < 2 {
        return Err(Error::shape("diagonal", format!("{} has less than two axes", x.aval())));
    }
    let a = normalize_axis("diagonal", axis1, x.rank())?;
    let b = normalize_axis("diagonal", axis2, x.rank())?;
    if a == b {
        return Err(Error::argument("diagonal", format!("axes {axis1} and {axis2} are the same")));
    }
    let order = (0..x.rank()).filter(|&i| i != a && i != b).chain([a, b]).collect();
    let (rows, columns) = (x.shape()[a], x.shape()[b]);
    let (below, right) = (offset.min(0).unsigned_abs(), offset.max(0).unsigned_abs());
    let count = rows.saturating_sub(below).min(columns.saturating_sub(right));
    // In the flattened matrix the diagonal's elements are a row and one element apart.
    let flat = flatten(&permute(x, order)?, -2, -1)?;
    let last = flat.rank() - 1;
    let mut start = Dims::from_elem(0, flat.rank());
    start[last] = if count == 0 { 0 } else { below * columns + right };
    let sizes = flat.shape().with(last, count).0;
    let mut strides = Dims::from_elem(1, flat.rank());
    strides[last] = columns + 1;
    Array::apply(Movement::Slice { start, sizes, strides }, &[&flat])
}

/// A matrix with a vector on its diagonal, or the diagonal of a matrix; `offset` places above the
/// main one.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2], [2])?;
/// assert_eq!(ops::diag(&x, 0)?.to_vec::<i32>()?, [1, 0, 0, 2]);
/// assert_eq!(ops::diag(&ops::diag(&x, 1)?, 1)?.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn diag(x: &Array, offset: isize) -> Result<Array> {
    match x.rank() {
        1 => {
            // n zeros between neighbours put element i at place i·(n + 1) of n² places.
            let (n, none) = (x.shape()[0], Dims::from_elem(0, 1));
            let zero = Scalar::Int(0);
            let spread = pad_constant(x, none.clone(), none, Dims::from_elem(n, 1), zero)?;
            let square = reshape(&spread, [n, n])?;
            let (below, right) = (offset.min(0).unsigned_abs(), offset.max(0).unsigned_abs());
            super::pad(&square, [(below, right), (right, below)], 0)
        }
        2 => diagonal(x, offset, 0, 1),
        _ => Err(Error::shape("diag", format!("takes a vector or a matrix, not {}", x.aval()))),
    }
}

/// The sum of the diagonal of two axes, `offset` places above the main one.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::trace(&ops::eye(3, DType::F32)?, 0, 0, 1)?.item::<f32>()?, 3.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn trace(x: &Array, offset: isize, axis1: isize, axis2: isize) -> Result<Array> {
    sum(&diagonal(x, offset, axis1, axis2)?, -1, false)
}
