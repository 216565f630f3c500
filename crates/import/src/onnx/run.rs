//! Running a graph: each node records its operation, in order.

use std::cell::Cell;
use std::collections::HashMap;

use cupola_core::{Device, Stream, device};

use super::attended;
use super::error::Fault;
use super::graph::{Attribute, Graph, Step, Target};
use super::model::Function;
use super::node::{Node, Outcome};
use super::value::Value;
use crate::limits::{MOST_DEPTH, MOST_ELEMENTS, MOST_STEPS};

/// One run of a model.
pub struct Run<'a> {
    functions: &'a [Function],
    steps: Cell<u64>,
    depth: Cell<usize>,
}

/// The values of a graph that runs.
pub struct Scope<'a> {
    values: HashMap<&'a str, Value>,
    outer: Option<&'a Scope<'a>>,
    /// What the function around was called with.
    attributes: &'a [(String, Attribute)],
}

impl<'a> Scope<'a> {
    fn get(&self, name: &str) -> Option<&Value> {
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some(value) = here.values.get(name) {
                return Some(value);
            }
            scope = here.outer;
        }
        None
    }

    /// The attribute that the function around was called with.
    pub fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }
}

impl<'a> Run<'a> {
    pub fn new(functions: &'a [Function]) -> Self {
        Run { functions, steps: Cell::new(0), depth: Cell::new(0) }
    }

    /// Runs a model's graph; `replaced` takes the place of initializers.
    pub fn main(
        &self,
        graph: &Graph,
        inputs: Vec<Value>,
        replaced: HashMap<&str, Value>,
    ) -> Outcome {
        let mut scope = self.scope(graph, inputs, None)?;
        for (name, value) in replaced {
            if let Some(held) = scope.values.get_mut(name) {
                *held = value;
            }
        }
        self.within(graph, scope)
    }

    /// Runs a graph with values for its inputs in order.
    pub fn graph(&self, graph: &Graph, inputs: Vec<Value>, outer: Option<&Scope<'_>>) -> Outcome {
        self.within(graph, self.scope(graph, inputs, outer)?)
    }

    fn scope<'g>(
        &self,
        graph: &'g Graph,
        inputs: Vec<Value>,
        outer: Option<&'g Scope<'g>>,
    ) -> Result<Scope<'g>, Fault> {
        if inputs.len() != graph.inputs.len() {
            let (want, have) = (graph.inputs.len(), inputs.len());
            return Err(Fault::invalid(format!("the graph takes {want} inputs, not {have}")));
        }
        let mut values: HashMap<&str, Value> =
            graph.initializers.iter().map(|(n, t)| (n.as_str(), t.clone().into())).collect();
        values.extend(graph.inputs.iter().map(|p| p.name.as_str()).zip(inputs));
        let attributes = outer.map_or(&[][..], |s| s.attributes);
        Ok(Scope { values, outer, attributes })
    }

    /// Runs a function's body with the attributes of its call.
    fn function(
        &self,
        function: &Function,
        inputs: Vec<Option<Value>>,
        attributes: &[(String, Attribute)],
    ) -> Outcome {
        let ports = function.graph.inputs.iter().map(|p| p.name.as_str());
        let given = ports.zip(inputs).filter_map(|(name, value)| Some((name, value?)));
        let scope = Scope { values: given.collect(), outer: None, attributes };
        self.within(&function.graph, scope)
    }

    fn within<'g>(&self, graph: &'g Graph, mut scope: Scope<'g>) -> Outcome {
        if self.depth.get() >= MOST_DEPTH {
            return Err(Fault::invalid(format!("graphs lie in each other over {MOST_DEPTH} deep")));
        }
        self.depth.set(self.depth.get() + 1);
        let out = self.steps(graph, &mut scope);
        self.depth.set(self.depth.get() - 1);
        out
    }

    fn steps<'g>(&self, graph: &'g Graph, scope: &mut Scope<'g>) -> Outcome {
        for step in &graph.steps {
            let outputs = self.step(step, scope).map_err(|fault| fault.within(step.label()))?;
            for (name, value) in step.outputs.iter().zip(outputs) {
                scope.values.insert(name, value);
            }
            for name in &step.drops {
                scope.values.remove(name.as_str());
            }
        }
        let found = |name: &str| {
            let missing = || Fault::invalid(format!("the output '{name}' is made by no node"));
            scope.get(name).cloned().ok_or_else(missing)
        };
        graph.outputs.iter().map(|port| found(&port.name)).collect()
    }

    fn step(&self, step: &Step, scope: &Scope<'_>) -> Outcome {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MOST_STEPS {
            return Err(Fault::invalid(format!("the model runs over {MOST_STEPS} nodes")));
        }
        let input = |name: &String| match name.as_str() {
            "" => Ok(None),
            // An input of a function that its call left out is missing here, too.
            name => match scope.get(name) {
                Some(value) => Ok(Some(value.clone())),
                None if scope.outer.is_none() && self.depth.get() > 1 => Ok(None),
                None => Err(Fault::invalid(format!("its input '{name}' is made by no node"))),
            },
        };
        let inputs = step.inputs.iter().map(input).collect::<Result<Vec<_>, _>>()?;
        let mut outputs = match step.target {
            Target::Operator(apply) => self.operator(step, inputs, scope, apply)?,
            Target::Function(index) => {
                let function = &self.functions[index];
                let attributes = called_with(step, function, scope);
                self.function(function, inputs, &attributes)?
            }
        };
        if outputs.len() < step.outputs.iter().rposition(|n| !n.is_empty()).map_or(0, |i| i + 1) {
            let (have, want) = (outputs.len(), step.outputs.len());
            return Err(Fault::invalid(format!("it has {want} outputs, the operator {have}")));
        }
        outputs.truncate(step.outputs.len());
        for value in &outputs {
            if let Value::Tensor(tensor) = value
                && tensor.array.aval().shape.size() > MOST_ELEMENTS
            {
                let aval = tensor.array.aval();
                return Err(Fault::invalid(format!("its result {aval} is too large")));
            }
        }
        Ok(outputs)
    }

    /// Runs an operator: on the CPU, where all that it reads is small and hangs on sizes and
    /// constants alone.
    fn operator(
        &self,
        step: &Step,
        inputs: Vec<Option<Value>>,
        scope: &Scope<'_>,
        apply: super::table::Apply,
    ) -> Outcome {
        let sizes = matches!(step.op_type.as_str(), "Shape" | "Size");
        let folds = sizes || folds(step, &inputs);
        let node = Node { step, inputs, scope, run: self };
        if !folds {
            if let Some(joined) = attended::product(step, &node.inputs)? {
                return Ok(joined);
            }
            let mut outputs = apply(&node)?;
            attended::note(step, &node.inputs, &mut outputs)?;
            return Ok(outputs);
        }
        let mut outputs = device::with_stream(Stream::of(Device::CPU), || apply(&node))?;
        outputs.iter_mut().for_each(Value::fold);
        Ok(outputs)
    }
}

/// Whether a step depends on sizes and constants alone.
fn folds(step: &Step, inputs: &[Option<Value>]) -> bool {
    let random = ["RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"];
    let random = random.contains(&step.op_type.as_str())
        || matches!(step.op_type.as_str(), "Bernoulli" | "Multinomial" | "Dropout");
    let graphs = step.attributes.iter().any(|(_, a)| matches!(a, Attribute::Graph(_)));
    let constant = match step.op_type.as_str() {
        "Constant" => step.attributes.iter().all(|(_, a)| match a {
            Attribute::Tensor(tensor) => tensor.folded,
            _ => true,
        }),
        _ => !inputs.is_empty(),
    };
    !random && !graphs && constant && inputs.iter().flatten().all(Value::is_folded)
}

/// The attributes of a call of a function, with the function's defaults.
fn called_with(step: &Step, function: &Function, scope: &Scope<'_>) -> Vec<(String, Attribute)> {
    let mut out: Vec<(String, Attribute)> = Vec::new();
    for (name, value) in &step.attributes {
        let value = match value {
            Attribute::Reference(outer) => scope.attribute(outer).cloned(),
            value => Some(value.clone()),
        };
        out.extend(value.map(|value| (name.clone(), value)));
    }
    for (name, value) in &function.defaults {
        if !out.iter().any(|(n, _)| n == name) {
            out.push((name.clone(), value.clone()));
        }
    }
    out
}
