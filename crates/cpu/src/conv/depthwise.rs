//! Convolution of every channel by itself: channels are lanes, and nothing is moved.

use std::ops::Range;

use super::geometry::{Axis, Taps};
use super::runs::Runs;
use super::{Epilogue, Geometry};
use crate::simd::{
    Element, Isa, Kernel, LaneRuns, LaneSums, Out, Real, Run, Scratch, TOGETHER, Tiled, dispatch,
    even_parts,
};
use crate::threads::parallel_for;

/// Channels that are summed together.
const LANES: usize = 16;
/// Elements of the output in a piece.
const PIECE: usize = 1 << 13;
/// Groups of images with sums of their own, at most, and positions in one, at least.
const GROUPS: usize = 16;
const GROUP: usize = 1024;
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
    /// Those for which no tap falls outside, where they are many.
    inside: Range<usize>,
    /// The others.
    tiles: Vec<Columns>,
}

/// Positions of a row that are computed together: where the input is dilated, those that meet the same taps.
struct Columns {
    /// At most [`TOGETHER`].
    outputs: Vec<usize>,
    /// Taps of the last axis, and the inputs that they meet for each position; none is a zero of the padding.
    taps: Vec<(usize, [Option<usize>; TOGETHER])>,
}

impl Columns {
    fn new(axis: &Axis, outputs: Vec<usize>) -> Columns {
        let inputs = |tap: usize| {
            let mut inputs = [None; TOGETHER];
            inputs.iter_mut().zip(&outputs).for_each(|(at, &o)| *at = axis.input_at(o, tap));
            (tap, inputs)
        };
        let meets =
            |(_, inputs): &(usize, [Option<usize>; TOGETHER])| inputs.iter().any(Option::is_some);
        Columns { taps: (0..axis.taps).map(inputs).filter(meets).collect(), outputs }
    }
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
        let is_inside = |column: usize| {
            inner.input_dilation == 1 && tables[tables.len() - 1][column].count == inner.taps
        };
        // Where the input is dilated, every so many positions meet the same taps.
        let step = inner.input_dilation as usize;
        let mut first = 0;
        let spans = even_parts(inner.output, SPAN.max(step)).into_iter().map(|count| {
            let columns = first..first + count;
            first += count;
            let start = columns.clone().find(|&column| is_inside(column)).unwrap_or(columns.end);
            let inside = start..start + (start..columns.end).take_while(|&c| is_inside(c)).count();
            let inside = if inside.len() < 2 * TOGETHER { start..start } else { inside };
            let tiles = (0..step.min(count)).flat_map(|phase| {
                let alike = columns.clone().skip(phase).step_by(step);
                let alike: Vec<usize> = alike.filter(|column| !inside.contains(column)).collect();
                let mut rest = &alike[..];
                let tile = |count| {
                    let (outputs, more) = rest.split_at(count);
                    rest = more;
                    Columns::new(inner, outputs.to_vec())
                };
                even_parts(alike.len(), TOGETHER).into_iter().map(tile).collect::<Vec<_>>()
            });
            Span { tiles: tiles.collect(), columns, inside }
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
        epilogue: Epilogue<'_>,
    ) {
        let (channels, inputs, outputs) = (geo.groups, geo.inputs(), geo.outputs());
        let columns = geo.axes[geo.axes.len() - 1].output;
        // A unit is a span of a row.
        let units = outputs / columns * self.spans.len();
        let own = size_of::<T>() == size_of::<T::Acc>();
        let unit = channels * columns.div_ceil(self.spans.len());
        // Images that are widened are not cut, so that each is widened once.
        let most = if own { (PIECE / unit).clamp(1, units) } else { units };
        let pieces = units.div_ceil(most);
        let start = |unit: usize| match self.spans.get(unit % self.spans.len()) {
            Some(span) => unit / self.spans.len() * columns + span.columns.start,
            None => 0,
        };
        let zeros = vec![T::Acc::default(); channels];
        parallel_for(geo.batch * pieces, |task| {
            let (n, first) = (task / pieces, task % pieces * most);
            let units = first..(first + most).min(units);
            let (from, to) = (start(units.start), start(units.end));
            let range = (n * outputs + from) * channels..(n * outputs + to) * channels;
            let image = &x[n * inputs * channels..][..inputs * channels];
            let (wide, image) = widen(image);
            let x = image.unwrap_or(&wide);
            // SAFETY: tasks have disjoint positions.
            let y = unsafe { out.slice(range.clone()) };
            let mut sums = Scratch::<T::Acc>::new(if own { 0 } else { y.len() });
            let to = if own { y.as_mut_ptr().cast() } else { sums.as_mut_ptr() };
            self.units(geo, x, w, &zeros, units, from, to);
            if !own {
                T::narrow(&sums, y);
            }
            if let Some(f) = epilogue {
                f(range);
            }
        });
    }

    /// Computes spans of one image, the first of which starts at position `from` and writes to `y`.
    #[allow(clippy::too_many_arguments)]
    fn units<A: Tiled>(
        &self,
        geo: &Geometry,
        x: &[A],
        w: &[A],
        zeros: &[A],
        units: Range<usize>,
        from: usize,
        y: *mut A,
    ) {
        let channels = geo.groups;
        let inner = &geo.axes[geo.axes.len() - 1];
        let (mut runs, mut together) = (Runs::default(), Vec::new());
        let (mut terms, mut sums) = (Vec::new(), Vec::new());
        let mut last = None;
        for unit in units {
            let (row, span) = (unit / self.spans.len(), unit % self.spans.len());
            if last.replace(row) != Some(row) {
                runs.row(geo, &self.tables, row);
            }
            let Span { inside, tiles, .. } = &self.spans[span];
            let position = |column: usize| row * inner.output + column - from;
            if !inside.is_empty() {
                together.clear();
                let step = inner.stride as usize * channels;
                let reach = (inside.len() - 1) * step + channels;
                for &(tap, input) in runs.rows() {
                    for inner_tap in 0..inner.taps {
                        let w = &w[(tap * inner.taps + inner_tap) * channels..][..channels];
                        let Some(column) = inner.input_at(inside.start, inner_tap) else {
                            continue;
                        };
                        let x = &x[(input * inner.input + column) * channels..][..reach];
                        together.push((w.as_ptr(), x.as_ptr()));
                    }
                }
                let sums = y.wrapping_add(position(inside.start) * channels);
                let (terms, count) = (&together[..], inside.len());
                let sums = LaneRuns { terms, step, sums, count, lanes: channels };
                // SAFETY: the slices above have all channels of all positions; the sums are those of the units.
                unsafe { A::lane_runs(self.isa, sums) };
            }
            for columns in tiles {
                terms.clear();
                for &(tap, input) in runs.rows() {
                    for (inner_tap, inputs) in &columns.taps {
                        let w = &w[(tap * inner.taps + inner_tap) * channels..][..channels];
                        let at =
                            |column| &x[(input * inner.input + column) * channels..][..channels];
                        let x = inputs.map(|column| column.map_or(zeros, at).as_ptr());
                        terms.push((w.as_ptr(), x));
                    }
                }
                sums.clear();
                let place = |&column: &usize| y.wrapping_add(position(column) * channels);
                sums.extend(columns.outputs.iter().map(place));
                let sums = LaneSums { terms: &terms, sums: &sums, lanes: channels };
                // SAFETY: the slices above have all channels; the sums are those of the units.
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
