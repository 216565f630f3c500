//! Intervals for Apple's tools: Instruments shows steps under the names that profiles have.
//!
//! [Signposts](https://developer.apple.com/documentation/os/recording-performance-data) are part of the system. What
//! `os/signpost.h` has as macros is written out here: a name and a format that lie in the program's file, and a buffer
//! with the arguments.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;

use cupola_core::profile::{Ranges, Tool};
use libloading::os::unix::Library;

/// Bytes of the program's file that the system's tools find again.
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__TEXT,__oslogstring,cstring_literals"))]
static NAME: [u8; 5] = *b"step\0";
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__TEXT,__oslogstring,cstring_literals"))]
static FORMAT: [u8; 11] = *b"%{public}s\0";
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__TEXT,__oslogstring,cstring_literals"))]
static NOTHING: [u8; 1] = *b"\0";

/// By whom the intervals are, and the category that Instruments shows without being asked for it.
const SUBSYSTEM: &CStr = c"cupola";
const CATEGORY: &CStr = c"PointsOfInterest";

/// What a signpost is: the beginning or the end of an interval.
const BEGIN: u8 = 1;
const END: u8 = 2;

inventory::submit! {
    Tool {
        watches: || Signposts::of_the_system().is_some_and(Signposts::is_enabled),
        open: || Some(Box::new(Signposts::of_the_system()?) as Box<dyn Ranges>),
    }
}

type Log = *mut c_void;
type Create = unsafe extern "C" fn(*const c_char, *const c_char) -> Log;
type Enabled = unsafe extern "C" fn(Log) -> bool;
type Generate = unsafe extern "C" fn(Log) -> u64;
type Emit =
    unsafe extern "C" fn(*const c_void, Log, u8, u64, *const c_char, *const c_char, *const u8, u32);

struct Signposts {
    log: Log,
    enabled: Enabled,
    generate: Generate,
    emit: Emit,
}

// SAFETY: a log may be used by all threads at once, and so may the functions.
unsafe impl Send for Signposts {}
// SAFETY: as above.
unsafe impl Sync for Signposts {}

thread_local! {
    /// The intervals of this thread that have begun.
    static OPEN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl Signposts {
    fn of_the_system() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Signposts>> = OnceLock::new();
        FOUND.get_or_init(Self::find).as_ref()
    }

    /// The functions, which macOS 10.14 and iOS 12 have.
    fn find() -> Option<Self> {
        let library = Library::this();
        // SAFETY: these are the types that `os/log.h` and `os/signpost.h` give them.
        unsafe {
            let create: Create = *library.get(b"os_log_create\0").ok()?;
            let enabled = *library.get(b"os_signpost_enabled\0").ok()?;
            let generate = *library.get(b"os_signpost_id_generate\0").ok()?;
            let emit = *library.get(b"_os_signpost_emit_with_name_impl\0").ok()?;
            let log = create(SUBSYSTEM.as_ptr(), CATEGORY.as_ptr());
            Some(Self { log, enabled, generate, emit })
        }
    }

    fn is_enabled(&self) -> bool {
        // SAFETY: the log was made by the system.
        unsafe { (self.enabled)(self.log) }
    }

    fn post(&self, kind: u8, id: u64, format: &'static [u8], arguments: &[u8]) {
        unsafe extern "C" {
            /// What stands for this file of the program.
            static __dso_handle: u8;
        }
        let count = arguments.len() as u32;
        // SAFETY: name and format are C strings in the program's file; the buffer is what the format asks for, and is
        // read before the function returns.
        unsafe {
            let file = (&raw const __dso_handle).cast();
            let name = NAME.as_ptr().cast();
            (self.emit)(
                file,
                self.log,
                kind,
                id,
                name,
                format.as_ptr().cast(),
                arguments.as_ptr(),
                count,
            );
        }
    }
}

/// The arguments of [`FORMAT`], as `__builtin_os_log_format` lays them out: that not all are numbers, how many there
/// are, that this one is a public string, of how many bytes its address is, and the address.
fn arguments(text: &CStr) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&[2, 1, 0x22, 8]);
    bytes[4..].copy_from_slice(&(text.as_ptr() as u64).to_ne_bytes());
    bytes
}

impl Ranges for &'static Signposts {
    fn push(&self, name: &str) {
        // SAFETY: the log was made by the system.
        let id = unsafe { (self.generate)(self.log) };
        let name = CString::new(name).unwrap_or_default();
        self.post(BEGIN, id, &FORMAT, &arguments(&name));
        OPEN.with_borrow_mut(|open| open.push(id));
    }

    fn pop(&self) {
        if let Some(id) = OPEN.with_borrow_mut(Vec::pop) {
            self.post(END, id, &NOTHING, &[0, 0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    static POSTS: Mutex<Vec<(u8, u64, String, String)>> = Mutex::new(Vec::new());

    extern "C" fn enabled(_: Log) -> bool {
        true
    }

    extern "C" fn generate(_: Log) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(7);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    unsafe extern "C" fn emit(
        _: *const c_void,
        _: Log,
        kind: u8,
        id: u64,
        name: *const c_char,
        format: *const c_char,
        arguments: *const u8,
        count: u32,
    ) {
        // SAFETY: the caller gives C strings, and so many bytes.
        let (name, format, bytes) = unsafe {
            let bytes = std::slice::from_raw_parts(arguments, count as usize);
            (CStr::from_ptr(name), CStr::from_ptr(format), bytes)
        };
        assert_eq!(name, c"step");
        let text = match bytes {
            [0, 0] => String::new(),
            [2, 1, 0x22, 8, address @ ..] => {
                let address = u64::from_ne_bytes(address.try_into().unwrap());
                // SAFETY: it is the address of a C string.
                let text = unsafe { CStr::from_ptr(address as *const c_char) };
                text.to_str().unwrap().to_owned()
            }
            other => panic!("{other:?}"),
        };
        POSTS.lock().unwrap().push((kind, id, format.to_str().unwrap().to_owned(), text));
    }

    #[test]
    fn intervals_lie_one_within_the_other() {
        let log = std::ptr::null_mut();
        let posts: &'static Signposts =
            Box::leak(Box::new(Signposts { log, enabled, generate, emit }));
        assert!(posts.is_enabled());
        posts.push("evaluate");
        posts.push("matmul + add");
        posts.pop();
        posts.pop();
        posts.pop();
        let post = |kind, id, format: &str, text: &str| (kind, id, format.into(), text.into());
        let wanted = [
            post(BEGIN, 7, "%{public}s", "evaluate"),
            post(BEGIN, 8, "%{public}s", "matmul + add"),
            post(END, 8, "", ""),
            post(END, 7, "", ""),
        ];
        assert_eq!(*POSTS.lock().unwrap(), wanted);
    }
}
