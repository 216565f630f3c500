//! The memory of a computed array, where the host can read it.

use cupola::backend::Buffer;
use cupola::{Array, DType};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::raise;

/// Computes `array` and copies its elements; a GPU is waited for as `eval` waits.
pub fn bytes(py: Python<'_>, array: &Array) -> PyResult<Vec<u8>> {
    py.detach(|| cupola::wait(std::slice::from_ref(array)).and_then(|()| array.to_bytes()))
        .map_err(raise)
}

/// Bytes as Python holds them; an error where there is no memory for them.
pub fn python_bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |own| {
        own.copy_from_slice(bytes);
        Ok(())
    })
}

/// Memory that stays where it is as long as this lives.
enum Held {
    Buffer(Buffer, usize),
    Copy(Vec<u8>),
}

/// The elements of an array on the host: in place where they are there, else a copy.
pub struct Host {
    held: Held,
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// In elements.
    pub strides: Vec<isize>,
}

impl Host {
    /// Computes `array`.
    pub fn of(py: Python<'_>, array: &Array) -> PyResult<Host> {
        Self::new(py, array, |_| true)
    }

    /// Like [`Host::of`], and a copy of memory that is lent.
    pub fn own(py: Python<'_>, array: &Array) -> PyResult<Host> {
        Self::new(py, array, |buffer| !buffer.is_lent())
    }

    /// Computes `array` and copies it.
    pub fn copy(py: Python<'_>, array: &Array) -> PyResult<Host> {
        Self::new(py, array, |_| false)
    }

    fn new(py: Python<'_>, array: &Array, in_place: fn(&Buffer) -> bool) -> PyResult<Host> {
        py.detach(|| {
            cupola::wait(std::slice::from_ref(array))?;
            let (buffer, layout) = array.storage()?;
            let (dtype, shape) = (array.dtype(), array.shape().to_vec());
            if buffer.host().is_some() && in_place(&buffer) && array.size() > 0 {
                let held = Held::Buffer(buffer, layout.offset as usize * dtype.size());
                return Ok(Host { held, dtype, shape, strides: layout.strides.to_vec() });
            }
            let strides = array.shape().row_major().to_vec();
            Ok(Host { held: Held::Copy(array.to_bytes()?), dtype, shape, strides })
        })
        .map_err(raise)
    }

    /// Whether the memory is not the array's, but for arrays of nothing.
    pub fn is_copy(&self) -> bool {
        matches!(&self.held, Held::Copy(bytes) if !bytes.is_empty())
    }

    /// Notes that others may write to the memory, if it is the array's own.
    pub fn expose(&self) {
        if let Held::Buffer(buffer, _) = &self.held {
            buffer.expose();
        }
    }

    /// Why what is written to the memory would be lost or wrong, if so.
    pub fn read_only(&self) -> Option<&'static str> {
        match &self.held {
            Held::Buffer(buffer, _) if buffer.is_lent() => {
                Some("the memory of the array is another library's")
            }
            _ if self.is_copy() => {
                Some("the array lies on a device: what is written to its copy would be lost")
            }
            _ => None,
        }
    }

    /// The first element.
    pub fn data(&self) -> *const u8 {
        match &self.held {
            Held::Buffer(buffer, offset) => match buffer.host() {
                Some(bytes) => bytes[*offset..].as_ptr(),
                None => std::ptr::null(),
            },
            Held::Copy(bytes) => bytes.as_ptr(),
        }
    }

    /// The bytes of the element at `index`, counted in row-major order.
    pub fn element(&self, mut index: usize) -> &[u8] {
        let mut at = 0;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            at += (index % size) as isize * stride;
            index /= size;
        }
        let size = self.dtype.size();
        let (bytes, first) = match &self.held {
            Held::Buffer(buffer, offset) => (buffer.host().unwrap_or_default(), *offset),
            Held::Copy(bytes) => (&bytes[..], 0),
        };
        let start = first.wrapping_add_signed(at * size as isize);
        &bytes[start..start + size]
    }

    /// Whether the elements lie in row-major order without gaps.
    pub fn is_row_major(&self) -> bool {
        cupola::is_row_major(&self.shape, &self.strides)
    }
}
