//! From the shared slices to sums.

use super::loader::{Lay, Order, pair_at, plain_at};
use super::{SIDE, Unit};
use crate::ir::{Build, Factors, NumberVar, Shared, Val};

/// Which part of the tile is a thread's.
pub enum Hand<'k> {
    /// How many rows and columns it has, and the first ones.
    Threads([u32; 2], [Val<'k>; 2]),
    /// Where its warp's matrices start, and its place in them: g and t.
    Matrices { matrices: [u32; 2], start: [Val<'k>; 2], g: Val<'k>, t: Val<'k> },
}

/// The shared slices of both operands.
pub struct Slices<'a> {
    pub shared: [&'a [Shared]; 2],
    pub lay: [Lay; 2],
}

impl<'k> Hand<'k> {
    pub fn new(unit: Unit, thread: Val<'k>) -> Hand<'k> {
        match unit {
            Unit::Threads(each) => Hand::Threads(each, [thread / SIDE, thread % SIDE]),
            Unit::Matrices { groups, matrices } => {
                let (warp, lane) = (thread / 32, thread % 32);
                let (row, column) = (warp / groups[1], warp % groups[1]);
                let start = [row * (matrices[0] * 16), column * (matrices[1] * 8)];
                Hand::Matrices { matrices, start, g: lane / 4, t: lane % 4 }
            }
        }
    }

    /// Multiplies one of the copies of the shared slices.
    pub fn multiply(
        &self,
        k: &'k Build,
        depth: u32,
        slices: &Slices<'_>,
        copy: Option<Val<'k>>,
        sums: &[NumberVar<'k>],
    ) {
        let starts = slices.lay.map(|lay| lay.start(k, copy));
        match self {
            Hand::Threads(each, at) => {
                let at = [0, 1].map(|which: usize| at[which] + starts[which]);
                k.count(k.u32(depth), |depth| multiply_threads(depth, *each, slices, at, sums));
            }
            Hand::Matrices { matrices, .. } => (0..depth / 8).for_each(|step| {
                let rows: Vec<[Val<'k>; 4]> =
                    (0..matrices[0]).map(|i| self.first(slices, starts[0], step * 8, i)).collect();
                let columns: Vec<[Val<'k>; 2]> = (0..matrices[1])
                    .map(|j| self.pair(slices, 1, starts[1], step * 8, j * 8))
                    .collect();
                for (i, row) in rows.iter().enumerate() {
                    for (j, column) in columns.iter().enumerate() {
                        let at = (i * columns.len() + j) * 4;
                        let sums = [0, 1, 2, 3].map(|q| sums[at + q].re);
                        k.matrix(Factors::Tf32, sums, row, column);
                    }
                }
            }),
        }
    }

    /// A thread's elements of matrix `i` of the first operand, 8 depths from `depth` on. The order
    /// of the depths within a product is free: a thread takes neighbours for t and t + 4.
    fn first(&self, slices: &Slices<'_>, start: Val<'k>, depth: u32, i: u32) -> [Val<'k>; 4] {
        let Order::Pairs(apart) = slices.lay[0].order else {
            let upper = self.pair(slices, 0, start, depth, i * 16);
            let lower = self.pair(slices, 0, start, depth, i * 16 + 8);
            return [upper[0], lower[0], upper[1], lower[1]];
        };
        let Hand::Matrices { start: of_warp, g, t, .. } = self else {
            unreachable!("threads have no matrices")
        };
        let own = pair_at(of_warp[0] + *g, apart) + *t * 4;
        let at = own + start + (i * 8 * apart + depth * 2);
        let four = slices.shared[0][0].load_vector(at, 4);
        [four[0], four[1], four[2], four[3]]
    }

    /// A thread's two depths of the row that is `away` from its warp's first.
    fn pair(
        &self,
        slices: &Slices<'_>,
        which: usize,
        start: Val<'k>,
        depth: u32,
        away: u32,
    ) -> [Val<'k>; 2] {
        let (Hand::Matrices { start: of_warp, g, t, .. }, Order::Plain { row, depth: apart }) =
            (self, slices.lay[which].order)
        else {
            unreachable!("pairs of rows are read whole")
        };
        let own_depth = *t * 2;
        let own = plain_at(of_warp[which] + *g, own_depth, [row, apart]);
        let at = own + start + (away * row + depth * apart);
        let array = slices.shared[which][0];
        if apart == 1 {
            let pair = array.load_vector(at, 2);
            return [pair[0], pair[1]];
        }
        let next = at + apart;
        [array.load(at), array.load(next)]
    }

    /// The rows in the tile of the thread's sums.
    pub fn rows(&self) -> Vec<Val<'k>> {
        match self {
            Hand::Threads(each, at) => (0..each[0]).map(|i| at[0] + i * SIDE).collect(),
            Hand::Matrices { matrices, start, g, .. } => {
                let first = start[0] + *g;
                (0..matrices[0] * 2).map(|i| first + i * 8).collect()
            }
        }
    }

    /// A thread's place t in its warp, for matrices.
    pub fn lane(&self) -> Val<'k> {
        match self {
            Hand::Threads(..) => unreachable!("threads have no matrices"),
            Hand::Matrices { t, .. } => *t,
        }
    }

    /// The columns likewise. Of matrices two at a time are neighbours.
    pub fn columns(&self) -> Vec<Val<'k>> {
        match self {
            Hand::Threads(each, at) => (0..each[1]).map(|i| at[1] + i * SIDE).collect(),
            Hand::Matrices { matrices, start, t, .. } => {
                let first = start[1] + *t * 2;
                (0..matrices[1] * 2).map(|j| first + (j / 2 * 8 + j % 2)).collect()
            }
        }
    }

    /// Which sum is at such a row and column of the thread's.
    pub fn sum(&self, row: usize, column: usize) -> usize {
        match self {
            Hand::Threads(each, _) => row * each[1] as usize + column,
            Hand::Matrices { matrices, .. } => {
                let matrix = row / 2 * matrices[1] as usize + column / 2;
                matrix * 4 + row % 2 * 2 + column % 2
            }
        }
    }

    /// How many neighbouring columns a thread has.
    pub fn neighbours(&self) -> u32 {
        match self {
            Hand::Threads(..) => 1,
            Hand::Matrices { .. } => 2,
        }
    }
}

/// Multiplies a thread's rows and columns at one depth.
fn multiply_threads<'k>(
    depth: Val<'k>,
    each: [u32; 2],
    slices: &Slices<'_>,
    at: [Val<'k>; 2],
    sums: &[NumberVar<'k>],
) {
    let [rows, columns] = [0, 1].map(|which: usize| -> Vec<Vec<Val<'k>>> {
        let Order::Plain { row, depth: apart } = slices.lay[which].order else {
            unreachable!("threads take one row at a time")
        };
        let start = plain_at(at[which], depth, [row, apart]);
        (0..each[which])
            .map(|i| {
                // Rows 16 apart, so that neighbouring threads read neighbouring elements.
                let from = start + i * SIDE * row;
                slices.shared[which].iter().map(|plane| plane.load(from)).collect()
            })
            .collect()
    });
    for (r, x) in rows.iter().enumerate() {
        for (c, y) in columns.iter().enumerate() {
            multiply_one(x, y, sums[r * columns.len() + c]);
        }
    }
}

/// Adds a product of two numbers to a sum.
fn multiply_one<'k>(x: &[Val<'k>], y: &[Val<'k>], sum: NumberVar<'k>) {
    let re = sum.re;
    let Some(im) = sum.im else {
        let old = re.get();
        return re.set(if old.ty.is_float() { x[0].fma(y[0], old) } else { old + x[0] * y[0] });
    };
    let products = [(re, 0, 0), (re, 1, 1), (im, 0, 1), (im, 1, 0)];
    for (to, i, j) in products {
        let product = x[i] * y[j];
        let old = to.get();
        to.set(if i + j == 2 { old - product } else { old + product });
    }
}
