//! Functions of vectors of floats. Each gives a lane the bits that the function of [`crate::math`] gives a number.

use cupola_simd::vector::{Arithmetic, Portable};

use super::lanes;
use crate::math;

/// A vector with functions of one operand.
pub trait Functions: Arithmetic {
    /// # Safety
    /// As the methods of [`Vector`](cupola_simd::vector::Vector).
    unsafe fn neg(self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn abs(self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn sqrt(self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn exp(self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn sigmoid(self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn tanh(self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn erf(self) -> Self;
}

impl<const L: usize> Functions for Portable<f32, L> {
    #[inline(always)]
    unsafe fn neg(self) -> Self {
        self.each(|x| -x)
    }
    #[inline(always)]
    unsafe fn abs(self) -> Self {
        self.each(f32::abs)
    }
    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        self.each(f32::sqrt)
    }
    #[inline(always)]
    unsafe fn exp(self) -> Self {
        self.each(math::exp::<lanes::Portable>)
    }
    #[inline(always)]
    unsafe fn sigmoid(self) -> Self {
        self.each(math::sigmoid::<lanes::Portable>)
    }
    #[inline(always)]
    unsafe fn tanh(self) -> Self {
        self.each(math::tanh::<lanes::Portable>)
    }
    #[inline(always)]
    unsafe fn erf(self) -> Self {
        self.each(math::erf::<lanes::Portable>)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Functions;
    use crate::math::error_function::{ERF_HIGH, ERF_NEAR, ERF_NEXT, ERF_ONE, ERF_P, ERF_REST};
    use crate::math::exp::{
        EXP_HIGH, EXP_LOW, EXP_TAIL, LN2_HI, LN2_LO, ROUND, TANH_HIGH, TANH_ONE, TANH_P, TANH_Q,
    };
    use cupola_simd::vector::{Arithmetic, Vector};
    use cupola_simd::{F32x8, F32x16};

    const LOG2E: f32 = std::f32::consts::LOG2_E;
    const MINUS_LN2_HI: f32 = -LN2_HI;
    const MINUS_LN2_LO: f32 = -LN2_LO;
    const MINUS_TANH_HIGH: f32 = -TANH_HIGH;
    const ONE: f32 = 1.0;
    const MINUS_ONE: f32 = -1.0;
    /// What is larger is at least [`TANH_ONE`].
    const BELOW_TANH_ONE: f32 = TANH_ONE.next_down();

    /// What functions are made of.
    trait Parts: Arithmetic {
        /// `self · 2ᵏ`, rounded once, for integers k of at least −151 and at most 129.
        ///
        /// # Safety
        /// As the methods of [`Vector`], here and below.
        unsafe fn scaled(self, k: Self) -> Self;
        /// This size with the sign of `other`.
        unsafe fn signed(self, other: Self) -> Self;
        /// `then` where `self < other`, else `otherwise`.
        unsafe fn less(self, other: Self, then: Self, otherwise: Self) -> Self;
    }

    /// # Safety
    /// The instruction set is present.
    #[inline(always)]
    unsafe fn poly<V: Vector<Elem = f32>, const N: usize>(x: V, coefficients: &[f32; N]) -> V {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let mut sum = V::splat(&coefficients[0]);
            for c in &coefficients[1..] {
                sum = sum.fma(x, V::splat(c));
            }
            sum
        }
    }

    /// eˣ of a lane between [`EXP_LOW`] and [`EXP_HIGH`].
    ///
    /// # Safety
    /// The instruction set is present.
    #[inline(always)]
    unsafe fn exp_within<V: Parts>(x: V) -> V {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let k = x.fma(V::splat(&LOG2E), V::splat(&ROUND)).sub(V::splat(&ROUND));
            let r = k.fma(V::splat(&MINUS_LN2_LO), k.fma(V::splat(&MINUS_LN2_HI), x));
            let tail = poly(r, &EXP_TAIL).mul(r.mul(r));
            V::splat(&ONE).add(r.add(tail)).scaled(k)
        }
    }

    macro_rules! functions {
        ($name:ident, |$x:ident| neg $neg:expr, abs $abs:expr, sqrt $sqrt:expr) => {
            impl Functions for $name {
                #[inline(always)]
                unsafe fn neg(self) -> Self {
                    let $x = self.0;
                    // SAFETY: the caller vouches for the instruction set, here and below.
                    Self(unsafe { $neg })
                }
                #[inline(always)]
                unsafe fn abs(self) -> Self {
                    let $x = self.0;
                    // SAFETY: the caller vouches for the instruction set, here and below.
                    Self(unsafe { $abs })
                }
                #[inline(always)]
                unsafe fn sqrt(self) -> Self {
                    let $x = self.0;
                    // SAFETY: the caller vouches for the instruction set, here and below.
                    Self(unsafe { $sqrt })
                }
                #[inline(always)]
                unsafe fn exp(self) -> Self {
                    // SAFETY: as above.
                    unsafe {
                        let low = Self::splat(&EXP_LOW).larger(self);
                        exp_within(Self::splat(&EXP_HIGH).smaller(low))
                    }
                }
                #[inline(always)]
                unsafe fn sigmoid(self) -> Self {
                    // SAFETY: as above.
                    unsafe {
                        let one = Self::splat(&ONE);
                        let e = exp_within(Self::splat(&EXP_LOW).larger(self.abs().neg()));
                        self.less(Self::zero(), e, one).div(one.add(e))
                    }
                }
                #[inline(always)]
                unsafe fn tanh(self) -> Self {
                    // SAFETY: as above.
                    unsafe {
                        let v = Self::splat(&MINUS_TANH_HIGH).larger(self);
                        let v = Self::splat(&TANH_HIGH).smaller(v);
                        let z = v.mul(v);
                        let y = v.mul(poly(z, &TANH_P)).div(poly(z, &TANH_Q));
                        let one = Self::splat(&ONE);
                        let y = one.smaller(Self::splat(&MINUS_ONE).larger(y));
                        Self::splat(&BELOW_TANH_ONE).less(self.abs(), one.signed(self), y)
                    }
                }
                #[inline(always)]
                unsafe fn erf(self) -> Self {
                    // SAFETY: as above.
                    unsafe {
                        let t = Self::splat(&ERF_ONE).smaller(self.abs());
                        let (s, one) = (t.mul(t), Self::splat(&ONE));
                        let mut r = poly(t, &ERF_HIGH).fma(s, poly(t, &ERF_NEXT));
                        for c in &ERF_REST {
                            r = r.fma(t, Self::splat(c));
                        }
                        let far = one.sub(r.fma(t, t.neg()).exp());
                        let near = poly(s, &ERF_P).fma(self, self);
                        Self::splat(&ERF_NEAR).less(t, far.signed(self), near)
                    }
                }
            }
        };
    }
    functions!(F32x16, |x|
        neg _mm512_xor_ps(_mm512_set1_ps(-0.0), x),
        abs _mm512_andnot_ps(_mm512_set1_ps(-0.0), x),
        sqrt _mm512_sqrt_ps(x));
    functions!(F32x8, |x|
        neg _mm256_xor_ps(_mm256_set1_ps(-0.0), x),
        abs _mm256_andnot_ps(_mm256_set1_ps(-0.0), x),
        sqrt _mm256_sqrt_ps(x));

    macro_rules! parts {
        ($name:ident, |$a:ident, $b:ident| signed $signed:expr, scaled $scaled:expr,
         |$then:ident, $otherwise:ident| less $less:expr) => {
            impl Parts for $name {
                #[inline(always)]
                unsafe fn scaled(self, k: Self) -> Self {
                    let ($a, $b) = (self.0, k.0);
                    // SAFETY: the caller vouches for the instruction set, here and below.
                    Self(unsafe { $scaled })
                }
                #[inline(always)]
                unsafe fn signed(self, other: Self) -> Self {
                    let ($a, $b) = (self.0, other.0);
                    // SAFETY: as above.
                    Self(unsafe { $signed })
                }
                #[inline(always)]
                unsafe fn less(self, other: Self, then: Self, otherwise: Self) -> Self {
                    let ($a, $b, $then, $otherwise) = (self.0, other.0, then.0, otherwise.0);
                    // SAFETY: as above.
                    Self(unsafe { $less })
                }
            }
        };
    }
    parts!(F32x16, |a, b|
        signed _mm512_or_ps(a, _mm512_and_ps(_mm512_set1_ps(-0.0), b)),
        scaled _mm512_scalef_ps(a, b),
        |then, otherwise| less
            _mm512_mask_mov_ps(otherwise, _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), then));
    parts!(F32x8, |a, b|
        signed _mm256_or_ps(a, _mm256_and_ps(_mm256_set1_ps(-0.0), b)),
        // In two factors, so that neither overflows where the product does not.
        scaled {
            let k = _mm256_cvtps_epi32(b);
            let half = _mm256_srai_epi32::<1>(k);
            let bias = _mm256_set1_epi32(127);
            let first = _mm256_slli_epi32::<23>(_mm256_add_epi32(half, bias));
            let rest = _mm256_add_epi32(_mm256_sub_epi32(k, half), bias);
            let rest = _mm256_slli_epi32::<23>(rest);
            _mm256_mul_ps(_mm256_mul_ps(a, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(rest))
        },
        |then, otherwise| less _mm256_blendv_ps(otherwise, then, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b)));
}
