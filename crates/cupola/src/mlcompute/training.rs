//! Training graphs: forward, gradient and update, together or one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use cupola_core::graph::{Builder, Program};
use cupola_core::tree::Tree;
use cupola_core::{Array, Device, Error, Result, generator, ops};

use super::executed::{Executed, Record, Values, fed, forward, variables};
use super::{Graph, Held, Layer, Tensor};
use crate::nn::{Gradients, Param};
use crate::optim::Optimizer;

/// One update of parameters by their gradients, with the optimiser's state before and after.
type Update = dyn Fn(&Held, &Held, &Held) -> Result<(Held, Held)> + Send + Sync;

/// Graphs whose layers learn from a loss, by an optimizer: [`Sgd`](crate::optim::Sgd), [`Adam`](crate::optim::Adam) or
/// [`AdamW`](crate::optim::AdamW).
///
/// The loss layer compares the last result with the labels. Without one the gradient of results is given by the caller:
/// see [`TrainingGraph::allocate_user_gradient`].
///
/// # Example
/// ```
/// use cupola::{Array, DType, Device, mlcompute::{self as mlc, Loss, Reduction, Tensor}, optim::Sgd};
/// let (x, wanted) = (
///     Tensor::new(&["batch".into(), 1.into()], DType::F32),
///     Tensor::new(&["batch".into(), 1.into()], DType::F32),
/// );
/// let mut g = mlc::Graph::new();
/// let y = g.add_layer(&mlc::fully_connected([1, 1], None, None)?, &[&x])?;
/// let mut t = mlc::TrainingGraph::new(&[&g]);
/// t.set_loss(mlc::loss(Loss::MeanSquaredError, Reduction::Mean, 0.0))?;
/// t.set_optimizer(Sgd::new(0.1)?)?;
/// t.add_inputs(&[("x", &x)], &[("wanted", &wanted)])?;
/// t.compile(Device::CPU)?;
/// let (one, three) = (Array::from_slice(&[1.0f32], [1, 1])?, Array::from_slice(&[3.0f32], [1, 1])?);
/// for _ in 0..50 {
///     t.execute(&[("x", &one), ("wanted", &three)], |_, _| {})?;
/// }
/// t.wait()?;
/// assert!((y.data()?.item::<f32>()? - 3.0).abs() < 1e-3);
/// # Ok::<(), cupola::Error>(())
/// ```
pub struct TrainingGraph {
    own: Executed,
    labels: Vec<(String, Tensor)>,
    loss_layer: Option<Layer>,
    optimizer: Option<Optimizing>,
    stopped: Vec<Tensor>,
    user: Vec<(Tensor, Tensor)>,
    gradients: Vec<(Tensor, Tensor)>,
    wanted: Vec<(String, Tensor)>,
    fed: Option<(Vec<(String, Array)>, Array)>,
}

/// What a state begins as, by what it is the state of.
type Initial = dyn Fn(&Held) -> Result<Held> + Send + Sync;

struct Optimizing {
    update: std::sync::Arc<Update>,
    /// The state to begin with, for parameters.
    initial: Box<Initial>,
    tensors: Vec<(String, Tensor)>,
}

impl TrainingGraph {
    /// A training graph of all layers of these.
    pub fn new(parts: &[&Graph]) -> TrainingGraph {
        TrainingGraph {
            own: Executed::new(parts),
            labels: Vec::new(),
            loss_layer: None,
            optimizer: None,
            stopped: Vec::new(),
            user: Vec::new(),
            gradients: Vec::new(),
            wanted: Vec::new(),
            fed: None,
        }
    }

    /// The layer that compares the last result with the labels.
    ///
    /// # Errors
    /// Where the graph is compiled already; so of all that says what it is.
    pub fn set_loss(&mut self, layer: Layer) -> Result<()> {
        self.own.not_compiled("set_loss")?;
        self.loss_layer = Some(layer);
        Ok(())
    }

    /// What changes the parameters.
    ///
    /// # Errors
    /// Where the graph is compiled already.
    pub fn set_optimizer<O>(&mut self, optimizer: O) -> Result<()>
    where
        O: Optimizer + Clone + Send + Sync + 'static,
    {
        self.own.not_compiled("set_optimizer")?;
        let first = optimizer.clone();
        let initial = move |parameters: &Held| initial(&first, parameters);
        let update = move |parameters: &Held, gradients: &Held, states: &Held| {
            let mut own = optimizer.clone();
            own.load(states.clone())?;
            let after = stepped(&mut own, parameters, gradients)?;
            Ok((after, own.leaves()))
        };
        let (initial, update) = (Box::new(initial), std::sync::Arc::new(update));
        self.optimizer = Some(Optimizing { update, initial, tensors: Vec::new() });
        Ok(())
    }

    /// Names the tensors that are fed: inputs, and the labels and weights of the loss in its order.
    ///
    /// # Errors
    /// Where the graph is compiled already.
    pub fn add_inputs(
        &mut self,
        inputs: &[(&str, &Tensor)],
        loss_labels: &[(&str, &Tensor)],
    ) -> Result<()> {
        self.own.not_compiled("add_inputs")?;
        let named = |&(name, tensor): &(&str, &Tensor)| (name.to_owned(), tensor.clone());
        self.own.inputs.extend(inputs.iter().chain(loss_labels).map(named));
        self.labels.extend(loss_labels.iter().map(named));
        Ok(())
    }

    /// Tensors whose data is wanted, beside those that no layer takes.
    ///
    /// # Errors
    /// Where the graph is compiled already.
    pub fn add_outputs(&mut self, outputs: &[&Tensor]) -> Result<()> {
        self.own.not_compiled("add_outputs")?;
        self.own.outputs.extend(outputs.iter().map(|&t| t.clone()));
        Ok(())
    }

    /// No gradient passes these tensors.
    ///
    /// # Errors
    /// Where the graph is compiled already.
    pub fn stop_gradient_for(&mut self, tensors: &[&Tensor]) -> Result<()> {
        self.own.not_compiled("stop_gradient_for")?;
        self.stopped.extend(tensors.iter().map(|&t| t.clone()));
        Ok(())
    }

    /// A tensor for the gradient of a result, which the caller binds before executing the gradient.
    ///
    /// # Errors
    /// Where the graph is compiled already.
    pub fn allocate_user_gradient(&mut self, tensor: &Tensor) -> Result<Tensor> {
        self.own.not_compiled("allocate_user_gradient")?;
        let gradient = Tensor::new(tensor.sizes(), tensor.dtype());
        self.user.push((tensor.clone(), gradient.clone()));
        Ok(gradient)
    }

    /// The loss, from when the graph is compiled.
    pub fn loss(&self) -> Option<&Tensor> {
        self.wanted.iter().find(|(name, _)| name == "loss").map(|(_, tensor)| tensor)
    }

    /// The gradient of a parameter that the last [`TrainingGraph::execute_gradient`] left.
    pub fn gradient_for(&self, parameter: &Tensor) -> Option<&Tensor> {
        self.gradients
            .iter()
            .find(|(t, _)| t.key() == parameter.key())
            .map(|(_, gradient)| gradient)
    }

    /// The parameters that learn.
    fn updated(&self) -> Vec<Tensor> {
        let records = self.own.records.iter().filter(|r| r.is_updated).map(|r| &r.layer);
        let mut out: Vec<Tensor> = Vec::new();
        for (_, tensor) in records.chain(&self.loss_layer).flat_map(|layer| layer.parameters()) {
            if !out.iter().any(|t| t.key() == tensor.key()) {
                out.push(tensor.clone());
            }
        }
        out
    }

    /// Makes the graph ready for a device.
    ///
    /// # Errors
    /// Where a tensor is made by nothing, or layers do not fit; the text names the layer.
    pub fn compile(&mut self, device: Device) -> Result<()> {
        self.own.not_compiled("compile")?;
        let mut held = self.own.learnt(self.loss_layer.as_ref());
        let updated = self.updated();
        let mut wanted: Vec<(String, Tensor)> = Vec::new();
        for (at, tensor) in self.own.results().into_iter().enumerate() {
            wanted.push((format!("result_{at}"), tensor));
        }
        let mut loss = None;
        if let Some(layer) = &self.loss_layer {
            let Some(last) = self.own.records.iter().flat_map(|r| &r.results).last() else {
                return Err(Error::argument("mlcompute", "compile: the graph has no layer"));
            };
            let sources = std::iter::once(last).chain(self.labels.iter().map(|(_, t)| t));
            let sources: Vec<Tensor> = sources.cloned().collect();
            let taken: Vec<&Tensor> = sources.iter().collect();
            let result = Graph::new().add_layer(layer, &taken)?;
            wanted.push(("loss".into(), result.clone()));
            let layer = layer.clone();
            loss = Some(Record { layer, sources, results: vec![result], is_updated: true });
        }
        let learns = !updated.is_empty() && (loss.is_some() || !self.user.is_empty());
        let mut gradients = Vec::new();
        if learns {
            for (at, tensor) in updated.iter().enumerate() {
                let gradient = Tensor::of(&ops::zeros_like(&tensor.data()?)?);
                held.push((format!("gradient.{at}"), gradient.clone()));
                gradients.push((tensor.clone(), gradient));
            }
        }
        if let Some(optimizer) = self.optimizer.as_mut().filter(|_| learns) {
            let parameters = by_name(&updated, Tensor::data)?;
            optimizer.tensors.clear();
            for (name, value) in (optimizer.initial)(&parameters)? {
                optimizer.tensors.push((format!("optimizer.{name}"), Tensor::of(&value)));
            }
            held.extend(optimizer.tensors.iter().cloned());
        }
        let written = Written {
            records: self.own.records.clone(),
            inputs: self.own.inputs.clone(),
            user: self.user.clone(),
            stopped: self.stopped.clone(),
            states: self.own.states(),
            optimizer: self.optimizer.as_ref().map(|o| (o.update.clone(), o.tensors.clone())),
            gradients: gradients.clone(),
            held: held.clone(),
            wanted: wanted.clone(),
            loss,
        };
        let program = Program::new(move |g| written.write(g))?;
        self.own.compiled(program, device, &held);
        (self.gradients, self.wanted) = (gradients, wanted);
        Ok(())
    }

    /// Sets the learning rate of the next executions.
    ///
    /// # Errors
    /// Where the graph has no optimizer, or is not compiled.
    pub fn set_learning_rate(&mut self, rate: f32) -> Result<()> {
        let tensors = self.optimizer.iter().flat_map(|o| &o.tensors);
        match tensors.into_iter().find(|(name, _)| name == "optimizer.learning_rate") {
            Some((_, tensor)) => tensor.bind(&Array::from_slice(&[rate], ())?),
            None => Err(Error::argument("mlcompute", "there is no optimizer that is compiled")),
        }
    }

    /// Forward, gradient and update together, on another thread, with arrays for inputs and labels by name. `on_done`
    /// is called there with the results and the loss, which is the last of them, or the error, and how long it took.
    ///
    /// # Errors
    /// Where the graph is not compiled, has no optimizer, or an array does not fit its tensor.
    pub fn execute(
        &mut self,
        inputs: &[(&str, &Array)],
        on_done: impl FnOnce(Result<Vec<Tensor>>, Duration) + Send + 'static,
    ) -> Result<()> {
        let mut feeds = Executed::fitted(&self.own.inputs, inputs)?;
        let names = self.user_names();
        feeds.extend(self.user_feeds(&names)?);
        self.own.start("execute", &feeds, self.wanted.clone(), on_done)
    }

    /// The forward way alone: results, the loss, and the states of layers.
    ///
    /// # Errors
    /// As [`TrainingGraph::execute`].
    pub fn execute_forward(
        &mut self,
        inputs: &[(&str, &Array)],
        on_done: impl FnOnce(Result<Vec<Tensor>>, Duration) + Send + 'static,
    ) -> Result<()> {
        let feeds = Executed::fitted(&self.own.inputs, inputs)?;
        let kept = feeds.iter().map(|(name, array)| ((*name).to_owned(), array.clone())).collect();
        self.fed = Some((kept, generator::state()));
        self.own.start("forward", &feeds, self.wanted.clone(), on_done)
    }

    /// The gradients of the parameters, for what the last [`TrainingGraph::execute_forward`] was given. What dropped out
    /// there does so again.
    ///
    /// # Errors
    /// Where there was no forward way, a user's gradient is not bound, or nothing learns.
    pub fn execute_gradient(
        &mut self,
        on_done: impl FnOnce(Result<Vec<Tensor>>, Duration) + Send + 'static,
    ) -> Result<()> {
        let Some((kept, random)) = self.fed.clone() else {
            let text = "execute_gradient: execute_forward comes first";
            return Err(Error::argument("mlcompute", text));
        };
        let mut feeds: Vec<(&str, Array)> =
            kept.iter().map(|(name, array)| (name.as_str(), array.clone())).collect();
        let names = self.user_names();
        feeds.extend(self.user_feeds(&names)?);
        let now = generator::state();
        generator::set_state(random);
        let started = self.own.start("gradient", &feeds, Vec::new(), on_done);
        generator::set_state(now);
        started
    }

    /// Changes the parameters by the gradients that the last [`TrainingGraph::execute_gradient`] left.
    ///
    /// # Errors
    /// Where the graph is not compiled or has no optimizer.
    pub fn execute_optimizer_update(
        &mut self,
        on_done: impl FnOnce(Result<Vec<Tensor>>, Duration) + Send + 'static,
    ) -> Result<()> {
        self.own.start("update", &[], Vec::new(), on_done)
    }

    /// Waits for the executions under way. The tensors of the layers hold what was learnt then.
    ///
    /// # Errors
    /// The first that one of them had.
    pub fn wait(&mut self) -> Result<()> {
        self.own.wait()
    }

    fn user_names(&self) -> Vec<String> {
        (0..self.user.len()).map(user_name).collect()
    }

    fn user_feeds<'a>(&self, names: &'a [String]) -> Result<Vec<(&'a str, Array)>> {
        let pairs = names.iter().zip(&self.user);
        pairs.map(|(name, (_, gradient))| Ok((name.as_str(), gradient.data()?))).collect()
    }
}

fn user_name(at: usize) -> String {
    format!("user_gradient_{at}")
}

/// Something of each parameter, under the names that optimisers see.
fn by_name(updated: &[Tensor], of: impl Fn(&Tensor) -> Result<Array>) -> Result<Held> {
    updated.iter().enumerate().map(|(at, tensor)| Ok((format!("p{at}"), of(tensor)?))).collect()
}

/// The parameters after one step.
fn stepped(optimizer: &mut dyn Optimizer, parameters: &Held, gradients: &Held) -> Result<Held> {
    let cells: BTreeMap<String, Param> =
        parameters.iter().map(|(n, a)| (n.clone(), Param::new(a.clone()))).collect();
    let gradients: Gradients = gradients.clone().into();
    optimizer.update(&cells, &gradients)?;
    Ok(cells.into_iter().map(|(name, cell)| (name, cell.get())).collect())
}

/// What an optimiser keeps before its first step: its moments are 0.
fn initial<O: Optimizer + Clone + Tree>(optimizer: &O, parameters: &Held) -> Result<Held> {
    let mut tried = optimizer.clone();
    stepped(&mut tried, parameters, parameters)?;
    let known = optimizer.leaves();
    let begins = |(name, array): (String, Array)| {
        let value = match known.get(&name) {
            Some(own) => own.clone(),
            None => ops::zeros_like(&array)?,
        };
        Ok((name, value))
    };
    tried.leaves().into_iter().map(begins).collect()
}

/// An update, and the tensors that it changes by their names.
type Optimized = (std::sync::Arc<Update>, Vec<(String, Tensor)>);

/// All that is written down.
struct Written {
    records: Vec<Record>,
    inputs: Vec<(String, Tensor)>,
    user: Vec<(Tensor, Tensor)>,
    stopped: Vec<Tensor>,
    states: Vec<Tensor>,
    optimizer: Option<Optimized>,
    /// Parameters, and the tensors of their gradients.
    gradients: Vec<(Tensor, Tensor)>,
    held: Vec<(String, Tensor)>,
    wanted: Vec<(String, Tensor)>,
    loss: Option<Record>,
}

impl Written {
    fn write(&self, g: &Builder) -> Result<()> {
        let held = variables(g, &self.held)?;
        let (mut values, mut now) = (Values::new(), held.clone());
        fed(g, &self.inputs, &mut values)?;
        let user: Vec<(String, Tensor)> =
            self.user.iter().enumerate().map(|(at, (_, t))| (user_name(at), t.clone())).collect();
        fed(g, &user, &mut values)?;
        forward(&self.records, &mut values, &mut now, true, &self.stopped)?;
        let mut terms = Vec::new();
        if let Some(loss) = &self.loss {
            forward(std::slice::from_ref(loss), &mut values, &mut now, true, &[])?;
            terms.push(ops::sum(&values[&loss.results[0].key()], (), false)?);
        }
        for (tensor, gradient) in &self.user {
            let product = ops::multiply(&values[&tensor.key()], &values[&gradient.key()])?;
            terms.push(ops::sum(&product, (), false)?);
        }
        let outputs: Vec<(&str, &Array)> =
            self.wanted.iter().map(|(n, t)| (n.as_str(), &values[&t.key()])).collect();
        let states = self.states.iter().map(|t| (&held[&t.key()], &now[&t.key()]));
        let states: Vec<(&Array, &Array)> = states.collect();
        g.function("forward", &outputs, &states)?;
        let Some((first, rest)) = terms.split_first().filter(|_| !self.gradients.is_empty()) else {
            return Ok(());
        };
        let total = rest.iter().try_fold(first.clone(), |sum, term| ops::add(&sum, term))?;
        let by: Vec<&Array> = self.gradients.iter().map(|(t, _)| &held[&t.key()]).collect();
        let found = g.gradients(&total, &by)?;
        let places = self.gradients.iter().map(|(_, t)| &held[&t.key()]);
        g.function("gradient", &outputs, &places.clone().zip(&found).collect::<Vec<_>>())?;
        let Some((update, kept)) = &self.optimizer else { return Ok(()) };
        let pairs = |arrays: Vec<&Array>| -> Held {
            arrays.into_iter().enumerate().map(|(at, a)| (format!("p{at}"), a.clone())).collect()
        };
        let parameters = pairs(by.clone());
        let key = |name: &str| name.strip_prefix("optimizer.").unwrap_or(name).to_owned();
        let before: Held =
            kept.iter().map(|(name, t)| (key(name), held[&t.key()].clone())).collect();
        for (name, given) in [("execute", found.iter().collect()), ("update", places.collect())] {
            let (after, left) = update(&parameters, &pairs(given), &before)?;
            let mut changes: Vec<(&Array, &Array)> =
                by.iter().copied().zip(after_of(&after)).collect();
            for (state, t) in kept {
                changes.extend(left.get(&key(state)).map(|new| (&held[&t.key()], new)));
            }
            match name {
                "execute" => {
                    changes.extend(&states);
                    g.function(name, &outputs, &changes)?;
                }
                _ => g.function(name, &[], &changes)?,
            }
        }
        Ok(())
    }
}

/// The parameters in their order: `p10` comes after `p9`.
fn after_of(after: &Held) -> Vec<&Array> {
    (0..after.len()).filter_map(|at| after.get(&format!("p{at}"))).collect()
}
