//! What goes along the edges of a model: tensors, sequences of them, and nothing.

use std::sync::Arc;

use cupola_core::{Array, Device, Stream, device};

use super::attended::Attended;
use super::element::Element;
use super::error::Fault;
use crate::numbers::is_small;

/// An array with the element type that it has in the model.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The elements.
    pub array: Array,
    /// What they are in the model; [`Element::dtype`] is the array's dtype.
    pub element: Element,
    /// Whether it depends on sizes and constants only, and is small.
    pub(crate) folded: bool,
    /// What it is on the way to attention.
    pub(crate) attended: Option<Arc<Attended>>,
}

impl Tensor {
    /// An array of values of `element`.
    ///
    /// # Errors
    /// Where the array does not have the dtype that holds them.
    pub fn new(array: Array, element: Element) -> Result<Tensor, Fault> {
        if array.dtype() != element.dtype() {
            let (have, want) = (array.dtype(), element.dtype());
            return Err(Fault::invalid(format!("elements of {element} are in {want}, not {have}")));
        }
        Ok(Tensor { array, element, folded: false, attended: None })
    }

    /// One integer that the host knows.
    pub(crate) fn folded_int(value: i64) -> Result<Tensor, Fault> {
        let made = || Array::from_slice(&[value], ());
        let array = device::with_stream(Stream::of(Device::CPU), made)?;
        Ok(Tensor { array, element: Element::Int64, folded: true, attended: None })
    }
}

impl From<Array> for Tensor {
    fn from(array: Array) -> Self {
        let element = Element::of(array.dtype());
        Tensor { array, element, folded: false, attended: None }
    }
}

/// One value of a model.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
    /// A list of values.
    Sequence(Arc<Vec<Value>>),
    /// An optional that is empty.
    Nothing,
}

impl Value {
    /// What kind of value it is, for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Tensor(_) => "a tensor",
            Value::Sequence(_) => "a sequence",
            Value::Nothing => "an empty optional",
        }
    }

    /// The tensor.
    ///
    /// # Errors
    /// Where it is something else.
    pub fn tensor(&self) -> Result<&Tensor, Fault> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(Fault::invalid(format!("{} stands for a tensor", other.kind()))),
        }
    }

    /// A list of values.
    pub fn sequence(values: Vec<Value>) -> Value {
        Value::Sequence(Arc::new(values))
    }

    pub(crate) fn is_folded(&self) -> bool {
        match self {
            Value::Tensor(tensor) => tensor.folded,
            Value::Sequence(values) => values.iter().all(Value::is_folded),
            Value::Nothing => true,
        }
    }

    /// Marks what is small as folded.
    pub(crate) fn fold(&mut self) {
        if let Value::Tensor(tensor) = self {
            let aval = tensor.array.aval();
            tensor.folded = is_small(aval.shape.size(), aval.dtype.is_float());
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
        Value::Tensor(array.into())
    }
}
