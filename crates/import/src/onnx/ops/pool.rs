//! Pooling.

use super::prelude::*;
use crate::lowering::windows::{Windows, same_pads};

/// A list with one number for each spatial axis.
pub fn spatial(n: &Node<'_>, name: &str, axes: usize, default: usize) -> Result<Vec<usize>, Fault> {
    match n.ints(name)? {
        None => Ok(vec![default; axes]),
        Some(list) if list.len() == axes => node::counts(&list),
        Some(list) => Err(Fault::invalid(format!("{name} {list:?} for {axes} spatial axes"))),
    }
}

/// The padding of a node for windows over `sizes`.
pub fn pads(
    n: &Node<'_>,
    sizes: &[usize],
    window: &[usize],
    stride: &[usize],
    dilation: &[usize],
) -> Result<Vec<(usize, usize)>, Fault> {
    let axes = sizes.len();
    let span = |i: usize| (window[i].max(1) - 1).saturating_mul(dilation[i]) + 1;
    match n.text("auto_pad", "NOTSET")? {
        "NOTSET" | "" => match n.ints("pads")? {
            None => Ok(vec![(0, 0); axes]),
            Some(list) if list.len() == 2 * axes => {
                let list = node::counts(&list)?;
                Ok((0..axes).map(|i| (list[i], list[i + axes])).collect())
            }
            Some(list) => Err(Fault::invalid(format!("pads {list:?} for {axes} spatial axes"))),
        },
        "VALID" => Ok(vec![(0, 0); axes]),
        way @ ("SAME_UPPER" | "SAME_LOWER") => Ok((0..axes)
            .map(|i| {
                let outputs = sizes[i].div_ceil(stride[i]);
                let reach =
                    outputs.saturating_sub(1).saturating_mul(stride[i]).saturating_add(span(i));
                same_pads(reach.saturating_sub(sizes[i]), way == "SAME_UPPER")
            })
            .collect()),
        other => Err(Fault::invalid(format!("auto_pad '{other}' is not known"))),
    }
}

/// The windows that a node says.
fn windows(n: &Node<'_>, x: &Array) -> Result<Windows, Fault> {
    let Some(sizes) = x.shape().get(2..).filter(|s| !s.is_empty()) else {
        return Err(Fault::invalid(format!("{} has no spatial axes", x.shape())));
    };
    let axes = sizes.len();
    if n.ints("kernel_shape")?.is_none() {
        return Err(Fault::invalid("the attribute 'kernel_shape' is missing"));
    }
    let window = spatial(n, "kernel_shape", axes, 1)?;
    let stride = spatial(n, "strides", axes, 1)?;
    let dilation = spatial(n, "dilations", axes, 1)?;
    if [&window, &stride, &dilation].iter().any(|list| list.contains(&0)) {
        return Err(Fault::invalid("a window, stride or dilation is 0"));
    }
    let pads = pads(n, sizes, &window, &stride, &dilation)?;
    Windows::over(sizes, window, stride, dilation, pads, n.flag("ceil_mode", false)?)
}

fn max_pool(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let windows = windows(n, x)?;
    if !n.wants(1) && x.dtype().is_float() {
        return n.like(ops::max_pool(x, &windows.options())?, 0);
    }
    let least = super::reduction::limits(x.dtype()).0;
    let all = windows.gathered(x, least)?;
    let best = ops::argmax(&all, -1, true)?;
    let values = ops::squeeze(&ops::take_along_axis(&all, &best, -1)?, -1)?;
    let mut outputs: Vec<Value> = vec![Tensor::new(values, n.tensor(0)?.element)?.into()];
    if n.wants(1) {
        let places = places(n, x)?;
        let places = windows.gathered(&places, 0)?;
        let best = ops::broadcast_to(&best, best.shape())?;
        let found = ops::take_along_axis(&places, &best, -1)?;
        outputs.push(ops::squeeze(&found, -1)?.into());
    }
    Ok(outputs)
}

/// The number of each element in the flattened array.
fn places(n: &Node<'_>, x: &Array) -> Made {
    let count = ops::arange_in(0, x.size(), 1, DType::I64)?;
    if !n.flag("storage_order", false)? {
        return Ok(ops::reshape(&count, &x.shape()[..])?);
    }
    // Columns first: the spatial axes the other way round.
    let mut sizes = x.shape().to_vec();
    sizes[2..].reverse();
    let order: Vec<usize> = [0, 1].into_iter().chain((2..x.rank()).rev()).collect();
    Ok(ops::transpose(&ops::reshape(&count, sizes)?, order)?)
}

fn average_pool(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    n.like(windows(n, x)?.average(x, n.flag("count_include_pad", false)?)?, 0)
}

fn lp_pool(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let windows = windows(n, x)?;
    let p = n.int("p", 2)? as f64;
    let powers = ops::power(&ops::abs(x)?, p)?;
    let total = ops::sum(&windows.gathered(&powers, 0)?, -1, false)?;
    n.like(ops::power(&total, 1.0 / p)?, 0)
}

fn over_space<'n>(n: &'n Node<'_>) -> Result<(&'n Array, Vec<usize>), Fault> {
    let x = n.x(0)?;
    Ok((x, (2..x.rank()).collect()))
}

fn global_average(n: &Node<'_>) -> Outcome {
    let (x, axes) = over_space(n)?;
    n.like(ops::mean(x, axes, true)?, 0)
}

fn global_max(n: &Node<'_>) -> Outcome {
    let (x, axes) = over_space(n)?;
    n.like(ops::max(x, axes, true)?, 0)
}

fn global_lp(n: &Node<'_>) -> Outcome {
    let (x, axes) = over_space(n)?;
    let p = n.int("p", 2)? as f64;
    let total = ops::sum(&ops::power(&ops::abs(x)?, p)?, axes, true)?;
    n.like(ops::power(&total, 1.0 / p)?, 0)
}

fn max_unpool(n: &Node<'_>) -> Outcome {
    let (x, places) = (n.x(0)?, n.x(1)?);
    let axes = x.rank().saturating_sub(2);
    let window = spatial(n, "kernel_shape", axes, 1)?;
    let stride = spatial(n, "strides", axes, 1)?;
    let pads = pads(n, &x.shape()[x.rank() - axes..], &window, &stride, &vec![1; axes])?;
    let mut sizes = x.shape().to_vec();
    for i in 0..axes {
        let reach = (sizes[i + 2].max(1) - 1).saturating_mul(stride[i]).saturating_add(window[i]);
        sizes[i + 2] = reach.saturating_sub(pads[i].0 + pads[i].1);
    }
    let inferred = Shape::from(sizes);
    let wanted = match n.ints_at(2)? {
        Some(sizes) => Shape::from(node::counts(&sizes)?),
        None => inferred.clone(),
    };
    wanted.checked_size("MaxUnpool", x.dtype())?;
    // The places are those of the inferred sizes; a larger output is filled from its start.
    let count = inferred.checked_size("MaxUnpool", x.dtype())?;
    let empty = ops::zeros(count, x.dtype())?;
    let flat =
        ops::put_along_axis(&empty, &ops::flatten(places, 0, -1)?, &ops::flatten(x, 0, -1)?, 0)?;
    let y = ops::reshape(&flat, &inferred[..])?;
    let grown: Option<Vec<(usize, usize)>> =
        wanted.iter().zip(inferred.iter()).map(|(w, i)| Some((0, w.checked_sub(*i)?))).collect();
    let grown = grown.filter(|g| g.len() == y.rank());
    let grown =
        grown.ok_or_else(|| Fault::invalid(format!("{inferred} does not fit into {wanted}")))?;
    n.like(ops::pad(&y, &grown[..], 0)?, 0)
}

pub const OPS: &[Entry] = &[
    ("AveragePool", 1, average_pool),
    ("GlobalAveragePool", 1, global_average),
    ("GlobalLpPool", 2, global_lp),
    ("GlobalMaxPool", 1, global_max),
    ("LpPool", 2, lp_pool),
    ("MaxPool", 1, max_pool),
    ("MaxUnpool", 9, max_unpool),
];
