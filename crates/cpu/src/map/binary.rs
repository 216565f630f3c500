//! The loops of the binary functions, comparisons and the choice.

#![deny(clippy::wildcard_enum_match_arm)]

use cupola_core::DType;
use cupola_core::prim::{Binary, Compare};
use cupola_simd::Isa;
use num_complex::Complex32;

use super::lanes::{Scalar, TileFn, Upto256, lane_select, lane2};
use crate::math;

/// The loop of `op` on operands that are held as `dtype`; `None` where it takes no such operands.
pub(crate) fn binary(op: Binary, dtype: DType, isa: Isa) -> Option<TileFn> {
    let vectors = Upto256(isa);
    match dtype {
        DType::Bool => boolean(op, vectors),
        DType::U8 => binary_u8(op, vectors),
        DType::U16 => binary_u16(op, vectors),
        DType::U32 => binary_u32(op, vectors),
        DType::U64 => binary_u64(op, vectors),
        DType::I8 => binary_i8(op, vectors),
        DType::I16 => binary_i16(op, vectors),
        DType::I32 => binary_i32(op, vectors),
        DType::I64 => binary_i64(op, vectors),
        DType::F16 | DType::BF16 | DType::F32 => single(op, isa),
        DType::F64 => double(op, vectors),
        DType::C32 | DType::C64 => complex(op, vectors),
    }
}

fn boolean(op: Binary, isa: Upto256) -> Option<TileFn> {
    Some(match op {
        Binary::BitAnd | Binary::Minimum => lane2!(isa, u8 => u8, |a, b| a & b),
        Binary::BitOr | Binary::Maximum => lane2!(isa, u8 => u8, |a, b| a | b),
        Binary::BitXor => lane2!(isa, u8 => u8, |a, b| a ^ b),
        Binary::Add
        | Binary::Sub
        | Binary::Mul
        | Binary::Div
        | Binary::FloorDivide
        | Binary::Remainder
        | Binary::Power
        | Binary::Atan2
        | Binary::LogAddExp
        | Binary::ShiftLeft
        | Binary::ShiftRight => return None,
    })
}

macro_rules! integers {
    ($($name:ident $t:ident $wide:ident |$a:ident, $b:ident| $floor:expr, $modulo:expr, $power:expr;)*) => {$(
        fn $name(op: Binary, isa: Upto256) -> Option<TileFn> {
            Some(match op {
                Binary::Add => lane2!(isa, $t => $t, |a, b| a.wrapping_add(b)),
                Binary::Sub => lane2!(isa, $t => $t, |a, b| a.wrapping_sub(b)),
                Binary::Mul => lane2!(isa, $t => $t, |a, b| a.wrapping_mul(b)),
                Binary::FloorDivide => {
                    lane2!(Scalar, $t => $t, |$a, $b| if $b == 0 { 0 } else { $floor })
                }
                Binary::Remainder => {
                    lane2!(Scalar, $t => $t, |$a, $b| if $b == 0 { 0 } else { $modulo })
                }
                Binary::Power => lane2!(Scalar, $t => $t, |$a, $b| $power),
                Binary::Maximum => lane2!(isa, $t => $t, |a, b| a.max(b)),
                Binary::Minimum => lane2!(isa, $t => $t, |a, b| a.min(b)),
                Binary::BitAnd => lane2!(isa, $t => $t, |a, b| a & b),
                Binary::BitOr => lane2!(isa, $t => $t, |a, b| a | b),
                Binary::BitXor => lane2!(isa, $t => $t, |a, b| a ^ b),
                // A negative count is beyond the width.
                Binary::ShiftLeft => lane2!(isa, $t => $t, |a, b| {
                    let inside = (b as $wide) < <$t>::BITS as $wide;
                    if inside { a.wrapping_shl(b as u32) } else { 0 }
                }),
                Binary::ShiftRight => lane2!(isa, $t => $t, |a, b| {
                    let inside = (b as $wide) < <$t>::BITS as $wide;
                    #[allow(unused_comparisons)]
                    let beyond = if a < 0 { !0 } else { 0 };
                    if inside { a.wrapping_shr(b as u32) } else { beyond }
                }),
                Binary::Div | Binary::Atan2 | Binary::LogAddExp => return None,
            })
        }
    )*};
}

macro_rules! signed_floor {
    ($a:ident, $b:ident) => {{
        let q = $a.wrapping_div($b);
        let inexact = $a.wrapping_rem($b) != 0;
        if inexact && (($a < 0) != ($b < 0)) { q - 1 } else { q }
    }};
}

macro_rules! signed_modulo {
    ($a:ident, $b:ident) => {{
        let r = $a.wrapping_rem($b);
        if r != 0 && ((r < 0) != ($b < 0)) { r + $b } else { r }
    }};
}

macro_rules! unsigned_power {
    ($a:ident, $b:ident) => {{
        let (mut base, mut left, mut product) = ($a, $b, 1);
        while left != 0 {
            if left & 1 == 1 {
                product = base.wrapping_mul(product);
            }
            base = base.wrapping_mul(base);
            left >>= 1;
        }
        product
    }};
}

macro_rules! signed_power {
    ($a:ident, $b:ident) => {
        if $b >= 0 {
            unsigned_power!($a, $b)
        } else {
            match $a {
                1 => 1,
                -1 if $b & 1 == 0 => 1,
                -1 => -1,
                _ => 0,
            }
        }
    };
}

integers! {
    binary_u8 u8 u8 |a, b| a / b, a % b, unsigned_power!(a, b);
    binary_u16 u16 u16 |a, b| a / b, a % b, unsigned_power!(a, b);
    binary_u32 u32 u32 |a, b| a / b, a % b, unsigned_power!(a, b);
    binary_u64 u64 u64 |a, b| a / b, a % b, unsigned_power!(a, b);
    binary_i8 i8 u8 |a, b| signed_floor!(a, b), signed_modulo!(a, b), signed_power!(a, b);
    binary_i16 i16 u16 |a, b| signed_floor!(a, b), signed_modulo!(a, b), signed_power!(a, b);
    binary_i32 i32 u32 |a, b| signed_floor!(a, b), signed_modulo!(a, b), signed_power!(a, b);
    binary_i64 i64 u64 |a, b| signed_floor!(a, b), signed_modulo!(a, b), signed_power!(a, b);
}

macro_rules! float_common {
    ($op:expr, $isa:expr, $t:ty, $pow:expr, $atan2:expr, $logaddexp:expr) => {
        Some(match $op {
            Binary::Add => lane2!($isa, $t => $t, |a, b| a + b),
            Binary::Sub => lane2!($isa, $t => $t, |a, b| a - b),
            Binary::Mul => lane2!($isa, $t => $t, |a, b| a * b),
            Binary::Div => lane2!($isa, $t => $t, |a, b| a / b),
            Binary::FloorDivide => lane2!($isa, $t => $t, |a, b| (a / b).floor()),
            Binary::Remainder => lane2!(Scalar, $t => $t, |a, b| {
                let r = a % b;
                let r = if r != 0.0 && ((r < 0.0) != (b < 0.0)) { r + b } else { r };
                if r == 0.0 { r.copysign(b) } else { r }
            }),
            Binary::Power => $pow,
            Binary::Maximum => {
                lane2!($isa, $t => $t, |a, b| if a > b || a.is_nan() { a } else { b })
            }
            Binary::Minimum => {
                lane2!($isa, $t => $t, |a, b| if a < b || a.is_nan() { a } else { b })
            }
            Binary::Atan2 => $atan2,
            Binary::LogAddExp => $logaddexp,
            Binary::BitAnd
            | Binary::BitOr
            | Binary::BitXor
            | Binary::ShiftLeft
            | Binary::ShiftRight => return None,
        })
    };
}

fn single(op: Binary, isa: Isa) -> Option<TileFn> {
    float_common!(
        op,
        isa,
        f32,
        lane2!(isa, f32 => f32, |a, b| math::pow::<S>(a, b)),
        lane2!(isa, f32 => f32, |a, b| math::atan2::<S>(a, b)),
        lane2!(isa, f32 => f32, |a, b| math::logaddexp::<S>(a, b))
    )
}

fn double(op: Binary, isa: Upto256) -> Option<TileFn> {
    float_common!(
        op,
        isa,
        f64,
        lane2!(Scalar, f64 => f64, |a, b| a.powf(b)),
        lane2!(Scalar, f64 => f64, |a, b| a.atan2(b)),
        lane2!(Scalar, f64 => f64, |a, b| math::logaddexp_f64(a, b))
    )
}

fn complex(op: Binary, isa: Upto256) -> Option<TileFn> {
    type C = Complex32;
    Some(match op {
        Binary::Add => lane2!(isa, C => C, |a, b| C::new(a.re + b.re, a.im + b.im)),
        Binary::Sub => lane2!(isa, C => C, |a, b| C::new(a.re - b.re, a.im - b.im)),
        Binary::Mul => lane2!(isa, C => C, |a, b| {
            C::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
        }),
        Binary::Div => lane2!(isa, C => C, |a, b| divide(a, b)),
        Binary::FloorDivide
        | Binary::Remainder
        | Binary::Power
        | Binary::Maximum
        | Binary::Minimum
        | Binary::Atan2
        | Binary::LogAddExp
        | Binary::BitAnd
        | Binary::BitOr
        | Binary::BitXor
        | Binary::ShiftLeft
        | Binary::ShiftRight => return None,
    })
}

/// a/b through `f64`, where neither the products nor their sum overflow.
#[inline(always)]
fn divide(a: Complex32, b: Complex32) -> Complex32 {
    let (ar, ai) = (f64::from(a.re), f64::from(a.im));
    let (br, bi) = (f64::from(b.re), f64::from(b.im));
    let d = br * br + bi * bi;
    let (re, im) = ((ar * br + ai * bi) / d, (ai * br - ar * bi) / d);
    let (re, im) = if re.is_nan() && im.is_nan() { at_limit([ar, ai], [br, bi]) } else { (re, im) };
    Complex32::new(re as f32, im as f32)
}

/// a/b where the formula gives NaN: of 0 and infinite numbers what C99 says in its Annex G.5.1.
#[cold]
fn at_limit(a: [f64; 2], b: [f64; 2]) -> (f64, f64) {
    let is_infinite = |z: [f64; 2]| z[0].is_infinite() || z[1].is_infinite();
    let is_finite = |z: [f64; 2]| z[0].is_finite() && z[1].is_finite();
    // The direction of an infinite number.
    let unit = |z: [f64; 2]| z.map(|part| f64::from(u8::from(part.is_infinite())).copysign(part));
    let times = |size: f64, a: [f64; 2], b: [f64; 2]| {
        (size * (a[0] * b[0] + a[1] * b[1]), size * (a[1] * b[0] - a[0] * b[1]))
    };
    if b == [0.0; 2] {
        let size = f64::INFINITY.copysign(b[0]);
        (size * a[0], size * a[1])
    } else if is_infinite(a) && is_finite(b) {
        times(f64::INFINITY, unit(a), b)
    } else if is_infinite(b) && is_finite(a) {
        times(0.0, a, unit(b))
    } else {
        (f64::NAN, f64::NAN)
    }
}

/// The loop of `op` on operands that are held as `dtype`; `None` where it takes no such operands.
pub(crate) fn compare(op: Compare, dtype: DType, isa: Isa) -> Option<TileFn> {
    macro_rules! ordered {
        ($t:ty) => {
            ordered!($t, Upto256(isa))
        };
        ($t:ty, $isa:expr) => {
            match op {
                Compare::Eq => lane2!($isa, $t => u8, |a, b| u8::from(a == b)),
                Compare::Ne => lane2!($isa, $t => u8, |a, b| u8::from(a != b)),
                Compare::Lt => lane2!($isa, $t => u8, |a, b| u8::from(a < b)),
                Compare::Le => lane2!($isa, $t => u8, |a, b| u8::from(a <= b)),
                Compare::Gt => lane2!($isa, $t => u8, |a, b| u8::from(a > b)),
                Compare::Ge => lane2!($isa, $t => u8, |a, b| u8::from(a >= b)),
            }
        };
    }
    Some(match dtype {
        DType::Bool | DType::U8 => ordered!(u8),
        DType::U16 => ordered!(u16),
        DType::U32 => ordered!(u32),
        DType::U64 => ordered!(u64),
        DType::I8 => ordered!(i8),
        DType::I16 => ordered!(i16),
        DType::I32 => ordered!(i32),
        DType::I64 => ordered!(i64),
        DType::F16 | DType::BF16 | DType::F32 => ordered!(f32, isa),
        DType::F64 => ordered!(f64),
        DType::C32 | DType::C64 => match op {
            Compare::Eq => {
                lane2!(Upto256(isa), Complex32 => u8, |a, b| u8::from((a.re == b.re) & (a.im == b.im)))
            }
            Compare::Ne => {
                lane2!(Upto256(isa), Complex32 => u8, |a, b| u8::from((a.re != b.re) | (a.im != b.im)))
            }
            Compare::Lt | Compare::Le | Compare::Gt | Compare::Ge => return None,
        },
    })
}

/// The loop of the choice between elements of `bytes` bytes.
pub(crate) fn select(bytes: usize, isa: Isa) -> TileFn {
    match bytes {
        1 => lane_select!(Upto256(isa), u8),
        2 => lane_select!(Upto256(isa), u16),
        4 => lane_select!(isa, u32),
        _ => lane_select!(Upto256(isa), u64),
    }
}
