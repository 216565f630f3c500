//! Reductions whose tiles hold only a part of what makes one run of outputs.

use smallvec::SmallVec;

use super::{CHUNK_WORK, CHUNKS, Core, RawArgs, Row, Runner, Walk, parallel_for, with_scratch};
use crate::memory::filled;

/// Rows that are folded one after the other before their sum is combined in pairs.
const BLOCK_ROWS: usize = 64;
/// The least elements of a row that is folded in parts.
const PART: usize = 1 << 16;
/// How wide a row of accumulators should at least be.
const WIDTH: usize = 256;

/// About how many simple instructions an element costs, whatever the program: where a unit is cut
/// decides in which order it is folded.
const WORK: usize = 4;

/// How the tiles are shared out.
pub(super) struct Split {
    /// Runs of outputs.
    units: usize,
    /// Tiles of a unit.
    tiles: usize,
    /// Parts that a unit's tiles are cut in, which different threads can do.
    parts: usize,
    /// Units in a chunk of work, where a unit has one part.
    chunk: usize,
    /// Outputs of a whole unit.
    width: usize,
    /// Whether a tile is a piece of a [`Row`].
    in_pieces: bool,
}

impl Split {
    pub fn new(core: &Core, in_pieces: bool) -> Self {
        let (space, tiling, [first, last]) = (&core.space, &core.tiling, core.borders);
        let rank = space.dims.len();
        let units = tiling.total(space, 0..first) * tiling.total(space, last..rank);
        let tiles = tiling.total(space, first..last);
        let unit_work = tiles * tiling.size() * WORK;
        let mut most = (unit_work / CHUNK_WORK).clamp(1, tiles.max(1));
        if in_pieces {
            most = most.min(tiles * tiling.size() / PART).max(1);
        }
        let parts = if units >= CHUNKS / 4 { 1 } else { most.min(CHUNKS / units.max(1)) };
        let chunk = CHUNK_WORK.div_ceil(unit_work.max(1)).max(units.div_ceil(CHUNKS));
        let width = tiling.extents[last..].iter().product();
        Split { units, tiles, parts, chunk, width, in_pieces }
    }

    /// # Safety
    /// As [`super::ReduceKernel::run`].
    pub unsafe fn run(&self, core: &Core, args: &RawArgs<'_>) {
        if self.parts == 1 {
            return parallel_for(self.units.div_ceil(self.chunk), |i| {
                let first = i * self.chunk;
                for unit in first..self.units.min(first + self.chunk) {
                    // SAFETY: the caller vouches for the operands; units store apart.
                    unsafe { self.run_unit(core, args, unit) };
                }
            });
        }
        // The rows of all results, one after the other.
        let row = self.width * core.size;
        let rows_of_part = row * core.program.results.len();
        let mut partial = filled(0u64, (self.units * self.parts * rows_of_part).div_ceil(8));
        let rows = Rows(partial.as_mut_ptr().cast());
        parallel_for(self.units * self.parts, |i| {
            // A reference to the whole, which may go to other threads, not to the pointer in it.
            let rows = &rows;
            let (unit, part) = (i / self.parts, i % self.parts);
            let range = self.tiles * part / self.parts..self.tiles * (part + 1) / self.parts;
            // SAFETY: the caller vouches for the operands; each part has a row of its own.
            unsafe {
                let out = rows.0.add(i * rows_of_part);
                self.fold(core, args, unit, range, |result, acc, _| {
                    std::ptr::copy_nonoverlapping(acc, out.add(result * row), row);
                });
            }
        });
        for unit in 0..self.units {
            // SAFETY: all parts are done; the caller vouches for the output.
            unsafe {
                let first = rows.0.add(unit * self.parts * rows_of_part);
                for part in 1..self.parts {
                    let other = first.add(part * rows_of_part);
                    (core.folds.columns)(first, other, 1, rows_of_part / core.size);
                }
                let walk = self.walk(core, unit, 0);
                with_scratch(core.program.bytes, |scratch| {
                    let staging = scratch.add(core.program.staging);
                    for result in 0..core.program.results.len() {
                        self.store(core, args, &walk, result, first.add(result * row), staging);
                    }
                });
            }
        }
    }

    /// A walk over the tiles of a unit.
    fn walk<'a>(&self, core: &'a Core, unit: usize, start: usize) -> Walk<'a> {
        let (space, tiling, [first, last]) = (&core.space, &core.tiling, core.borders);
        let mut walk = Walk::new(space, tiling, first..last, start);
        let mut left = unit;
        for axis in (0..first).chain(last..space.dims.len()).rev() {
            let count = tiling.count(space, axis);
            walk.fix(axis, left % count);
            left /= count;
        }
        walk
    }

    /// # Safety
    /// As [`Split::run`]; `acc` holds the unit's accumulators of that result.
    unsafe fn store(
        &self,
        core: &Core,
        args: &RawArgs<'_>,
        walk: &Walk<'_>,
        result: usize,
        acc: *const u8,
        staging: *mut u8,
    ) {
        let cuts = walk.cuts();
        // SAFETY: the caller vouches for the memory.
        unsafe {
            let to = core.at(args, result, walk.offsets[core.output]);
            core.store.run(acc, to, self.width_of(core, cuts), cuts, staging);
        }
    }

    /// # Safety
    /// As [`Split::run`].
    unsafe fn run_unit(&self, core: &Core, args: &RawArgs<'_>, unit: usize) {
        // SAFETY: the caller vouches for the operands.
        unsafe {
            self.fold(core, args, unit, 0..self.tiles, |result, acc, staging| {
                self.store(core, args, &self.walk(core, unit, 0), result, acc, staging);
            });
        }
    }

    /// How many outputs a unit has whose tiles have these cut extents.
    fn width_of(&self, core: &Core, cuts: [usize; 2]) -> usize {
        let tiling = &core.tiling;
        let mut width = self.width;
        for (i, &cut) in tiling.cuts.iter().enumerate() {
            if cut >= core.borders[1] && (i == 0 || tiling.cuts[0] != cut) {
                width = width / tiling.extents[cut] * cuts[i];
            }
        }
        width
    }

    /// Folds the tiles `range` of a unit, and hands the row of accumulators of each result on, with staging
    /// memory.
    ///
    /// # Safety
    /// As [`Split::run`].
    unsafe fn fold(
        &self,
        core: &Core,
        args: &RawArgs<'_>,
        unit: usize,
        range: std::ops::Range<usize>,
        done: impl Fn(usize, *const u8, *mut u8),
    ) {
        if self.in_pieces {
            // SAFETY: the same contract.
            return unsafe { self.fold_pieces(core, args, unit, range, done) };
        }
        let (tiling, program) = (&core.tiling, &core.program);
        let mut walk = self.walk(core, unit, range.start);
        let width = self.width_of(core, walk.cuts());
        // Narrow rows are folded several at a time, side by side.
        let beside = if width == 1 { 1 } else { (WIDTH / width).max(1) };
        let row = (width * beside * core.size).next_multiple_of(64);
        let depth = range.len().max(1).ilog2() as usize + 3;
        let results = program.results.len();
        with_scratch(program.bytes + row * depth * results, |scratch| {
            // SAFETY: the caller vouches for the operands; the scratch memory has room for the
            // program and, behind it, a stack of rows for each result, which is as high as the number of rows
            // has digits.
            unsafe {
                let stack = |result: usize| {
                    let at = scratch.add(program.bytes + row * depth * result);
                    Stack { core, width, row, at }
                };
                let full = tiling.full_cuts();
                let runner = Runner::new(program, args, scratch, full, tiling.size());
                let (mut height, mut blocks, mut rows) = (0, 0usize, 0);
                for tile in range.clone() {
                    let cuts = walk.cuts();
                    let n = tiling.elements(cuts);
                    runner.tile(&walk.offsets, cuts, n);
                    for (result, &at) in program.results.iter().enumerate() {
                        let (stack, x) = (stack(result), runner.get(at));
                        if width == 1 {
                            (core.folds.rows)(stack.row(height), x, 1, n);
                            continue;
                        }
                        if rows == 0 {
                            core.fill(stack.row(height), width * beside);
                        }
                        stack.add(height, x, n / width, beside);
                    }
                    rows += if width == 1 { BLOCK_ROWS } else { (n / width).div_ceil(beside) };
                    if rows >= BLOCK_ROWS || tile + 1 == range.end {
                        blocks += 1;
                        let whole = blocks.trailing_zeros() as usize;
                        for result in 0..results {
                            let stack = stack(result);
                            stack.gather(height, beside);
                            (height + 1 - whole..=height).rev().for_each(|at| stack.combine(at));
                        }
                        height = height + 1 - whole;
                        rows = 0;
                    }
                    walk.next();
                }
                for result in 0..results {
                    let stack = stack(result);
                    (1..height).rev().for_each(|at| stack.combine(at));
                    done(result, stack.row(0), scratch.add(program.staging));
                }
            }
        });
    }
}

impl Split {
    /// # Safety
    /// As [`Split::fold`], for tiles that are pieces of a row.
    unsafe fn fold_pieces(
        &self,
        core: &Core,
        args: &RawArgs<'_>,
        unit: usize,
        range: std::ops::Range<usize>,
        done: impl Fn(usize, *const u8, *mut u8),
    ) {
        let (tiling, program) = (&core.tiling, &core.program);
        let mut walk = self.walk(core, unit, range.start);
        let bytes = Row::bytes(&core.folds, range.len() * tiling.size()).next_multiple_of(64);
        let results = program.results.len();
        with_scratch(program.bytes + bytes * results, |scratch| {
            // SAFETY: the caller vouches for the operands; the scratch memory has room for the
            // program and, behind it, the row of each result.
            unsafe {
                let full = tiling.full_cuts();
                let runner = Runner::new(program, args, scratch, full, tiling.size());
                let row =
                    |result| Row::new(&core.folds, scratch.add(program.bytes + bytes * result));
                let mut rows: SmallVec<[Row<'_>; 4]> = (0..results).map(row).collect();
                for _ in range {
                    let cuts = walk.cuts();
                    let n = tiling.elements(cuts);
                    runner.tile(&walk.offsets, cuts, n);
                    for (row, &result) in rows.iter_mut().zip(&program.results) {
                        row.add(runner.get(result), n);
                    }
                    walk.next();
                }
                for (result, row) in rows.into_iter().enumerate() {
                    done(result, row.finish(), scratch.add(program.staging));
                }
            }
        });
    }
}

/// Rows of accumulators: each stands for about twice as many blocks as the one above.
struct Stack<'a> {
    core: &'a Core,
    width: usize,
    row: usize,
    at: *mut u8,
}

impl Stack<'_> {
    /// # Safety
    /// The stack has that row.
    unsafe fn row(&self, index: usize) -> *mut u8 {
        // SAFETY: the caller vouches for the row.
        unsafe { self.at.add(index * self.row) }
    }

    /// Folds `rows` rows of a tile into a row of the stack, `beside` at a time.
    ///
    /// # Safety
    /// The stack has that row, and `x` that many elements.
    unsafe fn add(&self, index: usize, x: *const u8, rows: usize, beside: usize) {
        let (whole, rest) = (rows / beside, rows % beside);
        let columns = self.core.folds.columns;
        // SAFETY: the caller vouches for the memory.
        unsafe {
            let acc = self.row(index);
            columns(acc, x, whole, self.width * beside);
            if rest > 0 {
                let x = x.add(whole * beside * self.width * self.core.size);
                columns(acc, x, 1, self.width * rest);
            }
        }
    }

    /// Folds what lies side by side in a row, by halves.
    ///
    /// # Safety
    /// The stack has that row.
    unsafe fn gather(&self, index: usize, beside: usize) {
        let mut beside = beside;
        while beside > 1 {
            let half = beside.div_ceil(2);
            // SAFETY: the caller vouches for the row; its two parts do not overlap.
            unsafe {
                let acc = self.row(index);
                let other = acc.add(half * self.width * self.core.size);
                (self.core.folds.columns)(acc, other, 1, (beside - half) * self.width);
            }
            beside = half;
        }
    }

    /// Folds row `index` into the one below.
    ///
    /// # Safety
    /// The stack has both rows.
    unsafe fn combine(&self, index: usize) {
        // SAFETY: the caller vouches for the rows.
        unsafe {
            (self.core.folds.columns)(self.row(index - 1), self.row(index), 1, self.width);
        }
    }
}

/// Where the parts' rows start.
struct Rows(*mut u8);

// SAFETY: each chunk writes a row of its own, and the rows are read when all chunks are done.
unsafe impl Sync for Rows {}
