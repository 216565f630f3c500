//! Attention and its gradient through cuDNN: the products, the softmax between them and their gradients
//! as a graph, for which the library has one kernel.
//!
//! The gradient of the queries comes straight out of the last product: so no sum depends on the order
//! in which blocks come, for which the library takes memory.

use std::sync::Arc;

use cudarc::cudnn::sys::{cudnnPointwiseMode_t as Pointwise, cudnnReduceTensorOp_t as Fold};
use cudarc::driver::sys::CUstream;
use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::AttentionMaskKind as Mask;
use cupola_core::prim::composite::attention::{AttentionSizes, Scores};
use cupola_core::{DType, Result};

use super::commands::Library;
use super::dnn::{ALIGNMENT, Held, Operations, Plan, Tensor};
use super::gpu::Gpu;

/// Multiplications from which it pays that the library takes a good part of a second to prepare its first
/// kernel of a kind, and some hundredths for every further size.
const WORTHWHILE: u64 = 1 << 33;
/// Features of a head, at most: forward, and for a gradient.
const MOST_FEATURES: [i64; 2] = [256, 128];
/// Of the memory of a device a gradient may take this part while it runs.
const SHARE: usize = 32;

/// The steps of an operand `[example, head, place, feature]`.
type Steps = [i64; 4];

/// An attention that the library does well.
#[derive(Clone, PartialEq, Debug)]
pub struct Geometry {
    sizes: AttentionSizes,
    pub dtype: DType,
    scale: f32,
    mask: Mask,
    /// The steps of queries, keys and values; of what came out and its cotangent.
    inputs: Vec<Steps>,
}

impl Geometry {
    /// The attention of a segment; `tokens` are the inputs with heads after tokens, which only a gradient has.
    pub fn of(scores: &Scores, segment: &Segment, tokens: &[usize]) -> Option<Geometry> {
        let [q, k, v] = [0, 1, 2].map(|n| &segment.inputs[n]);
        let sizes = AttentionSizes::of(&q.aval, &k.aval, &v.aval).ok()?;
        let dtype = q.aval.dtype;
        let is_gradient = !tokens.is_empty();
        let most = MOST_FEATURES[usize::from(is_gradient)];
        let fits = |features: usize| features.is_multiple_of(8) && features as i64 <= most;
        let is_masked = match scores.mask {
            Mask::None => true,
            // Every query sees a key.
            Mask::Causal if is_gradient => sizes.queries == sizes.keys,
            Mask::Causal => sizes.queries <= sizes.keys,
            Mask::Array => false,
        };
        let is_plain = matches!(dtype, DType::F16 | DType::BF16)
            && (fits(sizes.features) && fits(sizes.values) && is_masked)
            && (!is_gradient || sizes.heads == sizes.groups && sizes.features == sizes.values);
        let all = [sizes.batch, sizes.heads, sizes.queries, sizes.keys];
        let scores_of_all = all.iter().fold(1, |all: u64, &size| all.saturating_mul(size as u64));
        let width = (sizes.features + sizes.values) as u64;
        (is_plain && scores_of_all.saturating_mul(width) >= WORTHWHILE).then_some(())?;
        let mut inputs = vec![steps(q)?, steps(k)?, steps(v)?];
        for &token in tokens {
            let [batch, place, head, feature] = steps(&segment.inputs[token])?;
            inputs.push([batch, head, place, feature]);
        }
        Some(Geometry {
            sizes,
            dtype,
            scale: scores.scale.to_f64() as f32,
            mask: scores.mask,
            inputs,
        })
    }

    /// Rows of all heads.
    pub fn rows(&self) -> usize {
        self.sizes.batch * self.sizes.heads * self.sizes.queries
    }
}

/// The steps of a dense operand of four axes, whose rows lie where the library asks for it, and which is
/// small enough for offsets of 32 bits.
fn steps(operand: &Operand) -> Option<Steps> {
    let shape = &operand.aval.shape;
    let &[_, _, _, columns] = &shape[..] else { return None };
    let unit = (ALIGNMENT / operand.aval.dtype.size()) as i64;
    let mut end = columns as i64;
    let mut steps = [0, 0, 0, 1];
    for axis in (0..3).rev() {
        let (size, step) = (shape[axis] as i64, operand.strides[axis] as i64);
        // Of one there is no next.
        let step = if size == 1 { (end + unit - 1) / unit * unit } else { step };
        (step > 0 && step % unit == 0).then_some(())?;
        end = end.max(step.checked_mul(size)?);
        steps[axis] = step;
    }
    let is_dense = operand.strides[3] == 1 || columns == 1;
    (is_dense && end <= i64::from(i32::MAX)).then_some(steps)
}

/// Numbers that the host gives: what products are multiplied by, the score of a key that is not seen, 1, and
/// how many keys the first query sees beside its own.
struct Values {
    scale: f32,
    lowest: f32,
    one: f32,
    shift: i32,
}

/// An attention, or its gradient, that is ready to run.
pub struct PreparedAttention {
    plan: Plan,
    numbers: Vec<i64>,
    values: Box<Values>,
    /// The host's numbers among these.
    hosts: Vec<i64>,
}

// What these are called in a graph; regions are called by their order.
const SCALE: i64 = 100;
const LOWEST: i64 = 101;
const ONE: i64 = 102;
const SHIFT: i64 = 103;

/// An attention that is written down.
struct Writer<'g> {
    ops: Operations<'g>,
    geometry: &'g Geometry,
    scores: [i64; 4],
    rows: [i64; 4],
    hosts: Vec<i64>,
}

impl<'g> Writer<'g> {
    fn new(gpu: &'g Arc<Gpu>, geometry: &'g Geometry) -> Self {
        let s = geometry.sizes;
        let [batch, heads, queries, keys] =
            [s.batch, s.heads, s.queries, s.keys].map(|size| size as i64);
        Writer {
            ops: Operations::new(gpu),
            geometry,
            scores: [batch, heads, queries, keys],
            rows: [batch, heads, queries, 1],
            hosts: Vec::new(),
        }
    }

    /// Input `number` as `[example, head, place, feature]`, or with the last two axes swapped.
    fn input(&mut self, number: usize, turned: bool) -> Result<Tensor> {
        let s = self.geometry.sizes;
        let [heads, places, columns] = match number {
            1 => [s.groups, s.keys, s.features],
            2 => [s.groups, s.keys, s.values],
            0 => [s.heads, s.queries, s.features],
            _ => [s.heads, s.queries, s.values],
        };
        let steps @ [a, b, c, d] = self.geometry.inputs[number];
        let sizes = [s.batch, heads, places, columns].map(|size| size as i64);
        let held = Held::Device(number as i64);
        match turned {
            false => self.ops.tensor(held, self.geometry.dtype, sizes, steps),
            true => {
                let sizes = [sizes[0], sizes[1], sizes[3], sizes[2]];
                self.ops.tensor(held, self.geometry.dtype, sizes, [a, b, d, c])
            }
        }
    }

    /// A result with so many heads, places and features, the heads of a place side by side.
    fn result(&mut self, number: i64, [heads, places, columns]: [usize; 3]) -> Result<Tensor> {
        let sizes = [self.geometry.sizes.batch, heads, places, columns].map(|size| size as i64);
        let [_, heads, places, columns] = sizes;
        let steps = [places * heads * columns, columns, heads * columns, 1];
        self.ops.tensor(Held::Device(number), self.geometry.dtype, sizes, steps)
    }

    /// A number a row, in memory.
    fn of_rows(&mut self, number: i64) -> Result<Tensor> {
        let [_, heads, queries, _] = self.rows;
        let steps = [heads * queries, queries, 1, 1];
        self.ops.tensor(Held::Device(number), DType::F32, self.rows, steps)
    }

    fn host(&mut self, number: i64) -> Result<Tensor> {
        self.hosts.push(number);
        let dtype = if number == SHIFT { DType::I32 } else { DType::F32 };
        self.ops.number(number, dtype)
    }

    /// Of each score of `x`, and of `b` where there is one.
    fn scored(&mut self, mode: Pointwise, x: Tensor, b: Option<Tensor>) -> Result<Tensor> {
        let to = self.ops.between(DType::F32, self.scores)?;
        self.ops.each(mode, DType::F32, [x, to], [b, None], None)?;
        Ok(to)
    }

    /// Scores whose keys are not seen are the lowest.
    fn hidden(&mut self, x: Tensor) -> Result<Tensor> {
        if self.geometry.mask != Mask::Causal {
            return Ok(x);
        }
        let (int, bool) = (DType::I32, DType::Bool);
        let places = |this: &mut Self, axis| {
            let to = this.ops.between(int, this.scores)?;
            let mode = Pointwise::CUDNN_POINTWISE_GEN_INDEX;
            this.ops.each(mode, DType::F32, [x, to], [None, None], Some(axis))?;
            Ok::<Tensor, cupola_core::Error>(to)
        };
        let mut query = places(self, 2)?;
        let key = places(self, 3)?;
        if self.geometry.sizes.queries != self.geometry.sizes.keys {
            let (shift, to) = (self.host(SHIFT)?, self.ops.between(int, self.scores)?);
            let mode = Pointwise::CUDNN_POINTWISE_ADD;
            self.ops.each(mode, int, [query, to], [Some(shift), None], None)?;
            query = to;
        }
        let sees = self.ops.between(bool, self.scores)?;
        let mode = Pointwise::CUDNN_POINTWISE_CMP_GE;
        self.ops.each(mode, bool, [query, sees], [Some(key), None], None)?;
        let (lowest, to) = (self.host(LOWEST)?, self.ops.between(DType::F32, self.scores)?);
        let mode = Pointwise::CUDNN_POINTWISE_BINARY_SELECT;
        self.ops.each(mode, DType::F32, [x, to], [Some(lowest), Some(sees)], None)?;
        Ok(to)
    }

    /// The products of queries and keys, times the scale, and the scale.
    fn agree(&mut self, q: Tensor, keys: Tensor) -> Result<(Tensor, Tensor)> {
        let products = self.ops.between(DType::F32, self.scores)?;
        self.ops.product(q, keys, products)?;
        let scale = self.host(SCALE)?;
        Ok((self.scored(Pointwise::CUDNN_POINTWISE_MUL, products, Some(scale))?, scale))
    }

    /// `x` with queries and keys swapped, rounded to the dtype of the operands.
    fn turned(&mut self, x: Tensor) -> Result<Tensor> {
        let [batch, heads, queries, keys] = self.scores;
        let steps = [heads * queries * keys, queries * keys, 1, keys];
        let sizes = [batch, heads, keys, queries];
        let to = self.ops.tensor(Held::Nowhere, self.geometry.dtype, sizes, steps)?;
        self.ops.view(x, to)?;
        Ok(to)
    }

    fn ready(self, count: i64, most: usize) -> Result<PreparedAttention> {
        let Writer { ops, geometry, hosts, .. } = self;
        let s = geometry.sizes;
        let values = Box::new(Values {
            scale: geometry.scale,
            lowest: f32::MIN,
            one: 1.0,
            shift: (s.keys - s.queries.min(s.keys)) as i32,
        });
        let numbers = (0..count).chain(hosts.iter().copied()).collect();
        Ok(PreparedAttention { plan: ops.plan(most)?, numbers, values, hosts })
    }
}

impl PreparedAttention {
    /// Prepares an attention; the device has been entered. Its regions are the three inputs, what
    /// comes out, and the logarithm of each row's sum. Fails where the library has no way to compute it.
    pub fn forward(gpu: &Arc<Gpu>, geometry: &Geometry) -> Result<Self> {
        let mut w = Writer::new(gpu, geometry);
        let s = geometry.sizes;
        let (q, keys, values) = (w.input(0, false)?, w.input(1, true)?, w.input(2, false)?);
        let out = w.result(3, [s.heads, s.queries, s.values])?;
        let logs = w.of_rows(4)?;
        let (scores, _) = w.agree(q, keys)?;
        let scores = w.hidden(scores)?;
        let row = |w: &mut Writer<'_>| w.ops.between(DType::F32, w.rows);
        let (largest, total, log) = (row(&mut w)?, row(&mut w)?, row(&mut w)?);
        w.ops.fold(Fold::CUDNN_REDUCE_TENSOR_MAX, scores, largest)?;
        let weights = w.scored(Pointwise::CUDNN_POINTWISE_SUB, scores, Some(largest))?;
        let weights = w.scored(Pointwise::CUDNN_POINTWISE_EXP, weights, None)?;
        w.ops.fold(Fold::CUDNN_REDUCE_TENSOR_ADD, weights, total)?;
        let (mode, wide) = (Pointwise::CUDNN_POINTWISE_LOG, DType::F32);
        w.ops.each(mode, wide, [total, log], [None, None], None)?;
        let mode = Pointwise::CUDNN_POINTWISE_ADD;
        w.ops.each(mode, wide, [largest, logs], [Some(log), None], None)?;
        let shares = w.ops.between(geometry.dtype, w.scores)?;
        let mode = Pointwise::CUDNN_POINTWISE_DIV;
        w.ops.each(mode, wide, [weights, shares], [Some(total), None], None)?;
        w.ops.product(shares, values, out)?;
        w.ready(5, gpu.memory_size() / SHARE)
    }

    /// Prepares a gradient. Its regions are queries, keys, values, what came out and its cotangent; the
    /// three results; the logarithm of each row's sum, and memory for a number a row.
    pub fn backward(gpu: &Arc<Gpu>, geometry: &Geometry) -> Result<Self> {
        let mut w = Writer::new(gpu, geometry);
        let (s, wide) = (geometry.sizes, DType::F32);
        let (q, keys, values) = (w.input(0, false)?, w.input(1, true)?, w.input(2, true)?);
        let (out, ct) = (w.input(3, false)?, w.input(4, false)?);
        let to_q = w.result(5, [s.heads, s.queries, s.features])?;
        let to_keys = w.result(6, [s.groups, s.keys, s.features])?;
        let to_values = w.result(7, [s.groups, s.keys, s.values])?;
        let (logs, sums) = (w.of_rows(8)?, w.of_rows(9)?);
        // Σ out·ct of each row.
        let sizes = [s.batch, s.heads, s.queries, s.values].map(|size| size as i64);
        let products = w.ops.between(wide, sizes)?;
        let mode = Pointwise::CUDNN_POINTWISE_MUL;
        w.ops.each(mode, wide, [ct, products], [Some(out), None], None)?;
        let sum = w.ops.between(wide, w.rows)?;
        w.ops.fold(Fold::CUDNN_REDUCE_TENSOR_ADD, products, sum)?;
        let one = w.host(ONE)?;
        w.ops.each(mode, wide, [sum, sums], [Some(one), None], None)?;
        // The weights, once more.
        let (scores, scale) = w.agree(q, keys)?;
        let scores = w.scored(Pointwise::CUDNN_POINTWISE_SUB, scores, Some(logs))?;
        let scores = w.hidden(scores)?;
        let weights = w.scored(Pointwise::CUDNN_POINTWISE_EXP, scores, None)?;
        let turned = w.turned(weights)?;
        w.ops.product(turned, ct, to_values)?;
        // The slopes of the scores.
        let back = w.ops.between(wide, w.scores)?;
        w.ops.product(ct, values, back)?;
        let slopes = w.scored(Pointwise::CUDNN_POINTWISE_SUB, back, Some(sums))?;
        let slopes = w.scored(Pointwise::CUDNN_POINTWISE_MUL, slopes, Some(weights))?;
        let slopes = w.scored(Pointwise::CUDNN_POINTWISE_MUL, slopes, Some(scale))?;
        let turned = w.turned(slopes)?;
        w.ops.product(turned, q, to_keys)?;
        let sizes = [s.batch, s.groups, s.keys, s.features].map(|size| size as i64);
        let rows = w.ops.tensor(Held::Nowhere, wide, sizes, geometry.inputs[1])?;
        w.ops.view(keys, rows)?;
        w.ops.product(slopes, rows, to_q)?;
        w.ready(10, gpu.memory_size() / SHARE)
    }

    /// How many bytes it needs while it runs: its last region.
    pub fn workspace(&self) -> usize {
        self.plan.workspace()
    }
}

impl Library for PreparedAttention {
    fn enqueue(&self, gpu: &Arc<Gpu>, stream: CUstream, places: &[u64]) -> Result<()> {
        let Some((&workspace, regions)) = places.split_last() else {
            return Err(gpu.error("an attention has regions"));
        };
        let host = |&number: &i64| match number {
            SCALE => (&raw const self.values.scale).expose_provenance() as u64,
            LOWEST => (&raw const self.values.lowest).expose_provenance() as u64,
            ONE => (&raw const self.values.one).expose_provenance() as u64,
            _ => (&raw const self.values.shift).expose_provenance() as u64,
        };
        let places: Vec<u64> = regions.iter().copied().chain(self.hosts.iter().map(host)).collect();
        self.plan.enqueue(gpu, stream, &self.numbers, &places, workspace)
    }
}

#[cfg(test)]
mod tests {
    use cupola_core::backend::{Kernel, Operand, Segment};
    use cupola_core::precision::MatmulPrecision;
    use cupola_core::prim::composite::attention::Scores;
    use cupola_core::prim::{Attention, AttentionMaskKind as Mask, Composite};
    use cupola_core::{Aval, DType, Scalar};

    use super::Geometry;

    /// Batch, heads, groups, queries, keys, features.
    type Sizes = [usize; 6];

    const GPT: Sizes = [8, 12, 12, 1024, 1024, 64];

    fn scores(mask: Mask) -> Scores {
        Scores { scale: Scalar::Float(0.125), mask, precision: MatmulPrecision::Full }
    }

    /// An attention with what its gradient takes besides, as inputs 3 and 4.
    fn segment([batch, heads, groups, queries, keys, features]: Sizes, dtype: DType) -> Segment {
        let dense = |shape: [usize; 4]| Operand::contiguous(&Aval::new(shape, dtype));
        let (key, token) = ([batch, groups, keys, features], [batch, queries, heads, features]);
        let query = dense([batch, heads, queries, features]);
        Segment {
            kernel: Kernel::Composite(Composite::Attention(Attention {
                scores: scores(Mask::None),
                sinks: false,
            })),
            inputs: vec![query, dense(key), dense(key), dense(token), dense(token)],
            outputs: vec![dense(token)],
            scalars: Vec::new(),
            epilogue: None,
        }
    }

    #[test]
    fn large_attentions_of_half_types_are_taken() {
        let is_taken = |sizes: Sizes, mask, dtype, tokens: &[usize]| {
            Geometry::of(&scores(mask), &segment(sizes, dtype), tokens).is_some()
        };
        let [batch, heads, _, queries, keys, features] = GPT;
        for mask in [Mask::None, Mask::Causal] {
            assert!(
                is_taken(GPT, mask, DType::BF16, &[]) && is_taken(GPT, mask, DType::F16, &[3, 4])
            );
        }
        assert!(!is_taken(GPT, Mask::Array, DType::BF16, &[]));
        assert!(!is_taken(GPT, Mask::None, DType::F32, &[]));
        assert!(!is_taken(
            [1, heads, heads, queries, keys, features],
            Mask::None,
            DType::BF16,
            &[]
        ));
        assert!(!is_taken([batch, heads, heads, queries, keys, 60], Mask::None, DType::BF16, &[]));
        // Heads that share keys, and more keys than queries: forward alone.
        for other in
            [[batch, heads, 3, queries, keys, features], [batch, heads, heads, 900, keys, 64]]
        {
            assert!(is_taken(other, Mask::Causal, DType::BF16, &[]), "{other:?}");
            assert!(!is_taken(other, Mask::Causal, DType::BF16, &[3, 4]), "{other:?}");
        }
        // A query that sees no key.
        assert!(!is_taken(
            [batch, heads, heads, 1100, keys, features],
            Mask::Causal,
            DType::BF16,
            &[]
        ));
    }

    #[test]
    fn rows_may_lie_apart_where_they_begin_at_multiples() {
        let steps_of = |change: &dyn Fn(&mut [isize; 4])| {
            let mut segment = segment(GPT, DType::BF16);
            change((&mut segment.inputs[1].strides[..]).try_into().unwrap());
            Geometry::of(&scores(Mask::None), &segment, &[]).map(|found| found.inputs[1])
        };
        assert_eq!(steps_of(&|_| {}), Some([12 * 1024 * 64, 1024 * 64, 64, 1]));
        let tokens = |steps: &mut [isize; 4]| *steps = [3 * 12 * 1024 * 64, 64, 3 * 12 * 64, 1];
        assert_eq!(steps_of(&tokens), Some([3 * 12 * 1024 * 64, 64, 3 * 12 * 64, 1]));
        assert_eq!(steps_of(&|steps| steps[2] = 68), None);
        assert_eq!(steps_of(&|steps| steps[3] = 2), None);
        assert_eq!(steps_of(&|steps| steps[1] = 0), None);
    }
}
