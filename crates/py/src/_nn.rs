//! `cupola.core._nn`: operations that the layers of `cupola.nn` call and MLX's `core` does not have.

use cupola::Array;
use cupola::ops::{self, PoolOptions};
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::error::raise;
use crate::generated::docs;
use crate::operand::{Arr, SizesArg, counts, give};

/// Functions of an array or a number.
macro_rules! activations {
    ($($name:ident)*) => {$(
        #[doc = docs!(_nn::$name)]
        #[pyfunction]
        pub fn $name(x: Arr) -> PyResult<PyArray> {
            give(ops::$name(&x))
        }
    )*};
}

activations! { relu selu gelu gelu_approx silu softplus log_sigmoid softsign mish }

/// Functions of an array or a number that have a parameter.
macro_rules! parametric_activations {
    ($($name:ident)*) => {$(
        #[doc = docs!(_nn::$name)]
        #[pyfunction]
        pub fn $name(x: Arr, parameter: f64) -> PyResult<PyArray> {
            give(ops::$name(&x, parameter))
        }
    )*};
}

parametric_activations! { elu celu hard_shrink softshrink }

#[doc = docs!(_nn::glu)]
#[pyfunction]
pub fn glu(x: Arr, axis: isize) -> PyResult<PyArray> {
    give(ops::glu(&x, axis))
}

fn windows(window: SizesArg, stride: SizesArg, padding: SizesArg) -> PyResult<PoolOptions> {
    let padding = counts(&padding, "padding")?;
    Ok(PoolOptions {
        window: counts(&window, "window")?,
        stride: counts(&stride, "stride")?,
        padding: padding.into_iter().map(|p| (p, p)).collect(),
    })
}

#[doc = docs!(_nn::max_pool)]
#[pyfunction]
pub fn max_pool(
    x: Arr,
    window: SizesArg,
    stride: SizesArg,
    padding: SizesArg,
) -> PyResult<PyArray> {
    give(ops::max_pool(&x, &windows(window, stride, padding)?))
}

#[doc = docs!(_nn::avg_pool)]
#[pyfunction]
pub fn avg_pool(
    x: Arr,
    window: SizesArg,
    stride: SizesArg,
    padding: SizesArg,
) -> PyResult<PyArray> {
    give(ops::avg_pool(&x, &windows(window, stride, padding)?))
}

#[doc = docs!(_nn::adam)]
#[pyfunction]
#[pyo3(signature = (parameter, gradient, m, v, betas, eps, rate, deviation=None))]
#[allow(clippy::too_many_arguments)]
pub fn adam(
    parameter: Arr,
    gradient: Arr,
    m: Arr,
    v: Arr,
    betas: (f64, f64),
    eps: f64,
    rate: Arr,
    deviation: Option<Arr>,
) -> PyResult<(PyArray, PyArray, PyArray)> {
    let step = || -> cupola::Result<[Array; 3]> {
        let past = |mean: &Array, beta: f64, fresh: &Array| {
            ops::add(&ops::multiply(mean, beta)?, &ops::multiply(fresh, 1.0 - beta)?)
        };
        let m = past(&m, betas.0, &gradient)?;
        let v = past(&v, betas.1, &ops::square(&gradient)?)?;
        let mut size = ops::sqrt(&v)?;
        if let Some(deviation) = &deviation {
            size = ops::multiply(&size, &**deviation)?;
        }
        let change = ops::divide(&ops::multiply(&*rate, &m)?, &ops::add(&size, eps)?)?;
        Ok([ops::subtract(&*parameter, &change)?, m, v])
    };
    let [parameter, m, v] = step().map_err(raise)?;
    Ok((PyArray::new(parameter), PyArray::new(m), PyArray::new(v)))
}
