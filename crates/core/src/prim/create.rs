//! Arrays from nothing: graph inputs, constants, counters.

use std::hash::Hash;

use super::key::Key;
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Primitive, Sizes, expect_inputs, one,
    record,
};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::shape::{Aval, Shape};

/// The input of a graph, or of a function under trace: it has an aval and no value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Input {
    /// What is known of it.
    pub aval: Aval,
}

/// One number, repeated to a shape.
///
/// The value is an argument of a plan: two constants of equal aval share one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Constant {
    /// The number.
    pub value: Scalar,
    /// The shape and dtype of the result.
    pub aval: Aval,
}

/// 0, 1, 2, … along `axis`, the same along every other axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Iota {
    /// The shape of the result.
    pub shape: Shape,
    /// Any dtype but bool.
    pub dtype: DType,
    /// The axis that counts.
    pub axis: usize,
}

impl Primitive for Input {
    fn name(&self) -> &'static str {
        "input"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs("input", inputs, 0)?;
        one(self.aval.clone())
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Zero
    }

    fn vmap(&self, _: &[Batched], _: usize) -> Result<Vec<Batched>> {
        alone(self.clone())
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: false,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: Sizes::Given,
        }
    }
}

impl Primitive for Constant {
    fn name(&self) -> &'static str {
        "constant"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs("constant", inputs, 0)?;
        one(self.aval.clone())
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Zero
    }

    fn vmap(&self, _: &[Batched], _: usize) -> Result<Vec<Batched>> {
        alone(self.clone())
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::Number(self.value),
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: Sizes::Number,
        }
    }

    fn write_key(&self, key: &mut Key) {
        self.aval.hash(key);
    }
}

impl Primitive for Iota {
    fn name(&self) -> &'static str {
        "iota"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs("iota", inputs, 0)?;
        crate::shape::normalize_axis("iota", self.axis as isize, self.shape.rank())?;
        if self.dtype == DType::Bool {
            return Err(crate::error::Error::dtype("iota", "does not give bool"));
        }
        one(Aval { shape: self.shape.clone(), dtype: self.dtype })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Zero
    }

    fn vmap(&self, _: &[Batched], _: usize) -> Result<Vec<Batched>> {
        alone(self.clone())
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

/// What has no inputs is the same for the whole batch.
fn alone(op: impl Into<super::Op>) -> Result<Vec<Batched>> {
    Ok(record::op(&op.into(), &[])?.into_iter().map(Batched::shared).collect())
}
