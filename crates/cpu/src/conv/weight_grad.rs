//! The gradient of the weights: for each tap, a sum over images and positions of outer products.
//!
//! One operand's channels are lanes and the other's are rows. As lanes, x gives the patch that a
//! row of taps reads, which is one stretch of memory; dy gives its channels, which is better where
//! that patch is short. Images are cut into groups by problem size; each group has its own sums,
//! which are added in order at the end.

use std::marker::PhantomData;
use std::ops::Range;

use cupola_simd::{Element, Isa, MAX_VECTORS, Out, Rows, Run, Split, Tail, Tile, Tiled};

use super::dy::{COPY, DyTile, copy_tile, dy_tiles};
use super::geometry::Taps;
use super::pad::Padded;
use super::{Epilogue, Geometry};
use crate::memory::Scratch;
use crate::threads::{num_threads, parallel_for};

/// Groups of images, at most.
const GROUPS: usize = 16;
/// Elements of all groups' sums, at most, unless one group has more.
const SUMS: usize = 1 << 21;
/// Tasks to aim at.
const TASKS: usize = 16;
/// Bytes that a tile reads in a pass, to stay in the first-level cache for the next tiles.
const PASS_BYTES: usize = 24 << 10;
/// Positions in a group, at least, to make adding up the groups cheap.
const GROUP: usize = 1024;
/// Taps × input channels in a slice of the tiles, at least, since each slice copies its input.
const SLICE: usize = 512;
/// How much longer the products of many weights may take if these need not be turned.
const TURNING: f64 = 1.2;
/// Taps × input channels of many weights.
const MANY: usize = 2 * SLICE;
/// Groups of images that are not worth adding up, if their tiles can be shared instead.
const FEW: usize = 2;
/// Taps × output channels for which a slice may copy its input, to take little of the time of the products.
const COPYING: usize = 32;

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
    /// Where its patches lie from the start of a position's window.
    offsets: Vec<usize>,
    /// Which of `WeightGrad::outer_taps` its patches need.
    taps: usize,
    /// Which of `WeightGrad::dy_tiles` it reads.
    dy: usize,
}

struct WeightGrad<'s, A> {
    geo: &'s Geometry,
    isa: Isa,
    lanes: usize,
    /// Whether lanes are elements of patches; otherwise they are output channels.
    patch_lanes: bool,
    patches: Vec<Patch>,
    blocks: Vec<Block>,
    /// Sets of taps, over all axes but the last, that blocks have in common.
    outer_taps: Vec<Vec<usize>>,
    tables: Vec<Vec<Taps>>,
    sums: usize,
    /// The weights of an output channel, where sums are written to these; else those of a tile lie together.
    row: Option<usize>,
    /// Rows of the first axis in a pass, and images in a pass.
    slab: usize,
    images: usize,
    unit: Unit,
    dy_tiles: Vec<DyTile>,
    kind: PhantomData<A>,
}

/// Where one slab of an image lies in the buffers of a pass.
struct Unit {
    padded: Padded,
    /// Elements of x.
    x: usize,
    /// Positions of dy.
    positions: usize,
}

pub(super) fn weight_grad<T: Element>(
    geo: &Geometry,
    x: &[T],
    dy: &[T],
    out: Out<'_, T>,
    epilogue: Epilogue<'_>,
) {
    let part = |n: usize, of: usize, i: usize| n * i / of..n * (i + 1) / of;
    let depth = geo.taps() * geo.c_in;
    let worth = (geo.batch * geo.outputs()).div_ceil(GROUP).min(geo.batch);
    let groups = |sums: usize| (SUMS / sums.max(1)).clamp(1, GROUPS).min(worth);
    // Many weights beside the positions: one group of images is enough, if its tiles make as many tasks.
    let weights = geo.groups * geo.c_out * depth;
    let slices = geo.taps() * geo.c_out / COPYING;
    let is_one = groups(weights) <= FEW || depth >= MANY && groups(weights) <= slices;
    let mut gradient = WeightGrad::<T::Acc>::new(geo, Isa::best(), is_one);
    if size_of::<T>() == size_of::<T::Acc>() && is_one && gradient.lies_as_weights() {
        // The sums are the weights.
        gradient.row = Some(depth);
        assert!(weights <= out.len());
        let slices = (2 * num_threads()).min(slices.max(1)).min(gradient.blocks.len());
        parallel_for(slices, |slice| {
            let blocks = &gradient.blocks[part(gradient.blocks.len(), slices, slice)];
            // `T` is its own `Acc`.
            gradient.group(blocks, 0..geo.batch, x, dy, out.as_ptr().cast());
        });
    } else {
        let groups = groups(gradient.sums);
        let slices = TASKS.div_ceil(groups.max(1)).min(depth / SLICE).max(1);
        let slices = slices.min(gradient.blocks.len());
        let mut sums = Scratch::<T::Acc>::new(groups * gradient.sums);
        let parts = Out::new(&mut sums);
        parallel_for(groups * slices, |task| {
            let (group, slice) = (task / slices, task % slices);
            let images = part(geo.batch, groups, group);
            let blocks = &gradient.blocks[part(gradient.blocks.len(), slices, slice)];
            let sums = parts.as_ptr().wrapping_add(group * gradient.sums);
            gradient.group(blocks, images, x, dy, sums);
        });
        gradient.finish(&sums, groups, out);
    }
    if let Some(f) = epilogue {
        let row = geo.taps() * geo.c_in;
        parallel_for(geo.groups * geo.c_out, |c| f(c * row..(c + 1) * row));
    }
}

impl<'s, A: Tiled> WeightGrad<'s, A> {
    /// For sums that are not to be turned, if they are the weights of one group of images.
    fn new(geo: &'s Geometry, isa: Isa, is_one: bool) -> Self {
        let set = A::tiles(isa);
        let last = geo.axes.len() - 1;
        let inner = &geo.axes[last];
        // Lanes along patches: stretches of taps of the last axis where these lie side by side.
        let merge = geo.groups == 1 && inner.dilation == 1;
        let stretch = if merge { inner.taps * geo.c_in } else { geo.c_in };
        let cut = |step: usize| -> Vec<Patch> {
            (0..geo.taps() * geo.c_in)
                .step_by(stretch.max(1))
                .flat_map(|at| {
                    (0..stretch).step_by(step).map(move |i| Patch {
                        tap: (at + i) / geo.c_in,
                        channel: (at + i) % geo.c_in,
                        len: step.min(stretch - i),
                    })
                })
                .collect()
        };
        let (as_lanes, as_rows) = (cut(set.lanes), cut(1));
        let by_patch = set.split(geo.c_out, as_lanes.len(), Rows::Together);
        let by_channel = set.split(as_rows.len(), geo.c_out.div_ceil(set.lanes), Rows::Listed);
        // Sums of patches lie as weights do, and those of channels have to be turned.
        let turning = if is_one { TURNING } else { 1.0 };
        let patch_lanes = by_patch.cost <= by_channel.cost * turning;
        let (patches, split) =
            if patch_lanes { (as_lanes, by_patch) } else { (as_rows, by_channel) };
        let (blocks, sums) = blocks(geo.groups, &split, set.lanes, patch_lanes);
        let x_step = Padded::new(geo, 0..1, geo.groups * geo.c_in).strides[geo.axes.len() - 1];
        let vectors = split.vectors.first().map_or(1, |v| v * set.lanes);
        let touched = if patch_lanes { vectors.min(x_step) } else { vectors + x_step };
        let (slab, images) = pass(geo, PASS_BYTES / (touched * size_of::<A>()).max(1));
        let row = geo.outputs() / geo.axes[0].output.max(1);
        let padded = Padded::new(geo, 0..slab, geo.groups * geo.c_in);
        let mut gradient = WeightGrad {
            geo,
            isa,
            lanes: set.lanes,
            patch_lanes,
            patches,
            blocks: vec![],
            outer_taps: vec![],
            tables: geo.tables(),
            sums,
            row: None,
            slab,
            images,
            // Vectors may be read past the end of their unit.
            unit: Unit { x: padded.len().saturating_add(set.lanes), positions: slab * row, padded },
            dy_tiles: dy_tiles(geo, &split, set.lanes, patch_lanes),
            kind: PhantomData,
        };
        for mut block in blocks {
            let used = if patch_lanes { block.vectors.clone() } else { block.rows.clone() };
            let patches = &gradient.patches[used];
            block.offsets = patches.iter().map(|&p| gradient.offset(p)).collect();
            let mut taps: Vec<usize> = patches.iter().map(|p| p.tap / inner.taps).collect();
            taps.dedup();
            block.taps = gradient.outer_taps.iter().position(|t| *t == taps).unwrap_or_else(|| {
                gradient.outer_taps.push(taps);
                gradient.outer_taps.len() - 1
            });
            gradient.blocks.push(block);
        }
        gradient
    }

    /// Whether the sums of a row of tiles lie as the weights of an output channel do.
    fn lies_as_weights(&self) -> bool {
        let geo = self.geo;
        let is_whole = |(at, patch): (usize, &Patch)| {
            patch.len == self.lanes && patch.tap * geo.c_in + patch.channel == at * self.lanes
        };
        self.patch_lanes
            && (0..geo.taps()).all(|tap| geo.stored_tap(tap) == tap)
            && self.patches.iter().enumerate().all(is_whole)
            && geo.batch * geo.outputs() > 0
    }

    /// Where the sums of a block start, and how many elements after each other its rows do.
    fn place(&self, block: &Block) -> (usize, usize) {
        match self.row {
            None => (block.start, block.vectors.len() * self.lanes),
            Some(row) => {
                let channel = block.group * self.geo.c_out + block.rows.start;
                (channel * row + block.vectors.start * self.lanes, row)
            }
        }
    }

    /// Computes some blocks' sums over some images: no other task has these.
    fn group<T: Element<Acc = A>>(
        &self,
        blocks: &[Block],
        images: Range<usize>,
        x: &[T],
        dy: &[T],
        sums: *mut A,
    ) {
        let geo = self.geo;
        if images.is_empty() || geo.outputs() == 0 {
            for block in blocks {
                let (at, step) = self.place(block);
                // SAFETY: the block's sums, which lie together.
                unsafe { sums.add(at).write_bytes(0, block.rows.len() * step) };
            }
            return;
        }
        let (image, outputs) = (geo.inputs() * geo.groups * geo.c_in, geo.outputs());
        let (rows, row) = (geo.axes[0].output, outputs / geo.axes[0].output);
        let channels = geo.groups * geo.c_out;
        let mut xs = Scratch::<A>::new(self.images.saturating_mul(self.unit.x));
        let positions = self.images * self.unit.positions;
        let width = self.dy_tiles.last().map_or(0, |t| t.start + t.width);
        let mut dys = Scratch::<A>::new(positions * width + COPY);
        let mut runs: Vec<Vec<Run>> = vec![vec![]; self.outer_taps.len()];
        let (mut add, mut known) = (false, (0..0, 0));
        for first in images.clone().step_by(self.images) {
            let images = first..(first + self.images).min(images.end);
            for start in (0..rows).step_by(self.slab) {
                let rows = start..(start + self.slab).min(rows);
                let padded = Padded::new(geo, rows.clone(), geo.groups * geo.c_in);
                for (i, n) in images.clone().enumerate() {
                    let to = &mut xs[i * self.unit.x..][..padded.len()];
                    padded.fill(geo, &x[n * image..][..image], to);
                }
                let unit = |n: usize| {
                    let at = (n * outputs + rows.start * row) * channels;
                    at..at + rows.len() * row * channels
                };
                for tile in &self.dy_tiles {
                    for (i, n) in images.clone().enumerate() {
                        let to = &mut dys[tile.start * positions..];
                        let to = &mut to[i * self.unit.positions * tile.width..];
                        if let Some(dy) = T::as_acc(dy) {
                            copy_tile(&dy[unit(n).start..], unit(n).len(), channels, tile, to);
                        } else {
                            let mut wide = Scratch::new(unit(n).len());
                            T::widen(&dy[unit(n)], &mut wide);
                            copy_tile(&wide, wide.len(), channels, tile, to);
                        }
                    }
                }
                if known != (rows.clone(), images.len()) {
                    known = (rows.clone(), images.len());
                    for (runs, taps) in runs.iter_mut().zip(&self.outer_taps) {
                        self.runs(taps, images.len(), rows.clone(), runs);
                    }
                }
                for block in blocks {
                    self.multiply(block, &xs, &dys, &runs[block.taps], sums, add);
                }
                add = true;
            }
        }
    }

    /// The positions that any of the taps meets with an input: a run for each row of them. Where
    /// patches are lanes `Run::a` is a position of dy and `Run::b` a start in x, otherwise they are
    /// swapped.
    fn runs(&self, taps: &[usize], images: usize, rows: Range<usize>, runs: &mut Vec<Run>) {
        let geo = self.geo;
        let last = geo.axes.len() - 1;
        let strides = &self.unit.padded.strides;
        runs.clear();
        let (outer, len) = if last == 0 {
            (0..1, rows.len())
        } else {
            let middle: usize = geo.axes[1..last].iter().map(|a| a.output).product();
            (rows.start * middle..rows.end * middle, geo.axes[last].output)
        };
        for i in 0..images {
            for row in outer.clone() {
                if !taps.iter().any(|&t| self.meets(row, t)) {
                    continue;
                }
                let (mut x, mut rest) = (i * self.unit.x, row);
                for d in (0..last).rev() {
                    let o = rest % geo.axes[d].output - if d == 0 { rows.start } else { 0 };
                    rest /= geo.axes[d].output;
                    x += o * strides[d];
                }
                let dy = i * self.unit.positions + (row - outer.start) * len;
                let (a, b) = if self.patch_lanes { (dy, x) } else { (x, dy) };
                runs.push(Run { a, b, len });
            }
        }
    }

    /// Whether a tap meets an input at a row of outputs, both given over all axes but the last.
    fn meets(&self, mut row: usize, mut tap: usize) -> bool {
        (0..self.geo.axes.len() - 1).rev().all(|d| {
            let axis = &self.geo.axes[d];
            let taps = self.tables[d][row % axis.output];
            let i = (tap % axis.taps).checked_sub(taps.first_tap);
            row /= axis.output;
            tap /= axis.taps;
            i.is_some_and(|i| i % axis.tap_step() == 0 && i / axis.tap_step() < taps.count)
        })
    }

    fn multiply(&self, block: &Block, x: &[A], dy: &[A], runs: &[Run], sums: *mut A, add: bool) {
        let geo = self.geo;
        let (m, v) = (block.rows.len(), block.vectors.len());
        let x_step = self.unit.padded.strides[geo.axes.len() - 1];
        let x = x[block.group * geo.c_in..].as_ptr();
        let dy_tile = &self.dy_tiles[block.dy];
        let dy = dy[dy_tile.start * self.images * self.unit.positions..].as_ptr();
        let mut columns = [0; MAX_VECTORS];
        let ((at, c_step), last) = (self.place(block), self.lanes);
        let c = sums.wrapping_add(at);
        if self.patch_lanes {
            columns[..v].copy_from_slice(&block.offsets);
            let tile = Tile {
                a: dy,
                a_unit: m,
                a_step: m,
                rows: &[],
                row_step: 0,
                b: x,
                b_unit: 1,
                b_step: x_step,
                soon: 0,
                columns,
                runs,
                c,
                c_step,
                last,
                add,
                tail: Tail::NONE,
            };
            // SAFETY: runs stay inside the units' buffers, which have slack for whole vectors; the sums are the
            // block's own.
            unsafe { A::kernel(self.isa, m, v, Rows::Together)(&tile) };
        } else {
            columns.iter_mut().enumerate().for_each(|(v, c)| *c = v * self.lanes);
            let tile = Tile {
                a: x,
                a_unit: 1,
                a_step: x_step,
                rows: &block.offsets,
                row_step: 0,
                b: dy,
                b_unit: dy_tile.width,
                b_step: dy_tile.width,
                soon: 0,
                columns,
                runs,
                c,
                c_step,
                last,
                add,
                tail: Tail::NONE,
            };
            // SAFETY: as above.
            unsafe { A::kernel(self.isa, m, v, Rows::Listed)(&tile) };
        }
    }

    /// Where a patch lies from the start of its position's window.
    fn offset(&self, patch: Patch) -> usize {
        let (mut at, mut tap) = (patch.channel, patch.tap);
        for (d, axis) in self.geo.axes.iter().enumerate().rev() {
            at += tap % axis.taps * axis.dilation as usize * self.unit.padded.pitches[d];
            tap /= axis.taps;
        }
        at
    }

    /// Adds the groups' sums and writes the weights.
    fn finish<T: Element<Acc = A>>(&self, sums: &[A], groups: usize, out: Out<'_, T>) {
        let geo = self.geo;
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
            for (m, row) in block.rows.clone().enumerate() {
                for (v, vector) in block.vectors.clone().enumerate() {
                    let sums = &total[m * width + v * self.lanes..][..self.lanes];
                    if self.patch_lanes {
                        let patch = self.patches[vector];
                        self.write(block.group, row, patch, &sums[..patch.len], out);
                    } else {
                        let first = vector * self.lanes;
                        for (lane, sum) in
                            sums[..self.lanes.min(geo.c_out - first)].iter().enumerate()
                        {
                            let sum = std::slice::from_ref(sum);
                            self.write(block.group, first + lane, self.patches[row], sum, out);
                        }
                    }
                }
            }
        });
    }

    /// Writes the weights of a patch and an output channel, which belong to one block only.
    fn write<T: Element<Acc = A>>(
        &self,
        group: usize,
        channel: usize,
        patch: Patch,
        mut sums: &[A],
        out: Out<'_, T>,
    ) {
        let (geo, Patch { mut tap, channel: mut ci, .. }) = (self.geo, patch);
        while !sums.is_empty() {
            let (part, rest) = sums.split_at(sums.len().min(geo.c_in - ci));
            let at = geo.weight_at(group, channel, geo.stored_tap(tap), ci);
            // SAFETY: nobody else writes this block's weights.
            T::narrow(part, unsafe { out.slice(at..at + part.len()) });
            (sums, tap, ci) = (rest, tap + 1, 0);
        }
    }
}

/// The tiles of every group of channels, and how many sums they have.
fn blocks(groups: usize, split: &Split, lanes: usize, patch_lanes: bool) -> (Vec<Block>, usize) {
    let dy_tiles = if patch_lanes { split.rows.len() } else { split.vectors.len() };
    let (mut blocks, mut start) = (Vec::new(), 0);
    for group in 0..groups {
        let mut vector = 0;
        for (j, &v) in split.vectors.iter().enumerate() {
            let mut row = 0;
            for (i, &m) in split.rows.iter().enumerate() {
                blocks.push(Block {
                    group,
                    rows: row..row + m,
                    vectors: vector..vector + v,
                    start,
                    offsets: vec![],
                    taps: 0,
                    dy: group * dy_tiles + if patch_lanes { i } else { j },
                });
                start += m * v * lanes;
                row += m;
            }
            vector += v;
        }
    }
    (blocks, start)
}

/// Rows of the first axis, and images, that a pass of about `positions` takes.
fn pass(geo: &Geometry, positions: usize) -> (usize, usize) {
    let (outputs, rows) = (geo.outputs().max(1), geo.axes[0].output.max(1));
    let positions = positions.clamp(64, 512);
    if positions >= outputs {
        return (rows, positions / outputs);
    }
    let slabs = rows.div_ceil((positions * rows).div_ceil(outputs));
    (rows.div_ceil(slabs), 1)
}
