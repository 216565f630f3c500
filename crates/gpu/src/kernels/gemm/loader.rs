//! From global memory into the slices in shared memory.

use cupola_core::DType;

use super::super::Draft;
use super::super::view::View;
use super::{Addresses, BLOCK, Cut, Product, Source, Unit};
use crate::ir::{Build, Number, Shared, Ty, Val};

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

/// Rows or depths are padded, so that threads that read together hit different banks.
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
pub struct Loader<'k, 'a> {
    k: &'k Draft,
    places: &'a dyn Addresses<'k>,
    along_depth: bool,
    view: View<'k>,
    /// How long the summed axis is.
    all: Val<'k>,
    /// Where each of the thread's rows stands in the slice, what it needs, and whether it is there.
    outer: Vec<(Val<'k>, Vec<Val<'k>>, Val<'k>)>,
    /// The thread's depths.
    inner: Vec<Val<'k>>,
    /// The vector width, along the depth or along the rows.
    width: u32,
    unit: Unit,
    depth: u32,
    lay: Lay,
}

/// What was loaded for each depth and row: the elements, and whether they are there.
pub type Held<'k> = Vec<(Vec<Number<'k>>, Val<'k>)>;

/// Which rows of which operand.
pub struct Slice<'k, 'a> {
    pub source: &'a dyn Source,
    pub places: &'a dyn Addresses<'k>,
    pub view: View<'k>,
    pub batch: Val<'k>,
    /// The first row.
    pub first: Val<'k>,
    /// How many rows there are in all.
    pub size: Val<'k>,
    /// How long the summed axis is.
    pub depth: Val<'k>,
}

impl<'k, 'a> Loader<'k, 'a> {
    pub fn new(
        k: &'k Draft,
        slice: Slice<'k, 'a>,
        thread: Val<'k>,
        side: u32,
        cut: &Cut,
        lay: Lay,
    ) -> Self {
        let Slice { source, places, view, batch, first, size, depth: all } = slice;
        let along = source.along_depth();
        let Cut { unit, depth, .. } = *cut;
        let pairs = matches!(lay.order, Order::Pairs(_));
        // A thread has one vector at least, or two where rows go in pairs.
        let most = lay.rows * depth / BLOCK / if pairs { 2 } else { 1 };
        let most = most.min((k.target.vector_bytes / view.buf.dtype.size()) as u32);
        // Pairs gain little, and every width is a kernel of its own.
        let width = source.width(most);
        let width = if width < most.min(4) { 1 } else { width };
        k.assume(view.bound, width);
        // Neighbouring threads have neighbouring vectors.
        let lanes = if along { depth } else { lay.rows } / width;
        let (slow, fast) = (thread / lanes, thread % lanes * width);
        let apart = BLOCK / lanes;
        let count = if along { lay.rows } else { depth } / apart;
        let slow: Vec<Val<'k>> = (0..count)
            .map(|i| match pairs {
                false => slow + i * apart,
                true => {
                    let pair = slow + i / 2 * apart;
                    pair / 8 * 16 + pair % 8 + i % 2 * 8
                }
            })
            .collect();
        let (rows, inner) = if along { (slow, vec![fast]) } else { (vec![fast], slow) };
        let outer = rows
            .into_iter()
            .map(|row| {
                let at = first + k.as_index(row);
                let mut valid = at.lt(size);
                if lay.rows > side {
                    // Beyond the tile, where nobody reads.
                    valid = valid & row.lt(side);
                }
                (row, places.outer(batch, valid.select(at, 0)), valid)
            })
            .collect();
        let along_depth = along;
        Loader { k, places, along_depth, view, all, outer, inner, width, unit, depth, lay }
    }

    /// Loads the elements of a step. Nothing here branches or waits for a load, so that all are
    /// under way at once: what is not there is read at the operand's first element.
    pub fn fetch(&self, step: Val<'k>) -> Held<'k> {
        let start = step * self.depth;
        let mut held = Held::new();
        for &depth in &self.inner {
            let at = start + self.k.as_index(depth);
            let within = at.lt(self.all);
            let inner = self.places.inner(within.select(at, 0));
            for (_, outer, valid) in &self.outer {
                let (place, there) = self.places.place(outer, &inner);
                let holds = within & *valid;
                let holds = there.map_or(holds, |there| holds & there);
                let at = self.view.offset + holds.select(place, 0);
                let numbers = match self.width {
                    1 => vec![self.view.buf.load_number(at)],
                    width => {
                        let values = self.view.buf.load_vector(at, width);
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
        p: &Product<'_>,
        held: &Held<'k>,
        shared: &[Shared],
        copy: Option<Val<'k>>,
    ) {
        let start = self.lay.start(self.k, copy);
        let mut held = held.iter();
        for &depth in &self.inner {
            let together = if matches!(self.lay.order, Order::Pairs(_)) { 2 } else { 1 };
            for rows in self.outer.chunks(together) {
                let vectors: Vec<Vec<Number<'k>>> =
                    held.by_ref().take(rows.len()).map(|vector| self.prepared(p, vector)).collect();
                for (plane, &array) in shared.iter().enumerate() {
                    let values: Vec<Vec<Val<'k>>> = (vectors.iter())
                        .map(|v| v.iter().filter_map(|n| n.parts().nth(plane)).collect())
                        .collect();
                    self.store(array, start, rows[0].0, depth, &values);
                }
            }
        }
    }

    /// Elements as they are multiplied.
    fn prepared(
        &self,
        p: &Product<'_>,
        (numbers, holds): &(Vec<Number<'k>>, Val<'k>),
    ) -> Vec<Number<'k>> {
        let nothing = self.k.int(0, Ty::of(p.accumulate));
        let cuts = matches!((self.unit, p.operand), (Unit::Matrices { .. }, DType::F32));
        (numbers.iter())
            .map(|number| {
                let number = number.cast(p.operand, p.accumulate);
                let number = if cuts { number.map(|v| v.tf32()) } else { number };
                number.map(|v| holds.select(v, nothing))
            })
            .collect()
    }

    fn store(
        &self,
        array: Shared,
        start: Val<'k>,
        row: Val<'k>,
        depth: Val<'k>,
        values: &[Vec<Val<'k>>],
    ) {
        match self.lay.order {
            Order::Pairs(apart) => {
                let (upper, lower) = (&values[0], &values[1]);
                let mixed: Vec<Val<'k>> =
                    upper.iter().zip(lower).flat_map(|(&u, &l)| [u, l]).collect();
                let at = pair_at(row, apart) + depth * 2 + start;
                for (i, four) in mixed.chunks(4).enumerate() {
                    array.store_vector(at + i * 4, four);
                }
            }
            Order::Plain { row: row_apart, depth: depth_apart } => {
                let [values] = values else { return };
                let at = plain_at(row, depth, [row_apart, depth_apart]) + start;
                let apart = if self.along_depth { depth_apart } else { row_apart };
                if apart == 1 && matches!(self.unit, Unit::Matrices { .. }) {
                    return array.store_vector(at, values);
                }
                for (i, &v) in values.iter().enumerate() {
                    array.store(at + i as u32 * apart, v);
                }
            }
        }
    }
}

impl Lay {
    /// Where a copy starts.
    pub fn start<'k>(&self, k: &'k Build, copy: Option<Val<'k>>) -> Val<'k> {
        copy.map_or_else(|| k.u32(0), |copy| copy * self.len)
    }
}

/// Where the pair of a row is.
pub fn pair_at(row: Val<'_>, apart: u32) -> Val<'_> {
    // Of each 16 rows the pairs are named by the first 8.
    (row / 16 * 8 + row % 8) * apart
}

/// Where an element is of rows and depths so far apart.
pub fn plain_at<'k>(row: Val<'k>, depth: Val<'k>, apart: [u32; 2]) -> Val<'k> {
    row * apart[0] + depth * apart[1]
}
