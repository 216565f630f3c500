//! Elementwise functions of two operands, which broadcast and promote.

use super::operand::{Operand, common_dtype, common_shape};
use crate::array::Array;
use crate::autocast;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::Binary;

/// Records `op` on operands that broadcast, in the dtype that they promote to.
///
/// Operands of one shape and dtype record one node and nothing else.
#[inline]
pub(crate) fn binary(op: Binary, a: Operand<'_>, b: Operand<'_>) -> Result<Array> {
    if let (Operand::Array(a), Operand::Array(b)) = (a, b)
        && a.aval() == b.aval()
        && op.takes(a.dtype())
    {
        return Array::apply(op, &[a, b]);
    }
    let dtype = common_dtype(&[a, b]);
    meet(op, dtype, a, b)
}

/// Records `op` on operands as floats: integers and bool as `float32`.
fn binary_inexact(op: Binary, a: Operand<'_>, b: Operand<'_>) -> Result<Array> {
    let dtype = common_dtype(&[a, b]).to_inexact();
    meet(op, dtype, a, b)
}

/// Records `op` on operands as `dtype`.
fn meet(op: Binary, dtype: DType, a: Operand<'_>, b: Operand<'_>) -> Result<Array> {
    let shape = common_shape(op.name(), &[a, b])?;
    if dtype == DType::Bool && !op.takes(dtype) {
        return meet_bool(op, a, b);
    }
    let (a, b) = (a.to(dtype, &shape)?, b.to(dtype, &shape)?);
    match (op, dtype) {
        (Binary::Power, _) if dtype.is_complex() => super::complex::power(&a, &b),
        (Binary::Maximum | Binary::Minimum, _) if dtype.is_complex() => {
            super::complex::extreme_of(op, &a, &b)
        }
        (Binary::LogAddExp, _) if dtype.is_complex() => super::complex::logaddexp(&a, &b),
        _ => Array::apply(op, &[&a, &b]),
    }
}

/// Records a function of bits: floats are an error whatever their shapes.
fn of_bits(op: Binary, a: Operand<'_>, b: Operand<'_>) -> Result<Array> {
    let dtype = common_dtype(&[a, b]);
    match dtype == DType::Bool || dtype.is_integer() {
        true => binary(op, a, b),
        false => Err(Error::dtype(op.name(), format!("takes integers and bool, not {dtype}"))),
    }
}

/// Arithmetic on bools, with 1 for true and a result that is true where it is not 0, as in MLX.
fn meet_bool(op: Binary, a: Operand<'_>, b: Operand<'_>) -> Result<Array> {
    match op {
        Binary::Add => binary(Binary::BitOr, a, b),
        Binary::Sub => binary(Binary::BitXor, a, b),
        Binary::Mul => binary(Binary::BitAnd, a, b),
        Binary::FloorDivide | Binary::Remainder | Binary::Power => {
            super::astype(&meet(op, DType::U8, a, b)?, DType::Bool)
        }
        other => meet(other, DType::U8, a, b),
    }
}

/// Records `op` on what the policy makes of the arrays among its operands.
fn cast_for(
    op: &'static str,
    a: Operand<'_>,
    b: Operand<'_>,
    f: impl FnOnce(Operand<'_>, Operand<'_>) -> Result<Array>,
) -> Result<Array> {
    match (a, b) {
        (Operand::Array(a), Operand::Array(b)) => {
            autocast::apply(op, [a, b], |[a, b]| f(a.into(), b.into()))
        }
        (Operand::Array(a), b) => autocast::apply(op, [a], |[a]| f(a.into(), b)),
        (a, Operand::Array(b)) => autocast::apply(op, [b], |[b]| f(a, b.into())),
        (a, b) => f(a, b),
    }
}

/// a + b.
///
/// # Shapes
/// The operands broadcast.
///
/// # Dtypes
/// The operands promote; integers wrap; on bool, logical or.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(ops::add(&x, 0.5)?.to_vec::<f32>()?, [1.5, 2.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn add<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    binary(Binary::Add, a.into(), b.into())
}

/// a − b.
///
/// # Dtypes
/// The operands promote; integers wrap; on bool, logical exclusive or.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(ops::subtract(&x, 0.5)?.to_vec::<f32>()?, [0.5, 1.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn subtract<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    binary(Binary::Sub, a.into(), b.into())
}

/// a·b.
///
/// # Dtypes
/// The operands promote; integers wrap; on bool, logical and.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(ops::multiply(&x, &x)?.to_vec::<f32>()?, [1.0, 4.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn multiply<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    binary(Binary::Mul, a.into(), b.into())
}

/// a/b.
///
/// # Dtypes
/// Integers and bool divide as `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2], [2])?;
/// assert_eq!(ops::divide(&x, 2)?.to_vec::<f32>()?, [0.5, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn divide<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    binary_inexact(Binary::Div, a.into(), b.into())
}

/// ⌊a/b⌋.
///
/// # Dtypes
/// An integer divided by 0 gives 0. Does not take complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-3, 7], [2])?;
/// assert_eq!(ops::floor_divide(&x, 2)?.to_vec::<i32>()?, [-2, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn floor_divide<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    binary(Binary::FloorDivide, a.into(), b.into())
}

/// a − b·⌊a/b⌋, with the sign of b.
///
/// # Dtypes
/// An integer modulo 0 gives 0. Does not take complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-3, 7], [2])?;
/// assert_eq!(ops::remainder(&x, 4)?.to_vec::<i32>()?, [1, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn remainder<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    binary(Binary::Remainder, a.into(), b.into())
}

/// The pair of [`floor_divide`] and [`remainder`].
///
/// # Example
/// ```
/// use cupola::ops;
/// let (quotient, remainder) = ops::divmod(-7, 4)?;
/// assert_eq!((quotient.item::<i32>()?, remainder.item::<i32>()?), (-2, 1));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn divmod<'a, 'b>(
    a: impl Into<Operand<'a>>,
    b: impl Into<Operand<'b>>,
) -> Result<(Array, Array)> {
    let (a, b) = (a.into(), b.into());
    Ok((binary(Binary::FloorDivide, a, b)?, binary(Binary::Remainder, a, b)?))
}

/// aᵇ.
///
/// # Dtypes
/// The operands promote. A negative exponent of an integer gives 0, or ±1 for bases ±1.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[2.0f32, 3.0], [2])?;
/// assert_eq!(ops::power(&x, 2)?.to_vec::<f32>()?, [4.0, 9.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn power<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    cast_for("power", a.into(), b.into(), powered)
}

/// [`power`] in the dtype that the operands promote to.
fn powered(a: Operand<'_>, b: Operand<'_>) -> Result<Array> {
    if let (Operand::Array(a), Operand::Scalar(two)) = (a, b)
        && two.to_f64() == 2.0
        && common_dtype(&[a.into(), b]) == a.dtype()
    {
        return super::square(a);
    }
    binary(Binary::Power, a, b)
}

/// The larger of a and b; NaN if either is NaN.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1.0f32, 2.0], [2])?;
/// assert_eq!(ops::maximum(&x, 0)?.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn maximum<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    binary(Binary::Maximum, a.into(), b.into())
}

/// The smaller of a and b; NaN if either is NaN.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1.0f32, 2.0], [2])?;
/// assert_eq!(ops::minimum(&x, 0)?.to_vec::<f32>()?, [-1.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn minimum<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    binary(Binary::Minimum, a.into(), b.into())
}

/// The angle of the point (b, a), in (−π, π].
///
/// # Example
/// ```
/// use cupola::ops;
/// let angle = ops::arctan2(1.0, 1.0)?.item::<f32>()?;
/// assert!((angle - std::f32::consts::FRAC_PI_4).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn arctan2<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    cast_for("arctan2", a.into(), b.into(), |a, b| binary_inexact(Binary::Atan2, a, b))
}

/// ln(eᵃ + eᵇ), without overflow.
///
/// # Example
/// ```
/// use cupola::ops;
/// let y = ops::logaddexp(1000.0, 1000.0)?.item::<f32>()?;
/// assert!((y - 1000.6931).abs() < 1e-3);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn logaddexp<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    cast_for("logaddexp", a.into(), b.into(), |a, b| binary_inexact(Binary::LogAddExp, a, b))
}

/// The bits set in both; on bool, logical and.
///
/// # Errors
/// Where the operands do not promote to an integer type or bool.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[6, 5], [2])?;
/// assert_eq!(ops::bitwise_and(&x, 3)?.to_vec::<i32>()?, [2, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn bitwise_and<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    of_bits(Binary::BitAnd, a.into(), b.into())
}

/// The bits set in either; on bool, logical or.
///
/// # Errors
/// Where the operands do not promote to an integer type or bool.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[6, 5], [2])?;
/// assert_eq!(ops::bitwise_or(&x, 3)?.to_vec::<i32>()?, [7, 7]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn bitwise_or<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    of_bits(Binary::BitOr, a.into(), b.into())
}

/// The bits set in one; on bool, logical exclusive or.
///
/// # Errors
/// Where the operands do not promote to an integer type or bool.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[6, 5], [2])?;
/// assert_eq!(ops::bitwise_xor(&x, 3)?.to_vec::<i32>()?, [5, 6]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn bitwise_xor<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    of_bits(Binary::BitXor, a.into(), b.into())
}

/// a·2ᵇ in the integer's width; 0 from the width on.
///
/// # Dtypes
/// Two bools shift as `uint8`; floats are an error.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 3], [2])?;
/// assert_eq!(ops::left_shift(&x, 2)?.to_vec::<i32>()?, [4, 12]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn left_shift<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    of_bits(Binary::ShiftLeft, a.into(), b.into())
}

/// ⌊a/2ᵇ⌋; from the width on 0, or −1 for negative a.
///
/// # Dtypes
/// Two bools shift as `uint8`; floats are an error.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-8, 9], [2])?;
/// assert_eq!(ops::right_shift(&x, 2)?.to_vec::<i32>()?, [-2, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn right_shift<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    of_bits(Binary::ShiftRight, a.into(), b.into())
}

/// Whether both are true; numbers are true where they are not 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 2], [2])?;
/// assert_eq!(ops::logical_and(&x, true)?.to_vec::<bool>()?, [false, true]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn logical_and<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    meet(Binary::BitAnd, DType::Bool, a.into(), b.into())
}

/// Whether either is true; numbers are true where they are not 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 2], [2])?;
/// assert_eq!(ops::logical_or(&x, true)?.to_vec::<bool>()?, [true, true]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn logical_or<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    meet(Binary::BitOr, DType::Bool, a.into(), b.into())
}

/// Whether one of them is true; numbers are true where they are not 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 2], [2])?;
/// assert_eq!(ops::logical_xor(&x, true)?.to_vec::<bool>()?, [true, false]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn logical_xor<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    meet(Binary::BitXor, DType::Bool, a.into(), b.into())
}

/// `x` limited to `[low, high]`; `()` is no limit.
///
/// # Dtypes
/// All three promote.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-2.0f32, 0.5, 2.0], [3])?;
/// assert_eq!(ops::clip(&x, 0, 1)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
/// assert_eq!(ops::clip(&x, (), 1)?.to_vec::<f32>()?, [-2.0, 0.5, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn clip<'a, 'b>(
    x: &Array,
    low: impl Into<Limit<'a>>,
    high: impl Into<Limit<'b>>,
) -> Result<Array> {
    let mut out = x.clone();
    if let Some(low) = low.into().0 {
        out = binary(Binary::Maximum, (&out).into(), low)?;
    }
    if let Some(high) = high.into().0 {
        out = binary(Binary::Minimum, (&out).into(), high)?;
    }
    Ok(out)
}

/// A limit of [`clip`]: an operand, or `()` for none.
pub struct Limit<'a>(Option<Operand<'a>>);

impl<'a, T: Into<Operand<'a>>> From<T> for Limit<'a> {
    fn from(value: T) -> Self {
        Limit(Some(value.into()))
    }
}

impl From<()> for Limit<'_> {
    fn from((): ()) -> Self {
        Limit(None)
    }
}
