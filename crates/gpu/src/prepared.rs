//! Segments of a plan made ready on all cores.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use cupola_core::backend::{Executable, Segment};
use cupola_core::{Error, Result};

/// A plan for other sizes has seldom more new segments.
const FEW: usize = 8;
/// Segments that take no compiler are ready sooner than another thread begins.
const LONG: Duration = Duration::from_micros(500);

/// What `prepare` makes of each segment, on all cores: compilers take their time. Of few segments only once one of them
/// took long: those of a plan for other sizes are mostly known to the compiler.
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
        Some(())
    };
    let (start, mut left) = (Instant::now(), segments.len());
    while left <= FEW && start.elapsed() < LONG && one().is_some() {
        left -= 1;
    }
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
