//! Images in other sizes: channels moved into space, values between pixels, samples at computed places.

use super::create::of_numbers;
use super::operand::{cast, constant_like, expect_real, wide};
use super::{
    abs, add, clip, divide, equal, expand_axes, floor, gather, greater_equal, iota, isfinite,
    isnan, less_equal, logical_and, multiply, permute, remainder, reshape, round, squeeze_axes,
    subtract, take, unstack, where_,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::memory::reserve;
use crate::shape::{Dims, Shape};

/// Channels moved into space, r² of them at each pixel to a square of r by r pixels.
///
/// W. Shi et al., *Real-time single image and video super-resolution using an efficient sub-pixel convolutional neural
/// network*, CVPR 2016.
///
/// # Shapes
/// `[.., H, W, C·r²]` gives `[.., H·r, W·r, C]`. As in PyTorch, what stands at row i and column j of the square of
/// channel c is channel c·r² + i·r + j.
///
/// # Errors
/// For fewer than three axes, a factor of 0, and channels that r² does not divide.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4], [1, 1, 4])?;
/// assert_eq!(ops::pixel_shuffle(&x, 2)?.shape()[..], [2, 2, 1]);
/// assert_eq!(ops::pixel_shuffle(&x, 2)?.to_vec::<i32>()?, [1, 2, 3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn pixel_shuffle(x: &Array, factor: usize) -> Result<Array> {
    let op = "pixel_shuffle";
    let (lead, [height, width, channels]) = image(op, x)?;
    let square = factor.saturating_mul(factor);
    if square == 0 || !channels.is_multiple_of(square) {
        let detail = format!("{factor}² does not divide the channels of {}", x.aval());
        return Err(Error::shape(op, detail));
    }
    let inner = channels / square;
    let apart = [&lead[..], &[height, width, inner, factor, factor]].concat();
    let n = lead.len();
    let order: Dims = (0..n).chain([n, n + 3, n + 1, n + 4, n + 2]).collect();
    let moved = permute(&reshape(x, Shape::from(&apart[..]))?, order)?;
    reshape(
        &moved,
        Shape::from(&[&lead[..], &[height * factor, width * factor, inner]].concat()[..]),
    )
}

/// The inverse of [`pixel_shuffle`]: squares of r by r pixels moved into channels.
///
/// # Shapes
/// `[.., H·r, W·r, C]` gives `[.., H, W, C·r²]`.
///
/// # Errors
/// For fewer than three axes, a factor of 0, and sides that r does not divide.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4], [2, 2, 1])?;
/// assert_eq!(ops::pixel_unshuffle(&x, 2)?.shape()[..], [1, 1, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn pixel_unshuffle(x: &Array, factor: usize) -> Result<Array> {
    let op = "pixel_unshuffle";
    let (lead, [height, width, channels]) = image(op, x)?;
    if factor == 0 || !height.is_multiple_of(factor) || !width.is_multiple_of(factor) {
        let detail = format!("{factor} does not divide the sides of {}", x.aval());
        return Err(Error::shape(op, detail));
    }
    let (rows, columns) = (height / factor, width / factor);
    let apart = [&lead[..], &[rows, factor, columns, factor, channels]].concat();
    let n = lead.len();
    let order: Dims = (0..n).chain([n, n + 2, n + 4, n + 1, n + 3]).collect();
    let moved = permute(&reshape(x, Shape::from(&apart[..]))?, order)?;
    let inner = channels * factor * factor;
    reshape(&moved, Shape::from(&[&lead[..], &[rows, columns, inner]].concat()[..]))
}

/// The leading axes, and the last three.
fn image(op: &'static str, x: &Array) -> Result<(Vec<usize>, [usize; 3])> {
    match x.shape()[..] {
        [ref lead @ .., height, width, channels] => Ok((lead.to_vec(), [height, width, channels])),
        _ => Err(Error::shape(op, format!("{} is no image: height, width, channels", x.aval()))),
    }
}

/// What stands between pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Interpolation {
    /// The nearest pixel; in another size the one that holds the new one's lower edge.
    #[default]
    Nearest,
    /// In another size, the pixel that holds the new one's middle.
    NearestExact,
    /// Lines between the nearest two pixels along each axis.
    Linear,
    /// Cubic polynomials through the nearest four along each axis, with a = −¾ (R. Keys, *Cubic convolution
    /// interpolation for digital image processing*, IEEE Transactions on Acoustics, Speech and Signal Processing 29,
    /// 1981).
    Cubic,
    /// The mean of the pixels that each new one covers.
    Area,
}

/// How large [`interpolate`] makes an image: one entry an axis, or one for all.
#[derive(Clone, PartialEq, Debug)]
pub enum Target {
    /// To these sizes.
    Sizes(Vec<usize>),
    /// By these factors; the sizes are rounded down.
    Factors(Vec<f64>),
}

/// The pixels that a new one is made of, with their weights: one list a tap.
type Taps = Vec<(Vec<i32>, Vec<f64>)>;

/// The weights of four neighbours at `t` from the second to the third.
fn cubic(t: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    let near = |d: f64| ((A + 2.0) * d - (A + 3.0)) * d * d + 1.0;
    let far = |d: f64| ((A * d - 5.0 * A) * d + 8.0 * A) * d - 4.0 * A;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}

fn taps(mode: Interpolation, size: usize, out: usize, step: f64, align: bool) -> Taps {
    let last = size as i64 - 1;
    let place = |i: usize| match align {
        true if out == 1 => 0.0,
        true => i as f64 * last as f64 / (out - 1) as f64,
        false => (i as f64 + 0.5) * step - 0.5,
    };
    let held = |i: i64| i.clamp(0, last) as i32;
    match mode {
        Interpolation::Nearest | Interpolation::NearestExact | Interpolation::Area => {
            let from = if mode == Interpolation::NearestExact { 0.5 } else { 0.0 };
            // What is a whole number but for rounding is one.
            let whole = |place: f64| {
                let near = place.round();
                if (place - near).abs() < 1e-9 * near { near } else { place.floor() }
            };
            let places = (0..out).map(|i| held(whole((i as f64 + from) * step) as i64)).collect();
            vec![(places, Vec::new())]
        }
        Interpolation::Linear => {
            let place = |i: usize| place(i).max(0.0);
            let tap = |k: i64| {
                let weight = |i: usize| {
                    let share = place(i) - place(i).floor();
                    if k == 0 { 1.0 - share } else { share }
                };
                let places = (0..out).map(|i| held(place(i).floor() as i64 + k)).collect();
                (places, (0..out).map(weight).collect())
            };
            vec![tap(0), tap(1)]
        }
        Interpolation::Cubic => {
            let tap = |k: usize| {
                let low = |i: usize| place(i).floor();
                let places = (0..out).map(|i| held(low(i) as i64 + k as i64 - 1)).collect();
                (places, (0..out).map(|i| cubic(place(i) - low(i))[k]).collect())
            };
            (0..4).map(tap).collect()
        }
    }
}

/// An image in another size, as PyTorch's `interpolate`. With `align_corners` the outermost pixels' middles stay where
/// they are, without it the image's edges.
///
/// # Shapes
/// `[N, input.., C]` gives `[N, output.., C]`, with any number of spatial axes.
///
/// # Dtypes
/// The nearest pixels keep the dtype; for the rest integers and bool are taken as `float32`, and half types are computed
/// in `float32`.
///
/// # Errors
/// For images without spatial axes, empty axes, sizes of 0, factors that are not positive, another number of them than
/// axes, complex numbers where pixels are mixed, and `align_corners` of pixels that are not.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::{Interpolation, Target}};
/// let x = Array::from_slice(&[1.0f32, 3.0], [1, 2, 1])?;
/// let y = ops::interpolate(&x, &Target::Sizes(vec![4]), Interpolation::Linear, false)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 1.5, 2.5, 3.0]);
/// let y = ops::interpolate(&x, &Target::Factors(vec![2.0]), Interpolation::Nearest, false)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 1.0, 3.0, 3.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn interpolate(
    x: &Array,
    target: &Target,
    mode: Interpolation,
    align_corners: bool,
) -> Result<Array> {
    let op = "interpolate";
    let axes = x.rank().saturating_sub(2);
    if axes == 0 {
        return Err(Error::shape(op, format!("{} has no spatial axes", x.aval())));
    }
    let mixes = matches!(mode, Interpolation::Linear | Interpolation::Cubic);
    if align_corners && !mixes {
        let detail = "align_corners is for linear and cubic interpolation".to_owned();
        return Err(Error::argument(op, detail));
    }
    let input = &x.shape()[1..=axes];
    let fits = |count: usize| count == axes || count == 1;
    let at = |i: usize, count: usize| if count == 1 { 0 } else { i };
    // How large each axis becomes, and how far apart the new pixels are.
    let new: Vec<(usize, f64)> = match target {
        Target::Sizes(sizes) if fits(sizes.len()) => (0..axes)
            .map(|i| {
                (sizes[at(i, sizes.len())], input[i] as f64 / sizes[at(i, sizes.len())] as f64)
            })
            .collect(),
        Target::Factors(factors) if fits(factors.len()) => {
            if let Some(f) = factors.iter().find(|f| !(f.is_finite() && **f > 0.0)) {
                return Err(Error::argument(op, format!("{f} is no factor")));
            }
            let size =
                |i: usize| (input[i] as f64 * factors[at(i, factors.len())]).floor() as usize;
            (0..axes).map(|i| (size(i), 1.0 / factors[at(i, factors.len())])).collect()
        }
        Target::Sizes(_) | Target::Factors(_) => {
            return Err(Error::argument(op, format!("{target:?} does not fit {}", x.aval())));
        }
    };
    if input.contains(&0) || new.iter().any(|(size, _)| *size == 0) {
        let detail = format!("nothing is between the pixels of {} and {target:?}", x.aval());
        return Err(Error::shape(op, detail));
    }
    let mut whole = vec![x.shape()[0]];
    whole.extend(new.iter().map(|(size, _)| *size));
    whole.push(x.shape()[axes + 1]);
    Shape::from(&whole[..]).checked_size(op, x.dtype())?;
    if input.iter().chain(&whole).any(|&n| n > i32::MAX as usize) {
        return Err(Error::shape(op, format!("an axis of {} is past int32", x.aval())));
    }
    if mode == Interpolation::Area {
        let sizes: Vec<usize> = new.iter().map(|(size, _)| *size).collect();
        return super::adaptive_avg_pool(x, &sizes);
    }
    if mixes {
        expect_real(op, &[x.into()])?;
    }
    // For each new pixel of an axis the places and weights of up to four old ones.
    let largest = new.iter().map(|(size, _)| *size).max().unwrap_or(0);
    drop(reserve::<[u64; 8]>(largest, "the weights of pixels")?);
    let own = if mixes { x.dtype().to_inexact() } else { x.dtype() };
    let mut out = if mixes { wide(x)? } else { x.clone() };
    // The last axis first, so that along the others, when there are more pixels, whole rows lie together.
    for (i, (size, step)) in new.into_iter().enumerate().rev() {
        let axis = i + 1;
        if size == out.shape()[axis] && step == 1.0 {
            continue;
        }
        let mut sum: Option<Array> = None;
        for (places, weights) in taps(mode, out.shape()[axis], size, step, align_corners) {
            let mut part = take(&out, &Array::from_slice(&places, [size])?, axis)?;
            if !weights.is_empty() {
                let weights = of_numbers(op, &weights, out.dtype())?;
                let weights = expand_axes(&weights, (1..out.rank() - axis).collect())?;
                part = multiply(&part, &weights)?;
            }
            sum = Some(match sum {
                Some(sum) => add(&sum, &part)?,
                None => part,
            });
        }
        if let Some(sum) = sum {
            out = sum;
        }
    }
    cast(&out, own)
}

/// What [`grid_sample`] finds outside of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Beyond {
    /// Zeros.
    #[default]
    Zeros,
    /// The nearest pixel.
    Border,
    /// The image mirrored at its edges.
    Reflection,
}

/// How far two ends are reflected between, doubled.
fn reflected(x: &Array, low: f64, high: f64) -> Result<Array> {
    if low == high {
        return Ok(constant_like(x, 0.0));
    }
    let (low, span) = (low / 2.0, (high - low) / 2.0);
    let way = abs(&subtract(x, low)?)?;
    let rest = remainder(&way, span)?;
    let odd = equal(&remainder(&floor(&divide(&way, span)?)?, 2)?, 1)?;
    add(&where_(&odd, &subtract(span, &rest)?, &rest)?, low)
}

/// Places along an axis, brought into the image as `beyond` says; what is no place, or has no mirror image, is the
/// first one.
fn inside(x: &Array, size: usize, beyond: Beyond, align: bool) -> Result<Array> {
    let last = size as f64 - 1.0;
    match beyond {
        Beyond::Zeros => Ok(x.clone()),
        Beyond::Border => clip(&where_(&isnan(x)?, 0, x)?, 0, last),
        Beyond::Reflection => {
            let ends = if align { (0.0, 2.0 * last) } else { (-1.0, 2.0 * last + 1.0) };
            clip(&reflected(&where_(&isfinite(x)?, x, 0)?, ends.0, ends.1)?, 0, last)
        }
    }
}

/// A whole place along an axis, whether it is in the image, and its weight.
struct Tap {
    place: Array,
    is_inside: Array,
    weight: Option<Array>,
}

fn tap(place: Array, size: usize, weight: Option<Array>) -> Result<Tap> {
    let last = size as f64 - 1.0;
    let is_inside = logical_and(&greater_equal(&place, 0)?, &less_equal(&place, last)?)?;
    let place = cast(&where_(&is_inside, &place, 0)?, DType::I32)?;
    Ok(Tap { place, is_inside, weight })
}

/// The pixels that places along an axis of `size` lie between.
fn neighbours(
    x: &Array,
    size: usize,
    mode: Interpolation,
    beyond: Beyond,
    align: bool,
) -> Result<Vec<Tap>> {
    let stretch = if align { (size as f64 - 1.0) / 2.0 } else { size as f64 / 2.0 };
    let middle = (size as f64 - 1.0) / 2.0;
    let x = add(&multiply(x, stretch)?, middle)?;
    match mode {
        Interpolation::Cubic => {
            let low = floor(&x)?;
            let t = subtract(&x, &low)?;
            let a = -0.75;
            let near = |d: &Array| {
                let inner = subtract(&multiply(d, a + 2.0)?, a + 3.0)?;
                add(&multiply(&multiply(&inner, d)?, d)?, 1)
            };
            let far = |d: &Array| {
                let inner = add(&multiply(&subtract(&multiply(d, a)?, 5.0 * a)?, d)?, 8.0 * a)?;
                subtract(&multiply(&inner, d)?, 4.0 * a)
            };
            let weights =
                [far(&add(&t, 1)?)?, near(&t)?, near(&subtract(1, &t)?)?, far(&subtract(2, &t)?)?];
            let one = |(k, weight): (usize, Array)| {
                let place = add(&low, k as f64 - 1.0)?;
                tap(inside(&place, size, beyond, align)?, size, Some(weight))
            };
            weights.into_iter().enumerate().map(one).collect()
        }
        Interpolation::Linear => {
            let x = inside(&x, size, beyond, align)?;
            let low = floor(&x)?;
            let share = subtract(&x, &low)?;
            let above = add(&low, 1)?;
            Ok(vec![tap(low, size, Some(subtract(1, &share)?))?, tap(above, size, Some(share))?])
        }
        Interpolation::Nearest | Interpolation::NearestExact | Interpolation::Area => {
            let x = inside(&x, size, beyond, align)?;
            Ok(vec![tap(round(&x, 0)?, size, None)?])
        }
    }
}

/// An image at computed places, as PyTorch's `grid_sample`: −1 and 1 are the middles of the outermost pixels with
/// `align_corners`, and the image's edges without.
///
/// # Shapes
/// An image `[N, sizes.., C]` and places `[N, output.., d]` for d spatial axes give `[N, output.., C]`. The first number of
/// a place is along the last axis of the image, the second along that before it.
///
/// # Dtypes
/// Integers are taken as `float32`; half types are computed in `float32`; the result has the image's dtype.
///
/// # Errors
/// Where the places do not fit the image, a spatial axis is empty, for complex numbers, for the mean of an area, for
/// `NearestExact`, which is about sizes, and for cubic interpolation of other than two axes.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::{Beyond, Interpolation}};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [1, 2, 2, 1])?;
/// let middle = Array::from_slice(&[0.0f32, 0.0], [1, 1, 1, 2])?;
/// let y = ops::grid_sample(&x, &middle, Interpolation::Linear, Beyond::Zeros, false)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn grid_sample(
    x: &Array,
    grid: &Array,
    mode: Interpolation,
    beyond: Beyond,
    align_corners: bool,
) -> Result<Array> {
    let op = "grid_sample";
    expect_real(op, &[x.into(), grid.into()])?;
    let axes = x.rank().saturating_sub(2);
    let unfit = || Error::shape(op, format!("places {} do not fit {}", grid.aval(), x.aval()));
    if axes == 0 || grid.rank() < 2 || grid.shape()[0] != x.shape()[0] {
        return Err(unfit());
    }
    if grid.shape()[grid.rank() - 1] != axes || x.shape()[1..=axes].contains(&0) {
        return Err(unfit());
    }
    let is_of_sizes = matches!(mode, Interpolation::Area | Interpolation::NearestExact);
    if is_of_sizes || mode == Interpolation::Cubic && axes != 2 {
        return Err(Error::argument(op, format!("{mode:?} is not for {axes} spatial axes")));
    }
    let own = x.dtype().to_inexact();
    let (batch, channels) = (x.shape()[0], x.shape()[axes + 1]);
    let sizes: Vec<usize> = x.shape()[1..=axes].to_vec();
    let pixels: usize = sizes.iter().product();
    if pixels > i32::MAX as usize {
        return Err(Error::shape(op, format!("{} has more than 2³¹ pixels", x.aval())));
    }
    let output: Vec<usize> = grid.shape()[1..grid.rank() - 1].to_vec();
    let lead = [&[batch], &output[..]].concat();
    let rows = reshape(&wide(x)?, [batch, pixels, channels])?;
    let dtype = rows.dtype();
    let coordinates = unstack(&cast(&wide(grid)?, dtype)?, -1)?;
    let along: Vec<Vec<Tap>> = sizes
        .iter()
        .zip(coordinates.iter().rev())
        .map(|(&size, x)| neighbours(x, size, mode, beyond, align_corners))
        .collect::<Result<_>>()?;
    let image = iota(&lead[..], 0, DType::I32)?;
    let mut sum: Option<Array> = None;
    let corners: usize = along.iter().map(Vec::len).product();
    for corner in 0..corners {
        let mut rest = corner;
        let mut place: Option<Array> = None;
        let mut is_inside: Option<Array> = None;
        let mut weight: Option<Array> = None;
        for (taps, &size) in along.iter().zip(&sizes) {
            let own = &taps[rest % taps.len()];
            rest /= taps.len();
            place = Some(match place {
                Some(place) => add(&multiply(&place, size)?, &own.place)?,
                None => own.place.clone(),
            });
            is_inside = Some(match is_inside {
                Some(inside) => logical_and(&inside, &own.is_inside)?,
                None => own.is_inside.clone(),
            });
            weight = match (weight, &own.weight) {
                (Some(weight), Some(own)) => Some(multiply(&weight, own)?),
                (weight, own) => weight.or_else(|| own.clone()),
            };
        }
        let (Some(place), Some(is_inside)) = (place, is_inside) else { return Err(unfit()) };
        let n = lead.len();
        let part = match place.is_empty() || channels == 0 {
            true => super::zeros([&lead[..], &[channels]].concat(), dtype)?,
            false => {
                let found = gather(&rows, &[(0, &image), (1, &place)], [1, 1, channels])?;
                squeeze_axes(&found, Dims::from_slice(&[n, n + 1]))?
            }
        };
        let last = Dims::from_slice(&[n]);
        let mut part = where_(&expand_axes(&is_inside, last.clone())?, &part, 0)?;
        if let Some(weight) = weight {
            part = multiply(&part, &expand_axes(&weight, last)?)?;
        }
        sum = Some(match sum {
            Some(sum) => add(&sum, &part)?,
            None => part,
        });
    }
    cast(&sum.ok_or_else(unfit)?, own)
}
