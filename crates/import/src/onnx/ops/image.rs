//! Pictures sampled at places of their own.

use super::prelude::*;
use crate::lowering::movement::{known, part};
use crate::lowering::sample::{Beyond, Line, sampled};

fn grid_sample(n: &Node<'_>) -> Outcome {
    let (x, grid) = (n.x(0)?, n.x(1)?);
    let axes = x.rank().saturating_sub(2);
    if axes == 0
        || grid.rank() != x.rank()
        || grid.shape()[x.rank() - 1] != axes
        || grid.shape()[0] != x.shape()[0]
    {
        return Err(Fault::invalid(format!("{} sampled at {}", x.shape(), grid.shape())));
    }
    let mode = match n.text("mode", "linear")? {
        "bilinear" | "linear" => "linear",
        "bicubic" | "cubic" => "cubic",
        "nearest" => "nearest",
        other => return Err(Fault::invalid(format!("the mode '{other}' is not known"))),
    };
    let beyond = match n.text("padding_mode", "zeros")? {
        "zeros" => Beyond::Zeros,
        "border" => Beyond::Border,
        "reflection" => Beyond::Reflection,
        other => return Err(Fault::invalid(format!("the padding '{other}' is not known"))),
    };
    let corners = n.flag("align_corners", false)?;
    let mut shape = x.shape()[..2].to_vec();
    shape.extend(&grid.shape()[1..=axes]);
    if Shape::from(&shape).size() == 0 || x.is_empty() {
        return n.like(ops::zeros(shape, x.dtype())?, 0);
    }
    let wide = ops::astype(grid, if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 })?;
    let mut lines = Vec::with_capacity(axes);
    for axis in 0..axes {
        let size = x.shape()[axis + 2];
        // The last number of a place lies along the last axis: its coordinates run backwards.
        let from = axes - 1 - axis;
        let place = ops::squeeze(&part(&wide, axes + 1, from, from + 1)?, axes + 1)?;
        let shifted = ops::add(&place, 1.0)?;
        let d = size as f64;
        let (places, range) = match corners {
            true => (ops::multiply(&shifted, (d - 1.0) / 2.0)?, (0.0, d - 1.0)),
            false => (
                ops::divide(&ops::subtract(&ops::multiply(&shifted, d)?, 1.0)?, 2.0)?,
                (-0.5, d - 0.5),
            ),
        };
        lines.push(Line { size, places, range }.neighbours(mode, beyond)?);
    }
    let y = sampled(x, &lines)?;
    n.like(ops::astype(&y, x.dtype())?, 0)
}

fn affine_grid(n: &Node<'_>) -> Outcome {
    let theta = n.x(0)?;
    let sizes = node::counts(&n.need_ints(1)?)?;
    let Some(sizes) = sizes.get(2..).filter(|s| theta.rank() == 3 && theta.shape()[1] == s.len())
    else {
        return Err(Fault::invalid(format!("{} for sizes {sizes:?}", theta.shape())));
    };
    Shape::from(sizes).checked_size("AffineGrid", DType::F64)?;
    let corners = n.flag("align_corners", false)?;
    let mut axes = Vec::with_capacity(sizes.len() + 1);
    for (axis, &size) in sizes.iter().enumerate().rev() {
        let places = ops::astype(&ops::arange_in(0, size, 1, DType::I64)?, DType::F32)?;
        let d = size as f64;
        let places = match corners {
            true => ops::subtract(&ops::multiply(&places, 2.0 / (d - 1.0).max(1.0))?, 1.0)?,
            false => ops::subtract(
                &ops::divide(&ops::add(&ops::multiply(&places, 2.0)?, 1.0)?, d)?,
                1.0,
            )?,
        };
        let mut shape = vec![1; sizes.len()];
        shape[axis] = size;
        axes.push(ops::broadcast_to(&ops::reshape(&places, shape)?, sizes)?);
    }
    axes.push(ops::ones(sizes, DType::F32)?);
    let places = ops::stack(&axes.iter().collect::<Vec<_>>(), -1)?;
    let count: usize = sizes.iter().product();
    let flat = ops::reshape(&places, [count, sizes.len() + 1])?;
    let turned = ops::swapaxes(&ops::astype(theta, DType::F32)?, 1, 2)?;
    let made = ops::matmul(&flat, &turned)?;
    let mut shape = vec![theta.shape()[0]];
    shape.extend(sizes);
    shape.push(sizes.len());
    n.like(ops::astype(&ops::reshape(&made, shape)?, theta.dtype())?, 0)
}

fn col2im(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let image = node::counts(&n.need_ints(1)?)?;
    let block = node::counts(&n.need_ints(2)?)?;
    let axes = image.len();
    let list = |name: &str, default: usize| super::pool::spatial(n, name, axes, default);
    let (stride, dilation) = (list("strides", 1)?, list("dilations", 1)?);
    let pads = match n.ints("pads")? {
        Some(pads) if pads.len() == 2 * axes => node::counts(&pads)?,
        Some(pads) => return Err(Fault::invalid(format!("pads {pads:?} for {axes} axes"))),
        None => vec![0; 2 * axes],
    };
    let inside: usize = block.iter().product();
    let wrong = || Fault::invalid(format!("{} as blocks of {block:?} in {image:?}", x.shape()));
    if block.len() != axes
        || x.rank() != 3
        || inside == 0
        || x.shape()[1] % inside != 0
        || stride.contains(&0)
    {
        return Err(wrong());
    }
    let (mut padded, mut counts) = (Vec::new(), Vec::new());
    for i in 0..axes {
        let size = image[i].saturating_add(pads[i] + pads[i + axes]);
        let span = (block[i] - 1).saturating_mul(dilation[i]).saturating_add(1);
        padded.push(size);
        counts.push(size.checked_sub(span).ok_or_else(wrong)? / stride[i] + 1);
    }
    let (batch, channels) = (x.shape()[0], x.shape()[1] / inside);
    let total = Shape::from(&padded).checked_size("Col2Im", x.dtype())?;
    if counts.iter().product::<usize>() != x.shape()[2] || total > 1 << 36 {
        return Err(wrong());
    }
    // The flat place in the padded image of each element of each block.
    let mut places: Vec<i64> = vec![0];
    let mut extend = |steps: &dyn Fn(usize, usize) -> usize, sizes: &[usize]| {
        for (i, &size) in sizes.iter().enumerate() {
            let below: usize = padded[i + 1..].iter().product();
            let place = |p: &i64, at: usize| p + (steps(i, at) * below) as i64;
            places = places
                .iter()
                .flat_map(|p| (0..size).map(move |at| (p, at)))
                .map(|(p, at)| place(p, at))
                .collect();
        }
    };
    extend(&|i, at| at * dilation[i], &block);
    extend(&|i, at| at * stride[i], &counts);
    let columns = places.len();
    let places = ops::reshape(&known(&places)?, [1, columns])?;
    let rows = ops::reshape(x, [batch * channels, columns])?;
    let empty = ops::zeros([batch * channels, total], x.dtype())?;
    let places = ops::broadcast_to(&places, [batch * channels, columns])?;
    let sum = ops::scatter_along_axis(&empty, (&places, 1), &rows, ops::ScatterMode::Add)?;
    let mut shape = vec![batch, channels];
    shape.extend(&padded);
    let mut y = ops::reshape(&sum, shape)?;
    for i in 0..axes {
        y = part(&y, i + 2, pads[i], pads[i] + image[i])?;
    }
    n.like(y, 0)
}

pub const OPS: &[Entry] =
    &[("AffineGrid", 20, affine_grid), ("Col2Im", 18, col2im), ("GridSample", 16, grid_sample)];
