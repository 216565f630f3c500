//! Parts of arrays.

use cupola_core::ops::S;
use cupola_core::{Array, DType, ops};

use super::Made;
use crate::error::Fault;

/// The part of an axis from `start` up to but without `stop`.
pub fn part(x: &Array, axis: usize, start: usize, stop: usize) -> Made {
    let mut items = vec![S::range(..); x.rank()];
    items[axis] = S::Range { start: Some(start as isize), stop: Some(stop as isize), step: 1 };
    Ok(ops::index(x, &items)?)
}

/// An array of integers that the host knows.
pub fn known(values: &[i64]) -> Made {
    Ok(Array::from_slice(values, [values.len()])?)
}

/// The parts of an axis of these sizes.
pub fn parts(x: &Array, axis: usize, sizes: &[usize]) -> Result<Vec<Array>, Fault> {
    let total = sizes.iter().try_fold(0usize, |sum, &s| sum.checked_add(s));
    if total != Some(x.shape()[axis]) {
        return Err(Fault::invalid(format!(
            "parts {sizes:?} do not make axis {axis} of {}",
            x.shape()
        )));
    }
    let mut start = 0;
    let mut out = Vec::with_capacity(sizes.len());
    for &size in sizes {
        out.push(part(x, axis, start, start + size)?);
        start += size;
    }
    Ok(out)
}

/// The elements of an axis backwards up to a length, one for each place of another axis.
pub fn sequence_reversed(x: &Array, lengths: &Array, time: usize, batch: usize) -> Made {
    let along = |axis: usize, array: &Array| -> Made {
        let mut sizes = vec![1; x.rank()];
        sizes[axis] = x.shape()[axis];
        Ok(ops::reshape(array, sizes)?)
    };
    let places = along(time, &ops::arange_in(0, x.shape()[time], 1, DType::I64)?)?;
    let lengths = along(batch, &ops::astype(lengths, DType::I64)?)?;
    let backwards = ops::subtract(&ops::subtract(&lengths, &places)?, 1)?;
    let order = ops::where_(&ops::less(&places, &lengths)?, &backwards, &places)?;
    Ok(ops::take_along_axis(x, &order, time as isize)?)
}
