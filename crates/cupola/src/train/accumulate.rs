//! A batch that is learnt from in parts.

use std::ops::Range;

use cupola_core::{Array, Error, Result, ops};

use crate::nn::Gradients;

/// Means and sums over the parts of a batch, each part computed before the next begins.
#[derive(Clone, Debug, Default)]
pub struct Accumulator {
    share: f64,
    means: Vec<Array>,
    sums: Vec<Array>,
}

impl Accumulator {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a part that is `share` of the batch: of `means` the mean over the batch is wanted, of `sums`
    /// the sum. All is computed at once, so that the next part finds the memory of this one free.
    ///
    /// # Errors
    /// Where there are not as many as the first time, shapes differ, or `share` is negative or not finite.
    pub fn add(&mut self, share: f64, means: Vec<Array>, sums: Vec<Array>) -> Result<()> {
        let wrong = |detail: String| Err(Error::argument("Accumulator", detail));
        if !(share.is_finite() && share >= 0.0) {
            return wrong(format!("the share {share} is not finite and at least 0"));
        }
        let is_first = self.share == 0.0 && self.means.is_empty() && self.sums.is_empty();
        let known = (self.means.len(), self.sums.len());
        if !is_first && known != (means.len(), sums.len()) {
            return wrong(format!(
                "{} means and {} sums, after {} and {}",
                means.len(),
                sums.len(),
                known.0,
                known.1
            ));
        }
        let shared = means.iter().map(|mean| ops::multiply(mean, share));
        let shared = shared.collect::<Result<Vec<_>>>()?;
        // What nobody holds is not kept.
        drop(means);
        let total = |former: &[Array], new: Vec<Array>| -> Result<Vec<Array>> {
            match is_first {
                true => Ok(new),
                false => former.iter().zip(&new).map(|(a, b)| ops::add(a, b)).collect(),
            }
        };
        let (means, sums) = (total(&self.means, shared)?, total(&self.sums, sums)?);
        cupola_core::eval(&means.iter().chain(&sums).cloned().collect::<Vec<_>>())?;
        (self.share, self.means, self.sums) = (self.share + share, means, sums);
        Ok(())
    }

    /// The means, and the sums.
    ///
    /// # Errors
    /// Where the shares do not come to 1.
    pub fn finish(self) -> Result<(Vec<Array>, Vec<Array>)> {
        match (self.share - 1.0).abs() < 1e-6 {
            true => Ok((self.means, self.sums)),
            false => Err(Error::argument(
                "Accumulator",
                format!("the shares come to {}, not to 1", self.share),
            )),
        }
    }
}

/// What a part of a batch gives.
pub struct Part {
    /// The mean loss.
    pub loss: Array,
    /// The gradients of it.
    pub gradients: Gradients,
    /// What is added up over the parts, such as how many were right.
    pub sums: Vec<Array>,
}

/// Where part number `index` of `parts` begins and ends in a batch of `count`.
pub fn part(count: usize, parts: usize, index: usize) -> Range<usize> {
    index * count / parts..(index + 1) * count / parts
}

/// The loss and the gradients of a batch of `count` samples that is gone through in `parts` parts: the memory
/// of a part, the step of the batch. `learn` gives those of the samples in a range.
///
/// # Errors
/// Where `count` or `parts` is 0, or `learn` fails.
///
/// # Example
/// ```
/// use cupola::nn::{self, Layer};
/// use cupola::train::{Part, accumulate};
/// use cupola::{DType, ops};
/// let model = nn::Linear::new(2, 1)?;
/// let (x, y) = (ops::ones([6, 2], DType::F32)?, ops::zeros([6, 1], DType::F32)?);
/// let all = accumulate(6, 4, |range| {
///     let rows = ops::arange_in(range.start as i64, range.end as i64, 1, DType::I32)?;
///     let (x, y) = (ops::take(&x, &rows, 0)?, ops::take(&y, &rows, 0)?);
///     let ((loss, ()), gradients) = nn::value_and_grad(&model, |model| {
///         Ok((nn::mse_loss(&model.forward(&x)?, &y, nn::Reduction::Mean)?, ()))
///     })?;
///     Ok(Part { loss, gradients, sums: vec![] })
/// })?;
/// assert_eq!(all.gradients["weight"].shape()[..], [1, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn accumulate(
    count: usize,
    parts: usize,
    mut learn: impl FnMut(Range<usize>) -> Result<Part>,
) -> Result<Part> {
    if count == 0 || parts == 0 {
        let detail = format!("{count} samples in {parts} parts: neither may be 0");
        return Err(Error::argument("accumulate", detail));
    }
    let parts = parts.min(count);
    if parts == 1 {
        return learn(0..count);
    }
    let (mut total, mut paths) = (Accumulator::new(), Vec::new());
    for index in 0..parts {
        let range = part(count, parts, index);
        let share = range.len() as f64 / count as f64;
        let Part { loss, gradients, sums } = learn(range)?;
        paths = gradients.keys().cloned().collect();
        let means: Vec<Array> = [&loss].into_iter().chain(gradients.values()).cloned().collect();
        // Only the sum holds them from here on.
        drop((loss, gradients));
        total.add(share, means, sums)?;
    }
    let (means, sums) = total.finish()?;
    let mut means = means.into_iter();
    let Some(loss) = means.next() else {
        return Err(Error::argument("accumulate", "no part gave a loss"));
    };
    Ok(Part { loss, gradients: paths.into_iter().zip(means).collect(), sums })
}
