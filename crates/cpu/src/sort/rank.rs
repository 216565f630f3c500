//! Elements as unsigned integers of the same order: NaN is greatest, both zeros are equal.

/// What the bits of an element stand for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Unsigned integers and bools.
    Unsigned,
    /// Signed integers, in two's complement.
    Signed,
    /// Floats: sign, exponent, mantissa; infinity has these bits.
    Float(u64),
}

impl Order {
    /// How elements of `dtype` are ordered; `None` for complex numbers.
    pub fn of(dtype: cupola_core::DType) -> Option<Order> {
        use cupola_core::DType;
        Some(match dtype {
            DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64 => Order::Unsigned,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Order::Signed,
            DType::F16 => Order::Float(0x7c00),
            DType::BF16 => Order::Float(0x7f80),
            DType::F32 => Order::Float(0x7f80_0000),
            DType::F64 => Order::Float(0x7ff0_0000_0000_0000),
            DType::C32 | DType::C64 => return None,
        })
    }
}

/// The bits of an element.
pub trait Bits: Copy + Ord + Send + Sync + 'static {
    /// No bit set.
    const ZERO: Self;
    /// From the lower bits.
    fn of(bits: u64) -> Self;
    /// A rank with a number below it.
    type Numbered: Copy + Ord + Send + Sync + std::ops::Not<Output = Self::Numbered>;
    /// The bits from `shift` on, under a mask.
    fn digit(self, shift: u32, mask: usize) -> usize;
    /// This rank above a number.
    fn above(self, number: u32) -> Self::Numbered;
    /// The number below a rank.
    fn below(numbered: Self::Numbered) -> u32;
    /// Every bit flipped.
    fn flip(self) -> Self;
    /// Where an element of unsigned order ranks.
    #[inline(always)]
    fn rank_unsigned(self) -> Self {
        self
    }
    /// Where an element of signed order ranks.
    fn rank_signed(self) -> Self;
    /// Where a float ranks, given the bits of infinity.
    fn rank_float(self, infinity: Self) -> Self;
}

macro_rules! bits {
    ($($t:ty: $numbered:ty),*) => {$(
        impl Bits for $t {
            type Numbered = $numbered;
            const ZERO: $t = 0;
            #[inline(always)]
            fn of(bits: u64) -> $t {
                bits as $t
            }
            #[inline(always)]
            fn digit(self, shift: u32, mask: usize) -> usize {
                (self >> shift) as usize & mask
            }
            #[inline(always)]
            fn above(self, number: u32) -> $numbered {
                <$numbered>::from(self) << 32 | <$numbered>::from(number)
            }
            #[inline(always)]
            fn below(numbered: $numbered) -> u32 {
                numbered as u32
            }
            #[inline(always)]
            fn flip(self) -> $t {
                !self
            }
            #[inline(always)]
            fn rank_signed(self) -> $t {
                self ^ !(<$t>::MAX >> 1)
            }
            #[inline(always)]
            fn rank_float(self, infinity: $t) -> $t {
                let sign = !(<$t>::MAX >> 1);
                let magnitude = self & !sign;
                let below = self & sign != 0 && magnitude != 0;
                let rank = if below { !self } else { magnitude | sign };
                if magnitude > infinity { <$t>::MAX } else { rank }
            }
        }
    )*};
}
bits!(u8: u64, u16: u64, u32: u64, u64: u128);

/// Runs `$e` with `$rank` as the function that ranks elements of `$order`, whose bits are `$T`.
macro_rules! by_order {
    ($order:expr, $T:ty, $rank:ident => $e:expr) => {
        match $order {
            $crate::sort::rank::Order::Unsigned => {
                let $rank = <$T as $crate::sort::rank::Bits>::rank_unsigned;
                $e
            }
            $crate::sort::rank::Order::Signed => {
                let $rank = <$T as $crate::sort::rank::Bits>::rank_signed;
                $e
            }
            $crate::sort::rank::Order::Float(infinity) => {
                let infinity = <$T as $crate::sort::rank::Bits>::of(infinity);
                let $rank =
                    move |bits: $T| <$T as $crate::sort::rank::Bits>::rank_float(bits, infinity);
                $e
            }
        }
    };
}
pub(crate) use by_order;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_ordered_as_the_elements() {
        let f = |v: f32| v.to_bits().rank_float(f32::INFINITY.to_bits());
        let inf = f32::INFINITY;
        let ascending = [-inf, f32::MIN, -1.0, -1e-45, 0.0, 1e-45, 1.0, f32::MAX, inf, f32::NAN];
        assert!(ascending.windows(2).all(|w| f(w[0]) < f(w[1])));
        assert_eq!((f(-0.0), f(-f32::NAN)), (f(0.0), u32::MAX));
        let s = |v: i16| (v as u16).rank_signed();
        assert!([i16::MIN, -1, 0, 1, i16::MAX].windows(2).all(|w| s(w[0]) < s(w[1])));
        assert_eq!(0x12345678u32.digit(8, 0xff), 0x56);
        assert!(
            u64::below(7u64.above(3)) == 3
                && 7u64.above(3) < 7u64.above(4)
                && 7u64.above(9) < 8u64.above(0)
        );
    }
}
