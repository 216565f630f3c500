//! Linear and bilinear maps, and none.

use cupola_core::{Array, DType, Error, Result, ops};

use super::cell::Param;
use super::{Layer, Module, init};
use crate::amp;

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
        project("linear", x, &self.weight, self.bias.as_ref())
    }
}

/// x·Wᵀ + b, where `op` asks for it.
pub(super) fn project(
    op: &'static str,
    x: &Array,
    weight: &Param,
    bias: Option<&Param>,
) -> Result<Array> {
    let weight = weight.get();
    let inputs = weight.shape()[1];
    if x.aval().shape.last() != Some(&inputs) {
        return Err(Error::shape(
            op,
            format!(
                "weight expects {inputs} input features, input is {} (weight {})",
                x.shape(),
                weight.shape()
            ),
        ));
    }
    let y = ops::matmul(x, &ops::transpose(&weight, ())?)?;
    match bias {
        Some(bias) => ops::add(&y, &amp::operand("matmul", &bias.get())?),
        None => Ok(y),
    }
}

/// x₂·Wᵢ·x₁ + bᵢ for each output feature i.
///
/// # Shapes
/// `[.., in1]` and `[.., in2]` give `[.., out]`; `weight` is `[out, in2, in1]` and `bias` `[out]`.
/// Both start even over ±1/√in1.
///
/// # Dtypes
/// Inputs and parameters promote.
///
/// # Example
/// ```
/// use cupola::{DType, nn::Bilinear, ops};
/// let layer = Bilinear::new(4, 3, 2)?;
/// let (x1, x2) = (ops::ones([5, 4], DType::F32)?, ops::ones([5, 3], DType::F32)?);
/// assert_eq!(layer.forward(&x1, &x2)?.shape()[..], [5, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct Bilinear {
    /// A matrix for each output feature.
    pub weight: Param,
    /// What is added.
    pub bias: Option<Param>,
}

impl Bilinear {
    /// A layer from `inputs1` and `inputs2` to `outputs` features, with a bias.
    ///
    /// # Errors
    /// Where a number is 0.
    pub fn new(inputs1: usize, inputs2: usize, outputs: usize) -> Result<Self> {
        if inputs1 == 0 || inputs2 == 0 || outputs == 0 {
            let detail =
                format!("inputs {inputs1} and {inputs2} and outputs {outputs} are at least 1");
            return Err(Error::argument("Bilinear", detail));
        }
        let bound = 1.0 / (inputs1 as f64).sqrt();
        let draw = |shape: &[usize]| init::uniform(-bound, bound, shape, DType::F32);
        Ok(Bilinear {
            weight: Param::new(draw(&[outputs, inputs2, inputs1])?),
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

    /// What the layer makes of `x1` and `x2`.
    ///
    /// # Errors
    /// Where the last axes are not those of the weight, or the other axes differ.
    pub fn forward(&self, x1: &Array, x2: &Array) -> Result<Array> {
        let weight = self.weight.get();
        let (inputs2, inputs1) = (weight.shape()[1], weight.shape()[2]);
        let fits = match (&x1.shape()[..], &x2.shape()[..]) {
            ([lead1 @ .., last1], [lead2 @ .., last2]) => {
                lead1 == lead2 && (*last1, *last2) == (inputs1, inputs2)
            }
            _ => false,
        };
        if !fits {
            let (x1, x2) = (x1.shape(), x2.shape());
            let detail = format!("takes [.., {inputs1}] and [.., {inputs2}], not {x1} and {x2}");
            return Err(Error::shape("Bilinear", detail));
        }
        // All matrices with x1 at once: [.., out·in2], then [.., out, in2].
        let rows = ops::flatten(&weight, 0, 1)?;
        let left = ops::matmul(x1, &ops::transpose(&rows, ())?)?;
        let left = ops::unflatten(&left, -1, [weight.shape()[0], inputs2])?;
        let y = ops::squeeze(&ops::matmul(&left, &ops::expand_dims(x2, -1)?)?, -1)?;
        match &self.bias {
            Some(bias) => ops::add(&y, &amp::operand("matmul", &bias.get())?),
            None => Ok(y),
        }
    }
}

/// The input as it is: the place of a layer, where none is wanted.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{Identity, Layer}};
/// let x = Array::scalar(1.5f32);
/// assert!(Identity.forward(&x)?.same(&x));
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Module)]
pub struct Identity;

impl Layer for Identity {
    fn forward(&self, x: &Array) -> Result<Array> {
        Ok(x.clone())
    }
}
