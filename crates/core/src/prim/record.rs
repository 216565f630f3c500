//! Recording primitives from within rules.
//!
//! A rule knows that its shapes and dtypes fit, so nothing here broadcasts or promotes; what would
//! change nothing is not recorded.

#![deny(clippy::wildcard_enum_match_arm)]

use super::{
    Binary, Cast, Compare, Iota, Movement, Op, Primitive, Reduce, ReduceKind, ScatterAxis,
    ScatterMode, Select, Unary,
};
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::shape::{Aval, Dims, Shape};

/// Any op; gives all its outputs.
pub(crate) fn op(op: &Op, inputs: &[&Array]) -> Result<Vec<Array>> {
    if matches!(op, Op::Movement(_)) {
        // The road that makes views of what is already computed.
        return Ok(vec![Array::apply(op.clone(), inputs)?]);
    }
    Array::apply_multi(op.clone(), inputs)
}

pub(crate) fn add(a: &Array, b: &Array) -> Result<Array> {
    Array::apply(Binary::Add, &[a, b])
}

pub(crate) fn sub(a: &Array, b: &Array) -> Result<Array> {
    Array::apply(Binary::Sub, &[a, b])
}

pub(crate) fn mul(a: &Array, b: &Array) -> Result<Array> {
    Array::apply(Binary::Mul, &[a, b])
}

pub(crate) fn div(a: &Array, b: &Array) -> Result<Array> {
    Array::apply(Binary::Div, &[a, b])
}

pub(crate) fn neg(x: &Array) -> Result<Array> {
    Array::apply(Unary::Neg, &[x])
}

/// `x` times a number.
pub(crate) fn scale(x: &Array, by: f64) -> Result<Array> {
    mul(x, &like(x, by))
}

/// `x` plus a number.
pub(crate) fn shift(x: &Array, by: f64) -> Result<Array> {
    add(x, &like(x, by))
}

/// (1 − x)·(1 + x): 1 − x² without the cancellation near 1.
pub(crate) fn one_minus_square(x: &Array) -> Result<Array> {
    mul(&sub(&like(x, 1.0), x)?, &shift(x, 1.0)?)
}

/// The sum of what is there; `None` if nothing is.
pub(crate) fn sum_of(terms: impl IntoIterator<Item = Option<Array>>) -> Result<Option<Array>> {
    terms.into_iter().flatten().try_fold(None, |sum: Option<Array>, term| {
        Ok(Some(match sum {
            Some(sum) => add(&sum, &term)?,
            None => term,
        }))
    })
}

/// A number in the shape and dtype of `x`.
pub(crate) fn like(x: &Array, value: f64) -> Array {
    Array::constant(Scalar::Float(value), x.aval().clone())
}

/// Zeros of `aval`.
pub(crate) fn zeros(aval: &Aval) -> Array {
    Array::constant(Scalar::Int(0), aval.clone())
}

/// The tangent or cotangent as an array, where a rule cannot do with a symbolic zero.
pub(crate) fn or_zeros(value: Option<&Array>, aval: &Aval) -> Array {
    value.cloned().unwrap_or_else(|| zeros(aval))
}

pub(crate) fn iota(shape: Shape, dtype: DType, axis: usize) -> Result<Array> {
    Array::apply(Iota { shape, dtype, axis }, &[])
}

pub(crate) fn compare(how: Compare, a: &Array, b: &Array) -> Result<Array> {
    Array::apply(how, &[a, b])
}

/// Where `x` is 0.
pub(crate) fn is_zero(x: &Array) -> Result<Array> {
    compare(Compare::Eq, x, &zeros(x.aval()))
}

pub(crate) fn select(condition: &Array, a: &Array, b: &Array) -> Result<Array> {
    Array::apply(Select, &[condition, a, b])
}

/// `x` where the condition is true, 0 elsewhere.
pub(crate) fn masked(condition: &Array, x: &Array) -> Result<Array> {
    select(condition, x, &zeros(x.aval()))
}

pub(crate) fn cast(x: &Array, to: DType) -> Result<Array> {
    if x.dtype() == to {
        return Ok(x.clone());
    }
    Array::apply(Cast { to }, &[x])
}

pub(crate) fn sum(x: &Array, axes: &[usize]) -> Result<Array> {
    if axes.is_empty() {
        return Ok(x.clone());
    }
    Array::apply(Reduce { kind: ReduceKind::Sum, axes: Dims::from_slice(axes) }, &[x])
}

/// The sum over every axis.
pub(crate) fn sum_all(x: &Array) -> Result<Array> {
    let axes: Dims = (0..x.rank()).collect();
    sum(x, &axes)
}

pub(crate) fn reshape(x: &Array, shape: Shape) -> Result<Array> {
    if *x.shape() == shape {
        return Ok(x.clone());
    }
    Array::apply(Movement::Reshape(shape), &[x])
}

pub(crate) fn flatten(x: &Array, start: usize, end: usize) -> Result<Array> {
    Array::apply(Movement::Flatten { start, end }, &[x])
}

pub(crate) fn unflatten(x: &Array, axis: usize, sizes: &[usize]) -> Result<Array> {
    Array::apply(Movement::Unflatten { axis, sizes: Dims::from_slice(sizes) }, &[x])
}

pub(crate) fn squeeze(x: &Array, axes: &[usize]) -> Result<Array> {
    Array::apply(Movement::Squeeze(Dims::from_slice(axes)), &[x])
}

pub(crate) fn expand_dims(x: &Array, axes: &[usize]) -> Result<Array> {
    if axes.is_empty() {
        return Ok(x.clone());
    }
    Array::apply(Movement::ExpandDims(Dims::from_slice(axes)), &[x])
}

pub(crate) fn transpose(x: &Array, axes: Dims) -> Result<Array> {
    if axes.iter().copied().eq(0..axes.len()) {
        return Ok(x.clone());
    }
    Array::apply(Movement::Transpose(axes), &[x])
}

/// Axis `from` moved to `to`; the others keep their order.
pub(crate) fn move_axis(x: &Array, from: usize, to: usize) -> Result<Array> {
    let mut axes: Dims = (0..x.rank()).filter(|&a| a != from).collect();
    axes.insert(to, from);
    transpose(x, axes)
}

/// `x` with its last two axes swapped: rows as columns.
pub(crate) fn transposed(x: &Array) -> Result<Array> {
    move_axis(x, x.rank() - 1, x.rank() - 2)
}

/// `x` repeated to `shape`; a constant becomes a larger constant.
pub(crate) fn broadcast(x: &Array, shape: &Shape) -> Result<Array> {
    if x.aval().shape == *shape {
        return Ok(x.clone());
    }
    if let Op::Constant(constant) = &x.node.op {
        Movement::Broadcast(shape.clone()).infer(&[x.aval()])?;
        let aval = Aval { shape: shape.clone(), dtype: x.dtype() };
        return Ok(Array::constant(constant.value, aval));
    }
    Array::apply(Movement::Broadcast(shape.clone()), &[x])
}

/// A reduction's result over `axes` of `shape`, repeated back to `shape`.
pub(crate) fn broadcast_back(x: &Array, axes: &[usize], shape: &Shape) -> Result<Array> {
    if let Op::Constant(constant) = &x.node.op {
        // Every element is alike: no axis is missed.
        let aval = Aval { shape: shape.clone(), dtype: x.dtype() };
        return Ok(Array::constant(constant.value, aval));
    }
    broadcast(&expand_dims(x, axes)?, shape)
}

/// `count` elements from `start` along one axis.
pub(crate) fn slice_axis(x: &Array, axis: usize, start: usize, count: usize) -> Result<Array> {
    if start == 0 && count == x.shape()[axis] {
        return Ok(x.clone());
    }
    let mut starts = Dims::from_elem(0, x.rank());
    starts[axis] = start;
    let sizes = x.shape().with(axis, count).0;
    let strides = Dims::from_elem(1, x.rank());
    Array::apply(Movement::Slice { start: starts, sizes, strides }, &[x])
}

pub(crate) fn concatenate(parts: &[&Array], axis: usize) -> Result<Array> {
    match parts {
        [one] => Ok((*one).clone()),
        parts => Array::apply(Movement::Concatenate { axis }, parts),
    }
}

/// `x` with the slice of `update`'s shape at `start` replaced.
pub(crate) fn slice_update(
    x: &Array,
    update: &Array,
    start: &Dims,
    strides: &Dims,
) -> Result<Array> {
    let movement = Movement::SliceUpdate { start: start.clone(), strides: strides.clone() };
    Array::apply(movement, &[x, update])
}

/// Zeros of `aval` with each update added at its index along `axis`.
pub(crate) fn add_along(
    aval: &Aval,
    updates: &Array,
    indices: &Array,
    axis: usize,
) -> Result<Array> {
    let scatter = ScatterAxis { mode: ScatterMode::Add, axis };
    Array::apply(scatter, &[&zeros(aval), updates, indices])
}
