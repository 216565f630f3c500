//! `pow`, through a logarithm in two parts, as in FreeBSD's `e_powf.c`.

use std::f32::consts::LN_2;

use super::exp::{near_zero, nearest, scales};
use super::log::split;
use super::{INFINITY, ONE};
use crate::ir::{Ty, Val};

/// `e + log₂ m` for m in [√½, √2), as a part with 12 bits and the rest; good to about 2⁻³⁴ of it.
///
/// With s = (m − 1)/(m + 1), ln m = ⅔·s·(3 + s² + s⁴·(3/5 + 3/7·s² + …)). FreeBSD reduces m
/// further, by a table of two; here one more term of the series does instead.
fn log2_in_parts<'k>(e: Val<'k>, m: Val<'k>) -> (Val<'k>, Val<'k>) {
    // ⅔·log₂ e.
    const SCALE: f32 = 0.961_796_7;
    const SCALE_HI: f32 = 0.961_914_06;
    const SCALE_LO: f32 = -1.173_685_74e-4;
    let (f, d) = (m + -1.0, m + 1.0);
    let d_hi = d.high();
    let d_lo = m - (d_hi + -1.0);
    let inverse = 1.0 / d;
    let s = f * inverse;
    let s_hi = s.high();
    // What is left of the quotient, however roughly it was divided.
    let s_lo = (f - s_hi * d_hi - s_hi * d_lo) * inverse;
    let z = s * s;
    let r = z.poly(&[3.0 / 13.0, 3.0 / 11.0, 3.0 / 9.0, 3.0 / 7.0, 3.0 / 5.0]) * (z * z);
    let r = s_lo.fma(s_hi + s, r);
    let z = s_hi * s_hi;
    let t_hi = (z + 3.0 + r).high();
    let t_lo = r - (t_hi + -3.0 - z);
    let (u, v) = (s_hi * t_hi, t_lo * s);
    let v = s_lo.fma(t_hi, v);
    let p_hi = (u + v).high();
    let p_lo = v - (p_hi - u);
    let (z_hi, z_lo) = (p_hi * SCALE_HI, p_hi * SCALE_LO);
    let z_lo = p_lo.fma(SCALE, z_lo);
    let hi = (z_hi + z_lo + e).high();
    (hi, z_lo - (hi - e - z_hi))
}

/// 2ᵃ⁺ᶜ, where a has at most 24 bits and c is small against it.
fn exp2_of_parts<'k>(a: Val<'k>, c: Val<'k>) -> Val<'k> {
    let sum = a + c;
    let (k, integer) = nearest(sum);
    let p = near_zero((a - k + c) * LN_2) + 1.0;
    let (first, second) = scales(integer);
    let p = p * first * second;
    let p = sum.gt(129.0).select(f32::INFINITY, p);
    sum.lt(-151.0).select(0.0, p)
}

/// xʸ with the special cases of IEEE 754 `pow`; 1.5 ulp.
pub(super) fn pow<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let (x_size, y_size) = (x.magnitude(), y.magnitude());
    let (x_sign, y_sign) = (x.sign(), y.sign());
    let (e, m) = split(x_size);
    let (hi, lo) = log2_in_parts(e, m);
    // Beyond 2⁴⁰ the result is 0, 1 or infinite, and y is even.
    let cut = (y_size.min(0x5380_0000) | y_sign).bits(Ty::F32);
    let cut_hi = cut.high();
    let rest = (cut - cut_hi).fma(hi, cut * lo);
    let r = exp2_of_parts(cut_hi * hi, rest);
    // 0 and infinity.
    let (of_zero, of_infinity) = (x_size.eq(0), x_size.eq(INFINITY));
    let vanishes = of_zero ^ y_sign.ne(0);
    let extreme = vanishes.select(x.like(0.0), f32::INFINITY);
    let is_extreme = of_zero | of_infinity;
    let r = is_extreme.select(extreme, r);
    // Negative x.
    let half = cut * 0.5;
    let (fraction, odd) = (cut.trunc().ne(cut), half.trunc().ne(half));
    let r_sign = odd.select(x_sign, 0);
    let r_sign = fraction.select(0, r_sign);
    let r = r.flip(r_sign);
    let bad = x_sign.ne(0) & fraction & !is_extreme;
    let bad = bad | x_size.gt(INFINITY) | y_size.gt(INFINITY);
    let r = bad.select(f32::NAN, r);
    let is_one = x.bits(Ty::U32).eq(ONE) | y_size.eq(0);
    is_one.select(1.0, r)
}
