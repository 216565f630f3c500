//! The graph that is planned: calls and composites put in place, equal nodes merged, dead nodes gone.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use smallvec::SmallVec;

use super::axes::Shapes;
use crate::backend::Backend;
use crate::error::Result;
use crate::graph::{Borrowed, Graph, NodeRef, Ref};
use crate::prim::control::Scan;
use crate::prim::key::Mixer;
use crate::prim::{Argument, Control, Mark, Op};
use crate::shape::Aval;

/// A node of the flat graph.
pub(super) struct Flat<'a> {
    pub op: &'a Op,
    pub inputs: SmallVec<[Ref; 3]>,
    pub avals: &'a [Aval],
    /// The node of the evaluated graph whose argument every run reads, or none where the argument is
    /// fixed in a call's body.
    pub source: Option<u32>,
    /// The node of the evaluated graph that it is, or is a part of: then that in the call's body, and so on.
    pub origin: Origin,
    /// Whether other nodes, there or in bodies, were merged with it.
    pub is_merged: bool,
}

/// A node of a graph, and where within it: see [`Graph::line`].
pub(super) type Origin = SmallVec<[u32; 2]>;

/// The flat graph with what it gives.
pub(super) struct FlatGraph<'a> {
    pub nodes: Vec<Flat<'a>>,
    pub outputs: Vec<Ref>,
    /// Those that a plan needs beside those of the nodes.
    pub shapes: Shapes,
}

/// The bodies of the composites in a graph that a backend does not claim, by the number of their node;
/// empty where there are none.
#[derive(Default)]
pub(super) struct Bodies {
    of: Vec<Option<Inner>>,
}

/// What is inside of a node.
enum Inner {
    /// The bodies in a call's body.
    Call(Bodies),
    /// A composite's body, with those in it.
    Composite(Graph, Bodies),
}

impl Bodies {
    /// Records those that `backend` needs.
    pub fn new(graph: &Borrowed<'_>, backend: &dyn Backend) -> Result<Bodies> {
        let mut bodies = Bodies::default();
        for (index, node) in graph.nodes.iter().enumerate() {
            let inner = match node.op {
                Op::Call(call) => Some(Inner::Call(Bodies::new(&call.body.borrowed(), backend)?)),
                Op::Composite(composite) => {
                    let aval = |r: &Ref| &graph.nodes[r.node as usize].avals[r.output as usize];
                    let avals: SmallVec<[&Aval; 4]> = node.inputs.iter().map(aval).collect();
                    match backend.claims(composite, &avals) {
                        true => None,
                        false => {
                            let body = composite.graph(&avals)?;
                            let inner = Bodies::new(&body.borrowed(), backend)?;
                            Some(Inner::Composite(body, inner))
                        }
                    }
                }
                Op::Input(_)
                | Op::Constant(_)
                | Op::Movement(_)
                | Op::Mark(_)
                | Op::Elementwise(_)
                | Op::Reduce(_)
                | Op::Kernel(_)
                | Op::Control(_)
                | Op::Custom(_) => None,
            };
            if inner.is_some() {
                bodies.of.resize_with(index, || None);
                bodies.of.push(inner);
            }
        }
        Ok(bodies)
    }
}

impl<'a> FlatGraph<'a> {
    /// Flattens `graph`: calls, and composites whose bodies are among `bodies`, are replaced by these.
    pub fn new(graph: Borrowed<'a>, bodies: &'a Bodies) -> FlatGraph<'a> {
        let count = graph.nodes.len();
        let mut builder = Builder {
            nodes: Vec::with_capacity(count),
            seen: Seen::with_capacity_and_hasher(count, Default::default()),
            loops: Loops::default(),
        };
        let outputs = builder.append(graph, bodies, None, &Origin::new());
        let mut flat = FlatGraph { nodes: builder.nodes, outputs, shapes: Shapes::default() };
        flat.drop_dead();
        flat
    }

    pub fn aval(&self, r: Ref) -> &'a Aval {
        &self.nodes[r.node as usize].avals[r.output as usize]
    }

    /// Removes nodes that no output needs; inputs stay, because leaves are numbered by them.
    fn drop_dead(&mut self) {
        let mut live = vec![false; self.nodes.len()];
        for r in &self.outputs {
            live[r.node as usize] = true;
        }
        for index in (0..self.nodes.len()).rev() {
            live[index] |= self.nodes[index].op.is_input();
            if live[index] {
                for r in &self.nodes[index].inputs {
                    live[r.node as usize] = true;
                }
            }
        }
        let mut place = vec![0u32; self.nodes.len()];
        let mut next = 0;
        for (index, &live) in live.iter().enumerate() {
            place[index] = next;
            next += u32::from(live);
        }
        let mut keep = live.iter();
        self.nodes.retain(|_| *keep.next().unwrap_or(&true));
        for node in &mut self.nodes {
            node.inputs.iter_mut().for_each(|r| r.node = place[r.node as usize]);
        }
        self.outputs.iter_mut().for_each(|r| r.node = place[r.node as usize]);
    }
}

/// Nodes by what they compute.
type Seen<'a> = HashMap<(&'a Op, SmallVec<[Ref; 3]>), u32, BuildHasherDefault<Mixer>>;

/// Loops over sequences by what they take.
type Loops = HashMap<SmallVec<[Ref; 3]>, SmallVec<[u32; 1]>, BuildHasherDefault<Mixer>>;

struct Builder<'a> {
    nodes: Vec<Flat<'a>>,
    /// To merge equal ones.
    seen: Seen<'a>,
    /// To merge loops that differ in how much they give.
    loops: Loops,
}

impl<'a> Builder<'a> {
    /// Appends `graph`; `arguments` are what its inputs stand for and `origin` where the node is that it is
    /// the body of, empty at the outermost level.
    fn append(
        &mut self,
        graph: Borrowed<'a>,
        bodies: &'a Bodies,
        arguments: Option<&[Ref]>,
        origin: &[u32],
    ) -> Vec<Ref> {
        let mut places: Vec<SmallVec<[Ref; 1]>> = Vec::with_capacity(graph.nodes.len());
        let mut next_input = 0;
        for (index, NodeRef { op, mut inputs, avals }) in graph.nodes.into_iter().enumerate() {
            if let (Op::Input(_), Some(arguments)) = (op, arguments) {
                places.push(SmallVec::from_buf([arguments[next_input]]));
                next_input += 1;
                continue;
            }
            inputs.iter_mut().for_each(|r| *r = places[r.node as usize][r.output as usize]);
            // Only what becomes of a failure tells an update from its value.
            if let Op::Mark(Mark::Update) = op {
                places.push(SmallVec::from_buf([inputs[0]]));
                continue;
            }
            let body = match (op, bodies.of.get(index)) {
                (Op::Call(call), Some(Some(Inner::Call(inner)))) => Some((&*call.body, inner)),
                (_, Some(Some(Inner::Composite(body, inner)))) => Some((body, inner)),
                _ => None,
            };
            if let Some((body, inner)) = body {
                let own = within(origin, index);
                places.push(self.append(body.borrowed(), inner, Some(&inputs), &own).into());
                continue;
            }
            let source = arguments.is_none().then_some(index as u32);
            let origin = within(origin, index);
            let at = self.push(Flat { op, inputs, avals, source, origin, is_merged: false });
            places.push((0..avals.len() as u32).map(|output| Ref { node: at, output }).collect());
        }
        graph.outputs.iter().map(|r| places[r.node as usize][r.output as usize]).collect()
    }

    fn push(&mut self, node: Flat<'a>) -> u32 {
        let next = self.nodes.len() as u32;
        if merges(node.op, node.source) {
            let known = *self.seen.entry((node.op, node.inputs.clone())).or_insert(next);
            if known != next {
                self.nodes[known as usize].is_merged = true;
                return known;
            }
        }
        if let Some(known) = self.loop_like(&node, next) {
            // No node of its own follows, so another one takes the number that was noted above.
            self.seen.insert((node.op, node.inputs), known);
            return known;
        }
        self.nodes.push(node);
        next
    }

    /// The loop that is there already and does what `node` does, made to give as much; else `node` is kept as `next`.
    fn loop_like(&mut self, node: &Flat<'a>, next: u32) -> Option<u32> {
        let scan = scan_of(node.op)?;
        let alike = self.loops.entry(node.inputs.clone()).or_default();
        for &known in alike.iter() {
            let own = &mut self.nodes[known as usize];
            let Some(other) = scan_of(own.op) else { continue };
            let covers = scan.covers(other);
            if covers || other.covers(scan) {
                own.is_merged = true;
                if covers {
                    (own.op, own.avals) = (node.op, node.avals);
                }
                return Some(known);
            }
        }
        alike.push(next);
        None
    }
}

/// The loop over sequences that an op is.
fn scan_of(op: &Op) -> Option<&Scan> {
    match op {
        Op::Control(control) => match &**control {
            Control::Scan(scan) => Some(scan),
            Control::While(_) | Control::Cond(_) => None,
        },
        Op::Input(_)
        | Op::Constant(_)
        | Op::Movement(_)
        | Op::Mark(_)
        | Op::Elementwise(_)
        | Op::Reduce(_)
        | Op::Kernel(_)
        | Op::Composite(_)
        | Op::Call(_)
        | Op::Custom(_) => None,
    }
}

/// Node number `index` of the body of what is at `origin`.
fn within(origin: &[u32], index: usize) -> Origin {
    origin.iter().copied().chain([index as u32]).collect()
}

/// Whether two nodes of this op on the same inputs are one: not where an argument may differ at the
/// next evaluation.
fn merges(op: &Op, source: Option<u32>) -> bool {
    let facts = op.facts();
    facts.merges && (source.is_none() || facts.argument == Argument::None)
}
