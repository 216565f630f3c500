//! Layers that normalize: over batches, instances, groups of channels, or features.

use cupola_core::{Array, DType, Result, ops};

use super::layer::{named, wrong};
use super::{Held, Layer, Made, Tensor};

/// Gamma, of ones, and beta, of zeros.
fn scales(shape: &[usize]) -> Result<Vec<(String, Tensor)>> {
    let gamma = Tensor::of(&ops::ones(shape, DType::F32)?);
    Ok(vec![named("gamma", gamma), named("beta", Tensor::of(&ops::zeros(shape, DType::F32)?))])
}

/// One number a channel, beside arrays `[N, C, ..]`.
fn channels(values: &Array, rank: usize) -> Result<Array> {
    let mut shape = vec![1; rank];
    shape[1] = values.size();
    ops::reshape(values, shape)
}

/// `x` less its mean, over the root of its variance.
fn normed(x: &Array, mean: &Array, variance: &Array, epsilon: f64) -> Result<Array> {
    let scale = ops::rsqrt(&ops::add(variance, epsilon)?)?;
    ops::multiply(&ops::subtract(x, mean)?, &scale)
}

/// `x` times gamma, plus beta.
fn affine(x: &Array, gamma: &Array, beta: &Array) -> Result<Array> {
    ops::add(&ops::multiply(x, gamma)?, beta)
}

/// Channels, `[N, C, ..]`, with mean 0 and variance 1 over the batch, times `gamma`, plus `beta`.
///
/// An execution of a training graph takes the batch's own statistics and moves the states `mean` and `variance`
/// towards them, of which the momentum stays; an inference graph takes these.
///
/// # Errors
/// None but those of recording.
pub fn batch_normalization(count: usize, epsilon: f64, momentum: f64) -> Result<Layer> {
    let states = vec![
        named("mean", Tensor::of(&ops::zeros([count], DType::F32)?)),
        named("variance", Tensor::of(&ops::ones([count], DType::F32)?)),
    ];
    let parameters = scales(&[count])?;
    Ok(Layer::new("batch_normalization", 1..=1, parameters, states, move |given| {
        let x = given.x();
        if x.rank() < 2 || x.shape()[1] != count {
            let text = format!("{} does not have {count} channels", x.aval());
            return Err(wrong("batch_normalization", text));
        }
        let (mut now, mut after) = (Vec::new(), Held::new());
        if given.training {
            let axes: Vec<usize> = (0..x.rank()).filter(|&axis| axis != 1).collect();
            now.push(ops::mean(x, &axes[..], true)?);
            now.push(ops::var(x, &axes[..], true, 0)?);
            for (name, own) in ["mean", "variance"].into_iter().zip(&now) {
                let own = ops::multiply(&own.flatten()?, 1.0 - momentum)?;
                let moved = ops::add(&ops::multiply(given.get(name)?, momentum)?, &own)?;
                after.insert(name.to_owned(), ops::stop_gradient(&moved)?);
            }
        } else {
            for name in ["mean", "variance"] {
                now.push(channels(given.get(name)?, x.rank())?);
            }
        }
        let (gamma, beta) = (given.get("gamma")?, given.get("beta")?);
        let out = normed(x, &now[0], &now[1], epsilon)?;
        let out = affine(&out, &channels(gamma, x.rank())?, &channels(beta, x.rank())?)?;
        Ok(Made { results: vec![out], states: after })
    }))
}

/// Each channel of each image with mean 0 and variance 1, times `gamma`, plus `beta`.
///
/// # Errors
/// None but those of recording.
pub fn instance_normalization(count: usize, epsilon: f64) -> Result<Layer> {
    grouped("instance_normalization", count, count, epsilon)
}

/// Each group of channels of each image with mean 0 and variance 1, times `gamma`, plus `beta`.
///
/// # Errors
/// Where the groups do not divide the channels.
pub fn group_normalization(count: usize, groups: usize, epsilon: f64) -> Result<Layer> {
    grouped("group_normalization", count, groups, epsilon)
}

fn grouped(label: &'static str, count: usize, groups: usize, epsilon: f64) -> Result<Layer> {
    if groups == 0 || !count.is_multiple_of(groups) {
        return Err(wrong(label, format!("{groups} groups do not divide {count} channels")));
    }
    Ok(Layer::one(label, 1..=1, scales(&[count])?, move |given| {
        let x = given.x();
        if x.rank() < 2 || x.shape()[1] != count {
            return Err(wrong(label, format!("{} does not have {count} channels", x.aval())));
        }
        let rows = ops::reshape(x, [x.shape()[0] as isize, groups as isize, -1])?;
        let (mean, variance) = (ops::mean(&rows, -1, true)?, ops::var(&rows, -1, true, 0)?);
        let out = ops::reshape(&normed(&rows, &mean, &variance, epsilon)?, x.shape().clone())?;
        let (gamma, beta) = (given.get("gamma")?, given.get("beta")?);
        affine(&out, &channels(gamma, x.rank())?, &channels(beta, x.rank())?)
    }))
}

/// The last dimensions, which have this shape, with mean 0 and variance 1, times `gamma`, plus `beta`.
///
/// # Errors
/// None but those of recording.
pub fn layer_normalization(shape: &[usize], epsilon: f64) -> Result<Layer> {
    let (own, size) = (shape.to_vec(), shape.iter().product::<usize>());
    Ok(Layer::one("layer_normalization", 1..=1, scales(shape)?, move |given| {
        let x = given.x();
        let Some(lead) = x.rank().checked_sub(own.len()).filter(|&l| x.shape()[l..] == own[..])
        else {
            let text = format!("{} does not end with {own:?}", x.aval());
            return Err(wrong("layer_normalization", text));
        };
        let mut flat = x.shape()[..lead].to_vec();
        flat.push(size);
        let rows = ops::reshape(x, flat)?;
        let (gamma, beta) = (given.get("gamma")?.flatten()?, given.get("beta")?.flatten()?);
        let out = ops::layer_norm(&rows, Some(&gamma), Some(&beta), epsilon)?;
        ops::reshape(&out, x.shape().clone())
    }))
}
