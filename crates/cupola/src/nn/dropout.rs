//! Dropout: of elements, and of whole channels.

use cupola_core::{Array, Error, Result, Shape, ops};

use super::cell::Mode;
use super::{Layer, Module};

macro_rules! dropout {
    ($(#[$doc:meta])* $name:ident, $text:literal, $what:literal, $spatial:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Module)]
        pub struct $name {
            probability: f64,
            mode: Mode,
        }

        impl $name {
            #[doc = concat!("Zeros each ", $what, " with this probability.")]
            ///
            /// # Errors
            /// Where `probability` is not in [0, 1).
            pub fn new(probability: f64) -> Result<Self> {
                if !(0.0..1.0).contains(&probability) {
                    let detail = format!("probability {probability} is not in [0, 1)");
                    return Err(Error::argument($text, detail));
                }
                Ok(Self { probability, mode: Mode::new() })
            }
        }

        impl Layer for $name {
            fn forward(&self, x: &Array) -> Result<Array> {
                expect_input($text, x, $spatial)?;
                let active = self.probability > 0.0 && self.mode.is_training();
                if active { drop_some(x, self.probability, $spatial) } else { Ok(x.clone()) }
            }
        }
    };
}

dropout! {
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
    Dropout, "Dropout", "element", None
}

dropout! {
    /// Zeros random channels of images while training, and scales the others so that the mean
    /// stays; gives x itself in evaluation mode.
    ///
    /// J. Tompson et al., *Efficient object localization using convolutional networks*, CVPR 2015.
    /// Random numbers come from the default generator.
    ///
    /// # Shapes
    /// `[N, H, W, C]` and `[H, W, C]` stay.
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{Dropout2d, Layer}};
    /// let y = Dropout2d::new(0.5)?.forward(&ops::ones([2, 2, 1], DType::F32)?)?.to_vec::<f32>()?;
    /// assert!(y == [0.0; 4] || y == [2.0; 4]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    Dropout2d, "Dropout2d", "channel", Some(2)
}

dropout! {
    /// Zeros random channels of volumes while training, and scales the others so that the mean
    /// stays; gives x itself in evaluation mode. As [`Dropout2d`] with one axis more.
    ///
    /// # Shapes
    /// `[N, D, H, W, C]` and `[D, H, W, C]` stay.
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{Dropout3d, Layer}};
    /// let x = ops::ones([2, 1, 2, 1], DType::F32)?;
    /// let y = Dropout3d::new(0.5)?.forward(&x)?.to_vec::<f32>()?;
    /// assert!(y == [0.0; 4] || y == [2.0; 4]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    Dropout3d, "Dropout3d", "channel", Some(3)
}

/// Floats, and where channels are dropped so many axes between them and at most one of examples.
fn expect_input(op: &'static str, x: &Array, spatial: Option<usize>) -> Result<()> {
    if !x.dtype().is_inexact() {
        return Err(Error::dtype(op, format!("takes floats, input is {}", x.aval())));
    }
    match spatial {
        Some(axes) if x.rank() != axes + 1 && x.rank() != axes + 2 => {
            let (fewer, more) = (axes + 1, axes + 2);
            let detail = format!("takes {fewer} or {more} axes, input is {}", x.aval());
            Err(Error::shape(op, detail))
        }
        _ => Ok(()),
    }
}

/// Zeros elements with this probability, or the channels behind so many axes, and scales the rest.
fn drop_some(x: &Array, probability: f64, spatial: Option<usize>) -> Result<Array> {
    let channels = x.rank().saturating_sub(1);
    let shared = channels - spatial.unwrap_or(0).min(channels)..channels;
    let drawn: Shape =
        (0..x.rank()).map(|i| if shared.contains(&i) { 1 } else { x.shape()[i] }).collect();
    let keep = 1.0 - probability;
    let kept = ops::random::bernoulli(keep, &drawn, None)?;
    // Selected, not multiplied: what is dropped may be infinite or NaN.
    ops::where_(&kept, &ops::multiply(x, 1.0 / keep)?, 0)
}
