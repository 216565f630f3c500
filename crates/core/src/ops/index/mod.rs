//! Indexing: numbers, ranges, new axes and index arrays, as NumPy reads them.

mod dynamic;
mod lookup;
mod update;

pub use dynamic::*;
pub use update::*;

use std::ops::{Bound, RangeBounds};

use super::movement::{expand_dims, permute, squeeze_axes};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::Gather;
use crate::shape::check_rank;
use lookup::Lookup;

/// One item of an index.
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::S};
/// let x = ops::zeros([4, 5, 6], DType::F32)?;
/// let y = ops::index(&x, &[S::at(-1), S::new_axis(), S::range(1..), S::range(..).step(2)])?;
/// assert_eq!(y.shape()[..], [1, 4, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum S {
    /// The element at an index, whose axis goes.
    At(isize),
    /// The elements from a start up to but without a stop.
    Range {
        /// The first index; the first element, or the last for a negative step, where it is `None`.
        start: Option<isize>,
        /// The index to stop before; the end where it is `None`.
        stop: Option<isize>,
        /// The distance between elements; negative runs backwards.
        step: isize,
    },
    /// An axis of size 1 that is not in the array.
    NewAxis,
    /// As many whole axes as are not named.
    Ellipsis,
    /// The elements at the indices in an array. A bool array stands for as many axes as it has, and for the
    /// places where it is true, for which it is evaluated.
    Array(Array),
}

impl S {
    /// The element at `index`, counted from the end where it is negative.
    pub fn at(index: isize) -> S {
        S::At(index)
    }

    /// The elements of a range, whose ends count from the end where they are negative.
    pub fn range(range: impl RangeBounds<isize>) -> S {
        let start = match range.start_bound() {
            Bound::Included(&i) => Some(i),
            Bound::Excluded(&i) => Some(i + 1),
            Bound::Unbounded => None,
        };
        let stop = match range.end_bound() {
            // Up to and with −1 is up to the end.
            Bound::Included(&-1) | Bound::Unbounded => None,
            Bound::Included(&i) => Some(i + 1),
            Bound::Excluded(&i) => Some(i),
        };
        S::Range { start, stop, step: 1 }
    }

    /// This range with another distance between elements; anything else as it is.
    pub fn step(self, step: isize) -> S {
        match self {
            S::Range { start, stop, step: _ } => S::Range { start, stop, step },
            other => other,
        }
    }

    /// A new axis of size 1.
    pub fn new_axis() -> S {
        S::NewAxis
    }

    /// As many whole axes as are not named.
    pub fn ellipsis() -> S {
        S::Ellipsis
    }

    /// The elements at the indices in `array`.
    pub fn array(array: &Array) -> S {
        S::Array(array.clone())
    }
}

impl From<isize> for S {
    fn from(index: isize) -> S {
        S::At(index)
    }
}

impl From<&Array> for S {
    fn from(array: &Array) -> S {
        S::array(array)
    }
}

/// The part of `x` that an index says, as NumPy reads it.
///
/// # Shapes
/// A number removes its axis, a range keeps it, index arrays put theirs in its place. Several index
/// arrays broadcast; where they do not stand side by side, their axes come first.
///
/// # Errors
/// Where a number is out of range, an array does not hold integers or bools, or a mask does not have the shape of its
/// axes; when it runs where an array holds an index out of range. For a mask also under `compile` and `vmap`, where
/// there are no values.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let x = Array::from_slice(&[1, 2, 3, 4, 5, 6], [2, 3])?;
/// assert_eq!(ops::index(&x, &[S::at(1), S::range(..).step(-1)])?.to_vec::<i32>()?, [6, 5, 4]);
/// let columns = Array::from_slice(&[2, 0], [2])?;
/// assert_eq!(ops::index(&x, &[S::at(0), S::array(&columns)])?.to_vec::<i32>()?, [3, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn index(x: &Array, items: &[S]) -> Result<Array> {
    if let [S::Array(mask)] = items
        && mask.rank() == 0
        && mask.dtype() == DType::Bool
        && x.rank() == 0
    {
        // A mask of the only element: along a new axis there is one or none of it.
        return index(&expand_dims(x, 0)?, &[S::Array(expand_dims(mask, 0)?)]);
    }
    let is_new = |item: &&S| matches!(item, S::NewAxis);
    check_rank("index", items.iter().filter(is_new).count())?;
    let bounded = |item: &S| matches!(item, S::Range { start, stop, .. } if start.is_some() || stop.is_some());
    if items.iter().any(bounded) {
        // Where a range reaches all of an axis, nothing is recorded.
        crate::array::note_sizes();
    }
    let lookup = Lookup::of("index", x, items)?;
    let part = lookup.slice(x)?;
    if lookup.arrays.is_empty() {
        return squeeze_axes(&part, lookup.squeezed);
    }
    let axes = lookup.axes();
    if lookup.arrays[0].1.is_empty() {
        // There may be nothing to index.
        let lead = lookup.arrays[0].1.shape();
        let kept = part.shape().without(&axes);
        let shape: Vec<usize> = lead.iter().chain(kept.iter()).copied().collect();
        let order = lookup.order(shape.len());
        return crate::ops::zeros(order.iter().map(|&a| shape[a]).collect::<Vec<_>>(), x.dtype());
    }
    let mut sizes = part.shape().0.clone();
    axes.iter().for_each(|&axis| sizes[axis] = 1);
    let mut inputs = vec![&part];
    inputs.extend(lookup.arrays.iter().map(|(_, array)| array));
    let out = Array::apply(Gather { axes: axes.clone(), sizes }, &inputs)?;
    let out = squeeze_axes(&out, axes.iter().map(|axis| lookup.lead() + axis).collect())?;
    let order = lookup.order(out.rank());
    permute(&out, order)
}

/// The elements from `start` up to but without `stop`, `step` apart, along each axis.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4, 5], [5])?;
/// assert_eq!(ops::slice(&x, &[1], &[5], &[2])?.to_vec::<i32>()?, [2, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn slice(x: &Array, start: &[isize], stop: &[isize], step: &[isize]) -> Result<Array> {
    index(x, &ranges("slice", x, start, stop, step)?)
}

/// A range an axis.
fn ranges(
    op: &'static str,
    x: &Array,
    start: &[isize],
    stop: &[isize],
    step: &[isize],
) -> Result<Vec<S>> {
    let rank = x.rank();
    if start.len() != rank || stop.len() != rank || step.len() != rank {
        return Err(Error::argument(
            op,
            format!("start {start:?}, stop {stop:?} and step {step:?} do not fit {}", x.aval()),
        ));
    }
    let range = |i: usize| S::Range { start: Some(start[i]), stop: Some(stop[i]), step: step[i] };
    Ok((0..rank).map(range).collect())
}
