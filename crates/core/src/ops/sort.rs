//! The elements of an axis in order.

use super::operand::{Axes, cast, inexact};
use super::{divide, flatten, permute, squeeze_axes, take_along_axis, where_};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::prim::record::slice_axis;
use crate::prim::{Sort, SortPart};
use crate::shape::Dims;

/// Sorts as `op` does, along `axis`.
fn sorted(op: Sort, x: &Array, axis: Axes) -> Result<Array> {
    match axis.single(op.name(), x.rank())? {
        Some(axis) => along(Sort { axis, ..op }, x),
        None => along(op, &flatten(x, 0, -1)?),
    }
}

/// Sorts as `op` does.
fn along(op: Sort, x: &Array) -> Result<Array> {
    if !x.dtype().is_complex() {
        return Array::apply(op, &[x]);
    }
    let order = super::complex::order(x, op.axis)?;
    let order = match op.part {
        SortPart::Range { start, count } => slice_axis(&order, op.axis, start, count)?,
        SortPart::Whole | SortPart::Around(_) => order,
    };
    if op.indices { Ok(order) } else { take_along_axis(x, &order, op.axis) }
}

/// The elements of an axis in ascending order, NaN last; `()` flattens first. Complex numbers are ordered by
/// their real parts, and where these are equal by their imaginary ones.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 2], [3])?;
/// assert_eq!(ops::sort(&x, -1)?.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn sort(x: &Array, axis: impl Into<Axes>) -> Result<Array> {
    sorted(Sort::new(0), x, axis.into())
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
    sorted(Sort::new(0).places(), x, axis.into())
}

/// The elements of an axis with the one at `kth` where it is in their order, none larger before it
/// and none smaller behind it; `()` flattens first. How the others lie may differ between devices.
///
/// # Errors
/// Where the axis has no element `kth`, which counts from the end if it is negative.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 4, 2], [4])?;
/// assert_eq!(ops::partition(&x, 1, -1)?.to_vec::<i32>()?[1], 2);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn partition(x: &Array, kth: isize, axis: impl Into<Axes>) -> Result<Array> {
    partitioned(Sort::new(0), x, kth, axis.into())
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
    partitioned(Sort::new(0).places(), x, kth, axis.into())
}

fn partitioned(op: Sort, x: &Array, kth: isize, axis: Axes) -> Result<Array> {
    let named = Sort { part: SortPart::Around(0), ..op }.name();
    let size = axis.single(named, x.rank())?.map_or(x.size(), |axis| x.shape()[axis]);
    let place = if kth < 0 { kth.checked_add_unsigned(size) } else { Some(kth) };
    match place.and_then(|place| usize::try_from(place).ok()).filter(|&place| place < size) {
        Some(place) => sorted(Sort { part: SortPart::Around(place), ..op }, x, axis),
        None => Err(Error::argument(
            named,
            format!("index {kth} is out of range for an axis of size {size} (input {})", x.aval()),
        )),
    }
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
    at_places(x, axis, size - k, k)
}

/// So many elements of the order of an axis, from `start` on.
fn at_places(x: &Array, axis: usize, start: usize, count: usize) -> Result<Array> {
    along(Sort { part: SortPart::Range { start, count }, ..Sort::new(axis) }, x)
}

/// The median over axes: the middle element, or the mean of the two middle ones; NaN if there is
/// a NaN.
///
/// # Dtypes
/// Integers and bool are taken as `float32`.
///
/// # Errors
/// Where an axis is empty.
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
