//! The primitives that are kernels of their own: neither elementwise, movement nor reduction.

mod arg_reduce;
mod bitcast;
mod contiguous;
mod conv;
mod convert;
mod custom;
mod dot;
mod gather;
mod index;
mod iota;
mod pool;
mod random;
mod rank;
mod scan;
mod scatter;
mod sort;
mod walk;

use std::ops::Range;

use cupola_core::backend::Segment;
use cupola_core::prim::Op;
use cupola_core::{Error, Result};
use smallvec::SmallVec;

use crate::threads::parallel_for;

pub use contiguous::copy_bytes;

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
pub struct Io {
    /// One an input.
    pub inputs: SmallVec<[*const u8; 8]>,
    /// One an output.
    pub outputs: SmallVec<[*mut u8; 2]>,
}

// SAFETY: pointers are only addresses; who follows them says why that is sound.
unsafe impl Sync for Io {}

/// A primitive that is ready to run.
pub trait OpKernel: Send + Sync {
    /// Computes the outputs, and calls `finish` for each part that is final.
    ///
    /// # Safety
    /// The operands that it was prepared for can be read and written, and no output overlaps
    /// another operand.
    unsafe fn run(&self, io: &Io, finish: Finish<'_>) -> Result<()>;
}

/// What is to run on each part of an op's output when the part is final.
#[derive(Clone, Copy)]
pub struct Finish<'a> {
    /// The program, if there is one.
    pub epilogue: Option<&'a (dyn Fn(Range<usize>) + Sync)>,
    /// Elements of the output.
    pub size: usize,
}

impl Finish<'_> {
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
pub fn prepare(op: &Op, segment: &Segment) -> Result<Box<dyn OpKernel>> {
    let (inputs, outputs) = (&segment.inputs[..], &segment.outputs[..]);
    Ok(match op {
        Op::Iota(iota) => Box::new(iota::IotaKernel::new(iota)),
        Op::ArgReduce(reduce) => Box::new(arg_reduce::ArgReduceKernel::new(reduce, &inputs[0])?),
        Op::Gather(gather) => Box::new(gather::GatherKernel::new(gather, inputs)),
        Op::GatherAxis(gather) => Box::new(gather::GatherAxisKernel::new(gather, inputs)),
        Op::Scatter(scatter) => Box::new(scatter::ScatterKernel::new(scatter, inputs)?),
        Op::ScatterAxis(scatter) => Box::new(scatter::ScatterKernel::along(scatter, inputs)?),
        Op::RandomBits(bits) => Box::new(random::RandomKernel::new(bits, &inputs[0])?),
        Op::Bitcast(_) => Box::new(bitcast::BitcastKernel::new(&inputs[0])?),
        Op::Scan(scan) => Box::new(scan::ScanKernel::new(scan, &inputs[0])?),
        Op::Sort(sort) => Box::new(sort::SortKernel::new(sort, &inputs[0])?),
        Op::Custom(custom) => Box::new(custom::CustomKernel::new(custom, inputs, outputs)?),
        Op::Dot(dot) => convert::summed_in(dot.accumulate, segment, |segment| {
            Ok(Box::new(dot::DotKernel::new(segment)?))
        })?,
        Op::Conv(conv) => convert::summed_in(conv.accumulate, segment, |segment| {
            Ok(Box::new(conv::ConvKernel::new(conv, segment)?))
        })?,
        Op::Pool(pool) => Box::new(pool::PoolKernel::new(pool, segment)?),
        Op::Input(_)
        | Op::Constant(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select(_)
        | Op::Cast(_)
        | Op::Mark(_)
        | Op::Movement(_)
        | Op::Reduce(_)
        | Op::Call(_) => {
            return Err(Error::Device(format!("{} is not a kernel of its own", op.name())));
        }
    })
}
