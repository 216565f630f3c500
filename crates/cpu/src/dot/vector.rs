//! Products of a matrix and a vector of a type without tiles.

use cupola_simd::Kernel;

use super::Panel;
use super::element::Ring;

/// A panel with one column.
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
