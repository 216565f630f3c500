//! Small products in scratch memory, and what is done to a tile of scores.

use std::marker::PhantomData;

use cupola_simd::{Isa, Kernel, Level, MAX_VECTORS, Rows, Run, Tail, Tile, Tiled, dispatch};

use super::ROWS;
use crate::map::{Avx2, Avx512, Portable};
use crate::math::{self, Arch};

/// A type of scores and sums.
pub(crate) trait Weight:
    Tiled + PartialOrd + std::ops::Sub<Output = Self> + std::ops::Div<Output = Self>
{
    /// The score of a key that is not seen.
    const LOWEST: Self;
    /// Less than any score.
    const LEAST: Self;
    /// 1.
    const ONE: Self;
    /// A number of this type.
    fn of(value: f64) -> Self;
    /// eˣ.
    fn exp<S: Arch>(self) -> Self;
}

macro_rules! weight {
    ($t:ident, |$x:ident| $exp:expr) => {
        impl Weight for $t {
            const LOWEST: $t = $t::MIN;
            const LEAST: $t = $t::NEG_INFINITY;
            const ONE: $t = 1.0;
            fn of(value: f64) -> $t {
                value as $t
            }
            #[inline(always)]
            fn exp<S: Arch>(self) -> $t {
                let $x = self;
                $exp
            }
        }
    };
}
weight!(f32, |x| math::exp::<S>(x));
weight!(f64, |x| x.exp());

/// `c[i][j] = Σ a[i · a_row + s · a_step] · b[s · b_step + j]`
pub(super) struct Product<T> {
    /// Scalars.
    pub a: *const T,
    /// From one row of scalars to the next.
    pub a_row: usize,
    /// From one step of the sum to the next.
    pub a_step: usize,
    /// Rows.
    pub rows: usize,
    /// Vectors.
    pub b: *const T,
    /// From one step of the sum to the next.
    pub b_step: usize,
    /// Columns, a multiple of [`super::LANES`].
    pub width: usize,
    /// Steps of the sum.
    pub steps: usize,
    /// The sums.
    pub c: *mut T,
    /// From one row of sums to the next.
    pub c_step: usize,
    /// Whether to add to what is there.
    pub add: bool,
}

impl<T: Tiled> Product<T> {
    /// Computes it.
    ///
    /// # Safety
    /// The operands reach what the sizes say.
    pub unsafe fn run(&self, isa: Isa) {
        let set = T::tiles(isa);
        let runs = [Run { a: 0, b: 0, len: self.steps }];
        let rows = if self.a_row == 1 { Rows::Together } else { Rows::Listed };
        let offsets: [usize; 16] = std::array::from_fn(|i| i * self.a_row);
        let starts: [usize; MAX_VECTORS] = std::array::from_fn(|v| v * set.lanes);
        let mut first = 0;
        while first < self.width {
            let vectors = ((self.width - first) / set.lanes).min(2);
            let parts = self.rows.div_ceil(set.rows[vectors - 1]);
            for part in 0..parts {
                let (row, end) = (part * self.rows / parts, (part + 1) * self.rows / parts);
                let tile = Tile {
                    a: self.a.wrapping_add(row * self.a_row),
                    a_unit: 1,
                    a_step: self.a_step,
                    rows: &offsets,
                    row_step: 0,
                    b: self.b.wrapping_add(first),
                    b_unit: 1,
                    b_step: self.b_step,
                    soon: 0,
                    columns: starts,
                    runs: &runs,
                    c: self.c.wrapping_add(row * self.c_step + first),
                    c_step: self.c_step,
                    last: set.lanes,
                    add: self.add,
                    tail: Tail::NONE,
                };
                // SAFETY: the caller vouches for the operands.
                unsafe { T::kernel(isa, end - row, vectors, rows)(&tile) };
            }
            first += vectors * set.lanes;
        }
    }
}

/// A loop with the arithmetic of an instruction set.
pub(super) trait Loop {
    /// The loop; `#[inline(always)]`.
    fn run<S: Arch>(self);
}

struct With<S, L>(L, PhantomData<S>);

impl<S: Arch, L: Loop> Kernel for With<S, L> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.0.run::<S>();
    }
}

/// Runs a loop with the given instruction set.
pub(super) fn run(isa: Isa, l: impl Loop) {
    match isa.level() {
        Level::Portable => dispatch(isa, With::<Portable, _>(l, PhantomData)),
        Level::Avx2 => dispatch(isa, With::<Avx2, _>(l, PhantomData)),
        Level::Avx512 | Level::Avx512Bf16 => dispatch(isa, With::<Avx512, _>(l, PhantomData)),
    }
}

/// What a softmax knows of each row so far.
pub(super) struct State<'s, T> {
    /// The largest score.
    pub largest: &'s mut [T],
    /// The sum of the exponentials of the scores less that.
    pub total: &'s mut [T],
    /// What sums from before are to be multiplied by.
    pub fade: &'s mut [T],
}

/// What is taken off scores: their largest, but nothing of −∞, of which it would leave NaN.
#[inline(always)]
fn taken_off<T: Weight>(largest: T) -> T {
    if largest == T::LEAST { T::default() } else { largest }
}

#[inline(always)]
fn larger<T: Weight>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

/// Makes the scores of a tile, a row of lanes a key, weights.
pub(super) struct Online<'s, T> {
    /// The scores.
    pub scores: &'s mut [T],
    /// Of each lane.
    pub state: State<'s, T>,
}

// Loops over slices, and one thing at a time: that is what compilers make vectors of.
impl<T: Weight> Loop for Online<'_, T> {
    #[inline(always)]
    fn run<S: Arch>(self) {
        let State { largest, total, fade } = self.state;
        let width = largest.len();
        let (mut most, mut off, mut sums) =
            ([T::default(); ROWS], [T::default(); ROWS], [T::default(); ROWS]);
        let (most, off, sums) = (&mut most[..width], &mut off[..width], &mut sums[..width]);
        most.copy_from_slice(largest);
        for key in self.scores.chunks_exact(width) {
            for (most, &score) in most.iter_mut().zip(key) {
                *most = larger(*most, score);
            }
        }
        for (off, &most) in off.iter_mut().zip(&*most) {
            *off = taken_off(most);
        }
        for key in self.scores.chunks_exact_mut(width) {
            for (score, &off) in key.iter_mut().zip(&*off) {
                *score = (*score - off).exp::<S>();
            }
            for (sum, &weight) in sums.iter_mut().zip(&*key) {
                *sum += weight;
            }
        }
        for ((fade, &largest), &off) in fade.iter_mut().zip(&*largest).zip(&*off) {
            *fade = (largest - off).exp::<S>();
        }
        for ((total, &fade), &sum) in total.iter_mut().zip(&*fade).zip(&*sums) {
            *total = *total * fade + sum;
        }
        largest.copy_from_slice(most);
    }
}

/// Makes the scores of one row weights.
pub(super) struct OnlineRow<'s, T> {
    /// The scores, a multiple of [`super::LANES`].
    pub scores: &'s mut [T],
    /// Of the row.
    pub largest: &'s mut T,
    /// Of the row.
    pub total: &'s mut T,
    /// What sums from before are to be multiplied by.
    pub fade: &'s mut T,
}

impl<T: Weight> Loop for OnlineRow<'_, T> {
    #[inline(always)]
    fn run<S: Arch>(self) {
        let most = self.scores.iter().copied().fold(*self.largest, larger);
        let off = taken_off(most);
        for score in self.scores.iter_mut() {
            *score = (*score - off).exp::<S>();
        }
        *self.fade = (*self.largest - off).exp::<S>();
        let mut sums = [T::default(); 4];
        for part in self.scores.chunks_exact(4) {
            sums.iter_mut().zip(part).for_each(|(sum, &weight)| *sum += weight);
        }
        *self.total = *self.total * *self.fade + (sums[0] + sums[1] + (sums[2] + sums[3]));
        *self.largest = most;
    }
}

/// Multiplies each row of lanes by a number a lane.
pub(super) struct Fade<'s, T> {
    /// The rows.
    pub rows: &'s mut [T],
    /// The factors.
    pub by: &'s [T],
}

impl<T: Weight> Loop for Fade<'_, T> {
    #[inline(always)]
    fn run<S: Arch>(self) {
        if self.by.iter().all(|&by| by == T::ONE) {
            return;
        }
        for row in self.rows.chunks_exact_mut(self.by.len()) {
            for (x, &by) in row.iter_mut().zip(self.by) {
                *x = *x * by;
            }
        }
    }
}

/// Joins what a softmax knows of two parts of the keys: the second into the first.
pub(super) struct Join<'s, T> {
    /// Of the first part, with the sums of values, a row of lanes a feature.
    pub state: State<'s, T>,
    /// Its sums.
    pub sums: &'s mut [T],
    /// Of the second part: largest, total, sums.
    pub other: (&'s [T], &'s [T], &'s [T]),
}

impl<T: Weight> Loop for Join<'_, T> {
    #[inline(always)]
    fn run<S: Arch>(self) {
        let State { largest, total, fade } = self.state;
        let (other_largest, other_total, other_sums) = self.other;
        let width = largest.len();
        let mut other_fade = [T::default(); ROWS];
        for lane in 0..width {
            let most = larger(largest[lane], other_largest[lane]);
            let off = taken_off(most);
            fade[lane] = (largest[lane] - off).exp::<S>();
            other_fade[lane] = (other_largest[lane] - off).exp::<S>();
            total[lane] = total[lane] * fade[lane] + other_total[lane] * other_fade[lane];
            largest[lane] = most;
        }
        let rows = self.sums.chunks_exact_mut(width).zip(other_sums.chunks_exact(width));
        for (row, other) in rows {
            for lane in 0..width {
                row[lane] = row[lane] * fade[lane] + other[lane] * other_fade[lane];
            }
        }
    }
}

/// Makes the scores of a tile weights, and what comes back to the weights slopes of the scores.
pub(super) struct Slopes<'s, T> {
    /// Scores, then weights.
    pub weights: &'s mut [T],
    /// How well cotangents and values agree, then slopes.
    pub slopes: &'s mut [T],
    /// The largest score of each lane.
    pub largest: &'s [T],
    /// 1 over the sum of each lane.
    pub share: &'s [T],
    /// Σ out·ct of each lane.
    pub delta: &'s [T],
    /// Whether a lowest score is a constant.
    pub hides: bool,
}

impl<T: Weight> Loop for Slopes<'_, T> {
    #[inline(always)]
    fn run<S: Arch>(self) {
        let width = self.largest.len();
        let (largest, share, delta) = (self.largest, &self.share[..width], &self.delta[..width]);
        let keys = self.weights.chunks_exact_mut(width).zip(self.slopes.chunks_exact_mut(width));
        for (weights, slopes) in keys {
            let lanes = weights.iter_mut().zip(slopes).zip(largest.iter().zip(share)).zip(delta);
            for (((weight, slope), (&largest, &share)), &delta) in lanes {
                let constant = self.hides && *weight == T::LOWEST;
                *weight = (*weight - largest).exp::<S>() * share;
                let own = *weight * (*slope - delta);
                *slope = if constant { T::default() } else { own };
            }
        }
    }
}
