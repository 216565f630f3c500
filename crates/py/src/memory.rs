//! How much memory the default device uses.

use cupola::backend::{Backend, backend};
use pyo3::prelude::*;

use crate::error::raise;

fn default_backend() -> PyResult<&'static dyn Backend> {
    let device = cupola::device::default_stream().device;
    Ok(&**backend(device).map_err(raise)?)
}

/// The bytes that live arrays hold.
#[pyfunction]
pub fn get_active_memory() -> PyResult<usize> {
    Ok(default_backend()?.memory().active)
}

/// The most bytes that live arrays held, since the last `reset_peak_memory`.
#[pyfunction]
pub fn get_peak_memory() -> PyResult<usize> {
    Ok(default_backend()?.memory().peak)
}

/// The bytes that are kept for reuse.
#[pyfunction]
pub fn get_cache_memory() -> PyResult<usize> {
    Ok(default_backend()?.memory().cached)
}

/// Gives memory that is kept for reuse back to the system.
#[pyfunction]
pub fn clear_cache() -> PyResult<()> {
    default_backend()?.trim();
    Ok(())
}
