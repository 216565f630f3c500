//! Quantized matrices. The affine mode is there; the others raise `NotImplementedError`.

use cupola::ops::{self, Quantization, Quantized, QuantizedGather};
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::dtype::Dtype;
use crate::error::{raise, wrong_value};
use crate::operand::{Arr, give};

fn how(
    group_size: Option<usize>,
    bits: Option<usize>,
    mode: &str,
    global_scale: Option<Arr>,
) -> PyResult<Quantization> {
    match mode {
        "affine" if global_scale.is_none() => {
            Ok(Quantization { group_size: group_size.unwrap_or(64), bits: bits.unwrap_or(4) })
        }
        "affine" => Err(wrong_value("quantize: global_scale belongs to mode nvfp4")),
        "mxfp4" | "mxfp8" | "nvfp4" => {
            Err(PyNotImplementedError::new_err(format!("quantize: mode '{mode}'")))
        }
        other => Err(wrong_value(format!("quantize: mode '{other}' is not known"))),
    }
}

fn quantized(w: Arr, scales: Arr, biases: Option<Arr>) -> PyResult<Quantized> {
    let Some(biases) = biases else {
        return Err(wrong_value("biases must be given for mode affine"));
    };
    Ok(Quantized { words: w.0, scales: scales.0, biases: biases.0 })
}

#[pyfunction]
#[pyo3(signature = (
    w, /, group_size = None, bits = None, mode = "affine", *, global_scale = None, stream = None
))]
pub fn quantize(
    w: Arr,
    group_size: Option<usize>,
    bits: Option<usize>,
    mode: &str,
    global_scale: Option<Arr>,
    stream: Option<On>,
) -> PyResult<(PyArray, PyArray, PyArray)> {
    let how = how(group_size, bits, mode, global_scale)?;
    let q = on(stream, || ops::quantize(&w, how).map_err(raise))?;
    Ok((PyArray::new(q.words), PyArray::new(q.scales), PyArray::new(q.biases)))
}

#[pyfunction]
#[pyo3(signature = (
    w, /, scales, biases = None, group_size = None, bits = None, mode = "affine",
    global_scale = None, dtype = None, *, stream = None
))]
pub fn dequantize(
    w: Arr,
    scales: Arr,
    biases: Option<Arr>,
    group_size: Option<usize>,
    bits: Option<usize>,
    mode: &str,
    global_scale: Option<Arr>,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let how = how(group_size, bits, mode, global_scale)?;
    let w = quantized(w, scales, biases)?;
    let dtype = dtype.map_or(w.scales.dtype(), |d| d.0);
    on(stream, || give(ops::dequantize(&w, how).and_then(|a| ops::astype(&a, dtype))))
}

#[pyfunction]
#[pyo3(signature = (
    x, w, /, scales, biases = None, transpose = true, group_size = None, bits = None,
    mode = "affine", *, stream = None
))]
pub fn quantized_matmul(
    x: Arr,
    w: Arr,
    scales: Arr,
    biases: Option<Arr>,
    transpose: bool,
    group_size: Option<usize>,
    bits: Option<usize>,
    mode: &str,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let how = how(group_size, bits, mode, None)?;
    let w = quantized(w, scales, biases)?;
    on(stream, || give(ops::quantized_matmul(&x, &w, transpose, how)))
}

#[pyfunction]
#[pyo3(signature = (
    x, w, /, scales, biases = None, lhs_indices = None, rhs_indices = None, transpose = true,
    group_size = None, bits = None, mode = "affine", global_scale = None, *,
    sorted_indices = false, stream = None
))]
pub fn gather_qmm(
    x: Arr,
    w: Arr,
    scales: Arr,
    biases: Option<Arr>,
    lhs_indices: Option<Arr>,
    rhs_indices: Option<Arr>,
    transpose: bool,
    group_size: Option<usize>,
    bits: Option<usize>,
    mode: &str,
    global_scale: Option<Arr>,
    sorted_indices: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let _ = sorted_indices;
    let how = how(group_size, bits, mode, global_scale)?;
    let w = quantized(w, scales, biases)?;
    let (left, right) = (lhs_indices.as_deref(), rhs_indices.as_deref());
    let options = QuantizedGather { left, right, transpose };
    on(stream, || give(ops::gather_qmm(&x, &w, options, how)))
}
