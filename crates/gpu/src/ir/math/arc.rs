//! Inverse circular functions. The polynomials are those of Cephes `asinf` and `atanf`.

use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use super::{INFINITY, ONE, quotient, root};
use crate::ir::{Ty, Val};

/// What π/2 is more than its `f32`.
pub(super) const FRAC_PI_2_LO: f32 = -4.371_139e-8;

/// For x in [−1, 1]: whether |x| > ½, and arcsin of |x|, or of √(½(1 − |x|)) where that is so.
fn arc_sine(x: Val<'_>) -> (Val<'_>, Val<'_>) {
    let a = x.abs();
    let large = a.gt(0.5);
    let half = (1.0 - a) * 0.5;
    let square = a * a;
    let root = root(half);
    let z = large.select(half, square);
    let t = large.select(root, a);
    let p = [4.216_32e-2, 2.418_131e-2, 4.547_002_6e-2, 7.495_300_3e-2, 0.166_667_52];
    let p = z.poly(&p) * z;
    (large, p.fma(t, t))
}

/// `y`, but NaN where |x| > 1.
fn inside<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    x.magnitude().gt(ONE).select(f32::NAN, y)
}

/// arcsin x; 2.5 ulp.
pub(super) fn asin(x: Val<'_>) -> Val<'_> {
    let (large, t) = arc_sine(x);
    let rest = FRAC_PI_2 - (t + t + -FRAC_PI_2_LO);
    let y = large.select(rest, t);
    inside(x, y.flip(x.sign()))
}

/// arccos x; 1.5 ulp.
pub(super) fn acos(x: Val<'_>) -> Val<'_> {
    let (large, t) = arc_sine(x);
    // 2t, π − 2t, π/2 − t or π/2 + t.
    let t = large.select(t + t, t);
    let negative = x.lt(0.0);
    let from_one = negative.select(x.like(PI), 0.0);
    let base = large.select(from_one, FRAC_PI_2);
    let t = large.ne(negative).select(t, -t);
    inside(x, base + t)
}

/// arctan n/d for 0 ≤ n ≤ d, where d is far from overflow, given how to divide.
fn arc_tangent<'k>(
    n: Val<'k>,
    d: Val<'k>,
    divide: impl FnOnce(Val<'k>, Val<'k>) -> Val<'k>,
) -> Val<'k> {
    let shifted = n.gt(d * 0.414_213_57);
    let (n, d) = (shifted.select(n - d, n), shifted.select(n + d, d));
    let t = divide(n, d);
    let z = t * t;
    let p = z.poly(&[8.053_745e-2, -0.138_776_86, 0.199_777_11, -0.333_329_5]) * z;
    let base = shifted.select(t.like(FRAC_PI_4), 0.0);
    let rest = shifted.select(t.like(0.5 * FRAC_PI_2_LO), 0.0);
    base + (t + p.fma(t, rest))
}

/// arctan x; 3.5 ulp.
pub(super) fn atan(x: Val<'_>) -> Val<'_> {
    let sign = x.sign();
    // Far beyond, the result rounds to π/2.
    let a = x.magnitude().min(0x5000_0000).bits(Ty::F32);
    let one = a.like(1.0);
    let steep = a.gt(one);
    let (n, d) = (steep.select(one, a), steep.select(a, one));
    // A rough quotient is good enough for what is added to π/4 or π/2.
    let t = arc_tangent(n, d, |n, d| d.eq(one).select(n, n / d));
    let y = steep.select(FRAC_PI_2 - t, t);
    y.flip(sign).nan_of(x)
}

/// The angle of the point (x, y); 3 ulp. A device that loses subnormals takes subnormal coordinates
/// for 0.
pub(super) fn atan2<'k>(y: Val<'k>, x: Val<'k>) -> Val<'k> {
    let (ys, xs) = (y.magnitude(), x.magnitude());
    let steep = ys.gt(xs);
    let (n_size, d_size) = (ys.min(xs), ys.max(xs));
    // Two zeros make 0, two infinities π/4, one infinity 0.
    let (n_infinite, d_infinite) = (n_size.eq(INFINITY), d_size.eq(INFINITY));
    let d_zero = d_size.eq(0);
    let (n, d) = (n_size.bits(Ty::F32), d_size.bits(Ty::F32));
    let n = d_infinite.select(0.0, n);
    let n = n_infinite.select(1.0, n);
    let d = (d_infinite | d_zero).select(1.0, d);
    // d becomes about 2⁶⁴, or where it is so small that this is too far, at least 2⁻²². So sums do
    // not overflow, and n is large enough to be divided precisely.
    let scale = ((318 - (d_size >> 23)).min(254) << 23).bits(Ty::F32);
    let (n, d) = ((n * scale).opaque(), (d * scale).opaque());
    let r = arc_tangent(n, d, |n, d| {
        let (rough, better) = (n / d, quotient(n, d));
        // What would make a tiny quotient better is lost where subnormals are.
        n.abs().lt(1e-11).select(rough, better)
    });
    let r = steep.select(FRAC_PI_2 - r, r);
    let r = x.sign().ne(0).select(PI - r, r);
    r.flip(y.sign()).nan_of(x).nan_of(y)
}
