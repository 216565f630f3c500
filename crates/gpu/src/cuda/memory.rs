//! Memory of a CUDA device.

use std::any::Any;
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cupola_core::Device;
use cupola_core::backend::Memory;

use super::gpu::Gpu;
use crate::pool::Classes;

/// Blocks are whole multiples of 2 MiB where a quarter would be more.
pub const CLASSES: Classes = Classes { least: 512, step: 2 << 20 };

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
