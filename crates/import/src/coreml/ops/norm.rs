//! Normalizations.

use super::prelude::*;
use crate::lowering::conv::per_channel;
use crate::lowering::norm::{local_response, moments, standard, wide};

fn batch_norm(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let rank = x.rank();
    let place = |values: &Array| per_channel(&wide(values)?, rank);
    let (mean, variance) = (place(n.x("mean")?)?, place(n.x("variance")?)?);
    let mut y = standard(&wide(x)?, &mean, &variance, n.float_or("epsilon", 1e-5)?)?;
    if let Some(gamma) = n.maybe("gamma")? {
        y = ops::multiply(&y, &place(gamma)?)?;
    }
    if let Some(beta) = n.maybe("beta")? {
        y = ops::add(&y, &place(beta)?)?;
    }
    one(ops::astype(&y, x.dtype())?)
}

fn instance_norm(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let axes: Vec<usize> = (2..x.rank()).collect();
    let (mut y, _, _) = moments(&wide(x)?, &axes, n.float_or("epsilon", 1e-5)?)?;
    if let Some(gamma) = n.maybe("gamma")? {
        y = ops::multiply(&y, &per_channel(&wide(gamma)?, x.rank())?)?;
    }
    if let Some(beta) = n.maybe("beta")? {
        y = ops::add(&y, &per_channel(&wide(beta)?, x.rank())?)?;
    }
    one(ops::astype(&y, x.dtype())?)
}

fn layer_norm(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let axes = n.axes("axes", x.rank())?;
    let epsilon = n.float_or("epsilon", 1e-5)?;
    let (gamma, beta) = (n.maybe("gamma")?, n.maybe("beta")?);
    let last = axes[..] == [x.rank().wrapping_sub(1)];
    let vector = |v: &Option<&Array>| v.is_none_or(|v| v.rank() == 1);
    if last && vector(&gamma) && vector(&beta) {
        return one(ops::layer_norm(x, gamma, beta, epsilon)?);
    }
    let (mut y, _, _) = moments(&wide(x)?, &axes, epsilon)?;
    let place = |values: &Array| -> Made {
        let size = |axis: usize| if axes.contains(&axis) { x.shape()[axis] } else { 1 };
        let sizes: Vec<usize> = (0..x.rank()).map(size).collect();
        Ok(ops::reshape(&wide(values)?, sizes)?)
    };
    if let Some(gamma) = gamma {
        y = ops::multiply(&y, &place(gamma)?)?;
    }
    if let Some(beta) = beta {
        y = ops::add(&y, &place(beta)?)?;
    }
    one(ops::astype(&y, x.dtype())?)
}

/// Over the last three axes.
fn l2_norm(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let axes: Vec<usize> = (x.rank().saturating_sub(3)..x.rank()).collect();
    let wide = wide(x)?;
    let total = ops::sum(&ops::square(&wide)?, axes, true)?;
    let inverse = ops::rsqrt(&ops::add(&total, n.float_or("epsilon", 1e-6)?)?)?;
    one(ops::astype(&ops::multiply(&wide, &inverse)?, x.dtype())?)
}

fn local_response_norm(n: &Node<'_>) -> Outcome {
    let (alpha, beta) = (n.float_or("alpha", 1e-4)?, n.float_or("beta", 0.75)?);
    one(local_response(n.x("x")?, n.count("size")?, alpha, beta, n.float_or("k", 1.0)?)?)
}

pub const OPS: &[Entry] = &[
    ("batch_norm", batch_norm),
    ("instance_norm", instance_norm),
    ("l2_norm", l2_norm),
    ("layer_norm", layer_norm),
    ("local_response_norm", local_response_norm),
];
