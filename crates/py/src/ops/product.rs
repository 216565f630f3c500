//! Products of arrays, and what is close to them.

use cupola::ops::{self, BlockMasks, Contraction};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::cast;
use crate::array::PyArray;
use crate::device::{On, on};
use crate::dtype::Dtype;
use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Arrays, Axis, Count, SizesArg, give, keep_doubles};

#[doc = docs!(tensordot)]
#[pyfunction]
#[pyo3(signature = (a, b, /, axes = None, *, stream = None))]
pub fn tensordot(
    mut a: Arr,
    mut b: Arr,
    axes: Option<&Bound<'_, PyAny>>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let axes = match axes {
        None => Contraction::Count(2),
        Some(axes) => match axes.extract::<isize>() {
            Ok(_) => Contraction::Count(axes.extract::<Count>()?.0),
            Err(_) => {
                let pair: Vec<SizesArg> = axes.extract()?;
                let [left, right]: [SizesArg; 2] = pair
                    .try_into()
                    .map_err(|_| wrong_value("tensordot: axes must be a number or two lists"))?;
                Contraction::Axes(left.into(), right.into())
            }
        },
    };
    keep_doubles([&mut a, &mut b]);
    on(stream, || give(ops::tensordot(&a, &b, axes)))
}

#[doc = docs!(einsum)]
#[pyfunction]
#[pyo3(signature = (subscripts, *operands, stream = None))]
pub fn einsum(subscripts: &str, operands: Arrays, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::einsum(subscripts, &operands.refs())))
}

#[doc = docs!(einsum_path)]
#[pyfunction]
#[pyo3(signature = (subscripts, *operands))]
pub fn einsum_path<'py>(
    py: Python<'py>,
    subscripts: &str,
    operands: Arrays,
) -> PyResult<(Vec<Bound<'py, PyTuple>>, String)> {
    let (steps, report) = ops::einsum_path(subscripts, &operands.refs()).map_err(raise)?;
    let steps = steps.into_iter().map(|s| PyTuple::new(py, s)).collect::<PyResult<_>>()?;
    Ok((steps, report))
}

#[doc = docs!(trace)]
#[pyfunction]
#[pyo3(signature = (a, /, offset = 0, axis1 = 0, axis2 = 1, dtype = None, *, stream = None))]
pub fn trace(
    a: Arr,
    offset: isize,
    axis1: isize,
    axis2: isize,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || {
        let x = cast(&a, dtype)?;
        let sum = ops::trace(&x, offset, axis1, axis2).map_err(raise)?;
        cast(&sum, dtype).map(PyArray::new)
    })
}

#[doc = docs!(gather_mm)]
#[pyfunction]
#[pyo3(signature = (
    a, b, /, lhs_indices = None, rhs_indices = None, *, sorted_indices = false, stream = None
))]
pub fn gather_mm(
    mut a: Arr,
    mut b: Arr,
    lhs_indices: Option<Arr>,
    rhs_indices: Option<Arr>,
    sorted_indices: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let _ = sorted_indices;
    keep_doubles([&mut a, &mut b]);
    let (left, right) = (lhs_indices.as_deref(), rhs_indices.as_deref());
    on(stream, || give(ops::gather_mm(&a, &b, left, right)))
}

#[doc = docs!(block_masked_mm)]
#[pyfunction]
#[pyo3(signature = (
    a, b, /, block_size = 64, mask_out = None, mask_lhs = None, mask_rhs = None, *, stream = None
))]
pub fn block_masked_mm(
    mut a: Arr,
    mut b: Arr,
    block_size: usize,
    mut mask_out: Option<Arr>,
    mut mask_lhs: Option<Arr>,
    mut mask_rhs: Option<Arr>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let masks = [&mut mask_out, &mut mask_lhs, &mut mask_rhs];
    keep_doubles([&mut a, &mut b].into_iter().chain(masks.into_iter().flatten()));
    let masks = BlockMasks {
        out: mask_out.as_deref(),
        left: mask_lhs.as_deref(),
        right: mask_rhs.as_deref(),
    };
    on(stream, || give(ops::block_masked_mm(&a, &b, block_size, masks)))
}

#[doc = docs!(hadamard_transform)]
#[pyfunction]
#[pyo3(signature = (a, scale = None, stream = None))]
pub fn hadamard_transform(a: Arr, scale: Option<f64>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::hadamard_transform(&a, scale)))
}

#[doc = docs!(matrix_norm)]
#[pyfunction]
#[pyo3(signature = (a, /, ord = None, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, /, ord=None, axis=None, keepdims=False, *, stream=None)")]
pub fn matrix_norm(
    a: Arr,
    ord: Option<&Bound<'_, PyAny>>,
    axis: Axis,
    keepdims: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    crate::linalg::norm(a, ord, axis, keepdims, stream)
}
