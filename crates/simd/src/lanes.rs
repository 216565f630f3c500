//! Sums of products, each lane by itself.

use std::ops::Range;

use super::vector::{Portable, Vector};
use super::{Bias, Element, Isa, Level, Residual, Tail};

/// Sums that are computed together: as many as need not wait for each other, and fit into registers.
pub const TOGETHER: usize = 8;

/// The most columns that sums of one group of taps meet.
const COLUMNS: usize = 21;

/// Taps of a row that are multiplied together, so that each column is loaded once for all of them: tap `k` of sum `p` meets
/// column `p * stride + k` of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapGroup {
    /// How many: one of [`TapGroup::SIZES`].
    pub size: usize,
    /// 1 or 2.
    pub stride: usize,
    /// The first tap.
    pub tap: usize,
    /// From one tap to the next.
    pub tap_step: usize,
    /// The first column.
    pub column: isize,
    /// From one column to the next.
    pub column_step: usize,
    /// A bit for each column that is there and needed; all others are zeros. It [fits](TapGroup::fits) the sums.
    pub columns: u32,
}

impl TapGroup {
    /// How many taps a group may have, the most first.
    pub const SIZES: [usize; 5] = [7, 5, 3, 2, 1];

    /// The columns that are loaded without a look at their bits where `count` sums are computed: none of a group of one
    /// tap, nor where there are at most [`FEW`] sums; else all but half of the taps' number at either end, which may be
    /// beyond the edge.
    pub const fn inner(size: usize, stride: usize, count: usize) -> u32 {
        let (together, ends) = (together(count), size / 2);
        if size == 1 || together <= FEW {
            return 0;
        }
        (1 << ((together - 1) * stride + size - ends)) - (1 << ends)
    }

    /// Whether `count` sums can have these taps.
    pub fn fits(&self, count: usize) -> bool {
        let inner = TapGroup::inner(self.size, self.stride, count);
        self.columns & inner == inner
    }
}

/// The most sums whose kernel looks at the bits of all columns.
pub const FEW: usize = 6;

/// How many sums the kernel computes that computes `count`, of which it stores no more.
const fn together(count: usize) -> usize {
    match count {
        0..=4 => 4,
        5..=FEW => FEW,
        7 => 7,
        _ => TOGETHER,
    }
}

/// Sums that are computed together.
#[derive(Debug)]
pub struct LaneTile {
    /// The place of the first one, in sums.
    pub first: usize,
    /// From one to the next.
    pub step: usize,
    /// How many, at most [`TOGETHER`].
    pub count: usize,
    /// Their taps.
    pub groups: Vec<TapGroup>,
}

/// `sums[p][l] = Σ weights[tap][l] · inputs[column][l]` over rows and the taps of groups, for every lane `l`.
#[derive(Clone)]
pub struct LaneSums<'a, T> {
    /// The weights and inputs of each row.
    pub rows: &'a [(*const T, *const T)],
    /// The sums.
    pub tiles: &'a [LaneTile],
    /// The elements from one tap, column or sum to the next.
    pub stride: usize,
    /// The lanes among these. The last vector may reach beyond them, where it computes what others do, too.
    pub lanes: Range<usize>,
    /// The sum in place 0.
    pub sums: *mut T,
    /// What is done to them in the end, [`Tail::then`] aside; its bias has an element for each lane.
    pub tail: Tail<'a, T>,
}

/// # Safety
/// As [`InLanes::lane_sums`]; the instruction set is present.
#[inline(always)]
unsafe fn lane_sums<V: Vector>(s: LaneSums<'_, V::Elem>) {
    for tile in s.tiles {
        // SAFETY: the caller vouches for the instruction set and the pointers.
        unsafe {
            match together(tile.count) {
                4 => sums_of::<V, 4>(&s, tile),
                FEW => sums_of::<V, FEW>(&s, tile),
                7 => sums_of::<V, 7>(&s, tile),
                _ => sums_of::<V, TOGETHER>(&s, tile),
            }
        }
    }
}

/// # Safety
/// As `lane_sums`, for at most `P` sums.
#[inline(always)]
unsafe fn sums_of<V: Vector, const P: usize>(s: &LaneSums<'_, V::Elem>, tile: &LaneTile) {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let first = s.sums.wrapping_add(tile.first * s.stride);
        let place = |p: usize| first.wrapping_add(p * tile.step * s.stride);
        if s.stride < V::LANES {
            let sums = block::<V, P>(s, tile, 0, place, |p| V::load_first(p, s.stride));
            for (p, sum) in sums.iter().enumerate() {
                if P > FEW || p < tile.count {
                    sum.store_first(place(p), s.stride);
                }
            }
            return;
        }
        for at in s.lanes.clone().step_by(V::LANES) {
            // The last one begins where it still fits.
            let at = at.min(s.stride - V::LANES);
            let sums = block::<V, P>(s, tile, at, place, |p| V::load(p));
            for (p, sum) in sums.iter().enumerate() {
                if P > FEW || p < tile.count {
                    sum.store(place(p).wrapping_add(at));
                }
            }
        }
    }
}

/// # Safety
/// As `lane_sums`; `load` reads what is there, and `place` is where a sum's first lane is stored.
#[inline(always)]
unsafe fn block<V: Vector, const P: usize>(
    s: &LaneSums<'_, V::Elem>,
    tile: &LaneTile,
    at: usize,
    place: impl Fn(usize) -> *mut V::Elem,
    load: impl Fn(*const V::Elem) -> V + Copy,
) -> [V; P] {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let mut sums = [V::zero(); P];
        for group in &tile.groups {
            match (group.size, group.stride) {
                (2, 1) => taps::<V, 2, 1, P>(&mut sums, s, group, at, load),
                (2, _) => taps::<V, 2, 2, P>(&mut sums, s, group, at, load),
                (3, 1) => taps::<V, 3, 1, P>(&mut sums, s, group, at, load),
                (3, _) => taps::<V, 3, 2, P>(&mut sums, s, group, at, load),
                (5, 1) => taps::<V, 5, 1, P>(&mut sums, s, group, at, load),
                (5, _) => taps::<V, 5, 2, P>(&mut sums, s, group, at, load),
                (7, 1) => taps::<V, 7, 1, P>(&mut sums, s, group, at, load),
                (7, _) => taps::<V, 7, 2, P>(&mut sums, s, group, at, load),
                _ => taps::<V, 1, 1, P>(&mut sums, s, group, at, load),
            }
        }
        let bias = match s.tail.bias {
            Bias::Lanes(bias) => Bias::Lanes(bias.add(at)),
            bias => bias,
        };
        // Each sum is a row of one vector.
        let rows = &mut *(&raw mut sums).cast::<[[V; 1]; P]>();
        let beside =
            |residual: &Residual<V::Elem>, p: usize, _: usize| match P > FEW || p < tile.count {
                true => load(residual.at(place(p).wrapping_add(at))),
                false => V::zero(),
            };
        s.tail.with(bias).apply(rows, load, beside);
        sums
    }
}

/// Adds the products of a group of `K` taps with stride `S`.
///
/// # Safety
/// As `block`.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices below a constant unroll into registers.
unsafe fn taps<V: Vector, const K: usize, const S: usize, const P: usize>(
    sums: &mut [V; P],
    s: &LaneSums<'_, V::Elem>,
    group: &TapGroup,
    at: usize,
    load: impl Fn(*const V::Elem) -> V + Copy,
) {
    let step = group.column_step * s.stride;
    let first = group.column * s.stride as isize + at as isize;
    let mut own = *sums;
    debug_assert!(group.fits(P));
    for &(weights, inputs) in s.rows {
        let weight =
            |k: usize| weights.wrapping_add((group.tap + k * group.tap_step) * s.stride + at);
        // SAFETY: the caller vouches for the instruction set.
        let mut factors = [unsafe { V::zero() }; K];
        for k in 0..K {
            factors[k] = load(weight(k));
        }
        let inputs = inputs.wrapping_offset(first);
        // A constant for each column: what is indexed by it stays in registers.
        macro_rules! columns {
            ($($j:literal)*) => {
                $(if $j < (P - 1) * S + K
                    && (TapGroup::inner(K, S, P) >> $j & 1 != 0 || group.columns >> $j & 1 != 0)
                {
                    let input = load(inputs.wrapping_add($j * step));
                    for k in 0..K {
                        if $j >= k && ($j - k) % S == 0 && ($j - k) / S < P {
                            own[($j - k) / S] = factors[k].fma(input, own[($j - k) / S]);
                        }
                    }
                })*
            };
        }
        const { assert!((P - 1) * S + K <= COLUMNS) };
        // SAFETY: the caller vouches for the instruction set, and for the columns whose bits are set.
        unsafe {
            columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20);
        }
    }
    *sums = own;
}

/// An element type with sums of products in lanes.
pub trait InLanes: Element {
    /// Computes the sums.
    ///
    /// # Safety
    /// All lanes of the weights and of the columns whose bits are set can be read, and the sums written.
    unsafe fn lane_sums(isa: Isa, s: LaneSums<'_, Self>);
}

macro_rules! in_lanes {
    ($($t:ident: $portable:ty, $avx2:ident $avx512:ident;)*) => {$(
        impl InLanes for $t {
            in_lanes!(lane_sums, LaneSums, $t, $portable, $avx2 $avx512);
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
