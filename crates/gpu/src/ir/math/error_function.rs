//! The error function and its inverse, after N. Juffa's single-precision `erff` and `erfinvf`
//! (NVIDIA developer forums and Stack Overflow, BSD licence).

use super::ONE;
use super::exp::scaled_exp;
use super::log::log_normal;
use crate::ir::{Build, Val};

/// erf x; 1.5 ulp.
pub(super) fn erf(b: &mut Build, x: Val) -> Val {
    let a = b.abs(x);
    // From 3.92 on the result rounds to 1; the polynomial turns far beyond.
    let beyond = b.above(a, 4.0);
    let t = b.put(beyond, 4.0, a);
    let z = b.mul(t, t);
    let (first, second) = (b.f32(3.831_972e-4), b.f32(2.425_462_2e-2));
    let r = b.fma_with(t, -1.728_534_7e-5, first);
    let u = b.fma_with(t, -3.883_964_4e-3, second);
    let mut r = b.fma(r, z, u);
    for c in [-0.106_777_88, -0.634_846_7, -0.128_717_51] {
        let c = b.f32(c);
        r = b.fma(r, t, c);
    }
    let minus_t = b.neg(t);
    let r = b.fma(r, t, minus_t);
    let e = scaled_exp(b, r, 0);
    let far = b.minus_from(1.0, e);
    let p =
        [-5.967_617e-4, 4.991_194e-3, -2.676_813_5e-2, 0.112_819_925, -0.376_125_34, 0.128_379_17];
    let p = b.poly(z, &p);
    let near = b.fma(p, t, t);
    let large = b.above(t, 0.927_734_4);
    let y = b.select(large, far, near);
    let sign = b.sign(x);
    let y = b.flip(y, sign);
    b.keep_nan(x, y)
}

/// The inverse of erf; 3.5 ulp.
pub(super) fn erfinv(b: &mut Build, x: Val) -> Val {
    let (below, above) = (b.minus_from(1.0, x), b.plus(x, 1.0));
    let product = b.mul(below, above);
    let t = log_normal(b, product);
    let far = [
        3.036_975_7e-10,
        2.932_431e-8,
        1.221_503_3e-6,
        2.841_089_6e-5,
        3.935_529_7e-4,
        3.026_988e-3,
        4.831_858e-3,
        -0.264_646_14,
        0.840_016_5,
    ];
    let near = [
        5.438_778e-9,
        1.432_860_6e-7,
        1.227_754e-6,
        1.129_626_3e-7,
        -5.615_319_6e-5,
        -1.476_977e-4,
        2.314_687e-3,
        1.153_925_6e-2,
        -0.232_015_48,
        0.886_226_9,
    ];
    let (far, near) = (b.poly(t, &far), b.poly(t, &near));
    let is_far = b.below(t, -6.125);
    let p = b.select(is_far, far, near);
    let y = b.mul(x, p);
    let (size, one) = (b.magnitude(x), b.u32(ONE));
    let edge = b.eq(size, one);
    let infinity = b.f32(f32::INFINITY);
    let sign = b.sign(x);
    let infinity = b.flip(infinity, sign);
    let y = b.select(edge, infinity, y);
    let outside = b.gt(size, one);
    b.put(outside, f32::NAN, y)
}
