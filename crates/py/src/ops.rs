//! Operations whose arguments in Python cannot be derived from those in Rust.

use cupola::ops::{
    self, BlockMasks, Contraction, ConvOptions, ConvolveMode, Limit, Operand, PadMode, PadWidths,
    Replacements, ScanOptions, Sections, Side, Sizes, Tolerance,
};
use cupola::{Array, DType, Scalar, Shape};
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyTuple};

use crate::array::PyArray;
use crate::device::{On, on};
use crate::dtype::Dtype;
use crate::error::{raise, wrong_type, wrong_value};
use crate::operand::{Arr, Arrays, Axis, Opd, ShapeArg, SizesArg, counts, give, integers, meet};
use crate::{read, tree};

fn limit(side: &Option<Opd>) -> Limit<'_> {
    match side {
        Some(limit) => Limit::from(Operand::from(limit)),
        None => Limit::from(()),
    }
}

fn cast(array: &Array, dtype: Option<Dtype>) -> PyResult<Array> {
    match dtype {
        Some(dtype) => ops::astype(array, dtype.0).map_err(raise),
        None => Ok(array.clone()),
    }
}

#[pyfunction]
#[pyo3(signature = (a, a_min, a_max, *, stream = None))]
pub fn clip(
    a: Arr,
    a_min: Option<Opd>,
    a_max: Option<Opd>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let a = Opd::Array(a.0);
    let meeting = |limit: Option<Opd>| match limit {
        Some(limit) => meet(a.clone(), limit).map(|(_, limit)| Some(limit)),
        None => Ok(None),
    };
    let (low, high) = (meeting(a_min)?, meeting(a_max)?);
    if low.is_none() && high.is_none() {
        return Err(wrong_value("At most one of a_min and a_max may be None"));
    }
    let x = a.into_array()?;
    on(stream, || give(ops::clip(&x, limit(&low), limit(&high))))
}

#[pyfunction]
#[pyo3(signature = (a, b, /, rtol = 1e-5, atol = 1e-8, *, equal_nan = false, stream = None))]
pub fn isclose(
    a: Opd,
    b: Opd,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let tolerance = Tolerance { relative: rtol, absolute: atol, equal_nan };
    on(stream, || give(ops::isclose(&a, &b, tolerance)))
}

#[pyfunction]
#[pyo3(signature = (a, b, /, rtol = 1e-5, atol = 1e-8, *, equal_nan = false, stream = None))]
pub fn allclose(
    a: Opd,
    b: Opd,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let tolerance = Tolerance { relative: rtol, absolute: atol, equal_nan };
    on(stream, || give(ops::allclose(&a, &b, tolerance)))
}

#[pyfunction]
#[pyo3(signature = (a, b, equal_nan = false, stream = None))]
pub fn array_equal(a: Arr, b: Arr, equal_nan: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::array_equal(&a, &b, equal_nan)))
}

#[pyfunction]
#[pyo3(signature = (shape, vals, dtype = None, *, stream = None))]
pub fn full(
    shape: ShapeArg,
    vals: Opd,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || {
        let dtype = match dtype {
            Some(dtype) => dtype.0,
            None => vals.clone().into_array()?.dtype(),
        };
        give(ops::full(shape.0, &vals, dtype))
    })
}

#[pyfunction]
#[pyo3(signature = (a, vals, dtype = None, *, stream = None))]
pub fn full_like(a: Arr, vals: Opd, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    let dtype = dtype.map_or(a.dtype(), |d| d.0);
    on(stream, || give(ops::full(a.shape().clone(), &vals, dtype)))
}

#[pyfunction]
#[pyo3(signature = (a, dtype = None, *, stream = None))]
pub fn zeros_like(a: Arr, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    let dtype = dtype.map_or(a.dtype(), |d| d.0);
    on(stream, || give(ops::zeros(a.shape().clone(), dtype)))
}

#[pyfunction]
#[pyo3(signature = (a, dtype = None, *, stream = None))]
pub fn ones_like(a: Arr, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    let dtype = dtype.map_or(a.dtype(), |d| d.0);
    on(stream, || give(ops::ones(a.shape().clone(), dtype)))
}

#[pyfunction]
#[pyo3(signature = (n, m = None, k = 0, dtype = None, *, stream = None))]
pub fn eye(
    n: usize,
    m: Option<usize>,
    k: isize,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let dtype = dtype.map_or(DType::F32, |d| d.0);
    on(stream, || give(ops::eye_at(n, m.unwrap_or(n), k, dtype)))
}

#[pyfunction]
#[pyo3(signature = (n, m = None, k = 0, dtype = None, *, stream = None))]
pub fn tri(
    n: usize,
    m: Option<usize>,
    k: isize,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let dtype = dtype.map_or(DType::F32, |d| d.0);
    on(stream, || give(ops::tri(n, m.unwrap_or(n), k, dtype)))
}

fn number(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Scalar> {
    if value.is_instance_of::<PyBool>() {
        return Err(wrong_value(format!("bool not supported for {what}.")));
    }
    match crate::operand::operand(value)? {
        Some(Opd::Scalar(value)) => Ok(value),
        Some(Opd::Array(array) | Opd::Foreign(array)) if array.size() == 1 => {
            if array.dtype().is_integer() {
                let wide = ops::astype(&array, DType::I64).and_then(|a| a.item::<i64>());
                return wide.map(Scalar::Int).map_err(raise);
            }
            let wide = ops::astype(&array, DType::F32).and_then(|a| a.item::<f32>());
            wide.map(|v| Scalar::Float(v.into())).map_err(raise)
        }
        _ => Err(wrong_type(format!("{what}: a number is expected, not {value}"))),
    }
}

/// Evenly spaced numbers from `start` up to but without `stop`; `arange(stop)` starts at 0.
#[pyfunction]
#[pyo3(signature = (*args, start = None, stop = None, step = None, dtype = None, stream = None))]
pub fn arange(
    args: &Bound<'_, PyTuple>,
    start: Option<Bound<'_, PyAny>>,
    stop: Option<Bound<'_, PyAny>>,
    step: Option<Bound<'_, PyAny>>,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let mut dtype = dtype;
    let mut given: Vec<Bound<'_, PyAny>> = args.iter().collect();
    // The dtype may come last by position.
    if let Some(last) = given.last()
        && let Ok(own) = last.extract::<Dtype>()
    {
        dtype = Some(own);
        given.pop();
    }
    let given: Vec<Option<Bound<'_, PyAny>>> =
        given.into_iter().map(|v| (!v.is_none()).then_some(v)).collect();
    let at = |index: usize| given.get(index).cloned().flatten();
    // One number, or a number and nothing, is the stop.
    let only_stop = start.is_none() && stop.is_none() && at(1).is_none();
    let (start, stop, step) = match (only_stop, stop) {
        (true, _) => (None, at(0), at(2).or(step)),
        (false, Some(stop)) => (start.or(at(0)), Some(stop), at(1).or(step)),
        (false, None) if start.is_some() => (start, at(0), at(1).or(step)),
        (false, None) => (at(0), at(1), at(2).or(step)),
    };
    let Some(stop) = stop else {
        return Err(wrong_type("arange: stop is needed"));
    };
    let read = |value: Option<Bound<'_, PyAny>>, default: i64| match value {
        Some(value) => number(&value, "arange"),
        None => Ok(Scalar::Int(default)),
    };
    let (start, stop, step) = (read(start, 0)?, read(Some(stop), 0)?, read(step, 1)?);
    on(stream, || {
        let array = ops::arange(start, stop, step).map_err(raise)?;
        cast(&array, dtype).map(PyArray::new)
    })
}

#[pyfunction]
#[pyo3(signature = (start, stop, num = 50, endpoint = true, dtype = None, stream = None))]
pub fn linspace(
    start: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    num: Option<i64>,
    endpoint: bool,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let count = usize::try_from(num.unwrap_or(50))
        .map_err(|_| wrong_value("linspace: num must not be negative"))?;
    let (start, mut stop) =
        (number(start, "linspace")?.to_f64(), number(stop, "linspace")?.to_f64());
    if !endpoint && count > 0 {
        stop -= (stop - start) / count as f64;
    }
    let dtype = dtype.map_or(DType::F32, |d| d.0);
    on(stream, || give(ops::linspace(start, stop, count, dtype)))
}

#[pyfunction]
#[pyo3(signature = (*arrays, sparse = false, indexing = "xy", stream = None))]
pub fn meshgrid<'py>(
    py: Python<'py>,
    arrays: Vec<Arr>,
    sparse: Option<bool>,
    indexing: Option<&str>,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyTuple>> {
    let matrix_order = match indexing.unwrap_or("xy") {
        "ij" => true,
        "xy" => false,
        other => {
            return Err(wrong_value(format!(
                "meshgrid: indexing must be 'xy' or 'ij', not '{other}'"
            )));
        }
    };
    let grids = on(stream, || {
        let refs: Vec<&Array> = arrays.iter().map(|a| &a.0).collect();
        if sparse != Some(true) {
            return ops::meshgrid(&refs, matrix_order).map_err(raise);
        }
        let rank = refs.len();
        let along = |(at, x): (usize, &&Array)| {
            let axis = if !matrix_order && rank > 1 && at < 2 { 1 - at } else { at };
            let mut sizes = vec![1isize; rank];
            sizes[axis] = -1;
            ops::reshape(x, sizes).map_err(raise)
        };
        refs.iter().enumerate().map(along).collect()
    })?;
    PyTuple::new(py, grids.into_iter().map(PyArray::new))
}

#[pyfunction]
#[pyo3(signature = (a, b, /, axes = None, *, stream = None))]
pub fn tensordot(
    a: Arr,
    b: Arr,
    axes: Option<&Bound<'_, PyAny>>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let axes = match axes {
        None => Contraction::Count(2),
        Some(axes) => match axes.extract::<usize>() {
            Ok(count) => Contraction::Count(count),
            Err(_) => {
                let pair: Vec<SizesArg> = axes.extract()?;
                let [left, right]: [SizesArg; 2] = pair
                    .try_into()
                    .map_err(|_| wrong_value("tensordot: axes must be a number or two lists"))?;
                Contraction::Axes(left.into(), right.into())
            }
        },
    };
    on(stream, || give(ops::tensordot(&a, &b, axes)))
}

#[pyfunction]
#[pyo3(signature = (subscripts, *operands, stream = None))]
pub fn einsum(subscripts: &str, operands: Vec<Arr>, stream: Option<On>) -> PyResult<PyArray> {
    let refs: Vec<&Array> = operands.iter().map(|a| &a.0).collect();
    on(stream, || give(ops::einsum(subscripts, &refs)))
}

#[pyfunction]
#[pyo3(signature = (subscripts, *operands))]
pub fn einsum_path<'py>(
    py: Python<'py>,
    subscripts: &str,
    operands: Vec<Arr>,
) -> PyResult<(Vec<Bound<'py, PyTuple>>, String)> {
    let refs: Vec<&Array> = operands.iter().map(|a| &a.0).collect();
    let (steps, report) = ops::einsum_path(subscripts, &refs).map_err(raise)?;
    let steps = steps.into_iter().map(|s| PyTuple::new(py, s)).collect::<PyResult<_>>()?;
    Ok((steps, report))
}

#[pyfunction]
#[pyo3(signature = (a, /, axis = Axis::all(), *, precise = false, stream = None))]
pub fn softmax(a: Arr, axis: Axis, precise: bool, stream: Option<On>) -> PyResult<PyArray> {
    let dtype = a.dtype();
    on(stream, || match precise && dtype.size() == 2 && dtype.is_float() {
        true => give(
            ops::astype(&a, DType::F32)
                .and_then(|wide| ops::softmax(&wide, axis.0))
                .and_then(|out| ops::astype(&out, dtype)),
        ),
        false => give(ops::softmax(&a, axis.0)),
    })
}

#[pyfunction]
#[pyo3(signature = (a, /, offset = 0, axis1 = 0, axis2 = 1, dtype = None, *, stream = None))]
pub fn trace(
    a: Arr,
    offset: isize,
    axis1: isize,
    axis2: isize,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || {
        let x = cast(&a, dtype)?;
        let sum = ops::trace(&x, offset, axis1, axis2).map_err(raise)?;
        cast(&sum, dtype).map(PyArray::new)
    })
}

pub fn sections(object: &Bound<'_, PyAny>, size: usize) -> PyResult<Sections> {
    if let Ok(count) = object.extract::<isize>() {
        return match usize::try_from(count) {
            Ok(count) if count > 0 => Ok(Sections::Equal(count)),
            _ => Err(wrong_value(format!("split: {count} is no number of parts"))),
        };
    }
    let at = integers(object, "indices_or_sections")?;
    let clamp = |&i: &isize| (if i < 0 { (i + size as isize).max(0) } else { i }) as usize;
    Ok(Sections::At(at.iter().map(clamp).collect()))
}

/// The size of an axis, 0 where there is no such axis: the operation says so.
pub fn size_of(a: &Array, axis: isize) -> usize {
    let axis = if axis < 0 { axis + a.rank() as isize } else { axis };
    usize::try_from(axis).ok().and_then(|axis| a.shape().get(axis).copied()).unwrap_or(0)
}

#[pyfunction]
#[pyo3(signature = (a, /, indices_or_sections, axis = 0, *, stream = None))]
pub fn split(
    a: Arr,
    indices_or_sections: &Bound<'_, PyAny>,
    axis: isize,
    stream: Option<On>,
) -> PyResult<Vec<PyArray>> {
    let sections = sections(indices_or_sections, size_of(&a, axis))?;
    on(stream, || give(ops::split(&a, sections, axis)))
}

#[pyfunction]
#[pyo3(signature = (x, /, *, axis = 0, stream = None))]
pub fn unstack<'py>(
    py: Python<'py>,
    x: Arr,
    axis: isize,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyTuple>> {
    let parts = on(stream, || ops::unstack(&x, axis).map_err(raise))?;
    PyTuple::new(py, parts.into_iter().map(PyArray::new))
}

#[pyfunction]
#[pyo3(signature = (*arrays, stream = None))]
pub fn broadcast_arrays<'py>(
    py: Python<'py>,
    arrays: Vec<Arr>,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyTuple>> {
    let refs: Vec<&Array> = arrays.iter().map(|a| &a.0).collect();
    let all = on(stream, || ops::broadcast_arrays(&refs).map_err(raise))?;
    PyTuple::new(py, all.into_iter().map(PyArray::new))
}

#[pyfunction]
#[pyo3(signature = (*shapes))]
pub fn broadcast_shapes<'py>(
    py: Python<'py>,
    shapes: Vec<ShapeArg>,
) -> PyResult<Bound<'py, PyTuple>> {
    let shapes: Vec<Shape> = shapes.into_iter().map(|s| s.0).collect();
    PyTuple::new(py, ops::broadcast_shapes(&shapes).map_err(raise)?.iter())
}

fn at_least<'py>(
    py: Python<'py>,
    arrays: Vec<Arr>,
    stream: Option<On>,
    f: fn(&Array) -> cupola::Result<Array>,
) -> PyResult<Bound<'py, PyAny>> {
    let all: Vec<PyArray> =
        on(stream, || arrays.iter().map(|a| give(f(a))).collect::<PyResult<_>>())?;
    let mut all = all.into_iter();
    match (all.len(), all.next()) {
        (1, Some(one)) => Ok(Bound::new(py, one)?.into_any()),
        (_, Some(first)) => {
            Ok(PyList::new(py, std::iter::once(first).chain(all).collect::<Vec<_>>())?.into_any())
        }
        (_, None) => Err(wrong_type("atleast: an array is needed")),
    }
}

#[pyfunction]
#[pyo3(signature = (*arys, stream = None))]
pub fn atleast_1d<'py>(
    py: Python<'py>,
    arys: Vec<Arr>,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyAny>> {
    at_least(py, arys, stream, ops::atleast_1d)
}

#[pyfunction]
#[pyo3(signature = (*arys, stream = None))]
pub fn atleast_2d<'py>(
    py: Python<'py>,
    arys: Vec<Arr>,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyAny>> {
    at_least(py, arys, stream, ops::atleast_2d)
}

#[pyfunction]
#[pyo3(signature = (*arys, stream = None))]
pub fn atleast_3d<'py>(
    py: Python<'py>,
    arys: Vec<Arr>,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyAny>> {
    at_least(py, arys, stream, ops::atleast_3d)
}

#[pyfunction]
#[pyo3(signature = (a, nan = 0.0, posinf = None, neginf = None, *, stream = None))]
pub fn nan_to_num(
    a: Arr,
    nan: f64,
    posinf: Option<f64>,
    neginf: Option<f64>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::nan_to_num(&a, Replacements { nan, posinf, neginf })))
}

/// One width around every axis, one pair for every axis, or a pair for each.
fn widths(object: &Bound<'_, PyAny>) -> PyResult<PadWidths> {
    let width = |d: isize| {
        usize::try_from(d).map_err(|_| {
            wrong_value(format!(
                "Invalid padding size ({d}) passed to pad. Padding sizes must be non-negative"
            ))
        })
    };
    if let Ok(all) = integers(object, "pad_width") {
        return match all[..] {
            [one] => Ok(PadWidths::from(width(one)?)),
            [low, high] => Ok(PadWidths::All(width(low)?, width(high)?)),
            _ => {
                Err(wrong_value("pad: pad_width must be a number, a pair, or a pair for each axis"))
            }
        };
    }
    let each: Vec<SizesArg> = object.extract()?;
    let pairs = each
        .iter()
        .map(|pair| match pair.0[..] {
            [one] => Ok((width(one)?, width(one)?)),
            [low, high] => Ok((width(low)?, width(high)?)),
            _ => Err(wrong_value("pad: a pair for each axis is expected")),
        })
        .collect::<PyResult<Vec<_>>>()?;
    match pairs[..] {
        [(low, high)] => Ok(PadWidths::All(low, high)),
        _ => Ok(PadWidths::Each(pairs)),
    }
}

#[pyfunction]
#[pyo3(signature = (a, pad_width, mode = "constant", constant_values = None, *, stream = None))]
pub fn pad(
    a: Arr,
    pad_width: &Bound<'_, PyAny>,
    mode: &str,
    constant_values: Option<Opd>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let widths = widths(pad_width)?;
    let mode = match (mode, constant_values) {
        ("constant", None) => PadMode::Constant(Scalar::Int(0)),
        ("constant", Some(Opd::Scalar(value))) => PadMode::Constant(value),
        ("constant", Some(Opd::Array(array) | Opd::Foreign(array))) => {
            let value = ops::astype(&array, DType::F32).and_then(|v| v.item::<f32>());
            PadMode::Constant(Scalar::Float(value.map_err(raise)?.into()))
        }
        ("edge", _) => PadMode::Edge,
        ("reflect" | "symmetric", _) => {
            return Err(PyNotImplementedError::new_err(format!("pad: mode '{mode}'")));
        }
        (other, _) => {
            return Err(wrong_value(format!("Invalid padding mode ({other}) passed to pad")));
        }
    };
    on(stream, || give(ops::pad(&a, widths, mode)))
}

#[pyfunction]
#[pyo3(signature = (inputs, dependencies))]
pub fn depends<'py>(
    inputs: &Bound<'py, PyAny>,
    dependencies: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let on_what = tree::arrays(dependencies)?;
    let refs: Vec<&Array> = on_what.iter().collect();
    tree::map(inputs, &mut |x| ops::depends(x, &refs).map_err(raise))
}

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

struct ConvArguments {
    stride: SizesArg,
    padding: SizesArg,
    dilation: SizesArg,
    groups: usize,
}

impl ConvArguments {
    fn options(&self) -> PyResult<ConvOptions> {
        Ok(ConvOptions::new()
            .stride(counts(&self.stride, "stride")?)
            .padding(counts(&self.padding, "padding")?)
            .dilation(counts(&self.dilation, "dilation")?)
            .groups(self.groups))
    }
}

macro_rules! convolutions {
    ($($name:ident)*) => {$(
        #[pyfunction]
        #[pyo3(signature = (
            input, weight, /, stride = SizesArg::one(1), padding = SizesArg::one(0),
            dilation = SizesArg::one(1), groups = 1, *, stream = None
        ))]
        pub fn $name(
            input: Arr,
            weight: Arr,
            stride: SizesArg,
            padding: SizesArg,
            dilation: SizesArg,
            groups: usize,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let options = ConvArguments { stride, padding, dilation, groups }.options()?;
            floats(&input)?;
            on(stream, || give(ops::$name(&input, &weight, &options)))
        }
    )*};
}

convolutions! { conv1d conv2d conv3d }

macro_rules! transposed_convolutions {
    ($($name:ident)*) => {$(
        #[pyfunction]
        #[pyo3(signature = (
            input, weight, /, stride = SizesArg::one(1), padding = SizesArg::one(0),
            dilation = SizesArg::one(1), output_padding = SizesArg::one(0), groups = 1, *,
            stream = None
        ))]
        pub fn $name(
            input: Arr,
            weight: Arr,
            stride: SizesArg,
            padding: SizesArg,
            dilation: SizesArg,
            output_padding: SizesArg,
            groups: usize,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let mut options = ConvArguments { stride, padding, dilation, groups }.options()?;
            options.output_padding = counts(&output_padding, "output_padding")?;
            floats(&input)?;
            on(stream, || give(ops::$name(&input, &weight, &options)))
        }
    )*};
}

transposed_convolutions! { conv_transpose1d conv_transpose2d conv_transpose3d }

#[pyfunction]
#[pyo3(signature = (
    input, weight, /, stride = SizesArg::one(1), padding = None,
    kernel_dilation = SizesArg::one(1), input_dilation = SizesArg::one(1), groups = 1,
    flip = false, *, stream = None
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
    stream: Option<On>,
) -> PyResult<PyArray> {
    let zero = SizesArg::one(0);
    let arguments = ConvArguments { stride, padding: zero, dilation: kernel_dilation, groups };
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

macro_rules! scans {
    ($($name:ident)*) => {$(
        #[pyfunction]
        #[pyo3(signature = (
            a, /, axis = Axis::all(), *, reverse = false, inclusive = true, stream = None
        ))]
        pub fn $name(
            a: Arr,
            axis: Axis,
            reverse: bool,
            inclusive: bool,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let options = ScanOptions { reverse, exclusive: !inclusive };
            on(stream, || give(ops::$name(&a, axis.0, options)))
        }

        #[pymethods]
        impl PyArray {
            #[pyo3(signature = (
                axis = Axis::all(), *, reverse = false, inclusive = true, stream = None
            ))]
            fn $name(
                &self,
                axis: Axis,
                reverse: bool,
                inclusive: bool,
                stream: Option<On>,
            ) -> PyResult<PyArray> {
                $name(Arr(self.get()), axis, reverse, inclusive, stream)
            }
        }
    )*};
}

scans! { cummax cummin logcumsumexp }

macro_rules! summing_scans {
    ($($name:ident)*) => {$(
        #[pyfunction]
        #[pyo3(signature = (
            a, /, axis = Axis::all(), *, reverse = false, inclusive = true, dtype = None,
            stream = None
        ))]
        pub fn $name(
            a: Arr,
            axis: Axis,
            reverse: bool,
            inclusive: bool,
            dtype: Option<Dtype>,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let options = ScanOptions { reverse, exclusive: !inclusive };
            on(stream, || give(ops::$name(&cast(&a, dtype)?, axis.0, options)))
        }

        #[pymethods]
        impl PyArray {
            #[pyo3(signature = (
                axis = Axis::all(), *, reverse = false, inclusive = true, stream = None
            ))]
            fn $name(
                &self,
                axis: Axis,
                reverse: bool,
                inclusive: bool,
                stream: Option<On>,
            ) -> PyResult<PyArray> {
                $name(Arr(self.get()), axis, reverse, inclusive, None, stream)
            }
        }
    )*};
}

summing_scans! { cumsum cumprod }

#[pyfunction]
#[pyo3(signature = (sorted_sequence, values, /, side = "left", *, stream = None))]
pub fn searchsorted(
    sorted_sequence: Arr,
    values: Arr,
    side: &str,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let side = match side {
        "left" => Side::Left,
        "right" => Side::Right,
        other => {
            return Err(wrong_value(format!("searchsorted: side '{other}' is not left or right")));
        }
    };
    on(stream, || give(ops::searchsorted(&sorted_sequence, &values, side)))
}

#[pyfunction]
#[pyo3(signature = (
    a, /, size, return_index = false, return_inverse = false, return_counts = false,
    fill_value = None, *, stream = None
))]
pub fn unique<'py>(
    py: Python<'py>,
    a: Arr,
    size: usize,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    fill_value: Option<Opd>,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyAny>> {
    let found = on(stream, || {
        ops::unique(&a, size, fill_value.as_ref().map(Operand::from)).map_err(raise)
    })?;
    let parts = [
        (true, found.values),
        (return_index, found.index),
        (return_inverse, found.inverse),
        (return_counts, found.counts),
    ];
    let mut wanted = parts.into_iter().filter(|(wanted, _)| *wanted).map(|(_, a)| PyArray::new(a));
    match wanted.next() {
        Some(one) if !(return_index || return_inverse || return_counts) => {
            Ok(Bound::new(py, one)?.into_any())
        }
        first => {
            Ok(PyTuple::new(py, first.into_iter().chain(wanted).collect::<Vec<_>>())?.into_any())
        }
    }
}

#[pyfunction]
#[pyo3(signature = (a, start_indices, axes, slice_size, *, stream = None))]
pub fn slice(
    a: Arr,
    start_indices: Arr,
    axes: Axis,
    slice_size: ShapeArg,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::slice_at(&a, &start_indices, axes.0, slice_size.0)))
}

#[pyfunction]
#[pyo3(signature = (a, update, start_indices, axes, *, stream = None))]
pub fn slice_update(
    a: Arr,
    update: Arr,
    start_indices: Arr,
    axes: Axis,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::slice_update_at(&a, &update, &start_indices, axes.0)))
}

#[pyfunction]
#[pyo3(signature = (a, /, shape = None, strides = None, offset = 0, *, stream = None))]
pub fn as_strided(
    a: Arr,
    shape: Option<ShapeArg>,
    strides: Option<SizesArg>,
    offset: usize,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let shape = shape.map_or_else(|| a.shape().clone(), |s| s.0);
    let strides: Sizes = match strides {
        Some(strides) => strides.into(),
        None => Sizes::from(&shape.row_major()[..]),
    };
    on(stream, || give(ops::as_strided(&a, shape, strides, offset)))
}

#[pyfunction]
#[pyo3(signature = (
    a, b, /, lhs_indices = None, rhs_indices = None, *, sorted_indices = false, stream = None
))]
pub fn gather_mm(
    a: Arr,
    b: Arr,
    lhs_indices: Option<Arr>,
    rhs_indices: Option<Arr>,
    sorted_indices: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let _ = sorted_indices;
    let (left, right) = (lhs_indices.as_deref(), rhs_indices.as_deref());
    on(stream, || give(ops::gather_mm(&a, &b, left, right)))
}

#[pyfunction]
#[pyo3(signature = (
    a, b, /, block_size = 64, mask_out = None, mask_lhs = None, mask_rhs = None, *, stream = None
))]
pub fn block_masked_mm(
    a: Arr,
    b: Arr,
    block_size: usize,
    mask_out: Option<Arr>,
    mask_lhs: Option<Arr>,
    mask_rhs: Option<Arr>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let masks = BlockMasks {
        out: mask_out.as_deref(),
        left: mask_lhs.as_deref(),
        right: mask_rhs.as_deref(),
    };
    on(stream, || give(ops::block_masked_mm(&a, &b, block_size, masks)))
}

#[pyfunction]
#[pyo3(signature = (a, scale = None, stream = None))]
pub fn hadamard_transform(a: Arr, scale: Option<f64>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::hadamard_transform(&a, scale)))
}

/// The array itself: it is laid out in rows when that is needed.
#[pyfunction]
#[pyo3(signature = (a, /, allow_col_major = false, *, stream = None))]
pub fn contiguous(a: Arr, allow_col_major: bool, stream: Option<On>) -> PyArray {
    let _ = (allow_col_major, stream);
    PyArray::new(a.0)
}

/// An array of anything that holds numbers; an array itself as it is. It lies in the memory of
/// another library's array where that is possible: nothing is copied, and what is written there
/// later shows in it. `copy=True` always copies, `copy=False` raises `ValueError` instead of
/// copying.
#[pyfunction]
#[pyo3(signature = (a, dtype = None, *, copy = None))]
pub fn asarray(
    a: &Bound<'_, PyAny>,
    dtype: Option<Dtype>,
    copy: Option<bool>,
) -> PyResult<PyArray> {
    read::converted(a, dtype.map(|d| d.0), copy.into()).map(PyArray::new)
}

/// An array of another library's, by DLPack; `copy` as in `asarray`.
#[pyfunction]
#[pyo3(signature = (x, /, *, copy = None))]
pub fn from_dlpack(x: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<PyArray> {
    read::from_dlpack(x, copy.into()).map(PyArray::new)
}

#[pyfunction]
#[pyo3(signature = (a, b, stream = None))]
pub fn divmod(a: Opd, b: Opd, stream: Option<On>) -> PyResult<Vec<PyArray>> {
    let (a, b) = meet(a, b)?;
    let (quotient, rest) = on(stream, || ops::divmod(&a, &b).map_err(raise))?;
    Ok(vec![PyArray::new(quotient), PyArray::new(rest)])
}

#[pyfunction]
#[pyo3(signature = (a, /, indices, values, axis = Axis::all(), *, stream = None))]
pub fn put_along_axis(
    a: Arr,
    indices: Arr,
    values: Opd,
    axis: Axis,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::put_along_axis(&a, &indices, &values, axis.0)))
}

#[pyfunction]
#[pyo3(signature = (a, stream = None))]
pub fn bitwise_invert(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::bitwise_invert(&a)))
}

/// Joins arrays along a new axis.
#[pyfunction]
#[pyo3(signature = (arrays, axis = 0, *, stream = None))]
pub fn stack(arrays: Arrays, axis: Option<isize>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::stack(&arrays.refs(), axis.unwrap_or(0))))
}
