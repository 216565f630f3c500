//! Convolution with images as lanes, for large batches.
//!
//! A block of images is transposed so that the same element of each lies side by side. Any number
//! of channels then fills the vectors, and taps that fall outside are skipped position by
//! position, where other layouts multiply by zeros.

use std::ops::Range;

use super::geometry::Taps;
use super::runs::Runs;
use super::weights::Weights;
use super::{Epilogue, Geometry};
use crate::simd::{
    Element, Isa, MAX_VECTORS, Out, Rows, Scratch, Tile, TileFn, Tiled, Transpose, even_parts,
};
use crate::threads::parallel_for;

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
        let step: f64 = tiles.iter().map(|&m| set.cost(m, vectors)).sum();
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
        epilogue: Epilogue<'_>,
    ) {
        let rows = geo.axes[0].output;
        let slab = self.slab_rows::<T::Acc>(geo);
        let slabs = rows.div_ceil(slab);
        let kernels: Vec<TileFn<T::Acc>> = (w.tiles.iter())
            .map(|t| T::Acc::kernel(self.isa, t.width, self.vectors, Rows::Together))
            .collect();
        let block = self.lanes * self.vectors;
        parallel_for(geo.batch.div_ceil(block) * slabs, |task| {
            let first = task / slabs * block;
            let start = task % slabs * slab;
            let task = Task {
                path: self,
                geo,
                images: first..(first + block).min(geo.batch),
                rows: start..(start + slab).min(rows),
                kernels: &kernels,
            };
            task.run(x, w, out, epilogue);
        });
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
        let reach = (axis.taps as isize * axis.dilation / axis.input_dilation) as usize + 1;
        let inputs = fits.saturating_sub(reach).max(reach);
        (inputs * axis.input_dilation as usize / axis.stride as usize).clamp(1, axis.output)
    }
}

/// Some output rows of a block of images.
struct Task<'t, A: Tiled> {
    path: &'t Images,
    geo: &'t Geometry,
    images: Range<usize>,
    rows: Range<usize>,
    kernels: &'t [TileFn<A>],
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

        let channels = geo.groups * geo.c_out;
        let output_row = geo.outputs() / geo.axes[0].output;
        let (start, end) = (self.rows.start * output_row, self.rows.end * output_row);
        let most = (OUTPUT_BYTES / (channels * block * size_of::<A>())).clamp(1, end - start);
        let mut sums = Scratch::<A>::new(most * channels * block);
        let mut runs = Runs::default();
        let mut at = start;
        for piece in even_parts(end - start, most) {
            let positions = at..at + piece;
            at += piece;
            runs.build(geo, &self.path.tables, self.path.merge, positions.clone(), origin);
            self.multiply(w, &lanes, &runs, &mut sums);
            self.store(&sums, positions, out, epilogue);
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
        let channels = geo.groups * geo.c_out;
        let mut columns = [0; MAX_VECTORS];
        columns.iter_mut().enumerate().for_each(|(v, c)| *c = v * self.path.lanes);
        for g in 0..geo.groups {
            for (tile, kernel) in w.tiles.iter().zip(self.kernels) {
                let first = g * geo.c_out + tile.channel;
                for (position, runs) in runs.each().enumerate() {
                    let sums = &mut sums[(position * channels + first) * block..];
                    let tile = Tile {
                        a: w.at(g, tile),
                        a_unit: tile.width,
                        a_step: tile.width,
                        rows: &[],
                        b: lanes.as_ptr().wrapping_add(g * geo.c_in * block),
                        b_unit: block,
                        b_step: block,
                        columns,
                        runs,
                        c: sums[..tile.width * block].as_mut_ptr(),
                        c_step: block,
                        last: self.path.lanes,
                        add: false,
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
        let range = |n: usize| {
            let at = (n * geo.outputs() + positions.start) * channels;
            at..at + positions.len() * channels
        };
        let mut t = Transpose {
            src: sums.as_ptr(),
            src_step: block,
            rows: positions.len() * channels,
            columns: self.images.len(),
            dst: std::ptr::null_mut(),
            dst_step: geo.outputs() * channels,
        };
        let first = range(self.images.start);
        if size_of::<T>() == size_of::<A>() {
            t.dst = out.as_ptr().wrapping_add(first.start).cast();
            assert!(range(self.images.end - 1).end <= out.len());
            // SAFETY: tasks have disjoint images and positions; `T` is its own `Acc`.
            unsafe { A::transpose(self.path.isa, t) };
        } else {
            let mut wide = Scratch::<A>::new(WIDEN * block);
            for start in (0..t.rows).step_by(WIDEN) {
                let rows = WIDEN.min(t.rows - start);
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
                    let at = range(n).start + start;
                    // SAFETY: tasks have disjoint images and positions.
                    T::narrow(&wide[..rows], unsafe { out.slice(at..at + rows) });
                }
            }
        }
        if let Some(f) = epilogue {
            self.images.clone().for_each(|n| f(range(n)));
        }
    }
}
