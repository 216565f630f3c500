//! The gradients of a training step, of a batch as a whole or in parts.

use cupola_core::{Array, DType, Error, Result, ops};

use super::accumulate::{Part, accumulate};
use super::metrics::count_correct;
use super::trainer::Trainer;
use crate::amp::autocast;
use crate::nn::{self, Layer, Reduction};

impl Trainer {
    /// The gradients of a batch, whose sum is how many images were right. In more than one part they are
    /// computed part by part, in the memory that one takes, and are the mean over all images.
    pub(super) fn learn(&self, images: Array, labels: Array) -> Result<Part> {
        let images = self.settings().augment.apply(images)?;
        let count = labels.size();
        accumulate(count, self.settings().accumulate, |range| {
            if range.len() == count {
                return self.learn_part(&images, &labels);
            }
            let rows = ops::arange_in(range.start as i64, range.end as i64, 1, DType::I32)?;
            self.learn_part(&ops::take(&images, &rows, 0)?, &ops::take(&labels, &rows, 0)?)
        })
    }

    fn learn_part(&self, images: &Array, labels: &Array) -> Result<Part> {
        let ((_, (loss, scores)), gradients) =
            nn::value_and_grad(&self.model().network, |network| {
                let (loss, scores) = autocast(self.policy.as_ref(), || {
                    let scores = network.forward(images)?;
                    Ok::<_, Error>((nn::nll_loss(&scores, labels, Reduction::Mean)?, scores))
                })?;
                let scaled = self.scaler.as_ref().map_or(Ok(loss.clone()), |s| s.scale(&loss))?;
                Ok((scaled, (loss, scores)))
            })?;
        Ok(Part { loss, gradients, sums: vec![count_correct(&scores, labels)?] })
    }
}
