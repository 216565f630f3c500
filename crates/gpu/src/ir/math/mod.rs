//! Functions of floats, for devices without an accurate library of their own.
//!
//! Everything is arithmetic on `f32`, `u32` and `i32`. A device is trusted to round +, − and ·
//! correctly and to keep their order, and with no more: it may fuse a product with a sum or not, take
//! a common factor out of a sum of products, lose subnormals, be off by 2.5 ulp in a quotient or a
//! root, and assume that there is no NaN. So products that have to be exact are of factors with few
//! bits, sums whose products share a factor are `opaque` where that would hurt, and special cases are
//! told by the bits of the argument and selected at the end. The largest errors, in units in the last place of
//! `f32`, stand at each function: the tests measure them on devices that use none and all of these
//! freedoms.

mod arc;
pub mod complex;
mod error_function;
mod exp;
mod log;
mod power;
mod remainder;
mod trig;

use super::{Bin, Math, Missing, Ty, Un, Val};

/// Adding this leaves the nearest integer in the low bits of the sum.
const ROUND: f32 = 12_582_912.0;
/// The bits of +∞.
const INFINITY: u32 = 0x7f80_0000;
/// The bits of 1.
const ONE: u32 = 0x3f80_0000;
/// What is left of an `f32` with 12 bits, so that a product of two is exact.
const HALF: u32 = 0xffff_f000;

impl<'k> Val<'k> {
    /// A function of a float: the device's own, or the same from arithmetic.
    pub fn math(self, f: Math) -> Val<'k> {
        if self.k.target.native_math {
            return self.un(Un::Math(f));
        }
        if !self.is_single(&format!("{f:?}")) {
            return self;
        }
        match f {
            Math::Exp => exp::exp(self),
            Math::Expm1 => exp::expm1(self),
            Math::Log => log::log(self),
            Math::Log2 => log::log2(self),
            Math::Log10 => log::log10(self),
            Math::Log1p => log::log1p(self),
            Math::Sin => trig::sin(self),
            Math::Cos => trig::cos(self),
            Math::Tan => trig::tan(self),
            Math::Asin => arc::asin(self),
            Math::Acos => arc::acos(self),
            Math::Atan => arc::atan(self),
            Math::Sinh => exp::sinh(self),
            Math::Cosh => exp::cosh(self),
            Math::Tanh => exp::tanh(self),
            Math::Asinh => log::asinh(self),
            Math::Acosh => log::acosh(self),
            Math::Atanh => log::atanh(self),
            Math::Erf => error_function::erf(self),
            Math::Erfc => error_function::erfc(self),
            Math::ErfInv => error_function::erfinv(self),
        }
    }

    /// xʸ of floats, with the special cases of IEEE 754 `pow`.
    pub fn pow(self, y: Val<'k>) -> Val<'k> {
        if self.k.target.native_math {
            return self.k.bin(Bin::Pow, self, y);
        }
        if self.is_single("Pow") { power::pow(self, y) } else { self }
    }

    /// The angle of the point (x, y), of y.
    pub fn atan2(self, x: Val<'k>) -> Val<'k> {
        if self.k.target.native_math {
            return self.k.bin(Bin::Atan2, self, x);
        }
        if self.is_single("Atan2") { arc::atan2(self, x) } else { self }
    }

    /// The remainder of x/y of floats, exactly, with the sign of x.
    pub fn fmod(self, y: Val<'k>) -> Val<'k> {
        if self.k.target.native_math {
            return self % y;
        }
        if self.is_single("Rem") { remainder::fmod(self, y) } else { self }
    }

    /// Whether there is arithmetic for it; else notes that it is missing.
    fn is_single(self, name: &str) -> bool {
        if self.ty == Ty::F64 {
            let reason = format!("{name} of float64 has no kernel on this device");
            self.k.fail(Missing(reason));
        }
        self.ty != Ty::F64
    }

    /// The polynomial with these coefficients, highest power first.
    fn poly(self, coefficients: &[f32]) -> Val<'k> {
        let first = self.like(coefficients[0]);
        coefficients[1..].iter().fold(first, |sum, &c| sum.fma(self, c))
    }

    /// The bits of |x|. As integers they are ordered as the numbers, and NaN is above them.
    fn magnitude(self) -> Val<'k> {
        self.bits(Ty::U32) & 0x7fff_ffff
    }

    /// The sign of x, as the highest bit.
    fn sign(self) -> Val<'k> {
        self.bits(Ty::U32) & 0x8000_0000u32
    }

    /// −x where the highest bit of `sign` is set.
    fn flip(self, sign: Val<'k>) -> Val<'k> {
        (self.bits(Ty::U32) ^ sign).bits(Ty::F32)
    }

    /// The leading bits of a float.
    fn high(self) -> Val<'k> {
        (self.bits(Ty::U32) & HALF).bits(Ty::F32)
    }

    /// x, but NaN where `of` is.
    fn nan_of(self, of: Val<'k>) -> Val<'k> {
        of.is_nan().select(of, self)
    }
}

/// What is left of n after r·d, where r is n/d or nearly so.
fn residual<'k>(n: Val<'k>, r: Val<'k>, d: Val<'k>) -> Val<'k> {
    let (r_hi, d_hi) = (r.high(), d.high());
    let (r_lo, d_lo) = (r - r_hi, d - d_hi);
    n - r_hi * d_hi - r_hi * d_lo - r_lo * d
}

/// n/d to 1 ulp, however roughly the device divides; neither may be very large or small.
fn quotient<'k>(n: Val<'k>, d: Val<'k>) -> Val<'k> {
    let r = n / d;
    r + residual(n, r, d) / d
}

/// √x to 1 ulp, likewise; of 0 it is 0.
fn root(x: Val<'_>) -> Val<'_> {
    let r = x.sqrt();
    // Only 0 is changed by so little.
    r + residual(x, r, r) / (r + r + 1e-37)
}
