//! Scatters: updates joined in at indices.
//!
//! One thread has every place that no two of its updates share with another thread's, and goes
//! through the indices in their order: results repeat, and of updates of one place the last wins.

use cupola_core::backend::Segment;
use cupola_core::prim::{Binary, Scatter, ScatterAxis, ScatterMode};

use super::gather::Indices;
use super::view::{View, unflatten};
use super::{Draft, Missing, Program, map};
use crate::ir::{Number, Target, Val};

/// Threads in a block.
const BLOCK: u32 = 256;

/// Joins an update with what is there.
fn join<'k>(mode: ScatterMode, out: View<'k>, at: Val<'k>, update: Number<'k>) {
    let op = match mode {
        ScatterMode::Set => return out.buf.store_number(at, update),
        ScatterMode::Add => Binary::Add,
        ScatterMode::Prod => Binary::Mul,
        ScatterMode::Max => Binary::Maximum,
        ScatterMode::Min => Binary::Minimum,
    };
    let old = out.buf.load_number(at);
    out.buf.store_number(at, old.binary(op, update, out.buf.dtype));
}

/// How many threads share the places along an axis of `size`, where there are `own` places beside.
fn share(size: usize, own: u64, target: &Target) -> usize {
    let wanted = u64::from(target.threads) / own.max(1);
    wanted.clamp(1, size.max(1) as u64) as usize
}

/// Adds the launches of a scatter.
pub fn scatter(
    program: &mut Program,
    scatter: &Scatter,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, updates, out) = (&segment.inputs[0], &segment.inputs[1], &segment.outputs[0]);
    if out.aval.shape.size() == 0 {
        return Ok(());
    }
    program.launches.push(map::copy(segment, target)?);
    if updates.aval.shape.size() == 0 {
        return Ok(());
    }
    let rank = x.aval.shape.rank();
    let lead = updates.aval.shape.rank() - rank;
    let slice = &updates.aval.shape[lead..];
    let k = Draft::new("scatter", BLOCK, segment, target)?;
    let (from, to) = (k.input(segment, 1), k.output(segment, 0));
    let axes: Vec<_> = scatter.axes.iter().map(|&a| (a, x.aval.shape[a], slice[a])).collect();
    let indices = Indices::bind(&k, program, segment, 2, "scatter", &axes);
    // Threads have places along the axes without indices, and places of the first axis with them
    // in turns; they walk over the positions and over the slices along the axes with indices.
    let free: Vec<usize> = (0..rank).filter(|a| !scatter.axes.contains(a)).collect();
    let free_sizes: Vec<usize> = free.iter().map(|&a| slice[a]).collect();
    let span_sizes: Vec<usize> = scatter.axes.iter().map(|&a| slice[a]).collect();
    let own: u64 = free_sizes.iter().map(|&s| s as u64).product();
    let turns = match scatter.axes.first() {
        Some(&axis) => share(x.aval.shape[axis], own, target),
        None => 1,
    };
    let positions: usize = updates.aval.shape[..lead].iter().product();
    let spans: usize = span_sizes.iter().product();
    let threads = own * turns as u64;
    k.each(threads, |at| {
        let split = unflatten(at, &[turns, own as usize]);
        let (turn, own) = (split[0], split[1]);
        let fixed = unflatten(own, &free_sizes);
        k.count(k.index(positions as i64), |position| {
            let position = unflatten(position, &updates.aval.shape[..lead]);
            let starts: Vec<Val<'_>> = indices.iter().map(|array| array.at(&position)).collect();
            k.count(k.index(spans as i64), |span| {
                let along = unflatten(span, &span_sizes);
                let zero = k.index(0);
                let (mut source, mut end) = (vec![zero; rank], vec![zero; rank]);
                for (&axis, &i) in free.iter().zip(&fixed) {
                    (source[axis], end[axis]) = (i, i);
                }
                for ((&axis, &i), &start) in scatter.axes.iter().zip(&along).zip(&starts) {
                    (source[axis], end[axis]) = (i, start + i);
                }
                let mine = match scatter.axes.first() {
                    Some(&axis) if turns > 1 => (end[axis] % turns).eq(turn),
                    _ => k.bool(true),
                };
                k.when(mine, || {
                    let source = [&position[..], &source].concat();
                    let update = from.load(&source, &updates.strides);
                    join(scatter.mode, to, to.at(&end, &out.strides), update);
                });
            });
        });
    });
    program.launches.push(k.launch_over(threads)?);
    Ok(())
}

/// Adds the launches of a scatter along an axis.
pub fn scatter_axis(
    program: &mut Program,
    scatter: &ScatterAxis,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (updates, out) = (&segment.inputs[1], &segment.outputs[0]);
    if out.aval.shape.size() == 0 {
        return Ok(());
    }
    program.launches.push(map::copy(segment, target)?);
    if updates.aval.shape.size() == 0 {
        return Ok(());
    }
    let k = Draft::new("put_along_axis", BLOCK, segment, target)?;
    let (from, to) = (k.input(segment, 1), k.output(segment, 0));
    let axis = scatter.axis;
    let axes = [(axis, out.aval.shape[axis], 1)];
    let indices = Indices::bind(&k, program, segment, 2, "put_along_axis", &axes);
    let mut rows = updates.aval.shape.to_vec();
    rows[axis] = 1;
    let own: u64 = rows.iter().map(|&s| s as u64).product();
    let turns = share(out.aval.shape[axis], own, target);
    let threads = own * turns as u64;
    k.each(threads, |at| {
        let split = unflatten(at, &[turns, own as usize]);
        let (turn, own) = (split[0], split[1]);
        let row = unflatten(own, &rows);
        k.count(k.index(updates.aval.shape[axis] as i64), |position| {
            let mut place = row.clone();
            place[axis] = position;
            let index = indices[0].at(&place);
            k.when((index % turns).eq(turn), || {
                let update = from.load(&place, &updates.strides);
                place[axis] = index;
                join(scatter.mode, to, to.at(&place, &out.strides), update);
            });
        });
    });
    program.launches.push(k.launch_over(threads)?);
    Ok(())
}
