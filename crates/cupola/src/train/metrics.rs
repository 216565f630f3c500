//! What is measured while a network trains.

use cupola_core::{Array, Result, ops};
use serde::{Deserialize, Serialize};

use crate::nn::{self, Layer, Reduction};

/// What one epoch came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochMetrics {
    /// The mean loss over the epoch's training images, each as it was seen, with dropout.
    pub train_loss: f64,
    /// The part of the training images that were classified rightly, as they were seen.
    pub train_accuracy: f64,
    /// The mean loss over the validation images after the epoch.
    pub val_loss: f64,
    /// The part of the validation images that are classified rightly after the epoch.
    pub val_accuracy: f64,
    /// How long training and validation took, in seconds.
    pub seconds: f64,
}

impl EpochMetrics {
    /// All of them by name.
    pub fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("train_loss", self.train_loss),
            ("train_accuracy", self.train_accuracy),
            ("val_loss", self.val_loss),
            ("val_accuracy", self.val_accuracy),
            ("seconds", self.seconds),
        ]
    }
}

/// What an epoch that is not over has come to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PartialEpoch {
    /// Its number, from 1.
    pub epoch: usize,
    /// How many training steps it had so far.
    pub steps: usize,
    /// The mean loss over the images seen.
    pub train_loss: f64,
    /// The part of them that were classified rightly.
    pub train_accuracy: f64,
    /// How long it took so far, in seconds.
    pub seconds: f64,
}

impl PartialEpoch {
    /// What it came to, by the names that [`EpochMetrics::named`] has for it.
    pub fn named(&self) -> [(&'static str, f64); 3] {
        let PartialEpoch { train_loss, train_accuracy, seconds, .. } = *self;
        [("train_loss", train_loss), ("train_accuracy", train_accuracy), ("seconds", seconds)]
    }
}

/// Sums over images, from which means are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// The sum of the losses of all images.
    pub loss: f64,
    /// How many were classified rightly.
    pub correct: u64,
    /// How many images there were.
    pub images: u64,
}

impl Tally {
    /// Takes in a batch of `images`, of which `correct` were right, with a mean loss of `loss`.
    pub fn add(&mut self, loss: f64, correct: u64, images: u64) {
        self.loss += loss * images as f64;
        self.correct += correct;
        self.images += images;
    }

    /// The mean loss, NaN of nothing.
    pub fn mean_loss(&self) -> f64 {
        self.loss / self.images as f64
    }

    /// The part that is right, NaN of nothing.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.images as f64
    }
}

/// The mean loss of log-probabilities `scores`, and how many rows put `labels` first; recorded.
pub(super) fn measure(scores: &Array, labels: &Array) -> Result<(Array, Array)> {
    let loss = nn::nll_loss(scores, labels, Reduction::Mean)?;
    Ok((loss, count_correct(scores, labels)?))
}

/// How many rows of `scores` are greatest at their label; recorded.
pub(super) fn count_correct(scores: &Array, labels: &Array) -> Result<Array> {
    let predicted = ops::astype(&ops::argmax(scores, -1, false)?, labels.dtype())?;
    let right = ops::astype(&ops::equal(&predicted, labels)?, cupola_core::DType::I32)?;
    ops::sum(&right, (), false)
}

/// Loss and hits of `model` over `batches`, or nothing where `each` gives false before the end. `each` gets what they
/// come to so far, and the model's scores for the images of the batch.
///
/// The model is to be in evaluation mode.
///
/// # Errors
///
/// Where a batch cannot be made or the model does not take it.
pub fn evaluate<E>(
    model: &(impl Layer + ?Sized),
    batches: impl Iterator<Item = Result<(Array, Array), E>>,
    mut each: impl FnMut(&Tally, &Array) -> bool,
) -> Result<Option<Tally>>
where
    cupola_core::Error: From<E>,
{
    let mut tally = Tally::default();
    for batch in batches {
        let (images, labels) = batch?;
        let scores = model.forward(&images)?;
        let (loss, correct) = measure(&scores, &labels)?;
        cupola_core::eval(&[loss.clone(), correct.clone()])?;
        let right = u64::try_from(correct.item::<i32>()?).unwrap_or(0);
        tally.add(f64::from(loss.item::<f32>()?), right, labels.size() as u64);
        if !each(&tally, &scores) {
            return Ok(None);
        }
    }
    Ok(Some(tally))
}
