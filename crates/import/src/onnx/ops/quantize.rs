//! Integers and small floats that stand for numbers.

use super::super::minifloat;
use super::cast::{cast, rounding};
use super::prelude::*;
use crate::lowering::movement::part;

/// Scales or zero points in the shape that meets `x`: one for all, one for each place of an axis, or
/// one for each block along it.
fn spread(values: &Array, x: &Array, axis: i64, block: usize) -> Made {
    if values.rank() == 0 || values.size() == 1 && block == 0 {
        return Ok(ops::reshape(values, ())?);
    }
    let axis = node::axis(axis, x.rank())?;
    if block > 0 {
        if values.rank() != x.rank() {
            return Err(Fault::invalid(format!("scales {} for {}", values.shape(), x.shape())));
        }
        let repeated = ops::repeat(values, block, axis)?;
        if repeated.shape()[axis] < x.shape()[axis] {
            return Err(Fault::invalid(format!(
                "blocks of {block}: scales {} for {}",
                values.shape(),
                x.shape()
            )));
        }
        return part(&repeated, axis, 0, x.shape()[axis]);
    }
    if values.rank() != 1 {
        return Ok(values.clone());
    }
    let mut sizes = vec![1; x.rank()];
    sizes[axis] = values.size();
    Ok(ops::reshape(values, sizes)?)
}

fn block_size(n: &Node<'_>) -> Result<usize, Fault> {
    let block = node::count(n.int("block_size", 0)?)?;
    match block <= 1 << 30 {
        true => Ok(block),
        false => Err(Fault::invalid(format!("a block of {block}"))),
    }
}

/// The dtype in which a scale divides and multiplies.
fn computed(dtype: DType) -> DType {
    if dtype == DType::F64 { dtype } else { DType::F32 }
}

fn quantize_linear(n: &Node<'_>) -> Outcome {
    let (x, scale) = (n.x(0)?, n.x(1)?);
    let (axis, block) = (n.int("axis", 1)?, block_size(n)?);
    let zero = n.maybe_tensor(2)?;
    let to = match (zero, n.element("output_dtype")?) {
        (Some(zero), _) => zero.element,
        (None, Some(element)) => element,
        (None, None) => Element::Uint8,
    };
    // The division rounds as the node says, or as the scale's type does.
    let precision = n.element("precision")?.map(Element::dtype);
    let wide = match precision {
        Some(dtype) => dtype,
        None if x.dtype().is_integer() => DType::F32,
        None => computed(x.dtype()),
    };
    let scale = ops::astype(&spread(scale, x, axis, block)?, wide)?;
    let y = ops::divide(&ops::astype(x, wide)?, &scale)?;
    let y = ops::astype(&y, computed(wide))?;
    let zero = match zero {
        Some(zero) => Some(ops::astype(&spread(&zero.array, x, axis, block)?, y.dtype())?),
        None => None,
    };
    let moved = |y: Array| match &zero {
        Some(zero) => ops::add(&y, zero),
        None => Ok(y),
    };
    if minifloat::values(to).is_some() {
        let tensor = Tensor::new(moved(y)?, Element::of(computed(wide)))?;
        return Ok(vec![cast(&tensor, to, rounding(n)?)?.into()]);
    }
    let y = moved(ops::round(&y, 0)?)?;
    Ok(vec![saturated(&y, to)?.into()])
}

/// Rounded numbers as integers, those out of range as the last in it.
fn saturated(y: &Array, to: Element) -> Result<Tensor, Fault> {
    let Some((least, most)) = to.range() else {
        return Err(Fault::invalid(format!("{to} is no type to quantize to")));
    };
    let y = ops::minimum(&ops::maximum(y, least)?, most)?;
    Tensor::new(ops::astype(&y, to.dtype())?, to)
}

fn dequantize_linear(n: &Node<'_>) -> Outcome {
    let (x, scale) = (n.x(0)?, n.x(1)?);
    let (axis, block) = (n.int("axis", 1)?, block_size(n)?);
    let to = n.element("output_dtype")?.unwrap_or(n.tensor(1)?.element);
    let wide = if x.dtype() == DType::I32 { DType::F64 } else { computed(scale.dtype()) };
    let mut y = ops::astype(x, wide)?;
    if let Some(zero) = n.maybe(2)? {
        y = ops::subtract(&y, &ops::astype(&spread(zero, x, axis, block)?, wide)?)?;
    }
    let y = ops::multiply(&y, &ops::astype(&spread(scale, x, axis, block)?, wide)?)?;
    Ok(vec![Tensor::new(ops::astype(&y, to.dtype())?, to)?.into()])
}

fn dynamic_quantize(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let most = ops::maximum(&ops::max(x, (), false)?, 0)?;
    let least = ops::minimum(&ops::min(x, (), false)?, 0)?;
    let scale = ops::divide(&ops::subtract(&most, &least)?, 255)?;
    let scale = ops::where_(&ops::equal(&scale, 0)?, 1, &scale)?;
    let zero = ops::round(&ops::divide(&ops::negative(&least)?, &scale)?, 0)?;
    let zero = saturated(&zero, Element::Uint8)?;
    let y = ops::round(&ops::divide(x, &scale)?, 0)?;
    let y = ops::add(&y, &ops::astype(&zero.array, DType::F32)?)?;
    Ok(vec![saturated(&y, Element::Uint8)?.into(), scale.into(), zero.into()])
}

/// Integers less their zero point, in a float that holds their products and sums exactly.
fn centred(n: &Node<'_>, x: usize, zero: usize, place: impl Fn(&Array) -> Made) -> Made {
    let wide = ops::astype(n.x(x)?, DType::F64)?;
    match n.maybe(zero)? {
        Some(zero) => Ok(ops::subtract(&wide, &place(&ops::astype(zero, DType::F64)?)?)?),
        None => Ok(wide),
    }
}

/// A zero point of one number, or one for each row of a matrix on the left.
fn rows(zero: &Array) -> Made {
    match zero.rank() {
        1 if zero.size() > 1 => Ok(ops::expand_dims(zero, 1)?),
        1 => Ok(ops::reshape(zero, ())?),
        _ => Ok(zero.clone()),
    }
}

/// A zero point of one number, or one for each column.
fn columns(zero: &Array) -> Made {
    match zero.size() {
        1 => Ok(ops::reshape(zero, ())?),
        _ => Ok(zero.clone()),
    }
}

fn matmul_integer(n: &Node<'_>) -> Outcome {
    let (a, b) = (centred(n, 0, 2, rows)?, centred(n, 1, 3, columns)?);
    one(ops::astype(&ops::matmul(&a, &b)?, DType::I32)?)
}

/// Exact sums, scaled and moved to quantized numbers.
fn requantized(total: &Array, scale: &Array, zero: &Tensor) -> Result<Tensor, Fault> {
    let y = ops::round(&ops::multiply(total, scale)?, 0)?;
    let zero_point = ops::reshape(&ops::astype(&zero.array, DType::F64)?, ())?;
    saturated(&ops::add(&y, &zero_point)?, zero.element)
}

fn number(x: &Array) -> Made {
    Ok(ops::astype(x, DType::F64)?)
}

fn qlinear_matmul(n: &Node<'_>) -> Outcome {
    let (a, b) = (centred(n, 0, 2, rows)?, centred(n, 3, 5, columns)?);
    let scale = ops::multiply(&rows(&number(n.x(1)?)?)?, &columns(&number(n.x(4)?)?)?)?;
    let scale = ops::divide(&scale, &ops::reshape(&number(n.x(6)?)?, ())?)?;
    Ok(vec![requantized(&ops::matmul(&a, &b)?, &scale, n.tensor(7)?)?.into()])
}

/// One number for all, or one for each kernel of a convolution.
fn kernels(values: &Array, rank: usize, axis: usize) -> Made {
    if values.size() == 1 {
        return Ok(ops::reshape(values, ())?);
    }
    let mut sizes = vec![1; rank];
    sizes[axis] = values.size();
    Ok(ops::reshape(values, sizes)?)
}

fn conv_integer(n: &Node<'_>) -> Outcome {
    let rank = n.x(1)?.rank();
    let x = centred(n, 0, 2, |zero| Ok(ops::reshape(zero, ())?))?;
    let w = centred(n, 1, 3, |zero| kernels(zero, rank, 0))?;
    one(ops::astype(&super::convolution::conv_of(n, &x, &w)?, DType::I32)?)
}

fn qlinear_conv(n: &Node<'_>) -> Outcome {
    let rank = n.x(3)?.rank();
    let x = centred(n, 0, 2, |zero| Ok(ops::reshape(zero, ())?))?;
    let w = centred(n, 3, 5, |zero| kernels(zero, rank, 0))?;
    let mut total = super::convolution::conv_of(n, &x, &w)?;
    if let Some(bias) = n.maybe(8)? {
        total = ops::add(&total, &kernels(&number(bias)?, rank, 1)?)?;
    }
    let scale = kernels(&number(n.x(4)?)?, rank, 1)?;
    let scale = ops::multiply(&scale, &ops::reshape(&number(n.x(1)?)?, ())?)?;
    let scale = ops::divide(&scale, &ops::reshape(&number(n.x(6)?)?, ())?)?;
    Ok(vec![requantized(&total, &scale, n.tensor(7)?)?.into()])
}

pub const OPS: &[Entry] = &[
    ("ConvInteger", 10, conv_integer),
    ("DequantizeLinear", 10, dequantize_linear),
    ("DynamicQuantizeLinear", 11, dynamic_quantize),
    ("MatMulInteger", 10, matmul_integer),
    ("QLinearConv", 10, qlinear_conv),
    ("QLinearMatMul", 10, qlinear_matmul),
    ("QuantizeLinear", 10, quantize_linear),
];
