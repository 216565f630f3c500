//! Products in tiles: the one kernel behind matrix products and convolutions.
//!
//! A block computes a tile of the result. Its threads bring a slice of both operands into shared
//! memory, each thread then multiplies a small square of it, and so on along the summed axis. What
//! an element of an operand is, and where a result goes, the caller says. Where the tiles are too
//! few to fill the device the sums are cut into parts, which a second launch adds.

use cupola_core::DType;
use cupola_core::backend::Segment;

use super::{Draft, Missing, Place, Program};
use crate::ir::{Access, Build, Number, Shared, Target, Ty, Val, Var};

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

/// How a product is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Rows and columns of a thread.
    thread: [u32; 2],
    parts: u64,
    steps: u64,
}

impl Cut {
    fn of(sizes: &Sizes, target: &Target) -> Cut {
        let fit = |size: u64, most: u32| {
            let needed = size.div_ceil(u64::from(SIDE)).next_power_of_two();
            needed.clamp(1, u64::from(most)) as u32
        };
        let tiles = |size: u64, n: u32| size.div_ceil(u64::from(n * SIDE));
        let blocks_of = |thread: [u32; 2]| {
            sizes.batch * tiles(sizes.rows, thread[0]) * tiles(sizes.columns, thread[1])
        };
        let wanted = u64::from(target.threads / BLOCK).max(1);
        // Large squares do more with what they load, if there are enough of them.
        let large = [fit(sizes.rows, 8), fit(sizes.columns, 8)];
        let thread = match blocks_of(large) >= (wanted / 4).max(64) {
            true => large,
            false => [fit(sizes.rows, 4), fit(sizes.columns, 4)],
        };
        let blocks = blocks_of(thread);
        let steps = sizes.depth.div_ceil(u64::from(DEPTH)).max(1);
        let parts = (wanted / blocks.max(1)).clamp(1, steps.div_ceil(8)).min(256);
        // Every part has the same number of steps, so the last may have less to do.
        let steps = steps.div_ceil(parts);
        Cut { thread, parts, steps }
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
    let cut = Cut::of(&p.sizes, target);
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
    let tile = [cut.thread[0] * SIDE, cut.thread[1] * SIDE];
    let tiles = [rows.div_ceil(u64::from(tile[0])), columns.div_ceil(u64::from(tile[1]))];
    let blocks = batch * cut.parts * tiles[0] * tiles[1];
    let ty = Ty::of(p.accumulate);
    let planes = if p.accumulate == DType::C64 { 2 } else { 1 };
    // A row more than the tile keeps neighbours along the depth in different banks.
    let shared = |d: &mut Draft<'_>, side: u32| -> Vec<Shared> {
        (0..planes).map(|_| d.build.shared(ty, (side + 1) * DEPTH)).collect()
    };
    let (shared_a, shared_b) = (shared(&mut draft, tile[0]), shared(&mut draft, tile[1]));
    let index = draft.index;
    let bl = &mut draft.build;
    let (thread, block, grid) = (bl.thread(), bl.block_x(), bl.blocks());
    let side = bl.u32(SIDE);
    let (ty_row, ty_col) = (bl.div(thread, side), bl.rem(thread, side));
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
        let sums: Vec<Vec<Var>> = (0..cut.thread[0] * cut.thread[1])
            .map(|_| (0..planes).map(|_| draft.build.var(zero)).collect())
            .collect();
        let load_a = Loader::new(draft, p.first, thread, of_batch, first_row, tile[0], rows);
        let load_b = Loader::new(draft, p.second, thread, of_batch, first_col, tile[1], columns);
        let steps = draft.index(cut.steps as i64);
        let first_step = draft.build.mul(part, steps);
        let last_step = draft.build.add(first_step, steps);
        let one = draft.index(1);
        draft.range(first_step, last_step, one, |draft, step| {
            let depth = draft.index(i64::from(DEPTH));
            let start = draft.build.mul(step, depth);
            draft.build.barrier();
            load_a.run(draft, a, p, start, &shared_a);
            load_b.run(draft, b, p, start, &shared_b);
            draft.build.barrier();
            let bl = &mut draft.build;
            bl.count(DEPTH, |bl, k| {
                multiply(bl, k, &cut, [&shared_a, &shared_b], [ty_row, ty_col], &sums)
            });
        });
        store(
            draft,
            p,
            &cut,
            out,
            [of_batch, part],
            [first_row, first_col],
            [ty_row, ty_col],
            &sums,
        );
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
}

impl<'a> Loader<'a> {
    fn new(
        draft: &mut Draft<'_>,
        source: &'a dyn Source,
        thread: Val,
        batch: Val,
        first: Val,
        side: u32,
        size: u64,
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
        Loader { source, outer, inner, side }
    }

    fn run(
        &self,
        draft: &mut Draft<'_>,
        view: super::view::View,
        p: &Product<'_>,
        start: Val,
        shared: &[Shared],
    ) {
        for &depth in &self.inner {
            let wide = draft.build.convert(depth, draft.index);
            let at = draft.build.add(start, wide);
            let limit = draft.index(p.sizes.depth as i64);
            let within = draft.build.lt(at, limit);
            let zero = draft.index(0);
            let safe = draft.build.select(within, at, zero);
            let inner = self.source.inner(draft, safe);
            for (row, outer, valid) in &self.outer {
                let (place, there) = self.source.place(draft, outer, &inner);
                let mut holds = draft.build.and(within, *valid);
                if let Some(there) = there {
                    holds = draft.build.and(holds, there);
                }
                let b = &mut draft.build;
                let pitch = b.u32(self.side + 1);
                let to = b.mul(depth, pitch);
                let to = b.add(to, *row);
                let nothing = b.int(0, Ty::of(p.accumulate));
                let values: Vec<Var> = shared.iter().map(|_| b.var(nothing)).collect();
                b.open_when();
                let offset = b.add(view.offset, place);
                let element = b.load_number(view.buf, offset);
                let element = b.cast(element, p.operand, p.accumulate);
                values.iter().zip(element.parts()).for_each(|(&var, v)| b.set(var, v));
                b.close_when(holds);
                for (&s, &var) in shared.iter().zip(&values) {
                    let v = b.get(var);
                    b.store_shared(s, to, v);
                }
            }
        }
    }
}

/// Multiplies a thread's rows and columns at one depth.
fn multiply(
    b: &mut Build<'_>,
    k: Val,
    cut: &Cut,
    shared: [&[Shared]; 2],
    at: [Val; 2],
    sums: &[Vec<Var>],
) {
    let mut operands: [Vec<Vec<Val>>; 2] = [Vec::new(), Vec::new()];
    for which in 0..2 {
        let pitch = b.u32(cut.thread[which] * SIDE + 1);
        let start = b.mul(k, pitch);
        let start = b.add(start, at[which]);
        for i in 0..cut.thread[which] {
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
                    for (to, a, c, sign) in [
                        (re, x[0], y[0], 1),
                        (re, x[1], y[1], -1),
                        (im, x[0], y[1], 1),
                        (im, x[1], y[0], 1),
                    ] {
                        let product = b.mul(a, c);
                        let old = b.get(to);
                        let new = if sign > 0 { b.add(old, product) } else { b.sub(old, product) };
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

fn number(b: &mut Build<'_>, vars: &[Var]) -> Number {
    let re = b.get(vars[0]);
    match vars.get(1) {
        Some(&im) => Number::Complex(re, b.get(im)),
        None => Number::Real(re),
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
    at: [Val; 2],
    sums: &[Vec<Var>],
) {
    let dtype = draft.build.dtype(out.buf);
    for r in 0..cut.thread[0] {
        for c in 0..cut.thread[1] {
            let place = |draft: &mut Draft<'_>, own: Val, i: u32, first: Val| {
                let away = draft.build.u32(i * SIDE);
                let own = draft.build.add(own, away);
                let own = draft.build.convert(own, draft.index);
                draft.build.add(first, own)
            };
            let row = place(draft, at[0], r, first_row);
            let column = place(draft, at[1], c, first_col);
            let (rows, columns) =
                (draft.index(p.sizes.rows as i64), draft.index(p.sizes.columns as i64));
            let (in_rows, in_columns) =
                (draft.build.lt(row, rows), draft.build.lt(column, columns));
            let valid = draft.build.and(in_rows, in_columns);
            draft.build.open_when();
            let sum = number(&mut draft.build, &sums[(r * cut.thread[1] + c) as usize]);
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
        let sum = number(&mut draft.build, &sum);
        let place = draft.unflatten(at, &[batch as usize, rows as usize, columns as usize]);
        let to = (p.result)(draft, place[0], place[1], place[2]);
        let to = draft.build.add(out.offset, to);
        let value = finished(&mut draft.build, sum, p.accumulate, dtype);
        draft.build.store_number(out.buf, to, value);
    });
    Ok(draft.launch_over(total))
}
