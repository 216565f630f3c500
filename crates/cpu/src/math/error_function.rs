//! The error function, what it lacks to 1, and its inverse, after N. Juffa's single-precision `erff` and `erfinvf`
//! (NVIDIA developer forums and Stack Overflow, BSD licence).

use super::{Arch, exp, fma, log, poly};

/// Of erf x far from 0: with t = |x|, log(1 − erf t) is a polynomial in t. Its two highest terms times t², in pairs,
/// then one coefficient after the other; the last factor is −t.
pub(crate) const ERF_HIGH: [f32; 2] = [-1.728_534_7e-5, 3.831_972e-4];
pub(crate) const ERF_NEXT: [f32; 2] = [-3.883_964_4e-3, 2.425_462_2e-2];
pub(crate) const ERF_REST: [f32; 3] = [-0.106_777_88, -0.634_846_7, -0.128_717_51];
/// From here on erf rounds to 1. The polynomial turns far beyond, and its exponential is then subnormal, which takes ten times as long.
pub(crate) const ERF_ONE: f32 = 4.0;
/// Up to here erf x is x + x·p(x²).
pub(crate) const ERF_NEAR: f32 = 0.927_734_4;
pub(crate) const ERF_P: [f32; 6] =
    [-5.967_617e-4, 4.991_194e-3, -2.676_813_5e-2, 0.112_819_925, -0.376_125_34, 0.128_379_17];

/// erf x; 2 ulp.
#[inline(always)]
pub(crate) fn erf<A: Arch>(x: f32) -> f32 {
    let t = if x.abs() > ERF_ONE { ERF_ONE } else { x.abs() };
    let s = t * t;
    let r = fma::<A>(poly::<A, 2>(t, ERF_HIGH), s, poly::<A, 2>(t, ERF_NEXT));
    let r = ERF_REST.iter().fold(r, |r, &c| fma::<A>(r, t, c));
    let r = fma::<A>(r, t, -t);
    let far = 1.0 - exp::<A>(r);
    let near = fma::<A>(poly::<A, 6>(s, ERF_P), x, x);
    let y = if t > ERF_NEAR { far.copysign(x) } else { near };
    if x.is_nan() { x } else { y }
}

/// erfc x = 1 − erf x, accurate also where that is near 0; 4 ulp. After M. M. Shepherd and
/// J. G. Laframboise, "Chebyshev approximation of (1 + 2x)·exp(x²)·erfc x in 0 ≤ x < ∞", Mathematics of
/// Computation 36 (1981): a polynomial in (x − 2)/(x + 2), fitted anew.
#[inline(always)]
pub(crate) fn erfc<A: Arch>(x: f32) -> f32 {
    let a = x.abs();
    // A quotient, with the residual added that its rounding left.
    let r = 1.0 / (a + 2.0);
    let q = (a - 2.0) * r;
    let rest = fma::<A>(q, -a, fma::<A>(q + 1.0, -2.0, a));
    let q = fma::<A>(r, rest, q);
    let p = poly::<A, 12>(
        q,
        [
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
        ],
    );
    // (1 + p)/(1 + 2a), likewise.
    let r = 0.5 / (a + 0.5);
    let q = fma::<A>(p, r, r);
    let rest = (p - q) + fma::<A>(q + q, -a, 1.0);
    let scaled = fma::<A>(rest, r, q);
    // exp(−a²) = exp(−h²)·exp(−(a − h)(a + h)), where h² is exact.
    let h = f32::from_bits(a.to_bits() & 0xffff_f000);
    let u = (h - a) * (h + a);
    let less = u * fma::<A>(fma::<A>(fma::<A>(u, 1.0 / 24.0, 1.0 / 6.0), u, 0.5), u, 1.0);
    let far = scaled * exp::<A>(-h * h);
    let far = fma::<A>(far, less, far);
    let far = if a > 10.06 { 0.0 } else { far };
    let y = if x < 0.0 { 2.0 - far } else { far };
    if x.is_nan() { x } else { y }
}

/// The inverse of erf; 4 ulp.
#[inline(always)]
pub(crate) fn erfinv<A: Arch>(x: f32) -> f32 {
    let t = log::<A>((1.0 - x) * (1.0 + x));
    let far = poly::<A, 9>(
        t,
        [
            3.036_975_7e-10,
            2.932_431e-8,
            1.221_503_3e-6,
            2.841_089_6e-5,
            3.935_529_7e-4,
            3.026_988e-3,
            4.831_858e-3,
            -0.264_646_14,
            0.840_016_5,
        ],
    );
    let near = poly::<A, 10>(
        t,
        [
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
        ],
    );
    x * if t.abs() > 6.125 { far } else { near }
}
