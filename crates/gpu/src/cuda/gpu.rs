//! A CUDA device that is in use: its context, its lanes, memory and launches.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUcontext, CUdeviceptr, CUfunction, CUmemoryPool, CUstream};
use cupola_core::backend::{Args, Buffer, MemoryStats};
use cupola_core::device::{self, Stream};
use cupola_core::{Device, Error, Result, interrupt};

use super::answer::{self, Answers};
use super::commands::LaunchConfig;
use super::compile::Kernels;
use super::dnn::Dnn;
use super::lane::{self, Lane, Order, Place, Uses};
use super::linalg::Solvers;
use super::marker::Spare;
use super::memory::{CLASSES, CudaMemory};
use super::product::Products;
use crate::faults::Faults;
use crate::pool::Pool;

/// How long a thread asks without pause whether a device is done.
const EAGER: Duration = Duration::from_millis(1);

/// What a device is, as far as it can be asked without using it.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The driver's handle.
    pub handle: sys::CUdevice,
    /// Its name.
    pub name: String,
    /// Its compute capability: 90 is 9.0.
    pub capability: u32,
    /// Its memory in bytes.
    pub memory: usize,
    /// How many multiprocessors it has.
    pub multiprocessors: u32,
    /// How many threads run at once on each of them.
    pub threads: u32,
    /// How many bytes a block can share, if it asks.
    pub shared: u32,
    /// Whether memory can be allocated in the order of a stream.
    pub has_pools: bool,
}

/// A device in use.
pub struct Gpu {
    own: Device,
    facts: Facts,
    context: CUcontext,
    first: Lane,
    /// The lanes of further streams, which are made when they are first used.
    others: [OnceLock<Lane>; lane::MOST - 1],
    /// Whether there is more than one lane.
    is_many: AtomicBool,
    order: Mutex<Order>,
    capture: Mutex<Unused>,
    /// The driver's own pool, where there is one.
    source: Option<CUmemoryPool>,
    /// The lowest block goes first, so that the same work finds the same memory again, in whatever
    /// order it was given back.
    pool: Pool<CUdeviceptr, Uses>,
    faults: Faults,
    pub spare_events: Spare,
    /// What was compiled for it.
    pub kernels: Kernels,
    /// What multiplies matrices on it; none where the library is missing.
    pub products: OnceLock<Option<Products>>,
    /// What convolves and attends on it; none where the library is missing.
    pub dnn: OnceLock<Option<Dnn>>,
    /// What factorizes matrices on it; none where a library is missing.
    pub solvers: OnceLock<Option<Solvers>>,
}

// SAFETY: contexts, streams and pools of the driver may be used by any thread, many at a time.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Turns a driver's answer into a result.
pub fn check(own: Device, what: &str, code: sys::CUresult) -> Result<()> {
    if code == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(Error::Device(format!("{own}: {what} failed: {}", describe(code))))
}

/// Says on standard error, once for each, that something takes longer than it should, and why:
/// nothing else is wrong.
pub fn slower(what: &'static str, why: &Error) {
    static SAID: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    if lock(&SAID).insert(what) {
        eprintln!("warning: {what} takes longer than it should: {why}");
    }
}

/// What the driver says of an answer.
pub fn describe(code: sys::CUresult) -> String {
    let error = cudarc::driver::result::DriverError(code);
    match error.error_string() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => format!("error {}", code as u32),
    }
}

impl Gpu {
    /// Opens a device.
    pub fn new(own: Device, facts: Facts, kernels: Kernels) -> Result<Self> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the handle is the driver's; the context is kept for the rest of the program.
        let code = unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, facts.handle) };
        check(own, "opening the device", code)?;
        // SAFETY: the context was just retained.
        check(own, "opening the device", unsafe { sys::cuCtxSetCurrent(context) })?;
        let first = Lane::new(own, 0, 0)?;
        let source = match facts.has_pools {
            true => Some(keeping_pool(own, facts.handle)?),
            false => None,
        };
        Ok(Gpu {
            own,
            facts,
            context,
            first,
            others: Default::default(),
            is_many: AtomicBool::new(false),
            order: Mutex::default(),
            capture: Mutex::new(Unused(std::ptr::null_mut())),
            source,
            pool: Pool::default(),
            faults: Faults::default(),
            spare_events: Spare::default(),
            kernels,
            products: OnceLock::new(),
            dnn: OnceLock::new(),
            solvers: OnceLock::new(),
        })
    }

    /// Which device this is.
    pub fn device(&self) -> Device {
        self.own
    }

    /// The lane of this thread's work; the device has been entered.
    pub fn lane(&self) -> &Lane {
        self.lane_at(lane::of(device::queue())).unwrap_or(&self.first)
    }

    fn lane_at(&self, number: usize) -> Option<&Lane> {
        match number.checked_sub(1) {
            None => Some(&self.first),
            Some(at) => self.others[at].get(),
        }
    }

    /// The stream of this thread's work; the device has been entered.
    pub fn stream(&self) -> CUstream {
        self.lane().stream
    }

    /// Makes the device the calling thread's: before every use of the driver.
    pub fn enter(&self) -> Result<()> {
        // SAFETY: the context lives as long as the program.
        check(self.own, "using the device", unsafe { sys::cuCtxSetCurrent(self.context) })?;
        let queue = device::queue();
        match self.lane_at(lane::of(queue)) {
            Some(_) => Ok(()),
            None => self.open(Stream { device: self.own, index: queue }),
        }
    }

    /// Makes the lane of a stream.
    fn open(&self, stream: Stream) -> Result<()> {
        let _order = lock(&self.order);
        let number = lane::of(stream.index);
        let Some(place) = number.checked_sub(1).map(|at| &self.others[at]) else { return Ok(()) };
        if place.get().is_some() {
            return Ok(());
        }
        let made = Lane::new(self.own, number, stream.priority())?;
        // What the first lane is given from here on is noted; what it was given before comes first.
        self.is_many.store(true, Ordering::SeqCst);
        lane::follow(self.own, &made, &self.first)?;
        place.get_or_init(|| made);
        Ok(())
    }

    /// Before the steps of these arguments are given to this thread's lane.
    pub fn before_run<'a>(
        &self,
        steps: impl Iterator<Item = &'a Args<'a>> + Clone,
        scratch: &'a Scratch,
    ) -> Result<()> {
        let written = steps.clone().flat_map(written);
        let read = steps.flat_map(|args| args.inputs.iter().map(|i| i.buffer));
        self.after_others(read, written.chain(scratch.memory.as_ref()))
    }

    /// After they were.
    pub fn after_run<'a>(
        &self,
        steps: impl Iterator<Item = &'a Args<'a>> + Clone,
        scratch: &'a Scratch,
    ) {
        let written = steps.clone().flat_map(written);
        let read = steps.flat_map(|args| args.inputs.iter().map(|i| i.buffer));
        self.note(read, written.chain(scratch.memory.as_ref()));
    }

    /// The memory of a buffer, where it is this device's.
    fn memory_of<'b>(&self, buffer: &'b Buffer) -> Option<&'b CudaMemory> {
        buffer.downcast::<CudaMemory>().filter(|memory| memory.is_of(self))
    }

    /// Puts what this thread's lane is given next, which reads and writes these, after who uses them on
    /// other lanes; the device has been entered.
    pub fn after_others<'b>(
        &self,
        read: impl Iterator<Item = &'b Buffer>,
        written: impl Iterator<Item = &'b Buffer>,
    ) -> Result<()> {
        if !self.is_many.load(Ordering::SeqCst) {
            return Ok(());
        }
        let own = self.lane();
        let mut order = lock(&self.order);
        let mut after = |place: Place| order.put(self.own, own, place, |at| self.lane_at(at));
        for memory in read.filter_map(|buffer| self.memory_of(buffer)) {
            lock(memory.uses()).before_reading().try_for_each(&mut after)?;
        }
        for memory in written.filter_map(|buffer| self.memory_of(buffer)) {
            lock(memory.uses()).before_writing().try_for_each(&mut after)?;
        }
        Ok(())
    }

    /// Notes what this thread's lane was given, which reads and writes these.
    pub fn note<'b>(
        &self,
        read: impl Iterator<Item = &'b Buffer>,
        written: impl Iterator<Item = &'b Buffer>,
    ) {
        // Asked for after the work was given: who makes a second lane follows either this or the note.
        if !self.is_many.load(Ordering::SeqCst) {
            return;
        }
        let place = self.lane().give();
        read.filter_map(|buffer| self.memory_of(buffer))
            .for_each(|memory| lock(memory.uses()).reads(place));
        written
            .filter_map(|buffer| self.memory_of(buffer))
            .for_each(|memory| lock(memory.uses()).writes(place));
    }

    /// Turns a driver's answer into a result.
    pub fn check(&self, what: &str, code: sys::CUresult) -> Result<()> {
        check(self.own, what, code)
    }

    /// Memory for `bytes` bytes.
    pub fn alloc(self: &Arc<Self>, bytes: usize) -> Result<Buffer> {
        let out_of_memory = || Error::OutOfMemory {
            device: self.own.to_string(),
            bytes,
            what: "an array".to_owned(),
        };
        if bytes > self.facts.memory {
            return Err(out_of_memory());
        }
        let class = CLASSES.of(bytes);
        let lane = lane::of(device::queue());
        let memory = |block, uses| {
            Buffer::new(CudaMemory::new(block, bytes, class, lane, uses, self.clone()))
        };
        if let Some((block, uses)) = self.pool.take(class, lane) {
            return Ok(memory(block, uses));
        }
        let made = self.enter().and_then(|()| {
            let first = self.create(class)?;
            if first.is_some() {
                return Ok(first);
            }
            self.trim()?;
            self.create(class)
        });
        let block = made?.ok_or_else(out_of_memory)?;
        self.pool.add(class);
        let made = memory(block, Uses::default());
        // It is there when this lane comes to it.
        self.note([].into_iter(), [&made].into_iter());
        Ok(made)
    }

    /// Memory for a question to the device, which no count of memory sees.
    pub fn temporary(&self, bytes: usize) -> Result<Temporary<'_>> {
        let made = self.create(bytes)?;
        made.map(|block| Temporary { gpu: self, block }).ok_or_else(|| Error::OutOfMemory {
            device: self.own.to_string(),
            bytes,
            what: "a question".to_owned(),
        })
    }

    /// A new block, or none where there is no memory left.
    fn create(&self, size: usize) -> Result<Option<CUdeviceptr>> {
        let mut block = 0;
        // SAFETY: a context is current, and the block goes back through `free`.
        let code = unsafe {
            match self.source {
                Some(_) => sys::cuMemAllocAsync(&mut block, size, self.stream()),
                None => sys::cuMemAlloc_v2(&mut block, size),
            }
        };
        match code {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            other => self.check("an allocation", other).map(|()| Some(block)),
        }
    }

    fn free(&self, blocks: Vec<(CUdeviceptr, Uses)>) {
        if blocks.is_empty() || self.enter().is_err() {
            return;
        }
        let own = self.lane();
        for (block, uses) in blocks {
            let mut order = lock(&self.order);
            let mut after = |place: Place| order.put(self.own, own, place, |at| self.lane_at(at));
            // Where a lane cannot be waited for on the device, the host does.
            if uses.before_writing().try_for_each(&mut after).is_err() {
                let _ = self.wait();
            }
            // SAFETY: the block is from `create` and out of the pool. What fails here is a broken
            // device, which the next call reports, or the end of the program.
            let _ = unsafe {
                match self.source {
                    Some(_) => sys::cuMemFreeAsync(block, own.stream),
                    None => sys::cuMemFree_v2(block),
                }
            };
        }
    }

    /// Takes a block back that no buffer has any more.
    pub fn release(&self, class: usize, lane: usize, block: CUdeviceptr, uses: Uses) {
        self.free(self.pool.give(class, lane, block, uses));
    }

    /// How much memory is in use and kept.
    pub fn memory(&self) -> MemoryStats {
        self.pool.stats()
    }

    /// How many bytes the device has.
    pub fn memory_size(&self) -> usize {
        self.facts.memory
    }

    /// Counts the most memory in use anew, from so much at least.
    pub fn set_peak(&self, to: usize) {
        self.pool.set_peak(to);
    }

    /// Bounds what is kept.
    pub fn set_cache_limit(&self, bytes: Option<usize>) {
        self.pool.set_limit(bytes);
    }

    /// Gives kept memory back to the system.
    pub fn trim(&self) -> Result<()> {
        self.free(self.pool.drain());
        self.wait()?;
        let Some(source) = self.source else { return Ok(()) };
        // SAFETY: the pool is the device's own.
        let code = unsafe { sys::cuMemPoolTrimTo(source, 0) };
        self.check("trimming memory", code)
    }

    /// Waits for everything that any lane was given, whatever it found.
    pub fn wait(&self) -> Result<()> {
        self.enter()?;
        let others = self.others.iter().filter_map(OnceLock::get);
        [&self.first].into_iter().chain(others).try_for_each(|lane| lane.wait(self.own))
    }

    /// Waits for everything that this thread's lane was given, or until the host stops the waiting.
    pub fn synchronize(&self) -> Result<()> {
        self.enter()?;
        let lane = self.lane();
        let start = Instant::now();
        // The driver's own wait cannot be stopped.
        loop {
            // SAFETY: the stream lives as long as the program.
            match unsafe { sys::cuStreamQuery(lane.stream) } {
                sys::CUresult::CUDA_ERROR_NOT_READY => {}
                code => {
                    self.check("the device", code)?;
                    return lane.faults.check(self.own, &self.faults);
                }
            }
            if start.elapsed() > EAGER {
                interrupt::check()?;
                thread::sleep(EAGER / 20);
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// The number of something that a kernel may find wrong with values.
    pub fn fault(&self, error: &Error) -> u32 {
        self.faults.number(error)
    }

    /// Where kernels that this thread launches on its lane store the number of a fault.
    pub fn fault_word(&self) -> CUdeviceptr {
        self.lane().faults.place()
    }

    /// Lets nobody find what kernels that this thread launched on its lane so far report.
    pub fn forget_faults(&self) -> Result<()> {
        self.enter()?;
        let lane = self.lane();
        // SAFETY: the word stays for the rest of the program; it is cleared after those kernels.
        let code = unsafe { sys::cuMemsetD32Async(lane.faults.place(), 0, 1, lane.stream) };
        self.check("clearing a fault", code)
    }

    /// [`lane::WORKSPACE`] bytes that a library may use while it runs on this thread's lane.
    pub fn workspace(self: &Arc<Self>) -> Result<CUdeviceptr> {
        let place = &self.lane().workspace;
        let made = match place.get() {
            Some(made) => made,
            // What was not there the first time may be there the next.
            None => {
                let made = self.alloc(lane::WORKSPACE)?;
                place.get_or_init(|| made)
            }
        };
        self.start(made)
    }

    /// Where a buffer of this device starts.
    pub fn start(&self, buffer: &Buffer) -> Result<CUdeviceptr> {
        match self.memory_of(buffer) {
            Some(memory) => Ok(memory.start()),
            None => Err(Error::Device(format!("{} cannot use {buffer:?}", self.own))),
        }
    }

    fn part(&self, buffer: &Buffer, offset: usize, length: usize) -> Result<CUdeviceptr> {
        if offset.checked_add(length).is_none_or(|end| end > buffer.bytes()) {
            return Err(Error::Device(format!(
                "{length} bytes from {offset} on are not in {buffer:?}"
            )));
        }
        Ok(self.start(buffer)? + offset as CUdeviceptr)
    }

    /// Writes `bytes` from `offset` on, after everything that was launched.
    pub fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        let to = self.part(buffer, offset, bytes.len())?;
        self.enter()?;
        self.after_others([].into_iter(), [buffer].into_iter())?;
        let done = lock(&self.lane().up).copy(self, to, bytes);
        self.note([].into_iter(), [buffer].into_iter());
        done
    }

    /// Reads from `offset` bytes on, after everything that was launched.
    pub fn read(&self, buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
        let from = self.part(buffer, offset, out.len())?;
        self.enter()?;
        self.after_others([buffer].into_iter(), [].into_iter())?;
        let lane = self.lane();
        if (1..=answer::MOST).contains(&out.len())
            && let Some(answers) = lane.answers.get_or_init(|| {
                let made = Answers::new(self).map(Mutex::new);
                made.map_err(|error| slower("reading single values", &error)).ok()
            })
        {
            lock(answers).read(self, from, out)?;
            return lane.faults.check(self.own, &self.faults);
        }
        lock(&lane.down).copy(self, from, out)?;
        lane.faults.check(self.own, &self.faults)
    }

    /// Reads what lies at `from`, once everything is done that this thread's lane was given; the device has
    /// been entered.
    pub fn read_at(&self, from: CUdeviceptr, out: &mut [u8]) -> Result<()> {
        lock(&self.lane().down).copy(self, from, out)
    }

    /// Writes to `to`, after what this thread's lane was given; the device has been entered.
    pub fn write_at(&self, to: CUdeviceptr, bytes: &[u8]) -> Result<()> {
        lock(&self.lane().up).copy(self, to, bytes)
    }

    /// Lets a kernel's blocks share so many bytes.
    pub fn allow_shared(&self, function: CUfunction, bytes: u32) -> Result<()> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded for good.
        let code = unsafe { sys::cuFuncSetAttribute(function, attribute, bytes as i32) };
        self.check("asking for shared memory", code)
    }

    /// Launches a kernel on parameters that are laid out as C lays out the kernel's; the device has
    /// been entered.
    pub fn launch(&self, config: &LaunchConfig, parameters: &[u64], bytes: usize) -> Result<()> {
        let LaunchConfig { function, grid, threads, shared } = *config;
        let mut packed = Packed::new(parameters, bytes);
        // SAFETY: the function is loaded for good, and the parameters are as it wants them; the
        // driver copies them before it returns.
        let code = unsafe {
            sys::cuLaunchKernel(
                function.0,
                grid[0],
                grid[1],
                1,
                threads,
                1,
                1,
                shared,
                self.stream(),
                std::ptr::null_mut(),
                packed.extra(),
            )
        };
        self.check("a launch", code)
    }

    /// Memory for `bytes` bytes that nobody needs after this run.
    pub fn scratch(self: &Arc<Self>, bytes: usize) -> Result<Scratch> {
        let memory = (bytes > 0).then(|| self.alloc(bytes)).transpose()?;
        let start = memory.as_ref().map_or(Ok(0), |memory| self.start(memory))?;
        Ok(Scratch { start, memory })
    }

    /// The stream on which work is only written down, while nobody else uses it.
    pub fn capture(&self) -> Result<Capture<'_>> {
        let mut made = lock(&self.capture);
        if made.0.is_null() {
            made.0 = lane::new_stream(self.own, 0)?;
        }
        Ok(Capture(made))
    }

    /// An error of this device.
    pub fn error(&self, what: &str) -> Error {
        Error::Device(format!("{}: {what}", self.own))
    }
}

/// What a step writes to.
fn written<'a>(args: &'a Args<'a>) -> impl Iterator<Item = &'a Buffer> {
    args.outputs.iter().map(|output| output.buffer).chain(args.scratch)
}

/// Memory that is used on this thread's stream alone, and goes back at once.
pub struct Temporary<'g> {
    gpu: &'g Gpu,
    block: CUdeviceptr,
}

impl Temporary<'_> {
    /// Where it starts.
    pub fn place(&self) -> CUdeviceptr {
        self.block
    }

    /// Makes `bytes` bytes from a place in it on such; a multiple of 4.
    pub fn fill(&self, place: CUdeviceptr, byte: u8, bytes: usize) -> Result<()> {
        let word = u32::from_ne_bytes([byte; 4]);
        // SAFETY: the place and so many bytes are the block's.
        let code = unsafe { sys::cuMemsetD32Async(place, word, bytes / 4, self.gpu.stream()) };
        self.gpu.check("filling memory", code)
    }

    /// Reads from a place in it, after all that the stream was given.
    pub fn read(&self, place: CUdeviceptr, out: &mut [u8]) -> Result<()> {
        // SAFETY: the place is the block's, and `out` stays until the stream has been waited for.
        let code = unsafe {
            sys::cuMemcpyDtoHAsync_v2(out.as_mut_ptr().cast(), place, out.len(), self.gpu.stream())
        };
        self.gpu.check("reading memory", code)?;
        // SAFETY: the stream lives as long as the program.
        self.gpu.check("reading memory", unsafe { sys::cuStreamSynchronize(self.gpu.stream()) })
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        self.gpu.free(vec![(self.block, Uses::default())]);
    }
}

/// A stream that is made when it is first needed.
struct Unused(CUstream);

// SAFETY: streams of the driver may be used by any thread.
unsafe impl Send for Unused {}

/// A stream that nobody else uses.
pub struct Capture<'g>(MutexGuard<'g, Unused>);

impl std::ops::Deref for Capture<'_> {
    type Target = CUstream;

    fn deref(&self) -> &CUstream {
        &self.0.0
    }
}

/// Memory that nobody needs after a run. What is launched after it is given back may use it at
/// once, since work on one stream runs in order.
pub struct Scratch {
    /// Where it starts.
    pub start: CUdeviceptr,
    /// What holds it.
    pub memory: Option<Buffer>,
}

/// The parameters of a launch as the driver takes them: one block of memory.
pub struct Packed<'p> {
    size: usize,
    extra: [*mut c_void; 5],
    _parameters: PhantomData<&'p [u64]>,
}

impl<'p> Packed<'p> {
    /// The first `bytes` bytes of `parameters`.
    pub fn new(parameters: &'p [u64], bytes: usize) -> Self {
        debug_assert!(bytes <= size_of_val(parameters));
        let extra = [
            sys::CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as usize as *mut c_void,
            // The driver only reads them.
            parameters.as_ptr().cast_mut().cast(),
            sys::CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as usize as *mut c_void,
            std::ptr::null_mut(),
            sys::CU_LAUNCH_PARAM_END_AS_INT as usize as *mut c_void,
        ];
        Packed { size: bytes, extra, _parameters: PhantomData }
    }

    /// What the driver wants; good until this moves.
    pub fn extra(&mut self) -> *mut *mut c_void {
        self.extra[3] = (&raw mut self.size).cast();
        self.extra.as_mut_ptr()
    }
}

/// The device's default pool, set to keep what is freed: giving memory back at every wait and
/// asking for it again costs more than it is worth.
fn keeping_pool(own: Device, handle: sys::CUdevice) -> Result<CUmemoryPool> {
    let mut pool = std::ptr::null_mut();
    // SAFETY: the handle is the driver's.
    let code = unsafe { sys::cuDeviceGetDefaultMemPool(&mut pool, handle) };
    check(own, "finding the memory pool", code)?;
    let mut keep = u64::MAX;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the attribute is a 64-bit number.
    let code = unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut keep).cast()) };
    check(own, "setting up the memory pool", code)?;
    Ok(pool)
}
