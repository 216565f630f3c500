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
        let processors = gather::processors(target);
        let [image, y, x, channels] = four(&segment.inputs[1].strides);
        let sizes = [patch.images, patch.output[0], patch.output[1]];
        let along = Axes::joined(&sizes, &[&[image, y, x]]);
        let dy = &segment.inputs[1];
        let width = side_by_side(dy, dy.aval.shape.rank() - 1, 4);
        let groups: Vec<(Group, Patch)> = (Group::all(&patch).into_iter())
            .map(|group| (group, patch.cut(group.tall, 1, Rows::Channels)))
            .collect();
        let cuts = (Tile::all(p.sizes.columns).into_iter())
            .flat_map(|tile| groups.iter().map(move |(group, patch)| (tile, *group, patch)))
            .flat_map(|cut| (1..=cut.0.at_once()).map(move |at_once| (cut, at_once)));
        let best = gather::quickest(cuts.filter_map(|((tile, group, patch), at_once)| {
            let len = patch.len() + tile.slab(group.places) + group.places + STEP;
            if len > gather::room(at_once) {
                return None;
            }
            let wanted = (processors * u64::from(at_once)).div_ceil(tile.unit().blocks(&p.sizes));
            let (patch, along) = (patch.clone(), along.clone());
            let (each, is_turned) = (group.count.div_ceil(wanted), conv.flip);
            let own =
                Weights { patch, tile, group, each, at_once, is_turned, along, channels, width };
            Some((own.cycles(p, processors), own))
        }));
        // Where few blocks have something to do, the product cuts its sums more finely.
        best.filter(|own| own.blocks(p) >= processors / 2)
    }

    /// How many blocks share the groups.
    fn parts(&self) -> u64 {
        self.group.count.div_ceil(self.each)
    }

    /// How many blocks there are.
    fn blocks(&self, p: &Product<'_>) -> u64 {
        self.tile.unit().blocks(&p.sizes) * self.parts()
    }

    /// Roughly how long it takes.
    fn cycles(&self, p: &Product<'_>, processors: u64) -> f64 {
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
        self.tile.time(processors, self.blocks(p), self.at_once, steps, work)
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
        let tiles = self.tile.counts(&p.sizes);
        let blocks = self.blocks(p);
        self.patch.clear(&mut draft, patch);
        let mut failed = Ok(());
        draft.blocks(blocks, |draft, at| {
            // Neighbouring blocks read the same places.
            let split = [self.parts(), tiles[0], tiles[1]].map(|n| n as usize);
            let place = draft.unflatten(at, &split);
            let starts = self.tile.starts(draft, [place[1], place[2]]);
            let rows = gather::rows(draft, &hand, p.sizes.rows, starts[0], |draft, at| {
                self.patch.of_tap(draft, at, self.is_turned)
            });
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
                let square: Vec<(Vec<Val>, Val)> = (0..4)
                    .map(|i| {
                        let away = draft.build.u32(i);
                        let depth = draft.build.add(depth, away);
                        self.find(draft, dy, start, depth, column, known)
                    })
                    .collect();
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

    /// Some channels of dy, and whether they are there, at place `depth` counted from `start`.
    fn find(
        &self,
        draft: &mut Draft<'_>,
        dy: View,
        start: Val,
        depth: Val,
        column: Val,
        known: Val,
    ) -> (Vec<Val>, Val) {
        let limit = draft.build.u32(self.group.places);
        let within = draft.build.lt(depth, limit);
        let there = draft.build.and(known, within);
        let depth = draft.build.convert(depth, draft.index);
        let place = draft.build.add(start, depth);
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
