//! A graph as it is run: nodes in order, names resolved, attributes read.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use super::element::Element;
use super::error::{Error, Fault, Result};
use super::proto::{
    AttributeProto, DimensionValue, GraphProto, NodeProto, OperatorSetIdProto, TypeProto,
    TypeValue, ValueInfoProto,
};
use super::table::{self, Apply};
use super::tensor::{self, Folder};
use super::value::Tensor;

/// Nodes in an order in which they can run.
#[derive(Debug, Default)]
pub struct Graph {
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub initializers: Vec<(String, Tensor)>,
    pub steps: Vec<Step>,
    /// Names of graphs around this one.
    pub captures: Vec<String>,
}

/// An input or output.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// What kind of value it is.
    pub kind: Kind,
    /// What its elements are, where it is a tensor and the model says so.
    pub element: Option<Element>,
    /// Its sizes, where it is a tensor and the model says them.
    pub sizes: Option<Vec<Size>>,
}

/// The kind of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// A tensor, or nothing that the model says.
    #[default]
    Tensor,
    /// A sequence.
    Sequence,
    /// An optional.
    Optional,
}

/// The size of an axis, as a model says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Size {
    /// A number.
    Known(usize),
    /// A name, which stands for one number wherever it is.
    Named(String),
    /// Nothing is said.
    Unknown,
}

/// One node.
#[derive(Debug)]
pub struct Step {
    pub name: String,
    pub op_type: String,
    pub version: i64,
    pub target: Target,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub attributes: Vec<(String, Attribute)>,
    /// What no later node needs.
    pub drops: Vec<String>,
}

/// What a node calls.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    Operator(Apply),
    Function(usize),
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Attribute {
    Float(f32),
    Int(i64),
    Text(String),
    Tensor(Tensor),
    Graph(Arc<Graph>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Texts(Vec<String>),
    /// The attribute of this name of the function around.
    Reference(String),
    /// A kind that no operator here takes.
    Other,
}

impl Step {
    /// The node for people: its name, if it has one, and its operator.
    pub fn label(&self) -> String {
        label(&self.name, &self.op_type)
    }
}

fn label(name: &str, op: &str) -> String {
    match name {
        "" => format!("node {op}"),
        name => format!("node '{name}' ({op})"),
    }
}

/// The domain's one name.
pub fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

/// What a function is found by: domain, name, overload.
pub type Signature = (String, String, String);

/// What reading a graph needs besides the graph.
pub struct Reader<'a> {
    pub file: &'a str,
    pub folder: &'a Folder,
    pub opsets: HashMap<String, i64>,
    pub functions: &'a HashMap<Signature, usize>,
}

/// The versions of operators that a model or function imports.
pub fn opsets(imports: &[OperatorSetIdProto]) -> HashMap<String, i64> {
    imports.iter().map(|i| (domain(&i.domain).to_owned(), i.version)).collect()
}

impl Reader<'_> {
    fn error(&self, detail: impl Into<String>) -> Error {
        Error::file(self.file, detail)
    }

    /// A graph with what it names outside of itself.
    pub fn graph(&self, proto: GraphProto) -> Result<Graph> {
        let mut initializers = Vec::with_capacity(proto.initializer.len());
        for tensor in &proto.initializer {
            let read = tensor::read(tensor, self.folder);
            let read =
                read.map_err(|e| self.error(format!("initializer '{}': {e}", tensor.name)))?;
            initializers.push((tensor.name.clone(), read));
        }
        for sparse in &proto.sparse_initializer {
            let name = sparse.values.as_ref().map(|v| v.name.clone()).unwrap_or_default();
            let read = tensor::read_sparse(sparse, self.folder);
            let read = read.map_err(|e| self.error(format!("initializer '{name}': {e}")))?;
            initializers.push((name, read));
        }
        let inputs = self.ports(&proto.input)?;
        let outputs = self.ports(&proto.output)?;
        let steps = proto.node.into_iter().map(|n| self.step(n)).collect::<Result<Vec<_>>>()?;
        self.ordered(Graph { inputs, outputs, initializers, steps, captures: Vec::new() })
    }

    fn ports(&self, infos: &[ValueInfoProto]) -> Result<Vec<Port>> {
        infos.iter().map(|info| self.port(info)).collect()
    }

    fn port(&self, info: &ValueInfoProto) -> Result<Port> {
        let mut port =
            Port { name: info.name.clone(), kind: Kind::Tensor, element: None, sizes: None };
        let Some(TypeProto { value: Some(value) }) = &info.r#type else { return Ok(port) };
        let tensor = match value {
            TypeValue::Tensor(tensor) => tensor,
            TypeValue::Sequence(_) => return Ok(Port { kind: Kind::Sequence, ..port }),
            TypeValue::Optional(_) => return Ok(Port { kind: Kind::Optional, ..port }),
            TypeValue::Map(_) | TypeValue::Opaque(_) | TypeValue::SparseTensor(_) => {
                return Ok(port);
            }
        };
        port.element = Element::from_code(tensor.elem_type.into()).ok();
        let Some(shape) = &tensor.shape else { return Ok(port) };
        let size = |value: &Option<DimensionValue>| match value {
            Some(DimensionValue::Value(n)) => usize::try_from(*n)
                .map(Size::Known)
                .map_err(|_| self.error(format!("'{}': the size {n} is below 0", info.name))),
            Some(DimensionValue::Param(name)) if !name.is_empty() => Ok(Size::Named(name.clone())),
            _ => Ok(Size::Unknown),
        };
        port.sizes = Some(shape.dim.iter().map(|d| size(&d.value)).collect::<Result<_>>()?);
        Ok(port)
    }

    /// One node, its operator looked up.
    pub fn step(&self, proto: NodeProto) -> Result<Step> {
        let at = label(&proto.name, &proto.op_type);
        let wrong = |fault: Fault| Error::Node { file: self.file.into(), node: at.clone(), fault };
        let domain = domain(&proto.domain).to_owned();
        let version = self.opsets.get(&domain).copied();
        let signature = (domain, proto.op_type, proto.overload);
        let target = match self.functions.get(&signature) {
            Some(&function) => Target::Function(function),
            None => {
                let version = version.ok_or_else(|| {
                    wrong(Fault::invalid(format!("the model imports no domain '{}'", signature.0)))
                })?;
                table::find(&signature.0, &signature.1, version)
                    .map(Target::Operator)
                    .map_err(wrong)?
            }
        };
        let mut attributes: Vec<(String, Attribute)> = Vec::with_capacity(proto.attribute.len());
        for attribute in proto.attribute {
            let name = attribute.name.clone();
            if attributes.iter().any(|(other, _)| *other == name) {
                return Err(wrong(Fault::invalid(format!(
                    "the attribute '{name}' is there twice"
                ))));
            }
            let value = self.attribute(attribute).map_err(|e| match e {
                Trouble::Fault(e) => wrong(Fault::invalid(format!("attribute '{name}': {e}"))),
                Trouble::Error(e) => e,
            })?;
            attributes.push((name, value));
        }
        Ok(Step {
            name: proto.name,
            op_type: signature.1,
            version: version.unwrap_or(0),
            target,
            inputs: proto.input,
            outputs: proto.output,
            attributes,
            drops: Vec::new(),
        })
    }

    /// The value of an attribute; of a file that does not say its type, what is there.
    pub fn attribute(&self, proto: AttributeProto) -> Result<Attribute, Trouble> {
        if !proto.ref_attr_name.is_empty() {
            return Ok(Attribute::Reference(proto.ref_attr_name));
        }
        let kind = match proto.r#type {
            0 if proto.f.is_some() => 1,
            0 if proto.i.is_some() => 2,
            0 if proto.s.is_some() => 3,
            0 if proto.t.is_some() => 4,
            0 if proto.g.is_some() => 5,
            0 if !proto.floats.is_empty() => 6,
            0 if !proto.ints.is_empty() => 7,
            0 if !proto.strings.is_empty() => 8,
            kind => kind,
        };
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).map_err(|_| Fault::invalid("a string that is not UTF-8"))
        };
        Ok(match kind {
            1 => Attribute::Float(proto.f.unwrap_or(0.0)),
            2 => Attribute::Int(proto.i.unwrap_or(0)),
            3 => Attribute::Text(text(proto.s.unwrap_or_default())?),
            4 => match proto.t {
                Some(tensor) if tensor.data_type == 8 => Attribute::Other,
                Some(tensor) => Attribute::Tensor(tensor::read(&tensor, self.folder)?),
                None => return Err(Fault::invalid("says it is a tensor and has none").into()),
            },
            5 => match proto.g {
                Some(graph) => Attribute::Graph(Arc::new(self.graph(graph)?)),
                None => return Err(Fault::invalid("says it is a graph and has none").into()),
            },
            6 => Attribute::Floats(proto.floats),
            7 => Attribute::Ints(proto.ints),
            8 => Attribute::Texts(proto.strings.into_iter().map(text).collect::<Result<_, _>>()?),
            11 => match proto.sparse_tensor {
                Some(sparse) => Attribute::Tensor(tensor::read_sparse(&sparse, self.folder)?),
                None => return Err(Fault::invalid("says it is a tensor and has none").into()),
            },
            _ => Attribute::Other,
        })
    }

    /// The graph with its steps sorted and its names checked.
    pub fn ordered(&self, mut graph: Graph) -> Result<Graph> {
        let mut known: HashSet<&str> = HashSet::new();
        for port in &graph.inputs {
            if !known.insert(&port.name) {
                return Err(self.error(format!("the input '{}' is there twice", port.name)));
            }
        }
        let mut stored: HashSet<&str> = HashSet::new();
        for (name, _) in &graph.initializers {
            if !stored.insert(name) {
                return Err(self.error(format!("the initializer '{name}' is there twice")));
            }
        }
        known.extend(stored);
        let makers = self.makers(&graph.steps, &known)?;
        let needs: Vec<Vec<String>> = graph.steps.iter().map(needs).collect();
        let order = self.sort(&graph.steps, &needs, &makers)?;
        let mut captures: Vec<String> = Vec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        let outputs = graph.outputs.iter().map(|p| &p.name);
        for name in needs.iter().flatten().chain(outputs) {
            let made = makers.contains_key(name.as_str()) || known.contains(name.as_str());
            if !made && seen.insert(name) {
                captures.push(name.clone());
            }
        }
        let keep: HashSet<&str> = graph.outputs.iter().map(|p| p.name.as_str()).collect();
        let mut dropped: HashSet<&str> = HashSet::new();
        let mut drops = vec![Vec::new(); order.len()];
        for (place, &step) in order.iter().enumerate().rev() {
            let unused = graph.steps[step].outputs.iter();
            for name in needs[step].iter().chain(unused) {
                if makers.contains_key(name.as_str())
                    && !keep.contains(name.as_str())
                    && dropped.insert(name)
                {
                    drops[place].push(name.clone());
                }
            }
        }
        let mut steps: Vec<Option<Step>> =
            std::mem::take(&mut graph.steps).into_iter().map(Some).collect();
        for (&step, drops) in order.iter().zip(drops) {
            graph.steps.extend(steps[step].take().map(|step| Step { drops, ..step }));
        }
        graph.captures = captures;
        Ok(graph)
    }

    /// Which step makes each name.
    fn makers(&self, steps: &[Step], known: &HashSet<&str>) -> Result<HashMap<String, usize>> {
        let mut makers = HashMap::new();
        for (i, step) in steps.iter().enumerate() {
            for name in step.outputs.iter().filter(|name| !name.is_empty()) {
                if known.contains(name.as_str()) || makers.insert(name.clone(), i).is_some() {
                    let detail = Fault::invalid(format!("its output '{name}' is there twice"));
                    return Err(Error::Node {
                        file: self.file.into(),
                        node: step.label(),
                        fault: detail,
                    });
                }
            }
        }
        Ok(makers)
    }

    /// An order in which every name is made before it is used: the file's, where that is one.
    fn sort(
        &self,
        steps: &[Step],
        needs: &[Vec<String>],
        makers: &HashMap<String, usize>,
    ) -> Result<Vec<usize>> {
        let mut waits = vec![0usize; steps.len()];
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
        for (i, needs) in needs.iter().enumerate() {
            for maker in needs.iter().filter_map(|name| makers.get(name.as_str())) {
                waits[i] += 1;
                users[*maker].push(i);
            }
        }
        let mut ready: BinaryHeap<Reverse<usize>> =
            (0..steps.len()).filter(|&i| waits[i] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(steps.len());
        while let Some(Reverse(i)) = ready.pop() {
            order.push(i);
            for &user in &users[i] {
                waits[user] -= 1;
                if waits[user] == 0 {
                    ready.push(Reverse(user));
                }
            }
        }
        match (0..steps.len()).find(|&i| waits[i] > 0) {
            None => Ok(order),
            Some(i) => Err(Error::Node {
                file: self.file.into(),
                node: steps[i].label(),
                fault: Fault::invalid("it needs what comes of it: the graph has a cycle"),
            }),
        }
    }
}

/// The names that a step reads, those of its graphs included.
fn needs(step: &Step) -> Vec<String> {
    let mut names: Vec<String> = step.inputs.iter().filter(|n| !n.is_empty()).cloned().collect();
    for (_, attribute) in &step.attributes {
        if let Attribute::Graph(graph) = attribute {
            names.extend(graph.captures.iter().cloned());
        }
    }
    names
}

/// What goes wrong in an attribute: its own fault, or that of a graph in it.
pub enum Trouble {
    Fault(Fault),
    Error(Error),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Trouble::Fault(fault)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Error(error)
    }
}
