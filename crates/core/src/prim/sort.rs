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
}

impl Sort {
    /// The NumPy name.
    pub const fn name(&self) -> &'static str {
        if self.indices { "argsort" } else { "sort" }
    }
}

impl Primitive for Sort {
    fn name(&self) -> &'static str {
        Sort::name(self)
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs(self.name(), inputs, 1)?;
        let x = inputs[0];
        if x.dtype == DType::C64 {
            return Err(Error::dtype(self.name(), format!("does not take {x}")));
        }
        if self.axis >= x.shape.rank() {
            return Err(Error::shape(self.name(), format!("axis {} is not in {x}", self.axis)));
        }
        let dtype = if self.indices { DType::U32 } else { x.dtype };
        one(Aval { shape: x.shape.clone(), dtype })
    }

    fn diff(&self) -> Diff<Self> {
        if self.indices { Diff::Zero } else { Diff::Custom { jvp, vjp } }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(Sort { axis: self.axis + 1, ..*self }, inputs, size)
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

/// Where each sorted element comes from. Sorting is stable, so this is the same order.
fn order(sort: &Sort, x: &Array) -> Result<Array> {
    Array::apply(Sort { indices: true, ..*sort }, &[x])
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
