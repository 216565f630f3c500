//! The memory that plans hold.

use std::sync::atomic::{AtomicUsize, Ordering};

static TOTAL: AtomicUsize = AtomicUsize::new(0);

/// Bytes that are counted as long as it is there.
pub(super) struct Held(usize);

impl Held {
    pub fn new(bytes: usize) -> Held {
        TOTAL.fetch_add(bytes, Ordering::Relaxed);
        Held(bytes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        TOTAL.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// The bytes that are held now.
pub(super) fn total() -> usize {
    TOTAL.load(Ordering::Relaxed)
}
