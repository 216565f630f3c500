//! The loops that fold.

use cupola_core::DType;
use cupola_core::prim::ReduceKind;
use cupola_simd::{Isa, Level, prefetch};
use num_complex::Complex32;

/// Accumulators of a row, whose element `i` goes to number `i` modulo this.
pub(super) const LANES: usize = 64;

/// How far ahead, in bytes, memory is asked for.
const AHEAD: usize = 4096;

/// The loops of one reduction.
#[derive(Clone, Copy)]
pub(crate) struct Folds {
    /// `rows(out, x, k, r)` folds `k` rows of `r` elements each to `k` elements.
    pub rows: unsafe fn(*mut u8, *const u8, usize, usize),
    /// `lanes(acc, x, n)` folds `n` elements into [`LANES`] accumulators, the first into the first.
    pub lanes: unsafe fn(*mut u8, *const u8, usize),
    /// `halve(acc)` folds [`LANES`] accumulators into the first of them.
    pub halve: unsafe fn(*mut u8),
    /// `columns(acc, x, r, w)` folds `r` rows of `w` elements each into `w` elements.
    pub columns: unsafe fn(*mut u8, *const u8, usize, usize),
    /// Bytes of an accumulator.
    pub size: usize,
    /// What folding with changes nothing, as an element.
    pub identity: [u8; 8],
}

/// An operation with an identity that folding applies.
trait Fold {
    type T: Copy;
    const IDENTITY: Self::T;
    fn fold(a: Self::T, b: Self::T) -> Self::T;

    /// What `fold` gives where its result [`Fold::is_settled`], and is sooner there.
    #[inline(always)]
    fn quick(a: Self::T, b: Self::T) -> Self::T {
        Self::fold(a, b)
    }

    /// Whether `quick` may stand for `fold` where it came to this.
    #[inline(always)]
    fn is_settled(_: Self::T) -> bool {
        true
    }
}

/// # Safety
/// `x` is valid for `k·r` elements, `out` for `k`; they do not overlap.
#[inline(always)]
unsafe fn rows<F: Fold>(out: *mut u8, x: *const u8, k: usize, r: usize) {
    // SAFETY: the caller vouches for the elements.
    let (out, x) = unsafe {
        let out = std::slice::from_raw_parts_mut(out.cast::<F::T>(), k);
        (out, std::slice::from_raw_parts(x.cast::<F::T>(), k * r))
    };
    if r < 16 {
        for (out, row) in out.iter_mut().zip(x.chunks_exact(r)) {
            ask_ahead(row);
            *out = row.iter().fold(F::IDENTITY, |a, &b| F::fold(a, b));
        }
        return;
    }
    for (i, out) in out.iter_mut().enumerate() {
        let from = &x[i * r..];
        *out = if r < 2 * LANES {
            ask_ahead(&from[..r]);
            self::row::<F, 16>(from, r)
        } else {
            self::row::<F, LANES>(from, r)
        };
    }
}

/// Asks for the memory that comes [`AHEAD`] of these elements.
#[inline(always)]
fn ask_ahead<T>(x: &[T]) {
    for line in (0..size_of_val(x)).step_by(64) {
        prefetch(x.as_ptr().cast::<u8>().wrapping_add(AHEAD + line));
    }
}

/// Folds a row, the first `n` elements of `x`, with `N` accumulators.
#[inline(always)]
fn row<F: Fold, const N: usize>(x: &[F::T], n: usize) -> F::T {
    halved::<F, N>(added::<F, N>([F::IDENTITY; N], x, n))
}

/// Folds the first `n` elements of `x`, of which more may be looked at, into accumulators. These are never written one
/// by one: what reads them together would wait for that.
#[inline(always)]
fn added<F: Fold, const N: usize>(before: [F::T; N], x: &[F::T], n: usize) -> [F::T; N] {
    let mut acc = before;
    let mut blocks = x[..n].chunks_exact(N);
    for block in &mut blocks {
        if N == LANES {
            ask_ahead(block);
        }
        for (a, &b) in acc.iter_mut().zip(block) {
            *a = F::quick(*a, b);
        }
    }
    let rest = blocks.remainder().len();
    if rest > 0 {
        let mut padded = [F::IDENTITY; N];
        let block = match x.get(n - rest..n - rest + N) {
            Some(block) => block,
            None => {
                padded[..rest].copy_from_slice(blocks.remainder());
                &padded
            }
        };
        for (i, (a, &b)) in acc.iter_mut().zip(block).enumerate() {
            let folded = F::quick(*a, b);
            *a = if i < rest { folded } else { *a };
        }
    }
    if !acc.iter().fold(true, |all, &a| all & F::is_settled(a)) {
        acc = settled::<F, N>(before, &x[..n]);
    }
    acc
}

/// [`added`] without [`Fold::quick`].
#[inline(always)]
fn settled<F: Fold, const N: usize>(mut acc: [F::T; N], row: &[F::T]) -> [F::T; N] {
    for block in row.chunks(N) {
        for (a, &b) in acc.iter_mut().zip(block) {
            *a = F::fold(*a, b);
        }
    }
    acc
}

#[inline(always)]
fn halved<F: Fold, const N: usize>(mut acc: [F::T; N]) -> F::T {
    let mut width = N;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            acc[i] = F::fold(acc[i], acc[i + width]);
        }
    }
    acc[0]
}

/// # Safety
/// `x` is valid for `n` elements, `acc` for [`LANES`]; they do not overlap.
#[inline(always)]
unsafe fn lanes<F: Fold>(acc: *mut u8, x: *const u8, n: usize) {
    // SAFETY: the caller vouches for the elements.
    let (acc, x) = unsafe {
        let acc = &mut *acc.cast::<[F::T; LANES]>();
        (acc, std::slice::from_raw_parts(x.cast::<F::T>(), n))
    };
    *acc = added::<F, LANES>(*acc, x, n);
}

/// # Safety
/// `acc` is valid for [`LANES`] elements.
#[inline(always)]
unsafe fn halve<F: Fold>(acc: *mut u8) {
    // SAFETY: the caller vouches for the elements.
    let acc = unsafe { &mut *acc.cast::<[F::T; LANES]>() };
    acc[0] = halved::<F, LANES>(*acc);
}

/// # Safety
/// `x` is valid for `r·w` elements, `acc` for `w`; they do not overlap.
#[inline(always)]
unsafe fn columns<F: Fold>(acc: *mut u8, x: *const u8, r: usize, w: usize) {
    // SAFETY: the caller vouches for the elements.
    let (acc, x) = unsafe {
        let acc = std::slice::from_raw_parts_mut(acc.cast::<F::T>(), w);
        (acc, std::slice::from_raw_parts(x.cast::<F::T>(), r * w))
    };
    // Four rows at a time, so that the accumulators are loaded and stored less often.
    let mut fours = x.chunks_exact(4 * w);
    for four in &mut fours {
        ask_ahead(four);
        let (ab, cd) = four.split_at(2 * w);
        let ((a, b), (c, d)) = (ab.split_at(w), cd.split_at(w));
        for ((((acc, &a), &b), &c), &d) in acc.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *acc = F::fold(*acc, F::fold(F::fold(a, b), F::fold(c, d)));
        }
    }
    for row in fours.remainder().chunks_exact(w) {
        for (acc, &a) in acc.iter_mut().zip(row) {
            *acc = F::fold(*acc, a);
        }
    }
}

macro_rules! version {
    ($name:ident, $($feature:meta)?) => {
        mod $name {
            use super::Fold;

            /// # Safety
            /// As [`super::rows`], on a machine with the features.
            $(#[$feature])?
            pub unsafe fn rows<F: Fold>(out: *mut u8, x: *const u8, k: usize, r: usize) {
                // SAFETY: the same contract.
                unsafe { super::rows::<F>(out, x, k, r) }
            }

            /// # Safety
            /// As [`super::lanes`], on a machine with the features.
            $(#[$feature])?
            pub unsafe fn lanes<F: Fold>(acc: *mut u8, x: *const u8, n: usize) {
                // SAFETY: the same contract.
                unsafe { super::lanes::<F>(acc, x, n) }
            }

            /// # Safety
            /// As [`super::halve`], on a machine with the features.
            $(#[$feature])?
            pub unsafe fn halve<F: Fold>(acc: *mut u8) {
                // SAFETY: the same contract.
                unsafe { super::halve::<F>(acc) }
            }

            /// # Safety
            /// As [`super::columns`], on a machine with the features.
            $(#[$feature])?
            pub unsafe fn columns<F: Fold>(acc: *mut u8, x: *const u8, r: usize, w: usize) {
                // SAFETY: the same contract.
                unsafe { super::columns::<F>(acc, x, r, w) }
            }
        }
    };
}

version!(portable,);
#[cfg(target_arch = "x86_64")]
version!(avx2, target_feature(enable = "avx2,fma,f16c"));
#[cfg(target_arch = "x86_64")]
version!(avx512, target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"));

fn bytes<T: bytemuck::NoUninit>(value: T) -> [u8; 8] {
    let mut out = [0; 8];
    out[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    out
}

fn pick<F: Fold<T: bytemuck::NoUninit>>(isa: Isa) -> Folds {
    macro_rules! from {
        ($version:ident) => {
            Folds {
                rows: $version::rows::<F>,
                lanes: $version::lanes::<F>,
                halve: $version::halve::<F>,
                columns: $version::columns::<F>,
                size: size_of::<F::T>(),
                identity: bytes(F::IDENTITY),
            }
        };
    }
    match isa.level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 | Level::Avx512Bf16 => from!(avx512),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => from!(avx2),
        _ => from!(portable),
    }
}

macro_rules! folds {
    ($isa:expr, $t:ty, $identity:expr, |$a:ident, $b:ident| $body:expr) => {{
        struct F;
        impl Fold for F {
            type T = $t;
            const IDENTITY: $t = $identity;
            #[inline(always)]
            fn fold($a: $t, $b: $t) -> $t {
                $body
            }
        }
        pick::<F>($isa)
    }};
}

/// An extreme of floats. NaN is one, and of zeros the negative one is the smaller, though they are equal: so nothing
/// depends on the order of elements, which is another on other machines and in other plans.
macro_rules! extreme {
    ($isa:expr, $t:ty, $identity:expr, $wins:tt, $signs:tt) => {{
        struct F;
        impl Fold for F {
            type T = $t;
            const IDENTITY: $t = $identity;

            #[inline(always)]
            fn fold(a: $t, b: $t) -> $t {
                let same = <$t>::from_bits(a.to_bits() $signs b.to_bits());
                if a == b { same } else { Self::quick(a, b) }
            }

            #[inline(always)]
            fn quick(a: $t, b: $t) -> $t {
                let extreme = if a $wins b { a } else { b };
                if a.is_nan() { a } else { extreme }
            }

            #[inline(always)]
            fn is_settled(a: $t) -> bool {
                a != 0.0
            }
        }
        pick::<F>($isa)
    }};
}

/// The loops for elements held as `dtype`; `None` where the reduction does not take them.
pub(crate) fn folds(kind: ReduceKind, dtype: DType, isa: Isa) -> Option<Folds> {
    macro_rules! integer {
        ($t:ty) => {
            match kind {
                ReduceKind::Sum => folds!(isa, $t, 0, |a, b| a.wrapping_add(b)),
                ReduceKind::Prod => folds!(isa, $t, 1, |a, b| a.wrapping_mul(b)),
                ReduceKind::Max => folds!(isa, $t, <$t>::MIN, |a, b| a.max(b)),
                ReduceKind::Min => folds!(isa, $t, <$t>::MAX, |a, b| a.min(b)),
                ReduceKind::All | ReduceKind::Any => return None,
            }
        };
    }
    macro_rules! float {
        ($t:ty) => {
            match kind {
                ReduceKind::Sum => folds!(isa, $t, 0.0, |a, b| a + b),
                ReduceKind::Prod => folds!(isa, $t, 1.0, |a, b| a * b),
                ReduceKind::Max => extreme!(isa, $t, <$t>::NEG_INFINITY, >, &),
                ReduceKind::Min => extreme!(isa, $t, <$t>::INFINITY, <, |),
                ReduceKind::All | ReduceKind::Any => return None,
            }
        };
    }
    Some(match dtype {
        DType::Bool => match kind {
            ReduceKind::All | ReduceKind::Min => folds!(isa, u8, 1, |a, b| a & b),
            ReduceKind::Any | ReduceKind::Max => folds!(isa, u8, 0, |a, b| a | b),
            ReduceKind::Sum | ReduceKind::Prod => return None,
        },
        DType::U8 => integer!(u8),
        DType::U16 => integer!(u16),
        DType::U32 => integer!(u32),
        DType::U64 => integer!(u64),
        DType::I8 => integer!(i8),
        DType::I16 => integer!(i16),
        DType::I32 => integer!(i32),
        DType::I64 => integer!(i64),
        DType::F16 | DType::BF16 | DType::F32 => float!(f32),
        DType::F64 => float!(f64),
        DType::C32 | DType::C64 => match kind {
            ReduceKind::Sum => folds!(isa, Complex32, Complex32::new(0.0, 0.0), |a, b| {
                Complex32::new(a.re + b.re, a.im + b.im)
            }),
            ReduceKind::Prod => folds!(isa, Complex32, Complex32::new(1.0, 0.0), |a, b| {
                Complex32::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
            }),
            ReduceKind::Max | ReduceKind::Min | ReduceKind::All | ReduceKind::Any => return None,
        },
    })
}
