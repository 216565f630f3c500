//! Element types of kernels, what they compute in, and the handle on an output.

use std::marker::PhantomData;
use std::ops::Range;

use half::{bf16, f16};

use super::Tiled;
use super::half::{bf16_to_f32, convert, f16_to_f32, f32_to_bf16, f32_to_f16};

/// A floating-point type as stored in arrays.
pub trait Element: Copy + Send + Sync + Default + 'static {
    /// The type that sums are kept in.
    type Acc: Tiled;
    /// Converts to the type of sums; exact.
    fn to_acc(self) -> Self::Acc;
    /// Converts from the type of sums, rounding to nearest even.
    fn from_acc(acc: Self::Acc) -> Self;
    /// Converts a slice to the type of sums.
    fn widen(src: &[Self], dst: &mut [Self::Acc]);
    /// Converts a slice from the type of sums.
    fn narrow(src: &[Self::Acc], dst: &mut [Self]);
    /// The slice itself where `Self` is its own type of sums.
    fn as_acc(src: &[Self]) -> Option<&[Self::Acc]>;
}

/// A floating-point type that arithmetic is done in.
pub trait Real:
    Element<Acc = Self>
    + std::ops::Add<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::AddAssign
    + PartialOrd
{
    /// Whether it is neither NaN nor −0.
    fn is_plain(self) -> bool;
    /// The same number.
    fn of(x: f32) -> Self;
}

macro_rules! real {
    ($t:ty) => {
        impl Element for $t {
            type Acc = $t;
            #[inline(always)]
            fn to_acc(self) -> $t {
                self
            }
            #[inline(always)]
            fn from_acc(acc: $t) -> $t {
                acc
            }
            fn widen(src: &[$t], dst: &mut [$t]) {
                dst.copy_from_slice(src);
            }
            fn narrow(src: &[$t], dst: &mut [$t]) {
                dst.copy_from_slice(src);
            }
            fn as_acc(src: &[$t]) -> Option<&[$t]> {
                Some(src)
            }
        }
        impl Real for $t {
            #[inline(always)]
            fn is_plain(self) -> bool {
                !self.is_nan() && self.to_bits() != <$t>::to_bits(-0.0)
            }
            #[inline(always)]
            fn of(x: f32) -> $t {
                <$t>::from(x)
            }
        }
    };
}
real!(f32);
real!(f64);

macro_rules! small {
    ($t:ty, $widen:ident, $narrow:ident) => {
        impl Element for $t {
            type Acc = f32;
            #[inline(always)]
            fn to_acc(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn from_acc(acc: f32) -> $t {
                <$t>::from_f32(acc)
            }
            fn widen(src: &[$t], dst: &mut [f32]) {
                convert(
                    src,
                    dst,
                    #[inline(always)]
                    |x| $widen(x.to_bits()),
                );
            }
            fn narrow(src: &[f32], dst: &mut [$t]) {
                convert(
                    src,
                    dst,
                    #[inline(always)]
                    |x| <$t>::from_bits($narrow(x)),
                );
            }
            fn as_acc(_: &[$t]) -> Option<&[f32]> {
                None
            }
        }
    };
}
small!(f16, f16_to_f32, f32_to_f16);
small!(bf16, bf16_to_f32, f32_to_bf16);

/// A slice that the chunks of a `parallel_for` write disjoint parts of.
pub struct Out<'a, T> {
    ptr: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

impl<T> Clone for Out<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<'_, T> {}

// SAFETY: an `Out` is a mutable borrow that `slice` hands out in disjoint parts.
unsafe impl<T: Send> Send for Out<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Out<'_, T> {}

impl<'a, T> Out<'a, T> {
    /// Takes a mutable borrow apart.
    pub fn new(slice: &'a mut [T]) -> Self {
        let (ptr, len) = (slice.as_mut_ptr(), slice.len());
        Out { ptr, len, life: PhantomData }
    }

    /// An output at an address.
    ///
    /// # Safety
    /// `ptr` is valid for reads and writes of `len` elements for `'a`.
    pub unsafe fn from_raw(ptr: *mut T, len: usize) -> Self {
        Out { ptr, len, life: PhantomData }
    }

    /// Number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.len
    }

    /// The address of the first element.
    pub fn as_ptr(self) -> *mut T {
        self.ptr
    }

    /// A part of the slice.
    ///
    /// # Safety
    /// No other live reference may overlap the part.
    #[inline]
    pub unsafe fn slice(self, range: Range<usize>) -> &'a mut [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the range is inside the borrow, and the caller vouches that it is not shared.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(range.start), range.len()) }
    }
}
