//! The elements of an axis in order.

use super::operand::{Axes, cast, inexact};
use super::{divide, flatten, permute, squeeze_axes, where_};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::prim::Sort;
use crate::prim::record::slice_axis;
use crate::shape::Dims;

fn sorted(x: &Array, axis: Axes, indices: bool) -> Result<Array> {
    let op = Sort { axis: 0, indices };
    match axis.single(op.name(), x.rank())? {
        Some(axis) => Array::apply(Sort { axis, indices }, &[x]),
        None => Array::apply(op, &[&flatten(x, 0, -1)?]),
    }
}

/// The elements of an axis in ascending order, NaN last; `()` flattens first.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 2], [3])?;
/// assert_eq!(ops::sort(&x, -1)?.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn sort(x: &Array, axis: impl Into<Axes>) -> Result<Array> {
    sorted(x, axis.into(), false)
}

/// The indices, as `uint32`, that put an axis in ascending order; equal elements keep theirs.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 2], [3])?;
/// assert_eq!(ops::argsort(&x, -1)?.to_vec::<u32>()?, [1, 2, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn argsort(x: &Array, axis: impl Into<Axes>) -> Result<Array> {
    sorted(x, axis.into(), true)
}

/// The elements of an axis with the one at `kth` where it is in their order, none larger before it
/// and none smaller behind it; `()` flattens first.
///
/// # Errors
/// Where the axis has no element `kth`, which counts from the end if it is negative, and for complex
/// numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 4, 2], [4])?;
/// assert_eq!(ops::partition(&x, 1, -1)?.to_vec::<i32>()?[1], 2);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn partition(x: &Array, kth: isize, axis: impl Into<Axes>) -> Result<Array> {
    partitioned("partition", x, kth, axis.into(), false)
}

/// The indices, as `uint32`, that [`partition`] an axis.
///
/// # Errors
/// As [`partition`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 4, 2], [4])?;
/// assert_eq!(ops::argpartition(&x, 1, -1)?.to_vec::<u32>()?[1], 3);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn argpartition(x: &Array, kth: isize, axis: impl Into<Axes>) -> Result<Array> {
    partitioned("argpartition", x, kth, axis.into(), true)
}

/// A whole sort, which is one of the partitions.
fn partitioned(
    op: &'static str,
    x: &Array,
    kth: isize,
    axis: Axes,
    indices: bool,
) -> Result<Array> {
    let size = axis.single(op, x.rank())?.map_or(x.size(), |axis| x.shape()[axis]);
    if !(-(size as isize)..size as isize).contains(&kth) {
        return Err(Error::argument(
            op,
            format!("index {kth} is out of range for an axis of size {size} (input {})", x.aval()),
        ));
    }
    sorted(x, axis, indices)
}

/// The `k` largest elements of an axis, in ascending order; `()` flattens first.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 4, 2], [4])?;
/// assert_eq!(ops::topk(&x, 2, -1)?.to_vec::<i32>()?, [3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn topk(x: &Array, k: usize, axis: impl Into<Axes>) -> Result<Array> {
    let Some(axis) = axis.into().single("topk", x.rank())? else {
        return topk(&flatten(x, 0, -1)?, k, 0);
    };
    let size = x.shape()[axis];
    if k > size {
        return Err(Error::argument(
            "topk",
            format!("{k} elements of axis {axis} were asked for (input {})", x.aval()),
        ));
    }
    slice_axis(&sort(x, axis)?, axis, size - k, k)
}

/// The median over axes: the middle element, or the mean of the two middle ones; NaN if there is
/// a NaN.
///
/// # Dtypes
/// Integers and bool are taken as `float32`.
///
/// # Errors
/// Where an axis is empty, and for complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 4, 2], [4])?;
/// assert_eq!(ops::median(&x, (), false)?.item::<f32>()?, 2.5);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn median(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    let axes = axes.into().sorted("median", x.rank())?;
    let size: usize = axes.iter().map(|&a| x.shape()[a]).product();
    if size == 0 {
        return Err(Error::shape(
            "median",
            format!("has no value for the empty axes of {}", x.aval()),
        ));
    }
    let kept = (0..x.rank()).filter(|a| !axes.contains(a));
    let order = kept.chain(axes.iter().copied()).collect();
    let mut last = inexact(&permute(x, order)?)?;
    if axes.is_empty() {
        return Ok(last);
    }
    last = flatten(&last, (x.rank() - axes.len()) as isize, -1)?;
    let axis = last.rank() - 1;
    let ordered = sort(&last, axis)?;
    let at = |i: usize| squeeze_axes(&slice_axis(&ordered, axis, i, 1)?, Dims::from_slice(&[axis]));
    let mut out = at(size / 2)?;
    if size.is_multiple_of(2) {
        let wide = out.dtype().accumulator();
        let middle = super::add(&cast(&at(size / 2 - 1)?, wide)?, &cast(&out, wide)?)?;
        out = cast(&divide(&middle, 2)?, out.dtype())?;
    }
    // NaN sorts last.
    let end = at(size - 1)?;
    out = where_(&super::isnan(&end)?, &end, &out)?;
    if keepdims { super::expand_axes(&out, axes) } else { Ok(out) }
}
