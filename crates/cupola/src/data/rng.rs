//! The generator behind shuffles, splits and drawn digits: SplitMix64 under a mixed key.
//!
//! A stream is named by a list of words, such as (seed, epoch) or (seed, split, index). Its
//! n-th word is a pure function of that list and n, so what is drawn for one image or one epoch
//! does not depend on what was drawn before it, on the number of threads or on the platform.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// One stream of random words.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, 2014), a bijection of 64-bit words.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Rng {
    /// The stream that `words` name; streams of different lists are independent.
    pub(crate) fn new(words: &[u64]) -> Self {
        let mut state = words.len() as u64;
        for &word in words {
            state = mix(state.wrapping_add(GOLDEN) ^ mix(word.wrapping_add(GOLDEN)));
        }
        Self { state }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A whole number in `0..bound`, without bias; `bound` is at least 1.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // Lemire's method: the high word of a product, with the few low words that would make
        // some results more likely drawn again.
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number in `[low, high)`, in steps of 2⁻²⁴ of the range.
    pub(crate) fn uniform(&mut self, low: f32, high: f32) -> f32 {
        let unit = (self.next_u64() >> 40) as f32 * (1.0 / 16_777_216.0);
        low + (high - low) * unit
    }

    /// A bell-shaped number of mean 0 and deviation 1 that stays within ±3.5: the sum of four
    /// 16-bit uniforms, which needs no logarithm whose last bit differs between platforms.
    pub(crate) fn bell(&mut self) -> f32 {
        let word = self.next_u64();
        let sum = (word & 0xFFFF) + (word >> 16 & 0xFFFF) + (word >> 32 & 0xFFFF) + (word >> 48);
        const SQRT_3: f32 = 1.732_050_8;
        (sum as f32 * (1.0 / 65_536.0) - 2.0) * SQRT_3
    }

    /// Puts `items` in a uniformly random order (Fisher–Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = self.below(last as u64 + 1) as usize;
            items.swap(last, chosen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_functions_of_their_names() {
        let draw = |words: &[u64]| {
            let mut rng = Rng::new(words);
            [rng.next_u64(), rng.next_u64()]
        };
        assert_eq!(draw(&[7, 1]), draw(&[7, 1]));
        assert_ne!(draw(&[7, 1]), draw(&[1, 7]));
        assert_ne!(draw(&[7]), draw(&[7, 0]));
        assert_ne!(draw(&[0]), draw(&[]));
    }

    #[test]
    fn below_reaches_every_value_evenly() {
        let mut rng = Rng::new(&[3]);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
    }

    #[test]
    fn bell_has_mean_zero_and_deviation_one() {
        let mut rng = Rng::new(&[5]);
        let draws: Vec<f64> = (0..100_000).map(|_| f64::from(rng.bell())).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
