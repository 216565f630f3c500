//! Functions of complex numbers, from those of their parts: each part is accurate relative to the
//! whole number.
//!
//! Formulas: W. Kahan, "Branch cuts for complex elementary functions", in *The state of the art in
//! numerical analysis*, 1987. Special cases and signs of zeros: C99, Annex G.6. No square over- or
//! underflows: what is far from 1 takes another way.

use std::f32::consts::{FRAC_PI_2, LN_2, LOG2_E, LOG10_E};

use super::{INFINITY, root};
use crate::ir::{Math, Ty, Val};

/// The real and the imaginary part.
pub type Z<'k> = (Val<'k>, Val<'k>);

/// Up to here z is what an odd function is of it, beyond its inverse 1 is nothing beside z².
const SMALL: f32 = 1e-4;

impl<'k> Val<'k> {
    fn is_zero(self) -> Val<'k> {
        self.magnitude().eq(0)
    }

    fn is_infinite(self) -> Val<'k> {
        self.magnitude().eq(INFINITY)
    }

    /// Whether it is infinite or NaN.
    fn is_beyond(self) -> Val<'k> {
        self.magnitude().ge(INFINITY)
    }

    /// Its size with the sign of `like`.
    fn signed_as(self, like: Val<'k>) -> Val<'k> {
        self.abs().flip(like.sign())
    }

    /// A zero with its sign.
    fn its_zero(self) -> Val<'k> {
        self.sign().bits(Ty::F32)
    }
}

/// One of two numbers.
fn choose<'k>(condition: Val<'k>, a: Z<'k>, b: Z<'k>) -> Z<'k> {
    (condition.select(a.0, b.0), condition.select(a.1, b.1))
}

/// i·z.
fn turned((x, y): Z<'_>) -> Z<'_> {
    (-y, x)
}

/// −i·z.
fn turned_back((x, y): Z<'_>) -> Z<'_> {
    (y, -x)
}

/// The larger and the smaller of |x| and |y|; NaN is larger than anything.
fn sizes<'k>((x, y): Z<'k>) -> Z<'k> {
    let (x, y) = (x.magnitude(), y.magnitude());
    (x.max(y).bits(Ty::F32), x.min(y).bits(Ty::F32))
}

/// What the smaller size is of the larger one; 0 where that is 0 or infinite.
fn proportion<'k>((large, small): Z<'k>) -> Val<'k> {
    let neither = large.is_zero() | large.is_infinite();
    neither.select(0.0, small / neither.select(1.0, large))
}

/// |z|; infinite if either part is.
pub fn abs(z: Z<'_>) -> Val<'_> {
    let (large, small) = sizes(z);
    let r = proportion((large, small));
    let size = large * (r * r + 1.0).sqrt();
    let size = size.nan_of(large);
    (z.0.is_infinite() | z.1.is_infinite()).select(f32::INFINITY, size)
}

/// The root with a real part that is not negative.
pub fn sqrt<'k>((x, y): Z<'k>) -> Z<'k> {
    let (large, _) = sizes((x, y));
    // Powers of four, so that sums don't overflow and nothing is lost of small numbers.
    let (is_large, is_small) = (large.gt(1e37), large.lt(1e-20));
    let scale = is_small.select(2f32.powi(80), is_large.select(0.0625, large.like(1.0)));
    let back = is_small.select(2f32.powi(-40), is_large.select(4.0, large.like(1.0)));
    let (sx, sy) = (x.abs() * scale, y.abs() * scale);
    let larger = root((sx + abs((sx, sy))) * 0.5);
    let is_zero = large.is_zero();
    let smaller = sy / is_zero.select(1.0, larger + larger);
    let (larger, smaller) = (larger * back, smaller * back);
    let right = x.sign().eq(0);
    let re = is_zero.select(0.0, right.select(larger, smaller));
    let im = is_zero.select(0.0, right.select(smaller, larger));
    let (re, im) = (re.nan_of(x).nan_of(y), im.nan_of(x).nan_of(y));
    // Along the real axis, and then along the imaginary one.
    let infinity = x.like(f32::INFINITY);
    let angle = y.its_zero().nan_of(y).abs();
    let (far_re, far_im) = (right.select(infinity, angle), right.select(angle, infinity));
    let (re, im) = choose(x.is_infinite(), (far_re, far_im), (re, im));
    let (re, im) = choose(y.is_infinite(), (infinity, infinity), (re, im));
    (re, im.flip(y.sign()))
}

/// 1/√z.
pub fn rsqrt<'k>(z: Z<'k>) -> Z<'k> {
    let (x, y) = sqrt(z);
    let flat = x.abs().ge(y.abs());
    let (large, small) = (flat.select(x, y), flat.select(y, x));
    let r = small / large;
    let whole = large + small * r;
    let (one, part) = (1.0 / whole, r / whole);
    let inverse = (flat.select(one, part), -flat.select(part, one));
    let zero = (-y).its_zero();
    let inverse = choose(x.is_infinite() | y.is_infinite(), (x.like(0.0), zero), inverse);
    choose(x.is_zero() & y.is_zero(), (x.like(f32::INFINITY), zero), inverse)
}

/// eᶻ.
pub fn exp<'k>((x, y): Z<'k>) -> Z<'k> {
    let (sin, cos) = (y.math(Math::Sin), y.math(Math::Cos));
    // Half of the exponent at a time: the product may be finite where eˣ is not.
    let half = (x * 0.5).math(Math::Exp);
    let (re, im) =
        ((half * cos * half).nan_of(x).nan_of(y), (half * sin * half).nan_of(x).nan_of(y));
    let (re, im) = choose(y.is_zero(), (x.math(Math::Exp), y), (re, im));
    let up = x.sign().eq(0);
    let end = (up.select(x, x.like(0.0)), up.select(x.like(f32::NAN), 0.0));
    choose(x.is_infinite() & y.is_beyond(), end, (re, im))
}

/// eᶻ − 1.
pub fn expm1<'k>((x, y): Z<'k>) -> Z<'k> {
    let power = exp((x, y));
    let half = (y * 0.5).math(Math::Sin);
    // eˣ·cos y − 1 = (eˣ − 1)·cos y − (1 − cos y).
    let less = x.math(Math::Expm1);
    let near = less * y.math(Math::Cos) - half * half * 2.0;
    let re = x.abs().lt(1.0).select(near, power.0 - 1.0);
    (y.is_zero().select(less, re).nan_of(x), power.1)
}

/// ln |z|.
fn log_of_size(z: Z<'_>) -> Val<'_> {
    let (large, small) = sizes(z);
    let r = proportion((large, small));
    let log = large.math(Math::Log) + (r * r).math(Math::Log1p) * 0.5;
    let log = log.nan_of(large);
    (z.0.is_infinite() | z.1.is_infinite()).select(f32::INFINITY, log)
}

/// ln z.
pub fn log<'k>((x, y): Z<'k>) -> Z<'k> {
    (log_of_size((x, y)), y.atan2(x))
}

/// log₂ z.
pub fn log2(z: Z<'_>) -> Z<'_> {
    let (re, im) = log(z);
    (re * LOG2_E, im * LOG2_E)
}

/// log₁₀ z.
pub fn log10(z: Z<'_>) -> Z<'_> {
    let (re, im) = log(z);
    (re * LOG10_E, im * LOG10_E)
}

/// ln(1 + z).
pub fn log1p<'k>((x, y): Z<'k>) -> Z<'k> {
    let (large, _) = sizes((x, y));
    // |1 + z|² − 1, without the cancellation.
    let near = large.lt(0.5);
    let inside = choose(near, (x, y), (x.like(0.0), x.like(0.0)));
    let excess = inside.0 * (inside.0 + 2.0) + inside.1 * inside.1;
    let re = near.select(excess.math(Math::Log1p) * 0.5, log_of_size((x + 1.0, y)));
    (re, y.atan2(x + 1.0))
}

/// (sinh x, cosh x)·`by`, which may be finite where they are not.
fn hyperbolic<'k>(x: Val<'k>, by: Z<'k>) -> Z<'k> {
    let far = x.abs().gt(10.0);
    let half = (x.abs() * 0.5).math(Math::Exp);
    let up = |by: Val<'k>| half * 0.5 * by * half;
    let sinh = far.select(up(by.0).flip(x.sign()), x.math(Math::Sinh) * by.0);
    let cosh = far.select(up(by.1), x.math(Math::Cosh) * by.1);
    (sinh.nan_of(x).nan_of(by.0), cosh.nan_of(x).nan_of(by.1))
}

/// sinh z.
pub fn sinh<'k>((x, y): Z<'k>) -> Z<'k> {
    let (sin, cos) = (y.math(Math::Sin), y.math(Math::Cos));
    let (re, im) = hyperbolic(x, (cos, sin));
    let lost = y.is_beyond() & (x.is_zero() | x.is_infinite());
    (lost.select(x, re), y.is_zero().select(y, im))
}

/// cosh z.
pub fn cosh<'k>((x, y): Z<'k>) -> Z<'k> {
    let (sin, cos) = (y.math(Math::Sin), y.math(Math::Cos));
    let (im, re) = hyperbolic(x, (sin, cos));
    let re = (x.is_infinite() & y.is_beyond()).select(f32::INFINITY, re);
    let zero = (x.sign() ^ y.sign()).bits(Ty::F32);
    let flat = y.is_zero() | (x.is_zero() & y.is_beyond());
    (re, flat.select(zero, im))
}

/// tanh z = (sinh x·cosh x + i·sin y·cos y)/(sinh² x + cos² y).
pub fn tanh<'k>((x, y): Z<'k>) -> Z<'k> {
    let (sin, cos) = (y.math(Math::Sin), y.math(Math::Cos));
    let both = sin * cos;
    let far = x.magnitude().gt(9f32.to_bits());
    let inside = far.select(0.0, x);
    let sinh = inside.math(Math::Sinh);
    let size = sinh * sinh + cos * cos;
    let near = (sinh * inside.math(Math::Cosh) / size, both / size);
    let rest = both * 4.0 * (x.abs() * -2.0).math(Math::Exp);
    // At infinity it is a zero, whose sign says the angle where there is one.
    let end = (x.is_infinite() & y.is_beyond()).select(y.its_zero(), rest);
    let (re, im) = choose(far, (x.like(1.0).flip(x.sign()), end), near);
    // The angle is lost but where x is infinite; along the axes only one part is.
    let lost = y.is_beyond() & !x.is_infinite();
    let (re, im) = choose(lost, (x.like(f32::NAN), x.like(f32::NAN)), (re, im));
    let (re, im) = choose(y.is_zero(), (x.math(Math::Tanh), y), (re.nan_of(x), im.nan_of(x)));
    (x.is_zero().select(x, re), im)
}

/// sin z.
pub fn sin(z: Z<'_>) -> Z<'_> {
    turned_back(sinh(turned(z)))
}

/// cos z.
pub fn cos(z: Z<'_>) -> Z<'_> {
    cosh(turned(z))
}

/// tan z.
pub fn tan(z: Z<'_>) -> Z<'_> {
    turned_back(tanh(turned(z)))
}

/// √(1 − z) and √(1 + z) of a number whose squares are numbers; whether it is none; whether it is
/// small.
fn roots<'k>((x, y): Z<'k>) -> (Z<'k>, Z<'k>, Val<'k>, Val<'k>) {
    let (large, _) = sizes((x, y));
    let far = large.magnitude().gt((1.0 / SMALL).to_bits());
    let (x, y) = choose(far, (x.like(0.0), x.like(0.0)), (x, y));
    (sqrt((1.0 - x, -y)), sqrt((x + 1.0, y)), far, large.lt(SMALL))
}

/// arcsin z.
pub fn asin<'k>((x, y): Z<'k>) -> Z<'k> {
    let (a, b, far, near) = roots((x, y));
    let re = x.atan2(far.select(y.abs(), a.0 * b.0 - a.1 * b.1));
    let im = (a.0 * b.1 - a.1 * b.0).math(Math::Asinh);
    let im = far.select(log_of_size((x, y)) + LN_2, im).signed_as(y);
    (near.select(x, x.is_zero().select(x, re)), near.select(y, im))
}

/// arccos z.
pub fn acos<'k>((x, y): Z<'k>) -> Z<'k> {
    let (a, b, far, near) = roots((x, y));
    let angle = y.abs().atan2(x);
    let half = a.0.atan2(b.0);
    let re = far.select(angle, half + half);
    let re = near.select(FRAC_PI_2 - x, x.is_zero().select(FRAC_PI_2, re));
    let im = (b.0 * a.1 - b.1 * a.0).math(Math::Asinh);
    let im = near.select(y, far.select(log_of_size((x, y)) + LN_2, im));
    (re, im.signed_as(-y))
}

/// arcosh z: the real part is not negative, the imaginary one has the sign of z's.
pub fn acosh<'k>((x, y): Z<'k>) -> Z<'k> {
    let (re, im) = acos((x, y));
    (im.abs(), (re.is_nan() | y.is_nan()).select(re, re.signed_as(y)))
}

/// arsinh z.
pub fn asinh(z: Z<'_>) -> Z<'_> {
    turned_back(asin(turned(z)))
}

/// artanh z. It is odd: of z in the right half plane.
pub fn atanh<'k>((x, y): Z<'k>) -> Z<'k> {
    let (large, small) = sizes((x, y));
    let far = large.magnitude().gt((1.0 / SMALL).to_bits());
    // 1/z ± i·π/2.
    let r = proportion((large, small));
    let whole = 1.0 / (large * (r * r + 1.0));
    let along = x.magnitude().ge(y.magnitude());
    let (re_far, im_rest) = (along.select(whole, r * whole), along.select(r * whole, whole));
    let im_far = (FRAC_PI_2 - im_rest).nan_of(y);
    let infinite = x.is_infinite() | y.is_infinite();
    let re_far = infinite.select(0.0, re_far.nan_of(x).nan_of(y));
    let im_far = infinite.select(x.like(FRAC_PI_2).nan_of(y), im_far.nan_of(x));
    let (ax, ay) = choose(far, (x.like(0.0), x.like(0.0)), (x.abs(), y.abs()));
    let rest = 1.0 - ax;
    let ratio = ax * 4.0 / (rest * rest + ay * ay);
    // Near 1 the square is lost: ½·ln(2/|y|).
    let at_one = ax.eq(1.0) & ay.lt(1e-3);
    let re_one = (x.like(LN_2) - ay.math(Math::Log)) * 0.5;
    let re = at_one.select(re_one, ratio.math(Math::Log1p) * 0.25);
    let im = (ay + ay).atan2(rest * (ax + 1.0) - ay * ay) * 0.5;
    let (re, im) = choose(far, (re_far, im_far), (re, im));
    let re = x.is_zero().select(x, re);
    choose(large.lt(SMALL), (x, y), (re.signed_as(x), im.signed_as(y)))
}

/// arctan z.
pub fn atan(z: Z<'_>) -> Z<'_> {
    turned_back(atanh(turned(z)))
}
