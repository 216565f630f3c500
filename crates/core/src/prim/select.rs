//! One of two operands, by a condition.

use super::{Avals, expect_inputs, one, same_dtypes, same_shapes};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Aval;

/// Inputs: condition (bool), `a`, `b`, all of one shape; gives `a` where the condition is true and
/// `b` elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Select;

impl Select {
    pub(super) fn infer_avals(self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs("select", inputs, 3)?;
        same_shapes("select", inputs)?;
        same_dtypes("select", &inputs[1..])?;
        if inputs[0].dtype != DType::Bool {
            return Err(Error::dtype("select", format!("the condition {} is not bool", inputs[0])));
        }
        one(inputs[1].clone())
    }
}
