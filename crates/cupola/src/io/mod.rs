//! Files of arrays.

pub mod safetensors;
