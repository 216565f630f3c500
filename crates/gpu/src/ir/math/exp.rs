//! The exponential and what is made of it. Reduction and coefficients as in Cephes `expf`, `sinhf`
//! and `tanhf`.

use std::f32::consts::LOG2_E;

use super::ROUND;
use crate::ir::{Build, Ty, Val};

/// ln 2 in a part with 9 bits, whose product with an exponent is exact, and the rest.
pub(super) const LN2_HI: f32 = 0.693_359_4;
pub(super) const LN2_LO: f32 = -2.121_944_4e-4;

/// The nearest integer, as a float and as an `i32`; below 2²².
pub(super) fn nearest(b: &mut Build, x: Val) -> (Val, Val) {
    let sum = b.plus(x, ROUND);
    let sum = b.opaque(sum);
    let float = b.plus(sum, -ROUND);
    let (bits, zero) = (b.bits(sum, Ty::I32), b.i32(ROUND.to_bits() as i32));
    (float, b.sub(bits, zero))
}

/// `x = k·ln 2 + r` with `|r| ≤ ½·ln 2`, as `(r, k)`.
fn reduce(b: &mut Build, x: Val) -> (Val, Val) {
    let quotient = b.times(x, LOG2_E);
    let (k, integer) = nearest(b, quotient);
    let r = b.fma_with(k, -LN2_HI, x);
    (b.fma_with(k, -LN2_LO, r), integer)
}

/// `eʳ − 1` for `|r| ≤ ½·ln 2`.
pub(super) fn near_zero(b: &mut Build, r: Val) -> Val {
    let p = [1.987_569_2e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5];
    let (p, square) = (b.poly(r, &p), b.mul(r, r));
    b.fma(p, square, r)
}

/// `2ᵏ` in two factors, so that neither overflows where the product does not.
pub(super) fn scales(b: &mut Build, k: Val) -> (Val, Val) {
    let half = b.down(k, 1);
    let rest = b.sub(k, half);
    let mut power = |k| {
        let bias = b.i32(127);
        let biased = b.add(k, bias);
        let bits = b.up(biased, 23);
        b.float_of(bits)
    };
    (power(half), power(rest))
}

/// `eˣ·2ⁿ` for |x| ≤ 104.
pub(super) fn scaled_exp(b: &mut Build, x: Val, n: i32) -> Val {
    let (r, k) = reduce(b, x);
    let k = if n == 0 {
        k
    } else {
        let n = b.i32(n);
        b.add(k, n)
    };
    let p = near_zero(b, r);
    let p = b.plus(p, 1.0);
    let (first, second) = scales(b, k);
    let p = b.mul(p, first);
    b.mul(p, second)
}

fn at_most(b: &mut Build, x: Val, most: f32) -> Val {
    let beyond = b.above(x, most);
    b.put(beyond, most, x)
}

/// Between where results are 0 and where they are infinite.
fn clamp(b: &mut Build, x: Val) -> Val {
    let x = at_most(b, x, 89.0);
    let below = b.below(x, -104.0);
    b.put(below, -104.0, x)
}

/// eˣ; 1 ulp.
pub(super) fn exp(b: &mut Build, x: Val) -> Val {
    let inside = clamp(b, x);
    let y = scaled_exp(b, inside, 0);
    b.keep_nan(x, y)
}

/// eˣ − 1; 1.5 ulp.
pub(super) fn expm1(b: &mut Build, x: Val) -> Val {
    let inside = clamp(b, x);
    let (r, k) = reduce(b, inside);
    let p = near_zero(b, r);
    let (first, second) = scales(b, k);
    // second·(first·p + first − 1/second), where 1/second is the exact power of two.
    let bits = b.bits(second, Ty::U32);
    let twice_bias = b.u32(0x7f00_0000);
    let inverse = b.sub(twice_bias, bits);
    let inverse = b.float_of(inverse);
    let less = b.sub(first, inverse);
    let y = b.fma(first, p, less);
    let y = b.mul(y, second);
    let size = b.abs(x);
    let tiny = b.below(size, 1e-8);
    let y = b.select(tiny, x, y);
    b.keep_nan(x, y)
}

/// ½·eˣ and ½·e⁻ˣ of x ≥ 0; neither overflows before sinh and cosh do.
fn halves(b: &mut Build, x: Val) -> (Val, Val) {
    let inside = at_most(b, x, 90.0);
    let up = scaled_exp(b, inside, -1);
    let quarter = b.f32(0.25);
    (up, b.div(quarter, up))
}

/// sinh x; 2 ulp.
pub(super) fn sinh(b: &mut Build, x: Val) -> Val {
    let a = b.abs(x);
    let (up, down) = halves(b, a);
    let far = b.sub(up, down);
    let square = b.mul(a, a);
    let p = b.poly(square, &[2.037_219_1e-4, 8.330_284e-3, 0.166_667_16]);
    let p = b.mul(p, square);
    let near = b.fma(p, a, a);
    let small = b.below(a, 1.0);
    let y = b.select(small, near, far);
    let sign = b.sign(x);
    let y = b.flip(y, sign);
    b.keep_nan(x, y)
}

/// cosh x; 1.5 ulp.
pub(super) fn cosh(b: &mut Build, x: Val) -> Val {
    let a = b.abs(x);
    let (up, down) = halves(b, a);
    let y = b.add(up, down);
    b.keep_nan(x, y)
}

/// tanh x; 2.5 ulp.
pub(super) fn tanh(b: &mut Build, x: Val) -> Val {
    let a = b.abs(x);
    // From 9.02 on the result rounds to 1.
    let inside = at_most(b, a, 10.0);
    let twice = b.add(inside, inside);
    let e = scaled_exp(b, twice, 0);
    let (two, below) = (b.f32(2.0), b.plus(e, 1.0));
    let rest = b.div(two, below);
    let far = b.minus_from(1.0, rest);
    let square = b.mul(inside, inside);
    let p = [-5.704_988_7e-3, 2.063_909e-2, -5.373_971_5e-2, 0.133_314_42, -0.333_332_8];
    let p = b.poly(square, &p);
    let p = b.mul(p, square);
    let near = b.fma(p, a, a);
    let small = b.below(a, 0.625);
    let y = b.select(small, near, far);
    let sign = b.sign(x);
    let y = b.flip(y, sign);
    b.keep_nan(x, y)
}
