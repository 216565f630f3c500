//! `cupola.core._profiler`: what `cupola.profiler` is made of.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use cupola::io::check_file as checked;
use cupola::profiler::{self, FromEnv, Options};
use pyo3::prelude::*;

use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::origin;

/// What the environment asked for when the module was loaded.
static FROM_ENV: Mutex<Option<FromEnv>> = Mutex::new(None);

/// Starts what `CUPOLA_PROFILE` and `CUPOLA_LOG` ask for; the interpreter ends it by [`finish`].
pub fn start_from_env(py: Python<'_>) -> PyResult<()> {
    origin::note();
    let started = profiler::from_env().map_err(raise)?;
    // Where nothing was asked for, arrays that come and go need not say so.
    if !cupola_core::profile::is_on() {
        origin::forget();
    }
    *FROM_ENV.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
    let finish = wrap_pyfunction!(finish, py)?;
    py.import("atexit")?.call_method1("register", (finish,))?;
    Ok(())
}

#[doc = docs!(_profiler::finish)]
#[pyfunction]
pub fn finish(py: Python<'_>) -> PyResult<()> {
    let started = FROM_ENV.lock().unwrap_or_else(PoisonError::into_inner).take();
    py.detach(|| started.map_or(Ok(()), FromEnv::finish)).map_err(raise)
}

#[doc = docs!(_profiler::start)]
#[pyfunction]
#[pyo3(signature = (mode = "interval", wait_until_completed = false, lines = true, every = 128))]
pub fn start(mode: &str, wait_until_completed: bool, lines: bool, every: i64) -> PyResult<()> {
    let mode = mode.parse().map_err(raise)?;
    let every = u32::try_from(every)
        .ok()
        .filter(|&every| every > 0)
        .ok_or_else(|| wrong_value(format!("profiler: every is {every}, not in 1..2³²")))?;
    origin::note();
    profiler::start(Options { mode, wait_until_completed, lines, every }).map_err(raise)
}

#[doc = docs!(_profiler::stop)]
#[pyfunction]
pub fn stop(py: Python<'_>) -> PyResult<Profile> {
    let stopped = py.detach(profiler::stop).map(Profile).map_err(raise);
    origin::forget();
    stopped
}

#[doc = docs!(_profiler::is_running)]
#[pyfunction]
pub fn is_running() -> bool {
    profiler::is_running()
}

#[doc = docs!(_profiler::mark)]
#[pyfunction]
pub fn mark(name: &str) {
    profiler::mark(name);
}

#[doc = docs!(_profiler::check_file)]
#[pyfunction]
pub fn check_file(path: PathBuf) -> PyResult<()> {
    checked(&path, "a profile").map_err(raise)
}

#[doc = docs!(_profiler::Profile)]
#[pyclass(frozen, name = "Profile", module = "cupola.profiler")]
pub struct Profile(profiler::Profile);

#[pymethods]
impl Profile {
    /// How long was recorded, in seconds.
    #[getter]
    fn length(&self) -> f64 {
        self.0.length().as_secs_f64()
    }

    /// How many events came after there was no more room for them.
    #[getter]
    fn lost(&self) -> usize {
        self.0.lost()
    }

    /// How many events were recorded.
    fn __len__(&self) -> usize {
        self.0.events().count()
    }

    /// What took how long, the longest first: by `op`, `step`, `line` or `module`.
    #[pyo3(signature = (by = "op"))]
    fn table(&self, by: &str) -> PyResult<String> {
        Ok(self.0.table(by.parse().map_err(raise)?))
    }

    /// A trace that Perfetto and Chrome show, as JSON.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// One page with the timeline, the memory over time and what took longest.
    fn to_html(&self) -> String {
        self.0.to_html()
    }

    /// Writes the page where the name ends in `.html`, else the trace.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        self.0.save(path).map_err(raise)
    }

    fn __repr__(&self) -> String {
        format!("Profile({} events in {:.3} s)", self.__len__(), self.length())
    }
}
