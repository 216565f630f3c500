//! Products of a float matrix with a few vectors, at the rate of memory: the matrix is read once,
//! where it is.

use std::ops::Range;

use cupola_simd::{
    InRows, Isa, MAX_VECTORS, Out, RowProducts, Rows, Run, Tail, Tile, Tiled, even_parts,
};

use super::pack::{Factor, Part};
use super::{CHUNK, DotProblem, Epilogue, Shared};
use crate::memory::{Scratch, filled};
use crate::op::Finish;
use crate::threads::parallel_for;

/// Vectors that a product has at most.
const FEW: usize = 8;
/// Steps of the sum between two passes over the sums, where the matrix's lanes lie side by side.
const STEPS: usize = 16;
/// Lanes of a pass.
const LANES: usize = 512;
/// Chunks at most.
const CHUNKS: usize = 32;

/// A matrix `[lanes, steps]` by vectors `[vectors, steps]`; steps of batch, lane and step.
pub(super) struct Few {
    lanes: usize,
    vectors: usize,
    steps: usize,
    matrix: [isize; 3],
    few: [isize; 3],
    /// From one lane of the result to the next, and from one vector to the next.
    out: [usize; 2],
}

/// Computes a product with few rows or columns; gives whether it was one.
///
/// # Safety
/// As for `dot`; the result is not empty.
pub(super) unsafe fn product<T: Factor + InRows>(
    isa: Isa,
    p: &DotProblem,
    a: *const T,
    b: *const T,
    out: Out<'_, T>,
    finish: Finish<'_>,
) -> bool {
    let Some((few, side_by_side)) = Few::of::<T>(p) else { return false };
    debug_assert!(finish.tail.is_none(), "products of few vectors have no tail");
    let operands = if p.n <= p.m { [a, b] } else { [b, a] }.map(Shared);
    // The results of a chunk are side by side, or those of each vector are.
    let (epilogue, last) = finish.by_tasks(few.out[1] == 1);
    // SAFETY: the caller vouches for the operands.
    unsafe {
        if side_by_side {
            few.by_steps(isa, p.batch, &operands, out, epilogue);
        } else {
            few.by_lanes(isa, p.batch, &operands, out, epilogue);
        }
    }
    if let Some(finish) = last {
        finish.all();
    }
    true
}

impl Few {
    /// The product as one of few vectors of `T`, if it is, and whether the matrix's lanes lie side by side.
    pub(super) fn of<T: Factor>(p: &DotProblem) -> Option<(Few, bool)> {
        if p.m.min(p.n) > FEW {
            return None;
        }
        let [b_batch, b_step, b_lane] = p.b_strides;
        let columns = [b_batch, b_lane, b_step];
        let (lanes, vectors, matrix, few, out) = if p.n <= p.m {
            (p.m, p.n, p.a_strides, columns, [p.n, 1])
        } else {
            (p.n, p.m, columns, p.a_strides, [1, p.n])
        };
        let side_by_side = matrix[2] != 1 && matrix[1] == 1;
        // What has to be gathered or widened first is worth it for one vector.
        let own = size_of::<T>() == size_of::<T::Acc>();
        let as_is = matrix[2] == 1 || side_by_side && own;
        let few = Few { lanes, vectors, steps: p.k, matrix, few, out };
        (as_is || vectors == 1).then_some((few, side_by_side))
    }

    /// Multiply-adds of one matrix.
    fn work(&self) -> usize {
        (self.lanes * self.vectors * self.steps).max(1)
    }

    /// The operands of one matrix of the batch.
    fn operands<T>(&self, [matrix, vectors]: &[Shared<T>; 2], batch: usize) -> [*const T; 2] {
        let batch = batch as isize;
        [matrix.at(batch * self.matrix[0]), vectors.at(batch * self.few[0])]
    }

    /// Calls the epilogue for some lanes of a result that starts at `start`, where these are side by side.
    fn finish(&self, epilogue: Epilogue<'_>, start: usize, lanes: Range<usize>) {
        let [lane, _] = self.out;
        if let Some(f) = epilogue {
            f(start + lanes.start * lane..start + lanes.end * lane);
        }
    }

    /// Stores sums `[vectors, lanes]` as lanes from `first` on of a result.
    ///
    /// # Safety
    /// Nobody else accesses the lanes' results.
    unsafe fn store<T: Factor>(
        &self,
        sums: &[T::Acc],
        first: usize,
        start: usize,
        out: Out<'_, T>,
    ) {
        let [lane, vector] = self.out;
        let count = sums.len() / self.vectors;
        for (i, sums) in sums.chunks_exact(count).enumerate() {
            let at = start + first * lane + i * vector;
            if lane == 1 {
                // SAFETY: the caller vouches for the lanes.
                T::narrow(sums, unsafe { out.slice(at..at + count) });
                continue;
            }
            for (j, &sum) in sums.iter().enumerate() {
                // SAFETY: as above.
                unsafe { out.slice(at + j * lane..at + j * lane + 1)[0] = T::from_acc(sum) };
            }
        }
    }

    /// Lanes are sums along memory: chunks take some each.
    ///
    /// # Safety
    /// As `product`.
    unsafe fn by_lanes<T: Factor + InRows>(
        &self,
        isa: Isa,
        batch: usize,
        operands: &[Shared<T>; 2],
        out: Out<'_, T>,
        epilogue: Epilogue<'_>,
    ) {
        let ([_, lane, step], work) = (self.matrix, self.work());
        let chunk = self.lanes.div_ceil((work / CHUNK).clamp(1, CHUNKS)).next_multiple_of(4);
        let chunks = self.lanes.div_ceil(chunk);
        let group = (CHUNK / work).clamp(1, batch);
        let x_step = self.steps.next_multiple_of(16);
        parallel_for(batch.div_ceil(group) * chunks, |task| {
            let (first, piece) = (task / chunks * group, task % chunks);
            let lanes = piece * chunk..((piece + 1) * chunk).min(self.lanes);
            let mut sums = Scratch::<T::Acc>::new(self.vectors * lanes.len());
            let mut x = Scratch::<T::Acc>::new(self.vectors * x_step);
            for batch in first..(first + group).min(batch) {
                let [matrix, from] = self.operands(operands, batch);
                let [_, lane_of, step_of] = self.few;
                let (lanes_of, steps) = (self.vectors, self.steps);
                let vectors = Part { from, lane: lane_of, step: step_of, lanes: lanes_of, steps };
                // SAFETY: the caller vouches for the operands.
                unsafe { T::copy(isa, vectors, x_step, &mut x) };
                let matrix = matrix.wrapping_offset(lanes.start as isize * lane);
                let rows = RowProducts {
                    a: matrix,
                    a_step: lane,
                    rows: lanes.len(),
                    x: x.as_ptr(),
                    x_step,
                    vectors: self.vectors,
                    len: self.steps,
                    out: sums.as_mut_ptr(),
                    out_row: 1,
                    out_vector: lanes.len(),
                };
                if step == 1 {
                    // SAFETY: as above.
                    unsafe { T::row_products(isa, rows) };
                } else {
                    // SAFETY: as above.
                    unsafe { self.gathered(isa, rows) };
                }
                let start = batch * self.lanes * self.vectors;
                // SAFETY: chunks have lanes of their own.
                unsafe { self.store(&sums, lanes.start, start, out) };
                self.finish(epilogue, start, lanes.clone());
            }
        });
    }

    /// Rows whose elements lie apart, made contiguous one by one.
    ///
    /// # Safety
    /// As `by_lanes`.
    unsafe fn gathered<T: Factor + InRows>(&self, isa: Isa, rows: RowProducts<T, T::Acc>) {
        let mut dense = filled(T::default(), self.steps);
        for i in 0..rows.rows {
            let from = rows.a.wrapping_offset(i as isize * rows.a_step);
            for (k, dense) in dense.iter_mut().enumerate() {
                // SAFETY: the caller vouches for the row.
                *dense = unsafe { *from.wrapping_offset(k as isize * self.matrix[2]) };
            }
            let out = rows.out.wrapping_add(i * rows.out_row);
            // SAFETY: as above.
            unsafe {
                T::row_products(isa, RowProducts { a: dense.as_ptr(), rows: 1, out, ..rows })
            };
        }
    }

    /// Lanes lie side by side: chunks take some steps each, so that memory is read in its order,
    /// and their sums are added up.
    ///
    /// # Safety
    /// As `product`.
    unsafe fn by_steps<T: Factor>(
        &self,
        isa: Isa,
        batch: usize,
        operands: &[Shared<T>; 2],
        out: Out<'_, T>,
        epilogue: Epilogue<'_>,
    ) {
        let wanted = (self.work() / CHUNK).clamp(1, CHUNKS.div_ceil(batch));
        let chunk = self.steps.div_ceil(wanted).next_multiple_of(STEPS).max(STEPS);
        let chunks = self.steps.div_ceil(chunk).max(1);
        let size = self.vectors * self.lanes;
        let mut sums = Scratch::<T::Acc>::new(batch * chunks * size);
        let parts = Out::new(&mut sums);
        parallel_for(batch * chunks, |task| {
            let (batch, piece) = (task / chunks, task % chunks);
            let steps = piece * chunk..((piece + 1) * chunk).min(self.steps);
            // SAFETY: the caller vouches for the operands; chunks have sums of their own.
            unsafe {
                let sums = parts.slice(task * size..(task + 1) * size);
                self.columns(isa, self.operands(operands, batch), steps, sums);
            }
        });
        parallel_for(batch, |batch| {
            // SAFETY: matrices have sums and results of their own.
            unsafe {
                let sums = parts.slice(batch * chunks * size..(batch + 1) * chunks * size);
                let (total, rest) = sums.split_at_mut(size);
                for part in rest.chunks_exact(size) {
                    total.iter_mut().zip(part).for_each(|(total, &part)| *total += part);
                }
                self.store(total, 0, batch * size, out);
            }
            self.finish(epilogue, batch * size, 0..self.lanes);
        });
    }

    /// The sums `[vectors, lanes]` over some steps: a few of these at a time are added to the sums
    /// of some lanes.
    ///
    /// # Safety
    /// The operands can be read.
    unsafe fn columns<T: Factor>(
        &self,
        isa: Isa,
        [matrix, vectors]: [*const T; 2],
        steps: Range<usize>,
        sums: &mut [T::Acc],
    ) {
        let set = T::Acc::tiles(isa);
        let fits = |&v: &usize| set.rows[v - 1] >= self.vectors;
        let most = (1..=set.rows.len()).rev().find(fits).unwrap_or(set.rows.len());
        let groups = even_parts(self.vectors, set.rows[most - 1]);
        let ([_, _, step], [_, x_lane, x_step]) = (self.matrix, self.few);
        let own = size_of::<T>() == size_of::<T::Acc>();
        let mut x = Scratch::<T::Acc>::new(self.vectors * STEPS);
        let mut wide = Scratch::<T::Acc>::new(STEPS * LANES);
        let starts = std::array::from_fn::<_, MAX_VECTORS, _>(|v| v * set.lanes);
        let offsets: [usize; FEW] = std::array::from_fn(|i| i * STEPS);
        let whole = self.lanes / set.lanes * set.lanes;
        sums.fill(T::Acc::default());
        for k in steps.clone().step_by(STEPS) {
            let len = STEPS.min(steps.end - k);
            for (i, j) in (0..self.vectors).flat_map(|i| (0..len).map(move |j| (i, j))) {
                let at = i as isize * x_lane + (k + j) as isize * x_step;
                // SAFETY: the caller vouches for the operands.
                x[i * STEPS + j] = unsafe { *vectors.wrapping_offset(at) }.to_acc();
            }
            let rest = (whole < self.lanes).then_some(whole);
            for start in (0..whole).step_by(LANES).chain(rest) {
                let end = if start < whole { (start + LANES).min(whole) } else { self.lanes };
                let lanes = end - start;
                let rows = matrix.wrapping_offset(k as isize * step + start as isize);
                // Sums that fill no vector are computed where there is room for one.
                let copied = !own || lanes % set.lanes != 0;
                let (b, b_step) = if copied {
                    for (j, wide) in wide.chunks_exact_mut(LANES).take(len).enumerate() {
                        let row = rows.wrapping_offset(j as isize * step);
                        // SAFETY: as above.
                        let row = unsafe { std::slice::from_raw_parts(row, lanes) };
                        T::widen(row, &mut wide[..lanes]);
                    }
                    (wide.as_ptr(), LANES)
                } else {
                    (rows.cast::<T::Acc>(), step as usize)
                };
                for at in (0..lanes).step_by(most * set.lanes) {
                    let width = (lanes - at).min(most * set.lanes);
                    let count = width.div_ceil(set.lanes);
                    let mut first = 0;
                    for &group in &groups {
                        let c = sums[first * self.lanes + start + at..].as_mut_ptr();
                        let mut tile = Tile {
                            a: x[first * STEPS..].as_ptr(),
                            a_unit: 1,
                            a_step: 1,
                            rows: &offsets,
                            row_step: 0,
                            b: b.wrapping_add(at),
                            b_unit: 1,
                            b_step,
                            soon: 0,
                            columns: starts,
                            runs: &[Run { a: 0, b: 0, len }],
                            c,
                            c_step: self.lanes,
                            last: width - (count - 1) * set.lanes,
                            add: true,
                            tail: Tail::NONE,
                        };
                        let kernel = T::Acc::kernel(isa, group, count, Rows::Listed);
                        if tile.last == set.lanes {
                            // SAFETY: the tile lies inside the operands and the sums.
                            unsafe { kernel(&tile) };
                        } else {
                            let mut part = Scratch::<T::Acc>::new(group * count * set.lanes);
                            (tile.c, tile.c_step) = (part.as_mut_ptr(), count * set.lanes);
                            tile.add = false;
                            // SAFETY: as above; what is past the lanes is not stored.
                            unsafe { kernel(&tile) };
                            for (i, part) in part.chunks_exact(count * set.lanes).enumerate() {
                                let to = &mut sums[(first + i) * self.lanes + start + at..];
                                for (to, &part) in to.iter_mut().zip(&part[..width]) {
                                    *to += part;
                                }
                            }
                        }
                        first += group;
                    }
                }
            }
        }
    }
}
