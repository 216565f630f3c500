//! Functions of complex numbers that are not primitives, and their order: by real parts, and where these are
//! equal by imaginary ones, as in NumPy. NaN in either part is NaN: it is the last, the largest and the
//! smallest.

use super::compare::compare as compared;
use super::operand::{Operand, constant_like};
use super::{
    ScanOptions, abs, add, any, argmax, argsort, divide, equal, exp, expand_axes, flip, full,
    greater, imag, isfinite, isnan, less, log, logical_and, logical_not, logical_or, multiply,
    negative, real, squeeze_axes, subtract, take_along_axis, where_,
};
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::prim::record::{cast, concatenate, slice_axis};
use crate::prim::{Binary, Compare, ReduceKind};
use crate::shape::Dims;
use crate::transform::associative_scan;

/// re + i·im, of reals.
pub(super) fn of_parts(re: &Array, im: &Array) -> Result<Array> {
    // ∞·i is NaN + i·∞.
    let finite = where_(&isfinite(im)?, im, 0)?;
    let mut out = add(re, &multiply(&finite, Scalar::Complex(0.0, 1.0))?)?;
    for end in [f32::INFINITY, f32::NEG_INFINITY] {
        out = where_(&equal(im, end)?, &add(re, Scalar::Complex(0.0, end))?, &out)?;
    }
    where_(&isnan(im)?, &add(re, Scalar::Complex(0.0, f32::NAN))?, &out)
}

/// z/|z|, and 0 of 0.
pub(super) fn sign(z: &Array) -> Result<Array> {
    let wide = cast(z, z.dtype().accumulator())?;
    // The size of a finite number may be infinite.
    let is_large = equal(&abs(&wide)?, f32::INFINITY)?;
    let wide = where_(&is_large, &multiply(&wide, 0.25)?, &wide)?;
    let size = abs(&wide)?;
    let is_zero = equal(&size, 0)?;
    let turned = divide(&wide, &where_(&is_zero, 1, &size)?)?;
    cast(&where_(&is_zero, 0, &turned)?, z.dtype())
}

/// aᵇ = e^(b·ln a), with 0⁰ = 1; of 0 it is 0 where the real part of b is positive, ∞ + i·NaN where that is
/// negative, and else NaN.
pub(super) fn power(a: &Array, b: &Array) -> Result<Array> {
    let own = a.dtype();
    let [a, b] = &[cast(a, own.accumulator())?, cast(b, own.accumulator())?];
    let is_zero = equal(a, 0)?;
    let general = exp(&multiply(b, &log(&where_(&is_zero, 1, a)?)?)?)?;
    cast(&where_(&is_zero, &power_of_zero(&where_(&is_zero, a, 0)?, b)?, &general)?, own)
}

/// [`power`] of zeros, with its derivatives.
fn power_of_zero(zero: &Array, b: &Array) -> Result<Array> {
    // a, a² and a³ where that is the power: all others have no such derivative but 0.
    let mut vanishing = constant_like(zero, 0.0);
    for exponent in [3, 2, 1] {
        let own = where_(&equal(b, exponent)?, 1, &vanishing)?;
        vanishing = multiply(&own, zero)?;
    }
    let order = real(b)?;
    let endless = Scalar::Complex(f32::INFINITY, f32::NAN);
    let undefined = Scalar::Complex(f32::NAN, f32::NAN);
    let rest = where_(&less(&order, 0)?, endless, &constant_like(zero, undefined))?;
    let power = where_(&greater(&order, 0)?, &vanishing, &rest)?;
    where_(&equal(b, 0)?, 1, &power)
}

/// `op`, which asks for the order, of operands of one shape.
pub(super) fn compare(op: Compare, a: &Array, b: &Array) -> Result<Array> {
    let strict = match op {
        Compare::Lt | Compare::Le => Compare::Lt,
        Compare::Eq | Compare::Ne | Compare::Gt | Compare::Ge => Compare::Gt,
    };
    let parts = |op, [a, b]: [&Array; 2]| compared(op, Operand::Array(a), Operand::Array(b));
    let (re, im) = ([&real(a)?, &real(b)?], [&imag(a)?, &imag(b)?]);
    let known = logical_not(&logical_or(&isnan(im[0])?, &isnan(im[1])?)?)?;
    let differ = logical_and(&parts(strict, re)?, &known)?;
    logical_or(&differ, &logical_and(&equal(re[0], re[1])?, &parts(op, im)?)?)
}

/// The larger or smaller of operands of one shape; NaN if either is.
pub(super) fn extreme_of(op: Binary, a: &Array, b: &Array) -> Result<Array> {
    let order = if op == Binary::Maximum { Compare::Gt } else { Compare::Lt };
    let first = where_(&isnan(b)?, false, &compare(order, a, b)?)?;
    where_(&logical_or(&isnan(a)?, &first)?, a, b)
}

/// log(eᵃ + eᵇ): where the real part of one is ∞ it is that one, and of two at different angles no angle.
pub(super) fn logaddexp(a: &Array, b: &Array) -> Result<Array> {
    let own = a.dtype();
    let [a, b] = &[cast(a, own.accumulator())?, cast(b, own.accumulator())?];
    let largest = extreme_of(Binary::Maximum, a, b)?;
    let endless = is_endless(&largest)?;
    let [c, d] = &[where_(&endless, 0, a)?, where_(&endless, 0, b)?];
    let shift = super::stop_gradient(&where_(&endless, 0, &largest)?)?;
    let shift = where_(&isfinite(&shift)?, &shift, 0)?;
    let total = add(&exp(&subtract(c, &shift)?)?, &exp(&subtract(d, &shift)?)?)?;
    let both = logical_and(&is_endless(a)?, &is_endless(b)?)?;
    let unknown = logical_and(&both, &logical_not(&equal(a, b)?)?)?;
    let angle = where_(&unknown, Scalar::Complex(0.0, f32::NAN), &constant_like(a, 0.0))?;
    let general = add(&log(&total)?, &shift)?;
    cast(&where_(&endless, &add(&largest, &angle)?, &general)?, own)
}

/// Whether the real part is ∞.
pub(super) fn is_endless(z: &Array) -> Result<Array> {
    equal(&real(z)?, f32::INFINITY)
}

/// log Σ eᶻ of the elements of an axis up to each.
pub(super) fn running_logaddexp(x: &Array, axis: usize, options: ScanOptions) -> Result<Array> {
    let along = axis as isize;
    let size = x.shape()[axis];
    let together = |a: &[Array], b: &[Array]| Ok(vec![logaddexp(&a[0], &b[0])?]);
    let all = match size {
        0 => x.clone(),
        _ => associative_scan(together, &[x.clone()], along, options.reverse)?.remove(0),
    };
    if !options.exclusive || size == 0 {
        return Ok(all);
    }
    let nothing = full(x.shape().with(axis, 1), f32::NEG_INFINITY, x.dtype())?;
    match options.reverse {
        true => concatenate(&[&slice_axis(&all, axis, 1, size - 1)?, &nothing], axis),
        false => concatenate(&[&nothing, &slice_axis(&all, axis, 0, size - 1)?], axis),
    }
}

/// Where the first largest or smallest element of an axis is, or the first NaN.
pub(super) fn arg_extreme(max: bool, x: &Array, axis: usize) -> Result<Array> {
    let axes = Dims::from_slice(&[axis]);
    let kind = if max { ReduceKind::Max } else { ReduceKind::Min };
    let last = if max { f64::NEG_INFINITY } else { f64::INFINITY };
    let extreme = |x: &Array| super::reduce::reduce(kind, x, axes.clone(), true);
    let (re, im, nan) = (real(x)?, imag(x)?, isnan(x)?);
    let best = equal(&re, &extreme(&where_(&nan, last, &re)?)?)?;
    let best = logical_and(
        &best,
        &equal(&im, &extreme(&where_(&best, &where_(&nan, last, &im)?, last)?)?)?,
    )?;
    let found = where_(&any(&nan, axis, true)?, &nan, &best)?;
    argmax(&cast(&found, DType::U8)?, axis, false)
}

/// The largest or smallest element over axes, which stay with size 1; the first NaN if there is one.
pub(super) fn extreme(max: bool, x: &Array, axes: &Dims) -> Result<Array> {
    if axes.is_empty() {
        return Ok(x.clone());
    }
    let rank = x.rank();
    let order: Dims = (0..rank).filter(|a| !axes.contains(a)).chain(axes.iter().copied()).collect();
    let kept = rank - axes.len();
    let rows = super::flatten(&super::permute(x, order)?, kept as isize, -1)?;
    let place = expand_axes(&arg_extreme(max, &rows, kept)?, Dims::from_slice(&[kept]))?;
    let found = squeeze_axes(&take_along_axis(&rows, &place, kept)?, Dims::from_slice(&[kept]))?;
    expand_axes(&found, axes.clone())
}

/// The indices that put an axis in order; equal elements and NaN keep theirs.
pub(super) fn order(x: &Array, axis: usize) -> Result<Array> {
    let nan = isnan(x)?;
    let mut order = argsort(&where_(&nan, 0, &imag(x)?)?, axis)?;
    for key in [where_(&nan, 0, &real(x)?)?, cast(&nan, DType::F32)?] {
        let next = argsort(&take_along_axis(&key, &order, axis)?, axis)?;
        order = take_along_axis(&order, &next, axis)?;
    }
    Ok(order)
}

/// The largest or smallest element of an axis up to each; NaN from the first one on.
pub(super) fn running_extreme(
    max: bool,
    x: &Array,
    axis: usize,
    options: ScanOptions,
) -> Result<Array> {
    if !max {
        return negative(&running_extreme(true, &negative(x)?, axis, options)?);
    }
    if !options.reverse {
        let turned =
            running_extreme(true, &flip(x, axis)?, axis, ScanOptions { reverse: true, ..options })?;
        return flip(&turned, axis);
    }
    // The places of elements in the order tell which is largest; of equal ones, and of NaN, it is the last, which
    // comes first from the end.
    let order = order(x, axis)?;
    let best =
        super::cummax(&argsort(&order, axis)?, axis, ScanOptions { exclusive: false, ..options })?;
    let all = take_along_axis(x, &take_along_axis(&order, &best, axis)?, axis)?;
    if !options.exclusive || x.shape()[axis] == 0 {
        return Ok(all);
    }
    let least = Scalar::Complex(f32::NEG_INFINITY, f32::NEG_INFINITY);
    let end = full(x.shape().with(axis, 1), least, x.dtype())?;
    let size = x.shape()[axis];
    concatenate(&[&slice_axis(&all, axis, 1, size - 1)?, &end], axis)
}
