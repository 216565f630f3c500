//! The cotangents of queries, keys and values.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{AttentionGrad, AttentionMaskKind};

use super::{BLOCK, Cut, Operand, Places, Writer, sizes};
use crate::ir::{Access, Math, NumberVar, Target, Val};
use crate::kernels::view::{View, side_by_side};
use crate::kernels::{BufferRef, Draft, Missing, Program};

/// Adds the launches of a gradient.
pub fn backward(
    program: &mut Program,
    grad: &AttentionGrad,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let s = sizes(segment)?;
    program.scratch.push(3 * s.batch * s.heads * s.queries * 4);
    let scratch = program.scratch.len() - 1;
    gather_rows(program, segment, target, scratch, |k, [largest, total, sum]| {
        vec![largest, k.f32(1.0) / total, sum]
    })?;
    to_queries(program, grad, segment, target, scratch)?;
    to_keys(program, grad, segment, target, scratch)
}

/// Adds the launch that brings together what `known` makes of each row's two numbers and Σ out·ct.
pub(super) fn gather_rows(
    program: &mut Program,
    segment: &Segment,
    target: &Target,
    scratch: usize,
    known: impl for<'k> Fn(&'k Draft, [Val<'k>; 3]) -> Vec<Val<'k>>,
) -> Result<(), Missing> {
    let s = sizes(segment)?;
    let k = Draft::new("attention_rows", BLOCK, segment, target)?;
    let first = segment.inputs.len() - 4;
    let inputs = [0, 1].map(|n| k.operand(segment, first + n));
    let tokens = [2, 3].map(|n| k.tokens(segment, first + n));
    // As many neighbours at once as lie so in both.
    let most =
        if target.copies { target.vector_bytes / segment.inputs[0].aval.dtype.size() } else { 1 };
    let together =
        [2, 3].map(|n| side_by_side(&segment.inputs[first + n], 3, most.clamp(1, 8) as u32));
    let together = together[0].min(together[1]);
    [2, 3].into_iter().for_each(|n| k.assume(BufferRef::Input(first + n), together));
    let width = k.extent(s.values);
    let to = k.scratch(scratch, DType::F32, Access::Write);
    let (heads, queries) = (k.extent(s.heads), k.extent(s.queries));
    let count = (s.batch * s.heads * s.queries) as u64;
    k.each(count, |row| {
        let (query, head) = (row % queries, row / queries);
        let (head, batch) = (head % heads, head / heads);
        let values = inputs.each_ref().map(|Operand { view, strides }| {
            let place = batch * strides[0] + head * strides[1] + query * strides[2];
            view.buf.load(view.offset + place)
        });
        let starts = tokens.each_ref().map(|Operand { view, strides }| {
            view.offset + batch * strides[0] + head * strides[1] + query * strides[2]
        });
        let sum = k.var(k.f32(0.0));
        k.range(k.index(0), width, together, |column| {
            let [out, ct] = [0, 1].map(|n| {
                let (buf, place) = (tokens[n].view.buf, starts[n] + column * tokens[n].strides[3]);
                if together == 1 { vec![buf.load(place)] } else { buf.load_vector(place, together) }
            });
            for (out, ct) in out.into_iter().zip(ct) {
                sum.set(sum.get() + out * ct);
            }
        });
        let known = known(&k, [values[0], values[1], sum.get()]);
        let start = row * known.len() as u32;
        (0..).zip(known).for_each(|(n, value): (u32, _)| to.buf.store(start + n, value));
    });
    program.launches.push(k.launch_over(count)?);
    Ok(())
}

/// What both passes read.
pub(super) struct Given<'k> {
    pub q: Operand<'k>,
    pub keys: Operand<'k>,
    pub values: Operand<'k>,
    pub mask: Option<Operand<'k>>,
    pub ct: Operand<'k>,
    /// What [`gather_rows`] left.
    pub known: View<'k>,
}

impl<'k> Given<'k> {
    pub fn new(k: &'k Draft, grad: &AttentionGrad, segment: &Segment, scratch: usize) -> Self {
        let [q, keys, values] = [0, 1, 2].map(|n| k.operand(segment, n));
        let mask = (grad.scores.mask == AttentionMaskKind::Array).then(|| k.operand(segment, 3));
        let ct = k.tokens(segment, segment.inputs.len() - 1);
        Given { q, keys, values, mask, ct, known: k.scratch(scratch, DType::F32, Access::Read) }
    }

    /// The weight of a key for a row, and the slope of their score, from the products of query and key and
    /// of cotangent and value; 0 where one of them is not there.
    fn slope(
        &self,
        w: &Writer<'k>,
        [agree, back]: [Val<'k>; 2],
        (places, row, number): (&Places, Val<'k>, Val<'k>),
        key: Val<'k>,
        there: Val<'k>,
    ) -> [Val<'k>; 2] {
        let (score, depends) = w.score(agree, (places, row), key, self.mask);
        let place = there.select(number, w.k.index(0)) * 3;
        let of_row = |n: u32| self.known.buf.load(place + n);
        let weight = (score - of_row(0)).math(Math::Exp) * of_row(1);
        let slope = weight * (back - of_row(2));
        let slope = depends.map_or(slope, |depends| depends.select(slope, 0.0f32));
        [weight, slope].map(|value| there.select(value, 0.0f32))
    }
}

/// Adds the launch for the queries: a block some rows, which go through the keys.
fn to_queries(
    program: &mut Program,
    grad: &AttentionGrad,
    segment: &Segment,
    target: &Target,
    scratch: usize,
) -> Result<(), Missing> {
    let s = sizes(segment)?;
    let dtype = segment.inputs[0].aval.dtype;
    let rows = s.heads / s.groups * s.queries;
    let cut = Cut::of(dtype, rows, s.features, target);
    let tiles = rows.div_ceil(cut.tall as usize);
    let blocks = s.batch * s.groups * tiles;
    let k = Draft::new("attention_queries", BLOCK, segment, target)?;
    let given = Given::new(&k, grad, segment, scratch);
    let out = k.output(segment, 0);
    let tiles = k.extent(tiles);
    let ct = segment.inputs.len() - 1;
    let w = Writer::new(&k, cut, &grad.scores, &s, segment, &[0, 1, 2, ct]);
    let places = w.places(cut.tall, true);
    w.blocks(blocks, |number| {
        let (tile, of_all) = (number % tiles, number / tiles);
        let group = [of_all / w.sizes.groups, of_all % w.sizes.groups];
        let first = tile * cut.tall;
        let operands = [Some(given.q), Some(given.ct), given.mask];
        w.find(&places, cut.tall, [group[0], group[1], first], operands);
        let sums = w.columns(s.features);
        k.range(k.index(0), w.sizes.end(&k, w.mask, first, cut.tall), cut.wide, |key| {
            let (features, values) = (w.sizes.features, w.sizes.values);
            let cts = places.ct.unwrap_or(places.q);
            let q = w.rows(given.q, places.q, first, features);
            let keys = w.keys(given.keys, group, key, features);
            let ct = w.rows(given.ct, cts, first, values);
            let agree = w.agree(features, [&q, &keys]);
            let back = w.agree(values, [&ct, &w.keys(given.values, group, key, values)]);
            w.each_pair(&agree, &back, |row, column, products| {
                let (own, key) = (first + k.as_index(row), key + k.as_index(column));
                let there = own.lt(w.sizes.rows) & key.lt(w.sizes.keys);
                let number = of_all * w.sizes.rows + own;
                let [_, slope] = given.slope(&w, products, (&places, row, number), key, there);
                w.put(row, column, slope);
            });
            w.weigh(&sums, &keys);
        });
        w.each_sum(&sums, |row, column, sum| {
            let (own, column) = (first + k.as_index(row), k.as_index(column));
            k.when(own.lt(w.sizes.rows) & column.lt(w.sizes.features), || {
                let place = w.sizes.token(group, own) * w.sizes.features + column;
                out.buf.store(out.offset + place, (sum.re.get() * w.scale).rounded(dtype));
            });
        });
    });
    program.launches.push(k.launch_blocks(blocks as u64)?);
    Ok(())
}

/// Adds the launch for keys and values: a block some keys, which go through the rows.
fn to_keys(
    program: &mut Program,
    grad: &AttentionGrad,
    segment: &Segment,
    target: &Target,
    scratch: usize,
) -> Result<(), Missing> {
    let s = sizes(segment)?;
    let dtype = segment.inputs[0].aval.dtype;
    let cut = Cut::of(dtype, s.keys, s.features.max(s.values), target);
    let tiles = s.keys.div_ceil(cut.tall as usize);
    let blocks = s.batch * s.groups * tiles;
    let k = Draft::new("attention_keys", BLOCK, segment, target)?;
    let given = Given::new(&k, grad, segment, scratch);
    let outputs = [k.output(segment, 1), k.output(segment, 2)];
    let tiles = k.extent(tiles);
    let ct = segment.inputs.len() - 1;
    let w = Writer::new(&k, cut, &grad.scores, &s, segment, &[0, 1, 2, ct]);
    let places = w.places(cut.wide, true);
    w.blocks(blocks, |number| {
        let (tile, of_all) = (number % tiles, number / tiles);
        let group = [of_all / w.sizes.groups, of_all % w.sizes.groups];
        let start = tile * cut.tall;
        let sums = [w.columns(s.features), w.columns(s.values)];
        k.range(k.index(0), w.sizes.rows, cut.wide, |first| {
            let is_seen = (grad.scores.mask == AttentionMaskKind::Causal).then(|| {
                let (from, to) = w.sizes.queries(&k, first, cut.wide);
                let sees_none = (from + w.sizes.keys).lt(w.sizes.queries);
                sees_none | (start + w.sizes.queries).le(to + w.sizes.keys)
            });
            k.when_any(is_seen, || {
                // Where the rows before are is read no more.
                k.barrier();
                let operands = [Some(given.q), Some(given.ct), given.mask];
                w.find(&places, cut.wide, [group[0], group[1], first], operands);
                let (features, values) = (w.sizes.features, w.sizes.values);
                let cts = places.ct.unwrap_or(places.q);
                let q = w.rows(given.q, places.q, first, features);
                let ct = w.rows(given.ct, cts, first, values);
                let agree = w.agree(features, [&w.keys(given.keys, group, start, features), &q]);
                let back = w.agree(values, [&w.keys(given.values, group, start, values), &ct]);
                let mut slopes = Vec::new();
                w.each_pair(&agree, &back, |row, column, products| {
                    let (key, own) = (start + k.as_index(row), first + k.as_index(column));
                    let there = own.lt(w.sizes.rows) & key.lt(w.sizes.keys);
                    let number = of_all * w.sizes.rows + own;
                    let of_row = (&places, column, number);
                    let [weight, slope] = given.slope(&w, products, of_row, key, there);
                    w.put(row, column, weight);
                    slopes.push((row, column, slope));
                });
                w.weigh(&sums[1], &ct);
                // The weights are read no more.
                k.barrier();
                for &(row, column, slope) in &slopes {
                    w.put(row, column, slope);
                }
                w.weigh(&sums[0], &q);
            });
        });
        let wide = [(w.sizes.features, Some(w.scale)), (w.sizes.values, None)];
        for ((out, sums), (columns, scale)) in outputs.iter().zip(&sums).zip(wide) {
            w.each_sum(sums, |row, column, sum| {
                let (key, column) = (start + k.as_index(row), k.as_index(column));
                k.when(key.lt(w.sizes.keys) & column.lt(columns), || {
                    let place = w.sizes.key_token(group, key) * columns + column;
                    let value = scale.map_or(sum.re.get(), |scale| sum.re.get() * scale);
                    out.buf.store(out.offset + place, value.rounded(dtype));
                });
            });
        }
    });
    program.launches.push(k.launch_blocks(blocks as u64)?);
    Ok(())
}

impl<'k> Writer<'k> {
    /// Calls `f` with each of the thread's pairs of sums: row, column, both sums.
    fn each_pair(
        &self,
        agree: &[NumberVar<'k>],
        back: &[NumberVar<'k>],
        mut f: impl FnMut(Val<'k>, Val<'k>, [Val<'k>; 2]),
    ) {
        let mut others = Vec::new();
        self.each_score(back, |_, _, sum| others.push(sum));
        let mut others = others.into_iter();
        self.each_score(agree, |row, column, sum| {
            if let Some(other) = others.next() {
                f(row, column, [sum, other]);
            }
        });
    }
}
