//! Sums of products, each lane by itself.

use super::vector::{Portable, Vector};
use super::{Element, Isa, Level};

/// Sums that are computed together: as many as need not wait for each other, and fit into registers.
pub const TOGETHER: usize = 8;

/// What is multiplied for one term: factors that all sums share, and those of each.
pub type Term<T> = (*const T, [*const T; TOGETHER]);

/// `sums[p][l] = Σ shared[l] · own[p][l]` over the terms, for every lane `l`.
#[derive(Clone, Copy)]
pub struct LaneSums<'a, T> {
    /// The terms.
    pub terms: &'a [Term<T>],
    /// Where the sums go, at most [`TOGETHER`].
    pub sums: &'a [*mut T],
    /// Lanes.
    pub lanes: usize,
}

/// Such sums of neighbours, `own` of each of which lies as far from that of the one before as all others do.
#[derive(Clone, Copy)]
pub struct LaneRuns<'a, T> {
    /// Shared factors, and those of the first sum.
    pub terms: &'a [(*const T, *const T)],
    /// From the factors of one sum to those of the next.
    pub step: usize,
    /// The first sum, which `lanes` elements follow for each.
    pub sums: *mut T,
    /// How many sums, at least [`TOGETHER`].
    pub count: usize,
    /// Lanes.
    pub lanes: usize,
}

/// # Safety
/// As [`InLanes::lane_sums`]; the instruction set is present.
#[inline(always)]
unsafe fn lane_sums<V: Vector>(s: LaneSums<'_, V::Elem>) {
    // SAFETY: the caller vouches for the instruction set and the pointers.
    unsafe {
        match s.sums.len() {
            0..=1 => sums_of::<V, 1>(&s),
            2 => sums_of::<V, 2>(&s),
            3..=4 => sums_of::<V, 4>(&s),
            5..=6 => sums_of::<V, 6>(&s),
            _ => sums_of::<V, TOGETHER>(&s),
        }
    }
}

/// # Safety
/// As `lane_sums`, for at most `P` sums.
#[inline(always)]
unsafe fn sums_of<V: Vector, const P: usize>(s: &LaneSums<'_, V::Elem>) {
    let own = |own: &[*const V::Elem; TOGETHER], p: usize| own[p];
    for at in (0..s.lanes).step_by(V::LANES) {
        // SAFETY: the caller vouches for the pointers.
        unsafe { vector::<V, _, P>(s.terms, [at, s.lanes], own, s.sums.iter().copied()) };
    }
}

/// # Safety
/// As [`InLanes::lane_runs`]; the instruction set is present.
#[inline(always)]
unsafe fn lane_runs<V: Vector>(s: LaneRuns<'_, V::Elem>) {
    for at in (0..s.lanes).step_by(V::LANES) {
        for first in (0..s.count).step_by(TOGETHER) {
            // Where there are enough, the last ones begin where they still fit.
            let first = first.min(s.count - TOGETHER);
            let own = |own: &*const V::Elem, p: usize| own.wrapping_add((first + p) * s.step);
            let sums = (first..first + TOGETHER).map(|p| s.sums.wrapping_add(p * s.lanes));
            // SAFETY: the caller vouches for the pointers.
            unsafe { vector::<V, _, TOGETHER>(s.terms, [at, s.lanes], own, sums) };
        }
    }
}

/// Computes a vector of each of at most `P` sums: from lane `at` of `lanes` on, or where the last one still fits.
///
/// # Safety
/// As `block`; the sums can be written.
#[inline(always)]
unsafe fn vector<V: Vector, O, const P: usize>(
    terms: &[(*const V::Elem, O)],
    [at, lanes]: [usize; 2],
    own: impl Fn(&O, usize) -> *const V::Elem,
    sums: impl Iterator<Item = *mut V::Elem>,
) {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        if lanes >= V::LANES {
            let at = at.min(lanes - V::LANES);
            let found = block::<V, _, P>(terms, at, own, |p| V::load(p));
            found.iter().zip(sums).for_each(|(sum, to)| sum.store(to.add(at)));
        } else {
            let found = block::<V, _, P>(terms, 0, own, |p| V::load_first(p, lanes));
            found.iter().zip(sums).for_each(|(sum, to)| sum.store_first(to, lanes));
        }
    }
}

/// # Safety
/// As `lane_sums`; `load` reads what is there, and `own` says where the factors of sum `p` are.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices below a constant unroll into registers.
unsafe fn block<V: Vector, O, const P: usize>(
    terms: &[(*const V::Elem, O)],
    at: usize,
    own: impl Fn(&O, usize) -> *const V::Elem,
    load: impl Fn(*const V::Elem) -> V,
) -> [V; P] {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let mut sums = [V::zero(); P];
        for (shared, owns) in terms {
            let shared = load(shared.add(at));
            for p in 0..P {
                sums[p] = shared.fma(load(own(owns, p).add(at)), sums[p]);
            }
        }
        sums
    }
}

/// An element type with sums of products in lanes.
pub trait InLanes: Element {
    /// Computes the sums.
    ///
    /// # Safety
    /// All lanes of the factors can be read, also of sums that are not asked for, and the sums written.
    unsafe fn lane_sums(isa: Isa, s: LaneSums<'_, Self>);
    /// Computes the sums.
    ///
    /// # Safety
    /// All lanes of the factors can be read, and the sums written.
    unsafe fn lane_runs(isa: Isa, s: LaneRuns<'_, Self>);
}

macro_rules! in_lanes {
    ($($t:ident: $portable:ty, $avx2:ident $avx512:ident;)*) => {$(
        impl InLanes for $t {
            in_lanes!(lane_sums, LaneSums, $t, $portable, $avx2 $avx512);
            in_lanes!(lane_runs, LaneRuns, $t, $portable, $avx2 $avx512);
        }
    )*};
    ($f:ident, $args:ident, $t:ident, $portable:ty, $avx2:ident $avx512:ident) => {
        unsafe fn $f(isa: Isa, s: $args<'_, $t>) {
            #[cfg(target_arch = "x86_64")]
            {
                use super::x86;
                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2(s: $args<'_, $t>) {
                    // SAFETY: the caller vouches for the pointers.
                    unsafe { $f::<x86::$avx2>(s) }
                }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                unsafe fn avx512(s: $args<'_, $t>) {
                    // SAFETY: as above.
                    unsafe { $f::<x86::$avx512>(s) }
                }
                match isa.level() {
                    // SAFETY: an `Isa` of this level exists only where its features are.
                    Level::Avx512 | Level::Avx512Bf16 => return unsafe { avx512(s) },
                    // SAFETY: as above.
                    Level::Avx2 => return unsafe { avx2(s) },
                    Level::Portable => {}
                }
            }
            let _ = isa;
            // SAFETY: as above.
            unsafe { $f::<$portable>(s) }
        }
    };
}
in_lanes! {
    f32: Portable<f32, 4>, F32x8 F32x16;
    f64: Portable<f64, 2>, F64x4 F64x8;
}
