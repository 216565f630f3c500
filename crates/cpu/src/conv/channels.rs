//! Convolution with output channels as lanes, for small batches and wide layers.
//!
//! An implicit matrix product: rows are positions along the last axis, and the patch of a
//! position is read where it lies: in the image, where all of it is there or taps are far apart, or in a copy with
//! its zeros written out.

use std::ops::Range;

use cupola_simd::{Bias, Element, Isa, MAX_VECTORS, Out, Rows, Run, Tile, Tiled, even_parts};

use super::geometry::Taps;
use super::pad::{Padded, pitches};
use super::runs::outer_taps;
use super::weights::{WeightTile, Weights};
use super::{CACHED, ConvTail, Epilogue, Geometry};
use crate::cache;
use crate::memory::Scratch;
use crate::threads::{balanced, even_part, num_threads, parallel_for};

/// Cycles worth a task of its own, and those that it takes to begin one.
const TASK: f64 = 20_000.0;
const BEGIN: f64 = 1_000.0;
/// Bytes that a core reads in a cycle where none of its caches has them.
const FAR_BYTES: f64 = 4.0;
/// The most tasks of a convolution: what many threads share well.
const TASKS: usize = 128;
/// Bytes of an image's part that a task copies.
const INPUT_BYTES: usize = 512 << 10;
/// Bytes of images, and of weights, that stay in the second-level cache while others go through it.
const KEPT_BYTES: usize = 512 << 10;
/// Slabs that are enough for many threads, and those that are enough for each thread of a few.
const SLABS: usize = 24;
const SLABS_OF_ONE: usize = 4;
/// Bytes of all images that are copied as a whole, and of the parts in which they are.
const WHOLE_BYTES: usize = 2 << 20;
const COPY_BYTES: usize = 64 << 10;
/// How many positions meet the same taps on average where images with taps far apart are read as they are.
const LEAST_ALIKE: usize = 3;
/// Bytes of images of a narrower dtype that are read where they are, as sums are.
const WIDE_BYTES: usize = 64 << 20;
/// The most positions that are computed with one list of what they read.
const POSITIONS: usize = 256;

/// Cycles that a row of a tile takes, however many vectors it has: to be found, and to be stored where nothing is near.
const STORE: f64 = 4.0;
/// Bytes of a tile's weights that stay in the first-level cache while tiles pass, and the cycles of a vector that does not.
const NEAR_BYTES: usize = 16 << 10;
const FAR_VECTOR: f64 = 0.25;
/// Bytes of weights that stay in the first-level cache, beside what is not finished.
const SMALL_BYTES: usize = 8 << 10;
/// So many tiles in a row are many.
const LONG: usize = 4;

/// How convolutions of one geometry run.
pub(super) struct Channels {
    isa: Isa,
    lanes: usize,
    /// Vectors in each tile of channels.
    vectors: Vec<usize>,
    /// The most positions of a tile.
    tall: usize,
    /// Whether tiles end where rows of the image do, so that their positions are equally far apart.
    by_rows: bool,
    tables: Vec<Vec<Taps>>,
    /// Rows of the first axis in a task.
    slab: usize,
    /// In how many parts tasks share the tiles of channels.
    parts: usize,
    /// Whether tasks with the same weights follow each other, rather than those with the same input.
    by_weights: bool,
    /// Whether the image is read where it is, since no tap falls outside.
    direct: bool,
    /// Whether the image is read where it is, by positions that meet the same taps, though some fall outside: of taps
    /// far apart most would meet zeros around a copy.
    pub clips: bool,
    /// Elements from one position of the last axis to the next in a copy of the image.
    pitch: usize,
    /// Whether the taps of the last axis lie one after the other.
    merge: bool,
    pub cost: f64,
}

impl Channels {
    pub fn new<T: Tiled>(geo: &Geometry, isa: Isa) -> Channels {
        let set = T::tiles(isa);
        let last = geo.axes.len() - 1;
        let (inner, rows) = (&geo.axes[last], geo.axes[0].output);
        let tables = geo.tables();
        let alike = match last.checked_sub(1) {
            None => 1,
            Some(d) => tables[d].chunk_by(Taps::is_like).map(<[Taps]>::len).max().unwrap_or(1),
        };
        let together = (inner.output * alike).clamp(1, POSITIONS);
        let wide = geo.c_out.div_ceil(set.lanes);
        // Whether all taps are met everywhere.
        let inside = tables.iter().zip(&geo.axes).all(|(table, axis)| {
            axis.taps > 0 && axis.input_dilation == 1 && table.iter().all(|t| t.count == axis.taps)
        });
        // Where a row follows the one before as its own positions follow each other, all are equally far apart. This is for
        // the cost: when they run, tiles are looked at one by one.
        let follow = last == 0 || {
            let outer = &geo.axes[last - 1];
            let steps = [(outer.stride, inner.input), (inner.stride, inner.output)];
            let [next_row, row] = steps.map(|(stride, n)| (stride as usize).saturating_mul(n));
            inside && next_row == row
        };
        let listed = if follow { Rows::Apart } else { Rows::Listed };
        let (steps, lanes) = ((geo.taps() * geo.c_in).max(1) as f64, set.lanes);
        let cost = |at: Rows| {
            move |m: usize, v: usize| {
                let far = steps as usize * v * lanes * size_of::<T>() > NEAR_BYTES;
                let far = if far { v as f64 * FAR_VECTOR } else { 0.0 };
                set.cost(m, v, set.lie(m, || at == Rows::Apart)) + m as f64 * STORE / steps + far
            }
        };
        let all = set.split_by(together, wide, cost(listed));
        let each = set.split_by(inner.output, wide, cost(Rows::Apart));
        let rows_together = together as f64 / inner.output.max(1) as f64;
        let by_rows = each.cost * rows_together < all.cost;
        let (vectors, step) = match by_rows {
            true => (each.vectors, each.cost * rows_together),
            false => (all.vectors, all.cost),
        };
        let tall = set.rows[vectors.first().map_or(1, |&v| v) - 1];
        let taps = |table: &Vec<Taps>| table.iter().map(|t| t.count as f64).sum::<f64>();
        let outer: f64 = tables[..last].iter().map(taps).product();
        let depth = (inner.taps * geo.c_in * geo.groups) as f64;
        let calls = (geo.outputs().div_ceil(tall) * geo.groups * vectors.len()) as f64 * 40.0;
        let channels = geo.groups * geo.c_in;
        // A tile's positions are read side by side: no more of them from one set than it has ways.
        let apart = inner.stride as usize * channels * size_of::<T>();
        let crowded = apart > 0
            && apart.is_multiple_of(cache::LINE * cache::SETS)
            && tall.min(together) > cache::WAYS;
        let pitch = channels + if crowded { cache::LINE / size_of::<T>() } else { 0 };
        let (image, padded) = (geo.inputs() * channels, Padded::new(geo, 0..rows, pitch).len());
        let is_apart = inner.dilation > 1 && geo.axes.iter().all(|axis| axis.input_dilation == 1);
        let parts = tables[last].chunk_by(Taps::is_like).count();
        let is_worth = padded > 2 * image && parts * LEAST_ALIKE <= inner.output;
        let clips = is_apart && !inside && !crowded && is_worth;
        let padded = if clips { image } else { padded };
        let a_row = step * inner.output as f64 / together as f64;
        let image = outer * depth * a_row + calls + padded as f64 * 0.15;
        // A task reads its part of the image and of the weights: what is larger is cut more often.
        let (inputs, weights) = (padded as f64, (geo.taps() * geo.c_in * geo.c_out) as f64);
        // Of few positions the weights take longer to come than to be multiplied.
        let work = image.max(weights * size_of::<T>() as f64 / FAR_BYTES);
        let tasks = (work / TASK).min(TASKS.div_ceil(geo.batch.max(1)) as f64).max(1.0);
        let by_traffic = (tasks * inputs / weights.max(1.0)).sqrt().clamp(1.0, rows as f64);
        // No less than the tiles are tall.
        let least = tall.div_ceil((geo.outputs() / rows).max(1)).min(rows);
        // Weights that stay in the cache may be read by every task, which then has whole positions: what
        // follows is computed as long as these are at hand.
        let is_kept = weights as usize * size_of::<T>() <= KEPT_BYTES;
        let enough = SLABS.min(SLABS_OF_ONE * num_threads());
        let parts = match geo.groups {
            1 if is_kept && rows / least.max(1) >= enough => 1,
            1 => ((tasks / by_traffic).round() as usize).clamp(1, vectors.len().max(1)),
            _ => 1,
        };
        let by_work = rows as f64 * parts as f64 / tasks;
        let by_cache = INPUT_BYTES * rows / padded.saturating_mul(size_of::<T>()).max(1);
        let slab = (by_work.ceil() as usize).clamp(least, by_cache.max(least));
        let inputs = padded.saturating_mul(size_of::<T>());
        let weights = weights as usize * size_of::<T>();
        let by_weights = match (inputs <= KEPT_BYTES, is_kept) {
            (_, true) => false,
            (true, false) => true,
            (false, false) => weights * (rows.div_ceil(slab) - 1) > inputs * (parts - 1),
        };
        Channels {
            isa,
            lanes: set.lanes,
            direct: !crowded && inside,
            clips,
            pitch,
            tables,
            slab,
            parts,
            by_weights,
            vectors,
            tall,
            by_rows,
            merge: geo.groups == 1 && inner.dilation == 1 && (!crowded || inner.taps == 1),
            cost: image * geo.batch as f64,
        }
    }

    pub fn widths(&self) -> Vec<usize> {
        self.vectors.iter().map(|v| v * self.lanes).collect()
    }

    pub fn run<T: Element>(
        &self,
        geo: &Geometry,
        x: &[T],
        w: &Weights<T::Acc>,
        out: Out<'_, T>,
        tail: ConvTail<'_, T::Acc>,
        epilogue: Epilogue<'_>,
    ) {
        let rows = geo.axes[0].output;
        let shares = even_parts(w.tiles.len(), w.tiles.len().div_ceil(self.parts).max(1));
        let a_row = self.cost / (geo.batch * rows * shares.len()).max(1) as f64;
        let slabs =
            balanced(rows.div_ceil(self.slab), rows, geo.batch * shares.len(), BEGIN / a_row);
        let image = geo.inputs() * geo.groups * geo.c_in;
        let position = geo.groups * geo.c_out;
        let row = geo.outputs() / rows * position;
        // The elements of a slab of an image.
        let part_of_image = |n: usize, slab: usize| {
            let part = even_part(rows, slabs, slab);
            let at = n * geo.outputs() * position;
            (part.clone(), at + part.start * row..at + part.end * row)
        };
        let is_wide = size_of::<T>() == size_of::<T::Acc>();
        let bias = tail.bias.map(|bias| w.spread(geo, bias));
        // Where tasks have whole positions the epilogue is cheaper.
        let then = tail.then.filter(|_| shares.len() > 1);
        let tail = ConvTail { bias: bias.as_deref(), then, ..tail };
        let epilogue = epilogue.filter(|_| then.is_none());
        let direct = if self.direct || self.clips { T::as_acc(x) } else { None };
        let is_small = x.len() * size_of::<T::Acc>() <= WIDE_BYTES;
        let wide = (self.clips && direct.is_none() && is_small).then(|| widened(x));
        let direct = direct.or(wide.as_deref());
        let whole = if direct.is_some() { None } else { self.whole(geo, x, slabs * shares.len()) };
        parallel_for(geo.batch * slabs * shares.len(), |task| {
            let (share, task) = match self.by_weights {
                true => (
                    task / slabs % shares.len(),
                    task / (slabs * shares.len()) * slabs + task % slabs,
                ),
                false => (task % shares.len(), task / shares.len()),
            };
            let first: usize = shares[..share].iter().sum();
            let tiles = &w.tiles[first..first + shares[share]];
            let n = task / slabs;
            let (rows, range) = part_of_image(n, task % slabs);
            assert!(range.end <= out.len());
            // SAFETY: the range is inside of the output. Tasks have other rows or other channels.
            let y = unsafe { out.as_ptr().add(range.start) };
            let mut wide;
            let sums = if is_wide {
                y.cast()
            } else {
                wide = Scratch::<T::Acc>::new(range.len());
                wide.as_mut_ptr()
            };
            let copy;
            let (base, steps, strides) = match (direct, &whole) {
                (Some(x), _) => {
                    let sizes: Vec<usize> = geo.axes.iter().map(|a| a.input).collect();
                    let steps = pitches(&sizes, geo.groups * geo.c_in);
                    let pairs = || geo.axes.iter().zip(&steps);
                    let strides: Vec<usize> =
                        pairs().map(|(axis, step)| axis.stride as usize * step).collect();
                    // Where windows begin outside, what of them is there is read alone.
                    let pads = pairs().map(|(axis, &step)| axis.pad * step as isize);
                    let from = (n * image + rows.start * strides[0]) as isize - pads.sum::<isize>();
                    (x.as_ptr().wrapping_offset(from), steps, strides)
                }
                (None, Some((padded, images))) => {
                    let from = n * padded.len() + rows.start * padded.strides[0];
                    (images[from..].as_ptr(), padded.pitches.clone(), padded.strides.clone())
                }
                (None, None) => {
                    let padded = Padded::new(geo, rows.clone(), self.pitch);
                    let mut to = Scratch::new(padded.len());
                    padded.fill(geo, &x[n * image..][..image], &mut to);
                    copy = to;
                    (copy.as_ptr(), padded.pitches, padded.strides)
                }
            };
            // Finished while it is at hand.
            let finish = epilogue.filter(|_| is_wide && shares.len() == 1);
            let finish = finish.map(|f| {
                move |part: Range<usize>| {
                    f(range.start + part.start..range.start + part.end);
                }
            });
            let clips = self.clips && direct.is_some();
            self.rows(geo, w, tiles, &rows, base, [&steps, &strides], clips, sums, &tail, finish);
            if !is_wide && let (Some(one), Some(other)) = (tiles.first(), tiles.last()) {
                let end = (other.channel + other.width).min(geo.c_out);
                // Where groups are, every task has all channels.
                let channels = if shares.len() == 1 { 0..position } else { one.channel..end };
                for at in (0..range.len()).step_by(position.max(1)) {
                    // SAFETY: both have `range.len()` elements; these are the task's own.
                    let (sums, y) = unsafe {
                        (
                            std::slice::from_raw_parts(
                                sums.add(at + channels.start),
                                channels.len(),
                            ),
                            std::slice::from_raw_parts_mut(
                                y.add(at + channels.start),
                                channels.len(),
                            ),
                        )
                    };
                    T::narrow(sums, y);
                }
            }
            if let Some(f) = epilogue.filter(|_| !is_wide && shares.len() == 1) {
                f(range);
            }
        });
        if let Some(f) = epilogue.filter(|_| shares.len() > 1) {
            let (len, most) = (out.len(), 4 * CACHED);
            parallel_for(len.div_ceil(most), |i| f(i * most..((i + 1) * most).min(len)));
        }
    }

    /// Copies of all images, where these are not too large: what several of the tasks for an image read is
    /// copied once.
    fn whole<T: Element>(
        &self,
        geo: &Geometry,
        x: &[T],
        tasks: usize,
    ) -> Option<(Padded, Scratch<T::Acc>)> {
        let padded = |rows| Padded::new(geo, 0..rows, self.pitch);
        let by_tasks = tasks.saturating_mul(padded(self.slab.min(geo.axes[0].output)).rows());
        let padded = padded(geo.axes[0].output);
        let (each, len) = (padded.len(), geo.batch.saturating_mul(padded.len()));
        if len.saturating_mul(size_of::<T::Acc>()) > WHOLE_BYTES || 2 * by_tasks < 3 * padded.rows()
        {
            return None;
        }
        let image = geo.inputs() * geo.groups * geo.c_in;
        let mut images = Scratch::new(len);
        let pieces = (each * size_of::<T::Acc>()).div_ceil(COPY_BYTES);
        let cuts = even_parts(padded.rows(), padded.rows().div_ceil(pieces.max(1)).max(1));
        let to = Out::new(&mut images);
        parallel_for(geo.batch * cuts.len(), |task| {
            let (n, cut) = (task / cuts.len(), task % cuts.len());
            let start: usize = cuts[..cut].iter().sum();
            let part = padded.part(start..start + cuts[cut]);
            let at = n * each + start * padded.pitches[0];
            // SAFETY: tasks have other images or other rows.
            part.fill(geo, &x[n * image..][..image], unsafe { to.slice(at..at + part.len()) });
        });
        Some((padded, images))
    }

    /// Computes output rows of one image in some tiles of channels; `base` is where the first one's window starts. Along
    /// each axis input positions are `steps` apart, and windows `strides`. Where it `clips` there are no zeros around the
    /// image, and only what is there is read. `tail` has a bias that is spread. What is done is
    /// given to `finish`, as elements from the first one's on.
    #[allow(clippy::too_many_arguments)]
    fn rows<T: Tiled>(
        &self,
        geo: &Geometry,
        w: &Weights<T>,
        tiles: &[WeightTile],
        rows: &Range<usize>,
        base: *const T,
        [steps, strides]: [&[usize]; 2],
        clips: bool,
        sums: *mut T,
        tail: &ConvTail<'_, T>,
        finish: Option<impl Fn(Range<usize>)>,
    ) {
        let last = geo.axes.len() - 1;
        let inner = &geo.axes[last];
        // With one axis its rows are the positions; otherwise they are an axis of their own.
        let (below, count, columns) = if last == 0 {
            (1, 1, rows.len())
        } else {
            let below: usize = geo.axes[1..last].iter().map(|a| a.output).product();
            (below, rows.len() * below, inner.output)
        };
        let column = strides[last];
        let mut lanes = [0; MAX_VECTORS];
        lanes.iter_mut().enumerate().for_each(|(v, l)| *l = v * self.lanes);
        let channels = geo.groups * geo.c_out;
        // Long rows make whole tiles by themselves, and are finished before the next, where that costs no weights.
        let weights = geo.taps() * geo.c_in * channels * size_of::<T>();
        let most = match (&finish, columns >= LONG * self.tall && weights <= SMALL_BYTES) {
            (Some(_), true) => (CACHED / channels).max(columns),
            _ => POSITIONS,
        };
        // Lists with room for all they get, as those of [`Runs`].
        let together = most.min(count * columns).max(columns);
        let mut offsets = Vec::with_capacity(together);
        // Positions of a row that meet the same taps of the last axis.
        let all_taps = Taps { count: inner.taps, ..Taps::default() };
        let mut alike_columns: Vec<(Range<usize>, Taps)> =
            Vec::with_capacity(if clips { columns / LEAST_ALIKE + 1 } else { 1 });
        if clips {
            let first = if last == 0 { rows.start } else { 0 };
            let mut at = 0;
            for alike in self.tables[last][first..first + columns].chunk_by(Taps::is_like) {
                alike_columns.push((at..at + alike.len(), alike[0]));
                at += alike.len();
            }
        } else {
            alike_columns.push((0..columns, all_taps));
        }
        let set = T::tiles(self.isa);
        // The first position of each tile, how many it has, and how they lie.
        let tiles_of_a_row = columns.div_ceil(self.tall);
        let mut parts: Vec<(usize, usize, Rows)> =
            Vec::with_capacity(together.div_ceil(columns.max(1)) * tiles_of_a_row);
        let each = if self.merge { outer_taps(geo) } else { geo.taps() };
        let mut runs = Vec::with_capacity(2 * each);
        let (mut outer, mut finished) = (0, 0);
        while outer < count {
            let row = if last == 0 { 0 } else { outer + rows.start * below };
            let start = self.start(geo, row, rows.start, strides);
            // Rows that read alike lie one after the other, and their positions make whole tiles. Those that read
            // nothing of an image may lie before others.
            let is_next = |r: usize| {
                self.is_alike(geo, row, row + r)
                    && self.start(geo, row + r, rows.start, strides) >= start
            };
            let alike =
                (1..count - outer).take_while(|&r| (r + 1) * columns <= most && is_next(r)).count();
            let all = 1 + alike;
            for (part, taps) in &alike_columns {
                let lead = self.runs(geo, row, taps, steps, &mut runs);
                let window = start + part.start * column + lead;
                offsets.clear();
                for r in 0..all {
                    let at = self.start(geo, row + r, rows.start, strides) - start;
                    offsets.extend((0..part.len()).map(|c| at + c * column));
                }
                parts.clear();
                // Parts of rows are stored one by one.
                let by_rows = self.by_rows || part.len() < columns;
                let own = if by_rows { part.len() } else { offsets.len() };
                let heights = even_parts(own, self.tall);
                for at in (0..offsets.len()).step_by(own.max(1)) {
                    let mut at = at;
                    parts.extend(heights.iter().map(|&m| {
                        let tile = &offsets[at..at + m];
                        at += m;
                        (at - m, m, set.lie(m, || by_rows || is_even(tile, column)))
                    }));
                }
                for g in 0..geo.groups {
                    for tile in tiles {
                        let vectors = tile.width / self.lanes;
                        let next = w.next(g, tile);
                        let valid = geo.c_out - tile.channel - (vectors - 1) * self.lanes;
                        let tail =
                            tail.with(|bias| Bias::Lanes(bias[w.spread_at(g, tile)..].as_ptr()));
                        for (i, &(at, m, lie)) in parts.iter().enumerate() {
                            let soon = set.soon(next, i, vectors);
                            let position = at / part.len() * columns + part.start + at % part.len();
                            let c = (outer * columns + position) * channels
                                + g * geo.c_out
                                + tile.channel;
                            let positions = &offsets[at..at + m];
                            let first = if lie == Rows::Apart { positions[0] } else { 0 };
                            let tile = Tile {
                                a: base.wrapping_add(window + first + g * geo.c_in),
                                a_unit: 1,
                                a_step: 1,
                                rows: positions,
                                row_step: column,
                                b: w.at(g, tile),
                                b_unit: tile.width,
                                b_step: tile.width,
                                soon,
                                columns: lanes,
                                runs: &runs,
                                c: sums.wrapping_add(c),
                                c_step: channels,
                                last: valid,
                                add: false,
                                tail,
                            };
                            // SAFETY: runs stay inside the image's copy, or the image where no tap
                            // falls outside or those that do are no part of them, and inside the
                            // weights' tile; sums are the task's own.
                            unsafe { T::kernel(self.isa, m, vectors, lie)(&tile) };
                        }
                    }
                }
            }
            outer += all;
            let done = outer * columns * channels;
            if let Some(finish) = &finish
                && (done - finished >= CACHED || outer == count)
            {
                finish(finished..done);
                finished = done;
            }
        }
    }

    /// Whether the positions of two output rows meet the same taps.
    fn is_alike(&self, geo: &Geometry, mut one: usize, mut other: usize) -> bool {
        geo.axes.iter().zip(&self.tables).rev().skip(1).all(|(axis, table)| {
            let pair = (&table[one % axis.output], &table[other % axis.output]);
            one /= axis.output;
            other /= axis.output;
            pair.0.is_like(pair.1)
        })
    }

    /// Where the window of an output row's first position starts, where that of row `first` of the first axis
    /// is at 0.
    fn start(&self, geo: &Geometry, mut row: usize, first: usize, strides: &[usize]) -> usize {
        let mut start = 0;
        for (d, axis) in geo.axes.iter().enumerate().rev().skip(1) {
            let o = row % axis.output;
            row /= axis.output;
            start += (o - if d == 0 { first } else { 0 }) * strides[d];
        }
        start
    }

    /// What those positions of an output row read that meet these taps of the last axis; gives how far from the start of
    /// their windows that begins.
    fn runs(
        &self,
        geo: &Geometry,
        mut row: usize,
        last_taps: &Taps,
        steps: &[usize],
        runs: &mut Vec<Run>,
    ) -> usize {
        runs.clear();
        runs.push(Run { a: 0, b: 0, len: 0 });
        let last = geo.axes.len() - 1;
        let mut below = geo.axes[last].taps;
        for (d, axis) in geo.axes.iter().enumerate().rev().skip(1) {
            let o = row % axis.output;
            row /= axis.output;
            let (taps, inner) = (self.tables[d][o], runs.len());
            for i in 0..taps.count {
                let tap = taps.first_tap + i * axis.tap_step();
                for k in 0..inner {
                    let Run { a, b, .. } = runs[k];
                    let a = a + tap * axis.dilation as usize * steps[d];
                    runs.push(Run { a, b: b + tap * below, len: 0 });
                }
            }
            runs.drain(..inner);
            below *= axis.taps;
        }
        let inner = &geo.axes[last];
        if self.merge {
            for run in runs.iter_mut() {
                *run = Run { a: run.a, b: run.b * geo.c_in, len: inner.taps * geo.c_in };
            }
            return 0;
        }
        let outer = runs.len();
        for k in 0..outer {
            let Run { a, b, .. } = runs[k];
            for t in last_taps.first_tap..last_taps.first_tap + last_taps.count {
                let a = a + t * inner.dilation as usize * steps[last];
                runs.push(Run { a, b: (b + t) * geo.c_in, len: geo.c_in });
            }
        }
        runs.drain(..outer);
        let lead = runs.first().map_or(0, |run| run.a);
        runs.iter_mut().for_each(|run| run.a -= lead);
        lead
    }
}

/// Images of a narrower dtype as sums are.
fn widened<T: Element>(x: &[T]) -> Scratch<T::Acc> {
    let mut wide = Scratch::new(x.len());
    let (to, part) = (Out::new(&mut wide), COPY_BYTES / size_of::<T::Acc>());
    parallel_for(x.len().div_ceil(part), |i| {
        let range = i * part..((i + 1) * part).min(x.len());
        // SAFETY: tasks have other parts.
        T::widen(&x[range.clone()], unsafe { to.slice(range) });
    });
    wide
}

/// Whether positions follow each other, a column apart.
fn is_even(positions: &[usize], column: usize) -> bool {
    positions.windows(2).all(|pair| pair[0] + column == pair[1])
}
