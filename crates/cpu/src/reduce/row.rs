//! The fold of a row that comes in pieces, in an order that follows from its length alone.

use super::fold::{Folds, LANES};
use crate::map::{Axis, copy};

/// Elements that are folded side by side; what comes of them is combined in pairs.
const BLOCK: usize = 4096;

/// A row that is being folded: finished blocks, each place of which stands for about twice as many
/// as the next, and the accumulators of an open one.
pub(crate) struct Row<'a> {
    folds: &'a Folds,
    places: *mut u8,
    height: usize,
    blocks: usize,
    /// Elements in the open block.
    open: usize,
}

impl<'a> Row<'a> {
    /// The memory that a row of `length` elements needs.
    pub fn bytes(folds: &Folds, length: usize) -> usize {
        let depth = length.div_ceil(BLOCK).max(1).ilog2() as usize + 3;
        depth * LANES * folds.size
    }

    /// The most elements up to `most` that pieces may have.
    pub fn piece(most: usize) -> usize {
        (1 << most.max(LANES).ilog2()).min(BLOCK)
    }

    /// A row of nothing yet.
    ///
    /// # Safety
    /// `places` has the bytes that the row needs, and is aligned for its accumulators.
    pub unsafe fn new(folds: &'a Folds, places: *mut u8) -> Self {
        Row { folds, places, height: 0, blocks: 0, open: 0 }
    }

    /// # Safety
    /// There is such a place.
    unsafe fn place(&self, index: usize) -> *mut u8 {
        // SAFETY: the caller vouches for the place.
        unsafe { self.places.add(index * LANES * self.folds.size) }
    }

    /// Folds the next piece, of [`Row::piece`] elements but for the last.
    ///
    /// # Safety
    /// `x` holds `n` elements.
    pub unsafe fn add(&mut self, x: *const u8, n: usize) {
        // SAFETY: the caller vouches for the elements; a `u64` is aligned for every accumulator.
        unsafe {
            let acc = self.place(self.height);
            if self.open == 0 {
                let identity = u64::from_ne_bytes(self.folds.identity);
                let all = Axis { size: LANES, from: 0, to: 1 };
                copy(self.folds.size, (&raw const identity).cast(), acc, &[all]);
            }
            (self.folds.lanes)(acc, x, n);
            self.open += n;
            if self.open >= BLOCK {
                self.close();
            }
        }
    }

    /// # Safety
    /// A block is open.
    unsafe fn close(&mut self) {
        // SAFETY: the places are there: as many as the number of blocks has digits.
        unsafe {
            (self.folds.halve)(self.place(self.height));
            self.open = 0;
            self.height += 1;
            self.blocks += 1;
            for _ in 0..self.blocks.trailing_zeros() {
                self.combine();
            }
        }
    }

    /// Folds the last place into the one before.
    ///
    /// # Safety
    /// There are two.
    unsafe fn combine(&mut self) {
        self.height -= 1;
        // SAFETY: the caller vouches for the places.
        unsafe {
            let (to, from) = (self.place(self.height - 1), self.place(self.height));
            (self.folds.columns)(to, from, 1, 1);
        }
    }

    /// Where the fold of the whole row is.
    ///
    /// # Safety
    /// The row has an element.
    pub unsafe fn finish(mut self) -> *const u8 {
        // SAFETY: the caller vouches for the row.
        unsafe {
            if self.open > 0 {
                self.close();
            }
            while self.height > 1 {
                self.combine();
            }
            self.place(0)
        }
    }
}
