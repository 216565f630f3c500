//! Gradients of a kernel over a shared patch: each block computes some taps and channels of x, for
//! some channels of dy, over a part of all places.
//!
//! It brings the places into shared memory a few rows or images at a time: the patch that they
//! read, and dy in a slab. The sum over places is split among blocks (split-K); a second launch adds
//! the parts.

use cupola_core::backend::Segment;
use cupola_core::prim::{Conv, ConvRole};

use super::super::gemm::{Hand, Product, Store, Unit, add_parts};
use super::super::view::{Axes, View, Walk, side_by_side, unflatten};
use super::super::{BufferRef, Draft, Missing, Program};
use super::gather::{self, Gather, Overhead, STEP, Tile};
use super::patch::{Patch, Rows, four, prepared};
use crate::ir::{Access, Shared, Target, Ty, Val};

/// Squares of dy, some channels of four places, whose loads a thread has under way at once.
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
        let share = self.patch.overhead(threads);
        let fours = self.tile.slab(self.group.places) / 4;
        let turns = fours.div_ceil(self.width * threads * AHEAD);
        let each = self.each as f64;
        let sums = f64::from(self.tile.rows()) * p.sizes.columns.min(128) as f64;
        let overhead = Overhead {
            instructions: (share.instructions
                + f64::from(fours) * (20.0 + 40.0 / f64::from(self.width)))
                * each
                + sums * 6.0,
            waits: (share.waits + f64::from(turns) + 0.5) * each,
            // What is added up later is written and read again.
            bytes: (share.bytes + f64::from(fours) * 16.0) * each + sums * 10.0,
        };
        let steps = u64::from(self.group.places.div_ceil(STEP)) * self.each;
        self.tile.time(processors, self.blocks(p), self.at_once, steps, overhead)
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
        let k = Draft::new(&name, self.tile.threads(), segment, target)?;
        k.at_once(self.at_once);
        let [x, dy] = [0, 1].map(|which| k.view(BufferRef::Input(which), p.operand, Access::Read));
        self.patch.assume(&k, x);
        k.assume(dy.bound, self.width);
        let count = p.sizes.rows * p.sizes.columns * self.parts();
        program.scratch.push(count as usize * p.accumulate.size());
        let scratch = program.scratch.len() - 1;
        let store = Store::part(&k, p, scratch);
        let slab = k.shared(Ty::F32, self.tile.slab(self.group.places));
        let patch = k.shared(Ty::F32, self.patch.len());
        let table =
            gather::table(&k, self.group.places, |place| self.patch.of_place(place, k.index(0)));
        let hand = Hand::new(self.tile.unit(), k.thread());
        let tiles = self.tile.counts(&p.sizes);
        let blocks = self.blocks(p);
        self.patch.clear(&k, patch);
        // Neighbouring blocks read the same places.
        let split = k.divisors(&[self.parts(), tiles[0], tiles[1]].map(|n| n as usize));
        let along = (k.walk(&self.along), k.extent(self.along.count()));
        k.blocks(blocks, |at| {
            let place = unflatten(at, &split);
            let starts = self.tile.starts([place[1], place[2]]);
            let rows = gather::rows(&k, &hand, p.sizes.rows, starts[0], |at| {
                self.patch.of_tap(at, self.is_turned)
            });
            let sums = gather::sums(&k, self.tile);
            let own =
                Gather { k: &k, tile: self.tile, patch, table, slab, hand: &hand, rows, sums };
            let first = place[0] * self.each;
            let last = (first + self.each).min(self.group.count);
            k.range(first, last, 1, |group| {
                let start = group * self.group.places;
                let [first_row, _] = self.patch.start(start);
                // Nobody reads the group before any more.
                k.barrier();
                let zero = k.u32(0);
                self.patch.share(&k, x, patch, first_row, zero);
                self.share(&k, (dy, &along), slab, start, starts[1], p.sizes.columns);
                k.fence_wide();
                k.barrier();
                own.multiply(zero, zero, self.group.places);
            });
            store.write(&hand, &own.sums, [k.index(0), place[0]], starts);
        });
        program.launches.push(k.launch_blocks(blocks)?);
        program.launches.push(add_parts(p, self.parts(), scratch, segment, target)?);
        Ok(())
    }

    /// Brings dy at the places from `start` on and those of all its `columns` from `first` on.
    fn share<'k>(
        &self,
        k: &'k Draft,
        dy: (View<'k>, &(Walk<'k>, Val<'k>)),
        to: Shared,
        start: Val<'k>,
        first: Val<'k>,
        columns: u64,
    ) {
        let threads = self.tile.threads();
        let squares = self.tile.columns / self.width;
        let count = self.tile.slab(self.group.places) / 4 / self.width;
        k.range(k.thread(), count, threads * AHEAD, |own| {
            let mut held = Vec::new();
            for i in 0..AHEAD {
                let at = own + i * threads;
                let within = at.lt(count);
                let (plane, column) = (at / squares, at % squares * self.width);
                let depth = plane * 4;
                let place = (plane * self.tile.columns + column) * 4;
                let column = first + k.as_index(column);
                let known = column.lt(columns) & within;
                let square: Vec<(Vec<Val<'k>>, Val<'k>)> =
                    (0..4).map(|i| self.find(k, dy, start, depth + i, column, known)).collect();
                held.push((square, place, within));
            }
            for (square, place, within) in held {
                k.when(within, || {
                    for i in 0..self.width {
                        let four: Vec<Val<'k>> = (square.iter())
                            .map(|(v, there)| prepared(v[i as usize], dy.0.buf.dtype, *there))
                            .collect();
                        to.store_vector(place + i * 4, &four);
                    }
                });
            }
        });
    }

    /// Some channels of dy, and whether they are there, at place `depth` counted from `start`.
    fn find<'k>(
        &self,
        k: &'k Draft,
        (dy, (along, places)): (View<'k>, &(Walk<'k>, Val<'k>)),
        start: Val<'k>,
        depth: Val<'k>,
        column: Val<'k>,
        known: Val<'k>,
    ) -> (Vec<Val<'k>>, Val<'k>) {
        let there = known & depth.lt(self.group.places);
        let place = start + k.as_index(depth);
        let there = there & place.lt(*places);
        let mut index = unflatten(place, &along.sizes);
        index.push(column);
        let strides = [&along.strides[0][..], &k.literals(&[self.channels])].concat();
        let at = there.select(dy.at(&index, &strides), dy.offset);
        (dy.buf.load_vector(at, self.width), there)
    }
}
