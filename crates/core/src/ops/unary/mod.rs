//! Elementwise functions of one operand: signs, rounding, parts of complex numbers.

mod exponential;
mod predicate;
mod trigonometry;

pub use exponential::*;
pub use predicate::*;
pub use trigonometry::*;

use super::complex;
use super::operand::{constant_like, inexact};
use super::{divide, less, multiply, where_};
use crate::array::Array;
use crate::autocast;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::Unary;

/// Records `op` on `x` as a float: integers and bool as `float32`.
#[inline]
fn float(op: Unary, x: &Array) -> Result<Array> {
    autocast::apply(op.name(), [x], |[x]| Array::apply(op, &[&inexact(x)?]))
}

/// |x|; of a complex number its modulus, as `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1, 2], [2])?;
/// assert_eq!(ops::abs(&x)?.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn abs(x: &Array) -> Result<Array> {
    if x.dtype() == DType::Bool { Ok(x.clone()) } else { Array::apply(Unary::Abs, &[x]) }
}

/// −x; integers wrap.
///
/// # Errors
/// For bool: use [`logical_not`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1, 2], [2])?;
/// assert_eq!(ops::negative(&x)?.to_vec::<i32>()?, [1, -2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn negative(x: &Array) -> Result<Array> {
    Array::apply(Unary::Neg, &[x])
}

/// −1, 0 or 1 by the sign of x; NaN stays NaN; z/|z| of a complex number.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1.5f32, 0.0, 2.0], [3])?;
/// assert_eq!(ops::sign(&x)?.to_vec::<f32>()?, [-1.0, 0.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn sign(x: &Array) -> Result<Array> {
    match x.dtype() {
        DType::Bool => Ok(x.clone()),
        dtype if dtype.is_complex() => complex::sign(x),
        _ => Array::apply(Unary::Sign, &[x]),
    }
}

/// x·x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::square(&Array::scalar(-3))?.item::<i32>()?, 9);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn square(x: &Array) -> Result<Array> {
    if x.dtype() == DType::Bool { Ok(x.clone()) } else { Array::apply(Unary::Square, &[x]) }
}

/// 1/x.
///
/// # Dtypes
/// Integers and bool are taken as `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::reciprocal(&Array::scalar(4))?.item::<f32>()?, 0.25);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn reciprocal(x: &Array) -> Result<Array> {
    divide(1, x)
}

/// The largest integer not above x, in x's dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::floor(&Array::scalar(-1.5f32))?.item::<f32>()?, -2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn floor(x: &Array) -> Result<Array> {
    if x.dtype().is_inexact() { Array::apply(Unary::Floor, &[x]) } else { Ok(x.clone()) }
}

/// The smallest integer not below x, in x's dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::ceil(&Array::scalar(-1.5f32))?.item::<f32>()?, -1.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn ceil(x: &Array) -> Result<Array> {
    if x.dtype().is_inexact() { Array::apply(Unary::Ceil, &[x]) } else { Ok(x.clone()) }
}

/// x without what is behind its point: the next integer towards 0, in x's dtype.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1.5f32, 1.5], [2])?;
/// assert_eq!(ops::trunc(&x)?.to_vec::<f32>()?, [-1.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn trunc(x: &Array) -> Result<Array> {
    match x.dtype() {
        DType::C32 | DType::C64 => {
            Err(Error::dtype("trunc", format!("does not take {}", x.aval())))
        }
        dtype if dtype.is_float() => where_(&less(x, 0)?, &ceil(x)?, &floor(x)?),
        _ => Ok(x.clone()),
    }
}

/// x as it is.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::positive(&Array::scalar(-3))?.item::<i32>()?, -3);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn positive(x: &Array) -> Result<Array> {
    Ok(x.clone())
}

/// The nearest number of `decimals` decimals, ties to even.
///
/// Where `decimals` is negative it is one of tens, hundreds, …. What has fewer decimals than asked for
/// stays as it is.
///
/// # Dtypes
/// Half types are computed in `float32`, complex numbers in parts. Integers stay as they are where
/// `decimals` is not negative, and are computed as integers where it is: what does not fit wraps.
///
/// # Derivatives
/// 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0.5f32, 1.5, 2.26], [3])?;
/// assert_eq!(ops::round(&x, 0)?.to_vec::<f32>()?, [0.0, 2.0, 2.0]);
/// assert_eq!(ops::round(&x, 1)?.to_vec::<f32>()?, [0.5, 1.5, 2.3]);
/// assert_eq!(ops::round(&Array::scalar(1250), -2)?.item::<i32>()?, 1200);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn round(x: &Array, decimals: i32) -> Result<Array> {
    match x.dtype() {
        dtype if !dtype.is_inexact() && decimals >= 0 => Ok(x.clone()),
        _ if decimals == 0 => Array::apply(Unary::Round, &[x]),
        DType::Bool => super::zeros_like(x),
        own @ (DType::C32 | DType::C64) => {
            let parts = super::view(&super::expand_dims(x, -1)?, own.real())?;
            super::squeeze(&super::view(&round(&parts, decimals)?, own)?, -1)
        }
        DType::F16 | DType::BF16 => {
            let wide = super::astype(x, DType::F32)?;
            super::astype(&round_float(&wide, decimals)?, x.dtype())
        }
        DType::F32 | DType::F64 => round_float(x, decimals),
        _ => round_integer(x, decimals.unsigned_abs()),
    }
}

/// `x` of `float32` or `float64` rounded to decimals or, below 0, tens.
fn round_float(x: &Array, decimals: i32) -> Result<Array> {
    // From `whole` on there are only integers. 10^`largest` is a number of the dtype; times
    // 10^`most` the smallest is one of these integers, and the largest by it is less than a half.
    let (whole, largest, most) = match x.dtype() {
        DType::F64 => ((1u64 << 52) as f64, 308, 340),
        _ => (f64::from(1u32 << 23), 38, 53),
    };
    let power = decimals.saturating_abs().min(most);
    let factors = [10f64.powi(power.min(largest)), 10f64.powi((power - largest).max(0))];
    let scaled = |x: &Array, up: bool| -> Result<Array> {
        let factors = factors.iter().filter(|&&factor| factor > 1.0);
        factors.copied().try_fold(x.clone(), |x, factor| match up {
            true => multiply(&x, factor),
            false => divide(&x, factor),
        })
    };
    let y = scaled(x, decimals > 0)?;
    let rounded = scaled(&round(&y, 0)?, decimals < 0)?;
    where_(&less(&abs(&y)?, whole)?, &rounded, &super::stop_gradient(x)?)
}

/// `x` of integers rounded to a multiple of 10^`power`.
fn round_integer(x: &Array, power: u32) -> Result<Array> {
    let dtype = x.dtype();
    // Of a step that the dtype does not hold the only multiple that it holds is 0.
    let largest = match dtype.is_signed() {
        true => i64::MAX >> (64 - 8 * dtype.size()),
        false => (u64::MAX >> (64 - 8 * dtype.size())).min(i64::MAX as u64) as i64,
    };
    let Some(step) = 10i64.checked_pow(power).filter(|&step| step <= largest) else {
        return super::zeros_like(x);
    };
    let tens = super::floor_divide(x, step)?;
    let rest = super::subtract(x, &multiply(&tens, step)?)?;
    let odd = super::bitwise_and(&tens, 1)?;
    let up = super::greater(&super::add(&rest, &odd)?, step / 2)?;
    multiply(&super::add(&tens, &super::astype(&up, dtype)?)?, step)
}

/// True where x is false; numbers are true where they are not 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 2], [2])?;
/// assert_eq!(ops::logical_not(&x)?.to_vec::<bool>()?, [true, false]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn logical_not(x: &Array) -> Result<Array> {
    Array::apply(Unary::Not, &[&super::astype(x, DType::Bool)?])
}

/// Every bit of the integer flipped; on bool, logical not.
///
/// # Errors
/// For floats and complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::bitwise_invert(&Array::scalar(5u8))?.item::<u8>()?, 250);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn bitwise_invert(x: &Array) -> Result<Array> {
    let op = if x.dtype() == DType::Bool { Unary::Not } else { Unary::Invert };
    Array::apply(op, &[x])
}

/// The real part: `float32` of a complex number, anything else as it is.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::real(&Array::scalar(2.0f32))?.item::<f32>()?, 2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn real(x: &Array) -> Result<Array> {
    if x.dtype().is_complex() { Array::apply(Unary::Real, &[x]) } else { Ok(x.clone()) }
}

/// The imaginary part: `float32` of a complex number, 0 of anything else.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::imag(&Array::scalar(2.0f32))?.item::<f32>()?, 0.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn imag(x: &Array) -> Result<Array> {
    if x.dtype().is_complex() { Array::apply(Unary::Imag, &[x]) } else { Ok(constant_like(x, 0)) }
}

/// The complex conjugate; anything else as it is.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::conjugate(&Array::scalar(2.0f32))?.item::<f32>()?, 2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn conjugate(x: &Array) -> Result<Array> {
    if x.dtype().is_complex() { Array::apply(Unary::Conj, &[x]) } else { Ok(x.clone()) }
}
