//! Numbers that follow from a seed and a case.

/// SplitMix64 (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, 2014).
pub struct Random(u64);

impl Random {
    pub fn of(seed: u64, case: u64) -> Self {
        let mut random = Self(seed);
        let start = random.next();
        Self(start ^ case.wrapping_mul(0xD1B5_4A32_D192_ED03))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number below `count`, which is not 0.
    pub fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Whether what happens once in `count` times happens.
    pub fn once_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}
