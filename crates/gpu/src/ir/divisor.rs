//! Division by sizes.

use super::{Bin, Build, Ty, Val};

/// A size by which numbers are divided.
#[derive(Clone, Copy, Debug)]
pub struct Divisor<'k> {
    /// The size.
    pub size: Val<'k>,
    /// What its quotients are computed with instead of a division: ⌈2^(31 + l)/d⌉, and l = ⌈log₂ d⌉.
    magic: Option<[Val<'k>; 2]>,
}

impl Build {
    /// A size by which numbers of type `ty` are divided, of `u32` those below 2³¹.
    pub fn divisor(&self, size: usize, ty: Ty) -> Divisor<'_> {
        let value = self.size(size as i64, ty);
        let narrow = ty == Ty::U32 && self.target.mul_high;
        let magic = narrow.then(|| {
            // Nothing is divided by the size of no elements, nor by one that has no such numbers.
            let size = size.clamp(1, 1 << 31);
            let shift = size.next_power_of_two().trailing_zeros();
            let factor = (1u64 << (31 + shift)).div_ceil(size as u64);
            [factor as u32, shift].map(|word| self.size_word(word))
        });
        Divisor { size: value, magic }
    }

    /// A literal by which numbers are divided.
    pub fn fixed(&self, size: u32, ty: Ty) -> Divisor<'_> {
        Divisor { size: self.int(size.into(), ty), magic: None }
    }
}

impl<'k> Val<'k> {
    /// The quotient of a number and a size, and its remainder.
    ///
    /// Without a division: T. Granlund and P. L. Montgomery, *Division by invariant integers using
    /// multiplication*, PLDI 1994.
    pub fn div_rem(self, by: &Divisor<'k>) -> (Val<'k>, Val<'k>) {
        let known = |v: Val<'k>| self.k.known(v).is_some();
        let Some([factor, shift]) = by.magic.filter(|_| !known(self)) else {
            return (self / by.size, self % by.size);
        };
        let quotient = self.k.bin(Bin::MulHigh, self << 1, factor) >> shift;
        (quotient, self - quotient * by.size)
    }
}
