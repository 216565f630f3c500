//! The same values, with a meaning for transforms or the planner.

use super::batch::on_batch;
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Primitive, Sizes, expect_inputs, one,
};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::shape::Aval;

/// An identity that transforms or the planner must not look through.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mark {
    /// Input: x. Derivatives do not pass.
    StopGradient,
    /// Inputs: x, then what has to be computed before x may be used. Gives x. The planner never
    /// merges what comes after it with what came before: `checkpoint` recomputes behind one.
    Depends,
    /// Inputs: x, and what x takes the place of. Gives x. Where x cannot be computed, as for an index outside its
    /// axis, what was there before stays.
    Update,
}

impl Mark {
    /// The name in errors and graphs.
    pub const fn name(self) -> &'static str {
        match self {
            Mark::StopGradient => "stop_gradient",
            Mark::Depends => "depends",
            Mark::Update => "update",
        }
    }
}

impl Primitive for Mark {
    fn name(&self) -> &'static str {
        Mark::name(*self)
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        match self {
            Mark::StopGradient => expect_inputs(self.name(), inputs, 1)?,
            Mark::Depends if inputs.is_empty() => {
                return Err(Error::argument(self.name(), "no inputs were given"));
            }
            Mark::Depends => {}
            Mark::Update => expect_inputs(self.name(), inputs, 2)?,
        }
        one(inputs[0].clone())
    }

    fn diff(&self) -> Diff<Self> {
        match self {
            Mark::StopGradient => Diff::Zero,
            // Not linear: the other inputs have no tangents that could take their place.
            Mark::Depends | Mark::Update => Diff::Custom {
                jvp: |_, _, _, tangents| Ok(vec![tangents[0].clone()]),
                vjp: |_, r| {
                    let mut out = vec![None; r.inputs.len()];
                    out[0] = r.cotangents[0].clone();
                    Ok(out)
                },
            },
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        match self {
            Mark::StopGradient => on_batch(*self, inputs, size),
            Mark::Depends => {
                let arrays: Vec<&Array> = inputs.iter().map(|i| &i.array).collect();
                let array = Array::apply(*self, &arrays)?;
                Ok(vec![Batched { array, batched: inputs[0].batched }])
            }
            // There is nothing to go back to where a function is traced.
            Mark::Update => Ok(vec![inputs[0].clone()]),
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: *self != Mark::Depends,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: Sizes::Inferred,
        }
    }
}
