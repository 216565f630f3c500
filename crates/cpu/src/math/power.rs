//! `pow`, through the exponential and the logarithm in `f64`.

use super::log::log64;
use super::{Arch, fma64, poly64};

/// eˣ in `f64`, to 1e-12: enough for any `f32` result.
#[inline(always)]
pub(super) fn exp64<A: Arch>(x: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN2_HI: f64 = 0.693_147_180_369_123_8;
    const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
    let x = if x < -700.0 { -700.0 } else { x };
    let x = if x > 700.0 { 700.0 } else { x };
    let rounded = fma64::<A>(x, std::f64::consts::LOG2_E, ROUND);
    let k = rounded - ROUND;
    let r = fma64::<A>(k, -LN2_LO, fma64::<A>(k, -LN2_HI, x));
    let p = poly64::<A, 11>(
        r,
        [
            1.0 / 3_628_800.0,
            1.0 / 362_880.0,
            1.0 / 40_320.0,
            1.0 / 5_040.0,
            1.0 / 720.0,
            1.0 / 120.0,
            1.0 / 24.0,
            1.0 / 6.0,
            0.5,
            1.0,
            1.0,
        ],
    );
    let exponent = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(1023);
    p * f64::from_bits(exponent << 52)
}

/// Whether `x` is an integer; for `|x| < 2⁵¹`.
#[inline(always)]
fn is_integer<A: Arch>(x: f64) -> bool {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    (x + ROUND) - ROUND == x
}

/// xʸ with the special cases of IEEE 754 `pow`; 1 ulp.
#[inline(always)]
pub(crate) fn pow<A: Arch>(x: f32, y: f32) -> f32 {
    let (a, b) = (f64::from(x.abs()), f64::from(y));
    let exponent = b * log64::<A>(a);
    // (±1)^±∞ is 1, not 0·∞.
    let exponent = if a == 1.0 && !y.is_nan() { 0.0 } else { exponent };
    let r = exp64::<A>(exponent) as f32;
    // From 2²⁴ on every f32 is an even integer.
    let large = y.abs() >= 16_777_216.0;
    let integer = large || is_integer::<A>(b);
    let odd = !large && integer && !is_integer::<A>(0.5 * b);
    let r = if x.is_sign_negative() && odd { -r } else { r };
    let r = if x < 0.0 && x > f32::NEG_INFINITY && !integer { f32::NAN } else { r };
    if y == 0.0 || x == 1.0 { 1.0 } else { r }
}
