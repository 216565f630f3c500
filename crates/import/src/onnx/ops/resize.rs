//! Arrays of other sizes. What is picked, and with which weights, is computed on the host.

use super::prelude::*;
use super::reduction::limits;
use crate::lowering::sample::{Picks, resized};

/// How an axis is resized.
struct Axis<'a> {
    input: usize,
    output: usize,
    scale: f64,
    /// The region of the input that is shown.
    region: (f64, f64),
    mode: &'a str,
    transform: &'a str,
    nearest: &'a str,
    antialias: bool,
    exclude: bool,
    cubic: f64,
}

impl Axis<'_> {
    /// The place in the input of a place in the output.
    fn place(&self, y: f64) -> Result<f64, Fault> {
        let (input, output) = (self.input as f64, self.scale * self.input as f64);
        Ok(match self.transform {
            "half_pixel" => (y + 0.5) / self.scale - 0.5,
            "asymmetric" => y / self.scale,
            "align_corners" | "pytorch_half_pixel" if output == 1.0 => match self.transform {
                "align_corners" => 0.0,
                _ => -0.5,
            },
            "align_corners" => y * (input - 1.0) / (output - 1.0),
            "pytorch_half_pixel" => (y + 0.5) / self.scale - 0.5,
            "half_pixel_symmetric" => {
                let offset = input / 2.0 * (1.0 - self.output as f64 / output);
                offset + (y + 0.5) / self.scale - 0.5
            }
            "tf_half_pixel_for_nn" => (y + 0.5) / self.scale,
            "tf_crop_and_resize" => {
                let (start, stop) = self.region;
                let inside = match self.output {
                    1 => (stop - start) * (input - 1.0) / 2.0,
                    _ => y * (stop - start) * (input - 1.0) / (self.output as f64 - 1.0),
                };
                inside + start * (input - 1.0)
            }
            other => {
                return Err(Fault::invalid(format!("the transformation '{other}' is not known")));
            }
        })
    }

    /// The weights of the neighbours of a place, the first of which lies `from` behind its floor.
    fn weights(&self, ratio: f64) -> Result<(i64, Vec<f64>), Fault> {
        let scale = if self.antialias { self.scale.min(1.0) } else { 1.0 };
        let normed = |from: i64, weights: Vec<f64>| {
            let sum: f64 = weights.iter().sum();
            (from, weights.into_iter().map(|w| w / sum).collect())
        };
        Ok(match self.mode {
            "nearest" => {
                let up = match self.nearest {
                    "round_prefer_floor" => ratio > 0.5,
                    "round_prefer_ceil" => ratio >= 0.5,
                    "floor" => ratio == 1.0,
                    "ceil" => true,
                    other => {
                        return Err(Fault::invalid(format!("the rounding '{other}' is not known")));
                    }
                };
                (i64::from(up), vec![1.0])
            }
            "linear" => {
                let start = (-1.0 / scale).floor() as i64 + 1;
                let weight = |i: i64| (1.0 - ((i as f64 - ratio) * scale).abs()).clamp(0.0, 1.0);
                normed(start, (start..2 - start).map(weight).collect())
            }
            "cubic" => {
                let start = (-2.0 / scale).floor() as i64 + 1;
                let a = self.cubic;
                let weight = |i: i64| {
                    let x = ((i as f64 - ratio) * scale).abs();
                    match x {
                        x if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
                        x if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
                        _ => 0.0,
                    }
                };
                normed(start, (start..2 - start).map(weight).collect())
            }
            other => return Err(Fault::invalid(format!("the mode '{other}' is not known"))),
        })
    }

    fn picks(&self) -> Result<Picks, Fault> {
        let last = self.input as i64 - 1;
        let mut out = Vec::with_capacity(self.output);
        for y in 0..self.output {
            let x = self.place(y as f64)?;
            if self.transform == "tf_crop_and_resize" && !(x >= 0.0 && x <= last as f64) {
                out.push(None);
                continue;
            }
            // A whole place is the right neighbour of the one before it.
            let floor = if x == x.floor() { x - 1.0 } else { x.floor() };
            let (from, mut weights) = self.weights(x - floor)?;
            let first = (floor as i64).saturating_add(from);
            let places: Vec<i64> =
                (0..weights.len() as i64).map(|i| first.saturating_add(i)).collect();
            if self.exclude {
                let inside = |p: &i64| (0..=last).contains(p);
                weights
                    .iter_mut()
                    .zip(&places)
                    .filter(|(_, p)| !inside(p))
                    .for_each(|(w, _)| *w = 0.0);
                let sum: f64 = weights.iter().sum();
                weights.iter_mut().for_each(|w| *w /= sum);
            }
            out.push(Some((places.into_iter().map(|p| p.clamp(0, last)).collect(), weights)));
        }
        Ok(out)
    }
}

/// Scales and sizes of the axes of a node.
struct Wanted {
    axes: Vec<usize>,
    scales: Vec<f64>,
    sizes: Vec<usize>,
    region: Vec<f64>,
}

fn wanted(n: &Node<'_>, x: &Array) -> Result<Wanted, Fault> {
    let axes = match n.ints("axes")? {
        Some(axes) => node::axes(&axes, x.rank())?,
        None => (0..x.rank()).collect(),
    };
    let full = |list: &[f64]| list.len() == axes.len();
    let (scales_at, sizes_at) = if n.version() >= 11 { (2, 3) } else { (1, 3) };
    let region = n.floats_at(1)?.filter(|_| n.version() >= 11).unwrap_or_default();
    let inputs: Vec<f64> = axes.iter().map(|&a| x.shape()[a] as f64).collect();
    let attribute = if n.version() < 9 { n.floats("scales")? } else { None };
    let scales = match attribute {
        Some(scales) => Some(scales),
        None => n.floats_at(scales_at)?.filter(|s| !s.is_empty()),
    };
    if let Some(scales) = scales {
        if !full(&scales) || scales.iter().any(|&s| !(s > 0.0 && s.is_finite())) {
            return Err(Fault::invalid(format!("scales {scales:?} for {}", x.shape())));
        }
        let sizes = inputs.iter().zip(&scales).map(|(i, s)| node::count((i * s).floor() as i64));
        return Ok(Wanted { sizes: sizes.collect::<Result<_, _>>()?, axes, scales, region });
    }
    let given = n.floats_at(sizes_at)?.ok_or_else(|| Fault::invalid("neither scales nor sizes"))?;
    if !full(&given) {
        return Err(Fault::invalid(format!("sizes {given:?} for {}", x.shape())));
    }
    let mut scales: Vec<f64> = given.iter().zip(&inputs).map(|(s, i)| s / i.max(1.0)).collect();
    let mut sizes = node::counts(&given.iter().map(|&s| s as i64).collect::<Vec<_>>())?;
    let one = match n.text("keep_aspect_ratio_policy", "stretch")? {
        "stretch" => None,
        "not_larger" => Some(scales.iter().copied().fold(f64::INFINITY, f64::min)),
        "not_smaller" => Some(scales.iter().copied().fold(0.0, f64::max)),
        other => return Err(Fault::invalid(format!("the policy '{other}' is not known"))),
    };
    if let Some(scale) = one {
        scales.fill(scale);
        let round = |i: &f64| node::count((scale * i + 0.5).floor() as i64);
        sizes = inputs.iter().map(round).collect::<Result<_, _>>()?;
    }
    Ok(Wanted { axes, scales, sizes, region })
}

fn resize(n: &Node<'_>) -> Outcome {
    let old = n.version() < 11;
    let x = n.x(0)?;
    let wanted = wanted(n, x)?;
    let mode = n.text("mode", "nearest")?;
    let count = wanted.axes.len();
    let wide = x.dtype() == DType::F64;
    let mut y = match mode {
        "nearest" => x.clone(),
        _ => ops::astype(x, if wide { DType::F64 } else { DType::F32 })?,
    };
    let total = wanted.sizes.iter().try_fold(1usize, |t, &s| t.checked_mul(s.max(1)));
    if total.is_none_or(|t| t > 1 << 36) || wanted.axes.iter().any(|&a| x.shape()[a] == 0) {
        return Err(Fault::invalid(format!("{} cannot be of sizes {:?}", x.shape(), wanted.sizes)));
    }
    let antialias = n.flag("antialias", false)?;
    // The last axis first, so that along the others whole rows lie together.
    for (i, &axis) in wanted.axes.iter().enumerate().rev() {
        let crops = n.text("coordinate_transformation_mode", "")? == "tf_crop_and_resize";
        if wanted.scales[i] == 1.0 && wanted.sizes[i] == x.shape()[axis] && !crops {
            continue;
        }
        if wanted.sizes[i] > 1 << 24 {
            return Err(Fault::unsupported(format!("an axis of {} is too long", wanted.sizes[i])));
        }
        let end = |k: usize, default: f64| wanted.region.get(k).copied().unwrap_or(default);
        let picks = Axis {
            input: x.shape()[axis],
            output: wanted.sizes[i],
            scale: wanted.scales[i].max(1e-6),
            region: (end(i, 0.0), end(i + count, 1.0)),
            mode: if mode == "bilinear" || mode == "trilinear" { "linear" } else { mode },
            transform: if old {
                "asymmetric"
            } else {
                n.text("coordinate_transformation_mode", "half_pixel")?
            },
            nearest: if old { "floor" } else { n.text("nearest_mode", "round_prefer_floor")? },
            antialias,
            exclude: n.flag("exclude_outside", false)?,
            cubic: n.float("cubic_coeff_a", -0.75)?,
        }
        .picks()?;
        y = resized(&y, axis, &picks, n.float("extrapolation_value", 0.0)?)?;
    }
    if x.dtype().is_integer() && y.dtype() != x.dtype() {
        // Cubics go beyond what they pass through.
        let (least, most) = limits(x.dtype());
        y = ops::minimum(&ops::maximum(&ops::round(&y, 0)?, least)?, most)?;
    }
    n.like(ops::astype(&y, x.dtype())?, 0)
}

pub const OPS: &[Entry] = &[("Resize", 10, resize), ("Upsample", 7, resize)];
