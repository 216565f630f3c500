//! Places in the work of a wgpu device, and its own time between them.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cupola_core::event::Marker;
use cupola_core::{Error, Result};

use super::queue::{Queue, lock};

/// Timestamps of a set.
const COUNT: u32 = 1024;

/// A set of timestamps, which work writes at its end.
pub(super) struct Times {
    pub(super) queries: wgpu::QuerySet,
    /// How many have been given to marks.
    used: Mutex<u32>,
    /// Those that have been read.
    known: Mutex<Vec<u64>>,
}

/// A timestamp of a set.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) times: Arc<Times>,
    pub(super) index: u32,
}

/// The marks of work that is not submitted yet.
#[derive(Default)]
pub(super) struct Marks {
    times: Option<Arc<Times>>,
    /// After how many of the launches each is.
    pub(super) places: Vec<(usize, Place)>,
    /// Set when the device is done with them.
    pub(super) done: Arc<AtomicBool>,
}

/// A place in the work of a device.
pub struct Mark {
    queue: Arc<Queue>,
    place: Place,
    done: Arc<AtomicBool>,
}

impl Marks {
    /// A place after so many launches.
    fn add(&mut self, device: &wgpu::Device, launches: usize) -> (Place, Arc<AtomicBool>) {
        let next = |times: &Arc<Times>| {
            let mut used = lock(&times.used);
            let index = *used;
            *used += 1;
            (index < COUNT).then(|| Place { times: times.clone(), index })
        };
        let place = self.times.as_ref().and_then(next).unwrap_or_else(|| {
            let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("times"),
                ty: wgpu::QueryType::Timestamp,
                count: COUNT,
            });
            let times = Times { queries, used: Mutex::new(1), known: Mutex::default() };
            Place { times: self.times.insert(Arc::new(times)).clone(), index: 0 }
        });
        self.places.push((launches, place.clone()));
        (place, self.done.clone())
    }
}

impl Mark {
    /// The end of what was given to the device, which can write timestamps.
    pub fn new(queue: &Arc<Queue>) -> Result<Mark> {
        let (place, done) = {
            let mut gathered = lock(&queue.gathered);
            let launches = gathered.count();
            gathered.marks.add(&queue.device, launches)
        };
        queue.check()?;
        Ok(Mark { queue: queue.clone(), place, done })
    }

    /// Its time, in ticks of the device.
    fn ticks(&self) -> Result<u64> {
        let Place { times, index } = &self.place;
        let mut known = lock(&times.known);
        if known.len() <= *index as usize {
            let more = self.queue.ticks(times, known.len() as u32)?;
            known.extend(more);
        }
        known.get(*index as usize).copied().ok_or_else(|| {
            Error::Device(format!("{} has no time for an event", self.queue.device()))
        })
    }
}

impl Queue {
    /// The times of a set from one on that work which was submitted writes.
    fn ticks(&self, times: &Times, first: u32) -> Result<Vec<u64>> {
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let end = {
            let mut gathered = lock(&self.gathered);
            self.submit(&mut gathered);
            (*lock(&times.used)).min(COUNT)
        };
        let size = u64::from(end - first) * 8;
        let buffer = |size, usage| {
            let (label, mapped_at_creation) = (Some("times"), false);
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label,
                size,
                usage,
                mapped_at_creation,
            })
        };
        let written = buffer(size, usage);
        let read = buffer(size, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.resolve_query_set(&times.queries, first..end, &written, 0);
        encoder.copy_buffer_to_buffer(&written, 0, &read, 0, size);
        self.submit_now(Some(encoder.finish()));
        let word = |bytes: &[u8]| {
            bytes.iter().rev().fold(0, |word: u64, byte| word << 8 | u64::from(*byte))
        };
        self.mapped_bytes([(&read, 0..size)], |[bytes]| bytes.chunks_exact(8).map(word).collect())
    }
}

impl Marker for Mark {
    fn is_done(&self) -> Result<bool> {
        let is_done = || self.done.load(Ordering::Acquire);
        if !is_done() {
            self.queue.submit(&mut lock(&self.queue.gathered));
            self.queue.poll()?;
        }
        Ok(is_done())
    }

    fn wait(&self) -> Result<()> {
        match self.is_done()? {
            true => Ok(()),
            false => self.queue.wait(),
        }
    }

    fn until(&self, later: &dyn Marker) -> Result<f64> {
        let later = later.as_any().downcast_ref::<Mark>();
        let later = later.filter(|later| Arc::ptr_eq(&later.queue, &self.queue));
        let Some(later) = later else {
            return Err(Error::argument("elapsed_time", "the events are of two devices"));
        };
        let ticks = later.ticks()?.wrapping_sub(self.ticks()?).cast_signed();
        Ok(ticks as f64 * f64::from(self.queue.queue.get_timestamp_period()) / 1e6)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
