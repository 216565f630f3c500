//! Logarithms and the inverse hyperbolic functions. The polynomial is that of Cephes `logf`, the
//! splitting into high and low parts of `log2` and `log10` that of FreeBSD's `e_log2f.c` and
//! `e_log10f.c`, the arguments of `log1p` those of its `s_asinhf.c`, `e_acoshf.c` and `e_atanhf.c`.

use super::exp::{LN2_HI, LN2_LO};
use super::{INFINITY, ONE, root};
use crate::ir::{Ty, Val};

/// The number with these bits as `2ᵉ·m` with `m` in [√½, √2), as `(e, m)`; positive and normal.
fn split_normal<'k>(bits: Val<'k>, bias: Val<'k>) -> (Val<'k>, Val<'k>) {
    const LOW: u32 = 0x3f35_04f3;
    let bits = bits + (ONE - LOW);
    let e = (bits >> 23).bits(Ty::I32) - bias;
    let m = (bits & 0x7f_ffff) + LOW;
    (e.convert(Ty::F32), m.bits(Ty::F32))
}

/// The same, and subnormal ones, which a device may take for 0: they are integers times 2⁻¹⁴⁹.
pub(super) fn split(bits: Val<'_>) -> (Val<'_>, Val<'_>) {
    let subnormal = bits.lt(0x80_0000);
    let integer = bits.convert(Ty::F32).bits(Ty::U32);
    let k = bits.k();
    let bias = subnormal.select(k.i32(127 + 149), 127);
    split_normal(subnormal.select(integer, bits), bias)
}

/// `ln(1 + f) = f − h + c` for `1 + f` in [√½, √2), as `(h, c)`.
fn parts(f: Val<'_>) -> (Val<'_>, Val<'_>) {
    let p = [
        7.037_683_6e-2,
        -0.115_146_1,
        0.116_769_984,
        -0.124_201_41,
        0.142_493_23,
        -0.166_680_58,
        0.200_007_15,
        -0.249_999_94,
        0.333_333_3,
    ];
    let (p, square) = (f.poly(&p), f * f);
    (square * 0.5, p * f * square)
}

/// `e·ln 2 + ln(1 + f) + correction`.
fn natural<'k>(e: Val<'k>, f: Val<'k>, correction: Option<Val<'k>>) -> Val<'k> {
    let (half_square, cubic) = parts(f);
    let small = cubic - half_square;
    let small = correction.map_or(small, |c| small + c);
    let y = f + e.fma(LN2_LO, small);
    e.fma(LN2_HI, y)
}

/// `y`, but what a logarithm is where `x` is not positive and finite.
fn special<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let bits = x.bits(Ty::U32);
    let y = y.nan_of(x);
    let y = bits.eq(INFINITY).select(x, y);
    let y = bits.gt(INFINITY).select(f32::NAN, y);
    let is_zero = (bits << 1).eq(0);
    is_zero.select(f32::NEG_INFINITY, y)
}

/// ln x of a normal positive number.
pub(super) fn log_normal(x: Val<'_>) -> Val<'_> {
    let (e, m) = split_normal(x.bits(Ty::U32), x.k().i32(127));
    natural(e, m + -1.0, None)
}

/// ln x; 1 ulp.
pub(super) fn log(x: Val<'_>) -> Val<'_> {
    let (e, m) = split(x.bits(Ty::U32));
    special(x, natural(e, m + -1.0, None))
}

/// ln(1 + x) for finite x > −1.
fn log1p_inside(x: Val<'_>) -> Val<'_> {
    let u = (x + 1.0).opaque();
    let (e, m) = split_normal(u.bits(Ty::U32), x.k().i32(127));
    // What the rounding of u lost, relative to u.
    let (without_x, without_one) = (u - x, u + -1.0);
    let (lost_one, lost_x) = (1.0 - without_x, x - without_one);
    let lost = x.gt(1.0).select(lost_one, lost_x);
    let near = e.eq(0.0);
    let correction = near.select(0.0, lost / u);
    let f = near.select(x, m + -1.0);
    let y = natural(e, f, Some(correction));
    x.abs().lt(1e-8).select(x, y)
}

/// ln(1 + x); 1 ulp.
pub(super) fn log1p(x: Val<'_>) -> Val<'_> {
    let y = log1p_inside(x);
    special(x + 1.0, y).nan_of(x)
}

/// `ln m` as a high part with 12 bits and the rest, and e, for `x = 2ᵉ·m`.
fn high_low(x: Val<'_>) -> (Val<'_>, Val<'_>, Val<'_>) {
    let (e, m) = split(x.bits(Ty::U32));
    let f = m + -1.0;
    let (half_square, cubic) = parts(f);
    let high = (f - half_square).high();
    (high, f - high - half_square + cubic, e)
}

/// log₂ x; 1 ulp.
pub(super) fn log2(x: Val<'_>) -> Val<'_> {
    const HI: f32 = 1.442_871_1;
    const LO: f32 = -1.760_528_5e-4;
    let (high, low, e) = high_low(x);
    let y = (low + high) * LO;
    let y = low.fma(HI, y);
    let y = high.fma(HI, y) + e;
    special(x, y)
}

/// log₁₀ x; 1 ulp.
pub(super) fn log10(x: Val<'_>) -> Val<'_> {
    const HI: f32 = 0.434_326_17;
    const LO: f32 = -3.168_997e-5;
    const TWO_HI: f32 = 0.301_029_2;
    const TWO_LO: f32 = 7.903_415e-7;
    let (high, low, e) = high_low(x);
    let both = low + high;
    let y = both.fma(LO, e * TWO_LO);
    let y = low.fma(HI, y);
    let y = high.fma(HI, y);
    special(x, e.fma(TWO_HI, y))
}

/// ln(1 + w), or where `x` is so large that w would be 2x, ln(2x).
fn log1p_or_twice<'k>(x: Val<'k>, w: Val<'k>) -> Val<'k> {
    let large = x.gt(16_777_216.0);
    let y = log1p_inside(large.select(x, w));
    large.select(y + std::f32::consts::LN_2, y)
}

/// arsinh x; 2.5 ulp.
pub(super) fn asinh(x: Val<'_>) -> Val<'_> {
    let a = x.abs();
    let square = a * a;
    let w = a + square / ((square + 1.0).sqrt() + 1.0);
    let y = log1p_or_twice(a, w);
    let (sign, size) = (x.sign(), x.magnitude());
    size.lt(INFINITY).select(y.flip(sign), x)
}

/// arcosh x; 2 ulp.
pub(super) fn acosh(x: Val<'_>) -> Val<'_> {
    // As signed integers, every negative number is small, and infinity and NaN are large.
    let bits = x.bits(Ty::I32);
    let t = x + -1.0;
    let w = t + root(t * (t + 2.0));
    let y = log1p_or_twice(x, w);
    let y = bits.lt(ONE).select(f32::NAN, y);
    bits.ge(INFINITY).select(x, y)
}

/// artanh x; 2.5 ulp.
pub(super) fn atanh(x: Val<'_>) -> Val<'_> {
    let a = x.abs();
    let twice = a + a;
    let w = twice + twice * a / (1.0 - a);
    let y = log1p_inside(w) * 0.5;
    let size = x.magnitude();
    let y = size.eq(ONE).select(f32::INFINITY, y);
    let y = y.flip(x.sign());
    size.gt(ONE).select(f32::NAN, y)
}
