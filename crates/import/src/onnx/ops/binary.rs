//! Arithmetic of two and more operands.

use super::prelude::*;
use crate::lowering::arithmetic::quotient;

/// Both operands; before version 7 the second says along which axis it lies.
pub fn pair(n: &Node<'_>) -> Result<(Array, Array), Fault> {
    let (a, b) = (n.x(0)?.clone(), n.x(1)?.clone());
    if n.version() >= 7 || !n.flag("broadcast", false)? {
        return Ok((a, b));
    }
    let Some(axis) = n.maybe_int("axis")? else { return Ok((a, b)) };
    let axis = node::axis(axis, a.rank())?;
    let behind = a.rank().saturating_sub(axis + b.rank());
    let mut sizes = b.shape().to_vec();
    sizes.extend(std::iter::repeat_n(1, behind));
    let b = ops::reshape(&b, sizes)?;
    Ok((a, b))
}

macro_rules! binary {
    ($($f:ident => $op:path;)*) => {$(
        fn $f(n: &Node<'_>) -> Outcome {
            let (a, b) = pair(n)?;
            n.like($op(&a, &b)?, 0)
        }
    )*};
}

binary! {
    add => ops::add;
    subtract => ops::subtract;
    multiply => ops::multiply;
    bitwise_and => ops::bitwise_and;
    bitwise_or => ops::bitwise_or;
    bitwise_xor => ops::bitwise_xor;
}

fn divide(n: &Node<'_>) -> Outcome {
    let (a, b) = pair(n)?;
    n.like(quotient(&a, &b)?, 0)
}

fn modulo(n: &Node<'_>) -> Outcome {
    let (a, b) = (n.x(0)?, n.x(1)?);
    let out = match n.flag("fmod", false)? {
        true => ops::fmod(a, b)?,
        false if a.dtype().is_float() => {
            // A zero has the divisor's sign.
            let rest = ops::fmod(a, b)?;
            let wrong = ops::not_equal(&ops::signbit(&rest)?, &ops::signbit(b)?)?;
            let moved = ops::where_(
                &ops::equal(&rest, 0)?,
                &ops::copysign(&rest, b)?,
                &ops::add(&rest, b)?,
            )?;
            ops::where_(&wrong, &moved, &rest)?
        }
        false => ops::remainder(a, b)?,
    };
    n.like(out, 0)
}

fn power(n: &Node<'_>) -> Outcome {
    let (a, b) = pair(n)?;
    let (base, exponent) = (a.dtype(), b.dtype());
    let out = match (base.is_float(), exponent.is_float()) {
        (false, true) => ops::power(&ops::astype(&a, DType::F64)?, &ops::astype(&b, DType::F64)?)?,
        (true, true) if exponent.size() > base.size() => {
            ops::power(&ops::astype(&a, exponent)?, &b)?
        }
        _ => ops::power(&a, &ops::astype(&b, base)?)?,
    };
    n.like(ops::astype(&out, base)?, 0)
}

fn bit_shift(n: &Node<'_>) -> Outcome {
    let (a, b) = (n.x(0)?, n.x(1)?);
    let out = match n.text("direction", "")? {
        "LEFT" => ops::left_shift(a, b)?,
        "RIGHT" => ops::right_shift(a, b)?,
        other => {
            return Err(Fault::invalid(format!("the direction '{other}' is not LEFT or RIGHT")));
        }
    };
    n.like(out, 0)
}

/// The operands joined from the first on.
fn joined(n: &Node<'_>, join: impl Fn(&Array, &Array) -> cupola_core::Result<Array>) -> Made {
    let mut out = n.x(0)?.clone();
    for i in 1..n.count() {
        out = join(&out, n.x(i)?)?;
    }
    Ok(out)
}

fn sum(n: &Node<'_>) -> Outcome {
    n.like(joined(n, |a, b| ops::add(a, b))?, 0)
}

fn mean(n: &Node<'_>) -> Outcome {
    let total = joined(n, |a, b| ops::add(a, b))?;
    n.like(ops::divide(&total, n.count() as f64)?, 0)
}

fn max(n: &Node<'_>) -> Outcome {
    n.like(joined(n, |a, b| ops::maximum(a, b))?, 0)
}

fn min(n: &Node<'_>) -> Outcome {
    n.like(joined(n, |a, b| ops::minimum(a, b))?, 0)
}

fn clip(n: &Node<'_>) -> Outcome {
    let mut out = n.x(0)?.clone();
    if let Some(least) = n.maybe(1)? {
        out = ops::maximum(&out, least)?;
    }
    if let Some(most) = n.maybe(2)? {
        out = ops::minimum(&out, most)?;
    }
    if n.version() < 11 {
        if let Some(least) = n.maybe_float("min")? {
            out = ops::maximum(&out, least)?;
        }
        if let Some(most) = n.maybe_float("max")? {
            out = ops::minimum(&out, most)?;
        }
    }
    n.like(out, 0)
}

pub const OPS: &[Entry] = &[
    ("Add", 1, add),
    ("BitShift", 11, bit_shift),
    ("BitwiseAnd", 18, bitwise_and),
    ("BitwiseOr", 18, bitwise_or),
    ("BitwiseXor", 18, bitwise_xor),
    ("Clip", 1, clip),
    ("Div", 1, divide),
    ("Max", 1, max),
    ("Mean", 1, mean),
    ("Min", 1, min),
    ("Mod", 10, modulo),
    ("Mul", 1, multiply),
    ("Pow", 1, power),
    ("Sub", 1, subtract),
    ("Sum", 1, sum),
];
