//! Files of arrays.

pub mod npy;
pub mod safetensors;
