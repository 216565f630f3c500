//! Between arrays and graphs: a traced function becomes a graph, a graph is recorded again.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Graph, Line, Node, Ref};
use crate::array::scope::{Scope, noting_sizes};
use crate::array::{Array, Inputs};
use crate::error::{Error, Result};
use crate::prim::key::Mixer;
use crate::prim::{KernelOp, Movement, Op, Sizes};
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
    /// Whether nothing that it did depends on the sizes of its arguments but by the rules of what it
    /// recorded, so that [`Graph::with_sizes`] may be asked.
    pub is_general: bool,
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
    /// assert!(traced.captures.is_empty() && traced.is_general);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn trace(
        arguments: &[Aval],
        f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    ) -> Result<Traced> {
        let scope = Scope::enter("export");
        let given: Vec<Array> =
            arguments.iter().map(|aval| Array::placeholder(aval.clone(), &scope.0)).collect();
        let (outputs, noted) = noting_sizes(|| f(&given));
        let (graph, mut captures) = Graph::from_trace(&given, &outputs?, &scope.0)?;
        let mut is_general = !noted;
        for capture in &mut captures {
            is_general = is_general && settled(capture)?;
        }
        let graph = graph.unrepeated(arguments.len(), &mut captures);
        Ok(Traced { graph, captures, is_general })
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
        Graph::of_tape(placeholders, outputs, tape(outputs, scope))
    }

    /// The graph of all that was recorded for `outputs`, down to the placeholders and to arrays that
    /// are there, which become further inputs and are given second.
    pub(crate) fn from_record(
        placeholders: &[Array],
        outputs: &[Array],
    ) -> Result<(Graph, Vec<Array>)> {
        Graph::of_tape(placeholders, outputs, tape_where(outputs, |a| !a.is_ready()))
    }

    fn of_tape(
        placeholders: &[Array],
        outputs: &[Array],
        tape: Vec<(Array, Inputs)>,
    ) -> Result<(Graph, Vec<Array>)> {
        let mut graph = Graph::default();
        let mut captures = Vec::new();
        let mut places: ById<Handle, Ref> = ById::default();
        for placeholder in placeholders {
            places.insert(handle(placeholder), graph.input(placeholder.aval().clone()));
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

/// Computes what was recorded of nothing traced, if its sizes are its own; says whether they are: else it may have
/// been made for the sizes at hand.
fn settled(capture: &mut Array) -> Result<bool> {
    if capture.is_ready() {
        return Ok(true);
    }
    let mut repeated = None;
    if let Op::Movement(movement @ Movement::Broadcast(_)) = &capture.node.op {
        let inner = capture.node.state().inputs.first().cloned();
        repeated = inner.map(|inner| (movement.clone(), inner));
    }
    let inner = repeated.as_ref().map_or(&*capture, |(_, inner)| inner);
    if !has_own_sizes(inner) {
        return Ok(false);
    }
    inner.eval()?;
    let Some((movement, inner)) = repeated else { return Ok(true) };
    // What it repeats is kept, and repeated as often as what it meets says.
    let view = inner.view(&movement, capture.aval());
    let is_there = view.is_some();
    *capture = view.unwrap_or_else(|| capture.clone());
    Ok(is_there)
}

/// Whether the sizes of an array follow from those of arrays that are there.
fn has_own_sizes(array: &Array) -> bool {
    let mut seen: ById<usize, ()> = ById::default();
    let mut stack = vec![array.clone()];
    while let Some(array) = stack.pop() {
        if array.is_ready() || seen.insert(handle(&array).0, ()).is_some() {
            continue;
        }
        let inputs = array.node.state().inputs.clone();
        match array.node.op.facts().sizes {
            // A number takes the sizes of what it meets.
            Sizes::Elementwise => {
                let before = stack.len();
                let is_number = |input: &&Array| matches!(input.node.op, Op::Constant(_));
                stack.extend(inputs.iter().filter(|input| !is_number(input)).cloned());
                if stack.len() == before {
                    return false;
                }
            }
            Sizes::Inferred => stack.extend(inputs),
            Sizes::Fixed if matches!(array.node.op, Op::Movement(_) | Op::Call(_)) => {
                stack.extend(inputs);
            }
            Sizes::Number if array.aval().shape.rank() == 0 => {}
            Sizes::Given | Sizes::Number | Sizes::Repeated | Sizes::Bodies | Sizes::Fixed => {
                return false;
            }
        }
    }
    true
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
