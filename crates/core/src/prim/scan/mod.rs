//! Running folds along an axis.

mod diff;

use super::batch::on_batch;
use super::{
    Accumulates, Argument, Avals, Batched, Binary, Diff, Facts, Linearity, Primitive, ReduceKind,
    Sizes, expect_inputs, one,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Aval;

/// What a scan folds with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScanKind {
    /// Addition. Half types accumulate in `float32`, integers wrap.
    Sum,
    /// Multiplication, likewise.
    Prod,
    /// The largest so far; NaN from the first one on.
    Max,
    /// The smallest so far; NaN from the first one on.
    Min,
    /// ln(eᵃ + eᵇ), without overflow. Half types accumulate in `float32`.
    LogAddExp,
}

impl ScanKind {
    /// Every kind.
    pub const ALL: &[ScanKind] =
        &[ScanKind::Sum, ScanKind::Prod, ScanKind::Max, ScanKind::Min, ScanKind::LogAddExp];

    /// The NumPy or MLX name.
    pub const fn name(self) -> &'static str {
        match self {
            ScanKind::Sum => "cumsum",
            ScanKind::Prod => "cumprod",
            ScanKind::Max => "cummax",
            ScanKind::Min => "cummin",
            ScanKind::LogAddExp => "logcumsumexp",
        }
    }

    /// How two neighbours are joined.
    pub const fn join(self) -> Binary {
        match self {
            ScanKind::Sum => Binary::Add,
            ScanKind::Prod => Binary::Mul,
            ScanKind::Max => Binary::Maximum,
            ScanKind::Min => Binary::Minimum,
            ScanKind::LogAddExp => Binary::LogAddExp,
        }
    }

    /// Whether the scan takes elements of `dtype`.
    pub fn takes(self, dtype: DType) -> bool {
        match self {
            ScanKind::Sum => ReduceKind::Sum.takes(dtype),
            ScanKind::Prod => ReduceKind::Prod.takes(dtype),
            ScanKind::Max => ReduceKind::Max.takes(dtype),
            ScanKind::Min => ReduceKind::Min.takes(dtype),
            ScanKind::LogAddExp => dtype.is_float(),
        }
    }
}

/// Folds each element with all before it along an axis. The output has the input's shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scan {
    /// What to fold with.
    pub kind: ScanKind,
    /// The axis.
    pub axis: usize,
    /// Whether to go from the end of the axis to its start.
    pub reverse: bool,
    /// Whether to leave out the element itself: the first one is then what changes nothing (0, 1,
    /// −∞ or the least number, ∞ or the largest number).
    pub exclusive: bool,
}

impl Primitive for Scan {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = self.kind.name();
        expect_inputs(op, inputs, 1)?;
        let x = inputs[0];
        if !self.kind.takes(x.dtype) {
            return Err(Error::dtype(op, format!("does not take {x}")));
        }
        if self.axis >= x.shape.rank() {
            return Err(Error::shape(op, format!("axis {} is not in {x}", self.axis)));
        }
        one(x.clone())
    }

    fn diff(&self) -> Diff<Self> {
        match self.kind {
            ScanKind::Sum => Diff::Linear {
                linearity: Linearity::Joint,
                operand: |_, _| true,
                transpose: |scan, _, _, ct| {
                    let back = Scan { reverse: !scan.reverse, ..*scan };
                    Ok(Some(Array::apply(back, &[ct])?))
                },
            },
            ScanKind::Max | ScanKind::Min => {
                Diff::Custom { jvp: diff::extreme_jvp, vjp: diff::extreme_vjp }
            }
            ScanKind::Prod | ScanKind::LogAddExp => {
                Diff::Custom { jvp: diff::doubling_jvp, vjp: diff::doubling_vjp }
            }
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(Scan { axis: self.axis + 1, ..*self }, inputs, size)
    }

    fn operations(&self, inputs: &[&Aval], _: &[&Aval]) -> f64 {
        inputs[0].shape.size() as f64
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Wide,
            sizes: Sizes::Inferred,
        }
    }
}
