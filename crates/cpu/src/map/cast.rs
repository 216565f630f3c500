//! The loops of the casts, and of the half types where they are loaded and stored.

use cupola_core::DType;
use cupola_simd::Isa;
use cupola_simd::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use num_complex::Complex32;

use super::lanes::{TileFn, Upto256, lane1};

macro_rules! wrapped {
    ($x:expr, $t:ty) => {
        $x as $t
    };
}

macro_rules! by_int32 {
    ($x:expr, $t:ty) => {
        if $x < 0.0 { ($x as i32) as $t } else { $x as $t }
    };
}

macro_rules! by_int64 {
    ($x:expr, $t:ty) => {
        if $x < 0.0 { ($x as i64) as $t } else { $x as $t }
    };
}

/// The loop that converts elements held as `from` to elements held as `to`; `None` where the held
/// values are the same.
///
/// A half type is held in `f32`, or two of them: a cast to it rounds there, one from it has nothing to do.
pub(crate) fn cast(from: DType, to: DType, isa: Isa) -> Option<TileFn> {
    match to {
        DType::F16 | DType::BF16 => return Some(to_half(from, to, Upto256(isa))),
        DType::C32 => return Some(to_half_complex(from, Upto256(isa))),
        _ if held(from) == held(to) => return None,
        _ => {}
    }
    let isa = Upto256(isa);
    // To an unsigned integer: what is below zero goes by way of the signed one.
    macro_rules! from_number {
        ($t:ty, |$x:ident| $is_zero:expr, $narrow:ident $wide:ident) => {
            match held(to) {
                DType::Bool => lane1!(isa, $t => u8, |$x| u8::from(!$is_zero)),
                DType::U8 => lane1!(isa, $t => u8, |x| $narrow!(x, u8)),
                DType::U16 => lane1!(isa, $t => u16, |x| $narrow!(x, u16)),
                DType::U32 => lane1!(isa, $t => u32, |x| $narrow!(x, u32)),
                DType::U64 => lane1!(isa, $t => u64, |x| $wide!(x, u64)),
                DType::I8 => lane1!(isa, $t => i8, |x| x as i8),
                DType::I16 => lane1!(isa, $t => i16, |x| x as i16),
                DType::I32 => lane1!(isa, $t => i32, |x| x as i32),
                DType::I64 => lane1!(isa, $t => i64, |x| x as i64),
                DType::F64 => lane1!(isa, $t => f64, |x| x as f64),
                DType::C32 | DType::C64 => {
                    lane1!(isa, $t => Complex32, |x| Complex32::new(x as f32, 0.0))
                }
                DType::F32 | DType::F16 | DType::BF16 => lane1!(isa, $t => f32, |x| x as f32),
            }
        };
    }
    Some(match held(from) {
        DType::Bool | DType::U8 => from_number!(u8, |x| (x == 0), wrapped wrapped),
        DType::U16 => from_number!(u16, |x| (x == 0), wrapped wrapped),
        DType::U32 => from_number!(u32, |x| (x == 0), wrapped wrapped),
        DType::U64 => from_number!(u64, |x| (x == 0), wrapped wrapped),
        DType::I8 => from_number!(i8, |x| (x == 0), wrapped wrapped),
        DType::I16 => from_number!(i16, |x| (x == 0), wrapped wrapped),
        DType::I32 => from_number!(i32, |x| (x == 0), wrapped wrapped),
        DType::I64 => from_number!(i64, |x| (x == 0), wrapped wrapped),
        DType::F32 | DType::F16 | DType::BF16 => {
            from_number!(f32, |x| (x == 0.0), by_int32 by_int64)
        }
        DType::F64 => from_number!(f64, |x| (x == 0.0), by_int32 by_int64),
        DType::C32 | DType::C64 => from_complex(to, isa),
    })
}

/// The dtype that registers of `dtype` are held in.
pub(crate) fn held(dtype: DType) -> DType {
    dtype.accumulator()
}

fn from_complex(to: DType, isa: Upto256) -> TileFn {
    macro_rules! real {
        ($t:ty) => {
            lane1!(isa, Complex32 => $t, |x| x.re as $t)
        };
    }
    match to {
        DType::Bool => lane1!(isa, Complex32 => u8, |x| u8::from(x.re != 0.0 || x.im != 0.0)),
        DType::U8 => lane1!(isa, Complex32 => u8, |x| by_int32!(x.re, u8)),
        DType::U16 => lane1!(isa, Complex32 => u16, |x| by_int32!(x.re, u16)),
        DType::U32 => lane1!(isa, Complex32 => u32, |x| by_int32!(x.re, u32)),
        DType::U64 => lane1!(isa, Complex32 => u64, |x| by_int64!(x.re, u64)),
        DType::I8 => real!(i8),
        DType::I16 => real!(i16),
        DType::I32 => real!(i32),
        DType::I64 => real!(i64),
        DType::F64 => real!(f64),
        DType::F32 | DType::F16 | DType::BF16 | DType::C32 | DType::C64 => real!(f32),
    }
}

/// The loop that rounds what was computed in `f32` to the half type `dtype`, and holds it in `f32`.
pub(crate) fn round(dtype: DType, isa: Isa) -> TileFn {
    match dtype {
        DType::C32 => to_half_complex(dtype, Upto256(isa)),
        _ => to_half(DType::F32, dtype, Upto256(isa)),
    }
}

/// `round` of an element held as `from`, and of the `f32` that rounds to a half type as it does.
macro_rules! once {
    ($round:ident, $from:expr) => {
        match held($from) {
            DType::Bool | DType::U8 => $round!(u8, |x| f32::from(x)),
            DType::U16 => $round!(u16, |x| f32::from(x)),
            DType::I8 => $round!(i8, |x| f32::from(x)),
            DType::I16 => $round!(i16, |x| f32::from(x)),
            DType::U32 => $round!(u32, |x| to_odd(f64::from(x))),
            DType::I32 => $round!(i32, |x| to_odd(f64::from(x))),
            DType::U64 => $round!(u64, |x| to_odd(sticky(x))),
            DType::I64 => $round!(i64, |x| {
                let size = to_odd(sticky(x.unsigned_abs()));
                if x < 0 { -size } else { size }
            }),
            DType::F64 => $round!(f64, |x| to_odd(x)),
            DType::C32 | DType::C64 => $round!(Complex32, |x| x.re),
            DType::F32 | DType::F16 | DType::BF16 => $round!(f32, |x| x),
        }
    };
}

/// Rounds to a half type once, and holds the result in `f32`.
fn to_half(from: DType, to: DType, isa: Upto256) -> TileFn {
    macro_rules! round {
        ($t:ty, |$x:ident| $single:expr) => {
            if to == DType::F16 {
                lane1!(isa, $t => f32, |$x| f16_to_f32(f32_to_f16($single)))
            } else {
                lane1!(isa, $t => f32, |$x| bf16_to_f32(f32_to_bf16($single)))
            }
        };
    }
    once!(round, from)
}

/// Rounds both parts to `float16` once, and holds the result in two `f32`.
fn to_half_complex(from: DType, isa: Upto256) -> TileFn {
    macro_rules! round {
        ($t:ty, |$x:ident| $single:expr) => {
            lane1!(isa, $t => Complex32, |$x| Complex32::new(f16_to_f32(f32_to_f16($single)), 0.0))
        };
    }
    if held(from) == DType::C64 {
        return lane1!(isa, Complex32 => Complex32, |x| Complex32::new(
            f16_to_f32(f32_to_f16(x.re)),
            f16_to_f32(f32_to_f16(x.im))
        ));
    }
    once!(round, from)
}

/// An integer as `f64`, with the bits that do not fit gathered in the last one.
#[inline(always)]
fn sticky(x: u64) -> f64 {
    let low = u64::from(x & 0xfff != 0) << 12;
    let cut = (x & !0xfff) | low;
    (if x >> 53 == 0 { x } else { cut }) as f64
}

/// The `f32` next to `x`, odd where `x` is not an `f32`: then rounding it again to a half type
/// gives what rounding `x` gives.
#[inline(always)]
fn to_odd(x: f64) -> f32 {
    let y = x as f32;
    let back = f64::from(y);
    let bits = y.to_bits();
    // Towards zero first, then set the last bit.
    let away = back.abs() > x.abs();
    let truncated = if away { bits.wrapping_sub(1) } else { bits };
    let odd = if back == x || x.is_nan() { bits } else { truncated | 1 };
    f32::from_bits(odd)
}

/// The loop that loads stored elements of a half type.
pub(crate) fn widen(dtype: DType, isa: Isa) -> TileFn {
    match dtype {
        DType::C32 => lane1!(isa, [u16; 2] => Complex32, |x| {
            Complex32::new(f16_to_f32(x[0]), f16_to_f32(x[1]))
        }),
        DType::F16 => lane1!(isa, u16 => f32, |x| f16_to_f32(x)),
        _ => lane1!(isa, u16 => f32, |x| bf16_to_f32(x)),
    }
}

/// The loop that rounds to elements of a half type and stores them.
pub(crate) fn narrow(dtype: DType, isa: Isa) -> TileFn {
    match dtype {
        DType::C32 => lane1!(isa, Complex32 => [u16; 2], |x| [f32_to_f16(x.re), f32_to_f16(x.im)]),
        DType::F16 => lane1!(isa, f32 => u16, |x| f32_to_f16(x)),
        _ => lane1!(isa, f32 => u16, |x| f32_to_bf16(x)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_numbers_round_once() {
        let above_half = 2f64.powi(-40);
        assert_eq!(f32_to_f16(to_odd(1.0 + 2f64.powi(-11) + above_half)), 0x3c01);
        assert_eq!(f32_to_f16(to_odd(-1.0 - 2f64.powi(-11) - above_half)), 0xbc01);
        assert_eq!(f32_to_f16(to_odd(1.0 + 2f64.powi(-11) - above_half)), 0x3c00);
        assert_eq!(f32_to_bf16(to_odd(1.0 + 2f64.powi(-8) + above_half)), 0x3f81);
        assert_eq!(f32_to_f16(to_odd(1e300)), 0x7c00);
        assert_eq!(f32_to_bf16(to_odd(-1e300)), 0xff80);
        assert_eq!(f32_to_f16(to_odd(-1e-300)), 0x8000);
        assert_eq!(f32_to_bf16(to_odd(sticky((1 << 62) + (1 << 54) + 1))), 0x5e81);
    }
}
