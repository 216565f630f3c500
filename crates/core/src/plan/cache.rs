//! The bounded cache of plans.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use super::Plan;
use crate::fork::lock;
use crate::prim::key::{Key, hash_words};

/// How many plans are kept unless [`set_capacity`] says otherwise.
const CAPACITY: usize = 512;

/// How the plan cache did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    /// Evaluations that found their plan.
    pub hits: u64,
    /// Evaluations that had to plan.
    pub misses: u64,
    /// Plans that made room for others.
    pub evictions: u64,
    /// Plans in the cache now.
    pub plans: usize,
}

struct Entry {
    key: Key,
    plan: Arc<Plan>,
    used: u64,
}

struct Cache {
    entries: HashMap<u64, Vec<Entry>>,
    stats: CacheStats,
    capacity: usize,
    clock: u64,
}

fn cache() -> &'static Mutex<Cache> {
    static CACHE: OnceLock<Mutex<Cache>> = OnceLock::new();
    CACHE.get_or_init(|| {
        Mutex::new(Cache {
            entries: HashMap::new(),
            stats: CacheStats::default(),
            capacity: CAPACITY,
            clock: 0,
        })
    })
}

/// How the plan cache did so far.
pub fn stats() -> CacheStats {
    lock(cache()).stats
}

/// Keeps at most `plans` plans from now on, at least one; the least recently used go first.
pub fn set_capacity(plans: usize) {
    let mut cache = lock(cache());
    cache.capacity = plans.max(1);
    let evicted = cache.shrink();
    drop(cache);
    drop(evicted);
}

/// Forgets every plan.
pub fn clear() {
    let mut cache = lock(cache());
    let all = std::mem::take(&mut cache.entries);
    cache.stats.plans = 0;
    drop(cache);
    drop(all);
}

pub(super) fn find(key: &Key) -> Option<Arc<Plan>> {
    let mut guard = lock(cache());
    let cache = &mut *guard;
    cache.clock += 1;
    let found = cache
        .entries
        .get_mut(&hash_words(&key.words))
        .and_then(|bucket| bucket.iter_mut().find(|e| e.key == *key));
    match found {
        Some(entry) => {
            entry.used = cache.clock;
            cache.stats.hits += 1;
            Some(entry.plan.clone())
        }
        None => {
            cache.stats.misses += 1;
            None
        }
    }
}

pub(super) fn insert(key: &Key, plan: Arc<Plan>) {
    let mut guard = lock(cache());
    let cache = &mut *guard;
    let bucket = cache.entries.entry(hash_words(&key.words)).or_default();
    if bucket.iter().any(|e| e.key == *key) {
        return;
    }
    bucket.push(Entry { key: key.clone(), plan, used: cache.clock });
    cache.stats.plans += 1;
    let evicted = cache.shrink();
    drop(guard);
    drop(evicted);
}

impl Cache {
    /// The plans that make room. They are dropped without the lock: a device may have to finish
    /// with one first.
    fn shrink(&mut self) -> Vec<Entry> {
        let mut evicted = Vec::new();
        while self.stats.plans > self.capacity {
            let oldest = self
                .entries
                .iter()
                .flat_map(|(&hash, bucket)| bucket.iter().map(move |e| (e.used, hash)))
                .min();
            let Some((used, hash)) = oldest else { break };
            if let Some(bucket) = self.entries.get_mut(&hash) {
                evicted.extend(bucket.extract_if(.., |e| e.used == used));
                if bucket.is_empty() {
                    self.entries.remove(&hash);
                }
            }
            self.stats.plans = self.entries.values().map(Vec::len).sum();
            self.stats.evictions += 1;
        }
        evicted
    }
}
