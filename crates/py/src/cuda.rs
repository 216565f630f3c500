//! `cupola.core.cuda`.

use cupola::DeviceKind;
use cupola::backend::devices_of;
use pyo3::prelude::*;

use crate::generated::docs;

/// Whether there is an NVIDIA GPU that programs can use.
#[doc = docs!(cuda::is_available)]
#[pyfunction]
pub fn is_available() -> bool {
    !devices_of(DeviceKind::Cuda).is_empty()
}
