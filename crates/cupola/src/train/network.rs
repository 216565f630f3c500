//! The network of the article *PyTorch and MLX for Apple Silicon*.

use cupola_core::{Array, Error, Result, ops};

use crate::nn::{self, Conv2d, Dropout, Layer, Linear, MaxPool2d, Module};

/// Three blocks of convolution, ReLU and pooling, then three linear layers; gives the logarithms
/// of the classes' probabilities.
///
/// With images of side d and n = 100·⌊d/8⌋²: convolutions c→20→50→100 of 5×5 with padding 2, each
/// followed by ReLU and a maximum over 2×2; linear layers n→⌊n/2⌋→⌊n/4⌋→k, each followed by a
/// dropout of 0.3, the last one too, as in the article.
///
/// # Shapes
///
/// From images `[n, d, d, c]` to `[n, k]`.
///
/// # Example
///
/// ```
/// use cupola::nn::Module;
/// use cupola::train::ConvNet;
///
/// assert_eq!(ConvNet::new(1, 28, 10)?.num_parameters(), 659_855);
/// assert_eq!(ConvNet::new(3, 32, 10)?.num_parameters(), 1_756_880);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Debug, Module)]
pub struct ConvNet {
    conv1: Conv2d,
    conv2: Conv2d,
    conv3: Conv2d,
    pool: MaxPool2d,
    linear1: Linear,
    linear2: Linear,
    linear3: Linear,
    dropout: Dropout,
}

impl ConvNet {
    /// The name that files give this network.
    pub const ARCHITECTURE: &'static str = "article-convnet";

    /// The smallest side of an image that leaves a pixel after three poolings.
    pub const MIN_SIDE: usize = 8;

    /// A network for square images, with weights from the default random generator.
    ///
    /// # Errors
    ///
    /// Where there is no channel or no class, or `side` is below 8.
    pub fn new(channels: usize, side: usize, classes: usize) -> Result<Self> {
        if channels == 0 || classes == 0 || side < Self::MIN_SIDE {
            return Err(Error::argument(
                "ConvNet",
                format!(
                    "{channels} channels, side {side} and {classes} classes: at least 1, {} and 1 \
                     are needed",
                    Self::MIN_SIDE
                ),
            ));
        }
        let conv =
            |inputs, outputs| -> Result<Conv2d> { Ok(Conv2d::new(inputs, outputs, 5)?.padding(2)) };
        let features = 100 * (side / 8) * (side / 8);
        Ok(Self {
            conv1: conv(channels, 20)?,
            conv2: conv(20, 50)?,
            conv3: conv(50, 100)?,
            pool: MaxPool2d::new(2),
            linear1: Linear::new(features, features / 2)?,
            linear2: Linear::new(features / 2, features / 4)?,
            linear3: Linear::new(features / 4, classes)?,
            dropout: Dropout::new(0.3)?,
        })
    }

    fn block(&self, conv: &Conv2d, x: &Array) -> Result<Array> {
        self.pool.forward(&nn::relu(&conv.forward(x)?)?)
    }
}

impl Layer for ConvNet {
    fn forward(&self, x: &Array) -> Result<Array> {
        let x = self.block(&self.conv1, x)?;
        let x = self.block(&self.conv2, &x)?;
        let x = self.block(&self.conv3, &x)?;
        let features: usize = x.shape()[1..].iter().product();
        let x = ops::reshape(&x, [x.shape()[0], features])?;
        let x = nn::relu(&self.dropout.forward(&self.linear1.forward(&x)?)?)?;
        let x = self.dropout.forward(&self.linear2.forward(&x)?)?;
        let x = self.dropout.forward(&self.linear3.forward(&x)?)?;
        ops::log_softmax(&x, -1)
    }
}
