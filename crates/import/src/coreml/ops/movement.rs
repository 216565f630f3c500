//! Operators that move elements: shapes, joins, blocks.

use cupola_core::ops::{PadMode, ScanOptions};

use super::prelude::*;
use crate::lowering::movement::{known, part, parts, sequence_reversed};

fn reshape(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let wanted = n.ints("shape")?;
    let mut sizes = Vec::with_capacity(wanted.len());
    for (i, &size) in wanted.iter().enumerate() {
        sizes.push(match size {
            -1 => -1,
            // The size of x counted from the last axis; without one, 1.
            0 if !x.is_empty() => {
                let behind = wanted.len() - i;
                x.rank().checked_sub(behind).map_or(1, |axis| x.shape()[axis]) as isize
            }
            size => numbers::count(size)? as isize,
        });
    }
    one(ops::reshape(x, sizes)?)
}

fn reshape_like(n: &Node<'_>) -> Outcome {
    let refs = n.all("ref_tensors")?;
    let (begins, ends, masks) = (n.ints("begins")?, n.ints("ends")?, n.ints("end_masks")?);
    if [begins.len(), ends.len(), masks.len()].iter().any(|&count| count != refs.len()) {
        return Err(Fault::invalid(format!(
            "{} begins, {} ends and {} end_masks for {} tensors",
            begins.len(),
            ends.len(),
            masks.len(),
            refs.len()
        )));
    }
    let mut sizes: Vec<usize> = Vec::new();
    for (i, x) in refs.iter().enumerate() {
        let rank = x.rank() as i64;
        let from_end = |at: i64| if at < 0 { at.saturating_add(rank) } else { at }.clamp(0, rank);
        let (begin, end) =
            (from_end(begins[i]), if masks[i] != 0 { rank } else { from_end(ends[i]) });
        sizes.extend(&x.shape()[begin as usize..end.max(begin) as usize]);
    }
    one(ops::reshape(n.x("x")?, sizes)?)
}

fn expand_dims(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let axes = n.ints("axes")?;
    let axes = numbers::axes(&axes, x.rank() + axes.len())?;
    one(ops::expand_dims(x, axes)?)
}

fn squeeze(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let axes = match n.maybe_ints("axes")? {
        Some(axes) => numbers::axes(&axes, x.rank())?,
        None => (0..x.rank()).filter(|&axis| x.shape()[axis] == 1).collect(),
    };
    one(ops::squeeze(x, axes)?)
}

fn transpose(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let order = numbers::axes(&n.ints("perm")?, x.rank())?;
    one(ops::transpose(x, order)?)
}

fn flatten2d(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let axis = n.int_or("axis", 1)?;
    let axis = match axis == x.rank() as i64 {
        true => x.rank(),
        false => numbers::axis(axis, x.rank())?,
    };
    let rows: usize = x.shape()[..axis].iter().product();
    let columns: usize = x.shape()[axis..].iter().product();
    one(ops::reshape(x, [rows, columns])?)
}

fn concat(n: &Node<'_>) -> Outcome {
    let all = n.all("values")?;
    if all.iter().all(|x| x.rank() == 0) {
        // Numbers make a vector.
        return one(ops::stack(&all, 0)?);
    }
    let axis = n.axis("axis", 0, all[0].rank())?;
    if !n.flag("interleave", false)? {
        return one(ops::concatenate(&all, axis)?);
    }
    // One element of each in turn.
    let stacked = ops::stack(&all, axis as isize + 1)?;
    let mut sizes = all[0].shape().to_vec();
    sizes[axis] *= all.len();
    one(ops::reshape(&stacked, sizes)?)
}

fn stack(n: &Node<'_>) -> Outcome {
    let all = n.all("values")?;
    let axis = n.axis("axis", 0, all[0].rank() + 1)?;
    one(ops::stack(&all, axis as isize)?)
}

fn split(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let axis = n.axis("axis", 0, x.rank())?;
    let size = x.shape()[axis];
    let sizes = match (n.maybe_counts("split_sizes")?, n.maybe_int("num_splits")?) {
        (Some(sizes), _) => sizes,
        (None, Some(count)) => match numbers::count(count)? {
            count if count > 0 && count <= size && size.is_multiple_of(count) => {
                vec![size / count; count]
            }
            count => return Err(Fault::invalid(format!("{count} equal parts of {size}"))),
        },
        (None, None) => return Err(Fault::invalid("neither split_sizes nor num_splits")),
    };
    Ok(parts(x, axis, &sizes)?.into_iter().map(Value::from).collect())
}

fn tile(n: &Node<'_>) -> Outcome {
    let (x, reps) = (n.x("x")?, numbers::counts(&n.ints("reps")?)?);
    if reps.len() != x.rank() {
        return Err(Fault::invalid(format!("reps {reps:?} for {}", x.shape())));
    }
    let sizes: Vec<usize> =
        x.shape().iter().zip(&reps).map(|(size, reps)| size.saturating_mul(*reps)).collect();
    Shape::from(sizes).checked_size("tile", x.dtype())?;
    one(ops::tile(x, reps.iter().map(|&reps| reps as isize).collect::<Vec<_>>())?)
}

fn reverse(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    one(ops::flip(x, n.axes("axes", x.rank())?)?)
}

fn reverse_sequence(n: &Node<'_>) -> Outcome {
    let (x, lengths) = (n.x("x")?, n.x("lengths")?);
    let (time, batch) = (n.axis("seq_axis", 0, x.rank())?, n.axis("batch_axis", 0, x.rank())?);
    one(sequence_reversed(x, lengths, time, batch)?)
}

fn pad(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let given = numbers::counts(&n.ints("pad")?)?;
    if !given.len().is_multiple_of(2) || given.len() / 2 > x.rank() {
        return Err(Fault::invalid(format!("pad {given:?} for {}", x.shape())));
    }
    let before = x.rank() - given.len() / 2;
    let mut widths = vec![(0, 0); x.rank()];
    for (width, pair) in widths[before..].iter_mut().zip(given.chunks(2)) {
        *width = (pair[0], pair[1]);
    }
    let grown = x.shape().iter().zip(&widths).map(|(size, (a, b))| size.saturating_add(a + b));
    grown.collect::<Shape>().checked_size("pad", x.dtype())?;
    let mode = match n.text("mode", "constant")? {
        "constant" => match n.maybe("constant_val")? {
            Some(value) => PadMode::Filled(value.clone()),
            None => PadMode::from(0),
        },
        "reflect" => PadMode::Reflect,
        "replicate" => PadMode::Edge,
        other => return Err(Fault::invalid(format!("the mode '{other}' is not known"))),
    };
    one(ops::pad(x, &widths[..], mode)?)
}

/// What lies within so many diagonals below and above; below 0, all of them.
fn band_part(n: &Node<'_>) -> Outcome {
    let mut x = n.x("x")?.clone();
    let diagonals = |count: i64| count.min(1 << 40) as isize;
    let (lower, upper) = (n.int_or("lower", -1)?, n.int_or("upper", -1)?);
    if lower >= 0 {
        x = ops::triu(&x, -diagonals(lower))?;
    }
    if upper >= 0 {
        x = ops::tril(&x, diagonals(upper))?;
    }
    one(x)
}

fn cumsum(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let options =
        ScanOptions { reverse: n.flag("reverse", false)?, exclusive: n.flag("exclusive", false)? };
    one(ops::astype(&ops::cumsum(x, n.axis("axis", 0, x.rank())?, options)?, x.dtype())?)
}

/// Windows along an axis: the axis becomes that of the windows and that of their elements.
fn sliding_windows(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let axis = n.axis("axis", 0, x.rank())?;
    let (size, stride) = (n.count("size")?, numbers::count(n.int_or("stride", 1)?)?);
    let all = x.shape()[axis];
    if size == 0 || stride == 0 || size > all {
        return Err(Fault::invalid(format!("windows of {size}, {stride} apart, of {all}")));
    }
    let count = (all - size) / stride + 1;
    let places: Vec<i64> =
        (0..count).flat_map(|at| (0..size).map(move |i| (at * stride + i) as i64)).collect();
    let places = ops::reshape(&known(&places)?, [count, size])?;
    one(ops::take(x, &places, axis as isize)?)
}

/// Four sizes, and a factor above 0.
fn blocks(n: &Node<'_>, factor: &str) -> Result<([usize; 4], usize), Fault> {
    let (x, factor) = (n.x("x")?, n.count(factor)?);
    match x.shape()[..] {
        [a, b, c, d] if factor > 0 => Ok(([a, b, c, d], factor)),
        _ => Err(Fault::invalid(format!("blocks of {factor} of {}", x.shape()))),
    }
}

/// Elements by their axes split, moved and joined.
fn moved(x: &Array, split: &[usize], order: &[usize], joined: [usize; 4]) -> Outcome {
    let x = ops::reshape(x, split)?;
    one(ops::reshape(&ops::transpose(&x, order)?, joined)?)
}

fn depth_to_space(n: &Node<'_>) -> Outcome {
    let ([b, c, h, w], s) = blocks(n, "block_size")?;
    let channels = c / s.saturating_mul(s).max(1);
    let joined = [b, channels, h.saturating_mul(s), w.saturating_mul(s)];
    moved(n.x("x")?, &[b, s, s, channels, h, w], &[0, 3, 4, 1, 5, 2], joined)
}

fn space_to_depth(n: &Node<'_>) -> Outcome {
    let ([b, c, h, w], s) = blocks(n, "block_size")?;
    let joined = [b, c.saturating_mul(s).saturating_mul(s), h / s, w / s];
    moved(n.x("x")?, &[b, c, h / s, s, w / s, s], &[0, 3, 5, 1, 2, 4], joined)
}

fn pixel_shuffle(n: &Node<'_>) -> Outcome {
    let ([b, c, h, w], s) = blocks(n, "upscale_factor")?;
    let channels = c / s.saturating_mul(s).max(1);
    let joined = [b, channels, h.saturating_mul(s), w.saturating_mul(s)];
    moved(n.x("x")?, &[b, channels, s, s, h, w], &[0, 1, 4, 2, 5, 3], joined)
}

fn pixel_unshuffle(n: &Node<'_>) -> Outcome {
    let ([b, c, h, w], s) = blocks(n, "downscale_factor")?;
    let joined = [b, c.saturating_mul(s).saturating_mul(s), h / s, w / s];
    moved(n.x("x")?, &[b, c, h / s, s, w / s, s], &[0, 1, 3, 5, 2, 4], joined)
}

/// The sizes of pictures, those of their blocks, and what is around them.
type Batches = ([usize; 4], [usize; 2], [usize; 4]);

/// The pictures and blocks of an operation, with two pairs of `around`.
fn batches(n: &Node<'_>, around: &str) -> Result<Batches, Fault> {
    let x = n.x("x")?;
    let block = numbers::counts(&n.ints("block_shape")?)?;
    let widths = numbers::counts(&n.ints(around)?)?;
    match (&x.shape()[..], &block[..], &widths[..]) {
        (&[a, b, c, d], &[h, w], &[top, bottom, left, right]) if h > 0 && w > 0 => {
            Ok(([a, b, c, d], [h, w], [top, bottom, left, right]))
        }
        _ => Err(Fault::invalid(format!(
            "block_shape {block:?} and {around} {widths:?} of {}",
            x.shape()
        ))),
    }
}

fn space_to_batch(n: &Node<'_>) -> Outcome {
    let ([b, c, _, _], [h, w], [top, bottom, left, right]) = batches(n, "paddings")?;
    let widths = [(0, 0), (0, 0), (top, bottom), (left, right)];
    let grown =
        n.x("x")?.shape().iter().zip(&widths).map(|(size, (a, b))| size.saturating_add(a + b));
    grown.collect::<Shape>().checked_size("space_to_batch", n.x("x")?.dtype())?;
    let x = ops::pad(n.x("x")?, widths, 0)?;
    let (rows, columns) = (x.shape()[2] / h, x.shape()[3] / w);
    let joined = [b.saturating_mul(h).saturating_mul(w), c, rows, columns];
    moved(&x, &[b, c, rows, h, columns, w], &[3, 5, 0, 1, 2, 4], joined)
}

fn batch_to_space(n: &Node<'_>) -> Outcome {
    let ([b, c, rows, columns], [h, w], [top, bottom, left, right]) = batches(n, "crops")?;
    let x = ops::reshape(n.x("x")?, [h, w, b / h.saturating_mul(w), c, rows, columns])?;
    let x = ops::transpose(&x, [2, 3, 4, 0, 5, 1])?;
    let (height, width) = (rows.saturating_mul(h), columns.saturating_mul(w));
    let x = ops::reshape(&x, [b / (h * w), c, height, width])?;
    cropped(&x, (top, bottom), (left, right))
}

/// Without so many rows and columns at each side.
fn cropped(x: &Array, rows: (usize, usize), columns: (usize, usize)) -> Outcome {
    let mut y = x.clone();
    for (axis, (before, after)) in [(x.rank() - 2, rows), (x.rank() - 1, columns)] {
        let size = x.shape()[axis];
        let stop = size.checked_sub(after).filter(|&stop| stop >= before);
        let stop =
            stop.ok_or_else(|| Fault::invalid(format!("{before} and {after} cut from {size}")))?;
        y = part(&y, axis, before, stop)?;
    }
    one(y)
}

fn crop(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let pair = |name: &str| match numbers::counts(&n.ints(name)?)?[..] {
        [before, after] => Ok((before, after)),
        ref list => Err(Fault::invalid(format!("{name} {list:?} is no pair"))),
    };
    if x.rank() < 2 {
        return Err(Fault::invalid(format!("{} has no rows and columns", x.shape())));
    }
    cropped(x, pair("crop_height")?, pair("crop_width")?)
}

pub const OPS: &[Entry] = &[
    ("band_part", band_part),
    ("batch_to_space", batch_to_space),
    ("concat", concat),
    ("crop", crop),
    ("cumsum", cumsum),
    ("depth_to_space", depth_to_space),
    ("expand_dims", expand_dims),
    ("flatten2d", flatten2d),
    ("pad", pad),
    ("pixel_shuffle", pixel_shuffle),
    ("pixel_unshuffle", pixel_unshuffle),
    ("reshape", reshape),
    ("reshape_like", reshape_like),
    ("reverse", reverse),
    ("reverse_sequence", reverse_sequence),
    ("sliding_windows", sliding_windows),
    ("space_to_batch", space_to_batch),
    ("space_to_depth", space_to_depth),
    ("split", split),
    ("squeeze", squeeze),
    ("stack", stack),
    ("tile", tile),
    ("transpose", transpose),
];
