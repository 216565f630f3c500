//! Files of arrays.

mod content;
pub mod gguf;
pub mod npy;
pub mod safetensors;
mod whole;

use cupola_core::DType;

pub(crate) use content::array_in;
pub use content::content;
pub use whole::{Replacement, check_file, write_whole};
pub(crate) use whole::{folder_beside, replaced, sweep};

/// Elements between the machine's byte order and the file's.
pub(crate) fn little_endian(mut bytes: Vec<u8>, dtype: DType) -> Vec<u8> {
    if cfg!(target_endian = "big") {
        let width = dtype.real().size();
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    bytes
}
