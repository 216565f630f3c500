//! From the shared slices to sums.

use super::loader::{Lay, Order, pair_at, plain_at};
use super::{SIDE, Unit};
use crate::ir::{Build, Shared, Val, Var};

/// Which part of the tile is a thread's.
pub enum Hand {
    /// How many rows and columns it has, and the first ones.
    Threads([u32; 2], [Val; 2]),
    /// Where its group's matrices start, and its place in them: g and t.
    Matrices { matrices: [u32; 2], start: [Val; 2], g: Val, t: Val },
}

/// The shared slices of both operands.
pub struct Slices<'a> {
    pub shared: [&'a [Shared]; 2],
    pub lay: [Lay; 2],
}

impl Hand {
    pub fn new(b: &mut Build<'_>, unit: Unit, thread: Val) -> Hand {
        match unit {
            Unit::Threads(each) => {
                let side = b.u32(SIDE);
                Hand::Threads(each, [b.div(thread, side), b.rem(thread, side)])
            }
            Unit::Matrices { groups, matrices } => {
                let (lanes, four, across) = (b.u32(32), b.u32(4), b.u32(groups[1]));
                let (group, lane) = (b.div(thread, lanes), b.rem(thread, lanes));
                let (row, column) = (b.div(group, across), b.rem(group, across));
                let (rows, columns) = (b.u32(matrices[0] * 16), b.u32(matrices[1] * 8));
                let start = [b.mul(row, rows), b.mul(column, columns)];
                Hand::Matrices { matrices, start, g: b.div(lane, four), t: b.rem(lane, four) }
            }
        }
    }

    /// Multiplies one of the copies of the shared slices.
    pub fn multiply(
        &self,
        b: &mut Build<'_>,
        depth: u32,
        slices: &Slices<'_>,
        copy: Option<Val>,
        sums: &[Vec<Var>],
    ) {
        let starts = slices.lay.map(|lay| lay.start(b, copy));
        match self {
            Hand::Threads(each, at) => {
                let at = [0, 1].map(|which: usize| b.add(at[which], starts[which]));
                b.count(depth, |b, k| multiply_threads(b, k, *each, slices, at, sums));
            }
            Hand::Matrices { matrices, .. } => (0..depth / 8).for_each(|k| {
                let rows: Vec<[Val; 4]> =
                    (0..matrices[0]).map(|i| self.first(b, slices, starts[0], k * 8, i)).collect();
                let columns: Vec<[Val; 2]> = (0..matrices[1])
                    .map(|j| self.pair(b, slices, 1, starts[1], k * 8, j * 8))
                    .collect();
                for (i, row) in rows.iter().enumerate() {
                    for (j, column) in columns.iter().enumerate() {
                        let at = (i * columns.len() + j) * 4;
                        let sums = [0, 1, 2, 3].map(|q| sums[at + q][0]);
                        b.matrix(sums, row.to_vec(), column.to_vec());
                    }
                }
            }),
        }
    }

    /// A thread's elements of matrix `i` of the first operand, 8 depths from `k` on. The order of
    /// the depths within a product is free: a thread takes neighbours for t and t + 4.
    fn first(
        &self,
        b: &mut Build<'_>,
        slices: &Slices<'_>,
        start: Val,
        k: u32,
        i: u32,
    ) -> [Val; 4] {
        let Order::Pairs(apart) = slices.lay[0].order else {
            let upper = self.pair(b, slices, 0, start, k, i * 16);
            let lower = self.pair(b, slices, 0, start, k, i * 16 + 8);
            return [upper[0], lower[0], upper[1], lower[1]];
        };
        let Hand::Matrices { start: of_group, g, t, .. } = self else {
            unreachable!("threads have no matrices")
        };
        let (four, away) = (b.u32(4), b.u32(i * 8 * apart + k * 2));
        let row = b.add(of_group[0], *g);
        let at = pair_at(b, row, apart);
        let own = b.mul(*t, four);
        let at = b.add(at, own);
        let at = b.add(at, start);
        let at = b.add(at, away);
        let four = b.load_shared_vector(slices.shared[0][0], at, 4);
        [four[0], four[1], four[2], four[3]]
    }

    /// A thread's two depths of the row that is `away` from its group's first.
    fn pair(
        &self,
        b: &mut Build<'_>,
        slices: &Slices<'_>,
        which: usize,
        start: Val,
        k: u32,
        away: u32,
    ) -> [Val; 2] {
        let (Hand::Matrices { start: of_group, g, t, .. }, Order::Plain { row, depth }) =
            (self, slices.lay[which].order)
        else {
            unreachable!("pairs of rows are read whole")
        };
        let two = b.u32(2);
        let own_depth = b.mul(*t, two);
        let own_row = b.add(of_group[which], *g);
        let at = plain_at(b, own_row, own_depth, [row, depth]);
        let at = b.add(at, start);
        let away = b.u32(away * row + k * depth);
        let at = b.add(at, away);
        let array = slices.shared[which][0];
        if depth == 1 {
            let pair = b.load_shared_vector(array, at, 2);
            return [pair[0], pair[1]];
        }
        let apart = b.u32(depth);
        let next = b.add(at, apart);
        [b.load_shared(array, at), b.load_shared(array, next)]
    }

    /// The rows in the tile of the thread's sums.
    pub fn rows(&self, b: &mut Build<'_>) -> Vec<Val> {
        let (first, away): (Val, Vec<u32>) = match self {
            Hand::Threads(each, at) => (at[0], (0..each[0]).map(|i| i * SIDE).collect()),
            Hand::Matrices { matrices, start, g, .. } => {
                (b.add(start[0], *g), (0..matrices[0] * 2).map(|i| i * 8).collect())
            }
        };
        away.into_iter().map(|away| offset(b, first, away)).collect()
    }

    /// A thread's place t in its group, for matrices.
    pub fn lane(&self, b: &mut Build<'_>) -> Val {
        match self {
            Hand::Threads(..) => b.u32(0),
            Hand::Matrices { t, .. } => *t,
        }
    }

    /// The columns likewise. Of matrices two at a time are neighbours.
    pub fn columns(&self, b: &mut Build<'_>) -> Vec<Val> {
        let (first, away): (Val, Vec<u32>) = match self {
            Hand::Threads(each, at) => (at[1], (0..each[1]).map(|i| i * SIDE).collect()),
            Hand::Matrices { matrices, start, t, .. } => {
                let two = b.u32(2);
                let own = b.mul(*t, two);
                let away = (0..matrices[1] * 2).map(|j| j / 2 * 8 + j % 2).collect();
                (b.add(start[1], own), away)
            }
        };
        away.into_iter().map(|away| offset(b, first, away)).collect()
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

fn offset(b: &mut Build<'_>, first: Val, away: u32) -> Val {
    let away = b.u32(away);
    b.add(first, away)
}

/// Multiplies a thread's rows and columns at one depth.
fn multiply_threads(
    b: &mut Build<'_>,
    k: Val,
    each: [u32; 2],
    slices: &Slices<'_>,
    at: [Val; 2],
    sums: &[Vec<Var>],
) {
    let mut operands: [Vec<Vec<Val>>; 2] = [Vec::new(), Vec::new()];
    for which in 0..2 {
        let Order::Plain { row, depth } = slices.lay[which].order else {
            unreachable!("threads take one row at a time")
        };
        let start = plain_at(b, at[which], k, [row, depth]);
        for i in 0..each[which] {
            // Rows 16 apart, so that neighbouring threads read neighbouring elements.
            let from = offset(b, start, i * SIDE * row);
            let parts = slices.shared[which].iter().map(|&s| b.load_shared(s, from)).collect();
            operands[which].push(parts);
        }
    }
    for (r, x) in operands[0].iter().enumerate() {
        for (c, y) in operands[1].iter().enumerate() {
            multiply_one(b, x, y, &sums[r * operands[1].len() + c]);
        }
    }
}

/// Adds a product of two numbers to a sum.
fn multiply_one(b: &mut Build<'_>, x: &[Val], y: &[Val], sum: &[Var]) {
    let [re, im] = sum[..] else {
        let old = b.get(sum[0]);
        let new = match old.ty.is_float() {
            true => b.fma(x[0], y[0], old),
            false => {
                let product = b.mul(x[0], y[0]);
                b.add(old, product)
            }
        };
        return b.set(sum[0], new);
    };
    for (to, a, c, adds) in [
        (re, x[0], y[0], true),
        (re, x[1], y[1], false),
        (im, x[0], y[1], true),
        (im, x[1], y[0], true),
    ] {
        let product = b.mul(a, c);
        let old = b.get(to);
        let new = if adds { b.add(old, product) } else { b.sub(old, product) };
        b.set(to, new);
    }
}
