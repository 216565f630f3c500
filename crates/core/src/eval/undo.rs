//! What becomes of updates that cannot be computed: a weight is then what it was before.
//!
//! An index outside its axis, or a singular matrix, shows when a step is computed. By then a program has put the step's
//! results in the place of its weights, and what they were would be out of its reach.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::{WALK, at_once};
use crate::array::{Array, Node, Progress, Undone, Value};
use crate::error::Error;
use crate::fork;
use crate::graph::trace::{ById, tape_where};
use crate::prim::{Mark, Op};

/// Makes the updates under `arrays` that values keep from being computed what they are the updates of. Says whether
/// there were any.
pub(super) fn undo(arrays: &[Array]) -> bool {
    let Some(nodes) = lazy_nodes(arrays) else { return false };
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
            let state = node.state();
            let is_pending = matches!(state.progress, Progress::Pending(_));
            // What was computed has no inputs any more, also where a plan has taken its values.
            let is_lazy = is_pending || matches!(state.progress, Progress::Lazy);
            if !is_lazy || state.inputs.is_empty() {
                continue;
            }
            let inputs = &state.inputs;
            let failed = |input: &Array| {
                let first = input.node.undone.get().map(|undone| undone.error.clone());
                first.or_else(|| fails.get(&(Arc::as_ptr(&input.node) as usize)).cloned().flatten())
            };
            let avals: SmallVec<[_; 4]> = inputs.iter().map(Array::aval).collect();
            let fail = needed(&node, inputs).iter().find_map(failed);
            // What another thread is at is waited for.
            (fail, is_pending || node.op.looks_at_values(&avals))
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

/// What is not computed under `arrays`, inputs first, as soon as nobody else is at any of it; nothing where the waiting
/// for that is stopped. What is held would be kept when it is computed; while it is known, plans take no leaves of it.
fn lazy_nodes(arrays: &[Array]) -> Option<Vec<Weak<Node>>> {
    loop {
        let inside = fork::inside();
        let walk = fork::lock(&WALK);
        let tape = tape_where(arrays, |array| !array.is_ready());
        let pending = tape.iter().find_map(|(array, _)| match &array.node.state().progress {
            Progress::Pending(event) => Some(event.clone()),
            Progress::Lazy | Progress::Ready(_) | Progress::Failed(_) => None,
        });
        let Some(event) = pending else {
            return Some(tape.iter().map(|(array, _)| Arc::downgrade(&array.node)).collect());
        };
        drop((tape, walk, inside));
        event.wait().ok()?;
    }
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
    Some(undone.error.clone().with("; what is asked for is of an update that was undone for this"))
}

/// Whether an array that is not computed is of an update that was undone, and so will never be.
pub(crate) fn is_lost(array: &Array) -> bool {
    if !ANY.load(Ordering::Relaxed) {
        return false;
    }
    let is_there = |array: &Array| array.is_ready();
    tape_where(std::slice::from_ref(array), |array| !is_there(array)).iter().any(|(array, _)| {
        let node = &array.node;
        undone_under(node, &node.state().inputs).is_some()
    })
}

/// Whether any update was undone yet.
static ANY: AtomicBool = AtomicBool::new(false);

/// What each output of an update was before, which is not itself of an update that was undone.
fn former(node: &Node) -> Option<SmallVec<[Array; 3]>> {
    let places: &[u32] = if let Op::Call(call) = &node.op {
        call.updates()?
    } else if matches!(node.op, Op::Mark(Mark::Update)) {
        &[1]
    } else {
        return None;
    };
    let state = node.state();
    let input = |&place: &u32| {
        let input = state.inputs.get(place as usize)?;
        Some(input.before_undone().unwrap_or_else(|| input.clone()))
    };
    let inputs = places.iter().map(input);
    let former: SmallVec<[Array; 3]> = inputs.collect::<Option<_>>()?;
    (former.len() == node.avals.len()).then_some(former)
}

/// Gives a node the values of other arrays where these fit it, else the error, and notes why; says whether they have
/// any values.
fn restore(node: &Arc<Node>, former: &[Array], error: &Error) -> bool {
    if node.is_traced() || at_once(former).is_err() {
        return false;
    }
    let values: Option<SmallVec<[Value; 1]>> = former.iter().map(Array::ready).collect();
    let Some(values) = values else { return false };
    let inputs = loop {
        // Who walks finds a node as it was, or as it is then.
        let inside = fork::inside();
        let walk = fork::lock(&WALK);
        let mut state = node.state();
        match &state.progress {
            Progress::Lazy => {}
            // Another thread tries to compute it, in vain.
            Progress::Pending(event) => {
                let event = event.clone();
                drop((state, walk, inside));
                if event.wait().is_err() {
                    return false;
                }
                continue;
            }
            Progress::Ready(_) | Progress::Failed(_) => return false,
        }
        let fits = former.iter().zip(&node.avals).all(|(array, aval)| array.aval() == aval);
        state.progress = match fits {
            true => Progress::Ready(values),
            false => Progress::Failed(Arc::new(error.clone())),
        };
        let undone = Box::new(Undone { error: error.clone(), former: former.into() });
        // The first stays, and there is no other: the node was lazy until now.
        _ = node.undone.set(undone);
        ANY.store(true, Ordering::Relaxed);
        break std::mem::take(&mut state.inputs);
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
