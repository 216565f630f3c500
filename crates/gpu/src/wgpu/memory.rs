//! Memory of a wgpu device: buffers that are kept for reuse by their size.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cupola_core::Device;
use cupola_core::backend::{Memory, MemoryStats};

/// Freed buffers and counts.
#[derive(Default)]
pub struct Pool {
    state: Mutex<State>,
    /// How many submissions there were.
    submitted: AtomicU64,
}

#[derive(Default)]
struct State {
    /// By class, with the number of the last submission that may use the buffer.
    free: HashMap<u64, Vec<(wgpu::Buffer, u64)>>,
    stats: MemoryStats,
    /// The bound that was set on what is kept.
    limit: Option<usize>,
}

impl State {
    /// Whether more is kept than may be: as much as was ever in use at once, or what was set.
    fn keeps_too_much(&self) -> bool {
        let bound = self.stats.peak.max(64 << 20);
        self.stats.active + self.stats.cached > bound
            || self.limit.is_some_and(|limit| self.stats.cached > limit)
    }
}

/// The size that is really allocated for `bytes`: a multiple of a quarter of the power of two
/// below, so that at most a fifth is lost and sizes meet again.
pub fn class(bytes: usize) -> u64 {
    let bytes = (bytes as u64).clamp(256, 1 << 62);
    let step = (bytes.next_power_of_two() / 8).max(256);
    bytes.div_ceil(step) * step
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many submissions there were.
    pub fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Counts a submission: its number.
    pub fn count_submission(&self) -> u64 {
        self.submitted.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// A freed buffer of a class with the last submission that may use it, or none; it counts as
    /// active either way.
    pub fn take(&self, class: u64) -> Option<(wgpu::Buffer, u64)> {
        let mut state = self.lock();
        let found = state.free.get_mut(&class).and_then(Vec::pop);
        if found.is_some() {
            state.stats.cached -= class as usize;
        }
        state.stats.active += class as usize;
        state.stats.peak = state.stats.peak.max(state.stats.active);
        found
    }

    /// Notes that an allocation came to nothing.
    pub fn give_up(&self, class: u64) {
        self.lock().stats.active -= class as usize;
    }

    fn give(&self, class: u64, buffer: wgpu::Buffer) {
        let mut state = self.lock();
        state.stats.active -= class as usize;
        state.stats.cached += class as usize;
        // What is gathered for the next submission may use it.
        state.free.entry(class).or_default().push((buffer, self.submitted() + 1));
        // What is kept may be as much as was ever in use at once, and no more.
        while state.keeps_too_much() {
            let Some((&largest, _)) = state.free.iter().max_by_key(|(class, _)| **class) else {
                return;
            };
            let list = state.free.get_mut(&largest);
            let dropped = list.and_then(Vec::pop);
            if state.free.get(&largest).is_some_and(Vec::is_empty) {
                state.free.remove(&largest);
            }
            if dropped.is_some() {
                state.stats.cached -= largest as usize;
            }
        }
    }

    /// Counts the most memory in use anew.
    pub fn reset_peak(&self) {
        let mut state = self.lock();
        state.stats.peak = state.stats.active;
    }

    /// Bounds what is kept, from the next block on that comes back.
    pub fn set_limit(&self, bytes: Option<usize>) {
        self.lock().limit = bytes;
    }

    /// How much is in use and kept.
    pub fn stats(&self) -> MemoryStats {
        self.lock().stats
    }

    /// Drops what is kept.
    pub fn trim(&self) {
        let mut state = self.lock();
        state.free.clear();
        state.stats.cached = 0;
    }
}

/// The memory behind a buffer of a wgpu device.
pub struct GpuMemory {
    buffer: Option<wgpu::Buffer>,
    bytes: usize,
    class: u64,
    /// The last submission that may use what was here before.
    used: u64,
    device: Device,
    /// Where the buffer goes in the end, if it came from there.
    pool: Option<Arc<Pool>>,
}

impl GpuMemory {
    /// Memory for `bytes` bytes in a buffer of `class` that submissions up to `used` may use.
    pub fn new(
        (buffer, used): (wgpu::Buffer, u64),
        bytes: usize,
        class: u64,
        device: Device,
        pool: Option<Arc<Pool>>,
    ) -> Self {
        GpuMemory { buffer: Some(buffer), bytes, class, used, device, pool }
    }

    /// The last submission that may use what was here before.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The buffer.
    pub fn buffer(&self) -> Option<&wgpu::Buffer> {
        self.buffer.as_ref()
    }
}

impl Drop for GpuMemory {
    // Work on one queue runs in order, so what is launched later may use the memory at once.
    fn drop(&mut self) {
        if let (Some(buffer), Some(pool)) = (self.buffer.take(), &self.pool) {
            pool.give(self.class, buffer);
        }
    }
}

impl Memory for GpuMemory {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn device(&self) -> Device {
        self.device
    }

    fn host(&self) -> Option<&[u8]> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
