//! Pooling.

use super::prelude::*;
use crate::lowering::windows::{Windows, same_pads};

/// A list with one number for each spatial axis.
pub fn spatial(n: &Node<'_>, name: &str, axes: usize, default: usize) -> Result<Vec<usize>, Fault> {
    match n.maybe_counts(name)? {
        None => Ok(vec![default; axes]),
        Some(list) if list.len() == axes => Ok(list),
        Some(list) => Err(Fault::invalid(format!("{name} {list:?}, where {axes} are wanted"))),
    }
}

/// The padding of an operation for windows over `sizes`.
pub fn padding(
    n: &Node<'_>,
    sizes: &[usize],
    window: &[usize],
    stride: &[usize],
    dilation: &[usize],
) -> Result<Vec<(usize, usize)>, Fault> {
    let axes = sizes.len();
    let same = |upper: bool| {
        let one = |i: usize| {
            let span = (window[i].max(1) - 1).saturating_mul(dilation[i]).saturating_add(1);
            let outputs = sizes[i].div_ceil(stride[i]);
            let reach = outputs.saturating_sub(1).saturating_mul(stride[i]).saturating_add(span);
            same_pads(reach.saturating_sub(sizes[i]), upper)
        };
        (0..axes).map(one).collect()
    };
    match n.text("pad_type", "valid")? {
        "valid" => Ok(vec![(0, 0); axes]),
        "custom" => {
            let list = spatial(n, "pad", 2 * axes, 0)?;
            Ok(list.chunks(2).map(|pair| (pair[0], pair[1])).collect())
        }
        "same" => Ok(same(true)),
        "same_lower" => Ok(same(false)),
        other => Err(Fault::invalid(format!("the pad_type '{other}' is not known"))),
    }
}

fn windows(n: &Node<'_>, x: &Array) -> Result<Windows, Fault> {
    let Some(sizes) = x.shape().get(2..).filter(|sizes| !sizes.is_empty()) else {
        return Err(Fault::invalid(format!("{} has no spatial axes", x.shape())));
    };
    let axes = sizes.len();
    let window = spatial(n, "kernel_sizes", axes, 1)?;
    let stride = spatial(n, "strides", axes, 1)?;
    if stride.contains(&0) {
        return Err(Fault::invalid("a stride is 0"));
    }
    let dilation = vec![1; axes];
    let pads = padding(n, sizes, &window, &stride, &dilation)?;
    Windows::over(sizes, window, stride, dilation, pads, n.flag("ceil_mode", false)?)
}

fn max_pool(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let windows = windows(n, x)?;
    one(ops::max_pool(x, &windows.options())?)
}

fn avg_pool(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let counted = !n.flag("exclude_padding_from_average", false)?;
    one(windows(n, x)?.average(x, counted)?)
}

fn l2_pool(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let wide = ops::astype(x, x.dtype().accumulator())?;
    let total = ops::sum(&windows(n, x)?.gathered(&ops::square(&wide)?, 0)?, -1, false)?;
    one(ops::astype(&ops::sqrt(&total)?, x.dtype())?)
}

pub const OPS: &[Entry] = &[("avg_pool", avg_pool), ("l2_pool", l2_pool), ("max_pool", max_pool)];
