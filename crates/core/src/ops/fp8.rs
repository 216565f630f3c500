//! Numbers of 8 bits: sign, four bits of exponent, three of mantissa (e4m3, without infinities).
//!
//! P. Micikevicius and others, *FP8 formats for deep learning*, 2022.

use super::operand::cast;
use super::{
    abs, add, bitwise_and, bitwise_or, equal, greater_equal, left_shift, less, minimum, multiply,
    negative, right_shift, round, subtract, view, where_,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The code of the largest number, 448.
const LARGEST: u32 = 0x7e;

/// Floats as e4m3 numbers in `uint8`, rounded to nearest even; ±448 where they are larger, or NaN.
///
/// # Errors
/// Where `x` is not of floats.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0.0f32, 1.0, -1000.0], [3])?;
/// assert_eq!(ops::to_fp8(&x)?.to_vec::<u8>()?, [0, 56, 254]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn to_fp8(x: &Array) -> Result<Array> {
    if !x.dtype().is_float() {
        return Err(Error::dtype("to_fp8", format!("takes floats, not {}", x.aval())));
    }
    let x = cast(x, DType::F32)?;
    let size = abs(&x)?;
    // Below 2⁻⁶ numbers are 2⁻⁹ apart, and so are codes.
    let low = cast(&round(&multiply(&minimum(&size, 1)?, 512)?, 0)?, DType::U32)?;
    // Above, the upper bits of a float are a code: 20 bits go, and the exponents' offset.
    let bits = view(&size, DType::U32)?;
    let odd = bitwise_and(&right_shift(&bits, 20)?, 1)?;
    let rounded = right_shift(&add(&add(&bits, 0x7_ffffu32)?, &odd)?, 20)?;
    let high = minimum(&subtract(&rounded, (127 - 7) << 3)?, LARGEST)?;
    let code = where_(&less(&size, 2f64.powi(-6))?, &low, &high)?;
    let sign = bitwise_and(&right_shift(&view(&x, DType::U32)?, 24)?, 0x80u32)?;
    cast(&bitwise_or(&code, &sign)?, DType::U8)
}

/// The numbers that [`to_fp8`] made, as floats of `dtype`.
///
/// # Errors
/// Where `x` is not `uint8`, or `dtype` not a float.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops};
/// let x = Array::from_slice(&[0u8, 56, 254], [3])?;
/// assert_eq!(ops::from_fp8(&x, DType::F32)?.to_vec::<f32>()?, [0.0, 1.0, -448.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn from_fp8(x: &Array, dtype: DType) -> Result<Array> {
    if x.dtype() != DType::U8 || !dtype.is_float() {
        return Err(Error::dtype(
            "from_fp8",
            format!("takes uint8 to floats, not {} to {dtype}", x.aval()),
        ));
    }
    // As the bits of a float16, whose exponents are 8 lower.
    let code = bitwise_and(x, 0x7f)?;
    let half = view(&left_shift(&cast(&code, DType::U16)?, 7)?, DType::F16)?;
    let size = multiply(&cast(&half, DType::F32)?, 256)?;
    let size = where_(&equal(&code, 0x7f)?, f64::NAN, &size)?;
    cast(&where_(&greater_equal(x, 0x80)?, &negative(&size)?, &size)?, dtype)
}
