//! Devices through wgpu: Vulkan, Metal and DirectX 12.

mod memory;
mod queue;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cupola_core::backend::{
    Args, Backend, Buffer, Executable, Limits, MemoryStats, Registration, Segment, Support,
    devices_of,
};
use cupola_core::device::DeviceKind;
use cupola_core::prim::Op;
use cupola_core::{Aval, Device, Error, Result};

use crate::emit::{Wgsl, print};
use crate::ir::{Kernel, Target};
use crate::kernels::{Arg, Missing, Place, Program, program};
use queue::{Pipeline, Queue};

inventory::submit! {
    Registration { kind: DeviceKind::Wgpu, discover }
}

/// The adapters of this machine, real ones first.
fn discover() -> Vec<Arc<dyn Backend>> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    descriptor.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(descriptor);
    let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    adapters.sort_by_key(|adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    });
    let mut found: Vec<Arc<dyn Backend>> = Vec::new();
    for adapter in adapters {
        match Wgpu::new(&adapter, found.len() as u16) {
            Ok(gpu) => found.push(Arc::new(gpu)),
            Err(error) => {
                let mut refusals = REFUSALS.lock().unwrap_or_else(PoisonError::into_inner);
                refusals.push(format!("{}: {error}", adapter.get_info().name));
            }
        }
    }
    found
}

static REFUSALS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Why this machine has fewer devices than adapters, or none: a line each.
pub fn absence() -> Vec<String> {
    let found = devices_of(DeviceKind::Wgpu);
    let refusals = REFUSALS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut lines: Vec<String> =
        refusals.iter().map(|r| format!("wgpu: not available: {r}")).collect();
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
    fn new(adapter: &wgpu::Adapter, index: u16) -> Result<Self> {
        let wanted = wgpu::Features::SHADER_INT64 | wgpu::Features::SHADER_F64;
        let features = adapter.features() & wanted;
        let limits = adapter.limits();
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("cupola"),
            required_features: features,
            required_limits: limits.clone(),
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .map_err(|cause| Error::Device(format!("wgpu:{index}: {cause}")))?;
        let own = Device { kind: DeviceKind::Wgpu, index };
        let max_bindings = (limits.max_storage_buffers_per_shader_stage as usize).min(64);
        let target = Target {
            int64: features.contains(wgpu::Features::SHADER_INT64),
            float64: features.contains(wgpu::Features::SHADER_F64),
            native_math: false,
            wide_offsets: false,
            max_threads: limits
                .max_compute_invocations_per_workgroup
                .min(limits.max_compute_workgroup_size_x),
            max_blocks: limits.max_compute_workgroups_per_dimension.min(65_535),
            vector_bytes: 0,
            shared_bytes: limits.max_compute_workgroup_storage_size,
            max_bindings,
            threads: match adapter.get_info().device_type {
                wgpu::DeviceType::Cpu => 1 << 10,
                wgpu::DeviceType::IntegratedGpu => 1 << 14,
                _ => 1 << 17,
            },
            matrix: false,
            tf32: false,
        };
        Ok(Wgpu {
            device: own,
            info: adapter.get_info(),
            limits: Limits {
                body_operands: max_bindings.min(24),
                body_instructions: 96,
                row: 4096,
            },
            target,
            queue: Arc::new(Queue::new(own, device, queue, &limits)?),
        })
    }

    fn missing(&self, missing: Missing) -> Error {
        Error::Unsupported { device: self.device.to_string(), reason: missing.0 }
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

    fn support(&self, op: &Op, _: &[Aval]) -> Support {
        match op {
            Op::Call(_) => Support::Inline,
            _ => Support::Native,
        }
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        self.queue.alloc(bytes)
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        let buffer = self.queue.alloc(bytes.len())?;
        self.queue.write(&buffer, 0, bytes)?;
        Ok(buffer)
    }

    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        self.queue.write(buffer, offset, bytes)
    }

    fn download(&self, buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
        self.queue.read(buffer, offset, out)
    }

    fn prepare(&self, segment: &Segment) -> Result<Arc<dyn Executable>> {
        let program = program(segment, &self.target).map_err(|m| self.missing(m))?;
        let pipelines = (program.launches.iter())
            .map(|launch| {
                let text = print(&launch.kernel, &Wgsl);
                if let Some(observer) = OBSERVER.get() {
                    observer(&launch.kernel, &text);
                }
                self.queue.pipeline(&text, &launch.kernel)
            })
            .collect::<Result<_>>()?;
        let faults = program.faults.iter().map(|error| self.queue.fault(error)).collect();
        Ok(Arc::new(Prepared { program, pipelines, faults, queue: self.queue.clone() }))
    }

    fn memory(&self) -> MemoryStats {
        self.queue.memory()
    }

    fn trim(&self) {
        self.queue.trim();
    }

    fn synchronize(&self) -> Result<()> {
        self.queue.synchronize()
    }
}

/// A program with its pipelines.
struct Prepared {
    program: Program,
    pipelines: Vec<Arc<Pipeline>>,
    /// The numbers of its faults.
    faults: Vec<u32>,
    queue: Arc<Queue>,
}

impl Executable for Prepared {
    fn run(&self, args: &Args<'_>) -> Result<()> {
        let scratch: Vec<Buffer> =
            self.program.scratch.iter().map(|&b| self.queue.alloc(b)).collect::<Result<_>>()?;
        for (launch, pipeline) in self.program.launches.iter().zip(&self.pipelines) {
            let buffers: Vec<&Buffer> = (launch.buffers.iter())
                .map(|place| match *place {
                    Place::Input(i) => args.inputs[i].buffer,
                    Place::Output(i) => args.outputs[i].buffer,
                    Place::Scratch(i) => &scratch[i],
                    Place::Fault => self.queue.faults(),
                })
                .collect();
            let mut words = Vec::with_capacity(launch.kernel.args as usize);
            for arg in &launch.args {
                match *arg {
                    Arg::Offset(Place::Input(i)) => words.push(args.inputs[i].offset as u32),
                    Arg::Offset(Place::Output(i)) => words.push(args.outputs[i].offset as u32),
                    Arg::Offset(Place::Scratch(_) | Place::Fault) => words.push(0),
                    Arg::Word(word) => words.push(word),
                    Arg::Fault(i) => words.push(self.faults[i]),
                    Arg::Scalar(i) => {
                        let [a, b, c, d, e, f, g, h] = args.scalars[i];
                        words.push(u32::from_le_bytes([a, b, c, d]));
                        words.push(u32::from_le_bytes([e, f, g, h]));
                    }
                }
            }
            self.queue.launch(pipeline, launch.grid, &buffers, &words)?;
        }
        Ok(())
    }
}
