//! Operands of four axes, and how slices of them come into shared memory.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::AttentionMaskKind;

use super::{BLOCK, Writer, at};
use crate::ir::{Shared, Val};
use crate::kernels::Draft;
use crate::kernels::view::View;

/// An operand of four axes, its strides arguments.
#[derive(Clone, Copy)]
pub(super) struct Operand<'k> {
    pub(super) view: View<'k>,
    pub(super) strides: [Val<'k>; 4],
}

/// What a block knows of some rows: where each is in the operands, and its query.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) q: Shared,
    pub(super) ct: Option<Shared>,
    pub(super) mask: Option<Shared>,
    pub(super) query: Shared,
}

impl Draft {
    /// Input `number` of `segment`, of four axes or fewer; the strides of the others, and along an axis of
    /// size 1, are 0.
    pub(super) fn operand(&self, segment: &Segment, number: usize) -> Operand<'_> {
        let input = &segment.inputs[number];
        let strides = std::array::from_fn(|axis| match input.aval.shape.get(axis) {
            None | Some(1) => self.extent(0),
            Some(_) => self.extent(input.strides[axis] as i64),
        });
        Operand { view: self.input(segment, number), strides }
    }
}

impl Draft {
    /// Input `number` of `segment`, a row a token, read as queries are: heads before tokens.
    pub(super) fn tokens(&self, segment: &Segment, number: usize) -> Operand<'_> {
        let Operand { view, strides: [batch, token, head, column] } = self.operand(segment, number);
        Operand { view, strides: [batch, head, token, column] }
    }
}

impl<'k> Writer<'k> {
    /// Shared memory for what a block knows of so many rows.
    pub(super) fn places(&self, rows: u32, has_ct: bool) -> Places {
        let array = || self.k.shared(self.k.index, rows);
        Places {
            q: array(),
            ct: has_ct.then(array),
            mask: (self.mask == AttentionMaskKind::Array).then(array),
            query: array(),
        }
    }

    /// Finds the places of `count` rows of a group from `first` on; past the end, of the first.
    pub(super) fn find(
        &self,
        places: &Places,
        count: u32,
        [batch, group, first]: [Val<'k>; 3],
        [q, ct, mask]: [Option<Operand<'k>>; 3],
    ) {
        let (k, s) = (self.k, &self.sizes);
        k.when(self.thread.lt(count), || {
            let row = first + k.as_index(self.thread);
            let row = row.lt(s.rows).select(row, k.index(0));
            let (head, query) = (group * s.heads + row / s.queries, row % s.queries);
            places.query.store(self.thread, query);
            let arrays = [Some(places.q), places.ct, places.mask];
            for (array, operand) in arrays.into_iter().zip([q, ct, mask]) {
                if let (Some(array), Some(Operand { view, strides })) = (array, operand) {
                    let place = batch * strides[0] + head * strides[1] + query * strides[2];
                    array.store(self.thread, view.offset + place);
                }
            }
        });
    }

    /// Brings a slice into shared memory: `elements` gives the neighbours, as many as are moved together,
    /// from a row and depth on.
    pub(super) fn bring(
        &self,
        which: usize,
        [rows, depth]: [u32; 2],
        along_depth: bool,
        elements: impl Fn(Val<'k>, Val<'k>) -> Vec<Val<'k>>,
    ) {
        let (k, count) = (self.k, self.together);
        let lay = self.cut.lay(rows, depth, along_depth);
        let find = |number: Val<'k>| {
            let (row, deep) = match along_depth {
                true => (number / (depth / count), number % (depth / count) * count),
                false => (number % (rows / count) * count, number / (rows / count)),
            };
            (at(&lay, row, deep), elements(row, deep))
        };
        let put = |(place, values): (Val<'k>, Vec<Val<'k>>)| {
            let cut_off = |value| if self.cut.cuts { self.cut_off(value) } else { value };
            let values: Vec<Val<'k>> = values.into_iter().map(cut_off).collect();
            match values[..] {
                [value] => self.factors[which].store(place, value),
                _ => (values.chunks(4).enumerate()).for_each(|(i, four)| {
                    self.factors[which].store_vector(place + i as u32 * 4, four);
                }),
            }
        };
        let vectors = rows * depth / count;
        match vectors / BLOCK {
            0 => k.when(self.thread.lt(vectors), || put(find(self.thread))),
            each => {
                // All are asked for before the first is waited for.
                let found: Vec<_> = (0..each).map(|i| find(self.thread + i * BLOCK)).collect();
                found.into_iter().for_each(put);
            }
        }
    }

    /// An operand's element as matrix units read it.
    pub(super) fn cut_off(&self, value: Val<'k>) -> Val<'k> {
        if self.dtype == DType::F32 { value.tf32() } else { value }
    }

    /// The neighbours of `operand` at `place`, 0 where they are not there.
    fn load(&self, operand: &Operand<'k>, place: Val<'k>, there: Val<'k>) -> Vec<Val<'k>> {
        let place = there.select(place, operand.view.offset);
        let values = match self.together {
            1 => vec![operand.view.buf.load(place)],
            count => operand.view.buf.load_vector(place, count),
        };
        values.into_iter().map(|value| there.select(value, 0.0f32)).collect()
    }

    /// What finds neighbours of the rows at `places`, the first of which is `first`, by row and feature.
    pub(super) fn rows(
        &self,
        operand: Operand<'k>,
        places: Shared,
        first: Val<'k>,
        features: Val<'k>,
    ) -> impl Fn(Val<'k>, Val<'k>) -> Vec<Val<'k>> {
        move |row, feature| {
            let place = places.load(row) + feature * operand.strides[3];
            let there = feature.lt(features) & (first + self.k.as_index(row)).lt(self.sizes.rows);
            self.load(&operand, place, there)
        }
    }

    /// The same of keys, or of their values, from key `first` on.
    pub(super) fn keys(
        &self,
        operand: Operand<'k>,
        [batch, group]: [Val<'k>; 2],
        first: Val<'k>,
        features: Val<'k>,
    ) -> impl Fn(Val<'k>, Val<'k>) -> Vec<Val<'k>> {
        let Operand { view, strides } = operand;
        move |row, feature| {
            let key = first + self.k.as_index(row);
            let start = view.offset + batch * strides[0] + group * strides[1];
            let place = start + key * strides[2] + feature * strides[3];
            self.load(&operand, place, feature.lt(features) & key.lt(self.sizes.keys))
        }
    }
}
