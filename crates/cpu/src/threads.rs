//! Work sharing: `parallel_for` over numbered chunks on threads of its own.
//!
//! A kernel cuts its work by problem size only and combines partial results in chunk order, so
//! what it computes does not depend on how many threads take part.

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cupola_core::fork;
use smallvec::SmallVec;

thread_local! {
    static OVERRIDE: Cell<usize> = const { Cell::new(usize::MAX) };
    static IN_CHUNK: Cell<bool> = const { Cell::new(false) };
}

/// The threads a `parallel_for` on this thread may use, the caller included.
pub fn num_threads() -> usize {
    pool_threads().min(OVERRIDE.get())
}

/// Runs `f` with `parallel_for` on this thread limited to `n` threads.
pub fn with_threads<R>(n: usize, f: impl FnOnce() -> R) -> R {
    struct Restore(usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            OVERRIDE.set(self.0);
        }
    }
    let _restore = Restore(OVERRIDE.replace(n.max(1)));
    f()
}

/// Calls `f(0)`, …, `f(chunks - 1)`, in any order, on up to `num_threads()` threads.
///
/// Each thread begins with a share of neighbouring chunks, the same one in every call of as many where all threads take
/// part, so that it finds in its cache what it wrote in the kernel before; then it takes over chunks of others. The
/// caller takes part, and returns when every chunk is done. It never waits for a helper that has not started, so a sleepy helper costs
/// nothing. A call from inside a chunk runs inline. A panic in a chunk is raised again here.
pub fn parallel_for(chunks: usize, f: impl Fn(usize) + Sync) {
    let threads = num_threads().min(chunks);
    if threads <= 1 || IN_CHUNK.get() {
        for chunk in 0..chunks {
            f(chunk);
        }
        return;
    }
    for first in (0..chunks).step_by(Share::MOST) {
        let count = Share::MOST.min(chunks - first);
        share_out(count, threads, &|chunk| f(first + chunk));
    }
}

/// The part of this number of `0..n`, which is cut into `parts` that differ by one at most.
pub fn even_part(n: usize, parts: usize, part: usize) -> Range<usize> {
    n * part / parts..n * (part + 1) / parts
}

/// Into how many parts to cut each of `many` equal pieces of work with `units` units, about `parts`, so that the thread that
/// has most of them is done first; a part takes `each` units' time more than its units do. Sums of several parts must
/// not depend on it.
pub fn balanced(parts: usize, units: usize, many: usize, each: f64) -> usize {
    let threads = num_threads();
    let longest = |parts: usize| {
        (many * parts).div_ceil(threads) as f64 * (units as f64 / parts as f64 + each)
    };
    let (fewest, most) = ((3 * parts).div_ceil(4).max(1), (2 * parts + threads).min(units));
    (fewest..=most.max(fewest)).min_by(|&a, &b| longest(a).total_cmp(&longest(b))).unwrap_or(parts)
}

/// Runs the chunks of a `parallel_for`, at most [`Share::MOST`].
fn share_out(chunks: usize, threads: usize, body: &(dyn Fn(usize) + Sync)) {
    let Some(helpers) = helpers() else {
        (0..chunks).for_each(body);
        return;
    };
    let job = Job { body, shares: Share::all(chunks, threads), panic: Mutex::new(None) };
    helpers.with_help(&job, threads - 1, || job.work(0));
    let panic = job.panic.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
}

/// What a `parallel_for` has to do, on its caller's stack.
struct Job<'a> {
    body: &'a (dyn Fn(usize) + Sync),
    /// The chunks that are left, one share for each thread: the caller's first, then those of helpers.
    shares: SmallVec<[Share; 4]>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// Chunks that one thread takes from the front, and others from the back. It has a cache line of its own.
#[repr(align(64))]
struct Share(AtomicUsize);

impl Share {
    /// Bits of the end; those above are the start.
    const BITS: u32 = usize::BITS / 2;
    /// The most chunks.
    const MOST: usize = (1 << Self::BITS) - 1;

    /// `chunks` chunks in as many shares as there are threads.
    fn all(chunks: usize, threads: usize) -> SmallVec<[Share; 4]> {
        let start = |thread: usize| chunks / threads * thread + (chunks % threads).min(thread);
        let share = |thread| Share::of(start(thread), start(thread + 1));
        (0..threads).map(share).collect()
    }

    fn of(start: usize, end: usize) -> Share {
        Share(AtomicUsize::new(start << Self::BITS | end))
    }

    /// The first and the end of the chunks that are left.
    fn left(word: usize) -> (usize, usize) {
        (word >> Self::BITS, word & Self::MOST)
    }

    fn count(&self) -> usize {
        let (start, end) = Self::left(self.0.load(Ordering::Relaxed));
        end - start
    }

    /// Takes a chunk, if one is left.
    fn take(&self, from_front: bool) -> Option<usize> {
        let rest = |word| match Self::left(word) {
            (start, end) if start == end => None,
            (start, end) if from_front => Some((start + 1) << Self::BITS | end),
            (start, end) => Some(start << Self::BITS | (end - 1)),
        };
        let word = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).ok()?;
        let (start, end) = Self::left(word);
        Some(if from_front { start } else { end - 1 })
    }

    fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Job<'_> {
    /// A chunk of the thread that has most left.
    fn take_over(&self) -> Option<usize> {
        loop {
            let most = self.shares.iter().max_by_key(|share| share.count())?;
            if most.count() == 0 {
                return None;
            }
            if let Some(chunk) = most.take(false) {
                return Some(chunk);
            }
        }
    }

    /// Takes part as a thread of this number.
    fn work(&self, thread: usize) {
        IN_CHUNK.set(true);
        let own = &self.shares[thread % self.shares.len()];
        let result = catch_unwind(AssertUnwindSafe(|| {
            while let Some(chunk) = own.take(true).or_else(|| self.take_over()) {
                (self.body)(chunk);
            }
        }));
        IN_CHUNK.set(false);
        if let Err(payload) = result {
            self.shares.iter().for_each(Share::clear);
            if let Ok(mut slot) = self.panic.lock() {
                match *slot {
                    None => *slot = Some(payload),
                    // To drop it could panic again.
                    Some(_) => std::mem::forget(payload),
                }
            }
        }
    }
}

fn pool_threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| {
        let asked = std::env::var("CUPOLA_NUM_THREADS").ok();
        let asked = asked.and_then(|v| v.parse::<usize>().ok());
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        asked.filter(|&n| n > 0).unwrap_or_else(available)
    })
}

/// For so long a helper without work looks for more before it sleeps: longer than what lies between
/// the steps of a plan, since to be woken takes longer than many a step.
const AWAKE: Duration = Duration::from_micros(200);

/// And for so long it keeps its core: about what lies between two steps. Given away to a thread that has much to do, a core
/// comes back after milliseconds.
const BUSY: Duration = Duration::from_micros(50);

/// How often it looks for work until it looks at the clock.
const ROUNDS: usize = 16;

/// How many callers have help at the same time.
const DESKS: usize = 8;

/// Where a caller offers its job. It has cache lines of its own: that of its gate is all that goes from the caller to a
/// helper before it begins.
#[repr(align(128))]
struct Desk {
    /// Helpers at work, and [`Desk::PLACE`] for each place that is free.
    gate: AtomicUsize,
    job: AtomicPtr<Job<'static>>,
    is_taken: AtomicBool,
}

impl Desk {
    const PLACE: usize = 1 << (usize::BITS / 2);

    const fn new() -> Desk {
        let job = AtomicPtr::new(std::ptr::null_mut());
        Desk { gate: AtomicUsize::new(0), job, is_taken: AtomicBool::new(false) }
    }

    /// How many places are free.
    fn places(&self) -> usize {
        self.gate.load(Ordering::SeqCst) / Desk::PLACE
    }

    /// Takes a place, if one is free: from then on the job stays where it is until [`Desk::leave`].
    fn enter(&self) -> bool {
        let rest = |gate| (gate >= Desk::PLACE).then(|| gate - Desk::PLACE + 1);
        self.gate.fetch_update(Ordering::Acquire, Ordering::Relaxed, rest).is_ok()
    }

    fn leave(&self) {
        self.gate.fetch_sub(1, Ordering::Release);
    }

    /// Takes back the places that nobody has taken, and waits for who is at work.
    fn close(&self) {
        self.gate.fetch_and(Desk::PLACE - 1, Ordering::Relaxed);
        let mut spins = 0u32;
        while self.gate.load(Ordering::Acquire) != 0 {
            spins += 1;
            if spins < 2000 {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        self.is_taken.store(false, Ordering::Release);
    }
}

/// Threads that take part in other threads' jobs.
struct Helpers {
    desks: [Desk; DESKS],
    /// Helpers that look for work, and those that sleep or are about to.
    looking: AtomicUsize,
    asleep: AtomicUsize,
    /// Is held by a helper from its last look at the desks until it sleeps.
    bed: Mutex<()>,
    wake: Condvar,
}

impl Helpers {
    /// Starts `count` helpers, or as many as can be; `None` where that is none.
    fn start(count: usize) -> Option<&'static Helpers> {
        let helpers: &'static Helpers = Box::leak(Box::new(Helpers {
            desks: [const { Desk::new() }; DESKS],
            looking: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            bed: Mutex::new(()),
            wake: Condvar::new(),
        }));
        let start = |i: &usize| {
            let (thread, number) = (std::thread::Builder::new(), i + 1);
            thread.name(format!("cupola-{i}")).spawn(move || helpers.help(number)).is_ok()
        };
        let started = (0..count).take_while(start).count();
        (started > 0).then_some(helpers)
    }

    /// Offers `places` in a job while the caller does its own part of it, which does not unwind. Where all desks are
    /// taken it is alone.
    fn with_help(&self, job: &Job<'_>, places: usize, own: impl FnOnce()) {
        let is_free = |desk: &&Desk| {
            !desk.is_taken.load(Ordering::Relaxed) && !desk.is_taken.swap(true, Ordering::Acquire)
        };
        let Some(desk) = self.desks.iter().find(is_free) else { return own() };
        desk.job.store(std::ptr::from_ref(job).cast_mut().cast(), Ordering::Relaxed);
        desk.gate.store(places * Desk::PLACE, Ordering::SeqCst);
        self.wake(places);
        own();
        desk.close();
    }

    /// Wakes at most `places` helpers: those who are needed beside who looks for work.
    fn wake(&self, places: usize) {
        // A helper that is counted after this was read looks at the desks once more before it sleeps.
        let asleep = self.asleep.load(Ordering::SeqCst);
        if asleep == 0 {
            return;
        }
        let all: usize = self.desks.iter().map(Desk::places).sum();
        let needed = all.saturating_sub(self.looking.load(Ordering::SeqCst));
        let sleepers = needed.min(places).min(asleep);
        if sleepers > 0 {
            // A helper that holds it does not sleep yet, and would not be woken.
            drop(self.bed());
            (0..sleepers).for_each(|_| self.wake.notify_one());
        }
    }

    fn bed(&self) -> MutexGuard<'_, ()> {
        self.bed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the helper of this number does as long as the process lives; 0 is who calls.
    fn help(&self, number: usize) {
        loop {
            let desk = self.next_desk();
            let _joined = fork::joined();
            // SAFETY: this thread has entered, and whoever offered the job waits until it leaves.
            let job = unsafe { &*desk.job.load(Ordering::Relaxed) };
            job.work(number);
            desk.leave();
        }
    }

    /// Enters where a place is free.
    fn enter(&self) -> Option<&Desk> {
        self.desks.iter().find(|desk| desk.places() > 0 && desk.enter())
    }

    fn next_desk(&self) -> &Desk {
        loop {
            if let Some(desk) = self.look() {
                return desk;
            }
            let bed = self.bed();
            self.asleep.fetch_add(1, Ordering::SeqCst);
            let found = self.enter();
            if found.is_none() {
                drop(self.wake.wait(bed).unwrap_or_else(PoisonError::into_inner));
            }
            self.asleep.fetch_sub(1, Ordering::SeqCst);
            if let Some(desk) = found {
                return desk;
            }
        }
    }

    /// A job that comes before it is time to sleep. After a while whoever else wants the core has it.
    fn look(&self) -> Option<&Desk> {
        self.looking.fetch_add(1, Ordering::SeqCst);
        let start = Instant::now();
        loop {
            for _ in 0..ROUNDS {
                if self.desks.iter().any(|desk| desk.places() > 0) {
                    // Before it has a place, so that nobody counts it for another one.
                    self.looking.fetch_sub(1, Ordering::SeqCst);
                    if let Some(desk) = self.enter() {
                        return Some(desk);
                    }
                    self.looking.fetch_add(1, Ordering::SeqCst);
                }
                std::hint::spin_loop();
            }
            let looked = start.elapsed();
            if looked >= AWAKE {
                self.looking.fetch_sub(1, Ordering::SeqCst);
                return None;
            }
            if looked >= BUSY {
                std::thread::yield_now();
            }
        }
    }
}

/// The helpers: one thread fewer than `num_threads`, since the caller works too. `None` where no
/// thread can be started; work then runs inline.
fn helpers() -> Option<&'static Helpers> {
    static FIRST: OnceLock<Option<&'static Helpers>> = OnceLock::new();
    let start = || Helpers::start(pool_threads() - 1);
    if fork::generation() == 0 {
        return *FIRST.get_or_init(start);
    }
    // A process that was forked has none of its parent's threads, and starts its own.
    static LATER: Mutex<Option<(u32, Option<&'static Helpers>)>> = Mutex::new(None);
    let mut later = fork::lock(&LATER);
    let known = later.filter(|(generation, _)| *generation == fork::generation());
    later.insert(known.unwrap_or_else(|| (fork::generation(), start()))).1
}

/// Has evaluation told before and after this process forks.
#[cfg(unix)]
pub fn watch_forks() {
    extern "C" fn before() {
        fork::before();
    }
    extern "C" fn in_parent() {
        fork::after_in_parent();
    }
    extern "C" fn in_child() {
        fork::after_in_child();
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the functions live as long as the process, and do not unwind: they take a lock whose
    // poison is ignored, and count.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    });
}

/// Processes do not fork here.
#[cfg(not(unix))]
pub fn watch_forks() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_runs_once() {
        for chunks in [0, 1, 2, 7, 1000] {
            let counts: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
            parallel_for(chunks, |i| {
                counts[i].fetch_add(1, Ordering::Relaxed);
                parallel_for(2, |_| {});
            });
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
        }
    }

    /// Two chunks that wait for each other need two threads, also where the helper fell asleep before.
    #[test]
    fn helpers_come_whether_they_look_for_work_or_sleep() {
        if num_threads() == 1 {
            return; // There are none.
        }
        for pause in [Duration::ZERO, AWAKE * 10, Duration::ZERO] {
            std::thread::sleep(pause);
            let arrived = AtomicUsize::new(0);
            parallel_for(2, |_| {
                arrived.fetch_add(1, Ordering::SeqCst);
                let start = Instant::now();
                while arrived.load(Ordering::SeqCst) < 2 {
                    assert!(start.elapsed() < Duration::from_secs(30), "no helper came");
                    std::thread::yield_now();
                }
            });
        }
    }

    #[test]
    fn parts_are_even_and_as_many_as_threads_share() {
        for (n, parts) in [(0, 1), (7, 3), (14, 4), (5, 5), (3, 7)] {
            let cut: Vec<_> = (0..parts).map(|i| even_part(n, parts, i)).collect();
            assert!(cut.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((cut[0].start, cut[parts - 1].end), (0, n));
            assert!(cut.iter().all(|c| c.len() == n / parts || c.len() == n.div_ceil(parts)));
        }
        let by = |threads, parts, units, many| {
            with_threads(threads, || balanced(parts, units, many, 0.01))
        };
        assert_eq!(by(1, 5, 14, 1), 4);
        if num_threads() > 1 {
            assert_eq!(by(2, 5, 14, 1), 4);
            assert_eq!(by(2, 3, 14, 7), 4);
            assert_eq!(by(2, 1, 1, 3), 1);
        }
    }

    #[test]
    fn a_share_is_taken_from_both_ends() {
        let shares = Share::all(7, 3);
        let all: Vec<_> =
            shares.iter().map(|share| Share::left(share.0.load(Ordering::Relaxed))).collect();
        assert_eq!(all, [(0, 3), (3, 5), (5, 7)]);
        let taken = [true, false, true, true].map(|from_front| shares[0].take(from_front));
        assert_eq!(taken, [Some(0), Some(2), Some(1), None]);
        assert_eq!((shares[0].count(), shares[1].count()), (0, 2));
        shares[1].clear();
        assert_eq!(shares[1].take(true), None);
    }

    #[test]
    fn many_callers_share_the_helpers() {
        let total = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for chunks in 0..200 {
                        parallel_for(chunks % 7, |_| {
                            total.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        let each: usize = (0..200).map(|chunks| chunks % 7).sum();
        assert_eq!(total.load(Ordering::Relaxed), 8 * each);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let caught = catch_unwind(|| parallel_for(64, |i| assert!(i != 40, "chunk 40")));
        assert!(caught.is_err());
        parallel_for(8, |_| {});
    }

    #[test]
    fn the_override_is_scoped_and_capped() {
        let all = num_threads();
        assert_eq!(with_threads(1, num_threads), 1);
        assert_eq!(with_threads(1 << 20, num_threads), all);
        assert_eq!(num_threads(), all);
    }
}
