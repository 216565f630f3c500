//! Circular functions and their inverses.
//!
//! The argument is reduced in `f64` by π/2 in two parts, exactly up to 2²⁷; the polynomials on
//! [−π/4, π/4] are those of Cephes `sinf` and `cosf` and of FreeBSD `k_tanf.c`.

use super::{Arch, fma, fma64, poly, poly64};

/// Above this, a multiple of π/2 no longer has an exact product.
const LIMIT: f32 = 134_217_728.0;

/// Whether the argument is beyond the vectorised reduction.
#[inline(always)]
pub(crate) fn needs_slow_reduction(x: f32) -> bool {
    x.abs() > LIMIT
}

/// `x = q·π/2 + r` with `|r| ≤ π/4`, as `(r, q)`.
#[inline(always)]
fn reduce<A: Arch>(x: f32) -> (f64, u32) {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const HI: f64 = 1.570_796_310_901_641_8;
    const LO: f64 = 1.589_325_477_352_819_7e-8;
    let x = f64::from(x);
    let rounded = fma64::<A>(x, std::f64::consts::FRAC_2_PI, ROUND);
    let k = rounded - ROUND;
    let r = fma64::<A>(k, -LO, fma64::<A>(k, -HI, x));
    (r, rounded.to_bits() as u32)
}

#[inline(always)]
fn quadrant<A: Arch>(r: f32, q: u32) -> f32 {
    let z = r * r;
    let s = poly::<A, 3>(z, [-1.951_529_6e-4, 8.332_161e-3, -0.166_666_55]);
    let s = fma::<A>(s * z, r, r);
    let c = poly::<A, 3>(z, [2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2]);
    let c = fma::<A>(c * z, z, fma::<A>(z, -0.5, 1.0));
    let y = if q & 1 == 0 { s } else { c };
    f32::from_bits(y.to_bits() ^ ((q & 2) << 30))
}

/// sin x; 2 ulp. For arguments that do not need the slow reduction.
#[inline(always)]
pub(crate) fn sin<A: Arch>(x: f32) -> f32 {
    let (r, q) = reduce::<A>(x);
    let y = quadrant::<A>(r as f32, q);
    if x.abs() < 1e-4 { x } else { y }
}

/// cos x; 2 ulp. For arguments that do not need the slow reduction.
#[inline(always)]
pub(crate) fn cos<A: Arch>(x: f32) -> f32 {
    let (r, q) = reduce::<A>(x);
    quadrant::<A>(r as f32, q.wrapping_add(1))
}

/// tan x; 1 ulp. For arguments that do not need the slow reduction.
#[inline(always)]
pub(crate) fn tan<A: Arch>(x: f32) -> f32 {
    let (r, q) = reduce::<A>(x);
    let z = r * r;
    let p = poly64::<A, 6>(
        z,
        [
            0.009_465_647_849_436_732,
            0.002_974_357_433_599_673,
            0.024_528_318_116_654_728,
            0.053_381_237_844_567_04,
            0.133_392_002_712_976_74,
            0.333_331_395_030_791_4,
        ],
    );
    let t = fma64::<A>(p * z, r, r);
    let y = if q & 1 == 0 { t } else { -1.0 / t };
    if x.abs() < 1e-4 { x } else { y as f32 }
}

/// The angle of the point `(x, y)` in `f64`, to 1e-10.
#[inline(always)]
fn angle<A: Arch>(y: f64, x: f64) -> f64 {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
    let (ax, ay) = (x.abs(), y.abs());
    let steep = ay > ax;
    let (n, d) = if steep { (ax, ay) } else { (ay, ax) };
    // Two zeros make 0, two infinities π/4.
    let d = if d == 0.0 { 1.0 } else { d };
    let (n, d) = if n == f64::INFINITY { (1.0, 1.0) } else { (n, d) };
    let shifted = n > 0.414_213_562_373_095 * d;
    let d_of_shifted = if d == f64::INFINITY { d } else { n + d };
    let t = if shifted { (n - d) / d_of_shifted } else { n / d };
    let z = t * t;
    let p = poly64::<A, 11>(
        z,
        [
            1.0 / 21.0,
            -1.0 / 19.0,
            1.0 / 17.0,
            -1.0 / 15.0,
            1.0 / 13.0,
            -1.0 / 11.0,
            1.0 / 9.0,
            -1.0 / 7.0,
            1.0 / 5.0,
            -1.0 / 3.0,
            1.0,
        ],
    );
    let r = t * p + if shifted { FRAC_PI_4 } else { 0.0 };
    let r = if steep { FRAC_PI_2 - r } else { r };
    let r = if x.is_sign_negative() { PI - r } else { r };
    let r = if x.is_nan() { x } else { r };
    let r = if y.is_nan() { y } else { r };
    r.copysign(y)
}

/// The angle of the point `(x, y)`; 1 ulp.
#[inline(always)]
pub(crate) fn atan2<A: Arch>(y: f32, x: f32) -> f32 {
    angle::<A>(f64::from(y), f64::from(x)) as f32
}

/// arctan x; 1 ulp.
#[inline(always)]
pub(crate) fn atan<A: Arch>(x: f32) -> f32 {
    angle::<A>(f64::from(x), 1.0) as f32
}

/// arcsin x; 1 ulp.
#[inline(always)]
pub(crate) fn asin<A: Arch>(x: f32) -> f32 {
    let x = f64::from(x);
    angle::<A>(x, ((1.0 - x) * (1.0 + x)).sqrt()) as f32
}

/// arccos x; 1 ulp.
#[inline(always)]
pub(crate) fn acos<A: Arch>(x: f32) -> f32 {
    let x = f64::from(x);
    angle::<A>(((1.0 - x) * (1.0 + x)).sqrt(), x) as f32
}
