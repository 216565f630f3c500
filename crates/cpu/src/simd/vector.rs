//! Vectors of each instruction set, behind one trait.

use super::Real;

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
    unsafe fn store(self, p: *mut Self::Elem);
    /// Stores the first `n` lanes.
    unsafe fn store_first(self, p: *mut Self::Elem, n: usize);
    /// `self * a + sum`
    unsafe fn fma(self, a: Self, sum: Self) -> Self;
    /// Transposes a square of elements between rows `src_step` and `dst_step` apart.
    #[inline(always)]
    unsafe fn transpose(
        src: *const Self::Elem,
        src_step: usize,
        dst: *mut Self::Elem,
        dst_step: usize,
    ) {
        for i in 0..Self::LANES {
            for j in 0..Self::LANES {
                // SAFETY: the caller vouches for both squares.
                unsafe { *dst.add(j * dst_step + i) = *src.add(i * src_step + j) };
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

#[cfg(target_arch = "x86_64")]
pub(super) use x86::*;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($name:ident, $raw:ty, $elem:ty, $lanes:expr, $zero:ident, $splat:ident, $load:ident,
         $store:ident, $fma:ident, |$v:ident, $p:ident, $n:ident| $first:expr; $($more:item)*) => {
            #[derive(Clone, Copy)]
            pub(in crate::simd) struct $name($raw);
            // Intrinsics are safe where their features are enabled, which the trait asks for.
            impl Vector for $name {
                type Elem = $elem;
                const LANES: usize = $lanes;
                #[inline(always)]
                unsafe fn zero() -> Self {
                    // SAFETY: the caller vouches for the instruction set.
                    Self(unsafe { $zero() })
                }
                #[inline(always)]
                unsafe fn splat(p: *const $elem) -> Self {
                    // SAFETY: the caller vouches for the instruction set and the pointer.
                    Self(unsafe { $splat(*p) })
                }
                #[inline(always)]
                unsafe fn load(p: *const $elem) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $load(p) })
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut $elem) {
                    // SAFETY: as above.
                    unsafe { $store(p, self.0) }
                }
                #[inline(always)]
                unsafe fn store_first(self, $p: *mut $elem, $n: usize) {
                    let $v = self.0;
                    // SAFETY: as above.
                    unsafe { $first }
                }
                #[inline(always)]
                unsafe fn fma(self, a: Self, sum: Self) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $fma(self.0, a.0, sum.0) })
                }
                $($more)*
            }
        };
    }

    vector!(F32x16, __m512, f32, 16, _mm512_setzero_ps, _mm512_set1_ps, _mm512_loadu_ps,
    _mm512_storeu_ps, _mm512_fmadd_ps,
    |v, p, n| _mm512_mask_storeu_ps(p, ((1u32 << n) - 1) as u16, v);
    #[inline(always)]
    unsafe fn transpose(src: *const f32, src_step: usize, dst: *mut f32, dst_step: usize) {
        // SAFETY: the caller vouches for the instruction set and both squares.
        unsafe { transpose_16(src, src_step, dst, dst_step) }
    });
    vector!(F64x8, __m512d, f64, 8, _mm512_setzero_pd, _mm512_set1_pd, _mm512_loadu_pd,
        _mm512_storeu_pd, _mm512_fmadd_pd,
        |v, p, n| _mm512_mask_storeu_pd(p, ((1u32 << n) - 1) as u8, v););
    vector!(F32x8, __m256, f32, 8, _mm256_setzero_ps, _mm256_set1_ps, _mm256_loadu_ps,
    _mm256_storeu_ps, _mm256_fmadd_ps,
    |v, p, n| _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32),
        _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)), v);
    #[inline(always)]
    unsafe fn transpose(src: *const f32, src_step: usize, dst: *mut f32, dst_step: usize) {
        // SAFETY: the caller vouches for the instruction set and both squares.
        unsafe { transpose_8(src, src_step, dst, dst_step) }
    });
    vector!(F64x4, __m256d, f64, 4, _mm256_setzero_pd, _mm256_set1_pd, _mm256_loadu_pd,
        _mm256_storeu_pd, _mm256_fmadd_pd,
        |v, p, n| _mm256_maskstore_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64),
            _mm256_setr_epi64x(0, 1, 2, 3)), v););

    /// # Safety
    /// The rows of both squares can be accessed.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn transpose_16(src: *const f32, src_step: usize, dst: *mut f32, dst_step: usize) {
        // SAFETY: the caller vouches for the rows.
        let r: [__m512; 16] =
            std::array::from_fn(|i| unsafe { _mm512_loadu_ps(src.add(i * src_step)) });
        let mut pairs = r;
        for i in (0..16).step_by(2) {
            pairs[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
            pairs[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
        }
        // In quads[4q + j], part l of four lanes is column 4l + j of rows 4q to 4q + 3.
        let mut quads = pairs;
        let pd = |a, b, high: bool| {
            let (a, b) = (_mm512_castps_pd(a), _mm512_castps_pd(b));
            let r = if high { _mm512_unpackhi_pd(a, b) } else { _mm512_unpacklo_pd(a, b) };
            _mm512_castpd_ps(r)
        };
        for i in (0..16).step_by(4) {
            quads[i] = pd(pairs[i], pairs[i + 2], false);
            quads[i + 1] = pd(pairs[i], pairs[i + 2], true);
            quads[i + 2] = pd(pairs[i + 1], pairs[i + 3], false);
            quads[i + 3] = pd(pairs[i + 1], pairs[i + 3], true);
        }
        for j in 0..4 {
            let even_low = _mm512_shuffle_f32x4::<0x88>(quads[j], quads[4 + j]);
            let odd_low = _mm512_shuffle_f32x4::<0xdd>(quads[j], quads[4 + j]);
            let even_high = _mm512_shuffle_f32x4::<0x88>(quads[8 + j], quads[12 + j]);
            let odd_high = _mm512_shuffle_f32x4::<0xdd>(quads[8 + j], quads[12 + j]);
            let columns = [
                _mm512_shuffle_f32x4::<0x88>(even_low, even_high),
                _mm512_shuffle_f32x4::<0x88>(odd_low, odd_high),
                _mm512_shuffle_f32x4::<0xdd>(even_low, even_high),
                _mm512_shuffle_f32x4::<0xdd>(odd_low, odd_high),
            ];
            for (l, column) in columns.into_iter().enumerate() {
                // SAFETY: the caller vouches for the rows.
                unsafe { _mm512_storeu_ps(dst.add((4 * l + j) * dst_step), column) };
            }
        }
    }

    /// # Safety
    /// The rows of both squares can be accessed.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn transpose_8(src: *const f32, src_step: usize, dst: *mut f32, dst_step: usize) {
        // SAFETY: the caller vouches for the rows.
        let r: [__m256; 8] =
            std::array::from_fn(|i| unsafe { _mm256_loadu_ps(src.add(i * src_step)) });
        let mut pairs = r;
        for i in (0..8).step_by(2) {
            pairs[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
            pairs[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
        }
        let mut quads = pairs;
        for i in (0..8).step_by(4) {
            quads[i] = _mm256_shuffle_ps::<0x44>(pairs[i], pairs[i + 2]);
            quads[i + 1] = _mm256_shuffle_ps::<0xee>(pairs[i], pairs[i + 2]);
            quads[i + 2] = _mm256_shuffle_ps::<0x44>(pairs[i + 1], pairs[i + 3]);
            quads[i + 3] = _mm256_shuffle_ps::<0xee>(pairs[i + 1], pairs[i + 3]);
        }
        for j in 0..4 {
            let low = _mm256_permute2f128_ps::<0x20>(quads[j], quads[4 + j]);
            let high = _mm256_permute2f128_ps::<0x31>(quads[j], quads[4 + j]);
            // SAFETY: the caller vouches for the rows.
            unsafe {
                _mm256_storeu_ps(dst.add(j * dst_step), low);
                _mm256_storeu_ps(dst.add((4 + j) * dst_step), high);
            }
        }
    }
}
