//! Elements by index.

use cupola_core::ops::ScatterMode;

use super::prelude::*;

fn gather(n: &Node<'_>) -> Outcome {
    let (x, indices) = (n.x(0)?, n.x(1)?);
    let axis = n.axis("axis", 0, x.rank())?;
    n.like(ops::take(x, indices, axis as isize)?, 0)
}

fn gather_elements(n: &Node<'_>) -> Outcome {
    let (x, indices) = (n.x(0)?, n.x(1)?);
    let axis = n.axis("axis", 0, x.rank())?;
    if indices.rank() != x.rank() {
        return Err(Fault::invalid(format!("indices {} for {}", indices.shape(), x.shape())));
    }
    // Along the other axes the indices may be fewer.
    let mut part = x.clone();
    for other in (0..x.rank()).filter(|&a| a != axis) {
        let size = indices.shape()[other];
        if size > x.shape()[other] {
            return Err(Fault::invalid(format!("indices {} for {}", indices.shape(), x.shape())));
        }
        part = super::movement::part(&part, other, 0, size)?;
    }
    n.like(ops::take_along_axis(&part, indices, axis as isize)?, 0)
}

/// The places 0, 1, .. along an axis of `rank` ones.
fn steps(size: usize, axis: usize, rank: usize) -> Made {
    let mut sizes = vec![1; rank];
    sizes[axis] = size;
    Ok(ops::reshape(&ops::arange_in(0, size, 1, DType::I64)?, sizes)?)
}

/// Index arrays of the axes that tuples of indices go into, `batch` axes before them.
fn tuples(x: &Array, indices: &Array, batch: usize) -> Result<(Vec<Array>, usize), Fault> {
    let lead = indices.rank().checked_sub(1);
    let lead = lead.ok_or_else(|| Fault::invalid("the indices have no axes"))?;
    let count = indices.shape()[lead];
    if batch > lead || batch + count > x.rank() {
        return Err(Fault::invalid(format!("indices {} into {}", indices.shape(), x.shape())));
    }
    let mut arrays = Vec::with_capacity(batch + count);
    for axis in 0..batch {
        arrays.push(steps(indices.shape()[axis], axis, lead)?);
    }
    for at in 0..count {
        let one = super::movement::part(indices, lead, at, at + 1)?;
        arrays.push(ops::squeeze(&one, lead)?);
    }
    Ok((arrays, count))
}

fn gather_nd(n: &Node<'_>) -> Outcome {
    let (x, indices) = (n.x(0)?, n.x(1)?);
    let batch = node::count(n.int("batch_dims", 0)?)?;
    let (arrays, count) = tuples(x, indices, batch)?;
    let mut shape = indices.shape()[..indices.rank() - 1].to_vec();
    shape.extend(&x.shape()[batch + count..]);
    if Shape::from(&shape).size() == 0 {
        return n.like(ops::zeros(shape, x.dtype())?, 0);
    }
    let mut sizes = x.shape().to_vec();
    sizes[..batch + count].fill(1);
    let places: Vec<(usize, &Array)> = arrays.iter().enumerate().collect();
    let found = match places.is_empty() {
        true => ops::broadcast_to(x, &shape)?,
        false => ops::gather(x, &places, sizes)?,
    };
    n.like(ops::reshape(&found, shape)?, 0)
}

/// How updates join in.
fn joining(n: &Node<'_>) -> Result<ScatterMode, Fault> {
    Ok(match n.text("reduction", "none")? {
        "none" => ScatterMode::Set,
        "add" => ScatterMode::Add,
        "mul" => ScatterMode::Prod,
        "max" => ScatterMode::Max,
        "min" => ScatterMode::Min,
        other => return Err(Fault::invalid(format!("the reduction '{other}' is not known"))),
    })
}

fn scatter_nd(n: &Node<'_>) -> Outcome {
    let (x, indices, updates) = (n.x(0)?, n.x(1)?, n.x(2)?);
    let (arrays, count) = tuples(x, indices, 0)?;
    if arrays.is_empty() {
        return n.like(ops::reshape(updates, &x.shape()[..])?, 0);
    }
    let mut shape = indices.shape()[..indices.rank() - 1].to_vec();
    shape.extend(std::iter::repeat_n(1, count));
    shape.extend(&x.shape()[count..]);
    let updates = ops::reshape(updates, shape)?;
    let places: Vec<(usize, &Array)> = arrays.iter().enumerate().collect();
    n.like(ops::scatter(x, &places, &updates, joining(n)?)?, 0)
}

fn scatter_elements(n: &Node<'_>) -> Outcome {
    let (x, indices, updates) = (n.x(0)?, n.x(1)?, n.x(2)?);
    let axis = n.axis("axis", 0, x.rank())?;
    if indices.rank() != x.rank() || indices.shape() != updates.shape() {
        return Err(Fault::invalid(format!(
            "indices {} and updates {} for {}",
            indices.shape(),
            updates.shape(),
            x.shape()
        )));
    }
    let mut arrays = Vec::with_capacity(x.rank());
    for other in 0..x.rank() {
        arrays.push(match other == axis {
            true => indices.clone(),
            false => steps(indices.shape()[other], other, x.rank())?,
        });
    }
    let mut shape = updates.shape().to_vec();
    shape.extend(std::iter::repeat_n(1, x.rank()));
    let updates = ops::reshape(updates, shape)?;
    let places: Vec<(usize, &Array)> = arrays.iter().enumerate().collect();
    n.like(ops::scatter(x, &places, &updates, joining(n)?)?, 0)
}

fn compress(n: &Node<'_>) -> Outcome {
    let (x, condition) = (n.x(0)?, n.x(1)?);
    let (x, axis) = match n.maybe_int("axis")? {
        Some(axis) => (x.clone(), node::axis(axis, x.rank())?),
        None => (ops::flatten(x, 0, -1)?, 0),
    };
    let kept = ops::astype(condition, DType::Bool)?.to_vec::<bool>()?;
    let places: Vec<i64> = (0i64..).zip(kept).filter_map(|(i, keep)| keep.then_some(i)).collect();
    n.like(ops::take(&x, &super::movement::known(&places)?, axis as isize)?, 0)
}

fn non_zero(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let x = if x.rank() == 0 { ops::reshape(x, [1])? } else { x.clone() };
    let places = ops::astype(&ops::argwhere(&x)?, DType::I64)?;
    let places = ops::transpose(&places, [1, 0])?;
    match n.x(0)?.rank() {
        0 => one(super::movement::part(&places, 0, 0, 0)?),
        _ => one(places),
    }
}

pub const OPS: &[Entry] = &[
    ("Compress", 9, compress),
    ("Gather", 1, gather),
    ("GatherElements", 11, gather_elements),
    ("GatherND", 11, gather_nd),
    ("NonZero", 9, non_zero),
    ("Scatter", 9, scatter_elements),
    ("ScatterElements", 11, scatter_elements),
    ("ScatterND", 11, scatter_nd),
];
