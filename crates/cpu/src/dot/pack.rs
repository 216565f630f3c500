//! Operands laid out for the register tiles.

use cupola_simd::{
    Bias, Element, Isa, Kernel, Level, Residual, Rows, Tail, TileFn, Tiled, Transpose, dispatch,
    pair_kernel,
};
use half::{bf16, f16};

use crate::memory::Scratch;
use crate::tail::TailArgs;

/// A part of an operand: columns of the right one or rows of the left one, as lanes, by steps of
/// the sum.
#[derive(Clone, Copy)]
pub(super) struct Part<T> {
    /// The first element.
    pub from: *const T,
    /// From one lane to the next.
    pub lane: isize,
    /// From one step to the next.
    pub step: isize,
    pub lanes: usize,
    pub steps: usize,
}

impl<T: Copy> Part<T> {
    /// # Safety
    /// The element can be read.
    #[inline(always)]
    unsafe fn at(&self, lane: usize, step: usize) -> T {
        let offset = lane as isize * self.lane + step as isize * self.step;
        // SAFETY: the caller vouches for the element.
        unsafe { *self.from.wrapping_offset(offset) }
    }

    /// # Safety
    /// The elements can be read, and the steps follow each other.
    #[inline(always)]
    unsafe fn lane<'a>(&self, lane: usize) -> &'a [T] {
        let row = self.from.wrapping_offset(lane as isize * self.lane);
        // SAFETY: the caller vouches for the elements.
        unsafe { std::slice::from_raw_parts(row, self.steps) }
    }

    /// # Safety
    /// The elements can be read, and the lanes follow each other.
    #[inline(always)]
    unsafe fn lanes<'a>(&self, step: usize) -> &'a [T] {
        let row = self.from.wrapping_offset(step as isize * self.step);
        // SAFETY: the caller vouches for the elements.
        unsafe { std::slice::from_raw_parts(row, self.lanes) }
    }
}

/// An element type with register tiles.
pub(super) trait Factor: Element {
    /// Steps of the sum that a tile takes at once.
    fn steps(_: Isa) -> usize {
        1
    }

    /// The kernel of a tile.
    fn tile(isa: Isa, rows: usize, vectors: usize, at: Rows) -> TileFn<Self::Acc> {
        Self::Acc::kernel(isa, rows, vectors, at)
    }

    /// What these arguments ask for, of a kernel with a tail that stores its sums from `out` on: those of `f32` have one.
    ///
    /// # Safety
    /// The residual has an element for each sum.
    unsafe fn tail<'a>(args: &TailArgs<'a>, _out: *const Self) -> Tail<'a, Self::Acc> {
        debug_assert!(args.is_none(), "sums of other types have no tail");
        Tail::NONE
    }

    /// Lays a part out as `[steps of a tile][width]`, with zeros where it has no more lanes.
    ///
    /// # Safety
    /// The part can be read.
    unsafe fn pack(isa: Isa, part: Part<Self>, width: usize, to: &mut [Self::Acc]) {
        // SAFETY: the caller vouches for the part.
        unsafe { singly(isa, part, width, to) }
    }

    /// Lays a part out as lanes that are `apart` elements apart.
    ///
    /// # Safety
    /// The part can be read.
    unsafe fn copy(_: Isa, part: Part<Self>, apart: usize, to: &mut [Self::Acc]) {
        for (lane, to) in to.chunks_mut(apart.max(1)).take(part.lanes).enumerate() {
            let to = &mut to[..part.steps];
            if part.step == 1 {
                // SAFETY: the caller vouches for the part.
                Self::widen(unsafe { part.lane(lane) }, to);
                continue;
            }
            for (step, to) in to.iter_mut().enumerate() {
                // SAFETY: as above.
                *to = unsafe { part.at(lane, step) }.to_acc();
            }
        }
    }
}

impl Factor for f32 {
    unsafe fn tail<'a>(args: &TailArgs<'a>, out: *const f32) -> Tail<'a, f32> {
        let TailArgs { bias, residual, low, high, then } = *args;
        // SAFETY: the caller vouches for it.
        let residual = residual.map(|residual| unsafe { Residual::new(residual, out) });
        Tail { bias: bias.map_or(Bias::None, Bias::Lanes), residual, low, high, then }
    }
}

impl Factor for f64 {}
impl Factor for f16 {}

impl Factor for bf16 {
    fn steps(isa: Isa) -> usize {
        if isa.level() == Level::Avx512Bf16 { 2 } else { 1 }
    }

    fn tile(isa: Isa, rows: usize, vectors: usize, at: Rows) -> TileFn<f32> {
        pair_kernel(isa, rows, vectors, at).unwrap_or_else(|| f32::kernel(isa, rows, vectors, at))
    }

    unsafe fn pack(isa: Isa, part: Part<bf16>, width: usize, to: &mut [f32]) {
        // SAFETY: the caller vouches for the part.
        unsafe {
            if bf16::steps(isa) == 2 {
                in_pairs(isa, part, width, to);
            } else {
                singly(isa, part, width, to);
            }
        }
    }

    unsafe fn copy(isa: Isa, part: Part<bf16>, apart: usize, to: &mut [f32]) {
        let pairs = bf16::steps(isa) == 2;
        for (lane, to) in to.chunks_mut(apart.max(1)).take(part.lanes).enumerate() {
            let element = |step: usize| {
                // SAFETY: the caller vouches for the part.
                if step < part.steps { unsafe { part.at(lane, step) } } else { bf16::ZERO }
            };
            if !pairs {
                let to = &mut to[..part.steps];
                if part.step == 1 {
                    // SAFETY: as above.
                    bf16::widen(unsafe { part.lane(lane) }, to);
                } else {
                    to.iter_mut().enumerate().for_each(|(i, to)| *to = element(i).to_f32());
                }
                continue;
            }
            let to = &mut to[..part.steps.div_ceil(2)];
            let mut done = 0;
            if part.step == 1 {
                done = part.steps / 2;
                // SAFETY: as above; bytes of pairs are what pairs of bytes are.
                let row = unsafe { part.lane(lane) };
                bytemuck::cast_slice_mut(&mut to[..done]).copy_from_slice(&row[..2 * done]);
            }
            for (i, to) in to.iter_mut().enumerate().skip(done) {
                *to = pair(element(2 * i), element(2 * i + 1));
            }
        }
    }
}

/// Lanes that are made floats before they are transposed.
const LANES: usize = 16;
/// Steps of them.
const STEPS: usize = 64;

/// # Safety
/// The part can be read.
unsafe fn singly<T: Element>(isa: Isa, part: Part<T>, width: usize, to: &mut [T::Acc]) {
    let Part { from, lane, step, lanes, steps } = part;
    if lanes < width {
        to.fill(T::Acc::default());
    }
    let own = size_of::<T>() == size_of::<T::Acc>();
    if step == 1 && lane >= 0 && own {
        let t = Transpose {
            src: from.cast(),
            src_step: lane as usize,
            rows: lanes,
            columns: steps,
            dst: to.as_mut_ptr(),
            dst_step: width,
        };
        // SAFETY: the caller vouches for the part, and `to` has a row for each step.
        unsafe { T::Acc::transpose(isa, t) };
    } else if step == 1 {
        let mut wide = Scratch::<T::Acc>::new(LANES * STEPS);
        for (first, start) in (0..lanes)
            .step_by(LANES)
            .flat_map(|first| (0..steps).step_by(STEPS).map(move |start| (first, start)))
        {
            let (rows, columns) = (LANES.min(lanes - first), STEPS.min(steps - start));
            for (i, wide) in wide.chunks_exact_mut(STEPS).take(rows).enumerate() {
                let at = (first + i) as isize * lane + start as isize;
                // SAFETY: the caller vouches for the part.
                let row = unsafe { std::slice::from_raw_parts(from.wrapping_offset(at), columns) };
                T::widen(row, &mut wide[..columns]);
            }
            let t = Transpose {
                src: wide.as_ptr(),
                src_step: STEPS,
                rows,
                columns,
                dst: to[start * width + first..].as_mut_ptr(),
                dst_step: width,
            };
            // SAFETY: both have the rows.
            unsafe { T::Acc::transpose(isa, t) };
        }
    } else {
        for (i, to) in to.chunks_exact_mut(width).enumerate() {
            if lane == 1 {
                // SAFETY: the caller vouches for the part.
                T::widen(unsafe { part.lanes(i) }, &mut to[..lanes]);
                continue;
            }
            for (j, to) in to[..lanes].iter_mut().enumerate() {
                // SAFETY: as above.
                *to = unsafe { part.at(j, i) }.to_acc();
            }
        }
    }
}

/// Packs two steps into each float: the first in its low bits.
///
/// # Safety
/// The part can be read.
unsafe fn in_pairs(isa: Isa, part: Part<bf16>, width: usize, to: &mut [f32]) {
    let Part { from, lane, step, lanes, steps } = part;
    if lanes < width {
        to.fill(0.0);
    }
    let mut done = 0;
    if step == 1 && lane >= 0 && lane % 2 == 0 {
        done = steps / 2;
        let t = Transpose {
            src: from.cast::<f32>(),
            src_step: lane as usize / 2,
            rows: lanes,
            columns: done,
            dst: to.as_mut_ptr(),
            dst_step: width,
        };
        // SAFETY: the caller vouches for the part, and `to` has a row for each pair of steps.
        unsafe { f32::transpose(isa, t) };
    }
    for (i, to) in to.chunks_exact_mut(width).enumerate().skip(done) {
        let last = 2 * i + 1 == steps;
        if lane == 1 && !last {
            // SAFETY: the caller vouches for the part.
            let (low, high) = unsafe { (part.lanes(2 * i), part.lanes(2 * i + 1)) };
            dispatch(isa, Interleave { low, high, to: &mut to[..lanes] });
            continue;
        }
        for (j, to) in to[..lanes].iter_mut().enumerate() {
            // SAFETY: as above.
            unsafe {
                let high = if last { bf16::ZERO } else { part.at(j, 2 * i + 1) };
                *to = pair(part.at(j, 2 * i), high);
            }
        }
    }
}

struct Interleave<'a> {
    low: &'a [bf16],
    high: &'a [bf16],
    to: &'a mut [f32],
}

impl Kernel for Interleave<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((to, &low), &high) in self.to.iter_mut().zip(self.low).zip(self.high) {
            *to = pair(low, high);
        }
    }
}

/// Two steps in the bits of a float.
#[inline(always)]
fn pair(low: bf16, high: bf16) -> f32 {
    f32::from_bits(u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16)
}
