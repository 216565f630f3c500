//! Arrays that lie in other libraries' memory.

use std::ptr::NonNull;

use cupola::backend::Buffer;
use cupola::{Array, Aval, DType, Layout, Shape};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use super::Strided;
use super::dlpack::Tensor;
use crate::error::{raise, wrong_value};

/// Whether an array may lie in the memory that it is made from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    Never,
    Possible,
    Required,
}

impl From<Option<bool>> for Sharing {
    /// From the argument `copy` of Python's array API.
    fn from(copy: Option<bool>) -> Self {
        match copy {
            Some(true) => Sharing::Never,
            None => Sharing::Possible,
            Some(false) => Sharing::Required,
        }
    }
}

impl Sharing {
    /// What becomes of it with a lender that could hold what it lends to: that is copied where it may be.
    pub fn with(self, lender: &Bound<'_, PyAny>) -> PyResult<Sharing> {
        match self {
            Sharing::Possible if may_hold(lender)? => Ok(Sharing::Never),
            sharing => Ok(sharing),
        }
    }

    /// There is a reason to copy: an error where that is not allowed.
    pub fn copies(self, why: impl std::fmt::Display) -> PyResult<()> {
        match self {
            Sharing::Required => Err(wrong_value(format!(
                "Unable to avoid copy while creating an array as requested: {why}."
            ))),
            Sharing::Never | Sharing::Possible => Ok(()),
        }
    }
}

/// Whether what owns the memory of `object` takes attributes, as instances of subclasses of NumPy's arrays do: it
/// could hold the array that lies in its memory and holds it, which Python's garbage collector does not see.
fn may_hold(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let mut owner = object.clone();
    // A view names what it is a view of. NumPy's views are of no other view; more than these follow no rule.
    for _ in 0..8 {
        if owner.is_none() {
            return Ok(false);
        }
        let of = if owner.is_instance_of::<PyMemoryView>() {
            intern!(py, "obj")
        } else if owner.get_type().module()?.to_str()?.split('.').next() == Some("numpy") {
            intern!(py, "base")
        } else {
            return owner.hasattr(intern!(py, "__dict__"));
        };
        owner = owner.getattr(of)?;
    }
    Ok(true)
}

/// Keeps another library's memory. It is a Python object because its owner has to be let go by a
/// thread that runs Python, and arrays are dropped by any thread: Python's counts wait for one.
#[pyclass(frozen, name = "_Loan", module = "cupola.core")]
pub struct Loan {
    _held: Held,
}

#[allow(dead_code)] // Held, not read.
enum Held {
    Buffer(PyUntypedBuffer),
    Tensor(Tensor),
}

impl Loan {
    /// Of the memory of an object with the buffer protocol.
    pub fn of_buffer(object: &Bound<'_, PyAny>) -> PyResult<Py<Loan>> {
        Py::new(object.py(), Loan { _held: Held::Buffer(PyUntypedBuffer::get(object)?) })
    }

    /// Of the memory of a tensor.
    pub fn of_tensor(py: Python<'_>, tensor: Tensor) -> PyResult<Py<Loan>> {
        Py::new(py, Loan { _held: Held::Tensor(tensor) })
    }
}

/// Memory that is lent.
struct Bytes {
    first: NonNull<u8>,
    count: usize,
    _loan: Py<Loan>,
}

// SAFETY: memory belongs to no thread, and the loan is let go as `Loan` says.
unsafe impl Send for Bytes {}
// SAFETY: it is only read here.
unsafe impl Sync for Bytes {}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the lender said that elements lie in all of the range, and keeps them as long as
        // the loan lives. Who shares memory does not write to it while arrays are computed of it.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

/// Where an array can lie: from the lowest of its bytes on.
pub struct Place {
    first: NonNull<u8>,
    bytes: usize,
    layout: Layout,
}

impl Strided<'_> {
    /// Where the elements lie; `None` where that is nothing that an array can have: they are not
    /// aligned, or no whole number of elements apart.
    pub fn place(&self, size: usize) -> Option<Place> {
        if !self.data.addr().is_multiple_of(size) || self.shape.contains(&0) {
            return None;
        }
        let mut layout = Layout { strides: self.elements(size)?.into(), offset: 0 };
        let reach = layout.reach(self.shape);
        layout.offset = -reach.start;
        let first = self.data.wrapping_offset(reach.start * size as isize).cast_mut();
        let bytes = (reach.end - reach.start) as usize * size;
        Some(Place { first: NonNull::new(first)?, bytes, layout })
    }
}

impl Place {
    /// The array that lies there.
    pub fn array(self, dtype: DType, shape: Shape, loan: Py<Loan>) -> PyResult<Array> {
        let bytes = Bytes { first: self.first, count: self.bytes, _loan: loan };
        Array::from_storage(Aval { shape, dtype }, Buffer::lent(bytes), self.layout).map_err(raise)
    }
}
