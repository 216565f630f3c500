//! The place of an extreme value along an axis.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::ArgReduce;

use super::view::{place, unflatten};
use super::{Draft, Missing, Program};
use crate::ir::{Access, Target, Ty, Val};

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

/// Elements that a thread looks at, at least, where several blocks share an axis.
const EACH: u64 = 16;

/// How an axis is shared.
struct Spread {
    outputs: u64,
    /// Threads of a block for an output.
    lanes: u32,
    /// Blocks for an output, each of which looks at neighbouring elements.
    parts: u64,
}

impl Spread {
    fn of(outputs: u64, length: u64, target: &Target) -> Spread {
        let lanes = if length >= 512 { BLOCK } else { 1 };
        let idle = u64::from(target.threads / 2) / (outputs * u64::from(lanes)).max(1);
        let parts = match lanes {
            1 => 1,
            _ => idle.min(length / (u64::from(lanes) * EACH)).max(1),
        };
        Spread { outputs, lanes, parts }
    }
}

/// Adds the launches that find extremes: a block an output where the axis is long, a thread elsewhere. Where that
/// leaves the device idle the axis is cut into parts, and another launch finds the extreme one of what was found in
/// them.
pub fn arg_reduce(
    program: &mut Program,
    op: &ArgReduce,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let length = segment.inputs[0].aval.shape[op.axis];
    let spread = Spread::of(segment.outputs[0].aval.shape.size() as u64, length as u64, target);
    target.allows(length / spread.lanes as usize + 2)?;
    if spread.parts == 1 {
        return find(program, op, segment, target, &spread, Stage::Whole);
    }
    let scratch = program.scratch.len();
    program.scratch.push((spread.outputs * spread.parts) as usize * size_of::<u32>());
    find(program, op, segment, target, &spread, Stage::Parts(scratch))?;
    let last = Spread { parts: 1, ..spread };
    find(program, op, segment, target, &last, Stage::Found(scratch, spread.parts))
}

/// What a launch goes through, and where it puts what it finds.
#[derive(Clone, Copy)]
enum Stage {
    /// The axis; into the result.
    Whole,
    /// A part of the axis; into this scratch memory.
    Parts(usize),
    /// What was found in so many parts, which is there; into the result.
    Found(usize, u64),
}

fn find(
    program: &mut Program,
    op: &ArgReduce,
    segment: &Segment,
    target: &Target,
    &Spread { outputs, lanes, parts }: &Spread,
    stage: Stage,
) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let axis = x.aval.shape[op.axis];
    let k = Draft::new(op.name(), BLOCK, segment, target)?;
    let from = k.input(segment, 0);
    let (to, found) = match stage {
        Stage::Whole => (Some(k.output(segment, 0)), None),
        Stage::Parts(scratch) => (None, Some(k.scratch(scratch, DType::U32, Access::Write))),
        Stage::Found(scratch, _) => {
            (Some(k.output(segment, 0)), Some(k.scratch(scratch, DType::U32, Access::Read)))
        }
    };
    let mut outer = k.strides(&x.strides);
    let along = [outer.remove(op.axis)];
    let (sizes, strides) = k.walk_of(out);
    let length = match stage {
        Stage::Whole | Stage::Parts(_) => k.size(axis as i64, Ty::U32),
        Stage::Found(_, parts) => k.size(parts as i64, Ty::U32),
    };
    let part_of = (parts > 1).then(|| {
        let size = k.size(axis.div_ceil(parts as usize) as i64, Ty::U32);
        (k.divisor(parts as usize, k.index), size)
    });
    let ty = match Ty::of(x.aval.dtype) {
        Ty::Bool => Ty::U32,
        other => other,
    };
    let shared = (lanes > 1).then(|| (k.shared(ty, BLOCK), k.shared(Ty::U32, BLOCK)));
    let thread = k.thread();
    let lane = if lanes > 1 { thread } else { k.u32(0) };
    let one = |number: Val<'_>| {
        // The first element that is looked at, and how many are.
        let (output, first, count) = match &part_of {
            None => (number, k.u32(0), length),
            Some((parts, size)) => {
                let (output, part) = number.div_rem(parts);
                let first = part.convert(Ty::U32) * *size;
                // The last may have less: each has far more elements than there are parts.
                (output, first, (*size).min(length - first))
            }
        };
        let index = unflatten(output, &sizes);
        let row = from.at(&index, &outer);
        let value_at = |i| comparable(from.buf.load(place(row, &[k.as_index(i)], &along)));
        let element = |i| match (stage, &found) {
            (Stage::Found(..), Some(found)) => {
                let at = found.buf.load(output * k.as_index(length) + k.as_index(i));
                (value_at(at), at)
            }
            _ => (value_at(i), i),
        };
        // A lane goes through every `lanes`th element; one beyond the end begins at the last.
        let start = first + lane.min(count - 1);
        let (v, i) = element(start);
        let (best, at) = (k.var(v), k.var(i));
        k.range(start + lanes, first + count, lanes, |i| {
            let (v, i) = better(op.max, element(i), (best.get(), at.get()));
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
        let best = at.get();
        k.when(lane.eq(0), || match (&to, &found) {
            (Some(to), _) => to.buf.store(to.at(&index, &strides), best),
            (None, Some(found)) => found.buf.store(number, best),
            (None, None) => {}
        });
    };
    if lanes > 1 {
        k.blocks(outputs * parts, one);
        program.launches.push(k.launch_blocks(outputs * parts)?);
    } else {
        k.each(outputs, one);
        program.launches.push(k.launch_over(outputs)?);
    }
    Ok(())
}
