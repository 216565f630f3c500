//! Memory for tiles that each thread keeps.

use std::cell::Cell;

/// A cache line; the unit of scratch memory.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    static KEPT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Calls `f` with at least `bytes` bytes of this thread's memory, aligned to a cache line.
pub(crate) fn with_scratch<R>(bytes: usize, f: impl FnOnce(*mut u8) -> R) -> R {
    // Taken out, so that a nested call finds none and makes its own.
    let mut lines = KEPT.take();
    let count = bytes.div_ceil(64);
    if lines.len() < count {
        lines.resize(count, Line([0; 64]));
    }
    let result = f(lines.as_mut_ptr().cast());
    KEPT.set(lines);
    result
}
