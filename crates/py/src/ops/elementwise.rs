//! Functions of the elements, and comparisons of arrays.

use cupola::ops::{self, Limit, Operand, Replacements, Tolerance};
use cupola::{Array, DType, Scalar};
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Axis, Given, Numeric, Opd, give, meet};
use crate::tree;

fn limit(side: &Option<Opd>) -> Limit<'_> {
    match side {
        Some(limit) => Limit::from(Operand::from(limit)),
        None => Limit::from(()),
    }
}

#[doc = docs!(clip)]
#[pyfunction]
#[pyo3(signature = (a, a_min, a_max, *, stream = None))]
pub fn clip(
    mut a: Arr,
    a_min: Option<Opd>,
    a_max: Option<Opd>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    if a_min.is_none() && a_max.is_none() {
        return Err(wrong_value("At most one of a_min and a_max may be None"));
    }
    for limit in [&a_min, &a_max].into_iter().flatten() {
        a.keep_doubles_beside(limit);
    }
    let x = a.into_array();
    let meeting = |limit: Option<Opd>| {
        limit.map(|limit| meet(Opd::Array(x.clone()), limit).map(|(_, limit)| limit)).transpose()
    };
    let (low, high) = (meeting(a_min)?, meeting(a_max)?);
    on(stream, || give(ops::clip(&x, limit(&low), limit(&high))))
}

#[doc = docs!(isclose)]
#[pyfunction]
#[pyo3(signature = (a, b, /, rtol = 1e-5, atol = 1e-8, *, equal_nan = false, stream = None))]
pub fn isclose(
    a: Given,
    b: Given,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let (a, b) = meet(a.0, b.0)?;
    let tolerance = Tolerance { relative: rtol, absolute: atol, equal_nan };
    on(stream, || give(ops::isclose(&a, &b, tolerance)))
}

#[doc = docs!(allclose)]
#[pyfunction]
#[pyo3(signature = (a, b, /, rtol = 1e-5, atol = 1e-8, *, equal_nan = false, stream = None))]
pub fn allclose(
    a: Given,
    b: Given,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let (a, b) = meet(a.0, b.0)?;
    let tolerance = Tolerance { relative: rtol, absolute: atol, equal_nan };
    on(stream, || give(ops::allclose(&a, &b, tolerance)))
}

#[doc = docs!(array_equal)]
#[pyfunction]
#[pyo3(signature = (a, b, equal_nan = false, stream = None))]
pub fn array_equal(a: Opd, b: Opd, equal_nan: bool, stream: Option<On>) -> PyResult<PyArray> {
    let (of_a, of_b) = (a.own_dtype(), b.own_dtype());
    let a = a.array_beside(of_b.unwrap_or(DType::F32))?;
    let b = b.array_beside(of_a.unwrap_or(DType::F32))?;
    on(stream, || give(ops::array_equal(&a, &b, equal_nan)))
}

#[doc = docs!(softmax)]
#[pyfunction]
#[pyo3(signature = (a, /, axis = Axis::all(), *, precise = false, stream = None), text_signature = "(a, /, axis=None, *, precise=False, stream=None)")]
pub fn softmax(a: Arr, axis: Axis, precise: bool, stream: Option<On>) -> PyResult<PyArray> {
    let dtype = a.dtype();
    on(stream, || match precise && dtype.size() == 2 && dtype.is_float() {
        true => give(
            ops::astype(&a, DType::F32)
                .and_then(|wide| ops::softmax(&wide, axis.0))
                .and_then(|out| ops::astype(&out, dtype)),
        ),
        false => give(ops::softmax(&a, axis.0)),
    })
}

#[doc = docs!(nan_to_num)]
#[pyfunction]
#[pyo3(signature = (a, nan = 0.0, posinf = None, neginf = None, *, stream = None))]
pub fn nan_to_num(
    a: Numeric,
    nan: f64,
    posinf: Option<f64>,
    neginf: Option<f64>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::nan_to_num(&a, Replacements { nan, posinf, neginf })))
}

/// Numbers as what they are to logic: true where they are not 0, whatever the array beside them holds.
fn truth(x: Opd) -> Opd {
    match x {
        Opd::Scalar(value) => {
            let holds = match value {
                Scalar::Bool(v) => v,
                Scalar::Int(v) => v != 0,
                Scalar::Uint(v) => v != 0,
                Scalar::Float(v) => v != 0.0,
                Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
            };
            Opd::Scalar(Scalar::Bool(holds))
        }
        other => other,
    }
}

macro_rules! logical_functions {
    ($($name:ident)*) => {$(
        #[doc = docs!($name)]
        #[pyfunction]
        #[pyo3(signature = (a, b, stream = None))]
        pub fn $name(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
            let (a, b) = meet(truth(a), truth(b))?;
            on(stream, || give(ops::$name(&a, &b)))
        }
    )*};
}

logical_functions! { logical_and logical_or logical_xor }

#[doc = docs!(depends)]
#[pyfunction]
#[pyo3(signature = (inputs, dependencies))]
pub fn depends<'py>(
    inputs: &Bound<'py, PyAny>,
    dependencies: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let on_what = tree::arrays(dependencies)?;
    let refs: Vec<&Array> = on_what.iter().collect();
    tree::map(inputs, &mut |x| ops::depends(x, &refs).map_err(raise))
}

#[doc = docs!(divmod)]
#[pyfunction]
#[pyo3(signature = (a, b, stream = None))]
pub fn divmod(a: Opd, b: Opd, stream: Option<On>) -> PyResult<Vec<PyArray>> {
    let (a, b) = meet(a, b)?;
    let (quotient, rest) = on(stream, || ops::divmod(&a, &b).map_err(raise))?;
    Ok(vec![PyArray::new(quotient), PyArray::new(rest)])
}

#[doc = docs!(bitwise_invert)]
#[pyfunction]
#[pyo3(signature = (a, stream = None))]
pub fn bitwise_invert(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::bitwise_invert(&a)))
}
