//! Convolutions.

use cupola_core::ops::{ConvOptions, DataFormat};

use super::pool::{padding, spatial};
use super::prelude::*;
use crate::lowering::conv::{transposed, with_bias};

struct Convolution {
    stride: Vec<usize>,
    dilation: Vec<usize>,
    groups: usize,
}

impl Convolution {
    fn of(n: &Node<'_>, x: &Array, w: &Array) -> Result<Convolution, Fault> {
        let axes = x.rank().saturating_sub(2);
        let stride = spatial(n, "strides", axes, 1)?;
        let dilation = spatial(n, "dilations", axes, 1)?;
        let groups = numbers::count(n.int_or("groups", 1)?)?;
        if axes == 0 || w.rank() != x.rank() || w.shape().contains(&0) {
            return Err(Fault::invalid(format!("{} with a kernel of {}", x.shape(), w.shape())));
        }
        if groups == 0 || stride.contains(&0) || dilation.contains(&0) {
            return Err(Fault::invalid("groups, a stride or a dilation of 0"));
        }
        Ok(Convolution { stride, dilation, groups })
    }
}

fn conv_of(n: &Node<'_>, w: &Array) -> Made {
    let x = n.x("x")?;
    let Convolution { stride, dilation, groups } = Convolution::of(n, x, w)?;
    let padding = padding(n, &x.shape()[2..], &w.shape()[2..], &stride, &dilation)?;
    let data_format = DataFormat::ChannelsFirst;
    let options =
        ConvOptions { padding, stride, dilation, groups, data_format, ..ConvOptions::default() };
    with_bias(ops::conv_general(x, w, &options)?, n.maybe("bias")?)
}

fn conv(n: &Node<'_>) -> Outcome {
    one(conv_of(n, n.x("weight")?)?)
}

/// Of a kernel of integers: those times a scale, plus a bias.
fn conv_quantized(n: &Node<'_>) -> Outcome {
    let kind = n.text("quantization_type", "linear")?;
    if kind != "linear" {
        return Err(Fault::unsupported(format!("kernels quantized by '{kind}' are not read")));
    }
    let (x, w) = (n.x("x")?, n.x("weight")?);
    let place = |values: &Array| -> Made {
        let mut sizes = vec![1; w.rank()];
        if let Some(first) = sizes.first_mut() {
            *first = values.size();
        }
        Ok(ops::reshape(values, sizes)?)
    };
    let scaled = ops::multiply(&ops::astype(w, x.dtype())?, &place(n.x("quant_scale")?)?)?;
    one(conv_of(n, &ops::add(&scaled, &place(n.x("quant_bias")?)?)?)?)
}

fn conv_transpose(n: &Node<'_>) -> Outcome {
    let (x, w) = (n.x("x")?, n.x("weight")?);
    let Convolution { stride, dilation, groups } = Convolution::of(n, x, w)?;
    let axes = x.rank() - 2;
    if x.shape().contains(&0) {
        return Err(Fault::invalid(format!("{} is empty", x.shape())));
    }
    let full = |i: usize| {
        let reach = (w.shape()[i + 2] - 1).saturating_mul(dilation[i]);
        (x.shape()[i + 2] - 1).saturating_mul(stride[i]).saturating_add(reach + 1)
    };
    let same = |i: usize| Some(x.shape()[i + 2].saturating_mul(stride[i]));
    let wanted = n.maybe_counts("output_shape")?;
    let wanted = match &wanted {
        Some(sizes) if sizes.len() == x.rank() => Some(&sizes[2..]),
        Some(sizes) => return Err(Fault::invalid(format!("the output_shape {sizes:?}"))),
        None => None,
    };
    let kind = n.text("pad_type", "valid")?;
    let mut cut = vec![(0i64, 0i64); axes];
    if kind == "custom" {
        let list = spatial(n, "pad", 2 * axes, 0)?;
        (0..axes).for_each(|i| cut[i] = (list[2 * i] as i64, list[2 * i + 1] as i64));
    }
    for (i, cut) in cut.iter_mut().enumerate() {
        let size = match (wanted, kind) {
            (Some(sizes), _) => Some(sizes[i]),
            (None, "same" | "same_lower") => same(i),
            (None, "valid" | "custom") => None,
            (None, other) => return Err(Fault::invalid(format!("the pad_type '{other}'"))),
        };
        let Some(size) = size else { continue };
        // What is too much is cut from both sides, the odd element behind; what is wanted beyond is added there.
        let over = full(i) as i64 - size as i64;
        *cut = match (kind, over >= 0) {
            ("custom", _) => (cut.0, over - cut.0),
            ("same_lower", true) => (over - over / 2, over / 2),
            ("same", true) => (over / 2, over - over / 2),
            _ => (0, over),
        };
    }
    let y = transposed(x, w, &stride, &dilation, groups, &cut)?;
    one(with_bias(y, n.maybe("bias")?)?)
}

pub const OPS: &[Entry] =
    &[("conv", conv), ("conv_quantized", conv_quantized), ("conv_transpose", conv_transpose)];
