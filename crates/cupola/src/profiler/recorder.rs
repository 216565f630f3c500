//! What listens for a profile.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

use cupola_core::profile::{Event, Listener};

use super::{Noted, Options, Profile};

/// The most events of a profile: some hundred bytes each.
const MOST: usize = 4_000_000;

pub struct Recorder {
    start: Instant,
    options: Options,
    noted: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: Vec<Noted>,
    threads: HashMap<ThreadId, u32>,
    lost: usize,
}

impl Recorder {
    pub fn new(options: Options) -> Self {
        Recorder { start: Instant::now(), options, noted: Mutex::default() }
    }

    /// What was recorded; nothing is left.
    pub fn finish(&self) -> Profile {
        let mut state = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let State { mut events, lost, .. } = std::mem::take(&mut *state);
        events.sort_by_key(|noted| noted.event.start);
        Profile {
            start: self.start,
            length: self.start.elapsed(),
            options: self.options,
            events,
            lost,
        }
    }
}

impl Listener for Recorder {
    fn happened(&self, event: &Event) {
        let mut state = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if state.events.len() >= MOST {
            state.lost += 1;
            return;
        }
        let next = state.threads.len() as u32;
        let thread = *state.threads.entry(std::thread::current().id()).or_insert(next);
        state.events.push(Noted { event: event.clone(), thread });
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
