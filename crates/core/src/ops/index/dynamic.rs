//! Slices whose start is computed.

use crate::array::Array;
use crate::error::{Error, Result};
use crate::ops::gather::{expect_integers, gather, scatter};
use crate::ops::operand::{Axes, broadcast};
use crate::ops::{ScatterMode, squeeze};
use crate::prim::record::slice_axis;
use crate::shape::{Dims, Shape};

/// The start along each of `axes`, as arrays without axes.
fn starts(op: &'static str, x: &Array, start: &Array, axes: Axes) -> Result<Vec<(usize, Array)>> {
    expect_integers(op, start)?;
    let axes = axes.listed(op, x.rank())?.unwrap_or_else(|| (0..x.rank()).collect());
    if start.rank() > 1 || start.size() != axes.len() {
        return Err(Error::shape(
            op,
            format!("start {} is not a number for each of axes {:?}", start.aval(), &axes[..]),
        ));
    }
    let one = |(i, &axis): (usize, &usize)| {
        let at = if start.rank() == 0 {
            start.clone()
        } else {
            squeeze(&slice_axis(start, 0, i, 1)?, 0)?
        };
        Ok((axis, at))
    };
    axes.iter().enumerate().map(one).collect()
}

/// Checks that a slice of `sizes` is not larger than `x`.
fn expect_inside(op: &'static str, x: &Array, sizes: &[usize]) -> Result<()> {
    if sizes.len() == x.rank() && sizes.iter().zip(x.shape().iter()).all(|(a, b)| a <= b) {
        return Ok(());
    }
    Err(Error::shape(op, format!("no slice of {} has shape {sizes:?}", x.aval())))
}

/// The slice of `x` that has shape `sizes` and starts at the elements of `start` along `axes`, and
/// at 0 along the others.
///
/// # Errors
/// Where the sizes do not fit, or `start` is not an integer for each axis; when it runs where the
/// slice does not lie in the array.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4, 5, 6], [2, 3])?;
/// let start = Array::from_slice(&[1, 1], [2])?;
/// assert_eq!(ops::slice_at(&x, &start, [0, 1], [1, 2])?.to_vec::<i32>()?, [5, 6]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn slice_at(
    x: &Array,
    start: &Array,
    axes: impl Into<Axes>,
    sizes: impl Into<Shape>,
) -> Result<Array> {
    let (op, sizes) = ("slice", sizes.into());
    expect_inside(op, x, &sizes)?;
    let starts = starts(op, x, start, axes.into())?;
    let places: Vec<(usize, &Array)> = starts.iter().map(|(axis, at)| (*axis, at)).collect();
    gather(x, &places, sizes)
}

/// `x` with `update` in place of the slice that starts at the elements of `start` along `axes`, and
/// at 0 along the others.
///
/// # Shapes
/// Along leading axes that it lacks, `update` is repeated: over one place where the axis is in `axes`,
/// over all of them else.
///
/// # Dtypes
/// The update is taken in x's dtype.
///
/// # Errors
/// As [`slice_at`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4], [4])?;
/// let (start, update) = (Array::scalar(1), Array::from_slice(&[0, 0], [2])?);
/// assert_eq!(ops::slice_update_at(&x, &update, &start, 0)?.to_vec::<i32>()?, [1, 0, 0, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn slice_update_at(
    x: &Array,
    update: &Array,
    start: &Array,
    axes: impl Into<Axes>,
) -> Result<Array> {
    let op = "slice_update";
    let starts = starts(op, x, start, axes.into())?;
    let missing = x.rank().saturating_sub(update.rank());
    let whole = |axis: usize| match starts.iter().any(|(a, _)| *a == axis) {
        true => 1,
        false => x.shape()[axis],
    };
    let sizes: Dims = (0..missing).map(whole).chain(update.shape().iter().copied()).collect();
    expect_inside(op, x, &sizes)?;
    let places: Vec<(usize, &Array)> = starts.iter().map(|(axis, at)| (*axis, at)).collect();
    scatter(x, &places, &broadcast(update, &Shape(sizes))?, ScatterMode::Set)
}
