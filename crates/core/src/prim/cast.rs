//! Another dtype for the same values.

use super::batch::on_batch;
use super::{
    Avals, Batched, Diff, Facts, Primitive, Reverse, Tangents, expect_inputs, one, record,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Aval;

/// Converts each element to `to`: to bool by ≠ 0, between integers by wrapping, from float to integer
/// towards zero and saturating (NaN gives 0), from complex by its real part. A negative float becomes
/// an unsigned integer by way of `int32`, or `int64` for `uint64`, which wraps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cast {
    /// The dtype of the result.
    pub to: DType,
}

impl Primitive for Cast {
    fn name(&self) -> &'static str {
        "astype"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs("astype", inputs, 1)?;
        one(Aval { shape: inputs[0].shape.clone(), dtype: self.to })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Custom { jvp, vjp }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(*self, inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts::ELEMENTWISE
    }
}

impl Cast {
    /// Whether it has a slope: rounding and comparing with 0 are steps.
    fn is_smooth(&self, from: DType) -> bool {
        self.to.is_inexact() || self.to.is_integer() && !from.is_inexact()
    }
}

fn jvp(cast: &Cast, inputs: &[Array], _: &[Array], tangents: &[Option<Array>]) -> Result<Tangents> {
    let tangent = tangents[0].as_ref().filter(|_| cast.is_smooth(inputs[0].dtype()));
    Ok(vec![tangent.map(|t| record::cast(t, cast.to)).transpose()?])
}

fn vjp(cast: &Cast, r: &Reverse<'_>) -> Result<Tangents> {
    let from = r.inputs[0].dtype();
    let cotangent = r.cotangents[0].as_ref().filter(|_| cast.is_smooth(from));
    Ok(vec![cotangent.map(|c| record::cast(c, from)).transpose()?])
}
