//! The Walsh–Hadamard transform.

use super::operand::{cast, inexact};
use super::{matmul, multiply, reshape};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The largest power of two that one product transforms by.
const LARGEST: usize = 64;

/// A Hadamard matrix of 12 rows; + is 1, − is −1. N. J. A. Sloane, *A library of Hadamard matrices*.
const TWELVE: [&str; 12] = [
    "+-++++++++++",
    "--+-+-+-+-+-",
    "+++-++----++",
    "+---+--+-++-",
    "+++++-++----",
    "+-+---+--+-+",
    "++--+++-++--",
    "+--++---+--+",
    "++----+++-++",
    "+--+-++---+-",
    "++++----+++-",
    "+-+--+-++---",
];

/// First rows of circulant blocks, four by four, that make up a matrix of 20 rows; as above.
const TWENTY: [&str; 16] = [
    "+----", "+----", "++--+", "+-++-", //
    "-++++", "+----", "-+--+", "++--+", //
    "--++-", "+-++-", "+----", "-++++", //
    "-+--+", "--++-", "+----", "+----", //
];

/// The same for 28 rows.
const TWENTY_EIGHT: [&str; 16] = [
    "+------", "++----+", "+-+--+-", "+--++--", //
    "--++++-", "+------", "-++--++", "+-+--+-", //
    "-+-++-+", "+--++--", "+------", "--++++-", //
    "-++--++", "-+-++-+", "++----+", "+------", //
];

/// `x` times a Hadamard matrix along its last axis, times `scale`, or 1/√n, which makes it
/// orthonormal.
///
/// # Shapes
/// The last axis is of size m·2ᵏ with m of 1, 12, 20 or 28.
///
/// # Dtypes
/// Integers and bool are taken as `float32`; half types are computed in `float32`.
///
/// # Errors
/// For other sizes, and for complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4])?;
/// assert_eq!(ops::hadamard_transform(&x, None)?.to_vec::<f32>()?, [5.0, -1.0, -2.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn hadamard_transform(x: &Array, scale: Option<f64>) -> Result<Array> {
    let op = "hadamard_transform";
    if x.dtype().is_complex() {
        return Err(Error::dtype(op, format!("does not take {}", x.aval())));
    }
    let x = inexact(x)?;
    let size = x.shape().last().copied().unwrap_or(1);
    let (powers, odd) = factors(size).ok_or_else(|| {
        Error::shape(
            op,
            format!("takes a last axis of m·2ᵏ, m of 1, 12, 20 or 28 (input {})", x.aval()),
        )
    })?;
    let mut out = cast(&x, x.dtype().accumulator())?;
    // The matrix is a Kronecker product: one factor transforms one axis of the unfolded last one.
    let mut below = 1;
    for factor in powers {
        out = along(&out, &sylvester(factor, out.dtype())?, below)?;
        below *= factor;
    }
    if let Some(matrix) = special(odd, out.dtype())? {
        out = along(&out, &matrix, below)?;
    }
    let scale = scale.unwrap_or(1.0 / (size as f64).sqrt());
    cast(&multiply(&reshape(&out, x.shape())?, scale)?, x.dtype())
}

/// `size` as powers of two up to [`LARGEST`] and an odd factor's matrix size.
fn factors(size: usize) -> Option<(Vec<usize>, usize)> {
    if size == 0 {
        return None;
    }
    let odd = [1, 12, 20, 28]
        .into_iter()
        .find(|m| size.is_multiple_of(*m) && (size / m).is_power_of_two())?;
    let mut left = size / odd;
    let mut powers = Vec::new();
    while left > 1 {
        powers.push(left.min(LARGEST));
        left /= left.min(LARGEST);
    }
    Some((powers, odd))
}

/// `matrix` times the axis of `x`'s last one whose elements are `below` apart.
fn along(x: &Array, matrix: &Array, below: usize) -> Result<Array> {
    let size = matrix.shape()[0];
    if below == 1 {
        // The matrices of powers of two are symmetric, the others stand behind these.
        let rows = reshape(x, [x.size() / size, size])?;
        return matmul(&rows, &super::transpose(matrix, ())?);
    }
    matmul(matrix, &reshape(x, [x.size() / (size * below), size, below])?)
}

/// Element i, j is −1 where i and j have an odd number of ones in common.
fn sylvester(size: usize, dtype: DType) -> Result<Array> {
    let sign = |i: usize, j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
    let data = (0..size * size).map(|at| sign(at / size, at % size)).collect();
    cast(&Array::from_vec::<f32>(data, [size, size])?, dtype)
}

/// The matrix of 12, 20 or 28 rows; none for 1.
fn special(size: usize, dtype: DType) -> Result<Option<Array>> {
    let circulant = |blocks: &[&str; 16], i: usize, j: usize| {
        let width = blocks[0].len();
        let row = blocks[i / width * 4 + j / width].as_bytes();
        row[(width + j % width - i % width) % width]
    };
    let sign = |i: usize, j: usize| match size {
        12 => TWELVE[i].as_bytes()[j],
        20 => circulant(&TWENTY, i, j),
        _ => circulant(&TWENTY_EIGHT, i, j),
    };
    if size == 1 {
        return Ok(None);
    }
    let element = |at: usize| if sign(at / size, at % size) == b'+' { 1.0 } else { -1.0 };
    let data = (0..size * size).map(element).collect();
    cast(&Array::from_vec::<f32>(data, [size, size])?, dtype).map(Some)
}
