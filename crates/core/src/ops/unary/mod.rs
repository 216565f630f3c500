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
        DType::C64 => complex::sign(x),
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
        DType::C64 => Err(Error::dtype("trunc", format!("does not take {}", x.aval()))),
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
/// # Dtypes
/// Integers stay as they are where `decimals` is not negative, and round to tens, hundreds, …
/// through `float32` where it is.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0.5f32, 1.5, 2.26], [3])?;
/// assert_eq!(ops::round(&x, 0)?.to_vec::<f32>()?, [0.0, 2.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn round(x: &Array, decimals: i32) -> Result<Array> {
    if decimals >= 0 && !x.dtype().is_inexact() {
        return Ok(x.clone());
    }
    if decimals == 0 {
        return Array::apply(Unary::Round, &[x]);
    }
    let scale = 10f64.powi(decimals.saturating_abs());
    let float = inexact(x)?;
    let rounded = if decimals > 0 {
        divide(&round(&multiply(&float, scale)?, 0)?, scale)?
    } else {
        multiply(&round(&divide(&float, scale)?, 0)?, scale)?
    };
    super::astype(&rounded, x.dtype())
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
    if x.dtype() == DType::C64 { Array::apply(Unary::Real, &[x]) } else { Ok(x.clone()) }
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
    if x.dtype() == DType::C64 { Array::apply(Unary::Imag, &[x]) } else { Ok(constant_like(x, 0)) }
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
    if x.dtype() == DType::C64 { Array::apply(Unary::Conj, &[x]) } else { Ok(x.clone()) }
}
