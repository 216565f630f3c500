//! Matrix products of every element type, for operands with any strides.
//!
//! Floats run on register tiles with packed operands, or at the rate of memory where one operand is a
//! few vectors; complex numbers run on the `gemm` crate and integers on loops of their own. Half types compute in f32. Work
//! is cut by problem size only, so results do not depend on the number of threads.

mod element;
mod few;
mod kept;
mod matrix;
mod op;
mod pack;
#[cfg(test)]
mod tests;
mod vector;

use cupola_simd::{Isa, Out};

use crate::op::{Epilogue, Finish};
use crate::threads::parallel_for;

pub use element::DotElement;
pub use kept::Place;
pub(crate) use op::DotKernel;

/// Sizes of a batched product of `[m, k]` and `[k, n]` matrices; the result is contiguous.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DotProblem {
    /// Number of products.
    pub batch: usize,
    /// Rows of the result.
    pub m: usize,
    /// Length of the sums.
    pub k: usize,
    /// Columns of the result.
    pub n: usize,
    /// Steps of the left operand, in elements: batch, row, column.
    pub a_strides: [isize; 3],
    /// Steps of the right operand, in elements: batch, row, column.
    pub b_strides: [isize; 3],
}

impl DotProblem {
    /// Elements of the result.
    pub fn output_len(&self) -> usize {
        self.batch * self.m * self.n
    }

    /// The same product with few, tall matrices: a shared right operand makes the batch rows, and
    /// a row vector on the left is a column vector on the right of the transpose.
    fn normalized(&self) -> (DotProblem, bool) {
        let mut p = self.clone();
        let rows_follow = p.a_strides[0] == p.m as isize * p.a_strides[1];
        if p.batch > 1 && p.b_strides[0] == 0 && (rows_follow || p.m == 1) {
            if p.m == 1 {
                p.a_strides[1] = p.a_strides[0];
            }
            p.m *= p.batch;
            p.batch = 1;
        }
        let swap = p.m == 1 && p.n > 1;
        if swap {
            let [a_batch, a_row, a_col] = p.a_strides;
            let [b_batch, b_row, b_col] = p.b_strides;
            (p.m, p.n) = (p.n, 1);
            p.a_strides = [b_batch, b_col, b_row];
            p.b_strides = [a_batch, a_col, a_row];
        }
        (p, swap)
    }
}

/// Rows of one product: operands, their steps along rows and columns, and a dense result.
#[derive(Clone, Copy)]
struct Panel<T> {
    m: usize,
    k: usize,
    n: usize,
    a: *const T,
    a_strides: [isize; 2],
    b: *const T,
    b_strides: [isize; 2],
    out: *mut T,
}

/// Computes `out = a · b`, overwriting `out`, `[batch, m, n]`, and does to it what `finish` says. With a `place` the right
/// operand may stay packed there.
///
/// # Safety
/// Every element that the sizes and strides of `p` reach from `a` and `b` can be read. What `finish` has is for a result of
/// `p`: a tail, which only products of `f32` on tiles have, with a bias for each column.
pub unsafe fn dot<T: DotElement>(
    p: &DotProblem,
    a: *const T,
    b: *const T,
    out: Out<'_, T>,
    finish: Finish<'_>,
    place: Option<Place<'_>>,
) {
    assert_eq!(out.len(), p.output_len(), "dot: length of the output of {p:?}");
    if out.len() == 0 {
        return;
    }
    let (p, swap) = p.normalized();
    let (a, b) = if swap { (b, a) } else { (a, b) };
    // SAFETY: the caller vouches for the operands.
    unsafe { T::product(Isa::best(), &p, a, b, out, finish, place.filter(|_| !swap)) };
}

/// Multiply-adds that are worth a chunk of their own.
const CHUNK: usize = 1 << 15;

/// A pointer that chunks read through.
struct Shared<T>(*const T);

// SAFETY: it is only read through.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn at(&self, offset: isize) -> *const T {
        self.0.wrapping_offset(offset)
    }
}

/// Cuts a product into panels of rows, several small matrices to a chunk, and runs each.
///
/// # Safety
/// As for `dot`; `run` writes every element of the result of its panel.
unsafe fn panels<T: DotElement>(
    p: &DotProblem,
    a: *const T,
    b: *const T,
    out: Out<'_, T>,
    epilogue: Epilogue<'_>,
    run: &(dyn Fn(Panel<T>) + Sync),
) {
    let matrix = p.m * p.k.max(1) * p.n;
    let rows = p.m.div_ceil((matrix / CHUNK).clamp(1, 32)).next_multiple_of(16);
    let pieces = p.m.div_ceil(rows);
    let matrices = (CHUNK / matrix).clamp(1, p.batch);
    let (a, b) = (Shared(a), Shared(b));
    parallel_for(p.batch.div_ceil(matrices) * pieces, |chunk| {
        let (first, piece) = (chunk / pieces * matrices, chunk % pieces);
        let (start, end) = (piece * rows, ((piece + 1) * rows).min(p.m));
        for batch in first..(first + matrices).min(p.batch) {
            let range = (batch * p.m + start) * p.n..(batch * p.m + end) * p.n;
            // SAFETY: chunks have disjoint rows.
            let out = unsafe { out.slice(range.clone()) };
            run(Panel {
                m: end - start,
                k: p.k,
                n: p.n,
                a: a.at(batch as isize * p.a_strides[0] + start as isize * p.a_strides[1]),
                a_strides: [p.a_strides[1], p.a_strides[2]],
                b: b.at(batch as isize * p.b_strides[0]),
                b_strides: [p.b_strides[1], p.b_strides[2]],
                out: out.as_mut_ptr(),
            });
            if let Some(f) = epilogue {
                f(range);
            }
        }
    });
}
