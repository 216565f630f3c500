//! A run of a plan that is watched: while it runs the moments are noted and nothing else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::run::{Run, Shares, Timing, Told, place};
use super::{Clock, Listeners, is_on, listeners};
use crate::backend::{Backend, MemoryStats, backend};
use crate::device::{Device, queue};
use crate::error::Result;
use crate::event::Marker;
use crate::fallback;
use crate::fork::lock;

/// Runs that are over and that nobody was told of yet.
static PENDING: Mutex<Waiting> = Mutex::new(Waiting::NONE);

struct Waiting {
    runs: Vec<Pending>,
    /// How many marks of devices they have.
    marks: usize,
    /// Of how many steps they know when they were over.
    steps: usize,
}

impl Waiting {
    const NONE: Waiting = Waiting { runs: Vec::new(), marks: 0, steps: 0 };
}

/// How many marks may be pending before they are read, which waits for their devices.
const MOST_MARKS: usize = 4096;

/// How many steps may be pending.
const MOST_STEPS: usize = 1 << 20;

/// A run, and the places in its device's work whose times are to be read, if there are any.
struct Pending {
    run: Run,
    marks: Vec<Box<dyn Marker>>,
}

/// A run of a plan that is watched.
pub(crate) struct Watch<'a> {
    on: &'a dyn Backend,
    shares: &'a Arc<Shares>,
    listeners: Listeners,
    waits: bool,
    timing: Timing,
    memory: MemoryStats,
    start: Instant,
    /// Nanoseconds from the start to where each step was given to the device, or the whole run.
    ends: Vec<u64>,
    /// Places in the device's work before the first step and after each, or after the whole run, where it has marks
    /// of its own or is waited for.
    marks: Option<Vec<Box<dyn Marker>>>,
    /// The steps that the CPU ran for the device: when each began, and how long it took.
    on_host: Vec<(usize, Instant, Duration)>,
}

impl<'a> Watch<'a> {
    /// Begins, where anybody listens, with a plan of so many `steps`, whose memory is there. On a device with marks of its
    /// own most runs are timed as a whole, and short ones not each; but not where the CPU runs a step of it, which waits
    /// for the device anyway.
    pub fn begin(
        on: &'a dyn Backend,
        shares: &'a Arc<Shares>,
        steps: usize,
        on_host: impl FnOnce() -> bool,
    ) -> Result<Option<Watch<'a>>> {
        if !is_on() {
            return Ok(None);
        }
        let listeners = listeners();
        let waits = listeners.iter().any(|listener| listener.waits());
        let timing = match on.has_marks() && !waits && !on_host() {
            true => shares.timing(&listeners, on.device(), Instant::now()),
            false => Timing::Each,
        };
        let count = if timing == Timing::Each { steps } else { 1 };
        let is_marked = timing != Timing::None && (waits || on.has_marks());
        let marks = match is_marked && on.device() != Device::CPU {
            true => {
                let mut marks = Vec::with_capacity(count + 1);
                marks.push(on.mark()?);
                Some(marks)
            }
            false => None,
        };
        let ends = Vec::with_capacity(count);
        let (memory, start) = (on.memory(), Instant::now());
        let on_host = Vec::new();
        Ok(Some(Watch {
            on,
            shares,
            listeners,
            waits,
            timing,
            memory,
            start,
            ends,
            marks,
            on_host,
        }))
    }

    /// Whether steps are timed one by one.
    pub fn is_each(&self) -> bool {
        self.timing == Timing::Each
    }

    /// The CPU ran step `index` for the device.
    pub fn ran_on_host(&mut self, index: usize) {
        if let Some((start, length)) = fallback::last() {
            self.on_host.push((index, start, length));
        }
    }

    /// A step was given to the device now, or the whole run. Where that cannot be marked the host's times stay: who
    /// listens does not make a run fail.
    pub fn passed(&mut self) {
        if let Some(marks) = &mut self.marks {
            let mark = self.on.mark().and_then(|mark| match self.waits {
                true => mark.wait().map(|()| mark),
                false => Ok(mark),
            });
            match mark {
                Ok(mark) => marks.push(mark),
                Err(_) => self.marks = None,
            }
        }
        self.ends.push(self.start.elapsed().as_nanos() as u64);
    }

    /// The run of these `steps` is over, but for those that were `skipped`. Who listens is told now, or when somebody
    /// asks.
    pub fn end(self, steps: Arc<[Told]>, skipped: &[u32]) {
        let device = self.on.device();
        let run = Run {
            device,
            queue: queue(),
            thread: std::thread::current().id(),
            steps,
            skipped: skipped.into(),
            memory: self.memory,
            start: self.start,
            ends: self.ends,
            on_host: self.on_host,
            clock: if device == Device::CPU { Clock::Device } else { Clock::Host },
            timing: self.timing,
            shares: self.shares.clone(),
        };
        let pending = Pending { run, marks: self.marks.unwrap_or_default() };
        let at_once = self.listeners.iter().any(|listener| listener.at_once());
        let is_known = pending.marks.is_empty() && self.timing == Timing::Each;
        if self.waits || at_once && is_known {
            return tell(vec![pending], &self.listeners);
        }
        let is_full = {
            let mut all = lock(&PENDING);
            all.marks += pending.marks.len();
            all.steps += pending.run.ends.len();
            all.runs.push(pending);
            all.marks >= MOST_MARKS || all.steps >= MOST_STEPS
        };
        if is_full {
            settle();
        }
    }
}

/// Waits for what devices are at, and tells of all runs that nobody was told of.
pub fn settle() {
    let all = std::mem::replace(&mut *lock(&PENDING), Waiting::NONE);
    tell(all.runs, &listeners());
}

/// When the queues of devices were through with the runs that somebody was told of.
static FREE: Mutex<BTreeMap<(Device, u16), Option<Instant>>> = Mutex::new(BTreeMap::new());

fn tell(mut all: Vec<Pending>, listeners: &Listeners) {
    for pending in &mut all {
        // A device that failed has no times of its own: what the host saw stays.
        if let Ok(Some((start, ends))) = pending.times() {
            pending.run.measured(start, ends);
        }
    }
    let mut runs: Vec<Run> = all.into_iter().map(|pending| pending.run).collect();
    let mut queues: BTreeMap<(Device, u16), Vec<&mut Run>> = BTreeMap::new();
    for run in runs.iter_mut().filter(|run| run.queue().0 != Device::CPU) {
        queues.entry(run.queue()).or_default().push(run);
    }
    for (queue, mut own) in queues {
        place(&mut own, lock(&FREE).entry(queue).or_default());
    }
    for run in runs.into_iter().map(Arc::new) {
        listeners.iter().for_each(|listener| listener.ran(&run));
    }
}

impl Pending {
    /// When the run began, and nanoseconds from there to each mark after that, by the device's clock.
    fn times(&self) -> Result<Option<(Instant, Vec<u64>)>> {
        let Some((first, rest)) = self.marks.split_first() else { return Ok(None) };
        self.marks.last().map_or(Ok(()), |last| last.wait())?;
        let start = moment(self.run.device, &**first)?;
        let (mut last, mut end, mut ends) = (first, 0.0, Vec::with_capacity(rest.len()));
        for mark in rest {
            end += last.until(&**mark)?.max(0.0);
            ends.push((end * 1e6) as u64);
            last = mark;
        }
        Ok(Some((start, ends)))
    }
}

/// A mark of a device, and the host's moment at it: what their clocks are aligned by.
type Base = (Device, Arc<dyn Marker>, Instant);

static BASES: Mutex<Vec<Base>> = Mutex::new(Vec::new());

/// How long clocks stay aligned. Devices tell times as numbers that are less exact the longer they are.
const ALIGNED: Duration = Duration::from_secs(30);

/// The host's moment at a place that its device has come to.
fn moment(device: Device, place: &dyn Marker) -> Result<Instant> {
    let known = lock(&BASES).iter().find(|base| base.0 == device).cloned();
    let (_, mark, at) = match known.filter(|(.., at)| at.elapsed() < ALIGNED) {
        Some(known) => known,
        None => {
            let mark: Arc<dyn Marker> = backend(device)?.mark()?.into();
            mark.wait()?;
            let base = (device, mark, Instant::now());
            let mut all = lock(&BASES);
            all.retain(|base| base.0 != device);
            all.push(base.clone());
            base
        }
    };
    let milliseconds = mark.until(place)?;
    let by = Duration::try_from_secs_f64(milliseconds.abs() / 1e3).unwrap_or_default();
    Ok(if milliseconds < 0.0 { at.checked_sub(by).unwrap_or(at) } else { at + by })
}

/// Forgets how clocks are aligned: nobody listens.
pub(super) fn forget() {
    lock(&BASES).clear();
    lock(&FREE).clear();
}
