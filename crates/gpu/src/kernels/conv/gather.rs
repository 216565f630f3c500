//! Products whose first operand is gathered from a patch, and whose second lies in shared slabs.
//!
//! Element (m, k) of the first is in the patch at the sum of what row m and what depth k add: the
//! rows' are in registers, the depths' in a shared table. The second is in slabs of a few depths
//! as wide matrices read it: four depths of a column are neighbours, then come the columns.

use super::super::Draft;
use super::super::gemm::{Hand, Sizes, Unit};
use crate::ir::{Number, NumberVar, Shared, Target, Ty, Val, Wide};

/// Depths of one product of matrices, and how many such products are started together.
pub const STEP: u32 = 8;
const TOGETHER: u32 = 4;
/// Products of matrices that are written out one after the other.
const RUN_STEPS: u32 = 2 * TOGETHER;
/// Depths of such a run.
pub const RUN_DEPTHS: u32 = RUN_STEPS * STEP;

/// The most columns of a tile.
const COLUMNS: u64 = 128;
/// Accumulators that a thread has registers for.
const SUMS: u32 = 112;
/// Shared memory of a multiprocessor in bytes, its registers, and its threads.
const SHARED: u32 = 220 << 10;
const REGISTERS: u32 = 64 << 10;
const THREADS: u32 = 2048;
/// Cycles until what a thread loads is there, that an unrolled run of products takes beside what it
/// multiplies, and that a block needs to begin and end.
const LOAD: f64 = 800.0;
const RUN: f64 = 150.0;
const START: f64 = 2000.0;
/// Bytes that a multiprocessor is brought in a cycle while all are.
const BROUGHT: f64 = 25.0;

/// Elements that each of so many blocks of a multiprocessor can share.
pub fn room(at_once: u32) -> u32 {
    SHARED / at_once / Ty::F32.size() as u32
}

/// How many multiprocessors a device has.
pub fn processors(target: &Target) -> u64 {
    u64::from(target.threads / THREADS).max(1)
}

/// The candidate that takes the fewest cycles; the first of those.
pub fn quickest<C>(candidates: impl Iterator<Item = (f64, C)>) -> Option<C> {
    candidates.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, candidate)| candidate)
}

/// What a block does beside its products.
#[derive(Clone, Copy, Debug)]
pub struct Overhead {
    /// Instructions of all threads together.
    pub instructions: f64,
    /// How often a thread waits for what it has asked for.
    pub waits: f64,
    /// Bytes that go through the cache.
    pub bytes: f64,
}

/// How much of a product a block does: `down` groups of 128 threads, each with `tall` times 64 rows
/// and all columns of the tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    pub down: u32,
    pub tall: u32,
    pub columns: u32,
}

impl Tile {
    /// All that may do for so many columns.
    pub fn all(columns: u64) -> Vec<Tile> {
        let parts = columns.div_ceil(COLUMNS).max(1);
        let columns = columns.div_ceil(parts).next_multiple_of(8) as u32;
        let mut tiles = Vec::new();
        for tall in [1, 2] {
            let fits = tall * columns / 2 <= SUMS;
            tiles.extend((1..=4).filter(|_| fits).map(|down| Tile { down, tall, columns }));
        }
        tiles
    }

    pub fn rows(&self) -> u32 {
        64 * self.down * self.tall
    }

    pub fn threads(&self) -> u32 {
        128 * self.down
    }

    pub fn unit(&self) -> Unit {
        Unit::Matrices { groups: [4 * self.down, 1], matrices: [self.tall, self.columns / 8] }
    }

    /// Occupancy by registers: those of the sums, of the rows of as many products as are started
    /// together, and some more.
    pub fn at_once(&self) -> u32 {
        let registers = self.tall * (self.columns / 2 + 4 * TOGETHER + 6) + 36;
        let registers = registers.next_multiple_of(8);
        (REGISTERS / (registers * self.threads())).min(THREADS / self.threads())
    }

    /// Tiles of a product's rows and columns.
    pub fn counts(&self, sizes: &Sizes) -> [u64; 2] {
        [(sizes.rows, self.rows()), (sizes.columns, self.columns)]
            .map(|(size, tile)| size.div_ceil(u64::from(tile)))
    }

    /// The first row and column of a tile, whose place among the others is given.
    pub fn starts<'k>(&self, [row, column]: [Val<'k>; 2]) -> [Val<'k>; 2] {
        [row * self.rows(), column * self.columns]
    }

    /// Roughly the cycles that a device of so many multiprocessors takes for blocks with so many
    /// steps of products and this overhead each, `at_once` of them on a multiprocessor.
    pub fn time(
        &self,
        processors: u64,
        blocks: u64,
        at_once: u32,
        steps: u64,
        overhead: Overhead,
    ) -> f64 {
        let at_once = u64::from(at_once).min(blocks.div_ceil(processors));
        let waves = blocks.div_ceil(processors * at_once);
        waves as f64 * self.cycles(steps, overhead, at_once)
    }

    /// Roughly the cycles that a multiprocessor takes for `at_once` blocks: what it is busiest
    /// with, or what one block waits for.
    fn cycles(&self, steps: u64, overhead: Overhead, at_once: u64) -> f64 {
        let [down, tall, columns, steps] =
            [self.down, self.tall, self.columns, steps as u32].map(f64::from);
        // Matrix units multiply 1024 pairs in a cycle, shared memory gives 32 words, and 4 times 32
        // threads begin an instruction.
        let multiplied = steps * down * tall * columns / 2.0;
        let read = steps * down * (8.0 + tall * (16.0 + columns / 4.0));
        let begun = steps * down * (10.0 * tall + 6.0) + overhead.instructions / 128.0;
        let brought = overhead.bytes / BROUGHT;
        let busy = multiplied.max(read).max(begun / 0.8).max(brought);
        let runs = steps / f64::from(RUN_STEPS);
        let chain = steps * tall * (columns / 2.0).max(24.0);
        let alone = chain + runs * RUN + overhead.instructions / 128.0 + overhead.waits * LOAD;
        (busy * at_once as f64).max(alone) + START
    }

    /// Elements of a slab of so many depths.
    pub fn slab(&self, depths: u32) -> u32 {
        depths.next_multiple_of(STEP) * self.columns
    }
}

/// What a thread multiplies.
pub struct Gather<'k> {
    pub k: &'k Draft,
    pub tile: Tile,
    pub patch: Shared,
    /// What every depth adds to a place of the patch.
    pub table: Shared,
    pub slab: Shared,
    pub hand: &'k Hand<'k>,
    /// What the thread's rows add.
    pub rows: Vec<Val<'k>>,
    pub sums: Vec<NumberVar<'k>>,
}

impl<'k> Gather<'k> {
    /// Multiplies a few depths, written out.
    fn run(&self, first: Val<'k>, slab: Val<'k>, depths: u32) {
        let k = self.k;
        let steps = depths.div_ceil(STEP);
        let t = self.hand.lane();
        let own = first + t;
        for start in (0..steps).step_by(TOGETHER as usize) {
            let mut products = Vec::new();
            for step in start..steps.min(start + TOGETHER) {
                let columns = slab + step * self.tile.slab(STEP);
                let left = depths - step * STEP;
                let offsets = [0, 4].map(|half| self.table.load(own + (step * STEP + half)));
                for (i, pair) in self.rows.chunks(2).enumerate() {
                    let mut rows = Vec::new();
                    for (half, &offset) in offsets.iter().enumerate() {
                        for &row in pair {
                            let element = self.patch.load(row + offset);
                            rows.push(within(element, t, left.saturating_sub(half as u32 * 4)));
                        }
                    }
                    let count = self.tile.columns as usize / 2;
                    let sums = self.sums[i * count..(i + 1) * count].iter().map(|sum| sum.re);
                    products.push(Wide::new(sums, [rows[0], rows[1], rows[2], rows[3]], columns));
                }
            }
            k.wide(self.slab, self.tile.columns, products);
        }
        k.await_wide(self.sums.iter().map(|sum| sum.re));
    }

    /// Multiplies a known number of depths from `first` on, by the slab that starts at `slab`.
    pub fn multiply(&self, first: Val<'k>, slab: Val<'k>, depths: u32) {
        let runs = depths / RUN_DEPTHS;
        let all = self.k.u32(runs);
        let part = |number: Val<'k>, depths: u32| {
            let (first, slab) =
                (first + number * RUN_DEPTHS, slab + number * self.tile.slab(RUN_DEPTHS));
            self.run(first, slab, depths);
        };
        match runs {
            1 => part(self.k.u32(0), RUN_DEPTHS),
            _ => self.k.count(all, |number| part(number, RUN_DEPTHS)),
        }
        if depths > runs * RUN_DEPTHS {
            part(all, depths - runs * RUN_DEPTHS);
        }
    }

    /// Multiplies `depths` depths, in slabs of `size` that `turn` makes ready: it is given the
    /// number of a slab and says where it starts.
    pub fn in_turn(&self, depths: u32, size: u32, turn: impl Fn(Val<'k>) -> Val<'k>) {
        let whole = depths / size;
        let all = self.k.u32(whole);
        self.k.count(all, |number| {
            let slab = turn(number);
            self.multiply(number * size, slab, size);
        });
        if depths > whole * size {
            let slab = turn(all);
            self.multiply(self.k.u32(whole * size), slab, depths - whole * size);
        }
    }
}

/// An element where so many depths are left, and 0 beyond: what lies there may be infinite.
fn within<'k>(element: Val<'k>, t: Val<'k>, left: u32) -> Val<'k> {
    if left >= 4 { element } else { t.lt(left).select(element, 0.0) }
}

/// A thread's sums, of nothing yet.
pub fn sums(k: &Draft, tile: Tile) -> Vec<NumberVar<'_>> {
    let zero = Number::Real(k.f32(0.0));
    (0..tile.unit().sums()).map(|_| k.number_var(zero)).collect()
}

/// The table of what so many depths add.
pub fn table<'k>(k: &'k Draft, depths: u32, of: impl FnOnce(Val<'k>) -> Val<'k>) -> Shared {
    let table = k.shared(Ty::U32, depths.next_multiple_of(STEP));
    k.range(k.thread(), table.len, k.block_size(), |at| {
        // Beyond the last one the patch may end.
        let depth = at.min(depths - 1);
        table.store(at, of(k.as_index(depth)));
    });
    table
}

/// What each of a thread's rows adds to a place of the patch: what `of` says of a row's number.
pub fn rows<'k>(
    k: &'k Draft,
    hand: &Hand<'k>,
    limit: u64,
    start: Val<'k>,
    of: impl Fn(Val<'k>) -> Val<'k>,
) -> Vec<Val<'k>> {
    (hand.rows().into_iter())
        .map(|own| {
            let at = start + k.as_index(own);
            of(at.lt(limit).select(at, start))
        })
        .collect()
}
