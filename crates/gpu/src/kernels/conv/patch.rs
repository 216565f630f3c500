//! Convolutions that share a patch of their input.
//!
//! A block computes the columns of some neighbouring places of the result. Everything of the input
//! that they read, with the padding around it, is brought into shared memory once, and matrix units
//! read it there for every tap of the kernel; only the weights of the next taps are on their way
//! meanwhile. Those have been put in order by a launch before. An input's gradient is such a convolution, too: of dy with the kernel turned round.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{Conv, ConvRole};

use super::super::gemm::{Hand, Product, Store, Unit};
use super::super::view::{View, side_by_side};
use super::super::{Draft, Launch, Missing, Place, Program};
use super::taps::unsigned;
use crate::ir::{Access, Build, Number, Shared, Target, Ty, Un, Val, Var};

/// Bytes that the blocks of a multiprocessor may share, and how many warps should run on it.
const SHARED: u32 = 220 << 10;
const WARPS: u32 = 16;
/// Taps whose weights are shared at a time: one is read while the others come.
const STAGES: u32 = 3;
/// Vectors of the patch that a thread loads before it stores the first.
const TOGETHER: u32 = 4;

/// How a convolution is cut.
pub struct Patch {
    unit: Unit,
    threads: u32,
    /// Rows and columns of a tile.
    tile: [u32; 2],
    /// The kernel's sizes, and how far apart its taps are.
    kernel: [usize; 2],
    dilation: [usize; 2],
    /// Whether taps run backwards through the kernel as it lies.
    is_turned: bool,
    /// The spatial sizes of what is read and of the result, and images.
    input: [usize; 2],
    output: [usize; 2],
    images: usize,
    /// What is padded before the first place; less than nothing where the kernel does not reach it.
    low: [i64; 2],
    /// Summed channels, how many of them at a time, and how far apart places are in the patch.
    channels: u32,
    chunk: u32,
    pitch: u32,
    /// Rows of the patch, and how far apart they are.
    tall: u32,
    row: u32,
    /// The strides of the input along images, rows, columns and channels, and of the weights along
    /// the kernel's rows and columns, the summed channels and the result's.
    from: [isize; 4],
    weights: [isize; 4],
    /// How many channels of the input are loaded at once.
    width: u32,
}

/// So many elements, or a few more, that threads reading 8 rows of 4 meet different banks.
fn spread(len: u32) -> u32 {
    if len % 8 == 4 { len } else { len.next_multiple_of(8) + 4 }
}

/// How many blocks a multiprocessor should run at once.
fn blocks_of(unit: Unit) -> u32 {
    match unit {
        Unit::Matrices { groups: [down, across], .. } => (WARPS / (down * across)).max(1),
        Unit::Threads(_) => 1,
    }
}

impl Patch {
    /// The patch of a convolution, where it has one.
    pub fn of(
        conv: &Conv,
        output: &[usize],
        p: &Product<'_>,
        segment: &Segment,
        target: &Target,
    ) -> Option<Patch> {
        let s = conv.input.len();
        let ones = |sizes: &[usize]| sizes.iter().all(|&size| size == 1);
        let fits = matches!(s, 1 | 2)
            && conv.groups == 1
            && ones(&conv.stride)
            && ones(&conv.input_dilation)
            && Unit::rounds(p, target)
            && target.copies
            && segment.outputs[0].aval.shape.size() < 1 << 30;
        let is_forward = match conv.role {
            ConvRole::Forward => true,
            ConvRole::InputGrad => false,
            ConvRole::WeightGrad => return None,
        };
        if !fits {
            return None;
        }
        let [x, w] = &segment.inputs[..2] else { return None };
        // One axis is the second of two.
        let two = |sizes: &[usize], first: usize| match *sizes {
            [only] => [first, only],
            _ => [sizes[0], sizes[1]],
        };
        let kernel = two(&conv.kernel, 1);
        let dilation = two(&conv.dilation, 1);
        let low: Vec<i64> = (0..s)
            .map(|a| {
                let before = conv.padding[a].0 as i64;
                let reach = (conv.kernel[a] as i64 - 1) * conv.dilation[a] as i64;
                if is_forward { before } else { reach - before }
            })
            .collect();
        let low = if s == 1 { [0, low[0]] } else { [low[0], low[1]] };
        let (input, output) = match is_forward {
            true => (two(&conv.input, 1), two(output, 1)),
            false => (two(output, 1), two(&conv.input, 1)),
        };
        let stride = |strides: &[isize], axis: usize| match (s, axis) {
            (1, 1) => 0,
            (1, other) => strides[other - usize::from(other > 1)],
            _ => strides[axis],
        };
        let from = [0, 1, 2, 3].map(|axis| stride(&x.strides, axis));
        let of_weights = [0, 1, 2, 3].map(|axis| stride(&w.strides, axis));
        let [co, ky, kx, ci] = of_weights;
        let weights = if is_forward { [ky, kx, ci, co] } else { [ky, kx, co, ci] };
        let channels = u32::try_from(x.aval.shape[s + 1]).ok().filter(|&c| c >= 8)?;
        let mut patch = Patch {
            unit: Unit::Threads([1, 1]),
            threads: 0,
            tile: [0, 0],
            kernel,
            dilation,
            is_turned: conv.flip == is_forward,
            input,
            output,
            images: x.aval.shape[0],
            low,
            channels,
            chunk: channels,
            pitch: 0,
            tall: 0,
            row: 0,
            from,
            weights,
            width: 1,
        };
        let most = (target.vector_bytes / x.aval.dtype.size()) as u32;
        patch.width = side_by_side(x, s + 1, most);
        patch.choose(p, target).then_some(patch)
    }

    /// Rows and columns of the input with its padding.
    fn padded(&self) -> [usize; 2] {
        [0, 1].map(|a: usize| self.output[a] + (self.kernel[a] - 1) * self.dilation[a])
    }

    /// Chooses the tile that keeps the device fullest; whether there is one.
    fn choose(&mut self, p: &Product<'_>, target: &Target) -> bool {
        let few = p.sizes.columns.div_ceil(8).max(1) as u32;
        let matrices = match few {
            0..=4 => [2, few],
            5..=14 => [2, few.div_ceil(2)],
            _ => [2, 4],
        };
        let across = if few <= 4 { 1 } else { 2 };
        let mut best = 0.0;
        for down in [4, 3] {
            let unit = Unit::Matrices { groups: [down, across], matrices };
            let Some((chunk, tall)) = self.chunk_of(unit) else { continue };
            let processors = target.threads / 2048;
            if unit.blocks(&p.sizes) < u64::from(processors / 2) {
                // A few blocks would go through all taps while the others idle: the product cuts
                // its sums into parts.
                continue;
            }
            let at_once = u64::from(processors * blocks_of(unit)).max(1);
            let waves = unit.blocks(&p.sizes).div_ceil(at_once) * at_once;
            let full = unit.blocks(&p.sizes) as f64 / waves as f64;
            // A larger tile is worth a little idleness.
            if full > best + 0.05 {
                best = full;
                self.unit = unit;
                self.tile = unit.tile();
                self.threads = 32 * down * across;
                self.chunk = chunk;
                self.tall = tall;
            }
        }
        self.pitch = spread(self.chunk);
        self.row = self.row_of(self.chunk);
        best > 0.0
    }

    /// How far apart rows of the patch are: their places, and a gap that lets threads meet other
    /// banks where the tile goes on in the next row, too.
    fn row_of(&self, chunk: u32) -> u32 {
        let (wide, pitch) = (self.padded()[1] as u32, spread(chunk));
        let beyond = (wide - self.output[1] as u32) * pitch;
        wide * pitch + (32 - beyond % 32) % 32
    }

    /// How many channels at a time fit, and how many rows of the padded input a tile reads.
    fn chunk_of(&self, unit: Unit) -> Option<(u32, u32)> {
        let tall = self.padded()[0];
        let reach = (self.kernel[0] - 1) * self.dilation[0];
        let rows = (unit.tile()[0] as usize - 1).div_ceil(self.output[1]) + 1;
        // A tile goes on in the next image, whose padding comes between.
        let images = (self.output[0] + rows - 2) / self.output[0];
        let rows = rows + reach + images * (tall - self.output[0]);
        let step = self.width.max(4);
        let most = SHARED / blocks_of(unit);
        (1..=self.channels.div_ceil(8)).find_map(|parts| {
            let chunk = self.channels.div_ceil(parts).next_multiple_of(step);
            let slabs = STAGES * chunk * unit.tile()[1];
            let len = (rows as u32).checked_mul(self.row_of(chunk))?.checked_add(slabs)?;
            (len <= most / 4).then_some((chunk, rows as u32))
        })
    }

    /// How many elements the weights of a tap are.
    fn slab(&self) -> u32 {
        self.chunk * self.tile[1]
    }

    /// The summed channels of a chunk as they go through matrix units: where each batch starts, and
    /// how many times four it has.
    fn batches(&self) -> Vec<(u32, u32)> {
        let mut batches = Vec::new();
        let mut start = 0;
        for fours in [4, 2, 1] {
            while start + fours * 4 <= self.chunk {
                batches.push((start, fours));
                start += fours * 4;
            }
        }
        batches
    }

    /// Adds the launches.
    pub fn launches(
        &self,
        program: &mut Program,
        p: &Product<'_>,
        segment: &Segment,
        target: &Target,
    ) -> Result<(), Missing> {
        let tiles = [(p.sizes.rows, self.tile[0]), (p.sizes.columns, self.tile[1])]
            .map(|(size, tile)| size.div_ceil(u64::from(tile)));
        let slabs = tiles[1] * u64::from(self.chunks()) * u64::from(self.taps());
        program.scratch.push(slabs as usize * self.slab() as usize * Ty::F32.size());
        let scratch = program.scratch.len() - 1;
        program.launches.push(self.order_weights(p, segment, target, scratch, slabs)?);
        program.launches.push(self.launch(p, segment, target, scratch, tiles)?);
        Ok(())
    }

    /// How many chunks the summed channels are.
    fn chunks(&self) -> u32 {
        self.channels.div_ceil(self.chunk)
    }

    fn taps(&self) -> u32 {
        (self.kernel[0] * self.kernel[1]) as u32
    }

    /// The launch that puts the weights into slabs, one for each tile of columns, chunk of channels
    /// and tap.
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
        let len = self.slab();
        let total = slabs * u64::from(len);
        draft.each(total, |draft, flat| {
            let at = draft
                .unflatten(flat, &[0, self.chunks() as usize, self.taps() as usize, len as usize]);
            let (own, column) = self.unordered(draft, at[3]);
            let sides = [
                (self.chunk, self.channels, at[1], own),
                (self.tile[1], p.sizes.columns as u32, at[0], column),
            ];
            let mut there = draft.build.bool(true);
            let mut place = Vec::new();
            for (size, all, part, own) in sides {
                let (size, all) = (draft.index(i64::from(size)), draft.index(i64::from(all)));
                let first = draft.build.mul(part, size);
                let index = draft.build.add(first, own);
                let known = draft.build.lt(index, all);
                there = draft.build.and(there, known);
                place.push(index);
            }
            let tap = match self.is_turned {
                true => {
                    let last = draft.index(i64::from(self.taps()) - 1);
                    draft.build.sub(last, at[2])
                }
                false => at[2],
            };
            let mut index = draft.unflatten(tap, &self.kernel);
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

    /// The summed channel and the column at a place of a slab. For each batch of channels and each 8
    /// columns, a thread's elements are neighbours: of column lane/4 and of every fourth channel
    /// from lane mod 4 on.
    fn unordered(&self, draft: &mut Draft<'_>, at: Val) -> (Val, Val) {
        let columns = self.tile[1];
        let (mut channel, mut column) = (draft.index(0), draft.index(0));
        for (first, fours) in self.batches() {
            let start = draft.index(i64::from(first * columns));
            let own = draft.build.sub(at, start);
            let place = draft.unflatten(own, &[0, 8, 4, fours as usize]);
            let (four, eight) = (draft.index(4), draft.index(8));
            let c = draft.build.mul(place[3], four);
            let c = draft.build.add(c, place[2]);
            let from = draft.index(i64::from(first));
            let c = draft.build.add(c, from);
            let n = draft.build.mul(place[0], eight);
            let n = draft.build.add(n, place[1]);
            let reached = draft.build.ge(at, start);
            channel = draft.build.select(reached, c, channel);
            column = draft.build.select(reached, n, column);
        }
        (channel, column)
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
        let mut draft = Draft::new(&format!("{}_patch", p.name), self.threads, segment, target)?;
        let x = draft.view(Place::Input(0), p.operand, Access::Read)?;
        let w = draft.scratch(scratch, DType::F32, Access::Read)?;
        draft.assume(x.place, self.width);
        let store = Store::finish(&mut draft, p, segment)?;
        let b = &mut draft.build;
        let patch = b.shared(Ty::F32, self.tall * self.row);
        let slab = b.shared(Ty::F32, self.slab() * STAGES);
        let thread = b.thread();
        let hand = Hand::new(b, self.unit, thread);
        let blocks = tiles[0] * tiles[1];
        let (block, grid) = (b.block_x(), b.blocks());
        let (block, grid) = (b.convert(block, draft.index), b.convert(grid, draft.index));
        let all = draft.index(blocks as i64);
        let mut failed = Ok(());
        draft.range(block, all, grid, |draft, at| {
            let tile = draft.unflatten(at, &tiles.map(|n| n as usize));
            let starts = [0, 1].map(|which: usize| {
                let size = draft.index(i64::from(self.tile[which]));
                draft.build.mul(tile[which], size)
            });
            let work =
                Work::new(draft, self, p, [x, w], [patch, slab], thread, &hand, &tile, starts);
            let sums = work.sums(draft);
            work.run(draft, &sums);
            let zero = draft.index(0);
            failed = store.write(draft, &hand, &sums, [zero, zero], starts);
        });
        failed?;
        Ok(draft.launch([blocks.clamp(1, u64::from(target.max_blocks)) as u32, 1]))
    }
}

/// What a block does for one tile.
struct Work<'a> {
    plan: &'a Patch,
    p: &'a Product<'a>,
    views: [View; 2],
    patch: Shared,
    slab: Shared,
    thread: Val,
    hand: &'a Hand,
    /// The first row of the padded input, counted over all images.
    first_row: Val,
    /// Where each of the thread's rows reads its first tap.
    bases: Vec<Val>,
    /// The tile's number among those of columns.
    columns: Val,
}

/// An element as it is multiplied, and 0 for what is not there.
fn prepared(b: &mut Build<'_>, dtype: DType, v: Val, there: Val) -> Val {
    let v = b.cast(Number::Real(v), dtype, DType::F32).real();
    let v = if dtype == DType::F32 { b.un(Un::Tf32, v) } else { v };
    let zero = b.f32(0.0);
    b.select(there, v, zero)
}

impl<'a> Work<'a> {
    #[allow(clippy::too_many_arguments)]
    fn new(
        draft: &mut Draft<'_>,
        plan: &'a Patch,
        p: &'a Product<'a>,
        views: [View; 2],
        [patch, slab]: [Shared; 2],
        thread: Val,
        hand: &'a Hand,
        tile: &[Val],
        starts: [Val; 2],
    ) -> Self {
        let sizes = [usize::MAX, plan.output[0], plan.output[1]];
        let tall = plan.padded()[0];
        // The row of the padded input where a place of the result starts to read.
        let row_of = |draft: &mut Draft<'_>, place: &[Val]| {
            let tall = draft.index(tall as i64);
            let row = draft.build.mul(place[0], tall);
            draft.build.add(row, place[1])
        };
        let place = draft.unflatten(starts[0], &sizes);
        let first_row = row_of(draft, &place);
        let own = hand.rows(&mut draft.build);
        let t = hand.lane(&mut draft.build);
        let bases = (own.into_iter())
            .map(|own| {
                let own = draft.build.convert(own, draft.index);
                let at = draft.build.add(starts[0], own);
                let limit = draft.index(p.sizes.rows as i64);
                let valid = draft.build.lt(at, limit);
                let at = draft.build.select(valid, at, starts[0]);
                let place = draft.unflatten(at, &sizes);
                let row = row_of(draft, &place);
                let row = draft.build.sub(row, first_row);
                let b = &mut draft.build;
                let (row, column) = (b.convert(row, Ty::U32), b.convert(place[2], Ty::U32));
                let (apart, pitch) = (b.u32(plan.row), b.u32(plan.pitch));
                let (row, column) = (b.mul(row, apart), b.mul(column, pitch));
                let at = b.add(row, column);
                b.add(at, t)
            })
            .collect();
        Work { plan, p, views, patch, slab, thread, hand, first_row, bases, columns: tile[1] }
    }

    fn sums(&self, draft: &mut Draft<'_>) -> Vec<Vec<Var>> {
        let zero = draft.build.f32(0.0);
        (0..self.plan.unit.sums()).map(|_| vec![draft.build.var(zero)]).collect()
    }

    /// Adds up all taps of all channels.
    fn run(&self, draft: &mut Draft<'_>, sums: &[Vec<Var>]) {
        let plan = self.plan;
        let chunks = draft.build.u32(plan.chunks());
        let (zero, one) = (draft.build.u32(0), draft.build.u32(1));
        draft.range(zero, chunks, one, |draft, chunk| {
            draft.build.barrier();
            for stage in 0..STAGES - 1 {
                let tap = draft.build.u32(stage);
                self.bring_slab(draft, chunk, tap);
            }
            self.share_patch(draft, chunk);
            let taps = draft.build.u32(plan.taps());
            draft.range(zero, taps, one, |draft, tap| {
                draft.build.await_copies(STAGES - 2);
                // Everybody's copies are there, and nobody reads the stage that comes next.
                draft.build.barrier();
                let more = draft.build.u32(STAGES - 1);
                let next = draft.build.add(tap, more);
                self.bring_slab(draft, chunk, next);
                self.multiply(draft, tap, sums);
            });
            draft.build.await_copies(0);
        });
    }

    /// Lets the slab of a tap come, if there is one.
    fn bring_slab(&self, draft: &mut Draft<'_>, chunk: Val, tap: Val) {
        let plan = self.plan;
        let len = plan.slab();
        let b = &mut draft.build;
        let (taps, all) = (b.u32(plan.taps()), b.u32(plan.chunks()));
        let is_one = b.lt(tap, taps);
        let stages = b.u32(STAGES);
        let stage = b.rem(tap, stages);
        let columns = b.convert(self.columns, Ty::U32);
        let number = b.mul(columns, all);
        let number = b.add(number, chunk);
        let number = b.mul(number, taps);
        let number = b.add(number, tap);
        let (number, len_wide) =
            (b.convert(number, draft.index), b.int(i64::from(len), draft.index));
        let from = b.mul(number, len_wide);
        let len_val = b.u32(len);
        let to = b.mul(stage, len_val);
        let four = b.u32(4);
        let own = b.mul(self.thread, four);
        for i in 0..len.div_ceil(plan.threads * 4) {
            let away = b.u32(i * plan.threads * 4);
            let own = b.add(own, away);
            let within = b.lt(own, len_val);
            let within = b.and(within, is_one);
            let wide = b.convert(own, draft.index);
            let (to, from) = (b.add(to, own), b.add(from, wide));
            b.when(within, |b| b.copy(self.slab, to, self.views[1].buf, from));
        }
        b.end_copies();
    }

    /// Brings a chunk of channels into the patch.
    fn share_patch(&self, draft: &mut Draft<'_>, chunk: Val) {
        let plan = self.plan;
        let width = plan.width;
        let size = draft.build.u32(plan.chunk);
        let channel = draft.build.mul(chunk, size);
        let [tall, wide] = plan.padded();
        let lanes = plan.chunk / width;
        let count = plan.tall * wide as u32 * lanes;
        let step = draft.build.u32(plan.threads * TOGETHER);
        let count = draft.build.u32(count);
        draft.range(self.thread, count, step, |draft, first| {
            let mut held = Vec::new();
            for i in 0..TOGETHER {
                let away = draft.build.u32(i * plan.threads);
                let at = draft.build.add(first, away);
                let within = draft.build.lt(at, count);
                let (lanes, wide, width) =
                    (draft.build.u32(lanes), draft.build.u32(wide as u32), draft.build.u32(width));
                let (place, lane) = (draft.build.div(at, lanes), draft.build.rem(at, lanes));
                let (row, column) = (draft.build.div(place, wide), draft.build.rem(place, wide));
                let own = draft.build.mul(lane, width);
                let (apart, pitch) = (draft.build.u32(plan.row), draft.build.u32(plan.pitch));
                let (down, right) = (draft.build.mul(row, apart), draft.build.mul(column, pitch));
                let to = draft.build.add(down, right);
                let to = draft.build.add(to, own);
                let c = draft.build.add(channel, own);
                let row = draft.build.convert(row, draft.index);
                let row = draft.build.add(self.first_row, row);
                let tall = draft.index(tall as i64);
                let (image, y) = (draft.build.div(row, tall), draft.build.rem(row, tall));
                let x = draft.build.convert(column, draft.index);
                let mut there = within;
                let mut place = vec![image];
                for (axis, at) in [y, x].into_iter().enumerate() {
                    let low = draft.index(plan.low[axis]);
                    let at = draft.build.sub(at, low);
                    // Below the first place it wraps far beyond the size.
                    let ty = unsigned(draft.index);
                    let reach = draft.build.convert(at, ty);
                    let size = draft.build.int(plan.input[axis] as i64, ty);
                    let holds = draft.build.lt(reach, size);
                    there = draft.build.and(there, holds);
                    place.push(at);
                }
                let images = draft.index(plan.images as i64);
                let holds = draft.build.lt(image, images);
                there = draft.build.and(there, holds);
                let channels = draft.build.u32(plan.channels);
                let holds = draft.build.lt(c, channels);
                there = draft.build.and(there, holds);
                place.push(draft.build.convert(c, draft.index));
                let zero = draft.index(0);
                let at = draft.place(zero, &place, &plan.from);
                let at = draft.build.select(there, at, zero);
                let at = draft.build.add(self.views[0].offset, at);
                let values = draft.build.load_vector(self.views[0].buf, at, plan.width);
                held.push((values, there, to, within));
            }
            for (values, there, to, within) in held {
                draft.build.open_when();
                let values: Vec<Val> = (values.into_iter())
                    .map(|v| prepared(&mut draft.build, self.p.operand, v, there))
                    .collect();
                draft.build.store_shared_vector(self.patch, to, &values);
                draft.build.close_when(within);
            }
        });
    }

    /// Multiplies what a tap reads of the patch by its weights.
    fn multiply(&self, draft: &mut Draft<'_>, tap: Val, sums: &[Vec<Var>]) {
        let plan = self.plan;
        let len = plan.slab();
        let b = &mut draft.build;
        let wide = b.u32(plan.kernel[1] as u32);
        let (ky, kx) = (b.div(tap, wide), b.rem(tap, wide));
        let (down, right) = (
            b.u32(plan.dilation[0] as u32 * plan.row),
            b.u32(plan.dilation[1] as u32 * plan.pitch),
        );
        let (down, right) = (b.mul(ky, down), b.mul(kx, right));
        let away = b.add(down, right);
        let bases: Vec<Val> = self.bases.iter().map(|&base| b.add(base, away)).collect();
        let (len, stages) = (b.u32(len), b.u32(STAGES));
        let stage = b.rem(tap, stages);
        let start = b.mul(stage, len);
        let (column, t) = (self.hand.first_column(b), self.hand.lane(b));
        // With the columns before the group's this is the number of the lane, counted on.
        let four = b.u32(4);
        let lane = b.mul(column, four);
        let lane = b.add(lane, t);
        let Unit::Matrices { matrices, .. } = plan.unit else { return };
        let mut products = Vec::new();
        for (first, fours) in plan.batches() {
            let count = b.u32(fours);
            let own = b.mul(lane, count);
            let own = b.add(own, start);
            let columns: Vec<Vec<Val>> = (0..matrices[1])
                .map(|j| {
                    let away = b.u32(first * plan.tile[1] + j * 32 * fours);
                    let at = b.add(own, away);
                    b.load_shared_vector(self.slab, at, fours)
                })
                .collect();
            // Depths go in eights, or four alone.
            for k in (0..fours).step_by(2) {
                let depths = k..fours.min(k + 2);
                let mut load = |depth: u32, base: Val| {
                    let away = b.u32(first + depth * 4);
                    let at = b.add(base, away);
                    b.load_shared(self.patch, at)
                };
                let rows: Vec<Vec<Val>> = (bases.chunks(2))
                    .map(|pair| {
                        let mut list = Vec::new();
                        for depth in depths.clone() {
                            list.extend(pair.iter().map(|&base| load(depth, base)));
                        }
                        list
                    })
                    .collect();
                let own = depths.start as usize..depths.end as usize;
                let columns: Vec<Vec<Val>> =
                    columns.iter().map(|column| column[own.clone()].to_vec()).collect();
                products.push((rows, columns));
            }
        }
        for (rows, columns) in products {
            for (i, row) in rows.iter().enumerate() {
                for (j, column) in columns.iter().enumerate() {
                    let at = (i * columns.len() + j) * 4;
                    let sums = [0, 1, 2, 3].map(|q| sums[at + q][0]);
                    draft.build.matrix(sums, row.clone(), column.clone());
                }
            }
        }
    }
}
