//! Segments of a plan made ready on all cores.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use cupola_core::backend::{Executable, Segment};
use cupola_core::{Error, Result};

/// Segments that take no compiler are ready sooner than another thread begins.
const LONG: Duration = Duration::from_micros(500);

/// What `prepare` makes of each segment: on all cores from when it takes long, as compilers do.
pub fn prepare_all(
    segments: &[&Segment],
    prepare: impl Fn(&Segment) -> Result<Arc<dyn Executable>> + Sync,
) -> Vec<Result<Arc<dyn Executable>>> {
    let made: Vec<OnceLock<Result<Arc<dyn Executable>>>> =
        segments.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let one = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let (segment, place) = segments.get(at).zip(made.get(at))?;
        let _ = place.set(prepare(segment));
        Some(at + 1)
    };
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed() < LONG
        && let Some(now) = one()
    {
        done = now;
    }
    let left = segments.len() - done;
    let work = || while one().is_some() {};
    thread::scope(|scope| {
        for _ in 1..cores().min(left) {
            scope.spawn(work);
        }
        work();
    });
    let nothing = || Err(Error::Device("nothing was made of a segment".into()));
    made.into_iter().map(|place| place.into_inner().unwrap_or_else(nothing)).collect()
}

/// How many cores there are. The system takes long to say.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}
