//! What a traced function leaves of the random generator's state.

use std::sync::Arc;

use super::Graph;
use super::trace::tape;
use crate::array::Array;
use crate::array::scope::Scope;
use crate::error::Result;
use crate::prim::Call;

/// The state of the generator after a function: a call of its own, so that it is there also where what else the
/// function computes fails.
#[derive(Clone)]
pub(crate) struct Drawn {
    call: Arc<Call>,
    /// Which inputs of the function it depends on.
    of: Vec<usize>,
    captures: Vec<Array>,
    /// Whether it is right for other sizes of the function's inputs.
    pub is_general: bool,
}

impl Drawn {
    /// From the placeholders of a function, whose last is the state before, and the state that it leaves.
    pub fn new(inputs: &[Array], state: Array, scope: &Scope) -> Result<Drawn> {
        let tape = tape(std::slice::from_ref(&state), scope);
        let is_used = |input: &Array| tape.iter().any(|(array, _)| array.same(input));
        let of: Vec<usize> = (0..inputs.len()).filter(|&at| is_used(&inputs[at])).collect();
        let own: Vec<Array> = of.iter().map(|&at| inputs[at].clone()).collect();
        let (graph, captures) = Graph::from_trace(&own, &[state], scope)?;
        let is_general =
            of.iter().all(|&at| at + 1 == inputs.len()) && captures.iter().all(Array::is_ready);
        Ok(Drawn { call: Call::new("drawn", Arc::new(graph), None), of, captures, is_general })
    }

    /// Records the state, of all inputs of the function.
    pub fn record(&self, inputs: &[&Array]) -> Result<Array> {
        let own: Vec<&Array> = self.of.iter().map(|&at| inputs[at]).chain(&self.captures).collect();
        Array::apply(self.call.clone(), &own)
    }
}
