//! Pictures sampled at places of their own.

use super::prelude::*;

/// What lies beyond a picture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    Zeros,
    Border,
    Reflection,
}

/// Places reflected at the ends of a range until they lie in it.
fn reflected(x: &Array, least: f64, most: f64) -> Made {
    let span = most - least;
    if span <= 0.0 {
        return Ok(ops::full_like(x, least)?);
    }
    let turned = ops::remainder(&ops::subtract(x, least)?, 2.0 * span)?;
    let turned = ops::minimum(&turned, &ops::subtract(2.0 * span, &turned)?)?;
    Ok(ops::add(&turned, least)?)
}

/// A picture's axis with the places on it that are sampled, one for each sample.
struct Line {
    size: usize,
    places: Array,
    range: (f64, f64),
}

impl Line {
    /// The places of the neighbours, and their weights; 0 where they lie outside.
    fn neighbours(&self, mode: &str, beyond: Beyond) -> Result<Vec<(Array, Array)>, Fault> {
        let (least, most) = self.range;
        let mut x = self.places.clone();
        if mode == "nearest" {
            x = ops::round(&x, 0)?;
        }
        let last = self.size.max(1) as f64 - 1.0;
        x = match beyond {
            Beyond::Zeros => x,
            Beyond::Border => ops::minimum(&ops::maximum(&x, 0.0)?, last)?,
            Beyond::Reflection => reflected(&x, least, most)?,
        };
        let floor = ops::floor(&x)?;
        let ratio = ops::subtract(&x, &floor)?;
        let weights: Vec<(f64, Array)> = match mode {
            "nearest" => vec![(0.0, ops::ones_like(&x)?)],
            "linear" => vec![(0.0, ops::subtract(1.0, &ratio)?), (1.0, ratio)],
            _ => (-1..3)
                .map(|i| Ok((i as f64, cubic(&ratio, i as f64)?)))
                .collect::<Result<_, Fault>>()?,
        };
        let mut out = Vec::with_capacity(weights.len());
        for (offset, weight) in weights {
            let at = if mode == "nearest" { x.clone() } else { ops::add(&floor, offset)? };
            let (at, weight) = match beyond {
                Beyond::Zeros => {
                    let inside = ops::logical_and(
                        &ops::greater_equal(&at, 0)?,
                        &ops::less_equal(&at, last)?,
                    )?;
                    (at, ops::where_(&inside, &weight, 0)?)
                }
                Beyond::Border => (at, weight),
                Beyond::Reflection => (ops::trunc(&reflected(&at, least, most)?)?, weight),
            };
            // A place that is no number counts as the first.
            let at = ops::where_(&ops::isfinite(&at)?, &at, 0)?;
            let at = ops::minimum(&ops::maximum(&at, 0)?, last)?;
            out.push((ops::astype(&at, DType::I64)?, weight));
        }
        Ok(out)
    }
}

/// The weight of the neighbour `offset` from the floor in a cubic.
fn cubic(ratio: &Array, offset: f64) -> Made {
    let a = -0.75;
    let x = ops::abs(&ops::subtract(ratio, offset)?)?;
    let poly = |c: [f64; 4]| -> Made {
        let mut y = ops::full_like(&x, c[0])?;
        for c in &c[1..] {
            y = ops::add(&ops::multiply(&y, &x)?, *c)?;
        }
        Ok(y)
    };
    match offset as i64 {
        0 | 1 => poly([a + 2.0, -(a + 3.0), 0.0, 1.0]),
        _ => poly([a, -5.0 * a, 8.0 * a, -4.0 * a]),
    }
}

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
        let place =
            ops::squeeze(&super::movement::part(&wide, axes + 1, from, from + 1)?, axes + 1)?;
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

/// The weighted sum over all combinations of neighbours: `[N, places.., C]`, moved to `[N, C, places..]`.
fn sampled(x: &Array, lines: &[Vec<(Array, Array)>]) -> Made {
    let batch = x.shape()[0];
    let mut first = vec![1; lines.first().map_or(1, |l| l[0].0.rank())];
    first[0] = batch;
    let rows = ops::reshape(&ops::arange_in(0, batch, 1, DType::I64)?, first)?;
    let mut sizes = x.shape().to_vec();
    sizes[0] = 1;
    sizes[2..].fill(1);
    let mut sum: Option<Array> = None;
    let combinations: usize = lines.iter().map(Vec::len).product();
    for number in 0..combinations {
        let mut rest = number;
        let mut places = vec![(0, &rows)];
        let mut weight: Option<Array> = None;
        for (axis, line) in lines.iter().enumerate() {
            let (place, w) = &line[rest % line.len()];
            rest /= line.len();
            places.push((axis + 2, place));
            weight = Some(match weight {
                Some(so_far) => ops::multiply(&so_far, w)?,
                None => w.clone(),
            });
        }
        let Some(weight) = weight else { continue };
        let found = ops::gather(x, &places, &sizes[..])?;
        let mut shape = weight.shape().to_vec();
        shape.push(x.shape()[1]);
        let found = ops::astype(&ops::reshape(&found, shape)?, weight.dtype())?;
        let term = ops::multiply(&found, &ops::expand_dims(&weight, -1)?)?;
        sum = Some(match sum {
            Some(sum) => ops::add(&sum, &term)?,
            None => term,
        });
    }
    let sum = sum.ok_or_else(|| Fault::invalid("there are no spatial axes"))?;
    Ok(ops::moveaxis(&sum, -1, 1)?)
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
    let places = ops::reshape(&super::movement::known(&places)?, [1, columns])?;
    let rows = ops::reshape(x, [batch * channels, columns])?;
    let empty = ops::zeros([batch * channels, total], x.dtype())?;
    let places = ops::broadcast_to(&places, [batch * channels, columns])?;
    let sum = ops::scatter_along_axis(&empty, (&places, 1), &rows, ops::ScatterMode::Add)?;
    let mut shape = vec![batch, channels];
    shape.extend(&padded);
    let mut y = ops::reshape(&sum, shape)?;
    for i in 0..axes {
        y = super::movement::part(&y, i + 2, pads[i], pads[i] + image[i])?;
    }
    n.like(y, 0)
}

pub const OPS: &[Entry] =
    &[("AffineGrid", 20, affine_grid), ("Col2Im", 18, col2im), ("GridSample", 16, grid_sample)];
