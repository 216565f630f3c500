//! Running sums, products and extremes along an axis.

use super::operand::{Axes, cast, inexact};
use super::{complex, flatten};
use crate::array::Array;
use crate::autocast;
use crate::dtype::DType;
use crate::error::Result;
use crate::prim::{Scan, ScanKind};

/// How a scan walks along its axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanOptions {
    /// From the end to the start; false.
    pub reverse: bool,
    /// Each place without its own element; false.
    pub exclusive: bool,
}

/// `x` and its axis, or flattened and that axis.
fn along(op: &'static str, x: &Array, axis: Axes) -> Result<(Array, usize)> {
    Ok(match axis.single(op, x.rank())? {
        Some(axis) => (x.clone(), axis),
        None => (flatten(x, 0, -1)?, 0),
    })
}

fn scanned(kind: ScanKind, x: &Array, axis: usize, options: ScanOptions) -> Result<Array> {
    let ScanOptions { reverse, exclusive } = options;
    Array::apply(Scan { kind, axis, reverse, exclusive }, &[x])
}

fn scan(kind: ScanKind, x: &Array, axis: Axes, options: ScanOptions) -> Result<Array> {
    let (x, axis) = along(kind.name(), x, axis)?;
    scanned(kind, &x, axis, options)
}

/// The extreme up to each element; of complex numbers in their order.
fn extreme(kind: ScanKind, x: &Array, axis: Axes, options: ScanOptions) -> Result<Array> {
    let (x, axis) = along(kind.name(), x, axis)?;
    match x.dtype().is_complex() {
        true => complex::running_extreme(kind == ScanKind::Max, &x, axis, options),
        false => scanned(kind, &x, axis, options),
    }
}

/// The sums of the elements of an axis up to each; `()` flattens first.
///
/// # Dtypes
/// Integers keep their dtype and wrap; bool counts in `int32`; half types accumulate in `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::ScanOptions};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(ops::cumsum(&x, 0, ScanOptions::default())?.to_vec::<i32>()?, [1, 3, 6]);
/// let options = ScanOptions { reverse: true, exclusive: true };
/// assert_eq!(ops::cumsum(&x, 0, options)?.to_vec::<i32>()?, [5, 3, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cumsum(x: &Array, axis: impl Into<Axes>, options: ScanOptions) -> Result<Array> {
    autocast::apply("cumsum", [x], |[x]| {
        let counted = if x.dtype() == DType::Bool { DType::I32 } else { x.dtype() };
        scan(ScanKind::Sum, &cast(x, counted)?, axis.into(), options)
    })
}

/// The products of the elements of an axis up to each; `()` flattens first.
///
/// # Dtypes
/// Integers keep their dtype and wrap; of bools it is whether all are true; half types accumulate in
/// `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[2, 3, 4], [3])?;
/// assert_eq!(ops::cumprod(&x, 0, Default::default())?.to_vec::<i32>()?, [2, 6, 24]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cumprod(x: &Array, axis: impl Into<Axes>, options: ScanOptions) -> Result<Array> {
    autocast::apply("cumprod", [x], |[x]| {
        let kind = if x.dtype() == DType::Bool { ScanKind::Min } else { ScanKind::Prod };
        scan(kind, x, axis.into(), options)
    })
}

/// The largest element of an axis up to each, NaN from the first one on; `()` flattens first. Complex numbers are
/// ordered by their real parts, and where these are equal by their imaginary ones.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 3, 2], [3])?;
/// assert_eq!(ops::cummax(&x, 0, Default::default())?.to_vec::<i32>()?, [1, 3, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cummax(x: &Array, axis: impl Into<Axes>, options: ScanOptions) -> Result<Array> {
    extreme(ScanKind::Max, x, axis.into(), options)
}

/// The smallest element of an axis up to each, NaN from the first one on; `()` flattens first. Complex numbers are
/// ordered by their real parts, and where these are equal by their imaginary ones.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3, 1, 2], [3])?;
/// assert_eq!(ops::cummin(&x, 0, Default::default())?.to_vec::<i32>()?, [3, 1, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cummin(x: &Array, axis: impl Into<Axes>, options: ScanOptions) -> Result<Array> {
    extreme(ScanKind::Min, x, axis.into(), options)
}

/// ln Σ eˣ of the elements of an axis up to each, without overflow; `()` flattens first.
///
/// # Dtypes
/// Integers and bool are taken as `float32`; half types accumulate in `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1000.0f32, 1000.0], [2])?;
/// let y = ops::logcumsumexp(&x, 0, Default::default())?.to_vec::<f32>()?;
/// assert!(y[0] == 1000.0 && (y[1] - 1000.6931).abs() < 1e-3);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn logcumsumexp(x: &Array, axis: impl Into<Axes>, options: ScanOptions) -> Result<Array> {
    autocast::apply("logcumsumexp", [x], |[x]| {
        let (x, axis) = along(ScanKind::LogAddExp.name(), &inexact(x)?, axis.into())?;
        match x.dtype().is_complex() {
            true => complex::running_logaddexp(&x, axis, options),
            false => scanned(ScanKind::LogAddExp, &x, axis, options),
        }
    })
}
