//! Memory of devices, as arrays hold it.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::fork::lock;
use crate::holders::Tag;

/// The bytes that this process may use: the machine's memory, or its control group's. Linux
/// promises more than there is and ends a process that believes it.
pub fn system_memory() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let machine = read("/proc/meminfo").and_then(|text| {
            let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
            let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kib.checked_mul(1024)
        });
        let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
            .into_iter()
            .find_map(|path| read(path)?.trim().parse().ok());
        machine.unwrap_or(usize::MAX).min(group.unwrap_or(usize::MAX))
    })
}

/// An empty vector with room for `count` elements in the host's memory, for `what`: where the size of
/// what is read or given decides, too much is an error, not the end of the process.
///
/// # Errors
/// Where the machine has not so much memory.
///
/// # Example
/// ```
/// use cupola::backend::reserve;
/// let mut squares = reserve(10, "squares")?;
/// squares.extend((0..10u64).map(|i| i * i));
/// assert!(reserve::<u64>(usize::MAX, "more than there is").is_err());
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn reserve<T>(count: usize, what: &str) -> Result<Vec<T>> {
    let bytes = count.saturating_mul(size_of::<T>());
    let mut out = Vec::new();
    if bytes > system_memory() || out.try_reserve_exact(count).is_err() {
        return Err(Error::OutOfMemory { device: "the host".into(), bytes, what: what.into() });
    }
    Ok(out)
}

/// Memory of a device. A clone shares it; it goes back to the device when the last clone drops.
#[derive(Clone)]
pub struct Buffer {
    memory: Arc<dyn Memory>,
    /// By which a large one is known ([`crate::holders`]).
    pub(crate) tag: Option<Arc<Tag>>,
}

/// What a backend has made of a memory's content, kept for as long as that stays: weights in the order in which
/// kernels read them. It goes with the memory.
#[derive(Default)]
pub struct Kept {
    /// Whether there is anything.
    is_some: AtomicBool,
    state: Mutex<KeptState>,
}

#[derive(Default)]
struct KeptState {
    list: Vec<(KeptKey, Option<Arc<dyn Any + Send + Sync>>)>,
    /// Others may write to the memory whenever they want.
    is_exposed: bool,
}

/// Who made something, and of which place in the memory.
pub type KeptKey = (u64, usize);

/// What there is of a [`Kept`].
pub enum Lookup<T> {
    /// What was made.
    Have(Arc<T>),
    /// Nothing, and nobody asked since the content was written: it may be written before anybody asks again.
    First,
    /// Nothing, but it was asked for before: it is worth keeping.
    Again,
}

impl Kept {
    /// The most things of one memory: of a file with the weights of a model there are many.
    const MOST: usize = 1024;

    /// What was made under `key`.
    pub fn find<T: Any + Send + Sync>(&self, key: KeptKey) -> Lookup<T> {
        let mut state = lock(&self.state);
        if state.is_exposed {
            return Lookup::First;
        }
        if let Some((_, known)) = state.list.iter().find(|(known, _)| *known == key) {
            let known = known.clone().and_then(|known| known.downcast().ok());
            return known.map_or(Lookup::Again, Lookup::Have);
        }
        if state.list.len() == Self::MOST {
            state.list.remove(0);
        }
        state.list.push((key, None));
        self.is_some.store(true, Ordering::Release);
        Lookup::First
    }

    /// Keeps what was made of the content that [`Kept::find`] was asked about.
    pub fn keep(&self, key: KeptKey, made: Arc<dyn Any + Send + Sync>) {
        let mut state = lock(&self.state);
        if let Some((_, place)) = state.list.iter_mut().find(|(known, _)| *known == key) {
            *place = Some(made);
        }
    }

    /// Forgets everything, since the content is written now.
    #[inline]
    pub fn forget(&self) {
        if self.is_some.load(Ordering::Acquire) {
            let mut state = lock(&self.state);
            state.list.clear();
            self.is_some.store(false, Ordering::Release);
        }
    }

    /// Keeps nothing from now on, since others may write to the memory.
    fn expose(&self) {
        let mut state = lock(&self.state);
        state.is_exposed = true;
        state.list.clear();
    }
}

/// What a backend keeps behind a [`Buffer`].
pub trait Memory: Any + Send + Sync {
    /// The size in bytes.
    fn bytes(&self) -> usize;
    /// The device that it belongs to.
    fn device(&self) -> Device;
    /// The content, where the host can read it in place.
    fn host(&self) -> Option<&[u8]>;
    /// Whether it is somebody else's: then it is read, and never written.
    fn is_lent(&self) -> bool {
        false
    }
    /// An error where the content is known not to be what it was when it was lent.
    fn check(&self) -> Result<()> {
        Ok(())
    }
    /// What was made of the content, where the memory's writers tell it.
    fn kept(&self) -> Option<&Kept> {
        None
    }
    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;
}

impl Buffer {
    /// Wraps a backend's memory.
    pub fn new(memory: impl Memory) -> Self {
        Buffer { memory: Arc::new(memory), tag: None }
    }

    /// The host's memory that `owner` keeps, for arrays to lie in without a copy: what another
    /// library computed, or a file that is mapped. It is read and never written; the owner is
    /// dropped with the last array. Until then its bytes must stay where they are, and an array
    /// shows what they are when it is read.
    pub fn lent(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Buffer::new(Lent { owner, kept: None })
    }

    /// As [`Buffer::lent`], where nobody changes the bytes.
    pub fn constant(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Buffer::new(Lent { owner, kept: Some(Kept::default()) })
    }

    /// What was made of the content; none where that may change without anybody's saying so.
    pub fn kept(&self) -> Option<&Kept> {
        self.memory.kept()
    }

    /// Notes that others may write to the memory from now on, whenever they want.
    pub fn expose(&self) {
        if let Some(kept) = self.kept() {
            kept.expose();
        }
    }

    /// Whether the memory is somebody else's.
    pub fn is_lent(&self) -> bool {
        self.memory.is_lent()
    }

    /// An error where the content is known not to be what it was when it was lent: a file that was changed in place.
    pub fn check(&self) -> Result<()> {
        self.memory.check()
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// The device that it belongs to.
    pub fn device(&self) -> Device {
        self.memory.device()
    }

    /// The content, where the host can read it in place.
    pub fn host(&self) -> Option<&[u8]> {
        self.memory.host()
    }

    /// The backend's own type.
    pub fn downcast<M: Memory>(&self) -> Option<&M> {
        self.memory.as_any().downcast_ref()
    }

    /// Whether it may be overwritten: no other clone exists, and the memory is not lent.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.memory) == 1 && !self.is_lent()
    }

    /// Where the memory is known to all that share it, and how many these are.
    pub(crate) fn shared(&self) -> (*const (), usize) {
        (Arc::as_ptr(&self.memory).cast(), Arc::strong_count(&self.memory))
    }

    /// Whether both share one memory.
    pub fn same(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }
}

/// Memory of [`Buffer::lent`].
struct Lent<O> {
    owner: O,
    kept: Option<Kept>,
}

impl<O: AsRef<[u8]> + Send + Sync + 'static> Memory for Lent<O> {
    fn bytes(&self) -> usize {
        self.owner.as_ref().len()
    }

    fn device(&self) -> Device {
        Device::CPU
    }

    fn host(&self) -> Option<&[u8]> {
        Some(self.owner.as_ref())
    }

    fn is_lent(&self) -> bool {
        true
    }

    fn kept(&self) -> Option<&Kept> {
        self.kept.as_ref()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes on {})", self.bytes(), self.device())
    }
}
