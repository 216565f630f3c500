//! `eval` and `async_eval`.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::raise;
use crate::generated::docs;
use crate::tree;

/// Computes all arrays in the arguments, which may be trees of lists, tuples and dicts.
#[doc = docs!(eval)]
#[pyfunction]
#[pyo3(signature = (*args))]
pub fn eval(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
    let arrays = tree::arrays(args.as_any())?;
    py.detach(|| cupola::wait(&arrays)).map_err(raise)
}

/// Starts to compute all arrays in the arguments, and returns at once.
#[doc = docs!(async_eval)]
#[pyfunction]
#[pyo3(signature = (*args))]
pub fn async_eval(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
    let arrays = tree::arrays(args.as_any())?;
    py.detach(|| cupola::async_eval(&arrays)).map_err(raise)
}
