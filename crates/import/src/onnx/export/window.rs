//! Convolutions and poolings. Channels come last in Cupola and second in the format.

#![deny(clippy::wildcard_enum_match_arm)]

use cupola_core::prim::{Conv, ConvRole, Pool, PoolRole};
use cupola_core::{Aval, DType, Result, Shape};

use super::kernel::multiplied;
use super::writer::{Attr, Val, Writer, unsupported};

/// The axes with the last one second.
fn first(rank: usize) -> Vec<usize> {
    [0, rank - 1].into_iter().chain(1..rank - 1).collect()
}

/// The axes with the second one last.
fn last(rank: usize) -> Vec<usize> {
    [0].into_iter().chain(2..rank).chain([1]).collect()
}

fn ints(sizes: impl IntoIterator<Item = usize>) -> Vec<i64> {
    sizes.into_iter().map(|size| size as i64).collect()
}

/// Widths of the padding before each axis, then behind each.
fn pads(padding: &[(usize, usize)]) -> Vec<i64> {
    ints(padding.iter().map(|p| p.0).chain(padding.iter().map(|p| p.1)))
}

pub fn conv(w: &mut Writer, op: &Conv, args: &[Val], out: &Aval) -> Result<Val> {
    let wide = multiplied(args[0].dtype)?;
    if !wide.is_float() {
        return Err(unsupported(format!("convolutions of {} have no operator", args[0].dtype)));
    }
    let rank = args[0].shape.rank();
    let (a, b) = (w.cast(&args[0], wide)?, w.cast(&args[1], wide)?);
    let (a, b) = (w.transpose(&a, &first(rank)), w.transpose(&b, &first(rank)));
    let spatial: Vec<usize> = (2..rank).collect();
    let group = Attr::Int("group", op.groups as i64);
    let found = match op.role {
        ConvRole::Forward => {
            let x = spread(w, &a, &op.input_dilation)?;
            let b = if op.flip { w.flip(&b, &spatial)? } else { b };
            let attributes = [
                Attr::Ints("strides", ints(op.stride.iter().copied())),
                Attr::Ints("dilations", ints(op.dilation.iter().copied())),
                Attr::Ints("pads", pads(&op.padding)),
                group,
            ];
            let shape = moved(out);
            w.val("Conv", &[&x, &b], &attributes, &shape[..], wide)
        }
        ConvRole::InputGrad => {
            let b = if op.flip { w.flip(&b, &spatial)? } else { b };
            // Of the spread input, of which the elements of the input are some.
            let wide_sizes: Vec<usize> = (op.input.iter().zip(&op.input_dilation))
                .map(|(&size, &step)| if size == 0 { 0 } else { (size - 1) * step + 1 })
                .collect();
            let mut missing = Vec::with_capacity(spatial.len());
            for (i, &size) in wide_sizes.iter().enumerate() {
                let reach = (a.shape[i + 2].max(1) - 1) * op.stride[i]
                    + (op.kernel[i] - 1) * op.dilation[i]
                    + 1;
                let padded = size + op.padding[i].0 + op.padding[i].1;
                missing.push(padded - reach.min(padded));
            }
            let attributes = [
                Attr::Ints("strides", ints(op.stride.iter().copied())),
                Attr::Ints("dilations", ints(op.dilation.iter().copied())),
                Attr::Ints("pads", pads(&op.padding)),
                Attr::Ints("output_padding", ints(missing)),
                group,
            ];
            let shape = moved(out);
            let mut all = shape.clone();
            all[2..].copy_from_slice(&wide_sizes);
            let found = w.val("ConvTranspose", &[&a, &b], &attributes, &all[..], wide);
            let steps: Vec<usize> = [1, 1].into_iter().chain(op.input_dilation.clone()).collect();
            w.slice(&found, &vec![0; rank], &shape, &steps)?
        }
        ConvRole::WeightGrad if op.groups > 1 => {
            return Err(unsupported(
                "the gradient of a grouped convolution's kernel has no operator",
            ));
        }
        ConvRole::WeightGrad => {
            // The images are the channels: a convolution of x with dy, whose steps are the dilations.
            let swapped: Vec<usize> = [1, 0].into_iter().chain(2..rank).collect();
            let (x, dy) = (w.transpose(&a, &swapped), w.transpose(&b, &swapped));
            let x = spread(w, &x, &op.input_dilation)?;
            let attributes = [
                Attr::Ints("strides", ints(op.dilation.iter().copied())),
                Attr::Ints("dilations", ints(op.stride.iter().copied())),
                Attr::Ints("pads", pads(&op.padding)),
            ];
            let mut shape = vec![x.shape[0], dy.shape[0]];
            for i in 0..rank - 2 {
                let padded = x.shape[i + 2] + op.padding[i].0 + op.padding[i].1;
                let reach = (dy.shape[i + 2].max(1) - 1) * op.stride[i] + 1;
                shape.push((padded - reach.min(padded)) / op.dilation[i] + 1);
            }
            let found = w.val("Conv", &[&x, &dy], &attributes, &shape[..], wide);
            let found = w.transpose(&found, &swapped);
            let cut = w.slice(&found, &vec![0; rank], &moved(out), &vec![1; rank])?;
            if op.flip { w.flip(&cut, &spatial)? } else { cut }
        }
    };
    let found = w.transpose(&found, &last(rank));
    w.cast(&found, op.result)
}

/// The shape of a result with its channels second.
fn moved(out: &Aval) -> Vec<usize> {
    first(out.shape.rank()).into_iter().map(|axis| out.shape[axis]).collect()
}

/// x, channels second, with zeros between its neighbours.
fn spread(w: &mut Writer, x: &Val, dilation: &[usize]) -> Result<Val> {
    let none = vec![0; x.shape.rank()];
    let between: Vec<usize> = [0, 0].into_iter().chain(dilation.iter().map(|d| d - 1)).collect();
    let zero = w.scalar(0.0, x.dtype)?;
    w.pad(x, &zero, &none, &none, &between)
}

pub fn pool(w: &mut Writer, op: &Pool, x: &Val, out: &Aval) -> Result<Val> {
    let own = x.dtype;
    let rank = x.shape.rank();
    if !own.is_float() {
        return Err(unsupported(format!("poolings of {own} have no operator")));
    }
    let wide = if own == DType::F64 { own } else { DType::F32 };
    let x = w.cast(x, wide)?;
    let x = w.transpose(&x, &first(rank));
    let mut attributes = vec![
        Attr::Ints("kernel_shape", ints(op.window.iter().copied())),
        Attr::Ints("strides", ints(op.stride.iter().copied())),
        Attr::Ints("pads", pads(&op.padding)),
    ];
    let dilations = Attr::Ints("dilations", ints(op.dilation.iter().copied()));
    let shape = moved(out);
    let found = match op.role {
        PoolRole::Max => {
            attributes.push(dilations);
            w.val("MaxPool", &[&x], &attributes, &shape[..], wide)
        }
        PoolRole::Sum if op.dilation.iter().any(|&d| d > 1) => {
            // `AveragePool` has dilations from opset 19 on only; a convolution of each channel with ones always has.
            let channels = x.shape[1];
            let kernel: Shape = [channels, 1].into_iter().chain(op.window.clone()).collect();
            let one = w.scalar(1.0, wide)?;
            let ones = w.full(&one, &kernel)?;
            attributes.extend([dilations, Attr::Int("group", channels as i64)]);
            w.val("Conv", &[&x, &ones], &attributes, &shape[..], wide)
        }
        PoolRole::Sum => {
            attributes.push(Attr::Int("count_include_pad", 1));
            let mean = w.val("AveragePool", &[&x], &attributes, &shape[..], wide);
            let count = w.scalar(op.window.iter().product::<usize>() as f64, wide)?;
            w.map("Mul", &[&mean, &count], wide)
        }
        PoolRole::MaxGather | PoolRole::MaxScatter | PoolRole::SumTranspose => {
            return Err(unsupported(format!("'{}' has no operator", op.role.name())));
        }
    };
    let found = w.transpose(&found, &last(rank));
    w.cast(&found, own)
}
