//! `cupola.core.fft`.

use cupola::ops::{self, FftNorm, StftOptions, StftPad};
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::wrong_value;
use crate::generated::docs;
use crate::operand::{Arr, AxisList, SizesArg, give, keep_doubles};

/// A mode of normalisation, by its name.
fn mode(name: &str) -> PyResult<FftNorm> {
    match name {
        "backward" => Ok(FftNorm::Backward),
        "ortho" => Ok(FftNorm::Ortho),
        "forward" => Ok(FftNorm::Forward),
        other => Err(wrong_value(format!("norm '{other}' is not backward, ortho or forward"))),
    }
}

macro_rules! along_one {
    ($($name:ident)*) => {$(
        #[doc = docs!(fft::$name)]
        #[pyfunction]
        #[pyo3(signature = (a, n = None, axis = -1, norm = "backward", stream = None), text_signature = "(a, n=None, axis=-1, norm='backward', stream=None)")]
        pub fn $name(
            a: Arr,
            n: Option<isize>,
            axis: isize,
            norm: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let norm = mode(norm)?;
            on(stream, || give(ops::$name(&a, n, axis, norm)))
        }
    )*};
}

along_one! { fft ifft rfft irfft hfft ihfft }

macro_rules! along_two {
    ($($name:ident)*) => {$(
        #[doc = docs!(fft::$name)]
        #[pyfunction]
        #[pyo3(signature = (a, s = None, axes = AxisList::last_two(), norm = "backward", stream = None), text_signature = "(a, s=None, axes=(-2, -1), norm='backward', stream=None)")]
        pub fn $name(
            a: Arr,
            s: Option<SizesArg>,
            axes: AxisList,
            norm: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let norm = mode(norm)?;
            on(stream, || give(ops::$name(&a, s.as_ref().map(|s| &s.0[..]), axes.0, norm)))
        }
    )*};
}

along_two! { fft2 ifft2 rfft2 irfft2 }

macro_rules! along_several {
    ($($name:ident)*) => {$(
        #[doc = docs!(fft::$name)]
        #[pyfunction]
        #[pyo3(signature = (a, s = None, axes = AxisList::all(), norm = "backward", stream = None), text_signature = "(a, s=None, axes=None, norm='backward', stream=None)")]
        pub fn $name(
            a: Arr,
            s: Option<SizesArg>,
            axes: AxisList,
            norm: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let norm = mode(norm)?;
            on(stream, || give(ops::$name(&a, s.as_ref().map(|s| &s.0[..]), axes.0, norm)))
        }
    )*};
}

along_several! { fftn ifftn rfftn irfftn }

/// A length that has to be positive.
fn positive(op: &str, what: &str, value: isize) -> PyResult<usize> {
    match usize::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(wrong_value(format!("{op}: {what} is {value}, which is not positive"))),
    }
}

/// The options of both directions.
fn options(
    op: &str,
    hop_length: Option<isize>,
    win_length: Option<isize>,
    center: bool,
    norm: &str,
    onesided: Option<bool>,
) -> PyResult<StftOptions> {
    Ok(StftOptions {
        hop_length: hop_length.map(|hop| positive(op, "hop_length", hop)).transpose()?,
        win_length: win_length
            .map(|size| {
                usize::try_from(size)
                    .map_err(|_| wrong_value(format!("{op}: win_length is {size}")))
            })
            .transpose()?,
        center,
        norm: mode(norm)?,
        onesided,
        ..StftOptions::default()
    })
}

#[doc = docs!(fft::stft)]
#[pyfunction]
#[pyo3(signature = (
    x, n_fft = 2048, hop_length = None, win_length = None, window = None, center = true,
    pad_mode = "reflect", norm = "backward", onesided = None, stream = None
))]
pub fn stft(
    mut x: Arr,
    n_fft: isize,
    hop_length: Option<isize>,
    win_length: Option<isize>,
    mut window: Option<Arr>,
    center: bool,
    pad_mode: &str,
    norm: &str,
    onesided: Option<bool>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut x].into_iter().chain(&mut window));
    let n_fft = positive("stft", "n_fft", n_fft)?;
    let mut options = options("stft", hop_length, win_length, center, norm, onesided)?;
    options.pad = match pad_mode {
        "reflect" => StftPad::Reflect,
        "constant" => StftPad::Constant,
        "edge" => StftPad::Edge,
        other => {
            let text = format!("stft: pad_mode '{other}' is not reflect, constant or edge");
            return Err(wrong_value(text));
        }
    };
    on(stream, || give(ops::stft(&x, n_fft, window.as_deref(), &options)))
}

#[doc = docs!(fft::istft)]
#[pyfunction]
#[pyo3(signature = (
    stft_matrix, n_fft = None, hop_length = None, win_length = None, window = None, center = true,
    norm = "backward", onesided = None, length = None, stream = None
))]
pub fn istft(
    stft_matrix: Arr,
    n_fft: Option<isize>,
    hop_length: Option<isize>,
    win_length: Option<isize>,
    window: Option<Arr>,
    center: bool,
    norm: &str,
    onesided: Option<bool>,
    length: Option<isize>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let n_fft = n_fft.map(|n| positive("istft", "n_fft", n)).transpose()?;
    let options = options("istft", hop_length, win_length, center, norm, onesided)?;
    // As in MLX, less than nothing is nothing.
    let length = length.map(|length| length.max(0) as usize);
    on(stream, || give(ops::istft(&stft_matrix, n_fft, window.as_deref(), length, &options)))
}
