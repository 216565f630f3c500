//! `cupola.core.random`.

use cupola::ops::random;
use cupola::{Array, DType, Scalar, Shape, ops};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::device::{On, evaluating, on};
use crate::dtype::Dtype;
use crate::error::{raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Count, Foreign, Given, Key, Opd, ShapeArg, count, give};

fn or_f32(dtype: Option<Dtype>) -> DType {
    dtype.map_or(DType::F32, |d| d.0)
}

fn or_scalar(shape: Option<ShapeArg>) -> Shape {
    shape.map_or_else(Shape::scalar, |s| s.0)
}

/// The state of the default generator: a sequence of one key, which changes with every draw.
#[pyclass(frozen, name = "_RandomState", module = "cupola.core.random")]
pub struct RandomState;

#[pymethods]
impl RandomState {
    fn __len__(&self) -> usize {
        1
    }

    fn __getitem__(&self, index: isize) -> PyResult<PyArray> {
        match index {
            0 | -1 => Ok(PyArray::new(random::state())),
            _ => Err(PyIndexError::new_err(format!("index {index}: the state is one key"))),
        }
    }

    fn __setitem__(&self, index: isize, key: Arr) -> PyResult<()> {
        match index {
            0 | -1 => {
                random::set_state(key.into_array());
                Ok(())
            }
            _ => Err(PyIndexError::new_err(format!("index {index}: the state is one key"))),
        }
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let one = pyo3::types::PyList::new(slf.py(), [PyArray::new(random::state())])?;
        Ok(one.try_iter()?.into_any().unbind())
    }
}

/// A seed: an integer of 64 bits without a sign.
pub struct Seed(u64);

impl<'py> FromPyObject<'_, 'py> for Seed {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let seed = object.extract().map(Seed);
        seed.map_err(|_| {
            wrong_type(format!("a seed is an integer from 0 to 2**64 - 1, not {object:?}"))
        })
    }
}

/// Starts the default generator from a seed.
#[doc = docs!(random::seed)]
#[pyfunction]
pub fn seed(seed: Seed) {
    random::seed(seed.0);
}

/// The key of a seed.
#[doc = docs!(random::key)]
#[pyfunction]
pub fn key(seed: Seed) -> PyArray {
    PyArray::new(random::key(seed.0))
}

#[doc = docs!(random::split)]
#[pyfunction]
#[pyo3(signature = (key, num = 2, stream = None))]
pub fn split(key: Key, num: isize, stream: Option<On>) -> PyResult<PyArray> {
    let num = count(num, "num")?;
    on(stream, || give(random::split(Some(&key), num)))
}

/// The shape given, or the one that the operands broadcast to.
fn shape_of(shape: Option<ShapeArg>, operands: [&Opd; 2]) -> PyResult<Shape> {
    if let Some(shape) = shape {
        return Ok(shape.0);
    }
    let own = |operand: &Opd| match operand {
        Opd::Array(array) | Opd::Foreign(Foreign { array, .. }) => array.shape().clone(),
        Opd::Scalar(_) => Shape::scalar(),
    };
    own(operands[0]).broadcast(&own(operands[1]), "random").map_err(raise)
}

#[doc = docs!(random::uniform)]
#[pyfunction]
#[pyo3(signature = (low = None, high = None, shape = None, dtype = None, key = None, stream = None))]
pub fn uniform(
    low: Option<Opd>,
    high: Option<Opd>,
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let low = low.unwrap_or(Opd::Scalar(Scalar::Int(0)));
    let high = high.unwrap_or(Opd::Scalar(Scalar::Int(1)));
    let shape = shape_of(shape, [&low, &high])?;
    let dtype = or_f32(dtype);
    let (low, high) = (low.keeping_doubles(dtype), high.keeping_doubles(dtype));
    on(stream, || give(random::uniform(&low, &high, shape, dtype, key.as_deref())))
}

/// `x` times `scale` plus `loc`, in the dtype of `x`.
fn moved(x: Array, loc: Option<Opd>, scale: Option<Opd>) -> PyResult<Array> {
    let dtype = x.dtype();
    let mut out = x;
    if let Some(scale) = scale.filter(|s| !matches!(s, Opd::Scalar(Scalar::Float(1.0)))) {
        out = ops::multiply(&out, &scale.keeping_doubles(dtype)).map_err(raise)?;
    }
    if let Some(loc) = loc.filter(|l| !matches!(l, Opd::Scalar(Scalar::Float(0.0)))) {
        out = ops::add(&out, &loc.keeping_doubles(dtype)).map_err(raise)?;
    }
    ops::astype(&out, dtype).map_err(raise)
}

/// A real number, or an array, that moves or scales what is drawn.
pub struct Parameter(Opd);

impl Parameter {
    fn of(number: f64) -> Self {
        Parameter(Opd::Scalar(Scalar::Float(number)))
    }
}

impl<'py> FromPyObject<'_, 'py> for Parameter {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<Given>()?.0 {
            Opd::Scalar(Scalar::Complex(..)) => {
                Err(wrong_type("a real number or an array is expected, not a complex number"))
            }
            given => Ok(Parameter(given)),
        }
    }
}

#[doc = docs!(random::normal)]
#[pyfunction]
#[pyo3(signature = (
    shape = None, dtype = None, loc = None, scale = None, key = None, stream = None
))]
pub fn normal(
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    loc: Option<Opd>,
    scale: Option<Opd>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || {
        let drawn = random::normal(or_scalar(shape), or_f32(dtype), key.as_deref());
        moved(drawn.map_err(raise)?, loc, scale).map(PyArray::new)
    })
}

#[doc = docs!(random::laplace)]
#[pyfunction]
#[pyo3(signature = (
    shape = None, dtype = None, loc = Parameter::of(0.0), scale = Parameter::of(1.0), key = None,
    stream = None
), text_signature = "(shape=None, dtype=None, loc=0.0, scale=1.0, key=None, stream=None)")]
pub fn laplace(
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    loc: Parameter,
    scale: Parameter,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || {
        let drawn = random::laplace(or_scalar(shape), or_f32(dtype), key.as_deref());
        moved(drawn.map_err(raise)?, Some(loc.0), Some(scale.0)).map(PyArray::new)
    })
}

#[doc = docs!(random::gumbel)]
#[pyfunction]
#[pyo3(signature = (shape = None, dtype = None, key = None, stream = None))]
pub fn gumbel(
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(random::gumbel(or_scalar(shape), or_f32(dtype), key.as_deref())))
}

#[doc = docs!(random::bernoulli)]
#[pyfunction]
#[pyo3(signature = (p = None, shape = None, key = None, stream = None))]
pub fn bernoulli(
    p: Option<Opd>,
    shape: Option<ShapeArg>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let p = p.unwrap_or(Opd::Scalar(Scalar::Float(0.5)));
    let shape = shape_of(shape, [&p, &p])?;
    on(stream, || give(random::bernoulli(&p, shape, key.as_deref())))
}

#[doc = docs!(random::randint)]
#[pyfunction]
#[pyo3(signature = (low, high, shape = None, dtype = None, key = None, stream = None))]
pub fn randint(
    low: Opd,
    high: Opd,
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let dtype = dtype.map_or(DType::I32, |d| d.0);
    let shape = shape_of(shape, [&low, &high])?;
    on(stream, || match (&low, &high) {
        (Opd::Scalar(low), Opd::Scalar(high)) => {
            give(random::randint(low.to_i64(), high.to_i64(), shape, dtype, key.as_deref()))
        }
        _ => give(random::randint_between(&low, &high, shape, dtype, key.as_deref())),
    })
}

#[doc = docs!(random::truncated_normal)]
#[pyfunction]
#[pyo3(signature = (lower, upper, shape = None, dtype = None, key = None, stream = None))]
pub fn truncated_normal(
    lower: Opd,
    upper: Opd,
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let shape = shape_of(shape, [&lower, &upper])?;
    let dtype = or_f32(dtype);
    let (lower, upper) = (lower.keeping_doubles(dtype), upper.keeping_doubles(dtype));
    on(stream, || give(random::truncated_normal(&lower, &upper, shape, dtype, key.as_deref())))
}

#[doc = docs!(random::categorical)]
#[pyfunction]
#[pyo3(signature = (
    logits, axis = -1, shape = None, num_samples = None, key = None, stream = None
), text_signature = "(logits, axis=-1, shape=None, num_samples=None, key=None, stream=None)")]
pub fn categorical(
    logits: Arr,
    axis: isize,
    shape: Option<ShapeArg>,
    num_samples: Option<Count>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    if shape.is_some() && num_samples.is_some() {
        return Err(wrong_value(
            "[categorical] At most one of shape or num_samples can be specified.",
        ));
    }
    let Some(ShapeArg(shape)) = shape else {
        return on(stream, || {
            let samples = num_samples.map(|Count(samples)| samples);
            give(random::categorical(&logits, axis, samples, key.as_deref()))
        });
    };
    let rank = logits.rank();
    let at = cupola::normalize_axis("categorical", axis, rank).map_err(raise)?;
    let Some(place) = (at + shape.rank() + 1).checked_sub(rank) else {
        return Err(wrong_value(format!("[categorical] Requested shape {shape} is too small.")));
    };
    let mut rows = logits.shape().to_vec();
    rows.remove(at);
    let rows = Shape::from(rows);
    if rows.broadcast(&shape, "categorical").ok().as_ref() != Some(&shape) {
        return Err(wrong_value(format!(
            "[categorical] Rows of logits of shape {rows} do not broadcast to the requested {shape}."
        )));
    }
    if shape.rank() > 0 && !logits.is_empty() && logits.size() == logits.shape()[at] {
        return on(stream, || {
            let places = random::categorical(&logits, axis, Some(shape.size()), key.as_deref());
            let sizes: Vec<isize> = shape.iter().map(|&d| d as isize).collect();
            give(places.and_then(|places| ops::reshape(&places, sizes)))
        });
    }
    let mut wide = shape.to_vec();
    wide.insert(place, logits.shape()[at]);
    on(stream, || {
        let noise = random::gumbel(wide, DType::F32, key.as_deref());
        give(noise.and_then(|n| ops::argmax(&ops::add(&*logits, &n)?, place as isize, false)))
    })
}

#[doc = docs!(random::permutation)]
#[pyfunction]
#[pyo3(signature = (x, axis = 0, key = None, stream = None))]
pub fn permutation(
    x: &Bound<'_, PyAny>,
    axis: isize,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    if let Ok(array) = x.cast::<PyArray>() {
        let array = array.get().get();
        return on(stream, || give(random::shuffle(&array, axis, key.as_deref())));
    }
    let Count(count) = x.extract()?;
    on(stream, || give(random::permutation(count, key.as_deref())))
}

/// `x` times `scale`, in the dtype of `x`.
fn scaled(op: &str, x: cupola::Result<Array>, scale: Option<Opd>) -> PyResult<PyArray> {
    if let Some(Opd::Scalar(scale)) = scale
        && scale.to_f64() < 0.0
    {
        return Err(wrong_value(format!("{op}: scale {scale} is negative")));
    }
    moved(x.map_err(raise)?, None, scale).map(PyArray::new)
}

#[doc = docs!(random::exponential)]
#[pyfunction]
#[pyo3(signature = (shape = None, dtype = None, scale = None, key = None, stream = None))]
pub fn exponential(
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    scale: Option<Opd>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || {
        let x = random::exponential(or_scalar(shape), or_f32(dtype), key.as_deref());
        scaled("exponential", x, scale)
    })
}

/// The shape given, or the operand's.
fn own_shape(shape: Option<ShapeArg>, operand: &Opd) -> PyResult<Shape> {
    shape_of(shape, [operand, &Opd::Scalar(Scalar::Int(0))])
}

#[doc = docs!(random::gamma)]
#[pyfunction]
#[pyo3(signature = (a, shape = None, dtype = None, scale = None, key = None, stream = None))]
pub fn gamma(
    a: Opd,
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    scale: Option<Opd>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let shape = own_shape(shape, &a)?;
    let dtype = or_f32(dtype);
    let a = a.keeping_doubles(dtype);
    on(stream, || scaled("gamma", random::gamma(&a, shape, dtype, key.as_deref()), scale))
}

#[doc = docs!(random::beta)]
#[pyfunction]
#[pyo3(signature = (a, b, shape = None, dtype = None, key = None, stream = None))]
pub fn beta(
    a: Opd,
    b: Opd,
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let shape = shape_of(shape, [&a, &b])?;
    let dtype = or_f32(dtype);
    let (a, b) = (a.keeping_doubles(dtype), b.keeping_doubles(dtype));
    on(stream, || give(random::beta(&a, &b, shape, dtype, key.as_deref())))
}

#[doc = docs!(random::dirichlet)]
#[pyfunction]
#[pyo3(signature = (alpha, shape = None, dtype = None, key = None, stream = None))]
pub fn dirichlet(
    alpha: Arr,
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let own = || Shape::from(&alpha.shape()[..alpha.rank().saturating_sub(1)]);
    let shape = shape.map_or_else(own, |s| s.0);
    on(stream, || give(random::dirichlet(&alpha, shape, or_f32(dtype), key.as_deref())))
}

fn or_i32(dtype: Option<Dtype>) -> DType {
    dtype.map_or(DType::I32, |d| d.0)
}

#[doc = docs!(random::poisson)]
#[pyfunction]
#[pyo3(signature = (lam, shape = None, dtype = None, key = None, stream = None))]
pub fn poisson(
    lam: Opd,
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let shape = own_shape(shape, &lam)?;
    on(stream, || give(random::poisson(&lam, shape, or_i32(dtype), key.as_deref())))
}

#[doc = docs!(random::geometric)]
#[pyfunction]
#[pyo3(signature = (p, shape = None, dtype = None, key = None, stream = None))]
pub fn geometric(
    p: Opd,
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let shape = own_shape(shape, &p)?;
    on(stream, || give(random::geometric(&p, shape, or_i32(dtype), key.as_deref())))
}

/// Slices of `a` along `axis` that are drawn, or integers below it where it is a number: each as likely as another or
/// with the probabilities `p`, with each put back or, for `replace=False`, not.
#[doc = docs!(random::choice)]
#[pyfunction]
#[pyo3(signature = (
    a, shape = None, replace = true, p = None, axis = 0, key = None, stream = None
))]
pub fn choice(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    shape: Option<ShapeArg>,
    replace: bool,
    p: Option<Arr>,
    axis: isize,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let shape = or_scalar(shape);
    if let Ok(count) = a.extract::<Count>() {
        return evaluating(py, stream, || {
            let places = random::choice(count.0, shape, replace, p.as_deref(), key.as_deref());
            give(places.and_then(|places| ops::astype(&places, DType::I32)))
        });
    }
    let x = a.extract::<Arr>()?.into_array();
    if x.rank() == 0 {
        return Err(wrong_value("choice: an array has an axis to draw along"));
    }
    let count = crate::ops::shape::size_of(&x, axis);
    evaluating(py, stream, || {
        let places = random::choice(count, shape, replace, p.as_deref(), key.as_deref());
        give(places.and_then(|places| ops::take(&x, &places, axis)))
    })
}

#[doc = docs!(random::multivariate_normal)]
#[pyfunction]
#[pyo3(signature = (mean, cov, shape = None, dtype = None, key = None, stream = None))]
pub fn multivariate_normal(
    py: Python<'_>,
    mean: Arr,
    cov: Arr,
    shape: Option<ShapeArg>,
    dtype: Option<Dtype>,
    key: Option<Key>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    if or_f32(dtype) != DType::F32 {
        return Err(wrong_value("[multivariate_normal] dtype must be float32."));
    }
    let shape = or_scalar(shape);
    evaluating(py, stream, || give(random::multivariate_normal(&mean, &cov, shape, key.as_deref())))
}
