//! The queue of a wgpu device: memory, pipelines, and launches that are gathered into few
//! submissions.

use std::error::Error as _;
use std::iter::successors;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use cupola_core::backend::{Buffer, MemoryStats};
use cupola_core::{DType, Device, Error, Result, interrupt};
use smallvec::SmallVec;
use wgpu::naga;
use wgpu::wgc::pipeline::CreateShaderModuleError;

use super::marker::{Marks, Place};
use super::memory::{Buffers, CLASSES, GpuMemory};
use super::transfer::Counts;
use crate::faults::{self, Faults, PLACES};
use crate::ir::{Access, Binding, Kernel};
use crate::kernels::{HEADER, SOURCE, users_name};
use crate::made::Made;
use crate::store::Store;

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

/// Compiled kernels that the driver keeps on disk.
pub struct Kept {
    cache: wgpu::PipelineCache,
    store: Store,
    /// Whether there are some that are not on disk.
    fresh: AtomicBool,
}

/// By what the kernels of an adapter are found in its store.
const KEPT: &str = "pipelines";

impl Kept {
    /// Those of `device`, which is of `adapter`; none where its driver keeps none.
    pub fn open(device: &wgpu::Device, adapter: &wgpu::AdapterInfo) -> Option<Kept> {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let store = Store::open(&wgpu::util::pipeline_cache_key(adapter)?)?;
        let data = store.get(KEPT);
        let descriptor =
            wgpu::PipelineCacheDescriptor { label: None, data: data.as_deref(), fallback: true };
        // SAFETY: the data is what such a cache gave, byte for byte, and is found by its adapter.
        let cache = unsafe { device.create_pipeline_cache(&descriptor) };
        Some(Kept { cache, store, fresh: AtomicBool::new(false) })
    }

    fn keep(&self) {
        if self.fresh.swap(false, Ordering::Relaxed)
            && let Some(data) = self.cache.get_data()
        {
            self.store.put(KEPT, &data);
        }
    }
}

/// How a device is used.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most bytes that a kernel may bind, where the device could bind more.
    pub max_binding: u64,
    /// The most bytes of all buffers, where the device has more.
    pub max_memory: u64,
    /// Whether the host maps the memory that kernels use.
    pub mapped: bool,
}

/// What a kernel is given of a buffer.
#[derive(Clone, Copy)]
pub struct Bound<'a> {
    buffer: &'a wgpu::Buffer,
    start: u64,
    /// How many bytes from there, or all.
    size: Option<wgpu::BufferSize>,
}

/// A device and its queue.
pub struct Queue {
    own: Device,
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    /// Held while the device is asked what it is done with: wgpu panics where one thread sees what another one has
    /// found out since it waited.
    asking: Mutex<()>,
    pub(super) mapped: bool,
    pub(super) counts: Counts,
    /// The last submission that the device is done with.
    completed: Arc<AtomicU64>,
    buffers: Arc<Buffers>,
    pipelines: Made<Kernel, Arc<Pipeline>>,
    kept: Option<Kept>,
    pub(super) gathered: Mutex<Gathered>,
    /// Where arguments lie during a submission.
    args: wgpu::Buffer,
    args_step: u64,
    max_binding: u64,
    max_buffer: u64,
    max_memory: u64,
    /// What the start of a binding is a multiple of.
    align: u64,
    mishaps: Arc<Mishaps>,
    pub(super) faults: Faults,
    /// The number of a fault that came up for each thread's place, or 0.
    words: [OnceLock<Buffer>; PLACES],
}

/// What went wrong outside of any call.
#[derive(Default)]
struct Mishaps {
    lost: AtomicBool,
    first: Mutex<Option<String>>,
}

/// Launches that are not submitted yet.
#[derive(Default)]
pub(super) struct Gathered {
    launches: Vec<Launch>,
    args: Vec<u8>,
    pub(super) marks: Marks,
}

impl Gathered {
    /// How many launches there are.
    pub(super) fn count(&self) -> usize {
        self.launches.len()
    }
}

struct Launch {
    pipeline: Arc<Pipeline>,
    bindings: wgpu::BindGroup,
    offset: Option<u32>,
    grid: [u32; 2],
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What memory is used for.
fn usage(mapped: bool) -> wgpu::BufferUsages {
    let own =
        wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    match mapped {
        true => own | wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE,
        false => own,
    }
}

impl Queue {
    /// The queue of a device.
    pub fn new(
        own: Device,
        device: wgpu::Device,
        queue: wgpu::Queue,
        limits: &wgpu::Limits,
        options: Options,
        kept: Option<Kept>,
    ) -> Result<Self> {
        let mishaps = Arc::new(Mishaps::default());
        let (lost, other) = (mishaps.clone(), mishaps.clone());
        device.set_device_lost_callback(move |reason, message| {
            lost.lost.store(true, Ordering::Release);
            let text = if message.is_empty() { format!("{reason:?}") } else { message };
            lock(&lost.first).get_or_insert(text);
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
        let made = Queue {
            own,
            device,
            queue,
            asking: Mutex::default(),
            mapped: options.mapped,
            counts: Counts::default(),
            completed: Arc::default(),
            buffers: Arc::default(),
            pipelines: Made::default(),
            kept,
            gathered: Mutex::default(),
            args,
            args_step: u64::from(limits.min_uniform_buffer_offset_alignment).max(16),
            // Offsets from a binding's start have 32 bits.
            max_binding: limits
                .max_storage_buffer_binding_size
                .min(limits.max_buffer_size)
                .min(options.max_binding)
                .min(u64::from(u32::MAX) / 256 * 256),
            max_buffer: limits.max_buffer_size,
            max_memory: options.max_memory,
            align: u64::from(limits.min_storage_buffer_offset_alignment).max(16),
            mishaps,
            faults: Faults::default(),
            words: [const { OnceLock::new() }; PLACES],
        };
        made.check()?;
        Ok(made)
    }

    /// Which device this is.
    pub fn device(&self) -> Device {
        self.own
    }

    /// The most bytes from the first to the last element of an operand, which may start anywhere.
    pub fn max_reach(&self) -> u64 {
        self.max_binding - self.align
    }

    /// How many neighbouring threads exchange values without shared memory: seen, since no standard
    /// says that threads of one subgroup are neighbours. 0 where they are not. `least` is what the
    /// device promises for every kernel, where it promises anything.
    pub fn subgroup(&self, least: Option<u32>) -> Result<u32> {
        const THREADS: u32 = 256;
        const TEXT: &str = "\
@group(0) @binding(0) var<storage, read_write> b0: array<u32>;
@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(subgroup_invocation_id) lane: u32,
        @builtin(subgroup_size) size: u32) {
    b0[thread] = select(0u, size, lane == thread % size);
}
";
        let kernel = Kernel {
            name: "subgroups".into(),
            block: THREADS,
            at_once: 1,
            bindings: vec![Binding { dtype: DType::U32, access: Access::Write, together: 1 }],
            args: 0,
            sizes: 0,
            shared: Vec::new(),
            locals: Vec::new(),
            dynamic: 0,
            header: String::new(),
            body: Vec::new(),
        };
        let seen = self.alloc(THREADS as usize * 4)?;
        let pipeline = self.pipeline(&kernel, || TEXT.to_owned())?;
        self.launch(&pipeline, [1, 1], &[self.whole(&seen)?], &[])?;
        let mut sizes = [0; THREADS as usize * 4];
        self.read(&seen, 0, &mut sizes)?;
        let mut sizes = sizes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let first = sizes.next().unwrap_or(0);
        let even = first.is_power_of_two() && sizes.all(|size| size == first);
        Ok(if even { least.map_or(first, |least| least.min(first)) } else { 0 })
    }

    /// Loses the device.
    pub fn lose(&self) {
        self.device.destroy();
        // The loss is told by the next poll.
        let _ = self.ask(wgpu::PollType::Poll);
    }

    /// Asks the device what it is done with, or waits for it. Where another thread does that there is nothing to be
    /// asked.
    pub(super) fn ask(&self, how: wgpu::PollType) -> std::result::Result<(), wgpu::PollError> {
        let _guard = match (self.asking.try_lock(), &how) {
            (Ok(guard), _) => guard,
            (Err(TryLockError::WouldBlock), wgpu::PollType::Poll) => return Ok(()),
            (Err(_), _) => lock(&self.asking),
        };
        self.device.poll(how).map(|_| ())
    }

    /// The word in which kernels that this thread launches store the number of a fault.
    pub fn fault_word(&self) -> &Buffer {
        self.words[faults::place()].get_or_init(|| {
            let word = self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("faults"),
                size: 256,
                usage: usage(self.mapped),
                mapped_at_creation: false,
            });
            // What is new holds zeros.
            Buffer::new(GpuMemory::new((word, 0), 4, 256, self.own, None))
        })
    }

    /// Whether kernels may report anything.
    pub fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Lets nobody find what kernels that this thread launched so far report.
    pub fn forget_faults(&self) -> Result<()> {
        let word = self.memory_of(self.fault_word())?;
        // Not while another thread has it mapped.
        let mut gathered = lock(&self.gathered);
        self.submit(&mut gathered);
        self.queue.write_buffer(word, 0, &[0; 4]);
        self.flush(false);
        drop(gathered);
        Ok(())
    }

    /// The number of a fault.
    pub fn fault(&self, error: &Error) -> u32 {
        self.faults.number(error)
    }

    /// An error that came up since the last look.
    pub(super) fn check(&self) -> Result<()> {
        let lost = self.mishaps.lost.load(Ordering::Acquire);
        let first = match lost {
            true => lock(&self.mishaps.first).clone(),
            false => lock(&self.mishaps.first).take(),
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
        if self.mishaps.lost.load(Ordering::Acquire) {
            self.check()?;
        }
        let class = CLASSES.of(bytes);
        if class as u64 > self.max_buffer {
            return Err(out_of_memory());
        }
        let known = self.buffers.take(class);
        let made = || {
            let buffer = self.create(class as u64).or_else(|| {
                self.trim();
                self.create(class as u64)
            })?;
            self.buffers.pool().add(class);
            Some((buffer, 0))
        };
        let Some(buffer) = known.or_else(made) else {
            self.check()?;
            return Err(out_of_memory());
        };
        Ok(Buffer::new(GpuMemory::new(buffer, bytes, class, self.own, Some(self.buffers.clone()))))
    }

    /// Memory of so many bytes each, at once.
    pub fn pieces(&self, sizes: &[usize]) -> Result<SmallVec<[Buffer; 4]>> {
        sizes.iter().map(|&bytes| self.alloc(bytes)).collect()
    }

    fn create(&self, size: u64) -> Option<wgpu::Buffer> {
        let MemoryStats { active, cached, .. } = self.memory();
        if size > self.max_memory.saturating_sub((active + cached) as u64) {
            return None;
        }
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: usage(self.mapped),
            mapped_at_creation: false,
        });
        match pollster::block_on(scope.pop()) {
            Some(_) => None,
            None => Some(buffer),
        }
    }

    pub(super) fn memory_of<'b>(&self, buffer: &'b Buffer) -> Result<&'b wgpu::Buffer> {
        buffer
            .downcast::<GpuMemory>()
            .filter(|_| buffer.device() == self.own)
            .and_then(GpuMemory::buffer)
            .ok_or_else(|| Error::Device(format!("{} cannot use {buffer:?}", self.own)))
    }

    /// All of a buffer.
    pub fn whole<'b>(&self, buffer: &'b Buffer) -> Result<Bound<'b>> {
        Ok(Bound { buffer: self.memory_of(buffer)?, start: 0, size: None })
    }

    /// What a kernel needs of `buffer` for the elements, of `size` bytes, from `offset` plus the
    /// first to `offset` plus the second of `span`; and which element of that `offset` is.
    pub fn bound<'b>(
        &self,
        buffer: &'b Buffer,
        offset: isize,
        span: Option<(isize, isize)>,
        size: usize,
    ) -> Result<(Bound<'b>, u32)> {
        let whole = self.whole(buffer)?;
        let all = whole.buffer.size();
        if all <= self.max_binding {
            return Ok((whole, offset as u32));
        }
        let (low, high) = span.map_or((0, 0), |(low, high)| (offset + low, offset + high + 1));
        let start = low as u64 * size as u64 / self.align * self.align;
        let end = (high as u64 * size as u64).next_multiple_of(4).max(start + 16).min(all);
        let bytes = wgpu::BufferSize::new(end - start);
        let first = offset - (start / size as u64) as isize;
        Ok((Bound { size: bytes, start, ..whole }, first as u32))
    }

    /// The pipeline of a kernel, whose text `text` gives.
    pub fn pipeline(
        &self,
        kernel: &Kernel,
        text: impl FnOnce() -> String,
    ) -> Result<Arc<Pipeline>> {
        self.pipelines.get(kernel, || self.make(kernel, &text()))
    }

    fn make(&self, kernel: &Kernel, text: &str) -> Result<Arc<Pipeline>> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let made = self.compile(text, kernel);
        if let Some(error) = pollster::block_on(scope.pop()) {
            if kernel.text().is_some() {
                let said =
                    users_line(&error, text).unwrap_or_else(|| error.to_string().trim().into());
                return Err(Error::User(format!("{}: {said}", users_name(&kernel.name))));
            }
            return Err(Error::Device(format!(
                "{}: the kernel {} does not compile: {error}",
                self.own, kernel.name
            )));
        }
        self.kept.iter().for_each(|kept| kept.fresh.store(true, Ordering::Relaxed));
        Ok(Arc::new(made))
    }

    /// Keeps what was compiled for the next process.
    pub fn keep(&self) {
        self.kept.iter().for_each(Kept::keep);
    }

    fn compile(&self, text: &str, kernel: &Kernel) -> Pipeline {
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(&kernel.name),
            source: wgpu::ShaderSource::Wgsl(text.into()),
        };
        // Of a text nobody knows where it writes.
        let checks = match kernel.text() {
            Some(_) => wgpu::ShaderRuntimeChecks::checked(),
            None => wgpu::ShaderRuntimeChecks::unchecked(),
        };
        // SAFETY: other kernels index within their buffers, which the planner's layouts and checks of users'
        // indices guarantee, and their loops end or are the user's.
        let module = unsafe { self.device.create_shader_module_trusted(descriptor, checks) };
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
        let storage =
            |i: usize| wgpu::BufferBindingType::Storage { read_only: kernel.only_reads(i) };
        let mut entries: Vec<_> =
            (0..kernel.bindings.len()).map(|i| entry(i, storage(i), false)).collect();
        if kernel.words() > 0 {
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
            cache: self.kept.as_ref().map(|kept| &kept.cache),
        });
        Pipeline { pipeline, layout, args: u64::from(kernel.words().div_ceil(4) * 16) }
    }

    /// Gathers a launch.
    pub fn launch(
        &self,
        pipeline: &Arc<Pipeline>,
        grid: [u32; 2],
        buffers: &[Bound<'_>],
        words: &[u32],
    ) -> Result<()> {
        let mut entries = Vec::with_capacity(buffers.len() + 1);
        for (index, bound) in buffers.iter().enumerate() {
            entries.push(wgpu::BindGroupEntry {
                binding: index as u32,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: bound.buffer,
                    offset: bound.start,
                    size: bound.size,
                }),
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

    /// Submits, and counts that where mappings need to know what the device is done with.
    pub(super) fn submit_now(&self, commands: Option<wgpu::CommandBuffer>) {
        self.queue.submit(commands);
        if self.mapped {
            let (number, completed) = (self.buffers.count_submission(), self.completed.clone());
            self.queue.on_submitted_work_done(move || {
                completed.fetch_max(number, Ordering::AcqRel);
            });
        }
    }

    /// Whether the device is done with submission `number`, as far as there was one, when nothing
    /// is gathered.
    pub(super) fn is_done(&self, number: u64) -> bool {
        let number = number.min(self.buffers.submitted());
        let done = || self.completed.load(Ordering::Acquire) >= number;
        done() || self.ask(wgpu::PollType::Poll).is_ok() && done()
    }

    /// Gives the device what is gathered.
    pub(super) fn submit(&self, gathered: &mut Gathered) {
        if gathered.launches.is_empty() && gathered.marks.places.is_empty() {
            return;
        }
        if !gathered.args.is_empty() {
            self.queue.write_buffer(&self.args, 0, &gathered.args);
        }
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut pass = |launches: &[Launch], mark: Option<&Place>| {
            let times = mark.map(|mark| wgpu::ComputePassTimestampWrites {
                query_set: &mark.times.queries,
                beginning_of_pass_write_index: None,
                end_of_pass_write_index: Some(mark.index),
            });
            let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes: times };
            let mut pass = encoder.begin_compute_pass(&descriptor);
            for launch in launches {
                pass.set_pipeline(&launch.pipeline.pipeline);
                pass.set_bind_group(0, &launch.bindings, launch.offset.as_slice());
                pass.dispatch_workgroups(launch.grid[0], launch.grid[1], 1);
            }
        };
        // A timestamp is written at the end of a pass.
        let mut start = 0;
        for (end, place) in &gathered.marks.places {
            pass(&gathered.launches[start..*end], Some(place));
            start = *end;
        }
        if start < gathered.launches.len() {
            pass(&gathered.launches[start..], None);
        }
        self.submit_now(Some(encoder.finish()));
        if !gathered.marks.places.is_empty() {
            let done = std::mem::take(&mut gathered.marks.done);
            self.queue.on_submitted_work_done(move || done.store(true, Ordering::Release));
            gathered.marks.places.clear();
        }
        gathered.launches.clear();
        gathered.args.clear();
    }

    /// Lets the device tell what it is done with.
    pub(super) fn poll(&self) -> Result<()> {
        let polled = self.ask(wgpu::PollType::Poll);
        self.check()?;
        polled.map_err(|cause| Error::Device(format!("{}: asking failed: {cause}", self.own)))
    }

    /// Whether the device has timestamps.
    pub fn has_times(&self) -> bool {
        self.device.features().contains(wgpu::Features::TIMESTAMP_QUERY)
            && self.queue.get_timestamp_period() > 0.0
    }

    pub(super) fn wait(&self) -> Result<()> {
        let waited = self.ask(wgpu::PollType::wait_indefinitely());
        self.check()?;
        waited.map_err(|cause| Error::Device(format!("{}: waiting failed: {cause}", self.own)))
    }

    /// Waits for everything that was launched, or until the host stops the waiting.
    pub fn synchronize(&self) -> Result<()> {
        self.submit(&mut lock(&self.gathered));
        let timeout = Some(interrupt::PATIENCE);
        let wait = || wgpu::PollType::Wait { submission_index: None, timeout };
        while let Err(wgpu::PollError::Timeout) = self.ask(wait()) {
            interrupt::check()?;
        }
        self.wait()?;
        if !self.has_faults() {
            return Ok(());
        }
        // A read is where a fault comes up.
        self.read_words(self.memory_of(self.fault_word())?, 0, &mut [0; 4])
    }

    /// How much memory is in use and kept.
    pub fn memory(&self) -> MemoryStats {
        self.buffers.pool().stats()
    }

    /// Counts the most memory in use anew, from so much at least.
    pub fn set_peak(&self, to: usize) {
        self.buffers.pool().set_peak(to);
    }

    /// Bounds what is kept.
    pub fn set_cache_limit(&self, bytes: Option<usize>) {
        self.buffers.pool().set_limit(bytes);
    }

    /// Gives kept memory back.
    pub fn trim(&self) {
        drop(self.buffers.pool().drain());
    }
}

/// What a compiler says of a user's text, which stands somewhere in `text`: with the user's own line. None where it
/// is about something else.
fn users_line(error: &wgpu::Error, text: &str) -> Option<String> {
    let mut causes = successors(error.source(), |&cause| cause.source());
    let (message, span) = match causes.find_map(|cause| cause.downcast_ref())? {
        CreateShaderModuleError::Parsing(wrong) => {
            (wrong.inner.message().to_owned(), wrong.inner.labels().next()?.0)
        }
        // What the text means is named by the innermost cause and those around it.
        CreateShaderModuleError::Validation(wrong) => {
            let wrong = &wrong.inner;
            let notes = successors(wrong.as_inner().source(), |&cause| cause.source());
            let notes = notes.map(ToString::to_string).filter(|note| !note.ends_with("is invalid"));
            let notes: Vec<String> = notes.map(|note| without_handles(&note)).collect();
            let message = match &notes[..] {
                [] => without_handles(&wrong.as_inner().to_string()),
                notes => notes.join("; "),
            };
            // The function of the header comes before what is wrong in it.
            let function = std::any::type_name::<naga::Function>();
            let inner = wrong.spans().find(|(_, what)| !what.starts_with(function));
            (message, inner.or_else(|| wrong.spans().next())?.0)
        }
        _ => return None,
    };
    let before = text.get(..span.to_range()?.start)?;
    let line = before.matches('\n').count();
    let column = before.chars().rev().take_while(|&c| c != '\n').count();
    // The lines of the body, or of the header, are counted from one that stands before them.
    let own =
        [("line", SOURCE), ("header, line", HEADER)].into_iter().find_map(|(part, mark)| {
            let first = text.lines().position(|line| line == mark)?;
            line.checked_sub(first).filter(|&own| own > 0).map(|own| format!("{part} {own}"))
        })?;
    let (shown, mark) = (text.lines().nth(line).unwrap_or_default(), " ".repeat(column));
    Some(format!("{own}, column {}: {message}\n    {shown}\n    {mark}^", column + 1))
}

/// A note without the compiler's numbers for values, such as "[62]".
fn without_handles(note: &str) -> String {
    let mut out = String::with_capacity(note.len());
    let mut rest = note;
    while let Some((before, after)) = rest.split_once(" [") {
        out += before;
        match after.split_once(']') {
            Some((number, after)) if number.parse::<u32>().is_ok() => {
                out += " a value";
                rest = after;
            }
            _ => {
                out += " [";
                rest = after;
            }
        }
    }
    out + rest
}
