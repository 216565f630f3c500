//! Elementwise programs that read across: the dense axis of an input is not that of the outputs.
//!
//! A block copies a square of such an input to shared memory along the input's dense axis, and
//! reads it from there along the outputs'. So neighbouring threads touch neighbouring elements on
//! both sides.

use cupola_core::DType;

use super::map::{BLOCK, Program};
use super::view::{Axes, View};
use super::{Draft, Missing};
use crate::ir::{Number, Shared, Ty, Val};

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
struct Hand {
    /// The first of the neighbours.
    first: Val,
    /// The first row.
    row: Val,
    /// From a row to the next one.
    apart: u32,
    /// How many rows.
    rows: u32,
    /// How many neighbours.
    count: u32,
}

impl Turn {
    /// What is worth turning of `axes`, whose operands are `inputs` and then `outputs`.
    pub fn of(draft: &Draft<'_>, axes: &Axes, inputs: &[View], outputs: &[View]) -> Option<Turn> {
        let last = axes.sizes.len().checked_sub(1)?;
        let dense = axes.strides[inputs.len()..].iter().all(|strides| strides[last] == 1);
        if !dense || outputs.is_empty() || axes.sizes[last] < SHORTEST {
            return None;
        }
        let size = |i: usize| draft.build.dtype(inputs[i].buf).size();
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
        let most = SHARED.min(draft.build.target.shared_bytes as usize);
        let room = |side: u32| most / (side * (side + 1)) as usize;
        let cells: usize = inputs.iter().map(|&i| size(i).max(4)).sum();
        let wide = draft.build.target.vector_bytes > 0 && cells <= room(64);
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
    pub fn elements(
        &self,
        draft: &mut Draft<'_>,
        program: &Program<'_>,
        axes: &Axes,
    ) -> Result<u64, Missing> {
        let last = axes.sizes.len() - 1;
        let mut squares = axes.sizes.clone();
        squares[self.axis] = squares[self.axis].div_ceil(self.side as usize);
        squares[last] = squares[last].div_ceil(self.side as usize);
        let total: u64 = squares.iter().map(|&n| n as u64).product();
        let tiles: Vec<Vec<Shared>> = (self.inputs.iter())
            .map(|&i| {
                let dtype = draft.build.dtype(program.inputs[i].buf);
                let parts = if dtype == DType::C64 { 2 } else { 1 };
                let cells = self.side * (self.side + 1);
                (0..parts).map(|_| draft.build.shared(Ty::of(dtype), cells)).collect()
            })
            .collect();
        let mut done = Ok(());
        draft.blocks(total, |draft, square| {
            let mut corner = draft.unflatten(square, &squares);
            let side = draft.index(i64::from(self.side));
            for axis in [self.axis, last] {
                corner[axis] = draft.build.mul(corner[axis], side);
            }
            for (&i, tile) in self.inputs.iter().zip(&tiles) {
                self.load(draft, program.inputs[i], axes, i, &corner, tile);
            }
            draft.build.barrier();
            done = self.store(draft, program, axes, &corner, &tiles);
            draft.build.barrier();
        });
        done.map(|()| total * u64::from(BLOCK))
    }

    /// No more than `count` neighbours, so that no thread of a block is left over.
    fn most(&self, count: u32) -> u32 {
        count.min(self.side * self.side / BLOCK)
    }

    fn hand(&self, draft: &mut Draft<'_>, count: u32) -> Hand {
        let b = &mut draft.build;
        let (thread, a_row, count_val) = (b.thread(), b.u32(self.side / count), b.u32(count));
        let place = b.rem(thread, a_row);
        let (first, row) = (b.mul(place, count_val), b.div(thread, a_row));
        let apart = BLOCK * count / self.side;
        Hand { first, row, apart, rows: self.side / apart, count }
    }

    /// Copies a square of an input, whose rows are along its dense axis.
    fn load(
        &self,
        draft: &mut Draft<'_>,
        view: View,
        axes: &Axes,
        input: usize,
        corner: &[Val],
        tile: &[Shared],
    ) {
        let last = axes.sizes.len() - 1;
        let dtype = draft.build.dtype(view.buf);
        let own = axes.of([input]).ending_with(self.axis);
        let count = self.most(own.vector(&[dtype], draft.build.target.vector_bytes));
        let hand = self.hand(draft, count);
        let mut index = corner.to_vec();
        index[self.axis] =
            self.inside(draft, corner[self.axis], hand.first, axes.sizes[self.axis], count);
        // All loads are under way before the first is waited for: what is outside reads the last
        // row again.
        let mut loaded = Vec::new();
        for step in 0..hand.rows {
            let row = draft.build.u32(step * hand.apart);
            let row = draft.build.add(hand.row, row);
            index[last] = self.inside(draft, corner[last], row, axes.sizes[last], 1);
            let strides = &axes.strides[input];
            let at = draft.place(view.offset, &index, strides);
            let numbers = draft.load_at(view, at, false, count);
            loaded.push((row, numbers));
        }
        for (row, numbers) in loaded {
            let start = self.cell(draft, row, hand.first);
            for (i, number) in numbers.into_iter().enumerate() {
                let step = draft.build.u32(i as u32);
                let at = draft.build.add(start, step);
                let parts = tile.iter().zip(number.parts());
                parts.for_each(|(&tile, v)| draft.build.store_shared(tile, at, v));
            }
        }
    }

    /// `corner + own`, or where the last `count` elements of `size` start.
    fn inside(&self, draft: &mut Draft<'_>, corner: Val, own: Val, size: usize, count: u32) -> Val {
        let own = draft.build.convert(own, draft.index);
        let at = draft.build.add(corner, own);
        if size.is_multiple_of(self.side as usize) {
            return at;
        }
        let most = draft.index(size as i64 - i64::from(count));
        draft.build.min_int(at, most)
    }

    /// Where an element of a square is; a gap after each row keeps columns in different banks.
    fn cell(&self, draft: &mut Draft<'_>, row: Val, place: Val) -> Val {
        let pitch = draft.build.u32(self.side + 1);
        let row = draft.build.mul(row, pitch);
        draft.build.add(row, place)
    }

    /// Runs the program for a square, whose rows are along the outputs' dense axis now.
    fn store(
        &self,
        draft: &mut Draft<'_>,
        program: &Program<'_>,
        axes: &Axes,
        corner: &[Val],
        tiles: &[Vec<Shared>],
    ) -> Result<(), Missing> {
        let last = axes.sizes.len() - 1;
        let direct: Vec<usize> =
            (0..axes.strides.len()).filter(|i| !self.inputs.contains(i)).collect();
        let views: Vec<View> = program.inputs.iter().chain(program.outputs).copied().collect();
        let dtypes: Vec<DType> = direct.iter().map(|&i| draft.build.dtype(views[i].buf)).collect();
        let any_complex = views.iter().any(|v| draft.build.dtype(v.buf) == DType::C64);
        let count = match any_complex {
            true => 1,
            false => self.most(axes.of(direct).vector(&dtypes, draft.build.target.vector_bytes)),
        };
        let hand = self.hand(draft, count);
        let (zero, rows, one) =
            (draft.build.u32(0), draft.build.u32(hand.rows), draft.build.u32(1));
        let mut done = Ok(());
        draft.range(zero, rows, one, |draft, step| {
            let apart = draft.build.u32(hand.apart);
            let row = draft.build.mul(step, apart);
            let row = draft.build.add(hand.row, row);
            let mut index = corner.to_vec();
            let mut valid = draft.build.bool(true);
            for (axis, own) in [(self.axis, row), (last, hand.first)] {
                let own = draft.build.convert(own, draft.index);
                index[axis] = draft.build.add(corner[axis], own);
                let size = draft.index(axes.sizes[axis] as i64);
                let below = draft.build.lt(index[axis], size);
                valid = draft.build.and(valid, below);
            }
            draft.build.open_when();
            let mut inputs = Vec::new();
            for (i, &view) in program.inputs.iter().enumerate() {
                inputs.push(match self.inputs.iter().position(|&turned| turned == i) {
                    Some(at) => self.column(draft, &tiles[at], hand.first, row, hand.count),
                    None => draft.load_many(view, &index, &axes.strides[i], count),
                });
            }
            done = program.finish(draft, axes, &index, &inputs, count);
            draft.build.close_when(valid);
        });
        done
    }

    /// Neighbours of a square's column.
    fn column(
        &self,
        draft: &mut Draft<'_>,
        tile: &[Shared],
        first: Val,
        column: Val,
        count: u32,
    ) -> Vec<Number> {
        (0..count)
            .map(|i| {
                let step = draft.build.u32(i);
                let row = draft.build.add(first, step);
                let at = self.cell(draft, row, column);
                let parts: Vec<Val> =
                    tile.iter().map(|&tile| draft.build.load_shared(tile, at)).collect();
                match parts[..] {
                    [re, im] => Number::Complex(re, im),
                    _ => Number::Real(parts[0]),
                }
            })
            .collect()
    }
}
