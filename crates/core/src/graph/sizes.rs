//! A graph on inputs of other sizes.

use smallvec::SmallVec;

use super::{Graph, Node, Ref};
use crate::dtype::{DType, Scalar};
use crate::prim::{Argument, Constant, Movement, Op, Sizes};
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
    /// becomes one. The caller knows that nothing else of the graph depends on sizes: see
    /// [`Traced::is_general`](super::Traced::is_general).
    pub fn with_sizes(&self, inputs: &[&Aval]) -> Option<Graph> {
        let fits = self.inputs.len() == inputs.len()
            && self.input_avals().zip(inputs).all(|(have, want)| is_alike(have, want));
        if !fits {
            return None;
        }
        let mut out = Graph::default();
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
