//! Pooling layers.

use cupola_core::{Array, Error, Result, ops};
use ops::{DataFormat, PerAxis, PoolOptions};

use super::{Layer, Module};

macro_rules! pooling {
    ($(#[$doc:meta])* $name:ident, $axes:literal, $record:path, $text:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Module)]
        pub struct $name {
            /// Window, steps, padding and dilation.
            pub options: PoolOptions,
        }

        impl $name {
            /// Windows of this size, side by side. A single number stands for every axis.
            pub fn new(window: impl Into<PerAxis>) -> Self {
                Self { options: PoolOptions::new(window) }
            }

            /// With these steps between windows.
            pub fn stride(mut self, stride: impl Into<PerAxis>) -> Self {
                self.options = self.options.stride(stride);
                self
            }

            /// With so much padding before and after the input.
            pub fn padding(mut self, padding: impl Into<PerAxis>) -> Self {
                self.options = self.options.padding(padding);
                self
            }

            /// With windows whose elements are so far apart.
            pub fn dilation(mut self, dilation: impl Into<PerAxis>) -> Self {
                self.options = self.options.dilation(dilation);
                self
            }

            /// With input and output in this format.
            pub fn data_format(mut self, data_format: DataFormat) -> Self {
                self.options = self.options.data_format(data_format);
                self
            }
        }

        impl Layer for $name {
            fn forward(&self, x: &Array) -> Result<Array> {
                expect_rank($text, x, $axes + 2)?;
                $record(x, &self.options)
            }
        }
    };
}

pooling! {
    /// The largest element of each window of a sequence.
    ///
    /// # Shapes
    /// `[N, L, C]` gives `[N, (L + 2·padding − (window − 1)·dilation − 1)/stride + 1, C]`.
    ///
    /// # Example
    /// ```
    /// use cupola::{Array, nn::{Layer, MaxPool1d}};
    /// let x = Array::from_slice(&[1.0f32, 4.0, 3.0, 2.0], [1, 4, 1])?;
    /// assert_eq!(MaxPool1d::new(2).forward(&x)?.to_vec::<f32>()?, [4.0, 3.0]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    MaxPool1d, 1, ops::max_pool, "MaxPool1d"
}

pooling! {
    /// The largest element of each window of an image.
    ///
    /// # Shapes
    /// `[N, H, W, C]` gives `[N, H', W', C]` with H' = (H + 2·padding − (window − 1)·dilation − 1)/stride + 1.
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{Layer, MaxPool2d}};
    /// let y = MaxPool2d::new(2).forward(&ops::zeros([4, 28, 28, 20], DType::F32)?)?;
    /// assert_eq!(y.shape()[..], [4, 14, 14, 20]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    MaxPool2d, 2, ops::max_pool, "MaxPool2d"
}

pooling! {
    /// The largest element of each window of a volume.
    ///
    /// # Shapes
    /// `[N, D, H, W, C]` gives `[N, D', H', W', C]`, each axis as in [`MaxPool2d`].
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{Layer, MaxPool3d}};
    /// let y = MaxPool3d::new(2).stride(1).forward(&ops::zeros([1, 3, 3, 3, 2], DType::F32)?)?;
    /// assert_eq!(y.shape()[..], [1, 2, 2, 2, 2]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    MaxPool3d, 3, ops::max_pool, "MaxPool3d"
}

pooling! {
    /// The mean of each window of a sequence; padding counts as zeros.
    ///
    /// # Shapes
    /// As [`MaxPool1d`].
    ///
    /// # Example
    /// ```
    /// use cupola::{Array, nn::{AvgPool1d, Layer}};
    /// let x = Array::from_slice(&[1.0f32, 4.0, 3.0, 2.0], [1, 4, 1])?;
    /// assert_eq!(AvgPool1d::new(2).forward(&x)?.to_vec::<f32>()?, [2.5, 2.5]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    AvgPool1d, 1, ops::avg_pool, "AvgPool1d"
}

pooling! {
    /// The mean of each window of an image; padding counts as zeros.
    ///
    /// # Shapes
    /// As [`MaxPool2d`].
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{AvgPool2d, Layer}};
    /// let y = AvgPool2d::new([2, 4]).forward(&ops::zeros([4, 8, 8, 3], DType::F32)?)?;
    /// assert_eq!(y.shape()[..], [4, 4, 2, 3]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    AvgPool2d, 2, ops::avg_pool, "AvgPool2d"
}

pooling! {
    /// The mean of each window of a volume; padding counts as zeros.
    ///
    /// # Shapes
    /// As [`MaxPool3d`].
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{AvgPool3d, Layer}};
    /// let y = AvgPool3d::new([1, 2, 2]).forward(&ops::zeros([1, 3, 4, 4, 2], DType::F32)?)?;
    /// assert_eq!(y.shape()[..], [1, 3, 2, 2, 2]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    AvgPool3d, 3, ops::avg_pool, "AvgPool3d"
}

fn expect_rank(op: &'static str, x: &Array, rank: usize) -> Result<()> {
    if x.rank() == rank {
        return Ok(());
    }
    Err(Error::shape(op, format!("takes {rank} axes, input is {}", x.aval())))
}
