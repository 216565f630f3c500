//! The same values, with a meaning for transforms or the planner.

use super::{Avals, one};
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
}

impl Mark {
    /// The name in errors and graphs.
    pub const fn name(self) -> &'static str {
        match self {
            Mark::StopGradient => "stop_gradient",
            Mark::Depends => "depends",
        }
    }

    pub(super) fn infer_avals(self, inputs: &[&Aval]) -> Result<Avals> {
        let fits = match self {
            Mark::StopGradient => inputs.len() == 1,
            Mark::Depends => !inputs.is_empty(),
        };
        if !fits {
            let detail = format!("{} inputs were given", inputs.len());
            return Err(Error::argument(self.name(), detail));
        }
        one(inputs[0].clone())
    }
}
