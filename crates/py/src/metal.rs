//! `cupola.core.metal`: GPUs of Apple's are there as `wgpu`. What MLX has moved from here to `core` still
//! answers, with a notice.

use cupola::DeviceKind;
use cupola::backend::devices_of;
use pyo3::exceptions::{PyDeprecationWarning, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::generated::docs;
use crate::memory::Limit;

/// Whether there is a GPU through Metal.
#[doc = docs!(metal::is_available)]
#[pyfunction]
pub fn is_available() -> bool {
    cfg!(target_os = "macos") && devices_of(DeviceKind::Wgpu).iter().any(|b| b.is_real())
}

/// Says that `core` has the function now.
fn moved(py: Python<'_>, name: &str) -> PyResult<()> {
    let text = format!("mx.metal.{name} is deprecated: use mx.{name}");
    let text = std::ffi::CString::new(text)?;
    PyErr::warn(py, &py.get_type::<PyDeprecationWarning>(), &text, 1)
}

/// The bytes that live arrays hold: `mx.get_active_memory`.
#[doc = docs!(metal::get_active_memory)]
#[pyfunction]
pub fn get_active_memory(py: Python<'_>) -> PyResult<usize> {
    moved(py, "get_active_memory")?;
    crate::memory::get_active_memory()
}

/// The most bytes that live arrays held: `mx.get_peak_memory`.
#[doc = docs!(metal::get_peak_memory)]
#[pyfunction]
pub fn get_peak_memory(py: Python<'_>) -> PyResult<usize> {
    moved(py, "get_peak_memory")?;
    crate::memory::get_peak_memory()
}

/// The bytes that are kept for reuse: `mx.get_cache_memory`.
#[doc = docs!(metal::get_cache_memory)]
#[pyfunction]
pub fn get_cache_memory(py: Python<'_>) -> PyResult<usize> {
    moved(py, "get_cache_memory")?;
    crate::memory::get_cache_memory()
}

/// Counts the most memory in use anew: `mx.reset_peak_memory`.
#[doc = docs!(metal::reset_peak_memory)]
#[pyfunction]
pub fn reset_peak_memory(py: Python<'_>) -> PyResult<()> {
    moved(py, "reset_peak_memory")?;
    crate::memory::reset_peak_memory()
}

/// Gives kept memory back to the system: `mx.clear_cache`.
#[doc = docs!(metal::clear_cache)]
#[pyfunction]
pub fn clear_cache(py: Python<'_>) -> PyResult<()> {
    moved(py, "clear_cache")?;
    crate::memory::clear_cache()
}

/// Sets a guideline for memory: `mx.set_memory_limit`.
#[doc = docs!(metal::set_memory_limit)]
#[pyfunction]
pub fn set_memory_limit(py: Python<'_>, limit: Limit) -> PyResult<usize> {
    moved(py, "set_memory_limit")?;
    Ok(crate::memory::set_memory_limit(limit))
}

/// Bounds what is kept for reuse: `mx.set_cache_limit`.
#[doc = docs!(metal::set_cache_limit)]
#[pyfunction]
pub fn set_cache_limit(py: Python<'_>, limit: Limit) -> PyResult<usize> {
    moved(py, "set_cache_limit")?;
    crate::memory::set_cache_limit(limit)
}

/// Notes how many bytes should stay in physical memory: `mx.set_wired_limit`.
#[doc = docs!(metal::set_wired_limit)]
#[pyfunction]
pub fn set_wired_limit(py: Python<'_>, limit: Limit) -> PyResult<usize> {
    moved(py, "set_wired_limit")?;
    Ok(crate::memory::set_wired_limit(limit))
}

/// What is known of the GPU through Metal; nothing where there is none.
#[doc = docs!(metal::device_info)]
#[pyfunction]
pub fn device_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    moved(py, "device_info")?;
    match is_available() {
        true => crate::device::device_info(py, None),
        false => Ok(PyDict::new(py)),
    }
}

fn no_captures(name: &str) -> PyErr {
    PyRuntimeError::new_err(format!("metal.{name}: captures are of Metal, and Cupola records none"))
}

/// Is an error: captures are files of Metal's.
#[doc = docs!(metal::start_capture)]
#[pyfunction]
pub fn start_capture(path: &str) -> PyResult<()> {
    let _ = path;
    Err(no_captures("start_capture"))
}

/// Is an error, as `start_capture`.
#[doc = docs!(metal::stop_capture)]
#[pyfunction]
pub fn stop_capture() -> PyResult<()> {
    Err(no_captures("stop_capture"))
}
