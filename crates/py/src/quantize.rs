//! Quantized matrices: the affine mode, and the microscaling ones.

use cupola::ops::{self, Microscaling, Quantization, Quantized, QuantizedFactors, QuantizedGather};
use cupola::{Array, DType};
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::dtype::Dtype;
use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Count, give};

#[derive(Clone, Copy)]
enum Mode {
    Affine(Quantization),
    Micro(Microscaling),
}

impl Mode {
    fn of(op: &str, mode: &str, group_size: Option<Count>, bits: Option<Count>) -> PyResult<Mode> {
        let [group_size, bits] = [group_size, bits].map(|given| given.map(|Count(given)| given));
        let format = match mode {
            "affine" => {
                let (group_size, bits) = (group_size.unwrap_or(64), bits.unwrap_or(4));
                return Ok(Mode::Affine(Quantization { group_size, bits }));
            }
            "mxfp4" => Microscaling::Mxfp4,
            "mxfp8" => Microscaling::Mxfp8,
            "nvfp4" => Microscaling::Nvfp4,
            other => return Err(wrong_value(format!("{op}: mode '{other}' is not known"))),
        };
        for (name, own, given) in
            [("group_size", format.group_size(), group_size), ("bits", format.bits(), bits)]
        {
            if let Some(given) = given.filter(|&given| given != own) {
                return Err(wrong_value(format!("{op}: {name} of {mode} is {own}, not {given}")));
            }
        }
        Ok(Mode::Micro(format))
    }

    /// The format of products that round both factors.
    fn micro(self, op: &str) -> PyResult<Microscaling> {
        match self {
            Mode::Micro(format) => Ok(format),
            Mode::Affine(_) => {
                Err(wrong_value(format!("{op}: mode 'affine' is not one of floats")))
            }
        }
    }
}

fn no_global(op: &str, global_scale: &Option<Arr>) -> PyResult<()> {
    match global_scale {
        Some(_) => Err(wrong_value(format!("{op}: global_scale belongs to mode nvfp4"))),
        None => Ok(()),
    }
}

fn affine(op: &str, w: Arr, scales: Arr, biases: Option<Arr>) -> PyResult<Quantized> {
    match biases {
        Some(biases) => Ok(Quantized {
            words: w.into_array(),
            scales: scales.into_array(),
            biases: biases.into_array(),
        }),
        None => Err(wrong_value(format!("{op}: mode affine needs biases"))),
    }
}

/// The matrix of a microscaling mode, in `dtype`.
fn micro(
    op: &str,
    (w, scales, biases): (&Array, &Array, Option<Arr>),
    format: Microscaling,
    global_scale: Option<Arr>,
    dtype: DType,
) -> PyResult<Array> {
    if biases.is_some() {
        return Err(wrong_value(format!("{op}: {format:?} has no biases")));
    }
    ops::dequantize_microscaling(w, scales, format, global_scale.as_deref(), dtype).map_err(raise)
}

/// The dtype of a product with x.
fn floats_of(x: &Array) -> DType {
    if x.dtype().is_float() { x.dtype() } else { DType::F32 }
}

#[doc = docs!(quantize)]
#[pyfunction]
#[pyo3(signature = (
    w, /, group_size = None, bits = None, mode = "affine", *, global_scale = None, stream = None
))]
pub fn quantize(
    w: Arr,
    group_size: Option<Count>,
    bits: Option<Count>,
    mode: &str,
    global_scale: Option<Arr>,
    stream: Option<On>,
) -> PyResult<Vec<PyArray>> {
    let parts = match Mode::of("quantize", mode, group_size, bits)? {
        Mode::Affine(how) => {
            no_global("quantize", &global_scale)?;
            let q = on(stream, || ops::quantize(&w, how).map_err(raise))?;
            vec![q.words, q.scales, q.biases]
        }
        Mode::Micro(format) => {
            let global = global_scale.as_deref();
            let (words, scales) =
                on(stream, || ops::quantize_microscaling(&w, format, global).map_err(raise))?;
            vec![words, scales]
        }
    };
    Ok(parts.into_iter().map(PyArray::new).collect())
}

#[doc = docs!(dequantize)]
#[pyfunction]
#[pyo3(signature = (
    w, /, scales, biases = None, group_size = None, bits = None, mode = "affine",
    global_scale = None, dtype = None, *, stream = None
))]
pub fn dequantize(
    w: Arr,
    scales: Arr,
    biases: Option<Arr>,
    group_size: Option<Count>,
    bits: Option<Count>,
    mode: &str,
    global_scale: Option<Arr>,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let op = "dequantize";
    if let Some(Dtype(dtype)) = dtype
        && !dtype.is_float()
    {
        return Err(wrong_value(format!("{op}: gives floats, not {dtype}")));
    }
    match Mode::of(op, mode, group_size, bits)? {
        Mode::Affine(how) => {
            no_global(op, &global_scale)?;
            let w = affine(op, w, scales, biases)?;
            let dtype = dtype.map_or(w.scales.dtype(), |d| d.0);
            on(stream, || give(ops::dequantize(&w, how).and_then(|a| ops::astype(&a, dtype))))
        }
        Mode::Micro(format) => {
            let dtype = dtype.map_or(DType::BF16, |d| d.0);
            on(stream, || micro(op, (&w, &scales, biases), format, global_scale, dtype))
                .map(PyArray::new)
        }
    }
}

#[doc = docs!(quantized_matmul)]
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
    group_size: Option<Count>,
    bits: Option<Count>,
    mode: &str,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let op = "quantized_matmul";
    match Mode::of(op, mode, group_size, bits)? {
        Mode::Affine(how) => {
            let w = affine(op, w, scales, biases)?;
            on(stream, || give(ops::quantized_matmul(&x, &w, transpose, how)))
        }
        Mode::Micro(format) => on(stream, || {
            let w = micro(op, (&w, &scales, biases), format, None, floats_of(&x))?;
            give(transposed(w, transpose).and_then(|w| ops::matmul(&x, &w)))
        }),
    }
}

fn transposed(w: Array, transpose: bool) -> cupola::Result<Array> {
    if transpose { ops::matrix_transpose(&w) } else { Ok(w) }
}

#[doc = docs!(gather_qmm)]
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
    group_size: Option<Count>,
    bits: Option<Count>,
    mode: &str,
    global_scale: Option<Arr>,
    sorted_indices: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let _ = sorted_indices;
    let op = "gather_qmm";
    let (left, right) = (lhs_indices.as_deref(), rhs_indices.as_deref());
    match Mode::of(op, mode, group_size, bits)? {
        Mode::Affine(how) => {
            no_global(op, &global_scale)?;
            let w = affine(op, w, scales, biases)?;
            let options = QuantizedGather { left, right, transpose };
            on(stream, || give(ops::gather_qmm(&x, &w, options, how)))
        }
        Mode::Micro(format) => on(stream, || {
            let w = micro(op, (&w, &scales, biases), format, global_scale, floats_of(&x))?;
            give(transposed(w, transpose).and_then(|w| ops::gather_mm(&x, &w, left, right)))
        }),
    }
}

#[doc = docs!(qqmm)]
#[pyfunction]
#[pyo3(signature = (
    x, w, scales = None, group_size = None, bits = None, mode = "nvfp4", global_scale_x = None,
    global_scale_w = None, *, stream = None
))]
pub fn qqmm(
    x: Arr,
    w: Arr,
    scales: Option<Arr>,
    group_size: Option<Count>,
    bits: Option<Count>,
    mode: &str,
    global_scale_x: Option<Arr>,
    global_scale_w: Option<Arr>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let format = Mode::of("qqmm", mode, group_size, bits)?.micro("qqmm")?;
    let factors = QuantizedFactors {
        x: &x,
        w: &w,
        scales: scales.as_deref(),
        global_x: global_scale_x.as_deref(),
        global_w: global_scale_w.as_deref(),
    };
    on(stream, || give(ops::qqmm(factors, format)))
}

#[doc = docs!(gather_qqmm)]
#[pyfunction]
#[pyo3(signature = (
    x, w, /, scales = None, lhs_indices = None, rhs_indices = None, group_size = None, bits = None,
    mode = "nvfp4", global_scale_x = None, global_scale_w = None, *, sorted_indices = false,
    stream = None
))]
pub fn gather_qqmm(
    x: Arr,
    w: Arr,
    scales: Option<Arr>,
    lhs_indices: Option<Arr>,
    rhs_indices: Option<Arr>,
    group_size: Option<Count>,
    bits: Option<Count>,
    mode: &str,
    global_scale_x: Option<Arr>,
    global_scale_w: Option<Arr>,
    sorted_indices: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let _ = sorted_indices;
    let format = Mode::of("gather_qqmm", mode, group_size, bits)?.micro("gather_qqmm")?;
    let factors = QuantizedFactors {
        x: &x,
        w: &w,
        scales: scales.as_deref(),
        global_x: global_scale_x.as_deref(),
        global_w: global_scale_w.as_deref(),
    };
    let (left, right) = (lhs_indices.as_deref(), rhs_indices.as_deref());
    on(stream, || give(ops::gather_qqmm(factors, left, right, format)))
}
