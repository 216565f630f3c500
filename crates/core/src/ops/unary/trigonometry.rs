//! Trigonometric and hyperbolic functions and their inverses, in radians.
//!
//! Integers and bool are taken as `float32`.

use super::float;
use crate::array::Array;
use crate::error::Result;
use crate::ops::multiply;
use crate::ops::operand::inexact;
use crate::prim::Unary;

/// sin x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::sin(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 0.47942555).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn sin(x: &Array) -> Result<Array> {
    float(Unary::Sin, x)
}

/// cos x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::cos(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 0.87758255).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cos(x: &Array) -> Result<Array> {
    float(Unary::Cos, x)
}

/// tan x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::tan(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 0.5463025).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn tan(x: &Array) -> Result<Array> {
    float(Unary::Tan, x)
}

/// arcsin x; NaN outside [−1, 1].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::arcsin(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 0.5235988).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn arcsin(x: &Array) -> Result<Array> {
    float(Unary::Asin, x)
}

/// arccos x; NaN outside [−1, 1].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::arccos(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 1.0471976).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn arccos(x: &Array) -> Result<Array> {
    float(Unary::Acos, x)
}

/// arctan x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::arctan(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 0.4636476).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn arctan(x: &Array) -> Result<Array> {
    float(Unary::Atan, x)
}

/// sinh x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::sinh(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 0.5210953).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn sinh(x: &Array) -> Result<Array> {
    float(Unary::Sinh, x)
}

/// cosh x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::cosh(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 1.1276259).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cosh(x: &Array) -> Result<Array> {
    float(Unary::Cosh, x)
}

/// tanh x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::tanh(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 0.46211717).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn tanh(x: &Array) -> Result<Array> {
    float(Unary::Tanh, x)
}

/// arsinh x.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::arcsinh(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 0.4812118).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn arcsinh(x: &Array) -> Result<Array> {
    float(Unary::Asinh, x)
}

/// arcosh x; NaN below 1.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::arccosh(&Array::scalar(1.5f32))?.item::<f32>()?;
/// assert!((y - 0.9624237).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn arccosh(x: &Array) -> Result<Array> {
    float(Unary::Acosh, x)
}

/// artanh x; NaN outside [−1, 1].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::arctanh(&Array::scalar(0.5f32))?.item::<f32>()?;
/// assert!((y - 0.54930615).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn arctanh(x: &Array) -> Result<Array> {
    float(Unary::Atanh, x)
}

/// Radians as degrees.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::degrees(&Array::scalar(std::f32::consts::PI))?.item::<f32>()?;
/// assert!((y - 180.0).abs() < 1e-4);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn degrees(x: &Array) -> Result<Array> {
    multiply(&inexact(x)?, 180.0 / std::f64::consts::PI)
}

/// Degrees as radians.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::radians(&Array::scalar(180.0f32))?.item::<f32>()?;
/// assert!((y - std::f32::consts::PI).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn radians(x: &Array) -> Result<Array> {
    multiply(&inexact(x)?, std::f64::consts::PI / 180.0)
}
