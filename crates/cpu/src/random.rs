//! Random bits: Threefry-2x32 with 20 rounds, laid out as MLX 0.32 does.
//!
//! J. K. Salmon et al., *Parallel random numbers: as easy as 1, 2, 3*, SC 2011.

use cupola_core::Result;
use cupola_core::backend::Operand;
use cupola_core::prim::RandomBits;
use cupola_simd::{Isa, Kernel, dispatch};

use crate::contiguous::{Contiguous, Source};
use crate::op::{Finish, Io, OpKernel};
use crate::threads::parallel_for;

/// Hashes that one chunk computes, two words each.
const CHUNK: usize = 1 << 13;
/// Hashes that are computed side by side.
const LANES: usize = 64;

/// A [`RandomBits`] that is ready to run.
///
/// The bytes of one key are cut into words. The word `i` of the first half is the first result of
/// the hash of the counters `(i, half + i)`, and the word `half + i` the second. Of an odd number
/// of words the middle one is a hash of its own and both halves are around it. A last word that
/// is not whole is cut.
pub struct RandomKernel {
    keys: Contiguous,
    /// How many keys.
    count: usize,
    /// Bytes a key gives.
    bytes: usize,
}

impl RandomKernel {
    /// Prepares for this input.
    pub fn new(bits: &RandomBits, keys: &Operand) -> Result<Self> {
        Ok(RandomKernel {
            keys: Contiguous::new(keys)?,
            count: keys.aval.shape.size() / 2,
            bytes: bits.shape.size() * bits.width,
        })
    }
}

impl OpKernel for RandomKernel {
    fn own(&self) -> usize {
        Contiguous::own([&self.keys])
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        // SAFETY: the caller vouches for the operands.
        let keys = unsafe { self.keys.dense(io.inputs[0])? };
        // SAFETY: there are `count` keys of two words.
        let keys = unsafe { keys.slice::<[u32; 2]>(self.count) };
        let out = Source(io.outputs[0].cast_const());
        let words = self.bytes.div_ceil(4);
        let (half, odd) = (words / 2, words % 2);
        let hashes = half + odd;
        let pieces = hashes.div_ceil(CHUNK);
        let together = if pieces > 1 { 1 } else { (CHUNK / hashes.max(1)).max(1) };
        let isa = Isa::best();
        parallel_for(self.count.div_ceil(together) * pieces, |chunk| {
            let (first, piece) = (chunk / pieces * together, chunk % pieces);
            for (i, &key) in keys[first..].iter().take(together).enumerate() {
                // SAFETY: the output has `bytes` bytes for each key.
                let out = unsafe { out.get().cast_mut().add((first + i) * self.bytes) };
                let range = [piece * CHUNK, ((piece + 1) * CHUNK).min(hashes)];
                dispatch(isa, Hashes { key, range, half, odd, bytes: self.bytes, out });
            }
        });
        finish.all();
        Ok(())
    }
}

/// Some of the hashes of one key.
struct Hashes {
    key: [u32; 2],
    /// The first counters.
    range: [usize; 2],
    half: usize,
    odd: usize,
    bytes: usize,
    out: *mut u8,
}

impl Hashes {
    /// Writes words from number `at` on, and cuts what is beyond the end.
    #[inline(always)]
    fn put(&self, at: usize, words: &[u32]) {
        let start = at * 4;
        let len = (words.len() * 4).min(self.bytes - start);
        // SAFETY: the range is inside the key's bytes, and no other chunk has these words.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr().cast(), self.out.add(start), len) };
    }
}

impl Kernel for Hashes {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [start, end] = self.range;
        let whole = end.min(self.half);
        let second = self.half + self.odd;
        for first in (start..whole).step_by(LANES) {
            let mut a: [u32; LANES] = std::array::from_fn(|i| (first + i) as u32);
            let mut b: [u32; LANES] = std::array::from_fn(|i| (second + first + i) as u32);
            threefry(self.key, &mut a, &mut b);
            let len = LANES.min(whole - first);
            self.put(first, &a[..len]);
            self.put(second + first, &b[..len]);
        }
        if end > self.half {
            let (mut a, mut b) = ([self.half as u32], [0]);
            threefry(self.key, &mut a, &mut b);
            self.put(self.half, &a);
        }
    }
}

/// The hash of each pair of counters, in place.
#[inline(always)]
fn threefry<const N: usize>(key: [u32; 2], a: &mut [u32; N], b: &mut [u32; N]) {
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd1_1bda];
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    for i in 0..N {
        let (mut x, mut y) = (a[i].wrapping_add(keys[0]), b[i].wrapping_add(keys[1]));
        for round in 0..5usize {
            for rotation in ROTATIONS[round % 2] {
                x = x.wrapping_add(y);
                y = y.rotate_left(rotation) ^ x;
            }
            x = x.wrapping_add(keys[(round + 1) % 3]);
            y = y.wrapping_add(keys[(round + 2) % 3]).wrapping_add(round as u32 + 1);
        }
        (a[i], b[i]) = (x, y);
    }
}
