//! Reading and writing at computed places.
//!
//! Index arrays are of any integer dtype. An index outside its axis is an error when the op runs;
//! [`crate::ops`] wraps negative indices before it records.

mod batch;
mod diff;

use super::batch::on_batch;
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Linearity, Primitive, Sizes, expect_inputs,
    one, same_dtypes,
};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Aval, Dims, Shape};

/// Inputs: x, then one index array per entry of `axes`, all of one shape I. Output: I followed by
/// `sizes`: for each index the slice of x that starts at the indices along `axes` and at 0
/// along the other axes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Gather {
    /// The axes of x that are indexed.
    pub axes: Dims,
    /// How many elements each slice takes along every axis of x.
    pub sizes: Dims,
}

/// How a scatter joins an update with what is there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScatterMode {
    /// Replaces it; where indices repeat, the last update wins.
    Set,
    /// Adds to it.
    Add,
    /// Multiplies it.
    Prod,
    /// Keeps the larger; NaN if either is NaN.
    Max,
    /// Keeps the smaller; NaN if either is NaN.
    Min,
}

/// Inputs: x, updates, then one index array per entry of `axes`, all of one shape I. The updates
/// have shape I followed by a slice shape of x's rank. Output: x with each slice joined in at its
/// place, in the order of I.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scatter {
    /// How updates join.
    pub mode: ScatterMode,
    /// The axes of x that are indexed.
    pub axes: Dims,
}

/// Inputs: x, indices of x's rank that have x's sizes but along `axis`. Output, of the indices'
/// shape: x's element at the index along `axis` and the same place along the other axes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GatherAxis {
    /// The axis that is indexed.
    pub axis: usize,
}

/// Inputs: x, updates, indices; the last two of one shape that has x's sizes but along `axis`.
/// Output: x with each update joined in at its index along `axis`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ScatterAxis {
    /// How updates join.
    pub mode: ScatterMode,
    /// The axis that is indexed.
    pub axis: usize,
}

/// Checks index arrays: integers of one shape, one per axis; gives that shape.
fn index_shape<'a>(op: &'static str, axes: &[usize], indices: &[&'a Aval]) -> Result<&'a [usize]> {
    if indices.len() != axes.len() {
        let detail = format!("{} index arrays for {} axes", indices.len(), axes.len());
        return Err(Error::argument(op, detail));
    }
    if let Some(bad) = indices.iter().find(|i| !i.dtype.is_integer()) {
        return Err(Error::dtype(op, format!("indices are integers, not {bad}")));
    }
    super::same_shapes(op, indices)?;
    Ok(indices.first().map_or(&[], |i| &i.shape[..]))
}

fn check_axes(op: &'static str, x: &Aval, axes: &[usize]) -> Result<()> {
    let unique = (1..axes.len()).all(|i| !axes[..i].contains(&axes[i]));
    if unique && axes.iter().all(|&a| a < x.shape.rank()) {
        return Ok(());
    }
    Err(Error::argument(op, format!("axes {axes:?} do not fit {x}")))
}

impl ScatterMode {
    /// Whether the mode joins elements of `dtype`.
    pub fn takes(self, dtype: DType) -> bool {
        match self {
            ScatterMode::Set => true,
            ScatterMode::Add | ScatterMode::Prod => dtype != DType::Bool,
            ScatterMode::Max | ScatterMode::Min => !dtype.is_complex(),
        }
    }
}

/// Of each index array, from input `first` on: below what its elements have to be for slices of
/// `sizes` to lie in `x`.
fn bounds(
    x: &Aval,
    axes: &[usize],
    sizes: &[usize],
    first: usize,
) -> SmallVec<[(usize, usize); 2]> {
    let bound = |&axis: &usize| (x.shape[axis] + 1).saturating_sub(sizes[axis]);
    axes.iter().map(bound).enumerate().map(|(i, bound)| (first + i, bound)).collect()
}

impl Gather {
    /// [`super::KernelOp::index_bounds`].
    pub(super) fn index_bounds(&self, inputs: &[&Aval]) -> SmallVec<[(usize, usize); 2]> {
        bounds(inputs[0], &self.axes, &self.sizes, 1)
    }
}

impl Scatter {
    /// [`super::KernelOp::index_bounds`].
    pub(super) fn index_bounds(&self, inputs: &[&Aval]) -> SmallVec<[(usize, usize); 2]> {
        let (x, updates) = (inputs[0], inputs[1]);
        let lead = updates.shape.rank() - x.shape.rank();
        bounds(x, &self.axes, &updates.shape[lead..], 2)
    }
}

impl Primitive for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = "gather";
        let Some((x, indices)) = inputs.split_first() else {
            return expect_inputs(op, inputs, 1).map(|()| Avals::default());
        };
        check_axes(op, x, &self.axes)?;
        let lead = index_shape(op, &self.axes, indices)?;
        let fits = self.sizes.len() == x.shape.rank()
            && self.sizes.iter().zip(x.shape.iter()).all(|(s, d)| s <= d);
        if !fits {
            return Err(Error::shape(op, format!("slices {:?} do not fit {x}", self.sizes)));
        }
        let shape: Shape = lead.iter().chain(self.sizes.iter()).copied().collect();
        one(Aval { shape, dtype: x.dtype })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Linear {
            linearity: Linearity::Joint,
            operand: |_, operand| operand == 0,
            transpose: |gather, inputs, _, ct| {
                let scatter = Scatter { mode: ScatterMode::Add, axes: gather.axes.clone() };
                Ok(Some(diff::into_zeros(scatter, inputs[0].aval(), ct, &inputs[1..])?))
            },
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        batch::gather(self, inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: Sizes::Fixed,
        }
    }
}

impl Primitive for Scatter {
    fn name(&self) -> &'static str {
        "scatter"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = "scatter";
        if inputs.len() < 2 {
            return Err(Error::argument(op, "takes x, updates and indices"));
        }
        let (x, updates) = (inputs[0], inputs[1]);
        check_axes(op, x, &self.axes)?;
        same_dtypes(op, &inputs[..2])?;
        let lead = index_shape(op, &self.axes, &inputs[2..])?;
        let rank = x.shape.rank();
        let fits = updates.shape.rank() == lead.len() + rank
            && updates.shape[..lead.len()] == *lead
            && updates.shape[lead.len()..].iter().zip(x.shape.iter()).all(|(s, d)| s <= d);
        if !fits {
            return Err(Error::shape(
                op,
                format!("updates {updates} do not fit {x} at indices of shape {lead:?}"),
            ));
        }
        if !self.mode.takes(x.dtype) {
            return Err(Error::dtype(op, format!("{:?} does not take {x}", self.mode)));
        }
        one(x.clone())
    }

    fn diff(&self) -> Diff<Self> {
        diff::scatter(self.mode)
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        batch::scatter(self, inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: Sizes::Inferred,
        }
    }
}

/// Checks x against indices along one axis.
fn check_along(op: &'static str, axis: usize, x: &Aval, indices: &Aval) -> Result<()> {
    if !indices.dtype.is_integer() {
        return Err(Error::dtype(op, format!("indices are integers, not {indices}")));
    }
    let rank = x.shape.rank();
    let fits = indices.shape.rank() == rank
        && axis < rank
        && (0..rank).all(|i| i == axis || x.shape[i] == indices.shape[i]);
    if fits {
        return Ok(());
    }
    Err(Error::shape(op, format!("indices {indices} do not fit {x} along axis {axis}")))
}

impl Primitive for GatherAxis {
    fn name(&self) -> &'static str {
        "take_along_axis"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = "take_along_axis";
        expect_inputs(op, inputs, 2)?;
        check_along(op, self.axis, inputs[0], inputs[1])?;
        one(Aval { shape: inputs[1].shape.clone(), dtype: inputs[0].dtype })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Linear {
            linearity: Linearity::Joint,
            operand: |_, operand| operand == 0,
            transpose: |gather, inputs, _, ct| {
                if inputs[1].aval().shape[gather.axis] == 1 {
                    return diff::at_one_place(gather, inputs[0].aval(), ct, &inputs[1]).map(Some);
                }
                let scatter = ScatterAxis { mode: ScatterMode::Add, axis: gather.axis };
                Ok(Some(diff::into_zeros(scatter, inputs[0].aval(), ct, &inputs[1..])?))
            },
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(GatherAxis { axis: self.axis + 1 }, inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: Sizes::Inferred,
        }
    }
}

impl Primitive for ScatterAxis {
    fn name(&self) -> &'static str {
        "put_along_axis"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = "put_along_axis";
        expect_inputs(op, inputs, 3)?;
        check_along(op, self.axis, inputs[0], inputs[2])?;
        same_dtypes(op, &inputs[..2])?;
        if inputs[1].shape != inputs[2].shape {
            return Err(Error::shape(
                op,
                format!("updates {} and indices {} differ in shape", inputs[1], inputs[2]),
            ));
        }
        if !self.mode.takes(inputs[0].dtype) {
            return Err(Error::dtype(op, format!("{:?} does not take {}", self.mode, inputs[0])));
        }
        one(inputs[0].clone())
    }

    fn diff(&self) -> Diff<Self> {
        diff::scatter(self.mode)
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(ScatterAxis { mode: self.mode, axis: self.axis + 1 }, inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: Sizes::Inferred,
        }
    }
}
