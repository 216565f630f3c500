//! Distributions beyond MLX's.
//!
//! What has to reject numbers draws a fixed count of candidates for each and takes the first that is accepted, so
//! that shapes and keys depend on no values. Numbers that are whole have no derivative by the parameters.

use super::gamma::Gamma;
use super::{bits, expect_float, gumbel, key_or_next, permutation, split, unit};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Side;
use crate::ops::operand::{Operand, cast, constant_like};
use crate::ops::{
    abs, add, argsort, cumsum, divide, exp, floor, greater, greater_equal, iota, less, less_equal,
    log, log1p, logical_and, logical_not, logical_or, multiply, negative, reshape, right_shift,
    searchsorted, sigmoid, softmax, sqrt, square, stop_gradient, subtract, unstack, where_,
};
use crate::prim::record::slice_axis;
use crate::shape::Shape;

/// Parameters in the dtype that numbers of `dtype` are drawn in, of one shape and without derivatives.
fn parameter(operand: Operand<'_>, dtype: DType, shape: &Shape) -> Result<Array> {
    stop_gradient(&operand.to(dtype.accumulator(), shape)?)
}

fn expect_integer(op: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_integer() {
        return Ok(());
    }
    Err(Error::dtype(op, format!("gives integers, not {dtype}")))
}

/// An error where a plain number is outside of where a parameter may be.
fn expect_within(
    op: &'static str,
    what: &str,
    value: Operand<'_>,
    is_valid: impl Fn(f64) -> bool,
) -> Result<()> {
    match value {
        Operand::Scalar(value) if !is_valid(value.to_f64()) => {
            Err(Error::argument(op, format!("there is no distribution for {what} {value}")))
        }
        Operand::Array(x) if x.dtype().is_complex() => {
            Err(Error::dtype(op, format!("{what} {} is not real", x.aval())))
        }
        Operand::Scalar(_) | Operand::Array(_) => Ok(()),
    }
}

/// `count` keys made of one, as arrays of their own.
pub(super) fn keys(key: Option<&Array>, count: usize) -> Result<Vec<Array>> {
    unstack(&split(Some(&key_or_next(key)?), count)?, 0)
}

/// `shape` with a first axis of `rounds`.
pub(super) fn rounds_of(rounds: usize, shape: &Shape) -> Shape {
    [rounds].into_iter().chain(shape.iter().copied()).collect()
}

/// Numbers of the exponential distribution of mean 1: −ln(1 − u) with u even over [0, 1).
///
/// # Errors
/// Where `dtype` is not a float.
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// let x = random::exponential([100], DType::F32, Some(&random::key(0)))?;
/// assert!(x.to_vec::<f32>()?.iter().all(|v| *v >= 0.0));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn exponential(shape: impl Into<Shape>, dtype: DType, key: Option<&Array>) -> Result<Array> {
    let u = unit("exponential", &shape.into(), dtype, key)?;
    // Not −0 of 0.
    cast(&abs(&log1p(&negative(&u)?)?)?, dtype)
}

/// Numbers of the gamma distribution with the shape parameter `a` and scale 1.
///
/// # Shapes
/// `a` broadcasts to `shape`.
///
/// # Dtypes
/// Half types are drawn in `float32`. Of an array's negative parameters the numbers are NaN.
///
/// # Derivatives
/// By the parameter: that of the quantile that a number is, at its probability (M. Figurnov, S. Mohamed, A. Mnih,
/// *Implicit reparameterization gradients*, 2018). It is 0 where there is no distribution.
///
/// # Errors
/// Where `dtype` is not a float, and for a plain number that is not positive.
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// let x = random::gamma(2.5, [100], DType::F32, Some(&random::key(0)))?;
/// assert!(x.to_vec::<f32>()?.iter().all(|v| *v > 0.0));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn gamma<'a>(
    a: impl Into<Operand<'a>>,
    shape: impl Into<Shape>,
    dtype: DType,
    key: Option<&Array>,
) -> Result<Array> {
    let (op, a, shape) = ("gamma", a.into(), shape.into());
    expect_float(op, dtype)?;
    expect_within(op, "the shape parameter", a, |a| a > 0.0 && a.is_finite())?;
    cast(&Gamma::draw(a, &shape, dtype, key)?.numbers, dtype)
}

/// Numbers of the beta distribution: X/(X + Y) with X and Y of [`gamma`] distributions with `a` and `b`.
///
/// # Shapes
/// `a` and `b` broadcast to `shape`.
///
/// # Dtypes and derivatives
/// As [`gamma`].
///
/// # Errors
/// As [`gamma`].
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// let x = random::beta(0.5, 2.0, [100], DType::F32, Some(&random::key(0)))?;
/// assert!(x.to_vec::<f32>()?.iter().all(|v| (0.0..=1.0).contains(v)));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn beta<'a, 'b>(
    a: impl Into<Operand<'a>>,
    b: impl Into<Operand<'b>>,
    shape: impl Into<Shape>,
    dtype: DType,
    key: Option<&Array>,
) -> Result<Array> {
    let (op, a, b, shape) = ("beta", a.into(), b.into(), shape.into());
    expect_float(op, dtype)?;
    for one in [a, b] {
        expect_within(op, "the parameter", one, |a| a > 0.0 && a.is_finite())?;
    }
    let keys = keys(key, 2)?;
    let x = Gamma::draw(a, &shape, dtype, Some(&keys[0]))?.logarithms;
    let y = Gamma::draw(b, &shape, dtype, Some(&keys[1]))?.logarithms;
    cast(&sigmoid(&subtract(&x, &y)?)?, dtype)
}

/// Vectors of the Dirichlet distribution: positive numbers whose sum is 1.
///
/// # Shapes
/// `alpha` has the parameters along its last axis; its other axes broadcast to `shape`, which that axis follows.
///
/// # Dtypes and derivatives
/// As [`gamma`].
///
/// # Errors
/// Where `alpha` has no axis, and as [`gamma`].
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops, ops::random};
/// let alpha = Array::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
/// let x = random::dirichlet(&alpha, [5], DType::F32, Some(&random::key(0)))?;
/// assert_eq!(x.shape()[..], [5, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn dirichlet(
    alpha: &Array,
    shape: impl Into<Shape>,
    dtype: DType,
    key: Option<&Array>,
) -> Result<Array> {
    let op = "dirichlet";
    expect_float(op, dtype)?;
    expect_within(op, "the parameters", alpha.into(), |_| true)?;
    let Some(&count) = alpha.shape().last() else {
        return Err(Error::shape(
            op,
            format!("parameters lie along an axis, not {}", alpha.aval()),
        ));
    };
    let shape: Shape = shape.into().iter().copied().chain([count]).collect();
    let logarithms = Gamma::draw(alpha.into(), &shape, dtype, key)?.logarithms;
    cast(&softmax(&logarithms, -1)?, dtype)
}

/// How many events come in a time in which `rate` are expected: numbers of the Poisson distribution.
///
/// # Shapes
/// `rate` broadcasts to `shape`.
///
/// # Dtypes
/// They are drawn in `float32`. Where an array's rate is negative or NaN the number is −1.
///
/// # Errors
/// Where `dtype` is not an integer type, and for a plain number that is negative or not finite.
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// let x = random::poisson(3.0, [100], DType::I32, Some(&random::key(0)))?;
/// assert!(x.to_vec::<i32>()?.iter().all(|v| (0..40).contains(v)));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn poisson<'a>(
    rate: impl Into<Operand<'a>>,
    shape: impl Into<Shape>,
    dtype: DType,
    key: Option<&Array>,
) -> Result<Array> {
    let (op, rate, shape) = ("poisson", rate.into(), shape.into());
    expect_integer(op, dtype)?;
    expect_within(op, "the rate", rate, |r| r >= 0.0 && r.is_finite())?;
    let keys = keys(key, 2)?;
    let known = match rate {
        Operand::Scalar(rate) => Some(rate.to_f64() < SMALL_RATE),
        Operand::Array(_) => None,
    };
    let rate = parameter(rate, DType::F32, &shape)?;
    let out = match known {
        Some(true) => few_events(&rate, &shape, &keys[0])?,
        Some(false) => many_events(&rate, &shape, &keys[1])?,
        None => {
            let small = less(&rate, SMALL_RATE)?;
            let few = few_events(&where_(&small, &rate, 1)?, &shape, &keys[0])?;
            let many = many_events(&where_(&small, 2.0 * SMALL_RATE, &rate)?, &shape, &keys[1])?;
            let out = where_(&small, &few, &many)?;
            where_(&greater_equal(&rate, 0)?, &out, -1)?
        }
    };
    cast(&out, dtype)
}

/// From this rate on numbers are drawn by rejection.
const SMALL_RATE: f64 = 10.0;

/// By inversion: how many of the sums of probabilities a number from 0 to 1 reaches.
fn few_events(rate: &Array, shape: &Shape, key: &Array) -> Result<Array> {
    let u = unit("poisson", shape, DType::F32, Some(key))?;
    let mut probability = exp(&negative(rate)?)?;
    let mut reached = probability.clone();
    let mut count = constant_like(rate, 0.0);
    // Of more than 40 the probability is below 10⁻¹².
    for k in 1..=40 {
        count = add(&count, &cast(&greater_equal(&u, &reached)?, DType::F32)?)?;
        probability = multiply(&probability, &divide(rate, k)?)?;
        reached = add(&reached, &probability)?;
    }
    Ok(count)
}

/// W. Hörmann, *The transformed rejection method for generating Poisson random variables*, Insurance: Mathematics and
/// Economics 12 (1993), algorithm PTRS: of the candidates at least three in four are accepted, so that 16 of them
/// fail once in 10⁹ times. The mode then stands for them.
fn many_events(rate: &Array, shape: &Shape, key: &Array) -> Result<Array> {
    const ROUNDS: usize = 16;
    let keys = keys(Some(key), 2)?;
    let many = rounds_of(ROUNDS, shape);
    let draw = |key: &Array| unstack(&unit("poisson", &many, DType::F32, Some(key))?, 0);
    let (first, second) = (draw(&keys[0])?, draw(&keys[1])?);
    let b = add(&multiply(&sqrt(rate)?, 2.53)?, 0.931)?;
    let a = subtract(&multiply(&b, 0.02483)?, 0.059)?;
    let inverse = add(&divide(1.1328, &subtract(&b, 3.4)?)?, 1.1239)?;
    let quick = subtract(0.9277, &divide(3.6224, &subtract(&b, 2)?)?)?;
    let mut found = floor(rate)?;
    for (u, v) in first.iter().zip(&second).rev() {
        let u = subtract(u, 0.5)?;
        let v = subtract(1, v)?;
        let edge = subtract(0.5, &abs(&u)?)?;
        // At the very edge a candidate is not finite: it is rejected below.
        let safe = where_(&greater(&edge, 0)?, &edge, 1)?;
        let slope = add(&divide(&multiply(&a, 2)?, &safe)?, &b)?;
        let k = floor(&add(&add(&multiply(&slope, &u)?, rate)?, 0.43)?)?;
        let is_quick = logical_and(&greater_equal(&edge, 0.07)?, &less_equal(&v, &quick)?)?;
        let thin = logical_and(&less(&edge, 0.013)?, &greater(&v, &edge)?)?;
        let out = logical_or(&logical_or(&less(&k, 0)?, &thin)?, &less_equal(&edge, 0)?)?;
        let k_or_0 = where_(&out, 0, &k)?;
        let height = divide(&inverse, &add(&divide(&a, &square(&safe)?)?, &b)?)?;
        let left = log(&multiply(&v, &height)?)?;
        let right = log_probability(&k_or_0, rate)?;
        let slow = logical_and(&logical_not(&out)?, &less_equal(&left, &right)?)?;
        found = where_(&logical_or(&is_quick, &slow)?, &k, &found)?;
    }
    Ok(found)
}

/// −rate + k·ln rate − ln k!, without the cancellation of large terms: with x = (k − rate)/rate it is
/// −rate·((1 + x)·ln(1 + x) − x) less Stirling's approximation of k!/(kᵏ·e⁻ᵏ).
fn log_probability(k: &Array, rate: &Array) -> Result<Array> {
    let is_few = less(k, 10)?;
    let mut factorial = constant_like(k, 1.0);
    for j in 2..10 {
        factorial = multiply(&factorial, &where_(&less(k, j)?, &constant_like(k, 1.0), j)?)?;
    }
    let few = subtract(&multiply(k, &log(rate)?)?, &log(&factorial)?)?;
    let few = subtract(&few, rate)?;
    let many = where_(&is_few, rate, k)?;
    let x = divide(&subtract(&many, rate)?, rate)?;
    let near = less(&abs(&x)?, 0.125)?;
    // Σ (−x)ⁿ⁻²/(n·(n − 1)), times x².
    let y = where_(&near, &x, 0)?;
    let mut series = constant_like(&x, 0.0);
    for n in (2..12).rev() {
        let sign = if n % 2 == 0 { 1.0 } else { -1.0 };
        series = add(&multiply(&series, &y)?, sign / f64::from(n * (n - 1)))?;
    }
    let series = multiply(&series, &square(&y)?)?;
    let plain = subtract(&multiply(&add(&x, 1)?, &log1p(&x)?)?, &x)?;
    let way = multiply(&where_(&near, &series, &plain)?, rate)?;
    let stirling = multiply(&log(&multiply(&many, std::f64::consts::TAU)?)?, 0.5)?;
    let inverse = divide(1, &many)?;
    let tail = subtract(1.0 / 12.0, &divide(&square(&inverse)?, 360.0)?)?;
    let stirling = add(&stirling, &multiply(&tail, &inverse)?)?;
    where_(&is_few, &few, &negative(&add(&way, &stirling)?)?)
}

/// How many trials it takes until one succeeds that does so with probability `p`: numbers of the geometric
/// distribution, from 1 on.
///
/// # Shapes
/// `p` broadcasts to `shape`.
///
/// # Dtypes
/// They are drawn in `float32`. Where an array's probability is not within (0, 1] the number is −1.
///
/// # Errors
/// Where `dtype` is not an integer type, and for a plain number that is not within (0, 1].
///
/// # Example
/// ```
/// use cupola::{DType, ops::random};
/// let x = random::geometric(0.5, [100], DType::I32, Some(&random::key(0)))?;
/// assert!(x.to_vec::<i32>()?.iter().all(|v| *v >= 1));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn geometric<'a>(
    p: impl Into<Operand<'a>>,
    shape: impl Into<Shape>,
    dtype: DType,
    key: Option<&Array>,
) -> Result<Array> {
    let (op, p, shape) = ("geometric", p.into(), shape.into());
    expect_integer(op, dtype)?;
    let is_valid = |p: f64| p > 0.0 && p <= 1.0;
    expect_within(op, "the probability", p, is_valid)?;
    let p = parameter(p, DType::F32, &shape)?;
    let u = unit(op, &shape, DType::F32, key)?;
    let valid = logical_and(&greater(&p, 0)?, &less_equal(&p, 1)?)?;
    let rate = log1p(&negative(&where_(&valid, &p, 0.5)?)?)?;
    let count = add(&floor(&divide(&log1p(&negative(&u)?)?, &rate)?)?, 1)?;
    cast(&where_(&valid, &count, -1)?, dtype)
}

/// An error where `p` holds what is no probability, or fewer than `drawn` that are not 0.
fn expect_probabilities(op: &'static str, p: &Array, epsilon: f64, drawn: usize) -> Result<()> {
    let all = p.to_vec::<f32>()?;
    if let Some(wrong) = all.iter().find(|p| !(p.is_finite() && **p >= 0.0)) {
        return Err(Error::argument(op, format!("{wrong} is no probability")));
    }
    let total: f64 = all.iter().map(|&p| f64::from(p)).sum();
    if !all.is_empty() && (total - 1.0).abs() > epsilon.sqrt() {
        return Err(Error::argument(op, format!("the probabilities come to {total}, not to 1")));
    }
    let possible = all.iter().filter(|p| **p > 0.0).count();
    match possible < drawn {
        true => Err(Error::argument(
            op,
            format!("{drawn} are to be drawn, and {possible} have a probability that is not 0"),
        )),
        false => Ok(()),
    }
}

/// Places of `count` things that are drawn, each as likely as another or with the probabilities `p`, with each put
/// back or not; as `uint32`.
///
/// Without putting back, probabilities are those of one draw after another: the places of the largest of ln p plus
/// [`gumbel`] numbers.
///
/// # Shapes
/// `p` is a vector of `count`, which sums to 1 up to √ε of its dtype.
///
/// # Errors
/// Where there is nothing to draw from, or not enough without putting back, and where `p` does not fit, does not sum
/// to 1, or has a number that is negative or not finite: except under a transform, it is computed and waited for to see that.
///
/// # Example
/// ```
/// use cupola::ops::random;
/// let x = random::choice(4, [100], true, None, Some(&random::key(0)))?;
/// assert!(x.to_vec::<u32>()?.iter().all(|v| *v < 4));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn choice(
    count: usize,
    shape: impl Into<Shape>,
    replace: bool,
    p: Option<&Array>,
    key: Option<&Array>,
) -> Result<Array> {
    let (op, shape) = ("choice", shape.into());
    let drawn = shape.checked_size(op, DType::U32)?;
    if count == 0 && drawn > 0 {
        return Err(Error::argument(op, "there is nothing to draw from".to_owned()));
    }
    if count > u32::MAX as usize {
        return Err(Error::argument(op, format!("{count} are past uint32")));
    }
    if !replace && drawn > count {
        let detail = format!("{drawn} of {count} are not to be had without putting back");
        return Err(Error::argument(op, detail));
    }
    let given = p;
    let p = match p {
        Some(p)
            if p.shape()[..] != [count] || !(p.dtype().is_float() || p.dtype().is_integer()) =>
        {
            let detail = format!("probabilities {} for {count}", p.aval());
            return Err(Error::shape(op, detail));
        }
        Some(p) => Some(parameter(p.into(), DType::F32, &Shape::from(count))?),
        None => None,
    };
    let epsilon = match given.map(Array::dtype) {
        Some(DType::F16) => f64::from(half::f16::EPSILON),
        Some(DType::BF16) => f64::from(half::bf16::EPSILON),
        _ => f64::from(f32::EPSILON),
    };
    if let Some(p) = p.as_ref().filter(|p| !p.is_traced()) {
        expect_probabilities(op, p, epsilon, if replace { drawn.min(1) } else { drawn })?;
    }
    match (p, replace) {
        (None, true) => {
            // The integer part of count·u, with u of 32 bits.
            let words = cast(&bits(shape, 4, key)?, DType::U64)?;
            cast(&right_shift(&multiply(&words, count)?, 32)?, DType::U32)
        }
        (None, false) => reshape(&slice_axis(&permutation(count, key)?, 0, 0, drawn)?, shape),
        (Some(p), true) => {
            let reached = cumsum(&p, 0, Default::default())?;
            if drawn == 0 {
                return cast(&iota(0, 0, DType::U32)?, DType::U32)
                    .and_then(|none| reshape(&none, shape));
            }
            let total = slice_axis(&reached, 0, count - 1, 1)?;
            // Above 0, so that nothing of probability 0 comes.
            let u = subtract(1, &unit(op, &shape, DType::F32, key)?)?;
            searchsorted(&reached, &multiply(&u, &total)?, Side::Left)
        }
        (Some(p), false) => {
            let scores = add(&log(&p)?, &gumbel(count, DType::F32, key)?)?;
            let order = argsort(&negative(&scores)?, 0)?;
            reshape(&slice_axis(&order, 0, 0, drawn)?, shape)
        }
    }
}
