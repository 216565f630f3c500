//! Exponentials over axes, without overflow.
//!
//! The largest element is taken off first. It is a constant to derivatives: the result does not
//! depend on it.

use smallvec::SmallVec;

use super::operand::{Axes, inexact, wide, widened, widened_as_one};
use super::reduce::reduce;
use super::{add, complex, divide, exp, isfinite, log, stop_gradient, subtract, where_};
use crate::array::Array;
use crate::autocast;
use crate::error::{Error, Result};
use crate::prim::ReduceKind;
use crate::shape::Dims;

/// The largest element over axes, with the axes kept; an error for nothing.
fn largest(op: &'static str, x: &Array, axes: &Dims) -> Result<Array> {
    if axes.iter().any(|&a| x.aval().shape[a] == 0) {
        return Err(Error::shape(op, format!("has no value for the empty axes of {}", x.aval())));
    }
    stop_gradient(&reduce(ReduceKind::Max, x, axes.clone(), true)?)
}

/// The axes sorted; of a number without axes none can be named.
fn sorted(op: &'static str, x: &Array, axes: impl Into<Axes>) -> Result<Dims> {
    let axes = axes.into().sorted(op, x.rank());
    axes.map_err(|error| match x.rank() {
        0 => Error::shape(op, "an array of 0 axes has none to name"),
        _ => error,
    })
}

/// Axes as parameters of what is recorded as one.
fn words(axes: &Dims) -> SmallVec<[u64; 4]> {
    axes.iter().map(|&axis| axis as u64).collect()
}

/// eˣ over the sum of eˣ along `axes`.
///
/// # Dtypes
/// Integers and bool are taken as `float32`; half types are computed in `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1000.0f32, 1000.0], [2])?;
/// assert_eq!(ops::softmax(&x, -1)?.to_vec::<f32>()?, [0.5, 0.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn softmax(x: &Array, axes: impl Into<Axes>) -> Result<Array> {
    autocast::apply("softmax", [x], |[x]| {
        let axes = sorted("softmax", x, axes)?;
        if x.is_empty() {
            return inexact(x);
        }
        widened_as_one("softmax", &words(&axes), x, |x| {
            let weights = exp(&subtract(x, &largest("softmax", x, &axes)?)?)?;
            divide(&weights, &reduce(ReduceKind::Sum, &weights, axes, true)?)
        })
    })
}

/// The logarithm of [`softmax`], accurate where that is near 0.
///
/// # Dtypes
/// As [`softmax`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0.0f32, 1000.0], [2])?;
/// assert_eq!(ops::log_softmax(&x, -1)?.to_vec::<f32>()?, [-1000.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn log_softmax(x: &Array, axes: impl Into<Axes>) -> Result<Array> {
    autocast::apply("log_softmax", [x], |[x]| {
        let axes = axes.into().sorted("log_softmax", x.rank())?;
        if x.is_empty() {
            return inexact(x);
        }
        widened_as_one("log_softmax", &words(&axes), x, |x| {
            let shifted = subtract(x, &largest("log_softmax", x, &axes)?)?;
            subtract(&shifted, &log(&reduce(ReduceKind::Sum, &exp(&shifted)?, axes, true)?)?)
        })
    })
}

/// ln Σ eˣ over `axes`; −∞ where every element is.
///
/// # Dtypes
/// As [`softmax`].
///
/// # Errors
/// Where an axis is empty.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1000.0f32, 1000.0], [2])?;
/// assert!((ops::logsumexp(&x, (), false)?.item::<f32>()? - 1000.6931).abs() < 1e-3);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn logsumexp(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    autocast::apply("logsumexp", [x], |[x]| {
        let axes = sorted("logsumexp", x, axes)?;
        let out = widened(x, |x| {
            let largest = largest("logsumexp", x, &axes)?;
            // −∞ − −∞ is NaN: nothing is taken off a row of −∞, or of one that holds ∞.
            let shift = where_(&isfinite(&largest)?, &largest, 0)?;
            let total = reduce(ReduceKind::Sum, &exp(&subtract(x, &shift)?)?, axes.clone(), true)?;
            let out = add(&log(&total)?, &shift)?;
            // What is infinite has its own angle.
            match x.dtype().is_complex() {
                true => where_(&complex::is_endless(&largest)?, &largest, &out),
                false => Ok(out),
            }
        })?;
        if keepdims { Ok(out) } else { super::squeeze_axes(&out, axes) }
    })
}

/// For each row of logits, over the last axis, the negative logarithm of the softmax at its target.
///
/// # Shapes
/// `targets` have the shape of the logits without the last axis, and so has the result.
///
/// # Dtypes
/// Gives `float32`, or `float64` for such logits; half types are computed in `float32`.
///
/// # Errors
/// Where the logits are not floats, the targets not integers or of another shape; when it runs where
/// a target is out of range.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let logits = Array::from_slice(&[0.0f32, 0.0, 1000.0, 0.0], [2, 2])?;
/// let targets = Array::from_slice(&[1, 0], [2])?;
/// let loss = ops::cross_entropy(&logits, &targets)?.to_vec::<f32>()?;
/// assert!((loss[0] - 2f32.ln()).abs() < 1e-6 && loss[1] == 0.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cross_entropy(logits: &Array, targets: &Array) -> Result<Array> {
    let op = "cross_entropy";
    if !logits.dtype().is_float() {
        return Err(Error::dtype(op, format!("logits are floats, not {}", logits.aval())));
    }
    super::gather::expect_integers(op, targets)?;
    let rows = logits.rank().checked_sub(1).map(|last| &logits.aval().shape[..last]);
    if rows != Some(&targets.aval().shape[..]) {
        return Err(Error::shape(
            op,
            format!("targets {} are not one for each row of {}", targets.aval(), logits.aval()),
        ));
    }
    let last = targets.rank();
    let wide = wide(logits)?;
    let at = super::expand_dims(targets, -1)?;
    let picked = super::squeeze(&super::take_along_axis(&wide, &at, last)?, -1)?;
    subtract(&logsumexp(&wide, last, false)?, &picked)
}
