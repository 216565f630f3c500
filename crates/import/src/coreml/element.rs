//! The element types of ML programs, and the dtypes that hold them.

use cupola_core::DType;

use crate::error::Fault;

/// The element type of a tensor.
///
/// What Cupola has no dtype for lives in a wider one: packed integers in 8 bits, small floats in `float32`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element {
    /// The number that stands for it in a model.
    pub code: i32,
    /// Its name in the operators' arguments.
    pub name: &'static str,
    /// The dtype of an array that holds it.
    pub dtype: DType,
    /// How many bits an element takes in a file.
    pub bits: usize,
    /// The number that stands for it in a file of weights.
    pub stored: u32,
}

macro_rules! elements {
    ($($name:literal: $code:literal, $dtype:ident, $bits:literal, $stored:literal;)*) => {
        /// Every element type that is read.
        pub const ALL: &[Element] = &[$(
            Element {
                code: $code,
                name: $name,
                dtype: DType::$dtype,
                bits: $bits,
                stored: $stored,
            },
        )*];
    };
}

// What is never in a file of weights has the number 0 there.
elements! {
    "bool": 1, Bool, 8, 0;
    "fp16": 10, F16, 16, 1;
    "fp32": 11, F32, 32, 2;
    "fp64": 12, F64, 64, 0;
    "bf16": 13, BF16, 16, 5;
    "int8": 21, I8, 8, 4;
    "int16": 22, I16, 16, 6;
    "int32": 23, I32, 32, 14;
    "int64": 24, I64, 64, 0;
    "int4": 25, I8, 4, 8;
    "uint8": 31, U8, 8, 3;
    "uint16": 32, U16, 16, 7;
    "uint32": 33, U32, 32, 15;
    "uint64": 34, U64, 64, 0;
    "uint4": 35, U8, 4, 11;
    "uint2": 36, U8, 2, 10;
    "uint1": 37, U8, 1, 9;
    "uint6": 38, U8, 6, 13;
    "uint3": 39, U8, 3, 12;
    "fp8e4m3fn": 40, F32, 8, 16;
    "fp8e5m2": 41, F32, 8, 17;
}

/// The number of strings, which are no arrays.
pub const TEXT: i32 = 2;

impl Element {
    /// The element type of a number in a model.
    pub fn from_code(code: i32) -> Result<Element, Fault> {
        match ALL.iter().find(|element| element.code == code) {
            Some(element) => Ok(*element),
            None if code == TEXT => Err(Fault::unsupported("there are no arrays of strings")),
            None => Err(Fault::invalid(format!("{code} is no element type"))),
        }
    }

    /// The element type of a name.
    pub fn from_name(name: &str) -> Result<Element, Fault> {
        let found = ALL.iter().find(|element| element.name == name);
        found.copied().ok_or_else(|| Fault::invalid(format!("'{name}' is no element type")))
    }

    /// The least and the largest number of an integer type.
    pub fn range(self) -> Option<(f64, f64)> {
        let bits = self.bits as i32;
        match self.dtype {
            dtype if dtype.is_signed() && dtype.is_integer() => {
                Some((-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0))
            }
            dtype if dtype.is_integer() => Some((0.0, 2f64.powi(bits) - 1.0)),
            _ => None,
        }
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
