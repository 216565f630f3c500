//! Convolution of every channel by itself: channels are lanes, and nothing is moved.

use std::ops::Range;

use super::geometry::Taps;
use super::runs::Runs;
use super::weights::Weights;
use super::{Epilogue, Geometry};
use crate::simd::{Element, Isa, Kernel, Out, Real, Run, Scratch, dispatch};
use crate::threads::parallel_for;

/// Channels that are summed together.
const LANES: usize = 16;
/// Channels whose sums, several vectors of them, need not wait for each other.
const WIDE: usize = 4 * LANES;
/// Elements of the output in a piece.
const PIECE: usize = 1 << 13;
/// Groups of images with sums of their own, at most, and positions in one, at least.
const GROUPS: usize = 16;
const GROUP: usize = 1024;

/// How convolutions of one geometry run.
pub(super) struct Depthwise {
    isa: Isa,
    tables: Vec<Vec<Taps>>,
    /// Whether neighbouring taps of the last axis meet neighbouring inputs.
    merge: bool,
}

impl Depthwise {
    /// The way to run them, if there are enough channels and each is a group.
    pub fn new(geo: &Geometry, isa: Isa) -> Option<Depthwise> {
        if geo.c_in != 1 || geo.c_out != 1 || geo.groups < LANES / 2 {
            return None;
        }
        let inner = &geo.axes[geo.axes.len() - 1];
        let merge = inner.tap_step() == 1 && inner.input_step() == 1;
        Some(Depthwise { isa, tables: geo.tables(), merge })
    }

    pub fn run<T: Element>(
        &self,
        geo: &Geometry,
        x: &[T],
        w: &Weights<T::Acc>,
        out: Out<'_, T>,
        epilogue: Epilogue<'_>,
    ) {
        let (channels, inputs, outputs) = (geo.groups, geo.inputs(), geo.outputs());
        let mut by_tap = Scratch::<T::Acc>::new(geo.taps() * channels);
        for g in 0..channels {
            for (t, &w) in w.group(g).iter().enumerate() {
                by_tap[t * channels + g] = w;
            }
        }
        let own = size_of::<T>() == size_of::<T::Acc>();
        // Images that are widened are not cut, so that each is widened once.
        let most = if own { (PIECE / channels).clamp(1, outputs) } else { outputs };
        let pieces = outputs.div_ceil(most);
        parallel_for(geo.batch * pieces, |task| {
            let (n, start) = (task / pieces, task % pieces * most);
            let positions = start..(start + most).min(outputs);
            let range = (n * outputs + start) * channels..(n * outputs + positions.end) * channels;
            // SAFETY: tasks have disjoint positions.
            let y = unsafe { out.slice(range.clone()) };
            let image = &x[n * inputs * channels..][..inputs * channels];
            let (wide, image) = widen(image);
            let x = image.unwrap_or(&wide);
            let mut sums = Scratch::<T::Acc>::new(y.len());
            let runs = self.runs(geo, positions);
            dispatch(self.isa, Forward { x, w: &by_tap, y: &mut sums, runs: &runs, channels });
            T::narrow(&sums, y);
            if let Some(f) = epilogue {
                f(range);
            }
        });
    }

    pub fn weight_grad<T: Element>(
        &self,
        geo: &Geometry,
        x: &[T],
        dy: &[T],
        out: Out<'_, T>,
        epilogue: Epilogue<'_>,
    ) {
        let (channels, inputs, outputs) = (geo.groups, geo.inputs(), geo.outputs());
        let len = geo.taps() * channels;
        let groups = (geo.batch * outputs).div_ceil(GROUP).min(GROUPS).min(geo.batch);
        let mut sums = Scratch::<T::Acc>::new(groups * len);
        sums.fill(T::Acc::default());
        let parts = Out::new(&mut sums);
        parallel_for(groups, |group| {
            // SAFETY: groups have sums of their own.
            let dw = unsafe { parts.slice(group * len..(group + 1) * len) };
            for n in group * geo.batch / groups..(group + 1) * geo.batch / groups {
                let (wide_x, image) = widen(&x[n * inputs * channels..][..inputs * channels]);
                let x = image.unwrap_or(&wide_x);
                let (wide_dy, image) = widen(&dy[n * outputs * channels..][..outputs * channels]);
                let dy = image.unwrap_or(&wide_dy);
                let most = (PIECE / channels).clamp(1, outputs.max(1));
                for start in (0..outputs).step_by(most) {
                    let positions = start..(start + most).min(outputs);
                    let dy = &dy[start * channels..positions.end * channels];
                    let runs = self.runs(geo, positions);
                    dispatch(self.isa, Backward { x, dy, dw: &mut *dw, runs: &runs, channels });
                }
            }
        });
        for g in 0..channels {
            for t in 0..geo.taps() {
                let mut sum = T::Acc::default();
                (0..groups).for_each(|i| sum += sums[i * len + t * channels + g]);
                let at = geo.weight_at(g, 0, geo.stored_tap(t), 0);
                // SAFETY: this is the only use of the output.
                T::narrow(&[sum], unsafe { out.slice(at..at + 1) });
            }
        }
        if let Some(f) = epilogue {
            f(0..len);
        }
    }

    fn runs(&self, geo: &Geometry, positions: Range<usize>) -> Runs {
        let mut runs = Runs::default();
        runs.build(geo, &self.tables, self.merge, positions, 0);
        runs
    }
}

/// The slice in the type of sums: itself, or else a copy.
fn widen<T: Element>(slice: &[T]) -> (Scratch<T::Acc>, Option<&[T::Acc]>) {
    if let Some(same) = T::as_acc(slice) {
        return (Scratch::new(0), Some(same));
    }
    let mut wide = Scratch::new(slice.len());
    T::widen(slice, &mut wide);
    (wide, None)
}

/// Elements as values: slices could overlap for all the compiler knows, and would not vectorise.
#[inline(always)]
fn lanes<A: Copy, const N: usize>(from: &[A], at: usize) -> [A; N] {
    let from = &from[at..at + N];
    std::array::from_fn(|i| from[i])
}

struct Forward<'a, A> {
    x: &'a [A],
    w: &'a [A],
    y: &'a mut [A],
    runs: &'a Runs,
    channels: usize,
}

impl<A: Real> Forward<'_, A> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, runs: &[Run], position: usize, at: usize) {
        let mut sums = [A::default(); N];
        for run in runs {
            for i in 0..run.len {
                let x: [A; N] = lanes(self.x, run.b + i * self.channels + at);
                let w: [A; N] = lanes(self.w, (run.a + i) * self.channels + at);
                for l in 0..N {
                    sums[l] += x[l] * w[l];
                }
            }
        }
        self.y[position * self.channels + at..][..N].copy_from_slice(&sums);
    }
}

impl<A: Real> Kernel for Forward<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (wide, whole) = (self.channels / WIDE * WIDE, self.channels / LANES * LANES);
        for (position, runs) in self.runs.each().enumerate() {
            for at in (0..wide).step_by(WIDE) {
                self.block::<WIDE>(runs, position, at);
            }
            for at in (wide..whole).step_by(LANES) {
                self.block::<LANES>(runs, position, at);
            }
            for at in whole..self.channels {
                self.block::<1>(runs, position, at);
            }
        }
    }
}

struct Backward<'a, A> {
    x: &'a [A],
    dy: &'a [A],
    dw: &'a mut [A],
    runs: &'a Runs,
    channels: usize,
}

impl<A: Real> Backward<'_, A> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, runs: &[Run], position: usize, at: usize) {
        let dy: [A; N] = lanes(self.dy, position * self.channels + at);
        for run in runs {
            for i in 0..run.len {
                let x: [A; N] = lanes(self.x, run.b + i * self.channels + at);
                let dw = &mut self.dw[(run.a + i) * self.channels + at..][..N];
                let mut sums: [A; N] = lanes(dw, 0);
                for l in 0..N {
                    sums[l] += x[l] * dy[l];
                }
                dw.copy_from_slice(&sums);
            }
        }
    }
}

impl<A: Real> Kernel for Backward<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let whole = self.channels / LANES * LANES;
        for (position, runs) in self.runs.each().enumerate() {
            for at in (0..whole).step_by(LANES) {
                self.block::<LANES>(runs, position, at);
            }
            for at in whole..self.channels {
                self.block::<1>(runs, position, at);
            }
        }
    }
}
