//! What happens while arrays are computed, told to whoever listens: a profiler, a log.
//!
//! Where nobody listens one relaxed load is made for each evaluation, copy and wait, and nothing is noted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::backend::{Backend, MemoryStats};
use crate::device::{Device, queue};
use crate::error::Result;
use crate::event::Marker;
use crate::fork::lock;
use crate::holders;
use crate::plan::ExplainedStep;

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// What.
    pub what: What,
    /// When it began.
    pub start: Instant,
    /// How long it took.
    pub length: Duration,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// A program asked for arrays, and they were computed or given to a device.
    Evaluation {
        /// Where.
        device: Device,
        /// How many operations had been recorded for them.
        nodes: usize,
        /// The memory in use after it.
        memory: MemoryStats,
    },
    /// A plan was made, and its segments made ready.
    Planning {
        /// For what.
        device: Device,
        /// How many operations it is of.
        nodes: usize,
        /// How many steps it has.
        steps: usize,
    },
    /// Segments that no plan had before were made ready: on GPUs, compiled.
    Compiling {
        /// For what.
        device: Device,
        /// How many.
        segments: usize,
    },
    /// A step of a plan ran.
    Step {
        /// Where.
        device: Device,
        /// The number of the stream that it was for.
        queue: u16,
        /// What it does.
        step: Arc<ExplainedStep>,
        /// The line of the program that recorded what it is about, where that is known.
        line: Option<Arc<str>>,
        /// Whose time it is.
        clock: Clock,
    },
    /// Bytes went from the host to a device, from a device to the host, or between devices.
    Copy {
        /// Whence.
        from: Device,
        /// Whither.
        to: Device,
        /// How many bytes.
        bytes: usize,
    },
    /// The CPU ran a step of another device, which has no kernel for it.
    Fallback {
        /// For which device.
        device: Device,
        /// The operation.
        op: String,
        /// Why the device did not.
        reason: String,
        /// The bytes that were copied for it, both ways.
        bytes: usize,
    },
    /// The host waited for a device.
    Wait {
        /// For which.
        device: Device,
    },
    /// A program's own mark.
    Mark {
        /// What the program calls it.
        name: String,
    },
}

/// Whose time it is that a step took.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Clock {
    /// The device's: what the work took.
    Device,
    /// The host's, which gave a device the work and did not wait for it.
    Host,
}

/// Who is told what happens, by the thread on which it does.
pub trait Listener: Send + Sync {
    /// Takes note of an event.
    fn happened(&self, event: &Event);

    /// Whether the lines of the program that record are noted for it.
    fn lines(&self) -> bool {
        true
    }

    /// Whether a device is waited for after each of its steps.
    fn waits(&self) -> bool {
        false
    }
}

/// How many listen.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static LISTENERS: RwLock<Vec<Arc<dyn Listener>>> = RwLock::new(Vec::new());

/// Device times that are not known yet, since nobody has waited.
static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());

/// The first mark of a device since somebody listens, and the host's moment at it: what the clocks are aligned by.
type Base = (Device, Arc<dyn Marker>, Instant);

static BASES: Mutex<Vec<Base>> = Mutex::new(Vec::new());

/// How many runs of plans may be pending before they are waited for.
const MOST_PENDING: usize = 1024;

/// Tells `listener` what happens from now on, until [`ignore`].
pub fn listen(listener: Arc<dyn Listener>) {
    let mut listeners = LISTENERS.write().unwrap_or_else(PoisonError::into_inner);
    if listener.lines() {
        holders::want_lines(true);
    }
    listeners.push(listener);
    COUNT.store(listeners.len(), Ordering::Relaxed);
}

/// Tells `listener` nothing more. What devices are still at is waited for and told before.
pub fn ignore(listener: &Arc<dyn Listener>) {
    settle();
    let mut listeners = LISTENERS.write().unwrap_or_else(PoisonError::into_inner);
    let place = listeners.iter().position(|known| Arc::ptr_eq(known, listener));
    if place.is_some_and(|at| listeners.remove(at).lines()) {
        holders::want_lines(false);
    }
    if listeners.is_empty() {
        lock(&BASES).clear();
    }
    COUNT.store(listeners.len(), Ordering::Relaxed);
}

/// A tool that shows what a thread is at as ranges with names, one within the other.
pub trait Ranges: Send + Sync {
    /// A range of this name begins on this thread.
    fn push(&self, name: &str);

    /// The innermost range of this thread ends.
    fn pop(&self);
}

/// How a crate makes such a tool known: `inventory::submit!` one of these.
pub struct Tool {
    /// Whether the tool watches this process now. It is asked before each range.
    pub watches: fn() -> bool,
    /// The tool, where it can be reached. It is asked once, when there is somebody to show something to.
    pub open: fn() -> Option<Box<dyn Ranges>>,
}

inventory::collect!(Tool);

/// Who is shown ranges now: nobody while nobody listens, but for the tools that watch this process.
fn shown() -> Option<&'static dyn Ranges> {
    static OPEN: OnceLock<Option<Box<dyn Ranges>>> = OnceLock::new();
    let tools = || inventory::iter::<Tool>();
    match is_on() || tools().any(|tool| (tool.watches)()) {
        true => OPEN.get_or_init(|| tools().find_map(|tool| (tool.open)())).as_deref(),
        false => None,
    }
}

/// A range that ends where this is dropped.
pub(crate) struct Range(&'static dyn Ranges);

/// Begins a range, where there is somebody to show it to.
pub(crate) fn range(name: &str) -> Option<Range> {
    shown().map(|tool| Range::begin(tool, name))
}

/// Begins a range for each of some steps, where there is somebody to show them to.
pub(crate) fn ranges() -> Option<impl Fn(&str) -> Range> {
    shown().map(|tool| move |name: &str| Range::begin(tool, name))
}

impl Range {
    fn begin(tool: &'static dyn Ranges, name: &str) -> Range {
        tool.push(name);
        Range(tool)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        self.0.pop();
    }
}

/// Whether anybody listens.
#[inline]
pub fn is_on() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}

fn listeners() -> Vec<Arc<dyn Listener>> {
    LISTENERS.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Tells all who listen.
pub fn tell(event: &Event) {
    listeners().iter().for_each(|listener| listener.happened(event));
}

/// The moment at which something begins, where anybody listens.
#[inline]
pub(crate) fn begin() -> Option<Instant> {
    is_on().then(Instant::now)
}

/// Tells what began at `start`, and ends now.
pub(crate) fn end(start: Option<Instant>, what: impl FnOnce() -> What) {
    if let Some(start) = start {
        tell(&Event { what: what(), start, length: start.elapsed() });
    }
}

/// The mark that the times of a device are counted from, which is idle at the first.
fn base(on: &dyn Backend) -> Result<(Arc<dyn Marker>, Instant)> {
    let device = on.device();
    if let Some((_, mark, at)) = lock(&BASES).iter().find(|(known, ..)| *known == device) {
        return Ok((mark.clone(), *at));
    }
    on.synchronize()?;
    let mark: Arc<dyn Marker> = on.mark()?.into();
    mark.wait()?;
    let at = Instant::now();
    lock(&BASES).push((device, mark.clone(), at));
    Ok((mark, at))
}

/// A run of a plan, watched step by step.
pub(crate) struct Watch<'a> {
    on: &'a dyn Backend,
    queue: u16,
    waits: bool,
    last: Instant,
    /// Places in the device's work, where it has marks of its own or is waited for.
    marks: Option<Marks>,
    steps: Vec<Watched>,
}

struct Marks {
    /// Where the device's times are counted from, and the host's moment there.
    base: (Arc<dyn Marker>, Instant),
    /// Before the first step, and after each.
    places: Vec<Box<dyn Marker>>,
}

struct Watched {
    step: Arc<ExplainedStep>,
    line: Option<Arc<str>>,
    start: Instant,
    length: Duration,
}

/// A run of a plan whose device times are to be read.
struct Pending {
    device: Device,
    queue: u16,
    marks: Marks,
    steps: Vec<Watched>,
}

impl<'a> Watch<'a> {
    /// Begins, where anybody listens.
    pub fn begin(on: &'a dyn Backend) -> Result<Option<Watch<'a>>> {
        if !is_on() {
            return Ok(None);
        }
        let waits = listeners().iter().any(|listener| listener.waits());
        let marks = match on.device() == Device::CPU {
            true => None,
            false if waits || on.has_marks() => {
                Some(Marks { base: base(on)?, places: vec![on.mark()?] })
            }
            false => None,
        };
        Ok(Some(Watch {
            on,
            queue: queue(),
            waits,
            last: Instant::now(),
            marks,
            steps: Vec::new(),
        }))
    }

    /// A step that was given to the device now. Where it cannot be marked the host's times stay: who
    /// listens does not make a run fail.
    pub fn step(&mut self, step: &Arc<ExplainedStep>, line: Option<Arc<str>>) {
        if let Some(marks) = &mut self.marks {
            let mark = self.on.mark().and_then(|mark| match self.waits {
                true => mark.wait().map(|()| mark),
                false => Ok(mark),
            });
            match mark {
                Ok(mark) => marks.places.push(mark),
                Err(_) => self.marks = None,
            }
        }
        let length = self.last.elapsed();
        self.steps.push(Watched { step: step.clone(), line, start: self.last, length });
        self.last = Instant::now();
    }

    /// Tells what is known; what the device is still at is told later.
    pub fn end(self) {
        let (device, queue) = (self.on.device(), self.queue);
        let Some(marks) = self.marks else {
            let clock = if device == Device::CPU { Clock::Device } else { Clock::Host };
            for Watched { step, line, start, length } in self.steps {
                tell(&Event {
                    what: What::Step { device, queue, step, line, clock },
                    start,
                    length,
                });
            }
            return;
        };
        let pending = Pending { device, queue, marks, steps: self.steps };
        let is_full = {
            let mut all = lock(&PENDING);
            all.push(pending);
            all.len() >= MOST_PENDING
        };
        if self.waits || is_full {
            settle();
        }
    }
}

/// Waits for what devices are at, and tells it.
pub fn settle() {
    let all = std::mem::take(&mut *lock(&PENDING));
    all.into_iter().for_each(Pending::tell);
}

impl Pending {
    /// When each step began and how long it took, by the device's clock.
    fn times(&self) -> Result<Vec<(Instant, Duration)>> {
        let Marks { base: (base, start), places } = &self.marks;
        if let Some(last) = places.last() {
            last.wait()?;
        }
        let at = |mark: &dyn Marker| -> Result<Instant> {
            let milliseconds = base.until(mark)?.max(0.0);
            Ok(*start + Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or_default())
        };
        let places = places.iter().map(|mark| at(&**mark)).collect::<Result<Vec<_>>>()?;
        Ok(places.windows(2).map(|pair| (pair[0], pair[1].duration_since(pair[0]))).collect())
    }

    fn tell(self) {
        let (device, queue) = (self.device, self.queue);
        let times = self.times();
        for (index, Watched { step, line, start, length }) in self.steps.into_iter().enumerate() {
            // A device that failed has no times of its own: what the host saw stays.
            let known = times.as_ref().ok().and_then(|times| times.get(index).copied());
            let (start, length, clock) = match known {
                Some((start, length)) => (start, length, Clock::Device),
                None => (start, length, Clock::Host),
            };
            tell(&Event { what: What::Step { device, queue, step, line, clock }, start, length });
        }
    }
}
