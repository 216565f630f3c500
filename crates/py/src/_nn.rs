//! `cupola.core._nn`: operations that the layers of `cupola.nn` call and MLX's `core` does not have.

use cupola::Array;
use cupola::ops::{self, PoolOptions};
use cupola_core::binding::all_as_one;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::error::{raise, wrong_value};
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

/// What was recorded as one node for every parameter of a step.
fn recorded<const N: usize>(name: &str, all: cupola::Result<Vec<Array>>) -> PyResult<[PyArray; N]> {
    let all: Result<[Array; N], _> = all.map_err(raise)?.try_into();
    let all = all.map_err(|_| wrong_value(format!("[{name}] gives {N} arrays")))?;
    Ok(all.map(PyArray::new))
}

#[doc = docs!(_nn::adam)]
#[pyfunction]
#[pyo3(signature = (parameter, gradient, m, v, betas, eps, rate, deviation=None, kept=None))]
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
    kept: Option<Arr>,
) -> PyResult<(PyArray, PyArray, PyArray)> {
    let has = [&deviation, &kept].map(Option::is_some);
    let parameters =
        [betas.0.to_bits(), betas.1.to_bits(), eps.to_bits(), has[0].into(), has[1].into()];
    let always = [&parameter, &gradient, &m, &v, &rate];
    let inputs: SmallVec<[&Array; 8]> =
        always.into_iter().chain(&deviation).chain(&kept).map(|given| &**given).collect();
    let step = |given: &[Array]| {
        let [parameter, gradient, m, v, rate, more @ ..] = given else { return Ok(Vec::new()) };
        let past = |mean: &Array, beta: f64, fresh: &Array| {
            ops::add(&ops::multiply(mean, beta)?, &ops::multiply(fresh, 1.0 - beta)?)
        };
        let parameter = match more.last().filter(|_| has[1]) {
            Some(kept) => ops::multiply(parameter, kept)?,
            None => parameter.clone(),
        };
        let m = past(m, betas.0, gradient)?;
        let v = past(v, betas.1, &ops::square(gradient)?)?;
        let mut size = ops::sqrt(&v)?;
        if let Some(deviation) = more.first().filter(|_| has[0]) {
            size = ops::multiply(&size, deviation)?;
        }
        let change = ops::divide(&ops::multiply(rate, &m)?, &ops::add(&size, eps)?)?;
        Ok(vec![ops::subtract(&parameter, &change)?, m, v])
    };
    let all = all_as_one("adam", &parameters, &inputs, &[0, 2, 3], step);
    let [parameter, m, v] = recorded("adam", all)?;
    Ok((parameter, m, v))
}

#[doc = docs!(_nn::sgd)]
#[pyfunction]
pub fn sgd(
    parameter: Arr,
    gradient: Arr,
    v: Arr,
    momentum: (f64, f64, bool),
    weight_decay: f64,
    rate: Arr,
) -> PyResult<(PyArray, PyArray)> {
    let (momentum, dampening, nesterov) = momentum;
    let parameters =
        [momentum.to_bits(), dampening.to_bits(), weight_decay.to_bits(), nesterov.into()];
    let inputs = [&*parameter, &*gradient, &*v, &*rate];
    let step = |given: &[Array]| {
        let [parameter, gradient, v, rate] = given else { return Ok(Vec::new()) };
        let mut gradient = gradient.clone();
        if weight_decay != 0.0 {
            gradient = ops::add(&gradient, &ops::multiply(parameter, weight_decay)?)?;
        }
        let mut fresh = gradient.clone();
        if dampening > 0.0 {
            fresh = ops::multiply(&fresh, 1.0 - dampening)?;
        }
        let v = ops::add(&ops::multiply(v, momentum)?, &fresh)?;
        let along = match nesterov {
            true => ops::add(&gradient, &ops::multiply(&v, momentum)?)?,
            false => v.clone(),
        };
        Ok(vec![ops::subtract(parameter, &ops::multiply(rate, &along)?)?, v])
    };
    let all = all_as_one("sgd", &parameters, &inputs, &[0, 2], step);
    let [parameter, v] = recorded("sgd", all)?;
    Ok((parameter, v))
}

#[doc = docs!(_nn::running_mean)]
#[pyfunction]
pub fn running_mean(running: Arr, fresh: Arr, momentum: f64, scale: f64) -> PyResult<PyArray> {
    let step = |given: &[Array]| {
        let [running, fresh] = given else { return Ok(Vec::new()) };
        let fresh = match scale {
            1.0 => fresh.clone(),
            scale => ops::multiply(fresh, scale)?,
        };
        let kept = ops::multiply(running, 1.0 - momentum)?;
        let mean = ops::add(&kept, &ops::multiply(&fresh, momentum)?)?;
        // In its own dtype: the sums of a batch are taken in `float32`.
        Ok(vec![ops::astype(&mean, running.dtype())?])
    };
    let parameters = [momentum.to_bits(), scale.to_bits()];
    let all = all_as_one("running_mean", &parameters, &[&*running, &*fresh], &[0], step);
    let [mean] = recorded("running_mean", all)?;
    Ok(mean)
}

#[doc = docs!(_nn::update)]
#[pyfunction]
pub fn update(x: Arr, former: Arr) -> PyResult<PyArray> {
    give(ops::update(&x, &former))
}
