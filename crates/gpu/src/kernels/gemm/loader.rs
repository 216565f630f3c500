//! From memory into the shared slices.

use cupola_core::DType;

use super::super::Draft;
use super::super::view::View;
use super::{BLOCK, Cut, Product, Source, Unit};
use crate::ir::{Build, Number, Shared, Ty, Un, Val};

/// How a slice of an operand lies in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Lay {
    /// How elements are found.
    pub order: Order,
    /// Rows, a power of two.
    pub rows: u32,
    /// How many elements there are.
    pub len: u32,
}

/// The gaps let threads that read together meet different banks.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// So far apart are rows, and depths.
    Plain { row: u32, depth: u32 },
    /// Rows q and q + 8 of each 16 lie together, q counted over all, so far apart; of every two
    /// depths the four elements that a thread gives to a matrix unit are neighbours.
    Pairs(u32),
}

impl Lay {
    /// The lay of a side of a tile.
    pub fn of(cut: &Cut, side: u32, along_depth: bool, is_first: bool) -> Lay {
        let rows = side.next_power_of_two();
        let depth = cut.depth;
        let (order, len) = match (cut.unit, along_depth, is_first) {
            (Unit::Threads(_), _, _) => {
                (Order::Plain { row: 1, depth: rows + 1 }, (rows + 1) * depth)
            }
            (Unit::Matrices { .. }, true, true) => {
                let apart = depth * 2 + 16;
                (Order::Pairs(apart), rows / 2 * apart)
            }
            (Unit::Matrices { .. }, true, false) => {
                (Order::Plain { row: depth + 8, depth: 1 }, rows * (depth + 8))
            }
            (Unit::Matrices { .. }, false, _) => {
                (Order::Plain { row: 1, depth: rows + 4 }, (rows + 4) * depth)
            }
        };
        Lay { order, rows, len }
    }
}

/// What a thread brings into shared memory: vectors at a fixed few rows (or columns), or at a fixed
/// few depths.
pub struct Loader<'a> {
    source: &'a dyn Source,
    view: View,
    /// Where each of the thread's rows stands in the slice, what it needs, and whether it is there.
    outer: Vec<(Val, Vec<Val>, Val)>,
    /// The thread's depths.
    inner: Vec<Val>,
    /// How many neighbours a vector has, along the depth or along the rows.
    width: u32,
    unit: Unit,
    depth: u32,
    lay: Lay,
}

/// What was loaded for each depth and row: the elements, and whether they are there.
pub type Held = Vec<(Vec<Number>, Val)>;

/// Which rows of which operand.
pub struct Slice<'a> {
    pub source: &'a dyn Source,
    pub view: View,
    pub batch: Val,
    /// The first row.
    pub first: Val,
    /// How many rows there are in all.
    pub size: u64,
}

impl<'a> Loader<'a> {
    pub fn new(
        draft: &mut Draft<'_>,
        slice: Slice<'a>,
        thread: Val,
        side: u32,
        cut: &Cut,
        lay: Lay,
    ) -> Self {
        let Slice { source, view, batch, first, size } = slice;
        let along = source.along_depth();
        let Cut { unit, depth, .. } = *cut;
        let pairs = matches!(lay.order, Order::Pairs(_));
        // A thread has one vector at least, or two where rows go in pairs.
        let most = lay.rows * depth / BLOCK / if pairs { 2 } else { 1 };
        let size_of = draft.build.dtype(view.buf).size();
        let width = source.width(most.min((draft.build.target.vector_bytes / size_of) as u32));
        draft.assume(view.place, width);
        // Neighbouring threads have neighbouring vectors.
        let lanes = if along { depth } else { lay.rows } / width;
        let b = &mut draft.build;
        let (lanes_val, width_val) = (b.u32(lanes), b.u32(width));
        let (slow, fast) = (b.div(thread, lanes_val), b.rem(thread, lanes_val));
        let fast = b.mul(fast, width_val);
        let apart = BLOCK / lanes;
        let count = if along { lay.rows } else { depth } / apart;
        let slow: Vec<Val> = (0..count)
            .map(|i| match pairs {
                false => {
                    let away = b.u32(i * apart);
                    b.add(slow, away)
                }
                true => {
                    let (away, eight) = (b.u32(i / 2 * apart), b.u32(8));
                    let pair = b.add(slow, away);
                    let (sixteen, half) = (b.u32(16), b.u32(i % 2 * 8));
                    let (group, own) = (b.div(pair, eight), b.rem(pair, eight));
                    let row = b.mul(group, sixteen);
                    let row = b.add(row, own);
                    b.add(row, half)
                }
            })
            .collect();
        let (rows, inner) = if along { (slow, vec![fast]) } else { (vec![fast], slow) };
        let outer = rows
            .into_iter()
            .map(|row| {
                let wide = draft.build.convert(row, draft.index);
                let at = draft.build.add(first, wide);
                let limit = draft.index(size as i64);
                let mut valid = draft.build.lt(at, limit);
                if lay.rows > side {
                    // Beyond the tile, where nobody reads.
                    let side = draft.build.u32(side);
                    let within = draft.build.lt(row, side);
                    valid = draft.build.and(valid, within);
                }
                let zero = draft.index(0);
                let safe = draft.build.select(valid, at, zero);
                (row, source.outer(draft, batch, safe), valid)
            })
            .collect();
        Loader { source, view, outer, inner, width, unit, depth, lay }
    }

    /// Loads the elements of a step. Nothing here branches or waits for a load, so that all are
    /// under way at once: what is not there is read at the operand's first element.
    pub fn fetch(&self, draft: &mut Draft<'_>, p: &Product<'_>, step: Val) -> Held {
        let depth = draft.index(i64::from(self.depth));
        let start = draft.build.mul(step, depth);
        let mut held = Held::new();
        for &depth in &self.inner {
            let wide = draft.build.convert(depth, draft.index);
            let at = draft.build.add(start, wide);
            let limit = draft.index(p.sizes.depth as i64);
            let within = draft.build.lt(at, limit);
            let zero = draft.index(0);
            let safe = draft.build.select(within, at, zero);
            let inner = self.source.inner(draft, safe);
            for (_, outer, valid) in &self.outer {
                let (place, there) = self.source.place(draft, outer, &inner);
                let b = &mut draft.build;
                let mut holds = b.and(within, *valid);
                if let Some(there) = there {
                    holds = b.and(holds, there);
                }
                let place = b.select(holds, place, zero);
                let offset = b.add(self.view.offset, place);
                let numbers = match self.width {
                    1 => vec![b.load_number(self.view.buf, offset)],
                    width => {
                        let values = b.load_vector(self.view.buf, offset, width);
                        values.into_iter().map(Number::Real).collect()
                    }
                };
                held.push((numbers, holds));
            }
        }
        held
    }

    /// Puts what was loaded into one of the copies of shared memory, and 0 for what is not there.
    pub fn share(
        &self,
        b: &mut Build<'_>,
        p: &Product<'_>,
        held: &Held,
        shared: &[Shared],
        copy: Option<Val>,
    ) {
        let start = self.lay.start(b, copy);
        let mut held = held.iter();
        for &depth in &self.inner {
            let together = if matches!(self.lay.order, Order::Pairs(_)) { 2 } else { 1 };
            for rows in self.outer.chunks(together) {
                let vectors: Vec<Vec<Number>> = held
                    .by_ref()
                    .take(rows.len())
                    .map(|vector| self.prepared(b, p, vector))
                    .collect();
                for (plane, &array) in shared.iter().enumerate() {
                    let values: Vec<Vec<Val>> = (vectors.iter())
                        .map(|v| v.iter().filter_map(|n| n.parts().nth(plane)).collect())
                        .collect();
                    self.store(b, array, start, rows[0].0, depth, values);
                }
            }
        }
    }

    /// Elements as they are multiplied.
    fn prepared(
        &self,
        b: &mut Build<'_>,
        p: &Product<'_>,
        (numbers, holds): &(Vec<Number>, Val),
    ) -> Vec<Number> {
        let nothing = b.int(0, Ty::of(p.accumulate));
        (numbers.iter())
            .map(|&number| {
                let number = b.cast(number, p.operand, p.accumulate);
                let number = match (self.unit, p.operand) {
                    (Unit::Matrices { .. }, DType::F32) => {
                        Number::Real(b.un(Un::Tf32, number.real()))
                    }
                    _ => number,
                };
                match number {
                    Number::Real(v) => Number::Real(b.select(*holds, v, nothing)),
                    Number::Complex(re, im) => Number::Complex(
                        b.select(*holds, re, nothing),
                        b.select(*holds, im, nothing),
                    ),
                }
            })
            .collect()
    }

    fn store(
        &self,
        b: &mut Build<'_>,
        array: Shared,
        start: Val,
        row: Val,
        depth: Val,
        values: Vec<Vec<Val>>,
    ) {
        match self.lay.order {
            Order::Pairs(apart) => {
                let (upper, lower) = (&values[0], &values[1]);
                let mixed: Vec<Val> = upper.iter().zip(lower).flat_map(|(&u, &l)| [u, l]).collect();
                let at = pair_at(b, row, apart);
                let two = b.u32(2);
                let depth = b.mul(depth, two);
                let at = b.add(at, depth);
                let at = b.add(at, start);
                for (i, four) in mixed.chunks(4).enumerate() {
                    let away = b.u32(i as u32 * 4);
                    let at = b.add(at, away);
                    b.store_shared_vector(array, at, four);
                }
            }
            Order::Plain { row: row_apart, depth: depth_apart } => {
                let [values] = &values[..] else { return };
                let at = plain_at(b, row, depth, [row_apart, depth_apart]);
                let at = b.add(at, start);
                let apart = if self.source.along_depth() { depth_apart } else { row_apart };
                if apart == 1 && matches!(self.unit, Unit::Matrices { .. }) {
                    return b.store_shared_vector(array, at, values);
                }
                for (i, &v) in values.iter().enumerate() {
                    let away = b.u32(i as u32 * apart);
                    let to = b.add(at, away);
                    b.store_shared(array, to, v);
                }
            }
        }
    }
}

impl Lay {
    /// Where a copy starts.
    pub fn start(&self, b: &mut Build<'_>, copy: Option<Val>) -> Val {
        let Some(copy) = copy else { return b.u32(0) };
        let len = b.u32(self.len);
        b.mul(copy, len)
    }
}

/// Where the pair of a row is.
pub fn pair_at(b: &mut Build<'_>, row: Val, apart: u32) -> Val {
    // Of each 16 rows the pairs are named by the first 8.
    let (sixteen, eight, apart) = (b.u32(16), b.u32(8), b.u32(apart));
    let (group, own) = (b.div(row, sixteen), b.rem(row, eight));
    let group = b.mul(group, eight);
    let pair = b.add(group, own);
    b.mul(pair, apart)
}

/// Where an element is of rows and depths so far apart.
pub fn plain_at(b: &mut Build<'_>, row: Val, depth: Val, apart: [u32; 2]) -> Val {
    let [row, depth] = [(row, apart[0]), (depth, apart[1])].map(|(index, apart)| {
        let apart = b.u32(apart);
        b.mul(index, apart)
    });
    b.add(row, depth)
}
