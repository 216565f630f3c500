//! Norms over the spatial axes of each example: of groups of channels, and of single ones.

use cupola_core::{Array, DType, Error, Result, ops};
use ops::Groups;

use super::cell::Param;
use super::norm::{expect_dims, expect_eps};
use super::{Layer, Module};

/// Mean 0 and variance 1 of each group of channels of each example over the spatial axes, then a
/// learned scale and shift.
///
/// Y. Wu, K. He, *Group normalization*, ECCV 2018.
///
/// # Shapes
/// `[N, .., C]` gives the same; `weight` and `bias` are `[C]`.
///
/// # Dtypes
/// Half types are computed in `float32`; the result has x's dtype.
///
/// # Errors
/// `forward` fails where the input is not of floats with two axes or more and C channels.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{GroupNorm, Layer}};
/// let x = Array::from_slice(&[1.0f32, 10.0, 3.0, 30.0], [1, 4])?;
/// let y = GroupNorm::new(2, 4)?.forward(&x)?.to_vec::<f32>()?;
/// assert!((y[0] + 1.0).abs() < 1e-4 && (y[2] - 1.0).abs() < 1e-4);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct GroupNorm {
    /// The scale.
    pub weight: Option<Param>,
    /// The shift.
    pub bias: Option<Param>,
    groups: usize,
    dims: usize,
    eps: f64,
    pytorch_compatible: bool,
}

/// Mean 0 and variance 1 of each channel of each example over the spatial axes, then a learned
/// scale and shift where [`InstanceNorm::affine`] asks for them.
///
/// D. Ulyanov, A. Vedaldi, V. Lempitsky, *Instance normalization: the missing ingredient for fast
/// stylization*, 2016.
///
/// # Shapes
/// `[N, .., C]` with one axis between or more gives the same; `weight` and `bias` are `[C]`.
///
/// # Dtypes
/// Half types are computed in `float32`; the result has x's dtype.
///
/// # Errors
/// `forward` fails where the input is not of floats with three axes or more and C channels.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{InstanceNorm, Layer}};
/// let x = Array::from_slice(&[1.0f32, 10.0, 3.0, 30.0], [1, 2, 2])?;
/// let y = InstanceNorm::new(2)?.forward(&x)?.to_vec::<f32>()?;
/// assert!((y[0] + 1.0).abs() < 1e-4 && (y[3] - 1.0).abs() < 1e-4);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct InstanceNorm {
    /// The scale.
    pub weight: Option<Param>,
    /// The shift.
    pub bias: Option<Param>,
    dims: usize,
    eps: f64,
}

/// Scale 1 and shift 0.
fn affine_of(dims: usize) -> Result<(Option<Param>, Option<Param>)> {
    let weight = Param::new(ops::ones([dims], DType::F32)?);
    Ok((Some(weight), Some(Param::new(ops::zeros([dims], DType::F32)?))))
}

impl GroupNorm {
    /// So many groups of `dims` channels, with scale 1, shift 0 and eps 1e-5. A group is every
    /// `groups`-th channel.
    ///
    /// # Errors
    /// Where `dims` is 0 or no multiple of `groups`.
    pub fn new(groups: usize, dims: usize) -> Result<Self> {
        expect_dims("GroupNorm", dims)?;
        if groups == 0 || !dims.is_multiple_of(groups) {
            let detail = format!("groups {groups} do not divide dims {dims}");
            return Err(Error::argument("GroupNorm", detail));
        }
        let (weight, bias) = affine_of(dims)?;
        Ok(GroupNorm { weight, bias, groups, dims, eps: 1e-5, pytorch_compatible: false })
    }

    /// With scale and shift, or without either.
    pub fn affine(mut self, affine: bool) -> Self {
        if !affine {
            (self.weight, self.bias) = (None, None);
        }
        self
    }

    /// With this added to the variance.
    ///
    /// # Errors
    /// Where `eps` is negative or not finite.
    pub fn eps(mut self, eps: f64) -> Result<Self> {
        self.eps = expect_eps("GroupNorm", eps)?;
        Ok(self)
    }

    /// With channels that stand beside each other as a group, as in PyTorch, or every `groups`-th.
    pub fn pytorch_compatible(mut self, pytorch_compatible: bool) -> Self {
        self.pytorch_compatible = pytorch_compatible;
        self
    }
}

impl InstanceNorm {
    /// For `dims` channels, without scale and shift, with eps 1e-5.
    ///
    /// # Errors
    /// Where `dims` is 0.
    pub fn new(dims: usize) -> Result<Self> {
        expect_dims("InstanceNorm", dims)?;
        Ok(InstanceNorm { weight: None, bias: None, dims, eps: 1e-5 })
    }

    /// With scale and shift, which start at 1 and 0, or without either.
    ///
    /// # Errors
    /// None but those of recording.
    pub fn affine(mut self, affine: bool) -> Result<Self> {
        (self.weight, self.bias) = if affine { affine_of(self.dims)? } else { (None, None) };
        Ok(self)
    }

    /// With this added to the variance.
    ///
    /// # Errors
    /// Where `eps` is negative or not finite.
    pub fn eps(mut self, eps: f64) -> Result<Self> {
        self.eps = expect_eps("InstanceNorm", eps)?;
        Ok(self)
    }
}

impl Layer for GroupNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        expect_input("GroupNorm", x, 2, self.dims)?;
        let groups = if self.pytorch_compatible { Groups::Beside } else { Groups::Every };
        normalized(x, groups(self.groups), [&self.weight, &self.bias], self.eps)
    }
}

impl Layer for InstanceNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        expect_input("InstanceNorm", x, 3, self.dims)?;
        normalized(x, Groups::Every(self.dims), [&self.weight, &self.bias], self.eps)
    }
}

fn normalized(x: &Array, groups: Groups, own: [&Option<Param>; 2], eps: f64) -> Result<Array> {
    let [weight, bias] = own.map(|param| param.as_ref().map(Param::get));
    ops::group_norm(x, groups, weight.as_ref(), bias.as_ref(), eps)
}

fn expect_input(op: &'static str, x: &Array, least: usize, dims: usize) -> Result<()> {
    if x.rank() >= least && x.aval().shape.last() == Some(&dims) && x.dtype().is_float() {
        return Ok(());
    }
    let form = if least == 2 { "[N, .., " } else { "[N, L, .., " };
    Err(Error::shape(op, format!("takes floats {form}{dims}], input is {}", x.aval())))
}
