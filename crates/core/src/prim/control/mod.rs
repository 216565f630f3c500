//! Loops and branches with graphs as their bodies.
//!
//! Bodies are [`Call`]s that take all that they need as inputs. The planner plans each once and runs that
//! plan as often as the loop says (`plan/control.rs`), on whatever device the loop is on.

mod cond;
mod scan;
mod trace;
mod while_loop;

use std::sync::Arc;

use super::key::Key;
use super::{Accumulates, Argument, Avals, Batched, Call, Diff, Facts, Primitive, Sizes};
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::prim::Op;
use crate::shape::{Aval, Shape};

pub(crate) use cond::record as record_choice;
pub(crate) use trace::{Traced, trace};
pub(crate) use while_loop::record as record_while;

/// A loop, or a choice between branches.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Control {
    /// A body for each element of sequences, with values that it carries on.
    Scan(Scan),
    /// A body as long as a condition holds.
    While(While),
    /// One of several bodies.
    Cond(Cond),
}

/// Runs a body once for each element of sequences.
///
/// Inputs: what is carried at first, the sequences (their axis 0 has `length` elements), what each run gets
/// as it is. The body takes what is carried, one element of each sequence, and the rest likewise; it gives
/// what is carried on, and then an element of each output sequence. Outputs: what is carried in the end, and
/// the output sequences.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scan {
    /// What runs for each element.
    pub body: Arc<Call>,
    /// How many arrays are carried.
    pub carries: usize,
    /// How many sequences there are.
    pub sequences: usize,
    /// How many elements they have.
    pub length: usize,
    /// Whether it goes from the last element to the first.
    pub reverse: bool,
}

/// Runs a body as long as a condition holds.
///
/// Inputs: what is carried, then what each run gets as it is; the condition and the body take all of them.
/// The condition gives one bool, the body what is carried on. Outputs: what is carried in the end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct While {
    /// Whether to go on.
    pub cond: Arc<Call>,
    /// What runs as long as the condition holds.
    pub body: Arc<Call>,
    /// How many arrays are carried.
    pub carries: usize,
    /// How often the body runs at most, where the condition sees to that: the vjp keeps so much.
    pub most: Option<usize>,
}

/// Runs one of its branches.
///
/// Inputs: which one, as a bool or an integer without axes, then what the branches take. A number outside of
/// the branches counts as the nearest one. Outputs: those of the branch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cond {
    /// The branches, of the same inputs and outputs; that of false comes before that of true.
    pub branches: Vec<Arc<Call>>,
}

impl Control {
    /// The graphs that run inside of it.
    pub fn bodies(&self) -> Vec<&Arc<Call>> {
        match self {
            Control::Scan(scan) => vec![&scan.body],
            Control::While(looped) => vec![&looped.cond, &looped.body],
            Control::Cond(cond) => cond.branches.iter().collect(),
        }
    }

    /// The same with bodies that have no rules.
    pub(crate) fn plain(&self) -> Control {
        match self {
            Control::Scan(scan) => Control::Scan(Scan { body: scan.body.plain(), ..scan.clone() }),
            Control::While(looped) => {
                let (cond, body) = (looped.cond.plain(), looped.body.plain());
                Control::While(While { cond, body, ..looped.clone() })
            }
            Control::Cond(cond) => {
                let branches = cond.branches.iter().map(Call::plain).collect();
                Control::Cond(Cond { branches })
            }
        }
    }

    /// How many of its first inputs are carried: these have to lie in memory as its outputs do.
    pub(crate) fn carries(&self) -> usize {
        match self {
            Control::Scan(scan) => scan.carries,
            Control::While(looped) => looped.carries,
            Control::Cond(_) => 0,
        }
    }

    /// The same on operands of these avals, with bodies for them; `None` where a body is for its own sizes alone.
    pub(crate) fn with_sizes(&self, inputs: &[&Aval]) -> Option<Control> {
        let sized =
            |call: &Arc<Call>, avals: &[&Aval]| Some(trace::body(call.body.with_sizes(avals)?));
        Some(match self {
            Control::Scan(scan) => {
                let sequences = scan.carries..scan.carries + scan.sequences;
                let length = match inputs.get(sequences.clone())?.first() {
                    Some(first) => *first.shape.first()?,
                    None => scan.length,
                };
                let taken = |(number, aval): (usize, &&Aval)| match sequences.contains(&number) {
                    true => element("scan", number, aval, length).ok(),
                    false => Some((*aval).clone()),
                };
                let avals = inputs.iter().enumerate().map(taken).collect::<Option<Vec<_>>>()?;
                let body = sized(&scan.body, &avals.iter().collect::<Vec<_>>())?;
                Control::Scan(Scan { body, length, ..scan.clone() })
            }
            Control::While(looped) => {
                let (cond, body) = (sized(&looped.cond, inputs)?, sized(&looped.body, inputs)?);
                Control::While(While { cond, body, ..looped.clone() })
            }
            Control::Cond(cond) => {
                let operands = inputs.get(1..)?;
                let branches = cond.branches.iter().map(|branch| sized(branch, operands));
                Control::Cond(Cond { branches: branches.collect::<Option<_>>()? })
            }
        })
    }

    /// Adds all of it to a plan's key.
    pub(crate) fn write_plan_key(&self, key: &mut Key) {
        let (kind, numbers): (u64, &[usize]) = match self {
            Control::Scan(s) => (0, &[s.carries, s.sequences, s.length, usize::from(s.reverse)]),
            Control::While(w) => (1, &[w.carries]),
            Control::Cond(c) => (2, &[c.branches.len()]),
        };
        key.push(kind);
        numbers.iter().for_each(|&number| key.push(number as u64));
        self.bodies().into_iter().for_each(|body| key.body(body));
    }
}

/// The name of what goes wrong in, where an input is not what a body takes.
fn expect(op: &'static str, what: &str, have: &Aval, want: &Aval) -> Result<()> {
    if have == want {
        return Ok(());
    }
    Err(Error::shape(op, format!("{what} is {have}, its body takes {want}")))
}

/// Checks what a loop carries: the body has to give what it takes.
fn carried(op: &'static str, body: &Graph, carries: usize) -> Result<()> {
    let pairs = body.input_avals().zip(body.output_avals()).take(carries).enumerate();
    for (number, (before, after)) in pairs {
        if before != after {
            return Err(Error::shape(
                op,
                format!(
                    "carried array {number} is {before} before an iteration and {after} after it"
                ),
            ));
        }
    }
    Ok(())
}

fn count(op: &'static str, what: &str, have: usize, want: usize) -> Result<()> {
    if have == want {
        return Ok(());
    }
    Err(Error::argument(op, format!("{have} {what} were given, its body has {want}")))
}

/// One element of a sequence.
fn element(op: &'static str, number: usize, sequence: &Aval, length: usize) -> Result<Aval> {
    match sequence.shape.first() {
        Some(&size) if size == length => {
            Ok(Aval { shape: Shape::from(&sequence.shape[1..]), dtype: sequence.dtype })
        }
        _ => Err(Error::shape(
            op,
            format!("sequence {number} is {sequence}, its axis 0 must have {length} elements"),
        )),
    }
}

/// `length` elements.
pub(crate) fn sequence(element: &Aval, length: usize) -> Aval {
    Aval { shape: super::batch::prepend(length, &element.shape), dtype: element.dtype }
}

impl Primitive for Control {
    fn name(&self) -> &'static str {
        match self {
            Control::Scan(_) => "scan",
            Control::While(_) => "while_loop",
            Control::Cond(_) => "cond",
        }
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = self.name();
        let outputs: Avals = match self {
            Control::Scan(scan) => scan.infer(op, inputs)?,
            Control::While(looped) => looped.infer(op, inputs)?,
            Control::Cond(cond) => cond.infer(op, inputs)?,
        };
        match outputs.is_empty() {
            true => Err(Error::argument(op, "its body gives nothing")),
            false => Ok(outputs),
        }
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Custom {
            jvp: |control, inputs, _, tangents| match control {
                Control::Scan(scan) => scan.jvp(inputs, tangents),
                Control::While(looped) => looped.jvp(inputs, tangents),
                Control::Cond(cond) => cond.jvp(inputs, tangents),
            },
            vjp: |control, r| match control {
                Control::Scan(scan) => scan.vjp(r),
                Control::While(looped) => looped.vjp(r),
                Control::Cond(cond) => cond.vjp(r),
            },
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        match self {
            Control::Scan(scan) => scan.vmap(inputs, size),
            Control::While(looped) => looped.vmap(inputs, size),
            Control::Cond(cond) => cond.vmap(inputs, size),
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: Sizes::Bodies,
        }
    }

    /// Of a loop of unknown length one iteration, of branches the largest.
    fn operations(&self, _: &[&Aval], _: &[&Aval]) -> f64 {
        match self {
            Control::Scan(scan) => scan.length as f64 * operations(&scan.body.body),
            Control::While(w) => operations(&w.cond.body) + operations(&w.body.body),
            Control::Cond(cond) => {
                cond.branches.iter().map(|b| operations(&b.body)).fold(0.0, f64::max)
            }
        }
    }
}

/// The arithmetic operations of a graph that is run once.
fn operations(graph: &Graph) -> f64 {
    let of = |node: &crate::graph::Node| {
        let inputs: Vec<&Aval> = node.inputs.iter().map(|&r| graph.aval(r)).collect();
        let outputs: Vec<&Aval> = node.outputs.iter().collect();
        match &node.op {
            Op::Input(_) | Op::Constant(_) | Op::Movement(_) | Op::Mark(_) => 0.0,
            Op::Call(call) => operations(&call.body),
            Op::Composite(op) => op.operations(&inputs, &outputs),
            Op::Control(op) => op.operations(&inputs, &outputs),
            Op::Elementwise(_) => outputs.iter().map(|aval| aval.shape.size() as f64).sum(),
            Op::Reduce(op) => op.operations(&inputs, &outputs),
            Op::Kernel(op) => op.operations(&inputs, &outputs),
            Op::Custom(op) => op.operations(&inputs, &outputs),
        }
    };
    graph.nodes.iter().map(of).sum()
}

/// Which outputs of a body that runs again and again may come to depend on what is `set`: flags of the
/// inputs, of which the first `carries` are carried on. The flags of what is carried are set until nothing
/// changes; gives those of all outputs.
fn spread(body: &Graph, carries: usize, set: &mut [bool]) -> Vec<bool> {
    loop {
        let nodes = crate::transform::rules::depends_on(body, set);
        let outputs: Vec<bool> = body.outputs.iter().map(|r| nodes[r.node as usize]).collect();
        let mut is_new = false;
        for (flag, &reached) in set.iter_mut().zip(&outputs).take(carries) {
            is_new |= reached && !*flag;
            *flag |= reached;
        }
        if !is_new {
            return outputs;
        }
    }
}

/// Which inputs of a body that runs again and again lead to outputs that are `set`, of which the first
/// `carries` are carried on; the other way round.
fn gather(body: &Graph, carries: usize, set: &mut [bool]) -> Vec<bool> {
    loop {
        let mut nodes = vec![false; body.nodes.len()];
        for (r, _) in body.outputs.iter().zip(set.iter()).filter(|(_, set)| **set) {
            nodes[r.node as usize] = true;
        }
        for index in (0..nodes.len()).rev() {
            if nodes[index] {
                body.nodes[index].inputs.iter().for_each(|r| nodes[r.node as usize] = true);
            }
        }
        let inputs: Vec<bool> = body.inputs.iter().map(|&n| nodes[n as usize]).collect();
        let mut is_new = false;
        for (flag, &reached) in set.iter_mut().zip(&inputs).take(carries) {
            is_new |= reached && !*flag;
            *flag |= reached;
        }
        if !is_new {
            return inputs;
        }
    }
}

/// Those of `all` that are `set`.
fn chosen<'a, T>(all: &'a [T], set: &'a [bool]) -> impl Iterator<Item = &'a T> {
    all.iter().zip(set).filter(|(_, set)| **set).map(|(one, _)| one)
}
