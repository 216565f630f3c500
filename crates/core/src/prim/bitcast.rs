//! The same bytes as elements of another dtype.

use super::batch::on_batch;
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Primitive, Sizes, expect_inputs, one,
};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Aval;

/// Reads the bytes of each row along the last axis as elements of `to`, in the machine's order.
/// Where the two differ in size, the last axis grows or shrinks. Bool has no bytes of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bitcast {
    /// The dtype of the result.
    pub to: DType,
}

impl Primitive for Bitcast {
    fn name(&self) -> &'static str {
        "view"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = "view";
        expect_inputs(op, inputs, 1)?;
        let (x, to) = (inputs[0], self.to);
        if x.dtype == DType::Bool || to == DType::Bool {
            return Err(Error::dtype(op, format!("bool has no bytes of its own ({x} as {to})")));
        }
        let (from, size) = (x.dtype.size(), to.size());
        if from == size {
            return one(Aval { shape: x.shape.clone(), dtype: to });
        }
        let Some(last) = x.shape.rank().checked_sub(1) else {
            return Err(Error::shape(
                op,
                format!("{x} has no axis that {to} of another size could stretch"),
            ));
        };
        let bytes = x.shape[last] * from;
        if !bytes.is_multiple_of(size) {
            return Err(Error::shape(
                op,
                format!("the {bytes} bytes of the last axis of {x} do not divide into {to}"),
            ));
        }
        one(Aval { shape: x.shape.with(last, bytes / size), dtype: to })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Zero
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(*self, inputs, size)
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
