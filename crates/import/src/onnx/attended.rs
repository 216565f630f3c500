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
pub enum Attended {
    /// Queries or keys times a number, and what they were before.
    Scaled(Array, f64),
    /// A product of queries and keys, and what became of it.
    Scores(Scores),
}

/// Scores, as they are and as a softmax.
#[derive(Clone, Debug)]
pub struct Scores {
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

impl Tensor {
    /// The scores that it is.
    fn scores(&self) -> Option<&Scores> {
        match self.attended.as_deref()? {
            Attended::Scores(scores) => Some(scores),
            Attended::Scaled(..) => None,
        }
    }

    /// What it was before it was scaled, and the scale.
    fn unscaled(&self) -> (&Array, f64) {
        match self.attended.as_deref() {
            Some(Attended::Scaled(array, by)) => (array, *by),
            _ => (&self.array, 1.0),
        }
    }
}

/// The product with values, where the first factor is a softmax of scores.
pub fn product(step: &Step, inputs: &[Option<Value>]) -> Result<Option<Vec<Value>>, Fault> {
    let (Some(shares), Some(values)) = (tensor(inputs, 0), tensor(inputs, 1)) else {
        return Ok(None);
    };
    let Some(attended) = shares.scores().filter(|scores| scores.is_shares) else {
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
    let ((q, q_scale), (k, k_scale)) =
        (tensor(inputs, 0)?.unscaled(), tensor(inputs, 1)?.unscaled());
    let rank = out.rank();
    let is_batch = (3..=4).contains(&rank)
        && q.dtype() == k.dtype()
        && [q, k]
            .iter()
            .all(|x| x.rank() == rank && x.shape()[..rank - 2] == out.shape()[..rank - 2]);
    let made = || Scores {
        queries: q.clone(),
        keys: k.clone(),
        scale: q_scale * k_scale,
        mask: None,
        is_shares: false,
    };
    (is_batch && holds(q_scale * k_scale)).then(made).map(Attended::Scores)
}

/// The scores among two inputs, and the other input.
fn beside(inputs: &[Option<Value>], out: &Array) -> Option<(Scores, Tensor)> {
    (0..2).find_map(|at| {
        let scores = tensor(inputs, at)?.scores()?;
        let is_plain = !scores.is_shares && scores.mask.is_none();
        let same = tensor(inputs, at)?.array.shape() == out.shape();
        (is_plain && same).then_some((scores.clone(), tensor(inputs, 1 - at)?.clone()))
    })
}

/// Scores, queries or keys times a number, or by one.
fn scaled(step: &Step, inputs: &[Option<Value>], out: &Array) -> Result<Option<Attended>, Fault> {
    let is_product = step.op_type == "Mul";
    let (Some(left), Some(right)) = (tensor(inputs, 0), tensor(inputs, 1)) else { return Ok(None) };
    let is_number = |x: &Tensor| x.folded && x.array.shape().size() == 1;
    let (x, number) = match (is_number(right), is_number(left) && is_product) {
        (true, _) => (left, right),
        (false, true) => (right, left),
        (false, false) => return Ok(None),
    };
    let Some(&by) = floats(&number.array)?.first() else { return Ok(None) };
    let by = if is_product { by } else { 1.0 / by };
    // A number of more axes than what it scales makes something else of it.
    if !by.is_finite() || x.array.shape() != out.shape() {
        return Ok(None);
    }
    let made = match x.scores() {
        Some(Scores { is_shares: true, .. } | Scores { mask: Some(_), .. }) => None,
        Some(scores) => {
            Some(Attended::Scores(Scores { scale: scores.scale * by, ..scores.clone() }))
        }
        None => {
            let (array, scale) = x.unscaled();
            Some(Attended::Scaled(array.clone(), scale * by))
        }
    };
    Ok(made.filter(|made| match made {
        Attended::Scaled(_, scale) | Attended::Scores(Scores { scale, .. }) => holds(*scale),
    }))
}

/// Whether attention, which scales in `float32`, has this scale.
fn holds(scale: f64) -> bool {
    scale == 0.0 || (scale as f32).is_normal()
}

/// Scores and what is added to them.
fn masked(inputs: &[Option<Value>], out: &Array) -> Option<Attended> {
    let (scores, other) = beside(inputs, out)?;
    Some(Attended::Scores(Scores { mask: Some(other.array), ..scores }))
}

/// The softmax of scores over the keys.
fn shares(step: &Step, inputs: &[Option<Value>]) -> Option<Attended> {
    let x = tensor(inputs, 0)?;
    let scores = x.scores().filter(|scores| !scores.is_shares)?;
    let given = step.attributes.iter().find(|(name, _)| name == "axis");
    let along = match given {
        Some((_, Attribute::Int(axis))) => *axis,
        None if step.version >= 13 => -1,
        _ => return None,
    };
    let rank = x.array.rank();
    // Before version 13 all axes from the given one on were one.
    let is_last = axis(along, rank).ok()? == rank - 1;
    is_last.then(|| Attended::Scores(Scores { is_shares: true, ..scores.clone() }))
}
