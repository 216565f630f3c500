//! Functions of floats, for devices without an accurate library of their own.
//!
//! Everything is arithmetic on `f32`, `u32` and `i32`. A device is trusted to round +, − and ·
//! correctly and to keep their order, and with no more: it may fuse a product with a sum or not,
//! lose subnormals, be off by 2.5 ulp in a quotient or a root, and assume that there is no NaN. So
//! products that have to be exact are of factors with few bits, and special cases are told by the
//! bits of the argument and selected at the end. The largest errors, in units in the last place of
//! `f32`, stand at each function: the tests measure them on devices that use none and all of these
//! freedoms.

mod arc;
mod error_function;
mod exp;
mod log;
mod power;
mod remainder;
mod trig;

use super::{Bin, Build, Math, Ty, Un, Val};
use crate::kernels::Missing;

/// Adding this leaves the nearest integer in the low bits of the sum.
const ROUND: f32 = 12_582_912.0;
/// The bits of +∞.
const INFINITY: u32 = 0x7f80_0000;
/// The bits of 1.
const ONE: u32 = 0x3f80_0000;
/// What is left of an `f32` with 12 bits, so that a product of two is exact.
const HALF: u32 = 0xffff_f000;

impl Build<'_> {
    /// A function of a float: the device's own, or the same from arithmetic.
    pub fn math(&mut self, f: Math, x: Val) -> Result<Val, Missing> {
        if self.target.native_math {
            return Ok(self.un(Un::Math(f), x));
        }
        only_single(x, &format!("{f:?}"))?;
        Ok(match f {
            Math::Exp => exp::exp(self, x),
            Math::Expm1 => exp::expm1(self, x),
            Math::Log => log::log(self, x),
            Math::Log2 => log::log2(self, x),
            Math::Log10 => log::log10(self, x),
            Math::Log1p => log::log1p(self, x),
            Math::Sin => trig::sin(self, x),
            Math::Cos => trig::cos(self, x),
            Math::Tan => trig::tan(self, x),
            Math::Asin => arc::asin(self, x),
            Math::Acos => arc::acos(self, x),
            Math::Atan => arc::atan(self, x),
            Math::Sinh => exp::sinh(self, x),
            Math::Cosh => exp::cosh(self, x),
            Math::Tanh => exp::tanh(self, x),
            Math::Asinh => log::asinh(self, x),
            Math::Acosh => log::acosh(self, x),
            Math::Atanh => log::atanh(self, x),
            Math::Erf => error_function::erf(self, x),
            Math::ErfInv => error_function::erfinv(self, x),
        })
    }

    /// xʸ of floats, with the special cases of IEEE 754 `pow`.
    pub fn pow(&mut self, x: Val, y: Val) -> Result<Val, Missing> {
        if self.target.native_math {
            return Ok(self.bin(Bin::Pow, x, y));
        }
        only_single(x, "Pow")?;
        Ok(power::pow(self, x, y))
    }

    /// The angle of the point (x, y).
    pub fn atan2(&mut self, y: Val, x: Val) -> Result<Val, Missing> {
        if self.target.native_math {
            return Ok(self.bin(Bin::Atan2, y, x));
        }
        only_single(y, "Atan2")?;
        Ok(arc::atan2(self, y, x))
    }

    /// The remainder of x/y of floats, exactly, with the sign of x.
    pub fn fmod(&mut self, x: Val, y: Val) -> Result<Val, Missing> {
        if self.target.native_math {
            return Ok(self.bin(Bin::Rem, x, y));
        }
        only_single(x, "Rem")?;
        Ok(remainder::fmod(self, x, y))
    }

    /// x + c.
    fn plus(&mut self, x: Val, c: f32) -> Val {
        let c = self.f32(c);
        self.add(x, c)
    }

    /// c − x.
    fn minus_from(&mut self, c: f32, x: Val) -> Val {
        let c = self.f32(c);
        self.sub(c, x)
    }

    /// c·x.
    fn times(&mut self, x: Val, c: f32) -> Val {
        let c = self.f32(c);
        self.mul(x, c)
    }

    /// a·c + b.
    fn fma_with(&mut self, a: Val, c: f32, b: Val) -> Val {
        let c = self.f32(c);
        self.fma(a, c, b)
    }

    /// The polynomial with these coefficients, highest power first.
    fn poly(&mut self, x: Val, coefficients: &[f32]) -> Val {
        let mut sum = self.f32(coefficients[0]);
        for c in &coefficients[1..] {
            let c = self.f32(*c);
            sum = self.fma(sum, x, c);
        }
        sum
    }

    /// Whether `x` < c.
    fn below(&mut self, x: Val, c: f32) -> Val {
        let c = self.f32(c);
        self.lt(x, c)
    }

    /// Whether `x` > c.
    fn above(&mut self, x: Val, c: f32) -> Val {
        let c = self.f32(c);
        self.gt(x, c)
    }

    /// The number c where `condition`, else `x`.
    fn put(&mut self, condition: Val, c: f32, x: Val) -> Val {
        let c = self.f32(c);
        self.select(condition, c, x)
    }

    /// A bitwise and with a literal.
    fn and_bits(&mut self, bits: Val, mask: u32) -> Val {
        let mask = self.u32(mask);
        self.and(bits, mask)
    }

    /// a·2ᶜ of an integer.
    fn up(&mut self, x: Val, c: u32) -> Val {
        let c = self.u32(c);
        self.shl(x, c)
    }

    /// a/2ᶜ of an integer.
    fn down(&mut self, x: Val, c: u32) -> Val {
        let c = self.u32(c);
        self.shr(x, c)
    }

    /// The float with these bits.
    fn float_of(&mut self, bits: Val) -> Val {
        self.bits(bits, Ty::F32)
    }

    /// The bits of |x|. As integers they are ordered as the numbers, and NaN is above them.
    fn magnitude(&mut self, x: Val) -> Val {
        let bits = self.bits(x, Ty::U32);
        self.and_bits(bits, 0x7fff_ffff)
    }

    /// The sign of `x`, as the highest bit.
    fn sign(&mut self, x: Val) -> Val {
        let bits = self.bits(x, Ty::U32);
        self.and_bits(bits, 0x8000_0000)
    }

    /// −x where the highest bit of `sign` is set.
    fn flip(&mut self, x: Val, sign: Val) -> Val {
        let bits = self.bits(x, Ty::U32);
        let bits = self.xor(bits, sign);
        self.float_of(bits)
    }

    /// The leading bits of a float.
    fn high(&mut self, x: Val, mask: u32) -> Val {
        let bits = self.bits(x, Ty::U32);
        let bits = self.and_bits(bits, mask);
        self.float_of(bits)
    }

    /// What is left of n after r·d, where r is n/d or nearly so.
    fn residual(&mut self, n: Val, r: Val, d: Val) -> Val {
        let (r_hi, d_hi) = (self.high(r, HALF), self.high(d, HALF));
        let (r_lo, d_lo) = (self.sub(r, r_hi), self.sub(d, d_hi));
        let (exact, left, right) = (self.mul(r_hi, d_hi), self.mul(r_hi, d_lo), self.mul(r_lo, d));
        let rest = self.sub(n, exact);
        let rest = self.sub(rest, left);
        self.sub(rest, right)
    }

    /// n/d to 1 ulp, however roughly the device divides; neither may be very large or small.
    fn quotient(&mut self, n: Val, d: Val) -> Val {
        let r = self.div(n, d);
        let rest = self.residual(n, r, d);
        let more = self.div(rest, d);
        self.add(r, more)
    }

    /// √x to 1 ulp, likewise; of 0 it is 0.
    fn root(&mut self, x: Val) -> Val {
        let r = self.un(Un::Sqrt, x);
        let (rest, twice) = (self.residual(x, r, r), self.add(r, r));
        // Only 0 is changed by so little.
        let twice = self.plus(twice, 1e-37);
        let more = self.div(rest, twice);
        self.add(r, more)
    }

    /// `y`, but NaN where `x` is.
    fn keep_nan(&mut self, x: Val, y: Val) -> Val {
        let nan = self.is_nan(x);
        self.select(nan, x, y)
    }
}

/// An error where there is no arithmetic for the type of `x`.
fn only_single(x: Val, name: &str) -> Result<(), Missing> {
    match x.ty {
        Ty::F64 => Err(Missing(format!("{name} of float64 has no kernel on this device"))),
        _ => Ok(()),
    }
}
