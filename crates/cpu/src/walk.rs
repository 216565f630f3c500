//! Walking several strided operands of one shape together, in row-major order, run by run.

use std::ops::Range;

use cupola_core::merge_axes;
use smallvec::SmallVec;

/// The axes that `N` operands of one shape have in common, with what can be merged merged.
#[derive(Clone, Debug)]
pub struct Walk<const N: usize> {
    /// Outermost first; at least one.
    axes: SmallVec<[Axis<N>; 4]>,
    size: usize,
}

#[derive(Clone, Copy, Debug)]
struct Axis<const N: usize> {
    size: usize,
    strides: [isize; N],
}

impl<const N: usize> Walk<N> {
    /// Operands of `shape`, each with its strides.
    pub fn new(shape: &[usize], strides: [&[isize]; N]) -> Self {
        let mut axes: SmallVec<[Axis<N>; 4]> = (merge_axes(shape, &strides, |_| false).iter())
            .map(|axis| Axis { size: axis.size, strides: strides.map(|s| s[axis.last]) })
            .collect();
        if axes.is_empty() {
            axes.push(Axis { size: 1, strides: [0; N] });
        }
        Walk { axes, size: shape.iter().product() }
    }

    /// How many elements there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The length of whole runs.
    pub fn run(&self) -> usize {
        self.inner().size
    }

    /// Elements between neighbours in a run, for each operand.
    pub fn steps(&self) -> [isize; N] {
        self.inner().strides
    }

    fn inner(&self) -> &Axis<N> {
        &self.axes[self.axes.len() - 1]
    }

    /// Calls `f` with the first row-major position, the operands' offsets there, and the length of
    /// each run in `range`.
    #[inline]
    pub fn runs(&self, range: Range<usize>, mut f: impl FnMut(usize, [isize; N], usize)) {
        if range.is_empty() {
            return;
        }
        let inner = *self.inner();
        let outer = &self.axes[..self.axes.len() - 1];
        let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
        let mut row = range.start / inner.size;
        let mut offsets = [0isize; N];
        for (i, axis) in outer.iter().enumerate().rev() {
            index[i] = row % axis.size;
            row /= axis.size;
            axis.step(&mut offsets, index[i] as isize);
        }
        let mut at = range.start;
        let mut skip = range.start % inner.size;
        loop {
            let len = (inner.size - skip).min(range.end - at);
            let mut start = offsets;
            inner.step(&mut start, skip as isize);
            f(at, start, len);
            at += len;
            if at == range.end {
                return;
            }
            skip = 0;
            for (i, axis) in outer.iter().enumerate().rev() {
                index[i] += 1;
                axis.step(&mut offsets, 1);
                if index[i] < axis.size {
                    break;
                }
                axis.step(&mut offsets, -(axis.size as isize));
                index[i] = 0;
            }
        }
    }
}

impl<const N: usize> Axis<N> {
    #[inline]
    fn step(&self, offsets: &mut [isize; N], by: isize) {
        for (offset, stride) in offsets.iter_mut().zip(self.strides) {
            *offset += by * stride;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_visit_every_element_in_order() {
        let cases: [(&[usize], [&[isize]; 2]); 6] = [
            (&[], [&[], &[]]),
            (&[5], [&[2], &[-1]]),
            (&[3, 4], [&[4, 1], &[8, 2]]),
            (&[3, 4], [&[1, 3], &[0, 0]]),
            (&[2, 1, 3, 2], [&[6, 9, 2, 1], &[1, 9, 4, 2]]),
            (&[2, 3, 2], [&[6, 2, 1], &[2, 0, 1]]),
        ];
        for (shape, strides) in cases {
            let walk = Walk::new(shape, strides);
            let size: usize = shape.iter().product();
            assert_eq!(walk.size(), size);
            let want = |mut at: usize| {
                let mut offsets = [0; 2];
                for axis in (0..shape.len()).rev() {
                    let i = (at % shape[axis]) as isize;
                    at /= shape[axis];
                    offsets =
                        [offsets[0] + i * strides[0][axis], offsets[1] + i * strides[1][axis]];
                }
                offsets
            };
            for start in 0..=size {
                for end in start..=size {
                    let mut next = start;
                    walk.runs(start..end, |at, offsets, len| {
                        for i in 0..len as isize {
                            let [a, b] = walk.steps();
                            let here = [offsets[0] + i * a, offsets[1] + i * b];
                            assert_eq!(here, want(at + i as usize), "{shape:?} {strides:?}");
                        }
                        assert_eq!(at, next);
                        next += len;
                    });
                    assert_eq!(next, end);
                }
            }
        }
        Walk::new(&[2, 0], [&[1, 1]]).runs(0..0, |_, _, _| unreachable!());
        assert_eq!(Walk::new(&[3, 4], [&[4, 1], &[8, 2]]).run(), 12);
    }
}
