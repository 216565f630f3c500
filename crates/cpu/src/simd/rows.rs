//! Products of rows with a vector: lanes along the sum.

use super::vector::Vector;

/// `out[i] = Σ a[i * a_step + k] · x[k]`
#[derive(Clone, Copy)]
pub struct RowProducts<T> {
    /// First row.
    pub a: *const T,
    /// From one row to the next.
    pub a_step: usize,
    /// Rows.
    pub rows: usize,
    /// The vector.
    pub x: *const T,
    /// Elements of a row.
    pub len: usize,
    /// The products.
    pub out: *mut T,
}

/// # Safety
/// The instruction set is present; the rows and the vector can be read, the products written.
#[inline(always)]
pub(super) unsafe fn row_products<V: Vector>(p: RowProducts<V::Elem>) {
    let fours = p.rows / 4 * 4;
    for i in (0..fours).step_by(4) {
        // SAFETY: the caller vouches for the rows.
        unsafe { some_rows::<V, 4>(&p, i) };
    }
    for i in fours..p.rows {
        // SAFETY: as above.
        unsafe { some_rows::<V, 1>(&p, i) };
    }
}

/// # Safety
/// As `row_products`, for `N` rows from `first`.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices below a constant unroll into registers.
unsafe fn some_rows<V: Vector, const N: usize>(p: &RowProducts<V::Elem>, first: usize) {
    // SAFETY: the caller vouches for the rows and the vectors.
    unsafe {
        let mut sums = [[V::zero(); 2]; N];
        let a = p.a.add(first * p.a_step);
        let mut k = 0;
        while k + 2 * V::LANES <= p.len {
            let x = [V::load(p.x.add(k)), V::load(p.x.add(k + V::LANES))];
            for i in 0..N {
                let a = a.add(i * p.a_step + k);
                sums[i][0] = V::load(a).fma(x[0], sums[i][0]);
                sums[i][1] = V::load(a.add(V::LANES)).fma(x[1], sums[i][1]);
            }
            k += 2 * V::LANES;
        }
        while k < p.len {
            let n = V::LANES.min(p.len - k);
            let x = V::load_first(p.x.add(k), n);
            for i in 0..N {
                sums[i][0] = V::load_first(a.add(i * p.a_step + k), n).fma(x, sums[i][0]);
            }
            k += V::LANES;
        }
        for i in 0..N {
            let mut lanes = [V::Elem::default(); 32];
            sums[i][0].store(lanes.as_mut_ptr());
            sums[i][1].store(lanes.as_mut_ptr().add(V::LANES));
            let mut width = V::LANES;
            while width > 0 {
                for l in 0..width {
                    let other = lanes[l + width];
                    lanes[l] += other;
                }
                width /= 2;
            }
            *p.out.add(first + i) = lanes[0];
        }
    }
}
