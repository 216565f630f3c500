//! Models whose sizes have names.
//!
//! The function is traced for several bindings of the names, and written for each. What differs between these models
//! are constants: shapes, ends of slices, divisors of means. Each is looked upon as a polynomial of the named sizes,
//! and computed in the model from the shapes of its inputs.

use std::collections::HashMap;

use cupola_core::graph::Traced;
use cupola_core::graph::polynomial::{MOST_NAMES, Polynomial, points};
use cupola_core::{Aval, DType, Result, eval};

use super::super::element::Element;
use super::super::graph::Size;
use super::super::proto::{
    Dimension, DimensionValue, GraphProto, TensorProto, TypeValue, ValueInfoProto,
};
use super::writer::{Attr, Writer, unsupported};
use super::{encoded, export, rename, written};

/// An input of a function that is written as a model.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its sizes; each has to be known, or have a name.
    pub sizes: Vec<Size>,
    /// The type of its elements.
    pub dtype: DType,
}

/// The bytes of a model for a function of arrays, some of whose sizes have names.
///
/// `trace` is called for several bindings of the names; `names` says what the outputs are called, of which there are so
/// many. A name stands for one size in all inputs, and the model is for any from 2 on.
///
/// # Errors
/// As [`export`]; where a size is not known, where the function records other operations for other sizes, and where a
/// constant, which is then named, is no polynomial of the second degree in the named sizes, nor 1 over one.
///
/// # Example
/// ```
/// # use cupola_cpu as _;
/// use cupola_core::graph::Graph;
/// use cupola_core::{Array, DType, ops};
/// use cupola_import::onnx::{self, Input, Size};
/// let sizes = vec![Size::Named("rows".into()), Size::Known(3)];
/// let x = Input { name: "x".into(), sizes, dtype: DType::F32 };
/// let means = |x: &[Array]| Ok(vec![ops::mean(&x[0], 0, false)?]);
/// let names = |_| vec!["means".to_owned()];
/// let bytes = onnx::export_sized(&[x], names, |avals| Graph::trace(avals, means), 18)?;
/// let model = onnx::Model::from_bytes(&bytes)?;
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 3.0, 2.0, 1.0], [2, 3])?;
/// assert_eq!(model.run(&[("x", x)])?[0].1.to_vec::<f32>()?, [2.0, 2.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn export_sized(
    inputs: &[Input],
    names: impl Fn(usize) -> Vec<String>,
    mut trace: impl FnMut(&[Aval]) -> Result<Traced>,
    opset: i64,
) -> Result<Vec<u8>> {
    let own: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    let sizes = Names::of(inputs)?;
    let points = points(sizes.0.len());
    let mut graphs: Vec<GraphProto> = Vec::with_capacity(points.len());
    let mut count = 0;
    if points.len() > 1 {
        // What is computed already is taken up in another form: after this it is so in every trace.
        eval(&trace(&sizes.avals(inputs, &points[0]))?.captures)?;
    }
    for point in &points {
        let Traced { graph, captures } = trace(&sizes.avals(inputs, point))?;
        let outputs = names(graph.outputs.len());
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        if points.len() == 1 {
            return export(&graph, &own, &outputs, &captures, opset);
        }
        let mut w = Writer::telling_apart(opset);
        let mut made = written(&mut w, &graph, &own, &outputs, &captures)?;
        count = w.count();
        if let Some(first) = graphs.first() {
            same(first, &made)?;
            // What is the same is held once.
            let pairs = made.initializer.iter_mut().zip(&first.initializer);
            let alike = pairs.filter(|(own, first)| **own == **first);
            alike.for_each(|(own, _)| *own = TensorProto::default());
        }
        graphs.push(made);
    }
    let mut made = graphs.remove(0);
    named(&mut made, &graphs, &sizes, &points);
    let mut w = Writer::from(opset, count);
    let constants = std::mem::take(&mut made.initializer);
    let mut held = Vec::with_capacity(constants.len());
    let mut read = HashMap::new();
    for (number, constant) in constants.into_iter().enumerate() {
        let others: Vec<&TensorProto> = graphs.iter().map(|g| &g.initializer[number]).collect();
        if others.iter().all(|other| other.name.is_empty()) {
            held.push(constant);
            continue;
        }
        let all: Vec<&TensorProto> = std::iter::once(&constant)
            .chain(others.iter().map(|o| if o.name.is_empty() { &constant } else { *o }))
            .collect();
        let mut sizes = Reader { inputs, names: &sizes, read: &mut read };
        let found = computed(&mut w, &all, &points, &mut sizes)?;
        let found = found.ok_or_else(|| unsupported(unknown(&constant, &made)))?;
        let own = w.op("Identity", &[&found], &[]);
        rename(&mut w, &own, &constant.name);
    }
    let (nodes, tensors) = w.into_parts();
    made.initializer = [held, tensors].concat();
    made.node = [nodes, made.node].concat();
    encoded(made, opset)
}

fn unknown(constant: &TensorProto, graph: &GraphProto) -> String {
    let reads = |node: &&super::super::proto::NodeProto| node.input.contains(&constant.name);
    let node = graph.node.iter().find(reads).map_or("a body", |node| node.op_type.as_str());
    format!("a constant of {node} depends on the named sizes, and is no polynomial of them")
}

/// The names of sizes, in the order in which inputs have them.
struct Names(Vec<String>);

impl Names {
    fn of(inputs: &[Input]) -> Result<Names> {
        let mut names: Vec<String> = Vec::new();
        for input in inputs {
            for size in &input.sizes {
                match size {
                    Size::Known(_) => {}
                    Size::Named(name) if names.contains(name) => {}
                    Size::Named(name) => names.push(name.clone()),
                    Size::Unknown => {
                        let name = &input.name;
                        let text = format!("a size of '{name}' is neither known nor has a name");
                        return Err(unsupported(text));
                    }
                }
            }
        }
        if names.len() > MOST_NAMES {
            let text = format!("{} sizes have names, and {MOST_NAMES} may", names.len());
            return Err(unsupported(text));
        }
        Ok(Names(names))
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|own| own == name)
    }

    fn avals(&self, inputs: &[Input], point: &[i128]) -> Vec<Aval> {
        let size = |size: &Size| match size {
            Size::Known(size) => *size,
            Size::Named(name) => self.number(name).map_or(0, |n| point[n] as usize),
            Size::Unknown => 0,
        };
        let aval = |input: &Input| {
            let sizes: Vec<usize> = input.sizes.iter().map(size).collect();
            Aval::new(sizes, input.dtype)
        };
        inputs.iter().map(aval).collect()
    }
}

/// What reads the named sizes from the shapes of inputs.
struct Reader<'a> {
    inputs: &'a [Input],
    names: &'a Names,
    read: &'a mut HashMap<usize, String>,
}

impl Reader<'_> {
    /// A size, as one number along an axis.
    fn size(&mut self, w: &mut Writer, name: usize) -> Option<String> {
        if let Some(known) = self.read.get(&name) {
            return Some(known.clone());
        }
        let is_own = |size: &Size| *size == Size::Named(self.names.0[name].clone());
        let axis = |input: &Input| input.sizes.iter().position(is_own);
        let (input, axis) = self.inputs.iter().find_map(|input| Some((input, axis(input)?)))?;
        let ends = [Attr::Int("start", axis as i64), Attr::Int("end", axis as i64 + 1)];
        let made = w.op("Shape", &[&input.name], &ends);
        self.read.insert(name, made.clone());
        Some(made)
    }

    /// A polynomial, as one number along an axis.
    fn value(&mut self, w: &mut Writer, polynomial: &Polynomial) -> Result<Option<String>> {
        let mut sum: Option<String> = None;
        for (factor, names) in &polynomial.0 {
            let Ok(factor) = i64::try_from(*factor) else { return Ok(None) };
            let mut product: Option<String> = None;
            if factor != 1 || names.is_empty() {
                product = Some(w.ints(&[factor])?.name);
            }
            for &name in names {
                let Some(size) = self.size(w, name) else { return Ok(None) };
                product = Some(match product {
                    Some(before) => w.op("Mul", &[&before, &size], &[]),
                    None => size,
                });
            }
            sum = match (sum, product) {
                (Some(before), Some(term)) => Some(w.op("Add", &[&before, &term], &[])),
                (before, term) => term.or(before),
            };
        }
        Ok(Some(match sum {
            Some(sum) => sum,
            None => w.ints(&[0])?.name,
        }))
    }
}

/// What computes a constant that is another in each of the models; `None` where it is of no known kind.
fn computed(
    w: &mut Writer,
    all: &[&TensorProto],
    points: &[Vec<i128>],
    sizes: &mut Reader<'_>,
) -> Result<Option<String>> {
    let first = all[0];
    let Ok(element) = Element::from_code(first.data_type.into()) else { return Ok(None) };
    let dtype = element.dtype();
    if all.iter().any(|t| t.data_type != first.data_type || t.dims.len() != first.dims.len()) {
        return Ok(None);
    }
    let numbers: Option<Vec<Vec<f64>>> = all.iter().map(|t| numbers(t, dtype)).collect();
    let Some(numbers) = numbers else { return Ok(None) };
    let whole = |value: f64| (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i128);
    let fit = |values: &[f64]| {
        let values: Option<Vec<i128>> = values.iter().map(|&v| whole(v)).collect();
        Polynomial::of(&values?, points)
    };
    if all.iter().any(|t| t.dims != first.dims) {
        return counted(w, all, &numbers, dtype, points, sizes);
    }
    let column = |at: usize| numbers.iter().map(|all| all[at]).collect::<Vec<f64>>();
    if first.dims.is_empty() {
        let values = column(0);
        let (polynomial, is_over) = match fit(&values) {
            Some(polynomial) => (polynomial, false),
            None if dtype.is_float() => {
                let over: Vec<f64> = values.iter().map(|value| (1.0 / value).round()).collect();
                let rounded =
                    |value: f64| if dtype == DType::F32 { f64::from(value as f32) } else { value };
                let exact = |(value, over): (&f64, &f64)| rounded(1.0 / over) == *value;
                match fit(&over).filter(|_| values.iter().zip(&over).all(exact)) {
                    Some(polynomial) => (polynomial, true),
                    None => return Ok(None),
                }
            }
            None => return Ok(None),
        };
        let Some(made) = sizes.value(w, &polynomial)? else { return Ok(None) };
        let made = w.op("Squeeze", &[&made], &[]);
        let made = cast(w, made, dtype);
        return Ok(Some(if is_over { w.op("Reciprocal", &[&made], &[]) } else { made }));
    }
    let [count] = first.dims[..] else { return Ok(None) };
    let mut parts: Vec<String> = Vec::new();
    let mut known: Vec<i64> = Vec::new();
    let own = integers(first, dtype);
    for at in 0..count as usize {
        let values = column(at);
        // What no size makes another is as it is, however large.
        if values.iter().all(|value| *value == values[0]) {
            let Some(own) = &own else { return Ok(None) };
            known.push(own[at]);
            continue;
        }
        let Some(polynomial) = fit(&values) else { return Ok(None) };
        if !known.is_empty() {
            parts.push(w.ints(&std::mem::take(&mut known))?.name);
        }
        let Some(made) = sizes.value(w, &polynomial)? else { return Ok(None) };
        parts.push(made);
    }
    if !known.is_empty() {
        parts.push(w.ints(&known)?.name);
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let made = w.op("Concat", &parts, &[Attr::Int("axis", 0)]);
    Ok(Some(cast(w, made, dtype)))
}

/// What computes a constant that has as many elements as sizes say: one number again and again, or 0, 1, 2 and so on
/// along an axis.
fn counted(
    w: &mut Writer,
    all: &[&TensorProto],
    numbers: &[Vec<f64>],
    dtype: DType,
    points: &[Vec<i128>],
    sizes: &mut Reader<'_>,
) -> Result<Option<String>> {
    let mut axes: Vec<String> = Vec::new();
    for axis in 0..all[0].dims.len() {
        let counts: Vec<i128> = all.iter().map(|t| t.dims[axis].into()).collect();
        let Some(count) = Polynomial::of(&counts, points) else { return Ok(None) };
        let Some(count) = sizes.value(w, &count)? else { return Ok(None) };
        axes.push(count);
    }
    let parts: Vec<&str> = axes.iter().map(String::as_str).collect();
    let shape = w.op("Concat", &parts, &[Attr::Int("axis", 0)]);
    let fill = numbers[0].first().copied().unwrap_or(0.0);
    if numbers.iter().flatten().all(|value| value.to_bits() == fill.to_bits()) {
        let fill =
            if dtype.is_float() { w.scalar(fill, dtype)? } else { w.scalar(fill as i64, dtype)? };
        return Ok(Some(w.op("Expand", &[&fill.name, &shape], &[])));
    }
    let row = |row: &Vec<f64>| row.iter().enumerate().all(|(n, &value)| value == n as f64);
    let is_line = |t: &&TensorProto| t.dims.iter().filter(|&&size| size != 1).count() == 1;
    if !numbers.iter().all(row) || !all.iter().all(is_line) {
        return Ok(None);
    }
    let count = w.op("ReduceProd", &[&shape], &[Attr::Int("keepdims", 0)]);
    let (zero, one) = (w.scalar(0, DType::I64)?, w.scalar(1, DType::I64)?);
    let row = w.op("Range", &[&zero.name, &count, &one.name], &[]);
    let row = cast(w, row, dtype);
    Ok(Some(w.op("Reshape", &[&row, &shape], &[])))
}

fn cast(w: &mut Writer, value: String, dtype: DType) -> String {
    if dtype == DType::I64 {
        return value;
    }
    w.op("Cast", &[&value], &[Attr::Int("to", Element::of(dtype).code().into())])
}

/// The numbers of a small constant, of the dtypes that sizes are in.
fn numbers(tensor: &TensorProto, dtype: DType) -> Option<Vec<f64>> {
    if dtype == DType::F32 {
        return decoded(tensor, |b| f32::from_le_bytes(b).into());
    }
    if dtype == DType::F64 {
        return decoded(tensor, f64::from_le_bytes);
    }
    integers(tensor, dtype).map(|all| all.into_iter().map(|n| n as f64).collect())
}

/// The numbers of a small constant of integers.
fn integers(tensor: &TensorProto, dtype: DType) -> Option<Vec<i64>> {
    if dtype == DType::I32 {
        return decoded(tensor, |b| i32::from_le_bytes(b).into());
    }
    (dtype == DType::I64).then(|| decoded(tensor, i64::from_le_bytes)).flatten()
}

fn decoded<const WIDTH: usize, T>(
    tensor: &TensorProto,
    number: impl Fn([u8; WIDTH]) -> T,
) -> Option<Vec<T>> {
    let raw = tensor.raw_data.as_deref()?.chunks_exact(WIDTH);
    raw.map(|bytes| bytes.try_into().ok().map(&number)).collect()
}

/// Whether two models differ in constants and sizes alone.
fn same(first: &GraphProto, other: &GraphProto) -> Result<()> {
    let names = |graph: &GraphProto| -> Vec<String> {
        graph.initializer.iter().map(|tensor| tensor.name.clone()).collect()
    };
    if bare(first) == bare(other) && names(first) == names(other) {
        return Ok(());
    }
    let differs = first.node.iter().zip(&other.node).find(|(a, b)| a.op_type != b.op_type);
    let place = differs.map_or_else(String::new, |(a, b)| {
        format!(": where one has {}, another has {}", a.op_type, b.op_type)
    });
    Err(unsupported(format!("the function records other operations for other sizes{place}")))
}

/// A graph without constants and sizes.
fn bare(graph: &GraphProto) -> GraphProto {
    let port = |info: &ValueInfoProto| ValueInfoProto { name: info.name.clone(), r#type: None };
    let mut node = graph.node.clone();
    for attribute in node.iter_mut().flat_map(|node| &mut node.attribute) {
        attribute.g = attribute.g.as_ref().map(bare);
    }
    GraphProto {
        node,
        name: graph.name.clone(),
        input: graph.input.iter().map(port).collect(),
        output: graph.output.iter().map(port).collect(),
        ..Default::default()
    }
}

fn dims(info: &ValueInfoProto) -> &[Dimension] {
    match info.r#type.as_ref().and_then(|t| t.value.as_ref()) {
        Some(TypeValue::Tensor(tensor)) => tensor.shape.as_ref().map_or(&[], |s| &s.dim),
        _ => &[],
    }
}

/// Gives the sizes of inputs and outputs their names. One that is neither known nor a name is left open.
fn named(graph: &mut GraphProto, others: &[GraphProto], names: &Names, points: &[Vec<i128>]) {
    let inputs: Vec<&[ValueInfoProto]> = others.iter().map(|graph| &graph.input[..]).collect();
    name_ports(&mut graph.input, &inputs, names, points);
    let outputs: Vec<&[ValueInfoProto]> = others.iter().map(|graph| &graph.output[..]).collect();
    name_ports(&mut graph.output, &outputs, names, points);
    for (number, node) in graph.node.iter_mut().enumerate() {
        for (at, attribute) in node.attribute.iter_mut().enumerate() {
            let Some(body) = &mut attribute.g else { continue };
            let bodies = others.iter().filter_map(|g| g.node[number].attribute[at].g.clone());
            named(body, &bodies.collect::<Vec<_>>(), names, points);
        }
    }
}

fn name_ports(
    ports: &mut [ValueInfoProto],
    others: &[&[ValueInfoProto]],
    names: &Names,
    points: &[Vec<i128>],
) {
    let size = |dim: &Dimension| match dim.value {
        Some(DimensionValue::Value(size)) => i128::from(size),
        _ => 0,
    };
    for (number, port) in ports.iter_mut().enumerate() {
        let all: Vec<&[Dimension]> = others.iter().map(|ports| dims(&ports[number])).collect();
        let value = port.r#type.as_mut().and_then(|t| t.value.as_mut());
        let Some(TypeValue::Tensor(tensor)) = value else { continue };
        let own = tensor.shape.iter_mut().flat_map(|shape| &mut shape.dim);
        for (axis, dim) in own.enumerate() {
            let first = size(dim);
            let of = |dims: &&[Dimension]| dims.get(axis).map_or(0, size);
            let values: Vec<i128> = std::iter::once(first).chain(all.iter().map(of)).collect();
            if values.iter().any(|value| *value != first) {
                let own = Polynomial::of(&values, points).and_then(|p| p.name());
                dim.value = own.map(|name| DimensionValue::Param(names.0[name].clone()));
            }
        }
    }
}
