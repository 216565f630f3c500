//! The immutable graph of primitives that everything becomes.

mod sizes;
mod text;
pub(crate) mod trace;

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::prim::{Avals, Op};
use crate::shape::Aval;

/// An output of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Ref {
    /// The node's index.
    pub node: u32,
    /// Which of its outputs.
    pub output: u32,
}

/// A primitive with where its inputs come from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// The primitive.
    pub op: Op,
    /// Its inputs, all of them earlier nodes.
    pub inputs: SmallVec<[Ref; 3]>,
    /// The avals of its outputs.
    pub outputs: Avals,
}

/// A graph of primitives in an order in which each follows its inputs.
///
/// Two graphs are equal when they compute the same: constants and slice starts count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    /// The nodes; inputs first come as [`Op::Input`].
    pub nodes: Vec<Node>,
    /// The nodes that are inputs, in order.
    pub inputs: Vec<u32>,
    /// What the graph gives.
    pub outputs: Vec<Ref>,
}

impl Hash for Graph {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nodes.hash(state);
        self.inputs.hash(state);
        self.outputs.hash(state);
        // Inside a body constants and starts are fixed, and primitives leave them out of their
        // hash, so they are added here.
        for node in &self.nodes {
            match &node.op {
                Op::Constant(c) => c.value.hash(state),
                Op::Movement(
                    crate::prim::Movement::Slice { start, .. }
                    | crate::prim::Movement::SliceUpdate { start, .. },
                ) => start.hash(state),
                _ => {}
            }
        }
    }
}

impl Graph {
    /// Adds an input.
    pub fn input(&mut self, aval: Aval) -> Ref {
        let node = self.nodes.len() as u32;
        self.inputs.push(node);
        let op = Op::Input(crate::prim::Input { aval: aval.clone() });
        self.nodes.push(Node { op, inputs: SmallVec::new(), outputs: SmallVec::from_buf([aval]) });
        Ref { node, output: 0 }
    }

    /// Adds a primitive; gives its index.
    pub fn push(&mut self, op: impl Into<Op>, inputs: &[Ref]) -> Result<u32> {
        let op = op.into();
        let outputs = {
            let avals: SmallVec<[&Aval; 4]> = inputs.iter().map(|r| self.aval(*r)).collect();
            op.infer(&avals)?
        };
        self.nodes.push(Node { op, inputs: SmallVec::from_slice(inputs), outputs });
        Ok(self.nodes.len() as u32 - 1)
    }

    /// The aval of an output.
    pub fn aval(&self, r: Ref) -> &Aval {
        &self.nodes[r.node as usize].outputs[r.output as usize]
    }

    /// The avals of the inputs.
    pub fn input_avals(&self) -> impl Iterator<Item = &Aval> {
        self.inputs.iter().map(|&n| &self.nodes[n as usize].outputs[0])
    }

    /// The avals of the outputs.
    pub fn output_avals(&self) -> impl Iterator<Item = &Aval> {
        self.outputs.iter().map(|&r| self.aval(r))
    }

    /// Checks that every node follows its inputs and that its avals are what its op infers.
    pub fn verify(&self) -> Result<()> {
        let bad = |node: usize, detail: String| {
            Err(Error::argument("graph", format!("node {node}: {detail}")))
        };
        for (index, node) in self.nodes.iter().enumerate() {
            for r in &node.inputs {
                let there = (r.node as usize) < index
                    && (r.output as usize) < self.nodes[r.node as usize].outputs.len();
                if !there {
                    return bad(index, format!("input {r:?} does not come before it"));
                }
            }
            let avals: Vec<&Aval> = node.inputs.iter().map(|r| self.aval(*r)).collect();
            let inferred = node.op.infer(&avals)?;
            if inferred != node.outputs {
                return bad(index, format!("has {:?}, infers {inferred:?}", node.outputs));
            }
            let is_input = matches!(node.op, Op::Input(_));
            if is_input != self.inputs.contains(&(index as u32)) {
                return bad(index, "is an input that is not listed, or listed and none".into());
            }
        }
        for r in &self.outputs {
            let there = self
                .nodes
                .get(r.node as usize)
                .is_some_and(|n| (r.output as usize) < n.outputs.len());
            if !there {
                return bad(r.node as usize, format!("output {r:?} is not there"));
            }
        }
        Ok(())
    }
}
