//! Convolutions with three by three taps next to each other, by Winograd's F(2×2, 3×3): 16 products where there would be
//! 36.
//!
//! The output is cut into tiles of two by two, and the four by four inputs of each are transformed to as many points. At
//! each point tiles × input channels are multiplied with input channels × output channels, and the products of a tile
//! are transformed to its outputs. An output depends on the inputs that its window has, and on no others: what is
//! transformed away is beside it in all of the sums.
//!
//! Where an input is infinite the transforms may subtract it from itself. So a result with NaN does not hold.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use cupola_simd::{
    Bias, Element, Isa, MAX_VECTORS, Out, POINTS, PointInputs, PointSums, PointWeights, Rows, Run,
    Split, Tail, Tile, Tiled, ToPoints, even_parts,
};

use super::weights::{WeightTile, Weights};
use super::{ConvTail, Epilogue, Geometry};
use crate::memory::Scratch;
use crate::threads::{even_part, parallel_for};

/// Outputs of a tile along an axis, and the taps.
const SIDE: usize = 2;
const TAPS: usize = 3;
/// The fewest channels, on either side.
const FEWEST: usize = 8;
/// Bytes of transformed inputs, which stay in the second-level cache beside weights and sums.
const INPUT_BYTES: usize = 512 << 10;
/// Tiles that are multiplied together, at most, in kernels.
const KERNELS: usize = 4;
/// Tasks that are enough for many threads.
const TASKS: usize = 24;
/// The fewest output channels of a task: each task for the same outputs transforms their inputs.
const SHARED: usize = 64;
/// Cycles to transform a vector of inputs, or outputs, of a tile.
const TRANSFORM: f64 = 50.0;
/// Cycles that a tile takes besides, however few channels there are.
const A_TILE: f64 = 250.0;
/// Cycles for a byte of weights that do not stay in the second-level cache.
const FAR: f64 = 0.1;
const NEAR_BYTES: usize = 512 << 10;

/// How convolutions of one geometry run.
pub(super) struct Winograd {
    isa: Isa,
    lanes: usize,
    /// Vectors in each tile of channels.
    vectors: Vec<usize>,
    /// The most tiles of outputs in a kernel.
    tall: usize,
    /// Tiles of outputs whose inputs are transformed together.
    together: usize,
    /// Tiles along both axes.
    tiles: [usize; 2],
    /// Rows of tiles, of all images, in a task.
    rows: usize,
    /// In how many parts tasks share the tiles of channels.
    parts: usize,
    pub cost: f64,
}

impl Winograd {
    /// The way to run them, if there is one.
    pub fn new<T: Tiled>(geo: &Geometry, isa: Isa) -> Option<Winograd> {
        let [y, x] = geo.axes.as_slice() else { return None };
        let is_fit = |a: &super::Axis| {
            (a.taps, a.stride, a.dilation, a.input_dilation) == (TAPS, 1, 1, 1) && a.output > 0
        };
        if !is_fit(y) || !is_fit(x) || geo.c_in.min(geo.c_out) < FEWEST || geo.batch == 0 {
            return None;
        }
        let set = T::tiles(isa);
        let tiles = [y, x].map(|a| a.output.div_ceil(SIDE));
        let (all_rows, all) = (geo.batch * tiles[0], geo.batch * tiles[0] * tiles[1]);
        let (wide_in, wide_out) = (geo.c_in.div_ceil(set.lanes), geo.c_out.div_ceil(set.lanes));
        let tallest = set.rows.iter().max().copied().unwrap_or(1);
        let Split { vectors, .. } = set.split(all.min(tallest), wide_out, Rows::Apart);
        let tall = set.rows[vectors.first().map_or(1, |&v| v) - 1];
        let a_tile = POINTS * pitch(geo, set.lanes) * size_of::<T>();
        let together = (INPUT_BYTES / a_tile / tall).clamp(1, KERNELS) * tall;
        let rows = (together / tiles[1]).clamp(1, all_rows);
        let tasks = all_rows.div_ceil(rows) * geo.groups;
        let parts = match geo.groups {
            1 => TASKS.div_ceil(tasks).min(geo.c_out / SHARED).clamp(1, vectors.len()),
            _ => 1,
        };
        let heights = even_parts(all.min(together), tall);
        let step: f64 = heights
            .iter()
            .flat_map(|&m| vectors.iter().map(move |&v| set.cost(m, v, Rows::Apart)))
            .sum();
        let blocks = all as f64 / all.min(together) as f64;
        let calls = (heights.len() * vectors.len() * POINTS) as f64 * 40.0;
        let weights = POINTS * geo.c_in * wide_out * set.lanes * size_of::<T>();
        let far = if weights > NEAR_BYTES { weights as f64 * FAR } else { 0.0 };
        let transform = (wide_in * parts + wide_out) as f64 * TRANSFORM + A_TILE;
        let transforms = all as f64 * transform;
        let each = blocks * ((POINTS * geo.c_in) as f64 * step + calls + far) + transforms;
        let cost = geo.groups as f64 * each;
        let lanes = set.lanes;
        Some(Winograd { isa, lanes, vectors, tall, together, tiles, rows, parts, cost })
    }

    pub fn widths(&self) -> Vec<usize> {
        self.vectors.iter().map(|v| v * self.lanes).collect()
    }

    /// The weights at each point, of those of each tap.
    pub fn pack<A: Tiled>(&self, geo: &Geometry, w: &Weights<A>) -> Weights<A> {
        w.with_taps(geo, POINTS, |from, to| {
            let (from, step) = (from.as_ptr(), to.len() / POINTS);
            let weights = PointWeights { from, to: to.as_mut_ptr(), step };
            // SAFETY: both have as many elements for each tap, or point, in whole vectors.
            unsafe { A::point_weights(self.isa, weights) };
        })
    }

    /// Whether the result holds.
    #[must_use]
    pub fn run<T: Element + ToPoints>(
        &self,
        geo: &Geometry,
        x: &[T],
        w: &Weights<T::Acc>,
        out: Out<'_, T>,
        tail: ConvTail<'_, T::Acc>,
        epilogue: Epilogue<'_>,
    ) -> bool {
        let shares = even_parts(w.tiles.len(), w.tiles.len().div_ceil(self.parts).max(1));
        let bias = tail.bias.map(|bias| w.spread(geo, bias));
        // Where tasks have whole rows the epilogue is cheaper.
        let then = tail.then.filter(|_| shares.len() > 1);
        let tail = ConvTail { bias: bias.as_deref(), then, ..tail };
        let epilogue = epilogue.filter(|_| then.is_none());
        let all_rows = geo.batch * self.tiles[0];
        let blocks = all_rows.div_ceil(self.rows);
        let found_nan = AtomicBool::new(false);
        parallel_for(blocks * shares.len(), |task| {
            // Tasks with the same weights follow each other.
            let (share, block) = (task / blocks, task % blocks);
            let first: usize = shares[..share].iter().sum();
            let task = Task {
                path: self,
                geo,
                rows: even_part(all_rows, blocks, block),
                tiles: &w.tiles[first..first + shares[share]],
                tail,
            };
            let done = task.elements();
            if task.run(x, w, out) {
                found_nan.store(true, Ordering::Relaxed);
            }
            if let Some(f) = epilogue.filter(|_| shares.len() == 1) {
                f(done);
            }
        });
        if let Some(f) = epilogue.filter(|_| shares.len() > 1) {
            let (len, most) = (out.len(), 4 * super::CACHED);
            parallel_for(len.div_ceil(most), |i| f(i * most..((i + 1) * most).min(len)));
        }
        !found_nan.into_inner()
    }
}

/// From one tile's channels to the next, at one point: whole vectors, and an odd number of lines, so that not all
/// begin in the same sets of the first cache.
fn pitch(geo: &Geometry, lanes: usize) -> usize {
    (geo.c_in.div_ceil(lanes) | 1) * lanes
}

/// Some rows of tiles, of all images, in some output channels.
struct Task<'t, A: Tiled> {
    path: &'t Winograd,
    geo: &'t Geometry,
    rows: Range<usize>,
    tiles: &'t [WeightTile],
    tail: ConvTail<'t, A>,
}

impl<A: Tiled> Task<'_, A> {
    /// Those of the output in its rows.
    fn elements(&self) -> Range<usize> {
        let (geo, rows) = (self.geo, self.path.tiles[0]);
        let [y, x] = [geo.axes[0].output, geo.axes[1].output];
        let at =
            |row: usize| (row / rows * y + (row % rows * SIDE).min(y)) * x * geo.groups * geo.c_out;
        at(self.rows.start)..at(self.rows.end)
    }

    /// Whether a sum is NaN.
    fn run<T: Element<Acc = A> + ToPoints>(
        &self,
        x: &[T],
        w: &Weights<A>,
        out: Out<'_, T>,
    ) -> bool {
        let (geo, path) = (self.geo, self.path);
        let done = self.elements();
        assert!(done.end <= out.len());
        // SAFETY: as was just asserted. Tasks have other rows or other channels.
        let y = unsafe { out.as_ptr().add(done.start) };
        let is_wide = size_of::<T>() == size_of::<A>();
        let mut wide = Scratch::<A>::new(if is_wide { 0 } else { done.len() });
        let sums = if is_wide { y.cast() } else { wide.as_mut_ptr() };
        let count = self.rows.len() * path.tiles[1];
        let pitch = pitch(geo, path.lanes);
        let most = count.min(path.together);
        let widest = self.tiles.iter().map(|tile| tile.width).max().unwrap_or(0);
        let mut inputs = Scratch::<A>::new(POINTS * most * pitch);
        let mut products = Scratch::<A>::new(POINTS * most * widest);
        let zeros = vec![T::default(); geo.c_in];
        let (mut from, mut to) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let mut found_nan = false;
        for g in 0..geo.groups {
            let mut at = 0;
            for part in even_parts(count, path.together) {
                let tiles = at..at + part;
                at += part;
                self.places(g, x, &zeros, tiles.clone(), &mut from);
                let transform = PointInputs {
                    tiles: &from,
                    channels: geo.c_in,
                    to: inputs.as_mut_ptr(),
                    tile: pitch,
                    point: part * pitch,
                };
                // SAFETY: the places are those of positions with all channels, and the inputs have as many points.
                unsafe { T::point_inputs(path.isa, transform) };
                for tile in self.tiles {
                    self.multiply(g, w, tile, part, &inputs, &mut products);
                    let channel = g * geo.c_out + tile.channel;
                    self.targets(tiles.clone(), sums.wrapping_add(channel), done.start, &mut to);
                    let transform = PointSums {
                        from: products.as_ptr(),
                        tile: tile.width,
                        point: part * tile.width,
                        tiles: &to,
                        channels: tile.width.min(geo.c_out - tile.channel),
                        tail: self
                            .tail
                            .with(|bias| Bias::Lanes(bias[w.spread_at(g, tile)..].as_ptr())),
                    };
                    // SAFETY: the products have all points, the targets are positions of the task's with all channels,
                    // and the bias is spread over whole vectors.
                    found_nan |= unsafe { A::point_sums(path.isa, transform) };
                }
            }
        }
        if !is_wide {
            self.narrow(&wide, y);
        }
        found_nan
    }

    /// Writes the task's sums to the output.
    fn narrow<T: Element<Acc = A>>(&self, sums: &[A], y: *mut T) {
        let geo = self.geo;
        let position = geo.groups * geo.c_out;
        let (Some(one), Some(other)) = (self.tiles.first(), self.tiles.last()) else { return };
        // Where groups are, every task has all channels.
        let channels = match geo.groups {
            1 => one.channel..(other.channel + other.width).min(geo.c_out),
            _ => 0..position,
        };
        for at in (0..sums.len()).step_by(position) {
            // SAFETY: the output has as many elements for the task's rows; its channels are the task's own.
            let y = unsafe {
                std::slice::from_raw_parts_mut(y.add(at + channels.start), channels.len())
            };
            T::narrow(&sums[at + channels.start..at + channels.end], y);
        }
    }

    /// Image, row and column where each of some tiles of the task's begins in the output.
    fn tiles(&self, tiles: Range<usize>) -> impl Iterator<Item = [usize; 3]> {
        let ([rows, columns], first) = (self.path.tiles, self.rows.start);
        tiles.map(move |tile| {
            let row = first + tile / columns;
            [row / rows, row % rows * SIDE, tile % columns * SIDE]
        })
    }

    /// Where the inputs of some tiles lie.
    fn places<T: Element>(
        &self,
        g: usize,
        x: &[T],
        zeros: &[T],
        tiles: Range<usize>,
        places: &mut Vec<[*const T; POINTS]>,
    ) {
        let geo = self.geo;
        let [rows, columns] = [&geo.axes[0], &geo.axes[1]];
        let channels = geo.groups * geo.c_in;
        places.clear();
        places.extend(self.tiles(tiles).map(|[n, row, column]| {
            std::array::from_fn(|i| {
                let y = (row + i / 4) as isize - rows.pad;
                let x_at = (column + i % 4) as isize - columns.pad;
                let is_there = (0..rows.input as isize).contains(&y)
                    && (0..columns.input as isize).contains(&x_at);
                if !is_there {
                    return zeros.as_ptr();
                }
                let at = (n * rows.input + y as usize) * columns.input + x_at as usize;
                x[at * channels + g * geo.c_in..][..geo.c_in].as_ptr()
            })
        }));
    }

    /// Where the outputs of some tiles lie, beside `sums`, which is where element `first` is.
    fn targets(
        &self,
        tiles: Range<usize>,
        sums: *mut A,
        first: usize,
        targets: &mut Vec<[*mut A; 4]>,
    ) {
        let geo = self.geo;
        let [rows, columns] = [geo.axes[0].output, geo.axes[1].output];
        let channels = geo.groups * geo.c_out;
        targets.clear();
        targets.extend(self.tiles(tiles).map(|[n, row, column]| {
            std::array::from_fn(|i| {
                let (row, column) = (row + i / SIDE, column + i % SIDE);
                if row >= rows || column >= columns {
                    return std::ptr::null_mut();
                }
                sums.wrapping_add(((n * rows + row) * columns + column) * channels - first)
            })
        }));
    }

    /// The products of some tiles at all points, in the channels of a tile of these.
    #[allow(clippy::too_many_arguments)]
    fn multiply(
        &self,
        g: usize,
        w: &Weights<A>,
        tile: &WeightTile,
        count: usize,
        inputs: &[A],
        products: &mut [A],
    ) {
        let (geo, path) = (self.geo, self.path);
        let (pitch, width) = (pitch(geo, path.lanes), tile.width);
        let mut columns = [0; MAX_VECTORS];
        columns.iter_mut().enumerate().for_each(|(v, c)| *c = v * path.lanes);
        let runs = [Run { a: 0, b: 0, len: geo.c_in }];
        let (set, heights) = (A::tiles(path.isa), even_parts(count, path.tall));
        // The weights of a point are followed by those of the next, in the end by the next tile's, if there is one.
        let followed = if w.next(g, tile) > 0 { POINTS } else { POINTS - 1 };
        for point in 0..POINTS {
            let next = if point < followed { geo.c_in * width } else { 0 };
            let mut at = 0;
            for (i, &m) in heights.iter().enumerate() {
                let soon = set.soon(next, i, width / path.lanes);
                let part = Tile {
                    a: inputs[(point * count + at) * pitch..][..m * pitch].as_ptr(),
                    a_unit: 1,
                    a_step: 1,
                    rows: &[],
                    row_step: pitch,
                    b: w.at(g, tile).wrapping_add(point * geo.c_in * width),
                    b_unit: width,
                    b_step: width,
                    soon,
                    columns,
                    runs: &runs,
                    c: products[(point * count + at) * width..][..m * width].as_mut_ptr(),
                    c_step: width,
                    last: path.lanes,
                    add: false,
                    tail: Tail::NONE,
                };
                // SAFETY: rows have all channels, and weights their width for each of them.
                unsafe { A::kernel(path.isa, m, width / path.lanes, Rows::Apart)(&part) };
                at += m;
            }
        }
    }
}
