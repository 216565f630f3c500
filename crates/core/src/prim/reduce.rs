//! Axes folded to one value.

#![deny(clippy::wildcard_enum_match_arm)]

mod product;

use super::batch::{behind, on_batch};
use super::record::{broadcast_back, cast, compare, div, is_zero, like, select, sum, zeros};
use super::{
    Accumulates, Argument, Avals, Batched, Binary, Compare, Diff, Facts, Linearity, Primitive,
    Reverse, Sizes, Tangents, expect_inputs, one,
};
use crate::array::Array;
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
            ReduceKind::Max | ReduceKind::Min => !dtype.is_complex(),
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

impl Primitive for Reduce {
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

    fn diff(&self) -> Diff<Self> {
        match self.kind {
            ReduceKind::Sum => Diff::Linear {
                linearity: Linearity::Joint,
                operand: |_, _| true,
                transpose: |reduce, inputs, _, ct| {
                    Ok(Some(broadcast_back(ct, &reduce.axes, &inputs[0].aval().shape)?))
                },
            },
            ReduceKind::Prod => Diff::Custom { jvp: product::jvp, vjp: product::vjp },
            ReduceKind::Max | ReduceKind::Min => Diff::Custom { jvp, vjp },
            ReduceKind::All | ReduceKind::Any => Diff::Zero,
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(Reduce { kind: self.kind, axes: behind(&self.axes) }, inputs, size)
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

/// Where x is not its extreme value, and how often it is along `axes`, in a dtype that can count. A NaN extreme is
/// everywhere, NaN times.
fn extremes(reduce: &Reduce, x: &Array, y: &Array) -> Result<(Array, Array)> {
    let extreme = broadcast_back(y, &reduce.axes, &x.aval().shape)?;
    let there = compare(Compare::Eq, x, &extreme)?;
    let count = sum(&cast(&there, x.dtype().accumulator())?, &reduce.axes)?;
    let count = match x.dtype().is_float() {
        true => select(&is_zero(&count)?, &like(&count, f64::NAN), &count)?,
        false => count,
    };
    let beyond = if reduce.kind == ReduceKind::Max { Compare::Lt } else { Compare::Gt };
    Ok((compare(beyond, x, &extreme)?, count))
}

/// `value` over `count`, in the dtype of `value`.
fn shared(value: &Array, count: &Array) -> Result<Array> {
    if value.dtype().is_integer() {
        return Array::apply(Binary::FloorDivide, &[value, count]);
    }
    cast(&div(&cast(value, count.dtype())?, count)?, value.dtype())
}

fn jvp(
    reduce: &Reduce,
    inputs: &[Array],
    outputs: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    let Some(tangent) = &tangents[0] else {
        return Ok(vec![None]);
    };
    let (elsewhere, count) = extremes(reduce, &inputs[0], &outputs[0])?;
    // Shares are made before the sum, which may come to too much.
    let count = broadcast_back(&count, &reduce.axes, &inputs[0].aval().shape)?;
    let share = select(&elsewhere, &zeros(tangent.aval()), &shared(tangent, &count)?)?;
    Ok(vec![Some(sum(&share, &reduce.axes)?)])
}

/// Elements that tie for the extreme share evenly, as in JAX; a NaN extreme gives all of them NaN.
fn vjp(reduce: &Reduce, r: &Reverse<'_>) -> Result<Tangents> {
    let Some(cotangent) = &r.cotangents[0] else {
        return Ok(vec![None]);
    };
    let x = &r.inputs[0];
    let (elsewhere, count) = extremes(reduce, x, &r.outputs[0])?;
    let share = broadcast_back(&shared(cotangent, &count)?, &reduce.axes, &x.aval().shape)?;
    Ok(vec![Some(select(&elsewhere, &zeros(share.aval()), &share)?)])
}
