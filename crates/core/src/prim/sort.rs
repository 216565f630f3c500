//! The elements of an axis in order.

use super::batch::on_batch;
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, GatherAxis, Primitive, Reverse, Sizes,
    Tangents, expect_inputs, one, record,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Aval;

/// Sorts along an axis, ascending, stably, NaN last; or gives the order, as `uint32` indices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sort {
    /// The axis.
    pub axis: usize,
    /// Whether to give the indices instead of the elements.
    pub indices: bool,
    /// How much of the order is wanted.
    pub part: SortPart,
}

/// How much of the order a [`Sort`] gives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SortPart {
    /// All of it.
    Whole,
    /// The elements at some places of it, and no others.
    Range {
        /// The first place.
        start: usize,
        /// How many there are.
        count: usize,
    },
    /// All elements, where the one at this place of the order is there: none larger comes before it, and
    /// none smaller behind it. How the others lie is up to the device.
    Around(usize),
}

impl Sort {
    /// The whole order of an axis.
    pub const fn new(axis: usize) -> Sort {
        Sort { axis, indices: false, part: SortPart::Whole }
    }

    /// The places of the elements instead.
    pub const fn places(self) -> Sort {
        Sort { indices: true, ..self }
    }

    /// The NumPy name.
    pub const fn name(&self) -> &'static str {
        match (self.part, self.indices) {
            (SortPart::Whole, false) => "sort",
            (SortPart::Whole, true) => "argsort",
            (SortPart::Range { .. }, false) => "sort_range",
            (SortPart::Range { .. }, true) => "argsort_range",
            (SortPart::Around(_), false) => "partition",
            (SortPart::Around(_), true) => "argpartition",
        }
    }
}

impl Primitive for Sort {
    fn name(&self) -> &'static str {
        Sort::name(self)
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs(self.name(), inputs, 1)?;
        let x = inputs[0];
        if x.dtype.is_complex() {
            return Err(Error::dtype(self.name(), format!("does not take {x}")));
        }
        if self.axis >= x.shape.rank() {
            return Err(Error::shape(self.name(), format!("axis {} is not in {x}", self.axis)));
        }
        let dtype = if self.indices { DType::U32 } else { x.dtype };
        let size = x.shape[self.axis];
        let (fits, kept) = match self.part {
            SortPart::Whole => (true, size),
            SortPart::Range { start, count } => {
                (start.checked_add(count).is_some_and(|end| end <= size), count)
            }
            SortPart::Around(place) => (place < size, size),
        };
        if !fits {
            let detail = format!("{:?} is not in axis {} of {x}", self.part, self.axis);
            return Err(Error::shape(self.name(), detail));
        }
        one(Aval { shape: x.shape.with(self.axis, kept), dtype })
    }

    fn diff(&self) -> Diff<Self> {
        if self.indices { Diff::Zero } else { Diff::Custom { jvp, vjp } }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(Sort { axis: self.axis + 1, ..*self }, inputs, size)
    }

    /// Comparisons: n·log₂ n of n elements.
    fn operations(&self, inputs: &[&Aval], _: &[&Aval]) -> f64 {
        let length = inputs[0].shape[self.axis].max(1) as f64;
        inputs[0].shape.size() as f64 * length.log2()
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: match self.part {
                SortPart::Whole => Sizes::Inferred,
                SortPart::Range { .. } | SortPart::Around(_) => Sizes::Fixed,
            },
        }
    }
}

/// Where each sorted element comes from: a device gives elements and places in one order.
fn order(sort: &Sort, x: &Array) -> Result<Array> {
    Array::apply(sort.places(), &[x])
}

fn jvp(sort: &Sort, inputs: &[Array], _: &[Array], tangents: &[Option<Array>]) -> Result<Tangents> {
    let Some(tangent) = &tangents[0] else {
        return Ok(vec![None]);
    };
    let order = order(sort, &inputs[0])?;
    Ok(vec![Some(Array::apply(GatherAxis { axis: sort.axis }, &[tangent, &order])?)])
}

fn vjp(sort: &Sort, r: &Reverse<'_>) -> Result<Tangents> {
    let Some(cotangent) = &r.cotangents[0] else {
        return Ok(vec![None]);
    };
    let order = order(sort, &r.inputs[0])?;
    Ok(vec![Some(record::add_along(r.inputs[0].aval(), cotangent, &order, sort.axis)?)])
}
