//! Functions of complex numbers that are not primitives.

use super::{abs, divide, equal, exp, log, logical_and, multiply, where_};
use crate::array::Array;
use crate::error::Result;

/// z/|z|, and 0 of 0.
pub(super) fn sign(z: &Array) -> Result<Array> {
    let size = abs(z)?;
    where_(&equal(&size, 0)?, 0, &divide(z, &size)?)
}

/// aᵇ = e^(b·ln a), with 0⁰ = 1.
pub(super) fn power(a: &Array, b: &Array) -> Result<Array> {
    let general = exp(&multiply(b, &log(a)?)?)?;
    let base_is_zero = equal(a, 0)?;
    let out = where_(&base_is_zero, 0, &general)?;
    where_(&logical_and(&base_is_zero, &equal(b, 0)?)?, 1, &out)
}
