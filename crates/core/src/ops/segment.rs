//! Rows joined by the segment that each of them belongs to.

use super::complex::of_parts;
use super::gather::{expect_integers, wrap};
use super::operand::cast;
use super::{equal, expand_axes, full, greater, imag, isnan, real, take, where_};
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::prim::{Scatter, ScatterMode};
use crate::shape::Dims;

fn segment(
    op: &'static str,
    x: &Array,
    segments: &Array,
    count: usize,
    (mode, first): (ScatterMode, Scalar),
) -> Result<Array> {
    if x.rank() == 0 || segments.rank() != 1 || segments.shape()[0] != x.shape()[0] {
        let detail = format!("a segment for each row of {}, not {}", x.aval(), segments.aval());
        return Err(Error::shape(op, detail));
    }
    expect_integers(op, segments)?;
    let whole = full(x.shape().with(0, count), first, x.dtype())?;
    if segments.is_empty() {
        return Ok(whole);
    }
    let updates = expand_axes(x, Dims::from_slice(&[1]))?;
    let scatter = Scatter { mode, axes: Dims::from_slice(&[0]) };
    Array::apply(scatter, &[&whole, &updates, &wrap(op, segments, 0, count)?])
}

/// The sums of the rows of each segment; 0 for a segment without rows.
///
/// # Shapes
/// `x` `[n, ..]` and the number of each row's segment `[n]` give `[count, ..]`.
///
/// # Dtypes
/// Half types are summed in `float32`.
///
/// # Errors
/// Where the segments are not integers or not one a row, for bool, and when it runs where one is not below `count`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// let segments = Array::from_slice(&[0, 2, 0], [3])?;
/// assert_eq!(ops::segment_sum(&x, &segments, 3)?.to_vec::<i32>()?, [4, 0, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn segment_sum(x: &Array, segments: &Array, count: usize) -> Result<Array> {
    let wide = match x.dtype() {
        DType::Bool => cast(x, DType::I32)?,
        dtype => cast(x, dtype.accumulator())?,
    };
    let own = if x.dtype() == DType::Bool { DType::I32 } else { x.dtype() };
    let mode = (ScatterMode::Add, Scalar::Int(0));
    cast(&segment("segment_sum", &wide, segments, count, mode)?, own)
}

/// The means of the rows of each segment; NaN for a segment without rows.
///
/// # Shapes
/// As [`segment_sum`].
///
/// # Dtypes
/// Integers and bool are taken as `float32`; half types are summed in `float32`.
///
/// # Errors
/// As [`segment_sum`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 4.0], [3])?;
/// let segments = Array::from_slice(&[0, 1, 0], [3])?;
/// assert_eq!(ops::segment_mean(&x, &segments, 2)?.to_vec::<f32>()?, [2.5, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn segment_mean(x: &Array, segments: &Array, count: usize) -> Result<Array> {
    let own = x.dtype().to_inexact();
    let mode = (ScatterMode::Add, Scalar::Int(0));
    let wide = cast(x, own.accumulator())?;
    let total = segment("segment_mean", &wide, segments, count, mode)?;
    let ones = full(segments.shape(), 1, DType::F32)?;
    let rows = segment("segment_mean", &ones, segments, count, mode)?;
    let rows = expand_axes(&rows, (1..x.rank()).collect())?;
    cast(&super::divide(&total, &rows)?, own)
}

/// The least and the largest number of a dtype that has an order.
fn ends(x: &Array) -> (Scalar, Scalar) {
    let bits = 8 * x.dtype().size() as u32;
    match x.dtype() {
        DType::Bool => (Scalar::Bool(false), Scalar::Bool(true)),
        dtype if dtype.is_float() => {
            (Scalar::Float(f64::NEG_INFINITY), Scalar::Float(f64::INFINITY))
        }
        dtype if dtype.is_signed() => {
            let most = i64::MAX >> (64 - bits);
            (Scalar::Int(-1 - most), Scalar::Int(most))
        }
        _ => (Scalar::Int(0), Scalar::Uint(u64::MAX >> (64 - bits))),
    }
}

/// Of complex numbers the extreme real part of each segment, and the extreme imaginary part beside it. NaN in either
/// part is NaN.
fn complex_extremes(
    op: &'static str,
    x: &Array,
    segments: &Array,
    count: usize,
    mode: ScatterMode,
) -> Result<Array> {
    let (own, unknown) = (x.dtype(), isnan(x)?);
    let x = cast(x, own.accumulator())?;
    let re = where_(&unknown, f32::NAN, &real(&x)?)?;
    let first = extremes(op, &re, segments, count, mode)?;
    if segments.is_empty() {
        return cast(&of_parts(&first, &first)?, own);
    }
    let beside = equal(&re, &take(&first, segments, 0)?)?;
    let last = if mode == ScatterMode::Max { f32::NEG_INFINITY } else { f32::INFINITY };
    let im = where_(&unknown, f32::NAN, &where_(&beside, &imag(&x)?, last)?)?;
    cast(&of_parts(&first, &extremes(op, &im, segments, count, mode)?)?, own)
}

/// Extremes of bools are those of `uint8`.
fn extremes(
    op: &'static str,
    x: &Array,
    segments: &Array,
    count: usize,
    mode: ScatterMode,
) -> Result<Array> {
    if x.dtype().is_complex() {
        return complex_extremes(op, x, segments, count, mode);
    }
    let (least, most) = ends(x);
    let first = if mode == ScatterMode::Max { least } else { most };
    if x.dtype() != DType::Bool {
        return segment(op, x, segments, count, (mode, first));
    }
    let first = Scalar::Int(i64::from(mode == ScatterMode::Min));
    let out = segment(op, &cast(x, DType::U8)?, segments, count, (mode, first))?;
    where_(&greater(&out, 0)?, true, false)
}

/// The largest elements of the rows of each segment; −∞, or the least integer, for a segment without rows.
///
/// # Shapes
/// As [`segment_sum`].
///
/// # Errors
/// As [`segment_sum`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 4.0], [3])?;
/// let segments = Array::from_slice(&[0, 1, 0], [3])?;
/// assert_eq!(ops::segment_max(&x, &segments, 2)?.to_vec::<f32>()?, [4.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn segment_max(x: &Array, segments: &Array, count: usize) -> Result<Array> {
    extremes("segment_max", x, segments, count, ScatterMode::Max)
}

/// The smallest elements of the rows of each segment; ∞, or the largest integer, for a segment without rows.
///
/// # Shapes
/// As [`segment_sum`].
///
/// # Errors
/// As [`segment_sum`], and for complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 4.0], [3])?;
/// let segments = Array::from_slice(&[0, 1, 0], [3])?;
/// assert_eq!(ops::segment_min(&x, &segments, 2)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn segment_min(x: &Array, segments: &Array, count: usize) -> Result<Array> {
    extremes("segment_min", x, segments, count, ScatterMode::Min)
}
