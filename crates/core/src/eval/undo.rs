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
    let mut fails: ById<usize, Option<Error>> = ById::default();
    let mut undone = false;
    for node in &nodes {
        let id = node.as_ptr() as usize;
        let Some(node) = node.upgrade() else { continue };
        let (mut fail, looks) = {
            let inputs = &node.state().inputs;
            let failed = |input: &Array| {
                let first = input.node.undone.get().map(|error| (**error).clone());
                first.or_else(|| fails.get(&(Arc::as_ptr(&input.node) as usize)).cloned().flatten())
            };
            let avals: SmallVec<[_; 4]> = inputs.iter().map(Array::aval).collect();
            let fail = needed(&node, inputs).iter().find_map(failed);
            (fail, node.op.looks_at_values(&avals))
        };
        if fail.is_none() && looks {
            fail = match at_once(&[Array { node: node.clone(), output: 0 }]) {
                Ok(()) => None,
                Err(error) if error.is_of_values() => Some(error),
                // What stops this has nothing to do with values.
                Err(_) => return undone,
            };
        }
        if let Some(error) = &fail
            && let Some(former) = former(&node)
            && restore(&node, &former, error)
        {
            undone = true;
        }
        fails.insert(id, fail);
    }
    undone
}

/// What has to be there for a node, of its inputs: what is replaced is not needed for what replaces it.
pub(super) fn needed<'a>(node: &Node, inputs: &'a [Array]) -> &'a [Array] {
    match matches!(node.op, Op::Mark(Mark::Update)) {
        true => &inputs[..inputs.len().min(1)],
        false => inputs,
    }
}

/// The error of a node that was recorded of an update which is undone by now.
pub(super) fn undone_under(node: &Node, inputs: &[Array]) -> Option<Error> {
    let undone = needed(node, inputs).iter().find_map(|input| input.node.undone.get())?;
    Some((**undone).clone().with("; it was computed from an update that this undid"))
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

/// Gives a node the values of other arrays, and notes why; says whether they have any.
fn restore(node: &Arc<Node>, former: &[Array], error: &Error) -> bool {
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
        let _first = node.undone.set(Arc::new(error.clone()));
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
    pub(super) fn with_updates_undone(self) -> Error {
        self.with("; the updates of parameters and state that needed it are undone")
    }

    /// The same with more to say.
    fn with(mut self, more: &str) -> Error {
        if let Error::Index { detail, .. } | Error::Numeric { detail, .. } = &mut self {
            detail.push_str(more);
        }
        self
    }
}
