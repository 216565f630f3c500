//! Another dtype for the same values.

use super::batch::on_batch;
use super::{Avals, Batched, Diff, Linearity, Primitive, expect_inputs, one, record};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Aval;

/// Converts each element to `to`: to bool by ≠ 0, from float to integer towards zero and
/// saturating (NaN gives 0), between integers by wrapping, from complex by its real part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cast {
    /// The dtype of the result.
    pub to: DType,
}

impl Primitive for Cast {
    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs("astype", inputs, 1)?;
        one(Aval { shape: inputs[0].shape.clone(), dtype: self.to })
    }

    fn diff(&self) -> Diff<Self> {
        if !self.to.is_inexact() {
            return Diff::Zero;
        }
        Diff::Linear {
            linearity: Linearity::Joint,
            operand: |_, _| true,
            transpose: |_, inputs, _, ct| Ok(Some(record::cast(ct, inputs[0].dtype())?)),
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(*self, inputs, size)
    }
}
