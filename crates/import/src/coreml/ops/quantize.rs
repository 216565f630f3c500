//! Integers that stand for numbers.

use super::prelude::*;

/// Scales or zero points, one for all or one for each place of an axis, in the shape that meets `x`.
pub fn along(values: &Array, x: &Array, axis: Option<i64>) -> Made {
    if values.rank() == 0 {
        return Ok(values.clone());
    }
    let Some(axis) = axis else {
        return Err(Fault::invalid(format!("{} without an axis", values.shape())));
    };
    let axis = numbers::axis(axis, x.rank())?;
    if values.rank() != 1 || values.size() != x.shape()[axis] {
        return Err(Fault::invalid(format!(
            "{} along axis {axis} of {}",
            values.shape(),
            x.shape()
        )));
    }
    let mut sizes = vec![1; x.rank()];
    sizes[axis] = values.size();
    Ok(ops::reshape(values, sizes)?)
}

fn quantize(n: &Node<'_>) -> Outcome {
    let (x, axis) = (n.x("input")?, n.maybe_int("axis")?);
    let to = n.element("output_dtype")?;
    let to = to.ok_or_else(|| Fault::invalid("the argument 'output_dtype' is missing"))?;
    let Some((least, most)) = to.range() else {
        return Err(Fault::invalid(format!("{to} is no type to quantize to")));
    };
    let wide = x.dtype().accumulator();
    let scale = ops::astype(&along(n.x("scale")?, x, axis)?, wide)?;
    let mut y = ops::round(&ops::divide(&ops::astype(x, wide)?, &scale)?, 0)?;
    if let Some(zero) = n.maybe("zero_point")? {
        y = ops::add(&y, &ops::astype(&along(zero, x, axis)?, wide)?)?;
    }
    let y = ops::minimum(&ops::maximum(&y, least)?, most)?;
    one(ops::astype(&y, to.dtype)?)
}

/// (x − zero point) times the scale, in the scale's dtype.
pub fn dequantized(x: &Array, scale: &Array, zero: Option<&Array>) -> Made {
    let wide = scale.dtype().accumulator();
    let mut y = ops::astype(x, wide)?;
    if let Some(zero) = zero {
        y = ops::subtract(&y, &ops::astype(zero, wide)?)?;
    }
    let y = ops::multiply(&y, &ops::astype(scale, wide)?)?;
    Ok(ops::astype(&y, scale.dtype())?)
}

fn dequantize(n: &Node<'_>) -> Outcome {
    let (x, axis) = (n.x("input")?, n.maybe_int("axis")?);
    let zero = n.maybe("zero_point")?.map(|zero| along(zero, x, axis)).transpose()?;
    one(dequantized(x, &along(n.x("scale")?, x, axis)?, zero.as_ref())?)
}

pub const OPS: &[Entry] = &[("dequantize", dequantize), ("quantize", quantize)];
