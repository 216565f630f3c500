//! What happens while arrays are computed, told to whoever listens: a profiler, a log.
//!
//! Where nobody listens one relaxed load is made for each evaluation, copy and wait, and nothing is noted. While a plan
//! runs only moments are noted; what its steps were is put together when somebody asks.

mod ranges;
mod run;
mod watch;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::backend::MemoryStats;
use crate::device::Device;
use crate::holders;
use crate::plan::ExplainedStep;

pub use ranges::{Ranges, Tool};
pub use run::Run;
pub use watch::settle;

pub(crate) use ranges::{range, ranges};
pub(crate) use run::{Shares, Told};
pub(crate) use watch::Watch;

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
        /// Whether noting lines paused, so that operations may have none: see [`Listener::lines`].
        is_without_lines: bool,
        /// The memory in use after it.
        memory: MemoryStats,
    },
    /// A plan has its memory, and begins to run.
    Memory {
        /// Where.
        device: Device,
        /// The memory in use, with all that the plan needs.
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
        /// The number of its plan, which [`crate::plan::explain`] tells, too.
        plan: u64,
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
        /// The line of the program that recorded it, where that is known.
        line: Option<Arc<str>>,
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
    /// As [`Clock::Divided`], for a run that was not timed itself: it is taken to be as long as the last one that was,
    /// or shorter where the next one began before.
    Estimated,
    /// The host's, which gave a device the work and did not wait for it.
    Host,
}

/// Who is told what happens, by the thread on which it does, and of runs of plans later.
pub trait Listener: Send + Sync {
    /// Takes note of an event.
    fn happened(&self, event: &Event);

    /// Takes note of a run of a plan, whose events are those of its steps.
    fn ran(&self, run: &Arc<Run>) {
        run.events().for_each(|event| self.happened(&event));
    }

    /// Whether it is told of a run as soon as its times are known without waiting for a device.
    fn at_once(&self) -> bool {
        true
    }

    /// Whether the lines of the program that record are noted for it. Where all who want them have an
    /// [`every`](Listener::every) above 1, it pauses as long as it took more than 0.6 % of the time, and more than
    /// some milliseconds: steps then have the line that they had when their plan last ran with lines.
    fn lines(&self) -> bool {
        true
    }

    /// Whether a device is waited for after each of its steps.
    fn waits(&self) -> bool {
        false
    }

    /// Of so many runs of a plan one is timed step by step, besides the first two, where a device runs its steps
    /// quicker as one; with more than 1 at most once in a second. The others are timed as a whole.
    fn every(&self) -> u32 {
        1
    }
}

/// Those who listen.
type Listeners = Arc<[Arc<dyn Listener>]>;

/// How many they are.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static LISTENERS: LazyLock<RwLock<Listeners>> = LazyLock::new(|| RwLock::new(Arc::new([])));

/// Makes others those who listen.
fn change(change: impl FnOnce(&mut Vec<Arc<dyn Listener>>)) {
    let mut listeners = LISTENERS.write().unwrap_or_else(PoisonError::into_inner);
    let mut all = listeners.to_vec();
    change(&mut all);
    COUNT.store(all.len(), Ordering::Relaxed);
    *listeners = all.into();
}

/// Tells `listener` what happens from now on, until [`ignore`].
pub fn listen(listener: Arc<dyn Listener>) {
    // What happened before is not for it.
    settle();
    if listener.lines() {
        holders::want_lines(true, listener.every() <= 1);
    }
    change(|all| all.push(listener));
}

/// Tells `listener` nothing more. What devices are still at is waited for and told before.
pub fn ignore(listener: &Arc<dyn Listener>) {
    settle();
    change(|all| {
        let place = all.iter().position(|known| Arc::ptr_eq(known, listener));
        let Some(gone) = place.map(|at| all.remove(at)) else { return };
        if gone.lines() {
            holders::want_lines(false, gone.every() <= 1);
        }
    });
    if !is_on() {
        watch::forget();
    }
}

thread_local! {
    static IS_UNHEARD: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` so that nobody hears of what it evaluates on this thread, and no history of the memory has it.
pub fn unheard<R>(work: impl FnOnce() -> R) -> R {
    struct Restored(bool);
    impl Drop for Restored {
        fn drop(&mut self) {
            IS_UNHEARD.set(self.0);
        }
    }
    let _restored = Restored(IS_UNHEARD.replace(true));
    work()
}

/// Whether what this thread does is not to be heard of.
pub(crate) fn is_unheard() -> bool {
    IS_UNHEARD.get()
}

/// Whether anybody listens.
#[inline]
pub fn is_on() -> bool {
    COUNT.load(Ordering::Relaxed) > 0 && !is_unheard()
}

fn listeners() -> Listeners {
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

/// Tells what began at `start`, and ends now: gives this moment.
pub(crate) fn end(start: Option<Instant>, what: impl FnOnce() -> What) -> Option<Instant> {
    let start = start?;
    let length = start.elapsed();
    tell(&Event { what: what(), start, length });
    Some(start + length)
}
