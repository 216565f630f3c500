//! Events: places in the work of a stream.

use pyo3::prelude::*;

use crate::device::{On, stream_of};
use crate::error::raise;
use crate::generated::docs;

/// A place in the work of a stream, to wait for and, with `enable_timing`, to measure between. `async_eval` gives
/// work to a stream; what `eval` computes is done, or given to the device, when it returns.
#[doc = docs!(Event)]
#[pyclass(frozen, name = "Event", module = "cupola.core")]
pub struct Event(cupola::event::Event);

#[pymethods]
impl Event {
    #[new]
    #[pyo3(signature = (enable_timing = false))]
    fn new(enable_timing: bool) -> Event {
        Event(cupola::event::Event::new(enable_timing))
    }

    /// Puts the event after all work that was given to a stream so far.
    #[pyo3(signature = (stream = None))]
    fn record(&self, stream: Option<On>) -> PyResult<()> {
        self.0.record(stream_of(stream)).map_err(raise)
    }

    /// Lets the work that is given to a stream from now on wait for the event.
    #[pyo3(signature = (stream = None))]
    fn wait(&self, stream: Option<On>) -> PyResult<()> {
        self.0.wait(stream_of(stream)).map_err(raise)
    }

    /// Whether the device has come to the event; so it has where it was not recorded.
    fn query(&self) -> PyResult<bool> {
        self.0.query().map_err(raise)
    }

    /// Waits until the device has come to the event.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.synchronize()).map_err(raise)
    }

    /// Milliseconds of the device's clock from this event to another of the same device; waits for both.
    fn elapsed_time(&self, py: Python<'_>, end_event: PyRef<'_, Event>) -> PyResult<f64> {
        let end = &end_event.0;
        py.detach(|| self.0.elapsed_time(end)).map_err(raise)
    }
}
