//! `array`: a Python object around a handle.

mod export;
mod methods;
// The macro of PyO3 inside one of ours looks as if its unsafe code were ours.
#[allow(unsafe_op_in_unsafe_fn)]
mod number;
pub(crate) mod subscript;

use std::sync::{Mutex, PoisonError};

use cupola::backend::system_memory;
use cupola::{Array, DType, Element, Scalar, ops};
use half::{bf16, f16};
use num_complex::{Complex, Complex32};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::device::PyDevice;
use crate::dtype::Dtype;
use crate::error::{raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::host::{bytes, python_bytes};
use crate::operand::give;
use crate::{format, origin, read};

/// A multi-dimensional array of one dtype, computed when it is first needed.
#[doc = docs!(array)]
#[pyclass(frozen, subclass, weakref, name = "array", module = "cupola.core")]
pub struct PyArray {
    /// Assignment to parts and augmented assignment put another array in its place.
    inner: Mutex<Array>,
}

impl PyArray {
    /// A new Python object.
    #[inline]
    pub fn new(array: Array) -> Self {
        origin::goes_on();
        PyArray { inner: Mutex::new(array) }
    }

    /// The array that this is now: of a change that was undone, what it was before.
    #[inline]
    pub fn get(&self) -> Array {
        origin::goes_on();
        let array = self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match array.is_undone() {
            false => array,
            true => self.restored(array),
        }
    }

    #[cold]
    fn restored(&self, undone: Array) -> Array {
        let Some(former) = undone.before_undone() else { return undone };
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have become another since.
        if inner.same(&undone) {
            *inner = former.clone();
        }
        former
    }

    /// Becomes another array.
    pub fn set(&self, array: Array) {
        origin::goes_on();
        let former = {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *inner, array)
        };
        drop(former);
    }

    /// Becomes `changed`, or what it is where values keep that from being computed.
    pub fn replace(&self, changed: &Array) -> cupola::Result<()> {
        self.set(ops::update(changed, &self.get())?);
        Ok(())
    }

    /// The only element as a Python object.
    fn item_of<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.get();
        if array.size() != 1 {
            return Err(PyValueError::new_err(
                "[convert] Only length-1 arrays can be converted to Python scalars.",
            ));
        }
        let bytes = bytes(py, &array)?;
        element(py, array.dtype(), &bytes, 0)
    }
}

/// Element `at` of elements' bytes as a Python object.
fn element<'py>(
    py: Python<'py>,
    dtype: DType,
    bytes: &[u8],
    at: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let size = dtype.size();
    let one = &bytes[at * size..(at + 1) * size];
    macro_rules! get {
        ($type:ty, $make:ident, |$v:ident| $value:expr) => {{
            let $v = <$type>::from_bytes(one)[0];
            // SAFETY: the interpreter is attached.
            unsafe { ffi::$make($value) }
        }};
    }
    macro_rules! complex {
        ($type:ty) => {{
            let v = <$type>::from_bytes(one)[0];
            // SAFETY: the interpreter is attached.
            unsafe { ffi::PyComplex_FromDoubles(v.re.into(), v.im.into()) }
        }};
    }
    // The library's own conversions end the process where there is no memory for an object.
    let object = match dtype {
        DType::Bool => get!(bool, PyBool_FromLong, |v| v.into()),
        DType::U8 => get!(u8, PyLong_FromLongLong, |v| v.into()),
        DType::U16 => get!(u16, PyLong_FromLongLong, |v| v.into()),
        DType::U32 => get!(u32, PyLong_FromLongLong, |v| v.into()),
        DType::U64 => get!(u64, PyLong_FromUnsignedLongLong, |v| v),
        DType::I8 => get!(i8, PyLong_FromLongLong, |v| v.into()),
        DType::I16 => get!(i16, PyLong_FromLongLong, |v| v.into()),
        DType::I32 => get!(i32, PyLong_FromLongLong, |v| v.into()),
        DType::I64 => get!(i64, PyLong_FromLongLong, |v| v),
        DType::F16 => get!(f16, PyFloat_FromDouble, |v| v.to_f64()),
        DType::BF16 => get!(bf16, PyFloat_FromDouble, |v| v.to_f64()),
        DType::F32 => get!(f32, PyFloat_FromDouble, |v| f64::from(v)),
        DType::F64 => get!(f64, PyFloat_FromDouble, |v| v),
        DType::C32 => complex!(Complex<f16>),
        DType::C64 => complex!(Complex32),
    };
    // SAFETY: what was made is ours alone, and null where there was no memory, which has raised then.
    unsafe { Bound::from_owned_ptr_or_err(py, object) }
}

/// Nested lists of the elements; the element itself of an array without axes.
fn nested<'py>(
    py: Python<'py>,
    dtype: DType,
    bytes: &[u8],
    shape: &[usize],
    first: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let Some((&size, rest)) = shape.split_first() else {
        return element(py, dtype, bytes, first);
    };
    let inner: usize = rest.iter().product();
    // SAFETY: a new list is ours alone, and null where there was no memory, which has raised then. Nobody sees it before
    // it has all of its items, each of which it owns.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(size as isize))?;
        for at in 0..size {
            let item = nested(py, dtype, bytes, rest, first + at * inner)?;
            ffi::PyList_SetItem(list.as_ptr(), at as isize, item.into_ptr());
        }
        Ok(list)
    }
}

/// About how many bytes nested lists of elements take, and the elements that are objects of their own.
fn bytes_of_lists(array: &Array) -> usize {
    let object = match array.dtype() {
        DType::Bool => 0,
        dtype if dtype.is_complex() => 32,
        dtype if dtype.is_float() => 24,
        _ => 32,
    };
    let mut lists = 1;
    let mut bytes = array.size().saturating_mul(object);
    for &size in array.shape().iter() {
        bytes = bytes.saturating_add(lists * 72);
        lists = lists.saturating_mul(size);
        bytes = bytes.saturating_add(lists.saturating_mul(8));
    }
    bytes.saturating_add(bytes / 16 + (2 << 20))
}

#[pymethods]
impl PyArray {
    #[new]
    #[pyo3(signature = (val, dtype = None))]
    fn __new__(val: &Bound<'_, PyAny>, dtype: Option<Dtype>) -> PyResult<Self> {
        read::array(val, dtype.map(|d| d.0)).map(PyArray::new)
    }

    /// The sizes along the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.get().shape().iter())
    }

    /// How many axes there are.
    #[getter]
    fn ndim(&self) -> usize {
        self.get().rank()
    }

    /// How many elements there are.
    #[getter]
    fn size(&self) -> usize {
        self.get().size()
    }

    /// The size of one element in bytes.
    #[getter]
    fn itemsize(&self) -> usize {
        self.get().dtype().size()
    }

    /// The size of all elements in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        let array = self.get();
        array.size() * array.dtype().size()
    }

    /// The type of the elements.
    #[getter]
    fn dtype(&self) -> Dtype {
        Dtype(self.get().dtype())
    }

    /// The device that the array is, or will be, computed on.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice::of(self.get().device())
    }

    /// The transposed array: the axes in the opposite order.
    #[getter]
    #[allow(non_snake_case)]
    fn T(&self) -> PyResult<PyArray> {
        give(ops::transpose(&self.get(), ()))
    }

    /// The array with its last two axes exchanged.
    #[getter]
    #[allow(non_snake_case)]
    fn mT(&self) -> PyResult<PyArray> {
        let array = self.get();
        if array.rank() < 2 {
            return Err(PyValueError::new_err(
                "[matrix_transpose] Input array must have at least 2 dimensions.",
            ));
        }
        give(ops::swapaxes(&array, -1, -2))
    }

    /// The real part.
    #[getter]
    fn real(&self) -> PyResult<PyArray> {
        give(ops::real(&self.get()))
    }

    /// The imaginary part.
    #[getter]
    fn imag(&self) -> PyResult<PyArray> {
        give(ops::imag(&self.get()))
    }

    /// The only element, as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.item_of(py)
    }

    /// The elements as nested lists of Python numbers.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.get();
        let wanted = bytes_of_lists(&array);
        let full = || {
            let text = format!("a list of {} elements does not fit the memory", array.size());
            PyMemoryError::new_err(text)
        };
        if wanted > system_memory() {
            return Err(full());
        }
        let bytes = bytes(py, &array)?;
        // Asked for at once: for want of one of the many small objects the process could end. Few are not worth it.
        if array.size() > 10_000 {
            cupola::backend::reserve::<u8>(wanted, "a list").map(drop).map_err(|_| full())?;
        }
        nested(py, array.dtype(), &bytes, array.shape(), 0)
    }

    fn __len__(&self) -> PyResult<usize> {
        let array = self.get();
        let first = array.shape().first().copied();
        first.ok_or_else(|| PyTypeError::new_err("len() 0-dimensional array."))
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<ArrayIterator> {
        let array = slf.get().get();
        if array.rank() == 0 {
            return Err(PyTypeError::new_err("iter() 0-dimensional array."));
        }
        Ok(ArrayIterator { array, next: 0 })
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.get();
        if array.rank() == 0 {
            return Err(PyTypeError::new_err("reversed() 0-dimensional array."));
        }
        let parts = ops::unstack(&ops::flip(&array, 0).map_err(raise)?, 0);
        PyList::new(py, give(parts)?)?.call_method0("__iter__")
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.item_of(py)?.is_truthy()
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let item = self.item_of(py)?;
        item.py().import("builtins")?.getattr("int")?.call1((item,))
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.get();
        if array.rank() > 0 || !array.dtype().is_integer() {
            let aval = array.aval();
            return Err(wrong_type(format!("{aval} is no index: it must be one integer")));
        }
        self.item_of(py)
    }

    fn __float__<'py>(&self, py: Python<'py>) -> PyResult<f64> {
        self.item_of(py)?.extract()
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let item = self.item_of(py)?;
        item.py().import("builtins")?.getattr("complex")?.call1((item,))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        format::text(py, &self.get())
    }

    fn __format__<'py>(
        &self,
        py: Python<'py>,
        arg: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.get();
        if array.rank() > 0 {
            return match arg.is_truthy()? {
                true => Err(wrong_type(format!("{} takes no format", array.aval()))),
                false => Ok(format::text(py, &array)?.into_pyobject(py)?.into_any()),
            };
        }
        py.import("builtins")?.getattr("format")?.call1((self.item_of(py)?, arg))
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        slf.as_ptr() as isize >> 4
    }

    fn __copy__(&self) -> PyArray {
        PyArray::new(self.get())
    }

    fn __deepcopy__(&self, memo: &Bound<'_, PyDict>) -> PyArray {
        let _ = memo;
        PyArray::new(self.get())
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let array = slf.get().get();
        let bytes = bytes(py, &array)?;
        let restore = py.import("cupola.core")?.getattr("_restore")?;
        let shape = PyTuple::new(py, array.shape().iter())?;
        let parts = (python_bytes(py, &bytes)?, Dtype(array.dtype()), shape);
        Ok((restore, parts.into_pyobject(py)?))
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let array = self.get();
        let bytes = bytes(py, &array)?;
        python_bytes(py, &bytes)
    }

    #[pyo3(signature = (api_version = None))]
    fn __array_namespace__<'py>(
        &self,
        py: Python<'py>,
        api_version: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        const VERSIONS: [&str; 5] = ["2021.12", "2022.12", "2023.12", "2024.12", "2025.12"];
        if let Some(version) = api_version.filter(|version| !VERSIONS.contains(version)) {
            return Err(wrong_value(format!(
                "__array_namespace__: api_version is one of {}, not {version}",
                VERSIONS.join(", ")
            )));
        }
        Ok(py.import("cupola.array_api")?.into_any())
    }
}

/// An array from its bytes: how pickles are read.
#[doc = docs!(_restore)]
#[pyfunction]
pub fn _restore(bytes: &[u8], dtype: Dtype, shape: Vec<usize>) -> PyResult<PyArray> {
    give(Array::from_bytes(bytes, dtype.0, shape))
}

/// The parts of an array along its first axis, one after the other.
#[doc = docs!(ArrayIterator)]
#[pyclass(name = "ArrayIterator", module = "cupola.core")]
pub struct ArrayIterator {
    array: Array,
    next: usize,
}

#[pymethods]
impl ArrayIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self) -> PyResult<Option<PyArray>> {
        if self.next >= self.array.shape()[0] {
            return Ok(None);
        }
        let part = ops::index(&self.array, &[ops::S::At(self.next as isize)]);
        self.next += 1;
        give(part).map(Some)
    }
}

/// A number as one element of `dtype`.
pub fn element_bytes(value: Scalar, dtype: DType) -> [u8; 8] {
    value.to_element(dtype)
}
