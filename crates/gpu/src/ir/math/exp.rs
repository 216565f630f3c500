//! The exponential and what is made of it. Reduction and coefficients as in Cephes `expf`, `sinhf`
//! and `tanhf`.

use std::f32::consts::LOG2_E;

use super::ROUND;
use crate::ir::{Ty, Val};

/// ln 2 in a part with 9 bits, whose product with an exponent is exact, and the rest.
pub(super) const LN2_HI: f32 = 0.693_359_4;
pub(super) const LN2_LO: f32 = -2.121_944_4e-4;

/// The nearest integer, as a float and as an `i32`; below 2²².
pub(super) fn nearest(x: Val<'_>) -> (Val<'_>, Val<'_>) {
    let sum = (x + ROUND).opaque();
    (sum + -ROUND, sum.bits(Ty::I32) - ROUND.to_bits())
}

/// `x = k·ln 2 + r` with `|r| ≤ ½·ln 2`, as `(r, k)`.
fn reduce(x: Val<'_>) -> (Val<'_>, Val<'_>) {
    let (k, integer) = nearest(x * LOG2_E);
    let r = k.fma(-LN2_HI, x).opaque();
    (k.fma(-LN2_LO, r), integer)
}

/// `eʳ − 1` for `|r| ≤ ½·ln 2`.
pub(super) fn near_zero(r: Val<'_>) -> Val<'_> {
    let p = [1.987_569_2e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5];
    r.poly(&p).fma(r * r, r)
}

/// `2ᵏ` in two factors, so that neither overflows where the product does not.
pub(super) fn scales(k: Val<'_>) -> (Val<'_>, Val<'_>) {
    let half = k >> 1;
    let rest = k - half;
    (power_of_two(half), power_of_two(rest))
}

/// `2ᵏ` of a normal number.
fn power_of_two(k: Val<'_>) -> Val<'_> {
    ((k + 127) << 23).bits(Ty::F32)
}

/// `eˣ·2ⁿ` for |x| ≤ 104.
pub(super) fn scaled_exp(x: Val<'_>, n: i32) -> Val<'_> {
    let (r, k) = reduce(x);
    let k = if n == 0 { k } else { k + n };
    let p = near_zero(r) + 1.0;
    let (first, second) = scales(k);
    p * first * second
}

fn at_most(x: Val<'_>, most: f32) -> Val<'_> {
    x.gt(most).select(most, x)
}

/// Between where results are 0 and where they are infinite.
fn clamp(x: Val<'_>) -> Val<'_> {
    let x = at_most(x, 89.0);
    x.lt(-104.0).select(-104.0, x)
}

/// eˣ; 1 ulp.
pub(super) fn exp(x: Val<'_>) -> Val<'_> {
    scaled_exp(clamp(x), 0).nan_of(x)
}

/// eˣ − 1; 1.5 ulp.
pub(super) fn expm1(x: Val<'_>) -> Val<'_> {
    let (r, k) = reduce(clamp(x));
    let p = near_zero(r);
    let (first, second) = scales(k);
    // second·(first·p + first − 1/second), where 1/second is the exact power of two.
    let inverse = (0x7f00_0000 - second.bits(Ty::U32)).bits(Ty::F32);
    let y = first.fma(p, first - inverse) * second;
    let y = x.abs().lt(1e-8).select(x, y);
    y.nan_of(x)
}

/// ½·eˣ and ½·e⁻ˣ of x ≥ 0; neither overflows before sinh and cosh do.
fn halves(x: Val<'_>) -> (Val<'_>, Val<'_>) {
    let up = scaled_exp(at_most(x, 90.0), -1);
    (up, 0.25 / up)
}

/// sinh x; 2 ulp.
pub(super) fn sinh(x: Val<'_>) -> Val<'_> {
    let a = x.abs();
    let (up, down) = halves(a);
    let far = up - down;
    let square = a * a;
    let p = square.poly(&[2.037_219_1e-4, 8.330_284e-3, 0.166_667_16]) * square;
    let near = p.fma(a, a);
    let y = a.lt(1.0).select(near, far);
    y.flip(x.sign()).nan_of(x)
}

/// cosh x; 1.5 ulp.
pub(super) fn cosh(x: Val<'_>) -> Val<'_> {
    let (up, down) = halves(x.abs());
    (up + down).nan_of(x)
}

/// tanh x; 2.5 ulp.
pub(super) fn tanh(x: Val<'_>) -> Val<'_> {
    let a = x.abs();
    // From 9.02 on the result rounds to 1.
    let inside = at_most(a, 10.0);
    let e = scaled_exp(inside + inside, 0);
    let far = 1.0 - 2.0 / (e + 1.0);
    let square = inside * inside;
    let p = [-5.704_988_7e-3, 2.063_909e-2, -5.373_971_5e-2, 0.133_314_42, -0.333_332_8];
    let p = square.poly(&p) * square;
    let near = p.fma(a, a);
    let y = a.lt(0.625).select(near, far);
    y.flip(x.sign()).nan_of(x)
}
