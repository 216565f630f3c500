//! Memory of a CUDA device: blocks that are kept for reuse by their size.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::CUdeviceptr;
use cupola_core::Device;
use cupola_core::backend::{Memory, MemoryStats};

use super::gpu::Gpu;

/// Freed blocks and counts.
#[derive(Default)]
pub struct Pool {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    free: BTreeMap<usize, Vec<CUdeviceptr>>,
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

impl State {
    fn activate(&mut self, class: usize) {
        self.stats.active += class;
        self.stats.peak = self.stats.peak.max(self.stats.active);
    }
}

/// The size that is really allocated for `bytes`: a multiple of a quarter of the power of two
/// below, so that at most a fifth is lost and sizes meet again; of 2 MiB where that is less.
pub fn class(bytes: usize) -> usize {
    let bytes = bytes.max(512);
    let step = (bytes.next_power_of_two() / 8).clamp(512, 2 << 20);
    bytes.div_ceil(step) * step
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A freed block of a class, if there is one.
    pub fn take(&self, class: usize) -> Option<CUdeviceptr> {
        let mut state = self.lock();
        let found = state.free.get_mut(&class)?.pop()?;
        state.stats.cached -= class;
        state.activate(class);
        Some(found)
    }

    /// Counts a new block.
    pub fn add(&self, class: usize) {
        self.lock().activate(class);
    }

    /// Keeps a block; gives those that go back to the driver, so that no more is held than ever
    /// was in use at once.
    pub fn give(&self, class: usize, block: CUdeviceptr) -> Vec<CUdeviceptr> {
        let mut state = self.lock();
        state.stats.active -= class;
        state.stats.cached += class;
        state.free.entry(class).or_default().push(block);
        let mut out = Vec::new();
        while state.keeps_too_much() {
            let Some(mut largest) = state.free.last_entry() else { break };
            let size = *largest.key();
            let dropped = largest.get_mut().pop();
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

    /// All that is kept, which is kept no more.
    pub fn drain(&self) -> Vec<CUdeviceptr> {
        let mut state = self.lock();
        state.stats.cached = 0;
        std::mem::take(&mut state.free).into_values().flatten().collect()
    }
}

/// The memory behind a buffer of a CUDA device.
pub struct CudaMemory {
    block: CUdeviceptr,
    bytes: usize,
    class: usize,
    gpu: Arc<Gpu>,
}

impl CudaMemory {
    /// Memory for `bytes` bytes in a block of `class`.
    pub fn new(block: CUdeviceptr, bytes: usize, class: usize, gpu: Arc<Gpu>) -> Self {
        CudaMemory { block, bytes, class, gpu }
    }

    /// Where it starts.
    pub fn start(&self) -> CUdeviceptr {
        self.block
    }

    /// Whether it belongs to `gpu`.
    pub fn is_of(&self, gpu: &Gpu) -> bool {
        std::ptr::eq(&*self.gpu, gpu)
    }
}

impl Drop for CudaMemory {
    // Work on one stream runs in order, so what is launched later may use the memory at once.
    fn drop(&mut self) {
        self.gpu.release(self.class, self.block);
    }
}

impl Memory for CudaMemory {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn device(&self) -> Device {
        self.gpu.device()
    }

    fn host(&self) -> Option<&[u8]> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Pool, class};

    #[test]
    fn classes_lose_little_and_are_stable() {
        for bytes in [0, 1, 511, 513, 5000, 1 << 20, (1 << 20) + 1, (3 << 30) + 7] {
            let size = class(bytes);
            assert!(size >= bytes && size <= bytes.max(512) + (bytes / 4).max(512));
            assert_eq!(class(size), size);
        }
    }

    #[test]
    fn what_is_freed_is_found_again_and_the_rest_is_bounded() {
        let pool = Pool::default();
        let large = class(256 << 20);
        assert_eq!(pool.take(large), None);
        pool.add(large);
        assert!(pool.give(large, 1).is_empty());
        assert_eq!(pool.take(large), Some(1));
        assert!(pool.give(large, 1).is_empty());
        // The peak is one large block, so a second one cannot be kept beside it.
        pool.add(1024);
        assert_eq!(pool.give(1024, 2), [1]);
        assert_eq!((pool.stats().active, pool.stats().cached), (0, 1024));
        assert_eq!(pool.drain(), [2]);
    }
}
