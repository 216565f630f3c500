//! Windowed maxima and sums over channels-last arrays, with what their derivatives need.
//!
//! Every loop runs over a block of channels, which lie next to each other, so it vectorises.

use half::{bf16, f16};

use crate::simd::{Element, Isa, Kernel, Out, dispatch};
use crate::threads::parallel_for;

/// Sizes of a pooling: x is `[batch, input.., channels]`, y is `[batch, output.., channels]`.
///
/// The window of output `o` starts at `o * stride - padding.0`; what lies outside counts as the
/// least value for a maximum and as zero for a sum.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PoolProblem {
    /// Images.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// Spatial sizes of x.
    pub input: Vec<usize>,
    /// Window sizes.
    pub window: Vec<usize>,
    /// Steps between windows.
    pub stride: Vec<usize>,
    /// Padding before and after each spatial dimension.
    pub padding: Vec<(usize, usize)>,
    /// Spatial sizes of y.
    pub output: Vec<usize>,
}

impl PoolProblem {
    /// Elements of x.
    pub fn input_len(&self) -> usize {
        self.batch * self.inputs() * self.channels
    }

    /// Elements of y.
    pub fn output_len(&self) -> usize {
        self.batch * self.outputs() * self.channels
    }

    fn inputs(&self) -> usize {
        self.input.iter().product()
    }

    fn outputs(&self) -> usize {
        self.output.iter().product()
    }
}

/// An element type that windows can be taken of.
pub trait PoolElement: Copy + Send + Sync + 'static {
    /// The type that sums are kept in.
    type Sum: Copy;
    /// What the maximum of nothing is.
    const LEAST: Self;
    /// The sum of nothing.
    const ZERO: Self::Sum;
    /// Whether `self` takes the place of `best` as the maximum: it is greater, or the first NaN.
    fn beats(self, best: Self) -> bool;
    /// `sum + self`; integers wrap.
    fn add_to(self, sum: Self::Sum) -> Self::Sum;
    /// The sum as an element.
    fn from_sum(sum: Self::Sum) -> Self;
}

macro_rules! int {
    ($($t:ty),*) => {$(
        impl PoolElement for $t {
            type Sum = $t;
            const LEAST: $t = <$t>::MIN;
            const ZERO: $t = 0;
            #[inline(always)]
            fn beats(self, best: $t) -> bool {
                self > best
            }
            #[inline(always)]
            fn add_to(self, sum: $t) -> $t {
                sum.wrapping_add(self)
            }
            #[inline(always)]
            fn from_sum(sum: $t) -> $t {
                sum
            }
        }
    )*};
}
int!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! float {
    ($($t:ty, $least:expr);*) => {$(
        impl PoolElement for $t {
            type Sum = <$t as Element>::Acc;
            const LEAST: $t = $least;
            const ZERO: Self::Sum = 0.0;
            #[inline(always)]
            fn beats(self, best: $t) -> bool {
                let (a, b) = (self.to_acc(), best.to_acc());
                #[allow(clippy::eq_op)]
                let (a_nan, b_nan) = (a != a, b != b);
                (a > b) | (a_nan & !b_nan)
            }
            #[inline(always)]
            fn add_to(self, sum: Self::Sum) -> Self::Sum {
                sum + self.to_acc()
            }
            #[inline(always)]
            fn from_sum(sum: Self::Sum) -> $t {
                <$t>::from_acc(sum)
            }
        }
    )*};
}
float!(f32, f32::NEG_INFINITY; f64, f64::NEG_INFINITY; f16, f16::NEG_INFINITY; bf16, bf16::NEG_INFINITY);

/// `y = max over the window of x`; NaN propagates.
pub fn max<T: PoolElement>(p: &PoolProblem, x: &[T], y: Out<'_, T>) {
    assert_eq!((x.len(), y.len()), (p.input_len(), p.output_len()), "max pool of {p:?}");
    let isa = Isa::best();
    by_outputs(p, |image, windows| {
        let c = p.channels;
        let x = &x[image * p.inputs() * c..][..p.inputs() * c];
        let at = (image * p.outputs() + windows.start) * c;
        // SAFETY: chunks have disjoint output positions.
        let y = unsafe { y.slice(at..at + (windows.end - windows.start) * c) };
        dispatch(isa, Max { windows, c, x, y });
    });
}

/// `y = t` at the position of the first maximum of x in the window; zero for an empty window.
pub fn max_gather<T: PoolElement>(p: &PoolProblem, x: &[T], t: &[T], y: Out<'_, T>) {
    let lens = (x.len(), t.len(), y.len());
    assert_eq!(lens, (p.input_len(), p.input_len(), p.output_len()), "max pool of {p:?}");
    let isa = Isa::best();
    by_outputs(p, |image, windows| {
        let c = p.channels;
        let part = image * p.inputs() * c..(image + 1) * p.inputs() * c;
        let at = (image * p.outputs() + windows.start) * c;
        // SAFETY: chunks have disjoint output positions.
        let y = unsafe { y.slice(at..at + (windows.end - windows.start) * c) };
        dispatch(isa, MaxGather { windows, c, x: &x[part.clone()], t: &t[part], y });
    });
}

/// `dx = 0`, then for each window dy is added at the position of the first maximum of x.
pub fn max_scatter<T: PoolElement>(p: &PoolProblem, x: &[T], dy: &[T], dx: Out<'_, T>) {
    let lens = (x.len(), dy.len(), dx.len());
    assert_eq!(lens, (p.input_len(), p.output_len(), p.input_len()), "max pool of {p:?}");
    let isa = Isa::best();
    by_images(p, |image, windows| {
        let (xs, ys) = (p.inputs() * p.channels, p.outputs() * p.channels);
        let part = image * xs..(image + 1) * xs;
        // SAFETY: chunks are whole images.
        let dx = unsafe { dx.slice(part.clone()) };
        let dy = &dy[image * ys..][..ys];
        dispatch(isa, MaxScatter { windows, c: p.channels, x: &x[part], dy, dx });
    });
}

/// `y = sum over the window of x`.
pub fn sum<T: PoolElement>(p: &PoolProblem, x: &[T], y: Out<'_, T>) {
    assert_eq!((x.len(), y.len()), (p.input_len(), p.output_len()), "sum pool of {p:?}");
    let isa = Isa::best();
    by_outputs(p, |image, windows| {
        let c = p.channels;
        let x = &x[image * p.inputs() * c..][..p.inputs() * c];
        let at = (image * p.outputs() + windows.start) * c;
        // SAFETY: chunks have disjoint output positions.
        let y = unsafe { y.slice(at..at + (windows.end - windows.start) * c) };
        dispatch(isa, Sum { windows, c, x, y });
    });
}

/// The transpose of `sum`: every element of x gets the sum of dy over the windows that hold it.
pub fn sum_transpose<T: PoolElement>(p: &PoolProblem, dy: &[T], dx: Out<'_, T>) {
    assert_eq!((dy.len(), dx.len()), (p.output_len(), p.input_len()), "sum pool of {p:?}");
    let isa = Isa::best();
    by_images(p, |image, windows| {
        let (xs, ys) = (p.inputs() * p.channels, p.outputs() * p.channels);
        // SAFETY: chunks are whole images.
        let dx = unsafe { dx.slice(image * xs..(image + 1) * xs) };
        dispatch(isa, SumTranspose { windows, c: p.channels, dy: &dy[image * ys..][..ys], dx });
    });
}

/// Elements of x that one chunk looks at, at least.
const CHUNK: usize = 1 << 14;

/// Cuts the output positions of every image into chunks.
fn by_outputs(p: &PoolProblem, f: impl Fn(usize, Windows<'_>) + Sync) {
    if p.output_len() == 0 {
        return;
    }
    let table = Table::new(p);
    let per_window = p.window.iter().product::<usize>().max(1) * p.channels;
    let rows = p.outputs() / table.row;
    let per = (CHUNK / (per_window * table.row)).clamp(1, rows) * table.row;
    let pieces = p.outputs().div_ceil(per);
    let images = (CHUNK / (p.outputs() * per_window)).clamp(1, p.batch);
    parallel_for(p.batch.div_ceil(images) * pieces, |chunk| {
        let (first, piece) = (chunk / pieces * images, chunk % pieces);
        let (start, end) = (piece * per, ((piece + 1) * per).min(p.outputs()));
        for image in first..(first + images).min(p.batch) {
            f(image, Windows { table: &table, start, end });
        }
    });
}

/// Hands out whole images.
fn by_images(p: &PoolProblem, f: impl Fn(usize, Windows<'_>) + Sync) {
    if p.input_len() == 0 {
        return;
    }
    let table = Table::new(p);
    let images = (CHUNK / (p.inputs() * p.channels)).clamp(1, p.batch);
    parallel_for(p.batch.div_ceil(images), |chunk| {
        for image in chunk * images..((chunk + 1) * images).min(p.batch) {
            f(image, Windows { table: &table, start: 0, end: p.outputs() });
        }
    });
}

/// Where every window starts and ends along each axis, cut to the input.
struct Table<'a> {
    p: &'a PoolProblem,
    axes: Vec<Vec<(usize, usize)>>,
    /// Positions in the last axis: a run of windows with the same rows.
    row: usize,
}

impl<'a> Table<'a> {
    fn new(p: &'a PoolProblem) -> Self {
        let axis = |d: usize| {
            let cut = move |at: isize| at.clamp(0, p.input[d] as isize) as usize;
            (0..p.output[d])
                .map(|o| {
                    let start = (o * p.stride[d]) as isize - p.padding[d].0 as isize;
                    (cut(start), cut(start + p.window[d] as isize))
                })
                .collect()
        };
        let axes = (0..p.input.len()).map(axis).collect();
        Table { p, axes, row: p.output.last().copied().unwrap_or(1) }
    }

    /// The starts, in elements, of the input rows that the windows of output row `row` meet.
    fn rows(&self, mut row: usize, starts: &mut Vec<usize>) {
        starts.clear();
        starts.push(0);
        let outer = self.axes.len().saturating_sub(1);
        let mut scale = self.p.input.last().copied().unwrap_or(1) * self.p.channels;
        for d in (0..outer).rev() {
            let (first, last) = self.axes[d][row % self.p.output[d]];
            row /= self.p.output[d];
            let inner = starts.len();
            for i in first..last {
                for k in 0..inner {
                    starts.push(starts[k] + i * scale);
                }
            }
            starts.drain(..inner);
            scale *= self.p.input[d];
        }
    }

    /// First and last column of a window.
    #[inline(always)]
    fn columns(&self, o: usize) -> (usize, usize) {
        match self.axes.last() {
            Some(axis) => axis[o],
            None => (0, 1),
        }
    }
}

/// Output positions `start..end` of one image.
#[derive(Clone, Copy)]
struct Windows<'a> {
    table: &'a Table<'a>,
    start: usize,
    end: usize,
}

impl Windows<'_> {
    /// Calls `f(index from start, starts of the rows, first and last column in elements)`.
    #[inline(always)]
    fn each(self, mut f: impl FnMut(usize, &[usize], usize, usize)) {
        let (mut rows, c) = (Vec::new(), self.table.p.channels);
        for position in self.start..self.end {
            let column = position % self.table.row;
            if column == 0 || position == self.start {
                self.table.rows(position / self.table.row, &mut rows);
            }
            let (first, last) = self.table.columns(column);
            f(position - self.start, &rows, first * c, last * c);
        }
    }
}

/// Channels that are held in registers or L1 while a window is walked.
const BLOCK: usize = 64;

/// Calls `f(first channel, channels)` for blocks of channels.
#[inline(always)]
fn blocks(c: usize, mut f: impl FnMut(usize, usize)) {
    for at in (0..c).step_by(BLOCK) {
        f(at, BLOCK.min(c - at));
    }
}

struct Max<'a, T> {
    windows: Windows<'a>,
    c: usize,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: PoolElement> Kernel for Max<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Max { windows, c, x, y } = self;
        windows.each(|o, rows, first, last| {
            let y = &mut y[o * c..][..c];
            y.fill(T::LEAST);
            for row in rows {
                for x in x[row + first..row + last].chunks_exact(c) {
                    for (y, &x) in y.iter_mut().zip(x) {
                        *y = if x.beats(*y) { x } else { *y };
                    }
                }
            }
        });
    }
}

/// Finds for `n` channels from `at` which tap of the window holds the first maximum.
#[inline(always)]
fn argmax<T: PoolElement>(
    x: &[T],
    rows: &[usize],
    span: (usize, usize),
    c: usize,
    at: usize,
    n: usize,
) -> [u32; BLOCK] {
    let mut best = [T::LEAST; BLOCK];
    let mut tap = [0u32; BLOCK];
    let mut index = 0;
    for row in rows {
        for x in x[row + span.0..row + span.1].chunks_exact(c) {
            let x = &x[at..at + n];
            for ((best, tap), &x) in best.iter_mut().zip(&mut tap).zip(x) {
                let wins = x.beats(*best);
                *best = if wins { x } else { *best };
                *tap = if wins { index } else { *tap };
            }
            index += 1;
        }
    }
    tap
}

struct MaxGather<'a, T> {
    windows: Windows<'a>,
    c: usize,
    x: &'a [T],
    t: &'a [T],
    y: &'a mut [T],
}

impl<T: PoolElement> Kernel for MaxGather<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let MaxGather { windows, c, x, t, y } = self;
        windows.each(|o, rows, first, last| {
            blocks(c, |at, n| {
                let tap = argmax(x, rows, (first, last), c, at, n);
                let y = &mut y[o * c + at..][..n];
                y.fill(T::from_sum(T::ZERO));
                let mut index = 0;
                for row in rows {
                    for t in t[row + first..row + last].chunks_exact(c) {
                        for ((y, tap), &t) in y.iter_mut().zip(&tap).zip(&t[at..at + n]) {
                            *y = if *tap == index { t } else { *y };
                        }
                        index += 1;
                    }
                }
            });
        });
    }
}

struct MaxScatter<'a, T> {
    windows: Windows<'a>,
    c: usize,
    x: &'a [T],
    dy: &'a [T],
    dx: &'a mut [T],
}

impl<T: PoolElement> Kernel for MaxScatter<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let MaxScatter { windows, c, x, dy, dx } = self;
        let zero = T::from_sum(T::ZERO);
        dx.fill(zero);
        windows.each(|o, rows, first, last| {
            blocks(c, |at, n| {
                let tap = argmax(x, rows, (first, last), c, at, n);
                let dy = &dy[o * c + at..][..n];
                let mut index = 0;
                for row in rows {
                    for dx in dx[row + first..row + last].chunks_exact_mut(c) {
                        let dx = &mut dx[at..at + n];
                        for ((dx, tap), &dy) in dx.iter_mut().zip(&tap).zip(dy) {
                            let sum = T::from_sum(dy.add_to(dx.add_to(T::ZERO)));
                            *dx = if *tap == index { sum } else { *dx };
                        }
                        index += 1;
                    }
                }
            });
        });
    }
}

struct Sum<'a, T> {
    windows: Windows<'a>,
    c: usize,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: PoolElement> Kernel for Sum<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Sum { windows, c, x, y } = self;
        windows.each(|o, rows, first, last| {
            blocks(c, |at, n| {
                let mut sums = [T::ZERO; BLOCK];
                for row in rows {
                    for x in x[row + first..row + last].chunks_exact(c) {
                        for (sum, x) in sums.iter_mut().zip(&x[at..at + n]) {
                            *sum = x.add_to(*sum);
                        }
                    }
                }
                for (y, &sum) in y[o * c + at..][..n].iter_mut().zip(&sums) {
                    *y = T::from_sum(sum);
                }
            });
        });
    }
}

struct SumTranspose<'a, T> {
    windows: Windows<'a>,
    c: usize,
    dy: &'a [T],
    dx: &'a mut [T],
}

impl<T: PoolElement> Kernel for SumTranspose<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let SumTranspose { windows, c, dy, dx } = self;
        dx.fill(T::from_sum(T::ZERO));
        windows.each(|o, rows, first, last| {
            let dy = &dy[o * c..][..c];
            for row in rows {
                for dx in dx[row + first..row + last].chunks_exact_mut(c) {
                    for (dx, &dy) in dx.iter_mut().zip(dy) {
                        *dx = T::from_sum(dy.add_to(dx.add_to(T::ZERO)));
                    }
                }
            }
        });
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
