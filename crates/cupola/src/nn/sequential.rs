//! Layers one after another.

use cupola_core::{Array, Result};

use super::{Layer, Module};

/// Layers of which each takes what the one before gave.
///
/// # Example
/// ```
/// use cupola::{DType, ops, nn::{Layer, Linear, Module, Relu, Sequential}};
/// let model = Sequential::new().push(Linear::new(4, 8)?).push(Relu).push(Linear::new(8, 2)?);
/// assert_eq!(model.forward(&ops::zeros([3, 4], DType::F32)?)?.shape()[..], [3, 2]);
/// assert!(model.parameters().contains_key("layers.2.bias"));
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Default, Module)]
pub struct Sequential {
    layers: Vec<Box<dyn Layer>>,
}

impl Sequential {
    /// No layers: gives what it takes.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more layer at the end.
    pub fn push(mut self, layer: impl Layer + 'static) -> Self {
        self.layers.push(Box::new(layer));
        self
    }

    /// How many layers there are.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The layers.
    pub fn layers(&self) -> impl Iterator<Item = &dyn Layer> {
        self.layers.iter().map(|layer| &**layer)
    }
}

impl FromIterator<Box<dyn Layer>> for Sequential {
    fn from_iter<I: IntoIterator<Item = Box<dyn Layer>>>(iter: I) -> Self {
        Sequential { layers: iter.into_iter().collect() }
    }
}

impl Layer for Sequential {
    fn forward(&self, x: &Array) -> Result<Array> {
        let mut y = x.clone();
        for layer in &self.layers {
            y = layer.forward(&y)?;
        }
        Ok(y)
    }
}
