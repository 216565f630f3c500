//! Where images have their channels.

use super::{flatten, moveaxis, permute, unflatten};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::shape::Dims;

/// Where images and kernels have their channels. Functions of images compute with channels last, as in MLX;
/// [`DataFormat::with`] asks them about images with channels first, as in PyTorch.
///
/// Axes are moved as they are recorded: what lies between two convolutions of images with channels first is computed
/// as it lies in memory.
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::{ConvOptions, DataFormat}};
/// let (x, w) = (ops::ones([1, 3, 8, 8], DType::F32)?, ops::ones([4, 3, 5, 5], DType::F32)?);
/// let options = ConvOptions::new().padding(2).data_format(DataFormat::ChannelsFirst);
/// assert_eq!(ops::conv2d(&x, &w, &options)?.shape()[..], [1, 4, 8, 8]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum DataFormat {
    /// `[N, input.., C]`, and kernels `[O, kernel.., I]`.
    #[default]
    ChannelsLast,
    /// `[N, C, input..]`, and kernels `[O, I, kernel..]`.
    ChannelsFirst,
}

impl DataFormat {
    /// What `f`, a function of an image with channels last, makes of one in this format, in this format.
    ///
    /// # Errors
    /// Those of `f`, which say where the shapes that they tell are not in this format.
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, ops, ops::DataFormat};
    /// let x = ops::ones([1, 3, 8, 8], DType::F32)?;
    /// let y = DataFormat::ChannelsFirst.with(&x, |x| ops::adaptive_avg_pool(x, &[2, 4]))?;
    /// assert_eq!(y.shape()[..], [1, 3, 2, 4]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn with(self, x: &Array, f: impl FnOnce(&Array) -> Result<Array>) -> Result<Array> {
        self.from_last(&self.told(x, f(&self.to_last(x)?))?)
    }

    /// An image in this format with its channels moved last.
    ///
    /// # Errors
    /// None but those of recording.
    pub fn to_last(self, x: &Array) -> Result<Array> {
        match self {
            DataFormat::ChannelsFirst if x.rank() > 2 => moveaxis(x, 1, -1),
            DataFormat::ChannelsFirst | DataFormat::ChannelsLast => Ok(x.clone()),
        }
    }

    /// An image with channels last in this format.
    ///
    /// # Errors
    /// None but those of recording.
    pub fn from_last(self, x: &Array) -> Result<Array> {
        match self {
            DataFormat::ChannelsFirst if x.rank() > 2 => moveaxis(x, -1, 1),
            DataFormat::ChannelsFirst | DataFormat::ChannelsLast => Ok(x.clone()),
        }
    }

    /// Rows of windows, `[N, windows, taps·C]`, in this format: `[N, C·taps, windows]`.
    pub(crate) fn windows_from_last(self, rows: &Array, channels: usize) -> Result<Array> {
        if self == DataFormat::ChannelsLast {
            return Ok(rows.clone());
        }
        let taps = rows.shape()[2].checked_div(channels).unwrap_or(0);
        let apart = unflatten(rows, 2, [taps as isize, channels as isize])?;
        flatten(&permute(&apart, Dims::from_slice(&[0, 3, 2, 1]))?, 1, 2)
    }

    /// Windows in this format as rows `[N, windows, taps·C]`.
    pub(crate) fn windows_to_last(self, windows: &Array, taps: usize) -> Result<Array> {
        if self == DataFormat::ChannelsLast {
            return Ok(windows.clone());
        }
        if windows.rank() != 3 || taps == 0 || !windows.shape()[1].is_multiple_of(taps) {
            let detail = format!("{} is not [N, C·{taps}, windows]", windows.aval());
            return Err(Error::shape("fold", detail));
        }
        let channels = windows.shape()[1] / taps;
        let apart = unflatten(windows, 1, [channels as isize, taps as isize])?;
        flatten(&permute(&apart, Dims::from_slice(&[0, 3, 2, 1]))?, 2, 3)
    }

    /// A result for `given` whose error says that shapes are told with channels last, where they are given with channels
    /// first.
    pub(crate) fn told<T>(self, given: &Array, result: Result<T>) -> Result<T> {
        if self == DataFormat::ChannelsLast || given.rank() <= 2 {
            return result;
        }
        let note = " (shapes with the channels moved last)";
        result.map_err(|error| match error {
            Error::Shape { op, detail } => Error::Shape { op, detail: detail + note },
            Error::DType { op, detail } => Error::DType { op, detail: detail + note },
            Error::Argument { op, detail } => Error::Argument { op, detail: detail + note },
            other => other,
        })
    }
}
