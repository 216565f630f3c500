//! Attention with graphs for its scores and shares.

use super::attention::for_queries;
use super::prelude::*;

fn modified(n: &Node<'_>, name: &str, x: Array) -> Made {
    if n.attribute(name).is_none() {
        return Ok(x);
    }
    let shape = x.shape().clone();
    let out = n.call(n.graph(name)?, vec![x.into()])?;
    let out = out.first().ok_or_else(|| Fault::invalid(format!("'{name}' gives nothing")))?;
    let out = out.tensor()?.array.clone();
    match *out.shape() == shape {
        true => Ok(out),
        false => Err(Fault::invalid(format!("'{name}' gives {} for {shape}", out.shape()))),
    }
}

fn flex_attention(n: &Node<'_>) -> Outcome {
    let (q, k, v) = (n.x(0)?, n.x(1)?, n.x(2)?);
    if q.rank() != 4 || k.rank() != 4 || v.rank() != 4 {
        return Err(Fault::invalid(format!("{}, {} and {}", q.shape(), k.shape(), v.shape())));
    }
    let (k, v) = (for_queries(k, q.shape()[1])?, for_queries(v, q.shape()[1])?);
    let root = n.maybe_float("scale")?.unwrap_or(1.0 / (q.shape()[3] as f64).sqrt()).sqrt();
    let turned = ops::swapaxes(&ops::multiply(&k, root)?, -1, -2)?;
    let scores = ops::matmul(&ops::multiply(q, root)?, &turned)?;
    let wide = n.element("softmax_precision")?.map_or(q.dtype().accumulator(), Element::dtype);
    let scores = modified(n, "score_mod", ops::astype(&scores, wide)?)?;
    let shares = modified(n, "prob_mod", ops::softmax(&scores, -1)?)?;
    let y = ops::matmul(&shares, &ops::astype(&v, shares.dtype())?)?;
    one(ops::astype(&y, n.x(2)?.dtype())?)
}

pub const OPS: &[Entry] = &[("FlexAttention", 1, flex_attention)];
