//! Attention and its gradient in tiles.
//!
//! The heads that share keys are only more queries to them: their rows lie behind each other. A block
//! has some rows and goes through the keys a tile at a time: products for the scores, weights in
//! shared memory, products with the values. The gradient computes the weights again, twice: once for the
//! queries, and once, with the parts of rows and keys exchanged, for keys and values. So no sum depends
//! on the order in which blocks come. Every size is an argument.
//!
//! `warps` has kernels for matrix units, which need no shared memory for scores, `few` one for few queries.

mod backward;
mod beside;
mod few;
mod forward;
mod operands;
mod warps;

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::composite::attention::{AttentionSizes, Scores};
use cupola_core::prim::{Attention, AttentionGrad, AttentionMaskKind};

pub use self::beside::{logarithms, ones};
use self::operands::{Operand, Places};
use super::gemm::{Hand, Lay, Order, Slices, Unit, plain_at};
use super::view::side_by_side;
use super::{BufferRef, Draft, Missing, Program};
use crate::ir::{Number, NumberVar, Shared, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;
/// Features of a head, at most.
const MOST_FEATURES: usize = 256;

/// Whether there are kernels for inputs of these avals, each of at most `binding` bytes.
pub fn claims(inputs: &[&cupola_core::Aval], binding: u64) -> bool {
    let (q, v) = (inputs[0], inputs[2]);
    matches!(q.dtype, DType::F16 | DType::BF16 | DType::F32)
        && q.shape[3].max(v.shape[3]) <= MOST_FEATURES
        && inputs[..3].iter().all(|aval| aval.shape.size() > 0)
        && inputs.iter().all(|aval| aval.bytes() as u64 <= binding)
}

/// Adds the launches of an attention.
pub fn forward(
    program: &mut Program,
    attention: &Attention,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let sizes = sizes(segment)?;
    if few::takes(segment, &sizes, target) {
        few::forward(program, attention, segment, target)
    } else if warps::takes(segment, &sizes, &[0, 1, 2], target) {
        warps::forward(program, attention, segment, target)
    } else {
        forward::forward(program, attention, segment, target)
    }
}

/// Adds the launches of a gradient.
pub fn backward(
    program: &mut Program,
    grad: &AttentionGrad,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let read = [0, 1, 2, segment.inputs.len() - 1];
    match warps::takes(segment, &sizes(segment)?, &read, target) {
        true => warps::backward(program, grad, segment, target),
        false => backward::backward(program, grad, segment, target),
    }
}

/// How a block works.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Rows of a block.
    tall: u32,
    /// What it goes through at a time.
    wide: u32,
    /// How much of a summed axis is in shared memory at a time.
    depth: u32,
    /// What multiplies for the scores.
    scores: Unit,
    /// What multiplies weights, for so many columns at a time.
    sums: Unit,
    /// Columns at a time.
    columns: u32,
    /// Whether factors are rounded for matrix units.
    cuts: bool,
}

impl Cut {
    /// The cut for so many rows, and sums of at most so many columns.
    fn of(dtype: DType, rows: usize, columns: usize, target: &Target) -> Cut {
        let narrow = columns <= 32;
        let columns = if narrow { 32 } else { 64 };
        let each = columns / 16;
        let matrices = |matrices| Unit::Matrices { groups: [4, 2], matrices };
        if Unit::rounds(dtype, DType::F32, target) && rows > 16 && target.shared_bytes >= 44 << 10 {
            let deep = !narrow && target.shared_bytes >= 96 << 10;
            return Cut {
                tall: 64,
                wide: 64,
                depth: if deep { 64 } else { 32 },
                scores: matrices([1, 4]),
                sums: matrices([1, each]),
                columns,
                cuts: true,
            };
        }
        let (tall, own) = if rows <= 16 { (16, 1) } else { (64, 4) };
        let (scores, sums) = (Unit::Threads([own, 2]), Unit::Threads([own, each]));
        Cut { tall, wide: 32, depth: 8, scores, sums, columns, cuts: false }
    }

    /// How many neighbours of an operand may be moved at once.
    fn most_together(&self, dtype: DType, k: &Draft) -> u32 {
        match self.cuts {
            true => (k.target.vector_bytes / dtype.size()).clamp(1, 8) as u32,
            false => 1,
        }
    }

    /// How rows of an operand lie in shared memory, `depth` of each.
    fn lay(&self, rows: u32, depth: u32, along_depth: bool) -> Lay {
        let (order, len) = match (self.cuts, along_depth) {
            (false, _) => (Order::Plain { row: 1, depth: rows + 1 }, (rows + 1) * depth),
            (true, true) => (Order::Plain { row: depth + 8, depth: 1 }, rows * (depth + 8)),
            (true, false) => (Order::Plain { row: 1, depth: rows + 4 }, (rows + 4) * depth),
        };
        Lay { order, rows, len }
    }
}

/// Where an element is in shared memory.
fn at<'k>(lay: &Lay, row: Val<'k>, depth: Val<'k>) -> Val<'k> {
    match lay.order {
        Order::Plain { row: apart, depth: along } => plain_at(row, depth, [apart, along]),
        Order::Pairs(_) => unreachable!("rows lie one by one"),
    }
}

/// A kernel that is being written, with its sizes and shared memory.
struct Writer<'k> {
    k: &'k Draft,
    cut: Cut,
    dtype: DType,
    thread: Val<'k>,
    sizes: Words<'k>,
    mask: AttentionMaskKind,
    scale: Val<'k>,
    /// How many neighbours are moved at once.
    together: u32,
    /// Two operands of a product, and the weights of a tile.
    factors: [Shared; 2],
    weights: Shared,
}

/// The sizes, as arguments.
#[derive(Clone, Copy)]
struct Words<'k> {
    groups: Val<'k>,
    /// Heads of a group.
    heads: Val<'k>,
    queries: Val<'k>,
    keys: Val<'k>,
    features: Val<'k>,
    values: Val<'k>,
    /// Rows of a group.
    rows: Val<'k>,
}

impl<'k> Words<'k> {
    fn new(k: &'k Draft, sizes: &AttentionSizes) -> Self {
        Words {
            groups: k.extent(sizes.groups),
            heads: k.extent(sizes.heads / sizes.groups),
            queries: k.extent(sizes.queries),
            keys: k.extent(sizes.keys),
            features: k.extent(sizes.features),
            values: k.extent(sizes.values),
            rows: k.extent(sizes.heads / sizes.groups * sizes.queries),
        }
    }

    /// The token of row `row` of a group, heads innermost: in results its features lie side by side.
    fn token(&self, [batch, group]: [Val<'k>; 2], row: Val<'k>) -> Val<'k> {
        let (head, query) = (group * self.heads + row / self.queries, row % self.queries);
        (batch * self.queries + query) * (self.groups * self.heads) + head
    }

    /// The same of a key.
    fn key_token(&self, [batch, group]: [Val<'k>; 2], key: Val<'k>) -> Val<'k> {
        (batch * self.keys + key) * self.groups + group
    }

    /// The first and the last query of so many rows from `first` on, all if they belong to several heads.
    fn queries(&self, k: &'k Draft, first: Val<'k>, count: u32) -> (Val<'k>, Val<'k>) {
        let last = first + (count - 1);
        let last = last.lt(self.rows).select(last, self.rows - 1);
        let same = (first / self.queries).eq(last / self.queries);
        let from = same.select(first % self.queries, k.index(0));
        (from, same.select(last % self.queries, self.queries - 1))
    }

    /// Before which key so many rows may stop: a causal mask hides the others, but where a row sees
    /// none all are alike.
    fn end(&self, k: &'k Draft, mask: AttentionMaskKind, first: Val<'k>, count: u32) -> Val<'k> {
        if mask != AttentionMaskKind::Causal {
            return self.keys;
        }
        let (from, to) = self.queries(k, first, count);
        let sees = (from + self.keys).ge(self.queries);
        let end = sees.select(to + self.keys + 1 - self.queries, self.keys);
        end.lt(self.keys).select(end, self.keys)
    }

    /// The score of a key for a query, masked: by an array, of which `mask` tells where the query's part starts. And
    /// whether it depends on the product.
    fn masked(
        &self,
        k: &'k Draft,
        kind: AttentionMaskKind,
        score: Val<'k>,
        key: Val<'k>,
        query: impl FnOnce() -> Val<'k>,
        mask: impl FnOnce() -> Option<(Operand<'k>, Val<'k>)>,
    ) -> (Val<'k>, Option<Val<'k>>) {
        let sees = match kind {
            AttentionMaskKind::None => return (score, None),
            // Without a difference that could be negative.
            AttentionMaskKind::Causal => (key + self.queries).le(query() + self.keys),
            AttentionMaskKind::Array => {
                let Some((mask, start)) = mask() else { return (score, None) };
                // Past the end nobody looks at what comes out.
                let key = key.lt(self.keys).select(key, k.index(0));
                let given = mask.view.buf.load(start + key * mask.strides[3]);
                if given.ty != Ty::Bool {
                    return (score + given, None);
                }
                given
            }
        };
        (sees.select(score, f32::MIN), Some(sees))
    }

    /// At which query those may begin that see a key from `start` on: the first, if some see none.
    fn begin(&self, k: &'k Draft, mask: AttentionMaskKind, start: Val<'k>) -> Val<'k> {
        let first = k.index(0);
        if mask != AttentionMaskKind::Causal {
            return first;
        }
        let sees = self.keys.ge(self.queries) & (start + self.queries).gt(self.keys);
        sees.select(start + self.queries - self.keys, first)
    }
}

impl<'k> Writer<'k> {
    /// `read` are the operands that tiles come of.
    fn new(
        k: &'k Draft,
        cut: Cut,
        scores: &Scores,
        sizes: &AttentionSizes,
        segment: &Segment,
        read: &[usize],
    ) -> Self {
        let dtype = segment.inputs[0].aval.dtype;
        let most = cut.most_together(dtype, k);
        let fits = |&n: &usize| side_by_side(&segment.inputs[n], 3, most) == most;
        let together = if read.iter().all(fits) { most } else { 1 };
        read.iter().for_each(|&n| k.assume(BufferRef::Input(n), together));
        // Several blocks wait for memory in turns.
        k.at_once(if cut.cuts { 2 } else { 1 });
        let words = Words::new(k, sizes);
        let scale = k.word((scores.scale.to_f64() as f32).to_bits()).bits(Ty::F32);
        let across = cut.lay(cut.columns, cut.depth, false).len;
        let slice = |rows| cut.lay(rows, cut.depth, true).len;
        Writer {
            k,
            cut,
            dtype,
            thread: k.thread(),
            sizes: words,
            mask: scores.mask,
            scale,
            together,
            factors: [
                k.shared(Ty::F32, slice(cut.tall)),
                k.shared(Ty::F32, slice(cut.wide).max(across)),
            ],
            weights: k.shared(Ty::F32, cut.lay(cut.tall, cut.wide, true).len),
        }
    }

    /// Zeros to sum to.
    fn zeros(&self, unit: Unit) -> Vec<NumberVar<'k>> {
        let zero = self.k.f32(0.0);
        (0..unit.sums()).map(|_| self.k.number_var(Number::Real(zero))).collect()
    }

    /// The products of the block's `tall` rows with `wide` others, over so many features: `elements` gives
    /// those of either side by row and feature.
    fn agree(
        &self,
        features: Val<'k>,
        elements: [&dyn Fn(Val<'k>, Val<'k>) -> Vec<Val<'k>>; 2],
    ) -> Vec<NumberVar<'k>> {
        let (k, Cut { tall, wide, depth, .. }) = (self.k, self.cut);
        let sums = self.zeros(self.cut.scores);
        let hand = Hand::new(self.cut.scores, self.thread);
        let lay = [self.cut.lay(tall, depth, true), self.cut.lay(wide, depth, true)];
        let slices = Slices { shared: [&self.factors[..1], &self.factors[1..]], lay };
        k.range(k.index(0), features, depth, |start| {
            k.barrier();
            for (which, rows) in [tall, wide].into_iter().enumerate() {
                self.bring(which, [rows, depth], true, |row, deep| {
                    elements[which](row, start + k.as_index(deep))
                });
            }
            k.barrier();
            hand.multiply(k, depth, &slices, None, &sums);
        });
        sums
    }

    /// Adds the products of the weights in shared memory with columns of what they weigh: `elements` gives
    /// those by number of the weight and column.
    fn weigh(
        &self,
        sums: &[Vec<NumberVar<'k>>],
        elements: &dyn Fn(Val<'k>, Val<'k>) -> Vec<Val<'k>>,
    ) {
        let (k, Cut { tall, wide, depth, columns, .. }) = (self.k, self.cut);
        let hand = Hand::new(self.cut.sums, self.thread);
        // A slice of the weights is as far from the next as so many depths.
        let weights = self.cut.lay(tall, wide, true);
        let Order::Plain { depth: apart, .. } = weights.order else { return };
        let weights = Lay { len: depth * apart, ..weights };
        let own = Lay { len: 0, ..self.cut.lay(columns, depth, false) };
        let slices = Slices {
            shared: [std::slice::from_ref(&self.weights), &self.factors[1..]],
            lay: [weights, own],
        };
        for (chunk, sums) in sums.iter().enumerate() {
            k.range(k.u32(0), wide / depth, 1, |slice| {
                k.barrier();
                self.bring(1, [columns, depth], false, |column, deep| {
                    let column = k.as_index(column + chunk as u32 * columns);
                    elements(slice * depth + deep, column)
                });
                k.barrier();
                hand.multiply(k, depth, &slices, Some(slice), sums);
            });
        }
    }

    /// Sums for so many columns, some at a time.
    fn columns(&self, columns: usize) -> Vec<Vec<NumberVar<'k>>> {
        let chunks = (columns as u32).div_ceil(self.cut.columns);
        (0..chunks).map(|_| self.zeros(self.cut.sums)).collect()
    }

    /// Calls `f` with each of the thread's sums of a product for the scores: row, column, sum.
    fn each_score(&self, sums: &[NumberVar<'k>], mut f: impl FnMut(Val<'k>, Val<'k>, Val<'k>)) {
        let hand = Hand::new(self.cut.scores, self.thread);
        for (i, &row) in hand.rows().iter().enumerate() {
            for (j, &column) in hand.columns().iter().enumerate() {
                f(row, column, sums[hand.sum(i, j)].get().real());
            }
        }
    }

    /// Calls `f` with each of the thread's sums of weighed columns: row, column, sum.
    fn each_sum(
        &self,
        sums: &[Vec<NumberVar<'k>>],
        mut f: impl FnMut(Val<'k>, Val<'k>, NumberVar<'k>),
    ) {
        let hand = Hand::new(self.cut.sums, self.thread);
        for (chunk, sums) in sums.iter().enumerate() {
            for (i, &row) in hand.rows().iter().enumerate() {
                for (j, &column) in hand.columns().iter().enumerate() {
                    f(row, column + chunk as u32 * self.cut.columns, sums[hand.sum(i, j)]);
                }
            }
        }
    }

    /// The score of a key for a row of which `places` tell, from their product; and whether it depends on
    /// them.
    fn score(
        &self,
        product: Val<'k>,
        (places, row): (&Places, Val<'k>),
        key: Val<'k>,
        mask: Option<Operand<'k>>,
    ) -> (Val<'k>, Option<Val<'k>>) {
        let start = || mask.zip(places.mask).map(|(mask, start)| (mask, start.load(row)));
        let query = || places.query.load(row);
        self.sizes.masked(self.k, self.mask, product * self.scale, key, query, start)
    }

    /// Stores a weight of the block's `tall` rows for one of `wide`.
    fn put(&self, row: Val<'k>, column: Val<'k>, weight: Val<'k>) {
        let lay = self.cut.lay(self.cut.tall, self.cut.wide, true);
        let weight = if self.cut.cuts { weight.tf32() } else { weight };
        self.weights.store(at(&lay, row, column), weight);
    }

    /// Runs `each` for every number below `count`, each by a whole block.
    fn blocks(&self, count: usize, each: impl FnOnce(Val<'k>)) {
        self.k.blocks(count as u64, |at| {
            // What the block shared before is read no more.
            self.k.barrier();
            each(at);
        });
    }
}

/// The sizes of a segment's queries, keys and values.
fn sizes(segment: &Segment) -> Result<AttentionSizes, Missing> {
    let [q, k, v] = [0, 1, 2].map(|n| &segment.inputs[n].aval);
    AttentionSizes::of(q, k, v).map_err(|detail| Missing(detail.to_owned()))
}
