//! Parts of an array written.

use super::lookup::Lookup;
use super::{S, ranges};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::movement::{expand_axes, permute, squeeze_axes};
use crate::ops::operand::Operand;
use crate::ops::{add, flip, maximum, minimum, multiply};
use crate::prim::{Movement, Scatter, ScatterMode};
use crate::shape::Shape;

/// `x` with `values` joined into the part that an index says.
fn update<'a>(
    op: &'static str,
    x: &Array,
    items: &[S],
    values: impl Into<Operand<'a>>,
    mode: ScatterMode,
) -> Result<Array> {
    let (lookup, values) = (Lookup::of(op, x, items)?, values.into());
    let mode = match (mode, x.dtype()) {
        (ScatterMode::Add, DType::Bool) => ScatterMode::Max,
        (ScatterMode::Prod, DType::Bool) => ScatterMode::Min,
        (mode, _) => mode,
    };
    let part = lookup.slice(x)?;
    let joined = if lookup.arrays.is_empty() {
        let kept = part.shape().without(&lookup.squeezed);
        let values = expand_axes(&fill(op, x, values, &kept)?, lookup.squeezed.clone())?;
        match mode {
            ScatterMode::Set => values,
            ScatterMode::Add => add(&part, &values)?,
            ScatterMode::Prod => multiply(&part, &values)?,
            ScatterMode::Max => maximum(&part, &values)?,
            ScatterMode::Min => minimum(&part, &values)?,
        }
    } else {
        scatter_into(op, &lookup, &part, values, mode)?
    };
    let joined = flip(&joined, &lookup.flipped)?;
    let whole = expand_axes(x, lookup.inserted.clone())?;
    let out = if lookup.is_whole(&whole) {
        joined
    } else {
        let update = Movement::SliceUpdate { start: lookup.start, strides: lookup.strides };
        Array::apply(update, &[&whole, &joined])?
    };
    squeeze_axes(&out, lookup.inserted)
}

/// `values` in x's dtype, broadcast to `shape`.
fn fill(op: &'static str, x: &Array, values: Operand<'_>, shape: &Shape) -> Result<Array> {
    if let Operand::Array(array) = values
        && array.shape().broadcast(shape, op)? != *shape
    {
        return Err(Error::shape(
            op,
            format!("values {} do not fit the indexed part {shape}", array.aval()),
        ));
    }
    values.to(x.dtype(), shape)
}

/// `part` with `values` joined in at the lookup's index arrays.
fn scatter_into(
    op: &'static str,
    lookup: &Lookup,
    part: &Array,
    values: Operand<'_>,
    mode: ScatterMode,
) -> Result<Array> {
    let axes = lookup.axes();
    let lead = lookup.arrays[0].1.shape();
    let kept = part.shape().without(&axes);
    let gathered: Shape = lead.iter().chain(kept.iter()).copied().collect();
    let order = lookup.order(gathered.rank());
    let shape: Shape = order.iter().map(|&a| gathered[a]).collect();
    let values = fill(op, part, values, &shape)?;
    if lead.size() == 0 {
        // There may be nothing to index.
        return Ok(part.clone());
    }
    let mut back = order.clone();
    order.iter().enumerate().for_each(|(i, &a)| back[a] = i);
    let updates = permute(&values, back)?;
    let updates = expand_axes(&updates, axes.iter().map(|axis| lead.rank() + axis).collect())?;
    let mut inputs = vec![part, &updates];
    inputs.extend(lookup.arrays.iter().map(|(_, array)| array));
    Array::apply(Scatter { mode, axes }, &inputs)
}

/// `x` with the part that an index says replaced by `values`; where indices repeat, the last wins.
///
/// # Shapes
/// The values broadcast to the shape that [`index`](super::index) gives.
///
/// # Dtypes
/// The values are taken in x's dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let x = Array::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// assert_eq!(ops::at_set(&x, &[S::range(..), S::at(1)], 0)?.to_vec::<i32>()?, [1, 0, 3, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn at_set<'a>(x: &Array, items: &[S], values: impl Into<Operand<'a>>) -> Result<Array> {
    update("at_set", x, items, values, ScatterMode::Set)
}

/// `x` with `values` added to the part that an index says; repeated indices all add.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let (x, at) = (Array::from_slice(&[0, 0], [2])?, Array::from_slice(&[1, 1], [2])?);
/// assert_eq!(ops::at_add(&x, &[S::array(&at)], 3)?.to_vec::<i32>()?, [0, 6]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn at_add<'a>(x: &Array, items: &[S], values: impl Into<Operand<'a>>) -> Result<Array> {
    update("at_add", x, items, values, ScatterMode::Add)
}

/// `x` with `values` multiplied into the part that an index says; repeated indices all multiply.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let x = Array::from_slice(&[2, 3], [2])?;
/// assert_eq!(ops::at_multiply(&x, &[S::at(0)], 5)?.to_vec::<i32>()?, [10, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn at_multiply<'a>(x: &Array, items: &[S], values: impl Into<Operand<'a>>) -> Result<Array> {
    update("at_multiply", x, items, values, ScatterMode::Prod)
}

/// `x` with the larger of itself and `values` in the part that an index says.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let x = Array::from_slice(&[2, 3], [2])?;
/// assert_eq!(ops::at_max(&x, &[S::at(0)], 5)?.to_vec::<i32>()?, [5, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn at_max<'a>(x: &Array, items: &[S], values: impl Into<Operand<'a>>) -> Result<Array> {
    update("at_max", x, items, values, ScatterMode::Max)
}

/// `x` with the smaller of itself and `values` in the part that an index says.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let x = Array::from_slice(&[2, 3], [2])?;
/// assert_eq!(ops::at_min(&x, &[S::at(0)], 1)?.to_vec::<i32>()?, [1, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn at_min<'a>(x: &Array, items: &[S], values: impl Into<Operand<'a>>) -> Result<Array> {
    update("at_min", x, items, values, ScatterMode::Min)
}

/// `x` with the elements from `start` up to but without `stop`, `step` apart along each axis,
/// replaced by `update`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4, 5], [5])?;
/// let zero = Array::scalar(0);
/// assert_eq!(ops::slice_update(&x, &zero, &[1], &[5], &[2])?.to_vec::<i32>()?, [1, 0, 3, 0, 5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn slice_update(
    x: &Array,
    update: &Array,
    start: &[isize],
    stop: &[isize],
    step: &[isize],
) -> Result<Array> {
    self::update(
        "slice_update",
        x,
        &ranges("slice_update", x, start, stop, step)?,
        update,
        ScatterMode::Set,
    )
}
