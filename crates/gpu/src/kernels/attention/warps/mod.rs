//! Attention on matrix units, whose scores never leave registers.
//!
//! A warp has whole rows of a tile of scores. The sums of one product lie in its threads as the factors of
//! another do, so weights are multiplied where they are; only operands come through shared memory, copied
//! a tile ahead. T. Dao, *FlashAttention-2*, 2023, is where this cut is from. The gradient differs: it goes
//! twice through the scores, once for queries and once for keys, so that no sum waits on the order of
//! blocks. Sizes of heads are part of the text, rounded up to 16; all others are arguments.

mod backward;
mod forward;

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::AttentionMaskKind;
use cupola_core::prim::composite::attention::{AttentionSizes, Scores};

pub use self::backward::backward;
pub use self::forward::forward;
use super::{Operand, Words};
use crate::ir::{Buf, Factors, Shared, Target, Ty, Val, Var};
use crate::kernels::gemm::Unit;
use crate::kernels::view::side_by_side;
use crate::kernels::{BufferRef, Draft};

/// Warps of a block, and its threads.
const WARPS: u32 = 4;
const BLOCK: u32 = 32 * WARPS;
/// Features of a head, at most: more sums would not stay in registers.
const MOST_FEATURES: usize = 128;
/// log₂ e: weights are powers of 2.
const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// Whether these kernels take the operands `read` of a segment.
pub fn takes(segment: &Segment, s: &AttentionSizes, read: &[usize], target: &Target) -> bool {
    let dtype = segment.inputs[0].aval.dtype;
    let together = together(dtype);
    let lies = |&n: &usize| side_by_side(&segment.inputs[n], 3, together) == together;
    let features = s.features.max(s.values);
    // Of a gradient four tiles of heads, and as many parts of such, are shared.
    let room = if dtype == DType::F32 && features > 64 { 112 << 10 } else { 96 << 10 };
    Unit::rounds(dtype, DType::F32, target)
        && target.copies
        && target.vector_bytes >= 16
        && target.shared_bytes >= room
        && features <= MOST_FEATURES
        && s.heads / s.groups * s.queries > 16
        && read.iter().all(lies)
}

/// Neighbours that are copied at once.
fn together(dtype: DType) -> u32 {
    (16 / dtype.size()) as u32
}

/// What a block goes through at a time, and how many times 16 rows a warp may have, for heads of so many
/// features and values.
fn cut(dtype: DType, s: &AttentionSizes) -> (u32, u32) {
    let is_small = padded(s.features.max(s.values)) <= 64;
    let wide = if is_small { 64 } else { 32 };
    let wide = if dtype == DType::F32 { wide / 2 } else { wide };
    (wide, if is_small { 2 } else { 1 })
}

/// Rows of an operand in shared memory, once or twice.
#[derive(Clone, Copy)]
struct Tile {
    array: Shared,
    rows: u32,
    /// Elements of a row, and those that are there.
    columns: u32,
    filled: u32,
    /// Elements of 16 bytes.
    together: u32,
}

impl Tile {
    fn pitch(&self) -> u32 {
        pitch(self.columns, self.together)
    }

    /// Words from a copy to the next.
    fn len(&self) -> u32 {
        self.rows * self.pitch()
    }
}

/// Words from a row to the next: what a warp reads of eight that follow each other lies in other banks.
fn pitch(columns: u32, together: u32) -> u32 {
    columns * 4 / together + 32 / together
}

/// Elements that a row has in shared memory.
fn padded(columns: usize) -> u32 {
    (columns as u32).next_multiple_of(16)
}

/// A kernel that is being written.
struct Warps<'k> {
    k: &'k Draft,
    factors: Factors,
    /// Elements of 16 bytes.
    together: u32,
    /// 16 rows each, so many of which a warp has; and what it goes through at a time.
    high: u32,
    wide: u32,
    thread: Val<'k>,
    /// The first row of the warp, and the thread's place in it: g and t.
    first: Val<'k>,
    g: Val<'k>,
    t: Val<'k>,
    sizes: Words<'k>,
    mask: AttentionMaskKind,
    scale: Val<'k>,
    /// What makes a product a score to the base of 2.
    factor: Val<'k>,
}

/// A row of a thread.
#[derive(Clone, Copy)]
struct Row<'k> {
    /// Its number in the block.
    number: Val<'k>,
    /// Its query, and where its mask starts.
    query: Val<'k>,
    mask: Option<Val<'k>>,
}

impl<'k> Warps<'k> {
    fn new(
        k: &'k Draft,
        [high, wide]: [u32; 2],
        scores: &Scores,
        sizes: Words<'k>,
        segment: &Segment,
        read: &[usize],
    ) -> Self {
        let dtype = segment.inputs[0].aval.dtype;
        let factors = match dtype {
            DType::F16 => Factors::F16,
            DType::BF16 => Factors::Bf16,
            _ => Factors::Tf32,
        };
        let together = together(dtype);
        read.iter().for_each(|&n| k.assume(BufferRef::Input(n), together));
        k.at_once(2);
        let thread = k.thread();
        let (warp, lane) = (thread / 32, thread % 32);
        let scale = k.word((scores.scale.to_f64() as f32).to_bits()).bits(Ty::F32);
        Warps {
            k,
            factors,
            together,
            high,
            wide,
            thread,
            first: warp * (16 * high),
            g: lane / 4,
            t: lane % 4,
            sizes,
            mask: scores.mask,
            scale,
            factor: scale * LOG2_E,
        }
    }

    /// Rows of a block.
    fn tall(&self) -> u32 {
        WARPS * 16 * self.high
    }

    /// Shared memory for rows of `columns` elements.
    fn tile(&self, rows: u32, columns: usize, copies: u32) -> Tile {
        let (filled, columns) = (columns as u32, padded(columns));
        let words = rows * pitch(columns, self.together) * copies;
        let ty = if self.factors == Factors::Tf32 { Ty::F32 } else { Ty::U32 };
        let array = self.k.shared(ty, words);
        Tile { array, rows, columns, filled, together: self.together }
    }

    /// Makes what rows of a tile have beyond their elements zeros: they are multiplied, too.
    fn clear(&self, tiles: &[(Tile, u32)]) {
        let k = self.k;
        for &(tile, copies) in tiles {
            if tile.filled == tile.columns {
                continue;
            }
            k.range(self.thread, tile.len() * copies, BLOCK, |at| {
                tile.array.store(at, k.int(0, tile.array.ty));
            });
        }
    }

    /// Starts to copy a tile, `ahead` words behind its start, from rows that begin at `place`.
    fn fetch(&self, tile: &Tile, ahead: Val<'k>, buf: Buf, place: impl Fn(Val<'k>) -> Val<'k>) {
        let k = self.k;
        let chunks = tile.columns / self.together;
        let count = tile.rows * chunks;
        for i in 0..count.div_ceil(BLOCK) {
            let number = self.thread + i * BLOCK;
            let (row, chunk) = (number / chunks, number % chunks);
            let is_last = (i + 1) * BLOCK > count;
            let is_there = match (is_last, tile.filled < tile.columns) {
                (false, false) => None,
                (true, false) => Some(number.lt(count)),
                (false, true) => Some(chunk.lt(tile.filled / self.together)),
                (true, true) => Some(number.lt(count) & chunk.lt(tile.filled / self.together)),
            };
            k.when_any(is_there, || {
                let to = ahead + row * tile.pitch() + chunk * 4;
                let from = place(k.as_index(row)) + k.as_index(chunk) * self.together;
                k.copy(tile.array, to, buf, from);
            });
        }
    }

    /// How many of what is summed a product takes.
    fn depth(&self) -> u32 {
        self.together * 2
    }

    /// Where a thread's part of the factors starts in a tile: of rows that are multiplied by others.
    fn along(&self, tile: &Tile) -> Val<'k> {
        let lane = self.thread % 32;
        match self.factors {
            Factors::Tf32 => self.g * tile.pitch() + self.t * 2,
            Factors::F16 | Factors::Bf16 => lane % 16 * tile.pitch() + lane / 16 * 4,
        }
    }

    /// The same of the others.
    fn others(&self, tile: &Tile) -> Val<'k> {
        let lane = self.thread % 32;
        match self.factors {
            Factors::Tf32 => self.along(tile),
            Factors::F16 | Factors::Bf16 => {
                (lane % 8 + lane / 16 * 8) * tile.pitch() + lane / 8 % 2 * 4
            }
        }
    }

    /// The same of rows whose columns are multiplied.
    fn across_rows(&self, tile: &Tile) -> Val<'k> {
        match self.factors {
            Factors::Tf32 => self.t * 2 * tile.pitch() + self.g,
            Factors::F16 | Factors::Bf16 => self.along(tile),
        }
    }

    /// The factors of 16 rows from `at` on.
    fn first(&self, tile: &Tile, at: Val<'k>) -> [Val<'k>; 4] {
        if self.factors != Factors::Tf32 {
            return tile.array.load_matrices(at, false);
        }
        // The order of the depths within a product is free: a thread takes neighbours.
        let [upper, lower] = [0, 8].map(|row| tile.array.load_vector(at + row * tile.pitch(), 2));
        [upper[0], lower[0], upper[1], lower[1]].map(Val::tf32)
    }

    /// The factors of two times 8 others from `at` on.
    fn second(&self, tile: &Tile, at: Val<'k>) -> [Val<'k>; 4] {
        if self.factors != Factors::Tf32 {
            return tile.array.load_matrices(at, false);
        }
        let [one, two] = [0, 8].map(|row| tile.array.load_vector(at + row * tile.pitch(), 2));
        [one[0], one[1], two[0], two[1]].map(Val::tf32)
    }

    /// The factors of two times 8 columns from `at` on.
    fn columns_of(&self, tile: &Tile, at: Val<'k>) -> [Val<'k>; 4] {
        if self.factors != Factors::Tf32 {
            return tile.array.load_matrices(at, true);
        }
        let next = at + tile.pitch();
        [at, next, at + 8, next + 8].map(|at| tile.array.load(at).tf32())
    }

    /// Zeros to sum to, for so many columns.
    fn zeros(&self, columns: u32) -> Vec<Var<'k>> {
        let zero = self.k.f32(0.0);
        (0..self.high * columns / 2).map(|_| self.k.var(zero)).collect()
    }

    /// The four sums of 16 rows and 8 columns.
    fn four(&self, sums: &[Var<'k>], [i, j]: [u32; 2]) -> [Var<'k>; 4] {
        let columns = sums.len() as u32 / (4 * self.high);
        let at = ((i * columns + j) * 4) as usize;
        [sums[at], sums[at + 1], sums[at + 2], sums[at + 3]]
    }

    /// The products of the warp's rows of one tile with all rows of another, `ahead` words behind its start.
    fn agree(&self, rows: &Tile, others: &Tile, ahead: Val<'k>) -> Vec<Var<'k>> {
        let sums = self.zeros(self.wide);
        let own = self.along(rows) + self.first * rows.pitch();
        let other = self.others(others) + ahead;
        // 8 words, whatever lies in them.
        for step in 0..rows.columns / self.depth() {
            let rows: Vec<[Val<'k>; 4]> = (0..self.high)
                .map(|i| self.first(rows, own + (i * 16 * rows.pitch() + step * 8)))
                .collect();
            for j in 0..self.wide / 16 {
                let both = self.second(others, other + (j * 16 * others.pitch() + step * 8));
                self.multiply(&sums, &rows, both, j);
            }
        }
        sums
    }

    /// Adds the products of weights with the columns of the rows that they weigh.
    fn weigh(&self, sums: &[Var<'k>], weights: &Weights<'k>, tile: &Tile, ahead: Val<'k>) {
        let own = self.across_rows(tile) + ahead;
        for (step, rows) in (0..).zip(&weights.steps) {
            for j in 0..tile.columns / 16 {
                let right = j * 64 / self.together;
                let at = own + (step * self.depth() * tile.pitch() + right);
                self.multiply(sums, rows, self.columns_of(tile, at), j);
            }
        }
    }

    /// Adds the products of rows with 16 columns, whose number is `j`.
    fn multiply(&self, sums: &[Var<'k>], rows: &[[Val<'k>; 4]], columns: [Val<'k>; 4], j: u32) {
        for (i, row) in (0..).zip(rows) {
            for half in 0..2 {
                let pair = &columns[half * 2..half * 2 + 2];
                let sums = self.four(sums, [i, j * 2 + half as u32]);
                self.k.matrix(self.factors, sums, row, pair);
            }
        }
    }

    /// Scores or slopes, by the thread's rows and columns, as factors.
    fn weights(&self, value: impl Fn(usize, usize) -> Val<'k>) -> Weights<'k> {
        // Where a thread has its sums is where it has its factors, two to a word or in their order.
        let part = |row, column: usize| match self.factors {
            Factors::Tf32 => value(row, column).tf32(),
            _ => value(row, column * 2).pair(value(row, column * 2 + 1), self.factors),
        };
        let steps = (0..(self.wide / self.depth()) as usize).map(|step| {
            let column = step * 2;
            let of = |row| {
                [
                    part(row, column),
                    part(row + 1, column),
                    part(row, column + 1),
                    part(row + 1, column + 1),
                ]
            };
            (0..self.high as usize).map(|i| of(i * 2)).collect()
        });
        Weights { steps: steps.collect() }
    }

    /// The thread's rows in the block: two for every 16.
    fn rows(&self) -> Vec<Val<'k>> {
        let first = self.first + self.g;
        (0..self.high * 2).map(|i| first + i * 8).collect()
    }

    /// The thread's columns of so many.
    fn columns(&self, count: u32) -> Vec<Val<'k>> {
        let first = self.t * 2;
        (0..count / 4).map(|j| first + (j / 2 * 8 + j % 2)).collect()
    }

    /// The thread's sum of its row `row` and its column `column`.
    fn sum(&self, sums: &[Var<'k>], row: usize, column: usize) -> Var<'k> {
        let place = [row as u32 / 2, column as u32 / 2];
        self.four(sums, place)[row % 2 * 2 + column % 2]
    }

    /// What the four threads of a row have, joined: each of them gets it.
    fn across(&self, own: Val<'k>, join: impl Fn(Val<'k>, Val<'k>) -> Val<'k>) -> Val<'k> {
        let own = join(own, own.shuffle_xor(1));
        join(own, own.shuffle_xor(2))
    }

    /// Calls `each` for tiles from `start` on to before `stop`, with the copies in which it is and the one
    /// in which the next one will be; `fetch` starts to copy one.
    fn ahead(
        &self,
        [start, stop]: [Val<'k>; 2],
        fetch: impl Fn(Val<'k>, Val<'k>),
        each: impl FnOnce(Val<'k>, Val<'k>),
    ) {
        let k = self.k;
        k.when(start.lt(stop), || fetch(start, k.u32(0)));
        k.end_copies();
        k.range(start, stop, self.wide, |at| {
            let this = ((at - start) / self.wide).convert(Ty::U32) & 1;
            // What was copied is there for all, and what it takes the place of was read by all.
            k.await_copies(0);
            k.barrier();
            let next = at + self.wide;
            k.when(next.lt(stop), || fetch(next, this ^ 1));
            k.end_copies();
            each(at, this);
        });
        k.await_copies(0);
    }

    /// The mask's part in a score, to the base of 2, of which the product's is `score`.
    fn masked(
        &self,
        score: Val<'k>,
        row: &Row<'k>,
        key: Val<'k>,
        mask: Option<Operand<'k>>,
    ) -> Val<'k> {
        let (k, s) = (self.k, &self.sizes);
        match (self.mask, row.mask, mask) {
            (AttentionMaskKind::Causal, ..) => {
                // Without a difference that could be negative.
                (key + s.queries).le(row.query + s.keys).select(score, f32::MIN)
            }
            (AttentionMaskKind::Array, Some(start), Some(mask)) => {
                // Past the end nobody looks at what comes out.
                let key = key.lt(s.keys).select(key, k.index(0));
                let given = mask.view.buf.load(start + key * mask.strides[3]);
                if given.ty == Ty::Bool {
                    return given.select(score, f32::MIN);
                }
                // The lowest numbers stay what they are: others than −∞.
                let part = given * LOG2_E;
                let is_low = part.eq(f32::NEG_INFINITY) & given.ne(f32::NEG_INFINITY);
                score + is_low.select(f32::MIN, part)
            }
            (AttentionMaskKind::None | AttentionMaskKind::Array, ..) => score,
        }
    }

    /// Whether a score of these keys could be masked for one of the rows of which `from` is the first query.
    fn is_partial(&self, key: Val<'k>, count: u32, from: Val<'k>) -> Val<'k> {
        let s = &self.sizes;
        match self.mask {
            AttentionMaskKind::None => (key + count).gt(s.keys),
            AttentionMaskKind::Causal => (key + count + s.queries).gt(from + s.keys + 1),
            AttentionMaskKind::Array => self.k.bool(true),
        }
    }

    /// The row of a group, and its head and query.
    fn row(&self, group: Val<'k>, number: Val<'k>) -> [Val<'k>; 2] {
        let s = &self.sizes;
        let number = number.lt(s.rows).select(number, s.rows - 1);
        [group * s.heads + number / s.queries, number % s.queries]
    }

    /// The thread's rows from `first` on, of which the mask is asked.
    fn asked(
        &self,
        [batch, group, first]: [Val<'k>; 3],
        mask: Option<Operand<'k>>,
    ) -> Vec<Row<'k>> {
        let of = |number: Val<'k>| {
            let [head, query] = self.row(group, first + self.k.as_index(number));
            let mask = mask.map(|Operand { view, strides }| {
                view.offset + batch * strides[0] + head * strides[1] + query * strides[2]
            });
            Row { number, query, mask }
        };
        self.rows().into_iter().map(of).collect()
    }

    /// Starts to copy a block's own rows.
    fn fetch_rows(&self, tile: &Tile, operand: &Operand<'k>, [batch, group, first]: [Val<'k>; 3]) {
        let Operand { view, strides } = *operand;
        self.fetch(tile, self.k.u32(0), view.buf, |row| {
            let [head, query] = self.row(group, first + row);
            view.offset + batch * strides[0] + head * strides[1] + query * strides[2]
        });
    }

    /// Starts to copy what follows each other along the third axis: of `count`, from `first` on.
    fn fetch_run(
        &self,
        tile: &Tile,
        copy: Val<'k>,
        operand: &Operand<'k>,
        [batch, head]: [Val<'k>; 2],
        [first, count]: [Val<'k>; 2],
    ) {
        let Operand { view, strides } = *operand;
        let start = view.offset + batch * strides[0] + head * strides[1];
        self.fetch(tile, copy * tile.len(), view.buf, |row| {
            let at = first + row;
            start + at.lt(count).select(at, count - 1) * strides[2]
        });
    }
}

/// Scores or slopes of a warp, by steps of what they weigh, as factors of a product.
struct Weights<'k> {
    steps: Vec<Vec<[Val<'k>; 4]>>,
}
