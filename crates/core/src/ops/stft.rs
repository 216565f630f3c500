//! Fourier transforms of the parts of a signal, one after the other.

use super::fft::FftNorm;
use super::operand::{cast, constant_like};
use super::{
    add, divide, fft, flatten, ifft, iota, irfft, maximum, minimum, multiply, ones, pad, real,
    remainder, reshape, rfft, square, subtract, swapaxes, take,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::PadMode;
use crate::prim::record::{add_along, broadcast, slice_axis};
use crate::shape::{Aval, Shape};

/// What a signal has before its start and after its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StftPad {
    /// Itself backwards, without the first and the last element again.
    #[default]
    Reflect,
    /// Zeros.
    Constant,
    /// The first and the last element.
    Edge,
}

/// How [`stft`] cuts a signal into frames, and [`istft`] puts it together again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StftOptions {
    /// Elements from the start of a frame to that of the next; `None` for a quarter of a frame.
    pub hop_length: Option<usize>,
    /// Elements of the window of ones that is taken where none is given; `None` for a whole frame.
    pub win_length: Option<usize>,
    /// Whether the middle of the first frame is the first element.
    pub center: bool,
    /// What is before the first element and after the last one where `center` is true.
    pub pad: StftPad,
    /// What the transforms are multiplied with.
    pub norm: FftNorm,
    /// Whether there is half a spectrum, as real signals have; `None` for that of real ones and the
    /// whole one of complex ones.
    pub onesided: Option<bool>,
}

impl Default for StftOptions {
    fn default() -> Self {
        StftOptions {
            hop_length: None,
            win_length: None,
            center: true,
            pad: StftPad::Reflect,
            norm: FftNorm::Backward,
            onesided: None,
        }
    }
}

/// Smaller sums of squared windows do not lift what is divided by them.
const LEAST_ENVELOPE: f64 = 1e-8;

impl StftOptions {
    /// Elements from frame to frame.
    fn hop(&self, op: &'static str, n_fft: usize) -> Result<usize> {
        if n_fft == 0 {
            return Err(Error::argument(op, "n_fft is 0"));
        }
        match self.hop_length.unwrap_or(n_fft / 4) {
            0 => Err(Error::argument(op, format!("hop_length is 0 (n_fft {n_fft})"))),
            hop => Ok(hop),
        }
    }

    /// The window with as many zeros on both sides as a frame needs.
    fn window(&self, op: &'static str, n_fft: usize, window: Option<&Array>) -> Result<Array> {
        let window = match window {
            Some(window) if window.rank() != 1 => {
                let detail = format!("window {} has not one axis", window.aval());
                return Err(Error::shape(op, detail));
            }
            Some(window) if window.dtype().is_complex() => window.clone(),
            Some(window) => cast(window, DType::F32)?,
            None => ones(self.win_length.unwrap_or(n_fft), DType::F32)?,
        };
        let size = window.shape()[0];
        if size > n_fft {
            let detail = format!("a window of {size} elements is longer than n_fft, {n_fft}");
            return Err(Error::argument(op, detail));
        }
        let left = (n_fft - size) / 2;
        pad(&window, (left, n_fft - size - left), 0)
    }
}

/// For each frame the places of its elements: `[frames, n_fft]`.
fn places(frames: usize, n_fft: usize, hop: usize) -> Result<Array> {
    let shape = Shape::from([frames, n_fft]);
    let start = multiply(&iota(shape.clone(), 0, DType::U32)?, hop as u64)?;
    add(&start, &iota(shape, 1, DType::U32)?)
}

/// The spectra of overlapping frames of a signal: frame t is n_fft elements from t·hop on, times the
/// window.
///
/// # Shapes
/// The signal is the last axis of `x`. It becomes two: frequencies, n_fft/2 + 1 of half a spectrum,
/// and frames.
///
/// # Dtypes
/// Computed in `float32`, of complex numbers in `complex64`; the result is `complex64`.
///
/// # Errors
/// Where `n_fft` or the hop is 0, the window has not one axis or is longer than a frame, and where the
/// signal is shorter than one.
///
/// J. B. Allen, L. R. Rabiner, *A unified approach to short-time Fourier analysis and synthesis*, 1977.
///
/// # Example
/// ```
/// use cupola::ops::{self, StftOptions};
/// let x = ops::ones([32], cupola::DType::F32)?;
/// let spectra = ops::stft(&x, 8, None, &StftOptions::default())?;
/// assert_eq!(spectra.shape()[..], [5, 17]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn stft(
    x: &Array,
    n_fft: usize,
    window: Option<&Array>,
    options: &StftOptions,
) -> Result<Array> {
    let op = "stft";
    if x.rank() == 0 {
        return Err(Error::shape(op, format!("{} has no axis", x.aval())));
    }
    let hop = options.hop(op, n_fft)?;
    let window = options.window(op, n_fft, window)?;
    let is_complex = x.dtype().is_complex();
    let x = if is_complex { x.clone() } else { cast(x, DType::F32)? };
    let x = if options.center { padded(op, &x, n_fft / 2, options.pad)? } else { x };
    let axis = x.rank() - 1;
    let size = x.shape()[axis];
    if size < n_fft || u32::try_from(size).is_err() {
        let detail = format!("a signal of {size} elements has no frame of {n_fft}");
        return Err(Error::shape(op, detail));
    }
    let frames = (size - n_fft) / hop + 1;
    let cut = take(&x, &places(frames, n_fft, hop)?, axis as isize)?;
    let cut = multiply(&cut, &window)?;
    let spectra = match options.onesided.unwrap_or(!is_complex) {
        true => rfft(&cut, None, -1, options.norm)?,
        false => fft(&cut, None, -1, options.norm)?,
    };
    swapaxes(&spectra, -1, -2)
}

/// `x` with `by` elements more on both sides of its last axis.
fn padded(op: &'static str, x: &Array, by: usize, how: StftPad) -> Result<Array> {
    let (rank, size) = (x.rank(), x.shape()[x.rank() - 1]);
    let mut widths = vec![(0, 0); rank];
    widths[rank - 1] = (by, by);
    match how {
        StftPad::Constant => pad(x, &widths[..], 0),
        _ if size == 0 => Err(Error::shape(op, format!("{} has no element to repeat", x.aval()))),
        StftPad::Edge => pad(x, &widths[..], PadMode::Edge),
        StftPad::Reflect => {
            // Forth and back, as often as it takes.
            let period = 2 * (size - 1);
            let long = by.checked_mul(2).and_then(|both| both.checked_add(size + period));
            if long.is_none_or(|long| u32::try_from(long).is_err()) {
                return Err(Error::shape(
                    op,
                    format!("{by} elements around {} are too many", x.aval()),
                ));
            }
            let place = iota([size + 2 * by], 0, DType::U32)?;
            let order = match period {
                0 => multiply(&place, 0)?,
                _ => {
                    let shift = by.next_multiple_of(period) - by;
                    let at = remainder(&add(&place, shift as u64)?, period as u64)?;
                    minimum(&at, &subtract(period as u64, &at)?)?
                }
            };
            take(x, &order, rank as isize - 1)
        }
    }
}

/// The signal whose [`stft`] this is: the frames, times the window, are added where they overlap, and
/// divided by the sum of the squares of the windows there.
///
/// # Shapes
/// The last two axes of `spectra` are frequencies and frames. They become one: `length` elements, or
/// for `None` as many as all frames have together, without what `center` added.
///
/// # Dtypes
/// Computed in `complex64`; the result is `float32`.
///
/// # Errors
/// Where there are less than two axes, `n_fft` or the hop is 0, the window has not one axis or is longer
/// than a frame, and where there is no frame.
///
/// D. W. Griffin, J. S. Lim, *Signal estimation from modified short-time Fourier transform*, 1984.
///
/// # Example
/// ```
/// use cupola::ops::{self, StftOptions};
/// let x = ops::ones([32], cupola::DType::F32)?;
/// let options = StftOptions::default();
/// let back = ops::istft(&ops::stft(&x, 8, None, &options)?, None, None, None, &options)?;
/// assert!(ops::allclose(&back, &x, Default::default())?.item::<bool>()?);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn istft(
    spectra: &Array,
    n_fft: Option<usize>,
    window: Option<&Array>,
    length: Option<usize>,
    options: &StftOptions,
) -> Result<Array> {
    let op = "istft";
    let [lead @ .., frequencies, frames] = &spectra.shape()[..] else {
        return Err(Error::shape(op, format!("{} has less than two axes", spectra.aval())));
    };
    let (frequencies, frames) = (*frequencies, *frames);
    let onesided = options.onesided.unwrap_or(true);
    let whole = if onesided { 2 * frequencies.saturating_sub(1) } else { frequencies };
    let n_fft = n_fft.unwrap_or(whole);
    let hop = options.hop(op, n_fft)?;
    let window = real(&cast(&options.window(op, n_fft, window)?, DType::C64)?)?;
    if frames == 0 {
        return Err(Error::shape(op, format!("{} has no frame", spectra.aval())));
    }
    let size = (frames - 1).checked_mul(hop).and_then(|size| size.checked_add(n_fft));
    let size = size.filter(|&size| u32::try_from(size).is_ok()).ok_or_else(|| {
        Error::argument(op, format!("{frames} frames of {n_fft} with hop {hop} are too many"))
    })?;
    let by_frame = swapaxes(spectra, -1, -2)?;
    let points = Some(n_fft as isize);
    let cut = match onesided {
        true => irfft(&by_frame, points, -1, options.norm)?,
        false => real(&ifft(&by_frame, points, -1, options.norm)?)?,
    };
    let cut = multiply(&cut, &window)?;
    let places = flatten(&places(frames, n_fft, hop)?, 0, -1)?;
    let added = |parts: &Array, lead: &[usize]| -> Result<Array> {
        let of = |last: usize| -> Shape { lead.iter().copied().chain([last]).collect() };
        let parts = reshape(parts, of(frames * n_fft))?;
        let places = broadcast(&places, parts.shape())?;
        let aval = Aval { shape: of(size), dtype: DType::F32 };
        add_along(&aval, &parts, &places, lead.len())
    };
    let squares = broadcast(&square(&window)?, &Shape::from([frames, n_fft]))?;
    let envelope = added(&squares, &[])?;
    let least = constant_like(&envelope, LEAST_ENVELOPE);
    let signal = divide(&added(&cut, lead)?, &maximum(&envelope, &least)?)?;
    let axis = lead.len();
    let start = if options.center { (n_fft / 2).min(size) } else { 0 };
    let end = match length {
        Some(length) => start.saturating_add(length),
        None if options.center => size.saturating_sub(n_fft / 2).max(start),
        None => size,
    };
    let there = slice_axis(&signal, axis, start, end.min(size) - start)?;
    if end <= size {
        return Ok(there);
    }
    let mut widths = vec![(0, 0); axis + 1];
    widths[axis] = (0, end - size);
    pad(&there, &widths[..], 0)
}
