//! Random bits from a key.

use super::batch::on_batch;
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Primitive, Sizes, expect_inputs, one,
};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Aval, Shape};

/// Threefry-2x32 bits, as MLX 0.32 makes them.
///
/// Input: keys, `uint32[.., 2]`. Output: for each key an array of `shape`, so the keys' leading
/// axes followed by `shape`. (J. K. Salmon et al., *Parallel random numbers: as easy as 1, 2, 3*,
/// SC 2011; 20 rounds.)
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RandomBits {
    /// What one key gives.
    pub shape: Shape,
    /// Bytes an element: 1, 2 or 4, which gives `uint8`, `uint16` or `uint32`.
    pub width: usize,
}

impl Primitive for RandomBits {
    fn name(&self) -> &'static str {
        "random_bits"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = "random_bits";
        expect_inputs(op, inputs, 1)?;
        let keys = inputs[0];
        if keys.dtype != DType::U32 || keys.shape.last() != Some(&2) {
            return Err(Error::shape(op, format!("keys are uint32[.., 2], not {keys}")));
        }
        let dtype = match self.width {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            other => return Err(Error::argument(op, format!("width {other} is not 1, 2 or 4"))),
        };
        let lead = &keys.shape[..keys.shape.rank() - 1];
        let shape: Shape = lead.iter().chain(self.shape.iter()).copied().collect();
        one(Aval { shape, dtype })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Zero
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        // The result follows the keys' leading axes, of which the batch is one more.
        on_batch(self.clone(), inputs, size)
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
