//! What becomes of updates that cannot be computed: a weight is then what it was before.
//!
//! An index outside its axis shows when a step is computed. By then a program has put the step's results in the
//! place of its weights, and what they were would be out of its reach.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::at_once;
use crate::array::{Array, Node, Progress, Value};
use crate::error::Error;
use crate::prim::{Mark, Op};

/// Makes the updates under `arrays` that an index keeps from being computed what they are the updates of. Says
/// whether there were any.
pub(super) fn undo(arrays: &[Array]) -> bool {
    let nodes = recorded(arrays);
    if nodes.iter().all(|node| former(node).is_none()) {
        return false;
    }
    let mut fails: HashMap<*const Node, bool> = HashMap::with_capacity(nodes.len());
    let mut undone = false;
    for node in &nodes {
        let failed = |input: &Array| fails.get(&Arc::as_ptr(&input.node)) == Some(&true);
        let inputs = node.state().inputs.clone();
        // What is replaced is not needed for what replaces it.
        let needed = if matches!(node.op, Op::Mark(Mark::Update)) { 1 } else { inputs.len() };
        let mut fail = inputs.iter().take(needed).any(failed);
        if !fail && node.op.looks_at_values() {
            let outcome = at_once(&[Array { node: node.clone(), output: 0 }]);
            fail = match outcome.map_err(|error| error.is_index()) {
                Ok(()) => false,
                Err(true) => true,
                // What stops this has nothing to do with indices.
                Err(false) => return undone,
            };
        }
        if fail
            && let Some(former) = former(node)
            && restore(node, &former)
        {
            (fail, undone) = (false, true);
        }
        fails.insert(Arc::as_ptr(node), fail);
    }
    undone
}

/// What is recorded under `arrays` and not computed, inputs first.
fn recorded(arrays: &[Array]) -> Vec<Arc<Node>> {
    let mut nodes = Vec::new();
    let mut seen: HashMap<*const Node, ()> = HashMap::new();
    let mut stack: Vec<(Arc<Node>, bool)> =
        arrays.iter().map(|array| (array.node.clone(), false)).collect();
    while let Some((node, entered)) = stack.pop() {
        if entered {
            nodes.push(node);
            continue;
        }
        if seen.insert(Arc::as_ptr(&node), ()).is_some() {
            continue;
        }
        let state = node.state();
        if !matches!(state.progress, Progress::Lazy) {
            continue;
        }
        let inputs: SmallVec<[Arc<Node>; 4]> =
            state.inputs.iter().map(|input| input.node.clone()).collect();
        drop(state);
        stack.push((node, true));
        stack.extend(inputs.into_iter().map(|input| (input, false)));
    }
    nodes
}

/// What each output of an update was before.
fn former(node: &Node) -> Option<SmallVec<[Array; 3]>> {
    let places: &[u32] = if let Op::Call(call) = &node.op {
        call.updates()?
    } else if matches!(node.op, Op::Mark(Mark::Update)) {
        &[1]
    } else {
        return None;
    };
    let state = node.state();
    let inputs = places.iter().map(|&place| state.inputs.get(place as usize).cloned());
    let former: SmallVec<[Array; 3]> = inputs.collect::<Option<_>>()?;
    let fits = former.len() == node.avals.len()
        && former.iter().zip(&node.avals).all(|(array, aval)| array.aval() == aval);
    fits.then_some(former)
}

/// Gives a node the values of other arrays; says whether they have any.
fn restore(node: &Arc<Node>, former: &[Array]) -> bool {
    if node.is_traced() || at_once(former).is_err() {
        return false;
    }
    let values: Option<SmallVec<[Value; 1]>> = former.iter().map(Array::ready).collect();
    let Some(values) = values else { return false };
    let inputs = {
        let mut state = node.state();
        // Somebody else may have begun to compute it: then it stays theirs.
        if !matches!(state.progress, Progress::Lazy) {
            return false;
        }
        state.progress = Progress::Ready(values);
        std::mem::take(&mut state.inputs)
    };
    drop(inputs);
    true
}

impl Error {
    /// Whether an index was outside its axis.
    fn is_index(&self) -> bool {
        if let Error::Failed(error) | Error::Node { error, .. } = self {
            return error.is_index();
        }
        matches!(self, Error::Index { .. })
    }

    /// The same, saying that updates were undone.
    pub(super) fn with_updates_undone(mut self) -> Error {
        if let Error::Index { detail, .. } = &mut self {
            detail.push_str("; the updates of parameters and state that needed it are undone");
        }
        self
    }
}
