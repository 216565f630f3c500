//! Movement of elements.

#![deny(clippy::wildcard_enum_match_arm)]

use cupola_core::prim::Movement;
use cupola_core::{Aval, DType, Result, Shape};

use super::writer::{Attr, Val, Writer};

pub fn movement(
    w: &mut Writer,
    op: &Movement,
    args: &[Val],
    avals: &[&Aval],
    shape: &Shape,
) -> Result<Val> {
    if let Movement::Broadcast(_) = op {
        // Operators repeat operands themselves; what needs all elements asks for them.
        return Ok(args[0].clone());
    }
    let x = w.full(&args[0], &avals[0].shape)?;
    match op {
        Movement::Broadcast(_) => Ok(x),
        Movement::Reshape(_)
        | Movement::Flatten { .. }
        | Movement::Unflatten { .. }
        | Movement::Squeeze(_)
        | Movement::ExpandDims(_) => w.reshape(&x, shape),
        Movement::Transpose(axes) => Ok(w.transpose(&x, axes)),
        Movement::Flip(axes) => w.flip(&x, axes),
        Movement::Slice { start, sizes, strides } => w.slice(&x, start, sizes, strides),
        Movement::SliceUpdate { start, strides } => {
            let update = w.full(&args[1], &avals[1].shape)?;
            slice_update(w, &x, &update, start, strides)
        }
        Movement::Pad { low, high, interior } => w.pad(&x, &args[1], low, high, interior),
        Movement::Concatenate { axis } => {
            let all: Vec<Val> = (args.iter().zip(avals))
                .map(|(val, aval)| w.full(val, &aval.shape))
                .collect::<Result<_>>()?;
            let all: Vec<&Val> = all.iter().collect();
            let along = Attr::Int("axis", *axis as i64);
            Ok(w.val("Concat", &all, &[along], shape.clone(), x.dtype))
        }
    }
}

/// The update, with a border up to the shape of x, where it is; elsewhere x.
fn slice_update(
    w: &mut Writer,
    x: &Val,
    update: &Val,
    start: &[usize],
    strides: &[usize],
) -> Result<Val> {
    if update.shape.contains(&0) {
        return Ok(x.clone());
    }
    let reach = |axis: usize| start[axis] + (update.shape[axis] - 1) * strides[axis] + 1;
    let high: Vec<usize> = (0..x.shape.rank()).map(|axis| x.shape[axis] - reach(axis)).collect();
    let between: Vec<usize> = strides.iter().map(|stride| stride - 1).collect();
    // Where the border has operators for few dtypes, bytes do not matter: it is not read.
    let wide = if x.dtype == DType::Bool { DType::I32 } else { x.dtype };
    let (own, zero) = (w.cast(update, wide)?, w.scalar(0, wide)?);
    let padded = w.pad(&own, &zero, start, &high, &between)?;
    let padded = w.cast(&padded, x.dtype)?;
    let mut place: Option<Val> = None;
    for axis in 0..x.shape.rank() {
        let hits = |at: usize| {
            at >= start[axis]
                && at < reach(axis)
                && (at - start[axis]).is_multiple_of(strides[axis])
        };
        let along: Vec<bool> = (0..x.shape[axis]).map(hits).collect();
        if along.iter().all(|&hit| hit) {
            continue;
        }
        let mut shape = vec![1; x.shape.rank()];
        shape[axis] = along.len();
        let own = w.bools(&along, &shape)?;
        place = Some(match place {
            Some(place) => w.map("And", &[&place, &own], DType::Bool),
            None => own,
        });
    }
    Ok(match place {
        Some(place) => w.map("Where", &[&place, &padded, x], x.dtype),
        None => padded,
    })
}
