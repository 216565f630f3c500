//! Window functions, by the formulas of NumPy: A. V. Oppenheim, R. W. Schafer, *Discrete-time signal
//! processing*, chapter 7.

use std::f64::consts::PI;

use super::{abs, add, cos, divide, full, iota, multiply, ones, subtract};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;

/// How far along the window each of `size` points is: −1 at the first, 1 at the last.
fn places(size: usize) -> Result<Array> {
    let at = subtract(&multiply(&iota(size, 0, DType::F32)?, 2)?, size as f64 - 1.0)?;
    divide(&at, size as f64 - 1.0)
}

/// Σ terms[k]·cos(kπt) at the places t of the window's points, which gives both halves the same bits.
fn cosines(size: usize, terms: &[f64]) -> Result<Array> {
    if size <= 1 {
        return ones(size, DType::F32);
    }
    let t = abs(&places(size)?)?;
    // The smallest term first, for less rounding.
    let mut out = full(size, 0, DType::F32)?;
    for (k, &term) in terms.iter().enumerate().skip(1).rev() {
        out = add(&out, &multiply(&cos(&multiply(&t, k as f64 * PI)?)?, term)?)?;
    }
    add(&out, terms[0])
}

/// The Bartlett window of `size` points, a triangle: 1 − |t| for t from −1 to 1, as `float32`.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::bartlett(5)?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 0.5, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn bartlett(size: usize) -> Result<Array> {
    if size <= 1 {
        return ones(size, DType::F32);
    }
    subtract(1, &abs(&places(size)?)?)
}

/// The Hann window of `size` points: 0.5 + 0.5·cos πt for t from −1 to 1, as `float32`.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::hanning(3)?.to_vec::<f32>()?, [0.0, 1.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn hanning(size: usize) -> Result<Array> {
    cosines(size, &[0.5, 0.5])
}

/// The Hamming window of `size` points: 0.54 + 0.46·cos πt for t from −1 to 1, as `float32`.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::hamming(3)?.to_vec::<f32>()?[1], 1.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn hamming(size: usize) -> Result<Array> {
    cosines(size, &[0.54, 0.46])
}

/// The Blackman window of `size` points: 0.42 + 0.5·cos πt + 0.08·cos 2πt for t from −1 to 1, as
/// `float32`.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::blackman(3)?.to_vec::<f32>()?[1], 1.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn blackman(size: usize) -> Result<Array> {
    cosines(size, &[0.42, 0.5, 0.08])
}
