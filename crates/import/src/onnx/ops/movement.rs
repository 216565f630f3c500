//! Operators that move elements: shapes, slices, joins.

use cupola_core::ops::S;

use super::prelude::*;
use crate::lowering::movement::{known, part, parts, sequence_reversed};

fn reshape(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let wanted = match n.version() {
        5.. => n.need_ints(1)?,
        _ => n.ints("shape")?.unwrap_or_default(),
    };
    let keeps = !n.flag("allowzero", false)?;
    let mut sizes = Vec::with_capacity(wanted.len());
    for (i, &size) in wanted.iter().enumerate() {
        match size {
            0 if keeps => sizes.push(x.shape().get(i).copied().ok_or_else(|| {
                Fault::invalid(format!("size {i} of {wanted:?} is to be that of {}", x.shape()))
            })? as isize),
            -1 => sizes.push(-1),
            size => sizes.push(node::count(size)? as isize),
        }
    }
    // What is left of nothing is nothing.
    if x.is_empty() && sizes.contains(&0) {
        sizes.iter_mut().filter(|s| **s == -1).for_each(|s| *s = 0);
    }
    n.like(ops::reshape(x, sizes)?, 0)
}

fn flatten(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let given = n.int("axis", 1)?;
    let axis = match given == x.rank() as i64 {
        true => x.rank(),
        false => node::axis(given, x.rank())?,
    };
    let rows: usize = x.shape()[..axis].iter().product();
    let columns: usize = x.shape()[axis..].iter().product();
    n.like(ops::reshape(x, [rows, columns])?, 0)
}

fn squeeze(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let axes = match n.axes("axes", 1)? {
        Some(axes) => node::axes(&axes, x.rank())?,
        None => (0..x.rank()).filter(|&a| x.shape()[a] == 1).collect(),
    };
    n.like(ops::squeeze(x, axes)?, 0)
}

fn unsqueeze(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let axes = n.axes("axes", 1)?.ok_or_else(|| Fault::invalid("the axes are missing"))?;
    let axes = node::axes(&axes, x.rank() + axes.len())?;
    n.like(ops::expand_dims(x, axes)?, 0)
}

fn transpose(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let order = match n.ints("perm")? {
        Some(order) => node::axes(&order, x.rank())?,
        None => (0..x.rank()).rev().collect(),
    };
    n.like(ops::transpose(x, order)?, 0)
}

fn concat(n: &Node<'_>) -> Outcome {
    let all = n.all()?;
    let rank = n.x(0)?.rank();
    let axis = match n.version() {
        4.. => node::axis(n.need_attribute("axis")?, rank)?,
        _ => n.axis("axis", 1, rank)?,
    };
    n.like(ops::concatenate(&all, axis)?, 0)
}

fn split(n: &Node<'_>) -> Outcome {
    let t = n.tensor(0)?;
    let x = &t.array;
    let axis = n.axis("axis", 0, x.rank())?;
    let sizes = match n.axes("split", 1)? {
        Some(sizes) => node::counts(&sizes)?,
        None => {
            let count = node::count(n.int("num_outputs", n.step.outputs.len() as i64)?)?;
            if count != n.step.outputs.len() || count == 0 {
                return Err(Fault::invalid(format!(
                    "{count} parts for {} outputs",
                    n.step.outputs.len()
                )));
            }
            let size = x.shape()[axis];
            let each = size.div_ceil(count);
            (0..count).map(|i| each.min(size.saturating_sub(i * each))).collect()
        }
    };
    let made = parts(x, axis, &sizes)?;
    made.into_iter().map(|part| Ok(Tensor::new(part, t.element)?.into())).collect()
}

/// A range of an axis as the format reads it: ends are cut to the axis.
fn range(size: usize, start: i64, stop: i64, step: i64) -> S {
    let size = size as i64;
    let from_end = |i: i64| if i < 0 { i.saturating_add(size) } else { i };
    let step = step.clamp(-size - 1, size + 1);
    let (start, stop) = match step > 0 {
        true => (from_end(start).clamp(0, size), Some(from_end(stop).clamp(0, size))),
        false => {
            let stop = from_end(stop).clamp(-1, size - 1);
            (from_end(start).clamp(-1, size - 1), Some(stop).filter(|&s| s >= 0))
        }
    };
    if start < 0 {
        return S::Range { start: Some(0), stop: Some(0), step: 1 };
    }
    S::Range { start: Some(start as isize), stop: stop.map(|s| s as isize), step: step as isize }
}

fn slice(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let (starts, ends, axes, steps) = match n.version() {
        10.. => (n.need_ints(1)?, n.need_ints(2)?, n.ints_at(3)?, n.ints_at(4)?),
        _ => {
            let need =
                |list: Option<Vec<i64>>| list.ok_or_else(|| Fault::invalid("the ends are missing"));
            (need(n.ints("starts")?)?, need(n.ints("ends")?)?, n.ints("axes")?, None)
        }
    };
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    let counts = [ends.len(), axes.len(), steps.len()];
    if counts.iter().any(|&c| c != starts.len()) || steps.contains(&0) {
        return Err(Fault::invalid(format!(
            "starts {starts:?}, ends {ends:?}, axes {axes:?} and steps {steps:?} do not fit"
        )));
    }
    let mut items = vec![S::range(..); x.rank()];
    for (i, axis) in node::axes(&axes, x.rank())?.into_iter().enumerate() {
        let size = x.shape()[axis];
        if size > 0 {
            items[axis] = range(size, starts[i], ends[i], steps[i]);
        }
    }
    n.like(ops::index(x, &items)?, 0)
}

fn expand(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let wanted = Shape::from(node::counts(&n.need_ints(1)?)?);
    let shape = x.shape().broadcast(&wanted, "Expand")?;
    shape.checked_size("Expand", x.dtype())?;
    n.like(ops::broadcast_to(x, shape)?, 0)
}

fn tile(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let reps = match n.version() {
        6.. => node::counts(&n.need_ints(1)?)?,
        _ => {
            let mut reps = vec![1; x.rank()];
            reps[node::axis(n.need_int(2)?, x.rank())?] = node::count(n.need_int(1)?)?;
            reps
        }
    };
    if reps.len() != x.rank() {
        return Err(Fault::invalid(format!("{} repeats for {}", reps.len(), x.shape())));
    }
    let sizes = x.shape().iter().zip(&reps).map(|(&d, &r)| d.checked_mul(r));
    let sizes: Option<Vec<usize>> = sizes.collect();
    let sizes = sizes.ok_or_else(|| Fault::invalid(format!("repeats {reps:?} are too large")))?;
    Shape::from(sizes).checked_size("Tile", x.dtype())?;
    n.like(ops::tile(x, reps)?, 0)
}

fn shape(n: &Node<'_>) -> Outcome {
    let sizes: Vec<i64> = n.x(0)?.shape().iter().map(|&d| d as i64).collect();
    let rank = sizes.len() as i64;
    let end = |at: i64| if at < 0 { at.saturating_add(rank) } else { at }.clamp(0, rank) as usize;
    let (start, stop) = (end(n.int("start", 0)?), end(n.int("end", rank)?));
    one(known(sizes.get(start..stop).unwrap_or(&[]))?)
}

fn size(n: &Node<'_>) -> Outcome {
    one(Array::from_slice(&[n.x(0)?.size() as i64], ())?)
}

fn reverse_sequence(n: &Node<'_>) -> Outcome {
    let (x, lengths) = (n.x(0)?, n.x(1)?);
    let time = n.axis("time_axis", 0, x.rank())?;
    let batch = n.axis("batch_axis", 1, x.rank())?;
    n.like(sequence_reversed(x, lengths, time, batch)?, 0)
}

fn trilu(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let k = n.ints_at(1)?.and_then(|k| k.first().copied()).unwrap_or(0);
    let offset = k.clamp(-(1 << 40), 1 << 40) as isize;
    let made = match n.flag("upper", true)? {
        true => ops::triu(x, offset)?,
        false => ops::tril(x, offset)?,
    };
    n.like(made, 0)
}

fn center_crop_pad(n: &Node<'_>) -> Outcome {
    let mut x = n.x(0)?.clone();
    let sizes = node::counts(&n.need_ints(1)?)?;
    let axes = match n.ints("axes")? {
        Some(axes) => node::axes(&axes, x.rank())?,
        None => (0..x.rank()).collect(),
    };
    if axes.len() != sizes.len() {
        return Err(Fault::invalid(format!("{} sizes for {} axes", sizes.len(), axes.len())));
    }
    for (&axis, &want) in axes.iter().zip(&sizes) {
        let have = x.shape()[axis];
        if have > want {
            let start = (have - want) / 2;
            x = part(&x, axis, start, start + want)?;
        } else if have < want {
            let before = (want - have) / 2;
            let mut widths = vec![(0, 0); x.rank()];
            widths[axis] = (before, want - have - before);
            x.shape().with(axis, want).checked_size("CenterCropPad", x.dtype())?;
            x = ops::pad(&x, &widths[..], 0)?;
        }
    }
    n.like(x, 0)
}

/// The blocks of space or depth, by the order of their axes.
fn blocks(n: &Node<'_>) -> Result<(usize, [usize; 4]), Fault> {
    let x = n.x(0)?;
    let block = node::count(n.need_attribute("blocksize")?)?;
    match x.shape()[..] {
        [a, b, c, d] if block > 0 => Ok((block, [a, b, c, d])),
        _ => Err(Fault::invalid(format!("blocks of {block} of {}", x.shape()))),
    }
}

fn depth_to_space(n: &Node<'_>) -> Outcome {
    let (s, [b, c, h, w]) = blocks(n)?;
    let x = n.x(0)?;
    let channels = c / s.saturating_mul(s).max(1);
    let (split, order) = match n.text("mode", "DCR")? {
        "DCR" => ([b, s, s, channels, h, w], [0, 3, 4, 1, 5, 2]),
        "CRD" => ([b, channels, s, s, h, w], [0, 1, 4, 2, 5, 3]),
        other => return Err(Fault::invalid(format!("the mode '{other}' is not DCR or CRD"))),
    };
    let moved = ops::transpose(&ops::reshape(x, split)?, order)?;
    n.like(ops::reshape(&moved, [b, channels, h.saturating_mul(s), w.saturating_mul(s)])?, 0)
}

fn space_to_depth(n: &Node<'_>) -> Outcome {
    let (s, [b, c, h, w]) = blocks(n)?;
    let split = ops::reshape(n.x(0)?, [b, c, h / s, s, w / s, s])?;
    let moved = match n.text("mode", "DCR")? {
        "CRD" => ops::transpose(&split, [0, 1, 3, 5, 2, 4])?,
        _ => ops::transpose(&split, [0, 3, 5, 1, 2, 4])?,
    };
    n.like(ops::reshape(&moved, [b, c * s * s, h / s, w / s])?, 0)
}

pub const OPS: &[Entry] = &[
    ("CenterCropPad", 18, center_crop_pad),
    ("Concat", 1, concat),
    ("DepthToSpace", 1, depth_to_space),
    ("Expand", 8, expand),
    ("Flatten", 1, flatten),
    ("Reshape", 1, reshape),
    ("ReverseSequence", 10, reverse_sequence),
    ("Shape", 1, shape),
    ("Size", 1, size),
    ("Slice", 1, slice),
    ("SpaceToDepth", 1, space_to_depth),
    ("Split", 1, split),
    ("Squeeze", 1, squeeze),
    ("Tile", 1, tile),
    ("Transpose", 1, transpose),
    ("Trilu", 14, trilu),
    ("Unsqueeze", 1, unsqueeze),
];
