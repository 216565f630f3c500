//! What becomes of updates that cannot be computed: a weight is then what it was before.
//!
//! An index outside its axis, or a singular matrix, shows when a step is computed. By then a program has put the step's
//! results in the place of its weights, and what they were would be out of its reach.

use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::at_once;
use crate::array::{Array, Node, Progress, Value};
use crate::error::Error;
use crate::graph::trace::{ById, tape_where};
use crate::prim::{Mark, Op};

/// Makes the updates under `arrays` that values keep from being computed what they are the updates of. Says whether
/// there were any.
pub(super) fn undo(arrays: &[Array]) -> bool {
    // What is held would be kept when it is computed.
    let nodes: Vec<Weak<Node>> = tape_where(arrays, |array| !array.is_ready())
        .iter()
        .map(|(array, _)| Arc::downgrade(&array.node))
        .collect();
    let updates = nodes.iter().filter_map(Weak::upgrade).any(|node| former(&node).is_some());
    if !updates {
        return false;
    }
    let mut fails: ById<usize, bool> = ById::default();
    let mut undone = false;
    for node in &nodes {
        let id = node.as_ptr() as usize;
        let Some(node) = node.upgrade() else { continue };
        let (mut fail, looks) = {
            let inputs = &node.state().inputs;
            // What is replaced is not needed for what replaces it.
            let needed = if matches!(node.op, Op::Mark(Mark::Update)) { 1 } else { inputs.len() };
            let failed = |input: &Array| fails.get(&(Arc::as_ptr(&input.node) as usize));
            let avals: SmallVec<[_; 4]> = inputs.iter().map(Array::aval).collect();
            let fail = inputs.iter().take(needed).any(|input| failed(input) == Some(&true));
            (fail, node.op.looks_at_values(&avals))
        };
        if !fail && looks {
            let outcome = at_once(&[Array { node: node.clone(), output: 0 }]);
            fail = match outcome.map_err(|error| error.is_of_values()) {
                Ok(()) => false,
                Err(true) => true,
                // What stops this has nothing to do with values.
                Err(false) => return undone,
            };
        }
        if fail
            && let Some(former) = former(&node)
            && restore(&node, &former)
        {
            (fail, undone) = (false, true);
        }
        fails.insert(id, fail);
    }
    undone
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
    /// Whether there is no result for some values: an index outside its axis, a singular matrix.
    pub(super) fn is_of_values(&self) -> bool {
        if let Error::Failed(error) | Error::Node { error, .. } = self {
            return error.is_of_values();
        }
        matches!(self, Error::Index { .. } | Error::Numeric { .. })
    }

    /// The same, saying that updates were undone.
    pub(super) fn with_updates_undone(mut self) -> Error {
        if let Error::Index { detail, .. } | Error::Numeric { detail, .. } = &mut self {
            detail.push_str("; the updates of parameters and state that needed it are undone");
        }
        self
    }
}
