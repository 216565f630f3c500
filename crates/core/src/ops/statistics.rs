//! Statistics that look past NaN, quantiles, histograms, covariances, distances.

use super::operand::{Axes, cast, expect_real, inexact, wide};
use super::reduce::reduce;
use super::{
    abs, add, all, astype, clip, conjugate, divide, equal, expand_axes, flatten, full, greater,
    greater_equal, imag, isnan, left_shift, less, linspace, logical_and, logical_not, logical_or,
    matmul, max, maximum, min, minimum, multiply, not_equal, permute, power, real, right_shift,
    searchsorted, sort, sqrt, square, squeeze_axes, stack, subtract, sum, swapaxes,
    take_along_axis, where_,
};
use crate::array::Array;
use crate::dtype::{DType, Kind, Scalar};
use crate::error::{Error, Result};
use crate::ops::Side;
use crate::prim::ReduceKind;
use crate::prim::record::{add_along, slice_axis};
use crate::shape::{Aval, Dims, Shape};

/// The sum over `axes` of what is not NaN; 0 for nothing.
///
/// # Dtypes
/// As [`sum`](super::sum).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, f32::NAN, 3.0], [3])?;
/// assert_eq!(ops::nansum(&x, (), false)?.item::<f32>()?, 4.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn nansum(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    if !x.dtype().is_inexact() {
        return sum(x, axes, keepdims);
    }
    sum(&where_(&isnan(x)?, 0, x)?, axes, keepdims)
}

/// The mean over `axes` of what is not NaN; NaN where there is nothing else.
///
/// # Dtypes
/// As [`mean`](super::mean).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, f32::NAN, 3.0], [3])?;
/// assert_eq!(ops::nanmean(&x, (), false)?.item::<f32>()?, 2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn nanmean(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    let axes = axes.into();
    if !x.dtype().is_inexact() {
        return super::mean(x, axes, keepdims);
    }
    let total = nansum(&wide(x)?, axes.clone(), keepdims)?;
    let there = cast(&logical_not(&isnan(x)?)?, DType::I32)?;
    let count = cast(&sum(&there, axes, keepdims)?, total.dtype())?;
    cast(&divide(&total, &count)?, x.dtype())
}

/// The largest element over `axes` that is not NaN; NaN where there is nothing else.
///
/// # Errors
/// As [`max`](super::max).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, f32::NAN, 3.0], [3])?;
/// assert_eq!(ops::nanmax(&x, (), false)?.item::<f32>()?, 3.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn nanmax(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    extreme(x, axes.into(), keepdims, f64::NEG_INFINITY, |x, axes| max(x, axes, keepdims))
}

/// The smallest element over `axes` that is not NaN; NaN where there is nothing else.
///
/// # Errors
/// As [`max`](super::max).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, f32::NAN, 3.0], [3])?;
/// assert_eq!(ops::nanmin(&x, (), false)?.item::<f32>()?, 1.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn nanmin(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    extreme(x, axes.into(), keepdims, f64::INFINITY, |x, axes| min(x, axes, keepdims))
}

fn extreme(
    x: &Array,
    axes: Axes,
    keepdims: bool,
    least: f64,
    f: impl Fn(&Array, Axes) -> Result<Array>,
) -> Result<Array> {
    let least = match x.dtype().kind() {
        Kind::Float => Scalar::Float(least),
        Kind::Complex => Scalar::Complex(least as f32, least as f32),
        _ => return f(x, axes),
    };
    let missing = isnan(x)?;
    let found = f(&where_(&missing, least, x)?, axes.clone())?;
    where_(&all(&missing, axes, keepdims)?, f64::NAN, &found)
}

/// Which number a quantile between two elements is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Between {
    /// On the line between them.
    #[default]
    Linear,
    /// The smaller.
    Lower,
    /// The larger.
    Higher,
    /// In the middle.
    Midpoint,
    /// The nearer one; from the middle the one at an even place.
    Nearest,
}

impl Between {
    /// The share of the larger element at `share` of the way from place `low` on.
    fn of(self, low: f64, share: f64) -> f64 {
        match self {
            Between::Linear => share,
            Between::Lower => 0.0,
            Between::Higher => f64::from(u8::from(share > 0.0)),
            Between::Midpoint if share > 0.0 => 0.5,
            Between::Midpoint => 0.0,
            Between::Nearest => (low + share).round_ties_even() - low,
        }
    }
}

/// Elements whose quantiles are taken: the axes folded together as the last one.
struct Sample {
    elements: Array,
    /// In order, in the dtype to compute in; NaN last.
    ordered: Array,
    axes: Dims,
    keepdims: bool,
}

impl Sample {
    fn new(op: &'static str, x: &Array, q: &[f64], axes: Axes, keepdims: bool) -> Result<Self> {
        if let Some(q) = q.iter().find(|q| !(0.0..=1.0).contains(*q)) {
            return Err(Error::argument(op, format!("{q} is not within [0, 1]")));
        }
        if x.dtype().kind() == Kind::Complex {
            return Err(Error::dtype(op, format!("complex numbers have no order ({})", x.aval())));
        }
        let axes = axes.sorted(op, x.rank())?;
        let size: usize = axes.iter().map(|&a| x.shape()[a]).product();
        if size == 0 {
            let detail = format!("has no value for the empty axes of {}", x.aval());
            return Err(Error::shape(op, detail));
        }
        let kept = (0..x.rank()).filter(|a| !axes.contains(a));
        let order = kept.chain(axes.iter().copied()).collect();
        let last = inexact(&permute(x, order)?)?;
        let rank = x.rank() - axes.len();
        let elements = match axes.is_empty() {
            true => expand_axes(&last, Dims::from_slice(&[rank]))?,
            false => flatten(&last, rank as isize, -1)?,
        };
        let ordered = cast(&sort(&elements, rank)?, elements.dtype().accumulator())?;
        Ok(Sample { elements, ordered, axes, keepdims })
    }

    /// The axis of the elements.
    fn axis(&self) -> usize {
        self.elements.rank() - 1
    }

    /// What `one` finds for each share, along a new first axis.
    fn each(&self, q: &[f64], one: impl Fn(f64) -> Result<Array>) -> Result<Array> {
        let dtype = self.elements.dtype();
        let placed = |found: Array| match self.keepdims {
            true => expand_axes(&found, self.axes.clone()),
            false => Ok(found),
        };
        if q.is_empty() {
            let kept = Shape::from(&self.elements.shape()[..self.axis()]);
            let kept = placed(full(kept, 0, dtype)?)?;
            return full([&[0], &kept.shape()[..]].concat(), 0, dtype);
        }
        let found: Vec<Array> =
            q.iter().map(|&q| placed(cast(&one(q)?, dtype)?)).collect::<Result<_>>()?;
        stack(&found.iter().collect::<Vec<_>>(), 0)
    }
}

/// `low` + `share`·(`high` − `low`), exact at both ends and where both are equal; infinite where one of them is.
fn between(low: &Array, high: &Array, share: &Array) -> Result<Array> {
    let way = subtract(high, low)?;
    let from_low = add(low, &multiply(&way, share)?)?;
    let from_high = subtract(high, &multiply(&way, &subtract(1, share)?)?)?;
    let is_low = logical_or(&less(share, 0.5)?, &equal(high, f64::INFINITY)?)?;
    let is_low = logical_and(&is_low, &not_equal(low, f64::NEG_INFINITY)?)?;
    let out = where_(&is_low, &from_low, &from_high)?;
    let still = logical_or(&equal(low, high)?, &equal(share, 0)?)?;
    where_(&still, low, &out)
}

/// The quantiles of the elements over `axes`, at the shares in `q`: 0 is the smallest element, ½ the median, 1 the
/// largest. NaN if there is a NaN.
///
/// # Shapes
/// One quantile for each of `q` along a new first axis; the folded axes go, or stay with size 1 where `keepdims` is
/// true.
///
/// # Dtypes
/// Integers and bool are taken as `float32`; half types are computed in `float32`.
///
/// # Errors
/// Where a share is not within [0, 1], an axis is empty, and for complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::Between};
/// let x = Array::from_slice(&[3.0f32, 1.0, 4.0, 2.0], [4])?;
/// let y = ops::quantile(&x, &[0.0, 0.5], (), false, Between::Linear)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn quantile(
    x: &Array,
    q: &[f64],
    axes: impl Into<Axes>,
    keepdims: bool,
    method: Between,
) -> Result<Array> {
    let sample = Sample::new("quantile", x, q, axes.into(), keepdims)?;
    let (ordered, axis) = (&sample.ordered, sample.axis());
    let size = ordered.shape()[axis];
    let at = |i: usize| squeeze_axes(&slice_axis(ordered, axis, i, 1)?, Dims::from_slice(&[axis]));
    // NaN sorts last.
    let end = at(size - 1)?;
    sample.each(q, |q| {
        let place = q * (size - 1) as f64;
        let low = place.floor();
        let share = method.of(low, place - low);
        let (low, high) = (at(low as usize)?, at(place.ceil() as usize)?);
        let share = Array::constant(share, low.aval().clone());
        where_(&isnan(&end)?, f64::NAN, &between(&low, &high, &share)?)
    })
}

/// Bits of the part of a place behind the point.
const FRACTION: u32 = 62;

/// The integer part of `steps`·q for 0 ≤ q ≤ 1, and the rest in units of 2^−[`FRACTION`], rounded as the product in
/// `float64` is, which devices without that cannot take: `steps` is below 2^`bits`, and that is at most 2³¹.
fn place_of(steps: &Array, q: f64, bits: u32) -> Result<(Array, Array)> {
    // q in the same units, its upper and its lower half.
    let scaled = (q * 2f64.powi(FRACTION as i32)) as i64;
    let (upper, lower) = (scaled >> 31, scaled & ((1 << 31) - 1));
    let [upper, lower] = [multiply(steps, upper)?, multiply(steps, lower)?];
    let whole = add(&upper, &right_shift(&lower, 31)?)?;
    let below = |x: &Array, bits: u32| {
        subtract(x, &multiply(&right_shift(x, i64::from(bits))?, 1i64 << bits)?)
    };
    let low = right_shift(&whole, 31)?;
    let rest = add(&multiply(&below(&whole, 31)?, 1i64 << 31)?, &below(&lower, 31)?)?;
    // A product has 53 digits: those of its integer part are not there for the rest.
    let mut digits = cast(&greater_equal(&low, 1)?, DType::I64)?;
    for bit in 1..bits {
        digits = add(&digits, &cast(&greater_equal(&low, 1i64 << bit)?, DType::I64)?)?;
    }
    let lost = add(&digits, i64::from(FRACTION - 53))?;
    // Below ½ the rest has more.
    let is_near = logical_or(&greater(&low, 0)?, &greater_equal(&rest, 1i64 << (FRACTION - 1))?)?;
    let lost = where_(&is_near, &lost, 1)?;
    let half = left_shift(1, &subtract(&lost, 1)?)?;
    let rounded = left_shift(&right_shift(&add(&rest, &half)?, &lost)?, &lost)?;
    let carry = right_shift(&rounded, i64::from(FRACTION))?;
    Ok((add(&low, &carry)?, below(&rounded, FRACTION)?))
}

/// [`quantile`] of what is not NaN; NaN where there is nothing else.
///
/// # Errors
/// As [`quantile`].
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::Between};
/// let x = Array::from_slice(&[3.0f32, f32::NAN, 4.0], [3])?;
/// assert_eq!(ops::nanquantile(&x, &[0.5], (), false, Between::Linear)?.to_vec::<f32>()?, [3.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn nanquantile(
    x: &Array,
    q: &[f64],
    axes: impl Into<Axes>,
    keepdims: bool,
    method: Between,
) -> Result<Array> {
    let (op, axes) = ("nanquantile", axes.into());
    let mut shape = x.shape().clone();
    let along = axes.clone().sorted(op, x.rank())?;
    if along.iter().any(|&a| shape[a] == 0) {
        // Of nothing there is no value: as of one NaN.
        along.iter().for_each(|&a| shape.0[a] = 1);
        let nothing = full(shape, f64::NAN, x.dtype().to_inexact())?;
        return nanquantile(&nothing, q, axes, keepdims, method);
    }
    let sample = Sample::new(op, x, q, axes, keepdims)?;
    let (ordered, axis) = (&sample.ordered, sample.axis());
    if ordered.shape()[axis] > i32::MAX as usize {
        return Err(Error::shape(op, format!("takes less than 2³¹ elements, not {}", x.aval())));
    }
    let there = cast(&logical_not(&isnan(&sample.elements)?)?, DType::I64)?;
    let count = sum(&there, axis, true)?;
    let none = equal(&count, 0)?;
    let steps = maximum(&subtract(&count, 1)?, 0)?;
    let bits = usize::BITS - (ordered.shape()[axis] - 1).leading_zeros();
    sample.each(q, |q| {
        let (low, rest) = place_of(&steps, q, bits)?;
        let share = multiply(&cast(&rest, ordered.dtype())?, 2f64.powi(-(FRACTION as i32)))?;
        let share = match method {
            Between::Linear => share,
            Between::Lower => multiply(&share, 0)?,
            Between::Higher => cast(&not_equal(&rest, 0)?, ordered.dtype())?,
            Between::Midpoint => multiply(&cast(&not_equal(&rest, 0)?, ordered.dtype())?, 0.5)?,
            Between::Nearest => {
                let half = 1i64 << (FRACTION - 1);
                let odd = equal(&super::remainder(&low, 2)?, 1)?;
                let tie = logical_and(&equal(&rest, half)?, &odd)?;
                let above = logical_or(&greater(&rest, half)?, &tie)?;
                cast(&above, ordered.dtype())?
            }
        };
        let high = minimum(&add(&low, 1)?, &steps)?;
        let at = |places: &Array| take_along_axis(ordered, places, axis as isize);
        let found = between(&at(&low)?, &at(&high)?, &share)?;
        squeeze_axes(&where_(&none, f64::NAN, &found)?, Dims::from_slice(&[axis]))
    })
}

/// The median over axes of what is not NaN; NaN where there is nothing else.
///
/// # Dtypes
/// Integers and bool are taken as `float32`.
///
/// # Errors
/// As [`median`](super::median).
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[3.0f32, f32::NAN, 4.0], [3])?;
/// assert_eq!(ops::nanmedian(&x, (), false)?.item::<f32>()?, 3.5);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn nanmedian(x: &Array, axes: impl Into<Axes>, keepdims: bool) -> Result<Array> {
    let found = nanquantile(x, &[0.5], axes, keepdims, Between::Linear)?;
    squeeze_axes(&found, Dims::from_slice(&[0]))
}

/// The bins of a [`histogram`].
#[derive(Clone, Copy, Debug)]
pub enum Bins<'a> {
    /// So many of equal width, between two numbers, or between the smallest and the largest element.
    Count(usize, Option<(f64, f64)>),
    /// Between neighbours in a vector that is sorted.
    Edges(&'a Array),
}

/// How many elements fall into each bin, and the bins' edges. An element at an edge belongs to the bin above it, at
/// the last edge to the last bin; elements outside and NaN belong to none.
///
/// # Shapes
/// The array is flattened; n bins give counts `[n]` and edges `[n + 1]`.
///
/// # Dtypes
/// Edges are floats in the array's dtype, `float32` of integers and bool. Counts are `int32`; with weights, one for
/// each element, the sums of these in their dtype; with `density` floats, which the bins' widths make 1 in all.
///
/// # Errors
/// For complex numbers, no bins, a range whose ends are not finite numbers in order, edges that are not a vector, and
/// weights of another shape.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::Bins};
/// let x = Array::from_slice(&[0.0f32, 1.0, 1.5, 4.0], [4])?;
/// let (counts, edges) = ops::histogram(&x, Bins::Count(2, None), None, false)?;
/// assert_eq!(counts.to_vec::<i32>()?, [3, 1]);
/// assert_eq!(edges.to_vec::<f32>()?, [0.0, 2.0, 4.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn histogram(
    x: &Array,
    bins: Bins<'_>,
    weights: Option<&Array>,
    density: bool,
) -> Result<(Array, Array)> {
    let op = "histogram";
    expect_real(op, &[x.into()])?;
    if let Some(weights) = weights.filter(|w| w.shape() != x.shape()) {
        return Err(Error::shape(op, format!("weights {} for {}", weights.aval(), x.aval())));
    }
    let flat = wide(&flatten(x, 0, -1)?)?;
    let edges = match bins {
        Bins::Count(0, _) => return Err(Error::argument(op, "0 bins hold nothing".to_owned())),
        Bins::Count(_, Some((low, high))) if !(low <= high && (high - low).is_finite()) => {
            return Err(Error::argument(op, format!("{low} to {high} is no range")));
        }
        Bins::Count(count, Some((low, high))) => {
            let (low, high) = if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
            linspace(low, high, count + 1, flat.dtype())?
        }
        Bins::Count(count, None) if flat.is_empty() => linspace(0.0, 1.0, count + 1, flat.dtype())?,
        Bins::Count(count, None) => {
            let (low, high) = (min(&flat, (), true)?, max(&flat, (), true)?);
            let alone = equal(&low, &high)?;
            let low = where_(&alone, &subtract(&low, 0.5)?, &low)?;
            let high = where_(&alone, &add(&high, 0.5)?, &high)?;
            let share = linspace(0.0, 1.0, count + 1, flat.dtype())?;
            add(&multiply(&subtract(1, &share)?, &low)?, &multiply(&share, &high)?)?
        }
        Bins::Edges(edges) if edges.rank() != 1 || edges.is_empty() => {
            return Err(Error::shape(op, format!("{} is no vector of edges", edges.aval())));
        }
        Bins::Edges(edges) => {
            expect_real(op, &[edges.into()])?;
            cast(edges, edges.dtype().promote(flat.dtype()))?
        }
    };
    let edges_dtype = match bins {
        Bins::Edges(given) => given.dtype(),
        Bins::Count(..) => x.dtype().to_inexact(),
    };
    let count = edges.size() - 1;
    // One more bin takes what belongs to none.
    let place = searchsorted(&edges, &flat, Side::Right)?;
    let last = slice_axis(&edges, 0, count, 1)?;
    let place = where_(&equal(&flat, &last)?, count as u32, &place)?;
    let outside = logical_or(&equal(&place, 0)?, &greater(&place, count as u32)?)?;
    let place = where_(&outside, count as u32, &subtract(&place, 1)?)?;
    let (values, own) = match weights {
        Some(weights) => {
            let weights = flatten(weights, 0, -1)?;
            let own = if weights.dtype() == DType::Bool { DType::I32 } else { weights.dtype() };
            (cast(&weights, own.accumulator())?, own)
        }
        None => (full(flat.shape(), 1, DType::I32)?, DType::I32),
    };
    let sums = match flat.is_empty() {
        true => full(count, 0, values.dtype())?,
        false => {
            let sums = add_along(&Aval::new([count + 1], values.dtype()), &values, &place, 0)?;
            slice_axis(&sums, 0, 0, count)?
        }
    };
    let edges = cast(&edges, edges_dtype)?;
    if !density {
        return Ok((cast(&sums, own)?, edges));
    }
    let sums = wide(&sums)?;
    let wide_edges = wide(&edges)?;
    let above = slice_axis(&wide_edges, 0, 1, count)?;
    let widths = subtract(&above, &slice_axis(&wide_edges, 0, 0, count)?)?;
    let total = reduce(ReduceKind::Sum, &sums, Dims::from_slice(&[0]), false)?;
    let out = divide(&divide(&sums, &total)?, &widths)?;
    Ok((cast(&out, own.to_inexact())?, edges))
}

/// The covariances of variables, of which each is a row of observations: the mean product of distances from the
/// means, with `ddof` taken off the count.
///
/// # Shapes
/// `[variables, observations]` gives `[variables, variables]`, a vector of observations a plain number. Weights are
/// vectors of one for each observation: how often it was made (`frequencies`), and how much it counts
/// (`importances`).
///
/// # Dtypes
/// Integers and bool are taken as `float32`; half types are computed in `float32`. Of complex variables the second
/// is conjugated.
///
/// # Errors
/// For more than two axes, a `ddof` that is no integer, `frequencies` that are not integers, and weights of another
/// length.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0.0f32, 1.0, 2.0, 2.0, 1.0, 0.0], [2, 3])?;
/// assert_eq!(ops::cov(&x, 1.0, None, None)?.to_vec::<f32>()?, [1.0, -1.0, -1.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cov(
    x: &Array,
    ddof: f64,
    frequencies: Option<&Array>,
    importances: Option<&Array>,
) -> Result<Array> {
    if ddof.fract() != 0.0 {
        return Err(Error::argument("cov", format!("ddof {ddof} is no integer")));
    }
    if let Some(given) = frequencies.filter(|f| f.dtype().is_inexact()) {
        return Err(Error::dtype("cov", format!("frequencies are integers, not {}", given.aval())));
    }
    let own = x.dtype().to_inexact();
    let rank = x.rank();
    let out = cast(&covariances("cov", x, ddof, frequencies, importances)?, own)?;
    if rank < 2 { squeeze_axes(&out, Dims::from_slice(&[0, 1])) } else { Ok(out) }
}

fn covariances(
    op: &'static str,
    x: &Array,
    ddof: f64,
    frequencies: Option<&Array>,
    importances: Option<&Array>,
) -> Result<Array> {
    let x = match x.rank() {
        0 => expand_axes(x, Dims::from_slice(&[0, 1]))?,
        1 => expand_axes(x, Dims::from_slice(&[0]))?,
        2 => x.clone(),
        _ => return Err(Error::shape(op, format!("takes at most two axes, not {}", x.aval()))),
    };
    let x = wide(&x)?;
    let count = x.shape()[1];
    let mut weight: Option<Array> = None;
    for given in [frequencies, importances].into_iter().flatten() {
        if given.shape()[..] != [count] {
            let detail = format!("weights {} for {count} observations", given.aval());
            return Err(Error::shape(op, detail));
        }
        expect_real(op, &[given.into()])?;
        let given = wide(given)?;
        weight = Some(match weight {
            Some(weight) => multiply(&weight, &given)?,
            None => given,
        });
    }
    let total = |x: &Array| sum(x, -1, true);
    let (mean, weighted, divisor) = match &weight {
        None => {
            let mean = divide(&total(&x)?, count as f64)?;
            let divisor = full([1], (count as f64 - ddof).max(0.0), DType::F32)?;
            (mean, None, divisor)
        }
        Some(weight) => {
            let sums = total(weight)?;
            let mean = divide(&total(&multiply(&x, weight)?)?, &sums)?;
            let own = match importances {
                Some(importances) => total(&multiply(weight, &wide(importances)?)?)?,
                None => sums.clone(),
            };
            let less = multiply(&divide(&own, &sums)?, ddof)?;
            (mean, Some(weight), maximum(&subtract(&sums, &less)?, 0)?)
        }
    };
    let centred = subtract(&x, &mean)?;
    let other = match weighted {
        Some(weight) => multiply(&centred, weight)?,
        None => centred.clone(),
    };
    let other = cast(&conjugate(&other)?, centred.dtype())?;
    let products = matmul(&centred, &swapaxes(&other, 0, 1)?)?;
    cast(&divide(&products, &divisor)?, x.dtype())
}

/// The correlations of variables, of which each is a row of observations: their covariances over the roots of their
/// variances, within [−1, 1].
///
/// # Shapes
/// As [`cov`].
///
/// # Dtypes
/// As [`cov`].
///
/// # Errors
/// For more than two axes.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0.0f32, 1.0, 2.0, 4.0, 2.0, 0.0], [2, 3])?;
/// assert_eq!(ops::corrcoef(&x)?.to_vec::<f32>()?, [1.0, -1.0, -1.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn corrcoef(x: &Array) -> Result<Array> {
    let own = x.dtype().to_inexact();
    let products = covariances("corrcoef", x, 1.0, None, None)?;
    let spread = sqrt(&real(&super::diagonal(&products, 0, 0, 1)?)?)?;
    let column = expand_axes(&spread, Dims::from_slice(&[1]))?;
    let mut out = divide(&divide(&products, &column)?, &spread)?;
    if out.dtype().is_float() {
        out = clip(&out, -1, 1)?;
    }
    let out = astype(&out, own)?;
    if x.rank() < 2 { squeeze_axes(&out, Dims::from_slice(&[0, 1])) } else { Ok(out) }
}

/// The distances of every vector of `a` from every one of `b`: the `p`-norms of the differences, with 0 and ∞ as the
/// count of what is not 0 and the largest size.
///
/// # Shapes
/// `[.., n, d]` and `[.., m, d]` give `[.., n, m]`; the leading axes broadcast.
///
/// # Dtypes
/// The arrays promote; integers and bool are taken as `float32`; half types are computed in `float32`. The distances
/// of complex vectors are real.
///
/// # Errors
/// For arrays without vectors, vectors that differ in size, and a negative `p`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let a = Array::from_slice(&[0.0f32, 0.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(ops::cdist(&a, &a, 2.0)?.to_vec::<f32>()?, [0.0, 5.0, 5.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cdist(a: &Array, b: &Array, p: f64) -> Result<Array> {
    let op = "cdist";
    let last = |x: &Array| x.shape().last().copied();
    if a.rank() < 2 || b.rank() < 2 || last(a) != last(b) {
        let detail = format!("vectors of one size, not {} and {}", a.aval(), b.aval());
        return Err(Error::shape(op, detail));
    }
    if p < 0.0 || p.is_nan() {
        return Err(Error::argument(op, format!("there is no {p}-norm")));
    }
    let own = a.dtype().promote(b.dtype()).to_inexact();
    let (left, right) = (cast(a, own.accumulator())?, cast(b, own.accumulator())?);
    let left = expand_axes(&left, Dims::from_slice(&[a.rank() - 1]))?;
    let right = expand_axes(&right, Dims::from_slice(&[b.rank() - 2]))?;
    let way = subtract(&left, &right)?;
    let size = abs(&way)?;
    let fold = |x: &Array| sum(x, -1, false);
    // At 0 a root has no derivative; that of 1 is masked.
    let root = |total: &Array, root: &dyn Fn(&Array) -> Result<Array>| {
        let nothing = equal(total, 0)?;
        where_(&nothing, 0, &root(&where_(&nothing, 1, total)?)?)
    };
    let out = match p {
        0.0 => fold(&cast(&not_equal(&way, 0)?, size.dtype())?)?,
        1.0 => fold(&size)?,
        2.0 if way.dtype().is_complex() => {
            let squares = add(&square(&real(&way)?)?, &square(&imag(&way)?)?)?;
            root(&fold(&squares)?, &sqrt)?
        }
        2.0 => root(&fold(&square(&way)?)?, &sqrt)?,
        f64::INFINITY if last(a) == Some(0) => fold(&size)?,
        f64::INFINITY => max(&size, -1, false)?,
        p => {
            let zero = equal(&size, 0)?;
            let powers = where_(&zero, 0, &power(&where_(&zero, 1, &size)?, p)?)?;
            root(&fold(&powers)?, &|x| power(x, 1.0 / p))?
        }
    };
    cast(&out, own.real())
}
