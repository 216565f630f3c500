//! The CPU as a backend.

use std::sync::Arc;

use cupola_core::backend::{
    Backend, Buffer, Executable, Limits, MemoryStats, Registration, Segment, system_memory,
};
use cupola_core::device::DeviceKind;
use cupola_core::prim::Composite;
use cupola_core::{Aval, Device, Error, Result};
use cupola_simd::{Isa, Level};

use crate::contiguous::copy_bytes;
use crate::memory::{self, HostMemory};
use crate::op;
use crate::run::Prepared;
use crate::threads::{num_threads, watch_forks};

inventory::submit! {
    Registration {
        kind: DeviceKind::Cpu,
        has_hardware: || true,
        absence: Vec::new,
        discover: || {
            watch_forks();
            vec![Arc::new(Cpu::new())]
        },
    }
}

/// The processor.
pub struct Cpu {
    limits: Limits,
}

impl Cpu {
    /// The processor that this program runs on.
    pub fn new() -> Self {
        // A tile of every register of a program stays in the L1 cache within these.
        let limits = Limits {
            body_operands: 24,
            body_instructions: 96,
            row: 1 << 15,
            folds: 4,
            computes_again: false,
        };
        Cpu { limits }
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self::new()
    }
}

impl Backend for Cpu {
    fn device(&self) -> Device {
        Device::CPU
    }

    fn description(&self) -> String {
        let isa = match Isa::best().level() {
            Level::Avx512Bf16 => "AVX-512 with bfloat16",
            Level::Avx512 => "AVX-512",
            Level::Avx2 => "AVX2",
            Level::Portable if cfg!(target_arch = "aarch64") => "NEON",
            Level::Portable => "portable code",
        };
        let gib = system_memory() as f64 / (1u64 << 30) as f64;
        let model = model().unwrap_or_else(|| std::env::consts::ARCH.into());
        format!("{model}, {isa}, {} threads, {gib:.1} GiB", num_threads())
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn claims(&self, composite: &Composite, inputs: &[&Aval]) -> bool {
        op::claims(composite, inputs)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        Ok(Buffer::new(HostMemory::new(bytes, "an array")?))
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        let memory = HostMemory::new(bytes.len(), "an array")?;
        // SAFETY: the memory is as long, and new.
        unsafe { copy_bytes(bytes.as_ptr(), memory.as_ptr(), bytes.len()) };
        Ok(Buffer::new(memory))
    }

    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        let memory = buffer
            .downcast::<HostMemory>()
            .filter(|_| offset + bytes.len() <= buffer.bytes())
            .ok_or_else(|| {
                let length = bytes.len();
                Error::Device(format!("{length} bytes from {offset} on do not fit in {buffer:?}"))
            })?;
        memory.forget();
        // SAFETY: the range is inside the memory, and whoever writes to a buffer is alone with it.
        unsafe { copy_bytes(bytes.as_ptr(), memory.as_ptr().add(offset), bytes.len()) };
        Ok(())
    }

    fn download(&self, buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
        // An empty view may start past the end of its buffer.
        if out.is_empty() {
            return Ok(());
        }
        let host = buffer
            .host()
            .ok_or_else(|| Error::Device(format!("the CPU cannot read {buffer:?}")))?;
        let part = host.get(offset..).and_then(|h| h.get(..out.len())).ok_or_else(|| {
            Error::Device(format!("{} bytes from {offset} on are not in {buffer:?}", out.len()))
        })?;
        // SAFETY: both are of one length, and `out` is borrowed alone.
        unsafe { copy_bytes(part.as_ptr(), out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    fn prepare(&self, segment: &Segment) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(Prepared::new(segment)?))
    }

    fn expect(&self, pieces: &[usize]) -> Result<()> {
        // Kernels say the most that they can take, which is much more than they do take of large operands.
        const MOST: usize = 256 << 20;
        memory::expect_memory(pieces.iter().sum::<usize>().min(MOST), "an operation's own work")
    }

    fn memory(&self) -> MemoryStats {
        memory::stats()
    }

    fn capacity(&self) -> Option<usize> {
        Some(system_memory())
    }

    fn trim(&self) {
        memory::trim();
    }

    fn set_peak(&self, to: usize) {
        memory::set_peak(to);
    }

    fn set_cache_limit(&self, bytes: Option<usize>) {
        memory::set_cache_limit(bytes);
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

/// The processor's name, where the system says it.
#[cfg(target_os = "linux")]
fn model() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find_map(|l| l.strip_prefix("model name"))?;
    Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
}

/// The processor's name, where the system says it.
#[cfg(target_os = "macos")]
fn model() -> Option<String> {
    let name = "machdep.cpu.brand_string";
    let out = std::process::Command::new("sysctl").args(["-n", name]).output().ok()?;
    Some(String::from_utf8(out.stdout).ok()?.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The processor's name, where the system says it.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn model() -> Option<String> {
    None
}
