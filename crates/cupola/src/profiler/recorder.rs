//! What listens for a profile. It keeps what it is told as it is; names, shapes and numbers of threads are found when
//! the profile ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

use cupola_core::profile::{Event, Listener, Run};

use super::{Noted, Options, Profile};

/// The most events of a profile: some hundred bytes each.
const MOST: usize = 4_000_000;

/// Events for which there is room from the beginning.
const FIRST: usize = 4096;

pub struct Recorder {
    start: Instant,
    options: Options,
    noted: Mutex<State>,
}

struct State {
    events: Vec<(Event, ThreadId)>,
    runs: Vec<Arc<Run>>,
    /// How many events the runs come to.
    steps: usize,
    lost: usize,
}

impl Recorder {
    pub fn new(options: Options) -> Self {
        let noted = Mutex::new(State {
            events: Vec::with_capacity(FIRST),
            runs: Vec::new(),
            steps: 0,
            lost: 0,
        });
        Recorder { start: Instant::now(), options, noted }
    }

    /// What was recorded; nothing is left.
    pub fn finish(&self) -> Profile {
        let length = self.start.elapsed();
        let mut state = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events = std::mem::take(&mut state.events);
        for run in std::mem::take(&mut state.runs) {
            events.extend(run.events().map(|event| (event, run.thread())));
        }
        events.sort_by_key(|(event, _)| event.start);
        let mut threads = HashMap::new();
        let numbered = events.into_iter().map(|(event, thread)| {
            let next = threads.len() as u32;
            Noted { event, thread: *threads.entry(thread).or_insert(next) }
        });
        Profile {
            start: self.start,
            length,
            options: self.options,
            events: numbered.collect(),
            lost: state.lost,
        }
    }

    /// Keeps what comes to so many events, where there is room for them.
    fn keep(&self, count: usize, keep: impl FnOnce(&mut State)) {
        let mut state = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        match state.events.len() + state.steps + count <= MOST {
            true => keep(&mut state),
            false => state.lost += count,
        }
    }
}

impl Listener for Recorder {
    fn happened(&self, event: &Event) {
        let thread = std::thread::current().id();
        self.keep(1, |state| state.events.push((event.clone(), thread)));
    }

    fn ran(&self, run: &Arc<Run>) {
        self.keep(run.count(), |state| {
            state.steps += run.count();
            state.runs.push(run.clone());
        });
    }

    fn at_once(&self) -> bool {
        false
    }

    fn lines(&self) -> bool {
        self.options.lines
    }

    fn waits(&self) -> bool {
        self.options.wait_until_completed
    }

    fn every(&self) -> u32 {
        self.options.every
    }
}
