//! Encodings of positions.

use std::f64::consts::TAU;
use std::ops::Range;

use cupola_core::backend::reserve;
use cupola_core::{Array, DType, Error, Result, ops};
use ops::{Frequencies, Operand, RopeOptions};

use super::{Layer, Module};

/// Pairs of features turned by an angle that grows with their place: [`ops::rope`] as a layer.
///
/// J. Su et al., *RoFormer: enhanced transformer with rotary position embedding*, 2021.
///
/// # Shapes
/// `[N, .., places, features]` stays.
///
/// # Dtypes
/// Half types are turned in `float32`.
///
/// # Errors
/// `forward` fails for fewer than three axes, fewer features than turn, and what is not of floats.
///
/// # Example
/// ```
/// use cupola::{DType, nn::{Layer, Rope}, ops};
/// let (layer, x) = (Rope::new(4)?, ops::ones([1, 3, 4], DType::F32)?);
/// assert_eq!(layer.forward(&x)?.to_vec::<f32>()?[..4], [1.0; 4]);
/// // The second place is the first, where places begin at 1.
/// let y = layer.forward_from(&x, 1)?.to_vec::<f32>()?;
/// assert_eq!(y[..4], layer.forward(&x)?.to_vec::<f32>()?[4..8]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct Rope {
    dims: usize,
    traditional: bool,
    base: f64,
    scale: f64,
}

impl Rope {
    /// The first `dims` features turn, each with the one half of `dims` further; base 10,000 and
    /// scale 1.
    ///
    /// # Errors
    /// Where `dims` is odd or 0.
    pub fn new(dims: usize) -> Result<Self> {
        if dims == 0 || !dims.is_multiple_of(2) {
            return Err(Error::argument("Rope", format!("dims {dims} are no pairs")));
        }
        Ok(Rope { dims, traditional: false, base: 10_000.0, scale: 1.0 })
    }

    /// With neighbours as pairs, or features that are half of the dims apart.
    pub fn traditional(mut self, traditional: bool) -> Self {
        self.traditional = traditional;
        self
    }

    /// With pair i of n turning by base^(−i/n) a place.
    ///
    /// # Errors
    /// Where `base` is not positive and finite.
    pub fn base(mut self, base: f64) -> Result<Self> {
        if !(base.is_finite() && base > 0.0) {
            return Err(Error::argument("Rope", format!("base {base} is not a positive number")));
        }
        self.base = base;
        Ok(self)
    }

    /// With places multiplied by this.
    ///
    /// # Errors
    /// Where `scale` is not finite.
    pub fn scale(mut self, scale: f64) -> Result<Self> {
        if !scale.is_finite() {
            return Err(Error::argument("Rope", format!("scale {scale} is not finite")));
        }
        self.scale = scale;
        Ok(self)
    }

    /// `x` turned, its first place being `offset`: a number, or an integer array, one for all or one
    /// for each example.
    ///
    /// # Errors
    /// Where `x` or `offset` does not fit.
    pub fn forward_from<'a>(&self, x: &Array, offset: impl Into<Operand<'a>>) -> Result<Array> {
        let options = RopeOptions {
            traditional: self.traditional,
            frequencies: Frequencies::Base(self.base),
            scale: self.scale,
            offset: offset.into(),
            ..RopeOptions::new(self.dims)
        };
        ops::rope(x, &options)
    }
}

impl Layer for Rope {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward_from(x, 0)
    }
}

/// Sines and cosines of positions, at frequencies in geometric progression.
///
/// A. Vaswani et al., *Attention is all you need*, NeurIPS 2017.
///
/// # Shapes
/// Positions `[..]` give `[.., dims]`: sines, then cosines, each from the highest frequency to the
/// lowest.
///
/// # Dtypes
/// Gives `float32`, and `float64` for such positions.
///
/// # Errors
/// `forward` fails for complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{Layer, SinusoidalPositionalEncoding}};
/// let layer = SinusoidalPositionalEncoding::new(4)?.scale(1.0)?;
/// let y = layer.forward(&Array::from_slice(&[0, 1], [2])?)?;
/// assert_eq!(y.to_vec::<f32>()?[..4], [0.0, 0.0, 1.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct SinusoidalPositionalEncoding {
    half: usize,
    lowest: f64,
    highest: f64,
    scale: f64,
    cos_first: bool,
    full_turns: bool,
}

const SINUSOIDAL: &str = "SinusoidalPositionalEncoding";

impl SinusoidalPositionalEncoding {
    /// Encodings of `dims` features, with frequencies from 0.0001 to 1 and scale √(2/dims).
    ///
    /// # Errors
    /// Where `dims` is odd or 0.
    pub fn new(dims: usize) -> Result<Self> {
        if dims == 0 || !dims.is_multiple_of(2) {
            return Err(Error::argument(SINUSOIDAL, format!("dims {dims} are no pairs")));
        }
        Ok(SinusoidalPositionalEncoding {
            half: dims / 2,
            lowest: 0.0001,
            highest: 1.0,
            scale: (2.0 / dims as f64).sqrt(),
            cos_first: false,
            full_turns: false,
        })
    }

    /// With frequencies from `lowest` to `highest`.
    ///
    /// # Errors
    /// Where one is not positive and finite.
    pub fn frequencies(mut self, lowest: f64, highest: f64) -> Result<Self> {
        if ![lowest, highest].iter().all(|f| f.is_finite() && *f > 0.0) {
            let detail = format!("frequencies {lowest} and {highest} are not positive numbers");
            return Err(Error::argument(SINUSOIDAL, detail));
        }
        (self.lowest, self.highest) = (lowest, highest);
        Ok(self)
    }

    /// With the encodings multiplied by this.
    ///
    /// # Errors
    /// Where `scale` is not finite.
    pub fn scale(mut self, scale: f64) -> Result<Self> {
        if !scale.is_finite() {
            return Err(Error::argument(SINUSOIDAL, format!("scale {scale} is not finite")));
        }
        self.scale = scale;
        Ok(self)
    }

    /// With cosines before sines, or behind them.
    pub fn cos_first(mut self, cos_first: bool) -> Self {
        self.cos_first = cos_first;
        self
    }

    /// With frequencies that count turns, 2π each, or radians.
    pub fn full_turns(mut self, full_turns: bool) -> Self {
        self.full_turns = full_turns;
        self
    }

    /// The frequencies, the highest first.
    fn sigmas(&self) -> Result<Array> {
        let (low, high) = (self.lowest.ln(), self.highest.ln());
        let last = self.half.max(2) - 1;
        let turn = if self.full_turns { TAU } else { 1.0 };
        let sigma = |i: usize| (high + (low - high) * i as f64 / last as f64).exp() * turn;
        let mut sigmas: Vec<f64> = reserve(self.half, "the frequencies of positions")?;
        sigmas.extend((0..self.half).map(sigma));
        Array::from_vec(sigmas, [self.half])
    }
}

impl Layer for SinusoidalPositionalEncoding {
    fn forward(&self, x: &Array) -> Result<Array> {
        if x.dtype().is_complex() {
            let detail = format!("takes real positions, input is {}", x.aval());
            return Err(Error::dtype(SINUSOIDAL, detail));
        }
        let dtype = x.dtype().to_inexact().accumulator();
        let places = ops::expand_dims(&ops::astype(x, dtype)?, -1)?;
        let angles = ops::multiply(&places, &ops::astype(&self.sigmas()?, dtype)?)?;
        let (sines, cosines) = (ops::sin(&angles)?, ops::cos(&angles)?);
        let waves = if self.cos_first { [&cosines, &sines] } else { [&sines, &cosines] };
        let y = ops::concatenate(&waves, -1)?;
        if self.scale == 1.0 { Ok(y) } else { ops::multiply(&y, self.scale) }
    }
}

/// Attention scores lowered in proportion to the distance of query and key, in each head with
/// another slope.
///
/// O. Press, N. A. Smith, M. Lewis, *Train short, test long: attention with linear biases enables
/// input length extrapolation*, ICLR 2022.
///
/// # Shapes
/// Scores `[N, heads, queries, keys]` stay.
///
/// # Errors
/// `forward` fails where the scores are no floats with four axes.
///
/// # Example
/// ```
/// use cupola::{DType, nn::{Alibi, Layer}, ops};
/// let y = Alibi.forward(&ops::zeros([1, 1, 2, 2], DType::F32)?)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, -1.0 / 256.0, -1.0 / 256.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Module)]
pub struct Alibi;

const ALIBI: &str = "Alibi";

impl Alibi {
    /// What is added to scores of queries at these places and so many keys.
    ///
    /// # Shapes
    /// `[1, heads, queries, keys]`.
    ///
    /// # Errors
    /// Where `heads` is 0, `dtype` is no float, or a place is past 2³¹.
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, nn::Alibi};
    /// let matrix = Alibi::create_alibi_matrix(4..5, 5, 8, DType::F32)?;
    /// assert_eq!(matrix.shape()[..], [1, 8, 1, 5]);
    /// assert_eq!(matrix.to_vec::<f32>()?[..5], [-2.0, -1.5, -1.0, -0.5, 0.0]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn create_alibi_matrix(
        queries: Range<usize>,
        keys: usize,
        heads: usize,
        dtype: DType,
    ) -> Result<Array> {
        if queries.end.max(keys) > i32::MAX as usize {
            let detail = format!("queries {queries:?} and {keys} keys are past int32");
            return Err(Error::argument(ALIBI, detail));
        }
        let slope = Alibi::create_alibi_slope(heads, DType::F32)?;
        expect_float(dtype)?;
        let start = queries.start.min(queries.end);
        let places = ops::expand_dims(&ops::arange(start, queries.end, 1)?, -1)?;
        let distance = ops::abs(&ops::subtract(&places, &ops::arange(0, keys, 1)?)?)?;
        let matrix = ops::multiply(&ops::negative(&distance)?, &slope)?;
        ops::astype(&ops::expand_dims(&matrix, 0)?, dtype)
    }

    /// The slopes of the heads: 2^(−8i/heads) for a power of two, and otherwise those of the power
    /// below, then every second one of the power above.
    ///
    /// # Shapes
    /// `[heads, 1, 1]`.
    ///
    /// # Errors
    /// Where `heads` is 0 or `dtype` is no float.
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, nn::Alibi};
    /// let slopes = Alibi::create_alibi_slope(3, DType::F32)?;
    /// assert_eq!(slopes.to_vec::<f32>()?, [0.0625, 0.00390625, 0.25]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn create_alibi_slope(heads: usize, dtype: DType) -> Result<Array> {
        expect_float(dtype)?;
        let Some(power) = heads.checked_ilog2() else {
            return Err(Error::argument(ALIBI, "heads 0 is not at least 1"));
        };
        let below = 1usize << power;
        let first = (1..=below).map(|i| -8.0 * i as f64 / below as f64);
        let rest = (0..heads - below).map(|i| -4.0 * (2 * i + 1) as f64 / below as f64);
        let mut slopes: Vec<f64> = reserve(heads, "the slopes of heads")?;
        slopes.extend(first.chain(rest).map(f64::exp2));
        ops::astype(&Array::from_slice(&slopes, [heads, 1, 1])?, dtype)
    }

    /// The scores lowered, and `mask` added if there is one; the first query's place is `offset`.
    ///
    /// # Errors
    /// Where the scores or the mask do not fit.
    pub fn forward_from(
        &self,
        scores: &Array,
        offset: usize,
        mask: Option<&Array>,
    ) -> Result<Array> {
        let (&[_, heads, queries, keys], true) = (&scores.shape()[..], scores.dtype().is_float())
        else {
            let detail = format!("takes floats [N, heads, queries, keys], not {}", scores.aval());
            return Err(Error::shape(ALIBI, detail));
        };
        let places = offset..offset.saturating_add(queries);
        let mut bias = Alibi::create_alibi_matrix(places, keys, heads, scores.dtype())?;
        if let Some(mask) = mask {
            bias = ops::add(&bias, mask)?;
        }
        ops::add(scores, &bias)
    }
}

impl Layer for Alibi {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward_from(x, 0, None)
    }
}

fn expect_float(dtype: DType) -> Result<()> {
    if dtype.is_float() {
        return Ok(());
    }
    Err(Error::dtype(ALIBI, format!("scores are floats, not {dtype}")))
}
