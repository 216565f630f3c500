//! Derivatives of scans that are not linear.
//!
//! A running extreme is an element of the input, so its derivative is that element's. A running
//! product is folded again by doubling: n elements in log₂ n steps that join each element with the
//! one 1, 2, 4, .. places before it. The steps' own derivatives need no division and no difference
//! of large numbers, so they are exact at zeros, and at every order.

use super::{Scan, ScanKind};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::prim::binary::logaddexp_weight;
use crate::prim::record::{
    add, add_along, compare, concatenate, iota, like, masked, mul, select, slice_axis,
};
use crate::prim::{Compare, GatherAxis, Reverse, Tangents};

/// `x` moved along the scan by `distance` places, which are filled with a number.
fn moved(scan: &Scan, x: &Array, distance: usize, fill: f64) -> Result<Array> {
    let (axis, size) = (scan.axis, x.shape()[scan.axis]);
    let distance = distance.min(size);
    if distance == 0 {
        return Ok(x.clone());
    }
    let filled = like(&slice_axis(x, axis, 0, distance)?, fill);
    if scan.reverse {
        let rest = slice_axis(x, axis, distance, size - distance)?;
        concatenate(&[&rest, &filled], axis)
    } else {
        let rest = slice_axis(x, axis, 0, size - distance)?;
        concatenate(&[&filled, &rest], axis)
    }
}

/// The transpose of [`moved`].
fn moved_back(scan: &Scan, ct: &Array, distance: usize) -> Result<Array> {
    moved(&Scan { reverse: !scan.reverse, ..*scan }, ct, distance, 0.0)
}

/// One step of the doubling: how the joined values change with each element, and with the one
/// before it.
struct Doubling {
    distance: usize,
    own: Array,
    other: Array,
}

/// The steps of a scan that does not leave out the element itself.
fn doublings(scan: &Scan, x: &Array) -> Result<Vec<Doubling>> {
    let (mut y, size) = (x.clone(), x.shape()[scan.axis]);
    let (mut doublings, mut distance) = (Vec::new(), 1);
    while distance < size {
        let is_log = scan.kind == ScanKind::LogAddExp;
        let before = moved(scan, &y, distance, if is_log { f64::NEG_INFINITY } else { 1.0 })?;
        let joined = Array::apply(scan.kind.join(), &[&y, &before])?;
        let (own, other) = if is_log {
            (logaddexp_weight(&y, &before, &joined)?, logaddexp_weight(&before, &y, &joined)?)
        } else {
            (before, y)
        };
        doublings.push(Doubling { distance, own, other });
        y = joined;
        distance *= 2;
    }
    Ok(doublings)
}

pub(super) fn doubling_jvp(
    scan: &Scan,
    inputs: &[Array],
    _: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    let Some(tangent) = &tangents[0] else {
        return Ok(vec![None]);
    };
    let mut t = tangent.clone();
    for Doubling { distance, own, other } in doublings(scan, &inputs[0])? {
        let before = moved(scan, &t, distance, 0.0)?;
        t = add(&mul(&own, &t)?, &mul(&other, &before)?)?;
    }
    Ok(vec![Some(if scan.exclusive { moved(scan, &t, 1, 0.0)? } else { t })])
}

pub(super) fn doubling_vjp(scan: &Scan, r: &Reverse<'_>) -> Result<Tangents> {
    let Some(cotangent) = &r.cotangents[0] else {
        return Ok(vec![None]);
    };
    let mut ct = if scan.exclusive { moved_back(scan, cotangent, 1)? } else { cotangent.clone() };
    for Doubling { distance, own, other } in doublings(scan, &r.inputs[0])?.iter().rev() {
        let before = moved_back(scan, &mul(other, &ct)?, *distance)?;
        ct = add(&mul(own, &ct)?, &before)?;
    }
    Ok(vec![Some(ct)])
}

/// For each place the index of the element that is the extreme up to there, the last one where
/// several are equal, and whether there is one: none is NaN.
fn sources(scan: &Scan, x: &Array) -> Result<(Array, Array)> {
    let whole = Scan { exclusive: false, ..*scan };
    let y = Array::apply(whole, &[x])?;
    let (axis, last) = (scan.axis, x.shape()[scan.axis].saturating_sub(1));
    let places = iota(x.shape().clone(), DType::U32, axis)?;
    let elsewhere = like(&places, if scan.reverse { last as f64 } else { 0.0 });
    let extreme = select(&compare(Compare::Eq, x, &y)?, &places, &elsewhere)?;
    let kind = if scan.reverse { ScanKind::Min } else { ScanKind::Max };
    let latest = Array::apply(Scan { kind, ..whole }, &[&extreme])?;
    Ok((latest, compare(Compare::Eq, &y, &y)?))
}

pub(super) fn extreme_jvp(
    scan: &Scan,
    inputs: &[Array],
    _: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    let Some(tangent) = &tangents[0] else {
        return Ok(vec![None]);
    };
    let (sources, there) = sources(scan, &inputs[0])?;
    let t = Array::apply(GatherAxis { axis: scan.axis }, &[tangent, &sources])?;
    let t = masked(&there, &t)?;
    Ok(vec![Some(if scan.exclusive { moved(scan, &t, 1, 0.0)? } else { t })])
}

pub(super) fn extreme_vjp(scan: &Scan, r: &Reverse<'_>) -> Result<Tangents> {
    let Some(cotangent) = &r.cotangents[0] else {
        return Ok(vec![None]);
    };
    let x = &r.inputs[0];
    let ct = if scan.exclusive { moved_back(scan, cotangent, 1)? } else { cotangent.clone() };
    let (sources, there) = sources(scan, x)?;
    Ok(vec![Some(add_along(x.aval(), &masked(&there, &ct)?, &sources, scan.axis)?)])
}
