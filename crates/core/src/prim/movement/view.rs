//! Movement that needs no copy.

use super::Movement;
use crate::shape::{Layout, Shape, reshape_strides};

/// The layout of `movement`'s result over the buffer of its input, if no copy is needed.
pub(crate) fn view_layout(
    movement: &Movement,
    shape: &Shape,
    layout: &Layout,
    output: &Shape,
) -> Option<Layout> {
    let strides = &layout.strides;
    let mut offset = layout.offset;
    let strides = match movement {
        Movement::Reshape(_)
        | Movement::Flatten { .. }
        | Movement::Unflatten { .. }
        | Movement::Squeeze(_)
        | Movement::ExpandDims(_) => reshape_strides(shape, strides, output)?,
        Movement::Transpose(axes) => axes.iter().map(|&a| strides[a]).collect(),
        Movement::Broadcast(to) => {
            let lead = to.rank() - shape.rank();
            (0..to.rank())
                .map(|i| match i.checked_sub(lead) {
                    Some(axis) if shape[axis] == to[i] => strides[axis],
                    _ => 0,
                })
                .collect()
        }
        Movement::Flip(axes) => {
            let mut flipped = strides.clone();
            for &axis in axes {
                offset += strides[axis] * (shape[axis] as isize - 1).max(0);
                flipped[axis] = -strides[axis];
            }
            flipped
        }
        Movement::Slice { start, strides: steps, .. } => {
            let mut out = strides.clone();
            for axis in 0..shape.rank() {
                offset += strides[axis] * start[axis] as isize;
                out[axis] = strides[axis] * steps[axis] as isize;
            }
            out
        }
        Movement::SliceUpdate { .. } | Movement::Pad { .. } | Movement::Concatenate { .. } => {
            return None;
        }
    };
    Some(Layout { strides, offset })
}
