//! What becomes of updates that cannot be computed: a weight is then what it was before.
//!
//! An index outside its axis, a singular matrix, or that there is no memory shows when a step is computed. By then a
//! program has put the step's results in the place of its weights, and what they were would be out of its reach.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::at_once;
use super::walk::WALK;
use crate::array::{Array, Former, Inputs, Node, Progress, State, Undone};
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
    if !error.is_of_values() {
        let held = nodes.iter().filter(|(_, is_held)| *is_held);
        let failing = |(node, _): &(Weak<Node>, bool)| {
            let node = node.upgrade()?;
            former(&node).map(|former| Failing { node, former, error: error.clone() })
        };
        return undo_all(held.filter_map(failing).collect());
    }
    let nodes: Vec<Weak<Node>> = nodes.into_iter().map(|(node, _)| node).collect();
    if !nodes.iter().filter_map(Weak::upgrade).any(|node| former(&node).is_some()) {
        return false;
    }
    let mut fails: ById<usize, Option<Error>> = ById::default();
    let mut failing: Vec<Failing> = Vec::new();
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
                let first = is_without_value(input).then(|| input.node.undone.get()).flatten();
                let first = first.map(|undone| undone.error.clone());
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
                Err(_) => return restore(failing),
            };
        }
        if let Some(error) = fail.clone()
            && let Some(former) = former(&node)
        {
            failing.push(Failing { node, former, error });
        }
        fails.insert(id, fail);
    }
    let is_undone = restore(failing);
    // What does not fail would be computed with all that comes, and what is recorded of it grow from one failure to the
    // next.
    let does_fail = |array: &Array| fails.get(&(Arc::as_ptr(&array.node) as usize));
    let rest = arrays.iter().filter(|array| matches!(does_fail(array), Some(None)));
    _ = at_once(&rest.cloned().collect::<Vec<_>>());
    is_undone
}

/// The same of updates where any operation may have failed, as for want of memory: then all of them, together, become
/// what they were. Where that cannot be computed either, what it was before.
fn undo_all(mut updates: Vec<Failing>) -> bool {
    loop {
        let formers: Vec<Array> = updates.iter().flat_map(Failing::formers).collect();
        match at_once(&formers) {
            Ok(()) => break,
            Err(error) if error.is_of_values() || error.lasts() => {}
            // What stops this has nothing to do with the updates.
            Err(_) => return false,
        }
        let mut is_other = false;
        drop(formers);
        let arrays = updates.iter_mut().flat_map(|update| &mut update.former).flatten();
        for array in arrays.filter(|array| !array.is_ready()) {
            let before = former(&array.node).and_then(|all| all[array.output as usize].clone());
            if let Some(before) = before {
                *array = before;
                is_other = true;
            }
        }
        if !is_other {
            return false;
        }
    }
    restore(updates)
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

/// What is not computed under `arrays`, and its updates, inputs first, and whether anything but that has an array of it:
/// as soon as nobody else is at any of it; nothing where the waiting for that is stopped. What is kept here would be kept
/// when it is computed.
fn lazy_nodes(arrays: &[Array]) -> Option<Vec<(Weak<Node>, bool)>> {
    loop {
        let inside = fork::inside();
        let walk = fork::lock(&WALK);
        let tape = tape_with_updates(arrays);
        let pending = tape.iter().find_map(|(array, _)| match &array.node.state().progress {
            Progress::Pending(event) => Some(event.clone()),
            Progress::Lazy | Progress::Ready(_) | Progress::Failed(_) => None,
        });
        let Some(event) = pending else {
            let mut edges: ById<usize, usize> = ById::default();
            for (_, inputs) in &tape {
                for input in inputs {
                    // And the node's own, of which these are a copy.
                    *edges.entry(Arc::as_ptr(&input.node) as usize).or_default() += 2;
                }
            }
            let node = |(array, _): &(Array, Inputs)| {
                let edges = edges.get(&(Arc::as_ptr(&array.node) as usize)).copied();
                let is_held = Arc::strong_count(&array.node) > edges.unwrap_or(0) + 1;
                (Arc::downgrade(&array.node), is_held)
            };
            return Some(tape.iter().map(node).collect());
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

/// Whether it is of an update that was undone, and was nothing before.
fn is_without_value(array: &Array) -> bool {
    array.is_undone() && !array.is_ready()
}

/// The error of a node that was recorded of what was to be beside an update, or to be it in another shape or dtype, where
/// that is undone by now. What was recorded of the update itself is computed of what it was before.
pub(super) fn undone_under(node: &Node, inputs: &[Array]) -> Option<Error> {
    let undone = needed(node, inputs).iter().find(|input| is_without_value(input))?;
    Some(undone.node.undone.get()?.error.of_undone())
}

/// Whether an array that is not computed is of an update that was undone, and so will never be.
pub(crate) fn is_lost(array: &Array) -> bool {
    if !ANY.load(Ordering::Relaxed) {
        return false;
    }
    let is_there = |array: &Array| array.is_ready();
    tape_where(std::slice::from_ref(array), |array| !is_there(array)).iter().any(|(array, _)| {
        let mut inputs = array.node.state().inputs.clone();
        try_again(&mut inputs);
        undone_under(&array.node, &inputs).is_some()
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

/// An update that cannot be computed, what its outputs were before, and why.
struct Failing {
    node: Arc<Node>,
    former: Former,
    error: Error,
}

impl Failing {
    fn formers(&self) -> Vec<Array> {
        self.former.iter().flatten().cloned().collect()
    }

    /// Gives outputs the values of what they were before where these fit, the others the error, and notes why.
    fn restore(&self, state: &mut State) -> Inputs {
        let Failing { node, former, error } = self;
        let fitting = |(former, aval): (&Option<Array>, &Aval)| {
            former.as_ref().filter(|former| former.aval() == aval).and_then(Array::ready)
        };
        state.become_ready(former.iter().zip(&node.avals).map(fitting).collect());
        let inputs = std::mem::take(&mut state.inputs);
        let mut former = former.clone();
        // What is beside an update can be computed when there is memory.
        if former.iter().any(Option::is_none) && !error.is_of_values() {
            let again = node.again(inputs.clone());
            for (former, again) in former.iter_mut().zip(Array::all_of(&again)) {
                former.get_or_insert(again);
            }
        }
        // The first stays, and there is no other: the node was lazy until now.
        _ = node.undone.set(Box::new(Undone { error: error.clone(), former: former.into() }));
        ANY.store(true, Ordering::Relaxed);
        inputs
    }
}

/// What updates were, where that may itself be one of them: then what this was. Inputs come first.
fn before_all(updates: &[Failing]) -> Vec<Former> {
    let mut places: ById<usize, usize> = ById::default();
    let mut formers: Vec<Former> = Vec::with_capacity(updates.len());
    for (place, update) in updates.iter().enumerate() {
        let mut own = update.former.clone();
        for array in own.iter_mut().flatten() {
            let at = places.get(&(Arc::as_ptr(&array.node) as usize));
            if let Some(former) = at.and_then(|&at| formers[at][array.output as usize].clone()) {
                *array = former;
            }
        }
        formers.push(own);
        places.insert(Arc::as_ptr(&update.node) as usize, place);
    }
    formers
}

/// Makes updates what they were, at once for who looks; says whether there were any. Inputs come first.
fn restore(mut updates: Vec<Failing>) -> bool {
    let mut formers = before_all(&updates).into_iter();
    updates.retain(|update| {
        let former: Vec<Array> = formers.next().into_iter().flatten().flatten().collect();
        !update.node.is_traced() && at_once(&former).is_ok()
    });
    loop {
        let inside = fork::inside();
        let walk = fork::lock(&WALK);
        // Another thread may try to compute some, in vain, or have undone them.
        let mut pending = None;
        updates.retain(|update| match &update.node.state().progress {
            Progress::Lazy => true,
            Progress::Pending(event) => {
                pending = Some(event.clone());
                true
            }
            Progress::Ready(_) | Progress::Failed(_) => false,
        });
        let Some(event) = pending else {
            // Of those that another thread computed nothing is taken back.
            let formers = before_all(&updates);
            for (update, former) in updates.iter_mut().zip(formers) {
                update.former = former;
            }
            updates.retain(|update| update.former.iter().flatten().all(Array::is_ready));
            let restored = |update: &Failing| update.restore(&mut update.node.state());
            let inputs: Vec<Inputs> = updates.iter().map(restored).collect();
            drop((walk, inside));
            return !inputs.is_empty();
        };
        drop((walk, inside));
        if event.wait().is_err() {
            return false;
        }
    }
}

/// Takes, in the place of what was beside an update that was undone and can be computed later, that.
pub(super) fn try_again(inputs: &mut Inputs) {
    for input in inputs.iter_mut().filter(|input| is_without_value(input)) {
        match input.before_undone() {
            Some(again) if again.aval() == input.aval() => *input = again,
            _ => {}
        }
    }
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
