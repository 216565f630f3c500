//! Arrays with a border.

use std::ops::Range;

use super::concatenate;
use crate::array::Array;
use crate::backend::reserve;
use crate::dtype::{Element, Scalar};
use crate::error::{Error, Result};
use crate::ops::operand::broadcast;
use crate::ops::take;
use crate::prim::Movement;
use crate::prim::record::{cast, reshape, slice_axis};
use crate::shape::{Aval, Dims, Shape};

/// What [`pad`] puts around an array.
#[derive(Clone, Debug)]
pub enum PadMode {
    /// One number.
    Constant(Scalar),
    /// One number, that of an array with one element.
    Filled(Array),
    /// The nearest element.
    Edge,
    /// The elements in opposite order, the outermost once.
    Reflect,
    /// The elements in opposite order, the outermost twice.
    Symmetric,
}

impl<T: Into<Scalar>> From<T> for PadMode {
    fn from(value: T) -> Self {
        PadMode::Constant(value.into())
    }
}

/// How much [`pad`] puts before and after each axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PadWidths {
    /// The same around every axis.
    All(usize, usize),
    /// Before and after each axis.
    Each(Vec<(usize, usize)>),
}

impl From<usize> for PadWidths {
    fn from(width: usize) -> Self {
        PadWidths::All(width, width)
    }
}

impl From<(usize, usize)> for PadWidths {
    fn from((low, high): (usize, usize)) -> Self {
        PadWidths::All(low, high)
    }
}

impl From<&[(usize, usize)]> for PadWidths {
    fn from(widths: &[(usize, usize)]) -> Self {
        PadWidths::Each(widths.to_vec())
    }
}

impl<const N: usize> From<[(usize, usize); N]> for PadWidths {
    fn from(widths: [(usize, usize); N]) -> Self {
        PadWidths::Each(widths.to_vec())
    }
}

/// `x` with a border, of one number or of its own elements.
///
/// # Dtypes
/// A number is taken in x's dtype.
///
/// # Errors
/// Where `widths` has not one pair an axis, and where an empty axis has no element for the border.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2], [2])?;
/// assert_eq!(ops::pad(&x, (1, 2), 0)?.to_vec::<i32>()?, [0, 1, 2, 0, 0]);
/// assert_eq!(ops::pad(&x, 1, ops::PadMode::Edge)?.to_vec::<i32>()?, [1, 1, 2, 2]);
/// assert_eq!(ops::pad(&x, 2, ops::PadMode::Reflect)?.to_vec::<i32>()?, [1, 2, 1, 2, 1, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn pad(x: &Array, widths: impl Into<PadWidths>, mode: impl Into<PadMode>) -> Result<Array> {
    let (low, high): (Dims, Dims) = match widths.into() {
        PadWidths::All(low, high) => (0..x.rank()).map(|_| (low, high)).unzip(),
        PadWidths::Each(widths) if widths.len() == x.rank() => widths.into_iter().unzip(),
        PadWidths::Each(widths) => {
            return Err(Error::argument(
                "pad",
                format!("{} widths for the axes of {}", widths.len(), x.aval()),
            ));
        }
    };
    if low.iter().chain(&high).all(|&w| w == 0) {
        return Ok(x.clone());
    }
    match mode.into() {
        PadMode::Constant(value) => pad_constant(x, low, high, Dims::from_elem(0, x.rank()), value),
        PadMode::Filled(value) => {
            let value = cast(&reshape(&value, Shape::scalar())?, x.dtype())?;
            let interior = Dims::from_elem(0, x.rank());
            Array::apply(Movement::Pad { low, high, interior }, &[x, &value])
        }
        PadMode::Edge => pad_edge(x, &low, &high),
        PadMode::Reflect => pad_mirrored(x, &low, &high, 1),
        PadMode::Symmetric => pad_mirrored(x, &low, &high, 0),
    }
}

/// `x` with `value` around it, and `interior` times between neighbours.
pub(crate) fn pad_constant(
    x: &Array,
    low: Dims,
    high: Dims,
    interior: Dims,
    value: Scalar,
) -> Result<Array> {
    let value = Array::constant(value, Aval { shape: Shape::scalar(), dtype: x.dtype() });
    Array::apply(Movement::Pad { low, high, interior }, &[x, &value])
}

fn pad_edge(x: &Array, low: &[usize], high: &[usize]) -> Result<Array> {
    let mut out = x.clone();
    for axis in 0..x.rank() {
        if low[axis] == 0 && high[axis] == 0 {
            continue;
        }
        let size = nonempty(x, axis)?;
        let first = broadcast(&slice_axis(&out, axis, 0, 1)?, &out.shape().with(axis, low[axis]))?;
        let last =
            broadcast(&slice_axis(&out, axis, size - 1, 1)?, &out.shape().with(axis, high[axis]))?;
        out = concatenate(&[&first, &out, &last], axis)?;
    }
    Ok(out)
}

/// The size of an axis that gives elements for its border.
fn nonempty(x: &Array, axis: usize) -> Result<usize> {
    match x.shape()[axis] {
        0 => Err(Error::shape("pad", format!("axis {axis} of {} has no edge", x.aval()))),
        size => Ok(size),
    }
}

/// `x` continued forth and back along each axis; `shared` of two runs' outermost elements are one.
fn pad_mirrored(x: &Array, low: &[usize], high: &[usize], shared: usize) -> Result<Array> {
    let mut out = x.clone();
    for axis in 0..x.rank() {
        let (low, high) = (low[axis], high[axis]);
        if low == 0 && high == 0 {
            continue;
        }
        let size = nonempty(x, axis)?;
        // The indices below are numbers of this size.
        crate::array::note_sizes();
        let longer = size.saturating_add(low).saturating_add(high);
        out.shape().with(axis, longer).checked_size("pad", x.dtype())?;
        let period = (2 * (size - shared)).max(1);
        // Counted from a whole number of periods before the first element.
        let start = low.next_multiple_of(period) - low;
        let mirrored = |at: usize| {
            let at = at % period;
            if at < size { at } else { period - at - (1 - shared) }
        };
        let indices = match i32::try_from(size) {
            Ok(_) => places(start..start + longer, |at| mirrored(at) as i32)?,
            Err(_) => places(start..start + longer, |at| mirrored(at) as i64)?,
        };
        out = take(&out, &indices, axis)?;
    }
    Ok(out)
}

/// What `place` says of each number, as indices.
fn places<T: Element>(numbers: Range<usize>, place: impl Fn(usize) -> T) -> Result<Array> {
    let count = numbers.len();
    let mut all = reserve(count, "the indices of a padding")?;
    all.extend(numbers.map(place));
    Array::from_vec(all, [count])
}
