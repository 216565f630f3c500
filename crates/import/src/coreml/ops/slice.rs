//! Parts of arrays, taken and replaced.

use cupola_core::ops::S;

use super::prelude::*;

/// A range for each axis, and the axes that go.
struct Slices {
    items: Vec<S>,
    squeezed: Vec<usize>,
}

fn mask(n: &Node<'_>, name: &str, rank: usize) -> Result<Vec<bool>, Fault> {
    match n.maybe_ints(name)? {
        None => Ok(vec![false; rank]),
        Some(flags) if flags.len() == rank => Ok(flags.iter().map(|&flag| flag != 0).collect()),
        Some(flags) => Err(Fault::invalid(format!("{name} has {} of {rank} axes", flags.len()))),
    }
}

fn each(n: &Node<'_>, name: &str, rank: usize) -> Result<Vec<i64>, Fault> {
    let list = n.ints(name)?;
    match list.len() == rank {
        true => Ok(list),
        false => Err(Fault::invalid(format!("{name} {list:?} for {rank} axes"))),
    }
}

/// The slices of an operation, as those of NumPy.
fn slices(n: &Node<'_>, x: &Array) -> Result<Slices, Fault> {
    let rank = x.rank();
    let (begin, end) = (each(n, "begin", rank)?, each(n, "end", rank)?);
    let step = match n.maybe_ints("stride")? {
        None => vec![1; rank],
        Some(_) => each(n, "stride", rank)?,
    };
    let (from_start, to_end) = (mask(n, "begin_mask", rank)?, mask(n, "end_mask", rank)?);
    let single = mask(n, "squeeze_mask", rank)?;
    let (mut items, mut squeezed) = (Vec::with_capacity(rank), Vec::new());
    for axis in 0..rank {
        let size = x.shape()[axis] as i64;
        if single[axis] {
            let at = if from_start[axis] {
                0
            } else {
                numbers::axis(begin[axis], size as usize)? as i64
            };
            squeezed.push(axis);
            items.push(S::Range { start: Some(at as isize), stop: Some(at as isize + 1), step: 1 });
            continue;
        }
        if step[axis] == 0 {
            return Err(Fault::invalid(format!("the stride of axis {axis} is 0")));
        }
        let start = (!from_start[axis]).then_some(begin[axis] as isize);
        let stop = (!to_end[axis]).then_some(end[axis] as isize);
        items.push(S::Range { start, stop, step: step[axis] as isize });
    }
    Ok(Slices { items, squeezed })
}

fn slice_by_index(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    if let Some(sizes) = moving(n, x)? {
        let axes: Vec<usize> = (0..x.rank()).collect();
        let part = ops::slice_at(x, n.x("begin")?, axes, sizes)?;
        let single = mask(n, "squeeze_mask", x.rank())?;
        let squeezed: Vec<usize> = (0..x.rank()).filter(|&axis| single[axis]).collect();
        return one(ops::squeeze(&part, squeezed)?);
    }
    let Slices { items, squeezed } = slices(n, x)?;
    let part = ops::index(x, &items)?;
    one(if squeezed.is_empty() { part } else { ops::squeeze(&part, squeezed)? })
}

/// The sizes of a slice whose place depends on what runs, and whose sizes the program says.
fn moving(n: &Node<'_>, x: &Array) -> Result<Option<Vec<usize>>, Fault> {
    let plain = n.maybe_ints("stride")?.is_none_or(|list| list.iter().all(|&step| step == 1))
        && n.tensor("begin")?.array.shape()[..] == [x.rank()];
    let output = n.step.outputs.first().and_then(|output| output.sizes.as_ref());
    let (false, true, Some(sizes)) = (n.tensor("begin")?.folded, plain, output) else {
        return Ok(None);
    };
    let mut sizes = sizes.iter();
    let mut out = Vec::with_capacity(x.rank());
    let whole = mask(n, "begin_mask", x.rank())?;
    for (axis, single) in mask(n, "squeeze_mask", x.rank())?.into_iter().enumerate() {
        let size = if single { Some(1) } else { sizes.next().copied().flatten() };
        match size {
            Some(size) if !whole[axis] => out.push(size),
            _ => return Ok(None),
        }
    }
    Ok(Some(out))
}

fn slice_by_size(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let rank = x.rank();
    let size = each(n, "size", rank)?;
    if !n.tensor("begin")?.folded && size.iter().all(|&size| size >= 0) {
        let axes: Vec<usize> = (0..rank).collect();
        return one(ops::slice_at(x, n.x("begin")?, axes, numbers::counts(&size)?)?);
    }
    let begin = each(n, "begin", rank)?;
    let mut items = Vec::with_capacity(rank);
    for axis in 0..rank {
        let all = x.shape()[axis] as i64;
        let start = if begin[axis] < 0 { begin[axis].saturating_add(all) } else { begin[axis] };
        let stop = if size[axis] == -1 { all } else { start.saturating_add(size[axis]) };
        if start < 0 || stop < start || stop > all {
            let (begin, size) = (begin[axis], size[axis]);
            return Err(Fault::invalid(format!(
                "{size} elements from {begin} of axis {axis} of {all}"
            )));
        }
        items.push(S::Range { start: Some(start as isize), stop: Some(stop as isize), step: 1 });
    }
    one(ops::index(x, &items)?)
}

fn slice_update(n: &Node<'_>) -> Outcome {
    let (x, update) = (n.x("x")?, n.x("update")?);
    let plain = n.maybe_ints("stride")?.is_none_or(|list| list.iter().all(|&step| step == 1))
        && n.tensor("begin")?.array.shape()[..] == [x.rank()]
        && update.rank() == x.rank();
    let masked = mask(n, "begin_mask", x.rank())?.contains(&true);
    if !n.tensor("begin")?.folded && plain && !masked {
        let axes: Vec<usize> = (0..x.rank()).collect();
        return one(ops::slice_update_at(x, update, n.x("begin")?, axes)?);
    }
    let Slices { items, squeezed } = slices(n, x)?;
    let part = ops::index(x, &items)?;
    let mut sizes = part.shape().to_vec();
    for axis in squeezed.into_iter().rev() {
        sizes.remove(axis);
    }
    if update.shape()[..] != sizes {
        return Err(Fault::invalid(format!("an update of {} for {sizes:?}", update.shape())));
    }
    let update = ops::reshape(update, &part.shape()[..])?;
    one(ops::at_set(x, &items, &update)?)
}

pub const OPS: &[Entry] = &[
    ("slice_by_index", slice_by_index),
    ("slice_by_size", slice_by_size),
    ("slice_update", slice_update),
];
