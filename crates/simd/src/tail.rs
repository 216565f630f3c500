//! What is done to sums while they are in registers, before they are stored.

use super::vector::{Vector, at_least, at_most};

/// `min(max(sum + bias + residual, low), high)`, each part where it is there, and then a function; NaN stays, and a
/// bound that is NaN makes all NaN.
#[derive(Clone, Copy)]
pub struct Tail<'t, T> {
    /// What is added.
    pub bias: Bias<T>,
    /// What is added then.
    pub residual: Option<Residual<T>>,
    /// What no result is below.
    pub low: Option<T>,
    /// What no result is above.
    pub high: Option<T>,
    /// What becomes of results when they are stored.
    pub then: Option<Then<'t, T>>,
}

/// A function of each element of some rows: it is given the first one, the elements from one row to the next, how many
/// rows there are, and how many elements a row has.
pub type Then<'t, T> = &'t (dyn Fn(*mut T, usize, usize, usize) + Sync);

/// What is added to sums.
#[derive(Clone, Copy, Debug)]
pub enum Bias<T> {
    /// Nothing.
    None,
    /// An element to each lane of the vectors of a row.
    Lanes(*const T),
    /// An element to each row.
    Rows(*const T),
}

/// An array that lies as the sums do, of which each has its element added.
#[derive(Clone, Copy, Debug)]
pub struct Residual<T> {
    first: *const T,
    sums: *const T,
}

// SAFETY: the pointers are only addresses; who follows them says why that is sound.
unsafe impl<T: Sync> Sync for Residual<T> {}

impl<T> Residual<T> {
    /// The array from `first` on beside sums that are stored from `sums` on.
    ///
    /// # Safety
    /// As long as it is used it has an element for each sum, which nobody writes.
    pub unsafe fn new(first: *const T, sums: *const T) -> Self {
        Residual { first, sums }
    }

    /// What is added to the sum that is stored here.
    #[inline(always)]
    pub fn at(&self, sum: *const T) -> *const T {
        self.first.wrapping_byte_offset(sum.addr().wrapping_sub(self.sums.addr()) as isize)
    }
}

impl<T: Copy> Tail<'_, T> {
    /// Sums are stored as they are.
    pub const NONE: Self =
        Tail { bias: Bias::None, residual: None, low: None, high: None, then: None };

    /// With another bias.
    pub fn with(&self, bias: Bias<T>) -> Self {
        Tail { bias, ..*self }
    }

    /// The same for the lanes from one on.
    pub fn of_lanes_from(&self, lane: usize) -> Self {
        match self.bias {
            Bias::Lanes(bias) => self.with(Bias::Lanes(bias.wrapping_add(lane))),
            Bias::None | Bias::Rows(_) => *self,
        }
    }

    /// Does what is done before results are stored to `M` rows of `N` vectors. `load` loads a vector, and `beside` what
    /// is added to those of a row and a vector.
    ///
    /// # Safety
    /// The instruction set of `V` is present, the bias has elements for all lanes that are loaded, or all rows, and
    /// `beside` reads what is there.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // Indices below a constant unroll into registers.
    pub(super) unsafe fn apply<V: Vector<Elem = T>, const M: usize, const N: usize>(
        &self,
        sums: &mut [[V; N]; M],
        load: impl Fn(*const T) -> V,
        beside: impl Fn(&Residual<T>, usize, usize) -> V,
    ) {
        // SAFETY: the caller vouches for the instruction set and the pointers.
        unsafe {
            match self.bias {
                Bias::None => {}
                Bias::Lanes(bias) => {
                    for v in 0..N {
                        let bias = load(bias.add(v * V::LANES));
                        for m in 0..M {
                            sums[m][v] = sums[m][v].add(bias);
                        }
                    }
                }
                Bias::Rows(bias) => {
                    for m in 0..M {
                        let bias = V::splat(bias.add(m));
                        for v in 0..N {
                            sums[m][v] = sums[m][v].add(bias);
                        }
                    }
                }
            }
            if let Some(residual) = &self.residual {
                for m in 0..M {
                    for v in 0..N {
                        sums[m][v] = sums[m][v].add(beside(residual, m, v));
                    }
                }
            }
            if let Some(low) = &self.low {
                for m in 0..M {
                    at_least(&mut sums[m], low);
                }
            }
            if let Some(high) = &self.high {
                for m in 0..M {
                    at_most(&mut sums[m], high);
                }
            }
        }
    }
}
