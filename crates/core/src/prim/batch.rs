//! What batching rules share.

use smallvec::SmallVec;

use super::{Batched, Op, record};
use crate::array::Array;
use crate::error::Result;
use crate::shape::{Dims, Shape};

impl Batched {
    /// An array whose axis 0 is the batch.
    pub fn each(array: Array) -> Self {
        Batched { array, batched: true }
    }

    /// An array that every element of the batch shares.
    pub fn shared(array: Array) -> Self {
        Batched { array, batched: false }
    }

    /// The array with a batch axis, repeated along it if it is shared.
    pub fn with_batch(&self, size: usize) -> Result<Array> {
        if self.batched {
            return Ok(self.array.clone());
        }
        record::broadcast(&self.array, &prepend(size, &self.array.aval().shape))
    }

    /// The shape of one element of the batch.
    pub fn shape(&self) -> &[usize] {
        &self.array.aval().shape[usize::from(self.batched)..]
    }
}

/// Every input with a batch axis.
pub(crate) fn with_batch(inputs: &[Batched], size: usize) -> Result<SmallVec<[Array; 4]>> {
    inputs.iter().map(|i| i.with_batch(size)).collect()
}

/// Records a one-output op on inputs that all carry the batch; its output carries it too.
pub(crate) fn on_batch(op: impl Into<Op>, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
    let arrays = with_batch(inputs, size)?;
    let arrays: SmallVec<[&Array; 4]> = arrays.iter().collect();
    Ok(vec![Batched::each(Array::apply(op, &arrays)?)])
}

/// Merges the batch of every input into its first axis, records the op, and splits the batch off
/// its output again.
pub(crate) fn on_merged(
    op: impl Into<Op>,
    inputs: &[Batched],
    size: usize,
) -> Result<Vec<Batched>> {
    let merged = with_batch(inputs, size)?
        .iter()
        .map(|a| record::flatten(a, 0, 1))
        .collect::<Result<SmallVec<[Array; 4]>>>()?;
    let arrays: SmallVec<[&Array; 4]> = merged.iter().collect();
    let output = Array::apply(op, &arrays)?;
    let lead = inputs[0].shape()[0];
    Ok(vec![Batched::each(record::unflatten(&output, 0, &[size, lead])?)])
}

/// Axes as they are numbered behind a batch axis.
pub(crate) fn behind(axes: &[usize]) -> Dims {
    axes.iter().map(|a| a + 1).collect()
}

/// `dims` with `first` in front.
pub(crate) fn prepend(first: usize, dims: &[usize]) -> Shape {
    std::iter::once(first).chain(dims.iter().copied()).collect()
}
