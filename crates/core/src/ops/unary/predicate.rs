//! What kind of number an element is.
//!
//! Integers and bool are always finite, and record a constant.

use super::{abs, imag, real};
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::complex::of_parts;
use crate::ops::operand::{Operand, cast, constant_like};
use crate::ops::{equal, less, logical_and, logical_or, not_equal, where_};
use crate::shape::Aval;

/// A bool of `x`'s shape.
fn all_of(x: &Array, value: bool) -> Array {
    Array::constant(value, Aval { shape: x.aval().shape.clone(), dtype: DType::Bool })
}

/// Whether x is NaN; of a complex number, whether either part is.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0, f32::NAN], [2])?;
/// assert_eq!(ops::isnan(&x)?.to_vec::<bool>()?, [false, true]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn isnan(x: &Array) -> Result<Array> {
    if x.dtype().is_inexact() { not_equal(x, x) } else { Ok(all_of(x, false)) }
}

/// Whether x is ∞ or −∞; of a complex number, whether either part is.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0, f32::NEG_INFINITY], [2])?;
/// assert_eq!(ops::isinf(&x)?.to_vec::<bool>()?, [false, true]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn isinf(x: &Array) -> Result<Array> {
    match x.dtype() {
        dtype if dtype.is_complex() => logical_or(&isinf(&real(x)?)?, &isinf(&imag(x)?)?),
        dtype if dtype.is_float() => equal(&abs(x)?, f64::INFINITY),
        _ => Ok(all_of(x, false)),
    }
}

/// Whether x is neither infinite nor NaN; of a complex number, whether both parts are.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0, f32::NAN, f32::INFINITY], [3])?;
/// assert_eq!(ops::isfinite(&x)?.to_vec::<bool>()?, [true, false, false]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn isfinite(x: &Array) -> Result<Array> {
    match x.dtype() {
        dtype if dtype.is_complex() => logical_and(&isfinite(&real(x)?)?, &isfinite(&imag(x)?)?),
        dtype if dtype.is_float() => less(&abs(x)?, f64::INFINITY),
        _ => Ok(all_of(x, true)),
    }
}

/// Whether x is ∞.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert!(ops::isposinf(&Array::scalar(f32::INFINITY))?.item::<bool>()?);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn isposinf(x: &Array) -> Result<Array> {
    if x.dtype().is_inexact() { equal(x, f64::INFINITY) } else { Ok(all_of(x, false)) }
}

/// Whether x is −∞.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert!(ops::isneginf(&Array::scalar(f32::NEG_INFINITY))?.item::<bool>()?);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn isneginf(x: &Array) -> Result<Array> {
    if x.dtype().is_inexact() { equal(x, f64::NEG_INFINITY) } else { Ok(all_of(x, false)) }
}

/// What [`nan_to_num`] puts in place of what is not finite; infinities become the dtype's largest
/// and smallest numbers where nothing is given.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Replacements {
    /// For NaN.
    pub nan: f64,
    /// For ∞.
    pub posinf: Option<f64>,
    /// For −∞.
    pub neginf: Option<f64>,
}

/// x with numbers in place of NaN and infinities; integers as they are. Of complex numbers both parts are replaced.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0, f32::NAN, f32::INFINITY], [3])?;
/// let y = ops::nan_to_num(&x, ops::Replacements::default())?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, f32::MAX]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn nan_to_num(x: &Array, replacements: Replacements) -> Result<Array> {
    let largest = match x.dtype() {
        DType::C32 | DType::C64 => {
            let re = nan_to_num(&real(x)?, replacements)?;
            return cast(&of_parts(&re, &nan_to_num(&imag(x)?, replacements)?)?, x.dtype());
        }
        DType::F16 => half::f16::MAX.to_f64(),
        DType::BF16 => half::bf16::MAX.to_f64(),
        DType::F32 => f64::from(f32::MAX),
        DType::F64 => f64::MAX,
        _ => return Ok(x.clone()),
    };
    let put = |out: &Array, test: Array, value: f64| {
        where_(&test, &constant_like(x, Scalar::Float(value)), Operand::Array(out))
    };
    let out = put(x, isnan(x)?, replacements.nan)?;
    let out = put(&out, isposinf(x)?, replacements.posinf.unwrap_or(largest))?;
    put(&out, isneginf(x)?, replacements.neginf.unwrap_or(-largest))
}
