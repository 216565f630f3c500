//! Convolutions: operands laid out for the kernels of [`crate::conv`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cupola_core::backend::{Lookup, Segment};
use cupola_core::prim::{Conv, ConvRole};
use cupola_core::{DType, Error, Result};
use cupola_simd::{Element, Out, Residual, Then, ToPoints};
use half::{bf16, f16};

use super::{ConvProblem, ConvTail, PackedConv, conv, conv_direct};
use crate::contiguous::Contiguous;
use crate::op::{Finish, Io, OpKernel};
use crate::tail::TailArgs;
use crate::threads::num_threads;

/// A [`Conv`] whose operands and result have one dtype.
pub struct ConvKernel {
    problem: ConvProblem,
    role: ConvRole,
    a: Contiguous,
    b: Contiguous,
    product: Product,
    dtype: DType,
    /// By which its weights are known among what is kept.
    number: u64,
}

/// # Safety
/// As for [`OpKernel::run`].
type Product = unsafe fn(&ConvKernel, &Io<'_>, Finish<'_>) -> Result<()>;

impl ConvKernel {
    /// Prepares for these operands.
    pub fn new(op: &Conv, segment: &Segment) -> Result<Self> {
        let (a, b) = (&segment.inputs[0], &segment.inputs[1]);
        let last = op.input.len() + 1;
        let [x, _, y] = op.role.arranged([a, b, &segment.outputs[0]]);
        let problem = ConvProblem {
            batch: x.aval.shape[0],
            groups: op.groups,
            in_channels: x.aval.shape[last],
            out_channels: y.aval.shape[last],
            input: op.input.to_vec(),
            kernel: op.kernel.to_vec(),
            output: op.output()?.to_vec(),
            stride: op.stride.to_vec(),
            padding: op.padding.clone(),
            dilation: op.dilation.to_vec(),
            input_dilation: op.input_dilation.to_vec(),
            flip: op.flip,
        };
        let dtype = a.aval.dtype;
        let product: Product = match dtype {
            DType::F16 => product::<f16>,
            DType::BF16 => product::<bf16>,
            DType::F32 => product::<f32>,
            DType::F64 => product::<f64>,
            DType::Bool
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::C32
            | DType::C64 => {
                return Err(Error::dtype(op.role.name(), format!("does not take {}", a.aval)));
            }
        };
        let (a, b) = (Contiguous::new(a)?, Contiguous::new(b)?);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(ConvKernel { problem, role: op.role, a, b, product, dtype, number })
    }
}

impl OpKernel for ConvKernel {
    /// Weights in the kernels' order, where they may be nearly twice as many, and for each thread an image with its
    /// border before and after, and tables.
    fn own(&self) -> usize {
        let p = &self.problem;
        let lens = p.lens(self.role);
        let is_gradient = self.role == ConvRole::WeightGrad;
        let weights = if is_gradient { lens[2] } else { lens[1] };
        let images = (lens.iter().sum::<usize>() - weights) / p.batch.max(1);
        let longest = p.input.iter().chain(&p.output).max().copied().unwrap_or(0);
        let (threads, sums) = (num_threads(), if is_gradient { num_threads() } else { 2 });
        let elements = weights.saturating_mul(sums).saturating_add(images.saturating_mul(threads));
        let tables = longest.saturating_mul(PLACE * threads);
        let own = elements.saturating_mul(2 * size_of::<f64>()).saturating_add(tables);
        own.saturating_add(Contiguous::own([&self.a, &self.b]))
    }

    fn has_tail(&self) -> bool {
        self.dtype == DType::F32 && self.role != ConvRole::WeightGrad
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        // SAFETY: the caller vouches for the operands.
        unsafe { (self.product)(self, io, finish) }
    }
}

/// Bytes that a thread's tables have for a place along an axis, at most.
const PLACE: usize = 64;

/// What is done to the sums of a kernel with a tail, which are of `float32`.
///
/// # Safety
/// The bias is there and has an element for each output channel, and the residual one for each result.
unsafe fn tail<'a, A: Copy>(
    kernel: &ConvKernel,
    finish: &Finish<'a>,
    then: Option<Then<'a, A>>,
    out: *const A,
) -> ConvTail<'a, A> {
    if !kernel.has_tail() {
        return ConvTail::default();
    }
    let TailArgs { bias, residual, low, high, .. } = finish.tail;
    // SAFETY: a kernel with a tail has elements of `float32`, and so has `A`.
    let number = |x: f32| unsafe { *(&raw const x).cast::<A>() };
    let channels = match kernel.role {
        ConvRole::InputGrad => kernel.problem.in_channels,
        _ => kernel.problem.out_channels,
    };
    // SAFETY: the caller vouches for the bias.
    let bias = bias.map(|bias| unsafe { std::slice::from_raw_parts(bias.cast::<A>(), channels) });
    // SAFETY: as above, for the residual.
    let residual = residual.map(|residual| unsafe { Residual::new(residual.cast::<A>(), out) });
    ConvTail { bias, residual, low: low.map(number), high: high.map(number), then }
}

/// Weights that were seen before are packed once for as long as they are in their memory.
///
/// # Safety
/// As for [`Product`]; the elements are `T`.
unsafe fn product<T: Element + ToPoints>(
    kernel: &ConvKernel,
    io: &Io<'_>,
    finish: Finish<'_>,
) -> Result<()> {
    let (p, role) = (&kernel.problem, kernel.role);
    let [a_len, b_len, out_len] = p.lens(role);
    let kept = io.kept.get(1).copied().flatten();
    let kept = kept.filter(|_| role != ConvRole::WeightGrad && out_len > 0);
    let key = (kernel.number, io.inputs[1].addr());
    let found = kept.map(|kept| (kept, kept.find::<PackedConv<T>>(key)));
    // SAFETY: the caller vouches for the operands, which have the elements that the problem says.
    unsafe {
        let out = Out::from_raw(io.outputs[0].cast::<T>(), out_len);
        let then = finish.tail.then.map(|then| {
            move |first: *mut T::Acc, step: usize, count: usize, width: usize| {
                then(first.cast(), step, count, width);
            }
        });
        let then = then.as_ref().map(|then| then as Then<'_, T::Acc>);
        let tail = tail(kernel, &finish, then, io.outputs[0].cast());
        let a = kernel.a.dense(io.inputs[0])?;
        let a = a.slice(a_len);
        if let Some((_, Lookup::Have(packed))) = &found
            && packed.run(a, out, tail, finish.epilogue)
        {
            return Ok(());
        }
        let b = kernel.b.dense(io.inputs[1])?;
        let b = b.slice(b_len);
        match found {
            None | Some((_, Lookup::First)) => conv(p, role, a, b, out, tail, finish.epilogue),
            Some((_, Lookup::Have(_))) => conv_direct(p, role, a, b, out, tail, finish.epilogue),
            Some((kept, Lookup::Again)) => {
                let packed = Arc::new(PackedConv::new(p, role, b).into_lasting());
                if !packed.run(a, out, tail, finish.epilogue) {
                    conv_direct(p, role, a, b, out, tail, finish.epilogue);
                }
                kept.keep(key, packed);
            }
        }
    }
    Ok(())
}
