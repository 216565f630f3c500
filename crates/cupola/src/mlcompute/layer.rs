//! What a layer is: a function of arrays with tensors that it has learnt.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use cupola_core::{Array, DType, Error, Result, ops};

use super::Tensor;

/// Arrays by name.
pub type Held = BTreeMap<String, Array>;

/// What a layer is given.
pub struct Given<'a> {
    /// What it is applied to.
    pub inputs: &'a [Array],
    /// Its parameters and states.
    pub held: &'a Held,
    /// Whether the graph trains.
    pub training: bool,
}

impl Given<'_> {
    /// The first input.
    pub fn x(&self) -> &Array {
        &self.inputs[0]
    }

    /// A parameter or state.
    ///
    /// # Errors
    /// Where the layer has none of this name.
    pub fn get(&self, name: &str) -> Result<&Array> {
        let missing = || Error::argument("mlcompute", format!("the layer has no '{name}'"));
        self.held.get(name).ok_or_else(missing)
    }
}

/// What a layer makes.
pub struct Made {
    /// Its results.
    pub results: Vec<Array>,
    /// Its states after that, those that change.
    pub states: Held,
}

type Forward = dyn Fn(&Given<'_>) -> Result<Made> + Send + Sync;

/// A layer, which a graph applies to tensors. Clones are the same layer.
#[derive(Clone)]
pub struct Layer(Arc<Inner>);

struct Inner {
    label: String,
    takes: RangeInclusive<usize>,
    forward: Box<Forward>,
    parameters: Vec<(String, Tensor)>,
    states: Vec<(String, Tensor)>,
}

impl Layer {
    /// A layer from what it does. `parameters` are learnt; `states` change with every execution of a training
    /// graph.
    pub fn new(
        label: impl Into<String>,
        takes: RangeInclusive<usize>,
        parameters: Vec<(String, Tensor)>,
        states: Vec<(String, Tensor)>,
        forward: impl Fn(&Given<'_>) -> Result<Made> + Send + Sync + 'static,
    ) -> Layer {
        let (label, forward) = (label.into(), Box::new(forward));
        Layer(Arc::new(Inner { label, takes, forward, parameters, states }))
    }

    /// A layer with one result.
    pub(super) fn one(
        label: impl Into<String>,
        takes: RangeInclusive<usize>,
        parameters: Vec<(String, Tensor)>,
        forward: impl Fn(&Given<'_>) -> Result<Array> + Send + Sync + 'static,
    ) -> Layer {
        Layer::new(label, takes, parameters, Vec::new(), move |given| {
            Ok(Made { results: vec![forward(given)?], states: Held::new() })
        })
    }

    /// A layer of one tensor that learns nothing.
    pub(super) fn unary(
        label: impl Into<String>,
        forward: impl Fn(&Array) -> Result<Array> + Send + Sync + 'static,
    ) -> Layer {
        Layer::one(label, 1..=1, Vec::new(), move |given| forward(given.x()))
    }

    /// What it is called in errors.
    pub fn label(&self) -> &str {
        &self.0.label
    }

    /// What it learns, by name.
    pub fn parameters(&self) -> &[(String, Tensor)] {
        &self.0.parameters
    }

    /// What it keeps otherwise, by name.
    pub fn states(&self) -> &[(String, Tensor)] {
        &self.0.states
    }

    /// The parameter or state of a name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.held().find(|(n, _)| n == name).map(|(_, tensor)| tensor)
    }

    pub(super) fn held(&self) -> impl Iterator<Item = &(String, Tensor)> {
        self.0.parameters.iter().chain(&self.0.states)
    }

    /// What it makes of arrays.
    ///
    /// # Errors
    /// Where it takes another number of inputs, or these do not fit.
    pub fn apply(&self, given: &Given<'_>) -> Result<Made> {
        let takes = &self.0.takes;
        if !takes.contains(&given.inputs.len()) {
            let wanted = match takes.start() == takes.end() {
                true => takes.start().to_string(),
                false => format!("{} to {}", takes.start(), takes.end()),
            };
            let text = format!("takes {wanted} tensors, not {}", given.inputs.len());
            return Err(Error::argument("mlcompute", text));
        }
        (self.0.forward)(given)
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layer({})", self.0.label)
    }
}

/// The tensor of a parameter, uniformly distributed within ±1/√`fan_in`.
pub(super) fn uniform(shape: &[usize], fan_in: usize) -> Result<Tensor> {
    let bound = 1.0 / (fan_in.max(1) as f64).sqrt();
    Ok(Tensor::of(&ops::random::uniform(-bound, bound, shape, DType::F32, None)?))
}

/// A parameter by name.
pub(super) fn named(name: &str, tensor: Tensor) -> (String, Tensor) {
    (name.to_owned(), tensor)
}

/// The error of a layer that cannot be.
pub(super) fn wrong(label: &str, detail: impl fmt::Display) -> Error {
    Error::argument("mlcompute", format!("{label}: {detail}"))
}
