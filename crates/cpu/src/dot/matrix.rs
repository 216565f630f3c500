//! Products of float matrices on register tiles.
//!
//! The right operand is packed, once, into blocks that stay in the second-level cache while panels
//! of rows pass over them; the left one is read where it is if its rows are contiguous.

use std::ops::Range;

use super::{DotProblem, Epilogue, Shared};
use crate::simd::{
    Element, Isa, MAX_VECTORS, Out, Run, Scratch, Split, Tile, TileSet, Tiled, Transpose,
};
use crate::threads::parallel_for;

/// Steps of the sum between two passes over the result.
const DEPTH: usize = 512;
/// Rows that a task takes, about.
const ROWS: usize = 64;
/// Tasks to aim at.
const TASKS: usize = 16;
/// Multiply-adds that are worth a task.
const WORK: usize = 1 << 17;
/// Bytes of a right operand that a task packs for itself.
const OWN_BYTES: usize = 512 << 10;

/// # Safety
/// As for `dot`; the result is not empty.
pub(super) unsafe fn product<T: Element>(
    isa: Isa,
    p: &DotProblem,
    a: *const T,
    b: *const T,
    out: Out<'_, T>,
    epilogue: Epilogue<'_>,
) {
    let set = T::Acc::tiles(isa);
    let blocking = Blocking { isa, p, set, split: set.split(p.m, p.n.div_ceil(set.lanes)) };
    let (a, b) = (Shared(a), Shared(b));
    let packed = p.k * blocking.width();
    let matrix = p.m * p.k * p.n;
    if p.batch > 1 && packed * size_of::<T::Acc>() <= OWN_BYTES && matrix <= WORK * TASKS {
        let matrices = (WORK / matrix.max(1)).clamp(1, p.batch);
        parallel_for(p.batch.div_ceil(matrices), |chunk| {
            let mut right = Scratch::<T::Acc>::new(packed);
            for batch in chunk * matrices..((chunk + 1) * matrices).min(p.batch) {
                // SAFETY: the caller vouches for the operands.
                unsafe {
                    blocking.pack(
                        b.at(batch as isize * p.b_strides[0]),
                        &mut right,
                        0..blocking.pieces(),
                    )
                };
                let whole = (0..blocking.split.rows.len(), 0..blocking.split.vectors.len());
                // SAFETY: as above; chunks have matrices of their own.
                unsafe { blocking.task(&a, batch, &right, whole, out, epilogue) };
            }
        });
        return;
    }
    let mut right = Scratch::<T::Acc>::new(packed);
    for batch in 0..p.batch {
        if batch == 0 || p.b_strides[0] != 0 {
            let (to, pieces) = (Out::new(&mut right), blocking.pieces());
            let shares = (packed / (WORK / 16)).clamp(1, pieces.max(1));
            parallel_for(shares, |i| {
                let pieces = i * pieces / shares..(i + 1) * pieces / shares;
                let from = b.at(batch as isize * p.b_strides[0]);
                // SAFETY: pieces are disjoint, and inside the operand.
                unsafe { blocking.pack(from, to.slice(0..to.len()), pieces) };
            });
        }
        let rows = cut(&blocking.split.rows, ROWS);
        let wanted = TASKS.min(matrix / WORK).div_ceil(rows.len()).max(1);
        let columns = cut_parts(blocking.split.vectors.len(), wanted);
        parallel_for(rows.len() * columns.len(), |task| {
            let (rows, columns) = (&rows[task / columns.len()], &columns[task % columns.len()]);
            let part = (rows.clone(), columns.clone());
            // SAFETY: tasks have disjoint parts of the result.
            unsafe { blocking.task(&a, batch, &right, part, out, epilogue) };
        });
    }
}

/// Groups tiles into ranges of about `size` rows.
fn cut(tiles: &[usize], size: usize) -> Vec<Range<usize>> {
    let total: usize = tiles.iter().sum();
    cut_parts(tiles.len(), total.div_ceil(size))
}

fn cut_parts(n: usize, parts: usize) -> Vec<Range<usize>> {
    let parts = parts.clamp(1, n.max(1));
    (0..parts).map(|i| i * n / parts..(i + 1) * n / parts).collect()
}

struct Blocking<'p> {
    isa: Isa,
    p: &'p DotProblem,
    set: TileSet,
    split: Split,
}

impl Blocking<'_> {
    /// Columns with those that fill up the last vector.
    fn width(&self) -> usize {
        self.split.vectors.iter().sum::<usize>() * self.set.lanes
    }

    /// Blocks of the packed operand: a tile's columns over a pass's depth.
    fn pieces(&self) -> usize {
        self.split.vectors.len() * self.p.k.div_ceil(DEPTH)
    }

    /// Start of a tile's columns, in vectors.
    fn first_vector(&self, tile: usize) -> usize {
        self.split.vectors[..tile].iter().sum()
    }

    /// Packs blocks of the right operand as `[tile][step][column in tile]`.
    ///
    /// # Safety
    /// The operand can be read, and nobody else accesses the blocks.
    unsafe fn pack<T: Element>(&self, b: *const T, to: &mut [T::Acc], pieces: Range<usize>) {
        let (k, [_, row, column]) = (self.p.k, self.p.b_strides);
        let passes = k.div_ceil(DEPTH);
        for piece in pieces {
            let (tile, start) = (piece / passes, piece % passes * DEPTH);
            let steps = DEPTH.min(k - start);
            let first = self.first_vector(tile) * self.set.lanes;
            let width = self.split.vectors[tile] * self.set.lanes;
            let columns = width.min(self.p.n - first);
            let to = &mut to[first * k + start * width..][..steps * width];
            let b = b.wrapping_offset(start as isize * row + first as isize * column);
            if columns < width {
                to.fill(T::Acc::default());
            }
            if row == 1 && column > 0 && size_of::<T>() == size_of::<T::Acc>() {
                let t = Transpose {
                    src: b.cast(),
                    src_step: column as usize,
                    rows: columns,
                    columns: steps,
                    dst: to.as_mut_ptr(),
                    dst_step: width,
                };
                // SAFETY: the rows are inside the operand, and `to` has a row for each step.
                unsafe { T::Acc::transpose(self.isa, t) };
                continue;
            }
            for (i, to) in to.chunks_exact_mut(width).enumerate() {
                let b = b.wrapping_offset(i as isize * row);
                if column == 1 {
                    // SAFETY: the row is contiguous and inside the operand.
                    T::widen(unsafe { std::slice::from_raw_parts(b, columns) }, &mut to[..columns]);
                    continue;
                }
                for (j, to) in to[..columns].iter_mut().enumerate() {
                    // SAFETY: inside the operand.
                    *to = unsafe { *b.offset(j as isize * column) }.to_acc();
                }
            }
        }
    }

    /// Computes a part of one result, given as ranges of tiles along rows and columns.
    ///
    /// # Safety
    /// The left operand can be read, and nobody else accesses the part.
    unsafe fn task<T: Element>(
        &self,
        a: &Shared<T>,
        batch: usize,
        right: &[T::Acc],
        (row_tiles, column_tiles): (Range<usize>, Range<usize>),
        out: Out<'_, T>,
        epilogue: Epilogue<'_>,
    ) {
        let (p, lanes) = (self.p, self.set.lanes);
        let first_row: usize = self.split.rows[..row_tiles.start].iter().sum();
        let rows: usize = self.split.rows[row_tiles.clone()].iter().sum();
        let first = self.first_vector(column_tiles.start) * lanes;
        let end = (self.first_vector(column_tiles.end) * lanes).min(p.n);
        let mut buffer;
        let at = batch as isize * p.a_strides[0] + first_row as isize * p.a_strides[1];
        let own = size_of::<T>() == size_of::<T::Acc>();
        let (left, step) = if own && p.a_strides[2] == 1 && p.a_strides[1] >= 0 {
            (a.at(at).cast(), p.a_strides[1] as usize)
        } else {
            buffer = Scratch::<T::Acc>::new(rows * p.k);
            // SAFETY: the rows are inside the operand.
            unsafe { self.copy_rows(a.at(at), rows, &mut buffer) };
            (buffer.as_ptr(), p.k)
        };
        let mut wide = Scratch::<T::Acc>::new(if own { 0 } else { rows * (end - first) });
        let result = (batch * p.m + first_row) * p.n + first;
        let (sums, sums_step) = if own {
            (out.as_ptr().wrapping_add(result).cast(), p.n)
        } else {
            (wide.as_mut_ptr(), end - first)
        };
        let offsets: Vec<usize> = (0..self.split.rows[0]).map(|i| i * step).collect();
        let mut starts = [0; MAX_VECTORS];
        starts.iter_mut().enumerate().for_each(|(v, s)| *s = v * lanes);
        for start in (0..p.k.max(1)).step_by(DEPTH) {
            let len = DEPTH.min(p.k - start);
            for column in column_tiles.clone() {
                let (vectors, from) =
                    (self.split.vectors[column], self.first_vector(column) * lanes);
                let mut row = 0;
                for &m in &self.split.rows[row_tiles.clone()] {
                    let tile = Tile {
                        a: left.wrapping_add(row * step + start),
                        a_unit: 1,
                        a_step: 1,
                        rows: Some(&offsets),
                        b: right[from * p.k + start * vectors * lanes..].as_ptr(),
                        b_unit: 1,
                        b_step: vectors * lanes,
                        columns: starts,
                        runs: &[Run { a: 0, b: 0, len }],
                        c: sums.wrapping_add(row * sums_step + from - first),
                        c_step: sums_step,
                        last: p.n - from - (vectors - 1) * lanes,
                        add: start > 0,
                    };
                    // SAFETY: the tile lies inside the operands and the part of the result.
                    unsafe { T::Acc::kernel(self.isa, m, vectors, false)(&tile) };
                    row += m;
                }
            }
        }
        let row_range = |i: usize| result + i * p.n..result + i * p.n + end - first;
        if !own {
            for (i, wide) in wide.chunks_exact(end - first).enumerate() {
                // SAFETY: the part is the task's own.
                T::narrow(wide, unsafe { out.slice(row_range(i)) });
            }
        }
        match epilogue {
            Some(f) if end - first == p.n => f(result..result + rows * p.n),
            Some(f) => (0..rows).for_each(|i| f(row_range(i))),
            None => {}
        }
    }

    /// Makes rows of the left operand contiguous.
    ///
    /// # Safety
    /// The rows can be read.
    unsafe fn copy_rows<T: Element>(&self, a: *const T, rows: usize, to: &mut [T::Acc]) {
        let (k, [_, row, column]) = (self.p.k, self.p.a_strides);
        if k == 0 {
            return;
        }
        if row == 1 && column > 0 && size_of::<T>() == size_of::<T::Acc>() {
            let t = Transpose {
                src: a.cast(),
                src_step: column as usize,
                rows: k,
                columns: rows,
                dst: to.as_mut_ptr(),
                dst_step: k,
            };
            // SAFETY: the caller vouches for the rows, and `to` has one for each.
            unsafe { T::Acc::transpose(self.isa, t) };
            return;
        }
        for (i, to) in to.chunks_exact_mut(k).enumerate() {
            let a = a.wrapping_offset(i as isize * row);
            if column == 1 {
                // SAFETY: the row is contiguous and can be read.
                T::widen(unsafe { std::slice::from_raw_parts(a, k) }, to);
                continue;
            }
            for (j, to) in to.iter_mut().enumerate() {
                // SAFETY: the caller vouches for the rows.
                *to = unsafe { *a.offset(j as isize * column) }.to_acc();
            }
        }
    }
}
