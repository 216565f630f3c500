//! Products in tiles: the one kernel behind matrix products and convolutions.
//!
//! A block computes a tile of the result. Its threads bring a slice of both operands into shared
//! memory, each thread then multiplies a small square of it, and so on along the summed axis. What
//! an element of an operand is, and where a result goes, the caller says. Where the tiles are too
//! few to fill the device the sums are split (split-K), and a second launch adds the parts.

mod hand;
mod loader;
mod store;

use cupola_core::DType;
use cupola_core::backend::Segment;

use super::view::unflatten;
use super::{BufferRef, Draft, Missing, Program};
use crate::ir::{Access, Number, NumberVar, Shared, Target, Ty, Val};
pub use hand::{Hand, Slices};
pub use loader::{Lay, Order, plain_at};
use loader::{Loader, Slice};
pub use store::{Dim, ResultAxes, Store, add_parts};

/// Threads in a block: 16 × 16.
const BLOCK: u32 = 256;
const SIDE: u32 = 16;

/// Elements of a result whose sums are cut finely.
const SMALL: u64 = 1 << 14;

/// The sizes of a product: `batch` times `rows` × `depth` with `depth` × `columns`.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Independent products.
    pub batch: u64,
    /// Rows of the result.
    pub rows: u64,
    /// Columns of the result.
    pub columns: u64,
    /// What is summed over.
    pub depth: u64,
}

/// How an operand is read: what depends on its own index and on the summed one is computed apart,
/// so that it is done once for many elements.
pub trait Source {
    /// It in a kernel.
    fn bind<'k>(&'k self, k: &'k Draft) -> Box<dyn Addresses<'k> + 'k>;
    /// Whether neighbouring threads should read along the summed axis.
    fn along_depth(&self) -> bool;
    /// How many neighbours along that way, or along the own index, lie side by side wherever a
    /// multiple of so many stands: at most `most`, a power of two.
    fn width(&self, most: u32) -> u32;
}

/// Where the elements of an operand are in a kernel.
pub trait Addresses<'k> {
    /// What a row (of the second operand: a column) of a batch needs.
    fn outer(&self, batch: Val<'k>, index: Val<'k>) -> Vec<Val<'k>>;
    /// What an index of the summed axis needs.
    fn inner(&self, depth: Val<'k>) -> Vec<Val<'k>>;
    /// Where the element is, and whether it is there (else it is 0).
    fn place(&self, outer: &[Val<'k>], inner: &[Val<'k>]) -> (Val<'k>, Option<Val<'k>>);
}

/// What a product reads and writes.
pub struct Product<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its sizes.
    pub sizes: Sizes,
    /// The dtype of both operands.
    pub operand: DType,
    /// The dtype of the sums.
    pub accumulate: DType,
    /// The first operand, which is the segment's first input.
    pub first: &'a dyn Source,
    /// The second operand, which is its second.
    pub second: &'a dyn Source,
    /// Which axes of the result its batches, rows and columns are.
    pub result: ResultAxes,
}

/// What multiplies the shared slices.
#[derive(Clone, Copy, Debug)]
pub enum Unit {
    /// Every thread has this many rows and columns, 16 apart.
    Threads([u32; 2]),
    /// Warps have matrices of 16×8: how many warps there are along the rows and columns of the tile,
    /// and how many matrices along those of a warp.
    Matrices { groups: [u32; 2], matrices: [u32; 2] },
}

/// How a product is cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    unit: Unit,
    /// The depth of a slice: how much of the summed axis is in shared memory at a time.
    depth: u32,
    /// Whether the next slice is prefetched while one is multiplied (double buffering).
    ahead: bool,
    /// Parts of the summed axis (split-K).
    parts: u64,
    /// Slices in a part.
    steps: u64,
}

impl Unit {
    /// Rows and columns of a block's tile.
    pub fn tile(&self) -> [u32; 2] {
        match self {
            Unit::Threads([r, c]) => [r * SIDE, c * SIDE],
            Unit::Matrices { groups: [gr, gc], matrices: [mr, mc] } => [gr * mr * 16, gc * mc * 8],
        }
    }

    /// How many sums a thread has.
    pub fn sums(&self) -> u32 {
        match self {
            Unit::Threads([r, c]) => r * c,
            Unit::Matrices { matrices: [r, c], .. } => r * c * 4,
        }
    }

    /// How many blocks work on the tiles of a product.
    pub fn blocks(&self, sizes: &Sizes) -> u64 {
        let [rows, columns] = self.tile().map(u64::from);
        sizes.batch * sizes.rows.div_ceil(rows) * sizes.columns.div_ceil(columns)
    }

    /// Whether matrix units may multiply the operands: products of halves lose nothing by their
    /// rounding.
    pub fn rounds(operand: DType, accumulate: DType, target: &Target) -> bool {
        let allowed = match operand {
            DType::F32 => target.tf32,
            other => matches!(other, DType::F16 | DType::BF16),
        };
        target.matrix && allowed && accumulate == DType::F32
    }

    fn of(p: &Product<'_>, target: &Target) -> Unit {
        let sizes = &p.sizes;
        let enough = (u64::from(target.threads / BLOCK) / 4).max(64);
        if Unit::rounds(p.operand, p.accumulate, target) {
            let unit = |groups, matrices| Unit::Matrices { groups, matrices };
            let few = sizes.columns.div_ceil(8).max(1) as u32;
            // The larger tile does more with what it loads, if there are enough of them.
            let either = |large: Unit, small: Unit| {
                if large.blocks(sizes) >= enough { large } else { small }
            };
            return match (sizes.rows, sizes.columns) {
                (0..=32, 0..=32) => unit([2, 4], [1, 1]),
                (_, 0..=32) => either(unit([8, 1], [2, few]), unit([8, 1], [1, few])),
                (0..=64, _) => unit([2, 4], [2, 2]),
                (_, 0..=112) => unit([4, 2], [2, few.div_ceil(2)]),
                _ => either(unit([2, 4], [4, 4]), unit([4, 2], [2, 4])),
            };
        }
        let fit = |size: u64, most: u32| {
            let needed = size.div_ceil(u64::from(SIDE)).next_power_of_two();
            needed.clamp(1, u64::from(most)) as u32
        };
        let large = Unit::Threads([fit(sizes.rows, 8), fit(sizes.columns, 8)]);
        match large.blocks(sizes) >= enough {
            true => large,
            false => Unit::Threads([fit(sizes.rows, 4), fit(sizes.columns, 4)]),
        }
    }
}

impl Cut {
    fn of(p: &Product<'_>, target: &Target) -> Cut {
        let unit = Unit::of(p, target);
        // What the next slice needs is on its way while one is multiplied, where loads take their
        // time: on a processor it would only lengthen the way through the barriers.
        let ahead = target.threads > 1 << 12;
        let depth = match unit {
            Unit::Matrices { .. } => 32,
            // Two slices are shared at a time, and every thread has something to bring.
            Unit::Threads([rows, columns]) if ahead && rows.min(columns) > 1 => 8,
            Unit::Threads(_) => 16,
        };
        let mut cut = Cut { unit, depth, ahead, parts: 1, steps: 1 };
        let planes = if p.accumulate == DType::C64 { 2 } else { 1 };
        let shared: u32 = cut.lays(p).iter().map(|lay| lay.len).sum();
        let bytes = shared * planes * Ty::of(p.accumulate).size() as u32 * 2;
        cut.ahead &= bytes <= target.shared_bytes;
        // Blocks with many sums fill a multiprocessor two or three at a time.
        let full = u64::from(target.threads / BLOCK).max(1);
        let wanted = match (unit, unit.sums()) {
            (Unit::Matrices { .. }, 33..) => (full / 4).max(1),
            (Unit::Matrices { .. }, 17..) => (full * 3 / 8).max(1),
            _ => full,
        };
        let steps = p.sizes.depth.div_ceil(u64::from(depth)).max(1);
        // The parts of a small result are soon added.
        let results = p.sizes.batch * p.sizes.rows * p.sizes.columns;
        let least = if results <= SMALL { 2 } else { 8 };
        let parts =
            (wanted / unit.blocks(&p.sizes).max(1)).clamp(1, steps.div_ceil(least)).min(256);
        // Every part has the same number of steps, so the last may have less to do.
        cut.steps = steps.div_ceil(parts);
        cut.parts = steps.div_ceil(cut.steps);
        cut
    }

    /// How the slices of both operands are shared.
    fn lays(&self, p: &Product<'_>) -> [Lay; 2] {
        let [rows, columns] = self.unit.tile();
        [
            Lay::of(self, rows, p.first.along_depth(), true),
            Lay::of(self, columns, p.second.along_depth(), false),
        ]
    }
}

/// Adds the launches of a product, and of the segment's epilogue.
pub fn product(
    program: &mut Program,
    p: &Product<'_>,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    super::check_dtype(p.accumulate, target)?;
    if p.sizes.depth == 0 {
        // There is no element of the operands that could be read.
        program.launches.push(store::sums_of_nothing(p, segment, target)?);
        return Ok(());
    }
    let cut = Cut::of(p, target);
    let k = Draft::new(p.name, BLOCK, segment, target)?;
    let views = [0, 1].map(|which| k.view(BufferRef::Input(which), p.operand, Access::Read));
    let Sizes { batch, rows, columns, .. } = p.sizes;
    let store = match cut.parts {
        1 => Store::finish(&k, p, segment),
        parts => {
            let count = (batch * rows * columns * parts) as usize;
            program.scratch.push(count * p.accumulate.size());
            Store::part(&k, p, program.scratch.len() - 1)
        }
    };
    let tile = cut.unit.tile();
    let tiles = [rows.div_ceil(u64::from(tile[0])), columns.div_ceil(u64::from(tile[1]))];
    let blocks = batch * cut.parts * tiles[0] * tiles[1];
    let ty = Ty::of(p.accumulate);
    let planes = if p.accumulate == DType::C64 { 2 } else { 1 };
    let lay = cut.lays(p);
    let copies = if cut.ahead { 2 } else { 1 };
    let shared =
        lay.map(|lay| (0..planes).map(|_| k.shared(ty, lay.len * copies)).collect::<Vec<Shared>>());
    let slices = Slices { shared: [&shared[0], &shared[1]], lay };
    let thread = k.thread();
    let hand = Hand::new(cut.unit, thread);
    let sources = [p.first, p.second].map(|source| (source, source.bind(&k)));
    let limits = [rows, columns].map(|n| k.extent(n));
    let [depth, steps] = [p.sizes.depth, cut.steps].map(|n| k.extent(n));
    // Neighbouring blocks share rows of the first operand.
    let split = k.divisors(&[batch, cut.parts, tiles[0], tiles[1]].map(|n| n as usize));
    k.blocks(blocks, |at| {
        let place = unflatten(at, &split);
        let [of_batch, part] = [place[0], place[1]];
        let starts = [place[2] * tile[0], place[3] * tile[1]];
        let zero = k.int(0, ty);
        let zero = if planes == 2 { Number::Complex(zero, zero) } else { Number::Real(zero) };
        let sums: Vec<NumberVar<'_>> = (0..cut.unit.sums()).map(|_| k.number_var(zero)).collect();
        let loaders = [0, 1].map(|which: usize| {
            let (source, places) = &sources[which];
            let slice = Slice {
                source: *source,
                places: &**places,
                view: views[which],
                batch: of_batch,
                first: starts[which],
                size: limits[which],
                depth,
            };
            Loader::new(&k, slice, thread, tile[which], &cut, lay[which])
        });
        let fetch = |step| [0, 1].map(|which: usize| loaders[which].fetch(step));
        let share = |held: [_; 2], copy| {
            for which in 0..2 {
                loaders[which].share(p, &held[which], &shared[which], copy);
            }
        };
        let first = part * steps;
        let last = first + steps;
        k.barrier();
        if cut.ahead {
            share(fetch(first), None);
            k.barrier();
        }
        k.range(first, last, 1, |step| {
            if cut.ahead {
                // One copy is multiplied while the other is prefetched.
                let this = (step - first).convert(Ty::U32) & 1;
                let other = this ^ 1;
                let held = fetch(step + 1);
                hand.multiply(&k, cut.depth, &slices, Some(this), &sums);
                share(held, Some(other));
            } else {
                share(fetch(step), None);
                k.barrier();
                hand.multiply(&k, cut.depth, &slices, None, &sums);
            }
            k.barrier();
        });
        store.write(&hand, &sums, [of_batch, part], starts);
    });
    drop(sources);
    program.launches.push(k.launch_blocks(blocks)?);
    if cut.parts > 1 {
        let scratch = program.scratch.len() - 1;
        program.launches.push(add_parts(p, cut.parts, scratch, segment, target)?);
    }
    Ok(())
}
