//! Element types, how two of them promote, and the Rust types that hold them.

use std::fmt;
use std::str::FromStr;

use half::{bf16, f16};
use num_complex::{Complex, Complex32};

use crate::error::{Error, Result};

/// The type of an array's elements.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// True or false, one byte.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Two `f16`, real and imaginary part: half complex numbers, computed in `f32` and rounded by every operation,
    /// as the other half types.
    ///
    /// Transforms ([`fft`](crate::ops::fft)) of them are `complex64`, as those of `f16`.
    ///
    /// # Example
    /// ```
    /// use cupola::{Array, DType, ops};
    /// use half::f16;
    /// use num_complex::Complex;
    /// let z = Array::from_slice(&[Complex::new(f16::from_f32(3.0), f16::from_f32(4.0))], [1])?;
    /// assert_eq!(z.dtype(), DType::C32);
    /// assert_eq!(ops::abs(&z)?.to_vec::<f16>()?, [f16::from_f32(5.0)]);
    /// assert_eq!(ops::multiply(&z, &z)?.to_string(), "array([-7+24j], dtype=complex32)");
    /// # Ok::<(), cupola::Error>(())
    /// ```
    C32,
    /// Two `f32`: real and imaginary part.
    C64,
}

/// What kind of number a dtype holds; the kinds are ordered as promotion orders them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Kind {
    /// Booleans.
    Bool,
    /// Unsigned and signed integers.
    Integer,
    /// Real floating-point numbers.
    Float,
    /// Complex numbers.
    Complex,
}

impl DType {
    /// Every dtype, in declaration order.
    pub const ALL: [DType; 15] = [
        DType::Bool,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C32,
        DType::C64,
    ];

    /// The size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::U16 | DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 | DType::C32 => 4,
            DType::U64 | DType::I64 | DType::F64 | DType::C64 => 8,
        }
    }

    /// What kind of number this is.
    pub const fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Kind::Integer,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Kind::Integer,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Kind::Float,
            DType::C32 | DType::C64 => Kind::Complex,
        }
    }

    /// Whether this is a real floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Whether this is a real or complex floating-point type.
    pub const fn is_inexact(self) -> bool {
        matches!(self.kind(), Kind::Float | Kind::Complex)
    }

    /// Whether this is a complex type.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// Whether derivatives are taken of it: numbers, not truth values. Those by integers are what
    /// the rules give, in the integers' own arithmetic.
    pub const fn is_differentiable(self) -> bool {
        !matches!(self.kind(), Kind::Bool)
    }

    /// Whether this is an integer type (not bool).
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Integer)
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// The name that NumPy and MLX use.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C32 => "complex32",
            DType::C64 => "complex64",
        }
    }

    /// The dtype that an operation on this and `other` computes in, as MLX promotes.
    ///
    /// Mixed signs take the next wider signed integer; `uint64` with a signed integer takes
    /// `float32`; `float16` with `bfloat16` takes `float32`; an integer with a float takes the
    /// float; anything with `complex64` takes `complex64`. `complex32`, which MLX has not, stays with
    /// booleans, integers and `float16`, and takes `complex64` with wider floats and `bfloat16`.
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        let (low, high) = if self <= other { (self, other) } else { (other, self) };
        if low == high || low == Bool {
            return high;
        }
        match (low.kind(), high.kind()) {
            (Kind::Integer, Kind::Integer) => match (low.is_signed(), high.is_signed()) {
                (false, true) if low == U64 => F32,
                (false, true) if low.size() < high.size() => high,
                (false, true) => match low {
                    U8 => I16,
                    U16 => I32,
                    _ => I64,
                },
                _ => high,
            },
            (Kind::Float, Kind::Float) if (low, high) == (F16, BF16) => F32,
            (Kind::Float, Kind::Complex) if low != F16 => C64,
            _ => high,
        }
    }

    /// The dtype in which a scalar of `kind` meets an array of this dtype: a weak scalar takes the
    /// array's dtype unless its kind is the higher one.
    pub fn with_weak(self, kind: Kind) -> DType {
        if kind <= self.kind() {
            return self;
        }
        match kind {
            Kind::Bool => DType::Bool,
            Kind::Integer => DType::I32,
            Kind::Float => DType::F32,
            Kind::Complex => DType::C64,
        }
    }

    /// The real floating-point dtype that a function such as `exp` gives for this dtype:
    /// itself for floats and complex, `float32` for integers and bool.
    pub fn to_inexact(self) -> DType {
        if self.is_inexact() { self } else { DType::F32 }
    }

    /// The dtype a half type accumulates in; every other dtype accumulates in itself.
    pub fn accumulator(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            DType::C32 => DType::C64,
            other => other,
        }
    }

    /// The dtype of the parts of a complex dtype; of every other dtype itself.
    pub const fn real(self) -> DType {
        match self {
            DType::C32 => DType::F16,
            DType::C64 => DType::F32,
            other => other,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        DType::ALL.into_iter().find(|d| d.name() == text).ok_or_else(|| {
            let names: Vec<_> = DType::ALL.iter().map(|d| d.name()).collect();
            Error::argument("dtype", format!("'{text}' is not one of {}", names.join(", ")))
        })
    }
}

/// A Rust type that can be an array's element.
pub trait Element: Copy + Send + Sync + 'static + Into<Scalar> {
    /// The dtype that holds it.
    const DTYPE: DType;
    /// The elements as bytes, in the machine's order.
    fn to_bytes(slice: &[Self]) -> &[u8];
    /// Elements from bytes that [`Element::to_bytes`] made; a bool is true for any byte but zero.
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;
}

/// One number with its kind: what a Rust scalar becomes when it meets an array.
///
/// Float payloads compare and hash by their bits.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer above `i64::MAX`, or any other.
    Uint(u64),
    /// A real number.
    Float(f64),
    /// A complex number: real and imaginary part.
    Complex(f32, f32),
}

impl Scalar {
    /// The kind that decides how this scalar promotes.
    pub fn kind(self) -> Kind {
        match self {
            Scalar::Bool(_) => Kind::Bool,
            Scalar::Int(_) | Scalar::Uint(_) => Kind::Integer,
            Scalar::Float(_) => Kind::Float,
            Scalar::Complex(..) => Kind::Complex,
        }
    }

    /// The value of an integer or a boolean, exactly.
    pub(crate) fn to_i128(self) -> Option<i128> {
        match self {
            Scalar::Bool(v) => Some(v.into()),
            Scalar::Int(v) => Some(v.into()),
            Scalar::Uint(v) => Some(v.into()),
            Scalar::Float(_) | Scalar::Complex(..) => None,
        }
    }

    /// The value as a real number; the real part of a complex one.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(v) => f64::from(u8::from(v)),
            Scalar::Int(v) => v as f64,
            Scalar::Uint(v) => v as f64,
            Scalar::Float(v) => v,
            Scalar::Complex(re, _) => f64::from(re),
        }
    }

    /// The value as a 64-bit integer: floats truncate towards zero and saturate, as Rust casts do.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(v) => i64::from(v),
            Scalar::Int(v) => v,
            Scalar::Uint(v) => v as i64,
            Scalar::Float(v) => v as i64,
            Scalar::Complex(re, _) => re as i64,
        }
    }

    /// The bits that tell two scalars apart.
    pub fn bits(self) -> (u8, u64) {
        match self {
            Scalar::Bool(v) => (0, u64::from(v)),
            Scalar::Int(v) => (1, v as u64),
            Scalar::Uint(v) => (2, v),
            Scalar::Float(v) => (3, v.to_bits()),
            Scalar::Complex(re, im) => (4, u64::from(re.to_bits()) << 32 | u64::from(im.to_bits())),
        }
    }

    /// The bytes of this value as one element of `dtype`, in the first `dtype.size()` bytes.
    pub fn to_element(self, dtype: DType) -> [u8; 8] {
        let mut out = [0; 8];
        let mut put = |bytes: &[u8]| out[..bytes.len()].copy_from_slice(bytes);
        match dtype {
            DType::Bool => put(&[u8::from(match self {
                Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
                other => other.to_f64() != 0.0,
            })]),
            DType::U8 => put(&(self.to_integer(dtype) as u8).to_ne_bytes()),
            DType::U16 => put(&(self.to_integer(dtype) as u16).to_ne_bytes()),
            DType::U32 => put(&(self.to_integer(dtype) as u32).to_ne_bytes()),
            DType::U64 => put(&(self.to_integer(dtype) as u64).to_ne_bytes()),
            DType::I8 => put(&(self.to_integer(dtype) as i8).to_ne_bytes()),
            DType::I16 => put(&(self.to_integer(dtype) as i16).to_ne_bytes()),
            DType::I32 => put(&(self.to_integer(dtype) as i32).to_ne_bytes()),
            DType::I64 => put(&(self.to_integer(dtype) as i64).to_ne_bytes()),
            DType::F16 => put(&f16::from_f64(self.to_f64()).to_ne_bytes()),
            DType::BF16 => put(&bf16::from_f64(self.to_f64()).to_ne_bytes()),
            DType::F32 => put(&(self.to_f64() as f32).to_ne_bytes()),
            DType::F64 => put(&self.to_f64().to_ne_bytes()),
            DType::C32 => {
                let (re, im) = match self {
                    Scalar::Complex(re, im) => (f16::from_f32(re), f16::from_f32(im)),
                    other => (f16::from_f64(other.to_f64()), f16::ZERO),
                };
                put(bytemuck::bytes_of(&[re, im]));
            }
            DType::C64 => {
                let (re, im) = match self {
                    Scalar::Complex(re, im) => (re, im),
                    other => (other.to_f64() as f32, 0.0),
                };
                put(bytemuck::bytes_of(&[re, im]));
            }
        }
        out
    }

    /// The integer of `dtype`, before it wraps to its width; of a float as `astype` has it.
    fn to_integer(self, dtype: DType) -> i128 {
        let float = match self {
            Scalar::Uint(v) => return i128::from(v),
            Scalar::Float(v) => v,
            Scalar::Complex(re, _) => re.into(),
            other => return i128::from(other.to_i64()),
        };
        let wide = dtype.size() == 8;
        match (dtype.is_signed(), wide) {
            (false, true) if float < 0.0 => i128::from(float as i64),
            (false, false) if float < 0.0 => i128::from(float as i32),
            (false, _) => (float as i128).min(!(-1 << (8 * dtype.size()))),
            (true, _) => {
                let most = 1i128 << (8 * dtype.size() - 1);
                (float as i128).clamp(-most, most - 1)
            }
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}

impl Eq for Scalar {}

impl std::hash::Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Scalar::Bool(v) => write!(f, "{v}"),
            Scalar::Int(v) => write!(f, "{v}"),
            Scalar::Uint(v) => write!(f, "{v}"),
            Scalar::Float(v) => write!(f, "{v:?}"),
            Scalar::Complex(re, im) => write!(f, "{re}{im:+}j"),
        }
    }
}

macro_rules! elements {
    ($($type:ty => $dtype:ident, |$v:ident| $scalar:expr;)*) => {$(
        impl From<$type> for Scalar {
            fn from($v: $type) -> Scalar {
                $scalar
            }
        }

        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            fn to_bytes(slice: &[Self]) -> &[u8] {
                bytemuck::cast_slice(slice)
            }

            fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                let mut out = vec![<$type as bytemuck::Zeroable>::zeroed(); bytes.len() / size_of::<$type>()];
                bytemuck::cast_slice_mut(&mut out).copy_from_slice(bytes);
                out
            }
        }
    )*};
}

elements! {
    u8 => U8, |v| Scalar::Int(v.into());
    u16 => U16, |v| Scalar::Int(v.into());
    u32 => U32, |v| Scalar::Int(v.into());
    u64 => U64, |v| Scalar::Uint(v);
    i8 => I8, |v| Scalar::Int(v.into());
    i16 => I16, |v| Scalar::Int(v.into());
    i32 => I32, |v| Scalar::Int(v.into());
    i64 => I64, |v| Scalar::Int(v);
    f16 => F16, |v| Scalar::Float(v.to_f64());
    bf16 => BF16, |v| Scalar::Float(v.to_f64());
    f32 => F32, |v| Scalar::Float(v.into());
    f64 => F64, |v| Scalar::Float(v);
    Complex<f16> => C32, |v| Scalar::Complex(v.re.into(), v.im.into());
    Complex32 => C64, |v| Scalar::Complex(v.re, v.im);
}

impl From<bool> for Scalar {
    fn from(v: bool) -> Scalar {
        Scalar::Bool(v)
    }
}

impl From<usize> for Scalar {
    fn from(v: usize) -> Scalar {
        Scalar::Uint(v as u64)
    }
}

impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn to_bytes(slice: &[Self]) -> &[u8] {
        bytemuck::cast_slice(slice)
    }

    fn from_bytes(bytes: &[u8]) -> Vec<Self> {
        bytes.iter().map(|&b| b != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_commutative_and_follows_mlx() {
        use DType::*;
        for a in DType::ALL {
            assert_eq!(a.promote(a), a);
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a), "{a} {b}");
            }
        }
        let cases = [
            (U8, I8, I16),
            (U8, I64, I64),
            (U16, I16, I32),
            (U32, I32, I64),
            (U32, I8, I64),
            (U64, I64, F32),
            (U64, I8, F32),
            (I64, F16, F16),
            (F16, BF16, F32),
            (BF16, F64, F64),
            (F64, C64, C64),
            (Bool, U8, U8),
        ];
        for (a, b, want) in cases {
            assert_eq!(a.promote(b), want, "{a} {b}");
        }
    }

    #[test]
    fn weak_scalars_keep_the_array_dtype() {
        assert_eq!(DType::F16.with_weak(Kind::Float), DType::F16);
        assert_eq!(DType::F16.with_weak(Kind::Integer), DType::F16);
        assert_eq!(DType::I8.with_weak(Kind::Float), DType::F32);
        assert_eq!(DType::Bool.with_weak(Kind::Integer), DType::I32);
        assert_eq!(DType::F64.with_weak(Kind::Complex), DType::C64);
    }

    #[test]
    fn scalars_become_elements() {
        assert_eq!(Scalar::Int(-1).to_element(DType::U8)[0], 255);
        assert_eq!(Scalar::Float(1.5).to_element(DType::F32)[..4], 1.5f32.to_ne_bytes());
        assert_eq!(Scalar::Bool(true).to_element(DType::I64), 1i64.to_ne_bytes());
    }

    #[test]
    fn names_parse_back() {
        for d in DType::ALL {
            assert_eq!(d.name().parse::<DType>().unwrap(), d);
        }
        assert!("float".parse::<DType>().unwrap_err().to_string().contains("float32"));
    }
}
