//! Convolutions: operands laid out for the kernels of [`crate::conv`].

use std::sync::atomic::{AtomicU64, Ordering};

use cupola_core::backend::{Kept, KeptKey, Segment};
use cupola_core::prim::{Conv, ConvRole};
use cupola_core::{DType, Error, Result};
use half::{bf16, f16};

use super::{ConvProblem, conv_with};
use crate::contiguous::{Contiguous, Dense};
use crate::op::{Finish, Io, OpKernel};
use crate::simd::{Element, Out};

/// A [`Conv`] whose operands and result have one dtype.
pub struct ConvKernel {
    problem: ConvProblem,
    role: ConvRole,
    a: Contiguous,
    b: Contiguous,
    product: Product,
    /// By which its weights are known among what is kept.
    number: u64,
}

/// # Safety
/// The operands have the elements that the problem says.
type Product = unsafe fn(&ConvKernel, &Dense, &Dense, Weights<'_>, *mut u8, Finish<'_>);

/// Where what was made of the weights is kept.
type Weights<'k> = Option<(&'k Kept, KeptKey)>;

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
        let product: Product = match a.aval.dtype {
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
        Ok(ConvKernel { problem, role: op.role, a, b, product, number })
    }
}

impl OpKernel for ConvKernel {
    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        // SAFETY: the caller vouches for the operands.
        unsafe {
            let (a, b) = (self.a.dense(io.inputs[0])?, self.b.dense(io.inputs[1])?);
            let kept = io.kept.get(1).copied().flatten();
            let kept = kept.map(|kept| (kept, (self.number, io.inputs[1].addr())));
            (self.product)(self, &a, &b, kept, io.outputs[0], finish);
        }
        Ok(())
    }
}

/// # Safety
/// As for [`Product`]; the elements are `T`.
unsafe fn product<T: Element>(
    kernel: &ConvKernel,
    a: &Dense,
    b: &Dense,
    kept: Weights<'_>,
    out: *mut u8,
    finish: Finish<'_>,
) {
    let p = &kernel.problem;
    let [a_len, b_len, out_len] = p.lens(kernel.role);
    // SAFETY: the caller vouches for the operands.
    unsafe {
        let out = Out::from_raw(out.cast::<T>(), out_len);
        conv_with(p, kernel.role, a.slice(a_len), b.slice(b_len), kept, out, finish.epilogue);
    }
}
