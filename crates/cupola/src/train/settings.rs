//! What decides how a network is trained: with the data, all of it.

use cupola_core::{Array, Error, Result};
use serde::{Deserialize, Serialize};

use super::Precision;
use crate::data::{random_crop, random_flip};

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
    /// In how many parts a batch is trained on, whose gradients are added up: less memory, the same step.
    #[serde(default = "one")]
    pub accumulate: usize,
    /// What is done to the images that are trained on.
    #[serde(default)]
    pub augment: Augment,
    /// After how many epochs in which the validation loss is not the least so far the training ends.
    #[serde(default)]
    pub patience: Option<usize>,
    /// Whether the weights of the epoch with the least validation loss are kept, too.
    #[serde(default)]
    pub keep_best: bool,
}

fn one() -> usize {
    1
}

/// Random changes of the images that are trained on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Augment {
    /// Whether half of them are mirrored ([`random_flip`]).
    pub flip: bool,
    /// By how many pixels they are shifted at most ([`random_crop`]).
    pub crop: usize,
}

impl std::fmt::Display for Augment {
    /// As `cupola train --augment` says it: `flip,crop`, or `none`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match (self.flip, self.crop > 0) {
            (true, true) => "flip,crop",
            (true, false) => "flip",
            (false, true) => "crop",
            (false, false) => "none",
        })
    }
}

impl Augment {
    /// The images of a batch, changed.
    pub(super) fn apply(self, images: Array) -> Result<Array> {
        let images = if self.crop > 0 { random_crop(&images, self.crop, None)? } else { images };
        if self.flip { random_flip(&images, None) } else { Ok(images) }
    }
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
            accumulate: 1,
            augment: Augment::default(),
            patience: None,
            keep_best: false,
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
        if self.accumulate == 0 {
            return wrong("accumulate is 0, not 1 or more".to_owned());
        }
        if self.patience == Some(0) {
            return wrong("patience is 0, not 1 or more".to_owned());
        }
        if self.augment.crop > 1 << 10 {
            return wrong(format!("augment.crop is {}, more than 1024", self.augment.crop));
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
