//! Convolution with output channels as lanes, for small batches and wide layers.
//!
//! An implicit matrix product: rows are positions along the last axis, and the patch of a
//! position is read where it lies, in a copy of the image with its zeros written out.

use std::ops::Range;

use super::geometry::Taps;
use super::pad::{Padded, pitches};
use super::weights::Weights;
use super::{Epilogue, Geometry};
use crate::simd::{
    Element, Isa, MAX_VECTORS, Out, Rows, Run, Scratch, Split, Tile, Tiled, even_parts,
};
use crate::threads::parallel_for;

/// Cycles worth a task of its own.
const TASK: f64 = 20_000.0;
/// Bytes of an image's part that a task copies.
const INPUT_BYTES: usize = 512 << 10;

/// How convolutions of one geometry run.
pub(super) struct Channels {
    isa: Isa,
    lanes: usize,
    split: Split,
    tables: Vec<Vec<Taps>>,
    /// Rows of the first axis in a task.
    slab: usize,
    /// Whether the image is read where it is.
    direct: bool,
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
        let split = set.split(inner.output, geo.c_out.div_ceil(set.lanes));
        let taps = |table: &Vec<Taps>| table.iter().map(|t| t.count as f64).sum::<f64>();
        let outer: f64 = tables[..last].iter().map(taps).product();
        let depth = (inner.taps * geo.c_in * geo.groups) as f64;
        let outer_rows: usize = geo.axes[..last].iter().map(|a| a.output).product();
        let calls =
            (outer_rows * geo.groups * split.rows.len() * split.vectors.len()) as f64 * 40.0;
        let padded = Padded::new(geo, 0..rows).len();
        let image = outer * depth * split.cost + calls + padded as f64 * 0.15;
        let by_work = (rows as f64 * TASK / image).ceil().min(rows as f64) as usize;
        let by_cache = INPUT_BYTES * rows / (padded * size_of::<T>()).max(1);
        let inside = |(table, axis): (&Vec<Taps>, &super::Axis)| {
            axis.taps > 0 && axis.input_dilation == 1 && table.iter().all(|t| t.count == axis.taps)
        };
        Channels {
            isa,
            lanes: set.lanes,
            direct: tables.iter().zip(&geo.axes).all(inside),
            tables,
            slab: by_work.clamp(1, by_cache.max(1)),
            split,
            merge: geo.groups == 1 && inner.dilation == 1,
            cost: image * geo.batch as f64,
        }
    }

    pub fn widths(&self) -> Vec<usize> {
        self.split.vectors.iter().map(|v| v * self.lanes).collect()
    }

    pub fn run<T: Element>(
        &self,
        geo: &Geometry,
        x: &[T],
        w: &Weights<T::Acc>,
        out: Out<'_, T>,
        epilogue: Epilogue<'_>,
    ) {
        let rows = geo.axes[0].output;
        let slabs = rows.div_ceil(self.slab);
        let image = geo.inputs() * geo.groups * geo.c_in;
        let position = geo.groups * geo.c_out;
        let row = geo.outputs() / rows * position;
        parallel_for(geo.batch * slabs, |task| {
            let (n, start) = (task / slabs, task % slabs * self.slab);
            let rows = start..(start + self.slab).min(rows);
            let at = n * geo.outputs() * position;
            let range = at + rows.start * row..at + rows.end * row;
            // SAFETY: tasks have disjoint rows.
            let y = unsafe { out.slice(range.clone()) };
            let mut wide;
            let sums = if size_of::<T>() == size_of::<T::Acc>() {
                y.as_mut_ptr().cast()
            } else {
                wide = Scratch::<T::Acc>::new(y.len());
                wide.as_mut_ptr()
            };
            let x = &x[n * image..][..image];
            let copy;
            let (base, steps) = match T::as_acc(x) {
                Some(x) if self.direct => {
                    let sizes: Vec<usize> = geo.axes.iter().map(|a| a.input).collect();
                    let steps = pitches(&sizes, geo.groups * geo.c_in);
                    // Where nothing falls outside, padding is zero or negative.
                    let mut from = rows.start * geo.axes[0].stride as usize * steps[0];
                    for (axis, step) in geo.axes.iter().zip(&steps) {
                        from += axis.pad.unsigned_abs() * step;
                    }
                    (x[from.min(x.len())..].as_ptr(), steps)
                }
                _ => {
                    let padded = Padded::new(geo, rows.clone());
                    let mut to = Scratch::new(padded.len());
                    padded.fill(geo, x, &mut to);
                    copy = to;
                    (copy.as_ptr(), padded.pitches)
                }
            };
            self.rows(geo, w, &rows, base, &steps, sums);
            if size_of::<T>() != size_of::<T::Acc>() {
                // SAFETY: `sums` is the buffer of that length.
                T::narrow(unsafe { std::slice::from_raw_parts(sums, y.len()) }, y);
            }
            if let Some(f) = epilogue {
                f(range);
            }
        });
    }

    /// Computes output rows of one image; `base` is where the first one's window starts.
    fn rows<T: Tiled>(
        &self,
        geo: &Geometry,
        w: &Weights<T>,
        rows: &Range<usize>,
        base: *const T,
        steps: &[usize],
        sums: *mut T,
    ) {
        let last = geo.axes.len() - 1;
        let inner = &geo.axes[last];
        // With one axis its rows are the positions; otherwise they are an axis of their own.
        let whole;
        let (middle, columns, tiles) = if last == 0 {
            let widest = self.split.vectors.first().map_or(1, |&v| v);
            whole = even_parts(rows.len(), T::tiles(self.isa).rows[widest - 1]);
            (1, rows.len(), &whole)
        } else {
            let middle: usize = geo.axes[1..last].iter().map(|a| a.output).product();
            (rows.len() * middle, inner.output, &self.split.rows)
        };
        let position = steps[last];
        let offsets: Vec<usize> = (0..tiles.first().map_or(0, |&m| m))
            .map(|i| i * inner.stride as usize * position)
            .collect();
        let mut lanes = [0; MAX_VECTORS];
        lanes.iter_mut().enumerate().for_each(|(v, l)| *l = v * self.lanes);
        let channels = geo.groups * geo.c_out;
        let mut runs = Vec::new();
        for outer in 0..middle {
            let row = if last == 0 { 0 } else { outer + rows.start * (middle / rows.len()) };
            let start = self.runs(geo, row, rows.start, steps, &mut runs);
            for g in 0..geo.groups {
                for tile in &w.tiles {
                    let vectors = tile.width / self.lanes;
                    let valid = geo.c_out - tile.channel - (vectors - 1) * self.lanes;
                    let mut column = 0;
                    for &m in tiles {
                        let a = start + column * inner.stride as usize * position + g * geo.c_in;
                        let c =
                            (outer * columns + column) * channels + g * geo.c_out + tile.channel;
                        let tile = Tile {
                            a: base.wrapping_add(a),
                            a_unit: 1,
                            a_step: 1,
                            rows: &offsets,
                            b: w.at(g, tile),
                            b_unit: tile.width,
                            b_step: tile.width,
                            columns: lanes,
                            runs: &runs,
                            c: sums.wrapping_add(c),
                            c_step: channels,
                            last: valid,
                            add: false,
                        };
                        // SAFETY: runs stay inside the image's copy, or the image where no tap
                        // falls outside, and inside the weights' tile; sums are the task's own.
                        unsafe { T::kernel(self.isa, m, vectors, Rows::Listed)(&tile) };
                        column += m;
                    }
                }
            }
        }
    }

    /// What the positions of an output row read, relative to the returned start.
    fn runs(
        &self,
        geo: &Geometry,
        mut row: usize,
        first: usize,
        steps: &[usize],
        runs: &mut Vec<Run>,
    ) -> usize {
        runs.clear();
        runs.push(Run { a: 0, b: 0, len: 0 });
        let last = geo.axes.len() - 1;
        let (mut start, mut below) = (0, geo.axes[last].taps);
        for (d, axis) in geo.axes.iter().enumerate().rev().skip(1) {
            let o = row % axis.output;
            row /= axis.output;
            start += (o - if d == 0 { first } else { 0 }) * axis.stride as usize * steps[d];
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
            return start;
        }
        for k in 0..runs.len() {
            let Run { a, b, .. } = runs[k];
            for t in 0..inner.taps {
                let a = a + t * inner.dilation as usize * steps[last];
                runs.push(Run { a, b: (b + t) * geo.c_in, len: geo.c_in });
            }
        }
        runs.drain(..runs.len() / (inner.taps + 1));
        start
    }
}
