//! Shared cells: what a module holds its arrays in.
//!
//! A cell changes through a shared reference, so that `forward(&self, …)` can update running
//! statistics, and a transform can put tracers in the place of parameters and take them out again.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cupola_core::tree::{Leaf, Path, Role, Tree};
use cupola_core::{Array, DType, Shape};

/// An array that training changes. A clone is a second handle on the same parameter: tied
/// parameters are clones of each other, and stay tied.
///
/// # Example
/// ```
/// use cupola::{Array, nn::Param};
/// let a = Param::new(Array::scalar(1.0f32));
/// let b = a.clone();
/// a.set(Array::scalar(2.0f32));
/// assert_eq!(b.get().item::<f32>()?, 2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone)]
pub struct Param(Arc<ParamCell>);

struct ParamCell {
    value: Mutex<Array>,
    trainable: AtomicBool,
}

/// An array that is saved with a module and not trained: a running statistic. A clone is a second
/// handle on the same buffer.
#[derive(Clone)]
pub struct Buffer(Arc<Mutex<Array>>);

/// Whether a module trains or is evaluated. A clone is a second handle on the same mode.
///
/// A module that behaves differently while it trains holds one; [`Module::train`] sets it.
///
/// [`Module::train`]: super::Module::train
#[derive(Clone, Debug)]
pub struct Mode(Arc<AtomicBool>);

fn read(cell: &Mutex<Array>) -> Array {
    cell.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn write(cell: &Mutex<Array>, value: Array) {
    let former =
        std::mem::replace(&mut *cell.lock().unwrap_or_else(PoisonError::into_inner), value);
    // Outside of the lock: the last handle on a graph may free a lot.
    drop(former);
}

impl Param {
    /// A trainable parameter.
    pub fn new(value: Array) -> Self {
        Param(Arc::new(ParamCell { value: Mutex::new(value), trainable: AtomicBool::new(true) }))
    }

    /// The value.
    pub fn get(&self) -> Array {
        read(&self.0.value)
    }

    /// Changes the value, here and wherever the parameter is tied.
    pub fn set(&self, value: Array) {
        write(&self.0.value, value);
    }

    /// The value's shape.
    pub fn shape(&self) -> Shape {
        self.get().shape().clone()
    }

    /// The value's dtype.
    pub fn dtype(&self) -> DType {
        self.get().dtype()
    }

    /// Keeps training from changing it.
    pub fn freeze(&self) {
        self.0.trainable.store(false, Ordering::Relaxed);
    }

    /// Lets training change it again.
    pub fn unfreeze(&self) {
        self.0.trainable.store(true, Ordering::Relaxed);
    }

    /// Whether training changes it.
    pub fn is_trainable(&self) -> bool {
        self.0.trainable.load(Ordering::Relaxed)
    }

    /// Whether both are handles on the same parameter.
    pub fn is_tied_to(&self, other: &Param) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The cell's address, which tells parameters apart.
    pub(super) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    pub(super) fn role(&self) -> Role {
        if self.is_trainable() { Role::Parameter } else { Role::Frozen }
    }
}

impl Buffer {
    /// A buffer.
    pub fn new(value: Array) -> Self {
        Buffer(Arc::new(Mutex::new(value)))
    }

    /// The value.
    pub fn get(&self) -> Array {
        read(&self.0)
    }

    /// Changes the value.
    pub fn set(&self, value: Array) {
        write(&self.0, value);
    }

    pub(super) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl Mode {
    /// A mode that trains.
    pub fn new() -> Self {
        Mode(Arc::new(AtomicBool::new(true)))
    }

    /// Whether the module trains.
    pub fn is_training(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes the mode.
    pub fn set(&self, training: bool) {
        self.0.store(training, Ordering::Relaxed);
    }
}

impl Default for Mode {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frozen = if self.is_trainable() { "" } else { ", frozen" };
        write!(f, "Param({}{frozen})", self.get().aval())
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({})", self.get().aval())
    }
}

impl Tree for Param {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        let leaf = Leaf { path: path.as_str(), role: self.role(), identity: Some(self.identity()) };
        f(leaf, &self.get());
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        change_param(self, path.as_str(), f);
    }

    fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
        f(u64::from(self.is_trainable()));
    }
}

impl Tree for Buffer {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        let leaf =
            Leaf { path: path.as_str(), role: Role::Buffer, identity: Some(self.identity()) };
        f(leaf, &self.get());
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        change_buffer(self, path.as_str(), f);
    }
}

impl Tree for Mode {
    fn visit(&self, _: &mut Path, _: &mut dyn FnMut(Leaf<'_>, &Array)) {}

    fn visit_mut(&mut self, _: &mut Path, _: &mut dyn FnMut(Leaf<'_>, &mut Array)) {}

    fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
        f(u64::from(self.is_training()));
    }
}

/// Lets `f` change the parameter. No lock is held while `f` runs, so it may look at the cell.
pub(super) fn change_param(param: &Param, path: &str, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
    let mut value = param.get();
    f(Leaf { path, role: param.role(), identity: Some(param.identity()) }, &mut value);
    param.set(value);
}

/// Lets `f` change the buffer.
pub(super) fn change_buffer(buffer: &Buffer, path: &str, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
    let mut value = buffer.get();
    f(Leaf { path, role: Role::Buffer, identity: Some(buffer.identity()) }, &mut value);
    buffer.set(value);
}
