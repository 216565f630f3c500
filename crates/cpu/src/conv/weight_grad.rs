//! The gradient of the weights: for each tap, a sum over images and positions of outer products.
//!
//! One operand's channels are lanes and the other's are rows. As lanes, x gives the patch that a
//! row of taps reads, which is one stretch of memory; dy gives its channels, which is better where
//! that patch is short. Images are cut into groups by problem size; each group has its own sums,
//! which are added in order at the end.

use std::ops::Range;

use super::pad::Padded;
use super::shape::Taps;
use super::{Epilogue, Shape};
use crate::simd::{Element, Isa, MAX_VECTORS, Out, Run, Scratch, Split, Tile, Tiled};
use crate::threads::parallel_for;

/// Groups of images, at most.
const GROUPS: usize = 16;
/// Elements of all groups' sums, at most, unless one group has more.
const SUMS: usize = 1 << 21;
/// Tasks to aim at.
const TASKS: usize = 16;
/// Bytes of both operands that a pass over the tiles reads.
const PASS_BYTES: usize = 256 << 10;
/// Positions in a pass that make loading and storing the sums cheap.
const PASS: usize = 256;

/// A scalar or a vector of taps × input channels.
#[derive(Clone, Copy, Debug)]
struct Patch {
    /// First tap, in growing order, and channel of the group.
    tap: usize,
    channel: usize,
    /// Elements, which may go on into the next taps of the last axis.
    len: usize,
}

/// A tile: rows and vectors as ranges of `WeightGrad::rows` and `WeightGrad::vectors`.
#[derive(Clone, Debug)]
struct Block {
    group: usize,
    rows: Range<usize>,
    vectors: Range<usize>,
    /// First of its sums.
    start: usize,
}

struct WeightGrad<'s, A: Tiled> {
    s: &'s Shape,
    isa: Isa,
    lanes: usize,
    /// Whether lanes are elements of patches; otherwise they are output channels.
    patch_lanes: bool,
    patches: Vec<Patch>,
    blocks: Vec<Block>,
    tables: Vec<Vec<Taps>>,
    sums: usize,
    /// Rows of the first axis in a pass, and images in a pass.
    slab: usize,
    images: usize,
    unit: Unit<A>,
}

/// Where one slab of an image lies in the buffers of a pass.
struct Unit<A> {
    padded: Padded,
    x: usize,
    dy: usize,
    /// From one position of dy to the next.
    channels: usize,
    kind: std::marker::PhantomData<A>,
}

pub(super) fn weight_grad<T: Element>(
    s: &Shape,
    x: &[T],
    dy: &[T],
    out: Out<'_, T>,
    epilogue: Epilogue<'_>,
) {
    let plan = WeightGrad::<T::Acc>::new(s, Isa::best());
    let groups = (SUMS / plan.sums.max(1)).clamp(1, GROUPS).min(s.batch);
    let slices = TASKS.div_ceil(groups.max(1)).min(plan.blocks.len());
    let mut sums = Scratch::<T::Acc>::new(groups * plan.sums);
    let parts = Out::new(&mut sums);
    parallel_for(groups * slices, |task| {
        let (group, slice) = (task / slices, task % slices);
        let part = |n: usize, of: usize, i: usize| n * i / of..n * (i + 1) / of;
        let images = part(s.batch, groups, group);
        let blocks = &plan.blocks[part(plan.blocks.len(), slices, slice)];
        let end = |b: &Block| b.start + b.rows.len() * b.vectors.len() * plan.lanes;
        let range = blocks[0].start..blocks.last().map_or(0, end);
        let at = group * plan.sums;
        // SAFETY: tasks have disjoint groups or blocks.
        let sums = unsafe { parts.slice(at + range.start..at + range.end) };
        plan.group(blocks, images, x, dy, sums);
    });
    plan.finish(&sums, groups, out);
    if let Some(f) = epilogue {
        let row = s.taps() * s.c_in;
        parallel_for(s.groups * s.c_out, |c| f(c * row..(c + 1) * row));
    }
}

impl<'s, A: Tiled> WeightGrad<'s, A> {
    fn new(s: &'s Shape, isa: Isa) -> Self {
        let set = A::tiles(isa);
        let last = s.axes.len() - 1;
        let inner = &s.axes[last];
        // Lanes along patches: stretches of taps of the last axis where these lie side by side.
        let merge = s.groups == 1 && inner.dilation == 1;
        let stretch = if merge { inner.taps * s.c_in } else { s.c_in };
        let cut = |step: usize| -> Vec<Patch> {
            (0..s.taps() * s.c_in)
                .step_by(stretch.max(1))
                .flat_map(|at| {
                    (0..stretch).step_by(step).map(move |i| Patch {
                        tap: (at + i) / s.c_in,
                        channel: (at + i) % s.c_in,
                        len: step.min(stretch - i),
                    })
                })
                .collect()
        };
        let (as_lanes, as_rows) = (cut(set.lanes), cut(1));
        let by_patch = set.split(s.c_out, as_lanes.len());
        let by_channel = set.split(as_rows.len(), s.c_out.div_ceil(set.lanes));
        let patch_lanes = by_patch.cost <= by_channel.cost;
        let (patches, split) =
            if patch_lanes { (as_lanes, by_patch) } else { (as_rows, by_channel) };
        let (blocks, sums) = blocks(s.groups, &split, set.lanes);
        let (slab, images) = pass::<A>(s);
        let channels = s.groups * s.c_out;
        let row = s.outputs() / s.axes[0].output.max(1);
        let padded = Padded::new(s, 0..slab);
        WeightGrad {
            s,
            isa,
            lanes: set.lanes,
            patch_lanes,
            patches,
            blocks,
            tables: s.tables(),
            sums,
            slab,
            images,
            unit: Unit {
                // Vectors may be read past the end of their unit.
                x: padded.len() + set.lanes,
                dy: slab * row * channels + set.lanes * MAX_VECTORS,
                padded,
                channels,
                kind: std::marker::PhantomData,
            },
        }
    }

    /// Computes some blocks' sums over some images.
    fn group<T: Element<Acc = A>>(
        &self,
        blocks: &[Block],
        images: Range<usize>,
        x: &[T],
        dy: &[T],
        sums: &mut [A],
    ) {
        let s = self.s;
        if images.is_empty() || s.outputs() == 0 {
            sums.fill(A::default());
            return;
        }
        let (image, outputs) = (s.inputs() * s.groups * s.c_in, s.outputs());
        let (rows, row) = (s.axes[0].output, outputs / s.axes[0].output);
        let mut xs = Scratch::<A>::new(self.images * self.unit.x);
        let mut dys = Scratch::<A>::new(self.images * self.unit.dy);
        let (mut runs, mut add) = (Vec::new(), false);
        for first in images.clone().step_by(self.images) {
            let images = first..(first + self.images).min(images.end);
            for start in (0..rows).step_by(self.slab) {
                let rows = start..(start + self.slab).min(rows);
                for (i, n) in images.clone().enumerate() {
                    let to = &mut xs[i * self.unit.x..][..self.unit.x];
                    let padded = Padded::new(s, rows.clone());
                    padded.fill(s, &x[n * image..][..image], &mut to[..padded.len()]);
                    let at = (n * outputs + rows.start * row) * self.unit.channels;
                    let from = &dy[at..][..rows.len() * row * self.unit.channels];
                    T::widen(from, &mut dys[i * self.unit.dy..][..from.len()]);
                }
                let base = blocks[0].start;
                for block in blocks {
                    self.runs(block, images.len(), rows.clone(), &mut runs);
                    let sums = &mut sums[block.start - base..];
                    self.multiply(block, &xs, &dys, &runs, sums, add);
                }
                add = true;
            }
        }
    }

    /// The positions that any of a block's taps meets with an input: a run for each row of them.
    /// `Run::a` is the start in x and `Run::b` in dy.
    fn runs(&self, block: &Block, images: usize, rows: Range<usize>, runs: &mut Vec<Run>) {
        let s = self.s;
        let last = s.axes.len() - 1;
        let pitches = &self.unit.padded.pitches;
        let used = if self.patch_lanes { &block.vectors } else { &block.rows };
        let mut taps: Vec<usize> =
            self.patches[used.clone()].iter().map(|p| p.tap / s.axes[last].taps).collect();
        taps.dedup();
        runs.clear();
        let (outer, len) = if last == 0 {
            (0..1, rows.len())
        } else {
            let middle: usize = s.axes[1..last].iter().map(|a| a.output).product();
            (rows.start * middle..rows.end * middle, s.axes[last].output)
        };
        for row in outer.clone() {
            let (mut at, mut rest) = (0, row);
            for d in (0..last).rev() {
                let o = rest % s.axes[d].output - if d == 0 { rows.start } else { 0 };
                rest /= s.axes[d].output;
                at += o * s.axes[d].stride as usize * pitches[d];
            }
            if taps.iter().any(|&t| self.meets(row, t)) {
                let b = (row - outer.start) * len * self.unit.channels;
                runs.push(Run { a: at, b, len });
            }
        }
        let one = runs.len();
        for i in 1..images {
            for k in 0..one {
                let run = runs[k];
                let (a, b) = (run.a + i * self.unit.x, run.b + i * self.unit.dy);
                runs.push(Run { a, b, ..run });
            }
        }
    }

    /// Whether a tap meets an input at a row of outputs, both given over all axes but the last.
    fn meets(&self, mut row: usize, mut tap: usize) -> bool {
        (0..self.s.axes.len() - 1).rev().all(|d| {
            let axis = &self.s.axes[d];
            let taps = self.tables[d][row % axis.output];
            let i = (tap % axis.taps).checked_sub(taps.first_tap);
            row /= axis.output;
            tap /= axis.taps;
            i.is_some_and(|i| i % axis.tap_step() == 0 && i / axis.tap_step() < taps.count)
        })
    }

    fn multiply(&self, block: &Block, x: &[A], dy: &[A], runs: &[Run], sums: &mut [A], add: bool) {
        let s = self.s;
        let (m, v) = (block.rows.len(), block.vectors.len());
        let stride = s.axes[s.axes.len() - 1].stride as usize;
        let x_step = stride * s.groups * s.c_in;
        let x = x[block.group * s.c_in..].as_ptr();
        let dy = &dy[block.group * s.c_out..];
        let mut columns = [0; MAX_VECTORS];
        let sums = &mut sums[..m * v * self.lanes];
        let (c, c_step, last) = (sums.as_mut_ptr(), v * self.lanes, self.lanes);
        if self.patch_lanes {
            for (column, i) in columns.iter_mut().zip(block.vectors.clone()) {
                *column = self.offset(self.patches[i]);
            }
            let swapped: Vec<Run> =
                runs.iter().map(|r| Run { a: r.b, b: r.a, len: r.len }).collect();
            let tile = Tile {
                a: dy[block.rows.start..].as_ptr(),
                a_unit: 1,
                a_step: self.unit.channels,
                rows: None,
                b: x,
                b_unit: 1,
                b_step: x_step,
                columns,
                runs: &swapped,
                c,
                c_step,
                last,
                add,
            };
            // SAFETY: runs stay inside the units' buffers, which have slack for whole vectors.
            unsafe { A::kernel(self.isa, m, v, true)(&tile) };
        } else {
            for (column, i) in columns.iter_mut().zip(block.vectors.clone()) {
                *column = i * self.lanes;
            }
            let rows: Vec<usize> =
                self.patches[block.rows.clone()].iter().map(|&p| self.offset(p)).collect();
            let tile = Tile {
                a: x,
                a_unit: 1,
                a_step: x_step,
                rows: Some(&rows),
                b: dy.as_ptr(),
                b_unit: 1,
                b_step: self.unit.channels,
                columns,
                runs,
                c,
                c_step,
                last,
                add,
            };
            // SAFETY: as above.
            unsafe { A::kernel(self.isa, m, v, false)(&tile) };
        }
    }

    /// Where a patch lies from the start of its position's window.
    fn offset(&self, patch: Patch) -> usize {
        let (mut at, mut tap) = (patch.channel, patch.tap);
        for (d, axis) in self.s.axes.iter().enumerate().rev() {
            at += tap % axis.taps * axis.dilation as usize * self.unit.padded.pitches[d];
            tap /= axis.taps;
        }
        at
    }

    /// Adds the groups' sums and writes the weights.
    fn finish<T: Element<Acc = A>>(&self, sums: &[A], groups: usize, out: Out<'_, T>) {
        let s = self.s;
        parallel_for(self.blocks.len(), |i| {
            let block = &self.blocks[i];
            let width = block.vectors.len() * self.lanes;
            let mut total = Scratch::<A>::new(block.rows.len() * width);
            total.fill(A::default());
            for group in 0..groups {
                let part = &sums[group * self.sums + block.start..][..total.len()];
                for (total, &part) in total.iter_mut().zip(part) {
                    *total += part;
                }
            }
            let write = |patch: Patch, channel: usize, lane: usize, sum: A| {
                let (tap, ci) = (patch.tap + (patch.channel + lane) / s.c_in, patch.channel + lane);
                let at = s.weight_at(block.group, channel, s.stored_tap(tap), ci % s.c_in);
                // SAFETY: each weight belongs to one block.
                let weight = unsafe { out.slice(at..at + 1) };
                weight[0] = T::from_acc(sum);
            };
            for (m, row) in block.rows.clone().enumerate() {
                for (v, vector) in block.vectors.clone().enumerate() {
                    let sums = &total[m * width + v * self.lanes..][..self.lanes];
                    if self.patch_lanes {
                        let patch = self.patches[vector];
                        for (lane, &sum) in sums[..patch.len].iter().enumerate() {
                            write(patch, row, lane, sum);
                        }
                    } else {
                        let first = vector * self.lanes;
                        let valid = self.lanes.min(s.c_out - first);
                        for (lane, &sum) in sums[..valid].iter().enumerate() {
                            write(self.patches[row], first + lane, 0, sum);
                        }
                    }
                }
            }
        });
    }
}

/// The tiles of every group of channels, and how many sums they have.
fn blocks(groups: usize, split: &Split, lanes: usize) -> (Vec<Block>, usize) {
    let (mut blocks, mut start) = (Vec::new(), 0);
    for group in 0..groups {
        let mut vector = 0;
        for &v in &split.vectors {
            let mut row = 0;
            for &m in &split.rows {
                blocks.push(Block {
                    group,
                    rows: row..row + m,
                    vectors: vector..vector + v,
                    start,
                });
                start += m * v * lanes;
                row += m;
            }
            vector += v;
        }
    }
    (blocks, start)
}

/// Rows of the first axis, and images, that a pass takes.
fn pass<A>(s: &Shape) -> (usize, usize) {
    let rows = s.axes[0].output.max(1);
    let image = Padded::new(s, 0..rows).len() + s.outputs() * s.groups * s.c_out;
    let bytes = image * size_of::<A>();
    let slab = rows.div_ceil(bytes.div_ceil(PASS_BYTES * 4).max(1));
    let images = PASS.div_ceil(s.outputs().max(1)).min(PASS_BYTES / bytes.max(1)).max(1);
    (slab, if slab < rows { 1 } else { images })
}
