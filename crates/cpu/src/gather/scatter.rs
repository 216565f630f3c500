//! Writing at computed places: slices at indices, and elements along one axis.

use std::ops::Range;

use cupola_core::backend::{Fails, Operand};
use cupola_core::prim::{Scatter, ScatterAxis, ScatterMode};
use cupola_core::{DType, Result, Shape};
use cupola_simd::Out;
use cupola_simd::half::{c32_to_c64, c64_to_c32};
use half::{bf16, f16};
use num_complex::{Complex, Complex32};

use super::add_others;
use super::index::{FirstError, Indices, Target};
use crate::contiguous::{Contiguous, Source};
use crate::memory::HostMemory;
use crate::op::{Finish, Io, OpKernel, by_size};
use crate::threads::{num_threads, parallel_for};
use crate::walk::Walk;

/// Positions that one chunk looks up.
const POSITIONS: usize = 1 << 14;
/// Elements that are worth a thread of their own.
const SHARD: usize = 1 << 14;

/// A [`Scatter`] or [`ScatterAxis`] that is ready to run.
///
/// The places of all updates are computed and checked first. Then every thread takes a range of
/// the target and joins in what falls into it, in the order of the updates, so that the result
/// does not depend on how many threads there are.
pub struct ScatterKernel {
    x: Contiguous,
    updates: Contiguous,
    indices: Indices,
    /// Over the shape of the indices: the target, but for the axes that are indexed.
    others: Option<Walk<1>>,
    /// One update, in the target.
    slice: Walk<1>,
    /// How far a slice reaches in the target from its first element on.
    reach: usize,
    /// Elements of the target.
    size: usize,
    join: Join,
}

/// Joins the updates' elements that fall into a shard of the target.
type Join = Box<dyn Fn(&Shard<'_>) + Send + Sync>;

impl ScatterKernel {
    /// Prepares a [`Scatter`] for these inputs.
    pub fn new(scatter: &Scatter, inputs: &[Operand]) -> Result<Self> {
        let (x, updates) = (&inputs[0], &inputs[1]);
        let strides = x.aval.shape.row_major();
        let lead = updates.aval.shape.rank() - x.aval.shape.rank();
        let sizes = &updates.aval.shape[lead..];
        let target = |&axis: &usize| Target {
            axis,
            size: x.aval.shape[axis],
            span: sizes[axis],
            stride: strides[axis],
        };
        Ok(ScatterKernel {
            x: Contiguous::new(x)?,
            updates: Contiguous::new(updates)?,
            indices: Indices::new("scatter", inputs, 2, scatter.axes.iter().map(target)),
            others: None,
            slice: Walk::new(sizes, [&strides]),
            reach: sizes
                .iter()
                .zip(&strides)
                .map(|(n, &s)| n.saturating_sub(1) * s as usize)
                .sum::<usize>()
                + 1,
            size: x.aval.shape.size(),
            join: join(scatter.mode, x.aval.dtype),
        })
    }

    /// Prepares a [`ScatterAxis`] for these inputs.
    pub fn along(scatter: &ScatterAxis, inputs: &[Operand]) -> Result<Self> {
        let (x, axis) = (&inputs[0], scatter.axis);
        let mut strides = x.aval.shape.row_major();
        let stride = std::mem::take(&mut strides[axis]);
        let target = Target { axis, size: x.aval.shape[axis], span: 1, stride };
        Ok(ScatterKernel {
            x: Contiguous::new(x)?,
            updates: Contiguous::new(&inputs[1])?,
            indices: Indices::new("put_along_axis", inputs, 2, [target]),
            others: Some(Walk::new(&inputs[2].aval.shape, [&strides])),
            slice: Walk::new(&Shape::scalar(), [&[]]),
            reach: 1,
            size: x.aval.shape.size(),
            join: join(scatter.mode, x.aval.dtype),
        })
    }

    /// Where each update goes.
    ///
    /// # Safety
    /// As for `OpKernel::run`.
    unsafe fn places(&self, io: &Io<'_>) -> Result<HostMemory> {
        let count = self.indices.len();
        let places = HostMemory::new(count * size_of::<isize>(), "the places of a scatter")?;
        // SAFETY: the memory has `count` elements, and is aligned for them.
        let out = unsafe { Out::from_raw(places.as_ptr().cast::<isize>(), count) };
        let error = FirstError::default();
        parallel_for(count.div_ceil(POSITIONS), |chunk| {
            let range = chunk * POSITIONS..((chunk + 1) * POSITIONS).min(count);
            // SAFETY: ranges are disjoint.
            let out = unsafe { out.slice(range.clone()) };
            match &self.others {
                Some(others) => add_others(others, range.clone(), out),
                None => out.fill(0),
            }
            // SAFETY: the caller vouches for the inputs.
            error.note(chunk, unsafe { self.indices.add(io, range, out) });
        });
        error.result()?;
        Ok(places)
    }
}

impl OpKernel for ScatterKernel {
    fn fails(&self) -> Fails {
        Fails::Early
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        // SAFETY: the caller vouches for the operands.
        let (places, updates) = unsafe { (self.places(io)?, self.updates.dense(io.inputs[1])?) };
        // SAFETY: as above; the output has x's shape.
        unsafe { self.x.copy_to(io.inputs[0], io.outputs[0]) };
        let (count, slice) = (self.indices.len(), self.slice.size());
        // SAFETY: `places` made this many.
        let places = unsafe { std::slice::from_raw_parts(places.as_ptr().cast::<isize>(), count) };
        if count > 0 && slice > 0 && self.size > 0 {
            // Scanning the places costs each thread the same, which long slices make up for.
            let most = if slice < 16 { num_threads() } else { num_threads() * 4 };
            let shards = (count * slice / SHARD).clamp(1, most);
            let (updates, out) = (Source(updates.ptr::<u8>()), Source(io.outputs[0].cast_const()));
            parallel_for(shards, |shard| {
                let bound = |i: usize| (self.size as u128 * i as u128 / shards as u128) as usize;
                (self.join)(&Shard {
                    places,
                    slice: &self.slice,
                    reach: self.reach,
                    updates: updates.get(),
                    out: out.get().cast_mut(),
                    range: bound(shard)..bound(shard + 1),
                });
            });
        }
        finish.all();
        Ok(())
    }
}

/// The updates, and the part of the target that one thread owns.
struct Shard<'a> {
    places: &'a [isize],
    slice: &'a Walk<1>,
    /// How far a slice reaches from its first element on.
    reach: usize,
    updates: *const u8,
    out: *mut u8,
    range: Range<usize>,
}

impl Shard<'_> {
    /// Joins each element of the updates that falls into the range, in order.
    #[inline(always)]
    fn join<T: Copy>(&self, f: impl Fn(T, T) -> T) {
        let (updates, out) = (self.updates.cast::<T>(), self.out.cast::<T>());
        let Range { start, end } = self.range;
        let size = self.slice.size();
        if size == 1 {
            for (i, &place) in self.places.iter().enumerate() {
                let place = place as usize;
                if place.wrapping_sub(start) < end - start {
                    // SAFETY: places were checked against the target, of which this thread owns
                    // the range; there is an update for each place.
                    unsafe { *out.add(place) = f(*out.add(place), *updates.add(i)) };
                }
            }
            return;
        }
        let [step] = self.slice.steps();
        // Every run goes forwards: the target is row-major. Only a run of one element may come
        // without a step.
        let step = step.max(1) as usize;
        let run = |first: usize, from: usize, len: usize| {
            let skip = start.saturating_sub(first).div_ceil(step);
            let stop = end.saturating_sub(first).div_ceil(step).min(len);
            if stop <= skip {
                return;
            }
            if step == 1 {
                // SAFETY: as above; the whole slice is inside the target, and updates are
                // somewhere else.
                let (out, updates) = unsafe {
                    let out = std::slice::from_raw_parts_mut(out.add(first + skip), stop - skip);
                    (out, std::slice::from_raw_parts(updates.add(from + skip), stop - skip))
                };
                out.iter_mut().zip(updates).for_each(|(old, &new)| *old = f(*old, new));
                return;
            }
            for j in skip..stop {
                let place = first + j * step;
                // SAFETY: as above.
                unsafe { *out.add(place) = f(*out.add(place), *updates.add(from + j)) };
            }
        };
        let whole = self.slice.run() == size;
        for (i, &place) in self.places.iter().enumerate() {
            let place = place as usize;
            if place >= end || place + self.reach <= start {
                continue;
            }
            if whole {
                run(place, i * size, size);
            } else {
                self.slice.runs(0..size, |at, [offset], len| {
                    run(place + offset as usize, i * size + at, len);
                });
            }
        }
    }
}

/// What joins elements of `dtype`.
fn join(mode: ScatterMode, dtype: DType) -> Join {
    match mode {
        ScatterMode::Set => {
            by_size!(dtype.size(), T => Box::new(|p: &Shard<'_>| p.join::<T>(|_, new| new)))
        }
        ScatterMode::Add => arithmetic(dtype, true),
        ScatterMode::Prod => arithmetic(dtype, false),
        ScatterMode::Max => order(dtype, true),
        ScatterMode::Min => order(dtype, false),
    }
}

fn arithmetic(dtype: DType, add: bool) -> Join {
    fn of<T: Arithmetic>(add: bool) -> Join {
        if add { Box::new(|p| p.join(T::plus)) } else { Box::new(|p| p.join(T::times)) }
    }
    match dtype {
        DType::Bool | DType::U8 | DType::I8 => of::<u8>(add),
        DType::U16 | DType::I16 => of::<u16>(add),
        DType::U32 | DType::I32 => of::<u32>(add),
        DType::U64 | DType::I64 => of::<u64>(add),
        DType::F16 => of::<f16>(add),
        DType::BF16 => of::<bf16>(add),
        DType::F32 => of::<f32>(add),
        DType::F64 => of::<f64>(add),
        DType::C32 => of::<Complex<f16>>(add),
        DType::C64 => of::<Complex32>(add),
    }
}

fn order(dtype: DType, max: bool) -> Join {
    /// NaN if either is.
    fn of<T: PartialOrd + Copy + 'static>(max: bool) -> Join {
        #[allow(clippy::eq_op)]
        fn keep<T: PartialOrd>(old: &T, better: bool) -> bool {
            better || old != old
        }
        if max {
            Box::new(|p| p.join(|a: T, b: T| if keep(&a, a >= b) { a } else { b }))
        } else {
            Box::new(|p| p.join(|a: T, b: T| if keep(&a, a <= b) { a } else { b }))
        }
    }
    match dtype {
        DType::Bool | DType::U8 => of::<u8>(max),
        DType::U16 => of::<u16>(max),
        DType::U32 | DType::C32 => of::<u32>(max),
        DType::U64 | DType::C64 => of::<u64>(max),
        DType::I8 => of::<i8>(max),
        DType::I16 => of::<i16>(max),
        DType::I32 => of::<i32>(max),
        DType::I64 => of::<i64>(max),
        DType::F16 => of::<f16>(max),
        DType::BF16 => of::<bf16>(max),
        DType::F32 => of::<f32>(max),
        DType::F64 => of::<f64>(max),
    }
}

/// A type that updates add to and multiply; integers wrap, whatever their sign.
trait Arithmetic: Copy + 'static {
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! arithmetic {
    ($($t:ty: $plus:expr, $times:expr;)*) => {$(
        impl Arithmetic for $t {
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                $plus(self, other)
            }
            #[inline(always)]
            fn times(self, other: $t) -> $t {
                $times(self, other)
            }
        }
    )*};
}
arithmetic! {
    u8: u8::wrapping_add, u8::wrapping_mul;
    u16: u16::wrapping_add, u16::wrapping_mul;
    u32: u32::wrapping_add, u32::wrapping_mul;
    u64: u64::wrapping_add, u64::wrapping_mul;
    f32: |a, b| a + b, |a, b| a * b;
    f64: |a, b| a + b, |a, b| a * b;
    Complex32: |a, b| a + b, |a, b| a * b;
    Complex<f16>: |a, b| c64_to_c32(c32_to_c64(a) + c32_to_c64(b)),
        |a, b| c64_to_c32(c32_to_c64(a) * c32_to_c64(b));
    f16: |a: f16, b: f16| f16::from_f32(a.to_f32() + b.to_f32()),
        |a: f16, b: f16| f16::from_f32(a.to_f32() * b.to_f32());
    bf16: |a: bf16, b: bf16| bf16::from_f32(a.to_f32() + b.to_f32()),
        |a: bf16, b: bf16| bf16::from_f32(a.to_f32() * b.to_f32());
}
