//! What decides how a network is trained: with the data, all of it.

use cupola_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::Precision;

/// How to train. Two runs of the same settings on the same data give the same weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How many epochs in all.
    pub epochs: usize,
    /// How many images make a batch.
    pub batch_size: usize,
    /// How far the optimiser goes at a step.
    pub learning_rate: f64,
    /// The optimiser's name, one of [`OPTIMIZERS`](super::OPTIMIZERS).
    pub optimizer: String,
    /// What the weights, the order of the data, its split and the dropout are drawn from.
    pub seed: u64,
    /// What products are computed in; what the process has, where an earlier version said nothing.
    #[serde(default)]
    pub precision: Precision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            epochs: 5,
            batch_size: 512,
            learning_rate: 0.001,
            optimizer: "adam".to_owned(),
            seed: 0,
            precision: Precision::default(),
        }
    }
}

impl Settings {
    /// Looks whether all of it can be.
    ///
    /// # Errors
    ///
    /// Names the setting that cannot.
    pub fn check(&self) -> Result<()> {
        let wrong = |detail: String| Err(Error::argument("Settings", detail));
        if self.epochs == 0 {
            return wrong("epochs is 0, not 1 or more".to_owned());
        }
        if self.batch_size == 0 {
            return wrong("batch_size is 0, not 1 or more".to_owned());
        }
        if !(self.learning_rate.is_finite() && self.learning_rate > 0.0) {
            return wrong(format!(
                "learning_rate is {}, not finite and above 0",
                self.learning_rate
            ));
        }
        if !super::OPTIMIZERS.contains(&self.optimizer.as_str()) {
            return wrong(format!(
                "optimizer is '{}', not one of {}",
                self.optimizer,
                super::OPTIMIZERS.join(", ")
            ));
        }
        Ok(())
    }
}
