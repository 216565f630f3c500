//! `cupola.core.cuda`.

use cupola::DeviceKind;
use cupola::backend::devices_of;
use pyo3::prelude::*;

/// Whether there is an NVIDIA GPU that programs can use.
#[pyfunction]
pub fn is_available() -> bool {
    !devices_of(DeviceKind::Cuda).is_empty()
}
