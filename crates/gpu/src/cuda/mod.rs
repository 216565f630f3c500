//! NVIDIA's GPUs through CUDA.
//!
//! Nothing of CUDA is needed to build this or to start it: its libraries are looked for when the
//! first device of the kind is asked for. Where one is missing there are no devices, and
//! [`absence`] says why.

mod absorb;
mod answer;
mod attention;
mod commands;
mod compile;
mod convolution;
mod dnn;
mod faults;
mod geometry;
mod gpu;
mod graph;
mod lane;
mod library;
mod linalg;
mod marker;
mod matrices;
mod memory;
mod nvtx;
mod product;
mod run;
mod sequence;
mod staging;
mod together;
mod transform;

use std::any::Any;
use std::ffi::{CStr, c_char};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use cupola_core::backend::{
    self, Backend, Buffer, Executable, Kernel, Limits, MemoryStats, Registration, Segment,
};
use cupola_core::device::DeviceKind;
use cupola_core::event::Marker;
use cupola_core::prim::{Composite, KernelOp};
use cupola_core::{Aval, Device, Result};

use crate::ir::Target;
use crate::kernels::{claims, program};
use crate::prepared::prepare_all;
use compile::{Compiler, Kernels};
pub use cupola_core::precision::{MatmulPrecision, matmul_precision, set_matmul_precision};
use gpu::{Facts, Gpu, describe};

inventory::submit! {
    Registration {
        kind: DeviceKind::Cuda,
        has_hardware: || true,
        absence,
        discover: || found().iter().flatten().map(|gpu| gpu.clone() as Arc<dyn Backend>).collect(),
    }
}

/// Why there is no CUDA device; nothing where there is one.
pub fn absence() -> Vec<String> {
    let reason = found().as_ref().err();
    reason.map(|reason| format!("cuda: not available: {reason}")).into_iter().collect()
}

/// The devices, which are looked for once.
fn found() -> &'static Result<Vec<Arc<Cuda>>, String> {
    static FOUND: OnceLock<Result<Vec<Arc<Cuda>>, String>> = OnceLock::new();
    FOUND.get_or_init(discover)
}

fn discover() -> Result<Vec<Arc<Cuda>>, String> {
    library::DRIVER.load()?;
    // SAFETY: the library is loaded.
    asked(unsafe { sys::cuInit(0) })?;
    let mut count = 0;
    // SAFETY: the place is there.
    asked(unsafe { sys::cuDeviceGetCount(&mut count) })?;
    if count == 0 {
        return Err("the driver sees no device".into());
    }
    library::COMPILER.load()?;
    let compiler = Compiler::new()?;
    let mut reason = None;
    let mut devices = Vec::new();
    for ordinal in 0..count {
        // A device that cannot be used leaves the others their numbers.
        match Cuda::new(ordinal as u16, &compiler) {
            Ok(device) => devices.push(Arc::new(device)),
            Err(why) => reason = Some(why),
        }
    }
    match reason {
        Some(why) if devices.is_empty() => Err(why),
        _ => Ok(devices),
    }
}

/// The driver's answer to a question before any device is in use.
fn asked(code: sys::CUresult) -> Result<(), String> {
    match code {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        other => Err(describe(other)),
    }
}

fn facts(ordinal: u16) -> Result<Facts, String> {
    let mut handle = 0;
    // SAFETY: the place is there.
    asked(unsafe { sys::cuDeviceGet(&mut handle, i32::from(ordinal)) })?;
    let mut name = [0 as c_char; 256];
    // SAFETY: the name fits, or is cut.
    asked(unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as i32 - 1, handle) })?;
    let mut memory = 0;
    // SAFETY: the place is there.
    asked(unsafe { sys::cuDeviceTotalMem_v2(&mut memory, handle) })?;
    let attribute = |which: Attribute| {
        let mut value = 0;
        // SAFETY: the place is there.
        asked(unsafe { sys::cuDeviceGetAttribute(&mut value, which, handle) })
            .map(|()| value.max(0) as u32)
    };
    let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(Facts {
        handle,
        // SAFETY: the last byte is a zero.
        name: unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned(),
        capability: major * 10 + minor,
        memory,
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        threads: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        shared: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        has_pools: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0,
    })
}

/// An NVIDIA GPU. It is opened when it is first used: that takes time and memory, which a program
/// that only looks for devices does not spend.
pub struct Cuda {
    device: Device,
    facts: Facts,
    compiler: Compiler,
    limits: Limits,
    target: Target,
    gpu: OnceLock<Result<Arc<Gpu>>>,
}

impl Cuda {
    fn new(index: u16, compiler: &Compiler) -> Result<Self, String> {
        let facts = facts(index)?;
        compiler.check(facts.capability).map_err(|reason| format!("{}: {reason}", facts.name))?;
        let target = Target {
            int64: true,
            float64: true,
            int16: true,
            subgroup: 32,
            language: cupola_core::prim::call::Language::Cuda,
            native_math: true,
            wide_offsets: true,
            max_threads: 1024,
            max_blocks: 1 << 30,
            shared_bytes: facts.shared,
            max_bindings: 64,
            vector_bytes: 16,
            threads: facts.multiprocessors * facts.threads,
            copies: facts.capability >= 80,
            matrix: facts.capability >= 80,
            wide: facts.capability == 90 && std::env::var("CUPOLA_WGMMA").as_deref() != Ok("0"),
            tf32: true,
            mul_high: true,
            rounds: usize::MAX,
            awaits: facts.capability >= 70,
        };
        Ok(Cuda {
            device: Device { kind: DeviceKind::Cuda, index },
            facts,
            compiler: compiler.clone(),
            limits: Limits {
                body_operands: 48,
                body_instructions: 256,
                row: 1 << 15,
                folds: 2,
                computes_again: true,
            },
            target,
            gpu: OnceLock::new(),
        })
    }

    /// The device, open.
    fn gpu(&self) -> Result<&Arc<Gpu>> {
        let opened = self.gpu.get_or_init(|| {
            let kernels = Kernels::new(&self.compiler, self.facts.capability);
            let kernels = kernels.map_err(cupola_core::Error::Device)?;
            Gpu::new(self.device, self.facts.clone(), kernels).map(Arc::new)
        });
        opened.as_ref().map_err(Clone::clone)
    }
}

impl Backend for Cuda {
    fn device(&self) -> Device {
        self.device
    }

    fn description(&self) -> String {
        let Facts { name, capability, memory, .. } = &self.facts;
        let (major, minor) = (capability / 10, capability % 10);
        let gib = *memory as f64 / (1_u64 << 30) as f64;
        let compiler = &self.compiler;
        let missing: String = (library::OPTIONAL.iter())
            .filter_map(|wanted| wanted.load().err())
            .map(|reason| format!(", {reason}"))
            .collect();
        format!("{name}, compute capability {major}.{minor}, {gib:.1} GiB, {compiler}{missing}")
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn claims(&self, composite: &Composite, inputs: &[&Aval]) -> bool {
        claims(composite, inputs, u64::MAX, &self.target)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        self.gpu()?.alloc(bytes)
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        let gpu = self.gpu()?;
        let buffer = gpu.alloc(bytes.len())?;
        gpu.write(&buffer, 0, bytes)?;
        Ok(buffer)
    }

    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        self.gpu()?.write(buffer, offset, bytes)
    }

    fn download(&self, buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
        self.gpu()?.read(buffer, offset, out)
    }

    fn prepare(&self, segment: &Segment) -> Result<Arc<dyn Executable>> {
        let precision = match &segment.kernel {
            Kernel::Op(KernelOp::Dot(dot)) => dot.precision,
            Kernel::Op(KernelOp::Conv(conv)) => conv.precision,
            Kernel::Composite(Composite::Attention(op)) => op.scores.precision,
            Kernel::Composite(Composite::AttentionGrad(op)) => op.scores.precision,
            Kernel::Composite(Composite::BatchNorm(_) | Composite::QuantizedDot(_))
            | Kernel::Op(_)
            | Kernel::Map(_)
            | Kernel::Reduce { .. }
            | Kernel::Rows { .. }
            | Kernel::Control(_)
            | Kernel::Custom(_) => MatmulPrecision::Full,
        };
        let tf32 = precision == MatmulPrecision::Tf32;
        let gpu = self.gpu()?;
        let target = Target { tf32, ..self.target.clone() };
        Ok(Arc::new(run::Prepared::new(gpu, segment, &target)?))
    }

    fn lacks(&self, segment: &Segment) -> Option<String> {
        let Some(op) = linalg::op(segment) else {
            return program(segment, &self.target).err().map(|missing| missing.0);
        };
        let absence = linalg::Solvers::check(op).err();
        absence.or_else(|| linalg::plan(op, segment, &self.target).err().map(|missing| missing.0))
    }

    fn prepare_all(&self, segments: &[&Segment]) -> Vec<Result<Arc<dyn Executable>>> {
        prepare_all(segments, |segment| self.prepare(segment))
    }

    fn sequence(
        &self,
        steps: &[Arc<dyn Executable>],
        at_once: &[Range<usize>],
    ) -> Option<Box<dyn backend::Sequence>> {
        let own = |step: &Arc<dyn Executable>| -> Option<Arc<run::Prepared>> {
            (step.clone() as Arc<dyn Any + Send + Sync>).downcast().ok()
        };
        // A step that runs elsewhere in between has to be waited for.
        let steps: Vec<_> = steps.iter().map(own).collect::<Option<_>>()?;
        if steps.iter().any(|step| step.is_alone()) {
            return None;
        }
        Some(Box::new(sequence::Sequence::new(self.gpu().ok()?, steps, at_once)))
    }

    fn memory(&self) -> MemoryStats {
        match self.gpu.get() {
            Some(Ok(gpu)) => gpu.memory(),
            _ => MemoryStats::default(),
        }
    }

    fn capacity(&self) -> Option<usize> {
        Some(self.facts.memory)
    }

    fn trim(&self) {
        if let Some(Ok(gpu)) = self.gpu.get() {
            // What cannot be given back is kept.
            let _ = gpu.trim();
        }
    }

    fn set_peak(&self, to: usize) {
        if let Some(Ok(gpu)) = self.gpu.get() {
            gpu.set_peak(to);
        }
    }

    fn set_cache_limit(&self, bytes: Option<usize>) {
        if let Some(Ok(gpu)) = self.gpu.get() {
            gpu.set_cache_limit(bytes);
        }
    }

    fn mark(&self) -> Result<Box<dyn Marker>> {
        Ok(Box::new(marker::Mark::new(self.gpu()?.clone())?))
    }

    fn has_marks(&self) -> bool {
        true
    }

    fn synchronize(&self) -> Result<()> {
        match self.gpu.get() {
            Some(opened) => opened.as_ref().map_err(Clone::clone)?.synchronize(),
            None => Ok(()),
        }
    }

    fn forget_faults(&self) {
        if let Some(Ok(gpu)) = self.gpu.get() {
            // Where that fails everything after it does.
            let _ = gpu.forget_faults();
        }
    }
}
