//! Attention of few queries, as a token has that is decoded: what takes time is to read the keys and their values,
//! once.
//!
//! Neighbouring threads share a key, each with some of its features, and the block goes through the keys of its part
//! several at a time. Each thread keeps a softmax of the keys that it saw for each row. In the end these are joined:
//! in a warp, in the block, and where the keys are split as [`join`] does.

use cupola_core::backend::Segment;
use cupola_core::prim::composite::attention::AttentionSizes;
use cupola_core::prim::{Attention, AttentionMaskKind};

use super::forward::{Given, Parts, join};
use super::{Operand, Words, sizes};
use crate::ir::{Math, Shared, Target, Ty, Val, Var};
use crate::kernels::view::side_by_side;
use crate::kernels::{BufferRef, Draft, Missing, Program};

/// Threads in a block.
const BLOCK: u32 = 128;
/// Keys of a thread at a time: what it reads of them is on the way together.
const AT_ONCE: u32 = 4;
/// Threads that have to be able to exchange values.
const FEWEST: u32 = 4;
/// Rows of a block, at most, and of all queries that share keys.
const TALL: usize = 8;
const MOST_ROWS: usize = 16;
/// Blocks below which keys are split, and keys that are worth a block of their own, from so many on.
const FEW: usize = 512;
const SPLIT: usize = 128;
const LONG: usize = 512;

/// How threads share keys and values.
#[derive(Clone, Copy)]
struct Lanes {
    /// Threads that can exchange values, and those of them that have a key: powers of two.
    warp: u32,
    count: u32,
    /// Neighbours that are loaded at once, and how many such a thread has of a key and of its values.
    together: u32,
    vectors: [u32; 2],
}

impl Lanes {
    fn of(s: &AttentionSizes, segment: &Segment, target: &Target) -> Lanes {
        let size = segment.inputs[0].aval.dtype.size();
        let most = (target.vector_bytes / size).clamp(1, 8) as u32;
        let together = [1, 2].map(|n| side_by_side(&segment.inputs[n], 3, most));
        let together = together[0].min(together[1]);
        let vectors = [s.features, s.values].map(|n| (n as u32).div_ceil(together));
        let warp = target.subgroup.min(32);
        let count = vectors[0].max(vectors[1]).next_power_of_two().min(warp.max(1));
        Lanes { warp, count, together, vectors: vectors.map(|n| n.div_ceil(count)) }
    }

    /// How many warps a block has.
    fn warps(&self) -> u32 {
        BLOCK / self.warp
    }

    /// Columns that there is room for: of keys, and of values.
    fn columns(&self) -> [u32; 2] {
        self.vectors.map(|n| n * self.count * self.together)
    }
}

/// Rows of a block.
fn tall(s: &AttentionSizes) -> u32 {
    rows(s).next_power_of_two().min(TALL) as u32
}

fn rows(s: &AttentionSizes) -> usize {
    s.heads / s.groups * s.queries
}

/// Words that a block shares: for each warp and row the sums, the largest score and the total.
fn shared(lanes: &Lanes, tall: u32) -> u32 {
    lanes.warps() * tall * (lanes.columns()[1] + 2)
}

/// Whether this kernel takes a segment.
pub fn takes(segment: &Segment, s: &AttentionSizes, target: &Target) -> bool {
    rows(s) <= MOST_ROWS
        && target.subgroup >= FEWEST
        && target.max_threads >= BLOCK
        && 4 * shared(&Lanes::of(s, segment, target), tall(s)) <= target.shared_bytes
}

/// What a block knows of one of its rows.
struct Row<'k> {
    query: Val<'k>,
    /// Where its mask starts.
    mask: Option<Val<'k>>,
    /// The thread's elements of it.
    elements: Vec<Val<'k>>,
    largest: Var<'k>,
    total: Var<'k>,
    sums: Vec<Var<'k>>,
}

/// A kernel that is being written.
struct Few<'k> {
    k: &'k Draft,
    lanes: Lanes,
    tall: u32,
    sizes: Words<'k>,
    kind: AttentionMaskKind,
    scale: Val<'k>,
    given: Given<'k>,
    /// Where features and values end, if that is before the threads of a key do.
    ends: [Option<Val<'k>>; 2],
    thread: Val<'k>,
    /// The thread's number among those of a key.
    lane: Val<'k>,
    /// What the warps have of each row: sums, the largest score and the total.
    room: Shared,
}

/// A key of a thread, and whether it is one of its part.
type Key<'k> = (Val<'k>, Val<'k>);

impl<'k> Few<'k> {
    fn new(
        k: &'k Draft,
        lanes: Lanes,
        attention: &Attention,
        s: &AttentionSizes,
        given: Given<'k>,
    ) -> Self {
        for n in [1, 2] {
            k.assume(BufferRef::Input(n), lanes.together);
        }
        let (sizes, thread, tall) = (Words::new(k, s), k.thread(), tall(s));
        let [features, values] = lanes.columns();
        Few {
            k,
            lanes,
            tall,
            sizes,
            kind: attention.scores.mask,
            scale: k.word((attention.scores.scale.to_f64() as f32).to_bits()).bits(Ty::F32),
            given,
            ends: [
                (s.features as u32 != features).then_some(sizes.features),
                (s.values as u32 != values).then_some(sizes.values),
            ],
            thread,
            lane: thread % lanes.count,
            room: k.shared(Ty::F32, shared(&lanes, tall)),
        }
    }

    /// Keys that the block goes through at a time, each `AT_ONCE`th of them by other threads.
    fn apart(&self) -> u32 {
        BLOCK / self.lanes.count
    }

    /// What the thread has of keys, or of their values, from `start` on: 0 past the end, and where nothing is.
    fn load(
        &self,
        which: usize,
        operand: &Operand<'k>,
        start: Val<'k>,
        there: Option<Val<'k>>,
    ) -> Vec<Val<'k>> {
        let (k, Lanes { count, together, vectors, .. }) = (self.k, self.lanes);
        let mut all = Vec::new();
        for number in 0..vectors[which] {
            let column = k.as_index((self.lane + number * count) * together);
            let there = match (self.ends[which].map(|end| column.lt(end)), there) {
                (Some(a), Some(b)) => Some(a & b),
                (a, b) => a.or(b),
            };
            let place = start + column * operand.strides[3];
            let place = there.map_or(place, |there| there.select(place, operand.view.offset));
            let values = match together {
                1 => vec![operand.view.buf.load(place)],
                _ => operand.view.buf.load_vector(place, together),
            };
            let kept = |value| there.map_or(value, |there| there.select(value, 0.0f32));
            all.extend(values.into_iter().map(kept));
        }
        all
    }

    /// Row `number` of the block; past the end, the first of the group.
    fn row(&self, [batch, group, first]: [Val<'k>; 3], number: u32) -> Row<'k> {
        let (k, s) = (self.k, &self.sizes);
        let row = first + number;
        let row = row.lt(s.rows).select(row, k.index(0));
        let (head, query) = (group * s.heads + row / s.queries, row % s.queries);
        let place = |operand: &Operand<'k>| {
            let [of_batch, of_head, of_query, _] = operand.strides;
            operand.view.offset + batch * of_batch + head * of_head + query * of_query
        };
        let zero = || k.var(k.f32(0.0));
        let q = &self.given.q;
        Row {
            query,
            mask: self.given.mask.as_ref().map(place),
            elements: self.queries(q, place(q)),
            largest: k.var(k.f32(f32::MIN)),
            total: zero(),
            sums: (0..self.lanes.vectors[1] * self.lanes.together).map(|_| zero()).collect(),
        }
    }

    /// The thread's elements of a query, one by one: nobody says how they lie.
    fn queries(&self, q: &Operand<'k>, start: Val<'k>) -> Vec<Val<'k>> {
        let (k, Lanes { count, together, vectors, .. }) = (self.k, self.lanes);
        let element = |number: u32| {
            let (vector, next) = (number / together, number % together);
            let column = k.as_index((self.lane + vector * count) * together + next);
            let place = start + column * q.strides[3];
            match self.ends[0].map(|end| column.lt(end)) {
                None => q.view.buf.load(place),
                Some(there) => {
                    let value = q.view.buf.load(there.select(place, q.view.offset));
                    there.select(value, 0.0f32)
                }
            }
        };
        (0..vectors[0] * together).map(element).collect()
    }

    /// Goes through the keys of the block from `first` on.
    fn step(&self, [batch, group]: [Val<'k>; 2], first: Val<'k>, stop: Val<'k>, rows: &[Row<'k>]) {
        let k = self.k;
        let own: Vec<Key<'k>> = (0..AT_ONCE)
            .map(|i| {
                let key = first + k.as_index(self.thread / self.lanes.count + i * self.apart());
                (key, key.lt(stop))
            })
            .collect();
        let read = |which: usize, operand: &Operand<'k>| -> Vec<Vec<Val<'k>>> {
            let [of_batch, of_group, of_key, _] = operand.strides;
            let start = operand.view.offset + batch * of_batch + group * of_group;
            let each = own
                .iter()
                .map(|&(key, there)| self.load(which, operand, start + key * of_key, Some(there)));
            each.collect()
        };
        let (keys, values) = (read(0, &self.given.keys), read(1, &self.given.values));
        for row in rows {
            let scores: Vec<Val<'k>> =
                keys.iter().zip(&own).map(|(key, &at)| self.score(row, key, at)).collect();
            let before = row.largest.get();
            let most = scores.iter().fold(before, |most, &score| larger(most, score));
            let fade = (before - most).math(Math::Exp);
            let weight = |(&score, &(_, there)): (&Val<'k>, &Key<'k>)| {
                there.select((score - most).math(Math::Exp), 0.0f32)
            };
            let weights: Vec<Val<'k>> = scores.iter().zip(&own).map(weight).collect();
            row.total.set(weights.iter().fold(row.total.get() * fade, |sum, &w| sum + w));
            for (i, sum) in row.sums.iter().enumerate() {
                let weighed = weights.iter().zip(&values);
                sum.set(weighed.fold(sum.get() * fade, |sum, (&w, of)| w.fma(of[i], sum)));
            }
            row.largest.set(most);
        }
    }

    /// The score of a key, of which the thread has these elements: its neighbours have the others.
    fn score(&self, row: &Row<'k>, elements: &[Val<'k>], (key, there): Key<'k>) -> Val<'k> {
        let k = self.k;
        let both = row.elements.iter().zip(elements);
        let mut product = both.fold(k.f32(0.0), |sum, (&a, &b)| a.fma(b, sum));
        let mut away = self.lanes.count / 2;
        while away > 0 {
            product = product + product.shuffle_xor(away);
            away /= 2;
        }
        let mask = || self.given.mask.zip(row.mask);
        let score = product * self.scale;
        let (score, _) = self.sizes.masked(k, self.kind, score, key, || row.query, mask);
        there.select(score, f32::MIN)
    }

    /// Joins what the threads of a warp have that stand at the same place of other keys.
    fn join_warp(&self, row: &Row<'k>) {
        let mut away = self.lanes.count;
        while away < self.lanes.warp {
            let own = row.largest.get();
            let most = larger(own, own.shuffle_xor(away));
            let fade = (own - most).math(Math::Exp);
            for var in row.sums.iter().chain([&row.total]) {
                let faded = var.get() * fade;
                var.set(faded + faded.shuffle_xor(away));
            }
            row.largest.set(most);
            away *= 2;
        }
    }

    /// Shows the block what the warp has.
    fn share(&self, rows: &[Row<'k>]) {
        let (k, Lanes { warp, count, together, .. }) = (self.k, self.lanes);
        let columns = self.lanes.columns()[1];
        k.when((self.thread % warp).lt(count), || {
            for (number, row) in (0..).zip(rows) {
                let start = (self.thread / warp * self.tall + number) * (columns + 2);
                for (i, sum) in (0u32..).zip(&row.sums) {
                    let column = (self.lane + i / together * count) * together + i % together;
                    self.room.store(start + column, sum.get());
                }
                k.when(self.lane.eq(0), || {
                    self.room.store(start + columns, row.largest.get());
                    self.room.store(start + (columns + 1), row.total.get());
                });
            }
        });
    }

    /// Row `number` of the block, joined: its sum at `column`, the largest score and the total.
    fn joined(&self, number: Val<'k>, column: Val<'k>, sink: Option<Val<'k>>) -> [Val<'k>; 3] {
        let k = self.k;
        let columns = self.lanes.columns()[1];
        let of_warps = |at: Val<'k>| -> Vec<Val<'k>> {
            let place = |warp: u32| (number + warp * self.tall) * (columns + 2) + at;
            (0..self.lanes.warps()).map(|warp| self.room.load(place(warp))).collect()
        };
        let largest = of_warps(k.u32(columns));
        let most = largest.iter().copied().chain(sink).fold(k.f32(f32::MIN), larger);
        let fades: Vec<Val<'k>> = largest.iter().map(|&own| (own - most).math(Math::Exp)).collect();
        let fold = |values: Vec<Val<'k>>, first: Val<'k>| {
            values.into_iter().zip(&fades).fold(first, |sum, (value, &fade)| value.fma(fade, sum))
        };
        let sunk = sink.map_or(k.f32(0.0), |sink| (sink - most).math(Math::Exp));
        [fold(of_warps(column), k.f32(0.0)), most, fold(of_warps(k.u32(columns + 1)), sunk)]
    }
}

fn larger<'k>(a: Val<'k>, b: Val<'k>) -> Val<'k> {
    a.lt(b).select(b, a)
}

/// Adds the launches of an attention.
pub fn forward(
    program: &mut Program,
    attention: &Attention,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let s = sizes(segment)?;
    let dtype = segment.inputs[0].aval.dtype;
    let lanes = Lanes::of(&s, segment, target);
    let wide = BLOCK / lanes.count * AT_ONCE;
    let split = if s.keys < LONG { s.keys } else { SPLIT };
    let Parts { tiles, parts, step, .. } = Parts::of(&s, [tall(&s), wide], [FEW, split]);
    let whole = s.batch * s.groups * tiles;
    let all_rows = s.batch * s.heads * s.queries;
    let k = Draft::new("attention_few", BLOCK, segment, target)?;
    let given = Given::new(&k, program, attention, segment, &s, parts);
    let [tiles, parts_arg, step_arg, all_rows_arg] =
        [tiles, parts, step, all_rows].map(|size| k.extent(size));
    let few = Few::new(&k, lanes, attention, &s, given);
    let Few { sizes: words, thread, tall, .. } = few;
    let columns = lanes.columns()[1];
    k.blocks((whole * parts) as u64, |number| {
        let (part, tile) = (number % parts_arg, number / parts_arg % tiles);
        let of_all = number / parts_arg / tiles;
        let group = [of_all / words.groups, of_all % words.groups];
        let first = tile * tall;
        let rows: Vec<Row<'_>> =
            (0..tall).map(|number| few.row([group[0], group[1], first], number)).collect();
        let start = part * step_arg;
        let (stop, end) = (start + step_arg, words.end(&k, few.kind, first, tall));
        let stop = stop.lt(end).select(stop, end);
        k.range(start, stop, wide, |key| few.step(group, key, stop, &rows));
        rows.iter().for_each(|row| few.join_warp(row));
        // What the block shared before is read no more.
        k.barrier();
        few.share(&rows);
        k.barrier();
        for turn in 0..(tall * columns).div_ceil(BLOCK) {
            let at = thread + turn * BLOCK;
            let (number, column) = (at / columns, k.as_index(at % columns));
            let row = first + k.as_index(number);
            let is_there = at.lt(tall * columns) & row.lt(words.rows) & column.lt(words.values);
            k.when(is_there, || {
                let sink = few.given.sinks.map(|sinks| {
                    let head = group[1] * words.heads + row / words.queries;
                    let place = group[0] * sinks.strides[0] + head * sinks.strides[1];
                    sinks.view.buf.load(sinks.view.offset + place)
                });
                let [sum, largest, total] = few.joined(number, at % columns, sink);
                let of_row = of_all * words.rows + row;
                if let Some(scratch) = few.given.scratch {
                    let place = (part * all_rows_arg + of_row) * (words.values + 2);
                    scratch.buf.store(place + column, sum);
                    k.when(column.eq(0), || {
                        scratch.buf.store(place + words.values, largest);
                        scratch.buf.store(place + words.values + 1, total);
                    });
                    return;
                }
                let outputs = &few.given.outputs;
                let place = words.token(group, row) * words.values + column;
                outputs[0].buf.store(outputs[0].offset + place, (sum / total).rounded(dtype));
                k.when(column.eq(0), || {
                    outputs[1].buf.store(outputs[1].offset + of_row, largest);
                    outputs[2].buf.store(outputs[2].offset + of_row, total);
                });
            });
        }
    });
    program.launches.push(k.launch_blocks((whole * parts) as u64)?);
    if parts > 1 {
        join(program, attention, segment, target, parts)?;
    }
    Ok(())
}
