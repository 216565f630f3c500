//! Segments that are ready to run: operands checked and resolved, then one kernel.

#![deny(clippy::wildcard_enum_match_arm)]

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use cupola_core::backend::{Args, Epilogue, Executable, Fails, Kernel, Operand, Region, Segment};
use cupola_core::prim::Primitive;
use cupola_core::{Error, Result, Shape, is_row_major};
use cupola_simd::Then;

use crate::lifted::{Lifted, LiftedArgs};
use crate::map::{EpilogueKernel, MapKernel, RawArgs};
use crate::memory::{HostMemory, caught};
use crate::op::{self, Finish, Io, OpKernel};
use crate::reduce::ReduceKernel;
use crate::rows::RowsKernel;
use crate::tail::{TailArgs, TailPlan};

/// A segment that is ready to run on the CPU.
pub struct Prepared {
    inputs: Vec<Extent>,
    outputs: Vec<Extent>,
    scalars: usize,
    kernel: CpuKernel,
}

/// What a segment runs.
enum CpuKernel {
    /// An elementwise program.
    Map(MapKernel),
    /// An elementwise program and a fold of what it gives.
    Reduce(ReduceKernel),
    /// A program over rows.
    Rows(RowsKernel),
    /// A primitive.
    Op { op: Box<dyn OpKernel>, epilogue: Option<Continuation>, size: usize },
}

impl CpuKernel {
    /// A kernel of `name` with what continues it.
    fn own(op: Box<dyn OpKernel>, name: &str, segment: &Segment) -> Result<CpuKernel> {
        let gaps = |o: &&Operand| !is_row_major(&o.aval.shape, &o.strides);
        if let Some(output) = segment.outputs.iter().find(gaps) {
            let (aval, strides) = (&output.aval, &output.strides);
            let detail = format!("{name}: the output {aval} has gaps: strides {strides:?}");
            return Err(Error::Device(detail));
        }
        let size = segment.outputs.first().map_or(0, |o| o.aval.shape.size());
        let continuation = |e: &Epilogue| {
            let (lifted, body, extra) = Lifted::new(&e.body, &segment.inputs[e.first_input..]);
            let (tail, rest) = match op.has_tail() {
                true => TailPlan::cut(&body, &extra),
                false => (TailPlan::default(), Some(body)),
            };
            let kernel = rest.map(|body| EpilogueKernel::new(&body, &extra)).transpose()?;
            Ok(Continuation { lifted, tail, kernel, first_input: e.first_input })
        };
        let epilogue = segment.epilogue.as_ref().map(continuation).transpose()?;
        Ok(CpuKernel::Op { op, epilogue, size })
    }
}

/// An elementwise program that continues a primitive.
struct Continuation {
    /// The inputs that are read once.
    lifted: Lifted,
    /// What the primitive's kernel does of it.
    tail: TailPlan,
    /// The rest, if there is any.
    kernel: Option<EpilogueKernel>,
    /// Its first input among the segment's, after the primitive's own.
    first_input: usize,
}

impl Prepared {
    /// Prepares a segment.
    pub fn new(segment: &Segment) -> Result<Self> {
        let kernel = match &segment.kernel {
            Kernel::Map(body) => {
                CpuKernel::Map(MapKernel::new(body, &segment.inputs, &segment.outputs)?)
            }
            Kernel::Reduce { body, kind, axes } => {
                let (inputs, outputs) = (&segment.inputs, &segment.outputs);
                CpuKernel::Reduce(ReduceKernel::new(body, *kind, axes, inputs, outputs)?)
            }
            Kernel::Rows { body, folds } => {
                CpuKernel::Rows(RowsKernel::new(body, folds, &segment.inputs, &segment.outputs)?)
            }
            Kernel::Op(op) => CpuKernel::own(op::prepare(op, segment)?, op.name(), segment)?,
            Kernel::Custom(op) => {
                CpuKernel::own(op::prepare_custom(op, segment)?, op.0.name(), segment)?
            }
            Kernel::Control(control) => {
                let reason = format!("{} is run by the planner", control.name());
                return Err(Error::Unsupported { device: "the CPU".into(), reason });
            }
            Kernel::Composite(composite) => {
                let kernel = op::prepare_composite(composite, segment)?;
                CpuKernel::own(kernel, composite.name(), segment)?
            }
        };
        Ok(Prepared {
            inputs: (segment.inputs.iter().enumerate())
                .map(|(i, operand)| Extent::new(segment.walked(i), operand))
                .collect(),
            outputs: segment.outputs.iter().map(|o| Extent::new(&o.aval.shape, o)).collect(),
            scalars: segment.scalars.len(),
            kernel,
        })
    }
}

impl Executable for Prepared {
    fn fails(&self) -> Fails {
        match &self.kernel {
            CpuKernel::Map(_) | CpuKernel::Reduce(_) | CpuKernel::Rows(_) => Fails::Never,
            CpuKernel::Op { op, .. } => op.fails(),
        }
    }

    fn own(&self) -> Vec<usize> {
        match &self.kernel {
            CpuKernel::Map(_) | CpuKernel::Reduce(_) | CpuKernel::Rows(_) => Vec::new(),
            CpuKernel::Op { op, .. } => vec![op.own()],
        }
    }

    fn bytes(&self) -> usize {
        let kernel = match &self.kernel {
            CpuKernel::Map(kernel) => kernel.memory(),
            CpuKernel::Reduce(kernel) => kernel.memory(),
            CpuKernel::Rows(kernel) => kernel.memory(),
            CpuKernel::Op { op, epilogue, .. } => {
                let kernel = epilogue.as_ref().and_then(|e| e.kernel.as_ref());
                op.memory() + kernel.map_or(0, EpilogueKernel::memory)
            }
        };
        let extents = self.inputs.len() + self.outputs.len();
        size_of::<Prepared>() + extents * size_of::<Extent>() + kernel
    }

    fn run(&self, args: &Args<'_>) -> Result<()> {
        let lengths = [args.inputs.len(), args.outputs.len(), args.scalars.len()];
        if lengths != [self.inputs.len(), self.outputs.len(), self.scalars] {
            return Err(Error::Device(format!("a segment was run with {lengths:?} operands")));
        }
        let mut io = Io::default();
        for (extent, region) in self.inputs.iter().zip(args.inputs) {
            io.inputs.push(readable(region)?.wrapping_offset(extent.start(region)?));
        }
        for (extent, region) in self.outputs.iter().zip(args.outputs) {
            let memory = region.buffer.downcast::<HostMemory>().ok_or_else(|| foreign(region))?;
            memory.forget();
            io.outputs.push(memory.as_ptr().wrapping_offset(extent.start(region)?));
        }
        let raw = RawArgs { inputs: &io.inputs, outputs: &io.outputs, scalars: args.scalars };
        match &self.kernel {
            // SAFETY: every operand is inside its buffer, and the planner lets outputs overlap
            // nothing but what `Segment::may_alias` allows.
            CpuKernel::Map(kernel) => unsafe { kernel.run(&raw) },
            CpuKernel::Reduce(kernel) => caught(|| {
                // SAFETY: as above.
                unsafe { kernel.run(&raw) };
                Ok(())
            })?,
            // SAFETY: as above.
            CpuKernel::Rows(kernel) => unsafe { kernel.run(&raw) },
            CpuKernel::Op { op, epilogue, size } => {
                io.kept.extend(args.inputs.iter().map(|region| region.buffer.kept()));
                let run = || unsafe {
                    // SAFETY: as above.
                    run_op(&**op, epilogue.as_ref(), *size, &io, args.scalars)
                };
                caught(run)?;
            }
        }
        Ok(())
    }
}

/// Runs a primitive and what continues it.
///
/// # Safety
/// As [`OpKernel::run`], and so for the inputs of the continuation.
unsafe fn run_op(
    op: &dyn OpKernel,
    epilogue: Option<&Continuation>,
    size: usize,
    io: &Io<'_>,
    scalars: &[[u8; 8]],
) -> Result<()> {
    let Some(Continuation { lifted, tail, kernel, first_input }) = epilogue else {
        let finish = Finish { tail: TailArgs::default(), epilogue: None, size };
        // SAFETY: the same contract.
        return unsafe { op.run(io, finish) };
    };
    static RUNS: AtomicU64 = AtomicU64::new(1);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller vouches for the inputs.
    let LiftedArgs { inputs, scalars } =
        unsafe { lifted.args(&io.inputs[*first_input..], scalars) };
    let args = RawArgs { inputs: &inputs, outputs: &io.outputs, scalars: &scalars };
    let mut tail = tail.args(args.inputs, args.scalars);
    let kernel = kernel.as_ref();
    // What reads nothing but results and scalars can be done where they are stored.
    let function = kernel.filter(|_| op.has_tail()).and_then(|k| k.as_function(args.scalars));
    let then = function.as_ref().map(|function| {
        move |first: *mut f32, step: usize, count: usize, width: usize| {
            // SAFETY: the op has just stored the rows.
            unsafe { function.run(first, step, count, width) };
        }
    });
    tail.then = then.as_ref().map(|then| then as Then<'_, f32>);
    let run = |range: Range<usize>| {
        if let Some(kernel) = kernel {
            // SAFETY: the caller vouches for the operands; the op is done with the range.
            unsafe { kernel.run(number, args.outputs[0], &args, range) };
        }
    };
    let epilogue = kernel.map(|_| &run as &(dyn Fn(Range<usize>) + Sync));
    // SAFETY: the same contract.
    unsafe { op.run(io, Finish { tail, epilogue, size }) }
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
    fn new(shape: &Shape, operand: &Operand) -> Self {
        let width = operand.aval.dtype.size();
        if shape.contains(&0) {
            return Extent { before: 0, after: 0, width };
        }
        let (mut before, mut after) = (0usize, 1usize);
        for (&size, &stride) in shape.iter().zip(&operand.strides) {
            let reach = (size - 1).saturating_mul(stride.unsigned_abs());
            let side = if stride < 0 { &mut before } else { &mut after };
            *side = side.saturating_add(reach);
        }
        Extent { before: before.saturating_mul(width), after: after.saturating_mul(width), width }
    }

    /// The byte at which the element at index 0 is, if all of the operand is inside the region's
    /// buffer.
    fn start(&self, region: &Region<'_>) -> Result<isize> {
        let start = region.offset as i128 * self.width as i128;
        let (low, high) = (start - self.before as i128, start + self.after as i128);
        if self.after > 0 && (low < 0 || high > region.buffer.bytes() as i128) {
            return Err(Error::Device(format!(
                "an operand reaches from byte {low} to {high} of {:?}",
                region.buffer
            )));
        }
        Ok(start as isize)
    }
}

/// The first byte of memory of ours, or of memory that is lent.
fn readable(region: &Region<'_>) -> Result<*const u8> {
    match region.buffer.downcast::<HostMemory>() {
        Some(memory) => Ok(memory.as_ptr()),
        None => region.buffer.host().map(<[u8]>::as_ptr).ok_or_else(|| foreign(region)),
    }
}

/// An operand lies where this device cannot use it.
fn foreign(region: &Region<'_>) -> Error {
    Error::Device(format!("a segment of the CPU was given a {:?}", region.buffer))
}
