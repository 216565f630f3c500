//! Quantiles, histograms, covariances, and values between points.

use cupola::ops::{self, Between, Bins, Outside};
use cupola::{Array, DType};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList};

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::{raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Axis, give, keep_doubles};
use crate::ops::create::number;
use crate::read;

fn method_of(op: &str, name: &str) -> PyResult<Between> {
    Ok(match name {
        "linear" => Between::Linear,
        "lower" => Between::Lower,
        "higher" => Between::Higher,
        "midpoint" => Between::Midpoint,
        "nearest" => Between::Nearest,
        other => {
            return Err(wrong_value(format!(
                "{op}: method '{other}' is not linear, lower, higher, midpoint or nearest"
            )));
        }
    })
}

/// Shares from a number, a sequence, or an array, which is evaluated; and the shape that they came in.
fn shares(q: &Bound<'_, PyAny>, unit: f64) -> PyResult<(Vec<f64>, Vec<usize>)> {
    if let Ok(one) = q.extract::<f64>() {
        return Ok((vec![one / unit], Vec::new()));
    }
    if let Ok(some) = q.extract::<Vec<f64>>() {
        let count = some.len();
        return Ok((some.into_iter().map(|q| q / unit).collect(), vec![count]));
    }
    let array = q.extract::<Arr>()?.into_array();
    let narrow = ops::astype(&array, DType::F32).map_err(raise)?;
    let all = narrow.to_vec::<f32>().map_err(raise)?;
    Ok((all.into_iter().map(|q| f64::from(q) / unit).collect(), array.shape()[..].to_vec()))
}

/// The quantiles with the axes of `q` first: of percentages where `op` says so, of what is not NaN likewise.
fn quantiles(
    op: &str,
    a: &Array,
    q: &Bound<'_, PyAny>,
    (axis, keepdims, method): (Axis, bool, &str),
) -> PyResult<PyArray> {
    let (q, shape) = shares(q, if op.ends_with("percentile") { 100.0 } else { 1.0 })?;
    let method = method_of(op, method)?;
    let out = match op.starts_with("nan") {
        true => ops::nanquantile(a, &q, axis.0, keepdims, method),
        false => ops::quantile(a, &q, axis.0, keepdims, method),
    };
    let out = out.map_err(raise)?;
    let sizes: Vec<usize> = shape.iter().chain(&out.shape()[1..]).copied().collect();
    give(ops::reshape(&out, sizes))
}

macro_rules! quantile_functions {
    ($($name:ident)*) => {$(
        #[doc = docs!($name)]
        #[pyfunction]
        #[pyo3(signature = (
            a, q, axis = Axis::all(), keepdims = false, *, method = "linear", stream = None
        ), text_signature = "(a, q, axis=None, keepdims=False, *, method='linear', stream=None)")]
        pub fn $name(
            a: Arr,
            q: &Bound<'_, PyAny>,
            axis: Axis,
            keepdims: bool,
            method: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            on(stream, || quantiles(stringify!($name), &a, q, (axis, keepdims, method)))
        }
    )*};
}

quantile_functions! { quantile nanquantile percentile nanpercentile }

#[doc = docs!(histogram)]
#[pyfunction]
#[pyo3(signature = (a, bins = None, range = None, weights = None, density = false, *, stream = None))]
pub fn histogram(
    mut a: Arr,
    bins: Option<&Bound<'_, PyAny>>,
    range: Option<(f64, f64)>,
    mut weights: Option<Arr>,
    density: bool,
    stream: Option<On>,
) -> PyResult<(PyArray, PyArray)> {
    let mut edges = None;
    let mut count = 10;
    if let Some(bins) = bins {
        if let Ok(number) = bins.extract::<isize>() {
            count = usize::try_from(number)
                .map_err(|_| wrong_value(format!("histogram: {number} is no number of bins")))?;
        } else if bins.is_instance_of::<PyFloat>() {
            let detail = "is neither a number of bins nor a vector of edges";
            return Err(wrong_type(format!("histogram: bins {bins} {detail}")));
        } else if bins.is_instance_of::<PyList>() {
            let doubles = (a.dtype() == DType::F64).then_some(DType::F64);
            let all = bins.extract::<Vec<f64>>().unwrap_or_default();
            if all.windows(2).any(|pair| pair[0] > pair[1]) {
                return Err(wrong_value(format!("histogram: the edges {bins} do not ascend")));
            }
            edges = Some(read::array(bins, doubles)?.into());
        } else {
            edges = Some(bins.extract::<Arr>()?);
        }
    }
    keep_doubles([&mut a].into_iter().chain(&mut edges).chain(&mut weights));
    let bins = edges.as_deref().map_or(Bins::Count(count, range), Bins::Edges);
    on(stream, || give(ops::histogram(&a, bins, weights.as_deref(), density)))
}

#[doc = docs!(cov)]
#[pyfunction]
#[pyo3(signature = (
    m, rowvar = true, bias = false, ddof = None, fweights = None, aweights = None, *, stream = None
))]
pub fn cov(
    mut m: Arr,
    rowvar: bool,
    bias: bool,
    ddof: Option<f64>,
    mut fweights: Option<Arr>,
    mut aweights: Option<Arr>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut m].into_iter().chain(&mut fweights).chain(&mut aweights));
    let ddof = ddof.unwrap_or(if bias { 0.0 } else { 1.0 });
    on(stream, || {
        let rows = rows(&m, rowvar)?;
        give(ops::cov(&rows, ddof, fweights.as_deref(), aweights.as_deref()))
    })
}

/// The variables as rows.
fn rows(m: &Array, rowvar: bool) -> PyResult<Array> {
    match rowvar || m.rank() != 2 {
        true => Ok(m.clone()),
        false => ops::swapaxes(m, 0, 1).map_err(raise),
    }
}

#[doc = docs!(corrcoef)]
#[pyfunction]
#[pyo3(signature = (x, rowvar = true, *, stream = None))]
pub fn corrcoef(x: Arr, rowvar: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::corrcoef(&rows(&x, rowvar)?)))
}

#[doc = docs!(interp)]
#[pyfunction]
#[pyo3(signature = (x, xp, fp, left = None, right = None, period = None, *, stream = None))]
pub fn interp(
    mut x: Arr,
    mut xp: Arr,
    mut fp: Arr,
    left: Option<&Bound<'_, PyAny>>,
    right: Option<&Bound<'_, PyAny>>,
    period: Option<f64>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let end = |given: Option<&Bound<'_, PyAny>>| given.map(|v| number(v, "interp")).transpose();
    let (left, right) = (end(left)?, end(right)?);
    keep_doubles([&mut x, &mut xp, &mut fp]);
    on(stream, || give(ops::interp(&x, &xp, &fp, Outside { left, right, period })))
}
