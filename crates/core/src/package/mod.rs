//! Graphs as bytes: `graph.bin` of a package.
//!
//! The file holds graphs, the bodies of calls first, and *programs*: which graph runs, and which of the
//! package's weights stand for its last inputs. Everything is little endian. A primitive is written
//! under a name and with a version that stay what they are when the code changes (`primitives.rs`), so
//! a reader that does not know one says which.
//!
//! Reading trusts nothing. What is read is checked as if somebody had recorded it: each node takes
//! what earlier ones give, and its avals are inferred anew and compared with those that are written
//! down. A count is believed only as far as there are bytes for it.

#![deny(clippy::wildcard_enum_match_arm)]

mod code;
mod formulas;
mod primitives;
mod rules;

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use self::code::{Reader, Stored, Writer};
pub use self::formulas::Formulas;
use crate::error::{Error, Result};
use crate::graph::{Graph, Line, Node, Ref};
use crate::shape::Aval;

/// How a file begins.
const MAGIC: &[u8; 8] = b"cupola-g";

/// The version of the format around the primitives.
pub const VERSION: u32 = 2;

/// That of files whose programs have no formulas.
const PLAIN: u32 = 1;

/// So deep bodies of calls may lie in each other.
pub const MOST_DEPTH: usize = 64;

/// So many nodes a graph may have, those of called bodies counted at each call, as a planner walks over
/// them; or as many as the file has bytes, where that is more.
pub const MOST_NODES: u64 = 1 << 20;

/// A graph whose last inputs are weights of a package.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// What runs. Inputs that a caller gives come first.
    pub graph: Arc<Graph>,
    /// The numbers of the weights that the last inputs are.
    pub weights: Vec<u32>,
    /// How it follows from sizes with names, where it is for any.
    pub formulas: Option<Arc<Formulas>>,
}

impl Program {
    /// How many inputs a caller gives.
    pub fn arguments(&self) -> usize {
        self.graph.inputs.len() - self.weights.len()
    }
}

/// The bytes of programs.
///
/// # Errors
/// Where a graph has a user's operator, whose kernel no file can hold, or is nested deeper than
/// [`MOST_DEPTH`].
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use cupola::package::binary::{Program, read, write};
/// use cupola::{Aval, DType, graph::{Graph, Ref}, prim::Unary};
/// let mut graph = Graph::default();
/// let x = graph.input(Aval::new([2, 3], DType::F32));
/// let node = graph.push(Unary::Exp, &[x])?;
/// graph.outputs.push(Ref { node, output: 0 });
/// let programs = [Program { graph: Arc::new(graph), weights: vec![], formulas: None }];
/// assert_eq!(read(&write(&programs)?, "graph.bin")?, programs);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn write(programs: &[Program]) -> Result<Vec<u8>> {
    let mut graphs = Graphs::default();
    let numbers = programs.iter().map(|p| graphs.add(&p.graph, 0)).collect::<Result<Vec<_>>>()?;
    let mut out = Writer::default();
    out.bytes(MAGIC);
    let has_formulas = programs.iter().any(|program| program.formulas.is_some());
    (if has_formulas { VERSION } else { PLAIN }).write(&mut out);
    (graphs.primitives.len() as u32).write(&mut out);
    for (name, version) in &graphs.primitives {
        out.text(name);
        version.write(&mut out);
    }
    (graphs.written.len() as u32).write(&mut out);
    graphs.written.iter().for_each(|graph| out.bytes(graph));
    (programs.len() as u32).write(&mut out);
    for (program, number) in programs.iter().zip(numbers) {
        number.write(&mut out);
        program.weights.write(&mut out);
        if has_formulas {
            program.formulas.is_some().write(&mut out);
            program.formulas.iter().for_each(|formulas| formulas.write(&mut out));
        }
    }
    Ok(out.finish())
}

/// The graphs of a file that is written, each after those that it calls.
#[derive(Default)]
struct Graphs {
    written: Vec<Vec<u8>>,
    /// Where graphs are that are written, by their address: who writes holds them.
    known: HashMap<usize, u32>,
    /// Names and versions of the primitives, in the order in which they were met.
    primitives: Vec<(&'static str, u16)>,
}

impl Graphs {
    fn add(&mut self, graph: &Arc<Graph>, depth: usize) -> Result<u32> {
        let address = Arc::as_ptr(graph) as usize;
        if let Some(&known) = self.known.get(&address) {
            return Ok(known);
        }
        if depth >= MOST_DEPTH {
            return Err(Error::argument(
                "package",
                format!("calls lie in each other more than {MOST_DEPTH} deep"),
            ));
        }
        if !inputs_of(graph).eq(graph.inputs.iter().copied()) {
            return Err(Error::argument("package", "a graph lists its inputs in another order"));
        }
        let mut out = Writer::default();
        (graph.nodes.len() as u32).write(&mut out);
        for (index, node) in graph.nodes.iter().enumerate() {
            let bodies = node.op.bodies().into_iter().map(|call| self.add(&call.body, depth + 1));
            let bodies = bodies.collect::<Result<Vec<u32>>>()?;
            let mut payload = Writer::default();
            let primitive = primitives::write(&node.op, &bodies, &mut payload)
                .map_err(|detail| Error::argument("package", format!("node {index}: {detail}")))?;
            self.primitive(primitive).write(&mut out);
            out.bytes(&payload.finish());
            (node.inputs.len() as u32).write(&mut out);
            node.inputs.iter().for_each(|input| input.write(&mut out));
            (node.outputs.len() as u32).write(&mut out);
            node.outputs.iter().for_each(|aval| aval.write(&mut out));
        }
        graph.outputs.write(&mut out);
        self.written.push(out.finish());
        let number = self.written.len() as u32 - 1;
        self.known.insert(address, number);
        Ok(number)
    }

    /// The number of a primitive in the file.
    fn primitive(&mut self, primitive: (&'static str, u16)) -> u16 {
        let found = self.primitives.iter().position(|known| *known == primitive);
        found.unwrap_or_else(|| {
            self.primitives.push(primitive);
            self.primitives.len() - 1
        }) as u16
    }
}

/// The nodes that are inputs, in order: what a file does not say twice.
fn inputs_of(graph: &Graph) -> impl Iterator<Item = u32> {
    let nodes = graph.nodes.iter().enumerate();
    nodes.filter(|(_, node)| node.op.is_input()).map(|(index, _)| index as u32)
}

/// The programs in the bytes of a file, which errors call `file`.
///
/// # Errors
/// Where the bytes are cut short, damaged, or of a newer version; the text names the file, the byte,
/// and the graph, node and field there.
///
/// # Example
/// See [`write()`].
pub fn read(bytes: &[u8], file: &str) -> Result<Vec<Program>> {
    let mut from = Reader::new(bytes);
    let read = programs(&mut from);
    read.map_err(|detail| Error::io(file, format!("byte {}: {detail}", from.place())))
}

fn programs(from: &mut Reader<'_>) -> Result<Vec<Program>, String> {
    if from.take(MAGIC.len()).ok() != Some(MAGIC) {
        return Err("this is no graph of a package: it starts otherwise".into());
    }
    let version = u32::read(from)?;
    if version != VERSION && version != PLAIN {
        return Err(format!("format version {version}; this program reads version {VERSION}"));
    }
    let count = from.count(3, "primitives")?;
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        names.push((from.text()?, u16::read(from)?));
    }
    let count = from.count(12, "graphs")?;
    let mut graphs = Bodies::default();
    for number in 0..count {
        let (graph, depth, size) =
            graph(from, &names, &graphs).map_err(|detail| format!("graph {number}: {detail}"))?;
        graphs.list.push(Body { graph: Arc::new(graph), depth, size });
    }
    let count = from.count(8, "programs")?;
    let mut programs = Vec::with_capacity(count);
    for number in 0..count {
        let index = u32::read(from)?;
        let body = graphs.get(index)?;
        let weights: Vec<u32> = Stored::read(from)?;
        if weights.len() > body.graph.inputs.len() {
            let (most, have) = (body.graph.inputs.len(), weights.len());
            return Err(format!("program {number} has {have} weights for {most} inputs"));
        }
        let has_formulas = version != PLAIN && bool::read(from)?;
        let formulas = has_formulas.then(|| Formulas::read(from)).transpose()?.map(Arc::new);
        programs.push(Program { graph: body.graph.clone(), weights, formulas });
    }
    match from.rest() {
        0 => Ok(programs),
        more => Err(format!("{more} bytes follow the end")),
    }
}

/// A graph that was read, with what it stands for where it is called.
struct Body {
    graph: Arc<Graph>,
    /// How deep its calls lie in each other.
    depth: usize,
    /// Its nodes, with those of what it calls.
    size: u64,
}

/// The graphs that were read so far: a call can only be of one of them, so there are no circles.
#[derive(Default)]
struct Bodies {
    list: Vec<Body>,
}

impl Bodies {
    fn get(&self, number: u32) -> Result<&Body, String> {
        let found = self.list.get(number as usize);
        found.ok_or_else(|| format!("graph {number} does not come before"))
    }
}

fn graph(
    from: &mut Reader<'_>,
    names: &[(&str, u16)],
    bodies: &Bodies,
) -> Result<(Graph, usize, u64), String> {
    let count = from.count(10, "nodes")?;
    let mut graph = Graph { nodes: Vec::with_capacity(count), ..Graph::default() };
    let (mut depth, mut size) = (0, 0u64);
    for index in 0..count {
        let number = usize::from(u16::read(from)?);
        let &(name, version) = names
            .get(number)
            .ok_or_else(|| format!("node {index}: primitive {number} is not listed"))?;
        let within = |detail: String| format!("node {index} ({name}): {detail}");
        let called = node(from, &mut graph, (name, version), bodies).map_err(within)?;
        depth = called.iter().fold(depth, |depth, body| depth.max(body.depth + 1));
        let inside = called.iter().fold(0u64, |size, body| size.saturating_add(body.size));
        size = size.saturating_add(inside.max(1));
        let most = MOST_NODES.max(from.length() as u64);
        if depth >= MOST_DEPTH || size > most {
            return Err(within(format!(
                "calls more than {MOST_DEPTH} deep, or {most} nodes in all"
            )));
        }
    }
    graph.inputs = inputs_of(&graph).collect();
    graph.outputs = Stored::read(from)?;
    for (number, &output) in graph.outputs.iter().enumerate() {
        aval(&graph, output).map_err(|detail| format!("output {number}: {detail}"))?;
    }
    Ok((graph, depth, size))
}

/// Reads a node to the end of the graph; gives the bodies that it calls.
fn node<'b>(
    from: &mut Reader<'_>,
    graph: &mut Graph,
    primitive: (&str, u16),
    bodies: &'b Bodies,
) -> Result<SmallVec<[&'b Body; 1]>, String> {
    let mut called = SmallVec::new();
    let op = primitives::read(primitive, from, &mut |number| {
        let body = bodies.get(number)?;
        called.push(body);
        Ok(body.graph.clone())
    })?;
    let count = from.count(8, "inputs")?;
    let mut inputs: SmallVec<[Ref; 3]> = SmallVec::new();
    for _ in 0..count {
        inputs.push(Ref::read(from)?);
    }
    let count = from.count(5, "outputs")?;
    let mut written = Vec::new();
    for _ in 0..count {
        written.push(Aval::read(from)?);
    }
    let avals = inputs
        .iter()
        .enumerate()
        .map(|(number, &input)| aval(graph, input).map_err(|e| format!("input {number}: {e}")))
        .collect::<Result<SmallVec<[&Aval; 4]>, _>>()?;
    let outputs = op.infer(&avals).map_err(|error| error.to_string())?;
    drop(avals);
    if outputs[..] != written {
        return Err(format!("has outputs {written:?}, where it gives {outputs:?}"));
    }
    graph.nodes.push(Node { op, inputs, outputs, line: Line::default() });
    Ok(called)
}

fn aval(graph: &Graph, r: Ref) -> Result<&Aval, String> {
    let node = graph.nodes.get(r.node as usize);
    let found = node.and_then(|node| node.outputs.get(r.output as usize));
    found.ok_or_else(|| format!("{r} is no output of an earlier node"))
}
