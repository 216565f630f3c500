//! `cupola.core.fast`.

pub mod kernel;

use cupola::ops::{self, AttentionMask, AttentionOptions, Frequencies, Operand, RopeOptions};
use cupola::{Array, DType};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Count, Opd, data_format_of, give, keep_doubles};

/// The dtype that operands of a norm promote to, which must be of floats.
fn result(op: &str, operands: [Option<&Array>; 3]) -> PyResult<DType> {
    let dtypes = operands.into_iter().flatten().map(Array::dtype);
    match dtypes.reduce(DType::promote) {
        Some(dtype) if dtype.is_float() => Ok(dtype),
        other => {
            let dtype = other.map(|d| d.to_string()).unwrap_or_default();
            Err(wrong_value(format!("[{op}] Received unsupported type {dtype}.")))
        }
    }
}

/// Norms are over the last axis.
fn has_rows(op: &str, x: &Array) -> PyResult<()> {
    match x.rank() {
        0 => Err(wrong_value(format!("[{op}] Input must have at least 1 dimension."))),
        _ => Ok(()),
    }
}

#[doc = docs!(fast::layer_norm)]
#[pyfunction]
#[pyo3(signature = (x, weight, bias, eps, *, stream = None))]
pub fn layer_norm(
    mut x: Arr,
    mut weight: Option<Arr>,
    mut bias: Option<Arr>,
    eps: f64,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut x].into_iter().chain(&mut weight).chain(&mut bias));
    has_rows("layer_norm", &x)?;
    // A bias alone does not widen x.
    let decides = bias.as_deref().filter(|_| weight.is_some());
    let dtype = result("layer_norm", [Some(&*x), weight.as_deref(), decides])?;
    let x = ops::astype(&x, dtype).map_err(raise)?;
    on(stream, || give(ops::layer_norm(&x, weight.as_deref(), bias.as_deref(), eps)))
}

#[doc = docs!(fast::rms_norm)]
#[pyfunction]
#[pyo3(signature = (x, weight, eps, *, stream = None))]
pub fn rms_norm(
    mut x: Arr,
    mut weight: Option<Arr>,
    eps: f64,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut x].into_iter().chain(&mut weight));
    has_rows("rms_norm", &x)?;
    let dtype = result("rms_norm", [Some(&*x), weight.as_deref(), None])?;
    let x = ops::astype(&x, dtype).map_err(raise)?;
    on(stream, || give(ops::rms_norm(&x, weight.as_deref(), eps)))
}

#[doc = docs!(fast::group_norm)]
#[pyfunction]
#[pyo3(signature = (
    x, num_groups, weight = None, bias = None, eps = 1e-5, *, data_format = "channels_last",
    stream = None
))]
pub fn group_norm(
    mut x: Arr,
    num_groups: usize,
    mut weight: Option<Arr>,
    mut bias: Option<Arr>,
    eps: f64,
    data_format: &str,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut x].into_iter().chain(&mut weight).chain(&mut bias));
    let format = data_format_of(data_format)?;
    let (weight, bias) = (weight.as_deref(), bias.as_deref());
    on(stream, || give(format.with(&x, |x| ops::group_norm(x, num_groups, weight, bias, eps))))
}

#[doc = docs!(fast::cross_entropy)]
#[pyfunction]
#[pyo3(signature = (logits, targets, *, stream = None))]
pub fn cross_entropy(logits: Arr, targets: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::cross_entropy(&logits, &targets)))
}

#[doc = docs!(fast::rope)]
#[pyfunction]
#[pyo3(signature = (
    a, dims, *, traditional, base, scale, offset, freqs = None, stream = None
))]
pub fn rope(
    mut a: Arr,
    dims: Count,
    traditional: bool,
    base: Option<f64>,
    scale: f64,
    offset: Opd,
    mut freqs: Option<Arr>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a].into_iter().chain(&mut freqs));
    let frequencies = match (base, freqs.as_deref()) {
        (Some(base), None) => Frequencies::Base(base),
        (None, Some(periods)) => Frequencies::Periods(periods),
        _ => return Err(wrong_value("[rope] Exactly one of base or freqs must have a value.")),
    };
    let offset = Operand::from(&offset);
    let options = RopeOptions { dims: dims.0, traditional, frequencies, scale, offset };
    on(stream, || give(ops::rope(&a, &options)))
}

#[doc = docs!(fast::scaled_dot_product_attention)]
#[pyfunction]
#[pyo3(signature = (
    q, k, v, *, scale, mask = None, sinks = None, force_fused = false, stream = None
))]
pub fn scaled_dot_product_attention(
    mut q: Arr,
    mut k: Arr,
    mut v: Arr,
    scale: f64,
    mask: Option<&Bound<'_, PyAny>>,
    mut sinks: Option<Arr>,
    force_fused: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let _ = force_fused;
    let mut array = None;
    let named = match mask {
        None => AttentionMask::None,
        Some(mask) => match mask.cast::<PyString>() {
            Ok(name) if name.to_cow()? == "causal" => AttentionMask::Causal,
            Ok(name) if name.to_cow()?.is_empty() => AttentionMask::None,
            Ok(name) => {
                return Err(wrong_value(format!("attention: mask '{name}' is not 'causal'")));
            }
            Err(_) => {
                array = Some(mask.extract::<Arr>()?);
                AttentionMask::None
            }
        },
    };
    keep_doubles([&mut q, &mut k, &mut v].into_iter().chain(&mut array).chain(&mut sinks));
    let mask = array.as_deref().map_or(named, AttentionMask::Array);
    let options = AttentionOptions { scale, mask, sinks: sinks.as_deref() };
    on(stream, || give(ops::scaled_dot_product_attention(&q, &k, &v, &options)))
}
