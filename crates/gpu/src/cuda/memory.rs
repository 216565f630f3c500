//! Memory of a CUDA device.

use std::any::Any;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::CUdeviceptr;
use cupola_core::Device;
use cupola_core::backend::Memory;

use super::gpu::{Gpu, lock};
use super::lane::Uses;
use crate::pool::Classes;

/// Blocks are whole multiples of 2 MiB where an eighth would be more.
pub const CLASSES: Classes = Classes { least: 512, step: 2 << 20 };

/// The memory behind a buffer of a CUDA device.
pub struct CudaMemory {
    block: CUdeviceptr,
    bytes: usize,
    class: usize,
    /// The lane that it was made for.
    lane: usize,
    /// Who used it last, since there is more than one lane.
    uses: Mutex<Uses>,
    gpu: Arc<Gpu>,
}

impl CudaMemory {
    /// Memory for `bytes` bytes in a block of `class`, which a lane takes over from its `uses`.
    pub fn new(
        block: CUdeviceptr,
        bytes: usize,
        class: usize,
        lane: usize,
        uses: Uses,
        gpu: Arc<Gpu>,
    ) -> Self {
        CudaMemory { block, bytes, class, lane, uses: Mutex::new(uses), gpu }
    }

    /// Who used it last.
    pub fn uses(&self) -> &Mutex<Uses> {
        &self.uses
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
    // Work on one lane runs in order, so what it is given later may use the memory at once.
    fn drop(&mut self) {
        let uses = std::mem::take(&mut *lock(&self.uses));
        self.gpu.release(self.class, self.lane, self.block, uses);
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
