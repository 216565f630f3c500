//! Circular functions. The polynomials on [−π/4, π/4] are those of Cephes `sinf`, `cosf` and
//! `tanf`.

use std::f32::consts::{FRAC_2_PI, FRAC_PI_2};

use super::INFINITY;
use super::arc::FRAC_PI_2_LO;
use super::exp::nearest;
use crate::ir::{Build, Ty, Val};

/// π/2 in three parts of 12 bits, whose products with integers below 2¹² are exact, and the rest.
const PARTS: [u32; 4] = [0x3fc9_0000, 0x39fd_a000, 0x33a2_2000, 0x2c34_611a];
/// Up to here that is enough, however near x is to a multiple of π/2.
const LIMIT: f32 = 4096.0;
/// 2/π, 32 bits before the point and 224 after.
const TWO_OVER_PI: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// `|x| = (4n + q)·π/2 + r` with `|r| ≤ π/4`; of q the two lowest bits.
#[derive(Clone, Copy)]
struct Reduced {
    r: Val,
    /// What the last rounding of r lost.
    lost: Val,
    q: Val,
}

fn reduce(b: &mut Build, x: Val) -> Reduced {
    let a = b.abs(x);
    let quotient = b.times(a, FRAC_2_PI);
    let (k, q) = nearest(b, quotient);
    let [parts @ .., rest] = PARTS.map(|bits| -f32::from_bits(bits));
    let high = parts.iter().fold(a, |r, part| b.fma_with(k, *part, r));
    let r = b.fma_with(k, rest, high);
    let r = b.opaque(r);
    let lost = b.sub(high, r);
    let lost = b.fma_with(k, rest, lost);
    let q = b.bits(q, Ty::U32);
    let (r, lost, q) = (b.var(r), b.var(lost), b.var(q));
    let far = b.above(a, LIMIT);
    b.when(far, |b| {
        let far = reduce_far(b, a);
        b.set(r, far.r);
        b.set(lost, far.lost);
        b.set(q, far.q);
    });
    Reduced { r: b.get(r), lost: b.get(lost), q: b.get(q) }
}

/// The high word of a product of 32-bit numbers.
fn mul_high(b: &mut Build, x: Val, y: Val) -> Val {
    let (xl, xh) = (b.and_bits(x, 0xffff), b.down(x, 16));
    let (yl, yh) = (b.and_bits(y, 0xffff), b.down(y, 16));
    let (low, left, right, high) = (b.mul(xl, yl), b.mul(xh, yl), b.mul(xl, yh), b.mul(xh, yh));
    let carry = b.down(low, 16);
    let left = b.add(left, carry);
    let middle = b.and_bits(left, 0xffff);
    let right = b.add(right, middle);
    let (left, right) = (b.down(left, 16), b.down(right, 16));
    let high = b.add(high, left);
    b.add(high, right)
}

/// The same for large x, by Payne and Hanek's method: of `x = m·2ᵉ⁻²³` times 2/π only the bits of
/// 2/π count whose products are not multiples of 4, and 96 of them are enough.
fn reduce_far(b: &mut Build, a: Val) -> Reduced {
    let bits = b.bits(a, Ty::U32);
    let m = b.and_bits(bits, 0x7f_ffff);
    let hidden = b.u32(0x80_0000);
    let m = b.or(m, hidden);
    // Where the bits start: the first of them times the lowest bit of m has the weight 2.
    let (e, offset) = (b.down(bits, 23), b.u32(120));
    let place = b.sub(e, offset);
    let mut words: Vec<Val> = TWO_OVER_PI.iter().map(|w| b.u32(*w)).collect();
    let last = words[4..].to_vec();
    for (step, bit) in [(2, 64), (1, 32)] {
        let (set, zero) = (b.and_bits(place, bit), b.u32(0));
        let set = b.ne(set, zero);
        let kept = if step == 2 { 5 } else { 4 };
        words = (0..kept).map(|i| b.select(set, words[i + step], words[i])).collect();
    }
    let bound = b.u32(128);
    let in_last = b.ge(place, bound);
    let words: Vec<Val> = (0..4).map(|i| b.select(in_last, last[i], words[i])).collect();
    let up = b.and_bits(place, 31);
    let most = b.u32(31);
    let down = b.sub(most, up);
    let mut window = |i: usize| {
        let (left, right) = (b.shl(words[i], up), b.down(words[i + 1], 1));
        let right = b.shr(right, down);
        b.or(left, right)
    };
    let (first, second, third) = (window(0), window(1), window(2));
    // The 64 bits of the product from the weight 2 on.
    let (low, more) = (b.mul(m, second), mul_high(b, m, third));
    let low = b.add(low, more);
    let carry = b.lt(low, more);
    let carry = b.convert(carry, Ty::U32);
    let (high, more) = (b.mul(m, first), mul_high(b, m, second));
    let high = b.add(high, more);
    let high = b.add(high, carry);
    // Without the nearest integer, as a sign and a magnitude.
    let half = b.u32(0x2000_0000);
    let q = b.add(high, half);
    let q = b.down(q, 30);
    let whole = b.up(q, 30);
    let high = b.sub(high, whole);
    let sign = b.and_bits(high, 0x8000_0000);
    let flags = b.bits(high, Ty::I32);
    let flags = b.down(flags, 31);
    let flags = b.bits(flags, Ty::U32);
    let (high, low) = (b.xor(high, flags), b.xor(low, flags));
    // 24 bits that are exact as a float, and 32 more.
    let leading = b.and_bits(high, 0xffff_ff00);
    let (left, right) = (b.up(high, 24), b.down(low, 8));
    let rest = b.or(left, right);
    let (leading, rest) = (b.convert(leading, Ty::F32), b.convert(rest, Ty::F32));
    const UNIT: f32 = 1.0 / (1 << 30) as f32;
    let small = b.times(leading, UNIT * FRAC_PI_2_LO);
    let small = b.fma_with(rest, UNIT / (1 << 24) as f32 * FRAC_PI_2, small);
    let high = b.times(leading, UNIT * FRAC_PI_2);
    let r = b.add(high, small);
    let lost = b.sub(high, r);
    let lost = b.add(lost, small);
    Reduced { r: b.flip(r, sign), lost: b.flip(lost, sign), q }
}

/// sin(r + q·π/2).
fn quadrant(b: &mut Build, Reduced { r, lost, q }: Reduced) -> Val {
    let z = b.mul(r, r);
    let s = b.poly(z, &[-1.951_529_6e-4, 8.332_161e-3, -0.166_666_55]);
    let s = b.mul(s, z);
    let s = b.fma(s, r, lost);
    let s = b.add(r, s);
    let c = b.poly(z, &[2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2]);
    let c = b.mul(c, z);
    let one = b.f32(1.0);
    let start = b.fma_with(z, -0.5, one);
    let c = b.fma(c, z, start);
    let odd = is_odd(b, q);
    let y = b.select(odd, c, s);
    let sign = b.and_bits(q, 2);
    let sign = b.up(sign, 30);
    b.flip(y, sign)
}

fn is_odd(b: &mut Build, q: Val) -> Val {
    let (low, zero) = (b.and_bits(q, 1), b.u32(0));
    b.ne(low, zero)
}

/// `y`, but NaN where `x` is not finite.
fn only_finite(b: &mut Build, x: Val, y: Val) -> Val {
    let (size, infinity) = (b.magnitude(x), b.u32(INFINITY));
    let not_finite = b.ge(size, infinity);
    b.put(not_finite, f32::NAN, y)
}

/// sin x; 2 ulp.
pub(super) fn sin(b: &mut Build, x: Val) -> Val {
    let reduced = reduce(b, x);
    let y = quadrant(b, reduced);
    let sign = b.sign(x);
    let y = b.flip(y, sign);
    only_finite(b, x, y)
}

/// cos x; 2 ulp.
pub(super) fn cos(b: &mut Build, x: Val) -> Val {
    let (reduced, one) = (reduce(b, x), b.u32(1));
    let q = b.add(reduced.q, one);
    let y = quadrant(b, Reduced { q, ..reduced });
    only_finite(b, x, y)
}

/// tan x; 3 ulp.
pub(super) fn tan(b: &mut Build, x: Val) -> Val {
    let Reduced { r, lost, q } = reduce(b, x);
    let z = b.mul(r, r);
    let p =
        [9.385_402e-3, 3.119_922_3e-3, 2.443_013_5e-2, 5.341_128e-2, 0.133_387_99, 0.333_331_57];
    let p = b.poly(z, &p);
    let p = b.mul(p, z);
    // The slope of tan is 1 + tan², nearly 1 + z.
    let lost = b.fma(lost, z, lost);
    let t = b.fma(p, r, lost);
    let t = b.add(r, t);
    let minus_one = b.f32(-1.0);
    let inverse = b.quotient(minus_one, t);
    let odd = is_odd(b, q);
    let y = b.select(odd, inverse, t);
    let sign = b.sign(x);
    let y = b.flip(y, sign);
    only_finite(b, x, y)
}
