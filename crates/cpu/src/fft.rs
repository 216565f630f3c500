//! Fourier transforms, lane by lane, through `rustfft` and `realfft`.
//!
//! Several axes are one after the other: the first reads the input with its strides and writes the
//! output, the others work in place in it. Lanes that lie side by side are gathered a few at a time,
//! so that each line of memory is read once. Threads share the lanes of an axis; a lane is one
//! thread's, so results do not depend on their number.

use std::sync::{Arc, Mutex};

use cupola_core::backend::{Fails, Operand, Segment};
use cupola_core::prim::{Fft, FftKind};
use cupola_core::{Error, Result, fork};
use num_complex::Complex32;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use smallvec::SmallVec;

use crate::contiguous::Source;
use crate::memory::{LITTLE, expect_memory, filled};
use crate::op::{Finish, Io, OpKernel};
use crate::threads::parallel_for;

/// Elements that are worth a chunk of their own.
const CHUNK: usize = 1 << 13;
/// The most lanes that are gathered at a time.
const LANES: usize = 16;
/// Bytes that gathered lanes take at most, but for one lane.
const GATHERED: usize = 1 << 18;
/// Elements that tables and working memory have for each of a lane, at most.
const TABLES: usize = 12;
/// Plans after which the planner forgets its tables; plans that are in use keep theirs.
const KEPT: usize = 256;

/// A [`Fft`] that is ready to run.
pub struct FftKernel {
    passes: Vec<Pass>,
    /// Whether there is anything to transform.
    is_empty: bool,
}

/// The transform of one size.
#[derive(Clone)]
enum Plan {
    Complex(Arc<dyn rustfft::Fft<f32>>),
    Real(Arc<dyn RealToComplex<f32>>),
    HalfComplex(Arc<dyn ComplexToReal<f32>>),
}

/// The transform of one axis.
struct Pass {
    plan: Plan,
    scale: f32,
    from: Along,
    to: Along,
    /// How the lanes lie.
    lanes: Lanes,
}

/// A lane: how many elements, and how far apart.
#[derive(Clone, Copy)]
struct Along {
    size: usize,
    stride: isize,
}

/// The axes that are not transformed: size, stride before and after.
struct Lanes {
    /// The axis whose neighbours are gathered together.
    close: [isize; 3],
    /// The others.
    rest: SmallVec<[[isize; 3]; 4]>,
}

/// What plans share: tables of roots of unity.
struct Planner {
    made: usize,
    complex: rustfft::FftPlanner<f32>,
    real: RealFftPlanner<f32>,
}

/// The plan for an axis that has `size` elements in the time domain.
fn plan(kind: FftKind, size: usize) -> Plan {
    static PLANNER: Mutex<Option<Planner>> = Mutex::new(None);
    let mut kept = fork::lock(&PLANNER);
    if kept.as_ref().is_some_and(|planner| planner.made >= KEPT) {
        *kept = None;
    }
    let planner = kept.get_or_insert_with(|| Planner {
        made: 0,
        complex: rustfft::FftPlanner::new(),
        real: RealFftPlanner::new(),
    });
    planner.made += 1;
    match kind {
        FftKind::Forward => Plan::Complex(planner.complex.plan_fft_forward(size)),
        FftKind::Inverse => Plan::Complex(planner.complex.plan_fft_inverse(size)),
        FftKind::Real => Plan::Real(planner.real.plan_fft_forward(size)),
        FftKind::HalfComplex { .. } => Plan::HalfComplex(planner.real.plan_fft_inverse(size)),
    }
}

impl FftKernel {
    /// Prepares for the operands of `segment`.
    pub fn new(fft: &Fft, segment: &Segment) -> Result<Self> {
        let (x, y) = (&segment.inputs[0], &segment.outputs[0]);
        if y.aval.shape.size() == 0 {
            return Ok(FftKernel { passes: Vec::new(), is_empty: true });
        }
        let time = match fft.kind {
            FftKind::HalfComplex { .. } => &y.aval.shape,
            FftKind::Forward | FftKind::Inverse | FftKind::Real => &x.aval.shape,
        };
        let count = fft.axes.iter().map(|&axis| time[axis]).product();
        let mut passes = Vec::with_capacity(fft.axes.len());
        // The last axis first: there the input is read.
        for (i, &axis) in fft.axes.iter().rev().enumerate() {
            let from = if i == 0 { x } else { y };
            let bytes = time[axis].saturating_mul(TABLES * size_of::<Complex32>());
            expect_memory(bytes, "a Fourier transform")?;
            let last = i + 1 == fft.axes.len();
            passes.push(Pass {
                plan: plan(fft.kind, time[axis]),
                scale: if last { fft.scale.factor(count) as f32 } else { 1.0 },
                from: Along { size: from.aval.shape[axis], stride: from.strides[axis] },
                to: Along { size: y.aval.shape[axis], stride: y.strides[axis] },
                lanes: Lanes::new(axis, from, y),
            });
        }
        Ok(FftKernel { passes, is_empty: false })
    }
}

impl OpKernel for FftKernel {
    fn fails(&self) -> Fails {
        // Where there is no memory for a lane.
        let is_long = |pass: &Pass| pass.from.size * size_of::<Complex32>() > LITTLE / 4;
        if self.passes.iter().any(is_long) { Fails::Anywhere } else { Fails::Never }
    }

    fn memory(&self) -> usize {
        let tables = |pass: &Pass| size_of::<Pass>() + pass.from.size * size_of::<Complex32>();
        size_of::<FftKernel>() + self.passes.iter().map(tables).sum::<usize>()
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        if self.is_empty {
            return Ok(());
        }
        for (i, pass) in self.passes.iter().enumerate() {
            let from = if i == 0 { io.inputs[0] } else { io.outputs[0].cast_const() };
            // SAFETY: the caller vouches for the operands; later passes work in the output.
            unsafe { pass.run(from, io.outputs[0])? };
        }
        finish.all();
        Ok(())
    }
}

impl Lanes {
    /// The axes of two operands but for one.
    fn new(axis: usize, from: &Operand, to: &Operand) -> Self {
        let mut rest: SmallVec<[[isize; 3]; 4]> = (0..from.aval.shape.rank())
            .filter(|&a| a != axis && from.aval.shape[a] > 1)
            .map(|a| [from.aval.shape[a] as isize, from.strides[a], to.strides[a]])
            .collect();
        // Neighbours where the lane is read and written.
        let distance =
            |lane: &[isize; 3]| lane[1].unsigned_abs().saturating_add(lane[2].unsigned_abs());
        let close = (0..rest.len()).min_by_key(|&i| distance(&rest[i]));
        let close = close.map_or([1, 0, 0], |i| rest.remove(i));
        Lanes { close, rest }
    }

    /// Where the first of a group of neighbours is before and after.
    fn start(&self, mut group: usize, at: usize) -> (isize, isize) {
        let mut start = (at as isize * self.close[1], at as isize * self.close[2]);
        for &[size, from, to] in self.rest.iter().rev() {
            let place = (group % size as usize) as isize;
            group /= size as usize;
            start = (start.0 + place * from, start.1 + place * to);
        }
        start
    }
}

impl Pass {
    /// # Safety
    /// The lanes of `x` can be read and those of `out` written; they are the same or apart.
    unsafe fn run(&self, x: *const u8, out: *mut u8) -> Result<()> {
        match &self.plan {
            Plan::Complex(plan) => {
                let scratch = plan.get_inplace_scratch_len();
                // SAFETY: the caller vouches for the lanes.
                unsafe {
                    self.each::<Complex32, Complex32>(
                        x,
                        out,
                        true,
                        scratch,
                        &|lanes, _, scratch| {
                            plan.process_with_scratch(lanes, scratch);
                            Ok(())
                        },
                    )
                }
            }
            Plan::Real(plan) => {
                let (n, m, scratch) = (self.from.size, self.to.size, plan.get_scratch_len());
                // SAFETY: as above.
                unsafe {
                    self.each::<f32, Complex32>(x, out, false, scratch, &|lanes, to, scratch| {
                        let mut pairs = lanes.chunks_exact_mut(n).zip(to.chunks_exact_mut(m));
                        pairs.try_for_each(|(x, y)| plan.process_with_scratch(x, y, scratch))
                    })
                }
            }
            Plan::HalfComplex(plan) => {
                let (m, n, scratch) = (self.from.size, self.to.size, plan.get_scratch_len());
                // SAFETY: as above.
                unsafe {
                    self.each::<Complex32, f32>(x, out, false, scratch, &|lanes, to, scratch| {
                        let mut pairs = lanes.chunks_exact_mut(m).zip(to.chunks_exact_mut(n));
                        pairs.try_for_each(|(x, y)| {
                            x[0].im = 0.0;
                            if n % 2 == 0 {
                                x[m - 1].im = 0.0;
                            }
                            plan.process_with_scratch(x, y, scratch)
                        })
                    })
                }
            }
        }
    }

    /// Gathers lanes, transforms them, multiplies them, and puts them in their place. `in_place` says
    /// that the transform leaves its result where the lanes were.
    ///
    /// # Safety
    /// As for [`Pass::run`]; the lanes of `x` are of `A` and those of `out` of `B`, which are one type
    /// where the transform works in place.
    unsafe fn each<A: Number, B: Number>(
        &self,
        x: *const u8,
        out: *mut u8,
        in_place: bool,
        scratch: usize,
        transform: &(impl Fn(&mut [A], &mut [B], &mut [Complex32]) -> FftResult + Sync),
    ) -> Result<()> {
        let (n, m) = (self.from.size, self.to.size);
        let (x, out) = (Source(x.cast::<A>()), Source(out.cast::<B>().cast_const()));
        let close = self.lanes.close[0] as usize;
        let per = (GATHERED / (n.max(m) * size_of::<Complex32>())).clamp(1, LANES).min(close);
        let blocks = close.div_ceil(per);
        let groups: usize = self.lanes.rest.iter().map(|lane| lane[0] as usize).product();
        let chunk = (CHUNK / (per * n.max(m))).max(1);
        let failure = Mutex::new(None);
        parallel_for((groups * blocks).div_ceil(chunk), |part| {
            let mut lanes = filled(A::default(), per * n);
            let mut results = filled(B::default(), if in_place { 0 } else { per * m });
            let mut scratch = filled(Complex32::default(), scratch);
            for block in part * chunk..((part + 1) * chunk).min(groups * blocks) {
                let at = block % blocks * per;
                let count = per.min(close - at);
                let (start, end) = self.lanes.start(block / blocks, at);
                let lanes = &mut lanes[..count * n];
                // SAFETY: the caller vouches for the lanes.
                unsafe {
                    let from = x.get().wrapping_offset(start);
                    gather(from, self.from, self.lanes.close[1], lanes);
                }
                let results = match in_place {
                    true => &mut [][..],
                    false => &mut results[..count * m],
                };
                if let Err(error) = transform(lanes, results, &mut scratch) {
                    fork::lock(&failure).get_or_insert(error);
                    return;
                }
                // SAFETY: `in_place` says that both are of one type; each lane is one part's.
                unsafe {
                    let to = out.get().cast_mut().wrapping_offset(end);
                    let apart = self.lanes.close[2];
                    match in_place {
                        true => scatter(lanes, self.scale, to.cast::<A>(), self.to, apart),
                        false => scatter(results, self.scale, to, self.to, apart),
                    }
                }
            }
        });
        match failure.into_inner() {
            Ok(None) => Ok(()),
            Ok(Some(error)) => Err(Error::Device(format!("a Fourier transform failed: {error}"))),
            Err(_) => Err(Error::Device("a Fourier transform did not come to its end".into())),
        }
    }
}

/// What the transforms of a library give.
type FftResult = std::result::Result<(), realfft::FftError>;

/// An element of a lane.
trait Number: Copy + Default + Send + Sync {
    /// The number times a real one.
    fn times(self, by: f32) -> Self;
}

impl Number for f32 {
    fn times(self, by: f32) -> f32 {
        self * by
    }
}

impl Number for Complex32 {
    fn times(self, by: f32) -> Complex32 {
        self.scale(by)
    }
}

/// Reads lanes that are `apart`, one after the other into `lanes`.
///
/// # Safety
/// The lanes from `x` on can be read.
unsafe fn gather<T: Number>(x: *const T, lane: Along, apart: isize, lanes: &mut [T]) {
    let Along { size, stride } = lane;
    if stride == 1 {
        for (l, lane) in lanes.chunks_exact_mut(size).enumerate() {
            // SAFETY: the caller vouches for the lane.
            unsafe { x.offset(l as isize * apart).copy_to_nonoverlapping(lane.as_mut_ptr(), size) };
        }
        return;
    }
    let count = lanes.len() / size;
    for i in 0..size {
        let row = x.wrapping_offset(i as isize * stride);
        for l in 0..count {
            // SAFETY: as above.
            lanes[l * size + i] = unsafe { *row.offset(l as isize * apart) };
        }
    }
}

/// Writes the lanes where [`gather`] would read them, each number times `by`.
///
/// # Safety
/// The lanes from `out` on can be written.
unsafe fn scatter<T: Number>(lanes: &mut [T], by: f32, out: *mut T, lane: Along, apart: isize) {
    let Along { size, stride } = lane;
    if by != 1.0 {
        lanes.iter_mut().for_each(|v| *v = v.times(by));
    }
    if stride == 1 {
        for (l, lane) in lanes.chunks_exact(size).enumerate() {
            // SAFETY: the caller vouches for the lane.
            unsafe { out.offset(l as isize * apart).copy_from_nonoverlapping(lane.as_ptr(), size) };
        }
        return;
    }
    let count = lanes.len() / size;
    for i in 0..size {
        let row = out.wrapping_offset(i as isize * stride);
        for l in 0..count {
            // SAFETY: as above.
            unsafe { *row.offset(l as isize * apart) = lanes[l * size + i] };
        }
    }
}
