//! Places in the work of a GPU, and its own time between them.

use std::any::Any;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUevent};
use cupola_core::event::Marker;
use cupola_core::{Error, Result};

use super::gpu::{Gpu, lock};
use super::library;

/// An event of the driver, recorded once.
pub struct Mark {
    gpu: Arc<Gpu>,
    event: CUevent,
}

// SAFETY: events may be used by any thread.
unsafe impl Send for Mark {}
// SAFETY: likewise.
unsafe impl Sync for Mark {}

impl Mark {
    /// The end of what was given to `gpu`.
    pub fn new(gpu: Arc<Gpu>) -> Result<Mark> {
        gpu.enter()?;
        let mut event = gpu.spare_events.take();
        if event.is_null() {
            let flags = sys::CUevent_flags::CU_EVENT_DEFAULT as u32;
            // SAFETY: the device has been entered, and the place is there.
            gpu.check("making an event", unsafe { sys::cuEventCreate(&mut event, flags) })?;
        }
        let mark = Mark { gpu, event };
        // SAFETY: the stream lives as long as the program.
        let code = unsafe { sys::cuEventRecord(mark.event, mark.gpu.stream()) };
        mark.gpu.check("an event", code)?;
        Ok(mark)
    }
}

impl Marker for Mark {
    fn is_done(&self) -> Result<bool> {
        self.gpu.enter()?;
        // SAFETY: the event lives as long as this.
        match unsafe { sys::cuEventQuery(self.event) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => self.gpu.check("the device", code).map(|()| true),
        }
    }

    fn wait(&self) -> Result<()> {
        self.gpu.enter()?;
        // SAFETY: the event lives as long as this.
        self.gpu.check("the device", unsafe { sys::cuEventSynchronize(self.event) })
    }

    fn until(&self, later: &dyn Marker) -> Result<f64> {
        let Some(later) = later.as_any().downcast_ref::<Mark>() else {
            return Err(Error::argument("elapsed_time", "the events are of two devices"));
        };
        library::TIMES.load().map_err(Error::Device)?;
        self.gpu.enter()?;
        let mut time = 0.0_f32;
        // SAFETY: both events live, and the place is there.
        let code = unsafe { sys::cuEventElapsedTime_v2(&mut time, self.event, later.event) };
        self.gpu.check("the time between events", code)?;
        Ok(f64::from(time))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.gpu.spare_events.put(self.event);
    }
}

/// Events that nobody needs, for the next marks: to make one takes longer than to record it.
#[derive(Default)]
pub struct Spare(Mutex<Vec<CUevent>>);

// SAFETY: events may be used by any thread.
unsafe impl Send for Spare {}
// SAFETY: likewise.
unsafe impl Sync for Spare {}

/// How many of them are kept.
const MOST: usize = 4096;

impl Spare {
    /// One of them, or null.
    fn take(&self) -> CUevent {
        lock(&self.0).pop().unwrap_or(std::ptr::null_mut())
    }

    fn put(&self, event: CUevent) {
        let mut all = lock(&self.0);
        if all.len() < MOST {
            return all.push(event);
        }
        drop(all);
        // SAFETY: nobody else has the event. The driver waits where it is still to come.
        let _ = unsafe { sys::cuEventDestroy_v2(event) };
    }
}
