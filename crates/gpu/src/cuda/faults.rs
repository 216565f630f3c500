//! The words that kernels leave the numbers of faults in.

use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys::{self, CUdeviceptr};
use cupola_core::{Device, Result};

use super::gpu::check;
use crate::faults::{self, Faults, PLACES};

/// Words of the host's memory, one for each thread's place, that the kernels of a lane store a fault's number in.
pub struct FaultWords {
    /// 0 while nothing is wrong. They stay for the rest of the program.
    words: &'static [AtomicU32; PLACES],
    /// The first of them as the device sees it.
    start: CUdeviceptr,
}

impl FaultWords {
    /// Makes the words; the device has been entered.
    pub fn new(own: Device) -> Result<Self> {
        let mut memory = std::ptr::null_mut();
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        let bytes = size_of::<[AtomicU32; PLACES]>();
        // SAFETY: a context is current.
        check(own, "pinning memory", unsafe { sys::cuMemHostAlloc(&mut memory, bytes, flags) })?;
        let mut start = 0;
        // SAFETY: the memory was just made, for the device to see.
        let code = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut start, memory, 0) };
        check(own, "pinning memory", code)?;
        // SAFETY: the memory is large and aligned enough, and is never freed; it is written before
        // anybody reads it.
        let words = unsafe {
            memory.cast::<u8>().write_bytes(0, bytes);
            &*memory.cast::<[AtomicU32; PLACES]>()
        };
        Ok(FaultWords { words, start })
    }

    /// Where kernels that this thread launches store the number.
    pub fn place(&self) -> CUdeviceptr {
        self.start + (faults::place() * size_of::<AtomicU32>()) as CUdeviceptr
    }

    /// One of the `faults` of `own`, of this thread's work that was waited for. It is reported once.
    pub fn check(&self, own: Device, faults: &Faults) -> Result<()> {
        let word = &self.words[faults::place()];
        if word.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        faults.check(own, word.swap(0, Ordering::AcqRel))
    }
}
