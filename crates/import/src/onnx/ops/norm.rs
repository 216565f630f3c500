//! Normalizations.

use super::prelude::*;
use crate::lowering::conv::per_channel;
use crate::lowering::norm::{local_response, moments, standard, wide};

fn batch_norm(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let (scale, bias, mean, variance) = (n.x(1)?, n.x(2)?, n.x(3)?, n.x(4)?);
    let eps = n.float("epsilon", 1e-5)?;
    let rank = x.rank();
    let by_feature = n.version() < 9 && !n.flag("spatial", true)?;
    let place = |v: &Array| match by_feature {
        true => Ok(ops::expand_dims(v, 0)?),
        false => per_channel(&wide(v)?, rank),
    };
    let training = match n.version() {
        14.. => n.flag("training_mode", false)?,
        7.. => n.wants(1),
        _ => !n.flag("is_test", false)? && n.wants(1),
    };
    let x = &wide(x)?;
    let finish = |y: Array| -> Made {
        let y = ops::add(&ops::multiply(&y, &place(scale)?)?, &place(bias)?)?;
        Ok(ops::astype(&y, n.x(0)?.dtype())?)
    };
    if !training {
        return one(finish(standard(x, &place(mean)?, &place(variance)?, eps)?)?);
    }
    let axes: Vec<usize> = (0..rank).filter(|&a| a != 1).collect();
    let (now, spread) = (ops::mean(x, axes.clone(), false)?, ops::var(x, axes, false, 0)?);
    let momentum = n.float("momentum", 0.9)?;
    let moved = |old: &Array, new: &Array| -> Made {
        let kept = ops::multiply(&wide(old)?, momentum)?;
        let out = ops::add(&kept, &ops::multiply(new, 1.0 - momentum)?)?;
        Ok(ops::astype(&out, old.dtype())?)
    };
    let y = finish(standard(x, &place(&now)?, &place(&spread)?, eps)?)?;
    let mut outputs: Vec<Value> =
        vec![y.into(), moved(mean, &now)?.into(), moved(variance, &spread)?.into()];
    if n.version() < 14 {
        outputs.extend([now.into(), spread.into()]);
    }
    Ok(outputs)
}

fn instance_norm(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let axes: Vec<usize> = (2..x.rank()).collect();
    let (y, _, _) = moments(&wide(x)?, &axes, n.float("epsilon", 1e-5)?)?;
    let (scale, bias) = (per_channel(n.x(1)?, x.rank())?, per_channel(n.x(2)?, x.rank())?);
    let y = ops::add(&ops::multiply(&y, &wide(&scale)?)?, &wide(&bias)?)?;
    n.like(ops::astype(&y, x.dtype())?, 0)
}

fn layer_norm(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let axes: Vec<usize> = (n.axis("axis", -1, x.rank())?..x.rank()).collect();
    let stash = n.element("stash_type")?.unwrap_or(Element::Float).dtype();
    let computed = ops::astype(x, if x.dtype() == DType::F64 { DType::F64 } else { stash })?;
    let (y, mean, inverse) = moments(&computed, &axes, n.float("epsilon", 1e-5)?)?;
    let mut y = ops::multiply(&ops::astype(&y, x.dtype())?, n.x(1)?)?;
    if let Some(bias) = n.maybe(2)? {
        y = ops::add(&y, bias)?;
    }
    Ok(vec![y.into(), ops::astype(&mean, stash)?.into(), ops::astype(&inverse, stash)?.into()])
}

fn rms_norm(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let axes: Vec<usize> = (n.axis("axis", -1, x.rank())?..x.rank()).collect();
    let stash = n.element("stash_type")?.unwrap_or(Element::Float).dtype();
    let computed = ops::astype(x, if x.dtype() == DType::F64 { DType::F64 } else { stash })?;
    let square = ops::mean(&ops::square(&computed)?, axes, true)?;
    let inverse = ops::rsqrt(&ops::add(&square, n.float("epsilon", 1e-5)?)?)?;
    let y = ops::astype(&ops::multiply(&computed, &inverse)?, x.dtype())?;
    let scale = ops::astype(n.x(1)?, x.dtype())?;
    let y = ops::multiply(&y, &scale)?;
    one(ops::astype(&y, n.x(1)?.dtype())?)
}

fn group_norm(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let groups = node::count(n.need_attribute("num_groups")?)?;
    let (batch, channels) = match x.shape()[..] {
        [batch, channels, ..] if groups > 0 && channels % groups == 0 => (batch, channels),
        _ => return Err(Fault::invalid(format!("{groups} groups of {}", x.shape()))),
    };
    let stash = n.element("stash_type")?.unwrap_or(Element::Float).dtype();
    let computed = ops::astype(x, if x.dtype() == DType::F64 { DType::F64 } else { stash })?;
    let inner = x.size().checked_div(batch.saturating_mul(groups)).unwrap_or(0);
    let rows = ops::reshape(&computed, [batch, groups, inner])?;
    let (y, _, _) = moments(&rows, &[2], n.float("epsilon", 1e-5)?)?;
    let y = ops::reshape(&y, &x.shape()[..])?;
    // Before version 21 there is one number a group.
    let place = |v: &Array| -> Made {
        let each = channels.checked_div(v.size()).unwrap_or(1);
        per_channel(&ops::astype(&ops::repeat(v, each, 0)?, computed.dtype())?, x.rank())
    };
    let y = ops::add(&ops::multiply(&y, &place(n.x(1)?)?)?, &place(n.x(2)?)?)?;
    n.like(ops::astype(&y, x.dtype())?, 0)
}

fn lrn(n: &Node<'_>) -> Outcome {
    let size = node::count(n.need_attribute("size")?)?;
    let (alpha, beta) = (n.float("alpha", 1e-4)?, n.float("beta", 0.75)?);
    n.like(local_response(n.x(0)?, size, alpha, beta, n.float("bias", 1.0)?)?, 0)
}

fn lp_normalization(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let axis = n.axis("axis", -1, x.rank())?;
    let norm = match n.int("p", 2)? {
        1 => ops::sum(&ops::abs(x)?, axis, true)?,
        2 => ops::sqrt(&ops::sum(&ops::square(x)?, axis, true)?)?,
        p => return Err(Fault::invalid(format!("the norm of {p} is not that of 1 or 2"))),
    };
    // A vector of zeros stays.
    let norm = ops::where_(&ops::equal(&norm, 0)?, 1, &norm)?;
    n.like(ops::divide(x, &norm)?, 0)
}

fn mean_variance(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let axes = node::axes(&n.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]), x.rank())?;
    let centred = ops::subtract(x, &ops::mean(x, axes.clone(), true)?)?;
    let deviation = ops::std(x, axes, true, 0)?;
    n.like(ops::divide(&centred, &ops::add(&deviation, 1e-9)?)?, 0)
}

pub const OPS: &[Entry] = &[
    ("BatchNormalization", 1, batch_norm),
    ("GroupNormalization", 18, group_norm),
    ("InstanceNormalization", 1, instance_norm),
    ("LRN", 1, lrn),
    ("LayerNormalization", 17, layer_norm),
    ("LpNormalization", 1, lp_normalization),
    ("MeanVarianceNormalization", 9, mean_variance),
    ("RMSNormalization", 23, rms_norm),
];
