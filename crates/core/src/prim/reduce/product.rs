//! Derivatives of a product along axes.
//!
//! Dividing the product by each factor fails at zeros, so the product is taken again as a tree of
//! pairwise products, whose own derivatives are exact at every order.

use super::Reduce;
use crate::array::Array;
use crate::error::Result;
use crate::prim::record::{
    add, concatenate, expand_dims, mul, reshape, slice_axis, squeeze, transpose,
};
use crate::prim::{Reverse, Tangents};
use crate::shape::{Dims, Shape};

/// One level of the tree: the two halves that are multiplied, and the factor that is left over.
struct Level {
    left: Array,
    right: Array,
    odd: Option<Array>,
}

/// The axes in the order in which the folded ones come last.
fn folded_last(axes: &[usize], rank: usize) -> Dims {
    (0..rank).filter(|a| !axes.contains(a)).chain(axes.iter().copied()).collect()
}

/// `x` with the folded axes merged into one last axis.
fn lined_up(x: &Array, axes: &[usize]) -> Result<Array> {
    let count = axes.iter().map(|&a| x.shape()[a]).product();
    let mut shape = x.shape().without(axes);
    shape.0.push(count);
    reshape(&transpose(x, folded_last(axes, x.rank()))?, shape)
}

/// Undoes [`lined_up`].
fn put_back(x: &Array, axes: &[usize], shape: &Shape) -> Result<Array> {
    let order = folded_last(axes, shape.rank());
    let moved = reshape(x, order.iter().map(|&a| shape[a]).collect())?;
    let mut inverse = Dims::from_elem(0, order.len());
    for (to, &from) in order.iter().enumerate() {
        inverse[from] = to;
    }
    transpose(&moved, inverse)
}

fn split(x: &Array) -> Result<Level> {
    let axis = x.rank() - 1;
    let count = x.shape()[axis];
    let half = count / 2;
    Ok(Level {
        left: slice_axis(x, axis, 0, half)?,
        right: slice_axis(x, axis, half, half)?,
        odd: match count % 2 {
            1 => Some(slice_axis(x, axis, count - 1, 1)?),
            _ => None,
        },
    })
}

fn join(product: &Array, odd: Option<&Array>) -> Result<Array> {
    match odd {
        Some(odd) => concatenate(&[product, odd], product.rank() - 1),
        None => Ok(product.clone()),
    }
}

pub(super) fn jvp(
    reduce: &Reduce,
    inputs: &[Array],
    _: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    let Some(tangent) = &tangents[0] else {
        return Ok(vec![None]);
    };
    let mut x = lined_up(&inputs[0], &reduce.axes)?;
    let mut t = lined_up(tangent, &reduce.axes)?;
    let axis = x.rank() - 1;
    if x.shape()[axis] == 0 {
        return Ok(vec![None]);
    }
    while x.shape()[axis] > 1 {
        let (value, change) = (split(&x)?, split(&t)?);
        let product = mul(&value.left, &value.right)?;
        let slope = add(&mul(&change.left, &value.right)?, &mul(&value.left, &change.right)?)?;
        x = join(&product, value.odd.as_ref())?;
        t = join(&slope, change.odd.as_ref())?;
    }
    Ok(vec![Some(squeeze(&t, &[axis])?)])
}

pub(super) fn vjp(reduce: &Reduce, r: &Reverse<'_>) -> Result<Tangents> {
    let Some(cotangent) = &r.cotangents[0] else {
        return Ok(vec![None]);
    };
    let input = &r.inputs[0];
    let mut x = lined_up(input, &reduce.axes)?;
    let axis = x.rank() - 1;
    if x.shape()[axis] == 0 {
        return Ok(vec![None]);
    }
    let mut levels = Vec::new();
    while x.shape()[axis] > 1 {
        let level = split(&x)?;
        x = join(&mul(&level.left, &level.right)?, level.odd.as_ref())?;
        levels.push(level);
    }
    let mut ct = expand_dims(cotangent, &[axis])?;
    for level in levels.iter().rev() {
        let half = level.left.shape()[axis];
        let product = slice_axis(&ct, axis, 0, half)?;
        let left = mul(&product, &level.right)?;
        let right = mul(&product, &level.left)?;
        ct = match level.odd {
            Some(_) => {
                let odd = slice_axis(&ct, axis, half, 1)?;
                concatenate(&[&left, &right, &odd], axis)?
            }
            None => concatenate(&[&left, &right], axis)?,
        };
    }
    Ok(vec![Some(put_back(&ct, &reduce.axes, input.shape())?)])
}
