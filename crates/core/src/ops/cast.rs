//! Another dtype for the same values.

use super::operand::{Operand, cast, common_dtype};
use crate::array::Array;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::prim::Bitcast;

/// Converts each element to `dtype`: to bool by ≠ 0, between integers by wrapping, from float to
/// integer towards zero and saturating (NaN gives 0), from complex by its real part.
///
/// A negative float becomes an unsigned integer by way of the signed one, which wraps, as in MLX and
/// NumPy on most machines: −1.0 is the largest one.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops};
/// let x = Array::from_slice(&[-1.5f32, 0.5, 300.0], [3])?;
/// assert_eq!(ops::astype(&x, DType::U8)?.to_vec::<u8>()?, [255, 0, 255]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn astype(x: &Array, dtype: DType) -> Result<Array> {
    cast(x, dtype)
}

/// The bytes of `x`, in the machine's order, as elements of another dtype.
///
/// # Shapes
/// The last axis grows or shrinks where the dtypes differ in size.
///
/// # Dtypes
/// Bool is read and written as `uint8`, and true for any byte but 0.
///
/// # Errors
/// Where the bytes of the last axis do not divide into elements, or there is no axis.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops};
/// let x = Array::from_slice(&[1.0f32, -0.0], [2])?;
/// assert_eq!(ops::view(&x, DType::U32)?.to_vec::<u32>()?, [0x3f80_0000, 0x8000_0000]);
/// assert_eq!(ops::view(&x, DType::F64)?.size(), 1);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn view(x: &Array, dtype: DType) -> Result<Array> {
    let bytes = |dtype: DType| if dtype == DType::Bool { DType::U8 } else { dtype };
    let from = cast(x, bytes(x.dtype()))?;
    if from.dtype() == bytes(dtype) {
        return cast(&from, dtype);
    }
    cast(&Array::apply(Bitcast { to: bytes(dtype) }, &[&from])?, dtype)
}

/// The dtype that operands meet in, as every function of several operands promotes them.
///
/// # Errors
/// Where there are none.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops};
/// let x = Array::scalar(half::f16::ONE);
/// assert_eq!(ops::result_type(&[(&x).into(), 2.5.into()])?, DType::F16);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn result_type(operands: &[Operand<'_>]) -> Result<DType> {
    if operands.is_empty() {
        return Err(Error::argument("result_type", "needs at least one operand"));
    }
    Ok(common_dtype(operands))
}

/// Whether promotion takes `from` to `to`.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert!(ops::can_cast(DType::I32, DType::F16) && !ops::can_cast(DType::F32, DType::F16));
/// ```
pub fn can_cast(from: DType, to: DType) -> bool {
    from.promote(to) == to
}

/// Whether a dtype is of a kind, as the array API standard names kinds: "bool", "signed integer",
/// "unsigned integer", "integral", "real floating", "complex floating" or "numeric".
///
/// # Errors
/// For any other kind.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert!(ops::isdtype(DType::BF16, "real floating")?);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn isdtype(dtype: DType, kind: &str) -> Result<bool> {
    Ok(match kind {
        "bool" => dtype == DType::Bool,
        "signed integer" => dtype.is_signed(),
        "unsigned integer" => dtype.is_integer() && !dtype.is_signed(),
        "integral" => dtype.is_integer(),
        "real floating" => dtype.is_float(),
        "complex floating" => dtype.kind() == Kind::Complex,
        "numeric" => dtype != DType::Bool,
        _ => return Err(Error::argument("isdtype", format!("'{kind}' is not a kind of dtypes"))),
    })
}
