//! The element types of ONNX, and the dtypes that hold them.

use cupola_core::DType;

use super::error::Fault;

macro_rules! elements {
    ($($variant:ident = $code:literal, $name:literal, $dtype:ident, $bits:literal;)*) => {
        /// The element type of a tensor.
        ///
        /// What Cupola has no dtype for lives in a wider one: packed integers in 8 bits, small floats in
        /// `float32`. Each element is then a value of its element type.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs)]
        pub enum Element {
            $($variant,)*
        }

        impl Element {
            /// Every element type that is read.
            pub const ALL: &'static [Element] = &[$(Element::$variant,)*];

            /// The number that stands for it in a file.
            pub const fn code(self) -> i32 {
                match self {
                    $(Element::$variant => $code,)*
                }
            }

            /// Its name in the format.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Element::$variant => $name,)*
                }
            }

            /// The dtype of an array that holds it.
            pub const fn dtype(self) -> DType {
                match self {
                    $(Element::$variant => DType::$dtype,)*
                }
            }

            /// How many bits an element takes in a file.
            pub const fn bits(self) -> usize {
                match self {
                    $(Element::$variant => $bits,)*
                }
            }
        }
    };
}

elements! {
    Float = 1, "FLOAT", F32, 32;
    Uint8 = 2, "UINT8", U8, 8;
    Int8 = 3, "INT8", I8, 8;
    Uint16 = 4, "UINT16", U16, 16;
    Int16 = 5, "INT16", I16, 16;
    Int32 = 6, "INT32", I32, 32;
    Int64 = 7, "INT64", I64, 64;
    Bool = 9, "BOOL", Bool, 8;
    Float16 = 10, "FLOAT16", F16, 16;
    Double = 11, "DOUBLE", F64, 64;
    Uint32 = 12, "UINT32", U32, 32;
    Uint64 = 13, "UINT64", U64, 64;
    Complex64 = 14, "COMPLEX64", C64, 64;
    Bfloat16 = 16, "BFLOAT16", BF16, 16;
    Float8E4M3FN = 17, "FLOAT8E4M3FN", F32, 8;
    Float8E4M3FNUZ = 18, "FLOAT8E4M3FNUZ", F32, 8;
    Float8E5M2 = 19, "FLOAT8E5M2", F32, 8;
    Float8E5M2FNUZ = 20, "FLOAT8E5M2FNUZ", F32, 8;
    Uint4 = 21, "UINT4", U8, 4;
    Int4 = 22, "INT4", I8, 4;
    Float4E2M1 = 23, "FLOAT4E2M1", F32, 4;
    Float8E8M0 = 24, "FLOAT8E8M0", F32, 8;
    Uint2 = 25, "UINT2", U8, 2;
    Int2 = 26, "INT2", I8, 2;
    Float6E2M3 = 27, "FLOAT6E2M3", F32, 8;
    Float6E3M2 = 28, "FLOAT6E3M2", F32, 8;
}

impl Element {
    /// The element type of a number in a file.
    pub fn from_code(code: i64) -> Result<Element, Fault> {
        if let Some(&found) = Element::ALL.iter().find(|e| i64::from(e.code()) == code) {
            return Ok(found);
        }
        match code {
            8 => Err(Fault::unsupported("strings are not read")),
            15 => Err(Fault::unsupported("elements of COMPLEX128 are not read")),
            _ => Err(Fault::invalid(format!("{code} is no element type"))),
        }
    }

    /// The element type whose elements are those of `dtype`; the wider one of `complex32`, which a model cannot have.
    pub fn of(dtype: DType) -> Element {
        match dtype {
            DType::Bool => Element::Bool,
            DType::U8 => Element::Uint8,
            DType::U16 => Element::Uint16,
            DType::U32 => Element::Uint32,
            DType::U64 => Element::Uint64,
            DType::I8 => Element::Int8,
            DType::I16 => Element::Int16,
            DType::I32 => Element::Int32,
            DType::I64 => Element::Int64,
            DType::F16 => Element::Float16,
            DType::BF16 => Element::Bfloat16,
            DType::F32 => Element::Float,
            DType::F64 => Element::Double,
            DType::C32 | DType::C64 => Element::Complex64,
        }
    }

    /// Whether the dtype holds just these elements.
    pub fn is_plain(self) -> bool {
        Element::of(self.dtype()) == self
    }

    /// Whether it is one of the packed integers.
    pub fn is_packed_integer(self) -> bool {
        matches!(self, Element::Uint4 | Element::Int4 | Element::Uint2 | Element::Int2)
    }

    /// The least and largest integer of an integer type that is quantized to.
    pub fn range(self) -> Option<(f64, f64)> {
        let bits = self.bits() as i32;
        match self.dtype() {
            d if d.is_signed() => Some((-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0)),
            d if d.is_integer() => Some((0.0, 2f64.powi(bits) - 1.0)),
            _ => None,
        }
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
