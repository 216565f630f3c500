//! Bodies from functions.

use std::sync::Arc;

use crate::array::scope::Scope;
use crate::array::{Array, recording_body};
use crate::error::Result;
use crate::graph::Graph;
use crate::prim::Call;
use crate::shape::Aval;

/// A body.
pub(crate) struct Traced {
    /// What it computes of its arguments, and of its captures, which are the last inputs.
    pub graph: Graph,
    /// The arrays that it uses besides its arguments.
    pub captures: Vec<Array>,
}

impl Traced {
    /// The graph under the name that all bodies have: nothing depends on it.
    pub fn body(self) -> (Arc<Call>, Vec<Array>) {
        (body(self.graph), self.captures)
    }
}

/// A graph as a body.
pub(super) fn body(graph: Graph) -> Arc<Call> {
    Call::new("body", Arc::new(graph), None)
}

/// What `f` does with arguments of these avals, for a loop or a branch of `op`.
pub(crate) fn trace(
    op: &'static str,
    arguments: &[Aval],
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
) -> Result<Traced> {
    let scope = Scope::enter(op);
    let given: Vec<Array> =
        arguments.iter().map(|aval| Array::placeholder(aval.clone(), &scope.0)).collect();
    let outputs = recording_body(|| f(&given))?;
    let (graph, captures) = Graph::from_trace(&given, &outputs, &scope.0)?;
    Ok(Traced { graph, captures })
}
