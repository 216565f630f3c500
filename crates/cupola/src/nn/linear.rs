//! The linear layer.

use cupola_core::{Array, DType, Error, Result, ops};

use super::cell::Param;
use super::{Layer, Module, init};

/// x·Wᵀ + b.
///
/// # Shapes
/// `[.., in]` gives `[.., out]`; `weight` is `[out, in]` and `bias` `[out]`. Both start even over
/// ±1/√in.
///
/// # Example
/// ```
/// use cupola::{DType, ops, nn::{Layer, Linear}};
/// let layer = Linear::new(784, 10)?;
/// let y = layer.forward(&ops::zeros([32, 784], DType::F32)?)?;
/// assert_eq!(y.shape()[..], [32, 10]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct Linear {
    /// The matrix.
    pub weight: Param,
    /// What is added.
    pub bias: Option<Param>,
}

impl Linear {
    /// A layer from `inputs` to `outputs` features, with a bias.
    ///
    /// # Errors
    /// Where `inputs` or `outputs` is 0.
    pub fn new(inputs: usize, outputs: usize) -> Result<Self> {
        if inputs == 0 || outputs == 0 {
            let detail = format!("inputs {inputs} and outputs {outputs} are at least 1");
            return Err(Error::argument("Linear", detail));
        }
        let bound = 1.0 / (inputs as f64).sqrt();
        let draw = |shape: &[usize]| init::uniform(-bound, bound, shape, DType::F32);
        Ok(Linear {
            weight: Param::new(draw(&[outputs, inputs])?),
            bias: Some(Param::new(draw(&[outputs])?)),
        })
    }

    /// With a bias, or without.
    pub fn bias(mut self, bias: bool) -> Self {
        if !bias {
            self.bias = None;
        }
        self
    }
}

impl Layer for Linear {
    fn forward(&self, x: &Array) -> Result<Array> {
        let weight = self.weight.get();
        let inputs = weight.shape()[1];
        if x.shape().last() != Some(&inputs) {
            return Err(Error::shape(
                "linear",
                format!(
                    "weight expects {inputs} input features, input is {} (weight {})",
                    x.shape(),
                    weight.shape()
                ),
            ));
        }
        let y = ops::matmul(x, &ops::transpose(&weight, ())?)?;
        match &self.bias {
            Some(bias) => ops::add(&y, &bias.get()),
            None => Ok(y),
        }
    }
}
