//! Products of matrices and vectors.

use smallvec::SmallVec;

use super::operand::{Sizes, broadcast, cast};
use super::{add, expand_axes, flatten, multiply, permute, reshape, squeeze_axes, sum};
use crate::array::Array;
use crate::autocast;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::precision::MatmulPrecision;
use crate::prim::Dot;
use crate::prim::call::as_one::as_one;
use crate::prim::dot::untransposed;
use crate::prim::record::transposed;
use crate::shape::{Dims, Shape, normalize_axis};

/// The matrix product over the last two axes.
///
/// # Shapes
/// `[.., m, k]` by `[.., k, n]` gives `[.., m, n]`; leading axes broadcast. A vector on the left is
/// a row, on the right a column, and its axis goes from the result.
///
/// # Dtypes
/// The operands promote; half types accumulate in `float32`; bool multiplies as `int32`. Where a
/// processor has an instruction for products of `bfloat16`, subnormal numbers (below 1.2·10⁻³⁸)
/// count as 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(ops::matmul(&x, &x)?.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn matmul(a: &Array, b: &Array) -> Result<Array> {
    autocast::apply("matmul", [a, b], |[a, b]| {
        let dtype = match a.dtype().promote(b.dtype()) {
            DType::Bool => DType::I32,
            other => other,
        };
        let dot = Dot::of(dtype);
        match (a.rank(), b.rank()) {
            // Two movements and a product.
            (3.., 2) => by_factor("matmul", dot, &[a], b, |x, b| product(&x[0], b, dot, dtype)),
            _ => product(a, b, dot, dtype),
        }
    })
}

/// [`matmul`] of arrays of one dtype, in a precision.
pub(crate) fn matmul_in(a: &Array, b: &Array, precision: MatmulPrecision) -> Result<Array> {
    product(a, b, Dot { precision, ..Dot::of(a.dtype()) }, a.dtype())
}

/// `dot` of matrices of `dtype`.
fn product(a: &Array, b: &Array, dot: Dot, dtype: DType) -> Result<Array> {
    let misfit =
        || Error::shape("matmul", format!("{} and {} do not multiply", a.aval(), b.aval()));
    if a.rank() == 0 || b.rank() == 0 {
        return Err(misfit());
    }
    let (row, column) = (a.rank() == 1, b.rank() == 1);
    let left = if row { expand_axes(a, Dims::from_slice(&[0]))? } else { a.clone() };
    let right = if column { expand_axes(b, Dims::from_slice(&[1]))? } else { b.clone() };
    let (left, right) = (cast(&left, dtype)?, cast(&right, dtype)?);
    let (m, k) = (left.aval().shape[left.rank() - 2], left.aval().shape[left.rank() - 1]);
    let (inner, n) = (right.aval().shape[right.rank() - 2], right.aval().shape[right.rank() - 1]);
    if k != inner {
        return Err(misfit());
    }
    let out = if right.rank() == 2 && left.rank() > 2 {
        // One matrix for the whole batch: the batch is only more rows.
        let lead = Shape::from(&left.aval().shape[..left.rank() - 1]);
        let rows = flatten(&left, 0, -2)?;
        let product = Array::apply(dot, &[&rows, &right])?;
        super::unflatten(&product, 0, lead)?
    } else {
        let lead = |x: &Array| Shape::from(&x.aval().shape[..x.rank() - 2]);
        let batch = lead(&left).broadcast(&lead(&right), "matmul").map_err(|_| misfit())?;
        let shape = |rows: usize, columns: usize| -> Shape {
            batch.iter().copied().chain([rows, columns]).collect()
        };
        let (left, right) = (broadcast(&left, &shape(m, k))?, broadcast(&right, &shape(k, n))?);
        Array::apply(dot, &[&left, &right])?
    };
    let rank = out.rank();
    let mut gone = Dims::new();
    if row {
        gone.push(rank - 2);
    }
    if column {
        gone.push(rank - 1);
    }
    squeeze_axes(&out, gone)
}

/// `alpha·a@b + beta·c`.
///
/// # Shapes
/// As [`matmul`]; `c` broadcasts to the product.
///
/// # Errors
/// Where the shapes do not fit, and where all are integers or bool.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let (x, c) = (ops::ones([2, 2], DType::F32)?, ops::ones([2], DType::F32)?);
/// assert_eq!(ops::addmm(&c, &x, &x, 0.5, 3.0)?.to_vec::<f32>()?, [4.0; 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn addmm(c: &Array, a: &Array, b: &Array, alpha: f64, beta: f64) -> Result<Array> {
    autocast::apply("addmm", [c, a, b], |[c, a, b]| {
        let dtype = a.dtype().promote(b.dtype()).promote(c.dtype());
        if !dtype.is_inexact() {
            return Err(Error::dtype(
                "addmm",
                format!(
                    "takes floats and complex numbers, not {}, {} and {}",
                    c.aval(),
                    a.aval(),
                    b.aval()
                ),
            ));
        }
        // Rounded to a half type at the end alone.
        let wide = if (alpha, beta) == (1.0, 1.0) { dtype } else { dtype.accumulator() };
        let scaled = |x: &Array, by: f64| if by == 1.0 { Ok(x.clone()) } else { multiply(x, by) };
        let dot = Dot { result: wide, ..Dot::of(dtype) };
        let whole = |c: &Array, a: &Array, b: &Array| {
            let product = product(a, b, dot, dtype)?;
            let fits = c.shape().broadcast(product.shape(), "addmm");
            if !fits.is_ok_and(|whole| whole == *product.shape()) {
                let (c, product) = (c.aval(), product.aval());
                let detail = format!("{c} does not broadcast to the product, {product}");
                return Err(Error::shape("addmm", detail));
            }
            let sum = add(&scaled(&product, alpha)?, &scaled(&cast(c, wide)?, beta)?)?;
            cast(&sum, dtype)
        };
        if (alpha, beta) != (1.0, 1.0) {
            // Numbers that may be others in the next step are no part of a body.
            return whole(c, a, b);
        }
        by_factor("addmm", dot, &[c, a], b, |x, b| whole(&x[0], &x[1], b))
    })
}

/// Records what `f` does with arrays and the right factor of `dot` as one node. A factor that is transposed is
/// transposed in the body, whose derivatives see it then.
fn by_factor(
    name: &'static str,
    dot: Dot,
    arrays: &[&Array],
    factor: &Array,
    f: impl FnOnce(&[Array], &Array) -> Result<Array>,
) -> Result<Array> {
    let inner = untransposed(factor)?;
    let given: SmallVec<[&Array; 3]> =
        arrays.iter().copied().chain([inner.as_ref().unwrap_or(factor)]).collect();
    let parameters = [dot.precision as u64, u64::from(inner.is_some())];
    as_one(name, &parameters, &given, |x| match (x.split_last(), &inner) {
        (Some((factor, arrays)), Some(_)) => f(arrays, &transposed(factor)?),
        (Some((factor, arrays)), None) => f(arrays, factor),
        (None, _) => f(&[], factor),
    })
}

/// The sums of products over the last axis of each operand.
///
/// # Shapes
/// `[a.., k]` and `[b.., k]` give `[a.., b..]`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(ops::inner(&x, &x)?.item::<f32>()?, 5.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn inner(a: &Array, b: &Array) -> Result<Array> {
    if a.rank() == 0 || b.rank() == 0 {
        return multiply(a, b);
    }
    contract("inner", a, b, &[a.rank() - 1], &[b.rank() - 1])
}

/// The products of each element of one flattened operand with each of the other.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2], [2])?;
/// assert_eq!(ops::outer(&x, &x)?.to_vec::<i32>()?, [1, 2, 2, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn outer(a: &Array, b: &Array) -> Result<Array> {
    multiply(&reshape(a, [-1, 1])?, &reshape(b, [1, -1])?)
}

/// The sum of products over one axis of both operands, the conjugate of `a` with `b`.
///
/// # Errors
/// Where an operand has no axis, or there is no such axis.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(ops::vecdot(&x, &x, -1)?.to_vec::<f32>()?, [5.0, 25.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn vecdot(a: &Array, b: &Array, axis: isize) -> Result<Array> {
    if a.rank() == 0 || b.rank() == 0 {
        let detail = format!("takes vectors, not {} and {}", a.aval(), b.aval());
        return Err(Error::shape("vecdot", detail));
    }
    sum(&multiply(&super::conjugate(a)?, b)?, axis, false)
}

/// Which axes [`tensordot`] sums over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Contraction {
    /// The last so many axes of the first operand with the first ones of the second.
    Count(usize),
    /// These axes of the first operand with these of the second.
    Axes(Sizes, Sizes),
}

impl From<usize> for Contraction {
    fn from(count: usize) -> Self {
        Contraction::Count(count)
    }
}

impl<A: Into<Sizes>, B: Into<Sizes>> From<(A, B)> for Contraction {
    fn from((a, b): (A, B)) -> Self {
        Contraction::Axes(a.into(), b.into())
    }
}

/// The sums of products over pairs of axes.
///
/// # Shapes
/// The axes of `a` that are left, then those of `b`.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let (a, b) = (ops::ones([2, 3, 4], DType::F32)?, ops::ones([4, 3, 5], DType::F32)?);
/// assert_eq!(ops::tensordot(&a, &b, ([1, 2], [1, 0]))?.shape()[..], [2, 5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn tensordot(a: &Array, b: &Array, axes: impl Into<Contraction>) -> Result<Array> {
    let op = "tensordot";
    let (left, right): (Dims, Dims) = match axes.into() {
        Contraction::Count(count) if count <= a.rank().min(b.rank()) => {
            ((a.rank() - count..a.rank()).collect(), (0..count).collect())
        }
        Contraction::Count(count) => {
            return Err(Error::argument(
                op,
                format!("{} and {} do not both have {count} axes", a.aval(), b.aval()),
            ));
        }
        Contraction::Axes(left, right) => {
            let list = |axes: Sizes, x: &Array| {
                axes.0.iter().map(|&i| normalize_axis(op, i, x.rank())).collect::<Result<Dims>>()
            };
            (list(left, a)?, list(right, b)?)
        }
    };
    contract(op, a, b, &left, &right)
}

/// Sums over pairs of axes, counted from the start, by one matrix product.
fn contract(
    op: &'static str,
    a: &Array,
    b: &Array,
    left: &[usize],
    right: &[usize],
) -> Result<Array> {
    let unique = |axes: &[usize]| (1..axes.len()).all(|i| !axes[..i].contains(&axes[i]));
    let fits = left.len() == right.len()
        && left.iter().zip(right).all(|(&i, &j)| a.shape()[i] == b.shape()[j]);
    if !fits || !unique(left) || !unique(right) {
        return Err(Error::shape(
            op,
            format!("axes {left:?} of {} do not match axes {right:?} of {}", a.aval(), b.aval()),
        ));
    }
    let free = |x: &Array, axes: &[usize]| -> Dims {
        (0..x.rank()).filter(|i| !axes.contains(i)).collect()
    };
    let (rows, columns) = (free(a, left), free(b, right));
    let sizes =
        |x: &Array, axes: &[usize]| -> Dims { axes.iter().map(|&i| x.shape()[i]).collect() };
    let count = |sizes: &[usize]| sizes.iter().product::<usize>();
    let (row_sizes, column_sizes) = (sizes(a, &rows), sizes(b, &columns));
    let inner = count(&sizes(a, left));
    let a = permute(a, rows.iter().chain(left).copied().collect())?;
    let b = permute(b, right.iter().chain(&columns).copied().collect())?;
    let product = matmul(
        &reshape(&a, [count(&row_sizes), inner])?,
        &reshape(&b, [inner, count(&column_sizes)])?,
    )?;
    let shape: Shape = row_sizes.iter().chain(&column_sizes).copied().collect();
    reshape(&product, shape)
}

/// The Kronecker product: each element of `a` times all of `b`, as blocks.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let (a, b) = (Array::from_slice(&[1, 10], [2])?, Array::from_slice(&[1, 2], [2])?);
/// assert_eq!(ops::kron(&a, &b)?.to_vec::<i32>()?, [1, 2, 10, 20]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn kron(a: &Array, b: &Array) -> Result<Array> {
    let rank = a.rank().max(b.rank());
    let size = |x: &Array, i: usize| (i + x.rank()).checked_sub(rank).map_or(1, |j| x.shape()[j]);
    let spread = |x: &Array, first: bool| {
        let pair = |i| if first { [size(x, i), 1] } else { [1, size(x, i)] };
        reshape(x, (0..rank).flat_map(pair).collect::<Shape>())
    };
    let product = multiply(&spread(a, true)?, &spread(b, false)?)?;
    reshape(&product, (0..rank).map(|i| size(a, i) * size(b, i)).collect::<Shape>())
}
