//! A graph on inputs of other sizes.

use smallvec::SmallVec;

use super::{Graph, Ref};
use crate::dtype::{DType, Scalar};
use crate::prim::{Constant, Movement, Op};
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
    /// An axis of size 1 broadcasts, so it stays one, and no other becomes one. The caller knows
    /// that nothing else of the graph depends on sizes: see [`crate::transform::note_sizes`].
    pub(crate) fn with_sizes(&self, inputs: &[&Aval]) -> Option<Graph> {
        let fits = self.inputs.len() == inputs.len()
            && self.input_avals().zip(inputs).all(|(have, want)| is_alike(have, want));
        if !fits {
            return None;
        }
        let mut out = Graph::default();
        let mut inputs = inputs.iter();
        // No operation here has a second output.
        let mut values: Vec<Value> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let operands: SmallVec<[&Value; 4]> =
                node.inputs.iter().map(|r| &values[r.node as usize]).collect();
            let value = match (&node.op, &operands[..]) {
                (Op::Input(_), _) => Value::Same(out.input((*inputs.next()?).clone())),
                (Op::Constant(c), _) => Value::Number(c.value, c.aval.dtype),
                (Op::Movement(Movement::Broadcast(_)), [value]) => match value {
                    Value::Same(r) => Value::Repeated(*r, self.aval(node.inputs[0]).shape.clone()),
                    other => (*other).clone(),
                },
                (op, _) if op.is_elementwise() => {
                    elementwise(&mut out, op, &operands, &node.outputs[0].shape)?
                }
                (op, _) if has_no_sizes(op) => {
                    let same = |value: &&Value| match value {
                        Value::Same(r) => Some(*r),
                        Value::Repeated(..) | Value::Number(..) => None,
                    };
                    let refs: SmallVec<[Ref; 4]> =
                        operands.iter().map(same).collect::<Option<_>>()?;
                    Value::Same(Ref { node: out.push(op.clone(), &refs).ok()?, output: 0 })
                }
                _ => return None,
            };
            drop(operands);
            values.push(value);
        }
        for r in &self.outputs {
            let output = match &values[r.node as usize] {
                Value::Same(r) => *r,
                Value::Number(value, _) if self.aval(*r).shape.rank() == 0 => {
                    number(&mut out, *value, self.aval(*r).clone())?
                }
                Value::Repeated(..) | Value::Number(..) => return None,
            };
            out.outputs.push(output);
        }
        Some(out)
    }
}

/// Whether one array may stand where the other stood.
fn is_alike(have: &Aval, want: &Aval) -> bool {
    have.dtype == want.dtype
        && have.shape.rank() == want.shape.rank()
        && have.shape.iter().zip(want.shape.iter()).all(|(a, b)| (*a == 1) == (*b == 1))
}

/// Whether nothing of an operation's parameters is a size, and it has one output.
fn has_no_sizes(op: &Op) -> bool {
    match op {
        Op::Mark(_)
        | Op::Reduce(_)
        | Op::ArgReduce(_)
        | Op::Scan(_)
        | Op::Sort(_)
        | Op::Dot(_)
        | Op::Movement(
            Movement::Flatten { .. }
            | Movement::Squeeze(_)
            | Movement::ExpandDims(_)
            | Movement::Transpose(_)
            | Movement::Flip(_)
            | Movement::Concatenate { .. },
        ) => true,
        Op::Movement(
            Movement::Reshape(_)
            | Movement::Unflatten { .. }
            | Movement::Broadcast(_)
            | Movement::Slice { .. }
            | Movement::SliceUpdate { .. }
            | Movement::Pad { .. },
        )
        | Op::Input(_)
        | Op::Constant(_)
        | Op::Iota(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select(_)
        | Op::Cast(_)
        | Op::Bitcast(_)
        | Op::Gather(_)
        | Op::Scatter(_)
        | Op::GatherAxis(_)
        | Op::ScatterAxis(_)
        | Op::Conv(_)
        | Op::Pool(_)
        | Op::RandomBits(_)
        | Op::Call(_)
        | Op::Custom(_) => false,
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
