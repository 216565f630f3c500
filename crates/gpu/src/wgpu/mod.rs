//! Devices through wgpu: Vulkan, Metal and DirectX 12.

mod adapter;
mod marker;
mod memory;
mod queue;
mod run;
mod transfer;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cupola_core::backend::{
    Backend, Buffer, Executable, Limits, MemoryStats, Registration, Segment, devices_of,
    system_memory,
};
use cupola_core::device::DeviceKind;
use cupola_core::event::{Marker, Moment};
use cupola_core::prim::Composite;
use cupola_core::{Aval, Device, Error, Result};

use crate::ir::{Kernel, Target};
use crate::kernels::{claims, program};
use crate::prepared::prepare_all;
pub use adapter::{Restrictions, restrict};
use queue::Queue;
pub use transfer::Transfers;

inventory::submit! {
    Registration { kind: DeviceKind::Wgpu, has_hardware: adapter::has_hardware, absence, discover }
}

/// The devices of the registry, and why an adapter is none.
static FOUND: Mutex<(Vec<Arc<Wgpu>>, Vec<String>)> = Mutex::new((Vec::new(), Vec::new()));

fn discover() -> Vec<Arc<dyn Backend>> {
    let mut known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let restrictions = adapter::restrictions();
    for adapter in adapter::adapters() {
        match Wgpu::new(&adapter, known.0.len() as u16, &restrictions) {
            Ok(gpu) => known.0.push(Arc::new(gpu)),
            Err(error) => known.1.push(format!("{}: {error}", adapter.get_info().name)),
        }
    }
    known.0.iter().map(|gpu| gpu.clone() as Arc<dyn Backend>).collect()
}

/// Why this machine has fewer devices than adapters, or none: a line each.
pub fn absence() -> Vec<String> {
    let found = devices_of(DeviceKind::Wgpu);
    let known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let mut lines: Vec<String> =
        known.1.iter().map(|r| format!("wgpu: not available: {r}")).collect();
    if found.is_empty() && lines.is_empty() {
        lines.push(
            "wgpu: not available: no driver of Vulkan, Metal or DirectX 12 has an adapter".into(),
        );
    }
    lines
}

/// Is shown every kernel and its text before it is compiled.
pub type Observer = fn(&Kernel, &str);

static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Shows `observer` every kernel that is compiled from now on; the first observer stays.
pub fn observe(observer: Observer) {
    OBSERVER.get_or_init(|| observer);
}

/// A device through wgpu.
pub struct Wgpu {
    device: Device,
    info: wgpu::AdapterInfo,
    limits: Limits,
    target: Target,
    queue: Arc<Queue>,
}

impl Wgpu {
    /// The registry's device of that name.
    pub fn of(device: Device) -> Option<Arc<Wgpu>> {
        devices_of(DeviceKind::Wgpu);
        let known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        known.0.iter().find(|gpu| gpu.device == device).cloned()
    }

    /// Another device on the adapter of `device`, beside the registry's.
    ///
    /// # Errors
    /// Where there is no such adapter, or it gives no device.
    pub fn open(device: Device, restrictions: &Restrictions) -> Result<Wgpu> {
        let adapter = adapter::adapters().into_iter().nth(usize::from(device.index));
        let adapter = adapter.filter(|_| device.kind == DeviceKind::Wgpu);
        let adapter = adapter.ok_or_else(|| Error::Device(format!("{device} has no adapter")))?;
        Self::new(&adapter, device.index, restrictions)
    }

    /// What kernels are built for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// How often bytes went between the host and the device, and how.
    pub fn transfers(&self) -> Transfers {
        self.queue.transfers()
    }

    /// Loses the device, as a driver does that is reset: whatever is asked of it from now on is an
    /// error that says so.
    pub fn lose(&self) {
        self.queue.lose();
    }
}

impl Backend for Wgpu {
    fn device(&self) -> Device {
        self.device
    }

    fn description(&self) -> String {
        let kind = match self.info.device_type {
            wgpu::DeviceType::DiscreteGpu => "discrete",
            wgpu::DeviceType::IntegratedGpu => "integrated",
            wgpu::DeviceType::VirtualGpu => "virtual",
            wgpu::DeviceType::Cpu => "software",
            wgpu::DeviceType::Other => "other",
        };
        format!("{}, {kind}, {:?}", self.info.name, self.info.backend)
    }

    fn is_real(&self) -> bool {
        self.info.device_type != wgpu::DeviceType::Cpu
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn claims(&self, composite: &Composite, inputs: &[&Aval]) -> bool {
        claims(composite, inputs, self.queue.max_reach(), &self.target)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        self.queue.alloc(bytes)
    }

    fn expect(&self, pieces: &[usize]) -> Result<()> {
        self.queue.pieces(pieces).map(|_| ())
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        self.queue.upload(bytes)
    }

    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        self.queue.write(buffer, offset, bytes)
    }

    fn download(&self, buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
        self.queue.read(buffer, offset, out)
    }

    fn prepare(&self, segment: &Segment) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(run::Prepared::new(&self.queue, segment, &self.target)?))
    }

    fn lacks(&self, segment: &Segment) -> Option<String> {
        program(segment, &self.target).err().map(|missing| missing.0)
    }

    fn prepare_all(&self, segments: &[&Segment]) -> Vec<Result<Arc<dyn Executable>>> {
        let made = prepare_all(segments, |segment| self.prepare(segment));
        self.queue.keep();
        made
    }

    fn memory(&self) -> MemoryStats {
        self.queue.memory()
    }

    fn capacity(&self) -> Option<usize> {
        let shares = matches!(
            self.info.device_type,
            wgpu::DeviceType::IntegratedGpu | wgpu::DeviceType::Cpu
        );
        shares.then(system_memory)
    }

    fn trim(&self) {
        self.queue.trim();
    }

    fn set_peak(&self, to: usize) {
        self.queue.set_peak(to);
    }

    fn set_cache_limit(&self, bytes: Option<usize>) {
        self.queue.set_cache_limit(bytes);
    }

    fn synchronize(&self) -> Result<()> {
        self.queue.synchronize()
    }

    fn forget_faults(&self) {
        if self.queue.has_faults() {
            // Where that fails everything after it does.
            let _ = self.queue.forget_faults();
        }
    }

    fn mark(&self) -> Result<Box<dyn Marker>> {
        if self.queue.has_times() {
            return Ok(Box::new(marker::Mark::new(&self.queue)?));
        }
        self.queue.synchronize()?;
        Ok(Box::new(Moment::now()))
    }

    fn has_marks(&self) -> bool {
        self.queue.has_times()
    }
}
