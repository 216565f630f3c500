//! From bytes to numbers around zero.

use cupola_core::{Array, DType, ops};

use super::{Error, Result};

/// The mean and the standard deviation of each channel, of pixels scaled to 0..=1.
///
/// A pixel `p` becomes `(p / 255 - mean) / std`.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalization {
    mean: Vec<f32>,
    std: Vec<f32>,
}

impl Normalization {
    /// The given means and deviations, one of each a channel.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if there are not as many means as deviations, none, a mean that is not
    /// finite or a deviation that is not finite and above 0.
    pub fn new(mean: impl Into<Vec<f32>>, std: impl Into<Vec<f32>>) -> Result<Self> {
        let (mean, std) = (mean.into(), std.into());
        let fits = mean.len() == std.len() && !mean.is_empty();
        let sound =
            mean.iter().all(|m| m.is_finite()) && std.iter().all(|s| s.is_finite() && *s > 0.0);
        if !fits || !sound {
            let detail = format!("mean {mean:?} and std {std:?} are not one finite pair a channel");
            return Err(Error::argument("Normalization", detail));
        }
        Ok(Self { mean, std })
    }

    /// Pixels scaled to 0..=1 and no more.
    pub fn unit(channels: usize) -> Self {
        Self { mean: vec![0.0; channels], std: vec![1.0; channels] }
    }

    /// What brings `pixels`, whose last axis is the channel, to mean 0 and deviation 1.
    ///
    /// A channel of one colour keeps its scale.
    pub(super) fn measure(pixels: &[u8], channels: usize) -> Self {
        let mut counts = vec![[0_u64; 256]; channels];
        for pixel in pixels.chunks_exact(channels) {
            for (count, &value) in counts.iter_mut().zip(pixel) {
                count[usize::from(value)] += 1;
            }
        }
        let (mean, std) = counts.iter().map(moments).unzip();
        Self { mean, std }
    }

    /// Images brought to this scale: bytes are scaled to 0..=1 first, floats are taken to be so already.
    ///
    /// # Shapes
    /// `images` is `[…, C]`, and so is the result: `float32` of bytes, else of the dtype of `images`.
    ///
    /// # Errors
    /// Where `images` are neither `uint8` nor floats, or have another number of channels.
    ///
    /// # Example
    /// ```
    /// use cupola::{Array, data::Normalization};
    /// let images = Array::from_slice(&[0u8, 255], [2, 1])?;
    /// let scale = Normalization::new([0.5], [0.25])?;
    /// assert_eq!(scale.apply(&images)?.to_vec::<f32>()?, [-2.0, 2.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn apply(&self, images: &Array) -> cupola_core::Result<Array> {
        let dtype = images.dtype();
        let channels = images.shape().last().copied();
        if !(dtype == DType::U8 || dtype.is_float()) || channels != Some(self.channels()) {
            let detail =
                format!("takes uint8 or floats [..., {}], not {}", self.channels(), images.aval());
            return Err(cupola_core::Error::shape("normalize", detail));
        }
        let scaled = match dtype {
            DType::U8 => ops::divide(&ops::astype(images, DType::F32)?, 255)?,
            _ => images.clone(),
        };
        let row = |values: &[f32]| {
            ops::astype(&Array::from_slice(values, [values.len()])?, scaled.dtype())
        };
        ops::divide(&ops::subtract(&scaled, &row(&self.mean)?)?, &row(&self.std)?)
    }

    /// The mean of each channel.
    pub fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// The standard deviation of each channel.
    pub fn std(&self) -> &[f32] {
        &self.std
    }

    /// How many channels there are.
    pub fn channels(&self) -> usize {
        self.mean.len()
    }

    /// What each byte becomes, channel by channel.
    pub(super) fn table(&self) -> Vec<[f32; 256]> {
        let channels = self.mean.iter().zip(&self.std);
        channels
            .map(|(mean, std)| std::array::from_fn(|byte| (byte as f32 / 255.0 - mean) / std))
            .collect()
    }
}

/// The mean and the deviation of scaled pixels, from how often each byte occurs.
fn moments(counts: &[u64; 256]) -> (f32, f32) {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    let average = |f: &dyn Fn(f64) -> f64| {
        let terms = counts.iter().enumerate();
        terms.map(|(byte, &count)| f(byte as f64 / 255.0) * count as f64).sum::<f64>() / total
    };
    let mean = average(&|x| x);
    let variance = average(&|x| (x - mean) * (x - mean));
    let std = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    (mean as f32, std as f32)
}
