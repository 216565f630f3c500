//! Between arrays and graphs: a traced function becomes a graph, a graph is recorded again.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Graph, Line, Node, Ref};
use crate::array::scope::{Scope, ScopeGuard, recording_views};
use crate::array::{Array, Inputs};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::prim::key::Mixer;
use crate::prim::{Constant, KernelOp, Movement, Op};
use crate::shape::Aval;

/// A handle's identity.
pub(crate) type Handle = (usize, u32);

/// Something for each of what is told apart by small numbers or addresses.
pub(crate) type ById<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// The identity of what `array` is a handle on.
pub(crate) fn handle(array: &Array) -> Handle {
    (Arc::as_ptr(&array.node) as usize, array.output)
}

/// The nodes between `outputs` and the inputs of `scope`, each after its inputs, with their inputs
/// at this moment.
pub(crate) fn tape(outputs: &[Array], scope: &Scope) -> Vec<(Array, Inputs)> {
    tape_where(outputs, |a| a.node.scopes.as_ref().is_some_and(|m| m.contains(scope)))
}

/// The nodes between `outputs` and what is not `on_tape`.
pub(crate) fn tape_where(
    outputs: &[Array],
    on_tape: impl Fn(&Array) -> bool,
) -> Vec<(Array, Inputs)> {
    let mut done: ById<usize, ()> = ById::default();
    let mut tape = Vec::new();
    let mut stack: Vec<(Array, Option<Inputs>)> =
        outputs.iter().rev().filter(|a| on_tape(a)).map(|a| (a.clone(), None)).collect();
    while let Some((array, inputs)) = stack.pop() {
        let id = Arc::as_ptr(&array.node) as usize;
        if done.contains_key(&id) {
            continue;
        }
        match inputs {
            Some(inputs) => {
                done.insert(id, ());
                tape.push((array, inputs));
            }
            None => {
                let inputs = array.node.state().inputs.clone();
                let next: Vec<_> = inputs.iter().rev().filter(|a| on_tape(a)).cloned().collect();
                stack.push((array, Some(inputs)));
                stack.extend(next.into_iter().map(|a| (a, None)));
            }
        }
    }
    tape
}

/// A function as a graph.
pub struct Traced {
    /// What it computes of its arguments, and of its captures, which are the last inputs.
    pub graph: Graph,
    /// The arrays that it uses besides its arguments.
    pub captures: Vec<Array>,
}

/// A function as a graph for each of several lists of sizes.
pub struct TracedAt {
    /// What it computes of its arguments, and of the captures, which are the last inputs.
    pub graphs: Vec<Graph>,
    /// The arrays that all graphs use besides their arguments.
    pub captures: Vec<Array>,
    /// The graphs for what was tried; none where the function failed.
    pub tried: Vec<Option<Graph>>,
}

/// Arrays of so many numbers, which are others for other sizes, are written down number by number.
const MOST_WRITTEN: usize = 32;

fn is_written(aval: &Aval) -> bool {
    let of_numbers = aval.dtype.is_float() || aval.dtype.is_integer() && aval.dtype != DType::U64;
    of_numbers && (1..=MOST_WRITTEN).contains(&aval.shape.size())
}

/// What a function gave for some sizes.
struct Sample {
    given: Vec<Array>,
    outputs: Vec<Array>,
    scope: ScopeGuard,
    /// What it takes besides what it was given.
    captures: Vec<Array>,
}

impl Sample {
    /// The graph, which computes what is made anew for the sizes of `other`. The arrays that it takes are `captures`,
    /// where these are known.
    fn graph(&self, other: Option<&Sample>, captures: &mut Option<Vec<Array>>) -> Result<Graph> {
        let (mut inner, mut written): (ById<usize, ()>, Vec<Array>) = Default::default();
        let others = other.map_or(&[][..], |other| &other.captures);
        let mut write = |array: &Array| {
            let is_known = written.iter().any(|known| known.same(array));
            if !is_known && array.is_ready() && is_written(array.aval()) {
                written.push(array.clone());
            }
        };
        let leaves = |array: &Array| Graph::from_record(&[], std::slice::from_ref(array));
        for (number, capture) in self.captures.iter().enumerate() {
            let other = others.get(number);
            if other.is_some_and(|other| is_alike(capture, other)) {
                continue;
            }
            let made = tape_where(std::slice::from_ref(capture), |a| !a.is_ready());
            inner.extend(made.iter().map(|(array, _)| (handle(array).0, ())));
            let theirs = other.map(leaves).transpose()?.unwrap_or_default().1;
            for (number, leaf) in leaves(capture)?.1.iter().enumerate() {
                if theirs.get(number).is_none_or(|other| !is_alike(leaf, other)) {
                    write(leaf);
                }
            }
        }
        let Sample { given, outputs, scope, .. } = self;
        let is_traced = |a: &Array| a.node.scopes.as_ref().is_some_and(|m| m.contains(&scope.0));
        let tape = tape_where(outputs, |a| is_traced(a) || inner.contains_key(&handle(a).0));
        let (graph, mut own) = Graph::of_tape(given, outputs, tape, &written)?;
        settle(&mut own);
        let graph = graph.unrepeated(given.len(), &mut own);
        let known = captures.get_or_insert_with(|| own.clone());
        let differs = known.iter().zip(&own).find(|(a, b)| !is_alike(a, b));
        if differs.is_none() && known.len() == own.len() {
            return Ok(graph);
        }
        let shown = differs.map_or_else(String::new, |(a, b)| {
            format!(": {} for some, {} for others", a.aval(), b.aval())
        });
        let text = format!("the function uses other arrays for other sizes{shown}");
        Err(Error::argument("export", text))
    }
}

impl Graph {
    /// What `f` does with arguments of these avals.
    ///
    /// # Errors
    /// Where `f` fails, or reads an argument.
    ///
    /// # Example
    /// ```
    /// use cupola::{Aval, DType, graph::Graph, ops};
    /// let x = Aval::new([2, 3], DType::F32);
    /// let traced = Graph::trace(&[x], |x| Ok(vec![ops::exp(&x[0])?]))?;
    /// assert_eq!(traced.graph.nodes.len(), 2);
    /// assert!(traced.captures.is_empty());
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn trace(
        arguments: &[Aval],
        f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    ) -> Result<Traced> {
        let scope = Scope::enter("export");
        let given: Vec<Array> =
            arguments.iter().map(|aval| Array::placeholder(aval.clone(), &scope.0)).collect();
        let outputs = f(&given)?;
        let (graph, mut captures) = Graph::from_trace(&given, &outputs, &scope.0)?;
        settle(&mut captures);
        let graph = graph.unrepeated(arguments.len(), &mut captures);
        Ok(Traced { graph, captures })
    }

    /// What `f` does with arguments of each of these lists of avals, of which the last has none of the others' sizes
    /// wherever sizes differ; and with those of `tried`, where it takes them. Beside the arguments the graphs take the
    /// same arrays, in the same order: what `f` makes of nothing that it was given, and another each time, they compute.
    ///
    /// # Errors
    /// Where `f` fails, or reads an argument; where it uses other arrays for other sizes that are there already.
    ///
    /// # Example
    /// ```
    /// use cupola::{Aval, DType, graph::Graph, ops};
    /// let of = |n| vec![Aval::new([n], DType::F32)];
    /// let traced = Graph::trace_at(&[of(5), of(6)], &[of(1)], |x| {
    ///     let places = ops::arange(0, x[0].shape()[0], 1)?;
    ///     Ok(vec![&x[0] + &places])
    /// })?;
    /// assert_eq!(traced.graphs.len(), 2);
    /// assert!(traced.tried[0].is_some() && traced.captures.is_empty());
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn trace_at(
        points: &[Vec<Aval>],
        tried: &[Vec<Aval>],
        mut f: impl FnMut(&[Array]) -> Result<Vec<Array>>,
    ) -> Result<TracedAt> {
        let mut trace = |avals: &Vec<Aval>| {
            let scope = Scope::enter("export");
            let placeholder = |aval: &Aval| Array::placeholder(aval.clone(), &scope.0);
            let given: Vec<Array> = avals.iter().map(placeholder).collect();
            // Operators panic where arrays do not fit, which those of other sizes than the caller's may not.
            let run = || recording_views(|| f(&given));
            let outputs = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
                let text = format!("the function panicked for {avals:?}");
                Err(Error::argument("export", text))
            })?;
            let captures = Graph::from_trace(&given, &outputs, &scope.0)?.1;
            Ok::<_, Error>(Sample { given, outputs, scope, captures })
        };
        let samples = points.iter().map(&mut trace).collect::<Result<Vec<_>>>()?;
        let more: Vec<Option<Sample>> = tried.iter().map(|avals| trace(avals).ok()).collect();
        let mut captures = None;
        // Each differs from the last one, and that from the first.
        let (first, last) = (samples.first(), samples.last());
        let other = |own: &Sample| last.filter(|last| !std::ptr::eq(*last, own)).or(first);
        let mut graph = |own: &Sample| own.graph(other(own), &mut captures);
        let graphs = samples.iter().map(&mut graph).collect::<Result<_>>()?;
        let tried = more.iter().map(|own| own.as_ref().map(&mut graph).transpose());
        let tried = tried.collect::<Result<_>>()?;
        Ok(TracedAt { graphs, captures: captures.unwrap_or_default(), tried })
    }

    /// The same graph, in which the inputs behind the first `own` that are `captures` which repeat elements are
    /// given once, and repeated by the graph: so they take no more room than they hold, and can be repeated to
    /// other sizes.
    fn unrepeated(self, own: usize, captures: &mut [Array]) -> Graph {
        let mut out = Graph::default();
        let mut places: Vec<u32> = Vec::with_capacity(self.nodes.len());
        let mut inputs = 0;
        for node in self.nodes {
            let at = |r: &Ref| Ref { node: places[r.node as usize], output: r.output };
            if !node.op.is_input() {
                let inputs = node.inputs.iter().map(at).collect();
                out.nodes.push(Node { inputs, ..node });
            } else {
                let capture =
                    captures.get_mut(usize::checked_sub(inputs, own).unwrap_or(usize::MAX));
                inputs += 1;
                match capture.and_then(|capture| Some((capture.unrepeated()?, capture))) {
                    Some((small, capture)) => {
                        let input = out.input(small.aval().clone());
                        let op = Movement::Broadcast(node.outputs[0].shape.clone()).into();
                        let inputs = SmallVec::from_slice(&[input]);
                        out.nodes.push(Node { op, inputs, outputs: node.outputs, line: node.line });
                        *capture = small;
                    }
                    None => drop(out.input(node.outputs[0].clone())),
                }
            }
            places.push(out.nodes.len() as u32 - 1);
        }
        let at = |r: &Ref| Ref { node: places[r.node as usize], output: r.output };
        out.outputs = self.outputs.iter().map(at).collect();
        out
    }

    /// The graph of a traced function, from its placeholders and what it returned. What does not
    /// depend on the placeholders becomes further inputs, which are given second.
    pub(crate) fn from_trace(
        placeholders: &[Array],
        outputs: &[Array],
        scope: &Scope,
    ) -> Result<(Graph, Vec<Array>)> {
        Graph::of_tape(placeholders, outputs, tape(outputs, scope), &[])
    }

    /// The graph of all that was recorded for `outputs`, down to the placeholders and to arrays that
    /// are there, which become further inputs and are given second.
    pub(crate) fn from_record(
        placeholders: &[Array],
        outputs: &[Array],
    ) -> Result<(Graph, Vec<Array>)> {
        Graph::of_tape(placeholders, outputs, tape_where(outputs, |a| !a.is_ready()), &[])
    }

    fn of_tape(
        placeholders: &[Array],
        outputs: &[Array],
        tape: Vec<(Array, Inputs)>,
        written: &[Array],
    ) -> Result<(Graph, Vec<Array>)> {
        let mut graph = Graph::default();
        let mut captures = Vec::new();
        let mut places: ById<Handle, Ref> = ById::default();
        for placeholder in placeholders {
            places.insert(handle(placeholder), graph.input(placeholder.aval().clone()));
        }
        for array in written {
            places.insert(handle(array), graph.constants(array)?);
        }
        for (array, inputs) in tape {
            if places.contains_key(&(handle(&array).0, 0)) {
                continue;
            }
            let refs: SmallVec<[Ref; 3]> =
                inputs.iter().map(|i| place(&mut graph, &mut places, &mut captures, i)).collect();
            let node = graph.nodes.len() as u32;
            let avals = array.node.avals.clone();
            for output in 0..avals.len() as u32 {
                places.insert((handle(&array).0, output), Ref { node, output });
            }
            let (op, line) = (array.node.op.clone(), Line(array.node.line.clone()));
            graph.nodes.push(Node { op, inputs: refs, outputs: avals, line });
        }
        graph.outputs =
            outputs.iter().map(|o| place(&mut graph, &mut places, &mut captures, o)).collect();
        Ok((graph, captures))
    }

    /// An array that is there, number by number.
    fn constants(&mut self, array: &Array) -> Result<Ref> {
        let Aval { shape, dtype } = array.aval();
        let values: Vec<Scalar> = match dtype.is_integer() {
            true => {
                let values = crate::ops::astype(array, DType::I64)?.to_vec::<i64>()?;
                values.into_iter().map(Scalar::Int).collect()
            }
            false => {
                let values = crate::ops::astype(array, DType::F64)?.to_vec::<f64>()?;
                values.into_iter().map(Scalar::Float).collect()
            }
        };
        let aval = Aval::new([1], *dtype);
        let mut parts: SmallVec<[Ref; 4]> = SmallVec::new();
        for value in values {
            let constant = Constant { value, aval: aval.clone() };
            parts.push(Ref { node: self.push(constant, &[])?, output: 0 });
        }
        let joined = self.push(Movement::Concatenate { axis: 0 }, &parts)?;
        let joined = Ref { node: joined, output: 0 };
        let node = self.push(Movement::Reshape(shape.clone()), &[joined])?;
        Ok(Ref { node, output: 0 })
    }

    /// Records this graph on `inputs`; gives its outputs.
    ///
    /// # Errors
    /// Where the inputs are not of the graph's input avals.
    pub fn replay(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let values = self.replay_all(inputs)?;
        Ok(self
            .outputs
            .iter()
            .map(|r| values[r.node as usize][r.output as usize].clone())
            .collect())
    }

    /// Records this graph on `inputs`; gives every node's outputs.
    pub(crate) fn replay_all(&self, inputs: &[Array]) -> Result<Vec<Vec<Array>>> {
        self.replay_with(inputs, &ById::default())
    }

    /// Records this graph on `inputs` but for what is `known`; gives every node's outputs.
    pub(crate) fn replay_with(
        &self,
        inputs: &[Array],
        known: &ById<Ref, Array>,
    ) -> Result<Vec<Vec<Array>>> {
        self.check_inputs(inputs)?;
        let mut given = inputs.iter();
        let mut values: Vec<Vec<Array>> = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            if node.op.is_input() {
                values.push(given.next().cloned().into_iter().collect());
                continue;
            }
            let place = |output| Ref { node: index as u32, output };
            let there: Option<Vec<Array>> =
                (0..node.outputs.len() as u32).map(|o| known.get(&place(o)).cloned()).collect();
            if let Some(there) = there {
                values.push(there);
                continue;
            }
            let outputs = {
                let value = |r: &Ref| &values[r.node as usize][r.output as usize];
                let args: SmallVec<[&Array; 4]> = node.inputs.iter().map(value).collect();
                Array::apply_multi(node.op.clone(), &args)?
            };
            values.push(outputs);
        }
        Ok(values)
    }

    fn check_inputs(&self, inputs: &[Array]) -> Result<()> {
        let want: Vec<&Aval> = self.input_avals().collect();
        let fits = want.len() == inputs.len()
            && want.iter().zip(inputs).all(|(want, have)| *want == have.aval());
        if fits {
            return Ok(());
        }
        let have: Vec<&Aval> = inputs.iter().map(Array::aval).collect();
        Err(Error::shape("graph", format!("takes inputs {want:?}, was given {have:?}")))
    }
}

/// Whether two arrays hold the same: one array, the same work on such, or the same numbers.
fn is_alike(a: &Array, b: &Array) -> bool {
    if a.same(b) {
        return true;
    }
    if a.aval() != b.aval() || a.is_ready() != b.is_ready() {
        return false;
    }
    if a.is_ready() {
        let bytes = |array: &Array| array.to_bytes().ok();
        return bytes(a).is_some_and(|a| Some(a) == bytes(b));
    }
    let made = |array: &Array| Graph::from_record(&[], std::slice::from_ref(array)).ok();
    match (made(a), made(b)) {
        (Some((one, ones)), Some((other, others))) => {
            one == other && ones.iter().zip(&others).all(|(a, b)| is_alike(a, b))
        }
        (None, _) | (_, None) => false,
    }
}

/// A capture that repeats what is there as a view of it: see [`Graph::unrepeated`].
fn settled(capture: &Array) -> Option<Array> {
    let Op::Movement(movement @ Movement::Broadcast(_)) = &capture.node.op else { return None };
    let inner = capture.node.state().inputs.first().cloned()?;
    inner.view(movement, capture.aval())
}

/// Has such captures as views.
fn settle(captures: &mut [Array]) {
    for capture in captures {
        if let Some(view) = settled(capture) {
            *capture = view;
        }
    }
}

/// Where `array` comes from in the graph; a new input if it does not depend on the placeholders.
fn place(
    graph: &mut Graph,
    places: &mut ById<Handle, Ref>,
    captures: &mut Vec<Array>,
    array: &Array,
) -> Ref {
    if let Some(&known) = places.get(&handle(array)) {
        return known;
    }
    let at = match &array.node.op {
        // Made from nothing: part of the graph, not of its inputs.
        op @ (Op::Constant(_) | Op::Kernel(KernelOp::Iota(_))) => {
            let node = graph.nodes.len() as u32;
            let outputs = array.node.avals.clone();
            let line = Line(array.node.line.clone());
            graph.nodes.push(Node { op: op.clone(), inputs: SmallVec::new(), outputs, line });
            Ref { node, output: 0 }
        }
        Op::Input(_)
        | Op::Movement(_)
        | Op::Mark(_)
        | Op::Elementwise(_)
        | Op::Reduce(_)
        | Op::Kernel(_)
        | Op::Composite(_)
        | Op::Call(_)
        | Op::Control(_)
        | Op::Custom(_) => {
            captures.push(array.clone());
            graph.input(array.aval().clone())
        }
    };
    places.insert(handle(array), at);
    at
}
