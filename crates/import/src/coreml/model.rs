//! A model: its functions, what goes in and out of each, and how it runs.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use cupola_core::{Array, DType, file, ops};
use prost::Message;

use super::constant::Constants;
use super::element::{Element, TEXT};
use super::package;
use super::program::{Block, Reader, Source, Step, tensor_type};
use super::proto::{self, DefaultValue, FeatureKind, Flexibility, TypeKind};
use super::run::Run;
use super::value::{Tensor, Value};
use crate::error::{Error, Fault, Result};
use crate::folder::Folder;
use crate::limits::MOST_BYTES;
use crate::numbers::counts;

/// The versions of Core ML's specification that are read.
pub const VERSIONS: std::ops::RangeInclusive<i32> = 6..=10;

/// A function of a Core ML model.
///
/// A model has one function, or several that share their weights. Its constants are arrays on the default
/// device of the moment when it is read.
#[derive(Clone, Debug)]
pub struct Model {
    program: Arc<Program>,
    function: usize,
}

#[derive(Debug)]
struct Program {
    file: String,
    version: i32,
    functions: Vec<Function>,
    warnings: Vec<String>,
}

#[derive(Debug)]
struct Function {
    name: String,
    ports: Vec<Port>,
    /// For each input whether it is a state.
    states: Vec<bool>,
    block: Block,
    /// The labels of a classifier.
    classes: Option<Vec<String>>,
}

/// An input, or a state.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The dtype of its array.
    pub dtype: DType,
    /// Its sizes.
    pub sizes: Vec<Size>,
    /// The shapes that it may have, where the model lists them.
    pub shapes: Vec<Vec<usize>>,
    /// What it is full of where it is not given.
    default: Option<f64>,
}

/// The size of an axis, as a model says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// A number.
    Known(usize),
    /// Any number of a range, to the last; without a last any from the first on.
    Range(usize, Option<usize>),
}

impl Size {
    fn takes(self, size: usize) -> bool {
        match self {
            Size::Known(want) => size == want,
            Size::Range(least, most) => size >= least && most.is_none_or(|most| size <= most),
        }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Size::Known(size) => write!(f, "{size}"),
            Size::Range(least, Some(most)) => write!(f, "{least}..={most}"),
            Size::Range(least, None) => write!(f, "{least}.."),
        }
    }
}

impl Model {
    /// The model of a package's folder, or of a file.
    ///
    /// # Errors
    /// Where the file cannot be read, is damaged, is no ML program, or holds an operator that is not read.
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        let path = &package::model_file(path.as_ref())?;
        let shown = path.display().to_string();
        let bytes = file::read(path, MOST_BYTES).map_err(|e| Error::file(&shown, e.to_string()))?;
        Self::read(&bytes, shown, Folder::of(path))
    }

    /// The model of a file's bytes. It has no weights in a file of their own.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Model> {
        Self::read(bytes, "Core ML model".into(), Folder::default())
    }

    fn read(bytes: &[u8], file: String, folder: Folder) -> Result<Model> {
        let wrong = |detail: String| Error::file(&file, detail);
        let model = proto::Model::decode(bytes)
            .map_err(|e| wrong(format!("is no Core ML model, or damaged: {e}")))?;
        let Some(program) = &model.program else { return Err(wrong(refusal(&model).into())) };
        let version = model.specification_version;
        if !VERSIONS.contains(&version) {
            let (least, most) = (VERSIONS.start(), VERSIONS.end());
            return Err(wrong(format!(
                "version {version} of the specification is not read, {least} to {most} are"
            )));
        }
        let constants = Constants::of(folder);
        let reader = Reader { file: &file, constants: &constants };
        let description = model.description.unwrap_or_default();
        let mut functions: Vec<Function> = Vec::new();
        let mut warnings = Vec::new();
        for entry in &program.functions {
            let name = &entry.key;
            if functions.iter().any(|other| other.name == *name) {
                return Err(wrong(format!("the function '{name}' is there twice")));
            }
            let Some(function) = &entry.value else {
                return Err(wrong(format!("the function '{name}' is empty")));
            };
            let features = features(&description, name);
            let function = read_function(&reader, name, function, features)?;
            infinite_masks(&file, &function.block, &mut HashMap::new(), &mut warnings);
            functions.push(function);
        }
        // An older model has one function, the name of which is not said.
        let main = match description.default_function_name.as_str() {
            "" => "main",
            name => name,
        };
        let function = match functions.iter().position(|function| function.name == main) {
            Some(function) => function,
            None if functions.len() == 1 => 0,
            None => return Err(wrong(format!("has no function '{main}'"))),
        };
        let program = Program { file, version, functions, warnings };
        Ok(Model { program: Arc::new(program), function })
    }

    fn own(&self) -> &Function {
        &self.program.functions[self.function]
    }

    /// The file's name, for messages.
    pub fn file(&self) -> &str {
        &self.program.file
    }

    /// The version of Core ML's specification.
    pub fn version(&self) -> i32 {
        self.program.version
    }

    /// What of the model may not do what is meant, for people.
    pub fn warnings(&self) -> &[String] {
        &self.program.warnings
    }

    /// The names of the model's functions.
    pub fn functions(&self) -> Vec<&str> {
        self.program.functions.iter().map(|function| function.name.as_str()).collect()
    }

    /// The name of this function.
    pub fn name(&self) -> &str {
        &self.own().name
    }

    /// Another function of the model.
    pub fn function(&self, name: &str) -> Option<Model> {
        let function = self.program.functions.iter().position(|function| function.name == name)?;
        Some(Model { program: self.program.clone(), function })
    }

    /// What has to be given: the inputs.
    pub fn inputs(&self) -> Vec<&Port> {
        self.ports(false)
    }

    /// What is kept from one run to the next: it goes in and comes out.
    pub fn states(&self) -> Vec<&Port> {
        self.ports(true)
    }

    fn ports(&self, states: bool) -> Vec<&Port> {
        let own = self.own();
        let pairs = own.ports.iter().zip(&own.states);
        pairs.filter(|(_, is)| **is == states).map(|(port, _)| port).collect()
    }

    /// The names of what comes out.
    pub fn outputs(&self) -> &[String] {
        &self.own().block.outputs
    }

    /// The labels of a classifier, in the order of its probabilities.
    pub fn classes(&self) -> Option<&[String]> {
        self.own().classes.as_deref()
    }

    /// The arrays that the function holds, by name.
    pub fn constants(&self) -> Vec<(&str, &Array)> {
        let mut out = Vec::new();
        constants(&self.own().block, &mut out);
        out
    }

    /// Records the function on arrays for its inputs and states by name; gives its outputs, and then its
    /// states as they are now, by name.
    ///
    /// An input with a default value may be left out. A constant's name may be given, too, and takes its
    /// place: so a model's weights are differentiated by and trained.
    ///
    /// # Errors
    /// Where an input is missing, is not of the model, or does not fit; where an operation fails.
    pub fn run(&self, inputs: &[(&str, Array)]) -> Result<Vec<(String, Array)>> {
        let own = self.own();
        let mut given: HashMap<&str, Array> = HashMap::new();
        let mut run = Run::default();
        for (name, array) in inputs {
            let held = || self.constants().iter().any(|(constant, _)| constant == name);
            if own.ports.iter().any(|port| port.name == *name) {
                if given.insert(name, array.clone()).is_some() {
                    return Err(self.wrong_input(name, "is given twice"));
                }
            } else if !held() {
                let names: Vec<&str> = own.ports.iter().map(|port| port.name.as_str()).collect();
                let names = names.join("', '");
                return Err(self.wrong_input(name, format!("the model's inputs are '{names}'")));
            } else if run.replaced.insert((*name).to_owned(), array.clone()).is_some() {
                return Err(self.wrong_input(name, "is given twice"));
            }
        }
        let mut values = Vec::with_capacity(own.ports.len());
        for (port, &state) in own.ports.iter().zip(&own.states) {
            let array = match given.remove(port.name.as_str()) {
                Some(array) => array,
                None => self.default_of(port)?,
            };
            self.check(port, &array)?;
            values.push(match state {
                true => {
                    run.states.borrow_mut().insert(port.name.clone(), array);
                    Value::State(port.name.as_str().into())
                }
                false => array.into(),
            });
        }
        let outputs = run.block(&own.block, values, None).map_err(|fault| match fault {
            Fault::Within { node, fault } => {
                Error::Node { file: self.file().into(), node, fault: *fault }
            }
            fault => Error::file(self.file(), fault.to_string()),
        })?;
        let mut out = Vec::with_capacity(outputs.len());
        for (name, value) in own.block.outputs.iter().zip(outputs) {
            let Value::Tensor(Tensor { array, .. }) = value else {
                let kind = value.kind();
                return Err(Error::file(self.file(), format!("the output '{name}' is {kind}")));
            };
            out.push((name.clone(), array));
        }
        let mut states = run.states.into_inner();
        for port in self.states() {
            out.extend(states.remove(&port.name).map(|array| (port.name.clone(), array)));
        }
        Ok(out)
    }

    fn wrong_input(&self, name: &str, detail: impl Into<String>) -> Error {
        Error::Input { file: self.file().into(), name: name.into(), detail: detail.into() }
    }

    fn default_of(&self, port: &Port) -> Result<Array> {
        let Some(value) = port.default else {
            return Err(self.wrong_input(&port.name, "is not given"));
        };
        let known = |size: &Size| match size {
            Size::Known(size) => Some(*size),
            Size::Range(..) => None,
        };
        let Some(shape) = port.sizes.iter().map(known).collect::<Option<Vec<_>>>() else {
            return Err(self.wrong_input(&port.name, "is not given, and its sizes are open"));
        };
        ops::full(shape, value, port.dtype)
            .map_err(|error| self.wrong_input(&port.name, error.to_string()))
    }

    fn check(&self, port: &Port, array: &Array) -> Result<()> {
        let aval = array.aval();
        if aval.dtype != port.dtype {
            let (want, have) = (port.dtype, aval.dtype);
            return Err(self.wrong_input(&port.name, format!("holds {want}, {have} is given")));
        }
        let shape = &aval.shape;
        let fits = shape.rank() == port.sizes.len()
            && port.sizes.iter().zip(shape.iter()).all(|(size, &have)| size.takes(have));
        let listed = port.shapes.is_empty() || port.shapes.iter().any(|one| one[..] == shape[..]);
        match fits && listed {
            true => Ok(()),
            false => {
                let want = match port.shapes.is_empty() {
                    true => {
                        let sizes: Vec<String> = port.sizes.iter().map(Size::to_string).collect();
                        format!("[{}]", sizes.join(", "))
                    }
                    false => {
                        let shapes: Vec<String> =
                            port.shapes.iter().map(|shape| format!("{shape:?}")).collect();
                        format!("one of {}", shapes.join(", "))
                    }
                };
                Err(self.wrong_input(&port.name, format!("is {want}, {shape} is given")))
            }
        }
    }
}

/// Why a model that is no ML program is not read.
fn refusal(model: &proto::Model) -> &'static str {
    let network =
        [&model.neural_network, &model.neural_network_classifier, &model.neural_network_regressor];
    let pipeline = [&model.pipeline, &model.pipeline_classifier, &model.pipeline_regressor];
    if network.iter().any(|held| held.is_some()) {
        "is a NeuralNetwork, and ML programs are read: convert its source with coremltools, \
         ct.convert(..., convert_to=\"mlprogram\")"
    } else if pipeline.iter().any(|held| held.is_some()) {
        "is a pipeline, and ML programs are read: take the model out of it, or convert its source with \
         coremltools, ct.convert(..., convert_to=\"mlprogram\")"
    } else {
        "is no ML program: convert its source with coremltools, ct.convert(..., convert_to=\"mlprogram\")"
    }
}

/// What a model says of a function's inputs.
fn features<'d>(
    description: &'d proto::ModelDescription,
    name: &str,
) -> &'d [proto::FeatureDescription] {
    match description.functions.iter().find(|function| function.name == name) {
        Some(function) => &function.input,
        None => &description.input,
    }
}

fn read_function(
    reader: &Reader<'_>,
    name: &str,
    function: &proto::Function,
    features: &[proto::FeatureDescription],
) -> Result<Function> {
    let wrong = |detail: String| Error::file(reader.file, format!("function '{name}': {detail}"));
    let mut found = function.block_specializations.iter().filter(|b| b.key == function.opset);
    let (block, again) = (found.next(), found.next());
    if again.is_some() {
        return Err(wrong(format!("the block of '{}' is there twice", function.opset)));
    }
    let block = block.and_then(|block| block.value.as_ref());
    let block = block.ok_or_else(|| wrong(format!("has no block of '{}'", function.opset)))?;
    let (mut ports, mut states) = (Vec::new(), Vec::new());
    for input in &function.inputs {
        let feature = features.iter().find(|feature| feature.name == input.name);
        let (port, state) =
            port(input, feature).map_err(|e| wrong(format!("the input '{}': {e}", input.name)))?;
        ports.push(port);
        states.push(state);
    }
    let inputs = ports.iter().map(|port| port.name.clone()).collect();
    let block = reader.function(block, inputs)?;
    let mut outputs: Vec<&String> = block.outputs.iter().collect();
    outputs.sort();
    if let Some(pair) = outputs.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(wrong(format!("the output '{}' is there twice", pair[0])));
    }
    let classes = classes(&block);
    Ok(Function { name: name.to_owned(), ports, states, block, classes })
}

/// The labels of a function that ends in a classifier.
fn classes(block: &Block) -> Option<Vec<String>> {
    let step = block.steps.iter().find(|step| step.op == "classify")?;
    let (_, sources) = step.arguments.iter().find(|(name, _)| name == "classes")?;
    let value = match sources.first()? {
        Source::Constant(value) => value,
        Source::Name(name) => constant(block, name)?,
    };
    match value {
        Value::Texts(texts) => Some(texts.to_vec()),
        Value::Tensor(tensor) => {
            let labels = crate::numbers::ints(&tensor.array).ok()?;
            Some(labels.iter().map(i64::to_string).collect())
        }
        _ => None,
    }
}

/// The value of a constant of a block.
fn constant<'b>(block: &'b Block, name: &str) -> Option<&'b Value> {
    let made = |step: &&Step| step.op == "const" && step.outputs.iter().any(|o| o.name == name);
    value_of(block.steps.iter().find(made)?)
}

/// The value of a `const`.
fn value_of(step: &Step) -> Option<&Value> {
    match step.arguments.iter().find(|(name, _)| name == "val")?.1.first()? {
        Source::Constant(value) => Some(value),
        Source::Name(_) => None,
    }
}

/// An input of a function; of a state what it holds.
fn port(
    input: &proto::NamedValueType,
    feature: Option<&proto::FeatureDescription>,
) -> Result<(Port, bool), Fault> {
    let missing = || Fault::invalid("it has no type");
    let mut kind = input.r#type.as_ref().and_then(|t| t.kind.as_ref()).ok_or_else(missing)?;
    let state = matches!(kind, TypeKind::State(_));
    if let TypeKind::State(held) = kind {
        let held = held.wrapped_type.as_ref().and_then(|t| t.kind.as_ref());
        kind = held.ok_or_else(missing)?;
    }
    let kind = match kind {
        TypeKind::Tensor(kind) if kind.data_type == TEXT => {
            return Err(Fault::unsupported("inputs of strings are not read"));
        }
        TypeKind::Tensor(kind) => kind,
        TypeKind::Dictionary(_) => {
            return Err(Fault::unsupported("inputs that are dictionaries are not read"));
        }
        _ => return Err(Fault::unsupported("inputs that are no tensors are not read")),
    };
    let described = feature.and_then(|feature| feature.r#type.as_ref());
    let array = match described.and_then(|described| described.kind.as_ref()) {
        Some(FeatureKind::Image(_)) => {
            return Err(Fault::unsupported(
                "inputs that are images are not read: convert with ct.TensorType inputs",
            ));
        }
        Some(FeatureKind::Array(array)) => Some(array),
        _ => None,
    };
    let (element, sizes) = tensor_type(kind)?;
    let sizes = sizes.ok_or_else(|| Fault::unsupported("its number of axes is open"))?;
    let mut shapes: Vec<Vec<usize>> = Vec::new();
    let mut ranges: Vec<(usize, Option<usize>)> = vec![(0, None); sizes.len()];
    match array.and_then(|array| array.flexibility.as_ref()) {
        Some(Flexibility::Enumerated(all)) => {
            for shape in &all.shapes {
                shapes.push(counts(&shape.shape)?);
            }
            if let Some(shape) = shapes.iter().find(|shape| shape.len() != sizes.len()) {
                return Err(Fault::invalid(format!("{shape:?} has not {} axes", sizes.len())));
            }
            for (axis, range) in ranges.iter_mut().enumerate() {
                let all = shapes.iter().map(|shape| shape[axis]);
                *range = (all.clone().min().unwrap_or(0), all.max());
            }
        }
        Some(Flexibility::Ranges(all)) if all.size_ranges.len() == sizes.len() => {
            for (range, given) in ranges.iter_mut().zip(&all.size_ranges) {
                let least = usize::try_from(given.lower_bound)
                    .map_err(|_| Fault::invalid(format!("the size {}", given.lower_bound)))?;
                *range = (least, usize::try_from(given.upper_bound).ok());
            }
        }
        Some(Flexibility::Ranges(all)) => {
            let (have, want) = (all.size_ranges.len(), sizes.len());
            return Err(Fault::invalid(format!("{have} ranges for {want} axes")));
        }
        None => {}
    }
    let size = |(size, (least, most)): (Option<usize>, (usize, Option<usize>))| match size {
        Some(size) => Size::Known(size),
        None if most == Some(least) => Size::Known(least),
        None => Size::Range(least, most),
    };
    let sizes = sizes.into_iter().zip(ranges).map(size).collect();
    let optional = described.is_some_and(|described| described.is_optional);
    let default = match array.and_then(|array| array.default.as_ref()) {
        _ if !optional => None,
        Some(DefaultValue::Int(value)) => Some(f64::from(*value)),
        Some(DefaultValue::Float(value)) => Some(f64::from(*value)),
        Some(DefaultValue::Double(value)) => Some(*value),
        None => Some(0.0),
    };
    let name = input.name.clone();
    let Element { dtype, .. } = element;
    Ok((Port { name, dtype, sizes, shapes, default }, state))
}

/// The arrays of a block's constants, those of inner blocks included.
fn constants<'b>(block: &'b Block, out: &mut Vec<(&'b str, &'b Array)>) {
    for step in &block.steps {
        if step.op == "const"
            && let (Some(Value::Tensor(tensor)), Some(output)) =
                (value_of(step), step.outputs.first())
        {
            out.push((&output.name, &tensor.array));
        }
        step.blocks.iter().for_each(|block| constants(block, out));
    }
}

/// Says of each infinite constant in half precision that is added, multiplied or selected, as masks are.
fn infinite_masks<'b>(
    file: &str,
    block: &'b Block,
    held: &mut HashMap<&'b str, &'b Tensor>,
    warnings: &mut Vec<String>,
) {
    for step in &block.steps {
        if step.op == "const"
            && let (Some(Value::Tensor(tensor)), Some(output)) =
                (value_of(step), step.outputs.first())
        {
            held.insert(&output.name, tensor);
        }
        step.blocks.iter().for_each(|block| infinite_masks(file, block, held, warnings));
        for (argument, sources) in &step.arguments {
            let mask = match step.op.as_str() {
                "add" | "sub" | "mul" | "select" => true,
                "scaled_dot_product_attention" => argument == "attn_mask",
                _ => false,
            };
            for source in sources.iter().filter(|_| mask) {
                let (name, tensor) = match source {
                    Source::Name(name) => (name.as_str(), held.get(name.as_str()).copied()),
                    Source::Constant(Value::Tensor(tensor)) => (argument.as_str(), Some(tensor)),
                    Source::Constant(_) => continue,
                };
                if tensor.is_some_and(|tensor| is_infinite(&tensor.array)) {
                    warnings.push(format!(
                        "{file}: {}: '{name}' is infinite in float16, and a row that is masked whole becomes \
                         NaN: convert with a finite mask, or with compute_precision=ct.precision.FLOAT32",
                        step.label()
                    ));
                }
            }
        }
    }
}

fn is_infinite(array: &Array) -> bool {
    array.dtype() == DType::F16
        && array.to_vec::<half::f16>().is_ok_and(|all| all.iter().any(|v| v.is_infinite()))
}
