//! Convolutions with the channels before the spatial axes.

use cupola_core::ops::{ConvOptions, DataFormat};
use cupola_core::{Array, ops};

use super::Made;
use super::movement::part;
use crate::error::Fault;

/// One number a channel, in the shape that meets `[N, C, ..]`.
pub fn per_channel(values: &Array, rank: usize) -> Made {
    let mut sizes = vec![1; rank.max(2)];
    sizes[1] = values.size();
    Ok(ops::reshape(values, sizes)?)
}

/// With one number a channel added.
pub fn with_bias(y: Array, bias: Option<&Array>) -> Made {
    match bias {
        Some(bias) => Ok(ops::add(&y, &per_channel(bias, y.rank())?)?),
        None => Ok(y),
    }
}

/// The weight of a transposed convolution as that of a convolution: groups of inputs and outputs
/// change places.
fn turned(w: &Array, groups: usize) -> Made {
    let sizes = w.shape();
    let (inputs, outputs) = (sizes[0], sizes[1]);
    if groups == 0 || !inputs.is_multiple_of(groups) {
        return Err(Fault::invalid(format!("{groups} groups of a kernel of {sizes}")));
    }
    let mut split = vec![groups, inputs / groups, outputs];
    split.extend(&sizes[2..]);
    let swapped = ops::swapaxes(&ops::reshape(w, split)?, 1, 2)?;
    let mut joined = vec![groups * outputs, inputs / groups];
    joined.extend(&sizes[2..]);
    Ok(ops::reshape(&swapped, joined)?)
}

/// A transposed convolution, of whose full result `cut` says for each spatial axis what goes before and
/// behind; below 0, zeros are added.
pub fn transposed(
    x: &Array,
    w: &Array,
    stride: &[usize],
    dilation: &[usize],
    groups: usize,
    cut: &[(i64, i64)],
) -> Made {
    let mut widths = Vec::with_capacity(cut.len());
    for (i, &(before, after)) in cut.iter().enumerate() {
        let reach = (w.shape()[i + 2] - 1).saturating_mul(dilation[i]) as i64;
        widths.push((reach - before, reach - after));
    }
    let options = ConvOptions {
        padding: widths.iter().map(|&(a, b)| (a.max(0) as usize, b.max(0) as usize)).collect(),
        dilation: dilation.to_vec(),
        input_dilation: stride.to_vec(),
        groups,
        flip: true,
        data_format: DataFormat::ChannelsFirst,
        ..ConvOptions::default()
    };
    let mut y = ops::conv_general(x, &turned(w, groups)?, &options)?;
    for (i, &(before, after)) in widths.iter().enumerate() {
        let (start, stop) = ((-before).max(0), y.shape()[i + 2] as i64 + after.min(0));
        if before < 0 || after < 0 {
            y = part(&y, i + 2, start as usize, stop.max(start) as usize)?;
        }
    }
    Ok(y)
}
