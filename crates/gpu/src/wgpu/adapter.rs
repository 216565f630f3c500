//! Adapters: which there are, what of them is used, and devices on them.

use std::sync::{Arc, OnceLock};

use cupola_core::backend::Limits;
use cupola_core::device::DeviceKind;
use cupola_core::{Device, Error, Result};

use super::Wgpu;
use super::queue::{Kept, Options, Queue};
use crate::ir::Target;

/// What a device does without although its adapter has it: for tests, and against broken drivers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions {
    /// The most bytes of a buffer that a kernel may bind; at least 1024.
    pub binding: Option<u64>,
    /// The most bytes of all buffers at once.
    pub memory: Option<u64>,
    /// No subgroup operations.
    pub no_subgroups: bool,
    /// No elements of 16 bits: they lie in words.
    pub no_int16: bool,
    /// No mapping of the memory that kernels use.
    pub no_mapping: bool,
}

static RESTRICTIONS: OnceLock<Restrictions> = OnceLock::new();

/// Restricts the devices of the registry. Counts where it comes before the first of them is asked
/// for; otherwise the environment variable `CUPOLA_WGPU_WITHOUT` says what they do without:
/// `subgroups`, `int16`, `mapping`, separated by commas.
pub fn restrict(restrictions: Restrictions) {
    RESTRICTIONS.get_or_init(|| restrictions);
}

/// What the devices of the registry do without.
pub(super) fn restrictions() -> Restrictions {
    let chosen = RESTRICTIONS.get_or_init(|| {
        let text = std::env::var("CUPOLA_WGPU_WITHOUT").unwrap_or_default();
        let without = |name: &str| text.split(',').any(|word| word.trim() == name);
        Restrictions {
            binding: None,
            memory: None,
            no_subgroups: without("subgroups"),
            no_int16: without("int16"),
            no_mapping: without("mapping"),
        }
    });
    chosen.clone()
}

/// Whether the system shows a GPU. To look for adapters loads every driver that is installed, which
/// takes a while, and where there is no display some of them say so on standard error.
#[cfg(target_os = "linux")]
pub(super) fn has_hardware() -> bool {
    let renders = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|e| e.file_name().as_encoded_bytes().starts_with(b"renderD"))
    };
    std::fs::read_dir("/dev/dri").is_ok_and(|mut entries| entries.any(renders))
        || ["/dev/nvidiactl", "/dev/dxg", "/dev/kgsl-3d0", "/dev/mali0"]
            .iter()
            .any(|node| std::path::Path::new(node).exists())
}

/// Whether the system shows a GPU: the others are asked by looking for adapters.
#[cfg(not(target_os = "linux"))]
pub(super) fn has_hardware() -> bool {
    true
}

/// Vulkan without anything for windows: with it a layer of Mesa looks for a display, and complains on
/// standard error where there is none.
#[cfg(target_os = "linux")]
fn instance() -> Option<wgpu::Instance> {
    use wgpu::hal::{InstanceDescriptor, api, vulkan};
    let descriptor = InstanceDescriptor {
        name: "cupola",
        flags: wgpu::InstanceFlags::empty(),
        memory_budget_thresholds: wgpu::MemoryBudgetThresholds::default(),
        backend_options: wgpu::BackendOptions::default(),
        telemetry: None,
        display: None,
    };
    let headless = |args: vulkan::CreateInstanceCallbackArgs<'_, '_, '_>| {
        let is_for_windows = |name: &std::ffi::CStr| {
            let name = name.to_string_lossy();
            ["surface", "swapchain", "display"].iter().any(|word| name.contains(word))
        };
        args.extensions.retain(|name| !is_for_windows(name));
    };
    // SAFETY: what goes are the extensions for surfaces, which nobody makes here; before it uses one
    // the backend looks whether it is there. Features stay as they are.
    let raw =
        unsafe { vulkan::Instance::init_with_callback(&descriptor, Some(Box::new(headless))) };
    // SAFETY: the instance was just made, and belongs to nobody else.
    raw.ok().map(|raw| unsafe { wgpu::Instance::from_hal::<api::Vulkan>(raw) })
}

#[cfg(not(target_os = "linux"))]
fn instance() -> Option<wgpu::Instance> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    descriptor.flags = wgpu::InstanceFlags::empty();
    Some(wgpu::Instance::new(descriptor))
}

/// The adapters of this machine, real ones first.
pub(super) fn adapters() -> Vec<wgpu::Adapter> {
    let Some(instance) = instance() else { return Vec::new() };
    let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    adapters.sort_by_key(|adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    });
    adapters
}

impl Wgpu {
    pub(super) fn new(adapter: &wgpu::Adapter, index: u16, without: &Restrictions) -> Result<Self> {
        let info = adapter.get_info();
        let features = adapter.features() & wanted(&info, without);
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
        let options = Options {
            max_binding: without.binding.map_or(u64::MAX, |b| b.max(1024)),
            max_memory: without.memory.unwrap_or(u64::MAX),
            mapped: features.contains(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS),
        };
        let kept = Kept::open(&device, &info);
        let queue = Queue::new(own, device, queue, &limits, options, kept)?;
        // What Metal tells is the least that WebGPU allows, not what its devices have.
        let least = (info.backend != wgpu::Backend::Metal).then_some(info.subgroup_min_size);
        let subgroup = match features.contains(wgpu::Features::SUBGROUP) {
            true => queue.subgroup(least)?,
            false => 0,
        };
        let target = Target {
            int64: features.contains(wgpu::Features::SHADER_INT64),
            float64: features.contains(wgpu::Features::SHADER_F64),
            int16: features.contains(wgpu::Features::SHADER_I16),
            subgroup,
            language: cupola_core::prim::call::Language::Wgsl,
            native_math: false,
            wide_offsets: false,
            max_blocks: limits.max_compute_workgroups_per_dimension.min(65_535),
            max_threads: limits
                .max_compute_invocations_per_workgroup
                .min(limits.max_compute_workgroup_size_x),
            vector_bytes: 0,
            shared_bytes: limits.max_compute_workgroup_storage_size,
            max_bindings,
            threads: match info.device_type {
                wgpu::DeviceType::Cpu => 1 << 10,
                wgpu::DeviceType::IntegratedGpu => 1 << 14,
                _ => 1 << 17,
            },
            copies: false,
            matrix: false,
            wide: false,
            tf32: false,
            mul_high: false,
            // Mesa's `LP_MAX_TGSI_LOOP_ITERATIONS`.
            rounds: if info.name.contains("llvmpipe") { 65_535 } else { usize::MAX },
            awaits: false,
        };
        Ok(Wgpu {
            device: own,
            info,
            limits: Limits {
                body_operands: max_bindings.min(24),
                body_instructions: 96,
                computes_again: true,
                row: 4096,
                folds: 1,
            },
            target,
            queue: Arc::new(queue),
        })
    }
}

/// The features that are used where an adapter has them.
fn wanted(info: &wgpu::AdapterInfo, without: &Restrictions) -> wgpu::Features {
    use wgpu::Features;
    let mut wanted = Features::SHADER_INT64 | Features::SHADER_F64;
    wanted |= Features::PIPELINE_CACHE | Features::TIMESTAMP_QUERY;
    if !without.no_subgroups {
        wanted |= Features::SUBGROUP;
    }
    if !without.no_int16 {
        wanted |= Features::SHADER_I16;
    }
    // Elsewhere memory that the host can map is slow for the device.
    let unified =
        matches!(info.device_type, wgpu::DeviceType::IntegratedGpu | wgpu::DeviceType::Cpu);
    if unified && !without.no_mapping {
        wanted |= Features::MAPPABLE_PRIMARY_BUFFERS;
    }
    wanted
}
