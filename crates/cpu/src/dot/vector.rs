//! Products of a matrix and a vector.

use super::Panel;
use super::element::Ring;
use crate::simd::{Element, Isa, Kernel, MAX_VECTORS, RowProducts, Run, Scratch, Tile, Tiled};

/// A panel with one column, of floats: rows that are contiguous are summed lane by lane, columns
/// that are contiguous are tiles of one row. Anything else is made contiguous first.
pub(super) fn float_matrix_vector<T: Element>(isa: Isa, p: Panel<T>) {
    let mut x = Scratch::<T::Acc>::new(p.k);
    for (k, x) in x.iter_mut().enumerate() {
        // SAFETY: inside the panel's operand; so for every access below.
        *x = unsafe { *p.b.offset(k as isize * p.b_strides[0]) }.to_acc();
    }
    let own = size_of::<T>() == size_of::<T::Acc>();
    let [row, column] = p.a_strides;
    let mut sums = Scratch::<T::Acc>::new(if own { 0 } else { p.m });
    let out = if own { p.out.cast() } else { sums.as_mut_ptr() };
    if own && column == 1 && row >= 0 {
        let rows = RowProducts {
            a: p.a.cast(),
            a_step: row as usize,
            rows: p.m,
            x: x.as_ptr(),
            len: p.k,
            out,
        };
        // SAFETY: as above.
        unsafe { T::Acc::row_products(isa, rows) };
    } else if own && row == 1 && column >= 0 && p.m >= T::Acc::tiles(isa).lanes {
        // SAFETY: as above.
        unsafe { columns(isa, p.m, p.a.cast(), column as usize, &x, out) };
    } else {
        let mut wide = Scratch::<T::Acc>::new(p.k);
        for i in 0..p.m {
            // SAFETY: as above.
            let a = unsafe { p.a.offset(i as isize * row) };
            if column == 1 {
                // SAFETY: as above; the row is contiguous.
                T::widen(unsafe { std::slice::from_raw_parts(a, p.k) }, &mut wide);
            } else {
                for (k, wide) in wide.iter_mut().enumerate() {
                    // SAFETY: as above.
                    *wide = unsafe { *a.offset(k as isize * column) }.to_acc();
                }
            }
            let rows = RowProducts {
                a: wide.as_ptr(),
                a_step: 0,
                rows: 1,
                x: x.as_ptr(),
                len: p.k,
                out: out.wrapping_add(i),
            };
            // SAFETY: as above.
            unsafe { T::Acc::row_products(isa, rows) };
        }
    }
    if !own {
        // SAFETY: as above.
        T::narrow(&sums, unsafe { std::slice::from_raw_parts_mut(p.out, p.m) });
    }
}

/// # Safety
/// `m` elements, no fewer than the lanes of a vector, can be read of each column and written.
unsafe fn columns<A: Tiled>(isa: Isa, m: usize, a: *const A, a_step: usize, x: &[A], out: *mut A) {
    let set = A::tiles(isa);
    let mut starts = [0; MAX_VECTORS];
    starts.iter_mut().enumerate().for_each(|(v, s)| *s = v * set.lanes);
    let runs = [Run { a: 0, b: 0, len: x.len() }];
    let mut at = 0;
    while at < m {
        let vectors = ((m - at) / set.lanes).clamp(1, set.rows.len());
        // The last vector lies over the one before where it does not fit: it stores the same.
        let first = at.min(m - vectors * set.lanes);
        let tile = Tile {
            a: x.as_ptr(),
            a_unit: 1,
            a_step: 1,
            rows: None,
            b: a.wrapping_add(first),
            b_unit: 1,
            b_step: a_step,
            columns: starts,
            runs: &runs,
            c: out.wrapping_add(first),
            c_step: 0,
            last: set.lanes,
            add: false,
        };
        // SAFETY: the vectors lie inside the columns and the result.
        unsafe { A::kernel(isa, 1, vectors, true)(&tile) };
        at = first + vectors * set.lanes;
    }
}

/// A panel with one column, of a type without tiles.
pub(super) struct MatVec<T>(pub Panel<T>);

impl<T: Ring> Kernel for MatVec<T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let p = self.0;
        for i in 0..p.m as isize {
            let mut sum = T::ZERO;
            for k in 0..p.k as isize {
                // SAFETY: inside the panel's operands.
                let (a, b) = unsafe {
                    (
                        *p.a.offset(i * p.a_strides[0] + k * p.a_strides[1]),
                        *p.b.offset(k * p.b_strides[0]),
                    )
                };
                sum = sum.fma(a, b);
            }
            // SAFETY: the panel's result has `m` elements.
            unsafe { *p.out.offset(i) = sum };
        }
    }
}
