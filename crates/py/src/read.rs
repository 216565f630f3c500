//! Arrays from what Python has: numbers, nested lists, and other libraries' arrays.

mod dlpack;
pub mod lend;
mod list;

use std::ffi::CStr;

use cupola::backend::reserve;
use cupola::device::with_stream;
use cupola::{Array, DType, Device, Shape, Stream, ops};
use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::array::PyArray;
use crate::error::{raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::operand::{Foreign, Opd, is_bytes, scalar, scalar_array};
use lend::Loan;
pub use lend::Sharing;

/// What has a method `__mlx_array__` that gives an array, in annotations. Functions take it for that array.
#[doc = docs!(ArrayLike)]
#[pyclass(frozen, name = "ArrayLike", module = "cupola.core")]
pub struct ArrayLike;

/// An array of anything that holds numbers, with elements of its own.
pub fn array(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Array> {
    converted(object, dtype, Sharing::Never)
}

/// An array of anything that holds numbers, which may lie in the memory that they are in.
pub fn converted(
    object: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    sharing: Sharing,
) -> PyResult<Array> {
    let array = if let Ok(array) = object.cast::<PyArray>() {
        array.get().get()
    } else if let Some(value) = scalar(object)? {
        sharing.copies("numbers have no memory that an array could lie in")?;
        return scalar_array(value, dtype);
    } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        sharing.copies("a list has no memory that an array could lie in")?;
        list::array(object, dtype)?
    } else if let Some((array, _)) = of_library(object, sharing, dtype.into())? {
        match dtype {
            // What is cast later would show what is written to the memory until then.
            Some(dtype) if dtype != array.dtype() && sharing == Sharing::Possible => {
                return converted(object, Some(dtype), Sharing::Never);
            }
            _ => array,
        }
    } else if is_bytes(object) {
        buffer(object, sharing, None, dtype.into())?
    } else if object.is_none() {
        return Err(wrong_type("array: a number, a list or an array is expected, not None"));
    } else {
        let name = object.get_type().name()?;
        return Err(wrong_value(format!("Invalid type {name} received in array initialization.")));
    };
    match dtype {
        Some(dtype) if dtype != array.dtype() => {
            sharing.copies(format!("{} is to become {dtype}", array.dtype()))?;
            ops::astype(&array, dtype).map_err(raise)
        }
        _ => Ok(array),
    }
}

/// A copy of another library's array, and whether its dtype counts as an array's of our own does;
/// `None` where it is none.
pub fn array_like(object: &Bound<'_, PyAny>) -> PyResult<Option<(Array, bool)>> {
    of_library(object, Sharing::Never, Wanted::Usual)
}

/// Another library's array as an operand; `None` where it is none.
pub fn operand_like(object: &Bound<'_, PyAny>) -> PyResult<Option<Opd>> {
    Ok(match of_library(object, Sharing::Never, Wanted::Exact)? {
        Some((array, true)) => Some(Opd::Array(array)),
        Some((exact, false)) if exact.dtype() == DType::F64 => {
            let array = narrowed(&exact, DType::F32)?;
            Some(Opd::Foreign(Foreign { array, exact: Some(exact) }))
        }
        Some((array, false)) => Some(Opd::Foreign(Foreign { array, exact: None })),
        None => None,
    })
}

/// What another library's elements become. What becomes a dtype in the end is not rounded to another one before.
#[derive(Clone, Copy)]
enum Wanted {
    /// As in MLX: `float32` where they are `float64`.
    Usual,
    /// What they are.
    Exact,
    As(DType),
}

impl From<Option<DType>> for Wanted {
    fn from(dtype: Option<DType>) -> Self {
        dtype.map_or(Wanted::Usual, Wanted::As)
    }
}

/// Like [`array_like`], in the library's memory where that is wanted and possible.
fn of_library(
    object: &Bound<'_, PyAny>,
    sharing: Sharing,
    wanted: Wanted,
) -> PyResult<Option<(Array, bool)>> {
    if object.is_none() || object.is_instance_of::<PyString>() || is_bytes(object) {
        return Ok(None);
    }
    let py = object.py();
    if let Ok(Some(own)) = object.getattr_opt(pyo3::intern!(py, "__mlx_array__")) {
        let array = own.call0()?;
        return Ok(Some((array.cast::<PyArray>()?.get().get(), true)));
    }
    let foreign = |array: Array| Some((array, false));
    if object.hasattr(pyo3::intern!(py, "__array_interface__"))? {
        // A buffer without axes says nothing of its shape.
        if object.getattr(pyo3::intern!(py, "ndim"))?.eq(0)? {
            let one = of_library(&object.call_method1("reshape", (1,))?, sharing, wanted)?;
            let first = |(a, own): (Array, bool)| Ok((ops::reshape(&a, ()).map_err(raise)?, own));
            return one.map(first).transpose();
        }
        if let Some(native) = in_native_order(object)? {
            sharing.copies("its bytes are in the other order")?;
            return of_library(&native, sharing, wanted);
        }
        if let Some(bits) = bfloat16_bits(object)? {
            return buffer(&bits, sharing, Some(DType::BF16), wanted).map(foreign);
        }
        if PyUntypedBuffer::get(object).is_ok_and(|view| elements(&view).is_ok()) {
            return buffer(object, sharing, None, wanted).map(foreign);
        }
    }
    if object.hasattr(pyo3::intern!(py, "__dlpack__"))? {
        let array = dlpack::array(object, sharing, wanted);
        return array.map(foreign).map_err(|error| no_dtype(object, wanted, error));
    }
    if PyUntypedBuffer::get(object).is_ok() {
        return buffer(object, sharing, None, wanted).map(foreign);
    }
    if object.hasattr(pyo3::intern!(py, "__array__"))? {
        let array = object.call_method0("__array__")?;
        return buffer(&array, sharing, None, wanted).map(foreign);
    }
    Ok(None)
}

/// The error for NumPy's array of elements that have no dtype here, as `wanted` tells in MLX; any other as it is.
fn no_dtype(object: &Bound<'_, PyAny>, wanted: Wanted, error: PyErr) -> PyErr {
    let py = object.py();
    let is_numpy = object.hasattr(pyo3::intern!(py, "__array_interface__")).unwrap_or(false);
    let dtype = object.getattr(pyo3::intern!(py, "dtype"));
    match dtype {
        Ok(dtype) if is_numpy && error.is_instance_of::<PyBufferError>(py) => {
            let text = format!("array: elements of {dtype} have no dtype");
            match wanted {
                Wanted::Exact => wrong_value(text),
                Wanted::Usual | Wanted::As(_) => PyRuntimeError::new_err(text),
            }
        }
        _ => error,
    }
}

/// A NumPy array whose bytes are in the other order than the machine's, in that of the machine.
fn in_native_order<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let Ok(dtype) = object.getattr(pyo3::intern!(py, "dtype")) else { return Ok(None) };
    match dtype.getattr(pyo3::intern!(py, "isnative")) {
        Ok(is_native) if !is_native.is_truthy()? => {
            let native = dtype.call_method1("newbyteorder", ("=",))?;
            object.call_method1("astype", (native,)).map(Some)
        }
        _ => Ok(None),
    }
}

/// A NumPy array of `ml_dtypes.bfloat16` as one of `uint16`.
fn bfloat16_bits<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let name = object.getattr(pyo3::intern!(py, "dtype")).and_then(|d| d.getattr("name"));
    match name {
        Ok(name) if name.eq("bfloat16")? => Ok(Some(object.call_method1("view", ("uint16",))?)),
        _ => Ok(None),
    }
}

/// What elements a buffer holds, and what they become.
enum Elements {
    Same(DType),
    /// `complex128`.
    Complex128,
}

impl Elements {
    /// How many numbers an element has.
    fn numbers(&self) -> usize {
        match self {
            Elements::Same(dtype) if !dtype.is_complex() => 1,
            _ => 2,
        }
    }
}

/// Whether the bytes of numbers are in the other order than the machine's, and their type, of a format as in
/// Python's `struct`: it may begin with the order.
fn order_and_type(format: &CStr) -> (bool, &[u8]) {
    match format.to_bytes() {
        [b'>' | b'!', kind @ ..] => (cfg!(target_endian = "little"), kind),
        [b'<', kind @ ..] => (cfg!(target_endian = "big"), kind),
        [b'@' | b'=', kind @ ..] | kind => (false, kind),
    }
}

fn elements(buffer: &PyUntypedBuffer) -> PyResult<Elements> {
    let format: &CStr = buffer.format();
    let size = buffer.item_size();
    let kind = order_and_type(format).1;
    if let Some(complex) = kind.strip_prefix(b"Z") {
        return match complex {
            b"f" => Ok(Elements::Same(DType::C64)),
            b"d" => Ok(Elements::Complex128),
            _ => Err(unknown(format)),
        };
    }
    use DType::*;
    let dtype = match (ElementType::from_format(format), size) {
        (ElementType::Bool, 1) => Bool,
        (ElementType::UnsignedInteger { bytes: 1 }, 1) => U8,
        (ElementType::UnsignedInteger { bytes: 2 }, 2) => U16,
        (ElementType::UnsignedInteger { bytes: 4 }, 4) => U32,
        (ElementType::UnsignedInteger { bytes: 8 }, 8) => U64,
        (ElementType::SignedInteger { bytes: 1 }, 1) => I8,
        (ElementType::SignedInteger { bytes: 2 }, 2) => I16,
        (ElementType::SignedInteger { bytes: 4 }, 4) => I32,
        (ElementType::SignedInteger { bytes: 8 }, 8) => I64,
        (ElementType::Float { bytes: 4 }, 4) => F32,
        (ElementType::Float { bytes: 8 }, 8) => F64,
        _ if kind == b"e" => F16,
        _ => return Err(unknown(format)),
    };
    Ok(Elements::Same(dtype))
}

fn unknown(format: &CStr) -> PyErr {
    wrong_type(format!("array: elements of format '{}' have no dtype", format.to_string_lossy()))
}

/// An array of what a buffer holds, which counts as `bits` where that is said.
fn buffer(
    object: &Bound<'_, PyAny>,
    sharing: Sharing,
    bits: Option<DType>,
    wanted: Wanted,
) -> PyResult<Array> {
    let view = PyUntypedBuffer::get(object)?;
    let elements = elements(&view)?;
    let mut sharing = sharing.with(object)?;
    let shape: Shape = view.shape().iter().copied().collect();
    let mut strides: Vec<isize> = view.strides().to_vec();
    let mut source = Strided { data: view.buf_ptr().cast(), shape: &shape, strides: &strides };
    let turned;
    if order_and_type(view.format()).0 {
        sharing.copies("its bytes are in the other order")?;
        sharing = Sharing::Never;
        turned = source.turned(view.item_size(), elements.numbers())?;
        let size = view.item_size() as isize;
        strides = shape.row_major().iter().map(|stride| stride * size).collect();
        source = Strided { data: turned.as_ptr(), shape: &shape, strides: &strides };
    }
    match elements {
        Elements::Same(dtype) => {
            let dtype = bits.unwrap_or(dtype);
            source.imported(dtype, sharing, wanted, || Loan::of_buffer(object))
        }
        Elements::Complex128 => source.complex128(sharing, wanted),
    }
}

/// Somebody else's elements: the first of them and the distances in bytes.
pub(crate) struct Strided<'a> {
    pub data: *const u8,
    pub shape: &'a [usize],
    pub strides: &'a [isize],
}

impl Strided<'_> {
    /// The elements as an array, in place where that is wanted and possible.
    fn imported(
        &self,
        dtype: DType,
        sharing: Sharing,
        wanted: Wanted,
        loan: impl FnOnce() -> PyResult<Py<Loan>>,
    ) -> PyResult<Array> {
        let wanted = match wanted {
            Wanted::Usual => DType::F32,
            Wanted::Exact => DType::F64,
            Wanted::As(dtype) => dtype,
        };
        if dtype == DType::F64 && wanted != DType::F64 {
            sharing.copies(format!("float64 becomes {wanted}"))?;
            return narrowed(&self.copied(dtype)?, wanted);
        }
        if sharing == Sharing::Never || self.shape.contains(&0) {
            return self.copied(dtype);
        }
        match self.place(dtype.size()) {
            Some(place) => place.array(dtype, Shape::from(self.shape), loan()?),
            None => {
                sharing.copies("its elements are not aligned")?;
                self.copied(dtype)
            }
        }
    }

    /// Elements of complex128, which is no dtype here: `complex64`, or the parts that a `wanted` dtype keeps.
    fn complex128(&self, sharing: Sharing, wanted: Wanted) -> PyResult<Array> {
        let wanted = match wanted {
            Wanted::Usual | Wanted::Exact => DType::C64,
            Wanted::As(dtype) => dtype,
        };
        sharing.copies(format!("complex128 becomes {wanted}"))?;
        let bytes = self.bytes(2 * size_of::<f64>()).map_err(raise)?;
        let shape = Shape::from(self.shape);
        let numbers = bytes.as_chunks::<16>().0.iter().map(|number| {
            [&number[..8], &number[8..]].map(|part| part.try_into().map_or(0.0, f64::from_ne_bytes))
        });
        if wanted.is_complex() {
            let parts: Vec<f32> = numbers.flatten().map(|part| part as f32).collect();
            let bytes = bytemuck::cast_slice(&parts);
            return Array::from_bytes(bytes, DType::C64, shape).map_err(raise);
        }
        let kept = |number: [f64; 2]| match wanted {
            DType::Bool => f64::from(u8::from(number != [0.0; 2])),
            _ => number[0],
        };
        let real: Vec<f64> = numbers.map(kept).collect();
        narrowed(&Array::from_vec(real, shape).map_err(raise)?, wanted)
    }

    /// A copy of the elements as an array.
    fn copied(&self, dtype: DType) -> PyResult<Array> {
        let (shape, size) = (Shape::from(self.shape), dtype.size());
        let count = shape.size();
        let strides = self.elements(size);
        if count > 0 && strides.is_some_and(|s| cupola::is_row_major(self.shape, &s)) {
            // SAFETY: the owner says that so many elements lie there, one after the other, and
            // it is kept alive by the caller.
            let bytes = unsafe { std::slice::from_raw_parts(self.data, count * size) };
            return Array::from_bytes(bytes, dtype, shape).map_err(raise);
        }
        let bytes = self.bytes(size).map_err(raise)?;
        Array::from_bytes(&bytes, dtype, shape).map_err(raise)
    }

    /// The strides in elements; `None` where they are no whole numbers of them.
    fn elements(&self, size: usize) -> Option<Vec<isize>> {
        let size = size as isize;
        let stride = |(&d, &s): (&usize, &isize)| (d <= 1 || s % size == 0).then_some(s / size);
        self.shape.iter().zip(self.strides).map(stride).collect()
    }

    /// The elements' bytes in row-major order, those of each of an element's `numbers` the other way round.
    fn turned(&self, size: usize, numbers: usize) -> PyResult<Vec<u8>> {
        let mut bytes = self.bytes(size).map_err(raise)?;
        bytes.chunks_exact_mut((size / numbers).max(1)).for_each(<[u8]>::reverse);
        Ok(bytes)
    }

    /// The elements' bytes in row-major order.
    pub fn bytes(&self, size: usize) -> cupola::Result<Vec<u8>> {
        let count = self.shape.iter().fold(1, |n: usize, &d| n.saturating_mul(d));
        let mut out = reserve(count.saturating_mul(size), "the elements of an array")?;
        let mut index = vec![0usize; self.shape.len()];
        let mut at = 0isize;
        for _ in 0..count {
            // SAFETY: the index is within the shape, so the owner says that an element lies there.
            let element = unsafe { std::slice::from_raw_parts(self.data.offset(at), size) };
            out.extend_from_slice(element);
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                at += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= self.strides[axis] * self.shape[axis] as isize;
                index[axis] = 0;
            }
        }
        Ok(out)
    }
}

/// An array of `float64` in another dtype, made on the CPU: GPUs may have no float64.
pub fn narrowed(array: &Array, wanted: DType) -> PyResult<Array> {
    with_stream(Stream::of(Device::CPU), || {
        let array = ops::astype(array, wanted)?;
        array.eval()?;
        Ok(array)
    })
    .map_err(raise)
}

/// An array from anything with `__dlpack__`.
pub fn from_dlpack(object: &Bound<'_, PyAny>, sharing: Sharing) -> PyResult<Array> {
    if let Ok(array) = object.cast::<PyArray>() {
        return Ok(array.get().get());
    }
    if !object.hasattr(pyo3::intern!(object.py(), "__dlpack__"))? {
        let kind = object.get_type().name()?;
        return Err(wrong_type(format!(
            "from_dlpack: an object with __dlpack__ is expected, not {kind}"
        )));
    }
    // What other libraries lend is memory; NumPy lends the array.
    let lends_itself = object.hasattr(pyo3::intern!(object.py(), "__array_interface__"))?;
    let sharing = if lends_itself { sharing.with(object)? } else { sharing };
    dlpack::array(object, sharing, Wanted::Usual)
}

pub use dlpack::capsule;
