//! Arrays as NumPy and others see them: the buffer protocol, `__array__` and DLPack.

use std::ffi::{CString, c_int, c_void};

use cupola::{DType, ops};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyArray;
use crate::error::raise;
use crate::host::Host;
use crate::read;

/// What a view of ours keeps alive.
struct View {
    host: Host,
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
    format: CString,
}

/// The format of PEP 3118; `None` for what it has no letter for.
fn format(dtype: DType) -> Option<&'static str> {
    use DType::*;
    Some(match dtype {
        Bool => "?",
        U8 => "B",
        U16 => "H",
        U32 => "I",
        U64 => "Q",
        I8 => "b",
        I16 => "h",
        I32 => "i",
        I64 => "q",
        F16 => "e",
        BF16 | C32 => return None,
        F32 => "f",
        F64 => "d",
        C64 => "Zf",
    })
}

#[pymethods]
impl PyArray {
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let array = slf.get().get();
        let Some(format) = format(array.dtype()) else {
            let text = format!("{} has no format in the buffer protocol", array.dtype());
            return Err(PyBufferError::new_err(text));
        };
        // NumPy passes no error on, and asks for `__array__` then, which gives it.
        slf.py().detach(|| cupola_core::compute(std::slice::from_ref(&array))).map_err(raise)?;
        let host = Host::of(slf.py(), &array)?;
        if flags & ffi::PyBUF_STRIDES != ffi::PyBUF_STRIDES && !host.is_row_major() {
            return Err(PyBufferError::new_err("the array is not contiguous"));
        }
        if let Some(why) = host.read_only().filter(|_| flags & ffi::PyBUF_WRITABLE != 0) {
            return Err(PyBufferError::new_err(why));
        }
        if host.read_only().is_none() {
            host.expose();
        }
        let size = host.dtype.size() as isize;
        let mut own = Box::new(View {
            shape: host.shape.iter().map(|&d| d as isize).collect(),
            strides: host.strides.iter().map(|s| s * size).collect(),
            format: CString::new(format)?,
            host,
        });
        let count: usize = own.host.shape.iter().product();
        // SAFETY: Python gives a view to fill; everything in it points into the box, which lives
        // until `__releasebuffer__` takes it back.
        unsafe {
            (*view).buf = own.host.data().cast_mut().cast::<c_void>();
            (*view).len = count as isize * size;
            (*view).itemsize = size;
            (*view).readonly = c_int::from(own.host.read_only().is_some());
            (*view).ndim = own.shape.len() as c_int;
            (*view).format = own.format.as_ptr().cast_mut();
            (*view).shape = own.shape.as_mut_ptr();
            (*view).strides = own.strides.as_mut_ptr();
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = Box::into_raw(own).cast();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `internal` is the box that `__getbuffer__` leaked, and a view is released once.
        drop(unsafe { Box::from_raw((*view).internal.cast::<View>()) });
    }

    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: Bound<'py, Self>,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import("numpy")?;
        let array = slf.get().get();
        if copy == Some(false) && matches!(array.dtype(), DType::BF16 | DType::C32) {
            let text =
                format!("NumPy gets {} as a copy, and copy=False allows none", array.dtype());
            return Err(PyValueError::new_err(text));
        }
        let base = if array.dtype() == DType::BF16 {
            let Ok(extension) = py.import("ml_dtypes") else {
                return Err(PyTypeError::new_err(
                    "bfloat16 arrays cannot be converted to NumPy without the package ml_dtypes.",
                ));
            };
            let bytes = slf.call_method0("__bytes__")?;
            let words = numpy.call_method1("frombuffer", (bytes, "uint16"))?;
            let flat = words.call_method1("view", (extension.getattr("bfloat16")?,))?;
            flat.call_method1("reshape", (slf.getattr("shape")?,))?.call_method0("copy")?
        } else {
            // NumPy has no half complex numbers.
            let own = match array.dtype() {
                DType::C32 => {
                    let wide = ops::astype(&array, DType::C64).map_err(raise)?;
                    Bound::new(py, PyArray::new(wide))?
                }
                _ => slf.clone(),
            };
            let view = py.import("builtins")?.getattr("memoryview")?.call1((own,))?;
            numpy.call_method1("asarray", (view,))?
        };
        let base = match dtype {
            Some(dtype) => {
                let options = PyDict::new(py);
                options.set_item("copy", false)?;
                base.call_method("astype", (dtype,), Some(&options))?
            }
            None => base,
        };
        if copy == Some(true) { base.call_method0("copy") } else { Ok(base) }
    }

    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // It is computed and read on the host before it is given, in the oldest form.
        let _ = (stream, max_version);
        if dl_device.is_some_and(|device| device != self.__dlpack_device__()) {
            return Err(PyBufferError::new_err("arrays are given in the memory of the host only"));
        }
        read::capsule(py, self, copy)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }
}
