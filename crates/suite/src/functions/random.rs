//! Numbers drawn by a key: on each device what plain loops make of the same bits.

use cupola_core::{Array, DType, Result, ops};
use ops::random;

use super::Function;
use crate::sample::{Input, fixed, from, numbers};

fn key() -> Input {
    fixed([2], DType::U32, |i| [7.0, 2_309_737_967.0][i % 2])
}

fn float32(dtype: DType) -> bool {
    dtype == DType::F32
}

/// One of a key and of parameters.
fn drawn<const N: usize>(
    name: &'static str,
    parameters: [Input; N],
    body: impl Fn(&Array, &[Array]) -> Result<Array> + 'static,
) -> Function {
    let inputs: Vec<Input> = [key()].into_iter().chain(parameters).collect();
    Function::new(name, inputs, move |x| body(&x[0], &x[1..])).takes(float32)
}

pub(super) fn functions() -> Vec<Function> {
    let shape = [3, 5];
    let rates = || [numbers([5], &[0.3, 1.0, 2.5, 7.0, 40.0])];
    let logits = || [from([3, 4], |i| [0.5, -1.0, 2.0, 0.1, -3.0][i % 5])];
    let mut all = vec![
        drawn("random.split", [], |key, _| random::split(Some(key), 3)),
        drawn("random.normal", [], move |key, _| random::normal(shape, DType::F32, Some(key))),
        drawn("random.gumbel", [], move |key, _| random::gumbel(shape, DType::F32, Some(key))),
        drawn("random.laplace", [], move |key, _| random::laplace(shape, DType::F32, Some(key))),
        drawn("random.exponential", [], move |key, _| {
            random::exponential(shape, DType::F32, Some(key))
        }),
        drawn("random.permutation", [], |key, _| random::permutation(7, Some(key))),
        drawn("random.choice", [], |key, _| random::choice(9, [4], false, None, Some(key))),
        drawn("random.shuffle", [from([4, 3], |i| i as f64)], |key, x| {
            random::shuffle(&x[0], 0, Some(key))
        }),
        drawn("random.bernoulli", [numbers([5], &[0.0, 0.2, 0.5, 0.9, 1.0])], move |key, p| {
            random::bernoulli(&p[0], shape, Some(key))
        }),
        drawn("random.geometric", [numbers([5], &[0.05, 0.2, 0.5, 0.9, 1.0])], move |key, p| {
            random::geometric(&p[0], shape, DType::I32, Some(key))
        }),
        drawn("random.poisson", rates(), move |key, rate| {
            random::poisson(&rate[0], shape, DType::I32, Some(key))
        }),
        drawn("random.gamma", rates(), move |key, a| {
            random::gamma(&a[0], shape, DType::F32, Some(key))
        }),
        drawn("random.beta", rates(), move |key, a| {
            random::beta(&a[0], 1.5, shape, DType::F32, Some(key))
        }),
        drawn("random.dirichlet", rates(), |key, a| {
            random::dirichlet(&a[0], [3], DType::F32, Some(key))
        }),
        drawn("random.categorical", logits(), |key, logits| {
            random::categorical(&logits[0], -1, Some(6), Some(key))
        }),
        drawn("random.categorical", [numbers([4], &[0.5, -1.0, 2.0, 0.1])], |key, logits| {
            random::categorical(&logits[0], -1, Some(6), Some(key))
        })
        .case("of one row"),
    ];
    let means = || [numbers([3, 2], &[-1.0, 0.0, 0.5, 2.0, -7.0])];
    let covariances = || Array::from_slice(&[2.0f32, 0.5, 0.5, 1.0], [2, 2]);
    all.push(drawn("random.multivariate_normal", means(), move |key, mean| {
        random::multivariate_normal(&mean[0], &covariances()?, [3], Some(key))
    }));
    let limits = || [numbers([5], &[-1.0, 0.0, 0.5, 2.0, -7.0])];
    all.extend([
        drawn("random.uniform", limits(), move |key, low| {
            random::uniform(&low[0], 3.5, shape, DType::F32, Some(key))
        }),
        drawn("random.truncated_normal", limits(), move |key, low| {
            random::truncated_normal(&low[0], 2.5, shape, DType::F32, Some(key))
        }),
        drawn("random.randint", [fixed([5], DType::I32, |i| i as f64 - 7.0)], move |key, low| {
            random::randint_between(&low[0], 1000, shape, DType::I32, Some(key))
        }),
    ]);
    all
}
