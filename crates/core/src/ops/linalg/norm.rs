//! Norms of vectors and matrices.

use super::svdvals;
use crate::array::Array;
use crate::autocast;
use crate::error::{Error, Result};
use crate::ops::operand::{Axes, cast, inexact};
use crate::ops::reduce::reduce;
use crate::ops::{abs, expand_dims, not_equal, permute, power, squeeze_axes, sum};
use crate::prim::ReduceKind;
use crate::shape::Dims;

/// Which norm [`norm`] takes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Order {
    /// The root of the sum of squares, of a vector or a matrix.
    #[default]
    Euclidean,
    /// The same, of a matrix alone.
    Frobenius,
    /// The sum of a matrix' singular values.
    Nuclear,
    /// Of a vector the p-norm, with 0, ∞ and −∞ as the count of what is not 0, the largest and the
    /// smallest size; of a matrix the largest (or smallest, for −1 and −∞) sum of sizes in a column
    /// for ±1, in a row for ±∞.
    Power(f64),
}

impl From<f64> for Order {
    fn from(power: f64) -> Self {
        Order::Power(power)
    }
}

/// The norm of the vectors along one axis, or of the matrices in two; of everything for `()`, and along no axes the size of
/// each element.
///
/// # Shapes
/// The axes go, or stay with size 1 where `keepdims` is true.
///
/// # Dtypes
/// Integers and bool are taken as `float32`; the norm of complex numbers is real.
///
/// # Errors
/// For more than two axes, and for an order that is not one of a vector's or of a matrix'.
///
/// # Example
/// ```
/// use cupola::{Array, ops::linalg};
/// let x = Array::from_slice(&[3.0f32, -4.0, 1.0, 2.0], [2, 2])?;
/// assert_eq!(linalg::norm(&x, linalg::Order::Euclidean, 1, false)?.to_vec::<f32>()?[0], 5.0);
/// assert_eq!(linalg::norm(&x, 1.0, 1, false)?.to_vec::<f32>()?, [7.0, 3.0]);
/// assert_eq!(linalg::norm(&x, f64::INFINITY, (), false)?.item::<f32>()?, 7.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn norm(
    x: &Array,
    order: impl Into<Order>,
    axes: impl Into<Axes>,
    keepdims: bool,
) -> Result<Array> {
    autocast::apply("norm", [x], |[x]| {
        let (order, axes) = (order.into(), axes.into());
        let listed = axes.listed("norm", x.rank())?;
        if order == Order::Euclidean && listed.is_none() {
            return crate::ops::norm(x, (), keepdims);
        }
        let axes = listed.unwrap_or_else(|| (0..x.rank()).collect());
        match axes[..] {
            [] if order == Order::Euclidean => abs(&inexact(x)?),
            [axis] => vector_norm(x, order, axis, keepdims),
            [row, column] => matrix_norm(x, order, (row, column), keepdims),
            _ => Err(Error::argument(
                "norm",
                format!("is of one axis or two, not of axes {:?} of {}", &axes[..], x.aval()),
            )),
        }
    })
}

fn vector_norm(x: &Array, order: Order, axis: usize, keepdims: bool) -> Result<Array> {
    let power_of = match order {
        Order::Euclidean => 2.0,
        Order::Power(p) => p,
        Order::Frobenius | Order::Nuclear => {
            return Err(Error::argument(
                "norm",
                format!("{order:?} is a norm of matrices, not of axis {axis} of {}", x.aval()),
            ));
        }
    };
    let along = Dims::from_slice(&[axis]);
    if power_of == 2.0 {
        return crate::ops::norm(x, axis, keepdims);
    }
    let size = abs(&inexact(x)?)?;
    if power_of.is_infinite() {
        let kind = if power_of > 0.0 { ReduceKind::Max } else { ReduceKind::Min };
        return reduce(kind, &size, along, keepdims);
    }
    let wide = cast(&size, size.dtype().accumulator())?;
    let total = if power_of == 0.0 {
        sum(&cast(&not_equal(&wide, 0)?, wide.dtype())?, axis, keepdims)?
    } else if power_of == 1.0 {
        sum(&wide, axis, keepdims)?
    } else {
        power(&sum(&power(&wide, power_of)?, axis, keepdims)?, 1.0 / power_of)?
    };
    cast(&total, size.dtype())
}

fn matrix_norm(
    x: &Array,
    order: Order,
    (row, column): (usize, usize),
    keepdims: bool,
) -> Result<Array> {
    let invalid = |detail: &str| {
        Error::argument("norm", format!("{order:?} of matrices {detail} (input {})", x.aval()))
    };
    let (folded, kind) = match order {
        Order::Euclidean | Order::Frobenius => return crate::ops::norm(x, [row, column], keepdims),
        Order::Power(1.0) => (row, ReduceKind::Max),
        Order::Power(-1.0) => (row, ReduceKind::Min),
        Order::Power(f64::INFINITY) => (column, ReduceKind::Max),
        Order::Power(f64::NEG_INFINITY) => (column, ReduceKind::Min),
        Order::Power(2.0) => return spectral_norm(x, ReduceKind::Max, (row, column), keepdims),
        Order::Power(-2.0) => return spectral_norm(x, ReduceKind::Min, (row, column), keepdims),
        Order::Nuclear => return spectral_norm(x, ReduceKind::Sum, (row, column), keepdims),
        Order::Power(_) => return Err(invalid("is not defined")),
    };
    let size = abs(&inexact(x)?)?;
    let wide = cast(&size, size.dtype().accumulator())?;
    let other = if folded == row { column } else { row };
    let sums = sum(&wide, folded, true)?;
    let out = cast(&reduce(kind, &sums, Dims::from_slice(&[other]), true)?, size.dtype())?;
    let gone = Dims::from_slice(&[row.min(column), row.max(column)]);
    if keepdims { Ok(out) } else { squeeze_axes(&out, gone) }
}

/// A fold of the singular values. Half types, integers and bool are taken as `float32`.
fn spectral_norm(
    x: &Array,
    kind: ReduceKind,
    (row, column): (usize, usize),
    keepdims: bool,
) -> Result<Array> {
    let own = x.dtype().to_inexact();
    let order = (0..x.rank()).filter(|&a| a != row && a != column).chain([row, column]).collect();
    let matrices = permute(&cast(x, own.accumulator())?, order)?;
    let values = svdvals(&matrices)?;
    let last = Dims::from_slice(&[values.rank() - 1]);
    let out = reduce(kind, &values, last, false)?;
    let out = if own.is_float() { cast(&out, own)? } else { out };
    if !keepdims {
        return Ok(out);
    }
    expand_dims(&out, [row.min(column), row.max(column)])
}
