//! A run of a plan that is over: which steps it had, and when each was over.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use super::{Clock, Event, Listener, What};
use crate::backend::MemoryStats;
use crate::device::Device;
use crate::fork::lock;
use crate::plan::ExplainedStep;

/// A step of a plan, and the line of the program that recorded what it is about, where that is known.
#[derive(Debug)]
pub(crate) struct Told {
    pub step: Arc<ExplainedStep>,
    pub line: Option<Arc<str>>,
}

/// A run of a plan. What it tells of its steps is put together where somebody asks.
#[derive(Debug)]
pub struct Run {
    pub(super) device: Device,
    pub(super) queue: u16,
    pub(super) thread: ThreadId,
    pub(super) steps: Arc<[Told]>,
    /// The steps that had nothing to do.
    pub(super) skipped: Box<[u32]>,
    /// The memory in use when it began.
    pub(super) memory: MemoryStats,
    pub(super) start: Instant,
    /// Nanoseconds from the start to where each step was over that was not skipped, or the whole run.
    pub(super) ends: Vec<u64>,
    pub(super) clock: Clock,
    pub(super) is_whole: bool,
    pub(super) shares: Arc<Shares>,
}

impl Run {
    /// The thread that ran it.
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// How many events it comes to.
    pub fn count(&self) -> usize {
        1 + self.steps.len() - self.skipped.len()
    }

    /// The memory it began with, and what its steps were and took.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        let ends = match (self.is_whole, &self.ends[..]) {
            (true, &[end]) => self.shares.divided(self.indices(), end),
            _ => self.ends.clone(),
        };
        let (device, memory, plan) = (self.device, self.memory, self.shares.plan);
        let what = What::Memory { device, memory };
        let placed = Event { what, start: self.start, length: Duration::ZERO };
        let mut last = 0;
        let steps = self.indices().zip(ends).map(move |(index, end)| {
            let Told { step, line } = &self.steps[index];
            let (device, queue, clock) = (self.device, self.queue, self.clock);
            let (step, line) = (step.clone(), line.clone());
            let what = What::Step { device, queue, plan, step, line, clock };
            let start = self.start + Duration::from_nanos(last);
            let length = Duration::from_nanos(end.saturating_sub(last));
            last = end;
            Event { what, start, length }
        });
        std::iter::once(placed).chain(steps)
    }

    /// The steps that did something.
    fn indices(&self) -> impl Iterator<Item = usize> + Clone {
        let mut skipped = self.skipped.iter().peekable();
        (0..self.steps.len())
            .filter(move |&index| skipped.next_if(|&&other| other as usize == index).is_none())
    }

    /// Takes the device's own times for those of the host. Those of single steps say how whole runs are divided.
    pub(super) fn measured(&mut self, start: Instant, ends: Vec<u64>) {
        (self.start, self.ends) = (start, ends);
        self.clock = if self.is_whole { Clock::Divided } else { Clock::Device };
        if !self.is_whole {
            self.shares.note(self.steps.len(), self.indices(), &self.ends);
        }
    }
}

/// The runs of a plan that are timed step by step before any is timed as a whole.
const FIRST_RUNS: u32 = 2;

/// How a plan's time is divided among its steps.
#[derive(Debug)]
pub(crate) struct Shares {
    /// The plan's number: plans are numbered in the order in which they are made.
    pub plan: u64,
    /// How often it ran while somebody listened.
    runs: AtomicU32,
    /// What each step took, in nanoseconds, when they were last timed one by one.
    times: Mutex<Vec<u64>>,
}

impl Default for Shares {
    fn default() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let plan = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Shares { plan, runs: AtomicU32::new(0), times: Mutex::default() }
    }
}

impl Shares {
    /// Whether the steps of the next run are timed one by one.
    pub(super) fn is_each(&self, listeners: &[Arc<dyn Listener>]) -> bool {
        let every = listeners.iter().map(|listener| listener.every().max(1)).min().unwrap_or(1);
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        run < FIRST_RUNS || run.is_multiple_of(every)
    }

    /// Notes when each of these of so many steps was over.
    fn note(&self, count: usize, indices: impl Iterator<Item = usize>, ends: &[u64]) {
        let mut times = lock(&self.times);
        times.resize(count, 0);
        let mut last = 0;
        for (index, &end) in indices.zip(ends) {
            times[index] = end.saturating_sub(last);
            last = end;
        }
    }

    /// When each of these steps was over, if all were after `whole`.
    fn divided(&self, indices: impl Iterator<Item = usize> + Clone, whole: u64) -> Vec<u64> {
        let times = lock(&self.times);
        let of = |index: usize| times.get(index).copied().unwrap_or(0);
        let sum: u64 = indices.clone().map(of).sum();
        // Where nothing is known all take the same.
        let of = |index: usize| if sum > 0 { of(index) } else { 1 };
        let sum = if sum > 0 { sum } else { indices.clone().count() as u64 };
        let mut passed = 0;
        let ends = indices.map(|index| {
            passed += of(index);
            (u128::from(whole) * u128::from(passed) / u128::from(sum)) as u64
        });
        ends.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_run_is_divided_as_its_steps_were_timed() {
        let shares = Shares::default();
        // Nothing was timed yet.
        assert_eq!(shares.divided([0, 2].into_iter(), 20), [10, 20]);
        shares.note(3, [0, 2].into_iter(), &[3, 4]);
        assert_eq!(shares.divided([0, 2].into_iter(), 8), [6, 8]);
        // A step that was skipped when the others were timed takes nothing, and one that is skipped now is not there.
        assert_eq!(shares.divided([1, 2].into_iter(), 8), [0, 8]);
        assert_eq!(shares.divided(std::iter::empty(), 8), [0; 0]);
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
