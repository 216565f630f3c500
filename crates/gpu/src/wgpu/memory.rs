//! Memory of a wgpu device.

use std::any::Any;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cupola_core::Device;
use cupola_core::backend::Memory;

use crate::pool::{Classes, Pool};

/// The sizes of buffers.
pub const CLASSES: Classes = Classes { least: 256, step: usize::MAX };

/// A buffer, with the last submission that may use it.
type Block = (wgpu::Buffer, u64);

/// Freed buffers, the last freed first, and how many submissions there were.
#[derive(Default)]
pub struct Buffers {
    pool: Pool<Reverse<u64>, Block>,
    /// How many buffers were freed.
    freed: AtomicU64,
    submitted: AtomicU64,
}

impl Buffers {
    /// How many submissions there were.
    pub fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Counts a submission: its number.
    pub fn count_submission(&self) -> u64 {
        self.submitted.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// A freed buffer of a class with the last submission that may use it, if there is one.
    pub fn take(&self, class: usize) -> Option<Block> {
        self.pool.take(class, 0).map(|(_, block)| block)
    }

    fn give(&self, class: usize, buffer: wgpu::Buffer) {
        let order = Reverse(self.freed.fetch_add(1, Ordering::Relaxed));
        // What is gathered for the next submission may use it.
        drop(self.pool.give(class, 0, order, (buffer, self.submitted() + 1)));
    }

    /// The counts, and what is kept.
    pub fn pool(&self) -> &Pool<Reverse<u64>, Block> {
        &self.pool
    }
}

/// The memory behind a buffer of a wgpu device.
pub struct GpuMemory {
    buffer: Option<wgpu::Buffer>,
    bytes: usize,
    class: usize,
    /// The last submission that may use what was here before.
    used: u64,
    device: Device,
    /// Where the buffer goes in the end, if it came from there.
    buffers: Option<Arc<Buffers>>,
}

impl GpuMemory {
    /// Memory for `bytes` bytes in a buffer of `class` that submissions up to `used` may use.
    pub fn new(
        (buffer, used): (wgpu::Buffer, u64),
        bytes: usize,
        class: usize,
        device: Device,
        buffers: Option<Arc<Buffers>>,
    ) -> Self {
        GpuMemory { buffer: Some(buffer), bytes, class, used, device, buffers }
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
        if let (Some(buffer), Some(buffers)) = (self.buffer.take(), &self.buffers) {
            buffers.give(self.class, buffer);
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
