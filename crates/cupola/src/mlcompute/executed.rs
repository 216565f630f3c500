//! Graphs of layers, and inference graphs of them.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cupola_core::graph::{Builder, Options, Program, Results, Size};
use cupola_core::{Array, Device, Error, Result, generator, ops};

use super::layer::Given;
use super::{Held, Layer, Tensor};

/// A layer with the tensors that it takes and gives.
#[derive(Clone)]
pub(super) struct Record {
    pub layer: Layer,
    pub sources: Vec<Tensor>,
    pub results: Vec<Tensor>,
    pub is_updated: bool,
}

/// Layers, each applied to tensors that are fed, that other layers gave, or that hold data.
#[derive(Clone, Default)]
pub struct Graph {
    records: Vec<Record>,
    names: Vec<String>,
}

impl Graph {
    /// A graph without layers.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// The layers in the order in which they were added.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.records.iter().map(|record| &record.layer)
    }

    /// Applies a layer to tensors; gives the tensor that comes out, the first where there are several.
    ///
    /// # Errors
    /// Where the layer does not fit the tensors; the text names it.
    pub fn add_layer(&mut self, layer: &Layer, sources: &[&Tensor]) -> Result<Tensor> {
        let results = self.add(layer, sources, true)?;
        results.into_iter().next().ok_or_else(|| {
            Error::argument("mlcompute", format!("layer '{}' gives nothing", layer.label()))
        })
    }

    /// Applies a layer to tensors; gives all that comes out. Where it is not updated no optimizer changes its
    /// parameters.
    ///
    /// # Errors
    /// As [`Graph::add_layer`].
    pub fn add(
        &mut self,
        layer: &Layer,
        sources: &[&Tensor],
        is_updated: bool,
    ) -> Result<Vec<Tensor>> {
        for size in sources.iter().flat_map(|source| source.sizes()) {
            if let Size::Named(name) = size
                && !self.names.contains(name)
            {
                self.names.push(name.clone());
            }
        }
        // Two numbers for each name, so that what follows from one can be told from a number.
        let number = |size: &Size, which: usize| match size {
            Size::Known(size) => *size,
            Size::Named(name) => {
                let at = self.names.iter().position(|own| own == name).unwrap_or(0);
                [5040 * (at + 1), 7560 * (at + 101)][which]
            }
        };
        let random = generator::state();
        let tried: Result<Vec<Vec<Array>>> = [0, 1]
            .into_iter()
            .map(|which| {
                let zeros = |t: &&Tensor| {
                    let shape: Vec<usize> = t.sizes().iter().map(|s| number(s, which)).collect();
                    ops::zeros(shape, t.dtype())
                };
                let inputs: Vec<Array> = sources.iter().map(zeros).collect::<Result<_>>()?;
                let held = |(name, tensor): &(String, Tensor)| Ok((name.clone(), tensor.data()?));
                let held: Held = layer.held().map(held).collect::<Result<_>>()?;
                let given = Given { inputs: &inputs, held: &held, training: true };
                Ok(layer.apply(&given)?.results)
            })
            .collect();
        generator::set_state(random);
        let tried = tried.map_err(|error| named(layer, error))?;
        let size = |(&a, &b): (&usize, &usize)| {
            let is_own = |name: &&String| {
                let size = Size::Named((*name).clone());
                (number(&size, 0), number(&size, 1)) == (a, b)
            };
            match self.names.iter().find(is_own) {
                _ if a == b => Size::Known(a),
                Some(name) => Size::Named(name.clone()),
                None => Size::Named("?".into()),
            }
        };
        let result = |(a, b): (&Array, &Array)| {
            let sizes: Vec<Size> = a.shape().iter().zip(b.shape().iter()).map(size).collect();
            Tensor::new(&sizes, a.dtype())
        };
        let results: Vec<Tensor> = tried[0].iter().zip(&tried[1]).map(result).collect();
        let sources = sources.iter().map(|&t| t.clone()).collect();
        let layer = layer.clone();
        self.records.push(Record { layer, sources, results: results.clone(), is_updated });
        Ok(results)
    }
}

/// The error with the layer's name in front.
pub(super) fn named(layer: &Layer, error: Error) -> Error {
    Error::Node { node: layer.label().to_owned(), error: Arc::new(error) }
}

/// A tensor with the variable that holds it in a program, and the data that both had last.
pub(super) struct Bound {
    pub tensor: Tensor,
    pub variable: String,
    pub last: Array,
}

/// What inference and training graphs have in common.
pub(super) struct Executed {
    pub records: Vec<Record>,
    pub inputs: Vec<(String, Tensor)>,
    pub outputs: Vec<Tensor>,
    ready: Option<(Program, Device)>,
    bound: Arc<Mutex<Vec<Bound>>>,
    pending: Vec<Receiver<Result<()>>>,
}

/// The arrays of tensors while a program is written down.
pub(super) type Values = HashMap<usize, Array>;

impl Executed {
    pub fn new(parts: &[&Graph]) -> Executed {
        let records = parts.iter().flat_map(|part| part.records.iter().cloned()).collect();
        Executed {
            records,
            inputs: Vec::new(),
            outputs: Vec::new(),
            ready: None,
            bound: Arc::default(),
            pending: Vec::new(),
        }
    }

    pub fn not_compiled(&self, what: &str) -> Result<()> {
        match self.ready {
            None => Ok(()),
            Some(_) => Err(Error::argument("mlcompute", format!("{what}: compiled already"))),
        }
    }

    pub fn program(&self) -> Result<&Program> {
        let missing = || Error::argument("mlcompute", "the graph is not compiled");
        self.ready.as_ref().map(|(program, _)| program).ok_or_else(missing)
    }

    /// The tensors that layers give and none takes, and those that were asked for.
    pub fn results(&self) -> Vec<Tensor> {
        let taken =
            |t: &Tensor| self.records.iter().any(|r| r.sources.iter().any(|s| s.key() == t.key()));
        let made = self.records.iter().flat_map(|r| &r.results);
        let mut results: Vec<Tensor> = made.filter(|t| !taken(t)).cloned().collect();
        for output in &self.outputs {
            if !results.iter().any(|t| t.key() == output.key()) {
                results.push(output.clone());
            }
        }
        results
    }

    /// The tensors that variables hold, with the names of these.
    pub fn learnt<'a>(&'a self, more: Option<&'a Layer>) -> Vec<(String, Tensor)> {
        let mut out: Vec<(String, Tensor)> = Vec::new();
        let layers = self.records.iter().map(|r| &r.layer).chain(more);
        for layer in layers {
            for (name, tensor) in layer.held() {
                if !out.iter().any(|(_, t)| t.key() == tensor.key()) {
                    out.push((format!("{}.{}.{name}", out.len(), layer.label()), tensor.clone()));
                }
            }
        }
        out
    }

    /// The tensors of layers' states, each once.
    pub fn states(&self) -> Vec<Tensor> {
        let mut out: Vec<Tensor> = Vec::new();
        for (_, tensor) in self.records.iter().flat_map(|r| r.layer.states()) {
            if !out.iter().any(|t| t.key() == tensor.key()) {
                out.push(tensor.clone());
            }
        }
        out
    }

    /// Takes the program, and what its variables hold.
    pub fn compiled(&mut self, program: Program, device: Device, held: &[(String, Tensor)]) {
        let values: HashMap<String, Array> = program.variables().into_iter().collect();
        let bound = held.iter().filter_map(|(variable, tensor)| {
            let (tensor, last) = (tensor.clone(), values.get(variable)?.clone());
            tensor.put(last.clone());
            Some(Bound { tensor, variable: variable.clone(), last })
        });
        *lock(&self.bound) = bound.collect();
        self.ready = Some((program, device));
    }

    /// Executes a function on another thread. Its results go to `results`, by name.
    pub fn start(
        &mut self,
        function: &str,
        feeds: &[(&str, Array)],
        results: Vec<(String, Tensor)>,
        on_done: impl FnOnce(Result<Vec<Tensor>>, Duration) + Send + 'static,
    ) -> Result<()> {
        let program = self.program()?.clone();
        let device = self.ready.as_ref().map_or(Device::CPU, |(_, device)| *device);
        for own in lock(&self.bound).iter_mut() {
            let data = own.tensor.data()?;
            if !data.same(&own.last) {
                program.set_variable(&own.variable, data.clone())?;
                own.last = data;
            }
        }
        let options = Options { function: Some(function.to_owned()), sizes: Vec::new() };
        let executable = program.compile(device, &options)?;
        let wanted = |name: &str| executable.placeholders().iter().any(|p| p.name == name);
        let fed: Vec<(&str, &Array)> =
            feeds.iter().filter(|(name, _)| wanted(name)).map(|(n, a)| (*n, a)).collect();
        let (sender, receiver): (Sender<Result<()>>, _) = channel();
        let (bound, begin) = (self.bound.clone(), Instant::now());
        executable.run_async(&fed, move |made: Result<Results>| {
            let values: HashMap<String, Array> = program.variables().into_iter().collect();
            for own in lock(&bound).iter_mut() {
                if let Some(value) = values.get(&own.variable)
                    && own.tensor.replace(&own.last, value)
                {
                    own.last = value.clone();
                }
            }
            let (made, told) = match made {
                Ok(made) => {
                    for (name, tensor) in &results {
                        if let Some(array) = made.get(name) {
                            tensor.put(array.clone());
                        }
                    }
                    (Ok(results.into_iter().map(|(_, tensor)| tensor).collect()), Ok(()))
                }
                Err(error) => (Err(error.clone()), Err(error)),
            };
            on_done(made, begin.elapsed());
            // Nobody may wait any more.
            let _ = sender.send(told);
        })?;
        self.pending.push(receiver);
        Ok(())
    }

    pub fn wait(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        for receiver in self.pending.drain(..) {
            let lost = || Error::User("the handler of an execution panicked".into());
            let told = receiver.recv().unwrap_or_else(|_| Err(lost()));
            outcome = outcome.and(told);
        }
        outcome
    }

    /// Data for tensors by name, looked at.
    pub fn fitted<'a>(
        named: &[(String, Tensor)],
        data: &[(&'a str, &Array)],
    ) -> Result<Vec<(&'a str, Array)>> {
        let one = |&(name, array): &(&'a str, &Array)| {
            let known = named.iter().find(|(n, _)| n == name);
            let missing = || Error::argument("mlcompute", format!("there is no input '{name}'"));
            Ok((name, known.ok_or_else(missing)?.1.fitted(array)?))
        };
        data.iter().map(one).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The variables of a program by the keys of their tensors.
pub(super) fn variables(g: &Builder, held: &[(String, Tensor)]) -> Result<Values> {
    let one =
        |(name, tensor): &(String, Tensor)| Ok((tensor.key(), g.variable(name, || tensor.data())?));
    held.iter().map(one).collect()
}

/// The placeholders of a program by the keys of their tensors.
pub(super) fn fed(g: &Builder, inputs: &[(String, Tensor)], values: &mut Values) -> Result<()> {
    for (name, tensor) in inputs {
        values.insert(tensor.key(), g.placeholder(name, tensor.sizes(), tensor.dtype())?);
    }
    Ok(())
}

/// Writes layers down: `values` gets what they give, `now` has what holds their parameters and states, and gets what
/// becomes of the states.
pub(super) fn forward(
    records: &[Record],
    values: &mut Values,
    now: &mut Values,
    training: bool,
    stopped: &[Tensor],
) -> Result<()> {
    let is_stopped = |tensor: &Tensor| stopped.iter().any(|t| t.key() == tensor.key());
    for tensor in stopped {
        if let Some(value) = values.get_mut(&tensor.key()) {
            *value = ops::stop_gradient(value)?;
        }
    }
    for record in records {
        let layer = &record.layer;
        let inputs: Vec<Array> = record
            .sources
            .iter()
            .map(|source| match values.get(&source.key()).cloned().or_else(|| source.held()) {
                Some(array) => Ok(array),
                None => {
                    let text = format!(
                        "tensor {source} is no input, no result of a layer before it, and has no data"
                    );
                    Err(named(layer, Error::argument("mlcompute", text)))
                }
            })
            .collect::<Result<_>>()?;
        let current = |(name, tensor): &(String, Tensor)| {
            Some((name.clone(), now.get(&tensor.key())?.clone()))
        };
        let held: Held = layer.held().filter_map(current).collect();
        let given = Given { inputs: &inputs, held: &held, training };
        let made = layer.apply(&given).map_err(|error| named(layer, error))?;
        for (name, tensor) in layer.states() {
            if let Some(after) = made.states.get(name) {
                now.insert(tensor.key(), after.clone());
            }
        }
        for (tensor, array) in record.results.iter().zip(made.results) {
            let array = if is_stopped(tensor) { ops::stop_gradient(&array)? } else { array };
            values.insert(tensor.key(), array);
        }
    }
    Ok(())
}

/// Graphs that give predictions: nothing drops out, and no parameter changes.
pub struct InferenceGraph(Executed);

impl InferenceGraph {
    /// An inference graph of all layers of these.
    pub fn new(parts: &[&Graph]) -> InferenceGraph {
        InferenceGraph(Executed::new(parts))
    }

    /// Names the tensors that are fed.
    ///
    /// # Errors
    /// Where the graph is compiled already.
    pub fn add_inputs(&mut self, inputs: &[(&str, &Tensor)]) -> Result<()> {
        self.0.not_compiled("add_inputs")?;
        self.0.inputs.extend(inputs.iter().map(|&(n, t)| (n.to_owned(), t.clone())));
        Ok(())
    }

    /// Tensors whose data is wanted, beside those that no layer takes.
    ///
    /// # Errors
    /// Where the graph is compiled already.
    pub fn add_outputs(&mut self, outputs: &[&Tensor]) -> Result<()> {
        self.0.not_compiled("add_outputs")?;
        self.0.outputs.extend(outputs.iter().map(|&t| t.clone()));
        Ok(())
    }

    /// Makes the graph ready for a device.
    ///
    /// # Errors
    /// Where a tensor is made by nothing, or layers do not fit; the text names the layer.
    pub fn compile(&mut self, device: Device) -> Result<()> {
        self.0.not_compiled("compile")?;
        let held = self.0.learnt(None);
        let (records, inputs) = (self.0.records.clone(), self.0.inputs.clone());
        let (wanted, own) = (self.wanted(), held.clone());
        let program = Program::new(move |g| {
            let (mut values, mut now) = (Values::new(), variables(g, &own)?);
            fed(g, &inputs, &mut values)?;
            forward(&records, &mut values, &mut now, false, &[])?;
            let outputs: Vec<(&str, &Array)> =
                wanted.iter().map(|(n, t)| (n.as_str(), &values[&t.key()])).collect();
            g.function("run", &outputs, &[])
        })?;
        self.0.compiled(program, device, &held);
        Ok(())
    }

    fn wanted(&self) -> Vec<(String, Tensor)> {
        let results = self.0.results();
        results.into_iter().enumerate().map(|(at, t)| (format!("result_{at}"), t)).collect()
    }

    /// Executes the graph on another thread, with arrays for its inputs by name. `on_done` is called there with the
    /// results or the error, and how long it took.
    ///
    /// # Errors
    /// Where the graph is not compiled, or an array does not fit its tensor.
    pub fn execute(
        &mut self,
        inputs: &[(&str, &Array)],
        on_done: impl FnOnce(Result<Vec<Tensor>>, Duration) + Send + 'static,
    ) -> Result<()> {
        let feeds = Executed::fitted(&self.0.inputs, inputs)?;
        self.0.start("run", &feeds, self.wanted(), on_done)
    }

    /// Waits for the executions under way.
    ///
    /// # Errors
    /// The first that one of them had.
    pub fn wait(&mut self) -> Result<()> {
        self.0.wait()
    }
}
