//! Discrete Fourier transforms, their frequencies, and spectra moved to the middle.
//!
//! A transform of n numbers is yₖ = Σⱼ xⱼ·e^(−2πi·jk/n), its inverse xⱼ = 1/n·Σₖ yₖ·e^(2πi·jk/n).

use super::operand::{Axes, Sizes, cast};
use super::{concatenate, conjugate, divide, iota, pad, roll, subtract};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::record::slice_axis;
use crate::prim::{Fft, FftKind, FftScale};
use crate::shape::{Dims, normalize_axis};

/// Which way of a Fourier transform is multiplied with what; n is the number of real or complex
/// numbers in the time domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FftNorm {
    /// The inverse with 1/n.
    #[default]
    Backward,
    /// Both ways with 1/√n.
    Ortho,
    /// The forward transform with 1/n.
    Forward,
}

impl FftNorm {
    /// The factor of a transform of `kind`.
    fn scale(self, kind: FftKind) -> FftScale {
        let is_forward = matches!(kind, FftKind::Forward | FftKind::Real);
        match self {
            FftNorm::Ortho => FftScale::Root,
            FftNorm::Forward if is_forward => FftScale::Whole,
            FftNorm::Backward if !is_forward => FftScale::Whole,
            FftNorm::Forward | FftNorm::Backward => FftScale::One,
        }
    }

    /// What takes the place of this one where the two ways are exchanged.
    fn swapped(self) -> FftNorm {
        match self {
            FftNorm::Backward => FftNorm::Forward,
            FftNorm::Ortho => FftNorm::Ortho,
            FftNorm::Forward => FftNorm::Backward,
        }
    }
}

/// Which transform is recorded: with the numbers of a whole spectrum, or with the half of one that
/// belongs to real numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Complex(FftKind),
    Real,
    HalfComplex,
}

/// Brings axes to the sizes that were asked for and transforms them; the last one is the one with
/// half a spectrum.
fn transformed(
    op: &'static str,
    x: &Array,
    way: Way,
    sizes: Option<&[isize]>,
    axes: &[isize],
    norm: FftNorm,
) -> Result<Array> {
    let axes: Dims =
        axes.iter().map(|&a| normalize_axis(op, a, x.rank())).collect::<Result<_>>()?;
    if (1..axes.len()).any(|i| axes[..i].contains(&axes[i])) {
        return Err(Error::argument(op, format!("axes {:?} of {} repeat", &axes[..], x.aval())));
    }
    if sizes.is_some_and(|sizes| sizes.len() != axes.len()) {
        let given = sizes.unwrap_or_default();
        return Err(Error::argument(
            op,
            format!("sizes {given:?} are not one for each of axes {:?}", &axes[..]),
        ));
    }
    let Some((&last, lead)) = axes.split_last() else {
        return Ok(x.clone());
    };
    // The sizes in the time domain.
    let given = |i: usize| -> Result<usize> {
        let own = x.shape()[axes[i]];
        let is_half = way == Way::HalfComplex && i + 1 == axes.len();
        let size = match sizes {
            Some(sizes) => sizes[i],
            None if is_half => 2 * (own as isize - 1),
            None => own as isize,
        };
        usize::try_from(size).ok().filter(|&size| size > 0).ok_or_else(|| {
            Error::argument(
                op,
                format!("a transform of {size} points along axis {} of {}", axes[i], x.aval()),
            )
        })
    };
    let time: Dims = (0..axes.len()).map(given).collect::<Result<_>>()?;
    let size = time[time.len() - 1];
    let mut x = cast(x, if way == Way::Real { DType::F32 } else { DType::C64 })?;
    for (i, &axis) in axes.iter().enumerate() {
        let is_half = way == Way::HalfComplex && axis == last;
        x = fitted(&x, axis, if is_half { size / 2 + 1 } else { time[i] })?;
    }
    let apply = |x: &Array, kind: FftKind, axes: &[usize]| {
        if axes.is_empty() {
            return Ok(x.clone());
        }
        let axes = Dims::from_slice(axes);
        Array::apply(Fft { kind, axes, scale: norm.scale(kind) }, &[x])
    };
    match way {
        Way::Complex(kind) => apply(&x, kind, &axes),
        Way::Real => apply(&apply(&x, FftKind::Real, &[last])?, FftKind::Forward, lead),
        Way::HalfComplex => {
            let x = apply(&x, FftKind::Inverse, lead)?;
            apply(&x, FftKind::HalfComplex { odd: size % 2 == 1 }, &[last])
        }
    }
}

/// `x` cut off or filled with zeros to `size` along an axis.
fn fitted(x: &Array, axis: usize, size: usize) -> Result<Array> {
    let have = x.shape()[axis];
    if size <= have {
        return slice_axis(x, axis, 0, size);
    }
    let mut widths = vec![(0, 0); x.rank()];
    widths[axis] = (0, size - have);
    pad(x, &widths[..], 0)
}

fn along_one(
    op: &'static str,
    x: &Array,
    way: Way,
    n: Option<isize>,
    axis: isize,
    norm: FftNorm,
) -> Result<Array> {
    transformed(op, x, way, n.as_ref().map(std::slice::from_ref), &[axis], norm)
}

/// A transform along the axes that are given, or along all.
fn along_several(
    op: &'static str,
    x: &Array,
    way: Way,
    s: Option<&[isize]>,
    axes: &Axes,
    norm: FftNorm,
) -> Result<Array> {
    match (&axes.0, s) {
        (Some(axes), _) => transformed(op, x, way, s, axes, norm),
        (None, Some(s)) => {
            Err(Error::argument(op, format!("sizes {s:?} are given without the axes")))
        }
        (None, None) if x.rank() == 0 => {
            Err(Error::shape(op, format!("{} has no axis to transform", x.aval())))
        }
        (None, None) => {
            let all: Vec<isize> = (0..x.rank() as isize).collect();
            transformed(op, x, way, None, &all, norm)
        }
    }
}

/// The Fourier transform along an axis: yₖ = Σⱼ xⱼ·e^(−2πi·jk/n).
///
/// # Shapes
/// The axis is cut off or filled with zeros to `n`; `None` leaves it.
///
/// # Dtypes
/// Computed in `complex64`, which the result has; what is real is cast to it.
///
/// # Errors
/// Where there is no such axis, and where it has no point.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4])?;
/// let y = ops::real(&ops::fft(&x, None, -1, FftNorm::Backward)?)?;
/// assert_eq!(y.to_vec::<f32>()?, [10.0, -2.0, -2.0, -2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fft(x: &Array, n: Option<isize>, axis: isize, norm: FftNorm) -> Result<Array> {
    along_one("fft", x, Way::Complex(FftKind::Forward), n, axis, norm)
}

/// The inverse of [`fft`]: xⱼ = 1/n·Σₖ yₖ·e^(2πi·jk/n).
///
/// # Shapes
/// The axis is cut off or filled with zeros to `n`; `None` leaves it.
///
/// # Dtypes
/// Computed in `complex64`, which the result has; what is real is cast to it.
///
/// # Errors
/// Where there is no such axis, and where it has no point.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let y = Array::from_slice(&[4.0f32, 0.0, 0.0, 0.0], [4])?;
/// let x = ops::real(&ops::ifft(&y, None, -1, FftNorm::Backward)?)?;
/// assert_eq!(x.to_vec::<f32>()?, [1.0; 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn ifft(x: &Array, n: Option<isize>, axis: isize, norm: FftNorm) -> Result<Array> {
    along_one("ifft", x, Way::Complex(FftKind::Inverse), n, axis, norm)
}

/// The first n/2 + 1 numbers of the Fourier transform of real ones along an axis: the others are their conjugates.
///
/// # Shapes
/// The axis is cut off or filled with zeros to `n`, and has `n`/2 + 1 numbers in the end; `None` leaves it.
///
/// # Dtypes
/// The input is cast to `float32`, of complex numbers the real part; the result is `complex64`.
///
/// # Errors
/// Where there is no such axis, and where it has no point.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4])?;
/// let y = ops::imag(&ops::rfft(&x, None, -1, FftNorm::Backward)?)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn rfft(x: &Array, n: Option<isize>, axis: isize, norm: FftNorm) -> Result<Array> {
    along_one("rfft", x, Way::Real, n, axis, norm)
}

/// The real numbers whose spectrum along an axis begins with these: the inverse of [`rfft`].
///
/// # Shapes
/// The axis has `n` numbers in the end, of which the first `n`/2 + 1 of the spectrum say all; for `None` these are 2·(m − 1) of m.
///
/// # Dtypes
/// The input is cast to `complex64`; the result is `float32`.
///
/// # Errors
/// Where there is no such axis, and where it has no point.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let y = Array::from_slice(&[10.0f32, -2.0, -2.0], [3])?;
/// let x = ops::irfft(&y, None, -1, FftNorm::Backward)?;
/// assert_eq!(x.to_vec::<f32>()?, [1.0, 3.0, 3.0, 3.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn irfft(x: &Array, n: Option<isize>, axis: isize, norm: FftNorm) -> Result<Array> {
    along_one("irfft", x, Way::HalfComplex, n, axis, norm)
}

/// The Fourier transform along several axes.
///
/// # Shapes
/// `s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`.
///
/// # Dtypes
/// Computed in `complex64`, which the result has; what is real is cast to it.
///
/// # Errors
/// Where there are no such axes, where one repeats or has no point, and where `s` has not one size
/// for each.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let x = ops::ones([2, 2], cupola::DType::F32)?;
/// let y = ops::real(&ops::fftn(&x, None, (), FftNorm::Backward)?)?;
/// assert_eq!(y.to_vec::<f32>()?, [4.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fftn(x: &Array, s: Option<&[isize]>, axes: impl Into<Axes>, norm: FftNorm) -> Result<Array> {
    along_several("fftn", x, Way::Complex(FftKind::Forward), s, &axes.into(), norm)
}

/// The Fourier transform along two axes: [`fftn`].
///
/// # Shapes
/// As [`fftn`]; usually the last two axes.
///
/// # Dtypes
/// Computed in `complex64`, which the result has; what is real is cast to it.
///
/// # Errors
/// Where there are no such axes, where one repeats or has no point, and where `s` has not one size
/// for each.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let x = ops::ones([2, 2], cupola::DType::F32)?;
/// let y = ops::real(&ops::fft2(&x, None, [-2, -1], FftNorm::Ortho)?)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fft2(x: &Array, s: Option<&[isize]>, axes: impl Into<Axes>, norm: FftNorm) -> Result<Array> {
    along_several("fft2", x, Way::Complex(FftKind::Forward), s, &axes.into(), norm)
}

/// The inverse of [`fftn`].
///
/// # Shapes
/// `s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`.
///
/// # Dtypes
/// Computed in `complex64`, which the result has; what is real is cast to it.
///
/// # Errors
/// Where there are no such axes, where one repeats or has no point, and where `s` has not one size
/// for each.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let x = ops::ones([2, 2], cupola::DType::F32)?;
/// let y = ops::real(&ops::ifftn(&x, None, (), FftNorm::Backward)?)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn ifftn(
    x: &Array,
    s: Option<&[isize]>,
    axes: impl Into<Axes>,
    norm: FftNorm,
) -> Result<Array> {
    along_several("ifftn", x, Way::Complex(FftKind::Inverse), s, &axes.into(), norm)
}

/// The inverse of [`fft2`].
///
/// # Shapes
/// As [`ifftn`]; usually the last two axes.
///
/// # Dtypes
/// Computed in `complex64`, which the result has; what is real is cast to it.
///
/// # Errors
/// Where there are no such axes, where one repeats or has no point, and where `s` has not one size
/// for each.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let x = ops::ones([2, 2], cupola::DType::F32)?;
/// let y = ops::real(&ops::ifft2(&x, None, [-2, -1], FftNorm::Forward)?)?;
/// assert_eq!(y.to_vec::<f32>()?, [4.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn ifft2(
    x: &Array,
    s: Option<&[isize]>,
    axes: impl Into<Axes>,
    norm: FftNorm,
) -> Result<Array> {
    along_several("ifft2", x, Way::Complex(FftKind::Inverse), s, &axes.into(), norm)
}

/// The Fourier transform of real numbers along several axes: half a spectrum along the last of them.
///
/// # Shapes
/// `s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`. The last axis has half its size and 1 in the end, as in [`rfft`].
///
/// # Dtypes
/// The input is cast to `float32`, of complex numbers the real part; the result is `complex64`.
///
/// # Errors
/// Where there are no such axes, where one repeats or has no point, and where `s` has not one size
/// for each.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let x = ops::ones([3, 4], cupola::DType::F32)?;
/// let y = ops::rfftn(&x, None, (), FftNorm::Backward)?;
/// assert_eq!(y.shape()[..], [3, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn rfftn(
    x: &Array,
    s: Option<&[isize]>,
    axes: impl Into<Axes>,
    norm: FftNorm,
) -> Result<Array> {
    along_several("rfftn", x, Way::Real, s, &axes.into(), norm)
}

/// The Fourier transform of real numbers along two axes: [`rfftn`].
///
/// # Shapes
/// As [`rfftn`]; usually the last two axes.
///
/// # Dtypes
/// The input is cast to `float32`, of complex numbers the real part; the result is `complex64`.
///
/// # Errors
/// Where there are no such axes, where one repeats or has no point, and where `s` has not one size
/// for each.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let x = ops::ones([5, 3, 4], cupola::DType::F32)?;
/// let y = ops::rfft2(&x, None, [-2, -1], FftNorm::Backward)?;
/// assert_eq!(y.shape()[..], [5, 3, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn rfft2(
    x: &Array,
    s: Option<&[isize]>,
    axes: impl Into<Axes>,
    norm: FftNorm,
) -> Result<Array> {
    along_several("rfft2", x, Way::Real, s, &axes.into(), norm)
}

/// The inverse of [`rfftn`].
///
/// # Shapes
/// `s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`. The size of the last axis is as in [`irfft`].
///
/// # Dtypes
/// The input is cast to `complex64`; the result is `float32`.
///
/// # Errors
/// Where there are no such axes, where one repeats or has no point, and where `s` has not one size
/// for each.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let x = ops::ones([3, 3], cupola::DType::F32)?;
/// let y = ops::irfftn(&x, Some(&[3, 5]), [0, 1], FftNorm::Backward)?;
/// assert_eq!(y.shape()[..], [3, 5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn irfftn(
    x: &Array,
    s: Option<&[isize]>,
    axes: impl Into<Axes>,
    norm: FftNorm,
) -> Result<Array> {
    along_several("irfftn", x, Way::HalfComplex, s, &axes.into(), norm)
}

/// The inverse of [`rfft2`].
///
/// # Shapes
/// As [`irfftn`]; usually the last two axes.
///
/// # Dtypes
/// The input is cast to `complex64`; the result is `float32`.
///
/// # Errors
/// Where there are no such axes, where one repeats or has no point, and where `s` has not one size
/// for each.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let x = ops::ones([5, 3, 3], cupola::DType::F32)?;
/// let y = ops::irfft2(&x, None, [-2, -1], FftNorm::Backward)?;
/// assert_eq!(y.shape()[..], [5, 3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn irfft2(
    x: &Array,
    s: Option<&[isize]>,
    axes: impl Into<Axes>,
    norm: FftNorm,
) -> Result<Array> {
    along_several("irfft2", x, Way::HalfComplex, s, &axes.into(), norm)
}

/// The real spectrum of what is the conjugate of itself backwards, of which the first half is given:
/// [`irfft`] with the two ways exchanged.
///
/// # Shapes
/// As [`irfft`].
///
/// # Dtypes
/// The input is cast to `complex64`; the result is `float32`.
///
/// # Errors
/// As [`irfft`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
/// let y = ops::hfft(&x, None, -1, FftNorm::Backward)?;
/// assert_eq!(y.to_vec::<f32>()?, [8.0, -2.0, 0.0, -2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn hfft(x: &Array, n: Option<isize>, axis: isize, norm: FftNorm) -> Result<Array> {
    let x = conjugate(&cast(x, DType::C64)?)?;
    along_one("hfft", &x, Way::HalfComplex, n, axis, norm.swapped())
}

/// The inverse of [`hfft`]: half of what has this real spectrum.
///
/// # Shapes
/// As [`rfft`].
///
/// # Dtypes
/// As [`rfft`].
///
/// # Errors
/// As [`rfft`].
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// use cupola::ops::FftNorm;
/// let y = Array::from_slice(&[8.0f32, -2.0, 0.0, -2.0], [4])?;
/// let x = ops::real(&ops::ihfft(&y, None, -1, FftNorm::Backward)?)?;
/// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn ihfft(x: &Array, n: Option<isize>, axis: isize, norm: FftNorm) -> Result<Array> {
    conjugate(&along_one("ihfft", x, Way::Real, n, axis, norm.swapped())?)
}

/// The frequencies of a discrete Fourier transform of `size` points `spacing` apart, as `float32`:
/// 0 and up, then the negative ones.
///
/// # Errors
/// Where `size` or `spacing` is 0.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::fftfreq(4, 0.5)?.to_vec::<f32>()?, [0.0, 0.5, -1.0, -0.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fftfreq(size: usize, spacing: f64) -> Result<Array> {
    let half = size / 2;
    let low = frequencies("fftfreq", size, spacing, size - half)?;
    let high = subtract(&iota(half, 0, DType::F32)?, half as f64)?;
    divide(&concatenate(&[&low, &high], 0)?, size as f64 * spacing)
}

/// The frequencies, not negative, of a transform of `size` real points `spacing` apart, as `float32`.
///
/// # Errors
/// Where `size` or `spacing` is 0.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::rfftfreq(4, 0.5)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn rfftfreq(size: usize, spacing: f64) -> Result<Array> {
    divide(&frequencies("rfftfreq", size, spacing, size / 2 + 1)?, size as f64 * spacing)
}

fn frequencies(op: &'static str, size: usize, spacing: f64, count: usize) -> Result<Array> {
    if size == 0 {
        return Err(Error::argument(op, "a transform of 0 points has no frequencies"));
    }
    if spacing == 0.0 {
        return Err(Error::argument(op, "points that are 0 apart have no frequencies"));
    }
    iota(count, 0, DType::F32)
}

/// Each axis rolled by half its size, so that frequency 0 comes to the middle; `()` for all axes.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0, 1, 2, -2, -1], [5])?;
/// assert_eq!(ops::fftshift(&x, ())?.to_vec::<i32>()?, [-2, -1, 0, 1, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fftshift(x: &Array, axes: impl Into<Axes>) -> Result<Array> {
    shifted("fftshift", x, axes.into(), |size| size / 2)
}

/// The inverse of [`fftshift`]; they differ on axes of odd size.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-2, -1, 0, 1, 2], [5])?;
/// assert_eq!(ops::ifftshift(&x, ())?.to_vec::<i32>()?, [0, 1, 2, -2, -1]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn ifftshift(x: &Array, axes: impl Into<Axes>) -> Result<Array> {
    shifted("ifftshift", x, axes.into(), |size| size - size / 2)
}

fn shifted(op: &'static str, x: &Array, axes: Axes, by: impl Fn(usize) -> usize) -> Result<Array> {
    // An axis that comes twice is shifted twice.
    let axes: Vec<usize> = match axes.0 {
        Some(axes) => {
            axes.iter().map(|&a| normalize_axis(op, a, x.rank())).collect::<Result<_>>()?
        }
        None => (0..x.rank()).collect(),
    };
    let mut shifts = vec![0; x.rank()];
    for &axis in &axes {
        let size = x.shape()[axis].max(1);
        shifts[axis] = (shifts[axis] + by(size)) % size;
    }
    let moved: Vec<usize> = (0..x.rank()).filter(|&axis| shifts[axis] > 0).collect();
    if moved.is_empty() {
        return Ok(x.clone());
    }
    shifts.retain(|&shift| shift > 0);
    roll(x, Sizes::from(shifts), moved)
}
