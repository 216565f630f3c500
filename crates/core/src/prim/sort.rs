//! The elements of an axis in order.

use super::{Avals, expect_inputs, one};
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

    pub(super) fn infer_avals(&self, inputs: &[&Aval]) -> Result<Avals> {
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
}
