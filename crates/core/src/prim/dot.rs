//! The batched matrix product.

use super::{Avals, expect_inputs, one};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Aval, Shape};

/// Inputs: a `[B.., M, K]` and b `[B.., K, N]` of one dtype. Output: `[B.., M, N]` of `result`,
/// summed in `accumulate`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dot {
    /// The dtype of the sums.
    pub accumulate: DType,
    /// The dtype of the output.
    pub result: DType,
}

impl Dot {
    /// A product of `dtype` that accumulates as is usual for it: half types in `float32`.
    pub fn of(dtype: DType) -> Self {
        Dot { accumulate: dtype.accumulator(), result: dtype }
    }

    pub(super) fn infer_avals(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = "matmul";
        expect_inputs(op, inputs, 2)?;
        super::same_dtypes(op, inputs)?;
        let (a, b) = (inputs[0], inputs[1]);
        let rank = a.shape.rank();
        let fits = rank >= 2
            && b.shape.rank() == rank
            && a.shape[..rank - 2] == b.shape[..rank - 2]
            && a.shape[rank - 1] == b.shape[rank - 2];
        if !fits {
            return Err(Error::shape(op, format!("{a} and {b} do not multiply")));
        }
        if a.dtype == DType::Bool {
            return Err(Error::dtype(op, format!("does not take {a} and {b}")));
        }
        let mut shape: Shape = a.shape.clone();
        shape.0[rank - 1] = b.shape[rank - 1];
        shape.checked_size(op, self.result)?;
        one(Aval { shape, dtype: self.result })
    }
}
