//! Convolution with images as lanes, for large batches.
//!
//! A block of images is transposed so that the same element of each lies side by side. Any number
//! of channels then fills the vectors, and taps that fall outside are skipped position by
//! position, where other layouts multiply by zeros.

use std::ops::Range;

use cupola_simd::{
    Bias, Element, Isa, MAX_VECTORS, Out, Rows, Tile, TileFn, Tiled, Transpose, even_parts,
};

use super::geometry::{Axis, Taps};
use super::runs::Runs;
use super::weights::Weights;
use super::{ConvTail, Epilogue, Geometry};
use crate::memory::Scratch;
use crate::threads::{balanced, even_part, num_threads, parallel_for};

/// Bytes of transposed input that a task keeps in the second-level cache.
const INPUT_BYTES: usize = 3 << 19;
/// Bytes of transposed output.
const OUTPUT_BYTES: usize = 192 << 10;
/// Columns that are widened at a time.
const WIDEN: usize = 512;

/// How convolutions of one geometry run.
pub(super) struct Images {
    isa: Isa,
    lanes: usize,
    vectors: usize,
    tiles: Vec<usize>,
    tables: Vec<Vec<Taps>>,
    /// Whether neighbouring taps of the last axis meet neighbouring inputs.
    merge: bool,
    pub cost: f64,
}

impl Images {
    pub fn new<T: Tiled>(geo: &Geometry, isa: Isa) -> Images {
        let set = T::tiles(isa);
        let vectors = if geo.batch > set.lanes { 2 } else { 1 };
        let block = vectors * set.lanes;
        let tiles = even_parts(geo.c_out, set.rows[vectors - 1]);
        let tables = geo.tables();
        let taps = |table: &Vec<Taps>| table.iter().map(|t| t.count as f64).sum::<f64>();
        let products = tables.iter().map(taps).product::<f64>() * (geo.groups * geo.c_in) as f64;
        let elements = geo.inputs() * geo.c_in + geo.outputs() * geo.c_out;
        let moves = (elements * geo.groups * block) as f64 * 0.4;
        let calls = (geo.outputs() * geo.groups * tiles.len()) as f64 * 40.0;
        let step: f64 = tiles.iter().map(|&m| set.cost(m, vectors, Rows::Together)).sum();
        let inner = &geo.axes[geo.axes.len() - 1];
        Images {
            isa,
            lanes: set.lanes,
            vectors,
            tiles,
            tables,
            merge: geo.groups == 1 && inner.tap_step() == 1 && inner.input_step() == 1,
            cost: geo.batch.div_ceil(block) as f64 * (products * step + moves + calls),
        }
    }

    pub fn widths(&self) -> Vec<usize> {
        self.tiles.clone()
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
        let kernels: Vec<TileFn<T::Acc>> = (w.tiles.iter())
            .map(|t| T::Acc::kernel(self.isa, t.width, self.vectors, Rows::Together))
            .collect();
        let block = self.lanes * self.vectors;
        let blocks = geo.batch.div_ceil(block);
        let slabs = rows.div_ceil(self.slab_rows::<T::Acc>(geo));
        let slabs = balanced(slabs, rows, blocks, reach(&geo.axes[0]) as f64 / 2.0).max(slabs);
        // Where these are too few for all threads, several share the channels, too.
        let parts = match geo.groups {
            1 => num_threads().div_ceil(blocks * slabs).min(w.tiles.len()),
            _ => 1,
        };
        let shares = even_parts(w.tiles.len(), w.tiles.len().div_ceil(parts.max(1)).max(1));
        let then = tail.then.filter(|_| shares.len() > 1);
        let (tail, epilogue) = (ConvTail { then, ..tail }, epilogue.filter(|_| then.is_none()));
        let images = |block_at: usize| block_at * block..((block_at + 1) * block).min(geo.batch);
        parallel_for(blocks * slabs * shares.len(), |task| {
            let (share, task) = (task % shares.len(), task / shares.len());
            let first: usize = shares[..share].iter().sum();
            let tiles = first..first + shares[share];
            let end = w.tiles[tiles.clone()].last().map_or(0, |t| t.channel + t.width);
            let task = Task {
                path: self,
                geo,
                images: images(task / slabs),
                rows: even_part(rows, slabs, task % slabs),
                channels: match shares.len() {
                    1 => 0..geo.groups * geo.c_out,
                    _ => w.tiles[first].channel..end,
                },
                tiles,
                kernels: &kernels,
                tail,
            };
            task.run(x, w, out, epilogue.filter(|_| shares.len() == 1));
        });
        if let Some(f) = epilogue.filter(|_| shares.len() > 1) {
            let image = geo.outputs() * geo.c_out;
            parallel_for(geo.batch, |n| f(n * image..(n + 1) * image));
        }
    }

    /// Rows of the first axis whose input fits the cache.
    fn slab_rows<T>(&self, geo: &Geometry) -> usize {
        let axis = &geo.axes[0];
        let row = geo.inputs() / axis.input.max(1) * geo.groups * geo.c_in;
        let fits = INPUT_BYTES / (row * self.lanes * self.vectors * size_of::<T>()).max(1);
        if fits >= axis.input {
            return axis.output;
        }
        // Rows before and after a slab are read again: the slab is not to be small beside them.
        let reach = reach(axis);
        let inputs = fits.saturating_sub(reach).max(reach);
        (inputs * axis.input_dilation as usize / axis.stride as usize).clamp(1, axis.output)
    }
}

/// Input rows that an output row reads along an axis, about.
fn reach(axis: &Axis) -> usize {
    (axis.taps as isize * axis.dilation / axis.input_dilation) as usize + 1
}

/// Some output rows of a block of images.
struct Task<'t, A: Tiled> {
    path: &'t Images,
    geo: &'t Geometry,
    images: Range<usize>,
    rows: Range<usize>,
    /// Those that it computes, of all groups, and their tiles in each.
    channels: Range<usize>,
    tiles: Range<usize>,
    kernels: &'t [TileFn<A>],
    tail: ConvTail<'t, A>,
}

impl<A: Tiled> Task<'_, A> {
    fn run<T: Element<Acc = A>>(
        &self,
        x: &[T],
        w: &Weights<A>,
        out: Out<'_, T>,
        epilogue: Epilogue<'_>,
    ) {
        let (geo, block) = (self.geo, self.path.lanes * self.path.vectors);
        let inputs = self.input_rows();
        let input_row = geo.inputs() / geo.axes[0].input.max(1);
        let origin = inputs.start * input_row;
        let lines = inputs.len() * input_row * geo.groups * geo.c_in;
        let mut lanes = Scratch::<A>::new(lines * block);
        self.load(x, origin * geo.groups * geo.c_in, lines, &mut lanes);

        let channels = self.channels.len();
        let output_row = geo.outputs() / geo.axes[0].output;
        let (start, end) = (self.rows.start * output_row, self.rows.end * output_row);
        let most = (OUTPUT_BYTES / (channels * block * size_of::<A>())).clamp(1, end - start);
        let mut sums = Scratch::<A>::new(most * channels * block);
        let mut runs = Runs::new(geo);
        let mut at = start;
        for piece in even_parts(end - start, most) {
            let positions = at..at + piece;
            at += piece;
            runs.build(geo, &self.path.tables, self.path.merge, positions.clone(), origin);
            self.multiply(w, &lanes, &runs, &mut sums);
            let sums = &sums[..piece * channels * block];
            self.store(sums, positions, out, epilogue);
        }
    }

    /// The input rows that the output rows meet.
    fn input_rows(&self) -> Range<usize> {
        let step = self.geo.axes[0].input_step();
        let taps = self.path.tables[0][self.rows.clone()].iter().filter(|t| t.count > 0);
        let first = taps.clone().map(|t| t.first_input).min().unwrap_or(0);
        first..taps.map(|t| t.first_input + (t.count - 1) * step + 1).max().unwrap_or(0)
    }

    /// Transposes the task's images, from element `from` of each.
    fn load<T: Element<Acc = A>>(&self, x: &[T], from: usize, lines: usize, lanes: &mut [A]) {
        let block = self.path.lanes * self.path.vectors;
        let image = self.geo.inputs() * self.geo.groups * self.geo.c_in;
        if self.images.len() < block {
            lanes.fill(A::default());
        }
        if lines == 0 {
            return;
        }
        let mut t = Transpose {
            src: std::ptr::null(),
            src_step: image,
            rows: self.images.len(),
            columns: lines,
            dst: lanes.as_mut_ptr(),
            dst_step: block,
        };
        if let Some(x) = T::as_acc(x) {
            t.src = x[self.images.start * image + from..].as_ptr();
            // SAFETY: every image has `lines` elements from `from`, `lanes` a row for each.
            unsafe { A::transpose(self.path.isa, t) };
            return;
        }
        let mut wide = Scratch::<A>::new(WIDEN * block);
        for start in (0..lines).step_by(WIDEN) {
            let columns = WIDEN.min(lines - start);
            for (wide, n) in wide.chunks_mut(WIDEN).zip(self.images.clone()) {
                T::widen(&x[n * image + from + start..][..columns], &mut wide[..columns]);
            }
            t = Transpose { src: wide.as_ptr(), src_step: WIDEN, columns, ..t };
            t.dst = lanes[start * block..].as_mut_ptr();
            // SAFETY: as above, for `columns` elements from `start`.
            unsafe { A::transpose(self.path.isa, t) };
        }
    }

    fn multiply(&self, w: &Weights<A>, lanes: &[A], runs: &Runs, sums: &mut [A]) {
        let (geo, block) = (self.geo, self.path.lanes * self.path.vectors);
        let channels = self.channels.len();
        let mut columns = [0; MAX_VECTORS];
        columns.iter_mut().enumerate().for_each(|(v, c)| *c = v * self.path.lanes);
        for g in 0..geo.groups {
            let tiles = w.tiles[self.tiles.clone()].iter();
            for (tile, kernel) in tiles.zip(&self.kernels[self.tiles.clone()]) {
                let channel = g * geo.c_out + tile.channel;
                let first = channel - self.channels.start;
                let tail = self.tail.with(|bias| Bias::Rows(bias[channel..].as_ptr()));
                for (position, runs) in runs.each().enumerate() {
                    let sums = &mut sums[(position * channels + first) * block..];
                    let tile = Tile {
                        a: w.at(g, tile),
                        a_unit: tile.width,
                        a_step: tile.width,
                        rows: &[],
                        row_step: 0,
                        b: lanes.as_ptr().wrapping_add(g * geo.c_in * block),
                        b_unit: block,
                        b_step: block,
                        soon: 0,
                        columns,
                        runs,
                        c: sums[..tile.width * block].as_mut_ptr(),
                        c_step: block,
                        last: self.path.lanes,
                        add: false,
                        tail,
                    };
                    // SAFETY: runs stay inside the weights' tile and the rows that were loaded.
                    unsafe { kernel(&tile) };
                }
            }
        }
    }

    /// Transposes sums back to the output.
    fn store<T: Element<Acc = A>>(
        &self,
        sums: &[A],
        positions: Range<usize>,
        out: Out<'_, T>,
        epilogue: Epilogue<'_>,
    ) {
        let (geo, block) = (self.geo, self.path.lanes * self.path.vectors);
        let channels = geo.groups * geo.c_out;
        if self.channels.len() < channels {
            let each = self.channels.len() * block;
            for (sums, position) in sums.chunks_exact(each.max(1)).zip(positions) {
                self.store_part(sums, position * channels + self.channels.start, out);
            }
            return;
        }
        let range = |n: usize| {
            let at = (n * geo.outputs() + positions.start) * channels;
            at..at + positions.len() * channels
        };
        self.store_part(sums, positions.start * channels, out);
        if let Some(f) = epilogue {
            self.images.clone().for_each(|n| f(range(n)));
        }
    }

    /// Transposes sums back to elements of each image from `from` on.
    fn store_part<T: Element<Acc = A>>(&self, sums: &[A], from: usize, out: Out<'_, T>) {
        let (geo, block) = (self.geo, self.path.lanes * self.path.vectors);
        let image = geo.outputs() * geo.groups * geo.c_out;
        let rows = sums.len() / block;
        let mut t = Transpose {
            src: sums.as_ptr(),
            src_step: block,
            rows,
            columns: self.images.len(),
            dst: std::ptr::null_mut(),
            dst_step: image,
        };
        assert!((self.images.end - 1) * image + from + rows <= out.len());
        if size_of::<T>() == size_of::<A>() {
            t.dst = out.as_ptr().wrapping_add(self.images.start * image + from).cast();
            // SAFETY: tasks have disjoint images, positions or channels; `T` is its own `Acc`.
            unsafe { A::transpose(self.path.isa, t) };
            return;
        }
        let mut wide = Scratch::<A>::new(WIDEN * block);
        for start in (0..rows).step_by(WIDEN) {
            let rows = WIDEN.min(rows - start);
            let part = Transpose {
                src: sums[start * block..].as_ptr(),
                rows,
                dst: wide.as_mut_ptr(),
                dst_step: WIDEN,
                ..t
            };
            // SAFETY: `wide` has a row of `WIDEN` for each image.
            unsafe { A::transpose(self.path.isa, part) };
            for (wide, n) in wide.chunks(WIDEN).zip(self.images.clone()) {
                let at = n * image + from + start;
                // SAFETY: tasks have disjoint images, positions or channels.
                T::narrow(&wide[..rows], unsafe { out.slice(at..at + rows) });
            }
        }
    }
}
