//! The error function, what it lacks to 1, and its inverse, after N. Juffa's single-precision `erff` and `erfinvf`
//! (NVIDIA developer forums and Stack Overflow, BSD licence).

use super::exp::scaled_exp;
use super::log::log_normal;
use super::{HALF, ONE};
use crate::ir::{Ty, Val};

/// erf x; 1.5 ulp.
pub(super) fn erf(x: Val<'_>) -> Val<'_> {
    let a = x.abs();
    // From 3.92 on the result rounds to 1; the polynomial turns far beyond.
    let t = a.gt(4.0).select(4.0, a);
    let z = t * t;
    let r = t.fma(-1.728_534_7e-5, 3.831_972e-4);
    let u = t.fma(-3.883_964_4e-3, 2.425_462_2e-2);
    let r = r.fma(z, u);
    let r = [-0.106_777_88, -0.634_846_7, -0.128_717_51].iter().fold(r, |r, &c| r.fma(t, c));
    let r = r.fma(t, -t);
    let far = 1.0 - scaled_exp(r, 0);
    let p =
        [-5.967_617e-4, 4.991_194e-3, -2.676_813_5e-2, 0.112_819_925, -0.376_125_34, 0.128_379_17];
    let near = z.poly(&p).fma(t, t);
    let y = t.gt(0.927_734_4).select(far, near);
    y.flip(x.sign()).nan_of(x)
}

/// erfc x = 1 − erf x, accurate also where that is near 0; 4.5 ulp. After M. M. Shepherd and
/// J. G. Laframboise, "Chebyshev approximation of (1 + 2x)·exp(x²)·erfc x in 0 ≤ x < ∞", Mathematics of
/// Computation 36 (1981): a polynomial in (x − 2)/(x + 2), fitted anew.
pub(super) fn erfc(x: Val<'_>) -> Val<'_> {
    let a = x.abs();
    // Beyond this the result is 0.
    let a = a.gt(10.06).select(10.06, a);
    // Quotients, each with the residual added that its rounding left.
    let r = 1.0 / (a + 2.0);
    let q = (a - 2.0) * r;
    let q = r.fma(q.fma(-a, (q + 1.0).fma(-2.0, a)), q);
    let p = q.poly(&[
        6.319_267e-5,
        1.604_207e-4,
        -3.573_566_2e-4,
        -1.394_753_5e-3,
        1.216_748_6e-3,
        8.688_33e-3,
        -8.018_618e-3,
        -5.421_166_5e-2,
        0.164_049_37,
        -0.166_031_14,
        -9.276_376e-2,
        0.276_978_4,
    ]);
    let r = 0.5 / (a + 0.5);
    let q = p.fma(r, r);
    let rest = (p - q) + (q + q).fma(-a, 1.0);
    let scaled = rest.fma(r, q);
    // exp(−a²) = exp(−h²)·exp(−(a − h)(a + h)), where h² is exact.
    let h = (a.bits(Ty::U32) & HALF).bits(Ty::F32);
    let u = (h - a) * (h + a);
    let less = u * u.fma(1.0 / 24.0, 1.0 / 6.0).fma(u, 0.5).fma(u, 1.0);
    let far = scaled * scaled_exp(-(h * h), 0);
    let far = far.fma(less, far);
    let far = x.magnitude().gt(10.06f32.to_bits()).select(0.0, far);
    x.lt(0.0).select(2.0 - far, far).nan_of(x)
}

/// The inverse of erf; 3.5 ulp.
pub(super) fn erfinv(x: Val<'_>) -> Val<'_> {
    let t = log_normal((1.0 - x) * (x + 1.0));
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
    let (far, near) = (t.poly(&far), t.poly(&near));
    let y = x * t.lt(-6.125).select(far, near);
    let size = x.magnitude();
    let infinity = x.like(f32::INFINITY).flip(x.sign());
    let y = size.eq(ONE).select(infinity, y);
    size.gt(ONE).select(f32::NAN, y)
}
