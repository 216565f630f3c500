//! The bounded cache of plans.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock};

use smallvec::SmallVec;

use super::{Plan, prepared};
use crate::fork::lock;
use crate::prim::call::as_one;
use crate::prim::key::Key;

/// The bytes that are kept unless [`set_limit`] says otherwise.
const LIMIT: usize = 64 << 20;

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
    /// About the bytes that they hold, with their keys and what they run.
    pub bytes: usize,
}

struct Entry {
    key: Key,
    plan: Arc<Plan>,
    bytes: usize,
    used: u64,
}

struct Cache {
    /// By what [`Key::bucket`] gives.
    entries: HashMap<u64, SmallVec<[Entry; 1]>>,
    /// The bucket of each entry by when it was used last.
    order: BTreeMap<u64, u64>,
    /// Without what plans share.
    stats: CacheStats,
    limit: usize,
    clock: u64,
}

fn cache() -> &'static Mutex<Cache> {
    static CACHE: OnceLock<Mutex<Cache>> = OnceLock::new();
    CACHE.get_or_init(|| {
        Mutex::new(Cache {
            entries: HashMap::new(),
            order: BTreeMap::new(),
            stats: CacheStats::default(),
            limit: LIMIT,
            clock: 0,
        })
    })
}

/// How the plan cache did so far.
///
/// # Example
/// ```
/// use cupola::{Array, plan::cache};
/// let x = Array::from_vec(vec![1.0f32, 2.0], [2])?;
/// (&x + &x).eval()?;
/// let before = cache::stats();
/// (&x + &x).eval()?;
/// assert_eq!(cache::stats().hits, before.hits + 1);
/// assert!(before.bytes > 0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn stats() -> CacheStats {
    let stats = lock(cache()).stats;
    CacheStats { bytes: stats.bytes + prepared::bytes(), ..stats }
}

/// Keeps about at most `bytes` bytes of plans from now on, 64 MiB by default; the least recently used
/// go first, and the last one stays. Gives the former bound.
///
/// # Example
/// ```
/// use cupola::plan::cache;
/// let former = cache::set_limit(16 << 20);
/// assert_eq!(cache::set_limit(former), 16 << 20);
/// ```
pub fn set_limit(bytes: usize) -> usize {
    let former = std::mem::replace(&mut lock(cache()).limit, bytes);
    shrink();
    former
}

/// Forgets every plan.
pub fn clear() {
    let mut cache = lock(cache());
    let all = std::mem::take(&mut cache.entries);
    cache.order.clear();
    (cache.stats.plans, cache.stats.bytes) = (0, 0);
    drop(cache);
    drop(all);
    as_one::clear();
}

pub(super) fn find(key: &Key, bucket: u64) -> Option<Arc<Plan>> {
    let mut guard = lock(cache());
    let cache = &mut *guard;
    let entries = cache.entries.get_mut(&bucket);
    let found = entries.and_then(|entries| entries.iter_mut().find(|e| e.key == *key));
    match found {
        Some(entry) => {
            if entry.used != cache.clock {
                cache.clock += 1;
                cache.order.remove(&entry.used);
                cache.order.insert(cache.clock, bucket);
                entry.used = cache.clock;
            }
            cache.stats.hits += 1;
            Some(entry.plan.clone())
        }
        None => {
            cache.stats.misses += 1;
            None
        }
    }
}

pub(super) fn insert(key: &Key, bucket: u64, plan: Arc<Plan>) {
    let mut guard = lock(cache());
    let cache = &mut *guard;
    let entries = cache.entries.entry(bucket).or_default();
    if entries.iter().any(|e| e.key == *key) {
        return;
    }
    let bytes = ENTRY + key.memory() + plan.bytes();
    cache.clock += 1;
    cache.order.insert(cache.clock, bucket);
    entries.push(Entry { key: key.clone(), plan, bytes, used: cache.clock });
    cache.stats.plans += 1;
    cache.stats.bytes += bytes;
    drop(guard);
    shrink();
}

/// What an entry takes beside its key and its plan: places in two tables, about half full.
const ENTRY: usize = 2 * size_of::<(u64, SmallVec<[Entry; 1]>)>() + 4 * size_of::<u64>();

/// Drops plans until the rest is within the limit: without the lock, since a device may have to
/// finish with one first.
fn shrink() {
    loop {
        let evicted = lock(cache()).evict();
        if evicted.is_none() {
            return;
        }
    }
}

impl Cache {
    /// The least recently used plan, where what is kept is beyond the limit and it is not the last.
    fn evict(&mut self) -> Option<Entry> {
        if self.stats.bytes + prepared::bytes() <= self.limit || self.stats.plans < 2 {
            return None;
        }
        let (used, bucket) = self.order.pop_first()?;
        let entries = self.entries.get_mut(&bucket)?;
        let at = entries.iter().position(|e| e.used == used)?;
        let evicted = entries.swap_remove(at);
        if entries.is_empty() {
            self.entries.remove(&bucket);
        }
        self.stats.plans -= 1;
        self.stats.bytes -= evicted.bytes;
        self.stats.evictions += 1;
        Some(evicted)
    }
}
