//! Counts what is allocated: a file must not make its reader ask for memory without bound.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What any file may cost.
const BASE: usize = 256 << 20;
/// What a byte of it may cost: gzip makes 1032 bytes of one.
const FACTOR: usize = 4 * 1032;

#[global_allocator]
static COUNTED: Counted = Counted;
static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Counted;

impl Counted {
    fn count(size: usize) {
        let live = LIVE.fetch_add(size, Relaxed).saturating_add(size);
        if live > LIMIT.load(Relaxed) {
            // What follows must not stop here again.
            LIMIT.store(usize::MAX, Relaxed);
            eprintln!("too much memory: {} MiB, {size} bytes of them at once", live >> 20);
            eprintln!("{}", std::backtrace::Backtrace::force_capture());
            std::process::abort();
        }
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Ends the process where `work` on a file of `bytes` bytes takes more than it may.
pub fn limited(bytes: usize, work: impl FnOnce()) {
    let limit = LIVE.load(Relaxed).saturating_add(BASE).saturating_add(FACTOR * bytes);
    LIMIT.store(limit, Relaxed);
    work();
    LIMIT.store(usize::MAX, Relaxed);
}

/// Lets this case take so much more.
pub fn allow(bytes: usize) {
    LIMIT.fetch_add(bytes, Relaxed);
}
