//! What happens while arrays are computed, told to whoever listens: a profiler, a log.
//!
//! Where nobody listens one relaxed load is made for each evaluation, copy and wait, and nothing is noted.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
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
    /// The device's for a whole run of a plan, divided among its steps as it was when each was timed.
    Divided,
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

    /// Of so many runs of a plan one is timed step by step, besides the first two, where a device runs its steps
    /// quicker as one. The others are timed as a whole.
    fn every(&self) -> u32 {
        1
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

/// Tells all who listen of several events.
fn tell_all(events: impl Iterator<Item = Event>) {
    let all = listeners();
    events.for_each(|event| all.iter().for_each(|listener| listener.happened(&event)));
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

/// The runs of a plan that are timed step by step before any is timed as a whole.
const FIRST_RUNS: u32 = 2;

/// How a plan's time is divided among its steps.
#[derive(Default)]
pub(crate) struct Shares {
    /// How often it ran while somebody listened.
    runs: AtomicU32,
    /// What each step took, in seconds, when they were last timed one by one.
    times: Mutex<Vec<f32>>,
}

impl Shares {
    /// Whether the steps of the next run are timed one by one.
    fn is_each(&self, listeners: &[Arc<dyn Listener>]) -> bool {
        let every = listeners.iter().map(|listener| listener.every().max(1)).min().unwrap_or(1);
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        run < FIRST_RUNS || run.is_multiple_of(every)
    }

    /// Notes what steps took.
    fn note(&self, steps: &[Watched], times: &[(Instant, Duration)]) {
        let mut all = lock(&self.times);
        for (step, (_, length)) in steps.iter().zip(times) {
            if all.len() <= step.index {
                all.resize(step.index + 1, 0.0);
            }
            all[step.index] = length.as_secs_f32();
        }
    }

    /// The time from `start` to `end`, divided among steps.
    fn divided(&self, steps: &[Watched], start: Instant, end: Instant) -> Vec<(Instant, Duration)> {
        let all = lock(&self.times);
        let of = |step: &Watched| all.get(step.index).copied().unwrap_or(0.0);
        let sum: f32 = steps.iter().map(of).sum();
        let (whole, even) = (end.duration_since(start), 1.0 / steps.len() as f32);
        let mut at = start;
        let times = steps.iter().map(|step| {
            let share = if sum > 0.0 { of(step) / sum } else { even };
            let (start, length) = (at, whole.mul_f32(share));
            at += length;
            (start, length)
        });
        times.collect()
    }
}

/// A run of a plan that is watched.
pub(crate) struct Watch<'a> {
    on: &'a dyn Backend,
    queue: u16,
    waits: bool,
    shares: &'a Arc<Shares>,
    /// Whether it is timed as a whole.
    is_whole: bool,
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
    /// Which step of the plan it is.
    index: usize,
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
    shares: Arc<Shares>,
    is_whole: bool,
    steps: Vec<Watched>,
}

impl<'a> Watch<'a> {
    /// Begins, where anybody listens. A plan that `runs_as_one` may be timed as a whole.
    pub fn begin(
        on: &'a dyn Backend,
        shares: &'a Arc<Shares>,
        runs_as_one: bool,
    ) -> Result<Option<Watch<'a>>> {
        if !is_on() {
            return Ok(None);
        }
        let all = listeners();
        let waits = all.iter().any(|listener| listener.waits());
        let is_whole = runs_as_one && on.has_marks() && !shares.is_each(&all) && !waits;
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
            shares,
            is_whole,
            last: Instant::now(),
            marks,
            steps: Vec::new(),
        }))
    }

    /// Whether only the whole run is timed.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// A step that was given to the device now.
    pub fn step(&mut self, index: usize, step: &Arc<ExplainedStep>, line: Option<Arc<str>>) {
        if !self.is_whole {
            self.mark();
        }
        let length = self.last.elapsed();
        self.steps.push(Watched { index, step: step.clone(), line, start: self.last, length });
        self.last = Instant::now();
    }

    /// Marks what was given to the device. Where it cannot be marked the host's times stay: who listens does not
    /// make a run fail.
    fn mark(&mut self) {
        let Some(marks) = &mut self.marks else { return };
        let mark = self.on.mark().and_then(|mark| match self.waits {
            true => mark.wait().map(|()| mark),
            false => Ok(mark),
        });
        match mark {
            Ok(mark) => marks.places.push(mark),
            Err(_) => self.marks = None,
        }
    }

    /// Tells what is known; what the device is still at is told later.
    pub fn end(mut self) {
        if self.is_whole {
            self.mark();
        }
        let (device, queue) = (self.on.device(), self.queue);
        let Some(marks) = self.marks else {
            let clock = if device == Device::CPU { Clock::Device } else { Clock::Host };
            tell_all(self.steps.into_iter().map(
                |Watched { step, line, start, length, .. }| {
                    let what = What::Step { device, queue, step, line, clock };
                    Event { what, start, length }
                },
            ));
            return;
        };
        let (shares, is_whole) = (self.shares.clone(), self.is_whole);
        let pending = Pending { device, queue, marks, shares, is_whole, steps: self.steps };
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
        if let ([start, end], true) = (&places[..], self.is_whole) {
            return Ok(self.shares.divided(&self.steps, *start, *end));
        }
        let between = |pair: &[Instant]| (pair[0], pair[1].duration_since(pair[0]));
        let times: Vec<_> = places.windows(2).map(between).collect();
        self.shares.note(&self.steps, &times);
        Ok(times)
    }

    fn tell(self) {
        let (device, queue) = (self.device, self.queue);
        let times = self.times();
        let own = if self.is_whole { Clock::Divided } else { Clock::Device };
        tell_all(self.steps.into_iter().enumerate().map(|(index, watched)| {
            let Watched { step, line, start, length, .. } = watched;
            // A device that failed has no times of its own: what the host saw stays.
            let known = times.as_ref().ok().and_then(|times| times.get(index).copied());
            let (start, length, clock) = match known {
                Some((start, length)) => (start, length, own),
                None => (start, length, Clock::Host),
            };
            Event { what: What::Step { device, queue, step, line, clock }, start, length }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(indices: &[usize], start: Instant) -> Vec<Watched> {
        let step = Arc::new(ExplainedStep {
            kind: "map".into(),
            over: String::new(),
            fused: Vec::new(),
            epilogue: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            bytes_read: 0,
            bytes_written: 0,
            operations: 0,
            in_place: false,
            on_cpu: false,
            inside: Vec::new(),
        });
        let watched = |&index| Watched {
            index,
            step: step.clone(),
            line: None,
            start,
            length: Duration::ZERO,
        };
        indices.iter().map(watched).collect()
    }

    #[test]
    fn a_whole_run_is_divided_as_its_steps_were_timed() {
        let start = Instant::now();
        let after = |ms: u64| start + Duration::from_millis(ms);
        let shares = Shares::default();
        let all = steps(&[0, 2], start);
        // Nothing was timed yet.
        let even = shares.divided(&all, start, after(20));
        assert_eq!(even[1].1, Duration::from_millis(10));
        let times = [(start, Duration::from_millis(3)), (after(3), Duration::from_millis(1))];
        shares.note(&all, &times);
        let found = shares.divided(&all, start, after(8));
        assert_eq!(found[0], (start, Duration::from_millis(6)));
        assert_eq!(found[1], (after(6), Duration::from_millis(2)));
        // A step that was skipped when the others were timed takes nothing, and one that is skipped now is not there.
        let found = shares.divided(&steps(&[1, 2], start), start, after(8));
        assert_eq!((found[0].1, found[1].1), (Duration::ZERO, Duration::from_millis(8)));
    }

    struct Seldom;

    impl Listener for Seldom {
        fn happened(&self, _: &Event) {}

        fn lines(&self) -> bool {
            false
        }

        fn every(&self) -> u32 {
            4
        }
    }

    #[test]
    fn the_first_runs_and_every_so_many_th_are_timed_step_by_step() {
        let listeners: [Arc<dyn Listener>; 1] = [Arc::new(Seldom)];
        let shares = Shares::default();
        let each: Vec<bool> = (0..9).map(|_| shares.is_each(&listeners)).collect();
        let wanted = [true, true, false, false, true, false, false, false, true];
        assert_eq!(each, wanted);
    }
}
