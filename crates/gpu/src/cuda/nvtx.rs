//! Ranges for NVIDIA's tools: Nsight shows steps under the names that profiles have.
//!
//! The library of [NVTX](https://nvidia.github.io/NVTX/) is looked for when there is somebody to show something to; it
//! hands the ranges to the tool that started the program, and does nothing without one.

use std::ffi::{CString, c_char, c_int};
use std::sync::LazyLock;

use cupola_core::profile::{Ranges, Tool};

use super::library::{folders, open};

/// Its names, the newest first.
const NAMES: &[&str] = match cfg!(windows) {
    true => &["nvtx3interop.dll", "nvToolsExt64_1.dll"],
    false => {
        &["libnvtx3interop.so", "libnvtx3interop.so.1", "libnvToolsExt.so", "libnvToolsExt.so.1"]
    }
};

/// Whether a tool that started the process says so.
static IS_WATCHED: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os("NVTX_INJECTION64_PATH").is_some());

inventory::submit! {
    Tool { watches: || *IS_WATCHED, open: || Nvtx::open().map(|nvtx| Box::new(nvtx) as Box<dyn Ranges>) }
}

struct Nvtx {
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
}

impl Nvtx {
    fn open() -> Option<Self> {
        let library = NAMES.iter().find_map(open).or_else(|| {
            let all =
                folders().iter().flat_map(|folder| NAMES.iter().map(|name| folder.join(name)));
            all.filter(|path| path.exists()).find_map(open)
        })?;
        // SAFETY: these are the signatures that NVTX's header gives the two functions.
        let (push, pop) = unsafe {
            let push =
                library.get::<unsafe extern "C" fn(*const c_char) -> c_int>("nvtxRangePushA");
            (*push.ok()?, *library.get::<unsafe extern "C" fn() -> c_int>("nvtxRangePop").ok()?)
        };
        // Its functions are called for the rest of the program.
        std::mem::forget(library);
        Some(Self { push, pop })
    }
}

impl Ranges for Nvtx {
    fn push(&self, name: &str) {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the text is a C string, which NVTX copies before it returns.
        unsafe { (self.push)(name.as_ptr()) };
    }

    fn pop(&self) {
        // SAFETY: it takes nothing, and is right at any time.
        unsafe { (self.pop)() };
    }
}
