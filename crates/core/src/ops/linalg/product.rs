//! Products of vectors and of matrices.

use super::{identity_like, inv, named, square};
use crate::array::Array;
use crate::autocast;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::operand::{Operand, broadcast, cast, common_dtype};
use crate::ops::{concatenate, matmul, moveaxis, multiply, pad, permute, subtract};
use crate::prim::record::slice_axis;
use crate::shape::normalize_axis;

/// The cross products of the vectors along an axis.
///
/// # Shapes
/// The axis is of size 3, or 2, to which a 0 is added; the other axes broadcast.
///
/// # Errors
/// Where the axis is of another size.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let (x, y) = (Array::from_slice(&[1, 2, 3], [3])?, Array::from_slice(&[4, 5, 6], [3])?);
/// assert_eq!(linalg::cross(&x, &y, -1)?.to_vec::<i32>()?, [-3, 6, -3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cross(a: &Array, b: &Array, axis: isize) -> Result<Array> {
    autocast::apply("cross", [a, b], |[a, b]| {
        let dtype = match common_dtype(&[Operand::Array(a), Operand::Array(b)]) {
            DType::Bool => DType::I32,
            dtype => dtype,
        };
        // The axis goes last, where both have it whatever their ranks.
        let vectors = |x: &Array| -> Result<Array> {
            let axis = normalize_axis("cross", axis, x.rank())?;
            let size = x.shape()[axis];
            if size != 2 && size != 3 {
                return Err(Error::shape(
                    "cross",
                    format!("axis {axis} of {} is not of size 2 or 3", x.aval()),
                ));
            }
            let order = (0..x.rank()).filter(|&i| i != axis).chain([axis]).collect();
            let x = cast(&permute(x, order)?, dtype)?;
            let mut widths = vec![(0, 0); x.rank()];
            widths[x.rank() - 1] = (0, 3 - size);
            pad(&x, &widths[..], 0)
        };
        let (a, b) = (vectors(a)?, vectors(b)?);
        let shape = a.shape().broadcast(b.shape(), "cross")?;
        let (a, b) = (broadcast(&a, &shape)?, broadcast(&b, &shape)?);
        let last = shape.rank() - 1;
        let part = |x: &Array, i: usize| slice_axis(x, last, i % 3, 1);
        let component = |i: usize| {
            let there = multiply(&part(&a, i + 1)?, &part(&b, i + 2)?)?;
            subtract(&there, &multiply(&part(&a, i + 2)?, &part(&b, i + 1)?)?)
        };
        let out = concatenate(&[&component(0)?, &component(1)?, &component(2)?], last)?;
        moveaxis(&out, -1, if axis < 0 { axis } else { axis.min(last as isize) })
    })
}

/// The product of `n` times a square matrix; of its inverse for a negative `n`, and the identity for 0.
///
/// # Dtypes
/// Those of [`matmul`]; for a negative `n` those of [`inv`].
///
/// # Errors
/// Where `a` has less than two axes or is not square; when it is computed for a negative `n` where it is
/// singular.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let a = Array::from_slice(&[1.0f32, 1.0, 0.0, 1.0], [2, 2])?;
/// assert_eq!(linalg::matrix_power(&a, 5)?.to_vec::<f32>()?, [1.0, 5.0, 0.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn matrix_power(a: &Array, n: i64) -> Result<Array> {
    square("matrix_power", a)?;
    let mut square = if n < 0 { named("matrix_power", inv(a))? } else { a.clone() };
    let (mut left, mut power) = (n.unsigned_abs(), None);
    // The squares whose exponents are the digits of n.
    while left > 0 {
        if left & 1 == 1 {
            power = Some(match power {
                Some(power) => matmul(&power, &square)?,
                None => square.clone(),
            });
        }
        left >>= 1;
        if left > 0 {
            square = matmul(&square, &square)?;
        }
    }
    match power {
        Some(power) => Ok(power),
        None => identity_like(a),
    }
}
