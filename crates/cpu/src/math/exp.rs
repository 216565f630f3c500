//! The exponential and what is made of it. Reduction and coefficients of `exp` as in Cephes `expf`.

use super::{Arch, fma, poly};

/// Adding this leaves the nearest integer in the low bits of the sum.
pub(crate) const ROUND: f32 = 12_582_912.0;
pub(crate) const LN2_HI: f32 = 0.693_359_4;
pub(crate) const LN2_LO: f32 = -2.121_944_4e-4;

/// Where eˣ is 0, and where it is infinite.
pub(crate) const EXP_LOW: f32 = -104.0;
pub(crate) const EXP_HIGH: f32 = 89.0;

/// `(eʳ − 1 − r)/r²`, highest power first.
pub(crate) const EXP_TAIL: [f32; 6] =
    [1.987_569_2e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5];

/// From here on tanh x rounds to 1, and from where on its approximation takes x for that.
pub(crate) const TANH_ONE: f32 = 9.02;
pub(crate) const TANH_HIGH: f32 = 9.05;

/// Numerator and denominator of `tanh x/x`, in powers of x², highest first.
pub(crate) const TANH_P: [f32; 5] =
    [4.809_586_8e-8, 3.080_219_4e-5, 3.971_703_5e-3, 0.137_563_54, 1.0];
pub(crate) const TANH_Q: [f32; 6] =
    [6.851_235e-10, 1.557_423_8e-6, 4.141_283_5e-4, 2.760_401_2e-2, 0.470_896_86, 1.0];

/// `x = k·ln 2 + r` with `|r| ≤ ½·ln 2`, as `(r, k)`.
#[inline(always)]
fn reduce<A: Arch>(x: f32) -> (f32, i32) {
    let rounded = fma::<A>(x, std::f32::consts::LOG2_E, ROUND);
    let k = rounded - ROUND;
    let r = fma::<A>(k, -LN2_LO, fma::<A>(k, -LN2_HI, x));
    (r, (rounded.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32))
}

/// `eʳ − 1 − r` for `|r| ≤ ½·ln 2`.
#[inline(always)]
fn tail<A: Arch>(r: f32) -> f32 {
    poly::<A, 6>(r, EXP_TAIL) * (r * r)
}

/// `2ᵏ` in two factors, so that neither overflows where the product does not.
#[inline(always)]
fn scales(k: i32) -> (f32, f32) {
    let half = k >> 1;
    let pow2 = |e: i32| f32::from_bits((e.wrapping_add(127) as u32) << 23);
    (pow2(half), pow2(k.wrapping_sub(half)))
}

#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// eˣ; 1 ulp.
#[inline(always)]
pub(crate) fn exp<A: Arch>(x: f32) -> f32 {
    let (r, k) = reduce::<A>(clamp(x, EXP_LOW, EXP_HIGH));
    let (a, b) = scales(k);
    (1.0 + (r + tail::<A>(r))) * a * b
}

/// eˣ − 1; 2 ulp.
#[inline(always)]
pub(crate) fn expm1<A: Arch>(x: f32) -> f32 {
    let (r, k) = reduce::<A>(clamp(x, EXP_LOW, EXP_HIGH));
    let p = r + tail::<A>(r);
    let (a, b) = scales(k);
    // b·(a·p + a − 1/b); 1/b is the exact power of two.
    let inverse = f32::from_bits(0x7f00_0000_u32.wrapping_sub(b.to_bits()));
    let y = fma::<A>(a, p, a - inverse) * b;
    if x.abs() < 1e-8 { x } else { y }
}

/// 1/(1 + e⁻ˣ); 3 ulp.
#[inline(always)]
pub(crate) fn sigmoid<A: Arch>(x: f32) -> f32 {
    let e = exp::<A>(-x.abs());
    let top = if x < 0.0 { e } else { 1.0 };
    top / (1.0 + e)
}

/// tanh x; 4 ulp, just below 1. A rational approximation fitted for the least relative error (4e-9) by Remez'
/// algorithm; since all its coefficients are positive, hardly any digits are lost on the way.
#[inline(always)]
pub(crate) fn tanh<A: Arch>(x: f32) -> f32 {
    let v = clamp(x, -TANH_HIGH, TANH_HIGH);
    let z = v * v;
    let (p, q) = (poly::<A, 5>(z, TANH_P), poly::<A, 6>(z, TANH_Q));
    // The quotient stays an ulp or two off there, which x·(1 + tanh x) would show.
    if x.abs() >= TANH_ONE { 1.0f32.copysign(x) } else { clamp(v * p / q, -1.0, 1.0) }
}
