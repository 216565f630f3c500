//! Functions that are made of primitives, as programs call them: what a device makes of all their steps at once beside
//! each step as plain loops, elements beside formulas, derivatives and batches. A backend knows none of them;
//! `devices --ops` shows where each runs.

mod arrays;
mod matrices;
mod networks;
mod pointwise;
mod random;
mod signal;
mod statistics;

use std::rc::Rc;
use std::sync::Arc;

use cupola_core::graph::{Graph, Traced};
use cupola_core::prim::{Call, Op};
use cupola_core::{Array, Aval, DType, Result};

use crate::host::Host;
use crate::sample::{Input, Sample};

/// Every function, in one dtype on each device, and in all that it takes where kernels are made at once.
pub fn samples() -> Vec<Sample> {
    all().into_iter().flat_map(Function::samples).collect()
}

fn all() -> Vec<Function> {
    let files = [
        pointwise::functions(),
        arrays::functions(),
        statistics::functions(),
        signal::functions(),
        matrices::functions(),
        networks::functions(),
        random::functions(),
    ];
    files.into_iter().flatten().collect()
}

/// What a function does with arrays.
type Body = dyn Fn(&[Array]) -> Result<Vec<Array>>;

/// A function with inputs.
#[derive(Clone)]
struct Function {
    name: &'static str,
    /// What is said of a case, where there are several.
    case: &'static str,
    inputs: Rc<[Input]>,
    body: Rc<Body>,
    takes: fn(DType) -> bool,
    formula: Option<fn(&[f64]) -> f64>,
    smooth: bool,
}

impl Function {
    /// One of floats that gives one array.
    fn new(
        name: &'static str,
        inputs: impl Into<Rc<[Input]>>,
        body: impl Fn(&[Array]) -> Result<Array> + 'static,
    ) -> Function {
        Function::several(name, inputs, move |x| Ok(vec![body(x)?]))
    }

    /// One of floats that gives several arrays.
    fn several(
        name: &'static str,
        inputs: impl Into<Rc<[Input]>>,
        body: impl Fn(&[Array]) -> Result<Vec<Array>> + 'static,
    ) -> Function {
        Function {
            name,
            case: "",
            inputs: inputs.into(),
            body: Rc::new(body),
            takes: DType::is_float,
            formula: None,
            smooth: false,
        }
    }

    /// The same, of which more is said.
    fn case(self, case: &'static str) -> Function {
        Function { case, ..self }
    }

    /// The same, in these dtypes.
    fn takes(self, takes: fn(DType) -> bool) -> Function {
        Function { takes, ..self }
    }

    /// The same, which is differentiable at these inputs.
    fn smooth(self) -> Function {
        Function { smooth: true, ..self }
    }

    /// The same, whose elements are these of the inputs' elements.
    fn is(self, formula: fn(&[f64]) -> f64) -> Function {
        Function { formula: Some(formula), ..self }
    }

    /// The dtype in which it runs on each device.
    fn first_dtype(&self) -> Option<DType> {
        [DType::F32, DType::C64, DType::I32].into_iter().find(|&dtype| (self.takes)(dtype))
    }

    fn hosts(&self, dtype: DType) -> Vec<Host> {
        self.inputs.iter().enumerate().map(|(n, input)| input.host(n, dtype)).collect()
    }

    /// What it records in `dtype`.
    fn trace(&self, dtype: DType) -> Result<Traced> {
        let avals: Vec<Aval> = self.hosts(dtype).into_iter().map(|host| host.aval).collect();
        Graph::trace(&avals, |x| (self.body)(x))
    }

    /// A composite of what it records, and what it is given: arrays that it made itself, too.
    fn sample(&self) -> Sample {
        let (of_op, of_inputs) = (self.clone(), self.clone());
        let op = move |dtype| {
            // Where it records nothing the op does not take its inputs, which the value check will show.
            let graph = of_op.trace(dtype).map(|traced| traced.graph).unwrap_or_default();
            Op::from(Call::new(of_op.name, Arc::new(graph), None))
        };
        let inputs = move |dtype| {
            let mut hosts = of_inputs.hosts(dtype);
            let captures = of_inputs.trace(dtype).map(|traced| traced.captures).unwrap_or_default();
            hosts.extend(captures.iter().filter_map(|capture| Host::of_array(capture).ok()));
            hosts
        };
        let name = match self.case {
            "" => self.name.to_owned(),
            case => format!("{}, {case}", self.name),
        };
        let mut sample = Sample::of(name, op, inputs);
        (sample.smooth, sample.formula) = (self.smooth, self.formula);
        sample
    }

    /// One in the first dtype, and one in the others, if there are any.
    fn samples(self) -> impl Iterator<Item = Sample> {
        let (takes, first) = (self.takes, self.first_dtype());
        let is_other = move |dtype| takes(dtype) && Some(dtype) != first;
        let others = DType::ALL.into_iter().any(is_other).then(|| {
            let sample = self.sample().only(is_other);
            let name = format!("{}, other dtypes", sample.name);
            sample.named(name).where_kernels_are_cheap()
        });
        [self.sample().only(move |dtype| Some(dtype) == first)].into_iter().chain(others)
    }
}

/// Numbers of all kinds but bools.
fn numbers(dtype: DType) -> bool {
    dtype != DType::Bool
}

/// Bools and real numbers.
fn reals(dtype: DType) -> bool {
    !dtype.is_complex()
}

/// Floats of the widths that factorizations have.
fn wide(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}

/// The same, and complex numbers.
fn wide_or_complex(dtype: DType) -> bool {
    wide(dtype) || dtype == DType::C64
}

/// Every dtype.
fn any(_: DType) -> bool {
    true
}
