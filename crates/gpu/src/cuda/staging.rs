//! Transfers through memory that the device can reach by itself.
//!
//! A copy from or to any other memory lets the driver wait or go through memory of its own. A few
//! pinned chunks in turn keep the processor's copy and the device's going side by side.

use cudarc::driver::sys::{self, CUdeviceptr, CUevent};
use cupola_core::Result;

use super::gpu::Gpu;

/// Bytes of a chunk.
const CHUNK: usize = 2 << 20;
/// How many chunks there are for each direction.
const CHUNKS: usize = 4;

/// A piece of pinned memory, and when the device is done with it.
struct Chunk {
    memory: *mut u8,
    done: CUevent,
}

// SAFETY: the memory is the chunk's alone, and events may be used by any thread.
unsafe impl Send for Chunk {}

impl Chunk {
    // Chunks are made once for a device, and stay as long as the program.
    fn new(gpu: &Gpu) -> Result<Chunk> {
        let mut memory = std::ptr::null_mut();
        // SAFETY: the device has been entered.
        let code =
            unsafe { sys::cuMemHostAlloc(&mut memory, CHUNK, sys::CU_MEMHOSTALLOC_PORTABLE) };
        gpu.check("pinning memory", code)?;
        let mut done = std::ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the device has been entered.
        gpu.check("making an event", unsafe { sys::cuEventCreate(&mut done, flags) })?;
        Ok(Chunk { memory: memory.cast(), done })
    }

    fn record(&self, gpu: &Gpu) -> Result<()> {
        // SAFETY: event and stream live as long as the program.
        gpu.check("an event", unsafe { sys::cuEventRecord(self.done, gpu.stream()) })
    }

    /// Waits for what was last recorded; an event that never was has nothing to wait for.
    fn wait(&self, gpu: &Gpu) -> Result<()> {
        // SAFETY: the event lives as long as the program.
        gpu.check("the device", unsafe { sys::cuEventSynchronize(self.done) })
    }
}

fn make(chunks: &mut Vec<Chunk>, gpu: &Gpu, wanted: usize) -> Result<()> {
    while chunks.len() < wanted {
        chunks.push(Chunk::new(gpu)?);
    }
    Ok(())
}

/// The way to the device. Copies return before the device has the bytes.
#[derive(Default)]
pub struct Up {
    chunks: Vec<Chunk>,
    current: usize,
    /// How much of the current chunk is taken.
    filled: usize,
}

impl Up {
    /// Copies `bytes` to the device; it has been entered.
    pub fn copy(&mut self, gpu: &Gpu, mut to: CUdeviceptr, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.filled == CHUNK {
                self.chunks[self.current].record(gpu)?;
                self.current = (self.current + 1) % CHUNKS;
                self.filled = 0;
                if let Some(next) = self.chunks.get(self.current) {
                    next.wait(gpu)?;
                }
            }
            make(&mut self.chunks, gpu, self.current + 1)?;
            let length = bytes.len().min(CHUNK - self.filled);
            let (part, rest) = bytes.split_at(length);
            // SAFETY: the chunk is longer, nobody else has this part of it, and the device is done
            // with what it held before.
            let code = unsafe {
                let place = self.chunks[self.current].memory.add(self.filled);
                place.copy_from_nonoverlapping(part.as_ptr(), length);
                sys::cuMemcpyHtoDAsync_v2(to, place.cast(), length, gpu.stream())
            };
            gpu.check("an upload", code)?;
            self.filled = (self.filled + length.next_multiple_of(256)).min(CHUNK);
            to += length as CUdeviceptr;
            bytes = rest;
        }
        Ok(())
    }
}

/// The way back.
#[derive(Default)]
pub struct Down {
    chunks: Vec<Chunk>,
}

impl Down {
    /// Copies from the device to `out`; it has been entered.
    pub fn copy(&mut self, gpu: &Gpu, from: CUdeviceptr, out: &mut [u8]) -> Result<()> {
        let pieces = out.len().div_ceil(CHUNK);
        make(&mut self.chunks, gpu, pieces.min(CHUNKS))?;
        let lengths: Vec<usize> = out.chunks(CHUNK).map(<[u8]>::len).collect();
        let order = |piece: usize| {
            let chunk = &self.chunks[piece % CHUNKS];
            // SAFETY: the chunk is as long as a piece, and what it held before has been read.
            let code = unsafe {
                sys::cuMemcpyDtoHAsync_v2(
                    chunk.memory.cast(),
                    from + (piece * CHUNK) as CUdeviceptr,
                    lengths[piece],
                    gpu.stream(),
                )
            };
            gpu.check("a download", code)?;
            chunk.record(gpu)
        };
        (0..pieces.min(CHUNKS)).try_for_each(order)?;
        for (piece, part) in out.chunks_mut(CHUNK).enumerate() {
            let chunk = &self.chunks[piece % CHUNKS];
            chunk.wait(gpu)?;
            // SAFETY: the device has written as much to the chunk, and is done with it.
            unsafe { part.as_mut_ptr().copy_from_nonoverlapping(chunk.memory, part.len()) };
            if piece + CHUNKS < pieces {
                order(piece + CHUNKS)?;
            }
        }
        Ok(())
    }
}
