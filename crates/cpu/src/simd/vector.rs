//! Vectors of each instruction set, behind one trait.

use super::{Real, Transpose};

/// A register of floats. The methods inline into functions that enable the instruction set.
pub(super) trait Vector: Copy {
    /// What a lane holds.
    type Elem: Real;
    /// Lanes.
    const LANES: usize;
    /// All lanes zero.
    ///
    /// # Safety
    /// Here and below: the instruction set is present, and pointers reach what is accessed.
    unsafe fn zero() -> Self;
    /// All lanes the element at `p`.
    unsafe fn splat(p: *const Self::Elem) -> Self;
    unsafe fn load(p: *const Self::Elem) -> Self;
    /// Loads the first `n` lanes; the others are zero.
    unsafe fn load_first(p: *const Self::Elem, n: usize) -> Self;
    unsafe fn store(self, p: *mut Self::Elem);
    /// Stores the first `n` lanes.
    unsafe fn store_first(self, p: *mut Self::Elem, n: usize);
    /// `self * a + sum`
    unsafe fn fma(self, a: Self, sum: Self) -> Self;
    /// Transposes at most `LANES` rows and columns.
    #[inline(always)]
    unsafe fn transpose(t: Transpose<Self::Elem>) {
        for i in 0..t.rows {
            for j in 0..t.columns {
                // SAFETY: the caller vouches for the rows of both arrays.
                unsafe { *t.dst.add(j * t.dst_step + i) = *t.src.add(i * t.src_step + j) };
            }
        }
    }
}

/// The target's own vectors, by way of an array.
#[derive(Clone, Copy)]
pub(super) struct Portable<T, const L: usize>([T; L]);

impl<T: Real, const L: usize> Vector for Portable<T, L> {
    type Elem = T;
    const LANES: usize = L;
    #[inline(always)]
    unsafe fn zero() -> Self {
        Portable([T::default(); L])
    }
    #[inline(always)]
    unsafe fn splat(p: *const T) -> Self {
        // SAFETY: the caller vouches for `p`.
        Portable([unsafe { *p }; L])
    }
    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        // SAFETY: as above; an array of `T` is no more aligned than `T`.
        Portable(unsafe { *p.cast() })
    }
    #[inline(always)]
    unsafe fn load_first(p: *const T, n: usize) -> Self {
        // SAFETY: as above.
        Portable(std::array::from_fn(|i| if i < n { unsafe { *p.add(i) } } else { T::default() }))
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        // SAFETY: as above.
        unsafe { *p.cast() = self.0 };
    }
    #[inline(always)]
    unsafe fn store_first(self, p: *mut T, n: usize) {
        for (i, &x) in self.0[..n].iter().enumerate() {
            // SAFETY: as above.
            unsafe { *p.add(i) = x };
        }
    }
    #[inline(always)]
    unsafe fn fma(self, a: Self, sum: Self) -> Self {
        Portable(std::array::from_fn(|i| self.0[i] * a.0[i] + sum.0[i]))
    }
}
