//! Building graphs by name: placeholders, variables, and functions that share them.
//!
//! A [`Program`] is a closure that writes its functions down with a [`Builder`]. What the builder gives are
//! tracers, so every function of [`ops`](crate::ops) works on them as it is. Sizes may have names: the closure
//! runs once more for each binding of these, so that it may depend on sizes as any code does.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::mpsc::{SendError, Sender, channel};
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use super::trace::{handle, tape};
use super::{Drawn, Executable, Graph, Options};
use crate::array::scope::{Scope, ScopeGuard};
use crate::array::{Array, lock};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::fork;
use crate::generator;
use crate::precision::matmul_precision;
use crate::prim::Call;
use crate::shape::{Aval, Shape};
use crate::transform::{TRACE_BYTES, gradients_of};

/// The size of a placeholder's axis: a number, or a name that is bound at each run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Size {
    /// Always this.
    Known(usize),
    /// One number in all placeholders of a run.
    Named(String),
}

impl From<usize> for Size {
    fn from(size: usize) -> Self {
        Size::Known(size)
    }
}

impl From<&str> for Size {
    fn from(name: &str) -> Self {
        Size::Named(name.to_owned())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Known(size) => size.fmt(f),
            Size::Named(name) => name.fmt(f),
        }
    }
}

/// What has to be fed under a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placeholder {
    /// Its name.
    pub name: String,
    /// Its sizes.
    pub sizes: Vec<Size>,
    /// The dtype of its elements.
    pub dtype: DType,
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(Size::to_string).collect();
        write!(f, "{}[{}]", self.dtype, sizes.join(", "))
    }
}

/// Numbers for names of sizes.
pub(super) type Sizes = HashMap<String, usize>;

type Define = dyn Fn(&Builder) -> Result<()> + Send + Sync;

/// Functions that share variables; see [`Program::new`].
#[derive(Clone)]
pub struct Program(pub(super) Arc<Shared>);

pub(super) struct Shared {
    define: Box<Define>,
    /// By name, in the order in which they were made.
    pub variables: Mutex<Vec<(String, Array)>>,
    pub functions: Vec<Signature>,
    traces: Mutex<Vec<(TraceKey, Arc<Traced>)>>,
    /// The thread that runs what nobody waits for, and the process that it is of.
    worker: Mutex<Option<(u32, Sender<Task>)>>,
}

/// What the thread of a program is given to do.
pub(super) type Task = Box<dyn FnOnce() + Send>;

/// What a function takes and gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Signature {
    pub name: String,
    pub placeholders: Vec<Placeholder>,
    pub outputs: Vec<String>,
}

/// The function, the sizes of its placeholders' axes in order, and what else a trace depends on.
type TraceKey = (usize, Vec<usize>, u64);

/// A function for certain sizes.
pub(super) struct Traced {
    /// Inputs: placeholders, variables, random state, captures. Outputs: results, assigned variables, random
    /// state where it changes.
    pub call: Arc<Call>,
    pub captures: Vec<Array>,
    /// Which variables it reads.
    pub reads: Vec<usize>,
    /// Which variables it assigns.
    pub writes: Vec<usize>,
    /// What it leaves of the random state, where that changes: also where the rest fails.
    pub drawn: Option<Drawn>,
}

/// Writes the functions of a [`Program`] down.
pub struct Builder {
    scope: ScopeGuard,
    sizes: RefCell<Sizes>,
    placeholders: RefCell<Vec<(Placeholder, Array)>>,
    /// What stands for each variable.
    variables: RefCell<Vec<(String, Array)>>,
    /// The variables' values: those that are there, and those made now.
    values: RefCell<Vec<(String, Array)>>,
    functions: RefCell<Vec<Function>>,
    /// Whether names of sizes may get stand-ins.
    is_first: bool,
    stands_in: Cell<usize>,
}

struct Function {
    name: String,
    outputs: Vec<(String, Array)>,
    /// Variables, by index, and what they become.
    assigned: Vec<(usize, Array)>,
}

impl Function {
    /// All that it computes.
    fn results(&self) -> Vec<Array> {
        let assigned = self.assigned.iter().map(|(_, a)| a);
        self.outputs.iter().map(|(_, a)| a).chain(assigned).cloned().collect()
    }
}

impl Program {
    /// The functions that `define` writes down. It is called now, with numbers standing in for sizes that have
    /// names, so what does not fit is an error here; and once for each binding of the names later.
    ///
    /// # Errors
    /// Those of `define`, named by [`Builder::node`]; a program without functions.
    ///
    /// # Example
    /// ```
    /// use cupola::{Array, DType, Device, graph::{Options, Program}, ops};
    /// let line = Program::new(|g| {
    ///     let x = g.placeholder("x", &["batch".into(), 2.into()], DType::F32)?;
    ///     let w = g.variable("w", || ops::ones([2], DType::F32))?;
    ///     let y = g.node("product", || ops::matmul(&x, &w))?;
    ///     g.function("predict", &[("y", &y)], &[])?;
    ///     let loss = ops::mean(&ops::square(&y)?, (), false)?;
    ///     let slope = g.gradients(&loss, &[&w])?.remove(0);
    ///     g.function("train", &[("loss", &loss)], &[(&w, &(&w - slope * 0.1))])
    /// })?;
    /// let predict = line.compile(Device::CPU, &Options::default())?;
    /// let x = Array::from_slice(&[1.0f32, 2.0], [1, 2])?;
    /// assert_eq!(predict.run(&[("x", &x)])?["y"].to_vec::<f32>()?, [3.0]);
    /// let train = predict.function("train")?;
    /// assert_eq!(train.run(&[("x", &x)])?["loss"].item::<f32>()?, 9.0);
    /// assert!(train.run(&[("x", &x)])?["loss"].item::<f32>()? < 9.0);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn new(define: impl Fn(&Builder) -> Result<()> + Send + Sync + 'static) -> Result<Self> {
        let builder = Builder::new(Sizes::new(), Vec::new(), true);
        let (defined, _) = generator::with_state(generator::key(0), || define(&builder));
        defined?;
        let functions = builder.signatures();
        if functions.is_empty() {
            return Err(Error::argument("graph", "no function was written down"));
        }
        Ok(Program(Arc::new(Shared {
            define: Box::new(define),
            variables: Mutex::new(builder.values.into_inner()),
            functions,
            traces: Mutex::default(),
            worker: Mutex::default(),
        })))
    }

    /// The names of the functions, in the order in which they were written down.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.0.functions.iter().map(|f| f.name.as_str())
    }

    /// The variables by name, in the order in which they were made.
    pub fn variables(&self) -> Vec<(String, Array)> {
        lock(&self.0.variables).clone()
    }

    /// Gives a variable another value of its shape and dtype.
    ///
    /// # Errors
    /// Where there is no such variable, or the value is of another shape or dtype.
    pub fn set_variable(&self, name: &str, value: Array) -> Result<()> {
        let mut variables = lock(&self.0.variables);
        let Some((_, held)) = variables.iter_mut().find(|(n, _)| n == name) else {
            return Err(Error::argument("graph", format!("there is no variable '{name}'")));
        };
        if held.aval() != value.aval() {
            let (have, want) = (value.aval(), held.aval());
            return Err(Error::shape("graph", format!("variable '{name}' is {want}, not {have}")));
        }
        *held = value;
        Ok(())
    }

    /// The first function, or the one that `options` name, to be run on `device`.
    ///
    /// # Errors
    /// Where there is no such function, or it cannot be traced for the sizes that `options` give.
    pub fn compile(&self, device: Device, options: &Options) -> Result<Executable> {
        Executable::new(self.clone(), device, options)
    }
}

impl Shared {
    /// Hands `task` to the program's thread, which does one after the other. It ends with the program.
    pub fn later(&self, mut task: Task) -> Result<()> {
        let mut worker = lock(&self.worker);
        if let Some((generation, sender)) = worker.as_ref()
            && *generation == fork::generation()
        {
            match sender.send(task) {
                Ok(()) => return Ok(()),
                // A handler that panicked has ended its thread.
                Err(SendError(given)) => task = given,
            }
        }
        let (sender, receiver) = channel::<Task>();
        let work = move || receiver.into_iter().for_each(|task| task());
        let started = std::thread::Builder::new().name("graph".into()).spawn(work);
        let failed = |error: &dyn fmt::Display| Error::Device(format!("run_async: {error}"));
        started.map_err(|error| failed(&error))?;
        sender.send(task).map_err(|error| failed(&error))?;
        // The thread of a process that forked was not copied; what belongs to it is left as it is.
        std::mem::forget(worker.replace((fork::generation(), sender)));
        Ok(())
    }

    /// The function at `index` for placeholders of these sizes.
    pub fn traced(&self, index: usize, sizes: Sizes, avals: &[Aval]) -> Result<Arc<Traced>> {
        let all = avals.iter().flat_map(|aval| aval.shape.iter().copied());
        let key = (index, all.collect(), matmul_precision() as u64);
        {
            let mut traces = lock(&self.traces);
            if let Some(at) = traces.iter().rposition(|(k, _)| *k == key) {
                traces[at..].rotate_left(1);
                return Ok(traces[traces.len() - 1].1.clone());
            }
        }
        let traced = Arc::new(self.trace(index, sizes)?);
        let mut traces = lock(&self.traces);
        traces.push((key, traced.clone()));
        let mut bytes: usize = traces.iter().map(|(_, t)| t.call.body.memory()).sum();
        while bytes > TRACE_BYTES && traces.len() > 1 {
            bytes -= traces.remove(0).1.call.body.memory();
        }
        Ok(traced)
    }

    pub fn trace(&self, index: usize, sizes: Sizes) -> Result<Traced> {
        let builder = Builder::new(sizes, lock(&self.variables).clone(), false);
        let aval = generator::state().aval().clone();
        let key = Array::placeholder(aval, &builder.scope.0);
        let (defined, random) = generator::with_state(key.clone(), || (self.define)(&builder));
        defined?;
        if builder.signatures() != self.functions {
            return Err(Error::argument(
                "graph",
                "the program wrote other functions down than at first",
            ));
        }
        let function = &builder.functions.borrow()[index];
        let placeholders = builder.placeholders.borrow();
        let variables = builder.variables.borrow();
        let signature = &self.functions[index];
        let fed = placeholders.iter().filter(|(p, _)| signature.placeholders.contains(p));
        let results = function.results();
        let reached = builder.reached(&results);
        let reads: Vec<usize> = (0..variables.len())
            .filter(|&v| reached.contains(&handle(&variables[v].1).0))
            .collect();
        let random = Some(random).filter(|_| reached.contains(&handle(&key).0));
        let inputs: Vec<Array> = fed
            .map(|(_, a)| a.clone())
            .chain(reads.iter().map(|&v| variables[v].1.clone()))
            .chain([key])
            .collect();
        let drawn = random.clone().map(|state| Drawn::new(&inputs, state, &builder.scope.0));
        let drawn = drawn.transpose()?;
        let outputs: Vec<Array> = results.into_iter().chain(random).collect();
        let (graph, captures) = Graph::from_trace(&inputs, &outputs, &builder.scope.0)?;
        let writes = function.assigned.iter().map(|(v, _)| *v).collect();
        let call = Call::new("graph", Arc::new(graph), None);
        Ok(Traced { call, captures, reads, writes, drawn })
    }
}

impl Builder {
    fn new(sizes: Sizes, values: Vec<(String, Array)>, is_first: bool) -> Builder {
        Builder {
            scope: Scope::enter("graph"),
            sizes: RefCell::new(sizes),
            placeholders: RefCell::default(),
            variables: RefCell::default(),
            values: RefCell::new(values),
            functions: RefCell::default(),
            is_first,
            stands_in: Cell::new(0),
        }
    }

    /// What is fed under `name` at each run. A size with a name is the same number wherever the name stands.
    ///
    /// # Errors
    /// Where the name is taken.
    pub fn placeholder(&self, name: &str, sizes: &[Size], dtype: DType) -> Result<Array> {
        let mut placeholders = self.placeholders.borrow_mut();
        if placeholders.iter().any(|(p, _)| p.name == name) {
            return Err(twice("placeholder", name));
        }
        let shape: SmallVec<[usize; 4]> = sizes.iter().map(|size| self.number(size)).collect();
        let aval = Aval { shape: Shape::from(&shape[..]), dtype };
        let array = Array::placeholder(aval, &self.scope.0);
        let known = Placeholder { name: name.to_owned(), sizes: sizes.to_vec(), dtype };
        placeholders.push((known, array.clone()));
        Ok(array)
    }

    /// The number that a size is in this trace. One that nothing is known of, as in the first trace, is a
    /// number that many others divide.
    fn number(&self, size: &Size) -> usize {
        match size {
            Size::Known(size) => *size,
            Size::Named(name) => {
                *self.sizes.borrow_mut().entry(name.clone()).or_insert_with(|| {
                    self.stands_in.set(self.stands_in.get() + 1);
                    5040 * self.stands_in.get()
                })
            }
        }
    }

    /// An array that is a part of the program, and never changes.
    pub fn constant(&self, value: Array) -> Array {
        value
    }

    /// An array that the functions share and may change. `initial` is called once, when the program is made.
    ///
    /// # Errors
    /// Where the name is taken, or `initial` fails or gives what depends on a placeholder.
    pub fn variable(&self, name: &str, initial: impl FnOnce() -> Result<Array>) -> Result<Array> {
        if self.variables.borrow().iter().any(|(n, _)| n == name) {
            return Err(twice("variable", name));
        }
        let known = self.values.borrow().iter().find(|(n, _)| n == name).map(|(_, a)| a.clone());
        let value = match known {
            Some(value) => value,
            None if self.is_first => {
                let value = generator::untraced(initial).map_err(|e| named(name, e))?;
                if value.node.scopes.as_ref().is_some_and(|s| s.contains(&self.scope.0)) {
                    let text = format!("variable '{name}' begins as what depends on a placeholder");
                    return Err(Error::argument("graph", text));
                }
                self.values.borrow_mut().push((name.to_owned(), value.clone()));
                value
            }
            None => {
                let text = format!("variable '{name}' was not there when the program was made");
                return Err(Error::argument("graph", text));
            }
        };
        let array = Array::placeholder(value.aval().clone(), &self.scope.0);
        self.variables.borrow_mut().push((name.to_owned(), array.clone()));
        Ok(array)
    }

    /// What `f` gives. Its error gets the name in front; names may lie in each other.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn node<R>(&self, name: &str, f: impl FnOnce() -> Result<R>) -> Result<R> {
        f().map_err(|error| named(name, error))
    }

    /// The gradients of `loss`, one real number, by `variables`: what of this program it was made from.
    ///
    /// # Errors
    /// Where the loss is not one real number, or an op on the way has no derivative.
    pub fn gradients(&self, loss: &Array, variables: &[&Array]) -> Result<Vec<Array>> {
        gradients_of(loss, variables, &self.scope.0)
    }

    /// A function: what it gives, by name, and which variables it changes to what. It takes the placeholders
    /// that these depend on.
    ///
    /// # Errors
    /// Where a name is taken, or what is assigned to is no variable, or is of another shape or dtype.
    pub fn function(
        &self,
        name: &str,
        outputs: &[(&str, &Array)],
        assigned: &[(&Array, &Array)],
    ) -> Result<()> {
        let mut functions = self.functions.borrow_mut();
        if functions.iter().any(|f| f.name == name) {
            return Err(twice("function", name));
        }
        for (index, (output, _)) in outputs.iter().enumerate() {
            if outputs[..index].iter().any(|(other, _)| other == output) {
                return Err(named(name, twice("output", output)));
            }
        }
        let variables = self.variables.borrow();
        let mut changes: Vec<(usize, Array)> = Vec::with_capacity(assigned.len());
        for (variable, value) in assigned {
            let Some(index) = variables.iter().position(|(_, a)| a.same(variable)) else {
                let text = "what is assigned to is no variable of this program";
                return Err(named(name, Error::argument("graph", text)));
            };
            if changes.iter().any(|(other, _)| *other == index) {
                return Err(named(name, twice("assignment", &variables[index].0)));
            }
            if variable.aval() != value.aval() {
                let (variable, want, have) = (&variables[index].0, variable.aval(), value.aval());
                let text = format!("variable '{variable}' is {want}, what it gets is {have}");
                return Err(named(name, Error::shape("graph", text)));
            }
            changes.push((index, (*value).clone()));
        }
        let outputs = outputs.iter().map(|&(n, a)| (n.to_owned(), a.clone())).collect();
        functions.push(Function { name: name.to_owned(), outputs, assigned: changes });
        Ok(())
    }

    /// The identities of the nodes that `results` are made from.
    fn reached(&self, results: &[Array]) -> HashSet<usize> {
        tape(results, &self.scope.0).iter().map(|(array, _)| handle(array).0).collect()
    }

    fn signatures(&self) -> Vec<Signature> {
        let placeholders = self.placeholders.borrow();
        let functions = self.functions.borrow();
        let signature = |f: &Function| {
            let reached = self.reached(&f.results());
            let is_fed = |(_, a): &&(Placeholder, Array)| reached.contains(&handle(a).0);
            Signature {
                name: f.name.clone(),
                placeholders: placeholders.iter().filter(is_fed).map(|(p, _)| p.clone()).collect(),
                outputs: f.outputs.iter().map(|(n, _)| n.clone()).collect(),
            }
        };
        functions.iter().map(signature).collect()
    }
}

fn named(node: &str, error: Error) -> Error {
    Error::Node { node: node.to_owned(), error: Arc::new(error) }
}

fn twice(what: &str, name: &str) -> Error {
    Error::argument("graph", format!("{what} '{name}' is there twice"))
}
