//! What noting lines may cost a program that is profiled.
//!
//! Where all who want lines can do without some, noting pauses as long as it took more than [`SHARE`] of the time since
//! it began. It pauses and goes on between two evaluations, so that what is computed together has its lines or none.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// The part of the time that may go to lines: as much again goes to what they drive out of caches, and to frames that
/// Python makes for whoever asks.
const SHARE: f64 = 0.003;

/// Nanoseconds that may go to them in any case.
const FREE: f64 = 2e6;

/// Of so many lines the time of one is taken.
const EACH: u32 = 16;

/// What such a line is taken to have taken at most: the first ones of a program take longer, and are few.
const SLOWEST: Duration = Duration::from_micros(50);

/// How many who want lines want all of them.
static STRICT: AtomicUsize = AtomicUsize::new(0);

/// Whether noting pauses.
static PAUSES: AtomicBool = AtomicBool::new(false);

/// About how many nanoseconds went to lines since [`BEGAN`].
static SPENT: AtomicU64 = AtomicU64::new(0);

/// When lines were first wanted, in nanoseconds after [`ZERO`].
static BEGAN: AtomicU64 = AtomicU64::new(0);

static ZERO: LazyLock<Instant> = LazyLock::new(Instant::now);

thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(0) };
}

fn nanoseconds(now: Instant) -> u64 {
    now.saturating_duration_since(*ZERO).as_nanos() as u64
}

/// Begins to count anew.
pub(super) fn begin() {
    BEGAN.store(nanoseconds(Instant::now()), Ordering::Relaxed);
    SPENT.store(0, Ordering::Relaxed);
    PAUSES.store(false, Ordering::Relaxed);
}

/// Notes that somebody wants every line, or no longer does: what these cost is not counted.
pub(super) fn want_all(wanted: bool) {
    match wanted {
        true => STRICT.fetch_add(1, Ordering::Relaxed),
        false => STRICT.fetch_sub(1, Ordering::Relaxed),
    };
    begin();
}

/// Whether noting pauses.
pub(super) fn pauses() -> bool {
    PAUSES.load(Ordering::Relaxed) && STRICT.load(Ordering::Relaxed) == 0
}

/// Looks for a line, and counts what that takes.
pub(super) fn counted(line: impl FnOnce() -> Option<Arc<str>>) -> Option<Arc<str>> {
    let count = COUNT.get().wrapping_add(1);
    COUNT.set(count);
    if !count.is_multiple_of(EACH) {
        return line();
    }
    let start = Instant::now();
    let found = line();
    let took = start.elapsed().min(SLOWEST).as_nanos() as u64;
    SPENT.fetch_add(took * u64::from(EACH), Ordering::Relaxed);
    found
}

/// An evaluation is over: says whether what is recorded from now on has lines.
pub(super) fn settle(now: Instant) {
    if STRICT.load(Ordering::Relaxed) > 0 {
        return;
    }
    let passed = nanoseconds(now).saturating_sub(BEGAN.load(Ordering::Relaxed)) as f64;
    let spent = SPENT.load(Ordering::Relaxed) as f64;
    PAUSES.store(spent > FREE + SHARE * passed, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noting_pauses_while_it_took_more_than_its_share() {
        begin();
        let began = Instant::now();
        let after = |ms: u64| settle(began + Duration::from_millis(ms));
        SPENT.store(1_500_000, Ordering::Relaxed);
        after(1);
        assert!(!pauses(), "a very short profile has all lines");
        SPENT.store(10_000_000, Ordering::Relaxed);
        after(100);
        assert!(pauses());
        after(3100);
        assert!(!pauses());
        after(100);
        want_all(true);
        assert!(!pauses());
        after(100);
        assert!(!pauses(), "somebody wants all of them");
        want_all(false);
        begin();
        let slow = || {
            std::thread::sleep(Duration::from_millis(1));
            None
        };
        (0..EACH).for_each(|_| drop(counted(slow)));
        assert_eq!(SPENT.load(Ordering::Relaxed), 50_000 * u64::from(EACH));
        begin();
    }
}
