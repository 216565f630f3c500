//! What goes with discrete Fourier transforms: their frequencies, and spectra moved to the middle.

use super::operand::{Axes, Sizes};
use super::{concatenate, divide, iota, roll, subtract};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The frequencies of a discrete Fourier transform of `size` points `spacing` apart, as `float32`:
/// 0 and up, then the negative ones.
///
/// # Errors
/// Where `size` is 0.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::fftfreq(4, 0.5)?.to_vec::<f32>()?, [0.0, 0.5, -1.0, -0.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fftfreq(size: usize, spacing: f64) -> Result<Array> {
    let half = size / 2;
    let low = frequencies("fftfreq", size, size - half)?;
    let high = subtract(&iota(half, 0, DType::F32)?, half as f64)?;
    divide(&concatenate(&[&low, &high], 0)?, size as f64 * spacing)
}

/// The frequencies, not negative, of a transform of `size` real points `spacing` apart, as `float32`.
///
/// # Errors
/// Where `size` is 0.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::rfftfreq(4, 0.5)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn rfftfreq(size: usize, spacing: f64) -> Result<Array> {
    divide(&frequencies("rfftfreq", size, size / 2 + 1)?, size as f64 * spacing)
}

fn frequencies(op: &'static str, size: usize, count: usize) -> Result<Array> {
    if size == 0 {
        return Err(Error::argument(op, "a transform of 0 points has no frequencies"));
    }
    iota(count, 0, DType::F32)
}

/// Each axis rolled by half its size, so that frequency 0 comes to the middle; `()` for all axes.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 1, 2, -2, -1], [5])?;
/// assert_eq!(ops::fftshift(&x, ())?.to_vec::<i32>()?, [-2, -1, 0, 1, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fftshift(x: &Array, axes: impl Into<Axes>) -> Result<Array> {
    shifted("fftshift", x, axes.into(), |size| size / 2)
}

/// The inverse of [`fftshift`]; they differ on axes of odd size.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-2, -1, 0, 1, 2], [5])?;
/// assert_eq!(ops::ifftshift(&x, ())?.to_vec::<i32>()?, [0, 1, 2, -2, -1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn ifftshift(x: &Array, axes: impl Into<Axes>) -> Result<Array> {
    shifted("ifftshift", x, axes.into(), |size| size - size / 2)
}

fn shifted(op: &'static str, x: &Array, axes: Axes, by: impl Fn(usize) -> usize) -> Result<Array> {
    let axes = axes.sorted(op, x.rank())?;
    let shifts: Vec<usize> = axes.iter().map(|&a| by(x.shape()[a])).collect();
    if shifts.is_empty() {
        return Ok(x.clone());
    }
    roll(x, Sizes::from(shifts), axes)
}
