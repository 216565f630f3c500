//! Operands with strides: which axes a kernel has to tell apart, and where an element is.

use cupola_core::backend::{Operand, Segment};
use cupola_core::{DType, merge_axes};

use super::{BufferRef, Draft};
use crate::ir::{Access, Buf, Divisor, Number, Val};

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
    if operand.strides[axis] != 1 || dtype.is_complex() {
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
#[derive(Clone, Copy)]
pub struct View<'k> {
    k: &'k Draft,
    /// The buffer.
    pub buf: Buf,
    /// What it is bound to.
    pub bound: BufferRef,
    /// Where its first element is.
    pub offset: Val<'k>,
}

/// Axes that are walked together: sizes, and for each operand its strides along them.
#[derive(Clone, Debug, PartialEq)]
pub struct Axes {
    /// The sizes.
    pub sizes: Vec<usize>,
    /// One list an operand.
    pub strides: Vec<Vec<isize>>,
}

/// The same in a kernel.
pub struct Walk<'k> {
    /// The sizes.
    pub sizes: Vec<Divisor<'k>>,
    /// One list an operand.
    pub strides: Vec<Vec<Val<'k>>>,
}

impl Axes {
    /// Axes of `sizes`: those of size 1 left out, and neighbours joined that every operand walks
    /// as one.
    pub fn joined(sizes: &[usize], operands: &[&[isize]]) -> Axes {
        let merged = merge_axes(sizes, operands, |_| false);
        let along = |own: &&[isize]| merged.iter().map(|axis| own[axis.last]).collect();
        Axes {
            sizes: merged.iter().map(|axis| axis.size).collect(),
            strides: operands.iter().map(along).collect(),
        }
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
    if dtypes.iter().any(|dtype| dtype.is_complex()) {
        // Its parts are elements of their own.
        return 1;
    }
    let widest = dtypes.iter().map(|d| d.size()).max().unwrap_or(1);
    (bytes / widest).clamp(1, MOST_NEIGHBOURS)
}

impl Draft {
    /// Binds an operand.
    pub fn view(&self, buffer: BufferRef, dtype: DType, access: Access) -> View<'_> {
        let buf = self.bind(buffer, dtype, access);
        View { k: self, buf, bound: buffer, offset: self.offset(buffer) }
    }

    /// Binds an input of `segment`.
    pub fn input(&self, segment: &Segment, index: usize) -> View<'_> {
        self.view(BufferRef::Input(index), segment.inputs[index].aval.dtype, Access::Read)
    }

    /// Binds the inputs of `segment` from `first` on.
    pub fn inputs(&self, segment: &Segment, first: usize) -> Vec<View<'_>> {
        (first..segment.inputs.len()).map(|index| self.input(segment, index)).collect()
    }

    /// Binds an output of `segment`.
    pub fn output(&self, segment: &Segment, index: usize) -> View<'_> {
        self.view(BufferRef::Output(index), segment.outputs[index].aval.dtype, Access::Write)
    }

    /// Binds the outputs of `segment`.
    pub fn outputs(&self, segment: &Segment) -> Vec<View<'_>> {
        (0..segment.outputs.len()).map(|index| self.output(segment, index)).collect()
    }

    /// Binds scratch memory.
    pub fn scratch(&self, index: usize, dtype: DType, access: Access) -> View<'_> {
        let buffer = BufferRef::Scratch(index);
        let buf = self.bind(buffer, dtype, access);
        View { k: self, buf, bound: buffer, offset: self.index(0) }
    }
}

/// The indices along `sizes` of element number `flat`, in row-major order.
pub fn unflatten<'k>(flat: Val<'k>, sizes: &[Divisor<'k>]) -> Vec<Val<'k>> {
    let mut index = vec![flat; sizes.len()];
    let mut left = flat;
    for axis in (1..sizes.len()).rev() {
        (left, index[axis]) = left.div_rem(&sizes[axis]);
    }
    if let Some(first) = index.first_mut() {
        *first = left;
    }
    index
}

/// Where the element at `index` is, from `start`.
pub fn place<'k>(start: Val<'k>, index: &[Val<'k>], strides: &[Val<'k>]) -> Val<'k> {
    // Negative strides wrap, as do the sums.
    index.iter().zip(strides).fold(start, |at, (&i, &stride)| at + i * stride)
}

impl<'k> View<'k> {
    /// Where the element at `index` is.
    pub fn at(&self, index: &[Val<'k>], strides: &[Val<'k>]) -> Val<'k> {
        place(self.offset, index, strides)
    }

    /// Loads the element at `index`.
    pub fn load(&self, index: &[Val<'k>], strides: &[Val<'k>]) -> Number<'k> {
        self.buf.load_number(self.at(index, strides))
    }

    /// Stores the element at `index`.
    pub fn store(&self, index: &[Val<'k>], strides: &[Val<'k>], number: Number<'k>) {
        self.buf.store_number(self.at(index, strides), number);
    }

    /// Loads `count` neighbours from `index` on, or the one that stands for all.
    pub fn load_many(&self, index: &[Val<'k>], strides: &[Val<'k>], count: u32) -> Vec<Number<'k>> {
        let repeats = strides.last().is_some_and(|stride| stride.is_literal_zero());
        self.load_at(self.at(index, strides), repeats, count)
    }

    /// Loads `count` neighbours from `at` on, or the one that stands for all.
    pub fn load_at(&self, at: Val<'k>, one_for_all: bool, count: u32) -> Vec<Number<'k>> {
        if count == 1 || one_for_all {
            return vec![self.buf.load_number(at); count as usize];
        }
        self.k.assume(self.bound, count);
        self.buf.load_vector(at, count).into_iter().map(Number::Real).collect()
    }

    /// Stores neighbours from `index` on.
    pub fn store_many(&self, index: &[Val<'k>], strides: &[Val<'k>], numbers: &[Number<'k>]) {
        self.store_at(self.at(index, strides), numbers);
    }

    /// Stores neighbours from `at` on, of which several have to be at a multiple of their count.
    pub fn store_at(&self, at: Val<'k>, numbers: &[Number<'k>]) {
        match numbers {
            [number] => self.buf.store_number(at, *number),
            _ => {
                self.k.assume(self.bound, numbers.len() as u32);
                let values: Vec<Val<'k>> = numbers.iter().map(|number| number.real()).collect();
                self.buf.store_vector(at, &values);
            }
        }
    }
}
