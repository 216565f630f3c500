//! What becomes of updates that cannot be computed: a weight is then what it was before.
//!
//! An index outside its axis, a singular matrix, or that there is no memory shows when a step is computed. By then a
//! program has put the step's results in the place of its weights, and what they were would be out of its reach.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::{WALK, at_once};
use crate::array::{Array, Former, Inputs, Node, Progress, Undone, Values};
use crate::error::Error;
use crate::fork;
use crate::graph::trace::{ById, tape_where};
use crate::prim::{Mark, Op};
use crate::shape::Aval;

/// Makes the updates under `arrays` that cannot be computed for `error` what they are the updates of. Says whether there
/// were any.
pub(super) fn undo(arrays: &[Array], error: &Error) -> bool {
    let _looking = Looking::begin();
    let Some(nodes) = lazy_nodes(arrays) else { return false };
    let updates: Vec<Arc<Node>> =
        nodes.iter().filter_map(Weak::upgrade).filter(|node| former(node).is_some()).collect();
    if updates.is_empty() {
        return false;
    }
    if !error.is_of_values() {
        return undo_failing(&updates);
    }
    drop(updates);
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
            fail = match Array::any_of(&node).map_or(Ok(()), |array| at_once(&[array])) {
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

/// The same of updates, inputs first, where any operation may have failed, as for want of memory: each is tried by
/// itself, but for those that are results of one operation, as of a compiled step.
fn undo_failing(updates: &[Arc<Node>]) -> bool {
    let mut undone = false;
    for together in results_of_one(updates) {
        let arrays: Vec<Array> = together.iter().filter_map(|&node| Array::any_of(node)).collect();
        match at_once(&arrays) {
            Ok(()) => {}
            Err(error) if error.is_of_values() || error.lasts() => {
                for node in together {
                    if let Some(former) = former(node) {
                        undone |= restore(node, &former, &error);
                    }
                }
            }
            // What stops this has nothing to do with the update.
            Err(_) => return undone,
        }
    }
    undone
}

/// Updates by the operation whose results they are.
fn results_of_one(updates: &[Arc<Node>]) -> Vec<Vec<&Arc<Node>>> {
    let mut places: ById<usize, usize> = ById::default();
    let mut groups: Vec<Vec<&Arc<Node>>> = Vec::new();
    for node in updates {
        let mut of = Arc::as_ptr(node) as usize;
        if let (Op::Mark(Mark::Update), Some(fresh)) = (&node.op, node.state().inputs.first()) {
            of = Arc::as_ptr(&fresh.node) as usize;
        }
        let place = *places.entry(of).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(node);
    }
    groups
}

/// While one lives, plans take no leaves: who looks for what failed computes single nodes, too.
struct Looking;

/// How many there are.
static LOOKING: AtomicUsize = AtomicUsize::new(0);

impl Looking {
    fn begin() -> Looking {
        LOOKING.fetch_add(1, Ordering::SeqCst);
        Looking
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        LOOKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether somebody looks for what failed.
pub(super) fn is_looked_for() -> bool {
    LOOKING.load(Ordering::SeqCst) > 0
}

/// What is not computed under `arrays`, and its updates, with inputs. Inputs come first.
fn tape_with_updates(arrays: &[Array]) -> Vec<(Array, Inputs)> {
    let mut all = arrays.to_vec();
    loop {
        let tape = tape_where(&all, |array| !array.is_ready());
        let known: ById<usize, ()> =
            tape.iter().map(|(array, _)| (Arc::as_ptr(&array.node) as usize, ())).collect();
        let of = |(array, _): &(Array, Inputs)| -> Vec<Array> {
            array.node.state().updates().map(|update| Array::of(update, 0)).collect()
        };
        let is_new = |update: &Array| {
            !update.is_ready() && !known.contains_key(&(Arc::as_ptr(&update.node) as usize))
        };
        let before = all.len();
        all.extend(tape.iter().flat_map(of).filter(is_new));
        if all.len() == before {
            return tape;
        }
    }
}

/// What is not computed under `arrays`, and its updates, inputs first, as soon as nobody else is at any of it; nothing where the waiting
/// for that is stopped. What is held would be kept when it is computed.
fn lazy_nodes(arrays: &[Array]) -> Option<Vec<Weak<Node>>> {
    loop {
        let inside = fork::inside();
        let walk = fork::lock(&WALK);
        let tape = tape_with_updates(arrays);
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
    Some(undone.error.of_undone())
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

/// What the outputs of a node were before, none of it an array of an update that was undone itself.
fn former(node: &Node) -> Option<Former> {
    let mut places: &[u32] = &[];
    if let Op::Call(call) = &node.op {
        places = call.updates().unwrap_or_default();
    } else if let Op::Mark(Mark::Update) = node.op {
        places = &[1];
    }
    let (inputs, replaced): (Vec<_>, Vec<_>) = {
        let state = node.state();
        let inputs = places.iter().map(|&place| state.inputs.get(place as usize).cloned());
        let replaced = state.replaced.iter().flat_map(|replaced| replaced.iter());
        (inputs.collect(), replaced.map(|own| (own.output as usize, own.former())).collect())
    };
    let mut former: Former = node.avals.iter().map(|_| None).collect();
    for (output, array) in inputs.into_iter().enumerate().chain(replaced) {
        if let Some(former) = former.get_mut(output) {
            *former = array.map(|array| array.before_undone().unwrap_or(array));
        }
    }
    former.iter().any(Option::is_some).then_some(former)
}

/// Gives outputs of a node the values of other arrays where these fit, the others the error, and notes why; says whether
/// the arrays have values.
fn restore(node: &Arc<Node>, former: &Former, error: &Error) -> bool {
    let arrays: Vec<Array> = former.iter().flatten().cloned().collect();
    if node.is_traced() || at_once(&arrays).is_err() {
        return false;
    }
    if arrays.iter().any(|array| !array.is_ready()) {
        return false;
    }
    let fitting = |(former, aval): (&Option<Array>, &Aval)| {
        former.as_ref().filter(|former| former.aval() == aval).and_then(Array::ready)
    };
    let values: Values = former.iter().zip(&node.avals).map(fitting).collect();
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
        state.become_ready(values);
        let undone = Box::new(Undone { error: error.clone(), former: former.clone().into() });
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

    /// Whether trying again does not help by itself: there is no memory, a file is not what it was, a user's operator
    /// or kernel fails, or a device has none.
    pub(super) fn lasts(&self) -> bool {
        if let Error::Failed(error) | Error::Node { error, .. } = self {
            return error.lasts();
        }
        matches!(
            self,
            Error::OutOfMemory { .. }
                | Error::Io { .. }
                | Error::User(_)
                | Error::Unsupported { .. }
        )
    }

    /// The same, saying that updates were undone.
    pub(super) fn with_updates_undone(self) -> Error {
        self.with("; the updates of parameters and state that needed it are undone")
    }

    /// The same, for what was recorded of an update that was undone for it.
    pub(crate) fn of_undone(&self) -> Error {
        self.clone().with("; what is asked for is of an update that was undone for this")
    }

    /// The same with more to say.
    fn with(mut self, more: &str) -> Error {
        if let Error::Index { detail: text, .. }
        | Error::Numeric { detail: text, .. }
        | Error::Io { detail: text, .. }
        | Error::OutOfMemory { what: text, .. }
        | Error::Unsupported { reason: text, .. }
        | Error::User(text) = &mut self
        {
            text.push_str(more);
        }
        self
    }
}
