//! The same elements, elsewhere: views, and the copies that join or widen arrays.

mod batch;
mod beside;
mod transpose;
mod view;

use std::hash::Hash;

use super::key::Key;
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Linearity, Primitive, Sizes, expect_inputs,
    one, same_dtypes,
};
use crate::error::{Error, Result};
use crate::shape::{Aval, Dims, Shape};

pub(crate) use self::beside::beside;
pub(crate) use self::view::view_layout;

/// An operation that moves elements and computes nothing.
///
/// The starts of `Slice` and `SliceUpdate` are arguments of a plan: slices that differ only in where
/// they start share one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Movement {
    /// The elements, in row-major order, under another shape.
    Reshape(Shape),
    /// Axes `start..=end` merged into one.
    Flatten {
        /// The first axis.
        start: usize,
        /// The last axis, included.
        end: usize,
    },
    /// One axis split into several.
    Unflatten {
        /// The axis that is split.
        axis: usize,
        /// The sizes it is split into; their product is the axis' size.
        sizes: Dims,
    },
    /// Axes of size 1 removed; sorted.
    Squeeze(Dims),
    /// Axes of size 1 inserted, numbered as in the result; sorted.
    ExpandDims(Dims),
    /// Axis `i` of the result is axis `axes[i]` of the input.
    Transpose(Dims),
    /// Axes of size 1 and missing leading axes repeated to this shape.
    Broadcast(Shape),
    /// Order reversed along axes; sorted.
    Flip(Dims),
    /// `sizes[i]` elements from `start[i]`, `strides[i]` apart, along each axis.
    Slice {
        /// The first element along each axis.
        start: Dims,
        /// How many elements along each axis.
        sizes: Dims,
        /// The step along each axis, at least 1.
        strides: Dims,
    },
    /// Inputs: x, update. x with the elements that a slice of the update's shape would take
    /// replaced by the update.
    SliceUpdate {
        /// The first element along each axis.
        start: Dims,
        /// The step along each axis, at least 1.
        strides: Dims,
    },
    /// Inputs: x, value (a scalar array). x with `low` and `high` elements of the value before and
    /// after each axis and `interior` between neighbours.
    Pad {
        /// How many before, along each axis.
        low: Dims,
        /// How many after, along each axis.
        high: Dims,
        /// How many between neighbours, along each axis.
        interior: Dims,
    },
    /// The inputs, one after the other along an axis.
    Concatenate {
        /// The axis that grows.
        axis: usize,
    },
}

impl Movement {
    /// The name in errors and graphs.
    pub const fn name(&self) -> &'static str {
        match self {
            Movement::Reshape(_) => "reshape",
            Movement::Flatten { .. } => "flatten",
            Movement::Unflatten { .. } => "unflatten",
            Movement::Squeeze(_) => "squeeze",
            Movement::ExpandDims(_) => "expand_dims",
            Movement::Transpose(_) => "transpose",
            Movement::Broadcast(_) => "broadcast_to",
            Movement::Flip(_) => "flip",
            Movement::Slice { .. } => "slice",
            Movement::SliceUpdate { .. } => "slice_update",
            Movement::Pad { .. } => "pad",
            Movement::Concatenate { .. } => "concatenate",
        }
    }
}

impl Primitive for Movement {
    fn name(&self) -> &'static str {
        Movement::name(self)
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = self.name();
        match self {
            Movement::Concatenate { .. } if inputs.is_empty() => {
                return Err(Error::argument(op, "needs at least one array"));
            }
            Movement::Concatenate { .. } => {}
            Movement::SliceUpdate { .. } | Movement::Pad { .. } => expect_inputs(op, inputs, 2)?,
            Movement::Reshape(_)
            | Movement::Flatten { .. }
            | Movement::Unflatten { .. }
            | Movement::Squeeze(_)
            | Movement::ExpandDims(_)
            | Movement::Transpose(_)
            | Movement::Broadcast(_)
            | Movement::Flip(_)
            | Movement::Slice { .. } => expect_inputs(op, inputs, 1)?,
        }
        same_dtypes(op, inputs)?;
        let x = inputs[0];
        let shape = self.result_shape(inputs)?;
        one(Aval { shape, dtype: x.dtype })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Linear {
            linearity: Linearity::Joint,
            operand: |_, _| true,
            transpose: transpose::transpose,
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        batch::vmap(self, inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: match self {
                Movement::Slice { start, .. } | Movement::SliceUpdate { start, .. } => {
                    Argument::Starts(start)
                }
                Movement::Reshape(_)
                | Movement::Flatten { .. }
                | Movement::Unflatten { .. }
                | Movement::Squeeze(_)
                | Movement::ExpandDims(_)
                | Movement::Transpose(_)
                | Movement::Broadcast(_)
                | Movement::Flip(_)
                | Movement::Pad { .. }
                | Movement::Concatenate { .. } => Argument::None,
            },
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: match self {
                Movement::Flatten { .. }
                | Movement::Squeeze(_)
                | Movement::ExpandDims(_)
                | Movement::Transpose(_)
                | Movement::Flip(_)
                | Movement::Concatenate { .. } => Sizes::Inferred,
                Movement::Broadcast(_) => Sizes::Repeated,
                Movement::Reshape(_)
                | Movement::Unflatten { .. }
                | Movement::Slice { .. }
                | Movement::SliceUpdate { .. }
                | Movement::Pad { .. } => Sizes::Fixed,
            },
        }
    }

    fn write_key(&self, key: &mut Key) {
        std::mem::discriminant(self).hash(key);
        match self {
            Movement::Reshape(shape) | Movement::Broadcast(shape) => shape.hash(key),
            Movement::Flatten { start, end } => (start, end).hash(key),
            Movement::Unflatten { axis, sizes } => (axis, sizes).hash(key),
            Movement::Squeeze(axes)
            | Movement::ExpandDims(axes)
            | Movement::Transpose(axes)
            | Movement::Flip(axes) => axes.hash(key),
            Movement::Slice { start: _, sizes, strides } => (sizes, strides).hash(key),
            Movement::SliceUpdate { start: _, strides } => strides.hash(key),
            Movement::Pad { low, high, interior } => (low, high, interior).hash(key),
            Movement::Concatenate { axis } => axis.hash(key),
        }
    }
}

impl Movement {
    fn result_shape(&self, inputs: &[&Aval]) -> Result<Shape> {
        let op = self.name();
        let x = inputs[0];
        let rank = x.shape.rank();
        let bad = |detail: String| Error::shape(op, format!("{detail} (input {x})"));
        let same_rank = |dims: &Dims, what: &str| {
            if dims.len() == rank {
                return Ok(());
            }
            Err(bad(format!("{what} {dims:?} has {} entries for {rank} axes", dims.len())))
        };
        Ok(match self {
            Movement::Reshape(shape) => {
                if shape.size() != x.shape.size() {
                    return Err(bad(format!("cannot reshape to {shape}")));
                }
                shape.clone()
            }
            Movement::Flatten { start, end } => {
                if start > end || *end >= rank {
                    return Err(bad(format!("axes {start} to {end} are not there")));
                }
                let mut dims = Dims::from_slice(&x.shape[..*start]);
                dims.push(x.shape[*start..=*end].iter().product());
                dims.extend_from_slice(&x.shape[end + 1..]);
                Shape(dims)
            }
            Movement::Unflatten { axis, sizes } => {
                if *axis >= rank || Shape(sizes.clone()).size() != x.shape[*axis] {
                    return Err(bad(format!("cannot split axis {axis} into {sizes:?}")));
                }
                let mut dims = Dims::from_slice(&x.shape[..*axis]);
                dims.extend_from_slice(sizes);
                dims.extend_from_slice(&x.shape[axis + 1..]);
                Shape(dims)
            }
            Movement::Squeeze(axes) => {
                if axes.iter().any(|&a| a >= rank || x.shape[a] != 1) {
                    return Err(bad(format!("axes {axes:?} are not all of size 1")));
                }
                x.shape.without(axes)
            }
            Movement::ExpandDims(axes) => {
                let new_rank = rank + axes.len();
                if axes.iter().any(|&a| a >= new_rank) {
                    return Err(bad(format!("axes {axes:?} are out of range")));
                }
                let mut old = x.shape.iter();
                let size = |a| if axes.contains(&a) { 1 } else { *old.next().unwrap_or(&1) };
                (0..new_rank).map(size).collect()
            }
            Movement::Transpose(axes) => {
                let mut seen = axes.clone();
                seen.sort_unstable();
                if !seen.iter().copied().eq(0..rank) {
                    return Err(bad(format!("{axes:?} is not a permutation of the axes")));
                }
                axes.iter().map(|&a| x.shape[a]).collect()
            }
            Movement::Broadcast(shape) => {
                let fits = shape.rank() >= rank
                    && x.shape
                        .iter()
                        .rev()
                        .zip(shape.iter().rev())
                        .all(|(&have, &want)| have == want || have == 1);
                if !fits {
                    return Err(bad(format!("cannot broadcast to {shape}")));
                }
                shape.clone()
            }
            Movement::Flip(axes) => {
                if axes.iter().any(|&a| a >= rank) {
                    return Err(bad(format!("axes {axes:?} are out of range")));
                }
                x.shape.clone()
            }
            Movement::Slice { start, sizes, strides } => {
                same_rank(start, "start")?;
                same_rank(sizes, "sizes")?;
                same_rank(strides, "strides")?;
                check_slice(op, x, start, sizes, strides)?;
                Shape(sizes.clone())
            }
            Movement::SliceUpdate { start, strides } => {
                same_rank(start, "start")?;
                same_rank(strides, "strides")?;
                same_rank(&inputs[1].shape.0, "update")?;
                check_slice(op, x, start, &inputs[1].shape.0, strides)?;
                x.shape.clone()
            }
            Movement::Pad { low, high, interior } => {
                same_rank(low, "low")?;
                same_rank(high, "high")?;
                same_rank(interior, "interior")?;
                if inputs[1].shape.rank() != 0 {
                    return Err(bad(format!("the padding value {} is not a scalar", inputs[1])));
                }
                (0..rank)
                    .map(|i| {
                        let size = x.shape[i];
                        let between = size.saturating_sub(1).saturating_mul(interior[i]);
                        low[i].saturating_add(high[i]).saturating_add(size).saturating_add(between)
                    })
                    .collect()
            }
            Movement::Concatenate { axis } => {
                let fits = |y: &&&Aval| {
                    y.shape.rank() == rank
                        && (0..rank).all(|i| i == *axis || y.shape[i] == x.shape[i])
                };
                if *axis >= rank || !inputs.iter().all(|y| fits(&y)) {
                    return Err(Error::shape(
                        op,
                        format!("inputs {inputs:?} do not join along axis {axis}"),
                    ));
                }
                let sizes = inputs.iter().map(|y| y.shape[*axis]);
                x.shape.with(*axis, sizes.fold(0, usize::saturating_add))
            }
        })
    }
}

/// Checks that a slice stays inside `x`.
fn check_slice(
    op: &'static str,
    x: &Aval,
    start: &[usize],
    sizes: &[usize],
    strides: &[usize],
) -> Result<()> {
    for axis in 0..x.shape.rank() {
        let (first, count, step) = (start[axis], sizes[axis], strides[axis]);
        let last = first.checked_add(count.saturating_sub(1).saturating_mul(step));
        let fits = step > 0
            && if count == 0 {
                first <= x.shape[axis]
            } else {
                last.is_some_and(|l| l < x.shape[axis])
            };
        if !fits {
            return Err(Error::shape(
                op,
                format!(
                    "{count} elements from {first}, {step} apart, leave axis {axis} (input {x})"
                ),
            ));
        }
    }
    Ok(())
}
