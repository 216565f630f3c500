//! Elementwise primitives.
//!
//! Half types are computed in `float32` and rounded, as the graph means it; integers that few operators of
//! the format take, in 64 bits, and wrap.

#![deny(clippy::wildcard_enum_match_arm)]

use std::f64::consts::{FRAC_PI_2, LN_2, LN_10, PI};

use cupola_core::prim::{Binary, Compare, Elementwise, Unary};
use cupola_core::{DType, Result};

use super::writer::{Attr, Val, Writer, unsupported};

/// The dtype that stands for another in elementwise operators and reductions.
pub fn computed(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        DType::U8 | DType::I8 | DType::U16 | DType::I16 | DType::U32 => DType::I64,
        DType::Bool
        | DType::U64
        | DType::I32
        | DType::I64
        | DType::F32
        | DType::F64
        | DType::C32
        | DType::C64 => dtype,
    }
}

pub fn elementwise(w: &mut Writer, op: &Elementwise, args: &[Val], result: DType) -> Result<Val> {
    if args.iter().any(|val| val.dtype.is_complex()) || result.is_complex() {
        return Err(unsupported(format!("'{}' of complex numbers has no operator", op.name())));
    }
    if let Elementwise::Cast(cast) = op {
        return w.cast(&args[0], cast.to);
    }
    if let Elementwise::Select(_) = op {
        let wide = computed(result);
        let (a, b) = (w.cast(&args[1], wide)?, w.cast(&args[2], wide)?);
        let chosen = w.map("Where", &[&args[0], &a, &b], wide);
        return w.cast(&chosen, result);
    }
    let wide =
        args.iter().map(|val| w.cast(val, computed(val.dtype))).collect::<Result<Vec<_>>>()?;
    let found = match op {
        Elementwise::Unary(unary) => self::unary(w, *unary, &wide[0])?,
        Elementwise::Binary(binary) => self::binary(w, *binary, &wide[0], &wide[1], args[0].dtype)?,
        Elementwise::Compare(compare) => self::compare(w, *compare, &wide[0], &wide[1])?,
        Elementwise::Select(_) | Elementwise::Cast(_) => wide[0].clone(),
    };
    w.cast(&found, result)
}

fn unary(w: &mut Writer, op: Unary, x: &Val) -> Result<Val> {
    let dtype = x.dtype;
    let plain = |w: &mut Writer, name: &str| Ok(w.map(name, &[x], dtype));
    match op {
        Unary::Neg => plain(w, "Neg"),
        Unary::Abs => plain(w, "Abs"),
        Unary::Sign => plain(w, "Sign"),
        Unary::Square => Ok(w.map("Mul", &[x, x], dtype)),
        Unary::Floor | Unary::Ceil | Unary::Round if dtype.is_integer() => Ok(x.clone()),
        Unary::Floor => plain(w, "Floor"),
        Unary::Ceil => plain(w, "Ceil"),
        Unary::Round => plain(w, "Round"),
        Unary::Sqrt => plain(w, "Sqrt"),
        Unary::Rsqrt => {
            let root = w.map("Sqrt", &[x], dtype);
            Ok(w.map("Reciprocal", &[&root], dtype))
        }
        Unary::Exp => plain(w, "Exp"),
        Unary::Expm1 => expm1(w, x),
        Unary::Log => plain(w, "Log"),
        Unary::Log2 => log_to(w, x, LN_2),
        Unary::Log10 => log_to(w, x, LN_10),
        Unary::Log1p => log1p(w, x),
        Unary::Sin => plain(w, "Sin"),
        Unary::Cos => plain(w, "Cos"),
        Unary::Tan => plain(w, "Tan"),
        Unary::Asin => plain(w, "Asin"),
        Unary::Acos => plain(w, "Acos"),
        Unary::Atan => plain(w, "Atan"),
        Unary::Sinh => plain(w, "Sinh"),
        Unary::Cosh => plain(w, "Cosh"),
        Unary::Tanh => plain(w, "Tanh"),
        Unary::Asinh => plain(w, "Asinh"),
        Unary::Acosh => plain(w, "Acosh"),
        Unary::Atanh => plain(w, "Atanh"),
        Unary::Sigmoid => plain(w, "Sigmoid"),
        Unary::Erf => plain(w, "Erf"),
        Unary::Erfc => {
            let (one, erf) = (w.scalar(1.0, dtype)?, w.map("Erf", &[x], dtype));
            Ok(w.map("Sub", &[&one, &erf], dtype))
        }
        Unary::Not => plain(w, "Not"),
        Unary::Invert if dtype == DType::Bool => plain(w, "Not"),
        Unary::Invert => {
            // −x − 1, which every version has.
            let (one, minus) = (w.scalar(1, dtype)?, w.map("Neg", &[x], dtype));
            Ok(w.map("Sub", &[&minus, &one], dtype))
        }
        Unary::ErfInv | Unary::Conj | Unary::Real | Unary::Imag => {
            Err(unsupported(format!("'{}' has no operator", op.name())))
        }
    }
}

fn log_to(w: &mut Writer, x: &Val, base: f64) -> Result<Val> {
    let (log, scale) = (w.map("Log", &[x], x.dtype), w.scalar(1.0 / base, x.dtype)?);
    Ok(w.map("Mul", &[&log, &scale], x.dtype))
}

/// eˣ − 1: near 0 by 2t/(1 − t) with t = tanh(x/2), where eˣ − 1 cancels.
fn expm1(w: &mut Writer, x: &Val) -> Result<Val> {
    let dtype = x.dtype;
    let (one, half) = (w.scalar(1.0, dtype)?, w.scalar(0.5, dtype)?);
    let exp = w.map("Exp", &[x], dtype);
    let far = w.map("Sub", &[&exp, &one], dtype);
    let halved = w.map("Mul", &[x, &half], dtype);
    let tanh = w.map("Tanh", &[&halved], dtype);
    let twice = w.map("Add", &[&tanh, &tanh], dtype);
    let rest = w.map("Sub", &[&one, &tanh], dtype);
    let near = w.map("Div", &[&twice, &rest], dtype);
    let size = w.map("Abs", &[x], dtype);
    let is_near = w.map("Less", &[&size, &one], DType::Bool);
    Ok(w.map("Where", &[&is_near, &near, &far], dtype))
}

/// ln(1 + x) as x·ln u/(u − 1) with u = 1 + x rounded, which takes the rounding back (D. Goldberg, *What
/// every computer scientist should know about floating-point arithmetic*, theorem 4).
fn log1p(w: &mut Writer, x: &Val) -> Result<Val> {
    let dtype = x.dtype;
    let one = w.scalar(1.0, dtype)?;
    let u = w.map("Add", &[x, &one], dtype);
    let log = w.map("Log", &[&u], dtype);
    let less = w.map("Sub", &[&u, &one], dtype);
    let ratio = w.map("Div", &[x, &less], dtype);
    let corrected = w.map("Mul", &[&log, &ratio], dtype);
    let is_one = w.map("Equal", &[&u, &one], DType::Bool);
    let is_endless = w.map("Equal", &[&u, x], DType::Bool);
    let near = w.map("Where", &[&is_one, x, &corrected], dtype);
    // From where 1 is lost on, infinity among it.
    Ok(w.map("Where", &[&is_endless, &log, &near], dtype))
}

fn binary(w: &mut Writer, op: Binary, a: &Val, b: &Val, own: DType) -> Result<Val> {
    let dtype = a.dtype;
    let plain = |w: &mut Writer, name: &str| Ok(w.map(name, &[a, b], dtype));
    match op {
        Binary::Add => plain(w, "Add"),
        Binary::Sub => plain(w, "Sub"),
        Binary::Mul => plain(w, "Mul"),
        Binary::Div => plain(w, "Div"),
        Binary::FloorDivide if dtype.is_float() => {
            let ratio = w.map("Div", &[a, b], dtype);
            Ok(w.map("Floor", &[&ratio], dtype))
        }
        Binary::Remainder if dtype.is_float() => float_remainder(w, a, b),
        Binary::FloorDivide | Binary::Remainder => whole_division(w, op, a, b),
        Binary::Power if dtype.is_float() => plain(w, "Pow"),
        Binary::Power => Err(unsupported(format!("'power' of {own} has no operator"))),
        Binary::Maximum | Binary::Minimum if dtype == DType::Bool => {
            plain(w, if op == Binary::Maximum { "Or" } else { "And" })
        }
        Binary::Maximum => plain(w, "Max"),
        Binary::Minimum => plain(w, "Min"),
        Binary::Atan2 => atan2(w, a, b),
        Binary::LogAddExp => logaddexp(w, a, b),
        Binary::BitAnd if dtype == DType::Bool => plain(w, "And"),
        Binary::BitOr if dtype == DType::Bool => plain(w, "Or"),
        Binary::BitXor if dtype == DType::Bool => plain(w, "Xor"),
        Binary::BitAnd | Binary::BitOr | Binary::BitXor if w.opset < 18 => {
            Err(unsupported(format!("'{}' of {own} is of opset 18 and later", op.name())))
        }
        Binary::BitAnd => plain(w, "BitwiseAnd"),
        Binary::BitOr => plain(w, "BitwiseOr"),
        Binary::BitXor => plain(w, "BitwiseXor"),
        Binary::ShiftLeft | Binary::ShiftRight => Err(unsupported(format!(
            "'{}' wraps and ends at the width of {own}, as no operator does",
            op.name()
        ))),
    }
}

/// a − b·⌊a/b⌋ by the remainder that has the sign of a, which is exact.
fn float_remainder(w: &mut Writer, a: &Val, b: &Val) -> Result<Val> {
    let dtype = a.dtype;
    let zero = w.scalar(0.0, dtype)?;
    let rest = w.map_with("Mod", &[a, b], &[Attr::Int("fmod", 1)], dtype);
    let is_none = w.map("Equal", &[&rest, &zero], DType::Bool);
    let (low, below) =
        (w.map("Less", &[&rest, &zero], DType::Bool), w.map("Less", &[b, &zero], DType::Bool));
    let apart = w.map("Xor", &[&low, &below], DType::Bool);
    let is_some = w.map("Not", &[&is_none], DType::Bool);
    let moves = w.map("And", &[&apart, &is_some], DType::Bool);
    let moved = w.map("Add", &[&rest, b], dtype);
    Ok(w.map("Where", &[&moves, &moved, &rest], dtype))
}

/// Division of integers towards −∞ and what it leaves; by 0 both are 0.
fn whole_division(w: &mut Writer, op: Binary, a: &Val, b: &Val) -> Result<Val> {
    let dtype = a.dtype;
    let (zero, one) = (w.scalar(0, dtype)?, w.scalar(1, dtype)?);
    let is_none = w.map("Equal", &[b, &zero], DType::Bool);
    let divisor = w.map("Where", &[&is_none, &one, b], dtype);
    let rest = w.map("Mod", &[a, &divisor], dtype);
    let found = if op == Binary::Remainder {
        rest
    } else {
        let whole = w.map("Sub", &[a, &rest], dtype);
        w.map("Div", &[&whole, &divisor], dtype)
    };
    Ok(w.map("Where", &[&is_none, &zero, &found], dtype))
}

/// The angle of (x, y) by quadrants; signs of zeros are not told.
fn atan2(w: &mut Writer, y: &Val, x: &Val) -> Result<Val> {
    let dtype = y.dtype;
    let zero = w.scalar(0.0, dtype)?;
    let (pi, quarter) = (w.scalar(PI, dtype)?, w.scalar(FRAC_PI_2, dtype)?);
    let minus_quarter = w.scalar(-FRAC_PI_2, dtype)?;
    let ratio = w.map("Div", &[y, x], dtype);
    let angle = w.map("Atan", &[&ratio], dtype);
    let (more, less) = (w.map("Add", &[&angle, &pi], dtype), w.map("Sub", &[&angle, &pi], dtype));
    let below = w.map("Less", &[y, &zero], DType::Bool);
    let left = w.map("Where", &[&below, &less, &more], dtype);
    let above = w.map("Greater", &[y, &zero], DType::Bool);
    let up = w.map("Where", &[&above, &quarter, &zero], dtype);
    let on_axis = w.map("Where", &[&below, &minus_quarter, &up], dtype);
    let (is_right, is_left) =
        (w.map("Greater", &[x, &zero], DType::Bool), w.map("Less", &[x, &zero], DType::Bool));
    let elsewhere = w.map("Where", &[&is_left, &left, &on_axis], dtype);
    Ok(w.map("Where", &[&is_right, &angle, &elsewhere], dtype))
}

fn logaddexp(w: &mut Writer, a: &Val, b: &Val) -> Result<Val> {
    let dtype = a.dtype;
    let (most, apart) = (w.map("Max", &[a, b], dtype), w.map("Sub", &[a, b], dtype));
    let size = w.map("Abs", &[&apart], dtype);
    let down = w.map("Neg", &[&size], dtype);
    let small = w.map("Exp", &[&down], dtype);
    let rest = log1p(w, &small)?;
    let sum = w.map("Add", &[&most, &rest], dtype);
    // Of equal infinities the difference is no number.
    let is_equal = w.map("Equal", &[a, b], DType::Bool);
    let log2 = w.scalar(LN_2, dtype)?;
    let twice = w.map("Add", &[a, &log2], dtype);
    Ok(w.map("Where", &[&is_equal, &twice, &sum], dtype))
}

fn compare(w: &mut Writer, op: Compare, a: &Val, b: &Val) -> Result<Val> {
    // The order of truth values is that of 0 and 1.
    let wide = if a.dtype == DType::Bool { DType::I32 } else { a.dtype };
    let (a, b) = (w.cast(a, wide)?, w.cast(b, wide)?);
    let name = match op {
        Compare::Eq | Compare::Ne => "Equal",
        Compare::Lt => "Less",
        Compare::Le => "LessOrEqual",
        Compare::Gt => "Greater",
        Compare::Ge => "GreaterOrEqual",
    };
    let found = w.map(name, &[&a, &b], DType::Bool);
    Ok(if op == Compare::Ne { w.map("Not", &[&found], DType::Bool) } else { found })
}
