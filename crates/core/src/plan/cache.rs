//! The bounded cache of plans.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use smallvec::SmallVec;

use super::Plan;
use super::held::{self, Held};
use crate::fork::lock;
use crate::prim::call::as_one;
use crate::prim::key::{Key, Mixer};

/// The bytes that are kept unless [`set_limit`] says otherwise.
const LIMIT: usize = 64 << 20;

/// How the plan cache did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    /// Evaluations that found their plan.
    pub hits: u64,
    /// Evaluations that had to plan.
    pub misses: u64,
    /// Those of them for which a plan of the same structure was made fit for other sizes.
    pub resized: u64,
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
    /// Without those of the plan, and of the bodies in the key.
    bytes: usize,
    used: u64,
}

/// The plans of one structure.
struct Family {
    /// The last one that was not made from another.
    plan: Weak<Plan>,
    /// How many others were made anew since then, or since one was made from it.
    misfits: u32,
}

/// Of a structure that comes with two sizes only no template is made, nor any more of one for which some did not fit.
const TEMPLATES: std::ops::Range<u32> = 1..5;
/// But for one of that many.
const AGAIN: u32 = 16;

struct Cache {
    /// By what [`Key::bucket`] gives.
    entries: HashMap<u64, SmallVec<[Entry; 1]>>,
    /// The bucket of each entry by when it was used last.
    order: BTreeMap<u64, u64>,
    /// By their structure.
    families: HashMap<u64, Family>,
    /// How often keys have the body of a call, by where that is.
    bodies: HashMap<usize, usize, BuildHasherDefault<Mixer>>,
    /// Without what is counted as held.
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
            families: HashMap::new(),
            bodies: HashMap::default(),
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
    CacheStats { bytes: stats.bytes + held::total(), ..stats }
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
    cache.families.clear();
    cache.bodies.clear();
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
    let known = cache.entries.get(&bucket);
    if known.is_some_and(|entries| entries.iter().any(|e| e.key == *key)) {
        return;
    }
    plan.held.get_or_init(|| Held::new(plan.bytes()));
    let bytes = ENTRY + key.memory();
    for body in key.bodies() {
        let count = cache.bodies.entry(Arc::as_ptr(body).addr()).or_insert(0);
        if *count == 0 {
            cache.stats.bytes += body.memory();
        }
        *count += 1;
    }
    cache.clock += 1;
    cache.order.insert(cache.clock, bucket);
    let entry = Entry { key: key.clone(), plan: plan.clone(), bytes, used: cache.clock };
    cache.entries.entry(bucket).or_default().push(entry);
    cache.stats.plans += 1;
    cache.stats.bytes += bytes;
    cache.note_kin(&plan);
    drop(guard);
    shrink();
}

/// The last plan of a structure that was not made from another, and whether the next such one is to have a template.
pub(super) fn kin(structure: u64) -> Option<(Arc<Plan>, bool)> {
    let guard = lock(cache());
    let Family { plan, misfits } = guard.families.get(&structure)?;
    let wants_template = TEMPLATES.contains(misfits) || misfits % AGAIN == AGAIN - 1;
    Some((plan.upgrade()?, wants_template))
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
    /// Notes whom other plans of its structure may be made from.
    fn note_kin(&mut self, plan: &Arc<Plan>) {
        if plan.from.is_some() {
            self.stats.resized += 1;
        }
        if self.families.len() > 2 * self.stats.plans + 64 {
            self.families.retain(|_, family| family.plan.strong_count() > 0);
        }
        let new = Family { plan: Weak::new(), misfits: 0 };
        let family = self.families.entry(plan.structure).or_insert(new);
        if plan.from.is_some() {
            family.misfits = TEMPLATES.start;
            return;
        }
        family.misfits = match family.plan.strong_count() {
            0 => 0,
            _ => family.misfits.saturating_add(1),
        };
        family.plan = Arc::downgrade(plan);
    }

    /// The least recently used plan, where what is kept is beyond the limit and it is not the last.
    fn evict(&mut self) -> Option<Entry> {
        if self.stats.bytes + held::total() <= self.limit || self.stats.plans < 2 {
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
        for body in evicted.key.bodies() {
            let at = Arc::as_ptr(body).addr();
            match self.bodies.get_mut(&at) {
                Some(count) if *count > 1 => *count -= 1,
                Some(_) => {
                    self.bodies.remove(&at);
                    self.stats.bytes -= body.memory();
                }
                None => {}
            }
        }
        self.stats.evictions += 1;
        Some(evicted)
    }
}
