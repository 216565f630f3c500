//! Segments of a plan made ready on all cores.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use cupola_core::backend::{Executable, Segment};
use cupola_core::{Error, Result};

/// What `prepare` makes of each segment, on all cores: compilers take their time.
pub fn prepare_all(
    segments: &[&Segment],
    prepare: impl Fn(&Segment) -> Result<Arc<dyn Executable>> + Sync,
) -> Vec<Result<Arc<dyn Executable>>> {
    if let [segment] = segments {
        return vec![prepare(segment)];
    }
    let made: Vec<OnceLock<Result<Arc<dyn Executable>>>> =
        segments.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((segment, place)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            segments.get(at).zip(made.get(at))
        } {
            let _ = place.set(prepare(segment));
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 1..cores.min(segments.len()) {
            scope.spawn(work);
        }
        work();
    });
    let nothing = || Err(Error::Device("nothing was made of a segment".into()));
    made.into_iter().map(|place| place.into_inner().unwrap_or_else(nothing)).collect()
}
