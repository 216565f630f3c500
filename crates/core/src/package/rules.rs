//! What a package keeps of the rules of a call.

use std::sync::Arc;

use super::code::choice;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::prim::call::CallRules;
use crate::prim::{Call, Reverse, Tangents};
use crate::transform::custom_function::recompute;

/// How a call differentiates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    /// As its body.
    Body,
    /// As its body, which is computed again.
    Checkpoint,
    /// By functions of the program that wrote it, which are no part of a package.
    Own,
}

choice!(Rules { 0 Body; 1 Checkpoint; 2 Own; });

impl Rules {
    /// What is kept of those of `call`.
    pub fn of(call: &Call) -> Rules {
        match (&call.rules, call.name) {
            (None, _) => Rules::Body,
            (Some(_), "checkpoint") => Rules::Checkpoint,
            (Some(_), _) => Rules::Own,
        }
    }

    /// A call of `body` with these rules.
    pub fn call(self, body: Arc<Graph>) -> Arc<Call> {
        match self {
            Rules::Body => Call::new("call", body, None),
            Rules::Checkpoint => {
                let again = recompute(&body);
                Call::new("checkpoint", body, Some(again))
            }
            Rules::Own => Call::new("custom_function", body, Some(Arc::new(Gone))),
        }
    }
}

/// Derivatives that stayed behind. Those of the body are others, so there are none.
struct Gone;

fn gone() -> Error {
    Error::NoDerivative {
        op: "custom_function",
        detail: "its own derivative is no part of the package that it was read from".into(),
    }
}

impl CallRules for Gone {
    fn jvp(&self, _: &[Array], _: &[Array], _: &[Option<Array>]) -> Result<Option<Tangents>> {
        Err(gone())
    }

    fn vjp(&self, _: &Reverse<'_>) -> Result<Option<Tangents>> {
        Err(gone())
    }
}
