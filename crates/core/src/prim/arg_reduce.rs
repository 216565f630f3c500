//! Where an axis has its extreme value.

use super::batch::on_batch;
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Primitive, Sizes, expect_inputs, one,
};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Aval;

/// The index, as `uint32`, of the first extreme value along `axis`, which leaves the shape. A NaN
/// counts as the extreme.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArgReduce {
    /// The largest if true, the smallest if false.
    pub max: bool,
    /// The axis that goes.
    pub axis: usize,
}

impl ArgReduce {
    /// The NumPy name.
    pub const fn name(&self) -> &'static str {
        if self.max { "argmax" } else { "argmin" }
    }
}

impl Primitive for ArgReduce {
    fn name(&self) -> &'static str {
        ArgReduce::name(self)
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
        let shape = x.shape.without(&[self.axis]);
        if x.shape[self.axis] == 0 && shape.size() > 0 {
            return Err(Error::shape(
                self.name(),
                format!("has no value for an empty axis of {x}"),
            ));
        }
        one(Aval { shape, dtype: DType::U32 })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Zero
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(ArgReduce { axis: self.axis + 1, ..*self }, inputs, size)
    }

    fn operations(&self, inputs: &[&Aval], _: &[&Aval]) -> f64 {
        inputs[0].shape.size() as f64
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
