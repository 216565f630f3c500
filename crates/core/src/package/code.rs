//! Numbers, texts and lists as bytes: what the stored form of a primitive is made of.
//!
//! [`record!`] and [`choice!`] give a type both directions from one list of its fields, so that what is
//! written and what is read cannot differ, and a new field or variant does not compile until it is
//! there.

use crate::dtype::{DType, Scalar};
use crate::graph::Ref;
use crate::precision::MatmulPrecision;
use crate::shape::{Aval, Dims, MAX_RANK, Shape};

/// Bytes that are written.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
    /// Where numbers are that may follow from sizes, in order.
    numbers: Vec<(usize, Number)>,
}

/// A number that may follow from sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// A size, an axis or a count.
    Size,
    /// A [`Scalar`].
    Scalar,
}

impl Writer {
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A short text: its length in a byte, then UTF-8.
    pub fn text(&mut self, text: &str) {
        let end = text.floor_char_boundary(u8::MAX.into());
        self.bytes.push(end as u8);
        self.bytes(&text.as_bytes()[..end]);
    }

    /// A text of any length: its length in four bytes, then UTF-8.
    pub fn long_text(&mut self, text: &str) {
        (text.len() as u32).write(self);
        self.bytes(text.as_bytes());
    }

    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes, and where numbers are in them that may follow from sizes.
    pub fn into_parts(self) -> (Vec<u8>, Vec<(usize, Number)>) {
        (self.bytes, self.numbers)
    }

    fn note(&mut self, number: Number) {
        self.numbers.push((self.bytes.len(), number));
    }
}

/// Bytes that are read, from the first to the last.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// How many bytes there are.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes were read.
    pub fn place(&self) -> usize {
        self.at
    }

    /// How many are left.
    pub fn rest(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..count) else {
            return Err(format!("{count} bytes are missing, {} are left", rest.len()));
        };
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub fn text(&mut self) -> Result<&'a str, String> {
        let length = u8::read(self)?;
        let bytes = self.take(length.into())?;
        std::str::from_utf8(bytes).map_err(|_| "a name is no text".into())
    }

    pub fn long_text(&mut self) -> Result<&'a str, String> {
        let length = self.count(1, "bytes of text")?;
        std::str::from_utf8(self.take(length)?).map_err(|_| "what should be text is none".into())
    }

    /// How many things of at least `least` bytes follow: not more than there are bytes for.
    pub fn count(&mut self, least: usize, what: &str) -> Result<usize, String> {
        let count = u32::read(self)? as usize;
        match count.checked_mul(least) {
            Some(bytes) if bytes <= self.rest() => Ok(count),
            _ => Err(format!("{count} {what} do not fit the {} bytes that are left", self.rest())),
        }
    }
}

/// What has a form in bytes.
pub trait Stored: Sized {
    /// Writes it down.
    fn write(&self, out: &mut Writer);

    /// Reads it again, or says what is wrong.
    fn read(from: &mut Reader<'_>) -> Result<Self, String>;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Stored for $type {
            fn write(&self, out: &mut Writer) {
                out.bytes(&self.to_le_bytes());
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, String> {
                Ok(<$type>::from_le_bytes(from.array()?))
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 }

impl Stored for bool {
    fn write(&self, out: &mut Writer) {
        u8::from(*self).write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, String> {
        match u8::read(from)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("{other} is neither false nor true")),
        }
    }
}

/// A size, an axis or a count: never more than an address space holds.
impl Stored for usize {
    fn write(&self, out: &mut Writer) {
        out.note(Number::Size);
        (*self as u64).write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, String> {
        let number = u64::read(from)?;
        let fits = usize::try_from(number).ok().filter(|&n| n <= isize::MAX as usize);
        fits.ok_or_else(|| format!("{number} is larger than an address space"))
    }
}

impl Stored for (usize, usize) {
    fn write(&self, out: &mut Writer) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, String> {
        Ok((usize::read(from)?, usize::read(from)?))
    }
}

/// As many numbers as an array has axes, at most.
impl Stored for Dims {
    fn write(&self, out: &mut Writer) {
        (self.len() as u8).write(out);
        self.iter().for_each(|n| n.write(out));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, String> {
        let count = usize::from(u8::read(from)?);
        if count > MAX_RANK {
            return Err(format!("{count} axes, where {MAX_RANK} are the most"));
        }
        (0..count).map(|_| usize::read(from)).collect()
    }
}

impl Stored for Vec<(usize, usize)> {
    fn write(&self, out: &mut Writer) {
        (self.len() as u32).write(out);
        self.iter().for_each(|pair| pair.write(out));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, String> {
        let count = from.count(16, "pairs")?;
        (0..count).map(|_| Stored::read(from)).collect()
    }
}

impl Stored for Vec<u32> {
    fn write(&self, out: &mut Writer) {
        (self.len() as u32).write(out);
        self.iter().for_each(|n| n.write(out));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, String> {
        let count = from.count(4, "numbers")?;
        (0..count).map(|_| u32::read(from)).collect()
    }
}

impl Stored for Vec<Ref> {
    fn write(&self, out: &mut Writer) {
        (self.len() as u32).write(out);
        self.iter().for_each(|r| r.write(out));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, String> {
        let count = from.count(8, "references")?;
        (0..count).map(|_| Ref::read(from)).collect()
    }
}

impl Stored for Shape {
    fn write(&self, out: &mut Writer) {
        self.0.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, String> {
        Dims::read(from).map(Shape)
    }
}

/// A struct, field by field, in this order.
macro_rules! record {
    ($type:ident { $($field:ident),* }) => {
        impl $crate::package::code::Stored for $type {
            fn write(&self, _out: &mut $crate::package::code::Writer) {
                let $type { $($field),* } = self;
                $($field.write(_out);)*
            }

            fn read(_from: &mut $crate::package::code::Reader<'_>) -> Result<Self, String> {
                Ok($type { $($field: $crate::package::code::Stored::read(_from)?),* })
            }
        }
    };
}

/// An enum: the number of the variant in a byte, then its fields.
macro_rules! choice {
    ($type:ident { $($code:literal $variant:ident $(($($t:ident),*))? $({$($f:ident),*})?;)* }) => {
        impl $crate::package::code::Stored for $type {
            fn write(&self, out: &mut $crate::package::code::Writer) {
                match self {
                    $($type::$variant $(($($t),*))? $({$($f),*})? => {
                        $crate::package::code::Stored::write(&($code as u8), out);
                        $($($t.write(out);)*)?
                        $($($f.write(out);)*)?
                    })*
                }
            }

            fn read(from: &mut $crate::package::code::Reader<'_>) -> Result<Self, String> {
                match <u8 as $crate::package::code::Stored>::read(from)? {
                    $($code => {
                        $($(let $t = $crate::package::code::Stored::read(from)?;)*)?
                        $($(let $f = $crate::package::code::Stored::read(from)?;)*)?
                        Ok($type::$variant $(($($t),*))? $({$($f),*})?)
                    })*
                    other => Err(format!("{} {other} is not known", stringify!($type))),
                }
            }
        }
    };
}

/// An enum without fields whose variants are told apart by their names, which are NumPy's.
macro_rules! named {
    ($type:ident) => {
        impl $crate::package::code::Stored for $type {
            fn write(&self, out: &mut $crate::package::code::Writer) {
                out.text(self.name());
            }

            fn read(from: &mut $crate::package::code::Reader<'_>) -> Result<Self, String> {
                let name = from.text()?;
                let found = $type::ALL.iter().copied().find(|known| known.name() == name);
                found.ok_or_else(|| format!("{} '{name}' is not known", stringify!($type)))
            }
        }
    };
}

pub(super) use {choice, named, record};

record!(Ref { node, output });
record!(Aval { dtype, shape });
choice!(MatmulPrecision { 0 Tf32; 1 Full; });
choice!(DType {
    0 Bool; 1 U8; 2 U16; 3 U32; 4 U64; 5 I8; 6 I16; 7 I32; 8 I64; 9 F16; 10 BF16; 11 F32; 12 F64;
    13 C64; 14 C32;
});

/// The kind, then the bits.
impl Stored for Scalar {
    fn write(&self, out: &mut Writer) {
        let (kind, bits) = self.bits();
        out.note(Number::Scalar);
        kind.write(out);
        bits.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, String> {
        let (kind, bits) = (u8::read(from)?, u64::read(from)?);
        Ok(match kind {
            0 if bits <= 1 => Scalar::Bool(bits == 1),
            1 => Scalar::Int(bits as i64),
            2 => Scalar::Uint(bits),
            3 => Scalar::Float(f64::from_bits(bits)),
            4 => Scalar::Complex(f32::from_bits((bits >> 32) as u32), f32::from_bits(bits as u32)),
            _ => return Err(format!("{bits} of kind {kind} is no number")),
        })
    }
}
