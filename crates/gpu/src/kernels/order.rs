//! Order along an axis: sorts, and the place of an extreme value.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{ArgReduce, Sort};

use super::{Draft, Missing, Place, Program};
use crate::ir::{Access, Build, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;

/// A value that can be compared: bools as numbers.
fn comparable(b: &mut Build<'_>, v: Val) -> Val {
    if v.ty == Ty::Bool { b.convert(v, Ty::U32) } else { v }
}

/// Whether `x` comes before `y`, NaN being last.
fn before(b: &mut Build<'_>, x: Val, y: Val) -> Val {
    let less = b.lt(x, y);
    if !x.ty.is_float() {
        return less;
    }
    let (nx, ny) = (b.is_nan(x), b.is_nan(y));
    let (number, last) = (b.not(nx), b.or(nx, ny));
    let first = b.and(number, ny);
    // Comparisons with NaN are not asked of the device.
    let ordered = b.not(last);
    let less = b.and(ordered, less);
    b.or(first, less)
}

/// Adds the launches of a sort: runs of one element are merged into runs of two, of four, and so
/// on. What moves are the elements' numbers along the axis; each finds its place in the merged run
/// by a binary search in the other run, before equals where it was before them.
pub fn sort(
    program: &mut Program,
    sort: &Sort,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let length = x.aval.shape[sort.axis];
    let total = x.aval.shape.size() as u64;
    let mut shape = x.aval.shape.to_vec();
    let mut strides = [x.strides.clone(), out.strides.clone()];
    // Rows first, the axis last.
    shape.remove(sort.axis);
    shape.push(length);
    for strides in &mut strides {
        let own = strides.remove(sort.axis);
        strides.push(own);
    }
    let passes = length.next_power_of_two().trailing_zeros().max(1);
    for _ in 0..if passes > 1 { 2 } else { 0 } {
        program.scratch.push(total as usize * 4);
    }
    let scratch = program.scratch.len();
    for pass in 0..passes {
        let (is_first, is_last) = (pass == 0, pass + 1 == passes);
        let mut draft = Draft::new(sort.name(), BLOCK, segment, target)?;
        let values = draft.view(Place::Input(0), x.aval.dtype, Access::Read)?;
        let order = |draft: &mut Draft<'_>, turn: u32, access| {
            draft.scratch(scratch - 1 - (turn % 2) as usize, DType::U32, access)
        };
        let from = match is_first {
            true => None,
            false => Some(order(&mut draft, pass, Access::Read)?.buf),
        };
        let to = match is_last {
            true => draft.view(Place::Output(0), out.aval.dtype, Access::Write)?,
            false => order(&mut draft, pass + 1, Access::Write)?,
        };
        let width = draft.word(1 << pass);
        let rank = shape.len();
        draft.each(total, |draft, at| {
            let width = draft.build.convert(width, draft.index);
            let place = draft.unflatten(at, &shape);
            let position = place[rank - 1];
            let row = draft.place(values.offset, &place[..rank - 1], &strides[0][..rank - 1]);
            let row_start = draft.build.sub(at, position);
            // The element at a place of the row's present order: its number and its value.
            let element = |draft: &mut Draft<'_>, position: Val| {
                let number = match from {
                    Some(order) => {
                        let at = draft.build.add(row_start, position);
                        let number = draft.build.load(order, at);
                        draft.build.convert(number, draft.index)
                    }
                    None => position,
                };
                let at = draft.place(row, &[number], &strides[0][rank - 1..]);
                let value = draft.build.load(values.buf, at);
                (number, value)
            };
            let (number, value) = element(draft, position);
            let mine = comparable(&mut draft.build, value);
            let (one, two) = (draft.index(1), draft.index(2));
            let end = draft.index(length as i64);
            let b = &mut draft.build;
            let run = b.div(position, width);
            let inside = b.rem(position, width);
            let side = b.rem(run, two);
            let second = b.eq(side, one);
            let start = b.sub(position, inside);
            let (down, up) = (b.sub(start, width), b.add(start, width));
            let pair = b.select(second, down, start);
            let other = b.select(second, down, up);
            let other = b.min_int(other, end);
            let stop = b.add(other, width);
            let stop = b.min_int(stop, end);
            // How many of the other run come before: from `low` on they do not.
            let (low, high) = (b.var(other), b.var(stop));
            draft.search(low, high, |draft, middle| {
                let (_, value) = element(draft, middle);
                let b = &mut draft.build;
                let theirs = comparable(b, value);
                // Of equals the one of the first run comes first.
                let strictly = before(b, theirs, mine);
                let mine_first = before(b, mine, theirs);
                let weakly = b.not(mine_first);
                b.select(second, weakly, strictly)
            });
            let b = &mut draft.build;
            let found = b.get(low);
            let skipped = b.sub(found, other);
            let moved = b.add(pair, inside);
            let place_in_row = b.add(moved, skipped);
            match is_last {
                true => {
                    let mut end: Vec<Val> = place[..rank - 1].to_vec();
                    end.push(place_in_row);
                    let at = draft.place(to.offset, &end, &strides[1]);
                    let result = match sort.indices {
                        true => draft.build.convert(number, Ty::U32),
                        false => value,
                    };
                    draft.build.store(to.buf, at, result);
                }
                false => {
                    let at = draft.build.add(row_start, place_in_row);
                    let number = draft.build.convert(number, Ty::U32);
                    draft.build.store(to.buf, at, number);
                }
            }
        });
        program.launches.push(draft.launch_over(total));
    }
    Ok(())
}

/// Adds the launch that finds extremes: a block an output where the axis is long, a thread
/// elsewhere.
pub fn arg_reduce(
    program: &mut Program,
    op: &ArgReduce,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let length = x.aval.shape[op.axis];
    let outputs = out.aval.shape.size() as u64;
    let lanes: u32 = if length >= 512 { BLOCK } else { 1 };
    let mut draft = Draft::new(op.name(), BLOCK, segment, target)?;
    let from = draft.view(Place::Input(0), x.aval.dtype, Access::Read)?;
    let to = draft.view(Place::Output(0), DType::U32, Access::Write)?;
    let mut outer = x.strides.clone();
    let along = outer.remove(op.axis);
    let ty = match Ty::of(x.aval.dtype) {
        Ty::Bool => Ty::U32,
        other => other,
    };
    let shared =
        (lanes > 1).then(|| (draft.build.shared(ty, BLOCK), draft.build.shared(Ty::U32, BLOCK)));
    let b = &mut draft.build;
    let (thread, block, blocks) = (b.thread(), b.block_x(), b.blocks());
    let zero32 = b.u32(0);
    let lane = if lanes > 1 { thread } else { zero32 };
    // Whether the pair (x, i) is to be taken rather than (y, j).
    let better = |b: &mut Build<'_>, x: Val, i: Val, y: Val, j: Val| {
        let (ahead, behind) = match op.max {
            true => {
                // NaN is last in the order, and the largest.
                (before(b, y, x), before(b, x, y))
            }
            false => {
                let (less, more) = (before(b, x, y), before(b, y, x));
                let (nx, ny) = (b.is_nan(x), b.is_nan(y));
                // A NaN counts as the smallest here.
                let (no_x, no_y) = (b.not(nx), b.not(ny));
                let (first, second) = (b.and(nx, no_y), b.and(ny, no_x));
                let both = b.and(no_x, no_y);
                let (less, more) = (b.and(both, less), b.and(both, more));
                (b.or(first, less), b.or(second, more))
            }
        };
        let earlier = b.lt(i, j);
        let level = b.not(behind);
        let tie = b.and(level, earlier);
        b.or(ahead, tie)
    };
    let one_output = |draft: &mut Draft<'_>, output: Val| {
        let place = draft.unflatten(output, &out.aval.shape);
        let row = draft.place(from.offset, &place, &outer);
        let value_at = |draft: &mut Draft<'_>, i: Val| {
            let i = draft.build.convert(i, draft.index);
            let at = draft.place(row, &[i], &[along]);
            let v = draft.build.load(from.buf, at);
            comparable(&mut draft.build, v)
        };
        let limit = draft.build.u32(length as u32);
        let last = draft.build.u32(length as u32 - 1);
        let start = draft.build.min_int(lane, last);
        let first = value_at(draft, start);
        let (best, at) = (draft.build.var(first), draft.build.var(start));
        let step = draft.build.u32(lanes);
        let next = draft.build.add(start, step);
        draft.range(next, limit, step, |draft, i| {
            let v = value_at(draft, i);
            let b = &mut draft.build;
            let (y, j) = (b.get(best), b.get(at));
            let takes = better(b, v, i, y, j);
            let (v, i) = (b.select(takes, v, y), b.select(takes, i, j));
            b.set(best, v);
            b.set(at, i);
        });
        if let Some((values, places)) = shared {
            let b = &mut draft.build;
            let (v, i) = (b.get(best), b.get(at));
            b.barrier();
            b.store_shared(values, thread, v);
            b.store_shared(places, thread, i);
            b.barrier();
            let mut half = lanes / 2;
            while half > 0 && !b.can_shuffle(half, ty) {
                let (limit, away) = (b.u32(half), b.u32(half));
                let works = b.lt(thread, limit);
                b.open_when();
                let other = b.add(thread, away);
                let (x, i) = (b.load_shared(values, other), b.load_shared(places, other));
                let (y, j) = (b.load_shared(values, thread), b.load_shared(places, thread));
                let takes = better(b, x, i, y, j);
                let (v, i) = (b.select(takes, x, y), b.select(takes, i, j));
                b.store_shared(values, thread, v);
                b.store_shared(places, thread, i);
                b.close_when(works);
                b.barrier();
                half /= 2;
            }
            let (mut y, mut j) = (b.load_shared(values, thread), b.load_shared(places, thread));
            while half > 0 {
                let (x, i) = (b.shuffle_xor(y, half), b.shuffle_xor(j, half));
                let takes = better(b, x, i, y, j);
                (y, j) = (b.select(takes, x, y), b.select(takes, i, j));
                half /= 2;
            }
            b.set(at, j);
        }
        let found = draft.build.get(at);
        let leads = draft.build.eq(lane, zero32);
        draft.build.open_when();
        let end = draft.place(to.offset, &place, &out.strides);
        draft.build.store(to.buf, end, found);
        draft.build.close_when(leads);
    };
    if lanes > 1 {
        let index = draft.index;
        let (block, blocks) =
            (draft.build.convert(block, index), draft.build.convert(blocks, index));
        let all = draft.index(outputs as i64);
        draft.range(block, all, blocks, one_output);
        let grid = outputs.clamp(1, u64::from(target.max_blocks)) as u32;
        program.launches.push(draft.launch([grid, 1]));
    } else {
        draft.each(outputs, one_output);
        program.launches.push(draft.launch_over(outputs));
    }
    Ok(())
}
