//! Elements by index.

use cupola_core::ops::ScatterMode;
use cupola_core::{Array, DType, Shape, ops};

use super::Made;
use super::movement::part;
use crate::error::Fault;

/// The places 0, 1, .. along an axis of `rank` ones.
pub fn steps(size: usize, axis: usize, rank: usize) -> Made {
    let mut sizes = vec![1; rank];
    sizes[axis] = size;
    Ok(ops::reshape(&ops::arange_in(0, size, 1, DType::I64)?, sizes)?)
}

/// Index arrays of the axes that tuples of indices go into, `batch` axes before them.
fn tuples(x: &Array, indices: &Array, batch: usize) -> Result<(Vec<Array>, usize), Fault> {
    let lead = indices.rank().checked_sub(1);
    let lead = lead.ok_or_else(|| Fault::invalid("the indices have no axes"))?;
    let count = indices.shape()[lead];
    if batch > lead || batch + count > x.rank() {
        return Err(Fault::invalid(format!("indices {} into {}", indices.shape(), x.shape())));
    }
    let mut arrays = Vec::with_capacity(batch + count);
    for axis in 0..batch {
        arrays.push(steps(indices.shape()[axis], axis, lead)?);
    }
    for at in 0..count {
        let one = part(indices, lead, at, at + 1)?;
        arrays.push(ops::squeeze(&one, lead)?);
    }
    Ok((arrays, count))
}

/// Elements along an axis, each by an index; along the other axes the indices may be fewer.
pub fn gather_elements(x: &Array, indices: &Array, axis: usize) -> Made {
    if indices.rank() != x.rank() {
        return Err(Fault::invalid(format!("indices {} for {}", indices.shape(), x.shape())));
    }
    let mut held = x.clone();
    for other in (0..x.rank()).filter(|&a| a != axis) {
        let size = indices.shape()[other];
        if size > x.shape()[other] {
            return Err(Fault::invalid(format!("indices {} for {}", indices.shape(), x.shape())));
        }
        held = part(&held, other, 0, size)?;
    }
    Ok(ops::take_along_axis(&held, indices, axis as isize)?)
}

/// Elements or slices by tuples of indices, of which the first `batch` axes are their own.
pub fn gather_nd(x: &Array, indices: &Array, batch: usize) -> Made {
    let (arrays, count) = tuples(x, indices, batch)?;
    let mut shape = indices.shape()[..indices.rank() - 1].to_vec();
    shape.extend(&x.shape()[batch + count..]);
    if Shape::from(&shape).size() == 0 {
        return Ok(ops::zeros(shape, x.dtype())?);
    }
    let mut sizes = x.shape().to_vec();
    sizes[..batch + count].fill(1);
    let places: Vec<(usize, &Array)> = arrays.iter().enumerate().collect();
    let found = match places.is_empty() {
        true => ops::broadcast_to(x, &shape)?,
        false => ops::gather(x, &places, sizes)?,
    };
    Ok(ops::reshape(&found, shape)?)
}

/// `x` with updates at tuples of indices.
pub fn scatter_nd(x: &Array, indices: &Array, updates: &Array, mode: ScatterMode) -> Made {
    let (arrays, count) = tuples(x, indices, 0)?;
    if arrays.is_empty() {
        return Ok(ops::reshape(updates, &x.shape()[..])?);
    }
    let mut shape = indices.shape()[..indices.rank() - 1].to_vec();
    shape.extend(std::iter::repeat_n(1, count));
    shape.extend(&x.shape()[count..]);
    let updates = ops::reshape(updates, shape)?;
    let places: Vec<(usize, &Array)> = arrays.iter().enumerate().collect();
    Ok(ops::scatter(x, &places, &updates, mode)?)
}

/// `x` with updates along an axis, each at an index.
pub fn scatter_elements(
    x: &Array,
    indices: &Array,
    updates: &Array,
    axis: usize,
    mode: ScatterMode,
) -> Made {
    if indices.rank() != x.rank() || indices.shape() != updates.shape() {
        return Err(Fault::invalid(format!(
            "indices {} and updates {} for {}",
            indices.shape(),
            updates.shape(),
            x.shape()
        )));
    }
    let mut arrays = Vec::with_capacity(x.rank());
    for other in 0..x.rank() {
        arrays.push(match other == axis {
            true => indices.clone(),
            false => steps(indices.shape()[other], other, x.rank())?,
        });
    }
    let mut shape = updates.shape().to_vec();
    shape.extend(std::iter::repeat_n(1, x.rank()));
    let updates = ops::reshape(updates, shape)?;
    let places: Vec<(usize, &Array)> = arrays.iter().enumerate().collect();
    Ok(ops::scatter(x, &places, &updates, mode)?)
}
