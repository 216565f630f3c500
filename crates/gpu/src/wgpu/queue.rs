//! The queue of a wgpu device: pipelines, launches that are gathered into few submissions, and
//! transfers in the order of the launches.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use cupola_core::backend::{Buffer, MemoryStats};
use cupola_core::{Device, Error, Result};

use super::memory::{GpuMemory, Pool, class};
use crate::ir::Kernel;

/// Bytes of arguments that one submission can have.
const ARGS: u64 = 1 << 16;
/// Launches that are gathered before they are submitted.
const GATHERED: usize = 128;

/// A compiled kernel.
pub struct Pipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    /// Bytes of its arguments.
    args: u64,
}

/// A device and its queue.
pub struct Queue {
    own: Device,
    device: wgpu::Device,
    queue: wgpu::Queue,
    pool: Arc<Pool>,
    pipelines: Mutex<HashMap<String, Arc<Pipeline>>>,
    gathered: Mutex<Gathered>,
    /// Where arguments lie during a submission.
    args: wgpu::Buffer,
    args_step: u64,
    max_binding: u64,
    faults: Arc<Faults>,
    /// What kernels may find wrong with values: the fault of number n is at n − 1.
    known: Mutex<Vec<Error>>,
    /// The number of a fault that came up, or 0.
    word: Buffer,
}

/// What went wrong outside of any call.
#[derive(Default)]
struct Faults {
    lost: AtomicBool,
    first: Mutex<Option<String>>,
}

/// Launches that are not submitted yet.
#[derive(Default)]
struct Gathered {
    launches: Vec<Launch>,
    args: Vec<u8>,
}

struct Launch {
    pipeline: Arc<Pipeline>,
    bindings: wgpu::BindGroup,
    offset: Option<u32>,
    grid: [u32; 2],
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    /// The queue of a device.
    pub fn new(
        own: Device,
        device: wgpu::Device,
        queue: wgpu::Queue,
        limits: &wgpu::Limits,
    ) -> Result<Self> {
        let faults = Arc::new(Faults::default());
        let (lost, other) = (faults.clone(), faults.clone());
        device.set_device_lost_callback(move |_, message| {
            lost.lost.store(true, Ordering::Release);
            lock(&lost.first).get_or_insert(message);
        });
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            lock(&other.first).get_or_insert(error.to_string());
        }));
        let args = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("arguments"),
            size: ARGS,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let pool = Arc::<Pool>::default();
        let word = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("faults"),
            size: 256,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        queue.write_buffer(&word, 0, &[0; 4]);
        let word = Buffer::new(GpuMemory::new(word, 4, 256, own, Arc::default()));
        let made = Queue {
            own,
            device,
            queue,
            pool,
            pipelines: Mutex::default(),
            gathered: Mutex::default(),
            args,
            args_step: u64::from(limits.min_uniform_buffer_offset_alignment).max(16),
            max_binding: limits.max_storage_buffer_binding_size.min(limits.max_buffer_size),
            faults,
            known: Mutex::default(),
            word,
        };
        made.check()?;
        Ok(made)
    }

    /// The word that kernels store the number of a fault in.
    pub fn faults(&self) -> &Buffer {
        &self.word
    }

    /// The number of a fault.
    pub fn fault(&self, error: &Error) -> u32 {
        let mut known = lock(&self.known);
        let text = error.to_string();
        let found = known.iter().position(|e| e.to_string() == text);
        let at = found.unwrap_or_else(|| {
            known.push(error.clone());
            known.len() - 1
        });
        at as u32 + 1
    }

    /// An error that came up since the last look.
    fn check(&self) -> Result<()> {
        let lost = self.faults.lost.load(Ordering::Acquire);
        let first = match lost {
            true => lock(&self.faults.first).clone(),
            false => lock(&self.faults.first).take(),
        };
        match first {
            Some(message) if lost => Err(Error::Device(format!("{} is lost: {message}", self.own))),
            Some(message) => Err(Error::Device(format!("{}: {message}", self.own))),
            None => Ok(()),
        }
    }

    /// Memory for `bytes` bytes.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer> {
        let out_of_memory = || Error::OutOfMemory {
            device: self.own.to_string(),
            bytes,
            what: "an array".to_owned(),
        };
        let class = class(bytes);
        if class > self.max_binding {
            return Err(out_of_memory());
        }
        let buffer = match self.pool.take(class) {
            Some(buffer) => buffer,
            None => match self.create(class).or_else(|| {
                self.trim();
                self.create(class)
            }) {
                Some(buffer) => buffer,
                None => {
                    self.pool.give_up(class);
                    self.check()?;
                    return Err(out_of_memory());
                }
            },
        };
        Ok(Buffer::new(GpuMemory::new(buffer, bytes, class, self.own, self.pool.clone())))
    }

    fn create(&self, size: u64) -> Option<wgpu::Buffer> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        match pollster::block_on(scope.pop()) {
            Some(_) => None,
            None => Some(buffer),
        }
    }

    fn memory_of<'b>(&self, buffer: &'b Buffer) -> Result<&'b wgpu::Buffer> {
        buffer
            .downcast::<GpuMemory>()
            .filter(|_| buffer.device() == self.own)
            .and_then(GpuMemory::buffer)
            .ok_or_else(|| Error::Device(format!("{} cannot use {buffer:?}", self.own)))
    }

    /// The pipeline of a kernel whose text is `text`.
    pub fn pipeline(&self, text: &str, kernel: &Kernel) -> Result<Arc<Pipeline>> {
        if let Some(known) = lock(&self.pipelines).get(text) {
            return Ok(known.clone());
        }
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let made = self.compile(text, kernel);
        if let Some(error) = pollster::block_on(scope.pop()) {
            return Err(Error::Device(format!(
                "{}: the kernel {} does not compile: {error}",
                self.own, kernel.name
            )));
        }
        let made = Arc::new(made);
        lock(&self.pipelines).insert(text.to_owned(), made.clone());
        Ok(made)
    }

    fn compile(&self, text: &str, kernel: &Kernel) -> Pipeline {
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(&kernel.name),
            source: wgpu::ShaderSource::Wgsl(text.into()),
        };
        // SAFETY: kernels index within their buffers, which the planner's layouts guarantee, and
        // their loops end.
        let module = unsafe {
            self.device
                .create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
        };
        let entry =
            |index: usize, ty: wgpu::BufferBindingType, dynamic: bool| wgpu::BindGroupLayoutEntry {
                binding: index as u32,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty,
                    has_dynamic_offset: dynamic,
                    min_binding_size: None,
                },
                count: None,
            };
        let storage = wgpu::BufferBindingType::Storage { read_only: false };
        let mut entries: Vec<_> =
            (0..kernel.bindings.len()).map(|i| entry(i, storage, false)).collect();
        if kernel.args > 0 {
            entries.push(entry(kernel.bindings.len(), wgpu::BufferBindingType::Uniform, true));
        }
        let layout = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &entries,
        });
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&kernel.name),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        });
        Pipeline { pipeline, layout, args: u64::from(kernel.args.div_ceil(4) * 16) }
    }

    /// Gathers a launch.
    pub fn launch(
        &self,
        pipeline: &Arc<Pipeline>,
        grid: [u32; 2],
        buffers: &[&Buffer],
        words: &[u32],
    ) -> Result<()> {
        let mut entries = Vec::with_capacity(buffers.len() + 1);
        for (index, buffer) in buffers.iter().enumerate() {
            entries.push(wgpu::BindGroupEntry {
                binding: index as u32,
                resource: self.memory_of(buffer)?.as_entire_binding(),
            });
        }
        if pipeline.args > 0 {
            entries.push(wgpu::BindGroupEntry {
                binding: buffers.len() as u32,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: &self.args,
                    offset: 0,
                    size: wgpu::BufferSize::new(pipeline.args),
                }),
            });
        }
        let bindings = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.layout,
            entries: &entries,
        });
        let mut gathered = lock(&self.gathered);
        let full =
            gathered.args.len() as u64 + pipeline.args.next_multiple_of(self.args_step) > ARGS;
        if full || gathered.launches.len() >= GATHERED {
            self.submit(&mut gathered);
        }
        let offset = (pipeline.args > 0).then(|| {
            let start = gathered.args.len();
            gathered.args.extend(words.iter().flat_map(|w| w.to_le_bytes()));
            let end = start as u64 + pipeline.args.next_multiple_of(self.args_step);
            gathered.args.resize(end as usize, 0);
            start as u32
        });
        gathered.launches.push(Launch { pipeline: pipeline.clone(), bindings, offset, grid });
        drop(gathered);
        self.check()
    }

    /// Gives the device what is gathered.
    fn submit(&self, gathered: &mut Gathered) {
        if gathered.launches.is_empty() {
            return;
        }
        if !gathered.args.is_empty() {
            self.queue.write_buffer(&self.args, 0, &gathered.args);
        }
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            for launch in &gathered.launches {
                pass.set_pipeline(&launch.pipeline.pipeline);
                pass.set_bind_group(0, &launch.bindings, launch.offset.as_slice());
                pass.dispatch_workgroups(launch.grid[0], launch.grid[1], 1);
            }
        }
        self.queue.submit([encoder.finish()]);
        gathered.launches.clear();
        gathered.args.clear();
    }

    /// Writes `bytes` from `offset` on, after everything that was launched.
    pub fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let memory = self.memory_of(buffer)?;
        self.submit(&mut lock(&self.gathered));
        // Whole words only: what is around the bytes is read first.
        let (start, end) = (offset / 4 * 4, (offset + bytes.len()).div_ceil(4) * 4);
        if start == offset && end == offset + bytes.len() {
            self.queue.write_buffer(memory, offset as u64, bytes);
        } else {
            let mut whole = vec![0; end - start];
            if start != offset || offset + bytes.len() < buffer.bytes() {
                self.read_words(memory, start as u64, &mut whole)?;
            }
            whole[offset - start..][..bytes.len()].copy_from_slice(bytes);
            self.queue.write_buffer(memory, start as u64, &whole);
        }
        self.check()
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
        self.submit(&mut lock(&self.gathered));
        let (start, end) = (offset / 4 * 4, (offset + out.len()).div_ceil(4) * 4);
        if start == offset && end == offset + out.len() {
            return self.read_words(memory, start as u64, out);
        }
        let mut whole = vec![0; end - start];
        self.read_words(memory, start as u64, &mut whole)?;
        out.copy_from_slice(&whole[offset - start..][..out.len()]);
        Ok(())
    }

    /// Reads whole words through a mapped buffer.
    fn read_words(&self, memory: &wgpu::Buffer, offset: u64, out: &mut [u8]) -> Result<()> {
        let size = out.len() as u64;
        let word = self.memory_of(&self.word)?;
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("download"),
            size: size + 4,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(memory, offset, &staging, 0, size);
        encoder.copy_buffer_to_buffer(word, 0, &staging, size, 4);
        self.queue.submit([encoder.finish()]);
        let (done, mapped) = mpsc::channel();
        staging.slice(..).map_async(wgpu::MapMode::Read, move |result| {
            // Where nobody waits any more nobody needs to know.
            let _ = done.send(result);
        });
        self.wait()?;
        let failed = |cause: &dyn std::fmt::Display| {
            Error::Device(format!("{}: a download failed: {cause}", self.own))
        };
        mapped.recv().map_err(|cause| failed(&cause))?.map_err(|cause| failed(&cause))?;
        let view = staging.slice(..).get_mapped_range().map_err(|cause| failed(&cause))?;
        let (content, fault) = view.split_at(size as usize);
        out.copy_from_slice(content);
        let number = u32::from_le_bytes([fault[0], fault[1], fault[2], fault[3]]);
        if number != 0 {
            self.queue.write_buffer(word, 0, &[0; 4]);
            let known = lock(&self.known).get(number as usize - 1).cloned();
            return Err(
                known.unwrap_or_else(|| Error::Device(format!("{}: fault {number}", self.own)))
            );
        }
        self.check()
    }

    fn wait(&self) -> Result<()> {
        let waited = self.device.poll(wgpu::PollType::wait_indefinitely());
        self.check()?;
        waited
            .map(|_| ())
            .map_err(|cause| Error::Device(format!("{}: waiting failed: {cause}", self.own)))
    }

    /// Waits for everything that was launched.
    pub fn synchronize(&self) -> Result<()> {
        self.submit(&mut lock(&self.gathered));
        self.wait()
    }

    /// How much memory is in use and kept.
    pub fn memory(&self) -> MemoryStats {
        self.pool.stats()
    }

    /// Gives kept memory back.
    pub fn trim(&self) {
        self.pool.trim();
    }
}
