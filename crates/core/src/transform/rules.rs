//! Derivatives and batching of one recorded primitive, and of a graph's worth of them.
//!
//! A primitive states its derivative once, as a [`Diff`]; here both directions are made of it.
//! Everything that is computed is recorded as primitives again, so derivatives have derivatives.

use std::hash::Hash;

use smallvec::SmallVec;

use crate::array::Array;
use crate::autocast::suspended;
use crate::error::{Error, Result};
use crate::graph::trace::ById;
use crate::graph::{Graph, Ref};
use crate::prim::movement::beside;
use crate::prim::record::{add, cast, div, masked, mul, neg, or_zeros, sum_of};
use crate::prim::{Batched, Diff, Linearity, Op, Partial, Primitive, Reverse, Tangents};
use crate::with_payload;

/// Cotangents of `op`'s inputs from cotangents of its outputs; `None` is a symbolic zero.
///
/// Only inputs that are `wanted` and of a differentiable dtype get one. Cotangents pair with
/// tangents as Re(Σ c·t), without conjugation: [`grad`](super::grad) conjugates at both ends.
pub(crate) fn vjp(
    op: &Op,
    inputs: &[Array],
    outputs: &[Array],
    cotangents: &[Option<Array>],
    wanted: &[bool],
) -> Result<Tangents> {
    let wanted: SmallVec<[bool; 4]> =
        inputs.iter().zip(wanted).map(|(x, &w)| w && x.dtype().is_differentiable()).collect();
    let nothing = cotangents.iter().all(Option::is_none) || !wanted.contains(&true);
    if nothing {
        return Ok(vec![None; inputs.len()]);
    }
    let reverse = Reverse { inputs, outputs, cotangents, wanted: &wanted };
    let found = suspended(|| with_payload!(op, payload => pull(payload, &reverse)))?;
    checked(op, "vjp", found, inputs, |index| wanted[index])
}

/// Tangents of `op`'s outputs from tangents of its inputs; `None` is a symbolic zero.
pub(crate) fn jvp(
    op: &Op,
    inputs: &[Array],
    outputs: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    let tangents: SmallVec<[Option<Array>; 4]> = inputs
        .iter()
        .zip(tangents)
        .map(|(x, t)| t.clone().filter(|_| x.dtype().is_differentiable()))
        .collect();
    if tangents.iter().all(Option::is_none) {
        return Ok(vec![None; outputs.len()]);
    }
    let found =
        suspended(|| with_payload!(op, payload => push(payload, op, inputs, outputs, &tangents)))?;
    checked(op, "jvp", found, outputs, |index| outputs[index].dtype().is_differentiable())
}

/// What a rule gave, checked against the arrays that it is about: users write rules too. What is
/// not wanted goes; integers have derivatives that are integers, and what a rule rounded, as one does in mixed precision,
/// has the dtype of what it is about.
fn checked(
    op: &Op,
    rule: &str,
    found: Tangents,
    of: &[Array],
    wanted: impl Fn(usize) -> bool,
) -> Result<Tangents> {
    if found.len() != of.len() {
        return Err(Error::argument(
            op.name(),
            format!("its {rule} gave {} arrays for {}", found.len(), of.len()),
        ));
    }
    let one = |(index, (have, want)): (usize, (Option<Array>, &Array))| {
        let Some(have) = have.filter(|_| wanted(index)) else {
            return Ok(None);
        };
        let rounds = have.aval().shape == want.aval().shape
            && (want.dtype().is_integer() || have.dtype().is_float() && want.dtype().is_float());
        if have.aval() != want.aval() && !rounds {
            return Err(Error::shape(
                op.name(),
                format!("its {rule} gave {} for {} (number {index})", have.aval(), want.aval()),
            ));
        }
        cast(&have, want.dtype()).map(Some)
    };
    found.into_iter().zip(of).enumerate().map(one).collect()
}

/// Reverse mode of one primitive.
fn pull<P: Primitive>(payload: &P, r: &Reverse<'_>) -> Result<Tangents> {
    let wanted = |operand: usize| r.wanted[operand];
    match payload.diff() {
        Diff::Zero => Ok(vec![None; r.inputs.len()]),
        Diff::Partials(partial) => {
            let Some(ct) = &r.cotangents[0] else {
                return Ok(vec![None; r.inputs.len()]);
            };
            let one = |operand| match wanted(operand) {
                true => through(partial(payload, r.inputs, &r.outputs[0], operand)?, ct),
                false => Ok(None),
            };
            (0..r.inputs.len()).map(one).collect()
        }
        Diff::Linear { operand: is_linear, transpose, .. } => {
            let Some(ct) = &r.cotangents[0] else {
                return Ok(vec![None; r.inputs.len()]);
            };
            let one = |operand| match wanted(operand) && is_linear(payload, operand) {
                true => transpose(payload, r.inputs, operand, ct),
                false => Ok(None),
            };
            (0..r.inputs.len()).map(one).collect()
        }
        Diff::Custom { vjp, .. } => vjp(payload, r),
    }
}

/// Forward mode of one primitive.
fn push<P: Primitive>(
    payload: &P,
    op: &Op,
    inputs: &[Array],
    outputs: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    match payload.diff() {
        Diff::Zero => Ok(vec![None; outputs.len()]),
        Diff::Partials(partial) => {
            let terms = tangents
                .iter()
                .enumerate()
                .filter_map(|(operand, tangent)| Some((operand, tangent.as_ref()?)))
                .map(|(operand, t)| through(partial(payload, inputs, &outputs[0], operand)?, t))
                .collect::<Result<SmallVec<[Option<Array>; 2]>>>()?;
            Ok(vec![sum_of(terms)?])
        }
        Diff::Linear { linearity, operand: is_linear, .. } => {
            let changes = |operand: usize| is_linear(payload, operand);
            let tangent = match linearity {
                Linearity::Joint => jointly(op, inputs, tangents, changes)?,
                Linearity::Each => one_by_one(op, inputs, tangents, changes)?,
            };
            Ok(vec![tangent])
        }
        Diff::Custom { jvp, .. } => jvp(payload, inputs, outputs, tangents),
    }
}

/// The op on the tangents, zeros standing for those that are not there.
fn jointly(
    op: &Op,
    inputs: &[Array],
    tangents: &[Option<Array>],
    changes: impl Fn(usize) -> bool,
) -> Result<Option<Array>> {
    if !(0..inputs.len()).any(|i| changes(i) && tangents[i].is_some()) {
        return Ok(None);
    }
    let moved: SmallVec<[Array; 4]> = inputs
        .iter()
        .enumerate()
        .map(|(i, x)| match changes(i) {
            true => or_zeros(tangents[i].as_ref(), x.aval()),
            false => x.clone(),
        })
        .collect();
    let refs: SmallVec<[&Array; 4]> = moved.iter().collect();
    Ok(Some(Array::apply(op.clone(), &refs)?))
}

/// The sum of the op with one operand at a time replaced by its tangent.
fn one_by_one(
    op: &Op,
    inputs: &[Array],
    tangents: &[Option<Array>],
    changes: impl Fn(usize) -> bool,
) -> Result<Option<Array>> {
    let mut sum: Option<Array> = None;
    for (i, tangent) in tangents.iter().enumerate().filter(|(i, _)| changes(*i)) {
        let Some(tangent) = tangent else {
            continue;
        };
        let mut refs: SmallVec<[&Array; 4]> = inputs.iter().collect();
        refs[i] = tangent;
        let term = Array::apply(op.clone(), &refs)?;
        sum = Some(match sum {
            Some(sum) => add(&sum, &term)?,
            None => term,
        });
    }
    Ok(sum)
}

/// A tangent or cotangent through an elementwise derivative.
fn through(partial: Option<Partial>, change: &Array) -> Result<Option<Array>> {
    Ok(match partial {
        None => None,
        Some(Partial::One) => Some(change.clone()),
        Some(Partial::NegOne) => Some(neg(change)?),
        Some(Partial::Times(factor)) => Some(mul(change, &factor)?),
        Some(Partial::Over(divisor)) => Some(div(change, &divisor)?),
        Some(Partial::Where(mask)) => Some(masked(&mask, change)?),
    })
}

/// Something for each output of each node of a graph.
pub(crate) type Values<T> = Vec<Vec<T>>;

fn at<T>(values: &Values<T>, r: Ref) -> &T {
    &values[r.node as usize][r.output as usize]
}

fn gathered<T: Clone>(values: &Values<T>, refs: &[Ref]) -> SmallVec<[T; 4]> {
    refs.iter().map(|&r| at(values, r).clone()).collect()
}

/// Which input of the graph each node is, if it is one.
fn input_numbers(body: &Graph) -> Vec<Option<usize>> {
    let mut numbers = vec![None; body.nodes.len()];
    for (number, &node) in body.inputs.iter().enumerate() {
        numbers[node as usize] = Some(number);
    }
    numbers
}

/// A recorded primitive, as reverse mode meets it. `K` tells arrays apart.
pub(crate) struct TapeEntry<'a, K> {
    pub op: &'a Op,
    pub inputs: SmallVec<[(K, Array); 4]>,
    pub outputs: SmallVec<[(K, Array); 1]>,
    /// The inputs whose cotangents somebody will read.
    pub wanted: SmallVec<[bool; 4]>,
}

/// Takes cotangents back along `tape`, from its last entry to the first: `known` has those of the
/// results, and in the end those of what no entry made.
pub(crate) fn reverse<'a, K: Copy + Eq + Hash>(
    tape: impl Iterator<Item = TapeEntry<'a, K>>,
    known: &mut ById<K, Array>,
) -> Result<()> {
    for TapeEntry { op, inputs, outputs, wanted } in tape {
        let cotangents: SmallVec<[Option<Array>; 1]> =
            outputs.iter().map(|(key, _)| known.remove(key)).collect();
        if cotangents.iter().all(Option::is_none) {
            continue;
        }
        let (keys, inputs): (SmallVec<[K; 4]>, SmallVec<[Array; 4]>) = inputs.into_iter().unzip();
        let outputs: SmallVec<[Array; 1]> = outputs.into_iter().map(|(_, array)| array).collect();
        let given = vjp(op, &inputs, &outputs, &cotangents, &wanted)?;
        for (key, cotangent) in keys.into_iter().zip(given) {
            if let Some(cotangent) = cotangent {
                accumulate(known, key, cotangent)?;
            }
        }
    }
    Ok(())
}

/// Adds a cotangent to what has come to an array so far.
pub(crate) fn accumulate<K: Copy + Eq + Hash>(
    known: &mut ById<K, Array>,
    key: K,
    more: Array,
) -> Result<()> {
    let sum = match known.remove(&key) {
        Some(there) => match beside(&there, &more)? {
            Some(both) => both,
            None => add(&there, &more)?,
        },
        None => more,
    };
    known.insert(key, sum);
    Ok(())
}

/// Cotangents of a body's inputs from cotangents of its outputs.
pub(crate) fn vjp_body(
    body: &Graph,
    inputs: &[Array],
    cotangents: &[Option<Array>],
    wanted: &[bool],
) -> Result<Tangents> {
    cotangents_of(body, &body.replay_all(inputs)?, cotangents, wanted)
}

/// Cotangents of a body's inputs, where `values` are those of its nodes.
pub(crate) fn cotangents_of(
    body: &Graph,
    values: &Values<Array>,
    cotangents: &[Option<Array>],
    wanted: &[bool],
) -> Result<Tangents> {
    let needed = depends_on(body, wanted);
    let mut known: ById<Ref, Array> = ById::default();
    for (&r, cotangent) in body.outputs.iter().zip(cotangents) {
        if let Some(cotangent) = cotangent.clone().filter(|_| needed[r.node as usize]) {
            accumulate(&mut known, r, cotangent)?;
        }
    }
    let nodes = body.nodes.iter().enumerate().rev();
    let tape = nodes.filter(|(_, node)| !node.op.is_input()).map(|(index, node)| {
        let outputs = values[index].iter().zip(0..);
        let place = |output| Ref { node: index as u32, output };
        TapeEntry {
            op: &node.op,
            inputs: node.inputs.iter().map(|&r| (r, at(values, r).clone())).collect(),
            outputs: outputs.map(|(array, output)| (place(output), array.clone())).collect(),
            wanted: node.inputs.iter().map(|r| needed[r.node as usize]).collect(),
        }
    });
    reverse(tape, &mut known)?;
    Ok(body.inputs.iter().map(|&node| known.remove(&Ref { node, output: 0 })).collect())
}

/// Which nodes depend on a wanted input.
pub(crate) fn depends_on(body: &Graph, wanted: &[bool]) -> Vec<bool> {
    let mut needed = vec![false; body.nodes.len()];
    for (&node, &wanted) in body.inputs.iter().zip(wanted) {
        needed[node as usize] = wanted;
    }
    for (index, node) in body.nodes.iter().enumerate() {
        needed[index] |= node.inputs.iter().any(|r| needed[r.node as usize]);
    }
    needed
}

/// Tangents of a body's outputs from tangents of its inputs.
pub(crate) fn jvp_body(
    body: &Graph,
    inputs: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    tangents_of(body, &body.replay_all(inputs)?, tangents)
}

/// Tangents of a body's outputs, where `values` are those of its nodes.
pub(crate) fn tangents_of(
    body: &Graph,
    values: &Values<Array>,
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    let mut found: Values<Option<Array>> = Vec::with_capacity(body.nodes.len());
    for (index, (node, input)) in body.nodes.iter().zip(input_numbers(body)).enumerate() {
        let moved = match input {
            Some(input) => vec![tangents[input].clone()],
            None => {
                let operands = gathered(values, &node.inputs);
                let changes = gathered(&found, &node.inputs);
                jvp(&node.op, &operands, &values[index], &changes)?
            }
        };
        found.push(moved);
    }
    Ok(body.outputs.iter().map(|&r| at(&found, r).clone()).collect())
}

/// A body on inputs of which some carry a batch of `size` along axis 0.
pub(crate) fn vmap_body(body: &Graph, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
    let mut values: Values<Batched> = Vec::with_capacity(body.nodes.len());
    for (node, input) in body.nodes.iter().zip(input_numbers(body)) {
        let outputs = match input {
            Some(input) => vec![inputs[input].clone()],
            None => node.op.vmap(&gathered(&values, &node.inputs), size)?,
        };
        values.push(outputs);
    }
    Ok(body.outputs.iter().map(|&r| at(&values, r).clone()).collect())
}
