//! `cupola.core.linalg`.

use cupola::ops::linalg::{self, Order};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::wrong_value;
use crate::generated::docs;
use crate::operand::{Arr, Axis, give};

#[doc = docs!(linalg::norm)]
#[pyfunction]
#[pyo3(signature = (a, /, ord = None, axis = Axis::all(), keepdims = false, *, stream = None))]
pub fn norm(
    a: Arr,
    ord: Option<&Bound<'_, PyAny>>,
    axis: Axis,
    keepdims: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let order = match ord {
        None => Order::Euclidean,
        Some(ord) => match ord.cast::<PyString>() {
            Ok(name) => match &*name.to_cow()? {
                "fro" | "f" => Order::Frobenius,
                "nuc" => Order::Nuclear,
                other => return Err(wrong_value(format!("norm: ord '{other}' is not fro or nuc"))),
            },
            Err(_) => Order::Power(ord.extract()?),
        },
    };
    on(stream, || give(linalg::norm(&a, order, axis.0, keepdims)))
}

#[doc = docs!(linalg::cross)]
#[pyfunction]
#[pyo3(signature = (a, b, axis = -1, *, stream = None))]
pub fn cross(a: Arr, b: Arr, axis: isize, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(linalg::cross(&a, &b, axis)))
}
