//! Arrays from nothing: constants, counters, grids, triangles.

use super::operand::{Operand, broadcast, cast, constant_like};
use super::{add, equal, expand_axes, greater_equal, multiply, where_};
use crate::array::Array;
use crate::dtype::{DType, Element, Kind, Scalar};
use crate::error::{Error, Result};
use crate::prim::{Constant, Iota};
use crate::shape::{Aval, Dims, Shape};

/// One number, repeated to a shape; an array fills by broadcasting.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::full([2], 7, DType::F32)?.to_vec::<f32>()?, [7.0, 7.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn full<'a>(
    shape: impl Into<Shape>,
    value: impl Into<Operand<'a>>,
    dtype: DType,
) -> Result<Array> {
    let shape = shape.into();
    if shape.rank() > 0 {
        crate::array::note_sizes();
    }
    shape.checked_size("full", dtype)?;
    match value.into() {
        Operand::Scalar(value) => {
            Array::apply(Constant { value, aval: Aval { shape, dtype } }, &[])
        }
        Operand::Array(array) => broadcast(&cast(array, dtype)?, &shape),
    }
}

/// Zeros.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::zeros([2], DType::I32)?.to_vec::<i32>()?, [0, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn zeros(shape: impl Into<Shape>, dtype: DType) -> Result<Array> {
    full(shape, 0, dtype)
}

/// Ones.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::ones([2], DType::F32)?.to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn ones(shape: impl Into<Shape>, dtype: DType) -> Result<Array> {
    full(shape, 1, dtype)
}

/// One number with `x`'s shape and dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(ops::full_like(&x, 7)?.to_vec::<f32>()?, [7.0, 7.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn full_like<'a>(x: &Array, value: impl Into<Operand<'a>>) -> Result<Array> {
    match value.into() {
        // Of the size of `x`, whatever that is.
        Operand::Scalar(value) => Ok(constant_like(x, value)),
        value @ Operand::Array(_) => full(x.shape(), value, x.dtype()),
    }
}

/// Zeros with `x`'s shape and dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(ops::zeros_like(&x)?.to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn zeros_like(x: &Array) -> Result<Array> {
    full_like(x, 0)
}

/// Ones with `x`'s shape and dtype.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(ops::ones_like(&x)?.to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn ones_like(x: &Array) -> Result<Array> {
    full_like(x, 1)
}

/// The index along `axis` of each element of `shape`.
pub(crate) fn iota(shape: impl Into<Shape>, axis: usize, dtype: DType) -> Result<Array> {
    Array::apply(Iota { shape: shape.into(), dtype, axis }, &[])
}

/// The numbers from `start` up to but without `stop`, `step` apart.
///
/// # Dtypes
/// `float32` where an argument is a float, and otherwise `int32`, or `int64` for an argument outside it;
/// [`astype`](super::astype) for others.
///
/// # Errors
/// Where `step` is 0 or NaN, or `start` or `stop` is not finite. An infinite `step` reaches `start` alone.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::arange(0, 5, 2)?.to_vec::<i32>()?, [0, 2, 4]);
/// assert_eq!(ops::arange(1.0, 0.0, -0.5)?.to_vec::<f32>()?, [1.0, 0.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn arange(
    start: impl Into<Scalar>,
    stop: impl Into<Scalar>,
    step: impl Into<Scalar>,
) -> Result<Array> {
    arange_in(start, stop, step, None)
}

/// [`arange`] in a dtype: numbers of `float64` are computed in it, integers exactly.
///
/// # Errors
/// As [`arange`].
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let x = ops::arange_in(1i64 << 60, (1i64 << 60) + 2, 1, DType::I64)?;
/// assert_eq!(x.to_vec::<i64>()?, [1 << 60, (1 << 60) + 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn arange_in(
    start: impl Into<Scalar>,
    stop: impl Into<Scalar>,
    step: impl Into<Scalar>,
    dtype: impl Into<Option<DType>>,
) -> Result<Array> {
    let (start, stop, step) = (start.into(), stop.into(), step.into());
    let wanted = dtype.into();
    let kind = start.kind().max(stop.kind()).max(step.kind());
    if kind == Kind::Complex {
        return Err(Error::dtype("arange", "does not take complex numbers"));
    }
    if wanted == Some(DType::Bool) {
        return Err(Error::dtype("arange", "does not give bool"));
    }
    // The first number is the only one, and where the next would be does not matter.
    let step = match step.to_f64() {
        by if by.is_infinite() => {
            let far = (stop.to_f64() - start.to_f64()).abs();
            Scalar::Float(if far > 0.0 { far } else { 1.0 }.copysign(by))
        }
        _ => step,
    };
    let (from, to, by) = (start.to_f64(), stop.to_f64(), step.to_f64());
    let small = f64::from(i32::MIN)..=f64::from(i32::MAX);
    let dtype = match kind {
        _ if wanted == Some(DType::F64) => DType::F64,
        Kind::Float => DType::F32,
        _ if [from, to, by].iter().all(|v| small.contains(v)) => DType::I32,
        _ => DType::I64,
    };
    let count = match (start.to_i128(), stop.to_i128(), step.to_i128()) {
        (Some(from), Some(to), Some(by)) if by != 0 => {
            // Rounded up, by a division that rounds down.
            let count = -((from - to) * by.signum()).div_euclid(by.abs());
            Some(usize::try_from(count.max(0)).ok())
        }
        _ => {
            let count = ((to - from) / by).ceil();
            (by != 0.0 && count.is_finite()).then_some(Some(count.max(0.0) as usize))
        }
    };
    let Some(count) = count else {
        return Err(Error::argument("arange", format!("no range is {start} to {stop} by {step}")));
    };
    if let (Kind::Float, Some(wanted)) = (kind, wanted.filter(|wanted| wanted.is_integer())) {
        // As in NumPy the first two numbers are cast, and the others are as far apart as these.
        let first = from as i64;
        let step = ((from + by) as i64).wrapping_sub(first);
        let places = iota(count.unwrap_or(usize::MAX), 0, DType::I64)?;
        return cast(&add(&multiply(&places, step)?, first)?, wanted);
    }
    let (start, step) = match wanted.and_then(half_of) {
        // As in NumPy, likewise.
        Some(rounded) if kind == Kind::Float => {
            let first = rounded(from);
            (Scalar::Float(first), Scalar::Float(rounded(from + by) - first))
        }
        _ => (start, step),
    };
    let mut out = iota(count.unwrap_or(usize::MAX), 0, dtype)?;
    if by != 1.0 {
        out = multiply(&out, step)?;
    }
    if from != 0.0 {
        out = add(&out, start)?;
    }
    cast(&out, wanted.unwrap_or(dtype))
}

/// How numbers are rounded to a dtype of 16 bits.
fn half_of(dtype: DType) -> Option<fn(f64) -> f64> {
    match dtype {
        DType::F16 => Some(|v| half::f16::from_f64(v).to_f64()),
        DType::BF16 => Some(|v| half::bf16::from_f64(v).to_f64()),
        _ => None,
    }
}

/// `count` numbers from `start` to `stop`, both included, evenly spaced.
///
/// # Errors
/// Where `dtype` is neither an integer nor a float.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::linspace(0.0, 1.0, 3, DType::F32)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn linspace(start: f64, stop: f64, count: usize, dtype: DType) -> Result<Array> {
    spaced(start, stop, count, count.saturating_sub(1), dtype)
}

/// `count` numbers from `start` to before `stop`, evenly spaced.
///
/// # Errors
/// As [`linspace`].
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::linspace_open(0.0, 1.0, 2, DType::F32)?.to_vec::<f32>()?, [0.0, 0.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn linspace_open(start: f64, stop: f64, count: usize, dtype: DType) -> Result<Array> {
    spaced(start, stop, count, count, dtype)
}

/// The first `count` of the numbers that cut the way from `start` to `stop` into so many steps.
fn spaced(start: f64, stop: f64, count: usize, steps: usize, dtype: DType) -> Result<Array> {
    if !dtype.is_float() && !dtype.is_integer() {
        return Err(Error::dtype("linspace", format!("does not give {dtype}")));
    }
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    if count == 1 {
        return full(1, start, dtype);
    }
    // Both ends weighted, so that both come out exactly (as in MLX).
    let at = super::divide(&iota(count, 0, wide)?, (steps as f64).max(1.0))?;
    let low = multiply(&super::subtract(1, &at)?, start)?;
    cast(&add(&low, &multiply(&at, stop)?)?, dtype)
}

/// Numbers computed as `float64`, in another dtype.
pub(super) fn of_numbers(op: &'static str, numbers: &[f64], dtype: DType) -> Result<Array> {
    fn each<T: Element>(numbers: &[f64], to: impl Fn(f64) -> T) -> Result<Array> {
        Array::from_slice(&numbers.iter().map(|&v| to(v)).collect::<Vec<T>>(), [numbers.len()])
    }
    match dtype {
        DType::F64 => each(numbers, |v| v),
        DType::F32 => each(numbers, |v| v as f32),
        DType::F16 => each(numbers, half::f16::from_f64),
        DType::BF16 => each(numbers, half::bf16::from_f64),
        _ if dtype.is_integer() => cast(&each(numbers, |v| v as i64)?, dtype),
        _ => Err(Error::dtype(op, format!("does not give {dtype}"))),
    }
}

/// The coordinates of a grid: array `i` of the result repeats vector `i` along every other axis. Other
/// arrays are flattened.
///
/// # Shapes
/// With `matrix_order` axis `i` belongs to vector `i` (NumPy's `ij`); without, the first two axes
/// are exchanged (`xy`).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let (x, y) = (Array::from_slice(&[1, 2], [2])?, Array::from_slice(&[3, 4, 5], [3])?);
/// assert_eq!(ops::meshgrid(&[&x, &y], true)?[0].shape()[..], [2, 3]);
/// assert_eq!(ops::meshgrid(&[&x, &y], false)?[0].shape()[..], [3, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn meshgrid(vectors: &[&Array], matrix_order: bool) -> Result<Vec<Array>> {
    let rank = vectors.len();
    let place = |i: usize| if !matrix_order && rank > 1 && i < 2 { 1 - i } else { i };
    let mut shape = Shape::from(vec![1; rank]);
    for (i, v) in vectors.iter().enumerate() {
        shape.0[place(i)] = v.size();
    }
    let grid = |(i, v): (usize, &&Array)| {
        let others = (0..rank).filter(|&a| a != place(i)).collect();
        broadcast(&expand_axes(&super::flatten(v, 0, -1)?, others)?, &shape)
    };
    vectors.iter().enumerate().map(grid).collect()
}

/// The identity matrix.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::identity(2, DType::F32)?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn identity(size: usize, dtype: DType) -> Result<Array> {
    eye(size, dtype)
}

/// The identity matrix, of the same size both ways; [`eye_at`] for others.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::eye(2, DType::I32)?.to_vec::<i32>()?, [1, 0, 0, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn eye(size: usize, dtype: DType) -> Result<Array> {
    eye_at(size, size, 0, dtype)
}

/// A matrix with ones on the diagonal `offset` places above the main one.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::eye_at(2, 3, 1, DType::I32)?.to_vec::<i32>()?, [0, 1, 0, 0, 0, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn eye_at(rows: usize, columns: usize, offset: isize, dtype: DType) -> Result<Array> {
    let (row, column) = places(&[rows, columns], offset)?;
    cast(&equal(&row, &column)?, dtype)
}

/// The row of each element, moved by `offset`, and its column.
fn places(shape: &[usize], offset: isize) -> Result<(Array, Array)> {
    let [.., rows, columns] = *shape else {
        return Err(Error::shape("iota", format!("{shape:?} is not a matrix's shape")));
    };
    let rank = shape.len();
    // Beyond all rows and columns it does not matter how far.
    let reach = rows.max(columns).min(isize::MAX as usize) as isize;
    let offset = offset.clamp(-reach, reach);
    let narrow = rows.saturating_add(columns) <= i32::MAX as usize / 2;
    let dtype = if narrow { DType::I32 } else { DType::I64 };
    let row = iota(shape, rank - 2, dtype)?;
    let row = if offset == 0 { row } else { add(&row, offset as i64)? };
    Ok((row, iota(shape, rank - 1, dtype)?))
}

/// A matrix of ones on and below the diagonal `offset` places above the main one.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::tri(2, 3, 0, DType::I32)?.to_vec::<i32>()?, [1, 0, 0, 1, 1, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn tri(rows: usize, columns: usize, offset: isize, dtype: DType) -> Result<Array> {
    let (row, column) = places(&[rows, columns], offset)?;
    cast(&greater_equal(&row, &column)?, dtype)
}

/// `x` with zeros above the diagonal `offset` places above the main one of its last two axes.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// assert_eq!(ops::tril(&x, 0)?.to_vec::<i32>()?, [1, 0, 3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn tril(x: &Array, offset: isize) -> Result<Array> {
    where_(&lower("tril", x, offset)?, x, Scalar::Bool(false))
}

/// `x` with zeros below the diagonal `offset` places above the main one of its last two axes.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// assert_eq!(ops::triu(&x, 0)?.to_vec::<i32>()?, [1, 2, 0, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn triu(x: &Array, offset: isize) -> Result<Array> {
    where_(&lower("triu", x, offset.saturating_sub(1))?, Scalar::Bool(false), x)
}

/// Whether elements are on or below a diagonal.
fn lower(op: &'static str, x: &Array, offset: isize) -> Result<Array> {
    if x.rank() < 2 {
        return Err(Error::shape(
            op,
            format!("takes a matrix or a stack of them, not {}", x.aval()),
        ));
    }
    let (row, column) = places(x.shape(), offset)?;
    greater_equal(&row, &column)
}

/// Vectors that are 1 at the index and 0 elsewhere: a new last axis of `classes`.
///
/// # Shapes
/// An index outside `0..classes` gives zeros.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops};
/// let labels = Array::from_slice(&[2, 0], [2])?;
/// assert_eq!(ops::one_hot(&labels, 3, DType::I32)?.to_vec::<i32>()?, [0, 0, 1, 1, 0, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn one_hot(indices: &Array, classes: usize, dtype: DType) -> Result<Array> {
    if !indices.dtype().is_integer() {
        return Err(Error::dtype(
            "one_hot",
            format!("indices are integers, not {}", indices.aval()),
        ));
    }
    let wide = expand_axes(indices, Dims::from_slice(&[indices.rank()]))?;
    // A narrow dtype may not hold every class.
    let narrow = indices.dtype().size() < 4;
    let class = iota(classes, 0, if narrow { DType::I32 } else { indices.dtype() })?;
    cast(&equal(&wide, &class)?, dtype)
}
