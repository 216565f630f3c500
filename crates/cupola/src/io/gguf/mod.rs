//! Arrays and settings of language models in one file: GGUF, versions 2 and 3.
//!
//! The format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>. A header with metadata, a
//! list of tensors with their types and places, and their data, each at a multiple of an alignment.
//!
//! Tensors of plain numbers keep their dtype. Blocks of 4 or 8 bits with a scale for 32 weights (`Q4_0`,
//! `Q4_1`, `Q8_0`) become what [`ops::quantized_matmul`](crate::ops::quantized_matmul) takes: packed
//! weights under the tensor's name, and `scales` and `biases` beside it. Other blocks are unpacked to
//! `float16`.

mod blocks;
mod read;
mod tables;
mod write;

use std::collections::BTreeMap;

use cupola_core::Array;

pub use read::{load, read};
pub use write::{save, write};

/// Tensors by name.
pub type Tensors = BTreeMap<String, Array>;
/// Settings by name.
pub type Metadata = BTreeMap<String, Value>;

/// A setting in the metadata.
#[derive(Clone, Debug)]
pub enum Value {
    /// A number or a truth value, or a vector of them.
    Array(Array),
    /// A text.
    Text(String),
    /// A list of texts, or of lists.
    List(Vec<Value>),
}

/// What a file begins with.
const MAGIC: &[u8; 4] = b"GGUF";
/// The version that is written.
const VERSION: u32 = 3;
/// Tensors start at multiples of so many bytes, where the metadata says nothing else.
const ALIGNMENT: u64 = 32;
/// The setting that says it.
const ALIGNMENT_KEY: &str = "general.alignment";

/// What a setting is, by the format's numbers.
mod kind {
    pub const BOOL: u32 = 7;
    pub const TEXT: u32 = 8;
    pub const LIST: u32 = 9;
}

/// The dtypes of numbers in the metadata, by the format's numbers.
const NUMBERS: [(u32, cupola_core::DType); 11] = {
    use cupola_core::DType::{Bool, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    [
        (0, U8),
        (1, I8),
        (2, U16),
        (3, I16),
        (4, U32),
        (5, I32),
        (6, F32),
        (kind::BOOL, Bool),
        (10, U64),
        (11, I64),
        (12, F64),
    ]
};

/// The dtypes of tensors of plain numbers, by the format's numbers.
const PLAIN: [(u32, cupola_core::DType); 8] = {
    use cupola_core::DType::{BF16, F16, F32, F64, I8, I16, I32, I64};
    [(0, F32), (1, F16), (24, I8), (25, I16), (26, I32), (27, I64), (28, F64), (30, BF16)]
};
