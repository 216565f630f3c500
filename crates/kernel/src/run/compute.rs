//! Functions of single values, by their bits: what constants are folded by and what the interpreter applies to
//! every thread.

use half::{bf16, f16};

use crate::tree::{Atomic, Binary, Compare, Math, Unary};
use crate::types::{Scalar, Ty};

fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn of_f(v: f32) -> u64 {
    v.to_bits().into()
}

fn of_i(v: i32) -> u64 {
    u64::from(v as u32)
}

macro_rules! integer {
    ($op:expr, $t:ty, $back:expr) => {
        match $op {
            Binary::Add => |a, b| $back((a as $t).wrapping_add(b as $t)),
            Binary::Subtract => |a, b| $back((a as $t).wrapping_sub(b as $t)),
            Binary::Multiply => |a, b| $back((a as $t).wrapping_mul(b as $t)),
            Binary::Divide => {
                |a, b| if b == 0 { 0 } else { $back((a as $t).wrapping_div(b as $t)) }
            }
            Binary::Remainder => {
                |a, b| if b == 0 { 0 } else { $back((a as $t).wrapping_rem(b as $t)) }
            }
            Binary::And => |a, b| a & b,
            Binary::Or => |a, b| a | b,
            Binary::Xor => |a, b| a ^ b,
            Binary::Left => |a, b| $back((a as $t).wrapping_shl(b as u32)),
            Binary::Right => |a, b| $back((a as $t).wrapping_shr(b as u32)),
            Binary::Max => |a, b| $back((a as $t).max(b as $t)),
            Binary::Min => |a, b| $back((a as $t).min(b as $t)),
        }
    };
}

macro_rules! float {
    ($op:expr, $from:expr, $back:expr) => {
        match $op {
            Binary::Add => |a, b| $back($from(a) + $from(b)),
            Binary::Subtract => |a, b| $back($from(a) - $from(b)),
            Binary::Multiply => |a, b| $back($from(a) * $from(b)),
            Binary::Divide => |a, b| $back($from(a) / $from(b)),
            Binary::Remainder => |a, b| $back($from(a) % $from(b)),
            Binary::Max => |a, b| $back($from(a).max($from(b))),
            Binary::Min => |a, b| $back($from(a).min($from(b))),
            // The parser lets none of these pass.
            Binary::And | Binary::Or | Binary::Xor | Binary::Left | Binary::Right => |a, _| a,
        }
    };
}

/// A function of two values of type `ty`.
pub fn binary(op: Binary, ty: Ty) -> fn(u64, u64) -> u64 {
    match ty {
        Ty::Bool => match op {
            Binary::And => |a, b| a & b,
            Binary::Xor => |a, b| a ^ b,
            // Of other operations on bools the parser makes those of whole numbers.
            _ => |a, b| a | b,
        },
        Ty::I32 => integer!(op, i32, of_i),
        Ty::U32 => integer!(op, u32, u64::from),
        Ty::I64 => integer!(op, i64, |v: i64| v as u64),
        Ty::U64 => integer!(op, u64, |v: u64| v),
        Ty::F32 => float!(op, f, of_f),
        Ty::F64 => float!(op, f64::from_bits, f64::to_bits),
    }
}

macro_rules! compared {
    ($op:expr, $from:expr) => {
        match $op {
            Compare::Equal => |a, b| u64::from($from(a) == $from(b)),
            Compare::NotEqual => |a, b| u64::from($from(a) != $from(b)),
            Compare::Less => |a, b| u64::from($from(a) < $from(b)),
            Compare::LessEqual => |a, b| u64::from($from(a) <= $from(b)),
            Compare::Greater => |a, b| u64::from($from(a) > $from(b)),
            Compare::GreaterEqual => |a, b| u64::from($from(a) >= $from(b)),
        }
    };
}

/// A comparison of two values of type `ty`.
pub fn compare(op: Compare, ty: Ty) -> fn(u64, u64) -> u64 {
    match ty {
        Ty::Bool | Ty::U32 | Ty::U64 => compared!(op, |v: u64| v),
        Ty::I32 => compared!(op, |v: u64| v as i32),
        Ty::I64 => compared!(op, |v: u64| v as i64),
        Ty::F32 => compared!(op, f),
        Ty::F64 => compared!(op, f64::from_bits),
    }
}

/// A function of one value of type `ty`.
pub fn unary(op: Unary, ty: Ty) -> fn(u64) -> u64 {
    match (op, ty) {
        (Unary::Not, _) => |v| u64::from(v == 0),
        (Unary::Negate, Ty::F32) => |v| of_f(-f(v)),
        (Unary::Negate, Ty::F64) => |v| (-f64::from_bits(v)).to_bits(),
        (Unary::Negate, Ty::I64 | Ty::U64) => u64::wrapping_neg,
        (Unary::Negate, _) => |v| u64::from((v as u32).wrapping_neg()),
        (Unary::Flip, Ty::I64 | Ty::U64) => |v| !v,
        (Unary::Flip, _) => |v| u64::from(!(v as u32)),
        (Unary::Abs, Ty::F32) => |v| of_f(f(v).abs()),
        (Unary::Abs, Ty::F64) => |v| f64::from_bits(v).abs().to_bits(),
        (Unary::Abs, Ty::I32) => |v| of_i((v as i32).wrapping_abs()),
        (Unary::Abs, Ty::I64) => |v| (v as i64).wrapping_abs() as u64,
        (Unary::Abs, _) => |v| v,
        (Unary::Ones, _) => |v| v.count_ones().into(),
        (Unary::Leading, Ty::I64 | Ty::U64) => |v| v.leading_zeros().into(),
        (Unary::Leading, _) => |v| (v as u32).leading_zeros().into(),
        (Unary::Reversed, Ty::I64 | Ty::U64) => u64::reverse_bits,
        (Unary::Reversed, _) => |v| (v as u32).reverse_bits().into(),
    }
}

macro_rules! converted {
    ($to:expr, $from:expr) => {
        match $to {
            Ty::Bool => |v| u64::from($from(v) != 0),
            Ty::I32 => |v| of_i($from(v) as i32),
            Ty::U32 => |v| u64::from($from(v) as u32),
            Ty::I64 => |v| $from(v) as i64 as u64,
            Ty::U64 => |v| $from(v) as u64,
            Ty::F32 => |v| of_f($from(v) as f32),
            Ty::F64 => |v| ($from(v) as f64).to_bits(),
        }
    };
}

macro_rules! unsigned {
    ($v:expr, $own:ty, $signed:ty) => {{
        let v = $v;
        u64::from(if v < 0.0 { v as $signed as $own } else { v as $own })
    }};
}

macro_rules! cast {
    ($to:expr, $from:expr) => {
        match $to {
            Scalar::Bool => |v| u64::from($from(v) != 0.0),
            Scalar::U8 => |v| unsigned!($from(v), u8, i32),
            Scalar::I8 => |v| of_i(($from(v) as i8).into()),
            Scalar::U16 => |v| unsigned!($from(v), u16, i32),
            Scalar::I16 => |v| of_i(($from(v) as i16).into()),
            Scalar::U32 => |v| unsigned!($from(v), u32, i32),
            Scalar::I32 => |v| of_i($from(v) as i32),
            Scalar::U64 => |v| unsigned!($from(v), u64, i64),
            Scalar::I64 => |v| $from(v) as i64 as u64,
            Scalar::F16 | Scalar::BF16 => |v| of_f(to_odd($from(v) as f64)),
            Scalar::F32 => |v| of_f($from(v) as f32),
            Scalar::F64 => |v| ($from(v) as f64).to_bits(),
        }
    };
}

/// A `double` as the `float` towards zero, with an odd last digit where that is not exact: to round this to a half is
/// to round once.
fn to_odd(v: f64) -> f32 {
    let near = v as f32;
    let back = f64::from(near);
    match back == v || v.is_nan() {
        true => near,
        false => f32::from_bits((near.to_bits() - u32::from(back.abs() > v.abs())) | 1),
    }
}

/// A value of `from` in the register of `to`: whole numbers wrap. A float goes towards zero and is within what
/// `to` holds, as casts of arrays have it: NaN is 0, and what is negative becomes an unsigned integer by way of
/// the signed one.
pub fn convert(from: Ty, to: Scalar) -> fn(u64) -> u64 {
    match from {
        Ty::Bool | Ty::U32 => converted!(to.register(), |v: u64| v as u32),
        Ty::U64 => converted!(to.register(), |v: u64| v),
        Ty::I32 => converted!(to.register(), |v: u64| v as i32),
        Ty::I64 => converted!(to.register(), |v: u64| v as i64),
        Ty::F32 => cast!(to, f),
        Ty::F64 => cast!(to, f64::from_bits),
    }
}

/// A register's value as what an element of `scalar` holds.
pub fn narrow(scalar: Scalar) -> fn(u64) -> u64 {
    match scalar {
        Scalar::U8 => |v| u64::from(v as u8),
        Scalar::I8 => |v| of_i(i32::from(v as i8)),
        Scalar::U16 => |v| u64::from(v as u16),
        Scalar::I16 => |v| of_i(i32::from(v as i16)),
        Scalar::F16 => |v| of_f(f16::from_f32(f(v)).to_f32()),
        Scalar::BF16 => |v| of_f(bf16::from_f32(f(v)).to_f32()),
        _ => |v| v,
    }
}

macro_rules! read {
    ($t:ty, $size:literal, $back:expr) => {
        |bytes, index| {
            let mut own = [0; $size];
            own.copy_from_slice(&bytes[index * $size..(index + 1) * $size]);
            $back(<$t>::from_le_bytes(own))
        }
    };
}

/// Reads the element of a number, as its register's bits.
pub fn read(scalar: Scalar) -> fn(&[u8], usize) -> u64 {
    match scalar {
        Scalar::Bool => |bytes, index| u64::from(bytes[index] != 0),
        Scalar::U8 => |bytes, index| bytes[index].into(),
        Scalar::I8 => |bytes, index| of_i((bytes[index] as i8).into()),
        Scalar::U16 => read!(u16, 2, u64::from),
        Scalar::I16 => read!(i16, 2, |v: i16| of_i(v.into())),
        Scalar::F16 => read!(f16, 2, |v: f16| of_f(v.to_f32())),
        Scalar::BF16 => read!(bf16, 2, |v: bf16| of_f(v.to_f32())),
        Scalar::U32 | Scalar::F32 => read!(u32, 4, u64::from),
        Scalar::I32 => read!(i32, 4, of_i),
        Scalar::U64 | Scalar::I64 | Scalar::F64 => read!(u64, 8, |v| v),
    }
}

/// Writes the element of a number, from its register's bits.
pub fn write(scalar: Scalar) -> fn(&mut [u8], usize, u64) {
    match scalar {
        Scalar::Bool | Scalar::U8 | Scalar::I8 => |bytes, index, v| bytes[index] = v as u8,
        Scalar::U16 | Scalar::I16 => |bytes, index, v| {
            bytes[index * 2..(index + 1) * 2].copy_from_slice(&(v as u16).to_le_bytes());
        },
        Scalar::F16 => |bytes, index, v| {
            let half = f16::from_f32(f(v));
            bytes[index * 2..(index + 1) * 2].copy_from_slice(&half.to_le_bytes());
        },
        Scalar::BF16 => |bytes, index, v| {
            let half = bf16::from_f32(f(v));
            bytes[index * 2..(index + 1) * 2].copy_from_slice(&half.to_le_bytes());
        },
        Scalar::U32 | Scalar::I32 | Scalar::F32 => |bytes, index, v| {
            bytes[index * 4..(index + 1) * 4].copy_from_slice(&(v as u32).to_le_bytes());
        },
        Scalar::U64 | Scalar::I64 | Scalar::F64 => |bytes, index, v| {
            bytes[index * 8..(index + 1) * 8].copy_from_slice(&v.to_le_bytes());
        },
    }
}

/// What an atomic operation leaves of what was there and what comes.
pub fn atomic(op: Atomic, ty: Ty) -> fn(u64, u64) -> u64 {
    match op {
        Atomic::Add => binary(Binary::Add, ty),
        Atomic::Subtract => binary(Binary::Subtract, ty),
        Atomic::Max => binary(Binary::Max, ty),
        Atomic::Min => binary(Binary::Min, ty),
        Atomic::And => binary(Binary::And, ty),
        Atomic::Or => binary(Binary::Or, ty),
        Atomic::Xor => binary(Binary::Xor, ty),
        Atomic::Exchange => |_, b| b,
    }
}

macro_rules! maths {
    ($op:expr, $from:expr, $back:expr, $ten:expr, $erf:path, $erfc:path) => {{
        type Of = fn(u64, u64, u64) -> u64;
        let found: Of = match $op {
            Math::Exp => |a, _, _| $back($from(a).exp()),
            Math::Exp2 => |a, _, _| $back($from(a).exp2()),
            Math::Exp10 => |a, _, _| $back(($from(a) * $ten).exp2()),
            Math::Expm1 => |a, _, _| $back($from(a).exp_m1()),
            Math::Log => |a, _, _| $back($from(a).ln()),
            Math::Log2 => |a, _, _| $back($from(a).log2()),
            Math::Log10 => |a, _, _| $back($from(a).log10()),
            Math::Log1p => |a, _, _| $back($from(a).ln_1p()),
            Math::Sqrt => |a, _, _| $back($from(a).sqrt()),
            Math::Rsqrt => |a, _, _| $back($from(a).sqrt().recip()),
            Math::Sin => |a, _, _| $back($from(a).sin()),
            Math::Cos => |a, _, _| $back($from(a).cos()),
            Math::Tan => |a, _, _| $back($from(a).tan()),
            Math::Asin => |a, _, _| $back($from(a).asin()),
            Math::Acos => |a, _, _| $back($from(a).acos()),
            Math::Atan => |a, _, _| $back($from(a).atan()),
            Math::Sinh => |a, _, _| $back($from(a).sinh()),
            Math::Cosh => |a, _, _| $back($from(a).cosh()),
            Math::Tanh => |a, _, _| $back($from(a).tanh()),
            Math::Asinh => |a, _, _| $back($from(a).asinh()),
            Math::Acosh => |a, _, _| $back($from(a).acosh()),
            Math::Atanh => |a, _, _| $back($from(a).atanh()),
            Math::Erf => |a, _, _| $back($erf($from(a))),
            Math::Erfc => |a, _, _| $back($erfc($from(a))),
            Math::Floor => |a, _, _| $back($from(a).floor()),
            Math::Ceil => |a, _, _| $back($from(a).ceil()),
            Math::Trunc => |a, _, _| $back($from(a).trunc()),
            Math::Round => |a, _, _| $back($from(a).round()),
            Math::Rint => |a, _, _| $back($from(a).round_ties_even()),
            Math::IsNan => |a, _, _| u64::from($from(a).is_nan()),
            Math::IsInf => |a, _, _| u64::from($from(a).is_infinite()),
            Math::IsFinite => |a, _, _| u64::from($from(a).is_finite()),
            Math::Pow => |a, b, _| $back($from(a).powf($from(b))),
            Math::Atan2 => |a, b, _| $back($from(a).atan2($from(b))),
            Math::Fmod => |a, b, _| $back($from(a) % $from(b)),
            Math::Fma => |a, b, c| $back($from(a).mul_add($from(b), $from(c))),
        };
        found
    }};
}

/// A function of floats of type `ty`; what it takes no argument for is ignored.
pub fn math(op: Math, ty: Ty) -> fn(u64, u64, u64) -> u64 {
    match ty {
        Ty::F64 => maths!(
            op,
            f64::from_bits,
            f64::to_bits,
            std::f64::consts::LOG2_10,
            libm::erf,
            libm::erfc
        ),
        _ => maths!(op, f, of_f, std::f32::consts::LOG2_10, libm::erff, libm::erfcf),
    }
}
