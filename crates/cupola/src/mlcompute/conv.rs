//! Layers with windows over images: convolutions and pooling.

use cupola_core::ops::{ConvOptions, DataFormat, PoolOptions};
use cupola_core::{Array, Result, ops};

use super::layer::{named, uniform, wrong};
use super::{Layer, Tensor};

/// What is added around images, `[height, width]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Border {
    /// Nothing.
    Valid,
    /// So much that there are as many windows as strides fit into the image; of a transposed convolution, an output
    /// of the input's size times the stride.
    Same,
    /// So much on both sides.
    Each([usize; 2]),
}

/// A kind of convolution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConvKind {
    /// The usual one.
    Standard,
    /// Transposed.
    Transposed,
    /// With a group for each channel.
    Depthwise,
}

/// The parameters of a [`convolution`].
#[derive(Clone, Debug)]
pub struct Convolution {
    /// The kind; standard.
    pub kind: ConvKind,
    /// The channels of the input and of the output.
    pub channels: [usize; 2],
    /// The kernel's size.
    pub kernel: [usize; 2],
    /// Steps between windows; 1.
    pub stride: [usize; 2],
    /// Steps between elements of the kernel; 1.
    pub dilation: [usize; 2],
    /// What is added around images; nothing.
    pub border: Border,
    /// Groups of channels; 1.
    pub groups: usize,
    /// `[output channels, input channels / groups, height, width]`; drawn where they are not given.
    pub weights: Option<Tensor>,
    /// One an output channel; drawn where they are not given.
    pub biases: Option<Tensor>,
    /// Whether there are biases; yes.
    pub has_biases: bool,
}

impl Convolution {
    /// A standard one.
    pub fn new(channels: [usize; 2], kernel: usize) -> Self {
        Convolution {
            kind: ConvKind::Standard,
            channels,
            kernel: [kernel; 2],
            stride: [1; 2],
            dilation: [1; 2],
            border: Border::Valid,
            groups: 1,
            weights: None,
            biases: None,
            has_biases: true,
        }
    }
}

/// A convolution of images.
///
/// # Errors
/// Where the groups do not divide the channels, or a tensor that is given has another number of elements.
///
/// # Example
/// ```
/// use cupola::mlcompute::{self as mlc, Border, Convolution};
/// let options = Convolution { border: Border::Same, ..Convolution::new([3, 8], 5) };
/// assert_eq!(mlc::convolution(options)?.parameters()[0].1.to_string(), "float32[8, 3, 5, 5]");
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn convolution(options: Convolution) -> Result<Layer> {
    let [inputs, outputs] = options.channels;
    let groups = if options.kind == ConvKind::Depthwise { inputs } else { options.groups };
    if groups == 0 || !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
        let text = format!("{groups} groups do not divide {inputs} and {outputs} channels");
        return Err(wrong("convolution", text));
    }
    let shape = [outputs, inputs / groups, options.kernel[0], options.kernel[1]];
    let fan_in = shape[1..].iter().product();
    let weights = given("convolution", options.weights.clone(), &shape, fan_in)?;
    let mut parameters = vec![named("weights", weights)];
    if options.has_biases {
        let biases = given("convolution", options.biases.clone(), &[outputs], fan_in)?;
        parameters.push(named("biases", biases));
    }
    let label = format!("convolution {:?}", options.kind);
    Ok(Layer::one(label, 1..=1, parameters, move |given| {
        let kernel = ops::reshape(given.get("weights")?, shape)?;
        let kernel = DataFormat::ChannelsFirst.to_last(&kernel)?;
        DataFormat::ChannelsFirst.with(given.x(), |x| {
            let out = convolved(x, &kernel, &options, groups)?;
            if options.has_biases {
                return ops::add(&out, &given.get("biases")?.flatten()?);
            }
            Ok(out)
        })
    }))
}

/// The tensor that was given for a parameter, or a new one.
pub(super) fn given(
    label: &str,
    tensor: Option<Tensor>,
    shape: &[usize],
    fan_in: usize,
) -> Result<Tensor> {
    let Some(tensor) = tensor else { return uniform(shape, fan_in) };
    let have = tensor.data()?.size();
    if have != shape.iter().product::<usize>() {
        return Err(wrong(
            label,
            format!("a parameter has {have} numbers, not those of {shape:?}"),
        ));
    }
    Ok(tensor)
}

fn convolved(x: &Array, kernel: &Array, options: &Convolution, groups: usize) -> Result<Array> {
    let reach = [0, 1].map(|axis| (options.kernel[axis] - 1) * options.dilation[axis] + 1);
    let size = [x.shape()[1], x.shape()[2]];
    let base = ConvOptions::new().stride(options.stride).dilation(options.dilation).groups(groups);
    if options.kind != ConvKind::Transposed {
        let padding = sides(options.border, size, reach, options.stride).to_vec();
        return ops::conv_general(x, kernel, &ConvOptions { padding, ..base });
    }
    let full = [0, 1].map(|axis| (size[axis] - 1) * options.stride[axis] + reach[axis]);
    let wanted = [0, 1].map(|axis| size[axis] * options.stride[axis]);
    let (cut, more) = match options.border {
        Border::Same => (
            [0, 1].map(|axis| {
                let surplus = full[axis].saturating_sub(wanted[axis]);
                (surplus / 2, surplus - surplus / 2)
            }),
            [0, 1].map(|axis| wanted[axis].saturating_sub(full[axis])),
        ),
        border => (sides(border, full, reach, options.stride), [0, 0]),
    };
    let out = ops::conv_transpose2d(x, kernel, &base.output_padding(more))?;
    let mut parts = out;
    for (axis, (low, high)) in cut.into_iter().enumerate() {
        let end = parts.shape()[axis + 1];
        if low + high >= end {
            return Err(wrong("convolution", "nothing is left of the output"));
        }
        let kept = ops::split(&parts, &[low, end - high][..], axis as isize + 1)?;
        parts = kept.into_iter().nth(1).unwrap_or(parts);
    }
    Ok(parts)
}

/// What is added before and after each axis.
fn sides(
    border: Border,
    size: [usize; 2],
    reach: [usize; 2],
    stride: [usize; 2],
) -> [(usize, usize); 2] {
    [0, 1].map(|axis| match border {
        Border::Valid => (0, 0),
        Border::Each(both) => (both[axis], both[axis]),
        Border::Same => {
            let windows = size[axis].div_ceil(stride[axis].max(1)).max(1);
            let total = ((windows - 1) * stride[axis])
                .saturating_add(reach[axis])
                .saturating_sub(size[axis]);
            (total / 2, total - total / 2)
        }
    })
}

/// What is taken of each window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pooling {
    /// The largest element.
    Max,
    /// The mean; of what is added around images where `counts_border` says so.
    Average {
        /// Whether the border counts.
        counts_border: bool,
    },
    /// The root of the sum of squares.
    L2Norm,
}

/// One number of each window of images, whose elements are `dilation` apart.
pub fn pooling(
    kind: Pooling,
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    border: Border,
) -> Layer {
    Layer::unary(format!("pooling {kind:?}"), move |x| {
        let reach = [0, 1].map(|axis| {
            kernel[axis].saturating_sub(1).saturating_mul(dilation[axis]).saturating_add(1)
        });
        let around = sides(border, [x.shape()[2], x.shape()[3]], reach, stride);
        let widths = vec![(0, 0), around[0], around[1], (0, 0)];
        let options = PoolOptions::new(kernel).stride(stride).dilation(dilation);
        let padded = |x: &Array| ops::pad(x, ops::PadWidths::Each(widths.clone()), 0);
        let mean = |x: &Array| ops::avg_pool(&padded(x)?, &options);
        DataFormat::ChannelsFirst.with(x, |x| match kind {
            Pooling::Max => {
                let wide = ops::PadWidths::Each(widths.clone());
                ops::max_pool(&ops::pad(x, wide, f64::NEG_INFINITY)?, &options)
            }
            Pooling::Average { counts_border: true } => mean(x),
            Pooling::Average { counts_border: false } => {
                ops::divide(&mean(x)?, &mean(&ops::ones_like(x)?)?)
            }
            Pooling::L2Norm => {
                let size = (kernel[0] * kernel[1]) as f64;
                ops::sqrt(&ops::multiply(&mean(&ops::square(x)?)?, size)?)
            }
        })
    })
}
