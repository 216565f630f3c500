//! Whole numbers of a few bits, one after the other from the lowest bit of `uint32` words on, as
//! vectors of floats.

use super::vector::{Portable, Widen};

/// A vector of floats that is unpacked from numbers of 1 to 8 bits.
pub trait Unpack: Widen {
    /// Where the bits of a vector's numbers are.
    type Plan: Copy;
    /// The plan for numbers of so many bits.
    ///
    /// # Safety
    /// The instruction set is present.
    unsafe fn plan(bits: usize) -> Self::Plan;
    /// The numbers from the one at `first` on, a multiple of the lanes, of a row of words.
    ///
    /// # Safety
    /// As above; the row has them.
    unsafe fn numbers(row: *const u32, first: usize, plan: &Self::Plan) -> Self;
}

impl<const L: usize> Unpack for Portable<f32, L> {
    type Plan = usize;

    #[inline(always)]
    unsafe fn plan(bits: usize) -> usize {
        bits
    }

    #[inline(always)]
    unsafe fn numbers(row: *const u32, first: usize, &bits: &usize) -> Self {
        Portable::from_fn(|lane| {
            let (word, bit) = ((first + lane) * bits / 32, (first + lane) * bits % 32);
            // SAFETY: the caller vouches for the words that hold the number.
            let low = unsafe { *row.add(word) } >> bit;
            let number = if bit + bits > 32 {
                // SAFETY: as above.
                low | unsafe { *row.add(word + 1) } << (32 - bit)
            } else {
                low
            };
            (number & ((1 << bits) - 1)) as f32
        })
    }
}
