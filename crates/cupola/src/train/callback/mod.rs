//! What watches a training, and may end it: the trainer's own, or a program's loop.

mod best;
mod metrics_file;
mod report;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cupola_core::{Array, Error, Result};

use crate::nn::Module;

pub use best::{Best, EarlyStopping, Goal, KeepBest};
pub use metrics_file::MetricsFile;
pub use report::{Picture, Report, confusion, panels};

/// Where a training is, and what was measured there.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// The number of the epoch, from 1.
    pub epoch: usize,
    /// How many training steps were made in all.
    pub step: u64,
    /// What was measured, by name: of a step, or of an epoch that is over.
    pub metrics: &'a [(&'a str, f64)],
    /// Gives the model's parameters and buffers by path.
    pub weights: &'a dyn Fn() -> Result<BTreeMap<String, Array>>,
}

impl Moment<'_> {
    /// What was measured under a name.
    ///
    /// # Errors
    /// Where nothing was, with the names that there are.
    pub fn metric(&self, name: &str) -> Result<f64> {
        let found = self.metrics.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<&str> = self.metrics.iter().map(|(name, _)| *name).collect();
            let detail =
                format!("epoch {} has no metric '{name}', only [{}]", self.epoch, known.join(", "));
            Error::argument("callback", detail)
        })
    }
}

/// Is told how a training goes, and may end it. Every hook does nothing unless it is written.
///
/// # Example
/// ```
/// use std::ops::ControlFlow;
/// use cupola::train::{Callback, Callbacks, Moment};
///
/// /// Ends a training whose loss is good enough.
/// struct GoodEnough(f64);
///
/// impl Callback for GoodEnough {
///     fn epoch(&mut self, at: &Moment<'_>) -> cupola::Result<ControlFlow<()>> {
///         Ok(if at.metric("loss")? < self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
///     }
/// }
///
/// let model = cupola::nn::Linear::new(2, 1)?;
/// let mut callbacks = Callbacks::new().with(GoodEnough(0.1));
/// assert!(callbacks.epoch(&[("loss", 0.5)], &model)?.is_continue());
/// assert!(callbacks.epoch(&[("loss", 0.05)], &model)?.is_break());
/// # Ok::<(), cupola::Error>(())
/// ```
pub trait Callback {
    /// A training goes on, and this epoch of it was over before. What it gives is what
    /// [`Callback::epoch`] would have given.
    ///
    /// # Errors
    /// As the callback's own.
    fn past(&mut self, _at: &Moment<'_>) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    /// A training step was made. `Break` ends the training.
    ///
    /// # Errors
    /// As the callback's own; they end the training.
    fn step(&mut self, _at: &Moment<'_>) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    /// An epoch is over. `Break` ends the training.
    ///
    /// # Errors
    /// As the callback's own; they end the training.
    fn epoch(&mut self, _at: &Moment<'_>) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    /// The training is over, for whatever reason but an error; to be interrupted is none.
    ///
    /// # Errors
    /// As the callback's own.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Callbacks, told one after the other, and the count of steps and epochs.
///
/// # Example
/// ```
/// use cupola::nn::{self, Layer};
/// use cupola::optim::{Optimizer, Sgd};
/// use cupola::train::{Callbacks, EarlyStopping, KeepBest, MetricsFile, TensorBoard};
/// use cupola::{DType, ops};
///
/// let folder = tempfile::tempdir()?;
/// let at = |name: &str| folder.path().join(name);
/// let (x, y) = (ops::ones([8, 2], DType::F32)?, ops::zeros([8, 1], DType::F32)?);
/// let model = nn::Linear::new(2, 1)?;
/// let mut optimizer = Sgd::new(0.1)?;
///
/// let mut callbacks = Callbacks::new()
///     .with(EarlyStopping::new("loss", 3)?)
///     .with(KeepBest::new("loss", at("best.safetensors")))
///     .with(MetricsFile::new(at("metrics.jsonl")))
///     .with(TensorBoard::create(at("board"))?);
/// for _epoch in 0..4 {
///     let ((loss, ()), gradients) = nn::value_and_grad(&model, |model| {
///         Ok((nn::mse_loss(&model.forward(&x)?, &y, nn::Reduction::Mean)?, ()))
///     })?;
///     optimizer.update(&model, &gradients)?;
///     let measured = [("loss", f64::from(loss.item::<f32>()?))];
///     if callbacks.step(&measured, &model)?.is_break() || callbacks.epoch(&measured, &model)?.is_break() {
///         break;
///     }
/// }
/// callbacks.end()?;
/// assert!(at("best.safetensors").is_file());
/// assert_eq!(std::fs::read_to_string(at("metrics.jsonl"))?.lines().count(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Callbacks {
    all: Vec<Box<dyn Callback>>,
    epochs: usize,
    steps: u64,
}

impl Callbacks {
    /// None yet, at the start of a training.
    pub fn new() -> Self {
        Self::default()
    }

    /// These and another one, which is told after them.
    pub fn with(mut self, callback: impl Callback + 'static) -> Self {
        self.add(callback);
        self
    }

    /// One more, which is told after the others.
    pub fn add(&mut self, callback: impl Callback + 'static) {
        self.all.push(Box::new(callback));
    }

    /// How many epochs are over.
    pub fn epochs(&self) -> usize {
        self.epochs
    }

    /// How many steps were made.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The training goes on after `steps` steps and epochs that came to `history`, of which those are told that
    /// were not told before. `Break` where a callback would have ended it after the last of them.
    ///
    /// # Errors
    /// Those of the callbacks.
    pub fn resume(&mut self, history: &[&[(&str, f64)]], steps: u64) -> Result<ControlFlow<()>> {
        let mut flow = ControlFlow::Continue(());
        for (index, metrics) in history.iter().enumerate().skip(self.epochs) {
            let weights =
                || Err(Error::argument("callback", "the weights of a past epoch are gone"));
            let at = Moment { epoch: index + 1, step: steps, metrics, weights: &weights };
            flow = self.tell(|callback| callback.past(&at))?;
        }
        (self.epochs, self.steps) = (history.len(), steps);
        Ok(flow)
    }

    /// A training step was made, of which `metrics` were measured. `Break` where the training is to end.
    ///
    /// # Errors
    /// Those of the callbacks.
    pub fn step(
        &mut self,
        metrics: &[(&str, f64)],
        model: &(impl Module + ?Sized),
    ) -> Result<ControlFlow<()>> {
        self.steps += 1;
        let (epoch, step) = (self.epochs + 1, self.steps);
        let at = Moment { epoch, step, metrics, weights: &|| Ok(model.state()) };
        self.tell(|callback| callback.step(&at))
    }

    /// An epoch is over, of which `metrics` were measured. `Break` where the training is to end.
    ///
    /// # Errors
    /// Those of the callbacks.
    pub fn epoch(
        &mut self,
        metrics: &[(&str, f64)],
        model: &(impl Module + ?Sized),
    ) -> Result<ControlFlow<()>> {
        self.epochs += 1;
        let (epoch, step) = (self.epochs, self.steps);
        let at = Moment { epoch, step, metrics, weights: &|| Ok(model.state()) };
        self.tell(|callback| callback.epoch(&at))
    }

    /// The training is over.
    ///
    /// # Errors
    /// The first of the callbacks'; all are told.
    pub fn end(&mut self) -> Result<()> {
        let mut first = Ok(());
        for callback in &mut self.all {
            first = first.and(callback.end());
        }
        first
    }

    /// Tells all, also where one of them asks for the end.
    fn tell(
        &mut self,
        mut what: impl FnMut(&mut dyn Callback) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let mut flow = ControlFlow::Continue(());
        for callback in &mut self.all {
            if what(&mut **callback)?.is_break() {
                flow = ControlFlow::Break(());
            }
        }
        Ok(flow)
    }
}
