//! Products in tiles: the one kernel behind matrix products and convolutions.
//!
//! A block computes a tile of the result. Its threads bring a slice of both operands into shared
//! memory, each thread then multiplies a small square of it, and so on along the summed axis. What
//! an element of an operand is, and where a result goes, the caller says. Where the tiles are too
//! few to fill the device the sums are cut into parts, which a second launch adds.

use cupola_core::DType;
use cupola_core::backend::Segment;

use super::{Draft, Missing, Place, Program};
use crate::ir::{Access, Build, Number, Shared, Target, Ty, Un, Val, Var};

/// Threads in a block: 16 × 16.
const BLOCK: u32 = 256;
const SIDE: u32 = 16;
/// How much of the summed axis is shared at a time.
const DEPTH: u32 = 16;

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
    /// What a row (of the second operand: a column) of a batch needs, and whether it is there.
    fn outer(&self, draft: &mut Draft<'_>, batch: Val, index: Val) -> Vec<Val>;
    /// What an index of the summed axis needs.
    fn inner(&self, draft: &mut Draft<'_>, depth: Val) -> Vec<Val>;
    /// Where the element is, and whether it is there (else it is 0).
    fn place(&self, draft: &mut Draft<'_>, outer: &[Val], inner: &[Val]) -> (Val, Option<Val>);
    /// Whether neighbouring threads should read along the summed axis.
    fn along_depth(&self) -> bool;
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
    /// Where the result at a batch, row and column goes.
    pub result: &'a dyn Fn(&mut Draft<'_>, Val, Val, Val) -> Val,
}

/// What multiplies the shared slices.
#[derive(Clone, Copy, Debug)]
enum Unit {
    /// Every thread has this many rows and columns, 16 apart.
    Threads([u32; 2]),
    /// Groups of 32 threads have matrices of 16×8: how many groups there are along the rows and
    /// columns of the tile, and how many matrices along those of a group.
    Matrices { groups: [u32; 2], matrices: [u32; 2] },
}

/// How a product is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    unit: Unit,
    parts: u64,
    steps: u64,
}

impl Unit {
    /// Rows and columns of a block's tile.
    fn tile(&self) -> [u32; 2] {
        match self {
            Unit::Threads([r, c]) => [r * SIDE, c * SIDE],
            Unit::Matrices { groups: [gr, gc], matrices: [mr, mc] } => [gr * mr * 16, gc * mc * 8],
        }
    }

    /// Elements between the depths of a shared slice, so that threads meet different banks.
    fn pitch(&self, side: u32) -> u32 {
        match self {
            Unit::Threads(_) => side + 1,
            Unit::Matrices { .. } => side + 8,
        }
    }

    /// How many sums a thread has.
    fn sums(&self) -> u32 {
        match self {
            Unit::Threads([r, c]) => r * c,
            Unit::Matrices { matrices: [r, c], .. } => r * c * 4,
        }
    }

    fn of(p: &Product<'_>, target: &Target) -> Unit {
        let sizes = &p.sizes;
        let blocks_of = |unit: Unit| {
            let [rows, columns] = unit.tile();
            let tiles = |size: u64, n: u32| size.div_ceil(u64::from(n));
            sizes.batch * tiles(sizes.rows, rows) * tiles(sizes.columns, columns)
        };
        let enough = (u64::from(target.threads / BLOCK) / 4).max(64);
        // Products of halves lose nothing by the rounding.
        let rounds = match p.operand {
            DType::F32 => target.tf32,
            other => matches!(other, DType::F16 | DType::BF16),
        };
        if target.matrix && rounds && p.accumulate == DType::F32 {
            let large = Unit::Matrices { groups: [2, 4], matrices: [4, 4] };
            return match (sizes.rows, sizes.columns) {
                (_, 0..=32) => Unit::Matrices { groups: [4, 2], matrices: [2, 2] },
                (0..=64, _) => Unit::Matrices { groups: [2, 4], matrices: [2, 2] },
                (_, 65..) if blocks_of(large) >= enough => large,
                _ => Unit::Matrices { groups: [4, 2], matrices: [2, 4] },
            };
        }
        let fit = |size: u64, most: u32| {
            let needed = size.div_ceil(u64::from(SIDE)).next_power_of_two();
            needed.clamp(1, u64::from(most)) as u32
        };
        // Large squares do more with what they load, if there are enough of them.
        let large = Unit::Threads([fit(sizes.rows, 8), fit(sizes.columns, 8)]);
        match blocks_of(large) >= enough {
            true => large,
            false => Unit::Threads([fit(sizes.rows, 4), fit(sizes.columns, 4)]),
        }
    }
}

impl Cut {
    fn of(p: &Product<'_>, target: &Target) -> Cut {
        let unit = Unit::of(p, target);
        let [rows, columns] = unit.tile();
        let sizes = &p.sizes;
        let blocks = sizes.batch
            * sizes.rows.div_ceil(u64::from(rows))
            * sizes.columns.div_ceil(u64::from(columns));
        let wanted = u64::from(target.threads / BLOCK).max(1);
        let steps = sizes.depth.div_ceil(u64::from(DEPTH)).max(1);
        let parts = (wanted / blocks.max(1)).clamp(1, steps.div_ceil(8)).min(256);
        // Every part has the same number of steps, so the last may have less to do.
        let steps = steps.div_ceil(parts);
        Cut { unit, parts, steps }
    }
}

/// Adds the launches of a product.
pub fn product(
    program: &mut Program,
    p: &Product<'_>,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    super::check_dtype(p.accumulate, target)?;
    if p.sizes.depth == 0 {
        // There is no element of the operands that could be read.
        return sums_of_nothing(program, p, segment, target);
    }
    let cut = Cut::of(p, target);
    let mut draft = Draft::new(p.name, BLOCK, segment, target)?;
    let a = draft.view(Place::Input(0), p.operand, Access::Read)?;
    let b = draft.view(Place::Input(1), p.operand, Access::Read)?;
    let out_dtype = segment.outputs[0].aval.dtype;
    let Sizes { batch, rows, columns, .. } = p.sizes;
    let total = batch * rows * columns;
    let out = match cut.parts {
        1 => draft.view(Place::Output(0), out_dtype, Access::Write)?,
        parts => {
            program.scratch.push((total * parts) as usize * p.accumulate.size());
            let place = Place::Scratch(program.scratch.len() - 1);
            let buf = draft.bind(place, p.accumulate, Access::Write)?;
            super::view::View { buf, offset: draft.index(0) }
        }
    };
    let tile = cut.unit.tile();
    let tiles = [rows.div_ceil(u64::from(tile[0])), columns.div_ceil(u64::from(tile[1]))];
    let blocks = batch * cut.parts * tiles[0] * tiles[1];
    let ty = Ty::of(p.accumulate);
    let planes = if p.accumulate == DType::C64 { 2 } else { 1 };
    let shared = |d: &mut Draft<'_>, side: u32| -> Vec<Shared> {
        (0..planes).map(|_| d.build.shared(ty, cut.unit.pitch(side) * DEPTH)).collect()
    };
    let (shared_a, shared_b) = (shared(&mut draft, tile[0]), shared(&mut draft, tile[1]));
    let index = draft.index;
    let bl = &mut draft.build;
    let (thread, block, grid) = (bl.thread(), bl.block_x(), bl.blocks());
    let hand = Hand::new(bl, cut.unit, thread);
    let (block, grid) = (bl.convert(block, index), bl.convert(grid, index));
    let all = bl.int(blocks as i64, index);
    draft.range(block, all, grid, |draft, at| {
        // Neighbouring blocks share rows of the first operand.
        let split = [batch, cut.parts, tiles[0], tiles[1]].map(|n| n as usize);
        let place = draft.unflatten(at, &split);
        let [of_batch, part, tile_row, tile_col] = [place[0], place[1], place[2], place[3]];
        let (tr, tc) = (draft.index(i64::from(tile[0])), draft.index(i64::from(tile[1])));
        let (first_row, first_col) = (draft.build.mul(tile_row, tr), draft.build.mul(tile_col, tc));
        let zero = draft.build.int(0, ty);
        let sums: Vec<Vec<Var>> = (0..cut.unit.sums())
            .map(|_| (0..planes).map(|_| draft.build.var(zero)).collect())
            .collect();
        let load = |draft: &mut Draft<'_>, source, first, side, size| {
            Loader::new(draft, source, thread, of_batch, first, side, size, cut.unit)
        };
        let load_a = load(draft, p.first, first_row, tile[0], rows);
        let load_b = load(draft, p.second, first_col, tile[1], columns);
        let steps = draft.index(cut.steps as i64);
        let first_step = draft.build.mul(part, steps);
        let last_step = draft.build.add(first_step, steps);
        let one = draft.index(1);
        // What the next slice needs is on its way while this one is multiplied, where loads take
        // their time: on a processor it would only lengthen the way through the barriers.
        let ahead = target.threads > 1 << 12;
        let first = ahead.then(|| {
            [
                load_a.fetch(draft, a, p, first_step, None),
                load_b.fetch(draft, b, p, first_step, None),
            ]
        });
        draft.range(first_step, last_step, one, |draft, step| {
            draft.build.barrier();
            let held = first.clone().unwrap_or_else(|| {
                [load_a.fetch(draft, a, p, step, None), load_b.fetch(draft, b, p, step, None)]
            });
            load_a.share(&mut draft.build, p, &held[0], &shared_a);
            load_b.share(&mut draft.build, p, &held[1], &shared_b);
            draft.build.barrier();
            if ahead {
                let next = draft.build.add(step, one);
                load_a.fetch(draft, a, p, next, Some(&held[0]));
                load_b.fetch(draft, b, p, next, Some(&held[1]));
            }
            hand.multiply(&mut draft.build, [&shared_a, &shared_b], &sums);
        });
        store(draft, p, &cut, out, [of_batch, part], [first_row, first_col], &hand, &sums);
    });
    let grid = blocks.clamp(1, u64::from(target.max_blocks)) as u32;
    program.launches.push(draft.launch([grid, 1]));
    if cut.parts > 1 {
        let scratch = program.scratch.len() - 1;
        program.launches.push(add_parts(p, cut.parts, scratch, segment, target)?);
    }
    Ok(())
}

/// What a thread brings into shared memory: elements of a fixed few rows (or columns), or of a
/// fixed few depths.
struct Loader<'a> {
    source: &'a dyn Source,
    /// The thread's rows in the tile, what they need, and whether they are there.
    outer: Vec<(Val, Vec<Val>, Val)>,
    /// The thread's depths.
    inner: Vec<Val>,
    side: u32,
    unit: Unit,
}

impl<'a> Loader<'a> {
    #[allow(clippy::too_many_arguments)]
    fn new(
        draft: &mut Draft<'_>,
        source: &'a dyn Source,
        thread: Val,
        batch: Val,
        first: Val,
        side: u32,
        size: u64,
        unit: Unit,
    ) -> Self {
        let b = &mut draft.build;
        let per = side * DEPTH / BLOCK;
        // Along the depth: a thread has one depth and rows 16 apart; else one row, depths apart.
        let lanes = if source.along_depth() { DEPTH } else { side };
        let lanes_val = b.u32(lanes);
        let (slow, fast) = (b.div(thread, lanes_val), b.rem(thread, lanes_val));
        let (mut outer, mut inner) = (Vec::new(), Vec::new());
        let apart = BLOCK / lanes;
        let mut rows = Vec::new();
        for i in 0..per {
            let away = b.u32(i * apart);
            let there = b.add(slow, away);
            if source.along_depth() { rows.push(there) } else { inner.push(there) }
        }
        if source.along_depth() {
            inner.push(fast)
        } else {
            rows.push(fast)
        }
        for row in rows {
            let wide = draft.build.convert(row, draft.index);
            let at = draft.build.add(first, wide);
            let limit = draft.index(size as i64);
            let valid = draft.build.lt(at, limit);
            let zero = draft.index(0);
            let safe = draft.build.select(valid, at, zero);
            let needs = source.outer(draft, batch, safe);
            outer.push((row, needs, valid));
        }
        Loader { source, outer, inner, side, unit }
    }

    /// Loads the elements of a step into variables: new ones, or those of an earlier step. Nothing
    /// here branches or waits for a load, so that all are under way at once: what is not there is
    /// read at the operand's first element.
    fn fetch(
        &self,
        draft: &mut Draft<'_>,
        view: super::view::View,
        p: &Product<'_>,
        step: Val,
        into: Option<&Held>,
    ) -> Held {
        let depth = draft.index(i64::from(DEPTH));
        let start = draft.build.mul(step, depth);
        let mut held = Held::new();
        for &depth in &self.inner {
            let wide = draft.build.convert(depth, draft.index);
            let at = draft.build.add(start, wide);
            let limit = draft.index(p.sizes.depth as i64);
            let within = draft.build.lt(at, limit);
            let zero = draft.index(0);
            let safe = draft.build.select(within, at, zero);
            let inner = self.source.inner(draft, safe);
            for (_, outer, valid) in &self.outer {
                let (place, there) = self.source.place(draft, outer, &inner);
                let b = &mut draft.build;
                let mut holds = b.and(within, *valid);
                if let Some(there) = there {
                    holds = b.and(holds, there);
                }
                let place = b.select(holds, place, zero);
                let offset = b.add(view.offset, place);
                let element = b.load_number(view.buf, offset);
                let values = element.parts().chain([holds]);
                held.push(match into {
                    Some(known) => {
                        let vars = &known[held.len()];
                        vars.iter().zip(values).for_each(|(&var, v)| b.set(var, v));
                        vars.clone()
                    }
                    None => values.collect::<Vec<_>>().into_iter().map(|v| b.var(v)).collect(),
                });
            }
        }
        held
    }

    /// Puts what was loaded into shared memory, and 0 for what is not there.
    fn share(&self, b: &mut Build<'_>, p: &Product<'_>, held: &Held, shared: &[Shared]) {
        let mut held = held.iter();
        for &depth in &self.inner {
            for ((row, _, _), vars) in self.outer.iter().zip(held.by_ref()) {
                let element = b.get_number(&vars[..vars.len() - 1]);
                let holds = b.get(vars[vars.len() - 1]);
                let element = b.cast(element, p.operand, p.accumulate);
                let element = match (self.unit, p.operand) {
                    (Unit::Matrices { .. }, DType::F32) => {
                        Number::Real(b.un(Un::Tf32, element.real()))
                    }
                    _ => element,
                };
                let pitch = b.u32(self.unit.pitch(self.side));
                let to = b.mul(depth, pitch);
                let to = b.add(to, *row);
                let nothing = b.int(0, Ty::of(p.accumulate));
                for (&s, v) in shared.iter().zip(element.parts()) {
                    let v = b.select(holds, v, nothing);
                    b.store_shared(s, to, v);
                }
            }
        }
    }
}

/// What was loaded for each depth and row: the element's parts, and whether it is there.
type Held = Vec<Vec<Var>>;

/// Which part of the tile is a thread's.
enum Hand {
    /// Its first row and column.
    Threads([u32; 2], [Val; 2]),
    /// Where its group's matrices start, and its place in them: g and t.
    Matrices { unit: Unit, matrices: [u32; 2], start: [Val; 2], g: Val, t: Val },
}

impl Hand {
    fn new(b: &mut Build<'_>, unit: Unit, thread: Val) -> Hand {
        match unit {
            Unit::Threads(each) => {
                let side = b.u32(SIDE);
                Hand::Threads(each, [b.div(thread, side), b.rem(thread, side)])
            }
            Unit::Matrices { groups, matrices } => {
                let (lanes, four, across) = (b.u32(32), b.u32(4), b.u32(groups[1]));
                let (group, lane) = (b.div(thread, lanes), b.rem(thread, lanes));
                let (row, column) = (b.div(group, across), b.rem(group, across));
                let (rows, columns) = (b.u32(matrices[0] * 16), b.u32(matrices[1] * 8));
                let start = [b.mul(row, rows), b.mul(column, columns)];
                Hand::Matrices { unit, matrices, start, g: b.div(lane, four), t: b.rem(lane, four) }
            }
        }
    }

    /// Multiplies the shared slices.
    fn multiply(&self, b: &mut Build<'_>, shared: [&[Shared]; 2], sums: &[Vec<Var>]) {
        match self {
            Hand::Threads(each, at) => {
                b.count(DEPTH, |b, k| multiply_threads(b, k, *each, shared, *at, sums));
            }
            Hand::Matrices { unit, matrices, start, g, t } => (0..DEPTH / 8).for_each(|k| {
                let k = b.u32(k * 8);
                let first = b.add(k, *t);
                let four = b.u32(4);
                let second = b.add(first, four);
                let tile = unit.tile();
                // The element of a slice at one of the two depths and an own row or column.
                let load = |b: &mut Build<'_>, which: usize, depth: Val, away: u32| {
                    let pitch = b.u32(unit.pitch(tile[which]));
                    let away = b.u32(away);
                    let at = b.mul(depth, pitch);
                    let at = b.add(at, start[which]);
                    let at = b.add(at, *g);
                    let at = b.add(at, away);
                    b.load_shared(shared[which][0], at)
                };
                let rows: Vec<[Val; 4]> = (0..matrices[0])
                    .map(|i| {
                        [(first, 0), (first, 8), (second, 0), (second, 8)]
                            .map(|(depth, more)| load(b, 0, depth, i * 16 + more))
                    })
                    .collect();
                let columns: Vec<[Val; 2]> = (0..matrices[1])
                    .map(|j| [first, second].map(|depth| load(b, 1, depth, j * 8)))
                    .collect();
                for (i, row) in rows.iter().enumerate() {
                    for (j, column) in columns.iter().enumerate() {
                        let at = (i * columns.len() + j) * 4;
                        b.matrix([0, 1, 2, 3].map(|q| sums[at + q][0]), *row, *column);
                    }
                }
            }),
        }
    }

    /// The row and column in the tile of sum number `n`.
    fn place(&self, b: &mut Build<'_>, n: u32) -> [Val; 2] {
        match self {
            Hand::Threads(each, at) => {
                [(at[0], n / each[1]), (at[1], n % each[1])].map(|(at, i)| {
                    let away = b.u32(i * SIDE);
                    b.add(at, away)
                })
            }
            Hand::Matrices { matrices, start, g, t, .. } => {
                let (matrix, q) = (n / 4, n % 4);
                let (i, j) = (matrix / matrices[1], matrix % matrices[1]);
                let row = b.add(start[0], *g);
                let away = b.u32(i * 16 + q / 2 * 8);
                let row = b.add(row, away);
                let (two, away) = (b.u32(2), b.u32(j * 8 + q % 2));
                let column = b.mul(*t, two);
                let column = b.add(column, start[1]);
                [row, b.add(column, away)]
            }
        }
    }
}

/// Multiplies a thread's rows and columns at one depth.
fn multiply_threads(
    b: &mut Build<'_>,
    k: Val,
    each: [u32; 2],
    shared: [&[Shared]; 2],
    at: [Val; 2],
    sums: &[Vec<Var>],
) {
    let mut operands: [Vec<Vec<Val>>; 2] = [Vec::new(), Vec::new()];
    for which in 0..2 {
        let pitch = b.u32(Unit::Threads(each).pitch(each[which] * SIDE));
        let start = b.mul(k, pitch);
        let start = b.add(start, at[which]);
        for i in 0..each[which] {
            // Rows 16 apart, so that neighbouring threads read neighbouring elements.
            let away = b.u32(i * SIDE);
            let from = b.add(start, away);
            let parts = shared[which].iter().map(|&s| b.load_shared(s, from)).collect();
            operands[which].push(parts);
        }
    }
    for (r, x) in operands[0].iter().enumerate() {
        for (c, y) in operands[1].iter().enumerate() {
            let sum = &sums[r * operands[1].len() + c];
            match sum[..] {
                [re, im] => {
                    for (to, a, c, adds) in [
                        (re, x[0], y[0], true),
                        (re, x[1], y[1], false),
                        (im, x[0], y[1], true),
                        (im, x[1], y[0], true),
                    ] {
                        let product = b.mul(a, c);
                        let old = b.get(to);
                        let new = if adds { b.add(old, product) } else { b.sub(old, product) };
                        b.set(to, new);
                    }
                }
                _ => {
                    let old = b.get(sum[0]);
                    let new = match old.ty.is_float() {
                        true => b.fma(x[0], y[0], old),
                        false => {
                            let product = b.mul(x[0], y[0]);
                            b.add(old, product)
                        }
                    };
                    b.set(sum[0], new);
                }
            }
        }
    }
}

/// A sum as an element of the result.
fn finished(b: &mut Build<'_>, sum: Number, from: DType, to: DType) -> Number {
    // Sums of integers wrap in the width of the result.
    b.cast(sum, from, to)
}

#[allow(clippy::too_many_arguments)]
fn store(
    draft: &mut Draft<'_>,
    p: &Product<'_>,
    cut: &Cut,
    out: super::view::View,
    [batch, part]: [Val; 2],
    [first_row, first_col]: [Val; 2],
    hand: &Hand,
    sums: &[Vec<Var>],
) {
    let dtype = draft.build.dtype(out.buf);
    for (n, sum) in sums.iter().enumerate() {
        let [row, column] = hand.place(&mut draft.build, n as u32);
        let (row, column) =
            (draft.build.convert(row, draft.index), draft.build.convert(column, draft.index));
        let (row, column) = (draft.build.add(first_row, row), draft.build.add(first_col, column));
        let (rows, columns) =
            (draft.index(p.sizes.rows as i64), draft.index(p.sizes.columns as i64));
        let (in_rows, in_columns) = (draft.build.lt(row, rows), draft.build.lt(column, columns));
        let valid = draft.build.and(in_rows, in_columns);
        draft.build.open_when();
        let sum = draft.build.get_number(sum);
        let to = if cut.parts == 1 {
            let place = (p.result)(draft, batch, row, column);
            draft.build.add(out.offset, place)
        } else {
            let batches = draft.index(p.sizes.batch as i64);
            let to = draft.build.mul(part, batches);
            let to = draft.build.add(to, batch);
            let to = draft.build.mul(to, rows);
            let to = draft.build.add(to, row);
            let to = draft.build.mul(to, columns);
            draft.build.add(to, column)
        };
        let value = finished(&mut draft.build, sum, p.accumulate, dtype);
        draft.build.store_number(out.buf, to, value);
        draft.build.close_when(valid);
    }
}

/// Adds the launch that stores zeros.
fn sums_of_nothing(
    program: &mut Program,
    p: &Product<'_>,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let mut draft = Draft::new("zeros", BLOCK, segment, target)?;
    let dtype = segment.outputs[0].aval.dtype;
    let out = draft.view(Place::Output(0), dtype, Access::Write)?;
    let Sizes { batch, rows, columns, .. } = p.sizes;
    let total = batch * rows * columns;
    draft.each(total, |draft, at| {
        let place = draft.unflatten(at, &[batch as usize, rows as usize, columns as usize]);
        let to = (p.result)(draft, place[0], place[1], place[2]);
        let to = draft.build.add(out.offset, to);
        let zero = draft.build.number(0, dtype);
        draft.build.store_number(out.buf, to, zero);
    });
    program.launches.push(draft.launch_over(total));
    Ok(())
}

/// The launch that adds the parts of every sum.
fn add_parts(
    p: &Product<'_>,
    parts: u64,
    scratch: usize,
    segment: &Segment,
    target: &Target,
) -> Result<super::Launch, Missing> {
    let mut draft = Draft::new("add_parts", BLOCK, segment, target)?;
    let sums = draft.bind(Place::Scratch(scratch), p.accumulate, Access::Read)?;
    let dtype = segment.outputs[0].aval.dtype;
    let out = draft.view(Place::Output(0), dtype, Access::Write)?;
    let Sizes { batch, rows, columns, .. } = p.sizes;
    let total = batch * rows * columns;
    draft.each(total, |draft, at| {
        let zero = draft.build.number(0, p.accumulate);
        let sum: Vec<Var> = zero.parts().map(|v| draft.build.var(v)).collect();
        let (from, to, step) = (draft.index(0), draft.index(parts as i64), draft.index(1));
        draft.range(from, to, step, |draft, part| {
            let all = draft.index(total as i64);
            let b = &mut draft.build;
            let place = b.mul(part, all);
            let place = b.add(place, at);
            let more = b.load_number(sums, place);
            for (&var, v) in sum.iter().zip(more.parts()) {
                let old = b.get(var);
                let new = b.add(old, v);
                b.set(var, new);
            }
        });
        let sum = draft.build.get_number(&sum);
        let place = draft.unflatten(at, &[batch as usize, rows as usize, columns as usize]);
        let to = (p.result)(draft, place[0], place[1], place[2]);
        let to = draft.build.add(out.offset, to);
        let value = finished(&mut draft.build, sum, p.accumulate, dtype);
        draft.build.store_number(out.buf, to, value);
    });
    Ok(draft.launch_over(total))
}
