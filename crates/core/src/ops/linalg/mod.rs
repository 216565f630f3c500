//! Linear algebra: norms, products, factorizations, equations, eigenvalues.
//!
//! Matrices are in the last two axes; the others are batches.

mod determinant;
mod factor;
mod norm;
mod product;
mod solve;

use super::operand::broadcast;
use super::{conjugate, eye, swapaxes};
use crate::array::Array;
use crate::error::{Error, Result};

pub use determinant::*;
pub use factor::*;
pub use norm::*;
pub use product::*;
pub use solve::*;

/// Checks that `a` is of square matrices.
fn square(op: &'static str, a: &Array) -> Result<usize> {
    match a.shape()[..] {
        [.., m, n] if m == n => Ok(n),
        [.., _, _] => Err(Error::shape(op, format!("is of square matrices, not of {}", a.aval()))),
        _ => Err(Error::shape(op, format!("{} is no matrix: it has less than two axes", a.aval()))),
    }
}

fn transposed(a: &Array) -> Result<Array> {
    swapaxes(a, -1, -2)
}

/// Rows as columns, conjugated.
fn adjoint(a: &Array) -> Result<Array> {
    conjugate(&transposed(a)?)
}

/// The identity in the shape of square matrices.
fn identity_like(a: &Array) -> Result<Array> {
    let n = a.shape()[a.rank() - 1];
    broadcast(&eye(n, a.dtype())?, a.shape())
}

/// The same error, of `op`.
fn named(op: &'static str, result: Result<Array>) -> Result<Array> {
    result.map_err(|error| match error {
        Error::DType { detail, .. } => Error::DType { op, detail },
        Error::Shape { detail, .. } => Error::Shape { op, detail },
        error => error,
    })
}

/// Two outputs of a primitive.
fn pair(outputs: Vec<Array>) -> Result<(Array, Array)> {
    match <[Array; 2]>::try_from(outputs) {
        Ok([a, b]) => Ok((a, b)),
        Err(outputs) => Err(Error::Device(format!("{} outputs came, not 2", outputs.len()))),
    }
}

/// Three outputs of a primitive.
fn triple(outputs: Vec<Array>) -> Result<(Array, Array, Array)> {
    match <[Array; 3]>::try_from(outputs) {
        Ok([a, b, c]) => Ok((a, b, c)),
        Err(outputs) => Err(Error::Device(format!("{} outputs came, not 3", outputs.len()))),
    }
}
