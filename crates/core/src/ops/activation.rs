//! Activation functions.
//!
//! Integers and bool are taken as `float32`, but by [`relu`] and its like, which keep integers.

use super::operand::{Operand, inexact, widened, widened_as_one};
use super::{
    abs, add, clip, divide, erf, expm1, greater, logaddexp, maximum, multiply, negative, sigmoid,
    softmax, split, square, subtract, tanh, where_,
};
use crate::array::Array;
use crate::autocast;
use crate::error::Result;
use crate::shape::normalize_axis;

/// max(x, 0), with slope 0 at 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1.0f32, 2.0], [2])?;
/// assert_eq!(ops::relu(&x)?.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn relu(x: &Array) -> Result<Array> {
    maximum(x, 0)
}

/// min(max(x, 0), 6).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1.0f32, 7.0], [2])?;
/// assert_eq!(ops::relu6(&x)?.to_vec::<f32>()?, [0.0, 6.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn relu6(x: &Array) -> Result<Array> {
    clip(x, 0, 6)
}

/// x for positive x, slope·x otherwise.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-2.0f32, 2.0], [2])?;
/// assert_eq!(ops::leaky_relu(&x, 0.5)?.to_vec::<f32>()?, [-1.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn leaky_relu(x: &Array, slope: f64) -> Result<Array> {
    where_(&greater(x, 0)?, x, &multiply(x, slope)?)
}

/// x for positive x, weight·x otherwise; the weight broadcasts and is learned.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-2.0f32, 2.0], [2])?;
/// assert_eq!(ops::prelu(&x, &Array::scalar(0.25f32))?.to_vec::<f32>()?, [-0.5, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn prelu<'a>(x: &Array, weight: impl Into<Operand<'a>>) -> Result<Array> {
    let chosen = |x: &Array, weight: Operand<'_>| where_(&greater(x, 0)?, x, &multiply(x, weight)?);
    match weight.into() {
        Operand::Array(weight) => {
            autocast::apply("prelu", [x, weight], |[x, weight]| chosen(x, weight.into()))
        }
        weight => autocast::apply("prelu", [x], |[x]| chosen(x, weight)),
    }
}

/// x for positive x, alpha·(eˣ − 1) otherwise.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[f32::NEG_INFINITY, 2.0], [2])?;
/// assert_eq!(ops::elu(&x, 1.0)?.to_vec::<f32>()?, [-1.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn elu(x: &Array, alpha: f64) -> Result<Array> {
    celu_of(x, alpha, 1.0)
}

/// x for positive x, alpha·(e^(x/alpha) − 1) otherwise.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[f32::NEG_INFINITY, 2.0], [2])?;
/// assert_eq!(ops::celu(&x, 0.5)?.to_vec::<f32>()?, [-0.5, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn celu(x: &Array, alpha: f64) -> Result<Array> {
    celu_of(x, alpha, alpha)
}

/// The exponential sees no positive x: what the branch that is not taken gives must not overflow,
/// because its derivative would be 0·∞. At 0 the slope is the curve's.
fn celu_of(x: &Array, alpha: f64, scale: f64) -> Result<Array> {
    widened(x, |x| {
        let above = greater(x, 0)?;
        let below = where_(&above, 0, x)?;
        let below = if scale == 1.0 { below } else { divide(&below, scale)? };
        let curve = expm1(&below)?;
        let curve = if alpha == 1.0 { curve } else { multiply(&curve, alpha)? };
        where_(&above, x, &curve)
    })
}

/// The self-normalising exponential unit, 1.0507·elu(x, 1.67326).
///
/// G. Klambauer et al., *Self-normalizing neural networks*, NeurIPS 2017.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::selu(&Array::scalar(2.0f32))?.item::<f32>()?;
/// assert!((y - 2.101402).abs() < 1e-5);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn selu(x: &Array) -> Result<Array> {
    widened_as_one("selu", &[], x, |x| {
        multiply(&elu(x, 1.673_263_242_354_377_2)?, 1.050_700_987_355_480_5)
    })
}

/// x·Φ(x), with the normal distribution function Φ.
///
/// D. Hendrycks, K. Gimpel, *Gaussian error linear units*, 2016.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::gelu(&Array::scalar(1.0f32))?.item::<f32>()?;
/// assert!((y - 0.8413447).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn gelu(x: &Array) -> Result<Array> {
    widened_as_one("gelu", &[], x, |x| {
        let phi = add(&erf(&divide(x, std::f64::consts::SQRT_2)?)?, 1)?;
        multiply(&multiply(x, &phi)?, 0.5)
    })
}

/// [`gelu`] through tanh: 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::gelu_approx(&Array::scalar(1.0f32))?.item::<f32>()?;
/// assert!((y - 0.841192).abs() < 1e-5);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn gelu_approx(x: &Array) -> Result<Array> {
    widened_as_one("gelu_approx", &[], x, |x| {
        let inner = multiply(x, &add(&multiply(&square(x)?, 0.044715)?, 1)?)?;
        let curve = add(&tanh(&multiply(&inner, (2.0 / std::f64::consts::PI).sqrt())?)?, 1)?;
        multiply(&multiply(x, 0.5)?, &curve)
    })
}

/// x·sigmoid(x), also called swish.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::silu(&Array::scalar(1.0f32))?.item::<f32>()?;
/// assert!((y - 0.7310586).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn silu(x: &Array) -> Result<Array> {
    widened_as_one("silu", &[], x, |x| multiply(x, &sigmoid(x)?))
}

/// ln(1 + eˣ), without overflow.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::softplus(&Array::scalar(100.0f32))?.item::<f32>()?, 100.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn softplus(x: &Array) -> Result<Array> {
    logaddexp(x, 0)
}

/// ln sigmoid(x), without overflow.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::log_sigmoid(&Array::scalar(-100.0f32))?.item::<f32>()?, -100.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn log_sigmoid(x: &Array) -> Result<Array> {
    widened_as_one("log_sigmoid", &[], x, |x| negative(&softplus(&negative(x)?)?))
}

/// x/(1 + |x|).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::softsign(&Array::scalar(-1.0f32))?.item::<f32>()?, -0.5);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn softsign(x: &Array) -> Result<Array> {
    widened_as_one("softsign", &[], x, |x| divide(x, &add(&abs(x)?, 1)?))
}

/// x·min(max(x + 3, 0), 6)/6.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::hard_swish(&Array::scalar(4.0f32))?.item::<f32>()?, 4.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn hard_swish(x: &Array) -> Result<Array> {
    widened_as_one("hard_swish", &[], x, |x| divide(&multiply(x, &relu6(&add(x, 3)?)?)?, 6))
}

/// min(max(x + 3, 0), 6)/6.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::hard_sigmoid(&Array::scalar(0.0f32))?.item::<f32>()?, 0.5);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn hard_sigmoid(x: &Array) -> Result<Array> {
    widened_as_one("hard_sigmoid", &[], x, |x| divide(&relu6(&add(x, 3)?)?, 6))
}

/// x·tanh(ln(1 + eˣ)).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = ops::mish(&Array::scalar(1.0f32))?.item::<f32>()?;
/// assert!((y - 0.8650984).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn mish(x: &Array) -> Result<Array> {
    widened_as_one("mish", &[], x, |x| multiply(x, &tanh(&softplus(x)?)?))
}

/// The first half of an axis times the sigmoid of the second.
///
/// # Errors
/// Where the axis is not of even size.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[4.0f32, 0.0], [2])?;
/// assert_eq!(ops::glu(&x, -1)?.to_vec::<f32>()?, [2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn glu(x: &Array, axis: isize) -> Result<Array> {
    normalize_axis("glu", axis, x.rank())?;
    let halves = split(x, 2, axis)?;
    multiply(&halves[0], &sigmoid(&halves[1])?)
}

/// 1 above the threshold and 0 elsewhere.
///
/// # Dtypes
/// Gives `int32`, as MLX does.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1.0f32, 2.0], [2])?;
/// assert_eq!(ops::step(&x, 0.0)?.to_vec::<i32>()?, [0, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn step(x: &Array, threshold: f64) -> Result<Array> {
    where_(&greater(x, threshold)?, 1, 0)
}

/// min(max(x, −1), 1).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-2.0f32, 0.5], [2])?;
/// assert_eq!(ops::hard_tanh(&x)?.to_vec::<f32>()?, [-1.0, 0.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn hard_tanh(x: &Array) -> Result<Array> {
    clip(x, -1, 1)
}

/// x − tanh(x).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// assert_eq!(ops::tanh_shrink(&Array::scalar(0.0f32))?.item::<f32>()?, 0.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn tanh_shrink(x: &Array) -> Result<Array> {
    widened(x, |x| subtract(x, &tanh(x)?))
}

/// x where |x| is above lambda, and 0 elsewhere.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-2.0f32, 0.25], [2])?;
/// assert_eq!(ops::hard_shrink(&x, 0.5)?.to_vec::<f32>()?, [-2.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn hard_shrink(x: &Array, lambda: f64) -> Result<Array> {
    where_(&greater(&abs(x)?, lambda)?, x, 0)
}

/// x moved by lambda towards 0, and 0 where |x| is not above lambda.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-2.0f32, 0.25], [2])?;
/// assert_eq!(ops::softshrink(&x, 0.5)?.to_vec::<f32>()?, [-1.5, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn softshrink(x: &Array, lambda: f64) -> Result<Array> {
    let moved = subtract(x, &multiply(&super::sign(x)?, lambda)?)?;
    where_(&greater(&abs(x)?, lambda)?, &moved, 0)
}

/// [`softmax`] of −x: the weight of small elements.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 1.0], [2])?;
/// assert_eq!(ops::softmin(&x, -1)?.to_vec::<f32>()?, [0.5, 0.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn softmin(x: &Array, axis: isize) -> Result<Array> {
    softmax(&negative(&inexact(x)?)?, axis)
}
