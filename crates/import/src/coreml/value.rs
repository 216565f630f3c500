//! What operations take and give: tensors, texts, lists, and states.

use std::sync::Arc;

use cupola_core::{Array, DType, Device, Stream, device, ops};

use crate::error::Fault;
use crate::numbers::is_small;

/// An array, and whether the host knows it.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub array: Array,
    /// Whether it depends on sizes and constants only, and is small.
    pub folded: bool,
}

/// A list of tensors, some of which are not written yet.
#[derive(Clone, Debug)]
pub struct List {
    pub items: Vec<Option<Tensor>>,
    /// The shape of an element, where it is known.
    pub shape: Option<Vec<usize>>,
    pub dtype: DType,
    /// Whether what is written behind its end is added.
    pub grows: bool,
}

/// One value.
#[derive(Clone, Debug)]
pub enum Value {
    Tensor(Tensor),
    Text(Arc<str>),
    Texts(Arc<Vec<String>>),
    List(Arc<List>),
    /// The state of this name.
    State(Arc<str>),
}

impl Tensor {
    /// Marks what is small as known to the host.
    pub fn fold(&mut self) {
        let aval = self.array.aval();
        self.folded = is_small(aval.shape.size(), aval.dtype.is_float());
    }

    /// Integers that the host knows.
    pub fn known(values: &[i32], shape: impl Into<cupola_core::Shape>) -> Result<Tensor, Fault> {
        let shape = shape.into();
        let made = || Array::from_slice(values, shape);
        Ok(Tensor { array: device::with_stream(Stream::of(Device::CPU), made)?, folded: true })
    }
}

impl List {
    /// An element; of zeros, where it is not written yet.
    pub fn item(&self, at: usize) -> Result<Tensor, Fault> {
        match (self.items.get(at), &self.shape) {
            (Some(Some(tensor)), _) => Ok(tensor.clone()),
            (Some(None), Some(shape)) => {
                Ok(Tensor { array: ops::zeros(shape.clone(), self.dtype)?, folded: false })
            }
            (Some(None), None) => {
                Err(Fault::invalid(format!("the element {at} of the list is not written")))
            }
            (None, _) => {
                let count = self.items.len();
                Err(Fault::invalid(format!("the element {at} of a list of {count}")))
            }
        }
    }
}

impl Value {
    /// What kind of value it is, for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Tensor(_) => "a tensor",
            Value::Text(_) => "a text",
            Value::Texts(_) => "a list of texts",
            Value::List(_) => "a list",
            Value::State(_) => "a state",
        }
    }

    /// The tensor.
    pub fn tensor(&self) -> Result<&Tensor, Fault> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(Fault::invalid(format!("{} stands for a tensor", other.kind()))),
        }
    }

    /// Whether it depends on sizes and constants only, and is small.
    pub fn is_folded(&self) -> bool {
        match self {
            Value::Tensor(tensor) => tensor.folded,
            Value::Text(_) | Value::Texts(_) => true,
            Value::List(list) => list.items.iter().flatten().all(|tensor| tensor.folded),
            Value::State(_) => false,
        }
    }

    /// Marks what is small as known to the host.
    pub fn fold(&mut self) {
        if let Value::Tensor(tensor) = self {
            tensor.fold();
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value::Tensor(tensor)
    }
}

impl From<Array> for Value {
    fn from(array: Array) -> Self {
        Value::Tensor(Tensor { array, folded: false })
    }
}
