//! Logarithms and the inverse hyperbolic functions. The polynomial is that of Cephes `logf`, the
//! splitting into high and low parts of `log2` and `log10` that of FreeBSD's `e_log2f.c` and
//! `e_log10f.c`, the arguments of `log1p` those of its `s_asinhf.c`, `e_acoshf.c` and `e_atanhf.c`.

use super::exp::{LN2_HI, LN2_LO};
use super::{HALF, INFINITY, ONE};
use crate::ir::{Build, Ty, Un, Val};

/// The number with these bits as `2ᵉ·m` with `m` in [√½, √2), as `(e, m)`; positive and normal.
fn split_normal(b: &mut Build, bits: Val, bias: Val) -> (Val, Val) {
    const LOW: u32 = 0x3f35_04f3;
    let shift = b.u32(ONE - LOW);
    let bits = b.add(bits, shift);
    let e = b.down(bits, 23);
    let e = b.bits(e, Ty::I32);
    let e = b.sub(e, bias);
    let (low, m) = (b.u32(LOW), b.and_bits(bits, 0x7f_ffff));
    let m = b.add(m, low);
    (b.convert(e, Ty::F32), b.float_of(m))
}

/// The same, and subnormal ones, which a device may take for 0: they are integers times 2⁻¹⁴⁹.
pub(super) fn split(b: &mut Build, bits: Val) -> (Val, Val) {
    let least = b.u32(0x80_0000);
    let subnormal = b.lt(bits, least);
    let integer = b.convert(bits, Ty::F32);
    let integer = b.bits(integer, Ty::U32);
    let bits = b.select(subnormal, integer, bits);
    let (usual, of_integer) = (b.i32(127), b.i32(127 + 149));
    let bias = b.select(subnormal, of_integer, usual);
    split_normal(b, bits, bias)
}

/// `ln(1 + f) = f − h + c` for `1 + f` in [√½, √2), as `(h, c)`.
fn parts(b: &mut Build, f: Val) -> (Val, Val) {
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
    let (p, square) = (b.poly(f, &p), b.mul(f, f));
    let cubic = b.mul(p, f);
    (b.times(square, 0.5), b.mul(cubic, square))
}

/// `e·ln 2 + ln(1 + f) + correction`.
fn natural(b: &mut Build, e: Val, f: Val, correction: Option<Val>) -> Val {
    let (half_square, cubic) = parts(b, f);
    let mut small = b.sub(cubic, half_square);
    if let Some(c) = correction {
        small = b.add(small, c);
    }
    let small = b.fma_with(e, LN2_LO, small);
    let y = b.add(f, small);
    b.fma_with(e, LN2_HI, y)
}

/// `y`, but what a logarithm is where `x` is not positive and finite.
fn special(b: &mut Build, x: Val, y: Val) -> Val {
    let bits = b.bits(x, Ty::U32);
    let (zero, infinity) = (b.u32(0), b.u32(INFINITY));
    let y = b.keep_nan(x, y);
    let is_infinity = b.eq(bits, infinity);
    let y = b.select(is_infinity, x, y);
    let negative = b.gt(bits, infinity);
    let y = b.put(negative, f32::NAN, y);
    let without_sign = b.up(bits, 1);
    let is_zero = b.eq(without_sign, zero);
    b.put(is_zero, f32::NEG_INFINITY, y)
}

/// ln x of a normal positive number.
pub(super) fn log_normal(b: &mut Build, x: Val) -> Val {
    let (bits, bias) = (b.bits(x, Ty::U32), b.i32(127));
    let (e, m) = split_normal(b, bits, bias);
    let f = b.plus(m, -1.0);
    natural(b, e, f, None)
}

/// ln x; 1 ulp.
pub(super) fn log(b: &mut Build, x: Val) -> Val {
    let bits = b.bits(x, Ty::U32);
    let (e, m) = split(b, bits);
    let f = b.plus(m, -1.0);
    let y = natural(b, e, f, None);
    special(b, x, y)
}

/// ln(1 + x) for finite x > −1.
fn log1p_inside(b: &mut Build, x: Val) -> Val {
    let u = b.plus(x, 1.0);
    let u = b.opaque(u);
    let (bits, bias) = (b.bits(u, Ty::U32), b.i32(127));
    let (e, m) = split_normal(b, bits, bias);
    // What the rounding of u lost, relative to u.
    let (without_x, without_one) = (b.sub(u, x), b.plus(u, -1.0));
    let (lost_one, lost_x) = (b.minus_from(1.0, without_x), b.sub(x, without_one));
    let large = b.above(x, 1.0);
    let lost = b.select(large, lost_one, lost_x);
    let zero = b.f32(0.0);
    let near = b.eq(e, zero);
    let correction = b.div(lost, u);
    let correction = b.select(near, zero, correction);
    let f = b.plus(m, -1.0);
    let f = b.select(near, x, f);
    let y = natural(b, e, f, Some(correction));
    let size = b.abs(x);
    let tiny = b.below(size, 1e-8);
    b.select(tiny, x, y)
}

/// ln(1 + x); 1 ulp.
pub(super) fn log1p(b: &mut Build, x: Val) -> Val {
    let y = log1p_inside(b, x);
    let u = b.plus(x, 1.0);
    let y = special(b, u, y);
    b.keep_nan(x, y)
}

/// `ln m` as a high part with 12 bits and the rest, and e, for `x = 2ᵉ·m`.
fn high_low(b: &mut Build, x: Val) -> (Val, Val, Val) {
    let bits = b.bits(x, Ty::U32);
    let (e, m) = split(b, bits);
    let f = b.plus(m, -1.0);
    let (half_square, cubic) = parts(b, f);
    let whole = b.sub(f, half_square);
    let high = b.high(whole, HALF);
    let rest = b.sub(f, high);
    let rest = b.sub(rest, half_square);
    (high, b.add(rest, cubic), e)
}

/// log₂ x; 1 ulp.
pub(super) fn log2(b: &mut Build, x: Val) -> Val {
    const HI: f32 = 1.442_871_1;
    const LO: f32 = -1.760_528_5e-4;
    let (high, low, e) = high_low(b, x);
    let both = b.add(low, high);
    let y = b.times(both, LO);
    let y = b.fma_with(low, HI, y);
    let y = b.fma_with(high, HI, y);
    let y = b.add(y, e);
    special(b, x, y)
}

/// log₁₀ x; 1 ulp.
pub(super) fn log10(b: &mut Build, x: Val) -> Val {
    const HI: f32 = 0.434_326_17;
    const LO: f32 = -3.168_997e-5;
    const TWO_HI: f32 = 0.301_029_2;
    const TWO_LO: f32 = 7.903_415e-7;
    let (high, low, e) = high_low(b, x);
    let both = b.add(low, high);
    let y = b.times(e, TWO_LO);
    let y = b.fma_with(both, LO, y);
    let y = b.fma_with(low, HI, y);
    let y = b.fma_with(high, HI, y);
    let y = b.fma_with(e, TWO_HI, y);
    special(b, x, y)
}

/// ln(1 + w), or where `x` is so large that w would be 2x, ln(2x).
fn log1p_or_twice(b: &mut Build, x: Val, w: Val) -> Val {
    let large = b.above(x, 16_777_216.0);
    let w = b.select(large, x, w);
    let y = log1p_inside(b, w);
    let more = b.plus(y, std::f32::consts::LN_2);
    b.select(large, more, y)
}

/// arsinh x; 2.5 ulp.
pub(super) fn asinh(b: &mut Build, x: Val) -> Val {
    let a = b.abs(x);
    let square = b.mul(a, a);
    let root = b.plus(square, 1.0);
    let root = b.un(Un::Sqrt, root);
    let root = b.plus(root, 1.0);
    let w = b.div(square, root);
    let w = b.add(a, w);
    let y = log1p_or_twice(b, a, w);
    let (sign, size, infinity) = (b.sign(x), b.magnitude(x), b.u32(INFINITY));
    let y = b.flip(y, sign);
    let finite = b.lt(size, infinity);
    b.select(finite, y, x)
}

/// arcosh x; 2 ulp.
pub(super) fn acosh(b: &mut Build, x: Val) -> Val {
    // As signed integers, every negative number is small, and infinity and NaN are large.
    let bits = b.bits(x, Ty::I32);
    let (one, infinity) = (b.i32(ONE as i32), b.i32(INFINITY as i32));
    let t = b.plus(x, -1.0);
    let more = b.plus(t, 2.0);
    let square = b.mul(t, more);
    let root = b.root(square);
    let w = b.add(t, root);
    let y = log1p_or_twice(b, x, w);
    let outside = b.lt(bits, one);
    let y = b.put(outside, f32::NAN, y);
    let not_finite = b.ge(bits, infinity);
    b.select(not_finite, x, y)
}

/// artanh x; 2.5 ulp.
pub(super) fn atanh(b: &mut Build, x: Val) -> Val {
    let a = b.abs(x);
    let (twice, rest) = (b.add(a, a), b.minus_from(1.0, a));
    let product = b.mul(twice, a);
    let w = b.div(product, rest);
    let w = b.add(twice, w);
    let y = log1p_inside(b, w);
    let y = b.times(y, 0.5);
    let (size, one) = (b.magnitude(x), b.u32(ONE));
    let edge = b.eq(size, one);
    let y = b.put(edge, f32::INFINITY, y);
    let sign = b.sign(x);
    let y = b.flip(y, sign);
    let outside = b.gt(size, one);
    b.put(outside, f32::NAN, y)
}
