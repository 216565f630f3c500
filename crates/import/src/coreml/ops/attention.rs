//! Attention.

use cupola_core::ops::{AttentionMask, AttentionOptions};

use super::prelude::*;

/// `x` with the axes before its last three as one, or with a new one of size 1.
fn batched(x: &Array) -> Made {
    let shape = x.shape();
    if shape.rank() < 3 {
        return Err(Fault::invalid(format!("{shape} has not three axes")));
    }
    let split = shape.rank().saturating_sub(3);
    let batch: usize = shape[..split].iter().product();
    let mut sizes = vec![batch];
    sizes.extend(&shape[split..]);
    Ok(ops::reshape(x, sizes)?)
}

fn attention(n: &Node<'_>) -> Outcome {
    let (q, k, v) = (n.x("query")?, n.x("key")?, n.x("value")?);
    if k.rank() != q.rank() || v.rank() != q.rank() {
        return Err(Fault::invalid(format!("{}, {} and {}", q.shape(), k.shape(), v.shape())));
    }
    let mut options =
        AttentionOptions::new(1.0 / (q.shape().last().map_or(1, |&d| d) as f64).sqrt());
    let mask = match n.maybe("attn_mask")? {
        Some(mask) if mask.rank() > 3 => {
            let mut sizes = q.shape().to_vec();
            let rank = sizes.len();
            let last = |x: &Array| x.shape().get(rank - 2).copied().unwrap_or(1);
            (sizes[rank - 2], sizes[rank - 1]) = (last(q), last(k));
            Some(batched(&ops::broadcast_to(mask, sizes)?)?)
        }
        mask => mask.cloned(),
    };
    if let Some(mask) = &mask {
        options.mask = AttentionMask::Array(mask);
    }
    let y = ops::scaled_dot_product_attention(&batched(q)?, &batched(k)?, &batched(v)?, &options)?;
    let mut sizes = q.shape().to_vec();
    if let (Some(last), Some(&size)) = (sizes.last_mut(), v.shape().last()) {
        *last = size;
    }
    one(ops::reshape(&y, sizes)?)
}

pub const OPS: &[Entry] = &[("scaled_dot_product_attention", attention)];
