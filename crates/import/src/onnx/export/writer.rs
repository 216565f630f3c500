//! The nodes and tensors of a model in the making.

use std::collections::HashMap;

use cupola_core::{Array, DType, Error, Result, Scalar, Shape};
use prost::bytes::Bytes;

use super::super::element::Element;
use super::super::proto::{AttributeProto, GraphProto, NodeProto, TensorProto};
use super::super::tensor::in_order;

/// A value of the model: its name, and its shape there. That may have sizes of 1, or fewer axes, where the
/// graph repeats it: operators of the format repeat operands themselves.
#[derive(Clone, Debug)]
pub struct Val {
    pub name: String,
    pub shape: Shape,
    pub dtype: DType,
}

/// An attribute of a node.
pub enum Attr<'a> {
    Int(&'a str, i64),
    Ints(&'a str, Vec<i64>),
    Text(&'a str, &'a str),
    Graph(&'a str, GraphProto),
}

/// What a tensor is told from others by: element type, sizes and bytes.
type Content = (i32, Vec<i64>, Bytes);

/// A model in the making.
pub struct Writer {
    pub nodes: Vec<NodeProto>,
    pub tensors: Vec<TensorProto>,
    /// The version of the operators.
    pub opset: i64,
    /// Tensors by content; `None` where each is one of its own.
    known: Option<HashMap<Content, String>>,
    count: usize,
}

/// Something that the format, or this writer, has no operator for.
pub fn unsupported(detail: impl Into<String>) -> Error {
    Error::argument("onnx.export", detail)
}

fn sizes(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&size| size as i64).collect()
}

impl Writer {
    pub fn new(opset: i64) -> Writer {
        Writer::from(opset, 0)
    }

    /// One that tells tensors apart also where they are alike, so that names depend on operations alone.
    pub fn telling_apart(opset: i64) -> Writer {
        Writer { known: None, ..Writer::new(opset) }
    }

    /// One whose names come behind so many.
    pub fn from(opset: i64, count: usize) -> Writer {
        let (nodes, tensors) = (Vec::new(), Vec::new());
        Writer { nodes, tensors, opset, known: Some(HashMap::new()), count }
    }

    /// How many names there are.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn into_parts(self) -> (Vec<NodeProto>, Vec<TensorProto>) {
        (self.nodes, self.tensors)
    }

    /// A new name.
    pub fn name(&mut self, what: &str) -> String {
        self.count += 1;
        format!("{what}_{}", self.count)
    }

    /// A node with so many outputs; their names.
    pub fn node(
        &mut self,
        op: &str,
        inputs: &[&str],
        attributes: &[Attr<'_>],
        outputs: usize,
    ) -> Vec<String> {
        let name = self.name(op);
        let outputs: Vec<String> = (0..outputs).map(|n| format!("{name}.{n}")).collect();
        // The numbers are those of `AttributeProto.AttributeType`.
        let attribute = |attr: &Attr<'_>| match attr {
            Attr::Int(name, i) => AttributeProto {
                name: (*name).into(),
                r#type: 2,
                i: Some(*i),
                ..Default::default()
            },
            Attr::Ints(name, ints) => AttributeProto {
                name: (*name).into(),
                r#type: 7,
                ints: ints.clone(),
                ..Default::default()
            },
            Attr::Text(name, text) => AttributeProto {
                name: (*name).into(),
                r#type: 3,
                s: Some(text.as_bytes().to_vec()),
                ..Default::default()
            },
            Attr::Graph(name, graph) => AttributeProto {
                name: (*name).into(),
                r#type: 5,
                g: Some(graph.clone()),
                ..Default::default()
            },
        };
        self.nodes.push(NodeProto {
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: outputs.clone(),
            name,
            op_type: op.to_owned(),
            attribute: attributes.iter().map(attribute).collect(),
            ..Default::default()
        });
        outputs
    }

    /// A node with one output; its name.
    pub fn op(&mut self, op: &str, inputs: &[&str], attributes: &[Attr<'_>]) -> String {
        self.node(op, inputs, attributes, 1).swap_remove(0)
    }

    /// A node with one output of this shape and dtype.
    pub fn val(
        &mut self,
        op: &str,
        inputs: &[&Val],
        attributes: &[Attr<'_>],
        shape: impl Into<Shape>,
        dtype: DType,
    ) -> Val {
        let names: Vec<&str> = inputs.iter().map(|val| val.name.as_str()).collect();
        Val { name: self.op(op, &names, attributes), shape: shape.into(), dtype }
    }

    /// An elementwise node, whose result is as the operands broadcast.
    pub fn map(&mut self, op: &str, inputs: &[&Val], dtype: DType) -> Val {
        self.map_with(op, inputs, &[], dtype)
    }

    /// The same with attributes.
    pub fn map_with(
        &mut self,
        op: &str,
        inputs: &[&Val],
        attributes: &[Attr<'_>],
        dtype: DType,
    ) -> Val {
        let shape = inputs.iter().fold(Shape::from(()), |shape, val| joint(&shape, &val.shape));
        self.val(op, inputs, attributes, shape, dtype)
    }

    /// A tensor of these elements in the machine's order, one for all that are alike.
    fn tensor(&mut self, dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Result<Val> {
        let element = Element::of(dtype);
        let bytes = in_order(bytes.into(), element).into_owned().into();
        let content: Content = (element.code(), sizes(shape), bytes);
        let known = self.known.as_ref().and_then(|known| known.get(&content));
        let name = match known {
            Some(name) => name.clone(),
            None => {
                let name = self.name("constant");
                if let Some(known) = &mut self.known {
                    known.insert(content.clone(), name.clone());
                }
                let (data_type, dims, bytes) = content;
                self.tensors.push(TensorProto {
                    dims,
                    data_type,
                    name: name.clone(),
                    raw_data: Some(bytes),
                    ..Default::default()
                });
                name
            }
        };
        Ok(Val { name, shape: Shape::from(shape), dtype })
    }

    /// An array that the model holds.
    pub fn array(&mut self, array: &Array) -> Result<Val> {
        let bytes = array.to_bytes()?;
        self.tensor(array.dtype(), array.shape(), bytes)
    }

    /// Whole numbers along one axis.
    pub fn ints(&mut self, values: &[i64]) -> Result<Val> {
        let bytes = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.tensor(DType::I64, &[values.len()], bytes)
    }

    /// Truth values of a shape.
    pub fn bools(&mut self, values: &[bool], shape: &[usize]) -> Result<Val> {
        self.tensor(DType::Bool, shape, values.iter().map(|&value| u8::from(value)).collect())
    }

    /// One number.
    pub fn scalar(&mut self, value: impl Into<Scalar>, dtype: DType) -> Result<Val> {
        let bytes = value.into().to_element(dtype)[..dtype.size()].to_vec();
        self.tensor(dtype, &[], bytes)
    }

    /// The value in another dtype.
    pub fn cast(&mut self, val: &Val, dtype: DType) -> Result<Val> {
        if val.dtype == dtype {
            return Ok(val.clone());
        }
        let to = i64::from(Element::of(dtype).code());
        Ok(self.val("Cast", &[val], &[Attr::Int("to", to)], val.shape.clone(), dtype))
    }

    /// The value with all its elements, of `shape`.
    pub fn full(&mut self, val: &Val, shape: &Shape) -> Result<Val> {
        if val.shape == *shape {
            return Ok(val.clone());
        }
        let to = self.ints(&sizes(shape))?;
        Ok(self.val("Expand", &[val, &to], &[], shape.clone(), val.dtype))
    }

    /// The elements of a value, all of which it has, in another shape.
    pub fn reshape(&mut self, val: &Val, shape: &[usize]) -> Result<Val> {
        if val.shape[..] == *shape {
            return Ok(val.clone());
        }
        let to = self.ints(&sizes(shape))?;
        // A size of 0 is meant as such.
        let attributes = [Attr::Int("allowzero", i64::from(shape.contains(&0)))];
        Ok(self.val("Reshape", &[val, &to], &attributes, shape, val.dtype))
    }

    pub fn transpose(&mut self, val: &Val, axes: &[usize]) -> Val {
        if axes.iter().enumerate().all(|(at, &axis)| at == axis) {
            return val.clone();
        }
        let shape: Vec<usize> = axes.iter().map(|&axis| val.shape[axis]).collect();
        self.val("Transpose", &[val], &[Attr::Ints("perm", sizes(axes))], &shape[..], val.dtype)
    }

    /// Elements from `start`, `step` apart, along each axis.
    pub fn slice(
        &mut self,
        val: &Val,
        start: &[usize],
        counts: &[usize],
        step: &[usize],
    ) -> Result<Val> {
        if val.shape[..] == *counts {
            return Ok(val.clone());
        }
        let last = |axis: usize| start[axis] + counts[axis].saturating_sub(1) * step[axis];
        let end = |axis: usize| if counts[axis] == 0 { start[axis] } else { last(axis) + 1 };
        let ends: Vec<usize> = (0..counts.len()).map(end).collect();
        let axes: Vec<usize> = (0..counts.len()).collect();
        let (starts, ends) = (self.ints(&sizes(start))?, self.ints(&sizes(&ends))?);
        let (axes, steps) = (self.ints(&sizes(&axes))?, self.ints(&sizes(step))?);
        Ok(self.val("Slice", &[val, &starts, &ends, &axes, &steps], &[], counts, val.dtype))
    }

    /// The elements in the opposite order along some axes.
    pub fn flip(&mut self, val: &Val, axes: &[usize]) -> Result<Val> {
        if axes.is_empty() {
            return Ok(val.clone());
        }
        let all = |value: i64| vec![value; axes.len()];
        let (starts, ends) = (self.ints(&all(-1))?, self.ints(&all(i64::MIN))?);
        let (axes, steps) = (self.ints(&sizes(axes))?, self.ints(&all(-1))?);
        let inputs = [val, &starts, &ends, &axes, &steps];
        Ok(self.val("Slice", &inputs, &[], val.shape.clone(), val.dtype))
    }

    /// The value with `fill` before, behind and between its elements.
    pub fn pad(
        &mut self,
        val: &Val,
        fill: &Val,
        low: &[usize],
        high: &[usize],
        interior: &[usize],
    ) -> Result<Val> {
        let mut val = val.clone();
        for (axis, &between) in interior.iter().enumerate() {
            let size = val.shape[axis];
            if between == 0 || size <= 1 {
                continue;
            }
            // Each element becomes a row of its own, which is filled up; the last is cut.
            let mut shape: Vec<usize> = val.shape.to_vec();
            shape.insert(axis + 1, 1);
            let row = self.reshape(&val, &shape)?;
            let mut behind = vec![0; shape.len()];
            behind[axis + 1] = between;
            let rows = self.border(&row, fill, &vec![0; shape.len()], &behind)?;
            let mut shape: Vec<usize> = val.shape.to_vec();
            shape[axis] = size * (between + 1);
            let all = self.reshape(&rows, &shape)?;
            shape[axis] -= between;
            val = self.slice(&all, &vec![0; shape.len()], &shape, &vec![1; shape.len()])?;
        }
        self.border(&val, fill, low, high)
    }

    fn border(&mut self, val: &Val, fill: &Val, low: &[usize], high: &[usize]) -> Result<Val> {
        if low.iter().chain(high).all(|&count| count == 0) {
            return Ok(val.clone());
        }
        let shape: Vec<usize> =
            val.shape.iter().zip(low.iter().zip(high)).map(|(s, (l, h))| s + l + h).collect();
        let widths: Vec<usize> = low.iter().chain(high).copied().collect();
        let widths = self.ints(&sizes(&widths))?;
        Ok(self.val("Pad", &[val, &widths, fill], &[], &shape[..], val.dtype))
    }
}

/// The shape that two shapes broadcast to, which fit each other.
fn joint(a: &Shape, b: &Shape) -> Shape {
    let rank = a.rank().max(b.rank());
    let at = |shape: &Shape, axis: usize| match (axis + shape.rank()).checked_sub(rank) {
        Some(own) => shape[own],
        None => 1,
    };
    let size = |axis| match (at(a, axis), at(b, axis)) {
        (1, size) => size,
        (size, _) => size,
    };
    let all: Vec<usize> = (0..rank).map(size).collect();
    Shape::from(&all[..])
}
