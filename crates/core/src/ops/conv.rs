//! Convolutions over any number of spatial axes.

use super::operand::cast;
use super::{DataFormat, matmul, permute, reshape};
use crate::array::Array;
use crate::autocast;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::precision::matmul_precision;
use crate::prim::record::slice_axis;
use crate::prim::{Conv, ConvRole};
use crate::shape::{Dims, Shape, extent};

/// The parameters of a convolution. A list of one entry stands for every spatial axis.
///
/// # Example
/// ```
/// use cupola::ops::ConvOptions;
/// let options = ConvOptions::new().stride(2).padding([1, 2]).groups(4);
/// assert_eq!(options.padding, [(1, 1), (2, 2)]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConvOptions {
    /// Steps between outputs; 1.
    pub stride: Vec<usize>,
    /// Zeros before and after the input; 0.
    pub padding: Vec<(usize, usize)>,
    /// Steps between elements of the kernel; 1.
    pub dilation: Vec<usize>,
    /// Steps between elements of the input, with zeros between; 1.
    pub input_dilation: Vec<usize>,
    /// Rows and columns added at the far end by a transposed convolution; 0.
    pub output_padding: Vec<usize>,
    /// Channels are split into this many independent groups; 1.
    pub groups: usize,
    /// Whether the kernel runs backwards; false.
    pub flip: bool,
    /// Where input, kernel and output have their channels; last.
    pub data_format: DataFormat,
}

impl Default for ConvOptions {
    fn default() -> Self {
        ConvOptions {
            stride: vec![1],
            padding: vec![(0, 0)],
            dilation: vec![1],
            input_dilation: vec![1],
            output_padding: vec![0],
            groups: 1,
            flip: false,
            data_format: DataFormat::ChannelsLast,
        }
    }
}

/// One number for every spatial axis, or one for each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PerAxis(Vec<usize>);

impl From<usize> for PerAxis {
    fn from(value: usize) -> Self {
        PerAxis(vec![value])
    }
}

impl<const N: usize> From<[usize; N]> for PerAxis {
    fn from(values: [usize; N]) -> Self {
        PerAxis(values.to_vec())
    }
}

impl From<&[usize]> for PerAxis {
    fn from(values: &[usize]) -> Self {
        PerAxis(values.to_vec())
    }
}

impl From<Vec<usize>> for PerAxis {
    fn from(values: Vec<usize>) -> Self {
        PerAxis(values)
    }
}

impl PerAxis {
    /// The numbers, one or one an axis.
    pub(crate) fn into_vec(self) -> Vec<usize> {
        self.0
    }

    /// The same before and after each axis.
    pub(crate) fn into_pairs(self) -> Vec<(usize, usize)> {
        self.0.into_iter().map(|p| (p, p)).collect()
    }
}

impl ConvOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// With these steps between outputs.
    pub fn stride(mut self, stride: impl Into<PerAxis>) -> Self {
        self.stride = stride.into().into_vec();
        self
    }

    /// With so many zeros before and after the input.
    pub fn padding(mut self, padding: impl Into<PerAxis>) -> Self {
        self.padding = padding.into().into_pairs();
        self
    }

    /// With these steps between elements of the kernel.
    pub fn dilation(mut self, dilation: impl Into<PerAxis>) -> Self {
        self.dilation = dilation.into().into_vec();
        self
    }

    /// With these steps between elements of the input.
    pub fn input_dilation(mut self, dilation: impl Into<PerAxis>) -> Self {
        self.input_dilation = dilation.into().into_vec();
        self
    }

    /// With so much added at the far end by a transposed convolution.
    pub fn output_padding(mut self, padding: impl Into<PerAxis>) -> Self {
        self.output_padding = padding.into().into_vec();
        self
    }

    /// With this many groups.
    pub fn groups(mut self, groups: usize) -> Self {
        self.groups = groups;
        self
    }

    /// With the kernel backwards.
    pub fn flip(mut self, flip: bool) -> Self {
        self.flip = flip;
        self
    }

    /// With input, kernel and output in this format.
    pub fn data_format(mut self, data_format: DataFormat) -> Self {
        self.data_format = data_format;
        self
    }
}

/// `values` with one entry for each of `axes` spatial axes.
pub(crate) fn each_axis<T: Copy + std::fmt::Debug>(
    op: &'static str,
    what: &str,
    values: &[T],
    axes: usize,
) -> Result<Vec<T>> {
    match values {
        [value] => Ok(vec![*value; axes]),
        _ if values.len() == axes => Ok(values.to_vec()),
        _ => Err(Error::argument(
            op,
            format!(
                "{what} {values:?} does not have one entry or {axes}, one for each spatial axis"
            ),
        )),
    }
}

/// The steps between elements along axes of these sizes: those between one and no other do not matter, and kernels do
/// not have to count with them.
fn steps(sizes: &[usize], steps: &[usize]) -> Dims {
    sizes
        .iter()
        .zip(steps)
        .map(|(&size, &step)| if size == 1 { step.min(1) } else { step })
        .collect()
}

/// Input and weight in the dtype to convolve in.
fn promoted(x: &Array, w: &Array) -> Result<(Array, Array, DType)> {
    let dtype = x.dtype().promote(w.dtype()).to_inexact();
    Ok((cast(x, dtype)?, cast(w, dtype)?, dtype))
}

fn check_ranks(op: &'static str, x: &Array, w: &Array, spatial: Option<usize>) -> Result<usize> {
    let axes = spatial.unwrap_or(x.rank().saturating_sub(2));
    if axes == 0 || x.rank() != axes + 2 || w.rank() != axes + 2 {
        return Err(Error::shape(
            op,
            format!(
                "input and weight do not both have {axes} spatial axes between their first and \
                 last (input {}, weight {})",
                x.aval(),
                w.aval()
            ),
        ));
    }
    Ok(axes)
}

fn forward(
    op: &'static str,
    x: &Array,
    w: &Array,
    options: &ConvOptions,
    spatial: Option<usize>,
) -> Result<Array> {
    let w = options.data_format.to_last(w)?;
    options
        .data_format
        .with(x, |x| autocast::apply(op, [x, &w], |[x, w]| forward_in(op, x, w, options, spatial)))
}

/// [`forward`] in the dtype that the operands promote to.
fn forward_in(
    op: &'static str,
    x: &Array,
    w: &Array,
    options: &ConvOptions,
    spatial: Option<usize>,
) -> Result<Array> {
    let axes = check_ranks(op, x, w, spatial)?;
    let channels = w.shape()[axes + 1].saturating_mul(options.groups);
    if x.shape()[axes + 1] != channels || !w.shape()[0].is_multiple_of(options.groups.max(1)) {
        return Err(Error::shape(
            op,
            format!(
                "weight expects {channels} input channels{}, input has {} (input {}, weight {})",
                if options.groups == 1 {
                    String::new()
                } else {
                    format!(" in {} groups", options.groups)
                },
                x.shape()[axes + 1],
                x.shape(),
                w.shape()
            ),
        ));
    }
    let (x, w, dtype) = promoted(x, w)?;
    let kernel = Dims::from_slice(&w.shape()[1..=axes]);
    let stride: Dims = each_axis(op, "stride", &options.stride, axes)?.into();
    let padding = each_axis(op, "padding", &options.padding, axes)?;
    let dilation: Dims = each_axis(op, "dilation", &options.dilation, axes)?.into();
    let input_dilation: Dims =
        each_axis(op, "input dilation", &options.input_dilation, axes)?.into();
    let is_all_ones = |sizes: &Dims| sizes.iter().all(|&size| size == 1);
    let is_whole = |(&k, &pad): (&usize, &(usize, usize))| k > 0 && pad == (k - 1, k - 1);
    let is_transposed = options.flip
        && is_all_ones(&stride)
        && is_all_ones(&dilation)
        && kernel.iter().zip(&padding).all(is_whole);
    if is_transposed && lies_side_by_side(&x, &kernel, &input_dilation, options.groups) {
        return side_by_side(&x, &w);
    }
    let input = Dims::from_slice(&x.shape()[1..=axes]);
    let conv = Conv {
        role: ConvRole::Forward,
        dilation: steps(&kernel, &dilation),
        input_dilation: steps(&input, &input_dilation),
        input,
        kernel,
        stride,
        padding,
        groups: options.groups,
        flip: options.flip,
        accumulate: dtype.accumulator(),
        result: dtype,
        precision: matmul_precision(),
    };
    Array::apply(conv, &[&x, &w])
}

/// The convolution of x with a kernel w, over any number of spatial axes.
///
/// # Shapes
/// x `[N, input.., C]` and w `[O, kernel.., C/groups]` give `[N, output.., O]`; with channels first x `[N, C, input..]`
/// and w `[O, C/groups, kernel..]` give `[N, O, output..]`. As in every framework the kernel does not run backwards,
/// unless `flip` says so.
///
/// # Dtypes
/// Both promote; half types accumulate in `float32`; integers and bool are taken as `float32`.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let (x, w) = (ops::ones([1, 8, 8, 3], DType::F32)?, ops::ones([4, 3, 3, 3], DType::F32)?);
/// let y = ops::conv_general(&x, &w, &ops::ConvOptions::new().padding(1))?;
/// assert_eq!(y.shape()[..], [1, 8, 8, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn conv_general(x: &Array, w: &Array, options: &ConvOptions) -> Result<Array> {
    forward("conv_general", x, w, options, None)
}

/// [`conv_general`] over one spatial axis.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let (x, w) = (ops::ones([1, 8, 3], DType::F32)?, ops::ones([4, 3, 3], DType::F32)?);
/// let y = ops::conv1d(&x, &w, &ops::ConvOptions::new().stride(2).padding(1))?;
/// assert_eq!(y.shape()[..], [1, 4, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn conv1d(x: &Array, w: &Array, options: &ConvOptions) -> Result<Array> {
    forward("conv1d", x, w, options, Some(1))
}

/// [`conv_general`] over two spatial axes.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let (x, w) = (ops::ones([1, 8, 8, 3], DType::F32)?, ops::ones([4, 3, 3, 3], DType::F32)?);
/// let y = ops::conv2d(&x, &w, &ops::ConvOptions::new().stride(2).padding(1))?;
/// assert_eq!(y.shape()[..], [1, 4, 4, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn conv2d(x: &Array, w: &Array, options: &ConvOptions) -> Result<Array> {
    forward("conv2d", x, w, options, Some(2))
}

/// [`conv_general`] over three spatial axes.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let (x, w) = (ops::ones([1, 8, 8, 8, 3], DType::F32)?, ops::ones([4, 3, 3, 3, 3], DType::F32)?);
/// let y = ops::conv3d(&x, &w, &ops::ConvOptions::new().stride(2).padding(1))?;
/// assert_eq!(y.shape()[..], [1, 4, 4, 4, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn conv3d(x: &Array, w: &Array, options: &ConvOptions) -> Result<Array> {
    forward("conv3d", x, w, options, Some(3))
}

/// The transposed convolution over one spatial axis: the gradient of a convolution by its input.
///
/// # Shapes
/// x `[N, input.., C]` and w `[O, kernel.., C/groups]`, as in MLX, give `[N, output.., O]` with
/// (input − 1)·stride + (kernel − 1)·dilation + 1 + output padding − padding outputs along an axis. With channels first
/// x `[N, C, input..]` and w `[O, C/groups, kernel..]` give `[N, O, output..]`.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let (x, w) = (ops::ones([1, 4, 3], DType::F32)?, ops::ones([4, 3, 3], DType::F32)?);
/// let y = ops::conv_transpose1d(&x, &w, &ops::ConvOptions::new().stride(2))?;
/// assert_eq!(y.shape()[..], [1, 9, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn conv_transpose1d(x: &Array, w: &Array, options: &ConvOptions) -> Result<Array> {
    transposed("conv_transpose1d", x, w, options, 1)
}

/// The transposed convolution over two spatial axes; see [`conv_transpose1d`].
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let (x, w) = (ops::ones([1, 4, 4, 3], DType::F32)?, ops::ones([4, 3, 3, 3], DType::F32)?);
/// let y = ops::conv_transpose2d(&x, &w, &ops::ConvOptions::new().stride(2))?;
/// assert_eq!(y.shape()[..], [1, 9, 9, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn conv_transpose2d(x: &Array, w: &Array, options: &ConvOptions) -> Result<Array> {
    transposed("conv_transpose2d", x, w, options, 2)
}

/// The transposed convolution over three spatial axes; see [`conv_transpose1d`].
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let (x, w) = (ops::ones([1, 4, 4, 4, 3], DType::F32)?, ops::ones([4, 3, 3, 3, 3], DType::F32)?);
/// let y = ops::conv_transpose3d(&x, &w, &ops::ConvOptions::new().stride(2))?;
/// assert_eq!(y.shape()[..], [1, 9, 9, 9, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn conv_transpose3d(x: &Array, w: &Array, options: &ConvOptions) -> Result<Array> {
    transposed("conv_transpose3d", x, w, options, 3)
}

fn transposed(
    op: &'static str,
    x: &Array,
    w: &Array,
    options: &ConvOptions,
    spatial: usize,
) -> Result<Array> {
    let w = options.data_format.to_last(w)?;
    options.data_format.with(x, |x| {
        autocast::apply(op, [x, &w], |[x, w]| transposed_in(op, x, w, options, spatial))
    })
}

/// Solves for the input: what a transposed convolution computes.
fn transposed_in(
    op: &'static str,
    x: &Array,
    w: &Array,
    options: &ConvOptions,
    spatial: usize,
) -> Result<Array> {
    let axes = check_ranks(op, x, w, Some(spatial))?;
    let groups = options.groups;
    let channels = w.shape()[axes + 1].saturating_mul(groups);
    if groups == 0 || x.shape()[axes + 1] != channels || !w.shape()[0].is_multiple_of(groups) {
        return Err(Error::shape(
            op,
            format!(
                "weight expects {channels} input channels, input has {} (input {}, weight {})",
                x.shape()[axes + 1],
                x.shape(),
                w.shape()
            ),
        ));
    }
    let (x, w, dtype) = promoted(x, w)?;
    let stride = each_axis(op, "stride", &options.stride, axes)?;
    let padding = each_axis(op, "padding", &options.padding, axes)?;
    let dilation = each_axis(op, "dilation", &options.dilation, axes)?;
    let extra = each_axis(op, "output padding", &options.output_padding, axes)?;
    if extra.iter().zip(&stride).any(|(e, s)| e >= s) {
        return with_rows_beyond(op, &x, &w, options, (padding, extra));
    }
    let size = |i: usize| {
        let (n, k) = (x.shape()[i + 1], w.shape()[i + 1]);
        let reach = extent(k.max(1), dilation[i], (0, extra[i]));
        let full = reach.and_then(|reach| extent(n.max(1), stride[i], (0, reach - 1)));
        let size = full.and_then(|full| full.checked_sub(padding[i].0)?.checked_sub(padding[i].1));
        size.filter(|&size| size > 0).ok_or_else(|| {
            Error::shape(
                op,
                format!(
                    "stride {stride:?}, dilation {dilation:?} and padding {padding:?} leave nothing, \
                     or more than an address space (input {}, weight {})",
                    x.shape(),
                    w.shape()
                ),
            )
        })
    };
    let input = (0..axes).map(size).collect::<Result<_>>()?;
    let kernel = Dims::from_slice(&w.shape()[1..=axes]);
    let is_plain = !options.flip
        && extra.iter().all(|&e| e == 0)
        && padding.iter().all(|&pad| pad == (0, 0))
        && dilation.iter().all(|&d| d == 1);
    if is_plain && lies_side_by_side(&x, &kernel, &stride, groups) {
        return side_by_side(&x, &w);
    }
    let conv = Conv {
        role: ConvRole::InputGrad,
        input,
        dilation: steps(&kernel, &dilation),
        kernel,
        stride: stride.into(),
        padding: padding.clone(),
        input_dilation: Dims::from_elem(1, axes),
        groups,
        flip: options.flip,
        accumulate: dtype.accumulator(),
        result: dtype,
        precision: matmul_precision(),
    };
    Array::apply(conv, &[&x, &exchange_channels(&w, groups)?])
}

/// A transposed convolution with so much output padding that no window of the convolution ends there: zeros follow what
/// it gives without padding, which then takes its rows away.
fn with_rows_beyond(
    op: &'static str,
    x: &Array,
    w: &Array,
    options: &ConvOptions,
    (padding, extra): (Vec<(usize, usize)>, Vec<usize>),
) -> Result<Array> {
    let all = ConvOptions { padding: vec![(0, 0)], output_padding: vec![0], ..options.clone() };
    let y = transposed_in(op, x, w, &all, extra.len())?;
    let beyond = extra.into_iter().map(|extra| (0, extra));
    let sides: Vec<(usize, usize)> = [(0, 0)].into_iter().chain(beyond).chain([(0, 0)]).collect();
    let mut y = super::pad(&y, &sides[..], 0)?;
    for (axis, &(before, after)) in padding.iter().enumerate() {
        let size = y.shape()[axis + 1];
        let left = size.checked_sub(before).and_then(|left| left.checked_sub(after));
        let left = left.filter(|&left| left > 0).ok_or_else(|| {
            Error::shape(
                op,
                format!("padding {padding:?} leaves nothing of {size} along axis {axis}"),
            )
        })?;
        y = slice_axis(&y, axis + 1, before, left)?;
    }
    Ok(y)
}

/// Whether what becomes of the elements of `x` in a transposed convolution neither overlaps nor leaves gaps.
fn lies_side_by_side(x: &Array, kernel: &[usize], steps: &[usize], groups: usize) -> bool {
    let is_empty = x.shape()[1..=kernel.len()].contains(&0);
    groups == 1 && !is_empty && steps == kernel && kernel.iter().any(|&k| k > 1)
}

/// A transposed convolution whose steps are as large as its kernel: what becomes of the elements lies side by side, and
/// each is a product of its channels.
fn side_by_side(x: &Array, w: &Array) -> Result<Array> {
    let axes = x.rank() - 2;
    let (lead, channels) = (&x.shape()[..=axes], x.shape()[axes + 1]);
    let (outputs, kernel) = (w.shape()[0], &w.shape()[1..=axes]);
    let size = |sizes: &[usize]| sizes.iter().fold(1usize, |all, &n| all.saturating_mul(n));
    let (taps, rows) = (size(kernel), size(lead));
    let order: Dims = [axes + 1].into_iter().chain(1..=axes).chain([0]).collect();
    let columns = reshape(&permute(w, order)?, [channels, taps.saturating_mul(outputs)])?;
    let product = matmul(&reshape(x, [rows, channels])?, &columns)?;
    // Along each axis the taps of an element follow it.
    let apart: Dims = lead.iter().chain(kernel).copied().chain([outputs]).collect();
    let beside = (1..=axes).flat_map(|axis| [axis, axes + axis]);
    let order: Dims = [0].into_iter().chain(beside).chain([2 * axes + 1]).collect();
    let apart = permute(&reshape(&product, Shape::from(&apart[..]))?, order)?;
    let sizes = lead[1..].iter().zip(kernel).map(|(n, k)| n.saturating_mul(*k));
    reshape(&apart, [lead[0]].into_iter().chain(sizes).chain([outputs]).collect::<Shape>())
}

/// `[O, k.., C/g]` as `[C, k.., O/g]`, group by group.
fn exchange_channels(w: &Array, groups: usize) -> Result<Array> {
    let last = w.rank() - 1;
    let swap = |w: &Array, first: usize| {
        let mut order: Dims = (0..w.rank()).collect();
        order.swap(first, w.rank() - 1);
        permute(w, order)
    };
    if groups == 1 {
        return swap(w, 0);
    }
    let split = super::unflatten(w, 0, [groups, w.shape()[0] / groups])?;
    debug_assert_eq!(split.rank(), last + 2);
    super::flatten(&swap(&split, 1)?, 0, 1)
}
