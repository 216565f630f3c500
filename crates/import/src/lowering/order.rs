//! The order of elements.

use cupola_core::{Array, DType, ops};

use super::Made;

/// The places of the elements along an axis in order, of equal ones the first first.
pub fn places(x: &Array, axis: usize, largest_first: bool) -> Made {
    if !largest_first {
        return Ok(ops::astype(&ops::argsort(x, axis)?, DType::I64)?);
    }
    let backwards = ops::argsort(&ops::flip(x, axis)?, axis)?;
    let last = ops::full((), x.shape()[axis].saturating_sub(1) as i64, DType::I64)?;
    Ok(ops::flip(&ops::subtract(&last, &ops::astype(&backwards, DType::I64)?)?, axis)?)
}
