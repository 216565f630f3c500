//! The values weighted by a softmax that is taken as the keys come by.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::composite::attention::AttentionSizes;
use cupola_core::prim::{Attention, AttentionMaskKind};

use super::{BLOCK, Cut, Operand, Writer, at, sizes};
use crate::ir::{Access, Math, Shared, Target, Ty, Val};
use crate::kernels::view::View;
use crate::kernels::{Draft, Missing, Program};

/// Blocks below which keys are split, and keys that are worth a block of their own.
pub(super) const SPLIT: [usize; 2] = [64, 256];

/// How an attention is spread over blocks.
pub(super) struct Parts {
    /// Tiles of a group's rows.
    pub tiles: usize,
    /// Parts of the keys, and how many each has.
    pub parts: usize,
    pub step: usize,
    blocks: usize,
}

impl Parts {
    /// Blocks of `tall` rows, which go through `wide` keys at a time. Where they are fewer than `few`, keys are split
    /// into parts of at least `split`.
    pub fn of(s: &AttentionSizes, [tall, wide]: [u32; 2], [few, split]: [usize; 2]) -> Parts {
        let tiles = (s.heads / s.groups * s.queries).div_ceil(tall as usize);
        let whole = s.batch * s.groups * tiles;
        let most = (s.keys / split).max(1);
        let parts = if whole < few { (few / whole).clamp(1, most) } else { 1 };
        let step = s.keys.div_ceil(parts).next_multiple_of(wide as usize);
        let parts = s.keys.div_ceil(step);
        Parts { tiles, parts, step, blocks: whole * parts }
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.blocks
    }
}

/// What the launch over keys reads and writes.
pub(super) struct Given<'k> {
    pub q: Operand<'k>,
    pub keys: Operand<'k>,
    pub values: Operand<'k>,
    pub mask: Option<Operand<'k>>,
    pub sinks: Option<Operand<'k>>,
    pub outputs: Vec<View<'k>>,
    /// In place of outputs and sinks where the keys are split: what [`join`] joins.
    pub scratch: Option<View<'k>>,
}

impl<'k> Given<'k> {
    pub fn new(
        k: &'k Draft,
        program: &mut Program,
        attention: &Attention,
        segment: &Segment,
        s: &AttentionSizes,
        parts: usize,
    ) -> Self {
        let [q, keys, values] = [0, 1, 2].map(|n| k.operand(segment, n));
        let is_masked = attention.scores.mask == AttentionMaskKind::Array;
        let mask = is_masked.then(|| k.operand(segment, 3));
        let is_split = parts > 1;
        let last = segment.inputs.len() - 1;
        let sinks = (attention.sinks && !is_split).then(|| k.operand(segment, last));
        let outputs = if is_split { Vec::new() } else { k.outputs(segment) };
        let scratch = is_split.then(|| {
            let rows = s.batch * s.heads * s.queries;
            program.scratch.push(parts * rows * (s.values + 2) * 4);
            k.scratch(program.scratch.len() - 1, DType::F32, Access::Write)
        });
        Given { q, keys, values, mask, sinks, outputs, scratch }
    }
}

/// What a softmax knows of a block's rows.
struct State {
    largest: Shared,
    total: Shared,
    fade: Shared,
    /// A word a thread, to fold a row.
    room: Shared,
}

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
    let cut = Cut::of(dtype, rows, s.values, target);
    let Parts { tiles, parts, step, .. } = Parts::of(&s, [cut.tall, cut.wide], SPLIT);
    let whole = s.batch * s.groups * tiles;
    let all_rows = s.batch * s.heads * s.queries;
    let k = Draft::new("attention", BLOCK, segment, target)?;
    let given = Given::new(&k, program, attention, segment, &s, parts);
    let Given { q, keys, values, mask, ref sinks, ref outputs, scratch } = given;
    let [tiles, parts_arg, step_arg, all_rows_arg] =
        [tiles, parts, step, all_rows].map(|size| k.extent(size));
    let w = Writer::new(&k, cut, &attention.scores, &s, segment, &[0, 1, 2]);
    let places = w.places(cut.tall, false);
    let row_array = || k.shared(Ty::F32, cut.tall);
    let state = State {
        largest: row_array(),
        total: row_array(),
        fade: row_array(),
        room: k.shared(Ty::F32, BLOCK),
    };
    w.blocks(whole * parts, |number| {
        let (part, tile) = (number % parts_arg, number / parts_arg % tiles);
        let of_all = number / parts_arg / tiles;
        let group = [of_all / w.sizes.groups, of_all % w.sizes.groups];
        let first = tile * cut.tall;
        w.find(&places, cut.tall, [group[0], group[1], first], [Some(q), None, mask]);
        let own = w.thread.lt(cut.tall);
        k.when(own, || {
            let (largest, total) = match sinks {
                Some(sinks) => {
                    let row = first + k.as_index(w.thread);
                    let row = row.lt(w.sizes.rows).select(row, k.index(0));
                    let head = group[1] * w.sizes.heads + row / w.sizes.queries;
                    let place = group[0] * sinks.strides[0] + head * sinks.strides[1];
                    (sinks.view.buf.load(sinks.view.offset + place), k.f32(1.0))
                }
                None => (k.f32(f32::MIN), k.f32(0.0)),
            };
            state.largest.store(w.thread, largest);
            state.total.store(w.thread, total);
        });
        let sums = w.columns(s.values);
        let start = part * step_arg;
        let (stop, end) = (start + step_arg, w.sizes.end(&k, w.mask, first, cut.tall));
        let stop = stop.lt(end).select(stop, end);
        k.range(start, stop, cut.wide, |key| {
            let scores = w.agree(
                w.sizes.features,
                [
                    &w.rows(q, places.q, first, w.sizes.features),
                    &w.keys(keys, group, key, w.sizes.features),
                ],
            );
            w.each_score(&scores, |row, column, product| {
                let key = key + k.as_index(column);
                let (score, _) = w.score(product, (&places, row), key, mask);
                let lay = cut.lay(cut.tall, cut.wide, true);
                w.weights.store(at(&lay, row, column), score);
            });
            k.barrier();
            w.fold(&state, key);
            w.each_sum(&sums, |row, _, sum| {
                sum.re.set(sum.re.get() * state.fade.load(row));
            });
            w.weigh(&sums, &w.keys(values, group, key, w.sizes.values));
        });
        k.barrier();
        let row_of = |row| of_all * w.sizes.rows + first + k.as_index(row);
        let is_row = |row| (first + k.as_index(row)).lt(w.sizes.rows);
        let mine = own & is_row(w.thread);
        if let Some(scratch) = scratch {
            let place = |row| (part * all_rows_arg + row_of(row)) * (w.sizes.values + 2);
            k.when(mine, || {
                let end = place(w.thread) + w.sizes.values;
                scratch.buf.store(end, state.largest.load(w.thread));
                scratch.buf.store(end + 1, state.total.load(w.thread));
            });
            w.each_sum(&sums, |row, column, sum| {
                let column = k.as_index(column);
                k.when(is_row(row) & column.lt(w.sizes.values), || {
                    scratch.buf.store(place(row) + column, sum.re.get());
                });
            });
            return;
        }
        k.when(mine, || {
            let row = row_of(w.thread);
            outputs[1].buf.store(outputs[1].offset + row, state.largest.load(w.thread));
            outputs[2].buf.store(outputs[2].offset + row, state.total.load(w.thread));
        });
        w.each_sum(&sums, |row, column, sum| {
            let column = k.as_index(column);
            k.when(is_row(row) & column.lt(w.sizes.values), || {
                let value = sum.re.get() / state.total.load(row);
                let token = w.sizes.token(group, first + k.as_index(row));
                let place = outputs[0].offset + token * w.sizes.values + column;
                outputs[0].buf.store(place, value.rounded(dtype));
            });
        });
    });
    program.launches.push(k.launch_blocks((whole * parts) as u64)?);
    if parts > 1 {
        join(program, attention, segment, target, parts)?;
    }
    Ok(())
}

impl<'k> Writer<'k> {
    /// Makes the scores of a tile weights: several threads share a row.
    fn fold(&self, state: &State, first: Val<'k>) {
        let (k, cut) = (self.k, self.cut);
        let lanes = BLOCK / cut.tall;
        let (row, lane) = (self.thread / lanes, self.thread % lanes);
        let lay = cut.lay(cut.tall, cut.wide, true);
        let columns: Vec<Val<'k>> = (0..cut.wide / lanes).map(|i| lane + i * lanes).collect();
        let scores: Vec<Val<'k>> =
            columns.iter().map(|&column| self.weights.load(at(&lay, row, column))).collect();
        let larger = |a: Val<'k>, b: Val<'k>| a.lt(b).select(b, a);
        let sum = |a: Val<'k>, b: Val<'k>| a + b;
        let is_key = |column: Val<'k>| (first + k.as_index(column)).lt(self.sizes.keys);
        let lowest = k.f32(f32::MIN);
        let most = columns.iter().zip(&scores).fold(lowest, |most, (&column, &score)| {
            larger(most, is_key(column).select(score, lowest))
        });
        let before = state.largest.load(row);
        let most = larger(before, self.across(state, lanes, most, larger));
        let mut total = k.f32(0.0);
        for (&column, &score) in columns.iter().zip(&scores) {
            let weight = is_key(column).select((score - most).math(Math::Exp), 0.0f32);
            total = total + weight;
            self.put(row, column, weight);
        }
        let total = self.across(state, lanes, total, sum);
        k.when(lane.eq(0), || {
            let fade = (before - most).math(Math::Exp);
            state.total.store(row, state.total.load(row) * fade + total);
            state.largest.store(row, most);
            state.fade.store(row, fade);
        });
        k.barrier();
    }
}

impl<'k> Writer<'k> {
    /// What the threads of a row have, joined: each of them gets it.
    fn across(
        &self,
        state: &State,
        lanes: u32,
        own: Val<'k>,
        join: impl Fn(Val<'k>, Val<'k>) -> Val<'k>,
    ) -> Val<'k> {
        let (k, thread) = (self.k, self.thread);
        if lanes > 1 && k.can_shuffle(lanes / 2, Ty::F32) {
            let (mut own, mut away) = (own, lanes / 2);
            while away > 0 {
                own = join(own, own.shuffle_xor(away));
                away /= 2;
            }
            return own;
        }
        state.room.store(thread, own);
        k.barrier();
        let first = thread / lanes * lanes;
        let of_row = |i: u32| state.room.load(first + i);
        let all = (1..lanes).fold(of_row(0), |all, i| join(all, of_row(i)));
        // The room is read no more.
        k.barrier();
        all
    }
}

/// Adds the launch that joins what was found for parts of the keys.
pub(super) fn join(
    program: &mut Program,
    attention: &Attention,
    segment: &Segment,
    target: &Target,
    parts: usize,
) -> Result<(), Missing> {
    let s = sizes(segment)?;
    let dtype = segment.inputs[0].aval.dtype;
    let rows = s.batch * s.heads * s.queries;
    let k = Draft::new("attention_parts", BLOCK, segment, target)?;
    let last = segment.inputs.len() - 1;
    let sinks = attention.sinks.then(|| k.operand(segment, last));
    let from = k.scratch(program.scratch.len() - 1, DType::F32, Access::Read);
    let outputs = k.outputs(segment);
    let [values, queries, heads, all_rows, parts] =
        [s.values, s.queries, s.heads, rows, parts].map(|size| k.extent(size));
    let count = (rows * s.values) as u64;
    k.each(count, |at| {
        let (row, column) = (at / values, at % values);
        let place = |part| (all_rows * part + row) * (values + 2);
        let (batch, head, query) = (row / queries / heads, row / queries % heads, row % queries);
        let (largest, total) = match &sinks {
            Some(sinks) => {
                let place = batch * sinks.strides[0] + head * sinks.strides[1];
                (sinks.view.buf.load(sinks.view.offset + place), k.f32(1.0))
            }
            None => (k.f32(f32::MIN), k.f32(0.0)),
        };
        let (largest, total, sum) = (k.var(largest), k.var(total), k.var(k.f32(0.0)));
        k.count(parts, |part| {
            let start = place(part);
            let (own, before) = (from.buf.load(start + values), largest.get());
            let most = before.lt(own).select(own, before);
            let fade = (before - most).math(Math::Exp);
            let own_fade = (own - most).math(Math::Exp);
            sum.set(sum.get() * fade + from.buf.load(start + column) * own_fade);
            total.set(total.get() * fade + from.buf.load(start + values + 1) * own_fade);
            largest.set(most);
        });
        let value = (sum.get() / total.get()).rounded(dtype);
        let token = (batch * queries + query) * heads + head;
        outputs[0].buf.store(outputs[0].offset + token * values + column, value);
        k.when(column.eq(0), || {
            outputs[1].buf.store(outputs[1].offset + row, largest.get());
            outputs[2].buf.store(outputs[2].offset + row, total.get());
        });
    });
    program.launches.push(k.launch_over(count)?);
    Ok(())
}
