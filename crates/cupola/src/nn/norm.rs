//! Layers that bring activations to a common scale.

use cupola_core::{Array, DType, Error, Result, ops};

use super::cell::{Buffer, Mode, Param};
use super::{Layer, Module};

/// Mean 0 and variance 1 along the last axis, then a learned scale and shift.
///
/// J. L. Ba, J. R. Kiros, G. E. Hinton, *Layer normalization*, 2016.
///
/// # Shapes
/// `[.., dims]` gives the same; `weight` and `bias` are `[dims]`.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{Layer, LayerNorm}};
/// let y = LayerNorm::new(2)?.forward(&Array::from_slice(&[1.0f32, 3.0], [1, 2])?)?;
/// assert!((y.to_vec::<f32>()?[1] - 1.0).abs() < 1e-4);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct LayerNorm {
    /// The scale.
    pub weight: Option<Param>,
    /// The shift.
    pub bias: Option<Param>,
    eps: f64,
}

/// A root mean square of 1 along the last axis, then a learned scale.
///
/// B. Zhang, R. Sennrich, *Root mean square layer normalization*, NeurIPS 2019.
///
/// # Shapes
/// `[.., dims]` gives the same; `weight` is `[dims]`.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{Layer, RmsNorm}};
/// let y = RmsNorm::new(2)?.forward(&Array::from_slice(&[3.0f32, -3.0], [1, 2])?)?;
/// assert!((y.to_vec::<f32>()?[1] + 1.0).abs() < 1e-4);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct RmsNorm {
    /// The scale.
    pub weight: Param,
    eps: f64,
}

/// Mean 0 and variance 1 of each channel over the batch and the spatial axes, then a learned scale
/// and shift.
///
/// While training, the statistics are those of the batch, and running ones are kept: each step
/// moves them by `momentum` towards the batch's mean and its variance with n − 1 in the
/// denominator, as in PyTorch (MLX takes n). In evaluation mode the running ones are used.
///
/// S. Ioffe, C. Szegedy, *Batch normalization*, ICML 2015.
///
/// # Shapes
/// `[N, .., C]` gives the same; parameters and statistics are `[C]`.
///
/// # Dtypes
/// Half types are computed in `float32`; the result has x's dtype.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{BatchNorm, Layer, Module}};
/// let layer = BatchNorm::new(1)?;
/// let x = Array::from_slice(&[1.0f32, 3.0], [2, 1])?;
/// assert!((layer.forward(&x)?.to_vec::<f32>()?[1] - 1.0).abs() < 1e-4);
/// assert_eq!(layer.buffers()["running_mean"].to_vec::<f32>()?, [0.2]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct BatchNorm {
    /// The scale.
    pub weight: Option<Param>,
    /// The shift.
    pub bias: Option<Param>,
    running_mean: Option<Buffer>,
    running_var: Option<Buffer>,
    channels: usize,
    eps: f64,
    momentum: f64,
    mode: Mode,
}

pub(super) fn expect_dims(op: &'static str, dims: usize) -> Result<()> {
    if dims > 0 { Ok(()) } else { Err(Error::argument(op, "dims 0 is not at least 1")) }
}

pub(super) fn expect_eps(op: &'static str, eps: f64) -> Result<f64> {
    if eps.is_finite() && eps >= 0.0 {
        return Ok(eps);
    }
    Err(Error::argument(op, format!("eps {eps} is not finite and at least 0")))
}

impl LayerNorm {
    /// Over a last axis of `dims`, with scale 1, shift 0 and eps 1e-5.
    ///
    /// # Errors
    /// Where `dims` is 0.
    pub fn new(dims: usize) -> Result<Self> {
        expect_dims("LayerNorm", dims)?;
        let weight = Some(Param::new(ops::ones([dims], DType::F32)?));
        let bias = Some(Param::new(ops::zeros([dims], DType::F32)?));
        Ok(LayerNorm { weight, bias, eps: 1e-5 })
    }

    /// With scale and shift, or without either.
    pub fn affine(mut self, affine: bool) -> Self {
        if !affine {
            (self.weight, self.bias) = (None, None);
        }
        self
    }

    /// With a shift, or without.
    pub fn bias(mut self, bias: bool) -> Self {
        if !bias {
            self.bias = None;
        }
        self
    }

    /// With this added to the variance.
    ///
    /// # Errors
    /// Where `eps` is negative or not finite.
    pub fn eps(mut self, eps: f64) -> Result<Self> {
        self.eps = expect_eps("LayerNorm", eps)?;
        Ok(self)
    }
}

impl Layer for LayerNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        let weight = self.weight.as_ref().map(Param::get);
        let bias = self.bias.as_ref().map(Param::get);
        ops::layer_norm(x, weight.as_ref(), bias.as_ref(), self.eps)
    }
}

impl RmsNorm {
    /// Over a last axis of `dims`, with scale 1 and eps 1e-5.
    ///
    /// # Errors
    /// Where `dims` is 0.
    pub fn new(dims: usize) -> Result<Self> {
        expect_dims("RmsNorm", dims)?;
        Ok(RmsNorm { weight: Param::new(ops::ones([dims], DType::F32)?), eps: 1e-5 })
    }

    /// With this added to the mean square.
    ///
    /// # Errors
    /// Where `eps` is negative or not finite.
    pub fn eps(mut self, eps: f64) -> Result<Self> {
        self.eps = expect_eps("RmsNorm", eps)?;
        Ok(self)
    }
}

impl Layer for RmsNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        ops::rms_norm(x, Some(&self.weight.get()), self.eps)
    }
}

impl BatchNorm {
    /// For `channels` channels, with scale 1, shift 0, eps 1e-5 and momentum 0.1.
    ///
    /// # Errors
    /// Where `channels` is 0.
    pub fn new(channels: usize) -> Result<Self> {
        expect_dims("BatchNorm", channels)?;
        let ones = ops::ones([channels], DType::F32)?;
        let zeros = ops::zeros([channels], DType::F32)?;
        Ok(BatchNorm {
            weight: Some(Param::new(ones.clone())),
            bias: Some(Param::new(zeros.clone())),
            running_mean: Some(Buffer::new(zeros)),
            running_var: Some(Buffer::new(ones)),
            channels,
            eps: 1e-5,
            momentum: 0.1,
            mode: Mode::new(),
        })
    }

    /// With scale and shift, or without either.
    pub fn affine(mut self, affine: bool) -> Self {
        if !affine {
            (self.weight, self.bias) = (None, None);
        }
        self
    }

    /// With running statistics, or with those of the batch in evaluation mode too.
    pub fn track_running_stats(mut self, track: bool) -> Self {
        if !track {
            (self.running_mean, self.running_var) = (None, None);
        }
        self
    }

    /// With this added to the variance.
    ///
    /// # Errors
    /// Where `eps` is negative or not finite.
    pub fn eps(mut self, eps: f64) -> Result<Self> {
        self.eps = expect_eps("BatchNorm", eps)?;
        Ok(self)
    }

    /// With the running statistics moved by this part at each step.
    ///
    /// # Errors
    /// Where `momentum` is not in [0, 1].
    pub fn momentum(mut self, momentum: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&momentum) {
            let detail = format!("momentum {momentum} is not in [0, 1]");
            return Err(Error::argument("BatchNorm", detail));
        }
        self.momentum = momentum;
        Ok(self)
    }

    /// Moves the running statistics towards the mean and variance of a batch.
    fn note(&self, x: &Array, mean: &Array, variance: &Array) -> Result<()> {
        let count = x.size() / self.channels;
        let (true, Some(running_mean), Some(running_var)) =
            (self.mode.is_training(), &self.running_mean, &self.running_var)
        else {
            return Ok(());
        };
        if count < 2 {
            let detail = format!("needs two values a channel to train, input is {}", x.aval());
            return Err(Error::shape("BatchNorm", detail));
        }
        self.follow(running_mean, mean, 1.0)?;
        self.follow(running_var, variance, count as f64 / (count - 1) as f64)
    }

    /// Moves a running statistic towards `scale` times the batch's.
    fn follow(&self, running: &Buffer, batch: &Array, scale: f64) -> Result<()> {
        let former = running.get();
        let batch = ops::astype(&ops::stop_gradient(batch)?, former.dtype())?;
        let kept = ops::multiply(&former, 1.0 - self.momentum)?;
        running.set(ops::add(&kept, &ops::multiply(&batch, self.momentum * scale)?)?);
        Ok(())
    }
}

impl Layer for BatchNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        if x.rank() < 2 || x.shape()[x.rank() - 1] != self.channels || !x.dtype().is_float() {
            let detail = format!("takes floats [N, .., {}], input is {}", self.channels, x.aval());
            return Err(Error::shape("BatchNorm", detail));
        }
        let (weight, bias) = (&self.weight, &self.bias);
        let (mean, variance) = match (&self.running_mean, &self.running_var) {
            (Some(mean), Some(variance)) if !self.mode.is_training() => {
                (mean.get(), variance.get())
            }
            _ => {
                let [weight, bias] = [weight, bias].map(|p| p.as_ref().map(Param::get));
                let all = ops::batch_norm(x, weight.as_ref(), bias.as_ref(), self.eps)?;
                self.note(x, &all[1], &all[2])?;
                return Ok(all[0].clone());
            }
        };
        let wide = ops::astype(x, x.dtype().accumulator())?;
        let mut scale = ops::rsqrt(&ops::add(&variance, self.eps)?)?;
        if let Some(weight) = &self.weight {
            scale = ops::multiply(&scale, &weight.get())?;
        }
        let mut y = ops::multiply(&ops::subtract(&wide, &mean)?, &scale)?;
        if let Some(bias) = &self.bias {
            y = ops::add(&y, &bias.get())?;
        }
        ops::astype(&y, x.dtype())
    }
}
