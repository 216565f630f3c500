//! Differences and convolutions of sequences.

use super::operand::{broadcast, cast};
use super::{ConvOptions, concatenate, conv1d, not_equal, reshape, subtract};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::record::slice_axis;
use crate::shape::{Shape, normalize_axis};

/// The differences of neighbours along an axis, taken `n` times. What is to `prepend` and to `append` stands beside
/// them first.
///
/// # Shapes
/// The axis gets shorter by `n`, down to 0. What stands beside has the other axes of `x`, or is one number for each
/// place.
///
/// # Dtypes
/// All promote. Integers wrap; of bools it is whether they differ.
///
/// # Errors
/// Where there is no such axis, and where shapes do not fit.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 4, 9, 16], [4])?;
/// assert_eq!(ops::diff(&x, 1, -1, None, None)?.to_vec::<i32>()?, [3, 5, 7]);
/// assert_eq!(ops::diff(&x, 2, -1, None, None)?.to_vec::<i32>()?, [2, 2]);
/// let zero = Array::scalar(0);
/// assert_eq!(ops::diff(&x, 1, -1, Some(&zero), None)?.to_vec::<i32>()?, [1, 3, 5, 7]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn diff(
    x: &Array,
    n: usize,
    axis: isize,
    prepend: Option<&Array>,
    append: Option<&Array>,
) -> Result<Array> {
    let axis = normalize_axis("diff", axis, x.rank())?;
    if n == 0 {
        return Ok(x.clone());
    }
    let beside = |array: &Array| match array.rank() {
        0 => {
            let mut one = x.shape().to_vec();
            one[axis] = 1;
            broadcast(array, &Shape::from(one))
        }
        _ => Ok(array.clone()),
    };
    let (before, after) = (prepend.map(beside).transpose()?, append.map(beside).transpose()?);
    let parts: Vec<&Array> = before.iter().chain([x]).chain(&after).collect();
    let mut out = concatenate(&parts, axis as isize)?;
    for _ in 0..n.min(out.shape()[axis]) {
        let count = out.shape()[axis] - 1;
        let (low, high) = (slice_axis(&out, axis, 0, count)?, slice_axis(&out, axis, 1, count)?);
        out = match out.dtype() {
            DType::Bool => not_equal(&high, &low)?,
            _ => subtract(&high, &low)?,
        };
    }
    Ok(out)
}

/// How much of a convolution [`convolve`] gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ConvolveMode {
    /// Every place where the vectors overlap.
    #[default]
    Full,
    /// As many places as the longer vector has, in the middle.
    Same,
    /// The places where the shorter vector is whole inside the longer.
    Valid,
}

/// The discrete convolution of two vectors: of which the shorter one runs backwards over the other.
///
/// # Shapes
/// Of n and m elements, n ≥ m: n + m − 1 in full, n of the same, n − m + 1 valid.
///
/// # Dtypes
/// Both promote; integers and bool are taken as `float32`.
///
/// # Errors
/// Where one is empty, or is not a vector, and for complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::ConvolveMode};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
/// let w = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(ops::convolve(&x, &w, ConvolveMode::Full)?.to_vec::<f32>()?, [1.0, 4.0, 7.0, 6.0]);
/// assert_eq!(ops::convolve(&x, &w, ConvolveMode::Same)?.to_vec::<f32>()?, [1.0, 4.0, 7.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn convolve(a: &Array, v: &Array, mode: ConvolveMode) -> Result<Array> {
    if a.rank() != 1 || v.rank() != 1 || a.size() == 0 || v.size() == 0 {
        return Err(Error::shape(
            "convolve",
            format!("takes vectors that are not empty, not {} and {}", a.aval(), v.aval()),
        ));
    }
    let (long, short) = if a.size() < v.size() { (v, a) } else { (a, v) };
    let reach = short.size() - 1;
    let (low, high) = match mode {
        ConvolveMode::Full => (reach, reach),
        ConvolveMode::Same => (reach - reach / 2, reach / 2),
        ConvolveMode::Valid => (0, 0),
    };
    let mut options = ConvOptions::new().flip(true);
    options.padding = vec![(low, high)];
    let dtype = long.dtype().promote(short.dtype()).to_inexact();
    let column = |x: &Array| reshape(&cast(x, dtype)?, [1, -1, 1]);
    reshape(&conv1d(&column(long)?, &column(short)?, &options)?, -1)
}
