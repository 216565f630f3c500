//! One of two operands, by a condition.

use super::batch::on_batch;
use super::record::{masked, select, zeros};
use super::{
    Avals, Batched, Diff, Facts, Linearity, Primitive, expect_inputs, one, same_dtypes, same_shapes,
};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Aval;

/// Inputs: condition (bool), `a`, `b`, all of one shape; gives `a` where the condition is true and
/// `b` elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Select;

impl Primitive for Select {
    fn name(&self) -> &'static str {
        "select"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs("select", inputs, 3)?;
        same_shapes("select", inputs)?;
        same_dtypes("select", &inputs[1..])?;
        if inputs[0].dtype != DType::Bool {
            return Err(Error::dtype("select", format!("the condition {} is not bool", inputs[0])));
        }
        one(inputs[1].clone())
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Linear {
            linearity: Linearity::Joint,
            operand: |_, operand| operand > 0,
            transpose: |_, inputs, operand, ct| {
                let condition = &inputs[0];
                Ok(Some(match operand {
                    1 => masked(condition, ct)?,
                    _ => select(condition, &zeros(ct.aval()), ct)?,
                }))
            },
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(*self, inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts::ELEMENTWISE
    }
}
