//! Random numbers from splittable keys.
//!
//! A key is `uint32[2]`. The same key gives the same numbers, on every backend, and, where MLX 0.32
//! has the function, the numbers that it gives. `None` for a key draws a fresh one from the default
//! generator, whose state is explicit: [`seed`], [`state`], [`set_state`].
//!
//! # Example
//! ```
//! use cupola::{DType, ops::random};
//! let key = random::key(0);
//! let keys = random::split(Some(&key), 2)?;
//! let x = random::normal([3], DType::F32, Some(&key))?;
//! assert_eq!((keys.shape()[..].to_vec(), x.size()), (vec![2, 2], 3));
//! # Ok::<(), cupola::Error>(())
//! ```

mod distributions;
mod gamma;
mod multivariate;

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use super::operand::{Operand, cast};
use super::{
    ScanOptions, abs, add, argmax, argsort, astype, cumsum, divide, erf, erfinv, expand_axes,
    floor, full, greater_equal, left_shift, less, log, log1p, maximum, minimum, multiply, negative,
    right_shift, sign, softmax, squeeze, subtract, sum, take, view,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::RandomBits;
use crate::prim::record::slice_axis;
use crate::shape::{Dims, Shape, normalize_axis};

pub use crate::generator::{key, seed, set_state, state};
pub use distributions::*;
pub use multivariate::*;

/// The smallest `float32` above −1: where a symmetric interval starts.
const ABOVE_MINUS_ONE: f64 = -0.999_999_940_395_355_2;

/// The key given, or a fresh one.
fn key_or_next(key: Option<&Array>) -> Result<Array> {
    match key {
        Some(key) if key.dtype() == DType::U32 && key.shape()[..] == [2] => Ok(key.clone()),
        Some(key) => Err(Error::shape("random", format!("a key is uint32[2], not {}", key.aval()))),
        None => crate::generator::next_key(),
    }
}

/// `count` keys made of one, as `uint32[count, 2]`.
///
/// # Example
/// ```
/// use cupola::ops::random;
/// let keys = random::split(Some(&random::key(0)), 3)?;
/// assert_eq!(keys.shape()[..], [3, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn split(key: Option<&Array>, count: usize) -> Result<Array> {
    bits([count, 2], 4, key)
}

/// Random bits: unsigned integers of `width` bytes, 1, 2 or 4, over their whole range.
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// assert_eq!(random::bits([3], 2, Some(&random::key(0)))?.dtype(), DType::U16);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn bits(shape: impl Into<Shape>, width: usize, key: Option<&Array>) -> Result<Array> {
    Array::apply(RandomBits { shape: shape.into(), width }, &[&key_or_next(key)?])
}

/// `x` rounded to what `dtype` holds, and kept in the dtype that this accumulates in.
///
/// Half types are rounded after every step, as in MLX, so that a number does not depend on which
/// steps a plan joins.
fn hold(x: &Array, dtype: DType) -> Result<Array> {
    cast(&cast(x, dtype)?, dtype.accumulator())
}

/// Numbers in [0, 1): 32 random bits over 2³² − 1 as `float32`, in the dtype and below 1, as in
/// MLX; 53 random bits for `float64`. Half types are held in `float32`.
fn unit(op: &'static str, shape: &Shape, dtype: DType, key: Option<&Array>) -> Result<Array> {
    let below_one = match dtype {
        DType::F64 => return unit_f64(shape, key),
        DType::F32 => f64::from(1.0f32.next_down()),
        DType::F16 => half::f16::from_bits(0x3bff).to_f64(),
        DType::BF16 => half::bf16::from_bits(0x3f7f).to_f64(),
        _ => return Err(Error::dtype(op, format!("gives floats, not {dtype}"))),
    };
    let words = astype(&bits(shape.clone(), 4, key)?, DType::F32)?;
    minimum(&hold(&divide(&words, f64::from(u32::MAX))?, dtype)?, below_one)
}

fn unit_f64(shape: &Shape, key: Option<&Array>) -> Result<Array> {
    let pairs: Shape = [2].into_iter().chain(shape.iter().copied()).collect();
    let words = super::unstack(&bits(pairs, 4, key)?, 0)?;
    let word = |i: usize| astype(&words[i], DType::U64);
    let high = left_shift(&right_shift(&word(0)?, 5)?, 26)?;
    let all = add(&high, &right_shift(&word(1)?, 6)?)?;
    multiply(&astype(&all, DType::F64)?, 2f64.powi(-53))
}

/// Numbers spread evenly over [low, high).
///
/// # Shapes
/// `low` and `high` broadcast to `shape`.
///
/// # Errors
/// Where `dtype` is not a float.
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// let x = random::uniform(-1.0, 1.0, [100], DType::F32, Some(&random::key(0)))?;
/// assert!(x.to_vec::<f32>()?.iter().all(|v| (-1.0..1.0).contains(v)));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn uniform<'a, 'b>(
    low: impl Into<Operand<'a>>,
    high: impl Into<Operand<'b>>,
    shape: impl Into<Shape>,
    dtype: DType,
    key: Option<&Array>,
) -> Result<Array> {
    let (low, high, shape) = (low.into(), high.into(), shape.into());
    cast(&spread("uniform", low, high, &shape, dtype, key)?, dtype)
}

/// [`uniform`], with half types held in `float32`.
fn spread(
    op: &'static str,
    low: Operand<'_>,
    high: Operand<'_>,
    shape: &Shape,
    dtype: DType,
    key: Option<&Array>,
) -> Result<Array> {
    let unit = unit(op, shape, dtype, key)?;
    if let (Operand::Scalar(low), Operand::Scalar(high)) = (low, high) {
        let (low, high) = (rounded(low.to_f64(), dtype), rounded(high.to_f64(), dtype));
        let range = rounded(high - low, dtype);
        let wide = if range == 1.0 { unit } else { hold(&multiply(&unit, range)?, dtype)? };
        return if low == 0.0 { Ok(wide) } else { hold(&add(&wide, low)?, dtype) };
    }
    let held = |operand: Operand<'_>| hold(&operand.to(dtype, shape)?, dtype);
    let (low, high) = (held(low)?, held(high)?);
    let range = hold(&subtract(&high, &low)?, dtype)?;
    hold(&add(&hold(&multiply(&range, &unit)?, dtype)?, &low)?, dtype)
}

/// `value` as `dtype` holds it.
fn rounded(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => half::f16::from_f64(value).to_f64(),
        DType::BF16 => half::bf16::from_f64(value).to_f64(),
        DType::F32 => f64::from(value as f32),
        _ => value,
    }
}

fn expect_float(op: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        return Ok(());
    }
    Err(Error::dtype(op, format!("gives floats, not {dtype}")))
}

/// Numbers in (−1, 1) in the dtype that half types are drawn in.
fn symmetric(op: &'static str, shape: Shape, dtype: DType, key: Option<&Array>) -> Result<Array> {
    expect_float(op, dtype)?;
    uniform(ABOVE_MINUS_ONE, 1.0, shape, dtype.accumulator(), key)
}

/// Normal numbers of mean 0 and variance 1: √2·erfinv(u) with u even over (−1, 1).
///
/// Multiply and add for others. Of complex numbers the parts have variance ½.
///
/// # Errors
/// Where `dtype` is neither float nor complex.
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// let x = random::normal([2, 3], DType::BF16, Some(&random::key(0)))?;
/// assert_eq!(x.shape()[..], [2, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn normal(shape: impl Into<Shape>, dtype: DType, key: Option<&Array>) -> Result<Array> {
    let mut shape = shape.into();
    if dtype.is_complex() {
        shape.0.push(2);
        let parts = multiply(&normal(shape, DType::F32, key)?, FRAC_1_SQRT_2)?;
        return squeeze(&view(&cast(&parts, dtype.real())?, dtype)?, -1);
    }
    let u = symmetric("normal", shape, dtype, key)?;
    cast(&multiply(&hold(&erfinv(&u)?, dtype)?, rounded(SQRT_2, dtype))?, dtype)
}

/// True with probability `p`.
///
/// # Shapes
/// `p` broadcasts to `shape`.
///
/// # Errors
/// Where `p` is an array of something else than floats, or does not broadcast.
///
/// # Example
/// ```
/// use cupola::ops::random;
/// let x = random::bernoulli(1.0, [3], Some(&random::key(0)))?;
/// assert_eq!(x.to_vec::<bool>()?, [true; 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn bernoulli<'a>(
    p: impl Into<Operand<'a>>,
    shape: impl Into<Shape>,
    key: Option<&Array>,
) -> Result<Array> {
    let (p, shape) = (p.into(), shape.into());
    if let Operand::Array(p) = p
        && !p.dtype().is_float()
    {
        return Err(Error::dtype("bernoulli", format!("p must be of floats, not {}", p.aval())));
    }
    let p = p.to(DType::F32, &shape)?;
    less(&unit("bernoulli", &shape, DType::F32, key)?, &p)
}

/// Integers in [low, high).
///
/// # Dtypes
/// They are drawn as `float32`, as in MLX: of more than 2²⁴ integers not every one can come up. Fewer that `float32` does
/// not hold are drawn of 64 bits, where MLX gives few of them or one.
///
/// # Errors
/// Where `dtype` is not an integer type, or there is nothing between `low` and `high`.
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// let x = random::randint(-2, 3, [100], DType::I32, Some(&random::key(0)))?;
/// assert!(x.to_vec::<i32>()?.iter().all(|v| (-2..3).contains(v)));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn randint(
    low: i64,
    high: i64,
    shape: impl Into<Shape>,
    dtype: DType,
    key: Option<&Array>,
) -> Result<Array> {
    expect_integer(dtype)?;
    if low >= high {
        return Err(Error::argument("randint", format!("nothing is in [{low}, {high})")));
    }
    let count = high.abs_diff(low);
    let most = 1 << f32::MANTISSA_DIGITS;
    if count <= most && low.unsigned_abs().max(high.unsigned_abs()) > most {
        return randint_exact(low, count, shape.into(), dtype, key);
    }
    let drawn = floor(&uniform(low as f64, high as f64, shape, DType::F32, key)?)?;
    // Rounding may reach either end.
    minimum(&maximum(&astype(&drawn, dtype)?, low)?, high - 1)
}

fn expect_integer(dtype: DType) -> Result<()> {
    match dtype.is_integer() {
        true => Ok(()),
        false => Err(Error::dtype("randint", format!("gives integers, not {dtype}"))),
    }
}

/// [`randint`] of few numbers where `float32` has not all of them: 64 random bits times their `count`, without the last 64
/// bits of that.
fn randint_exact(
    low: i64,
    count: u64,
    shape: Shape,
    dtype: DType,
    key: Option<&Array>,
) -> Result<Array> {
    let halves: Shape = [2].into_iter().chain(shape.iter().copied()).collect();
    let halves = astype(&bits(halves, 4, key)?, DType::U64)?;
    let times = |half: i32| multiply(&take(&halves, half, 0)?, &Array::scalar(count));
    let without_half = |x: &Array| right_shift(x, &Array::scalar(32u64));
    let drawn = without_half(&add(&times(1)?, &without_half(&times(0)?)?)?)?;
    // Negative numbers wrap around as their bits do.
    astype(&add(&drawn, &Array::scalar(low as u64))?, dtype)
}

/// [`randint`] between arrays, number by number. Where nothing is in between it is `low`, as in MLX.
///
/// # Shapes
/// `low` and `high` broadcast to `shape`.
///
/// # Dtypes
/// Bounds lose their fractions. Numbers are drawn as `float32`, as in MLX: beyond 2²⁴ not every one can come up.
///
/// # Errors
/// Where `dtype` is not an integer type, or a bound does not broadcast.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops::random};
/// let low = Array::from_slice(&[0, 10, 20], [3])?;
/// let x = random::randint_between(&low, 21, [3], DType::I32, Some(&random::key(0)))?.to_vec::<i32>()?;
/// assert!(x[1] >= 10 && x[2] == 20 && x.iter().all(|v| (0..21).contains(v)));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn randint_between<'a, 'b>(
    low: impl Into<Operand<'a>>,
    high: impl Into<Operand<'b>>,
    shape: impl Into<Shape>,
    dtype: DType,
    key: Option<&Array>,
) -> Result<Array> {
    let shape = shape.into();
    if dtype == DType::Bool {
        return astype(&floor(&uniform(low, high, shape, DType::F32, key)?)?, dtype);
    }
    expect_integer(dtype)?;
    let bound = |bound: Operand<'_>| match bound {
        Operand::Scalar(value) => full((), value, dtype),
        Operand::Array(array) => Ok(array.clone()),
    };
    let (low, high) = (bound(low.into())?, bound(high.into())?);
    let drawn = astype(&floor(&uniform(&low, &high, shape, DType::F32, key)?)?, dtype)?;
    // Rounding may reach either end.
    let last = subtract(&astype(&high, dtype)?, 1)?;
    maximum(&minimum(&drawn, &last)?, &astype(&low, dtype)?)
}

/// Numbers of the standard Gumbel distribution, −ln(−ln u) with u even over [0, 1).
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// assert_eq!(random::gumbel([3], DType::F32, Some(&random::key(0)))?.size(), 3);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn gumbel(shape: impl Into<Shape>, dtype: DType, key: Option<&Array>) -> Result<Array> {
    let u = unit("gumbel", &shape.into(), dtype, key)?;
    cast(&negative(&log(&negative(&hold(&log(&u)?, dtype)?)?)?)?, dtype)
}

/// Numbers of the Laplace distribution of mean 0 and scale 1: sign(u)·ln(1 − |u|) with u even over
/// (−1, 1).
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// assert_eq!(random::laplace([3], DType::F32, Some(&random::key(0)))?.size(), 3);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn laplace(shape: impl Into<Shape>, dtype: DType, key: Option<&Array>) -> Result<Array> {
    let u = symmetric("laplace", shape.into(), dtype, key)?;
    cast(&multiply(&sign(&u)?, &log1p(&negative(&abs(&u)?)?)?)?, dtype)
}

/// Normal numbers of mean 0 and variance 1 that are within [lower, upper].
///
/// # Shapes
/// `lower` and `upper` broadcast to `shape`.
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// let x = random::truncated_normal(-1.0, 2.0, [100], DType::F32, Some(&random::key(0)))?;
/// assert!(x.to_vec::<f32>()?.iter().all(|v| (-1.0..=2.0).contains(v)));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn truncated_normal<'a, 'b>(
    lower: impl Into<Operand<'a>>,
    upper: impl Into<Operand<'b>>,
    shape: impl Into<Shape>,
    dtype: DType,
    key: Option<&Array>,
) -> Result<Array> {
    let (scalar, shape) = (Shape::scalar(), shape.into());
    let root = rounded(SQRT_2, dtype);
    let bound = |operand: Operand<'_>| match operand {
        Operand::Scalar(_) => hold(&operand.to(dtype, &scalar)?, dtype),
        Operand::Array(array) => hold(array, dtype),
    };
    let (lower, upper) = (bound(lower.into())?, bound(upper.into())?);
    let edge = |x: &Array| hold(&erf(&hold(&divide(x, root)?, dtype)?)?, dtype);
    let (from, to) = (edge(&lower)?, edge(&upper)?);
    let u = spread("truncated_normal", (&from).into(), (&to).into(), &shape, dtype, key)?;
    let drawn = hold(&multiply(&hold(&erfinv(&u)?, dtype)?, root)?, dtype)?;
    cast(&maximum(&minimum(&drawn, &upper)?, &lower)?, dtype)
}

/// Indices along `axis`, each drawn with the softmax of the logits as its probability.
///
/// # Shapes
/// The logits without `axis`; with `samples`, a last axis of so many draws is added.
///
/// # Dtypes
/// Gives `uint32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops::random};
/// let logits = Array::from_slice(&[f32::NEG_INFINITY, 0.0], [2])?;
/// let x = random::categorical(&logits, -1, Some(3), Some(&random::key(0)))?;
/// assert_eq!(x.to_vec::<u32>()?, [1, 1, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn categorical(
    logits: &Array,
    axis: isize,
    samples: Option<usize>,
    key: Option<&Array>,
) -> Result<Array> {
    let axis = normalize_axis("categorical", axis, logits.rank())?;
    let logits = super::operand::inexact(logits)?;
    if is_row(&logits, axis) && (samples.is_some() || logits.rank() > 1) {
        return drawn(&logits, samples, key);
    }
    let (logits, shape) = match samples {
        None => (logits.clone(), logits.shape().clone()),
        Some(count) => {
            let shape = logits.shape().iter().copied().chain([count]).collect();
            (expand_axes(&logits, Dims::from_slice(&[logits.rank()]))?, shape)
        }
    };
    // As MLX for logits of any type; in halves two of many sums would often be equal.
    argmax(&add(&logits, &gumbel(shape, DType::F32, key)?)?, axis, false)
}

/// Whether all there is lies along `axis`.
fn is_row(x: &Array, axis: usize) -> bool {
    !x.is_empty() && x.size() == x.shape()[axis]
}

/// Places in the one row of `logits`: how many of the sums of probabilities up to a place a number
/// from 0 to 1 reaches. One random number a sample, where [`gumbel`] takes a row of them.
fn drawn(logits: &Array, samples: Option<usize>, key: Option<&Array>) -> Result<Array> {
    let row = cast(&super::reshape(logits, -1)?, DType::F32)?;
    let reached = cumsum(&softmax(&row, -1)?, 0, ScanOptions::default())?;
    // The last sum is 1, but for rounding.
    let reached = slice_axis(&reached, 0, 0, row.size().saturating_sub(1))?;
    let numbers = uniform(0.0, 1.0, [samples.unwrap_or(1), 1], DType::F32, key)?;
    let place = sum(&cast(&greater_equal(&numbers, &reached)?, DType::U32)?, -1, false)?;
    let mut shape: Vec<isize> = vec![1; logits.rank() - 1];
    shape.extend(samples.map(|count| count as isize));
    super::reshape(&place, shape)
}

/// The integers below `count` in random order, as `uint32`.
///
/// # Example
/// ```
/// use cupola::ops::random;
/// let mut x = random::permutation(5, Some(&random::key(0)))?.to_vec::<u32>()?;
/// x.sort();
/// assert_eq!(x, [0, 1, 2, 3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn permutation(count: usize, key: Option<&Array>) -> Result<Array> {
    argsort(&bits(count, 4, key)?, 0)
}

/// The slices of `x` along `axis` in random order.
///
/// # Example
/// ```
/// use cupola::{Array, ops::random};
/// let x = Array::from_slice(&[1, 2, 3, 4], [4])?;
/// assert_eq!(random::shuffle(&x, 0, Some(&random::key(0)))?.size(), 4);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn shuffle(x: &Array, axis: isize, key: Option<&Array>) -> Result<Array> {
    let axis = normalize_axis("shuffle", axis, x.rank())?;
    take(x, &permutation(x.shape()[axis], key)?, axis)
}
