//! A model: its inputs, its outputs, and how it runs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cupola_core::{Array, file};
use prost::Message;
use prost::bytes::Bytes;

use super::error::{Error, Fault, Result};
use super::graph::{
    Attribute, Graph, Kind, Port, Reader, Signature, Size, Trouble, domain, opsets,
};
use super::kept::Kept;
use super::node::Outcome;
use super::proto::{FunctionProto, ModelProto};
use super::run::Run;
use super::tensor::Folder;
use super::value::{Tensor, Value};
use crate::limits::MOST_BYTES;

/// The versions of ONNX's operators that are read.
pub const OPSETS: std::ops::RangeInclusive<i64> = 1..=28;

/// A function of the model's own.
#[derive(Debug)]
pub struct Function {
    pub graph: Graph,
    pub defaults: Vec<(String, Attribute)>,
}

/// What a model computes.
#[derive(Debug)]
pub struct Content {
    pub graph: Graph,
    pub functions: Vec<Function>,
}

impl Content {
    /// Records the model on values by name, which hold all inputs that have no initializer.
    pub fn record(&self, mut given: HashMap<&str, Value>) -> Outcome {
        let mut values = Vec::with_capacity(self.graph.inputs.len());
        for port in &self.graph.inputs {
            let stored = || self.stored(&port.name).cloned().map(Value::from);
            let value = given.remove(port.name.as_str()).or_else(stored);
            let missing = || Fault::invalid(format!("the input '{}' is not given", port.name));
            values.push(value.ok_or_else(missing)?);
        }
        Run::new(&self.functions).main(&self.graph, values, given)
    }

    fn stored(&self, name: &str) -> Option<&Tensor> {
        self.graph.initializers.iter().find(|(n, _)| n == name).map(|(_, tensor)| tensor)
    }
}

/// A model of an ONNX file.
///
/// Its initializers are arrays on the default device of the moment when it is read.
#[derive(Debug)]
pub struct Model {
    file: String,
    content: Arc<Content>,
    opset: i64,
    beside: Vec<PathBuf>,
    pub(super) kept: Kept,
}

impl Model {
    /// The model of a file, with what lies beside it.
    ///
    /// # Errors
    /// Where the file cannot be read, is damaged, or holds an operator that is not read.
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let shown = path.display().to_string();
        let bytes = file::read(path, MOST_BYTES).map_err(|e| Error::file(&shown, e.to_string()))?;
        Self::read(bytes.into(), shown, &Folder::of(path))
    }

    /// The model of a file's bytes. It has no external data.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Model> {
        Self::read(Bytes::copy_from_slice(bytes), "ONNX model".into(), &Folder::default())
    }

    /// The files of external data that it was read from.
    pub fn beside(&self) -> &[PathBuf] {
        &self.beside
    }

    fn read(bytes: Bytes, file: String, folder: &Folder) -> Result<Model> {
        let wrong = |detail: String| Error::file(&file, detail);
        let model = ModelProto::decode(bytes)
            .map_err(|e| wrong(format!("is no ONNX model, or damaged: {e}")))?;
        let opsets = opsets(&model.opset_import);
        // Files from before versions import nothing.
        let opset = opsets.get("").copied().unwrap_or(1);
        if !OPSETS.contains(&opset) {
            let (least, most) = (OPSETS.start(), OPSETS.end());
            return Err(wrong(format!("opset {opset} is not read, {least} to {most} are")));
        }
        let graph = model.graph.ok_or_else(|| wrong("has no graph".into()))?;
        let mut signatures = HashMap::new();
        for (i, function) in model.functions.iter().enumerate() {
            if signatures.insert(signature(function), i).is_some() {
                return Err(wrong(format!("the function '{}' is there twice", function.name)));
            }
        }
        let reader = Reader { file: &file, folder, opsets, functions: &signatures };
        let graph = reader.graph(graph)?;
        if let Some(name) = graph.captures.first() {
            return Err(wrong(format!("'{name}' is needed and made by no node")));
        }
        let functions = model.functions.into_iter();
        let functions = functions.map(|f| function(&reader, f)).collect::<Result<Vec<_>>>()?;
        let content = Arc::new(Content { graph, functions });
        Ok(Model { content, opset, file, beside: folder.asked(), kept: Kept::default() })
    }

    /// The file's name, for messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The version of ONNX's operators that the model is written in.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// What has to be given: the inputs that have no initializer.
    pub fn inputs(&self) -> Vec<&Port> {
        let stored = |port: &&Port| self.content.stored(&port.name).is_none();
        self.graph().inputs.iter().filter(stored).collect()
    }

    /// What comes out.
    pub fn outputs(&self) -> &[Port] {
        &self.graph().outputs
    }

    fn graph(&self) -> &Graph {
        &self.content.graph
    }

    /// The arrays that the model holds, by name.
    pub fn initializers(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.graph().initializers.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Records the model on arrays for its inputs by name; gives its outputs by name.
    ///
    /// An initializer's name may be given, too, and takes its place: so a model's weights are
    /// differentiated by and trained.
    ///
    /// The first run on inputs of certain shapes keeps the graph that it recorded, and later ones record that as one
    /// operation. Where nodes read values, such as the condition of an `If` whose branches do not both fit, a graph is for
    /// the values of the small inputs of integers and bools, too; where that is not enough each run records anew.
    ///
    /// # Errors
    /// Where an input is missing, is not of the model, or does not fit; where a node fails.
    pub fn run(&self, inputs: &[(&str, Array)]) -> Result<Vec<(String, Array)>> {
        let given = inputs.iter().map(|(name, array)| {
            let held = self.graph().inputs.iter().find(|p| p.name == *name).and_then(|p| p.element);
            let tensor = match held {
                Some(element) if array.dtype() == element.dtype() => {
                    Tensor::new(array.clone(), element)
                }
                _ => Ok(array.clone().into()),
            };
            let wrong = |e: Fault| self.wrong_input(name, e.to_string());
            Ok((*name, tensor.map_err(wrong)?.into()))
        });
        let outputs = self.run_values(given.collect::<Result<Vec<(&str, Value)>>>()?)?;
        let array = |(name, value): (String, Value)| match value {
            Value::Tensor(tensor) => Ok((name, tensor.array)),
            other => {
                Err(Error::file(&self.file, format!("the output '{name}' is {}", other.kind())))
            }
        };
        outputs.into_iter().map(array).collect()
    }

    /// As [`Model::run`], with element types, sequences and optionals.
    ///
    /// # Errors
    /// As [`Model::run`].
    pub fn run_values(&self, inputs: Vec<(&str, Value)>) -> Result<Vec<(String, Value)>> {
        let mut given: HashMap<&str, Value> = HashMap::new();
        for (name, value) in inputs {
            let port = self.graph().inputs.iter().find(|p| p.name == name);
            if port.is_none() && self.content.stored(name).is_none() {
                let names: Vec<&str> = self.inputs().iter().map(|p| p.name.as_str()).collect();
                let names = names.join("', '");
                return Err(self.wrong_input(name, format!("the model's inputs are '{names}'")));
            }
            if let (Some(port), Value::Tensor(tensor)) = (port, &value) {
                self.check_element(port, tensor)?;
            }
            if given.insert(name, value).is_some() {
                return Err(self.wrong_input(name, "is given twice"));
            }
        }
        self.check_sizes(&given)?;
        if let Some(port) = self.inputs().iter().find(|p| !given.contains_key(p.name.as_str())) {
            return Err(self.wrong_input(&port.name, "is not given"));
        }
        let names = self.graph().outputs.iter().map(|p| p.name.clone());
        if let Some(found) = self.kept.run(&self.content, &given) {
            return Ok(names.zip(found).collect());
        }
        let found = self.content.record(given).map_err(|fault| match fault {
            Fault::Within { node, fault } => {
                Error::Node { file: self.file.clone(), node, fault: *fault }
            }
            fault => Error::file(&self.file, fault.to_string()),
        })?;
        Ok(names.zip(found).collect())
    }

    fn wrong_input(&self, name: &str, detail: impl Into<String>) -> Error {
        Error::Input { file: self.file.clone(), name: name.into(), detail: detail.into() }
    }

    fn check_element(&self, port: &Port, tensor: &Tensor) -> Result<()> {
        match port.element {
            Some(want) if want != tensor.element => {
                let have = tensor.element;
                Err(self.wrong_input(&port.name, format!("holds {want}, {have} is given")))
            }
            _ => Ok(()),
        }
    }

    /// Sizes are those of the model, and one name stands for one size.
    fn check_sizes(&self, given: &HashMap<&str, Value>) -> Result<()> {
        let mut named: HashMap<&str, usize> = HashMap::new();
        for port in &self.graph().inputs {
            let Some(sizes) = &port.sizes else { continue };
            let Some(Value::Tensor(tensor)) = given.get(port.name.as_str()) else { continue };
            // Whatever they are, the same is recorded.
            let shape = &tensor.array.aval().shape;
            let fits = shape.rank() == sizes.len()
                && sizes.iter().zip(shape.iter()).all(|(size, &have)| match size {
                    Size::Known(want) => *want == have,
                    Size::Named(name) => *named.entry(name).or_insert(have) == have,
                    Size::Unknown => true,
                });
            if !fits {
                let want: Vec<String> = sizes.iter().map(Size::to_string).collect();
                let want = want.join(", ");
                return Err(self.wrong_input(&port.name, format!("is [{want}], {shape} is given")));
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Size::Known(size) => write!(f, "{size}"),
            Size::Named(name) => f.write_str(name),
            Size::Unknown => f.write_str("?"),
        }
    }
}

fn signature(function: &FunctionProto) -> Signature {
    let domain = domain(&function.domain).to_owned();
    (domain, function.name.clone(), function.overload.clone())
}

/// A function's body as a graph.
fn function(model: &Reader<'_>, proto: FunctionProto) -> Result<Function> {
    let mut imports = opsets(&proto.opset_import);
    for (domain, version) in &model.opsets {
        imports.entry(domain.clone()).or_insert(*version);
    }
    let reader = Reader { opsets: imports, ..*model };
    let port =
        |name: &String| Port { name: name.clone(), kind: Kind::Tensor, element: None, sizes: None };
    let mut defaults = Vec::new();
    for attribute in proto.attribute_proto {
        let name = attribute.name.clone();
        let value = reader.attribute(attribute).map_err(|e| match e {
            Trouble::Fault(e) => Error::file(
                model.file,
                format!("function '{}': attribute '{name}': {e}", proto.name),
            ),
            Trouble::Error(e) => e,
        })?;
        defaults.push((name, value));
    }
    let steps = proto.node.into_iter().map(|n| reader.step(n)).collect::<Result<_>>()?;
    let graph = reader.ordered(Graph {
        inputs: proto.input.iter().map(port).collect(),
        outputs: proto.output.iter().map(port).collect(),
        initializers: Vec::new(),
        steps,
        captures: Vec::new(),
    })?;
    match graph.captures.first() {
        None => Ok(Function { graph, defaults }),
        Some(name) => Err(Error::file(
            model.file,
            format!("function '{}': '{name}' is needed and made by no node", proto.name),
        )),
    }
}
