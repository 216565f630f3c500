//! The values weighted by a softmax that is taken as the keys come by.

use cupola_core::backend::Segment;
use cupola_core::prim::{Attention, AttentionMaskKind};

use super::super::forward::{Given, Parts, SPLIT, join};
use super::super::{Words, sizes};
use super::{BLOCK, LOG2_E, WARPS, Warps, cut};
use crate::ir::{Target, Val, Var};
use crate::kernels::{BufferRef, Draft, Missing, Program};

/// Blocks that keep a device busy: of fewer, each has less to do.
const ENOUGH: usize = 128;

/// Adds the launches of an attention.
pub fn forward(
    program: &mut Program,
    attention: &Attention,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let s = sizes(segment)?;
    let dtype = segment.inputs[0].aval.dtype;
    let rows = s.heads / s.groups * s.queries;
    // Two times the rows share what is read of the keys, where the sums leave room for them.
    let (wide, high) = cut(dtype, &s);
    let tall = |high: u32| (WARPS * 16 * high) as usize;
    let blocks = s.batch * s.groups * rows.div_ceil(tall(high));
    let high = if rows > tall(1) && blocks >= ENOUGH { high } else { 1 };
    let cut = Parts::of(&s, [WARPS * 16 * high, wide], SPLIT);
    let k = Draft::new("attention", BLOCK, segment, target)?;
    let given = Given::new(&k, program, attention, segment, &s, cut.parts);
    let Given { q, keys, values, mask, ref sinks, ref outputs, scratch } = given;
    let is_split = scratch.is_some();
    let all_rows = s.batch * s.heads * s.queries;
    let [tiles, parts, step, all_rows] =
        [cut.tiles, cut.parts, cut.step, all_rows].map(|size| k.extent(size));
    let words = Words::new(&k, &s);
    let w = Warps::new(&k, [high, wide], &attention.scores, words, segment, &[0, 1, 2]);
    if !is_split {
        k.assume(BufferRef::Output(0), w.together);
    }
    let own = w.tile(w.tall(), s.features, 1);
    let theirs = w.tile(wide, s.features, 2);
    let weighed = w.tile(wide, s.values, 2);
    w.clear(&[(own, 1), (theirs, 2), (weighed, 2)]);
    k.blocks(cut.blocks() as u64, |number| {
        k.barrier();
        let (part, tile) = (number % parts, number / parts % tiles);
        let of_all = number / parts / tiles;
        let group = [of_all / w.sizes.groups, of_all % w.sizes.groups];
        // Of a causal mask those come first that have the most to do.
        let tile = if w.mask == AttentionMaskKind::Causal { tiles - 1 - tile } else { tile };
        let first = tile * w.tall();
        w.fetch_rows(&own, &q, [group[0], group[1], first]);
        let rows = w.asked([group[0], group[1], first], mask);
        let states: Vec<State<'_>> = (rows.iter())
            .map(|row| {
                let lowest = (k.f32(f32::MIN), k.f32(0.0));
                let (largest, total) = sinks.as_ref().map_or(lowest, |sinks| {
                    let [head, _] = w.row(group[1], first + k.as_index(row.number));
                    let place = group[0] * sinks.strides[0] + head * sinks.strides[1];
                    let sink = sinks.view.buf.load(sinks.view.offset + place) * LOG2_E;
                    // Each of four threads has a part of the sum.
                    (sink, w.t.eq(0).select(1.0f32, k.f32(0.0)))
                });
                State { largest: k.var(largest), total: k.var(total) }
            })
            .collect();
        let sums = w.zeros(weighed.columns);
        let start = part * step;
        let (from, _) = w.sizes.queries(&k, first, w.tall());
        let (stop, end) = (start + step, w.sizes.end(&k, w.mask, first, w.tall()));
        let stop = stop.lt(end).select(stop, end);
        let fetch = |key, copy| {
            w.fetch_run(&theirs, copy, &keys, group, [key, w.sizes.keys]);
            w.fetch_run(&weighed, copy, &values, group, [key, w.sizes.keys]);
        };
        w.ahead([start, stop], fetch, |key, copy| {
            let scores = w.agree(&own, &theirs, copy * theirs.len());
            for score in &scores {
                score.set(score.get() * w.factor);
            }
            k.when(w.is_partial(key, wide, from), || {
                for (i, row) in rows.iter().enumerate() {
                    for (j, &column) in w.columns(wide).iter().enumerate() {
                        let score = w.sum(&scores, i, j);
                        let key = key + k.as_index(column);
                        let masked = w.masked(score.get(), row, key, mask);
                        score.set(key.lt(w.sizes.keys).select(masked, f32::NEG_INFINITY));
                    }
                }
            });
            for (i, state) in states.iter().enumerate() {
                w.fold(state, i, &scores, &sums);
            }
            let weights = w.weights(|i, j| w.sum(&scores, i, j).get());
            w.weigh(&sums, &weights, &weighed, copy * weighed.len());
        });
        for (i, (row, state)) in rows.iter().zip(&states).enumerate() {
            let number = first + k.as_index(row.number);
            let total = w.across(state.total.get(), |a, b| a + b);
            let largest = state.largest.get();
            let largest = largest.eq(f32::MIN).select(f32::MIN, largest / LOG2_E);
            let row = of_all * w.sizes.rows + number;
            let columns = w.columns(weighed.columns);
            let value = |j: usize| w.sum(&sums, i, j).get();
            k.when(number.lt(w.sizes.rows), || {
                let is_first = w.t.eq(0);
                if let Some(scratch) = scratch {
                    let place = (part * all_rows + row) * (w.sizes.values + 2);
                    let end = place + w.sizes.values;
                    k.when(is_first, || {
                        scratch.buf.store(end, largest);
                        scratch.buf.store(end + 1, total);
                    });
                    for (j, &column) in columns.iter().enumerate() {
                        let column = k.as_index(column);
                        k.when(column.lt(w.sizes.values), || {
                            scratch.buf.store(place + column, value(j));
                        });
                    }
                    return;
                }
                k.when(is_first, || {
                    outputs[1].buf.store(outputs[1].offset + row, largest);
                    outputs[2].buf.store(outputs[2].offset + row, total);
                });
                for (j, column) in columns.chunks_exact(2).enumerate() {
                    let column = k.as_index(column[0]);
                    k.when(column.lt(w.sizes.values), || {
                        let token = w.sizes.token(group, number);
                        let place = outputs[0].offset + token * w.sizes.values + column;
                        let both = [0, 1].map(|c| (value(j * 2 + c) / total).rounded(dtype));
                        outputs[0].buf.store_vector(place, &both);
                    });
                }
            });
        }
    });
    program.launches.push(k.launch_blocks(cut.blocks() as u64)?);
    if is_split {
        join(program, attention, segment, target, cut.parts)?;
    }
    Ok(())
}

/// What a softmax knows of a row.
struct State<'k> {
    largest: Var<'k>,
    /// The thread's part of the sum.
    total: Var<'k>,
}

impl<'k> Warps<'k> {
    /// Makes the scores of row `i` weights, and what was weighed before as much smaller.
    fn fold(&self, state: &State<'k>, i: usize, scores: &[Var<'k>], sums: &[Var<'k>]) {
        let of_row = |sums: &[Var<'k>]| -> Vec<Var<'k>> {
            let columns = sums.len() / (2 * self.high as usize);
            (0..columns).map(|j| self.sum(sums, i, j)).collect()
        };
        let scores = of_row(scores);
        let larger = |a: Val<'k>, b: Val<'k>| a.max(b);
        let before = state.largest.get();
        let most = scores.iter().fold(before, |most, score| larger(most, score.get()));
        let most = self.across(most, larger);
        let fade = (before - most).exp2();
        state.largest.set(most);
        let mut total = state.total.get() * fade;
        for score in scores {
            let weight = (score.get() - most).exp2();
            score.set(weight);
            total = total + weight;
        }
        state.total.set(total);
        for sum in of_row(sums) {
            sum.set(sum.get() * fade);
        }
    }
}
