//! Arrays with a border.

use cupola_core::ops::PadMode;

use super::prelude::*;
use crate::lowering::movement::part;

/// The widths before and after each axis; below 0 elements go.
fn widths(n: &Node<'_>, rank: usize) -> Result<Vec<(i64, i64)>, Fault> {
    let flat = match n.version() {
        11.. => n.need_ints(1)?,
        2.. => n.ints("pads")?.unwrap_or_default(),
        _ => n.ints("paddings")?.unwrap_or_default(),
    };
    let axes = match n.ints_at(3)? {
        Some(axes) => node::axes(&axes, rank)?,
        None => (0..rank).collect(),
    };
    if flat.len() != 2 * axes.len() {
        return Err(Fault::invalid(format!("{} widths for {} axes", flat.len(), axes.len())));
    }
    let mut out = vec![(0, 0); rank];
    for (i, &axis) in axes.iter().enumerate() {
        out[axis] = (flat[i], flat[i + axes.len()]);
    }
    Ok(out)
}

/// The elements of an axis again and again.
fn wrapped(x: &Array, axis: usize, before: usize, after: usize) -> Made {
    let size = x.shape()[axis] as i64;
    if size == 0 {
        return Err(Fault::invalid("an empty axis has no elements to repeat"));
    }
    let places = ops::arange_in(-(before as i64), size + after as i64, 1, DType::I64)?;
    Ok(ops::take(x, &ops::remainder(&places, size)?, axis as isize)?)
}

fn pad(n: &Node<'_>) -> Outcome {
    let t = n.tensor(0)?;
    let mut x = t.array.clone();
    let widths = widths(n, x.rank())?;
    for (axis, &(before, after)) in widths.iter().enumerate() {
        let size = x.shape()[axis] as i64;
        let (start, stop) = ((-before).max(0), size.saturating_add(after.min(0)));
        if start > stop.max(0) || stop < 0 {
            return Err(Fault::invalid(format!(
                "pads {before} and {after} leave nothing of {size}"
            )));
        }
        if start > 0 || stop < size {
            x = part(&x, axis, start as usize, stop as usize)?;
        }
    }
    let mut grown = Vec::with_capacity(widths.len());
    for &(before, after) in &widths {
        grown.push((node::count(before.max(0))?, node::count(after.max(0))?));
    }
    let sizes: Vec<usize> =
        x.shape().iter().zip(&grown).map(|(d, (a, b))| d.saturating_add(a + b)).collect();
    Shape::from(sizes).checked_size("Pad", x.dtype())?;
    let mode = match n.text("mode", "constant")? {
        "constant" => match n.version() {
            11.. => match n.maybe(2)? {
                Some(value) => PadMode::Filled(value.clone()),
                None => PadMode::from(0),
            },
            _ => PadMode::from(n.float("value", 0.0)?),
        },
        "reflect" => PadMode::Reflect,
        "edge" => PadMode::Edge,
        "wrap" => {
            for (axis, &(before, after)) in grown.iter().enumerate() {
                if before + after > 0 {
                    x = wrapped(&x, axis, before, after)?;
                }
            }
            return n.like(x, 0);
        }
        other => return Err(Fault::invalid(format!("the mode '{other}' is not known"))),
    };
    n.like(ops::pad(&x, &grown[..], mode)?, 0)
}

pub const OPS: &[Entry] = &[("Pad", 1, pad)];
