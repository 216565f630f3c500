//! Reading at computed places: slices at indices, and elements along one axis.

mod index;
mod scatter;

use cupola_core::Result;
use cupola_core::backend::{Fails, Operand};
use cupola_core::prim::{Gather, GatherAxis};
use cupola_simd::Out;

use self::index::{FirstError, Indices, Target};
use crate::contiguous::Source;
use crate::op::{Finish, Io, OpKernel, by_size};
use crate::threads::parallel_for;
use crate::walk::Walk;
pub(crate) use scatter::ScatterKernel;

/// Elements that one chunk moves.
const CHUNK: usize = 1 << 14;
/// Positions that one chunk looks up, at most.
const POSITIONS: usize = 1 << 10;

/// A [`Gather`] that is ready to run.
pub struct GatherKernel {
    indices: Indices,
    slice: Walk<1>,
    width: usize,
}

impl GatherKernel {
    /// Prepares for these inputs.
    pub fn new(gather: &Gather, inputs: &[Operand]) -> Self {
        let x = &inputs[0];
        let target = |&axis: &usize| Target {
            axis,
            size: x.aval.shape[axis],
            span: gather.sizes[axis],
            stride: x.strides[axis],
        };
        GatherKernel {
            indices: Indices::new("gather", inputs, 1, gather.axes.iter().map(target)),
            slice: Walk::new(&gather.sizes, [&x.strides]),
            width: x.aval.dtype.size(),
        }
    }

    /// # Safety
    /// As for `OpKernel::run`; the elements have the size of `T`.
    unsafe fn gather<T: Copy + Send + Sync>(&self, io: &Io<'_>) -> Result<()> {
        let (count, slice) = (self.indices.len(), self.slice.size());
        let x = Source(io.inputs[0].cast::<T>());
        // SAFETY: the output has a slice for each position.
        let out = unsafe { Out::from_raw(io.outputs[0].cast::<T>(), count * slice) };
        let per = (CHUNK / slice.max(1)).clamp(1, POSITIONS);
        let pieces = slice.div_ceil(CHUNK * 4).max(1);
        let piece = slice.div_ceil(pieces);
        let dense = self.slice.run() == slice && self.slice.steps() == [1];
        let error = FirstError::default();
        parallel_for(count.div_ceil(per) * pieces, |chunk| {
            let first = chunk / pieces * per;
            let len = per.min(count - first);
            let part =
                (chunk % pieces * piece).min(slice)..((chunk % pieces + 1) * piece).min(slice);
            let mut buffer = [0isize; POSITIONS];
            let offsets = &mut buffer[..len];
            // SAFETY: the caller vouches for the inputs.
            if !error.note(chunk, unsafe { self.indices.add(io, first..first + len, offsets) }) {
                return;
            }
            for (i, &offset) in offsets.iter().enumerate() {
                let at = (first + i) * slice;
                // SAFETY: parts of slices are disjoint.
                let out = unsafe { out.slice(at + part.start..at + part.end) };
                let from = x.get().wrapping_offset(offset);
                if let [out] = out {
                    // SAFETY: the index was checked, so the slice is inside the operand.
                    *out = unsafe { *from.offset(part.start as isize * self.slice.steps()[0]) };
                } else if dense {
                    // SAFETY: as above; the slice has no gaps.
                    let from =
                        unsafe { std::slice::from_raw_parts(from.add(part.start), out.len()) };
                    out.copy_from_slice(from);
                } else {
                    // SAFETY: as above.
                    unsafe { strided(&self.slice, part.clone(), from, out) };
                }
            }
        });
        error.result()
    }
}

impl OpKernel for GatherKernel {
    fn fails(&self) -> Fails {
        Fails::Anywhere
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        // SAFETY: the caller vouches for the operands.
        by_size!(self.width, T => unsafe { self.gather::<T>(io) })?;
        finish.all();
        Ok(())
    }
}

/// Copies a part of a strided slice.
///
/// # Safety
/// The slice can be read from `from`.
unsafe fn strided<T: Copy>(
    slice: &Walk<1>,
    part: std::ops::Range<usize>,
    from: *const T,
    out: &mut [T],
) {
    let start = part.start;
    let [step] = slice.steps();
    slice.runs(part, |at, [offset], len| {
        for (i, out) in out[at - start..][..len].iter_mut().enumerate() {
            // SAFETY: the walk stays inside the slice.
            *out = unsafe { *from.offset(offset + i as isize * step) };
        }
    });
}

/// A [`GatherAxis`] that is ready to run.
pub struct GatherAxisKernel {
    indices: Indices,
    /// Over the shape of the indices: x, but for the axis that is indexed.
    others: Walk<1>,
    width: usize,
}

impl GatherAxisKernel {
    /// Prepares for these inputs.
    pub fn new(gather: &GatherAxis, inputs: &[Operand]) -> Self {
        let (x, axis) = (&inputs[0], gather.axis);
        let mut others = x.strides.clone();
        others[axis] = 0;
        let target = Target { axis, size: x.aval.shape[axis], span: 1, stride: x.strides[axis] };
        GatherAxisKernel {
            indices: Indices::new("take_along_axis", inputs, 1, [target]),
            others: Walk::new(&inputs[1].aval.shape, [&others]),
            width: x.aval.dtype.size(),
        }
    }

    /// # Safety
    /// As for `OpKernel::run`; the elements have the size of `T`.
    unsafe fn gather<T: Copy + Send + Sync>(&self, io: &Io<'_>) -> Result<()> {
        let size = self.indices.len();
        let x = Source(io.inputs[0].cast::<T>());
        // SAFETY: the output has the shape of the indices.
        let out = unsafe { Out::from_raw(io.outputs[0].cast::<T>(), size) };
        let error = FirstError::default();
        parallel_for(size.div_ceil(CHUNK), |chunk| {
            let mut buffer = [0isize; POSITIONS];
            let end = ((chunk + 1) * CHUNK).min(size);
            for first in (chunk * CHUNK..end).step_by(POSITIONS) {
                let range = first..(first + POSITIONS).min(end);
                let offsets = &mut buffer[..range.len()];
                add_others(&self.others, range.clone(), offsets);
                // SAFETY: the caller vouches for the inputs.
                if !error.note(chunk, unsafe { self.indices.add(io, range.clone(), offsets) }) {
                    return;
                }
                // SAFETY: ranges are disjoint.
                let out = unsafe { out.slice(range) };
                for (out, &offset) in out.iter_mut().zip(&*offsets) {
                    // SAFETY: the index was checked, so the offset is inside the operand.
                    *out = unsafe { *x.get().offset(offset) };
                }
            }
        });
        error.result()
    }
}

impl OpKernel for GatherAxisKernel {
    fn fails(&self) -> Fails {
        Fails::Anywhere
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        // SAFETY: the caller vouches for the operands.
        by_size!(self.width, T => unsafe { self.gather::<T>(io) })?;
        finish.all();
        Ok(())
    }
}

/// Sets the offsets of a range of positions along the axes that are not indexed.
pub fn add_others(others: &Walk<1>, range: std::ops::Range<usize>, offsets: &mut [isize]) {
    let [step] = others.steps();
    let start = range.start;
    others.runs(range, |at, [offset], len| {
        for (i, out) in offsets[at - start..][..len].iter_mut().enumerate() {
            *out = offset + i as isize * step;
        }
    });
}
