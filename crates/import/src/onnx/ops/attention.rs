//! Attention.

use super::prelude::*;
use super::state::{heads, joined};

/// Keys or values for each head of the queries.
pub fn for_queries(x: &Array, queries: usize) -> Made {
    let count = x.shape()[1];
    match count > 0 && queries.is_multiple_of(count) {
        true => Ok(ops::repeat(x, queries / count, 1)?),
        false => Err(Fault::invalid(format!("{queries} heads of queries for {count}"))),
    }
}

/// Which keys a query may see by their places: causal, and in a window.
fn visible(
    n: &Node<'_>,
    queries: usize,
    keys: usize,
    offset: &Array,
) -> Result<Option<Array>, Fault> {
    let places = |count: usize, sizes: [usize; 2]| -> Made {
        Ok(ops::reshape(&ops::arange_in(0, count, 1, DType::I64)?, sizes)?)
    };
    // How far a key lies before its query: `[.., queries, keys]`.
    let at = ops::add(&places(queries, [queries, 1])?, offset)?;
    let behind = ops::subtract(&at, &places(keys, [1, keys])?)?;
    let mut limits = Vec::new();
    if n.flag("is_causal", false)? {
        limits.push(ops::greater_equal(&behind, 0)?);
    }
    let (left, right) = (n.int("left_window_size", -1)?, n.int("right_window_size", -1)?);
    if left >= 0 {
        limits.push(ops::less_equal(&behind, left)?);
    }
    if right >= 0 {
        limits.push(ops::greater_equal(&behind, right.saturating_neg())?);
    }
    let mut all = limits.into_iter();
    let Some(mut seen) = all.next() else { return Ok(None) };
    for limit in all {
        seen = ops::logical_and(&seen, &limit)?;
    }
    Ok(Some(seen))
}

/// The mask of a node as numbers to add, over all keys.
fn bias(mask: &Array, keys: usize, dtype: DType) -> Made {
    let mask = match mask.dtype() {
        DType::Bool => {
            let none = ops::full((), f64::NEG_INFINITY, dtype)?;
            ops::where_(mask, &ops::zeros((), dtype)?, &none)?
        }
        _ => ops::astype(mask, dtype)?,
    };
    let have = mask.shape().last().copied().unwrap_or(keys);
    if have >= keys || have == 1 {
        return Ok(mask);
    }
    let mut widths = vec![(0, 0); mask.rank()];
    widths[mask.rank() - 1] = (0, keys - have);
    Ok(ops::pad(&mask, &widths[..], f64::NEG_INFINITY)?)
}

fn attention(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let (dtype, packed) = (x.dtype(), x.rank() == 3);
    let (q, mut k, mut v) = match packed {
        true => {
            let queries = node::count(n.need_attribute("q_num_heads")?)?;
            let keys = node::count(n.need_attribute("kv_num_heads")?)?;
            (heads(x, queries)?, heads(n.x(1)?, keys)?, heads(n.x(2)?, keys)?)
        }
        false => (x.clone(), n.x(1)?.clone(), n.x(2)?.clone()),
    };
    if q.rank() != 4 || k.rank() != 4 || v.rank() != 4 {
        return Err(Fault::invalid(format!("{}, {} and {}", q.shape(), k.shape(), v.shape())));
    }
    let mut past = 0;
    if let (Some(key), Some(value)) = (n.maybe(4)?, n.maybe(5)?) {
        past = key.shape().get(2).copied().unwrap_or(0);
        k = ops::concatenate(&[key, &k], 2)?;
        v = ops::concatenate(&[value, &v], 2)?;
    }
    let (queries, keys) = (q.shape()[2], k.shape()[2]);
    let scale = n.maybe_float("scale")?.unwrap_or(1.0 / (q.shape()[3] as f64).sqrt());
    let root = scale.sqrt();
    let (all_k, all_v) = (for_queries(&k, q.shape()[1])?, for_queries(&v, q.shape()[1])?);
    let scaled_k = ops::swapaxes(&ops::multiply(&all_k, root)?, -1, -2)?;
    let raw = ops::matmul(&ops::multiply(&q, root)?, &scaled_k)?;
    let mut scores = raw.clone();
    let cap = n.float("softcap", 0.0)?;
    if cap > 0.0 {
        scores = ops::multiply(&ops::tanh(&ops::divide(&scores, cap)?)?, cap)?;
    }
    let capped = scores.clone();
    let lengths = n.maybe(6)?;
    if let Some(mask) = n.maybe(3)? {
        scores = ops::add(&scores, &bias(mask, keys, dtype)?)?;
    }
    // [B, 1, 1, 1], or one number.
    let lengths = match lengths {
        Some(lengths) => {
            let lengths = ops::astype(lengths, DType::I64)?;
            Some(ops::reshape(&lengths, [lengths.size(), 1, 1, 1])?)
        }
        None => None,
    };
    let offset = match &lengths {
        Some(lengths) => ops::subtract(lengths, queries as i64)?,
        None => ops::full((), past as i64, DType::I64)?,
    };
    let mut seen = visible(n, queries, keys, &offset)?;
    if let Some(lengths) = &lengths {
        let places = ops::arange_in(0, keys, 1, DType::I64)?;
        let there = ops::less(&places, lengths)?;
        seen = Some(match seen {
            Some(seen) => ops::logical_and(&seen, &there)?,
            None => there,
        });
    }
    if let Some(seen) = &seen {
        let none = ops::full((), f64::NEG_INFINITY, dtype)?;
        scores = ops::where_(seen, &scores, &none)?;
    }
    let precision = n.element("softmax_precision")?.map_or(dtype, Element::dtype);
    let wide = ops::astype(&scores, precision)?;
    // A query that sees nothing gives zeros.
    let blind = ops::isneginf(&ops::max(&wide, -1, true)?)?;
    let shares = ops::where_(&blind, 0, &ops::softmax(&ops::where_(&blind, 0, &wide)?, -1)?)?;
    let shares = ops::astype(&shares, dtype)?;
    let y = ops::matmul(&shares, &all_v)?;
    let y = ops::astype(&if packed { joined(&y)? } else { y }, dtype)?;
    let shown = match n.int("qk_matmul_output_mode", 0)? {
        0 => raw,
        1 => capped,
        2 => scores,
        _ => shares,
    };
    Ok(vec![y.into(), k.into(), v.into(), shown.into()])
}

pub const OPS: &[Entry] = &[("Attention", 23, attention)];
