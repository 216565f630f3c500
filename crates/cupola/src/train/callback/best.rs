//! What follows one number over the epochs: when to stop, and which weights to keep.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::str::FromStr;

use cupola_core::{Error, Result};

use super::{Callback, Moment};
use crate::io::safetensors;

/// Which numbers are better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// Lower ones, as of a loss.
    #[default]
    Least,
    /// Higher ones, as of an accuracy.
    Greatest,
}

impl FromStr for Goal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "least" => Ok(Self::Least),
            "greatest" => Ok(Self::Greatest),
            _ => Err(Error::argument(
                "callback",
                format!("the goal '{text}' is neither least nor greatest"),
            )),
        }
    }
}

/// The best number so far, and how long ago it was.
///
/// # Example
/// ```
/// use cupola::train::{Best, Goal};
/// let mut best = Best::new(Goal::Least, 0.0)?;
/// assert_eq!([3.0, 2.0, 2.0].map(|loss| best.take(loss)), [true, true, false]);
/// assert_eq!((best.value(), best.since()), (Some(2.0), 1));
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Best {
    goal: Goal,
    by: f64,
    value: Option<f64>,
    since: usize,
}

impl Best {
    /// None so far. A number is better where it is so by more than `by`.
    ///
    /// # Errors
    /// Where `by` is negative or not finite.
    pub fn new(goal: Goal, by: f64) -> Result<Self> {
        match by.is_finite() && by >= 0.0 {
            true => Ok(Self { goal, by, value: None, since: 0 }),
            false => Err(Error::argument(
                "callback",
                format!("the least change {by} is not finite and at least 0"),
            )),
        }
    }

    /// Whether `value` is better than all before; NaN never is.
    pub fn take(&mut self, value: f64) -> bool {
        let is_better = match (self.value, self.goal) {
            (None, _) => !value.is_nan(),
            (Some(best), Goal::Least) => value < best - self.by,
            (Some(best), Goal::Greatest) => value > best + self.by,
        };
        match is_better {
            true => (self.value, self.since) = (Some(value), 0),
            false => self.since += 1,
        }
        is_better
    }

    /// The best number, once there is one.
    pub fn value(&self) -> Option<f64> {
        self.value
    }

    /// How many numbers came after it.
    pub fn since(&self) -> usize {
        self.since
    }
}

/// Ends a training after so many epochs in which a metric is not the best so far.
#[derive(Clone, Debug)]
pub struct EarlyStopping {
    metric: String,
    patience: usize,
    best: Best,
}

impl EarlyStopping {
    /// Waits for `patience` epochs in which `metric` is not the least so far.
    ///
    /// # Errors
    /// Where `patience` is 0.
    pub fn new(metric: impl Into<String>, patience: usize) -> Result<Self> {
        if patience == 0 {
            return Err(Error::argument("EarlyStopping", "patience is 0, not 1 or more"));
        }
        Ok(Self { metric: metric.into(), patience, best: Best::new(Goal::Least, 0.0)? })
    }

    /// With another goal, which is met where the metric is better by more than `by`.
    ///
    /// # Errors
    /// Where `by` is negative or not finite.
    pub fn goal(mut self, goal: Goal, by: f64) -> Result<Self> {
        self.best = Best::new(goal, by)?;
        Ok(self)
    }

    /// The best value so far, and how many epochs ago it was.
    pub fn best(&self) -> &Best {
        &self.best
    }
}

impl Callback for EarlyStopping {
    fn past(&mut self, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.epoch(at)
    }

    fn epoch(&mut self, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.best.take(at.metric(&self.metric)?);
        Ok(match self.best.since() >= self.patience {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }
}

/// Keeps the weights of the epoch in which a metric is best.
#[derive(Clone, Debug)]
pub struct KeepBest {
    metric: String,
    path: PathBuf,
    metadata: BTreeMap<String, String>,
    best: Best,
}

impl KeepBest {
    /// Writes the weights to `path`, a file of safetensors, after each epoch in which `metric` is the least so far.
    pub fn new(metric: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        let best = Best { goal: Goal::Least, by: 0.0, value: None, since: 0 };
        Self { metric: metric.into(), path: path.into(), metadata: BTreeMap::new(), best }
    }

    /// With another goal.
    pub fn goal(mut self, goal: Goal) -> Self {
        self.best.goal = goal;
        self
    }

    /// With entries for the file's metadata.
    pub fn metadata(mut self, metadata: BTreeMap<String, String>) -> Self {
        self.metadata = metadata;
        self
    }

    /// The best value so far, and how many epochs ago it was.
    pub fn best(&self) -> &Best {
        &self.best
    }
}

impl Callback for KeepBest {
    fn past(&mut self, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.best.take(at.metric(&self.metric)?);
        Ok(ControlFlow::Continue(()))
    }

    fn epoch(&mut self, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        if self.best.take(at.metric(&self.metric)?) {
            safetensors::save(&self.path, &(at.weights)()?, &self.metadata)?;
        }
        Ok(ControlFlow::Continue(()))
    }
}
