//! How much memory the default device uses.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cupola::Device;
use cupola::backend::{Backend, backend, memory_guideline, memory_limit, set_memory_guideline};
use cupola::io::write_whole;
use cupola::memory::{History, Recording, set_fraction, stats};
use cupola::plan::cache;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::device::DeviceArg;
use crate::error::{raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::origin;

/// The bound on what is kept that was last set; `usize::MAX` for none.
static CACHE_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// A number of bytes.
pub struct Limit(usize);

impl<'py> FromPyObject<'_, 'py> for Limit {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let none = |_| wrong_type(format!("{} is no number of bytes", &*object));
        object.extract::<usize>().map(Limit).map_err(none)
    }
}

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
    default_backend()?.set_peak(0);
    Ok(())
}

/// Bounds the bytes of freed memory that are kept for reuse; gives the former bound.
#[doc = docs!(set_cache_limit)]
#[pyfunction]
pub fn set_cache_limit(limit: Limit) -> PyResult<usize> {
    let Limit(limit) = limit;
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
pub fn set_plan_cache_limit(limit: Limit) -> usize {
    let Limit(limit) = limit;
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
pub fn set_memory_limit(limit: Limit) -> usize {
    let Limit(limit) = limit;
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

/// Bounds the memory of live arrays, where an evaluation that needs more, or an array of data of the host, raises
/// `MemoryError`; gives the former bound.
#[doc = docs!(set_hard_memory_limit)]
#[pyfunction]
pub fn set_hard_memory_limit(limit: Limit) -> usize {
    let Limit(limit) = limit;
    let former = get_hard_memory_limit();
    cupola::backend::set_memory_limit((limit != usize::MAX).then_some(limit));
    former
}

/// Notes how many bytes should stay in physical memory, which only Metal can be asked for; gives the former number.
#[doc = docs!(set_wired_limit)]
#[pyfunction]
pub fn set_wired_limit(limit: Limit) -> usize {
    let Limit(limit) = limit;
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

/// Gives memory that was freed and is kept for reuse back to the system; the plans of what was computed stay.
#[doc = docs!(empty_cache)]
#[pyfunction]
pub fn empty_cache() -> PyResult<()> {
    default_backend()?.trim();
    Ok(())
}

/// A device that was named, or the default one.
fn device_of(device: Option<DeviceArg>) -> PyResult<Device> {
    match device {
        Some(device) => device.find(),
        None => Ok(cupola::device::default_stream().device),
    }
}

/// What the memory of a device is used for, in bytes: `active` (held by arrays), `peak`, `cached` (freed and
/// kept), `plans`, `driver_allocated`, `recommended_max` (None where the device does not say), `limit`,
/// `guideline`, and `by_op`, what arrays of 64 KiB and more hold by the operation that made them.
#[doc = docs!(memory_stats)]
#[pyfunction]
#[pyo3(signature = (device = None))]
pub fn memory_stats(py: Python<'_>, device: Option<DeviceArg>) -> PyResult<Bound<'_, PyDict>> {
    let found = stats(device_of(device)?).map_err(raise)?;
    let all = PyDict::new(py);
    all.set_item("active", found.active)?;
    all.set_item("peak", found.peak)?;
    all.set_item("cached", found.cached)?;
    all.set_item("plans", found.plans)?;
    all.set_item("driver_allocated", found.driver_allocated)?;
    all.set_item("recommended_max", found.recommended_max)?;
    all.set_item("limit", found.limit)?;
    all.set_item("guideline", found.guideline)?;
    let by_op = PyDict::new(py);
    for (op, bytes) in found.by_op {
        by_op.set_item(op, bytes)?;
    }
    all.set_item("by_op", by_op)?;
    Ok(all)
}

/// The bytes that the driver of a device, or the system, gave to this process: those of live arrays and those
/// that are kept for reuse.
#[doc = docs!(driver_allocated)]
#[pyfunction]
#[pyo3(signature = (device = None))]
pub fn driver_allocated(device: Option<DeviceArg>) -> PyResult<usize> {
    Ok(stats(device_of(device)?).map_err(raise)?.driver_allocated)
}

/// The bytes that a device has; None where it does not say.
#[doc = docs!(recommended_max)]
#[pyfunction]
#[pyo3(signature = (device = None))]
pub fn recommended_max(device: Option<DeviceArg>) -> PyResult<Option<usize>> {
    Ok(backend(device_of(device)?).map_err(raise)?.capacity())
}

/// Bounds the memory of live arrays to a part, above 0 and at most 1, of what a device has, where an evaluation that
/// needs more, or an array of data of the host, raises `MemoryError`; gives the bound in bytes. `set_hard_memory_limit`
/// takes bytes, and the largest integer ends it.
#[doc = docs!(set_memory_fraction)]
#[pyfunction]
#[pyo3(signature = (fraction, device = None))]
pub fn set_memory_fraction(fraction: f64, device: Option<DeviceArg>) -> PyResult<usize> {
    set_fraction(device_of(device)?, fraction).map_err(raise)
}

/// Begins to note who holds memory, and which lines of the program record what they hold: arrays of 64 KiB and
/// more, at most `max_changes` changes. What comes back ends it by `stop()`, or at the end of its `with`.
#[doc = docs!(record_memory_history)]
#[pyfunction]
#[pyo3(signature = (max_changes = 100_000))]
pub fn record_memory_history(max_changes: isize) -> PyResult<MemoryHistory> {
    let wrong =
        |_| wrong_value(format!("record_memory_history: {max_changes} changes, not 0 or more"));
    let most = usize::try_from(max_changes).map_err(wrong)?;
    origin::note();
    let recording = History::record(most).map_err(raise)?;
    Ok(MemoryHistory(Mutex::new(Progress::Recording(recording))))
}

enum Progress {
    Recording(Recording),
    Done(Arc<History>),
    Failed,
}

/// Who held memory over time, by the line that made it.
#[doc = docs!(MemoryHistory)]
#[pyclass(frozen, name = "MemoryHistory", module = "cupola.core")]
pub struct MemoryHistory(Mutex<Progress>);

impl MemoryHistory {
    /// What was noted; the recording ends where it has not.
    fn done(&self) -> PyResult<Arc<History>> {
        let mut progress = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match std::mem::replace(&mut *progress, Progress::Failed) {
            Progress::Recording(recording) => {
                let history = Arc::new(recording.stop().map_err(raise)?);
                origin::forget();
                *progress = Progress::Done(history.clone());
                Ok(history)
            }
            Progress::Done(history) => {
                *progress = Progress::Done(history.clone());
                Ok(history)
            }
            Progress::Failed => Err(wrong_value("memory history: it could not be ended")),
        }
    }
}

#[pymethods]
impl MemoryHistory {
    /// Ends the recording.
    fn stop(&self) -> PyResult<()> {
        self.done().map(drop)
    }

    /// The most bytes that arrays of 64 KiB and more of a device held.
    #[pyo3(signature = (device = None))]
    fn peak(&self, device: Option<DeviceArg>) -> PyResult<usize> {
        Ok(self.done()?.peak(device_of(device)?))
    }

    /// A picture: a layer for each line that made what was held. Ends the recording.
    #[pyo3(signature = (device = None))]
    fn to_svg(&self, device: Option<DeviceArg>) -> PyResult<String> {
        Ok(self.done()?.to_svg(device_of(device)?))
    }

    /// All changes as JSON. Ends the recording.
    fn to_json(&self) -> PyResult<String> {
        Ok(self.done()?.to_json().to_string())
    }

    /// Writes the picture to a file. Ends the recording.
    #[pyo3(signature = (path, device = None))]
    fn save(&self, path: PathBuf, device: Option<DeviceArg>) -> PyResult<()> {
        let picture = self.to_svg(device)?;
        write_whole(&path, picture).map_err(raise)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.stop()
    }
}
