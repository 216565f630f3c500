//! Memory of the CPU: aligned blocks that are kept for reuse.
//!
//! On Linux a fresh page costs more than the arithmetic on it, so a freed block is kept and handed
//! out again, the last freed first, while it is still in the cache of the core. Small blocks go
//! through a short list of the thread.

mod arena;
mod block;
mod mapped;
mod pool;
mod scratch;

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use cupola_core::backend::{Kept, Memory, MemoryStats, system_memory};
use cupola_core::fork::{self, Locked};
use cupola_core::{Device, Error, Result};

use block::{Block, Class};
pub use mapped::map;
use pool::{Pool, ThreadPool};
pub use scratch::Scratch;

/// The alignment of every block, in bytes.
pub const ALIGN: usize = block::ALIGN;

/// Memory that is kept whatever the peak was.
const KEPT_ALWAYS: usize = 64 << 20;

static ALLOCATOR: Allocator = Allocator::new();

thread_local! {
    static LOCAL: RefCell<ThreadPool> = const { RefCell::new(ThreadPool::new()) };
}

/// The memory behind a [`cupola_core::backend::Buffer`] of the CPU.
///
/// Executables write to it through [`HostMemory::as_ptr`] while clones of the buffer exist; the
/// planner gives them outputs that nobody reads meanwhile.
pub struct HostMemory {
    block: Block,
    bytes: usize,
    kept: Kept,
}

// SAFETY: a block is memory and belongs to no thread.
unsafe impl Send for HostMemory {}
// SAFETY: the memory is shared under the contract of `Executable::run`: who writes is alone.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Memory of at least `bytes` bytes, of undefined but initialised content.
    pub fn new(bytes: usize, what: &str) -> Result<Self> {
        let class = Class::of(bytes).ok_or_else(|| lacking(bytes, what))?;
        let block = ALLOCATOR.take(class).ok_or_else(|| lacking(bytes, what))?;
        Ok(HostMemory { block, bytes, kept: Kept::default() })
    }

    /// Forgets what was made of the content, which is written now.
    pub fn forget(&self) {
        self.kept.forget();
    }

    /// The first byte; valid for reads and writes of [`Memory::bytes`] bytes.
    pub fn as_ptr(&self) -> *mut u8 {
        self.block.data()
    }
}

/// An error where there are not `bytes` bytes for a library, which would end the program over it.
pub(crate) fn expect_memory(bytes: usize, what: &str) -> Result<()> {
    match bytes <= LITTLE || room::<u8>(bytes).is_some() {
        true => Ok(()),
        false => Err(lacking(bytes, what)),
    }
}

/// Room for `count` elements, for which kept memory is given back where there is no other.
pub(crate) fn room<T>(count: usize) -> Option<Vec<T>> {
    let mut all = Vec::new();
    if all.try_reserve_exact(count).is_err() {
        trim();
        all.try_reserve_exact(count).ok()?;
    }
    Some(all)
}

/// Memory that a library is not asked about: so much there is.
pub(crate) const LITTLE: usize = 1 << 16;

fn lacking(bytes: usize, what: &str) -> Error {
    Error::OutOfMemory { device: Device::CPU.to_string(), bytes, what: what.to_owned() }
}

/// What unwinds from a kernel that finds no memory for its own work.
struct Lacks(usize);

/// Ends a kernel, whichever thread is at it, that has no memory of so many bytes for its own work.
pub(crate) fn give_up(bytes: usize) -> ! {
    // Nobody is told but who runs the kernel.
    resume_unwind(Box::new(Lacks(bytes)))
}

/// `count` times `value`, for a kernel's own work.
pub(crate) fn filled<T: Clone>(value: T, count: usize) -> Vec<T> {
    let mut all = expected(count);
    all.resize(count, value);
    all
}

/// What `of` gives for each number up to `count`, for a kernel's own work.
pub(crate) fn listed<T>(count: usize, of: impl FnMut(usize) -> T) -> Vec<T> {
    let mut all = expected(count);
    all.extend((0..count).map(of));
    all
}

fn expected<T>(count: usize) -> Vec<T> {
    room(count).unwrap_or_else(|| give_up(count.saturating_mul(size_of::<T>())))
}

/// Runs a kernel; an error where it [gives up](give_up).
pub(crate) fn caught<R>(run: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        match payload.downcast::<Lacks>() {
            Ok(lacks) => Err(lacking(lacks.0, "an operation's own work")),
            Err(payload) => resume_unwind(payload),
        }
    })
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        ALLOCATOR.give(self.block.take());
    }
}

impl Memory for HostMemory {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn device(&self) -> Device {
        Device::CPU
    }

    fn kept(&self) -> Option<&Kept> {
        Some(&self.kept)
    }

    fn host(&self) -> Option<&[u8]> {
        // SAFETY: the block has `bytes` bytes, initialised since it came from the system, and the
        // planner lets nobody read a buffer before the executable that writes it is done.
        Some(unsafe { std::slice::from_raw_parts(self.as_ptr(), self.bytes) })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// How much memory is in use, counted in whole blocks.
pub fn stats() -> MemoryStats {
    let active = ALLOCATOR.active.load(Relaxed);
    let cached = ALLOCATOR.held.load(Relaxed).saturating_sub(active);
    MemoryStats { active, peak: ALLOCATOR.peak.load(Relaxed).max(active), cached }
}

/// Gives the memory that is kept for reuse back to the system. The short lists of other threads
/// follow when those threads next allocate or free.
pub fn trim() {
    ALLOCATOR.epoch.fetch_add(1, Relaxed);
    let _ = LOCAL.try_with(|l| ALLOCATOR.refresh(&mut l.borrow_mut()));
    let all = ALLOCATOR.pool().drain();
    ALLOCATOR.release(all);
}

/// Counts the most memory in use anew, from so much at least.
pub fn set_peak(to: usize) {
    ALLOCATOR.peak.store(ALLOCATOR.active.load(Relaxed).max(to), Relaxed);
}

/// Bounds the bytes that are kept for reuse. `None`, the default, keeps active and kept memory
/// together within one and a half times the most that was ever active.
pub fn set_cache_limit(bytes: Option<usize>) {
    ALLOCATOR.limit.store(bytes.unwrap_or(usize::MAX), Relaxed);
    ALLOCATOR.shrink(0);
}

struct Allocator {
    pool: Mutex<Pool>,
    /// Bytes in live blocks.
    active: AtomicUsize,
    /// The most that `active` ever was.
    peak: AtomicUsize,
    /// Bytes that came from the system and did not go back.
    held: AtomicUsize,
    /// The bound that was set on kept bytes; `usize::MAX` for the default.
    limit: AtomicUsize,
    /// Counts trims, for threads to see that they must empty their lists.
    epoch: AtomicUsize,
}

impl Allocator {
    const fn new() -> Self {
        Allocator {
            pool: Mutex::new(Pool::new()),
            active: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            limit: AtomicUsize::new(usize::MAX),
            epoch: AtomicUsize::new(0),
        }
    }

    fn pool(&self) -> Locked<'_, Pool> {
        fork::lock(&self.pool)
    }

    /// A block of `class`; `None` where the system has no memory.
    fn take(&self, class: Class) -> Option<Block> {
        if class.bytes() == 0 {
            return Block::new(class);
        }
        let local = if class.is_small() {
            LOCAL.try_with(|local| {
                let local = &mut local.borrow_mut();
                self.refresh(local);
                local.pop(class)
            })
        } else {
            Ok(None)
        };
        let kept = local.ok().flatten().or_else(|| self.pool().pop(class));
        let block = match kept {
            Some(block) => block,
            None => self.fresh(class)?,
        };
        let active = self.active.fetch_add(block.bytes(), Relaxed) + block.bytes();
        if active > self.peak.load(Relaxed) {
            self.peak.fetch_max(active, Relaxed);
        }
        Some(block)
    }

    fn give(&self, block: Block) {
        if block.bytes() == 0 {
            return;
        }
        self.active.fetch_sub(block.bytes(), Relaxed);
        let mut block = Some(block);
        if block.as_ref().is_some_and(Block::is_small) {
            let _ = LOCAL.try_with(|local| {
                let local = &mut local.borrow_mut();
                self.refresh(local);
                block = block.take().and_then(|b| local.push(b));
            });
        }
        if let Some(block) = block {
            self.pool().push(block);
            self.shrink(0);
        }
    }

    /// A block from the system.
    fn fresh(&self, class: Class) -> Option<Block> {
        let bytes = class.bytes();
        self.shrink(bytes);
        let fits = || self.held.load(Relaxed).saturating_add(bytes) <= system_memory();
        if !fits() {
            trim();
        }
        let block = if fits() { Block::new(class) } else { None };
        let block = block.or_else(|| {
            trim();
            if fits() { Block::new(class) } else { None }
        })?;
        self.held.fetch_add(bytes, Relaxed);
        Some(block)
    }

    /// Gives the longest unused blocks back while more is kept than the bound allows, with
    /// `coming` more bytes about to be active.
    fn shrink(&self, coming: usize) {
        let active = self.active.load(Relaxed) + coming;
        let excess = || {
            let held = self.held.load(Relaxed) + coming;
            let kept = match self.limit.load(Relaxed) {
                usize::MAX => {
                    let peak = self.peak.load(Relaxed).max(active);
                    (peak + peak / 2).max(KEPT_ALWAYS).saturating_sub(active)
                }
                limit => limit,
            };
            held.saturating_sub(active).saturating_sub(kept)
        };
        let excess = excess();
        if excess > 0 {
            let oldest = self.pool().evict(excess);
            self.release(oldest);
        }
    }

    fn release(&self, blocks: Vec<Block>) {
        let bytes: usize = blocks.iter().map(Block::bytes).sum();
        drop(blocks);
        self.held.fetch_sub(bytes, Relaxed);
    }

    /// Empties a thread's list if memory was trimmed since it was last used.
    fn refresh(&self, local: &mut ThreadPool) {
        let epoch = self.epoch.load(Relaxed);
        if local.epoch != epoch {
            local.epoch = epoch;
            self.release(local.drain());
        }
    }
}
