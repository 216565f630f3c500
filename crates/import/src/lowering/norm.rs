//! Normalizations.

use cupola_core::{Array, ops};

use super::Made;
use super::movement::part;
use crate::error::Fault;

/// (x − mean)/√(variance + ε).
pub fn standard(x: &Array, mean: &Array, variance: &Array, eps: f64) -> Made {
    let inverse = ops::rsqrt(&ops::add(variance, eps)?)?;
    Ok(ops::multiply(&ops::subtract(x, mean)?, &inverse)?)
}

/// In the dtype that sums are taken in.
pub fn wide(x: &Array) -> Made {
    Ok(ops::astype(x, x.dtype().accumulator())?)
}

/// Normalizes over axes, with the mean and the reciprocal deviation.
pub fn moments(x: &Array, axes: &[usize], eps: f64) -> Result<(Array, Array, Array), Fault> {
    let mean = ops::mean(x, axes, true)?;
    let variance = ops::var(x, axes, true, 0)?;
    let inverse = ops::rsqrt(&ops::add(&variance, eps)?)?;
    let y = ops::multiply(&ops::subtract(x, &mean)?, &inverse)?;
    Ok((y, mean, inverse))
}

/// x by a power of the squares of `size` channels around each: (bias + α/size·Σx²)^β.
pub fn local_response(x: &Array, size: usize, alpha: f64, beta: f64, bias: f64) -> Made {
    let channels = x.shape().get(1).copied().unwrap_or(0);
    if size == 0 || size > channels.saturating_mul(2).saturating_add(1) {
        return Err(Fault::invalid(format!("{size} channels of {}", x.shape())));
    }
    let before = (size - 1) / 2;
    let mut widths = vec![(0, 0); x.rank()];
    widths[1] = (before, size - 1 - before);
    let squares = ops::pad(&ops::square(&wide(x)?)?, &widths[..], 0)?;
    let mut total = part(&squares, 1, 0, channels)?;
    for at in 1..size {
        total = ops::add(&total, &part(&squares, 1, at, at + channels)?)?;
    }
    let scale = ops::add(&ops::multiply(&total, alpha / size as f64)?, bias)?;
    let y = ops::divide(&wide(x)?, &ops::power(&scale, beta)?)?;
    Ok(ops::astype(&y, x.dtype())?)
}
