//! Elements of every dtype, complex ones as two values.

use cupola_core::DType;

use super::{Buf, Build, Ty, Un, Val, Var};

/// An element in registers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// Of any dtype but `complex64`.
    Real(Val),
    /// The real and the imaginary part.
    Complex(Val, Val),
}

impl Number {
    /// The value, or the real part.
    pub fn real(self) -> Val {
        match self {
            Number::Real(v) | Number::Complex(v, _) => v,
        }
    }

    /// The values.
    pub fn parts(self) -> impl Iterator<Item = Val> {
        let (re, im) = match self {
            Number::Real(v) => (v, None),
            Number::Complex(re, im) => (re, Some(im)),
        };
        std::iter::once(re).chain(im)
    }
}

impl Build<'_> {
    /// Loads an element of any dtype.
    pub fn load_number(&mut self, buf: Buf, index: Val) -> Number {
        if self.dtype(buf) != DType::C64 {
            return Number::Real(self.load(buf, index));
        }
        let (re, im) = self.places(index);
        Number::Complex(self.load(buf, re), self.load(buf, im))
    }

    /// Stores an element of any dtype.
    pub fn store_number(&mut self, buf: Buf, index: Val, number: Number) {
        match number {
            Number::Real(v) => self.store(buf, index, v),
            Number::Complex(x, y) => {
                let (re, im) = self.places(index);
                self.store(buf, re, x);
                self.store(buf, im, y);
            }
        }
    }

    /// Where the parts of a complex element are.
    fn places(&mut self, index: Val) -> (Val, Val) {
        let (one, two) = (self.int(1, index.ty), self.int(2, index.ty));
        let re = self.mul(index, two);
        (re, self.add(re, one))
    }

    /// An element of `dtype` from a small integer.
    pub fn number(&mut self, v: i64, dtype: DType) -> Number {
        let re = self.int(v, Ty::of(dtype));
        match dtype {
            DType::C64 => Number::Complex(re, self.f32(0.0)),
            _ => Number::Real(re),
        }
    }

    /// The element whose parts are in variables.
    pub fn get_number(&mut self, parts: &[Var]) -> Number {
        let re = self.get(parts[0]);
        match parts.get(1) {
            Some(&im) => Number::Complex(re, self.get(im)),
            None => Number::Real(re),
        }
    }

    /// The largest or the least value of a real `dtype`, infinite where it has infinities.
    pub fn extreme(&mut self, largest: bool, dtype: DType) -> Val {
        let (ty, bits) = (Ty::of(dtype), dtype.size() as u32 * 8);
        match ty {
            Ty::Bool => self.bool(largest),
            Ty::F32 | Ty::F64 => {
                self.float(if largest { f64::INFINITY } else { f64::NEG_INFINITY }, ty)
            }
            Ty::U32 | Ty::U64 if largest => self.lit(u64::MAX >> (64 - bits), ty),
            Ty::U32 | Ty::U64 => self.int(0, ty),
            Ty::I32 | Ty::I64 if largest => self.lit(u64::MAX >> (65 - bits), ty),
            Ty::I32 | Ty::I64 => self.lit(u64::MAX << (bits - 1), ty),
        }
    }

    /// Whether a float is NaN, by its bits: a device may assume that there is none.
    pub fn is_nan(&mut self, x: Val) -> Val {
        match self.unsigned_bits(x) {
            Some((bits, infinity)) => self.gt(bits, infinity),
            None => self.bool(false),
        }
    }

    /// Whether a number is another than 0; NaN is.
    pub fn is_nonzero(&mut self, x: Val) -> Val {
        let bits = self.unsigned_bits(x).map_or(x, |(bits, _)| bits);
        let zero = self.int(0, bits.ty);
        self.ne(bits, zero)
    }

    /// The bits of a float without its sign, and those of infinity.
    fn unsigned_bits(&mut self, x: Val) -> Option<(Val, Val)> {
        let (ty, mask, infinity) = match x.ty {
            Ty::F32 => (Ty::U32, u64::from(u32::MAX >> 1), u64::from(f32::INFINITY.to_bits())),
            Ty::F64 => (Ty::U64, u64::MAX >> 1, f64::INFINITY.to_bits()),
            Ty::Bool | Ty::I32 | Ty::U32 | Ty::I64 | Ty::U64 => return None,
        };
        let (bits, mask) = (self.bits(x, ty), self.lit(mask, ty));
        Some((self.and(bits, mask), self.lit(infinity, ty)))
    }

    /// `x` as an element of `dtype` in its register: integers wrapped to their width.
    pub fn wrapped(&mut self, x: Val, dtype: DType) -> Val {
        let up = match dtype {
            DType::U8 | DType::I8 => 24,
            DType::U16 | DType::I16 => 16,
            _ => return x,
        };
        let up = self.u32(up);
        let high = self.shl(x, up);
        self.shr(high, up)
    }

    /// A float rounded to `dtype`.
    pub fn rounded(&mut self, x: Val, dtype: DType) -> Val {
        match dtype {
            DType::F16 => {
                let half = self.un(Un::FloatToHalf, x);
                self.un(Un::HalfToFloat, half)
            }
            DType::BF16 => {
                let bits = self.bits(x, Ty::U32);
                let nan = self.is_nan(x);
                let (sixteen, one) = (self.u32(16), self.u32(1));
                let last = self.shr(bits, sixteen);
                let last = self.and(last, one);
                let (most, low) = (self.u32(0x7fff), self.u32(0xffff_0000));
                let carried = self.add(bits, most);
                let carried = self.add(carried, last);
                let cut = self.and(carried, low);
                let quiet = self.u32(0x40_0000);
                let as_nan = self.or(bits, quiet);
                let result = self.select(nan, as_nan, cut);
                self.bits(result, Ty::F32)
            }
            _ => x,
        }
    }
}
