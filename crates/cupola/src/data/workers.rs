//! Threads that make batches ahead of their use, and hand them over in order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use cupola_core::fork;

use super::{Error, Result};

/// Makes a batch of the samples at some indices.
pub(super) type Fetch<B> = Arc<dyn Fn(&[usize]) -> Result<B> + Send + Sync>;

/// Makes a batch by its number.
type Make<B> = Arc<dyn Fn(usize) -> Result<B> + Send + Sync>;

/// The threads of one epoch.
pub(super) struct Workers<B: Send + 'static> {
    shared: Arc<Shared<B>>,
    threads: Vec<JoinHandle<()>>,
    /// Of the process that has the threads.
    generation: u32,
}

struct Shared<B> {
    state: Mutex<State<B>>,
    /// Told when there is room to make a batch, or to stop.
    room: Condvar,
    /// Told when a batch is ready.
    ready: Condvar,
}

struct State<B> {
    /// The batches that nobody has begun.
    todo: Range<usize>,
    /// The first batch that may not be begun yet.
    limit: usize,
    ready: BTreeMap<usize, Result<B>>,
    stop: bool,
}

impl<B> Shared<B> {
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        // Nothing of a user's runs under the lock, and each change of the state is one statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Send + 'static> Workers<B> {
    /// Starts `threads` threads that make `batches`, at most `prefetch` ahead of those taken.
    pub(super) fn start(
        make: Make<B>,
        batches: Range<usize>,
        threads: usize,
        prefetch: usize,
    ) -> Self {
        let limit = batches.start.saturating_add(prefetch);
        let state = State { todo: batches, limit, ready: BTreeMap::new(), stop: false };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            room: Condvar::new(),
            ready: Condvar::new(),
        });
        let spawn = |number| {
            let (shared, make) = (shared.clone(), make.clone());
            let name = format!("data-{number}");
            std::thread::Builder::new().name(name).spawn(move || work(&shared, &make))
        };
        // A system that is short of threads gives fewer; with none, `take` says so.
        let threads = (0..threads).map_while(|number| spawn(number).ok()).collect();
        Self { shared, threads, generation: fork::generation() }
    }

    /// The batch of that number; numbers are asked for in order.
    pub(super) fn take(&mut self, batch: usize) -> Result<B> {
        if self.threads.is_empty() {
            return Err(Error::user("the system starts no thread for a data worker"));
        }
        fork::check(self.generation, "a loader with workers")?;
        let mut state = self.shared.lock();
        loop {
            if let Some(result) = state.ready.remove(&batch) {
                state.limit = state.limit.saturating_add(1);
                self.shared.room.notify_one();
                return result;
            }
            state = self.shared.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<B: Send + 'static> Drop for Workers<B> {
    fn drop(&mut self) {
        if fork::check(self.generation, "").is_err() {
            // There are none to stop, and the lock may be theirs.
            std::mem::forget(std::mem::take(&mut self.threads));
            return;
        }
        self.shared.lock().stop = true;
        self.shared.room.notify_all();
        for thread in self.threads.drain(..) {
            // `make` turns panics into errors, so the thread has ended well.
            let _ = thread.join();
        }
    }
}

fn work<B>(shared: &Shared<B>, make: &Make<B>) {
    loop {
        let batch = {
            let mut state = shared.lock();
            loop {
                if state.stop || state.todo.is_empty() {
                    return;
                }
                if state.todo.start < state.limit {
                    break;
                }
                state = shared.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let batch = state.todo.start;
            state.todo.start += 1;
            batch
        };
        let result = make(batch);
        shared.lock().ready.insert(batch, result);
        shared.ready.notify_one();
    }
}
