//! `pow`, through a logarithm in two parts, as in FreeBSD's `e_powf.c`.

use std::f32::consts::LN_2;

use super::exp::{near_zero, nearest, scales};
use super::log::split;
use super::{HALF, INFINITY, ONE};
use crate::ir::{Build, Ty, Un, Val};

/// `e + log₂ m` for m in [√½, √2), as a part with 12 bits and the rest; good to about 2⁻³⁴ of it.
///
/// With s = (m − 1)/(m + 1), ln m = ⅔·s·(3 + s² + s⁴·(3/5 + 3/7·s² + …)). FreeBSD reduces m
/// further, by a table of two; here one more term of the series does instead.
fn log2_in_parts(b: &mut Build, e: Val, m: Val) -> (Val, Val) {
    // ⅔·log₂ e.
    const SCALE: f32 = 0.961_796_7;
    const SCALE_HI: f32 = 0.961_914_06;
    const SCALE_LO: f32 = -1.173_685_74e-4;
    let (f, d) = (b.plus(m, -1.0), b.plus(m, 1.0));
    let d_hi = b.high(d, HALF);
    let d_lo = b.plus(d_hi, -1.0);
    let d_lo = b.sub(m, d_lo);
    let one = b.f32(1.0);
    let inverse = b.div(one, d);
    let s = b.mul(f, inverse);
    let s_hi = b.high(s, HALF);
    // What is left of the quotient, however roughly it was divided.
    let (left, right) = (b.mul(s_hi, d_hi), b.mul(s_hi, d_lo));
    let s_lo = b.sub(f, left);
    let s_lo = b.sub(s_lo, right);
    let s_lo = b.mul(s_lo, inverse);
    let z = b.mul(s, s);
    let r = b.poly(z, &[3.0 / 13.0, 3.0 / 11.0, 3.0 / 9.0, 3.0 / 7.0, 3.0 / 5.0]);
    let zz = b.mul(z, z);
    let (r, both) = (b.mul(r, zz), b.add(s_hi, s));
    let r = b.fma(s_lo, both, r);
    let z = b.mul(s_hi, s_hi);
    let t_hi = b.plus(z, 3.0);
    let t_hi = b.add(t_hi, r);
    let t_hi = b.high(t_hi, HALF);
    let t_lo = b.plus(t_hi, -3.0);
    let t_lo = b.sub(t_lo, z);
    let t_lo = b.sub(r, t_lo);
    let (u, v) = (b.mul(s_hi, t_hi), b.mul(t_lo, s));
    let v = b.fma(s_lo, t_hi, v);
    let p_hi = b.add(u, v);
    let p_hi = b.high(p_hi, HALF);
    let p_lo = b.sub(p_hi, u);
    let p_lo = b.sub(v, p_lo);
    let (z_hi, z_lo) = (b.times(p_hi, SCALE_HI), b.times(p_hi, SCALE_LO));
    let z_lo = b.fma_with(p_lo, SCALE, z_lo);
    let hi = b.add(z_hi, z_lo);
    let hi = b.add(hi, e);
    let hi = b.high(hi, HALF);
    let lo = b.sub(hi, e);
    let lo = b.sub(lo, z_hi);
    (hi, b.sub(z_lo, lo))
}

/// 2ᵃ⁺ᶜ, where a has at most 24 bits and c is small against it.
fn exp2_of_parts(b: &mut Build, a: Val, c: Val) -> Val {
    let sum = b.add(a, c);
    let (k, integer) = nearest(b, sum);
    let f = b.sub(a, k);
    let f = b.add(f, c);
    let r = b.times(f, LN_2);
    let p = near_zero(b, r);
    let p = b.plus(p, 1.0);
    let (first, second) = scales(b, integer);
    let p = b.mul(p, first);
    let p = b.mul(p, second);
    let infinite = b.above(sum, 129.0);
    let p = b.put(infinite, f32::INFINITY, p);
    let zero = b.below(sum, -151.0);
    b.put(zero, 0.0, p)
}

/// xʸ with the special cases of IEEE 754 `pow`; 1.5 ulp.
pub(super) fn pow(b: &mut Build, x: Val, y: Val) -> Val {
    let (x_size, y_size) = (b.magnitude(x), b.magnitude(y));
    let (x_sign, y_sign) = (b.sign(x), b.sign(y));
    let (e, m) = split(b, x_size);
    let (hi, lo) = log2_in_parts(b, e, m);
    // Beyond 2⁴⁰ the result is 0, 1 or infinite, and y is even.
    let most = b.u32(0x5380_0000);
    let cut = b.min_int(y_size, most);
    let cut = b.or(cut, y_sign);
    let cut = b.float_of(cut);
    let cut_hi = b.high(cut, HALF);
    let cut_lo = b.sub(cut, cut_hi);
    let (product, rest) = (b.mul(cut_hi, hi), b.mul(cut, lo));
    let rest = b.fma(cut_lo, hi, rest);
    let r = exp2_of_parts(b, product, rest);
    // 0 and infinity.
    let (zero, infinity, one) = (b.u32(0), b.u32(INFINITY), b.u32(ONE));
    let (of_zero, of_infinity) = (b.eq(x_size, zero), b.eq(x_size, infinity));
    let y_negative = b.ne(y_sign, zero);
    let vanishes = b.xor(of_zero, y_negative);
    let (none, infinite) = (b.f32(0.0), b.f32(f32::INFINITY));
    let extreme = b.select(vanishes, none, infinite);
    let is_extreme = b.or(of_zero, of_infinity);
    let r = b.select(is_extreme, extreme, r);
    // Negative x.
    let half = b.times(cut, 0.5);
    let (whole, whole_half) = (b.un(Un::Trunc, cut), b.un(Un::Trunc, half));
    let (fraction, odd) = (b.ne(whole, cut), b.ne(whole_half, half));
    let r_sign = b.select(odd, x_sign, zero);
    let r_sign = b.select(fraction, zero, r_sign);
    let r = b.flip(r, r_sign);
    let x_negative = b.ne(x_sign, zero);
    let usual = b.not(is_extreme);
    let bad = b.and(x_negative, fraction);
    let bad = b.and(bad, usual);
    let (x_nan, y_nan) = (b.gt(x_size, infinity), b.gt(y_size, infinity));
    let bad = b.or(bad, x_nan);
    let bad = b.or(bad, y_nan);
    let r = b.put(bad, f32::NAN, r);
    let x_bits = b.bits(x, Ty::U32);
    let (x_one, y_zero) = (b.eq(x_bits, one), b.eq(y_size, zero));
    let is_one = b.or(x_one, y_zero);
    b.put(is_one, 1.0, r)
}
