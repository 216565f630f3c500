//! Images in other sizes, windows, and pooling to a size.

use cupola::Array;
use cupola::ops::{self, Beyond, Interpolation, PoolOptions, Target, Windows};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Count, SizesArg, counts, data_format_of, give, keep_doubles};

/// Factors that are integers, or floats.
fn factors(object: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    match object.extract::<f64>() {
        Ok(one) => Ok(vec![one]),
        Err(_) => object.extract(),
    }
}

fn interpolation(op: &str, name: &str) -> PyResult<Interpolation> {
    Ok(match name {
        "nearest" => Interpolation::Nearest,
        "linear" | "bilinear" | "trilinear" => Interpolation::Linear,
        "cubic" | "bicubic" => Interpolation::Cubic,
        "area" if op == "interpolate" => Interpolation::Area,
        "nearest-exact" if op == "interpolate" => Interpolation::NearestExact,
        other => {
            return Err(wrong_value(format!(
                "{op}: mode '{other}' is not nearest, linear (bilinear, trilinear), cubic \
                 (bicubic), or area or nearest-exact, which only interpolate knows"
            )));
        }
    })
}

#[doc = docs!(interpolate)]
#[pyfunction]
#[pyo3(signature = (
    a, size = None, scale_factor = None, mode = "nearest", align_corners = false, *,
    data_format = "channels_last", stream = None
))]
pub fn interpolate(
    a: Arr,
    size: Option<SizesArg>,
    scale_factor: Option<&Bound<'_, PyAny>>,
    mode: &str,
    align_corners: bool,
    data_format: &str,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let target = match (size, scale_factor) {
        (Some(size), None) => Target::Sizes(counts(&size, "size")?),
        (None, Some(factor)) => Target::Factors(factors(factor)?),
        (None, None) | (Some(_), Some(_)) => {
            return Err(wrong_value("interpolate: one of size and scale_factor is needed"));
        }
    };
    let mode = interpolation("interpolate", mode)?;
    let format = data_format_of(data_format)?;
    on(stream, || give(format.with(&a, |a| ops::interpolate(a, &target, mode, align_corners))))
}

#[doc = docs!(grid_sample)]
#[pyfunction]
#[pyo3(signature = (
    a, grid, mode = "bilinear", padding_mode = "zeros", align_corners = false, *,
    data_format = "channels_last", stream = None
))]
pub fn grid_sample(
    mut a: Arr,
    mut grid: Arr,
    mode: &str,
    padding_mode: &str,
    align_corners: bool,
    data_format: &str,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut grid]);
    let mode = interpolation("grid_sample", mode)?;
    let beyond = match padding_mode {
        "zeros" => Beyond::Zeros,
        "border" => Beyond::Border,
        "reflection" => Beyond::Reflection,
        other => {
            return Err(wrong_value(format!(
                "grid_sample: padding_mode '{other}' is not zeros, border or reflection"
            )));
        }
    };
    let format = data_format_of(data_format)?;
    let sample = |a: &Array| ops::grid_sample(a, &grid, mode, beyond, align_corners);
    on(stream, || give(format.with(&a, sample)))
}

fn windows(
    window: &SizesArg,
    stride: &SizesArg,
    padding: &SizesArg,
    dilation: &SizesArg,
    data_format: &str,
) -> PyResult<Windows> {
    Ok(Windows {
        window: counts(window, "kernel_size")?,
        stride: counts(stride, "stride")?,
        padding: counts(padding, "padding")?,
        dilation: counts(dilation, "dilation")?,
        data_format: data_format_of(data_format)?,
    })
}

#[doc = docs!(unfold)]
#[pyfunction]
#[pyo3(signature = (
    a, kernel_size, stride = SizesArg::one(1), padding = SizesArg::one(0),
    dilation = SizesArg::one(1), *, data_format = "channels_last", stream = None
), text_signature = "(a, kernel_size, stride=1, padding=0, dilation=1, *, data_format='channels_last', stream=None)")]
pub fn unfold(
    a: Arr,
    kernel_size: SizesArg,
    stride: SizesArg,
    padding: SizesArg,
    dilation: SizesArg,
    data_format: &str,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let windows = windows(&kernel_size, &stride, &padding, &dilation, data_format)?;
    on(stream, || give(ops::unfold(&a, &windows)))
}

#[doc = docs!(fold)]
#[pyfunction]
#[pyo3(signature = (
    a, output_size, kernel_size, stride = SizesArg::one(1), padding = SizesArg::one(0),
    dilation = SizesArg::one(1), *, data_format = "channels_last", stream = None
), text_signature = "(a, output_size, kernel_size, stride=1, padding=0, dilation=1, *, data_format='channels_last', stream=None)")]
pub fn fold(
    a: Arr,
    output_size: SizesArg,
    kernel_size: SizesArg,
    stride: SizesArg,
    padding: SizesArg,
    dilation: SizesArg,
    data_format: &str,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let windows = windows(&kernel_size, &stride, &padding, &dilation, data_format)?;
    let sizes = counts(&output_size, "output_size")?;
    on(stream, || give(ops::fold(&a, &sizes, &windows)))
}

/// How many parts an image gets along its axes; along those of `None` as many as it has elements there.
pub struct OutputSizes(Vec<Option<usize>>);

impl OutputSizes {
    /// The sizes for an image with channels last.
    fn of(&self, image: &Array) -> Vec<usize> {
        let own = |axis: usize| image.shape().get(1 + axis).copied().unwrap_or_default();
        match self.0[..] {
            [None] => (0..image.rank().saturating_sub(2)).map(own).collect(),
            _ => {
                self.0.iter().enumerate().map(|(i, size)| size.unwrap_or_else(|| own(i))).collect()
            }
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for OutputSizes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let one = |size: &Bound<'_, PyAny>| match size.is_none() {
            true => Ok(None),
            false => size.extract::<Count>().map(|count| Some(count.0)),
        };
        if object.is_none() {
            return Ok(OutputSizes(vec![None]));
        }
        if let Ok(sizes) = object.cast::<PyTuple>() {
            return sizes.iter().map(|size| one(&size)).collect::<PyResult<_>>().map(OutputSizes);
        }
        if let Ok(sizes) = object.cast::<PyList>() {
            return sizes.iter().map(|size| one(&size)).collect::<PyResult<_>>().map(OutputSizes);
        }
        counts(&object.extract::<SizesArg>()?, "output_size")
            .map(|sizes| OutputSizes(sizes.into_iter().map(Some).collect()))
    }
}

/// Functions of an image and the sizes of its result.
macro_rules! adaptive_pools {
    ($($name:ident)*) => {$(
        #[doc = docs!($name)]
        #[pyfunction]
        #[pyo3(signature = (a, output_size, *, data_format = "channels_last", stream = None))]
        pub fn $name(
            a: Arr,
            output_size: OutputSizes,
            data_format: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let format = data_format_of(data_format)?;
            on(stream, || give(format.with(&a, |a| ops::$name(a, &output_size.of(a)))))
        }
    )*};
}

adaptive_pools! { adaptive_avg_pool adaptive_max_pool }

#[doc = docs!(max_pool_with_indices)]
#[pyfunction]
#[pyo3(signature = (
    a, kernel_size, stride = None, padding = SizesArg::one(0), dilation = SizesArg::one(1), *,
    data_format = "channels_last", stream = None
), text_signature = "(a, kernel_size, stride=None, padding=0, dilation=1, *, data_format='channels_last', stream=None)")]
pub fn max_pool_with_indices(
    a: Arr,
    kernel_size: SizesArg,
    stride: Option<SizesArg>,
    padding: SizesArg,
    dilation: SizesArg,
    data_format: &str,
    stream: Option<On>,
) -> PyResult<(PyArray, PyArray)> {
    let padding = counts(&padding, "padding")?;
    let options = PoolOptions {
        window: counts(&kernel_size, "kernel_size")?,
        stride: stride.map_or_else(|| Ok(Vec::new()), |s| counts(&s, "stride"))?,
        padding: padding.into_iter().map(|p| (p, p)).collect(),
        dilation: counts(&dilation, "dilation")?,
        data_format: data_format_of(data_format)?,
    };
    on(stream, || give(ops::max_pool_with_indices(&a, &options)))
}

#[doc = docs!(max_unpool)]
#[pyfunction]
#[pyo3(signature = (a, indices, output_size, *, data_format = "channels_last", stream = None))]
pub fn max_unpool(
    a: Arr,
    indices: Arr,
    output_size: SizesArg,
    data_format: &str,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let sizes = counts(&output_size, "output_size")?;
    let format = data_format_of(data_format)?;
    on(stream, || {
        let places = format.to_last(&indices).map_err(raise)?;
        give(format.with(&a, |a| ops::max_unpool(a, &places, &sizes)))
    })
}
