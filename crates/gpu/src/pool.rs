//! Blocks of a device's memory that are kept for reuse by their size.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cupola_core::backend::MemoryStats;

/// The sizes in which a device's memory is allocated.
#[derive(Clone, Copy)]
pub(crate) struct Classes {
    /// The smallest, which divides all others.
    pub least: usize,
    /// The most bytes between neighbouring sizes.
    pub step: usize,
}

impl Classes {
    /// The size that is really allocated for `bytes`: a multiple of an eighth of the power of two
    /// below, so that at most a ninth is lost and sizes meet again.
    pub fn of(self, bytes: usize) -> usize {
        let bytes = bytes.clamp(self.least, 1 << 62);
        let step = (bytes.next_power_of_two() / 16).clamp(self.least, self.step);
        bytes.div_ceil(step) * step
    }
}

/// Freed blocks, in the order in which they are to be used again, and counts. Blocks of one shelf are not
/// taken for another.
pub(crate) struct Pool<K, B> {
    state: Mutex<State<K, B>>,
}

struct State<K, B> {
    /// By class and shelf.
    free: BTreeMap<(usize, usize), BTreeMap<K, B>>,
    stats: MemoryStats,
    /// The bound that was set on what is kept.
    limit: Option<usize>,
}

impl<K, B> Default for Pool<K, B> {
    fn default() -> Self {
        let state = State { free: BTreeMap::new(), stats: MemoryStats::default(), limit: None };
        Pool { state: Mutex::new(state) }
    }
}

impl<K, B> State<K, B> {
    /// Whether more is kept than may be: as much as was ever in use at once, or what was set.
    fn keeps_too_much(&self) -> bool {
        let bound = self.stats.peak.max(64 << 20);
        self.stats.active + self.stats.cached > bound
            || self.limit.is_some_and(|limit| self.stats.cached > limit)
    }

    fn activate(&mut self, class: usize) {
        self.stats.active += class;
        self.stats.peak = self.stats.peak.max(self.stats.active);
    }
}

impl<K: Ord, B> Pool<K, B> {
    fn lock(&self) -> MutexGuard<'_, State<K, B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first of the freed blocks of a class on a shelf, if there is one.
    pub fn take(&self, class: usize, shelf: usize) -> Option<(K, B)> {
        let mut state = self.lock();
        let found = state.free.get_mut(&(class, shelf))?.pop_first()?;
        state.stats.cached -= class;
        state.activate(class);
        Some(found)
    }

    /// Counts a new block.
    pub fn add(&self, class: usize) {
        self.lock().activate(class);
    }

    /// Keeps a block on a shelf; gives those that go back to the driver, so that no more is held than
    /// ever was in use at once.
    pub fn give(&self, class: usize, shelf: usize, key: K, block: B) -> Vec<(K, B)> {
        let mut state = self.lock();
        state.stats.active -= class;
        state.stats.cached += class;
        state.free.entry((class, shelf)).or_default().insert(key, block);
        let mut out = Vec::new();
        while state.keeps_too_much() {
            let Some(mut largest) = state.free.last_entry() else { break };
            let (size, _) = *largest.key();
            let dropped = largest.get_mut().pop_last();
            if largest.get().is_empty() {
                largest.remove();
            }
            if let Some(block) = dropped {
                state.stats.cached -= size;
                out.push(block);
            }
        }
        out
    }

    /// Counts the most memory in use anew, from so much at least.
    pub fn set_peak(&self, to: usize) {
        let mut state = self.lock();
        state.stats.peak = state.stats.active.max(to);
    }

    /// Bounds what is kept, from the next block on that comes back.
    pub fn set_limit(&self, bytes: Option<usize>) {
        self.lock().limit = bytes;
    }

    /// How much is in use and kept.
    pub fn stats(&self) -> MemoryStats {
        self.lock().stats
    }

    /// All that is kept, which is kept no more.
    pub fn drain(&self) -> Vec<(K, B)> {
        let mut state = self.lock();
        state.stats.cached = 0;
        std::mem::take(&mut state.free).into_values().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Classes, Pool};

    #[test]
    fn classes_lose_little_and_are_stable() {
        for classes in
            [Classes { least: 512, step: 2 << 20 }, Classes { least: 256, step: usize::MAX }]
        {
            for bytes in [0, 1, 511, 513, 5000, 1 << 20, (1 << 20) + 1, (3 << 30) + 7] {
                let size = classes.of(bytes);
                let least = classes.least;
                assert!(size >= bytes && size <= bytes.max(least) + (bytes / 8).max(least));
                assert_eq!(classes.of(size), size);
            }
        }
    }

    #[test]
    fn what_is_freed_is_found_again_and_the_rest_is_bounded() {
        let pool = Pool::default();
        let large = 256 << 20;
        assert_eq!(pool.take(large, 0), None);
        pool.add(large);
        assert!(pool.give(large, 0, 1, ()).is_empty());
        assert_eq!(pool.take(large, 1), None);
        assert_eq!(pool.take(large, 0), Some((1, ())));
        assert!(pool.give(large, 0, 1, ()).is_empty());
        // The peak is one large block, so a second one cannot be kept beside it.
        pool.add(1024);
        assert_eq!(pool.give(1024, 1, 2, ()), [(1, ())]);
        assert_eq!((pool.stats().active, pool.stats().cached), (0, 1024));
        assert_eq!(pool.drain(), [(2, ())]);
    }

    #[test]
    fn the_same_work_finds_the_same_memory() {
        let pool = Pool::default();
        (0..3).for_each(|_| pool.add(512));
        let give = |block| assert!(pool.give(512, 0, block, ()).is_empty());
        [20, 10, 30].into_iter().for_each(give);
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let taken: Vec<_> = (0..3).filter_map(|_| pool.take(512, 0)).map(|b| b.0).collect();
            assert_eq!(taken, [10, 20, 30]);
            order.into_iter().for_each(|i| give(taken[i]));
        }
    }
}
