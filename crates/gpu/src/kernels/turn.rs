//! Elementwise programs that read across: the dense axis of an input is not that of the outputs.
//!
//! A block copies a square of such an input to shared memory along the input's dense axis, and
//! reads it from there along the outputs'. So neighbouring threads touch neighbouring elements on
//! both sides.

use cupola_core::DType;

use super::Draft;
use super::map::{BLOCK, Program};
use super::view::{Axes, View, Walk, unflatten};
use crate::ir::{SharedNumber, Val};

/// The axes that are turned are at least this long: of shorter ones caches hold all of a row.
const SHORTEST: usize = 16;
/// The most bytes that a block shares, so that several blocks fit beside each other.
const SHARED: usize = 48 << 10;

/// Which inputs a block turns.
pub struct Turn {
    /// Their dense axis.
    axis: usize,
    /// Which they are.
    inputs: Vec<usize>,
    /// The sides of a square.
    side: u32,
}

/// A square's threads: each takes `count` neighbours of a row, and then a row further on.
struct Hand<'k> {
    /// The first of the neighbours.
    first: Val<'k>,
    /// The first row.
    row: Val<'k>,
    /// From a row to the next one.
    apart: u32,
    /// How many rows.
    rows: u32,
    /// How many neighbours.
    count: u32,
}

impl Turn {
    /// What is worth turning of `axes`, whose operands are `inputs` and then `outputs`.
    pub fn of(k: &Draft, axes: &Axes, inputs: &[View<'_>], outputs: &[View<'_>]) -> Option<Turn> {
        let last = axes.sizes.len().checked_sub(1)?;
        let dense = axes.strides[inputs.len()..].iter().all(|strides| strides[last] == 1);
        if !dense || outputs.is_empty() || axes.sizes[last] < SHORTEST {
            return None;
        }
        let size = |i: usize| inputs[i].buf.dtype.size();
        let across = |axis: usize| -> Vec<usize> {
            (0..inputs.len())
                .filter(|&i| axes.strides[i][axis] == 1 && !matches!(axes.strides[i][last], 0 | 1))
                .collect()
        };
        let (axis, mut inputs) = (0..last)
            .filter(|&axis| axes.sizes[axis] >= SHORTEST)
            .map(|axis| (axis, across(axis)))
            .max_by_key(|(_, inputs)| inputs.iter().map(|&i| size(i)).sum::<usize>())
            .filter(|(_, inputs)| !inputs.is_empty())?;
        let most = SHARED.min(k.target.shared_bytes as usize);
        let room = |side: u32| most / (side * (side + 1)) as usize;
        let cells: usize = inputs.iter().map(|&i| size(i).max(4)).sum();
        let wide = k.target.vector_bytes > 0 && cells <= room(64);
        let side = if wide { 64 } else { 32 };
        // What finds no room is read as it lies.
        let mut room = room(side);
        inputs.retain(|&i| {
            let fits = size(i).max(4) <= room;
            room -= if fits { size(i).max(4) } else { 0 };
            fits
        });
        (!inputs.is_empty()).then_some(Turn { axis, inputs, side })
    }

    /// Runs `program` for every element: how many threads that takes.
    pub fn elements(&self, program: &Program<'_, '_>, axes: &Axes) -> u64 {
        let k = program.k;
        let last = axes.sizes.len() - 1;
        let mut squares = axes.sizes.clone();
        squares[self.axis] = squares[self.axis].div_ceil(self.side as usize);
        squares[last] = squares[last].div_ceil(self.side as usize);
        let total: u64 = squares.iter().map(|&n| n as u64).product();
        let cells = self.side * (self.side + 1);
        let tiles: Vec<SharedNumber> = (self.inputs.iter())
            .map(|&i| k.shared_number(program.inputs[i].buf.dtype, cells))
            .collect();
        let (squares, walk) = (k.divisors(&squares), k.walk(axes));
        k.blocks(total, |square| {
            let mut corner = unflatten(square, &squares);
            for axis in [self.axis, last] {
                corner[axis] = corner[axis] * self.side;
            }
            for (&i, tile) in self.inputs.iter().zip(&tiles) {
                self.load(k, program.inputs[i], (axes, &walk.strides[i]), i, &corner, *tile);
            }
            k.barrier();
            self.store(program, (axes, &walk), &corner, &tiles);
            k.barrier();
        });
        total * u64::from(BLOCK)
    }

    /// No more than `count` neighbours, so that no thread of a block is left over.
    fn most(&self, count: u32) -> u32 {
        count.min(self.side * self.side / BLOCK)
    }

    fn hand<'k>(&self, k: &'k Draft, count: u32) -> Hand<'k> {
        let (thread, a_row) = (k.thread(), self.side / count);
        let (first, row) = (thread % a_row * count, thread / a_row);
        let apart = BLOCK * count / self.side;
        Hand { first, row, apart, rows: self.side / apart, count }
    }

    /// Copies a square of an input, whose rows are along its dense axis.
    fn load<'k>(
        &self,
        k: &'k Draft,
        view: View<'k>,
        (axes, strides): (&Axes, &[Val<'k>]),
        input: usize,
        corner: &[Val<'k>],
        tile: SharedNumber,
    ) {
        let last = axes.sizes.len() - 1;
        let own = axes.of([input]).ending_with(self.axis);
        let count = self.most(own.vector(&[view.buf.dtype], k.target.vector_bytes));
        let hand = self.hand(k, count);
        let mut index = corner.to_vec();
        let ends = [(self.axis, count), (last, 1)].map(|(axis, count)| {
            let size = axes.sizes[axis];
            // Of whole squares nothing is outside.
            let cut = !size.is_multiple_of(self.side as usize);
            cut.then(|| k.extent(size - count as usize))
        });
        let inside = |axis: usize, own: Val<'k>, end: Option<Val<'k>>| {
            let at = corner[axis] + k.as_index(own);
            end.map_or(at, |end| at.min(end))
        };
        index[self.axis] = inside(self.axis, hand.first, ends[0]);
        // All loads are under way before the first is waited for: what is outside reads the last
        // row again.
        let mut loaded = Vec::new();
        for step in 0..hand.rows {
            let row = hand.row + step * hand.apart;
            index[last] = inside(last, row, ends[1]);
            let at = view.at(&index, strides);
            loaded.push((row, view.load_at(at, false, count)));
        }
        for (row, numbers) in loaded {
            let start = self.cell(row, hand.first);
            for (i, number) in numbers.into_iter().enumerate() {
                tile.store(start + i, number);
            }
        }
    }

    /// Where an element of a square is; the padding after each row keeps columns in different
    /// banks.
    fn cell<'k>(&self, row: Val<'k>, place: Val<'k>) -> Val<'k> {
        row * (self.side + 1) + place
    }

    /// Runs the program for a square, whose rows are along the outputs' dense axis now.
    fn store<'k>(
        &self,
        program: &Program<'k, '_>,
        (axes, walk): (&Axes, &Walk<'k>),
        corner: &[Val<'k>],
        tiles: &[SharedNumber],
    ) {
        let k = program.k;
        let last = axes.sizes.len() - 1;
        let direct: Vec<usize> =
            (0..axes.strides.len()).filter(|i| !self.inputs.contains(i)).collect();
        let views: Vec<View<'k>> = program.inputs.iter().chain(program.outputs).copied().collect();
        let dtypes: Vec<DType> = direct.iter().map(|&i| views[i].buf.dtype).collect();
        let count = match views.iter().any(|view| view.buf.dtype.is_complex()) {
            true => 1,
            false => self.most(axes.of(direct).vector(&dtypes, k.target.vector_bytes)),
        };
        let hand = self.hand(k, count);
        k.count(k.u32(hand.rows), |step| {
            let row = hand.row + step * hand.apart;
            let mut index = corner.to_vec();
            let mut valid = k.bool(true);
            for (axis, own) in [(self.axis, row), (last, hand.first)] {
                index[axis] = corner[axis] + k.as_index(own);
                valid = valid & index[axis].lt(walk.sizes[axis].size);
            }
            k.when(valid, || {
                let mut inputs = Vec::new();
                for (i, view) in program.inputs.iter().enumerate() {
                    inputs.push(match self.inputs.iter().position(|&turned| turned == i) {
                        // Neighbours of the square's column.
                        Some(at) => (0..hand.count)
                            .map(|i| tiles[at].load(self.cell(hand.first + i, row)))
                            .collect(),
                        None => view.load_many(&index, &walk.strides[i], count),
                    });
                }
                program.finish(walk, &index, &inputs, count);
            });
        });
    }
}
