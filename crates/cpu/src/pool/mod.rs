//! Windowed maxima and sums over channels-last arrays, with what their derivatives need.
//!
//! Every loop runs over a block of channels, which lie next to each other, so it vectorises.

mod op;
mod windows;

use cupola_simd::{Element, Isa, Kernel, Out, dispatch};
use half::{bf16, f16};

use crate::threads::parallel_for;
pub(crate) use op::PoolKernel;
use windows::{Table, Windows};

/// Sizes of a pooling: x is `[batch, input.., channels]`, y is `[batch, output.., channels]`.
///
/// The window of output `o` starts at `o * stride - padding.0`, and its elements are `dilation` apart; what lies
/// outside counts as the least value for a maximum and as zero for a sum.
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
    /// Steps between the elements of a window.
    pub dilation: Vec<usize>,
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
        clear(p, dx, T::from_sum(T::ZERO));
        let overlap = overlap(p);
        dispatch(isa, MaxScatter { windows, c: p.channels, x: &x[part], dy, dx, overlap });
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
        clear(p, dx, T::from_sum(T::ZERO));
        let (dy, overlap) = (&dy[image * ys..][..ys], overlap(p));
        dispatch(isa, SumTranspose { windows, c: p.channels, dy, dx, overlap });
    });
}

/// Whether windows share elements.
fn overlap(p: &PoolProblem) -> bool {
    (0..p.input.len()).any(|d| p.stride[d] <= (p.window[d] - 1) * p.dilation[d])
}

/// Zeroes an image unless every element lies in exactly one window, which will overwrite it.
fn clear<T: PoolElement>(p: &PoolProblem, dx: &mut [T], zero: T) {
    let tiled = (0..p.input.len()).all(|d| {
        let dense = p.dilation[d] == 1 && p.stride[d] == p.window[d];
        dense && p.padding[d].0 == 0 && p.output[d] * p.stride[d] >= p.input[d]
    });
    if !tiled {
        dx.fill(zero);
    }
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

/// Channels that are worked on together.
const LANES: usize = 16;

/// Starts of the blocks of `LANES` among `c` channels; the last one overlaps the one before where
/// they do not fit evenly, and there is none where there are fewer channels.
#[inline(always)]
fn next_block(at: usize, c: usize) -> Option<usize> {
    let next = at + LANES;
    if next + LANES <= c {
        Some(next)
    } else if next < c {
        Some(c - LANES)
    } else {
        None
    }
}

#[inline(always)]
fn lanes<T: Copy, const N: usize>(from: &[T], at: usize) -> [T; N] {
    let from = &from[at..at + N];
    std::array::from_fn(|i| from[i])
}

#[inline(always)]
fn maximum<T: PoolElement, const N: usize>(x: &[T], taps: &[usize], at: usize) -> [T; N] {
    let mut best = [T::LEAST; N];
    for tap in taps {
        let x: [T; N] = lanes(x, tap + at);
        for i in 0..N {
            best[i] = if x[i].beats(best[i]) { x[i] } else { best[i] };
        }
    }
    best
}

struct Max<'a, T> {
    windows: Windows<'a>,
    c: usize,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: PoolElement> Max<'_, T> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, taps: &[usize], o: usize, at: usize) {
        let best: [T; N] = maximum(self.x, taps, at);
        self.y[o * self.c + at..][..N].copy_from_slice(&best);
    }
}

struct MaxGather<'a, T> {
    windows: Windows<'a>,
    c: usize,
    x: &'a [T],
    t: &'a [T],
    y: &'a mut [T],
}

impl<T: PoolElement> MaxGather<'_, T> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, taps: &[usize], o: usize, at: usize) {
        let best: [T; N] = maximum(self.x, taps, at);
        let mut y = [T::from_sum(T::ZERO); N];
        // From the last tap to the first, so that the first one stays.
        for tap in taps.iter().rev() {
            let (x, t): ([T; N], [T; N]) = (lanes(self.x, tap + at), lanes(self.t, tap + at));
            for i in 0..N {
                y[i] = if best[i].beats(x[i]) { y[i] } else { t[i] };
            }
        }
        self.y[o * self.c + at..][..N].copy_from_slice(&y);
    }
}

struct MaxScatter<'a, T> {
    windows: Windows<'a>,
    c: usize,
    x: &'a [T],
    dy: &'a [T],
    dx: &'a mut [T],
    /// Whether windows may share elements.
    overlap: bool,
}

impl<T: PoolElement> MaxScatter<'_, T> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, taps: &[usize], o: usize, at: usize) {
        let best: [T; N] = maximum(self.x, taps, at);
        let zero = T::from_sum(T::ZERO);
        // What no tap has taken yet.
        let mut rest: [T; N] = lanes(self.dy, o * self.c + at);
        for tap in taps {
            let x: [T; N] = lanes(self.x, tap + at);
            let dx = &mut self.dx[tap + at..][..N];
            let mut new = [zero; N];
            for i in 0..N {
                let other = best[i].beats(x[i]);
                new[i] = if other { zero } else { rest[i] };
                rest[i] = if other { rest[i] } else { zero };
            }
            if self.overlap {
                for i in 0..N {
                    new[i] = T::from_sum(new[i].add_to(dx[i].add_to(T::ZERO)));
                }
            }
            dx.copy_from_slice(&new);
        }
    }
}

struct Sum<'a, T> {
    windows: Windows<'a>,
    c: usize,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: PoolElement> Sum<'_, T> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, taps: &[usize], o: usize, at: usize) {
        let mut sums = [T::ZERO; N];
        for tap in taps {
            let x: [T; N] = lanes(self.x, tap + at);
            for i in 0..N {
                sums[i] = x[i].add_to(sums[i]);
            }
        }
        let y: [T; N] = std::array::from_fn(|i| T::from_sum(sums[i]));
        self.y[o * self.c + at..][..N].copy_from_slice(&y);
    }
}

struct SumTranspose<'a, T> {
    windows: Windows<'a>,
    c: usize,
    dy: &'a [T],
    dx: &'a mut [T],
    /// Whether windows may share elements.
    overlap: bool,
}

impl<T: PoolElement> SumTranspose<'_, T> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, taps: &[usize], o: usize, at: usize) {
        let dy: [T; N] = lanes(self.dy, o * self.c + at);
        for tap in taps {
            let dx = &mut self.dx[tap + at..][..N];
            let mut new = dy;
            if self.overlap {
                for i in 0..N {
                    new[i] = T::from_sum(dy[i].add_to(dx[i].add_to(T::ZERO)));
                }
            }
            dx.copy_from_slice(&new);
        }
    }
}

/// Walks the windows and the blocks of channels. Blocks may overlap where doing one twice does no
/// harm; otherwise, and below a block, channels go one by one.
macro_rules! walk {
    ($kernel:ident, $again:expr) => {
        impl<T: PoolElement> Kernel for $kernel<'_, T> {
            type Output = ();
            #[inline(always)]
            fn run(mut self) {
                let mut walk = self.windows.walk();
                let again: fn(&Self) -> bool = $again;
                let whole = if again(&self) { self.c } else { self.c / LANES * LANES };
                while let Some(o) = walk.step() {
                    let mut at = (whole >= LANES).then_some(0);
                    while let Some(block) = at {
                        self.block::<LANES>(&walk.taps, o, block);
                        at = next_block(block, whole);
                    }
                    let single = if whole >= LANES { whole } else { 0 };
                    for channel in single..self.c {
                        self.block::<1>(&walk.taps, o, channel);
                    }
                }
            }
        }
    };
}
walk!(Max, |_| true);
walk!(MaxGather, |_| true);
walk!(MaxScatter, |k| !k.overlap);
walk!(Sum, |_| true);
walk!(SumTranspose, |k| !k.overlap);

#[cfg(test)]
mod tests;
