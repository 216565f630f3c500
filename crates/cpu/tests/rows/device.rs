//! The CPU under other names, with rows of other lengths.

use std::any::Any;
use std::sync::Arc;

use cupola_core::backend::{
    Backend, Buffer, Executable, Limits, Memory, MemoryStats, Registration, Segment,
};
use cupola_core::device::DeviceKind;
use cupola_core::{Device, Result};
use cupola_cpu::Cpu;
use cupola_cpu::memory::HostMemory;

/// The CPU under another name, with rows of its own length.
struct Rows {
    device: Device,
    cpu: Cpu,
    limits: Limits,
}

/// The CPU that holds no row.
pub const NONE: Device = Device { kind: DeviceKind::Cuda, index: 70 };
/// The CPU that holds every row.
pub const ALL: Device = Device { kind: DeviceKind::Cuda, index: 71 };

inventory::submit! {
    Registration {
        kind: DeviceKind::Cuda,
        has_hardware: || false,
        absence: Vec::new,
        discover: || {
            let rows = |(device, row)| -> Arc<dyn Backend> {
                let cpu = Cpu::new();
                let limits = Limits { row, ..cpu.limits().clone() };
                Arc::new(Rows { device, cpu, limits })
            };
            [(NONE, 0), (ALL, 1 << 20)].map(rows).to_vec()
        },
    }
}

/// The CPU's memory under the other name, so that it is not copied for every use.
struct Own {
    buffer: Buffer,
    device: Device,
}

impl Memory for Own {
    fn bytes(&self) -> usize {
        self.buffer.bytes()
    }
    fn device(&self) -> Device {
        self.device
    }
    fn host(&self) -> Option<&[u8]> {
        self.buffer.host()
    }
    fn as_any(&self) -> &dyn Any {
        match self.buffer.downcast::<HostMemory>() {
            Some(memory) => memory,
            None => self,
        }
    }
}

impl Rows {
    fn own(&self, buffer: Buffer) -> Buffer {
        Buffer::new(Own { buffer, device: self.device })
    }
}

impl Backend for Rows {
    fn device(&self) -> Device {
        self.device
    }
    fn description(&self) -> String {
        "the CPU under another name".to_owned()
    }
    fn is_real(&self) -> bool {
        false
    }
    fn limits(&self) -> &Limits {
        &self.limits
    }
    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        Ok(self.own(self.cpu.alloc(bytes)?))
    }
    fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        Ok(self.own(self.cpu.upload(bytes)?))
    }
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        self.cpu.write(buffer, offset, bytes)
    }
    fn download(&self, buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
        self.cpu.download(buffer, offset, out)
    }
    fn prepare(&self, segment: &Segment) -> Result<Arc<dyn Executable>> {
        self.cpu.prepare(segment)
    }
    fn memory(&self) -> MemoryStats {
        self.cpu.memory()
    }
    fn trim(&self) {
        self.cpu.trim();
    }
    fn set_peak(&self, to: usize) {
        self.cpu.set_peak(to);
    }
    fn set_cache_limit(&self, bytes: Option<usize>) {
        self.cpu.set_cache_limit(bytes);
    }
    fn synchronize(&self) -> Result<()> {
        self.cpu.synchronize()
    }
}
