//! Arrays from nested lists and tuples, which are read where they are.
//!
//! Two walks: the first finds the shape and the kind of the numbers, the second writes them into
//! one vector. No number is boxed or copied in between, so that tens of millions of them take
//! seconds.

use cupola::{Array, DType, Kind, MAX_RANK, Scalar, Shape, ops};
use num_complex::Complex32;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyList, PyTuple};

use crate::array::{PyArray, element_bytes};
use crate::error::{raise, wrong_value};
use crate::operand;
use crate::tree::Level;

/// An array of the numbers and arrays in `object`, a list or tuple.
pub fn array(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Array> {
    let _level = Level::enter()?;
    let mut shape = Vec::new();
    first_path(object, &mut shape)?;
    let mut found = Found { kind: None, is_wide: false, is_huge: false, arrays: None };
    found.look(object, &shape)?;
    if let Some(arrays) = found.arrays {
        // Beside doubles nothing is rounded to less on its way to them.
        let is_double = arrays == DType::F64 && found.kind != Some(Kind::Complex);
        return stacked(object, dtype.or(is_double.then_some(DType::F64)));
    }
    let size = shape.iter().product();
    let shape = Shape::from(&shape[..]);
    match found.kind {
        None => give(&Vec::<f32>::new(), shape, DType::F32, dtype),
        Some(Kind::Bool) => {
            let mut out: Vec<u8> = room(size)?;
            each(object, shape.rank(), &mut |v| {
                out.push(u8::from(v.is_truthy()?));
                Ok(())
            })?;
            let array = Array::from_bytes(&out, DType::Bool, shape).map_err(raise)?;
            to(array, dtype)
        }
        Some(Kind::Integer) if found.is_huge => {
            let dtype = dtype.unwrap_or(DType::U64);
            match dtype.is_integer() && dtype.size() < 8 {
                true => Err(wrong_value(format!("array: the numbers do not fit {dtype}"))),
                false => scalars(object, shape, dtype),
            }
        }
        Some(Kind::Integer) => {
            let own = if found.is_wide { DType::I64 } else { DType::I32 };
            match dtype.unwrap_or(own) {
                DType::I32 => {
                    let mut out: Vec<i32> = room(size)?;
                    each(object, shape.rank(), &mut |v| {
                        out.push(i32::try_from(long(v)?).map_err(|_| outside(v, DType::I32))?);
                        Ok(())
                    })?;
                    give(&out, shape, DType::I32, None)
                }
                wanted => {
                    let mut out: Vec<i64> = room(size)?;
                    each(object, shape.rank(), &mut |v| {
                        let value = long(v)?;
                        if found.is_wide && wanted.is_integer() && !fits(value, wanted) {
                            return Err(outside(v, wanted));
                        }
                        out.push(value);
                        Ok(())
                    })?;
                    narrowed(&out, shape, wanted)
                }
            }
        }
        Some(Kind::Float) if matches!(dtype, None | Some(DType::F32)) => {
            let mut out: Vec<f32> = room(size)?;
            each(object, shape.rank(), &mut |v| {
                out.push(double(v)? as f32);
                Ok(())
            })?;
            give(&out, shape, DType::F32, None)
        }
        Some(Kind::Float) => scalars(object, shape, dtype.unwrap_or(DType::F32)),
        Some(Kind::Complex) => {
            let mut out: Vec<Complex32> = room(size)?;
            each(object, shape.rank(), &mut |v| {
                let value: num_complex::Complex64 = v.extract()?;
                out.push(Complex32::new(value.re as f32, value.im as f32));
                Ok(())
            })?;
            give(&out, shape, DType::C64, dtype)
        }
    }
}

/// A vector with room for so many elements.
fn room<T>(count: usize) -> PyResult<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(count).map_err(|_| {
        PyMemoryError::new_err(format!("array: there is no memory for {count} numbers of a list"))
    })?;
    Ok(vector)
}

fn give<T: bytemuck::NoUninit>(
    values: &[T],
    shape: Shape,
    own: DType,
    dtype: Option<DType>,
) -> PyResult<Array> {
    to(Array::from_bytes(bytemuck::cast_slice(values), own, shape).map_err(raise)?, dtype)
}

fn to(array: Array, dtype: Option<DType>) -> PyResult<Array> {
    match dtype {
        Some(dtype) => ops::astype(&array, dtype).map_err(raise),
        None => Ok(array),
    }
}

/// Whether an integer may become one of `dtype`: within 32 bits it wraps, as in MLX.
fn fits(value: i64, dtype: DType) -> bool {
    dtype.size() == 8 || (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value)
}

fn outside(object: &Bound<'_, PyAny>, dtype: DType) -> PyErr {
    wrong_value(format!("array: {object} does not fit {dtype}"))
}

/// Integers that wrap into `dtype`.
fn narrowed(values: &[i64], shape: Shape, dtype: DType) -> PyResult<Array> {
    if dtype == DType::I64 {
        return give(values, shape, dtype, None);
    }
    let mut bytes = room(values.len() * dtype.size())?;
    for &value in values {
        bytes.extend_from_slice(&element_bytes(Scalar::Int(value), dtype)[..dtype.size()]);
    }
    Array::from_bytes(&bytes, dtype, shape).map_err(raise)
}

/// Numbers of any kind, one by one.
fn scalars(object: &Bound<'_, PyAny>, shape: Shape, dtype: DType) -> PyResult<Array> {
    let mut bytes = room(shape.size() * dtype.size())?;
    each(object, shape.rank(), &mut |v| {
        let value = operand::scalar(v)?.ok_or_else(|| invalid(v))?;
        bytes.extend_from_slice(&element_bytes(value, dtype)[..dtype.size()]);
        Ok(())
    })?;
    Array::from_bytes(&bytes, dtype, shape).map_err(raise)
}

/// Lists that hold arrays: each item becomes an array, and they are stacked.
fn stacked(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Array> {
    let array = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        let number = if is_nest(&item) { None } else { operand::scalar(&item).ok().flatten() };
        // Numbers are cast to the dtype when all are one array: integers wrap, and what has a point is rounded then.
        let dtype = match number {
            Some(Scalar::Float(_)) => dtype.map(|_| DType::F64),
            Some(_) => None,
            None => dtype,
        };
        super::array(&item, dtype)
    };
    let items: Vec<Array> = object.try_iter()?.map(array).collect::<PyResult<_>>()?;
    if items.windows(2).any(|w| w[0].shape() != w[1].shape()) {
        return Err(uneven());
    }
    let common = items.iter().map(Array::dtype).reduce(DType::promote);
    let wanted = dtype.or(common).unwrap_or(DType::F32);
    let cast = |a: &Array| ops::astype(a, wanted).map_err(raise);
    let items: Vec<Array> = items.iter().map(cast).collect::<PyResult<_>>()?;
    ops::stack(&items.iter().collect::<Vec<_>>(), 0).map_err(raise)
}

fn uneven() -> PyErr {
    wrong_value("Initialization encountered non-uniform length.")
}

fn invalid(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map(|n| n.to_string()).unwrap_or_default();
    wrong_value(format!("Invalid type {name} received in array initialization."))
}

/// The lengths along the first items.
fn first_path(object: &Bound<'_, PyAny>, shape: &mut Vec<usize>) -> PyResult<()> {
    if !is_nest(object) {
        return Ok(());
    }
    let length = object.len()?;
    shape.push(length);
    if shape.len() > MAX_RANK {
        return Err(wrong_value(format!(
            "array: lists are nested deeper than the {MAX_RANK} axes that an array may have"
        )));
    }
    if length > 0 { first_path(&object.get_item(0)?, shape) } else { Ok(()) }
}

fn is_nest(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
}

/// What the first walk finds.
struct Found {
    /// The highest kind of number; `None` where there is none.
    kind: Option<Kind>,
    /// Some integer needs 64 bits.
    is_wide: bool,
    /// Some integer is above those of 64 bits with a sign.
    is_huge: bool,
    /// What the arrays' dtypes promote to; `None` where there are none.
    arrays: Option<DType>,
}

impl Found {
    /// Whether an object is an array, which it notes.
    fn look_at_array(&mut self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let dtype = match object.cast::<PyArray>() {
            Ok(array) => Some(array.get().get().dtype()),
            Err(_) => super::array_like(object)?.map(|(array, _)| array.dtype()),
        };
        if let Some(dtype) = dtype {
            self.arrays = Some(self.arrays.map_or(dtype, |d| d.promote(dtype)));
        }
        Ok(dtype.is_some())
    }

    fn look(&mut self, object: &Bound<'_, PyAny>, shape: &[usize]) -> PyResult<()> {
        let Some((&length, rest)) = shape.split_first() else {
            return self.look_at(object);
        };
        if !is_nest(object) {
            // An array may stand where a list of numbers could.
            return match self.look_at_array(object)? || self.arrays.is_some() {
                true => Ok(()),
                false => Err(uneven()),
            };
        }
        let items = Items::of(object)?;
        if items.len() != length {
            return Err(uneven());
        }
        items.each(&mut |item| match rest.is_empty() {
            true => self.look_at(item),
            false => self.look(item, rest),
        })
    }

    fn look_at(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let kind = if object.is_exact_instance_of::<PyFloat>() {
            Kind::Float
        } else if object.is_instance_of::<pyo3::types::PyBool>() {
            Kind::Bool
        } else if object.is_instance_of::<PyInt>() {
            match operand::scalar(object)? {
                Some(Scalar::Int(value)) => self.is_wide |= i32::try_from(value).is_err(),
                _ => self.is_huge = true,
            }
            Kind::Integer
        } else if object.is_instance_of::<PyFloat>() {
            Kind::Float
        } else if object.is_instance_of::<PyComplex>() {
            Kind::Complex
        } else if is_nest(object) {
            // A list may stand where an array does.
            return if self.arrays.is_some() { Ok(()) } else { Err(uneven()) };
        } else if self.look_at_array(object)? {
            return Ok(());
        } else {
            return Err(invalid(object));
        };
        self.kind = Some(self.kind.map_or(kind, |k| k.max(kind)));
        Ok(())
    }
}

/// Calls `f` with every number, in row-major order.
fn each(
    object: &Bound<'_, PyAny>,
    rank: usize,
    f: &mut dyn FnMut(&Bound<'_, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    match rank {
        0 => f(object),
        1 => Items::of(object)?.each(&mut |item| f(item)),
        _ => Items::of(object)?.each(&mut |item| each(item, rank - 1, f)),
    }
}

/// A list or tuple.
enum Items<'a, 'py> {
    List(&'a Bound<'py, PyList>),
    Tuple(&'a Bound<'py, PyTuple>),
}

impl<'a, 'py> Items<'a, 'py> {
    fn of(object: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyList>() {
            Ok(list) => Ok(Items::List(list)),
            Err(_) => Ok(Items::Tuple(object.cast::<PyTuple>()?)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Items::List(list) => list.len(),
            Items::Tuple(tuple) => tuple.len(),
        }
    }

    /// Calls `f` with each item. What `f` calls may change a list, so its length is asked again.
    fn each(&self, f: &mut dyn FnMut(&Bound<'py, PyAny>) -> PyResult<()>) -> PyResult<()> {
        match self {
            Items::List(list) => {
                let mut at = 0;
                while at < list.len() {
                    f(&list.get_item(at)?)?;
                    at += 1;
                }
            }
            Items::Tuple(tuple) => {
                for item in tuple.iter_borrowed() {
                    f(&item)?;
                }
            }
        }
        Ok(())
    }
}

#[inline]
fn double(object: &Bound<'_, PyAny>) -> PyResult<f64> {
    // SAFETY: the object is alive, and the interpreter is attached: there is a `Bound` of it.
    let value = unsafe { ffi::PyFloat_AsDouble(object.as_ptr()) };
    match PyErr::take(object.py()) {
        Some(error) if value == -1.0 => Err(error),
        _ => Ok(value),
    }
}

#[inline]
fn long(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    object.extract()
}
