//! The primitives that are kernels of their own: neither elementwise, movement nor reduction.

#![deny(clippy::wildcard_enum_match_arm)]

use std::ops::Range;

use cupola_core::backend::{Fails, Kept, Segment};
use cupola_core::prim::{Composite, Custom, KernelOp};
use cupola_core::{Aval, DType, Result};
use smallvec::SmallVec;

use crate::arg_reduce::ArgReduceKernel;
use crate::attention::{AttentionGradKernel, AttentionKernel};
use crate::bitcast::BitcastKernel;
use crate::conv::ConvKernel;
use crate::convert::summed_in;
use crate::create::IotaKernel;
use crate::custom::CustomKernel;
use crate::dot::DotKernel;
use crate::fft::FftKernel;
use crate::gather::{GatherAxisKernel, GatherKernel, ScatterKernel};
use crate::linalg::LinalgKernel;
use crate::pool::PoolKernel;
use crate::quantized::QuantizedKernel;
use crate::random::RandomKernel;
use crate::scan::ScanKernel;
use crate::sort::SortKernel;
use crate::tail::TailArgs;
use crate::threads::parallel_for;

/// Runs `$e` with `$T` as the unsigned type of `$width` bytes: for elements that only move.
macro_rules! by_size {
    ($width:expr, $T:ident => $e:expr) => {
        match $width {
            1 => {
                type $T = u8;
                $e
            }
            2 => {
                type $T = u16;
                $e
            }
            4 => {
                type $T = u32;
                $e
            }
            _ => {
                type $T = u64;
                $e
            }
        }
    };
}
pub(crate) use by_size;

/// Where a segment's operands are: pointers to the element at index 0 along every axis.
#[derive(Default)]
pub struct Io<'a> {
    /// One an input.
    pub inputs: SmallVec<[*const u8; 8]>,
    /// What was made of each input's memory.
    pub kept: SmallVec<[Option<&'a Kept>; 8]>,
    /// One an output.
    pub outputs: SmallVec<[*mut u8; 2]>,
}

// SAFETY: pointers are only addresses; who follows them says why that is sound.
unsafe impl Sync for Io<'_> {}

/// A primitive that is ready to run.
pub trait OpKernel: Send + Sync {
    /// Where a run can fail on account of values.
    fn fails(&self) -> Fails {
        Fails::Never
    }

    /// As [`cupola_core::backend::Executable::own`].
    fn own(&self) -> usize {
        0
    }

    /// About how much memory it holds, with its own.
    fn memory(&self) -> usize {
        size_of_val(self)
    }

    /// Whether it does what [`Finish::tail`] says.
    fn has_tail(&self) -> bool {
        false
    }

    /// Computes the outputs, and calls `finish` for each part that is final.
    ///
    /// # Safety
    /// The operands that it was prepared for can be read and written, and no output overlaps
    /// another operand.
    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()>;
}

/// Called once for each part of the output, when the part is final and still in cache.
pub type Epilogue<'a> = Option<&'a (dyn Fn(Range<usize>) + Sync)>;

/// What is to run on each part of an op's output when the part is final.
#[derive(Clone, Copy, Default)]
pub struct Finish<'a> {
    /// What the op does to its sums itself, before: nothing, unless [`OpKernel::has_tail`]. Its last part is the program,
    /// where that is a function of each element: one of the two is to run.
    pub tail: TailArgs<'a>,
    /// The program, if there is one.
    pub epilogue: Epilogue<'a>,
    /// Elements of the output.
    pub size: usize,
}

impl<'a> Finish<'a> {
    /// The program, and what has it run at the end. Tasks whose parts are ranges of the output run it while these are at
    /// hand; others leave it.
    pub fn by_tasks(self, in_ranges: bool) -> (Epilogue<'a>, Option<Finish<'a>>) {
        match in_ranges {
            true => (self.epilogue, None),
            false => (None, Some(self)),
        }
    }

    /// Runs the program on the whole output.
    pub fn all(self) {
        const CHUNK: usize = 1 << 14;
        if let Some(epilogue) = self.epilogue {
            parallel_for(self.size.div_ceil(CHUNK), |chunk| {
                epilogue(chunk * CHUNK..((chunk + 1) * CHUNK).min(self.size));
            });
        }
    }
}

/// Prepares `op` for the operands of `segment`.
pub fn prepare(op: &KernelOp, segment: &Segment) -> Result<Box<dyn OpKernel>> {
    let inputs = &segment.inputs[..];
    Ok(match op {
        KernelOp::Iota(iota) => Box::new(IotaKernel::new(iota)),
        KernelOp::ArgReduce(reduce) => Box::new(ArgReduceKernel::new(reduce, &inputs[0])?),
        KernelOp::Gather(gather) => Box::new(GatherKernel::new(gather, inputs)),
        KernelOp::GatherAxis(gather) => Box::new(GatherAxisKernel::new(gather, inputs)),
        KernelOp::Scatter(scatter) => Box::new(ScatterKernel::new(scatter, inputs)?),
        KernelOp::ScatterAxis(scatter) => Box::new(ScatterKernel::along(scatter, inputs)?),
        KernelOp::RandomBits(bits) => Box::new(RandomKernel::new(bits, &inputs[0])?),
        KernelOp::Bitcast(_) => Box::new(BitcastKernel::new(&inputs[0])?),
        KernelOp::Scan(scan) => Box::new(ScanKernel::new(scan, &inputs[0])?),
        KernelOp::Sort(sort) => Box::new(SortKernel::new(sort, &inputs[0])?),
        KernelOp::Dot(dot) => {
            summed_in(dot.accumulate, segment, |segment| Ok(Box::new(DotKernel::new(segment)?)))?
        }
        KernelOp::Conv(conv) => summed_in(conv.accumulate, segment, |segment| {
            Ok(Box::new(ConvKernel::new(conv, segment)?))
        })?,
        KernelOp::Pool(pool) => Box::new(PoolKernel::new(pool, segment)?),
        KernelOp::Linalg(linalg) => Box::new(LinalgKernel::new(linalg, segment)?),
        KernelOp::Fft(fft) => Box::new(FftKernel::new(fft, segment)?),
    })
}

/// Prepares a composite for the operands of `segment`.
pub fn prepare_composite(composite: &Composite, segment: &Segment) -> Result<Box<dyn OpKernel>> {
    match composite {
        Composite::Attention(attention) => AttentionKernel::of(attention, segment),
        Composite::AttentionGrad(grad) => AttentionGradKernel::of(grad, segment),
        Composite::BatchNorm(_) => Err(cupola_core::Error::Unsupported {
            device: "cpu".to_owned(),
            reason: "it is not claimed".to_owned(),
        }),
        Composite::QuantizedDot(dot) => QuantizedKernel::of(dot, segment),
    }
}

/// Whether there is a kernel for a composite of inputs of these avals.
pub fn claims(composite: &Composite, inputs: &[&Aval]) -> bool {
    match composite {
        // Of nothing, the body gives it.
        Composite::Attention(_) | Composite::AttentionGrad(_) => {
            inputs[..3].iter().all(|aval| aval.shape.size() > 0)
        }
        Composite::BatchNorm(_) => false,
        Composite::QuantizedDot(_) => {
            inputs[0].dtype != DType::F64 && inputs.iter().all(|aval| aval.shape.size() > 0)
        }
    }
}

/// Prepares a user's operator for the operands of `segment`.
pub fn prepare_custom(custom: &Custom, segment: &Segment) -> Result<Box<dyn OpKernel>> {
    let (inputs, outputs) = (&segment.inputs[..], &segment.outputs[..]);
    Ok(Box::new(CustomKernel::new(custom, inputs, outputs)?))
}
