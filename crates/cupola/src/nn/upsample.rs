//! Images in other sizes.

use cupola_core::backend::reserve;
use cupola_core::{Array, Error, Result, Shape, ops};

use super::{Layer, Module};

/// What stands between the elements of an [`Upsample`]d axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Module)]
pub enum UpsampleMode {
    /// The nearest element.
    #[default]
    Nearest,
    /// Lines between the nearest two elements.
    Linear,
    /// Cubic polynomials through the nearest four elements, with a = −¾.
    ///
    /// R. Keys, *Cubic convolution interpolation for digital image processing*, IEEE Transactions
    /// on Acoustics, Speech and Signal Processing 29, 1981.
    Cubic,
}

/// The axes between the first and the last in other sizes, as in MLX: an axis of n elements and
/// scale s gets ⌊s·n⌋, centred on the old ones.
///
/// # Shapes
/// `[N, input.., C]` gives `[N, output.., C]`, with any number of spatial axes.
///
/// # Dtypes
/// The nearest elements keep the dtype; for the rest integers and bool are taken as `float32`, and
/// half types are computed in `float32`.
///
/// # Errors
/// `forward` fails for inputs without spatial axes, another number of scales than axes, axes that
/// are empty or become so, and complex numbers where elements are mixed.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{Layer, Upsample, UpsampleMode}};
/// let x = Array::from_slice(&[1.0f32, 3.0], [1, 2, 1])?;
/// assert_eq!(Upsample::new(2.0)?.forward(&x)?.to_vec::<f32>()?, [1.0, 1.0, 3.0, 3.0]);
/// let layer = Upsample::new(2.0)?.mode(UpsampleMode::Linear);
/// assert_eq!(layer.forward(&x)?.to_vec::<f32>()?, [1.0, 1.5, 2.5, 3.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct Upsample {
    scales: Vec<f64>,
    mode: UpsampleMode,
    align_corners: bool,
}

/// What sizes are multiplied by: one number for every spatial axis, or one for each.
#[derive(Clone, PartialEq, Debug)]
pub struct Scales(Vec<f64>);

impl From<f64> for Scales {
    fn from(scale: f64) -> Self {
        Scales(vec![scale])
    }
}

impl<const N: usize> From<[f64; N]> for Scales {
    fn from(scales: [f64; N]) -> Self {
        Scales(scales.to_vec())
    }
}

impl From<&[f64]> for Scales {
    fn from(scales: &[f64]) -> Self {
        Scales(scales.to_vec())
    }
}

const OP: &str = "Upsample";

impl Upsample {
    /// Sizes times `scales`, each new element the nearest old one.
    ///
    /// # Errors
    /// Where there is no scale, or one is not positive and finite.
    pub fn new(scales: impl Into<Scales>) -> Result<Self> {
        let Scales(scales) = scales.into();
        if scales.is_empty() || !scales.iter().all(|s| s.is_finite() && *s > 0.0) {
            let detail = format!("scales {scales:?} are not positive numbers");
            return Err(Error::argument(OP, detail));
        }
        Ok(Upsample { scales, mode: UpsampleMode::Nearest, align_corners: false })
    }

    /// With this between the elements.
    pub fn mode(mut self, mode: UpsampleMode) -> Self {
        self.mode = mode;
        self
    }

    /// With the first and the last new element on the first and the last old one, or with both
    /// centred. The nearest elements are the same either way.
    pub fn align_corners(mut self, align_corners: bool) -> Self {
        self.align_corners = align_corners;
        self
    }

    /// The scale and the new size of each spatial axis of `x`.
    fn targets(&self, x: &Array) -> Result<Vec<(f64, usize)>> {
        let axes = x.rank().saturating_sub(2);
        if axes == 0 {
            let detail = format!("takes [N, .., C] with spatial axes, input is {}", x.aval());
            return Err(Error::shape(OP, detail));
        }
        let scales = match &self.scales[..] {
            [scale] => vec![*scale; axes],
            scales if scales.len() == axes => scales.to_vec(),
            scales => {
                let detail = format!("scales {scales:?} are not one for each axis of {}", x.aval());
                return Err(Error::argument(OP, detail));
            }
        };
        let target = |(scale, &size): (f64, &usize)| {
            let outputs = scale * size as f64;
            if (1.0..=f64::from(i32::MAX)).contains(&outputs) {
                return Ok((scale, outputs as usize));
            }
            let detail = format!("scale {scale} makes an axis of {size} empty or too long");
            Err(Error::shape(OP, format!("{detail} (input {})", x.aval())))
        };
        let targets: Vec<_> =
            scales.into_iter().zip(&x.shape()[1..=axes]).map(target).collect::<Result<_>>()?;
        let sizes = targets.iter().map(|(_, outputs)| *outputs);
        let whole: Shape = sizes.clone().chain([x.shape()[0], x.shape()[axes + 1]]).collect();
        whole.checked_size(OP, x.dtype())?;
        // For each new element of an axis the place, an index and a weight.
        drop(reserve::<[u64; 3]>(sizes.max().unwrap_or(0), "the weights of upsampling")?);
        Ok(targets)
    }
}

impl Layer for Upsample {
    fn forward(&self, x: &Array) -> Result<Array> {
        let targets = self.targets(x)?;
        if self.mode == UpsampleMode::Nearest {
            return targets
                .into_iter()
                .zip(1..)
                .try_fold(x.clone(), |x, ((scale, outputs), axis)| {
                    nearest(&x, axis, scale, outputs)
                });
        }
        if x.dtype().is_complex() {
            let detail = format!("mixes no complex numbers, input is {}", x.aval());
            return Err(Error::dtype(OP, detail));
        }
        let dtype = x.dtype().to_inexact();
        let mut y = ops::astype(x, dtype.accumulator())?;
        for ((scale, outputs), axis) in targets.into_iter().zip(1..) {
            if scale == 1.0 {
                continue;
            }
            let places = positions(y.shape()[axis], scale, outputs, self.align_corners);
            y = blended(&y, axis, &places, self.mode == UpsampleMode::Cubic)?;
        }
        ops::astype(&y, dtype)
    }
}

/// An axis with elements repeated or left out.
fn nearest(x: &Array, axis: usize, scale: f64, outputs: usize) -> Result<Array> {
    let size = x.shape()[axis];
    if scale.fract() == 0.0 {
        return if outputs == size { Ok(x.clone()) } else { ops::repeat(x, outputs / size, axis) };
    }
    let index = |i: usize| {
        if outputs <= size {
            return (i * size / outputs) as i32;
        }
        // In float32 as in MLX, which decides where two are equally near.
        let place = (i as f32 + 0.5) * (size as f64 / outputs as f64) as f32 - 0.5;
        (place.round_ties_even() as i32).clamp(0, size as i32 - 1)
    };
    let indices: Vec<i32> = (0..outputs).map(index).collect();
    ops::take(x, &Array::from_slice(&indices, [outputs])?, axis)
}

/// Where the new elements lie between the old ones.
fn positions(size: usize, scale: f64, outputs: usize, align_corners: bool) -> Vec<f64> {
    let last = size as f64 - 1.0;
    let (step, start) = if align_corners {
        (last / (outputs.max(2) - 1) as f64, 0.0)
    } else {
        let step = 1.0 / scale;
        (step, (last - (outputs as f64 - 1.0) * step) / 2.0)
    };
    (0..outputs).map(|i| start + i as f64 * step).collect()
}

/// An axis of weighted sums of the elements around each place; beyond the ends the last goes on.
fn blended(x: &Array, axis: usize, places: &[f64], is_cubic: bool) -> Result<Array> {
    let last = x.shape()[axis] as i64 - 1;
    let mut shape = vec![1; x.rank() - axis];
    shape[0] = places.len();
    let taps = if is_cubic { -1..=2 } else { 0..=1 };
    let tap = |tap: i64| {
        let at = |place: &f64| place.floor() as i64 + tap;
        let indices: Vec<i32> = places.iter().map(|p| at(p).clamp(0, last) as i32).collect();
        let weight = |place: &f64| {
            let distance = (place - at(place) as f64).abs();
            if is_cubic { cubic(distance) } else { 1.0 - distance }
        };
        let weights: Vec<f64> = places.iter().map(weight).collect();
        let weights = ops::astype(&Array::from_slice(&weights, &shape[..])?, x.dtype())?;
        let indices = Array::from_slice(&indices, [places.len()])?;
        ops::multiply(&ops::take(x, &indices, axis)?, &weights)
    };
    let mut parts = taps.map(tap);
    let Some(first) = parts.next() else { return Ok(x.clone()) };
    parts.try_fold(first?, |sum, part| ops::add(&sum, &part?))
}

/// Keys' kernel at a distance of up to 2.
fn cubic(d: f64) -> f64 {
    const A: f64 = -0.75;
    if d <= 1.0 {
        ((A + 2.0) * d - (A + 3.0)) * d * d + 1.0
    } else {
        A * (((d - 5.0) * d + 8.0) * d - 4.0)
    }
}
