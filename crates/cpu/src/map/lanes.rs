//! Loops over tiles: one function pointer for each operation, dtype and instruction set.

use std::mem::MaybeUninit;
use std::slice;

use cupola_simd::{Isa, Level};

use crate::math::Arch;

/// Computes `n` elements at the first pointer from those at the others.
///
/// # Safety
/// Every operand that the operation has is valid for `n` aligned elements of its type, and the
/// first overlaps no other.
pub(crate) type TileFn = unsafe fn(*mut u8, *const u8, *const u8, *const u8, usize);

/// A function of up to three numbers.
pub(crate) trait Lane {
    /// The type of the first operand.
    type A: Copy;
    /// The type of the second operand.
    type B: Copy;
    /// The type of the third operand.
    type C: Copy;
    /// The type of the result.
    type R: Copy;
    /// How many operands there are.
    const ARITY: usize;
    /// Whether some operands need [`Lane::slow`].
    const HAS_SLOW: bool = false;
    /// The function, without branches where that is possible.
    fn call<S: Arch>(a: Self::A, b: Self::B, c: Self::C) -> Self::R;
    /// Whether [`Lane::call`] is wrong for this operand.
    fn is_slow(_: Self::A) -> bool {
        false
    }
    /// The function for such operands; of others, what [`Lane::call`] gives them.
    fn slow(a: Self::A, b: Self::B, c: Self::C) -> Self::R {
        Self::call::<Portable>(a, b, c)
    }
}

/// What the target guarantees.
pub(crate) struct Portable;
/// AVX2 and FMA.
pub(crate) struct Avx2;
/// AVX-512.
pub(crate) struct Avx512;

impl Arch for Portable {
    const FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
}
impl Arch for Avx2 {
    const FMA: bool = true;
}
impl Arch for Avx512 {
    const FMA: bool = true;
}

/// The loop of `L`.
///
/// # Safety
/// As [`TileFn`].
#[inline(always)]
unsafe fn run<S: Arch, L: Lane>(r: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: the caller vouches for `n` elements of each operand, of which only those that the
    // operation has are touched.
    unsafe {
        let r = slice::from_raw_parts_mut(r.cast::<MaybeUninit<L::R>>(), n);
        let a = slice::from_raw_parts(a.cast::<L::A>(), n);
        match L::ARITY {
            1 => {
                let (zb, zc) = (zero(), zero());
                for (r, &a) in r.iter_mut().zip(a) {
                    r.write(L::call::<S>(a, zb, zc));
                }
            }
            2 => {
                let zc = zero();
                let b = slice::from_raw_parts(b.cast::<L::B>(), n);
                for ((r, &a), &b) in r.iter_mut().zip(a).zip(b) {
                    r.write(L::call::<S>(a, b, zc));
                }
            }
            _ => {
                let b = slice::from_raw_parts(b.cast::<L::B>(), n);
                let c = slice::from_raw_parts(c.cast::<L::C>(), n);
                for (((r, &a), &b), &c) in r.iter_mut().zip(a).zip(b).zip(c) {
                    r.write(L::call::<S>(a, b, c));
                }
            }
        }
        if L::HAS_SLOW && a.iter().fold(false, |any, &a| any | L::is_slow(a)) {
            for (r, &a) in r.iter_mut().zip(a) {
                if L::is_slow(a) {
                    r.write(L::slow(a, zero(), zero()));
                }
            }
        }
    }
}

/// A value for an operand that the operation does not have.
///
/// # Safety
/// `T` is a number or `()`.
#[inline(always)]
unsafe fn zero<T>() -> T {
    // SAFETY: the caller vouches that zero bytes are a value of `T`.
    unsafe { std::mem::zeroed() }
}

/// # Safety
/// As [`TileFn`].
unsafe fn portable<L: Lane>(r: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: the same contract.
    unsafe { run::<Portable, L>(r, a, b, c, n) }
}

/// # Safety
/// As [`TileFn`], on a machine with these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2<L: Lane>(r: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: the same contract.
    unsafe { run::<Avx2, L>(r, a, b, c, n) }
}

/// # Safety
/// As [`TileFn`], on a machine with these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
unsafe fn avx512<L: Lane>(r: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: the same contract.
    unsafe { run::<Avx512, L>(r, a, b, c, n) }
}

/// A choice among the versions of a loop; only those that it names are compiled.
pub(crate) trait Pick {
    /// The loop of `L` for this machine.
    fn pick<L: Lane>(self) -> TileFn;
}

impl Pick for Isa {
    fn pick<L: Lane>(self) -> TileFn {
        match self.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 | Level::Avx512Bf16 => avx512::<L>,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::<L>,
            _ => portable::<L>,
        }
    }
}

/// Vectors of at most 256 bits: for loops that wait for memory anyway.
#[derive(Clone, Copy)]
pub(crate) struct Upto256(pub Isa);

impl Pick for Upto256 {
    fn pick<L: Lane>(self) -> TileFn {
        match self.0.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512Bf16 | Level::Avx512 | Level::Avx2 => avx2::<L>,
            _ => portable::<L>,
        }
    }
}

/// No vectors: for loops that call a function for each element.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Pick for Scalar {
    fn pick<L: Lane>(self) -> TileFn {
        portable::<L>
    }
}

/// The loop of a function of one number.
macro_rules! lane1 {
    ($isa:expr, $a:ty => $r:ty, |$x:pat_param| $body:expr $(, slow |$y:ident| $is:expr => $slow:expr)?) => {{
        struct F;
        impl $crate::map::lanes::Lane for F {
            type A = $a;
            type B = ();
            type C = ();
            type R = $r;
            const ARITY: usize = 1;
            #[inline(always)]
            fn call<S: $crate::math::Arch>($x: $a, (): (), (): ()) -> $r {
                $body
            }
            $(
                const HAS_SLOW: bool = true;
                #[inline(always)]
                fn is_slow($y: $a) -> bool {
                    $is
                }
                fn slow($y: $a, (): (), (): ()) -> $r {
                    $slow
                }
            )?
        }
        $crate::map::lanes::Pick::pick::<F>($isa)
    }};
}

/// The loop of a function of two numbers.
macro_rules! lane2 {
    ($isa:expr, $t:ty => $r:ty, |$x:pat_param, $y:pat_param| $body:expr) => {{
        struct F;
        impl $crate::map::lanes::Lane for F {
            type A = $t;
            type B = $t;
            type C = ();
            type R = $r;
            const ARITY: usize = 2;
            #[inline(always)]
            fn call<S: $crate::math::Arch>($x: $t, $y: $t, (): ()) -> $r {
                $body
            }
        }
        $crate::map::lanes::Pick::pick::<F>($isa)
    }};
}

/// The loop of a choice between two numbers.
macro_rules! lane_select {
    ($isa:expr, $t:ty) => {{
        struct F;
        impl $crate::map::lanes::Lane for F {
            type A = u8;
            type B = $t;
            type C = $t;
            type R = $t;
            const ARITY: usize = 3;
            #[inline(always)]
            fn call<S: $crate::math::Arch>(condition: u8, a: $t, b: $t) -> $t {
                if condition != 0 { a } else { b }
            }
        }
        $crate::map::lanes::Pick::pick::<F>($isa)
    }};
}

pub(crate) use {lane_select, lane1, lane2};
