//! The word that kernels leave the number of a fault in.

use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys::{self, CUdeviceptr};
use cupola_core::{Device, Result};

use super::gpu::check;
use crate::faults::Faults;

/// A word of the host's memory that the kernels of a lane store a fault's number in.
pub struct FaultWord {
    /// 0 while nothing is wrong. It stays for the rest of the program.
    word: &'static AtomicU32,
    /// The same word as the device sees it.
    place: CUdeviceptr,
}

impl FaultWord {
    /// Makes the word; the device has been entered.
    pub fn new(own: Device) -> Result<Self> {
        let mut memory = std::ptr::null_mut();
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: a context is current.
        check(own, "pinning memory", unsafe { sys::cuMemHostAlloc(&mut memory, 64, flags) })?;
        let mut place = 0;
        // SAFETY: the memory was just made, for the device to see.
        let code = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut place, memory, 0) };
        check(own, "pinning memory", code)?;
        // SAFETY: the memory is large and aligned enough, and is never freed; it is written before
        // anybody reads it.
        let word = unsafe {
            memory.cast::<AtomicU32>().write(AtomicU32::new(0));
            &*memory.cast::<AtomicU32>()
        };
        Ok(FaultWord { word, place })
    }

    /// Where kernels store the number.
    pub fn place(&self) -> CUdeviceptr {
        self.place
    }

    /// One of the `faults` of `own`, of the work that was waited for. It is reported once.
    pub fn check(&self, own: Device, faults: &Faults) -> Result<()> {
        if self.word.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        faults.check(own, self.word.swap(0, Ordering::AcqRel))
    }
}
