//! Indexing: numbers, ranges, new axes and index arrays, as NumPy reads them.

use std::ops::{Bound, RangeBounds};

use super::gather::{expect_integers, normalize_index, wrap};
use super::movement::{expand_axes, permute, squeeze_axes};
use super::operand::{Operand, broadcast};
use super::{add, flip, maximum, minimum, multiply};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::{Gather, Movement, Scatter, ScatterMode};
use crate::shape::{Aval, Dims, Shape};

/// One item of an index.
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::S};
/// let x = ops::zeros([4, 5, 6], DType::F32)?;
/// let y = ops::index(&x, &[S::at(-1), S::new_axis(), S::range(1..), S::range(..).step(2)])?;
/// assert_eq!(y.shape()[..], [1, 4, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum S {
    /// The element at an index, whose axis goes.
    At(isize),
    /// The elements from a start up to but without a stop.
    Range {
        /// The first index; the first element, or the last for a negative step, where it is `None`.
        start: Option<isize>,
        /// The index to stop before; the end where it is `None`.
        stop: Option<isize>,
        /// The distance between elements; negative runs backwards.
        step: isize,
    },
    /// An axis of size 1 that is not in the array.
    NewAxis,
    /// As many whole axes as are not named.
    Ellipsis,
    /// The elements at the indices in an array; a bool array is not taken.
    Array(Array),
}

impl S {
    /// The element at `index`, counted from the end where it is negative.
    pub fn at(index: isize) -> S {
        S::At(index)
    }

    /// The elements of a range, whose ends count from the end where they are negative.
    pub fn range(range: impl RangeBounds<isize>) -> S {
        let start = match range.start_bound() {
            Bound::Included(&i) => Some(i),
            Bound::Excluded(&i) => Some(i + 1),
            Bound::Unbounded => None,
        };
        let stop = match range.end_bound() {
            // Up to and with −1 is up to the end.
            Bound::Included(&-1) | Bound::Unbounded => None,
            Bound::Included(&i) => Some(i + 1),
            Bound::Excluded(&i) => Some(i),
        };
        S::Range { start, stop, step: 1 }
    }

    /// This range with another distance between elements; anything else as it is.
    pub fn step(self, step: isize) -> S {
        match self {
            S::Range { start, stop, step: _ } => S::Range { start, stop, step },
            other => other,
        }
    }

    /// A new axis of size 1.
    pub fn new_axis() -> S {
        S::NewAxis
    }

    /// As many whole axes as are not named.
    pub fn ellipsis() -> S {
        S::Ellipsis
    }

    /// The elements at the indices in `array`.
    pub fn array(array: &Array) -> S {
        S::Array(array.clone())
    }
}

impl From<isize> for S {
    fn from(index: isize) -> S {
        S::At(index)
    }
}

impl From<&Array> for S {
    fn from(array: &Array) -> S {
        S::array(array)
    }
}

/// An index taken apart: a slice of every axis, then index arrays into what is left.
struct Plan {
    /// The axes that the index inserts first, sorted; below they are axes as any other.
    inserted: Dims,
    /// The first element, count and distance of each axis, ascending.
    start: Dims,
    sizes: Dims,
    strides: Dims,
    /// The axes to run backwards.
    flipped: Dims,
    /// The axes that go: those of plain numbers.
    squeezed: Dims,
    /// Index arrays of one shape, with the axis that each indexes; sorted by axis.
    arrays: Vec<(usize, Array)>,
    /// Before which of the axes that stay the arrays' axes stand.
    at: usize,
}

impl Plan {
    fn of(op: &'static str, x: &Array, items: &[S]) -> Result<Plan> {
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
        let mut old = x.shape().iter();
        let sizes = full.iter().filter_map(|i| match i {
            S::NewAxis => Some(1),
            S::At(_) | S::Range { .. } | S::Ellipsis | S::Array(_) => old.next().copied(),
        });
        let mut plan = Plan {
            inserted: (0..full.len()).filter(new).collect(),
            start: Dims::from_elem(0, full.len()),
            sizes: sizes.collect(),
            strides: Dims::from_elem(1, full.len()),
            flipped: Dims::new(),
            squeezed: Dims::new(),
            arrays: Vec::new(),
            at: 0,
        };
        plan.read(op, x, &full)?;
        Ok(plan)
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
                    self.arrays.push((axis, wrap(array, self.sizes[axis])?));
                }
                S::At(index) => {
                    let at = normalize_index(op, *index, self.sizes[axis], x)?;
                    if has_arrays {
                        // Beside index arrays a number is one of them, as in NumPy.
                        let aval = Aval::new((), DType::I64);
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
            shape = shape.broadcast(array.shape(), op)?;
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
        self.strides[axis] = step.unsigned_abs();
        if step < 0 && count > 1 {
            self.flipped.push(axis);
        }
        Ok(())
    }

    /// The axes that index arrays index.
    fn axes(&self) -> Dims {
        self.arrays.iter().map(|(axis, _)| *axis).collect()
    }

    /// How many axes the index arrays have.
    fn lead(&self) -> usize {
        self.arrays.first().map_or(0, |(_, array)| array.rank())
    }

    /// The slice of `x`, with every axis kept.
    fn slice(&self, x: &Array) -> Result<Array> {
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

    fn is_whole(&self, x: &Array) -> bool {
        x.shape()[..] == self.sizes[..] && self.strides.iter().all(|&s| s == 1)
    }

    /// For each axis of the result the axis of what a gather gives without the indexed axes: the
    /// index arrays' axes come first there.
    fn order(&self, rank: usize) -> Dims {
        let lead = self.lead();
        let (before, after) = (lead..lead + self.at, lead + self.at..rank);
        before.chain(0..lead).chain(after).collect()
    }
}

/// The part of `x` that an index says, as NumPy reads it.
///
/// # Shapes
/// A number removes its axis, a range keeps it, index arrays put theirs in its place. Several index
/// arrays broadcast; where they do not stand side by side, their axes come first.
///
/// # Errors
/// Where a number is out of range or an array does not hold integers; when it runs where an array
/// holds an index out of range.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let x = Array::from_slice(&[1, 2, 3, 4, 5, 6], [2, 3])?;
/// assert_eq!(ops::index(&x, &[S::at(1), S::range(..).step(-1)])?.to_vec::<i32>()?, [6, 5, 4]);
/// let columns = Array::from_slice(&[2, 0], [2])?;
/// assert_eq!(ops::index(&x, &[S::at(0), S::array(&columns)])?.to_vec::<i32>()?, [3, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn index(x: &Array, items: &[S]) -> Result<Array> {
    let plan = Plan::of("index", x, items)?;
    let part = plan.slice(x)?;
    if plan.arrays.is_empty() {
        return squeeze_axes(&part, plan.squeezed);
    }
    let axes = plan.axes();
    let mut sizes = part.shape().0.clone();
    axes.iter().for_each(|&axis| sizes[axis] = 1);
    let mut inputs = vec![&part];
    inputs.extend(plan.arrays.iter().map(|(_, array)| array));
    let out = Array::apply(Gather { axes: axes.clone(), sizes }, &inputs)?;
    let out = squeeze_axes(&out, axes.iter().map(|axis| plan.lead() + axis).collect())?;
    let order = plan.order(out.rank());
    permute(&out, order)
}

/// `x` with `values` joined into the part that an index says.
fn update<'a>(
    op: &'static str,
    x: &Array,
    items: &[S],
    values: impl Into<Operand<'a>>,
    mode: ScatterMode,
) -> Result<Array> {
    let (plan, values) = (Plan::of(op, x, items)?, values.into());
    let part = plan.slice(x)?;
    let joined = if plan.arrays.is_empty() {
        let kept = part.shape().without(&plan.squeezed);
        let values = expand_axes(&fill(op, x, values, &kept)?, plan.squeezed.clone())?;
        match mode {
            ScatterMode::Set => values,
            ScatterMode::Add => add(&part, &values)?,
            ScatterMode::Prod => multiply(&part, &values)?,
            ScatterMode::Max => maximum(&part, &values)?,
            ScatterMode::Min => minimum(&part, &values)?,
        }
    } else {
        scatter_into(op, &plan, &part, values, mode)?
    };
    let joined = flip(&joined, &plan.flipped)?;
    let whole = expand_axes(x, plan.inserted.clone())?;
    let out = if plan.is_whole(&whole) {
        joined
    } else {
        let update = Movement::SliceUpdate { start: plan.start, strides: plan.strides };
        Array::apply(update, &[&whole, &joined])?
    };
    squeeze_axes(&out, plan.inserted)
}

/// `values` in x's dtype, broadcast to `shape`.
fn fill(op: &'static str, x: &Array, values: Operand<'_>, shape: &Shape) -> Result<Array> {
    if let Operand::Array(array) = values
        && array.shape().broadcast(shape, op)? != *shape
    {
        return Err(Error::shape(
            op,
            format!("values {} do not fit the indexed part {shape}", array.aval()),
        ));
    }
    values.to(x.dtype(), shape)
}

/// `part` with `values` joined in at the plan's index arrays.
fn scatter_into(
    op: &'static str,
    plan: &Plan,
    part: &Array,
    values: Operand<'_>,
    mode: ScatterMode,
) -> Result<Array> {
    let axes = plan.axes();
    let lead = plan.arrays[0].1.shape();
    let kept = part.shape().without(&axes);
    let gathered: Shape = lead.iter().chain(kept.iter()).copied().collect();
    let order = plan.order(gathered.rank());
    let shape: Shape = order.iter().map(|&a| gathered[a]).collect();
    let values = fill(op, part, values, &shape)?;
    let mut back = order.clone();
    order.iter().enumerate().for_each(|(i, &a)| back[a] = i);
    let updates = permute(&values, back)?;
    let updates = expand_axes(&updates, axes.iter().map(|axis| lead.rank() + axis).collect())?;
    let mut inputs = vec![part, &updates];
    inputs.extend(plan.arrays.iter().map(|(_, array)| array));
    Array::apply(Scatter { mode, axes }, &inputs)
}

/// `x` with the part that an index says replaced by `values`; where indices repeat, the last wins.
///
/// # Shapes
/// The values broadcast to the shape that [`index`] gives.
///
/// # Dtypes
/// The values are taken in x's dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let x = Array::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// assert_eq!(ops::at_set(&x, &[S::range(..), S::at(1)], 0)?.to_vec::<i32>()?, [1, 0, 3, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn at_set<'a>(x: &Array, items: &[S], values: impl Into<Operand<'a>>) -> Result<Array> {
    update("at_set", x, items, values, ScatterMode::Set)
}

/// `x` with `values` added to the part that an index says; repeated indices all add.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let (x, at) = (Array::from_slice(&[0, 0], [2])?, Array::from_slice(&[1, 1], [2])?);
/// assert_eq!(ops::at_add(&x, &[S::array(&at)], 3)?.to_vec::<i32>()?, [0, 6]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn at_add<'a>(x: &Array, items: &[S], values: impl Into<Operand<'a>>) -> Result<Array> {
    update("at_add", x, items, values, ScatterMode::Add)
}

/// `x` with `values` multiplied into the part that an index says; repeated indices all multiply.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let x = Array::from_slice(&[2, 3], [2])?;
/// assert_eq!(ops::at_multiply(&x, &[S::at(0)], 5)?.to_vec::<i32>()?, [10, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn at_multiply<'a>(x: &Array, items: &[S], values: impl Into<Operand<'a>>) -> Result<Array> {
    update("at_multiply", x, items, values, ScatterMode::Prod)
}

/// `x` with the larger of itself and `values` in the part that an index says.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let x = Array::from_slice(&[2, 3], [2])?;
/// assert_eq!(ops::at_max(&x, &[S::at(0)], 5)?.to_vec::<i32>()?, [5, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn at_max<'a>(x: &Array, items: &[S], values: impl Into<Operand<'a>>) -> Result<Array> {
    update("at_max", x, items, values, ScatterMode::Max)
}

/// `x` with the smaller of itself and `values` in the part that an index says.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::S};
/// let x = Array::from_slice(&[2, 3], [2])?;
/// assert_eq!(ops::at_min(&x, &[S::at(0)], 1)?.to_vec::<i32>()?, [1, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn at_min<'a>(x: &Array, items: &[S], values: impl Into<Operand<'a>>) -> Result<Array> {
    update("at_min", x, items, values, ScatterMode::Min)
}

/// The elements from `start` up to but without `stop`, `step` apart, along each axis.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4, 5], [5])?;
/// assert_eq!(ops::slice(&x, &[1], &[5], &[2])?.to_vec::<i32>()?, [2, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn slice(x: &Array, start: &[isize], stop: &[isize], step: &[isize]) -> Result<Array> {
    index(x, &ranges("slice", x, start, stop, step)?)
}

/// `x` with the elements from `start` up to but without `stop`, `step` apart along each axis,
/// replaced by `update`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4, 5], [5])?;
/// let zero = Array::scalar(0);
/// assert_eq!(ops::slice_update(&x, &zero, &[1], &[5], &[2])?.to_vec::<i32>()?, [1, 0, 3, 0, 5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn slice_update(
    x: &Array,
    update: &Array,
    start: &[isize],
    stop: &[isize],
    step: &[isize],
) -> Result<Array> {
    self::update(
        "slice_update",
        x,
        &ranges("slice_update", x, start, stop, step)?,
        update,
        ScatterMode::Set,
    )
}

/// A range an axis.
fn ranges(
    op: &'static str,
    x: &Array,
    start: &[isize],
    stop: &[isize],
    step: &[isize],
) -> Result<Vec<S>> {
    let rank = x.rank();
    if start.len() != rank || stop.len() != rank || step.len() != rank {
        return Err(Error::argument(
            op,
            format!("start {start:?}, stop {stop:?} and step {step:?} do not fit {}", x.aval()),
        ));
    }
    let range = |i: usize| S::Range { start: Some(start[i]), stop: Some(stop[i]), step: step[i] };
    Ok((0..rank).map(range).collect())
}
