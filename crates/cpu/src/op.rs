//! Segments that are ready to run: operands checked and resolved, then one kernel.

use cupola_core::backend::{Args, Executable, Kernel, Operand, Region, Segment};
use cupola_core::{Error, Result, is_row_major};

use crate::memory::HostMemory;
use crate::ops::{self, Finish, Io, OpKernel};

/// A segment that is ready to run on the CPU.
pub struct Prepared {
    inputs: Vec<Extent>,
    outputs: Vec<Extent>,
    scalars: usize,
    work: Work,
}

/// What a segment runs.
enum Work {
    /// A primitive.
    Op { op: Box<dyn OpKernel>, size: usize },
}

impl Prepared {
    /// Prepares a segment.
    pub fn new(segment: &Segment) -> Result<Self> {
        let work = match &segment.kernel {
            Kernel::Map(_) | Kernel::Reduce { .. } => {
                return Err(Error::Device("elementwise programs are not wired yet".into()));
            }
            Kernel::Op(op) => {
                let gaps = |o: &&Operand| !is_row_major(&o.aval.shape, &o.strides);
                if let Some(output) = segment.outputs.iter().find(gaps) {
                    return Err(Error::Device(format!(
                        "{}: the output {} has gaps: strides {:?}",
                        op.name(),
                        output.aval,
                        output.strides
                    )));
                }
                let size = segment.outputs.first().map_or(0, |o| o.aval.shape.size());
                Work::Op { op: ops::prepare(op, segment)?, size }
            }
        };
        Ok(Prepared {
            inputs: segment.inputs.iter().map(Extent::new).collect(),
            outputs: segment.outputs.iter().map(Extent::new).collect(),
            scalars: segment.scalars.len(),
            work,
        })
    }
}

impl Executable for Prepared {
    fn run(&self, args: &Args<'_>) -> Result<()> {
        let lengths = [args.inputs.len(), args.outputs.len(), args.scalars.len()];
        if lengths != [self.inputs.len(), self.outputs.len(), self.scalars] {
            return Err(Error::Device(format!("a segment was run with {lengths:?} operands")));
        }
        let mut io = Io::default();
        for (extent, region) in self.inputs.iter().zip(args.inputs) {
            io.inputs.push(extent.resolve(region)?);
        }
        for (extent, region) in self.outputs.iter().zip(args.outputs) {
            io.outputs.push(extent.resolve(region)?);
        }
        match &self.work {
            Work::Op { op, size } => {
                // SAFETY: every operand is inside its buffer, and the planner lets outputs overlap
                // nothing else.
                unsafe { op.run(&io, Finish { epilogue: None, size: *size }) }
            }
        }
    }
}

/// How far an operand reaches around its element at index 0.
struct Extent {
    /// Bytes before it, and from it on.
    before: usize,
    after: usize,
    /// Bytes of an element.
    width: usize,
}

impl Extent {
    fn new(operand: &Operand) -> Self {
        let Operand { aval, strides } = operand;
        let width = aval.dtype.size();
        if aval.shape.contains(&0) {
            return Extent { before: 0, after: 0, width };
        }
        let (mut before, mut after) = (0usize, 1usize);
        for (&size, &stride) in aval.shape.iter().zip(strides) {
            let reach = (size - 1).saturating_mul(stride.unsigned_abs());
            let side = if stride < 0 { &mut before } else { &mut after };
            *side = side.saturating_add(reach);
        }
        Extent { before: before.saturating_mul(width), after: after.saturating_mul(width), width }
    }

    /// The address of the element at index 0, if all of the operand is inside the region's buffer.
    fn resolve(&self, region: &Region<'_>) -> Result<*mut u8> {
        let memory = region.buffer.downcast::<HostMemory>().ok_or_else(|| {
            Error::Device(format!("a segment of the CPU was given a {:?}", region.buffer))
        })?;
        let start = region.offset as i128 * self.width as i128;
        let (low, high) = (start - self.before as i128, start + self.after as i128);
        if self.after > 0 && (low < 0 || high > region.buffer.bytes() as i128) {
            return Err(Error::Device(format!(
                "an operand reaches from byte {low} to {high} of {:?}",
                region.buffer
            )));
        }
        Ok(memory.as_ptr().wrapping_offset(start as isize))
    }
}
