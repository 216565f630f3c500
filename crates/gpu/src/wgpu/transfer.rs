//! Bytes between the host and the device, in the order of the launches.
//!
//! Where both share their memory and the adapter can map what kernels use, the host writes and
//! reads it in place. A mapped buffer may not be in use, so a write that would have to wait goes
//! through a copy, as it does everywhere else; a read waits in any case.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use cupola_core::backend::Buffer;
use cupola_core::{Error, Result};

use super::memory::GpuMemory;
use super::queue::{Queue, lock};

/// What becomes of a mapping.
type Mapping = std::result::Result<(), wgpu::BufferAsyncError>;

/// The most bytes that one copy stages.
const STAGED: usize = 64 << 20;

/// How often bytes went between the host and the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Transfers {
    /// In place.
    pub mapped: u64,
    /// Through a copy.
    pub staged: u64,
}

/// The same, while they are counted.
#[derive(Default)]
pub(super) struct Counts {
    mapped: AtomicU64,
    staged: AtomicU64,
}

impl Queue {
    /// How often bytes went between the host and the device, and how.
    pub fn transfers(&self) -> Transfers {
        Transfers {
            mapped: self.counts.mapped.load(Ordering::Relaxed),
            staged: self.counts.staged.load(Ordering::Relaxed),
        }
    }

    /// New memory that holds `bytes`.
    pub fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        let buffer = self.alloc(bytes.len())?;
        let used = buffer.downcast::<GpuMemory>().map_or(u64::MAX, GpuMemory::used);
        self.write_after(&buffer, 0, bytes, used)?;
        Ok(buffer)
    }

    /// Writes `bytes` from `offset` on, after everything that was launched.
    pub fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        self.write_after(buffer, offset, bytes, u64::MAX)
    }

    /// The same, where only submissions up to `used` may use the memory.
    fn write_after(&self, buffer: &Buffer, offset: usize, bytes: &[u8], used: u64) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let memory = self.memory_of(buffer)?;
        let end = offset + bytes.len();
        if self.mapped
            && offset.is_multiple_of(8)
            && (end.is_multiple_of(4) || end == buffer.bytes())
        {
            let mut gathered = lock(&self.gathered);
            self.submit(&mut gathered);
            // A mapping that has to wait is not asked for and given up: wgpu would take the next one
            // for it, and hand the memory out too early.
            if self.is_done(used) {
                return self.write_mapped(memory, offset as u64, bytes);
            }
        }
        // Whole words only: what is around the bytes is read first.
        let (start, stop) = (offset / 4 * 4, end.div_ceil(4) * 4);
        if start == offset && stop == end {
            self.write_staged(memory, offset, bytes);
        } else {
            let mut whole = vec![0; stop - start];
            if start != offset || end < buffer.bytes() {
                self.read_words(memory, start as u64, &mut whole)?;
            }
            whole[offset - start..][..bytes.len()].copy_from_slice(bytes);
            self.write_staged(memory, start, &whole);
        }
        self.check()
    }

    fn write_staged(&self, memory: &wgpu::Buffer, offset: usize, bytes: &[u8]) {
        self.submit(&mut lock(&self.gathered));
        self.counts.staged.fetch_add(1, Ordering::Relaxed);
        for (number, piece) in bytes.chunks(STAGED).enumerate() {
            self.queue.write_buffer(memory, (offset + number * STAGED) as u64, piece);
        }
        self.flush(bytes.len() > STAGED);
    }

    /// Sends staged writes on their way: where memory is mapped, since only what is submitted is
    /// waited for; or to give up much staged memory.
    pub(super) fn flush(&self, much: bool) {
        if self.mapped || much {
            self.submit_now(None);
        }
    }

    /// Writes in place where the device does not use the memory. Nothing may be submitted meanwhile.
    fn write_mapped(&self, memory: &wgpu::Buffer, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset + (bytes.len() as u64).next_multiple_of(4);
        let (done, mapped) = mpsc::channel();
        memory.map_async(wgpu::MapMode::Write, offset..end, move |result| {
            // Where nobody waits any more nobody needs to know.
            let _ = done.send(result);
        });
        let result = self.wait_for(&mapped).and_then(|()| {
            let whole = bytes.len() / 4 * 4;
            let mut last = [0; 4];
            last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
            let mut view = memory.get_mapped_range_mut(offset..end).map_err(|e| self.failed(&e))?;
            view.slice(..whole).copy_from_slice(&bytes[..whole]);
            if whole < bytes.len() {
                view.slice(whole..).copy_from_slice(&last);
            }
            Ok(())
        });
        memory.unmap();
        self.counts.mapped.fetch_add(1, Ordering::Relaxed);
        result.and_then(|()| self.check())
    }

    /// Waits for a mapping of memory that the device should be done with.
    fn wait_for(&self, mapped: &mpsc::Receiver<Mapping>) -> Result<()> {
        // Should it not be, the second poll waits.
        let polled = self.ask(wgpu::PollType::Poll);
        let found = polled.ok().and_then(|()| mapped.try_recv().ok());
        let result = match found {
            Some(result) => result,
            None => {
                self.wait()?;
                // Another thread's poll may be about to tell.
                mapped.recv().map_err(|cause| self.failed(&cause))?
            }
        };
        result.map_err(|cause| self.failed(&cause))
    }

    fn failed(&self, cause: &dyn std::fmt::Display) -> Error {
        Error::Device(format!("{}: a transfer failed: {cause}", self.device()))
    }

    /// Reads from `offset` bytes on, after everything that was launched.
    pub fn read(&self, buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
        if offset + out.len() > buffer.bytes() {
            return Err(Error::Device(format!(
                "{} bytes from {offset} on are not in {buffer:?}",
                out.len()
            )));
        }
        if out.is_empty() {
            return Ok(());
        }
        let memory = self.memory_of(buffer)?;
        if self.mapped {
            return self.read_mapped(memory, offset, out);
        }
        let (start, end) = (offset / 4 * 4, (offset + out.len()).div_ceil(4) * 4);
        if start == offset && end == offset + out.len() {
            return (out.chunks_mut(STAGED).enumerate()).try_for_each(|(i, piece)| {
                self.read_words(memory, (start + i * STAGED) as u64, piece)
            });
        }
        let mut whole = vec![0; end - start];
        self.read_words(memory, start as u64, &mut whole)?;
        out.copy_from_slice(&whole[offset - start..][..out.len()]);
        Ok(())
    }

    /// Reads in place.
    fn read_mapped(&self, memory: &wgpu::Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
        let word = self.memory_of(self.fault_word())?;
        let start = offset as u64 / 8 * 8;
        let end = ((offset + out.len()) as u64).next_multiple_of(4);
        // Launches that use the memory cannot be submitted while it is mapped.
        let mut gathered = lock(&self.gathered);
        self.submit(&mut gathered);
        let result = self.mapped_bytes([(memory, start..end), (word, 0..4)], |views| {
            let from = offset - start as usize;
            out.copy_from_slice(&views[0][from..from + out.len()]);
            u32::from_le_bytes([views[1][0], views[1][1], views[1][2], views[1][3]])
        });
        drop(gathered);
        let number = result?;
        self.counts.mapped.fetch_add(1, Ordering::Relaxed);
        self.report(number)
    }

    /// Waits for the device and shows `read` these parts of its memory.
    pub(super) fn mapped_bytes<const N: usize, T>(
        &self,
        parts: [(&wgpu::Buffer, std::ops::Range<u64>); N],
        read: impl FnOnce([&[u8]; N]) -> T,
    ) -> Result<T> {
        let (done, mapped) = mpsc::channel();
        for (buffer, range) in &parts {
            let done = done.clone();
            buffer.map_async(wgpu::MapMode::Read, range.clone(), move |result| {
                // Where nobody waits any more nobody needs to know.
                let _ = done.send(result);
            });
        }
        drop(done);
        let result = self.wait().and_then(|()| {
            for _ in 0..N {
                let result = mapped.recv().map_err(|cause| self.failed(&cause))?;
                result.map_err(|cause| self.failed(&cause))?;
            }
            let mut views = Vec::with_capacity(N);
            for (buffer, range) in &parts {
                let view =
                    buffer.get_mapped_range(range.clone()).map_err(|cause| self.failed(&cause))?;
                views.push(view);
            }
            Ok(read(std::array::from_fn(|i| &views[i][..])))
        });
        parts.iter().for_each(|(buffer, _)| buffer.unmap());
        result
    }

    /// Reads whole words through a copy.
    pub(super) fn read_words(
        &self,
        memory: &wgpu::Buffer,
        offset: u64,
        out: &mut [u8],
    ) -> Result<()> {
        let size = out.len() as u64;
        let word = self.memory_of(self.fault_word())?;
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("download"),
            size: size + 4,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(memory, offset, &staging, 0, size);
        encoder.copy_buffer_to_buffer(word, 0, &staging, size, 4);
        {
            let mut gathered = lock(&self.gathered);
            self.submit(&mut gathered);
            self.submit_now(Some(encoder.finish()));
        }
        self.counts.staged.fetch_add(1, Ordering::Relaxed);
        let number = self.mapped_bytes([(&staging, 0..size + 4)], |[view]| {
            let (content, fault) = view.split_at(size as usize);
            out.copy_from_slice(content);
            u32::from_le_bytes([fault[0], fault[1], fault[2], fault[3]])
        })?;
        self.report(number)
    }

    /// The error of a fault that came up, or of the device.
    fn report(&self, number: u32) -> Result<()> {
        if number != 0 {
            self.forget_faults()?;
            return self.faults.check(self.device(), number);
        }
        self.check()
    }
}
