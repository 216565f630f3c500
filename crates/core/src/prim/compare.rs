//! Elementwise comparisons: two operands of one shape and dtype, to bool.

use super::batch::on_batch;
use super::{Avals, Batched, Diff, Facts, Primitive, expect_inputs, one, same_dtypes, same_shapes};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Aval;

/// An elementwise comparison. Every comparison with NaN is false, but `Ne`, which is true.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Compare {
    /// a = b.
    Eq,
    /// a ≠ b.
    Ne,
    /// a < b.
    Lt,
    /// a ≤ b.
    Le,
    /// a > b.
    Gt,
    /// a ≥ b.
    Ge,
}

impl Compare {
    /// Every comparison.
    pub const ALL: &[Compare] =
        &[Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge];

    /// The NumPy name.
    pub const fn name(self) -> &'static str {
        match self {
            Compare::Eq => "equal",
            Compare::Ne => "not_equal",
            Compare::Lt => "less",
            Compare::Le => "less_equal",
            Compare::Gt => "greater",
            Compare::Ge => "greater_equal",
        }
    }

    /// Whether the comparison takes elements of `dtype`: complex numbers have no order.
    pub fn takes(self, dtype: DType) -> bool {
        !dtype.is_complex() || matches!(self, Compare::Eq | Compare::Ne)
    }
}

impl Primitive for Compare {
    fn name(&self) -> &'static str {
        Compare::name(*self)
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs(self.name(), inputs, 2)?;
        same_shapes(self.name(), inputs)?;
        same_dtypes(self.name(), inputs)?;
        if !self.takes(inputs[0].dtype) {
            return Err(Error::dtype(self.name(), format!("does not take {}", inputs[0])));
        }
        one(Aval { shape: inputs[0].shape.clone(), dtype: DType::Bool })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Zero
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(*self, inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts::ELEMENTWISE
    }
}
