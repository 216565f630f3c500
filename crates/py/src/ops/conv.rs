//! Convolutions.

use cupola::ops::{self, ConvOptions, ConvolveMode, DataFormat};
use cupola::{Array, Result};
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::{raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::operand::{
    Arr, SizesArg, count, counts, data_format_of, give, integers, keep_doubles, sequence,
};

/// Convolutions are of floats, as in MLX.
fn floats(input: &Array) -> PyResult<()> {
    match input.dtype().is_inexact() {
        true => Ok(()),
        false => Err(wrong_value(format!(
            "[conv] Invalid input array with type {}. Convolution currently only supports floating \
             point types",
            input.dtype()
        ))),
    }
}

/// A number for all of `N` spatial axes, or one for each, where that is more than one.
pub struct Spatial<const N: usize>(SizesArg);

impl<const N: usize> Spatial<N> {
    fn all(number: isize) -> Self {
        Spatial(SizesArg::one(number))
    }
}

impl<'py, const N: usize> FromPyObject<'_, 'py> for Spatial<N> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let wrong = || match N {
            1 => wrong_type("an integer is expected"),
            _ => wrong_type(format!("an integer is expected, or {N} for so many axes")),
        };
        if let Ok(number) = object.extract() {
            return Ok(Spatial::all(number));
        }
        let sizes = sequence(&object)?.filter(|sizes| N > 1 && sizes.len() == N);
        sizes.map(|sizes| Spatial(SizesArg(sizes))).ok_or_else(wrong)
    }
}

/// The number before the last letter of a function's name.
const fn axes_of(name: &str) -> usize {
    (name.as_bytes()[name.len() - 2] - b'0') as usize
}

struct ConvArguments<'a> {
    stride: SizesArg,
    /// Before and after each spatial axis.
    padding: Vec<(isize, isize)>,
    dilation: SizesArg,
    groups: isize,
    data_format: &'a str,
}

impl ConvArguments<'_> {
    fn options(&self) -> PyResult<ConvOptions> {
        let mut options = ConvOptions::new()
            .stride(counts(&self.stride, "stride")?)
            .dilation(counts(&self.dilation, "dilation")?)
            .groups(count(self.groups, "groups")?)
            .data_format(data_format_of(self.data_format)?);
        options.padding =
            self.padding.iter().map(|&(low, high)| (wider(low), wider(high))).collect();
        Ok(options)
    }
}

/// The same before and after each axis.
fn both_sides(padding: &SizesArg) -> Vec<(isize, isize)> {
    padding.0.iter().map(|&p| (p, p)).collect()
}

/// The part of a padding that makes an input wider.
fn wider(padding: isize) -> usize {
    padding.max(0).unsigned_abs()
}

/// The part of a padding that makes it narrower.
fn narrower(padding: isize) -> usize {
    padding.min(0).unsigned_abs()
}

/// The first spatial axis of an image.
fn first_axis(format: DataFormat) -> usize {
    match format {
        DataFormat::ChannelsLast => 1,
        DataFormat::ChannelsFirst => 2,
    }
}

/// What is said for all axes, or for one.
fn of_axis<T: Copy>(all: &[T], axis: usize) -> Option<T> {
    if all.len() == 1 { all.first().copied() } else { all.get(axis).copied() }
}

/// `x` without what a negative padding takes from it, which `options` then know nothing of.
fn cropped(x: &Array, padding: &[(isize, isize)], options: &mut ConvOptions) -> PyResult<Array> {
    let spatial = x.rank().saturating_sub(2);
    let is_said = padding.len() == 1 || padding.len() == spatial;
    if !is_said || padding.iter().all(|&(low, high)| low >= 0 && high >= 0) {
        return Ok(x.clone());
    }
    let mut start = vec![0; x.rank()];
    let mut stop: Vec<isize> = x.shape().iter().map(|&size| size as isize).collect();
    let mut left = Vec::with_capacity(spatial);
    for axis in 0..spatial {
        let at = axis + first_axis(options.data_format);
        let (low, high) = of_axis(padding, axis).unwrap_or_default();
        // Between the elements that go and those that stay may be zeros of a dilated input.
        let step = of_axis(&options.input_dilation, axis).unwrap_or(1).max(1);
        let [first, last] = [low, high].map(|side| narrower(side).div_ceil(step));
        let is_narrower = first > 0 || last > 0;
        if is_narrower && first.saturating_add(last) >= x.shape()[at] {
            return Err(wrong_value(format!(
                "[conv] padding ({low}, {high}) leaves nothing of axis {at} of {}",
                x.aval()
            )));
        }
        (start[at], stop[at]) = (first as isize, stop[at] - last as isize);
        left.push((
            wider(low) + first * step - narrower(low),
            wider(high) + last * step - narrower(high),
        ));
    }
    options.padding = left;
    ops::slice(x, &start, &stop, &vec![1; x.rank()]).map_err(raise)
}

/// `y` with the zeros around it that a negative padding of a transposed convolution adds.
fn widened(y: &Array, padding: &[(isize, isize)], options: &ConvOptions) -> Result<Array> {
    if padding.iter().all(|&(low, high)| low >= 0 && high >= 0) {
        return Ok(y.clone());
    }
    let mut widths = vec![(0, 0); y.rank()];
    for axis in 0..y.rank().saturating_sub(2) {
        let (low, high) = of_axis(padding, axis).unwrap_or_default();
        widths[axis + first_axis(options.data_format)] = (narrower(low), narrower(high));
    }
    ops::pad(y, &widths[..], 0.0)
}

macro_rules! convolutions {
    ($($name:ident)*) => {$(
        #[doc = docs!($name)]
        #[pyfunction]
        #[pyo3(signature = (
            input, weight, /, stride = Spatial::all(1), padding = Spatial::all(0),
            dilation = Spatial::all(1), groups = 1, *, data_format = "channels_last",
            stream = None
        ), text_signature = "(input, weight, /, stride=1, padding=0, dilation=1, groups=1, *, data_format='channels_last', stream=None)")]
        pub fn $name(
            mut input: Arr,
            mut weight: Arr,
            stride: Spatial<{ axes_of(stringify!($name)) }>,
            padding: Spatial<{ axes_of(stringify!($name)) }>,
            dilation: Spatial<{ axes_of(stringify!($name)) }>,
            groups: isize,
            data_format: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let (stride, dilation) = (stride.0, dilation.0);
            let padding = both_sides(&padding.0);
            let arguments = ConvArguments { stride, padding, dilation, groups, data_format };
            let mut options = arguments.options()?;
            keep_doubles([&mut input, &mut weight]);
            floats(&input)?;
            on(stream, || {
                let input = cropped(&input, &arguments.padding, &mut options)?;
                give(ops::$name(&input, &weight, &options))
            })
        }
    )*};
}

convolutions! { conv1d conv2d conv3d }

macro_rules! transposed_convolutions {
    ($($name:ident)*) => {$(
        #[doc = docs!($name)]
        #[pyfunction]
        #[pyo3(signature = (
            input, weight, /, stride = Spatial::all(1), padding = Spatial::all(0),
            dilation = Spatial::all(1), output_padding = Spatial::all(0), groups = 1, *,
            data_format = "channels_last", stream = None
        ), text_signature = "(input, weight, /, stride=1, padding=0, dilation=1, output_padding=0, groups=1, *, data_format='channels_last', stream=None)")]
        pub fn $name(
            mut input: Arr,
            mut weight: Arr,
            stride: Spatial<{ axes_of(stringify!($name)) }>,
            padding: Spatial<{ axes_of(stringify!($name)) }>,
            dilation: Spatial<{ axes_of(stringify!($name)) }>,
            output_padding: Spatial<{ axes_of(stringify!($name)) }>,
            groups: isize,
            data_format: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let (stride, dilation) = (stride.0, dilation.0);
            let padding = both_sides(&padding.0);
            let arguments = ConvArguments { stride, padding, dilation, groups, data_format };
            let mut options = arguments.options()?;
            options.output_padding = counts(&output_padding.0, "output_padding")?;
            keep_doubles([&mut input, &mut weight]);
            floats(&input)?;
            on(stream, || {
                let y = ops::$name(&input, &weight, &options);
                give(y.and_then(|y| widened(&y, &arguments.padding, &options)))
            })
        }
    )*};
}

transposed_convolutions! { conv_transpose1d conv_transpose2d conv_transpose3d }

#[doc = docs!(conv_general)]
#[pyfunction]
#[pyo3(signature = (
    input, weight, /, stride = SizesArg::one(1), padding = None,
    kernel_dilation = SizesArg::one(1), input_dilation = SizesArg::one(1), groups = 1,
    flip = false, *, data_format = "channels_last", stream = None
), text_signature = "(input, weight, /, stride=1, padding=None, kernel_dilation=1, input_dilation=1, groups=1, flip=False, *, data_format='channels_last', stream=None)")]
pub fn conv_general(
    mut input: Arr,
    mut weight: Arr,
    stride: SizesArg,
    padding: Option<&Bound<'_, PyAny>>,
    kernel_dilation: SizesArg,
    input_dilation: SizesArg,
    groups: isize,
    flip: bool,
    data_format: &str,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let padding = match padding {
        None => vec![(0, 0)],
        Some(padding) => match integers(padding, "padding") {
            Ok(all) => both_sides(&SizesArg(all)),
            Err(_) => {
                let (low, high): (SizesArg, SizesArg) = padding.extract()?;
                let count = low.0.len().max(high.0.len());
                let pair = |axis| Some((of_axis(&low.0, axis)?, of_axis(&high.0, axis)?));
                (0..count).map(pair).collect::<Option<Vec<_>>>().ok_or_else(|| {
                    let (low, high) = (low.0.len(), high.0.len());
                    wrong_value(format!(
                        "conv_general: padding of {low} axes before and {high} after"
                    ))
                })?
            }
        },
    };
    let dilation = kernel_dilation;
    let arguments = ConvArguments { stride, padding, dilation, groups, data_format };
    let mut options = arguments.options()?;
    options.input_dilation = counts(&input_dilation, "input_dilation")?;
    options.flip = flip;
    keep_doubles([&mut input, &mut weight]);
    floats(&input)?;
    on(stream, || {
        let input = cropped(&input, &arguments.padding, &mut options)?;
        give(ops::conv_general(&input, &weight, &options))
    })
}

#[doc = docs!(convolve)]
#[pyfunction]
#[pyo3(signature = (a, v, /, mode = "full", *, stream = None))]
pub fn convolve(mut a: Arr, mut v: Arr, mode: &str, stream: Option<On>) -> PyResult<PyArray> {
    let mode = match mode {
        "full" => ConvolveMode::Full,
        "same" => ConvolveMode::Same,
        "valid" => ConvolveMode::Valid,
        other => {
            return Err(wrong_value(format!(
                "convolve: mode '{other}' is not full, same or valid"
            )));
        }
    };
    keep_doubles([&mut a, &mut v]);
    on(stream, || give(ops::convolve(&a, &v, mode)))
}
