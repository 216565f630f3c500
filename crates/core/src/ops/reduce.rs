//! Axes folded to one value, and the statistics made of that.

use super::operand::{Axes, cast, inexact};
use super::{divide, expand_axes, square, subtract};
use crate::array::Array;
use crate::autocast;
use crate::dtype::{DType, Kind};
use crate::error::Result;
use crate::prim::{Reduce, ReduceKind};
use crate::shape::Dims;

/// Folds `axes` (sorted); no axes fold nothing, and record nothing.
pub(crate) fn reduce(kind: ReduceKind, x: &Array, axes: Dims, keepdims: bool) -> Result<Array> {
    if axes.is_empty() && kind.takes(x.dtype()) {
        return Ok(x.clone());
    }
    let kept = keepdims.then(|| axes.clone());
    let max = kind == ReduceKind::Max;
    let is_order = max || kind == ReduceKind::Min;
    if is_order && x.dtype().is_complex() && axes.iter().all(|&a| x.shape()[a] > 0) {
        let out = super::complex::extreme(max, x, &axes)?;
        return if keepdims { Ok(out) } else { super::squeeze_axes(&out, axes) };
    }
    let out = Array::apply(Reduce { kind, axes }, &[x])?;
    match kept {
        Some(axes) => expand_axes(&out, axes),
        None => Ok(out),
    }
}

/// The sum or product over `axes`; over none it is `x` as it is.
fn summed(kind: ReduceKind, x: &Array, axes: Dims, keepdims: bool) -> Result<Array> {
    if axes.is_empty() {
        return Ok(x.clone());
    }
    reduce(kind, &cast(x, sum_dtype(x.dtype()))?, axes, keepdims)
}

/// The dtype that integers are summed in, as in MLX: 32 bits at least.
fn sum_dtype(dtype: DType) -> DType {
    match dtype {
        DType::Bool | DType::I8 | DType::I16 => DType::I32,
        DType::U8 | DType::U16 => DType::U32,
        other => other,
    }
}

/// The sum over `axes`; 0 for nothing.
///
/// # Shapes
/// The axes go, or stay with size 1 where `keepdims` is true.
///
/// # Dtypes
/// Bool and small integers sum as 32-bit integers; integers wrap; half types accumulate in
/// `float32`. Over no axes, as of a scalar, there is nothing to sum: the dtype stays, as in MLX.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(ops::sum(&x, (), false)?.item::<f32>()?, 10.0);
/// assert_eq!(ops::sum(&x, 0, false)?.to_vec::<f32>()?, [4.0, 6.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn sum(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    autocast::apply("sum", [x], |[x]| {
        let axes = axes.into().sorted("sum", x.rank())?;
        summed(ReduceKind::Sum, x, axes, keepdims)
    })
}

/// The product over `axes`; 1 for nothing.
///
/// # Dtypes
/// As [`sum`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[2, 3, 4], [3])?;
/// assert_eq!(ops::prod(&x, (), false)?.item::<i32>()?, 24);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn prod(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    autocast::apply("prod", [x], |[x]| {
        let axes = axes.into().sorted("prod", x.rank())?;
        summed(ReduceKind::Prod, x, axes, keepdims)
    })
}

/// The largest element over `axes`; NaN if there is one. Of zeros the positive one is the larger.
///
/// # Errors
/// Where an axis to fold is empty.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 4.0, 3.0, 2.0], [2, 2])?;
/// assert_eq!(ops::max(&x, 1, false)?.to_vec::<f32>()?, [4.0, 3.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn max(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    let axes = axes.into().sorted("max", x.rank())?;
    reduce(ReduceKind::Max, x, axes, keepdims)
}

/// The smallest element over `axes`; NaN if there is one. Of zeros the negative one is the smaller.
///
/// # Errors
/// As [`max`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 4.0, 3.0, 2.0], [2, 2])?;
/// assert_eq!(ops::min(&x, 1, false)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn min(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    let axes = axes.into().sorted("min", x.rank())?;
    reduce(ReduceKind::Min, x, axes, keepdims)
}

/// Whether all elements over `axes` are true; numbers are true where they are not 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[true, false, true, true], [2, 2])?;
/// assert_eq!(ops::all(&x, 1, false)?.to_vec::<bool>()?, [false, true]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn all(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    let axes = axes.into().sorted("all", x.rank())?;
    reduce(ReduceKind::All, &cast(x, DType::Bool)?, axes, keepdims)
}

/// Whether any element over `axes` is true; numbers are true where they are not 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 0, 0, 7], [2, 2])?;
/// assert_eq!(ops::any(&x, 1, false)?.to_vec::<bool>()?, [false, true]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn any(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    let axes = axes.into().sorted("any", x.rank())?;
    reduce(ReduceKind::Any, &cast(x, DType::Bool)?, axes, keepdims)
}

/// How many elements over `axes` are not 0, as `int32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 5, 0, 7], [2, 2])?;
/// assert_eq!(ops::count_nonzero(&x, 1, false)?.to_vec::<i32>()?, [1, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn count_nonzero(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    let axes = axes.into().sorted("count_nonzero", x.rank())?;
    let there = cast(&cast(x, DType::Bool)?, DType::I32)?;
    reduce(ReduceKind::Sum, &there, axes, keepdims)
}

/// The smallest and the largest element over `axes`, as [`min`] and [`max`] give them.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 2], [3])?;
/// let (low, high) = ops::minmax(&x, (), false)?;
/// assert_eq!((low.item::<i32>()?, high.item::<i32>()?), (1, 3));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn minmax(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<(Array, Array)> {
    let axes = axes.into();
    Ok((min(x, axes.clone(), keepdims)?, max(x, axes, keepdims)?))
}

/// How many elements `axes` of `x` hold.
fn count(x: &Array, axes: &[usize]) -> f64 {
    axes.iter().map(|&a| x.shape()[a] as f64).product()
}

/// The mean over `axes` of an array that is in the dtype to accumulate in.
fn mean_of(x: &Array, axes: &Dims, keepdims: bool) -> Result<Array> {
    let total = reduce(ReduceKind::Sum, x, axes.clone(), keepdims)?;
    divide(&total, count(x, axes))
}

/// The mean over `axes`; NaN for nothing.
///
/// # Dtypes
/// Integers and bool are taken as `float32`; half types are summed and divided in `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// assert_eq!(ops::mean(&x, 0, false)?.to_vec::<f32>()?, [2.0, 3.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn mean(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    autocast::apply("mean", [x], |[x]| {
        let axes = axes.into().sorted("mean", x.rank())?;
        let x = inexact(x)?;
        let wide = cast(&x, x.dtype().accumulator())?;
        cast(&mean_of(&wide, &axes, keepdims)?, x.dtype())
    })
}

/// The variance over `axes`: the mean squared distance from the mean, with `ddof` taken off the
/// count; a negative one adds to it.
///
/// # Dtypes
/// As [`mean`]; of complex numbers that of their parts.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4])?;
/// assert_eq!(ops::var(&x, (), false, 0)?.item::<f32>()?, 1.25);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn var(x: &Array, axes: impl Into<Axes>, keepdims: bool, ddof: isize) -> Result<Array> {
    autocast::apply("var", [x], |[x]| {
        let axes = axes.into().sorted("var", x.rank())?;
        let x = inexact(x)?;
        let narrow = x.dtype().real();
        cast(&var_of(&x, &axes, keepdims, ddof)?, narrow)
    })
}

/// The variance in the dtype that it accumulates in: two passes, so that a large mean cancels
/// nothing.
fn var_of(x: &Array, axes: &Dims, keepdims: bool, ddof: isize) -> Result<Array> {
    let wide = cast(x, x.dtype().accumulator())?;
    let centred = subtract(&wide, &mean_of(&wide, axes, true)?)?;
    let squares = match wide.dtype().kind() {
        Kind::Complex => square(&super::abs(&centred)?)?,
        _ => square(&centred)?,
    };
    let total = reduce(ReduceKind::Sum, &squares, axes.clone(), keepdims)?;
    divide(&total, (count(x, axes) - ddof as f64).max(0.0))
}

/// The standard deviation over `axes`: the root of [`var`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 3.0], [2])?;
/// assert_eq!(ops::std(&x, (), false, 0)?.item::<f32>()?, 1.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn std(x: &Array, axes: impl Into<Axes>, keepdims: bool, ddof: isize) -> Result<Array> {
    autocast::apply("std", [x], |[x]| {
        let axes = axes.into().sorted("std", x.rank())?;
        let x = inexact(x)?;
        let narrow = x.dtype().real();
        cast(&super::sqrt(&var_of(&x, &axes, keepdims, ddof)?)?, narrow)
    })
}
