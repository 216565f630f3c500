//! The line of the Python program that records an operation, and the modules that it is called in.
//!
//! `cupola._origin` finds both, in some microseconds. What it found is kept while somebody listens, by what it depends
//! on: the place in the code, and the modules whose methods are running. To learn these of a frame takes some
//! nanoseconds, where Python has the functions for it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_int;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use cupola::holders::set_line;
use cupola_core::prim::key::Mixer;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyType};
use pyo3::{ffi, intern};
use smallvec::SmallVec;

/// Lets operations that are recorded know their line of the Python program, where somebody wants it.
pub fn note() {
    set_line(line);
    IS_NOTED.store(true, Ordering::Relaxed);
}

/// Forgets all lines: nobody listens any more.
pub fn forget() {
    IS_NOTED.store(false, Ordering::Relaxed);
    clear();
}

fn clear() {
    let known = std::mem::take(&mut *known());
    drop(known);
}

/// A line, the address of its frame, and the place in it.
struct Last {
    frame: usize,
    place: usize,
    line: Option<Arc<str>>,
}

/// Whether the last line is kept.
static IS_NOTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The last line that was found. It is that of everything which one call of Python's records.
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };

    /// Whether there is one: asked for every array that comes or goes, and quicker to read.
    static HAS_LAST: Cell<bool> = const { Cell::new(false) };

    /// Whether Python stands where it is, whatever goes to it or comes from it.
    static STANDS: Cell<bool> = const { Cell::new(false) };
}

/// Says that Python goes on: an array comes from it, or goes to it.
#[inline]
pub fn goes_on() {
    if IS_NOTED.load(Ordering::Relaxed) && HAS_LAST.get() && !STANDS.get() {
        set_last(None);
    }
}

fn set_last(last: Option<Last>) {
    if last.is_some() || HAS_LAST.get() {
        HAS_LAST.set(last.is_some());
        LAST.set(last);
    }
}

/// Python stands where it is until this is dropped: what is recorded meanwhile is of one line.
pub struct Stand(bool);

/// Says that the program records nothing itself while what is given back lives.
pub fn stand() -> Stand {
    set_last(None);
    Stand(STANDS.replace(true))
}

impl Drop for Stand {
    fn drop(&mut self) {
        STANDS.set(self.0);
        set_last(None);
    }
}

/// What lines depend on: code and place of the innermost frame that is not of this package, and modules.
type Key = SmallVec<[usize; 8]>;

/// A table by addresses.
type Table<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// What is known. Code and types that it names are kept, so that nothing else gets their addresses.
#[derive(Default)]
struct Known {
    codes: Table<usize, Code>,
    /// Whether objects of a type are modules.
    types: Table<usize, (bool, Py<PyAny>)>,
    lines: Table<Key, Option<Arc<str>>>,
    /// What says that a module has died, by its address.
    watched: Table<usize, Py<PyAny>>,
}

/// What a frame of some code is.
struct Code {
    is_ours: bool,
    /// What its first parameter is called, where a module may be called by it.
    first: Option<Py<PyAny>>,
    _kept: Py<PyAny>,
}

/// The lines kept at most.
const MOST: usize = 1 << 16;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// Whether a module has died, whose address something else may get.
static IS_STALE: AtomicBool = AtomicBool::new(false);

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A variable of a frame by its name.
type Variable =
    unsafe extern "C" fn(*mut ffi::PyFrameObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

/// Functions of Python's that are not of its stable interface. They have been what they are since Python 3.9, 3.11 and
/// 3.12.
struct Frames {
    back: unsafe extern "C" fn(*mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject,
    place: unsafe extern "C" fn(*mut ffi::PyFrameObject) -> c_int,
    /// Python 3.11 has only all variables at once.
    variable: Option<Variable>,
}

static FRAMES: LazyLock<Option<Frames>> = LazyLock::new(Frames::find);

impl Frames {
    #[cfg(unix)]
    fn find() -> Option<Frames> {
        let python = libloading::os::unix::Library::this();
        // SAFETY: these are the types that Python's headers give them.
        unsafe {
            Some(Frames {
                back: *python.get(b"PyFrame_GetBack\0").ok()?,
                place: *python.get(b"PyFrame_GetLasti\0").ok()?,
                variable: python.get(b"PyFrame_GetVar\0").ok().map(|found| *found),
            })
        }
    }

    #[cfg(not(unix))]
    fn find() -> Option<Frames> {
        None
    }

    /// The frames of this thread, the innermost first.
    fn all<'py>(&'static self, py: Python<'py>) -> impl Iterator<Item = Frame<'py>> {
        // SAFETY: the thread is attached; it is a frame, borrowed, or null.
        let first = unsafe {
            Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast::<ffi::PyObject>())
        };
        std::iter::successors(first.map(|own| Frame { own, frames: self }), Frame::back)
    }
}

struct Frame<'py> {
    own: Bound<'py, PyAny>,
    frames: &'static Frames,
}

impl<'py> Frame<'py> {
    fn pointer(&self) -> *mut ffi::PyFrameObject {
        self.own.as_ptr().cast()
    }

    fn back(&self) -> Option<Self> {
        // SAFETY: what is given is a frame; what comes is a frame of one's own, or null.
        let back = unsafe {
            let back = (self.frames.back)(self.pointer());
            Bound::from_owned_ptr_or_opt(self.own.py(), back.cast::<ffi::PyObject>())?
        };
        Some(Frame { own: back, frames: self.frames })
    }

    fn code(&self) -> Bound<'py, PyAny> {
        // SAFETY: what is given is a frame, and each has code, which comes as one's own.
        unsafe {
            let code = ffi::PyFrame_GetCode(self.pointer());
            Bound::from_owned_ptr(self.own.py(), code.cast::<ffi::PyObject>())
        }
    }

    /// Where in its code it is.
    fn place(&self) -> usize {
        // SAFETY: what is given is a frame.
        unsafe { (self.frames.place)(self.pointer()) as usize }
    }

    /// What it has under a name.
    fn object(&self, name: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        let py = self.own.py();
        let Some(variable) = self.frames.variable else {
            return self.own.getattr(intern!(py, "f_locals")).ok()?.get_item(name).ok();
        };
        // SAFETY: what is given is a frame and a string; what comes is one's own, or null with an error.
        let found =
            unsafe { Bound::from_owned_ptr_or_opt(py, variable(self.pointer(), name.as_ptr())) };
        if found.is_none() {
            drop(PyErr::take(py));
        }
        found
    }
}

fn address(object: &Bound<'_, PyAny>) -> usize {
    object.as_ptr() as usize
}

impl Known {
    /// What the line depends on; `None` where there is code, or a type, or a module that was not seen before.
    fn key(&self, py: Python<'_>, frames: &'static Frames) -> Option<Key> {
        let mut key: Key = SmallVec::from_slice(&[0, 0]);
        for frame in frames.all(py) {
            let code = address(&frame.code());
            let Code { is_ours, first, .. } = self.codes.get(&code)?;
            if !is_ours && key[0] == 0 {
                (key[0], key[1]) = (code, frame.place());
            }
            let first = first.as_ref().map(|name| name.bind(py));
            if let Some(object) = first.and_then(|name| frame.object(name)) {
                let (is_module, _) = self.types.get(&address(object.get_type().as_any()))?;
                if *is_module {
                    self.watched.get(&address(&object))?;
                    key.push(address(&object));
                }
            }
        }
        Some(key)
    }
}

/// Learns what frames are; runs Python, so that nothing may be locked.
fn learn(py: Python<'_>, frames: &'static Frames) -> PyResult<()> {
    let module = py.import(intern!(py, "cupola.nn.layers.base"))?.getattr(intern!(py, "Module"))?;
    let module = module.cast::<PyType>()?;
    for frame in frames.all(py) {
        let code = frame.code();
        let name = code.getattr(intern!(py, "co_name"))?.extract::<String>()?;
        let globals = frame.own.getattr(intern!(py, "f_globals"))?;
        let package = globals.get_item(intern!(py, "__name__"));
        let package = package.and_then(|name| name.extract::<String>()).unwrap_or_default();
        let is_ours = package == "cupola" || package.starts_with("cupola.");
        let has_first = code.getattr(intern!(py, "co_argcount"))?.extract::<usize>()? > 0;
        let first = match has_first && (name == "__call__" || name == "forward") {
            true => Some(code.getattr(intern!(py, "co_varnames"))?.get_item(0)?),
            false => None,
        };
        if let Some(object) = first.as_ref().and_then(|name| frame.object(name)) {
            let of = object.get_type();
            let is_module = of.is_subclass(module)?;
            if is_module && !known().watched.contains_key(&address(&object)) {
                let died = PyCFunction::new_closure(py, None, None, |_, _| {
                    IS_STALE.store(true, Ordering::Relaxed);
                })?;
                let weak = py.import(intern!(py, "weakref"))?.getattr(intern!(py, "ref"))?;
                let weak = weak.call1((&object, died))?.unbind();
                known().watched.insert(address(&object), weak);
            }
            known().types.insert(address(of.as_any()), (is_module, of.into_any().unbind()));
        }
        let (first, place) = (first.map(Bound::unbind), address(&code));
        known().codes.insert(place, Code { is_ours, first, _kept: code.unbind() });
    }
    Ok(())
}

/// The line of the program that calls, the innermost one that is not of this package, and the modules that it is
/// called in.
fn line() -> Option<Arc<str>> {
    if STANDS.get()
        && let Some(line) = LAST.with_borrow(|last| last.as_ref().map(|last| last.line.clone()))
    {
        return line;
    }
    Python::attach(|py| {
        let Some(frames) = &*FRAMES else { return asked(py) };
        if IS_STALE.load(Ordering::Relaxed) && IS_STALE.swap(false, Ordering::Relaxed) {
            clear();
        }
        let innermost = frames.all(py).next()?;
        let (frame, place) = (address(&innermost.own), innermost.place());
        let last = LAST.with_borrow(|last| {
            let last = last.as_ref().filter(|last| (last.frame, last.place) == (frame, place));
            last.map(|last| last.line.clone())
        });
        if let Some(last) = last {
            return last;
        }
        let line = sought(py, frames);
        if IS_NOTED.load(Ordering::Relaxed) {
            set_last(Some(Last { frame, place, line: line.clone() }));
        }
        line
    })
}

/// The line, from the table or from Python.
fn sought(py: Python<'_>, frames: &'static Frames) -> Option<Arc<str>> {
    let mut key = None;
    for is_second in [false, true] {
        let all = known();
        key = all.key(py, frames);
        if let Some(found) = key.as_ref().and_then(|key| all.lines.get(key)) {
            return found.clone();
        }
        drop(all);
        if is_second || key.is_some() || learn(py, frames).is_err() {
            break;
        }
    }
    let found = asked(py);
    if let Some(key) = key {
        let mut all = known();
        if all.lines.len() < MOST {
            all.lines.insert(key, found.clone());
        }
    }
    found
}

fn asked(py: Python<'_>) -> Option<Arc<str>> {
    let found = py.import("cupola._origin").and_then(|of| of.call_method0("_line")).ok()?;
    found.extract::<String>().ok().filter(|line| !line.is_empty()).map(Into::into)
}
