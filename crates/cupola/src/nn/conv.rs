//! Convolutions.

use std::borrow::Cow;

use cupola_core::{Array, DType, Error, Result, ops};
use ops::{ConvOptions, DataFormat, PerAxis};

use super::cell::Param;
use super::{Layer, Module, init};
use crate::amp;

macro_rules! convolution {
    (
        $(#[$doc:meta])* $name:ident, $axes:literal, $record:path, $text:literal
        $(, $transposed:ident)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Module)]
        pub struct $name {
            /// The kernels, `[out, kernel.., in/groups]`.
            pub weight: Param,
            /// What is added to each output channel.
            pub bias: Option<Param>,
            /// Steps, padding, dilation, groups, and the format of input and output.
            pub options: ConvOptions,
        }

        impl $name {
            /// A convolution from `inputs` to `outputs` channels, with a bias, steps of 1 and no
            /// padding. A single kernel size stands for every axis.
            ///
            /// # Errors
            /// Where a size is 0 or the kernel has the wrong number of axes.
            pub fn new(inputs: usize, outputs: usize, kernel: impl Into<PerAxis>) -> Result<Self> {
                let kernel = kernel_sizes($text, kernel.into(), $axes)?;
                let (weight, bias) = draw($text, inputs, outputs, &kernel, 1)?;
                Ok(Self { weight, bias: Some(bias), options: ConvOptions::new() })
            }

            /// With these steps between outputs.
            pub fn stride(mut self, stride: impl Into<PerAxis>) -> Self {
                self.options = self.options.stride(stride);
                self
            }

            /// With so many zeros before and after the input.
            pub fn padding(mut self, padding: impl Into<PerAxis>) -> Self {
                self.options = self.options.padding(padding);
                self
            }

            /// With these steps between the elements of the kernel.
            pub fn dilation(mut self, dilation: impl Into<PerAxis>) -> Self {
                self.options = self.options.dilation(dilation);
                self
            }

            /// With the channels in so many independent groups; draws the parameters anew.
            ///
            /// # Errors
            /// Where `groups` does not divide both numbers of channels.
            pub fn groups(mut self, groups: usize) -> Result<Self> {
                let shape = self.weight.shape();
                let inputs = shape[shape.rank() - 1] * self.options.groups;
                let kernel = &shape[1..shape.rank() - 1];
                let (weight, bias) = draw($text, inputs, shape[0], kernel, groups)?;
                self.weight = weight;
                self.bias = self.bias.map(|_| bias);
                self.options = self.options.groups(groups);
                Ok(self)
            }

            /// With input and output in this format. The kernels keep theirs.
            pub fn data_format(mut self, data_format: DataFormat) -> Self {
                self.options = self.options.data_format(data_format);
                self
            }

            /// With a bias, or without.
            pub fn bias(mut self, bias: bool) -> Self {
                if !bias {
                    self.bias = None;
                }
                self
            }

            $(
                /// With so many places added at the far end of each axis, fewer than the steps.
                pub fn $transposed(mut self, padding: impl Into<PerAxis>) -> Self {
                    self.options = self.options.$transposed(padding);
                    self
                }
            )?
        }

        impl Layer for $name {
            fn forward(&self, x: &Array) -> Result<Array> {
                self.options.data_format.with(x, |x| {
                    let y = $record(x, &self.weight.get(), &channels_last(&self.options))?;
                    match &self.bias {
                        Some(bias) => ops::add(&y, &amp::operand("conv_general", &bias.get())?),
                        None => Ok(y),
                    }
                })
            }
        }
    };
}

convolution! {
    /// A convolution over sequences.
    ///
    /// # Shapes
    /// `[N, L, in]` gives `[N, (L + 2·padding − dilation·(kernel − 1) − 1)/stride + 1, out]`.
    /// Parameters start even over ±1/√(in/groups·kernel).
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{Conv1d, Layer}};
    /// let layer = Conv1d::new(3, 8, 5)?.stride(2).padding(2);
    /// let y = layer.forward(&ops::zeros([4, 16, 3], DType::F32)?)?;
    /// assert_eq!(y.shape()[..], [4, 8, 8]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    Conv1d, 1, ops::conv1d, "Conv1d"
}

convolution! {
    /// A convolution over images.
    ///
    /// # Shapes
    /// `[N, H, W, in]` gives `[N, H', W', out]` with
    /// H' = (H + 2·padding − dilation·(kernel − 1) − 1)/stride + 1. Parameters start even over
    /// ±1/√(in/groups·kernel area).
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{Conv2d, Layer}};
    /// let layer = Conv2d::new(1, 20, 5)?.padding(2);
    /// let y = layer.forward(&ops::zeros([4, 28, 28, 1], DType::F32)?)?;
    /// assert_eq!(y.shape()[..], [4, 28, 28, 20]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    Conv2d, 2, ops::conv2d, "Conv2d"
}

convolution! {
    /// A convolution over volumes.
    ///
    /// # Shapes
    /// `[N, D, H, W, in]` gives `[N, D', H', W', out]`, each axis as in [`Conv2d`]. Parameters start
    /// even over ±1/√(in/groups·kernel volume).
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{Conv3d, Layer}};
    /// let layer = Conv3d::new(3, 8, [1, 3, 3])?.padding([0, 1, 1]);
    /// let y = layer.forward(&ops::zeros([1, 4, 6, 6, 3], DType::F32)?)?;
    /// assert_eq!(y.shape()[..], [1, 4, 6, 6, 8]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    Conv3d, 3, ops::conv3d, "Conv3d"
}

convolution! {
    /// A transposed convolution over sequences: the shape of a convolution's input from its
    /// output's.
    ///
    /// # Shapes
    /// `[N, L, in]` gives `[N, L', out]`, the axis as in [`ConvTranspose2d`]. Parameters start even
    /// over ±1/√(in/groups·kernel).
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{ConvTranspose1d, Layer}};
    /// let layer = ConvTranspose1d::new(8, 3, 4)?.stride(2).padding(1);
    /// let y = layer.forward(&ops::zeros([4, 10, 8], DType::F32)?)?;
    /// assert_eq!(y.shape()[..], [4, 20, 3]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    ConvTranspose1d, 1, ops::conv_transpose1d, "ConvTranspose1d", output_padding
}

convolution! {
    /// A transposed convolution over images: the shape of a convolution's input from its output's.
    ///
    /// # Shapes
    /// `[N, H, W, in]` gives `[N, H', W', out]` with
    /// H' = (H − 1)·stride − 2·padding + dilation·(kernel − 1) + output_padding + 1. Parameters
    /// start even over ±1/√(in/groups·kernel area).
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{ConvTranspose2d, Layer}};
    /// let layer = ConvTranspose2d::new(8, 3, 2)?.stride(2);
    /// let y = layer.forward(&ops::zeros([4, 7, 7, 8], DType::F32)?)?;
    /// assert_eq!(y.shape()[..], [4, 14, 14, 3]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    ConvTranspose2d, 2, ops::conv_transpose2d, "ConvTranspose2d", output_padding
}

convolution! {
    /// A transposed convolution over volumes: the shape of a convolution's input from its output's.
    ///
    /// # Shapes
    /// `[N, D, H, W, in]` gives `[N, D', H', W', out]`, each axis as in [`ConvTranspose2d`].
    /// Parameters start even over ±1/√(in/groups·kernel volume).
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, nn::{ConvTranspose3d, Layer}};
    /// let layer = ConvTranspose3d::new(8, 3, 2)?.stride(2);
    /// let y = layer.forward(&ops::zeros([1, 2, 3, 3, 8], DType::F32)?)?;
    /// assert_eq!(y.shape()[..], [1, 4, 6, 6, 3]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    ConvTranspose3d, 3, ops::conv_transpose3d, "ConvTranspose3d", output_padding
}

/// The same for input and kernels with channels last.
fn channels_last(options: &ConvOptions) -> Cow<'_, ConvOptions> {
    match options.data_format {
        DataFormat::ChannelsLast => Cow::Borrowed(options),
        DataFormat::ChannelsFirst => {
            Cow::Owned(options.clone().data_format(DataFormat::ChannelsLast))
        }
    }
}

/// One size an axis.
fn kernel_sizes(op: &'static str, kernel: PerAxis, axes: usize) -> Result<Vec<usize>> {
    let sizes = ConvOptions::new().dilation(kernel).dilation;
    match sizes[..] {
        [size] => Ok(vec![size; axes]),
        _ if sizes.len() == axes => Ok(sizes),
        _ => {
            let detail = format!("kernel {sizes:?} is not of {axes} axes");
            Err(Error::argument(op, detail))
        }
    }
}

/// Weight and bias, even over ±1/√fan-in.
fn draw(
    op: &'static str,
    inputs: usize,
    outputs: usize,
    kernel: &[usize],
    groups: usize,
) -> Result<(Param, Param)> {
    if inputs == 0 || outputs == 0 || kernel.contains(&0) {
        let detail =
            format!("channels {inputs} and {outputs} and kernel {kernel:?} are at least 1");
        return Err(Error::argument(op, detail));
    }
    if groups == 0 || !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
        let detail = format!("groups {groups} do not divide channels {inputs} and {outputs}");
        return Err(Error::argument(op, detail));
    }
    let mut shape = vec![outputs];
    shape.extend(kernel);
    shape.push(inputs / groups);
    let bound = 1.0 / (shape[1..].iter().product::<usize>() as f64).sqrt();
    let draw = |shape: &[usize]| init::uniform(-bound, bound, shape, DType::F32);
    Ok((Param::new(draw(&shape)?), Param::new(draw(&[outputs])?)))
}
