//! How much memory the default device uses.

use std::sync::atomic::{AtomicUsize, Ordering};

use cupola::backend::{Backend, backend, memory_guideline, memory_limit, set_memory_guideline};
use cupola::plan::cache;
use pyo3::prelude::*;

use crate::error::raise;
use crate::generated::docs;

/// The bound on what is kept that was last set; `usize::MAX` for none.
static CACHE_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The bytes that [`set_wired_limit`] noted.
static WIRED_LIMIT: AtomicUsize = AtomicUsize::new(0);

fn default_backend() -> PyResult<&'static dyn Backend> {
    let device = cupola::device::default_stream().device;
    Ok(&**backend(device).map_err(raise)?)
}

/// The bytes that live arrays hold.
#[doc = docs!(get_active_memory)]
#[pyfunction]
pub fn get_active_memory() -> PyResult<usize> {
    Ok(default_backend()?.memory().active)
}

/// The most bytes that live arrays held, since the last `reset_peak_memory`.
#[doc = docs!(get_peak_memory)]
#[pyfunction]
pub fn get_peak_memory() -> PyResult<usize> {
    Ok(default_backend()?.memory().peak)
}

/// The bytes that are kept for reuse: memory that was freed, and the plans of what was computed.
#[doc = docs!(get_cache_memory)]
#[pyfunction]
pub fn get_cache_memory() -> PyResult<usize> {
    Ok(default_backend()?.memory().cached + cache::stats().bytes)
}

/// Counts the most memory in use anew.
#[doc = docs!(reset_peak_memory)]
#[pyfunction]
pub fn reset_peak_memory() -> PyResult<()> {
    default_backend()?.reset_peak();
    Ok(())
}

/// Bounds the bytes of freed memory that are kept for reuse; gives the former bound.
#[doc = docs!(set_cache_limit)]
#[pyfunction]
pub fn set_cache_limit(limit: usize) -> PyResult<usize> {
    let on = default_backend()?;
    on.set_cache_limit((limit != usize::MAX).then_some(limit));
    if on.memory().cached > limit {
        on.trim();
    }
    Ok(CACHE_LIMIT.swap(limit, Ordering::Relaxed))
}

/// Bounds the bytes of the plans that are kept for what is computed again, 64 MiB at first; gives the
/// former bound. The least recently used go first.
#[doc = docs!(set_plan_cache_limit)]
#[pyfunction]
pub fn set_plan_cache_limit(limit: usize) -> usize {
    cache::set_limit(limit)
}

/// The guideline for memory.
#[doc = docs!(get_memory_limit)]
#[pyfunction]
pub fn get_memory_limit() -> usize {
    memory_guideline().unwrap_or(usize::MAX)
}

/// Sets a guideline for memory, as in MLX: where live arrays and freed memory that is kept come to more,
/// the latter goes back to the system. Nothing fails; `set_hard_memory_limit` is a limit. Gives the
/// former guideline.
#[doc = docs!(set_memory_limit)]
#[pyfunction]
pub fn set_memory_limit(limit: usize) -> usize {
    let former = get_memory_limit();
    set_memory_guideline((limit != usize::MAX).then_some(limit));
    former
}

/// The bound on the memory of live arrays.
#[doc = docs!(get_hard_memory_limit)]
#[pyfunction]
pub fn get_hard_memory_limit() -> usize {
    memory_limit().unwrap_or(usize::MAX)
}

/// Bounds the memory of live arrays, where an evaluation that needs more raises `MemoryError`;
/// gives the former bound.
#[doc = docs!(set_hard_memory_limit)]
#[pyfunction]
pub fn set_hard_memory_limit(limit: usize) -> usize {
    let former = get_hard_memory_limit();
    cupola::backend::set_memory_limit((limit != usize::MAX).then_some(limit));
    former
}

/// Notes how many bytes should stay in physical memory, which only Metal can be asked for; gives the former number.
#[doc = docs!(set_wired_limit)]
#[pyfunction]
pub fn set_wired_limit(limit: usize) -> usize {
    WIRED_LIMIT.swap(limit, Ordering::Relaxed)
}

/// Gives memory that is kept for reuse back to the system, and forgets the plans of what was computed.
#[doc = docs!(clear_cache)]
#[pyfunction]
pub fn clear_cache() -> PyResult<()> {
    cache::clear();
    default_backend()?.trim();
    Ok(())
}
