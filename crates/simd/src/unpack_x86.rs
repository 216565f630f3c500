//! Numbers of a few bits as vectors of AVX2 and AVX-512.

use std::arch::x86_64::*;

use super::unpack::Unpack;
use super::x86::{F32x8, F32x16};

/// Where the bits of some numbers are: which bytes hold each, the bits before it in these, and the
/// bits that are its own.
#[derive(Clone, Copy)]
pub struct Plan<V> {
    bits: usize,
    bytes: V,
    shift: V,
    mask: V,
}

/// For each of `L` numbers, the two bytes that its bits are in, in a vector whose parts of 16 bytes
/// are alike, and how many bits come before it.
fn places<const L: usize>(bits: usize) -> ([u32; L], [u32; L]) {
    let byte = |lane: usize| (lane * bits / 8) as u32;
    (
        std::array::from_fn(|lane| 0x8080_0000 | (byte(lane) + 1) << 8 | byte(lane)),
        std::array::from_fn(|lane| (lane * bits % 8) as u32),
    )
}

impl Unpack for F32x16 {
    type Plan = Plan<__m512i>;

    #[inline(always)]
    unsafe fn plan(bits: usize) -> Self::Plan {
        let (bytes, shift) = places::<16>(bits);
        // SAFETY: the caller vouches for the instruction set; arrays have the vectors' size.
        unsafe {
            Plan {
                bits,
                bytes: _mm512_loadu_si512(bytes.as_ptr().cast()),
                shift: _mm512_loadu_si512(shift.as_ptr().cast()),
                mask: _mm512_set1_epi32((1 << bits) - 1),
            }
        }
    }

    #[inline(always)]
    unsafe fn numbers(row: *const u32, first: usize, plan: &Self::Plan) -> Self {
        // SAFETY: as above; bytes past the numbers are not read.
        unsafe {
            let from = row.cast::<i8>().add(first / 8 * plan.bits);
            let some = _mm_maskz_loadu_epi8(((1u32 << (2 * plan.bits)) - 1) as u16, from);
            let bytes = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(some), plan.bytes);
            let numbers = _mm512_and_si512(_mm512_srlv_epi32(bytes, plan.shift), plan.mask);
            F32x16(_mm512_cvtepi32_ps(numbers))
        }
    }
}

impl Unpack for F32x8 {
    type Plan = Plan<__m256i>;

    #[inline(always)]
    unsafe fn plan(bits: usize) -> Self::Plan {
        let (bytes, shift) = places::<8>(bits);
        // SAFETY: the caller vouches for the instruction set; arrays have the vectors' size.
        unsafe {
            Plan {
                bits,
                bytes: _mm256_loadu_si256(bytes.as_ptr().cast()),
                shift: _mm256_loadu_si256(shift.as_ptr().cast()),
                mask: _mm256_set1_epi32((1 << bits) - 1),
            }
        }
    }

    #[inline(always)]
    unsafe fn numbers(row: *const u32, first: usize, plan: &Self::Plan) -> Self {
        // SAFETY: as above; bytes past the numbers are not read.
        unsafe {
            let from = row.cast::<u8>().add(first / 8 * plan.bits);
            let some = match plan.bits {
                8 => from.cast::<u64>().read_unaligned(),
                4 => from.cast::<u32>().read_unaligned().into(),
                2 => from.cast::<u16>().read_unaligned().into(),
                bits => (0..bits).fold(0, |all, i| all | u64::from(*from.add(i)) << (8 * i)),
            };
            let some = _mm256_set1_epi64x(some as i64);
            let bytes = _mm256_shuffle_epi8(some, plan.bytes);
            let numbers = _mm256_and_si256(_mm256_srlv_epi32(bytes, plan.shift), plan.mask);
            F32x8(_mm256_cvtepi32_ps(numbers))
        }
    }
}
