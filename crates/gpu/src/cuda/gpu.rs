//! A CUDA device that is in use: its context, its one stream, memory and launches.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUcontext, CUdeviceptr, CUfunction, CUmemoryPool, CUstream};
use cupola_core::backend::{Buffer, MemoryStats};
use cupola_core::{Device, Error, Result};
use smallvec::SmallVec;

use super::compile::Kernels;
use super::faults::Faults;
use super::memory::{CudaMemory, Pool, class};
use super::product::Products;
use super::staging::{Down, Up};

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
    stream: CUstream,
    /// The driver's own pool, where there is one.
    source: Option<CUmemoryPool>,
    pool: Pool,
    faults: Faults,
    up: Mutex<Up>,
    down: Mutex<Down>,
    /// What was compiled for it.
    pub kernels: Kernels,
    /// What multiplies matrices on it; none where the library is missing.
    pub products: OnceLock<Option<Products>>,
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
        let mut stream = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is current.
        let code = unsafe { sys::cuStreamCreate(&mut stream, flags) };
        check(own, "making a stream", code)?;
        let source = match facts.has_pools {
            true => Some(keeping_pool(own, facts.handle)?),
            false => None,
        };
        Ok(Gpu {
            own,
            facts,
            context,
            stream,
            source,
            pool: Pool::default(),
            faults: Faults::new(own)?,
            up: Mutex::default(),
            down: Mutex::default(),
            kernels,
            products: OnceLock::new(),
        })
    }

    /// Which device this is.
    pub fn device(&self) -> Device {
        self.own
    }

    /// Its stream.
    pub fn stream(&self) -> CUstream {
        self.stream
    }

    /// Makes the device the calling thread's: before every use of the driver.
    pub fn enter(&self) -> Result<()> {
        // SAFETY: the context lives as long as the program.
        check(self.own, "using the device", unsafe { sys::cuCtxSetCurrent(self.context) })
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
        let class = class(bytes);
        if let Some(block) = self.pool.take(class) {
            return Ok(Buffer::new(CudaMemory::new(block, bytes, class, self.clone())));
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
        Ok(Buffer::new(CudaMemory::new(block, bytes, class, self.clone())))
    }

    /// A new block, or none where there is no memory left.
    fn create(&self, size: usize) -> Result<Option<CUdeviceptr>> {
        let mut block = 0;
        // SAFETY: a context is current, and the block goes back through `free`.
        let code = unsafe {
            match self.source {
                Some(_) => sys::cuMemAllocAsync(&mut block, size, self.stream),
                None => sys::cuMemAlloc_v2(&mut block, size),
            }
        };
        match code {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            other => self.check("an allocation", other).map(|()| Some(block)),
        }
    }

    fn free(&self, blocks: Vec<CUdeviceptr>) {
        if blocks.is_empty() || self.enter().is_err() {
            return;
        }
        for block in blocks {
            // SAFETY: the block is from `create` and out of the pool. What fails here is a broken
            // device, which the next call reports, or the end of the program.
            let _ = unsafe {
                match self.source {
                    Some(_) => sys::cuMemFreeAsync(block, self.stream),
                    None => sys::cuMemFree_v2(block),
                }
            };
        }
    }

    /// Takes a block back that no buffer has any more.
    pub fn release(&self, class: usize, block: CUdeviceptr) {
        self.free(self.pool.give(class, block));
    }

    /// How much memory is in use and kept.
    pub fn memory(&self) -> MemoryStats {
        self.pool.stats()
    }

    /// Counts the most memory in use anew.
    pub fn reset_peak(&self) {
        self.pool.reset_peak();
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

    fn wait(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: the stream lives as long as the program.
        self.check("the device", unsafe { sys::cuStreamSynchronize(self.stream) })
    }

    /// Waits for everything that was launched.
    pub fn synchronize(&self) -> Result<()> {
        self.wait()?;
        self.faults.check(self.own)
    }

    /// The number of something that a kernel may find wrong with values.
    pub fn fault(&self, error: &Error) -> u32 {
        self.faults.number(error)
    }

    /// Where kernels store the number of a fault.
    pub fn fault_word(&self) -> CUdeviceptr {
        self.faults.place()
    }

    /// Where a buffer of this device starts.
    pub fn start(&self, buffer: &Buffer) -> Result<CUdeviceptr> {
        match buffer.downcast::<CudaMemory>().filter(|memory| memory.is_of(self)) {
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
        lock(&self.up).copy(self, to, bytes)
    }

    /// Reads from `offset` bytes on, after everything that was launched.
    pub fn read(&self, buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
        let from = self.part(buffer, offset, out.len())?;
        self.enter()?;
        lock(&self.down).copy(self, from, out)?;
        self.faults.check(self.own)
    }

    /// Lets a kernel's blocks share so many bytes.
    pub fn allow_shared(&self, function: CUfunction, bytes: u32) -> Result<()> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded for good.
        let code = unsafe { sys::cuFuncSetAttribute(function, attribute, bytes as i32) };
        self.check("asking for shared memory", code)
    }

    /// Launches a kernel, whose blocks have so many threads and ask for so many shared bytes; the
    /// device has been entered.
    pub fn launch(
        &self,
        function: CUfunction,
        grid: [u32; 2],
        [block, shared]: [u32; 2],
        parameters: &mut Parameters,
    ) -> Result<()> {
        let mut size = parameters.bytes;
        let mut extra: [*mut c_void; 5] = [
            sys::CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as usize as *mut c_void,
            parameters.words.as_mut_ptr().cast(),
            sys::CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as usize as *mut c_void,
            (&raw mut size).cast(),
            sys::CU_LAUNCH_PARAM_END_AS_INT as usize as *mut c_void,
        ];
        // SAFETY: the function is loaded for good, and the parameters are laid out as C lays out
        // the kernel's; the driver copies them before it returns.
        let code = unsafe {
            sys::cuLaunchKernel(
                function,
                grid[0],
                grid[1],
                1,
                block,
                1,
                1,
                shared,
                self.stream,
                std::ptr::null_mut(),
                extra.as_mut_ptr(),
            )
        };
        self.check("a launch", code)
    }
}

/// The parameters of a launch as the device sees them: pointers, and then words.
#[derive(Default)]
pub struct Parameters {
    words: SmallVec<[u64; 32]>,
    bytes: usize,
}

impl Parameters {
    /// Adds 64 bits; before any word.
    pub fn pointer(&mut self, value: u64) {
        self.words.push(value);
        self.bytes += 8;
    }

    /// Adds 32 bits.
    pub fn word(&mut self, value: u32) {
        match self.words.last_mut().filter(|_| !self.bytes.is_multiple_of(8)) {
            Some(last) => *last |= u64::from(value) << 32,
            None => self.words.push(u64::from(value)),
        }
        self.bytes += 4;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.words.clear();
        self.bytes = 0;
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

#[cfg(test)]
mod tests {
    use super::Parameters;

    #[test]
    fn words_follow_pointers_without_gaps() {
        let mut parameters = Parameters::default();
        parameters.pointer(7);
        parameters.word(1);
        parameters.word(2);
        parameters.word(3);
        assert_eq!(parameters.words[..], [7, 1 | 2 << 32, 3]);
        assert_eq!(parameters.bytes, 20);
    }
}
