//! Layers that move elements about or fold them.

use cupola_core::ops::{DataFormat, Interpolation, PadMode, PadWidths, S, ScatterMode, Target};
use cupola_core::{Array, Result, ops};

use super::layer::wrong;
use super::{Held, Layer, Made};

/// Tensors one after the other along a dimension.
pub fn concatenation(dimension: isize) -> Layer {
    Layer::one("concatenation", 1..=usize::MAX, Vec::new(), move |given| {
        ops::concatenate(&given.inputs.iter().collect::<Vec<_>>(), dimension)
    })
}

/// The elements of the first tensor at the indices that are the second, along a dimension and at the same place
/// along the others.
pub fn gather(dimension: isize) -> Layer {
    Layer::one("gather", 2..=2, Vec::new(), move |given| {
        ops::take_along_axis(&given.inputs[0], &given.inputs[1], dimension)
    })
}

/// The first tensor with the elements at the indices that are the second, along a dimension and at the same place
/// along the others, replaced by those of the third, or with these added.
pub fn scatter(dimension: isize, adds: bool) -> Layer {
    Layer::one("scatter", 3..=3, Vec::new(), move |given| {
        let mode = if adds { ScatterMode::Add } else { ScatterMode::Set };
        ops::scatter_along_axis(given.x(), (&given.inputs[1], dimension), &given.inputs[2], mode)
    })
}

/// A border around images, `[(top, bottom), (left, right)]`: a number, or their own elements.
pub fn padding(sides: [(usize, usize); 2], mode: impl Into<PadMode>) -> Layer {
    let mode = mode.into();
    Layer::unary("padding", move |x| {
        let widths = PadWidths::Each(vec![(0, 0), (0, 0), sides[0], sides[1]]);
        ops::pad(x, widths, mode.clone())
    })
}

/// The same elements in another shape; -1 is what is left.
pub fn reshape(sizes: &[isize]) -> Layer {
    let sizes = sizes.to_vec();
    Layer::unary("reshape", move |x| ops::reshape(x, &sizes[..]))
}

/// The elements from a start to before an end, by steps, along each dimension.
pub fn slice(ranges: &[(isize, isize, isize)]) -> Layer {
    let ranges = ranges.to_vec();
    Layer::unary("slice", move |x| {
        let items: Vec<S> =
            ranges.iter().map(|&(start, end, step)| S::range(start..end).step(step)).collect();
        ops::index(x, &items)
    })
}

/// So many equal parts along a dimension: a tensor for each.
pub fn split(parts: usize, dimension: isize) -> Layer {
    several("split", move |x| ops::split(x, parts, dimension))
}

/// Parts of these lengths along a dimension.
pub fn split_at(lengths: &[usize], dimension: isize) -> Layer {
    let lengths = lengths.to_vec();
    several("split", move |x| {
        let axis = cupola_core::normalize_axis("split", dimension, x.rank())?;
        let ends: Vec<usize> =
            (1..=lengths.len()).map(|count| lengths[..count].iter().sum()).collect();
        if ends.last() != Some(&x.shape()[axis]) {
            return Err(wrong("split", format!("{lengths:?} are not the whole of {}", x.aval())));
        }
        ops::split(x, &ends[..ends.len() - 1], dimension)
    })
}

fn several(
    label: &str,
    forward: impl Fn(&Array) -> Result<Vec<Array>> + Send + Sync + 'static,
) -> Layer {
    Layer::new(label, 1..=1, Vec::new(), Vec::new(), move |given| {
        Ok(Made { results: forward(given.x())?, states: Held::new() })
    })
}

/// The dimensions in another order.
pub fn transpose(dimensions: &[isize]) -> Layer {
    let dimensions = dimensions.to_vec();
    Layer::unary("transpose", move |x| ops::transpose(x, &dimensions[..]))
}

/// Images in another size, `[height, width]`, by the nearest pixels, or lines between them.
pub fn upsample(size: [usize; 2], is_linear: bool, aligns_corners: bool) -> Layer {
    Layer::unary("upsample", move |x| {
        let mode = if is_linear { Interpolation::Linear } else { Interpolation::Nearest };
        let target = Target::Sizes(size.to_vec());
        let corners = aligns_corners && is_linear;
        DataFormat::ChannelsFirst.with(x, |x| ops::interpolate(x, &target, mode, corners))
    })
}

/// What a reduction makes of elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// Where the largest is, over one dimension.
    ArgMax,
    /// Where the smallest is, over one dimension.
    ArgMin,
    /// The sum of their sizes.
    L1Norm,
    /// Whether one is true.
    Any,
    /// Whether all are true.
    All,
}

/// A reduction over dimensions, which stay with size 1.
pub fn reduction(kind: Reduce, dimensions: &[isize]) -> Layer {
    let axes = dimensions.to_vec();
    Layer::unary(format!("reduction {kind:?}"), move |x| {
        let axes = &axes[..];
        match kind {
            Reduce::Sum => ops::sum(x, axes, true),
            Reduce::Mean => ops::mean(x, axes, true),
            Reduce::Max => ops::max(x, axes, true),
            Reduce::Min => ops::min(x, axes, true),
            Reduce::ArgMax => ops::argmax(x, axes, true),
            Reduce::ArgMin => ops::argmin(x, axes, true),
            Reduce::L1Norm => ops::sum(&ops::abs(x)?, axes, true),
            Reduce::Any => ops::any(x, axes, true),
            Reduce::All => ops::all(x, axes, true),
        }
    })
}

/// The products of the channels of images with each other, `[N, 1, C, C]`, times a scale.
pub fn gram_matrix(scale: f64) -> Layer {
    Layer::unary("gram_matrix", move |x| {
        let (batch, channels) = (x.shape()[0] as isize, x.shape()[1] as isize);
        let rows = ops::reshape(x, [batch, 1, channels, -1])?;
        ops::multiply(&ops::matmul(&rows, &ops::swapaxes(&rows, -1, -2)?)?, scale)
    })
}
