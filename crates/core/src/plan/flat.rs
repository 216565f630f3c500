//! The graph that is planned: calls and composites put in place, equal nodes merged, dead nodes gone.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::backend::Backend;
use crate::error::Result;
use crate::graph::{Graph, Ref};
use crate::prim::{Argument, Avals, Composite, Op};
use crate::shape::Aval;

/// A node of the flat graph.
pub(super) struct Flat {
    pub op: Op,
    pub inputs: SmallVec<[Ref; 3]>,
    pub avals: Avals,
    /// The node of the evaluated graph whose argument every run reads, or none where the argument is
    /// fixed in a call's body.
    pub source: Option<u32>,
}

/// The flat graph with what it gives.
pub(super) struct FlatGraph {
    pub nodes: Vec<Flat>,
    pub outputs: Vec<Ref>,
}

impl FlatGraph {
    /// Flattens `graph`: calls, and composites that `backend` does not claim, are replaced by their
    /// bodies.
    pub fn new(graph: &Graph, backend: &dyn Backend) -> Result<FlatGraph> {
        let mut builder = Builder { nodes: Vec::new(), seen: HashMap::new(), backend };
        let outputs = builder.append(graph, None)?;
        let mut flat = FlatGraph { nodes: builder.nodes, outputs };
        flat.drop_dead();
        Ok(flat)
    }

    pub fn aval(&self, r: Ref) -> &Aval {
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

struct Builder<'a> {
    nodes: Vec<Flat>,
    /// Nodes by what they compute, to merge equal ones.
    seen: HashMap<(Op, SmallVec<[Ref; 3]>), u32>,
    backend: &'a dyn Backend,
}

impl Builder<'_> {
    /// Appends `graph`; `arguments` are what its inputs stand for, or none at the outermost level.
    fn append(&mut self, graph: &Graph, arguments: Option<&[Ref]>) -> Result<Vec<Ref>> {
        let mut places: Vec<SmallVec<[Ref; 1]>> = Vec::with_capacity(graph.nodes.len());
        let mut next_input = 0;
        for (index, node) in graph.nodes.iter().enumerate() {
            if let (Op::Input(_), Some(arguments)) = (&node.op, arguments) {
                places.push(SmallVec::from_buf([arguments[next_input]]));
                next_input += 1;
                continue;
            }
            let inputs: SmallVec<[Ref; 3]> =
                node.inputs.iter().map(|r| places[r.node as usize][r.output as usize]).collect();
            if let Op::Call(call) = &node.op {
                places.push(self.append(&call.body, Some(&inputs))?.into());
                continue;
            }
            if let Op::Composite(composite) = &node.op
                && let Some(body) = self.unclaimed(composite, &inputs)?
            {
                places.push(self.append(&body, Some(&inputs))?.into());
                continue;
            }
            let source = arguments.is_none().then_some(index as u32);
            let at = self.push(&node.op, inputs, &node.outputs, source);
            let refs = (0..node.outputs.len() as u32).map(|output| Ref { node: at, output });
            places.push(refs.collect());
        }
        let place = |r: &Ref| places[r.node as usize][r.output as usize];
        Ok(graph.outputs.iter().map(place).collect())
    }

    /// The body of a composite that the backend does not claim.
    fn unclaimed(&self, composite: &Composite, inputs: &[Ref]) -> Result<Option<Graph>> {
        let avals: SmallVec<[&Aval; 4]> = inputs.iter().map(|&r| self.aval(r)).collect();
        match self.backend.claims(composite, &avals) {
            true => Ok(None),
            false => composite.graph(&avals).map(Some),
        }
    }

    fn aval(&self, r: Ref) -> &Aval {
        &self.nodes[r.node as usize].avals[r.output as usize]
    }

    fn push(
        &mut self,
        op: &Op,
        inputs: SmallVec<[Ref; 3]>,
        avals: &Avals,
        source: Option<u32>,
    ) -> u32 {
        let next = self.nodes.len() as u32;
        if merges(op, source) {
            let known = *self.seen.entry((op.clone(), inputs.clone())).or_insert(next);
            if known != next {
                return known;
            }
        }
        self.nodes.push(Flat { op: op.clone(), inputs, avals: avals.clone(), source });
        next
    }
}

/// Whether two nodes of this op on the same inputs are one: not where an argument may differ at the
/// next evaluation.
fn merges(op: &Op, source: Option<u32>) -> bool {
    let facts = op.facts();
    facts.merges && (source.is_none() || facts.argument == Argument::None)
}
