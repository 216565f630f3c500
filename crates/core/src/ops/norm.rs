//! Lengths, and arrays brought to a common scale.

use smallvec::SmallVec;

use super::operand::{Axes, cast, inexact};
use super::{
    add, divide, flatten, mean, multiply, permute, reshape, rsqrt, sqrt, square, subtract, sum, var,
};
use crate::array::Array;
use crate::autocast;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::prim::BatchNorm;
use crate::prim::call::as_one::as_one;
use crate::shape::{Aval, Dims, Shape};

/// The Euclidean length over `axes`: √Σ|x|².
///
/// # Dtypes
/// Integers and bool are taken as `float32`; half types accumulate in `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3.0f32, 4.0], [2])?;
/// assert_eq!(ops::norm(&x, (), false)?.item::<f32>()?, 5.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn norm(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    autocast::apply("norm", [x], |[x]| {
        let x = inexact(x)?;
        let size = if x.dtype().is_complex() { super::abs(&x)? } else { x };
        let wide = cast(&size, size.dtype().accumulator())?;
        let total = sum(&square(&wide)?, axes, keepdims)?;
        // The root of 0 has no derivative: that of a norm is 0 there.
        let is_zero = super::equal(&total, 0)?;
        let root = super::where_(&is_zero, 0, &sqrt(&super::where_(&is_zero, 1, &total)?)?)?;
        cast(&root, size.dtype())
    })
}

/// Checks that a weight or bias fits the last axis.
fn expect_fit(op: &'static str, what: &str, x: &Array, vector: Option<&Array>) -> Result<()> {
    let Some(vector) = vector else {
        return Ok(());
    };
    if vector.rank() == 1 && vector.aval().shape.last() == x.aval().shape.last() {
        return Ok(());
    }
    Err(Error::shape(
        op,
        format!("{what} {} is not a vector of the last axis of {}", vector.aval(), x.aval()),
    ))
}

/// `x` with mean 0 and variance 1 along its last axis, times `weight`, plus `bias`.
///
/// # Dtypes
/// Computed in `float32` for half types; the result has x's dtype.
///
/// # Errors
/// Where `x` has no axes, or `weight` or `bias` is not a vector of its last one.
///
/// J. L. Ba, J. R. Kiros, G. E. Hinton, *Layer normalization*, 2016.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 3.0], [1, 2])?;
/// assert_eq!(ops::layer_norm(&x, None, None, 0.0)?.to_vec::<f32>()?, [-1.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn layer_norm(
    x: &Array,
    weight: Option<&Array>,
    bias: Option<&Array>,
    eps: f64,
) -> Result<Array> {
    autocast::apply_norm("layer_norm", x, |x| {
        expect_fit("layer_norm", "weight", x, weight)?;
        expect_fit("layer_norm", "bias", x, bias)?;
        normalized("layer_norm", [Some(&inexact(x)?), weight, bias], eps, |wide| {
            let centred = subtract(wide, &mean(wide, -1, true)?)?;
            let variance = mean(&square(&centred)?, -1, true)?;
            multiply(&centred, &rsqrt(&add(&variance, eps)?)?)
        })
    })
}

/// `x` over its root mean square along its last axis, times `weight`.
///
/// # Dtypes
/// As [`layer_norm`].
///
/// # Errors
/// As [`layer_norm`].
///
/// B. Zhang, R. Sennrich, *Root mean square layer normalization*, NeurIPS 2019.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3.0f32, -3.0], [1, 2])?;
/// assert_eq!(ops::rms_norm(&x, None, 0.0)?.to_vec::<f32>()?, [1.0, -1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn rms_norm(x: &Array, weight: Option<&Array>, eps: f64) -> Result<Array> {
    autocast::apply_norm("rms_norm", x, |x| {
        expect_fit("rms_norm", "weight", x, weight)?;
        normalized("rms_norm", [Some(&inexact(x)?), weight, None], eps, |wide| {
            multiply(wide, &rsqrt(&add(&mean(&square(wide)?, -1, true)?, eps)?)?)
        })
    })
}

/// What `normal` makes of x in the dtype of its sums, times the weight, plus the bias, in x's dtype.
fn normalized(
    name: &'static str,
    given: [Option<&Array>; 3],
    eps: f64,
    normal: impl FnOnce(&Array) -> Result<Array>,
) -> Result<Array> {
    let [_, weight, bias] = given.map(|array| array.is_some());
    let inputs: SmallVec<[&Array; 3]> = given.into_iter().flatten().collect();
    as_one(name, &[eps.to_bits(), weight.into(), bias.into()], &inputs, |given| {
        let x = &given[0];
        let scaled = normal(&cast(x, x.dtype().accumulator())?)?;
        let weight = given.get(1).filter(|_| weight);
        let bias = given.last().filter(|_| bias);
        affine(&scaled, weight, bias, x.dtype())
    })
}

/// `x·weight + bias` in x's dtype, as `dtype`.
fn affine(x: &Array, weight: Option<&Array>, bias: Option<&Array>, dtype: DType) -> Result<Array> {
    let mut out = x.clone();
    if let Some(weight) = weight {
        out = multiply(&out, &cast(weight, out.dtype())?)?;
    }
    if let Some(bias) = bias {
        out = add(&out, &cast(bias, out.dtype())?)?;
    }
    cast(&out, dtype)
}

/// Which channels make a group of [`group_norm`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Groups {
    /// So many groups of channels that stand beside each other, as in PyTorch.
    Beside(usize),
    /// So many groups of every so-many-th channel, as in MLX's layer.
    Every(usize),
}

impl From<usize> for Groups {
    fn from(count: usize) -> Self {
        Groups::Beside(count)
    }
}

/// `x` with mean 0 and variance 1 in each group of channels of each example over the spatial axes, times `weight`, plus
/// `bias`. One group is a layer norm over all of an example, as many as channels are an instance norm.
///
/// Y. Wu, K. He, *Group normalization*, ECCV 2018.
///
/// # Shapes
/// `[N, .., C]` gives the same; `weight` and `bias` are `[C]`.
///
/// # Dtypes
/// Integers and bool are taken as `float32`; half types are computed in `float32`; the result has x's dtype.
///
/// # Errors
/// Where `x` has fewer than two axes, its channels are not so many groups of as many, or `weight` or `bias` is not a vector
/// of the channels.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 3.0, 10.0, 30.0], [1, 4])?;
/// let y = ops::group_norm(&x, 2, None, None, 0.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn group_norm(
    x: &Array,
    groups: impl Into<Groups>,
    weight: Option<&Array>,
    bias: Option<&Array>,
    eps: f64,
) -> Result<Array> {
    let op = "group_norm";
    let groups = groups.into();
    let (Groups::Beside(count) | Groups::Every(count)) = groups;
    let [batch, .., channels] = x.shape()[..] else {
        return Err(Error::shape(op, format!("input {} is not [N, .., C]", x.aval())));
    };
    if count == 0 || !channels.is_multiple_of(count) {
        let detail = format!("the channels of {} are not {count} groups of as many", x.aval());
        return Err(Error::shape(op, detail));
    }
    expect_fit(op, "weight", x, weight)?;
    expect_fit(op, "bias", x, bias)?;
    autocast::apply_norm(op, x, |x| {
        let x = inexact(x)?;
        let places: usize = x.shape()[1..x.rank() - 1].iter().product();
        let inner = channels / count;
        // Each group becomes a row, for the norm of the last axis.
        let (apart, order, back) = match groups {
            Groups::Beside(_) => ([batch, places, count, inner], [0, 2, 1, 3], [0, 2, 1, 3]),
            Groups::Every(_) => ([batch, places, inner, count], [0, 3, 1, 2], [0, 2, 3, 1]),
        };
        let wide = cast(&x, x.dtype().accumulator())?;
        let rows = flatten(&permute(&reshape(&wide, apart)?, Dims::from_slice(&order))?, 2, 3)?;
        let rows = layer_norm(&rows, None, None, eps)?;
        let turned = reshape(&rows, [batch, count, places, inner])?;
        let normal = reshape(&permute(&turned, Dims::from_slice(&back))?, x.shape().clone())?;
        affine(&normal, weight, bias, x.dtype())
    })
}

/// The channels of `x`, its last axis, with mean 0 and variance 1 over all other axes, times `weight`, plus
/// `bias`; and the mean and the variance of each channel.
///
/// # Dtypes
/// Computed in `float32` for half types; the first result has x's dtype, the others are `float32`, or
/// `float64` for such an `x`. The mean of complex numbers is complex, and their variance the real mean of squared
/// distances.
///
/// # Errors
/// Where `x` is no array of floats or complex numbers with axes, or `weight` or `bias` is not a vector of its last one.
///
/// S. Ioffe, C. Szegedy, *Batch normalization*, 2015.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 5.0, 3.0, 5.0], [2, 2])?;
/// let all = ops::batch_norm(&x, None, None, 0.1)?;
/// assert_eq!(all[1].to_vec::<f32>()?, [2.0, 5.0]);
/// assert_eq!(all[2].to_vec::<f32>()?, [1.0, 0.0]);
/// assert_eq!(all[0].to_vec::<f32>()?[1], 0.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn batch_norm(
    x: &Array,
    weight: Option<&Array>,
    bias: Option<&Array>,
    eps: f64,
) -> Result<Vec<Array>> {
    autocast::apply("batch_norm", [x], |[x]| {
        let op = "batch_norm";
        let Some(&channels) = x.aval().shape.last().filter(|_| x.dtype().is_inexact()) else {
            let detail = format!("takes floats or complex numbers [.., C], not {}", x.aval());
            return Err(Error::shape(op, detail));
        };
        expect_fit(op, "weight", x, weight)?;
        expect_fit(op, "bias", x, bias)?;
        if x.dtype().is_complex() {
            return complex_batch_norm(x, weight, bias, eps);
        }
        let wide = x.dtype().accumulator();
        let vector = |given: Option<&Array>, otherwise: f64| match given {
            Some(given) => cast(given, wide),
            None => Ok(Array::constant(otherwise, Aval::new(Shape::from(channels), wide))),
        };
        let composite = BatchNorm { eps: Scalar::Float(eps) };
        Array::apply_multi(composite, &[x, &vector(weight, 1.0)?, &vector(bias, 0.0)?])
    })
}

/// [`batch_norm`] of complex numbers, step by step.
fn complex_batch_norm(
    x: &Array,
    weight: Option<&Array>,
    bias: Option<&Array>,
    eps: f64,
) -> Result<Vec<Array>> {
    let wide = cast(x, x.dtype().accumulator())?;
    let axes: Vec<isize> = (0..x.rank() as isize - 1).collect();
    let (mean, variance) = (mean(&wide, axes.clone(), false)?, var(&wide, axes, false, 0)?);
    let normal = multiply(&subtract(&wide, &mean)?, &rsqrt(&add(&variance, eps)?)?)?;
    Ok(vec![affine(&normal, weight, bias, x.dtype())?, mean, variance])
}

/// `x` over its Euclidean length along `axes`, which is taken as at least `eps`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3.0f32, 4.0], [2])?;
/// assert_eq!(ops::normalize(&x, -1, 1e-12)?.to_vec::<f32>()?, [0.6, 0.8]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn normalize(x: &Array, axes: impl Into<Axes>, eps: f64) -> Result<Array> {
    autocast::apply_norm("normalize", x, |x| {
        divide(x, &super::maximum(&norm(x, axes, true)?, eps)?)
    })
}
