//! Where values belong in a sorted vector, which of them differ, and how often each is there.

use super::operand::{Operand, cast, common_dtype, constant_like, inexact};
use super::{
    add, argsort, cumsum, flatten, full, iota, isnan, less, less_equal, logical_and, logical_not,
    logical_or, max, minimum, minmax, not_equal, put_along_axis, reshape, subtract, take,
    take_along_axis, where_,
};
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::prim::record::{add_along, slice_axis};
use crate::shape::{Aval, Shape};

/// Which of the places that keep a vector sorted [`searchsorted`] gives, where there are several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Side {
    /// Before the elements that are equal.
    #[default]
    Left,
    /// Behind them.
    Right,
}

/// For each value the index in a sorted vector before which it keeps that sorted.
///
/// # Shapes
/// The result has the shape of `values`. Of more sorted vectors, `[.., n]`, each is for the values at the same place of
/// `[.., k]`.
///
/// # Dtypes
/// Gives `uint32`. Vector and values promote; NaN comes last. Complex numbers are ordered by their real parts, and
/// where these are equal by their imaginary ones.
///
/// # Errors
/// Where `sorted` has no axis, or more than one, of which all but the last are not those of `values`.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::Side};
/// let x = Array::from_slice(&[1, 2, 2, 4], [4])?;
/// let values = Array::from_slice(&[0, 2, 5], [3])?;
/// assert_eq!(ops::searchsorted(&x, &values, Side::Left)?.to_vec::<u32>()?, [0, 1, 4]);
/// assert_eq!(ops::searchsorted(&x, &values, Side::Right)?.to_vec::<u32>()?, [0, 3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn searchsorted(sorted: &Array, values: &Array, side: Side) -> Result<Array> {
    let op = "searchsorted";
    let lead = sorted.rank().saturating_sub(1);
    let fits = values.rank() == sorted.rank() && values.shape()[..lead] == sorted.shape()[..lead];
    if sorted.rank() == 0 || (lead > 0 && !fits) {
        let detail = format!("{} is not sorted for the values {}", sorted.aval(), values.aval());
        return Err(Error::shape(op, detail));
    }
    let dtype = common_dtype(&[sorted.into(), values.into()]);
    let (sorted, values) = (cast(sorted, dtype)?, cast(values, dtype)?);
    let size = sorted.shape()[lead];
    let place = Aval { shape: values.shape().clone(), dtype: DType::U32 };
    let mut found = Array::constant(0, place);
    // Bit by bit from the highest: an element at a place is before a value if all below it are.
    for bit in (0..usize::BITS - size.leading_zeros()).rev() {
        let next = add(&found, 1u32 << bit)?;
        let last = minimum(&subtract(&next, 1)?, size.saturating_sub(1))?;
        let element = match lead {
            0 => take(&sorted, &last, 0)?,
            _ => take_along_axis(&sorted, &last, -1)?,
        };
        let is_before = match side {
            Side::Left => before(&element, &values)?,
            Side::Right => logical_not(&before(&values, &element)?)?,
        };
        found = where_(&logical_and(&is_before, &less_equal(&next, size)?)?, &next, &found)?;
    }
    Ok(found)
}

/// The number of the bucket that each element falls into: `boundaries` are the ends of buckets, which belong to
/// the bucket below, or where `right` is true to the one above.
///
/// # Shapes
/// The result has the shape of `x`; n boundaries make n + 1 buckets.
///
/// # Dtypes
/// Gives `uint32`. Boundaries and elements promote; NaN comes last.
///
/// # Errors
/// As [`searchsorted`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 2, 5], [3])?;
/// let boundaries = Array::from_slice(&[1, 2, 4], [3])?;
/// assert_eq!(ops::bucketize(&x, &boundaries, false)?.to_vec::<u32>()?, [0, 1, 3]);
/// assert_eq!(ops::bucketize(&x, &boundaries, true)?.to_vec::<u32>()?, [0, 2, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn bucketize(x: &Array, boundaries: &Array, right: bool) -> Result<Array> {
    if boundaries.rank() != 1 {
        let detail = format!("takes a vector of boundaries, not {}", boundaries.aval());
        return Err(Error::shape("bucketize", detail));
    }
    searchsorted(boundaries, x, if right { Side::Right } else { Side::Left })
}

/// Whether `a` comes before `b`, NaN being last.
fn before(a: &Array, b: &Array) -> Result<Array> {
    if !a.dtype().is_float() && !a.dtype().is_complex() {
        return less(a, b);
    }
    logical_or(&less(a, b)?, &logical_and(&isnan(b)?, &logical_not(&isnan(a)?)?)?)
}

/// What [`unique`] found.
#[derive(Clone, Debug)]
pub struct Unique {
    /// The different elements in ascending order, then the fill value.
    pub values: Array,
    /// Where in the flattened array each of them is first, as `uint32`.
    pub index: Array,
    /// The place in `values` of each element of the array, in its shape, as `uint32`.
    pub inverse: Array,
    /// How often each of them is there, as `int32`; 0 for what is filled.
    pub counts: Array,
}

/// The different elements of an array in ascending order; each NaN is one of its own.
///
/// # Shapes
/// `size` says how many there are to be: the smallest of them where there are more, and `fill` behind
/// them, or else the first, where there are fewer. Without it there are as many as there are different
/// elements, which are computed to see that.
///
/// # Errors
/// Where an empty array is to be filled with its first element; without `size` under `compile` and `vmap`,
/// where there are no values.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[2, 1, 2, 3, 1], [5])?;
/// let found = ops::unique(&x, 4, Some(0.into()))?;
/// assert_eq!(found.values.to_vec::<i32>()?, [1, 2, 3, 0]);
/// assert_eq!(found.index.to_vec::<u32>()?, [1, 0, 3, 1]);
/// assert_eq!(found.inverse.to_vec::<u32>()?, [1, 0, 1, 2, 0]);
/// assert_eq!(found.counts.to_vec::<i32>()?, [2, 2, 1, 0]);
/// assert_eq!(ops::unique(&x, None, None)?.values.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn unique(
    x: &Array,
    size: impl Into<Option<usize>>,
    fill: Option<Operand<'_>>,
) -> Result<Unique> {
    let (size, count) = (size.into(), x.size());
    if count == 0 {
        let size = size.unwrap_or(0);
        let slots = Shape::from(size);
        let fill = match fill {
            Some(fill) => fill.to(x.dtype(), &slots)?,
            None if size == 0 => full(size, 0, x.dtype())?,
            None => {
                return Err(Error::argument(
                    "unique",
                    format!("{} has no first element to fill {size} with", x.aval()),
                ));
            }
        };
        let (index, counts) = (full(size, 0, DType::U32)?, full(size, 0, DType::I32)?);
        return Ok(Unique {
            values: fill,
            index,
            inverse: full(x.shape(), 0, DType::U32)?,
            counts,
        });
    }
    let flat = flatten(x, 0, -1)?;
    let order = argsort(&flat, 0)?;
    let sorted = take(&flat, &order, 0)?;
    // The number of the element that each place of the sorted array holds.
    let changes =
        not_equal(&slice_axis(&sorted, 0, 1, count - 1)?, &slice_axis(&sorted, 0, 0, count - 1)?)?;
    let starts = super::pad(&cast(&changes, DType::I32)?, [(1, 0)], 0)?;
    let number = cumsum(&starts, 0, Default::default())?;
    let size = match size {
        Some(size) => size,
        None => 1 + slice_axis(&number, 0, count - 1, 1)?.item::<i32>()? as usize,
    };
    let slots = Shape::from(size);
    let wanted = iota(size, 0, DType::I32)?;
    let first = searchsorted(&number, &wanted, Side::Left)?;
    let counts = subtract(&searchsorted(&number, &wanted, Side::Right)?, &first)?;
    let there = not_equal(&counts, 0)?;
    let index = take(&order, &where_(&there, &first, 0)?, 0)?;
    let values = take(&flat, &index, 0)?;
    let values = match fill {
        Some(fill) => where_(&there, &values, &fill.to(x.dtype(), &slots)?)?,
        None => values,
    };
    let held = cast(&minimum(&number, size.saturating_sub(1))?, DType::U32)?;
    let inverse = put_along_axis(&constant_like(&order, Scalar::Int(0)), &order, &held, 0)?;
    Ok(Unique {
        values,
        index,
        inverse: reshape(&inverse, x.shape())?,
        counts: cast(&counts, DType::I32)?,
    })
}

/// How often each of 0, 1, 2, … is in an array, or the sum of the weights at its places. How many there
/// are depends on the values, so the array is evaluated.
///
/// # Shapes
/// x `[n]` gives one more element than its largest, and at least `minlength`; weights have x's shape.
///
/// # Dtypes
/// x is of integers or bool. Counts are `int32`; sums have the dtype of the weights, integers and bool being
/// taken as `float32`; half types accumulate in `float32`.
///
/// # Errors
/// For an array of another rank or dtype, for negative elements, and under `compile` and `vmap`, where there
/// are no values.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 3, 1, 3], [4])?;
/// assert_eq!(ops::bincount(&x, None, 0)?.to_vec::<i32>()?, [1, 1, 0, 2]);
/// let weights = Array::from_slice(&[0.5f32, 1.0, 2.0, 0.25], [4])?;
/// assert_eq!(ops::bincount(&x, Some(&weights), 5)?.to_vec::<f32>()?, [0.5, 2.0, 0.0, 1.25, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn bincount(x: &Array, weights: Option<&Array>, minlength: usize) -> Result<Array> {
    let op = "bincount";
    if x.rank() != 1 {
        return Err(Error::shape(op, format!("takes one axis, not {}", x.aval())));
    }
    if !x.dtype().is_integer() && x.dtype() != DType::Bool {
        return Err(Error::dtype(op, format!("counts integers, not {}", x.aval())));
    }
    let weights = match weights {
        Some(weights) if weights.aval().shape != x.aval().shape => {
            let detail = format!("weights {} for {}", weights.aval(), x.aval());
            return Err(Error::shape(op, detail));
        }
        Some(weights) => inexact(weights)?,
        None => full(x.shape(), 1, DType::I32)?,
    };
    let mut length = minlength;
    if !x.is_empty() {
        let most = if x.dtype() == DType::U64 {
            max(x, (), false)?.item::<u64>()?
        } else {
            let (least, most) = minmax(&cast(x, DType::I64)?, (), false)?;
            let (least, most) = (least.item::<i64>()?, most.item::<i64>()?);
            if least < 0 {
                return Err(Error::argument(op, format!("{least} is negative")));
            }
            most.unsigned_abs()
        };
        length = length.max(usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1));
    }
    let sums = Aval::new([length], weights.dtype().accumulator());
    let places = if x.dtype() == DType::Bool { cast(x, DType::U8)? } else { x.clone() };
    cast(&add_along(&sums, &cast(&weights, sums.dtype)?, &places, 0)?, weights.dtype())
}
