//! Events: places in the work of a stream, to wait for and to measure between.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use crate::array::Event as End;
use crate::backend::backend;
use crate::device::{Device, Stream};
use crate::error::{Error, Result};
use crate::eval::on_stream;
use crate::fork::lock;

/// A place in the work of a device, as its backend marks it.
pub trait Marker: Any + Send + Sync {
    /// Whether the device has come to it. Where the device has not begun with what it was given, asking lets it begin.
    fn is_done(&self) -> Result<bool>;

    /// Waits until the device has come to it.
    fn wait(&self) -> Result<()>;

    /// Milliseconds of the device's clock from this place to `later`, a place of the same device. The
    /// device has come to both.
    fn until(&self, later: &dyn Marker) -> Result<f64>;

    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;
}

/// The moment at which the host saw that a device had done its work.
pub struct Moment(Instant);

impl Moment {
    /// This moment.
    pub fn now() -> Moment {
        Moment(Instant::now())
    }
}

impl Marker for Moment {
    fn is_done(&self) -> Result<bool> {
        Ok(true)
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn until(&self, later: &dyn Marker) -> Result<f64> {
        match later.as_any().downcast_ref::<Moment>() {
            Some(later) => {
                let forward = later.0.saturating_duration_since(self.0).as_secs_f64();
                let back = self.0.saturating_duration_since(later.0).as_secs_f64();
                Ok(1e3 * (forward - back))
            }
            None => Err(Error::argument("elapsed_time", "the events are of two devices")),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A place in the work of a stream: what was given to the stream before it is recorded comes before it.
///
/// ```
/// use cupola_core::device::{Device, Stream};
/// use cupola_core::event::Event;
/// # if cupola_core::backend::backends().next().is_none() { return Ok(()) }
/// let stream = Stream::of(Device::CPU);
/// let (start, end) = (Event::new(true), Event::new(true));
/// start.record(stream)?;
/// end.record(stream)?;
/// assert!(start.elapsed_time(&end)? >= 0.0);
/// # Ok::<(), cupola_core::Error>(())
/// ```
pub struct Event {
    has_time: bool,
    last: Mutex<Option<Arc<Recorded>>>,
}

/// An event's last place.
struct Recorded {
    device: Device,
    /// That the stream's thread has come to it, and marked the device's work.
    marked: Arc<End>,
    marker: OnceLock<Result<Box<dyn Marker>>>,
}

impl Recorded {
    /// The device's mark, once the stream's thread has made it.
    fn marker(&self) -> Result<&dyn Marker> {
        self.marked.wait()?;
        match self.marker.get() {
            Some(Ok(marker)) => Ok(&**marker),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::Device("the thread of the event's stream ended".into())),
        }
    }

    fn wait(&self) -> Result<()> {
        self.marker()?.wait()
    }
}

impl Event {
    /// An event that was not recorded; with `has_time`, time can be measured from it and to it.
    pub fn new(has_time: bool) -> Event {
        Event { has_time, last: Mutex::new(None) }
    }

    fn last(&self) -> Option<Arc<Recorded>> {
        lock(&self.last).clone()
    }

    /// Puts the event after all work that was given to `stream`, and to its device by evaluations that
    /// returned. Recorded again, it forgets where it was.
    ///
    /// # Errors
    /// Where the stream's device is not there.
    pub fn record(&self, stream: Stream) -> Result<()> {
        let device = stream.device;
        let on = backend(device)?;
        let recorded =
            Arc::new(Recorded { device, marked: Arc::default(), marker: OnceLock::new() });
        *lock(&self.last) = Some(recorded.clone());
        let has_time = self.has_time;
        let mark = move || {
            recorded.marker.get_or_init(|| {
                let mark = on.mark()?;
                // The device begins with what it has gathered: else the time would be that of whoever asks first.
                if has_time {
                    mark.is_done()?;
                }
                Ok(mark)
            });
            recorded.marked.set();
        };
        on_stream(stream, Box::new(mark))
    }

    /// Lets the work that `async_eval` gives to `stream` from now on wait for the event; for one that was not
    /// recorded, nothing waits.
    ///
    /// # Errors
    /// Where the stream's thread ended.
    pub fn wait(&self, stream: Stream) -> Result<()> {
        let Some(recorded) = self.last() else { return Ok(()) };
        // Where the device failed, the work that needs it gives the error.
        on_stream(stream, Box::new(move || drop(recorded.wait())))
    }

    /// Whether the device has come to the event; so it has where it was not recorded.
    ///
    /// # Errors
    /// Where the device failed.
    pub fn query(&self) -> Result<bool> {
        match self.last() {
            None => Ok(true),
            Some(recorded) if !recorded.marked.is_set() => Ok(false),
            Some(recorded) => recorded.marker()?.is_done(),
        }
    }

    /// Waits until the device has come to the event; not at all where it was not recorded.
    ///
    /// # Errors
    /// Where the device failed.
    pub fn synchronize(&self) -> Result<()> {
        self.last().map_or(Ok(()), |recorded| recorded.wait())
    }

    /// Milliseconds of the device's clock from this event to `end`, which are waited for.
    ///
    /// # Errors
    /// Where either was made without time, was not recorded, or they are of two devices.
    pub fn elapsed_time(&self, end: &Event) -> Result<f64> {
        const OP: &str = "elapsed_time";
        if !self.has_time || !end.has_time {
            return Err(Error::argument(OP, "takes events that were made with enable_timing"));
        }
        let (Some(first), Some(last)) = (self.last(), end.last()) else {
            return Err(Error::argument(OP, "takes events that were recorded"));
        };
        if first.device != last.device {
            let detail = format!("the events are of {} and {}", first.device, last.device);
            return Err(Error::argument(OP, detail));
        }
        first.wait()?;
        last.wait()?;
        first.marker()?.until(last.marker()?)
    }
}
