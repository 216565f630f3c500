//! Operations made of several primitives that are recorded as one node, as they come in every step of a
//! program: what they are made of is traced once for each form of their inputs, and so are their cotangents.
//! A plan puts the bodies in place and merges what is in both, so it is the same as without.
//!
//! Where a function is traced for others than the inputs at hand (`compile`, `vmap`, exports), primitives are
//! recorded one by one: then a graph can be made for other sizes.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use super::Call;
use crate::array::Array;
use crate::array::scope::{Scope, apart_from_sizes};
use crate::autocast;
use crate::error::Result;
use crate::fork;
use crate::graph::Graph;
use crate::ops;
use crate::prim::key::Mixer;
use crate::prim::{Op, Reverse, Tangents};
use crate::shape::Aval;
use crate::transform::rules;

/// How many bodies are kept; when there are more, all are forgotten.
const MOST: usize = 1024;

/// A body, and what it was traced for.
struct Entry {
    name: &'static str,
    parameters: SmallVec<[u64; 4]>,
    avals: SmallVec<[Aval; 3]>,
    call: Arc<Call>,
}

/// Bodies by a hash of what they were traced for.
#[derive(Default)]
struct Known {
    entries: HashMap<u64, SmallVec<[Entry; 1]>, BuildHasherDefault<Mixer>>,
    count: usize,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// Forgets all bodies.
pub(crate) fn clear() {
    let former = fork::lock(&KNOWN).take();
    drop(former);
}

/// Records what `f` does with `inputs`, as one node where that says as much. The name and `parameters` stand for
/// all else that it depends on, but for the avals of the inputs.
pub(crate) fn as_one(
    name: &'static str,
    parameters: &[u64],
    inputs: &[&Array],
    f: impl FnOnce(&[Array]) -> Result<Array>,
) -> Result<Array> {
    let mut all = all_as_one(name, parameters, inputs, &[], |given| Ok(vec![f(given)?]))?;
    Ok(all.swap_remove(0))
}

/// Records what `f` does with `inputs` as one node where that says as much: of its results all are computed where
/// somebody holds one. The name and `parameters` stand for all else that `f` depends on, but for the shapes and
/// dtypes of the inputs; it is not called for what it was called for before. For an [update](crate::ops::update),
/// `updates` says which input each result takes the place of.
///
/// # Errors
/// Where `f` fails.
pub fn all_as_one(
    name: &'static str,
    parameters: &[u64],
    inputs: &[&Array],
    updates: &[u32],
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
) -> Result<Vec<Array>> {
    if autocast::is_on() || inputs.iter().any(|input| input.is_symbolic()) {
        let given: SmallVec<[Array; 4]> = inputs.iter().map(|&input| input.clone()).collect();
        let mut all = f(&given)?;
        for (output, &place) in all.iter_mut().zip(updates) {
            *output = ops::update(output, &given[place as usize])?;
        }
        return Ok(all);
    }
    let mut hasher = Mixer::default();
    (name, parameters).hash(&mut hasher);
    inputs.iter().for_each(|input| input.aval().hash(&mut hasher));
    let bucket = hasher.finish();
    let is_same = |entry: &&Entry| {
        entry.name == name
            && entry.parameters[..] == *parameters
            && entry.avals.len() == inputs.len()
            && entry.avals.iter().zip(inputs).all(|(aval, input)| aval == input.aval())
    };
    let known = {
        let known = fork::lock(&KNOWN);
        let entries = known.as_ref().and_then(|known| known.entries.get(&bucket));
        entries.and_then(|all| all.iter().find(is_same)).map(|entry| entry.call.clone())
    };
    let call = match known {
        Some(call) => call,
        None => {
            let avals: SmallVec<[Aval; 3]> = inputs.iter().map(|i| i.aval().clone()).collect();
            let body = traced(&avals, f)?;
            let call = Call::recorded_often(name, Arc::new(body), updates);
            let parameters = SmallVec::from_slice(parameters);
            insert(bucket, Entry { name, parameters, avals, call: call.clone() });
            call
        }
    };
    Array::apply_multi(Op::Call(call), inputs)
}

fn insert(bucket: u64, entry: Entry) {
    let mut guard = fork::lock(&KNOWN);
    let known = guard.get_or_insert_default();
    let former = (known.count >= MOST).then(|| std::mem::take(known));
    known.count += 1;
    known.entries.entry(bucket).or_default().push(entry);
    drop(guard);
    drop(former);
}

/// What `f` does with inputs of these avals.
fn traced(avals: &[Aval], f: impl FnOnce(&[Array]) -> Result<Vec<Array>>) -> Result<Graph> {
    let scope = Scope::enter("as_one");
    let given: SmallVec<[Array; 4]> =
        avals.iter().map(|aval| Array::placeholder(aval.clone(), &scope.0)).collect();
    let outputs = apart_from_sizes(|| f(&given))?;
    let (graph, captures) = Graph::from_record(&given, &outputs)?;
    debug_assert!(captures.is_empty(), "what is recorded as one depends on its inputs alone");
    Ok(graph.without_lines())
}

/// The cotangents of a call's inputs, each a call of its own: one that nobody holds is then not computed for
/// the sake of the others.
#[derive(Default)]
pub(super) struct Cotangents(Mutex<Vec<(Which, Option<Cotangent>)>>);

/// The input of a cotangent, and which outputs have one, as bits.
type Which = (usize, u64);

#[derive(Clone)]
struct Cotangent {
    call: Arc<Call>,
    /// What of the inputs, and of the outputs' cotangents behind them, it depends on.
    uses: SmallVec<[usize; 4]>,
}

impl Cotangents {
    /// What the rules of the body give, where there is a form for it.
    pub fn of(&self, call: &Call, r: &Reverse<'_>) -> Result<Option<Tangents>> {
        let given: SmallVec<[&Array; 8]> =
            r.inputs.iter().chain(r.cotangents.iter().flatten()).collect();
        if r.cotangents.len() > 64 || given.iter().any(|array| array.is_symbolic()) {
            return Ok(None);
        }
        let bits = r.cotangents.iter().enumerate();
        let bits = bits.fold(0, |bits, (i, ct)| bits | u64::from(ct.is_some()) << i);
        let one = |(index, &wanted): (usize, &bool)| {
            if !wanted {
                return Ok(None);
            }
            let Some(cotangent) = self.known_or((index, bits), || trace(call, r, index))? else {
                return Ok(None);
            };
            let inputs: SmallVec<[&Array; 8]> =
                cotangent.uses.iter().map(|&place| given[place]).collect();
            Ok(Array::apply_multi(Op::Call(cotangent.call), &inputs)?.pop())
        };
        r.wanted.iter().enumerate().map(one).collect::<Result<_>>().map(Some)
    }

    fn known_or(
        &self,
        which: Which,
        trace: impl FnOnce() -> Result<Option<Cotangent>>,
    ) -> Result<Option<Cotangent>> {
        let found = fork::lock(&self.0).iter().find(|(own, _)| *own == which).cloned();
        if let Some((_, cotangent)) = found {
            return Ok(cotangent);
        }
        let cotangent = trace()?;
        fork::lock(&self.0).push((which, cotangent.clone()));
        Ok(cotangent)
    }
}

/// The cotangent of input `index`; none where it is zero.
fn trace(call: &Call, r: &Reverse<'_>, index: usize) -> Result<Option<Cotangent>> {
    let given = r.inputs.iter().chain(r.cotangents.iter().flatten());
    let avals: Vec<Aval> = given.map(|array| array.aval().clone()).collect();
    let is_zero = Cell::new(false);
    let body = traced(&avals, |given| {
        let (inputs, behind) = given.split_at(r.inputs.len());
        let mut behind = behind.iter();
        let next = |ct: &Option<Array>| ct.as_ref().and_then(|_| behind.next().cloned());
        let cotangents: Vec<Option<Array>> = r.cotangents.iter().map(next).collect();
        let wanted: Vec<bool> = (0..inputs.len()).map(|input| input == index).collect();
        let mut found = rules::vjp_body(&call.body, inputs, &cotangents, &wanted)?;
        let own = found.swap_remove(index);
        is_zero.set(own.is_none());
        Ok(own.into_iter().collect())
    })?;
    if is_zero.get() {
        return Ok(None);
    }
    let (body, uses) = body.without_unused_inputs();
    Ok(Some(Cotangent { call: Call::recorded_often(call.name, Arc::new(body), &[]), uses }))
}
