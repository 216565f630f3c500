//! Circular functions. The polynomials on [−π/4, π/4] are those of Cephes `sinf`, `cosf` and
//! `tanf`.

use std::f32::consts::{FRAC_2_PI, FRAC_PI_2};

use super::arc::FRAC_PI_2_LO;
use super::exp::nearest;
use super::{INFINITY, quotient};
use crate::ir::{Ty, Val};

/// π/2 in three parts of 12 bits, whose products with integers below 2¹² are exact, and the rest.
const PARTS: [u32; 4] = [0x3fc9_0000, 0x39fd_a000, 0x33a2_2000, 0x2c34_611a];
/// Up to here that is enough, however near x is to a multiple of π/2.
const LIMIT: f32 = 4096.0;
/// 2/π, 32 bits before the point and 224 after.
const TWO_OVER_PI: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// `|x| = (4n + q)·π/2 + r` with `|r| ≤ π/4`; of q the two lowest bits.
#[derive(Clone, Copy)]
struct Reduced<'k> {
    r: Val<'k>,
    /// What the last rounding of r lost.
    lost: Val<'k>,
    q: Val<'k>,
}

fn reduce(x: Val<'_>) -> Reduced<'_> {
    let k = x.k();
    let a = x.abs();
    let (multiple, q) = nearest(a * FRAC_2_PI);
    let [parts @ .., rest] = PARTS.map(|bits| -f32::from_bits(bits));
    let high = parts.iter().fold(a, |r, &part| multiple.fma(part, r).opaque());
    let r = multiple.fma(rest, high).opaque();
    let lost = multiple.fma(rest, high - r);
    let (r, lost, q) = (k.var(r), k.var(lost), k.var(q.bits(Ty::U32)));
    k.when(a.gt(LIMIT), || {
        let far = reduce_far(a);
        r.set(far.r);
        lost.set(far.lost);
        q.set(far.q);
    });
    Reduced { r: r.get(), lost: lost.get(), q: q.get() }
}

/// The high word of a product of 32-bit numbers.
fn mul_high<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let (xl, xh) = (x & 0xffff, x >> 16);
    let (yl, yh) = (y & 0xffff, y >> 16);
    let (low, left, right, high) = (xl * yl, xh * yl, xl * yh, xh * yh);
    let left = left + (low >> 16);
    let right = right + (left & 0xffff);
    high + (left >> 16) + (right >> 16)
}

/// The same for large x, by Payne and Hanek's method: of `x = m·2ᵉ⁻²³` times 2/π only the bits of
/// 2/π count whose products are not multiples of 4, and 96 of them are enough.
fn reduce_far(a: Val<'_>) -> Reduced<'_> {
    let bits = a.bits(Ty::U32);
    let m = (bits & 0x7f_ffff) | 0x80_0000;
    // Where the bits start: the first of them times the lowest bit of m has the weight 2.
    let place = (bits >> 23) - 120;
    let mut words: Vec<Val<'_>> = TWO_OVER_PI.iter().map(|&w| place.like(w)).collect();
    let last = words[4..].to_vec();
    for (step, bit) in [(2, 64), (1, 32)] {
        let set = (place & bit).ne(0);
        let kept = if step == 2 { 5 } else { 4 };
        words = (0..kept).map(|i| set.select(words[i + step], words[i])).collect();
    }
    let in_last = place.ge(128);
    let words: Vec<Val<'_>> = (0..4).map(|i| in_last.select(last[i], words[i])).collect();
    let up = place & 31;
    let down = 31 - up;
    let window = |i: usize| (words[i] << up) | ((words[i + 1] >> 1) >> down);
    let (first, second, third) = (window(0), window(1), window(2));
    // The 64 bits of the product from the weight 2 on.
    let more = mul_high(m, third);
    let low = m * second + more;
    let carry = low.lt(more).convert(Ty::U32);
    let high = m * first + mul_high(m, second) + carry;
    // Without the nearest integer, as a sign and a magnitude.
    let q = (high + 0x2000_0000) >> 30;
    let high = high - (q << 30);
    let sign = high & 0x8000_0000u32;
    let flags = (high.bits(Ty::I32) >> 31).bits(Ty::U32);
    let (high, low) = (high ^ flags, low ^ flags);
    // 24 bits that are exact as a float, and 32 more.
    let leading = (high & 0xffff_ff00u32).convert(Ty::F32);
    let rest = ((high << 24) | (low >> 8)).convert(Ty::F32);
    const UNIT: f32 = 1.0 / (1 << 30) as f32;
    let small = leading * (UNIT * FRAC_PI_2_LO);
    let small = rest.fma(UNIT / (1 << 24) as f32 * FRAC_PI_2, small);
    let high = leading * (UNIT * FRAC_PI_2);
    let r = high + small;
    let lost = high - r + small;
    Reduced { r: r.flip(sign), lost: lost.flip(sign), q }
}

/// sin(r + q·π/2).
fn quadrant<'k>(Reduced { r, lost, q }: Reduced<'k>) -> Val<'k> {
    let z = r * r;
    let s = z.poly(&[-1.951_529_6e-4, 8.332_161e-3, -0.166_666_55]) * z;
    let s = r + s.fma(r, lost);
    let c = z.poly(&[2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2]) * z;
    let c = c.fma(z, z.fma(-0.5, 1.0));
    let y = is_odd(q).select(c, s);
    y.flip((q & 2) << 30)
}

fn is_odd(q: Val<'_>) -> Val<'_> {
    (q & 1).ne(0)
}

/// `y`, but NaN where `x` is not finite.
fn only_finite<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    x.magnitude().ge(INFINITY).select(f32::NAN, y)
}

/// sin x; 2 ulp.
pub(super) fn sin(x: Val<'_>) -> Val<'_> {
    let y = quadrant(reduce(x));
    only_finite(x, y.flip(x.sign()))
}

/// cos x; 2 ulp.
pub(super) fn cos(x: Val<'_>) -> Val<'_> {
    let reduced = reduce(x);
    only_finite(x, quadrant(Reduced { q: reduced.q + 1, ..reduced }))
}

/// tan x; 3 ulp.
pub(super) fn tan(x: Val<'_>) -> Val<'_> {
    let Reduced { r, lost, q } = reduce(x);
    let z = r * r;
    let p =
        [9.385_402e-3, 3.119_922_3e-3, 2.443_013_5e-2, 5.341_128e-2, 0.133_387_99, 0.333_331_57];
    let p = z.poly(&p) * z;
    // The slope of tan is 1 + tan², nearly 1 + z.
    let lost = lost.fma(z, lost);
    let t = r + p.fma(r, lost);
    let inverse = quotient(t.like(-1.0), t);
    let y = is_odd(q).select(inverse, t);
    only_finite(x, y.flip(x.sign()))
}
