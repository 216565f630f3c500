//! The transposes of movement: where a cotangent's elements go back to.

use super::Movement;
use crate::array::Array;
use crate::error::Result;
use crate::prim::record::{
    expand_dims, flatten, reshape, slice_axis, slice_update, sum, sum_all, unflatten, zeros,
};
use crate::shape::{Aval, Dims, Shape};

/// The cotangent of input `operand` from that of the output.
pub(super) fn transpose(
    movement: &Movement,
    inputs: &[Array],
    operand: usize,
    ct: &Array,
) -> Result<Option<Array>> {
    let input = &inputs[operand];
    let shape = &input.aval().shape;
    let apply = |movement: Movement, inputs: &[&Array]| Array::apply(movement, inputs);
    Ok(Some(match movement {
        Movement::Reshape(_) => reshape(ct, shape.clone())?,
        // The counterparts are primitives of their own, so that the gradient's graph too can be
        // inferred again at new shapes.
        Movement::Flatten { start, end } => unflatten(ct, *start, &shape[*start..=*end])?,
        Movement::Unflatten { axis, sizes } => match sizes.len() {
            0 => expand_dims(ct, &[*axis])?,
            count => flatten(ct, *axis, axis + count - 1)?,
        },
        Movement::Squeeze(axes) => expand_dims(ct, axes)?,
        Movement::ExpandDims(axes) => apply(Movement::Squeeze(axes.clone()), &[ct])?,
        Movement::Transpose(axes) => {
            let mut inverse = Dims::from_elem(0, axes.len());
            for (to, &from) in axes.iter().enumerate() {
                inverse[from] = to;
            }
            apply(Movement::Transpose(inverse), &[ct])?
        }
        Movement::Broadcast(_) => unbroadcast(ct, shape)?,
        Movement::Flip(axes) => apply(Movement::Flip(axes.clone()), &[ct])?,
        Movement::Slice { start, sizes, strides } => unslice(ct, shape, start, sizes, strides)?,
        Movement::SliceUpdate { start, strides } => {
            let update = &inputs[1];
            if operand == 0 {
                slice_update(ct, &zeros(update.aval()), start, strides)?
            } else {
                let (start, strides) = (start.clone(), strides.clone());
                apply(Movement::Slice { start, sizes: shape.0.clone(), strides }, &[ct])?
            }
        }
        Movement::Pad { low, high: _, interior } => {
            let x = &inputs[0];
            let strides: Dims = interior.iter().map(|i| i + 1).collect();
            if operand == 0 {
                let sizes = x.shape().0.clone();
                apply(Movement::Slice { start: low.clone(), sizes, strides }, &[ct])?
            } else {
                // What the padding covers; a difference of sums would cancel, and lose to ∞ − ∞.
                sum_all(&slice_update(ct, &zeros(x.aval()), low, &strides)?)?
            }
        }
        Movement::Concatenate { axis } => {
            let before = inputs[..operand].iter().map(|x| x.shape()[*axis]).sum();
            slice_axis(ct, *axis, before, shape[*axis])?
        }
    }))
}

/// The sum over every axis along which `shape` was repeated.
fn unbroadcast(ct: &Array, shape: &Shape) -> Result<Array> {
    let lead = ct.rank() - shape.rank();
    let repeated = |axis: &usize| {
        axis.checked_sub(lead).is_none_or(|own| shape[own] == 1 && ct.aval().shape[*axis] != 1)
    };
    let axes: Dims = (0..ct.rank()).filter(repeated).collect();
    let kept: Dims = axes.iter().filter_map(|a| a.checked_sub(lead)).collect();
    expand_dims(&sum(ct, &axes)?, &kept)
}

/// `ct` spread over zeros of `shape`, to where a slice took it from.
fn unslice(ct: &Array, shape: &Shape, start: &Dims, sizes: &Dims, strides: &Dims) -> Result<Array> {
    let high = (0..shape.rank())
        .map(|i| {
            let reach = sizes[i].checked_sub(1).map_or(0, |gaps| gaps * strides[i] + 1);
            shape[i] - start[i] - reach
        })
        .collect();
    let interior = strides.iter().map(|s| s - 1).collect();
    let nothing = zeros(&Aval { shape: Shape::scalar(), dtype: ct.dtype() });
    Array::apply(Movement::Pad { low: start.clone(), high, interior }, &[ct, &nothing])
}
