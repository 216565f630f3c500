//! A part of an image with its zeros written out, so that kernels need no borders.

use std::ops::Range;

use cupola_simd::Element;

use super::Geometry;

/// What the output rows `rows` of the first axis read of an image, zeros included.
#[derive(Clone, Debug)]
pub(super) struct Padded {
    /// Positions along each axis.
    extents: Vec<usize>,
    /// Elements from one position to the next along each axis.
    pub pitches: Vec<usize>,
    /// The dilated input position that comes first.
    origins: Vec<isize>,
}

impl Padded {
    /// With positions of the last axis `pitch` elements apart, at least the channels.
    pub fn new(geo: &Geometry, rows: Range<usize>, pitch: usize) -> Padded {
        let mut padded = Padded { extents: vec![], pitches: vec![], origins: vec![] };
        for (d, axis) in geo.axes.iter().enumerate() {
            let outputs = if d == 0 { rows.clone() } else { 0..axis.output };
            let reach = (outputs.len() as isize - 1).max(0) * axis.stride
                + (axis.taps as isize - 1).max(0) * axis.dilation
                + 1;
            padded.extents.push(reach as usize);
            padded.origins.push(outputs.start as isize * axis.stride - axis.pad);
        }
        padded.pitches = pitches(&padded.extents, pitch);
        padded
    }

    pub fn len(&self) -> usize {
        self.extents[0] * self.pitches[0]
    }

    /// Some positions of the first axis.
    pub fn part(&self, positions: Range<usize>) -> Padded {
        let mut part = self.clone();
        part.extents[0] = positions.len();
        part.origins[0] += positions.start as isize;
        part
    }

    /// Positions along the first axis.
    pub fn rows(&self) -> usize {
        self.extents[0]
    }

    /// Fills `to` from an image.
    pub fn fill<T: Element>(&self, geo: &Geometry, image: &[T], to: &mut [T::Acc]) {
        to.fill(T::Acc::default());
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
        let (origin, step) = (self.origins[d], axis.input_dilation);
        let first = origin.max(0).div_euclid(step) + isize::from(origin.max(0) % step != 0);
        let end = (origin + self.extents[d] as isize - 1).div_euclid(step) + 1;
        let inputs = first as usize..end.clamp(first, (axis.input as isize).max(first)) as usize;
        let at = |i: usize| (i as isize * step - origin) as usize * self.pitches[d];
        if d + 1 < geo.axes.len() {
            for i in inputs {
                let to = &mut to[at(i)..][..self.pitches[d]];
                self.fill_axis(geo, d + 1, from, &image[i * from[d]..][..from[d]], to);
            }
        } else if step == 1 && self.pitches[d] == from[d] && !inputs.is_empty() {
            let part = &image[inputs.start * from[d]..inputs.end * from[d]];
            T::widen(part, &mut to[at(inputs.start)..][..part.len()]);
        } else {
            for i in inputs {
                let part = &image[i * from[d]..][..from[d]];
                T::widen(part, &mut to[at(i)..][..part.len()]);
            }
        }
    }
}

/// Elements from one position to the next along each axis, where along the last they are `last` apart.
pub(super) fn pitches(sizes: &[usize], last: usize) -> Vec<usize> {
    let mut pitches = vec![last; sizes.len()];
    for d in (1..sizes.len()).rev() {
        pitches[d - 1] = pitches[d] * sizes[d];
    }
    pitches
}
