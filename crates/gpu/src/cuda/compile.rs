//! Kernels from text: compiled once in a process, and kept on disk for the next one.

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self as driver, CUfunction};
use cudarc::nvrtc::sys::{self, nvrtcProgram, nvrtcResult};
use cupola_core::{Error, Result};

use super::gpu::{Gpu, slower};
use crate::emit::{CudaC, print};
use crate::ir::Kernel;
use crate::made::Made;
use crate::store::Store;

/// The compiler: its version, and what it compiles for.
#[derive(Clone, Debug)]
pub struct Compiler {
    version: (i32, i32),
    /// Compute capabilities, in order.
    targets: Vec<u32>,
}

/// What the compiler makes for a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Output {
    /// Its own instructions.
    Native(u32),
    /// Those of a virtual device before it, which the driver translates.
    Portable(u32),
}

/// The kernels of a device.
pub struct Kernels {
    output: Output,
    loaded: Made<Arc<Kernel>, Loaded>,
    /// Those that do the work of several launches, at most so many; nothing where none can be made.
    together: Made<(Function, u32), Option<Function>>,
    /// Those of them that were wanted.
    wanted: Mutex<HashSet<(Function, u32)>>,
    store: Option<Store>,
}

/// A loaded kernel. It is never unloaded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Function(pub CUfunction);

/// A kernel, and what is loaded of it.
#[derive(Clone)]
pub struct Loaded {
    /// What it does.
    pub kernel: Arc<Kernel>,
    /// What is launched.
    pub function: Function,
}

// SAFETY: functions of the driver may be launched by any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Compiler {
    /// Asks the library, which is loaded.
    pub fn new() -> Result<Compiler, String> {
        let failed =
            |what: &'static str| move |code| format!("the run-time compiler has no {what}: {code}");
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: the places are there.
        explain(unsafe { sys::nvrtcVersion(&mut major, &mut minor) }).map_err(failed("version"))?;
        // SAFETY: the place is there.
        explain(unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) })
            .map_err(failed("targets"))?;
        let mut targets: Vec<c_int> = vec![0; count.max(0) as usize];
        // SAFETY: there is a place for each target.
        explain(unsafe { sys::nvrtcGetSupportedArchs(targets.as_mut_ptr()) })
            .map_err(failed("targets"))?;
        let mut targets: Vec<u32> = targets.into_iter().map(c_int::unsigned_abs).collect();
        targets.sort_unstable();
        Ok(Compiler { version: (major, minor), targets })
    }

    /// Says why it compiles nothing for a device of `capability`, if so.
    pub fn check(&self, capability: u32) -> Result<(), String> {
        self.output(capability).map(|_| ())
    }

    fn output(&self, capability: u32) -> Result<Output, String> {
        if self.targets.contains(&capability) {
            return Ok(Output::Native(capability));
        }
        let before = self.targets.iter().rev().find(|&&target| target < capability);
        before.map(|&target| Output::Portable(target)).ok_or_else(|| {
            format!(
                "{self} does not compile for compute capability {}.{}",
                capability / 10,
                capability % 10
            )
        })
    }
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NVRTC {}.{}", self.version.0, self.version.1)
    }
}

impl Kernels {
    /// No kernels yet, for a device of `capability`.
    pub fn new(compiler: &Compiler, capability: u32) -> Result<Kernels, String> {
        let output = compiler.output(capability)?;
        let store = Store::open(&format!("{compiler} {output:?} {}", FLAGS.join(" ")));
        Ok(Kernels {
            output,
            loaded: Made::default(),
            together: Made::default(),
            wanted: Mutex::default(),
            store,
        })
    }

    /// The compute capability that kernels are compiled for: the device's, or one before it.
    pub fn target(&self) -> u32 {
        match self.output {
            Output::Native(target) | Output::Portable(target) => target,
        }
    }

    /// `kernel`, loaded; the device has been entered.
    pub fn get(&self, gpu: &Gpu, kernel: Kernel) -> Result<Loaded> {
        let kernel = Arc::new(kernel);
        self.loaded.get(&kernel, || {
            let function = self.of_text(gpu, &kernel.name, &print(&kernel, &CudaC::ALONE))?;
            Ok(Loaded { kernel: kernel.clone(), function })
        })
    }

    /// What does the work of several launches of `alone`, at most so many. It is made when it is wanted for the second
    /// time: what runs once has no gain from it.
    pub fn together(&self, gpu: &Gpu, alone: &Loaded, launches: u32) -> Option<Function> {
        let key = (alone.function, launches);
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.insert(key) {
            return None;
        }
        drop(wanted);
        let made = self.together.get(&key, || {
            let text = print(&alone.kernel, &CudaC { launches });
            let made = self.of_text(gpu, &alone.kernel.name, &text);
            Ok(made.map_err(|error| slower("several launches as one", &error)).ok())
        });
        made.ok().flatten()
    }

    /// The kernel `name` in `text`, loaded anew; the device has been entered.
    pub fn of_text(&self, gpu: &Gpu, name: &str, text: &str) -> Result<Function> {
        let stored = self.store.as_ref().and_then(|store| store.get(text));
        match stored.map(|image| load(gpu, name, &image)) {
            Some(Ok(function)) => return Ok(function),
            Some(Err(error @ Error::OutOfMemory { .. })) => return Err(error),
            // What a damaged file holds does not load, and is made anew.
            Some(Err(_)) | None => {}
        }
        let image = self.compile(gpu, name, text)?;
        let function = load(gpu, name, &image)?;
        if let Some(store) = &self.store {
            store.put(text, &image);
        }
        Ok(function)
    }

    /// What was kept of something else that was found out about the device.
    pub fn remembered(&self, question: &str) -> Option<Vec<u8>> {
        self.store.as_ref()?.get(question)
    }

    /// Keeps it for the next process.
    pub fn remember(&self, question: &str, answer: &[u8]) {
        if let Some(store) = &self.store {
            store.put(question, answer);
        }
    }

    fn compile(&self, gpu: &Gpu, name: &str, text: &str) -> Result<Vec<u8>> {
        let failed = |detail: String| {
            let device = gpu.device();
            Error::Device(format!("{device}: the kernel {name} does not compile: {detail}"))
        };
        let source = CString::new(text).map_err(|cause| failed(cause.to_string()))?;
        let program = Source::new(&source).map_err(failed)?;
        let target = match self.output {
            // Wide matrices are in that device's own instructions alone.
            Output::Native(90) => "--gpu-architecture=sm_90a".to_owned(),
            Output::Native(target) => format!("--gpu-architecture=sm_{target}"),
            Output::Portable(target) => format!("--gpu-architecture=compute_{target}"),
        };
        program.compile(&target).map_err(failed)?;
        match self.output {
            Output::Native(_) => program.get(sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN),
            Output::Portable(_) => program.get(sys::nvrtcGetPTXSize, sys::nvrtcGetPTX),
        }
        .map_err(failed)
    }
}

/// Products and sums are rounded one by one, as they are on every other device.
const FLAGS: [&str; 2] = ["--fmad=false", "--std=c++17"];

fn explain(code: nvrtcResult) -> Result<(), String> {
    match code {
        nvrtcResult::NVRTC_SUCCESS => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// A program of the compiler.
struct Source<'t> {
    program: nvrtcProgram,
    /// The program may refer to its text.
    _text: &'t CStr,
}

type Size = unsafe fn(nvrtcProgram, *mut usize) -> nvrtcResult;
type Get = unsafe fn(nvrtcProgram, *mut c_char) -> nvrtcResult;

impl<'t> Source<'t> {
    fn new(text: &'t CStr) -> Result<Self, String> {
        let mut program = std::ptr::null_mut();
        // SAFETY: the text outlives the program, and there are no headers.
        explain(unsafe {
            sys::nvrtcCreateProgram(
                &mut program,
                text.as_ptr(),
                std::ptr::null(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        })?;
        Ok(Source { program, _text: text })
    }

    fn compile(&self, target: &str) -> Result<(), String> {
        let options: Vec<CString> =
            FLAGS.iter().chain([&target]).filter_map(|&flag| CString::new(flag).ok()).collect();
        let pointers: Vec<*const c_char> = options.iter().map(|flag| flag.as_ptr()).collect();
        // SAFETY: the program is alive, and so are the options.
        let code = unsafe {
            sys::nvrtcCompileProgram(self.program, pointers.len() as c_int, pointers.as_ptr())
        };
        explain(code).map_err(|code| {
            let log = self.get(sys::nvrtcGetProgramLogSize, sys::nvrtcGetProgramLog);
            let log = String::from_utf8_lossy(&log.unwrap_or_default()).into_owned();
            let lines: Vec<&str> = log.trim_matches(['\0', '\n', ' ']).lines().take(12).collect();
            format!("{code}\n{}", lines.join("\n"))
        })
    }

    /// Something of the program, whose size is asked for first.
    fn get(&self, size: Size, get: Get) -> Result<Vec<u8>, String> {
        let mut length = 0;
        // SAFETY: the program is alive.
        explain(unsafe { size(self.program, &mut length) })?;
        let mut bytes = vec![0_u8; length];
        // SAFETY: there is place for as much as the program says.
        explain(unsafe { get(self.program, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for Source<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is destroyed once; nothing hangs on the answer.
        let _ = unsafe { sys::nvrtcDestroyProgram(&mut self.program) };
    }
}

/// Loads the kernel `name` from compiled code.
fn load(gpu: &Gpu, name: &str, image: &[u8]) -> Result<Function> {
    const FULL: driver::CUresult = driver::CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    let mut module = std::ptr::null_mut();
    // SAFETY: the device has been entered; the driver checks the image, which ends in itself or,
    // where it is text, in a zero.
    let mut load = || unsafe { driver::cuModuleLoadData(&mut module, image.as_ptr().cast()) };
    let mut code = load();
    if code == FULL {
        // What is kept for arrays to come leaves it no room. Whether it could be given back the second time tells.
        let _ = gpu.trim();
        code = load();
    }
    if code == FULL {
        let (device, what) = (gpu.device().to_string(), format!("the code of the kernel {name}"));
        return Err(Error::OutOfMemory { device, bytes: image.len(), what });
    }
    gpu.check("loading a kernel", code)?;
    let mut function = std::ptr::null_mut();
    let symbol = CString::new(name).unwrap_or_default();
    // SAFETY: the module was just loaded, and stays.
    let code = unsafe { driver::cuModuleGetFunction(&mut function, module, symbol.as_ptr()) };
    gpu.check("loading a kernel", code)?;
    Ok(Function(function))
}

#[cfg(test)]
mod tests {
    use super::{Compiler, Output};

    #[test]
    fn a_device_gets_its_own_code_or_that_of_one_before() {
        let compiler = Compiler { version: (13, 0), targets: vec![75, 80, 90, 100] };
        assert_eq!(compiler.output(90), Ok(Output::Native(90)));
        assert_eq!(compiler.output(89), Ok(Output::Portable(80)));
        assert_eq!(compiler.output(121), Ok(Output::Portable(100)));
        assert!(compiler.output(61).is_err_and(|reason| reason.contains("6.1")));
    }
}
