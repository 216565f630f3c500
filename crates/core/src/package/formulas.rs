//! Graphs whose numbers follow from sizes with names.
//!
//! A function is traced for several bindings of the names ([`Graph::trace_at`]), and the stored forms of its nodes are
//! compared. Where these differ in sizes and numbers alone, each of them is a [`Polynomial`] of the named sizes, or one
//! over such; the graph for other sizes has the values in their places, and is checked as if somebody had recorded it.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::code::{Number, Reader, Stored, Writer};
use super::primitives;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::graph::polynomial::Polynomial;
use crate::graph::{Graph, Node, Ref};
use crate::prim::{Movement, Op};
use crate::shape::{Aval, Shape};

/// How the numbers of a graph follow from sizes with names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Formulas {
    /// In the order of their places.
    list: Vec<(Place, Formula)>,
}

/// Where a number is: the graph, those that it calls first; the node in it; the byte of the node's stored form.
type Place = (u32, u32, u32);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Formula {
    kind: Kind,
    value: Polynomial,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Size,
    /// A whole number of a constant.
    Whole,
    /// The same as a floating-point one.
    Float,
    /// One over the value, in 64 bits.
    Over,
    /// One over the value, rounded to 32 bits.
    OverSingle,
    /// The size of what a constant, or what is repeated, meets: the shape is that of the other operand.
    Met,
}

impl Kind {
    const ALL: [Kind; 6] =
        [Kind::Size, Kind::Whole, Kind::Float, Kind::Over, Kind::OverSingle, Kind::Met];

    /// The bytes that stand for a value in a stored form: a size has these alone, a constant its kind before.
    fn bytes(self, value: i128) -> Option<[u8; 8]> {
        let float = |value: f64| Some(value.to_le_bytes());
        match self {
            Kind::Size => {
                usize::try_from(value).ok().filter(|&n| n <= isize::MAX as usize)?;
                Some((value as u64).to_le_bytes())
            }
            Kind::Whole => i64::try_from(value).ok().map(i64::to_le_bytes),
            Kind::Float => float(value as f64),
            Kind::Over => float(1.0 / value as f64),
            Kind::OverSingle => float(f64::from((1.0 / value as f64) as f32)),
            Kind::Met => Some(1u64.to_le_bytes()),
        }
    }

    /// How many bytes of a stored form come before the value's.
    fn lead(self) -> usize {
        usize::from(!matches!(self, Kind::Size | Kind::Met))
    }
}

/// The stored form of a node.
struct Form {
    primitive: (&'static str, u16),
    bytes: Vec<u8>,
    numbers: Vec<(usize, Number)>,
    inputs: SmallVec<[Ref; 3]>,
    /// Whether it repeats a number or an array to a shape.
    is_repeated: bool,
}

/// The nodes of each graph.
type Forms = Vec<Vec<Form>>;

/// The graphs that one calls, these first, each once, and it itself. `visit` is given the number of each.
fn graphs<E>(
    graph: &Arc<Graph>,
    known: &mut HashMap<usize, u32>,
    visit: &mut impl FnMut(u32, &Graph, &HashMap<usize, u32>) -> std::result::Result<(), E>,
) -> std::result::Result<u32, E> {
    let address = Arc::as_ptr(graph) as usize;
    if let Some(&number) = known.get(&address) {
        return Ok(number);
    }
    for call in graph.nodes.iter().flat_map(|node| node.op.bodies()) {
        graphs(&call.body, known, visit)?;
    }
    let number = known.len() as u32;
    known.insert(address, number);
    visit(number, graph, known)?;
    Ok(number)
}

fn bodies(op: &Op, known: &HashMap<usize, u32>) -> Vec<u32> {
    let number = |body: &Arc<Graph>| known.get(&(Arc::as_ptr(body) as usize)).copied();
    op.bodies().iter().filter_map(|call| number(&call.body)).collect()
}

fn form(node: &Node, known: &HashMap<usize, u32>) -> Result<Form> {
    let mut out = Writer::default();
    let mut op = node.op.clone();
    // What its operand says anyhow is taken from there.
    op.spatial().into_iter().flatten().for_each(|size| *size = 1);
    let primitive = primitives::write(&op, &bodies(&op, known), &mut out)
        .map_err(|detail| Error::argument("package", detail))?;
    let (bytes, numbers) = out.into_parts();
    let is_repeated = shape_of(&mut op).is_some();
    Ok(Form { primitive, bytes, numbers, inputs: node.inputs.clone(), is_repeated })
}

/// The shape to which an op repeats a number or an array.
fn shape_of(op: &mut Op) -> Option<&mut Shape> {
    if let Op::Constant(constant) = op {
        return Some(&mut constant.aval.shape);
    }
    if let Op::Movement(Movement::Broadcast(shape)) = op {
        return Some(shape);
    }
    None
}

/// Gives the nodes of `open`, which have no shape yet, that of the operand that they meet in `node`.
fn meet(out: &mut Graph, open: &mut Vec<u32>, node: &Node) -> Result<()> {
    let is_open = |r: &Ref| open.contains(&r.node);
    if open.is_empty() || !node.inputs.iter().any(is_open) {
        return Ok(());
    }
    let wrong = "the shape to which something is repeated is no polynomial of the sizes";
    let other = node.inputs.iter().find(|&r| !is_open(r));
    let (Op::Elementwise(_), Some(other)) = (&node.op, other) else {
        return Err(Error::shape("export", wrong));
    };
    let shape = out.aval(*other).shape.clone();
    for r in &node.inputs {
        let Some(at) = open.iter().position(|open| *open == r.node) else { continue };
        open.swap_remove(at);
        let mut op = out.nodes[r.node as usize].op.clone();
        if let Some(own) = shape_of(&mut op) {
            *own = shape.clone();
        }
        let inputs = out.nodes[r.node as usize].inputs.clone();
        let avals: SmallVec<[&Aval; 4]> = inputs.iter().map(|&r| out.aval(r)).collect();
        let outputs = op.infer(&avals)?;
        drop(avals);
        let made = &mut out.nodes[r.node as usize];
        (made.op, made.outputs) = (op, outputs);
    }
    Ok(())
}

/// The nodes of a graph and those that it calls, and the outputs of each graph.
fn forms(graph: &Arc<Graph>) -> Result<(Forms, Vec<Vec<Ref>>)> {
    let (mut all, mut outputs) = (Vec::new(), Vec::new());
    graphs(graph, &mut HashMap::new(), &mut |_, graph, known| {
        all.push(graph.nodes.iter().map(|node| form(node, known)).collect::<Result<Vec<_>>>()?);
        outputs.push(graph.outputs.clone());
        Ok::<_, Error>(())
    })?;
    Ok((all, outputs))
}

impl Formulas {
    /// How the numbers of these graphs follow from the named sizes, which are bound to
    /// [`points`](crate::graph::polynomial::points).
    ///
    /// # Errors
    /// Where the graphs differ in other ways, or a number is no polynomial of the sizes, nor one over such: the text
    /// names the operation.
    pub fn of(all: &[Arc<Graph>], points: &[Vec<i128>]) -> Result<Formulas> {
        let wrong = |text: String| Err(Error::shape("export", text));
        let all = all.iter().map(forms).collect::<Result<Vec<_>>>()?;
        let Some(((first, outputs), others)) = all.split_first() else {
            return Ok(Formulas::default());
        };
        let mut list = Vec::new();
        for (forms, other) in others {
            let count = |forms: &[Vec<Form>]| forms.iter().map(Vec::len).collect::<Vec<_>>();
            if count(forms) != count(first) || other != outputs {
                return wrong("the function records other operations for other sizes".into());
            }
        }
        for (graph, nodes) in first.iter().enumerate() {
            for (node, own) in nodes.iter().enumerate() {
                let forms: Vec<&Form> = std::iter::once(own)
                    .chain(others.iter().map(|(forms, _)| &forms[graph][node]))
                    .collect();
                let name = own.primitive.0;
                if !alike(&forms) {
                    return wrong(format!("the function records another '{name}' for other sizes"));
                }
                for &(at, number) in &own.numbers {
                    let met = Formula { kind: Kind::Met, value: Polynomial(Vec::new()) };
                    let may_meet = number == Number::Size && own.is_repeated;
                    let found = fitted(&forms, at, number, points);
                    let Some(formula) = found.or(may_meet.then_some(Some(met))) else {
                        return wrong(format!(
                            "a number of '{name}' depends on the sizes, and is no polynomial of them"
                        ));
                    };
                    let place = (graph as u32, node as u32, at as u32);
                    list.extend(formula.map(|formula| (place, formula)));
                }
            }
        }
        Ok(Formulas { list })
    }

    /// Whether two graphs do the same, step by step.
    pub fn are_alike(one: &Arc<Graph>, other: &Arc<Graph>) -> Result<bool> {
        let ((forms, outputs), (others, other_outputs)) = (forms(one)?, forms(other)?);
        let same = |a: &Form, b: &Form| {
            a.primitive == b.primitive && a.inputs == b.inputs && a.bytes == b.bytes
        };
        let all = |a: &Vec<Form>, b: &Vec<Form>| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        };
        let lengths = forms.len() == others.len() && outputs == other_outputs;
        Ok(lengths && forms.iter().zip(&others).all(|(a, b)| all(a, b)))
    }

    /// The graph for these values of the named sizes, in order. `graph` is that of the first binding.
    ///
    /// # Errors
    /// Where a number is none that its place can hold, or the operations do not fit each other for these sizes.
    pub fn graph(&self, graph: &Arc<Graph>, sizes: &[usize]) -> Result<Arc<Graph>> {
        let point: Vec<i128> = sizes.iter().map(|&size| size as i128).collect();
        let mut made: Vec<Arc<Graph>> = Vec::new();
        let mut rest = &self.list[..];
        graphs(graph, &mut HashMap::new(), &mut |number, own, known| {
            let mut out = Graph { nodes: Vec::with_capacity(own.nodes.len()), ..Graph::default() };
            let mut open: Vec<u32> = Vec::new();
            for (index, node) in own.nodes.iter().enumerate() {
                let place = (number, index as u32);
                let count = rest.iter().take_while(|((g, n, _), _)| (*g, *n) == place).count();
                let (formulas, after) = rest.split_at(count);
                rest = after;
                let is_other = !formulas.is_empty() || !node.op.bodies().is_empty();
                let mut op = match is_other {
                    true => sized(node, formulas, known, &made, &point)
                        .map_err(|detail| Error::shape("package", detail))?,
                    false => node.op.clone(),
                };
                meet(&mut out, &mut open, node)?;
                if formulas.iter().any(|(_, formula)| formula.kind == Kind::Met) {
                    open.push(index as u32);
                    out.nodes.push(Node { op, ..node.clone() });
                    continue;
                }
                let avals: SmallVec<[&Aval; 4]> =
                    node.inputs.iter().map(|&r| out.aval(r)).collect();
                if let (Some(own), Some(first)) = (op.spatial(), avals.first()) {
                    let inner = 1..first.shape.rank().max(2) - 1;
                    *own = first.shape.get(inner).unwrap_or_default().iter().copied().collect();
                }
                let outputs = op.infer(&avals)?;
                drop(avals);
                if outputs.len() != node.outputs.len() {
                    return Err(Error::argument("package", "a formula changes what a node gives"));
                }
                let (inputs, line) = (node.inputs.clone(), node.line.clone());
                out.nodes.push(Node { op, inputs, outputs, line });
            }
            if !open.is_empty() {
                return Err(Error::argument("package", "a shape is left open"));
            }
            out.inputs = own.inputs.clone();
            out.outputs = own.outputs.clone();
            made.push(Arc::new(out));
            Ok::<_, Error>(())
        })?;
        let made = made.pop().filter(|_| rest.is_empty());
        made.ok_or_else(|| Error::argument("package", "a formula is for a place that is not there"))
    }
}

/// Whether the stored forms of a node differ in numbers alone.
fn alike(forms: &[&Form]) -> bool {
    let bare = |form: &Form| {
        let mut bytes = form.bytes.clone();
        for &(at, number) in &form.numbers {
            let start = at + usize::from(number == Number::Scalar);
            bytes[start..start + 8].fill(0);
        }
        bytes
    };
    let first = forms[0];
    forms[1..].iter().all(|other| {
        other.primitive == first.primitive
            && other.inputs == first.inputs
            && other.numbers == first.numbers
            && (other.bytes == first.bytes || bare(other) == bare(first))
    })
}

/// How a number follows from sizes; `Some(None)` where it does not depend on them, `None` where nothing is known.
fn fitted(
    forms: &[&Form],
    at: usize,
    number: Number,
    points: &[Vec<i128>],
) -> Option<Option<Formula>> {
    let start = at + usize::from(number == Number::Scalar);
    let bits = |form: &&Form| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&form.bytes[start..start + 8]);
        u64::from_le_bytes(bytes)
    };
    let bits: Vec<u64> = forms.iter().map(bits).collect();
    if bits.iter().all(|own| *own == bits[0]) {
        return Some(None);
    }
    let is_right = |formula: &Formula| {
        let values = points.iter().map(|point| formula.value.at(point));
        values.zip(&bits).all(|(value, bits)| {
            value.and_then(|value| formula.kind.bytes(value)) == Some(bits.to_le_bytes())
        })
    };
    let of = |kind: Kind, values: Option<Vec<i128>>| {
        let value = Polynomial::of(&values?, points)?;
        Some(Formula { kind, value }).filter(is_right)
    };
    let whole = |value: f64| (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i128);
    let floats = || bits.iter().map(|&bits| f64::from_bits(bits));
    let over = || floats().map(|value| whole((1.0 / value).round())).collect();
    let kind = (number == Number::Scalar).then(|| forms[0].bytes[at]);
    let found = match kind.map(|kind| Scalar::Float(0.0).bits().0 == kind) {
        None => of(Kind::Size, Some(bits.iter().map(|&bits| bits.into()).collect())),
        Some(false) => {
            of(Kind::Whole, Some(bits.iter().map(|&bits| (bits as i64).into()).collect()))
        }
        Some(true) => of(Kind::Float, floats().map(whole).collect())
            .or_else(|| of(Kind::Over, over()))
            .or_else(|| of(Kind::OverSingle, over())),
    };
    found.map(Some)
}

/// The op of a node with the values of formulas, and bodies that are made already.
fn sized(
    node: &Node,
    formulas: &[(Place, Formula)],
    known: &HashMap<usize, u32>,
    made: &[Arc<Graph>],
    point: &[i128],
) -> std::result::Result<Op, String> {
    let Form { primitive: (name, version), mut bytes, .. } =
        form(node, known).map_err(|error| error.to_string())?;
    for ((_, _, at), Formula { kind, value }) in formulas {
        let start = *at as usize + kind.lead();
        let value = value.at(point).and_then(|value| kind.bytes(value));
        let place = bytes.get_mut(start..start.saturating_add(8));
        match (value, place) {
            (Some(value), Some(place)) => place.copy_from_slice(&value),
            _ => return Err(format!("a number of '{name}' is none for the sizes {point:?}")),
        }
    }
    let mut from = Reader::new(&bytes);
    let op = primitives::read((name, version), &mut from, &mut |number| {
        made.get(number as usize).cloned().ok_or_else(|| format!("graph {number} is not there"))
    })?;
    match from.rest() {
        0 => Ok(op),
        more => Err(format!("{more} bytes follow '{name}'")),
    }
}

impl Stored for Formulas {
    fn write(&self, out: &mut Writer) {
        (self.list.len() as u32).write(out);
        for ((graph, node, at), Formula { kind, value }) in &self.list {
            [graph, node, at].into_iter().for_each(|number| number.write(out));
            (*kind as u8).write(out);
            (value.0.len() as u32).write(out);
            for (factor, names) in &value.0 {
                // A factor comes from numbers of 64 bits, and is within 128.
                ((*factor as u128) as u64).write(out);
                ((*factor as u128 >> 64) as u64).write(out);
                (names.len() as u8).write(out);
                names.iter().for_each(|&name| (name as u8).write(out));
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> std::result::Result<Self, String> {
        let count = from.count(17, "formulas")?;
        let mut list: Vec<(Place, Formula)> = Vec::with_capacity(count);
        for _ in 0..count {
            let place = (u32::read(from)?, u32::read(from)?, u32::read(from)?);
            if list.last().is_some_and(|(before, _)| *before >= place) {
                return Err("formulas are not in the order of their places".into());
            }
            let kind = usize::from(u8::read(from)?);
            let kind =
                *Kind::ALL.get(kind).ok_or_else(|| format!("formula {kind} is not known"))?;
            let count = from.count(17, "terms")?;
            let mut terms = Vec::with_capacity(count);
            for _ in 0..count {
                let (low, high) = (u64::read(from)?, u64::read(from)?);
                let factor = (u128::from(high) << 64 | u128::from(low)) as i128;
                let count = u8::read(from)?;
                let name = |_| u8::read(from).map(usize::from);
                let names = (0..count).map(name).collect::<std::result::Result<_, _>>()?;
                terms.push((factor, names));
            }
            list.push((place, Formula { kind, value: Polynomial(terms) }));
        }
        Ok(Formulas { list })
    }
}
