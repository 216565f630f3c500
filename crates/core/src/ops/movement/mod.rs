//! The same elements under another shape: reshapes, permutations, views.

mod diagonal;
mod join;
mod pad;
mod strided;

pub use diagonal::*;
pub use join::*;
pub use pad::*;
pub use strided::*;

use super::operand::{Axes, Sizes, broadcast};
use crate::array::Array;
use crate::array::note_sizes;
use crate::error::{Error, Result};
use crate::prim::Movement;
use crate::shape::{Dims, Shape, check_rank, normalize_axis};

/// The elements, in row-major order, under another shape; one size may be −1: what is left.
///
/// # Errors
/// Where the count of elements changes.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4, 5, 6], [6])?;
/// assert_eq!(ops::reshape(&x, [2, -1])?.shape()[..], [2, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn reshape(x: &Array, sizes: impl Into<Sizes>) -> Result<Array> {
    let shape = sizes.into().resolve("reshape", x.aval().shape.size())?;
    if shape == *x.shape() {
        return Ok(x.clone());
    }
    Array::apply(Movement::Reshape(shape), &[x])
}

/// Axes `start..=end` merged into one. Axes past either end mean that end.
///
/// # Errors
/// Where `end` comes before `start`.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let x = ops::zeros([2, 3, 4], DType::F32)?;
/// assert_eq!(ops::flatten(&x, 1, -1)?.shape()[..], [2, 12]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn flatten(x: &Array, start: isize, end: isize) -> Result<Array> {
    if x.rank() == 0 {
        return reshape(x, 1);
    }
    let rank = x.rank() as isize;
    let place = |axis: isize| if axis < 0 { axis + rank } else { axis };
    let (start, end) = (place(start).max(0), place(end).min(rank - 1));
    if start > end {
        return Err(Error::argument(
            "flatten",
            format!("axis {end} comes before axis {start} (input {})", x.aval()),
        ));
    }
    let (start, end) = (start as usize, end as usize);
    if start == end {
        return Ok(x.clone());
    }
    Array::apply(Movement::Flatten { start, end }, &[x])
}

/// One axis split into several; one size may be −1: what is left.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let x = ops::zeros([2, 12], DType::F32)?;
/// assert_eq!(ops::unflatten(&x, 1, [3, -1])?.shape()[..], [2, 3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn unflatten(x: &Array, axis: isize, sizes: impl Into<Sizes>) -> Result<Array> {
    let axis = normalize_axis("unflatten", axis, x.rank())?;
    let sizes = sizes.into().resolve("unflatten", x.shape()[axis])?.0;
    Array::apply(Movement::Unflatten { axis, sizes }, &[x])
}

/// Axes of size 1 removed; `()` removes all of them.
///
/// # Errors
/// Where an axis that is named is not of size 1.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let x = ops::zeros([1, 3, 1], DType::F32)?;
/// assert_eq!(ops::squeeze(&x, ())?.shape()[..], [3]);
/// assert_eq!(ops::squeeze(&x, 0)?.shape()[..], [3, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn squeeze(x: &Array, axes: impl Into<Axes>) -> Result<Array> {
    let axes = axes.into();
    let axes = if axes == Axes::ALL {
        (0..x.rank()).filter(|&i| x.aval().shape[i] == 1).collect()
    } else {
        axes.sorted("squeeze", x.rank())?
    };
    squeeze_axes(x, axes)
}

/// [`squeeze`] of axes that are sorted and counted from the start.
pub(crate) fn squeeze_axes(x: &Array, axes: Dims) -> Result<Array> {
    if axes.is_empty() {
        return Ok(x.clone());
    }
    Array::apply(Movement::Squeeze(axes), &[x])
}

/// Axes of size 1 inserted, numbered as in the result.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let x = ops::zeros([3, 4], DType::F32)?;
/// assert_eq!(ops::expand_dims(&x, [0, -1])?.shape()[..], [1, 3, 4, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn expand_dims(x: &Array, axes: impl Into<Axes>) -> Result<Array> {
    let axes = axes.into();
    let rank = x.rank()
        + axes.len().ok_or_else(|| {
            Error::argument("expand_dims", "takes the axes to insert, not all axes")
        })?;
    check_rank("expand_dims", rank)?;
    expand_axes(x, axes.sorted("expand_dims", rank)?)
}

/// [`expand_dims`] of axes that are sorted and counted from the start.
pub(crate) fn expand_axes(x: &Array, axes: Dims) -> Result<Array> {
    if axes.is_empty() {
        return Ok(x.clone());
    }
    Array::apply(Movement::ExpandDims(axes), &[x])
}

/// The axes in another order: axis `i` of the result is axis `axes[i]` of `x`; `()` reverses them.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let x = ops::zeros([2, 3, 4], DType::F32)?;
/// assert_eq!(ops::transpose(&x, ())?.shape()[..], [4, 3, 2]);
/// assert_eq!(ops::transpose(&x, [0, -1, 1])?.shape()[..], [2, 4, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn transpose(x: &Array, axes: impl Into<Axes>) -> Result<Array> {
    let axes = axes.into();
    if let Some(axes) = axes.0.as_ref().filter(|a| a.len() != x.rank()) {
        let detail = format!("{} axes {axes:?} for {}", axes.len(), x.aval());
        return Err(Error::shape("transpose", detail));
    }
    match axes.listed("transpose", x.rank())? {
        Some(axes) => permute(x, axes),
        None => permute(x, (0..x.rank()).rev().collect()),
    }
}

/// [`transpose`] by axes that are counted from the start.
pub(crate) fn permute(x: &Array, axes: Dims) -> Result<Array> {
    if axes.iter().copied().eq(0..x.rank()) {
        return Ok(x.clone());
    }
    Array::apply(Movement::Transpose(axes), &[x])
}

/// Two axes exchanged.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let x = ops::zeros([2, 3, 4], DType::F32)?;
/// assert_eq!(ops::swapaxes(&x, 0, -1)?.shape()[..], [4, 3, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn swapaxes(x: &Array, axis1: isize, axis2: isize) -> Result<Array> {
    let a = normalize_axis("swapaxes", axis1, x.rank())?;
    let b = normalize_axis("swapaxes", axis2, x.rank())?;
    let mut axes: Dims = (0..x.rank()).collect();
    axes.swap(a, b);
    permute(x, axes)
}

/// The last two axes exchanged.
///
/// # Errors
/// Where there are fewer than two.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let x = ops::zeros([2, 3, 4], DType::F32)?;
/// assert_eq!(ops::matrix_transpose(&x)?.shape()[..], [2, 4, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn matrix_transpose(x: &Array) -> Result<Array> {
    if x.rank() < 2 {
        return Err(Error::shape("matrix_transpose", format!("{} is not a matrix", x.aval())));
    }
    swapaxes(x, -2, -1)
}

/// One axis moved to another place; the others keep their order.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let x = ops::zeros([2, 3, 4], DType::F32)?;
/// assert_eq!(ops::moveaxis(&x, 0, -1)?.shape()[..], [3, 4, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn moveaxis(x: &Array, source: isize, destination: isize) -> Result<Array> {
    let from = normalize_axis("moveaxis", source, x.rank())?;
    let to = normalize_axis("moveaxis", destination, x.rank())?;
    let mut axes: Dims = (0..x.rank()).filter(|&a| a != from).collect();
    axes.insert(to, from);
    permute(x, axes)
}

/// Axes of size 1, and missing leading axes, repeated to `shape`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2], [2])?;
/// assert_eq!(ops::broadcast_to(&x, [2, 2])?.to_vec::<i32>()?, [1, 2, 1, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn broadcast_to(x: &Array, shape: impl Into<Shape>) -> Result<Array> {
    note_sizes();
    let shape = shape.into();
    // A constant is recorded anew, and nothing infers its shape.
    shape.checked_size("broadcast_to", x.dtype())?;
    broadcast(x, &shape)
}

/// The shape that arrays of these shapes broadcast to.
///
/// # Errors
/// Where they do not, or there is none.
///
/// # Example
/// ```
/// use cupola::{Shape, ops};
/// let shapes = [Shape::from([5, 1, 4]), Shape::from([3, 1])];
/// assert_eq!(ops::broadcast_shapes(&shapes)?[..], [5, 3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn broadcast_shapes(shapes: &[Shape]) -> Result<Shape> {
    let op = "broadcast_shapes";
    let (first, rest) =
        shapes.split_first().ok_or_else(|| Error::argument(op, "needs at least one shape"))?;
    rest.iter().try_fold(first.clone(), |shape, next| shape.broadcast(next, op))
}

/// Arrays repeated to the shape that they broadcast to together.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let (x, y) = (ops::zeros([3, 1], DType::F32)?, ops::zeros([4], DType::F32)?);
/// assert_eq!(ops::broadcast_arrays(&[&x, &y])?[1].shape()[..], [3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn broadcast_arrays(arrays: &[&Array]) -> Result<Vec<Array>> {
    let mut shape = Shape::scalar();
    for array in arrays {
        shape = shape.broadcast(&array.aval().shape, "broadcast_arrays")?;
    }
    arrays.iter().map(|x| broadcast(x, &shape)).collect()
}

/// The order reversed along axes; `()` for all.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(ops::flip(&x, 0)?.to_vec::<i32>()?, [3, 2, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn flip(x: &Array, axes: impl Into<Axes>) -> Result<Array> {
    let mut axes = axes.into();
    if let Some(named) = &mut axes.0 {
        // An axis that is named twice is one, as in MLX.
        let at = |&axis: &isize| normalize_axis("flip", axis, x.rank()).map(|axis| axis as isize);
        *named = named.iter().map(at).collect::<Result<_>>()?;
        named.sort_unstable();
        named.dedup();
    }
    let axes = axes.sorted("flip", x.rank())?;
    if axes.is_empty() {
        return Ok(x.clone());
    }
    Array::apply(Movement::Flip(axes), &[x])
}

/// `x` with at least one axis.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::atleast_1d(&Array::scalar(1))?.shape()[..], [1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn atleast_1d(x: &Array) -> Result<Array> {
    if x.rank() == 0 { expand_dims(x, 0) } else { Ok(x.clone()) }
}

/// `x` with at least two axes: a vector becomes a row.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::atleast_2d(&ops::zeros([3], DType::F32)?)?.shape()[..], [1, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn atleast_2d(x: &Array) -> Result<Array> {
    match x.rank() {
        0 => expand_dims(x, [0, 1]),
        1 => expand_dims(x, 0),
        _ => Ok(x.clone()),
    }
}

/// `x` with at least three axes: a vector becomes `[1, n, 1]`, a matrix `[m, n, 1]`.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::atleast_3d(&ops::zeros([3], DType::F32)?)?.shape()[..], [1, 3, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn atleast_3d(x: &Array) -> Result<Array> {
    match x.rank() {
        0 => expand_dims(x, [0, 1, 2]),
        1 => expand_dims(x, [0, 2]),
        2 => expand_dims(x, 2),
        _ => Ok(x.clone()),
    }
}
