//! Work sharing: `parallel_for` over numbered chunks on a private rayon pool.
//!
//! A kernel cuts its work by problem size only and combines partial results in chunk order, so
//! what it computes does not depend on how many threads take part.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use cupola_core::fork;
use rayon::{ThreadPool, ThreadPoolBuilder};

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
/// The caller takes part, and returns when every chunk is done. It never waits for a helper that
/// has not started, so a sleepy helper costs nothing. A call from inside a chunk runs inline. A
/// panic in a chunk is raised again here.
pub fn parallel_for(chunks: usize, f: impl Fn(usize) + Sync) {
    let threads = num_threads().min(chunks);
    if threads <= 1 || IN_CHUNK.get() {
        for chunk in 0..chunks {
            f(chunk);
        }
        return;
    }
    let Some(pool) = pool() else {
        (0..chunks).for_each(f);
        return;
    };
    let body: &(dyn Fn(usize) + Sync) = &f;
    // SAFETY: only the lifetime is changed. Helpers call `body` between `enter` and `leave`;
    // `close` below makes every later `enter` fail and waits until those inside have left.
    let body = unsafe {
        std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(body)
    };
    let job = Arc::new(Job {
        body,
        chunks,
        next: AtomicUsize::new(0),
        gate: AtomicUsize::new(0),
        panic: Mutex::new(None),
    });
    for _ in 1..threads {
        let job = Arc::clone(&job);
        pool.spawn(move || {
            let _joined = fork::joined();
            if job.enter() {
                job.work();
                job.leave();
            }
        });
    }
    job.work();
    job.close();
    let panic = job.panic.lock().map(|mut p| p.take());
    if let Ok(Some(payload)) = panic {
        resume_unwind(payload);
    }
}

struct Job {
    body: &'static (dyn Fn(usize) + Sync),
    chunks: usize,
    next: AtomicUsize,
    /// Helpers inside, and `CLOSED` once the caller has finished.
    gate: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

const CLOSED: usize = 1 << (usize::BITS - 1);

impl Job {
    fn enter(&self) -> bool {
        if self.gate.fetch_add(1, Ordering::Acquire) & CLOSED == 0 {
            return true;
        }
        self.leave();
        false
    }

    fn leave(&self) {
        self.gate.fetch_sub(1, Ordering::Release);
    }

    fn close(&self) {
        self.gate.fetch_or(CLOSED, Ordering::AcqRel);
        let mut spins = 0u32;
        while self.gate.load(Ordering::Acquire) != CLOSED {
            spins += 1;
            if spins < 2000 {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn work(&self) {
        IN_CHUNK.set(true);
        let result = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let chunk = self.next.fetch_add(1, Ordering::Relaxed);
                if chunk >= self.chunks {
                    break;
                }
                (self.body)(chunk);
            }
        }));
        IN_CHUNK.set(false);
        if let Err(payload) = result {
            self.next.store(self.chunks, Ordering::Relaxed);
            if let Ok(mut slot) = self.panic.lock() {
                slot.get_or_insert(payload);
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

/// The helpers: one thread fewer than `num_threads`, since the caller works too. `None` where no
/// thread can be started; work then runs inline.
fn pool() -> Option<&'static ThreadPool> {
    static FIRST: OnceLock<Option<ThreadPool>> = OnceLock::new();
    if fork::generation() == 0 {
        return FIRST.get_or_init(helpers).as_ref();
    }
    // A process that was forked has none of its parent's threads, and makes its own. The parent's
    // pool stays as it is: whoever dropped it would wait for them.
    static LATER: Mutex<Option<(u32, Option<&'static ThreadPool>)>> = Mutex::new(None);
    let mut later = fork::lock(&LATER);
    let known = later.filter(|(generation, _)| *generation == fork::generation());
    let make = || (fork::generation(), helpers().map(|pool| &*Box::leak(Box::new(pool))));
    let (_, pool) = *later.insert(known.unwrap_or_else(make));
    pool
}

fn helpers() -> Option<ThreadPool> {
    ThreadPoolBuilder::new()
        .num_threads(pool_threads() - 1)
        .thread_name(|i| format!("cupola-{i}"))
        .build()
        .ok()
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
