//! Reading and writing at computed places: gathers and scatters.
//!
//! An index outside its axis is read as 0 and noted as a fault, which the driver reports at the
//! next read. Scatters have one thread for every place that no two of its updates share with
//! another thread's, which goes through the indices in their order: results repeat, and of
//! updates of one place the last wins.

use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::{Binary, Gather, GatherAxis, Scatter, ScatterAxis, ScatterMode};

use super::view::View;
use super::{Draft, Missing, Place, Program, map};
use crate::ir::{Access, Buf, Number, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;

/// An array of indices along an axis.
struct Indices<'a> {
    view: View,
    operand: &'a Operand,
    /// How many places there are to name.
    places: usize,
    /// The fault's number, an argument.
    fault: Val,
}

impl Indices<'_> {
    /// The index at a position, made safe.
    fn at(&self, draft: &mut Draft<'_>, position: &[Val], faults: Buf) -> Val {
        let raw = draft.load(self.view, position, &self.operand.strides).real();
        let b = &mut draft.build;
        let zero = b.int(0, raw.ty);
        let mut valid = b.ge(raw, zero);
        let most = match raw.ty {
            Ty::I32 => i32::MAX as usize,
            Ty::U32 => u32::MAX as usize,
            _ => usize::MAX,
        };
        if self.places <= most {
            let places = b.int(self.places as i64, raw.ty);
            let below = b.lt(raw, places);
            valid = b.and(valid, below);
        }
        let outside = b.not(valid);
        b.open_when();
        let first = b.u32(0);
        b.store(faults, first, self.fault);
        b.close_when(outside);
        let safe = b.select(valid, raw, zero);
        b.convert(safe, draft.index)
    }
}

/// Binds the index arrays: the inputs from `first` on, one for each axis and its count of places.
fn indices<'a>(
    draft: &mut Draft<'_>,
    program: &mut Program,
    segment: &'a Segment,
    first: usize,
    op: &'static str,
    axes: &[(usize, usize, usize)],
) -> Result<Vec<Indices<'a>>, Missing> {
    let mut bound = Vec::new();
    for (i, &(axis, size, span)) in axes.iter().enumerate() {
        let operand = &segment.inputs[first + i];
        let view = draft.view(Place::Input(first + i), operand.aval.dtype, Access::Read)?;
        let of = if span == 1 { String::new() } else { format!(", in slices of {span}") };
        let detail = format!("an index is outside axis {axis} of size {size}{of}");
        let fault = draft.fault(program, op, detail);
        bound.push(Indices { view, operand, places: (size + 1).saturating_sub(span), fault });
    }
    Ok(bound)
}

/// Adds the launch of a gather.
pub fn gather(
    program: &mut Program,
    gather: &Gather,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let mut draft = Draft::new("gather", BLOCK, segment, target)?;
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let from = draft.view(Place::Input(0), x.aval.dtype, Access::Read)?;
    let to = draft.view(Place::Output(0), out.aval.dtype, Access::Write)?;
    let faults = draft.faults()?;
    let axes: Vec<_> = gather.axes.iter().map(|&a| (a, x.aval.shape[a], gather.sizes[a])).collect();
    let bound = indices(&mut draft, program, segment, 1, "gather", &axes)?;
    let lead = out.aval.shape.rank() - gather.sizes.len();
    let total = out.aval.shape.size() as u64;
    draft.each(total, |draft, at| {
        let place = draft.unflatten(at, &out.aval.shape);
        let mut start = draft.place(from.offset, &place[lead..], &x.strides);
        for (array, &axis) in bound.iter().zip(&gather.axes) {
            let index = array.at(draft, &place[..lead], faults);
            start = draft.place(start, &[index], &x.strides[axis..=axis]);
        }
        let value = draft.build.load_number(from.buf, start);
        let end = draft.place(to.offset, &place, &out.strides);
        draft.build.store_number(to.buf, end, value);
    });
    program.launches.push(draft.launch_over(total));
    Ok(())
}

/// Adds the launch of a gather along an axis.
pub fn gather_axis(
    program: &mut Program,
    gather: &GatherAxis,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let mut draft = Draft::new("take_along_axis", BLOCK, segment, target)?;
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let from = draft.view(Place::Input(0), x.aval.dtype, Access::Read)?;
    let to = draft.view(Place::Output(0), out.aval.dtype, Access::Write)?;
    let faults = draft.faults()?;
    let axis = gather.axis;
    let axes = [(axis, x.aval.shape[axis], 1)];
    let bound = indices(&mut draft, program, segment, 1, "take_along_axis", &axes)?;
    let total = out.aval.shape.size() as u64;
    draft.each(total, |draft, at| {
        let place = draft.unflatten(at, &out.aval.shape);
        let mut source = place.clone();
        source[axis] = bound[0].at(draft, &place, faults);
        let value = draft.load(from, &source, &x.strides);
        let end = draft.place(to.offset, &place, &out.strides);
        draft.build.store_number(to.buf, end, value);
    });
    program.launches.push(draft.launch_over(total));
    Ok(())
}

/// Joins an update with what is there.
fn join(
    draft: &mut Draft<'_>,
    mode: ScatterMode,
    out: View,
    at: Val,
    update: Number,
) -> Result<(), Missing> {
    let dtype = draft.build.dtype(out.buf);
    let op = match mode {
        ScatterMode::Set => {
            draft.build.store_number(out.buf, at, update);
            return Ok(());
        }
        ScatterMode::Add => Binary::Add,
        ScatterMode::Prod => Binary::Mul,
        ScatterMode::Max => Binary::Maximum,
        ScatterMode::Min => Binary::Minimum,
    };
    let old = draft.build.load_number(out.buf, at);
    let new = draft.build.binary(op, old, update, dtype)?;
    draft.build.store_number(out.buf, at, new);
    Ok(())
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
    let mut draft = Draft::new("scatter", BLOCK, segment, target)?;
    let from = draft.view(Place::Input(1), updates.aval.dtype, Access::Read)?;
    let to = draft.view(Place::Output(0), out.aval.dtype, Access::Write)?;
    let faults = draft.faults()?;
    let axes: Vec<_> = scatter.axes.iter().map(|&a| (a, x.aval.shape[a], slice[a])).collect();
    let bound = indices(&mut draft, program, segment, 2, "scatter", &axes)?;
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
    let mut failed = Ok(());
    draft.each(own * turns as u64, |draft, at| {
        let split = draft.unflatten(at, &[turns, own as usize]);
        let (turn, own) = (split[0], split[1]);
        let fixed = draft.unflatten(own, &free_sizes);
        let (zero, one) = (draft.index(0), draft.index(1));
        let count = draft.index(positions as i64);
        draft.range(zero, count, one, |draft, position| {
            let place = draft.unflatten(position, &updates.aval.shape[..lead]);
            let starts: Vec<Val> =
                bound.iter().map(|array| array.at(draft, &place, faults)).collect();
            let (zero, count, one) = (draft.index(0), draft.index(spans as i64), draft.index(1));
            draft.range(zero, count, one, |draft, span| {
                let along = draft.unflatten(span, &span_sizes);
                let mut inside = vec![zero; rank];
                let mut target_place = vec![zero; rank];
                for (&axis, &i) in free.iter().zip(&fixed) {
                    (inside[axis], target_place[axis]) = (i, i);
                }
                for ((&axis, &i), &start) in scatter.axes.iter().zip(&along).zip(&starts) {
                    inside[axis] = i;
                    target_place[axis] = draft.build.add(start, i);
                }
                let mine = match scatter.axes.first() {
                    Some(&axis) if turns > 1 => {
                        let turns = draft.index(turns as i64);
                        let whose = draft.build.rem(target_place[axis], turns);
                        draft.build.eq(whose, turn)
                    }
                    _ => draft.build.bool(true),
                };
                draft.build.open_when();
                let full: Vec<Val> = place.iter().chain(&inside).copied().collect();
                let update = draft.load(from, &full, &updates.strides);
                let end = draft.place(to.offset, &target_place, &out.strides);
                if let Err(missing) = join(draft, scatter.mode, to, end, update) {
                    failed = Err(missing);
                }
                draft.build.close_when(mine);
            });
        });
    });
    failed?;
    program.launches.push(draft.launch_over(own * turns as u64));
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
    let mut draft = Draft::new("put_along_axis", BLOCK, segment, target)?;
    let from = draft.view(Place::Input(1), updates.aval.dtype, Access::Read)?;
    let to = draft.view(Place::Output(0), out.aval.dtype, Access::Write)?;
    let faults = draft.faults()?;
    let axis = scatter.axis;
    let axes = [(axis, out.aval.shape[axis], 1)];
    let bound = indices(&mut draft, program, segment, 2, "put_along_axis", &axes)?;
    let mut rows = updates.aval.shape.to_vec();
    rows[axis] = 1;
    let own: u64 = rows.iter().map(|&s| s as u64).product();
    let turns = share(out.aval.shape[axis], own, target);
    let mut failed = Ok(());
    draft.each(own * turns as u64, |draft, at| {
        let split = draft.unflatten(at, &[turns, own as usize]);
        let (turn, own) = (split[0], split[1]);
        let row = draft.unflatten(own, &rows);
        let (zero, one) = (draft.index(0), draft.index(1));
        let count = draft.index(updates.aval.shape[axis] as i64);
        draft.range(zero, count, one, |draft, position| {
            let mut place = row.clone();
            place[axis] = position;
            let index = bound[0].at(draft, &place, faults);
            let turns_val = draft.index(turns as i64);
            let whose = draft.build.rem(index, turns_val);
            let mine = draft.build.eq(whose, turn);
            draft.build.open_when();
            let update = draft.load(from, &place, &updates.strides);
            place[axis] = index;
            let end = draft.place(to.offset, &place, &out.strides);
            if let Err(missing) = join(draft, scatter.mode, to, end, update) {
                failed = Err(missing);
            }
            draft.build.close_when(mine);
        });
    });
    failed?;
    program.launches.push(draft.launch_over(own * turns as u64));
    Ok(())
}
