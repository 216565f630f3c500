//! The immutable graph of primitives that everything becomes.

#![deny(clippy::wildcard_enum_match_arm)]

mod build;
mod dot;
mod drawn;
mod executable;
pub mod polynomial;
mod sizes;
mod text;
pub(crate) mod trace;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use build::{Builder, Placeholder, Program, Size};
pub use executable::{Definition, Executable, Options, Results};

use smallvec::SmallVec;

pub use self::dot::to_dot;
pub(crate) use self::drawn::Drawn;
pub use self::trace::{Traced, TracedAt};

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
    /// The line of the program that recorded it, where lines were noted.
    pub line: Line,
}

/// The line of the program that recorded a node. It says nothing of what the node computes: two lines are equal.
#[derive(Clone, Debug, Default)]
pub struct Line(pub Option<Arc<str>>);

impl PartialEq for Line {
    fn eq(&self, _: &Line) -> bool {
        true
    }
}

impl Eq for Line {}

impl Hash for Line {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A graph of primitives in an order in which each follows its inputs.
///
/// Two graphs are equal when they compute the same: constants and slice starts count.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Graph {
    /// The nodes; inputs first come as [`Op::Input`].
    pub nodes: Vec<Node>,
    /// The nodes that are inputs, in order.
    pub inputs: Vec<u32>,
    /// What the graph gives.
    pub outputs: Vec<Ref>,
}

/// A graph whose primitives and avals somebody else holds.
pub(crate) struct Borrowed<'a> {
    pub nodes: Vec<NodeRef<'a>>,
    pub outputs: Vec<Ref>,
}

/// A node of a graph that somebody else holds.
pub(crate) struct NodeRef<'a> {
    pub op: &'a Op,
    pub inputs: SmallVec<[Ref; 3]>,
    pub avals: &'a [Aval],
}

impl Graph {
    /// The graph without a copy of its primitives.
    pub(crate) fn borrowed(&self) -> Borrowed<'_> {
        let nodes = self.nodes.iter().map(|node| NodeRef {
            op: &node.op,
            inputs: node.inputs.clone(),
            avals: &node.outputs,
        });
        Borrowed { nodes: nodes.collect(), outputs: self.outputs.clone() }
    }

    /// The same graph with its inputs before all other nodes, as a plan has its leaves.
    pub(crate) fn with_inputs_first(&self) -> Graph {
        let (inputs, others): (Vec<usize>, Vec<usize>) =
            (0..self.nodes.len()).partition(|&node| self.nodes[node].op.is_input());
        let mut places = vec![0; self.nodes.len()];
        for (place, &node) in inputs.iter().chain(&others).enumerate() {
            places[node] = place as u32;
        }
        let at = |r: &Ref| Ref { node: places[r.node as usize], output: r.output };
        let moved = |&node: &usize| {
            let Node { op, inputs, outputs, line } = self.nodes[node].clone();
            Node { op, inputs: inputs.iter().map(at).collect(), outputs, line }
        };
        Graph {
            nodes: inputs.iter().chain(&others).map(moved).collect(),
            inputs: self.inputs.iter().map(|&node| places[node as usize]).collect(),
            outputs: self.outputs.iter().map(at).collect(),
        }
    }

    /// The same graph, which does not say what recorded it.
    pub(crate) fn without_lines(mut self) -> Graph {
        self.nodes.iter_mut().for_each(|node| node.line = Line::default());
        self
    }

    /// The same graph without the inputs that nothing in it takes, and the numbers of those that are left.
    pub(crate) fn without_unused_inputs(self) -> (Graph, SmallVec<[usize; 4]>) {
        let mut is_used = vec![false; self.nodes.len()];
        let taken = self.nodes.iter().flat_map(|node| &node.inputs).chain(&self.outputs);
        taken.for_each(|r| is_used[r.node as usize] = true);
        let (mut out, mut uses) = (Graph::default(), SmallVec::new());
        let mut places = vec![0; self.nodes.len()];
        let mut number = 0;
        for (index, node) in self.nodes.into_iter().enumerate() {
            places[index] = out.nodes.len() as u32;
            let is_input = node.op.is_input();
            if is_input && is_used[index] {
                out.inputs.push(places[index]);
                uses.push(number);
            }
            number += usize::from(is_input);
            if !is_input || is_used[index] {
                let at = |r: &Ref| Ref { node: places[r.node as usize], output: r.output };
                let inputs = node.inputs.iter().map(at).collect();
                out.nodes.push(Node { inputs, ..node });
            }
        }
        let at = |r: &Ref| Ref { node: places[r.node as usize], output: r.output };
        out.outputs = self.outputs.iter().map(at).collect();
        (out, uses)
    }

    /// The bytes of memory that it holds.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Graph>()
            + self.nodes.capacity() * size_of::<Node>()
            + self.inputs.capacity() * size_of::<u32>()
            + self.outputs.capacity() * size_of::<Ref>()
    }

    /// Adds an input.
    pub fn input(&mut self, aval: Aval) -> Ref {
        let node = self.nodes.len() as u32;
        self.inputs.push(node);
        let op = Op::Input(crate::prim::Input { aval: aval.clone() });
        let outputs = Avals::from(aval);
        self.nodes.push(Node { op, inputs: SmallVec::new(), outputs, line: Line::default() });
        Ref { node, output: 0 }
    }

    /// Adds a primitive; gives its index.
    pub fn push(&mut self, op: impl Into<Op>, inputs: &[Ref]) -> Result<u32> {
        let op = op.into();
        let outputs = {
            let avals: SmallVec<[&Aval; 4]> = inputs.iter().map(|r| self.aval(*r)).collect();
            op.infer(&avals)?
        };
        let inputs = SmallVec::from_slice(inputs);
        self.nodes.push(Node { op, inputs, outputs, line: Line::default() });
        Ok(self.nodes.len() as u32 - 1)
    }

    /// The line that recorded a node, or what is within it: `path` is its index, then that in the body of the call
    /// that it is, and so on. Where the innermost has none it is that of what it is a part of.
    pub(crate) fn line(&self, path: &[u32]) -> Option<Arc<str>> {
        let (&first, rest) = path.split_first()?;
        let node = self.nodes.get(first as usize)?;
        node.op.line_within(rest).or_else(|| node.line.0.clone())
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
        let nodes = self.nodes.iter().map(|n| (&n.op, &n.inputs[..], &n.outputs[..]));
        verify(nodes, &self.outputs)?;
        for (index, node) in self.nodes.iter().enumerate() {
            let is_input = node.op.is_input();
            if is_input != self.inputs.contains(&(index as u32)) {
                return bad(index, "is an input that is not listed, or listed and none".into());
            }
        }
        Ok(())
    }
}

/// Checks that every node follows its inputs, that its avals are what its op infers, and that the
/// outputs are there.
pub(crate) fn verify<'a>(
    nodes: impl Iterator<Item = (&'a Op, &'a [Ref], &'a [Aval])>,
    outputs: &[Ref],
) -> Result<()> {
    let mut known: Vec<&[Aval]> = Vec::new();
    for (index, (op, inputs, own)) in nodes.enumerate() {
        let aval = |r: &Ref| known.get(r.node as usize).and_then(|all| all.get(r.output as usize));
        if let Some(r) = inputs.iter().find(|r| aval(r).is_none()) {
            return bad(index, format!("input {r:?} does not come before it"));
        }
        let avals: SmallVec<[&Aval; 4]> = inputs.iter().filter_map(aval).collect();
        let inferred = op.infer(&avals)?;
        if inferred[..] != *own {
            return bad(index, format!("has {own:?}, infers {inferred:?}"));
        }
        known.push(own);
    }
    let is_there =
        |r: &&Ref| known.get(r.node as usize).is_some_and(|all| (r.output as usize) < all.len());
    match outputs.iter().find(|r| !is_there(r)) {
        Some(r) => bad(r.node as usize, format!("output {r:?} is not there")),
        None => Ok(()),
    }
}

fn bad(node: usize, detail: String) -> Result<()> {
    Err(Error::argument("graph", format!("node {node}: {detail}")))
}
