//! Another dtype for the same values.

use super::{Avals, expect_inputs, one};
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

impl Cast {
    pub(super) fn infer_avals(self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs("astype", inputs, 1)?;
        one(Aval { shape: inputs[0].shape.clone(), dtype: self.to })
    }
}
