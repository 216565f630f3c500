//! An index taken apart.

use std::borrow::Cow;

use super::S;
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::gather::{expect_integers, normalize_index, wrap};
use crate::ops::movement::expand_axes;
use crate::ops::operand::broadcast;
use crate::ops::{flip, nonzero};
use crate::prim::Movement;
use crate::shape::{Aval, Dims, Shape};

/// An index taken apart: a slice of every axis, then index arrays into what is left.
pub(super) struct Lookup {
    /// The axes that the index inserts first, sorted; below they are axes as any other.
    pub(super) inserted: Dims,
    /// The first element, count and distance of each axis, ascending.
    pub(super) start: Dims,
    pub(super) sizes: Dims,
    pub(super) strides: Dims,
    /// The axes to run backwards.
    pub(super) flipped: Dims,
    /// The axes that go: those of plain numbers.
    pub(super) squeezed: Dims,
    /// Index arrays of one shape, with the axis that each indexes; sorted by axis.
    pub(super) arrays: Vec<(usize, Array)>,
    /// Before which of the axes that stay the arrays' axes stand.
    pub(super) at: usize,
}

/// The items with the places of its true elements for each bool array, which stands for as many axes as it has.
fn masked<'a>(op: &'static str, x: &Array, items: &'a [S]) -> Result<Cow<'a, [S]>> {
    let mask = |item: &'a S| match item {
        S::Array(array) if array.dtype() == DType::Bool => Some(array),
        S::Array(_) | S::At(_) | S::Range { .. } | S::NewAxis | S::Ellipsis => None,
    };
    if items.iter().all(|item| mask(item).is_none()) {
        return Ok(Cow::Borrowed(items));
    }
    let axes = |item: &'a S| match item {
        S::NewAxis | S::Ellipsis => 0,
        S::At(_) | S::Range { .. } | S::Array(_) => mask(item).map_or(1, Array::rank),
    };
    let named: usize = items.iter().map(axes).sum();
    let mut out = Vec::with_capacity(named);
    let mut at = 0;
    for item in items {
        let Some(mask) = mask(item) else {
            out.push(item.clone());
            at += match item {
                S::Ellipsis => x.rank().saturating_sub(named),
                S::NewAxis => 0,
                S::At(_) | S::Range { .. } | S::Array(_) => 1,
            };
            continue;
        };
        let own = mask.rank();
        if own == 0 || x.shape().get(at..at + own) != Some(&mask.shape()[..]) {
            let detail =
                format!("mask {} does not fit {} from axis {at} on", mask.aval(), x.aval());
            return Err(Error::index(op, detail));
        }
        out.extend(nonzero(mask)?.into_iter().map(S::Array));
        at += own;
    }
    Ok(Cow::Owned(out))
}

impl Lookup {
    pub(super) fn of(op: &'static str, x: &Array, items: &[S]) -> Result<Lookup> {
        let items = &masked(op, x, items)?[..];
        let named = items.iter().filter(|i| !matches!(i, S::NewAxis | S::Ellipsis)).count();
        let dots = items.iter().filter(|i| matches!(i, S::Ellipsis)).count();
        if named > x.rank() || dots > 1 {
            return Err(Error::argument(
                op,
                format!("{named} indices and {dots} ellipses do not fit {}", x.aval()),
            ));
        }
        const WHOLE: &S = &S::Range { start: None, stop: None, step: 1 };
        let mut full: Vec<&S> = Vec::with_capacity(items.len() + x.rank() - named);
        for item in items {
            match item {
                S::Ellipsis => full.extend((named..x.rank()).map(|_| WHOLE)),
                other => full.push(other),
            }
        }
        if dots == 0 {
            full.extend((named..x.rank()).map(|_| WHOLE));
        }
        let new = |&i: &usize| matches!(full[i], S::NewAxis);
        let mut old = x.aval().shape.iter();
        let sizes = full.iter().filter_map(|i| match i {
            S::NewAxis => Some(1),
            S::At(_) | S::Range { .. } | S::Ellipsis | S::Array(_) => old.next().copied(),
        });
        let mut lookup = Lookup {
            inserted: (0..full.len()).filter(new).collect(),
            start: Dims::from_elem(0, full.len()),
            sizes: sizes.collect(),
            strides: Dims::from_elem(1, full.len()),
            flipped: Dims::new(),
            squeezed: Dims::new(),
            arrays: Vec::new(),
            at: 0,
        };
        lookup.read(op, x, &full)?;
        Ok(lookup)
    }

    /// Reads the items, one an axis.
    fn read(&mut self, op: &'static str, x: &Array, items: &[&S]) -> Result<()> {
        let has_arrays = items.iter().any(|i| matches!(i, S::Array(_)));
        for (axis, item) in items.iter().enumerate() {
            match item {
                S::NewAxis | S::Ellipsis => {}
                S::Range { start, stop, step } => {
                    self.set_range(op, axis, *start, *stop, *step)?;
                }
                S::Array(array) => {
                    expect_integers(op, array)?;
                    self.arrays.push((axis, wrap(op, array, axis, self.sizes[axis])?));
                }
                S::At(index) => {
                    let at = normalize_index(op, *index, self.sizes[axis], x)?;
                    if has_arrays {
                        // Beside index arrays a number is one of them, as in NumPy.
                        let wide = if at <= i32::MAX as usize { DType::I32 } else { DType::I64 };
                        let aval = Aval::new((), wide);
                        self.arrays.push((axis, Array::constant(at, aval)));
                    } else {
                        (self.start[axis], self.sizes[axis]) = (at, 1);
                        self.squeezed.push(axis);
                    }
                }
            }
        }
        let mut shape = Shape::scalar();
        for (_, array) in &self.arrays {
            shape = shape.broadcast(&array.aval().shape, op)?;
        }
        for (_, array) in &mut self.arrays {
            *array = broadcast(array, &shape)?;
        }
        // Index arrays side by side leave their axes there, others leave them in front.
        if self.arrays.windows(2).all(|w| w[1].0 == w[0].0 + 1) {
            self.at = self.arrays.first().map_or(0, |(axis, _)| *axis);
        }
        Ok(())
    }

    fn set_range(
        &mut self,
        op: &'static str,
        axis: usize,
        start: Option<isize>,
        stop: Option<isize>,
        step: isize,
    ) -> Result<()> {
        let size = self.sizes[axis] as isize;
        if step == 0 {
            return Err(Error::argument(op, format!("the step of axis {axis} is 0")));
        }
        // The lowest and highest place where a range may start or stop.
        let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let place = |i: isize| if i < 0 { i + size } else { i }.clamp(low, high);
        let from = start.map_or(if step > 0 { low } else { high }, place);
        let to = stop.map_or(if step > 0 { high } else { low }, place);
        let length = if step > 0 { to - from } else { from - to };
        let count = length.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
        // A range that runs backwards is the same elements ascending, flipped.
        let last = from + step * (count.max(1) as isize - 1);
        self.start[axis] = if count == 0 { 0 } else { from.min(last).unsigned_abs() };
        self.sizes[axis] = count;
        // Where there is no second element, no step leads to it.
        self.strides[axis] = if count > 1 { step.unsigned_abs() } else { 1 };
        if step < 0 && count > 1 {
            self.flipped.push(axis);
        }
        Ok(())
    }

    /// The axes that index arrays index.
    pub(super) fn axes(&self) -> Dims {
        self.arrays.iter().map(|(axis, _)| *axis).collect()
    }

    /// How many axes the index arrays have.
    pub(super) fn lead(&self) -> usize {
        self.arrays.first().map_or(0, |(_, array)| array.rank())
    }

    /// The slice of `x`, with every axis kept.
    pub(super) fn slice(&self, x: &Array) -> Result<Array> {
        let x = expand_axes(x, self.inserted.clone())?;
        let out = if self.is_whole(&x) {
            x
        } else {
            let slice = Movement::Slice {
                start: self.start.clone(),
                sizes: self.sizes.clone(),
                strides: self.strides.clone(),
            };
            Array::apply(slice, &[&x])?
        };
        flip(&out, &self.flipped)
    }

    pub(super) fn is_whole(&self, x: &Array) -> bool {
        x.aval().shape[..] == self.sizes[..] && self.strides.iter().all(|&s| s == 1)
    }

    /// For each axis of the result the axis of what a gather gives without the indexed axes: the
    /// index arrays' axes come first there.
    pub(super) fn order(&self, rank: usize) -> Dims {
        let lead = self.lead();
        let (before, after) = (lead..lead + self.at, lead + self.at..rank);
        before.chain(0..lead).chain(after).collect()
    }
}
