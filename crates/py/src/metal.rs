//! `cupola.core.metal`: GPUs of Apple's are there as `wgpu`.

use cupola::DeviceKind;
use cupola::backend::devices_of;
use pyo3::prelude::*;

use crate::generated::docs;

/// Whether there is a GPU through Metal.
#[doc = docs!(metal::is_available)]
#[pyfunction]
pub fn is_available() -> bool {
    cfg!(target_os = "macos") && devices_of(DeviceKind::Wgpu).iter().any(|b| b.is_real())
}
