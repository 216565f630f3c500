//! Convolutions.

use cupola::Array;
use cupola::ops::{self, ConvOptions, ConvolveMode};
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::wrong_value;
use crate::generated::docs;
use crate::operand::{Arr, SizesArg, counts, data_format_of, give, integers};

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

struct ConvArguments<'a> {
    stride: SizesArg,
    padding: SizesArg,
    dilation: SizesArg,
    groups: usize,
    data_format: &'a str,
}

impl ConvArguments<'_> {
    fn options(&self) -> PyResult<ConvOptions> {
        Ok(ConvOptions::new()
            .stride(counts(&self.stride, "stride")?)
            .padding(counts(&self.padding, "padding")?)
            .dilation(counts(&self.dilation, "dilation")?)
            .groups(self.groups)
            .data_format(data_format_of(self.data_format)?))
    }
}

macro_rules! convolutions {
    ($($name:ident)*) => {$(
        #[doc = docs!($name)]
        #[pyfunction]
        #[pyo3(signature = (
            input, weight, /, stride = SizesArg::one(1), padding = SizesArg::one(0),
            dilation = SizesArg::one(1), groups = 1, *, data_format = "channels_last",
            stream = None
        ))]
        pub fn $name(
            input: Arr,
            weight: Arr,
            stride: SizesArg,
            padding: SizesArg,
            dilation: SizesArg,
            groups: usize,
            data_format: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let arguments = ConvArguments { stride, padding, dilation, groups, data_format };
            let options = arguments.options()?;
            floats(&input)?;
            on(stream, || give(ops::$name(&input, &weight, &options)))
        }
    )*};
}

convolutions! { conv1d conv2d conv3d }

macro_rules! transposed_convolutions {
    ($($name:ident)*) => {$(
        #[doc = docs!($name)]
        #[pyfunction]
        #[pyo3(signature = (
            input, weight, /, stride = SizesArg::one(1), padding = SizesArg::one(0),
            dilation = SizesArg::one(1), output_padding = SizesArg::one(0), groups = 1, *,
            data_format = "channels_last", stream = None
        ))]
        pub fn $name(
            input: Arr,
            weight: Arr,
            stride: SizesArg,
            padding: SizesArg,
            dilation: SizesArg,
            output_padding: SizesArg,
            groups: usize,
            data_format: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let arguments = ConvArguments { stride, padding, dilation, groups, data_format };
            let mut options = arguments.options()?;
            options.output_padding = counts(&output_padding, "output_padding")?;
            floats(&input)?;
            on(stream, || give(ops::$name(&input, &weight, &options)))
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
))]
pub fn conv_general(
    input: Arr,
    weight: Arr,
    stride: SizesArg,
    padding: Option<&Bound<'_, PyAny>>,
    kernel_dilation: SizesArg,
    input_dilation: SizesArg,
    groups: usize,
    flip: bool,
    data_format: &str,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let (none, dilation) = (SizesArg::one(0), kernel_dilation);
    let arguments = ConvArguments { stride, padding: none, dilation, groups, data_format };
    let mut options = arguments.options()?;
    options.input_dilation = counts(&input_dilation, "input_dilation")?;
    options.flip = flip;
    if let Some(padding) = padding {
        options.padding = match integers(padding, "padding") {
            Ok(all) => counts(&SizesArg(all), "padding")?.into_iter().map(|p| (p, p)).collect(),
            Err(_) => {
                let (low, high): (SizesArg, SizesArg) = padding.extract()?;
                let (low, high) = (counts(&low, "padding")?, counts(&high, "padding")?);
                low.into_iter().zip(high).collect()
            }
        };
    }
    floats(&input)?;
    on(stream, || give(ops::conv_general(&input, &weight, &options)))
}

#[doc = docs!(convolve)]
#[pyfunction]
#[pyo3(signature = (a, v, /, mode = "full", *, stream = None))]
pub fn convolve(a: Arr, v: Arr, mode: &str, stream: Option<On>) -> PyResult<PyArray> {
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
    on(stream, || give(ops::convolve(&a, &v, mode)))
}
