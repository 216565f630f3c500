//! Running a program: each operation records its own, in order.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use cupola_core::{Array, Device, Stream, device, ops};

use super::node::{Node, Outcome};
use super::program::{Block, Output, Source, Step};
use super::table;
use super::value::Value;
use crate::error::Fault;
use crate::limits::{MOST_DEPTH, MOST_ELEMENTS, MOST_STEPS};

/// One run of a function.
#[derive(Default)]
pub struct Run {
    steps: Cell<u64>,
    depth: Cell<usize>,
    /// What the states hold by now.
    pub states: RefCell<HashMap<String, Array>>,
    /// What takes the place of constants.
    pub replaced: HashMap<String, Array>,
}

/// The values of a block that runs.
pub struct Scope<'a> {
    values: HashMap<&'a str, Value>,
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
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
}

impl Run {
    /// Runs a block with values for its inputs in order.
    pub fn block(&self, block: &Block, inputs: Vec<Value>, outer: Option<&Scope<'_>>) -> Outcome {
        if inputs.len() != block.inputs.len() {
            let (want, have) = (block.inputs.len(), inputs.len());
            return Err(Fault::invalid(format!("the block takes {want} inputs, not {have}")));
        }
        if self.depth.get() >= MOST_DEPTH {
            return Err(Fault::invalid(format!("blocks lie in each other over {MOST_DEPTH} deep")));
        }
        let values = block.inputs.iter().map(String::as_str).zip(inputs).collect();
        self.depth.set(self.depth.get() + 1);
        let out = self.within(block, Scope { values, outer });
        self.depth.set(self.depth.get() - 1);
        out
    }

    fn within<'b>(&self, block: &'b Block, mut scope: Scope<'b>) -> Outcome {
        for step in &block.steps {
            let outputs = self.step(step, &scope).map_err(|fault| fault.within(step.label()))?;
            for (output, value) in step.outputs.iter().zip(outputs) {
                scope.values.insert(&output.name, value);
            }
            for name in &step.drops {
                scope.values.remove(name.as_str());
            }
        }
        let found = |name: &String| {
            let missing = || Fault::invalid(format!("the output '{name}' is made by no operation"));
            scope.get(name).cloned().ok_or_else(missing)
        };
        block.outputs.iter().map(found).collect()
    }

    fn step(&self, step: &Step, scope: &Scope<'_>) -> Outcome {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MOST_STEPS {
            return Err(Fault::invalid(format!("the program runs over {MOST_STEPS} operations")));
        }
        let value = |source: &Source| match source {
            Source::Constant(value) => Ok(value.clone()),
            Source::Name(name) => {
                let missing = || Fault::invalid(format!("'{name}' is made by no operation"));
                scope.get(name).cloned().ok_or_else(missing)
            }
        };
        let mut arguments = Vec::with_capacity(step.arguments.len());
        for (name, sources) in &step.arguments {
            let values = sources.iter().map(value).collect::<Result<Vec<_>, _>>()?;
            arguments.push((name.as_str(), values));
        }
        let mut outputs = match self.replacement(step) {
            Some(array) => vec![array.into()],
            None => self.operator(Node { step, arguments, scope, run: self })?,
        };
        if outputs.len() < step.outputs.len() {
            let (have, want) = (outputs.len(), step.outputs.len());
            return Err(Fault::invalid(format!("it has {want} outputs, the operator {have}")));
        }
        outputs.truncate(step.outputs.len());
        for (value, output) in outputs.iter_mut().zip(&step.outputs) {
            fit(value, output)?;
        }
        Ok(outputs)
    }

    fn replacement(&self, step: &Step) -> Option<Array> {
        match step.op.as_str() {
            "const" => self.replaced.get(&step.outputs.first()?.name).cloned(),
            _ => None,
        }
    }

    /// Runs an operator: on the CPU, where all that it reads is small and hangs on sizes and constants
    /// alone.
    fn operator(&self, node: Node<'_>) -> Outcome {
        let step = node.step;
        let known = node.arguments.iter().flat_map(|(_, values)| values).all(Value::is_folded);
        let pure = step.blocks.is_empty() && !table::is_random(&step.op) && step.op != "const";
        if !(step.op == "shape" || pure && known) {
            return (step.apply)(&node);
        }
        let mut outputs = device::with_stream(Stream::of(Device::CPU), || (step.apply)(&node))?;
        outputs.iter_mut().for_each(Value::fold);
        Ok(outputs)
    }
}

/// Gives a result the dtype that the program says, and checks its shape.
fn fit(value: &mut Value, output: &Output) -> Result<(), Fault> {
    let Value::Tensor(tensor) = value else { return Ok(()) };
    let shape = tensor.array.aval().shape.clone();
    if shape.size() > MOST_ELEMENTS {
        return Err(Fault::invalid(format!("its result {} is too large", tensor.array.aval())));
    }
    if let Some(sizes) = &output.sizes {
        let fits = sizes.len() == shape.rank()
            && sizes.iter().zip(shape.iter()).all(|(want, have)| want.is_none_or(|w| w == *have));
        if !fits {
            let shown = |size: &Option<usize>| size.map_or("?".to_owned(), |size| size.to_string());
            let want = sizes.iter().map(shown).collect::<Vec<_>>().join(", ");
            let name = &output.name;
            return Err(Fault::invalid(format!("its output '{name}' is {shape}, not [{want}]")));
        }
    }
    if let Some(element) = output.element
        && element.dtype != tensor.array.dtype()
    {
        let cast = || ops::astype(&tensor.array, element.dtype);
        tensor.array = match tensor.folded {
            true => device::with_stream(Stream::of(Device::CPU), cast)?,
            false => cast()?,
        };
    }
    Ok(())
}
