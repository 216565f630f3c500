//! From one element type to another.

use super::super::minifloat::{self, Direction, Rounding};
use super::prelude::*;

/// Integers cut to the bits of a packed type, which lies in 8 bits.
fn wrapped(x: &Array, element: Element) -> Made {
    let (bits, dtype) = (element.bits() as u32, element.dtype());
    let mask = (1i32 << bits) - 1;
    let low = ops::bitwise_and(&ops::astype(x, DType::I32)?, mask)?;
    let sign = if dtype.is_signed() { 1i32 << (bits - 1) } else { 0 };
    let value = ops::subtract(&ops::bitwise_xor(&low, sign)?, sign)?;
    Ok(ops::astype(&value, dtype)?)
}

/// A tensor as one of another element type.
pub fn cast(t: &Tensor, to: Element, rounding: Rounding) -> Result<Tensor, Fault> {
    if t.element == to {
        return Ok(t.clone());
    }
    let x = &t.array;
    let array = if minifloat::values(to).is_some() {
        minifloat::round_to(x, to, rounding)?
    } else if to.is_packed_integer() {
        wrapped(x, to)?
    } else {
        ops::astype(x, to.dtype())?
    };
    Tensor::new(array, to)
}

/// How a node says that it rounds.
pub fn rounding(n: &Node<'_>) -> Result<Rounding, Fault> {
    let direction = match n.text("round_mode", "up")? {
        "up" => Direction::Up,
        "down" => Direction::Down,
        "nearest" => Direction::Nearest,
        other => return Err(Fault::invalid(format!("the round mode '{other}' is not known"))),
    };
    Ok(Rounding { saturate: n.flag("saturate", true)?, direction })
}

/// The element types that files of version 1 name.
fn named(name: &str) -> Result<Element, Fault> {
    let found = Element::ALL.iter().find(|e| e.name() == name);
    found.copied().ok_or_else(|| Fault::invalid(format!("'{name}' is no element type")))
}

fn cast_node(n: &Node<'_>) -> Outcome {
    let to = match n.version() {
        6.. => n.element("to")?.ok_or_else(|| Fault::invalid("the element type is missing"))?,
        _ => named(n.text("to", "")?)?,
    };
    Ok(vec![cast(n.tensor(0)?, to, rounding(n)?)?.into()])
}

fn cast_like(n: &Node<'_>) -> Outcome {
    Ok(vec![cast(n.tensor(0)?, n.tensor(1)?.element, rounding(n)?)?.into()])
}

/// The bits of elements that lie in a wider dtype, which are evaluated.
fn bits_of(t: &Tensor) -> Made {
    if let Some(values) = minifloat::values(t.element) {
        let bits = |v: f32| {
            let same = |w: &f32| w.to_bits() == v.to_bits() || w.is_nan() && v.is_nan();
            values.iter().position(same).unwrap_or(0) as u8
        };
        let bytes: Vec<u8> = t.array.to_vec::<f32>()?.into_iter().map(bits).collect();
        return Ok(Array::from_slice(&bytes, t.array.shape())?);
    }
    match t.element.is_packed_integer() {
        true => Ok(ops::bitwise_and(
            &ops::astype(&t.array, DType::U8)?,
            ((1u16 << t.element.bits()) - 1) as u8,
        )?),
        false => Ok(t.array.clone()),
    }
}

fn bit_cast(n: &Node<'_>) -> Outcome {
    let t = n.tensor(0)?;
    let to = n.element("to")?.ok_or_else(|| Fault::invalid("the element type is missing"))?;
    if to.bits() != t.element.bits() {
        return Err(Fault::invalid(format!("{} has not as many bits as {to}", t.element)));
    }
    let bits = bits_of(t)?;
    let array = if let Some(values) = minifloat::values(to) {
        let table = Array::from_slice(&values, [values.len()])?;
        ops::take(&table, &ops::view(&bits, DType::U8)?, 0)?
    } else if to.is_packed_integer() {
        wrapped(&bits, to)?
    } else if to == Element::Bool {
        ops::astype(&bits, DType::Bool)?
    } else if bits.dtype() == DType::Bool {
        ops::astype(&bits, to.dtype())?
    } else {
        ops::view(&bits, to.dtype())?
    };
    Ok(vec![Tensor::new(array, to)?.into()])
}

pub const OPS: &[Entry] =
    &[("BitCast", 26, bit_cast), ("Cast", 1, cast_node), ("CastLike", 15, cast_like)];
