//! DLPack: arrays of other libraries in memory, by a C structure in a capsule.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use cupola::{Array, DType};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::{Loan, Sharing, Strided, Wanted};
use crate::array::PyArray;
use crate::error::{wrong_type, wrong_value};
use crate::host::Host;

const CPU: i32 = 1;
const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

#[repr(C)]
pub struct DLTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
pub struct DLManagedTensor {
    tensor: DLTensor,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

#[repr(C)]
pub struct DLManagedTensorVersioned {
    major: u32,
    minor: u32,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    flags: u64,
    tensor: DLTensor,
}

/// A tensor that was taken out of its capsule, and goes back to its library on drop.
pub enum Tensor {
    Plain(NonNull<DLManagedTensor>),
    Versioned(NonNull<DLManagedTensorVersioned>),
}

// SAFETY: the structure belongs to no thread; its library is called under Python's lock, which
// whoever drops a `Loan` has.
unsafe impl Send for Tensor {}
// SAFETY: it is only read.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// Takes the tensor out of a capsule that was not used before.
    fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let capsule =
            capsule.cast::<PyCapsule>().map_err(|_| wrong_type("__dlpack__ gave no capsule"))?;
        let (tensor, used) = match capsule.pointer_checked(Some(VERSIONED)) {
            Ok(managed) => (Tensor::Versioned(managed.cast()), USED_VERSIONED),
            Err(_) => (Tensor::Plain(capsule.pointer_checked(Some(NAME))?.cast()), USED),
        };
        // SAFETY: it is a capsule, and the name lives as long as the program.
        if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        match tensor {
            // SAFETY: a capsule of this name holds such a structure.
            Tensor::Versioned(managed) if unsafe { managed.as_ref().major } != 1 => {
                Err(wrong_value("from_dlpack: only version 1 of DLPack is understood"))
            }
            tensor => Ok(tensor),
        }
    }

    fn get(&self) -> &DLTensor {
        // SAFETY: the structure lives until its deleter is called.
        unsafe {
            match self {
                Tensor::Plain(managed) => &managed.as_ref().tensor,
                Tensor::Versioned(managed) => &managed.as_ref().tensor,
            }
        }
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: the tensor was taken out of its capsule, so this is who calls the deleter, once.
        unsafe {
            match self {
                Tensor::Plain(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
                Tensor::Versioned(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
            }
        }
    }
}

fn code_of(dtype: DType) -> (u8, u8) {
    use DType::*;
    let bits = dtype.size() as u8 * 8;
    match dtype {
        Bool => (6, 8),
        U8 | U16 | U32 | U64 => (1, bits),
        I8 | I16 | I32 | I64 => (0, bits),
        F16 | F32 | F64 => (2, bits),
        BF16 => (4, 16),
        C32 | C64 => (5, bits),
    }
}

/// An array of what `object.__dlpack__` gives.
pub fn array(object: &Bound<'_, PyAny>, sharing: Sharing, wanted: Wanted) -> PyResult<Array> {
    let py = object.py();
    let device: (i32, i32) = match object.call_method0("__dlpack_device__") {
        Ok(device) => device.call_method0("__iter__").and_then(|i| {
            let mut items = i.try_iter()?.map(|v| v?.call_method0("__int__")?.extract::<i32>());
            let mut next = || items.next().unwrap_or(Ok(0));
            Ok((next()?, next()?))
        })?,
        Err(_) => (CPU, 0),
    };
    let arguments = PyDict::new(py);
    if device.0 != CPU {
        sharing.copies("it is not in the memory of the host")?;
        // The other library brings it to the host.
        arguments.set_item("dl_device", (CPU, 0))?;
    }
    let plain = arguments.copy()?;
    // What is read only, only the version that can say so lets go.
    arguments.set_item("max_version", (1, 0))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&arguments)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            object.call_method("__dlpack__", (), Some(&plain))?
        }
        capsule => capsule?,
    };
    let tensor = Tensor::take(&capsule)?;
    let t = tensor.get();
    if t.device_type != CPU {
        return Err(wrong_value(format!(
            "from_dlpack: device type {} is not the CPU",
            t.device_type
        )));
    }
    let dtype = DType::ALL.into_iter().find(|&d| code_of(d) == (t.code, t.bits));
    let is_complex128 = (t.code, t.bits) == (5, 128);
    let Some(dtype) = dtype.or(is_complex128.then_some(DType::C64)).filter(|_| t.lanes == 1) else {
        return Err(wrong_type(format!(
            "from_dlpack: type {} of {} bits has no dtype",
            t.code, t.bits
        )));
    };
    let rank = t.ndim as usize;
    let list = |pointer: *mut i64| match pointer.is_null() || rank == 0 {
        true => None,
        // SAFETY: the structure says that there are `ndim` of them.
        false => Some(unsafe { std::slice::from_raw_parts(pointer, rank) }),
    };
    let shape: Vec<usize> = list(t.shape).unwrap_or(&[]).iter().map(|&d| d as usize).collect();
    let size = usize::from(t.bits) / 8;
    let strides: Vec<isize> = match list(t.strides) {
        Some(strides) => strides.iter().map(|&s| s as isize * size as isize).collect(),
        None => {
            cupola::Shape::from(&shape[..]).row_major().iter().map(|s| s * size as isize).collect()
        }
    };
    // SAFETY: the offset lies within the memory that the structure describes.
    let data = unsafe { t.data.cast::<u8>().cast_const().add(t.byte_offset as usize) };
    let source = Strided { data, shape: &shape, strides: &strides };
    if is_complex128 {
        return source.complex128(sharing, wanted);
    }
    source.imported(dtype, sharing, wanted, || Loan::of_tensor(py, tensor))
}

/// What a capsule of ours keeps alive.
struct Export {
    managed: DLManagedTensor,
    _host: Host,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

unsafe extern "C" fn delete(managed: *mut DLManagedTensor) {
    // SAFETY: the manager is the box that `capsule` leaked, and a deleter is called once.
    drop(unsafe { Box::from_raw((*managed).manager.cast::<Export>()) });
}

unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with our capsule; who took the tensor has renamed it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) != 0 {
            let managed = ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr());
            delete(managed.cast());
        }
    }
}

/// A capsule over an array's memory on the host; a copy of it if `copy` says so, or if it has to be
/// one and `copy` does not forbid it.
pub fn capsule<'py>(
    py: Python<'py>,
    array: &PyArray,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = array.get();
    let host = match copy {
        Some(true) => Host::copy(py, &array)?,
        // Who takes a capsule may write to the memory, so what is lent to us is not passed on.
        _ => Host::own(py, &array)?,
    };
    host.expose();
    if copy == Some(false) && host.is_copy() {
        return Err(PyBufferError::new_err(
            "Unable to avoid copy: the array lies on a device or in another library's memory",
        ));
    }
    let (code, bits) = code_of(host.dtype);
    let mut export = Box::new(Export {
        shape: host.shape.iter().map(|&d| d as i64).collect(),
        strides: host.strides.iter().map(|&s| s as i64).collect(),
        managed: DLManagedTensor {
            tensor: DLTensor {
                data: host.data().cast_mut().cast(),
                device_type: CPU,
                device_id: 0,
                ndim: host.shape.len() as i32,
                code,
                bits,
                lanes: 1,
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: 0,
            },
            manager: std::ptr::null_mut(),
            deleter: Some(delete),
        },
        _host: host,
    });
    export.managed.tensor.shape = export.shape.as_mut_ptr();
    export.managed.tensor.strides = export.strides.as_mut_ptr();
    let export = Box::into_raw(export);
    // SAFETY: the box was just leaked, its address does not change, and `delete` takes it back.
    unsafe {
        (*export).managed.manager = export.cast();
        let managed = &raw mut (*export).managed;
        let capsule = ffi::PyCapsule_New(managed.cast(), NAME.as_ptr(), Some(destroy));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}
