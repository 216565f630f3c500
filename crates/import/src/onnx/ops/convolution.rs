//! Convolutions.

use cupola_core::ops::{ConvOptions, DataFormat};

use super::pool::{pads, spatial};
use super::prelude::*;
use crate::lowering::conv::{transposed, with_bias};
use crate::lowering::windows::same_pads;

/// A convolution of `[N, C, ..]` with `[O, C/groups, ..]`, as a node says it.
pub fn conv_of(n: &Node<'_>, x: &Array, w: &Array) -> Made {
    let axes = x.rank().saturating_sub(2);
    if axes == 0 || w.rank() != x.rank() {
        return Err(Fault::invalid(format!("{} with a kernel of {}", x.shape(), w.shape())));
    }
    let window = spatial(n, "kernel_shape", axes, 0)?;
    if n.ints("kernel_shape")?.is_some() && window != w.shape()[2..] {
        return Err(Fault::invalid(format!(
            "kernel_shape {window:?}, the kernel is {}",
            w.shape()
        )));
    }
    let window = w.shape()[2..].to_vec();
    let stride = spatial(n, "strides", axes, 1)?;
    let dilation = spatial(n, "dilations", axes, 1)?;
    if stride.contains(&0) || dilation.contains(&0) {
        return Err(Fault::invalid("a stride or dilation is 0"));
    }
    let options = ConvOptions {
        padding: pads(n, &x.shape()[2..], &window, &stride, &dilation)?,
        stride,
        dilation,
        groups: node::count(n.int("group", 1)?)?,
        data_format: DataFormat::ChannelsFirst,
        ..ConvOptions::default()
    };
    Ok(ops::conv_general(x, w, &options)?)
}

fn conv(n: &Node<'_>) -> Outcome {
    let y = conv_of(n, n.x(0)?, n.x(1)?)?;
    n.like(with_bias(y, n.maybe(2)?)?, 0)
}

fn conv_transpose(n: &Node<'_>) -> Outcome {
    let (x, w) = (n.x(0)?, n.x(1)?);
    let axes = x.rank().saturating_sub(2);
    if axes == 0 || w.rank() != x.rank() {
        return Err(Fault::invalid(format!("{} with a kernel of {}", x.shape(), w.shape())));
    }
    let groups = node::count(n.int("group", 1)?)?;
    let stride = spatial(n, "strides", axes, 1)?;
    let dilation = spatial(n, "dilations", axes, 1)?;
    let added = spatial(n, "output_padding", axes, 0)?;
    if stride.contains(&0)
        || dilation.contains(&0)
        || x.shape().contains(&0)
        || w.shape().contains(&0)
    {
        return Err(Fault::invalid("a stride, dilation or size is 0"));
    }
    let auto = n.text("auto_pad", "NOTSET")?;
    let wanted = n.ints("output_shape")?.map(|sizes| node::counts(&sizes)).transpose()?;
    let mut given = vec![(0, 0); axes];
    if let ("NOTSET" | "", Some(list)) = (auto, n.ints("pads")?) {
        let list = node::counts(&list)?;
        if list.len() != 2 * axes {
            return Err(Fault::invalid(format!("pads {list:?} for {axes} spatial axes")));
        }
        (0..axes).for_each(|i| given[i] = (list[i], list[i + axes]));
    }
    let mut widths = Vec::with_capacity(axes);
    for i in 0..axes {
        let reach = (w.shape()[i + 2] - 1).saturating_mul(dilation[i]);
        let full =
            (x.shape()[i + 2] - 1).saturating_mul(stride[i]).saturating_add(reach + 1 + added[i]);
        let size = match &wanted {
            Some(sizes) => {
                Some(sizes[sizes.len().saturating_sub(axes)..].get(i).copied().unwrap_or(0))
            }
            None if auto.starts_with("SAME") => x.shape()[i + 2].checked_mul(stride[i]),
            None => None,
        };
        let (before, after) = match size {
            // What is too much is cut, what is too little is added behind.
            Some(size) => {
                let (a, b) = same_pads(
                    full.saturating_sub(size),
                    auto != "SAME_LOWER" && auto.starts_with("SAME"),
                );
                let (a, b) = if auto.starts_with("SAME") { (a, b) } else { (b, a) };
                let (a, b) = if auto.starts_with("SAME") { (a, b) } else { (a.max(b), a.min(b)) };
                (a as i64, b as i64 - size.saturating_sub(full) as i64)
            }
            None => (given[i].0 as i64, given[i].1 as i64),
        };
        widths.push((before, after - added[i] as i64));
    }
    let y = transposed(x, w, &stride, &dilation, groups, &widths)?;
    n.like(with_bias(y, n.maybe(2)?)?, 0)
}

pub const OPS: &[Entry] = &[("Conv", 1, conv), ("ConvTranspose", 1, conv_transpose)];
