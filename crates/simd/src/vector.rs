//! Vectors of each instruction set, behind one trait.

use half::{bf16, f16};

use super::half::{bf16_to_f32, f16_to_f32};
use super::{Real, Transpose};

/// A register of floats. The methods inline into functions that enable the instruction set.
#[allow(clippy::missing_safety_doc)] // Said once, at the first method.
pub trait Vector: Copy {
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
    /// Loads all lanes.
    unsafe fn load(p: *const Self::Elem) -> Self;
    /// Loads the first `n` lanes; the others are zero.
    unsafe fn load_first(p: *const Self::Elem, n: usize) -> Self;
    /// Stores all lanes.
    unsafe fn store(self, p: *mut Self::Elem);
    /// Stores the first `n` lanes.
    unsafe fn store_first(self, p: *mut Self::Elem, n: usize);
    /// `self * a + sum`
    unsafe fn fma(self, a: Self, sum: Self) -> Self;
    /// `self + other`
    unsafe fn add(self, other: Self) -> Self;
    /// The larger lanes; `other`'s where they are equal, or one is NaN.
    unsafe fn larger(self, other: Self) -> Self;
    /// The smaller lanes, likewise.
    unsafe fn smaller(self, other: Self) -> Self;
    /// The larger lanes, NaN where one is; `other`'s where they are equal.
    unsafe fn maximum(self, other: Self) -> Self;
    /// The smaller lanes, likewise.
    unsafe fn minimum(self, other: Self) -> Self;
    /// Transposes at most `LANES` rows and columns.
    #[inline(always)]
    unsafe fn transpose(t: Transpose<Self::Elem>) {
        for i in 0..t.rows {
            for j in 0..t.columns {
                // SAFETY: the caller vouches for the rows of both arrays.
                unsafe { *t.dst.add(j * t.dst_step + i) = *t.src.add(i * t.src_step + j) };
            }
        }
    }
}

macro_rules! bounded {
    ($name:ident, $exact:ident, $quick:ident) => {
        #[doc = concat!("[`Vector::", stringify!($exact), "`] of each and the number at `bound`.")]
        ///
        /// # Safety
        /// As the methods of [`Vector`].
        #[inline(always)]
        pub unsafe fn $name<V: Vector, const N: usize>(each: &mut [V; N], bound: *const V::Elem) {
            // SAFETY: the caller vouches for the instruction set and the pointer.
            unsafe {
                let (lanes, bound) = (V::splat(bound), *bound);
                if !bound.is_plain() {
                    each.iter_mut().for_each(|x| *x = x.$exact(lanes));
                    return;
                }
                // NaN stays, and where both are equal they are the same, but for −0 beside 0.
                each.iter_mut().for_each(|x| *x = lanes.$quick(*x));
                if bound == V::Elem::default() {
                    each.iter_mut().for_each(|x| *x = x.add(lanes));
                }
            }
        }
    };
}
bounded!(at_least, maximum, larger);
bounded!(at_most, minimum, smaller);

/// An element as it lies in memory, and how a vector is loaded from some.
pub trait Load<V: Vector>: Copy {
    /// Elements in a lane.
    const EACH: usize = 1;
    /// # Safety
    /// As the methods of [`Vector`].
    unsafe fn load(p: *const Self) -> V;
    /// Loads the first `n` lanes; the others are zero.
    ///
    /// # Safety
    /// As above.
    unsafe fn load_first(p: *const Self, n: usize) -> V;
    /// The product of the element that is left over where a lane takes two with its factor.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn load_odd(_: *const Self, _: *const V::Elem) -> V::Elem {
        V::Elem::default()
    }
}

macro_rules! load_own {
    ($t:ty) => {
        impl<V: Vector<Elem = $t>> Load<V> for $t {
            #[inline(always)]
            unsafe fn load(p: *const $t) -> V {
                // SAFETY: the caller vouches for the instruction set and the pointer.
                unsafe { V::load(p) }
            }
            #[inline(always)]
            unsafe fn load_first(p: *const $t, n: usize) -> V {
                // SAFETY: as above.
                unsafe { V::load_first(p, n) }
            }
        }
    };
}
load_own!(f32);
load_own!(f64);

impl<const L: usize> Portable<f32, L> {
    /// A vector of what `f` gives for each lane.
    #[inline(always)]
    pub fn from_fn(f: impl FnMut(usize) -> f32) -> Self {
        Portable(std::array::from_fn(f))
    }
}

/// A vector of floats that loads half types.
pub trait Widen: Vector<Elem = f32> {
    /// # Safety
    /// As the methods of [`Vector`].
    unsafe fn load_f16(p: *const f16) -> Self;
    /// # Safety
    /// As above.
    unsafe fn load_bf16(p: *const bf16) -> Self;
}

macro_rules! load_half {
    ($t:ident, $load:ident) => {
        impl<V: Widen> Load<V> for $t {
            #[inline(always)]
            unsafe fn load(p: *const $t) -> V {
                // SAFETY: the caller vouches for the instruction set and the pointer.
                unsafe { V::$load(p) }
            }
            #[inline(always)]
            unsafe fn load_first(p: *const $t, n: usize) -> V {
                let mut some = [$t::ZERO; 16];
                // SAFETY: as above; no vector has more lanes.
                unsafe {
                    std::ptr::copy_nonoverlapping(p, some.as_mut_ptr(), n);
                    V::$load(some.as_ptr())
                }
            }
        }
    };
}
load_half!(f16, load_f16);
load_half!(bf16, load_bf16);

impl<const L: usize> Widen for Portable<f32, L> {
    #[inline(always)]
    unsafe fn load_f16(p: *const f16) -> Self {
        // SAFETY: the caller vouches for `p`.
        Portable(std::array::from_fn(|i| f16_to_f32(unsafe { *p.add(i) }.to_bits())))
    }
    #[inline(always)]
    unsafe fn load_bf16(p: *const bf16) -> Self {
        // SAFETY: as above.
        Portable(std::array::from_fn(|i| bf16_to_f32(unsafe { *p.add(i) }.to_bits())))
    }
}

/// A vector with the arithmetic of elementwise programs.
pub trait Arithmetic: Vector<Elem = f32> {
    /// # Safety
    /// As the methods of [`Vector`].
    unsafe fn sub(self, other: Self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn mul(self, other: Self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn div(self, other: Self) -> Self;
}

/// Floats without any instruction set.
pub type PortableF32 = Portable<f32, 4>;

impl<const L: usize> Portable<f32, L> {
    /// What `f` makes of each lane.
    #[inline(always)]
    pub fn each(self, f: impl Fn(f32) -> f32) -> Self {
        Portable(self.0.map(f))
    }
}

impl<const L: usize> Arithmetic for Portable<f32, L> {
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.lanes(other, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.lanes(other, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        self.lanes(other, |a, b| a / b)
    }
}

/// The target's own vectors, by way of an array.
#[derive(Clone, Copy)]
pub struct Portable<T, const L: usize>([T; L]);

impl<T: Copy, const L: usize> Portable<T, L> {
    #[inline(always)]
    fn lanes(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        Portable(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }
}

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
    unsafe fn load_first(p: *const T, n: usize) -> Self {
        // SAFETY: as above.
        Portable(std::array::from_fn(|i| if i < n { unsafe { *p.add(i) } } else { T::default() }))
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
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.lanes(other, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn larger(self, other: Self) -> Self {
        self.lanes(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn smaller(self, other: Self) -> Self {
        self.lanes(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    unsafe fn maximum(self, other: Self) -> Self {
        self.lanes(other, |a, b| if a <= b || b.partial_cmp(&b).is_none() { b } else { a })
    }
    #[inline(always)]
    unsafe fn minimum(self, other: Self) -> Self {
        self.lanes(other, |a, b| if a >= b || b.partial_cmp(&b).is_none() { b } else { a })
    }
}
