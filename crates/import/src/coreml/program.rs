//! A program as it is run: names resolved, operators looked up, constants read.

use std::collections::{HashMap, HashSet};

use super::constant::Constants;
use super::element::Element;
use super::proto::{self, Bound, TypeKind};
use super::table::{self, Apply};
use super::value::Value;
use crate::error::{Error, Fault, Result};
use crate::limits::MOST_DEPTH;

/// Operations in order.
#[derive(Debug)]
pub struct Block {
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub steps: Vec<Step>,
}

/// One operation.
#[derive(Debug)]
pub struct Step {
    pub name: String,
    pub op: String,
    pub apply: Apply,
    pub arguments: Vec<(String, Vec<Source>)>,
    pub outputs: Vec<Output>,
    pub blocks: Vec<Block>,
    /// What no later operation needs.
    pub drops: Vec<String>,
}

/// Where the value of an argument comes from.
#[derive(Debug)]
pub enum Source {
    Name(String),
    Constant(Value),
}

/// The name of a result, and what the program says of it.
#[derive(Debug)]
pub struct Output {
    pub name: String,
    /// What its elements are, where it is a tensor.
    pub element: Option<Element>,
    /// Its sizes, `None` where one is open.
    pub sizes: Option<OpenSizes>,
}

/// The sizes of a tensor, `None` where one is open.
pub type OpenSizes = Vec<Option<usize>>;

impl Step {
    /// The operation for people: its name and its operator.
    pub fn label(&self) -> String {
        label(&self.name, &self.op)
    }
}

fn label(name: &str, op: &str) -> String {
    match name {
        "" => format!("node {op}"),
        name => format!("node '{name}' ({op})"),
    }
}

/// The element type and sizes of a tensor, and of nothing else.
pub fn tensor_type(kind: &proto::TensorType) -> Result<(Element, Option<OpenSizes>), Fault> {
    let element = Element::from_code(kind.data_type)?;
    let mut sizes = Vec::with_capacity(kind.dimensions.len());
    for dimension in &kind.dimensions {
        sizes.push(match &dimension.kind {
            Some(proto::DimensionKind::Constant(known)) => match usize::try_from(known.size) {
                Ok(size) if size <= 1 << 48 => Some(size),
                _ => return Err(Fault::invalid(format!("the size {} is no size", known.size))),
            },
            Some(proto::DimensionKind::Unknown(open)) if open.variadic => {
                return Ok((element, None));
            }
            _ => None,
        });
    }
    Ok((element, Some(sizes)))
}

/// What reading a program needs besides it.
pub struct Reader<'a> {
    pub file: &'a str,
    pub constants: &'a Constants,
}

/// Names that are known, those of the blocks around included.
struct Known<'k> {
    names: HashSet<String>,
    outer: Option<&'k Known<'k>>,
}

impl Known<'_> {
    fn contains(&self, name: &str) -> bool {
        self.names.contains(name) || self.outer.is_some_and(|outer| outer.contains(name))
    }
}

impl Reader<'_> {
    /// The block of a function with these inputs.
    pub fn function(&self, block: &proto::Block, inputs: Vec<String>) -> Result<Block> {
        self.block(block, inputs, None, 0).map_err(|trouble| match trouble {
            Trouble::Fault(fault) => Error::file(self.file, fault.to_string()),
            Trouble::Node(node, fault) => Error::Node { file: self.file.into(), node, fault },
        })
    }

    fn block(
        &self,
        block: &proto::Block,
        inputs: Vec<String>,
        outer: Option<&Known<'_>>,
        depth: usize,
    ) -> Result<Block, Trouble> {
        if depth > MOST_DEPTH {
            let detail = format!("blocks lie in each other over {MOST_DEPTH} deep");
            return Err(Fault::invalid(detail).into());
        }
        let mut known = Known { names: HashSet::new(), outer };
        for name in &inputs {
            if known.contains(name) || !known.names.insert(name.clone()) {
                return Err(Fault::invalid(format!("the input '{name}' is there twice")).into());
            }
        }
        let mut steps = Vec::with_capacity(block.operations.len());
        for operation in &block.operations {
            let name = name_of(operation);
            let step = self.step(operation, &name, &known, depth).map_err(|trouble| {
                let here = label(&name, &operation.r#type);
                match trouble {
                    Trouble::Fault(fault) => Trouble::Node(here, fault),
                    Trouble::Node(node, fault) => Trouble::Node(here, fault.within(node)),
                }
            })?;
            known.names.extend(step.outputs.iter().map(|output| output.name.clone()));
            steps.push(step);
        }
        for name in &block.outputs {
            if !known.contains(name) {
                let detail = format!("the output '{name}' is made by no operation");
                return Err(Fault::invalid(detail).into());
            }
        }
        let mut block = Block { inputs, outputs: block.outputs.clone(), steps };
        drops(&mut block);
        Ok(block)
    }

    fn step(
        &self,
        operation: &proto::Operation,
        name: &str,
        known: &Known<'_>,
        depth: usize,
    ) -> Result<Step, Trouble> {
        let apply = table::find(&operation.r#type)?;
        let mut arguments: Vec<(String, Vec<Source>)> = Vec::new();
        let mut add = |name: &str, sources: Vec<Source>| {
            if arguments.iter().any(|(other, _)| other == name) {
                return Err(Fault::invalid(format!("the argument '{name}' is there twice")));
            }
            arguments.push((name.to_owned(), sources));
            Ok(())
        };
        for entry in &operation.inputs {
            let key = &entry.key;
            let bindings = entry.value.iter().flat_map(|argument| &argument.arguments);
            let source = |binding: &proto::Binding| match &binding.binding {
                Some(Bound::Name(name)) if known.contains(name) => Ok(Source::Name(name.clone())),
                Some(Bound::Name(name)) => Err(Fault::invalid(format!(
                    "the argument '{key}': '{name}' is made by no operation before"
                ))),
                Some(Bound::Value(value)) => Ok(Source::Constant(self.constant(key, value)?)),
                None => Err(Fault::invalid(format!("the argument '{key}' is bound to nothing"))),
            };
            add(key, bindings.map(source).collect::<Result<_, _>>()?)?;
        }
        // Of constants the arguments are attributes.
        for entry in operation.attributes.iter().filter(|entry| entry.key != "name") {
            if let Some(value) = &entry.value {
                add(&entry.key, vec![Source::Constant(self.constant(&entry.key, value)?)])?;
            }
        }
        let mut outputs: Vec<Output> = Vec::with_capacity(operation.outputs.len());
        for output in &operation.outputs {
            let name = &output.name;
            if known.contains(name) || outputs.iter().any(|other| other.name == *name) {
                return Err(Fault::invalid(format!("its output '{name}' is there twice")).into());
            }
            let kind = output.r#type.as_ref().and_then(|t| t.kind.as_ref());
            let (element, sizes) = match kind {
                Some(TypeKind::Tensor(kind)) if kind.data_type != super::element::TEXT => {
                    let (element, sizes) = tensor_type(kind)
                        .map_err(|fault| Fault::invalid(format!("its output '{name}': {fault}")))?;
                    (Some(element), sizes)
                }
                _ => (None, None),
            };
            outputs.push(Output { name: name.clone(), element, sizes });
        }
        let mut blocks = Vec::with_capacity(operation.blocks.len());
        for block in &operation.blocks {
            let inputs = block.inputs.iter().map(|input| input.name.clone()).collect();
            blocks.push(self.block(block, inputs, Some(known), depth + 1)?);
        }
        Ok(Step {
            name: name.to_owned(),
            op: operation.r#type.clone(),
            apply,
            arguments,
            outputs,
            blocks,
            drops: Vec::new(),
        })
    }

    fn constant(&self, key: &str, value: &proto::Value) -> Result<Value, Fault> {
        let read = self.constants.value(value);
        read.map_err(|fault| match fault {
            Fault::Unsupported(detail) => Fault::Unsupported(format!("'{key}': {detail}")),
            fault => Fault::invalid(format!("'{key}': {fault}")),
        })
    }
}

/// The name that an operation has, or else that of its first result.
fn name_of(operation: &proto::Operation) -> String {
    let attribute = operation.attributes.iter().find(|entry| entry.key == "name");
    let value = attribute.and_then(|entry| entry.value.as_ref()?.kind.as_ref());
    if let Some(proto::ValueKind::Immediate(value)) = value
        && let Some(proto::Immediate::Tensor(tensor)) = &value.kind
        && let Some(proto::Elements::Texts(texts)) = &tensor.elements
        && let [name] = &texts.values[..]
    {
        return name.clone();
    }
    operation.outputs.first().map(|output| output.name.clone()).unwrap_or_default()
}

/// The names that a step reads, those of its blocks included.
fn needs<'s>(step: &'s Step, names: &mut Vec<&'s str>) {
    for (_, sources) in &step.arguments {
        names.extend(sources.iter().filter_map(|source| match source {
            Source::Name(name) => Some(name.as_str()),
            Source::Constant(_) => None,
        }));
    }
    for block in &step.blocks {
        names.extend(block.outputs.iter().map(String::as_str));
        block.steps.iter().for_each(|step| needs(step, names));
    }
}

/// Says of each step what of the block's own no later one needs.
fn drops(block: &mut Block) {
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (place, step) in block.steps.iter().enumerate() {
        last.extend(step.outputs.iter().map(|output| (output.name.as_str(), place)));
        let mut names = Vec::new();
        needs(step, &mut names);
        for name in names {
            last.entry(name).and_modify(|at| *at = place);
        }
    }
    for name in &block.outputs {
        last.remove(name.as_str());
    }
    let mut dropped: Vec<Vec<String>> = vec![Vec::new(); block.steps.len()];
    last.into_iter().for_each(|(name, place)| dropped[place].push(name.to_owned()));
    block.steps.iter_mut().zip(dropped).for_each(|(step, drops)| step.drops = drops);
}

/// What goes wrong in a block: itself, or a node in it.
enum Trouble {
    Fault(Fault),
    Node(String, Fault),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Trouble::Fault(fault)
    }
}
