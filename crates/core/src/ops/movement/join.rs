//! Arrays joined, taken apart and repeated.

use super::{expand_axes, flatten, squeeze_axes};
use crate::array::Array;
use crate::autocast;
use crate::error::{Error, Result};
use crate::memory::reserve;
use crate::ops::operand::{Axes, Operand, Sizes, broadcast, cast, common_dtype};
use crate::prim::Movement;
use crate::prim::record::slice_axis;
use crate::shape::{Dims, Shape, normalize_axis};

/// Arrays in the dtype that they promote to.
fn promoted(arrays: &[&Array]) -> Result<Vec<Array>> {
    let operands: Vec<Operand<'_>> = arrays.iter().map(|&a| a.into()).collect();
    let dtype = common_dtype(&operands);
    arrays.iter().map(|a| cast(a, dtype)).collect()
}

/// The arrays one after the other along an axis; `()` flattens them first.
///
/// # Shapes
/// All sizes but the axis' are equal.
///
/// # Dtypes
/// The arrays promote.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2], [1, 2])?;
/// assert_eq!(ops::concatenate(&[&x, &x], 0)?.shape()[..], [2, 2]);
/// assert_eq!(ops::concatenate(&[&x, &x], 1)?.to_vec::<i32>()?, [1, 2, 1, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn concatenate(arrays: &[&Array], axis: impl Into<Axes>) -> Result<Array> {
    autocast::apply_all("concatenate", arrays, |arrays| concatenated(arrays, axis.into()))
}

/// [`concatenate`] in the dtype that the arrays promote to.
fn concatenated(arrays: &[&Array], axis: Axes) -> Result<Array> {
    let Some(first) = arrays.first() else {
        return Err(Error::argument("concatenate", "needs at least one array"));
    };
    let mut arrays = promoted(arrays)?;
    let axis = match axis.single("concatenate", first.rank())? {
        Some(axis) => axis,
        None => {
            arrays = arrays.iter().map(|a| flatten(a, 0, -1)).collect::<Result<_>>()?;
            0
        }
    };
    if let [only] = &arrays[..] {
        return Ok(only.clone());
    }
    let inputs: Vec<&Array> = arrays.iter().collect();
    Array::apply(Movement::Concatenate { axis }, &inputs)
}

/// Arrays of one shape, one after the other along a new axis.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2], [2])?;
/// assert_eq!(ops::stack(&[&x, &x], 1)?.to_vec::<i32>()?, [1, 1, 2, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn stack(arrays: &[&Array], axis: isize) -> Result<Array> {
    let Some(first) = arrays.first() else {
        return Err(Error::argument("stack", "needs at least one array"));
    };
    let at = normalize_axis("stack", axis, first.rank() + 1)?;
    if let Some(other) = arrays.iter().find(|a| a.aval().shape != first.aval().shape) {
        return Err(Error::shape(
            "stack",
            format!("{} and {} differ in shape", first.aval(), other.aval()),
        ));
    }
    autocast::apply_all("stack", arrays, |arrays| {
        let expanded: Vec<Array> = arrays
            .iter()
            .map(|a| expand_axes(a, Dims::from_slice(&[at])))
            .collect::<Result<_>>()?;
        concatenate(&expanded.iter().collect::<Vec<_>>(), at)
    })
}

/// How [`split`] divides an axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sections {
    /// Into so many parts of one size.
    Equal(usize),
    /// Before these indices.
    At(Vec<usize>),
}

impl From<usize> for Sections {
    fn from(count: usize) -> Self {
        Sections::Equal(count)
    }
}

impl From<i32> for Sections {
    fn from(count: i32) -> Self {
        Sections::Equal(usize::try_from(count).unwrap_or(0))
    }
}

impl From<&[usize]> for Sections {
    fn from(indices: &[usize]) -> Self {
        Sections::At(indices.to_vec())
    }
}

impl<const N: usize> From<[usize; N]> for Sections {
    fn from(indices: [usize; N]) -> Self {
        Sections::At(indices.to_vec())
    }
}

/// The most arrays that an axis is divided into.
const MAX_PARTS: usize = 1 << 20;

/// So many are made without a look whether there is memory for them.
const FEW_PARTS: usize = 1 << 10;

/// Bytes that an array takes at most, with what a binding has of it, where nothing is computed.
const PART: usize = 1 << 10;

fn check_parts(op: &'static str, x: &Array, axis: usize, parts: usize) -> Result<()> {
    if parts > MAX_PARTS {
        let wanted = format!("axis {axis} of {} into {parts} arrays", x.aval());
        return Err(Error::argument(op, format!("{wanted}, where {MAX_PARTS} are the most")));
    }
    // They are made one by one, and what makes them cannot say that there is no memory.
    match parts > FEW_PARTS {
        true => reserve::<[u8; PART]>(parts, "arrays that another is split into").map(drop),
        false => Ok(()),
    }
}

/// An axis divided into several arrays: into a count of equal parts, or before given indices.
///
/// # Errors
/// Where the axis does not divide into equal parts, or into more than 2²⁰.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4, 5, 6], [6])?;
/// assert_eq!(ops::split(&x, 3, 0)?[1].to_vec::<i32>()?, [3, 4]);
/// assert_eq!(ops::split(&x, [1, 4], 0)?[1].to_vec::<i32>()?, [2, 3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn split(x: &Array, sections: impl Into<Sections>, axis: isize) -> Result<Vec<Array>> {
    let axis = normalize_axis("split", axis, x.rank())?;
    let size = x.shape()[axis];
    let mut cuts = vec![0];
    match sections.into() {
        Sections::Equal(count) => {
            if count == 0 || !size.is_multiple_of(count) {
                return Err(Error::argument(
                    "split",
                    format!("axis {axis} of {} does not divide into {count} parts", x.aval()),
                ));
            }
            check_parts("split", x, axis, count)?;
            cuts.extend((1..count).map(|i| i * (size / count)));
        }
        Sections::At(indices) => {
            check_parts("split", x, axis, indices.len() + 1)?;
            cuts.extend(indices.into_iter().map(|i| i.min(size)));
        }
    }
    cuts.push(size);
    cuts.windows(2).map(|w| slice_axis(x, axis, w[0], w[1].saturating_sub(w[0]))).collect()
}

/// The array repeated whole, `reps[i]` times along axis `i`; missing counts and missing axes are 1.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2], [2])?;
/// assert_eq!(ops::tile(&x, [2, 2])?.to_vec::<i32>()?, [1, 2, 1, 2, 1, 2, 1, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn tile(x: &Array, reps: impl Into<Sizes>) -> Result<Array> {
    let reps = reps.into().0;
    if reps.iter().any(|&r| r < 0) {
        return Err(Error::argument("tile", format!("counts {:?} are not at least 0", &reps[..])));
    }
    let rank = x.rank().max(reps.len());
    let size = |i: usize| (i + x.rank()).checked_sub(rank).map_or(1, |axis| x.shape()[axis]);
    let rep = |i: usize| (i + reps.len()).checked_sub(rank).map_or(1, |axis| reps[axis] as usize);
    // Each axis as a pair (count, size): broadcast over the counts, then merge the pairs.
    let pairs: Shape = (0..rank).flat_map(|i| [1, size(i)]).collect();
    let repeated: Shape = (0..rank).flat_map(|i| [rep(i), size(i)]).collect();
    let merged: Shape = (0..rank).map(|i| rep(i).saturating_mul(size(i))).collect();
    super::reshape(&broadcast(&super::reshape(x, pairs)?, &repeated)?, merged)
}

/// Each element repeated `repeats` times along an axis; `()` flattens first.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2], [2])?;
/// assert_eq!(ops::repeat(&x, 2, ())?.to_vec::<i32>()?, [1, 1, 2, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn repeat(x: &Array, repeats: usize, axis: impl Into<Axes>) -> Result<Array> {
    let (x, axis) = match axis.into().single("repeat", x.rank())? {
        Some(axis) => (x.clone(), axis),
        None => (flatten(x, 0, -1)?, 0),
    };
    let wide = expand_axes(&x, Dims::from_slice(&[axis + 1]))?;
    let repeated = broadcast(&wide, &wide.shape().with(axis + 1, repeats))?;
    flatten(&repeated, axis as isize, axis as isize + 1)
}

/// Elements moved along axes by `shift` places, those past the end entering at the start.
///
/// # Shapes
/// One shift an axis, one for all axes named, or several for one axis, which add up. `()` rolls the
/// flattened array.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4], [4])?;
/// assert_eq!(ops::roll(&x, 1, 0)?.to_vec::<i32>()?, [4, 1, 2, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn roll(x: &Array, shift: impl Into<Sizes>, axes: impl Into<Axes>) -> Result<Array> {
    let shifts = shift.into().0;
    // An axis that is named twice moves twice.
    let axis = |&axis: &isize| normalize_axis("roll", axis, x.rank());
    let axes: Option<Result<Dims>> = axes.into().0.map(|axes| axes.iter().map(axis).collect());
    let Some(axes) = axes.transpose()? else {
        let flat = flatten(x, 0, -1)?;
        return super::reshape(&roll_axis(&flat, &shifts, 0)?, x.shape());
    };
    if let [axis] = axes[..] {
        return roll_axis(x, &shifts, axis);
    }
    if shifts.len() != 1 && shifts.len() != axes.len() {
        return Err(Error::argument(
            "roll",
            format!("{} shifts for {} axes", shifts.len(), axes.len()),
        ));
    }
    let mut out = x.clone();
    for (i, &axis) in axes.iter().enumerate() {
        out = roll_axis(&out, &[shifts[i.min(shifts.len() - 1)]], axis)?;
    }
    Ok(out)
}

/// Moved by the sum of `shifts`.
fn roll_axis(x: &Array, shifts: &[isize], axis: usize) -> Result<Array> {
    let size = x.shape()[axis];
    if size == 0 {
        return Ok(x.clone());
    }
    let shift: i128 = shifts.iter().map(|&shift| shift as i128).sum();
    let cut = (-shift).rem_euclid(size as i128) as usize;
    if cut == 0 {
        return Ok(x.clone());
    }
    let (head, tail) = (slice_axis(x, axis, 0, cut)?, slice_axis(x, axis, cut, size - cut)?);
    concatenate(&[&tail, &head], axis)
}

/// The elements along an axis as arrays of their own, without that axis.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// assert_eq!(ops::unstack(&x, 0)?[1].to_vec::<i32>()?, [3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn unstack(x: &Array, axis: isize) -> Result<Vec<Array>> {
    let axis = normalize_axis("unstack", axis, x.rank())?;
    check_parts("unstack", x, axis, x.shape()[axis])?;
    (0..x.shape()[axis])
        .map(|i| squeeze_axes(&slice_axis(x, axis, i, 1)?, Dims::from_slice(&[axis])))
        .collect()
}
