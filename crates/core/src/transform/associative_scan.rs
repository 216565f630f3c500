//! Everything up to each element, by a function that is associative.

use crate::array::Array;
use crate::error::{Error, Result};
use crate::ops;
use crate::prim::Movement;
use crate::prim::record::{slice_axis, slice_update};
use crate::shape::{Dims, normalize_axis};

/// Everything up to each element of sequences along an axis, put together by `f`: of a, b, c it gives
/// a, f(a, b), f(f(a, b), c). As in JAX.
///
/// `f` has to be associative. It takes arrays with several elements along the axis and works on all at once: it is
/// called about 2·log₂ n times for n of them, and the work of all calls grows as n. Where `reverse` is true what
/// comes behind is put together, from the end to the start: f is given the later part first.
///
/// # Errors
/// Where `f` fails, there is no array, one has no such axis or another size along it, or `f` changes a shape or
/// dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::associative_scan};
/// // x ↦ a·x + b, one after the other.
/// let a = Array::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
/// let b = Array::from_slice(&[1.0f32, 1.0, 1.0], [3])?;
/// let then = |f: &[Array], g: &[Array]| Ok(vec![&f[0] * &g[0], &g[0] * &f[1] + &g[1]]);
/// let all = associative_scan(then, &[a, b], 0, false)?;
/// assert_eq!(all[0].to_vec::<f32>()?, [1.0, 2.0, 6.0]);
/// assert_eq!(all[1].to_vec::<f32>()?, [1.0, 3.0, 10.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn associative_scan(
    mut f: impl FnMut(&[Array], &[Array]) -> Result<Vec<Array>>,
    xs: &[Array],
    axis: isize,
    reverse: bool,
) -> Result<Vec<Array>> {
    let op = "associative_scan";
    let Some(first) = xs.first() else {
        return Err(Error::argument(op, "there is no array"));
    };
    let mut length = None;
    let mut axes = Vec::with_capacity(xs.len());
    for (number, x) in xs.iter().enumerate() {
        let axis = normalize_axis(op, axis, x.rank())?;
        axes.push(axis);
        let size = x.aval().shape[axis];
        if *length.get_or_insert(size) != size {
            let (x, first) = (x.aval(), first.aval());
            let detail =
                format!("array {number} is {x}: array 0, {first}, has another size along the axis");
            return Err(Error::shape(op, detail));
        }
    }
    let mut together = |a: &[Array], b: &[Array]| {
        let made = f(a, b)?;
        match made.iter().map(Array::aval).eq(b.iter().map(Array::aval)) {
            true => Ok(made),
            false => {
                let all = |of: &[Array]| {
                    of.iter().map(|a| a.aval().to_string()).collect::<Vec<_>>().join(", ")
                };
                Err(Error::shape(op, format!("f makes [{}] of [{}]", all(&made), all(b))))
            }
        }
    };
    let flipped = |xs: &[Array]| -> Result<Vec<Array>> {
        xs.iter().zip(&axes).map(|(x, &axis)| ops::flip(x, axis)).collect()
    };
    if reverse {
        return flipped(&in_pairs(&mut together, &flipped(xs)?, &axes)?);
    }
    in_pairs(&mut together, xs, &axes)
}

/// What puts two parts together.
type Together<'f> = dyn FnMut(&[Array], &[Array]) -> Result<Vec<Array>> + 'f;

/// Neighbours are put together, and what these make up to each pair; the elements between follow from that.
/// (G. E. Blelloch, *Prefix sums and their applications*, 1990.)
fn in_pairs(f: &mut Together<'_>, xs: &[Array], axes: &[usize]) -> Result<Vec<Array>> {
    let length = xs[0].aval().shape[axes[0]];
    if length < 2 {
        return Ok(xs.to_vec());
    }
    let second = |xs: &[Array], start: usize| -> Result<Vec<Array>> {
        xs.iter().zip(axes).map(|(x, &axis)| every_second(x, axis, start)).collect()
    };
    let (even, odd) = (second(xs, 0)?, second(xs, 1)?);
    let first = |xs: &[Array], start: usize, count: usize| -> Result<Vec<Array>> {
        xs.iter().zip(axes).map(|(x, &axis)| slice_axis(x, axis, start, count)).collect()
    };
    let pairs = f(&first(&even, 0, length / 2)?, &odd)?;
    let pairs = in_pairs(f, &pairs, axes)?;
    let mut whole = xs.to_vec();
    let put = |whole: &mut [Array], parts: &[Array], start: usize| -> Result<()> {
        for ((whole, part), &axis) in whole.iter_mut().zip(parts).zip(axes) {
            let mut places = (Dims::from_elem(0, whole.rank()), Dims::from_elem(1, whole.rank()));
            (places.0[axis], places.1[axis]) = (start, 2);
            *whole = slice_update(whole, part, &places.0, &places.1)?;
        }
        Ok(())
    };
    put(&mut whole, &pairs, 1)?;
    let between = (length - 1) / 2;
    if between > 0 {
        let rest = f(&first(&pairs, 0, between)?, &first(&even, 1, between)?)?;
        put(&mut whole, &rest, 2)?;
    }
    Ok(whole)
}

/// The elements of an axis from `start` on, but for every second.
fn every_second(x: &Array, axis: usize, start: usize) -> Result<Array> {
    let (mut from, mut strides) = (Dims::from_elem(0, x.rank()), Dims::from_elem(1, x.rank()));
    (from[axis], strides[axis]) = (start, 2);
    let shape = &x.aval().shape;
    let sizes = shape.with(axis, (shape[axis] - start).div_ceil(2)).0;
    Array::apply(Movement::Slice { start: from, sizes, strides }, &[x])
}
