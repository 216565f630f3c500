//! Memory for tiles that each thread keeps.

use std::cell::Cell;

/// A cache line; the unit of scratch memory.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    static KEPT: Cell<(Vec<Line>, Filled)> = const { Cell::new((Vec::new(), Filled { run: 0, rows: 0 })) };
}

/// What scratch memory holds from before: that which is the same for all tiles of a run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Filled {
    /// The run's number; 0 is none.
    pub run: u64,
    /// For tiles of so many rows.
    pub rows: usize,
}

/// Calls `f` with at least `bytes` bytes of this thread's memory, aligned to a cache line.
pub(crate) fn with_scratch<R>(bytes: usize, f: impl FnOnce(*mut u8) -> R) -> R {
    with_filled(bytes, Filled::default(), |scratch, _| f(scratch))
}

/// As [`with_scratch`], and says whether the memory holds what `filled` needs, as it does afterwards.
pub(crate) fn with_filled<R>(
    bytes: usize,
    filled: Filled,
    f: impl FnOnce(*mut u8, bool) -> R,
) -> R {
    // Taken out, so that a nested call finds none and makes its own.
    let (mut lines, before) = KEPT.take();
    let count = bytes.div_ceil(64);
    if lines.len() < count {
        lines.resize(count, Line([0; 64]));
    }
    let is_filled = filled.run != 0 && filled.run == before.run && filled.rows <= before.rows;
    let result = f(lines.as_mut_ptr().cast(), is_filled);
    KEPT.set((lines, if is_filled { before } else { filled }));
    result
}
