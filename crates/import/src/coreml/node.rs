//! An operation while it runs: its arguments by name, and what operators ask of them.

use cupola_core::{Array, DType};

use super::element::Element;
use super::program::{Block, Step};
use super::run::{Run, Scope};
use super::value::{Tensor, Value};
use crate::error::Fault;
use crate::numbers::{self, count, counts, floats, ints};

/// What an operator gives.
pub type Outcome = Result<Vec<Value>, Fault>;

/// One operation with its arguments.
pub struct Node<'a> {
    pub step: &'a Step,
    pub arguments: Vec<(&'a str, Vec<Value>)>,
    pub scope: &'a Scope<'a>,
    pub run: &'a Run,
}

impl<'a> Node<'a> {
    fn within<T>(&self, name: &str, made: Result<T, Fault>) -> Result<T, Fault> {
        made.map_err(|fault| Fault::invalid(format!("the argument '{name}': {fault}")))
    }

    fn missing(&self, name: &str) -> Fault {
        Fault::invalid(format!("the argument '{name}' is missing"))
    }

    /// The values of an argument; none, where it is left out.
    pub fn values(&self, name: &str) -> &[Value] {
        self.arguments.iter().find(|(n, _)| *n == name).map_or(&[], |(_, values)| values)
    }

    /// The value of an argument that may be left out.
    pub fn maybe_value(&self, name: &str) -> Result<Option<&Value>, Fault> {
        match self.values(name) {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            values => {
                let count = values.len();
                Err(Fault::invalid(format!("the argument '{name}' has {count} values, not one")))
            }
        }
    }

    /// The value of an argument.
    pub fn value(&self, name: &str) -> Result<&Value, Fault> {
        self.maybe_value(name)?.ok_or_else(|| self.missing(name))
    }

    /// The tensor of an argument.
    pub fn tensor(&self, name: &str) -> Result<&Tensor, Fault> {
        self.within(name, self.value(name)?.tensor())
    }

    /// The array of an argument.
    pub fn x(&self, name: &str) -> Result<&Array, Fault> {
        Ok(&self.tensor(name)?.array)
    }

    /// The array of an argument that may be left out.
    pub fn maybe(&self, name: &str) -> Result<Option<&Array>, Fault> {
        match self.maybe_value(name)? {
            None => Ok(None),
            Some(_) => self.x(name).map(Some),
        }
    }

    /// The arrays of an argument that is a list.
    pub fn all(&self, name: &str) -> Result<Vec<&Array>, Fault> {
        let values = self.values(name).iter();
        let arrays = values.map(|value| Ok(&value.tensor()?.array));
        let arrays = self.within(name, arrays.collect::<Result<Vec<_>, Fault>>())?;
        if arrays.is_empty() { Err(self.missing(name)) } else { Ok(arrays) }
    }

    /// The integers of an argument that may be left out, which is evaluated.
    pub fn maybe_ints(&self, name: &str) -> Result<Option<Vec<i64>>, Fault> {
        match self.values(name) {
            [] => Ok(None),
            [value] => self.within(name, value.tensor().and_then(|t| ints(&t.array))).map(Some),
            // A list of scalars.
            values => {
                let one = |value: &Value| match ints(&value.tensor()?.array)?[..] {
                    [one] => Ok(one),
                    _ => Err(Fault::invalid("a list of anything but numbers")),
                };
                self.within(name, values.iter().map(one).collect()).map(Some)
            }
        }
    }

    /// The integers of an argument.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>, Fault> {
        self.maybe_ints(name)?.ok_or_else(|| self.missing(name))
    }

    /// The sizes of an argument that may be left out.
    pub fn maybe_counts(&self, name: &str) -> Result<Option<Vec<usize>>, Fault> {
        let given = self.maybe_ints(name)?;
        given.map(|list| self.within(name, counts(&list))).transpose()
    }

    /// The one integer of an argument that may be left out.
    pub fn maybe_int(&self, name: &str) -> Result<Option<i64>, Fault> {
        match self.maybe_ints(name)?.as_deref() {
            None => Ok(None),
            Some(&[value]) => Ok(Some(value)),
            Some(values) => {
                let count = values.len();
                Err(Fault::invalid(format!("the argument '{name}' has {count} numbers, not one")))
            }
        }
    }

    /// The one integer of an argument, or what it is else.
    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, Fault> {
        Ok(self.maybe_int(name)?.unwrap_or(default))
    }

    /// The one integer of an argument.
    pub fn int(&self, name: &str) -> Result<i64, Fault> {
        self.maybe_int(name)?.ok_or_else(|| self.missing(name))
    }

    /// The one size of an argument.
    pub fn count(&self, name: &str) -> Result<usize, Fault> {
        self.within(name, count(self.int(name)?))
    }

    /// Whether an argument holds, or what it is else.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Fault> {
        Ok(self.int_or(name, default.into())? != 0)
    }

    /// The one number of an argument that may be left out.
    pub fn maybe_float(&self, name: &str) -> Result<Option<f64>, Fault> {
        let Some(array) = self.maybe(name)? else { return Ok(None) };
        match self.within(name, floats(array))?[..] {
            [value] => Ok(Some(value)),
            ref values => {
                let count = values.len();
                Err(Fault::invalid(format!("the argument '{name}' has {count} numbers, not one")))
            }
        }
    }

    /// The one number of an argument, or what it is else.
    pub fn float_or(&self, name: &str, default: f64) -> Result<f64, Fault> {
        Ok(self.maybe_float(name)?.unwrap_or(default))
    }

    /// The one number of an argument.
    pub fn float(&self, name: &str) -> Result<f64, Fault> {
        self.maybe_float(name)?.ok_or_else(|| self.missing(name))
    }

    /// The text of an argument that may be left out.
    pub fn maybe_text(&self, name: &str) -> Result<Option<&str>, Fault> {
        match self.maybe_value(name)? {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => {
                let kind = other.kind();
                Err(Fault::invalid(format!("the argument '{name}' is {kind}, not a text")))
            }
        }
    }

    /// The text of an argument, or what it is else.
    pub fn text<'s>(&'s self, name: &str, default: &'s str) -> Result<&'s str, Fault> {
        Ok(self.maybe_text(name)?.unwrap_or(default))
    }

    /// The dtype that an argument names.
    pub fn element(&self, name: &str) -> Result<Option<Element>, Fault> {
        match self.maybe_text(name)? {
            None => Ok(None),
            Some(text) => self.within(name, Element::from_name(text)).map(Some),
        }
    }

    /// The axis of an argument, counted from the start, or what it is else.
    pub fn axis(&self, name: &str, default: i64, rank: usize) -> Result<usize, Fault> {
        self.within(name, numbers::axis(self.int_or(name, default)?, rank))
    }

    /// The axes of an argument, counted from the start; all, where it is left out.
    pub fn axes(&self, name: &str, rank: usize) -> Result<Vec<usize>, Fault> {
        match self.maybe_ints(name)? {
            None => Ok((0..rank).collect()),
            Some(axes) => self.within(name, numbers::axes(&axes, rank)),
        }
    }

    /// The dtype that the model says of an output.
    pub fn output_dtype(&self, index: usize) -> Option<DType> {
        self.step.outputs.get(index)?.element.map(|element| element.dtype)
    }

    /// Runs a block of this operation.
    pub fn call(&self, block: &Block, inputs: Vec<Value>) -> Outcome {
        self.run.block(block, inputs, Some(self.scope))
    }

    /// A block of this operation.
    pub fn block(&self, index: usize) -> Result<&'a Block, Fault> {
        self.step
            .blocks
            .get(index)
            .ok_or_else(|| Fault::invalid(format!("the block {index} is missing")))
    }
}

/// One result.
pub fn one(array: Array) -> Outcome {
    Ok(vec![array.into()])
}
