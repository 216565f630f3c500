//! Losses.

use super::prelude::*;

/// The loss of each place, its weight, and the mean or sum that the node asks for.
fn reduced(n: &Node<'_>, logs: &Array, targets: &Array, weights: Option<&Array>) -> Made {
    let classes = logs.shape().get(1).copied();
    let classes =
        classes.ok_or_else(|| Fault::invalid(format!("{} has no classes", logs.shape())))?;
    let targets = ops::astype(targets, DType::I64)?;
    let ignored = match n.maybe_int("ignore_index")? {
        Some(index) => Some(ops::equal(&targets, index)?),
        None => None,
    };
    // What is ignored may lie outside of the classes.
    let places = match &ignored {
        Some(ignored) => ops::where_(ignored, 0i64, &targets)?,
        None => targets.clone(),
    };
    if classes == 0 {
        return Err(Fault::invalid("there are no classes"));
    }
    let picked = ops::take_along_axis(logs, &ops::expand_dims(&places, 1)?, 1)?;
    let mut loss = ops::negative(&ops::squeeze(&picked, 1)?)?;
    let mut weight = match weights {
        Some(weights) => ops::take(weights, &places, 0)?,
        None => ops::ones_like(&loss)?,
    };
    if let Some(ignored) = &ignored {
        weight = ops::where_(ignored, 0, &weight)?;
        loss = ops::where_(ignored, 0, &loss)?;
    }
    let loss = ops::multiply(&loss, &weight)?;
    match n.text("reduction", "mean")? {
        "none" => Ok(loss),
        "sum" => Ok(ops::sum(&loss, (), false)?),
        "mean" => Ok(ops::divide(&ops::sum(&loss, (), false)?, &ops::sum(&weight, (), false)?)?),
        other => Err(Fault::invalid(format!("the reduction '{other}' is not known"))),
    }
}

fn negative_log_likelihood(n: &Node<'_>) -> Outcome {
    one(reduced(n, n.x(0)?, n.x(1)?, n.maybe(2)?)?)
}

fn softmax_cross_entropy(n: &Node<'_>) -> Outcome {
    let logs = ops::log_softmax(n.x(0)?, 1)?;
    let loss = reduced(n, &logs, n.x(1)?, n.maybe(2)?)?;
    Ok(vec![loss.into(), logs.into()])
}

pub const OPS: &[Entry] = &[
    ("NegativeLogLikelihoodLoss", 12, negative_log_likelihood),
    ("SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy),
];
