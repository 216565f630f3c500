//! Curves through points: their areas, values between them, polynomials, and points on scales.

use super::complex::of_parts;
use super::create::iota;
use super::operand::{Operand, broadcast, cast, common_dtype, constant_like, expect_real};
use super::{
    add, argsort, clip, concatenate, divide, equal, greater, imag, less, multiply, power, real,
    remainder, searchsorted, subtract, sum, take, where_,
};
use crate::array::Array;
use crate::device::{Device, Stream, with_stream};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::Side;
use crate::prim::record::slice_axis;
use crate::shape::{Shape, normalize_axis};

/// The area under the points of an axis by the trapezoidal rule. They are `dx` apart, or at the places `x`.
///
/// # Shapes
/// The axis goes; `x` is a vector along it, or broadcasts to `y`.
///
/// # Dtypes
/// The arrays promote; integers and bool are taken as `float32`; half types are summed in `float32`.
///
/// # Errors
/// Where there is no such axis, or `x` does not fit.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let y = Array::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
/// assert_eq!(ops::trapezoid(&y, None, 0.5, -1)?.item::<f32>()?, 2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn trapezoid(y: &Array, x: Option<&Array>, dx: f64, axis: isize) -> Result<Array> {
    let op = "trapezoid";
    let axis = normalize_axis(op, axis, y.rank())?;
    let dtype = x.map_or(y.dtype(), |x| x.dtype().promote(y.dtype())).to_inexact();
    let wide = dtype.accumulator();
    let y = cast(y, wide)?;
    let size = y.shape()[axis];
    let steps = size.saturating_sub(1);
    // All but the last and all but the first along an axis.
    let ends = |x: &Array, axis: usize| -> Result<(Array, Array)> {
        Ok((slice_axis(x, axis, 0, steps)?, slice_axis(x, axis, size - steps, steps)?))
    };
    let (low, high) = ends(&y, axis)?;
    let means = multiply(&add(&low, &high)?, 0.5)?;
    let widths = match x {
        None => return cast(&multiply(&sum(&means, axis, false)?, dx)?, dtype),
        Some(x) if x.rank() == 1 => {
            if x.size() != size {
                return Err(Error::shape(op, format!("places {} for {}", x.aval(), y.aval())));
            }
            let (low, high) = ends(&cast(x, wide)?, 0)?;
            super::expand_axes(&subtract(&high, &low)?, (1..y.rank() - axis).collect())?
        }
        Some(x) => {
            let (low, high) = ends(&broadcast(&cast(x, wide)?, y.shape())?, axis)?;
            subtract(&high, &low)?
        }
    };
    cast(&sum(&multiply(&means, &widths)?, axis, false)?, dtype)
}

/// The value at `x` of the polynomial with these coefficients, highest power first, by Horner's rule.
///
/// # Shapes
/// The coefficients are a vector; the result has the shape of `x`.
///
/// # Dtypes
/// Both promote; half types are computed in `float32`; integers wrap.
///
/// # Errors
/// Where the coefficients are not a vector.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let p = Array::from_slice(&[1.0f32, -3.0, 2.0], [3])?;
/// let x = Array::from_slice(&[0.0f32, 1.0, 4.0], [3])?;
/// assert_eq!(ops::polyval(&p, &x)?.to_vec::<f32>()?, [2.0, 0.0, 6.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn polyval<'a>(p: &Array, x: impl Into<Operand<'a>>) -> Result<Array> {
    let x = x.into();
    if p.rank() != 1 {
        let detail = format!("takes a vector of coefficients, not {}", p.aval());
        return Err(Error::shape("polyval", detail));
    }
    let own = match common_dtype(&[p.into(), x]) {
        DType::Bool => DType::I32,
        dtype => dtype,
    };
    let shape = match x {
        Operand::Array(x) => x.shape().clone(),
        Operand::Scalar(_) => Shape::scalar(),
    };
    let (p, x) = (cast(p, own.accumulator())?, x.to(own.accumulator(), &shape)?);
    let mut out = constant_like(&x, 0);
    for (at, coefficient) in super::unstack(&p, 0)?.iter().enumerate() {
        out = match at {
            0 => add(&out, coefficient)?,
            _ => add(&multiply(&out, &x)?, coefficient)?,
        };
    }
    cast(&out, own)
}

/// What [`interp`] gives outside of the points.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outside {
    /// Before the first point; its value where it is `None`.
    pub left: Option<Scalar>,
    /// Behind the last point; its value where it is `None`.
    pub right: Option<Scalar>,
    /// After how far the points come again. There is then no outside, and the points may be in any order.
    pub period: Option<f64>,
}

/// The values at `x` of the straight lines through the points `(xp, fp)`, which are in ascending order; NaN at NaN.
///
/// # Shapes
/// `xp` and `fp` are vectors of one size; the result has the shape of `x`.
///
/// # Dtypes
/// All promote to floats; half types are computed in `float32`. `fp` may be complex, and `x` and `xp` are real.
///
/// # Errors
/// Where there are no points, `xp` and `fp` differ, a period is 0 or no number, for complex `x` and `xp`, and for
/// complex numbers outside of real points.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::Outside};
/// let (xp, fp) = (Array::from_slice(&[0.0f32, 1.0, 3.0], [3])?, Array::from_slice(&[1.0f32, 2.0, 0.0], [3])?);
/// let x = Array::from_slice(&[0.5f32, 2.0, 9.0], [3])?;
/// assert_eq!(ops::interp(&x, &xp, &fp, Outside::default())?.to_vec::<f32>()?, [1.5, 1.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn interp(x: &Array, xp: &Array, fp: &Array, outside: Outside) -> Result<Array> {
    let op = "interp";
    expect_real(op, &[x.into(), xp.into()])?;
    if fp.dtype().is_complex() {
        return complex_interp(x, xp, fp, outside);
    }
    let ends = [outside.left, outside.right].map(|end| end.unwrap_or(Scalar::Int(0)));
    expect_real(op, &ends.map(Operand::Scalar))?;
    if xp.rank() != 1 || xp.shape() != fp.shape() || xp.is_empty() {
        let detail =
            format!("points are two vectors of one size, not {} and {}", xp.aval(), fp.aval());
        return Err(Error::shape(op, detail));
    }
    let own = x.dtype().promote(xp.dtype()).promote(fp.dtype()).to_inexact();
    let hold = |a: &Array| cast(a, own.accumulator());
    let (mut x, mut xp, mut fp) = (hold(x)?, hold(xp)?, hold(fp)?);
    if let Some(period) = outside.period {
        if period == 0.0 || !period.is_finite() {
            return Err(Error::argument(op, format!("{period} is no period")));
        }
        let period = period.abs();
        (x, xp) = (remainder(&x, period)?, remainder(&xp, period)?);
        let order = argsort(&xp, 0)?;
        (xp, fp) = (take(&xp, &order, 0)?, take(&fp, &order, 0)?);
        let count = xp.size();
        let (first, last) = (slice_axis(&xp, 0, 0, 1)?, slice_axis(&xp, 0, count - 1, 1)?);
        xp = concatenate(&[&subtract(&last, period)?, &xp, &add(&first, period)?], 0)?;
        let (first, last) = (slice_axis(&fp, 0, 0, 1)?, slice_axis(&fp, 0, count - 1, 1)?);
        fp = concatenate(&[&last, &fp, &first], 0)?;
    }
    let count = xp.size();
    let upper = clip(&searchsorted(&xp, &x, Side::Right)?, 1, count.max(2) - 1)?;
    let upper = super::minimum(&upper, count - 1)?;
    let lower = subtract(&upper, usize::from(count > 1))?;
    let at = |a: &Array, places: &Array| take(a, places, 0);
    let (low, high) = (at(&xp, &lower)?, at(&xp, &upper)?);
    let (from, to) = (at(&fp, &lower)?, at(&fp, &upper)?);
    let way = subtract(&high, &low)?;
    let alone = equal(&way, 0)?;
    let share = divide(&subtract(&x, &low)?, &where_(&alone, 1, &way)?)?;
    let line = add(&from, &multiply(&share, &subtract(&to, &from)?)?)?;
    // Exactly the points at the points.
    let line = where_(&equal(&x, &low)?, &from, &line)?;
    let line = where_(&alone, &to, &where_(&equal(&x, &high)?, &to, &line)?)?;
    let end = |a: &Array, i: usize| {
        super::squeeze_axes(&slice_axis(a, 0, i, 1)?, crate::shape::Dims::from_slice(&[0]))
    };
    let side = |given: Option<Scalar>, i: usize| match given {
        Some(value) => Ok(constant_like(&x, value)),
        None => broadcast(&end(&fp, i)?, x.shape()),
    };
    let below = less(&x, &end(&xp, 0)?)?;
    let above = greater(&x, &end(&xp, count - 1)?)?;
    let line = where_(&below, &side(outside.left, 0)?, &line)?;
    let line = where_(&above, &side(outside.right, count - 1)?, &line)?;
    cast(&where_(&super::isnan(&x)?, &x, &line)?, own)
}

/// [`interp`] of the two parts of complex points; of NaN the imaginary part is 0.
fn complex_interp(x: &Array, xp: &Array, fp: &Array, outside: Outside) -> Result<Array> {
    let own = x.dtype().promote(xp.dtype()).promote(fp.dtype());
    let of = |fp: &Array, part: fn(Scalar) -> Scalar| {
        interp(
            x,
            xp,
            fp,
            Outside {
                left: outside.left.map(part),
                right: outside.right.map(part),
                period: outside.period,
            },
        )
    };
    let re = of(&real(fp)?, |end| match end {
        Scalar::Complex(re, _) => Scalar::Float(re.into()),
        Scalar::Bool(_) | Scalar::Int(_) | Scalar::Uint(_) | Scalar::Float(_) => end,
    })?;
    let im = of(&imag(fp)?, |end| match end {
        Scalar::Complex(_, im) => Scalar::Float(im.into()),
        Scalar::Bool(_) | Scalar::Int(_) | Scalar::Uint(_) | Scalar::Float(_) => Scalar::Int(0),
    })?;
    let im = where_(&super::isnan(x)?, &constant_like(&im, 0), &im)?;
    cast(&of_parts(&re, &im)?, own)
}

/// `first`, `count` − 2 numbers that `at` gives for 1, 2 and so on, and `last`. They are computed in `float64`, and so on the
/// CPU.
fn on_scale(
    op: &'static str,
    [first, last]: [f64; 2],
    count: usize,
    dtype: DType,
    at: impl FnOnce(&Array) -> Result<Array>,
) -> Result<Array> {
    if !dtype.is_float() && !dtype.is_integer() {
        return Err(Error::dtype(op, format!("does not give {dtype}")));
    }
    Shape::from(count).checked_size(op, DType::F64)?;
    let narrow = |wide: &Array| match dtype.is_integer() && dtype != DType::U64 {
        true => cast(&cast(wide, DType::I64)?, dtype),
        false => cast(wide, dtype),
    };
    let end = |number: f64| narrow(&Array::from_slice(&[number], [1])?);
    let parts = with_stream(Stream::of(Device::CPU), || -> Result<_> {
        Ok(match count {
            0 => vec![narrow(&super::zeros(0, DType::F64)?)?],
            1 => vec![end(first)?],
            _ => {
                let places = add(&iota(count - 2, 0, DType::F64)?, 1)?;
                vec![end(first)?, narrow(&at(&places)?)?, end(last)?]
            }
        })
    })?;
    concatenate(&parts.iter().collect::<Vec<_>>(), 0)
}

/// `count` numbers from base^start to base^stop, both included, whose logarithms are evenly spaced. They are computed
/// in `float64`, on the CPU. Ends may be complex, which gives points of a spiral.
///
/// # Errors
/// Where the dtype is bool, or the ends are complex and the dtype is not.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::logspace(0.0, 2.0, 3, 10.0, DType::F32)?.to_vec::<f32>()?, [1.0, 10.0, 100.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn logspace(
    start: impl Into<Scalar>,
    stop: impl Into<Scalar>,
    count: usize,
    base: f64,
    dtype: DType,
) -> Result<Array> {
    let ends = [start.into(), stop.into()];
    if dtype.is_complex() {
        return complex_logspace(ends, count, base, dtype);
    }
    expect_real("logspace", &ends.map(Operand::Scalar))?;
    let [start, stop] = ends.map(Scalar::to_f64);
    let ends = [base.powf(start), base.powf(stop)];
    let step = (stop - start) / (count as f64 - 1.0);
    on_scale("logspace", ends, count, dtype, |places| {
        power(base, &add(start, &multiply(places, step)?)?)
    })
}

/// [`logspace`] in a complex dtype: e^(z·ln base), from the size and the angle of each number.
fn complex_logspace(ends: [Scalar; 2], count: usize, base: f64, dtype: DType) -> Result<Array> {
    let op = "logspace";
    let parts = |end: Scalar| match end {
        Scalar::Complex(re, im) => (f64::from(re), f64::from(im)),
        Scalar::Bool(_) | Scalar::Int(_) | Scalar::Uint(_) | Scalar::Float(_) => {
            (end.to_f64(), 0.0)
        }
    };
    let [from, to] = ends.map(parts);
    if from.1 == 0.0 && to.1 == 0.0 {
        return cast(&logspace(from.0, to.0, count, base, DType::F64)?, dtype);
    }
    // The logarithm of a negative base has the angle π.
    let (size, angle) = (base.abs().ln(), if base < 0.0 { std::f64::consts::PI } else { 0.0 });
    let log = |(re, im): (f64, f64)| [re * size - im * angle, re * angle + im * size];
    let ([a, b], [c, d]) = (log(from), log(to));
    Shape::from(count).checked_size(op, dtype)?;
    let parts = with_stream(Stream::of(Device::CPU), || -> Result<_> {
        let share = divide(&iota(count, 0, DType::F64)?, (count as f64 - 1.0).max(1.0))?;
        let along = |first: f64, last: f64| add(first, &multiply(&share, last - first)?);
        let (size, angle) = (super::exp(&along(a, c)?)?, along(b, d)?);
        let part = |turn: Array| cast(&multiply(&size, &turn)?, DType::F32);
        Ok([part(super::cos(&angle)?)?, part(super::sin(&angle)?)?])
    })?;
    cast(&of_parts(&parts[0], &parts[1])?, dtype)
}

/// `count` numbers from `start` to `stop`, both included, each the same multiple of the one before. They are computed
/// in `float64`, on the CPU.
///
/// # Errors
/// Where an end is 0 or they differ in sign, and where `dtype` is neither an integer nor a float.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// assert_eq!(ops::geomspace(1.0, 8.0, 4, DType::F32)?.to_vec::<f32>()?, [1.0, 2.0, 4.0, 8.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn geomspace(start: f64, stop: f64, count: usize, dtype: DType) -> Result<Array> {
    let op = "geomspace";
    if start == 0.0 || stop == 0.0 || (start < 0.0) != (stop < 0.0) {
        let detail = format!("no multiples lead from {start} to {stop}");
        return Err(Error::argument(op, detail));
    }
    let (low, high) = (start.abs().log10(), stop.abs().log10());
    let step = (high - low) / (count as f64 - 1.0);
    on_scale(op, [start, stop], count, dtype, |places| {
        let sizes = power(10.0, &add(low, &multiply(places, step)?)?)?;
        multiply(&sizes, start.signum())
    })
}
