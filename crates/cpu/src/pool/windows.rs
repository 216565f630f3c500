//! Where the windows of a pooling lie.

use super::PoolProblem;
use crate::memory::listed;

/// The first element of every window along each axis, and what is behind its last, of those in the input.
pub(super) struct Table<'a> {
    p: &'a PoolProblem,
    axes: Vec<Vec<(usize, usize)>>,
    /// Positions in the last axis: a run of windows with the same rows.
    pub row: usize,
}

impl<'a> Table<'a> {
    pub fn new(p: &'a PoolProblem) -> Self {
        let axis = |d: usize| {
            let (low, step, span) =
                (p.padding[d].0, p.dilation[d], (p.window[d] - 1) * p.dilation[d] + 1);
            listed(p.output[d], |o| {
                let start = o * p.stride[d];
                // Whole steps past the padding.
                let first = start + low.saturating_sub(start).div_ceil(step) * step;
                (first - low, (start + span).saturating_sub(low).min(p.input[d]))
            })
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
            let mut i = first;
            while i < last {
                for k in 0..inner {
                    starts.push(starts[k] + i * scale);
                }
                i += self.p.dilation[d];
            }
            starts.drain(..inner);
            scale *= self.p.input[d];
        }
    }

    /// The first column of a window, what is behind its last, and the step between them.
    #[inline(always)]
    fn columns(&self, o: usize) -> (usize, usize, usize) {
        match (self.axes.last(), self.p.dilation.last()) {
            (Some(axis), Some(&step)) => (axis[o].0, axis[o].1, step),
            _ => (0, 1, 1),
        }
    }
}

/// Output positions `start..end` of one image.
#[derive(Clone, Copy)]
pub(super) struct Windows<'a> {
    pub table: &'a Table<'a>,
    pub start: usize,
    pub end: usize,
}

impl<'a> Windows<'a> {
    #[inline(always)]
    pub fn walk(self) -> Walk<'a> {
        Walk { windows: self, next: self.start, rows: vec![], taps: vec![] }
    }
}

/// A walk over windows. Not an iterator with closures, since these would not be compiled for the
/// instruction set of the kernel.
pub(super) struct Walk<'a> {
    windows: Windows<'a>,
    next: usize,
    rows: Vec<usize>,
    /// Starts in the image, in elements, of the positions that the window holds.
    pub taps: Vec<usize>,
}

impl Walk<'_> {
    /// Steps to the next window, and returns its place in the piece.
    #[inline(always)]
    pub fn step(&mut self) -> Option<usize> {
        let Windows { table, start, end } = self.windows;
        let position = self.next;
        if position == end {
            return None;
        }
        self.next += 1;
        let column = position % table.row;
        if column == 0 || position == start {
            table.rows(position / table.row, &mut self.rows);
        }
        let (first, last, step) = table.columns(column);
        self.taps.clear();
        for row in &self.rows {
            let mut i = first;
            while i < last {
                self.taps.push(row + i * table.p.channels);
                i += step;
            }
        }
        Some(position - start)
    }
}
