//! `cupola.core._linalg`: linear algebra of complex matrices, too, which `linalg` refuses as MLX does.

use cupola::ops::linalg;
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::generated::docs;
use crate::operand::{Arr, give};

#[doc = docs!(_linalg::cholesky)]
#[pyfunction]
pub fn cholesky(a: Arr, upper: bool) -> PyResult<PyArray> {
    give(linalg::cholesky(&a, upper))
}

#[doc = docs!(_linalg::det)]
#[pyfunction]
pub fn det(a: Arr) -> PyResult<PyArray> {
    give(linalg::det(&a))
}

#[doc = docs!(_linalg::inv)]
#[pyfunction]
pub fn inv(a: Arr) -> PyResult<PyArray> {
    give(linalg::inv(&a))
}

#[doc = docs!(_linalg::qr)]
#[pyfunction]
pub fn qr(a: Arr) -> PyResult<(PyArray, PyArray)> {
    give(linalg::qr(&a))
}

#[doc = docs!(_linalg::slogdet)]
#[pyfunction]
pub fn slogdet(a: Arr) -> PyResult<(PyArray, PyArray)> {
    give(linalg::slogdet(&a))
}

#[doc = docs!(_linalg::solve)]
#[pyfunction]
pub fn solve(a: Arr, b: Arr) -> PyResult<PyArray> {
    give(linalg::solve(&a, &b))
}
