//! Places of elements.

use cupola::ops;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::PyArray;
use crate::device::{On, evaluating, on};
use crate::error::raise;
use crate::generated::docs;
use crate::operand::{Arr, Count, give};

#[doc = docs!(nonzero)]
#[pyfunction]
#[pyo3(signature = (a, *, stream = None))]
pub fn nonzero<'py>(py: Python<'py>, a: Arr, stream: Option<On>) -> PyResult<Bound<'py, PyTuple>> {
    let places = evaluating(py, stream, || ops::nonzero(&a).map_err(raise))?;
    PyTuple::new(py, places.into_iter().map(PyArray::new))
}

#[doc = docs!(tril_indices)]
#[pyfunction]
#[pyo3(signature = (n, k = 0, m = None, *, stream = None))]
pub fn tril_indices(
    n: Count,
    k: isize,
    m: Option<Count>,
    stream: Option<On>,
) -> PyResult<(PyArray, PyArray)> {
    on(stream, || give(ops::tril_indices(n.0, m.unwrap_or(n).0, k)))
}

#[doc = docs!(triu_indices)]
#[pyfunction]
#[pyo3(signature = (n, k = 0, m = None, *, stream = None))]
pub fn triu_indices(
    n: Count,
    k: isize,
    m: Option<Count>,
    stream: Option<On>,
) -> PyResult<(PyArray, PyArray)> {
    on(stream, || give(ops::triu_indices(n.0, m.unwrap_or(n).0, k)))
}
