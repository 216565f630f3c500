//! Factorizations of a matrix, through `faer`.
//!
//! A crate of its own, which knows no arrays: the library's generic code takes minutes to compile,
//! and here it is compiled once for each kind of number, beside the other crates.
//!
//! Every function works on one matrix on the caller's thread, so that results do not depend on the
//! number of threads. Matrices are copied to memory as the library wants it, so that they do not
//! depend on where operands are. Vectors that are determined up to a sign or a phase get the one
//! that makes their first large element positive.

#![forbid(unsafe_code)]

mod factors;
mod field;
mod spectral;

use std::mem::MaybeUninit;

use faer::MatRef;

pub use factors::Factors;
pub use spectral::Spectral;

/// Nothing, or what is wrong with a matrix: words that follow "the matrix".
pub type Outcome = Result<(), String>;

/// Where a result goes, row by row.
pub type Out<'a, T> = &'a mut [MaybeUninit<T>];

/// A matrix to read, row by row.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    elements: &'a [T],
    rows: usize,
    columns: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Of `rows` × `columns` elements.
    pub fn new(elements: &'a [T], rows: usize, columns: usize) -> Self {
        Matrix { elements, rows, columns }
    }

    fn view(self) -> MatRef<'a, T> {
        MatRef::from_row_major_slice(self.elements, self.rows, self.columns)
    }
}

/// Writes rows of `columns` numbers.
fn write<T>(out: Out<'_, T>, columns: usize, of: impl Fn(usize, usize) -> T) {
    for (i, place) in out.iter_mut().enumerate() {
        place.write(of(i / columns, i % columns));
    }
}
