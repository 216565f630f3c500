//! Derivatives of scatters, along one axis or by slices.

use smallvec::SmallVec;

use super::{Gather, GatherAxis, Scatter, ScatterAxis, ScatterMode};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::prim::record::{
    broadcast, cast, compare, div, iota, is_zero, like, masked, mul, or_zeros, reshape, select,
    sub, zeros,
};
use crate::prim::{Compare, Diff, Linearity, Mark, Op, Primitive, Reverse, Tangents};
use crate::shape::{Aval, Shape};

/// A scatter: x, updates and indices in; x with the updates joined in out.
pub(super) trait Places: Primitive + Into<Op> {
    /// The same places, joined differently.
    fn with_mode(&self, mode: ScatterMode) -> Self;

    fn mode(&self) -> ScatterMode;

    /// The gather that reads what updates of this aval write.
    fn reader(&self, updates: &Aval, indices: &[Array]) -> Op;

    /// What is at each update's place.
    fn read(&self, x: &Array, updates: &Aval, indices: &[Array]) -> Result<Array> {
        let inputs: SmallVec<[&Array; 4]> = std::iter::once(x).chain(indices).collect();
        Array::apply(self.reader(updates, indices), &inputs)
    }

    /// `x` with `updates` joined in.
    fn write(
        &self,
        mode: ScatterMode,
        x: &Array,
        updates: &Array,
        indices: &[Array],
    ) -> Result<Array> {
        let inputs: SmallVec<[&Array; 4]> = [x, updates].into_iter().chain(indices).collect();
        Array::apply(self.with_mode(mode), &inputs)
    }
}

impl Places for Scatter {
    fn with_mode(&self, mode: ScatterMode) -> Self {
        Scatter { mode, axes: self.axes.clone() }
    }

    fn mode(&self) -> ScatterMode {
        self.mode
    }

    fn reader(&self, updates: &Aval, indices: &[Array]) -> Op {
        let lead = indices.first().map_or(0, Array::rank);
        let sizes = updates.shape[lead..].iter().copied().collect();
        Gather { axes: self.axes.clone(), sizes }.into()
    }
}

impl Places for ScatterAxis {
    fn with_mode(&self, mode: ScatterMode) -> Self {
        ScatterAxis { mode, axis: self.axis }
    }

    fn mode(&self) -> ScatterMode {
        self.mode
    }

    fn reader(&self, _: &Aval, _: &[Array]) -> Op {
        GatherAxis { axis: self.axis }.into()
    }
}

/// `updates` added into zeros: the transpose of a gather.
pub(super) fn into_zeros(
    scatter: impl Places,
    x: &Aval,
    updates: &Array,
    indices: &[Array],
) -> Result<Array> {
    scatter.write(ScatterMode::Add, &zeros(x), updates, indices)
}

/// The same for one index a lane: what is elsewhere is 0, which an elementwise program can say, so that
/// it runs with what comes after it and no array of zeros is made.
pub(super) fn at_one_place(
    gather: &GatherAxis,
    x: &Aval,
    ct: &Array,
    index: &Array,
) -> Result<Array> {
    let axis = gather.axis;
    let size = x.shape[axis];
    let dtype = if u32::try_from(size).is_ok() { DType::U32 } else { DType::U64 };
    let mut along = vec![1; x.shape.rank()];
    along[axis] = size;
    let places = reshape(&iota(Shape::from(size), dtype, 0)?, Shape::from(along))?;
    // An index outside its axis stays an error.
    let looked_at = Array::apply(gather.clone(), &[&zeros(x), index])?;
    let index = Array::apply(Mark::Depends, &[&cast(index, dtype)?, &looked_at])?;
    let here = compare(Compare::Eq, &broadcast(&places, &x.shape)?, &broadcast(&index, &x.shape)?)?;
    masked(&here, &broadcast(ct, &x.shape)?)
}

/// The derivative of a scatter. Adding and replacing are linear in x and the updates together.
pub(super) fn scatter<P: Places>(mode: ScatterMode) -> Diff<P> {
    match mode {
        ScatterMode::Add | ScatterMode::Set => Diff::Linear {
            linearity: Linearity::Joint,
            operand: |_, operand| operand < 2,
            transpose,
        },
        ScatterMode::Max | ScatterMode::Min => Diff::Custom { jvp: extreme_jvp, vjp: extreme_vjp },
        ScatterMode::Prod => Diff::Custom { jvp: product_jvp, vjp: product_vjp },
    }
}

fn transpose<P: Places>(
    scatter: &P,
    inputs: &[Array],
    operand: usize,
    ct: &Array,
) -> Result<Option<Array>> {
    let (updates, indices) = (inputs[1].aval(), &inputs[2..]);
    let set = scatter.mode() == ScatterMode::Set;
    Ok(Some(match (operand, set) {
        (0, false) => ct.clone(),
        (0, true) => scatter.write(ScatterMode::Set, ct, &zeros(updates), indices)?,
        (_, false) => scatter.read(ct, updates, indices)?,
        (_, true) => {
            let last = winners(scatter, inputs)?;
            masked(&last, &scatter.read(ct, updates, indices)?)?
        }
    }))
}

/// The updates that stay where indices repeat: those whose number is found at their place after
/// the numbers have been scattered as the updates were.
fn winners<P: Places>(scatter: &P, inputs: &[Array]) -> Result<Array> {
    let (x, updates, indices) = (&inputs[0], inputs[1].aval(), &inputs[2..]);
    let count = updates.shape.size();
    let dtype = if u32::try_from(count).is_ok() { DType::U32 } else { DType::U64 };
    let numbers = reshape(&iota(Shape::from(count), dtype, 0)?, updates.shape.clone())?;
    let nowhere = zeros(&Aval { shape: x.shape().clone(), dtype });
    let last = scatter.write(ScatterMode::Set, &nowhere, &numbers, indices)?;
    let found = scatter.read(&last, &Aval { shape: updates.shape.clone(), dtype }, indices)?;
    compare(Compare::Eq, &found, &numbers)
}

/// Where x and the updates are the result, and how many of them are at each place.
struct Ties {
    x: Array,
    updates: Array,
    count: Array,
}

fn ties<P: Places>(scatter: &P, inputs: &[Array], y: &Array) -> Result<Ties> {
    let (x, updates, indices) = (&inputs[0], &inputs[1], &inputs[2..]);
    let dtype = y.dtype().accumulator();
    let in_x = compare(Compare::Eq, x, y)?;
    let there = scatter.read(y, updates.aval(), indices)?;
    let in_updates = compare(Compare::Eq, updates, &there)?;
    let one_each = cast(&in_updates, dtype)?;
    let count = scatter.write(ScatterMode::Add, &cast(&in_x, dtype)?, &one_each, indices)?;
    Ok(Ties { x: in_x, updates: in_updates, count })
}

/// What ties for the extreme shares evenly, as in a reduction; a NaN result gives nothing.
fn extreme_vjp<P: Places>(scatter: &P, r: &Reverse<'_>) -> Result<Tangents> {
    let mut out = vec![None; r.inputs.len()];
    let Some(ct) = &r.cotangents[0] else {
        return Ok(out);
    };
    let ties = ties(scatter, r.inputs, &r.outputs[0])?;
    let share = cast(&div(&cast(ct, ties.count.dtype())?, &ties.count)?, ct.dtype())?;
    out[0] = Some(masked(&ties.x, &share)?);
    if r.wanted[1] {
        let there = scatter.read(&share, r.inputs[1].aval(), &r.inputs[2..])?;
        out[1] = Some(masked(&ties.updates, &there)?);
    }
    Ok(out)
}

fn extreme_jvp<P: Places>(
    scatter: &P,
    inputs: &[Array],
    outputs: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    let y = &outputs[0];
    let ties = ties(scatter, inputs, y)?;
    let dtype = ties.count.dtype();
    let share = |operand: usize, mask: &Array| {
        let tangent = or_zeros(tangents[operand].as_ref(), inputs[operand].aval());
        masked(mask, &cast(&tangent, dtype)?)
    };
    let (x, updates) = (share(0, &ties.x)?, share(1, &ties.updates)?);
    let sum = scatter.write(ScatterMode::Add, &x, &updates, &inputs[2..])?;
    // A NaN is nowhere found, so nothing may be divided by its count.
    let nowhere = is_zero(&ties.count)?;
    let count = select(&nowhere, &like(&ties.count, 1.0), &ties.count)?;
    Ok(vec![Some(cast(&div(&sum, &count)?, y.dtype())?)])
}

/// The derivative of a product of x and updates by x and by each update: the product of all other
/// factors at its place.
///
/// The factors that are 0 enter through their sum, so that derivatives up to the second are right
/// where one or two factors are 0; from the third on, products of zeros count as constants.
fn product_factors<P: Places>(scatter: &P, inputs: &[Array]) -> Result<(Array, Array)> {
    let (x, updates, indices) = (&inputs[0], &inputs[1], &inputs[2..]);
    let write = |mode, x: &Array, u: &Array| scatter.write(mode, x, u, indices);
    let read = |x: &Array| scatter.read(x, updates.aval(), indices);
    let one = like(updates, 1.0);
    let by_x = write(ScatterMode::Prod, &like(x, 1.0), updates)?;

    let (zero_x, zero_u) = (is_zero(x)?, is_zero(updates)?);
    let rest = write(
        ScatterMode::Prod,
        &select(&zero_x, &like(x, 1.0), x)?,
        &select(&zero_u, &one, updates)?,
    )?;
    let rest = div(&read(&rest)?, &select(&zero_u, &one, updates)?)?;
    let dtype = DType::U32;
    let zeros_there =
        read(&write(ScatterMode::Add, &cast(&zero_x, dtype)?, &cast(&zero_u, dtype)?)?)?;
    let other_zeros = sub(&zeros_there, &cast(&zero_u, dtype)?)?;
    let zero_sum = write(ScatterMode::Add, &masked(&zero_x, x)?, &masked(&zero_u, updates)?)?;
    let other_sum = sub(&read(&zero_sum)?, &masked(&zero_u, updates)?)?;

    let one_more = compare(Compare::Eq, &other_zeros, &like(&other_zeros, 1.0))?;
    let through_zero = masked(&one_more, &mul(&other_sum, &rest)?)?;
    Ok((by_x, select(&is_zero(&other_zeros)?, &rest, &through_zero)?))
}

fn product_vjp<P: Places>(scatter: &P, r: &Reverse<'_>) -> Result<Tangents> {
    let mut out = vec![None; r.inputs.len()];
    let Some(ct) = &r.cotangents[0] else {
        return Ok(out);
    };
    let (by_x, by_update) = product_factors(scatter, r.inputs)?;
    out[0] = Some(mul(ct, &by_x)?);
    let there = scatter.read(ct, r.inputs[1].aval(), &r.inputs[2..])?;
    out[1] = Some(mul(&there, &by_update)?);
    Ok(out)
}

fn product_jvp<P: Places>(
    scatter: &P,
    inputs: &[Array],
    _: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    let (by_x, by_update) = product_factors(scatter, inputs)?;
    let x = match &tangents[0] {
        Some(tangent) => mul(tangent, &by_x)?,
        None => zeros(inputs[0].aval()),
    };
    Ok(vec![Some(match &tangents[1] {
        Some(tangent) => {
            let updates = mul(tangent, &by_update)?;
            scatter.write(ScatterMode::Add, &x, &updates, &inputs[2..])?
        }
        None => x,
    })])
}
