//! Elements by index.

use cupola_core::ops::ScatterMode;

use super::prelude::*;
use crate::lowering::index;

fn gather(n: &Node<'_>) -> Outcome {
    let (x, indices) = (n.x("x")?, n.x("indices")?);
    let axis = n.axis("axis", 0, x.rank())?;
    let batch = numbers::count(n.int_or("batch_dims", 0)?)?;
    if batch == 0 {
        return one(ops::take(x, indices, axis as isize)?);
    }
    if batch > indices.rank() || batch > axis || x.shape()[..batch] != indices.shape()[..batch] {
        return Err(Fault::invalid(format!(
            "indices {} into {} with {batch} axes of a batch",
            indices.shape(),
            x.shape()
        )));
    }
    // The axis behind those of the batch, and the tuples of its indices.
    let moved = ops::moveaxis(x, axis as isize, batch as isize)?;
    let found = index::gather_nd(&moved, &ops::expand_dims(indices, -1)?, batch)?;
    // What was before the axis goes before the indices again.
    let (between, inner) = (axis - batch, indices.rank() - batch);
    let mut order: Vec<usize> = (0..batch).collect();
    order.extend(batch + inner..batch + inner + between);
    order.extend(batch..batch + inner);
    order.extend(batch + inner + between..found.rank());
    one(ops::transpose(&found, order)?)
}

fn gather_along_axis(n: &Node<'_>) -> Outcome {
    let (x, indices) = (n.x("x")?, n.x("indices")?);
    one(index::gather_elements(x, indices, n.axis("axis", 0, x.rank())?)?)
}

fn gather_nd(n: &Node<'_>) -> Outcome {
    let batch = numbers::count(n.int_or("batch_dims", 0)?)?;
    one(index::gather_nd(n.x("x")?, n.x("indices")?, batch)?)
}

/// How updates join in, and the updates.
fn joining(n: &Node<'_>) -> Result<(ScatterMode, Array), Fault> {
    let updates = n.x("updates")?;
    Ok(match n.text("mode", "add")? {
        "update" => (ScatterMode::Set, updates.clone()),
        "add" => (ScatterMode::Add, updates.clone()),
        "sub" => (ScatterMode::Add, ops::negative(updates)?),
        "mul" => (ScatterMode::Prod, updates.clone()),
        "div" if updates.dtype().is_float() => (ScatterMode::Prod, ops::reciprocal(updates)?),
        "div" => return Err(Fault::unsupported("the mode 'div' of integers is not read")),
        "max" => (ScatterMode::Max, updates.clone()),
        "min" => (ScatterMode::Min, updates.clone()),
        other => return Err(Fault::invalid(format!("the mode '{other}' is not known"))),
    })
}

fn scatter(n: &Node<'_>) -> Outcome {
    let (x, indices) = (n.x("data")?, n.x("indices")?);
    let axis = n.axis("axis", 0, x.rank())?;
    let (mode, updates) = joining(n)?;
    if indices.rank() != 1 || updates.rank() != x.rank() {
        return Err(Fault::invalid(format!(
            "indices {} and updates {} for {}",
            indices.shape(),
            updates.shape(),
            x.shape()
        )));
    }
    // The axis first, as tuples of one index.
    let moved = ops::moveaxis(x, axis as isize, 0)?;
    let updates = ops::moveaxis(&updates, axis as isize, 0)?;
    let made = index::scatter_nd(&moved, &ops::expand_dims(indices, -1)?, &updates, mode)?;
    one(ops::moveaxis(&made, 0, axis as isize)?)
}

fn scatter_along_axis(n: &Node<'_>) -> Outcome {
    let x = n.x("data")?;
    let (mode, updates) = joining(n)?;
    let axis = n.axis("axis", 0, x.rank())?;
    one(index::scatter_elements(x, n.x("indices")?, &updates, axis, mode)?)
}

fn scatter_nd(n: &Node<'_>) -> Outcome {
    let (mode, updates) = joining(n)?;
    one(index::scatter_nd(n.x("data")?, n.x("indices")?, &updates, mode)?)
}

fn non_zero(n: &Node<'_>) -> Outcome {
    one(ops::argwhere(n.x("x")?)?)
}

pub const OPS: &[Entry] = &[
    ("gather", gather),
    ("gather_along_axis", gather_along_axis),
    ("gather_nd", gather_nd),
    ("non_zero", non_zero),
    ("scatter", scatter),
    ("scatter_along_axis", scatter_along_axis),
    ("scatter_nd", scatter_nd),
];
