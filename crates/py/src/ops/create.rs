//! Arrays from numbers, ranges and other libraries.

use cupola::{Array, DType, Scalar, ops};
use num_complex::Complex32;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

use crate::array::PyArray;
use crate::device::{On, on};
use crate::dtype::Dtype;
use crate::error::{raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Count, Foreign, Opd, ShapeArg, give};
use crate::read;

#[doc = docs!(full)]
#[pyfunction]
#[pyo3(signature = (shape, vals, dtype = None, *, stream = None))]
pub fn full(
    shape: ShapeArg,
    vals: Opd,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || {
        let dtype = match dtype {
            Some(dtype) => dtype.0,
            None => vals.clone().into_array()?.dtype(),
        };
        let vals = vals.cast_to(dtype)?;
        give(ops::full(shape.0, &vals, dtype))
    })
}

#[doc = docs!(full_like)]
#[pyfunction]
#[pyo3(signature = (a, vals, dtype = None, *, stream = None))]
pub fn full_like(a: Arr, vals: Opd, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    let dtype = dtype.map_or(a.dtype(), |d| d.0);
    let vals = vals.cast_to(dtype)?;
    on(stream, || give(ops::full(a.shape().clone(), &vals, dtype)))
}

#[doc = docs!(zeros_like)]
#[pyfunction]
#[pyo3(signature = (a, dtype = None, *, stream = None))]
pub fn zeros_like(a: Arr, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    let dtype = dtype.map_or(a.dtype(), |d| d.0);
    on(stream, || give(ops::zeros(a.shape().clone(), dtype)))
}

#[doc = docs!(ones_like)]
#[pyfunction]
#[pyo3(signature = (a, dtype = None, *, stream = None))]
pub fn ones_like(a: Arr, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    let dtype = dtype.map_or(a.dtype(), |d| d.0);
    on(stream, || give(ops::ones(a.shape().clone(), dtype)))
}

#[doc = docs!(eye)]
#[pyfunction]
#[pyo3(signature = (n, m = None, k = 0, dtype = None, *, stream = None))]
pub fn eye(
    n: Count,
    m: Option<Count>,
    k: isize,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let dtype = dtype.map_or(DType::F32, |d| d.0);
    on(stream, || give(ops::eye_at(n.0, m.unwrap_or(n).0, k, dtype)))
}

#[doc = docs!(tri)]
#[pyfunction]
#[pyo3(signature = (n, m = None, k = 0, dtype = None, *, stream = None))]
pub fn tri(
    n: isize,
    m: Option<isize>,
    k: isize,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let dtype = dtype.map_or(DType::F32, |d| d.0);
    on(stream, || give(ops::tri(at_least_0(n), at_least_0(m.unwrap_or(n)), k, dtype)))
}

/// Less than nothing is nothing, as in NumPy.
fn at_least_0(size: isize) -> usize {
    usize::try_from(size).unwrap_or(0)
}

/// Windows of so many points.
macro_rules! windows {
    ($($name:ident)*) => {$(
        #[doc = docs!($name)]
        #[pyfunction]
        #[pyo3(signature = (M, *, stream = None))]
        #[allow(non_snake_case)]
        pub fn $name(M: isize, stream: Option<On>) -> PyResult<PyArray> {
            on(stream, || give(ops::$name(at_least_0(M))))
        }
    )*};
}

windows! { bartlett blackman hamming hanning }

/// One number, which may come as an array of one element.
pub fn number(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Scalar> {
    if value.is_instance_of::<PyBool>() {
        return Err(wrong_value(format!("bool not supported for {what}.")));
    }
    match crate::operand::operand(value)? {
        Some(Opd::Scalar(value)) => Ok(value),
        Some(
            Opd::Array(array)
            | Opd::Foreign(Foreign { exact: Some(array), .. } | Foreign { array, .. }),
        ) if array.size() == 1 => {
            if array.dtype().is_integer() {
                let wide = ops::astype(&array, DType::I64).and_then(|a| a.item::<i64>());
                return wide.map(Scalar::Int).map_err(raise);
            }
            if array.dtype().is_complex() {
                let wide = ops::astype(&array, DType::C64).and_then(|a| a.item::<Complex32>());
                return wide.map(Scalar::from).map_err(raise);
            }
            if array.dtype() == DType::F64 {
                return array.item::<f64>().map(Scalar::Float).map_err(raise);
            }
            let wide = ops::astype(&array, DType::F32).and_then(|a| a.item::<f32>());
            wide.map(|v| Scalar::Float(v.into())).map_err(raise)
        }
        _ => Err(wrong_type(format!("{what}: a number is expected, not {value}"))),
    }
}

fn real_number(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Scalar> {
    match number(value, what)? {
        Scalar::Complex(..) => {
            Err(wrong_type(format!("{what}: a real number is expected, not {value}")))
        }
        real @ (Scalar::Bool(_) | Scalar::Int(_) | Scalar::Uint(_) | Scalar::Float(_)) => Ok(real),
    }
}

/// Evenly spaced numbers from `start` up to but without `stop`; `arange(stop)` starts at 0.
#[doc = docs!(arange)]
#[pyfunction]
#[pyo3(signature = (*args, start = None, stop = None, step = None, dtype = None, stream = None))]
pub fn arange(
    args: &Bound<'_, PyTuple>,
    start: Option<Bound<'_, PyAny>>,
    stop: Option<Bound<'_, PyAny>>,
    step: Option<Bound<'_, PyAny>>,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let (mut dtype, mut last_is_dtype) = (dtype, false);
    let mut given: Vec<Bound<'_, PyAny>> = args.iter().collect();
    // The dtype may come last by position.
    if let Some(last) = given.last()
        && let Ok(own) = last.extract::<Dtype>()
    {
        dtype = Some(own);
        last_is_dtype = true;
        given.pop();
    }
    let mut given: Vec<Option<Bound<'_, PyAny>>> =
        given.into_iter().map(|v| (!v.is_none()).then_some(v)).collect();
    // Two numbers and a dtype by position are stop and step.
    if last_is_dtype
        && matches!(given[..], [_, Some(_)])
        && start.is_none()
        && stop.is_none()
        && step.is_none()
    {
        given.insert(0, None);
    }
    let at = |index: usize| given.get(index).cloned().flatten();
    // One number, or a number and nothing, is the stop.
    let only_stop = start.is_none() && stop.is_none() && at(1).is_none();
    let (start, stop, step) = match (only_stop, stop) {
        (true, _) => (None, at(0), at(2).or(step)),
        (false, Some(stop)) => (start.or(at(0)), Some(stop), at(1).or(step)),
        (false, None) if start.is_some() => (start, at(0), at(1).or(step)),
        (false, None) => (at(0), at(1), at(2).or(step)),
    };
    let Some(stop) = stop else {
        return Err(wrong_type("arange: stop is needed"));
    };
    let read = |value: Option<Bound<'_, PyAny>>, default: i64| match value {
        Some(value) => real_number(&value, "arange"),
        None => Ok(Scalar::Int(default)),
    };
    let (start, stop, step) = (read(start, 0)?, read(Some(stop), 0)?, read(step, 1)?);
    on(stream, || give(ops::arange_in(start, stop, step, dtype.map(|d| d.0))))
}

#[doc = docs!(linspace)]
#[pyfunction]
#[pyo3(signature = (start, stop, num = 50, endpoint = true, dtype = None, stream = None))]
pub fn linspace(
    start: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    num: Option<i64>,
    endpoint: bool,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let count = usize::try_from(num.unwrap_or(50))
        .map_err(|_| wrong_value("linspace: num must not be negative"))?;
    let [start, stop] = [real_number(start, "linspace")?, real_number(stop, "linspace")?];
    let (start, stop) = (start.to_f64(), stop.to_f64());
    let dtype = dtype.map_or(DType::F32, |d| d.0);
    let spaced = if endpoint { ops::linspace } else { ops::linspace_open };
    on(stream, || give(spaced(start, stop, count, dtype)))
}

#[doc = docs!(logspace)]
#[pyfunction]
#[pyo3(signature = (start, stop, num = Count(50), base = 10.0, dtype = None, *, stream = None), text_signature = "(start, stop, num=50, base=10.0, dtype=None, *, stream=None)")]
pub fn logspace(
    start: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    num: Count,
    base: f64,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let (start, stop) = (number(start, "logspace")?, number(stop, "logspace")?);
    let is_complex = [start, stop].iter().any(|end| matches!(end, Scalar::Complex(..)));
    let own = if is_complex { DType::C64 } else { DType::F32 };
    let dtype = dtype.map_or(own, |d| d.0);
    on(stream, || give(ops::logspace(start, stop, num.0, base, dtype)))
}

#[doc = docs!(meshgrid)]
#[pyfunction]
#[pyo3(signature = (*arrays, sparse = false, indexing = "xy", stream = None))]
pub fn meshgrid<'py>(
    py: Python<'py>,
    arrays: Vec<Arr>,
    sparse: Option<bool>,
    indexing: Option<&str>,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyTuple>> {
    let matrix_order = match indexing.unwrap_or("xy") {
        "ij" => true,
        "xy" => false,
        other => {
            return Err(wrong_value(format!(
                "meshgrid: indexing must be 'xy' or 'ij', not '{other}'"
            )));
        }
    };
    let grids = on(stream, || {
        let refs: Vec<&Array> = arrays.iter().map(|a| &**a).collect();
        if sparse != Some(true) {
            return ops::meshgrid(&refs, matrix_order).map_err(raise);
        }
        let rank = refs.len();
        let along = |(at, x): (usize, &&Array)| {
            let axis = if !matrix_order && rank > 1 && at < 2 { 1 - at } else { at };
            let mut sizes = vec![1isize; rank];
            sizes[axis] = -1;
            ops::reshape(x, sizes).map_err(raise)
        };
        refs.iter().enumerate().map(along).collect()
    })?;
    PyTuple::new(py, grids.into_iter().map(PyArray::new))
}

/// An array of anything that holds numbers; an array itself as it is. It lies in the memory of
/// another library's array where that is possible: nothing is copied, and what is written there
/// later shows in it. `copy=True` always copies, `copy=False` raises `ValueError` instead of
/// copying.
#[doc = docs!(asarray)]
#[pyfunction]
#[pyo3(signature = (a, dtype = None, *, copy = None))]
pub fn asarray(
    a: &Bound<'_, PyAny>,
    dtype: Option<Dtype>,
    copy: Option<bool>,
) -> PyResult<PyArray> {
    read::converted(a, dtype.map(|d| d.0), copy.into()).map(PyArray::new)
}

/// An array of another library's, by DLPack; `copy` as in `asarray`.
#[doc = docs!(from_dlpack)]
#[pyfunction]
#[pyo3(signature = (x, /, *, copy = None))]
pub fn from_dlpack(x: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<PyArray> {
    read::from_dlpack(x, copy.into()).map(PyArray::new)
}
