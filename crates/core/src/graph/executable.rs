//! A function of a program on a device: feeds are bound by name, checked, and run.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Graph;
use super::build::{Placeholder, Program, Signature, Size, Sizes, Traced};
use crate::array::{Array, lock};
use crate::device::{Device, Stream, with_stream};
use crate::error::{Error, Result};
use crate::eval::{async_eval, wait};
use crate::generator;
use crate::plan::{self, Explanation};
use crate::shape::Aval;

/// How a function is made ready.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which function; the first, where it is not said.
    pub function: Option<String>,
    /// Bindings of the names of sizes that it is traced for now; for others it is at their first run.
    pub sizes: Vec<BTreeMap<String, usize>>,
}

/// The graph of a function of a program, for certain sizes.
pub struct Definition {
    /// Inputs: placeholders, the variables that it reads, the state of the random generator, captures. Outputs: results,
    /// what variables become, the state of the generator where it draws.
    pub graph: Arc<Graph>,
    /// The arrays that it uses besides.
    pub captures: Vec<Array>,
    /// The variables that it reads, by number.
    pub reads: Vec<usize>,
    /// The variables that it changes, by number.
    pub writes: Vec<usize>,
    /// Whether it draws random numbers.
    pub draws: bool,
}

/// What a function gave, by name.
pub type Results = BTreeMap<String, Array>;

/// A function of a [`Program`] on a device. Clones, and the program's other functions, share its variables.
#[derive(Clone)]
pub struct Executable {
    program: Program,
    function: usize,
    device: Device,
}

/// A run that is recorded: its results, and the variables that it changed with what they were.
struct Recorded {
    results: Results,
    changed: Vec<(usize, Array, Array)>,
}

impl Recorded {
    fn arrays(&self) -> Vec<Array> {
        let changed = self.changed.iter().map(|(_, _, new)| new);
        self.results.values().chain(changed).cloned().collect()
    }
}

impl Executable {
    pub(super) fn new(program: Program, device: Device, options: &Options) -> Result<Self> {
        let function = match &options.function {
            Some(name) => index_of(&program, name)?,
            None => 0,
        };
        let executable = Executable { program, function, device };
        for sizes in &options.sizes {
            executable.prepare(sizes)?;
        }
        Ok(executable)
    }

    /// Another function of the same program, on the same device.
    ///
    /// # Errors
    /// Where there is none of this name.
    pub fn function(&self, name: &str) -> Result<Executable> {
        Ok(Executable { function: index_of(&self.program, name)?, ..self.clone() })
    }

    /// The program, which has the variables.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What has to be fed.
    pub fn placeholders(&self) -> &[Placeholder] {
        &self.signature().placeholders
    }

    /// The names of the results.
    pub fn outputs(&self) -> &[String] {
        &self.signature().outputs
    }

    /// The graph of the function for these sizes. For a name that is not bound a number stands in that many others
    /// divide.
    ///
    /// # Errors
    /// Where the program fails for these sizes.
    pub fn definition(&self, sizes: &BTreeMap<String, usize>) -> Result<Definition> {
        let sizes = sizes.iter().map(|(name, size)| (name.clone(), *size)).collect();
        let traced = self.program.0.trace(self.function, sizes)?;
        let Traced { call, captures, reads, writes, drawn } = traced;
        let draws = drawn.is_some();
        Ok(Definition { graph: call.body.clone(), captures, reads, writes, draws })
    }

    fn signature(&self) -> &Signature {
        &self.program.0.functions[self.function]
    }

    /// Traces the function for sizes that are known before anything is fed.
    fn prepare(&self, sizes: &BTreeMap<String, usize>) -> Result<()> {
        let number = |size: &Size| match size {
            Size::Known(size) => Ok(*size),
            Size::Named(name) => sizes.get(name).copied().ok_or_else(|| {
                Error::argument("graph", format!("options say no number for the size '{name}'"))
            }),
        };
        let aval = |p: &Placeholder| {
            let shape: Vec<usize> = p.sizes.iter().map(number).collect::<Result<_>>()?;
            Ok(Aval::new(shape, p.dtype))
        };
        let avals: Vec<Aval> = self.placeholders().iter().map(aval).collect::<Result<_>>()?;
        let sizes = sizes.iter().map(|(name, size)| (name.clone(), *size)).collect();
        self.program.0.traced(self.function, sizes, &avals).map(|_| ())
    }

    /// Runs the function and waits for its results. The variables that it assigns have changed then; where it
    /// fails they are as they were.
    ///
    /// # Errors
    /// Where a feed is missing, unknown, there twice, or of other sizes or another dtype than its placeholder,
    /// which the text names; and where the computation fails.
    pub fn run(&self, feeds: &[(&str, &Array)]) -> Result<Results> {
        let recorded = self.record(Stream::of(self.device), feeds)?;
        self.finish(recorded)
    }

    /// Runs the function, and calls `on_done` on another thread with its results or the error, also that of a
    /// feed. Runs of one program finish in the order of the calls.
    ///
    /// # Errors
    /// Where the system has no thread left; `on_done` is not called then.
    pub fn run_async(
        &self,
        feeds: &[(&str, &Array)],
        on_done: impl FnOnce(Result<Results>) + Send + 'static,
    ) -> Result<()> {
        let recorded = self.record(Stream::of(self.device), feeds);
        let own = self.clone();
        self.program.0.later(Box::new(move || {
            on_done(recorded.and_then(|recorded| own.finish(recorded)));
        }))
    }

    /// Gives the function to `stream` and returns at once. Reading a result waits for it, and gives the error
    /// of the computation.
    ///
    /// # Errors
    /// Where a feed does not fit, as in [`Executable::run`].
    pub fn encode(&self, stream: Stream, feeds: &[(&str, &Array)]) -> Result<Results> {
        let recorded = self.record(stream, feeds)?;
        async_eval(&recorded.arrays())?;
        Ok(recorded.results)
    }

    /// What a run with these feeds would run, once they are computed. No variable changes.
    ///
    /// # Errors
    /// Where a feed does not fit, as in [`Executable::run`].
    ///
    /// # Example
    /// ```
    /// use cupola_core::graph::{Options, Program, Size};
    /// use cupola_core::{DType, Device, ops};
    /// # if cupola_core::backend::backends().next().is_none() { return Ok(()) }
    /// let program = Program::new(|graph| {
    ///     let x = graph.placeholder("x", &[Size::Known(3)], DType::F32)?;
    ///     graph.function("double", &[("y", &(&x + &x))], &[])
    /// })?;
    /// let double = program.compile(Device::CPU, &Options::default())?;
    /// let plan = double.explain(&[("x", &ops::ones([3], DType::F32)?)])?;
    /// assert_eq!(plan.steps[0].fused, ["add"]);
    /// # Ok::<(), cupola_core::Error>(())
    /// ```
    pub fn explain(&self, feeds: &[(&str, &Array)]) -> Result<Explanation> {
        self.bind(feeds)?;
        let state = generator::state();
        let fed = feeds.iter().map(|(_, array)| (*array).clone());
        let variables = self.program.variables().into_iter().map(|(_, value)| value);
        wait(&fed.chain(variables).chain([state.clone()]).collect::<Vec<_>>())?;
        let recorded = self.record(Stream::of(self.device), feeds)?;
        generator::set_state(state);
        let explained = plan::explain(&recorded.arrays());
        self.undo(recorded);
        explained
    }

    fn finish(&self, recorded: Recorded) -> Result<Results> {
        let Err(error) = wait(&recorded.arrays()) else { return Ok(recorded.results) };
        self.undo(recorded);
        Err(error)
    }

    /// Gives variables what they were before a run, where nothing else has changed them since.
    fn undo(&self, recorded: Recorded) {
        let mut variables = lock(&self.program.0.variables);
        for (index, old, new) in recorded.changed {
            if variables[index].1.same(&new) {
                variables[index].1 = old;
            }
        }
    }

    /// Records the function, and puts what it assigns into the variables.
    fn record(&self, stream: Stream, feeds: &[(&str, &Array)]) -> Result<Recorded> {
        let (fed, sizes) = self.bind(feeds)?;
        let avals: Vec<Aval> = fed.iter().map(|a| a.aval().clone()).collect();
        let traced = self.program.0.traced(self.function, sizes, &avals)?;
        // Recording is quick: who reads the variables in between would lose a change.
        let mut variables = lock(&self.program.0.variables);
        let random = generator::state();
        let arguments: Vec<&Array> = fed
            .into_iter()
            .chain(traced.reads.iter().map(|&v| &variables[v].1))
            .chain([&random])
            .chain(&traced.captures)
            .collect();
        let (mut outputs, drawn) = with_stream(stream, || {
            let drawn = traced.drawn.as_ref().map(|drawn| drawn.record(&arguments));
            Ok((Array::apply_multi(traced.call.clone(), &arguments)?, drawn.transpose()?))
        })?;
        if let Some(state) = drawn {
            outputs.pop();
            generator::set_state(state);
        }
        let names = self.outputs();
        let changes = outputs.split_off(names.len());
        let mut changed = Vec::with_capacity(changes.len());
        for (&index, new) in traced.writes.iter().zip(changes) {
            let old = std::mem::replace(&mut variables[index].1, new.clone());
            changed.push((index, old, new));
        }
        Ok(Recorded { results: names.iter().cloned().zip(outputs).collect(), changed })
    }

    /// The feeds in the order of the placeholders, and the numbers that the names of sizes have.
    fn bind<'a>(&self, feeds: &[(&str, &'a Array)]) -> Result<(Vec<&'a Array>, Sizes)> {
        let wanted = self.placeholders();
        for (index, (name, _)) in feeds.iter().enumerate() {
            if !wanted.iter().any(|p| p.name == *name) {
                let names: Vec<&str> = wanted.iter().map(|p| p.name.as_str()).collect();
                let text = format!("feed '{name}': the function takes [{}]", names.join(", "));
                return Err(Error::argument("graph", text));
            }
            if feeds[..index].iter().any(|(other, _)| other == name) {
                return Err(Error::argument("graph", format!("feed '{name}' is there twice")));
            }
        }
        let mut bound: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        let mut fed = Vec::with_capacity(wanted.len());
        for placeholder in wanted {
            let name = placeholder.name.as_str();
            let Some((_, array)) = feeds.iter().find(|(n, _)| *n == name) else {
                let text = format!("feed '{name}' ({placeholder}) is missing");
                return Err(Error::argument("graph", text));
            };
            let aval = array.aval();
            let other = || format!("feed '{name}' is {aval}, its placeholder {placeholder}");
            if aval.dtype != placeholder.dtype {
                return Err(Error::dtype("graph", other()));
            }
            if aval.shape.rank() != placeholder.sizes.len() {
                return Err(Error::shape("graph", other()));
            }
            for (&have, want) in aval.shape.iter().zip(&placeholder.sizes) {
                match want {
                    Size::Known(want) if *want != have => {
                        return Err(Error::shape("graph", other()));
                    }
                    Size::Known(_) => {}
                    Size::Named(size) => {
                        let (first, of) = *bound.entry(size).or_insert((have, name));
                        if first != have {
                            let text =
                                format!("{}, but '{size}' is {first} in feed '{of}'", other());
                            return Err(Error::shape("graph", text));
                        }
                    }
                }
            }
            fed.push(*array);
        }
        Ok((fed, bound.into_iter().map(|(n, (size, _))| (n.to_owned(), size)).collect()))
    }
}

fn index_of(program: &Program, name: &str) -> Result<usize> {
    program.functions().position(|f| f == name).ok_or_else(|| {
        let names: Vec<&str> = program.functions().collect();
        let text = format!("there is no function '{name}' among [{}]", names.join(", "));
        Error::argument("graph", text)
    })
}
