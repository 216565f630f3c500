//! What language models keep from step to step: caches, recurrent states, positions.

use cupola_core::ops::{ConvOptions, DataFormat};

use super::prelude::*;
use crate::lowering::movement::part;

/// `[B, T, heads·size]` as `[B, heads, T, size]`.
pub fn heads(x: &Array, heads: usize) -> Made {
    let [batch, steps, width] = x.shape()[..] else {
        return Err(Fault::invalid(format!("{} has not three axes", x.shape())));
    };
    if heads == 0 || !width.is_multiple_of(heads) {
        return Err(Fault::invalid(format!("{heads} heads of {}", x.shape())));
    }
    let split = ops::reshape(x, [batch, steps, heads, width / heads])?;
    Ok(ops::transpose(&split, [0, 2, 1, 3])?)
}

/// `[B, heads, T, size]` as `[B, T, heads·size]`.
pub fn joined(x: &Array) -> Made {
    let [batch, heads, steps, size] = x.shape()[..] else {
        return Err(Fault::invalid(format!("{} has not four axes", x.shape())));
    };
    let moved = ops::transpose(x, [0, 2, 1, 3])?;
    Ok(ops::reshape(&moved, [batch, steps, heads * size])?)
}

fn tensor_scatter(n: &Node<'_>) -> Outcome {
    let (cache, update) = (n.x(0)?, n.x(1)?);
    let axis = n.axis("axis", -2, cache.rank())?;
    let fits = |a: usize| {
        cache.shape()[a] == update.shape()[a] || a == axis && update.shape()[a] <= cache.shape()[a]
    };
    if axis == 0 || update.rank() != cache.rank() || !(0..cache.rank()).all(fits) {
        return Err(Fault::invalid(format!(
            "{} into {} along {axis}",
            update.shape(),
            cache.shape()
        )));
    }
    let batch = cache.shape()[0];
    let along = |values: &Array, axis: usize| -> Made {
        let mut sizes = vec![1; cache.rank()];
        sizes[axis] = values.size();
        Ok(ops::reshape(values, sizes)?)
    };
    let starts = match n.maybe(2)? {
        Some(starts) => ops::astype(starts, DType::I64)?,
        None => ops::zeros([batch], DType::I64)?,
    };
    let steps = ops::arange_in(0, update.shape()[axis], 1, DType::I64)?;
    let mut places = ops::add(&along(&starts, 0)?, &along(&steps, axis)?)?;
    if n.text("mode", "linear")? == "circular" {
        places = ops::remainder(&places, cache.shape()[axis] as i64)?;
    }
    let places = ops::broadcast_to(&places, update.shape())?;
    n.like(ops::put_along_axis(cache, &places, update, axis)?, 0)
}

fn causal_conv(n: &Node<'_>) -> Outcome {
    let (x, w) = (n.x(0)?, n.x(1)?);
    let ([batch, channels, length], [_, 1, k]) = (
        x.shape().0[..].try_into().unwrap_or([0; 3]),
        w.shape().0[..].try_into().unwrap_or([0; 3]),
    ) else {
        return Err(Fault::invalid(format!("{} with a kernel of {}", x.shape(), w.shape())));
    };
    if k == 0 {
        return Err(Fault::invalid("the kernel is empty"));
    }
    let past = match n.maybe(3)? {
        Some(past) => ops::astype(past, x.dtype())?,
        None => ops::zeros([batch, channels, k - 1], x.dtype())?,
    };
    let all = ops::concatenate(&[&past, x], 2)?;
    let options = ConvOptions::new().groups(channels).data_format(DataFormat::ChannelsFirst);
    let mut y = ops::conv_general(&all, w, &options)?;
    if let Some(bias) = n.maybe(2)? {
        y = ops::add(&y, &crate::lowering::conv::per_channel(bias, 3)?)?;
    }
    y = match n.text("activation", "none")? {
        "none" => y,
        "silu" | "swish" => ops::silu(&y)?,
        other => return Err(Fault::invalid(format!("the activation '{other}' is not known"))),
    };
    let state = part(&all, 2, length, length + k - 1)?;
    Ok(vec![y.into(), state.into()])
}

fn linear_attention(n: &Node<'_>) -> Outcome {
    let q_heads = node::count(n.need_attribute("q_num_heads")?)?;
    let kv_heads = node::count(n.need_attribute("kv_num_heads")?)?;
    if kv_heads == 0 || !q_heads.is_multiple_of(kv_heads) {
        return Err(Fault::invalid(format!("{q_heads} heads for {kv_heads}")));
    }
    let wide = |x: &Array, count: usize| heads(&ops::astype(x, DType::F32)?, count);
    let (q, k, v) = (wide(n.x(0)?, q_heads)?, wide(n.x(1)?, kv_heads)?, wide(n.x(2)?, kv_heads)?);
    let ([batch, _, steps, d_k], d_v) =
        (q.shape().0[..].try_into().unwrap_or([0; 4]), v.shape()[3]);
    let rule = n.text("update_rule", "gated_delta")?;
    let gated = matches!(rule, "gated" | "gated_delta");
    let delta = matches!(rule, "delta" | "gated_delta");
    if !gated && !delta && rule != "linear" {
        return Err(Fault::invalid(format!("the rule '{rule}' is not known")));
    }
    // [B, heads, T, d_k or 1, 1] and [B, heads, T, 1].
    let decay = match gated {
        true => Some(ops::expand_dims(&ops::exp(&wide(n.x(4)?, kv_heads)?)?, 4)?),
        false => None,
    };
    let beta = match delta {
        true => {
            let beta = n.x(5)?;
            Some(wide(beta, beta.shape().last().copied().unwrap_or(1))?)
        }
        false => None,
    };
    let mut state = match n.maybe(3)? {
        Some(past) => ops::astype(past, DType::F32)?,
        None => ops::zeros([batch, kv_heads, d_k, d_v], DType::F32)?,
    };
    let scale = match n.float("scale", 0.0)? {
        0.0 => 1.0 / (d_k as f64).sqrt(),
        scale => scale,
    };
    let at = |x: &Array, t: usize| -> Made { Ok(ops::squeeze(&part(x, 2, t, t + 1)?, 2)?) };
    let mut outputs = Vec::with_capacity(steps);
    for t in 0..steps {
        let key = ops::expand_dims(&at(&k, t)?, 3)?;
        let mut value = ops::expand_dims(&at(&v, t)?, 2)?;
        if let Some(decay) = &decay {
            state = ops::multiply(&state, &at(decay, t)?)?;
        }
        if let Some(beta) = &beta {
            let known = ops::matmul(&ops::swapaxes(&key, -1, -2)?, &state)?;
            let rate = ops::expand_dims(&at(beta, t)?, 3)?;
            value = ops::multiply(&rate, &ops::subtract(&value, &known)?)?;
        }
        state = ops::add(&state, &ops::multiply(&key, &value)?)?;
        let read = ops::repeat(&state, q_heads / kv_heads, 1)?;
        let query = ops::expand_dims(&at(&q, t)?, 2)?;
        outputs.push(ops::matmul(&query, &read)?);
    }
    let y = match outputs.is_empty() {
        true => ops::zeros([batch, q_heads, 0, d_v], DType::F32)?,
        false => ops::concatenate(&outputs.iter().collect::<Vec<_>>(), 2)?,
    };
    let y = ops::astype(&joined(&ops::multiply(&y, scale)?)?, n.x(0)?.dtype())?;
    let held = n.maybe(3)?.map_or(n.x(0)?.dtype(), Array::dtype);
    Ok(vec![y.into(), ops::astype(&state, held)?.into()])
}

fn rotary_embedding(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let packed = x.rank() == 3;
    // [B, heads, T, size].
    let split = match packed {
        true => heads(x, node::count(n.int("num_heads", 0)?)?)?,
        false => x.clone(),
    };
    let size = split.shape().last().copied().unwrap_or(0);
    let turned = match node::count(n.int("rotary_embedding_dim", 0)?)? {
        0 => size,
        turned => turned,
    };
    if split.rank() != 4 || turned > size || !turned.is_multiple_of(2) {
        return Err(Fault::invalid(format!("{turned} of {} are turned", split.shape())));
    }
    let table = |index: usize| -> Made {
        let table = match n.maybe(3)? {
            Some(places) => ops::take(n.x(index)?, places, 0)?,
            None => n.x(index)?.clone(),
        };
        Ok(ops::expand_dims(&table, 1)?)
    };
    let (cos, sin) = (table(1)?, table(2)?);
    let half = turned / 2;
    let along = |x: &Array, a: usize, b: usize| part(x, 3, a, b);
    let turn = along(&split, 0, turned)?;
    let [batch, count, steps, _] = split.shape().0[..].try_into().unwrap_or([0; 4]);
    let interleaved = n.flag("interleaved", false)?;
    let (a, b) = match interleaved {
        true => {
            let pairs = ops::reshape(&turn, [batch, count, steps, half, 2])?;
            let one = |i: usize| -> Made { Ok(ops::squeeze(&part(&pairs, 4, i, i + 1)?, 4)?) };
            (one(0)?, one(1)?)
        }
        false => (along(&turn, 0, half)?, along(&turn, half, turned)?),
    };
    let real = ops::subtract(&ops::multiply(&cos, &a)?, &ops::multiply(&sin, &b)?)?;
    let imaginary = ops::add(&ops::multiply(&sin, &a)?, &ops::multiply(&cos, &b)?)?;
    let turn = match interleaved {
        true => ops::reshape(&ops::stack(&[&real, &imaginary], 4)?, [batch, count, steps, turned])?,
        false => ops::concatenate(&[&real, &imaginary], 3)?,
    };
    let y = ops::concatenate(&[&turn, &along(&split, turned, size)?], 3)?;
    n.like(if packed { joined(&y)? } else { y }, 0)
}

pub const OPS: &[Entry] = &[
    ("CausalConvWithState", 27, causal_conv),
    ("LinearAttention", 27, linear_attention),
    ("RotaryEmbedding", 23, rotary_embedding),
    ("TensorScatter", 24, tensor_scatter),
];
