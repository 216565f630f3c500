//! Variances and standard deviations.

use cupola::ops;
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::generated::docs;
use crate::operand::{Arr, Axis, give};

/// The variance; `correction` is another name of `ddof`.
#[doc = docs!(var)]
#[pyfunction]
#[pyo3(signature = (
    a, /, axis = Axis::all(), keepdims = false, ddof = 0, *, correction = None,
    stream = None
), text_signature = "(a, /, axis=None, keepdims=False, ddof=0, *, correction=None, stream=None)")]
pub fn var(
    a: Arr,
    axis: Axis,
    keepdims: bool,
    ddof: isize,
    correction: Option<isize>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::var(&a, axis.0, keepdims, correction.unwrap_or(ddof))))
}

/// The standard deviation; `correction` is another name of `ddof`.
#[doc = docs!(std)]
#[pyfunction]
#[pyo3(signature = (
    a, /, axis = Axis::all(), keepdims = false, ddof = 0, *, correction = None,
    stream = None
), text_signature = "(a, /, axis=None, keepdims=False, ddof=0, *, correction=None, stream=None)")]
pub fn std(
    a: Arr,
    axis: Axis,
    keepdims: bool,
    ddof: isize,
    correction: Option<isize>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::std(&a, axis.0, keepdims, correction.unwrap_or(ddof))))
}
