//! Graphs as models of ONNX, in opsets 17 to 22.
//!
//! A primitive becomes one operator or a few. Calls and composites give way to their bodies. Numbers that are
//! repeated stay numbers where they meet other operands, which ONNX broadcasts.

#![deny(clippy::wildcard_enum_match_arm)]

mod elementwise;
mod kernels;
mod movement;

use cupola_core::graph::{Graph, Node};
use cupola_core::prim::{Constant, Mark, Op, Reduce, ReduceKind};
use cupola_core::{Array, Aval, DType, Scalar};
use prost::Message;

use super::element::Element;
use super::error::{Error, Fault, Result};
use super::proto::{
    AttributeProto, Dimension, DimensionValue, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TensorType, TypeProto, TypeValue,
    ValueInfoProto,
};
use super::tensor::in_order;

/// The opsets that models are written in.
pub const EXPORTED: std::ops::RangeInclusive<i64> = 17..=22;

/// So long a file of protobuf is at most.
const MOST_BYTES: usize = i32::MAX as usize;

/// What is written: a graph with names for its inputs, outputs and weights.
pub struct Export<'a> {
    /// What the model computes. Its last inputs are the weights.
    pub graph: &'a Graph,
    /// The names of its first inputs.
    pub inputs: &'a [String],
    /// The names of its outputs.
    pub outputs: &'a [String],
    /// Its last inputs, with names.
    pub weights: &'a [(String, Array)],
    /// The version of the operators, one of [`EXPORTED`].
    pub opset: i64,
}

/// The content of an ONNX file.
///
/// # Errors
/// Where a primitive has no operators of ONNX: the text names the node.
///
/// # Example
/// ```
/// use cupola_core::{Aval, DType, graph::{Graph, Ref}, prim::Unary};
/// use cupola_import::onnx::{Export, export};
/// let mut graph = Graph::default();
/// let x = graph.input(Aval::new([2, 3], DType::F32));
/// let node = graph.push(Unary::Exp, &[x])?;
/// graph.outputs.push(Ref { node, output: 0 });
/// let (inputs, outputs) = (["x".to_owned()], ["y".to_owned()]);
/// let model =
///     Export { graph: &graph, inputs: &inputs, outputs: &outputs, weights: &[], opset: 18 };
/// assert!(export(&model)?.windows(3).any(|name| name == b"Exp"));
/// # Ok::<(), cupola_core::Error>(())
/// ```
pub fn export(what: &Export<'_>) -> Result<Vec<u8>> {
    let wrong = |detail: String| Error::file("ONNX export", detail);
    let Export { graph, inputs, outputs, weights, opset } = *what;
    if !EXPORTED.contains(&opset) {
        let (least, most) = (EXPORTED.start(), EXPORTED.end());
        return Err(wrong(format!("opset {opset} is not written, only {least} to {most}")));
    }
    if graph.inputs.len() != inputs.len() + weights.len() || graph.outputs.len() != outputs.len() {
        return Err(wrong(
            "the names of inputs, weights and outputs are not those of the graph".into(),
        ));
    }
    let mut exporter = Exporter { opset, ..Exporter::default() };
    exporter.taken.extend(inputs.iter().chain(outputs).cloned());
    let mut given: Vec<Value> = inputs.iter().map(|name| Value::Name(name.clone())).collect();
    for (name, array) in weights {
        let name = exporter.own(name);
        let bytes = array.to_bytes().map_err(|e| wrong(e.to_string()))?;
        exporter.tensor(name.clone(), array.dtype(), array.shape(), bytes);
        given.push(Value::Name(name));
    }
    let values = exporter.graph(graph, given)?;
    for (value, (name, aval)) in values.into_iter().zip(outputs.iter().zip(graph.output_avals())) {
        let from = exporter.full(value, aval);
        let node = NodeProto {
            op_type: "Identity".into(),
            input: vec![from],
            output: vec![name.clone()],
            ..NodeProto::default()
        };
        exporter.nodes.push(node);
    }
    let info = |(name, aval): (&String, &Aval)| info(name, aval);
    let model = ModelProto {
        // The version of the format that knows the opset.
        ir_version: Some(match opset {
            ..19 => 8,
            19..21 => 9,
            21.. => 10,
        }),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: opset }],
        graph: Some(GraphProto {
            name: "main".into(),
            input: inputs.iter().zip(graph.input_avals()).map(info).collect(),
            output: outputs.iter().zip(graph.output_avals()).map(info).collect(),
            node: exporter.nodes,
            initializer: exporter.initializers,
            ..GraphProto::default()
        }),
        functions: Vec::new(),
    };
    match model.encoded_len() {
        0..=MOST_BYTES => Ok(model.encode_to_vec()),
        bytes => Err(wrong(format!("{bytes} bytes are more than a file of protobuf holds"))),
    }
}

fn info(name: &str, aval: &Aval) -> ValueInfoProto {
    let size = |&n: &usize| Dimension { value: Some(DimensionValue::Value(n as i64)) };
    let shape = TensorShapeProto { dim: aval.shape.iter().map(size).collect() };
    let elem_type = Element::of(aval.dtype).code();
    let tensor = TypeValue::Tensor(TensorType { elem_type, shape: Some(shape) });
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { value: Some(tensor) }) }
}

/// What an output of a node is in the model.
#[derive(Clone, Debug)]
enum Value {
    /// This value.
    Name(String),
    /// This value without axes, repeated.
    Number(String),
}

/// An attribute's value.
enum Attr<'a> {
    Int(i64),
    Ints(Vec<i64>),
    Text(&'a str),
}

#[derive(Default)]
struct Exporter {
    opset: i64,
    nodes: Vec<NodeProto>,
    initializers: Vec<TensorProto>,
    taken: std::collections::HashSet<String>,
    /// How many names were made.
    made: usize,
}

/// Sizes and axes as ONNX has them.
fn ints(values: &[usize]) -> Vec<i64> {
    values.iter().map(|&n| n as i64).collect()
}

impl Exporter {
    /// A name like this that nothing else has.
    fn own(&mut self, like: &str) -> String {
        let mut name = like.to_owned();
        while !self.taken.insert(name.clone()) {
            self.made += 1;
            name = format!("{like}_{}", self.made);
        }
        name
    }

    fn tensor(&mut self, name: String, dtype: DType, dims: &[usize], bytes: Vec<u8>) {
        self.initializers.push(TensorProto {
            name,
            dims: ints(dims),
            data_type: Element::of(dtype).code(),
            raw_data: Some(in_order(bytes, Element::of(dtype))),
            ..TensorProto::default()
        });
    }

    /// An operator with attributes; the names of its outputs.
    fn nodes<const N: usize>(
        &mut self,
        op: &str,
        inputs: &[&str],
        attributes: &[(&str, Attr<'_>)],
    ) -> [String; N] {
        let output = std::array::from_fn(|_| self.own(&op.to_lowercase()));
        let attribute = |(name, value): &(&str, Attr<'_>)| {
            let mut proto = AttributeProto { name: (*name).into(), ..AttributeProto::default() };
            match value {
                Attr::Int(value) => (proto.r#type, proto.i) = (2, Some(*value)),
                Attr::Ints(values) => (proto.r#type, proto.ints) = (7, values.clone()),
                Attr::Text(text) => (proto.r#type, proto.s) = (3, Some(text.as_bytes().to_vec())),
            }
            proto
        };
        self.nodes.push(NodeProto {
            op_type: op.into(),
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: output.to_vec(),
            attribute: attributes.iter().map(attribute).collect(),
            ..NodeProto::default()
        });
        output
    }

    /// An operator of one output with attributes.
    fn with(&mut self, op: &str, inputs: &[&str], attributes: &[(&str, Attr<'_>)]) -> String {
        let [output] = self.nodes(op, inputs, attributes);
        output
    }

    /// An operator of one output without attributes.
    fn op(&mut self, op: &str, inputs: &[&str]) -> String {
        self.with(op, inputs, &[])
    }

    /// One number.
    fn number(&mut self, value: impl Into<Scalar>, dtype: DType) -> String {
        let name = self.own("number");
        let bytes = value.into().to_element(dtype)[..dtype.size()].to_vec();
        self.tensor(name.clone(), dtype, &[], bytes);
        name
    }

    /// A list of integers, as operators take sizes.
    fn list(&mut self, values: &[i64]) -> String {
        let name = self.own("list");
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.tensor(name.clone(), DType::I64, &[values.len()], bytes);
        name
    }

    fn cast(&mut self, x: &str, to: DType) -> String {
        self.with("Cast", &[x], &[("to", Attr::Int(Element::of(to).code().into()))])
    }

    fn reshape(&mut self, x: &str, shape: &[usize]) -> String {
        let sizes = self.list(&ints(shape));
        self.with("Reshape", &[x, &sizes], &[("allowzero", Attr::Int(1))])
    }

    fn transpose(&mut self, x: &str, axes: &[usize]) -> String {
        match axes.iter().copied().eq(0..axes.len()) {
            true => x.to_owned(),
            false => self.with("Transpose", &[x], &[("perm", Attr::Ints(ints(axes)))]),
        }
    }

    fn expand(&mut self, x: &str, shape: &[usize]) -> String {
        let sizes = self.list(&ints(shape));
        self.op("Expand", &[x, &sizes])
    }

    /// The value in all its elements.
    fn full(&mut self, value: Value, aval: &Aval) -> String {
        match value {
            Value::Name(name) => name,
            Value::Number(name) if aval.shape.rank() == 0 => name,
            Value::Number(name) => self.expand(&name, &aval.shape),
        }
    }

    /// The values of a graph's outputs, for those of its inputs.
    fn graph(&mut self, graph: &Graph, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let mut given = inputs.into_iter();
        let mut values: Vec<Vec<Value>> = Vec::with_capacity(graph.nodes.len());
        for (index, node) in graph.nodes.iter().enumerate() {
            if node.op.is_input() {
                values.push(given.next().into_iter().collect());
                continue;
            }
            let operands: Vec<(Value, &Aval)> = (node.inputs.iter())
                .map(|r| (values[r.node as usize][r.output as usize].clone(), graph.aval(*r)))
                .collect();
            let outputs = self.node(node, operands).map_err(|fault| Error::Node {
                file: "ONNX export".into(),
                node: format!("node {index} ({})", node.op.name()),
                fault,
            })?;
            values.push(outputs);
        }
        let value =
            |r: &cupola_core::graph::Ref| values[r.node as usize][r.output as usize].clone();
        Ok(graph.outputs.iter().map(value).collect())
    }

    fn node(&mut self, node: &Node, operands: Vec<(Value, &Aval)>) -> Result<Vec<Value>, Fault> {
        let avals: Vec<&Aval> = operands.iter().map(|(_, aval)| *aval).collect();
        let out = &node.outputs[0];
        let inner = |error: Error| match error {
            Error::Node { node, fault, .. } => fault.within(node),
            other => Fault::invalid(other.to_string()),
        };
        // What takes its operands as they are.
        match &node.op {
            Op::Constant(Constant { value, aval }) => {
                return Ok(vec![Value::Number(self.number(*value, aval.dtype))]);
            }
            Op::Elementwise(op) => {
                let is_number = |(value, _): &(Value, &Aval)| matches!(value, Value::Number(_));
                let all = operands.iter().all(is_number);
                let mut names: Vec<String> = Vec::with_capacity(operands.len());
                for (value, _) in operands {
                    let (Value::Name(name) | Value::Number(name)) = value;
                    names.push(name);
                }
                let name = self.elementwise(*op, &names, &avals, out)?;
                return Ok(vec![if all { Value::Number(name) } else { Value::Name(name) }]);
            }
            Op::Call(call) => {
                let values = operands.into_iter().map(|(value, _)| value).collect();
                return self.graph(&call.body, values).map_err(inner);
            }
            Op::Composite(composite) => {
                let body = composite.graph(&avals)?;
                let values = operands.into_iter().map(|(value, _)| value).collect();
                return self.graph(&body, values).map_err(inner);
            }
            Op::Input(_)
            | Op::Movement(_)
            | Op::Mark(_)
            | Op::Reduce(_)
            | Op::Kernel(_)
            | Op::Custom(_) => {}
        }
        let mut names = Vec::with_capacity(operands.len());
        for (value, aval) in operands {
            names.push(self.full(value, aval));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let one = match &node.op {
            Op::Movement(movement) => self.movement(movement, &names, &avals, out)?,
            Op::Mark(Mark::StopGradient | Mark::Depends) => names[0].to_owned(),
            Op::Reduce(reduce) => self.reduce(reduce, names[0]),
            Op::Kernel(kernel) => self.kernel(kernel, &names, &avals, out)?,
            Op::Custom(custom) => {
                return Err(Fault::unsupported(format!(
                    "'{}' is an operator of the program's own",
                    custom.0.name()
                )));
            }
            // They were met above.
            Op::Input(_)
            | Op::Constant(_)
            | Op::Elementwise(_)
            | Op::Call(_)
            | Op::Composite(_) => {
                return Err(Fault::invalid("is no operation"));
            }
        };
        Ok(vec![Value::Name(one)])
    }

    fn reduce(&mut self, reduce: &Reduce, x: &str) -> String {
        if reduce.axes.is_empty() {
            return x.to_owned();
        }
        let (op, is_bool) = match reduce.kind {
            ReduceKind::Sum => ("ReduceSum", false),
            ReduceKind::Prod => ("ReduceProd", false),
            ReduceKind::Max => ("ReduceMax", false),
            ReduceKind::Min => ("ReduceMin", false),
            ReduceKind::All => ("ReduceMin", true),
            ReduceKind::Any => ("ReduceMax", true),
        };
        let x = if is_bool { self.cast(x, DType::I32) } else { x.to_owned() };
        let axes = ints(&reduce.axes);
        let keep = ("keepdims", Attr::Int(0));
        let folded = match op == "ReduceSum" || self.opset >= 18 {
            true => {
                let axes = self.list(&axes);
                self.with(op, &[&x, &axes], &[keep])
            }
            false => self.with(op, &[&x], &[("axes", Attr::Ints(axes)), keep]),
        };
        if is_bool { self.cast(&folded, DType::Bool) } else { folded }
    }
}
