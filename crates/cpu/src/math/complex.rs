//! Functions of complex numbers, computed in `f64`, in which no square of an `f32` over- or underflows.
//!
//! Formulas: W. Kahan, "Branch cuts for complex elementary functions", in *The state of the art in
//! numerical analysis*, 1987. Special cases and signs of zeros: C99, Annex G.6.

use std::f64::consts::{FRAC_PI_2, LN_2, LN_10};

use num_complex::{Complex32, Complex64};

/// Beyond this, 1 is nothing beside z.
const LARGE: f64 = 1e15;
/// Beyond this, tanh x is 1, but for less than an `f32` holds.
const SATURATED: f64 = 20.0;

/// An `f32` function, of one in `f64`.
macro_rules! single {
    ($($name:ident)*) => {$(
        pub(crate) fn $name(z: Complex32) -> Complex32 {
            let w = wide::$name(Complex64::new(z.re.into(), z.im.into()));
            Complex32::new(w.re as f32, w.im as f32)
        }
    )*};
}

single! {
    sqrt rsqrt exp expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
}

/// |z|; infinite if either part is.
#[inline(always)]
pub(crate) fn abs(z: Complex32) -> f32 {
    let (re, im) = (f64::from(z.re), f64::from(z.im));
    let y = (re * re + im * im).sqrt() as f32;
    if z.re.abs() == f32::INFINITY || z.im.abs() == f32::INFINITY { f32::INFINITY } else { y }
}

mod wide {
    use super::{Complex64, FRAC_PI_2, LARGE, LN_2, LN_10, SATURATED};

    /// re + i·im.
    fn of(re: f64, im: f64) -> Complex64 {
        Complex64::new(re, im)
    }

    /// i·z.
    fn turned(z: Complex64) -> Complex64 {
        of(-z.im, z.re)
    }

    /// −i·z.
    fn turned_back(z: Complex64) -> Complex64 {
        of(z.im, -z.re)
    }

    fn is_infinite(z: Complex64) -> bool {
        z.re.is_infinite() || z.im.is_infinite()
    }

    fn is_large(z: Complex64) -> bool {
        is_infinite(z) || z.re.abs() > LARGE || z.im.abs() > LARGE
    }

    /// |z|² of what is no `f64` beyond an `f32`.
    fn square_of_size(z: Complex64) -> f64 {
        z.re * z.re + z.im * z.im
    }

    /// The root with a real part that is not negative.
    pub(super) fn sqrt(z: Complex64) -> Complex64 {
        if z.im.is_infinite() {
            return of(f64::INFINITY, z.im);
        }
        if z.re == 0.0 && z.im == 0.0 {
            return of(0.0, z.im);
        }
        if z.re == f64::INFINITY {
            return of(z.re, if z.im.is_nan() { z.im } else { 0f64.copysign(z.im) });
        }
        if z.re == f64::NEG_INFINITY {
            let re = if z.im.is_nan() { z.im } else { 0.0 };
            return of(re, f64::INFINITY.copysign(z.im));
        }
        let larger = ((z.re.abs() + square_of_size(z).sqrt()) * 0.5).sqrt();
        let smaller = z.im.abs() / (2.0 * larger);
        match z.re >= 0.0 {
            true => of(larger, smaller.copysign(z.im)),
            false => of(smaller, larger.copysign(z.im)),
        }
    }

    pub(super) fn rsqrt(z: Complex64) -> Complex64 {
        let root = sqrt(z);
        let zero = 0f64.copysign(-root.im);
        if is_infinite(root) {
            return of(0.0, zero);
        }
        match square_of_size(root) {
            0.0 => of(f64::INFINITY, zero),
            size => of(root.re / size, -root.im / size),
        }
    }

    pub(super) fn exp(z: Complex64) -> Complex64 {
        let size = z.re.exp();
        if z.im == 0.0 {
            return of(size, z.im);
        }
        if !z.im.is_finite() && z.re.is_infinite() {
            return if size == 0.0 { of(0.0, 0.0) } else { of(size, f64::NAN) };
        }
        let (sin, cos) = z.im.sin_cos();
        of(size * cos, size * sin)
    }

    pub(super) fn expm1(z: Complex64) -> Complex64 {
        if z.im == 0.0 {
            return of(z.re.exp_m1(), z.im);
        }
        if is_infinite(z) {
            let power = exp(z);
            return of(power.re - 1.0, power.im);
        }
        // eˣ·cos y − 1 = (eˣ − 1)·cos y − (1 − cos y).
        let half = (z.im * 0.5).sin();
        let (sin, cos) = z.im.sin_cos();
        of(z.re.exp_m1() * cos - 2.0 * half * half, z.re.exp() * sin)
    }

    /// ln |z|.
    fn log_of_size(z: Complex64) -> f64 {
        let (x, y) = (z.re.abs(), z.im.abs());
        if is_infinite(z) {
            return f64::INFINITY;
        }
        let (x, y) = if x > y { (x, y) } else { (y, x) };
        let square = square_of_size(z);
        if (0.5..2.0).contains(&square) {
            // |z|² − 1: both terms are exact, so their sum is close even where they cancel.
            return 0.5 * ((x - 1.0) * (x + 1.0) + y * y).ln_1p();
        }
        0.5 * square.ln()
    }

    pub(super) fn log(z: Complex64) -> Complex64 {
        of(log_of_size(z), z.im.atan2(z.re))
    }

    pub(super) fn log2(z: Complex64) -> Complex64 {
        let w = log(z);
        of(w.re / LN_2, w.im / LN_2)
    }

    pub(super) fn log10(z: Complex64) -> Complex64 {
        let w = log(z);
        of(w.re / LN_10, w.im / LN_10)
    }

    pub(super) fn log1p(z: Complex64) -> Complex64 {
        let angle = z.im.atan2(z.re + 1.0);
        if is_infinite(z) {
            return of(f64::INFINITY, angle);
        }
        // |1 + z|² − 1, without the cancellation.
        let excess = z.re * (z.re + 2.0) + z.im * z.im;
        match excess.abs() < 0.5 {
            true => of(0.5 * excess.ln_1p(), angle),
            false => of(log_of_size(of(z.re + 1.0, z.im)), angle),
        }
    }

    /// Whether the angle is lost of what has no size to turn or infinite size.
    fn loses_angle(z: Complex64) -> bool {
        !z.im.is_finite() && (z.re == 0.0 || z.re.is_infinite())
    }

    pub(super) fn sinh(z: Complex64) -> Complex64 {
        let (sin, cos) = z.im.sin_cos();
        let re = if loses_angle(z) { z.re } else { z.re.sinh() * cos };
        of(re, if z.im == 0.0 { z.im } else { z.re.cosh() * sin })
    }

    pub(super) fn cosh(z: Complex64) -> Complex64 {
        let (sin, cos) = z.im.sin_cos();
        let is_flat = z.im == 0.0 || z.re == 0.0 && loses_angle(z);
        let zero = 0f64.copysign(z.re) * 1f64.copysign(z.im);
        let re =
            if z.re.is_infinite() && loses_angle(z) { f64::INFINITY } else { z.re.cosh() * cos };
        of(re, if is_flat { zero } else { z.re.sinh() * sin })
    }

    pub(super) fn tanh(z: Complex64) -> Complex64 {
        if z.im == 0.0 {
            return of(z.re.tanh(), z.im);
        }
        let (sin, cos) = z.im.sin_cos();
        if z.re.is_infinite() && !z.im.is_finite() {
            return of(1f64.copysign(z.re), 0f64.copysign(z.im));
        }
        if z.re.abs() > SATURATED && z.im.is_finite() {
            let rest = (-2.0 * z.re.abs()).exp();
            let zero = 0f64.copysign(sin * cos);
            let im = if rest == 0.0 { zero } else { 4.0 * sin * cos * rest };
            return of(1f64.copysign(z.re), im);
        }
        let sinh = z.re.sinh();
        let size = sinh * sinh + cos * cos;
        let re = if z.re == 0.0 { z.re } else { sinh * z.re.cosh() / size };
        of(re, sin * cos / size)
    }

    pub(super) fn sin(z: Complex64) -> Complex64 {
        turned_back(sinh(turned(z)))
    }

    pub(super) fn cos(z: Complex64) -> Complex64 {
        cosh(turned(z))
    }

    pub(super) fn tan(z: Complex64) -> Complex64 {
        turned_back(tanh(turned(z)))
    }

    /// √(1 − z) and √(1 + z).
    fn roots(z: Complex64) -> (Complex64, Complex64) {
        (sqrt(of(1.0 - z.re, -z.im)), sqrt(of(1.0 + z.re, z.im)))
    }

    /// ln 2|z| with the sign of `like`.
    fn log_of_twice(z: Complex64, like: f64) -> f64 {
        (log_of_size(z) + LN_2).copysign(like)
    }

    pub(super) fn asin(z: Complex64) -> Complex64 {
        if is_large(z) {
            return of(z.re.atan2(z.im.abs()), log_of_twice(z, z.im));
        }
        let (a, b) = roots(z);
        let angle = z.re.atan2(a.re * b.re - a.im * b.im);
        let re = if z.re == 0.0 { z.re } else { angle };
        let im = libm::asinh(a.re * b.im - a.im * b.re);
        of(re, if z.im == 0.0 { im.copysign(z.im) } else { im })
    }

    pub(super) fn acos(z: Complex64) -> Complex64 {
        if is_large(z) {
            return of(z.im.abs().atan2(z.re), log_of_twice(z, -z.im));
        }
        let (a, b) = roots(z);
        let re = if z.re == 0.0 { FRAC_PI_2 } else { 2.0 * a.re.atan2(b.re) };
        let im = libm::asinh(b.re * a.im - b.im * a.re);
        of(re, if z.im == 0.0 { im.copysign(-z.im) } else { im })
    }

    pub(super) fn acosh(z: Complex64) -> Complex64 {
        let w = acos(z);
        // The real part is not negative, the imaginary one has the sign of z's.
        of(w.im.abs(), if z.im.is_nan() { w.re } else { w.re.copysign(z.im) })
    }

    pub(super) fn asinh(z: Complex64) -> Complex64 {
        turned_back(asin(turned(z)))
    }

    pub(super) fn atanh(z: Complex64) -> Complex64 {
        if is_infinite(z) {
            let angle = if z.im.is_nan() { z.im } else { FRAC_PI_2.copysign(z.im) };
            return of(0f64.copysign(z.re), angle);
        }
        // It is odd: of z in the right half plane.
        let side = 1f64.copysign(z.re);
        let (x, y) = (z.re.abs(), z.im * side);
        let re = 0.25 * (4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)).ln_1p();
        let im = 0.5 * (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y);
        of(if z.re == 0.0 { z.re } else { re * side }, im * side)
    }

    pub(super) fn atan(z: Complex64) -> Complex64 {
        turned_back(atanh(turned(z)))
    }
}
