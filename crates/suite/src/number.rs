//! Numbers of the reference: integers as they are, floats and the parts of complex numbers as `f64`.

use cupola_core::{DType, Kind};
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

/// An element of an array of the reference.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// A bool or an integer.
    Int(i128),
    /// A real number.
    Float(f64),
    /// A complex number.
    Complex(Complex64),
}

use Number::{Complex, Float, Int};

impl Number {
    /// What `dtype` holds of re + i·im: integers truncate and wrap, floats round to nearest even.
    pub fn of(dtype: DType, re: f64, im: f64) -> Number {
        match dtype.kind() {
            Kind::Bool => Number::truth(re != 0.0),
            Kind::Integer => Int(re as i128),
            Kind::Float => Float(re),
            Kind::Complex => Complex(Complex64::new(re, im)),
        }
        .fit(dtype)
    }

    /// 0 or 1.
    pub fn truth(v: bool) -> Number {
        Int(i128::from(v))
    }

    /// A count, in any dtype that has numbers.
    pub fn count(v: usize) -> Number {
        Int(v as i128)
    }

    /// As an integer.
    pub fn int(self) -> i128 {
        match self {
            Int(v) => v,
            Float(v) => v as i128,
            Complex(v) => v.re as i128,
        }
    }

    /// As a real number.
    pub fn float(self) -> f64 {
        match self {
            Int(v) => v as f64,
            Float(v) => v,
            Complex(v) => v.re,
        }
    }

    /// As a complex number.
    pub fn complex(self) -> Complex64 {
        match self {
            Complex(v) => v,
            real => Complex64::new(real.float(), 0.0),
        }
    }

    /// Whether it counts as true.
    pub fn is_true(self) -> bool {
        match self {
            Int(v) => v != 0,
            Float(v) => v != 0.0,
            Complex(v) => v != Complex64::ZERO,
        }
    }

    /// Whether it is a real NaN.
    pub fn is_nan(self) -> bool {
        matches!(self, Float(v) if v.is_nan())
    }

    /// As `dtype` holds it: integers wrap, floats round once, to nearest even.
    pub fn fit(self, dtype: DType) -> Number {
        match (dtype, self) {
            (DType::Bool, v) => Number::truth(v.is_true()),
            (DType::F16, v) => Float(f16::from_f64(nearest(v.float(), 10, -14)).to_f64()),
            (DType::BF16, v) => Float(bf16::from_f64(nearest(v.float(), 7, -126)).to_f64()),
            (DType::F32, Int(v)) => Float(f64::from(v as f32)),
            (DType::F32, v) => Float(f64::from(v.float() as f32)),
            (DType::F64, v) => Float(v.float()),
            (DType::C32, v) => {
                let v = v.complex();
                let part = |v: f64| f16::from_f64(nearest(v, 10, -14)).to_f64();
                Complex(Complex64::new(part(v.re), part(v.im)))
            }
            (DType::C64, v) => {
                let v = v.complex();
                Complex(Complex64::new(f64::from(v.re as f32), f64::from(v.im as f32)))
            }
            (dtype, v) => Int(wrap(v.int(), dtype)),
        }
    }

    /// The element in these bytes.
    pub fn parse(raw: &[u8], dtype: DType) -> Number {
        let mut wide = [0; 8];
        wide[..raw.len()].copy_from_slice(raw);
        let bits = u64::from_le_bytes(wide);
        match dtype {
            DType::F16 => Float(f16::from_bits(bits as u16).to_f64()),
            DType::BF16 => Float(bf16::from_bits(bits as u16).to_f64()),
            DType::F32 => Float(f64::from(f32::from_bits(bits as u32))),
            DType::F64 => Float(f64::from_bits(bits)),
            DType::C32 => {
                let part = |bits: u64| f16::from_bits(bits as u16).to_f64();
                Complex(Complex64::new(part(bits), part(bits >> 16)))
            }
            DType::C64 => {
                let part = |bits: u64| f64::from(f32::from_bits(bits as u32));
                Complex(Complex64::new(part(bits), part(bits >> 32)))
            }
            _ => Int(wrap(i128::from(bits), dtype)),
        }
    }

    /// The bytes of a number that `dtype` holds.
    pub fn bytes(self, dtype: DType) -> Vec<u8> {
        let bits = match dtype {
            DType::F16 => f16::from_f64(self.float()).to_bits().into(),
            DType::BF16 => bf16::from_f64(self.float()).to_bits().into(),
            DType::F32 => (self.float() as f32).to_bits().into(),
            DType::F64 => self.float().to_bits(),
            DType::C32 => {
                let v = self.complex();
                let part = |v: f64| u64::from(f16::from_f64(v).to_bits());
                part(v.re) | part(v.im) << 16
            }
            DType::C64 => {
                let v = self.complex();
                let v = Complex32::new(v.re as f32, v.im as f32);
                u64::from(v.re.to_bits()) | u64::from(v.im.to_bits()) << 32
            }
            _ => self.int() as u64,
        };
        bits.to_le_bytes()[..dtype.size()].to_vec()
    }
}

/// The low bits of `v`, as many as `dtype` has.
fn wrap(v: i128, dtype: DType) -> i128 {
    let bits = 8 * dtype.size();
    let low = v & ((1 << bits) - 1);
    if dtype == DType::Bool {
        i128::from(low != 0)
    } else if dtype.is_signed() && low >> (bits - 1) == 1 {
        low - (1 << bits)
    } else {
        low
    }
}

/// The least and the largest number of an integer dtype, or of bool.
pub fn range(dtype: DType) -> (i128, i128) {
    let bits = if dtype == DType::Bool { 1 } else { 8 * dtype.size() };
    match dtype.is_signed() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

/// `x` with this many digits after the first, to nearest even; exponents from `least` on.
fn nearest(x: f64, digits: i32, least: i32) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let unit = 2f64.powi(exponent.max(least) - digits);
    (x / unit).round_ties_even() * unit
}

/// What changes nothing when it is added, multiplied, or compared for the larger or the smaller.
pub fn identity(join: cupola_core::prim::Binary, dtype: DType) -> Number {
    use cupola_core::prim::Binary;
    let infinite = |sign: f64, least: bool| match dtype.is_float() {
        true => Float(sign * f64::INFINITY),
        false => Int(if least { range(dtype).0 } else { range(dtype).1 }),
    };
    match join {
        Binary::Mul | Binary::BitAnd => Number::of(dtype, 1.0, 0.0),
        Binary::Maximum | Binary::LogAddExp => infinite(-1.0, true),
        Binary::Minimum => infinite(1.0, false),
        _ => Number::of(dtype, 0.0, 0.0),
    }
}
