//! Another dtype for the same values.

use super::operand::cast;
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;

/// Converts each element to `dtype`: to bool by ≠ 0, from float to integer towards zero and
/// saturating (NaN gives 0), between integers by wrapping, from complex by its real part.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops};
/// let x = Array::from_slice(&[-1.5f32, 0.0, 300.0], [3])?;
/// assert_eq!(ops::astype(&x, DType::U8)?.to_vec::<u8>()?, [0, 0, 255]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn astype(x: &Array, dtype: DType) -> Result<Array> {
    cast(x, dtype)
}
