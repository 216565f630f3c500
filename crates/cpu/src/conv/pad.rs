//! A part of an image with its zeros written out, so that kernels need no borders.

use std::ops::Range;

use cupola_simd::Element;

use super::Geometry;
use super::geometry::Axis;

/// What the output rows `rows` of the first axis read of an image, zeros included.
#[derive(Clone, Debug)]
pub(super) struct Padded {
    /// Positions along each axis.
    extents: Vec<usize>,
    /// Elements from one position to the next along each axis.
    pub pitches: Vec<usize>,
    /// Elements from what one output meets to what the next does along each axis.
    pub strides: Vec<usize>,
    /// The dilated input position that comes first.
    origins: Vec<isize>,
    /// From one position to the next, in the image: more than one where a single tap leaves some out.
    steps: Vec<usize>,
}

impl Padded {
    /// With positions of the last axis `pitch` elements apart, at least the channels.
    pub fn new(geo: &Geometry, rows: Range<usize>, pitch: usize) -> Padded {
        let (mut extents, mut origins, mut steps) = (vec![], vec![], vec![]);
        for (d, axis) in geo.axes.iter().enumerate() {
            let outputs = if d == 0 { rows.clone() } else { 0..axis.output };
            let leaves_out = axis.taps == 1 && axis.input_dilation == 1;
            let (step, stride) = if leaves_out { (axis.stride, 1) } else { (1, axis.stride) };
            // Of taps very far apart it is more than there is memory for.
            let windows = (outputs.len() as isize - 1).max(0).saturating_mul(stride);
            let window = (axis.taps as isize - 1).max(0).saturating_mul(axis.dilation);
            extents.push(windows.saturating_add(window).saturating_add(1) as usize);
            origins.push(outputs.start as isize * axis.stride - axis.pad);
            steps.push(step as usize);
        }
        let pitches = pitches(&extents, pitch);
        let stride =
            |(d, axis): (usize, &Axis)| pitches[d].saturating_mul(axis.stride as usize / steps[d]);
        let strides = geo.axes.iter().enumerate().map(stride).collect();
        Padded { extents, pitches, strides, origins, steps }
    }

    pub fn len(&self) -> usize {
        self.extents[0].saturating_mul(self.pitches[0])
    }

    /// Some positions of the first axis.
    pub fn part(&self, positions: Range<usize>) -> Padded {
        let mut part = self.clone();
        part.extents[0] = positions.len();
        part.origins[0] += (positions.start * self.steps[0]) as isize;
        part
    }

    /// Positions along the first axis.
    pub fn rows(&self) -> usize {
        self.extents[0]
    }

    /// Fills `to` from an image.
    pub fn fill<T: Element>(&self, geo: &Geometry, image: &[T], to: &mut [T::Acc]) {
        let sizes: Vec<usize> = geo.axes.iter().map(|a| a.input).collect();
        let from = pitches(&sizes, geo.groups * geo.c_in);
        self.fill_axis(geo, 0, &from, image, to);
    }

    fn fill_axis<T: Element>(
        &self,
        geo: &Geometry,
        d: usize,
        from: &[usize],
        image: &[T],
        to: &mut [T::Acc],
    ) {
        let axis = &geo.axes[d];
        let (origin, dilation) = (self.origins[d], axis.input_dilation as usize);
        let (step, pitch, len) =
            (self.steps[d], self.pitches[d], self.extents[d] * self.pitches[d]);
        // The first position that has an input. From there on inputs are `step` apart, and positions `dilation`.
        let before = origin.min(0).unsigned_abs();
        let skipped = origin.max(0) as usize;
        let first = before.div_ceil(step) + skipped.next_multiple_of(dilation) - skipped;
        let input = (origin + (first * step) as isize) as usize / dilation;
        let there = axis.input.saturating_sub(input).div_ceil(step);
        let count = self.extents[d].saturating_sub(first).div_ceil(dilation).min(there);
        // Zeros are what no input comes to: nothing else is written twice.
        if dilation > 1 || count == 0 {
            to[..len].fill(T::Acc::default());
        } else {
            to[..first * pitch].fill(T::Acc::default());
            to[(first + count) * pitch..len].fill(T::Acc::default());
        }
        let is_last = d + 1 == geo.axes.len();
        if is_last && (step, dilation, pitch) == (1, 1, from[d]) && count > 0 {
            let part = &image[input * pitch..][..count * pitch];
            return T::widen(part, &mut to[first * pitch..][..part.len()]);
        }
        for i in 0..count {
            let part = &image[(input + i * step) * from[d]..][..from[d]];
            let to = &mut to[(first + i * dilation) * pitch..];
            match is_last {
                true => T::widen(part, &mut to[..part.len()]),
                false => self.fill_axis(geo, d + 1, from, part, &mut to[..pitch]),
            }
        }
    }
}

/// Elements from one position to the next along each axis, where along the last they are `last` apart.
pub(super) fn pitches(sizes: &[usize], last: usize) -> Vec<usize> {
    let mut pitches = vec![last; sizes.len()];
    for d in (1..sizes.len()).rev() {
        pitches[d - 1] = pitches[d].saturating_mul(sizes[d]);
    }
    pitches
}
