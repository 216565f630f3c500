//! Graphs of Cupola as models of ONNX, opset 17 to 22.
//!
//! Each primitive becomes the operators that compute it; calls and composites become what they are made of,
//! control flow becomes `Scan`, `Loop` and `If`.
//! Sizes are those that the graph was traced for, or have names (`sized`). What has no operator is an error that names it.

#![deny(clippy::wildcard_enum_match_arm)]

mod control;
mod elementwise;
mod kernel;
mod movement;
mod sized;
mod window;
mod writer;

use std::collections::HashMap;

use cupola_core::graph::{Graph, Ref};
use cupola_core::prim::{Mark, Op, ReduceKind};
use cupola_core::{Array, Aval, DType, Error, Result, Shape};
use prost::Message;

use super::element::Element;
use super::proto::{
    Dimension, DimensionValue, GraphProto, ModelProto, OperatorSetIdProto, TensorShapeProto,
    TensorType, TypeProto, TypeValue, ValueInfoProto,
};
use elementwise::computed;
use writer::{Attr, Val, Writer, unsupported};

pub use sized::{Input, export_sized};

/// The versions of the operators that models are written for.
pub const OPSETS: std::ops::RangeInclusive<i64> = 17..=22;

/// The bytes of a model for a graph.
///
/// The first inputs of the graph are the model's, and have `inputs` as names; the others are `weights`, which
/// the model holds. `outputs` are the names of what it gives.
///
/// # Errors
/// Where a primitive has no operators, and is then named; where names are missing or come twice; where the
/// opset is none of [`OPSETS`]; where the model would have more than the 2 GiB that a file can.
///
/// # Example
/// ```
/// use cupola_core::graph::Graph;
/// use cupola_core::prim::Unary;
/// use cupola_core::{Aval, DType};
/// use cupola_import::onnx;
/// let mut graph = Graph::default();
/// let x = graph.input(Aval::new([2, 3], DType::F32));
/// let node = graph.push(cupola_core::prim::Elementwise::from(Unary::Tanh), &[x])?;
/// graph.outputs.push(cupola_core::graph::Ref { node, output: 0 });
/// let bytes = onnx::export(&graph, &["x"], &["y"], &[], 18)?;
/// assert_eq!(onnx::Model::from_bytes(&bytes)?.inputs()[0].name, "x");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn export(
    graph: &Graph,
    inputs: &[&str],
    outputs: &[&str],
    weights: &[Array],
    opset: i64,
) -> Result<Vec<u8>> {
    let mut w = Writer::new(opset);
    encoded(written(&mut w, graph, inputs, outputs, weights)?, opset)
}

/// The graph of a model for a graph.
fn written(
    w: &mut Writer,
    graph: &Graph,
    inputs: &[&str],
    outputs: &[&str],
    weights: &[Array],
) -> Result<GraphProto> {
    check(graph, inputs, outputs, weights, w.opset)?;
    let avals: Vec<&Aval> = graph.input_avals().collect();
    let named = inputs.iter().zip(&avals);
    let mut values: Vec<Val> = named
        .map(|(name, aval)| Val {
            name: (*name).to_owned(),
            shape: aval.shape.clone(),
            dtype: aval.dtype,
        })
        .collect();
    for weight in weights {
        values.push(w.array(weight)?);
    }
    let found = walk(w, graph, values)?;
    for (val, (name, aval)) in found.iter().zip(outputs.iter().zip(graph.output_avals())) {
        let full = w.full(val, &aval.shape)?;
        // Under its own name: it may be an input, or another output, too.
        let own = w.op("Identity", &[&full.name], &[]);
        rename(w, &own, name);
    }
    let info = |(name, aval): (&&str, &Aval)| value_info(name, aval);
    Ok(GraphProto {
        name: "graph".to_owned(),
        input: inputs.iter().zip(avals).map(info).collect(),
        output: outputs.iter().zip(graph.output_avals()).map(info).collect(),
        node: std::mem::take(&mut w.nodes),
        initializer: std::mem::take(&mut w.tensors),
        ..Default::default()
    })
}

/// The bytes of a model of this graph.
fn encoded(graph: GraphProto, opset: i64) -> Result<Vec<u8>> {
    let model = ModelProto {
        // What came with opset 17; each later one reads it.
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: opset }],
        producer_name: "cupola".to_owned(),
        producer_version: env!("CARGO_PKG_VERSION").to_owned(),
        graph: Some(graph),
        functions: Vec::new(),
    };
    let size = model.encoded_len();
    if size > i32::MAX as usize {
        return Err(unsupported(format!("the model has {size} bytes, and a file at most 2 GiB")));
    }
    Ok(model.encode_to_vec())
}

fn check(
    graph: &Graph,
    inputs: &[&str],
    outputs: &[&str],
    weights: &[Array],
    opset: i64,
) -> Result<()> {
    let wrong = |detail: String| Err(Error::argument("onnx.export", detail));
    if !OPSETS.contains(&opset) {
        return wrong(format!("opset {opset} is none of {} to {}", OPSETS.start(), OPSETS.end()));
    }
    if inputs.len() + weights.len() != graph.inputs.len() {
        return wrong(format!(
            "{} names and {} weights are given for {} inputs",
            inputs.len(),
            weights.len(),
            graph.inputs.len()
        ));
    }
    if outputs.len() != graph.outputs.len() {
        return wrong(format!("{} names for {} outputs", outputs.len(), graph.outputs.len()));
    }
    let mut names: Vec<&str> = inputs.iter().chain(outputs).copied().collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return wrong(format!("the name '{}' is given twice", twice[0]));
    }
    match names.first() {
        Some(&"") => wrong("a name is empty".to_owned()),
        _ => Ok(()),
    }
}

/// Calls the one output of the last node `name`.
fn rename(w: &mut Writer, own: &str, name: &str) {
    if let Some(node) = w.nodes.last_mut() {
        debug_assert_eq!(node.output[0], own);
        node.output[0] = name.to_owned();
    }
}

fn value_info(name: &str, aval: &Aval) -> ValueInfoProto {
    let dim = |&size: &usize| Dimension { value: Some(DimensionValue::Value(size as i64)) };
    let shape = TensorShapeProto { dim: aval.shape.iter().map(dim).collect() };
    let tensor = TensorType { elem_type: Element::of(aval.dtype).code(), shape: Some(shape) };
    let r#type = Some(TypeProto { value: Some(TypeValue::Tensor(tensor)) });
    ValueInfoProto { name: name.to_owned(), r#type }
}

/// Writes the nodes of a graph on these values; its outputs.
fn walk(w: &mut Writer, graph: &Graph, inputs: Vec<Val>) -> Result<Vec<Val>> {
    let mut known: HashMap<Ref, Val> = HashMap::new();
    for (&node, val) in graph.inputs.iter().zip(inputs) {
        known.insert(Ref { node, output: 0 }, val);
    }
    let missing = |r: &Ref| Error::argument("onnx.export", format!("{r:?} is not there"));
    for (index, node) in graph.nodes.iter().enumerate() {
        if let Some(aval) = node.outputs.iter().find(|aval| aval.dtype == DType::C32) {
            return Err(unsupported(format!("{aval} of '{}' has no element type", node.op.name())));
        }
        if node.op.is_input() {
            continue;
        }
        let args: Vec<Val> = (node.inputs.iter())
            .map(|r| known.get(r).cloned().ok_or_else(|| missing(r)))
            .collect::<Result<_>>()?;
        let avals: Vec<&Aval> = node.inputs.iter().map(|&r| graph.aval(r)).collect();
        let outputs = write(w, &node.op, &args, &avals, &node.outputs)?;
        for (output, val) in outputs.into_iter().enumerate() {
            known.insert(Ref { node: index as u32, output: output as u32 }, val);
        }
    }
    graph.outputs.iter().map(|r| known.get(r).cloned().ok_or_else(|| missing(r))).collect()
}

fn write(
    w: &mut Writer,
    op: &Op,
    args: &[Val],
    avals: &[&Aval],
    outputs: &[Aval],
) -> Result<Vec<Val>> {
    let all = |w: &mut Writer| -> Result<Vec<Val>> {
        args.iter().zip(avals).map(|(val, aval)| w.full(val, &aval.shape)).collect()
    };
    Ok(match op {
        // Only the graph's own inputs, which are known.
        Op::Input(_) => Vec::new(),
        Op::Constant(constant) => vec![w.scalar(constant.value, constant.aval.dtype)?],
        Op::Mark(Mark::StopGradient | Mark::Depends | Mark::Update) => vec![args[0].clone()],
        Op::Elementwise(op) => {
            vec![elementwise::elementwise(w, op, args, outputs[0].dtype)?]
        }
        Op::Movement(op) => vec![movement::movement(w, op, args, avals, &outputs[0].shape)?],
        Op::Reduce(op) => {
            let x = &all(w)?[0];
            vec![reduce(w, op.kind, &op.axes, x, &outputs[0].shape)?]
        }
        Op::Kernel(op) => {
            let full = all(w)?;
            kernel::kernel(w, op, &full, outputs)?
        }
        Op::Composite(composite) => {
            let body = composite.graph(avals)?;
            walk(w, &body, args.to_vec())?
        }
        Op::Call(call) => walk(w, &call.body, args.to_vec())?,
        Op::Control(op) => {
            let full = all(w)?;
            control::control(w, op, &full, outputs)?
        }
        Op::Custom(custom) => {
            return Err(unsupported(format!("'{}' is an operator of one's own", custom.0.name())));
        }
    })
}

/// A value folded over axes, which leave its shape.
fn reduce(w: &mut Writer, kind: ReduceKind, axes: &[usize], x: &Val, shape: &Shape) -> Result<Val> {
    let own = x.dtype;
    if axes.is_empty() {
        return Ok(x.clone());
    }
    if own.is_complex() {
        return Err(unsupported(format!("'{}' of complex numbers has no operator", kind.name())));
    }
    let wide = if own == DType::Bool { DType::I32 } else { computed(own) };
    let x = w.cast(x, wide)?;
    let name = match kind {
        ReduceKind::Sum => "ReduceSum",
        ReduceKind::Prod => "ReduceProd",
        ReduceKind::Max | ReduceKind::Any => "ReduceMax",
        ReduceKind::Min | ReduceKind::All => "ReduceMin",
    };
    // Of nothing it is what changes nothing.
    if x.shape.contains(&0) && !matches!(kind, ReduceKind::Sum | ReduceKind::Prod) {
        let none = w.scalar(i64::from(kind == ReduceKind::All), wide)?;
        return w.cast(&none, own);
    }
    let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    let keep = Attr::Int("keepdims", 0);
    let found = match w.opset >= 18 || kind == ReduceKind::Sum {
        true => {
            let axes = w.ints(&axes)?;
            w.val(name, &[&x, &axes], &[keep], shape.clone(), wide)
        }
        false => w.val(name, &[&x], &[Attr::Ints("axes", axes), keep], shape.clone(), wide),
    };
    w.cast(&found, own)
}
