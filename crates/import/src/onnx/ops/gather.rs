//! Elements by index.

use cupola_core::ops::ScatterMode;

use super::prelude::*;
use crate::lowering::index;
use crate::lowering::movement::{known, part};

fn gather(n: &Node<'_>) -> Outcome {
    let (x, indices) = (n.x(0)?, n.x(1)?);
    let axis = n.axis("axis", 0, x.rank())?;
    let out = match known_places(n, x.shape()[axis])? {
        // One place is a part of the array, where it lies.
        Some(places) if indices.rank() == 0 => ops::take(x, i64::from(places[0]), axis as isize)?,
        Some(places) => ops::take(x, &Array::from_vec(places, indices.shape())?, axis as isize)?,
        None => ops::take(x, indices, axis as isize)?,
    };
    n.like(out, 0)
}

/// The indices of an axis of this size, counted from its start, where they are known and within.
fn known_places(n: &Node<'_>, size: usize) -> Result<Option<Vec<u32>>, Fault> {
    let indices = n.tensor(1)?;
    if !indices.folded || !indices.array.dtype().is_integer() {
        return Ok(None);
    }
    let size = size as i64;
    let place = |index: &i64| {
        let from_start = if *index < 0 { index + size } else { *index };
        u32::try_from(from_start).ok().filter(|_| from_start < size)
    };
    Ok(n.need_ints(1)?.iter().map(place).collect())
}

fn gather_elements(n: &Node<'_>) -> Outcome {
    let (x, indices) = (n.x(0)?, n.x(1)?);
    let axis = n.axis("axis", 0, x.rank())?;
    n.like(index::gather_elements(x, indices, axis)?, 0)
}

fn gather_nd(n: &Node<'_>) -> Outcome {
    let batch = node::count(n.int("batch_dims", 0)?)?;
    n.like(index::gather_nd(n.x(0)?, n.x(1)?, batch)?, 0)
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
    n.like(index::scatter_nd(n.x(0)?, n.x(1)?, n.x(2)?, joining(n)?)?, 0)
}

fn scatter_elements(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let axis = n.axis("axis", 0, x.rank())?;
    n.like(index::scatter_elements(x, n.x(1)?, n.x(2)?, axis, joining(n)?)?, 0)
}

fn compress(n: &Node<'_>) -> Outcome {
    let (x, condition) = (n.x(0)?, n.x(1)?);
    let (x, axis) = match n.maybe_int("axis")? {
        Some(axis) => (x.clone(), node::axis(axis, x.rank())?),
        None => (ops::flatten(x, 0, -1)?, 0),
    };
    let kept = ops::astype(condition, DType::Bool)?.to_vec::<bool>()?;
    let places: Vec<i64> = (0i64..).zip(kept).filter_map(|(i, keep)| keep.then_some(i)).collect();
    n.like(ops::take(&x, &known(&places)?, axis as isize)?, 0)
}

fn non_zero(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let x = if x.rank() == 0 { ops::reshape(x, [1])? } else { x.clone() };
    let places = ops::astype(&ops::argwhere(&x)?, DType::I64)?;
    let places = ops::transpose(&places, [1, 0])?;
    match n.x(0)?.rank() {
        0 => one(part(&places, 0, 0, 0)?),
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
