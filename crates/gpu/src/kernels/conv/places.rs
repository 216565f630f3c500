//! Convolutions over a shared patch: each block computes the columns of some neighbouring places.
//!
//! A launch before puts the weights into slabs. Slabs are prefetched while others are multiplied.
//! An input's gradient is such a convolution, too: of dy with the kernel turned round.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{Conv, ConvRole};

use super::super::gemm::{Hand, Product, Store, Unit};
use super::super::view::{View, place, unflatten};
use super::super::{BufferRef, Draft, Launch, Missing, Program};
use super::gather::{self, Gather, Overhead, RUN_DEPTHS, STEP, Tile};
use super::patch::{Patch, Rows, four, prepared};
use crate::ir::{Access, Shared, Target, Ty, Val};

/// Slabs in shared memory: one is multiplied while the others are prefetched.
const STAGES: u32 = 3;

/// How a convolution is cut.
pub struct Places {
    patch: Patch,
    tile: Tile,
    /// Depths of a slab.
    size: u32,
    /// Occupancy: how many blocks run at once on a multiprocessor, and on all. Each goes on with the
    /// next tile.
    at_once: u32,
    blocks: u32,
    /// Whether all weights fit into shared memory and stay there.
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
        let share = self.patch.overhead(self.tile.threads());
        // The weights come 16 bytes at a time, in so many pieces that are met for.
        let weights = if self.stays { 0.0 } else { f64::from(self.tile.slab(self.depths()) * 4) };
        let meetings = if self.stays { 0 } else { self.depths().div_ceil(self.size) };
        let results = f64::from(self.tile.rows()) * p.sizes.columns.min(128) as f64;
        let overhead = Overhead {
            instructions: (share.instructions + weights / 2.0) * chunks + results * 12.0,
            waits: (share.waits + 0.2 * f64::from(meetings) + 1.0) * chunks,
            bytes: (share.bytes + weights) * chunks + results * 5.0,
        };
        let blocks = self.tile.unit().blocks(&p.sizes);
        self.tile.time(processors, blocks, self.at_once, steps, overhead)
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
        let k = Draft::new("conv_weights", 256, segment, target)?;
        let w = k.view(BufferRef::Input(1), p.operand, Access::Read);
        let out = k.scratch(scratch, DType::F32, Access::Write);
        let depths = self.depths().next_multiple_of(STEP);
        let sizes = [0, self.patch.chunks(), depths / 4, self.tile.columns, 4];
        let sizes = k.fixed_axes(&sizes);
        let kernel = k.fixed_axes(&self.patch.kernel.map(|n| n as u32));
        let strides = k.literals(&self.weights);
        let total = slabs * u64::from(self.tile.slab(depths));
        k.each(total, |flat| {
            let at = unflatten(flat, &sizes);
            let depth = at[2] * 4 + at[4];
            let mut there = depth.lt(self.depths());
            let own = unflatten(depth, &k.fixed_axes(&[0, self.patch.chunk]));
            let sides = [
                (self.patch.chunk, self.patch.channels, at[1], own[1]),
                (self.tile.columns, p.sizes.columns as u32, at[0], at[3]),
            ];
            let channels = sides.map(|(size, all, part, own)| {
                let index = part * size + own;
                there = there & index.lt(all);
                index
            });
            let tap = if self.is_turned { self.patch.turned(own[0]) } else { own[0] };
            let mut index = unflatten(tap, &kernel);
            index.extend(channels);
            let from = place(k.index(0), &index, &strides);
            let value = w.buf.load(w.offset + there.select(from, 0));
            out.buf.store(flat, prepared(value, p.operand, there));
        });
        k.launch_over(total)
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
        let k = Draft::new(&name, self.tile.threads(), segment, target)?;
        k.at_once(self.at_once);
        let x = k.view(BufferRef::Input(0), p.operand, Access::Read);
        let w = k.scratch(scratch, DType::F32, Access::Read);
        self.patch.assume(&k, x);
        let store = Store::finish(&k, p, segment);
        let slab = k.shared(Ty::F32, self.slabs());
        let patch = k.shared(Ty::F32, self.patch.len());
        // Dense rows are put together before they are written, where the slabs were.
        let len = self.tile.rows() * p.sizes.columns as u32;
        let room = match (store.is_dense() && tiles[1] == 1, self.stays) {
            (false, _) => None,
            (true, true) => Some(k.shared(Ty::F32, len)),
            (true, false) => Some(slab).filter(|slab| slab.len >= len),
        };
        let table = gather::table(&k, self.depths(), |depth| self.patch.of_tap(depth, false));
        let hand = Hand::new(self.tile.unit(), k.thread());
        self.patch.clear(&k, patch);
        if self.stays {
            for stage in 0..STAGES {
                self.bring(&k, w, slab, k.u32(0), k.u32(stage));
            }
            k.await_copies(0);
            k.fence_wide();
        }
        let split = k.divisors(&tiles.map(|n| n as usize));
        k.blocks(tiles[0] * tiles[1], |at| {
            let tile = unflatten(at, &split);
            let starts = self.tile.starts([tile[0], tile[1]]);
            let [first_row, _] = self.patch.start(starts[0]);
            let rows = gather::rows(&k, &hand, p.sizes.rows, starts[0], |at| {
                self.patch.of_place(at, first_row)
            });
            let sums = gather::sums(&k, self.tile);
            let own =
                Gather { k: &k, tile: self.tile, patch, table, slab, hand: &hand, rows, sums };
            self.accumulate(&own, x, w, first_row, tile[1]);
            match room {
                Some(room) => {
                    store.write_dense(&hand, &own.sums, starts[0], (room, self.tile.rows()));
                }
                None => store.write(&hand, &own.sums, [k.index(0); 2], starts),
            }
        });
        k.launch_blocks((tiles[0] * tiles[1]).min(u64::from(self.blocks)))
    }

    /// Adds up a tile in the patch from `first_row` on, one chunk of channels after the other.
    fn accumulate<'k>(
        &self,
        own: &Gather<'k>,
        x: View<'k>,
        w: View<'k>,
        first_row: Val<'k>,
        column: Val<'k>,
    ) {
        let k = own.k;
        let chunks = k.u32(self.patch.chunks());
        k.count(chunks, |chunk| {
            let number = column.convert(Ty::U32) * chunks + chunk;
            // Nobody reads the chunk before any more.
            k.barrier();
            for stage in (0..STAGES - 1).filter(|_| !self.stays) {
                self.bring(k, w, own.slab, number, k.u32(stage));
            }
            self.patch.share(k, x, own.patch, first_row, chunk);
            if self.stays {
                k.barrier();
                return own.multiply(k.u32(0), k.u32(0), self.depths());
            }
            own.in_turn(self.depths(), self.size, |stage| {
                k.await_copies(STAGES - 2);
                k.fence_wide();
                // Everybody's copies are there, and nobody reads the slab that comes next.
                k.barrier();
                self.bring(k, w, own.slab, number, stage + (STAGES - 1));
                self.slab_of(stage)
            });
            k.await_copies(0);
        });
    }

    /// Where a stage's slab is.
    fn slab_of<'k>(&self, stage: Val<'k>) -> Val<'k> {
        stage % STAGES * self.tile.slab(self.size)
    }

    /// Prefetches the slab of a stage, if there is one.
    fn bring<'k>(&self, k: &'k Draft, w: View<'k>, slab: Shared, number: Val<'k>, stage: Val<'k>) {
        let (len, all) = (self.tile.slab(self.size), self.tile.slab(self.depths()));
        let to = self.slab_of(stage);
        let start = stage * len;
        let from = k.as_index(number) * all;
        let own = k.thread() * 4;
        for i in 0..len.div_ceil(self.tile.threads() * 4) {
            let own = own + i * self.tile.threads() * 4;
            let at = start + own;
            let within = own.lt(len) & at.lt(all);
            let (to, from) = (to + own, from + k.as_index(at));
            k.when(within, || k.copy(slab, to, w.buf, from));
        }
        k.end_copies();
    }
}
