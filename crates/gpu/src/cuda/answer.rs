//! Reading a few bytes at once: a loss, a class.
//!
//! A kernel writes them into the host's memory, and then a number that the host waits for. That
//! takes less time than a transfer, which begins and ends on another engine of the device.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUdeviceptr};
use cupola_core::Result;

use super::commands::LaunchConfig;
use super::compile::Function;
use super::gpu::Gpu;

/// So many bytes are few.
pub const MOST: usize = 1024;
/// Bytes between the number and what was read.
const HEAD: usize = 128;
/// For so long the host does nothing but look. After that a little delay is little beside the wait.
const PATIENCE: Duration = Duration::from_micros(500);

const NAME: &str = "cupola_answer";
const TEXT: &str = r#"
extern "C" __global__ void cupola_answer(
    const unsigned char* from, unsigned char* to, volatile unsigned* done, unsigned bytes,
    unsigned number) {
  for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x) to[i] = from[i];
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *done = number;
}
"#;

/// The host's memory for answers.
pub struct Answers {
    function: Function,
    /// The number of the last answer that is there.
    done: &'static AtomicU32,
    content: *const u8,
    /// The number as the device sees it; the content follows.
    place: CUdeviceptr,
    number: u32,
}

// SAFETY: the content is these answers' alone.
unsafe impl Send for Answers {}

impl Answers {
    /// Makes the memory and the kernel; the device has been entered.
    pub fn new(gpu: &Gpu) -> Result<Answers> {
        let function = gpu.kernels.of_text(gpu, NAME, TEXT)?;
        let mut memory = std::ptr::null_mut();
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: a context is current; the memory is kept for the rest of the program.
        let code = unsafe { sys::cuMemHostAlloc(&mut memory, HEAD + MOST, flags) };
        gpu.check("pinning memory", code)?;
        let mut place = 0;
        // SAFETY: the memory was just made, for the device to see.
        let code = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut place, memory, 0) };
        gpu.check("pinning memory", code)?;
        // SAFETY: the memory is large and aligned enough, and is never freed; it is written before
        // anybody reads it.
        let (done, content) = unsafe {
            memory.cast::<AtomicU32>().write(AtomicU32::new(0));
            (&*memory.cast::<AtomicU32>(), memory.cast::<u8>().add(HEAD).cast_const())
        };
        Ok(Answers { function, done, content, place, number: 0 })
    }

    /// Reads at most [`MOST`] bytes, after everything that was launched; the device has been
    /// entered.
    pub fn read(&mut self, gpu: &Gpu, from: CUdeviceptr, out: &mut [u8]) -> Result<()> {
        let length = out.len().min(MOST);
        self.number = self.number.wrapping_add(1);
        let content = self.place + HEAD as CUdeviceptr;
        let words = length as u64 | u64::from(self.number) << 32;
        let config =
            LaunchConfig { function: self.function, grid: [1, 1], threads: 128, shared: 0 };
        gpu.launch(&config, &[from, content, self.place, words], 32)?;
        self.wait(gpu)?;
        // SAFETY: the device has written as much, and nobody else has the memory.
        unsafe { out.as_mut_ptr().copy_from_nonoverlapping(self.content, length) };
        Ok(())
    }

    fn is_there(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.number
    }

    fn wait(&self, gpu: &Gpu) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            for _ in 0..64 {
                if self.is_there() {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
        }
        // A kernel that failed never ends: the device says so here.
        gpu.wait()?;
        match self.is_there() {
            true => Ok(()),
            false => Err(gpu.error("an answer was lost")),
        }
    }
}
