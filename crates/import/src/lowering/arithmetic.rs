//! Arithmetic.

use cupola_core::{Array, ops};

use super::Made;

/// a/b; of integers what is before the point.
pub fn quotient(a: &Array, b: &Array) -> Made {
    if !a.dtype().is_integer() {
        return Ok(ops::divide(a, b)?);
    }
    let floor = ops::floor_divide(a, b)?;
    if !a.dtype().is_signed() {
        return Ok(floor);
    }
    let inexact = ops::not_equal(&ops::remainder(a, b)?, 0)?;
    let negative = ops::logical_xor(&ops::less(a, 0)?, &ops::less(b, 0)?)?;
    let up = ops::logical_and(&inexact, &negative)?;
    Ok(ops::where_(&up, &ops::add(&floor, 1)?, &floor)?)
}
