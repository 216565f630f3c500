//! Elements at computed places.
//!
//! Negative indices count from the end: signed index arrays are wrapped here, before the
//! primitive, so unsigned ones cost nothing.

use super::operand::{Axes, Operand, broadcast, cast};
use super::{add, flatten, less, permute, squeeze_axes, where_};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::record::slice_axis;
use crate::prim::{Gather, GatherAxis, Scatter, ScatterAxis, ScatterMode};
use crate::shape::{Dims, Shape, normalize_axis};

/// Indices of elements of an axis of `size`, with the negative ones counted from the end.
///
/// # Errors
/// Where an index that is there already is outside the axis: then nothing is recorded that could not be computed.
pub(crate) fn wrap(op: &'static str, indices: &Array, axis: usize, size: usize) -> Result<Array> {
    wrap_slices(op, indices, axis, (size, 1))
}

/// [`wrap`] for where slices of `span` elements start.
fn wrap_slices(
    op: &'static str,
    indices: &Array,
    axis: usize,
    (size, span): (usize, usize),
) -> Result<Array> {
    // Longer slices than the axis are the primitive's to refuse.
    if span <= size.max(1) {
        indices.expect_inside(op, axis, (size, span))?;
    }
    if !indices.dtype().is_signed() {
        return Ok(indices.clone());
    }
    // The axis' size has to fit the indices' dtype.
    let wide = if size <= i32::MAX as usize { DType::I32 } else { DType::I64 };
    let indices = &cast(indices, indices.dtype().max(wide))?;
    where_(&less(indices, 0)?, &add(indices, size as i64)?, indices)
}

/// Checks that an index array holds integers.
pub(crate) fn expect_integers(op: &'static str, indices: &Array) -> Result<()> {
    if indices.dtype().is_integer() {
        return Ok(());
    }
    Err(Error::dtype(op, format!("indices are integers, not {}", indices.aval())))
}

/// The slices of `x` at `indices` along an axis, or the elements of the flattened array for `()`.
///
/// # Shapes
/// The axis is replaced by the axes of `indices`; a plain number removes it.
///
/// # Errors
/// Where the indices are not integers or the axis has no elements to take, and when it runs where an
/// index is out of range.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2])?;
/// let rows = Array::from_slice(&[2, 0], [2])?;
/// assert_eq!(ops::take(&x, &rows, 0)?.to_vec::<f32>()?, [5.0, 6.0, 1.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn take<'a>(
    x: &Array,
    indices: impl Into<Operand<'a>>,
    axis: impl Into<Axes>,
) -> Result<Array> {
    let (x, axis) = match axis.into().single("take", x.rank())? {
        Some(axis) => (x.clone(), axis),
        None => (flatten(x, 0, -1)?, 0),
    };
    let indices = indices.into();
    let is_none = matches!(indices, Operand::Array(indices) if indices.is_empty());
    if x.shape()[axis] == 0 && !is_none {
        let detail = format!("axis {axis} of {} has no elements to take", x.aval());
        return Err(Error::shape("take", detail));
    }
    let indices = match indices {
        Operand::Array(indices) => indices,
        Operand::Scalar(index) => {
            let at = normalize_index("take", index.to_i64() as isize, x.shape()[axis], &x)?;
            return squeeze_axes(&slice_axis(&x, axis, at, 1)?, Dims::from_slice(&[axis]));
        }
    };
    expect_integers("take", indices)?;
    if indices.is_empty() {
        let (before, behind) = (&x.shape()[..axis], &x.shape()[axis + 1..]);
        return super::zeros([before, indices.shape(), behind].concat(), x.dtype());
    }
    let sizes = x.shape().with(axis, 1).0;
    let gather = Gather { axes: Dims::from_slice(&[axis]), sizes };
    let out = Array::apply(gather, &[&x, &wrap("take", indices, axis, x.shape()[axis])?])?;
    let lead = indices.rank();
    let out = squeeze_axes(&out, Dims::from_slice(&[lead + axis]))?;
    // The indices' axes come first; they belong in the place of the axis.
    let rest = |range: std::ops::Range<usize>| range.map(|i| lead + i);
    permute(&out, rest(0..axis).chain(0..lead).chain(rest(axis..x.rank() - 1)).collect())
}

/// An index into an axis that counts from the end when negative, as one from the start.
pub(crate) fn normalize_index(
    op: &'static str,
    index: isize,
    size: usize,
    x: &Array,
) -> Result<usize> {
    let at = if index < 0 { index + size as isize } else { index };
    if (0..size as isize).contains(&at) {
        return Ok(at as usize);
    }
    Err(Error::index(
        op,
        format!("index {index} is out of range for an axis of size {size} (input {})", x.aval()),
    ))
}

/// `x` and `indices` broadcast against each other along every axis but `axis`.
fn align(op: &'static str, x: &Array, indices: &Array, axis: usize) -> Result<(Array, Array)> {
    expect_integers(op, indices)?;
    if x.rank() != indices.rank() {
        return Err(Error::shape(
            op,
            format!("{} and indices {} differ in rank", x.aval(), indices.aval()),
        ));
    }
    let (rows, places) = (x.shape().with(axis, 1), indices.shape().with(axis, 1));
    let common = rows.broadcast(&places, op)?;
    let x = broadcast(x, &common.with(axis, x.shape()[axis]))?;
    let indices = broadcast(indices, &common.with(axis, indices.shape()[axis]))?;
    Ok((x, indices))
}

/// Indices into all elements, where no axis is given.
fn line<'a>(op: &'static str, indices: &'a Array) -> Result<&'a Array> {
    match indices.rank() {
        1 => Ok(indices),
        _ => {
            let detail =
                format!("takes indices of one axis where none is given, not {}", indices.aval());
            Err(Error::shape(op, detail))
        }
    }
}

/// The elements of `x` at `indices` along an axis and at the same place along the others; with `()`
/// those of all of `x`, at indices of one axis.
///
/// # Shapes
/// The result has the shape of the indices; the other axes broadcast.
///
/// # Errors
/// Where the indices are not integers, and when it runs where one is out of range.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 2, 9, 7, 8], [2, 3])?;
/// let order = ops::argsort(&x, 1)?;
/// assert_eq!(ops::take_along_axis(&x, &order, 1)?.to_vec::<i32>()?, [1, 2, 3, 7, 8, 9]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn take_along_axis(x: &Array, indices: &Array, axis: impl Into<Axes>) -> Result<Array> {
    let op = "take_along_axis";
    let (x, indices, axis) = match axis.into().single(op, x.rank())? {
        Some(axis) => (x.clone(), indices.clone(), axis),
        None => (flatten(x, 0, -1)?, line(op, indices)?.clone(), 0),
    };
    let (x, indices) = align(op, &x, &indices, axis)?;
    Array::apply(GatherAxis { axis }, &[&x, &wrap(op, &indices, axis, x.shape()[axis])?])
}

/// `x` with the elements at `indices` along an axis, and at the same place along the others,
/// replaced by `values`; `()` counts through the flattened array.
///
/// # Shapes
/// `values` broadcast to the indices, and may have axes of one element before theirs; the other axes of `x` and of the
/// indices broadcast to each other.
///
/// # Dtypes
/// The values are taken in x's dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 2, 9, 7, 8], [2, 3])?;
/// let best = ops::argmax(&x, 1, true)?;
/// assert_eq!(ops::put_along_axis(&x, &best, 0, 1)?.to_vec::<i32>()?, [0, 1, 2, 0, 7, 8]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn put_along_axis<'a>(
    x: &Array,
    indices: &Array,
    values: impl Into<Operand<'a>>,
    axis: impl Into<Axes>,
) -> Result<Array> {
    if let Some(axis) = axis.into().single("put_along_axis", x.rank())? {
        return scatter_along_axis(x, (indices, axis as isize), values, ScatterMode::Set);
    }
    let indices = line("put_along_axis", indices)?;
    let flat = flatten(x, 0, -1)?;
    let out = scatter_along_axis(&flat, (indices, 0), values, ScatterMode::Set)?;
    super::reshape(&out, x.shape())
}

/// `x` with `values` joined in at indices along an axis, given as `(indices, axis)`, and at the
/// same place along the others.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::ScatterMode};
/// let x = Array::from_slice(&[0, 0, 0], [3])?;
/// let at = Array::from_slice(&[2, 2], [2])?;
/// let y = ops::scatter_along_axis(&x, (&at, 0), 1, ScatterMode::Add)?;
/// assert_eq!(y.to_vec::<i32>()?, [0, 0, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn scatter_along_axis<'a>(
    x: &Array,
    (indices, axis): (&Array, isize),
    values: impl Into<Operand<'a>>,
    mode: ScatterMode,
) -> Result<Array> {
    let op = "put_along_axis";
    let axis = normalize_axis(op, axis, x.rank())?;
    let (x, indices) = align(op, x, indices, axis)?;
    let values = match values.into() {
        Operand::Array(values) => {
            let extra = values.rank().saturating_sub(indices.rank());
            let ones = values.shape().iter().take(extra).take_while(|&&size| size == 1).count();
            let values = squeeze_axes(values, (0..ones).collect())?;
            Operand::Array(&values).to(x.dtype(), indices.shape())?
        }
        number @ Operand::Scalar(_) => number.to(x.dtype(), indices.shape())?,
    };
    let indices = wrap(op, &indices, axis, x.shape()[axis])?;
    Array::apply(ScatterAxis { mode, axis }, &[&x, &values, &indices])
}

/// Index arrays of one shape, for slices of `sizes`: broadcast, wrapped into their axes, of one integer dtype each.
fn places<'a>(
    op: &'static str,
    x: &Array,
    indices: &[(usize, &'a Array)],
    sizes: &[usize],
) -> Result<(Vec<Array>, Shape)> {
    let mut shape = Shape::scalar();
    for (axis, index) in indices {
        expect_integers(op, index)?;
        if *axis >= x.rank() {
            return Err(Error::argument(
                op,
                format!("axis {axis} is out of range for {}", x.aval()),
            ));
        }
        shape = shape.broadcast(index.shape(), op)?;
    }
    let wide = |&(axis, index): &(usize, &'a Array)| {
        let sizes = (x.shape()[axis], sizes.get(axis).copied().unwrap_or(1));
        broadcast(&wrap_slices(op, index, axis, sizes)?, &shape)
    };
    Ok((indices.iter().map(wide).collect::<Result<_>>()?, shape))
}

/// For each index the slice of `x` that starts at the indices along their axes, given as
/// `(axis, indices)`, and at 0 along the others.
///
/// # Shapes
/// The shape that the indices broadcast to, followed by `sizes`, one for each axis of `x`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// let (i, j) = (Array::from_slice(&[0, 1], [2])?, Array::from_slice(&[1, 0], [2])?);
/// assert_eq!(ops::gather(&x, &[(0, &i), (1, &j)], [1, 1])?.to_vec::<i32>()?, [2, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn gather(x: &Array, indices: &[(usize, &Array)], sizes: impl Into<Shape>) -> Result<Array> {
    let sizes = sizes.into().0;
    let (places, _) = places("gather", x, indices, &sizes)?;
    let mut inputs = vec![x];
    inputs.extend(&places);
    let axes = indices.iter().map(|(axis, _)| *axis).collect();
    Array::apply(Gather { axes, sizes }, &inputs)
}

/// `x` with the slices of `updates` joined in where they start at the indices along their axes,
/// given as `(axis, indices)`, and at 0 along the others.
///
/// # Shapes
/// `updates` has the shape that the indices broadcast to, followed by a slice shape of x's rank.
///
/// # Dtypes
/// The updates are taken in x's dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::ScatterMode};
/// let x = Array::from_slice(&[0, 0, 0], [3])?;
/// let (at, updates) = (Array::from_slice(&[2, 0, 2], [3])?, Array::from_slice(&[1, 2, 3], [3, 1])?);
/// let y = ops::scatter(&x, &[(0, &at)], &updates, ScatterMode::Add)?;
/// assert_eq!(y.to_vec::<i32>()?, [2, 0, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn scatter(
    x: &Array,
    indices: &[(usize, &Array)],
    updates: &Array,
    mode: ScatterMode,
) -> Result<Array> {
    let lead = updates.rank().saturating_sub(x.rank());
    let (places, _) = places("scatter", x, indices, &updates.shape()[lead..])?;
    let updates = cast(updates, x.dtype())?;
    let mut inputs = vec![x, &updates];
    inputs.extend(&places);
    let axes = indices.iter().map(|(axis, _)| *axis).collect();
    Array::apply(Scatter { mode, axes }, &inputs)
}
