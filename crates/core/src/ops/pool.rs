//! Pooling over windows of the spatial axes.

use super::conv::{PerAxis, each_axis};
use super::operand::{cast, inexact};
use super::{DataFormat, PadMode, Windows, divide, max, mean, pad, real, reshape, unfold};
use crate::array::Array;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::prim::{Pool, PoolRole};
use crate::shape::Dims;

/// The windows of a pooling. A list of one entry stands for every spatial axis.
///
/// # Example
/// ```
/// use cupola::ops::PoolOptions;
/// let options = PoolOptions::new(3).stride(2).padding(1);
/// assert_eq!(options.padding, [(1, 1)]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolOptions {
    /// The window's size.
    pub window: Vec<usize>,
    /// Steps between windows; the window's size where it is empty.
    pub stride: Vec<usize>,
    /// Padding before and after the input; 0.
    pub padding: Vec<(usize, usize)>,
    /// Steps between the elements of a window; 1.
    pub dilation: Vec<usize>,
    /// Where input and output have their channels; last.
    pub data_format: DataFormat,
}

impl PoolOptions {
    /// Windows side by side, without padding.
    pub fn new(window: impl Into<PerAxis>) -> Self {
        PoolOptions {
            window: window.into().into_vec(),
            stride: Vec::new(),
            padding: vec![(0, 0)],
            dilation: vec![1],
            data_format: DataFormat::ChannelsLast,
        }
    }

    /// With these steps between windows.
    pub fn stride(mut self, stride: impl Into<PerAxis>) -> Self {
        self.stride = stride.into().into_vec();
        self
    }

    /// With so much padding before and after the input.
    pub fn padding(mut self, padding: impl Into<PerAxis>) -> Self {
        self.padding = padding.into().into_pairs();
        self
    }

    /// With windows whose elements are so far apart.
    pub fn dilation(mut self, dilation: impl Into<PerAxis>) -> Self {
        self.dilation = dilation.into().into_vec();
        self
    }

    /// With input and output in this format.
    pub fn data_format(mut self, data_format: DataFormat) -> Self {
        self.data_format = data_format;
        self
    }

    /// The same with an entry for each of `axes` spatial axes.
    pub(super) fn along(&self, op: &'static str, axes: usize) -> Result<PoolOptions> {
        let window = each_axis(op, "window", &self.window, axes)?;
        let stride = match &self.stride[..] {
            [] => window.clone(),
            stride => each_axis(op, "stride", stride, axes)?,
        };
        let padding = each_axis(op, "padding", &self.padding, axes)?;
        let mut dilation = each_axis(op, "dilation", &self.dilation, axes)?;
        for (step, &size) in dilation.iter_mut().zip(&window) {
            if size == 1 {
                // A window of one element is the same however far apart its elements are.
                *step = (*step).min(1);
            }
        }
        Ok(PoolOptions { window, stride, padding, dilation, data_format: self.data_format })
    }
}

fn pool(op: &'static str, role: PoolRole, x: &Array, options: &PoolOptions) -> Result<Array> {
    let axes = x.rank().saturating_sub(2);
    if axes == 0 {
        return Err(Error::shape(
            op,
            format!("input {} has no spatial axes between its first and last", x.aval()),
        ));
    }
    let PoolOptions { window, stride, padding, dilation, data_format: _ } =
        options.along(op, axes)?;
    let pool = Pool {
        role,
        input: Dims::from_slice(&x.shape()[1..=axes]),
        window: window.into(),
        stride: stride.into(),
        padding,
        dilation: dilation.into(),
    };
    Array::apply(pool, &[x])
}

/// What `fold` makes of the elements of each window, which are axis 2 of `[N, windows, taps, C]`: for dtypes that no
/// kernel pools. Padding is `beyond`.
fn pool_windows(
    op: &'static str,
    x: &Array,
    options: &PoolOptions,
    beyond: Scalar,
    fold: impl FnOnce(&Array) -> Result<Array>,
) -> Result<Array> {
    // The shape is what it is of the kernel's dtypes.
    let shape = pool(op, PoolRole::Sum, &real(x)?, options)?.shape().clone();
    let axes = x.rank() - 2;
    let PoolOptions { window, stride, padding, dilation, data_format: _ } =
        options.along(op, axes)?;
    let taps = window.iter().product::<usize>();
    let sides: Vec<(usize, usize)> = [(0, 0)].into_iter().chain(padding).chain([(0, 0)]).collect();
    let windows = Windows { stride, dilation, ..Windows::new(window) };
    let rows = unfold(&pad(x, &sides[..], PadMode::Constant(beyond))?, &windows)?;
    let count = shape[1..=axes].iter().product::<usize>();
    let rows = reshape(&rows, [x.shape()[0], count, taps, x.shape()[axes + 1]])?;
    reshape(&fold(&rows)?, shape)
}

/// The largest element of each window; NaN if there is one. Complex numbers are in lexicographic order.
///
/// # Shapes
/// `[N, input.., C]` gives `[N, output.., C]` with (input + padding − span)/stride + 1 outputs along an axis, where a
/// window spans (window − 1)·dilation + 1 elements; with channels first `[N, C, input..]` gives `[N, C, output..]`.
/// Padding is never the largest.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 4.0, 3.0, 2.0], [1, 4, 1])?;
/// assert_eq!(ops::max_pool(&x, &ops::PoolOptions::new(2))?.to_vec::<f32>()?, [4.0, 3.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn max_pool(x: &Array, options: &PoolOptions) -> Result<Array> {
    let op = "max_pool";
    options.data_format.with(x, |x| match x.dtype().is_complex() {
        true => pool_windows(
            op,
            x,
            options,
            Scalar::Complex(f32::NEG_INFINITY, f32::NEG_INFINITY),
            |x| max(x, 2, false),
        ),
        false => pool(op, PoolRole::Max, x, options),
    })
}

/// The mean of each window; padding counts as zeros.
///
/// # Shapes
/// As [`max_pool`].
///
/// # Dtypes
/// Integers are taken as `float32`; half types are summed and divided in `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 4.0, 3.0, 2.0], [1, 4, 1])?;
/// assert_eq!(ops::avg_pool(&x, &ops::PoolOptions::new(2))?.to_vec::<f32>()?, [2.5, 2.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn avg_pool(x: &Array, options: &PoolOptions) -> Result<Array> {
    let x = inexact(x)?;
    options.data_format.with(&x, |x| {
        if x.dtype().is_complex() {
            return pool_windows("avg_pool", x, options, 0.into(), |x| mean(x, 2, false));
        }
        let wide = cast(x, x.dtype().accumulator())?;
        let total = pool("avg_pool", PoolRole::Sum, &wide, options)?;
        let window = each_axis("avg_pool", "window", &options.window, x.rank() - 2)?;
        cast(&divide(&total, window.iter().map(|&w| w as f64).product::<f64>())?, x.dtype())
    })
}
