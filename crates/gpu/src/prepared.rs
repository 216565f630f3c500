//! Segments that are ready to run, found again by what they are: layers that are alike share theirs,
//! and so do plans for other sizes in all that does not follow from these.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;

use cupola_core::backend::{Executable, Segment};
use cupola_core::{Error, Result};

/// What is in use of what was made ready. Nothing is kept for its own sake: plans do that.
pub struct Shared<P> {
    known: Mutex<Known<P>>,
}

struct Known<P> {
    made: HashMap<Segment, Weak<P>>,
    /// From how many on those that nobody uses are looked for.
    most: usize,
}

impl<P> Default for Shared<P> {
    fn default() -> Self {
        Shared { known: Mutex::new(Known { made: HashMap::new(), most: 256 }) }
    }
}

impl<P> Shared<P> {
    fn lock(&self) -> MutexGuard<'_, Known<P>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was made of such a segment, or what `make` makes of it. Nobody waits while it does.
    pub fn get(&self, segment: &Segment, make: impl FnOnce() -> Result<P>) -> Result<Arc<P>> {
        if let Some(made) = self.lock().made.get(segment).and_then(Weak::upgrade) {
            return Ok(made);
        }
        let made = Arc::new(make()?);
        let mut known = self.lock();
        if known.made.len() >= known.most {
            known.made.retain(|_, made| made.strong_count() > 0);
            known.most = (2 * known.made.len()).max(256);
        }
        known.made.insert(segment.clone(), Arc::downgrade(&made));
        Ok(made)
    }
}

/// What `prepare` makes of each segment, on all cores: compilers take their time.
#[expect(clippy::mutable_key_type, reason = "what a call remembers is no part of what it is")]
pub fn prepare_all(
    segments: &[&Segment],
    prepare: impl Fn(&Segment) -> Result<Arc<dyn Executable>> + Sync,
) -> Vec<Result<Arc<dyn Executable>>> {
    // Those that are alike are made once.
    let mut first: HashMap<&Segment, usize> = HashMap::new();
    let mut different = Vec::new();
    let places: Vec<usize> = (segments.iter())
        .map(|segment| {
            *first.entry(segment).or_insert_with(|| {
                different.push(*segment);
                different.len() - 1
            })
        })
        .collect();
    let made: Vec<OnceLock<Result<Arc<dyn Executable>>>> =
        different.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((segment, place)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            different.get(at).zip(made.get(at))
        } {
            let _ = place.set(prepare(segment));
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 1..cores.min(different.len()) {
            scope.spawn(work);
        }
        work();
    });
    let of = |place: usize| {
        made[place].get().cloned().unwrap_or_else(|| Err(Error::Device("nothing was made".into())))
    };
    places.into_iter().map(of).collect()
}
