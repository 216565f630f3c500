//! Operands with strides: which axes a kernel has to tell apart, and where an element is.

use cupola_core::DType;
use cupola_core::backend::Operand;

use super::{Draft, Missing, Place};
use crate::ir::{Access, Buf, Number, Ty, Val};

/// The most elements that a thread takes at once: narrower ones would only need more registers.
const MOST_NEIGHBOURS: usize = 8;

/// Whether an element of `operand` can be 2³¹ or more elements from its first one, or counted so.
pub fn is_far(operand: &Operand) -> bool {
    let parts = if operand.aval.dtype == DType::C64 { 2 } else { 1 };
    let reach: u128 = (operand.aval.shape.iter().zip(&operand.strides))
        .map(|(&d, &s)| d.saturating_sub(1) as u128 * s.unsigned_abs() as u128)
        .sum();
    reach.max(operand.aval.shape.size() as u128) * parts >= 1 << 31
}

/// The first and the last element of `operand`, counted from the one at index 0; none of nothing.
pub fn span(operand: &Operand) -> Option<(isize, isize)> {
    let mut span = (0, 0);
    for (&size, &stride) in operand.aval.shape.iter().zip(&operand.strides) {
        let reach = (size as isize).checked_sub(1).filter(|&r| r >= 0)? * stride;
        span = (span.0 + reach.min(0), span.1 + reach.max(0));
    }
    Some(span)
}

/// How many neighbours along `axis` of an operand lie side by side wherever a multiple of so many
/// stands: at most `most`, a power of two.
pub fn side_by_side(operand: &Operand, axis: usize, most: u32) -> u32 {
    let dtype = operand.aval.dtype;
    if operand.strides[axis] != 1 || dtype == DType::C64 {
        return 1;
    }
    let fits = |count: usize| {
        operand.aval.shape[axis].is_multiple_of(count)
            && (operand.strides.iter().enumerate())
                .all(|(a, stride)| a == axis || stride.unsigned_abs().is_multiple_of(count))
    };
    let mut count = most.max(1) as usize;
    while !fits(count) {
        count /= 2;
    }
    count as u32
}

/// An operand that a kernel has bound.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The buffer.
    pub buf: Buf,
    /// What it is bound to.
    pub place: Place,
    /// Where its first element is.
    pub offset: Val,
}

/// Axes that are walked together: sizes, and for each operand its strides along them.
#[derive(Clone, Debug, PartialEq)]
pub struct Axes {
    /// The sizes.
    pub sizes: Vec<usize>,
    /// One list an operand.
    pub strides: Vec<Vec<isize>>,
}

impl Axes {
    /// Axes of `sizes`: those of size 1 left out, and neighbours joined that every operand walks
    /// as one.
    pub fn joined(sizes: &[usize], operands: &[&[isize]]) -> Axes {
        let mut axes = Axes { sizes: Vec::new(), strides: vec![Vec::new(); operands.len()] };
        for (axis, &size) in sizes.iter().enumerate().filter(|(_, size)| **size != 1) {
            let joins = !axes.sizes.is_empty()
                && operands.iter().zip(&axes.strides).all(|(own, known)| {
                    known.last().is_some_and(|&outer| outer == own[axis] * size as isize)
                });
            match axes.sizes.last_mut().filter(|_| joins) {
                Some(last) => *last *= size,
                None => axes.sizes.push(size),
            }
            for (own, known) in operands.iter().zip(&mut axes.strides) {
                match known.last_mut().filter(|_| joins) {
                    Some(last) => *last = own[axis],
                    None => known.push(own[axis]),
                }
            }
        }
        axes
    }

    /// How many elements there are.
    pub fn count(&self) -> u64 {
        self.sizes.iter().map(|&s| s as u64).product()
    }
}

impl Axes {
    /// How many neighbours along the last axis every operand can move at once: it has them side by
    /// side, or the same for all. No more than a thread may move of `dtypes`.
    pub fn vector(&self, dtypes: &[DType], bytes: usize) -> u32 {
        let Some((&last, _)) = self.sizes.split_last() else { return 1 };
        let mut count = most_neighbours(dtypes, bytes);
        while count > 1 && !(last.is_multiple_of(count) && self.keeps_together(count)) {
            count /= 2;
        }
        count as u32
    }

    /// Likewise, and how many elements at the end are left to go one by one: some where there is
    /// but one axis and no number of neighbours divides it.
    pub fn vector_and_rest(&self, dtypes: &[DType], bytes: usize) -> (u32, u64) {
        let most = most_neighbours(dtypes, bytes);
        match self.sizes[..] {
            [only] if only >= 2 * most && self.keeps_together(most) => {
                (most as u32, (only % most) as u64)
            }
            _ => (self.vector(dtypes, bytes), 0),
        }
    }

    /// Whether `count` neighbours along the last axis are side by side in every operand, or one
    /// for all, and start at a multiple of their count.
    fn keeps_together(&self, count: usize) -> bool {
        self.strides.iter().all(|strides| match strides.split_last() {
            Some((0, _)) => true,
            Some((1, outer)) => outer.iter().all(|s| s.unsigned_abs().is_multiple_of(count)),
            _ => false,
        })
    }

    /// The same axes for some of the operands.
    pub fn of(&self, operands: impl IntoIterator<Item = usize>) -> Axes {
        let strides = operands.into_iter().map(|i| self.strides[i].clone()).collect();
        Axes { sizes: self.sizes.clone(), strides }
    }

    /// These axes and then those of `inner`, which has the same operands.
    pub fn followed_by(mut self, inner: &Axes) -> Axes {
        self.sizes.extend(&inner.sizes);
        let both = self.strides.iter_mut().zip(&inner.strides);
        both.for_each(|(own, more)| own.extend(more));
        self
    }

    /// These axes in another order: `axis` is the last.
    pub fn ending_with(mut self, axis: usize) -> Axes {
        self.sizes[axis..].rotate_left(1);
        self.strides.iter_mut().for_each(|strides| strides[axis..].rotate_left(1));
        self
    }

    /// These axes with the last one in steps of `count`.
    pub fn in_steps(&self, count: u32) -> Axes {
        let mut axes = self.clone();
        if count > 1 {
            axes.sizes.last_mut().into_iter().for_each(|size| *size /= count as usize);
            let lasts = axes.strides.iter_mut().filter_map(|strides| strides.last_mut());
            lasts.for_each(|stride| *stride *= count as isize);
        }
        axes
    }
}

/// The most elements of any of `dtypes` that a thread may move at once.
fn most_neighbours(dtypes: &[DType], bytes: usize) -> usize {
    if dtypes.contains(&DType::C64) {
        // Its parts are elements of their own.
        return 1;
    }
    let widest = dtypes.iter().map(|d| d.size()).max().unwrap_or(1);
    (bytes / widest).clamp(1, MOST_NEIGHBOURS)
}

impl Draft<'_> {
    /// Binds an operand.
    pub fn view(&mut self, place: Place, dtype: DType, access: Access) -> Result<View, Missing> {
        let buf = self.bind(place, dtype, access)?;
        Ok(View { buf, place, offset: self.offset(place) })
    }

    /// Binds scratch memory.
    pub fn scratch(&mut self, index: usize, dtype: DType, access: Access) -> Result<View, Missing> {
        let place = Place::Scratch(index);
        let buf = self.bind(place, dtype, access)?;
        Ok(View { buf, place, offset: self.index(0) })
    }

    /// The indices along `sizes` of element number `flat`, in row-major order.
    pub fn unflatten(&mut self, flat: Val, sizes: &[usize]) -> Vec<Val> {
        let mut index = vec![flat; sizes.len()];
        let mut left = flat;
        for axis in (1..sizes.len()).rev() {
            let size = self.index(sizes[axis] as i64);
            // Division by a known number, which compilers turn into a product.
            index[axis] = self.build.rem(left, size);
            left = self.build.div(left, size);
        }
        if let Some(first) = index.first_mut() {
            *first = left;
        }
        index
    }

    /// Where the element at `index` is, from `start`.
    pub fn place(&mut self, start: Val, index: &[Val], strides: &[isize]) -> Val {
        let mut at = start;
        for (&i, &stride) in index.iter().zip(strides) {
            if stride == 0 {
                continue;
            }
            // Negative strides wrap, as do the sums.
            let stride = match self.index {
                Ty::U32 => self.build.u32(stride as u32),
                _ => self.build.int(stride as i64, Ty::I64),
            };
            let step = self.build.mul(i, stride);
            at = self.build.add(at, step);
        }
        at
    }

    /// Loads `count` neighbours of `view` from `index` on, or the one that stands for all.
    pub fn load_many(
        &mut self,
        view: View,
        index: &[Val],
        strides: &[isize],
        count: u32,
    ) -> Vec<Number> {
        let at = self.place(view.offset, index, strides);
        self.load_at(view, at, strides.last() == Some(&0), count)
    }

    /// Loads `count` neighbours from `at` on, or the one that stands for all.
    pub fn load_at(&mut self, view: View, at: Val, one_for_all: bool, count: u32) -> Vec<Number> {
        if count == 1 || one_for_all {
            return vec![self.build.load_number(view.buf, at); count as usize];
        }
        self.assume(view.place, count);
        let loaded = self.build.load_vector(view.buf, at, count);
        loaded.into_iter().map(Number::Real).collect()
    }

    /// Stores neighbours from `index` of `view` on.
    pub fn store_many(&mut self, view: View, index: &[Val], strides: &[isize], numbers: &[Number]) {
        let at = self.place(view.offset, index, strides);
        self.store_at(view, at, numbers);
    }

    /// Stores neighbours from `at` on, of which several have to be at a multiple of their count.
    pub fn store_at(&mut self, view: View, at: Val, numbers: &[Number]) {
        match numbers {
            [number] => self.build.store_number(view.buf, at, *number),
            _ => {
                self.assume(view.place, numbers.len() as u32);
                let values = numbers.iter().map(|number| number.real()).collect();
                self.build.store_vector(view.buf, at, values);
            }
        }
    }

    /// Loads the element of `view` at `index`.
    pub fn load(&mut self, view: View, index: &[Val], strides: &[isize]) -> Number {
        let at = self.place(view.offset, index, strides);
        self.build.load_number(view.buf, at)
    }
}
