//! Vectors for indices.

use cupola_core::{Array, DType, Error, Result, ops};

use super::cell::Param;
use super::{Layer, Module, init};
use crate::amp;

/// A learned vector for each of a number of indices.
///
/// # Shapes
/// Indices `[..]` give `[.., dims]`; `weight` is `[count, dims]` and starts normal with standard
/// deviation 1/√dims.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{Embedding, Layer}};
/// let layer = Embedding::new(100, 8)?;
/// let y = layer.forward(&Array::from_slice(&[3, 3, 99], [3])?)?;
/// assert_eq!(y.shape()[..], [3, 8]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct Embedding {
    /// The vectors.
    pub weight: Param,
}

impl Embedding {
    /// Vectors of `dims` numbers for `count` indices.
    ///
    /// # Errors
    /// Where `count` or `dims` is 0.
    pub fn new(count: usize, dims: usize) -> Result<Self> {
        if count == 0 || dims == 0 {
            let detail = format!("count {count} and dims {dims} are at least 1");
            return Err(Error::argument("Embedding", detail));
        }
        let scale = 1.0 / (dims as f64).sqrt();
        Ok(Embedding { weight: Param::new(init::normal(0.0, scale, [count, dims], DType::F32)?) })
    }

    /// The products of `x` with every vector: a linear layer that shares the weight.
    ///
    /// # Shapes
    /// `[.., dims]` gives `[.., count]`.
    ///
    /// # Errors
    /// Where the last axis of `x` is not `dims`.
    pub fn as_linear(&self, x: &Array) -> Result<Array> {
        ops::matmul(x, &ops::transpose(&self.weight.get(), ())?)
    }
}

impl Layer for Embedding {
    fn forward(&self, x: &Array) -> Result<Array> {
        if !x.dtype().is_integer() {
            return Err(Error::dtype("Embedding", format!("takes indices, input is {}", x.aval())));
        }
        amp::result("embedding", &ops::take(&self.weight.get(), x, 0)?)
    }
}
