//! Windows over the spatial axes, with the channels before them.

use cupola_core::ops::{DataFormat, PadMode, PoolOptions};
use cupola_core::{Array, DType, ops};

use super::Made;
use crate::error::Fault;

/// Windows along the spatial axes of `[N, C, ..]`.
#[derive(Clone, Debug)]
pub struct Windows {
    pub window: Vec<usize>,
    pub stride: Vec<usize>,
    pub dilation: Vec<usize>,
    /// What is padded before and after.
    pub pads: Vec<(usize, usize)>,
    /// What the last windows reach beyond.
    pub extra: Vec<usize>,
    pub outputs: Vec<usize>,
}

/// Which side of an axis takes the odd element of padding.
pub fn same_pads(total: usize, upper: bool) -> (usize, usize) {
    let small = total / 2;
    if upper { (small, total - small) } else { (total - small, small) }
}

impl Windows {
    /// Windows over axes of `sizes`; with `ceil` the last may reach beyond.
    pub fn over(
        sizes: &[usize],
        window: Vec<usize>,
        stride: Vec<usize>,
        dilation: Vec<usize>,
        pads: Vec<(usize, usize)>,
        ceil: bool,
    ) -> Result<Windows, Fault> {
        if [&window, &stride, &dilation].iter().any(|list| list.contains(&0)) {
            return Err(Fault::invalid("a window, stride or dilation is 0"));
        }
        let (mut extra, mut outputs) = (Vec::new(), Vec::new());
        for i in 0..sizes.len() {
            let padded = sizes[i].saturating_add(pads[i].0).saturating_add(pads[i].1);
            let span = (window[i] - 1).saturating_mul(dilation[i]).saturating_add(1);
            let room = padded.checked_sub(span).ok_or_else(|| {
                Fault::invalid(format!(
                    "a window of {span} is larger than axis {} of {padded}",
                    i + 2
                ))
            })?;
            let mut count = room / stride[i] + 1;
            if ceil && !room.is_multiple_of(stride[i]) && count * stride[i] < sizes[i] + pads[i].0 {
                // A window that starts in the padding behind does not count.
                count += 1;
            }
            extra.push(((count - 1) * stride[i] + span).saturating_sub(padded));
            outputs.push(count);
        }
        Ok(Windows { window, stride, dilation, pads, extra, outputs })
    }

    /// All that is put around the axes.
    pub fn around(&self, rank: usize) -> Vec<(usize, usize)> {
        let mut widths = vec![(0, 0); rank];
        for (i, &(before, after)) in self.pads.iter().enumerate() {
            widths[i + 2] = (before, after + self.extra[i]);
        }
        widths
    }

    /// The elements of every window: `[N, C, outputs.., elements]`.
    pub fn gathered(&self, x: &Array, fill: impl Into<PadMode>) -> Made {
        let axes = self.window.len();
        let mut out = ops::pad(x, &self.around(x.rank())[..], fill)?;
        for i in 0..axes {
            let starts = ops::arange_in(0, self.outputs[i], 1, DType::I64)?;
            let starts = ops::multiply(&starts, self.stride[i] as i64)?;
            let inside = ops::arange_in(0, self.window[i], 1, DType::I64)?;
            let inside = ops::multiply(&inside, self.dilation[i] as i64)?;
            let places = ops::add(&ops::expand_dims(&starts, 1)?, &inside)?;
            // Axis 2 + 2i becomes two.
            out = ops::take(&out, &places, (2 + 2 * i) as isize)?;
        }
        let order = [0, 1]
            .into_iter()
            .chain((0..axes).map(|i| 2 + 2 * i))
            .chain((0..axes).map(|i| 3 + 2 * i));
        let out = ops::transpose(&out, order.collect::<Vec<usize>>())?;
        let mut sizes = out.shape()[..2 + axes].to_vec();
        sizes.push(self.window.iter().product());
        Ok(ops::reshape(&out, sizes)?)
    }

    pub fn options(&self) -> PoolOptions {
        let mut options = PoolOptions::new(self.window.clone())
            .stride(self.stride.clone())
            .dilation(self.dilation.clone())
            .data_format(DataFormat::ChannelsFirst);
        options.padding = self.around(self.window.len() + 2).split_off(2);
        options
    }

    /// The mean of every window, what is padded counted or not.
    pub fn average(&self, x: &Array, count_pads: bool) -> Made {
        let dtype = x.dtype();
        let x = ops::astype(x, dtype.accumulator())?;
        let mut sizes = x.shape().to_vec();
        (sizes[0], sizes[1]) = (1, 1);
        let mut ones = ops::ones(sizes, x.dtype())?;
        let mut counted = self.clone();
        if count_pads {
            let mut widths = vec![(0, 0); x.rank()];
            widths[2..].copy_from_slice(&self.pads);
            ones = ops::pad(&ones, &widths[..], 1)?;
            counted.pads.iter_mut().for_each(|p| *p = (0, 0));
        }
        let mean =
            |x: &Array, windows: &Windows| -> Made { Ok(ops::avg_pool(x, &windows.options())?) };
        let y = ops::divide(&mean(&x, self)?, &mean(&ones, &counted)?)?;
        Ok(ops::astype(&y, dtype)?)
    }
}
