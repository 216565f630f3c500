//! Axes folded to one value.

use super::{Avals, expect_inputs, one};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Aval, Dims};

/// What a reduction folds with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceKind {
    /// Addition; 0 for nothing. Half types accumulate in `float32`, integers wrap.
    Sum,
    /// Multiplication; 1 for nothing.
    Prod,
    /// The largest; NaN if there is one; an error for nothing.
    Max,
    /// The smallest; NaN if there is one; an error for nothing.
    Min,
    /// Whether all are true (bool); true for nothing.
    All,
    /// Whether any is true (bool); false for nothing.
    Any,
}

impl ReduceKind {
    /// Every kind.
    pub const ALL: &[ReduceKind] = &[
        ReduceKind::Sum,
        ReduceKind::Prod,
        ReduceKind::Max,
        ReduceKind::Min,
        ReduceKind::All,
        ReduceKind::Any,
    ];

    /// The NumPy name.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceKind::Sum => "sum",
            ReduceKind::Prod => "prod",
            ReduceKind::Max => "max",
            ReduceKind::Min => "min",
            ReduceKind::All => "all",
            ReduceKind::Any => "any",
        }
    }

    /// Whether the reduction takes elements of `dtype`.
    pub fn takes(self, dtype: DType) -> bool {
        match self {
            ReduceKind::Sum | ReduceKind::Prod => dtype != DType::Bool,
            ReduceKind::Max | ReduceKind::Min => dtype != DType::C64,
            ReduceKind::All | ReduceKind::Any => dtype == DType::Bool,
        }
    }
}

/// Folds `axes` (sorted, unique) of the input, which leave the shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reduce {
    /// What to fold with.
    pub kind: ReduceKind,
    /// The axes that go.
    pub axes: Dims,
}

impl Reduce {
    pub(super) fn infer_avals(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = self.kind.name();
        expect_inputs(op, inputs, 1)?;
        let x = inputs[0];
        if !self.kind.takes(x.dtype) {
            return Err(Error::dtype(op, format!("does not take {x}")));
        }
        if self.axes.iter().any(|&a| a >= x.shape.rank()) {
            return Err(Error::shape(op, format!("axes {:?} are out of range for {x}", self.axes)));
        }
        let shape = x.shape.without(&self.axes);
        let folds_nothing = self.axes.iter().any(|&a| x.shape[a] == 0) && shape.size() > 0;
        if folds_nothing && matches!(self.kind, ReduceKind::Max | ReduceKind::Min) {
            return Err(Error::shape(op, format!("has no value for the empty axes of {x}")));
        }
        one(Aval { shape, dtype: x.dtype })
    }
}
