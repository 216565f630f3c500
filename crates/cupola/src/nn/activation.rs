//! Activations: the functions of [`crate::ops`], and layers that hold their parameters.

use cupola_core::{Array, DType, Result, ops};

use super::cell::Param;
use super::{Layer, Module, init};

pub use cupola_core::ops::{
    celu, elu, gelu, gelu_approx, glu, hard_shrink, hard_sigmoid, hard_swish, hard_tanh,
    leaky_relu, log_sigmoid, log_softmax, mish, prelu, relu, relu6, selu, sigmoid, silu, softmax,
    softmin, softplus, softshrink, softsign, step, tanh, tanh_shrink,
};

/// max(x, 0)².
///
/// D. R. So et al., *Primer: searching for efficient transformers for language modeling*, NeurIPS
/// 2021.
///
/// # Errors
/// None but those of recording.
///
/// # Example
/// ```
/// use cupola::{Array, nn};
/// let x = Array::from_slice(&[-1.0f32, 3.0], [2])?;
/// assert_eq!(nn::relu2(&x)?.to_vec::<f32>()?, [0.0, 9.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn relu2(x: &Array) -> Result<Array> {
    // NaN is kept, and so is its slope.
    ops::square(&ops::where_(&ops::less_equal(x, 0)?, 0, x)?)
}

/// [`gelu`] through the sigmoid: x·σ(1.702·x).
///
/// D. Hendrycks, K. Gimpel, *Gaussian error linear units*, 2016.
///
/// # Errors
/// None but those of recording.
///
/// # Example
/// ```
/// use cupola::{Array, nn};
/// let y = nn::gelu_fast_approx(&Array::scalar(1.0f32))?.item::<f32>()?;
/// assert!((y - 0.845796).abs() < 1e-5);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn gelu_fast_approx(x: &Array) -> Result<Array> {
    let wide = ops::astype(x, x.dtype().to_inexact().accumulator())?;
    let y = ops::multiply(&wide, &sigmoid(&ops::multiply(&wide, 1.702)?)?)?;
    ops::astype(&y, x.dtype().to_inexact())
}

macro_rules! layers {
    ($($name:ident $function:ident;)*) => {$(
        #[doc = concat!("[`", stringify!($function), "`] as a layer.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Module)]
        pub struct $name;

        impl Layer for $name {
            fn forward(&self, x: &Array) -> Result<Array> {
                $function(x)
            }
        }
    )*};
}

layers! {
    Relu relu;
    Relu2 relu2;
    Relu6 relu6;
    Selu selu;
    Gelu gelu;
    GeluApprox gelu_approx;
    GeluFastApprox gelu_fast_approx;
    Silu silu;
    Sigmoid sigmoid;
    LogSigmoid log_sigmoid;
    Softplus softplus;
    Softsign softsign;
    Tanh tanh;
    HardTanh hard_tanh;
    HardSigmoid hard_sigmoid;
    HardSwish hard_swish;
    TanhShrink tanh_shrink;
    Mish mish;
}

macro_rules! scaled_layers {
    ($($name:ident $function:ident $parameter:ident: $type:ty = $default:expr, $what:literal;)*) => {$(
        #[doc = concat!("[`ops::", stringify!($function), "`] as a layer.")]
        #[derive(Clone, Copy, Debug, PartialEq, Module)]
        pub struct $name {
            #[doc = $what]
            pub $parameter: $type,
        }

        impl $name {
            #[doc = concat!("With this ", stringify!($parameter), ".")]
            pub fn new($parameter: $type) -> Self {
                Self { $parameter }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new($default)
            }
        }

        impl Layer for $name {
            fn forward(&self, x: &Array) -> Result<Array> {
                ops::$function(x, self.$parameter)
            }
        }
    )*};
}

scaled_layers! {
    LeakyRelu leaky_relu slope: f64 = 0.01, "The slope for negative elements; 0.01.";
    Elu elu alpha: f64 = 1.0, "What negative elements approach; 1.";
    Celu celu alpha: f64 = 1.0, "What negative elements approach; 1.";
    HardShrink hard_shrink lambda: f64 = 0.5, "What is cut off; 0.5.";
    Softshrink softshrink lambda: f64 = 0.5, "What is cut off; 0.5.";
    Step step threshold: f64 = 0.0, "Above this the result is 1; 0.";
    Glu glu axis: isize = -1, "The axis that is halved; the last.";
    Softmax softmax axis: isize = -1, "The axis that sums to 1; the last.";
    LogSoftmax log_softmax axis: isize = -1, "The axis whose exponentials sum to 1; the last.";
    Softmin softmin axis: isize = -1, "The axis that sums to 1; the last.";
}

/// [`ops::prelu`] as a layer: the slope for negative elements is learned.
///
/// K. He et al., *Delving deep into rectifiers*, ICCV 2015.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{Layer, PRelu}};
/// let y = PRelu::new(1)?.forward(&Array::from_slice(&[-4.0f32, 2.0], [2])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [-1.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct PRelu {
    /// The slopes.
    pub weight: Param,
}

impl PRelu {
    /// One slope for each of `count` channels, or one for all; they start at 0.25.
    ///
    /// # Errors
    /// None but those of recording.
    pub fn new(count: usize) -> Result<Self> {
        Ok(PRelu { weight: Param::new(init::constant(0.25, [count], DType::F32)?) })
    }
}

impl Layer for PRelu {
    fn forward(&self, x: &Array) -> Result<Array> {
        prelu(x, &self.weight.get())
    }
}
