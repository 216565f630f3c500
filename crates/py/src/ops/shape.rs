//! Parts, joins and other shapes.

use cupola::ops::{self, PadMode, PadWidths, Sections, Sizes};
use cupola::{Array, Scalar, Shape};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::{raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::operand::{
    Arr, Arrays, Axis, Given, OneAxis, Opd, ShapeArg, SizesArg, Small, give, integers, is_bytes,
    keep_doubles, sequence, shape,
};

pub fn sections(object: &Bound<'_, PyAny>, size: usize) -> PyResult<Sections> {
    if let Ok(count) = object.extract::<isize>() {
        return match usize::try_from(count) {
            Ok(count) if count > 0 => Ok(Sections::Equal(count)),
            _ => Err(wrong_value(format!("split: {count} is no number of parts"))),
        };
    }
    let at = match object.is_instance_of::<PyArray>() {
        true => integers(&object.call_method0("tolist")?, "indices_or_sections")?,
        false => integers(object, "indices_or_sections")?,
    };
    let clamp = |&i: &isize| (if i < 0 { (i + size as isize).max(0) } else { i }) as usize;
    Ok(Sections::At(at.iter().map(clamp).collect()))
}

/// The size of an axis, 0 where there is no such axis: the operation says so.
pub fn size_of(a: &Array, axis: isize) -> usize {
    let axis = if axis < 0 { axis + a.rank() as isize } else { axis };
    usize::try_from(axis).ok().and_then(|axis| a.shape().get(axis).copied()).unwrap_or(0)
}

#[doc = docs!(split)]
#[pyfunction]
#[pyo3(signature = (a, /, indices_or_sections, axis = 0, *, stream = None))]
pub fn split(
    a: Arr,
    indices_or_sections: &Bound<'_, PyAny>,
    axis: isize,
    stream: Option<On>,
) -> PyResult<Vec<PyArray>> {
    let sections = sections(indices_or_sections, size_of(&a, axis))?;
    on(stream, || give(ops::split(&a, sections, axis)))
}

#[doc = docs!(unstack)]
#[pyfunction]
#[pyo3(signature = (x, /, *, axis = 0, stream = None))]
pub fn unstack<'py>(
    py: Python<'py>,
    x: Arr,
    axis: isize,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyTuple>> {
    let parts = on(stream, || ops::unstack(&x, axis).map_err(raise))?;
    PyTuple::new(py, parts.into_iter().map(PyArray::new))
}

#[doc = docs!(broadcast_arrays)]
#[pyfunction]
#[pyo3(signature = (*arrays, stream = None))]
pub fn broadcast_arrays(arrays: Vec<Arr>, stream: Option<On>) -> PyResult<Vec<PyArray>> {
    let refs: Vec<&Array> = arrays.iter().map(|a| &**a).collect();
    on(stream, || give(ops::broadcast_arrays(&refs)))
}

#[doc = docs!(broadcast_shapes)]
#[pyfunction]
#[pyo3(signature = (*shapes))]
pub fn broadcast_shapes<'py>(
    py: Python<'py>,
    shapes: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let one = |sizes: &Bound<'py, PyAny>| match sequence(sizes)? {
        Some(sizes) => shape(&sizes),
        None => Err(wrong_value(format!("broadcast_shapes: {sizes} is no sequence of integers"))),
    };
    let shapes: Vec<Shape> = shapes.iter().map(one).collect::<PyResult<_>>()?;
    PyTuple::new(py, ops::broadcast_shapes(&shapes).map_err(raise)?.iter())
}

fn at_least<'py>(
    py: Python<'py>,
    arrays: Vec<Arr>,
    stream: Option<On>,
    f: fn(&Array) -> cupola::Result<Array>,
) -> PyResult<Bound<'py, PyAny>> {
    let all: Vec<PyArray> =
        on(stream, || arrays.iter().map(|a| give(f(a))).collect::<PyResult<_>>())?;
    let mut all = all.into_iter();
    match (all.len(), all.next()) {
        (1, Some(one)) => Ok(Bound::new(py, one)?.into_any()),
        (_, first) => {
            Ok(PyList::new(py, first.into_iter().chain(all).collect::<Vec<_>>())?.into_any())
        }
    }
}

#[doc = docs!(atleast_1d)]
#[pyfunction]
#[pyo3(signature = (*arys, stream = None))]
pub fn atleast_1d<'py>(
    py: Python<'py>,
    arys: Vec<Arr>,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyAny>> {
    at_least(py, arys, stream, ops::atleast_1d)
}

#[doc = docs!(atleast_2d)]
#[pyfunction]
#[pyo3(signature = (*arys, stream = None))]
pub fn atleast_2d<'py>(
    py: Python<'py>,
    arys: Vec<Arr>,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyAny>> {
    at_least(py, arys, stream, ops::atleast_2d)
}

#[doc = docs!(atleast_3d)]
#[pyfunction]
#[pyo3(signature = (*arys, stream = None))]
pub fn atleast_3d<'py>(
    py: Python<'py>,
    arys: Vec<Arr>,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyAny>> {
    at_least(py, arys, stream, ops::atleast_3d)
}

/// One width around every axis, one pair for every axis, or a pair for each.
fn widths(object: &Bound<'_, PyAny>) -> PyResult<PadWidths> {
    // Arrays of integers are as good as lists of them.
    let listed = |object: &Bound<'_, PyAny>| -> PyResult<SmallVec<[isize; 4]>> {
        match object.extract::<PyRef<'_, PyArray>>() {
            Ok(array) if array.get().dtype().is_integer() => {
                integers(&object.call_method0("tolist")?, "pad_width")
            }
            _ => integers(object, "pad_width"),
        }
    };
    let width = |d: isize| {
        usize::try_from(d).map_err(|_| {
            wrong_value(format!(
                "Invalid padding size ({d}) passed to pad. Padding sizes must be non-negative"
            ))
        })
    };
    let wrong = || wrong_type("pad: pad_width must be a number, a pair, or a pair for each axis");
    match listed(object) {
        Ok(all) => {
            return match all[..] {
                [] => Err(wrong_value("pad: pad_width has no widths")),
                [one] => Ok(PadWidths::from(width(one)?)),
                [low, high] => Ok(PadWidths::All(width(low)?, width(high)?)),
                _ => Err(wrong()),
            };
        }
        Err(error) if is_bytes(object) => return Err(error),
        Err(_) => {}
    }
    let mut pairs = Vec::new();
    for pair in object.try_iter()? {
        pairs.push(match listed(&pair?)?[..] {
            [one] => (width(one)?, width(one)?),
            [low, high] => (width(low)?, width(high)?),
            _ => return Err(wrong()),
        });
    }
    match pairs[..] {
        [(low, high)] => Ok(PadWidths::All(low, high)),
        _ => Ok(PadWidths::Each(pairs)),
    }
}

#[doc = docs!(pad)]
#[pyfunction]
#[pyo3(signature = (a, pad_width, mode = "constant", constant_values = None, *, stream = None))]
pub fn pad(
    a: Arr,
    pad_width: &Bound<'_, PyAny>,
    mode: &str,
    constant_values: Option<Opd>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let widths = widths(pad_width)?;
    let constant_values = constant_values.map(|v| v.cast_to(a.dtype())).transpose()?;
    let mode = match (mode, constant_values) {
        ("constant", None) => PadMode::Constant(Scalar::Int(0)),
        ("constant", Some(Opd::Scalar(value))) => PadMode::Constant(value),
        ("constant", Some(value)) => PadMode::Filled(value.into_array()?),
        ("edge", _) => PadMode::Edge,
        ("reflect", _) => PadMode::Reflect,
        ("symmetric", _) => PadMode::Symmetric,
        (other, _) => {
            return Err(wrong_value(format!("Invalid padding mode ({other}) passed to pad")));
        }
    };
    on(stream, || give(ops::pad(&a, widths, mode)))
}

#[doc = docs!(slice)]
#[pyfunction]
#[pyo3(signature = (a, start_indices, axes, slice_size, *, stream = None))]
pub fn slice(
    a: Arr,
    start_indices: Arr,
    axes: Axis,
    slice_size: ShapeArg,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::slice_at(&a, &start_indices, axes.0, slice_size.0)))
}

#[doc = docs!(slice_update)]
#[pyfunction]
#[pyo3(signature = (a, update, start_indices, axes, *, stream = None))]
pub fn slice_update(
    mut a: Arr,
    mut update: Arr,
    start_indices: Arr,
    axes: Axis,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut update]);
    on(stream, || give(ops::slice_update_at(&a, &update, &start_indices, axes.0)))
}

#[doc = docs!(as_strided)]
#[pyfunction]
#[pyo3(signature = (a, /, shape = None, strides = None, offset = 0, *, stream = None))]
pub fn as_strided(
    a: Arr,
    shape: Option<ShapeArg>,
    strides: Option<SizesArg>,
    offset: usize,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let shape = shape.map_or_else(|| a.shape().clone(), |s| s.0);
    let strides: Sizes = match strides {
        Some(strides) => strides.into(),
        None => Sizes::from(&shape.row_major()[..]),
    };
    on(stream, || give(ops::as_strided(&a, shape, strides, offset)))
}

/// The array itself: it is laid out in rows when that is needed.
#[doc = docs!(contiguous)]
#[pyfunction]
#[pyo3(signature = (a, /, allow_col_major = false, *, stream = None))]
pub fn contiguous(a: Arr, allow_col_major: bool, stream: Option<On>) -> PyArray {
    let _ = (allow_col_major, stream);
    PyArray::new(a.into_array())
}

#[doc = docs!(put_along_axis)]
#[pyfunction]
#[pyo3(signature = (a, /, indices, values, axis = OneAxis::all(), *, stream = None), text_signature = "(a, /, indices, values, axis=None, *, stream=None)")]
pub fn put_along_axis(
    a: Arr,
    indices: Arr,
    values: Given,
    axis: OneAxis,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let values = values.0.cast_to(a.dtype())?;
    on(stream, || give(ops::put_along_axis(&a, &indices, &values, axis.0)))
}

/// Joins arrays along a new axis.
#[doc = docs!(stack)]
#[pyfunction]
#[pyo3(signature = (arrays, axis = Small(0), *, stream = None), text_signature = "(arrays, axis=0, *, stream=None)")]
pub fn stack(arrays: Arrays, axis: Option<Small>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::stack(&arrays.refs(), axis.map_or(0, |axis| axis.0))))
}
