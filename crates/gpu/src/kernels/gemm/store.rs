//! From sums to the result, with the epilogue that continues it.

use cupola_core::DType;
use cupola_core::backend::{Epilogue, Operand, Segment};

use super::super::view::{Axes, View};
use super::super::{Draft, Launch, Missing, Place};
use super::hand::Hand;
use super::{BLOCK, Product, Sizes};
use crate::ir::{Access, Number, Shared, Target, Ty, Val, Var};

/// Which axes of the result batches, rows and columns are, outermost first.
pub struct Layout {
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
pub struct Store<'a> {
    p: &'a Product<'a>,
    out: View,
    /// How batches, rows and columns are walked, by the result first and then by what the epilogue
    /// reads.
    axes: [Axes; 3],
    /// The epilogue with what it reads and its scalars.
    epilogue: Option<(&'a Epilogue, Vec<View>, Vec<Number>)>,
    is_part: bool,
    /// How many neighbouring columns can be stored at once.
    together: u32,
}

impl<'a> Store<'a> {
    /// A store of finished sums.
    pub fn finish(
        draft: &mut Draft<'_>,
        p: &'a Product<'a>,
        segment: &'a Segment,
    ) -> Result<Self, Missing> {
        let result = &segment.outputs[0];
        let dtype = result.aval.dtype;
        let out = draft.view(Place::Output(0), dtype, Access::Write)?;
        let mut operands = vec![result];
        let mut epilogue = None;
        if let Some(more) = &segment.epilogue {
            let mut views = Vec::new();
            for (index, operand) in segment.inputs.iter().enumerate().skip(more.first_input) {
                views.push(draft.view(Place::Input(index), operand.aval.dtype, Access::Read)?);
                operands.push(operand);
            }
            epilogue = Some((more, views, draft.scalars(&more.body)?));
        }
        let of = |dims: &[Dim]| {
            let sizes: Vec<usize> = dims.iter().map(|dim| dim.size).collect();
            let strides = |operand: &&Operand| -> Vec<isize> {
                dims.iter().map(|dim| operand.strides[dim.axis] * dim.apart as isize).collect()
            };
            let strides: Vec<Vec<isize>> = operands.iter().map(strides).collect();
            Axes::joined(&sizes, &strides.iter().map(|s| &s[..]).collect::<Vec<_>>())
        };
        let axes = [of(&p.result.batch), of(&p.result.rows), of(&p.result.columns)];
        let together =
            axes[2].vector(&[dtype], draft.build.target.vector_bytes.min(2 * dtype.size()));
        let outer = axes[..2].iter().flat_map(|axes| &axes.strides[0]);
        let even = outer.into_iter().all(|s| s.unsigned_abs().is_multiple_of(2));
        let dense = axes[2].strides[0].last() == Some(&1);
        let together = if even && dense { together } else { 1 };
        Ok(Store { p, out, axes, epilogue, is_part: false, together })
    }

    /// A store of the sums of a part into scratch memory, one part after the other.
    pub fn part(
        draft: &mut Draft<'_>,
        p: &'a Product<'a>,
        scratch: usize,
    ) -> Result<Self, Missing> {
        let out = draft.scratch(scratch, p.accumulate, Access::Write)?;
        let Sizes { rows, columns, .. } = p.sizes;
        let of = |size: u64, stride: u64| Axes {
            sizes: vec![size as usize],
            strides: vec![vec![stride as isize]],
        };
        // Parts of a batch are apart by all batches; the part itself is added when it is known.
        let axes = [of(p.sizes.batch, rows * columns), of(rows, columns), of(columns, 1)];
        let even = columns.is_multiple_of(2) && p.accumulate.size() <= 8;
        let vectors = draft.build.target.vector_bytes >= 2 * p.accumulate.size();
        let real = p.accumulate != DType::C64;
        let together = if even && vectors && real { 2 } else { 1 };
        Ok(Store { p, out, axes, epilogue: None, is_part: true, together })
    }

    /// Whether rows of the result, of floats, follow each other with nothing between.
    pub fn is_dense(&self, draft: &Draft<'_>) -> bool {
        let [_, rows, columns] = &self.axes;
        let count = self.p.sizes.columns as isize;
        Ty::of(draft.build.dtype(self.out.buf)) == Ty::F32
            && draft.build.dtype(self.out.buf) != DType::C64
            && self.p.sizes.batch == 1
            && matches!(rows.strides[0][..], [apart] if apart == count)
            && matches!(columns.strides[0][..], [1])
    }

    /// Writes a thread's sums.
    pub fn write(
        &self,
        draft: &mut Draft<'_>,
        hand: &Hand,
        sums: &[Vec<Var>],
        of: [Val; 2],
        starts: [Val; 2],
    ) -> Result<(), Missing> {
        let out = |draft: &mut Draft<'_>, _: [Val; 2], place: Val, numbers: &[Number]| {
            let to = draft.build.add(self.out.offset, place);
            draft.store_at(self.out, to, numbers);
        };
        self.finish_all(draft, hand, sums, of, starts, out)
    }

    /// Writes a block's sums, all columns of its `tall` rows from `start` on, where the result is
    /// dense: they are put together in `room` first, since threads have them far apart.
    pub fn write_dense(
        &self,
        draft: &mut Draft<'_>,
        hand: &Hand,
        sums: &[Vec<Var>],
        start: Val,
        (room, tall): (Shared, u32),
    ) -> Result<(), Missing> {
        let Sizes { rows, columns, .. } = self.p.sizes;
        let apart = draft.build.u32(columns as u32);
        // Nobody reads what the room was for any more.
        draft.build.barrier();
        let put = |draft: &mut Draft<'_>, [row, column]: [Val; 2], _: Val, numbers: &[Number]| {
            let to = draft.build.mul(row, apart);
            let to = draft.build.add(to, column);
            let values: Vec<Val> = numbers.iter().map(|number| number.real()).collect();
            draft.build.store_shared_vector(room, to, &values);
        };
        let zero = draft.index(0);
        self.finish_all(draft, hand, sums, [zero, zero], [start, zero], put)?;
        draft.build.barrier();
        let dtype = draft.build.dtype(self.out.buf);
        let most = (draft.build.target.vector_bytes / dtype.size()).min(4) as u64;
        let width = if (rows * columns).is_multiple_of(most) { most as u32 } else { 1 };
        let limit = draft.index(rows as i64);
        let left = draft.build.sub(limit, start);
        let left = draft.build.convert(left, Ty::U32);
        let tall = draft.build.u32(tall);
        let left = draft.build.min_int(left, tall);
        let count = draft.build.mul(left, apart);
        let (thread, threads) = (draft.build.thread(), draft.build.block_size());
        let (width_val, step) = (draft.build.u32(width), draft.build.u32(threads * width));
        let wide = draft.build.convert(apart, draft.index);
        let first = draft.build.mul(start, wide);
        let first = draft.build.add(self.out.offset, first);
        let own = draft.build.mul(thread, width_val);
        draft.range(own, count, step, |draft, at| {
            let values = draft.build.load_shared_vector(room, at, width);
            let numbers: Vec<Number> = values.into_iter().map(Number::Real).collect();
            let at = draft.build.convert(at, draft.index);
            let to = draft.build.add(first, at);
            draft.store_at(self.out, to, &numbers);
        });
        Ok(())
    }

    /// Gives a thread's finished sums to `put`, with where they are in the tile and in the result.
    fn finish_all(
        &self,
        draft: &mut Draft<'_>,
        hand: &Hand,
        sums: &[Vec<Var>],
        [batch, part]: [Val; 2],
        starts: [Val; 2],
        put: impl Fn(&mut Draft<'_>, [Val; 2], Val, &[Number]),
    ) -> Result<(), Missing> {
        let mut first = self.places(draft, 0, batch);
        if self.is_part {
            let Sizes { batch, rows, columns, .. } = self.p.sizes;
            let all = draft.index((batch * rows * columns) as i64);
            let before = draft.build.mul(part, all);
            first[0] = draft.build.add(first[0], before);
        }
        let together = self.together.min(hand.neighbours()) as usize;
        let own = [hand.rows(&mut draft.build), hand.columns(&mut draft.build)];
        let limits = [self.p.sizes.rows, self.p.sizes.columns];
        // Where every row and column is, and whether it is there. The others stand in the first
        // one's place, so that nothing has to be asked before something is loaded.
        let [rows, columns] = [0, 1].map(|which: usize| -> Vec<(Vec<Val>, Val)> {
            (own[which].iter())
                .map(|&own| {
                    let wide = draft.build.convert(own, draft.index);
                    let at = draft.build.add(starts[which], wide);
                    let limit = draft.index(limits[which] as i64);
                    let valid = draft.build.lt(at, limit);
                    let at = draft.build.select(valid, at, starts[which]);
                    (self.places(draft, which + 1, at), valid)
                })
                .collect()
        });
        for (i, (row, row_there)) in rows.iter().enumerate() {
            let row: Vec<Val> =
                row.iter().zip(&first).map(|(&a, &b)| draft.build.add(a, b)).collect();
            for (j, neighbours) in columns.chunks(together).enumerate() {
                let mut numbers = Vec::new();
                let mut to = None;
                for (n, (column, _)) in neighbours.iter().enumerate() {
                    let places: Vec<Val> =
                        row.iter().zip(column).map(|(&a, &b)| draft.build.add(a, b)).collect();
                    let sum = &sums[hand.sum(i, j * together + n)];
                    let sum = draft.build.get_number(sum);
                    numbers.push(self.finished(draft, sum, &places[1..])?);
                    to.get_or_insert(places[0]);
                }
                let there = draft.build.and(*row_there, neighbours[0].1);
                draft.build.open_when();
                if let Some(to) = to {
                    put(draft, [own[0][i], own[1][j * together]], to, &numbers);
                }
                draft.build.close_when(there);
            }
        }
        Ok(())
    }

    /// Where a batch, row or column is, in the result and in what the epilogue reads.
    fn places(&self, draft: &mut Draft<'_>, which: usize, index: Val) -> Vec<Val> {
        let axes = &self.axes[which];
        let index = draft.unflatten(index, &axes.sizes);
        (axes.strides.iter())
            .map(|strides| {
                let zero = draft.index(0);
                draft.place(zero, &index, strides)
            })
            .collect()
    }

    /// A sum as an element of the result, with the epilogue's inputs at `places`.
    fn finished(
        &self,
        draft: &mut Draft<'_>,
        sum: Number,
        places: &[Val],
    ) -> Result<Number, Missing> {
        if self.is_part {
            return Ok(sum);
        }
        // Sums of integers wrap in the width of the result.
        let dtype = draft.build.dtype(self.out.buf);
        let value = draft.build.cast(sum, self.p.accumulate, dtype);
        let Some((epilogue, views, scalars)) = &self.epilogue else { return Ok(value) };
        let mut inputs = vec![value];
        for (view, &place) in views.iter().zip(places) {
            let at = draft.build.add(view.offset, place);
            inputs.push(draft.build.load_number(view.buf, at));
        }
        let registers = draft.run(&epilogue.body, &inputs, scalars)?;
        Ok(registers[usize::from(epilogue.body.outputs[0])])
    }

    /// Writes one element, whose sum a thread of another launch has finished.
    fn write_one(
        &self,
        draft: &mut Draft<'_>,
        sum: Number,
        index: [Val; 3],
    ) -> Result<(), Missing> {
        let mut places = self.places(draft, 0, index[0]);
        for (which, index) in index.into_iter().enumerate().skip(1) {
            let more = self.places(draft, which, index);
            places = places.iter().zip(more).map(|(&a, b)| draft.build.add(a, b)).collect();
        }
        let value = self.finished(draft, sum, &places[1..])?;
        let to = draft.build.add(self.out.offset, places[0]);
        draft.build.store_number(self.out.buf, to, value);
        Ok(())
    }
}

/// Splits the number of an element of the result into batch, row and column.
fn split(draft: &mut Draft<'_>, at: Val, sizes: Sizes) -> [Val; 3] {
    let place = draft.unflatten(at, &[sizes.batch, sizes.rows, sizes.columns].map(|n| n as usize));
    [place[0], place[1], place[2]]
}

/// The launch that stores what is left of sums of nothing.
pub fn sums_of_nothing(
    p: &Product<'_>,
    segment: &Segment,
    target: &Target,
) -> Result<Launch, Missing> {
    let mut draft = Draft::new("zeros", BLOCK, segment, target)?;
    let store = Store::finish(&mut draft, p, segment)?;
    let total = p.sizes.batch * p.sizes.rows * p.sizes.columns;
    let mut failed = Ok(());
    draft.each(total, |draft, at| {
        let index = split(draft, at, p.sizes);
        let zero = draft.build.number(0, p.accumulate);
        failed = store.write_one(draft, zero, index);
    });
    failed?;
    Ok(draft.launch_over(total))
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
    let mut draft = Draft::new("add_parts", BLOCK, segment, target)?;
    let sums = draft.bind(Place::Scratch(scratch), p.accumulate, Access::Read)?;
    let store = Store::finish(&mut draft, p, segment)?;
    let total = p.sizes.batch * p.sizes.rows * p.sizes.columns;
    let each = BLOCK / lanes;
    let shared: Vec<Shared> = match lanes {
        1 => Vec::new(),
        _ => {
            let zero = draft.build.number(0, p.accumulate);
            zero.parts().map(|v| draft.build.shared(v.ty, BLOCK)).collect()
        }
    };
    let groups = total.div_ceil(u64::from(each));
    let mut failed = Ok(());
    draft.blocks(groups, |draft, group| {
        let (thread, each_val) = (draft.build.thread(), draft.build.u32(each));
        let (own, lane) = (draft.build.rem(thread, each_val), draft.build.div(thread, each_val));
        let (own, first) =
            (draft.build.convert(own, draft.index), draft.build.convert(lane, draft.index));
        let start = draft.index(i64::from(each));
        let start = draft.build.mul(group, start);
        let at = draft.build.add(start, own);
        let all = draft.index(total as i64);
        let there = draft.build.lt(at, all);
        let zero = draft.build.number(0, p.accumulate);
        let sum: Vec<Var> = zero.parts().map(|v| draft.build.var(v)).collect();
        let add = |draft: &mut Draft<'_>, more: Vec<Val>| {
            for (&var, v) in sum.iter().zip(more) {
                let old = draft.build.get(var);
                let new = draft.build.add(old, v);
                draft.build.set(var, new);
            }
        };
        let (parts, step) = (draft.index(parts as i64), draft.index(i64::from(lanes)));
        draft.build.open_when();
        draft.range(first, parts, step, |draft, part| {
            let place = draft.build.mul(part, all);
            let place = draft.build.add(place, at);
            let more = draft.build.load_number(sums, place);
            add(draft, more.parts().collect());
        });
        draft.build.close_when(there);
        let mut ends = there;
        if lanes > 1 {
            let b = &mut draft.build;
            b.barrier();
            for (&shared, &var) in shared.iter().zip(&sum) {
                let value = b.get(var);
                b.store_shared(shared, thread, value);
            }
            b.barrier();
            ends = b.lt(thread, each_val);
            ends = b.and(ends, there);
        }
        draft.build.open_when();
        for lane in 1..lanes {
            let away = draft.build.u32(lane * each);
            let from = draft.build.add(thread, away);
            let more = shared.iter().map(|&s| draft.build.load_shared(s, from)).collect();
            add(draft, more);
        }
        let sum = draft.build.get_number(&sum);
        let index = split(draft, at, p.sizes);
        failed = store.write_one(draft, sum, index);
        draft.build.close_when(ends);
    });
    failed?;
    let grid = groups.clamp(1, u64::from(target.max_blocks)) as u32;
    Ok(draft.launch([grid, 1]))
}
