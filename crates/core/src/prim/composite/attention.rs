//! Attention and its derivative.

use smallvec::SmallVec;

use super::Compose;
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::precision::MatmulPrecision;
use crate::prim::record::{
    self, add, broadcast_back, cast, div, flatten, iota, masked, mul, reshape, scale, select,
    shift, sub, sum, transpose, unflatten, zeros,
};
use crate::prim::{
    Avals, Batched, Binary, Compare, Dot, Mark, Reduce, ReduceKind, Reverse, Tangents, Unary,
    expect_inputs,
};
use crate::shape::{Aval, Dims, Shape};

/// Which keys a query sees.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AttentionMaskKind {
    /// All of them.
    None,
    /// Those up to its own place, the last query standing at the last key.
    Causal,
    /// An input says it: bool, or a number that is added to the score. Each of its four axes is that
    /// of the scores, or 1.
    Array,
}

/// How well queries and keys agree: scale·q·kᵀ, and lowest where a query does not see a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scores {
    /// What products are multiplied by.
    pub scale: Scalar,
    /// Which keys a query sees.
    pub mask: AttentionMaskKind,
    /// How factors of `float32` may be rounded.
    pub precision: MatmulPrecision,
}

/// Values weighted by the softmax of scores.
///
/// Inputs: q `[B, H, Q, D]`, k `[B, G, K, D]`, v `[B, G, K, E]` of one dtype, where H is a multiple
/// of G; the mask, if it is one, bool or of that dtype; sinks `[B|1, H]`, if there are some, of
/// the dtype of the sums. Outputs: `[B, Q, H, E]`, the order in which the features of a token lie side by
/// side; and of each row `[B, H, Q]` two numbers that make weights of scores, exp(score − first) / second. The
/// first is the largest score, or the logarithm of the sum of all exponentials; the second is what is left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Attention {
    /// The scores.
    pub scores: Scores,
    /// Whether each head has the score of a key without a value.
    pub sinks: bool,
}

/// The cotangents of q, k and v.
///
/// Inputs: q, k, v and the mask as for [`Attention`]; its second, third and first output; the cotangent of
/// the first. Outputs: `[B, Q, H, D]`, `[B, K, G, D]` and `[B, K, G, E]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AttentionGrad {
    /// The scores.
    pub scores: Scores,
}

/// The sizes of an attention.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AttentionSizes {
    /// Examples.
    pub batch: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values: each serves heads/groups heads that follow each other.
    pub groups: usize,
    /// Queries.
    pub queries: usize,
    /// Keys.
    pub keys: usize,
    /// Features of queries and keys.
    pub features: usize,
    /// Features of values.
    pub values: usize,
}

impl AttentionSizes {
    /// The sizes of these queries, keys and values, or what does not fit.
    pub fn of(q: &Aval, k: &Aval, v: &Aval) -> std::result::Result<AttentionSizes, &'static str> {
        let (&[batch, heads, queries, features], &[_, groups, keys, _], &[_, _, _, values]) =
            (&q.shape[..], &k.shape[..], &v.shape[..])
        else {
            return Err("takes arrays of four axes");
        };
        if k.shape[3] != features {
            return Err("queries and keys differ in their last axis");
        }
        if k.shape[0] != batch || k.shape[..3] != v.shape[..3] {
            return Err("batches, or the counts of keys and values, differ");
        }
        if groups == 0 || !heads.is_multiple_of(groups) {
            return Err("the heads of queries are no multiple of those of keys");
        }
        Ok(AttentionSizes { batch, heads, groups, queries, keys, features, values })
    }

    /// The shape of the scores.
    pub fn scores(&self) -> Shape {
        Shape::from([self.batch, self.heads, self.queries, self.keys])
    }

    /// The shape of the values that queries get.
    pub fn tokens(&self) -> Shape {
        Shape::from([self.batch, self.queries, self.heads, self.values])
    }

    /// One number a query.
    fn rows(&self) -> Shape {
        Shape::from([self.batch, self.heads, self.queries])
    }

    /// The heads of a group are only more queries to its keys: `last` numbers for each of them.
    fn grouped(&self, last: usize) -> Shape {
        Shape::from([self.batch, self.groups, self.heads / self.groups * self.queries, last])
    }
}

/// The lowest number of `dtype`, the score of a key that is not seen.
pub fn lowest(dtype: DType) -> f64 {
    if dtype == DType::F64 { f64::MIN } else { f64::from(f32::MIN) }
}

impl Scores {
    fn has_mask(&self) -> bool {
        self.mask == AttentionMaskKind::Array
    }

    /// The sizes that q, k, v and the mask, if it is an input, come in.
    fn sizes(&self, name: &'static str, inputs: &[&Aval]) -> Result<AttentionSizes> {
        let [q, k, v] = [inputs[0], inputs[1], inputs[2]];
        let sizes = AttentionSizes::of(q, k, v).map_err(|detail| {
            Error::shape(name, format!("{detail} (query {q}, keys {k}, values {v})"))
        })?;
        if !q.dtype.is_float() || k.dtype != q.dtype || v.dtype != q.dtype {
            return Err(Error::dtype(
                name,
                format!("takes floats of one dtype, not query {q}, keys {k}, values {v}"),
            ));
        }
        if self.has_mask() {
            let mask = inputs[3];
            let scores = sizes.scores();
            let fits = mask.shape.rank() == 4
                && mask.shape.iter().zip(scores.iter()).all(|(&m, &s)| m == s || m == 1);
            if !fits {
                return Err(Error::shape(
                    name,
                    format!("mask {mask} does not fit scores {scores}"),
                ));
            }
            if mask.dtype != DType::Bool && mask.dtype != q.dtype {
                return Err(Error::dtype(
                    name,
                    format!("takes a mask of bool or {}, not {mask}", q.dtype),
                ));
            }
        }
        Ok(sizes)
    }

    /// About how many arithmetic operations so many products over features and values take; half where
    /// half of the keys are seen.
    fn operations(&self, inputs: &[&Aval], features: f64, values: f64) -> f64 {
        let Ok(sizes) = AttentionSizes::of(inputs[0], inputs[1], inputs[2]) else { return 0.0 };
        let seen = if self.mask == AttentionMaskKind::Causal { 0.5 } else { 1.0 };
        let width = features * sizes.features as f64 + values * sizes.values as f64;
        2.0 * seen * sizes.scores().size() as f64 * width
    }

    /// A product of operands of `dtype`, summed in its accumulator.
    fn dot(&self, a: &Array, b: &Array, result: DType) -> Result<Array> {
        let accumulate = a.dtype().accumulator();
        Array::apply(Dot { accumulate, result, precision: self.precision }, &[a, b])
    }

    /// Where a query sees a key, as bool in the shape of the scores; `None` where it sees all, or a
    /// number is added.
    fn seen(&self, sizes: &AttentionSizes, mask: Option<&Array>) -> Result<Option<Array>> {
        let shape = sizes.scores();
        match (self.mask, mask) {
            (AttentionMaskKind::Causal, _) => {
                let (queries, keys) = (sizes.queries, sizes.keys);
                let plane = Shape::from([queries, keys]);
                let place = iota(plane.clone(), DType::I32, 0)?;
                let here = shift(&place, keys as f64 - queries as f64)?;
                let seen = record::compare(Compare::Ge, &here, &iota(plane, DType::I32, 1)?)?;
                Ok(Some(record::broadcast(&record::expand_dims(&seen, &[0, 1])?, &shape)?))
            }
            (AttentionMaskKind::Array, Some(mask)) if mask.dtype() == DType::Bool => {
                record::broadcast(mask, &shape).map(Some)
            }
            (AttentionMaskKind::None | AttentionMaskKind::Array, _) => Ok(None),
        }
    }

    /// The scores in the dtype of the sums, and where a key is seen if not everywhere.
    fn record(
        &self,
        sizes: &AttentionSizes,
        [q, k]: [&Array; 2],
        mask: Option<&Array>,
    ) -> Result<(Array, Option<Array>)> {
        let wide = q.dtype().accumulator();
        let q = reshape(q, sizes.grouped(sizes.features))?;
        let scores = self.dot(&q, &turned(k)?, wide)?;
        let scores = scale(&reshape(&scores, sizes.scores())?, self.scale.to_f64())?;
        let seen = self.seen(sizes, mask)?;
        let scores = match (&seen, mask) {
            (Some(seen), _) => select(seen, &scores, &record::like(&scores, lowest(wide)))?,
            (None, Some(mask)) => {
                add(&scores, &record::broadcast(&cast(mask, wide)?, scores.shape())?)?
            }
            (None, None) => scores,
        };
        Ok((scores, seen))
    }
}

/// The last two axes swapped.
fn turned(x: &Array) -> Result<Array> {
    transpose(x, Dims::from_slice(&[0, 1, 3, 2]))
}

/// Heads and places swapped: of `[B, H, Q, E]` it is `[B, Q, H, E]`, and the other way round.
pub fn heads_last(x: &Array) -> Result<Array> {
    transpose(x, Dims::from_slice(&[0, 2, 1, 3]))
}

/// Σ out·ct of each row, `[B, H, Q]`, in the dtype of the sums.
fn agreement(out: &Array, ct: &Array) -> Result<Array> {
    let wide = ct.dtype().accumulator();
    let sums = sum(&mul(&cast(out, wide)?, &cast(ct, wide)?)?, &[3])?;
    transpose(&sums, Dims::from_slice(&[0, 2, 1]))
}

/// A number a row, for each key.
fn each_key(x: &Array, sizes: &AttentionSizes) -> Result<Array> {
    broadcast_back(x, &[3], &sizes.scores())
}

fn exp(x: &Array) -> Result<Array> {
    Array::apply(Unary::Exp, &[x])
}

/// The batch of every input merged into axis 0, where an input that is the same along it may stay so
/// if that says `shares`.
fn merged(
    inputs: &[Batched],
    size: usize,
    shares: impl Fn(usize) -> bool,
) -> Result<SmallVec<[Array; 8]>> {
    let batch = inputs[0].shape()[0];
    let one = |(n, input): (usize, &Batched)| {
        if !shares(n) || input.shape()[0] == batch {
            return flatten(&input.with_batch(size)?, 0, 1);
        }
        // One for every example.
        if !input.batched {
            return Ok(input.array.clone());
        }
        let shape = input.array.aval().shape.with(1, batch);
        flatten(&record::broadcast(&input.array, &shape)?, 0, 1)
    };
    inputs.iter().enumerate().map(one).collect()
}

/// Records a composite on inputs with merged batches, and takes those apart again.
fn over_batch(
    composite: impl Into<super::Op>,
    inputs: &[Batched],
    size: usize,
    shares: impl Fn(usize) -> bool,
) -> Result<Option<Vec<Batched>>> {
    let arrays = merged(inputs, size, shares)?;
    let refs: SmallVec<[&Array; 8]> = arrays.iter().collect();
    let batch = inputs[0].shape()[0];
    let apart = |x: &Array| Ok(Batched::each(unflatten(x, 0, &[size, batch])?));
    let outputs = Array::apply_multi(composite, &refs)?;
    outputs.iter().map(apart).collect::<Result<_>>().map(Some)
}

impl Attention {
    fn inputs(&self) -> usize {
        3 + usize::from(self.scores.has_mask()) + usize::from(self.sinks)
    }
}

impl Compose for Attention {
    fn name(&self) -> &'static str {
        "scaled_dot_product_attention"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let name = self.name();
        expect_inputs(name, inputs, self.inputs())?;
        let sizes = self.scores.sizes(name, inputs)?;
        let (dtype, wide) = (inputs[0].dtype, inputs[0].dtype.accumulator());
        if let Some(sinks) = inputs[3..].last().filter(|_| self.sinks) {
            let fits = sinks.dtype == wide
                && sinks.shape.rank() == 2
                && (sinks.shape[0] == 1 || sinks.shape[0] == sizes.batch)
                && sinks.shape[1] == sizes.heads;
            if !fits {
                let heads = sizes.heads;
                return Err(Error::shape(
                    name,
                    format!("sinks {sinks} are not one {wide} for each of {heads} heads"),
                ));
            }
        }
        let row = Aval { shape: sizes.rows(), dtype: wide };
        let out = Aval { shape: sizes.tokens(), dtype };
        Ok(vec![out, row.clone(), row].into())
    }

    fn operations(&self, inputs: &[&Aval], _: &[&Aval]) -> f64 {
        self.scores.operations(inputs, 1.0, 1.0)
    }

    fn body(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let [q, k, v] = [&inputs[0], &inputs[1], &inputs[2]];
        let avals: Vec<&Aval> = inputs.iter().map(Array::aval).collect();
        let sizes = self.scores.sizes(self.name(), &avals)?;
        let (dtype, wide) = (q.dtype(), q.dtype().accumulator());
        let rows = Aval { shape: sizes.rows(), dtype: wide };
        let outputs = self.infer(&avals)?;
        if sizes.keys == 0 {
            let one = Array::constant(1.0, rows.clone());
            return Ok(vec![zeros(&outputs[0]), zeros(&rows), one]);
        }
        let mask = self.scores.has_mask().then(|| &inputs[3]);
        let (scores, _) = self.scores.record(&sizes, [q, k], mask)?;
        let fold =
            |kind, x: &Array| Array::apply(Reduce { kind, axes: Dims::from_slice(&[3]) }, &[x]);
        let mut largest = fold(ReduceKind::Max, &scores)?;
        let sinks = match inputs.last().filter(|_| self.sinks) {
            Some(sinks) => {
                let each = Shape::from([sizes.batch, sizes.heads]);
                Some(broadcast_back(&record::broadcast(sinks, &each)?, &[2], &rows.shape)?)
            }
            None => None,
        };
        if let Some(sinks) = &sinks {
            largest = Array::apply(Binary::Maximum, &[&largest, sinks])?;
        }
        // What is taken off changes no weight, so derivatives of weights need not pass it.
        let off = Array::apply(Mark::StopGradient, &[&largest])?;
        let weights = exp(&sub(&scores, &each_key(&off, &sizes)?)?)?;
        let mut total = fold(ReduceKind::Sum, &weights)?;
        if let Some(sinks) = &sinks {
            total = add(&total, &exp(&sub(sinks, &off)?)?)?;
        }
        let weights = cast(&div(&weights, &each_key(&total, &sizes)?)?, dtype)?;
        let weights = reshape(&weights, sizes.grouped(sizes.keys))?;
        let out = Shape::from([sizes.batch, sizes.heads, sizes.queries, sizes.values]);
        let out = heads_last(&reshape(&self.scores.dot(&weights, v, dtype)?, out)?)?;
        // Times 1, for a derivative that holds for the sum alone, too.
        let total = mul(&total, &exp(&sub(&off, &largest)?)?)?;
        Ok(vec![out, largest, total])
    }

    fn vjp(&self, r: &Reverse<'_>) -> Result<Option<Tangents>> {
        let mask = self.scores.has_mask().then_some(3);
        let (Some(ct), None, None) = (&r.cotangents[0], &r.cotangents[1], &r.cotangents[2]) else {
            return Ok(None);
        };
        if mask.is_some_and(|mask| r.wanted[mask]) {
            return Ok(None);
        }
        let (out, largest, total) = (&r.outputs[0], &r.outputs[1], &r.outputs[2]);
        let mut found: Tangents = vec![None; r.inputs.len()];
        if r.wanted[..3].contains(&true) {
            let mut inputs: SmallVec<[&Array; 8]> = r.inputs[..3].iter().collect();
            inputs.extend(mask.map(|mask| &r.inputs[mask]));
            inputs.extend([largest, total, out, ct]);
            let grads = Array::apply_multi(AttentionGrad { scores: self.scores }, &inputs)?;
            for (found, grad) in found.iter_mut().zip(grads) {
                *found = Some(heads_last(&grad)?);
            }
        }
        let last = r.inputs.len() - 1;
        if self.sinks && r.wanted[last] {
            let sinks = &r.inputs[last];
            let delta = agreement(out, ct)?;
            let shape = &delta.aval().shape;
            let each = record::broadcast(sinks, &Shape::from(&shape[..2]))?;
            let shifted = sub(&broadcast_back(&each, &[2], shape)?, largest)?;
            let weight = div(&exp(&shifted)?, total)?;
            let grad = sum(&record::neg(&mul(&weight, &delta)?)?, &[2])?;
            found[last] = Some(match sinks.aval().shape[0] == shape[0] {
                true => grad,
                false => record::expand_dims(&sum(&grad, &[0])?, &[0])?,
            });
        }
        Ok(Some(found))
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Option<Vec<Batched>>> {
        over_batch(*self, inputs, size, |input| input >= 3)
    }
}

impl Compose for AttentionGrad {
    fn name(&self) -> &'static str {
        "scaled_dot_product_attention_grad"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let name = self.name();
        expect_inputs(name, inputs, 7 + usize::from(self.scores.has_mask()))?;
        let sizes = self.scores.sizes(name, inputs)?;
        let [largest, total, out, ct] = inputs[inputs.len() - 4..] else {
            return Err(Error::argument(name, "takes four inputs more"));
        };
        let dtype = inputs[0].dtype;
        let row = Aval { shape: sizes.rows(), dtype: dtype.accumulator() };
        let tokens = Aval { shape: sizes.tokens(), dtype };
        if [largest, total].iter().any(|&given| *given != row) {
            return Err(Error::shape(name, format!("rows {largest}, {total} do not fit {row}")));
        }
        if [out, ct].iter().any(|&given| *given != tokens) {
            let detail = format!("values {out} and cotangent {ct} do not fit {tokens}");
            return Err(Error::shape(name, detail));
        }
        let turned = |aval: &Aval| {
            let &[batch, heads, places, columns] = &aval.shape[..] else { return aval.clone() };
            Aval { shape: Shape::from([batch, places, heads, columns]), dtype }
        };
        Ok(inputs[..3].iter().map(|&aval| turned(aval)).collect())
    }

    fn operations(&self, inputs: &[&Aval], _: &[&Aval]) -> f64 {
        self.scores.operations(inputs, 3.0, 2.0)
    }

    fn body(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let [q, k, v] = [&inputs[0], &inputs[1], &inputs[2]];
        let avals: Vec<&Aval> = inputs.iter().map(Array::aval).collect();
        let sizes = self.scores.sizes(self.name(), &avals)?;
        let [largest, total, out, ct] = &inputs[inputs.len() - 4..] else {
            return Err(Error::argument(self.name(), "takes four inputs more"));
        };
        let delta = &agreement(out, ct)?;
        let (dtype, wide) = (q.dtype(), q.dtype().accumulator());
        let mask = self.scores.has_mask().then(|| &inputs[3]);
        let (scores, seen) = self.scores.record(&sizes, [q, k], mask)?;
        let weights = exp(&sub(&scores, &each_key(largest, &sizes)?)?)?;
        let weights = div(&weights, &each_key(total, &sizes)?)?;
        let ct = reshape(&heads_last(ct)?, sizes.grouped(sizes.values))?;
        let back = reshape(&self.scores.dot(&ct, &turned(v)?, wide)?, sizes.scores())?;
        let slope = mul(&weights, &sub(&back, &each_key(delta, &sizes)?)?)?;
        // A score that is not seen is a constant.
        let slope = match &seen {
            Some(seen) => masked(seen, &slope)?,
            None => slope,
        };
        let grouped = |x: &Array| reshape(&cast(x, dtype)?, sizes.grouped(sizes.keys));
        let slope = grouped(&scale(&slope, self.scores.scale.to_f64())?)?;
        let rows = reshape(q, sizes.grouped(sizes.features))?;
        let to_q = self.scores.dot(&slope, k, dtype)?;
        Ok(vec![
            heads_last(&reshape(&to_q, q.aval().shape.clone())?)?,
            heads_last(&self.scores.dot(&turned(&slope)?, &rows, dtype)?)?,
            heads_last(&self.scores.dot(&turned(&grouped(&weights)?)?, &ct, dtype)?)?,
        ])
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Option<Vec<Batched>>> {
        over_batch(*self, inputs, size, |input| input == 3 && self.scores.has_mask())
    }
}
