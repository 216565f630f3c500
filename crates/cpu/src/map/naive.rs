//! What a body computes, one element and one instruction at a time: the reference of the tests.

use cupola_core::DType;
use cupola_core::backend::Operand;
use cupola_core::plan::body::{Body, BodyOp};
use cupola_core::prim::{Binary, Compare, Unary};
use half::{bf16, f16};

use super::RawArgs;

/// A number of a register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// Bool or integer.
    Int(i128),
    /// Any real float; of the single and half types it is an `f32`.
    Float(f64),
    /// Complex.
    Complex(f32, f32),
}

use Number::{Complex, Float, Int};

impl Number {
    pub fn int(self) -> i128 {
        match self {
            Int(v) => v,
            Float(v) => v as i128,
            Complex(re, _) => re as i128,
        }
    }

    pub fn float(self) -> f64 {
        match self {
            Int(v) => v as f64,
            Float(v) => v,
            Complex(re, _) => f64::from(re),
        }
    }
}

pub(crate) fn bits(dtype: DType) -> u32 {
    dtype.size() as u32 * 8
}

/// `v` as a register of `dtype` holds it: wrapped, or rounded to `f32`.
pub(crate) fn fit(v: Number, dtype: DType) -> Number {
    match (v, dtype) {
        (Int(v), _) => Int(wrap(v, dtype)),
        (Float(v), DType::F64) => Float(v),
        (Float(v), _) => Float(f64::from(v as f32)),
        (c, _) => c,
    }
}

fn wrap(v: i128, dtype: DType) -> i128 {
    if dtype == DType::Bool {
        return i128::from(v != 0);
    }
    let n = bits(dtype);
    let low = v & ((1 << n) - 1);
    if dtype.is_signed() && low >> (n - 1) == 1 { low - (1 << n) } else { low }
}

/// # Safety
/// `at` is valid for an element of `dtype`.
pub(crate) unsafe fn read(at: *const u8, dtype: DType) -> Number {
    let mut raw = [0; 8];
    // SAFETY: the caller vouches for the element.
    unsafe { std::ptr::copy_nonoverlapping(at, raw.as_mut_ptr(), dtype.size()) };
    parse(raw, dtype)
}

pub(crate) fn parse(raw: [u8; 8], dtype: DType) -> Number {
    let whole = u64::from_le_bytes(raw);
    match dtype {
        DType::F16 => Float(f16::from_bits(whole as u16).to_f64()),
        DType::BF16 => Float(bf16::from_bits(whole as u16).to_f64()),
        DType::F32 => Float(f64::from(f32::from_bits(whole as u32))),
        DType::F64 => Float(f64::from_bits(whole)),
        DType::C64 => Complex(f32::from_bits(whole as u32), f32::from_bits((whole >> 32) as u32)),
        _ => Int(wrap(i128::from(whole), dtype)),
    }
}

pub(crate) fn bytes(v: Number, dtype: DType) -> [u8; 8] {
    let whole = match (v, dtype) {
        (v, DType::F16) => u64::from(f16::from_f64(round(v.float(), 10, -14)).to_bits()),
        (v, DType::BF16) => u64::from(bf16::from_f64(round(v.float(), 7, -126)).to_bits()),
        (v, DType::F32) => u64::from((v.float() as f32).to_bits()),
        (v, DType::F64) => v.float().to_bits(),
        (Complex(re, im), _) => u64::from(re.to_bits()) | u64::from(im.to_bits()) << 32,
        (v, _) => wrap(v.int(), dtype) as u64,
    };
    whole.to_le_bytes()
}

/// `x` with this many digits after the first, to nearest even; exponents from `least` on.
fn round(x: f64, digits: i32, least: i32) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let unit = 2f64.powi((x.abs().log2().floor() as i32).max(least) - digits);
    (x / unit).round_ties_even() * unit
}

pub(crate) fn instruction(op: BodyOp, args: &[Number], from: DType, to: DType) -> Number {
    let result = match op {
        BodyOp::Unary(op) => unary(op, args[0], from),
        BodyOp::Binary(op) => binary(op, args[0], args[1], from),
        BodyOp::Compare(op) => Int(i128::from(compare(op, args[0], args[1]))),
        BodyOp::Select(_) => args[if args[0].int() != 0 { 1 } else { 2 }],
        BodyOp::Cast(_) => cast(args[0], to),
    };
    fit(result, to)
}

fn unary(op: Unary, x: Number, dtype: DType) -> Number {
    match x {
        Int(x) => Int(match op {
            Unary::Neg => -x,
            Unary::Abs => x.abs(),
            Unary::Sign => x.signum(),
            Unary::Square => x.wrapping_mul(x),
            Unary::Not => 1 - x,
            Unary::Invert => !x,
            Unary::Floor | Unary::Ceil | Unary::Round => x,
            other => panic!("{other:?} of integers"),
        }),
        Complex(re, im) => {
            let (x, y) = (f64::from(re), f64::from(im));
            match op {
                Unary::Neg => Complex(-re, -im),
                Unary::Abs => Float(x.hypot(y)),
                Unary::Square => Complex(re * re - im * im, 2.0 * re * im),
                Unary::Exp => Complex((x.exp() * y.cos()) as f32, (x.exp() * y.sin()) as f32),
                Unary::Conj => Complex(re, -im),
                Unary::Real => Float(x),
                Unary::Imag => Float(y),
                other => panic!("{other:?} of complex numbers"),
            }
        }
        Float(x) => Float(real(op, x, dtype)),
    }
}

pub(crate) fn real(op: Unary, x: f64, dtype: DType) -> f64 {
    match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Sign if x == 0.0 || x.is_nan() => x + 0.0,
        Unary::Sign => x.signum(),
        Unary::Square => x * x,
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round_ties_even(),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Exp => x.exp(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Log => x.ln(),
        Unary::Log2 => x.log2(),
        Unary::Log10 => x.log10(),
        Unary::Log1p => x.ln_1p(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tan => x.tan(),
        Unary::Asin => x.asin(),
        Unary::Acos => x.acos(),
        Unary::Atan => x.atan(),
        Unary::Sinh => x.sinh(),
        Unary::Cosh => x.cosh(),
        Unary::Tanh => x.tanh(),
        Unary::Asinh => libm::asinh(x),
        Unary::Acosh => crate::math::acosh_f64(x),
        Unary::Atanh => libm::atanh(x),
        Unary::Sigmoid if x < 0.0 => x.exp() / (1.0 + x.exp()),
        Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Unary::Erf => libm::erf(x),
        Unary::ErfInv => crate::math::erfinv_f64(x),
        other => panic!("{other:?} of {dtype}"),
    }
}

fn binary(op: Binary, a: Number, b: Number, dtype: DType) -> Number {
    match (a, b) {
        (Int(a), Int(b)) => Int(integers(op, a, b, dtype)),
        (Complex(ar, ai), Complex(br, bi)) => match op {
            Binary::Add => Complex(ar + br, ai + bi),
            Binary::Sub => Complex(ar - br, ai - bi),
            Binary::Mul => Complex(ar * br - ai * bi, ar * bi + ai * br),
            Binary::Div => {
                let [ar, ai, br, bi] = [ar, ai, br, bi].map(f64::from);
                let d = br * br + bi * bi;
                Complex(((ar * br + ai * bi) / d) as f32, ((ai * br - ar * bi) / d) as f32)
            }
            other => panic!("{other:?} of complex numbers"),
        },
        _ => {
            let (a, b) = (a.float(), b.float());
            Float(match op {
                Binary::Add => a + b,
                Binary::Sub => a - b,
                Binary::Mul => a * b,
                Binary::Div => a / b,
                Binary::FloorDivide if dtype == DType::F64 => (a / b).floor(),
                Binary::FloorDivide => f64::from((a / b) as f32).floor(),
                Binary::Remainder => {
                    let r = a % b;
                    let r = if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r };
                    if r == 0.0 { 0f64.copysign(b) } else { r }
                }
                Binary::Power => a.powf(b),
                Binary::Maximum | Binary::Minimum if a.is_nan() || b.is_nan() => f64::NAN,
                Binary::Maximum => {
                    if a > b {
                        a
                    } else {
                        b
                    }
                }
                Binary::Minimum => {
                    if a < b {
                        a
                    } else {
                        b
                    }
                }
                Binary::Atan2 => a.atan2(b),
                Binary::LogAddExp if a == b => a + std::f64::consts::LN_2,
                Binary::LogAddExp => a.max(b) + (-(a - b).abs()).exp().ln_1p(),
                other => panic!("{other:?} of floats"),
            })
        }
    }
}

fn integers(op: Binary, a: i128, b: i128, dtype: DType) -> i128 {
    let width = i128::from(bits(dtype));
    match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a.wrapping_mul(b),
        Binary::FloorDivide | Binary::Remainder if b == 0 => 0,
        Binary::FloorDivide => a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0),
        Binary::Remainder => {
            let r = a.rem_euclid(b);
            if b < 0 && r != 0 { r + b } else { r }
        }
        Binary::Power if b < 0 => match a {
            1 => 1,
            -1 => {
                if b % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        },
        // High powers by squaring modulo 2⁶⁴, which is modulo the width too.
        Binary::Power => {
            let (mut base, mut left, mut product) = (a as u64, b as u64, 1u64);
            while left > 0 {
                if left & 1 == 1 {
                    product = product.wrapping_mul(base);
                }
                base = base.wrapping_mul(base);
                left >>= 1;
            }
            i128::from(product)
        }
        Binary::Maximum => a.max(b),
        Binary::Minimum => a.min(b),
        Binary::BitAnd => a & b,
        Binary::BitOr => a | b,
        Binary::BitXor => a ^ b,
        Binary::ShiftLeft if (0..width).contains(&b) => a << b,
        Binary::ShiftLeft => 0,
        Binary::ShiftRight if (0..width).contains(&b) => a >> b,
        Binary::ShiftRight => {
            if a < 0 {
                -1
            } else {
                0
            }
        }
        other => panic!("{other:?} of integers"),
    }
}

fn compare(op: Compare, a: Number, b: Number) -> bool {
    match (a, b) {
        (Int(a), Int(b)) => match op {
            Compare::Eq => a == b,
            Compare::Ne => a != b,
            Compare::Lt => a < b,
            Compare::Le => a <= b,
            Compare::Gt => a > b,
            Compare::Ge => a >= b,
        },
        (Complex(..), Complex(..)) => (a == b) == (op == Compare::Eq),
        _ => {
            let (a, b) = (a.float(), b.float());
            match op {
                Compare::Eq => a == b,
                Compare::Ne => a != b,
                Compare::Lt => a < b,
                Compare::Le => a <= b,
                Compare::Gt => a > b,
                Compare::Ge => a >= b,
            }
        }
    }
}

fn cast(x: Number, to: DType) -> Number {
    match to {
        DType::Bool => Int(i128::from(match x {
            Int(v) => v != 0,
            Float(v) => v != 0.0,
            Complex(re, im) => re != 0.0 || im != 0.0,
        })),
        DType::C64 => match x {
            Complex(..) => x,
            other => Complex(other.float() as f32, 0.0),
        },
        DType::F16 => Float(f16::from_f64(round(x.float(), 10, -14)).to_f64()),
        DType::BF16 => Float(bf16::from_f64(round(x.float(), 7, -126)).to_f64()),
        DType::F32 => match x {
            Int(v) => Float(f64::from(v as f32)),
            other => Float(other.float()),
        },
        DType::F64 => Float(x.float()),
        _ => match x {
            Int(v) => Int(v),
            other => {
                let (low, high) = range(to);
                Int((other.float() as i128).clamp(low, high))
            }
        },
    }
}

fn range(dtype: DType) -> (i128, i128) {
    let n = bits(dtype);
    if dtype.is_signed() { (-(1 << (n - 1)), (1 << (n - 1)) - 1) } else { (0, (1 << n) - 1) }
}

/// The registers of one element.
///
/// # Safety
/// The operands are valid at `index`.
pub(crate) unsafe fn element(
    body: &Body,
    inputs: &[Operand],
    args: &RawArgs<'_>,
    index: &[usize],
) -> Vec<Number> {
    let mut registers = Vec::new();
    for (i, operand) in inputs.iter().enumerate() {
        let dtype = body.inputs[i];
        let at = offset(operand, index) * dtype.size() as isize;
        // SAFETY: the caller vouches for the operand.
        registers.push(unsafe { read(args.inputs[i].offset(at), dtype) });
    }
    let scalars = body.scalars.iter().zip(args.scalars);
    registers.extend(scalars.map(|(&d, &raw)| parse(raw, d)));
    for instr in &body.code {
        let operands: Vec<_> = instr.args.iter().map(|&r| registers[usize::from(r)]).collect();
        let from = body.dtype_of(instr.args[0]);
        registers.push(instruction(instr.op, &operands, from, instr.dtype));
    }
    registers
}

pub(crate) fn offset(operand: &Operand, index: &[usize]) -> isize {
    index.iter().zip(&operand.strides).map(|(&i, &s)| i as isize * s).sum()
}

/// Every index of a shape, in row-major order.
pub(crate) fn indices(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let dims = dims.to_vec();
    (0..dims.iter().product()).map(move |flat: usize| {
        let mut left = flat;
        let mut index = vec![0; dims.len()];
        for axis in (0..dims.len()).rev() {
            index[axis] = left % dims[axis];
            left /= dims[axis];
        }
        index
    })
}
