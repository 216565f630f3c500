//! Exponentials, logarithms, roots, and the functions made of them.
//!
//! Integers and bool are taken as `float32`.

use super::float;
use crate::array::Array;
use crate::error::Result;
use crate::prim::Unary;

/// eˣ.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::exp(&Array::scalar(1.0f32))?.item::<f32>()?;
/// assert!((y - std::f32::consts::E).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn exp(x: &Array) -> Result<Array> {
    float(Unary::Exp, x)
}

/// eˣ − 1, accurate near 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::expm1(&Array::scalar(1e-7f32))?.item::<f32>()?;
/// assert!((y - 1e-7).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn expm1(x: &Array) -> Result<Array> {
    float(Unary::Expm1, x)
}

/// ln x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::log(&Array::scalar(2.0f32))?.item::<f32>()?;
/// assert!((y - std::f32::consts::LN_2).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn log(x: &Array) -> Result<Array> {
    float(Unary::Log, x)
}

/// log₂ x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::log2(&Array::scalar(8.0f32))?.item::<f32>()?;
/// assert!((y - 3.0).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn log2(x: &Array) -> Result<Array> {
    float(Unary::Log2, x)
}

/// log₁₀ x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::log10(&Array::scalar(1000.0f32))?.item::<f32>()?;
/// assert!((y - 3.0).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn log10(x: &Array) -> Result<Array> {
    float(Unary::Log10, x)
}

/// ln(1 + x), accurate near 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::log1p(&Array::scalar(1e-7f32))?.item::<f32>()?;
/// assert!((y - 1e-7).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn log1p(x: &Array) -> Result<Array> {
    float(Unary::Log1p, x)
}

/// √x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::sqrt(&Array::scalar(4.0f32))?.item::<f32>()?;
/// assert!((y - 2.0).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn sqrt(x: &Array) -> Result<Array> {
    float(Unary::Sqrt, x)
}

/// 1/√x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::rsqrt(&Array::scalar(4.0f32))?.item::<f32>()?;
/// assert!((y - 0.5).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn rsqrt(x: &Array) -> Result<Array> {
    float(Unary::Rsqrt, x)
}

/// 1/(1 + e⁻ˣ).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::sigmoid(&Array::scalar(0.0f32))?.item::<f32>()?;
/// assert!((y - 0.5).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn sigmoid(x: &Array) -> Result<Array> {
    float(Unary::Sigmoid, x)
}

/// The error function, 2/√π ∫₀ˣ e^(−t²) dt.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::erf(&Array::scalar(1.0f32))?.item::<f32>()?;
/// assert!((y - 0.8427008).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn erf(x: &Array) -> Result<Array> {
    float(Unary::Erf, x)
}

/// What the error function lacks to 1, 2/√π ∫ₓ^∞ e^(−t²) dt: accurate also where `1 − erf(x)` is not.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::erfc(&Array::scalar(5.0f32))?.item::<f32>()?;
/// assert!((y / 1.5374597e-12 - 1.0).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn erfc(x: &Array) -> Result<Array> {
    float(Unary::Erfc, x)
}

/// The inverse of the error function; ±∞ at ±1 and NaN beyond.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::erfinv(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 0.4769363).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn erfinv(x: &Array) -> Result<Array> {
    float(Unary::ErfInv, x)
}
