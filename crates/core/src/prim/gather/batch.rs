//! Gather and scatter over a batch.
//!
//! Where the indices are shared, the batch is one more axis that slices take whole; where they
//! carry it, the batch is one more indexed axis, and a counter its index.

use smallvec::SmallVec;

use super::{Gather, Scatter};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::prim::batch::{prepend, with_batch};
use crate::prim::record::{expand_dims, iota, move_axis, squeeze};
use crate::prim::{Batched, Op};
use crate::shape::{Dims, Shape};

/// Records an op on x, what comes with it and indices.
fn apply(op: impl Into<Op>, lead: &[&Array], indices: &[Array]) -> Result<Array> {
    let inputs: SmallVec<[&Array; 4]> = lead.iter().copied().chain(indices).collect();
    Array::apply(op, &inputs)
}

/// How many axes the index arrays have, without a batch.
fn index_rank(indices: &[Batched]) -> usize {
    indices.first().map_or(0, |i| i.shape().len())
}

fn any_batched(indices: &[Batched]) -> bool {
    indices.iter().any(|i| i.batched)
}

fn shared(indices: &[Batched]) -> SmallVec<[Array; 4]> {
    indices.iter().map(|i| i.array.clone()).collect()
}

/// The indices with the batch, after a counter that indexes the batch itself.
fn counted(indices: &[Batched], size: usize) -> Result<SmallVec<[Array; 4]>> {
    let own = with_batch(indices, size)?;
    let shape: Shape = prepend(size, indices[0].shape());
    let mut all = SmallVec::from_iter([iota(shape, DType::U32, 0)?]);
    all.extend(own);
    Ok(all)
}

/// The indexed axes behind the batch, which comes first where it is indexed too.
fn indexed(axes: &[usize], batch: bool) -> Dims {
    let own = axes.iter().map(|a| a + 1);
    if batch { std::iter::once(0).chain(own).collect() } else { own.collect() }
}

pub(super) fn gather(gather: &Gather, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
    let (x, indices) = (&inputs[0], &inputs[1..]);
    let rank = index_rank(indices);
    let output = if !any_batched(indices) {
        let whole =
            Gather { axes: indexed(&gather.axes, false), sizes: prepend(size, &gather.sizes).0 };
        move_axis(&apply(whole, &[&x.array], &shared(indices))?, rank, 0)?
    } else if !x.batched {
        apply(gather.clone(), &[&x.array], &with_batch(indices, size)?)?
    } else {
        let each = Gather { axes: indexed(&gather.axes, true), sizes: prepend(1, &gather.sizes).0 };
        squeeze(&apply(each, &[&x.array], &counted(indices, size)?)?, &[rank + 1])?
    };
    Ok(vec![Batched::each(output)])
}

pub(super) fn scatter(scatter: &Scatter, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
    let x = inputs[0].with_batch(size)?;
    let updates = inputs[1].with_batch(size)?;
    let indices = &inputs[2..];
    let rank = index_rank(indices);
    let batch = any_batched(indices);
    let op = Scatter { mode: scatter.mode, axes: indexed(&scatter.axes, batch) };
    let output = if batch {
        let updates = expand_dims(&updates, &[rank + 1])?;
        apply(op, &[&x, &updates], &counted(indices, size)?)?
    } else {
        apply(op, &[&x, &move_axis(&updates, 0, rank)?], &shared(indices))?
    };
    Ok(vec![Batched::each(output)])
}
