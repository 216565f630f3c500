//! A run of a plan that is over: which steps it had, and when each was over.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// The steps that the CPU ran for the device: when each began, and how long it took.
    pub(super) on_host: Vec<(usize, Instant, Duration)>,
    pub(super) clock: Clock,
    pub(super) timing: Timing,
    pub(super) shares: Arc<Shares>,
}

impl Run {
    /// The thread that ran it.
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// The device it ran on, and its queue there.
    pub(super) fn queue(&self) -> (Device, u16) {
        (self.device, self.queue)
    }

    /// How many events it comes to.
    pub fn count(&self) -> usize {
        1 + self.steps.len() - self.skipped.len()
    }

    /// The memory it began with, and what its steps were and took.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        let ends = match (self.timing, &self.ends[..]) {
            (Timing::Whole | Timing::None, &[end]) => self.shares.divided(self.indices(), end),
            _ => self.ends.clone(),
        };
        let (device, memory, plan) = (self.device, self.memory, self.shares.plan);
        let what = What::Memory { device, memory };
        let placed = Event { what, start: self.start, length: Duration::ZERO };
        let mut last = 0;
        let mut on_host = self.on_host.iter().peekable();
        let steps = self.indices().zip(ends).map(move |(index, end)| {
            let Told { step, line } = &self.steps[index];
            let (device, queue, mut clock) = (self.device, self.queue, self.clock);
            let (step, line) = (step.clone(), line.clone());
            let mut start = self.start + Duration::from_nanos(last);
            let mut length = Duration::from_nanos(end.saturating_sub(last));
            if let Some(&(_, began, took)) = on_host.next_if(|(own, ..)| *own == index) {
                // What the device's clock has there are copies and waiting, too.
                (start, length, clock) = (began, took, Clock::Device);
            }
            last = end;
            Event { what: What::Step { device, queue, plan, step, line, clock }, start, length }
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
        let whole = self.ends.last().copied().unwrap_or(0);
        match self.timing {
            Timing::Each => {
                self.clock = Clock::Device;
                self.shares.note(self.steps.len(), self.indices(), &self.ends);
                // Longer than a run without marks in it, which comes soon.
                _ = self.shares.whole.compare_exchange(
                    0,
                    whole,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
            }
            Timing::Whole | Timing::None => {
                self.clock = Clock::Divided;
                self.shares.whole.store(whole, Ordering::Relaxed);
            }
        }
    }

    /// When it was over.
    fn end(&self) -> Instant {
        self.start + Duration::from_nanos(self.ends.last().copied().unwrap_or(0))
    }

    /// Whether its time is that of another run of its plan.
    fn is_guessed(&self) -> bool {
        self.timing == Timing::None && self.shares.whole() > 0
    }
}

/// Puts the runs that were not timed where their device can have had them: one after the other, no sooner than the
/// host gave them to it, and before the next one that was timed. `runs` are those of one queue, in order, and `free`
/// is when the queue was through with what came before.
pub(super) fn place(runs: &mut [&mut Run], free: &mut Option<Instant>) {
    for part in runs.chunk_by_mut(|run, _| run.is_guessed()) {
        let count = part.iter().take_while(|run| run.is_guessed()).count();
        let (guessed, timed) = part.split_at_mut(count);
        // Of one whose marks failed only the host's time is known.
        let timed = timed.first().filter(|run| run.clock != Clock::Host);
        let limit = timed.map(|run| run.start);
        let mut places = Vec::with_capacity(count);
        for run in guessed.iter() {
            let start = free.map_or(run.start, |free| free.max(run.start));
            let end = start + Duration::from_nanos(run.shares.whole());
            places.push((start, end));
            *free = Some(end);
        }
        if let (Some(limit), Some(&(first, _)), Some(&(_, last))) =
            (limit, places.first(), places.last())
            && last > limit
        {
            // The queue was busy all the time: what they had between them is known.
            let first = first.min(limit);
            let had = (limit - first).as_secs_f64() / (last - first).as_secs_f64();
            let moved = |place: Instant| first + (place - first).mul_f64(had);
            places
                .iter_mut()
                .for_each(|(start, end)| (*start, *end) = (moved(*start), moved(*end)));
            *free = Some(limit);
        }
        for (run, (start, end)) in guessed.iter_mut().zip(places) {
            let length = (end - start).as_nanos() as u64;
            (run.start, run.ends, run.clock) = (start, vec![length], Clock::Estimated);
        }
        if let Some(timed) = timed {
            let end = timed.end();
            *free = Some(free.map_or(end, |free| free.max(end)));
        }
    }
}

/// What of a run is timed on a device with marks of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timing {
    /// Each step.
    Each,
    /// The whole run.
    Whole,
    /// Nothing: two marks cost a device about 20 µs.
    None,
}

/// The runs of a plan that are timed step by step before any is timed as a whole.
const FIRST_RUNS: u32 = 2;

/// How far apart on the host runs of a device are that are timed as a whole: what that costs is 0.25 % then.
const APART: Duration = Duration::from_millis(8);

/// How far apart runs of a plan are that are timed step by step: a device does not run them as one, which takes up to
/// some milliseconds longer.
const EACH_APART: Duration = Duration::from_secs(1);

/// The most runs of a plan that are not timed before one is, however short they are.
const MOST_UNTIMED: u32 = 64;

/// When a run was last timed as a whole, by device.
static TIMED: Mutex<BTreeMap<Device, Instant>> = Mutex::new(BTreeMap::new());

/// The runs of a plan while somebody listened.
#[derive(Debug, Default)]
struct Counts {
    /// All of them.
    runs: u32,
    /// When it was last timed step by step.
    each: Option<Instant>,
    /// Those after it.
    since: u32,
    /// Those that were not timed, since one was.
    untimed: u32,
}

/// How a plan's time is divided among its steps.
#[derive(Debug)]
pub(crate) struct Shares {
    /// The plan's number: plans are numbered in the order in which they are made.
    pub plan: u64,
    counts: Mutex<Counts>,
    /// See [`Shares::whole`].
    whole: AtomicU64,
    /// What each step took, in nanoseconds, when they were last timed one by one.
    times: Mutex<Vec<u64>>,
}

impl Default for Shares {
    fn default() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let plan = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let (counts, whole, times) = Default::default();
        Shares { plan, counts, whole, times }
    }
}

impl Shares {
    /// What of the next run on `device` is timed, which begins `now`.
    pub(super) fn timing(
        &self,
        listeners: &[Arc<dyn Listener>],
        device: Device,
        now: Instant,
    ) -> Timing {
        let every = listeners.iter().map(|listener| listener.every().max(1)).min().unwrap_or(1);
        let mut counts = lock(&self.counts);
        (counts.runs, counts.since) =
            (counts.runs.saturating_add(1), counts.since.saturating_add(1));
        let is_over = |last| every == 1 || now.saturating_duration_since(last) >= EACH_APART;
        if counts.runs <= FIRST_RUNS || counts.since >= every && counts.each.is_none_or(is_over) {
            (counts.each, counts.since) = (Some(now), 0);
            return Timing::Each;
        }
        let mut all = lock(&TIMED);
        let last = all.get(&device);
        let is_soon = last.is_some_and(|last| now.saturating_duration_since(*last) < APART);
        if is_soon && counts.untimed < MOST_UNTIMED {
            counts.untimed += 1;
            return Timing::None;
        }
        counts.untimed = 0;
        all.insert(device, now);
        Timing::Whole
    }

    /// Nanoseconds of the last run that was timed as a whole; 0 before one was.
    fn whole(&self) -> u64 {
        self.whole.load(Ordering::Relaxed)
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
    use crate::device::DeviceKind;

    /// A run of a plan without steps, given to its device at this moment, and as long as said where it was timed.
    fn run(shares: &Arc<Shares>, start: Instant, timed: Option<Duration>) -> Run {
        let mut run = Run {
            device: Device { kind: DeviceKind::Cuda, index: 900 },
            queue: 0,
            thread: std::thread::current().id(),
            steps: Arc::new([]),
            skipped: Box::new([]),
            memory: MemoryStats::default(),
            start,
            ends: vec![1],
            on_host: Vec::new(),
            clock: Clock::Host,
            timing: if timed.is_some() { Timing::Whole } else { Timing::None },
            shares: shares.clone(),
        };
        if let Some(timed) = timed {
            run.measured(start, vec![timed.as_nanos() as u64]);
        }
        run
    }

    /// Start and end of each run after `zero`, in ms, as they are placed.
    fn placed(runs: &mut [Run], zero: Instant, free: &mut Option<Instant>) -> Vec<(u128, u128)> {
        place(&mut runs.iter_mut().collect::<Vec<_>>(), free);
        let after = |moment: Instant| (moment - zero).as_millis();
        runs.iter().map(|run| (after(run.start), after(run.end()))).collect()
    }

    #[test]
    fn runs_that_are_not_timed_follow_each_other_up_to_the_next_that_is() {
        let (zero, shares) = (Instant::now(), Arc::new(Shares::default()));
        let at = |ms: u64| zero + Duration::from_millis(ms);
        // Nothing is known of the plan: the host's time stays.
        let mut runs = [run(&shares, at(5), None)];
        assert_eq!(placed(&mut runs, zero, &mut None), [(5, 5)]);
        assert_eq!(runs[0].clock, Clock::Host);

        // The host is far ahead of the device, then idle for a while.
        let long = Some(Duration::from_millis(100));
        let mut runs = [
            run(&shares, at(10), long),
            run(&shares, at(11), None),
            run(&shares, at(12), None),
            run(&shares, at(500), None),
        ];
        let mut free = None;
        let wanted = [(10, 110), (110, 210), (210, 310), (500, 600)];
        assert_eq!(placed(&mut runs, zero, &mut free), wanted);
        let clocks = runs.map(|run| run.clock);
        assert_eq!(clocks[0], Clock::Divided);
        assert_eq!(clocks[1..], [Clock::Estimated; 3]);

        // They had less time than that up to the next one; what was told before counts.
        let mut runs = [
            run(&shares, at(510), None),
            run(&shares, at(511), None),
            run(&shares, at(700), long),
            run(&shares, at(701), None),
        ];
        let wanted = [(600, 650), (650, 700), (700, 800), (800, 900)];
        assert_eq!(placed(&mut runs, zero, &mut free), wanted);

        // The device's clock says that it was through with all of them before the host gave it one.
        let mut runs = [run(&shares, at(950), None), run(&shares, at(940), long)];
        assert_eq!(placed(&mut runs, zero, &mut free), [(940, 940), (940, 1040)]);
    }

    #[test]
    fn short_runs_are_not_all_timed() {
        struct Rare;
        impl Listener for Rare {
            fn happened(&self, _: &Event) {}

            fn every(&self) -> u32 {
                1000
            }
        }
        let listeners: [Arc<dyn Listener>; 1] = [Arc::new(Rare)];
        let device = Device { kind: DeviceKind::Cuda, index: 901 };
        let (shares, zero) = (Shares::default(), Instant::now());
        // A run each 0.5 ms.
        let timings: Vec<Timing> =
            (0..42).map(|run| shares.timing(&listeners, device, zero + APART / 8 * run)).collect();
        let whole = |timing: &&Timing| **timing == Timing::Whole;
        assert_eq!(timings[..2], [Timing::Each; 2]);
        assert_eq!(timings.iter().filter(whole).count(), 5, "{timings:?}");
        // Another plan is timed after so many runs, also where the first one is always there before it.
        let other = Shares::default();
        let timings: Vec<Timing> = (0..MOST_UNTIMED + 4)
            .map(|_| other.timing(&listeners, device, zero + APART / 8 * 41))
            .collect();
        assert_eq!(timings.iter().filter(whole).count(), 1, "{timings:?}");
    }

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

    struct Every;

    impl Listener for Every {
        fn happened(&self, _: &Event) {}
    }

    #[test]
    fn the_first_runs_and_one_of_so_many_are_timed_step_by_step() {
        let listeners: [Arc<dyn Listener>; 1] = [Arc::new(Seldom)];
        let shares = Shares::default();
        let (device, now) = (Device { kind: DeviceKind::Cuda, index: 900 }, Instant::now());
        let timings: Vec<Timing> =
            (0..10).map(|run| shares.timing(&listeners, device, now + EACH_APART * run)).collect();
        let each: Vec<bool> = timings.iter().map(|timing| *timing == Timing::Each).collect();
        let wanted = [true, true, false, false, false, true, false, false, false, true];
        assert_eq!(each, wanted);
        assert!(!timings.contains(&Timing::None), "{timings:?}");

        // Those of a short plan are further apart than it is asked, but where all are asked for.
        let all: [Arc<dyn Listener>; 1] = [Arc::new(Every)];
        for (listeners, wanted) in [(&listeners, 3), (&all, 40)] {
            let shares = Shares::default();
            let short = EACH_APART / 20;
            let timing = |run| shares.timing(listeners, device, now + short * run);
            let each = (0..40).map(timing).filter(|timing| *timing == Timing::Each);
            assert_eq!(each.count(), wanted);
        }
    }
}
