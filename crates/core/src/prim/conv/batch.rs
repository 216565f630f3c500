//! Convolutions over a batch.
//!
//! An operand pair of which only the one with images carries the batch has more images. Any other
//! batch becomes channels: on both sides it is that many times the groups, on one side it is more
//! channels within each group.

use super::{Conv, ConvRole};
use crate::array::Array;
use crate::error::Result;
use crate::prim::Batched;
use crate::prim::record::{flatten, move_axis, unflatten};

pub(super) fn vmap(conv: &Conv, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
    let (a, b) = (&inputs[0], &inputs[1]);
    let output = match (a.batched, b.batched) {
        (true, false) if conv.role != ConvRole::WeightGrad => {
            let images = flatten(&a.array, 0, 1)?;
            let output = Array::apply(conv.clone(), &[&images, &b.array])?;
            unflatten(&output, 0, &[size, a.shape()[0]])?
        }
        (true, true) => both(conv, &a.array, &b.array, size)?,
        (true, false) => one(conv, &a.array, 0, &b.array, size)?,
        (false, _) => one(conv, &b.array, 1, &a.array, size)?,
    };
    Ok(vec![Batched::each(output)])
}

/// The batch as the outer part of the channels: `[B, N, .., C]` to `[N, .., B·C]`.
fn outer_channels(x: &Array) -> Result<Array> {
    let last = x.rank() - 2;
    flatten(&move_axis(x, 0, last)?, last, last + 1)
}

/// Undoes [`outer_channels`].
fn split_outer_channels(x: &Array, size: usize) -> Result<Array> {
    let last = x.rank() - 1;
    let channels = x.shape()[last].checked_div(size).unwrap_or(0);
    move_axis(&unflatten(x, last, &[size, channels])?, last, 0)
}

/// Both operands carry the batch: its elements are groups of their own.
fn both(conv: &Conv, a: &Array, b: &Array, size: usize) -> Result<Array> {
    let wide = Conv { groups: conv.groups * size, ..conv.clone() };
    match conv.role {
        ConvRole::Forward | ConvRole::InputGrad => {
            let weight = flatten(b, 0, 1)?;
            let output = Array::apply(wide, &[&outer_channels(a)?, &weight])?;
            split_outer_channels(&output, size)
        }
        ConvRole::WeightGrad => {
            let output = Array::apply(wide, &[&outer_channels(a)?, &outer_channels(b)?])?;
            let channels = b.shape()[b.rank() - 1];
            unflatten(&output, 0, &[size, channels])
        }
    }
}

/// Operand `place` carries the batch, the other is shared: within each group the batch is more of
/// the channels that only `place` and the output have.
fn one(conv: &Conv, x: &Array, place: usize, other: &Array, size: usize) -> Result<Array> {
    let groups = conv.groups;
    let wide = match conv.role {
        ConvRole::Forward => {
            let grouped = split_axis(x, 1, groups)?;
            flatten(&move_axis(&grouped, 0, 1)?, 0, 2)?
        }
        ConvRole::InputGrad => outer_channels(x)?,
        ConvRole::WeightGrad => inner_channels(x, groups)?,
    };
    let operands = if place == 0 { [&wide, other] } else { [other, &wide] };
    let output = Array::apply(conv.clone(), &operands)?;
    match (conv.role, place) {
        (ConvRole::Forward | ConvRole::InputGrad, _) => split_inner_channels(&output, groups, size),
        (ConvRole::WeightGrad, 0) => split_outer_channels(&output, size),
        (ConvRole::WeightGrad, _) => {
            let channels = x.shape()[x.rank() - 1] / groups;
            let split = unflatten(&output, 0, &[groups, size, channels])?;
            flatten(&move_axis(&split, 1, 0)?, 1, 2)
        }
    }
}

/// Channels split into groups and what is in each.
fn split_axis(x: &Array, axis: usize, groups: usize) -> Result<Array> {
    unflatten(x, axis, &[groups, x.shape()[axis] / groups])
}

/// The batch as the outer part of each group: `[B, N, .., G·C]` to `[N, .., G·B·C]`.
fn inner_channels(x: &Array, groups: usize) -> Result<Array> {
    let last = x.rank() - 1;
    let grouped = split_axis(x, last, groups)?;
    flatten(&move_axis(&grouped, 0, last)?, last - 1, last + 1)
}

/// Undoes [`inner_channels`].
fn split_inner_channels(x: &Array, groups: usize, size: usize) -> Result<Array> {
    let last = x.rank() - 1;
    let channels = x.shape()[last].checked_div(groups * size).unwrap_or(0);
    let split = unflatten(x, last, &[groups, size, channels])?;
    flatten(&move_axis(&split, last + 1, 0)?, last + 1, last + 2)
}
