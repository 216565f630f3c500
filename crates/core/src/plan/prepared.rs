//! Segments that were prepared. Plans that run equal segments share one: those of the layers of a
//! network, and of graphs that differ in the sizes of some of their arrays.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use smallvec::SmallVec;

use crate::backend::{Backend, Executable, Kernel, Segment};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::fallback;
use crate::fork::lock;
use crate::prim::key::Mixer;

/// A segment with what runs it.
pub(super) struct Prepared {
    pub segment: Segment,
    pub executable: Arc<dyn Executable>,
    /// Whether it only copies: nothing is left to do where output and input share memory.
    pub is_copy: bool,
    device: Device,
    /// Its hash, where plans share it.
    shared: Option<u64>,
    bytes: usize,
}

type Shared = HashMap<u64, SmallVec<[Weak<Prepared>; 1]>, BuildHasherDefault<Mixer>>;

/// What plans share, by its hash.
static SHARED: Mutex<Shared> = Mutex::new(HashMap::with_hasher(BuildHasherDefault::new()));

/// The memory of all that is prepared.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// The memory of all that is prepared.
pub(super) fn bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}

/// `segment`, made ready by `backend`, or by the CPU where the device has no kernel for it.
pub(super) fn prepare(segment: Segment, backend: &dyn Backend) -> Result<Arc<Prepared>> {
    let device = backend.device();
    let mut mixer = Mixer::default();
    (&segment, device).hash(&mut mixer);
    let hash = mixer.finish();
    // Compared, and perhaps dropped, without the lock, which the last drop takes.
    let known: SmallVec<[Arc<Prepared>; 1]> = match lock(&SHARED).get(&hash) {
        Some(bucket) => bucket.iter().filter_map(Weak::upgrade).collect(),
        None => SmallVec::new(),
    };
    if let Some(known) = known.into_iter().find(|p| p.device == device && p.segment == segment) {
        return Ok(known);
    }
    // What the CPU takes over depends on a policy, which may change.
    let (executable, shared) = match backend.prepare(&segment) {
        Err(Error::Unsupported { device: name, reason }) => {
            (fallback::take_over(&segment, backend, name, reason)?, None)
        }
        prepared => (prepared?, Some(hash)),
    };
    let is_copy = matches!(&segment.kernel, Kernel::Map(body) if body.code.is_empty());
    let bytes = size_of::<Prepared>() + segment.bytes() + executable.bytes();
    BYTES.fetch_add(bytes, Ordering::Relaxed);
    let prepared = Arc::new(Prepared { segment, executable, is_copy, device, shared, bytes });
    if shared.is_some() {
        lock(&SHARED).entry(hash).or_default().push(Arc::downgrade(&prepared));
    }
    Ok(prepared)
}

impl Drop for Prepared {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
        let Some(hash) = self.shared else { return };
        let mut shared = lock(&SHARED);
        if let Some(bucket) = shared.get_mut(&hash) {
            bucket.retain(|entry| entry.strong_count() > 0);
            if bucket.is_empty() {
                shared.remove(&hash);
            }
        }
    }
}
