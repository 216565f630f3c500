//! Segments that were prepared. Plans that run equal segments share one: those of the layers of a
//! network, and of graphs that differ in the sizes of some of their arrays.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, Mutex, Weak};

use smallvec::SmallVec;

use super::control;
use super::held::Held;
use crate::backend::{Backend, Executable, Kernel, Segment};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::fallback;
use crate::fork::lock;
use crate::prim::Control;
use crate::prim::key::Mixer;
use crate::profile::{self, What};

/// A segment with what runs it.
pub(super) struct Prepared {
    pub segment: Segment,
    pub executable: Arc<dyn Executable>,
    /// The same, where it is control flow.
    pub control: Option<Arc<control::Prepared>>,
    /// Whether it only copies: nothing is left to do where output and input share memory.
    pub is_copy: bool,
    is_taken_over: bool,
    device: Device,
    /// Its hash, where plans share it.
    shared: Option<u64>,
    _held: Held,
}

type Shared = HashMap<u64, SmallVec<[Weak<Prepared>; 1]>, BuildHasherDefault<Mixer>>;

/// What plans share, by its hash.
static SHARED: Mutex<Shared> = Mutex::new(HashMap::with_hasher(BuildHasherDefault::new()));

/// What plans share of a segment with this hash.
fn known(segment: &Segment, hash: u64, device: Device) -> Option<Arc<Prepared>> {
    // Compared, and perhaps dropped, without the lock, which the last drop takes.
    let known: SmallVec<[Arc<Prepared>; 1]> = match lock(&SHARED).get(&hash) {
        Some(bucket) => bucket.iter().filter_map(Weak::upgrade).collect(),
        None => SmallVec::new(),
    };
    known.into_iter().find(|p| p.device == device && p.segment == *segment)
}

/// The control flow that a segment is.
fn control_of(segment: &Segment) -> Option<&Arc<Control>> {
    match &segment.kernel {
        Kernel::Control(control) => Some(control),
        Kernel::Map(_)
        | Kernel::Reduce { .. }
        | Kernel::Rows { .. }
        | Kernel::Op(_)
        | Kernel::Composite(_)
        | Kernel::Custom(_) => None,
    }
}

/// What is to be made of a segment.
enum Todo {
    /// Nothing.
    Known(Arc<Prepared>),
    /// What is made of this one of those that nobody knows.
    Fresh(usize),
}

/// The segments of a plan, made ready by `backend`, or by the CPU where the device has no kernel.
pub(super) fn prepare(segments: Vec<Segment>, backend: &dyn Backend) -> Result<Vec<Arc<Prepared>>> {
    let device = backend.device();
    // Those that nobody knows, each once.
    let mut fresh: Vec<(Segment, u64)> = Vec::new();
    let mut todo = Vec::with_capacity(segments.len());
    for segment in segments {
        let mut mixer = Mixer::default();
        (&segment, device).hash(&mut mixer);
        let hash = mixer.finish();
        let same = |other: &(Segment, u64)| other.1 == hash && other.0 == segment;
        todo.push(match known(&segment, hash, device) {
            Some(known) => Todo::Known(known),
            None => match fresh.iter().position(same) {
                Some(index) => Todo::Fresh(index),
                None => {
                    fresh.push((segment, hash));
                    Todo::Fresh(fresh.len() - 1)
                }
            },
        });
    }
    let wanted: Vec<&Segment> =
        fresh.iter().map(|(segment, _)| segment).filter(|s| control_of(s).is_none()).collect();
    let start = profile::begin().filter(|_| !wanted.is_empty());
    let range = (!wanted.is_empty()).then(|| profile::range("compile")).flatten();
    let mut of_device = backend.prepare_all(&wanted).into_iter();
    drop(range);
    profile::end(start, || What::Compiling { device, segments: wanted.len() });
    let mut made: Vec<Arc<Prepared>> = Vec::with_capacity(fresh.len());
    for (segment, hash) in fresh {
        let prepared = match control_of(&segment).cloned() {
            Some(control) => Prepared::of_control(&control, segment, hash, backend)?,
            None => {
                let of_segment = of_device.next().unwrap_or_else(|| backend.prepare(&segment));
                Prepared::new(segment, hash, of_segment, backend)?
            }
        };
        made.push(Arc::new(prepared));
    }
    for prepared in &made {
        if let Some(hash) = prepared.shared {
            lock(&SHARED).entry(hash).or_default().push(Arc::downgrade(prepared));
        }
    }
    let of = |todo| match todo {
        Todo::Known(known) => known,
        Todo::Fresh(index) => made[index].clone(),
    };
    Ok(todo.into_iter().map(of).collect())
}

impl Prepared {
    /// What a device made of `segment`, or what the CPU makes of it where it has no kernel for it.
    fn new(
        segment: Segment,
        hash: u64,
        made: Result<Arc<dyn Executable>>,
        backend: &dyn Backend,
    ) -> Result<Prepared> {
        // What the CPU takes over depends on a policy, which may change.
        let (executable, shared) = match made {
            Err(Error::Unsupported { device, reason }) => {
                (fallback::take_over(&segment, backend, device, reason)?, None)
            }
            prepared => (prepared?, Some(hash)),
        };
        let is_copy = matches!(&segment.kernel, Kernel::Map(body) if body.code.is_empty());
        let bytes = size_of::<Prepared>() + segment.bytes() + executable.bytes();
        let device = backend.device();
        let is_taken_over = shared.is_none();
        Ok(Prepared {
            segment,
            executable,
            control: None,
            is_copy,
            is_taken_over,
            device,
            shared,
            _held: Held::new(bytes),
        })
    }

    /// Control flow, which is plans of its bodies.
    fn of_control(
        control: &Arc<Control>,
        segment: Segment,
        hash: u64,
        backend: &dyn Backend,
    ) -> Result<Prepared> {
        let control = Arc::new(control::Prepared::new(control, &segment, backend)?);
        let bytes = size_of::<Prepared>() + segment.bytes() + control.bytes();
        Ok(Prepared {
            segment,
            executable: control.clone(),
            is_copy: false,
            is_taken_over: false,
            device: backend.device(),
            shared: (!control.falls_back()).then_some(hash),
            control: Some(control),
            _held: Held::new(bytes),
        })
    }
}

impl Prepared {
    /// Whether it is one kernel that the CPU runs for a device that has none.
    pub(super) fn is_on_host(&self) -> bool {
        self.is_taken_over
    }

    /// Whether the CPU runs it, or some of it, for a device that has no kernel for it.
    pub(super) fn is_taken_over(&self) -> bool {
        self.is_taken_over || self.control.as_ref().is_some_and(|control| control.falls_back())
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
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
