//! Files of arrays.

pub mod npy;
pub mod safetensors;
mod whole;

pub(crate) use whole::PREFIX;
pub use whole::{Replacement, write_whole};
