//! The loops of the unary functions.

#![deny(clippy::wildcard_enum_match_arm)]

use cupola_core::DType;
use cupola_core::prim::Unary;
use cupola_simd::Isa;
use num_complex::Complex32;

use super::lanes::{Scalar, TileFn, Upto256, lane1};
use crate::math;

/// The loop of `op` on operands that are held as `dtype`; `None` where it takes no such operands.
pub(crate) fn unary(op: Unary, dtype: DType, isa: Isa) -> Option<TileFn> {
    let vectors = Upto256(isa);
    match dtype {
        DType::Bool => (op == Unary::Not).then(|| lane1!(vectors, u8 => u8, |x| u8::from(x == 0))),
        DType::U8 => unsigned_u8(op, vectors),
        DType::U16 => unsigned_u16(op, vectors),
        DType::U32 => unsigned_u32(op, vectors),
        DType::U64 => unsigned_u64(op, vectors),
        DType::I8 => signed_i8(op, vectors),
        DType::I16 => signed_i16(op, vectors),
        DType::I32 => signed_i32(op, vectors),
        DType::I64 => signed_i64(op, vectors),
        DType::F16 | DType::BF16 | DType::F32 => single(op, isa),
        DType::F64 => double(op, vectors),
        DType::C32 | DType::C64 => complex(op, vectors),
    }
}

macro_rules! integers {
    ($($name:ident $t:ident |$x:ident| $abs:expr, $sign:expr;)*) => {$(
        fn $name(op: Unary, isa: Upto256) -> Option<TileFn> {
            Some(match op {
                Unary::Neg => lane1!(isa, $t => $t, |x| x.wrapping_neg()),
                Unary::Abs => lane1!(isa, $t => $t, |$x| $abs),
                Unary::Sign => lane1!(isa, $t => $t, |$x| $sign),
                Unary::Square => lane1!(isa, $t => $t, |x| x.wrapping_mul(x)),
                Unary::Floor | Unary::Ceil | Unary::Round => lane1!(isa, $t => $t, |x| x),
                Unary::Invert => lane1!(isa, $t => $t, |x| !x),
                _ => return None,
            })
        }
    )*};
}

integers! {
    unsigned_u8 u8 |x| x, u8::from(x > 0);
    unsigned_u16 u16 |x| x, u16::from(x > 0);
    unsigned_u32 u32 |x| x, u32::from(x > 0);
    unsigned_u64 u64 |x| x, u64::from(x > 0);
    signed_i8 i8 |x| x.wrapping_abs(), i8::from(x > 0) - i8::from(x < 0);
    signed_i16 i16 |x| x.wrapping_abs(), i16::from(x > 0) - i16::from(x < 0);
    signed_i32 i32 |x| x.wrapping_abs(), i32::from(x > 0) - i32::from(x < 0);
    signed_i64 i64 |x| x.wrapping_abs(), i64::from(x > 0) - i64::from(x < 0);
}

macro_rules! sign {
    ($x:ident) => {{
        let s = if $x > 0.0 { 1.0 } else { 0.0 };
        let s = if $x < 0.0 { -1.0 } else { s };
        if $x.is_nan() { $x } else { s }
    }};
}

fn single(op: Unary, isa: Isa) -> Option<TileFn> {
    macro_rules! f {
        (|$x:ident| $body:expr) => {
            lane1!(isa, f32 => f32, |$x| $body)
        };
        ($name:ident) => {
            lane1!(isa, f32 => f32, |x| math::$name::<S>(x))
        };
        ($name:ident, slow $slow:expr) => {
            lane1!(isa, f32 => f32, |x| math::$name::<S>(x),
                slow |x| math::needs_slow_reduction(x) => $slow(f64::from(x)) as f32)
        };
    }
    Some(match op {
        Unary::Neg => f!(|x| -x),
        Unary::Abs => f!(|x| x.abs()),
        Unary::Sign => f!(|x| sign!(x)),
        Unary::Square => f!(|x| x * x),
        Unary::Floor => f!(|x| x.floor()),
        Unary::Ceil => f!(|x| x.ceil()),
        Unary::Round => f!(|x| x.round_ties_even()),
        Unary::Sqrt => f!(|x| x.sqrt()),
        Unary::Rsqrt => f!(|x| 1.0 / x.sqrt()),
        Unary::Exp => f!(exp),
        Unary::Expm1 => f!(expm1),
        Unary::Log => f!(log),
        Unary::Log2 => f!(log2),
        Unary::Log10 => f!(log10),
        Unary::Log1p => f!(log1p),
        Unary::Sin => f!(sin, slow f64::sin),
        Unary::Cos => f!(cos, slow f64::cos),
        Unary::Tan => f!(tan, slow f64::tan),
        Unary::Asin => f!(asin),
        Unary::Acos => f!(acos),
        Unary::Atan => f!(atan),
        Unary::Sinh => f!(sinh),
        Unary::Cosh => f!(cosh),
        Unary::Tanh => f!(tanh),
        Unary::Asinh => f!(asinh),
        Unary::Acosh => f!(acosh),
        Unary::Atanh => f!(atanh),
        Unary::Sigmoid => f!(sigmoid),
        Unary::Erf => f!(erf),
        Unary::Erfc => f!(erfc),
        Unary::ErfInv => f!(erfinv),
        Unary::Not | Unary::Invert | Unary::Conj | Unary::Real | Unary::Imag => return None,
    })
}

fn double(op: Unary, isa: Upto256) -> Option<TileFn> {
    macro_rules! f {
        (|$x:ident| $body:expr) => {
            lane1!(isa, f64 => f64, |$x| $body)
        };
        ($name:ident) => {
            lane1!(isa, f64 => f64, |x| x.$name())
        };
    }
    macro_rules! call {
        ($function:expr) => {
            lane1!(Scalar, f64 => f64, |x| $function(x))
        };
    }
    Some(match op {
        Unary::Neg => f!(|x| -x),
        Unary::Abs => f!(abs),
        Unary::Sign => f!(|x| sign!(x)),
        Unary::Square => f!(|x| x * x),
        Unary::Floor => f!(floor),
        Unary::Ceil => f!(ceil),
        Unary::Round => f!(round_ties_even),
        Unary::Sqrt => f!(sqrt),
        Unary::Rsqrt => f!(|x| 1.0 / x.sqrt()),
        Unary::Exp => call!(f64::exp),
        Unary::Expm1 => call!(f64::exp_m1),
        Unary::Log => call!(f64::ln),
        Unary::Log2 => call!(f64::log2),
        Unary::Log10 => call!(f64::log10),
        Unary::Log1p => call!(f64::ln_1p),
        Unary::Sin => call!(f64::sin),
        Unary::Cos => call!(f64::cos),
        Unary::Tan => call!(f64::tan),
        Unary::Asin => call!(f64::asin),
        Unary::Acos => call!(f64::acos),
        Unary::Atan => call!(f64::atan),
        Unary::Sinh => call!(f64::sinh),
        Unary::Cosh => call!(f64::cosh),
        Unary::Tanh => call!(f64::tanh),
        // std's own formulas lose digits for small and overflow for large arguments.
        Unary::Asinh => call!(libm::asinh),
        Unary::Acosh => call!(math::acosh_f64),
        Unary::Atanh => call!(libm::atanh),
        Unary::Sigmoid => call!(math::sigmoid_f64),
        Unary::Erf => call!(math::erf_f64),
        Unary::Erfc => call!(math::erfc_f64),
        Unary::ErfInv => call!(math::erfinv_f64),
        Unary::Not | Unary::Invert | Unary::Conj | Unary::Real | Unary::Imag => return None,
    })
}

fn complex(op: Unary, isa: Upto256) -> Option<TileFn> {
    macro_rules! call {
        ($name:ident) => {
            lane1!(Scalar, Complex32 => Complex32, |z| math::complex::$name(z))
        };
    }
    Some(match op {
        Unary::Neg => lane1!(isa, Complex32 => Complex32, |z| -z),
        Unary::Abs => lane1!(isa, Complex32 => f32, |z| math::complex::abs(z)),
        Unary::Square => lane1!(isa, Complex32 => Complex32, |z| {
            // Doubled last: twice a large part may be infinite where the product is not.
            let cross = z.re * z.im;
            Complex32::new(z.re * z.re - z.im * z.im, cross + cross)
        }),
        Unary::Round => lane1!(isa, Complex32 => Complex32, |z| {
            Complex32::new(z.re.round_ties_even(), z.im.round_ties_even())
        }),
        Unary::Conj => lane1!(isa, Complex32 => Complex32, |z| z.conj()),
        Unary::Real => lane1!(isa, Complex32 => f32, |z| z.re),
        Unary::Imag => lane1!(isa, Complex32 => f32, |z| z.im),
        Unary::Sqrt => call!(sqrt),
        Unary::Rsqrt => call!(rsqrt),
        Unary::Exp => call!(exp),
        Unary::Expm1 => call!(expm1),
        Unary::Log => call!(log),
        Unary::Log2 => call!(log2),
        Unary::Log10 => call!(log10),
        Unary::Log1p => call!(log1p),
        Unary::Sin => call!(sin),
        Unary::Cos => call!(cos),
        Unary::Tan => call!(tan),
        Unary::Asin => call!(asin),
        Unary::Acos => call!(acos),
        Unary::Atan => call!(atan),
        Unary::Sinh => call!(sinh),
        Unary::Cosh => call!(cosh),
        Unary::Tanh => call!(tanh),
        Unary::Asinh => call!(asinh),
        Unary::Acosh => call!(acosh),
        Unary::Atanh => call!(atanh),
        Unary::Sign
        | Unary::Floor
        | Unary::Ceil
        | Unary::Sigmoid
        | Unary::Erf
        | Unary::Erfc
        | Unary::ErfInv
        | Unary::Not
        | Unary::Invert => return None,
    })
}
