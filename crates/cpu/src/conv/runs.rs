//! Which weights and inputs each output position multiplies.

use std::ops::Range;

use cupola_simd::Run;

use super::Geometry;
use super::geometry::Taps;

/// What every position of a piece reads: `Run::a` counts taps × input channels of a group, and
/// `Run::b` elements of the input.
///
/// The lists have room for all they get: a list that grows waits for whoever else's list grows, where the C library's
/// allocator is the program's.
pub(super) struct Runs {
    runs: Vec<Run>,
    ends: Vec<usize>,
    /// Tap and input, over all axes but the last.
    outer: Vec<(usize, usize)>,
}

impl Runs {
    /// Without any yet.
    pub fn new(geo: &Geometry) -> Runs {
        let outer = Vec::with_capacity(2 * outer_taps(geo));
        Runs { runs: Vec::new(), ends: Vec::new(), outer }
    }

    /// Lists the runs of positions; inputs count from `origin`. With `merge`, taps of the last axis
    /// that follow each other are one run.
    pub fn build(
        &mut self,
        geo: &Geometry,
        tables: &[Vec<Taps>],
        merge: bool,
        positions: Range<usize>,
        origin: usize,
    ) {
        self.runs.clear();
        self.ends.clear();
        let last = geo.axes.len() - 1;
        let inner = &geo.axes[last];
        let channels = geo.groups * geo.c_in;
        let each = outer_taps(geo) * if merge { 1 } else { inner.taps };
        self.runs.reserve(positions.len() * each);
        self.ends.reserve(positions.len());
        for position in positions.clone() {
            let column = position % inner.output;
            if column == 0 || position == positions.start {
                self.row(geo, tables, position / inner.output);
            }
            let taps = tables[last][column];
            if taps.count > 0 {
                for &(tap, input) in &self.outer {
                    let tap = tap * inner.taps + taps.first_tap;
                    let input = input * inner.input + taps.first_input - origin;
                    if merge {
                        let len = taps.count * geo.c_in;
                        self.runs.push(Run { a: tap * geo.c_in, b: input * channels, len });
                        continue;
                    }
                    for i in 0..taps.count {
                        let a = (tap + i * inner.tap_step()) * geo.c_in;
                        let b = (input + i * inner.input_step()) * channels;
                        self.runs.push(Run { a, b, len: geo.c_in });
                    }
                }
            }
            self.ends.push(self.runs.len());
        }
    }

    /// Finds what an output row meets: see [`Runs::rows`].
    pub fn row(&mut self, geo: &Geometry, tables: &[Vec<Taps>], mut row: usize) {
        self.outer.clear();
        self.outer.push((0, 0));
        let (mut taps_below, mut inputs_below) = (1, 1);
        for (d, axis) in geo.axes.iter().enumerate().rev().skip(1) {
            let taps = tables[d][row % axis.output];
            row /= axis.output;
            let inner = self.outer.len();
            for i in 0..taps.count {
                let tap = (taps.first_tap + i * axis.tap_step()) * taps_below;
                let input = (taps.first_input + i * axis.input_step()) * inputs_below;
                for k in 0..inner {
                    let below = self.outer[k];
                    self.outer.push((tap + below.0, input + below.1));
                }
            }
            self.outer.drain(..inner);
            taps_below *= axis.taps;
            inputs_below *= axis.input;
        }
    }

    /// Tap and input of an output row, over all axes but the last.
    pub fn rows(&self) -> &[(usize, usize)] {
        &self.outer
    }

    /// The runs of each position.
    pub fn each(&self) -> impl Iterator<Item = &[Run]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.runs[std::mem::replace(&mut start, end)..end])
    }
}

/// The taps of all axes but the last.
pub(super) fn outer_taps(geo: &Geometry) -> usize {
    geo.axes.iter().rev().skip(1).map(|axis| axis.taps).product()
}
