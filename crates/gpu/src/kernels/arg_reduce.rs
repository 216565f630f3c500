//! The place of an extreme value along an axis.

use cupola_core::backend::Segment;
use cupola_core::prim::ArgReduce;

use super::view::{place, unflatten};
use super::{Draft, Missing, Program};
use crate::ir::{Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;

/// A value that can be compared: bools as numbers.
fn comparable(v: Val<'_>) -> Val<'_> {
    if v.ty == Ty::Bool { v.convert(Ty::U32) } else { v }
}

/// Whether `x` comes before `y`, NaN being last.
fn before<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    if !x.ty.is_float() {
        return x.lt(y);
    }
    // Comparisons with NaN are not asked of the device.
    let (x_nan, y_nan) = (x.is_nan(), y.is_nan());
    (!x_nan & y_nan) | (!(x_nan | y_nan) & x.lt(y))
}

/// An element and its position along the axis.
type Found<'k> = (Val<'k>, Val<'k>);

/// Whether `x` is to be taken rather than `y`: the extreme one, of equals the earlier one. A NaN is
/// more extreme than every number.
fn is_better<'k>(max: bool, (x, i): Found<'k>, (y, j): Found<'k>) -> Val<'k> {
    let (ahead, behind) = match max {
        // NaN is last in the order.
        true => (before(y, x), before(x, y)),
        false => {
            let (less, more) = (before(x, y), before(y, x));
            let (x_nan, y_nan) = (x.is_nan(), y.is_nan());
            let both = !x_nan & !y_nan;
            ((x_nan & !y_nan) | (both & less), (y_nan & !x_nan) | (both & more))
        }
    };
    ahead | (!behind & i.lt(j))
}

fn better<'k>(max: bool, x: Found<'k>, y: Found<'k>) -> Found<'k> {
    let takes = is_better(max, x, y);
    (takes.select(x.0, y.0), takes.select(x.1, y.1))
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
    let outputs = out.aval.shape.size() as u64;
    let lanes: u32 = if x.aval.shape[op.axis] >= 512 { BLOCK } else { 1 };
    target.allows(x.aval.shape[op.axis] / lanes as usize + 2)?;
    let k = Draft::new(op.name(), BLOCK, segment, target)?;
    let (from, to) = (k.input(segment, 0), k.output(segment, 0));
    let mut outer = k.strides(&x.strides);
    let along = [outer.remove(op.axis)];
    let (sizes, strides) = k.walk_of(out);
    let length = k.size(x.aval.shape[op.axis] as i64, Ty::U32);
    let ty = match Ty::of(x.aval.dtype) {
        Ty::Bool => Ty::U32,
        other => other,
    };
    let shared = (lanes > 1).then(|| (k.shared(ty, BLOCK), k.shared(Ty::U32, BLOCK)));
    let thread = k.thread();
    let lane = if lanes > 1 { thread } else { k.u32(0) };
    let one_output = |output| {
        let index = unflatten(output, &sizes);
        let row = from.at(&index, &outer);
        let value_at = |i| comparable(from.buf.load(place(row, &[k.as_index(i)], &along)));
        // A lane goes through every `lanes`th element; one beyond the end begins at the last.
        let start = lane.min(length - 1);
        let (best, at) = (k.var(value_at(start)), k.var(start));
        k.range(start + lanes, length, lanes, |i| {
            let (v, i) = better(op.max, (value_at(i), i), (best.get(), at.get()));
            best.set(v);
            at.set(i);
        });
        if let Some((values, places)) = shared {
            let (v, i) = (best.get(), at.get());
            k.barrier();
            values.store(thread, v);
            places.store(thread, i);
            k.barrier();
            let load = |at| (values.load(at), places.load(at));
            // A tree in shared memory: the lower half of the lanes takes from the upper half.
            let mut half = lanes / 2;
            while half > 0 && !k.can_shuffle(half, ty) {
                k.when(thread.lt(half), || {
                    let (v, i) = better(op.max, load(thread + half), load(thread));
                    values.store(thread, v);
                    places.store(thread, i);
                });
                k.barrier();
                half /= 2;
            }
            // The lanes of a warp exchange theirs by shuffles.
            let mut own = load(thread);
            while half > 0 {
                own = better(op.max, (own.0.shuffle_xor(half), own.1.shuffle_xor(half)), own);
                half /= 2;
            }
            at.set(own.1);
        }
        let found = at.get();
        k.when(lane.eq(0), || to.buf.store(to.at(&index, &strides), found));
    };
    if lanes > 1 {
        k.blocks(outputs, one_output);
        program.launches.push(k.launch_blocks(outputs)?);
    } else {
        k.each(outputs, one_output);
        program.launches.push(k.launch_over(outputs)?);
    }
    Ok(())
}
