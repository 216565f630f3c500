//! Tensors, and devices by kind.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cupola_core::graph::Size;
use cupola_core::{Array, DType, Device, DeviceKind, Error, Result, backend};

use cupola_core::ops;

/// A place in a graph: something that is fed, that a layer gives, or that a layer has learnt. Clones are the
/// same place.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

struct Inner {
    sizes: Vec<Size>,
    dtype: DType,
    data: Mutex<Option<Array>>,
}

impl Tensor {
    /// A tensor without data. A size may have a name, which stands for any number.
    pub fn new(sizes: &[Size], dtype: DType) -> Tensor {
        Tensor(Arc::new(Inner { sizes: sizes.to_vec(), dtype, data: Mutex::default() }))
    }

    /// A tensor that holds `data`.
    pub fn of(data: &Array) -> Tensor {
        let sizes: Vec<Size> = data.aval().shape.iter().map(|&size| size.into()).collect();
        let tensor = Tensor::new(&sizes, data.dtype());
        tensor.put(data.clone());
        tensor
    }

    /// The sizes.
    pub fn sizes(&self) -> &[Size] {
        &self.0.sizes
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// What it was given, or what the last execution left here.
    ///
    /// # Errors
    /// Where there is nothing yet.
    pub fn data(&self) -> Result<Array> {
        self.held().ok_or_else(|| {
            let text = format!("tensor {self} has no data: it was not bound or executed");
            Error::argument("mlcompute", text)
        })
    }

    /// Gives it data of its sizes, or as many numbers.
    ///
    /// # Errors
    /// Where the data is of another dtype or does not fit.
    pub fn bind(&self, data: &Array) -> Result<()> {
        self.put(self.fitted(data)?);
        Ok(())
    }

    /// `data` in its sizes.
    pub(super) fn fitted(&self, data: &Array) -> Result<Array> {
        let aval = data.aval();
        let wrong = || {
            let text = format!("tensor {self} cannot have data of {aval}");
            Error::shape("mlcompute", text)
        };
        if aval.dtype != self.0.dtype {
            return Err(wrong());
        }
        let fits = |(&have, want): (&usize, &Size)| match want {
            Size::Known(want) => *want == have,
            Size::Named(_) => true,
        };
        if aval.shape.rank() == self.0.sizes.len() && aval.shape.iter().zip(&self.0.sizes).all(fits)
        {
            return Ok(data.clone());
        }
        let known = |size: &Size| match size {
            Size::Known(size) => Some(*size),
            Size::Named(_) => None,
        };
        match self.0.sizes.iter().map(known).collect::<Option<Vec<usize>>>() {
            Some(sizes) if sizes.iter().product::<usize>() == aval.shape.size() => {
                ops::reshape(data, sizes)
            }
            _ => Err(wrong()),
        }
    }

    pub(super) fn held(&self) -> Option<Array> {
        self.lock().clone()
    }

    pub(super) fn put(&self, data: Array) {
        *self.lock() = Some(data);
    }

    /// Puts `new` in the place of `old`; what somebody else put there in the meantime stays.
    pub(super) fn replace(&self, old: &Array, new: &Array) -> bool {
        let mut data = self.lock();
        let is_old = data.as_ref().is_some_and(|data| data.same(old));
        if is_old {
            *data = Some(new.clone());
        }
        is_old
    }

    fn lock(&self) -> MutexGuard<'_, Option<Array>> {
        self.0.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for clones alone.
    pub(super) fn key(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.sizes.iter().map(Size::to_string).collect();
        write!(f, "{}[{}]", self.0.dtype, sizes.join(", "))
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({self})")
    }
}

/// A kind of device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The processor.
    Cpu,
    /// The best GPU.
    Gpu,
    /// The best that there is.
    Any,
}

/// The device of a kind. Where there is no GPU it is the CPU, and a line on the standard error says so.
pub fn device(kind: Kind) -> Device {
    let best = match kind {
        Kind::Cpu => Device::CPU,
        Kind::Gpu | Kind::Any => backend::best_device(),
    };
    if kind == Kind::Gpu && best.kind == DeviceKind::Cpu {
        eprintln!("cupola::mlcompute: there is no GPU, so this runs on the CPU");
    }
    best
}
