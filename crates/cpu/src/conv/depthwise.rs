//! Convolution of every channel by itself: channels are lanes, and nothing is moved.

use std::ops::Range;

use cupola_simd::{
    Bias, Element, FEW, Isa, Kernel, LaneSums, LaneTile, Out, Real, Run, TOGETHER, TapGroup, Tiled,
    dispatch, even_parts,
};

use super::geometry::{Axis, Taps, gcd};
use super::runs::{Runs, outer_taps};
use super::{CACHED, ConvTail, Epilogue, Geometry};
use crate::memory::Scratch;
use crate::threads::{balanced, even_part, num_threads, parallel_for};

/// Channels that are summed together.
const LANES: usize = 16;
/// Elements of the output in a piece, at most: it stays in the second-level cache.
const PIECE: usize = 1 << 15;
/// Pieces for each thread, at least, where there are rows for them.
const SHARE: usize = 2;
/// Bytes of the input rows that rows of the output share, which stay in the first-level cache.
const NEAR: usize = 1 << 14;
/// The fewest channels that are gone through by themselves: fewer are too few bytes side by side.
const FEWEST: usize = 64;
/// Groups of images with sums of their own, at most, and positions in one, at least.
const GROUPS: usize = 16;
const GROUP: usize = 1024;
/// Elements of the output whose runs are listed together, for the gradient of weights.
const LISTED: usize = 1 << 13;
/// Columns that are listed together, at most.
const SPAN: usize = 64;

/// How convolutions of one geometry run.
pub(super) struct Depthwise {
    isa: Isa,
    tables: Vec<Vec<Taps>>,
    /// Whether neighbouring taps of the last axis meet neighbouring inputs.
    merge: bool,
    /// The parts of an output row.
    spans: Vec<Span>,
}

/// Neighbouring positions of an output row.
struct Span {
    columns: Range<usize>,
    tiles: Vec<LaneTile>,
}

/// Those of `outputs` that are computed with each other: they meet the same taps, and their inputs lie a multiple of the
/// taps' apart.
fn tiles(axis: &Axis, outputs: &Range<usize>) -> Vec<LaneTile> {
    let (input_step, tap_step) = (axis.input_step(), axis.tap_step());
    // From an output to the next that meets the same taps, and between their inputs.
    let alike = (axis.input_dilation / gcd(axis.stride, axis.input_dilation)) as usize;
    let apart = alike * axis.stride as usize / axis.input_dilation as usize;
    let common = gcd(apart as isize, input_step as isize) as usize;
    let (step, stride) = (alike * (input_step / common), apart / common);
    let tile = |first, count| {
        let groups = groups(axis, [first, count], [tap_step, input_step, stride]);
        LaneTile { first, step, count, groups }
    };
    let mut all = Vec::new();
    for phase in outputs.clone().take(step) {
        let mut first = phase;
        for count in even_parts((outputs.end - phase).div_ceil(step), TOGETHER) {
            let whole = tile(first, count);
            if whole.groups.iter().all(|group| group.fits(count)) {
                all.push(whole);
                first += count * step;
                continue;
            }
            for count in even_parts(count, FEW) {
                all.push(tile(first, count));
                first += count * step;
            }
        }
    }
    all
}

/// The taps that `count` outputs from `first` on meet; one's inputs lie `stride` steps behind those of the one before.
fn groups(
    axis: &Axis,
    [first, count]: [usize; 2],
    [tap_step, input_step, stride]: [usize; 3],
) -> Vec<TapGroup> {
    let at = |tap: usize| first as isize * axis.stride + tap as isize * axis.dilation - axis.pad;
    let is_met = |&tap: &usize| at(tap).rem_euclid(axis.input_dilation) == 0;
    let Some(mut tap) = (0..tap_step.min(axis.taps)).find(is_met) else { return Vec::new() };
    let mut groups = Vec::new();
    while tap < axis.taps {
        let left = (axis.taps - tap).div_ceil(tap_step);
        // Columns are shared by neighbours whose inputs are next to each other, or nearly.
        let size = match (left, stride) {
            (_, 3..) => 1,
            (4, _) => 2,
            (6, _) => 3,
            _ => TapGroup::SIZES.into_iter().find(|&size| size <= left).unwrap_or(1),
        };
        let (column_step, stride) = match size {
            1 => (stride * input_step, 1),
            _ => (input_step, stride),
        };
        let column = at(tap).div_euclid(axis.input_dilation);
        let is_there =
            |j: usize| (0..axis.input as isize).contains(&(column + (j * column_step) as isize));
        let needed = (0..count).flat_map(|p| p * stride..p * stride + size);
        let columns = needed.filter(|&j| is_there(j)).fold(0, |bits, j| bits | 1 << j);
        if columns != 0 {
            groups.push(TapGroup { size, stride, tap, tap_step, column, column_step, columns });
        }
        tap += size * tap_step;
    }
    groups
}

impl Depthwise {
    /// The way to run them, if there are enough channels and each is a group.
    pub fn new(geo: &Geometry, isa: Isa) -> Option<Depthwise> {
        if geo.c_in != 1 || geo.c_out != 1 || geo.groups < LANES / 2 {
            return None;
        }
        let inner = &geo.axes[geo.axes.len() - 1];
        let merge = inner.tap_step() == 1 && inner.input_step() == 1;
        let tables = geo.tables();
        // Where positions differ in their taps, every so many meet the same.
        let least = (inner.input_dilation as usize).saturating_mul(inner.dilation as usize);
        let least = least.saturating_mul(TOGETHER);
        let mut first = 0;
        let spans = even_parts(inner.output, SPAN.max(least)).into_iter().map(|count| {
            let columns = first..first + count;
            first += count;
            Span { tiles: tiles(inner, &columns), columns }
        });
        let spans = spans.collect();
        Some(Depthwise { isa, tables, merge, spans })
    }

    /// The weights, tap after tap.
    pub fn pack<T: Element>(&self, geo: &Geometry, w: &[T]) -> Scratch<T::Acc> {
        let mut by_tap = Scratch::new(geo.taps() * geo.groups);
        for t in 0..geo.taps() {
            let stored = geo.stored_tap(t);
            for g in 0..geo.groups {
                by_tap[t * geo.groups + g] = w[geo.weight_at(g, 0, stored, 0)].to_acc();
            }
        }
        by_tap
    }

    /// `w` is what [`Depthwise::pack`] gave.
    pub fn run<T: Element>(
        &self,
        geo: &Geometry,
        x: &[T],
        w: &[T::Acc],
        out: Out<'_, T>,
        tail: ConvTail<'_, T::Acc>,
        epilogue: Epilogue<'_>,
    ) {
        let (channels, inputs, outputs) = (geo.groups, geo.inputs(), geo.outputs());
        let tail = ConvTail { then: None, ..tail };
        let columns = geo.axes[geo.axes.len() - 1].output;
        // A unit is a span of a row.
        let units = outputs / columns * self.spans.len();
        let own = size_of::<T>() == size_of::<T::Acc>();
        let unit = channels * columns.div_ceil(self.spans.len());
        let share = (geo.batch * units).div_ceil(SHARE * num_threads());
        // Images that are widened are not cut, so that each is widened once.
        let most = if own { (PIECE / unit).min(share).clamp(1, units) } else { units };
        let pieces = match own {
            true => balanced(units.div_ceil(most), units, geo.batch, 0.0),
            false => 1,
        };
        // Sums that are narrowed then are in the first-level cache.
        let bite = if own { units } else { (CACHED / unit).clamp(1, units) };
        let start = |unit: usize| match self.spans.get(unit % self.spans.len()) {
            Some(span) => unit / self.spans.len() * columns + span.columns.start,
            None => 0,
        };
        parallel_for(geo.batch * pieces, |task| {
            let (n, units) = (task / pieces, even_part(units, pieces, task % pieces));
            let image = &x[n * inputs * channels..][..inputs * channels];
            let (wide, image) = widen(image);
            let x = image.unwrap_or(&wide);
            for first in units.clone().step_by(bite) {
                let units = first..(first + bite).min(units.end);
                let (from, to) = (start(units.start), start(units.end));
                let range = (n * outputs + from) * channels..(n * outputs + to) * channels;
                // SAFETY: tasks have disjoint positions.
                let y = unsafe { out.slice(range.clone()) };
                let mut sums = Scratch::<T::Acc>::new(if own { 0 } else { y.len() });
                let to = if own { y.as_mut_ptr().cast() } else { sums.as_mut_ptr() };
                self.units(geo, x, w, units, from, to, &tail);
                if !own {
                    T::narrow(&sums, y);
                }
                if let Some(f) = epilogue {
                    f(range);
                }
            }
        });
    }

    /// Computes spans of one image, the first of which starts at position `from` and writes to `y`. Where rows are short
    /// all spans of some channels come before the next channels, so that what rows share stays in the cache.
    #[allow(clippy::too_many_arguments)]
    fn units<A: Tiled>(
        &self,
        geo: &Geometry,
        x: &[A],
        w: &[A],
        units: Range<usize>,
        from: usize,
        y: *mut A,
        tail: &ConvTail<'_, A>,
    ) {
        let channels = geo.groups;
        let inner = &geo.axes[geo.axes.len() - 1];
        let of_units = units.start / self.spans.len()..units.end.div_ceil(self.spans.len());
        let mut runs = Runs::new(geo);
        let mut rows = Vec::with_capacity(of_units.len() * outer_taps(geo));
        let mut starts = Vec::with_capacity(of_units.len() + 1);
        starts.push(0);
        for row in of_units.clone() {
            runs.row(geo, &self.tables, row);
            rows.extend(runs.rows().iter().map(|&(tap, input)| {
                let w = &w[tap * inner.taps * channels..][..inner.taps * channels];
                let x = &x[input * inner.input * channels..][..inner.input * channels];
                (w.as_ptr(), x.as_ptr())
            }));
            starts.push(rows.len());
        }
        let shared = outer_taps(geo);
        let near = NEAR / (size_of::<A>() * inner.input * shared).max(1) / LANES * LANES;
        let together = if shared > 1 && near >= FEWEST { near } else { channels };
        for first in (0..channels).step_by(together) {
            let lanes = first..(first + together).min(channels);
            for unit in units.clone() {
                let (row, span) = (unit / self.spans.len(), unit % self.spans.len());
                let at = row - of_units.start;
                let rows = &rows[starts[at]..starts[at + 1]];
                let sums = LaneSums {
                    rows,
                    tiles: &self.spans[span].tiles,
                    stride: channels,
                    lanes: lanes.clone(),
                    sums: y
                        .wrapping_add(row * inner.output * channels)
                        .wrapping_sub(from * channels),
                    tail: tail.with(|bias| Bias::Lanes(bias.as_ptr())),
                };
                // SAFETY: the slices above have all taps and columns; the sums are those of the units.
                unsafe { A::lane_sums(self.isa, sums) };
            }
        }
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
                let most = (LISTED / channels).clamp(1, outputs.max(1));
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
        let mut runs = Runs::new(geo);
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
