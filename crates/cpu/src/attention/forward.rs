//! The values weighted by a softmax that is taken as the keys come by.

use std::ops::Range;

use cupola_core::Result;
use cupola_simd::{Element, Out, Tiled, Transpose};

use super::tiles::{Fade, Join, Online, Product, State, Weight, run};
use super::{Block, KEYS, Problem, ROWS, TASKS};
use crate::memory::{HostMemory, Scratch};
use crate::threads::parallel_for;

/// Keys that are worth a task of their own.
const SPLIT: usize = 256;

/// An attention: what it reads and what it gives.
pub(super) struct Forward<'p, T: Element> {
    pub problem: Problem<T>,
    /// Scores of keys without values, a row for each example or one for all.
    pub sinks: Option<&'p [T::Acc]>,
    pub out: Out<'p, T>,
    pub largest: Out<'p, T::Acc>,
    pub total: Out<'p, T::Acc>,
}

/// What is known of the rows of a block from some of the keys.
pub(super) struct Part<'s, A> {
    pub largest: &'s mut [A],
    pub total: &'s mut [A],
    pub fade: &'s mut [A],
    /// Values times weights, a row of lanes a feature.
    pub sums: &'s mut [A],
}

impl<A> Part<'_, A> {
    pub fn state(&mut self) -> State<'_, A> {
        State { largest: self.largest, total: self.total, fade: self.fade }
    }
}

impl<T: Element<Acc: Weight>> Forward<'_, T> {
    /// Numbers of a part.
    fn part_size(&self) -> usize {
        ROWS * (3 + self.problem.sizes.values)
    }

    /// A part of a block in `memory`.
    fn part<'s>(&self, block: &Block, memory: &'s mut [T::Acc]) -> Part<'s, T::Acc> {
        let width = block.width();
        let (largest, rest) = memory.split_at_mut(width);
        let (total, rest) = rest.split_at_mut(width);
        let (fade, rest) = rest.split_at_mut(width);
        Part { largest, total, fade, sums: &mut rest[..width * self.problem.sizes.values] }
    }

    /// Computes the outputs.
    pub fn run(&self) -> Result<()> {
        let p = &self.problem;
        let tasks = p.groups() * p.blocks();
        let block = |task: usize| p.block(task / p.blocks(), task % p.blocks());
        let (keys, size) = (p.sizes.keys, self.part_size());
        let splits = TASKS.div_ceil(tasks).min(keys / SPLIT).max(1);
        if splits == 1 {
            parallel_for(tasks, |task| {
                let block = block(task);
                let mut memory = Scratch::new(size);
                let mut part = self.part(&block, &mut memory);
                self.pass(&block, 0..keys, &mut part);
                self.finish(&block, part);
            });
            return Ok(());
        }
        let bytes = tasks * splits * size * size_of::<T::Acc>();
        let memory = HostMemory::new(bytes, "the parts of an attention")?;
        // SAFETY: the memory is new, and holds so many.
        let parts =
            unsafe { Out::from_raw(memory.as_ptr().cast::<T::Acc>(), tasks * splits * size) };
        let step = keys.div_ceil(splits).next_multiple_of(KEYS);
        parallel_for(tasks * splits, |part| {
            let (block, split) = (block(part / splits), part % splits);
            // SAFETY: parts are disjoint.
            let memory = unsafe { parts.slice(part * size..(part + 1) * size) };
            let range = (split * step).min(keys)..((split + 1) * step).min(keys);
            self.pass(&block, range, &mut self.part(&block, memory));
        });
        parallel_for(tasks, |task| {
            let block = block(task);
            // SAFETY: parts are disjoint, and nobody else reads those of this task.
            let memory = unsafe { parts.slice(task * splits * size..(task + 1) * splits * size) };
            let (first, rest) = memory.split_at_mut(size);
            let mut first = self.part(&block, first);
            for other in rest.chunks_exact_mut(size) {
                let other = self.part(&block, other);
                let Part { largest, total, fade, sums } = &mut first;
                let state = State { largest, total, fade };
                run(p.isa, Join { state, sums, other: (other.largest, other.total, other.sums) });
            }
            self.finish(&block, first);
        });
        Ok(())
    }

    /// Goes through some of the keys.
    fn pass(&self, block: &Block, keys: Range<usize>, part: &mut Part<'_, T::Acc>) {
        let p = &self.problem;
        part.sums.fill(T::Acc::default());
        part.largest.fill(T::Acc::LEAST);
        part.total.fill(T::Acc::default());
        if let Some(sinks) = self.sinks.filter(|_| keys.start == 0) {
            let heads = p.sizes.heads;
            let own = if sinks.len() > heads { &sinks[block.batch * heads..] } else { sinks };
            for (lane, row) in block.rows.clone().enumerate() {
                part.largest[lane] = own[p.place(block.group, row).0];
                part.total[lane] = T::Acc::ONE;
            }
        }
        if p.is_few() {
            return p.pass_few(block, keys, part);
        }
        let (width, features) = (block.width(), p.sizes.features);
        let (padded, values) = (p.padded(features), p.sizes.values);
        let mut memory =
            Scratch::new(width * (padded + features + KEYS) + KEYS * (features + values));
        let (rows, rest) = memory.split_at_mut(width * padded);
        let (lanes, rest) = rest.split_at_mut(width * features);
        let (scores, rest) = rest.split_at_mut(width * KEYS);
        let (own_keys, own_values) = rest.split_at_mut(KEYS * features);
        p.copy_rows(&p.q, block, p.scale, padded, rows);
        p.turn(rows, padded, lanes, [width, features]);
        for tile in block.tiles(keys) {
            let at = [block.batch, block.group];
            let (k, k_step) = p.k.tile(at, tile.clone(), own_keys);
            let (v, v_step) = p.v.tile(at, tile.clone(), own_values);
            let count = tile.len();
            let agree = Product {
                a: k,
                a_row: k_step,
                a_step: 1,
                rows: count,
                b: lanes.as_ptr(),
                b_step: width,
                width,
                steps: features,
                c: scores.as_mut_ptr(),
                c_step: width,
                add: false,
            };
            // SAFETY: the tile has so many keys, and the scratch memory a row of lanes for each.
            unsafe { agree.run(p.isa) };
            p.hide(block, tile, scores, [1, width]);
            let scores = &mut scores[..count * width];
            run(p.isa, Online { scores, state: part.state() });
            run(p.isa, Fade { rows: part.sums, by: part.fade });
            let weigh = Product {
                a: v,
                a_row: 1,
                a_step: v_step,
                rows: values,
                b: scores.as_ptr(),
                b_step: width,
                width,
                steps: count,
                c: part.sums.as_mut_ptr(),
                c_step: width,
                add: true,
            };
            // SAFETY: as above; the sums have a row of lanes for each feature of the values.
            unsafe { weigh.run(p.isa) };
        }
    }

    /// Writes the outputs of a block.
    fn finish(&self, block: &Block, mut part: Part<'_, T::Acc>) {
        let p = &self.problem;
        let (width, values, count) = (block.width(), p.sizes.values, block.rows.len());
        let first = p.first_row(block);
        // SAFETY: blocks have disjoint rows.
        unsafe {
            self.largest.slice(first..first + count).copy_from_slice(&part.largest[..count]);
            self.total.slice(first..first + count).copy_from_slice(&part.total[..count]);
        }
        let State { total, fade, .. } = part.state();
        for (share, &mut total) in fade.iter_mut().zip(total) {
            *share = T::Acc::ONE / total;
        }
        run(p.isa, Fade { rows: part.sums, by: part.fade });
        let mut rows = Scratch::new(count * values);
        p.turn(part.sums, width, &mut rows, [values, count]);
        for (row, own) in block.rows.clone().zip(rows.chunks_exact(values.max(1))) {
            let at = p.token(block, row) * values;
            // SAFETY: blocks have disjoint rows.
            T::narrow(own, unsafe { self.out.slice(at..at + values) });
        }
    }
}

impl<T: Element<Acc: Weight>> Problem<T> {
    /// `columns` with those that fill up vectors.
    pub(super) fn padded(&self, columns: usize) -> usize {
        columns.next_multiple_of(super::LANES)
    }

    /// Rows of `from`, `step` apart, as columns of `to`, which has `columns` rows, each for so many
    /// rows.
    pub(super) fn turn(
        &self,
        from: &[T::Acc],
        step: usize,
        to: &mut [T::Acc],
        [rows, columns]: [usize; 2],
    ) {
        assert!(from.len() + step >= rows * step + columns && to.len() >= rows * columns);
        let turn = Transpose {
            src: from.as_ptr(),
            src_step: step,
            rows,
            columns,
            dst: to.as_mut_ptr(),
            dst_step: rows,
        };
        // SAFETY: both hold as many.
        unsafe { T::Acc::transpose(self.isa, turn) };
    }
}
