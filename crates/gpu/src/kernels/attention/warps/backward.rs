//! The cotangents of queries, keys and values.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{AttentionGrad, AttentionMaskKind};

use super::super::backward::{Given, gather_rows};
use super::super::{Operand, Words, sizes};
use super::{BLOCK, LOG2_E, Row, Tile, WARPS, Warps, cut};
use crate::ir::{Target, Ty, Val, Var};
use crate::kernels::view::View;
use crate::kernels::{BufferRef, Draft, Missing, Program};

/// What is known of a row: its largest score to the base of 2, 1 over its sum, the same or 0 where it sees
/// no key, and Σ out·ct.
const KNOWN: u32 = 4;

/// Adds the launches of a gradient.
pub fn backward(
    program: &mut Program,
    grad: &AttentionGrad,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let s = sizes(segment)?;
    program.scratch.push(KNOWN as usize * s.batch * s.heads * s.queries * 4);
    let scratch = program.scratch.len() - 1;
    let is_added =
        grad.scores.mask == AttentionMaskKind::Array && segment.inputs[3].aval.dtype != DType::Bool;
    gather_rows(program, segment, target, scratch, |k, [largest, total, sum]| {
        let sees_none = largest.eq(f32::MIN);
        let weight = k.f32(1.0) / total;
        let slope = if is_added { weight } else { sees_none.select(0.0f32, weight) };
        vec![sees_none.select(f32::MIN, largest * LOG2_E), weight, slope, sum]
    })?;
    to_queries(program, grad, segment, target, scratch)?;
    to_keys(program, grad, segment, target, scratch)
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
    let rows = s.heads / s.groups * s.queries;
    let (wide, _) = cut(segment.inputs[0].aval.dtype, &s);
    let tiles = rows.div_ceil((WARPS * 16) as usize);
    let blocks = (s.batch * s.groups * tiles) as u64;
    let k = Draft::new("attention_queries", BLOCK, segment, target)?;
    let given = Given::new(&k, grad, segment, scratch);
    let out = k.output(segment, 0);
    let tiles = k.extent(tiles);
    let ct = segment.inputs.len() - 1;
    let words = Words::new(&k, &s);
    let w = Warps::new(&k, [1, wide], &grad.scores, words, segment, &[0, 1, 2, ct]);
    k.assume(BufferRef::Output(0), w.together);
    let [own, own_ct] = [s.features, s.values].map(|columns| w.tile(w.tall(), columns, 1));
    let [keys, values] = [s.features, s.values].map(|columns| w.tile(wide, columns, 2));
    w.clear(&[(own, 1), (own_ct, 1), (keys, 2), (values, 2)]);
    k.blocks(blocks, |number| {
        k.barrier();
        let (tile, of_all) = (number % tiles, number / tiles);
        let group = [of_all / w.sizes.groups, of_all % w.sizes.groups];
        let tile = if w.mask == AttentionMaskKind::Causal { tiles - 1 - tile } else { tile };
        let first = tile * w.tall();
        let place = [group[0], group[1], first];
        w.fetch_rows(&own, &given.q, place);
        w.fetch_rows(&own_ct, &given.ct, place);
        let rows = w.asked(place, given.mask);
        let known: Vec<Vec<Val<'_>>> = (rows.iter())
            .map(|row| {
                let number = first + k.as_index(row.number);
                let number = number.lt(w.sizes.rows).select(number, w.sizes.rows - 1);
                let at = (of_all * w.sizes.rows + number) * KNOWN;
                given.known.buf.load_vector(at, KNOWN)
            })
            .collect();
        let sums = w.zeros(own.columns);
        let (from, _) = w.sizes.queries(&k, first, w.tall());
        let fetch = |key, copy| {
            w.fetch_run(&keys, copy, &given.keys, group, [key, w.sizes.keys]);
            w.fetch_run(&values, copy, &given.values, group, [key, w.sizes.keys]);
        };
        let end = w.sizes.end(&k, w.mask, first, w.tall());
        w.ahead([k.index(0), end], fetch, |key, copy| {
            let scores = w.agree(&own, &keys, copy * keys.len());
            let back = w.agree(&own_ct, &values, copy * values.len());
            for score in &scores {
                score.set(score.get() * w.factor);
            }
            let columns = w.columns(wide);
            k.when(w.is_partial(key, wide, from), || {
                for (i, row) in rows.iter().enumerate() {
                    for (j, &column) in columns.iter().enumerate() {
                        let score = w.sum(&scores, i, j);
                        let key = key + k.as_index(column);
                        let masked = w.masked(score.get(), row, key, given.mask);
                        score.set(key.lt(w.sizes.keys).select(masked, f32::NEG_INFINITY));
                    }
                }
            });
            for (i, known) in known.iter().enumerate() {
                for j in 0..columns.len() {
                    let score = w.sum(&scores, i, j);
                    let weight = (score.get() - known[0]).exp2() * known[2];
                    score.set(weight * (w.sum(&back, i, j).get() - known[3]));
                }
            }
            let slopes = w.weights(|i, j| w.sum(&scores, i, j).get());
            w.weigh(&sums, &slopes, &keys, copy * keys.len());
        });
        let limits = [w.sizes.rows, w.sizes.features];
        let token = |row| w.sizes.token(group, row);
        w.store((&sums, own.columns), &out, first, limits, Some(w.scale), token);
    });
    program.launches.push(k.launch_blocks(blocks)?);
    Ok(())
}

/// Adds the launch for keys and values: a block some keys, which go through the rows of each head.
fn to_keys(
    program: &mut Program,
    grad: &AttentionGrad,
    segment: &Segment,
    target: &Target,
    scratch: usize,
) -> Result<(), Missing> {
    let s = sizes(segment)?;
    let (wide, _) = cut(segment.inputs[0].aval.dtype, &s);
    let tiles = s.keys.div_ceil((WARPS * 16) as usize);
    let blocks = (s.batch * s.groups * tiles) as u64;
    let k = Draft::new("attention_keys", BLOCK, segment, target)?;
    let given = Given::new(&k, grad, segment, scratch);
    let outputs = [k.output(segment, 1), k.output(segment, 2)];
    let tiles = k.extent(tiles);
    let ct = segment.inputs.len() - 1;
    let words = Words::new(&k, &s);
    let w = Warps::new(&k, [1, wide], &grad.scores, words, segment, &[0, 1, 2, ct]);
    [1, 2].into_iter().for_each(|n| k.assume(BufferRef::Output(n), w.together));
    let [own, own_values] = [s.features, s.values].map(|columns| w.tile(w.tall(), columns, 1));
    let [q, ct] = [s.features, s.values].map(|columns| w.tile(wide, columns, 2));
    let known = k.shared(Ty::F32, wide * KNOWN * 2);
    w.clear(&[(own, 1), (own_values, 1), (q, 2), (ct, 2)]);
    k.blocks(blocks, |number| {
        k.barrier();
        let (tile, of_all) = (number % tiles, number / tiles);
        let [batch, group] = [of_all / w.sizes.groups, of_all % w.sizes.groups];
        let start = tile * w.tall();
        let keys = [start, w.sizes.keys];
        w.fetch_run(&own, k.u32(0), &given.keys, [batch, group], keys);
        w.fetch_run(&own_values, k.u32(0), &given.values, [batch, group], keys);
        let sums = [w.zeros(own.columns), w.zeros(own_values.columns)];
        let begin = w.sizes.begin(&k, w.mask, start);
        let queries = w.sizes.queries;
        k.count(w.sizes.heads, |head_of_group| {
            // What the head before left is read no more.
            k.barrier();
            let head = group * w.sizes.heads + head_of_group;
            let row = (batch * w.sizes.groups * w.sizes.heads + head) * queries;
            let fetch = |first: Val<'_>, copy: Val<'_>| {
                w.fetch_run(&q, copy, &given.q, [batch, head], [first, queries]);
                w.fetch_run(&ct, copy, &given.ct, [batch, head], [first, queries]);
                k.when(w.thread.lt(wide), || {
                    let at = first + k.as_index(w.thread);
                    let at = row + at.lt(queries).select(at, queries - 1);
                    let to = (copy * wide + w.thread) * KNOWN;
                    k.copy(known, to, given.known.buf, at * KNOWN);
                });
            };
            w.ahead([begin, queries], fetch, |first, copy| {
                let scores = w.agree(&own, &q, copy * q.len());
                let back = w.agree(&own_values, &ct, copy * ct.len());
                for score in &scores {
                    score.set(score.get() * w.factor);
                }
                let (rows, columns) = (w.rows(), w.columns(wide));
                let is_partial = w.is_partial(start, w.tall(), first) | (first + wide).gt(queries);
                k.when(is_partial, || {
                    for (j, &column) in columns.iter().enumerate() {
                        let query = first + k.as_index(column);
                        let mask = given.mask.map(|Operand { view, strides }| {
                            // Past the end nobody looks at what comes out.
                            let query = query.lt(queries).select(query, k.index(0));
                            view.offset
                                + batch * strides[0]
                                + head * strides[1]
                                + query * strides[2]
                        });
                        let row = Row { number: column, query, mask };
                        for (i, &key) in rows.iter().enumerate() {
                            let score = w.sum(&scores, i, j);
                            let key = start + k.as_index(key);
                            let masked = w.masked(score.get(), &row, key, given.mask);
                            score.set(query.lt(queries).select(masked, f32::NEG_INFINITY));
                        }
                    }
                });
                for (j, &column) in columns.iter().enumerate() {
                    let known = known.load_vector((copy * wide + column) * KNOWN, KNOWN);
                    for i in 0..rows.len() {
                        let (score, back) = (w.sum(&scores, i, j), w.sum(&back, i, j));
                        let weight = (score.get() - known[0]).exp2();
                        back.set(weight * known[2] * (back.get() - known[3]));
                        score.set(weight * known[1]);
                    }
                }
                let weights = w.weights(|i, j| w.sum(&scores, i, j).get());
                w.weigh(&sums[1], &weights, &ct, copy * ct.len());
                let slopes = w.weights(|i, j| w.sum(&back, i, j).get());
                w.weigh(&sums[0], &slopes, &q, copy * q.len());
            });
        });
        let wide = [(w.sizes.features, Some(w.scale)), (w.sizes.values, None)];
        let tiles: [&Tile; 2] = [&own, &own_values];
        for (n, (width, scale)) in wide.into_iter().enumerate() {
            let limits = [w.sizes.keys, width];
            let token = |key| w.sizes.key_token([batch, group], key);
            w.store((&sums[n], tiles[n].columns), &outputs[n], start, limits, scale, token);
        }
    });
    program.launches.push(k.launch_blocks(blocks)?);
    Ok(())
}

impl<'k> Warps<'k> {
    /// Stores sums, each `scale` times, of rows from `first` on of a group, which has so many rows and
    /// columns; `token` says where a row lies in the output.
    fn store(
        &self,
        (sums, columns): (&[Var<'k>], u32),
        out: &View<'k>,
        first: Val<'k>,
        [rows, width]: [Val<'k>; 2],
        scale: Option<Val<'k>>,
        token: impl Fn(Val<'k>) -> Val<'k>,
    ) {
        let k = self.k;
        for (i, &row) in self.rows().iter().enumerate() {
            let row = first + k.as_index(row);
            k.when(row.lt(rows), || {
                for (j, column) in self.columns(columns).chunks_exact(2).enumerate() {
                    let column = k.as_index(column[0]);
                    k.when(column.lt(width), || {
                        let both = [0, 1].map(|c| {
                            let sum = self.sum(sums, i, j * 2 + c).get();
                            scale.map_or(sum, |scale| sum * scale).rounded(out.buf.dtype)
                        });
                        let place = token(row) * width + column;
                        out.buf.store_vector(out.offset + place, &both);
                    });
                }
            });
        }
    }
}
