//! The walk over what is not computed: what is needed, what is there already, and the plan's key.

use std::hash::Hash;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use super::ahead::Ahead;
use super::{is_free, undo};
use crate::array::{Array, Event, Node, Progress, Value, Values};
use crate::backend::{Buffer, backend, moved};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::graph::{self, Borrowed, NodeRef};
use crate::plan::{Origin, Parameters, Plan};
use crate::prim::key::Key;
use crate::prim::{Argument, Input, Op};
use crate::profile::{self, What};
use crate::shape::Aval;

/// Held while a graph is walked or results are put in place. Holds the number of the last walk.
pub(super) static WALK: Mutex<u32> = Mutex::new(0);

/// In a node's number within a walk: it is a leaf.
const LEAF: u64 = 1 << 31;

/// A node that is to be computed.
pub(super) struct Interior {
    pub node: Arc<Node>,
    inputs: SmallVec<[Source; 2]>,
    /// How many inputs of walked nodes are this node.
    edges: usize,
}

/// Where an input comes from: the index of a leaf or of an interior node, and which output.
#[derive(Clone, Copy)]
struct Source {
    leaf: bool,
    index: u32,
    output: u32,
}

/// A node that is there: those of its outputs that have values are leaves, one after the other.
pub(super) struct Leaf {
    node: Arc<Node>,
    first: u32,
    outputs: SmallVec<[LeafOutput; 1]>,
}

/// A leaf.
struct LeafOutput {
    output: u32,
    /// How many inputs of walked nodes are this output.
    edges: usize,
    /// `None` once it was taken out of the node and handed to the plan.
    value: Option<Value>,
}

impl Leaf {
    fn outputs(values: &Values) -> SmallVec<[LeafOutput; 1]> {
        let leaf = |(output, value): (u32, &Value)| {
            let value = Some(value.clone());
            LeafOutput { output, edges: 0, value }
        };
        values.iter().map(leaf).collect()
    }

    /// The leaf that an input of a walked node is.
    fn edge(&mut self, input: &Array) -> Result<u32> {
        let place = self.outputs.binary_search_by_key(&input.output, |leaf| leaf.output);
        let at = place.map_err(|_| input.lost())?;
        self.outputs[at].edges += 1;
        Ok(self.first + at as u32)
    }

    fn avals(&self) -> impl Iterator<Item = &Aval> {
        self.outputs.iter().map(|leaf| &self.node.avals[leaf.output as usize])
    }

    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.outputs.iter().filter_map(|leaf| leaf.value.as_ref())
    }
}

/// The graph under some arrays.
pub(super) struct Walk {
    pub leaves: Vec<Leaf>,
    leaf_count: u32,
    pub nodes: Vec<Interior>,
    /// The nodes, by index, whose outputs are wanted.
    pub outputs: Vec<u32>,
    key: Key,
}

pub(super) enum Walked {
    Done(Walk),
    /// Something is on its way on a stream: walk again after it.
    Wait(Arc<Event>),
    /// Something is to be computed on another device, or on another stream, first.
    Elsewhere(Array),
}

impl Walk {
    /// Walks over everything under `roots` that is not computed. `mine` is the event of the
    /// evaluation that walks, whose own roots are already marked with it. What is `ahead` counts as computed.
    pub fn over(
        roots: &[Array],
        mine: Option<&Arc<Event>>,
        ahead: &Ahead,
        last: &mut u32,
    ) -> Result<Walked> {
        *last = last.wrapping_add(1).max(1);
        let epoch = u64::from(*last) << 32;
        let visited = |node: &Node| {
            let visit = node.visit.load(Ordering::Relaxed);
            (visit >> 32 << 32 == epoch).then_some(visit & u64::from(u32::MAX))
        };
        // Work that somebody asked for and that no fork left behind.
        let is_others = |event: &Arc<Event>| {
            !event.is_left_behind() && mine.is_none_or(|mine| !Arc::ptr_eq(mine, event))
        };
        let is_there = |input: &Array| input.is_ready() || ahead.has(input);
        let mut walk = Walk {
            leaves: Vec::with_capacity(8),
            leaf_count: 0,
            nodes: Vec::with_capacity(16),
            outputs: Vec::new(),
            key: Key::default(),
        };
        let device = roots.first().map_or(Device::CPU, |r| r.node.stream.device);
        let mut key = Key::with_capacity(512);
        let mut stack: Vec<(Arc<Node>, bool)> =
            roots.iter().rev().map(|r| (r.node.clone(), false)).collect();
        while let Some((node, entered)) = stack.pop() {
            if visited(&node).is_some() {
                continue;
            }
            let mut state = node.state();
            if entered {
                let mut inputs = SmallVec::with_capacity(state.inputs.len());
                node.op.write_key(&mut key);
                let needed = undo::needed(&node, &state.inputs).len();
                // What is replaced counts where it is there.
                let counts = |(place, input): &(usize, &Array)| {
                    *place < needed
                        || visited(&input.node).is_some_and(|at| at & LEAF == 0 || is_there(input))
                };
                let counting = || state.inputs.iter().enumerate().filter(counts);
                key.push(counting().count() as u64);
                for (_, input) in counting() {
                    let Some(at) = visited(&input.node) else { continue };
                    let leaf = at & LEAF != 0;
                    let index = (at & !LEAF) as u32;
                    let source = if leaf {
                        let index = walk.leaves[index as usize].edge(input)?;
                        Source { leaf, index, output: 0 }
                    } else {
                        walk.nodes[index as usize].edges += 1;
                        Source { leaf, index, output: input.output }
                    };
                    key.push(u64::from(source.index) << 1 | u64::from(leaf));
                    key.push(source.output.into());
                    inputs.push(source);
                }
                node.visit.store(epoch | walk.nodes.len() as u64, Ordering::Relaxed);
                drop(state);
                walk.nodes.push(Interior { node, inputs, edges: 0 });
                continue;
            }
            match (&state.progress, ahead.values(&node)) {
                (Progress::Ready(values), _) | (_, Some(values)) => {
                    node.visit.store(epoch | LEAF | walk.leaves.len() as u64, Ordering::Relaxed);
                    let (first, outputs) = (walk.leaf_count, Leaf::outputs(values));
                    walk.leaf_count += outputs.len() as u32;
                    drop(state);
                    walk.leaves.push(Leaf { node, first, outputs });
                }
                (Progress::Failed(error), None) => return Err(Error::Failed(error.clone())),
                (Progress::Pending(event), None) if is_others(event) && !is_free(event) => {
                    return Ok(Walked::Wait(event.clone()));
                }
                // What another stream was given is computed by itself, as that stream's.
                (Progress::Pending(event), None)
                    if is_others(event)
                        && roots.iter().all(|root| root.node.stream != node.stream) =>
                {
                    drop(state);
                    return Ok(Walked::Elsewhere(Array::of(node, 0)));
                }
                (Progress::Lazy | Progress::Pending(_), None) => {
                    if node.op.is_input() {
                        return Err(traced(&node));
                    }
                    undo::try_again(&mut state.inputs);
                    if let Some(error) = undo::undone_under(&node, &state.inputs) {
                        return Err(error);
                    }
                    if node.stream.device != device {
                        drop(state);
                        return Ok(Walked::Elsewhere(Array::of(node, 0)));
                    }
                    let needed = undo::needed(&node, &state.inputs).len();
                    // What is replaced may be there, and its memory be used again.
                    let is_next = |(place, input): &(usize, &Array)| {
                        visited(&input.node).is_none() && (*place < needed || is_there(input))
                    };
                    let updates: SmallVec<[Arc<Node>; 1]> = state.updates().collect();
                    let pending: SmallVec<[Arc<Node>; 4]> = state
                        .inputs
                        .iter()
                        .enumerate()
                        .rev()
                        .filter(is_next)
                        .map(|(_, input)| input.node.clone())
                        .collect();
                    drop(state);
                    // What it becomes is computed with it, or would keep what it takes the place of.
                    let is_along = |update: &Arc<Node>| {
                        let is_lazy = matches!(update.state().progress, Progress::Lazy);
                        let is_lazy = is_lazy && ahead.values(update).is_none();
                        is_lazy && update.stream == node.stream && visited(update).is_none()
                    };
                    stack.extend(updates.into_iter().filter(is_along).map(|n| (n, false)));
                    stack.push((node, true));
                    stack.extend(pending.into_iter().map(|n| (n, false)));
                }
            }
        }
        // What is wanted, and what others hold: a walked node has one handle here and one for each
        // edge, and every further one is somebody else's.
        for root in roots {
            // A root that another thread finished in the meantime is a leaf by now.
            if let Some(at) = visited(&root.node).filter(|at| at & LEAF == 0) {
                walk.outputs.push(at as u32);
            }
        }
        for (index, interior) in walk.nodes.iter().enumerate() {
            if Arc::strong_count(&interior.node) > interior.edges + 1 {
                walk.outputs.push(index as u32);
            }
        }
        walk.outputs.sort_unstable();
        walk.outputs.dedup();
        for leaf in &walk.leaves {
            for (aval, value) in leaf.avals().zip(leaf.values()) {
                aval.hash(&mut key);
                value.layout.strides.hash(&mut key);
            }
        }
        walk.outputs.iter().for_each(|&output| key.push(output.into()));
        key.push(walk.outputs.len() as u64);
        key.push((device.kind as u64) << 16 | u64::from(device.index));
        walk.key = key;
        Ok(Walked::Done(walk))
    }

    /// The plan of the walked graph, whose leaves are `values`.
    pub fn plan<'a>(
        &self,
        device: Device,
        values: impl Iterator<Item = &'a Value>,
    ) -> Result<(Arc<Plan>, bool)> {
        Plan::cached(&self.key, || {
            let backend = backend(device)?;
            let strides: Vec<_> = values.map(|value| value.layout.strides.clone()).collect();
            let avals = self.leaves.iter().flat_map(Leaf::avals);
            let inputs: Vec<Op> =
                avals.map(|aval| Op::Input(Input { aval: aval.clone() })).collect();
            let (start, _range) = (profile::begin(), profile::range("plan"));
            let plan = Plan::new(self.graph(&inputs), &strides, &**backend)?;
            let (nodes, steps) = (self.nodes.len(), plan.step_count());
            profile::end(start, || What::Planning { device, nodes, steps });
            Ok(plan)
        })
    }

    /// The walked graph: leaves first, which `inputs` stand for, then the nodes.
    fn graph<'a>(&'a self, inputs: &'a [Op]) -> Borrowed<'a> {
        let mut nodes = Vec::with_capacity(inputs.len() + self.nodes.len());
        let avals = self.leaves.iter().flat_map(Leaf::avals);
        for (op, aval) in inputs.iter().zip(avals) {
            nodes.push(NodeRef { op, inputs: SmallVec::new(), avals: std::slice::from_ref(aval) });
        }
        let source = |s: &Source| match s.leaf {
            true => graph::Ref { node: s.index, output: 0 },
            false => graph::Ref { node: self.leaf_count + s.index, output: s.output },
        };
        for Interior { node, inputs, .. } in &self.nodes {
            let inputs = inputs.iter().map(source).collect();
            nodes.push(NodeRef { op: &node.op, inputs, avals: &node.avals });
        }
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for &index in &self.outputs {
            let node = self.leaf_count + index;
            let count = self.nodes[index as usize].node.avals.len() as u32;
            outputs.extend((0..count).map(|output| graph::Ref { node, output }));
        }
        Borrowed { nodes, outputs }
    }
}

impl Parameters for Walk {
    fn argument(&self, node: u32) -> Argument<'_> {
        self.nodes[(node - self.leaf_count) as usize].node.op.facts().argument
    }

    fn line(&self, path: &[u32]) -> Option<Arc<str>> {
        let (first, rest) = path.split_first()?;
        let index = first.checked_sub(self.leaf_count)?;
        let node = &self.nodes.get(index as usize)?.node;
        node.op.line_within(rest).or_else(|| node.line.clone())
    }

    fn origins(&self) -> Vec<Origin> {
        let of = |Interior { node, .. }: &Interior| Origin::new(node.line.as_ref(), &node.op);
        self.nodes.iter().map(of).collect()
    }

    fn has_origins(&self, known: &[Origin]) -> bool {
        let mut both = self.nodes.iter().zip(known);
        self.nodes.len() == known.len()
            && both.all(|(Interior { node, .. }, known)| known.is_of(node.line.as_ref(), &node.op))
    }
}

/// The error of reading an array that has no values.
fn traced(node: &Node) -> Error {
    let transform = node.scopes.as_ref().and_then(|m| m.active_transform());
    let aval = match node.op.is_input() {
        true => node.avals[0].to_string(),
        false => node.op.name().to_owned(),
    };
    Error::Traced(match transform {
        Some(name) => format!(
            "this array depends on an input ({aval}) of a function that {name} is tracing, so it \
             has no values: use ops such as where instead of reading it, or return it"
        ),
        None => format!(
            "this array depends on an input ({aval}) of a function that was traced, and outlived \
             the trace: return it from the function instead"
        ),
    })
}

impl Walk {
    /// Brings the leaves to `device`. An array lives where it was last used: the copy takes the
    /// place of the original.
    pub fn bring(&mut self, values: &mut [Value], device: Device) -> Result<()> {
        let sizes = self.leaves.iter().flat_map(Leaf::avals);
        let mut copies: Vec<(Buffer, [usize; 2], Buffer)> = Vec::new();
        for (value, aval) in values.iter_mut().zip(sizes) {
            if value.buffer.device() == device {
                continue;
            }
            // Of a view of little of a buffer only what it reaches: a batch, not the data set.
            let size = aval.dtype.size();
            let reach = value.layout.reach(&aval.shape);
            let mut range = [reach.start as usize * size, reach.end as usize * size];
            if (range[1] - range[0]) * 2 > value.buffer.bytes() {
                range = [0, value.buffer.bytes()];
            }
            let known = copies.iter().find(|(from, r, _)| from.same(&value.buffer) && *r == range);
            let copy = match known {
                Some((_, _, copy)) => copy.clone(),
                None => {
                    let copy = moved(&value.buffer, range[0]..range[1], device)?;
                    copies.push((value.buffer.clone(), range, copy.clone()));
                    copy
                }
            };
            value.buffer = copy;
            value.layout.offset -= (range[0] / size) as isize;
        }
        let mut values = values.iter();
        for Leaf { node, outputs, .. } in &mut self.leaves {
            let mut state = node.state();
            for (LeafOutput { output, value: own, .. }, value) in
                outputs.iter_mut().zip(&mut values)
            {
                // What was taken out of its node stays out, and so does what nobody has any more.
                if let (Some(own), Progress::Ready(all)) = (own, &mut state.progress)
                    && all.get(*output).is_some()
                {
                    *own = value.clone();
                    all.put(*output, Some(value.clone()));
                }
            }
        }
        Ok(())
    }

    /// The leaves' values. Those that only walked nodes refer to are taken out of their nodes, so
    /// that the plan may overwrite them; not where a transform will walk here again.
    pub fn take_leaves(&mut self) -> Vec<Value> {
        let traced = undo::is_looked_for() || self.nodes.iter().any(|n| n.node.is_traced());
        let mut values = Vec::with_capacity(self.leaf_count as usize);
        for Leaf { node, outputs, .. } in &mut self.leaves {
            let mut state = node.state();
            for LeafOutput { output, edges, value } in outputs {
                // Of one output of several the arrays are counted.
                let is_nobody_elses = match node.arrays_of(*output) {
                    Some(arrays) => arrays == *edges,
                    None => Arc::strong_count(node) == *edges + 1,
                };
                if !traced && is_nobody_elses {
                    if let Progress::Ready(all) = &mut state.progress {
                        all.put(*output, None);
                    }
                    values.extend(value.take());
                } else {
                    values.extend(value.clone());
                }
            }
        }
        values
    }

    /// The nodes whose outputs are wanted.
    pub fn outputs(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.outputs.iter().map(|&output| &self.nodes[output as usize].node)
    }

    /// Makes the results lazy again, and puts what [`Walk::take_leaves`] took back into its nodes.
    pub fn undo(&self, values: Vec<Value>) {
        for node in self.outputs() {
            node.state().progress = Progress::Lazy;
        }
        let mut values = values.into_iter();
        for Leaf { node, outputs, .. } in &self.leaves {
            let mut state = node.state();
            for (LeafOutput { output, value: own, .. }, value) in outputs.iter().zip(&mut values) {
                if let (None, Progress::Ready(all)) = (own, &mut state.progress)
                    && node.arrays_of(*output) != Some(0)
                {
                    all.put(*output, Some(value));
                }
            }
        }
    }
}
