//! The gradients of a training step, of a batch as a whole or in parts.

use cupola_core::{Array, DType, Error, Result, ops};

use super::metrics::count_correct;
use super::trainer::Trainer;
use crate::amp::autocast;
use crate::nn::{self, Gradients, Layer, Reduction};

/// What a batch gives: the mean loss, how many images were right, and the gradients.
pub(super) struct Learnt {
    pub loss: Array,
    pub correct: Array,
    pub gradients: Gradients,
}

impl Trainer {
    /// The gradients of a batch. In more than one part they are computed part by part, in the memory that one
    /// takes, and are the mean over all images.
    pub(super) fn learn(&self, images: Array, labels: Array) -> Result<Learnt> {
        let images = self.settings().augment.apply(images)?;
        let count = labels.size();
        let parts = self.settings().accumulate.min(count).max(1);
        if parts == 1 {
            return self.learn_part(&images, &labels);
        }
        let mut sum: Option<Learnt> = None;
        for part in 0..parts {
            let range = part * count / parts..(part + 1) * count / parts;
            let share = range.len() as f64 / count as f64;
            let rows = ops::arange_in(range.start as i64, range.end as i64, 1, DType::I32)?;
            let (images, labels) = (ops::take(&images, &rows, 0)?, ops::take(&labels, &rows, 0)?);
            let Learnt { loss, correct, gradients } = self.learn_part(&images, &labels)?;
            let shared = |x: &Array| ops::multiply(x, share);
            let own = Learnt {
                loss: shared(&loss)?,
                correct,
                gradients: gradients.map(|_, gradient| shared(gradient))?,
            };
            let total = match sum.take() {
                None => own,
                Some(sum) => Learnt {
                    loss: ops::add(&sum.loss, &own.loss)?,
                    correct: ops::add(&sum.correct, &own.correct)?,
                    gradients: own.gradients.map(|path, own| match sum.gradients.get(path) {
                        Some(sum) => ops::add(sum, own),
                        None => Ok(own.clone()),
                    })?,
                },
            };
            // Now, so that the next part finds the memory of this one free.
            let all = [&total.loss, &total.correct].into_iter().chain(total.gradients.values());
            cupola_core::eval(&all.cloned().collect::<Vec<_>>())?;
            sum = Some(total);
        }
        sum.ok_or_else(|| Error::argument("Trainer", "a batch has no images"))
    }

    fn learn_part(&self, images: &Array, labels: &Array) -> Result<Learnt> {
        let ((_, (loss, scores)), gradients) =
            nn::value_and_grad(&self.model().network, |network| {
                let (loss, scores) = autocast(self.policy.as_ref(), || {
                    let scores = network.forward(images)?;
                    Ok::<_, Error>((nn::nll_loss(&scores, labels, Reduction::Mean)?, scores))
                })?;
                let scaled = self.scaler.as_ref().map_or(Ok(loss.clone()), |s| s.scale(&loss))?;
                Ok((scaled, (loss, scores)))
            })?;
        let correct = count_correct(&scores, labels)?;
        Ok(Learnt { loss, correct, gradients })
    }
}
