//! Attention that a model spells out: the product of queries and keys, scaled and masked, its softmax, and the product
//! of that with values. The last product is recorded as one attention, which keeps no scores; what was recorded on the
//! way is evaluated only where something else asks for it.

use std::sync::Arc;

use cupola_core::Array;
use cupola_core::ops::{self, AttentionMask, AttentionOptions};

use super::element::Element;
use super::error::Fault;
use super::graph::{Attribute, Step};
use super::node::{axis, floats};
use super::value::{Tensor, Value};

/// What a tensor is on the way from queries and keys to attention.
#[derive(Clone, Debug)]
pub struct Attended {
    queries: Array,
    /// The keys' last two axes exchanged.
    keys: Array,
    scale: f64,
    mask: Option<Array>,
    /// Whether the softmax has been taken.
    is_shares: bool,
}

/// The tensor of an input.
fn tensor(inputs: &[Option<Value>], index: usize) -> Option<&Tensor> {
    match inputs.get(index)? {
        Some(Value::Tensor(tensor)) => Some(tensor),
        _ => None,
    }
}

/// The product with values, where the first factor is a softmax of scores.
pub fn product(step: &Step, inputs: &[Option<Value>]) -> Result<Option<Vec<Value>>, Fault> {
    let (Some(shares), Some(values)) = (tensor(inputs, 0), tensor(inputs, 1)) else {
        return Ok(None);
    };
    let Some(attended) = shares.attended.as_deref().filter(|attended| attended.is_shares) else {
        return Ok(None);
    };
    let (s, v) = (shares.array.aval(), values.array.aval());
    let rank = s.shape.rank();
    if step.op_type != "MatMul" || v.dtype != s.dtype || v.shape.rank() != rank {
        return Ok(None);
    }
    if s.shape[..rank - 2] != v.shape[..rank - 2] {
        return Ok(None);
    }
    // Attention has two axes of batches.
    let four = |x: &Array| match rank {
        3 => ops::expand_dims(x, 1),
        _ => Ok(x.clone()),
    };
    let q = four(&attended.queries)?;
    let k = four(&ops::swapaxes(&attended.keys, -1, -2)?)?;
    let mask = match &attended.mask {
        Some(mask) if rank == 3 && mask.rank() == 3 => Some(ops::expand_dims(mask, 1)?),
        mask => mask.clone(),
    };
    let mut options = AttentionOptions::new(attended.scale);
    if let Some(mask) = &mask {
        options.mask = AttentionMask::Array(mask);
    }
    let mut out = ops::scaled_dot_product_attention(&q, &k, &four(&values.array)?, &options)?;
    if rank == 3 {
        out = ops::squeeze(&out, 1)?;
    }
    Ok(Some(vec![Tensor::new(out, shares.element)?.into()]))
}

/// Notes what the first output is on the way to attention.
pub fn note(step: &Step, inputs: &[Option<Value>], outputs: &mut [Value]) -> Result<(), Fault> {
    let Some(Value::Tensor(out)) = outputs.first_mut() else { return Ok(()) };
    if out.folded || !matches!(out.element, Element::Float | Element::Float16 | Element::Bfloat16) {
        return Ok(());
    }
    out.attended = match step.op_type.as_str() {
        "MatMul" => scores(inputs, &out.array),
        "Mul" | "Div" => scaled(step, inputs, &out.array)?,
        "Add" => masked(inputs, &out.array),
        "Softmax" => shares(step, inputs),
        "Identity" => return Ok(()),
        _ => None,
    }
    .map(Arc::new);
    Ok(())
}

/// A product of batches of matrices.
fn scores(inputs: &[Option<Value>], out: &Array) -> Option<Attended> {
    let (q, k) = (&tensor(inputs, 0)?.array, &tensor(inputs, 1)?.array);
    let rank = out.rank();
    let is_batch = (3..=4).contains(&rank)
        && q.dtype() == k.dtype()
        && [q, k]
            .iter()
            .all(|x| x.rank() == rank && x.shape()[..rank - 2] == out.shape()[..rank - 2]);
    let made = || Attended {
        queries: q.clone(),
        keys: k.clone(),
        scale: 1.0,
        mask: None,
        is_shares: false,
    };
    is_batch.then(made)
}

/// The scores among two inputs, and the other input.
fn beside(inputs: &[Option<Value>], out: &Array) -> Option<(Attended, usize, Tensor)> {
    (0..2).find_map(|at| {
        let attended = tensor(inputs, at)?.attended.as_deref()?;
        let is_scores = !attended.is_shares && attended.mask.is_none();
        let same = tensor(inputs, at)?.array.shape() == out.shape();
        (is_scores && same).then_some((attended.clone(), at, tensor(inputs, 1 - at)?.clone()))
    })
}

/// Scores times a number, or by one.
fn scaled(step: &Step, inputs: &[Option<Value>], out: &Array) -> Result<Option<Attended>, Fault> {
    let Some((attended, at, other)) = beside(inputs, out) else { return Ok(None) };
    let is_product = step.op_type == "Mul";
    if !other.folded || other.array.shape().size() != 1 || (at == 1 && !is_product) {
        return Ok(None);
    }
    let Some(&by) = floats(&other.array)?.first() else { return Ok(None) };
    let scale = if is_product { attended.scale * by } else { attended.scale / by };
    Ok(scale.is_finite().then_some(Attended { scale, ..attended }))
}

/// Scores and what is added to them.
fn masked(inputs: &[Option<Value>], out: &Array) -> Option<Attended> {
    let (attended, _, other) = beside(inputs, out)?;
    let mask = Some(other.array);
    Some(Attended { mask, ..attended })
}

/// The softmax of scores over the keys.
fn shares(step: &Step, inputs: &[Option<Value>]) -> Option<Attended> {
    let x = tensor(inputs, 0)?;
    let attended = x.attended.as_deref().filter(|attended| !attended.is_shares)?;
    let given = step.attributes.iter().find(|(name, _)| name == "axis");
    let along = match given {
        Some((_, Attribute::Int(axis))) => *axis,
        None if step.version >= 13 => -1,
        _ => return None,
    };
    let rank = x.array.rank();
    // Before version 13 all axes from the given one on were one.
    let is_last = axis(along, rank).ok()? == rank - 1;
    is_last.then(|| Attended { is_shares: true, ..attended.clone() })
}
