//! Products that are summed, or come out, in another dtype than that of their operands.

#![deny(clippy::wildcard_enum_match_arm)]

use std::slice::from_ref;

use cupola_core::backend::{Body, Instr};
use cupola_core::backend::{Fails, Operand, Segment};
use cupola_core::prim::{Cast, Elementwise};
use cupola_core::{Aval, DType, Result};
use smallvec::smallvec;

use crate::map::{MapKernel, RawArgs};
use crate::memory::HostMemory;
use crate::op::{Finish, Io, OpKernel};

/// Prepares a product that is to be summed in `accumulate`: as it is, where `make`'s kernels do
/// that for the operands' dtype, and otherwise in `accumulate` with conversions around it.
pub fn summed_in(
    accumulate: DType,
    segment: &Segment,
    make: impl Fn(&Segment) -> Result<Box<dyn OpKernel>>,
) -> Result<Box<dyn OpKernel>> {
    let (dtype, compute) = (segment.inputs[0].aval.dtype, accumulate.accumulator());
    let output = &segment.outputs[0].aval;
    if output.dtype == dtype && dtype.accumulator() == compute {
        return make(segment);
    }
    let mut inner = segment.clone();
    let mut inputs = Vec::new();
    for input in &mut inner.inputs[..2] {
        inputs.push(convert(input, compute)?);
    }
    inner.outputs[0].aval.dtype = compute;
    let mut source = inner.outputs[0].clone();
    let output = convert(&mut source, output.dtype)?;
    Ok(Box::new(Converted { inner: make(&inner)?, inputs, output }))
}

/// What makes `operand` one of dtype `to`, without gaps, if it is not of that dtype already.
fn convert(operand: &mut Operand, to: DType) -> Result<Option<Conversion>> {
    let from = operand.aval.dtype;
    if from == to {
        return Ok(None);
    }
    let aval = Aval { shape: operand.aval.shape.clone(), dtype: to };
    let code = vec![Instr { op: Elementwise::Cast(Cast { to }), args: smallvec![0], dtype: to }];
    let shape = aval.shape.clone();
    let body = Body { shape, inputs: vec![from], scalars: vec![], code, outputs: vec![1] };
    let target = Operand::contiguous(&aval);
    let kernel = MapKernel::new(&body, from_ref(operand), from_ref(&target))?;
    let from_bytes = operand.aval.bytes();
    *operand = target;
    Ok(Some(Conversion { kernel, from_bytes, bytes: aval.bytes() }))
}

/// From one dtype to another.
struct Conversion {
    kernel: MapKernel,
    /// Bytes of the source, without gaps, and of the target.
    from_bytes: usize,
    bytes: usize,
}

impl Conversion {
    /// # Safety
    /// The source can be read and the target written.
    unsafe fn run(&self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for both.
        unsafe { self.kernel.run(&RawArgs { inputs: &[from], outputs: &[to], scalars: &[] }) }
    }
}

struct Converted {
    inner: Box<dyn OpKernel>,
    inputs: Vec<Option<Conversion>>,
    output: Option<Conversion>,
}

impl OpKernel for Converted {
    fn fails(&self) -> Fails {
        self.inner.fails()
    }

    fn own(&self) -> usize {
        let inputs: usize = self.inputs.iter().flatten().map(|input| input.bytes).sum();
        let sums = self.output.as_ref().map_or(0, |output| output.from_bytes);
        inputs + sums + self.inner.own()
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        let mut inner =
            Io { inputs: io.inputs.clone(), outputs: io.outputs.clone(), ..Io::default() };
        let mut scratch = Vec::new();
        let what = "operands in the dtype of their sums";
        for (ptr, conversion) in inner.inputs.iter_mut().zip(&self.inputs) {
            if let Some(conversion) = conversion {
                let memory = HostMemory::new(conversion.bytes, what)?;
                // SAFETY: the caller vouches for the operands; the memory holds the target.
                unsafe { conversion.run(*ptr, memory.as_ptr()) };
                *ptr = memory.as_ptr();
                scratch.push(memory);
            }
        }
        let Some(output) = &self.output else {
            // SAFETY: as above.
            return unsafe { self.inner.run(&inner, finish) };
        };
        let sums = HostMemory::new(output.from_bytes, what)?;
        inner.outputs[0] = sums.as_ptr();
        // SAFETY: as above; the memory holds the sums.
        unsafe {
            self.inner.run(&inner, Finish { epilogue: None, ..finish })?;
            output.run(sums.as_ptr(), io.outputs[0]);
        }
        finish.all();
        Ok(())
    }
}
