//! The vectors of AVX2 and AVX-512.

use std::arch::x86_64::*;
use std::mem::transmute;

use half::{bf16, f16};

use super::Transpose;
use super::vector::{Arithmetic, Load, Vector, Widen};

macro_rules! vector {
    ($name:ident, $raw:ty, $elem:ty, $lanes:literal, [$zero:ident $splat:ident $fma:ident],
     [$add:ident $max:ident $min:ident], |$a:ident, $b:ident| $unless_nan:expr,
     [$load:ident $store:ident $load_first:ident $store_first:ident], $transpose:ident) => {
        #[doc = concat!("Lanes of a `", stringify!($raw), "`.")]
        #[derive(Clone, Copy)]
        pub struct $name(pub $raw);

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
            unsafe fn load_first(p: *const $elem, n: usize) -> Self {
                // SAFETY: as above.
                Self(unsafe { $load_first(p, n) })
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $elem) {
                // SAFETY: as above.
                unsafe { $store(p, self.0) }
            }
            #[inline(always)]
            unsafe fn store_first(self, p: *mut $elem, n: usize) {
                // SAFETY: as above.
                unsafe { $store_first(p, self.0, n) }
            }
            #[inline(always)]
            unsafe fn fma(self, a: Self, sum: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $fma(self.0, a.0, sum.0) })
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $add(self.0, other.0) })
            }
            // The instructions give the second operand where both are equal, or one is NaN.
            #[inline(always)]
            unsafe fn larger(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $max(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn smaller(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $min(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn maximum(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe {
                    let ($a, $b) = (self.0, $max(self.0, other.0));
                    Self($unless_nan)
                }
            }
            #[inline(always)]
            unsafe fn minimum(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe {
                    let ($a, $b) = (self.0, $min(self.0, other.0));
                    Self($unless_nan)
                }
            }
            #[inline(always)]
            unsafe fn transpose(t: Transpose<$elem>) {
                // SAFETY: the caller vouches for the instruction set and the rows.
                unsafe { $transpose(t) }
            }
        }
    };
}

vector!(F32x16, __m512, f32, 16, [_mm512_setzero_ps _mm512_set1_ps _mm512_fmadd_ps],
    [_mm512_add_ps _mm512_max_ps _mm512_min_ps],
    |a, b| _mm512_mask_mov_ps(b, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a),
    [_mm512_loadu_ps _mm512_storeu_ps load_first_16 store_first_16], transpose_16);
vector!(F64x8, __m512d, f64, 8, [_mm512_setzero_pd _mm512_set1_pd _mm512_fmadd_pd],
    [_mm512_add_pd _mm512_max_pd _mm512_min_pd],
    |a, b| _mm512_mask_mov_pd(b, _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, a), a),
    [_mm512_loadu_pd _mm512_storeu_pd load_first_8d store_first_8d], transpose_plain);
vector!(F32x8, __m256, f32, 8, [_mm256_setzero_ps _mm256_set1_ps _mm256_fmadd_ps],
    [_mm256_add_ps _mm256_max_ps _mm256_min_ps],
    |a, b| _mm256_blendv_ps(b, a, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a)),
    [_mm256_loadu_ps _mm256_storeu_ps load_first_8 store_first_8], transpose_8);
vector!(F64x4, __m256d, f64, 4, [_mm256_setzero_pd _mm256_set1_pd _mm256_fmadd_pd],
    [_mm256_add_pd _mm256_max_pd _mm256_min_pd],
    |a, b| _mm256_blendv_pd(b, a, _mm256_cmp_pd::<_CMP_UNORD_Q>(a, a)),
    [_mm256_loadu_pd _mm256_storeu_pd load_first_4d store_first_4d], transpose_plain);

vector!(Bf16Pairs, __m512, f32, 16, [_mm512_setzero_ps _mm512_set1_ps multiply_pairs],
    [_mm512_add_ps _mm512_max_ps _mm512_min_ps],
    |a, b| _mm512_mask_mov_ps(b, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a),
    [_mm512_loadu_ps _mm512_storeu_ps load_first_16 store_first_16], transpose_16);

macro_rules! arithmetic {
    ($name:ident, [$($f:ident $intrinsic:ident)*]) => {
        impl Arithmetic for $name {
            $(
                #[inline(always)]
                unsafe fn $f(self, other: Self) -> Self {
                    // SAFETY: the caller vouches for the instruction set.
                    Self(unsafe { $intrinsic(self.0, other.0) })
                }
            )*
        }
    };
}
arithmetic!(F32x16, [sub _mm512_sub_ps mul _mm512_mul_ps div _mm512_div_ps]);
arithmetic!(F32x8, [sub _mm256_sub_ps mul _mm256_mul_ps div _mm256_div_ps]);

macro_rules! widen {
    ($name:ident, |$p:ident| $f16:expr, $bf16:expr) => {
        impl Widen for $name {
            #[inline(always)]
            unsafe fn load_f16($p: *const f16) -> Self {
                // SAFETY: the caller vouches for the instruction set and the pointer.
                Self(unsafe { $f16 })
            }
            #[inline(always)]
            unsafe fn load_bf16($p: *const bf16) -> Self {
                // SAFETY: as above.
                Self(unsafe { $bf16 })
            }
        }
    };
}
widen!(F32x16, |p| _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())), {
    let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast()));
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
});
widen!(F32x8, |p| _mm256_cvtph_ps(_mm_loadu_si128(p.cast())), {
    let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()));
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
});

impl Load<Bf16Pairs> for bf16 {
    const EACH: usize = 2;
    #[inline(always)]
    unsafe fn load(p: *const bf16) -> Bf16Pairs {
        // SAFETY: the caller vouches for the instruction set and the pointer.
        unsafe { Bf16Pairs::load(p.cast()) }
    }
    #[inline(always)]
    unsafe fn load_first(p: *const bf16, n: usize) -> Bf16Pairs {
        // SAFETY: as above.
        unsafe { Bf16Pairs::load_first(p.cast(), n) }
    }
    #[inline(always)]
    unsafe fn load_odd(p: *const bf16, x: *const f32) -> f32 {
        // SAFETY: as above. The factor is in the low bits.
        unsafe { (*p).to_f32() * f32::from_bits((*x).to_bits() << 16) }
    }
}

/// Adds the products of two bfloat16 numbers in each lane. The instruction takes and gives subnormal
/// numbers as 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn multiply_pairs(a: __m512, b: __m512, sum: __m512) -> __m512 {
    // SAFETY: both are 64 bytes of which any bits are a value.
    let (a, b) = unsafe { (transmute::<__m512, __m512bh>(a), transmute::<__m512, __m512bh>(b)) };
    _mm512_dpbf16_ps(sum, a, b)
}

/// A mask of the first `n` lanes of 16.
#[inline(always)]
fn first_16(n: usize) -> u16 {
    ((1u32 << n) - 1) as u16
}

/// A mask of the first `n` lanes of 8.
#[inline]
#[target_feature(enable = "avx2")]
fn first_8(n: usize) -> __m256i {
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lanes)
}

/// A mask of the first `n` lanes of 4.
#[inline]
#[target_feature(enable = "avx2")]
fn first_4(n: usize) -> __m256i {
    _mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64), _mm256_setr_epi64x(0, 1, 2, 3))
}

macro_rules! partial {
    ($features:literal, $raw:ty, $elem:ty, |$p:ident, $v:ident, $n:ident|
     $load_first:ident: $load:expr, $store_first:ident: $store:expr) => {
        /// # Safety
        /// The first lanes can be read.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $load_first($p: *const $elem, $n: usize) -> $raw {
            // SAFETY: masked lanes are not read.
            unsafe { $load }
        }

        /// # Safety
        /// The first lanes can be written.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $store_first($p: *mut $elem, $v: $raw, $n: usize) {
            // SAFETY: masked lanes are not written.
            unsafe { $store }
        }
    };
}
partial!("avx512f", __m512, f32, |p, v, n|
    load_first_16: _mm512_maskz_loadu_ps(first_16(n), p),
    store_first_16: _mm512_mask_storeu_ps(p, first_16(n), v));
partial!("avx512f", __m512d, f64, |p, v, n|
    load_first_8d: _mm512_maskz_loadu_pd(first_16(n) as u8, p),
    store_first_8d: _mm512_mask_storeu_pd(p, first_16(n) as u8, v));
partial!("avx2", __m256, f32, |p, v, n|
    load_first_8: _mm256_maskload_ps(p, first_8(n)),
    store_first_8: _mm256_maskstore_ps(p, first_8(n), v));
partial!("avx2", __m256d, f64, |p, v, n|
    load_first_4d: _mm256_maskload_pd(p, first_4(n)),
    store_first_4d: _mm256_maskstore_pd(p, first_4(n), v));

/// # Safety
/// The rows of both arrays can be accessed.
#[inline(always)]
unsafe fn transpose_plain(t: Transpose<f64>) {
    for i in 0..t.rows {
        for j in 0..t.columns {
            // SAFETY: the caller vouches for the rows.
            unsafe { *t.dst.add(j * t.dst_step + i) = *t.src.add(i * t.src_step + j) };
        }
    }
}

/// # Safety
/// The rows of both arrays, at most 16, can be accessed.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn transpose_16(t: Transpose<f32>) {
    let (rows, columns) = (first_16(t.rows), first_16(t.columns));
    let mut r = [_mm512_setzero_ps(); 16];
    for (i, r) in r.iter_mut().enumerate() {
        let mask = if i < t.rows { columns } else { 0 };
        // SAFETY: the caller vouches for the rows; masked lanes are not read.
        *r = unsafe { _mm512_maskz_loadu_ps(mask, t.src.wrapping_add(i * t.src_step)) };
    }
    let mut pairs = r;
    for i in (0..16).step_by(2) {
        pairs[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    // In quads[4q + j], part l of four lanes is column 4l + j of rows 4q to 4q + 3.
    let mut quads = pairs;
    for i in (0..16).step_by(4) {
        for half in 0..2 {
            let a = _mm512_castps_pd(pairs[i + half]);
            let b = _mm512_castps_pd(pairs[i + half + 2]);
            quads[i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            quads[i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    }
    for j in 0..4 {
        let even_low = _mm512_shuffle_f32x4::<0x88>(quads[j], quads[4 + j]);
        let odd_low = _mm512_shuffle_f32x4::<0xdd>(quads[j], quads[4 + j]);
        let even_high = _mm512_shuffle_f32x4::<0x88>(quads[8 + j], quads[12 + j]);
        let odd_high = _mm512_shuffle_f32x4::<0xdd>(quads[8 + j], quads[12 + j]);
        let finished = [
            _mm512_shuffle_f32x4::<0x88>(even_low, even_high),
            _mm512_shuffle_f32x4::<0x88>(odd_low, odd_high),
            _mm512_shuffle_f32x4::<0xdd>(even_low, even_high),
            _mm512_shuffle_f32x4::<0xdd>(odd_low, odd_high),
        ];
        for (l, column) in finished.into_iter().enumerate() {
            let j = 4 * l + j;
            let mask = if j < t.columns { rows } else { 0 };
            // SAFETY: the caller vouches for the rows; masked lanes are not written.
            unsafe { _mm512_mask_storeu_ps(t.dst.wrapping_add(j * t.dst_step), mask, column) };
        }
    }
}

/// # Safety
/// The rows of both arrays, at most 8, can be accessed.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn transpose_8(t: Transpose<f32>) {
    let (rows, columns) = (first_8(t.rows), first_8(t.columns));
    let mut r = [_mm256_setzero_ps(); 8];
    for (i, r) in r[..t.rows].iter_mut().enumerate() {
        // SAFETY: the caller vouches for the rows; masked lanes are not read.
        *r = unsafe { _mm256_maskload_ps(t.src.add(i * t.src_step), columns) };
    }
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
        for (j, column) in [(j, low), (4 + j, high)] {
            if j < t.columns {
                // SAFETY: the caller vouches for the rows; masked lanes are not written.
                unsafe { _mm256_maskstore_ps(t.dst.add(j * t.dst_step), rows, column) };
            }
        }
    }
}
