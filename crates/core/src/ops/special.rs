//! Special functions made of primitives, by series whose derivatives are the series of the derivatives.
//!
//! M. Abramowitz and I. A. Stegun, *Handbook of Mathematical Functions*, 1964 (A&S), has the formulas.
//! Half types are computed in `float32`, integers and bool are taken as `float32`.

use std::f64::consts::{PI, TAU};

use super::floating::floats;
use super::operand::{Operand, cast, constant_like, expect_real, widened};
use super::{
    abs, add, cos, divide, equal, exp, greater, greater_equal, isinf, less, less_equal, log, log1p,
    logical_and, logical_not, logical_or, multiply, negative, real, round, sin, sqrt, square,
    subtract, where_,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;

/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;

/// The Bernoulli numbers B₂, B₄, … B₁₆ (A&S 23.2).
const BERNOULLI: [f64; 8] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
];

/// How far the series go: for `float32`, and for `float64`.
struct Reach {
    /// From here on Stirling's series is accurate.
    stirling: i64,
    /// Its terms.
    terms: usize,
    /// The power that the series around 2 ends with.
    taylor: i32,
}

fn reach(dtype: DType) -> Reach {
    match dtype {
        DType::F64 => Reach { stirling: 13, terms: 8, taylor: 30 },
        _ => Reach { stirling: 8, terms: 3, taylor: 14 },
    }
}

/// ζ(k) − 1 for k ≥ 2, by Euler's and Maclaurin's formula (A&S 23.2.9).
fn zeta_minus_one(k: i32) -> f64 {
    let (s, n) = (f64::from(k), 60f64);
    let head: f64 = (2..60).rev().map(|m| f64::from(m).powi(-k)).sum();
    let mut term = s * n.powi(-k - 1);
    let mut tail = n.powi(1 - k) / (s - 1.0) + n.powi(-k) / 2.0 + term / 12.0;
    for (j, over) in [(1.0, -720.0), (3.0, 30240.0)] {
        term *= (s + j) * (s + j + 1.0) / (n * n);
        tail += term / over;
    }
    head + tail
}

/// The polynomial with these coefficients, highest power first.
fn polynomial(x: &Array, coefficients: impl IntoIterator<Item = f64>) -> Result<Array> {
    let mut all = coefficients.into_iter();
    let first = constant_like(x, all.next().unwrap_or(0.0));
    all.try_fold(first, |sum, c| add(&multiply(&sum, x)?, c))
}

/// x·log y, and 0 where x is 0, whatever y is but NaN.
///
/// # Shapes
/// The operands broadcast.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0.0f32, 2.0], [2])?;
/// assert_eq!(ops::xlogy(&x, &Array::from_slice(&[0.0f32, 1.0], [2])?)?.to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn xlogy<'a, 'b>(x: impl Into<Operand<'a>>, y: impl Into<Operand<'b>>) -> Result<Array> {
    let [x, y] = floats("xlogy", [x.into(), y.into()])?;
    let own = x.dtype();
    let (x, y) = (cast(&x, own.accumulator())?, cast(&y, own.accumulator())?);
    let nothing = equal(&x, 0)?;
    // Where the logarithm is not finite, it is of 1 instead.
    let endless = equal(&y, f64::INFINITY)?;
    let masked = logical_and(&nothing, &logical_or(&less_equal(&y, 0)?, &endless)?)?;
    let product = multiply(&x, &log(&where_(&masked, 1, &y)?)?)?;
    // A root is 0 at 0, too, and its slope there is that of x·∞.
    let steep = logical_and(&masked, &endless)?;
    let of_zero = sqrt(&where_(&steep, &add(&x, 0)?, 1)?)?;
    let of_zero = where_(&steep, &of_zero, 0)?;
    cast(&where_(&masked, &of_zero, &product)?, own)
}

/// ln(x/(1 − x)), the inverse of [`sigmoid`](super::sigmoid): −∞ at 0, ∞ at 1 and NaN outside. With `eps`, of
/// x limited to [eps, 1 − eps].
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0.5f32, 1.0], [2])?;
/// assert_eq!(ops::logit(&x, None)?.to_vec::<f32>()?, [0.0, f32::INFINITY]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn logit(x: &Array, eps: Option<f64>) -> Result<Array> {
    expect_real("logit", &[x.into()])?;
    widened(x, |x| {
        let x = match eps {
            Some(eps) => &super::clip(x, eps, 1.0 - eps)?,
            None => x,
        };
        // Near ½ the two logarithms would cancel.
        let is_far = logical_or(&less(x, 0.25)?, &greater(x, 0.75)?)?;
        let outside = logical_or(&less(x, 0)?, &greater(x, 1)?)?;
        // Added, so that slopes are NaN there, too.
        let hole = where_(&outside, f64::NAN, &constant_like(x, 0.0))?;
        let far = add(&where_(&is_far, x, 0.125)?, &hole)?;
        let far = subtract(&log(&far)?, &log1p(&negative(&far)?)?)?;
        let near = where_(&is_far, 0.5, x)?;
        let near = log1p(&divide(&subtract(&multiply(&near, 2)?, 1)?, &subtract(1, &near)?)?)?;
        where_(&is_far, &far, &near)
    })
}

/// sin πx/(πx), and 1 at 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::sinc(&Array::from_slice(&[0.0f32, 0.5, 1.0], [3])?)?.to_vec::<f32>()?;
/// assert_eq!((y[0], y[2]), (1.0, 0.0));
/// assert!((y[1] - std::f32::consts::FRAC_2_PI).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn sinc(x: &Array) -> Result<Array> {
    widened(x, |x| {
        let terms = if x.dtype() == DType::F64 { 11 } else { 6 };
        let is_near = less(&abs(x)?, 0.25)?;
        // sin y/y = Σ (−y²)ᵏ/(2k + 1)!, which has derivatives at 0, too.
        let near = multiply(&where_(&is_near, x, 0)?, PI)?;
        let factorial = |n: usize| (1..=n).map(|i| i as f64).product::<f64>();
        let series = (0..terms).rev().map(|k| 1.0 / factorial(2 * k + 1));
        let near = polynomial(&negative(&square(&near)?)?, series)?;
        let far = where_(&is_near, 1, x)?;
        let far = divide(&sin_pi(&far)?, &multiply(&far, PI)?)?;
        where_(&is_near, &near, &far)
    })
}

/// sin πx, exactly 0 at integers.
fn sin_pi(x: &Array) -> Result<Array> {
    // x less an even integer, within [−1, 1], exactly; then within [−½, ½], with the sign that this changes. Of
    // complex numbers that is the real part.
    let whole = |x: &Array| cast(&round(&real(x)?, 0)?, x.dtype());
    let turns = multiply(&whole(&multiply(x, 0.5)?)?, 2)?;
    let rest = subtract(x, &turns)?;
    let half = whole(&rest)?;
    let rest = multiply(&subtract(&rest, &half)?, PI)?;
    let value = sin(&rest)?;
    // Not −0 of 0.
    where_(&equal(&half, 0)?, &value, &subtract(0, &value)?)
}

/// What the series for the gamma function are taken of.
struct Near {
    /// Whether the argument is below Stirling's reach.
    is_near: Array,
    /// How far it is from 2 in whole steps: negative where it is below.
    steps: Array,
    /// What is left, within [−½, ½].
    rest: Array,
}

fn near(x: &Array, reach: &Reach) -> Result<Near> {
    let is_near = less(x, reach.stirling)?;
    let whole = round(&where_(&is_near, x, 2)?, 0)?;
    let rest = subtract(&where_(&is_near, x, 2)?, &whole)?;
    Ok(Near { is_near, steps: subtract(&whole, 2)?, rest })
}

/// ln |Γ(x)|: ∞ at 0 and the negative integers.
///
/// Γ(x + 1) = x·Γ(x) leads to the series around 2 (A&S 6.1.33), or from 8 on (13 of `float64`) to Stirling's
/// (6.1.40); below 0, Γ(x)·Γ(−x) = −π/(x·sin πx) (6.1.17).
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::lgamma(&Array::from_slice(&[1.0f32, 4.0], [2])?)?.to_vec::<f32>()?;
/// assert_eq!(y[0], 0.0);
/// assert!((y[1] - 6f32.ln()).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn lgamma(x: &Array) -> Result<Array> {
    expect_real("lgamma", &[x.into()])?;
    widened(x, |x| {
        let below = less(x, 0)?;
        let size = where_(&below, &negative(x)?, x)?;
        // Not of ∞, whose slopes are lost in that of the logarithm.
        let own = lgamma_from_zero(&where_(&isinf(&size)?, 1, &size)?)?;
        let sine = abs(&sin_pi(&where_(&below, x, 0.5)?)?)?;
        let mirrored = add(&log(&divide(&sine, PI)?)?, &log(&where_(&below, &size, 1)?)?)?;
        let mirrored = negative(&add(&mirrored, &own)?)?;
        let out = where_(&below, &mirrored, &own)?;
        // Where ln Γ(|x|) is infinite, |x| is whole.
        let is_pole = logical_and(&below, &isinf(&own)?)?;
        let out = where_(&logical_or(&isinf(x)?, &is_pole)?, f64::INFINITY, &out)?;
        // At ∞ the slope is infinite, too.
        let at_end = equal(x, f64::INFINITY)?;
        let out = where_(&at_end, &square(&where_(&at_end, x, 0)?)?, &out)?;
        // At −∞ it is NaN, as that of √eˣ there: 0/0.
        let at_start = equal(x, f64::NEG_INFINITY)?;
        let start = where_(&at_start, x, 0)?;
        where_(&at_start, &add(&square(&start)?, &sqrt(&exp(&start)?)?)?, &out)
    })
}

/// ln Γ(x) for x ≥ 0.
fn lgamma_from_zero(x: &Array) -> Result<Array> {
    let reach = reach(x.dtype());
    let Near { is_near, steps, rest } = near(x, &reach)?;
    let sign = |k: i32| if k % 2 == 0 { 1.0 } else { -1.0 };
    let taylor = |k: i32| match k {
        0 => 0.0,
        1 => 1.0 - EULER,
        k => sign(k) * zeta_minus_one(k) / f64::from(k),
    };
    let series = polynomial(&rest, (0..=reach.taylor).rev().map(taylor))?;
    // Γ(x) = Γ(2 + rest)·(x − 1)…(x − steps), or over x, or x·(x + 1).
    let mut product = constant_like(x, 1.0);
    for step in 1..=reach.stirling - 2 {
        let factor = where_(&less(&steps, step)?, 1, &subtract(x, step)?)?;
        product = multiply(&product, &factor)?;
    }
    let is_below = less(&steps, 0)?;
    let logarithm = log(&where_(&is_below, x, &product)?)?;
    let second = log1p(&where_(&less(&steps, -1)?, x, 0)?)?;
    let logarithm = add(&logarithm, &second)?;
    let near = where_(&is_below, &subtract(&series, &logarithm)?, &add(&series, &logarithm)?)?;
    let far = where_(&is_near, reach.stirling, x)?;
    let inverse = divide(1, &far)?;
    let stirling = |j: usize| BERNOULLI[j] / ((2 * j + 1) * (2 * j + 2)) as f64;
    let tail = polynomial(&square(&inverse)?, (0..reach.terms).rev().map(stirling))?;
    let tail = add(&multiply(&tail, &inverse)?, 0.5 * TAU.ln() - 0.5)?;
    let main = multiply(&subtract(&far, 0.5)?, &subtract(&log(&far)?, 1)?)?;
    where_(&is_near, &near, &add(&main, &tail)?)
}

/// The derivative of [`lgamma`], ψ(x) = Γ′(x)/Γ(x): −∞ at 0, ∞ at −0, NaN at the negative integers.
///
/// As for [`lgamma`]: A&S 6.3.5, 6.3.14 and 6.3.18, and 6.3.7 below 0.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::digamma(&Array::scalar(1.0f32))?.item::<f32>()?;
/// assert!((y + 0.5772157).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn digamma(x: &Array) -> Result<Array> {
    expect_real("digamma", &[x.into()])?;
    widened(x, |x| {
        let below = less(x, 0)?;
        let own = digamma_from_zero(&where_(&below, &subtract(1, x)?, x)?)?;
        // π·cot πx, of what x has behind its point.
        let rest = subtract(x, &round(x, 0)?)?;
        let pole = logical_and(&below, &equal(&rest, 0)?)?;
        let inside = logical_and(&below, &logical_not(&pole)?)?;
        let angle = multiply(&where_(&inside, &rest, 0.25)?, PI)?;
        let cotangent = multiply(&divide(&cos(&angle)?, &sin(&angle)?)?, PI)?;
        let out = where_(&below, &subtract(&own, &cotangent)?, &own)?;
        // A multiple of x, so that slopes are NaN there, too.
        where_(&pole, &multiply(&where_(&pole, x, 0)?, f64::NAN)?, &out)
    })
}

/// ψ(x) for x ≥ 0.
fn digamma_from_zero(x: &Array) -> Result<Array> {
    let reach = reach(x.dtype());
    let Near { is_near, steps, rest } = near(x, &reach)?;
    let sign = |k: i32| if k % 2 == 0 { 1.0 } else { -1.0 };
    let taylor = |k: i32| match k {
        1 => 1.0 - EULER,
        k => sign(k) * zeta_minus_one(k),
    };
    let mut near = polynomial(&rest, (1..=reach.taylor).rev().map(taylor))?;
    // ψ(x + 1) = ψ(x) + 1/x.
    let over = |mask: &Array, x: &Array| where_(mask, &divide(1, &where_(mask, x, 1)?)?, 0);
    for step in 1..=reach.stirling - 2 {
        let is_above = logical_not(&less(&steps, step)?)?;
        near = add(&near, &over(&is_above, &subtract(x, step)?)?)?;
    }
    near = subtract(&near, &over(&less(&steps, -1)?, &add(x, 1)?)?)?;
    near = subtract(&near, &over(&less(&steps, 0)?, x)?)?;
    let far = where_(&is_near, reach.stirling, x)?;
    let inverse = divide(1, &far)?;
    let stirling = |j: usize| BERNOULLI[j] / (2 * j + 2) as f64;
    let squared = square(&inverse)?;
    let tail = polynomial(&squared, (0..reach.terms).rev().map(stirling))?;
    let tail = add(&multiply(&tail, &squared)?, &multiply(&inverse, 0.5)?)?;
    where_(&is_near, &near, &subtract(&log(&far)?, &tail)?)
}

/// The modified Bessel function of the first kind of order 0, I₀(x) = Σ (x²/4)ᵏ/k!² (A&S 9.6.12); from 12 on
/// (20 of `float64`) by its asymptotic series (9.7.1).
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::i0(&Array::from_slice(&[0.0f32, 1.0], [2])?)?.to_vec::<f32>()?;
/// assert_eq!(y[0], 1.0);
/// assert!((y[1] - 1.2660659).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn i0(x: &Array) -> Result<Array> {
    expect_real("i0", &[x.into()])?;
    widened(x, |x| {
        // The result is infinite from `end` on.
        let (limit, terms, tail, end) = match x.dtype() {
            DType::F64 => (20.0, 46, 26, 714.0),
            _ => (12.0, 24, 12, 92.0),
        };
        let size = abs(x)?;
        let (is_near, is_over) = (less(&size, limit)?, greater_equal(&size, end)?);
        let quarter = multiply(&square(&where_(&is_near, x, 0)?)?, 0.25)?;
        let mut coefficients = vec![1.0f64];
        for k in 1..terms {
            coefficients.push(coefficients[k - 1] / (k * k) as f64);
        }
        let near = polynomial(&quarter, coefficients.into_iter().rev())?;
        let mut coefficients = vec![1.0f64];
        for k in 1..tail {
            let odd = (2 * k - 1) as f64;
            coefficients.push(coefficients[k - 1] * odd * odd / (8 * k) as f64);
        }
        let far = where_(&logical_or(&is_near, &is_over)?, limit, &size)?;
        let series = polynomial(&divide(1, &far)?, coefficients.into_iter().rev())?;
        // eˣ overflows before the result does.
        let root = exp(&multiply(&far, 0.5)?)?;
        let scaled = divide(&root, &sqrt(&multiply(&far, TAU)?)?)?;
        let far = multiply(&multiply(&series, &scaled)?, &root)?;
        // A multiple of x, so that slopes are infinite there, too.
        let over = multiply(&where_(&is_over, &size, 1)?, f64::INFINITY)?;
        where_(&is_near, &near, &where_(&is_over, &over, &far)?)
    })
}
