//! Dropout.

use cupola_core::{Array, Error, Result, ops};

use super::cell::Mode;
use super::{Layer, Module};

/// Zeros a random part of the elements while training, and scales the others so that the mean
/// stays; gives x itself in evaluation mode.
///
/// N. Srivastava et al., *Dropout: a simple way to prevent neural networks from overfitting*,
/// JMLR 15, 2014. Random numbers come from the default generator.
///
/// # Example
/// ```
/// use cupola::{DType, ops, nn::{Dropout, Layer, Module}};
/// let (layer, x) = (Dropout::new(0.5)?, ops::ones([1000], DType::F32)?);
/// let y = layer.forward(&x)?.to_vec::<f32>()?;
/// assert!(y.iter().all(|v| [0.0, 2.0].contains(v)));
/// layer.eval();
/// assert!(layer.forward(&x)?.same(&x));
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct Dropout {
    probability: f64,
    mode: Mode,
}

impl Dropout {
    /// Zeros each element with this probability.
    ///
    /// # Errors
    /// Where `probability` is not in [0, 1).
    pub fn new(probability: f64) -> Result<Self> {
        if !(0.0..1.0).contains(&probability) {
            let detail = format!("probability {probability} is not in [0, 1)");
            return Err(Error::argument("Dropout", detail));
        }
        Ok(Dropout { probability, mode: Mode::new() })
    }
}

impl Layer for Dropout {
    fn forward(&self, x: &Array) -> Result<Array> {
        if !x.dtype().is_inexact() {
            return Err(Error::dtype("Dropout", format!("takes floats, input is {}", x.aval())));
        }
        if self.probability == 0.0 || !self.mode.is_training() {
            return Ok(x.clone());
        }
        let keep = 1.0 - self.probability;
        let kept = ops::random::bernoulli(keep, x.shape(), None)?;
        // Selected, not multiplied: what is dropped may be infinite or NaN.
        ops::where_(&kept, &ops::multiply(x, 1.0 / keep)?, 0)
    }
}
