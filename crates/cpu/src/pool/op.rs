//! Poolings: operands laid out for the kernels of [`crate::pool`].

use cupola_core::backend::Segment;
use cupola_core::prim::{Pool, PoolRole};
use cupola_core::{DType, Error, Result};
use cupola_simd::Out;
use half::{bf16, f16};

use crate::contiguous::{Contiguous, Dense};
use crate::op::{Finish, Io, OpKernel};
use crate::pool::{self, PoolElement, PoolProblem};

/// A [`Pool`] that is ready to run.
pub struct PoolKernel {
    problem: PoolProblem,
    role: PoolRole,
    inputs: Vec<Contiguous>,
    pool: Run,
}

/// # Safety
/// The operands are dense, with the elements that the problem says.
type Run = unsafe fn(&PoolKernel, &[Dense], *mut u8);

impl PoolKernel {
    /// Prepares for these operands.
    pub fn new(op: &Pool, segment: &Segment) -> Result<Self> {
        let first = &segment.inputs[0].aval;
        let pool: Run = match first.dtype {
            DType::U8 => run::<u8>,
            DType::U16 => run::<u16>,
            DType::U32 => run::<u32>,
            DType::U64 => run::<u64>,
            DType::I8 => run::<i8>,
            DType::I16 => run::<i16>,
            DType::I32 => run::<i32>,
            DType::I64 => run::<i64>,
            DType::F16 => run::<f16>,
            DType::BF16 => run::<bf16>,
            DType::F32 => run::<f32>,
            DType::F64 => run::<f64>,
            DType::Bool | DType::C32 | DType::C64 => {
                return Err(Error::dtype(op.role.name(), format!("does not take {first}")));
            }
        };
        let problem = PoolProblem {
            batch: first.shape[0],
            channels: first.shape[op.input.len() + 1],
            input: op.input.to_vec(),
            window: op.window.to_vec(),
            stride: op.stride.to_vec(),
            padding: op.padding.clone(),
            dilation: op.dilation.to_vec(),
            output: op.output()?.to_vec(),
        };
        let inputs = segment.inputs.iter().map(Contiguous::new).collect::<Result<_>>()?;
        Ok(PoolKernel { problem, role: op.role, inputs, pool })
    }
}

impl OpKernel for PoolKernel {
    fn own(&self) -> usize {
        let windows = self.problem.output.iter().sum::<usize>();
        Contiguous::own(&self.inputs) + windows * size_of::<[usize; 2]>()
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        // SAFETY: the caller vouches for the operands.
        let dense = |(input, &ptr): (&Contiguous, &*const u8)| unsafe { input.dense(ptr) };
        let inputs = self.inputs.iter().zip(&io.inputs).map(dense).collect::<Result<Vec<_>>>()?;
        // SAFETY: as above.
        unsafe { (self.pool)(self, &inputs, io.outputs[0]) };
        finish.all();
        Ok(())
    }
}

/// # Safety
/// As for [`Run`]; the elements are `T`.
unsafe fn run<T: PoolElement>(kernel: &PoolKernel, inputs: &[Dense], out: *mut u8) {
    let p = &kernel.problem;
    let (x, y) = (p.input_len(), p.output_len());
    // SAFETY: the caller vouches for the operands.
    unsafe {
        let out = |len| Out::from_raw(out.cast::<T>(), len);
        match kernel.role {
            PoolRole::Max => pool::max(p, inputs[0].slice(x), out(y)),
            PoolRole::MaxGather => {
                pool::max_gather(p, inputs[0].slice(x), inputs[1].slice(x), out(y));
            }
            PoolRole::MaxScatter => {
                pool::max_scatter(p, inputs[0].slice(x), inputs[1].slice(y), out(x));
            }
            PoolRole::Sum => pool::sum(p, inputs[0].slice(x), out(y)),
            PoolRole::SumTranspose => pool::sum_transpose(p, inputs[0].slice(y), out(x)),
        }
    }
}
