//! Movement over a batch: the same on the axes behind it.

use super::Movement;
use crate::array::Array;
use crate::error::Result;
use crate::prim::Batched;
use crate::prim::batch::{behind, on_batch, prepend};
use crate::prim::record::{broadcast, expand_dims, like, select, zeros};
use crate::shape::{Aval, Dims, Shape};

pub(super) fn vmap(movement: &Movement, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
    let rank = inputs[0].shape().len();
    let shifted = match movement {
        Movement::Reshape(shape) => Movement::Reshape(prepend(size, shape)),
        Movement::Flatten { start, end } => Movement::Flatten { start: start + 1, end: end + 1 },
        Movement::Unflatten { axis, sizes } => {
            Movement::Unflatten { axis: axis + 1, sizes: sizes.clone() }
        }
        Movement::Squeeze(axes) => Movement::Squeeze(behind(axes)),
        Movement::ExpandDims(axes) => Movement::ExpandDims(behind(axes)),
        Movement::Transpose(axes) => Movement::Transpose(prepend(0, &behind(axes)).0),
        Movement::Broadcast(shape) => {
            // New axes come in front of the input's own, which is behind the batch.
            let new: Dims = (1..=shape.rank() - rank).collect();
            let lined_up = expand_dims(&inputs[0].array, &new)?;
            return Ok(vec![Batched::each(broadcast(&lined_up, &prepend(size, shape))?)]);
        }
        Movement::Flip(axes) => Movement::Flip(behind(axes)),
        Movement::Slice { start, sizes, strides } => Movement::Slice {
            start: prepend(0, start).0,
            sizes: prepend(size, sizes).0,
            strides: prepend(1, strides).0,
        },
        Movement::SliceUpdate { start, strides } => {
            Movement::SliceUpdate { start: prepend(0, start).0, strides: prepend(1, strides).0 }
        }
        Movement::Pad { low, high, interior } => {
            let pad = Movement::Pad {
                low: prepend(0, low).0,
                high: prepend(0, high).0,
                interior: prepend(0, interior).0,
            };
            return pad_batch(&pad, movement, inputs, size);
        }
        Movement::Concatenate { axis } => Movement::Concatenate { axis: axis + 1 },
    };
    on_batch(shifted, inputs, size)
}

/// A value for each element of the batch cannot be a padding value: it is put in by a mask.
fn pad_batch(
    pad: &Movement,
    single: &Movement,
    inputs: &[Batched],
    size: usize,
) -> Result<Vec<Batched>> {
    let [x, value] = [&inputs[0], &inputs[1]];
    if !value.batched {
        let padded = Array::apply(pad.clone(), &[&x.array, &value.array])?;
        return Ok(vec![Batched::each(padded)]);
    }
    let scalar = Aval { shape: Shape::scalar(), dtype: value.array.dtype() };
    let padded = Array::apply(pad.clone(), &[&x.with_batch(size)?, &zeros(&scalar)])?;
    let shape = padded.shape();
    let inside = mask(single, x.shape(), shape)?;
    let axes: Dims = (1..shape.rank()).collect();
    let value = broadcast(&expand_dims(&value.array, &axes)?, shape)?;
    Ok(vec![Batched::each(select(&inside, &padded, &value)?)])
}

/// Where the elements of a padded array of `shape` are its own, over the batch.
fn mask(single: &Movement, shape: &[usize], padded: &Shape) -> Result<Array> {
    let aval = |shape: Shape| Aval { shape, dtype: crate::dtype::DType::Bool };
    let own = like(&zeros(&aval(Shape::from(shape))), 1.0);
    let inside = Array::apply(single.clone(), &[&own, &zeros(&aval(Shape::scalar()))])?;
    broadcast(&inside, padded)
}
