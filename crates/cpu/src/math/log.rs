//! Logarithms. The polynomial of `log` is that of Cephes `logf`, the splitting into high and low
//! parts of `log2` and `log10` that of FreeBSD's `e_log2f.c` and `e_log10f.c`.

use super::{Arch, exp, fma, fma64, poly, poly64};

const LN2_HI: f32 = 0.693_359_4;
const LN2_LO: f32 = -2.121_944_4e-4;

/// `x = 2ᵉ·m` with `m` in [√½, √2), for positive finite `x`.
#[inline(always)]
fn split(x: f32) -> (f32, f32) {
    const LOW: u32 = 0x3f35_04f3;
    let subnormal = x < f32::MIN_POSITIVE;
    let y = if subnormal { x * 8_388_608.0 } else { x };
    let bits = y.to_bits().wrapping_add(0x3f80_0000 - LOW);
    let bias = if subnormal { 127 + 23 } else { 127 };
    let e = (bits >> 23) as i32 - bias;
    (e as f32, f32::from_bits((bits & 0x7f_ffff) + LOW))
}

/// `ln(1 + f) − f` for `1 + f` in [√½, √2).
#[inline(always)]
fn tail<A: Arch>(f: f32) -> f32 {
    let z = f * f;
    let p = poly::<A, 9>(
        f,
        [
            7.037_683_6e-2,
            -0.115_146_1,
            0.116_769_984,
            -0.124_201_41,
            0.142_493_23,
            -0.166_680_58,
            0.200_007_15,
            -0.249_999_94,
            0.333_333_3,
        ],
    );
    fma::<A>(z, -0.5, p * f * z)
}

/// `y`, but what a logarithm is where `x` is not positive and finite.
#[inline(always)]
fn special(x: f32, y: f32) -> f32 {
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x < 0.0 { f32::NAN } else { y }
}

/// ln x; 1 ulp.
#[inline(always)]
pub(crate) fn log<A: Arch>(x: f32) -> f32 {
    let (e, m) = split(x);
    let f = m - 1.0;
    let y = f + fma::<A>(e, LN2_LO, tail::<A>(f));
    special(x, fma::<A>(e, LN2_HI, y))
}

/// ln(1 + x); 2 ulp.
#[inline(always)]
pub(crate) fn log1p<A: Arch>(x: f32) -> f32 {
    let u = 1.0 + x;
    let (e, m) = split(u);
    // What the rounding of u lost, relative to u.
    let lost = if e >= 2.0 { 1.0 - (u - x) } else { x - (u - 1.0) };
    let near = e == 0.0;
    let c = if near { 0.0 } else { lost / u };
    let f = if near { x } else { m - 1.0 };
    let y = f + fma::<A>(e, LN2_LO, tail::<A>(f) + c);
    let y = special(u, fma::<A>(e, LN2_HI, y));
    if x.abs() < 1e-8 { x } else { y }
}

/// `ln m` as a high part with few bits and the rest.
#[inline(always)]
fn high_low<A: Arch>(m: f32) -> (f32, f32) {
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let r = z * poly::<A, 4>(z, [0.242_790_79, 0.284_987_87, 0.400_009_72, 0.666_666_6]);
    let half_square = 0.5 * f * f;
    let high = f32::from_bits((f - half_square).to_bits() & 0xffff_f000);
    (high, (f - high) - half_square + s * (half_square + r))
}

/// log₂ x; 1 ulp.
#[inline(always)]
pub(crate) fn log2<A: Arch>(x: f32) -> f32 {
    const HI: f32 = 1.442_871_1;
    const LO: f32 = -1.760_528_5e-4;
    let (e, m) = split(x);
    let (high, low) = high_low::<A>(m);
    special(x, (low + high) * LO + low * HI + high * HI + e)
}

/// log₁₀ x; 2 ulp.
#[inline(always)]
pub(crate) fn log10<A: Arch>(x: f32) -> f32 {
    const HI: f32 = 0.434_326_17;
    const LO: f32 = -3.168_997e-5;
    const TWO_HI: f32 = 0.301_029_2;
    const TWO_LO: f32 = 7.903_415e-7;
    let (e, m) = split(x);
    let (high, low) = high_low::<A>(m);
    special(x, e * TWO_LO + (low + high) * LO + low * HI + high * HI + e * TWO_HI)
}

/// ln(eᵃ + eᵇ); 2 ulp, where the two terms do not cancel.
#[inline(always)]
pub(crate) fn logaddexp<A: Arch>(a: f32, b: f32) -> f32 {
    let larger = if a > b { a } else { b };
    let y = larger + log1p::<A>(exp::<A>(-(a - b).abs()));
    // Equal infinities differ by NaN.
    if a == b { a + std::f32::consts::LN_2 } else { y }
}

/// ln x in `f64`, to 1e-13: enough for any `f32` result.
#[inline(always)]
pub(super) fn log64<A: Arch>(x: f64) -> f64 {
    const LOW: u64 = 0x3fe6_a09e_667f_3bcd;
    const INTEGER: u64 = 0x4330_0000_0000_0000;
    let bits = x.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - LOW);
    // The exponent as a number without a conversion from 64-bit integers, which AVX2 lacks.
    let e = f64::from_bits((bits >> 52) | INTEGER) - (f64::from_bits(INTEGER) + 1023.0);
    let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + LOW);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let p = poly64::<A, 8>(
        z,
        [2.0 / 15.0, 2.0 / 13.0, 2.0 / 11.0, 2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0, 2.0],
    );
    let y = fma64::<A>(e, std::f64::consts::LN_2, s * p);
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x < 0.0 { f64::NAN } else { y }
}
