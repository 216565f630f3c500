//! Numbers from one up to another.

use cupola_core::{DType, ops};

use super::Made;
use crate::error::Fault;

/// So many numbers as there are steps.
fn count(steps: f64) -> Result<usize, Fault> {
    match steps <= (1u64 << 36) as f64 {
        true => Ok(steps.max(0.0) as usize),
        false => Err(Fault::invalid(format!("a range of {steps} numbers is too long"))),
    }
}

/// Integers from `start` up to but without `stop`, `step` apart.
pub fn integers(start: i64, stop: i64, step: i64, dtype: DType) -> Made {
    if step == 0 {
        return Err(Fault::invalid("the step is 0"));
    }
    let span = i128::from(stop) - i128::from(start);
    let steps = span / i128::from(step)
        + i128::from(span % i128::from(step) != 0 && (span < 0) == (step < 0));
    let places = ops::arange_in(0, count(steps as f64)?, 1, DType::I64)?;
    let made = ops::add(&ops::multiply(&places, step)?, start)?;
    Ok(ops::astype(&made, dtype)?)
}

/// Floats from `start` up to but without `stop`, `step` apart.
pub fn floats(start: f64, stop: f64, step: f64, dtype: DType) -> Made {
    let steps = ((stop - start) / step).ceil();
    if !steps.is_finite() {
        return Err(Fault::invalid(format!("a range from {start} to {stop} by {step}")));
    }
    let places = ops::arange_in(0, count(steps)?, 1, DType::I64)?;
    let places = ops::astype(&places, dtype.accumulator())?;
    let made = ops::add(&ops::multiply(&places, step)?, start)?;
    Ok(ops::astype(&made, dtype)?)
}
