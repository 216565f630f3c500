//! Tracing a function once and running its graph from then on.

use std::sync::{Arc, Mutex};

use crate::array::scope::{Scope, noting_sizes};
use crate::array::{Array, lock};
use crate::autocast;
use crate::error::{Error, Result};
use crate::eval::undo::is_lost;
use crate::generator;
use crate::graph::{Drawn, Graph};
use crate::holders;
use crate::precision::matmul_precision;
use crate::prim::{Call, Held};
use crate::shape::Aval;
use crate::tree::{Path, Tree};

/// Bytes that the graphs of a function's traces may have. Beyond, the one that was not used for the longest time
/// goes: a function that is called with ever new sizes keeps those of late.
pub const TRACE_BYTES: usize = 32 << 20;

/// A function that runs as one graph; see [`compile`].
pub struct Compiled<F> {
    f: F,
    traces: Mutex<Traces>,
}

/// Traces, the one used last at the end.
#[derive(Default)]
struct Traces {
    list: Vec<Arc<Trace>>,
    bytes: usize,
}

impl Traces {
    /// The trace for these inputs, which is used now.
    fn find(
        &mut self,
        inputs: &[Array],
        leaves: &[(String, Array)],
        settings: &[u64],
    ) -> Option<Arc<Trace>> {
        // Who asks for lines gets them of what was traced before, too: it is traced again.
        let without = holders::wants_lines();
        let fits = |t: &Arc<Trace>| t.fits(inputs, leaves, settings) && (t.has_lines || !without);
        let at = self.list.iter().rposition(fits)?;
        self.list[at..].rotate_left(1);
        self.list.last().cloned()
    }

    fn insert(&mut self, trace: Arc<Trace>) {
        self.bytes += trace.bytes();
        self.list.push(trace);
        while self.bytes > TRACE_BYTES && self.list.len() > 1 {
            self.bytes -= self.list.remove(0).bytes();
        }
    }
}

/// One trace of the function: what it was traced for, and what came out.
struct Trace {
    inputs: Vec<Aval>,
    state: Vec<(String, Aval)>,
    settings: Vec<u64>,
    /// Inputs: arguments, state leaves, random state, captures. Outputs: results, state leaves.
    call: Arc<Call>,
    captures: Vec<Array>,
    results: usize,
    /// How many leaves the state had after the trace.
    leaves: usize,
    /// What the function leaves of the generator's state where it draws random numbers.
    drawn: Option<Drawn>,
    /// Whether the graph alone says how it depends on sizes.
    is_general: bool,
    /// Whether lines were noted when it was traced.
    has_lines: bool,
}

/// Compiles `f`: it is traced at the first call, and again where the avals of its arguments or of
/// its state differ, or the state's settings; every other call only runs the graph.
/// Traces of [`TRACE_BYTES`] are kept.
///
/// The leaves of the state are read at every call and written back after it, and so is the state of
/// the default random generator. Leaves may appear while `f` is traced, as an optimiser's moments
/// do. `f` cannot read values; what else it does besides computing happens only when it is traced.
///
/// # Example
/// ```
/// use cupola::{Array, transform::compile};
/// let count = compile(|total: &mut Array, x: &[Array]| {
///     *total = &*total + &x[0];
///     Ok(vec![&x[0] * 2.0])
/// });
/// let mut total = Array::scalar(1.0f32);
/// let twice = count.call(&mut total, &[Array::scalar(3.0f32)])?;
/// assert_eq!(twice[0].item::<f32>()?, 6.0);
/// assert_eq!(total.item::<f32>()?, 4.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn compile<S: Tree, F: Fn(&mut S, &[Array]) -> Result<Vec<Array>>>(f: F) -> Compiled<F> {
    Compiled { f, traces: Mutex::default() }
}

impl<F> Compiled<F> {
    /// About the bytes of the traces that are kept.
    pub fn bytes(&self) -> usize {
        lock(&self.traces).bytes
    }

    /// How many traces are kept.
    pub fn traces(&self) -> usize {
        lock(&self.traces).list.len()
    }

    /// Shows what the rules of its traces hold that nothing else leads to, for the garbage collector of a binding;
    /// nothing while it is called.
    pub fn held(&self, visit: &mut dyn FnMut(&Held)) {
        let Ok(traces) = self.traces.try_lock() else { return };
        let own = traces.list.iter().filter(|trace| Arc::strong_count(trace) == 1);
        own.for_each(|trace| trace.call.held(visit));
    }

    /// Makes the graph for `inputs` of other sizes from that of a trace, where that alone says what
    /// depends on sizes; whether it could, so that [`Compiled::call`] does not trace again.
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, transform::compile};
    /// let rows = compile(|_: &mut (), x: &[cupola::Array]| Ok(vec![ops::softmax(&x[0], -1)?]));
    /// rows.call(&mut (), &[ops::ones([2, 3], DType::F32)?])?;
    /// let other = [ops::ones([4, 5], DType::F32)?];
    /// assert!(rows.fit(&mut (), &other));
    /// assert_eq!(rows.call(&mut (), &other)?[0].to_vec::<f32>()?, [0.2; 20]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn fit<S: Tree>(&self, state: &mut S, inputs: &[Array]) -> bool {
        let (leaves, settings) = (distinct_leaves(state), settings(state));
        let mut traces = lock(&self.traces);
        if traces.find(inputs, &leaves, &settings).is_some() {
            return true;
        }
        let without = holders::wants_lines();
        let alike = |t: &&Arc<Trace>| t.settings == settings && (t.has_lines || !without);
        let found = traces.list.iter().filter(alike).find_map(|t| t.with_sizes(inputs, &leaves));
        let is_found = found.is_some();
        found.into_iter().for_each(|trace| traces.insert(Arc::new(trace)));
        is_found
    }

    /// Runs the function on `state`, which it may change, and `inputs`.
    ///
    /// # Errors
    /// Where `f` fails under trace; the state is then as before. Failures of the computation itself
    /// show when a result is evaluated.
    pub fn call<S: Tree>(&self, state: &mut S, inputs: &[Array]) -> Result<Vec<Array>>
    where
        F: Fn(&mut S, &[Array]) -> Result<Vec<Array>>,
    {
        let leaves = distinct_leaves(state);
        let settings = settings(state);
        let known = lock(&self.traces).find(inputs, &leaves, &settings);
        let (trace, fresh) = match known {
            Some(trace) => (trace, false),
            None => {
                let trace = Arc::new(self.trace(state, inputs, &leaves, settings)?);
                // A trace that made leaves appear is only right for a state without them, whose
                // structure only a run of `f` itself can change.
                if trace.leaves == leaves.len() {
                    lock(&self.traces).insert(trace.clone());
                }
                (trace, true)
            }
        };
        let random = generator::state();
        let arguments: Vec<&Array> = inputs
            .iter()
            .chain(leaves.iter().map(|(_, a)| a))
            .chain([&random])
            .chain(&trace.captures)
            .collect();
        let drawn = trace.drawn.as_ref().map(|drawn| drawn.record(&arguments)).transpose();
        let recorded = drawn.and_then(|drawn| {
            Ok((Array::apply_multi(trace.call.for_inputs(&arguments), &arguments)?, drawn))
        });
        drop(arguments);
        let (mut outputs, drawn) = match recorded {
            Ok(recorded) => recorded,
            Err(error) => {
                if fresh {
                    restore(state, &leaves);
                }
                return Err(error);
            }
        };
        drawn.into_iter().for_each(generator::set_state);
        let mut after = outputs.split_off(trace.results).into_iter();
        each_distinct(state, &mut |path, leaf| {
            let Some(array) = after.next() else { return };
            // What cannot be computed leaves the state as it was; a trace has put what it made into it.
            let former = match fresh {
                true => leaves.iter().find(|(known, _)| known == path).map(|(_, leaf)| leaf),
                false => Some(&*leaf),
            };
            // The leaves that were there are arguments.
            if let Some(former) = former.filter(|former| former.aval() == array.aval()) {
                array.note_former(former);
            }
            *leaf = array;
        });
        Ok(outputs)
    }

    fn trace<S: Tree>(
        &self,
        state: &mut S,
        inputs: &[Array],
        leaves: &[(String, Array)],
        settings: Vec<u64>,
    ) -> Result<Trace>
    where
        F: Fn(&mut S, &[Array]) -> Result<Vec<Array>>,
    {
        let scope = Scope::enter("compile");
        let placeholder = |a: &Array| Array::placeholder(a.aval().clone(), &scope.0);
        let arguments: Vec<Array> = inputs.iter().map(placeholder).collect();
        let held: Vec<Array> = leaves.iter().map(|(_, a)| placeholder(a)).collect();
        let key = placeholder(&generator::state());
        let mut next = held.iter();
        each_distinct(state, &mut |_, leaf| {
            if let Some(tracer) = next.next() {
                *leaf = tracer.clone();
            }
        });
        let ((results, random), noted) =
            noting_sizes(|| generator::with_state(key.clone(), || (self.f)(state, &arguments)));
        let results = match results {
            Ok(results) => results,
            Err(error) => {
                restore(state, leaves);
                return Err(error);
            }
        };
        let after = distinct_leaves(state);
        if after.len() < leaves.len() {
            restore(state, leaves);
            return Err(Error::argument(
                "compile",
                format!("the function removed leaves of its state: {} are left", after.len()),
            ));
        }
        let (count, leaf_count) = (results.len(), after.len());
        let random = Some(random).filter(|random| !random.same(&key));
        let outputs: Vec<Array> =
            results.into_iter().chain(after.into_iter().map(|(_, a)| a)).collect();
        let placeholders: Vec<Array> = arguments.into_iter().chain(held).chain([key]).collect();
        let drawn = random.map(|state| Drawn::new(&placeholders, state, &scope.0)).transpose()?;
        let (graph, captures) = Graph::from_trace(&placeholders, &outputs, &scope.0)?;
        Ok(Trace {
            inputs: inputs.iter().map(|a| a.aval().clone()).collect(),
            state: leaves.iter().map(|(p, a)| (p.clone(), a.aval().clone())).collect(),
            settings,
            call: Call::new("compiled", Arc::new(graph), None),
            results: count,
            leaves: leaf_count,
            has_lines: holders::wants_lines(),
            // What was recorded of nothing traced, and is not computed, may have been made for this.
            is_general: !noted
                && drawn.as_ref().is_none_or(|drawn| drawn.is_general)
                && captures.iter().all(Array::is_ready),
            drawn,
            captures,
        })
    }
}

impl Trace {
    /// About the memory of its graph.
    fn bytes(&self) -> usize {
        self.call.body.memory()
    }

    /// This trace for arguments, and state, of other sizes.
    fn with_sizes(&self, inputs: &[Array], leaves: &[(String, Array)]) -> Option<Trace> {
        let known = self.inputs.len() == inputs.len()
            && self.state.len() == leaves.len()
            && self.state.iter().zip(leaves).all(|((p, _), (q, _))| p == q);
        if !self.is_general || !known {
            return None;
        }
        let given = inputs.iter().chain(leaves.iter().map(|(_, a)| a)).map(Array::aval);
        let rest: Vec<&Aval> =
            self.call.body.input_avals().skip(inputs.len() + leaves.len()).collect();
        let avals: Vec<&Aval> = given.chain(rest).collect();
        Some(Trace {
            inputs: inputs.iter().map(|a| a.aval().clone()).collect(),
            state: leaves.iter().map(|(p, a)| (p.clone(), a.aval().clone())).collect(),
            settings: self.settings.clone(),
            call: Call::new("compiled", Arc::new(self.call.body.with_sizes(&avals)?), None),
            captures: self.captures.clone(),
            results: self.results,
            leaves: self.leaves,
            drawn: self.drawn.clone(),
            is_general: true,
            has_lines: self.has_lines,
        })
    }

    fn fits(&self, inputs: &[Array], leaves: &[(String, Array)], settings: &[u64]) -> bool {
        self.inputs.len() == inputs.len()
            && self.settings == settings
            && self.state.len() == leaves.len()
            && self.inputs.iter().zip(inputs).all(|(aval, a)| aval == a.aval())
            && self.state.iter().zip(leaves).all(|((p, aval), (q, a))| p == q && aval == a.aval())
            && !self.captures.iter().any(is_lost)
    }
}

/// Puts the leaves that `state` had before a trace back; leaves that appeared keep what the trace
/// gave them, which a caller must not read.
fn restore(state: &mut impl Tree, leaves: &[(String, Array)]) {
    each_distinct(state, &mut |path, leaf| {
        if let Some((_, array)) = leaves.iter().find(|(p, _)| p == path) {
            *leaf = array.clone();
        }
    });
}

/// Every leaf once, also where it is tied.
fn each_distinct(state: &mut impl Tree, f: &mut dyn FnMut(&str, &mut Array)) {
    let mut seen = Vec::new();
    state.visit_mut(&mut Path::default(), &mut |leaf, array| {
        if let Some(identity) = leaf.identity {
            if seen.contains(&identity) {
                return;
            }
            seen.push(identity);
        }
        f(leaf.path, array);
    });
}

fn settings(state: &impl Tree) -> Vec<u64> {
    let mut settings = vec![matmul_precision() as u64];
    autocast::signature(&mut settings);
    state.visit_settings(&mut |setting| settings.push(setting));
    settings
}

fn distinct_leaves(state: &mut impl Tree) -> Vec<(String, Array)> {
    let mut leaves = Vec::new();
    each_distinct(state, &mut |path, array| leaves.push((path.to_owned(), array.clone())));
    leaves
}
