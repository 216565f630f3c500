//! Elements that a mask names, and where they are.
//!
//! How many there are is known from the values alone: what gives an array of that length evaluates its mask, and
//! is an error under `compile` and `vmap`, where there are no values.

use super::operand::{Axes, Operand, broadcast, cast, common_dtype};
use super::{
    S, Side, argsort, at_set, cumsum, flatten, floor_divide, iota, logical_not, min, remainder,
    searchsorted, stack, sum, take, where_, zeros,
};
use crate::array::Array;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::memory::reserve;
use crate::prim::record::slice_axis;
use crate::shape::{Shape, normalize_axis};

/// Signed integers that count to `size`.
fn counter(size: usize) -> DType {
    if size <= i32::MAX as usize { DType::I32 } else { DType::I64 }
}

/// Where in the flattened mask it is true.
fn true_places(mask: &Array) -> Result<Array> {
    let flat = flatten(mask, 0, -1)?;
    let dtype = counter(flat.size());
    if flat.is_empty() {
        return zeros(0, dtype);
    }
    let count = sum(&cast(&flat, DType::I64)?, (), false)?.item::<i64>()? as usize;
    // Equal elements keep their order.
    let order = argsort(&cast(&logical_not(&flat)?, DType::U8)?, 0)?;
    cast(&slice_axis(&order, 0, 0, count)?, dtype)
}

/// The places of elements that are not 0: a vector of indices for each axis, in the order of the elements.
///
/// # Shapes
/// How many there are depends on the values, so the array is evaluated.
///
/// # Dtypes
/// Gives `int32`, or `int64` past 2³¹ elements.
///
/// # Errors
/// For a plain number, which has no axes, and under `compile` and `vmap`, where there are no values.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 5, 7, 0], [2, 2])?;
/// let places = ops::nonzero(&x)?;
/// assert_eq!(places[0].to_vec::<i32>()?, [0, 1]);
/// assert_eq!(places[1].to_vec::<i32>()?, [1, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn nonzero(x: &Array) -> Result<Vec<Array>> {
    if x.rank() == 0 {
        return Err(Error::shape("nonzero", format!("{} has no axes", x.aval())));
    }
    along_axes(true_places(&cast(x, DType::Bool)?)?, x.shape())
}

/// Places in row-major order as places along axes of these sizes.
pub(super) fn along_axes(mut places: Array, sizes: &[usize]) -> Result<Vec<Array>> {
    let mut along = Vec::with_capacity(sizes.len());
    for &size in sizes.iter().rev() {
        // An empty axis has no places.
        let size = size.max(1);
        along.push(remainder(&places, size)?);
        places = floor_divide(&places, size)?;
    }
    along.reverse();
    Ok(along)
}

/// The places of elements that are not 0, a row of indices each.
///
/// # Shapes
/// `[count, rank]`; as [`nonzero`], but of a plain number `[1, 0]` or `[0, 0]`.
///
/// # Errors
/// Under `compile` and `vmap`, where there are no values.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 5, 7, 0], [2, 2])?;
/// assert_eq!(ops::argwhere(&x)?.to_vec::<i32>()?, [0, 1, 1, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn argwhere(x: &Array) -> Result<Array> {
    if x.rank() == 0 {
        let count = usize::from(cast(x, DType::Bool)?.item::<bool>()?);
        return zeros([count, 0], DType::I32);
    }
    let places = nonzero(x)?;
    stack(&places.iter().collect::<Vec<_>>(), 1)
}

/// The elements of `x` where the mask is true, in order.
///
/// # Shapes
/// Both broadcast; the result has one axis. How long it is depends on the mask, which is evaluated.
///
/// # Errors
/// For a mask that is not bool, and under `compile` and `vmap`, where there are no values.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// let mask = Array::from_slice(&[true, false, true], [3])?;
/// assert_eq!(ops::masked_select(&x, &mask)?.to_vec::<i32>()?, [1, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn masked_select(x: &Array, mask: &Array) -> Result<Array> {
    let op = "masked_select";
    expect_mask(op, mask)?;
    let shape = x.shape().broadcast(mask.shape(), op)?;
    let (x, mask) = (broadcast(x, &shape)?, broadcast(mask, &shape)?);
    take(&flatten(&x, 0, -1)?, &true_places(&mask)?, 0)
}

fn expect_mask(op: &'static str, mask: &Array) -> Result<()> {
    if mask.dtype() == DType::Bool {
        return Ok(());
    }
    Err(Error::dtype(op, format!("a mask is bool, not {}", mask.aval())))
}

/// An error where a value would be cut to fit x's dtype.
fn expect_fits(op: &'static str, x: &Array, value: Operand<'_>) -> Result<()> {
    let kind = common_dtype(&[value]).kind();
    if kind <= x.dtype().kind() || kind == Kind::Bool {
        return Ok(());
    }
    let what = match value {
        Operand::Array(value) => value.aval().to_string(),
        Operand::Scalar(value) => value.to_string(),
    };
    Err(Error::dtype(op, format!("{what} does not fit into {}", x.aval())))
}

/// `x` with `value` where the mask is true.
///
/// # Shapes
/// Mask and value broadcast to the shape of `x`.
///
/// # Dtypes
/// The value is taken in x's dtype.
///
/// # Errors
/// For a mask that is not bool or does not fit, and for a float into integers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(ops::masked_fill(&x, &ops::greater(&x, 1)?, 0)?.to_vec::<i32>()?, [1, 0, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn masked_fill<'a>(x: &Array, mask: &Array, value: impl Into<Operand<'a>>) -> Result<Array> {
    let (op, value) = ("masked_fill", value.into());
    expect_mask(op, mask)?;
    expect_fits(op, x, value)?;
    let fits = |y: &Array| x.shape().broadcast(y.shape(), op).is_ok_and(|s| s == *x.shape());
    if !fits(mask) {
        return Err(Error::shape(op, format!("mask {} does not fit {}", mask.aval(), x.aval())));
    }
    if let Operand::Array(array) = value
        && !fits(array)
    {
        return Err(Error::shape(op, format!("value {} does not fit {}", array.aval(), x.aval())));
    }
    where_(mask, &value.to(x.dtype(), x.shape())?, x)
}

/// `x` with `value` in the slices at `indices` along an axis.
///
/// # Shapes
/// The indices have at most one axis; the value broadcasts to the slices.
///
/// # Dtypes
/// The value is taken in x's dtype.
///
/// # Errors
/// Where the indices are not integers, for a float into integers, and when it runs where an index is out of
/// range.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// let at = Array::from_slice(&[1], [1])?;
/// assert_eq!(ops::index_fill(&x, 1, &at, 0)?.to_vec::<i32>()?, [1, 0, 3, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn index_fill<'a>(
    x: &Array,
    axis: isize,
    indices: &Array,
    value: impl Into<Operand<'a>>,
) -> Result<Array> {
    let (op, value) = ("index_fill", value.into());
    let axis = normalize_axis(op, axis, x.rank())?;
    if indices.rank() > 1 {
        return Err(Error::shape(op, format!("indices have one axis, not {}", indices.aval())));
    }
    super::gather::expect_integers(op, indices)?;
    expect_fits(op, x, value)?;
    let mut items = vec![S::range(..); axis];
    items.push(S::array(&flatten(indices, 0, -1)?));
    if indices.is_empty() {
        return Ok(x.clone());
    }
    at_set(x, &items, value)
}

/// Each slice of `x` along an axis as often in a row as `repeats` says; `()` flattens first.
///
/// # Shapes
/// `repeats` is one number, or a vector of one for each slice. How many slices there are depends on its values, so
/// an array is evaluated.
///
/// # Errors
/// Where the repeats are not integers, are negative, or do not fit the axis, and for an array of them under
/// `compile` and `vmap`, where there are no values.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// let counts = Array::from_slice(&[2, 0, 1], [3])?;
/// assert_eq!(ops::repeat_interleave(&x, &counts, ())?.to_vec::<i32>()?, [1, 1, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn repeat_interleave<'a>(
    x: &Array,
    repeats: impl Into<Operand<'a>>,
    axes: impl Into<Axes>,
) -> Result<Array> {
    let (op, repeats) = ("repeat_interleave", repeats.into());
    let Some(axis) = axes.into().single(op, x.rank())? else {
        return repeat_interleave(&flatten(x, 0, -1)?, repeats, 0);
    };
    if common_dtype(&[repeats]).kind() > Kind::Integer {
        return Err(Error::dtype(op, "repeats are integers".to_owned()));
    }
    let size = x.shape()[axis];
    let counts = repeats.to(
        DType::I64,
        &match repeats {
            Operand::Array(array) => array.shape().clone(),
            Operand::Scalar(_) => Shape::scalar(),
        },
    )?;
    if counts.rank() > 1 || counts.size() != 1 && counts.size() != size {
        let detail = format!("repeats {} do not fit axis {axis} of {}", counts.aval(), x.aval());
        return Err(Error::shape(op, detail));
    }
    let least = if counts.is_empty() { 0 } else { min(&counts, (), false)?.item::<i64>()? };
    if least < 0 {
        return Err(Error::argument(op, format!("{least} is negative")));
    }
    let counts = broadcast(&super::reshape(&counts, -1)?, &Shape::from(size))?;
    let total = if size == 0 { 0 } else { sum(&counts, (), false)?.item::<i64>()? as usize };
    let ends = cumsum(&counts, 0, Default::default())?;
    let places = searchsorted(&ends, &iota(total, 0, DType::I64)?, Side::Right)?;
    take(x, &places, axis)
}

/// The rows and the columns of the elements on and below the diagonal `offset` places above the main one, as
/// `int32`.
///
/// # Example
/// ```
/// use cupola::ops;
/// let (rows, columns) = ops::tril_indices(2, 3, 0)?;
/// assert_eq!(rows.to_vec::<i32>()?, [0, 1, 1]);
/// assert_eq!(columns.to_vec::<i32>()?, [0, 0, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn tril_indices(rows: usize, columns: usize, offset: isize) -> Result<(Array, Array)> {
    triangle("tril_indices", rows, columns, |row| 0..reach(row, offset).saturating_add(1))
}

/// The rows and the columns of the elements on and above the diagonal `offset` places above the main one, as
/// `int32`.
///
/// # Example
/// ```
/// use cupola::ops;
/// let (rows, columns) = ops::triu_indices(2, 3, 1)?;
/// assert_eq!(rows.to_vec::<i32>()?, [0, 0, 1]);
/// assert_eq!(columns.to_vec::<i32>()?, [1, 2, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn triu_indices(rows: usize, columns: usize, offset: isize) -> Result<(Array, Array)> {
    triangle("triu_indices", rows, columns, |row| reach(row, offset)..isize::MAX)
}

/// The column of a diagonal in a row.
fn reach(row: usize, offset: isize) -> isize {
    (row as isize).saturating_add(offset)
}

fn triangle(
    op: &'static str,
    rows: usize,
    columns: usize,
    part: impl Fn(usize) -> std::ops::Range<isize>,
) -> Result<(Array, Array)> {
    Shape::from([rows, columns]).checked_size(op, DType::I32)?;
    if rows.max(columns) > i32::MAX as usize {
        return Err(Error::argument(op, format!("{rows} by {columns} is past int32")));
    }
    drop(reserve::<[i32; 4]>(rows * columns, "the places of a triangle")?);
    let (mut row_of, mut column_of) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let own = part(row);
        let limit = |end: isize| end.clamp(0, columns as isize) as i32;
        for column in limit(own.start)..limit(own.end) {
            row_of.push(row as i32);
            column_of.push(column);
        }
    }
    let count = row_of.len();
    Ok((Array::from_slice(&row_of, [count])?, Array::from_slice(&column_of, [count])?))
}
