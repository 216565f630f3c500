//! Where an axis has its extreme value.

use super::operand::Axes;
use super::{expand_axes, reshape};
use crate::array::Array;
use crate::error::Result;
use crate::prim::ArgReduce;
use crate::shape::Dims;

fn arg_reduce(max: bool, x: &Array, axis: Axes, keepdims: bool) -> Result<Array> {
    let op = ArgReduce { max, axis: 0 };
    match axis.single(op.name(), x.rank())? {
        Some(axis) => {
            let out = along(ArgReduce { max, axis }, x)?;
            if keepdims { expand_axes(&out, Dims::from_slice(&[axis])) } else { Ok(out) }
        }
        None => {
            let out = along(op, &reshape(x, -1)?)?;
            if keepdims { expand_axes(&out, (0..x.rank()).collect()) } else { Ok(out) }
        }
    }
}

fn along(op: ArgReduce, x: &Array) -> Result<Array> {
    if x.dtype().is_complex() && x.shape().get(op.axis).is_some_and(|&size| size > 0) {
        return super::complex::arg_extreme(op.max, x, op.axis);
    }
    Array::apply(op, &[x])
}

/// The index of the first largest element along an axis, or of the flattened array for `()`.
///
/// # Dtypes
/// Gives `uint32`. The first NaN counts as the largest.
///
/// # Errors
/// Where the axis is empty.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 4.0, 3.0, 2.0], [2, 2])?;
/// assert_eq!(ops::argmax(&x, 1, false)?.to_vec::<u32>()?, [1, 0]);
/// assert_eq!(ops::argmax(&x, (), false)?.item::<u32>()?, 1);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn argmax(x: &Array, axis: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    arg_reduce(true, x, axis.into(), keepdims)
}

/// The index of the first smallest element along an axis, or of the flattened array for `()`.
///
/// # Dtypes
/// Gives `uint32`. The first NaN counts as the smallest.
///
/// # Errors
/// As [`argmax`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 4.0, 3.0, 2.0], [2, 2])?;
/// assert_eq!(ops::argmin(&x, 0, false)?.to_vec::<u32>()?, [0, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn argmin(x: &Array, axis: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    arg_reduce(false, x, axis.into(), keepdims)
}
