//! A node while it runs: its inputs, its attributes, and what operators ask of them.

use cupola_core::Array;

use super::element::Element;
use super::error::Fault;
use super::graph::{Attribute, Graph, Step};
use super::run::{Run, Scope};
use super::value::{Tensor, Value};

pub use crate::numbers::{axes, axis, count, counts, floats, ints};

/// What an operator gives.
pub type Outcome = Result<Vec<Value>, Fault>;

/// One node with its inputs.
pub struct Node<'a> {
    pub(crate) step: &'a Step,
    pub(crate) inputs: Vec<Option<Value>>,
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) run: &'a Run<'a>,
}

impl<'a> Node<'a> {
    /// The version of the operators that the model imports.
    pub fn version(&self) -> i64 {
        self.step.version
    }

    /// How many inputs are given.
    pub fn count(&self) -> usize {
        self.inputs.len()
    }

    /// Whether the output at `index` is asked for.
    pub fn wants(&self, index: usize) -> bool {
        self.step.outputs.get(index).is_some_and(|name| !name.is_empty())
    }

    fn missing(&self, index: usize) -> Fault {
        Fault::invalid(format!("input {index} is missing"))
    }

    /// The value of an input.
    pub fn value(&self, index: usize) -> Result<&Value, Fault> {
        self.inputs.get(index).and_then(Option::as_ref).ok_or_else(|| self.missing(index))
    }

    /// The tensor of an input.
    pub fn tensor(&self, index: usize) -> Result<&Tensor, Fault> {
        self.value(index)?.tensor().map_err(|e| Fault::invalid(format!("input {index}: {e}")))
    }

    /// The tensor of an input that may be left out.
    pub fn maybe_tensor(&self, index: usize) -> Result<Option<&Tensor>, Fault> {
        match self.inputs.get(index).and_then(Option::as_ref) {
            None | Some(Value::Nothing) => Ok(None),
            Some(_) => self.tensor(index).map(Some),
        }
    }

    /// The array of an input.
    pub fn x(&self, index: usize) -> Result<&Array, Fault> {
        Ok(&self.tensor(index)?.array)
    }

    /// The array of an input that may be left out.
    pub fn maybe(&self, index: usize) -> Result<Option<&Array>, Fault> {
        Ok(self.maybe_tensor(index)?.map(|t| &t.array))
    }

    /// The arrays of all inputs.
    pub fn all(&self) -> Result<Vec<&Array>, Fault> {
        (0..self.count()).map(|i| self.x(i)).collect()
    }

    /// The numbers of an input, which is evaluated.
    pub fn ints_at(&self, index: usize) -> Result<Option<Vec<i64>>, Fault> {
        self.maybe(index)?.map(ints).transpose()
    }

    /// The numbers of an input that has to be there.
    pub fn need_ints(&self, index: usize) -> Result<Vec<i64>, Fault> {
        ints(self.x(index)?)
    }

    /// The one number of an input that has to be there.
    pub fn need_int(&self, index: usize) -> Result<i64, Fault> {
        match self.need_ints(index)?[..] {
            [value] => Ok(value),
            ref values => {
                Err(Fault::invalid(format!("input {index} has {} numbers, not one", values.len())))
            }
        }
    }

    /// The real numbers of an input, which is evaluated.
    pub fn floats_at(&self, index: usize) -> Result<Option<Vec<f64>>, Fault> {
        self.maybe(index)?.map(floats).transpose()
    }

    /// The value of an attribute; that of the function around, where it says so.
    pub fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        let (_, found) = self.step.attributes.iter().find(|(n, _)| n == name)?;
        match found {
            Attribute::Reference(outer) => self.scope.attribute(outer),
            found => Some(found),
        }
    }

    fn wrong(&self, name: &str, want: &str) -> Fault {
        Fault::invalid(format!("the attribute '{name}' is not {want}"))
    }

    /// An integer attribute that may be left out.
    pub fn maybe_int(&self, name: &str) -> Result<Option<i64>, Fault> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Int(value)) => Ok(Some(*value)),
            Some(_) => Err(self.wrong(name, "an integer")),
        }
    }

    /// An integer attribute.
    pub fn int(&self, name: &str, default: i64) -> Result<i64, Fault> {
        Ok(self.maybe_int(name)?.unwrap_or(default))
    }

    /// An integer attribute that has to be there.
    pub fn need_attribute(&self, name: &str) -> Result<i64, Fault> {
        self.maybe_int(name)?
            .ok_or_else(|| Fault::invalid(format!("the attribute '{name}' is missing")))
    }

    /// An integer attribute that says yes or no.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Fault> {
        Ok(self.int(name, default.into())? != 0)
    }

    /// A real attribute that may be left out.
    pub fn maybe_float(&self, name: &str) -> Result<Option<f64>, Fault> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Float(value)) => Ok(Some((*value).into())),
            Some(_) => Err(self.wrong(name, "a float")),
        }
    }

    /// A real attribute.
    pub fn float(&self, name: &str, default: f64) -> Result<f64, Fault> {
        Ok(self.maybe_float(name)?.unwrap_or(default))
    }

    /// A list of integers that may be left out.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>, Fault> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Ints(values)) => Ok(Some(values.clone())),
            Some(_) => Err(self.wrong(name, "a list of integers")),
        }
    }

    /// A list of real numbers that may be left out.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f64>>, Fault> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Floats(values)) => Ok(Some(values.iter().map(|&v| v.into()).collect())),
            Some(_) => Err(self.wrong(name, "a list of floats")),
        }
    }

    /// A text attribute.
    pub fn text(&self, name: &str, default: &'a str) -> Result<&'a str, Fault> {
        match self.attribute(name) {
            None => Ok(default),
            Some(Attribute::Text(value)) => Ok(value),
            Some(_) => Err(self.wrong(name, "a string")),
        }
    }

    /// A list of texts that may be left out.
    pub fn texts(&self, name: &str) -> Result<Option<&'a [String]>, Fault> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Texts(values)) => Ok(Some(values)),
            Some(_) => Err(self.wrong(name, "a list of strings")),
        }
    }

    /// The element type that an attribute names.
    pub fn element(&self, name: &str) -> Result<Option<Element>, Fault> {
        match self.int(name, 0)? {
            0 => Ok(None),
            code => Element::from_code(code).map(Some),
        }
    }

    /// A graph attribute.
    pub fn graph(&self, name: &str) -> Result<&'a Graph, Fault> {
        match self.attribute(name) {
            Some(Attribute::Graph(graph)) => Ok(graph),
            Some(_) => Err(self.wrong(name, "a graph")),
            None => Err(Fault::invalid(format!("the graph '{name}' is missing"))),
        }
    }

    /// Runs a graph of this node.
    pub fn call(&self, graph: &Graph, inputs: Vec<Value>) -> Outcome {
        self.run.graph(graph, inputs, Some(self.scope))
    }

    /// The axes of an attribute, or of an input where later versions have them.
    pub fn axes(&self, name: &str, input: usize) -> Result<Option<Vec<i64>>, Fault> {
        match self.ints(name)? {
            Some(axes) => Ok(Some(axes)),
            None => self.ints_at(input),
        }
    }

    /// The axis of an attribute, counted from the start.
    pub fn axis(&self, name: &str, default: i64, rank: usize) -> Result<usize, Fault> {
        axis(self.int(name, default)?, rank)
    }

    /// A result with the element type of an input.
    pub fn like(&self, array: Array, input: usize) -> Outcome {
        let element = self.tensor(input)?.element;
        Ok(vec![Tensor::new(array, element)?.into()])
    }
}

/// One result.
pub fn one(array: Array) -> Outcome {
    Ok(vec![array.into()])
}
