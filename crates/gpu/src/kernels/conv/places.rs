//! Convolutions over a shared patch: each block computes the columns of some neighbouring places.
//!
//! The weights have been put into slabs by a launch before; those of the next depths are on their
//! way while some are multiplied. An input's gradient is such a convolution, too: of dy with the
//! kernel turned round.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{Conv, ConvRole};

use super::super::gemm::{Hand, Product, Store, Unit};
use super::super::view::View;
use super::super::{Draft, Launch, Missing, Place, Program};
use super::gather::{self, Gather, RUN_DEPTHS, STEP, Tile, Work};
use super::patch::{Patch, Rows, four, prepared};
use crate::ir::{Access, Shared, Target, Ty, Val};

/// Slabs that are shared at a time: one is read while the others come.
const STAGES: u32 = 3;

/// How a convolution is cut.
pub struct Places {
    patch: Patch,
    tile: Tile,
    /// Depths of a slab.
    size: u32,
    /// How many blocks run at once on a multiprocessor, and on all; each goes on with the next tile.
    at_once: u32,
    blocks: u32,
    /// Whether all weights are shared at once and stay.
    stays: bool,
    /// Whether taps run backwards through the kernel as it lies.
    is_turned: bool,
    /// The strides of the weights along the kernel's rows and columns, the summed channels and the
    /// result's.
    weights: [isize; 4],
}

impl Places {
    /// The cut that takes the least time, where there is one that fills the device.
    pub fn of(
        conv: &Conv,
        output: &[usize],
        p: &Product<'_>,
        segment: &Segment,
        target: &Target,
    ) -> Option<Places> {
        let is_forward = match conv.role {
            ConvRole::Forward => true,
            ConvRole::InputGrad => false,
            ConvRole::WeightGrad => return None,
        };
        if !Unit::rounds(p.operand, p.accumulate, target) {
            return None;
        }
        let patch = Patch::of(conv, output, segment, target)?;
        let [co, ky, kx, ci] = four(&segment.inputs[1].strides);
        let weights = if is_forward { [ky, kx, ci, co] } else { [ky, kx, co, ci] };
        let is_turned = conv.flip == is_forward;
        let processors = gather::processors(target);
        // With fewer blocks a few would do everything while others idle: the product cuts its sums
        // into parts.
        let fills = |tile: &Tile| tile.unit().blocks(&p.sizes) >= processors / 2;
        let cuts = (Tile::all(p.sizes.columns).into_iter().filter(fills))
            .flat_map(|tile| (1..=tile.at_once()).map(move |at_once| (tile, at_once)))
            .flat_map(|cut| [1, 2, 4].map(|runs| (cut, runs * RUN_DEPTHS)));
        gather::quickest(cuts.filter_map(|((tile, at_once), size)| {
            let blocks = processors as u32 * at_once;
            let patch = patch.clone();
            let stays = false;
            let own = Places { patch, tile, size, at_once, blocks, stays, is_turned, weights };
            let own = own.fitted(p.sizes.columns)?;
            Some((own.cycles(p, processors), own))
        }))
    }

    /// The same with as many channels at a time as there is memory for.
    fn fitted(mut self, columns: u64) -> Option<Places> {
        let tall = self.patch.tall_of(self.tile.rows());
        let whole = u64::from(self.tile.columns) >= columns;
        (1..=self.patch.channels.div_ceil(STEP)).find_map(|parts| {
            self.patch = self.patch.cut(tall, parts, Rows::Places);
            let depths = self.patch.taps().checked_mul(self.patch.chunk)?;
            self.stays = whole && parts == 1 && depths <= self.size * STAGES;
            let len = self.patch.len().checked_add(depths.next_multiple_of(STEP))?;
            let len = len.checked_add(self.slabs())?;
            let result = if self.stays { self.tile.rows() * columns as u32 } else { 0 };
            (len + result <= gather::room(self.at_once)).then_some(())
        })?;
        Some(self)
    }

    /// Elements of all shared slabs.
    fn slabs(&self) -> u32 {
        match self.stays {
            true => self.tile.slab(self.depths()),
            false => STAGES * self.tile.slab(self.size),
        }
    }

    /// Roughly how long it takes.
    fn cycles(&self, p: &Product<'_>, processors: u64) -> f64 {
        let chunks = f64::from(self.patch.chunks());
        let steps = u64::from(self.depths().div_ceil(STEP)) * u64::from(self.patch.chunks());
        let share = self.patch.work(self.tile.threads());
        // The weights come 16 bytes at a time, in so many pieces that are met for.
        let weights = if self.stays { 0.0 } else { f64::from(self.tile.slab(self.depths()) * 4) };
        let meetings = if self.stays { 0 } else { self.depths().div_ceil(self.size) };
        let results = f64::from(self.tile.rows()) * p.sizes.columns.min(128) as f64;
        let work = Work {
            instructions: (share.instructions + weights / 2.0) * chunks + results * 12.0,
            waits: (share.waits + 0.2 * f64::from(meetings) + 1.0) * chunks,
            bytes: (share.bytes + weights) * chunks + results * 5.0,
        };
        let blocks = self.tile.unit().blocks(&p.sizes);
        self.tile.time(processors, blocks, self.at_once, steps, work)
    }

    /// Summed elements of a chunk.
    fn depths(&self) -> u32 {
        self.patch.taps() * self.patch.chunk
    }

    /// Adds the launches.
    pub fn launches(
        &self,
        program: &mut Program,
        p: &Product<'_>,
        segment: &Segment,
        target: &Target,
    ) -> Result<(), Missing> {
        let tiles = self.tile.counts(&p.sizes);
        let slabs = tiles[1] * u64::from(self.patch.chunks());
        let len = self.tile.slab(self.depths()) as usize;
        program.scratch.push(slabs as usize * len * Ty::F32.size());
        let scratch = program.scratch.len() - 1;
        program.launches.push(self.order_weights(p, segment, target, scratch, slabs)?);
        program.launches.push(self.launch(p, segment, target, scratch, tiles)?);
        Ok(())
    }

    /// The launch that puts the weights into slabs: for each tile of columns and chunk of channels
    /// one after the other.
    fn order_weights(
        &self,
        p: &Product<'_>,
        segment: &Segment,
        target: &Target,
        scratch: usize,
        slabs: u64,
    ) -> Result<Launch, Missing> {
        let mut draft = Draft::new("conv_weights", 256, segment, target)?;
        let w = draft.view(Place::Input(1), p.operand, Access::Read)?;
        let out = draft.scratch(scratch, DType::F32, Access::Write)?;
        let depths = self.depths().next_multiple_of(STEP);
        let columns = self.tile.columns as usize;
        let total = slabs * u64::from(self.tile.slab(depths));
        draft.each(total, |draft, flat| {
            let sizes = [0, self.patch.chunks() as usize, depths as usize / 4, columns, 4];
            let at = draft.unflatten(flat, &sizes);
            let four = draft.index(4);
            let depth = draft.build.mul(at[2], four);
            let depth = draft.build.add(depth, at[4]);
            let known = draft.index(i64::from(self.depths()));
            let mut there = draft.build.lt(depth, known);
            let own = draft.unflatten(depth, &[0, self.patch.chunk as usize]);
            let sides = [
                (self.patch.chunk, self.patch.channels, at[1], own[1]),
                (self.tile.columns, p.sizes.columns as u32, at[0], at[3]),
            ];
            let mut place = Vec::new();
            for (size, all, part, own) in sides {
                let (size, all) = (draft.index(i64::from(size)), draft.index(i64::from(all)));
                let first = draft.build.mul(part, size);
                let index = draft.build.add(first, own);
                let known = draft.build.lt(index, all);
                there = draft.build.and(there, known);
                place.push(index);
            }
            let tap = if self.is_turned { self.patch.turned(draft, own[0]) } else { own[0] };
            let mut index = draft.unflatten(tap, &self.patch.kernel);
            index.extend(place);
            let zero = draft.index(0);
            let from = draft.place(zero, &index, &self.weights);
            let from = draft.build.select(there, from, zero);
            let from = draft.build.add(w.offset, from);
            let value = draft.build.load(w.buf, from);
            let value = prepared(&mut draft.build, p.operand, value, there);
            draft.build.store(out.buf, flat, value);
        });
        Ok(draft.launch_over(total))
    }

    /// The launch that convolves.
    fn launch(
        &self,
        p: &Product<'_>,
        segment: &Segment,
        target: &Target,
        scratch: usize,
        tiles: [u64; 2],
    ) -> Result<Launch, Missing> {
        let name = format!("{}_patch", p.name);
        let mut draft = Draft::new(&name, self.tile.threads(), segment, target)?;
        draft.build.at_once(self.at_once);
        let x = draft.view(Place::Input(0), p.operand, Access::Read)?;
        let w = draft.scratch(scratch, DType::F32, Access::Read)?;
        self.patch.assume(&mut draft, x);
        let store = Store::finish(&mut draft, p, segment)?;
        let slab = draft.build.shared(Ty::F32, self.slabs());
        let patch = draft.build.shared(Ty::F32, self.patch.len());
        // Dense rows are put together before they are written, where the slabs were.
        let len = self.tile.rows() * p.sizes.columns as u32;
        let room = match (store.is_dense(&draft) && tiles[1] == 1, self.stays) {
            (false, _) => None,
            (true, true) => Some(draft.build.shared(Ty::F32, len)),
            (true, false) => Some(slab).filter(|slab| slab.len >= len),
        };
        let table = gather::table(&mut draft, self.depths(), |draft, depth| {
            self.patch.of_tap(draft, depth, false)
        });
        let thread = draft.build.thread();
        let hand = Hand::new(&mut draft.build, self.tile.unit(), thread);
        self.patch.clear(&mut draft, patch);
        if self.stays {
            let zero = draft.build.u32(0);
            for stage in 0..STAGES {
                let stage = draft.build.u32(stage);
                self.bring(&mut draft, w, slab, zero, stage);
            }
            draft.build.await_copies(0);
            draft.build.fence_wide();
        }
        let mut failed = Ok(());
        draft.blocks(tiles[0] * tiles[1], |draft, at| {
            let tile = draft.unflatten(at, &tiles.map(|n| n as usize));
            let starts = self.tile.starts(draft, [tile[0], tile[1]]);
            let [first_row, _] = self.patch.start(draft, starts[0]);
            let rows = gather::rows(draft, &hand, p.sizes.rows, starts[0], |draft, at| {
                self.patch.of_place(draft, at, first_row)
            });
            let sums = gather::sums(draft, self.tile);
            let own =
                Gather { tile: self.tile, patch, table, slab, hand: &hand, rows, sums: &sums };
            self.accumulate(draft, &own, x, w, first_row, tile[1]);
            let zero = draft.index(0);
            failed = match room {
                Some(room) => {
                    let room = (room, self.tile.rows());
                    store.write_dense(draft, &hand, &sums, starts[0], room)
                }
                None => store.write(draft, &hand, &sums, [zero, zero], starts),
            };
        });
        failed?;
        let blocks = (tiles[0] * tiles[1]).clamp(1, u64::from(self.blocks));
        Ok(draft.launch([blocks as u32, 1]))
    }

    /// Adds up a tile in the patch from `first_row` on, one chunk of channels after the other.
    fn accumulate(
        &self,
        draft: &mut Draft<'_>,
        own: &Gather<'_>,
        x: View,
        w: View,
        first_row: Val,
        column: Val,
    ) {
        let chunks = draft.build.u32(self.patch.chunks());
        let (zero, one) = (draft.build.u32(0), draft.build.u32(1));
        draft.range(zero, chunks, one, |draft, chunk| {
            let number = draft.build.convert(column, Ty::U32);
            let number = draft.build.mul(number, chunks);
            let number = draft.build.add(number, chunk);
            // Nobody reads the chunk before any more.
            draft.build.barrier();
            for stage in (0..STAGES - 1).filter(|_| !self.stays) {
                let stage = draft.build.u32(stage);
                self.bring(draft, w, own.slab, number, stage);
            }
            self.patch.share(draft, x, own.patch, first_row, chunk);
            if self.stays {
                draft.build.barrier();
                let zero = draft.build.u32(0);
                return own.multiply(draft, zero, zero, self.depths());
            }
            own.in_turn(draft, self.depths(), self.size, |draft, stage| {
                draft.build.await_copies(STAGES - 2);
                draft.build.fence_wide();
                // Everybody's copies are there, and nobody reads the slab that comes next.
                draft.build.barrier();
                let more = draft.build.u32(STAGES - 1);
                let next = draft.build.add(stage, more);
                self.bring(draft, w, own.slab, number, next);
                self.slab_of(draft, stage)
            });
            draft.build.await_copies(0);
        });
    }

    /// Where a stage's slab is.
    fn slab_of(&self, draft: &mut Draft<'_>, stage: Val) -> Val {
        let (stages, len) = (draft.build.u32(STAGES), draft.build.u32(self.tile.slab(self.size)));
        let turn = draft.build.rem(stage, stages);
        draft.build.mul(turn, len)
    }

    /// Lets the slab of a stage come, if there is one.
    fn bring(&self, draft: &mut Draft<'_>, w: View, slab: Shared, number: Val, stage: Val) {
        let len = self.tile.slab(self.size);
        let to = self.slab_of(draft, stage);
        let all = draft.build.u32(self.tile.slab(self.depths()));
        let b = &mut draft.build;
        let (len_val, four, thread) = (b.u32(len), b.u32(4), b.thread());
        let start = b.mul(stage, len_val);
        let (number, wide) = (b.convert(number, draft.index), b.convert(all, draft.index));
        let from = b.mul(number, wide);
        let own = b.mul(thread, four);
        for i in 0..len.div_ceil(self.tile.threads() * 4) {
            let away = b.u32(i * self.tile.threads() * 4);
            let own = b.add(own, away);
            let at = b.add(start, own);
            let (within, known) = (b.lt(own, len_val), b.lt(at, all));
            let within = b.and(within, known);
            let wide = b.convert(at, draft.index);
            let (to, from) = (b.add(to, own), b.add(from, wide));
            b.when(within, |b| b.copy(slab, to, w.buf, from));
        }
        b.end_copies();
    }
}
