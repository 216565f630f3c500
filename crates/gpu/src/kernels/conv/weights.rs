//! Gradients of a kernel over a shared patch: each block computes some taps and channels of x, for
//! some channels of dy, over a part of all places.
//!
//! It shares the places a few rows or images at a time: the patch that they read, and dy in a slab.
//! A second launch adds the parts.

use cupola_core::backend::Segment;
use cupola_core::prim::{Conv, ConvRole};

use super::super::gemm::{Hand, Product, Store, Unit, add_parts};
use super::super::view::{Axes, View, side_by_side};
use super::super::{Draft, Missing, Place, Program};
use super::gather::{self, Gather, STEP, Tile, Work};
use super::patch::{Patch, Rows, four, prepared};
use crate::ir::{Access, Shared, Target, Ty, Val};

/// Squares of dy, some channels of four places, that a thread loads before it stores the first.
const AHEAD: u32 = 2;
/// The most places that are shared at a time.
const MOST_PLACES: u32 = 1024;

/// How such a gradient is cut.
pub struct Weights {
    patch: Patch,
    tile: Tile,
    group: Group,
    /// Groups that a block takes one after the other.
    each: u64,
    /// How many blocks run at once on a multiprocessor.
    at_once: u32,
    is_turned: bool,
    /// The axes of dy that its places count, how far apart its channels are, and how many of them
    /// are loaded at once.
    along: Axes,
    channels: isize,
    width: u32,
}

/// Places that are shared at a time: some rows of an image, or some images.
#[derive(Clone, Copy, Debug)]
struct Group {
    places: u32,
    /// Rows of the padded input that they read.
    tall: u32,
    /// How many groups there are.
    count: u64,
}

impl Group {
    /// All that may do.
    fn all(patch: &Patch) -> Vec<Group> {
        let [high, wide] = patch.output;
        let tall = patch.padded()[0];
        let rows = (1..high).filter(|rows| high.is_multiple_of(*rows)).map(|rows| Group {
            places: (rows * wide) as u32,
            tall: (rows + tall - high) as u32,
            count: (patch.images * (high / rows)) as u64,
        });
        let images = (1..=8.min(patch.images)).map(|images| Group {
            places: (images * high * wide) as u32,
            tall: (images * tall) as u32,
            count: patch.images.div_ceil(images) as u64,
        });
        rows.chain(images).filter(|group| group.places <= MOST_PLACES).collect()
    }
}

impl Weights {
    /// The cut that takes the least time, if there is one.
    pub fn of(
        conv: &Conv,
        output: &[usize],
        p: &Product<'_>,
        segment: &Segment,
        target: &Target,
    ) -> Option<Weights> {
        if conv.role != ConvRole::WeightGrad || !Unit::rounds(p.operand, p.accumulate, target) {
            return None;
        }
        let patch = Patch::of(conv, output, segment, target)?;
        let processors = u64::from(target.threads / 2048).max(1);
        let [image, y, x, channels] = four(&segment.inputs[1].strides);
        let sizes = [patch.images, patch.output[0], patch.output[1]];
        let along = Axes::joined(&sizes, &[&[image, y, x]]);
        let dy = &segment.inputs[1];
        let width = side_by_side(dy, dy.aval.shape.rank() - 1, 4);
        let mut best: Option<(f64, Weights)> = None;
        for tile in Tile::all(p.sizes.columns) {
            let tiles = tile.unit().blocks(&p.sizes);
            for group in Group::all(&patch) {
                let patch = patch.cut(group.tall, 1, Rows::Channels);
                let len = patch.len() + tile.slab(group.places) + group.places + STEP;
                for at_once in 1..=tile.at_once() {
                    if len > gather::SHARED / at_once / 4 {
                        break;
                    }
                    let wanted = (processors * u64::from(at_once)).div_ceil(tiles);
                    let own = Weights {
                        patch: patch.clone(),
                        tile,
                        group,
                        each: group.count.div_ceil(wanted),
                        at_once,
                        is_turned: conv.flip,
                        along: along.clone(),
                        channels,
                        width,
                    };
                    let cycles = own.cycles(p, tiles, processors);
                    if best.as_ref().is_none_or(|(least, _)| cycles < *least) {
                        best = Some((cycles, own));
                    }
                }
            }
        }
        // Where few blocks have something to do, the product cuts its sums more finely.
        let fills =
            |own: &Weights| own.tile.unit().blocks(&p.sizes) * own.parts() >= processors / 2;
        best.map(|(_, own)| own).filter(fills)
    }

    /// How many blocks share the groups.
    fn parts(&self) -> u64 {
        self.group.count.div_ceil(self.each)
    }

    /// Roughly how long it takes.
    fn cycles(&self, p: &Product<'_>, tiles: u64, processors: u64) -> f64 {
        let threads = self.tile.threads();
        let share = self.patch.work(threads);
        let fours = self.tile.slab(self.group.places) / 4;
        let turns = fours.div_ceil(self.width * threads * AHEAD);
        let each = self.each as f64;
        let sums = f64::from(self.tile.rows()) * p.sizes.columns.min(128) as f64;
        let work = Work {
            instructions: (share.instructions
                + f64::from(fours) * (20.0 + 40.0 / f64::from(self.width)))
                * each
                + sums * 6.0,
            waits: (share.waits + f64::from(turns) + 0.5) * each,
            // What is added up later is written and read again.
            bytes: (share.bytes + f64::from(fours) * 16.0) * each + sums * 10.0,
        };
        let steps = u64::from(self.group.places.div_ceil(STEP)) * self.each;
        let blocks = tiles * self.parts();
        let at_once = u64::from(self.at_once).min(blocks.div_ceil(processors));
        let waves = blocks.div_ceil(processors * at_once);
        waves as f64 * self.tile.cycles(steps, work, at_once)
    }

    /// Adds the launches.
    pub fn launches(
        &self,
        program: &mut Program,
        p: &Product<'_>,
        segment: &Segment,
        target: &Target,
    ) -> Result<(), Missing> {
        let name = format!("{}_patch", p.name);
        let mut draft = Draft::new(&name, self.tile.threads(), segment, target)?;
        draft.build.at_once(self.at_once);
        let x = draft.view(Place::Input(0), p.operand, Access::Read)?;
        let dy = draft.view(Place::Input(1), p.operand, Access::Read)?;
        self.patch.assume(&mut draft, x);
        draft.assume(dy.place, self.width);
        let count = p.sizes.rows * p.sizes.columns * self.parts();
        program.scratch.push(count as usize * p.accumulate.size());
        let scratch = program.scratch.len() - 1;
        let store = Store::part(&mut draft, p, scratch)?;
        let slab = draft.build.shared(Ty::F32, self.tile.slab(self.group.places));
        let patch = draft.build.shared(Ty::F32, self.patch.len());
        let table = gather::table(&mut draft, self.group.places, |draft, place| {
            let first = draft.index(0);
            self.patch.of_place(draft, place, first)
        });
        let thread = draft.build.thread();
        let hand = Hand::new(&mut draft.build, self.tile.unit(), thread);
        let size = [self.tile.rows(), self.tile.columns].map(u64::from);
        let tiles = [p.sizes.rows.div_ceil(size[0]), p.sizes.columns.div_ceil(size[1])];
        let blocks = self.parts() * tiles[0] * tiles[1];
        self.patch.clear(&mut draft, patch);
        let mut failed = Ok(());
        draft.blocks(blocks, |draft, at| {
            // Neighbouring blocks read the same places.
            let split = [self.parts(), tiles[0], tiles[1]].map(|n| n as usize);
            let place = draft.unflatten(at, &split);
            let starts = [0, 1].map(|which: usize| {
                let size = draft.index(size[which] as i64);
                draft.build.mul(place[which + 1], size)
            });
            let rows = self.rows(draft, &hand, p, starts[0]);
            let sums = gather::sums(draft, self.tile);
            let own =
                Gather { tile: self.tile, patch, table, slab, hand: &hand, rows, sums: &sums };
            let (each, count) =
                (draft.index(self.each as i64), draft.index(self.group.count as i64));
            let one = draft.index(1);
            let first = draft.build.mul(place[0], each);
            let last = draft.build.add(first, each);
            let last = draft.build.min_int(last, count);
            draft.range(first, last, one, |draft, group| {
                let places = draft.index(i64::from(self.group.places));
                let start = draft.build.mul(group, places);
                let [first_row, _] = self.patch.start(draft, start);
                // Nobody reads the group before any more.
                draft.build.barrier();
                let zero = draft.build.u32(0);
                self.patch.share(draft, x, patch, first_row, zero);
                self.share(draft, dy, slab, start, starts[1], p);
                draft.build.fence_wide();
                draft.build.barrier();
                own.multiply(draft, zero, zero, self.group.places);
            });
            let zero = draft.index(0);
            failed = store.write(draft, &hand, &sums, [zero, place[0]], starts);
        });
        failed?;
        let grid = blocks.clamp(1, u64::from(target.max_blocks)) as u32;
        program.launches.push(draft.launch([grid, 1]));
        program.launches.push(add_parts(p, self.parts(), scratch, segment, target)?);
        Ok(())
    }

    /// Where each of the thread's rows, a tap and channel, is from the first place.
    fn rows(&self, draft: &mut Draft<'_>, hand: &Hand, p: &Product<'_>, start: Val) -> Vec<Val> {
        let own = hand.rows(&mut draft.build);
        let limit = draft.index(p.sizes.rows as i64);
        (own.into_iter())
            .map(|own| {
                let own = draft.build.convert(own, draft.index);
                let at = draft.build.add(start, own);
                let valid = draft.build.lt(at, limit);
                let at = draft.build.select(valid, at, start);
                self.patch.of_tap(draft, at, self.is_turned)
            })
            .collect()
    }

    /// Brings dy at the places from `start` on and the columns from `first` on.
    fn share(
        &self,
        draft: &mut Draft<'_>,
        dy: View,
        to: Shared,
        start: Val,
        first: Val,
        p: &Product<'_>,
    ) {
        let dtype = draft.build.dtype(dy.buf);
        let columns = self.tile.columns;
        let threads = self.tile.threads();
        let squares = columns / self.width;
        let count = draft.build.u32(self.tile.slab(self.group.places) / 4 / self.width);
        let step = draft.build.u32(threads * AHEAD);
        let thread = draft.build.thread();
        draft.range(thread, count, step, |draft, own| {
            let mut held = Vec::new();
            for i in 0..AHEAD {
                let away = draft.build.u32(i * threads);
                let at = draft.build.add(own, away);
                let within = draft.build.lt(at, count);
                let (squares, width) = (draft.build.u32(squares), draft.build.u32(self.width));
                let (plane, column) = (draft.build.div(at, squares), draft.build.rem(at, squares));
                let column = draft.build.mul(column, width);
                let (four, all) = (draft.build.u32(4), draft.build.u32(columns));
                let depth = draft.build.mul(plane, four);
                let to = draft.build.mul(plane, all);
                let to = draft.build.add(to, column);
                let to = draft.build.mul(to, four);
                let column = draft.build.convert(column, draft.index);
                let column = draft.build.add(first, column);
                let limit = draft.index(p.sizes.columns as i64);
                let known = draft.build.lt(column, limit);
                let known = draft.build.and(known, within);
                let square: Vec<(Vec<Val>, Val)> =
                    (0..4).map(|i| self.find(draft, dy, start, depth, i, column, known)).collect();
                held.push((square, to, within));
            }
            for (square, to_place, within) in held {
                draft.build.open_when();
                for i in 0..self.width {
                    let four: Vec<Val> = (square.iter())
                        .map(|(v, there)| prepared(&mut draft.build, dtype, v[i as usize], *there))
                        .collect();
                    let away = draft.build.u32(i * 4);
                    let at = draft.build.add(to_place, away);
                    draft.build.store_shared_vector(to, at, &four);
                }
                draft.build.close_when(within);
            }
        });
    }

    /// Some channels of dy, and whether they are there: `away` places after `depth`, counted from
    /// `start`.
    #[allow(clippy::too_many_arguments)]
    fn find(
        &self,
        draft: &mut Draft<'_>,
        dy: View,
        start: Val,
        depth: Val,
        away: u32,
        column: Val,
        known: Val,
    ) -> (Vec<Val>, Val) {
        let away = draft.build.u32(away);
        let own = draft.build.add(depth, away);
        let limit = draft.build.u32(self.group.places);
        let within = draft.build.lt(own, limit);
        let there = draft.build.and(known, within);
        let own = draft.build.convert(own, draft.index);
        let place = draft.build.add(start, own);
        let limit = draft.index(self.along.count() as i64);
        let within = draft.build.lt(place, limit);
        let there = draft.build.and(there, within);
        let mut index = draft.unflatten(place, &self.along.sizes);
        index.push(column);
        let strides = [&self.along.strides[0][..], &[self.channels]].concat();
        let at = draft.place(dy.offset, &index, &strides);
        let at = draft.build.select(there, at, dy.offset);
        (draft.build.load_vector(dy.buf, at, self.width), there)
    }
}
