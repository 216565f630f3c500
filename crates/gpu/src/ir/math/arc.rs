//! Inverse circular functions. The polynomials are those of Cephes `asinf` and `atanf`.

use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use super::{INFINITY, ONE};
use crate::ir::{Build, Val};

/// What π/2 is more than its `f32`.
pub(super) const FRAC_PI_2_LO: f32 = -4.371_139e-8;

/// For x in [−1, 1]: whether |x| > ½, and arcsin of |x|, or of √(½(1 − |x|)) where that is so.
fn arc_sine(b: &mut Build, x: Val) -> (Val, Val) {
    let a = b.abs(x);
    let large = b.above(a, 0.5);
    let rest = b.minus_from(1.0, a);
    let (half, square) = (b.times(rest, 0.5), b.mul(a, a));
    let root = b.root(half);
    let z = b.select(large, half, square);
    let t = b.select(large, root, a);
    let p = [4.216_32e-2, 2.418_131e-2, 4.547_002_6e-2, 7.495_300_3e-2, 0.166_667_52];
    let p = b.poly(z, &p);
    let p = b.mul(p, z);
    (large, b.fma(p, t, t))
}

/// `y`, but NaN where |x| > 1.
fn inside(b: &mut Build, x: Val, y: Val) -> Val {
    let (size, one) = (b.magnitude(x), b.u32(ONE));
    let outside = b.gt(size, one);
    b.put(outside, f32::NAN, y)
}

/// arcsin x; 2.5 ulp.
pub(super) fn asin(b: &mut Build, x: Val) -> Val {
    let (large, t) = arc_sine(b, x);
    let twice = b.add(t, t);
    let twice = b.plus(twice, -FRAC_PI_2_LO);
    let rest = b.minus_from(FRAC_PI_2, twice);
    let y = b.select(large, rest, t);
    let sign = b.sign(x);
    let y = b.flip(y, sign);
    inside(b, x, y)
}

/// arccos x; 1.5 ulp.
pub(super) fn acos(b: &mut Build, x: Val) -> Val {
    let (large, t) = arc_sine(b, x);
    // 2t, π − 2t, π/2 − t or π/2 + t.
    let twice = b.add(t, t);
    let t = b.select(large, twice, t);
    let (quarter, zero) = (b.f32(FRAC_PI_2), b.f32(0.0));
    let negative = b.below(x, 0.0);
    let from_one = b.put(negative, PI, zero);
    let base = b.select(large, from_one, quarter);
    let plus = b.ne(large, negative);
    let minus_t = b.neg(t);
    let t = b.select(plus, t, minus_t);
    let y = b.add(base, t);
    inside(b, x, y)
}

/// arctan n/d for 0 ≤ n ≤ d, where d is far from overflow, given how to divide.
fn arc_tangent(
    b: &mut Build,
    n: Val,
    d: Val,
    divide: impl FnOnce(&mut Build, Val, Val) -> Val,
) -> Val {
    let bound = b.times(d, 0.414_213_57);
    let shifted = b.gt(n, bound);
    let (less, more) = (b.sub(n, d), b.add(n, d));
    let (n, d) = (b.select(shifted, less, n), b.select(shifted, more, d));
    let t = divide(b, n, d);
    let z = b.mul(t, t);
    let p = b.poly(z, &[8.053_745e-2, -0.138_776_86, 0.199_777_11, -0.333_329_5]);
    let p = b.mul(p, z);
    let (none, base, rest) = (b.f32(0.0), b.f32(FRAC_PI_4), b.f32(0.5 * FRAC_PI_2_LO));
    let (base, rest) = (b.select(shifted, base, none), b.select(shifted, rest, none));
    let rest = b.fma(p, t, rest);
    let y = b.add(t, rest);
    b.add(base, y)
}

/// arctan x; 3.5 ulp.
pub(super) fn atan(b: &mut Build, x: Val) -> Val {
    let (size, sign) = (b.magnitude(x), b.sign(x));
    // Far beyond, the result rounds to π/2.
    let most = b.u32(0x5000_0000);
    let size = b.min_int(size, most);
    let (a, one) = (b.float_of(size), b.f32(1.0));
    let steep = b.gt(a, one);
    let (n, d) = (b.select(steep, one, a), b.select(steep, a, one));
    // A rough quotient is good enough for what is added to π/4 or π/2.
    let t = arc_tangent(b, n, d, |b, n, d| {
        let (whole, t) = (b.eq(d, one), b.div(n, d));
        b.select(whole, n, t)
    });
    let rest = b.minus_from(FRAC_PI_2, t);
    let y = b.select(steep, rest, t);
    let y = b.flip(y, sign);
    b.keep_nan(x, y)
}

/// The angle of the point (x, y); 3 ulp. A device that loses subnormals takes subnormal coordinates
/// for 0.
pub(super) fn atan2(b: &mut Build, y: Val, x: Val) -> Val {
    let (ys, xs) = (b.magnitude(y), b.magnitude(x));
    let steep = b.gt(ys, xs);
    let (n_size, d_size) = (b.min_int(ys, xs), b.max_int(ys, xs));
    // Two zeros make 0, two infinities π/4, one infinity 0.
    let (zero, infinity) = (b.u32(0), b.u32(INFINITY));
    let (n_infinite, d_infinite) = (b.eq(n_size, infinity), b.eq(d_size, infinity));
    let d_zero = b.eq(d_size, zero);
    let (n, d) = (b.float_of(n_size), b.float_of(d_size));
    let n = b.put(d_infinite, 0.0, n);
    let n = b.put(n_infinite, 1.0, n);
    let unit = b.or(d_infinite, d_zero);
    let d = b.put(unit, 1.0, d);
    // d becomes about 2⁶⁴, or where it is so small that this is too far, at least 2⁻²². So sums do
    // not overflow, and n is large enough to be divided precisely.
    let (field, sum, most) = (b.down(d_size, 23), b.u32(318), b.u32(254));
    let scale = b.sub(sum, field);
    let scale = b.min_int(scale, most);
    let scale = b.up(scale, 23);
    let scale = b.float_of(scale);
    let (n, d) = (b.mul(n, scale), b.mul(d, scale));
    let r = arc_tangent(b, n, d, |b, n, d| {
        let (rough, better) = (b.div(n, d), b.quotient(n, d));
        // What would make a tiny quotient better is lost where subnormals are.
        let size = b.abs(n);
        let tiny = b.below(size, 1e-11);
        b.select(tiny, rough, better)
    });
    let rest = b.minus_from(FRAC_PI_2, r);
    let r = b.select(steep, rest, r);
    let rest = b.minus_from(PI, r);
    let x_sign = b.sign(x);
    let left = b.ne(x_sign, zero);
    let r = b.select(left, rest, r);
    let y_sign = b.sign(y);
    let r = b.flip(r, y_sign);
    let r = b.keep_nan(x, r);
    b.keep_nan(y, r)
}
