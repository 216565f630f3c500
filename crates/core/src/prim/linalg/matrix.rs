//! What the rules of derivatives do with matrices.

use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
pub(crate) use crate::prim::record::transposed;
use crate::prim::record::{
    broadcast, cast, compare, div, expand_dims, iota, is_zero, like, masked, mul, select, sub, sum,
    zeros,
};
use crate::prim::{Binary, Compare, Dot, Linalg, Unary};

/// The conjugates of complex numbers.
pub fn conj(x: &Array) -> Result<Array> {
    if x.dtype().is_complex() { Array::apply(Unary::Conj, &[x]) } else { Ok(x.clone()) }
}

/// Rows as columns, conjugated.
pub fn adjoint(x: &Array) -> Result<Array> {
    conj(&transposed(x)?)
}

/// The real part of complex numbers.
pub fn real_part(x: &Array) -> Result<Array> {
    if x.dtype().is_complex() { Array::apply(Unary::Real, &[x]) } else { Ok(x.clone()) }
}

pub fn dot(a: &Array, b: &Array) -> Result<Array> {
    Array::apply(Dot::of(a.dtype()), &[a, b])
}

/// X with a·X = b for a triangular a.
pub fn solve_triangular(a: &Array, b: &Array, upper: bool, unit: bool) -> Result<Array> {
    Array::apply(Linalg::SolveTriangular { upper, unit }, &[a, b])
}

/// X with X·a = b for a triangular a.
pub fn divide_by_triangular(b: &Array, a: &Array, upper: bool, unit: bool) -> Result<Array> {
    transposed(&solve_triangular(&transposed(a)?, &transposed(b)?, !upper, unit)?)
}

/// Where row and column compare so.
fn places(x: &Array, how: Compare) -> Result<Array> {
    let (shape, rank) = (x.shape(), x.rank());
    let place = |axis: usize| iota(shape.clone(), DType::U32, axis);
    compare(how, &place(rank - 2)?, &place(rank - 1)?)
}

/// The elements whose row compares so with their column, zeros elsewhere: `Ge` for the lower triangle,
/// `Eq` for the diagonal.
pub fn part(x: &Array, how: Compare) -> Result<Array> {
    masked(&places(x, how)?, x)
}

/// The elements of the diagonal.
pub fn diagonal(x: &Array) -> Result<Array> {
    let rank = x.rank();
    let wide = x.shape()[rank - 2] <= x.shape()[rank - 1];
    sum(&part(x, Compare::Eq)?, &[if wide { rank - 1 } else { rank - 2 }])
}

/// A square matrix with this diagonal, in `dtype`.
pub fn embedded(diagonal: &Array, dtype: DType) -> Result<Array> {
    let diagonal = cast(diagonal, dtype)?;
    let rank = diagonal.rank();
    let mut shape = diagonal.shape().clone();
    shape.0.push(shape[rank - 1]);
    part(&broadcast(&expand_dims(&diagonal, &[rank])?, &shape)?, Compare::Eq)
}

/// Numbers of `scale`, one a row, in the shape and dtype of `x`.
pub fn by_row(scale: &Array, x: &Array) -> Result<Array> {
    broadcast(&expand_dims(&cast(scale, x.dtype())?, &[scale.rank()])?, x.shape())
}

/// Numbers of `scale`, one a column, in the shape and dtype of `x`.
pub fn by_column(scale: &Array, x: &Array) -> Result<Array> {
    broadcast(&expand_dims(&cast(scale, x.dtype())?, &[scale.rank() - 1])?, x.shape())
}

/// `x` with row i times `scale` i.
pub fn scaled_rows(scale: &Array, x: &Array) -> Result<Array> {
    mul(&by_row(scale, x)?, x)
}

/// `x` with column i times `scale` i.
pub fn scaled_columns(x: &Array, scale: &Array) -> Result<Array> {
    mul(x, &by_column(scale, x)?)
}

/// x − xᴴ.
pub fn skew(x: &Array) -> Result<Array> {
    sub(x, &adjoint(x)?)
}

/// xᵢⱼ over `gap(vⱼ, vᵢ)`, and 0 on the diagonal. Where two of `v` are equal, what is 0 stays so: a
/// function that does not tell them apart has a derivative there, and others do not.
pub fn over_gaps(
    x: &Array,
    v: &Array,
    gap: impl Fn(&Array, &Array) -> Result<Array>,
) -> Result<Array> {
    let diagonal = places(x, Compare::Eq)?;
    let numbers = like_in(x, v.dtype());
    let gap = gap(&by_column(v, &numbers)?, &by_row(v, &numbers)?)?;
    let nothing = Array::apply(Binary::BitAnd, &[&is_zero(&gap)?, &is_zero(x)?])?;
    let without = Array::apply(Binary::BitOr, &[&nothing, &diagonal])?;
    let gap = select(&without, &like(&gap, 1.0), &gap)?;
    let x = select(&diagonal, &zeros(x.aval()), x)?;
    div(&x, &cast(&gap, x.dtype())?)
}

/// Zeros in the shape of `x` and another dtype.
fn like_in(x: &Array, dtype: DType) -> Array {
    let mut aval = x.aval().clone();
    aval.dtype = dtype;
    zeros(&aval)
}

/// Ones on the diagonal.
pub fn identity_like(x: &Array) -> Result<Array> {
    part(&like(x, 1.0), Compare::Eq)
}
