//! Attention as segments: operands resolved for the kernels beside.

use std::marker::PhantomData;

use cupola_core::backend::{Fails, Operand, Segment};
use cupola_core::prim::composite::attention::{AttentionSizes, Scores};
use cupola_core::prim::{Attention, AttentionGrad, AttentionMaskKind};
use cupola_core::{Aval, DType, Error, Result};
use cupola_simd::{Element, Isa, Out};
use half::{bf16, f16};

use super::Problem;
use super::backward::Backward;
use super::forward::Forward;
use super::rows::{Mask, Rows};
use super::tiles::Weight;
use crate::contiguous::Contiguous;
use crate::op::{Finish, Io, OpKernel};

/// Runs `$e` with `$T` as the type of `$dtype`.
macro_rules! by_float {
    ($dtype:expr, $T:ident => $e:expr) => {
        match $dtype {
            DType::F16 => by_float!(f16, $T, $e),
            DType::BF16 => by_float!(bf16, $T, $e),
            DType::F32 => by_float!(f32, $T, $e),
            DType::F64 => by_float!(f64, $T, $e),
            other => {
                Err(Error::dtype("scaled_dot_product_attention", format!("does not take {other}")))
            }
        }
    };
    ($type:ty, $T:ident, $e:expr) => {{
        type $T = $type;
        Ok($e)
    }};
}

/// What both directions are prepared for.
struct Operands<T> {
    scores: Scores,
    sizes: AttentionSizes,
    inputs: Vec<Operand>,
    kind: PhantomData<T>,
}

impl<T: Element<Acc: Weight>> Operands<T> {
    fn new(scores: Scores, segment: &Segment) -> Result<Self> {
        let [q, k, v] = [0, 1, 2].map(|n| &segment.inputs[n].aval);
        let sizes = AttentionSizes::of(q, k, v)
            .map_err(|detail| Error::shape("scaled_dot_product_attention", detail))?;
        Ok(Operands { scores, sizes, inputs: segment.inputs.clone(), kind: PhantomData })
    }

    /// # Safety
    /// The operands can be read while the result lives.
    unsafe fn problem(&self, io: &Io<'_>) -> Problem<T> {
        // SAFETY: the caller vouches for the operands.
        let rows = |n: usize| unsafe { Rows::new(io.inputs[n], &self.inputs[n]) };
        let mask = match self.scores.mask {
            AttentionMaskKind::None => Mask::None,
            AttentionMaskKind::Causal => Mask::Causal,
            AttentionMaskKind::Array if self.inputs[3].aval.dtype == DType::Bool => {
                // SAFETY: as above.
                Mask::Bool(unsafe { Rows::new(io.inputs[3], &self.inputs[3]) })
            }
            AttentionMaskKind::Array => Mask::Added(rows(3)),
        };
        let scale = T::Acc::of(self.scores.scale.to_f64());
        let isa = Isa::best();
        Problem { isa, sizes: self.sizes, scale, q: rows(0), k: rows(1), v: rows(2), mask }
    }
}

/// An [`Attention`] that is ready to run.
pub(crate) struct AttentionKernel<T> {
    operands: Operands<T>,
    sinks: Option<Contiguous>,
}

impl<T: Element<Acc: Weight>> AttentionKernel<T> {
    fn new(attention: &Attention, segment: &Segment) -> Result<Self> {
        let sinks = segment.inputs.last().filter(|_| attention.sinks);
        Ok(AttentionKernel {
            operands: Operands::new(attention.scores, segment)?,
            sinks: sinks.map(Contiguous::new).transpose()?,
        })
    }
}

impl AttentionKernel<()> {
    /// Prepares for the operands of `segment`.
    pub(crate) fn of(attention: &Attention, segment: &Segment) -> Result<Box<dyn OpKernel>> {
        by_float!(segment.inputs[0].aval.dtype, T => Box::new(AttentionKernel::<T>::new(attention, segment)?))
    }
}

impl<T: Element<Acc: Weight>> OpKernel for AttentionKernel<T> {
    fn fails(&self) -> Fails {
        // Where there is no memory for parts, or for what a thread has of its own.
        Fails::Anywhere
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        let (sizes, last) = (self.operands.sizes, io.inputs.len() - 1);
        let rows = sizes.batch * sizes.heads * sizes.queries;
        let aval = &self.operands.inputs[last].aval;
        // SAFETY: the caller vouches for the operands.
        unsafe {
            let sinks = self.sinks.as_ref().map(|s| s.dense(io.inputs[last])).transpose()?;
            Forward::<T> {
                problem: self.operands.problem(io),
                sinks: sinks.as_ref().map(|sinks| sinks.slice(aval.shape.size())),
                out: Out::from_raw(io.outputs[0].cast(), rows * sizes.values),
                largest: Out::from_raw(io.outputs[1].cast(), rows),
                total: Out::from_raw(io.outputs[2].cast(), rows),
            }
            .run()?;
        }
        finish.all();
        Ok(())
    }
}

/// An operand `[example, token, head, column]` as `[example, head, token, column]`.
fn heads_first(operand: &Operand) -> Operand {
    let (shape, steps) = (&operand.aval.shape, &operand.strides);
    let turned = [0, 2, 1, 3];
    Operand {
        aval: Aval::new(turned.map(|axis| shape[axis]), operand.aval.dtype),
        strides: turned.map(|axis| steps[axis]).as_slice().into(),
    }
}

/// An [`AttentionGrad`] that is ready to run.
pub(crate) struct AttentionGradKernel<T> {
    operands: Operands<T>,
    /// Two numbers of each row.
    rows: [Contiguous; 2],
    /// Values and cotangents, as queries lie.
    tokens: [Operand; 2],
}

impl<T: Element<Acc: Weight>> AttentionGradKernel<T> {
    fn new(grad: &AttentionGrad, segment: &Segment) -> Result<Self> {
        let last = |n: usize| &segment.inputs[segment.inputs.len() - 4 + n];
        let rows = [Contiguous::new(last(0))?, Contiguous::new(last(1))?];
        let tokens = [heads_first(last(2)), heads_first(last(3))];
        Ok(AttentionGradKernel { operands: Operands::new(grad.scores, segment)?, rows, tokens })
    }
}

impl AttentionGradKernel<()> {
    /// Prepares for the operands of `segment`.
    pub(crate) fn of(grad: &AttentionGrad, segment: &Segment) -> Result<Box<dyn OpKernel>> {
        by_float!(segment.inputs[0].aval.dtype, T => Box::new(AttentionGradKernel::<T>::new(grad, segment)?))
    }
}

impl<T: Element<Acc: Weight>> OpKernel for AttentionGradKernel<T> {
    fn fails(&self) -> Fails {
        Fails::Anywhere
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        let (s, last) = (self.operands.sizes, io.inputs.len() - 1);
        let rows = s.batch * s.heads * s.queries;
        let keys = s.batch * s.groups * s.keys;
        // SAFETY: the caller vouches for the operands.
        unsafe {
            let dense = |n: usize| self.rows[n].dense(io.inputs[last - 3 + n]);
            let (largest, total) = (dense(0)?, dense(1)?);
            Backward::<T> {
                problem: self.operands.problem(io),
                largest: largest.slice(rows),
                total: total.slice(rows),
                out: Rows::new(io.inputs[last - 1], &self.tokens[0]),
                ct: Rows::new(io.inputs[last], &self.tokens[1]),
                dq: Out::from_raw(io.outputs[0].cast(), rows * s.features),
                dk: Out::from_raw(io.outputs[1].cast(), keys * s.features),
                dv: Out::from_raw(io.outputs[2].cast(), keys * s.values),
            }
            .run()?;
        }
        finish.all();
        Ok(())
    }
}
