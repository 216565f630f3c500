//! Windows of images as rows, and back; pooling to a given size; pooling that says where it found its elements, and
//! the way back.

use super::conv::{PerAxis, each_axis};
use super::index::{S, at_add, index};
use super::mask::along_axes;
use super::operand::{cast, constant_like, expect_real, inexact, wide};
use super::{
    DataFormat, add, argmax, expand_axes, floor_divide, full, isnan, max, max_pool, mean, multiply,
    pad, put_along_axis, reshape, stack, subtract, sum, take, where_,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{PadMode, PadWidths, PoolOptions};
use crate::shape::{Dims, Shape};

/// The windows of [`unfold`] and [`fold`]. A list of one entry stands for every spatial axis.
///
/// # Example
/// ```
/// use cupola::ops::Windows;
/// let windows = Windows::new(3).stride(2).padding(1);
/// assert_eq!(windows.padding, [1]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Windows {
    /// The window's size.
    pub window: Vec<usize>,
    /// Steps between windows; 1.
    pub stride: Vec<usize>,
    /// Zeros before and after the input; 0.
    pub padding: Vec<usize>,
    /// Steps between the elements of a window; 1.
    pub dilation: Vec<usize>,
    /// Where images have their channels; last.
    pub data_format: DataFormat,
}

impl Windows {
    /// Windows at every place, without padding.
    pub fn new(window: impl Into<PerAxis>) -> Self {
        Windows {
            window: window.into().into_vec(),
            stride: vec![1],
            padding: vec![0],
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
        self.padding = padding.into().into_vec();
        self
    }

    /// With these steps between the elements of a window.
    pub fn dilation(mut self, dilation: impl Into<PerAxis>) -> Self {
        self.dilation = dilation.into().into_vec();
        self
    }

    /// With images in this format.
    pub fn data_format(mut self, data_format: DataFormat) -> Self {
        self.data_format = data_format;
        self
    }
}

/// Windows over axes of given sizes.
struct Grid {
    window: Vec<usize>,
    stride: Vec<usize>,
    padding: Vec<usize>,
    dilation: Vec<usize>,
    /// How many windows there are along each axis.
    output: Vec<usize>,
}

impl Grid {
    fn of(op: &'static str, windows: &Windows, sizes: &[usize]) -> Result<Grid> {
        let axes = sizes.len();
        let window = each_axis(op, "window", &windows.window, axes)?;
        let stride = each_axis(op, "stride", &windows.stride, axes)?;
        let padding = each_axis(op, "padding", &windows.padding, axes)?;
        let dilation = each_axis(op, "dilation", &windows.dilation, axes)?;
        let mut output = Vec::with_capacity(axes);
        for i in 0..axes {
            if window[i] == 0 || stride[i] == 0 || dilation[i] == 0 {
                let detail = "window, stride and dilation are at least 1".to_owned();
                return Err(Error::argument(op, detail));
            }
            let reach = (window[i] - 1).saturating_mul(dilation[i]).saturating_add(1);
            let whole = padding[i].saturating_mul(2).saturating_add(sizes[i]);
            if reach > whole || whole > isize::MAX as usize {
                let detail = format!("a window that reaches {reach} does not fit into {whole}");
                return Err(Error::shape(op, detail));
            }
            output.push((whole - reach) / stride[i] + 1);
        }
        Ok(Grid { window, stride, padding, dilation, output })
    }

    /// How many windows there are.
    fn count(&self) -> usize {
        self.output.iter().fold(1, |n, &o| n.saturating_mul(o))
    }

    /// How many elements a window has, for one channel.
    fn taps(&self) -> usize {
        self.window.iter().fold(1, |n, &w| n.saturating_mul(w))
    }

    /// The place of an element of a window along each axis.
    fn place(&self, tap: usize) -> Vec<usize> {
        let mut rest = tap;
        let mut place = vec![0; self.window.len()];
        for (at, &size) in place.iter_mut().zip(&self.window).rev() {
            *at = rest % size;
            rest /= size;
        }
        place
    }

    /// The elements of all windows at this place, in the padded input.
    fn items(&self, tap: usize) -> Vec<S> {
        let mut items = vec![S::range(..)];
        for (i, at) in self.place(tap).into_iter().enumerate() {
            let start = at * self.dilation[i];
            let stop = start + (self.output[i] - 1) * self.stride[i] + 1;
            let range = S::range(start as isize..stop as isize);
            items.push(range.step(self.stride[i] as isize));
        }
        items
    }

    fn widths(&self) -> PadWidths {
        let inner = self.padding.iter().map(|&p| (p, p));
        PadWidths::Each([(0, 0)].into_iter().chain(inner).chain([(0, 0)]).collect())
    }

    /// The elements of each window along a new axis before the channels.
    fn windows(&self, x: &Array, border: PadMode) -> Result<Array> {
        let wide = match self.padding.iter().all(|&p| p == 0) {
            true => x.clone(),
            false => pad(x, self.widths(), border)?,
        };
        let parts: Vec<Array> =
            (0..self.taps()).map(|tap| index(&wide, &self.items(tap))).collect::<Result<_>>()?;
        stack(&parts.iter().collect::<Vec<_>>(), -2)
    }
}

fn spatial(op: &'static str, x: &Array) -> Result<usize> {
    match x.rank().saturating_sub(2) {
        0 => Err(Error::shape(op, format!("{} has no spatial axes", x.aval()))),
        axes => Ok(axes),
    }
}

/// The windows of an image as rows: their product with the flattened weight of a convolution is the convolution.
///
/// # Shapes
/// `[N, input.., C]` gives `[N, windows, taps·C]`, with any number of spatial axes; the channels of a tap are side by side.
/// With channels first `[N, C, input..]` gives `[N, C·taps, windows]`, as in PyTorch.
///
/// # Errors
/// For images without spatial axes, windows that do not fit, and windows, strides and dilations of 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::Windows};
/// let x = Array::from_slice(&[1, 2, 3], [1, 3, 1])?;
/// let rows = ops::unfold(&x, &Windows::new(2))?;
/// assert_eq!(rows.shape()[..], [1, 2, 2]);
/// assert_eq!(rows.to_vec::<i32>()?, [1, 2, 2, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn unfold(x: &Array, windows: &Windows) -> Result<Array> {
    let last = windows.data_format.to_last(x)?;
    let rows = windows.data_format.told(x, unfold_last(&last, windows))?;
    windows.data_format.windows_from_last(&rows, last.shape()[last.rank() - 1])
}

/// [`unfold`] with channels last.
fn unfold_last(x: &Array, windows: &Windows) -> Result<Array> {
    let op = "unfold";
    let axes = spatial(op, x)?;
    let grid = Grid::of(op, windows, &x.shape()[1..=axes])?;
    let (count, channels) = (grid.count(), x.shape()[axes + 1]);
    let shape = Shape::from([x.shape()[0], count, grid.taps().saturating_mul(channels)]);
    shape.checked_size(op, x.dtype())?;
    reshape(&grid.windows(x, PadMode::Constant(0.into()))?, shape)
}

/// The inverse of [`unfold`] but that where windows overlap their elements add up.
///
/// # Shapes
/// `[N, windows, taps·C]` gives `[N, sizes.., C]`. With channels first `[N, C·taps, windows]` gives `[N, C, sizes..]`.
///
/// # Dtypes
/// Half types are summed in `float32`.
///
/// # Errors
/// Where rows and windows do not fit the sizes, and as [`unfold`].
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::Windows};
/// let rows = Array::from_slice(&[1, 2, 2, 3], [1, 2, 2])?;
/// assert_eq!(ops::fold(&rows, &[3], &Windows::new(2))?.to_vec::<i32>()?, [1, 4, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fold(rows: &Array, sizes: &[usize], windows: &Windows) -> Result<Array> {
    let op = "fold";
    let grid = Grid::of(op, windows, sizes)?;
    let last = windows.data_format.windows_to_last(rows, grid.taps())?;
    let image = windows.data_format.told(rows, fold_last(op, &last, sizes, &grid))?;
    windows.data_format.from_last(&image)
}

/// [`fold`] with channels last.
fn fold_last(op: &'static str, rows: &Array, sizes: &[usize], grid: &Grid) -> Result<Array> {
    let count = grid.count();
    let taps = grid.taps();
    let [batch, windows, elements] = rows.shape()[..] else {
        return Err(Error::shape(op, format!("{} is not [N, windows, taps·C]", rows.aval())));
    };
    if sizes.is_empty() || windows != count || !elements.is_multiple_of(taps) {
        let detail = format!("{} is not {count} windows of {taps} taps for {sizes:?}", rows.aval());
        return Err(Error::shape(op, detail));
    }
    let channels = elements / taps;
    let own = rows.dtype();
    let apart = [&[batch], &grid.output[..], &[taps, channels]].concat();
    let apart = cast(&reshape(rows, Shape::from(&apart[..]))?, own.accumulator())?;
    let whole = sizes.iter().zip(&grid.padding).map(|(n, p)| n + 2 * p);
    let whole: Shape = [batch].into_iter().chain(whole).chain([channels]).collect();
    let mut out = full(whole, 0, own.accumulator())?;
    for tap in 0..taps {
        let part = index(&apart, &[S::ellipsis(), S::at(tap as isize), S::range(..)])?;
        out = at_add(&out, &grid.items(tap), &part)?;
    }
    let inner = |(&p, &n): (&usize, &usize)| S::range(p as isize..(p + n) as isize);
    let items: Vec<S> =
        [S::range(..)].into_iter().chain(grid.padding.iter().zip(sizes).map(inner)).collect();
    cast(&index(&out, &items)?, own)
}

/// Pools each spatial axis to a size: of part i of n the elements from ⌊i·size/n⌋ up to ⌈(i + 1)·size/n⌉.
fn adaptive(
    op: &'static str,
    x: &Array,
    sizes: &[usize],
    fold: impl Fn(&Array, usize, &Array, &Array) -> Result<Array>,
    whole: impl Fn(&Array, usize) -> Result<Array>,
) -> Result<Array> {
    let axes = spatial(op, x)?;
    let sizes = each_axis(op, "sizes", sizes, axes)?;
    let mut out = x.clone();
    for (i, parts) in sizes.into_iter().enumerate() {
        let axis = i + 1;
        let size = out.shape()[axis];
        if parts == 0 || size == 0 || size > i32::MAX as usize || parts > i32::MAX as usize {
            let detail = format!("axis {axis} of {} cannot become {parts}", x.aval());
            return Err(Error::shape(op, detail));
        }
        if parts == size {
            continue;
        }
        if size.is_multiple_of(parts) {
            let apart = super::unflatten(&out, axis as isize, [parts as isize, -1])?;
            out = whole(&apart, axis + 1)?;
            continue;
        }
        // As large as a part may be.
        let most = (size.div_ceil(parts) + 1).min(size);
        let part = super::iota([parts, 1], 0, DType::I64)?;
        let start = floor_divide(&multiply(&part, size)?, parts)?;
        let stop = add(&multiply(&part, size)?, size + parts - 1)?;
        let stop = floor_divide(&stop, parts)?;
        let place = add(&start, &super::iota([1, most], 1, DType::I64)?)?;
        let mask = super::less(&place, &stop)?;
        let place = cast(&super::minimum(&place, &subtract(&stop, 1)?)?, DType::I32)?;
        let gathered = take(&out, &place, axis)?;
        let behind = |from: usize| (from..from + out.rank() - axis - 1).collect::<Dims>();
        let mask = expand_axes(&mask, behind(2))?;
        let counts = super::flatten(&subtract(&stop, &start)?, 0, -1)?;
        let counts = expand_axes(&cast(&counts, DType::F32)?, behind(1))?;
        out = fold(&gathered, axis + 1, &mask, &counts)?;
    }
    Ok(out)
}

/// The means of parts that cover an image: as many along each spatial axis as `sizes` says, one entry for all or one an
/// axis.
///
/// # Shapes
/// `[N, input.., C]` gives `[N, sizes.., C]`. Of n parts number i has the elements from ⌊i·input/n⌋ up to
/// ⌈(i + 1)·input/n⌉, so that neighbours may overlap.
///
/// # Dtypes
/// Integers and bool are taken as `float32`; half types are summed and divided in `float32`.
///
/// # Errors
/// For images without spatial axes, empty axes, and sizes of 0.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0], [1, 3, 1])?;
/// assert_eq!(ops::adaptive_avg_pool(&x, &[2])?.to_vec::<f32>()?, [1.5, 2.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn adaptive_avg_pool(x: &Array, sizes: &[usize]) -> Result<Array> {
    let own = x.dtype().to_inexact();
    let fold = |x: &Array, axis: usize, mask: &Array, counts: &Array| {
        let total = sum(&where_(mask, x, 0)?, axis, false)?;
        super::divide(&total, &cast(counts, total.dtype())?)
    };
    let whole = |x: &Array, axis: usize| mean(x, axis, false);
    cast(&adaptive("adaptive_avg_pool", &wide(x)?, sizes, fold, whole)?, own)
}

/// The largest elements of parts that cover an image; see [`adaptive_avg_pool`].
///
/// # Shapes
/// As [`adaptive_avg_pool`].
///
/// # Errors
/// As [`adaptive_avg_pool`], and for complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0], [1, 3, 1])?;
/// assert_eq!(ops::adaptive_max_pool(&x, &[2])?.to_vec::<f32>()?, [2.0, 3.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn adaptive_max_pool(x: &Array, sizes: &[usize]) -> Result<Array> {
    let op = "adaptive_max_pool";
    expect_real(op, &[x.into()])?;
    let is_float = x.dtype().is_float();
    let fold = |x: &Array, axis: usize, mask: &Array, _: &Array| {
        // An element that comes twice is as large as once; that it has its derivative once is what the mask is for.
        let x = if is_float { where_(mask, x, f64::NEG_INFINITY)? } else { x.clone() };
        max(&x, axis, false)
    };
    adaptive(op, x, sizes, fold, |x, axis| max(x, axis, false))
}

/// [`max_pool`](super::max_pool), and where in its image, flattened, each largest element is: the first of equal ones,
/// or the first NaN.
///
/// # Shapes
/// Both as [`max_pool`](super::max_pool) gives.
///
/// # Dtypes
/// The places are `int32`.
///
/// # Errors
/// As [`max_pool`](super::max_pool), and for images of 2³¹ pixels and more.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::PoolOptions};
/// let x = Array::from_slice(&[1.0f32, 4.0, 3.0, 2.0], [1, 4, 1])?;
/// let (largest, places) = ops::max_pool_with_indices(&x, &PoolOptions::new(2))?;
/// assert_eq!(largest.to_vec::<f32>()?, [4.0, 3.0]);
/// assert_eq!(places.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn max_pool_with_indices(x: &Array, options: &PoolOptions) -> Result<(Array, Array)> {
    let format = options.data_format;
    let last = PoolOptions { data_format: DataFormat::ChannelsLast, ..options.clone() };
    let (found, places) = format.told(x, places_of_largest(&format.to_last(x)?, &last))?;
    Ok((format.from_last(&found)?, format.from_last(&places)?))
}

/// [`max_pool_with_indices`] with channels last.
fn places_of_largest(x: &Array, options: &PoolOptions) -> Result<(Array, Array)> {
    let op = "max_pool_with_indices";
    let axes = spatial(op, x)?;
    let found = max_pool(x, options)?;
    let sizes = &x.shape()[1..=axes];
    if sizes.iter().fold(1usize, |n, &s| n.saturating_mul(s)) > i32::MAX as usize {
        return Err(Error::shape(op, format!("{} has 2³¹ pixels or more", x.aval())));
    }
    let PoolOptions { window, stride, padding, dilation, data_format: _ } =
        options.along(op, axes)?;
    let output = found.shape()[1..=axes].to_vec();
    let grid = Grid { window, stride, padding: vec![0; axes], dilation, output };
    let x = inexact(&super::stop_gradient(x)?)?;
    let widths: Vec<(usize, usize)> =
        [(0, 0)].into_iter().chain(padding.iter().copied()).chain([(0, 0)]).collect();
    let bordered = pad(&x, PadWidths::Each(widths), PadMode::Constant(f64::NEG_INFINITY.into()))?;
    let windows = grid.windows(&bordered, PadMode::Constant(0.into()))?;
    // NaN is the largest.
    let first_nan = argmax(&cast(&isnan(&windows)?, DType::I32)?, -2, false)?;
    let any_nan = super::any(&isnan(&windows)?, -2, false)?;
    let tap = where_(&any_nan, &first_nan, &argmax(&windows, -2, false)?)?;
    let tap = cast(&tap, DType::I32)?;
    let mut place = constant_like(&tap, 0);
    for (i, at) in along_axes(tap.clone(), &grid.window)?.iter().enumerate() {
        let start = super::iota(tap.shape().clone(), i + 1, DType::I32)?;
        let start = subtract(&multiply(&start, grid.stride[i])?, padding[i].0)?;
        let at = multiply(at, grid.dilation[i])?;
        place = add(&multiply(&place, sizes[i])?, &add(&start, &at)?)?;
    }
    Ok((found, place))
}

/// An image with elements at the places that [`max_pool_with_indices`] found them at, and zeros elsewhere.
///
/// # Shapes
/// Elements and places `[N, input.., C]` give `[N, sizes.., C]`.
///
/// # Errors
/// Where elements and places differ, the places are not integers, the sizes are not one a spatial axis, and when it runs
/// where a place is outside of the image.
///
/// # Example
/// ```
/// use cupola::{Array, ops, ops::PoolOptions};
/// let x = Array::from_slice(&[1.0f32, 4.0, 3.0, 2.0], [1, 4, 1])?;
/// let (largest, places) = ops::max_pool_with_indices(&x, &PoolOptions::new(2))?;
/// assert_eq!(ops::max_unpool(&largest, &places, &[4])?.to_vec::<f32>()?, [0.0, 4.0, 3.0, 0.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn max_unpool(x: &Array, places: &Array, sizes: &[usize]) -> Result<Array> {
    let op = "max_unpool";
    let axes = spatial(op, x)?;
    if x.shape() != places.shape() || sizes.len() != axes {
        let detail = format!("{} at {} does not fit {sizes:?}", x.aval(), places.aval());
        return Err(Error::shape(op, detail));
    }
    super::gather::expect_integers(op, places)?;
    let (batch, channels) = (x.shape()[0], x.shape()[axes + 1]);
    let whole: Shape = [batch].into_iter().chain(sizes.iter().copied()).chain([channels]).collect();
    whole.checked_size(op, x.dtype())?;
    let pixels: usize = sizes.iter().product();
    let image = full([batch, pixels, channels], 0, x.dtype())?;
    if x.is_empty() {
        return reshape(&image, whole);
    }
    let rows = |a: &Array| super::flatten(a, 1, axes as isize);
    reshape(&put_along_axis(&image, &rows(places)?, &rows(x)?, 1)?, whole)
}
