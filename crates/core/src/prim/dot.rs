//! The batched matrix product.

use super::batch::on_batch;
use super::record::{cast, flatten, transposed, unflatten};
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Elementwise, Facts, Linearity, Movement, Op,
    Primitive, Sizes, expect_inputs, one,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::precision::{MatmulPrecision, matmul_precision};
use crate::shape::{Aval, Shape};

/// Inputs: a `[B.., M, K]` and b `[B.., K, N]` of one dtype. Output: `[B.., M, N]` of `result`,
/// summed in `accumulate`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dot {
    /// The dtype of the sums.
    pub accumulate: DType,
    /// The dtype of the output.
    pub result: DType,
    /// How factors of `float32` may be rounded.
    pub precision: MatmulPrecision,
}

impl Dot {
    /// A product of `dtype` that accumulates as is usual for it: half types in `float32`.
    pub fn of(dtype: DType) -> Self {
        Dot { accumulate: dtype.accumulator(), result: dtype, precision: matmul_precision() }
    }
}

impl Primitive for Dot {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = "matmul";
        expect_inputs(op, inputs, 2)?;
        super::same_dtypes(op, inputs)?;
        let (a, b) = (inputs[0], inputs[1]);
        let rank = a.shape.rank();
        let fits = rank >= 2
            && b.shape.rank() == rank
            && a.shape[..rank - 2] == b.shape[..rank - 2]
            && a.shape[rank - 1] == b.shape[rank - 2];
        if !fits {
            return Err(Error::shape(op, format!("{a} and {b} do not multiply")));
        }
        if a.dtype == DType::Bool {
            return Err(Error::dtype(op, format!("does not take {a} and {b}")));
        }
        let mut shape: Shape = a.shape.clone();
        shape.0[rank - 1] = b.shape[rank - 1];
        one(Aval { shape, dtype: self.result })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Linear { linearity: Linearity::Each, operand: |_, _| true, transpose }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        let [a, b] = inputs else {
            return on_batch(*self, inputs, size);
        };
        // One matrix for the whole batch: the batch is more rows of the same product.
        if a.batched && !b.batched && b.shape().len() == 2 {
            let rows = flatten(&a.array, 0, 1)?;
            let product = Array::apply(*self, &[&rows, &b.array])?;
            let lead = [size, a.shape()[0]];
            return Ok(vec![Batched::each(unflatten(&product, 0, &lead)?)]);
        }
        on_batch(*self, inputs, size)
    }

    fn operations(&self, inputs: &[&Aval], outputs: &[&Aval]) -> f64 {
        let terms = inputs[0].shape.last().map_or(0, |&terms| terms);
        2.0 * outputs[0].shape.size() as f64 * terms as f64
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: true,
            accumulates: Accumulates::In(self.accumulate),
            sizes: Sizes::Inferred,
        }
    }
}

/// The cotangent of a is ct·bᵀ, that of b is aᵀ·ct. Where the result is wider than the operands,
/// the product is taken at the wider dtype, so that the cotangent loses nothing on its way in. That of
/// a transposed operand is computed transposed, so that the gradient of what was transposed lies in
/// memory as that does: (ct·bᵀ)ᵀ is b·ctᵀ.
fn transpose(dot: &Dot, inputs: &[Array], operand: usize, ct: &Array) -> Result<Option<Array>> {
    let narrow = inputs[0].dtype();
    let wide = narrow.promote(ct.dtype());
    let product = if wide == narrow {
        Dot { result: narrow, ..*dot }
    } else {
        Dot { accumulate: wide.accumulator(), result: wide, ..*dot }
    };
    let (ct, other) = (cast(ct, wide)?, cast(&inputs[1 - operand], wide)?);
    let found = match (operand, is_transposed(&inputs[operand])) {
        (0, false) => Array::apply(product, &[&ct, &transposed(&other)?])?,
        (0, true) => transposed(&Array::apply(product, &[&other, &transposed(&ct)?])?)?,
        (_, false) => Array::apply(product, &[&transposed(&other)?, &ct])?,
        (_, true) => transposed(&Array::apply(product, &[&transposed(&ct)?, &other])?)?,
    };
    Ok(Some(cast(&found, narrow)?))
}

/// Whether `x` is recorded as another array with its last two axes swapped, cast or not.
fn is_transposed(x: &Array) -> bool {
    let mut x = x.clone();
    while let Op::Elementwise(Elementwise::Cast(_)) = &x.node.op {
        let Some(uncast) = x.node.state().inputs.first().cloned() else { return false };
        x = uncast;
    }
    swapped(&x).is_some()
}

/// The array that `x` is with its last two axes swapped, where it is recorded as that, or as that in another dtype.
pub(crate) fn untransposed(x: &Array) -> Result<Option<Array>> {
    let Op::Elementwise(Elementwise::Cast(to)) = &x.node.op else { return Ok(swapped(x)) };
    let uncast = x.node.state().inputs.first().cloned();
    uncast.and_then(|uncast| swapped(&uncast)).map(|inner| cast(&inner, to.to)).transpose()
}

/// The array that `x` is recorded as with the last two axes swapped.
fn swapped(x: &Array) -> Option<Array> {
    let Op::Movement(Movement::Transpose(axes)) = &x.node.op else { return None };
    let lead = axes.len().saturating_sub(2);
    let swaps = axes[..lead].iter().copied().eq(0..lead) && axes[lead..] == [lead + 1, lead];
    x.node.state().inputs.first().filter(|_| swaps).cloned()
}
