//! A graph on inputs of other sizes.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::{Graph, Node, Ref};
use crate::dtype::{DType, Scalar};
use crate::prim::{Argument, Constant, Control, Movement, Op, Sizes};
use crate::shape::{Aval, Shape};

/// What a node of the first graph is in the second.
#[derive(Clone)]
enum Value {
    /// The same, in other sizes.
    Same(Ref),
    /// The array that it repeats, and that one's shape in the first graph. How often, the
    /// elementwise operation that it meets says.
    Repeated(Ref, Shape),
    /// A number, repeated likewise.
    Number(Scalar, DType),
}

impl Graph {
    /// This graph on inputs of other sizes; `None` where a node was recorded with sizes that cannot
    /// be told from those of its inputs.
    ///
    /// An axis of size 1 broadcasts and one of size 0 holds nothing, so they stay so, and no other
    /// becomes one. The caller knows that nothing else of the graph depends on sizes.
    pub fn with_sizes(&self, inputs: &[&Aval]) -> Option<Graph> {
        let fits = self.inputs.len() == inputs.len()
            && self.input_avals().zip(inputs).all(|(have, want)| is_alike(have, want));
        if !fits {
            return None;
        }
        let mut out = Graph::default();
        let changes = changes(self.input_avals().zip(inputs.iter().copied()));
        let mut inputs = inputs.iter();
        let mut values: Vec<Value> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let given: SmallVec<[Value; 4]> = node.inputs.iter().map(|&r| at(&values, r)).collect();
            let operands: SmallVec<[&Value; 4]> = given.iter().collect();
            let first = out.nodes.len();
            let value = match node.op.facts().sizes {
                Sizes::Given => Value::Same(out.input((*inputs.next()?).clone())),
                Sizes::Number => number_of(node)?,
                Sizes::Repeated => match operands[0] {
                    Value::Same(r) => Value::Repeated(*r, self.aval(node.inputs[0]).shape.clone()),
                    known @ (Value::Repeated(..) | Value::Number(..)) => (*known).clone(),
                },
                Sizes::Elementwise => {
                    elementwise(&mut out, &node.op, &operands, &node.outputs[0].shape)?
                }
                Sizes::Inferred => {
                    let same = |value: &&Value| match value {
                        Value::Same(r) => Some(*r),
                        Value::Repeated(..) | Value::Number(..) => None,
                    };
                    let refs: SmallVec<[Ref; 4]> =
                        operands.iter().map(same).collect::<Option<_>>()?;
                    Value::Same(Ref { node: out.push(node.op.clone(), &refs).ok()?, output: 0 })
                }
                Sizes::Bodies => {
                    let Op::Control(op) = &node.op else { return None };
                    let before: SmallVec<[&Aval; 4]> =
                        node.inputs.iter().map(|&r| self.aval(r)).collect();
                    Value::Same(control(&mut out, op, &operands, &before, &changes)?)
                }
                Sizes::Fixed => return None,
            };
            out.nodes[first..].iter_mut().for_each(|made| made.line = node.line.clone());
            values.push(value);
        }
        for r in &self.outputs {
            let output = match at(&values, *r) {
                Value::Same(r) => r,
                Value::Number(value, _) if self.aval(*r).shape.rank() == 0 => {
                    number(&mut out, value, self.aval(*r).clone())?
                }
                Value::Repeated(..) | Value::Number(..) => return None,
            };
            out.outputs.push(output);
        }
        Some(out)
    }
}

/// An output of a node: the node in the second graph has as many.
fn at(values: &[Value], r: Ref) -> Value {
    match &values[r.node as usize] {
        Value::Same(first) => Value::Same(Ref { output: r.output, ..*first }),
        known @ (Value::Repeated(..) | Value::Number(..)) => known.clone(),
    }
}

/// Whether one array may stand where the other stood.
fn is_alike(have: &Aval, want: &Aval) -> bool {
    have.dtype == want.dtype
        && have.shape.rank() == want.shape.rank()
        && have.shape.iter().zip(want.shape.iter()).all(|(&a, &b)| a.min(2) == b.min(2))
}

/// What each size of an input is in the second graph: several where one number is of two meanings.
type Changes = BTreeMap<usize, BTreeSet<usize>>;

fn changes<'a>(inputs: impl Iterator<Item = (&'a Aval, &'a Aval)>) -> Changes {
    let mut changes = Changes::new();
    for (before, after) in inputs {
        for (&have, &want) in before.shape.iter().zip(after.shape.iter()) {
            changes.entry(have).or_insert_with(|| BTreeSet::from([have])).insert(want);
        }
    }
    changes
}

/// So many ways to size what a loop or a choice repeats are tried.
const MOST_WAYS: usize = 64;

/// A loop or a choice on operands of other sizes. Of a number that it is given, such as what is carried at first,
/// nothing says how often it is repeated: of what its size may be in the second graph the bodies have to take one way
/// alone.
fn control(
    out: &mut Graph,
    op: &Control,
    operands: &[&Value],
    before: &[&Aval],
    changes: &Changes,
) -> Option<Ref> {
    let mut ways: Vec<Vec<Aval>> = vec![Vec::new()];
    for (value, before) in operands.iter().zip(before) {
        let known = |r: &Ref| vec![out.aval(*r).shape.clone()];
        let shapes = match value {
            Value::Same(r) => known(r),
            Value::Repeated(..) | Value::Number(..) => {
                before.shape.iter().fold(vec![Shape::scalar()], |shapes, size| {
                    let own = BTreeSet::from([*size]);
                    let sizes = changes.get(size).unwrap_or(&own);
                    let with =
                        |shape: &Shape, size: &usize| Shape::from([&shape[..], &[*size]].concat());
                    let more = |shape: Shape| sizes.iter().map(move |n| with(&shape, n)).collect();
                    shapes.into_iter().flat_map(|shape| -> Vec<Shape> { more(shape) }).collect()
                })
            }
        };
        if ways.len() * shapes.len() > MOST_WAYS {
            return None;
        }
        let with = |way: &Vec<Aval>, shape: &Shape| {
            let aval = Aval { shape: shape.clone(), dtype: before.dtype };
            [&way[..], &[aval]].concat()
        };
        ways = ways.iter().flat_map(|way| shapes.iter().map(move |s| with(way, s))).collect();
    }
    let mut found = None;
    for way in ways {
        let avals: Vec<&Aval> = way.iter().collect();
        let Some(sized) = op.with_sizes(&avals) else { continue };
        let op = Op::from(sized);
        if op.infer(&avals).is_err() {
            continue;
        }
        if found.replace((op, way)).is_some() {
            return None;
        }
    }
    let (op, way) = found?;
    let mut refs: SmallVec<[Ref; 4]> = SmallVec::new();
    for (value, aval) in operands.iter().zip(way) {
        refs.push(match value {
            Value::Same(r) => *r,
            Value::Number(value, _) => number(out, *value, aval)?,
            Value::Repeated(r, _) => {
                let spread = out.push(Movement::Broadcast(aval.shape), &[*r]).ok()?;
                Ref { node: spread, output: 0 }
            }
        });
    }
    Some(Ref { node: out.push(op, &refs).ok()?, output: 0 })
}

/// The number that a node repeats.
fn number_of(node: &Node) -> Option<Value> {
    match node.op.facts().argument {
        Argument::Number(value) => Some(Value::Number(value, node.outputs[0].dtype)),
        Argument::None | Argument::Starts(_) => None,
    }
}

/// An elementwise operation, its operands broadcast together. Where those did not reach `before`,
/// the shape of its result in the first graph, that is repeated, too.
fn elementwise(out: &mut Graph, op: &Op, operands: &[&Value], before: &Shape) -> Option<Value> {
    let (mut shape, mut reached) = (Shape::scalar(), Shape::scalar());
    for value in operands {
        let (r, own) = match value {
            Value::Same(r) => (r, before),
            Value::Repeated(r, own) => (r, own),
            Value::Number(..) => continue,
        };
        shape = shape.broadcast(&out.aval(*r).shape, "compile").ok()?;
        reached = reached.broadcast(own, "compile").ok()?;
    }
    if operands.iter().all(|value| matches!(value, Value::Number(..))) {
        return None;
    }
    let mut refs: SmallVec<[Ref; 4]> = SmallVec::new();
    for value in operands {
        refs.push(match value {
            Value::Number(value, dtype) => {
                number(out, *value, Aval { shape: shape.clone(), dtype: *dtype })?
            }
            Value::Same(r) | Value::Repeated(r, _) if out.aval(*r).shape == shape => *r,
            // What met the others in its full size is not smaller than they are now.
            Value::Same(_) => return None,
            Value::Repeated(r, _) => {
                let spread = out.push(Movement::Broadcast(shape.clone()), &[*r]).ok()?;
                Ref { node: spread, output: 0 }
            }
        });
    }
    let result = Ref { node: out.push(op.clone(), &refs).ok()?, output: 0 };
    Some(if reached == *before { Value::Same(result) } else { Value::Repeated(result, reached) })
}

fn number(out: &mut Graph, value: Scalar, aval: Aval) -> Option<Ref> {
    Some(Ref { node: out.push(Constant { value, aval }, &[]).ok()?, output: 0 })
}
