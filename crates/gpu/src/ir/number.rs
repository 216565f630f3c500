//! Elements of every dtype, complex ones as two values.

use cupola_core::DType;

use super::{Buf, Build, Shared, Ty, Un, Val, Var};

/// An element in registers.
#[derive(Clone, Copy, Debug)]
pub enum Number<'k> {
    /// Of any dtype that is not complex.
    Real(Val<'k>),
    /// The real and the imaginary part.
    Complex(Val<'k>, Val<'k>),
}

impl<'k> Number<'k> {
    /// The `complex32` of which the low half of a word is the real part.
    pub fn of_halves(word: Val<'k>) -> Number<'k> {
        Number::Complex((word & 0xffff).half_to_float(), (word >> 16).half_to_float())
    }

    /// The value, or the real part.
    pub fn real(self) -> Val<'k> {
        match self {
            Number::Real(v) | Number::Complex(v, _) => v,
        }
    }

    /// The values.
    pub fn parts(self) -> impl Iterator<Item = Val<'k>> {
        let (re, im) = match self {
            Number::Real(v) => (v, None),
            Number::Complex(re, im) => (re, Some(im)),
        };
        std::iter::once(re).chain(im)
    }

    /// `f` of every part.
    pub fn map(self, mut f: impl FnMut(Val<'k>) -> Val<'k>) -> Number<'k> {
        match self {
            Number::Real(v) => Number::Real(f(v)),
            Number::Complex(re, im) => Number::Complex(f(re), f(im)),
        }
    }

    /// An element of `dtype` in its registers: integers wrapped to their width.
    pub fn wrapped(self, dtype: DType) -> Number<'k> {
        match self {
            Number::Real(v) => Number::Real(v.wrapped(dtype)),
            complex => complex,
        }
    }

    /// What was computed in the type that holds `dtype`, as a value of `dtype`.
    pub fn rounded(self, dtype: DType) -> Number<'k> {
        match self {
            Number::Real(v) => Number::Real(v.rounded(dtype)),
            complex => complex.map(|v| v.rounded(dtype.real())),
        }
    }
}

/// An element in variables.
#[derive(Clone, Copy)]
pub struct NumberVar<'k> {
    /// The value, or the real part.
    pub re: Var<'k>,
    /// The imaginary part of a complex element.
    pub im: Option<Var<'k>>,
}

impl<'k> NumberVar<'k> {
    /// The variables.
    pub fn parts(self) -> impl Iterator<Item = Var<'k>> {
        std::iter::once(self.re).chain(self.im)
    }

    /// What it holds.
    pub fn get(self) -> Number<'k> {
        let re = self.re.get();
        match self.im {
            Some(im) => Number::Complex(re, im.get()),
            None => Number::Real(re),
        }
    }

    /// Changes it.
    pub fn set(self, number: Number<'k>) {
        self.parts().zip(number.parts()).for_each(|(var, v)| var.set(v));
    }
}

/// Elements in shared memory, complex ones in two arrays.
#[derive(Clone, Copy, Debug)]
pub struct SharedNumber {
    /// The values, or the real parts.
    pub re: Shared,
    /// The imaginary parts of complex elements.
    pub im: Option<Shared>,
}

impl SharedNumber {
    /// An element.
    pub fn load<'k>(self, index: Val<'k>) -> Number<'k> {
        let re = self.re.load(index);
        match self.im {
            Some(im) => Number::Complex(re, im.load(index)),
            None => Number::Real(re),
        }
    }

    /// Stores an element.
    pub fn store<'k>(self, index: Val<'k>, number: Number<'k>) {
        let arrays = std::iter::once(self.re).chain(self.im);
        arrays.zip(number.parts()).for_each(|(array, v)| array.store(index, v));
    }
}

impl Buf {
    /// The same memory as words, in which `complex32` lies.
    fn words(self) -> Buf {
        Buf { dtype: DType::U32, ..self }
    }

    /// Loads an element of any dtype.
    pub fn load_number<'k>(self, index: Val<'k>) -> Number<'k> {
        match self.dtype {
            DType::C64 => {}
            DType::C32 => return Number::of_halves(self.words().load(index)),
            _ => return Number::Real(self.load(index)),
        }
        let re = index * 2;
        let im = re + 1;
        Number::Complex(self.load(re), self.load(im))
    }

    /// Stores an element of any dtype.
    pub fn store_number<'k>(self, index: Val<'k>, number: Number<'k>) {
        match number {
            Number::Real(v) => self.store(index, v),
            Number::Complex(x, y) if self.dtype == DType::C32 => {
                let [low, high] = [x, y].map(|v| v.bits_of(DType::F16));
                self.words().store(index, low | (high << 16));
            }
            Number::Complex(x, y) => {
                let re = index * 2;
                let im = re + 1;
                self.store(re, x);
                self.store(im, y);
            }
        }
    }
}

impl Build {
    /// An element of `dtype` from a small integer.
    pub fn number(&self, v: i64, dtype: DType) -> Number<'_> {
        let re = self.int(v, Ty::of(dtype));
        match dtype {
            DType::C32 | DType::C64 => Number::Complex(re, self.f32(0.0)),
            _ => Number::Real(re),
        }
    }

    /// Variables for an element, with its first value.
    pub fn number_var<'k>(&'k self, first: Number<'k>) -> NumberVar<'k> {
        match first {
            Number::Real(v) => NumberVar { re: self.var(v), im: None },
            Number::Complex(re, im) => NumberVar { re: self.var(re), im: Some(self.var(im)) },
        }
    }

    /// Room for `len` elements of `dtype` in shared memory.
    pub fn shared_number(&self, dtype: DType, len: u32) -> SharedNumber {
        let array = || self.shared(Ty::of(dtype), len);
        SharedNumber { re: array(), im: dtype.is_complex().then(array) }
    }

    /// The largest or the least value of a real `dtype`, infinite where it has infinities.
    pub fn extreme(&self, largest: bool, dtype: DType) -> Val<'_> {
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
}

impl<'k> Val<'k> {
    /// Whether a float is NaN, by its bits: a device may assume that there is none.
    pub fn is_nan(self) -> Val<'k> {
        match self.unsigned_bits() {
            Some((bits, infinity)) => bits.gt(infinity),
            None => self.k.bool(false),
        }
    }

    /// Whether a float is neither infinite nor NaN, by its bits.
    pub fn is_finite(self) -> Val<'k> {
        match self.unsigned_bits() {
            Some((bits, infinity)) => bits.lt(infinity),
            None => self.k.bool(true),
        }
    }

    /// Whether a float is 0 or subnormal, by its bits.
    pub fn is_small(self) -> Val<'k> {
        let least = match self.ty {
            Ty::F64 => f64::MIN_POSITIVE.to_bits(),
            _ => u64::from(f32::MIN_POSITIVE.to_bits()),
        };
        match self.unsigned_bits() {
            Some((bits, _)) => bits.lt(self.k.lit(least, bits.ty)),
            None => self.k.bool(false),
        }
    }

    /// Whether a number is another than 0; NaN is.
    pub fn is_nonzero(self) -> Val<'k> {
        self.unsigned_bits().map_or(self, |(bits, _)| bits).ne(0)
    }

    /// The bits of a float without its sign, and those of infinity.
    fn unsigned_bits(self) -> Option<(Val<'k>, Val<'k>)> {
        let (ty, mask, infinity) = match self.ty {
            Ty::F32 => (Ty::U32, u64::from(u32::MAX >> 1), u64::from(f32::INFINITY.to_bits())),
            Ty::F64 => (Ty::U64, u64::MAX >> 1, f64::INFINITY.to_bits()),
            Ty::Bool | Ty::I32 | Ty::U32 | Ty::I64 | Ty::U64 => return None,
        };
        Some((self.bits(ty) & self.k.lit(mask, ty), self.k.lit(infinity, ty)))
    }

    /// An element of `dtype` in its register: integers wrapped to their width.
    pub fn wrapped(self, dtype: DType) -> Val<'k> {
        match dtype {
            DType::U8 | DType::I8 => (self << 24) >> 24,
            DType::U16 | DType::I16 => (self << 16) >> 16,
            _ => self,
        }
    }

    /// The `float32` of the `float16` with these bits.
    pub fn half_to_float(self) -> Val<'k> {
        self.un(Un::HalfToFloat)
    }

    /// The bits of a float that `dtype` holds.
    pub fn bits_of(self, dtype: DType) -> Val<'k> {
        match dtype {
            DType::F16 => self.un(Un::FloatToHalf),
            DType::BF16 => self.un(Un::FloatToBfloat),
            DType::F64 => self.bits(Ty::U64),
            _ => self.bits(Ty::U32),
        }
    }

    /// The float that `dtype` has with these bits.
    pub fn float_of(self, dtype: DType) -> Val<'k> {
        match dtype {
            DType::F16 => self.half_to_float(),
            DType::BF16 => self.un(Un::BfloatToFloat),
            other => self.bits(Ty::of(other)),
        }
    }

    /// A float rounded to `dtype`.
    pub fn rounded(self, dtype: DType) -> Val<'k> {
        match dtype {
            DType::F16 => self.un(Un::FloatToHalf).half_to_float(),
            DType::BF16 => self.un(Un::FloatToBfloat).un(Un::BfloatToFloat),
            _ => self,
        }
    }
}
