//! Reading and changing parts of arrays.

use cupola::ops::{self, Operand, S, ScanOptions};
use cupola::{Array, DType, Result, Scalar};
use pyo3::exceptions::PyIndexError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple};

use super::PyArray;
use crate::device::evaluating;
use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Opd, give};
use crate::read;

/// The items of an index.
fn items(index: &Bound<'_, PyAny>) -> PyResult<Vec<S>> {
    match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|i| item(&i)).collect(),
        Err(_) => Ok(vec![item(index)?]),
    }
}

/// An index from an integer. What is past all sizes is past that of the axis, too.
fn at(object: &Bound<'_, PyAny>) -> PyResult<S> {
    object.extract().map(S::At).map_err(|_| {
        PyIndexError::new_err(format!("index: {object} is out of range for an axis of any size"))
    })
}

fn item(object: &Bound<'_, PyAny>) -> PyResult<S> {
    let wrong = || wrong_value("Cannot index mlx array using the given type.");
    if object.is_none() {
        return Ok(S::NewAxis);
    }
    if object.is_instance_of::<PyBool>() {
        return Err(wrong());
    }
    if object.is_instance_of::<PyInt>() {
        return at(object);
    }
    if object.is_instance_of::<PyEllipsis>() {
        return Ok(S::Ellipsis);
    }
    if let Ok(slice) = object.cast::<PySlice>() {
        let part = |name: &str| -> PyResult<Option<isize>> {
            let value = slice.getattr(name)?;
            if value.is_none() {
                return Ok(None);
            }
            value
                .extract()
                .map(Some)
                .map_err(|_| wrong_value("Slice indices must be integers or None."))
        };
        let (start, stop, step) = (part("start")?, part("stop")?, part("step")?);
        return Ok(S::Range { start, stop, step: step.unwrap_or(1) });
    }
    if let Ok(array) = object.cast::<PyArray>() {
        return Ok(S::Array(array.get().get()));
    }
    if object.is_instance_of::<PyList>() {
        return Ok(S::Array(read::array(object, None)?));
    }
    if let Some((array, _)) = read::array_like(object)? {
        return Ok(S::Array(array));
    }
    match object.extract::<isize>() {
        Ok(index) => Ok(S::At(index)),
        Err(_) => Err(wrong()),
    }
}

/// The bool array that an index is, alone or in a tuple of one.
fn mask(index: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    if let Ok(value) = index.cast::<PyBool>() {
        return crate::operand::scalar_array(Scalar::Bool(value.is_true()), None).map(Some);
    }
    if let Ok(tuple) = index.cast::<PyTuple>() {
        return match tuple.len() {
            // A tuple in it is no index.
            1 if !tuple.get_item(0)?.is_instance_of::<PyTuple>() => mask(&tuple.get_item(0)?),
            _ => Ok(None),
        };
    }
    let array = match index.cast::<PyArray>() {
        Ok(array) => Some(array.get().get()),
        Err(_) if index.is_instance_of::<PyList>() => Some(read::array(index, None)?),
        Err(_) => match index.hasattr("__array_interface__")? {
            true => read::array_like(index)?.map(|(array, _)| array),
            false => None,
        },
    };
    Ok(array.filter(|a| a.dtype() == DType::Bool))
}

/// `x` with `values` where `mask` is true: one for all, or, in order, one for each.
fn masked(x: &Array, mask: &Array, values: Operand<'_>) -> Result<Array> {
    let (rank, wide) = (mask.rank(), widened(mask, x)?);
    let values = match values {
        Operand::Array(v) if v.is_empty() => {
            if ops::any(mask, (), false)?.item::<bool>()? {
                let detail = format!("{} holds nothing for what the mask picks", v.aval());
                return Err(cupola::Error::shape("index", detail));
            }
            return Ok(x.clone());
        }
        Operand::Array(v) if v.rank() > 0 && v.shape()[0] != 1 => {
            // The n-th true place takes the n-th row of the values, and where there is none that is an index error.
            let flat = ops::astype(&ops::flatten(mask, 0, -1)?, DType::I32)?;
            let places = ops::subtract(&ops::cumsum(&flat, 0, ScanOptions::default())?, 1)?;
            let places = ops::maximum(&places, 0)?;
            let inner = &x.shape()[rank..];
            let rows: Vec<usize> = v.shape()[..1].iter().chain(inner).copied().collect();
            let rows = ops::broadcast_to(&ops::astype(v, x.dtype())?, rows)?;
            ops::reshape(&ops::take(&rows, &places, 0)?, x.shape())?
        }
        Operand::Array(v) => ops::astype(v, x.dtype())?,
        Operand::Scalar(v) => ops::full((), v, x.dtype())?,
    };
    // Axes of size 1 that the values have before those of `x` go.
    ops::reshape(&ops::where_(&wide, &values, x)?, x.shape())
}

/// A mask of leading axes of `x` with further axes of size 1.
fn widened(mask: &Array, x: &Array) -> Result<Array> {
    let rank = mask.rank();
    if rank > x.rank() || mask.shape()[..] != x.shape()[..rank] {
        return Err(cupola::Error::shape(
            "index",
            format!("a mask of shape {} does not fit {}", mask.shape(), x.aval()),
        ));
    }
    (rank..x.rank()).try_fold(mask.clone(), |m, axis| ops::expand_dims(&m, axis as isize))
}

/// The values of an assignment: they take the array's dtype, and their leading axes of size 1 go.
fn values(value: Opd, x: &Array) -> PyResult<Opd> {
    match value.cast_to(x.dtype())? {
        Opd::Scalar(value) => Ok(Opd::Array(crate::operand::scalar_array(value, Some(x.dtype()))?)),
        value => Ok(Opd::Array(ops::astype(&value.into_array()?, x.dtype()).map_err(raise)?)),
    }
}

/// `values` without leading axes of size 1 beyond the rank of the part that they go to.
fn fitted(x: &Array, items: &[S], values: &Array) -> Result<Array> {
    let rank = ops::index(x, items)?.rank();
    let extra = values.rank().saturating_sub(rank);
    if extra == 0 || values.shape()[..extra].iter().any(|&d| d != 1) {
        return Ok(values.clone());
    }
    ops::reshape(values, cupola::Shape::from(&values.shape()[extra..]))
}

fn assign(x: &Array, index: &Bound<'_, PyAny>, value: Opd) -> PyResult<Array> {
    let value = values(value, x)?;
    if let Some(mask) = mask(index)? {
        return masked(x, &mask, (&value).into()).map_err(raise);
    }
    let items = items(index)?;
    let value = value.into_array()?;
    fitted(x, &items, &value).and_then(|value| ops::at_set(x, &items, &value)).map_err(raise)
}

#[pymethods]
impl PyArray {
    fn __getitem__(&self, arg: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        if arg.is_instance_of::<PyInt>() && !arg.is_instance_of::<PyBool>() {
            return give(ops::index(&self.get(), &[at(arg)?]));
        }
        let (x, items) = (self.get(), items(arg)?);
        let has_mask = |item: &S| matches!(item, S::Array(array) if array.dtype() == DType::Bool);
        match items.iter().any(has_mask) {
            // How many elements a mask names is known from its values.
            true => evaluating(arg.py(), None, || give(ops::index(&x, &items))),
            false => give(ops::index(&x, &items)),
        }
    }

    fn __setitem__(&self, arg0: &Bound<'_, PyAny>, arg1: Opd) -> PyResult<()> {
        let changed = assign(&self.get(), arg0, arg1)?;
        self.replace(&changed).map_err(raise)
    }

    /// Updates of parts: `x.at[index].add(values)` gives a new array, and where an index comes
    /// twice each of its updates counts.
    #[getter]
    fn at(&self) -> ArrayAt {
        ArrayAt { array: self.get(), index: None }
    }
}

/// A part of an array, to be updated.
#[doc = docs!(ArrayAt)]
#[pyclass(frozen, name = "ArrayAt", module = "cupola.core")]
pub struct ArrayAt {
    array: Array,
    index: Option<Py<PyAny>>,
}

impl ArrayAt {
    fn update(
        &self,
        py: Python<'_>,
        value: Opd,
        f: impl FnOnce(&Array, &[S], &Array) -> Result<Array>,
    ) -> PyResult<PyArray> {
        let Some(index) = &self.index else {
            return Err(wrong_value("at: an index is needed, as in x.at[index].add(1)"));
        };
        let value = values(value, &self.array)?.into_array()?;
        let index = index.bind(py);
        let x = &self.array;
        if let Some(mask) = mask(index)? {
            let changed = f(x, &[S::Ellipsis], &value).map_err(raise)?;
            return give(widened(&mask, x).and_then(|mask| ops::where_(&mask, &changed, x)));
        }
        let items = items(index)?;
        give(fitted(x, &items, &value).and_then(|value| f(x, &items, &value)))
    }
}

#[pymethods]
impl ArrayAt {
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.index)
    }

    fn __getitem__(&self, indices: Py<PyAny>) -> ArrayAt {
        ArrayAt { array: self.array.clone(), index: Some(indices) }
    }

    /// The array with `value` added at the part.
    fn add(&self, py: Python<'_>, value: Opd) -> PyResult<PyArray> {
        self.update(py, value, |x, items, v| ops::at_add(x, items, v))
    }

    /// The array with `value` subtracted at the part.
    fn subtract(&self, py: Python<'_>, value: Opd) -> PyResult<PyArray> {
        if self.array.dtype() == DType::Bool {
            // Numbers are negated before they become bools, which have no negative.
            let value = ops::negative(&value.into_array()?).map_err(raise)?;
            return self.update(py, Opd::Array(value), |x, items, v| ops::at_add(x, items, v));
        }
        self.update(py, value, |x, items, v| ops::at_add(x, items, &ops::negative(v)?))
    }

    /// The array multiplied by `value` at the part.
    fn multiply(&self, py: Python<'_>, value: Opd) -> PyResult<PyArray> {
        self.update(py, value, |x, items, v| ops::at_multiply(x, items, v))
    }

    /// The array divided by `value` at the part.
    fn divide(&self, py: Python<'_>, value: Opd) -> PyResult<PyArray> {
        if self.array.dtype() == DType::Bool {
            // 1 by infinity is false, but infinity is true.
            let value = ops::reciprocal(&value.into_array()?).map_err(raise)?;
            return self.update(py, Opd::Array(value), |x, items, v| ops::at_multiply(x, items, v));
        }
        self.update(py, value, |x, items, v| ops::at_multiply(x, items, &ops::reciprocal(v)?))
    }

    /// The array with the larger of itself and `value` at the part.
    fn maximum(&self, py: Python<'_>, value: Opd) -> PyResult<PyArray> {
        self.update(py, value, |x, items, v| ops::at_max(x, items, v))
    }

    /// The array with the smaller of itself and `value` at the part.
    fn minimum(&self, py: Python<'_>, value: Opd) -> PyResult<PyArray> {
        self.update(py, value, |x, items, v| ops::at_min(x, items, v))
    }
}
