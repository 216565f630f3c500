//! From sums to the result, with the epilogue that continues it.

use cupola_core::DType;
use cupola_core::backend::{Epilogue, Operand, Segment};

use super::super::view::{Axes, View, Walk, place, unflatten};
use super::super::{BufferRef, Draft, Launch, Missing};
use super::hand::Hand;
use super::{BLOCK, Product, Sizes};
use crate::ir::{Access, Number, NumberVar, Shared, Target, Ty, Val};

/// Which axes of the result batches, rows and columns are, outermost first.
pub struct ResultAxes {
    /// What a batch is.
    pub batch: Vec<Dim>,
    /// What a row is.
    pub rows: Vec<Dim>,
    /// What a column is.
    pub columns: Vec<Dim>,
}

/// An axis of the result, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Dim {
    /// Which axis.
    pub axis: usize,
    /// How many there are.
    pub size: usize,
    /// How far apart they are along the axis.
    pub apart: usize,
}

impl Dim {
    /// A whole axis.
    pub fn whole(axis: usize, size: usize) -> Dim {
        Dim { axis, size, apart: 1 }
    }
}

/// Where sums go.
pub struct Store<'k> {
    k: &'k Draft,
    p: &'k Product<'k>,
    out: View<'k>,
    /// How batches, rows and columns are walked, by the result first and then by what the epilogue
    /// reads.
    axes: [Axes; 3],
    walks: [Walk<'k>; 3],
    /// Rows and columns, and all elements of a part.
    limits: [Val<'k>; 2],
    all: Val<'k>,
    /// The epilogue with what it reads and its scalars.
    epilogue: Option<(&'k Epilogue, Vec<View<'k>>, Vec<Number<'k>>)>,
    is_part: bool,
    /// How many neighbouring columns can be stored at once.
    together: u32,
}

impl<'k> Store<'k> {
    /// A store of finished sums.
    pub fn finish(k: &'k Draft, p: &'k Product<'k>, segment: &'k Segment) -> Self {
        let out = k.output(segment, 0);
        let epilogue = segment
            .epilogue
            .as_ref()
            .map(|more| (more, k.inputs(segment, more.first_input), k.scalars(&more.body)));
        let more = segment.epilogue.as_ref().map(|more| &segment.inputs[more.first_input..]);
        let operands: Vec<&Operand> =
            std::iter::once(&segment.outputs[0]).chain(more.into_iter().flatten()).collect();
        let of = |dims: &[Dim]| {
            let sizes: Vec<usize> = dims.iter().map(|dim| dim.size).collect();
            let strides = |operand: &&Operand| -> Vec<isize> {
                dims.iter().map(|dim| operand.strides[dim.axis] * dim.apart as isize).collect()
            };
            let strides: Vec<Vec<isize>> = operands.iter().map(strides).collect();
            Axes::joined(&sizes, &strides.iter().map(|s| &s[..]).collect::<Vec<_>>())
        };
        let axes = [of(&p.result.batch), of(&p.result.rows), of(&p.result.columns)];
        let dtype = out.buf.dtype;
        let together = axes[2].vector(&[dtype], k.target.vector_bytes.min(2 * dtype.size()));
        let outer = axes[..2].iter().flat_map(|axes| &axes.strides[0]);
        let even = outer.into_iter().all(|s| s.unsigned_abs().is_multiple_of(2));
        let dense = axes[2].strides[0].last() == Some(&1);
        let together = if even && dense { together } else { 1 };
        let (walks, limits, all) = known(k, p, &axes);
        Store { k, p, out, axes, walks, limits, all, epilogue, is_part: false, together }
    }

    /// A store of the sums of a part into scratch memory, one part after the other.
    pub fn part(k: &'k Draft, p: &'k Product<'k>, scratch: usize) -> Self {
        let out = k.scratch(scratch, p.accumulate, Access::Write);
        let Sizes { rows, columns, .. } = p.sizes;
        let of = |size: u64, stride: u64| Axes {
            sizes: vec![size as usize],
            strides: vec![vec![stride as isize]],
        };
        // Parts of a batch are apart by all batches; the part itself is added when it is known.
        let axes = [of(p.sizes.batch, rows * columns), of(rows, columns), of(columns, 1)];
        let even = columns.is_multiple_of(2) && p.accumulate.size() <= 8;
        let vectors = k.target.vector_bytes >= 2 * p.accumulate.size();
        let real = p.accumulate != DType::C64;
        let together = if even && vectors && real { 2 } else { 1 };
        let (walks, limits, all) = known(k, p, &axes);
        Store { k, p, out, axes, walks, limits, all, epilogue: None, is_part: true, together }
    }

    /// Whether rows of the result, of floats, follow each other with nothing between.
    pub fn is_dense(&self) -> bool {
        let [_, rows, columns] = &self.axes;
        let count = self.p.sizes.columns as isize;
        let dtype = self.out.buf.dtype;
        Ty::of(dtype) == Ty::F32
            && !dtype.is_complex()
            && self.p.sizes.batch == 1
            && matches!(rows.strides[0][..], [apart] if apart == count)
            && matches!(columns.strides[0][..], [1])
    }

    /// Writes a thread's sums.
    pub fn write(
        &self,
        hand: &Hand<'k>,
        sums: &[NumberVar<'k>],
        of: [Val<'k>; 2],
        starts: [Val<'k>; 2],
    ) {
        self.finish_all(hand, sums, of, starts, |_, place, numbers| {
            self.out.store_at(self.out.offset + place, numbers);
        });
    }

    /// Writes a block's sums, all columns of its `tall` rows from `start` on, where the result is
    /// dense: they are put together in `room` first, since threads have them far apart.
    pub fn write_dense(
        &self,
        hand: &Hand<'k>,
        sums: &[NumberVar<'k>],
        start: Val<'k>,
        (room, tall): (Shared, u32),
    ) {
        let k = self.k;
        let Sizes { rows, columns, .. } = self.p.sizes;
        let apart = k.u32(columns as u32);
        // Nobody reads what the room was for any more.
        k.barrier();
        let zero = k.index(0);
        self.finish_all(hand, sums, [zero, zero], [start, zero], |[row, column], _, numbers| {
            let values: Vec<Val<'k>> = numbers.iter().map(|number| number.real()).collect();
            room.store_vector(row * apart + column, &values);
        });
        k.barrier();
        let most = (k.target.vector_bytes / self.out.buf.dtype.size()).min(4) as u64;
        let width = if (rows * columns).is_multiple_of(most) { most as u32 } else { 1 };
        let left = (self.limits[0] - start).convert(Ty::U32).min(tall);
        let count = left * apart;
        let first = self.out.offset + start * k.as_index(apart);
        k.range(k.thread() * width, count, k.block_size() * width, |at| {
            let values = room.load_vector(at, width);
            let numbers: Vec<Number<'k>> = values.into_iter().map(Number::Real).collect();
            self.out.store_at(first + k.as_index(at), &numbers);
        });
    }

    /// Gives a thread's finished sums to `put`, with where they are in the tile and in the result.
    fn finish_all(
        &self,
        hand: &Hand<'k>,
        sums: &[NumberVar<'k>],
        [batch, part]: [Val<'k>; 2],
        starts: [Val<'k>; 2],
        put: impl Fn([Val<'k>; 2], Val<'k>, &[Number<'k>]),
    ) {
        let k = self.k;
        let mut first = self.places(0, batch);
        if self.is_part {
            first[0] = first[0] + part * self.all;
        }
        let together = self.together.min(hand.neighbours()) as usize;
        let own = [hand.rows(), hand.columns()];
        // Where every row and column is, and whether it is there. The others stand in the first
        // one's place, so that nothing has to be asked before something is loaded.
        let [rows, columns] = [0, 1].map(|which: usize| -> Vec<(Vec<Val<'k>>, Val<'k>)> {
            (own[which].iter())
                .map(|&own| {
                    let at = starts[which] + k.as_index(own);
                    let valid = at.lt(self.limits[which]);
                    (self.places(which + 1, valid.select(at, starts[which])), valid)
                })
                .collect()
        });
        for (i, (row, row_there)) in rows.iter().enumerate() {
            let row = sums_of(row, &first);
            for (j, neighbours) in columns.chunks(together).enumerate() {
                let mut numbers = Vec::new();
                let mut to = None;
                for (n, (column, _)) in neighbours.iter().enumerate() {
                    let places = sums_of(&row, column);
                    let sum = sums[hand.sum(i, j * together + n)].get();
                    numbers.push(self.finished(sum, &places[1..]));
                    to.get_or_insert(places[0]);
                }
                k.when(*row_there & neighbours[0].1, || {
                    if let Some(to) = to {
                        put([own[0][i], own[1][j * together]], to, &numbers);
                    }
                });
            }
        }
    }

    /// Where a batch, row or column is, in the result and in what the epilogue reads.
    fn places(&self, which: usize, index: Val<'k>) -> Vec<Val<'k>> {
        let walk = &self.walks[which];
        let index = unflatten(index, &walk.sizes);
        walk.strides.iter().map(|strides| place(self.k.index(0), &index, strides)).collect()
    }

    /// A sum as an element of the result, with the epilogue's inputs at `places`.
    fn finished(&self, sum: Number<'k>, places: &[Val<'k>]) -> Number<'k> {
        if self.is_part {
            return sum;
        }
        // Sums of integers wrap in the width of the result.
        let value = sum.cast(self.p.accumulate, self.out.buf.dtype);
        let Some((epilogue, views, scalars)) = &self.epilogue else { return value };
        let mut inputs = vec![value];
        for (view, &place) in views.iter().zip(places) {
            inputs.push(view.buf.load_number(view.offset + place));
        }
        self.k.run(&epilogue.body, &inputs, scalars)[0]
    }

    /// Writes element `at` of the result, whose sum a thread of another launch has finished.
    fn write_one(&self, sum: Number<'k>, at: Val<'k>) {
        let Sizes { batch, rows, columns, .. } = self.p.sizes;
        let sizes = self.k.divisors(&[batch, rows, columns].map(|n| n as usize));
        let index = unflatten(at, &sizes);
        let mut places = self.places(0, index[0]);
        for (which, &index) in index.iter().enumerate().skip(1) {
            places = sums_of(&places, &self.places(which, index));
        }
        let value = self.finished(sum, &places[1..]);
        self.out.buf.store_number(self.out.offset + places[0], value);
    }
}

/// How a kernel walks batches, rows and columns; how many rows and columns there are, and elements.
fn known<'k>(
    k: &'k Draft,
    p: &Product<'_>,
    axes: &[Axes; 3],
) -> ([Walk<'k>; 3], [Val<'k>; 2], Val<'k>) {
    let Sizes { batch, rows, columns, .. } = p.sizes;
    let walks = [0, 1, 2].map(|which: usize| k.walk(&axes[which]));
    (walks, [rows, columns].map(|n| k.extent(n)), k.extent(batch * rows * columns))
}

/// The sums of pairs.
fn sums_of<'k>(a: &[Val<'k>], b: &[Val<'k>]) -> Vec<Val<'k>> {
    a.iter().zip(b).map(|(&a, &b)| a + b).collect()
}

/// The launch that stores what is left of sums of nothing.
pub fn sums_of_nothing(
    p: &Product<'_>,
    segment: &Segment,
    target: &Target,
) -> Result<Launch, Missing> {
    let k = Draft::new("zeros", BLOCK, segment, target)?;
    let store = Store::finish(&k, p, segment);
    let total = p.sizes.batch * p.sizes.rows * p.sizes.columns;
    k.each(total, |at| store.write_one(k.number(0, p.accumulate), at));
    k.launch_over(total)
}

/// The launch that adds the parts of every sum: of many parts several threads add some each.
pub fn add_parts(
    p: &Product<'_>,
    parts: u64,
    scratch: usize,
    segment: &Segment,
    target: &Target,
) -> Result<Launch, Missing> {
    let lanes = match parts {
        64.. => 16,
        16.. => 4,
        _ => 1,
    };
    let k = Draft::new("add_parts", BLOCK, segment, target)?;
    let sums = k.bind(BufferRef::Scratch(scratch), p.accumulate, Access::Read);
    let store = Store::finish(&k, p, segment);
    let total = p.sizes.batch * p.sizes.rows * p.sizes.columns;
    let each = BLOCK / lanes;
    let shared = (lanes > 1).then(|| k.shared_number(p.accumulate, BLOCK));
    let groups = total.div_ceil(u64::from(each));
    let [all, parts] = [total, parts].map(|n| k.extent(n));
    k.blocks(groups, |group| {
        let thread = k.thread();
        let (own, first) = (k.as_index(thread % each), k.as_index(thread / each));
        let at = group * each + own;
        let there = at.lt(all);
        let sum = k.number_var(k.number(0, p.accumulate));
        let add = |more: Number<'_>| {
            sum.parts().zip(more.parts()).for_each(|(var, v)| var.set(var.get() + v));
        };
        k.when(there, || {
            k.range(first, parts, lanes, |part| add(sums.load_number(part * all + at)));
        });
        let mut ends = there;
        if let Some(shared) = shared {
            k.barrier();
            shared.store(thread, sum.get());
            k.barrier();
            ends = thread.lt(each) & there;
        }
        k.when(ends, || {
            for lane in 1..lanes {
                let from = thread + lane * each;
                shared.iter().for_each(|shared| add(shared.load(from)));
            }
            store.write_one(sum.get(), at);
        });
    });
    k.launch_blocks(groups)
}
