//! Functions of the elements that MLX does not have.

use cupola::{Array, DType, Scalar, ops};
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::raise;
use crate::generated::docs;
use crate::operand::{Arr, Opd, give, keep_doubles};

#[doc = docs!(logit)]
#[pyfunction]
#[pyo3(signature = (a, eps = None, *, stream = None))]
pub fn logit(a: Arr, eps: Option<f64>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::logit(&a, eps)))
}

fn or_one(value: Option<Opd>) -> Opd {
    value.unwrap_or(Opd::Scalar(Scalar::Int(1)))
}

/// The dtype that three arrays meet in.
fn common(x: &Array, a: &Array, b: &Array) -> PyResult<DType> {
    ops::result_type(&[x.into(), a.into(), b.into()]).map_err(raise)
}

#[doc = docs!(addcmul)]
#[pyfunction]
#[pyo3(signature = (x, a, b, *, value = None, stream = None))]
pub fn addcmul(
    mut x: Arr,
    mut a: Arr,
    mut b: Arr,
    value: Option<Opd>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut x, &mut a, &mut b]);
    let value = or_one(value).beside(common(&x, &a, &b)?)?;
    on(stream, || give(ops::addcmul(&x, &a, &b, &value)))
}

#[doc = docs!(addcdiv)]
#[pyfunction]
#[pyo3(signature = (x, a, b, *, value = None, stream = None))]
pub fn addcdiv(
    mut x: Arr,
    mut a: Arr,
    mut b: Arr,
    value: Option<Opd>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut x, &mut a, &mut b]);
    let value = or_one(value).beside(common(&x, &a, &b)?)?;
    on(stream, || give(ops::addcdiv(&x, &a, &b, &value)))
}
