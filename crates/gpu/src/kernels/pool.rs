//! Pooling, with a thread for every element that is written: nothing is added by two threads.

use cupola_core::DType;
use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::{Pool, PoolRole};

use super::view::View;
use super::{Draft, Missing, Place, Program};
use crate::ir::{Access, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;

/// An operand of a pooling.
#[derive(Clone, Copy)]
struct Bound<'a> {
    view: View,
    operand: &'a Operand,
}

/// Adds the launch of a pooling.
pub fn pool(
    program: &mut Program,
    pool: &Pool,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let mut draft = Draft::new(pool.role.name(), BLOCK, segment, target)?;
    let out = &segment.outputs[0];
    let dtype = out.aval.dtype;
    let output = pool.output().map_err(|e| Missing(e.to_string()))?.to_vec();
    let mut inputs = Vec::new();
    for (i, operand) in segment.inputs.iter().enumerate().take(operands(pool.role)) {
        let view = draft.view(Place::Input(i), operand.aval.dtype, Access::Read)?;
        inputs.push(Bound { view, operand });
    }
    let to = draft.view(Place::Output(0), dtype, Access::Write)?;
    let total = out.aval.shape.size() as u64;
    let ty = Ty::of(dtype);
    let windows = Windows { pool, output: &output };
    draft.each(total, |draft, at| {
        let place = draft.unflatten(at, &out.aval.shape);
        let zero = draft.build.int(0, ty);
        let result = match pool.role {
            PoolRole::Max => windows.largest(draft, inputs[0], &place, dtype).0,
            PoolRole::MaxGather => {
                let (_, offset) = windows.largest(draft, inputs[0], &place, dtype);
                // The place of the largest, as its number among x's elements.
                let index = draft.unflatten(offset, &inputs[0].operand.aval.shape);
                draft.load(inputs[1].view, &index, &inputs[1].operand.strides).real()
            }
            PoolRole::Sum => {
                let sum = draft.build.var(zero);
                windows.each(draft, &place, |draft, index, _| {
                    let v = draft.load(inputs[0].view, index, &inputs[0].operand.strides).real();
                    let old = draft.build.get(sum);
                    let new = draft.build.add(old, v);
                    draft.build.set(sum, new);
                });
                draft.build.get(sum)
            }
            PoolRole::SumTranspose | PoolRole::MaxScatter => {
                let sum = draft.build.var(zero);
                windows.over(draft, &place, |draft, window| {
                    let dy = inputs[inputs.len() - 1];
                    let add = |draft: &mut Draft<'_>| {
                        let v = draft.load(dy.view, window, &dy.operand.strides).real();
                        let old = draft.build.get(sum);
                        let new = draft.build.add(old, v);
                        draft.build.set(sum, new);
                    };
                    if pool.role == PoolRole::SumTranspose {
                        return add(draft);
                    }
                    let (_, offset) = windows.largest(draft, inputs[0], window, dtype);
                    let mine = draft.build.eq(offset, at);
                    draft.build.open_when();
                    add(draft);
                    draft.build.close_when(mine);
                });
                draft.build.get(sum)
            }
        };
        let end = draft.place(to.offset, &place, &out.strides);
        let result = draft.build.wrapped(result, dtype);
        draft.build.store(to.buf, end, result);
    });
    program.launches.push(draft.launch_over(total));
    Ok(())
}

fn operands(role: PoolRole) -> usize {
    match role {
        PoolRole::Max | PoolRole::Sum | PoolRole::SumTranspose => 1,
        PoolRole::MaxGather | PoolRole::MaxScatter => 2,
    }
}

struct Windows<'a> {
    pool: &'a Pool,
    output: &'a [usize],
}

impl Windows<'_> {
    /// Runs `each` for the places of x in the window of y's element `at`, in order; it also gets
    /// the place's number among x's elements.
    fn each(
        &self,
        draft: &mut Draft<'_>,
        at: &[Val],
        each: impl FnOnce(&mut Draft<'_>, &[Val], Val),
    ) {
        let spatial = self.pool.input.len();
        let count: usize = self.pool.window.iter().product();
        let (zero, one, count) = (draft.index(0), draft.index(1), draft.index(count as i64));
        draft.range(zero, count, one, |draft, k| {
            let k = draft.unflatten(k, &self.pool.window);
            let mut index = at.to_vec();
            let mut inside = draft.build.bool(true);
            for axis in 0..spatial {
                let stride = draft.index(self.pool.stride[axis] as i64);
                let low = draft.index(self.pool.padding[axis].0 as i64);
                let high = draft.index((self.pool.padding[axis].0 + self.pool.input[axis]) as i64);
                let b = &mut draft.build;
                let first = b.mul(at[axis + 1], stride);
                let padded = b.add(first, k[axis]);
                let (from, to) = (b.ge(padded, low), b.lt(padded, high));
                let holds = b.and(from, to);
                inside = b.and(inside, holds);
                index[axis + 1] = b.sub(padded, low);
            }
            draft.build.open_when();
            let mut number = index[0];
            let sizes = self.pool.input.iter().map(|&s| s as i64);
            for (&i, size) in index[1..=spatial].iter().zip(sizes) {
                let size = draft.index(size);
                let row = draft.build.mul(number, size);
                number = draft.build.add(row, i);
            }
            each(draft, &index, number);
            draft.build.close_when(inside);
        });
    }

    /// The largest value of a window, and the number of the first place that has it. A NaN is the
    /// largest.
    fn largest(&self, draft: &mut Draft<'_>, x: Bound<'_>, at: &[Val], dtype: DType) -> (Val, Val) {
        let channels = x.operand.aval.shape[x.operand.strides.len() - 1];
        let least = draft.build.extreme(false, dtype);
        let best = draft.build.var(least);
        let (zero, no) = (draft.index(0), draft.build.bool(false));
        let (place, found) = (draft.build.var(zero), draft.build.var(no));
        let channel = at[at.len() - 1];
        self.each(draft, at, |draft, index, number| {
            let v = draft.load(x.view, index, &x.operand.strides).real();
            let size = draft.index(channels as i64);
            let b = &mut draft.build;
            let (old, known) = (b.get(best), b.get(found));
            let more = b.gt(v, old);
            let takes = match v.ty.is_float() {
                true => {
                    let (nan, old_nan) = (b.is_nan(v), b.is_nan(old));
                    let kept = b.not(old_nan);
                    let either = b.or(more, nan);
                    b.and(either, kept)
                }
                false => more,
            };
            let new = b.not(known);
            let takes = b.or(takes, new);
            let (number, yes) = (b.mul(number, size), b.bool(true));
            let number = b.add(number, channel);
            let known_place = b.get(place);
            let (v, number) = (b.select(takes, v, old), b.select(takes, number, known_place));
            b.set(best, v);
            b.set(place, number);
            b.set(found, yes);
        });
        (draft.build.get(best), draft.build.get(place))
    }

    /// Runs `each` for every window, as an index of y, that has x's element `at`.
    fn over(&self, draft: &mut Draft<'_>, at: &[Val], each: impl FnOnce(&mut Draft<'_>, &[Val])) {
        self.over_axis(draft, at, 0, at.to_vec(), each);
    }

    fn over_axis(
        &self,
        draft: &mut Draft<'_>,
        at: &[Val],
        axis: usize,
        mut window: Vec<Val>,
        each: impl FnOnce(&mut Draft<'_>, &[Val]),
    ) {
        if axis == self.pool.input.len() {
            return each(draft, &window);
        }
        // From ⌈(p + low − size + 1)/stride⌉ up to ⌊(p + low)/stride⌋.
        let (size, stride) = (self.pool.window[axis] as i64, self.pool.stride[axis] as i64);
        let low = draft.index(self.pool.padding[axis].0 as i64);
        let (size, step) = (draft.index(size), draft.index(stride));
        let (zero, one) = (draft.index(0), draft.index(1));
        let count = draft.index(self.output[axis] as i64);
        let b = &mut draft.build;
        let padded = b.add(at[axis + 1], low);
        let last = b.div(padded, step);
        let last = b.add(last, one);
        let last = b.min_int(last, count);
        let reaches = b.ge(padded, size);
        let over = b.sub(padded, size);
        let over = b.select(reaches, over, zero);
        let first = b.div(over, step);
        let first = b.add(first, one);
        let first = b.select(reaches, first, zero);
        let mut each = Some(each);
        draft.range(first, last, one, |draft, o| {
            window[axis + 1] = o;
            if let Some(each) = each.take() {
                self.over_axis(draft, at, axis + 1, window, each);
            }
        });
    }
}
