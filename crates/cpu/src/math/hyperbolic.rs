//! Hyperbolic functions and their inverses, computed in `f64`: each 1 ulp.

use super::log::log64;
use super::power::exp64;
use super::{Arch, poly64};

/// sinh x.
#[inline(always)]
pub(crate) fn sinh<A: Arch>(x: f32) -> f32 {
    let v = f64::from(x);
    let a = v.abs();
    let e = exp64::<A>(a);
    let z = v * v;
    let near = a * poly64::<A, 4>(z, [1.0 / 5040.0, 1.0 / 120.0, 1.0 / 6.0, 1.0]);
    let y = if a < 0.5 { near } else { 0.5 * (e - 1.0 / e) };
    (y as f32).copysign(x)
}

/// cosh x.
#[inline(always)]
pub(crate) fn cosh<A: Arch>(x: f32) -> f32 {
    let e = exp64::<A>(f64::from(x).abs());
    (0.5 * (e + 1.0 / e)) as f32
}

/// arsinh x.
#[inline(always)]
pub(crate) fn asinh<A: Arch>(x: f32) -> f32 {
    let a = f64::from(x).abs();
    let z = a * a;
    let near = a * poly64::<A, 3>(z, [3.0 / 40.0, -1.0 / 6.0, 1.0]);
    let y = if a < 1e-3 { near } else { log64::<A>(a + (z + 1.0).sqrt()) };
    (y as f32).copysign(x)
}

/// arcosh x.
#[inline(always)]
pub(crate) fn acosh<A: Arch>(x: f32) -> f32 {
    let v = f64::from(x);
    let y = log64::<A>(v + ((v - 1.0) * (v + 1.0)).sqrt()) as f32;
    if x < 1.0 { f32::NAN } else { y }
}

/// artanh x.
#[inline(always)]
pub(crate) fn atanh<A: Arch>(x: f32) -> f32 {
    let a = f64::from(x).abs();
    let near = a * poly64::<A, 4>(a * a, [1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0]);
    let y = if a < 0.02 { near } else { 0.5 * log64::<A>((1.0 + a) / (1.0 - a)) };
    (y as f32).copysign(x)
}
