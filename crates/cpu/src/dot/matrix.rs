//! Products of float matrices on register tiles.
//!
//! The right operand is packed, so that a tile reads what it needs from one place; the left one is where its rows
//! cannot be read as they are. Of the left one a task keeps its rows, over some steps of the sum, in the second-level
//! cache, while columns of the right one pass. What several tasks need of either is packed once for all of them.

use std::any::TypeId;
use std::ops::Range;

use cupola_simd::{Bias, Isa, MAX_VECTORS, Out, Rows, Run, Split, Tail, Tile, TileSet, Tiled};

use super::kept::{Layout, MOST_ROWS};
use super::pack::{Factor, Part};
use super::{DotProblem, Epilogue, Place, Shared};
use crate::cache;
use crate::memory::Scratch;
use crate::op::Finish;
use crate::threads::{even_part, parallel_for};

/// Steps of a tile between two passes over the result, at most.
const DEPTH: usize = 512;
/// From one row of a packed left operand to the next: no two at the same place of a cache.
const ROW_STEP: usize = DEPTH + 16;
/// Rows of the left operand that may meet in a set of the cache: half of its lines.
const ROWS_IN_SET: usize = cache::WAYS / 2;
/// Rows that a task takes, at least and at most.
const ROWS: [usize; 2] = [64, 128];
/// Rows of a task where it packs the right operand of one of several matrices.
const MATRIX_ROWS: usize = 512;
/// Columns of sums that a task keeps where the result is of a narrower type.
const NARROW_COLUMNS: usize = 512;
/// Tasks to aim at.
const TASKS: usize = 16;
/// Multiply-adds that are worth a task.
const WORK: usize = 1 << 17;
/// Multiply-adds of a matrix in a batch from which on its right operand is packed for all tasks.
const SHARED: usize = 1 << 26;
/// Bytes of the packed left operand up to which it is packed for all tasks.
const LEFT_BYTES: usize = 8 << 20;
/// Bytes from which on it is: those that tasks would copy again, each for itself.
const COPIED_BYTES: usize = 256 << 10;

/// # Safety
/// As for `dot`; the result is not empty.
pub(super) unsafe fn product<T: Factor>(
    isa: Isa,
    p: &DotProblem,
    a: *const T,
    b: *const T,
    out: Out<'_, T>,
    finish: Finish<'_>,
    place: Option<Place<'_>>,
) {
    let set = T::Acc::tiles(isa);
    let steps = T::steps(isa);
    let split = set.split(p.m, p.n.div_ceil(set.lanes), Rows::Apart);
    let depth = p.k.div_ceil(steps);
    let pass = depth.div_ceil(depth.div_ceil(DEPTH).max(1)).max(1);
    let in_place = reads_in_place::<T>(p, split.rows.first().copied().unwrap_or(0));
    let blocking = Blocking { isa, p, set, split, steps, depth, pass, in_place };
    let passes = blocking.passes();
    // SAFETY: the caller vouches for what the tail reads.
    let mut tail = unsafe { T::tail(&finish.tail, out.as_ptr()) };
    let mut spread;
    if let Bias::Lanes(bias) = tail.bias {
        // Tiles read whole vectors of it.
        spread = Scratch::<T::Acc>::new(blocking.width());
        // SAFETY: a bias has an element for each column.
        spread[..p.n].copy_from_slice(unsafe { std::slice::from_raw_parts(bias, p.n) });
        spread[p.n..].fill(T::Acc::default());
        tail = tail.with(Bias::Lanes(spread.as_ptr()));
    }
    let finish = Finish { epilogue: finish.epilogue.filter(|_| tail.then.is_none()), ..finish };
    let (a, b) = (Shared(a), Shared(b));
    let matrix = p.m * p.k * p.n;
    let is_small = p.batch > 1 && matrix < SHARED;
    let size = if is_small { MATRIX_ROWS } else { (p.m * p.batch / TASKS).clamp(ROWS[0], ROWS[1]) };
    let rows = cut(&blocking.split.rows, size);
    let own = size_of::<T>() == size_of::<T::Acc>();
    let least = if own { 1 } else { p.n.div_ceil(NARROW_COLUMNS) };
    // Small matrices of a batch are computed together, others one after the other.
    let together = if is_small { p.batch } else { 1 };
    let wanted = TASKS.min(together * matrix / WORK).div_ceil(rows.len() * together).max(least);
    let columns = cut_parts(blocking.split.vectors.len(), wanted);
    let part = |task: usize| {
        let (rows, columns) = (&rows[task / columns.len()], &columns[task % columns.len()]);
        (rows.clone(), columns.clone())
    };
    let parts = rows.len() * columns.len();
    let (epilogue, last) = finish.by_tasks(columns.len() == 1);
    let end = Ending { tail, epilogue };
    let b_at = |batch: usize| b.at(batch as isize * p.b_strides[0]);
    if is_small {
        let tasks = p.batch * parts;
        let group = (WORK * tasks / (p.batch * matrix).max(1)).clamp(1, tasks);
        parallel_for(tasks.div_ceil(group), |chunk| {
            for task in chunk * group..((chunk + 1) * group).min(tasks) {
                let (batch, part) = (task / parts, part(task % parts));
                let (left, right) = (Left::Here(&a), Right::Here(b_at(batch)));
                // SAFETY: the caller vouches for the operands; tasks have disjoint parts.
                unsafe { blocking.task(left, batch, right, part, out, end) };
            }
        });
        if let Some(finish) = last {
            finish.all();
        }
        return;
    }
    let place = place.filter(|_| p.batch == 1 && p.m <= MOST_ROWS);
    let kept = place.and_then(|place| {
        let pack = |to: &mut [T::Acc]| {
            // SAFETY: the caller vouches for the operand.
            unsafe { blocking.pack_all(b_at(0), to) }
        };
        place.packed(blocking.layout::<T>(), blocking.depth * blocking.width(), pack)
    });
    // Where there is no memory for all of it each task packs what it needs.
    let packed = |wanted: bool, length| match wanted {
        true => Scratch::<T::Acc>::try_new(length),
        false => None,
    };
    let mut right = packed(rows.len() > 1 && kept.is_none(), blocking.depth * blocking.width());
    let length = passes * p.m * ROW_STEP;
    let copied = p.m * p.k * (columns.len() - 1) * size_of::<T>();
    let shares_left =
        !in_place && copied >= COPIED_BYTES && length * size_of::<T::Acc>() <= LEFT_BYTES;
    let mut left = packed(shares_left, length);
    for batch in 0..p.batch {
        if let Some(right) = &mut right
            && (batch == 0 || p.b_strides[0] != 0)
        {
            // SAFETY: the caller vouches for the operand.
            unsafe { blocking.pack_all(b_at(batch), right) };
        }
        if let Some(left) = &mut left
            && (batch == 0 || p.a_strides[0] != 0)
        {
            let to = Out::new(left);
            let tiles = blocking.split.rows.len();
            parallel_for(tiles * passes, |piece| {
                let (tile, pass) = (piece / passes, piece % passes);
                let first: usize = blocking.split.rows[..tile].iter().sum();
                let from = blocking.left_at(&a, batch, first);
                let tiles = &blocking.split.rows[tile..=tile];
                let own = blocking.left_rows(first, pass, tiles[0]);
                // SAFETY: tiles are disjoint, and inside the operand.
                unsafe { blocking.pack_rows(from, tiles, pass, to.slice(own)) };
            });
        }
        parallel_for(parts, |task| {
            let left = left.as_ref().map_or(Left::Here(&a), |left| Left::Packed(left));
            let right = match (&kept, &right) {
                (Some(kept), _) => Right::Packed(&kept.data),
                (None, Some(right)) => Right::Packed(right),
                (None, None) => Right::Here(b_at(batch)),
            };
            // SAFETY: as above.
            unsafe { blocking.task(left, batch, right, part(task), out, end) };
        });
    }
    if let Some(finish) = last {
        finish.all();
    }
}

/// What is done to the sums of a task.
#[derive(Clone, Copy)]
struct Ending<'a, A> {
    /// Before they are stored. Its bias has whole vectors.
    tail: Tail<'a, A>,
    /// Of parts that are final: nothing where `tail.then` does it, or what is left to do when all tasks are done.
    epilogue: Epilogue<'a>,
}

// SAFETY: the pointer is that of the bias, which nobody writes and which outlives the tasks.
unsafe impl<A: Sync> Sync for Ending<'_, A> {}

/// Whether tiles of so many rows can read the left operand where it is: its steps follow each other, and no more rows
/// meet in a set of the first-level cache than stay there.
fn reads_in_place<T: Factor>(p: &DotProblem, tall: usize) -> bool {
    let [_, apart, step] = p.a_strides;
    let own = size_of::<T>() == size_of::<T::Acc>();
    let mut rows = [0; cache::SETS];
    let bytes = apart.unsigned_abs().saturating_mul(size_of::<T>());
    (0..tall).for_each(|row| rows[row.wrapping_mul(bytes) / cache::LINE % cache::SETS] += 1);
    own && step == 1 && apart >= 0 && rows.iter().all(|&rows| rows <= ROWS_IN_SET)
}

/// Groups tiles into ranges of about `size` rows.
fn cut(tiles: &[usize], size: usize) -> Vec<Range<usize>> {
    let total: usize = tiles.iter().sum();
    cut_parts(tiles.len(), total.div_ceil(size))
}

fn cut_parts(n: usize, parts: usize) -> Vec<Range<usize>> {
    let parts = parts.clamp(1, n.max(1));
    (0..parts).map(|i| even_part(n, parts, i)).collect()
}

/// The left operand.
#[derive(Clone, Copy)]
enum Left<'a, T: Factor> {
    /// To be read in place, or packed by each task.
    Here(&'a Shared<T>),
    /// All of its rows, pass by pass.
    Packed(&'a [T::Acc]),
}

/// The right operand.
#[derive(Clone, Copy)]
enum Right<'a, T: Factor> {
    /// To be packed as it is needed.
    Here(*const T),
    /// All of its pieces.
    Packed(&'a [T::Acc]),
}

struct Blocking<'p> {
    isa: Isa,
    p: &'p DotProblem,
    set: TileSet,
    split: Split,
    /// Steps of the sum in a step of a tile.
    steps: usize,
    /// Steps of a tile that make the whole sum, and those of a pass over the result.
    depth: usize,
    pass: usize,
    /// Whether the left operand is read where it is.
    in_place: bool,
}

impl Blocking<'_> {
    /// Columns with those that fill up the last vector.
    fn width(&self) -> usize {
        self.split.vectors.iter().sum::<usize>() * self.set.lanes
    }

    /// Start of a tile's columns.
    fn first_column(&self, tile: usize) -> usize {
        self.split.vectors[..tile].iter().sum::<usize>() * self.set.lanes
    }

    /// How many passes there are, one of no steps where nothing is summed.
    fn passes(&self) -> usize {
        self.depth.div_ceil(self.pass).max(1)
    }

    /// The steps of a tile in a pass.
    fn in_pass(&self, pass: usize) -> Range<usize> {
        pass * self.pass..((pass + 1) * self.pass).min(self.depth)
    }

    /// Where a piece of the packed right operand is: a tile's columns over a pass's depth.
    fn piece(&self, tile: usize, pass: usize) -> Range<usize> {
        let (first, width) = (self.first_column(tile), self.split.vectors[tile] * self.set.lanes);
        let Range { start, end } = self.in_pass(pass);
        first * self.depth + start * width..first * self.depth + end * width
    }

    /// The steps of the sum in a pass: the first, and how many.
    fn steps(&self, pass: usize) -> (usize, usize) {
        let first = self.in_pass(pass).start * self.steps;
        (first, (self.pass * self.steps).min(self.p.k - first))
    }

    /// Packs a piece of the right operand.
    ///
    /// # Safety
    /// The operand can be read.
    unsafe fn pack<T: Factor>(&self, b: *const T, tile: usize, pass: usize, to: &mut [T::Acc]) {
        let [_, step, lane] = self.p.b_strides;
        let (first, width) = (self.first_column(tile), self.split.vectors[tile] * self.set.lanes);
        let (at, steps) = self.steps(pass);
        let from = b.wrapping_offset(at as isize * step + first as isize * lane);
        let part = Part { from, lane, step, lanes: width.min(self.p.n - first), steps };
        // SAFETY: the part is inside the operand.
        unsafe { T::pack(self.isa, part, width, to) };
    }

    /// Packs all of the right operand.
    ///
    /// # Safety
    /// The operand can be read.
    unsafe fn pack_all<T: Factor>(&self, b: *const T, to: &mut [T::Acc]) {
        let (b, to, passes) = (Shared(b), Out::new(to), self.passes());
        parallel_for(self.split.vectors.len() * passes, |piece| {
            let (tile, pass) = (piece / passes, piece % passes);
            let piece = self.piece(tile, pass);
            // SAFETY: pieces are disjoint, and inside the operand.
            unsafe { self.pack(b.at(0), tile, pass, to.slice(piece)) };
        });
    }

    /// How the packed right operand lies.
    fn layout<T: 'static>(&self) -> Layout {
        Layout {
            dtype: TypeId::of::<T>(),
            sizes: [self.p.k, self.p.n],
            strides: [self.p.b_strides[1], self.p.b_strides[2]],
            unit: [self.set.lanes, self.steps],
            vectors: self.split.vectors.clone(),
        }
    }

    /// Where a row of the left operand begins.
    fn left_at<T>(&self, a: &Shared<T>, batch: usize, row: usize) -> *const T {
        let [whole, apart, _] = self.p.a_strides;
        a.at(batch as isize * whole + row as isize * apart)
    }

    /// Where so many rows of a pass over the packed left operand are.
    fn left_rows(&self, row: usize, pass: usize, rows: usize) -> Range<usize> {
        let first = (pass * self.p.m + row) * ROW_STEP;
        first..first + rows * ROW_STEP
    }

    /// How the rows of a packed left operand lie: neighbours stay neighbours.
    fn rows_lie(&self) -> Rows {
        if self.p.a_strides[1] == 1 { Rows::Together } else { Rows::Apart }
    }

    /// Computes a part of one result, given as ranges of tiles along rows and columns.
    ///
    /// # Safety
    /// The operands can be read, and nobody else accesses the part.
    unsafe fn task<T: Factor>(
        &self,
        left: Left<'_, T>,
        batch: usize,
        right: Right<'_, T>,
        (row_tiles, column_tiles): (Range<usize>, Range<usize>),
        out: Out<'_, T>,
        end: Ending<'_, T::Acc>,
    ) {
        let (p, lanes) = (self.p, self.set.lanes);
        let first_row: usize = self.split.rows[..row_tiles.start].iter().sum();
        let row_tiles = &self.split.rows[row_tiles];
        let rows: usize = row_tiles.iter().sum();
        let first = self.first_column(column_tiles.start);
        let columns = self.first_column(column_tiles.end).min(p.n) - first;
        let at = if self.in_place { Rows::Apart } else { self.rows_lie() };
        let mut own_left = Scratch::<T::Acc>::new(match left {
            Left::Here(_) if !self.in_place => rows * ROW_STEP,
            Left::Here(_) | Left::Packed(_) => 0,
        });
        let own_pieces = if let Right::Here(_) = right { self.pass } else { 0 };
        let widest = self.split.vectors.iter().max().map_or(0, |v| v * lanes);
        let mut piece = Scratch::<T::Acc>::new(own_pieces * widest);
        let own = size_of::<T>() == size_of::<T::Acc>();
        let mut wide = Scratch::<T::Acc>::new(if own { 0 } else { rows * columns });
        let result = (batch * p.m + first_row) * p.n + first;
        let (sums, sums_step) = if own {
            (out.as_ptr().wrapping_add(result).cast(), p.n)
        } else {
            (wide.as_mut_ptr(), columns)
        };
        let mut starts = [0; MAX_VECTORS];
        starts.iter_mut().enumerate().for_each(|(v, s)| *s = v * lanes);
        let passes = self.passes();
        for pass in 0..passes {
            let Range { start, end: stop } = self.in_pass(pass);
            let len = stop - start;
            let (a, row_step) = match left {
                Left::Here(a) if self.in_place => {
                    let from = self.left_at(a, batch, first_row).wrapping_add(start);
                    (from.cast(), p.a_strides[1] as usize)
                }
                Left::Here(a) => {
                    let from = self.left_at(a, batch, first_row);
                    // SAFETY: the rows are inside the operand.
                    unsafe { self.pack_rows(from, row_tiles, pass, &mut own_left) };
                    (own_left.as_ptr(), ROW_STEP)
                }
                Left::Packed(all) => {
                    (all[self.left_rows(first_row, pass, rows)].as_ptr(), ROW_STEP)
                }
            };
            let tail = if pass + 1 == passes { end.tail } else { Tail::NONE };
            for column in column_tiles.clone() {
                let (vectors, from) = (self.split.vectors[column], self.first_column(column));
                let b = match right {
                    Right::Packed(all) => &all[self.piece(column, pass)],
                    Right::Here(b) => {
                        let piece = &mut piece[..len * vectors * lanes];
                        // SAFETY: the caller vouches for the operand.
                        unsafe { self.pack(b, column, pass, piece) };
                        piece
                    }
                };
                let next = match right {
                    Right::Packed(_) if column + 1 < self.split.vectors.len() => {
                        self.piece(column + 1, pass).start - self.piece(column, pass).start
                    }
                    _ => 0,
                };
                let mut row = 0;
                for (i, &m) in row_tiles.iter().enumerate() {
                    let soon = self.set.soon(next, i, vectors);
                    let tile = Tile {
                        a: a.wrapping_add(row * row_step),
                        a_unit: 1,
                        a_step: if at == Rows::Together { m } else { 1 },
                        rows: &[],
                        row_step,
                        b: b.as_ptr(),
                        b_unit: 1,
                        b_step: vectors * lanes,
                        soon,
                        columns: starts,
                        runs: &[Run { a: 0, b: 0, len }],
                        c: sums.wrapping_add(row * sums_step + from - first),
                        c_step: sums_step,
                        last: p.n - from - (vectors - 1) * lanes,
                        add: pass > 0,
                        tail: tail.of_lanes_from(from),
                    };
                    // SAFETY: the tile lies inside the operands and the part of the result.
                    unsafe { T::tile(self.isa, m, vectors, at)(&tile) };
                    row += m;
                }
            }
        }
        if !own {
            for (i, wide) in wide.chunks_exact(columns).enumerate() {
                let at = result + i * p.n;
                // SAFETY: the part is the task's own.
                T::narrow(wide, unsafe { out.slice(at..at + columns) });
            }
        }
        if let Some(f) = end.epilogue {
            f(result..result + rows * p.n);
        }
    }

    /// Packs a pass over some rows of the left operand, tile by tile.
    ///
    /// # Safety
    /// The rows can be read.
    unsafe fn pack_rows<T: Factor>(
        &self,
        a: *const T,
        tiles: &[usize],
        pass: usize,
        to: &mut [T::Acc],
    ) {
        let rows = self.rows_lie();
        let [_, lane, step] = self.p.a_strides;
        let (at, steps) = self.steps(pass);
        let len = steps.div_ceil(self.steps);
        let mut row = 0;
        for &lanes in tiles {
            let from = a.wrapping_offset(row as isize * lane + at as isize * step);
            let part = Part { from, lane, step, lanes, steps };
            let to = &mut to[row * ROW_STEP..][..lanes * ROW_STEP];
            // SAFETY: the caller vouches for the rows.
            unsafe {
                if rows == Rows::Together {
                    T::pack(self.isa, part, lanes, &mut to[..lanes * len]);
                } else {
                    T::copy(self.isa, part, ROW_STEP, to);
                }
            }
            row += lanes;
        }
    }
}
